/* SPDX-License-Identifier: Apache-2.0 */
/* manifest_test.c - a folder and what it says of itself. */
#include "weir_test.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/file.h>
#include <weir/store/trust/trust.h>

static void put(const char *name, const char *text) {
    assert_ok(weir_file_replace(weir_test_path(name), text, strlen(text)));
}

static void folder_make(void) {
    assert_ok(weir_folder_create(weir_test_path("f/deep")));
    put("f/one", "abc");
    put("f/deep/two", "");
    assert_ok(weir_manifest_write(weir_test_path("f")));
}

static void refused(const char *text) {
    assert_err(weir_manifest_verify(weir_test_path("f")), WEIR_ECORRUPT, text);
}

/* FIPS 180-4's example for "abc". */
static void sha256_is_the_published_one(void **state) {
    (void)state;
    char hex[65];
    uint64_t length;
    put("abc", "abc");
    assert_ok(weir_sha256_file(weir_test_path("abc"), hex, &length));
    assert_string_equal(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_int_equal(length, 3);
}

static void whole_folder_is_accepted(void **state) {
    (void)state;
    folder_make();
    assert_ok(weir_manifest_verify(weir_test_path("f")));
}

static void each_change_is_seen(void **state) {
    (void)state;
    folder_make();
    put("f/one", "abd");
    refused("f/one");
    put("f/one", "abcd");
    refused("f/one");
    put("f/one", "abc");
    assert_ok(weir_manifest_verify(weir_test_path("f")));
    put("f/three", "");
    refused("f/three");
    assert_ok(weir_file_remove(weir_test_path("f/three")));
    assert_ok(weir_file_remove(weir_test_path("f/deep/two")));
    refused(NULL);
}

static void manifest_is_refused_when_cut_or_missing(void **state) {
    (void)state;
    char *text;
    size_t length;
    folder_make();
    assert_ok(weir_file_load(weir_test_path("f/MANIFEST"), 4096, &text, &length));
    for (size_t cut = 0; cut < length; cut++) {
        assert_ok(weir_file_replace(weir_test_path("f/MANIFEST"), text, cut));
        refused(NULL);
    }
    weir_free(text);
    assert_ok(weir_file_remove(weir_test_path("f/MANIFEST")));
    assert_err(weir_manifest_verify(weir_test_path("f")), WEIR_ENOTFOUND, "MANIFEST");
}

static void links_are_refused(void **state) {
    (void)state;
    folder_make();
    assert_int_equal(symlink("/etc/passwd", weir_test_path("f/zlink")), 0);
    refused("zlink");
}

static weir_err write_and_verify(void *context) {
    weir_err err = weir_manifest_write(context);
    return err ? err : weir_manifest_verify(context);
}

static void fails_cleanly_at_every_allocation(void **state) {
    (void)state;
    char path[4096];
    folder_make();
    snprintf(path, sizeof path, "%s", weir_test_path("f"));
    weir_test_every_allocation(write_and_verify, path);
}

WEIR_TESTS(WEIR_CASE(sha256_is_the_published_one), WEIR_CASE(whole_folder_is_accepted), WEIR_CASE(each_change_is_seen),
           WEIR_CASE(manifest_is_refused_when_cut_or_missing), WEIR_CASE(links_are_refused),
           WEIR_CASE(fails_cleanly_at_every_allocation))

/* SPDX-License-Identifier: Apache-2.0 */
/* Files that decide what is trusted: who could change them, by every bit of a mode, of the file and of its folder. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/file.h>

#include "weir_test.h"

static char folder[4096], file[4096];

static void make(void) {
    snprintf(folder, sizeof folder, "%s", weir_test_path("folder"));
    snprintf(file, sizeof file, "%s/file", folder);
    assert_int_equal(mkdir(folder, 0750), 0);
    assert_ok(weir_file_replace(file, "text", 4));
}

static weir_err load(void) {
    char *bytes;
    size_t length;
    weir_err err = weir_file_load_as(file, WEIR_FILE_GUARDED, 100, &bytes, &length);
    assert_true((bytes != NULL) == !err);
    weir_free(bytes);
    return err;
}

static void expect(bool guarded, const char *part) {
    weir_err err = weir_path_guarded(file);
    if (guarded) {
        assert_ok(err);
        assert_ok(load());
        return;
    }
    assert_err(err, WEIR_EPERM, part);
    assert_err(load(), WEIR_EPERM, part);
}

static void no_bit_lets_others_write(void **state) {
    (void)state;
    make();
    for (unsigned mode = 0; mode <= 07777; mode++) {
        char part[64];
        assert_int_equal(chmod(file, mode | 0400), 0);
        snprintf(part, sizeof part, "(mode %04o); run: chmod go-w ", mode | 0400);
        expect(!(mode & 022), part);
    }
    assert_int_equal(chmod(file, 0640), 0);
    for (unsigned mode = 0; mode <= 07777; mode++) {
        assert_int_equal(chmod(folder, mode | 0500), 0);
        expect(!(mode & 022), folder); /* 01777 too: who comes first makes the file */
    }
}

/* As root, who can give files away; another user's files are seen from the other side then. */
static void strangers_are_refused(void **state) {
    (void)state;
    make();
    if (geteuid() != 0) skip();
    assert_int_equal(chown(file, 12345, 0), 0);
    expect(false, "belongs to user 12345, who could change it; run: chown 0 ");
    assert_int_equal(chown(file, 0, 12345), 0);
    expect(true, NULL);
    assert_int_equal(chown(folder, 12345, 0), 0);
    expect(false, folder);
}

/* Both ends of a link decide. */
static void a_link_is_as_guarded_as_its_ends(void **state) {
    (void)state;
    char link[4096];
    make();
    snprintf(link, sizeof link, "%s", weir_test_path("link"));
    assert_int_equal(symlink(file, link), 0);
    assert_ok(weir_path_guarded(link));
    assert_int_equal(chmod(folder, 0777), 0);
    assert_err(weir_path_guarded(link), WEIR_EPERM, folder);
    assert_int_equal(chmod(folder, 0755), 0);
    assert_int_equal(chmod(weir_test_folder(), 01777), 0);
    assert_err(weir_path_guarded(link), WEIR_EPERM, "chmod go-w");
    assert_int_equal(chmod(weir_test_folder(), 0700), 0);
    assert_err(weir_path_guarded(weir_test_path("none")), WEIR_ENOTFOUND, "none");
}

/* PATH leads to TARGET, in a folder of its own. */
static void link_in(const char *name, const char *target, char path[4096]) {
    snprintf(path, 4096, "%s/link", weir_test_path(name));
    assert_int_equal(mkdir(weir_test_path(name), 0750), 0);
    assert_int_equal(symlink(target, path), 0);
}

/* Whoever can put another link in the place of one leads it where he likes. */
static void every_link_on_the_way_is_looked_at(void **state) {
    (void)state;
    static const char *const folders[] = {"first", "second", "third", "fourth"};
    char fourth[4096], third[4096], second[4096], first[4096];
    make();
    link_in("fourth", folder, fourth); /* of a folder, by its whole path and by one from where the link is */
    link_in("third", "../fourth/link/file", third);
    link_in("second", third, second);
    link_in("first", "./../second/../second//link", first);
    assert_ok(weir_path_guarded(first));
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        assert_int_equal(chmod(weir_test_path(folders[i]), 0777), 0);
        assert_err(weir_path_guarded(first), WEIR_EPERM, weir_test_path(folders[i]));
        assert_int_equal(chmod(weir_test_path(folders[i]), 0750), 0);
    }
    assert_int_equal(unlink(second), 0);
    assert_int_equal(symlink(first, second), 0);
    assert_err(weir_path_guarded(first), WEIR_EIO, NULL); /* in a circle */
    assert_int_equal(unlink(first), 0);
    assert_int_equal(symlink("link", first), 0);
    assert_err(weir_path_guarded(first), WEIR_EIO, NULL);
}

static void a_folder_is_looked_at_to_its_last_file(void **state) {
    (void)state;
    char deep[4096], leaf[4200];
    make();
    snprintf(deep, sizeof deep, "%s/a/b", folder);
    snprintf(leaf, sizeof leaf, "%s/leaf", deep);
    assert_ok(weir_folder_create(deep));
    assert_ok(weir_file_replace(leaf, "", 0));
    assert_ok(weir_folder_guarded(folder));
    assert_int_equal(chmod(leaf, 0662), 0);
    assert_err(weir_folder_guarded(folder), WEIR_EPERM, leaf);
    assert_int_equal(chmod(leaf, 0640), 0);
    assert_int_equal(chmod(deep, 0770), 0);
    assert_err(weir_folder_guarded(folder), WEIR_EPERM, deep);
    assert_int_equal(chmod(deep, 0750), 0);
    assert_int_equal(chmod(weir_test_folder(), 0777), 0); /* the folder itself could be put in its place */
    assert_err(weir_folder_guarded(folder), WEIR_EPERM, weir_test_folder());
    assert_int_equal(chmod(weir_test_folder(), 0700), 0);
    assert_int_equal(unlink(leaf), 0);
    assert_int_equal(symlink(".", leaf), 0); /* without end */
    assert_err(weir_folder_guarded(folder), WEIR_ELIMIT, "deep");
}

WEIR_TESTS(WEIR_CASE(no_bit_lets_others_write), WEIR_CASE(strangers_are_refused),
           WEIR_CASE(a_link_is_as_guarded_as_its_ends), WEIR_CASE(every_link_on_the_way_is_looked_at),
           WEIR_CASE(a_folder_is_looked_at_to_its_last_file))

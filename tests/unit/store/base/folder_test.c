/* SPDX-License-Identifier: Apache-2.0 */
#include "weir_test.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/fault.h>
#include <weir/store/base/file.h>

static void disarm(void) {
    assert_ok(weir_fault_arm(NULL));
}

static void put(const char *name) {
    assert_ok(weir_file_replace(weir_test_path(name), "x", 1));
}

/* --- what is synced before what -------------------------------------------------------------------------------- */

#define TRACE_MAX 64

typedef struct trace {
    struct {
        weir_fault_op op;
        char path[PATH_MAX];
    } steps[TRACE_MAX];
    int count;
} trace;

static trace seen;

static void note(void *context, weir_fault_op op, const char *path) {
    trace *t = context;
    assert_true(t->count < TRACE_MAX);
    t->steps[t->count].op = op;
    snprintf(t->steps[t->count].path, sizeof t->steps[t->count].path, "%s", path);
    t->count++;
}

static void begin_trace(void) {
    seen.count = 0;
    weir_fault_watch(note, &seen);
}

static void end_trace(void) {
    weir_fault_watch(NULL, NULL);
}

/* Where the operation on the path stands first from `from` on, or last; -1: nowhere. */
static int first(weir_fault_op op, const char *path, int from) {
    for (int i = from; i < seen.count; i++)
        if (seen.steps[i].op == op && strcmp(seen.steps[i].path, path) == 0) return i;
    return -1;
}

static int last(weir_fault_op op, const char *path) {
    for (int i = seen.count - 1; i >= 0; i--)
        if (seen.steps[i].op == op && strcmp(seen.steps[i].path, path) == 0) return i;
    return -1;
}

/* A power cut leaves of a file what was synced, and of a name what its folder's sync has seen. So the new content must
 * be synced before the name points to it, and the name before we say that all is done. */
static void replace_survives_a_power_cut_at_any_step(void **state) {
    (void)state;
    const char *path = weir_test_path("file"), *temporary = weir_test_path("file.tmp");
    assert_ok(weir_fault_arm("write:1:part"));
    begin_trace();
    assert_ok(weir_file_replace(path, "some content in many parts", 26));
    end_trace();
    int written = last(WEIR_FAULT_WRITE, temporary), synced = first(WEIR_FAULT_SYNC, temporary, 0);
    int renamed = first(WEIR_FAULT_RENAME, path, 0), folder = first(WEIR_FAULT_SYNC, weir_test_folder(), 0);
    assert_true(0 <= written && written < synced && synced < renamed && renamed < folder);
    assert_int_equal(last(WEIR_FAULT_WRITE, path), -1);
}

static void rename_and_remove_sync_the_folder(void **state) {
    (void)state;
    const char *from = weir_test_path("from"), *to = weir_test_path("inner/to"), *inner = weir_test_path("inner");
    put("from");
    assert_ok(weir_folder_create(inner));
    begin_trace();
    assert_ok(weir_file_rename(from, to));
    assert_true(first(WEIR_FAULT_RENAME, to, 0) < last(WEIR_FAULT_SYNC, inner));
    end_trace();
    assert_false(weir_path_exists(from));
    begin_trace();
    assert_ok(weir_file_remove(to));
    assert_true(first(WEIR_FAULT_UNLINK, to, 0) < last(WEIR_FAULT_SYNC, inner));
    end_trace();
    assert_false(weir_path_exists(to));
    assert_err(weir_file_rename(from, to), WEIR_ENOTFOUND, from);
    assert_err(weir_file_remove(to), WEIR_ENOTFOUND, to);
}

static void each_new_folder_is_synced_into_its_parent(void **state) {
    (void)state;
    const char *parents[] = {weir_test_folder(), weir_test_path("a"), weir_test_path("a/b")};
    const char *made[] = {weir_test_path("a"), weir_test_path("a/b"), weir_test_path("a/b/c")};
    begin_trace();
    assert_ok(weir_folder_create(made[2]));
    end_trace();
    for (int i = 0; i < 3; i++) {
        int making = first(WEIR_FAULT_OPEN, made[i], 0), synced = first(WEIR_FAULT_SYNC, parents[i], 0);
        assert_true(0 <= making && making < synced);
        if (i < 2) assert_true(synced < first(WEIR_FAULT_OPEN, made[i + 1], 0));
    }
}

static void the_folder_of_a_path(void **state) {
    (void)state;
    static const struct {
        const char *path, *folder;
    } cases[] = {{"file", "."},   {"./file", "."}, {"inner/file", "inner"}, {"inner//file", "inner"},
                 {"inner/", "."}, {"/file", "/"},  {"//file", "/"},         {"inner/deep/", "inner"},
                 {"/", "/"},      {".", "."}};
    assert_int_equal(chdir(weir_test_folder()), 0);
    assert_ok(weir_folder_create("inner/deep"));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        begin_trace();
        assert_ok(weir_folder_sync_of(cases[i].path));
        end_trace();
        assert_int_equal(seen.count, 3);
        assert_int_equal(seen.steps[1].op, WEIR_FAULT_SYNC);
        assert_string_equal(seen.steps[1].path, cases[i].folder);
    }
    assert_err(weir_folder_sync_of("none/file"), WEIR_ENOTFOUND, "none");
    assert_ok(weir_file_replace("file", "x", 1)); /* no slash in it at all */
    assert_ok(weir_file_remove("file"));
}

/* --- making ---------------------------------------------------------------------------------------------------- */

static bool is_folder(const char *path) {
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

static void create_with_parents_and_again(void **state) {
    (void)state;
    assert_ok(weir_folder_create(weir_test_path("a/b//c/")));
    assert_true(is_folder(weir_test_path("a/b/c")));
    assert_ok(weir_folder_create(weir_test_path("a/b/c")));
    assert_ok(weir_folder_create(weir_test_folder()));
    assert_ok(weir_folder_create("/"));
    put("a/file");
    assert_err(weir_folder_create(weir_test_path("a/file")), WEIR_EEXIST, "a/file exists and is not a folder");
    assert_err(weir_folder_create(weir_test_path("a/file/x")), WEIR_EEXIST, "a/file exists and is not a folder");
    assert_err(weir_folder_create(""), WEIR_ENOTFOUND, NULL);
}

static void create_with_each_operation_failing(void **state) {
    (void)state;
    uint64_t nth = 0;
    do {
        char spec[64];
        snprintf(spec, sizeof spec, "any:%d:ENOSPC:once:%s", (int)++nth, weir_test_folder());
        assert_ok(weir_fault_arm(spec));
        weir_err err = weir_folder_create(weir_test_path("a/b"));
        disarm();
        if (err) assert_err(err, WEIR_EFULL, weir_test_folder());
        assert_ok(weir_folder_create(weir_test_path("a/b")));
        assert_ok(weir_folder_remove(weir_test_path("a")));
    } while (weir_fault_seen() >= nth);
    assert_true(nth > 8);
}

/* --- listing --------------------------------------------------------------------------------------------------- */

typedef struct listed {
    char text[2000];
    unsigned stop_at;
} listed;

static weir_err collect(void *context, const char *name) {
    listed *l = context;
    if (l->stop_at && --l->stop_at == 0) return WEIR_ERR(WEIR_ECANCELLED, "that is enough");
    strcat(strcat(l->text, name), " ");
    return WEIR_OK;
}

static void list_is_sorted_and_whole(void **state) {
    (void)state;
    listed l = {0};
    assert_ok(weir_folder_list(weir_test_folder(), collect, &l));
    assert_string_equal(l.text, "");
    put("b");
    put("a");
    put(".hidden");
    put("B10");
    put("B9");
    assert_ok(weir_folder_create(weir_test_path("c")));
    assert_ok(weir_folder_list(weir_test_folder(), collect, &l));
    assert_string_equal(l.text, ".hidden B10 B9 a b c ");
    assert_err(weir_folder_list(weir_test_path("none"), collect, &l), WEIR_ENOTFOUND, "none");
    assert_err(weir_folder_list(weir_test_path("a"), collect, &l), WEIR_EIO, "directory");
}

static void list_passes_the_visitor_s_error_on(void **state) {
    (void)state;
    listed l = {.stop_at = 3};
    for (char name[] = "a"; name[0] <= 'e'; name[0]++)
        put(name);
    assert_err(weir_folder_list(weir_test_folder(), collect, &l), WEIR_ECANCELLED, "that is enough");
    assert_string_equal(l.text, "a b ");
}

static weir_err list_folder(void *context) {
    (void)context;
    listed l = {0};
    return weir_folder_list(weir_test_folder(), collect, &l);
}

static void list_fails_cleanly_at_every_allocation_and_operation(void **state) {
    (void)state;
    uint64_t nth = 0;
    for (char name[] = "a"; name[0] <= 'z'; name[0]++)
        put(name);
    weir_test_every_allocation(list_folder, NULL);
    do {
        char spec[64];
        snprintf(spec, sizeof spec, "any:%d:EIO:once", (int)++nth);
        assert_ok(weir_fault_arm(spec));
        weir_err err = list_folder(NULL);
        if (weir_fault_seen() >= nth) assert_err(err, WEIR_EIO, weir_test_folder());
    } while (weir_fault_seen() >= nth);
    disarm();
    assert_true(nth > 26);
}

/* --- exchanging ------------------------------------------------------------------------------------------------- */

static void holds(const char *folder, const char *content) {
    char path[PATH_MAX], *text;
    size_t length;
    snprintf(path, sizeof path, "%s/%s", weir_test_path(folder), content);
    assert_ok(weir_file_load(path, 100, &text, &length));
    assert_memory_equal(text, "x", length);
    weir_free(text);
}

static void exchange_is_one_step_and_synced(void **state) {
    (void)state;
    const char *a = weir_test_path("a"), *b = weir_test_path("b");
    assert_ok(weir_folder_create(weir_test_path("a/deep")));
    assert_ok(weir_folder_create(b));
    put("a/deep/of-a");
    put("b/of-b");
    begin_trace();
    assert_ok(weir_folder_swap(a, b));
    end_trace();
    assert_int_equal(seen.count, 4); /* the exchange; the folder that holds both is opened, synced and closed */
    assert_true(0 <= first(WEIR_FAULT_RENAME, b, 0) &&
                first(WEIR_FAULT_RENAME, b, 0) < first(WEIR_FAULT_SYNC, weir_test_folder(), 0));
    holds("a", "of-b");
    holds("b", "deep/of-a");
    assert_false(weir_path_exists(weir_test_path("a/deep")) || weir_path_exists(weir_test_path("b/of-b")));
    assert_err(weir_folder_swap(a, weir_test_path("none")), WEIR_ENOTFOUND, "none");
    assert_err(weir_folder_swap(weir_test_path("none"), a), WEIR_ENOTFOUND, "none");
    holds("a", "of-b");
}

/* Who is told that it has failed goes on with what it had under the first name; also where all fails from then on, so
 * that the names cannot be given back either. */
static void an_exchange_is_what_it_says(void **state) {
    (void)state;
    static const char *const how_often[] = {":once", ""};
    assert_ok(weir_folder_create(weir_test_path("a")));
    assert_ok(weir_folder_create(weir_test_path("b")));
    put("a/of-a");
    put("b/of-b");
    assert_ok(weir_fault_arm("rename:1:EINVAL"));
    assert_err(weir_folder_swap(weir_test_path("a"), weir_test_path("b")), WEIR_EUNAVAILABLE, "cannot exchange");
    holds("a", "of-a");
    for (size_t i = 0; i < 2; i++) {
        uint64_t nth = 0;
        for (bool met = true; met;) {
            char spec[64];
            snprintf(spec, sizeof spec, "any:%d:EIO%s", (int)++nth, how_often[i]);
            assert_ok(weir_fault_arm(spec));
            weir_err err = weir_folder_swap(weir_test_path("a"), weir_test_path("b"));
            met = weir_fault_seen() >= nth;
            disarm();
            if (met && err) assert_err(err, WEIR_EIO, NULL);
            holds("a", err ? "of-a" : "of-b");
            holds("b", err ? "of-b" : "of-a");
            if (!err) assert_ok(weir_folder_swap(weir_test_path("a"), weir_test_path("b")));
        }
        assert_true(nth > 3);
    }
}

/* --- removing -------------------------------------------------------------------------------------------------- */

static void remove_takes_all_and_follows_no_link(void **state) {
    (void)state;
    assert_ok(weir_folder_create(weir_test_path("keep")));
    put("keep/file");
    assert_ok(weir_folder_create(weir_test_path("gone/a/b")));
    put("gone/file");
    put("gone/a/b/file");
    assert_int_equal(symlink(weir_test_path("keep"), weir_test_path("gone/link")), 0);
    assert_int_equal(symlink("nowhere", weir_test_path("gone/dangling")), 0);
    assert_ok(weir_folder_remove(weir_test_path("gone")));
    assert_false(weir_path_exists(weir_test_path("gone")));
    assert_true(weir_path_exists(weir_test_path("keep/file")));
    assert_err(weir_folder_remove(weir_test_path("gone")), WEIR_ENOTFOUND, "gone");
    assert_int_equal(symlink(weir_test_path("keep"), weir_test_path("link")), 0);
    assert_err(weir_folder_remove(weir_test_path("link")), WEIR_EIO, "link");
    assert_err(weir_folder_remove(weir_test_path("keep/file")), WEIR_EIO, "keep/file");
    assert_true(weir_path_exists(weir_test_path("keep/file")));
}

static void remove_follows_no_link_that_is_named(void **state) {
    (void)state;
    static const char *const names[] = {"link", "link/", "link/.", "./link//.//", "a/../link/"};
    assert_int_equal(chdir(weir_test_folder()), 0);
    assert_ok(weir_folder_create("keep"));
    assert_ok(weir_folder_create("a"));
    put("keep/file");
    assert_int_equal(symlink("keep", "link"), 0);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[PATH_MAX];
        assert_err(weir_folder_remove(names[i]), WEIR_EIO, "link");
        snprintf(path, sizeof path, "%s/keep/../%s", weir_test_folder(), names[i]);
        assert_non_null(weir_folder_remove(path));
        assert_true(weir_path_exists("keep/file"));
    }
}

static void remove_refuses_what_a_slip_would_name(void **state) {
    (void)state;
    static const char *const slips[] = {"",      "/",    "//",      "/./",     ".",     "..",
                                        "./",    "/a",   "//a//",   "/./a/.",  "a/..",  "a/../",
                                        "../..", "./..", "a/../..", "/a/../b", "/a/..", "/a/b/../c",
                                        "/.a",   "/a.",  "//a./",   "/a.b/..", "/..",   "/../a.b"};
    assert_int_equal(chdir(weir_test_folder()), 0);
    assert_ok(weir_folder_create("a/b"));
    for (size_t i = 0; i < sizeof slips / sizeof slips[0]; i++)
        assert_err(weir_folder_remove(slips[i]), WEIR_EINVAL, "is not removed");
    assert_true(is_folder("a/b"));
    assert_ok(weir_folder_remove("a/b"));
    assert_true(is_folder("a"));
    assert_ok(weir_folder_create("a/..b"));
    assert_ok(weir_folder_remove("./a/..b"));
}

/* As people name what a command is to write. */
static void remove_takes_any_relative_name(void **state) {
    (void)state;
    static const char *const names[] = {"a", "./a", "a/", "a/.", ".//a/./", "b/../a", "../here/a", "../here/a/"};
    assert_ok(weir_folder_create(weir_test_path("here/b")));
    assert_int_equal(chdir(weir_test_path("here")), 0);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        assert_ok(weir_folder_create("a/deep"));
        put("here/a/deep/file");
        assert_ok(weir_folder_remove(names[i]));
        assert_false(weir_path_exists("a"));
        assert_true(is_folder("b"));
    }
}

/* What a command writes beside a folder right under the root, as a volume of a container is. */
static void remove_takes_a_name_with_an_ending_at_the_root(void **state) {
    (void)state;
    static const char *const begins[] = {"/", "//", "/./"}, *const ends[] = {"", "/", "/."};
    char name[64], made[80], named[80];
    snprintf(name, sizeof name, "weir-folder-test-%ld.partial", (long)getpid());
    snprintf(made, sizeof made, "/%s", name);
    if (access("/", W_OK) != 0) weir_test_skip("nothing can be made at the root");
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        assert_ok(weir_folder_create(made));
        snprintf(named, sizeof named, "%s%s%s", begins[i], name, ends[i]);
        assert_ok(weir_folder_remove(named));
        assert_false(weir_path_exists(made));
    }
}

/* A folder with so many below it; each by its own relative name, since the path grows long. */
static void make_deep(const char *top, unsigned below) {
    char path[PATH_MAX];
    size_t length = (size_t)snprintf(path, sizeof path, "%s", top);
    for (unsigned i = 0; i < below; i++)
        length += (size_t)snprintf(path + length, sizeof path - length, "/d");
    assert_ok(weir_folder_create(path));
}

static void remove_depth_max_and_one_past_it(void **state) {
    (void)state;
    make_deep(weir_test_path("deep"), WEIR_FOLDER_DEPTH_MAX);
    assert_ok(weir_folder_remove(weir_test_path("deep")));
    make_deep(weir_test_path("deep"), WEIR_FOLDER_DEPTH_MAX + 1);
    assert_err(weir_folder_remove(weir_test_path("deep")), WEIR_ELIMIT, "more than 64 folders deep");
    assert_int_equal(chdir(weir_test_path("deep/d")), 0);
    assert_ok(weir_folder_remove("d/d"));
}

static weir_err make_and_remove(void *context) {
    (void)context;
    weir_err err = weir_folder_create(weir_test_path("a/b"));
    if (!err) err = weir_file_replace(weir_test_path("a/b/file"), "x", 1);
    return err ? err : weir_folder_remove(weir_test_path("a"));
}

static void remove_fails_cleanly_at_every_allocation_and_operation(void **state) {
    (void)state;
    uint64_t nth = 0;
    weir_test_every_allocation(make_and_remove, NULL);
    do {
        char spec[64];
        assert_ok(weir_folder_create(weir_test_path("a/b")));
        put("a/b/file");
        snprintf(spec, sizeof spec, "any:%d:EIO:once", (int)++nth);
        assert_ok(weir_fault_arm(spec));
        weir_err err = weir_folder_remove(weir_test_path("a"));
        disarm();
        if (weir_fault_seen() >= nth) assert_err(err, WEIR_EIO, weir_test_path("a"));
    } while (weir_fault_seen() >= nth);
    assert_true(nth > 6);
}

static void exists_or_not(void **state) {
    (void)state;
    assert_true(weir_path_exists("/"));
    assert_true(weir_path_exists(weir_test_folder()));
    assert_false(weir_path_exists(weir_test_path("none")));
    assert_false(weir_path_exists(""));
    assert_int_equal(symlink("nowhere", weir_test_path("dangling")), 0);
    assert_false(weir_path_exists(weir_test_path("dangling")));
}

static void a_path_that_fits_and_one_byte_more(void **state) {
    (void)state;
    char path[8];
    assert_ok(weir_path_join(path, sizeof path, "abc", "def"));
    assert_string_equal(path, "abc/def");
    assert_err(weir_path_join(path, sizeof path, "abc", "defg"), WEIR_ELIMIT, "the path abc… is too long");
    assert_ok(weir_path_join(path, sizeof path, "abcdefg", NULL));
    assert_err(weir_path_join(path, sizeof path, "abcdefgh", NULL), WEIR_ELIMIT, "too long");
    assert_err(weir_path_join(path, sizeof path, "", NULL), WEIR_ELIMIT, "too long");
    static const char *const beside[][2] = {
        {"a/b", "a/c"}, {"b", "c"}, {"/b", "/c"}, {"a/b/", "a/c"}, {"../b", "../c"}};
    for (size_t i = 0; i < sizeof beside / sizeof beside[0]; i++) {
        assert_ok(weir_path_beside(path, sizeof path, beside[i][0], "c"));
        assert_string_equal(path, beside[i][1]);
    }
    assert_err(weir_path_beside(path, sizeof path, "abcd/e", "fgh"), WEIR_ELIMIT, "too long");
}

WEIR_TESTS(WEIR_CASE(replace_survives_a_power_cut_at_any_step), WEIR_CASE(rename_and_remove_sync_the_folder),
           WEIR_CASE(each_new_folder_is_synced_into_its_parent), WEIR_CASE(the_folder_of_a_path),
           WEIR_CASE(create_with_parents_and_again), WEIR_CASE(create_with_each_operation_failing),
           WEIR_CASE(list_is_sorted_and_whole), WEIR_CASE(list_passes_the_visitor_s_error_on),
           WEIR_CASE(list_fails_cleanly_at_every_allocation_and_operation), WEIR_CASE(exchange_is_one_step_and_synced),
           WEIR_CASE(an_exchange_is_what_it_says), WEIR_CASE(remove_takes_all_and_follows_no_link),
           WEIR_CASE(remove_follows_no_link_that_is_named), WEIR_CASE(remove_takes_any_relative_name),
           WEIR_CASE(remove_takes_a_name_with_an_ending_at_the_root), WEIR_CASE(remove_refuses_what_a_slip_would_name),
           WEIR_CASE(remove_depth_max_and_one_past_it),
           WEIR_CASE(remove_fails_cleanly_at_every_allocation_and_operation), WEIR_CASE(exists_or_not),
           WEIR_CASE(a_path_that_fits_and_one_byte_more))

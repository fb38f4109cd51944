/* SPDX-License-Identifier: Apache-2.0 */
/* restore_test.c - damaged files come back out of copies of the engine, and out of nothing else. */
#include "fixture.h"

#include <signal.h>
#include <sys/wait.h>

#include <weir/store/base/rng.h>

#include "rocks_checksums.h"

#define RECORDS 3000u
#define FILES   3u

/* In a block of records that is in no cache: of a file that it takes in RocksDB reads the first and the last. */
#define FLIPPED_AT  12000
#define FLIPPED_BIT 1

typedef struct counts {
    uint32_t restored, left;
    weir_engine *mended; /* whose owner looks after it meanwhile, as it does once a second; NULL: nobody does */
    uint32_t asked;      /* before each file that is read: a damaged one, and a copy of it */
    uint32_t stop_at;    /* it stops when it is asked so often; 0: never */
} counts;

static bool goes_on(void *context) {
    counts *c = context;
    if (c->mended) (void)weir_engine_mend(c->mended);
    return ++c->asked != c->stop_at;
}

/* Out of these copies, in their order; b may be NULL. */
static weir_err restore_of(weir_engine *engine, counts *c, const char *a, const char *b) {
    char folders[2][512], aside[512];
    const char *const paths[] = {folders[0], folders[1]};
    const weir_engine_copies copies = {paths, b ? 2 : 1, aside, goes_on, c};
    snprintf(aside, sizeof aside, "%s", weir_test_path("aside"));
    snprintf(folders[0], sizeof folders[0], "%s", weir_test_path(a));
    if (b) snprintf(folders[1], sizeof folders[1], "%s", weir_test_path(b));
    if (!weir_path_exists(aside)) assert_ok(weir_folder_create(aside));
    return weir_engine_restore(engine, &copies, &c->restored, &c->left);
}

static void copy_to(weir_engine *engine, const char *name, bool links) {
    uint64_t shared;
    assert_ok(weir_engine_checkpoint(engine, weir_test_path(name), links, &shared));
    assert_true(links == (shared > 0));
}

/* Three files; those of `copy` are there, too. */
static weir_engine *engine_with_a_copy(bool links) {
    weir_engine *engine = engine_open(true);
    char value[16];
    for (unsigned i = 0; i < FILES; i++) {
        snprintf(value, sizeof value, "value-%u", i);
        assert_ok(write_file(engine, RECORDS, value));
    }
    copy_to(engine, "copy", links);
    return engine;
}

static bool never_waits(void *context, uint64_t bytes) {
    (void)context, (void)bytes;
    return true;
}

/* Everything reads well, now and after another opening. */
static void is_whole(weir_engine *engine) {
    assert_ok(weir_engine_mend(engine));
    assert_ok(weir_engine_health(engine));
    assert_ok(weir_engine_scrub(engine, never_waits, NULL));
    assert_int_equal(count_with(engine, "value-2"), RECORDS);
    weir_engine_close(engine);
    engine = engine_open(false);
    assert_int_equal(count_with(engine, "value-2"), RECORDS);
    weir_engine_close(engine);
}

static void is_still_damaged(weir_engine *engine) {
    assert_err(weir_engine_scrub(engine, never_waits, NULL), WEIR_ECORRUPT, NULL);
    assert_err(weir_engine_mend(engine), WEIR_ECORRUPT, NULL);
}

/* --- what comes back --------------------------------------------------------------------------------------------- */

/* Any bit of any of them: blocks, index, filter, properties, footer. */
static void bits_of_any_file_come_back(void **state) {
    (void)state;
    weir_rng rng = weir_rng_stream(weir_test_seed(), 0, 0);
    weir_engine *engine = engine_with_a_copy(false);
    files found;
    files_find(&found, "engine", ".sst");
    assert_int_equal(found.count, FILES);
    for (uint64_t round = weir_test_rounds(20); round > 0; round--) {
        bool damaged[FILES] = {false};
        counts c = {0};
        for (uint64_t flips = 1 + weir_rng_below(&rng, 5); flips > 0; flips--) {
            size_t i = weir_rng_below(&rng, FILES);
            damaged[i] = true;
            flip(found.paths[i], (long)weir_rng_below(&rng, (uint64_t)size_of(found.paths[i])), (int)(flips % 8));
        }
        assert_ok(restore_of(engine, &c, "copy", NULL));
        assert_int_equal(c.left, 0);
        assert_in_range(c.restored, 0, (uint32_t)(damaged[0] + damaged[1] + damaged[2])); /* two flips may be none */
        assert_ok(weir_engine_mend(engine));
        assert_ok(weir_engine_scrub(engine, never_waits, NULL));
    }
    is_whole(engine);
}

static void a_lost_file_comes_back(void **state) {
    (void)state;
    weir_engine *engine = engine_with_a_copy(false);
    counts c = {0};
    files found;
    files_find(&found, "engine", ".sst");
    assert_int_equal(remove(found.paths[1]), 0);
    assert_err(weir_engine_scrub(engine, never_waits, NULL), WEIR_ECORRUPT, "removed");
    assert_ok(restore_of(engine, &c, "copy", NULL));
    assert_int_equal(c.restored, 1);
    assert_int_equal(c.left, 0);
    is_whole(engine);
}

static weir_err read_all(weir_engine *engine) {
    weir_engine_cursor *cursor;
    weir_err err = weir_engine_cursor_open(engine, WEIR_ENGINE_PROBE, &cursor);
    if (err) return err;
    for (weir_engine_cursor_seek(cursor, "", 0); weir_engine_cursor_valid(cursor);)
        weir_engine_cursor_next(cursor);
    err = weir_engine_cursor_err(cursor);
    weir_engine_cursor_close(cursor);
    return err;
}

/* Whoever has the damaged file open meets the damage until the engine is opened again, which health says. */
static void the_engine_is_to_be_opened_again(void **state) {
    (void)state;
    weir_engine *engine = engine_with_a_copy(false);
    counts c = {0};
    files found;
    files_find(&found, "engine", ".sst");
    assert_int_equal(count_with(engine, "value-2"), RECORDS); /* its files are open */
    flip(found.paths[0], FLIPPED_AT, FLIPPED_BIT);
    assert_err(read_all(engine), WEIR_ECORRUPT, NULL);
    assert_ok(restore_of(engine, &c, "copy", NULL));
    assert_int_equal(c.restored, 1);
    assert_err(weir_engine_health(engine), WEIR_ECORRUPT, NULL);
    assert_err(read_all(engine), WEIR_ECORRUPT, NULL);
    assert_ok(weir_engine_mend(engine));
    assert_ok(read_all(engine));
    is_whole(engine);
}

/* The owner finds the first file whole before the second is, and opens the engine with that one damaged. */
static void an_opening_in_the_middle_is_not_the_last(void **state) {
    (void)state;
    weir_engine *engine = engine_with_a_copy(false);
    counts c = {.mended = engine};
    files found;
    files_find(&found, "engine", ".sst");
    for (size_t i = 0; i < found.count; i++)
        flip(found.paths[i], FLIPPED_AT, FLIPPED_BIT);
    assert_ok(restore_of(engine, &c, "copy", NULL));
    assert_int_equal(c.restored, FILES);
    assert_int_equal(c.left, 0);
    assert_err(weir_engine_health(engine), WEIR_ECORRUPT, NULL);
    is_whole(engine);
}

/* That files came back once says nothing of what is damaged later. */
static void later_damage_is_damage(void **state) {
    (void)state;
    weir_engine *engine = engine_with_a_copy(false);
    counts c = {.mended = engine};
    files found;
    files_find(&found, "engine", ".sst");
    flip(found.paths[0], FLIPPED_AT, FLIPPED_BIT);
    assert_ok(restore_of(engine, &c, "copy", NULL));
    assert_ok(weir_engine_mend(engine));
    assert_ok(weir_engine_health(engine));
    flip(found.paths[2], FLIPPED_AT, FLIPPED_BIT);
    is_still_damaged(engine);
    c = (counts){0};
    assert_ok(restore_of(engine, &c, "copy", NULL));
    flip(found.paths[1], FLIPPED_AT, FLIPPED_BIT); /* and before it was opened again */
    is_still_damaged(engine);
    c = (counts){0};
    assert_ok(restore_of(engine, &c, "copy", NULL));
    is_whole(engine);
}

/* The first copy is damaged, the second is not. */
static void a_damaged_copy_is_passed_over(void **state) {
    (void)state;
    weir_engine *engine = engine_with_a_copy(false);
    counts c = {0};
    files here, there;
    copy_to(engine, "other", false);
    files_find(&here, "engine", ".sst");
    files_find(&there, "copy", ".sst");
    flip(here.paths[0], 30, 1);
    flip(there.paths[0], 40, 1);
    assert_ok(restore_of(engine, &c, "copy", "other"));
    assert_int_equal(c.restored, 1);
    assert_int_equal(c.left, 0);
    is_whole(engine);
}

/* --- what does not ----------------------------------------------------------------------------------------------- */

/* A copy by links has the same damage; one that is damaged itself, or lacks the file, or has another of that name, too.
 */
static void what_no_copy_has_is_left(void **state) {
    (void)state;
    weir_engine *engine = engine_with_a_copy(true), *other;
    counts c = {0};
    files found;
    files_find(&found, "engine", ".sst");
    flip(found.paths[0], 30, 1);
    assert_ok(restore_of(engine, &c, "copy", "none"));
    assert_int_equal(c.restored, 0);
    assert_int_equal(c.left, 1);
    other = engine_open_at("other", true);
    for (unsigned i = 0; i < FILES; i++)
        assert_ok(write_file(other, RECORDS, "value-9"));
    weir_engine_close(other);
    files_find(&found, "other", strrchr(found.paths[0], '/') + 1); /* it has the name */
    assert_ok(restore_of(engine, &c, "other", NULL));
    assert_int_equal(c.restored, 0);
    assert_int_equal(c.left, 1);
    is_still_damaged(engine);
    weir_engine_close(engine);
}

/* What names the files is no sorted file; it counts as left. */
static void a_damaged_manifest_is_left(void **state) {
    (void)state;
    weir_engine *engine = engine_with_a_copy(false);
    counts c = {0};
    files found;
    files_find(&found, "engine", "CURRENT");
    flip(found.paths[0], 3, 1);
    assert_ok(restore_of(engine, &c, "copy", NULL));
    assert_int_equal(c.restored, 0);
    assert_int_equal(c.left, 1);
    weir_engine_close(engine);
}

static void a_stop_ends_it(void **state) {
    (void)state;
    weir_engine *engine = engine_with_a_copy(false);
    counts c = {0};
    files found;
    files_find(&found, "engine", ".sst");
    for (size_t i = 0; i < found.count; i++)
        flip(found.paths[i], FLIPPED_AT, FLIPPED_BIT);
    assert_ok(restore_of(engine, &c, "none", NULL));
    assert_int_equal(c.left, FILES);
    c = (counts){.stop_at = 3}; /* after one of them and its copy */
    assert_err(restore_of(engine, &c, "copy", NULL), WEIR_ECLOSED, NULL);
    assert_int_equal(c.restored, 1);
    c = (counts){0};
    assert_ok(restore_of(engine, &c, "copy", NULL)); /* the next one goes on */
    assert_int_equal(c.left, 0);
    is_whole(engine);
}

/* A copy that goes away, or cannot be read, is not the last one. */
static void a_copy_that_fails_is_passed_over(void **state) {
    (void)state;
    weir_engine *engine = engine_with_a_copy(false);
    files found;
    copy_to(engine, "other", false);
    files_find(&found, "engine", ".sst");
    static const char *const faults[] = {"open:1:EIO:/copy/", "read:1:EIO:/copy/", "open:1:ENOENT:/copy/"};
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        counts c = {0};
        flip(found.paths[1], FLIPPED_AT, FLIPPED_BIT);
        assert_ok(weir_fault_arm(faults[i]));
        assert_ok(restore_of(engine, &c, "copy", "other"));
        assert_ok(weir_fault_arm(NULL));
        assert_int_equal(c.restored, 1);
        assert_ok(weir_engine_mend(engine));
    }
    is_whole(engine);
}

/* Another copy would find no room either: that is said, and nothing is left aside. */
static void a_full_disk_is_said(void **state) {
    (void)state;
    weir_engine *engine = engine_with_a_copy(false);
    counts c = {0};
    files found;
    files_find(&found, "engine", ".sst");
    flip(found.paths[1], FLIPPED_AT, FLIPPED_BIT);
    assert_ok(weir_fault_arm("write:1:ENOSPC:/aside/"));
    assert_err(restore_of(engine, &c, "copy", "copy"), WEIR_EFULL, "space");
    assert_ok(weir_fault_arm(NULL));
    is_still_damaged(engine);
    assert_ok(restore_of(engine, &c, "copy", NULL));
    assert_int_equal(c.restored, 1);
    is_whole(engine);
}

/* Each operation and each call of RocksDB once: what is there is the damaged file or the whole one, and a second try
 * brings it back. */
static void each_failure_leaves_one_of_both(void **state) {
    (void)state;
    weir_engine *engine = engine_with_a_copy(false);
    files found;
    uint64_t nth = 0, failures = 0;
    files_find(&found, "engine", ".sst");
    for (bool met = true; met;) {
        char spec[64];
        counts c = {0};
        nth++;
        flip(found.paths[1], 30, 1);
        snprintf(spec, sizeof spec, "any:%d:EIO:once", (int)nth);
        assert_ok(weir_fault_arm(spec));
        weir_err err = restore_of(engine, &c, "copy", NULL);
        met = weir_fault_seen() >= nth;
        assert_ok(weir_fault_arm(NULL));
        failures += err || c.left;
        if (err || c.left) assert_ok(restore_of(engine, &c, "copy", NULL));
        assert_int_equal(c.left, 0);
        assert_ok(weir_engine_mend(engine));
        assert_ok(weir_engine_scrub(engine, never_waits, NULL));
    }
    printf("%llu operations, %llu failures\n", (unsigned long long)nth, (unsigned long long)failures);
    assert_true(failures > 5);
    is_whole(engine);
}

static void is_killed_at(const char *point) {
    files found;
    int status;
    weir_engine_close(engine_with_a_copy(false));
    files_find(&found, "engine", ".sst");
    flip(found.paths[1], FLIPPED_AT, FLIPPED_BIT);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        counts c = {0};
        weir_engine *engine = engine_open(false);
        if (weir_fault_kill_arm(point)) _exit(1);
        (void)restore_of(engine, &c, "copy", NULL);
        _exit(2);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void killed_with_the_copy_on_its_way(void **state) {
    (void)state;
    counts c = {0};
    is_killed_at("engine.restoring:1");
    weir_engine *engine = engine_open(false);
    is_still_damaged(engine);
    assert_ok(restore_of(engine, &c, "copy", NULL));
    assert_int_equal(c.restored, 1);
    is_whole(engine);
}

static void killed_when_it_is_back(void **state) {
    (void)state;
    is_killed_at("engine.restored:1");
    is_whole(engine_open(false));
}

/* What RocksDB's own generator says of every file is what ours has told it: else all stores of before would look
 * damaged. */
static void the_checksums_are_those_of_rocksdb(void **state) {
    (void)state;
    weir_engine *engine = engine_with_a_copy(false);
    assert_ok(weir_engine_compact(engine));
    weir_engine_close(engine);
    assert_int_equal(rocks_checksums(weir_test_path("engine")), 1);
    assert_int_equal(rocks_checksums(weir_test_path("copy")), FILES);
}

int main(int argc, char **argv) {
    static const weir_test_case cases[] = {WEIR_CASE(bits_of_any_file_come_back),
                                           WEIR_CASE(a_lost_file_comes_back),
                                           WEIR_CASE(the_engine_is_to_be_opened_again),
                                           WEIR_CASE(an_opening_in_the_middle_is_not_the_last),
                                           WEIR_CASE(later_damage_is_damage),
                                           WEIR_CASE(a_damaged_copy_is_passed_over),
                                           WEIR_CASE(what_no_copy_has_is_left),
                                           WEIR_CASE(a_damaged_manifest_is_left),
                                           WEIR_CASE(a_stop_ends_it),
                                           WEIR_CASE(a_copy_that_fails_is_passed_over),
                                           WEIR_CASE(a_full_disk_is_said),
                                           WEIR_CASE(each_failure_leaves_one_of_both),
                                           WEIR_CASE(killed_with_the_copy_on_its_way),
                                           WEIR_CASE(killed_when_it_is_back),
                                           WEIR_CASE(the_checksums_are_those_of_rocksdb)};
    return weir_test_main(cases, sizeof cases / sizeof cases[0], argc, argv);
}

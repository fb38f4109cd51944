/* SPDX-License-Identifier: Apache-2.0 */
/* restore_test.c - damaged files come back out of copies of the engine, and out of nothing else. */
#include "fixture.h"

#include <signal.h>
#include <sys/wait.h>

#include <weir/base/rng.h>

#define RECORDS 3000u
#define FILES   3u

typedef struct counts {
    uint32_t restored, left, asked, stop_at; /* stop_at 0: never */
} counts;

static bool goes_on(void *context) {
    counts *c = context;
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

/* Readers of the damaged file go on, and meet the damage until it is opened again. */
static void who_reads_meanwhile_reads_on(void **state) {
    (void)state;
    weir_engine *engine = engine_with_a_copy(false);
    weir_engine_cursor *cursor;
    counts c = {0};
    files found;
    files_find(&found, "engine", ".sst");
    assert_ok(weir_engine_cursor_open(engine, WEIR_ENGINE_SCAN, &cursor));
    weir_engine_cursor_seek(cursor, "", 0);
    flip(found.paths[0], size_of(found.paths[0]) - 1, 0);
    assert_ok(restore_of(engine, &c, "copy", NULL));
    assert_int_equal(c.restored, 1);
    uint64_t left = 0;
    for (; weir_engine_cursor_valid(cursor); weir_engine_cursor_next(cursor))
        left++;
    assert_ok(weir_engine_cursor_err(cursor));
    assert_int_equal(left, RECORDS);
    weir_engine_cursor_close(cursor);
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
    counts c = {.stop_at = 2};
    files found;
    files_find(&found, "engine", ".sst");
    for (size_t i = 0; i < found.count; i++)
        flip(found.paths[i], 30, 1);
    assert_err(restore_of(engine, &c, "copy", NULL), WEIR_ECLOSED, NULL);
    assert_int_equal(c.restored, 1);
    c = (counts){0};
    assert_ok(restore_of(engine, &c, "copy", NULL)); /* the next one goes on */
    assert_int_equal(c.restored, FILES - 1);
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

/* With the copy on its way, or in its place: another process opens it, and it is whole or damaged as before. */
static void killed_when_it_is_back(void **state) {
    (void)state;
    files found;
    weir_engine_close(engine_with_a_copy(false));
    files_find(&found, "engine", ".sst");
    flip(found.paths[1], 30, 1);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        counts c = {0};
        weir_engine *engine = engine_open(false);
        if (weir_fault_kill_arm("engine.restored:1")) _exit(1);
        (void)restore_of(engine, &c, "copy", NULL);
        _exit(2);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    is_whole(engine_open(false));
}

int main(int argc, char **argv) {
    static const weir_test_case cases[] = {WEIR_CASE(bits_of_any_file_come_back),
                                           WEIR_CASE(a_lost_file_comes_back),
                                           WEIR_CASE(who_reads_meanwhile_reads_on),
                                           WEIR_CASE(a_damaged_copy_is_passed_over),
                                           WEIR_CASE(what_no_copy_has_is_left),
                                           WEIR_CASE(a_damaged_manifest_is_left),
                                           WEIR_CASE(a_stop_ends_it),
                                           WEIR_CASE(each_failure_leaves_one_of_both),
                                           WEIR_CASE(killed_when_it_is_back)};
    return weir_test_main(cases, sizeof cases / sizeof cases[0], argc, argv);
}

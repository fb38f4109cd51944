/* SPDX-License-Identifier: Apache-2.0 */
/* replace_test.c - an engine takes the place of another, while that is read, or does not. */
#include "fixture.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>

#define RECORDS 2000u
#define READERS 3u

/* One beside the other, closed; its values are all this one. */
static void make_beside(const char *value) {
    weir_engine *beside = engine_open_at("beside", true);
    assert_ok(write_file(beside, RECORDS, value));
    weir_engine_close(beside);
}

static weir_engine *make_both(void) {
    weir_engine *engine = engine_open(true);
    assert_ok(write_file(engine, RECORDS, "old"));
    make_beside("new");
    return engine;
}

static weir_err replace(weir_engine *engine) {
    return weir_engine_replace(engine, weir_test_path("beside"));
}

static void what_it_was_lies_beside_it_then(void **state) {
    (void)state;
    weir_engine *engine = make_both();
    assert_ok(replace(engine));
    assert_int_equal(count_with(engine, "new"), RECORDS);
    assert_ok(weir_engine_health(engine));
    assert_ok(write_file(engine, RECORDS, "newer")); /* it is written and compacted like any */
    assert_ok(weir_engine_compact(engine));
    weir_engine_close(engine);
    engine = engine_open(false);
    assert_int_equal(count_with(engine, "newer"), RECORDS);
    weir_engine_close(engine);
    engine = engine_open_at("beside", false);
    assert_int_equal(count_with(engine, "old"), RECORDS);
    weir_engine_close(engine);
}

/* --- readers ------------------------------------------------------------------------------------------------------ */

static atomic_bool over;
static atomic_uint scans;

/* Beside one that is held, and of the same database: it must not wait for who waits until that is closed. */
static bool reads_the_same_beside(const weir_engine_cursor *held) {
    weir_engine_cursor *cursor;
    size_t length, beside_length;
    const char *key = weir_engine_cursor_key(held, &length), *value;
    if (weir_engine_cursor_open_beside(held, &cursor)) return false;
    weir_engine_cursor_seek(cursor, key, length);
    bool same = weir_engine_cursor_valid(cursor);
    value = same ? weir_engine_cursor_value(cursor, &beside_length) : NULL;
    same = same && memcmp(value, weir_engine_cursor_value(held, &length), 3) == 0 && length == beside_length;
    weir_engine_cursor_close(cursor);
    return same;
}

/* The value of all records, or of none. */
static void *scan_over_and_over(void *context) {
    weir_engine *engine = context;
    while (!atomic_load(&over)) {
        weir_engine_cursor *cursor;
        weir_buf value = {0};
        char key[32];
        bool found;
        if (engine_value(engine, key, key_of(7, key), &value, &found) || !found) return engine;
        weir_buf_free(&value);
        if (weir_engine_cursor_open(engine, WEIR_ENGINE_SCAN, &cursor)) return engine;
        char first = 0;
        uint64_t count = 0;
        for (weir_engine_cursor_seek(cursor, "", 0); weir_engine_cursor_valid(cursor);
             weir_engine_cursor_next(cursor)) {
            size_t length;
            const char *text = weir_engine_cursor_value(cursor, &length);
            if (count++ == 0) first = text[0];
            if (length != 3 || text[0] != first) return engine;
            if (count % (RECORDS / 4) == 0 && !reads_the_same_beside(cursor)) return engine;
        }
        bool whole = !weir_engine_cursor_err(cursor) && count == RECORDS;
        weir_engine_cursor_close(cursor);
        if (!whole) return engine;
        atomic_fetch_add(&scans, 1);
    }
    return NULL;
}

static void readers_meet_one_or_the_other(void **state) {
    (void)state;
    weir_engine *engine = make_both();
    pthread_t readers[READERS];
    for (size_t i = 0; i < READERS; i++)
        assert_int_equal(pthread_create(&readers[i], NULL, scan_over_and_over, engine), 0);
    for (uint64_t i = 0; i < weir_test_rounds(40); i++) {
        unsigned before = atomic_load(&scans);
        weir_err err;
        do /* on a slow machine a scan may last longer than the door is shut for */
            err = replace(engine);
        while (weir_err_is(err, WEIR_EBUSY));
        assert_ok(err); /* the other one is beside it now */
        while (atomic_load(&scans) < before + READERS)
            usleep(100);
    }
    atomic_store(&over, true);
    for (size_t i = 0; i < READERS; i++) {
        void *failed;
        pthread_join(readers[i], &failed);
        assert_null(failed);
    }
    weir_engine_close(engine);
}

static void who_stays_inside_has_it_put_off(void **state) {
    (void)state;
    weir_engine *engine = make_both();
    weir_engine_cursor *cursor;
    assert_ok(weir_engine_cursor_open(engine, WEIR_ENGINE_SCAN, &cursor));
    weir_engine_cursor_seek(cursor, "", 0);
    assert_err(replace(engine), WEIR_EBUSY, "while it is read");
    assert_ok(weir_engine_health(engine));
    assert_int_equal(count_with(engine, "old"), RECORDS);
    uint64_t left = 0;
    for (; weir_engine_cursor_valid(cursor); weir_engine_cursor_next(cursor))
        left++;
    assert_int_equal(left, RECORDS);
    weir_engine_cursor_close(cursor);
    assert_ok(replace(engine));
    assert_int_equal(count_with(engine, "new"), RECORDS);
    weir_engine_close(engine);
}

/* --- what fails --------------------------------------------------------------------------------------------------- */

static void is_as_it_was(weir_engine *engine) {
    files found;
    assert_int_equal(count_with(engine, "old"), RECORDS);
    files_find(&found, "beside", "CURRENT");
    assert_ok(weir_engine_health(engine));
}

/* More files than there may be runs of them. */
static void merges_by_itself(weir_engine *engine) {
    weir_engine_stats stats = {0};
    for (int i = 0; i < 32; i++)
        assert_ok(write_file(engine, 50, "old"));
    for (int i = 0; i < 1000 && !stats.compacted_bytes; i++) {
        usleep(10000);
        weir_engine_stats_get(engine, &stats);
    }
    assert_true(stats.compacted_bytes > 0);
}

static void one_that_does_not_open_stays_beside(void **state) {
    (void)state;
    weir_engine *engine = make_both();
    files found;
    files_find(&found, "beside", "MANIFEST-");
    flip(found.paths[0], size_of(found.paths[0]) / 2, 3);
    assert_err(replace(engine), WEIR_ECORRUPT, "beside");
    is_as_it_was(engine);
    flip(found.paths[0], size_of(found.paths[0]) / 2, 3);
    assert_err(weir_engine_replace(engine, weir_test_path("none")), WEIR_EIO, "none");
    is_as_it_was(engine);
    assert_ok(replace(engine));
    assert_int_equal(count_with(engine, "new"), RECORDS);
    weir_engine_close(engine);
}

/* It would not open a second time: it is not closed for one that does not open either. */
static void the_damaged_one_is_read_as_long_as_there_is_no_other(void **state) {
    (void)state;
    weir_engine *engine = make_both();
    files here, beside;
    files_find(&here, "engine", "MANIFEST-");
    files_find(&beside, "beside", "MANIFEST-");
    flip(here.paths[0], size_of(here.paths[0]) / 2, 3);
    flip(beside.paths[0], size_of(beside.paths[0]) / 2, 3);
    assert_err(replace(engine), WEIR_ECORRUPT, "beside");
    assert_int_equal(count_with(engine, "old"), RECORDS);
    flip(beside.paths[0], size_of(beside.paths[0]) / 2, 3);
    assert_ok(replace(engine));
    assert_int_equal(count_with(engine, "new"), RECORDS);
    weir_engine_close(engine);
}

static void a_file_system_that_cannot(void **state) {
    (void)state;
    weir_engine *engine = make_both();
    assert_ok(weir_fault_arm("rename:1:EINVAL"));
    assert_err(replace(engine), WEIR_EUNAVAILABLE, "cannot exchange");
    assert_ok(weir_fault_arm(NULL));
    is_as_it_was(engine);
    merges_by_itself(engine);
    assert_ok(replace(engine));
    weir_engine_close(engine);
}

/* Each operation and each call of RocksDB, once and from then on: it is the one or the other, and says which; it can be
 * written to. */
static void each_failure_leaves_one_of_both(void **state) {
    (void)state;
    static const char *const how_often[] = {":once", ""};
    weir_engine *engine = make_both();
    uint64_t failures = 0;
    const char *is = "old", *other = "new";
    for (size_t i = 0; i < 2; i++) {
        uint64_t nth = 0;
        for (bool met = true; met;) {
            char spec[64];
            nth++;
            snprintf(spec, sizeof spec, "any:%d:EIO%s", (int)nth, how_often[i]);
            assert_ok(weir_fault_arm(spec));
            weir_err err = replace(engine);
            met = weir_fault_seen() >= nth;
            assert_ok(weir_fault_arm(NULL));
            if (err) assert_err(err, WEIR_EIO, NULL);
            failures += err != WEIR_OK;
            if (!err) {
                const char *was = is;
                is = other;
                other = was;
            }
            assert_ok(weir_engine_mend(engine));
            assert_int_equal(count_with(engine, is), RECORDS);
            assert_ok(write_file(engine, RECORDS, is));
        }
        printf("%llu points\n", (unsigned long long)nth - 1);
    }
    assert_true(failures >= 8);
    weir_engine_close(engine);
}

static void a_kill_leaves_one_whole(void **state) {
    (void)state;
    int status;
    if (strcmp(weir_test_sanitizer(), "thread") == 0)
        weir_test_skip("the thread sanitizer does not follow a fork of a process with threads");
    weir_engine_close(make_both());
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        weir_engine *engine = engine_open(false);
        if (weir_fault_kill_arm("engine.replaced:1")) _exit(1);
        _exit(replace(engine) ? 2 : 3);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    weir_engine *engine = engine_open(false);
    assert_int_equal(count_with(engine, "new"), RECORDS);
    weir_engine_close(engine);
    engine = engine_open_at("beside", false);
    assert_int_equal(count_with(engine, "old"), RECORDS);
    weir_engine_close(engine);
}

WEIR_TESTS(WEIR_CASE(what_it_was_lies_beside_it_then), WEIR_CASE(readers_meet_one_or_the_other),
           WEIR_CASE(who_stays_inside_has_it_put_off), WEIR_CASE(one_that_does_not_open_stays_beside),
           WEIR_CASE(the_damaged_one_is_read_as_long_as_there_is_no_other), WEIR_CASE(a_file_system_that_cannot),
           WEIR_CASE(each_failure_leaves_one_of_both), WEIR_CASE(a_kill_leaves_one_whole))

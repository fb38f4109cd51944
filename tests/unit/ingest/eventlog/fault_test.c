/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fault_test.c - EVENTLOG-L4, and every operation and every allocation failing once.
 *
 * One workload (create, append, sync, roll, reopen, retain, read) keeps its own note of what it was told; after any
 * failure the log must reopen with all of that, in order, and without a hole.
 */
#include "eventlog_private.h"

#include <weir/store/base/fault.h>

#include "eventlog_fixture.h"

static void l4_poisoned_after_a_write_error(void **state) {
    (void)state;
    fixture_in_memory();
    weir_eventlog *log = fixture_open(weir_test_folder(), 2, 0);
    const weir_record record = {0};
    uint64_t offset;
    fixture_append(log, 0, 0, 5);
    fixture_append(log, 1, 0, 2);
    assert_ok(weir_eventlog_sync(log));
    fixture_append(log, 0, 5, 5);
    fixture_append(log, 1, 2, 2);
    assert_ok(weir_fault_arm("write:1:ENOSPC:once:/00000/"));
    assert_err(weir_eventlog_sync(log), WEIR_EFULL, "free some space");
    assert_ok(weir_fault_arm(NULL));

    assert_err(weir_eventlog_append(log, 0, &record, 1, &offset), WEIR_EPOISONED, "No space left");
    assert_err(weir_eventlog_sync(log), WEIR_EPOISONED, "partition 0 of topic t stopped at offset 5");
    assert_int_equal(fixture_check(log, 0, 0, 0), 5);
    fixture_append(log, 1, 4, 2); /* the other partition is as it was */
    assert_ok(weir_eventlog_sync_partition(log, 1));
    assert_int_equal(fixture_check(log, 1, 0, 0), 6);
    assert_err(weir_eventlog_close(log), WEIR_EPOISONED, NULL);

    log = fixture_open(weir_test_folder(), 2, 0);
    assert_int_equal(fixture_check(log, 0, 0, 0), 5);
    assert_int_equal(fixture_check(log, 1, 0, 0), 6);
    fixture_append(log, 0, 5, 5);
    assert_ok(weir_eventlog_close(log));
}

static void l4_poisoned_after_a_sync_error(void **state) {
    (void)state;
    fixture_in_memory();
    weir_eventlog *log = fixture_open(weir_test_folder(), 1, 0);
    fixture_append(log, 0, 0, 5);
    assert_ok(weir_eventlog_sync(log));
    fixture_append(log, 0, 5, 5);
    assert_ok(weir_fault_arm("sync:1:EIO:once"));
    assert_err(weir_eventlog_sync(log), WEIR_EIO, "cannot sync");
    assert_ok(weir_fault_arm(NULL));
    assert_err(weir_eventlog_sync(log), WEIR_EPOISONED, "cannot sync"); /* a second sync would lie */
    assert_int_equal(fixture_stats(log, 0).offset_durable, 5);
    assert_int_equal(fixture_check(log, 0, 0, 0), 5);
    assert_err(weir_eventlog_close(log), WEIR_EPOISONED, NULL);
    log = fixture_open(weir_test_folder(), 1, 0);
    assert_int_equal(fixture_check(log, 0, 0, 0), 10); /* whole in the file, so kept, and now durable */
    assert_ok(weir_eventlog_close(log));
}

/* A group that is durable but whose mark could not be written is not acknowledged. */
static void l4_poisoned_after_a_mark_error(void **state) {
    (void)state;
    fixture_in_memory();
    weir_eventlog *log = fixture_open(weir_test_folder(), 2, 0);
    const weir_record record = {0};
    uint64_t offset;
    fixture_append(log, 0, 0, 5);
    assert_ok(weir_fault_arm("write:1:ENOSPC:once:/durable"));
    assert_err(weir_eventlog_sync(log), WEIR_EFULL, "t/durable");
    assert_ok(weir_fault_arm(NULL));
    assert_int_equal(fixture_stats(log, 0).offset_durable, 0);
    fixture_append(log, 1, 0, 5);
    assert_err(weir_eventlog_sync_partition(log, 1), WEIR_EPOISONED, "t/durable could not be written earlier");
    assert_err(weir_eventlog_append(log, 1, &record, 1, &offset), WEIR_EPOISONED, "t/durable");
    assert_err(weir_eventlog_close(log), WEIR_EPOISONED, NULL);
    log = fixture_open(weir_test_folder(), 2, 0);
    assert_int_equal(fixture_check(log, 0, 0, 0), 5);
    assert_ok(weir_eventlog_close(log));
}

static void l4_a_short_write_leaves_no_hole(void **state) {
    (void)state;
    fixture_in_memory();
    weir_eventlog *log = fixture_open(weir_test_folder(), 1, 0);
    fixture_append(log, 0, 0, 5);
    assert_ok(weir_eventlog_sync(log));
    fixture_append(log, 0, 5, 50);
    assert_ok(weir_fault_arm("write:1:short:/00000/"));
    assert_err(weir_eventlog_sync(log), WEIR_EFULL, NULL);
    assert_ok(weir_fault_arm(NULL));
    assert_err(weir_eventlog_close(log), WEIR_EPOISONED, NULL);
    log = fixture_open(weir_test_folder(), 1, 0);
    uint64_t records = fixture_check(log, 0, 0, 0);
    assert_in_range(records, 6, 54);
    assert_true(fixture_stats(log, 0).tail_cut_bytes > 0);
    fixture_append(log, 0, records, 5);
    assert_ok(weir_eventlog_close(log));
}

static void writes_in_parts_are_continued(void **state) {
    (void)state;
    fixture_in_memory();
    assert_ok(weir_fault_arm("write:1:part"));
    weir_eventlog *log = fixture_open(weir_test_folder(), 1, WEIR_EVENTLOG_SEGMENT_MIN);
    fixture_append(log, 0, 0, 200);
    assert_ok(weir_eventlog_close(log));
    assert_ok(weir_fault_arm("read:1:part"));
    log = fixture_open(weir_test_folder(), 1, WEIR_EVENTLOG_SEGMENT_MIN);
    assert_int_equal(fixture_check(log, 0, 0, 0), 200);
    assert_ok(weir_eventlog_close(log));
    assert_ok(weir_fault_arm(NULL));
}

/* A buffer that is full while the disk fails: the append that wrote it has appended, and who comes after it is told. */
static void l4_an_append_that_must_write_is_told(void **state) {
    (void)state;
    fixture_in_memory();
    static char value[1u << 20];
    weir_eventlog *log = fixture_open(weir_test_folder(), 1, 0);
    const weir_record record = {.value = value, .value_length = sizeof value};
    uint64_t offset;
    fixture_append(log, 0, 0, 1);
    assert_ok(weir_eventlog_sync(log));
    assert_ok(weir_fault_arm("write:1:EIO"));
    assert_ok(weir_eventlog_append(log, 0, &record, 1, &offset));
    assert_int_equal(offset, 1);
    assert_err(weir_eventlog_append(log, 0, &record, 1, &offset), WEIR_EPOISONED, "cannot write");
    assert_int_equal(offset, 0);
    assert_err(weir_eventlog_sync(log), WEIR_EPOISONED, "cannot write");
    assert_ok(weir_fault_arm(NULL));
    assert_err(weir_eventlog_close(log), WEIR_EPOISONED, NULL);
    log = fixture_open(weir_test_folder(), 1, 0);
    assert_int_equal(fixture_stats(log, 0).offset_end, 1);
    assert_ok(weir_eventlog_close(log));
}

static void full_disk_then_space_again(void **state) {
    (void)state;
    fixture_in_memory();
    weir_eventlog *log = fixture_open(weir_test_folder(), 1, WEIR_EVENTLOG_SEGMENT_MIN);
    uint64_t acknowledged = 0;
    for (unsigned fills = 0; fills < 40; fills++) {
        char spec[64];
        snprintf(spec, sizeof spec, "write:%u:ENOSPC:/t/", fills + 1);
        assert_ok(weir_fault_arm(spec));
        for (;;) {
            if (fixture_try_append(log, 0, acknowledged, 7, 0) || weir_eventlog_sync(log)) break;
            acknowledged += 7;
        }
        assert_true(weir_eventlog_close(log) != WEIR_OK);
        assert_ok(weir_fault_arm(NULL));
        log = fixture_open(weir_test_folder(), 1, WEIR_EVENTLOG_SEGMENT_MIN);
        uint64_t records = fixture_check(log, 0, 0, 0);
        assert_true(records >= acknowledged);
        acknowledged = records;
    }
    assert_ok(weir_eventlog_close(log));
}

/* --- every operation failing once ----------------------------------------------------------------------------- */

static weir_clock *manual;

typedef struct workload {
    const char *folder;
    uint64_t acknowledged; /* what a sync has said */
    uint64_t removed;      /* begin, as retain has said it */
} workload;

static weir_err workload_write(workload *w, weir_eventlog *log) {
    weir_eventlog_partition_stats stats;
    weir_err err = weir_eventlog_stats_get(log, 0, &stats);
    uint64_t next = stats.offset_end;
    for (unsigned i = 0; !err && i < 4; i++) {
        err = fixture_try_append(log, 0, next, 15, 0);
        if (!err) err = weir_eventlog_sync(log);
        if (err) break;
        next += 15;
        w->acknowledged = next;
    }
    return err;
}

static weir_err workload_read(weir_eventlog *log) {
    weir_eventlog_reader *reader = NULL;
    weir_eventlog_partition_stats stats;
    weir_record records[32];
    size_t count = 1;
    weir_err err = weir_eventlog_stats_get(log, 0, &stats);
    if (!err) err = weir_eventlog_reader_open(log, 0, stats.offset_begin, &reader);
    while (!err && count)
        err = weir_eventlog_reader_next(reader, records, 32, &count);
    weir_eventlog_reader_close(reader);
    return err;
}

static weir_err count_damage(void *context, weir_err damage) {
    (void)damage;
    (*(unsigned *)context)++;
    return WEIR_OK;
}

static weir_err workload_session(workload *w, bool read_only) {
    weir_eventlog *log = NULL;
    weir_eventlog_verify_stats verified;
    uint64_t removed;
    unsigned damages = 0;
    const weir_eventlog_opts opts = {
        .partitions = read_only ? 0 : 1,
        .segment_bytes = WEIR_EVENTLOG_SEGMENT_MIN,
        .retain_us = 70,
        .read_only = read_only,
        .clock = manual,
    };
    weir_err err = weir_eventlog_open(w->folder, "t", &opts, &log);
    if (err) return err;
    if (!read_only) err = workload_write(w, log);
    if (!err) err = workload_read(log);
    if (!err && !read_only) err = weir_eventlog_retain(log, &removed);
    weir_err_keep(&err, weir_eventlog_close(log));
    if (!err) err = weir_eventlog_verify(w->folder, "t", count_damage, &damages, &verified);
    assert_int_equal(damages, 0);
    return err;
}

static weir_err workload_run(workload *w) {
    weir_err err = WEIR_OK;
    for (unsigned session = 0; !err && session < 3; session++)
        err = workload_session(w, false);
    return err ? err : workload_session(w, true);
}

static void workload_check(const workload *w) {
    weir_eventlog *log = fixture_open(w->folder, 1, WEIR_EVENTLOG_SEGMENT_MIN);
    uint64_t begin = fixture_stats(log, 0).offset_begin;
    uint64_t end = fixture_check(log, 0, begin, 0);
    assert_true(end >= w->acknowledged);
    assert_true(end <= w->acknowledged + 15);
    fixture_append(log, 0, end, 3);
    assert_ok(weir_eventlog_close(log));
}

static void fail_every(const char *op, const char *how) {
    char spec[64], name[64];
    assert_ok(weir_clock_manual_open(150, &manual));
    for (unsigned nth = 1;; nth++) {
        snprintf(name, sizeof name, "w%u", nth);
        workload w = {.folder = weir_test_path(name)};
        snprintf(spec, sizeof spec, "%s:%u:%s", op, nth, how);
        assert_ok(weir_fault_arm(spec));
        weir_err err = workload_run(&w);
        bool reached = weir_fault_seen() >= nth;
        assert_ok(weir_fault_arm(NULL));
        if (!reached) assert_ok(err);
        workload_check(&w);
        assert_ok(weir_folder_remove(w.folder));
        if (!reached) break;
        assert_true(nth < 2000);
    }
    weir_clock_close(manual);
}

static void every_open_failing_once(void **state) {
    (void)state;
    fixture_in_memory();
    fail_every("open", "EIO:once");
}

static void every_read_failing_once(void **state) {
    (void)state;
    fixture_in_memory();
    fail_every("read", "EIO:once");
}

static void every_write_failing_once(void **state) {
    (void)state;
    fixture_in_memory();
    fail_every("write", "EIO:once");
}

static void every_write_short_and_the_disk_full_from_then_on(void **state) {
    (void)state;
    fixture_in_memory();
    fail_every("write", "short");
}

static void every_sync_failing_once(void **state) {
    (void)state;
    fixture_in_memory();
    fail_every("sync", "EIO:once");
}

static void every_rename_failing_once(void **state) {
    (void)state;
    fixture_in_memory();
    fail_every("rename", "EIO:once");
}

static void every_unlink_failing_once(void **state) {
    (void)state;
    fixture_in_memory();
    fail_every("unlink", "EIO:once");
}

static void every_close_failing_once(void **state) {
    (void)state;
    fixture_in_memory();
    fail_every("close", "EIO:once");
}

static void every_operation_failing_from_some_point_on(void **state) {
    (void)state;
    fixture_in_memory();
    fail_every("any", "EIO");
}

static void every_truncate_failing_once(void **state) {
    (void)state;
    fixture_in_memory();
    for (unsigned nth = 1; nth <= 2; nth++) { /* that of the lock file; that of the tail */
        char name[16], spec[64];
        snprintf(name, sizeof name, "f%u", nth);
        const char *folder = weir_test_path(name);
        weir_eventlog *log = fixture_open(folder, 1, 0);
        fixture_append(log, 0, 0, 5);
        assert_ok(weir_eventlog_close(log));
        int fd = open(fixture_segment(folder, 0, 0), O_WRONLY | O_APPEND | O_CLOEXEC);
        assert_int_equal(write(fd, "torn", 4), 4);
        close(fd);
        snprintf(spec, sizeof spec, "truncate:%u:EIO:once", nth);
        assert_ok(weir_fault_arm(spec));
        assert_err(fixture_try_open(folder, &log), WEIR_EIO, NULL);
        assert_null(log);
        assert_ok(weir_fault_arm(NULL));
        log = fixture_open(folder, 1, 0);
        assert_int_equal(fixture_check(log, 0, 0, 0), 5);
        assert_int_equal(fixture_stats(log, 0).tail_cut_bytes, 4);
        assert_ok(weir_eventlog_close(log));
    }
}

/* --- every allocation failing once ---------------------------------------------------------------------------- */

static weir_err attempt_create(void *context) {
    weir_eventlog *log = NULL;
    weir_err err = fixture_try_open(context, &log);
    if (!err) err = weir_eventlog_close(log);
    assert_true(!err || !log || weir_err_is(err, WEIR_ENOMEM));
    return err;
}

static void open_fails_cleanly_at_every_allocation(void **state) {
    (void)state;
    fixture_in_memory();
    weir_test_every_allocation(attempt_create, (void *)(uintptr_t)weir_test_folder());
    weir_eventlog *log = fixture_open(weir_test_folder(), 1, WEIR_EVENTLOG_SEGMENT_MIN);
    fixture_append(log, 0, 0, 400);
    assert_ok(weir_eventlog_close(log));
    weir_test_every_allocation(attempt_create, (void *)(uintptr_t)weir_test_folder());
}

static weir_err attempt_read(void *context) {
    weir_eventlog *log = NULL;
    const weir_eventlog_opts opts = {.read_only = true};
    weir_err err = weir_eventlog_open(context, "t", &opts, &log);
    if (err) return err;
    err = workload_read(log);
    weir_err_keep(&err, weir_eventlog_close(log));
    return err;
}

static void reading_fails_cleanly_at_every_allocation(void **state) {
    (void)state;
    fixture_in_memory();
    weir_eventlog *log = fixture_open(weir_test_folder(), 1, WEIR_EVENTLOG_SEGMENT_MIN);
    fixture_append(log, 0, 0, 400);
    assert_ok(weir_eventlog_close(log));
    weir_test_every_allocation(attempt_read, (void *)(uintptr_t)weir_test_folder());
}

/* Appends enough to fill buffers, roll and index. What a failed attempt leaves is found by the next one. */
static weir_err attempt_append(void *context) {
    weir_eventlog *log = NULL;
    weir_eventlog_partition_stats stats;
    const weir_eventlog_opts opts = {.partitions = 1, .segment_bytes = WEIR_EVENTLOG_SEGMENT_MIN};
    weir_err err = weir_eventlog_open(context, "t", &opts, &log);
    if (err) return err;
    err = weir_eventlog_stats_get(log, 0, &stats);
    if (!err) err = fixture_try_append(log, 0, stats.offset_end, 100, 0);
    if (!err) err = weir_eventlog_sync(log);
    weir_err close_err = weir_eventlog_close(log);
    assert_true(!close_err || weir_err_is(close_err, WEIR_EPOISONED) || weir_err_is(close_err, WEIR_ENOMEM));
    return err ? err : close_err;
}

static void appending_fails_cleanly_at_every_allocation(void **state) {
    (void)state;
    fixture_in_memory();
    weir_test_every_allocation(attempt_append, (void *)(uintptr_t)weir_test_folder());
    weir_eventlog *log = fixture_open(weir_test_folder(), 1, WEIR_EVENTLOG_SEGMENT_MIN);
    assert_true(fixture_check(log, 0, 0, 0) >= 100);
    assert_ok(weir_eventlog_close(log));
}

WEIR_TESTS(WEIR_CASE(l4_poisoned_after_a_write_error), WEIR_CASE(l4_poisoned_after_a_sync_error),
           WEIR_CASE(l4_poisoned_after_a_mark_error), WEIR_CASE(l4_a_short_write_leaves_no_hole),
           WEIR_CASE(writes_in_parts_are_continued), WEIR_CASE(l4_an_append_that_must_write_is_told),
           WEIR_CASE(full_disk_then_space_again), WEIR_CASE(every_open_failing_once),
           WEIR_CASE(every_read_failing_once), WEIR_CASE(every_write_failing_once),
           WEIR_CASE(every_write_short_and_the_disk_full_from_then_on), WEIR_CASE(every_sync_failing_once),
           WEIR_CASE(every_rename_failing_once), WEIR_CASE(every_unlink_failing_once),
           WEIR_CASE(every_close_failing_once), WEIR_CASE(every_operation_failing_from_some_point_on),
           WEIR_CASE(every_truncate_failing_once), WEIR_CASE(open_fails_cleanly_at_every_allocation),
           WEIR_CASE(reading_fails_cleanly_at_every_allocation), WEIR_CASE(appending_fails_cleanly_at_every_allocation))

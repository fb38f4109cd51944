/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resume_test.c - EVENTLOG-L4, second half: a poisoned log goes on in place, with all that was appended, once, at its
 * offsets.
 *
 * Each operation of a small workload (small segments, so that it rolls; groups that are synced and groups that are only
 * written) is where a failure begins that lasts; when it ends, the log is resumed, and compared record by record with
 * what was appended, before and after it is opened again.
 */
#include <weir/store/base/fault.h>

#include "eventlog_fixture.h"

#define RECORDS 150u
#define GROUP   10u

typedef struct workload {
    weir_eventlog *log;
    uint64_t appended; /* all of them must be there in the end */
    uint64_t synced;
} workload;

/* Every third group is not synced, so that it is only in the file. */
static weir_err go_on(workload *w) {
    weir_err err = WEIR_OK;
    while (!err && w->appended < RECORDS) {
        err = fixture_try_append(w->log, 0, w->appended, 1, 0);
        if (!err) w->appended++;
        if (err || w->appended % GROUP || w->appended / GROUP % 3 == 2) continue;
        err = weir_eventlog_sync(w->log);
        if (!err) w->synced = w->appended;
    }
    if (!err) err = weir_eventlog_sync(w->log);
    return err;
}

/* *metp: the failure was met. */
static void fail_from(const char *what, uint64_t nth, const char *why, bool *metp) {
    char spec[96];
    workload w = {.log = fixture_open(weir_test_folder(), 1, WEIR_EVENTLOG_SEGMENT_MIN)};
    snprintf(spec, sizeof spec, "%s:%llu:%s:/t/", what, (unsigned long long)nth, why);
    assert_ok(weir_fault_arm(spec));
    weir_err err = go_on(&w);
    *metp = err != WEIR_OK;
    if (err) {
        assert_int_equal(fixture_stats(w.log, 0).offset_end >= w.appended, true);
        assert_true(fixture_stats(w.log, 0).offset_durable >= w.synced);
        if (weir_eventlog_health(w.log)) assert_true(weir_eventlog_resume(w.log) != WEIR_OK || *metp);
    }
    assert_ok(weir_fault_arm(NULL));
    /* EVENTLOG-L2: reads went on */
    assert_int_equal(fixture_check(w.log, 0, 0, 0), fixture_stats(w.log, 0).offset_durable);
    assert_ok(weir_eventlog_resume(w.log));
    assert_ok(weir_eventlog_health(w.log));
    w.appended = fixture_stats(w.log, 0).offset_end;
    assert_ok(go_on(&w));
    assert_int_equal(fixture_check(w.log, 0, 0, 0), RECORDS);
    assert_ok(weir_eventlog_close(w.log));
    w.log = fixture_open(weir_test_folder(), 1, WEIR_EVENTLOG_SEGMENT_MIN);
    assert_int_equal(fixture_check(w.log, 0, 0, 0), RECORDS);
    assert_ok(weir_eventlog_close(w.log));
    assert_ok(weir_folder_remove(weir_test_path("t")));
}

static void fail_each(const char *what, const char *why) {
    bool met = true;
    uint64_t points = 0;
    fixture_in_memory();
    for (uint64_t nth = 1; met; nth++, points++)
        fail_from(what, nth, why, &met);
    printf("%s %s: %llu points\n", what, why, (unsigned long long)points);
    assert_true(points > 3);
}

static void l4_resumes_after_a_full_disk(void **state) {
    (void)state;
    fail_each("write", "ENOSPC");
    fail_each("write", "short");
}

static void l4_resumes_after_failed_syncs(void **state) {
    (void)state;
    fail_each("sync", "EIO");
}

static void l4_resumes_without_descriptors(void **state) {
    (void)state;
    fail_each("open", "EMFILE");
}

static void l4_resumes_after_any_failure(void **state) {
    (void)state;
    fail_each("any", "EROFS");
}

/* The kernel may drop what it could not write: then the file ends, or has other bytes, where records were. */
static void l4_what_the_kernel_has_dropped_is_written_anew(void **state) {
    (void)state;
    fixture_in_memory();
    char path[512];
    workload w = {.log = fixture_open(weir_test_folder(), 1, 0)};
    fixture_append(w.log, 0, 0, 10);
    assert_ok(weir_eventlog_sync(w.log));
    fixture_append(w.log, 0, 10, 10);
    assert_ok(weir_fault_arm("sync:1:EIO:once"));
    assert_err(weir_eventlog_sync(w.log), WEIR_EIO, NULL);
    assert_ok(weir_fault_arm(NULL));
    snprintf(path, sizeof path, "%s/t/00000/00000000000000000000.seg", weir_test_folder());
    struct stat status;
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(truncate(path, status.st_size - 100), 0);
    assert_ok(weir_eventlog_resume(w.log));
    assert_int_equal(fixture_check(w.log, 0, 0, 0), 20);
    fixture_append(w.log, 0, 20, 10);
    assert_ok(weir_eventlog_close(w.log));
    w.log = fixture_open(weir_test_folder(), 1, 0);
    assert_int_equal(fixture_check(w.log, 0, 0, 0), 30);
    assert_ok(weir_eventlog_close(w.log));
}

/* What was synced is never cut, whatever has become of it. */
static void l3_a_damaged_log_is_not_resumed(void **state) {
    (void)state;
    fixture_in_memory();
    char path[512];
    weir_eventlog *log = fixture_open(weir_test_folder(), 1, 0);
    fixture_append(log, 0, 0, 10);
    assert_ok(weir_eventlog_sync(log));
    fixture_append(log, 0, 10, 10);
    assert_ok(weir_fault_arm("write:1:ENOSPC:once:/00000/"));
    assert_err(weir_eventlog_sync(log), WEIR_EFULL, NULL);
    assert_ok(weir_fault_arm(NULL));
    snprintf(path, sizeof path, "%s/t/00000/00000000000000000000.seg", weir_test_folder());
    assert_int_equal(truncate(path, 100), 0);
    assert_err(weir_eventlog_resume(log), WEIR_ECORRUPT, "were on the disk");
    assert_err(weir_eventlog_health(log), WEIR_EPOISONED, "No space left");
    assert_err(weir_eventlog_close(log), WEIR_EPOISONED, NULL);
}

static void l4_a_partition_resumes_beside_one_that_cannot(void **state) {
    (void)state;
    fixture_in_memory();
    char path[512];
    weir_eventlog *log = fixture_open(weir_test_folder(), 2, 0);
    for (uint32_t partition = 0; partition < 2; partition++)
        fixture_append(log, partition, 0, 10);
    assert_ok(weir_eventlog_sync(log));
    for (uint32_t partition = 0; partition < 2; partition++) {
        fixture_append(log, partition, 10, 10);
        assert_ok(weir_fault_arm("write:1:ENOSPC:once"));
        assert_err(weir_eventlog_sync_partition(log, partition), WEIR_EFULL, NULL);
        assert_ok(weir_fault_arm(NULL));
    }
    snprintf(path, sizeof path, "%s/t/00000/00000000000000000000.seg", weir_test_folder());
    assert_int_equal(truncate(path, 100), 0);
    assert_err(weir_eventlog_resume(log), WEIR_ECORRUPT, "were on the disk");
    fixture_append(log, 1, 20, 10);
    assert_ok(weir_eventlog_sync_partition(log, 1));
    assert_int_equal(fixture_check(log, 1, 0, 0), 30);
    assert_err(weir_eventlog_close(log), WEIR_EPOISONED, NULL);
}

WEIR_TESTS(WEIR_CASE(l4_resumes_after_a_full_disk), WEIR_CASE(l4_resumes_after_failed_syncs),
           WEIR_CASE(l4_resumes_without_descriptors), WEIR_CASE(l4_resumes_after_any_failure),
           WEIR_CASE(l4_what_the_kernel_has_dropped_is_written_anew), WEIR_CASE(l3_a_damaged_log_is_not_resumed),
           WEIR_CASE(l4_a_partition_resumes_beside_one_that_cannot))

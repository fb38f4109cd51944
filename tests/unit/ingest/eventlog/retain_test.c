/* SPDX-License-Identifier: Apache-2.0 */
/* retain_test.c - whole segments go, oldest first, and nothing else. */
#include "eventlog_private.h"

#include <weir/store/base/fault.h>

#include "eventlog_fixture.h"

static weir_eventlog *open_retaining(uint64_t retain_bytes, int64_t retain_us, weir_clock *clock) {
    weir_eventlog *log = NULL;
    const weir_eventlog_opts opts = {.partitions = 1,
                                     .segment_bytes = WEIR_EVENTLOG_SEGMENT_MIN,
                                     .retain_bytes = retain_bytes,
                                     .retain_us = retain_us,
                                     .clock = clock};
    assert_ok(weir_eventlog_open(weir_test_folder(), "t", &opts, &log));
    return log;
}

static void keeps_all_unless_told(void **state) {
    (void)state;
    uint64_t removed = 9;
    weir_eventlog *log = open_retaining(0, 0, NULL);
    fixture_append(log, 0, 0, 300);
    assert_ok(weir_eventlog_sync(log));
    assert_ok(weir_eventlog_retain(log, &removed));
    assert_int_equal(removed, 0);
    assert_int_equal(fixture_stats(log, 0).offset_begin, 0);
    assert_ok(weir_eventlog_close(log));
}

/* What a store has not sealed must stay, however old or much it is. */
static void nothing_goes_from_the_offset_that_is_kept(void **state) {
    (void)state;
    uint64_t removed;
    weir_eventlog *log = open_retaining(1, 0, NULL);
    fixture_append(log, 0, 0, 400);
    assert_ok(weir_eventlog_sync(log));
    for (uint64_t keep_from = 0; keep_from < 400; keep_from += 7) {
        assert_ok(weir_eventlog_retain_from(log, &keep_from, &removed));
        uint64_t begin = fixture_stats(log, 0).offset_begin;
        assert_true(begin <= keep_from);
        assert_int_equal(fixture_check(log, 0, begin, 0), 400);
    }
    assert_true(fixture_stats(log, 0).offset_begin > 300);
    assert_ok(weir_eventlog_close(log));
}

static void by_bytes_down_to_the_limit_and_never_the_last(void **state) {
    (void)state;
    const uint64_t limits[] = {30000, 20000, 12000, 1};
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        uint64_t removed;
        weir_eventlog *log = open_retaining(limits[i], 0, NULL);
        if (i == 0) fixture_append(log, 0, 0, 400);
        assert_ok(weir_eventlog_sync(log));
        weir_eventlog_partition_stats before = fixture_stats(log, 0);
        assert_ok(weir_eventlog_retain(log, &removed));
        weir_eventlog_partition_stats after = fixture_stats(log, 0);
        assert_int_equal(after.segments, before.segments - removed);
        assert_true(removed > 0);
        assert_true(after.bytes <= limits[i] || after.segments == 1);
        assert_true(after.offset_begin > before.offset_begin);
        assert_int_equal(fixture_check(log, 0, after.offset_begin, 0), 400);
        assert_ok(weir_eventlog_close(log));
    }
}

/* Record n has time n: a segment goes when its newest record is older than the age. */
static void by_age_of_the_newest_record(void **state) {
    (void)state;
    weir_clock *clock;
    assert_ok(weir_clock_manual_open(400, &clock));
    for (unsigned reopened = 0; reopened < 2; reopened++) { /* then the ages are read from the files */
        uint64_t removed;
        weir_eventlog *log = open_retaining(0, 200 - reopened * 100, clock);
        if (!reopened) fixture_append(log, 0, 0, 400);
        assert_ok(weir_eventlog_sync(log));
        weir_elog_row *row = &log->partitions[0].row;
        uint64_t oldest_kept = 200 + reopened * 100, expected = 0;
        while (expected + 1 < row->count && row->segments[expected + 1].first - 1 < oldest_kept)
            expected++;
        assert_ok(weir_eventlog_retain(log, &removed));
        assert_true(removed > 0);
        assert_int_equal(removed, expected);
        assert_true(row->segments[0].first <= oldest_kept);
        assert_ok(weir_eventlog_close(log));
    }
    weir_clock_close(clock);
}

static void a_reader_that_was_overtaken_is_told(void **state) {
    (void)state;
    weir_eventlog *log = open_retaining(1, 0, NULL);
    weir_eventlog *other = NULL;
    weir_eventlog_reader *reader = NULL, *late = NULL;
    weir_record record;
    size_t count;
    uint64_t removed, seen = 0;
    fixture_append(log, 0, 0, 300);
    assert_ok(weir_eventlog_sync(log));
    other = fixture_open_read_only(weir_test_folder());
    assert_ok(weir_eventlog_reader_open(log, 0, 0, &reader));
    assert_ok(weir_eventlog_reader_next(reader, &record, 1, &count));
    assert_ok(weir_eventlog_retain(log, &removed));
    uint64_t begin = fixture_stats(log, 0).offset_begin;
    weir_err err;
    while (!(err = weir_eventlog_reader_next(reader, &record, 1, &count)) && count)
        seen = record.offset; /* the segment that it holds stays readable */
    assert_true(seen > 10 && seen < begin);
    char expected[64];
    snprintf(expected, sizeof expected, "removed all below %" PRIu64, begin);
    assert_err(err, WEIR_ENOTFOUND, expected);
    weir_eventlog_reader_close(reader);
    assert_err(weir_eventlog_reader_open(log, 0, begin - 1, &late), WEIR_ENOTFOUND, expected);
    assert_err(weir_eventlog_reader_open(other, 0, 0, &late), WEIR_ENOTFOUND, expected);
    assert_ok(weir_eventlog_close(other));
    assert_ok(weir_eventlog_close(log));
}

static void a_segment_that_cannot_be_removed_stays_in_the_row(void **state) {
    (void)state;
    uint64_t removed;
    weir_eventlog *log = open_retaining(1, 0, NULL);
    fixture_append(log, 0, 0, 300);
    assert_ok(weir_eventlog_sync(log));
    assert_ok(weir_fault_arm("unlink:2:EACCES:once"));
    assert_err(weir_eventlog_retain(log, &removed), WEIR_EPERM, "cannot remove");
    assert_ok(weir_fault_arm(NULL));
    assert_int_equal(removed, 1);
    uint64_t begin = fixture_stats(log, 0).offset_begin;
    assert_true(weir_path_exists(fixture_segment(weir_test_folder(), 0, begin)));
    assert_int_equal(fixture_check(log, 0, begin, 0), 300);
    assert_ok(weir_eventlog_retain(log, &removed));
    assert_int_equal(fixture_stats(log, 0).segments, 1);
    assert_ok(weir_eventlog_close(log));
}

static void an_age_that_cannot_be_read_removes_nothing(void **state) {
    (void)state;
    weir_clock *clock;
    uint64_t removed;
    assert_ok(weir_clock_manual_open(100000, &clock));
    weir_eventlog *log = open_retaining(0, 1, clock);
    fixture_append(log, 0, 0, 300);
    assert_ok(weir_eventlog_close(log));
    fixture_bytes file = fixture_load(fixture_segment(weir_test_folder(), 0, 0));
    file.bytes[file.length - 1] ^= 1;
    fixture_store(fixture_segment(weir_test_folder(), 0, 0), file.bytes, file.length);
    weir_free(file.bytes);
    log = open_retaining(0, 1, clock);
    assert_err(weir_eventlog_retain(log, &removed), WEIR_ECORRUPT, "age is not known");
    assert_int_equal(removed, 0);
    assert_ok(weir_eventlog_close(log));
    weir_clock_close(clock);
}

WEIR_TESTS(WEIR_CASE(keeps_all_unless_told), WEIR_CASE(nothing_goes_from_the_offset_that_is_kept),
           WEIR_CASE(by_bytes_down_to_the_limit_and_never_the_last), WEIR_CASE(by_age_of_the_newest_record),
           WEIR_CASE(a_reader_that_was_overtaken_is_told), WEIR_CASE(a_segment_that_cannot_be_removed_stays_in_the_row),
           WEIR_CASE(an_age_that_cannot_be_read_removes_nothing))

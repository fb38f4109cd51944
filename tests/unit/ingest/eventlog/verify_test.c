/* SPDX-License-Identifier: Apache-2.0 */
/* verify_test.c - verify finds each damage, and nothing where there is none. */
#include "eventlog_private.h"

#include <limits.h>

#include <weir/store/base/fault.h>

#include "eventlog_fixture.h"

typedef struct damages {
    unsigned count;
    char first[WEIR_ERR_SENTENCE_MAX];
} damages;

static weir_err note_damage(void *context, weir_err damage) {
    damages *d = context;
    assert_err(damage, WEIR_ECORRUPT, NULL);
    if (d->count++ == 0) weir_err_sentence(damage, d->first, sizeof d->first);
    return WEIR_OK;
}

static damages verify(const char *folder, weir_eventlog_verify_stats *stats) {
    damages d = {0};
    assert_ok(weir_eventlog_verify(folder, "t", note_damage, &d, stats));
    assert_int_equal(stats->damages, d.count);
    return d;
}

static void prepare(const char *folder) {
    weir_eventlog *log = fixture_open(folder, 2, WEIR_EVENTLOG_SEGMENT_MIN);
    fixture_append(log, 0, 0, 100);
    fixture_append(log, 1, 0, 80);
    assert_ok(weir_eventlog_close(log));
}

static void counts_what_is_there(void **state) {
    (void)state;
    weir_eventlog_verify_stats stats;
    weir_eventlog *log = fixture_open(weir_test_folder(), 3, WEIR_EVENTLOG_SEGMENT_MIN);
    assert_int_equal(verify(weir_test_folder(), &stats).count, 0);
    assert_int_equal(stats.partitions, 3);
    assert_int_equal(stats.segments, 0);
    fixture_append(log, 0, 0, 100);
    fixture_append(log, 1, 0, 40);
    assert_ok(weir_eventlog_sync(log));
    assert_int_equal(verify(weir_test_folder(), &stats).count, 0); /* beside the writer */
    assert_int_equal(stats.records, 140);
    assert_int_equal(stats.segments, fixture_stats(log, 0).segments + fixture_stats(log, 1).segments);
    assert_int_equal(stats.bytes, fixture_stats(log, 0).bytes + fixture_stats(log, 1).bytes);
    assert_int_equal(stats.tail_bytes, 0);
    assert_ok(weir_eventlog_close(log));
}

static void a_tail_that_was_not_acknowledged_is_no_damage(void **state) {
    (void)state;
    weir_eventlog_verify_stats stats;
    prepare(weir_test_folder());
    weir_eventlog *log = fixture_open_read_only(weir_test_folder());
    const weir_elog_row *row = &log->partitions[0].row;
    const char *last = fixture_segment(weir_test_folder(), 0, row->segments[row->count - 1].first);
    int fd = open(last, O_WRONLY | O_APPEND | O_CLOEXEC);
    assert_int_equal(write(fd, "torn", 4), 4);
    close(fd);
    assert_ok(weir_eventlog_close(log));
    assert_int_equal(verify(weir_test_folder(), &stats).count, 0);
    assert_int_equal(stats.records, 180);
    assert_int_equal(stats.tail_bytes, 4);
}

/* Every byte of every segment of a partition, one at a time. */
static void finds_every_flipped_byte(void **state) {
    (void)state;
    fixture_in_memory();
    weir_eventlog *log = fixture_open(weir_test_folder(), 2, WEIR_EVENTLOG_SEGMENT_MIN);
    fixture_append(log, 1, 0, 55);
    assert_ok(weir_eventlog_close(log));
    log = fixture_open_read_only(weir_test_folder());
    const weir_elog_row *row = &log->partitions[1].row;
    assert_int_equal(row->count, 2);
    for (size_t i = 0; i < row->count; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s", fixture_segment(weir_test_folder(), 1, row->segments[i].first));
        fixture_bytes file = fixture_load(path);
        for (size_t at = 0; at < file.length; at++) {
            weir_eventlog_verify_stats stats;
            file.bytes[at] ^= 0x41;
            fixture_store(path, file.bytes, file.length);
            damages d = verify(weir_test_folder(), &stats);
            assert_int_equal(d.count, 1);
            assert_non_null(strstr(d.first, path));
            file.bytes[at] ^= 0x41;
        }
        fixture_store(path, file.bytes, file.length);
        weir_free(file.bytes);
    }
    assert_ok(weir_eventlog_close(log));
}

static void names_the_byte_and_goes_on_behind_it(void **state) {
    (void)state;
    weir_eventlog_verify_stats stats;
    prepare(weir_test_folder());
    fixture_bytes file = fixture_load(fixture_segment(weir_test_folder(), 0, 0));
    size_t second = ELOG_SEGMENT_HEADER + weir_elog_record_length(file.bytes + ELOG_SEGMENT_HEADER);
    file.bytes[second + 40] ^= 1;
    fixture_store(fixture_segment(weir_test_folder(), 0, 0), file.bytes, file.length);
    file.bytes[second + 40] ^= 1;
    damages d = verify(weir_test_folder(), &stats);
    char expected[64];
    snprintf(expected, sizeof expected, "byte %zu should be record 1", second);
    assert_non_null(strstr(d.first, expected));
    assert_non_null(strstr(d.first, "checksum"));
    assert_in_range(stats.records, 81, 179); /* the other segments and partitions are read all the same */

    uint8_t *longer = weir_malloc(file.length + 5);
    memcpy(longer, file.bytes, file.length);
    memset(longer + file.length, 0, 5);
    fixture_store(fixture_segment(weir_test_folder(), 0, 0), longer, file.length + 5);
    d = verify(weir_test_folder(), &stats);
    assert_int_equal(d.count, 1);
    assert_non_null(strstr(d.first, "5 bytes too many"));
    fixture_store(fixture_segment(weir_test_folder(), 0, 0), file.bytes, file.length - 1);
    d = verify(weir_test_folder(), &stats);
    assert_int_equal(d.count, 1);
    assert_non_null(strstr(d.first, "the file ends inside a record"));
    weir_free(longer);
    weir_free(file.bytes);
}

static void a_missing_segment_is_damage(void **state) {
    (void)state;
    weir_eventlog_verify_stats stats;
    prepare(weir_test_folder());
    weir_eventlog *log = fixture_open_read_only(weir_test_folder());
    const weir_elog_row *row = &log->partitions[0].row;
    assert_true(row->count >= 3);
    assert_int_equal(unlink(fixture_segment(weir_test_folder(), 0, row->segments[1].first)), 0);
    damages d = verify(weir_test_folder(), &stats);
    assert_int_equal(d.count, 1);
    assert_non_null(strstr(d.first, "the file ends"));
    assert_ok(weir_eventlog_close(log));
    assert_ok(weir_folder_remove(weir_test_path("t/00001")));
    d = verify(weir_test_folder(), &stats);
    assert_int_equal(d.count, 2);
}

static struct {
    weir_eventlog *log;
    unsigned times; /* that it still goes on                */
    bool going_on;  /* its own operations are not looked at */
} writer;

/* At the moment when the marks are read and the segments are not: more is acknowledged, and retention removes all that
 * was there. */
static void go_on_meanwhile(void *context, weir_fault_op op, const char *path) {
    (void)context;
    const char *partition = strstr(path, "/t/00000");
    uint64_t removed;
    if (op != WEIR_FAULT_OPEN || !partition || partition[strlen("/t/00000")]) return;
    if (writer.going_on || !writer.times) return;
    writer.going_on = true;
    writer.times--;
    fixture_append(writer.log, 0, fixture_stats(writer.log, 0).offset_end, 100);
    assert_ok(weir_eventlog_sync(writer.log));
    assert_ok(weir_eventlog_retain(writer.log, &removed));
    assert_true(removed > 0);
    writer.going_on = false;
}

static void what_retention_removes_meanwhile_is_no_damage(void **state) {
    (void)state;
    const weir_eventlog_opts opts = {.partitions = 1, .segment_bytes = WEIR_EVENTLOG_SEGMENT_MIN, .retain_bytes = 1};
    weir_eventlog_verify_stats stats;
    damages d = {0};
    assert_ok(weir_eventlog_open(weir_test_folder(), "t", &opts, &writer.log));
    fixture_append(writer.log, 0, 0, 100);
    assert_ok(weir_eventlog_sync(writer.log));
    for (unsigned times = 1; times <= 3; times++) {
        writer.times = times;
        weir_fault_watch(go_on_meanwhile, NULL);
        d = verify(weir_test_folder(), &stats);
        weir_fault_watch(NULL, NULL);
        assert_int_equal(writer.times, 0);
        assert_int_equal(d.count, 0);
        assert_true(stats.records > 0);
    }
    writer.times = UINT_MAX; /* it cannot be kept up with */
    weir_fault_watch(go_on_meanwhile, NULL);
    assert_err(weir_eventlog_verify(weir_test_folder(), "t", note_damage, &d, &stats), WEIR_EBUSY, "try again");
    weir_fault_watch(NULL, NULL);
    assert_int_equal(d.count, 0);
    assert_ok(weir_eventlog_close(writer.log));
    assert_int_equal(verify(weir_test_folder(), &stats).count, 0);
}

static weir_err stop(void *context, weir_err damage) {
    (void)context;
    (void)damage;
    return WEIR_ERR(WEIR_ECANCELLED, "seen enough");
}

static void what_cannot_be_begun_is_an_error(void **state) {
    (void)state;
    weir_eventlog_verify_stats stats;
    damages d = {0};
    assert_err(weir_eventlog_verify(weir_test_folder(), "t", note_damage, &d, &stats), WEIR_ENOTFOUND, "t/topic");
    assert_err(weir_eventlog_verify(weir_test_folder(), "..", note_damage, &d, &stats), WEIR_EINVAL, NULL);
    prepare(weir_test_folder());
    fixture_bytes file = fixture_load(fixture_segment(weir_test_folder(), 0, 0));
    file.bytes[40] ^= 1;
    fixture_store(fixture_segment(weir_test_folder(), 0, 0), file.bytes, file.length);
    assert_err(weir_eventlog_verify(weir_test_folder(), "t", stop, &d, &stats), WEIR_ECANCELLED, "seen enough");
    fixture_store(weir_test_path("t/durable"), "", 0);
    assert_err(weir_eventlog_verify(weir_test_folder(), "t", note_damage, &d, &stats), WEIR_ECORRUPT, "t/durable");
    fixture_store(weir_test_path("t/topic"), "", 0);
    assert_err(weir_eventlog_verify(weir_test_folder(), "t", note_damage, &d, &stats), WEIR_ECORRUPT, "t/topic");
    weir_free(file.bytes);
}

WEIR_TESTS(WEIR_CASE(counts_what_is_there), WEIR_CASE(a_tail_that_was_not_acknowledged_is_no_damage),
           WEIR_CASE(finds_every_flipped_byte), WEIR_CASE(names_the_byte_and_goes_on_behind_it),
           WEIR_CASE(a_missing_segment_is_damage), WEIR_CASE(what_retention_removes_meanwhile_is_no_damage),
           WEIR_CASE(what_cannot_be_begun_is_an_error))

/* SPDX-License-Identifier: Apache-2.0 */
/* append_read_test.c - what goes in comes out; EVENTLOG-L1, EVENTLOG-L2 and every limit of eventlog.h. */
#include "eventlog_private.h"

#include <weir/store/base/fault.h>
#include <weir/store/base/hash.h>

#include "eventlog_fixture.h"

static void append_then_read_back(void **state) {
    (void)state;
    weir_eventlog *log = fixture_open(weir_test_folder(), 3, 0);
    for (uint32_t p = 0; p < 3; p++)
        fixture_append(log, p, 0, 100 + p);
    assert_ok(weir_eventlog_sync(log));
    for (uint32_t p = 0; p < 3; p++) {
        assert_int_equal(fixture_check(log, p, 0, 0), 100 + p);
        assert_int_equal(fixture_stats(log, p).time_last_us, 99 + p);
    }
    assert_ok(weir_eventlog_close(log));
}

static void close_makes_durable_and_reopen_goes_on(void **state) {
    (void)state;
    for (uint64_t round = 0; round < 5; round++) {
        weir_eventlog *log = fixture_open(weir_test_folder(), 1, 0);
        assert_int_equal(fixture_check(log, 0, 0, 0), round * 10);
        fixture_append(log, 0, round * 10, 10);
        assert_ok(weir_eventlog_close(log));
    }
}

static void l1_offsets_are_consecutive_across_segments(void **state) {
    (void)state;
    weir_eventlog *log = fixture_open(weir_test_folder(), 1, WEIR_EVENTLOG_SEGMENT_MIN);
    for (uint64_t n = 0; n < 500; n += 50) {
        fixture_append(log, 0, n, 50);
        assert_ok(weir_eventlog_sync(log));
    }
    weir_eventlog_partition_stats stats = fixture_stats(log, 0);
    assert_true(stats.segments > 5);
    assert_true(stats.bytes > 5 * (WEIR_EVENTLOG_SEGMENT_MIN / 2));
    for (uint64_t from = 0; from <= 500; from++)
        assert_int_equal(fixture_check(log, 0, from, 0), 500);
    assert_ok(weir_eventlog_close(log));
    log = fixture_open(weir_test_folder(), 1, WEIR_EVENTLOG_SEGMENT_MIN);
    assert_int_equal(fixture_stats(log, 0).segments, stats.segments);
    assert_int_equal(fixture_check(log, 0, 0, 0), 500);
    assert_ok(weir_eventlog_close(log));
}

static void segments_keep_to_their_size(void **state) {
    (void)state;
    weir_eventlog *log = fixture_open(weir_test_folder(), 1, WEIR_EVENTLOG_SEGMENT_MIN);
    fixture_append(log, 0, 0, 300);
    assert_ok(weir_eventlog_sync(log));
    weir_elog_row *row = &log->partitions[0].row;
    for (size_t i = 0; i < row->count; i++) {
        struct stat status;
        assert_int_equal(stat(fixture_segment(weir_test_folder(), 0, row->segments[i].first), &status), 0);
        assert_int_equal(status.st_size, row->segments[i].bytes);
        assert_true(row->segments[i].bytes <= WEIR_EVENTLOG_SEGMENT_MIN);
    }
    assert_ok(weir_eventlog_close(log));
}

static void l2_a_reader_sees_only_what_is_durable(void **state) {
    (void)state;
    weir_eventlog *log = fixture_open(weir_test_folder(), 1, 0);
    weir_eventlog_reader *reader = NULL;
    weir_record records[16];
    size_t count;
    assert_ok(weir_eventlog_reader_open(log, 0, 0, &reader));
    for (uint64_t n = 0; n < 100; n += 5) {
        fixture_append(log, 0, n, 5);
        assert_ok(weir_eventlog_reader_next(reader, records, 16, &count));
        assert_int_equal(count, 0);
        assert_int_equal(fixture_stats(log, 0).offset_durable, n);
        assert_int_equal(fixture_stats(log, 0).offset_end, n + 5);
        assert_ok(weir_eventlog_sync(log));
        assert_ok(weir_eventlog_reader_next(reader, records, 16, &count));
        assert_int_equal(count, 5);
        assert_int_equal(records[0].offset, n);
    }
    weir_eventlog_reader_close(reader);
    assert_ok(weir_eventlog_close(log));
}

/* More than ELOG_BUFFER_WRITE_BYTES are in the file before any sync: the file has them, the reader must not. */
static void l2_not_even_what_is_already_in_the_file(void **state) {
    (void)state;
    weir_eventlog *log = fixture_open(weir_test_folder(), 1, 0);
    char value[4096] = {0};
    const weir_record record = {.value = value, .value_length = sizeof value};
    uint64_t offset;
    struct stat status;
    for (unsigned i = 0; i < 1000; i++)
        assert_ok(weir_eventlog_append(log, 0, &record, 1, &offset));
    assert_int_equal(stat(fixture_segment(weir_test_folder(), 0, 0), &status), 0);
    assert_true(status.st_size > (off_t)ELOG_BUFFER_WRITE_BYTES);
    assert_int_equal(fixture_stats(log, 0).offset_durable, 0);
    assert_int_equal(fixture_check(log, 0, 0, 0), 0);
    weir_eventlog *other = fixture_open_read_only(weir_test_folder());
    assert_int_equal(fixture_check(other, 0, 0, 0), 0);
    assert_ok(weir_eventlog_close(other));
    assert_ok(weir_eventlog_close(log));
}

/* A reader's buffer may hold whole records from behind the durable end, which a power cut then takes. */
static void l2_a_reader_forgets_what_was_not_yet_durable(void **state) {
    (void)state;
    weir_eventlog *log = fixture_open(weir_test_folder(), 1, 0), *other = NULL;
    weir_eventlog_reader *reader = NULL;
    weir_record records[16];
    size_t count;
    fixture_append(log, 0, 0, 4);
    assert_ok(weir_eventlog_sync(log));
    uint64_t durable_bytes = fixture_stats(log, 0).bytes;
    fixture_append(log, 0, 4, 4);
    assert_ok(weir_fault_arm("sync:1:EIO"));
    assert_err(weir_eventlog_sync(log), WEIR_EIO, NULL);
    assert_ok(weir_fault_arm(NULL));
    other = fixture_open_read_only(weir_test_folder());
    assert_ok(weir_eventlog_reader_open(other, 0, 0, &reader));
    assert_ok(weir_eventlog_reader_next(reader, records, 16, &count));
    assert_int_equal(count, 4);
    assert_err(weir_eventlog_close(log), WEIR_EPOISONED, NULL);
    assert_int_equal(truncate(fixture_segment(weir_test_folder(), 0, 0), (off_t)durable_bytes), 0);

    log = fixture_open(weir_test_folder(), 1, 0);
    assert_ok(fixture_try_append(log, 0, 4, 4, 77));
    assert_ok(weir_eventlog_sync(log));
    assert_ok(weir_eventlog_reader_next(reader, records, 16, &count));
    assert_int_equal(count, 4);
    for (size_t i = 0; i < 4; i++) {
        fixture_record expected;
        fixture_make(&expected, 4 + i, 77, 0);
        assert_true(fixture_same(&records[i], &expected.record));
    }
    weir_eventlog_reader_close(reader);
    assert_ok(weir_eventlog_close(other));
    assert_ok(weir_eventlog_close(log));
}

static void l2_a_read_only_log_follows_the_marks(void **state) {
    (void)state;
    weir_eventlog *log = fixture_open(weir_test_folder(), 2, WEIR_EVENTLOG_SEGMENT_MIN);
    weir_eventlog *other = fixture_open_read_only(weir_test_folder());
    weir_eventlog_reader *reader = NULL;
    weir_record records[64];
    assert_ok(weir_eventlog_reader_open(other, 1, 0, &reader));
    uint64_t seen = 0;
    for (uint64_t n = 0; n < 400; n += 8) {
        size_t count;
        fixture_append(log, 1, n, 8);
        assert_int_equal(fixture_stats(other, 1).offset_durable, n);
        assert_ok(weir_eventlog_reader_next(reader, records, 64, &count));
        assert_int_equal(count, 0);
        assert_ok(weir_eventlog_sync_partition(log, 1));
        assert_int_equal(fixture_stats(other, 1).offset_durable, n + 8);
        while (!weir_eventlog_reader_next(reader, records, 64, &count) && count)
            seen += count;
        assert_int_equal(seen, n + 8);
    }
    weir_eventlog_reader_close(reader);
    assert_int_equal(fixture_check(other, 1, 0, 0), 400);
    assert_ok(weir_eventlog_close(other));
    assert_ok(weir_eventlog_close(log));
}

static void sync_partition_leaves_the_others(void **state) {
    (void)state;
    weir_eventlog *log = fixture_open(weir_test_folder(), 2, 0);
    fixture_append(log, 0, 0, 3);
    fixture_append(log, 1, 0, 3);
    assert_ok(weir_eventlog_sync_partition(log, 1));
    assert_int_equal(fixture_stats(log, 0).offset_durable, 0);
    assert_int_equal(fixture_stats(log, 1).offset_durable, 3);
    assert_ok(weir_eventlog_close(log));
}

static void seek_finds_every_offset_of_a_large_segment(void **state) {
    (void)state;
    enum { COUNT = 6000 };
    static char value[2048];
    weir_eventlog *log = fixture_open(weir_test_folder(), 1, 0);
    for (uint64_t n = 0; n < COUNT; n++) {
        uint64_t offset;
        const weir_record record = {.time_us = (int64_t)n, .value = value, .value_length = sizeof value};
        assert_ok(weir_eventlog_append(log, 0, &record, 1, &offset));
    }
    assert_ok(weir_eventlog_close(log));
    log = fixture_open_read_only(weir_test_folder());
    assert_true(log->partitions[0].row.segments[0].index_count >= 10);
    for (uint64_t from = 0; from < COUNT; from += 37) {
        weir_eventlog_reader *reader = NULL;
        weir_record record;
        size_t count;
        assert_ok(weir_eventlog_reader_open(log, 0, from, &reader));
        assert_ok(weir_eventlog_reader_next(reader, &record, 1, &count));
        assert_int_equal(count, 1);
        assert_int_equal(record.offset, from);
        assert_int_equal(record.time_us, from);
        weir_eventlog_reader_close(reader);
    }
    assert_ok(weir_eventlog_close(log));
}

/* A segment that was not read at open has no index: whoever seeks in it first leaves one behind. */
static void seek_notes_its_way_for_the_next(void **state) {
    (void)state;
    static char value[4096];
    const weir_record record = {.value = value, .value_length = sizeof value};
    weir_eventlog *log = fixture_open(weir_test_folder(), 1, 4u << 20);
    weir_eventlog_reader *reader = NULL;
    for (uint64_t n = 0; n < 1500; n++) {
        uint64_t offset;
        assert_ok(weir_eventlog_append(log, 0, &record, 1, &offset));
    }
    assert_ok(weir_eventlog_close(log));
    log = fixture_open(weir_test_folder(), 1, 4u << 20);
    weir_elog_row *row = &log->partitions[0].row;
    assert_int_equal(row->count, 2);
    assert_int_equal(row->segments[0].index_count, 0);
    assert_ok(weir_eventlog_reader_open(log, 0, row->segments[1].first - 1, &reader));
    weir_eventlog_reader_close(reader);
    assert_true(row->segments[0].index_count >= 2);
    assert_ok(weir_eventlog_close(log));
}

static void keys_and_values_may_be_empty_or_absent(void **state) {
    (void)state;
    weir_eventlog *log = fixture_open(weir_test_folder(), 1, 0);
    const weir_record records[] = {
        {.time_us = INT64_MIN, .key = "", .key_length = 0, .value = NULL, .value_length = 0},
        {.time_us = INT64_MAX, .key = NULL, .value = "", .value_length = 0},
        {.time_us = -1, .key = "k", .key_length = 1, .value = "\0\xFF\n", .value_length = 3},
    };
    weir_eventlog_reader *reader = NULL;
    weir_record read[3];
    uint64_t first;
    size_t count;
    assert_ok(weir_eventlog_append(log, 0, records, 3, &first));
    assert_int_equal(first, 0);
    assert_ok(weir_eventlog_sync(log));
    assert_ok(weir_eventlog_reader_open(log, 0, 0, &reader));
    assert_ok(weir_eventlog_reader_next(reader, read, 3, &count));
    assert_int_equal(count, 3);
    assert_non_null(read[0].key);
    assert_null(read[1].key);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(read[i].time_us, records[i].time_us);
        assert_int_equal(read[i].key_length, records[i].key_length);
        assert_int_equal(read[i].value_length, records[i].value_length);
        assert_memory_equal(read[i].value, records[i].value ? records[i].value : "", records[i].value_length);
    }
    weir_eventlog_reader_close(reader);
    assert_ok(weir_eventlog_close(log));
}

static void record_max_and_one_past_it(void **state) {
    (void)state;
    weir_eventlog *log = fixture_open(weir_test_folder(), 1, 0);
    size_t room = WEIR_EVENTLOG_RECORD_MAX - WEIR_EVENTLOG_RECORD_OVERHEAD;
    char *value = weir_calloc(room + 1, 1);
    uint64_t first;
    assert_non_null(value);
    value[room - 1] = 'z';
    weir_record record = {.key = "k", .key_length = 1, .value = value, .value_length = room};
    assert_err(weir_eventlog_append(log, 0, &record, 1, &first), WEIR_ELIMIT, "record 0 of the batch");
    record.key = NULL;
    record.key_length = 0;
    record.value_length = room + 1;
    assert_err(weir_eventlog_append(log, 0, &record, 1, &first), WEIR_ELIMIT, "record 0 of the batch");
    record.value_length = SIZE_MAX;
    assert_err(weir_eventlog_append(log, 0, &record, 1, &first), WEIR_ELIMIT, "record 0 of the batch");
    assert_int_equal(fixture_stats(log, 0).offset_end, 0);
    record.value_length = room;
    assert_ok(weir_eventlog_append(log, 0, &record, 1, &first));
    assert_ok(weir_eventlog_close(log));

    weir_eventlog_reader *reader = NULL;
    weir_record read;
    size_t count;
    log = fixture_open(weir_test_folder(), 1, 0);
    assert_ok(weir_eventlog_reader_open(log, 0, 0, &reader));
    assert_ok(weir_eventlog_reader_next(reader, &read, 1, &count));
    assert_int_equal(count, 1);
    assert_int_equal(read.value_length, room);
    assert_memory_equal(read.value, value, room);
    weir_eventlog_reader_close(reader);
    assert_ok(weir_eventlog_close(log));
    weir_free(value);
}

static void batch_max_and_one_past_it(void **state) {
    (void)state;
    weir_eventlog *log = fixture_open(weir_test_folder(), 1, 0);
    weir_record *records = weir_calloc(WEIR_EVENTLOG_BATCH_MAX + 1, sizeof *records);
    uint64_t first;
    assert_non_null(records);
    assert_err(weir_eventlog_append(log, 0, records, 0, &first), WEIR_EINVAL, "0 records");
    assert_err(weir_eventlog_append(log, 0, records, WEIR_EVENTLOG_BATCH_MAX + 1, &first), WEIR_EINVAL, "65537");
    assert_int_equal(fixture_stats(log, 0).offset_end, 0);
    assert_ok(weir_eventlog_append(log, 0, records, WEIR_EVENTLOG_BATCH_MAX, &first));
    assert_ok(weir_eventlog_append(log, 0, records, 1, &first));
    assert_int_equal(first, WEIR_EVENTLOG_BATCH_MAX);
    assert_ok(weir_eventlog_close(log));
    weir_free(records);
}

static void batch_bytes_max_and_one_past_it(void **state) {
    (void)state;
    weir_eventlog *log = fixture_open(weir_test_folder(), 1, 0);
    size_t value_length = (1u << 20) - WEIR_EVENTLOG_RECORD_OVERHEAD;
    char *value = weir_calloc(value_length + 1, 1);
    weir_record records[64];
    uint64_t first;
    assert_non_null(value);
    for (size_t i = 0; i < 64; i++)
        records[i] = (weir_record){.value = value, .value_length = value_length};
    records[63].value_length++;
    assert_err(weir_eventlog_append(log, 0, records, 64, &first), WEIR_ELIMIT, "from record 63 on");
    assert_int_equal(fixture_stats(log, 0).offset_end, 0);
    records[63].value_length--;
    assert_ok(weir_eventlog_append(log, 0, records, 64, &first));
    assert_ok(weir_eventlog_sync(log));
    assert_int_equal(fixture_stats(log, 0).offset_durable, 64);
    assert_int_equal(fixture_stats(log, 0).bytes, WEIR_EVENTLOG_BATCH_BYTES_MAX + ELOG_SEGMENT_HEADER);
    assert_ok(weir_eventlog_close(log));
    weir_free(value);
}

static void options_at_and_past_their_limits(void **state) {
    (void)state;
    weir_eventlog *log = NULL;
    const char *folder = weir_test_folder();
    weir_eventlog_opts opts = {.partitions = WEIR_EVENTLOG_PARTITIONS_MAX + 1};
    assert_err(weir_eventlog_open(folder, "t", &opts, &log), WEIR_EINVAL, "1025 partitions");
    opts = (weir_eventlog_opts){.partitions = 1, .segment_bytes = WEIR_EVENTLOG_SEGMENT_MIN - 1};
    assert_err(weir_eventlog_open(folder, "t", &opts, &log), WEIR_EINVAL, "4095");
    opts.segment_bytes = WEIR_EVENTLOG_SEGMENT_MAX + 1;
    assert_err(weir_eventlog_open(folder, "t", &opts, &log), WEIR_EINVAL, "4294967297");
    opts = (weir_eventlog_opts){.partitions = 1, .retain_us = -1};
    assert_err(weir_eventlog_open(folder, "t", &opts, &log), WEIR_EINVAL, "negative");
    opts = (weir_eventlog_opts){.partitions = 1, .read_only = true};
    assert_err(weir_eventlog_open(folder, "t", &opts, &log), WEIR_EINVAL, "read-only");
    assert_null(log);
    opts = (weir_eventlog_opts){.partitions = WEIR_EVENTLOG_PARTITIONS_MAX, .segment_bytes = WEIR_EVENTLOG_SEGMENT_MAX};
    assert_ok(weir_eventlog_open(folder, "t", &opts, &log));
    assert_int_equal(weir_eventlog_partitions(log), WEIR_EVENTLOG_PARTITIONS_MAX);
    fixture_append(log, WEIR_EVENTLOG_PARTITIONS_MAX - 1, 0, 1);
    assert_ok(weir_eventlog_close(log));
    opts = (weir_eventlog_opts){.partitions = 7};
    assert_ok(weir_eventlog_open(folder, "t", &opts, &log));
    assert_int_equal(weir_eventlog_partitions(log), WEIR_EVENTLOG_PARTITIONS_MAX);
    assert_ok(weir_eventlog_close(log));
}

static void topic_names_at_and_past_their_limits(void **state) {
    (void)state;
    weir_eventlog *log = NULL;
    const weir_eventlog_opts opts = {.partitions = 1};
    char name[WEIR_EVENTLOG_TOPIC_MAX + 2];
    memset(name, 'n', sizeof name);
    name[WEIR_EVENTLOG_TOPIC_MAX + 1] = 0;
    assert_err(weir_eventlog_open(weir_test_folder(), name, &opts, &log), WEIR_EINVAL, "1 to 200");
    name[WEIR_EVENTLOG_TOPIC_MAX] = 0;
    assert_ok(weir_eventlog_open(weir_test_folder(), name, &opts, &log));
    assert_ok(weir_eventlog_close(log));
    const char *const wrong[] = {"", ".", "..", "a/b", "a b", "\xC3\xA4", "a\n"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_err(weir_eventlog_open(weir_test_folder(), wrong[i], &opts, &log), WEIR_EINVAL, NULL);
        assert_null(log);
    }
    assert_ok(weir_eventlog_open(weir_test_folder(), "Az09._-", &opts, &log));
    assert_ok(weir_eventlog_close(log));
}

static void wrong_arguments_change_nothing(void **state) {
    (void)state;
    weir_eventlog *log = fixture_open(weir_test_folder(), 2, 0);
    weir_eventlog_partition_stats stats;
    weir_eventlog_reader *reader = NULL;
    const weir_record no_key = {.key_length = 1}, no_value = {.value_length = 1}, fine = {0};
    const weir_record mixed[] = {fine, no_value};
    uint64_t first;
    assert_err(weir_eventlog_append(log, 2, &fine, 1, &first), WEIR_EINVAL, "no partition 2");
    assert_err(weir_eventlog_append(log, 0, &no_key, 1, &first), WEIR_EINVAL, "record 0");
    assert_err(weir_eventlog_append(log, 0, mixed, 2, &first), WEIR_EINVAL, "record 1");
    assert_err(weir_eventlog_sync_partition(log, 2), WEIR_EINVAL, "no partition 2");
    assert_err(weir_eventlog_stats_get(log, 2, &stats), WEIR_EINVAL, "no partition 2");
    assert_err(weir_eventlog_reader_open(log, 2, 0, &reader), WEIR_EINVAL, "no partition 2");
    assert_err(weir_eventlog_reader_open(log, 0, 1, &reader), WEIR_EINVAL, "offset 1");
    assert_null(reader);
    assert_int_equal(fixture_stats(log, 0).offset_end, 0);
    assert_ok(weir_eventlog_close(log));
}

static void read_only_refuses_to_write(void **state) {
    (void)state;
    weir_eventlog *log = fixture_open(weir_test_folder(), 1, 0);
    const weir_record record = {0};
    uint64_t n;
    assert_ok(weir_eventlog_close(log));
    log = fixture_open_read_only(weir_test_folder());
    assert_err(weir_eventlog_append(log, 0, &record, 1, &n), WEIR_EPERM, "read-only");
    assert_err(weir_eventlog_sync(log), WEIR_EPERM, "read-only");
    assert_err(weir_eventlog_sync_partition(log, 0), WEIR_EPERM, "read-only");
    assert_err(weir_eventlog_retain(log, &n), WEIR_EPERM, "read-only");
    assert_ok(weir_eventlog_close(log));
    assert_ok(weir_eventlog_close(NULL));
    weir_eventlog_reader_close(NULL);
}

static void a_topic_that_is_not_there_is_not_created(void **state) {
    (void)state;
    weir_eventlog *log = NULL;
    const weir_eventlog_opts none = {0}, read_only = {.read_only = true};
    assert_err(weir_eventlog_open(weir_test_folder(), "t", &none, &log), WEIR_ENOTFOUND, "no topic 't'");
    assert_err(weir_eventlog_open(weir_test_folder(), "t", &read_only, &log), WEIR_ENOTFOUND, "weir log ls");
    assert_false(weir_path_exists(weir_test_path("t")));
}

static void a_recreated_topic_has_another_id(void **state) {
    (void)state;
    weir_eventlog *log = fixture_open(weir_test_folder(), 1, 0);
    uint64_t id = weir_eventlog_creation_id(log);
    fixture_append(log, 0, 0, 5);
    assert_ok(weir_eventlog_close(log));
    weir_eventlog *other = fixture_open_read_only(weir_test_folder());
    weir_eventlog_reader *reader = NULL;
    weir_record record;
    size_t count;
    assert_ok(weir_eventlog_reader_open(other, 0, 5, &reader));

    assert_ok(weir_folder_remove(weir_test_path("t")));
    assert_err(weir_eventlog_reader_next(reader, &record, 1, &count), WEIR_ENOTFOUND, "removed or created anew");
    log = fixture_open(weir_test_folder(), 1, 0);
    assert_true(weir_eventlog_creation_id(log) != id);
    fixture_append(log, 0, 0, 9);
    assert_ok(weir_eventlog_sync(log));
    assert_err(weir_eventlog_reader_next(reader, &record, 1, &count), WEIR_ENOTFOUND, "removed or created anew");
    weir_eventlog_reader_close(reader);
    assert_ok(weir_eventlog_close(other));
    assert_ok(weir_eventlog_close(log));
}

/* Reads on to the end of the segment that is open, and steps to the next. */
static weir_err read_to_the_step(weir_eventlog_reader *reader) {
    weir_record records[16];
    size_t count = 1;
    weir_err err = WEIR_OK;
    while (!err && count)
        err = weir_eventlog_reader_next(reader, records, 16, &count);
    return err;
}

/* A reader that is behind asks for no marks before its step: the step must see that the topic has gone. */
static void a_reader_that_is_behind_sees_that_the_topic_is_gone(void **state) {
    (void)state;
    weir_eventlog *log = fixture_open(weir_test_folder(), 1, WEIR_EVENTLOG_SEGMENT_MIN);
    fixture_append(log, 0, 0, 100);
    assert_ok(weir_eventlog_sync(log));
    assert_true(fixture_stats(log, 0).segments > 1);
    assert_ok(weir_eventlog_close(log));
    weir_eventlog *other = fixture_open_read_only(weir_test_folder());
    weir_eventlog_reader *readers[3];
    weir_record record;
    size_t count;
    for (int i = 0; i < 3; i++) {
        assert_ok(weir_eventlog_reader_open(other, 0, 0, &readers[i]));
        assert_ok(weir_eventlog_reader_next(readers[i], &record, 1, &count));
        assert_int_equal(count, 1);
    }

    weir_elog_segment second = other->partitions[0].row.segments[1];
    const char *path = fixture_segment(weir_test_folder(), 0, second.first);
    assert_int_equal(rename(path, weir_test_path("aside")), 0); /* with its topic there it is damage, as ever */
    assert_err(read_to_the_step(readers[0]), WEIR_ECORRUPT, "bring the file back");
    assert_ok(weir_folder_remove(weir_test_path("t")));
    assert_err(read_to_the_step(readers[1]), WEIR_ENOTFOUND, "removed or created anew");
    log = fixture_open(weir_test_folder(), 1, WEIR_EVENTLOG_SEGMENT_MIN); /* the same files of another topic */
    fixture_append(log, 0, 0, 100);
    assert_ok(weir_eventlog_sync(log));
    assert_true(weir_path_exists(path));
    assert_err(read_to_the_step(readers[2]), WEIR_ENOTFOUND, "removed or created anew");
    for (int i = 0; i < 3; i++)
        weir_eventlog_reader_close(readers[i]);
    assert_ok(weir_eventlog_close(other));
    assert_ok(weir_eventlog_close(log));
}

/* What a producer has put into a partition must be found there by every later version. */
static void partition_of_a_key_is_the_same_for_ever(void **state) {
    (void)state;
    weir_eventlog *log = fixture_open(weir_test_folder(), 7, 0);
    assert_int_equal(weir_eventlog_partition_of(log, "", 0), 0x2D06800538D394C2ull % 7); /* XXH3's published vector */
    unsigned seen = 0;
    for (unsigned i = 0; i < 200; i++) {
        char key[16];
        size_t length = (size_t)snprintf(key, sizeof key, "key-%u", i);
        uint32_t partition = weir_eventlog_partition_of(log, key, length);
        assert_int_equal(partition, weir_xxh3(key, length, 0) % 7);
        seen |= 1u << partition;
    }
    assert_int_equal(seen, 127);
    assert_ok(weir_eventlog_close(log));
}

static weir_err collect_topic(void *context, const char *topic) {
    strcat(context, topic);
    strcat(context, " ");
    return WEIR_OK;
}

static void topics_are_listed_by_name(void **state) {
    (void)state;
    char names[256] = "";
    const weir_eventlog_opts opts = {.partitions = 1};
    assert_ok(weir_eventlog_topics(weir_test_path("missing"), collect_topic, names));
    for (const char *const *name = (const char *const[]){"zebra", "ant", "m.1", NULL}; *name; name++) {
        weir_eventlog *log = NULL;
        assert_ok(weir_eventlog_open(weir_test_folder(), *name, &opts, &log));
        assert_ok(weir_eventlog_close(log));
    }
    assert_int_equal(mkdir(weir_test_path("no-topic"), 0750), 0);
    assert_int_equal(mkdir(weir_test_path("no topic"), 0750), 0);
    assert_ok(weir_eventlog_topics(weir_test_folder(), collect_topic, names));
    assert_string_equal(names, "ant m.1 zebra ");
}

WEIR_TESTS(WEIR_CASE(append_then_read_back), WEIR_CASE(close_makes_durable_and_reopen_goes_on),
           WEIR_CASE(l1_offsets_are_consecutive_across_segments), WEIR_CASE(segments_keep_to_their_size),
           WEIR_CASE(l2_a_reader_sees_only_what_is_durable), WEIR_CASE(l2_not_even_what_is_already_in_the_file),
           WEIR_CASE(l2_a_reader_forgets_what_was_not_yet_durable), WEIR_CASE(l2_a_read_only_log_follows_the_marks),
           WEIR_CASE(sync_partition_leaves_the_others), WEIR_CASE(seek_finds_every_offset_of_a_large_segment),
           WEIR_CASE(seek_notes_its_way_for_the_next), WEIR_CASE(keys_and_values_may_be_empty_or_absent),
           WEIR_CASE(record_max_and_one_past_it), WEIR_CASE(batch_max_and_one_past_it),
           WEIR_CASE(batch_bytes_max_and_one_past_it), WEIR_CASE(options_at_and_past_their_limits),
           WEIR_CASE(topic_names_at_and_past_their_limits), WEIR_CASE(wrong_arguments_change_nothing),
           WEIR_CASE(read_only_refuses_to_write), WEIR_CASE(a_topic_that_is_not_there_is_not_created),
           WEIR_CASE(a_recreated_topic_has_another_id), WEIR_CASE(a_reader_that_is_behind_sees_that_the_topic_is_gone),
           WEIR_CASE(partition_of_a_key_is_the_same_for_ever), WEIR_CASE(topics_are_listed_by_name))

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * format_test.c - the bytes of version 1, which every later version must read.
 *
 * tests/golden/eventlog/v1 was made from the tables in eventlog.h by a program that shares no code with this module,
 * with a checksum computed bit by bit.
 */
#include "eventlog_private.h"

#include <stdlib.h>

#include <weir/store/base/bytes.h>
#include <weir/store/base/hash.h>

#include "eventlog_fixture.h"

#define GOLDEN_ID 0x1122334455667788ull

static const char *golden_copy(void) {
    const char *source = getenv("WEIR_SOURCE_DIR");
    char from[4096];
    if (!source) weir_test_skip("WEIR_SOURCE_DIR does not say where the golden files are");
    snprintf(from, sizeof from, "%s/tests/golden/eventlog/v1", source);
    fixture_copy(from, weir_test_path("golden"));
    return weir_test_path("golden");
}

/* Record n of the golden files. */
static weir_record golden_record(uint64_t n, char key[32], char value[32]) {
    weir_record record = {.offset = n, .time_us = 1700000000000000 + (int64_t)n, .value = value};
    value[0] = key[0] = 0;
    if (n % 7 != 6) record.value_length = (size_t)snprintf(value, 32, "value %" PRIu64, n);
    if (n % 5 == 0) return record;
    record.key = key;
    if (n % 5 != 3) record.key_length = (size_t)snprintf(key, 32, "key-%" PRIu64, n);
    return record;
}

static void golden_check(weir_eventlog *log, uint32_t partition, uint64_t begin, uint64_t end) {
    weir_eventlog_reader *reader = NULL;
    weir_record record;
    size_t count;
    assert_int_equal(fixture_stats(log, partition).offset_begin, begin);
    assert_int_equal(fixture_stats(log, partition).offset_durable, end);
    assert_ok(weir_eventlog_reader_open(log, partition, begin, &reader));
    for (uint64_t n = begin; n < end; n++) {
        char key[32], value[32];
        weir_record expected = golden_record(n, key, value);
        assert_ok(weir_eventlog_reader_next(reader, &record, 1, &count));
        assert_int_equal(count, 1);
        assert_int_equal(record.offset, n);
        assert_true(fixture_same(&record, &expected));
    }
    assert_ok(weir_eventlog_reader_next(reader, &record, 1, &count));
    assert_int_equal(count, 0);
    weir_eventlog_reader_close(reader);
}

static void golden_v1(void **state) {
    (void)state;
    const char *folder = golden_copy();
    const weir_eventlog_opts read_only = {.read_only = true}, writer = {0};
    for (unsigned i = 0; i < 2; i++) {
        weir_eventlog *log = NULL;
        assert_ok(weir_eventlog_open(folder, "t", i ? &writer : &read_only, &log));
        assert_int_equal(weir_eventlog_partitions(log), 3);
        assert_int_equal(weir_eventlog_creation_id(log), GOLDEN_ID);
        golden_check(log, 0, 0, 8);
        golden_check(log, 1, 0, 0);
        golden_check(log, 2, 1500, 1502);
        assert_int_equal(fixture_stats(log, 0).tail_cut_bytes, 0);
        assert_ok(weir_eventlog_close(log));
    }
}

static void golden_v1_is_what_we_would_write(void **state) {
    (void)state;
    fixture_bytes file = fixture_load(fixture_segment(golden_copy(), 0, 5));
    weir_elog_origin origin = weir_elog_origin_of(NULL, GOLDEN_ID, 0);
    uint8_t bytes[512];
    size_t length = ELOG_SEGMENT_HEADER;
    weir_elog_segment_header_encode(bytes, &origin, 5);
    for (uint64_t n = 5; n < 8; n++) {
        char key[32], value[32];
        weir_record record = golden_record(n, key, value);
        weir_elog_record_encode(bytes + length, &origin, &record, n, 5);
        length += weir_elog_record_bytes(&record);
    }
    assert_int_equal(length, file.length);
    assert_memory_equal(bytes, file.bytes, length);
    weir_free(file.bytes);

    file = fixture_load(weir_test_path("golden/t/topic"));
    weir_elog_topic_encode(bytes, GOLDEN_ID, 3);
    assert_int_equal(file.length, ELOG_TOPIC_BYTES);
    assert_memory_equal(bytes, file.bytes, file.length);
    weir_free(file.bytes);

    file = fixture_load(weir_test_path("golden/t/durable"));
    origin = weir_elog_origin_of(NULL, GOLDEN_ID, 2);
    weir_elog_mark_encode(bytes, &origin, 1502);
    assert_memory_equal(bytes, file.bytes + file.length - ELOG_MARK_BYTES, ELOG_MARK_BYTES);
    weir_free(file.bytes);
}

static void another_version_is_refused_with_what_to_do(void **state) {
    (void)state;
    const char *folder = golden_copy();
    const weir_eventlog_opts opts = {0};
    weir_eventlog *log = NULL;
    fixture_bytes segment = fixture_load(fixture_segment(folder, 0, 5));
    segment.bytes[7] = '2';
    fixture_store(fixture_segment(folder, 0, 5), segment.bytes, segment.length);
    assert_err(weir_eventlog_open(folder, "t", &opts, &log), WEIR_EVERSION, "version 2");
    segment.bytes[7] = '1';
    fixture_store(fixture_segment(folder, 0, 5), segment.bytes, segment.length);
    fixture_store(weir_test_path("golden/t/topic"), "WEIRTOP7 and then who knows what", 32);
    assert_err(weir_eventlog_open(folder, "t", &opts, &log), WEIR_EVERSION, "use the weir that wrote it");
    weir_free(segment.bytes);
}

static void a_record_decodes_to_what_was_encoded(void **state) {
    (void)state;
    weir_elog_origin origin = weir_elog_origin_of(NULL, 7, 3), partition = weir_elog_origin_of(NULL, 7, 4);
    weir_elog_origin topic = weir_elog_origin_of(NULL, 8, 3);
    uint8_t bytes[FIXTURE_VALUE_MAX + 64];
    for (uint64_t n = 0; n < 200; n++) {
        fixture_record made;
        weir_record read;
        fixture_make(&made, n, 0, 0);
        size_t length = weir_elog_record_bytes(&made.record);
        weir_elog_record_encode(bytes, &origin, &made.record, n, n / 2);
        assert_int_equal(weir_elog_record_length(bytes), length);
        assert_int_equal(weir_elog_record_claim(bytes), n / 2);
        assert_true(weir_elog_record_decode(bytes, length, &origin, &read));
        assert_int_equal(read.offset, n);
        assert_true(fixture_same(&read, &made.record));
        assert_false(weir_elog_record_decode(bytes, length, &partition, &read));
        assert_false(weir_elog_record_decode(bytes, length, &topic, &read));
    }
}

/* A key that claims to be longer than its record, with a checksum that is right. */
static void a_key_longer_than_its_record_is_refused(void **state) {
    (void)state;
    weir_elog_origin origin = weir_elog_origin_of(NULL, 7, 3);
    uint8_t bytes[64];
    weir_record read;
    const weir_record record = {.key = "ab", .key_length = 2, .value = "cd", .value_length = 2};
    for (uint32_t key_length = 0; key_length < 8; key_length++) {
        weir_elog_record_encode(bytes, &origin, &record, 0, 0);
        weir_put_u32(bytes + 24, key_length);
        weir_put_u32(bytes, weir_crc32c(origin.salt, bytes + 4, 32));
        assert_int_equal(weir_elog_record_decode(bytes, 36, &origin, &read), key_length <= 4);
    }
}

/* Past 32 bits of lag a record no longer knows what was durable, and must not guess. */
static void the_lag_saturates(void **state) {
    (void)state;
    weir_elog_origin origin = weir_elog_origin_of(NULL, 1, 0);
    uint8_t bytes[64];
    const weir_record record = {0};
    const uint64_t offset = 0x200000000ull;
    weir_elog_record_encode(bytes, &origin, &record, offset, offset - 0xFFFFFFFEull);
    assert_int_equal(weir_elog_record_claim(bytes), offset - 0xFFFFFFFEull);
    weir_elog_record_encode(bytes, &origin, &record, offset, offset - 0xFFFFFFFFull);
    assert_int_equal(weir_elog_record_claim(bytes), 0);
    weir_elog_record_encode(bytes, &origin, &record, offset, 0);
    assert_int_equal(weir_elog_record_claim(bytes), 0);
}

WEIR_TESTS(WEIR_CASE(golden_v1), WEIR_CASE(golden_v1_is_what_we_would_write),
           WEIR_CASE(another_version_is_refused_with_what_to_do), WEIR_CASE(a_record_decodes_to_what_was_encoded),
           WEIR_CASE(a_key_longer_than_its_record_is_refused), WEIR_CASE(the_lag_saturates))

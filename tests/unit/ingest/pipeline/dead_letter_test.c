/* SPDX-License-Identifier: Apache-2.0 */
/* dead_letter_test.c - a letter's bytes: back as they went, golden for ever, damaged ones refused. */
#include <string.h>

#include <weir/ingest/pipeline/dead_letter.h>
#include <weir/store/base/alloc.h>
#include <weir/store/base/rng.h>

#include "weir_test.h"

static weir_dead_letter sample(void) {
    return (weir_dead_letter){.source = "cards",
                              .source_length = 5,
                              .topic = "card-events",
                              .topic_length = 11,
                              .reason = "field 'a': missing",
                              .reason_length = 18,
                              .identity = 0x1122334455667788,
                              .offset = 0x0102030405060708,
                              .partition = 7,
                              .stream = WEIR_DEAD_LETTER_KAFKA,
                              .time_us = -5,
                              .key = "k",
                              .key_length = 1,
                              .bytes = "{broken",
                              .length = 7,
                              .value_length = 7};
}

static void check_same(const weir_dead_letter *a, const weir_dead_letter *b) {
    assert_int_equal(a->source_length, b->source_length);
    assert_memory_equal(a->source, b->source, a->source_length);
    assert_int_equal(a->topic_length, b->topic_length);
    assert_memory_equal(a->topic, b->topic, a->topic_length);
    assert_int_equal(a->reason_length, b->reason_length);
    assert_memory_equal(a->reason, b->reason, a->reason_length);
    assert_int_equal(a->identity, b->identity);
    assert_int_equal(a->offset, b->offset);
    assert_int_equal(a->partition, b->partition);
    assert_int_equal(a->stream, b->stream);
    assert_int_equal(a->cut, b->cut);
    assert_int_equal(a->time_us, b->time_us);
    assert_int_equal(a->key != NULL, b->key != NULL);
    assert_int_equal(a->key_length, b->key_length);
    if (a->key_length) assert_memory_equal(a->key, b->key, a->key_length);
    assert_int_equal(a->bytes != NULL, b->bytes != NULL);
    assert_int_equal(a->length, b->length);
    if (a->length) assert_memory_equal(a->bytes, b->bytes, a->length);
    assert_int_equal(a->value_length, b->value_length);
}

static void comes_back_as_it_went(void **state) {
    (void)state;
    weir_buf key = {0};
    for (int variant = 0; variant < 8; variant++) {
        weir_dead_letter letter = sample(), back;
        weir_record record;
        if (variant & 1) letter.key = NULL, letter.key_length = 0;
        if (variant & 2) letter.bytes = NULL, letter.length = letter.value_length = 0;
        if (variant & 4) letter.cut = true, letter.stream = WEIR_DEAD_LETTER_FILE;
        assert_ok(weir_dead_letter_write(&letter, &key, &record));
        assert_ok(weir_dead_letter_read(&record, &back));
        check_same(&back, &letter);
    }
    weir_buf_free(&key);
}

static void what_is_too_large_is_cut_and_says_so(void **state) {
    (void)state;
    weir_buf key = {0};
    weir_dead_letter letter = sample(), back;
    weir_record record;
    size_t huge = WEIR_DEAD_LETTER_BYTES_MAX + 1;
    char *bytes = weir_calloc(huge, 1);
    letter.bytes = bytes;
    for (size_t length = huge - 1; length <= huge; length++) {
        letter.length = letter.value_length = length;
        assert_ok(weir_dead_letter_write(&letter, &key, &record));
        assert_ok(weir_dead_letter_read(&record, &back));
        assert_int_equal(back.cut, length == huge);
        assert_int_equal(back.length, WEIR_DEAD_LETTER_BYTES_MAX);
        assert_int_equal(back.value_length, length);
        assert_true(record.key_length + record.value_length + WEIR_EVENTLOG_RECORD_OVERHEAD <=
                    WEIR_EVENTLOG_RECORD_MAX);
    }
    letter.key = bytes; /* both at once still fit into a record */
    letter.key_length = huge;
    assert_ok(weir_dead_letter_write(&letter, &key, &record));
    assert_true(record.key_length + record.value_length + WEIR_EVENTLOG_RECORD_OVERHEAD <= WEIR_EVENTLOG_RECORD_MAX);
    assert_ok(weir_dead_letter_read(&record, &back));
    assert_true(back.cut);
    weir_free(bytes);
    weir_buf_free(&key);
}

/* Version 1, written by hand from the table in the header. */
static void golden_v1(void **state) {
    (void)state;
    static const unsigned char bytes[] =
        "\x01\x00\x01\x00\x07\x00\x00\x00\x88\x77\x66\x55\x44\x33\x22\x11\xfb\xff\xff\xff\xff\xff\xff\xff"
        "\x07\x00\x00\x00\x00\x00\x00\x00\x08\x07\x06\x05\x04\x03\x02\x01\x05\x00\x0b\x00\x12\x00\x00\x00"
        "\x01\x00\x00\x00\x00\x00\x00\x00"
        "cardscard-eventsfield 'a': missingk";
    weir_buf key = {0};
    weir_dead_letter letter = sample(), back;
    weir_record record;
    assert_ok(weir_dead_letter_write(&letter, &key, &record));
    assert_int_equal(record.key_length, sizeof bytes - 1);
    assert_memory_equal(record.key, bytes, sizeof bytes - 1);
    record.key = bytes;
    assert_ok(weir_dead_letter_read(&record, &back));
    check_same(&back, &letter);
    weir_buf_free(&key);
}

static void damaged_headers_are_refused(void **state) {
    (void)state;
    weir_rng rng = weir_rng_stream(weir_test_seed(), 0, 0);
    weir_buf key = {0};
    weir_dead_letter letter = sample(), back;
    weir_record record, changed;
    assert_ok(weir_dead_letter_write(&letter, &key, &record));
    for (size_t length = 0; length < record.key_length; length++) {
        char *exact = weir_malloc(length + 1);
        memcpy(exact, record.key, length);
        changed = record;
        changed.key = exact;
        changed.key_length = length;
        assert_err(weir_dead_letter_read(&changed, &back), WEIR_ECORRUPT, "damaged");
        weir_free(exact);
    }
    changed = record;
    changed.key = NULL;
    assert_err(weir_dead_letter_read(&changed, &back), WEIR_ECORRUPT, NULL);
    key.bytes[0] = 2;
    assert_err(weir_dead_letter_read(&record, &back), WEIR_EVERSION, "version 2");
    key.bytes[0] = 1;
    for (int i = 0; i < 20000; i++) { /* whatever stands there: an error, or places inside the record */
        char kept[56];
        memcpy(kept, key.bytes, sizeof kept);
        for (int j = 0; j < 3; j++)
            key.bytes[weir_rng_below(&rng, sizeof kept)] = (char)weir_rng_u32(&rng);
        if (!weir_dead_letter_read(&record, &back)) {
            assert_true(back.source >= key.bytes && back.reason + back.reason_length <= key.bytes + key.length);
        }
        memcpy(key.bytes, kept, sizeof kept);
    }
    weir_buf_free(&key);
}

WEIR_TESTS(WEIR_CASE(comes_back_as_it_went), WEIR_CASE(what_is_too_large_is_cut_and_says_so), WEIR_CASE(golden_v1),
           WEIR_CASE(damaged_headers_are_refused))

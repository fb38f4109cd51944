/* SPDX-License-Identifier: Apache-2.0 */
/* format_test.c - ids, rows, keys and batches: what is written reads back, sorts as promised, and is refused when
 * damaged. */
#include "weir_test.h"

#include "met_names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/store/base/bytes.h>
#include <weir/store/base/hash.h>
#include <weir/store/base/rng.h>
#include <weir/store/format/key.h>
#include <weir/store/format/row.h>
#include <weir/store/format/stored.h>

#define ROUNDS 2000u

static const weir_id_key key_a = {"0123456789abcde"}, key_b = {"0123456789abcdf"};

static void ids_part_type_and_key(void **state) {
    (void)state;
    assert_true(weir_vertex_id(&key_a, "ab", "c", 1) != weir_vertex_id(&key_a, "a", "bc", 2));
    assert_true(weir_vertex_id(&key_a, "a", "x", 1) == weir_vertex_id(&key_a, "a", "x", 1));
    assert_true(weir_event_id_at(&key_a, "t", 0, 1) != weir_event_id_at(&key_a, "t", 1, 0));
    assert_true(weir_event_id(&key_a, "event", "e", 1) != weir_event_id(&key_a, "event", "f", 1));
    /* An event's name may have the bytes of another one's place. */
    static const char position[12] = {0};
    assert_true(weir_event_id(&key_a, "t", position, 12) != weir_event_id_at(&key_a, "t", 0, 0));
}

/* A topic may have 249 bytes: its events without names have ids all the same. */
static void the_longest_topic_and_the_longest_key_fit(void **state) {
    (void)state;
    char topic[250] = {0}, key[WEIR_KEY_MAX];
    memset(topic, 't', sizeof topic - 1);
    memset(key, 'k', sizeof key);
    assert_true(weir_event_id_at(&key_a, topic, 0, 1) != weir_event_id_at(&key_a, topic, 0, 2));
    assert_true(weir_event_id(&key_a, topic, key, sizeof key) != weir_event_id(&key_a, topic, key, sizeof key - 1));
    assert_true(weir_vertex_id(&key_a, topic, key, sizeof key) != weir_vertex_id(&key_a, topic, key, sizeof key - 1));
}

/* Who knows the ids under one key knows nothing of those under another: about half of all bits differ. */
static void ids_depend_on_every_bit_of_the_key(void **state) {
    (void)state;
    unsigned changed = 0;
    weir_vertex id = weir_vertex_id(&key_a, "account", "a17", 3);
    for (unsigned bit = 0; bit < 128; bit++) {
        weir_id_key other = key_a;
        other.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        weir_vertex difference = id ^ weir_vertex_id(&other, "account", "a17", 3);
        assert_true(weir_vertex_high(difference) && weir_vertex_low(difference));
        assert_true(weir_event_id(&key_a, "e", "x", 1) != weir_event_id(&other, "e", "x", 1));
        assert_true(weir_event_id_at(&key_a, "e", 1, 2) != weir_event_id_at(&other, "e", 1, 2));
        changed += (unsigned)__builtin_popcountll(weir_vertex_high(difference));
        changed += (unsigned)__builtin_popcountll(weir_vertex_low(difference));
    }
    assert_true(changed > 128 * 64 - 400 && changed < 128 * 64 + 400); /* the deviation is 64 */
    assert_true(weir_vertex_id(&key_a, "a", "x", 1) != weir_vertex_id(&key_b, "a", "x", 1));
    weir_id_key drawn, again;
    assert_ok(weir_id_key_draw(&drawn));
    assert_ok(weir_id_key_draw(&again));
    assert_true(memcmp(&drawn, &again, sizeof drawn) != 0);
}

/* Written down once: a store must find its vertices after every update of the program. */
static void ids_are_what_they_were(void **state) {
    (void)state;
    char text[33];
    snprintf(text, sizeof text, WEIR_VERTEX_FORMAT, WEIR_VERTEX_WORDS(weir_vertex_id(&key_a, "account", "a17", 3)));
    assert_string_equal(text, "1329dd39f5adef9691d1c5cb809577a3");
    assert_true(weir_event_id(&key_a, "event", "e7", 2) == 0xff59aad7c016d5a6);
    assert_true(weir_event_id_at(&key_a, "payments", 3, 9) == 0x13bf2127640b8fe9);
}

static void names_that_met_under_the_old_hash_do_not(void **state) {
    (void)state;
    assert_true(met_hash(MET_KEY) == met_hash(MET_TWIN));
    weir_vertex a = weir_vertex_id(&key_a, MET_TYPE, MET_KEY, strlen(MET_KEY));
    weir_vertex b = weir_vertex_id(&key_a, MET_TYPE, MET_TWIN, strlen(MET_TWIN));
    assert_true(weir_vertex_high(a) != weir_vertex_high(b) && weir_vertex_low(a) != weir_vertex_low(b));
}

/* Chi-square over so many shards; small, as tests number their vertices, or the ids of names. */
static double chi_of_shards(uint32_t shards, unsigned each, bool names) {
    unsigned counts[WEIR_SHARDS_MAX] = {0};
    double chi = 0;
    for (unsigned v = 0; v < shards * each; v++) {
        char key[16];
        size_t length = (size_t)snprintf(key, sizeof key, "a%07u", v);
        counts[weir_shard_of(names ? weir_vertex_id(&key_a, "account", key, length) : v, shards)]++;
    }
    for (uint32_t i = 0; i < shards; i++)
        chi += ((double)counts[i] - each) * ((double)counts[i] - each) / each;
    return chi;
}

/* 15 degrees of freedom: above 50 is one in a hundred thousand; 255: above 365 the same. The key is fixed, so this does
 * not depend on luck. */
static void shards_are_even(void **state) {
    (void)state;
    assert_true(chi_of_shards(16, 4000, true) < 50);
    assert_true(chi_of_shards(256, 1000, true) < 365);
    assert_true(chi_of_shards(16, 4000, false) < 50);
}

/* --- rows ----------------------------------------------------------------------------------------------------------
 * */

static size_t random_row(weir_rng *rng, weir_value_kind *kinds, weir_value *values) {
    static const char text[WEIR_ROW_TEXT_MAX + 1] = "the quick brown fox jumps over the lazy dog";
    size_t count = weir_rng_below(rng, 20);
    for (size_t i = 0; i < count; i++) {
        kinds[i] = (weir_value_kind)weir_rng_below(rng, 3);
        values[i] = (weir_value){.present = weir_rng_below(rng, 2)};
        if (!values[i].present) continue;
        if (kinds[i] == WEIR_VALUE_NUMBER) values[i].number = weir_rng_normal(rng) * 1e6;
        if (kinds[i] == WEIR_VALUE_TIME) values[i].time_us = (int64_t)weir_rng_u64(rng);
        if (kinds[i] == WEIR_VALUE_CATEGORY) {
            values[i].text = text;
            values[i].text_length = (uint8_t)weir_rng_below(rng, 256);
        }
    }
    return count;
}

static void same_value(weir_value_kind kind, const weir_value *a, const weir_value *b) {
    assert_int_equal(a->present, b->present);
    if (!a->present) return;
    if (kind == WEIR_VALUE_NUMBER) assert_true(a->number == b->number);
    if (kind == WEIR_VALUE_TIME) assert_true(a->time_us == b->time_us);
    if (kind != WEIR_VALUE_CATEGORY) return;
    assert_int_equal(a->text_length, b->text_length);
    assert_memory_equal(a->text, b->text, a->text_length);
}

static void rows_read_back(void **state) {
    (void)state;
    weir_rng rng = weir_rng_stream(weir_test_seed(), 1, 0);
    for (uint64_t round = weir_test_rounds(ROUNDS); round > 0; round--) {
        weir_value_kind kinds[20];
        weir_value values[20], read[20];
        uint8_t row[WEIR_ROW_BYTES_MAX];
        size_t count = random_row(&rng, kinds, values), size = weir_row_size(kinds, values, count);
        assert_int_equal(weir_row_write(kinds, values, count, row), size);
        assert_ok(weir_row_check(kinds, count, row, size));
        weir_row_read(kinds, count, row, size, read);
        for (size_t i = 0; i < count; i++)
            same_value(kinds[i], &values[i], &read[i]);
    }
}

/* Any bytes: refused, or read without looking past their end (the address sanitizer watches). */
static void damaged_rows_are_refused_or_whole(void **state) {
    (void)state;
    weir_rng rng = weir_rng_stream(weir_test_seed(), 2, 0);
    for (uint64_t round = weir_test_rounds(ROUNDS); round > 0; round--) {
        weir_value_kind kinds[20];
        weir_value values[20];
        uint8_t row[WEIR_ROW_BYTES_MAX];
        size_t count = random_row(&rng, kinds, values), size = weir_row_write(kinds, values, count, row);
        if (weir_rng_below(&rng, 2)) size = weir_rng_below(&rng, size + 1);
        for (uint64_t flips = weir_rng_below(&rng, 3); size && flips > 0; flips--) {
            row[weir_rng_below(&rng, size)] ^= (uint8_t)(1u << weir_rng_below(&rng, 8));
        }
        uint8_t *exact = malloc(size + !size);
        memcpy(exact, row, size);
        if (!weir_row_check(kinds, count, exact, size)) weir_row_read(kinds, count, exact, size, values);
        free(exact);
    }
}

static void fill_keeps_the_newest_of_each_feature(void **state) {
    (void)state;
    static const weir_value_kind kinds[2] = {WEIR_VALUE_NUMBER, WEIR_VALUE_NUMBER};
    const weir_value newer[2] = {{.present = true, .number = 1}, {0}};
    const weir_value older[2] = {{.present = true, .number = 2}, {.present = true, .number = 3}};
    uint8_t row[64];
    weir_value values[2] = {{0}};
    size_t size = weir_row_write(kinds, newer, 2, row);
    assert_int_equal(weir_row_fill(kinds, 2, row, size, values), 1);
    size = weir_row_write(kinds, older, 2, row);
    assert_int_equal(weir_row_fill(kinds, 2, row, size, values), 2);
    assert_true(values[0].number == 1 && values[1].number == 3);
}

/* --- keys ----------------------------------------------------------------------------------------------------------
 * */

static weir_edge_key random_edge(weir_rng *rng) {
    int64_t times[] = {0, -1, 1, INT64_MIN, INT64_MAX, (int64_t)weir_rng_u64(rng)};
    return (weir_edge_key){
        .vertex = weir_vertex_make(weir_rng_below(rng, 3), weir_rng_below(rng, 3)),
        .relation = (uint16_t)weir_rng_below(rng, 2),
        .direction = weir_rng_below(rng, 2) ? WEIR_IN : WEIR_OUT,
        .deletion = weir_rng_below(rng, 2),
        .time_us = times[weir_rng_below(rng, 6)],
        .neighbor = weir_vertex_make(weir_rng_below(rng, 3), weir_rng_below(rng, 3)),
        .event = weir_rng_below(rng, 3),
        .content = (uint32_t)weir_rng_below(rng, 3),
    };
}

#define COMPARE(a, b) \
    if ((a) != (b)) return (a) < (b) ? -1 : 1

/* The order that the header promises, field by field. */
static int edge_order(const weir_edge_key *a, const weir_edge_key *b) {
    COMPARE(a->vertex, b->vertex);
    COMPARE(a->relation, b->relation);
    COMPARE(a->direction, b->direction);
    COMPARE(b->time_us, a->time_us);
    COMPARE(!a->deletion, !b->deletion);
    COMPARE(a->neighbor, b->neighbor);
    COMPARE(a->event, b->event);
    COMPARE(a->content, b->content);
    return 0;
}

static int sign(int n) {
    return (n > 0) - (n < 0);
}

static void edge_keys_sort_as_readers_go(void **state) {
    (void)state;
    weir_rng rng = weir_rng_stream(weir_test_seed(), 3, 0);
    for (uint64_t round = weir_test_rounds(10 * ROUNDS); round > 0; round--) {
        weir_edge_key a = random_edge(&rng), b = random_edge(&rng), back;
        uint8_t x[WEIR_EDGE_KEY_BYTES], y[WEIR_EDGE_KEY_BYTES];
        weir_edge_key_write(&a, x);
        weir_edge_key_write(&b, y);
        assert_int_equal(sign(memcmp(x, y, sizeof x)), edge_order(&a, &b));
        assert_true(weir_edge_key_read(x, sizeof x, &back));
        assert_int_equal(edge_order(&a, &back), 0);
    }
}

/* Byte by byte. */
static void edge_keys_have_the_bytes_that_are_written_down(void **state) {
    (void)state;
    static const uint8_t expected[WEIR_EDGE_KEY_BYTES] = {
        'E',  0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x0e,
        0x0f, 0x10, 0x00, 0x07, 0x01, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xf5, 0x01, 0x11,
        0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x19, 0x1a, 0x1b, 0x1c, 0x1d, 0x1e, 0x1f, 0x20,
        0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x63, 0x21, 0x22, 0x23, 0x24};
    const weir_edge_key key = {.vertex = weir_vertex_make(0x0102030405060708, 0x090a0b0c0d0e0f10),
                               .relation = 7,
                               .direction = WEIR_IN,
                               .time_us = 10,
                               .neighbor = weir_vertex_make(0x1112131415161718, 0x191a1b1c1d1e1f20),
                               .event = 99,
                               .content = 0x21222324};
    uint8_t bytes[WEIR_EDGE_KEY_BYTES];
    weir_edge_key_write(&key, bytes);
    assert_memory_equal(bytes, expected, sizeof bytes);
}

static void other_keys_read_back(void **state) {
    (void)state;
    uint8_t key[WEIR_EDGE_KEY_BYTES], value[WEIR_STORED_NAME_MAX];
    const weir_version_key written = {.vertex = 7, .time_us = -5, .event = 9, .content = 11};
    weir_version_key read;
    weir_vertex vertex;
    int64_t time_us;
    uint32_t source, partition;
    uint16_t label, type;
    const char *name;
    size_t length;
    weir_feature_key_write(&written, key);
    assert_true(weir_feature_key_read(key, WEIR_FEATURE_KEY_BYTES, &read));
    assert_true(read.vertex == 7 && read.time_us == -5 && read.event == 9 && read.content == 11);
    assert_false(weir_event_key_read(key, WEIR_EVENT_KEY_BYTES, &read));
    weir_event_key_write(&written, key);
    assert_true(weir_event_key_read(key, WEIR_EVENT_KEY_BYTES, &read));
    assert_true(read.vertex == 7 && read.time_us == -5 && read.event == 9 && read.content == 11);
    weir_label_key_write(&written, 3, key);
    assert_true(weir_label_key_read(key, WEIR_LABEL_KEY_BYTES, &read, &label));
    assert_true(read.vertex == 7 && label == 3 && read.time_us == -5 && read.event == 9 && read.content == 11);
    weir_name_key_write(weir_vertex_make(UINT64_MAX, 5), key);
    assert_true(weir_name_key_read(key, WEIR_NAME_KEY_BYTES, &vertex) && vertex == weir_vertex_make(UINT64_MAX, 5));
    assert_false(weir_name_key_read(key, 9, &vertex)); /* format 1 */
    weir_offset_key_write(1, 2, key);
    assert_true(weir_offset_key_read(key, WEIR_OFFSET_KEY_BYTES, &source, &partition) && source == 1 && partition == 2);
    weir_put_key_write(4, -6, key);
    assert_true(weir_put_key_read(key, WEIR_PUT_KEY_BYTES, &vertex, &time_us) && vertex == 4 && time_us == -6);
    assert_false(weir_deleted_key_read(key, WEIR_DELETED_KEY_BYTES, &vertex, &time_us));
    weir_deleted_key_write(4, 6, key);
    assert_true(weir_deleted_key_read(key, WEIR_DELETED_KEY_BYTES, &vertex, &time_us) && vertex == 4 && time_us == 6);
    assert_false(weir_deleted_key_read(key, WEIR_DELETED_KEY_BYTES - 1, &vertex, &time_us));
    length = weir_stored_name_write(2, -3, "key", 3, value);
    assert_true(weir_stored_name_read(value, length, &type, &time_us, &name, &length));
    assert_true(type == 2 && time_us == -3 && length == 3 && memcmp(name, "key", 3) == 0);
    assert_false(weir_stored_name_read(value, WEIR_STORED_NAME_PREFIX - 1, &type, &time_us, &name, &length));
}

/* --- batches -------------------------------------------------------------------------------------------------------
 * */

static void batch_of_three(weir_buf *buf) {
    const weir_mutation m[3] = {
        {.kind = WEIR_PUT_VERTEX,
         .type = 1,
         .offset = 100,
         .vertex = weir_vertex_make(50, 5),
         .time_us = -7,
         .event = 8,
         .key = "k",
         .key_length = 1},
        {.kind = WEIR_PUT_EDGE,
         .direction = WEIR_IN,
         .offset = 100,
         .vertex = weir_vertex_make(60, 6),
         .neighbor = weir_vertex_make(50, 5),
         .row = (const uint8_t *)"row",
         .row_length = 3},
        {.kind = WEIR_DELETE_VERTEX, .offset = 100 + 0xffffffffull, .vertex = 9},
    };
    const weir_batch_span span = {3, 4, 100, 100 + 0x100000000ull};
    weir_batch_begin(buf);
    for (size_t i = 0; i < 3; i++)
        weir_batch_add(buf, &m[i], span.offset_begin);
    weir_batch_end(buf, &span, 3);
    assert_ok(weir_buf_err(buf));
}

static void batches_read_back(void **state) {
    (void)state;
    weir_buf buf = {0};
    weir_batch_cursor cursor;
    weir_mutation m;
    batch_of_three(&buf);
    assert_ok(weir_batch_open(buf.bytes, buf.length, &cursor));
    assert_true(cursor.span.source == 3 && cursor.span.partition == 4 && cursor.span.offset_begin == 100);
    assert_true(weir_batch_next(&cursor, &m));
    assert_true(m.kind == WEIR_PUT_VERTEX && m.type == 1 && m.vertex == weir_vertex_make(50, 5) && m.time_us == -7 &&
                m.event == 8);
    assert_true(m.key_length == 1 && m.key[0] == 'k' && m.row_length == 0);
    assert_true(weir_batch_next(&cursor, &m));
    assert_true(m.vertex == weir_vertex_make(60, 6) && m.neighbor == weir_vertex_make(50, 5));
    assert_true(m.kind == WEIR_PUT_EDGE && m.direction == WEIR_IN && m.row_length == 3 && memcmp(m.row, "row", 3) == 0);
    assert_true(weir_batch_next(&cursor, &m));
    assert_true(m.kind == WEIR_DELETE_VERTEX && m.offset == 100 + 0xffffffffull);
    assert_false(weir_batch_next(&cursor, &m));
    weir_buf_free(&buf);
}

/* An event's time is that of its first mutation; one that has only its note has none. */
static void events_of_a_batch_are_walked_whole(void **state) {
    (void)state;
    static const struct {
        weir_mutation_kind kind;
        uint64_t offset;
        int64_t time_us;
    } put[] = {{WEIR_NOTE_EVENT, 10, 10}, {WEIR_NOTE_EVENT, 11, 11}, {WEIR_PUT_VERTEX, 11, -5}, {WEIR_PUT_EDGE, 11, -4},
               {WEIR_NOTE_EVENT, 11, 11}, {WEIR_PUT_EDGE, 12, 7},    {WEIR_NOTE_EVENT, 13, 13}};
    const size_t count = sizeof put / sizeof put[0];
    const weir_batch_span span = {3, 4, 10, 14};
    weir_buf buf = {0};
    weir_batch_cursor cursor;
    weir_batch_event event;
    weir_batch_begin(&buf);
    for (size_t i = 0; i < count; i++) {
        const weir_mutation m = {.kind = put[i].kind,
                                 .offset = put[i].offset,
                                 .time_us = put[i].time_us,
                                 .row = (const uint8_t *)"row",
                                 .row_length = (uint32_t)i % 4};
        weir_batch_add(&buf, &m, span.offset_begin);
    }
    weir_batch_end(&buf, &span, (uint32_t)count);
    assert_ok(weir_batch_open(buf.bytes, buf.length, &cursor));
    assert_true(weir_batch_next_event(&cursor, &event));
    assert_true(event.offset == 11 && event.time_us == -5);
    assert_true(weir_batch_next_event(&cursor, &event));
    assert_true(event.offset == 12 && event.time_us == 7);
    assert_false(weir_batch_next_event(&cursor, &event));
    weir_buf_free(&buf);
}

static void every_damaged_byte_and_every_cut_is_refused(void **state) {
    (void)state;
    weir_buf buf = {0};
    weir_batch_cursor cursor;
    batch_of_three(&buf);
    for (size_t i = 0; i < buf.length; i++) {
        buf.bytes[i] = (char)(buf.bytes[i] ^ 0x10);
        assert_err(weir_batch_open(buf.bytes, buf.length, &cursor), WEIR_ECORRUPT, NULL);
        buf.bytes[i] = (char)(buf.bytes[i] ^ 0x10);
        assert_err(weir_batch_open(buf.bytes, i, &cursor), WEIR_ECORRUPT, NULL);
    }
    weir_buf_free(&buf);
}

/* With the checksum made right, the content is still looked at. */
static void wrong_content_is_refused_behind_a_right_checksum(void **state) {
    (void)state;
    static const struct {
        size_t at;
        uint8_t byte;
        const char *why;
    } cases[] = {{WEIR_BATCH_HEADER_BYTES, 0, "unknown kind"},
                 {WEIR_BATCH_HEADER_BYTES, 7, "unknown kind"},
                 {WEIR_BATCH_HEADER_BYTES + 1, 2, "unknown direction"},
                 {WEIR_BATCH_HEADER_BYTES + 7, 0xff, "too long"},
                 {WEIR_BATCH_HEADER_BYTES + 15, 0x7f, "outside its span"},
                 {32, 2, "behind its last mutation"},
                 {32, 4, "ends inside a mutation"},
                 {35, 1, "too many mutations"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        weir_buf buf = {0};
        weir_batch_cursor cursor;
        batch_of_three(&buf);
        uint8_t *bytes = (uint8_t *)buf.bytes;
        bytes[cases[i].at] = cases[i].byte;
        weir_put_u32(bytes, weir_crc32c(0, bytes + 4, buf.length - 4));
        assert_err(weir_batch_open(buf.bytes, buf.length, &cursor), WEIR_ECORRUPT, cases[i].why);
        weir_buf_free(&buf);
    }
}

WEIR_TESTS(WEIR_CASE(ids_part_type_and_key), WEIR_CASE(the_longest_topic_and_the_longest_key_fit),
           WEIR_CASE(ids_depend_on_every_bit_of_the_key), WEIR_CASE(ids_are_what_they_were),
           WEIR_CASE(names_that_met_under_the_old_hash_do_not), WEIR_CASE(shards_are_even),
           WEIR_CASE(edge_keys_have_the_bytes_that_are_written_down), WEIR_CASE(rows_read_back),
           WEIR_CASE(damaged_rows_are_refused_or_whole), WEIR_CASE(fill_keeps_the_newest_of_each_feature),
           WEIR_CASE(edge_keys_sort_as_readers_go), WEIR_CASE(other_keys_read_back), WEIR_CASE(batches_read_back),
           WEIR_CASE(events_of_a_batch_are_walked_whole), WEIR_CASE(every_damaged_byte_and_every_cut_is_refused),
           WEIR_CASE(wrong_content_is_refused_behind_a_right_checksum))

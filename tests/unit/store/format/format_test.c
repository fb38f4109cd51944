/* SPDX-License-Identifier: Apache-2.0 */
/* format_test.c - ids, rows, keys and batches: what is written reads back, sorts as promised, and is refused when
 * damaged. */
#include "weir_test.h"

#include <stdlib.h>
#include <string.h>

#include <weir/base/bytes.h>
#include <weir/base/hash.h>
#include <weir/base/rng.h>
#include <weir/store/key.h>
#include <weir/store/row.h>
#include <weir/store/stored.h>

#define ROUNDS 2000u

static void ids_part_type_and_key(void **state) {
    (void)state;
    assert_true(weir_vertex_id("ab", "c", 1) != weir_vertex_id("a", "bc", 2));
    assert_true(weir_vertex_id("a", "x", 1) == weir_vertex_id("a", "x", 1));
    assert_true(weir_vertex_id("a", "x", 1) != weir_vertex_check("a", "x", 1));
    assert_true(weir_event_id_at("t", 0, 1) != weir_event_id_at("t", 1, 0));
    weir_vertex_id_bits(8);
    assert_true(weir_vertex_id("a", "x", 1) < 256);
    weir_vertex_id_bits(64);
}

/* Chi-square over 16 shards, 15 degrees of freedom: above 50 is one in a hundred thousand. */
static void shards_are_even_also_for_ids_that_are_not(void **state) {
    (void)state;
    double expected = 4000, chi = 0;
    unsigned counts[16] = {0};
    for (weir_vertex v = 0; v < 16 * 4000; v++)
        counts[weir_shard_of(v, 16)]++;
    for (size_t i = 0; i < 16; i++)
        chi += (counts[i] - expected) * (counts[i] - expected) / expected;
    assert_true(chi < 50);
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
        .vertex = weir_rng_below(rng, 3),
        .relation = (uint16_t)weir_rng_below(rng, 2),
        .direction = weir_rng_below(rng, 2) ? WEIR_IN : WEIR_OUT,
        .deletion = weir_rng_below(rng, 2),
        .time_us = times[weir_rng_below(rng, 6)],
        .neighbor = weir_rng_below(rng, 3),
        .event = weir_rng_below(rng, 3),
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

static void seek_finds_exactly_what_is_older(void **state) {
    (void)state;
    weir_rng rng = weir_rng_stream(weir_test_seed(), 4, 0);
    int64_t befores[] = {INT64_MIN, INT64_MIN + 1, -1, 0, 1, INT64_MAX};
    for (uint64_t round = weir_test_rounds(10 * ROUNDS); round > 0; round--) {
        weir_edge_key a = random_edge(&rng);
        int64_t before_us = befores[weir_rng_below(&rng, 6)];
        uint8_t key[WEIR_EDGE_KEY_BYTES], seek[WEIR_EDGE_KEY_BYTES];
        weir_edge_key_write(&a, key);
        weir_edge_seek_write(a.vertex, a.relation, a.direction, before_us, seek);
        if (before_us != INT64_MIN) assert_int_equal(memcmp(key, seek, sizeof key) >= 0, a.time_us < before_us);
    }
}

static void other_keys_read_back(void **state) {
    (void)state;
    uint8_t key[WEIR_EDGE_KEY_BYTES], value[WEIR_STORED_NAME_MAX];
    weir_vertex vertex;
    int64_t time_us;
    uint64_t event;
    uint32_t source, partition;
    uint16_t label, type;
    const char *name;
    size_t length;
    weir_feature_key_write(7, -5, 9, key);
    assert_true(weir_feature_key_read(key, WEIR_FEATURE_KEY_BYTES, &vertex, &time_us, &event));
    assert_true(vertex == 7 && time_us == -5 && event == 9);
    weir_label_key_write(7, 3, 5, 9, key);
    assert_true(weir_label_key_read(key, WEIR_LABEL_KEY_BYTES, &vertex, &label, &time_us, &event));
    assert_true(vertex == 7 && label == 3 && time_us == 5 && event == 9);
    weir_name_key_write(UINT64_MAX, key);
    assert_true(weir_name_key_read(key, WEIR_NAME_KEY_BYTES, &vertex) && vertex == UINT64_MAX);
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
         .vertex = 5,
         .time_us = -7,
         .event = 8,
         .key = "k",
         .key_length = 1},
        {.kind = WEIR_PUT_EDGE,
         .direction = WEIR_IN,
         .offset = 100,
         .vertex = 6,
         .neighbor = 5,
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
    assert_true(m.kind == WEIR_PUT_VERTEX && m.type == 1 && m.vertex == 5 && m.time_us == -7 && m.event == 8);
    assert_true(m.key_length == 1 && m.key[0] == 'k' && m.row_length == 0);
    assert_true(weir_batch_next(&cursor, &m));
    assert_true(m.kind == WEIR_PUT_EDGE && m.direction == WEIR_IN && m.row_length == 3 && memcmp(m.row, "row", 3) == 0);
    assert_true(weir_batch_next(&cursor, &m));
    assert_true(m.kind == WEIR_DELETE_VERTEX && m.offset == 100 + 0xffffffffull);
    assert_false(weir_batch_next(&cursor, &m));
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
                 {WEIR_BATCH_HEADER_BYTES, 6, "unknown kind"},
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

WEIR_TESTS(WEIR_CASE(ids_part_type_and_key), WEIR_CASE(shards_are_even_also_for_ids_that_are_not),
           WEIR_CASE(rows_read_back), WEIR_CASE(damaged_rows_are_refused_or_whole),
           WEIR_CASE(fill_keeps_the_newest_of_each_feature), WEIR_CASE(edge_keys_sort_as_readers_go),
           WEIR_CASE(seek_finds_exactly_what_is_older), WEIR_CASE(other_keys_read_back), WEIR_CASE(batches_read_back),
           WEIR_CASE(every_damaged_byte_and_every_cut_is_refused),
           WEIR_CASE(wrong_content_is_refused_behind_a_right_checksum))

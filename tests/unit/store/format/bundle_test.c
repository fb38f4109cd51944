/* SPDX-License-Identifier: Apache-2.0 */
/* bundle_test.c - several records in one value: what is written reads back, a reader as of a time seeks far enough, and
 * no damaged byte is taken for a record. */
#include "weir_test.h"

#include <stdlib.h>
#include <string.h>

#include <weir/store/base/hash.h>
#include <weir/store/base/rng.h>
#include <weir/store/format/bundle.h>

#define ROUNDS      2000u
#define LISTS       4u
#define ENTRIES_MAX 80u

static const weir_list lists[LISTS] = {WEIR_LIST_EDGES(3, WEIR_IN), WEIR_LIST_FEATURES, WEIR_LIST_LABEL(7),
                                       WEIR_LIST_EVENTS};

typedef struct content {
    weir_entry entries[LISTS][ENTRIES_MAX]; /* newest first */
    uint32_t counts[LISTS];
    uint8_t rows[LISTS][ENTRIES_MAX][40];
    weir_name name;
    int64_t newest_us, oldest_us;
    bool named;
} content;

/* Times of people, and the ends of what a number can be. */
static int64_t time_of(weir_rng *rng) {
    switch (weir_rng_below(rng, 8)) {
    case 0:
        return INT64_MIN + (int64_t)weir_rng_below(rng, 3);
    case 1:
        return INT64_MAX - (int64_t)weir_rng_below(rng, 3);
    case 2:
        return (int64_t)weir_rng_below(rng, 2) - 1;
    default:
        return 1700000000000000 + (int64_t)weir_rng_below(rng, 1ull << weir_rng_below(rng, 45));
    }
}

static int order(const void *a, const void *b) {
    return weir_entry_order(a, b);
}

static void draw_list(weir_rng *rng, content *c, size_t at, uint32_t most) {
    uint32_t count = 1 + (uint32_t)weir_rng_below(rng, most), kept = 1;
    weir_entry *entries = c->entries[at];
    bool edges = WEIR_LIST_KIND(lists[at]) == WEIR_LIST_KIND_EDGES;
    bool rows = WEIR_LIST_KIND(lists[at]) != WEIR_LIST_KIND_EVENTS;
    for (uint32_t i = 0; i < count; i++) {
        bool deletion = edges && weir_rng_below(rng, 4) == 0;
        uint32_t row_length = rows && !deletion && weir_rng_below(rng, 3) == 0 ? (uint32_t)weir_rng_below(rng, 41) : 0;
        entries[i] = (weir_entry){.time_us = i && weir_rng_below(rng, 3) == 0 ? entries[i - 1].time_us : time_of(rng),
                                  .event = weir_rng_below(rng, 3) ? weir_rng_below(rng, 4) : 0,
                                  .content = (uint32_t)weir_rng_below(rng, 3),
                                  .row = row_length ? c->rows[at][i] : NULL,
                                  .row_length = row_length & INT32_MAX,
                                  .deletion = deletion};
        if (edges) entries[i].neighbor = weir_vertex_make(weir_rng_below(rng, 3), weir_rng_below(rng, 5));
        memset(c->rows[at][i], (int)i, sizeof c->rows[at][i]);
    }
    qsort(entries, count, sizeof *entries, order);
    for (uint32_t i = 1; i < count; i++)
        if (order(&entries[kept - 1], &entries[i]) != 0) entries[kept++] = entries[i];
    c->counts[at] = kept;
}

static void span_over(content *c, size_t at) {
    const weir_entry *newest = &c->entries[at][0], *oldest = &c->entries[at][c->counts[at] - 1];
    if (newest->time_us > c->newest_us) c->newest_us = newest->time_us;
    if (oldest->time_us < c->oldest_us) c->oldest_us = oldest->time_us;
}

static void draw(weir_rng *rng, content *c) {
    memset(c, 0, sizeof *c);
    c->newest_us = INT64_MIN;
    c->oldest_us = INT64_MAX;
    c->named = weir_rng_below(rng, 2);
    size_t only = (size_t)weir_rng_below(rng, LISTS);
    for (size_t at = 0; at < LISTS; at++) {
        if (c->named ? weir_rng_below(rng, 2) : at != only) continue;
        draw_list(rng, c, at, ENTRIES_MAX);
        span_over(c, at);
    }
    c->name = (weir_name){(uint16_t)weir_rng_below(rng, 9), 5, time_of(rng), "a key"};
    if (c->newest_us < c->oldest_us) c->newest_us = c->oldest_us = c->name.time_us;
}

static weir_bundle_key write(weir_bundle_writer *writer, const content *c, weir_vertex vertex) {
    uint8_t bytes[WEIR_BUNDLE_KEY_BYTES];
    weir_bundle_key key = {.vertex = vertex, .part = WEIR_BUNDLE_NAMED, .turn = 77};
    weir_bundle_begin(writer, c->newest_us, c->oldest_us);
    if (c->named) weir_bundle_put_name(writer, &c->name);
    for (size_t at = 0; at < LISTS; at++) {
        if (c->counts[at] == 0) continue;
        if (c->named) weir_bundle_put_list(writer, lists[at], c->counts[at]);
        if (!c->named) key.part = WEIR_BUNDLE_PART(lists[at]);
        for (uint32_t i = 0; i < c->counts[at]; i++)
            weir_bundle_put(writer, lists[at], &c->entries[at][i]);
    }
    assert_ok(weir_bundle_end(writer, key, bytes));
    assert_true(weir_bundle_key_read(bytes, sizeof bytes, &key));
    assert_true(key.vertex == vertex && key.turn == 77 && key.newest_us == c->newest_us);
    return key;
}

static void reads_back(const content *c, const weir_bundle_key *key, const weir_buf *value) {
    weir_bundle_reader reader;
    weir_entry e;
    assert_true(weir_bundle_check(key, value->bytes, value->length));
    assert_true(weir_bundle_open(&reader, key, value->bytes, value->length));
    assert_int_equal(reader.oldest_us, c->oldest_us);
    assert_int_equal(reader.has_name, c->named);
    if (c->named) {
        assert_int_equal(reader.name.vertex_type, c->name.vertex_type);
        assert_int_equal(reader.name.time_us, c->name.time_us);
        assert_int_equal(reader.name.key_length, c->name.key_length);
        assert_memory_equal(reader.name.key, c->name.key, c->name.key_length);
    }
    for (size_t at = 0; at < LISTS; at++) {
        for (uint32_t i = 0; i < c->counts[at]; i++) {
            const weir_entry *wanted = &c->entries[at][i];
            assert_int_equal(weir_bundle_next(&reader, &e), WEIR_BUNDLE_ENTRY);
            assert_int_equal(reader.list, lists[at]);
            assert_int_equal(weir_entry_order(&e, wanted), 0);
            assert_int_equal(e.row_length, wanted->row_length);
            if (e.row_length) assert_memory_equal(e.row, wanted->row, e.row_length);
        }
    }
    assert_int_equal(weir_bundle_next(&reader, &e), WEIR_BUNDLE_END);
}

static void bundles_read_back(void **state) {
    (void)state;
    weir_rng rng = weir_rng_stream(weir_test_seed(), 1, 0);
    weir_bundle_writer writer = {0};
    static content c;
    for (unsigned round = 0; round < ROUNDS; round++) {
        draw(&rng, &c);
        weir_bundle_key key = write(&writer, &c, weir_vertex_make(round, ~(uint64_t)round));
        reads_back(&c, &key, &writer.value);
    }
    weir_buf_free(&writer.value);
}

/* Stores are made of these bytes. */
static void bundles_have_the_bytes_that_are_written_down(void **state) {
    (void)state;
    static const uint8_t wanted[] = {
        2,                                                         /* the oldest entry is 2 us older */
        12,                                                        /* name: type 1, time 9, "hi"     */
        1,     0, 9, 0, 0, 0, 0, 0, 0,    0, 'h', 'i', 1, 2,       /* list 1, two entries            */
        4,                                                         /* at the newest time             */
        4,     3, 2, 1, 0, 0, 0, 0, 8,    7, 6,   5,   0, 0, 0, 0, /* neighbour */
        0x11,  0, 0, 0, 0, 0, 0, 0, 0x22, 0, 0,   0,               /* event, content */
        2 | 8, 4,                                                  /* a row; of the same event, 2 us before */
        1,     0, 0, 0, 0, 0, 0, 0, 2,    0, 0,   0,   0, 0, 0, 0, 3, 'r', 'o', 'w'};
    static const weir_name name = {1, 2, 9, "hi"};
    const weir_entry first = {
        .neighbor = weir_vertex_make(0x01020304, 0x05060708), .time_us = 100, .event = 0x11, .content = 0x22};
    const weir_entry second = {.neighbor = weir_vertex_make(1, 2),
                               .time_us = 98,
                               .event = 0x11,
                               .content = 0x22,
                               .row = (const uint8_t *)"row",
                               .row_length = 3};
    weir_bundle_writer writer = {0};
    uint8_t key[WEIR_BUNDLE_KEY_BYTES];
    weir_bundle_begin(&writer, 100, 98);
    weir_bundle_put_name(&writer, &name);
    weir_bundle_put_list(&writer, WEIR_LIST_EDGES(0, WEIR_IN), 2);
    weir_bundle_put(&writer, WEIR_LIST_EDGES(0, WEIR_IN), &first);
    weir_bundle_put(&writer, WEIR_LIST_EDGES(0, WEIR_IN), &second);
    assert_ok(weir_bundle_end(&writer, (weir_bundle_key){.vertex = 5, .turn = 3}, key));
    assert_int_equal(writer.value.length, sizeof wanted);
    assert_memory_equal(writer.value.bytes, wanted, sizeof wanted);
    static const uint8_t key_wanted[] = {'V',  0,    0,    0,    0,    0,    0,    0,    0, 0, 0, 0,
                                         0,    0,    0,    0,    5, /* vertex */
                                         0,    0,    0,    0,    0, /* part, span */
                                         0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x9b, 0, 0, 0, 3};
    assert_memory_equal(key, key_wanted, sizeof key_wanted);
    weir_buf_free(&writer.value);
}

/* Read without a look at the hash, whatever is there is in its bounds; with it, nothing that is damaged passes. */
static void every_damaged_bit_and_every_cut_is_refused(void **state) {
    (void)state;
    weir_rng rng = weir_rng_stream(weir_test_seed(), 2, 0);
    weir_bundle_writer writer = {0};
    static content c;
    for (unsigned round = 0; round < ROUNDS / 100; round++) {
        draw(&rng, &c);
        weir_bundle_key key = write(&writer, &c, 1);
        size_t length = writer.value.length;
        for (size_t bit = 0; bit < length * 8; bit++) {
            weir_bundle_reader reader;
            weir_entry e;
            uint64_t sum = 0;
            size_t cut = weir_rng_below(&rng, 4) ? length : (size_t)weir_rng_below(&rng, length);
            uint8_t *copy = malloc(cut ? cut : 1); /* of its own, so that a byte behind it is noticed */
            assert_non_null(copy);
            memcpy(copy, writer.value.bytes, cut);
            if (bit / 8 < cut) copy[bit / 8] ^= (uint8_t)(1u << bit % 8);
            assert_false(weir_bundle_check(&key, copy, cut));
            bool open = weir_bundle_open(&reader, &key, copy, cut);
            while (open && weir_bundle_next(&reader, &e) == WEIR_BUNDLE_ENTRY)
                sum += e.row_length ? weir_xxh3(e.row, e.row_length, 0) : e.event;
            if (sum == 1) print_message("\n");
            free(copy);
        }
    }
    weir_buf_free(&writer.value);
}

static void every_damaged_bit_of_a_key_is_refused(void **state) {
    (void)state;
    weir_rng rng = weir_rng_stream(weir_test_seed(), 3, 0);
    weir_bundle_writer writer = {0};
    static content c;
    for (unsigned round = 0; round < ROUNDS / 10; round++) {
        uint8_t bytes[WEIR_BUNDLE_KEY_BYTES];
        draw(&rng, &c);
        weir_bundle_key key = write(&writer, &c, 1);
        for (size_t bit = 0; bit < 8 * sizeof bytes; bit++) {
            weir_bundle_key other;
            weir_bundle_key_write(&key, bytes);
            bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
            bool read = weir_bundle_key_read(bytes, sizeof bytes, &other);
            assert_false(read && weir_bundle_check(&other, writer.value.bytes, writer.value.length));
        }
    }
    weir_buf_free(&writer.value);
}

/* A reader that seeks weir_bundle_reach behind a time meets every bundle that has an entry so old. */
static void a_span_reaches_as_far_as_its_entries(void **state) {
    (void)state;
    weir_rng rng = weir_rng_stream(weir_test_seed(), 4, 0);
    for (unsigned round = 0; round < 100 * ROUNDS; round++) {
        int64_t a = time_of(&rng), b = time_of(&rng);
        int64_t newest_us = a > b ? a : b, oldest_us = a > b ? b : a;
        uint8_t span = weir_bundle_span(newest_us, oldest_us);
        assert_true(span < WEIR_BUNDLE_SPANS);
        for (uint8_t wide = span; wide < WEIR_BUNDLE_SPANS; wide++)
            assert_true(weir_bundle_reach(wide, oldest_us) >= newest_us);
        if (span > 0) assert_true(weir_bundle_reach((uint8_t)(span - 1), oldest_us) < newest_us);
        int64_t reach_us = weir_bundle_reach(span, oldest_us);
        uint64_t apart_us = (uint64_t)newest_us - (uint64_t)oldest_us;
        if (span > 0 && reach_us < INT64_MAX) assert_true((uint64_t)reach_us - (uint64_t)oldest_us < 4 * apart_us);
    }
}

/* A bundle is newer the less its rank is; its last rank is that of its oldest entry. */
static void ranks_go_backwards_in_time(void **state) {
    (void)state;
    weir_rng rng = weir_rng_stream(weir_test_seed(), 5, 0);
    weir_bundle_writer writer = {0};
    for (unsigned round = 0; round < 100 * ROUNDS; round++) {
        int64_t a = time_of(&rng), b = time_of(&rng);
        int64_t newest_us = a > b ? a : b, oldest_us = a > b ? b : a;
        uint8_t bytes[WEIR_BUNDLE_KEY_BYTES];
        weir_bundle_key key = {
            .vertex = 1, .part = 1, .span = weir_bundle_span(newest_us, oldest_us), .newest_us = newest_us};
        weir_bundle_key_write(&key, bytes);
        assert_true((weir_bundle_rank(a) < weir_bundle_rank(b)) == (a > b));
        weir_bundle_begin(&writer, newest_us, oldest_us);
        assert_true(weir_bundle_last_rank(bytes, sizeof bytes, writer.value.bytes, writer.value.length) ==
                    weir_bundle_rank(oldest_us));
        assert_true(weir_bundle_last_rank(bytes, sizeof bytes, writer.value.bytes, 0) == UINT64_MAX);
    }
    weir_buf_free(&writer.value);
    assert_true(weir_bundle_last_rank("no key of a bundle", 18, "", 0) == UINT64_MAX);
    uint8_t note[WEIR_BUNDLE_KEY_BYTES];
    weir_bundle_key_write(&(weir_bundle_key){.part = WEIR_BUNDLE_PART(WEIR_LIST_EVENTS), .newest_us = 64}, note);
    assert_true(weir_bundle_last_rank(note, sizeof note, "", 0) == 0);
}

WEIR_TESTS(WEIR_CASE(bundles_read_back), WEIR_CASE(bundles_have_the_bytes_that_are_written_down),
           WEIR_CASE(every_damaged_bit_and_every_cut_is_refused), WEIR_CASE(every_damaged_bit_of_a_key_is_refused),
           WEIR_CASE(a_span_reaches_as_far_as_its_entries), WEIR_CASE(ranks_go_backwards_in_time))

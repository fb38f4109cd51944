/* SPDX-License-Identifier: Apache-2.0 */
/* delta_test.c - the order in which a delta is sealed, whatever its ids are like. */
#include "weir_test.h"

#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/buf.h>
#include <weir/store/base/rng.h>
#include <weir/store/format/bundle.h>

#include "delta.h"

#define VERTICES 3000u
#define KEY_MAX  64u

/* Hashes; ids that begin alike; small ones, as tests have; those that a table cannot tell apart; and hashes of which a
 * few begin alike. */
enum { HASHES, ALIKE, SMALL, FOLDED, MIXED, SHAPES };

static weir_vertex vertex_of(int shape, uint64_t n) {
    uint64_t hash = (n + 1) * 0x9e3779b97f4a7c15ull;
    if (shape == MIXED) shape = n % 8 ? HASHES : ALIKE;
    if (shape == HASHES) return weir_vertex_make(hash, hash * 31);
    if (shape == ALIKE) return weir_vertex_make(0xabcdef0000000000ull | (hash & 3), hash * 31);
    return weir_vertex_make(shape == FOLDED ? n + 1 : 0, n + 1);
}

typedef struct seen {
    uint8_t last[KEY_MAX];
    size_t last_length, records, lists, entries;
} seen;

static weir_err see_record(void *context, const uint8_t *key, size_t key_length, const uint8_t *value,
                           size_t value_length) {
    seen *s = context;
    weir_bundle_key bundle;
    weir_bundle_reader reader;
    weir_entry entry;
    assert_true(key_length <= KEY_MAX);
    size_t shared = key_length < s->last_length ? key_length : s->last_length;
    int order = memcmp(s->last, key, shared);
    assert_true(order < 0 || (order == 0 && s->last_length < key_length));
    memcpy(s->last, key, key_length);
    s->last_length = key_length;
    assert_true(weir_bundle_key_read(key, key_length, &bundle) && weir_bundle_check(&bundle, value, value_length));
    assert_true(weir_bundle_open(&reader, &bundle, value, value_length));
    while (weir_bundle_next(&reader, &entry) == WEIR_BUNDLE_ENTRY)
        s->records++;
    return WEIR_OK;
}

static weir_err see_list(void *context, weir_vertex vertex, weir_list list, const weir_entry *entries, size_t count) {
    seen *s = context;
    (void)vertex, (void)list;
    for (size_t i = 1; i < count; i++)
        assert_true(weir_entry_order(&entries[i - 1], &entries[i]) > 0); /* oldest first */
    s->lists++;
    s->entries += count;
    return WEIR_OK;
}

/* A sorted file takes strictly rising keys only; a record that is left out is lost. */
static void a_seal_is_in_the_order_of_keys(void **state) {
    (void)state;
    weir_rng rng = weir_rng_stream(weir_test_seed(), 1, 0);
    for (int shape = 0; shape < SHAPES; shape++) {
        weir_delta *delta;
        weir_delta_order *order;
        seen s = {.records = 0}, l = {.records = 0};
        uint64_t edges = 0;
        static bool met[VERTICES][2];
        size_t lists = 0;
        memset(met, 0, sizeof met);
        assert_ok(weir_delta_open(64u << 20, false, &delta));
        for (uint64_t i = 0; i < 4 * (uint64_t)VERTICES; i++) {
            uint64_t n = weir_rng_below(&rng, VERTICES);
            bool in = weir_rng_below(&rng, 2);
            const weir_mutation m = {.kind = WEIR_PUT_EDGE,
                                     .direction = in ? WEIR_IN : WEIR_OUT,
                                     .vertex = vertex_of(shape, n),
                                     .neighbor = vertex_of(shape, weir_rng_below(&rng, VERTICES)),
                                     .time_us = (int64_t)weir_rng_below(&rng, 1000),
                                     .event = i + 1,
                                     .offset = i};
            weir_delta_ahead(delta, m.vertex, (weir_delta_stage)weir_rng_below(&rng, 3));
            assert_ok(weir_delta_apply(delta, &m, 1));
            lists += !met[n][in];
            met[n][in] = true;
            edges++;
        }
        weir_delta_freeze(delta);
        assert_ok(weir_delta_order_open(delta, &order));
        assert_ok(weir_delta_order_walk(order, see_record, &s));
        assert_ok(weir_delta_order_lists(order, see_list, &l));
        assert_int_equal(s.records, edges);
        assert_int_equal(l.entries, edges);
        assert_int_equal(l.lists, lists);
        weir_delta_order_close(order);
        weir_delta_release(delta);
    }
}

/* --- piles ------------------------------------------------------------------------------------------------------ */

static weir_err keep_record(void *kept, const uint8_t *key, size_t key_length, const uint8_t *value,
                            size_t value_length) {
    weir_buf_append(kept, key, key_length);
    weir_buf_append(kept, value, value_length);
    return weir_buf_err(kept);
}

static weir_err keep_list(void *kept, weir_vertex vertex, weir_list list, const weir_entry *entries, size_t count) {
    weir_buf_append(kept, &vertex, sizeof vertex);
    weir_buf_append(kept, &list, sizeof list);
    for (size_t i = 0; i < count; i++) {
        weir_buf_append(kept, &entries[i].time_us, sizeof entries[i].time_us);
        weir_buf_append(kept, &entries[i].event, sizeof entries[i].event);
        weir_buf_append(kept, entries[i].row, entries[i].row_length);
    }
    return weir_buf_err(kept);
}

static void keep_all(weir_delta *delta, weir_buf *kept) {
    weir_delta_order *order;
    weir_delta_freeze(delta);
    assert_ok(weir_delta_order_open(delta, &order));
    assert_ok(weir_delta_order_walk_deletions(order, keep_record, kept));
    assert_ok(weir_delta_order_walk(order, keep_record, kept));
    assert_ok(weir_delta_order_lists(order, keep_list, kept));
    weir_delta_order_close(order);
    weir_delta_release(delta);
}

/* One to four mutations of one event at a vertex; few times and events, so that the same record comes again, mostly
 * with another row. */
static size_t some_group(weir_rng *rng, weir_vertex vertex, uint64_t offset, char *key, weir_mutation m[4]) {
    static const weir_mutation_kind kinds[] = {WEIR_PUT_VERTEX, WEIR_PUT_EDGE, WEIR_DELETE_EDGE, WEIR_PUT_LABEL,
                                               WEIR_PUT_EDGE};
    size_t count = 1 + (size_t)weir_rng_below(rng, 4);
    uint64_t event = 1 + weir_rng_below(rng, 20);
    int64_t time_us = (int64_t)weir_rng_below(rng, 30);
    for (size_t i = 0; i < count; i++) {
        m[i] =
            (weir_mutation){.kind = kinds[weir_rng_below(rng, 5)], .vertex = vertex, .event = event, .offset = offset};
        m[i].direction = weir_rng_below(rng, 2) ? WEIR_IN : WEIR_OUT;
        m[i].neighbor = 1 + weir_rng_below(rng, 5);
        m[i].time_us = time_us;
        if (m[i].kind == WEIR_PUT_VERTEX && weir_rng_below(rng, 2)) m[i].key = key, m[i].key_length = 4;
        if (m[i].kind == WEIR_DELETE_EDGE || weir_rng_below(rng, 3) == 0) continue;
        m[i].row = (const uint8_t *)key + weir_rng_below(rng, 8);
        m[i].row_length = (uint32_t)weir_rng_below(rng, 8);
    }
    return count;
}

/* What is found at once and what is put together in the end are the same bytes. */
static void a_pile_is_sealed_as_any_delta_is(void **state) {
    (void)state;
    static char keys[] = "somekeyandrows16";
    weir_rng rng = weir_rng_stream(weir_test_seed(), 2, 0);
    for (int shape = 0; shape < SHAPES; shape++) {
        weir_delta *deltas[2];
        weir_buf kept[2] = {{0}};
        for (int pile = 0; pile < 2; pile++)
            assert_ok(weir_delta_open(64u << 20, pile, &deltas[pile]));
        for (uint64_t i = 0; i < VERTICES; i++) {
            weir_mutation m[4];
            weir_vertex vertex = vertex_of(shape, weir_rng_below(&rng, weir_rng_below(&rng, 3) ? VERTICES : 5));
            size_t count = some_group(&rng, vertex, i, keys, m);
            for (int pile = 0; pile < 2; pile++) {
                weir_delta_ahead(deltas[pile], vertex, (weir_delta_stage)(i % 3));
                assert_ok(weir_delta_apply(deltas[pile], m, count));
                if (i % 50 == 0) assert_ok(weir_delta_put_deletion(deltas[pile], vertex, (int64_t)i));
            }
        }
        for (int pile = 0; pile < 2; pile++)
            keep_all(deltas[pile], &kept[pile]);
        assert_int_equal(kept[0].length, kept[1].length);
        assert_memory_equal(kept[0].bytes, kept[1].bytes, kept[0].length);
        weir_buf_free(&kept[0]);
        weir_buf_free(&kept[1]);
    }
}

/* Were each put in its place one by one, this would take the square of so many. */
static void a_hub_in_a_log_that_runs_backwards_is_sealed_as_well(void **state) {
    enum { EDGES = 400000 };
    (void)state;
    weir_delta *delta;
    weir_delta_order *order;
    seen l = {.records = 0};
    assert_ok(weir_delta_open(512u << 20, true, &delta));
    for (uint64_t i = 0; i < EDGES; i++) {
        const weir_mutation m = {.kind = WEIR_PUT_EDGE,
                                 .vertex = 1,
                                 .neighbor = 2 + i % 100,
                                 .time_us = EDGES - (int64_t)i,
                                 .event = i + 1,
                                 .offset = i};
        assert_ok(weir_delta_apply(delta, &m, 1));
    }
    weir_delta_freeze(delta);
    assert_ok(weir_delta_order_open(delta, &order));
    assert_ok(weir_delta_order_lists(order, see_list, &l));
    assert_true(l.lists == 1 && l.entries == EDGES);
    weir_delta_order_close(order);
    weir_delta_release(delta);
}

/* Each allocation fails once, and what was refused is put down again: the bytes are those of one to which nothing
 * happened. */
static void what_a_pile_had_no_memory_for_comes_again(void **state) {
    enum { GROUPS = 2000 };
    (void)state;
    static char keys[] = "somekeyandrows16";
    uint64_t failures = 0;
    size_t wanted_records = 0;
    weir_buf wanted = {0};
    for (uint64_t nth = 0, failed = 1; failed; nth++) {
        weir_rng rng = weir_rng_stream(weir_test_seed(), 3, 0);
        weir_delta *delta;
        weir_buf kept = {0};
        failed = nth == 0;
        assert_ok(weir_delta_open(64u << 20, true, &delta));
        weir_alloc_fail_nth(nth);
        for (uint64_t i = 0; i < GROUPS; i++) {
            weir_mutation m[4];
            weir_vertex vertex = vertex_of(SMALL, weir_rng_below(&rng, 40));
            size_t count = some_group(&rng, vertex, i, keys, m);
            weir_err err = weir_delta_apply(delta, m, count);
            if (!err) continue;
            assert_err(err, WEIR_ENOMEM, "out of memory for the delta");
            assert_ok(weir_delta_apply(delta, m, count));
            failures += failed = 1;
        }
        weir_alloc_fail_nth(0);
        if (nth == 0) wanted_records = weir_delta_records(delta);
        assert_int_equal(weir_delta_records(delta), wanted_records);
        keep_all(delta, nth ? &kept : &wanted);
        if (nth) assert_int_equal(kept.length, wanted.length);
        if (nth) assert_memory_equal(kept.bytes, wanted.bytes, wanted.length);
        weir_buf_free(&kept);
    }
    weir_buf_free(&wanted);
    assert_true(failures > 5);
}

static void an_empty_delta_has_an_order(void **state) {
    (void)state;
    weir_delta *delta;
    weir_delta_order *order;
    seen s = {.records = 0};
    assert_ok(weir_delta_open(1u << 20, false, &delta));
    weir_delta_freeze(delta);
    assert_ok(weir_delta_order_open(delta, &order));
    assert_ok(weir_delta_order_walk(order, see_record, &s));
    assert_ok(weir_delta_order_walk_deletions(order, see_record, &s));
    assert_ok(weir_delta_order_lists(order, see_list, &s));
    assert_int_equal(s.records + s.lists, 0);
    weir_delta_order_close(order);
    weir_delta_release(delta);
}

WEIR_TESTS(WEIR_CASE(a_pile_is_sealed_as_any_delta_is), WEIR_CASE(a_hub_in_a_log_that_runs_backwards_is_sealed_as_well),
           WEIR_CASE(what_a_pile_had_no_memory_for_comes_again), WEIR_CASE(a_seal_is_in_the_order_of_keys),
           WEIR_CASE(an_empty_delta_has_an_order))

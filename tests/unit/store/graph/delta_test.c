/* SPDX-License-Identifier: Apache-2.0 */
/* delta_test.c - the order in which a delta is sealed, whatever its ids are like. */
#include "weir_test.h"

#include <string.h>

#include <weir/base/rng.h>
#include <weir/store/bundle.h>

#include "delta.h"

#define VERTICES 3000u
#define KEY_MAX  64u

/* Hashes; ids that begin alike; small ones, as tests have; and hashes among which a few begin alike. */
enum { HASHES, ALIKE, SMALL, MIXED, SHAPES };

static weir_vertex vertex_of(int shape, uint64_t n) {
    uint64_t hash = (n + 1) * 0x9e3779b97f4a7c15ull;
    if (shape == MIXED) shape = n % 8 ? HASHES : ALIKE;
    if (shape == HASHES) return weir_vertex_make(hash, hash * 31);
    if (shape == ALIKE) return weir_vertex_make(0xabcdef0000000000ull | (hash & 3), hash * 31);
    return weir_vertex_make(0, n + 1);
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

/* RocksDB takes strictly rising keys only; a record that is left out is lost. */
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
        assert_ok(weir_delta_open(64u << 20, &delta));
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

static void an_empty_delta_has_an_order(void **state) {
    (void)state;
    weir_delta *delta;
    weir_delta_order *order;
    seen s = {.records = 0};
    assert_ok(weir_delta_open(1u << 20, &delta));
    weir_delta_freeze(delta);
    assert_ok(weir_delta_order_open(delta, &order));
    assert_ok(weir_delta_order_walk(order, see_record, &s));
    assert_ok(weir_delta_order_walk_deletions(order, see_record, &s));
    assert_ok(weir_delta_order_lists(order, see_list, &s));
    assert_int_equal(s.records + s.lists, 0);
    weir_delta_order_close(order);
    weir_delta_release(delta);
}

WEIR_TESTS(WEIR_CASE(a_seal_is_in_the_order_of_keys), WEIR_CASE(an_empty_delta_has_an_order))

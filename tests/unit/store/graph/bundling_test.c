/* SPDX-License-Identifier: Apache-2.0 */
/* bundling_test.c - what a seal writes of a vertex: all of it, in the order of keys, and under spans that let a reader
 * of any moment pass few bundles of a long list in vain, and seek few spans of short ones. */
#include "weir_test.h"

#include <stdlib.h>
#include <string.h>

#include <weir/store/base/rng.h>

#include "bundling.h"

#define ROUNDS      300u
#define ENTRIES_MAX 3000u
#define BUNDLES_MAX ENTRIES_MAX
#define EDGES       WEIR_LIST_EDGES(2, WEIR_OUT)
#define IN_VAIN_MAX 4u /* a span is no more than four times as wide as what it is for */

static const int64_t now_us = 1700000000000000;

typedef struct written {
    uint8_t last[WEIR_BUNDLE_KEY_BYTES];
    weir_bundle_key keys[BUNDLES_MAX];
    int64_t oldest_us[BUNDLES_MAX];
    size_t bundles, count;
    weir_entry entries[ENTRIES_MAX];
} written;

static weir_err see(void *context, const uint8_t *key, size_t key_length, const uint8_t *value, size_t value_length) {
    written *w = context;
    weir_bundle_key *of = &w->keys[w->bundles];
    weir_bundle_reader reader;
    assert_true(w->bundles < BUNDLES_MAX && key_length == sizeof w->last);
    assert_true(w->bundles == 0 || memcmp(w->last, key, key_length) < 0);
    memcpy(w->last, key, key_length);
    assert_true(weir_bundle_key_read(key, key_length, of) && weir_bundle_check(of, value, value_length));
    assert_true(weir_bundle_open(&reader, of, value, value_length));
    w->oldest_us[w->bundles++] = reader.oldest_us;
    while (w->count < ENTRIES_MAX && weir_bundle_next(&reader, &w->entries[w->count]) == WEIR_BUNDLE_ENTRY)
        w->count++;
    return WEIR_OK;
}

static int oldest_first(const void *a, const void *b) {
    return weir_entry_order(b, a);
}

/* Of bundles that a reader as of any time must pass, because they have no bound. */
static void few_have_no_bound(const written *w) {
    size_t count = 0;
    for (size_t i = 0; i < w->bundles; i++)
        count += w->keys[i].span + 1u == WEIR_BUNDLE_SPANS;
    assert_true(count <= IN_VAIN_MAX + 1); /* and one with a name */
}

/* All of the list, whichever bundles it lies in. */
static void write(const weir_entry *entries, uint32_t count, const weir_name *name, written *w) {
    const weir_bundling_list list = {EDGES, count, entries};
    w->bundles = w->count = 0;
    weir_bundling bundling = {.visit = see, .context = w};
    assert_ok(weir_bundling_vertex(&bundling, 7, name, &list, 1));
    weir_buf_free(&bundling.bundle.value);
    few_have_no_bound(w);
    assert_true(name || w->bundles == weir_bundling_count(&list));
    qsort(w->entries, w->count, sizeof *w->entries, oldest_first);
    assert_int_equal(w->count, count);
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(weir_entry_order(&w->entries[i], &entries[i]), 0);
}

static void every_list_is_written_whole_and_in_order(void **state) {
    (void)state;
    weir_rng rng = weir_rng_stream(weir_test_seed(), 1, 0);
    static weir_entry entries[ENTRIES_MAX];
    static const weir_name name = {1, 2, 9, "hi"};
    static written w;
    for (unsigned round = 0; round < ROUNDS; round++) {
        uint32_t count = 1 + (uint32_t)weir_rng_below(&rng, 1ull << weir_rng_below(&rng, 12)) % ENTRIES_MAX;
        for (uint32_t i = 0; i < count; i++) {
            int64_t back_us = (int64_t)weir_rng_below(&rng, 1ull << weir_rng_below(&rng, 50));
            entries[i] = (weir_entry){.time_us = now_us - back_us, .event = i + 1};
        }
        qsort(entries, count, sizeof *entries, oldest_first);
        write(entries, count, weir_rng_below(&rng, 2) ? &name : NULL, &w);
    }
}

/* Of the bundles that a reader as of a moment meets in one span, those that have nothing so old. */
static unsigned in_vain(const written *w, uint8_t span, int64_t moment_us) {
    unsigned count = 0;
    for (size_t i = 0; i < w->bundles; i++) {
        const weir_bundle_key *key = &w->keys[i];
        count +=
            key->span == span && w->oldest_us[i] > moment_us && key->newest_us <= weir_bundle_reach(span, moment_us);
    }
    return count;
}

static void a_reader_passes_few_bundles_of_a_long_list_in_vain(void **state) {
    (void)state;
    weir_rng rng = weir_rng_stream(weir_test_seed(), 2, 0);
    static weir_entry entries[ENTRIES_MAX];
    static written w;
    for (unsigned round = 0; round < ROUNDS; round++) {
        uint32_t count = ENTRIES_MAX - (uint32_t)weir_rng_below(&rng, ENTRIES_MAX / 2);
        int64_t step_us = 100 + (int64_t)weir_rng_below(&rng, 1ull << weir_rng_below(&rng, 30));
        for (uint32_t i = 0; i < count; i++)
            entries[i] = (weir_entry){.time_us = now_us + i * step_us, .event = i + 1};
        write(entries, count, NULL, &w);
        for (size_t i = 0; i < w.bundles; i++)
            assert_int_equal(w.keys[i].span, w.keys[0].span); /* which is one seek */
        for (unsigned i = 0; i < 20; i++) {
            int64_t moment_us = now_us + (int64_t)weir_rng_below(&rng, (uint64_t)(count * step_us));
            assert_true(in_vain(&w, w.keys[0].span, moment_us) <= IN_VAIN_MAX);
        }
    }
}

/* As many spans as there are steps of four bits between a second and two weeks, and one for all that is wider. */
static void lists_of_one_bundle_have_few_spans(void **state) {
    (void)state;
    weir_rng rng = weir_rng_stream(weir_test_seed(), 3, 0);
    static const weir_name name = {1, 2, 9, "hi"};
    static written w;
    bool met[WEIR_BUNDLE_SPANS] = {false};
    unsigned spans = 0;
    for (unsigned round = 0; round < 10 * ROUNDS; round++) {
        int64_t back_us = 1 + (int64_t)weir_rng_below(&rng, 1ull << weir_rng_below(&rng, 50));
        const weir_entry entries[] = {{.time_us = now_us - back_us, .event = 1}, {.time_us = now_us, .event = 2}};
        write(entries, 2, round % 2 ? &name : NULL, &w);
        assert_int_equal(w.bundles, 1);
        spans += !met[w.keys[0].span];
        met[w.keys[0].span] = true;
    }
    assert_int_equal(spans, 7);
}

WEIR_TESTS(WEIR_CASE(every_list_is_written_whole_and_in_order),
           WEIR_CASE(a_reader_passes_few_bundles_of_a_long_list_in_vain), WEIR_CASE(lists_of_one_bundle_have_few_spans))

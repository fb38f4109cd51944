/* SPDX-License-Identifier: Apache-2.0 */
/* cache_test.c - which windows there are: what a seal must update, what makes room, and in how much memory. */
#include "weir_test.h"

#include <pthread.h>
#include <stdio.h>

#include <weir/store/base/alloc.h>

#include "cache.h"

#define WINDOWS 5000u

static weir_vertex vertex_of(uint64_t n) {
    return weir_vertex_make(n * 0x9e3779b97f4a7c15ull, n);
}

/* A window that is passed over would answer without what was sealed, for as long as it is cached. */
static void every_window_is_marked_and_few_others(void **state) {
    (void)state;
    weir_cache *cache;
    const weir_entry entry = {.time_us = 1};
    uint32_t others = 0;
    assert_ok(weir_cache_open(64u << 20, 128, &cache));
    weir_cache_marks *none = weir_cache_marks_take(cache);
    assert_non_null(none);
    for (uint64_t n = 0; n < WINDOWS; n++) {
        assert_false(weir_cache_marks_may_have(none, vertex_of(n), WEIR_LIST_EDGES(1, WEIR_OUT)));
        weir_cache_fill(cache, weir_cache_epoch(cache), vertex_of(n), WEIR_LIST_EDGES(1, WEIR_OUT), &entry, 1, true);
    }
    weir_cache_marks *marks = weir_cache_marks_take(cache);
    assert_non_null(marks);
    for (uint64_t n = 0; n < WINDOWS; n++) {
        assert_true(weir_cache_marks_may_have(marks, vertex_of(n), WEIR_LIST_EDGES(1, WEIR_OUT)));
        others += weir_cache_marks_may_have(marks, vertex_of(n), WEIR_LIST_EDGES(1, WEIR_IN));
        assert_true(weir_cache_marks_may_have(NULL, vertex_of(n), WEIR_LIST_EDGES(1, WEIR_IN)));
    }
    assert_true(others > 0 && others < WINDOWS / 4);
    weir_cache_marks_free(none);
    weir_cache_marks_free(marks);
    weir_cache_close(cache);
}

static void *no_rows(void *context, size_t size) {
    (void)context, (void)size;
    return NULL;
}

/* A scan that has room for as many entries as a list has does not learn that there are no more. Who then scans with
 * more room does, and must not have to do so again and again. */
static void a_window_may_learn_that_it_is_complete(void **state) {
    enum { COUNT = 36 };
    (void)state;
    weir_cache *cache;
    weir_entry entries[COUNT] = {{0}}, out[2 * COUNT];
    weir_list list = WEIR_LIST_EDGES(1, WEIR_OUT);
    size_t count;
    bool complete;
    for (int i = 0; i < COUNT; i++)
        entries[i].time_us = COUNT - i;
    assert_ok(weir_cache_open(1u << 20, 128, &cache));
    weir_cache_fill(cache, weir_cache_epoch(cache), 1, list, entries, COUNT, false);
    assert_false(weir_cache_collect(cache, 1, list, (weir_cache_span){INT64_MAX, INT64_MIN}, out, 2 * COUNT, no_rows,
                                    NULL, &count, &complete));
    assert_int_equal(count, COUNT);
    weir_cache_fill(cache, weir_cache_epoch(cache), 1, list, entries, COUNT, true);
    assert_true(weir_cache_collect(cache, 1, list, (weir_cache_span){INT64_MAX, INT64_MIN}, out, 2 * COUNT, no_rows,
                                   NULL, &count, &complete));
    assert_true(complete && count == COUNT);
    weir_cache_fill(cache, weir_cache_epoch(cache), 1, list, entries, COUNT, false); /* what is known stays */
    assert_true(weir_cache_collect(cache, 1, list, (weir_cache_span){INT64_MAX, INT64_MIN}, out, 2 * COUNT, no_rows,
                                   NULL, &count, &complete));
    weir_cache_close(cache);
}

/* A hundred that are asked for again and again, among ever new ones of which each is asked for once. */
static void what_is_asked_for_again_outlives_what_is_not(void **state) {
    (void)state;
    const weir_entry entry = {.time_us = 1};
    const weir_list list = WEIR_LIST_EDGES(1, WEIR_OUT);
    weir_cache *cache;
    weir_cache_stats stats;
    weir_entry out;
    size_t count, again = 0, kept = 0;
    bool complete;
    assert_ok(weir_cache_open(256u << 10, 128, &cache)); /* for some 2,000 */
    for (uint64_t n = 0; n < 20000; n++) {
        weir_cache_fill(cache, weir_cache_epoch(cache), vertex_of(n), list, &entry, 1, true);
        if (n < 100 || n % 10) continue;
        again++;
        kept += weir_cache_collect(cache, vertex_of(n / 10 % 100), list, (weir_cache_span){INT64_MAX, INT64_MIN}, &out,
                                   1, no_rows, NULL, &count, &complete);
    }
    weir_cache_stats_get(cache, &stats);
    assert_true(stats.evictions > 10000 && stats.bytes <= 256u << 10);
    assert_int_equal(kept, again); /* each is asked for once in 1,000, before it is passed over again */
    weir_cache_close(cache);
}

static uint64_t live_bytes(void) {
    weir_alloc_stats stats;
    weir_alloc_stats_get(&stats);
    return stats.live_bytes;
}

/* Many small windows need a large table, and that is memory, too. */
static void s6_a_cache_takes_its_share_and_fills_it_with_windows(void **state) {
    enum { SHARE = 1 << 20, EDGES_MAX = 128, WINDOW_BYTES = 80, CACHE_BYTES = 8192 };
    static const size_t edges[] = {1, 1, EDGES_MAX, 1};
    static weir_entry entries[EDGES_MAX];
    (void)state;
    const uint64_t before = live_bytes();
    weir_cache *cache;
    weir_cache_stats stats;
    assert_ok(weir_cache_open(SHARE, EDGES_MAX, &cache));
    weir_cache_stats_get(cache, &stats);
    assert_true(stats.bytes == 0 && live_bytes() - before <= CACHE_BYTES); /* nobody reads */
    for (size_t turn = 0; turn < sizeof edges / sizeof edges[0]; turn++) {
        for (uint64_t n = 0; n < 50000; n++) {
            weir_cache_fill(cache, weir_cache_epoch(cache), vertex_of(n), WEIR_LIST_EDGES(turn, WEIR_OUT), entries,
                            edges[turn], false);
            if (n % 1000) continue;
            weir_cache_stats_get(cache, &stats);
            assert_true(stats.bytes <= SHARE && live_bytes() - before <= SHARE + CACHE_BYTES);
        }
        weir_cache_stats_get(cache, &stats);
        const uint64_t bytes = stats.windows * (edges[turn] == 1 ? WINDOW_BYTES : 32 + EDGES_MAX * 36);
        printf("%llu windows of %zu edges: %llu of %d bytes\n", (unsigned long long)stats.windows, edges[turn],
               (unsigned long long)bytes, SHARE);
        assert_true(bytes >= SHARE / 4 * 3);
    }
    weir_cache_close(cache);
    assert_int_equal(live_bytes(), before);
}

/* Each seal makes windows anew, in memory of their own: those that nothing was sealed into stay all the same. */
static void windows_that_are_made_anew_push_no_others_out(void **state) {
    enum { LISTS = 4000, SEALED = 1000, EDGES = 20, WIDTH = 40 };
    static weir_entry entries[EDGES];
    (void)state;
    const weir_list list = WEIR_LIST_EDGES(1, WEIR_OUT);
    weir_cache *cache;
    weir_cache_stats stats;
    uint64_t events = 0;
    assert_ok(weir_cache_open(6u << 20, WIDTH, &cache)); /* 3.7 of them for what there is, in the end; 31 are made */
    for (uint64_t n = 0; n < LISTS; n++)
        weir_cache_fill(cache, weir_cache_epoch(cache), vertex_of(n), list, entries, n < SEALED ? 1 : EDGES, true);
    for (uint64_t seal = 0; seal < WIDTH; seal++) {
        weir_cache_sealed(cache);
        for (uint64_t n = 0; n < SEALED; n++) {
            events++;
            const weir_entry entry = {.time_us = (int64_t)events, .event = events};
            weir_cache_seal_list(cache, vertex_of(n), list, &entry, 1);
        }
    }
    weir_cache_stats_get(cache, &stats);
    printf("%llu evicted\n", (unsigned long long)stats.evictions);
    assert_true(stats.evictions <= LISTS / 100);
    weir_cache_close(cache);
}

static void *fill_many(void *context) {
    const weir_entry entry = {.time_us = 1};
    for (uint64_t n = 0; n < 4 * WINDOWS; n++)
        weir_cache_fill(context, weir_cache_epoch(context), vertex_of(n), WEIR_LIST_EDGES(1, WEIR_OUT), &entry, 1,
                        true);
    return NULL;
}

/* Under the thread sanitizer: whoever looks ahead takes no lock, while tables grow and windows go. */
static void who_looks_ahead_reads_nothing_that_is_gone(void **state) {
    (void)state;
    weir_cache *cache;
    weir_cache_stats stats;
    pthread_t filler;
    assert_ok(weir_cache_open(1u << 20, 128, &cache));
    assert_int_equal(pthread_create(&filler, NULL, fill_many, cache), 0);
    for (uint64_t n = 0; n < 20 * WINDOWS; n++)
        weir_cache_ahead(cache, vertex_of(n % WINDOWS), WEIR_LIST_EDGES(1, WEIR_OUT), 10,
                         n % 2 ? WEIR_CACHE_SLOT : WEIR_CACHE_WINDOW);
    assert_int_equal(pthread_join(filler, NULL), 0);
    weir_cache_stats_get(cache, &stats);
    assert_true(stats.windows > 5000 && stats.evictions > 5000); /* of 64 slots in each of 16 stripes at first */
    weir_cache_close(cache);
}

WEIR_TESTS(WEIR_CASE(s6_a_cache_takes_its_share_and_fills_it_with_windows),
           WEIR_CASE(windows_that_are_made_anew_push_no_others_out),
           WEIR_CASE(who_looks_ahead_reads_nothing_that_is_gone),
           WEIR_CASE(what_is_asked_for_again_outlives_what_is_not), WEIR_CASE(a_window_may_learn_that_it_is_complete),
           WEIR_CASE(every_window_is_marked_and_few_others))

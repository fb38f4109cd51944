/* SPDX-License-Identifier: Apache-2.0 */
/* remains_test.c - what is kept of lists whose newest edges are deleted: whom it answers, and what it gives way to. */
#include "weir_test.h"

#include <stdlib.h>
#include <string.h>

#include <weir/store/base/arena.h>
#include <weir/store/base/rng.h>

#include "remains.h"

enum { OF_TIME = 1000, NEWER_THAN = 10 };

typedef struct fixture {
    weir_cache *cache;
    weir_remains *remains;
    weir_entry entries[WEIR_REMAINS_MAX]; /* newest first */
    weir_entry found[WEIR_REMAINS_MAX];
    size_t count;
    weir_remains_span span;
} fixture;

static const weir_list list = WEIR_LIST_EDGES(1, WEIR_OUT);

static void fixture_open(fixture *f, size_t bytes_max) {
    *f = (fixture){.count = 0};
    assert_ok(weir_cache_open(1u << 20, 128, &f->cache));
    assert_ok(weir_remains_open(bytes_max, f->cache, &f->remains));
    for (size_t i = 0; i < WEIR_REMAINS_MAX; i++)
        f->entries[i] = (weir_entry){.time_us = (int64_t)(WEIR_REMAINS_MAX - i), .event = i + 1};
}

static void fixture_close(fixture *f) {
    weir_remains_close(f->remains);
    weir_cache_close(f->cache);
}

static void fill(fixture *f, uint64_t epoch, weir_vertex vertex, size_t count, bool complete) {
    const weir_remains_span span = {OF_TIME, NEWER_THAN, INT64_MIN, complete};
    weir_remains_fill(f->remains, epoch, vertex, list, &span, f->entries, count);
}

static void *row_of(void *rows, size_t size) {
    return weir_arena_alloc_aligned(rows, 1, size);
}

static bool collect(fixture *f, weir_vertex vertex, int64_t before_us, int64_t newer_than_us, weir_arena *rows) {
    return weir_remains_collect(f->remains, vertex, list, before_us, newer_than_us, f->found, WEIR_REMAINS_MAX, row_of,
                                rows, &f->count, &f->span);
}

static bool is_kept(fixture *f, weir_vertex vertex) {
    return collect(f, vertex, OF_TIME, NEWER_THAN, NULL);
}

static void it_answers_as_of_later_and_for_none_that_is_older(void **state) {
    (void)state;
    fixture f;
    fixture_open(&f, 1u << 20);
    fill(&f, weir_cache_epoch(f.cache), 1, 20, true);
    assert_true(is_kept(&f, 1) && f.count == 20 && f.span.complete);
    assert_memory_equal(f.found, f.entries, 20 * sizeof f.found[0]);
    assert_true(collect(&f, 1, INT64_MAX, NEWER_THAN + 5, NULL));
    assert_false(collect(&f, 1, OF_TIME - 1, NEWER_THAN, NULL));
    assert_false(collect(&f, 1, OF_TIME, NEWER_THAN - 1, NULL));
    assert_false(is_kept(&f, 2));
    fixture_close(&f);
}

/* A reader scans, a seal adds newer entries and finds nothing that it must drop, the reader fills: without the epoch
 * readers would lack what was sealed, for ever. */
static void s5_what_was_scanned_before_a_seal_is_refused(void **state) {
    (void)state;
    fixture f;
    weir_remains_marks marks;
    fixture_open(&f, 1u << 20);
    uint64_t scanned = weir_cache_epoch(f.cache);
    fill(&f, scanned, 1, 20, true);
    weir_cache_sealed(f.cache);
    weir_remains_marks_take(f.remains, &marks);
    assert_true(marks.any && weir_remains_marks_may_have(&marks, 1, list));
    weir_remains_drop(f.remains, 1, list);
    fill(&f, scanned, 1, 20, true);
    assert_false(is_kept(&f, 1));
    fill(&f, weir_cache_epoch(f.cache), 1, 20, true);
    assert_true(is_kept(&f, 1));
    fixture_close(&f);
}

/* Of two readers of one list the one that took longer may know less. */
static void what_says_no_less_stays(void **state) {
    (void)state;
    fixture f;
    fixture_open(&f, 1u << 20);
    uint64_t epoch = weir_cache_epoch(f.cache);
    fill(&f, epoch, 1, 20, false);
    fill(&f, epoch, 1, 10, false);
    assert_true(is_kept(&f, 1) && f.count == 20 && !f.span.complete);
    fill(&f, epoch, 1, 100, false);
    assert_true(is_kept(&f, 1) && f.count == 100);
    fill(&f, epoch, 1, 100, true);
    assert_true(is_kept(&f, 1) && f.span.complete);
    const weir_remains_span further = {OF_TIME, NEWER_THAN - 5, INT64_MIN, false};
    weir_remains_fill(f.remains, epoch, 1, list, &further, f.entries, 10);
    assert_true(collect(&f, 1, OF_TIME, NEWER_THAN - 5, NULL) && f.count == 10);
    fixture_close(&f);
}

/* A sampler wants edges of any age, an aggregate young ones: what the one has left serves the other, too, as far as it
 * reaches, and is not taken for the other's, which says less. Entry i is of time 128 - i. */
static void readers_of_other_ages_do_not_take_each_others(void **state) {
    (void)state;
    fixture f;
    fixture_open(&f, 1u << 20);
    const uint64_t epoch = weir_cache_epoch(f.cache);
    const weir_remains_span any = {OF_TIME, INT64_MIN, INT64_MIN, false}, young = {OF_TIME, 120, INT64_MIN, true},
                            old = {OF_TIME, 20, INT64_MIN, true};
    weir_remains_fill(f.remains, epoch, 1, list, &any, f.entries, 50);
    assert_true(collect(&f, 1, OF_TIME, INT64_MIN, NULL) && f.count == 50 && !f.span.complete);
    assert_true(collect(&f, 1, OF_TIME, 79, NULL) && f.count == 50 && f.span.complete); /* the last is of 79 */
    assert_true(collect(&f, 1, OF_TIME, 78, NULL) && !f.span.complete);
    weir_remains_fill(f.remains, epoch, 1, list, &young, f.entries, 8);
    assert_true(collect(&f, 1, OF_TIME, INT64_MIN, NULL) && f.count == 50);
    weir_remains_fill(f.remains, epoch, 1, list, &old, f.entries, 108);
    assert_false(collect(&f, 1, OF_TIME, INT64_MIN, NULL));
    assert_true(collect(&f, 1, OF_TIME, 20, NULL) && f.count == 108 && f.span.complete);
    fixture_close(&f);
}

/* Rows that are longer than there is room for: as many as fit, and nothing says that those are all. */
static void long_rows_are_kept_as_far_as_they_fit(void **state) {
    enum { ROW_BYTES = 3000, TOO_LONG = 1 << 16 };
    (void)state;
    fixture f;
    weir_arena *rows;
    uint8_t *row = calloc(1, TOO_LONG);
    fixture_open(&f, 1u << 20);
    assert_ok(weir_arena_open(1u << 20, &rows));
    assert_non_null(row);
    memset(row, 7, ROW_BYTES);
    for (size_t i = 0; i < 20; i++)
        f.entries[i].row = row, f.entries[i].row_length = ROW_BYTES;
    fill(&f, weir_cache_epoch(f.cache), 1, 20, true);
    assert_true(collect(&f, 1, OF_TIME, NEWER_THAN, rows));
    assert_true(f.count > 1 && f.count < 20 && !f.span.complete);
    assert_true(f.found[f.count - 1].row != row);
    assert_memory_equal(f.found[f.count - 1].row, row, ROW_BYTES);
    f.entries[0].row_length = TOO_LONG;
    fill(&f, weir_cache_epoch(f.cache), 2, 20, true);
    assert_false(is_kept(&f, 2));
    free(row);
    weir_arena_close(rows);
    fixture_close(&f);
}

/* The memory is what it was opened with, whatever is read. */
static void more_than_there_is_room_for_takes_turns(void **state) {
    enum { LISTS = 5000, BYTES = 1 << 20 };
    (void)state;
    fixture f;
    size_t kept = 0;
    fixture_open(&f, BYTES);
    for (weir_vertex v = 1; v <= LISTS; v++) {
        fill(&f, weir_cache_epoch(f.cache), v, WEIR_REMAINS_MAX, true);
        assert_true(is_kept(&f, v));
    }
    for (weir_vertex v = 1; v <= LISTS; v++)
        kept += is_kept(&f, v);
    size_t each = WEIR_REMAINS_MAX * sizeof(weir_entry);
    assert_in_range(kept, 16, 4 + BYTES / each);
    fixture_close(&f);
}

/* The short way for edges says what the long one says where that is an answer, and nothing elsewhere. */
static void edges_are_those_that_are_collected(void **state) {
    (void)state;
    weir_rng rng = weir_rng_stream(weir_test_seed(), 0, 0);
    uint8_t bytes[256];
    unsigned answered = 0;
    for (unsigned i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)weir_rng_below(&rng, 256);
    for (uint64_t round = 0; round < weir_test_rounds(400); round++) {
        fixture f;
        weir_arena *arena;
        weir_edge *edges;
        uint32_t count;
        fixture_open(&f, 1u << 20);
        assert_ok(weir_arena_open(1u << 20, &arena));
        for (size_t i = 0; i < WEIR_REMAINS_MAX; i++) {
            f.entries[i].neighbor = weir_vertex_make(weir_rng_u64(&rng), i);
            f.entries[i].row = bytes + weir_rng_below(&rng, 100);
            f.entries[i].row_length = weir_rng_below(&rng, 3) ? weir_rng_below(&rng, 100) & 0x7fu : 0;
        }
        const weir_remains_span span = {(int64_t)weir_rng_below(&rng, 200),
                                        weir_rng_below(&rng, 2) ? (int64_t)weir_rng_below(&rng, 100) : INT64_MIN,
                                        INT64_MIN, weir_rng_below(&rng, 2)};
        weir_remains_fill(f.remains, weir_cache_epoch(f.cache), 1, list, &span, f.entries,
                          weir_rng_below(&rng, 4) ? weir_rng_below(&rng, WEIR_REMAINS_MAX) : 0);
        for (unsigned asked = 0; asked < 20; asked++) {
            const int64_t before_us = (int64_t)weir_rng_below(&rng, 250);
            const int64_t newer_than_us = weir_rng_below(&rng, 3) ? (int64_t)weir_rng_below(&rng, 130) : INT64_MIN;
            const size_t limit = 1 + weir_rng_below(&rng, WEIR_REMAINS_MAX);
            bool answers = weir_remains_collect(f.remains, 1, list, before_us, newer_than_us, f.found, limit, row_of,
                                                arena, &f.count, &f.span);
            answers = answers && (f.count == limit || f.span.complete);
            assert_int_equal(
                weir_remains_edges(f.remains, 1, list, before_us, newer_than_us, limit, arena, &edges, &count),
                answers);
            assert_int_equal(count, answers ? f.count : 0);
            for (uint32_t i = 0; i < count; i++) {
                const weir_entry *e = &f.found[i];
                assert_true(edges[i].neighbor == e->neighbor && edges[i].time_us == e->time_us);
                assert_true(edges[i].event == e->event && edges[i].row_length == e->row_length);
                if (e->row_length) assert_memory_equal(edges[i].row, e->row, e->row_length);
            }
            answered += answers;
        }
        weir_arena_close(arena);
        fixture_close(&f);
    }
    assert_true(answered > 0);
}

WEIR_TESTS(WEIR_CASE(it_answers_as_of_later_and_for_none_that_is_older),
           WEIR_CASE(s5_what_was_scanned_before_a_seal_is_refused), WEIR_CASE(what_says_no_less_stays),
           WEIR_CASE(readers_of_other_ages_do_not_take_each_others), WEIR_CASE(long_rows_are_kept_as_far_as_they_fit),
           WEIR_CASE(more_than_there_is_room_for_takes_turns), WEIR_CASE(edges_are_those_that_are_collected))

/* SPDX-License-Identifier: Apache-2.0 */
/* cache_test.c - which lists have a window that a seal must update. */
#include "weir_test.h"

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
    assert_false(weir_cache_collect(cache, 1, list, INT64_MAX, out, 2 * COUNT, no_rows, NULL, &count, &complete));
    assert_int_equal(count, COUNT);
    weir_cache_fill(cache, weir_cache_epoch(cache), 1, list, entries, COUNT, true);
    assert_true(weir_cache_collect(cache, 1, list, INT64_MAX, out, 2 * COUNT, no_rows, NULL, &count, &complete));
    assert_true(complete && count == COUNT);
    weir_cache_fill(cache, weir_cache_epoch(cache), 1, list, entries, COUNT, false); /* what is known stays */
    assert_true(weir_cache_collect(cache, 1, list, INT64_MAX, out, 2 * COUNT, no_rows, NULL, &count, &complete));
    weir_cache_close(cache);
}

WEIR_TESTS(WEIR_CASE(a_window_may_learn_that_it_is_complete), WEIR_CASE(every_window_is_marked_and_few_others))

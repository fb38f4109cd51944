/* SPDX-License-Identifier: Apache-2.0 */
/* names_test.c - who has a name, by table and filter; against plain arrays of who has taken one. */
#include "weir_test.h"

#include <string.h>

#include <weir/base/rng.h>

#include "filter.h"
#include "names.h"

static weir_vertex vertex_of(uint64_t n) {
    return weir_vertex_make(n + 1, (n + 1) * 0x9e3779b97f4a7c15ull);
}

static void what_was_added_is_never_denied(void **state) {
    (void)state;
    weir_filter *filter;
    assert_ok(weir_filter_open(1u << 16, &filter));
    size_t capacity = weir_filter_capacity(filter), wrong = 0;
    assert_int_equal(capacity, (1u << 16) * 8 / 8);
    for (uint64_t n = 0; n < capacity; n++)
        weir_filter_add(filter, vertex_of(n));
    for (uint64_t n = 0; n < capacity; n++)
        assert_true(weir_filter_has(filter, vertex_of(n)));
    for (uint64_t n = capacity; n < 2 * capacity; n++)
        wrong += weir_filter_has(filter, vertex_of(n));
    assert_true(wrong < capacity / 20);
    weir_filter_close(filter);
}

static void an_empty_filter_denies_all_and_the_least_one_works(void **state) {
    (void)state;
    weir_filter *filter;
    assert_ok(weir_filter_open(1, &filter));
    for (uint64_t n = 0; n < 1000; n++)
        assert_false(weir_filter_has(filter, vertex_of(n)));
    weir_filter_add(filter, 0);
    assert_true(weir_filter_has(filter, 0));
    weir_filter_close(filter);
}

/* Until the filter knows what is stored, only the store can tell; then a stranger is taken at once. */
static void new_only_once_the_filter_is_complete(void **state) {
    (void)state;
    weir_names *names;
    assert_ok(weir_names_open(1u << 20, &names));
    assert_int_equal(weir_names_ask(names, 7), WEIR_NAMES_UNKNOWN);
    weir_names_stored(names, 9);
    weir_names_filter_complete(names);
    assert_int_equal(weir_names_ask(names, 9), WEIR_NAMES_UNKNOWN); /* it may be stored, or the filter wrong */
    assert_int_equal(weir_names_ask(names, 7), WEIR_NAMES_NEW);
    assert_int_equal(weir_names_ask(names, 7), WEIR_NAMES_KNOWN);
    assert_int_equal(weir_names_ask(names, weir_vertex_make(1, 7)), WEIR_NAMES_NEW); /* both halves count */
    assert_int_equal(weir_names_ask(names, weir_vertex_make(7, 2)), WEIR_NAMES_NEW);
    assert_true(weir_names_take(names, 9));
    assert_false(weir_names_take(names, 9));
    assert_int_equal(weir_names_ask(names, 9), WEIR_NAMES_KNOWN);
    weir_names_close(names);
}

/* Far more vertices than the table holds: none that was taken is called new again, however long ago that was. */
static void what_the_table_forgets_is_not_new(void **state) {
    (void)state;
    enum { VERTICES = 200000 };
    static bool taken[VERTICES];
    weir_rng rng = weir_rng_stream(weir_test_seed(), 1, 0);
    weir_names *names;
    uint64_t forgotten = 0;
    memset(taken, 0, sizeof taken);
    assert_ok(weir_names_open(1u << 20, &names));
    weir_names_filter_complete(names);
    for (uint64_t i = 0; i < 2 * VERTICES; i++) {
        uint64_t n = weir_rng_below(&rng, VERTICES);
        weir_names_ahead(names, vertex_of(n));
        weir_names_answer given = weir_names_ask(names, vertex_of(n));
        if (taken[n]) assert_true(given == WEIR_NAMES_KNOWN || given == WEIR_NAMES_UNKNOWN);
        if (!taken[n]) assert_true(given == WEIR_NAMES_NEW || given == WEIR_NAMES_UNKNOWN);
        if (given == WEIR_NAMES_UNKNOWN) assert_true(weir_names_take(names, vertex_of(n)));
        forgotten += taken[n] && given == WEIR_NAMES_UNKNOWN;
        taken[n] = true;
    }
    assert_true(forgotten > 0);
    weir_names_close(names);
}

WEIR_TESTS(WEIR_CASE(what_was_added_is_never_denied), WEIR_CASE(an_empty_filter_denies_all_and_the_least_one_works),
           WEIR_CASE(new_only_once_the_filter_is_complete), WEIR_CASE(what_the_table_forgets_is_not_new))

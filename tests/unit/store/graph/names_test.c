/* SPDX-License-Identifier: Apache-2.0 */
/* names_test.c - who was named not long ago: against a plain array of when each was claimed last. */
#include "weir_test.h"

#include <string.h>

#include <weir/store/base/rng.h>
#include <weir/store/base/thread.h>

#include "names.h"

static weir_vertex vertex_of(uint64_t n) {
    return weir_vertex_make(n + 1, (n + 1) * 0x9e3779b97f4a7c15ull);
}

static void a_claim_is_granted_once(void **state) {
    (void)state;
    weir_names *names;
    assert_ok(weir_names_open(1u << 20, false, &names));
    assert_true(weir_names_claim(names, 7, 0, 0));
    assert_false(weir_names_claim(names, 7, 0, 0));
    assert_true(weir_names_claim(names, weir_vertex_make(1, 7), 0, 0)); /* both halves count */
    assert_true(weir_names_claim(names, weir_vertex_make(7, 2), 0, 0));
    assert_false(weir_names_claim(names, weir_vertex_make(1, 7), 0, 0));
    weir_names_close(names);
}

/* Far more vertices than the table holds: none is called known that was never claimed, and what is claimed again and
 * again is not forgotten, however many others come by. */
static void strangers_are_new_and_regulars_are_known(void **state) {
    (void)state;
    enum { VERTICES = 400000, REGULARS = 500 };
    static bool claimed[VERTICES];
    weir_rng rng = weir_rng_stream(weir_test_seed(), 1, 0);
    weir_names *names;
    uint64_t again = 0;
    memset(claimed, 0, sizeof claimed);
    assert_ok(weir_names_open(1u << 20, false, &names));
    for (uint64_t i = 0; i < 2 * VERTICES; i++) {
        uint64_t regular = i % REGULARS, n = REGULARS + weir_rng_below(&rng, VERTICES - REGULARS);
        weir_names_ahead(names, vertex_of(n));
        bool is_new = weir_names_claim(names, vertex_of(n), 0, 0);
        if (!claimed[n]) assert_true(is_new);
        again += claimed[n] && is_new;
        claimed[n] = true;
        assert_int_equal(weir_names_claim(names, vertex_of(regular), 0, 0), !claimed[regular]);
        claimed[regular] = true;
    }
    assert_true(again > 0); /* it is full: some were forgotten, and are named once more */
    weir_names_close(names);
}

/* A put relies on a name whose time is near its own, on either side; a late one does not take it from others. */
static void a_name_is_wanted_again_after_a_while(void **state) {
    (void)state;
    weir_names *names;
    assert_ok(weir_names_open(1u << 20, true, &names));
    assert_true(weir_names_claim(names, 7, 1000, 100));
    assert_false(weir_names_claim(names, 7, 1099, 100));
    assert_false(weir_names_claim(names, 7, 901, 100));
    assert_true(weir_names_claim(names, 7, 900, 100));
    assert_false(weir_names_claim(names, 7, 1050, 100));
    assert_true(weir_names_claim(names, 7, 1100, 100));
    assert_false(weir_names_claim(names, 7, 1199, 100));
    assert_true(weir_names_claim(names, 7, INT64_MIN, 100));
    assert_true(weir_names_claim(names, 7, INT64_MAX, 100));
    assert_false(weir_names_claim(names, 7, INT64_MAX - 99, 100));
    assert_false(weir_names_claim(names, 7, 5, 0)); /* of a type whose names stay */
    for (uint64_t n = 1000; n < 60000; n++) {       /* it moves from table to table with its time */
        assert_true(weir_names_claim(names, vertex_of(n), 0, 100));
        if (n % 16 == 0) assert_false(weir_names_claim(names, 7, INT64_MAX, 100));
    }
    weir_names_close(names);
}

typedef struct claimer {
    weir_names *names;
    uint64_t granted;
} claimer;

enum { SHARED = 20000 };

static void claim_all(void *context) {
    claimer *c = context;
    for (uint64_t n = 0; n < SHARED; n++) {
        weir_names_ahead(c->names, vertex_of(n));
        c->granted += weir_names_claim(c->names, vertex_of(n), 0, 0);
    }
}

/* Two sources that meet the same vertices: each is granted to one of them. */
static void of_two_threads_one_is_granted(void **state) {
    (void)state;
    claimer claimers[2] = {{0}};
    weir_thread *threads[2];
    assert_ok(weir_names_open(4u << 20, false, &claimers[0].names));
    claimers[1].names = claimers[0].names;
    for (int i = 0; i < 2; i++)
        assert_ok(weir_thread_start("claimer", WEIR_ROLE_INGEST, claim_all, &claimers[i], &threads[i]));
    for (int i = 0; i < 2; i++)
        weir_thread_join(threads[i]);
    assert_int_equal(claimers[0].granted + claimers[1].granted, SHARED);
    weir_names_close(claimers[0].names);
}

WEIR_TESTS(WEIR_CASE(a_claim_is_granted_once), WEIR_CASE(strangers_are_new_and_regulars_are_known),
           WEIR_CASE(of_two_threads_one_is_granted), WEIR_CASE(a_name_is_wanted_again_after_a_while))

/* SPDX-License-Identifier: Apache-2.0 */
/* What hides an edge, against a list of the deletions, of ids that a table tells apart and of some that it does not. */
#include "weir_test.h"

#include <weir/store/base/rng.h>

#include "hidden.h"

enum { DELETIONS = 400, NEIGHBORS = 40, EVENTS = 8 };

/* Both halves alike: of all of these the hash is that of their event. */
static weir_entry entry_of(uint64_t neighbor, uint64_t event) {
    return (weir_entry){.neighbor = weir_vertex_make(neighbor, neighbor % 2 ? neighbor : 0), .event = event};
}

static weir_hidden_by judge(bool met[NEIGHBORS][EVENTS][2], uint64_t neighbor, uint64_t event) {
    if (met[neighbor][event][true] || met[neighbor][0][true]) return WEIR_HIDDEN_BY_COLD;
    return met[neighbor][event][false] || met[neighbor][0][false] ? WEIR_HIDDEN_BY_DELTAS : WEIR_HIDDEN_BY_NONE;
}

static void as_a_list_says(void **state) {
    (void)state;
    weir_rng rng = weir_rng_stream(weir_test_seed(), 0, 0);
    for (uint64_t round = 0; round < weir_test_rounds(20); round++) {
        bool met[NEIGHBORS][EVENTS][2] = {{{false}}};
        weir_hidden hidden = {0};
        weir_arena *arena;
        assert_ok(weir_arena_open(1 << 20, &arena));
        for (int i = 0; i < DELETIONS; i++) {
            uint64_t neighbor = weir_rng_below(&rng, NEIGHBORS), event = weir_rng_below(&rng, EVENTS);
            bool cold = weir_rng_below(&rng, 2);
            if (event == 0 && weir_rng_below(&rng, 10)) event = 1; /* few of all of a neighbour */
            weir_entry deletion = entry_of(neighbor, event), asked;
            assert_ok(weir_hidden_add(&hidden, &deletion, cold, arena));
            met[neighbor][event][cold] = true;
            neighbor = weir_rng_below(&rng, NEIGHBORS);
            event = 1 + weir_rng_below(&rng, EVENTS - 1);
            asked = entry_of(neighbor, event);
            assert_int_equal(weir_hidden_find(&hidden, &asked), judge(met, neighbor, event));
        }
        weir_arena_close(arena);
    }
}

static void without_room_it_says_so(void **state) {
    (void)state;
    weir_hidden hidden = {0};
    weir_arena *arena;
    weir_err err = WEIR_OK;
    uint64_t event = 1;
    assert_ok(weir_arena_open(4096, &arena));
    for (; !err; event++) {
        weir_entry deletion = entry_of(1, event);
        err = weir_hidden_add(&hidden, &deletion, true, arena);
    }
    assert_err(err, WEIR_ELIMIT, "fewer neighbours");
    for (uint64_t met = 1; met + 1 < event; met++) {
        weir_entry asked = entry_of(1, met);
        assert_int_equal(weir_hidden_find(&hidden, &asked), WEIR_HIDDEN_BY_COLD);
    }
    weir_arena_close(arena);
}

WEIR_TESTS(WEIR_CASE(as_a_list_says), WEIR_CASE(without_room_it_says_so))

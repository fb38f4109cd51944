/* SPDX-License-Identifier: Apache-2.0 */
/* pace_test.c - waits on a clock of the test's own: what they cost, and how late they notice. */
#include <weir/store/base/rng.h>
#include <weir/trainer/comm/pace.h>

#include "weir_test.h"

#define SECOND_US ((int64_t)1000000)

typedef struct wait {
    weir_comm_pace pace;
    int64_t now_us, naps_us;
    uint64_t looks;
} wait;

static wait wait_begin(int64_t now_us) {
    wait w = {.now_us = now_us};
    assert_int_equal(weir_comm_pace_nap(&w.pace, INT64_MAX, now_us), 0);
    return w;
}

/* One more look, of this length, and the nap behind it. */
static int64_t wait_look(wait *w, int64_t look_us) {
    w->now_us += look_us;
    w->looks++;
    int64_t nap_us = weir_comm_pace_nap(&w->pace, look_us, w->now_us);
    assert_true(nap_us >= 0);
    w->now_us += nap_us;
    w->naps_us += nap_us;
    return nap_us;
}

/* However long it has waited, and whatever its looks were like: so what moves in looks too short to be noticed goes on,
 * too. */
static void no_nap_is_longer_than_a_millisecond(void **state) {
    (void)state;
    weir_rng rng = weir_rng_stream(weir_test_seed(), 1, 0);
    wait w = wait_begin((int64_t)weir_rng_below(&rng, 1000) * SECOND_US);
    for (uint64_t i = 0; i < 200000; i++) {
        if (weir_rng_below(&rng, 10000) == 0) w.now_us += (int64_t)weir_rng_below(&rng, 3600) * SECOND_US;
        assert_true(wait_look(&w, (int64_t)weir_rng_below(&rng, weir_rng_below(&rng, 500) ? 5 : 50)) <= 1000);
    }
}

/* A look may take long where many look at once, or the machine is slow: then all do. */
static void a_wait_for_nothing_leaves_the_core_to_others(void **state) {
    (void)state;
    for (int64_t look_us = 2; look_us <= 32; look_us *= 4) {
        wait w = wait_begin(SECOND_US);
        while (w.now_us < 11 * SECOND_US)
            wait_look(&w, look_us);
        assert_true(w.looks < 11000);
        assert_true(w.naps_us > 10 * SECOND_US * (100 - look_us) / 100);
    }
}

/* As two ranks take turns: a fragment a look, and a few looks in between while the other one works. */
static void a_transfer_of_many_fragments_is_not_napped_through(void **state) {
    (void)state;
    weir_rng rng = weir_rng_stream(weir_test_seed(), 2, 0);
    wait w = wait_begin(SECOND_US);
    while (w.now_us < 60 * SECOND_US) /* the other rank is late */
        wait_look(&w, 1);
    w.naps_us = 0;
    for (unsigned fragment = 0; fragment < 10000; fragment++) {
        assert_int_equal(wait_look(&w, 6 + (int64_t)weir_rng_below(&rng, 20)), 0);
        for (uint64_t idle = weir_rng_below(&rng, 64); idle > 0; idle--)
            wait_look(&w, (int64_t)weir_rng_below(&rng, 3));
    }
    assert_int_equal(w.naps_us, 0);
}

WEIR_TESTS(WEIR_CASE(no_nap_is_longer_than_a_millisecond), WEIR_CASE(a_wait_for_nothing_leaves_the_core_to_others),
           WEIR_CASE(a_transfer_of_many_fragments_is_not_napped_through))

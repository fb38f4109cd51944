/* SPDX-License-Identifier: Apache-2.0 */
/* lag_test.c - which rank the others wait for: the one above all, beside the one in the middle. */
#include <weir/store/base/rng.h>

#include "training_private.h"
#include "weir_test.h"

#define RANKS 9u

/* As many are at least as fast as the median as are at least as slow, of those that computed anything. */
static void the_slowest_beside_the_median(void **state) {
    (void)state;
    weir_rng rng = weir_rng_stream(weir_test_seed(), 8, 0);
    for (unsigned round = 0; round < 300; round++) {
        double micros[RANKS], sorted[RANKS];
        uint32_t ranks = 1 + (uint32_t)weir_rng_below(&rng, RANKS), slowest, busy = 0, below = 0, above = 0;
        for (uint32_t i = 0; i < ranks; i++) {
            sorted[i] = micros[i] = weir_rng_below(&rng, 5) ? 1 + (double)weir_rng_below(&rng, 20) : 0;
            busy += micros[i] > 0;
        }
        double lag = weir_training_lag(sorted, ranks, &slowest);
        assert_true(slowest < ranks && lag >= 1);
        for (uint32_t i = 0; i < ranks; i++) {
            double median = micros[slowest] / lag;
            assert_true(micros[i] <= micros[slowest]);
            below += micros[i] > 0 && micros[i] <= median + 1e-9;
            above += micros[i] >= median - 1e-9 && micros[i] > 0;
        }
        assert_true(2 * below >= busy && 2 * above >= busy);
        if (busy <= 1) assert_true(lag == 1);
    }
}

static void of_two_ranks_it_is_beside_the_other(void **state) {
    (void)state;
    double micros[] = {30, 10};
    uint32_t slowest;
    assert_true(weir_training_lag(micros, 2, &slowest) == 3 && slowest == 0);
}

WEIR_TESTS(WEIR_CASE(the_slowest_beside_the_median), WEIR_CASE(of_two_ranks_it_is_beside_the_other))

/* SPDX-License-Identifier: Apache-2.0 */
/* rate_test.c - the share of the rate of a step, against its closed form. */
#include <math.h>

#include <weir/store/base/rng.h>

#include "training_private.h"
#include "weir_test.h"

static void is(const weir_train_opts *o, uint32_t epoch, uint64_t step, double expected) {
    const double share = weir_training_rate_share(o, epoch, step);
    if (!(fabs(share - expected) < 1e-12))
        fail_msg("epoch %u, step %llu: %.15g is %.15g", epoch, (unsigned long long)step, expected, share);
}

static void without_a_schedule_it_stays(void **state) {
    (void)state;
    const weir_train_opts o = {.epochs = 10};
    assert_true(weir_training_rate_share(&o, 1, 1) == 1); /* to the bit: trainings of before come out as they did */
    assert_true(weir_training_rate_share(&o, 10, 100000) == 1);
}

static void it_rises_in_a_line(void **state) {
    (void)state;
    const weir_train_opts o = {.epochs = 10, .rate_rise = 8};
    for (uint32_t step = 1; step <= 8; step++)
        is(&o, 1, step, step / 8.0);
    is(&o, 1, 9, 1);
    is(&o, 10, 1000, 1);
}

/* cos² of half the angle: another way to write the fall. */
static void it_falls_by_a_cosine(void **state) {
    (void)state;
    weir_rng rng = weir_rng_stream(weir_test_seed(), 4, 0);
    for (unsigned round = 0; round < 500; round++) {
        weir_train_opts o = {.schedule = WEIR_TRAIN_COSINE, .rate_end = weir_rng_double(&rng)};
        o.epochs = 1 + (uint32_t)weir_rng_below(&rng, 200);
        o.rate_rise = (uint32_t)weir_rng_below(&rng, 50);
        const uint32_t epoch = 1 + (uint32_t)weir_rng_below(&rng, o.epochs);
        const uint64_t step = 1 + weir_rng_below(&rng, 100);
        const double half = acos(-1) * (epoch - 1) / o.epochs / 2;
        const double rise = o.rate_rise == 0 ? 1 : fmin(1, (double)step / o.rate_rise);
        is(&o, epoch, step, rise * (o.rate_end * pow(sin(half), 2) + pow(cos(half), 2)));
        is(&o, 1, o.rate_rise + 1, 1);
        assert_true(weir_training_rate_share(&o, o.epochs, o.rate_rise + 1) > o.rate_end); /* it still learns */
    }
}

static void one_epoch_does_not_fall(void **state) {
    (void)state;
    const weir_train_opts o = {.schedule = WEIR_TRAIN_COSINE, .epochs = 1, .rate_end = 0.1};
    is(&o, 1, 5, 1);
}

WEIR_TESTS(WEIR_CASE(without_a_schedule_it_stays), WEIR_CASE(it_rises_in_a_line), WEIR_CASE(it_falls_by_a_cosine),
           WEIR_CASE(one_epoch_does_not_fall))

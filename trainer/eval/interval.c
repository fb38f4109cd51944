/* SPDX-License-Identifier: Apache-2.0 */
/*
 * interval.c - how far an average precision is chance: what it would be of as many targets drawn again from the same.
 *
 * Each draw gives every target a weight of its own, how often it is drawn (Poisson of mean 1, which for many targets is
 * what drawing with replacement is), and walks once over the one order that they have.
 */
#include <math.h>
#include <stdlib.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/rng.h>

#include "eval_private.h"

#define DRAWS     1000u
#define DRAWS_MIN 200u
#define WORK_MAX  200000000u /* targets of all draws: some seconds */
#define TIMES_MAX 12u        /* in 2^32 draws of a target not one is drawn more often */

/* Chances that a target is drawn at most so often, of 2^32. */
static void interval_fill_poisson(uint32_t below[TIMES_MAX]) {
    double chance = exp(-1), sum = 0;
    for (uint32_t k = 0; k < TIMES_MAX; k++) {
        sum += chance;
        chance /= k + 1;
        below[k] = sum < 1 ? (uint32_t)(sum * 4294967296.0) : UINT32_MAX;
    }
}

static uint32_t interval_times(const uint32_t below[TIMES_MAX], uint32_t drawn) {
    uint32_t times = 0;
    while (times < TIMES_MAX && drawn >= below[times])
        times++;
    return times;
}

/* NAN: of this draw no positive. */
static double interval_draw(const weir_ranked *ranked, size_t count, const uint32_t below[TIMES_MAX], weir_rng rng) {
    double sum = 0, seen = 0, found = 0;
    for (size_t begin = 0; begin < count;) {
        double all = 0, positive = 0;
        size_t at = begin;
        do {
            const uint32_t times = interval_times(below, weir_rng_u32(&rng));
            all += times;
            positive += ranked[at].label ? times : 0;
        } while (++at < count && ranked[at].score == ranked[begin].score);
        seen += all;
        found += positive;
        if (positive > 0) sum += positive * (found / seen);
        begin = at;
    }
    return found > 0 ? sum / found : (double)NAN;
}

static int interval_rising(const void *a, const void *b) {
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

weir_err weir_eval_average_precision_interval(const weir_scored *scored, uint64_t seed, weir_interval *intervalp) {
    uint32_t below[TIMES_MAX], kept = 0;
    weir_ranked *ranked = NULL;
    size_t positives;
    *intervalp = (weir_interval){0, 0};
    weir_err err = weir_eval_rank(scored, NULL, &ranked, &positives);
    if (err) return err;
    uint32_t draws = scored->count * DRAWS <= WORK_MAX ? DRAWS : (uint32_t)(WORK_MAX / scored->count);
    if (draws < DRAWS_MIN) draws = DRAWS_MIN;
    double *values = weir_calloc(draws, sizeof *values);
    if (!values) err = WEIR_NOMEM("for the interval of a metric");
    interval_fill_poisson(below);
    for (uint32_t i = 0; !err && i < draws; i++) {
        values[kept] = interval_draw(ranked, scored->count, below, weir_rng_stream(seed, i, 0));
        kept += !isnan(values[kept]);
    }
    if (!err && kept == 0) err = WEIR_ERR(WEIR_EDATA, "no target is positive; take a longer range of time");
    if (!err) {
        qsort(values, kept, sizeof *values, interval_rising);
        *intervalp = (weir_interval){values[(size_t)(0.025 * kept)], values[(size_t)(0.975 * kept)]};
        WEIR_ASSERT(intervalp->low <= intervalp->high);
    }
    weir_free(values);
    weir_free(ranked);
    return err;
}

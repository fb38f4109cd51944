/* SPDX-License-Identifier: Apache-2.0 */
/*
 * interval.c - how far a metric is chance: what it would be of as many targets drawn again from the same.
 *
 * Each draw gives every target a weight of its own, how often it is drawn (Poisson of mean 1, which for many targets is
 * what drawing with replacement is), and walks once over the order that they have. Of two models that scored the same
 * targets both orders have the same weights: what is hard to tell for both does not hide which of them is better.
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
#define CLASS_MIN 10u        /* of each class; of 2 positives 1 in 7 equal models would seem surely better */

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
static double interval_of_draw(const weir_ranked *ranked, size_t count, const uint8_t *times) {
    double sum = 0, seen = 0, found = 0;
    for (size_t begin = 0; begin < count;) {
        double all = 0, positive = 0;
        size_t at = begin;
        do {
            all += times[ranked[at].at];
            positive += ranked[at].label ? times[ranked[at].at] : 0;
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

/* Of the one order, or of how far it is above the other, which may be NULL. */
static weir_err interval_draw(const weir_ranked *ranked, const weir_ranked *other, size_t count, uint64_t seed,
                              weir_interval *intervalp) {
    uint32_t below[TIMES_MAX], kept = 0;
    uint32_t draws = count * DRAWS <= WORK_MAX ? DRAWS : (uint32_t)(WORK_MAX / count);
    if (draws < DRAWS_MIN) draws = DRAWS_MIN;
    double *values = weir_calloc(draws, sizeof *values);
    uint8_t *times = weir_malloc(count + 1);
    weir_err err = values && times ? WEIR_OK : WEIR_NOMEM("for the interval of a metric");
    interval_fill_poisson(below);
    for (uint32_t i = 0; !err && i < draws; i++) {
        weir_rng rng = weir_rng_stream(seed, i, 0);
        for (size_t target = 0; target < count; target++)
            times[target] = (uint8_t)interval_times(below, weir_rng_u32(&rng));
        values[kept] = interval_of_draw(ranked, count, times);
        if (other) values[kept] -= interval_of_draw(other, count, times);
        kept += !isnan(values[kept]);
    }
    if (!err && kept == 0) err = WEIR_ERR(WEIR_EDATA, "no target is positive; take a longer range of time");
    if (!err) {
        qsort(values, kept, sizeof *values, interval_rising);
        *intervalp = (weir_interval){values[(size_t)(0.025 * kept)], values[kept - 1 - (size_t)(0.025 * kept)]};
        WEIR_ASSERT(intervalp->low <= intervalp->high);
    }
    weir_free(values);
    weir_free(times);
    return err;
}

weir_err weir_eval_average_precision_interval(const weir_scored *scored, uint64_t seed, weir_interval *intervalp) {
    weir_ranked *ranked = NULL;
    size_t positives;
    *intervalp = (weir_interval){0, 0};
    weir_err err = weir_eval_rank(scored, NULL, &ranked, &positives);
    if (!err) err = interval_draw(ranked, NULL, scored->count, seed, intervalp);
    weir_free(ranked);
    return err;
}

weir_err weir_eval_average_precision_difference(const weir_scored *scored, const double *others, uint64_t seed,
                                                weir_interval *intervalp) {
    const weir_scored other = {others, scored->labels, scored->count};
    weir_ranked *ranked = NULL, *ranked_other = NULL;
    double value = 0, value_other = 0;
    size_t positives;
    *intervalp = (weir_interval){0, 0};
    weir_err err = weir_eval_rank(scored, NULL, &ranked, &positives);
    if (!err) err = weir_eval_rank(&other, NULL, &ranked_other, &positives);
    if (!err) err = interval_draw(ranked, ranked_other, scored->count, seed, intervalp);
    if (!err) err = weir_eval_average_precision(scored, &value);
    if (!err) err = weir_eval_average_precision(&other, &value_other);
    /* Draws are biased: a positive that is drawn twice counts twice in its own precision, which helps most a model
     * whose positives stand behind negatives. So what draws are above the difference is taken from it (basic
     * bootstrap). */
    const weir_interval drawn = *intervalp;
    const double twice = 2 * (value - value_other);
    *intervalp = (weir_interval){fmax(-1, twice - drawn.high), fmin(1, twice - drawn.low)};
    if (!err && (positives < CLASS_MIN || scored->count - positives < CLASS_MIN)) *intervalp = (weir_interval){-1, 1};
    weir_free(ranked);
    weir_free(ranked_other);
    return err;
}

/* Targets of which both are right, or wrong, say nothing: McNemar's test over the others, by the normal approximation
 * with a correction for its being a count. Below 6 of them nothing is sure. */
weir_err weir_eval_accuracy_difference(const double *scores, const double *others, const uint8_t *classes, size_t count,
                                       weir_interval *intervalp) {
    double alone = 0, other_alone = 0;
    *intervalp = (weir_interval){0, 0};
    if (!count) return WEIR_ERR(WEIR_EDATA, "there are no targets; take a longer range of time");
    for (size_t i = 0; i < count; i++) {
        bool right = scores[i] == (double)classes[i], other_right = others[i] == (double)classes[i];
        alone += right && !other_right;
        other_alone += other_right && !right;
    }
    double n = (double)count, apart = alone + other_alone, more = alone - other_alone;
    if (apart == 0) return WEIR_OK;
    double half = 1.96 * sqrt(apart) + 1;
    *intervalp = (weir_interval){(more - half) / n, (more + half) / n};
    return WEIR_OK;
}

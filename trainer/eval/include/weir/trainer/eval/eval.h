/* SPDX-License-Identifier: Apache-2.0 */
/*
 * eval.h - how good scores are, and what they mean as probabilities.
 *
 * Scores are any finite numbers, higher is more likely; labels are 0 or 1. Equal scores are one rank: no metric of
 * ranks depends on the order of its input.
 *
 * THREADS: every function is [any]; those that sort allocate.
 */
#ifndef WEIR_TRAINER_EVAL_EVAL_H
#define WEIR_TRAINER_EVAL_EVAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/store/base/err.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Borrowed. */
typedef struct weir_scored {
    const double *scores;
    const uint8_t *labels;
    size_t count;
} weir_scored;

/* Chance that a positive stands above a negative, ties half.  WEIR_EDATA one class only, or a score that is not finite;
 * WEIR_ENOMEM. */
weir_err weir_eval_auroc(const weir_scored *scored, double *valuep);
/* Sum over thresholds of (recall gained) x precision; a group of equal scores is one threshold.  The same errors. */
weir_err weir_eval_average_precision(const weir_scored *scored, double *valuep);

typedef struct weir_interval {
    double low, high;
} weir_interval;

/* In which the average precision of as many targets, drawn again from these, lies 95 times of 100; the same for the
 * same seed.  WEIR_EDATA no positive, or a score that is not finite; WEIR_ENOMEM. */
weir_err weir_eval_average_precision_interval(const weir_scored *scored, uint64_t seed, weir_interval *intervalp);
/* The same of how far it is above the average precision of other scores of these targets, where each target is drawn
 * equally often for both. Of two that are equally good, low is above 0 in at most 5 of 100. With fewer than 10
 * positives, or negatives, it is -1 to 1: they can tell nothing.  The same errors. */
weir_err weir_eval_average_precision_difference(const weir_scored *scored, const double *others, uint64_t seed,
                                                weir_interval *intervalp);
/* The same of accuracies, by a formula. Scores are classes.  WEIR_EDATA no targets. */
weir_err weir_eval_accuracy_difference(const double *scores, const double *others, const uint8_t *classes, size_t count,
                                       weir_interval *intervalp);

/* What a team that can look at `alerts` targets a day finds. days: of each target, any number that names its day. */
typedef struct weir_eval_budget {
    double precision; /* of the alerts that were given */
    double recall;    /* of all positives              */
    uint64_t alerts, days;
} weir_eval_budget;

/* Each day's highest scores, at most `alerts`; where equal scores pass the limit, as many of them count as have room,
 * at the group's own precision.  WEIR_EDATA no targets, no alerts, or a score that is not finite; WEIR_ENOMEM. */
weir_err weir_eval_at_budget(const weir_scored *scored, const int64_t *days, uint32_t alerts,
                             weir_eval_budget *budgetp);
/* The sum of the amounts of the positives that the same alerts find; of a group that does not fit, its mean for as many
 * as have room. amounts: finite, one a target.  The same errors. */
weir_err weir_eval_amount_at_budget(const weir_scored *scored, const int64_t *days, uint32_t alerts,
                                    const double *amounts, double *amountp);

/* probability = 1 / (1 + exp(-(slope * score + offset))) */
typedef struct weir_calibration {
    double slope, offset;
} weir_calibration;

/* Platt's fit with his smoothed targets, by Newton's method with a line search; deterministic.  WEIR_EDATA one
 * class only, or a score that is not finite. */
weir_err weir_calibration_fit(const weir_scored *scored, weir_calibration *calibrationp);
double weir_calibrated(const weir_calibration *calibration, double score);

/* Of probabilities in [0, 1]; that of the right class counts as 1e-15 at least.  WEIR_EDATA none, or one outside. */
weir_err weir_eval_log_loss(const weir_scored *scored, double *valuep);
/* Of probabilities: how far a group's mean is from its share of positives, on average over the targets, in 15 groups as
 * wide as each other (expected calibration error).  The same errors. */
weir_err weir_eval_calibration_error(const weir_scored *scored, double *valuep);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_TRAINER_EVAL_EVAL_H */

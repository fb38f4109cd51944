/* SPDX-License-Identifier: Apache-2.0 */
/*
 * calibration.c - Platt's logistic calibration_fit of labels by scores.
 *
 * As Lin, Lin and Weng, "A note on Platt's probabilistic outputs for support vector machines" (2007) put it right:
 * targets drawn in by the prior, Newton's method on the two parameters, steps halved until the loss falls. Scores are
 * first put to mean 0 and deviation 1, so that the ridge and the stop mean the same for all of them.
 */
#include <math.h>

#include <weir/store/base/assert.h>
#include <weir/trainer/eval/eval.h>

#define NEWTON_STEPS_MAX 100u
#define HALVINGS_MAX     40u
#define RIDGE            1e-12
#define GRADIENT_SMALL   1e-9 /* of the mean loss */
#define ENOUGH           1e-4 /* Armijo's share   */

typedef struct calibration_fit {
    const weir_scored *scored;
    double mean, deviation;               /* of the scores  */
    double target[2];                     /* of a negative and a positive */
    double slope, offset;                 /* of the scores as standardised */
    double by_slope, by_offset, curve[3]; /* first and second derivatives: slope slope, slope offset, offset offset */
} calibration_fit;

static double calibration_z(const calibration_fit *f, size_t i, double slope, double offset) {
    return slope * (f->scored->scores[i] - f->mean) / f->deviation + offset;
}

static double calibration_loss(const calibration_fit *f, double slope, double offset) {
    double sum = 0;
    for (size_t i = 0; i < f->scored->count; i++) {
        double z = calibration_z(f, i, slope, offset), t = f->target[f->scored->labels[i] != 0];
        sum += fmax(z, 0) + log1p(exp(-fabs(z))) - t * z;
    }
    return sum / (double)f->scored->count;
}

static void calibration_derive(calibration_fit *f) {
    double n = (double)f->scored->count;
    f->by_slope = f->by_offset = 0;
    f->curve[0] = f->curve[2] = RIDGE;
    f->curve[1] = 0;
    for (size_t i = 0; i < f->scored->count; i++) {
        double x = calibration_z(f, i, 1, 0), z = f->slope * x + f->offset;
        double small = exp(-fabs(z)), p = z >= 0 ? 1 / (1 + small) : small / (1 + small);
        double d = (p - f->target[f->scored->labels[i] != 0]) / n, q = p * (1 - p) / n;
        f->by_slope += d * x;
        f->by_offset += d;
        f->curve[0] += q * x * x;
        f->curve[1] += q * x;
        f->curve[2] += q;
    }
}

/* false: no step makes the loss smaller. */
static bool calibration_step(calibration_fit *f) {
    double determinant = f->curve[0] * f->curve[2] - f->curve[1] * f->curve[1];
    double slope = -(f->curve[2] * f->by_slope - f->curve[1] * f->by_offset) / determinant;
    double offset = -(f->curve[0] * f->by_offset - f->curve[1] * f->by_slope) / determinant;
    double falls = f->by_slope * slope + f->by_offset * offset, loss = calibration_loss(f, f->slope, f->offset),
           share = 1;
    for (unsigned i = 0; i < HALVINGS_MAX; i++) {
        if (calibration_loss(f, f->slope + share * slope, f->offset + share * offset) <=
            loss + ENOUGH * share * falls) {
            f->slope += share * slope;
            f->offset += share * offset;
            return true;
        }
        share /= 2;
    }
    return false;
}

static weir_err calibration_begin(calibration_fit *f) {
    const weir_scored *s = f->scored;
    double positives = 0, squares = 0, n = (double)s->count;
    for (size_t i = 0; i < s->count; i++) {
        if (!isfinite(s->scores[i]))
            return WEIR_ERR(WEIR_EDATA, "score %zu is not a number; look for inputs that are not", i);
        f->mean += s->scores[i] / n;
        positives += s->labels[i] != 0;
    }
    if (positives == 0 || positives == n)
        return WEIR_ERR(WEIR_EDATA,
                        "%zu targets, of which %.0f are positive: calibration needs both classes; take a "
                        "longer range of time",
                        s->count, positives);
    for (size_t i = 0; i < s->count; i++)
        squares += (s->scores[i] - f->mean) * (s->scores[i] - f->mean) / n;
    f->deviation = squares > 0 ? sqrt(squares) : 1;
    WEIR_ASSERT(f->deviation > 0);
    f->target[0] = 1 / (n - positives + 2);
    f->target[1] = (positives + 1) / (positives + 2);
    f->offset = log((positives + 1) / (n - positives + 1));
    return WEIR_OK;
}

weir_err weir_calibration_fit(const weir_scored *scored, weir_calibration *calibrationp) {
    calibration_fit f = {.scored = scored};
    *calibrationp = (weir_calibration){.slope = 1};
    weir_err err = calibration_begin(&f);
    if (err) return err;
    for (unsigned step = 0; step < NEWTON_STEPS_MAX; step++) {
        calibration_derive(&f);
        if (fabs(f.by_slope) < GRADIENT_SMALL && fabs(f.by_offset) < GRADIENT_SMALL) break;
        if (!calibration_step(&f)) break;
    }
    calibrationp->slope = f.slope / f.deviation;
    calibrationp->offset = f.offset - f.slope * f.mean / f.deviation;
    return WEIR_OK;
}

double weir_calibrated(const weir_calibration *calibration, double score) {
    double z = calibration->slope * score + calibration->offset, small = exp(-fabs(z));
    return z >= 0 ? 1 / (1 + small) : small / (1 + small);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * losses.c - cross-entropies and their gradients, summed in double in the order of the targets (NN-B2).
 *
 * A focal loss is (1 - p)^g · c, where c = -log p is the cross-entropy of what has the chance p: what is nearly certain
 * counts for nearly nothing. By the logits it is the cross-entropy's gradient times
 *
 *   (1 - p)^g + g · p · c · (1 - p)^(g - 1)  =  (1 - p)^g · (1 + g · p · c / (1 - p)),  where c / (1 - p) is 1 at p = 1
 */
#include <math.h>

#include <weir/store/base/assert.h>

#include "losses.h"

static double loss_weight_of(const weir_loss *loss, uint32_t i) {
    uint32_t label = loss->labels[i];
    if (label == WEIR_LOSS_NO_LABEL) return 0;
    WEIR_ASSERT(label < loss->classes);
    return loss->weights ? loss->weights[label] : 1;
}

/* What becomes of a cross-entropy; *factorp: of its gradient. Without g the same, to the bit. */
static double loss_focal(double g, double entropy, double *factorp) {
    const double missing = -expm1(-entropy), share = missing > 0 ? entropy / missing : 1;
    const double counts = g > 0 ? pow(missing, g) : 1;
    *factorp = counts * (1 + g * exp(-entropy) * share);
    return counts * entropy;
}

/* log(1 + exp(z)) - y z, without an overflow on either side; *slopep: by z. */
static double loss_binary_one(double z, double y, double *slopep) {
    double small = exp(-fabs(z));
    *slopep = (z >= 0 ? 1 / (1 + small) : small / (1 + small)) - y;
    return fmax(z, 0) + log1p(small) - y * z;
}

static double loss_binary(const weir_loss *loss, weir_real *dlogits) {
    double sum = 0;
    WEIR_ASSERT(loss->divisor > 0);
    for (uint32_t i = 0; i < loss->count; i++) {
        double weight = loss_weight_of(loss, i) / loss->divisor, slope = 0, factor = 0;
        if (weight > 0) {
            double entropy = loss_binary_one((double)loss->logits[i], loss->labels[i] == 1, &slope);
            sum += weight * loss_focal(loss->focal, entropy, &factor);
        }
        if (dlogits) dlogits[i] = (weir_real)(weight * slope * factor);
    }
    return sum;
}

/* log(sum of exp(z)), kept from overflow by the largest. */
static double loss_log_sum_exp(const weir_real *logits, uint32_t classes) {
    uint32_t most = 0;
    double others = 0;
    for (uint32_t c = 1; c < classes; c++)
        most = logits[c] > logits[most] ? c : most;
    for (uint32_t c = 0; c < classes; c++)
        others += c == most ? 0 : exp((double)(logits[c] - logits[most]));
    return (double)logits[most] + log1p(others);
}

static double loss_softmax(const weir_loss *loss, weir_real *dlogits) {
    double sum = 0;
    WEIR_ASSERT(loss->divisor > 0 && loss->classes > 0);
    for (uint32_t i = 0; i < loss->count; i++) {
        const weir_real *z = loss->logits + (size_t)i * loss->classes;
        weir_real *d = dlogits ? dlogits + (size_t)i * loss->classes : NULL;
        double weight = loss_weight_of(loss, i) / loss->divisor, total = loss_log_sum_exp(z, loss->classes);
        double factor = 0;
        if (weight > 0) sum += weight * loss_focal(loss->focal, total - (double)z[loss->labels[i]], &factor);
        for (uint32_t c = 0; d && c < loss->classes; c++)
            d[c] = (weir_real)(weight * factor * (exp((double)z[c] - total) - (loss->labels[i] == c)));
    }
    return sum;
}

void weir_cpu_loss(const weir_kernels *context, uint32_t outputs, const weir_loss *loss, weir_real *dlogits,
                   double *sum) {
    (void)context;
    WEIR_ASSERT(outputs == loss->classes || (outputs == 1 && loss->classes == 2));
    *sum += outputs == 1 ? loss_binary(loss, dlogits) : loss_softmax(loss, dlogits);
}

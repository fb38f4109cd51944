/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rate.c - what share of its rate a training moves by, from step to step.
 *
 *   share = rise · fall
 *   rise    step / rise steps, of the first of them; then 1
 *   fall    end + (1 - end) · (1 + cos(pi · (epoch - 1) / epochs)) / 2: 1 in the first epoch, and `end` would be that
 *           of the one behind the last, so that each learns something
 *
 * It falls from epoch to epoch, and not from step to step: rows of embeddings that wait for their turn all have to be
 * brought whenever the rate changes (adamw.c). It is a function of what a checkpoint has, so what is resumed goes on
 * with the same rates.
 */
#include <math.h>

#include <weir/store/base/assert.h>

#include "training_private.h"

static double rate_fall(const weir_train_opts *o, uint32_t epoch) {
    const uint32_t epochs = o->fall_epochs ? o->fall_epochs : o->epochs;
    if (o->schedule != WEIR_TRAIN_COSINE) return 1;
    const double way = (double)(epoch - 1) / epochs;
    return o->rate_end + (1 - o->rate_end) * (1 + cos(M_PI * way)) / 2;
}

double weir_training_rate_share(const weir_train_opts *opts, uint32_t epoch, uint64_t step) {
    WEIR_ASSERT(epoch >= 1 && epoch <= opts->epochs && step >= 1);
    const double rise = step < opts->rate_rise ? (double)step / opts->rate_rise : 1;
    return rise * rate_fall(opts, epoch);
}

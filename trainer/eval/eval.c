/* SPDX-License-Identifier: Apache-2.0 */
/* eval.c - metrics of probabilities. */
#include <math.h>

#include <weir/trainer/eval/eval.h>

#define EVAL_LOG_LOSS_END 1e-15 /* one sure and wrong answer must not make the mean infinite */

weir_err weir_eval_log_loss(const weir_scored *scored, double *valuep) {
    double sum = 0;
    *valuep = 0;
    if (scored->count == 0) return WEIR_ERR(WEIR_EDATA, "no targets; take a longer range of time");
    for (size_t i = 0; i < scored->count; i++) {
        double p = scored->scores[i];
        if (!(p >= 0 && p <= 1)) return WEIR_ERR(WEIR_EDATA, "probability %zu is %g; calibrate the scores first", i, p);
        sum -= log(fmax(scored->labels[i] ? p : 1 - p, EVAL_LOG_LOSS_END));
    }
    *valuep = sum / (double)scored->count;
    return WEIR_OK;
}

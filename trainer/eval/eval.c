/* SPDX-License-Identifier: Apache-2.0 */
/* eval.c - metrics of probabilities. */
#include <math.h>

#include <weir/trainer/eval/eval.h>

#define EVAL_LOG_LOSS_END 1e-15 /* one sure and wrong answer must not make the mean infinite */

static weir_err eval_check_probabilities(const weir_scored *scored) {
    if (scored->count == 0) return WEIR_ERR(WEIR_EDATA, "no targets; take a longer range of time");
    for (size_t i = 0; i < scored->count; i++) {
        if (!(scored->scores[i] >= 0 && scored->scores[i] <= 1))
            return WEIR_ERR(WEIR_EDATA, "probability %zu is %g; calibrate the scores first", i, scored->scores[i]);
    }
    return WEIR_OK;
}

weir_err weir_eval_log_loss(const weir_scored *scored, double *valuep) {
    double sum = 0;
    *valuep = 0;
    weir_err err = eval_check_probabilities(scored);
    if (err) return err;
    for (size_t i = 0; i < scored->count; i++) {
        double of_label = scored->labels[i] ? scored->scores[i] : 1 - scored->scores[i];
        sum -= log(fmax(of_label, EVAL_LOG_LOSS_END));
    }
    *valuep = sum / (double)scored->count;
    return WEIR_OK;
}

weir_err weir_eval_brier(const weir_scored *scored, double *valuep) {
    double sum = 0;
    *valuep = 0;
    weir_err err = eval_check_probabilities(scored);
    if (err) return err;
    for (size_t i = 0; i < scored->count; i++) {
        double distance = scored->scores[i] - (scored->labels[i] ? 1 : 0);
        sum += distance * distance;
    }
    *valuep = sum / (double)scored->count;
    return WEIR_OK;
}

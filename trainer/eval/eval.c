/* SPDX-License-Identifier: Apache-2.0 */
/* eval.c - metrics of probabilities. */
#include <math.h>

#include <weir/trainer/eval/eval.h>

#define EVAL_GROUPS       15u
#define EVAL_LOG_LOSS_END 1e-15 /* one sure and wrong answer must not make the mean infinite */

static weir_err eval_check_probabilities(const weir_scored *scored) {
    if (scored->count == 0) return WEIR_ERR(WEIR_EDATA, "no targets; take a longer range of time");
    for (size_t i = 0; i < scored->count; i++) {
        double p = scored->scores[i];
        if (!(p >= 0 && p <= 1)) return WEIR_ERR(WEIR_EDATA, "probability %zu is %g; calibrate the scores first", i, p);
    }
    return WEIR_OK;
}

weir_err weir_eval_log_loss(const weir_scored *scored, double *valuep) {
    double sum = 0;
    *valuep = 0;
    weir_err err = eval_check_probabilities(scored);
    if (err) return err;
    for (size_t i = 0; i < scored->count; i++) {
        double p = scored->scores[i];
        sum -= log(fmax(scored->labels[i] ? p : 1 - p, EVAL_LOG_LOSS_END));
    }
    *valuep = sum / (double)scored->count;
    return WEIR_OK;
}

weir_err weir_eval_calibration_error(const weir_scored *scored, double *valuep) {
    double off[EVAL_GROUPS] = {0}, sum = 0; /* of each group: probabilities less labels */
    *valuep = 0;
    weir_err err = eval_check_probabilities(scored);
    if (err) return err;
    for (size_t i = 0; i < scored->count; i++) {
        uint32_t group = (uint32_t)(scored->scores[i] * EVAL_GROUPS);
        off[group < EVAL_GROUPS ? group : EVAL_GROUPS - 1] += scored->scores[i] - (scored->labels[i] != 0);
    }
    for (uint32_t group = 0; group < EVAL_GROUPS; group++)
        sum += fabs(off[group]);
    *valuep = sum / (double)scored->count;
    return WEIR_OK;
}

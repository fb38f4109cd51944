/* SPDX-License-Identifier: Apache-2.0 */
/* eval_private.h - scores in their order, as groups of equal ones: what every metric of ranks walks over. */
#ifndef WEIR_TRAINER_EVAL_PRIVATE_H
#define WEIR_TRAINER_EVAL_PRIVATE_H

#include <weir/trainer/eval/eval.h>

typedef struct weir_ranked {
    double score;
    int64_t day;
    uint32_t at; /* where it stands in the input */
    uint8_t label;
} weir_ranked;

/* Checks the scores, and copies them sorted: by day (all 0 without days), then highest first. Freed by weir_free.
 * *positivesp: how many labels are 1.  WEIR_EDATA, WEIR_ENOMEM. */
weir_err weir_eval_rank(const weir_scored *scored, const int64_t *days, weir_ranked **rankedp, size_t *positivesp);
/* Where the group of equal day and score that begins here ends; *positivesp: of the group. */
size_t weir_eval_group(const weir_ranked *ranked, size_t count, size_t begin, size_t *positivesp);

#endif /* WEIR_TRAINER_EVAL_PRIVATE_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * judge.h - how a model that was trained before scores the test targets of a snapshot.
 *
 * The same targets, blocks and measures as of a training on that snapshot: what two models get here can be compared.
 */
#ifndef WEIR_TRAINER_TRAIN_JUDGE_H
#define WEIR_TRAINER_TRAIN_JUDGE_H

#include <weir/inference/nn/nn.h>
#include <weir/store/base/err.h>
#include <weir/trainer/train/train.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_JUDGED_KEY_BYTES_MAX 80u /* it goes into a line that others read, with a limit */

/* A target by its key. */
typedef struct weir_judged_example {
    bool found; /* false: there is none, or its key is too long */
    uint32_t type;
    double score;
    char key[WEIR_JUDGED_KEY_BYTES_MAX];
    size_t key_length;
} weir_judged_example;

typedef struct weir_judged {
    weir_train_metrics metrics;  /* of the test targets, without log loss           */
    weir_judged_example example; /* the one of class 1 that has the highest score   */
    uint64_t count;              /* on rank 0; else 0                                            */
    double *scores;              /* one a test target, as of weir_trained_view                   */
    uint8_t *classes;            /* the right ones                                             */
} weir_judged;
void weir_judged_free(weir_judged *judged);

/* What is judged: a network, trees, or both; borrowed. A plain value. */
typedef struct weir_judge_model {
    const weir_nn_shape *shape;
    const weir_nn *nn;       /* NULL: trees alone       */
    const weir_real *params; /* in the kernels' memory  */
    const weir_trees *trees; /* NULL: a network alone   */
    uint32_t hops;           /* of their columns        */
    weir_blend blend;        /* of network and trees    */
} weir_judge_model;

/* opts: snapshot, part, batch, ahead (1 to WEIR_TRAIN_AHEAD_MAX), alerts, cut, wire and sample_seed count, and are to
 * be such as weir_train_run takes; the task is the model's. *judgedp is to be freed, after an error too. All ranks with
 * equal arguments, but for the part.
 * WEIR_EUSAGE trees and a part, which has not all that they read; WEIR_EVERSION the model was made for another schema,
 * or for matrices that the snapshot lacks; WEIR_EDATA a score that is not finite; WEIR_ELIMIT network or batch are too
 * large; WEIR_ECORRUPT lists of the snapshot, or what another rank tells; WEIR_EUNAVAILABLE no thread could be started;
 * what weir_targets_open reports, but WEIR_EUSAGE for its WEIR_EINVAL; WEIR_ENOMEM.  [main] */
weir_err weir_train_judge(weir_comm *comm, const weir_train_opts *opts, const weir_judge_model *model,
                          weir_judged *judgedp);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_TRAINER_TRAIN_JUDGE_H */

/* SPDX-License-Identifier: Apache-2.0 */
/* training_private.h - what the files of a training share. */
#ifndef WEIR_TRAINER_TRAIN_TRAINING_PRIVATE_H
#define WEIR_TRAINER_TRAIN_TRAINING_PRIVATE_H

#include <weir/inference/kernel/room.h>
#include <weir/store/base/buf.h>
#include <weir/trainer/nn/nn.h>
#include <weir/trainer/train/train.h>

#include "batches.h"
#include "cache.h"
#include "deal.h"
#include "lookahead.h"
#include "resident.h"
#include "sums.h"

#define WEIR_TRAINING_REALS_MAX 5u /* arrays of a checkpoint that are laid out as the parameters */

/* How far a training has come: what a checkpoint holds besides arrays. */
typedef struct weir_training_state {
    uint32_t epochs, best_epoch;
    double best; /* validation of it */
} weir_training_state;

struct weir_trained {
    weir_train_opts opts;
    weir_comm *comm; /* of whatever this thread has to say */
    weir_comm *learn_channels[WEIR_TRAIN_AHEAD_MAX][WEIR_TRAIN_CHANNELS];
    weir_comm *judge_channels[WEIR_TRAIN_AHEAD_MAX][WEIR_TRAIN_CHANNELS], *sum_channel;
    weir_train_trace *trace; /* NULL: none is wanted */
    weir_batches *stream;    /* to learn from, of all epochs */
    weir_train_sums *sums;   /* NULL: there is one rank      */
    weir_nn_shape *shape;
    weir_train_shares *shares;       /* of large embeddings; NULL: there are none, or one rank   */
    weir_train_cache *cache;         /* NULL: none                                               */
    weir_train_lookahead *lookahead; /* of the stream; NULL: none                         */
    weir_train_residents *residents; /* NULL: none                                               */
    uint64_t fingerprint;            /* of what a checkpoint must agree with, without the scales */
    weir_nn_learner *learner;        /* of the scales: a checkpoint has its moments              */
    weir_nn *nn;                     /* with this rank's share of large embeddings: arrays are laid out as it is */
    weir_nn *whole;                  /* with all of them, as models and checkpoints are; without shares it is nn */
    weir_targets *targets;
    bool merged; /* it learns from validation's, too */
    weir_adamw *adamw;
    weir_nn_workspace *workspace;                /* of learning and, in turn, of judging */
    weir_real *params, *best_params, *gradients; /* in the kernels' memory */
    weir_real *average;                          /* of params, by opts.average: what is judged; NULL: params are */
    weir_nn_rows *rows;                          /* of embeddings: those that have gradients in the step at hand */
    weir_kernel_room packed;                     /* their gradients */
    weir_buf packed_host;                        /* a copy for MPI, where that cannot read the kernels' memory */
    weir_real *logits;                           /* of judging: batch x outputs */
    uint32_t *labels;                            /* batch */
    weir_kernel_room labels_there;               /* the same for kernels */
    weir_real *dlogits;                          /* batch x outputs, in the kernels' memory */
    double *class_weights;                       /* one a class, in the kernels' memory */
    double *loss;                                /* of the step at hand: one number, in the kernels' memory */
    double *scores;                              /* one a target behind the training part */
    weir_train_dealer *dealer;                   /* of local batches; NULL: they are global */
    weir_training_state state;
    uint32_t lagged; /* 1 + the rank that lagged in the epoch before; 0: none */
    weir_train_metrics metrics[WEIR_TARGETS_PARTS];
    weir_calibration calibration;
};

/* training.c: what this rank has, and who has the rest. */
weir_train_owners weir_training_owners(const weir_trained *t);

/* training.c: channels that judging talks on.  WEIR_ENOMEM. */
weir_err weir_training_judge_channels(weir_trained *t);
/* training.c: an error of setting up. What is invalid then was asked for by the options: WEIR_EUSAGE. From the first
 * epoch on it is our own mistake, and stays WEIR_EINVAL. */
weir_err weir_training_as_usage(weir_err err);
/* training.c: one learning. The test is judged only by what will be kept. merged: NULL, or targets of an earlier
 * learning, merged, which are given away, also where there is an error.  As weir_train_run. */
weir_err weir_training_run(weir_comm *comm, const weir_train_opts *opts, weir_targets *merged, weir_trained **trainedp);
/* training.c: all that there is before the first epoch; all ranks together. An error has ended the other ranks. */
weir_err weir_training_open(weir_comm *comm, const weir_train_opts *opts, weir_targets *merged,
                            weir_trained **trainedp);

/* pass.c: which targets an epoch learns from, and in which order: a function of seed and epoch; and of who owns them,
 * where batches are local. What a stream calls to draw; context is the training. */
uint64_t weir_training_list_epoch(const void *context, uint32_t epoch, uint32_t *list, uint64_t *seedp);
/* What the streams of a training have in common. */
weir_batches_opts weir_training_stream_opts(const weir_trained *t, weir_comm *(*channels)[WEIR_TRAIN_CHANNELS]);
/* t->stream, of the epochs that are left.  [main] */
weir_err weir_training_stream_open(weir_trained *t);
/* What the network takes of a batch; where embeddings are shared, as they now are in params, all ranks together. */
weir_err weir_training_bring(weir_trained *t, const weir_train_batch *batch, const weir_real *params,
                             weir_nn_brought *broughtp, weir_nn_batch *nnp);
/* What each target of a class counts. */
double weir_training_class_weight(const weir_trained *t, uint32_t class_of);
/* One training step, from an encoded batch to the parameters; all ranks together, each with its own targets. What it
 * has come to is added to the epoch. */
weir_err weir_training_step(weir_trained *t, const weir_train_batch *batch, weir_train_epoch *epoch);
/* One epoch of learning: the stream's next one.  [main] */
weir_err weir_training_learn(weir_trained *t, weir_train_epoch *epoch);
/* rate.c: by what the rates of a step are multiplied; step: from 1, of the whole training. */
double weir_training_rate_share(const weir_train_opts *opts, uint32_t epoch, uint64_t step);
/* lag.c: what an epoch was to all ranks together: its lag, slowest and handed_share.  [main] */
weir_err weir_training_compare(weir_trained *t, weir_train_epoch *epoch);
/* Of how long each rank computes on a target, 0 where it computed on none: the longest, by the median. Sorts them. */
double weir_training_lag(double *micros, uint32_t ranks, uint32_t *slowestp);
/* Where the scores of a part's targets are, one each; not of the training part, which is not scored. */
double *weir_training_scores(const weir_trained *t, weir_targets_part part);
/* Those of a part, with these parameters; on all ranks the same.  [main] */
weir_err weir_training_judge(weir_trained *t, weir_targets_part part, const weir_real *params);
/* Whether there are targets of both classes, without which no order of them means anything. */
bool weir_training_has_both(const weir_train_metrics *metrics);
/* What validation and early stopping look at. scores: one a target of the part. */
weir_err weir_training_measure(const weir_trained *t, const double *scores, weir_targets_part part,
                               weir_train_metrics *metricsp);

/* training.c: what scores of a part are as probabilities: validation comes first, and by it both parts are calibrated.
 * Sets log loss and calibration error, and the interval of the average precision.  WEIR_ENOMEM. */
weir_err weir_training_calibrate(const weir_trained *t, const double *scores, weir_targets_part part,
                                 weir_calibration *calibration, weir_train_metrics *metrics);

/* training.c: judges and measures a part with the best parameters; all ranks together. */
weir_err weir_training_finish_part(weir_trained *t, weir_targets_part part);

/* scales.c: the shape's scales, and t->learner, from targets of training. */
weir_err weir_training_scales(weir_trained *t);

/* state.c: what a checkpoint must agree with to be continued, of a shape whose scales are not learnt yet: these differ
 * in their last bits between one rank and many. */
uint64_t weir_training_fingerprint(const weir_trained *t);
/* Rank 0 writes, where embeddings are shared with what the others give it; every rank loads, and takes its share.
 * load: WEIR_ENOTFOUND there is no checkpoint; WEIR_EVERSION it is of other options, another seed or another snapshot;
 * WEIR_ECORRUPT. */
weir_err weir_training_state_save(const weir_trained *t);
uint32_t weir_training_state_reals(const weir_trained *t); /* arrays that are laid out as the parameters */
uint64_t weir_training_state_bytes(const weir_trained *t); /* of its files, but for their heads and the MANIFEST */
weir_err weir_training_state_load(weir_trained *t);

/* curve.c: epochs.jsonl and curve.svg; on rank 0 alone. */
weir_err weir_training_log_epoch(const weir_trained *t, const weir_train_epoch *epoch);

#endif /* WEIR_TRAINER_TRAIN_TRAINING_PRIVATE_H */

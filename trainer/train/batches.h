/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batches.h - batches of one pass over targets, made ahead of the caller that computes on them.
 *
 *   list of targets ──[sample] block, whose rows──► queue ──[ask]──► queue ──[answer, encode]──► queue ──► next
 *         ▲                                                                                                  │
 *         └──────────────────────────── batches that are done: their memory is used again ◄────── done ──────┘
 *
 * A global batch is `batch` targets of the list, the same on every rank; a rank takes those that it owns. Rows of
 * vertices that another rank owns are fetched by an exchange of questions and one of answers a batch, in which all
 * ranks take part in the same order.
 * Features are read by their owner alone. The edges that a block needs are in the rank's part, as far as that reaches;
 * further on the stage sample asks other ranks (remote.h). Without parts, every rank has those of the whole snapshot.
 *
 * INVARIANTS
 *   TRAIN-E1  Batches come in the order of the list, each once, on every rank as many.
 *   TRAIN-E2  What a target gets depends neither on the number of ranks, nor on who owns what, nor on the other targets
 *             of its batch (what is hidden depends on the batch's number), but for the rounding of another `wire` than
 *             floats.
 *   TRAIN-E3  At most WEIR_BATCHES_AHEAD batches are in memory.
 *   TRAIN-E4  A row of another rank is asked for once a batch, and a rank's own rows are never sent. How far the stages
 *             run apart changes nothing.
 */
#ifndef WEIR_TRAINER_TRAIN_BATCHES_H
#define WEIR_TRAINER_TRAIN_BATCHES_H

#include <weir/inference/nn/nn.h>
#include <weir/store/snapshot/snapshot.h>
#include <weir/trainer/comm/comm.h>
#include <weir/trainer/train/targets.h>

#include "asks.h"
#include "trace.h"

#define WEIR_BATCHES_AHEAD 6u /* one in each stage and with the caller, and two that wait */

/* Of the stages that talk. */
enum { WEIR_TRAIN_CHANNEL_ASK, WEIR_TRAIN_CHANNEL_ANSWER, WEIR_TRAIN_CHANNEL_SAMPLE, WEIR_TRAIN_CHANNELS };

typedef struct weir_batches weir_batches;

typedef struct weir_batches_opts {
    const weir_nn_shape *shape;
    const weir_targets *targets;
    const uint64_t *list; /* indices of targets, in the order of the pass; borrowed */
    uint64_t count;
    uint32_t batch;                 /* targets of a global batch */
    uint64_t seed;                  /* of the sampler            */
    double hidden;                  /* share of the entries of matrices that a batch does not show; 0: none */
    weir_train_owners owners;       /* and the snapshot                            */
    struct weir_train_cache *cache; /* of rows of other ranks; NULL: none; borrowed */
    weir_train_wire wire;           /* how rows go between ranks */
    weir_comm *channels[WEIR_TRAIN_CHANNELS];
    weir_train_trace *trace; /* NULL: none */
} weir_batches_opts;

/* Microseconds. A plain value. */
typedef struct weir_batches_times {
    int64_t sample, exchange, encode; /* exchange: both stages that wait for other ranks */
    int64_t wait;                     /* of the caller that computes: preparation that was not hidden */
} weir_batches_times;

/* Owned by the stream; read-only to the caller that takes it. */
typedef struct weir_train_batch {
    uint64_t number;
    uint64_t begin, end;  /* of the list: the whole global batch            */
    const uint64_t *own;  /* indices of this rank's targets                 */
    uint32_t own_count;   /* may be 0: then there is no block               */
    weir_nn_batch nn;     /* what the network takes                         */
    const uint64_t *keys; /* of each node: for dropout                      */
    uint64_t edges;       /* sampled                                        */
    uint64_t rows;        /* input rows: own, and these two                 */
    uint64_t remote;      /* of other ranks, that were asked for            */
    uint64_t cached;      /* of other ranks, that the cache had             */
} weir_train_batch;

/* Starts three threads.  opts.list and what opts points to are borrowed.  WEIR_ENOMEM, WEIR_EUNAVAILABLE; WEIR_ELIMIT
 * blocks would be too large: lower batch or fan-outs; WEIR_EVERSION the snapshot lacks a matrix that the shape reads.
 * [main] */
weir_err weir_batches_open(const weir_batches_opts *opts, weir_batches **streamp);
/* *batchp is NULL at the end and after an error, which is what a stage has failed with.  Blocks.  [main] */
weir_err weir_batches_next(weir_batches *stream, const weir_train_batch **batchp);
/* Its memory is used for another one.  [main] */
void weir_batches_done(weir_batches *stream, const weir_train_batch *batch);
void weir_batches_times_get(const weir_batches *stream, weir_batches_times *timesp); /* after the end */
/* May come before the end.  NULL is allowed. */
void weir_batches_close(weir_batches *stream);

#endif /* WEIR_TRAINER_TRAIN_BATCHES_H */

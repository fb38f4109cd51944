/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sums.h - what the ranks tell each other in a step, beside the computing that makes it. Private to this folder.
 *
 *   step:   way forward ─► loss ─► way back: head ─► last layer ─► … ─► first layer ─► encoders ─► packed rows
 *                            │                │         │                  │             │
 *   "sum":                   └─► sum          └─► sum   └───────► sum      └─────► sum   └─► sum
 *
 * The way back finishes the flat array of gradients from its end to its beginning. It is cut where a layer begins and
 * around embeddings, of which only the rows are summed that a batch reads, by the caller: which these are the makers of
 * batches have told each other (batch.c). Each piece is summed as
 * soon as it is finished, on every rank in the same order (the bits are those of one sum of all: COMM-M3).
 */
#ifndef WEIR_TRAINER_TRAIN_SUMS_H
#define WEIR_TRAINER_TRAIN_SUMS_H

#include <weir/inference/nn/nn.h>
#include <weir/trainer/comm/comm.h>
#include <weir/trainer/nn/nn.h>

#include "trace.h"

typedef struct weir_train_sums weir_train_sums;

/* Starts the thread, which talks on the channel. All is borrowed.  WEIR_ENOMEM, WEIR_EUNAVAILABLE. */
weir_err weir_train_sums_open(const weir_nn *nn, weir_real *gradients, weir_comm *channel, weir_train_sums **sumsp);
/* Not during a step.  NULL is allowed. */
void weir_train_sums_close(weir_train_sums *sums);
/* From the next step on, when the sum of each piece has begun. Borrowed.  [main] */
void weir_train_sums_trace(weir_train_sums *sums, weir_train_trace *trace, uint32_t track);
/* A step begins, of the batch of this number; no gradient is finished.  [main] */
void weir_train_sums_begin(weir_train_sums *sums, uint32_t epoch, uint64_t batch);
/* This rank's part of the loss.  [main] */
void weir_train_sums_loss(weir_train_sums *sums, double loss);
/* Gradients from this offset on are finished; nobody touches them until weir_train_sums_wait is back.  [main] */
void weir_train_sums_reach(weir_train_sums *sums, uint64_t from);
/* After all are finished: until they have been summed. *lossp is that of all ranks, *busy_us grows by what the thread
 * spent on the step.  Blocks. What the kernels report of copies for MPI.  [main] */
weir_err weir_train_sums_wait(weir_train_sums *sums, double *lossp, int64_t *busy_us);

#endif /* WEIR_TRAINER_TRAIN_SUMS_H */

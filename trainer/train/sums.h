/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sums.h - what the ranks tell each other in a step, beside the computing that makes it. Private to this folder.
 *
 *   step:   rows ─► way forward ─► loss ─► way back: head ─► last layer ─► … ─► first layer ─► encoders ─► packed rows
 *             │                      │                  │         │                  │             │
 *   "sum":    └─► gather             └─► sum            └─► sum   └───────► sum      └─────► sum   └─► sum
 *
 * The way back finishes the flat array of gradients from its end to its beginning. It is cut where a layer begins and
 * around embeddings, of which only the rows are summed that a batch has read, by the caller; each piece is summed as
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
/* A step begins, of the batch of this number and of these rows of embeddings; no gradient is finished.  WEIR_ENOMEM.
 * [main] */
weir_err weir_train_sums_begin(weir_train_sums *sums, const weir_nn_rows *rows, uint32_t epoch, uint64_t batch);
/* This rank's part of the loss.  [main] */
void weir_train_sums_loss(weir_train_sums *sums, double loss);
/* Gradients from this offset on are finished; nobody touches them until weir_train_sums_wait is back.  [main] */
void weir_train_sums_reach(weir_train_sums *sums, uint64_t from);
/* Adds the other ranks' rows.  Blocks.  WEIR_ECORRUPT, WEIR_ENOMEM.  [main] */
weir_err weir_train_sums_rows(weir_train_sums *sums, weir_nn_rows *rows);
/* After all are finished: until they have been summed. *lossp is that of all ranks, *busy_us grows by what the thread
 * spent on the step.  Blocks. What the kernels report of copies for MPI.  [main] */
weir_err weir_train_sums_wait(weir_train_sums *sums, double *lossp, int64_t *busy_us);
/* Bytes by which the ranks told each other, in the last step, which rows they have read.  [main] */
uint64_t weir_train_sums_told(const weir_train_sums *sums);

#endif /* WEIR_TRAINER_TRAIN_SUMS_H */

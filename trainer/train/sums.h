/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sums.h - the sum of gradients over the ranks, beside the way back that makes them. Private to this folder.
 *
 *   way back:  head ─► last layer ─► … ─► first layer ─► encoders
 *                │         │                  │              │        the end of the flat array is finished first
 *   "sum":       └─► sum   └──────► sum       └─────► sum    └─► sum
 *
 * The array is cut where a layer begins and around embeddings, whose rows are summed elsewhere; each piece is summed as
 * soon as it is finished, on every rank in the same order (COMM-M1, COMM-M3: the bits are those of one sum of all).
 */
#ifndef WEIR_TRAINER_TRAIN_SUMS_H
#define WEIR_TRAINER_TRAIN_SUMS_H

#include <weir/inference/nn/nn.h>
#include <weir/trainer/comm/comm.h>

typedef struct weir_train_sums weir_train_sums;

/* Starts the thread, which talks on the channel. All is borrowed.  WEIR_ENOMEM, WEIR_EUNAVAILABLE. */
weir_err weir_train_sums_open(const weir_nn *nn, weir_real *gradients, weir_comm *channel, weir_train_sums **sumsp);
/* Not during a step.  NULL is allowed. */
void weir_train_sums_close(weir_train_sums *sums);
/* A step begins: no gradient is finished.  [main] */
void weir_train_sums_begin(weir_train_sums *sums);
/* Gradients from this offset on are finished; nobody touches them until weir_train_sums_wait is back.  [main] */
void weir_train_sums_reach(weir_train_sums *sums, uint64_t from);
/* After all are finished: until they have been summed. *busy_us grows by what the thread spent on it.  Blocks.
 * [main] */
void weir_train_sums_wait(weir_train_sums *sums, int64_t *busy_us);

#endif /* WEIR_TRAINER_TRAIN_SUMS_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inputs.h - what vertices and edges of a snapshot are in floats, as of a time.
 *
 * INVARIANTS
 *   TRAIN-I1  Nothing is read that came to be at or after the time: a feature row counts when it has been in force
 *             since before (of the targets' own type: since then or before, because a target comes with its row), a
 *             matrix when its vertex has been there as long, an aggregate looks at older edges only.
 *
 * THREADS: one thread at a time.
 */
#ifndef WEIR_TRAINER_TRAIN_INPUTS_H
#define WEIR_TRAINER_TRAIN_INPUTS_H

#include <weir/inference/nn/nn.h>
#include <weir/store/snapshot/snapshot.h>

typedef struct weir_inputs weir_inputs;

/* Both are borrowed.  WEIR_EVERSION the snapshot lacks a matrix that the shape reads; WEIR_ENOMEM. */
weir_err weir_inputs_open(const weir_nn_shape *shape, const weir_snapshot *snapshot, weir_inputs **inputsp);
void weir_inputs_close(weir_inputs *inputs); /* NULL is allowed */

/* No file is believed: a neighbour that no edge was looked up of may be any number.  WEIR_ECORRUPT: it is none of the
 * snapshot's.  [any] */
weir_err weir_inputs_check(const weir_snapshot *snapshot, uint32_t type, uint64_t vertex);
/* Rows of one type, each checked. numbers: count x width; slots: count x categories. */
weir_err weir_inputs_rows(weir_inputs *inputs, uint32_t type, const uint64_t *vertices, const int64_t *before_us,
                          uint32_t count, weir_real *numbers, uint32_t *slots);
/* The edges of one step of a block. numbers: edges x width of the relation. */
void weir_inputs_edges(const weir_inputs *inputs, const weir_block_view *view, uint32_t step, weir_real *numbers);
/* Shows the learner every input row and every edge of a block. */
weir_err weir_inputs_learn(weir_inputs *inputs, const weir_block_view *view, weir_nn_learner *learner);

#endif /* WEIR_TRAINER_TRAIN_INPUTS_H */

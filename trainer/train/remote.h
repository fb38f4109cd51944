/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remote.h - edges that other ranks have: a source over a part that asks for them, and what it was told. Private to
 * this folder.
 *
 *   hop of the sampler ──► parents whose lists the part lacks ──► their owners draw, by the keys ──► windows of what
 *                          a message to each rank                 that they are sent                 was drawn
 *
 * All ranks take part in one round of questions and answers a hop, from the first hop on that leads further than the
 * parts reach; a rank that samples nothing for a batch answers the others. Of a batch with a target that was handed to
 * another rank than its owner (hand.h) it is from the first hop on: its taker need not have even its edges. A vertex
 * draws alike wherever it is drawn for (SAMPLE-P3), so a target's tree does not depend on the cutting: TRAIN-E2.
 */
#ifndef WEIR_TRAINER_TRAIN_REMOTE_H
#define WEIR_TRAINER_TRAIN_REMOTE_H

#include <weir/inference/inputs/inputs.h>
#include <weir/store/sample/sampler.h>
#include <weir/trainer/comm/comm.h>

#include "asks.h"

#define WEIR_TRAIN_REMOTE ((uint64_t)1 << 63)

/* What other ranks told of one batch. Of a type of which the part has n vertices, vertex n + i is vertices[i]. An edge
 * that another rank drew has WEIR_TRAIN_REMOTE | i as its position, and its numbers are the i-th of its step. */
typedef struct weir_train_remote {
    uint32_t types, steps;
    weir_buf *vertices; /* by type: weir_train_name             */
    uint64_t *edges;    /* by step: how many                     */
    weir_buf *numbers;  /* by step: of each edge as many as its relation's width */
} weir_train_remote;

/* WEIR_ENOMEM. */
weir_err weir_train_remote_open(const weir_nn_shape *shape, weir_train_remote *remote);
void weir_train_remote_close(weir_train_remote *remote);
/* The end of a run of edges from begin on that are all from here, or all from other ranks. */
uint32_t weir_train_remote_run_end(const weir_block_edges *edges, uint32_t begin);

typedef struct weir_train_remote_opts {
    weir_train_owners owners; /* with a part */
    const weir_nn_shape *shape;
    weir_nn_learner *learner; /* is shown what this rank draws for others; NULL: that is encoded and sent */
    uint32_t batch;           /* targets of a block, at most */
    weir_comm *comm;          /* of the thread that samples */
} weir_train_remote_opts;

/* Whether trees of this shape may lead further than the part has edges; dealt: those of dealt batches. */
bool weir_train_remote_needed(const weir_train_owners *owners, const weir_nn_shape *shape, bool dealt);
/* Everything is borrowed.  WEIR_ENOMEM; WEIR_EVERSION as weir_inputs_open; WEIR_ELIMIT as weir_sampler_open. */
weir_err weir_train_remote_source(const weir_train_remote_opts *opts, weir_sample_source **sourcep);
/* What is told of the next block goes to remote, which is emptied first. handed: some target of the batch, on whatever
 * rank, is not its taker's own; the same on all ranks. */
void weir_train_remote_begin(weir_sample_source *source, weir_train_remote *remote, bool handed);
/* What the next block calls the vertex with this name, one that another rank has told of.  WEIR_ECORRUPT there is none
 * of this number; WEIR_ENOMEM. */
weir_err weir_train_remote_add(weir_sample_source *source, uint32_t type, const weir_train_name *name,
                               uint64_t *vertexp);
/* Takes part in a batch for which this rank samples nothing.  Errors as those of a hop: WEIR_ECORRUPT another rank
 * asked or answered what cannot be; WEIR_ELIMIT, WEIR_ENOMEM; whatever the snapshot reports. */
weir_err weir_train_remote_idle(weir_sample_source *source);

#endif /* WEIR_TRAINER_TRAIN_REMOTE_H */

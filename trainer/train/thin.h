/* SPDX-License-Identifier: Apache-2.0 */
/*
 * thin.h - a batch some of whose edges are not seen. Private to this folder.
 *
 * Whether one is seen follows from a seed, the batch, the key of its parent (TRAIN-E2) and its place among the parent's
 * edges of that step, and from nothing else: it is the same on every rank, whoever makes the batch. Nodes stay, also
 * those to which no edge leads any more.
 */
#ifndef WEIR_TRAINER_TRAIN_THIN_H
#define WEIR_TRAINER_TRAIN_THIN_H

#include <weir/inference/nn/nn.h>

/* The edges of one step that are seen. */
typedef struct weir_train_thinned {
    uint32_t *offsets, *parents, *children;
    int64_t *times;
    size_t parent_room, room;
} weir_train_thinned;

/* What a batch is thinned by. A plain value. */
typedef struct weir_train_thinning {
    double rate; /* share of the edges that are not seen, below 1 */
    uint64_t seed, batch;
    const uint64_t *keys; /* of each node that can be a parent */
} weir_train_thinning;

/* The edges of a step, thinned, as *edgesp, whose arrays live until t is filled again; it has no refs and no rows.
 * numbers: width for each edge, of which those that are seen move together.  WEIR_ENOMEM. */
weir_err weir_train_thin(weir_train_thinned *t, const weir_block_edges *edges, uint32_t step,
                         const weir_train_thinning *by, uint32_t width, weir_real *numbers, weir_block_edges *edgesp);
void weir_train_thinned_free(weir_train_thinned *t);

#endif /* WEIR_TRAINER_TRAIN_THIN_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gather.h - how the children of a step become what their parent gets of them: one file for each way, gather_NAME.c
 * here for the way forward and trainer/nn/gather_NAME_back.c for the way back, and a row of a table in gather.c and
 * gather_back.c.
 *
 * A way has the weight of the step's relation and direction, whose first rows are its own to use (weir_nn_way.rows),
 * and tensors of its own behind it. What the step's edges say on average stands in the rows behind these, is the same
 * for every way, and is done by forward.c and backward.c. For trainer/nn; what is returned is borrowed.
 */
#ifndef WEIR_INFERENCE_NN_GATHER_H
#define WEIR_INFERENCE_NN_GATHER_H

#include <weir/inference/nn/tape.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One step of one layer of a pass. A plain value. */
typedef struct weir_nn_gather {
    const weir_nn *nn;
    const weir_kernels *k;
    const weir_real *params;
    uint32_t layer, step;
    uint32_t hidden,
        heads;       /* columns of what the layer makes, which in one that answers are the logits; and its heads */
    uint64_t weight; /* of the relation and direction */
    const uint64_t *extra;  /* the way's own tensors         */
    weir_segments children; /* of each parent; its entries are rows of x */
    uint32_t entries;
    const weir_real *x;                  /* what the layer sees of the children, child_cols each */
    uint32_t child_cols, x_begin, x_end; /* they are rows from x_begin up to x_end */
    const weir_real *parents;            /* what it sees of the parents, parent_cols each */
    uint32_t parent_cols;
    const weir_real *edge_means; /* over the edges of each parent, edge_cols each */
    uint32_t edge_cols;
    const weir_real *edge_numbers, *edge_codes; /* of each entry; numbers: edge_width each, NULL without any */
    uint32_t edge_width;
    bool loops;              /* the step joins a type with itself: a parent can count among its children */
    weir_dropout share_drop; /* of shares of attention; rate 0: all stay */
    const weir_real *degree_weights, *degree_own; /* of each entry, and of each parent (kernel.h); NULL: not wanted */
} weir_nn_gather;

/* Whether the way multiplies the edges' means by their rows of the weight itself; else the layer does.  [any] */
bool weir_nn_gather_joins_edges(const weir_nn *nn);
/* Rows of the weight of a step that are the way's: those of the edges stand behind them.  [any] */
uint32_t weir_nn_gather_rows(const weir_nn *nn, uint32_t layer, uint32_t step);
/* Of a step that has parents, after the layers below.  [owner of the workspace] */
weir_nn_gather weir_nn_gather_of(const weir_nn *nn, const weir_real *params, const weir_nn_tape *tape, uint32_t layer,
                                 uint32_t step);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_INFERENCE_NN_GATHER_H */

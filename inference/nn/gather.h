/* SPDX-License-Identifier: Apache-2.0 */
/* gather.h - the table of the ways to gather (weir/inference/nn/gather.h), from inside. */
#ifndef WEIR_INFERENCE_NN_GATHER_TABLE_H
#define WEIR_INFERENCE_NN_GATHER_TABLE_H

#include <weir/inference/nn/gather.h>

#include "nn_private.h"

/* How wide everything around a step of a layer is. A plain value. */
typedef struct weir_nn_widths {
    uint32_t child, parent; /* columns of what the layer sees of them */
    uint32_t edge;          /* numbers and time code of one edge      */
    uint32_t hidden, heads; /* of what the layer makes */
    bool loops;             /* the step joins a type with itself */
} weir_nn_widths;

/* A tensor that a way adds to a relation's weight. A plain value. */
typedef struct weir_nn_extra {
    const char *name; /* behind the relation's and direction's in the tensor's name */
    uint32_t rows, cols;
    weir_nn_kind kind;
} weir_nn_extra;

/* What bound.c knows of a step: how far from 0 a number can be, of a child's row, of a parent's and of an edge's. A
 * plain value. */
typedef struct weir_nn_reach {
    weir_nn_widths widths;
    double child, parent, edge;
    uint32_t children; /* of one parent, at most */
    uint64_t weight;
    const uint64_t *extra;
} weir_nn_reach;

typedef struct weir_nn_way {
    const char *word;
    bool has_heads;
    bool loops_are_own; /* where a parent counts among its children, its type has no weight of its own besides */
    bool sees_degrees;  /* the tape has weights by degrees */
    bool sees_edges;    /* the tape keeps the numbers and time codes of single edges */
    bool joins_edges;   /* applies the rows of the weight that are the edges', too */
    /* Rows of the relation's weight before those of the edges. */
    uint32_t (*rows)(const weir_nn_widths *widths);
    /* Its own tensors; returns how many. NULL: none. */
    uint32_t (*extras)(const weir_nn_widths *widths, weir_nn_extra list[WEIR_NN_EXTRAS]);
    /* Adds to out, parents x widths.hidden, and keeps what the way back needs; false: no memory. */
    bool (*forward)(const weir_nn_gather *g, weir_nn_workspace *w, weir_nn_kept *kept, weir_real *out);
    /* How far from 0 that can be; notes what arises on the way there. */
    double (*bound)(weir_nn_bounds *b, const weir_nn_reach *reach);
} weir_nn_way;

const weir_nn_way *weir_nn_way_of(const weir_nn_shape *shape);
weir_nn_widths weir_nn_widths_of(const weir_nn_shape *shape, uint32_t layer, uint32_t step);
/* Rows of the weight of a step before those of the edges. */
uint32_t weir_nn_way_rows(const weir_nn_shape *shape, uint32_t layer, uint32_t step);
/* Parameters of a step of a layer beyond those of the network with means. */
uint64_t weir_nn_way_parameters(const weir_nn_shape *shape, uint32_t layer, uint32_t step);

/* Whether a layer has a weight for what it saw of vertices of the type themselves. */
bool weir_nn_way_has_self(const weir_nn_shape *shape, uint32_t layer, uint32_t type);

/* x (rows x k) · weight (k x cols), onto beta · out. */
void weir_nn_gather_apply(const weir_nn_gather *g, uint32_t rows, uint32_t k, const weir_real *x, uint64_t weight,
                          uint32_t cols, weir_real beta, weir_real *out);
weir_real *weir_nn_gather_reals(weir_nn_workspace *w, size_t rows, size_t cols);

extern const weir_nn_way weir_nn_way_mean, weir_nn_way_attention, weir_nn_way_gat, weir_nn_way_gcn, weir_nn_way_max,
    weir_nn_way_gin, weir_nn_way_pna;

#endif /* WEIR_INFERENCE_NN_GATHER_TABLE_H */

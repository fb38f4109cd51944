/* SPDX-License-Identifier: Apache-2.0 */
/* nn_private.h - the network and its workspace from inside. */
#ifndef WEIR_INFERENCE_NN_PRIVATE_H
#define WEIR_INFERENCE_NN_PRIVATE_H

#include <weir/inference/nn/nn.h>
#include <weir/inference/nn/tape.h>
#include <weir/store/base/arena.h>

#include "shape_private.h"

/* What a tensor is, by which it begins and moves. */
typedef enum weir_nn_kind {
    WEIR_NN_WEIGHT,
    WEIR_NN_EMBEDDING, /* of a category         */
    WEIR_NN_OWN,       /* of known vertices     */
    WEIR_NN_BIAS,
    WEIR_NN_COMMON_BIAS, /* of a type with known vertices: what an unknown one has */
    WEIR_NN_GAIN
} weir_nn_kind;

struct weir_nn {
    const weir_nn_shape *shape;
    const weir_kernels *kernels;
    weir_arena *arena;
    weir_nn_tensor *tensors;
    weir_nn_kind *kinds; /* one a tensor */
    uint32_t tensor_count, tensor_room;
    uint64_t parameters;
    weir_nn_held *held; /* what is shared out */
    uint32_t held_count;
    bool shared;                    /* something is that the network sees */
    const weir_nn_held **held_rows; /* one a tensor: which rows it has; NULL: all */
    weir_nn_plan plan;
};

/* Pieces of one chunk of the kernels' memory, which is as large as the largest pass was; what does not fit any more
 * gets a chunk of its own, and the next pass begins with one that is large enough. */
struct weir_nn_workspace {
    const weir_nn *nn;
    const weir_kernels *kernels;    /* of its passes */
    bool apart;                     /* a context of its own */
    const weir_nn_arrival *arrival; /* of the pass at hand; NULL: none */
    bool keeps_tape, taped;
    uint8_t *chunk;
    size_t chunk_bytes, used, wanted;
    void **extras;
    uint32_t extra_count, extra_room;
    weir_nn_tape tape;
    /* What the tape points to. */
    const uint32_t *input_children[WEIR_SAMPLE_STEPS_MAX], *offsets[WEIR_SAMPLE_STEPS_MAX];
    const uint32_t *children[WEIR_SAMPLE_STEPS_MAX];
    const weir_real *edge_means[WEIR_SAMPLE_STEPS_MAX];
    const weir_real *edge_numbers[WEIR_SAMPLE_STEPS_MAX], *edge_codes[WEIR_SAMPLE_STEPS_MAX];
    const weir_real *degree_weights[WEIR_SAMPLE_STEPS_MAX], *degree_own[WEIR_SAMPLE_STEPS_MAX];
    weir_nn_kept kept[WEIR_NN_LAYERS_MAX][WEIR_SAMPLE_STEPS_MAX];
    const weir_real *numbers[WEIR_SCHEMA_VERTICES_MAX];
    const uint32_t *slots[WEIR_SCHEMA_VERTICES_MAX];
};

/* Starts a pass: everything handed out is gone. */
weir_err weir_nn_workspace_begin(weir_nn_workspace *workspace);
/* Where allocation stands, and back to there: for what no tape keeps. */
size_t weir_nn_workspace_mark(const weir_nn_workspace *workspace);
void weir_nn_workspace_back(weir_nn_workspace *workspace, size_t mark);
/* A host array as the kernels see it: itself where memory is one, else a copy. NULL: no memory; count 0 is fine. */
const void *weir_nn_workspace_bring(weir_nn_workspace *workspace, const void *host, size_t count, size_t size);

/* arrival.c: where an array of the host has been brought to; NULL: nowhere. */
const void *weir_nn_arrival_place(const weir_nn_arrival *arrival, const void *host, size_t bytes);

/* --- bound.c, for the ways to gather ------------------------------------------------------------------------------ */

typedef struct weir_nn_bounds weir_nn_bounds;

/* The largest sum of absolute values of a column, over rows from first to end: what a row of ones could become. 0:
 * there is no such tensor. */
double weir_nn_bounds_column_sum(weir_nn_bounds *bounds, uint64_t offset, uint32_t first, uint32_t end);
/* Of a matrix whose row is chosen, and of a bias. */
double weir_nn_bounds_largest_entry(weir_nn_bounds *bounds, uint64_t offset);
/* What has been reached must not be above the limit: the first that is stays noted. */
void weir_nn_bounds_check(weir_nn_bounds *bounds, double reached, double limit);

#endif /* WEIR_INFERENCE_NN_PRIVATE_H */

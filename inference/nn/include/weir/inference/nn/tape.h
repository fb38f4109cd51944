/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tape.h - what a forward pass leaves behind for the way back. For trainer/nn; borrowed until the workspace's next
 * pass. All numbers are in the kernels' memory; the block, which is the batch's, and lists of arrays in the host's.
 */
#ifndef WEIR_INFERENCE_NN_TAPE_H
#define WEIR_INFERENCE_NN_TAPE_H

#include <weir/inference/nn/nn.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_NN_NO_TENSOR UINT64_MAX

/* Where a type's tensors of one layer begin in the flat array; NO_TENSOR: the layer does not have them. A GCN and a
 * GAT may have all of a type but self; without a layer norm there is neither gain nor shift, and
 * without feeding forward no dense. */
typedef struct weir_nn_type_slots {
    uint64_t self, bias, dense, dense_bias, gain, shift; /* dense: of the second layer of one that feeds forward */
} weir_nn_type_slots;

typedef struct weir_nn_encode_slots {
    uint64_t weight, bias;      /* NO_TENSOR: it does not see the type, or not by an encoder; weight: or no numbers */
    const uint64_t *categories; /* one a category                                  */
    const bool *brought;        /* one a category: a share, to which batches bring what they read of it */
} weir_nn_encode_slots;

#define WEIR_NN_EXTRAS 4u

/* Of a step of a layer, where the tensors begin that the network's way to gather has beside the weight (gather.h). */
typedef struct weir_nn_extra_slots {
    uint64_t at[WEIR_NN_EXTRAS];
} weir_nn_extra_slots;

/* The places of all tensors. */
typedef struct weir_nn_plan {
    const weir_nn_encode_slots *encode; /* one a type                                            */
    const weir_nn_type_slots *types;    /* [(layer - 1) * types + type]                          */
    const uint64_t *neighbors;          /* [(layer - 1) * steps + step]: shared by equal (relation, direction) */
    const weir_nn_extra_slots *extras;  /* as neighbors */
    uint64_t head_weight, head_bias;
    const uint64_t *
        begins; /* of the tensors of each layer; [0]: of the encoders, [layers + 1]: of the head, the end without one */
} weir_nn_plan;

const weir_nn_plan *weir_nn_plan_of(const weir_nn *nn);
/* Columns of a step's edges beside the children's h: numbers, time code, count. */
uint32_t weir_nn_edge_cols(const weir_nn *nn, uint32_t step);

/* What gathering along one step leaves for the way back; each way has what it needs. */
typedef struct weir_nn_kept {
    weir_real *gathered; /* one row a parent: what the weight's first rows are applied to */
    weir_real *sums;     /* GIN: of which that is made */
    uint32_t *chosen;    /* max and PNA: of each of its columns the row that has the most */
    /* Attention: the values of what is mixed, so many rows; scores' keys, queries and edges; what became of the
     * scores, and of these shares when some are dropped; a one a head. Keys are NULL where they are the values.
     * entries: of each parent the rows of its values and keys; origin: of each entry its edge, NULL: the one in its
     * place. */
    weir_real *values, *keys, *queries, *edges, *shares, *mixed, *ones;
    weir_segments entries;
    uint32_t *origin;
    uint32_t rows;
} weir_nn_kept;

/* One layer of a pass. */
typedef struct weir_nn_layer_tape {
    /* nodes x hidden: h of the layer below, maybe more rows; of layer 1 gathered, range after range: rows of h0, or of
     * types without an encoder their numbers, with columns as weir_nn_below says. */
    const weir_real *below;
    /* One a step; without a meaning where the layer does not look so far, or there are no parents. */
    const weir_nn_kept *kept;
    /* nodes x hidden each; of a layer that answers nodes x outputs, and relu is out. */
    weir_real *relu;
    weir_real *stream; /* what layers have added up, where the norm stands behind that; NULL: it does not */
    weir_real *dense;  /* behind the second dense layer, NULL: there is none; what is added up or out where no norm
                          stands between them: then it is no more what it was once the layer has ended */
    weir_real *out;
    weir_real *stats; /* of the norm, nodes x 2; NULL: there is none */
    uint32_t nodes;
} weir_nn_layer_tape;

typedef struct weir_nn_tape {
    const weir_kernels *kernels; /* the context of the pass */
    const weir_block_view *block;
    weir_nn_drop drop; /* rate 0: none; its keys as the kernels see them, NULL where the pass had none */
    const uint32_t *input_of;
    const uint32_t *const *input_children; /* one a step: of each edge its child's input row; of a type without an
                                              encoder, among those of the type */
    const uint32_t *const *offsets;        /* one a step                                         */
    const uint32_t *const *children;       /* one a step                                         */
    const weir_real *const *edge_means;    /* one a step: parents x edge cols                    */
    /* Of single edges, one a step; of networks that do not look at them NULL. */
    const weir_real *const *edge_numbers, *const *edge_codes;
    /* Of each edge and of each parent, one a step (segment_degrees); of networks that do not look at them NULL. */
    const weir_real *const *degree_weights, *const *degree_own;
    const weir_real *const *numbers; /* one a type                                         */
    const uint32_t *const *slots;    /* one a type                                         */
    const weir_nn_brought *brought;  /* as the batch has it                                */
    const weir_real *logits;         /* targets x outputs */
    weir_real *h0; /* inputs x hidden; rows of types without an encoder mean nothing, and may be missing at the end */
    weir_nn_layer_tape layers[WEIR_NN_LAYERS_MAX];
    weir_real *most;   /* of targets, where the head sees the most of all layers */
    uint32_t *most_of; /* from which layer each number is, counted from 0 */
} weir_nn_tape;

/* Of the last pass; NULL when it failed, or the workspace keeps no tape. */
const weir_nn_tape *weir_nn_tape_of(const weir_nn_workspace *workspace);
/* How many edges one that is there stands for. */
double weir_nn_drop_each(const weir_nn_drop *drop);
/* What the kernel drops of a layer: the same on the way back. */
weir_dropout weir_nn_dropout_of(const weir_nn_drop *drop, uint32_t layer);
/* Memory in the kernels' that lives as long as the tape; NULL: out of memory.  [owner] */
void *weir_nn_workspace_alloc(weir_nn_workspace *workspace, size_t count, size_t size);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_INFERENCE_NN_TAPE_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nn.h - the network: typed layers that gather from neighbours, its parameters as one flat array, and the way forward.
 *
 *   encode, per vertex type T     h0 = relu(numbers · W_T + sum over categories of embed[slot] + own[vertex] + b_T)
 *   layer l = 1 … L, per type T   r  = relu(h · Wself + sum over the steps from T of (c + e · Wedges) + b)
 *                                 h' = dropout(layer norm(r)), and with weir_nn_opts.residual, from l = 2 on, + h;
 *                                 with feed_forward r is first made r · Wdense + bdense; norm says where layer norms
 *                                 stand: as here, or nowhere, or s' = dropout(r) + s, h' = layer norm(s')
 *     e = [mean of the edges' numbers | mean of the time codes | log(1 + children)]
 *     c, of the children's h_j and the parent's h_i, as weir_nn_opts.network says; 0 for no children:
 *       mean        mean of h_j · W, which is GraphSAGE's
 *       attention   sum of shares_j · (h_j · W), of each head by itself: gather_attention.c has the scores
 *       gat         the same, and where a type is joined with itself the vertex is one of those that are mixed, instead
 *                   of Wself
 *       gcn         sum of h_j / sqrt(d_i * d_j) · W, and where a type is joined with itself + h_i / d_i · W
 *                   instead of Wself: gather_gcn.c
 *       max         most of h_j, column by column, · W
 *       gin         relu(sum of h_j · Whidden + bhidden) · W: gather_gin.c, with epsilon
 *       pna         [mean | most | deviation], as they are, times log(1 + children) and divided by it, · W
 *   head                          logits = x of the targets · W + b
 *     x is h of the last layer, or as weir_nn_opts.jump says [h of layer 1 | … | h of layer L], or the most of these;
 *     with weir_nn_opts.headless the logits are r of layer L without its relu, and the embedding is h of layer L - 1
 *
 * W and Wedges are the rows of one tensor of a relation, direction and layer; what else a network has stands behind it.
 *
 * own: only of types with known vertices (shape.h), and only for these. A type without an encoder (weir_nn_opts.bare)
 * has its numbers as h0: layer 1's weights for what they see of it have a row for each of those columns.
 *
 * Layer l computes the nodes of hops 0 to L - l, a prefix of the block's. The one code serves and trains.
 *
 * INVARIANTS
 *   NN-N4  With or without a tape, the logits are the same bits.
 *   NN-N5  A target's logits depend on nothing but its own tree (up to the order in which a GEMM sums).
 *   NN-N6  Initial parameters depend on the seed and on what the tensor is alone: another relation changes no other.
 *   NN-N7  What weir_nn_bound lets pass gives finite logits for any finite input.
 *   NN-N8  A known vertex of which training has seen nothing is as an unknown one: its embedding begins at 0.
 *
 * THREADS: a network is read-only after open, [any]; a workspace belongs to one thread at a time.
 */
#ifndef WEIR_INFERENCE_NN_NN_H
#define WEIR_INFERENCE_NN_NN_H

#include <weir/inference/kernel/kernel.h>
#include <weir/inference/nn/shape.h>
#include <weir/store/base/arena.h>
#include <weir/store/sample/block.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_nn weir_nn;
typedef struct weir_nn_workspace weir_nn_workspace;
typedef struct weir_nn_arrival weir_nn_arrival;

#define WEIR_NN_TENSOR_NAME_MAX 192u

/* rows x cols from offset of the flat array, row-major. A plain value. */
typedef struct weir_nn_tensor {
    const char *name; /* "encode.payment.weight", "encode.merchant.embedding", "layer1.paid_by.out.weight" */
    uint64_t offset;
    uint32_t rows, cols;
    bool decays;    /* under weight decay: weights and embeddings do, biases and gains do not */
    bool looked_up; /* embeddings: a batch reads those rows alone that its slots name */
    bool held;      /* in a share, which has some of its rows: batches bring what they read */
} weir_nn_tensor;

/* The shape and the kernels are borrowed.  WEIR_ENOMEM.  [any] */
weir_err weir_nn_open(const weir_nn_shape *shape, const weir_kernels *kernels, weir_nn **nnp);
/* An embedding of which a share has some rows: of a category of a vertex type, which may be the vertex itself. A plain
 * value. */
typedef struct weir_nn_held {
    uint32_t type, category; /* the category by its place among the type's                 */
    const uint32_t *slots;   /* the rows that it has, by their slots, ascending, each once */
    uint32_t count;          /* 0: none; the tensor has one row then, which nothing sets   */
} weir_nn_held;

/* The same network where these embeddings are shared out, each named once. Each batch brings the rows that it reads of
 * them. held is copied, the slots are borrowed. */
weir_err weir_nn_open_share(const weir_nn_shape *shape, const weir_kernels *kernels, const weir_nn_held *held,
                            uint32_t count, weir_nn **nnp);
void weir_nn_close(weir_nn *nn); /* NULL is allowed */

const weir_nn_shape *weir_nn_shape_of(const weir_nn *nn);
const weir_kernels *weir_nn_kernels(const weir_nn *nn);
uint64_t weir_nn_parameter_count(const weir_nn *nn);
/* In the order of their offsets, without gaps. */
const weir_nn_tensor *weir_nn_tensors(const weir_nn *nn, uint32_t *countp);
const weir_nn_tensor *weir_nn_tensor_find(const weir_nn *nn, const char *name); /* NULL: none */
/* Glorot's uniform for weights, uniform up to 1 / sqrt(hidden) for embeddings of categories, from 0 to that for the
 * bias of a type with known vertices, 1 for gains, else 0 (NN-N6, NN-N8). The rows of a share are those of the whole
 * network. In the host's memory. */
void weir_nn_init(const weir_nn *nn, uint64_t seed, weir_real *params);
/* Whether these weights (in the host's memory, all finite) give a finite logit for any input that is finite:
 * *logit_maxp is how far from 0 it can be.  WEIR_EDATA sums could overflow: names a tensor.  [any] */
weir_err weir_nn_bound(const weir_nn *nn, const weir_real *params, double *logit_maxp);

/* --- forward ----------------------------------------------------------------------------------------------------- */

/* Rows of embeddings that a batch brings to a share (weir_nn_open_share), in the kernels' memory. A slot of a category
 * that is shared out is then a row of these, whatever its type and category. A plain value. */
typedef struct weir_nn_brought {
    const weir_real *rows; /* count x hidden */
    weir_real *gradients;  /* the same, to which the way back adds; NULL: there is none */
    uint32_t count;
} weir_nn_brought;

/* Inputs of a type that are in the kernels' memory before any batch, and where each row of this one is. A plain
 * value. */
typedef struct weir_nn_resident {
    const weir_real *table;  /* so many x width, in the kernels' memory; NULL: the batch brings all rows  */
    const uint32_t *places;  /* one a row: where it is in the table; WEIR_NO_SLOT: the batch brings it    */
    const uint32_t *brought; /* one a row: where it is among those that the batch brings, or WEIR_NO_SLOT */
    uint32_t brought_count;  /* those are numbers then */
} weir_nn_resident;

/* What a batch brings, in the host's memory; borrowed until the forward pass, with a tape the way back, has ended. */
typedef struct weir_nn_batch {
    const weir_block_view *block;     /* sampled with the shape's steps, after weir_block_inputs       */
    const weir_real *const *numbers;  /* one a type: inputs of the type x width                        */
    const uint32_t *const *slots;     /* one a type: inputs of the type x categories; WEIR_NO_SLOT: none */
    const weir_real *const *edges;    /* one a step: edges x width of its relation; NULL without width */
    const weir_nn_brought *brought;   /* of a share in which any embedding is shared out; else NULL    */
    const weir_nn_resident *resident; /* one a type; NULL: the batch brings the inputs of all types   */
    const weir_nn_arrival *arrival;   /* has brought all of that to the kernels' memory; NULL: a pass does */
} weir_nn_batch;

/* Training: what is dropped of layers depends on (seed, step, layer, the node's key) alone. */
typedef struct weir_nn_drop {
    double rate;   /* 0: nothing */
    double shares; /* chance of a share of attention to become 0; the others are divided by 1 - shares */
    double edges;  /* share of the edges that the batch lacks: counts, and sums of GIN, grow by as much */
    uint64_t seed, step;
    const uint64_t *keys; /* one a node but those of the last hop, the same on every rank; NULL: the row's number */
} weir_nn_drop;

/* Memory of forward passes, which grows to the largest seen and stays so; a pass that fits allocates nothing. tape: it
 * keeps what the way back needs (trainer/nn).  WEIR_ENOMEM.  [owner] */
weir_err weir_nn_workspace_open(const weir_nn *nn, bool tape, weir_nn_workspace **workspacep);
/* The same without a tape, in a context of its own: for one of several threads that share the network. What its passes
 * read of the kernels' memory is finished.  WEIR_ENOMEM; what the kernels report.  [owner] */
weir_err weir_nn_workspace_open_apart(const weir_nn *nn, weir_nn_workspace **workspacep);
void weir_nn_workspace_close(weir_nn_workspace *workspace); /* NULL is allowed */
uint64_t weir_nn_workspace_bytes(const weir_nn_workspace *workspace);

/* Logits of the targets: targets x outputs. params lie in the kernels' memory; logits and embeddings (targets x hidden)
 * in the host's, NULL: not wanted there; where neither is, the kernels may not have finished on return. drop is NULL
 * but in training.  WEIR_EINVAL the block was not sampled for this shape, or has no input rows, or brings no embeddings
 * to a share; WEIR_ENOMEM; what the kernels report.  [owner of the workspace] */
weir_err weir_nn_forward(const weir_nn *nn, const weir_real *params, const weir_nn_batch *batch,
                         const weir_nn_drop *drop, weir_nn_workspace *workspace, weir_real *logits,
                         weir_real *embeddings);

/* A batch that is brought to the kernels' memory by another thread than computes, and before: in a context of its own,
 * with memory that grows to the largest batch and stays so.  WEIR_ENOMEM; what the kernels report.  [any] */
weir_err weir_nn_arrival_open(const weir_kernels *kernels, weir_nn_arrival **arrivalp);
void weir_nn_arrival_close(weir_nn_arrival *arrival); /* NULL is allowed */
/* What a pass reads of the batch, and of keys, if they are not NULL. Until the next call a pass may be given the batch
 * with this arrival.  WEIR_ENOMEM; what the kernels report.  [owner] */
weir_err weir_nn_arrival_bring(weir_nn_arrival *arrival, const weir_nn_shape *shape, const weir_nn_batch *batch,
                               const uint64_t *keys);

/* --- vertices that are no targets: inner.c ------------------------------------------------------------------------ */

/* The steps below a vertex at that hop, which is less than the layers; returns how many. They sample what lies there.
 * [any] */
uint32_t weir_nn_steps_from(const weir_nn_shape *shape, uint32_t hop, weir_sample_step steps[WEIR_SAMPLE_STEPS_MAX]);
/* A block that was sampled with these, as one of the whole shape, whose hops before are empty. What is new lives in the
 * arena, the rest is the block's.  WEIR_ELIMIT, WEIR_ENOMEM.  [any] */
weir_err weir_nn_lift(const weir_nn_shape *shape, const weir_block_view *view, uint32_t hop, weir_arena *arena,
                      weir_block_view *liftedp);
/* Of a lifted block the rows of its first vertices, after the last layer that such a one has in a target's tree:
 * targets x hidden. Errors as of weir_nn_forward.  [owner of the workspace] */
weir_err weir_nn_embed(const weir_nn *nn, const weir_real *params, const weir_nn_batch *batch, uint32_t hop,
                       weir_nn_workspace *workspace, weir_real *embeddings);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_INFERENCE_NN_NN_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * columns.h - the row that boosted trees read of a target: what it says by itself, and what stands around it. Training,
 * judging and serving read it here, of floats that feed the network too: inputs.h.
 *
 *   0 hops   numbers and slots of the target, without that of the vertex itself
 *   1 hop    the same | of each step of hop 1: edges (as log), means of the neighbours' numbers
 *                     |                        numbers and slots of the newest neighbour
 *   2 hops            | of each step of hop 2 behind it: edges (as log) and numbers, means of the neighbours' means
 *            NaN: there is none. Means are of the newest edges, at most as many as the step's fan-out; edges are
 *            counted to WEIR_TREE_COLUMNS_EDGES_MAX.
 *
 * INVARIANTS
 *   INPUTS-I2  A row depends on its target's own tree and time alone, and is the same floats, bit for bit, of a living
 *              graph and of a snapshot of it.
 *   INPUTS-I3  The names of columns are those of all columns of a row, each once, in their order.
 *
 * THREADS: one thread at a time, that of its source; what asks for a shape alone is [any].
 */
#ifndef WEIR_INFERENCE_INPUTS_COLUMNS_H
#define WEIR_INFERENCE_INPUTS_COLUMNS_H

#include <weir/inference/nn/nn.h>
#include <weir/store/base/arena.h>
#include <weir/store/sample/source.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_TREE_COLUMNS_HOPS_MAX  2u
#define WEIR_TREE_COLUMNS_EDGES_MAX 4096u

typedef struct weir_tree_columns weir_tree_columns;

/* Of a row. hops: 0 to WEIR_TREE_COLUMNS_HOPS_MAX.  [any] */
size_t weir_tree_columns_count(const weir_nn_shape *shape, uint32_t hops);
/* What a block for them is sampled with: the shape's steps of these hops, each of the newest edges. Returns how many.
 * [any] */
uint32_t weir_tree_columns_steps(const weir_nn_shape *shape, uint32_t hops,
                                 weir_sample_step steps[WEIR_SAMPLE_STEPS_MAX]);
/* Whether a block of the shape's own steps is as good, because those come first among them.  [any] */
bool weir_tree_columns_share(const weir_nn_shape *shape, uint32_t hops);
/* Numbers and slots of one vertex, one behind the other, as inputs.h writes them. Returns how many.  [any] */
size_t weir_tree_columns_of_vertex(const weir_nn_inputs *inputs, const weir_real *numbers, const uint32_t *slots,
                                   float *columns);

/* --- what they are called ----------------------------------------------------------------------------------------- */

/* What a row says of one thing: a column, or a value and the flag of a missing one. A plain value. */
typedef struct weir_tree_column {
    /* "amount" of the target; "paid_by.out.edges", how many; "paid_by.out.mean.age", of neighbours along this relation,
     * "paid_by.out.newest.age", of the newest; "paid_by.out.paid_by.in.mean.amount", of theirs. */
    const char *name;
    const weir_nn_number *number;     /* NULL: it is none              */
    const weir_nn_category *category; /* the same; of both: edges, or a matrix */
    uint32_t type;                    /* of the vertices               */
    uint32_t begin, count;            /* columns of the row            */
    bool edges;
} weir_tree_column;

/* Of a row, in the order of its columns (INPUTS-I3). They live in the arena, and borrow the shape.  WEIR_ELIMIT,
 * WEIR_ENOMEM.  [any] */
weir_err weir_tree_columns_name(const weir_nn_shape *shape, uint32_t hops, weir_arena *arena,
                                const weir_tree_column **columnsp, uint32_t *countp);
/* What the row says, in the unit of the schema, to six digits: numbers and aggregates as they came, ages in seconds,
 * edges as a number, a category as its slot. A mean is taken where columns are scaled: of logarithms it is that of
 * logarithms. NaN: missing, or a matrix.  [any] */
double weir_tree_column_value(const weir_tree_column *column, const float *row);

/* --- how they are read -------------------------------------------------------------------------------------------- */

/* Both are borrowed.  WEIR_ENOMEM.  [owner] */
weir_err weir_tree_columns_open(const weir_nn_shape *shape, uint32_t hops, weir_sample_source *source,
                                weir_tree_columns **columnsp);
void weir_tree_columns_close(weir_tree_columns *c); /* NULL is allowed */
/* Of each step, how many edges each of its parents has, which may be more than the block has: by the source from which
 * the block was sampled. Borrowed until the next call.  WEIR_ENOMEM; errors of the source.  [owner] */
weir_err weir_tree_columns_edges(weir_tree_columns *c, const weir_block_view *view, const uint32_t *const **edgesp);

/* A block of such steps, and maybe others behind them; borrowed. A plain value. */
typedef struct weir_tree_columns_block {
    const weir_block_view *view;     /* after weir_block_inputs                     */
    const weir_real *const *numbers; /* one a type, as weir_inputs_block writes them */
    const uint32_t *const *slots;    /* the same                                     */
    const uint32_t *const *edges;    /* one a step, one a parent: as weir_tree_columns_edges finds them */
} weir_tree_columns_block;

/* rows: one of weir_tree_columns_count floats for each target of the block.  [owner] */
void weir_tree_columns_write(weir_tree_columns *c, const weir_tree_columns_block *b, float *rows);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_INFERENCE_INPUTS_COLUMNS_H */

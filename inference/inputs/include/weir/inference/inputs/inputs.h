/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inputs.h - what vertices and edges of any source are in floats, as of a time: the one way into the network, for
 * training, judging, baselines and serving.
 *
 *   source ──► values of features ─┐
 *          ──► windows ─► aggregates ─┼─► weir_nn_encode ─► numbers and slots
 *          ──► matrices of an import ─┤
 *          ──► ids ─► known vertices ─┘
 *
 * INVARIANTS
 *   INPUTS-I1  Nothing is read that came to be at or after the time: a feature row counts when it has been in force
 *              since before (of the targets' own type: since then or before, because a target comes with its row), a
 *              matrix when its vertex has been there as long, an aggregate looks at older edges only.
 *
 * THREADS: one thread at a time, that of its source.
 */
#ifndef WEIR_INFERENCE_INPUTS_INPUTS_H
#define WEIR_INFERENCE_INPUTS_INPUTS_H

#include <weir/inference/nn/nn.h>
#include <weir/store/sample/source.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_inputs weir_inputs;

/* All are borrowed; schema: the source's own, which may have more behind what the shape knows (weir_nn_shape_fits).
 * WEIR_EVERSION the source lacks a matrix that the shape has; WEIR_ENOMEM.  [owner] */
weir_err weir_inputs_open(const weir_nn_shape *shape, const weir_schema *schema, weir_sample_source *source,
                          weir_inputs **inputsp);
void weir_inputs_close(weir_inputs *inputs); /* NULL is allowed */

/* Vertices of one type, however many. numbers: count x width; slots: count x categories. Whether they are of the
 * targets' type is found here. Errors of the source.  [owner] */
weir_err weir_inputs_rows(weir_inputs *inputs, const weir_sample_vertices *of, weir_real *numbers, uint32_t *slots);
/* For how long what is known of each, aggregates and ages apart, is what it is as of its own time: source.h. However
 * many; the source can tell. Errors of the source.  [owner] */
weir_err weir_inputs_spans(weir_inputs *inputs, const weir_sample_vertices *of, int64_t *since_us, int64_t *until_us);
/* Input rows of one type of a block, each to its place among numbers and slots. rows: count of them, by their places;
 * NULL: all.  [owner] */
weir_err weir_inputs_block(weir_inputs *inputs, const weir_block_view *view, uint32_t type, const uint32_t *rows,
                           uint32_t count, weir_real *numbers, uint32_t *slots);
/* Edges [begin, end) of one step of a block. numbers: so many x width of the relation.  [owner] */
weir_err weir_inputs_edges(weir_inputs *inputs, const weir_block_view *view, uint32_t step, uint32_t begin,
                           uint32_t end, weir_real *numbers);
/* Shows the learner vertices of one type, however many, or edges [begin, end) of one step.  [owner] */
weir_err weir_inputs_learn_rows(weir_inputs *inputs, const weir_sample_vertices *of, weir_nn_learner *learner);
weir_err weir_inputs_learn_edges(weir_inputs *inputs, const weir_block_view *view, uint32_t step, uint32_t begin,
                                 uint32_t end, weir_nn_learner *learner);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_INFERENCE_INPUTS_INPUTS_H */

/* SPDX-License-Identifier: Apache-2.0 */
/* shape_private.h - the shape from inside, and how its two makers (a schema, a text) put it together. */
#ifndef WEIR_INFERENCE_SHAPE_PRIVATE_H
#define WEIR_INFERENCE_SHAPE_PRIVATE_H

#include <weir/inference/nn/shape.h>
#include <weir/store/base/arena.h>

/* How far from 0 a number can be as the network gets it, an absurd one too; nn/bound.c relies on it. */
#define WEIR_NN_SCALED_MAX 1e4

#define WEIR_NN_SHAPE_BYTES_MAX ((size_t)256 << 20)

struct weir_nn_shape {
    weir_arena *arena;
    const char *task;
    uint32_t hidden, layers, outputs, target_type, window;
    uint32_t types, relations, step_count;
    bool bare, residual, feed_forward, headless; /* as weir_nn_opts has them */
    weir_nn_norm norm;
    weir_nn_jump jump;
    weir_nn_network network;
    uint32_t heads;
    weir_sample_step steps[WEIR_SAMPLE_STEPS_MAX];
    weir_sample_ends *ends;   /* one a relation             */
    weir_nn_inputs *vertices; /* one a type                 */
    weir_nn_inputs *edges;    /* one a relation             */
    bool *reach;              /* [hop * types + type]       */
};

/* The inputs by one index over all of them: vertex types first, then relations. */
weir_nn_inputs *weir_nn_inputs_at(const weir_nn_shape *shape, uint32_t index);
weir_nn_number *weir_nn_numbers_of(const weir_nn_inputs *inputs); /* to be changed, before the shape is shared */
/* The number before it is scaled; NaN when it is missing or not finite. aggregate: its place in aggregates. */
double weir_nn_number_raw(const weir_nn_number *number, const weir_value *values, const double *aggregates,
                          uint32_t aggregate, int64_t before_us);

/* A shape with room for so many types and relations. */
weir_err weir_nn_shape_begin(uint32_t types, uint32_t relations, weir_nn_shape **shapep);
/* Room for features and aggregates, then one call each, in their order.  WEIR_ENOMEM. */
weir_err weir_nn_inputs_begin(weir_nn_shape *shape, weir_nn_inputs *inputs, const char *name, uint32_t features,
                              uint32_t aggregates);
weir_err weir_nn_inputs_feature(weir_nn_shape *shape, weir_nn_inputs *inputs, const char *name,
                                weir_schema_feature_kind kind, weir_schema_normalise normalise, uint32_t slots);
weir_err weir_nn_inputs_aggregate(weir_nn_shape *shape, weir_nn_inputs *inputs, const char *name, uint32_t id,
                                  weir_schema_normalise normalise);
/* Behind the features and aggregates.  WEIR_EINVAL, WEIR_ENOMEM. */
weir_err weir_nn_inputs_matrix(weir_nn_shape *shape, weir_nn_inputs *inputs, const weir_nn_matrix *matrix);
/* Behind the features: so many vertices of the type are known.  WEIR_EINVAL none, or told before; WEIR_ELIMIT. */
weir_err weir_nn_inputs_known(weir_nn_inputs *inputs, uint64_t count);
/* Checks steps and sizes, and finds what can be reached.  WEIR_EINVAL, WEIR_ELIMIT, WEIR_ENOMEM. */
weir_err weir_nn_shape_finish(weir_nn_shape *shape);
/* Whether layer `layer` has nodes of the type; whether it looks along the step. */
bool weir_nn_layer_has(const weir_nn_shape *shape, uint32_t layer, uint32_t type);
bool weir_nn_layer_steps(const weir_nn_shape *shape, uint32_t layer, uint32_t step);
/* Whether a vertex of a GAT is among what it mixes: along steps that join a type with itself. */
bool weir_nn_shape_has_loops(const weir_nn_shape *shape);

#endif /* WEIR_INFERENCE_SHAPE_PRIVATE_H */

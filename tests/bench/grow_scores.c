/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grow_scores.c - a network that scores the payments of a store that grows: two hops of ten edges along each relation,
 * 64 wide, as `weir train` has them when nothing else is said. Its weights are random: what a weight is does not change
 * what it costs.
 */
#include <weir/inference/score/score.h>
#include <weir/store/base/alloc.h>
#include <weir/trainer/train/train.h>

#include "grow_bench.h"

struct grow_scorer {
    weir_graph *graph;
    weir_nn_shape *shape;
    weir_nn *nn;
    void *params;
    weir_score_model *model;
    weir_scorer *scorer;
};

weir_err weir_grow_scorer_open(weir_graph *graph, grow_scorer **scorerp) {
    const weir_schema *schema = weir_graph_schema(graph);
    const weir_train_opts training = weir_train_defaults();
    const weir_kernels *cpu = weir_kernels_cpu();
    weir_sample_step steps[WEIR_SAMPLE_STEPS_MAX];
    grow_scorer *s = weir_calloc(1, sizeof *s);
    *scorerp = s;
    if (!s) return WEIR_NOMEM("for a scorer");
    s->graph = graph;
    const weir_nn_opts opts = {.hidden = training.hidden,
                               .steps = steps,
                               .step_count =
                                   weir_train_steps(schema, 0, &training.reach, NULL, steps, WEIR_SAMPLE_STEPS_MAX)};
    weir_err err = weir_nn_shape_open(schema, &opts, &s->shape);
    if (!err) err = weir_nn_open(s->shape, cpu, &s->nn);
    if (!err) err = cpu->alloc(cpu, weir_nn_parameter_count(s->nn) * sizeof(weir_real), &s->params);
    if (err) return err;
    weir_nn_init(s->nn, 1, s->params);
    const weir_score_model_opts model = {
        .name = "bench", .version = "1", .nn = s->nn, .params = s->params, .seed = 1, .slope = 1};
    err = weir_score_model_open(&model, schema, &s->model);
    return err ? err : weir_scorer_open(graph, &s->scorer);
}

uint32_t weir_grow_scorer_target(const grow_scorer *scorer) {
    const weir_schema *schema = weir_graph_schema(scorer->graph);
    return weir_schema_label_at(schema, weir_schema_task_at(schema, 0)->label)->target;
}

weir_err weir_grow_scorer_run(grow_scorer *scorer, weir_vertex payment, weir_arena *arena, uint32_t *edgesp) {
    weir_score_ask ask;
    weir_score score;
    weir_err err = weir_score_ask_vertex(scorer->graph, scorer->model, payment, 0, arena, &ask);
    if (!err) err = weir_scorer_run(scorer->scorer, scorer->model, &ask, 1, &score);
    if (!err) *edgesp = score.edges;
    return err;
}

void weir_grow_scorer_close(grow_scorer *scorer) {
    if (!scorer) return;
    weir_scorer_close(scorer->scorer);
    weir_score_model_drop(scorer->model);
    if (scorer->params) weir_kernels_cpu()->release(weir_kernels_cpu(), scorer->params);
    weir_nn_close(scorer->nn);
    weir_nn_shape_free(scorer->shape);
    weir_free(scorer);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scorer.c - asks in, scores out: one thread's sampler, block, workspace and arena.
 *
 *   asks ─► rounds: no two that could see      ─► a whole tree each ─► too large, or together too late?
 *           each other's event                                         some get a smaller one
 *
 * How many vertices there is time for is learnt from the batches before: reading them is what takes time. All of a
 * round pay for all of it, and all asks of a run are answered when its last round is done: so what a deadline is held
 * against is the time that all of it will take. How large trees are is learnt too: drawing them costs time as well.
 */
#include <math.h>
#include <string.h>

#include <weir/inference/inputs/inputs.h>
#include <weir/store/aggregate/aggregate.h>
#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/clock.h>
#include <weir/store/base/hash.h>
#include <weir/store/sample/sampler.h>

#include "score_private.h"

#define SCORER_NO_ROOM "the neighbourhood needs more memory than a batch may use; ask for fewer at once"
#define LEAST_FANOUT   1u
#define LESS_SHARE     4u
#define NODE_NS_FIRST  5000.0 /* before anything was measured */
#define NODE_NS_WEIGHT 0.1    /* of the newest measurement    */
#define TREE_WEIGHT    0.1    /* the same of the trees' sizes */
#define TREE_FORGOTTEN 0.98   /* of a size that is believed and was not looked at, so that it is once more */

/* What one effort of one model needs. */
typedef struct scorer_reach {
    weir_sampler *sampler;
    weir_block *block;
} scorer_reach;

struct weir_scorer {
    weir_graph *graph;
    weir_sample_source *live;
    weir_score_overlay *overlay;
    weir_arena *arena; /* of one run */
    weir_clock *clock;
    double node_ns;                   /* one vertex, from the sample to the logit   */
    bool pace_is_set;                 /* it is not learnt                           */
    double trees[WEIR_SCORE_EFFORTS]; /* vertices of a tree; 0: not seen yet        */
    /* Of the model at hand. */
    weir_score_model *model;
    scorer_reach reaches[WEIR_SCORE_EFFORTS];
    scorer_reach inner[WEIR_SAMPLE_HOPS_MAX]; /* of vertices that stand so many hops from a target */
    weir_nn_workspace *workspace;             /* NULL: trees alone */
    weir_inputs *inputs;
    weir_tree_columns *columns;  /* NULL: the model has no trees */
    const weir_block_view *view; /* of the last pass */
};

/* Asks that go together, and where their scores belong. */
typedef struct scorer_round {
    const weir_score_ask *asks[WEIR_SCORE_BATCH_MAX];
    weir_score *scores[WEIR_SCORE_BATCH_MAX];
    uint32_t count;
    uint32_t behind; /* asks of the run that come after it */
} scorer_round;

/* --- the model at hand -------------------------------------------------------------------------------------------- */

static void scorer_close_reach(scorer_reach *r) {
    weir_block_close(r->block);
    weir_sampler_close(r->sampler);
    *r = (scorer_reach){0};
}

static void scorer_forget_model(weir_scorer *s) {
    for (uint32_t i = 0; i < WEIR_SCORE_EFFORTS; i++)
        scorer_close_reach(&s->reaches[i]);
    for (uint32_t i = 0; i < WEIR_SAMPLE_HOPS_MAX; i++)
        scorer_close_reach(&s->inner[i]);
    weir_tree_columns_close(s->columns);
    weir_inputs_close(s->inputs);
    weir_nn_workspace_close(s->workspace);
    weir_score_model_drop(s->model);
    s->columns = NULL;
    s->inputs = NULL;
    s->workspace = NULL;
    s->model = NULL;
    s->view = NULL;
}

static weir_err scorer_open_drawing(const weir_scorer *s, const weir_sample_opts *opts, scorer_reach *r) {
    weir_err err = r->sampler ? WEIR_OK : weir_sampler_open(opts, weir_score_overlay_source(s->overlay), &r->sampler);
    return err ? err : weir_block_open(r->sampler, &r->block);
}

/* The sampler and the block of one effort, opened when it is first needed. */
static weir_err scorer_open_reach(weir_scorer *s, weir_score_effort effort, scorer_reach **reachp) {
    const weir_nn_shape *shape = weir_score_model_shape(s->model);
    weir_sample_step steps[WEIR_SAMPLE_STEPS_MAX];
    WEIR_ASSERT(effort < WEIR_SCORE_EFFORTS);
    scorer_reach *r = *reachp = &s->reaches[effort];
    weir_sample_opts opts = {
        .steps = steps,
        .window = weir_nn_window(shape),
        .targets_max = WEIR_SCORE_BATCH_MAX,
        .seed = s->model->opts.seed,
        .own_rows = weir_aggregates_of_ends(weir_graph_schema(s->graph), weir_nn_target_type(shape)) != NULL};
    if (r->block) return WEIR_OK;
    const weir_sample_step *whole = weir_nn_steps(shape, &opts.step_count); // SCORE-C2: the steps of training
    if (!s->model->opts.nn) opts.step_count = weir_tree_columns_steps(shape, s->model->opts.hops, steps);
    WEIR_ASSERT(opts.step_count <= WEIR_SAMPLE_STEPS_MAX);
    memcpy(steps, whole, opts.step_count * sizeof *steps);
    for (uint32_t i = 0; effort != WEIR_SCORE_WHOLE && i < opts.step_count; i++) {
        weir_sample_step *step = &steps[i];
        uint32_t window = opts.window ? opts.window : WEIR_SAMPLE_WINDOW;
        uint32_t fanout = step->strategy == WEIR_SAMPLE_FULL ? window : step->fanout;
        step->fanout = effort == WEIR_SCORE_LESS ? (fanout + LESS_SHARE - 1) / LESS_SHARE : LEAST_FANOUT;
        if (effort == WEIR_SCORE_LEAST || step->strategy == WEIR_SAMPLE_FULL) step->strategy = WEIR_SAMPLE_RECENT;
    }
    return scorer_open_drawing(s, &opts, r);
}

/* --- the answer --------------------------------------------------------------------------------------------------- */

static double scorer_logistic(double x) {
    return 1 / (1 + exp(-x));
}

/* A decision is the same for the same model, target, time, event and seed. */
static uint64_t scorer_decision_of(const weir_score_model *model, const weir_score_ask *ask) {
    uint64_t what[] = {weir_xxh3(model->name, strlen(model->name), 0),
                       weir_xxh3(model->version, strlen(model->version), 1),
                       weir_vertex_high(ask->vertex),
                       weir_vertex_low(ask->vertex),
                       (uint64_t)ask->time_us,
                       ask->event,
                       model->opts.seed};
    return weir_xxh3(what, sizeof what, 0);
}

/* From the logits of one target to score, probability and, of several classes, the likeliest one. */
static void scorer_judge(const weir_score_model *model, const weir_real *logits, weir_score *score) {
    uint32_t outputs = weir_nn_outputs(weir_score_model_shape(model));
    score->label = 0;
    if (outputs == 1) {
        score->logit = (double)logits[0];
        score->score = scorer_logistic(score->logit);
        score->probability = scorer_logistic(model->opts.slope * score->logit + model->opts.offset);
        return;
    }
    double sum = 0;
    for (uint32_t c = 1; c < outputs; c++)
        if (logits[c] > logits[score->label]) score->label = c;
    for (uint32_t c = 0; c < outputs; c++)
        sum += exp((double)logits[c] - (double)logits[score->label]);
    score->logit = (double)logits[score->label];
    score->score = score->probability = 1 / sum;
}

/* Weights that are finite may still give a score that is not; and half an answer is not an answer. */
static bool scorer_is_finite(const weir_score *score) {
    bool finite = isfinite(score->logit) && isfinite(score->score) && isfinite(score->probability);
    for (uint32_t i = 0; i < score->reason_count; i++)
        finite = finite && isfinite(score->reasons[i].change);
    for (uint32_t i = 0; i < score->embedding_width; i++)
        finite = finite && isfinite(score->embedding[i]);
    for (uint32_t i = 0; i < score->column_count; i++)
        finite = finite && isfinite(score->columns[i].contribution);
    finite = finite && isfinite(score->base) && isfinite(score->network) && isfinite(score->other_columns);
    return finite && isfinite(score->own_change);
}

static weir_err scorer_too_large(const weir_score_model *model) {
    return WEIR_ERR(WEIR_EUNAVAILABLE,
                    "model %s gives a score that is not a finite number, because its weights are too large; train it "
                    "again with a lower rate, or go back to the previous model with `weir model rollback`",
                    model->version);
}

/* --- one pass ----------------------------------------------------------------------------------------------------- */

typedef struct scorer_pass {
    weir_scorer *scorer;
    const scorer_round *round;
    weir_score_effort effort;
    const weir_block_view *view;
    weir_score_wide *wide;
    weir_real *logits, *embeddings; /* of the wider block */
    weir_real *networks;            /* of a blend: the logits of its network */
    float *rows;                    /* NULL: no trees read any */
    uint32_t nodes[WEIR_SCORE_BATCH_MAX], edges[WEIR_SCORE_BATCH_MAX];
} scorer_pass;

/* Draws a tree for each ask of the round, and counts the vertices and edges of each. */
static weir_err scorer_sample(scorer_pass *p) {
    weir_scorer *s = p->scorer;
    weir_target targets[WEIR_SCORE_BATCH_MAX];
    uint32_t count = p->round->count;
    uint16_t type = (uint16_t)weir_nn_target_type(weir_score_model_shape(s->model));
    scorer_reach *r;
    WEIR_ASSERT(count > 0 && count <= WEIR_SCORE_BATCH_MAX);
    weir_err err = scorer_open_reach(s, p->effort, &r);
    if (err) return err;
    for (uint32_t i = 0; i < count; i++) {
        const weir_score_ask *ask = p->round->asks[i];
        targets[i] = (weir_target){ask->vertex, ask->time_us, ask->event, type};
    }
    weir_score_overlay_show(s->overlay, p->round->asks, count);
    s->view = NULL; /* the block may be the one that it shows */
    err = weir_sample(r->sampler, targets, count, r->block);
    if (err) return err;
    weir_block_inputs(r->sampler, r->block, true);

    const weir_block_view *view = p->view = s->view = weir_block_look(r->block);
    WEIR_ASSERT(view->targets == count);
    memset(p->nodes, 0, count * sizeof *p->nodes);
    memset(p->edges, 0, count * sizeof *p->edges);
    for (uint32_t n = 0; n < view->nodes; n++)
        p->nodes[view->groups[n]]++;
    for (uint32_t step = 0; step < view->steps; step++)
        for (uint32_t i = 0; i < view->edges[step].count; i++)
            p->edges[view->groups[view->edges[step].parents[i]]]++;
    return WEIR_OK;
}

/* The score of ask i, with its embedding, its reasons and its columns where they are wanted. */
static weir_err scorer_answer(scorer_pass *p, uint32_t i) {
    weir_scorer *s = p->scorer;
    const weir_score_ask *ask = p->round->asks[i];
    const weir_nn_shape *shape = weir_score_model_shape(s->model);
    weir_score_place place = p->wide->places[i];
    weir_score *score = p->round->scores[i];
    WEIR_ASSERT(place.base + place.variants < p->wide->view.targets);
    *score = (weir_score){
        .decision = scorer_decision_of(s->model, ask), .nodes = p->nodes[i], .edges = p->edges[i], .effort = p->effort};
    scorer_judge(s->model, p->logits + (size_t)place.base * weir_nn_outputs(shape), score);
    if (ask->embedding) {
        score->embedding_width = weir_nn_hidden(shape);
        score->embedding = p->embeddings + (size_t)place.base * score->embedding_width;
    }
    weir_err err = WEIR_OK;
    if (place.variants)
        err = weir_score_reasons_of(shape, weir_score_overlay_source(s->overlay), p->view, p->wide, p->logits, i,
                                    ask->reasons, s->arena, score);
    if (!err && ask->columns && s->model->columns)
        err = weir_score_columns_of(s->model, weir_graph_schema(s->graph),
                                    p->rows + (size_t)place.base * weir_trees_look(s->model->opts.trees).columns,
                                    p->networks ? (double)p->networks[place.base] : 0, ask->columns, s->arena, score);
    return err || scorer_is_finite(score) ? err : scorer_too_large(s->model);
}

static weir_err scorer_read_inputs(weir_scorer *s, const weir_nn_shape *shape, const weir_block_view *view,
                                   weir_score_inputs *inputs) {
    uint32_t steps;
    const weir_sample_step *step = weir_nn_steps(shape, &steps);
    weir_err err = WEIR_OK;
    for (uint32_t type = 0; !err && type < view->types; type++) {
        const weir_nn_inputs *of = weir_nn_vertex(shape, type);
        size_t rows = view->input_ranges[type].end - view->input_ranges[type].begin;
        weir_real *numbers = weir_arena_alloc(s->arena, rows * of->width * sizeof *numbers);
        uint32_t *slots = weir_arena_alloc(s->arena, rows * of->category_count * sizeof *slots);
        if (!numbers || !slots) return WEIR_ARENA_ERR(s->arena, SCORER_NO_ROOM);
        inputs->numbers[type] = numbers;
        inputs->slots[type] = slots;
        err = weir_inputs_block(s->inputs, view, type, NULL, 0, numbers, slots);
    }
    for (uint32_t i = 0; !err && i < view->steps; i++) {
        uint32_t width = weir_nn_edge(shape, step[i].relation)->width;
        inputs->edges[i] = NULL;
        if (!width) continue;
        weir_real *numbers = weir_arena_alloc(s->arena, (size_t)view->edges[i].count * width * sizeof *numbers);
        if (!numbers) return WEIR_ARENA_ERR(s->arena, SCORER_NO_ROOM);
        inputs->edges[i] = numbers;
        err = weir_inputs_edges(s->inputs, view, i, 0, view->edges[i].count, numbers);
    }
    return err;
}

/* What the model says of each target of the wider block: the network, its trees, or both. */
static weir_err scorer_compute_logits(scorer_pass *p, bool embeddings) {
    weir_scorer *s = p->scorer;
    const weir_score_model_opts *of = &s->model->opts;
    const weir_score_wide *wide = p->wide;
    const size_t targets = wide->view.targets, outputs = weir_nn_outputs(of->shape);
    float *margins = NULL;
    p->logits = weir_arena_alloc(s->arena, targets * outputs * sizeof *p->logits);
    if (embeddings)
        p->embeddings = weir_arena_alloc(s->arena, targets * weir_nn_hidden(of->shape) * sizeof *p->embeddings);
    p->networks = weir_score_model_blends(s->model) ? weir_arena_alloc(s->arena, targets * sizeof *p->networks) : NULL;
    if (!p->logits || (embeddings && !p->embeddings) || (weir_score_model_blends(s->model) && !p->networks))
        return WEIR_ARENA_ERR(s->arena, "no memory for the scores of a batch; ask for fewer targets at once");
    const weir_nn_batch batch = {.block = &wide->view,
                                 .numbers = wide->inputs.numbers,
                                 .slots = wide->inputs.slots,
                                 .edges = wide->inputs.edges};
    weir_err err = WEIR_OK;
    if (of->nn) err = weir_nn_forward(of->nn, of->params, &batch, NULL, s->workspace, p->logits, p->embeddings);
    if (!err && of->trees) err = weir_score_margins(s->model, s->columns, p->view, wide, s->arena, &margins, &p->rows);
    for (size_t i = 0; !err && p->networks && i < targets; i++)
        p->networks[i] = p->logits[i];
    for (size_t i = 0; !err && of->trees && i < targets; i++)
        p->logits[i] = (weir_real)(of->nn ? weir_blend_of(&of->blend, (double)p->logits[i], (double)margins[i])
                                          : (double)margins[i]);
    return err;
}

/* From the sampled trees to the answers: inputs, variants for the reasons, one pass of the model, then each ask. */
static weir_err scorer_compute(scorer_pass *p) {
    weir_scorer *s = p->scorer;
    const weir_nn_shape *shape = weir_score_model_shape(s->model);
    weir_score_inputs inputs;
    bool explain[WEIR_SCORE_BATCH_MAX], embeddings = false;
    for (uint32_t i = 0; i < p->round->count; i++) {
        explain[i] = p->round->asks[i]->reasons > 0;
        embeddings = embeddings || p->round->asks[i]->embedding;
    }
    weir_score_wide *wide = p->wide = weir_arena_alloc(s->arena, sizeof *wide);
    if (!wide) return WEIR_ARENA_ERR(s->arena, "no memory for a batch; ask for fewer targets at once");
    weir_err err = scorer_read_inputs(s, shape, p->view, &inputs);
    if (!err) err = weir_score_widen(shape, p->view, &inputs, explain, weir_graph_schema(s->graph), s->arena, wide);
    if (!err) err = scorer_compute_logits(p, embeddings);
    for (uint32_t i = 0; !err && i < p->round->count; i++)
        err = scorer_answer(p, i);
    return err;
}

/* --- a vertex that is no target ----------------------------------------------------------------------------------- */

static weir_err scorer_open_inner(weir_scorer *s, uint32_t hop, scorer_reach *r) {
    const weir_nn_shape *shape = weir_score_model_shape(s->model);
    weir_sample_step steps[WEIR_SAMPLE_STEPS_MAX];
    const weir_sample_opts opts = {.steps = steps,
                                   .step_count = weir_nn_steps_from(shape, hop, steps),
                                   .window = weir_nn_window(shape),
                                   .targets_max = 1,
                                   .seed = s->model->opts.seed};
    if (r->block) return WEIR_OK;
    return scorer_open_drawing(s, &opts, r);
}

/* Its tree is what would lie below it in a target's tree at the ask's time, and its embedding what the network would
 * say of it there. */
static weir_err scorer_run_inner(weir_scorer *s, const weir_score_ask *ask, weir_score *score) {
    const weir_nn_shape *shape = weir_score_model_shape(s->model);
    const uint32_t hop = ask->type < weir_nn_types(shape) ? weir_nn_hop_of(shape, ask->type) : UINT32_MAX;
    const weir_target target = {.vertex = ask->vertex, .before_us = ask->time_us, .type = ask->type};
    weir_score_inputs inputs;
    weir_block_view view;
    if (hop == 0 || hop >= weir_nn_layers(shape))
        return WEIR_ERR(WEIR_EINVAL, "vertex type %u has no embedding that is not a target's", ask->type);
    scorer_reach *r = &s->inner[hop];
    weir_score_overlay_show(s->overlay, NULL, 0);
    s->view = NULL;
    weir_err err = scorer_open_inner(s, hop, r);
    if (!err) err = weir_sample(r->sampler, &target, 1, r->block);
    if (err) return err;
    weir_block_inputs(r->sampler, r->block, true);
    err = weir_nn_lift(shape, weir_block_look(r->block), hop, s->arena, &view);
    if (!err) err = scorer_read_inputs(s, shape, &view, &inputs);
    weir_real *embedding = weir_arena_alloc(s->arena, weir_nn_hidden(shape) * sizeof *embedding);
    if (!err && !embedding) err = WEIR_ARENA_ERR(s->arena, SCORER_NO_ROOM);
    if (err) return err;
    const weir_nn_batch batch = {
        .block = &view, .numbers = inputs.numbers, .slots = inputs.slots, .edges = inputs.edges};
    err = weir_nn_embed(s->model->opts.nn, s->model->opts.params, &batch, hop, s->workspace, embedding);
    uint32_t edges = 0;
    for (uint32_t step = 0; step < view.steps; step++)
        edges += view.edges[step].count;
    *score = (weir_score){.decision = scorer_decision_of(s->model, ask),
                          .nodes = view.nodes,
                          .edges = edges,
                          .embedding = embedding,
                          .embedding_width = weir_nn_hidden(shape)};
    return err || scorer_is_finite(score) ? err : scorer_too_large(s->model);
}

/* --- rounds ------------------------------------------------------------------------------------------------------- */

/* How many vertices there is time for until the first of the round must be answered, after what comes behind it. */
static double scorer_room_of(const weir_scorer *s, const scorer_round *round) {
    int64_t first_us = INT64_MAX;
    for (uint32_t i = 0; i < round->count; i++) {
        int64_t deadline_us = round->asks[i]->deadline_us;
        if (deadline_us && deadline_us < first_us) first_us = deadline_us;
    }
    if (first_us == INT64_MAX) return HUGE_VAL;
    double left_ns = (double)(first_us - weir_clock_mono_us(s->clock)) * 1000;
    return left_ns / s->node_ns - round->behind * s->trees[WEIR_SCORE_WHOLE];
}

/* How large a tree is, as far as is known: at most as one of more effort. */
static double scorer_tree_of(const weir_scorer *s, weir_score_effort effort) {
    double tree = 0;
    for (uint32_t i = WEIR_SCORE_WHOLE; i <= effort && i < WEIR_SCORE_EFFORTS; i++)
        if (s->trees[i] > 0) tree = s->trees[i];
    return tree;
}

/* Moves the asks that the round cannot afford to another round; returns whether there were any. The first ones stay: a
 * tree that is kept must leave room for the smallest tree of every ask behind it. */
static bool scorer_put_off(scorer_pass *p, scorer_round *round, scorer_round *smaller) {
    double room = scorer_room_of(p->scorer, round), spent = 0, least = scorer_tree_of(p->scorer, WEIR_SCORE_LEAST);
    uint32_t kept = 0, count = round->count;
    for (uint32_t i = 0; i < count; i++) {
        const weir_score_ask *ask = round->asks[i];
        bool fits = !ask->nodes_max || p->nodes[i] <= ask->nodes_max;
        bool in_time = spent + p->nodes[i] + least * (count - kept - 1) <= room;
        scorer_round *to = fits && in_time ? round : smaller;
        uint32_t at = to == round ? kept++ : smaller->count++;
        if (to == round) spent += p->nodes[i];
        to->asks[at] = ask;
        to->scores[at] = round->scores[i];
    }
    WEIR_ASSERT(kept + smaller->count == count);
    round->count = kept;
    return kept < count;
}

/* Answers the asks of a round: those that it can afford with whole trees, the others with smaller ones. */
static weir_err scorer_run_round(weir_scorer *s, scorer_round *round) {
    weir_err err = WEIR_OK;
    weir_score_effort effort = WEIR_SCORE_WHOLE;

    /* Begin with the largest trees that there is time to draw for all of the round. */
    double room = scorer_room_of(s, round);
    while (effort < WEIR_SCORE_LEAST && scorer_tree_of(s, effort) * round->count > room)
        s->trees[effort++] *= TREE_FORGOTTEN;

    for (; !err && round->count; effort++) {
        scorer_round smaller = {.count = 0, .behind = round->behind};
        scorer_pass p = {.scorer = s, .round = round, .effort = effort};
        int64_t start_ns = weir_clock_mono_ns(s->clock);
        err = scorer_sample(&p);
        if (err) break;
        double seen = (double)p.view->nodes / round->count, *tree = &s->trees[effort];
        *tree = *tree > 0 ? *tree + TREE_WEIGHT * (seen - *tree) : seen;

        /* Those that stay are sampled again without the others. */
        if (effort < WEIR_SCORE_LEAST && scorer_put_off(&p, round, &smaller) && round->count) err = scorer_sample(&p);
        if (!err && round->count) {
            err = scorer_compute(&p);
            uint32_t nodes = p.view->nodes;
            double spent_ns = (double)(weir_clock_mono_ns(s->clock) - start_ns);
            if (s->pace_is_set)
                weir_clock_manual_advance(s->clock, (int64_t)(nodes * s->node_ns / 1000));
            else if (nodes)
                s->node_ns += NODE_NS_WEIGHT * (spent_ns / nodes - s->node_ns);
        }
        *round = smaller;
    }
    return err;
}

/* Whether one of two could see what only the other's event says (SCORE-C3). */
static bool scorer_disturb(const weir_score_ask *a, const weir_score_ask *b) {
    bool laid_over = a->mutation_count || b->mutation_count;
    uint64_t apart = a->time_us > b->time_us ? (uint64_t)a->time_us - (uint64_t)b->time_us
                                             : (uint64_t)b->time_us - (uint64_t)a->time_us;
    return laid_over && (a->vertex == b->vertex || apart <= 1);
}

/* An ask without a deadline does not go with one that has one: it would get a smaller tree for nothing, or cost the
 * other its time. */
static bool scorer_fits(const scorer_round *round, const weir_score_ask *ask) {
    if (round->count && !round->asks[0]->deadline_us != !ask->deadline_us) return false;
    for (uint32_t i = 0; i < round->count; i++)
        if (scorer_disturb(round->asks[i], ask)) return false;
    return true;
}

static weir_err scorer_take_model(weir_scorer *s, weir_score_model *model) {
    const weir_score_model_opts *of = &model->opts;
    weir_sample_source *source = weir_score_overlay_source(s->overlay);
    scorer_forget_model(s);
    weir_err err = of->nn ? weir_nn_workspace_open_apart(of->nn, &s->workspace) : WEIR_OK;
    if (!err) err = weir_inputs_open(of->shape, weir_graph_schema(s->graph), source, &s->inputs);
    if (!err && of->trees) err = weir_tree_columns_open(of->shape, of->hops, source, &s->columns);
    if (!err) s->model = weir_score_model_share(model);
    return err;
}

weir_err weir_scorer_run(weir_scorer *scorer, weir_score_model *model, const weir_score_ask *asks, uint32_t count,
                         weir_score *scores) {
    bool taken[WEIR_SCORE_BATCH_MAX] = {false};
    weir_err err = WEIR_OK;
    if (count == 0 || count > WEIR_SCORE_BATCH_MAX)
        return WEIR_ERR(WEIR_EINVAL, "%u asks; 1 to %u go together", count, WEIR_SCORE_BATCH_MAX);
    for (uint32_t i = 0; !model->opts.nn && i < count; i++)
        if (asks[i].embedding || asks[i].inner)
            return WEIR_ERR(WEIR_EINVAL, "model %s has no embeddings: it is boosted trees", model->version);
    weir_arena_reset(scorer->arena);
    if (scorer->model != model) err = scorer_take_model(scorer, model);
    uint32_t inner = 0, left;
    for (uint32_t i = 0; i < count; i++)
        inner += taken[i] = asks[i].inner;
    left = count - inner;
    while (!err && left) {
        scorer_round round = {.count = 0};
        for (uint32_t i = 0; i < count; i++) {
            if (taken[i] || !scorer_fits(&round, &asks[i])) continue;
            taken[i] = true;
            round.asks[round.count] = &asks[i];
            round.scores[round.count++] = &scores[i];
        }
        WEIR_ASSERT(round.count > 0 && round.count <= left);
        left -= round.count;
        round.behind = left + inner;
        err = scorer_run_round(scorer, &round);
    }
    for (uint32_t i = 0; !err && i < count; i++)
        if (asks[i].inner) err = scorer_run_inner(scorer, &asks[i], &scores[i]);
    weir_score_overlay_show(scorer->overlay, NULL, 0);
    return err;
}

void weir_scorer_pace_set(weir_scorer *scorer, weir_clock *clock, double node_ns) {
    scorer->clock = clock;
    scorer->node_ns = node_ns;
    scorer->pace_is_set = true;
}

const weir_block_view *weir_scorer_block(const weir_scorer *scorer) {
    return scorer->view;
}

/* --- open and close ----------------------------------------------------------------------------------------------- */

weir_err weir_scorer_open(weir_graph *graph, weir_scorer **scorerp) {
    *scorerp = NULL;
    weir_scorer *s = weir_calloc(1, sizeof *s);
    if (!s) return WEIR_NOMEM("for a scorer");
    s->graph = graph;
    s->clock = weir_clock_system();
    s->node_ns = NODE_NS_FIRST;
    weir_err err = weir_arena_open(WEIR_SCORE_BYTES_MAX, &s->arena);
    if (!err) err = weir_sample_over_graph(graph, WEIR_SCORE_BYTES_MAX, &s->live);
    if (!err) err = weir_score_overlay_open(graph, s->live, &s->overlay);
    if (err) {
        weir_scorer_close(s);
        return err;
    }
    *scorerp = s;
    return WEIR_OK;
}

void weir_scorer_close(weir_scorer *s) {
    if (!s) return;
    scorer_forget_model(s);
    weir_score_overlay_close(s->overlay);
    weir_sample_source_close(s->live);
    weir_arena_close(s->arena);
    weir_free(s);
}

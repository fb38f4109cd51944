/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pass.c - one thread's sampler, block, inputs and workspace: targets in, what the model says of them out.
 *
 * The trees of targets of one time share what lies below them, where no step draws at random: it is the same for
 * whoever asks, and is sampled, read and computed once.
 */
#include <math.h>
#include <string.h>

#include <weir/inference/inputs/columns.h>
#include <weir/inference/inputs/inputs.h>
#include <weir/inference/inputs/tree_rows.h>
#include <weir/store/aggregate/aggregate.h>
#include <weir/store/base/alloc.h>
#include <weir/store/base/arena.h>
#include <weir/store/base/assert.h>

#include "bulk_private.h"

#define PASS_BLOCK_MAX ((uint64_t)512 << 20) /* bytes of a block in its worst case */
#define PASS_READ_MAX  ((size_t)4 << 30)     /* bytes of a chunk's inputs */
#define PASS_NO_ROOM   "the neighbourhood of a chunk needs more memory than it may use"
#define PASS_NO_MEMORY "for what a model says of vertices"

struct weir_bulk_pass {
    const weir_bulk_plan *plan;
    weir_sample_source *source;
    weir_sampler *sampler; /* NULL: trees alone, and recommenders */
    weir_block *block;
    weir_inputs *inputs;
    weir_nn_workspace *workspace;
    weir_arena *arena;          /* of one run */
    weir_tree_columns *columns; /* of a blend: its trees read the network's block; NULL: they do not */
    weir_tree_rows *tree_rows;  /* trees that sample for themselves; NULL: there are none */
    float *tree_columns;        /* rows of these: of a batch, or of WEIR_TREE_ROWS_MAX targets */
    float *margins;
    weir_recommend_maker *maker;
    weir_real *logits;
    float *rows;
    weir_bulk_score *scores;
};

/* --- open and close ----------------------------------------------------------------------------------------------- */

static bool pass_draws(const weir_sample_step *steps, uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        if (steps[i].strategy != WEIR_SAMPLE_RECENT && steps[i].strategy != WEIR_SAMPLE_FULL) return true;
    return false;
}

static weir_err pass_open_sampler(const weir_bulk_plan *plan, uint32_t batch, weir_sample_source *source,
                                  weir_sampler **samplerp) {
    const weir_nn_shape *shape = plan->of.shape;
    weir_sample_step steps[WEIR_SAMPLE_STEPS_MAX];
    weir_sample_opts opts = {
        .steps = steps, .window = weir_nn_window(shape), .targets_max = batch, .seed = plan->of.sample_seed};
    if (plan->hop) {
        opts.step_count = weir_nn_steps_from(shape, plan->hop, steps);
    } else {
        opts.own_rows = weir_aggregates_of_ends(plan->schema, weir_nn_target_type(shape)) != NULL;
        opts.steps = weir_nn_steps(shape, &opts.step_count);
    }
    // BULK-B2: drawn as for training and serving; trees are only shared where nothing is drawn
    opts.shared = !plan->own_time && !pass_draws(opts.steps, opts.step_count);
    return weir_sampler_open(&opts, source, samplerp);
}

weir_err weir_bulk_pass_fit(weir_bulk_plan *plan) {
    weir_sample_source *source = NULL;
    weir_err err = plan->of.nn ? weir_sample_over_snapshot(plan->opts->snapshot, &source) : WEIR_OK;
    for (bool fits = !plan->of.nn; !err && !fits;) {
        weir_sampler *sampler = NULL;
        err = pass_open_sampler(plan, plan->batch, source, &sampler);
        fits = !err && (plan->batch == 1 || weir_block_bytes(sampler) <= PASS_BLOCK_MAX);
        weir_sampler_close(sampler);
        if (weir_err_is(err, WEIR_ELIMIT) && plan->batch > 1) err = WEIR_OK;
        if (!err && !fits) plan->batch /= 2;
    }
    weir_sample_source_close(source);
    return err;
}

static weir_err pass_open_network(weir_bulk_pass *p) {
    const weir_bulk_plan *plan = p->plan;
    p->logits = weir_calloc((size_t)plan->batch * weir_nn_outputs(plan->of.shape), sizeof *p->logits);
    weir_err err = p->logits ? WEIR_OK : WEIR_NOMEM(PASS_NO_MEMORY);
    if (!err) err = weir_inputs_open(plan->of.shape, plan->schema, p->source, &p->inputs);
    if (!err) err = pass_open_sampler(plan, plan->batch, p->source, &p->sampler);
    if (!err) err = weir_block_open(p->sampler, &p->block);
    if (!err) err = weir_nn_workspace_open_apart(plan->of.nn, &p->workspace);
    return err ? err : weir_arena_open(PASS_READ_MAX, &p->arena);
}

/* Trees of a blend read the block of its network, which was sampled as they want it (PACK-V2). */
static weir_err pass_open_trees(weir_bulk_pass *p) {
    const weir_pack_contents *of = &p->plan->of;
    const size_t columns = weir_tree_columns_count(of->shape, of->hops);
    const size_t rows = of->nn ? p->plan->batch : WEIR_TREE_ROWS_MAX;
    p->tree_columns = weir_calloc(rows, columns * sizeof *p->tree_columns);
    p->margins = weir_calloc(p->plan->batch, sizeof *p->margins);
    if (!p->tree_columns || !p->margins) return WEIR_NOMEM(PASS_NO_MEMORY);
    if (of->nn) return weir_tree_columns_open(of->shape, of->hops, p->source, &p->columns);
    return weir_tree_rows_open(of->shape, p->plan->opts->snapshot, of->hops, of->sample_seed, &p->tree_rows);
}

/* Users of a recommender; its items are read from its tables. */
static weir_err pass_open_maker(weir_bulk_pass *p) {
    const weir_bulk_opts *o = p->plan->opts;
    const weir_schema_task *task =
        weir_schema_task_at(p->plan->schema, weir_recommend_model_shape(o->recommender)->task);
    const weir_schema_relation *r = weir_schema_relation_at(p->plan->schema, task->relation);
    const weir_snapshot_vertices *users = weir_snapshot_vertices_of(o->snapshot, r->from);
    const weir_snapshot_vertices *items = weir_snapshot_vertices_of(o->snapshot, r->to);
    const weir_recommend_names names = {users->ids, items->ids, users->count, items->count};
    return weir_recommend_maker_open(o->recommender, p->plan->schema, p->source, &names, &p->maker);
}

weir_err weir_bulk_pass_open(const weir_bulk_plan *plan, weir_bulk_pass **passp) {
    const weir_bulk_opts *o = plan->opts;
    *passp = NULL;
    weir_bulk_pass *p = weir_calloc(1, sizeof *p);
    if (!p) return WEIR_NOMEM(PASS_NO_MEMORY);
    p->plan = plan;
    if (o->scores)
        p->scores = weir_calloc(plan->batch, sizeof *p->scores);
    else
        p->rows = weir_calloc(plan->batch, plan->columns * sizeof *p->rows);
    weir_err err = p->scores || p->rows ? WEIR_OK : WEIR_NOMEM(PASS_NO_MEMORY);
    if (!err) err = weir_sample_over_snapshot(o->snapshot, &p->source);
    if (!err && o->recommender && !plan->items) err = pass_open_maker(p);
    if (!err && !o->recommender && plan->of.nn) err = pass_open_network(p);
    if (!err && !o->recommender && plan->of.trees && o->scores) err = pass_open_trees(p);
    if (err) {
        weir_bulk_pass_close(p);
        return err;
    }
    *passp = p;
    return WEIR_OK;
}

void weir_bulk_pass_close(weir_bulk_pass *p) {
    if (!p) return;
    weir_recommend_maker_close(p->maker);
    weir_tree_columns_close(p->columns);
    weir_tree_rows_close(p->tree_rows);
    weir_arena_close(p->arena);
    weir_nn_workspace_close(p->workspace);
    weir_block_close(p->block);
    weir_sampler_close(p->sampler);
    weir_inputs_close(p->inputs);
    weir_sample_source_close(p->source);
    weir_free(p->tree_columns);
    weir_free(p->margins);
    weir_free(p->logits);
    weir_free(p->rows);
    weir_free(p->scores);
    weir_free(p);
}

/* --- a network ---------------------------------------------------------------------------------------------------- */

/* A block's vertices and edges in floats, which live in the arena. */
typedef struct pass_inputs {
    const weir_real *numbers[WEIR_SCHEMA_VERTICES_MAX];
    const uint32_t *slots[WEIR_SCHEMA_VERTICES_MAX];
    const weir_real *edges[WEIR_SAMPLE_STEPS_MAX];
} pass_inputs;

static weir_err pass_read_inputs(weir_bulk_pass *p, const weir_block_view *view, pass_inputs *inputs) {
    const weir_nn_shape *shape = p->plan->of.shape;
    uint32_t steps;
    const weir_sample_step *step = weir_nn_steps(shape, &steps);
    weir_err err = WEIR_OK;
    for (uint32_t type = 0; !err && type < view->types; type++) {
        const weir_nn_inputs *of = weir_nn_vertex(shape, type);
        const size_t rows = view->input_ranges[type].end - view->input_ranges[type].begin;
        weir_real *numbers = weir_arena_alloc(p->arena, rows * of->width * sizeof *numbers);
        uint32_t *slots = weir_arena_alloc(p->arena, rows * of->category_count * sizeof *slots);
        if (!numbers || !slots) return WEIR_ARENA_ERR(p->arena, PASS_NO_ROOM);
        inputs->numbers[type] = numbers;
        inputs->slots[type] = slots;
        err = weir_inputs_block(p->inputs, view, type, NULL, 0, numbers, slots);
    }
    for (uint32_t i = 0; !err && i < view->steps; i++) {
        const uint32_t width = weir_nn_edge(shape, step[i].relation)->width;
        inputs->edges[i] = NULL;
        if (!width) continue;
        weir_real *numbers = weir_arena_alloc(p->arena, (size_t)view->edges[i].count * width * sizeof *numbers);
        if (!numbers) return WEIR_ARENA_ERR(p->arena, PASS_NO_ROOM);
        inputs->edges[i] = numbers;
        err = weir_inputs_edges(p->inputs, view, i, 0, view->edges[i].count, numbers);
    }
    return err;
}

static weir_err pass_walk_block(weir_bulk_pass *p, const weir_block_view *view, const pass_inputs *inputs) {
    weir_tree_columns_block block = {.view = view, .numbers = inputs->numbers, .slots = inputs->slots};
    weir_err err = weir_tree_columns_edges(p->columns, view, &block.edges);
    if (err) return err;
    weir_tree_columns_write(p->columns, &block, p->tree_columns);
    weir_trees_walk(p->plan->of.trees, p->tree_columns, view->targets, p->margins);
    return WEIR_OK;
}

/* The logits of targets, with what a blend's trees add, or the embeddings of any. */
static weir_err pass_forward(weir_bulk_pass *p, const weir_target *targets, uint32_t count) {
    const weir_pack_contents *of = &p->plan->of;
    const uint32_t hop = p->plan->hop;
    pass_inputs inputs;
    weir_block_view lifted;
    weir_arena_reset(p->arena);
    weir_err err = weir_sample(p->sampler, targets, count, p->block);
    if (err) return err;
    weir_block_inputs(p->sampler, p->block, true);
    const weir_block_view *view = weir_block_look(p->block);
    if (hop) {
        err = weir_nn_lift(of->shape, view, hop, p->arena, &lifted);
        view = &lifted;
    }
    if (!err) err = pass_read_inputs(p, view, &inputs);
    if (err) return err;
    const weir_nn_batch batch = {
        .block = view, .numbers = inputs.numbers, .slots = inputs.slots, .edges = inputs.edges};
    if (hop) return weir_nn_embed(of->nn, of->params, &batch, hop, p->workspace, p->rows);
    if (p->columns) err = pass_walk_block(p, view, &inputs);
    return err ? err : weir_nn_forward(of->nn, of->params, &batch, NULL, p->workspace, p->logits, p->rows);
}

/* --- scores ------------------------------------------------------------------------------------------------------- */

/* As weir_calibrated computes it for a training's report: the same bits. */
static double pass_probability(const weir_pack_contents *of, double score) {
    const double z = of->slope * score + of->offset, small = exp(-fabs(z));
    return z >= 0 ? 1 / (1 + small) : small / (1 + small);
}

/* Of several classes the likeliest, and what softmax gives it. */
static void pass_choose(const weir_real *logits, uint32_t outputs, weir_bulk_score *s) {
    double sum = 0;
    s->label = 0;
    for (uint32_t c = 1; c < outputs; c++)
        if (logits[c] > logits[s->label]) s->label = c;
    for (uint32_t c = 0; c < outputs; c++)
        sum += exp((double)logits[c] - (double)logits[s->label]);
    s->score = (double)logits[s->label];
    s->probability = 1 / sum;
}

/* The margins of trees alone. */
static weir_err pass_walk(weir_bulk_pass *p, const weir_target *targets, uint32_t count) {
    weir_err err = WEIR_OK;
    for (uint32_t at = 0; !err && at < count; at += WEIR_TREE_ROWS_MAX) {
        const uint32_t some = count - at < WEIR_TREE_ROWS_MAX ? count - at : WEIR_TREE_ROWS_MAX;
        err = weir_tree_rows_read(p->tree_rows, targets + at, some, p->tree_columns);
        if (!err) weir_trees_walk(p->plan->of.trees, p->tree_columns, some, p->margins + at);
    }
    return err;
}

static double pass_log_odds(const weir_bulk_pass *p, uint32_t i) {
    const weir_pack_contents *of = &p->plan->of;
    if (!of->trees) return (double)p->logits[i];
    if (!of->nn) return (double)p->margins[i];
    return weir_blend_of(&of->blend, (double)p->logits[i], (double)p->margins[i]);
}

static weir_err pass_score(weir_bulk_pass *p, const weir_target *targets, uint32_t count) {
    const weir_pack_contents *of = &p->plan->of;
    const uint32_t outputs = weir_nn_outputs(of->shape);
    bool finite = true;
    weir_err err = of->nn ? pass_forward(p, targets, count) : pass_walk(p, targets, count);
    for (uint32_t i = 0; !err && i < count; i++) {
        weir_bulk_score *s = &p->scores[i];
        if (outputs > 1) {
            pass_choose(p->logits + (size_t)i * outputs, outputs, s);
        } else {
            s->score = pass_log_odds(p, i);
            s->probability = pass_probability(of, s->score);
        }
        finite = finite && isfinite(s->score) && isfinite(s->probability);
    }
    if (err || finite) return err;
    return WEIR_ERR(WEIR_EDATA,
                    "the model gives a score that is not a finite number; train it again with a lower --rate");
}

/* --- embeddings --------------------------------------------------------------------------------------------------- */

static weir_err pass_recommend(weir_bulk_pass *p, const weir_target *targets, uint32_t count) {
    const weir_bulk_plan *plan = p->plan;
    weir_err err = WEIR_OK;
    for (uint32_t i = 0; !err && i < count; i++) {
        float *row = p->rows + (size_t)i * plan->columns;
        const weir_vertex id = weir_vertex_of(plan->vertices->ids[(uint64_t)targets[i].vertex]);
        if (!plan->items)
            err = weir_recommend_maker_run(p->maker, targets[i].vertex, targets[i].before_us, row);
        else if (!weir_recommend_item_vector(plan->opts->recommender, id, row)) /* it was looked for before */
            err = WEIR_ERR(WEIR_EINTERNAL, "an item that the model knows is not in it");
    }
    return err;
}

static weir_err pass_embed(weir_bulk_pass *p, const weir_target *targets, uint32_t count) {
    const size_t numbers = (size_t)count * p->plan->columns;
    weir_err err = p->plan->opts->recommender ? pass_recommend(p, targets, count) : pass_forward(p, targets, count);
    for (size_t i = 0; !err && i < numbers; i++)
        if (!isfinite(p->rows[i]))
            err = WEIR_ERR(WEIR_EDATA, "the model gives an embedding that is not finite; train it again with a lower "
                                       "--rate");
    return err;
}

weir_err weir_bulk_pass_run(weir_bulk_pass *p, const weir_target *targets, uint32_t count,
                            const weir_bulk_score **scoresp, const float **rowsp) {
    WEIR_ASSERT(count > 0 && count <= p->plan->batch);
    *scoresp = p->scores;
    *rowsp = p->rows;
    return p->plan->opts->scores ? pass_score(p, targets, count) : pass_embed(p, targets, count);
}

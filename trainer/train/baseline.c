/* SPDX-License-Identifier: Apache-2.0 */
/*
 * baseline.c - the rows that boosted trees learn from: what a target says by itself, and that with its neighbourhood
 * beside it. Floats come from the code that feeds the network, so none sees more than it.
 *
 *   row     numbers, slots of the target
 *   graph   the same | of each step of hop 1: edges (as log), means of the neighbours' numbers
 *                    |                        numbers and slots of the newest neighbour
 *                    | of each step of hop 2 behind it: edges (as log) and numbers, means of the neighbours' means
 *           NaN: there is none. Means are of the newest edges, at most as many as the step's fan-out; edges are counted
 *           to 4,096.
 */
#include <math.h>
#include <string.h>

#include <weir/inference/inputs/inputs.h>
#include <weir/store/aggregate/aggregate.h>
#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/sample/sampler.h>
#include <weir/trainer/boost/boost.h>

#include "training_private.h"

#define BASELINE_NO_MEMORY  "for the baselines; omit them by --no-baselines"
#define BASELINE_AT_ONCE    256u
#define BASELINE_DEGREE_MAX 4096u
#define BASELINE_BYTES_MAX  ((uint64_t)1 << 32) /* of all rows; trees copy them once more */

/* Inputs of a block's rows of one type; grows to the largest block. */
typedef struct baseline_inputs {
    weir_real *numbers;
    uint32_t *slots;
    size_t rows; /* that there is room for */
} baseline_inputs;

/* Of the vertices that a step of a block goes out from. */
typedef struct baseline_degrees {
    uint32_t *of;
    uint32_t room;
} baseline_degrees;

typedef struct baseline_table {
    const weir_trained *trained;
    weir_sample_step steps[WEIR_SAMPLE_STEPS_MAX]; /* of hop 1, then of hop 2 */
    uint32_t first_count, step_count;
    weir_sample_source *source;
    weir_sampler *sampler;
    weir_block *block;
    weir_inputs *inputs;
    baseline_inputs own;  /* of targets: BASELINE_AT_ONCE */
    baseline_inputs *met; /* of each type, of the block   */
    baseline_degrees degrees[WEIR_SAMPLE_STEPS_MAX];
    double *sums; /* of one vertex's neighbours */
    float *rows;  /* of all targets               */
    size_t columns;
    double *scores; /* of targets behind the training part */
    weir_calibration calibration;
} baseline_table;

static uint32_t baseline_end_of(const baseline_table *t, uint32_t step, weir_direction direction) {
    const weir_schema *schema = weir_snapshot_schema(t->trained->opts.snapshot);
    const weir_schema_relation *r = weir_schema_relation_at(schema, t->steps[step].relation);
    return t->steps[step].direction == direction ? r->to : r->from;
}

/* The type that a step leads to, and the one that it comes from. */
static uint32_t baseline_child_type(const baseline_table *t, uint32_t step) {
    return baseline_end_of(t, step, WEIR_OUT);
}

static uint32_t baseline_parent_type(const baseline_table *t, uint32_t step) {
    return baseline_end_of(t, step, WEIR_IN);
}

static const weir_nn_inputs *baseline_of_type(const baseline_table *t, uint32_t type) {
    return weir_nn_vertex(t->trained->shape, type);
}

/* Without the vertex itself: no tree learns from the number that stands for one. */
static uint32_t baseline_categories(const weir_nn_inputs *inputs) {
    return inputs->category_count - (inputs->known_count > 0);
}

/* Columns of a vertex of the type. */
static size_t baseline_width(const baseline_table *t, uint32_t type) {
    const weir_nn_inputs *inputs = baseline_of_type(t, type);
    return inputs->width + baseline_categories(inputs);
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

static weir_err baseline_reserve(const weir_nn_inputs *inputs, size_t rows, baseline_inputs *b) {
    if (rows <= b->rows) return WEIR_OK;
    weir_real *numbers = weir_realloc_array(b->numbers, rows, (inputs->width + 1) * sizeof *numbers);
    if (numbers) b->numbers = numbers;
    uint32_t *slots = weir_realloc_array(b->slots, rows, (inputs->category_count + 1) * sizeof *slots);
    if (slots) b->slots = slots;
    if (!numbers || !slots) return WEIR_NOMEM(BASELINE_NO_MEMORY);
    b->rows = rows;
    return WEIR_OK;
}

static void baseline_write_row(const weir_nn_inputs *inputs, const baseline_inputs *from, size_t row, float *at) {
    for (uint32_t c = 0; c < inputs->width; c++)
        *at++ = (float)from->numbers[row * inputs->width + c];
    for (uint32_t c = 0; c < baseline_categories(inputs); c++)
        *at++ = (float)from->slots[row * inputs->category_count + c];
}

/* Of the vertices of a block that a step goes out from, how many neighbours each has, of which the block has the newest
 * few. */
static weir_err baseline_read_degrees(baseline_table *t, uint32_t step) {
    const weir_block_view *view = weir_block_look(t->block);
    const weir_block_edges *edges = &view->edges[step];
    const uint32_t parents = edges->parent_end - edges->parent_begin;
    baseline_degrees *d = &t->degrees[step];
    weir_sample_window windows[WEIR_SAMPLE_ASK_MAX];
    int64_t before_us[WEIR_SAMPLE_ASK_MAX];
    if (parents > d->room) {
        uint32_t *of = weir_realloc_array(d->of, parents, sizeof *of);
        if (!of) return WEIR_NOMEM(BASELINE_NO_MEMORY);
        d->of = of;
        d->room = parents;
    }
    weir_sample_ask ask = {.before_us = before_us,
                           .limit = BASELINE_DEGREE_MAX,
                           .relation = t->steps[step].relation,
                           .type = (uint16_t)baseline_parent_type(t, step),
                           .direction = t->steps[step].direction};
    weir_err err = WEIR_OK;
    for (uint32_t begin = 0; !err && begin < parents; begin += ask.count) {
        ask.count = parents - begin < WEIR_SAMPLE_ASK_MAX ? parents - begin : WEIR_SAMPLE_ASK_MAX;
        ask.parents = view->vertices + edges->parent_begin + begin;
        for (uint32_t i = 0; i < ask.count; i++)
            before_us[i] = view->before_us[view->groups[edges->parent_begin + begin + i]];
        err = t->source->windows(t->source, &ask, windows);
        for (uint32_t i = 0; !err && i < ask.count; i++) {
            d->of[begin + i] = windows[i].count;
            for (uint32_t e = edges->offsets[begin + i]; e < edges->offsets[begin + i + 1]; e++)
                d->of[begin + i] += edges->times[e] >= before_us[i]; /* of a target's own event */
        }
    }
    return err;
}

static float baseline_degree(const baseline_table *t, uint32_t step, uint32_t node) {
    return log1pf((float)t->degrees[step].of[node - weir_block_look(t->block)->edges[step].parent_begin]);
}

/* Adds the means of a vertex's neighbours along the step to sums, which begin with how many there are. */
static void baseline_add_means(const baseline_table *t, uint32_t step, uint32_t node, double *sums, uint32_t *withp) {
    const weir_block_view *view = weir_block_look(t->block);
    const weir_block_edges *edges = &view->edges[step];
    const uint32_t type = baseline_child_type(t, step), width = baseline_of_type(t, type)->width;
    const uint32_t *offsets = &edges->offsets[node - edges->parent_begin];
    WEIR_ASSERT(node >= edges->parent_begin && node < edges->parent_end);
    sums[0] += (double)baseline_degree(t, step, node);
    for (uint32_t i = offsets[0]; i < offsets[1]; i++) {
        const size_t row = view->input_of[edges->children[i]] - view->input_ranges[type].begin;
        for (uint32_t c = 0; c < width; c++)
            sums[1 + c] += (double)t->met[type].numbers[row * width + c] / (offsets[1] - offsets[0]);
    }
    *withp += offsets[1] > offsets[0];
}

/* Means over the neighbours of a target along `first`: of these themselves where step is the same, else of what their
 * own neighbours along the step are on average. Returns the columns that they take. */
static size_t baseline_write_means(const baseline_table *t, uint32_t first, uint32_t step, uint32_t node, float *at) {
    const weir_block_edges *edges = &weir_block_look(t->block)->edges[first];
    const uint32_t *offsets = &edges->offsets[node - edges->parent_begin];
    const uint32_t width = baseline_of_type(t, baseline_child_type(t, step))->width;
    uint32_t vertices = 0, with = 0; /* … and of them those that have neighbours */
    memset(t->sums, 0, (1 + width) * sizeof *t->sums);
    if (step == first) {
        baseline_add_means(t, first, node, t->sums, &with);
        vertices = 1;
    }
    for (uint32_t i = offsets[0]; step != first && i < offsets[1]; i++, vertices++)
        baseline_add_means(t, step, edges->children[i], t->sums, &with);
    if (vertices) at[0] = (float)(t->sums[0] / vertices);
    for (uint32_t c = 0; with && c < width; c++)
        at[1 + c] = (float)(t->sums[1 + c] / with);
    return 1 + width;
}

/* Columns of a step of hop 1. */
static size_t baseline_step_width(const baseline_table *t, uint32_t first) {
    const uint32_t type = baseline_child_type(t, first);
    size_t width = 1 + baseline_of_type(t, type)->width + baseline_width(t, type);
    for (uint32_t step = t->first_count; step < t->step_count; step++)
        if (baseline_parent_type(t, step) == type)
            width += 1 + baseline_of_type(t, baseline_child_type(t, step))->width;
    return width;
}

/* Of each target, along a step of hop 1: how many neighbours it has and their means, the newest of them, which is the
 * first edge of a parent, and what their own neighbours are. */
static void baseline_write_neighbors(const baseline_table *t, uint32_t first, size_t column, float *rows) {
    const weir_block_view *view = weir_block_look(t->block);
    const weir_block_edges *edges = &view->edges[first];
    const uint32_t type = baseline_child_type(t, first);
    WEIR_ASSERT(edges->parent_end - edges->parent_begin <= BASELINE_AT_ONCE);
    for (uint32_t node = edges->parent_begin; node < edges->parent_end; node++) {
        const uint32_t *offsets = &edges->offsets[node - edges->parent_begin];
        float *begin = rows + view->groups[node] * t->columns + column, *at = begin;
        at += baseline_write_means(t, first, first, node, at);
        if (offsets[0] < offsets[1])
            baseline_write_row(baseline_of_type(t, type), &t->met[type],
                               view->input_of[edges->children[offsets[0]]] - view->input_ranges[type].begin, at);
        at += baseline_width(t, type);
        for (uint32_t step = t->first_count; step < t->step_count; step++)
            if (baseline_parent_type(t, step) == type) at += baseline_write_means(t, first, step, node, at);
        WEIR_ASSERT(at == begin + baseline_step_width(t, first));
    }
}

/* The inputs of all that these targets' trees have met. */
static weir_err baseline_read_block(baseline_table *t, const weir_target *targets, uint32_t count) {
    weir_err err = weir_sample(t->sampler, targets, count, t->block);
    if (err) return err;
    weir_block_inputs(t->sampler, t->block, true);
    const weir_block_view *view = weir_block_look(t->block);
    for (uint32_t step = 0; !err && step < t->step_count; step++)
        err = baseline_read_degrees(t, step);
    for (uint32_t type = 0; !err && type < view->types; type++) {
        baseline_inputs *met = &t->met[type];
        const weir_block_range range = view->input_ranges[type];
        err = baseline_reserve(baseline_of_type(t, type), range.end - range.begin, met);
        if (!err && range.begin < range.end)
            err = weir_inputs_block(t->inputs, view, type, NULL, 0, met->numbers, met->slots);
    }
    return err;
}

/* The rows of targets alone, without a block. */
static weir_err baseline_write_alone(baseline_table *t, const weir_target *targets, uint32_t count, float *rows) {
    const uint32_t type = weir_nn_target_type(t->trained->shape);
    const weir_nn_inputs *inputs = baseline_of_type(t, type);
    uint64_t vertices[BASELINE_AT_ONCE], events[BASELINE_AT_ONCE];
    int64_t before_us[BASELINE_AT_ONCE];
    WEIR_ASSERT(count <= BASELINE_AT_ONCE);
    for (uint32_t i = 0; i < count; i++) {
        vertices[i] = (uint64_t)targets[i].vertex;
        before_us[i] = targets[i].before_us;
        events[i] = targets[i].event;
    }
    const weir_sample_vertices of = {
        .vertices = vertices, .before_us = before_us, .events = events, .count = count, .type = (uint16_t)type};
    weir_err err = weir_inputs_rows(t->inputs, &of, t->own.numbers, t->own.slots);
    for (uint32_t i = 0; !err && i < count; i++)
        baseline_write_row(inputs, &t->own, i, rows + i * t->columns);
    return err;
}

/* What targets say by themselves, and behind it what stands around them. */
static weir_err baseline_write_block(baseline_table *t, const weir_target *targets, uint32_t count, float *rows) {
    const uint32_t type = weir_nn_target_type(t->trained->shape);
    size_t column = baseline_width(t, type);
    weir_err err = baseline_read_block(t, targets, count);
    if (err) return err;
    const weir_block_view *view = weir_block_look(t->block);
    for (uint32_t i = 0; i < count; i++)
        baseline_write_row(baseline_of_type(t, type), &t->met[type], view->input_of[i] - view->input_ranges[type].begin,
                           rows + i * t->columns);
    for (uint32_t step = 0; step < t->first_count; step++) {
        baseline_write_neighbors(t, step, column, rows);
        column += baseline_step_width(t, step);
    }
    WEIR_ASSERT(column == t->columns);
    return WEIR_OK;
}

static weir_err baseline_fill(baseline_table *t) {
    const weir_targets *targets = t->trained->targets;
    weir_err err = WEIR_OK;
    for (uint64_t begin = 0; !err && begin < targets->count; begin += BASELINE_AT_ONCE) {
        const weir_target *some = targets->targets + begin;
        uint64_t left = targets->count - begin;
        uint32_t count = left < BASELINE_AT_ONCE ? (uint32_t)left : BASELINE_AT_ONCE;
        float *rows = t->rows + begin * t->columns;
        for (size_t i = 0; i < count * t->columns; i++)
            rows[i] = NAN;
        err = t->step_count ? baseline_write_block(t, some, count, rows) : baseline_write_alone(t, some, count, rows);
    }
    return err;
}

/* --- the table ---------------------------------------------------------------------------------------------------- */

static weir_err baseline_open_sampler(baseline_table *t) {
    const weir_trained *trained = t->trained;
    const weir_sample_opts opts = {.steps = t->steps,
                                   .step_count = t->step_count,
                                   .targets_max = BASELINE_AT_ONCE,
                                   .seed = trained->opts.sample_seed,
                                   .window = weir_nn_window(trained->shape),
                                   .own_rows = weir_aggregates_of_pairs(weir_snapshot_schema(trained->opts.snapshot),
                                                                        weir_nn_target_type(trained->shape)) != NULL};
    weir_err err = weir_sampler_open(&opts, t->source, &t->sampler);
    return err ? err : weir_block_open(t->sampler, &t->block);
}

/* The steps of hop 1, and of hop 2 if it is wanted. */
static void baseline_choose_steps(baseline_table *t, bool second) {
    uint32_t count;
    const weir_sample_step *steps = weir_nn_steps(t->trained->shape, &count);
    t->step_count = t->first_count = 0;
    t->columns = baseline_width(t, weir_nn_target_type(t->trained->shape));
    for (uint32_t i = 0; i < count && steps[i].hop <= (second ? 2 : 1); i++) {
        t->steps[t->step_count] = steps[i];
        t->steps[t->step_count++].strategy = WEIR_SAMPLE_RECENT;
        t->first_count += steps[i].hop == 1;
    }
    for (uint32_t first = 0; first < t->first_count; first++)
        t->columns += baseline_step_width(t, first);
}

static bool baseline_fits(const baseline_table *t) {
    return t->trained->targets->count <= BASELINE_BYTES_MAX / (t->columns * sizeof *t->rows);
}

/* The second hop is left out where rows, or a block at worst, would become too large. */
static weir_err baseline_open_steps(baseline_table *t) {
    baseline_choose_steps(t, true);
    weir_err err = WEIR_OK;
    bool fits = baseline_fits(t);
    if (fits && t->step_count) err = baseline_open_sampler(t);
    if (fits && !weir_err_is(err, WEIR_ELIMIT)) return err;
    weir_sampler_close(t->sampler);
    t->sampler = NULL;
    baseline_choose_steps(t, false);
    return t->step_count ? baseline_open_sampler(t) : WEIR_OK;
}

static weir_err baseline_open(baseline_table *t, const weir_trained *trained, weir_train_baseline which) {
    const weir_nn_shape *shape = trained->shape;
    const uint32_t type = weir_nn_target_type(shape);
    t->trained = trained;
    t->columns = baseline_width(t, type);
    weir_err err = weir_sample_over_snapshot(trained->opts.snapshot, &t->source);
    if (!err && which == WEIR_TRAIN_GRAPH_TREES) err = baseline_open_steps(t);
    if (err) return err;
    if (!t->columns)
        return WEIR_ERR(WEIR_EUNAVAILABLE, "'%s' has no feature and no aggregate that trees could learn from",
                        weir_nn_vertex(shape, type)->name);
    if (!baseline_fits(t))
        return WEIR_ERR(WEIR_ELIMIT, "baselines of %llu targets need more than 4 GiB; omit them by --no-baselines",
                        (unsigned long long)trained->targets->count);
    t->met = weir_calloc(weir_nn_types(shape), sizeof *t->met);
    t->rows = weir_calloc(trained->targets->count, t->columns * sizeof *t->rows);
    t->scores = weir_calloc(trained->targets->count - trained->targets->ends[WEIR_TARGETS_TRAIN], sizeof *t->scores);
    t->sums = weir_calloc(t->columns + 1, sizeof *t->sums);
    if (!t->met || !t->rows || !t->scores || !t->sums) return WEIR_NOMEM(BASELINE_NO_MEMORY);
    err = baseline_reserve(weir_nn_vertex(shape, type), BASELINE_AT_ONCE, &t->own);
    if (!err) err = weir_inputs_open(shape, weir_snapshot_schema(trained->opts.snapshot), t->source, &t->inputs);
    return err ? err : baseline_fill(t);
}

static void baseline_close(baseline_table *t) {
    weir_inputs_close(t->inputs);
    weir_block_close(t->block);
    weir_sampler_close(t->sampler);
    weir_sample_source_close(t->source);
    for (uint32_t type = 0; t->met && type < weir_nn_types(t->trained->shape); type++) {
        weir_free(t->met[type].numbers);
        weir_free(t->met[type].slots);
    }
    for (uint32_t step = 0; step < WEIR_SAMPLE_STEPS_MAX; step++)
        weir_free(t->degrees[step].of);
    weir_free(t->met);
    weir_free(t->sums);
    weir_free(t->own.numbers);
    weir_free(t->own.slots);
    weir_free(t->rows);
    weir_free(t->scores);
    weir_free(t);
}

/* --- trees -------------------------------------------------------------------------------------------------------- */

static weir_boost_rows baseline_part(const baseline_table *t, const uint8_t *labels, weir_targets_part part) {
    const weir_targets *targets = t->trained->targets;
    uint64_t begin = weir_targets_begin(targets, part);
    return (weir_boost_rows){t->rows + begin * t->columns, labels + begin, targets->ends[part] - begin, t->columns};
}

/* Scores one part and measures it: the trees alone, and with the network. Validation comes first: by it the log odds of
 * both are calibrated, so that their mean does not depend on how sure either of them is. */
static weir_err baseline_measure_trees(baseline_table *t, const weir_boost *boost, const uint8_t *labels,
                                       weir_targets_part part, weir_train_trees *treesp) {
    weir_boost_rows rows = baseline_part(t, labels, part);
    rows.labels = NULL;
    const weir_trained *trained = t->trained;
    const weir_targets *targets = trained->targets;
    const double *network = weir_training_scores(trained, part);
    const weir_calibration of_network = trained->calibration;
    double *scores = t->scores + (weir_targets_begin(targets, part) - targets->ends[WEIR_TARGETS_TRAIN]);
    double *both = weir_calloc(rows.count, sizeof *both);
    const weir_scored scored = {scores, labels + weir_targets_begin(targets, part), rows.count},
                      scored_both = {both, scored.labels, rows.count};
    weir_train_metrics *alone = &treesp->metrics[part], *with = &treesp->with_network[part];
    weir_err err = both ? weir_boost_score(boost, &rows, scores) : WEIR_NOMEM(BASELINE_NO_MEMORY);
    if (!err && part == WEIR_TARGETS_VALIDATION) err = weir_calibration_fit(&scored, &t->calibration);
    for (size_t i = 0; !err && i < rows.count; i++)
        both[i] = (of_network.slope * network[i] + of_network.offset + t->calibration.slope * scores[i] +
                   t->calibration.offset) /
                  2;
    if (!err) err = weir_training_measure(trained, scores, part, alone);
    if (!err) err = weir_eval_average_precision_interval(&scored, trained->opts.seed, &alone->interval);
    if (!err) err = weir_training_measure(trained, both, part, with);
    if (!err) err = weir_eval_average_precision_interval(&scored_both, trained->opts.seed, &with->interval);
    weir_free(both);
    return err;
}

static weir_err baseline_learn_trees(baseline_table *t, weir_train_trees *treesp) {
    const weir_targets *targets = t->trained->targets;
    weir_boost_opts opts = weir_boost_defaults();
    weir_boost *boost = NULL;
    uint8_t *labels = weir_calloc(targets->count, sizeof *labels);
    if (!labels) return WEIR_NOMEM(BASELINE_NO_MEMORY);
    for (uint64_t i = 0; i < targets->count; i++)
        labels[i] = targets->classes_of[i] != 0;
    const weir_boost_rows train = baseline_part(t, labels, WEIR_TARGETS_TRAIN);
    const weir_boost_rows validation = baseline_part(t, labels, WEIR_TARGETS_VALIDATION);
    opts.seed = t->trained->opts.seed;
    weir_err err = weir_boost_learn(&opts, &train, &validation, &boost);
    if (!err) err = baseline_measure_trees(t, boost, labels, WEIR_TARGETS_VALIDATION, treesp);
    if (!err) err = baseline_measure_trees(t, boost, labels, WEIR_TARGETS_TEST, treesp);
    if (!err) treesp->rounds = weir_boost_rounds(boost);
    weir_boost_close(boost);
    weir_free(labels);
    return err;
}

weir_err weir_train_trees_learn(const weir_trained *trained, weir_train_baseline which, weir_train_trees *treesp,
                                double *scores) {
    *treesp = (weir_train_trees){0};
    if (weir_nn_outputs(trained->shape) != 1)
        return WEIR_ERR(WEIR_EUNAVAILABLE, "boosted trees answer yes-or-no questions only");
    if (trained->opts.part)
        return WEIR_ERR(WEIR_EUNAVAILABLE, "not learnt: one rank learns the trees, and has only its part; train once "
                                           "on the whole snapshot to compare");
    if (!weir_boost_available())
        return WEIR_ERR(WEIR_EUNAVAILABLE, "XGBoost was not there when this program was built, or is not there now; "
                                           "install libxgboost-dev, and build again if that was not enough");
    baseline_table *t = weir_calloc(1, sizeof *t);
    if (!t) return WEIR_NOMEM(BASELINE_NO_MEMORY);
    weir_err err = baseline_open(t, trained, which);
    if (!err) err = baseline_learn_trees(t, treesp);
    const weir_targets *targets = trained->targets;
    if (!err && scores)
        memcpy(scores, t->scores, (targets->count - targets->ends[WEIR_TARGETS_TRAIN]) * sizeof *scores);
    baseline_close(t);
    return err;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * baseline.c - the rows that boosted trees learn from: what a target says by itself, and that with the newest neighbour
 * of each first-hop relation beside it. Floats come from the code that feeds the network, so none sees more than it.
 *
 *   row     numbers, slots of the target
 *   graph   the same | per step of hop 1: edges (as log), numbers and slots of the newest neighbour; NaN: there is none
 */
#include <math.h>
#include <string.h>

#include <weir/inference/inputs/inputs.h>
#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/sample/sampler.h>
#include <weir/trainer/boost/boost.h>

#include "training_private.h"

#define BASELINE_NO_MEMORY "for the baselines; omit them by --no-baselines"
#define BASELINE_AT_ONCE   256u
#define BASELINE_BYTES_MAX ((uint64_t)1 << 32) /* of all rows; trees copy them once more */

typedef struct baseline_table {
    const weir_trained *trained;
    weir_sample_step steps[WEIR_SAMPLE_STEPS_MAX]; /* of hop 1 */
    uint32_t step_count;
    weir_sample_source *source;
    weir_sampler *sampler;
    weir_block *block;
    weir_inputs *inputs;
    weir_real *numbers; /* BASELINE_AT_ONCE x the widest type           */
    uint32_t *slots;    /* the same of categories                      */
    float *rows;        /* of all targets                              */
    size_t columns;
    double *scores; /* of targets behind the training part */
} baseline_table;

/* The type that a step leads to. */
static uint32_t baseline_step_type(const baseline_table *t, uint32_t step) {
    const weir_schema *schema = weir_snapshot_schema(t->trained->opts.snapshot);
    const weir_schema_relation *r = weir_schema_relation_at(schema, t->steps[step].relation);
    return t->steps[step].direction == WEIR_OUT ? r->to : r->from;
}

/* Without the vertex itself: no tree learns from the number that stands for one. */
static uint32_t baseline_categories(const weir_nn_inputs *inputs) {
    return inputs->category_count - (inputs->known_count > 0);
}

/* Columns of a vertex of the type. */
static size_t baseline_width(const baseline_table *t, uint32_t type) {
    const weir_nn_inputs *inputs = weir_nn_vertex(t->trained->shape, type);
    return inputs->width + baseline_categories(inputs);
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

/* Encodes vertices of one type into columns [column, …) of their targets' rows. targets[i] is an index below
 * BASELINE_AT_ONCE. */
typedef struct baseline_placing {
    uint32_t type, count;
    size_t column;
    uint64_t vertices[BASELINE_AT_ONCE];
    int64_t before_us[BASELINE_AT_ONCE];
    uint64_t events[BASELINE_AT_ONCE];
    uint32_t targets[BASELINE_AT_ONCE];
} baseline_placing;

static weir_err baseline_place(baseline_table *t, const baseline_placing *p, float *rows) {
    const weir_nn_inputs *inputs = weir_nn_vertex(t->trained->shape, p->type);
    WEIR_ASSERT(p->count <= BASELINE_AT_ONCE && p->column + baseline_width(t, p->type) <= t->columns);
    const weir_sample_vertices of = {.vertices = p->vertices,
                                     .before_us = p->before_us,
                                     .events = p->events,
                                     .count = p->count,
                                     .type = (uint16_t)p->type};
    weir_err err = weir_inputs_rows(t->inputs, &of, t->numbers, t->slots);
    for (uint32_t i = 0; !err && i < p->count; i++) {
        float *at = rows + p->targets[i] * t->columns + p->column;
        for (uint32_t c = 0; c < inputs->width; c++)
            *at++ = (float)t->numbers[(size_t)i * inputs->width + c];
        for (uint32_t c = 0; c < baseline_categories(inputs); c++)
            *at++ = (float)t->slots[(size_t)i * inputs->category_count + c];
    }
    return err;
}

/* How many neighbours a target has along the step, and the newest of them: the first edge of a parent. */
static weir_err baseline_place_neighbors(baseline_table *t, uint32_t step, size_t column, baseline_placing *p,
                                         float *rows) {
    const weir_block_view *view = weir_block_look(t->block);
    const weir_block_edges *edges = &view->edges[step];
    WEIR_ASSERT(edges->parent_end - edges->parent_begin <= BASELINE_AT_ONCE);
    p->type = baseline_step_type(t, step);
    p->column = column + 1;
    p->count = 0;
    for (uint32_t node = edges->parent_begin; node < edges->parent_end; node++) {
        uint32_t begin = edges->offsets[node - edges->parent_begin];
        uint32_t end = edges->offsets[node - edges->parent_begin + 1], target = view->groups[node];
        rows[target * t->columns + column] = log1pf((float)(end - begin));
        if (begin == end) continue;
        p->vertices[p->count] = view->vertices[edges->children[begin]];
        p->before_us[p->count] = view->before_us[target];
        p->events[p->count] = WEIR_SAMPLE_NO_TARGET;
        p->targets[p->count++] = target;
    }
    return baseline_place(t, p, rows);
}

static weir_err baseline_fill(baseline_table *t) {
    const weir_targets *targets = t->trained->targets;
    baseline_placing *p = weir_calloc(1, sizeof *p);
    weir_err err = p ? WEIR_OK : WEIR_NOMEM(BASELINE_NO_MEMORY);
    for (uint64_t begin = 0; !err && begin < targets->count; begin += BASELINE_AT_ONCE) {
        const weir_target *some = targets->targets + begin;
        uint64_t left = targets->count - begin;
        uint32_t count = left < BASELINE_AT_ONCE ? (uint32_t)left : BASELINE_AT_ONCE;
        float *rows = t->rows + begin * t->columns;
        size_t column = baseline_width(t, weir_nn_target_type(t->trained->shape));
        for (size_t i = 0; i < count * t->columns; i++)
            rows[i] = NAN;
        *p = (baseline_placing){.type = weir_nn_target_type(t->trained->shape), .count = count};
        for (uint32_t i = 0; i < count; i++) {
            p->vertices[i] = (uint64_t)some[i].vertex;
            p->before_us[i] = some[i].before_us;
            p->events[i] = some[i].event;
            p->targets[i] = i;
        }
        err = baseline_place(t, p, rows);
        if (!err && t->step_count) err = weir_sample(t->sampler, some, count, t->block);
        for (uint32_t step = 0; !err && step < t->step_count; step++) {
            err = baseline_place_neighbors(t, step, column, p, rows);
            column += 1 + baseline_width(t, baseline_step_type(t, step));
        }
    }
    weir_free(p);
    return err;
}

/* --- the table ---------------------------------------------------------------------------------------------------- */

static weir_err baseline_open_sampler(baseline_table *t) {
    const weir_trained *trained = t->trained;
    const weir_sample_opts opts = {.steps = t->steps,
                                   .step_count = t->step_count,
                                   .targets_max = BASELINE_AT_ONCE,
                                   .seed = trained->opts.sample_seed,
                                   .window = weir_nn_window(trained->shape)};
    weir_err err = weir_sampler_open(&opts, t->source, &t->sampler);
    return err ? err : weir_block_open(t->sampler, &t->block);
}

static weir_err baseline_open(baseline_table *t, const weir_trained *trained, weir_train_baseline which) {
    const weir_nn_shape *shape = trained->shape;
    uint32_t type = weir_nn_target_type(shape), count;
    const weir_sample_step *steps = weir_nn_steps(shape, &count);
    size_t numbers = 1, slots = 1; /* of the widest type */
    t->trained = trained;
    t->columns = baseline_width(t, type);
    for (uint32_t i = 0; which == WEIR_TRAIN_GRAPH_TREES && i < count; i++) {
        if (steps[i].hop != 1) continue;
        t->steps[t->step_count] = steps[i];
        t->steps[t->step_count].strategy = WEIR_SAMPLE_RECENT;
        t->columns += 1 + baseline_width(t, baseline_step_type(t, t->step_count));
        t->step_count++;
    }
    if (!t->columns)
        return WEIR_ERR(WEIR_EUNAVAILABLE, "'%s' has no feature and no aggregate that trees could learn from",
                        weir_nn_vertex(shape, type)->name);
    if (trained->targets->count > BASELINE_BYTES_MAX / (t->columns * sizeof *t->rows))
        return WEIR_ERR(WEIR_ELIMIT, "baselines of %llu targets need more than 4 GiB; omit them by --no-baselines",
                        (unsigned long long)trained->targets->count);
    for (type = 0; type < weir_nn_types(shape); type++) {
        const weir_nn_inputs *inputs = weir_nn_vertex(shape, type);
        if (inputs->width > numbers) numbers = inputs->width;
        if (inputs->category_count > slots) slots = inputs->category_count;
    }
    t->numbers = weir_calloc(BASELINE_AT_ONCE * numbers, sizeof *t->numbers);
    t->slots = weir_calloc(BASELINE_AT_ONCE * slots, sizeof *t->slots);
    t->rows = weir_calloc(trained->targets->count, t->columns * sizeof *t->rows);
    t->scores = weir_calloc(trained->targets->count - trained->targets->ends[WEIR_TARGETS_TRAIN], sizeof *t->scores);
    if (!t->numbers || !t->slots || !t->rows || !t->scores) return WEIR_NOMEM(BASELINE_NO_MEMORY);
    weir_err err = weir_sample_over_snapshot(trained->opts.snapshot, &t->source);
    if (!err && t->step_count) err = baseline_open_sampler(t);
    if (!err) err = weir_inputs_open(shape, weir_snapshot_schema(trained->opts.snapshot), t->source, &t->inputs);
    return err ? err : baseline_fill(t);
}

static void baseline_close(baseline_table *t) {
    weir_inputs_close(t->inputs);
    weir_block_close(t->block);
    weir_sampler_close(t->sampler);
    weir_sample_source_close(t->source);
    weir_free(t->numbers);
    weir_free(t->slots);
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

static weir_err baseline_measure_trees(baseline_table *t, const weir_boost *boost, const uint8_t *labels,
                                       weir_targets_part part, weir_train_metrics *metricsp) {
    weir_boost_rows rows = baseline_part(t, labels, part);
    rows.labels = NULL;
    const weir_targets *targets = t->trained->targets;
    double *scores = t->scores + (weir_targets_begin(targets, part) - targets->ends[WEIR_TARGETS_TRAIN]);
    weir_err err = weir_boost_score(boost, &rows, scores);
    return err ? err : weir_training_measure(t->trained, scores, part, metricsp);
}

static weir_err baseline_learn_trees(baseline_table *t, weir_train_trees *treesp) {
    const weir_targets *targets = t->trained->targets;
    weir_train_metrics *metrics = treesp->metrics;
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
    if (!err)
        err = baseline_measure_trees(t, boost, labels, WEIR_TARGETS_VALIDATION, &metrics[WEIR_TARGETS_VALIDATION]);
    if (!err) err = baseline_measure_trees(t, boost, labels, WEIR_TARGETS_TEST, &metrics[WEIR_TARGETS_TEST]);
    if (!err) treesp->rounds = weir_boost_rounds(boost);
    weir_boost_close(boost);
    weir_free(labels);
    return err;
}

weir_err weir_train_trees_learn(const weir_trained *trained, weir_train_baseline which, weir_train_trees *treesp) {
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
    baseline_close(t);
    return err;
}

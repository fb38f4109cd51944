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

#include <weir/store/base/alloc.h>
#include <weir/store/sample/sampler.h>
#include <weir/trainer/boost/boost.h>

#include "inputs.h"
#include "training_private.h"

#define TARGETS_AT_ONCE 256u
#define ROW_BYTES_MAX   ((uint64_t)1 << 32) /* of all rows; trees copy them once more */

typedef struct table {
    const weir_trained *trained;
    weir_sample_step steps[WEIR_SAMPLE_STEPS_MAX]; /* of hop 1 */
    uint32_t step_count;
    weir_sample_source *source;
    weir_sampler *sampler;
    weir_block *block;
    weir_inputs *inputs;
    weir_real *numbers; /* TARGETS_AT_ONCE x the widest type           */
    uint32_t *slots;    /* the same of categories                      */
    float *rows;        /* of all targets                              */
    size_t columns;
    double *scores;
} table;

static const weir_nn_inputs *step_inputs(const table *t, uint32_t step) {
    const weir_schema *schema = weir_snapshot_schema(t->trained->opts.snapshot);
    const weir_schema_relation *r = weir_schema_relation_at(schema, t->steps[step].relation);
    return weir_nn_vertex(t->trained->shape, t->steps[step].direction == WEIR_OUT ? r->to : r->from);
}

static uint32_t step_type(const table *t, uint32_t step) {
    const weir_schema *schema = weir_snapshot_schema(t->trained->opts.snapshot);
    const weir_schema_relation *r = weir_schema_relation_at(schema, t->steps[step].relation);
    return t->steps[step].direction == WEIR_OUT ? r->to : r->from;
}

static size_t width_of(const weir_nn_inputs *inputs) {
    return inputs->width + inputs->category_count;
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

/* Encodes vertices of one type into columns [column, …) of their targets' rows. targets[i] is an index below
 * TARGETS_AT_ONCE. */
typedef struct placing {
    uint32_t type, count;
    size_t column;
    uint64_t vertices[TARGETS_AT_ONCE];
    int64_t before_us[TARGETS_AT_ONCE];
    uint32_t targets[TARGETS_AT_ONCE];
} placing;

static void place_row(const table *t, const placing *p, uint32_t i, float *row) {
    const weir_nn_inputs *inputs = weir_nn_vertex(t->trained->shape, p->type);
    float *at = row + p->column;
    for (uint32_t c = 0; c < inputs->width; c++)
        *at++ = (float)t->numbers[(size_t)i * inputs->width + c];
    for (uint32_t c = 0; c < inputs->category_count; c++)
        *at++ = (float)t->slots[(size_t)i * inputs->category_count + c];
}

static weir_err place(table *t, const placing *p, float *rows) {
    weir_err err = weir_inputs_rows(t->inputs, p->type, p->vertices, p->before_us, p->count, t->numbers, t->slots);
    for (uint32_t i = 0; !err && i < p->count; i++)
        place_row(t, p, i, rows + p->targets[i] * t->columns);
    return err;
}

static weir_err place_targets(table *t, const weir_target *targets, uint32_t count, placing *p, float *rows) {
    p->type = weir_nn_target_type(t->trained->shape);
    p->column = 0;
    p->count = count;
    for (uint32_t i = 0; i < count; i++) {
        p->vertices[i] = (uint64_t)targets[i].vertex;
        p->before_us[i] = targets[i].before_us;
        p->targets[i] = i;
    }
    return place(t, p, rows);
}

/* The first edge of a parent is its newest. */
static weir_err place_neighbors(table *t, uint32_t step, size_t column, placing *p, float *rows) {
    const weir_block_view *view = weir_block_look(t->block);
    const weir_block_edges *edges = &view->edges[step];
    p->type = step_type(t, step);
    p->column = column + 1;
    p->count = 0;
    for (uint32_t node = edges->parent_begin; node < edges->parent_end; node++) {
        uint32_t begin = edges->offsets[node - edges->parent_begin];
        uint32_t end = edges->offsets[node - edges->parent_begin + 1], target = view->groups[node];
        rows[target * t->columns + column] = log1pf((float)(end - begin));
        if (begin == end) continue;
        p->vertices[p->count] = view->vertices[edges->children[begin]];
        p->before_us[p->count] = view->before_us[target];
        p->targets[p->count++] = target;
    }
    return place(t, p, rows);
}

static weir_err fill_some(table *t, const weir_target *targets, uint32_t count, placing *p, float *rows) {
    size_t column = width_of(weir_nn_vertex(t->trained->shape, weir_nn_target_type(t->trained->shape)));
    for (size_t i = 0; i < count * t->columns; i++)
        rows[i] = NAN;
    weir_err err = place_targets(t, targets, count, p, rows);
    if (!err && t->step_count) err = weir_sample(t->sampler, targets, count, t->block);
    for (uint32_t step = 0; !err && step < t->step_count; step++) {
        err = place_neighbors(t, step, column, p, rows);
        column += 1 + width_of(step_inputs(t, step));
    }
    return err;
}

static weir_err fill(table *t) {
    const weir_targets *targets = t->trained->targets;
    placing *p = weir_calloc(1, sizeof *p);
    weir_err err = p ? WEIR_OK : WEIR_NOMEM("for the baselines; leave them out by --no-baselines");
    for (uint64_t begin = 0; !err && begin < targets->count; begin += TARGETS_AT_ONCE) {
        uint64_t left = targets->count - begin;
        uint32_t count = left < TARGETS_AT_ONCE ? (uint32_t)left : TARGETS_AT_ONCE;
        err = fill_some(t, targets->targets + begin, count, p, t->rows + begin * t->columns);
    }
    weir_free(p);
    return err;
}

/* --- the table ---------------------------------------------------------------------------------------------------- */

static void take_steps(table *t) {
    uint32_t count;
    const weir_sample_step *steps = weir_nn_steps(t->trained->shape, &count);
    for (uint32_t i = 0; i < count; i++) {
        if (steps[i].hop != 1) continue;
        t->steps[t->step_count] = steps[i];
        t->steps[t->step_count++].strategy = WEIR_SAMPLE_RECENT;
    }
}

static weir_err sampler_open(table *t) {
    const weir_trained *trained = t->trained;
    const weir_sample_opts opts = {.steps = t->steps,
                                   .step_count = t->step_count,
                                   .targets_max = TARGETS_AT_ONCE,
                                   .seed = trained->opts.sample_seed,
                                   .window = weir_nn_window(trained->shape)};
    weir_err err = weir_sample_over_snapshot(trained->opts.snapshot, &t->source);
    if (!err) err = weir_sampler_open(&opts, t->source, &t->sampler);
    return err ? err : weir_block_open(t->sampler, &t->block);
}

static weir_err arrays_open(table *t) {
    const weir_nn_shape *shape = t->trained->shape;
    size_t numbers = 1, slots = 1;
    for (uint32_t type = 0; type < weir_nn_types(shape); type++) {
        const weir_nn_inputs *inputs = weir_nn_vertex(shape, type);
        if (inputs->width > numbers) numbers = inputs->width;
        if (inputs->category_count > slots) slots = inputs->category_count;
    }
    if (t->trained->targets->count > ROW_BYTES_MAX / (t->columns * sizeof *t->rows))
        return WEIR_ERR(WEIR_ELIMIT, "baselines of %llu targets need more than 4 GiB; leave them out by --no-baselines",
                        (unsigned long long)t->trained->targets->count);
    t->numbers = weir_calloc(TARGETS_AT_ONCE * numbers, sizeof *t->numbers);
    t->slots = weir_calloc(TARGETS_AT_ONCE * slots, sizeof *t->slots);
    t->rows = weir_calloc(t->trained->targets->count, t->columns * sizeof *t->rows);
    t->scores = weir_calloc(t->trained->targets->count, sizeof *t->scores);
    return t->numbers && t->slots && t->rows && t->scores
               ? WEIR_OK
               : WEIR_NOMEM("for the baselines; leave them out by --no-baselines");
}

static weir_err table_open(table *t, const weir_trained *trained, weir_train_baseline which) {
    t->trained = trained;
    t->columns = width_of(weir_nn_vertex(trained->shape, weir_nn_target_type(trained->shape)));
    if (which == WEIR_TRAIN_GRAPH_TREES) take_steps(t);
    for (uint32_t step = 0; step < t->step_count; step++)
        t->columns += 1 + width_of(step_inputs(t, step));
    if (!t->columns)
        return WEIR_ERR(WEIR_EUNAVAILABLE, "'%s' has no feature and no aggregate that trees could learn from",
                        weir_nn_vertex(trained->shape, weir_nn_target_type(trained->shape))->name);
    weir_err err = t->step_count ? sampler_open(t) : WEIR_OK;
    if (!err) err = weir_inputs_open(trained->shape, trained->opts.snapshot, &t->inputs);
    if (!err) err = arrays_open(t);
    return err ? err : fill(t);
}

static void table_close(table *t) {
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

static weir_boost_rows part_rows(const table *t, const uint8_t *labels, weir_targets_part part) {
    const weir_targets *targets = t->trained->targets;
    uint64_t begin = weir_targets_begin(targets, part);
    return (weir_boost_rows){t->rows + begin * t->columns, labels + begin, targets->ends[part] - begin, t->columns};
}

static weir_err learn(const table *t, const uint8_t *labels, weir_boost **boostp) {
    const weir_boost_rows train = part_rows(t, labels, WEIR_TARGETS_TRAIN);
    const weir_boost_rows validation = part_rows(t, labels, WEIR_TARGETS_VALIDATION);
    weir_boost_opts opts = weir_boost_defaults();
    opts.seed = t->trained->opts.seed;
    return weir_boost_learn(&opts, &train, &validation, boostp);
}

static weir_err measure(table *t, const weir_boost *boost, const uint8_t *labels, weir_targets_part part,
                        weir_train_metrics *metricsp) {
    weir_boost_rows rows = part_rows(t, labels, part);
    rows.labels = NULL;
    weir_err err = weir_boost_score(boost, &rows, t->scores + weir_targets_begin(t->trained->targets, part));
    return err ? err : weir_training_measure(t->trained, t->scores, part, metricsp);
}

static weir_err trees(table *t, weir_train_trees *treesp) {
    const weir_targets *targets = t->trained->targets;
    weir_boost *boost = NULL;
    uint8_t *labels = weir_calloc(targets->count, sizeof *labels);
    weir_err err = labels ? WEIR_OK : WEIR_NOMEM("for the baselines; leave them out by --no-baselines");
    for (uint64_t i = 0; !err && i < targets->count; i++)
        labels[i] = targets->classes_of[i] != 0;
    if (!err) err = learn(t, labels, &boost);
    if (!err) err = measure(t, boost, labels, WEIR_TARGETS_VALIDATION, &treesp->metrics[WEIR_TARGETS_VALIDATION]);
    if (!err) err = measure(t, boost, labels, WEIR_TARGETS_TEST, &treesp->metrics[WEIR_TARGETS_TEST]);
    if (!err) treesp->rounds = weir_boost_rounds(boost);
    weir_boost_close(boost);
    weir_free(labels);
    return err;
}

weir_err weir_train_trees_learn(const weir_trained *trained, weir_train_baseline which, weir_train_trees *treesp) {
    *treesp = (weir_train_trees){0};
    if (weir_nn_outputs(trained->shape) != 1)
        return WEIR_ERR(WEIR_EUNAVAILABLE, "boosted trees answer yes-or-no questions only");
    if (!weir_boost_available())
        return WEIR_ERR(WEIR_EUNAVAILABLE, "this program was built without XGBoost; install libxgboost-dev and build "
                                           "again");
    table *t = weir_calloc(1, sizeof *t);
    if (!t) return WEIR_NOMEM("for the baselines; leave them out by --no-baselines");
    weir_err err = table_open(t, trained, which);
    if (!err) err = trees(t, treesp);
    table_close(t);
    return err;
}

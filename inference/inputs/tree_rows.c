/* SPDX-License-Identifier: Apache-2.0 */
/* tree_rows.c - targets of a snapshot, sampled and told in columns, some hundred at a time. */
#include <weir/inference/inputs/columns.h>
#include <weir/inference/inputs/inputs.h>
#include <weir/inference/inputs/tree_rows.h>
#include <weir/store/aggregate/aggregate.h>
#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/sample/sampler.h>

#define TREE_ROWS_NO_MEMORY "for what trees read of targets"

/* Inputs of a block's rows of one type; grows to the largest block. */
typedef struct tree_rows_inputs {
    weir_real *numbers;
    uint32_t *slots;
    size_t rows; /* that there is room for */
} tree_rows_inputs;

struct weir_tree_rows {
    const weir_nn_shape *shape;
    weir_sample_source *source;
    weir_sampler *sampler; /* NULL: of no hops */
    weir_block *block;
    weir_inputs *inputs;
    weir_tree_columns *columns;
    size_t width;
    tree_rows_inputs own;  /* of targets, of no hops: WEIR_TREE_ROWS_MAX    */
    tree_rows_inputs *met; /* of each type, of the block                    */
    const weir_real **numbers;
    const uint32_t **slots; /* both as the block's columns are written from */
};

static weir_err tree_rows_reserve(const weir_nn_inputs *inputs, size_t rows, tree_rows_inputs *to) {
    if (rows <= to->rows) return WEIR_OK;
    weir_real *numbers = weir_realloc_array(to->numbers, rows, (inputs->width + 1) * sizeof *numbers);
    if (numbers) to->numbers = numbers;
    uint32_t *slots = weir_realloc_array(to->slots, rows, (inputs->category_count + 1) * sizeof *slots);
    if (slots) to->slots = slots;
    if (!numbers || !slots) return WEIR_NOMEM(TREE_ROWS_NO_MEMORY);
    to->rows = rows;
    return WEIR_OK;
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

/* Of targets alone, without a block. */
static weir_err tree_rows_read_alone(weir_tree_rows *t, const weir_target *targets, uint32_t count, float *rows) {
    const uint32_t type = weir_nn_target_type(t->shape);
    const weir_nn_inputs *inputs = weir_nn_vertex(t->shape, type);
    uint64_t vertices[WEIR_TREE_ROWS_MAX], events[WEIR_TREE_ROWS_MAX];
    int64_t before_us[WEIR_TREE_ROWS_MAX];
    for (uint32_t i = 0; i < count; i++) {
        vertices[i] = (uint64_t)targets[i].vertex;
        before_us[i] = targets[i].before_us;
        events[i] = targets[i].event;
    }
    const weir_sample_vertices of = {
        .vertices = vertices, .before_us = before_us, .events = events, .count = count, .type = (uint16_t)type};
    weir_err err = weir_inputs_rows(t->inputs, &of, t->own.numbers, t->own.slots);
    for (uint32_t i = 0; !err && i < count; i++)
        weir_tree_columns_of_vertex(inputs, t->own.numbers + (size_t)i * inputs->width,
                                    t->own.slots + (size_t)i * inputs->category_count, rows + i * t->width);
    return err;
}

static weir_err tree_rows_read_block(weir_tree_rows *t, const weir_target *targets, uint32_t count, float *rows) {
    const uint32_t *const *edges = NULL;
    weir_err err = weir_sample(t->sampler, targets, count, t->block);
    if (err) return err;
    weir_block_inputs(t->sampler, t->block, true);
    const weir_block_view *view = weir_block_look(t->block);
    err = weir_tree_columns_edges(t->columns, view, &edges);
    for (uint32_t type = 0; !err && type < view->types; type++) {
        tree_rows_inputs *met = &t->met[type];
        const weir_block_range range = view->input_ranges[type];
        err = tree_rows_reserve(weir_nn_vertex(t->shape, type), range.end - range.begin, met);
        if (!err && range.begin < range.end)
            err = weir_inputs_block(t->inputs, view, type, NULL, 0, met->numbers, met->slots);
        t->numbers[type] = met->numbers;
        t->slots[type] = met->slots;
    }
    const weir_tree_columns_block block = {view, t->numbers, t->slots, edges};
    if (!err) weir_tree_columns_write(t->columns, &block, rows);
    return err;
}

weir_err weir_tree_rows_read(weir_tree_rows *t, const weir_target *targets, uint32_t count, float *rows) {
    WEIR_ASSERT(count <= WEIR_TREE_ROWS_MAX);
    return t->sampler ? tree_rows_read_block(t, targets, count, rows) : tree_rows_read_alone(t, targets, count, rows);
}

/* --- open and close ----------------------------------------------------------------------------------------------- */

static weir_err tree_rows_open_sampler(weir_tree_rows *t, const weir_schema *schema, uint32_t hops, uint64_t seed) {
    weir_sample_step steps[WEIR_SAMPLE_STEPS_MAX];
    const weir_sample_opts opts = {.steps = steps,
                                   .step_count = weir_tree_columns_steps(t->shape, hops, steps),
                                   .targets_max = WEIR_TREE_ROWS_MAX,
                                   .seed = seed,
                                   .window = weir_nn_window(t->shape),
                                   .own_rows = weir_aggregates_of_ends(schema, weir_nn_target_type(t->shape)) != NULL};
    if (opts.step_count == 0) return WEIR_OK;
    weir_err err = weir_sampler_open(&opts, t->source, &t->sampler);
    return err ? err : weir_block_open(t->sampler, &t->block);
}

weir_err weir_tree_rows_open(const weir_nn_shape *shape, const weir_snapshot *snapshot, uint32_t hops, uint64_t seed,
                             weir_tree_rows **rowsp) {
    const weir_schema *schema = weir_snapshot_schema(snapshot);
    *rowsp = NULL;
    weir_tree_rows *t = weir_calloc(1, sizeof *t);
    if (!t) return WEIR_NOMEM(TREE_ROWS_NO_MEMORY);
    t->shape = shape;
    t->width = weir_tree_columns_count(shape, hops);
    t->met = weir_calloc(weir_nn_types(shape), sizeof *t->met);
    t->numbers = weir_calloc(weir_nn_types(shape), sizeof *t->numbers);
    t->slots = weir_calloc(weir_nn_types(shape), sizeof *t->slots);
    weir_err err = t->met && t->numbers && t->slots ? WEIR_OK : WEIR_NOMEM(TREE_ROWS_NO_MEMORY);
    if (!err) err = weir_sample_over_snapshot(snapshot, &t->source);
    if (!err) err = weir_inputs_open(shape, schema, t->source, &t->inputs);
    if (!err) err = weir_tree_columns_open(shape, hops, t->source, &t->columns);
    if (!err) err = tree_rows_reserve(weir_nn_vertex(shape, weir_nn_target_type(shape)), WEIR_TREE_ROWS_MAX, &t->own);
    if (!err) err = tree_rows_open_sampler(t, schema, hops, seed);
    if (err) {
        weir_tree_rows_close(t);
        return err;
    }
    *rowsp = t;
    return WEIR_OK;
}

void weir_tree_rows_close(weir_tree_rows *t) {
    if (!t) return;
    weir_tree_columns_close(t->columns);
    weir_inputs_close(t->inputs);
    weir_block_close(t->block);
    weir_sampler_close(t->sampler);
    weir_sample_source_close(t->source);
    for (uint32_t type = 0; t->met && type < weir_nn_types(t->shape); type++) {
        weir_free(t->met[type].numbers);
        weir_free(t->met[type].slots);
    }
    weir_free(t->met);
    weir_free((void *)t->numbers);
    weir_free((void *)t->slots);
    weir_free(t->own.numbers);
    weir_free(t->own.slots);
    weir_free(t);
}

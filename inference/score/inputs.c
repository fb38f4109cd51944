/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inputs.c - the vertices and edges of a block as the network's floats.
 *
 * A vertex is what it was before its target's time; one of the target's type, what it was up to that time: a payment is
 * judged with the row it was put with. Numbers go through float, because that is what a snapshot kept of them.
 */
#include <string.h>

#include <weir/store/base/assert.h>

#include "score_private.h"

typedef struct score_inputs_type_read {
    const weir_score_reader *reader;
    const weir_nn_inputs *inputs;
    const weir_schema_feature *features;
    const weir_value_kind *kinds;
    size_t kind_count;
    uint32_t type;
    bool of_target; /* rows put at the time itself count */
} score_inputs_type_read;

static weir_err score_inputs_no_memory(const weir_arena *arena) {
    return WEIR_ARENA_ERR(arena, "the neighbourhood needs more memory than a batch may use; ask for fewer at once");
}

static void score_inputs_round_numbers(const weir_value_kind *kinds, size_t count, weir_value *values) {
    for (size_t i = 0; i < count; i++)
        if (kinds[i] == WEIR_VALUE_NUMBER) values[i].number = (double)(float)values[i].number;
}

/* --- vertices ----------------------------------------------------------------------------------------------------- */

/* The rows that an event puts, the last one first: each feature takes its newest value. */
static weir_err score_inputs_fill_from_event(const score_inputs_type_read *t, const weir_score_ask *ask,
                                             weir_value *values) {
    for (size_t i = ask->mutation_count; i--;) {
        const weir_mutation *m = &ask->mutations[i];
        if (m->kind != WEIR_PUT_VERTEX || m->vertex != ask->vertex || !m->row_length) continue;
        weir_err err = weir_row_check(t->kinds, t->kind_count, m->row, m->row_length);
        if (err) return err;
        weir_row_fill(t->kinds, t->kind_count, m->row, m->row_length, values);
    }
    return WEIR_OK;
}

/* values: all that is known of the vertex at that time; what is not known is missing. */
static weir_err score_inputs_read_values(const score_inputs_type_read *t, weir_vertex vertex, int64_t time_us,
                                         weir_value *values) {
    const weir_score_ask *event = t->of_target ? weir_score_overlay_find(t->reader->overlay, vertex, time_us) : NULL;
    int64_t before_us = t->of_target && time_us < INT64_MAX ? time_us + 1 : time_us;
    weir_row_view view = {0};
    weir_err err = WEIR_OK;
    WEIR_ASSERT(t->kind_count <= WEIR_ROW_FEATURES_MAX);
    memset(values, 0, t->kind_count * sizeof *values);
    weir_arena_reset(t->reader->rows);
    if (t->kind_count == 0) return WEIR_OK;
    if (event) err = score_inputs_fill_from_event(t, event, values);
    if (!err) err = weir_graph_features(t->reader->graph, vertex, before_us, t->reader->rows, &view);
    if (!err && view.row && view.vertex_type == t->type)
        weir_row_fill(t->kinds, t->kind_count, view.row, view.row_length, values);
    score_inputs_round_numbers(t->kinds, t->kind_count, values);
    return err;
}

/* The aggregates of a type's input rows, row after row; NULL: the network reads none. */
static weir_err score_inputs_read_aggregates(const score_inputs_type_read *t, const weir_block_view *view,
                                             weir_arena *arena, double **valuesp) {
    weir_block_range range = view->input_ranges[t->type];
    uint32_t rows = range.end - range.begin;
    uint32_t columns = weir_aggregates_count(weir_graph_schema(t->reader->graph), t->type);
    *valuesp = NULL;
    if (!t->inputs->aggregate_count || !rows) return WEIR_OK;
    weir_vertex *ids = weir_arena_alloc(arena, rows * sizeof *ids);
    int64_t *times = weir_arena_alloc(arena, rows * sizeof *times);
    double *values = weir_arena_alloc(arena, (size_t)rows * columns * sizeof *values);
    if (!ids || !times || !values) return score_inputs_no_memory(arena);
    for (uint32_t i = 0; i < rows; i++) {
        uint32_t node = view->input_nodes[range.begin + i];
        ids[i] = view->ids[node];
        times[i] = view->before_us[view->groups[node]];
    }
    *valuesp = values;
    return weir_aggregates_read(t->reader->aggregates, t->type, NULL, ids, times, rows, values);
}

static weir_err score_inputs_read_type(const score_inputs_type_read *t, const weir_block_view *view, weir_arena *arena,
                                       weir_score_inputs *inputs) {
    weir_block_range range = view->input_ranges[t->type];
    uint32_t rows = range.end - range.begin, width = t->inputs->width, categories = t->inputs->category_count;
    uint32_t columns = weir_aggregates_count(weir_graph_schema(t->reader->graph), t->type);
    weir_real *numbers = weir_arena_alloc(arena, (size_t)rows * width * sizeof *numbers);
    uint32_t *slots = weir_arena_alloc(arena, (size_t)rows * categories * sizeof *slots);
    weir_value values[WEIR_ROW_FEATURES_MAX];
    double *aggregates;
    inputs->numbers[t->type] = numbers;
    inputs->slots[t->type] = slots;
    if (!numbers || !slots) return score_inputs_no_memory(arena);
    if (width + categories == 0) return WEIR_OK;
    weir_err err = score_inputs_read_aggregates(t, view, arena, &aggregates);
    for (uint32_t i = 0; !err && i < rows; i++) {
        uint32_t node = view->input_nodes[range.begin + i];
        WEIR_ASSERT(node < view->nodes && view->groups[node] < view->targets);
        int64_t time_us = view->before_us[view->groups[node]];
        err = score_inputs_read_values(t, view->ids[node], time_us, values);
        if (err) break;
        weir_nn_encode(t->inputs, t->features, values, aggregates ? aggregates + (size_t)i * columns : NULL, time_us,
                       numbers + (size_t)i * width, slots + (size_t)i * categories);
    }
    return err;
}

/* --- edges -------------------------------------------------------------------------------------------------------- */

static weir_err score_inputs_read_step(const weir_score_reader *reader, const weir_nn_shape *shape,
                                       const weir_block_view *view, uint32_t step, weir_arena *arena,
                                       weir_score_inputs *inputs) {
    uint32_t steps, relation = weir_nn_steps(shape, &steps)[step].relation;
    const weir_nn_inputs *edge = weir_nn_edge(shape, relation);
    const weir_block_edges *e = &view->edges[step];
    const weir_schema_feature *features = weir_schema_relation_at(weir_graph_schema(reader->graph), relation)->features;
    size_t kind_count;
    const weir_value_kind *kinds = weir_graph_relation_kinds(reader->graph, relation, &kind_count);
    weir_value values[WEIR_ROW_FEATURES_MAX];
    WEIR_ASSERT(step < steps && kind_count <= WEIR_ROW_FEATURES_MAX);
    inputs->edges[step] = NULL;
    if (edge->width == 0) return WEIR_OK;
    weir_real *numbers = weir_arena_alloc(arena, (size_t)e->count * edge->width * sizeof *numbers);
    if (!numbers) return score_inputs_no_memory(arena);
    for (uint32_t i = 0; i < e->count; i++) {
        memset(values, 0, kind_count * sizeof values[0]);
        if (e->row_lengths[i]) {
            weir_err err = weir_row_check(kinds, kind_count, e->rows[i], e->row_lengths[i]);
            if (err) return err;
            weir_row_read(kinds, kind_count, e->rows[i], e->row_lengths[i], values);
            score_inputs_round_numbers(kinds, kind_count, values);
        }
        weir_nn_encode(edge, features, values, NULL, view->before_us[view->groups[e->parents[i]]],
                       numbers + (size_t)i * edge->width, NULL);
    }
    inputs->edges[step] = numbers;
    return WEIR_OK;
}

weir_err weir_score_inputs_read(const weir_score_reader *reader, const weir_nn_shape *shape,
                                const weir_block_view *view, weir_arena *arena, weir_score_inputs *inputs) {
    const weir_schema *schema = weir_graph_schema(reader->graph);
    weir_err err = WEIR_OK;
    for (uint32_t type = 0; !err && type < view->types; type++) {
        score_inputs_type_read t = {
            .reader = reader,
            .inputs = weir_nn_vertex(shape, type),
            .features = weir_schema_vertex_at(schema, type)->features,
            .type = type,
            .of_target = type == weir_nn_target_type(shape),
        };
        t.kinds = weir_graph_vertex_kinds(reader->graph, type, &t.kind_count);
        err = score_inputs_read_type(&t, view, arena, inputs);
    }
    for (uint32_t step = 0; !err && step < view->steps; step++)
        err = score_inputs_read_step(reader, shape, view, step, arena, inputs);
    return err;
}

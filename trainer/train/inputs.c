/* SPDX-License-Identifier: Apache-2.0 */
/* inputs.c - columns of a snapshot become values, and values floats by the code that serving uses. */
#include <math.h>
#include <string.h>

#include <weir/store/aggregate/aggregate.h>
#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>

#include "inputs.h"

#define INPUTS_AT_ONCE 256u

struct weir_inputs {
    const weir_nn_shape *shape;
    const weir_snapshot *snapshot;
    const weir_schema *schema;
    weir_sample_source *source;
    weir_aggregates *aggregates;
    double *values;         /* INPUTS_AT_ONCE x the most aggregates that the schema has of a type */
    const float **matrices; /* [type * WEIR_NN_MATRICES_MAX + matrix], of the snapshot */
};

/* Where a row's values go: to the encoder, which writes floats, or to the learner of scales. */
typedef struct inputs_sink {
    weir_nn_learner *learner; /* NULL: encode */
    weir_real *numbers;
    uint32_t *slots;
} inputs_sink;

static weir_value inputs_value_at(const weir_snapshot_column *column, uint64_t row) {
    weir_value value = {0};
    if (column->kind == WEIR_VALUE_NUMBER) {
        value.number = (double)column->numbers[row];
        value.present = !isnan(value.number);
    } else if (column->kind == WEIR_VALUE_TIME) {
        value.time_us = column->times[row];
        value.present = value.time_us != WEIR_SNAPSHOT_NEVER;
    } else if (column->codes[row] >= 0 && (uint64_t)column->codes[row] < column->texts) {
        const int64_t *at = &column->text_offsets[column->codes[row]];
        value.text = (const char *)column->text_bytes + at[0];
        value.text_length = (uint8_t)(at[1] - at[0]);
        value.present = true;
    }
    return value;
}

static void inputs_put_row(const weir_nn_inputs *inputs, const weir_schema_feature *features, const weir_value *values,
                           const double *aggregates, int64_t before_us, const inputs_sink *to) {
    if (to->learner) {
        weir_nn_learn(to->learner, inputs, values, aggregates, before_us);
    } else {
        weir_nn_encode(inputs, features, values, aggregates, before_us, to->numbers, to->slots);
    }
}

/* --- vertices --------------------------------------------------------------------------------------------------- */

static void inputs_vertex_row(const weir_inputs *in, uint32_t type, uint64_t vertex, int64_t before_us,
                              const double *aggregates, const inputs_sink *to) {
    const weir_snapshot_vertices *v = weir_snapshot_vertices_of(in->snapshot, type);
    const weir_nn_inputs *inputs = weir_nn_vertex(in->shape, type);
    /* As serving reads the store: before the time, of the targets' type up to it. */
    int64_t at_us = before_us + (type == weir_nn_target_type(in->shape) && before_us < INT64_MAX);
    weir_value values[WEIR_ROW_FEATURES_MAX];
    uint64_t row = 0, life;
    bool seen = weir_snapshot_span(&v->rows, vertex, at_us, &row);
    WEIR_ASSERT(!seen || v->rows.times[row] <= before_us); /* TRAIN-I1 */
    WEIR_ASSERT(v->column_count <= WEIR_ROW_FEATURES_MAX);
    for (uint32_t i = 0; seen && i < v->column_count; i++)
        values[i] = inputs_value_at(&v->columns[i], row);
    inputs_put_row(inputs, weir_schema_vertex_at(in->schema, type)->features, seen ? values : NULL, aggregates,
                   before_us, to);
    if (!to->numbers || !inputs->matrix_count) return;
    seen = weir_snapshot_span(&v->lives, vertex, at_us, &life);
    for (uint32_t i = 0; i < inputs->matrix_count; i++) {
        const weir_nn_matrix *matrix = &inputs->matrices[i];
        const float *rows = in->matrices[(size_t)type * WEIR_NN_MATRICES_MAX + i];
        weir_nn_encode_matrix(matrix, seen ? rows + vertex * matrix->columns : NULL, to->numbers);
    }
}

/* Begins to fetch what the rows of all are found by, and then the newest row of each, which is what most targets see:
 * the misses of many vertices overlap, where one after the other would wait for each. */
static void inputs_prefetch_rows(const weir_inputs *in, uint32_t type, const uint64_t *vertices, uint32_t count) {
    const weir_snapshot_vertices *v = weir_snapshot_vertices_of(in->snapshot, type);
    if (v->rows.count == 0) return;
    for (uint32_t i = 0; i < count; i++)
        __builtin_prefetch(&v->rows.indptr[vertices[i] + 1]);
    for (uint32_t i = 0; i < count; i++) {
        int64_t last = v->rows.indptr[vertices[i] + 1] - 1;
        if (last < 0 || last >= (int64_t)v->rows.count) continue;
        __builtin_prefetch(&v->rows.times[last]);
        __builtin_prefetch(&v->rows.until_us[last]);
        for (uint32_t c = 0; c < v->column_count; c++) {
            const weir_snapshot_column *column = &v->columns[c];
            if (column->numbers) __builtin_prefetch(&column->numbers[last]);
            if (column->codes) __builtin_prefetch(&column->codes[last]);
            if (column->times) __builtin_prefetch(&column->times[last]);
        }
    }
}

weir_err weir_inputs_check(const weir_snapshot *snapshot, uint32_t type, uint64_t vertex) {
    uint64_t count = weir_snapshot_vertices_of(snapshot, type)->count;
    if (vertex < count) return WEIR_OK;
    return WEIR_ERR(WEIR_ECORRUPT,
                    "the snapshot says that a neighbour is vertex %llu of type %u, of which there are only %llu; take "
                    "another copy",
                    (unsigned long long)vertex, type, (unsigned long long)count);
}

static weir_err inputs_vertex_rows(weir_inputs *in, uint32_t type, const uint64_t *vertices, const int64_t *before_us,
                                   uint32_t count, inputs_sink to) {
    WEIR_ASSERT(count <= INPUTS_AT_ONCE);
    const weir_nn_inputs *inputs = weir_nn_vertex(in->shape, type);
    weir_err err = WEIR_OK;
    for (uint32_t i = 0; !err && i < count; i++)
        err = weir_inputs_check(in->snapshot, type, vertices[i]);
    if (err) return err;
    inputs_prefetch_rows(in, type, vertices, count);
    /* What is read is the schema's, which may have more behind those of the shape (weir_nn_shape_fits). */
    size_t columns = weir_aggregates_count(in->schema, type);
    err = weir_aggregates_read(in->aggregates, type, vertices, NULL, before_us, count, in->values);
    for (uint32_t i = 0; !err && i < count; i++) {
        const double *aggregates = inputs->aggregate_count ? in->values + (size_t)i * columns : NULL;
        inputs_vertex_row(in, type, vertices[i], before_us[i], aggregates, &to);
        if (to.numbers) to.numbers += inputs->width;
        if (to.slots) to.slots += inputs->category_count;
    }
    return err;
}

weir_err weir_inputs_rows(weir_inputs *inputs, uint32_t type, const uint64_t *vertices, const int64_t *before_us,
                          uint32_t count, weir_real *numbers, uint32_t *slots) {
    const weir_nn_inputs *of = weir_nn_vertex(inputs->shape, type);
    weir_err err = WEIR_OK;
    for (uint32_t begin = 0; !err && begin < count; begin += INPUTS_AT_ONCE) {
        uint32_t part = count - begin < INPUTS_AT_ONCE ? count - begin : INPUTS_AT_ONCE;
        inputs_sink to = {NULL, numbers + (size_t)begin * of->width, slots + (size_t)begin * of->category_count};
        err = inputs_vertex_rows(inputs, type, vertices + begin, before_us + begin, part, to);
    }
    return err;
}

/* --- edges ------------------------------------------------------------------------------------------------------ */

static void inputs_edge_rows(const weir_inputs *in, const weir_block_view *view, uint32_t step, inputs_sink to) {
    uint32_t steps;
    WEIR_ASSERT(step < view->steps);
    const weir_sample_step *s = &weir_nn_steps(in->shape, &steps)[step];
    const weir_nn_inputs *inputs = weir_nn_edge(in->shape, s->relation);
    const weir_snapshot_edges *e = weir_snapshot_edges_of(in->snapshot, s->relation, s->direction);
    const weir_schema_feature *features = weir_schema_relation_at(in->schema, s->relation)->features;
    const weir_block_edges *edges = &view->edges[step];
    weir_value values[WEIR_ROW_FEATURES_MAX];
    WEIR_ASSERT(e->column_count <= WEIR_ROW_FEATURES_MAX);
    for (uint32_t i = 0; inputs->width && i < edges->count; i++) {
        for (uint32_t c = 0; c < e->column_count; c++)
            values[c] = inputs_value_at(&e->columns[c], edges->refs[i]);
        inputs_put_row(inputs, features, values, NULL, view->before_us[view->groups[edges->parents[i]]], &to);
        if (to.numbers) to.numbers += inputs->width;
    }
}

void weir_inputs_edges(const weir_inputs *inputs, const weir_block_view *view, uint32_t step, weir_real *numbers) {
    inputs_edge_rows(inputs, view, step, (inputs_sink){NULL, numbers, NULL});
}

/* --- learning --------------------------------------------------------------------------------------------------- */

weir_err weir_inputs_learn(weir_inputs *inputs, const weir_block_view *view, weir_nn_learner *learner) {
    const inputs_sink to = {learner, NULL, NULL};
    weir_err err = WEIR_OK;
    for (uint32_t type = 0; !err && type < view->types; type++) {
        weir_block_range range = view->input_ranges[type];
        for (uint32_t row = range.begin; !err && row < range.end; row++) {
            uint32_t node = view->input_nodes[row];
            err = inputs_vertex_rows(inputs, type, &view->vertices[node], &view->before_us[view->groups[node]], 1, to);
        }
    }
    for (uint32_t step = 0; !err && step < view->steps; step++)
        inputs_edge_rows(inputs, view, step, to);
    return err;
}

/* --- the handle ------------------------------------------------------------------------------------------------- */

/* Each matrix that the shape reads, in the snapshot. */
static weir_err inputs_find_matrices(weir_inputs *in) {
    uint32_t types = weir_nn_types(in->shape);
    in->matrices = weir_calloc((size_t)types * WEIR_NN_MATRICES_MAX + 1, sizeof *in->matrices);
    if (!in->matrices) return WEIR_NOMEM("for the inputs of a network");
    for (uint32_t type = 0; type < types; type++) {
        const weir_nn_inputs *inputs = weir_nn_vertex(in->shape, type);
        const weir_snapshot_vertices *v = weir_snapshot_vertices_of(in->snapshot, type);
        WEIR_ASSERT(inputs->matrix_count <= WEIR_NN_MATRICES_MAX);
        for (uint32_t i = 0; i < inputs->matrix_count; i++) {
            const weir_nn_matrix *matrix = &inputs->matrices[i];
            const float **rowsp = &in->matrices[(size_t)type * WEIR_NN_MATRICES_MAX + i];
            for (uint32_t e = 0; e < v->extra_count && !*rowsp; e++)
                if (v->extras[e].columns == matrix->columns && strcmp(v->extras[e].name, matrix->name) == 0)
                    *rowsp = v->extras[e].matrix;
            if (!*rowsp)
                return WEIR_ERR(WEIR_EVERSION, "the snapshot has no matrix '%s' of %u columns, which the network reads",
                                matrix->name, matrix->columns);
        }
    }
    return WEIR_OK;
}

weir_err weir_inputs_open(const weir_nn_shape *shape, const weir_snapshot *snapshot, weir_inputs **inputsp) {
    *inputsp = NULL;
    weir_inputs *in = weir_calloc(1, sizeof *in);
    if (!in) return WEIR_NOMEM("for the inputs of a network");
    *in = (weir_inputs){.shape = shape, .snapshot = snapshot, .schema = weir_snapshot_schema(snapshot)};
    uint32_t most = 0; /* aggregates of a type */
    for (uint32_t type = 0; type < weir_schema_vertex_count(in->schema); type++) {
        uint32_t count = weir_aggregates_count(in->schema, type);
        if (count > most) most = count;
    }
    in->values = weir_calloc((size_t)INPUTS_AT_ONCE * (most + 1), sizeof *in->values);
    weir_err err = in->values ? WEIR_OK : WEIR_NOMEM("for the inputs of a network");
    if (!err) err = inputs_find_matrices(in);
    if (!err) err = weir_sample_over_snapshot(snapshot, &in->source);
    if (!err) err = weir_aggregates_open(in->schema, in->source, &in->aggregates);
    if (err) {
        weir_inputs_close(in);
        return err;
    }
    *inputsp = in;
    return WEIR_OK;
}

void weir_inputs_close(weir_inputs *inputs) {
    if (!inputs) return;
    weir_aggregates_close(inputs->aggregates);
    weir_sample_source_close(inputs->source);
    weir_free(inputs->values);
    weir_free(inputs->matrices);
    weir_free(inputs);
}

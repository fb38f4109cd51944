/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inputs.c - values, aggregates and matrices of a source become floats, some hundred rows at a time: the source fetches
 * what they need side by side.
 */
#include <string.h>

#include <weir/inference/inputs/inputs.h>
#include <weir/store/aggregate/aggregate.h>
#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>

#define INPUTS_AT_ONCE   256u
#define INPUTS_NO_MEMORY "for the inputs of a network"
#define MATRIX_AHEAD     4u  /* rows of a matrix between the prefetch of one and its use */
#define LINE_FLOATS      16u /* of a cache line */

struct weir_inputs {
    const weir_nn_shape *shape;
    const weir_schema *schema;
    weir_sample_source *source;
    weir_aggregates *aggregates;
    /* Of the rows at hand. */
    weir_value *values; /* INPUTS_AT_ONCE x the most features that the schema has of a type or relation */
    double *aggregated; /* INPUTS_AT_ONCE x the most aggregates of a type */
    uint64_t vertices[INPUTS_AT_ONCE]; /* of a block */
    weir_vertex ids[INPUTS_AT_ONCE];
    int64_t before_us[INPUTS_AT_ONCE];
    uint64_t events[INPUTS_AT_ONCE];
    const float **matrices; /* [type * WEIR_NN_MATRICES_MAX + matrix], of the source */
};

/* Where rows go: to the encoder, which writes floats, or to the learner of scales. */
typedef struct inputs_sink {
    weir_nn_learner *learner; /* NULL: encode */
    weir_real *numbers;
    uint32_t *slots;
    const uint32_t *places; /* of each row among numbers and slots; NULL: one after the other */
} inputs_sink;

static void inputs_put(const weir_nn_inputs *inputs, const weir_schema_feature *features, const weir_value *values,
                       const double *aggregates, int64_t before_us, const inputs_sink *to, uint32_t row) {
    if (to->learner) {
        weir_nn_learn(to->learner, inputs, values, aggregates, before_us);
        return;
    }
    size_t place = to->places ? to->places[row] : row;
    weir_nn_encode(inputs, features, values, aggregates, before_us, to->numbers + place * inputs->width,
                   to->slots ? to->slots + place * inputs->category_count : NULL);
}

/* --- vertices ----------------------------------------------------------------------------------------------------- */

/* Rows lie anywhere, and each is some cache lines long. */
static void inputs_prefetch_row(const float *row, uint32_t columns) {
    for (uint32_t c = 0; c < columns; c += LINE_FLOATS)
        __builtin_prefetch(row + c);
}

static void inputs_put_matrices(weir_inputs *in, const weir_sample_vertices *of, const inputs_sink *to) {
    const weir_nn_inputs *inputs = weir_nn_vertex(in->shape, of->type);
    bool there[INPUTS_AT_ONCE];
    in->source->there(in->source, of, there);
    for (uint32_t i = 0; i < of->count; i++) {
        size_t place = to->places ? to->places[i] : i;
        uint32_t later = i + MATRIX_AHEAD;
        for (uint32_t m = 0; m < inputs->matrix_count; m++) {
            const weir_nn_matrix *matrix = &inputs->matrices[m];
            const float *rows = in->matrices[(size_t)of->type * WEIR_NN_MATRICES_MAX + m];
            if (later < of->count && there[later])
                inputs_prefetch_row(rows + of->vertices[later] * matrix->columns, matrix->columns);
            const float *row = there[i] ? rows + of->vertices[i] * matrix->columns : NULL;
            weir_nn_encode_matrix(matrix, row, to->numbers + place * inputs->width);
        }
    }
}

/* Which vertices they are themselves: the last slot of each. */
static weir_err inputs_put_own(weir_inputs *in, const weir_sample_vertices *of, const inputs_sink *to) {
    const weir_nn_inputs *inputs = weir_nn_vertex(in->shape, of->type);
    weir_target vertices[INPUTS_AT_ONCE];
    uint64_t ids[INPUTS_AT_ONCE];
    for (uint32_t i = 0; i < of->count; i++)
        vertices[i] = (weir_target){.vertex = in->source->wide ? of->ids[i] : of->vertices[i], .type = of->type};
    weir_err err = in->source->ids(in->source, vertices, of->count, ids);
    for (uint32_t i = 0; !err && i < of->count; i++) {
        size_t place = to->places ? to->places[i] : i;
        to->slots[(place + 1) * inputs->category_count - 1] = weir_nn_slot_of(inputs, ids[i]);
    }
    return err;
}

/* At most INPUTS_AT_ONCE vertices. */
static weir_err inputs_take(weir_inputs *in, const weir_sample_vertices *of, const inputs_sink *to) {
    const weir_nn_inputs *inputs = weir_nn_vertex(in->shape, of->type);
    const weir_schema_vertex *type = weir_schema_vertex_at(in->schema, of->type);
    /* What is read is the schema's, which may have more behind those of the shape. */
    size_t columns = weir_aggregates_count(in->schema, of->type);
    weir_err err = WEIR_OK;
    WEIR_ASSERT(of->targets == (of->type == weir_nn_target_type(in->shape))); // INPUTS-I1
    WEIR_ASSERT(of->count <= INPUTS_AT_ONCE && inputs->feature_count <= type->feature_count);
    if (inputs->aggregate_count) err = weir_aggregates_read(in->aggregates, of, in->aggregated);
    if (!err) err = in->source->features(in->source, of, in->values);
    for (uint32_t i = 0; !err && inputs->number_count + inputs->category_count > 0 && i < of->count; i++)
        inputs_put(inputs, type->features, in->values + (size_t)i * type->feature_count,
                   inputs->aggregate_count ? in->aggregated + (size_t)i * columns : NULL, of->before_us[i], to, i);
    if (!err && to->numbers && inputs->matrix_count) inputs_put_matrices(in, of, to);
    return !err && to->slots && inputs->known_count ? inputs_put_own(in, of, to) : err;
}

static weir_err inputs_take_rows(weir_inputs *in, const weir_sample_vertices *of, const inputs_sink *sink) {
    const weir_nn_inputs *inputs = weir_nn_vertex(in->shape, of->type);
    weir_err err = WEIR_OK;
    for (uint32_t begin = 0; !err && begin < of->count; begin += INPUTS_AT_ONCE) {
        weir_sample_vertices some = *of;
        inputs_sink to = *sink;
        some.count = of->count - begin < INPUTS_AT_ONCE ? of->count - begin : INPUTS_AT_ONCE;
        some.targets = of->type == weir_nn_target_type(in->shape);
        some.vertices = of->vertices ? of->vertices + begin : NULL;
        some.ids = of->ids ? of->ids + begin : NULL;
        some.before_us = of->before_us + begin;
        some.events = of->events ? of->events + begin : NULL;
        if (to.numbers) to.numbers += (size_t)begin * inputs->width;
        if (to.slots) to.slots += (size_t)begin * inputs->category_count;
        err = inputs_take(in, &some, &to);
    }
    return err;
}

weir_err weir_inputs_rows(weir_inputs *inputs, const weir_sample_vertices *of, weir_real *numbers, uint32_t *slots) {
    return inputs_take_rows(inputs, of, &(inputs_sink){.numbers = numbers, .slots = slots});
}

weir_err weir_inputs_spans(weir_inputs *inputs, const weir_sample_vertices *of, int64_t *since_us, int64_t *until_us) {
    weir_sample_vertices all = *of;
    WEIR_ASSERT(inputs->source->spans);
    all.targets = of->type == weir_nn_target_type(inputs->shape); // INPUTS-I1
    return inputs->source->spans(inputs->source, &all, since_us, until_us);
}

weir_err weir_inputs_learn_rows(weir_inputs *inputs, const weir_sample_vertices *of, weir_nn_learner *learner) {
    return inputs_take_rows(inputs, of, &(inputs_sink){.learner = learner});
}

/* rows: count of the type's rows, by their places; NULL: all. */
static weir_err inputs_take_block(weir_inputs *in, const weir_block_view *view, uint32_t type, const uint32_t *rows,
                                  uint32_t count, const inputs_sink *sink) {
    const weir_nn_inputs *inputs = weir_nn_vertex(in->shape, type);
    weir_block_range range = view->input_ranges[type];
    bool wide = in->source->wide;
    weir_sample_vertices of = {.vertices = wide ? NULL : in->vertices,
                               .ids = wide ? in->ids : NULL,
                               .before_us = in->before_us,
                               .events = in->events,
                               .type = (uint16_t)type,
                               .targets = type == weir_nn_target_type(in->shape)};
    weir_err err = WEIR_OK;
    if (!rows) count = range.end - range.begin;
    WEIR_ASSERT(count <= range.end - range.begin);
    for (uint32_t begin = 0; !err && begin < count; begin += of.count) {
        inputs_sink to = *sink;
        of.count = count - begin < INPUTS_AT_ONCE ? count - begin : INPUTS_AT_ONCE;
        for (uint32_t i = 0; i < of.count; i++) {
            uint32_t row = rows ? rows[begin + i] : begin + i;
            WEIR_ASSERT(row < range.end - range.begin);
            uint32_t node = view->input_nodes[range.begin + row];
            WEIR_ASSERT(node < view->nodes && view->groups[node] < view->targets);
            if (wide)
                in->ids[i] = view->ids[node];
            else
                in->vertices[i] = view->vertices[node];
            in->before_us[i] = view->before_us[view->groups[node]];
            in->events[i] = node < view->targets ? view->events[node] : WEIR_SAMPLE_NO_TARGET;
        }
        if (rows) to.places = rows + begin;
        if (!rows && to.numbers) to.numbers += (size_t)begin * inputs->width;
        if (!rows && to.slots) to.slots += (size_t)begin * inputs->category_count;
        err = inputs_take(in, &of, &to);
    }
    return err;
}

weir_err weir_inputs_block(weir_inputs *inputs, const weir_block_view *view, uint32_t type, const uint32_t *rows,
                           uint32_t count, weir_real *numbers, uint32_t *slots) {
    const weir_nn_inputs *of = weir_nn_vertex(inputs->shape, type);
    if (of->width + of->category_count == 0) return WEIR_OK;
    return inputs_take_block(inputs, view, type, rows, count, &(inputs_sink){.numbers = numbers, .slots = slots});
}

/* --- edges -------------------------------------------------------------------------------------------------------- */

static weir_err inputs_take_edges(weir_inputs *in, const weir_block_view *view, uint32_t step, uint32_t begin,
                                  uint32_t end, inputs_sink to) {
    uint32_t steps;
    const weir_sample_step *s = &weir_nn_steps(in->shape, &steps)[step];
    const weir_nn_inputs *inputs = weir_nn_edge(in->shape, s->relation);
    const weir_schema_relation *relation = weir_schema_relation_at(in->schema, s->relation);
    const weir_block_edges *edges = &view->edges[step];
    weir_err err = WEIR_OK;
    WEIR_ASSERT(step < steps && step < view->steps && inputs->feature_count <= relation->feature_count);
    WEIR_ASSERT(begin <= end && end <= edges->count);
    for (uint32_t count; !err && inputs->width && begin < end; begin += count) {
        count = end - begin < INPUTS_AT_ONCE ? end - begin : INPUTS_AT_ONCE;
        err = in->source->edge_features(in->source, s, edges, begin, count, in->values);
        for (uint32_t i = 0; !err && i < count; i++)
            inputs_put(inputs, relation->features, in->values + (size_t)i * relation->feature_count, NULL,
                       view->before_us[view->groups[edges->parents[begin + i]]], &to, i);
        if (to.numbers) to.numbers += (size_t)count * inputs->width;
    }
    return err;
}

weir_err weir_inputs_edges(weir_inputs *inputs, const weir_block_view *view, uint32_t step, uint32_t begin,
                           uint32_t end, weir_real *numbers) {
    return inputs_take_edges(inputs, view, step, begin, end, (inputs_sink){.numbers = numbers});
}

weir_err weir_inputs_learn_edges(weir_inputs *inputs, const weir_block_view *view, uint32_t step, uint32_t begin,
                                 uint32_t end, weir_nn_learner *learner) {
    return inputs_take_edges(inputs, view, step, begin, end, (inputs_sink){.learner = learner});
}

/* --- the handle ------------------------------------------------------------------------------------------------- */

static weir_err inputs_find_matrices(weir_inputs *in) {
    uint32_t types = weir_nn_types(in->shape);
    in->matrices = weir_calloc((size_t)types * WEIR_NN_MATRICES_MAX + 1, sizeof *in->matrices);
    if (!in->matrices) return WEIR_NOMEM(INPUTS_NO_MEMORY);
    for (uint32_t type = 0; type < types; type++) {
        const weir_nn_inputs *inputs = weir_nn_vertex(in->shape, type);
        WEIR_ASSERT(inputs->matrix_count <= WEIR_NN_MATRICES_MAX);
        for (uint32_t i = 0; i < inputs->matrix_count; i++) {
            const weir_nn_matrix *matrix = &inputs->matrices[i];
            const float *rows =
                in->source->matrix ? in->source->matrix(in->source, type, matrix->name, matrix->columns) : NULL;
            if (!rows)
                return WEIR_ERR(WEIR_EVERSION, "the graph has no matrix '%s' of %u columns, which the network reads",
                                matrix->name, matrix->columns);
            in->matrices[(size_t)type * WEIR_NN_MATRICES_MAX + i] = rows;
        }
    }
    return WEIR_OK;
}

weir_err weir_inputs_open(const weir_nn_shape *shape, const weir_schema *schema, weir_sample_source *source,
                          weir_inputs **inputsp) {
    uint32_t features = 1, aggregates = 1; /* the most of a type */
    *inputsp = NULL;
    WEIR_ASSERT(source->features && source->edge_features);
    weir_inputs *in = weir_calloc(1, sizeof *in);
    if (!in) return WEIR_NOMEM(INPUTS_NO_MEMORY);
    in->shape = shape;
    in->schema = schema;
    in->source = source;
    for (uint32_t type = 0; type < weir_schema_vertex_count(schema); type++) {
        uint32_t count = weir_schema_vertex_at(schema, type)->feature_count, of = weir_aggregates_count(schema, type);
        features = count > features ? count : features;
        aggregates = of > aggregates ? of : aggregates;
    }
    for (uint32_t relation = 0; relation < weir_schema_relation_count(schema); relation++) {
        uint32_t count = weir_schema_relation_at(schema, relation)->feature_count;
        features = count > features ? count : features;
    }
    in->values = weir_calloc((size_t)INPUTS_AT_ONCE * features, sizeof *in->values);
    in->aggregated = weir_calloc((size_t)INPUTS_AT_ONCE * aggregates, sizeof *in->aggregated);
    weir_err err = in->values && in->aggregated ? WEIR_OK : WEIR_NOMEM(INPUTS_NO_MEMORY);
    if (!err) err = inputs_find_matrices(in);
    if (!err) err = weir_aggregates_open(schema, source, &in->aggregates);
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
    weir_free(inputs->values);
    weir_free(inputs->aggregated);
    weir_free(inputs->matrices);
    weir_free(inputs);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shape_fits.c - whether rows stored under a schema are what a shape was made for, and a living graph has all it needs.
 *
 * Ids and indices must mean the same; what a schema has added at its ends is not looked at. How a message is mapped,
 * values added to a list, and how a number would be normalised today change nothing of what was learnt.
 */
#include <string.h>

#include "shape_private.h"

static weir_err shape_fits_differs(const char *what, const char *name) {
    return WEIR_ERR(
        WEIR_EVERSION,
        "the model was trained with %s '%s', which the schema lacks now or has in another place; train a model "
        "for this schema",
        what, name);
}

static weir_err shape_fits_check_features(const weir_nn_inputs *inputs, const weir_schema_feature *features,
                                          uint32_t count) {
    if (count < inputs->feature_count) return shape_fits_differs("the features of", inputs->name);
    for (uint32_t i = 0; i < inputs->number_count; i++) {
        const weir_nn_number *number = &inputs->numbers[i];
        if (number->kind == WEIR_NN_AGGREGATE) continue;
        const weir_schema_feature *f = &features[number->source];
        weir_schema_feature_kind kind = number->kind == WEIR_NN_AGE ? WEIR_SCHEMA_TIME : WEIR_SCHEMA_NUMBER;
        if (strcmp(f->name, number->name) != 0 || f->kind != kind) return shape_fits_differs("feature", number->name);
    }

    /* Slots by hash move when their number changes; a list of values only grows. */
    for (uint32_t i = 0; i < inputs->category_count; i++) {
        const weir_nn_category *category = &inputs->categories[i];
        if (category->feature == WEIR_SCHEMA_NONE) continue; /* what it is found by, no schema changes */
        const weir_schema_feature *f = &features[category->feature];
        bool same = strcmp(f->name, category->name) == 0 && f->kind == WEIR_SCHEMA_CATEGORY;
        uint32_t slots = same ? weir_schema_category_slots(f) : 0;
        if (!same || slots < category->slots || (f->buckets > 0 && slots != category->slots))
            return shape_fits_differs("category", category->name);
    }
    return WEIR_OK;
}

/* Callers pass all aggregates of the type, by id: those of the shape have to be the first of them. */
static weir_err shape_fits_check_aggregates(const weir_nn_inputs *inputs, const weir_schema *schema, uint32_t type) {
    uint32_t a = 0, count = weir_schema_aggregate_count(schema);
    for (uint32_t i = 0; i < inputs->number_count; i++) {
        const weir_nn_number *wanted = &inputs->numbers[i];
        if (wanted->kind != WEIR_NN_AGGREGATE) continue;
        while (a < count && weir_schema_aggregate_at(schema, a)->vertex != type)
            a++;
        if (a == count || wanted->source != a || strcmp(weir_schema_aggregate_at(schema, a)->name, wanted->name) != 0)
            return shape_fits_differs("aggregate", wanted->name);
        a++;
    }
    return WEIR_OK;
}

/* The answer has to mean the same too. */
static weir_err shape_fits_check_task(const weir_nn_shape *shape, const weir_schema *schema) {
    uint32_t id = weir_schema_task_find(schema, shape->task);
    if (id == WEIR_SCHEMA_NONE) return shape_fits_differs("task", shape->task);
    const weir_schema_task *task = weir_schema_task_at(schema, id);
    if (task->kind != WEIR_SCHEMA_CLASSIFY) return shape_fits_differs("task", shape->task);
    const weir_schema_label *label = weir_schema_label_at(schema, task->label);
    uint32_t outputs = task->positive_count > 0 ? 1 : label->values.count;
    if (label->on_relation || label->target != shape->target_type || outputs != shape->outputs)
        return shape_fits_differs("task", shape->task);
    return WEIR_OK;
}

weir_err weir_nn_shape_serves(const weir_nn_shape *shape) {
    for (uint32_t t = 0; t < shape->types; t++) {
        const weir_nn_inputs *inputs = &shape->vertices[t];
        if (inputs->matrix_count == 0) continue;
        return WEIR_ERR(WEIR_EVERSION,
                        "the model was trained with the matrix '%s' of an imported snapshot, which a living graph "
                        "does not have; make its columns features, or leave it out of the import",
                        inputs->matrices[0].name);
    }
    return WEIR_OK;
}

weir_err weir_nn_shape_fits(const weir_nn_shape *shape, const weir_schema *schema) {
    if (weir_schema_vertex_count(schema) != shape->types || weir_schema_relation_count(schema) != shape->relations)
        return WEIR_ERR(
            WEIR_EVERSION,
            "the model was trained with %u vertex types and %u relations, the schema has %u and %u; train a "
            "model for this schema",
            shape->types, shape->relations, weir_schema_vertex_count(schema), weir_schema_relation_count(schema));
    weir_err err = shape_fits_check_task(shape, schema);
    for (uint32_t t = 0; !err && t < shape->types; t++) {
        const weir_nn_inputs *inputs = &shape->vertices[t];
        const weir_schema_vertex *vertex = weir_schema_vertex_at(schema, t);
        if (strcmp(vertex->name, inputs->name) != 0) return shape_fits_differs("vertex type", inputs->name);
        err = shape_fits_check_features(inputs, vertex->features, vertex->feature_count);
        if (!err) err = shape_fits_check_aggregates(inputs, schema, t);
    }
    for (uint32_t r = 0; !err && r < shape->relations; r++) {
        const weir_nn_inputs *inputs = &shape->edges[r];
        const weir_schema_relation *relation = weir_schema_relation_at(schema, r);
        if (strcmp(relation->name, inputs->name) != 0 || relation->from != shape->ends[r].from ||
            relation->to != shape->ends[r].to)
            return shape_fits_differs("relation", inputs->name);
        err = shape_fits_check_features(inputs, relation->features, relation->feature_count);
    }
    return err;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* shape_print.c - a shape as JSON: the canonical form that shape_read.c takes back (NN-N1). */
#include "shape_json.h"
#include "shape_private.h"

const char *const weir_nn_kind_words[] = {"number", "time", "category", NULL}; /* by weir_value_kind */
const char *const weir_nn_normalise_words[] = {"none", "standard", "log-standard", "min-max", NULL};
const char *const weir_nn_strategy_words[] = {"recent", "uniform", "weighted", "full", NULL};
const char *const weir_nn_direction_words[] = {"out", "in", NULL};
const char *const weir_nn_rows_words[] = {"as-is", "unit", NULL}; /* by weir_nn_matrix.unit */
const char *const weir_nn_encoder_words[] = {"layer", "none", NULL};
const char *const weir_nn_norm_words[] = {"layer", "stream", "none", NULL}; /* by weir_nn_norm */
const char *const weir_nn_head_words[] = {"linear", "none", NULL};          /* by weir_nn_opts.headless */
const char *const weir_nn_jump_words[] = {"none", "concat", "max", NULL};   /* by weir_nn_jump */

static void shape_print_scale(weir_json *json, const weir_nn_number *number) {
    const weir_nn_scale *s = &number->scale;
    weir_json_key_string(json, "normalise", weir_nn_normalise_words[number->normalise]);
    weir_json_key(json, "scale");
    weir_json_array(json);
    weir_json_f64(json, s->mean);
    weir_json_f64(json, s->deviation);
    weir_json_f64(json, s->min);
    weir_json_f64(json, s->max);
    weir_json_array_end(json);
}

/* Each feature is a number (or time) or a category: one of the two loops finds it. */
static void shape_print_features(weir_json *json, const weir_nn_inputs *inputs) {
    weir_json_key(json, "features");
    weir_json_array(json);
    for (uint32_t f = 0; f < inputs->feature_count; f++) {
        weir_json_object(json);
        for (uint32_t i = 0; i < inputs->number_count; i++) {
            const weir_nn_number *number = &inputs->numbers[i];
            if (number->kind == WEIR_NN_AGGREGATE || number->source != f) continue;
            weir_json_key_string(json, "name", number->name);
            weir_json_key_string(json, "kind", weir_nn_kind_words[inputs->kinds[f]]);
            shape_print_scale(json, number);
        }
        for (uint32_t i = 0; i < inputs->category_count; i++) {
            const weir_nn_category *category = &inputs->categories[i];
            if (category->feature != f) continue;
            weir_json_key_string(json, "name", category->name);
            weir_json_key_string(json, "kind", weir_nn_kind_words[inputs->kinds[f]]);
            weir_json_key_u64(json, "slots", category->slots);
        }
        weir_json_object_end(json);
    }
    weir_json_array_end(json);
}

static void shape_print_aggregates(weir_json *json, const weir_nn_inputs *inputs) {
    weir_json_key(json, "aggregates");
    weir_json_array(json);
    for (uint32_t i = 0; i < inputs->number_count; i++) {
        const weir_nn_number *number = &inputs->numbers[i];
        if (number->kind != WEIR_NN_AGGREGATE) continue;
        weir_json_object(json);
        weir_json_key_string(json, "name", number->name);
        weir_json_key_u64(json, "id", number->source);
        shape_print_scale(json, number);
        weir_json_object_end(json);
    }
    weir_json_array_end(json);
}

/* Written only where there are any: a shape of a living graph keeps the bytes that it had before matrices came. */
static void shape_print_matrices(weir_json *json, const weir_nn_inputs *inputs) {
    if (inputs->matrix_count == 0) return;
    weir_json_key(json, "matrices");
    weir_json_array(json);
    for (uint32_t i = 0; i < inputs->matrix_count; i++) {
        const weir_nn_matrix *matrix = &inputs->matrices[i];
        weir_json_object(json);
        weir_json_key_string(json, "name", matrix->name);
        weir_json_key_u64(json, "columns", matrix->columns);
        weir_json_key_string(json, "rows", weir_nn_rows_words[matrix->unit]);
        weir_json_object_end(json);
    }
    weir_json_array_end(json);
}

static void shape_print_step(weir_json *json, const weir_nn_shape *shape, const weir_sample_step *step) {
    weir_json_object(json);
    weir_json_key_u64(json, "hop", step->hop);
    weir_json_key_string(json, "relation", shape->edges[step->relation].name);
    weir_json_key_string(json, "direction", weir_nn_direction_words[step->direction]);
    weir_json_key_string(json, "strategy", weir_nn_strategy_words[step->strategy]);
    weir_json_key_u64(json, "fanout", step->fanout);
    if (step->strategy == WEIR_SAMPLE_WEIGHTED && step->weight != WEIR_SCHEMA_NONE)
        weir_json_key_u64(json, "weight", step->weight);
    if (step->strategy == WEIR_SAMPLE_WEIGHTED && step->weight == WEIR_SCHEMA_NONE)
        weir_json_key_u64(json, "half_life_us", (uint64_t)step->half_life_us);
    weir_json_object_end(json);
}

void weir_nn_shape_print(const weir_nn_shape *shape, weir_json *json) {
    weir_json_object(json);
    weir_json_key_u64(json, "version", WEIR_NN_LANGUAGE);
    weir_json_key_string(json, "task", shape->task);
    weir_json_key_string(json, "target", shape->vertices[shape->target_type].name);
    weir_json_key_u64(json, "outputs", shape->outputs);
    weir_json_key_u64(json, "hidden", shape->hidden);
    weir_json_key_u64(json, "window", shape->window);
    if (shape->bare) /* a shape with encoders keeps the bytes that it had before there were others */
        weir_json_key_string(json, "encoder", weir_nn_encoder_words[shape->bare]);
    if (shape->residual) weir_json_key_bool(json, "residual", true);
    if (shape->feed_forward) weir_json_key_bool(json, "feed_forward", true);
    if (shape->norm) weir_json_key_string(json, "norm", weir_nn_norm_words[shape->norm]);
    if (shape->headless) weir_json_key_string(json, "head", weir_nn_head_words[shape->headless]);
    if (shape->jump) weir_json_key_string(json, "jump", weir_nn_jump_words[shape->jump]);
    if (shape->network != WEIR_NN_MEAN) weir_json_key_string(json, "network", weir_nn_network_word(shape->network));
    if (shape->heads) weir_json_key_u64(json, "heads", shape->heads);
    if (weir_nn_shape_has_loops(shape)) weir_json_key_bool(json, "loops", true); /* those before it had none */

    weir_json_key(json, "vertices");
    weir_json_array(json);
    for (uint32_t t = 0; t < shape->types; t++) {
        weir_json_object(json);
        weir_json_key_string(json, "name", shape->vertices[t].name);
        shape_print_features(json, &shape->vertices[t]);
        shape_print_aggregates(json, &shape->vertices[t]);
        shape_print_matrices(json, &shape->vertices[t]);
        if (shape->vertices[t].known_count > 0) /* how many; which ones stands beside the weights (pack.h) */
            weir_json_key_u64(json, "known", shape->vertices[t].known_count);
        weir_json_object_end(json);
    }
    weir_json_array_end(json);

    weir_json_key(json, "relations");
    weir_json_array(json);
    for (uint32_t r = 0; r < shape->relations; r++) {
        weir_json_object(json);
        weir_json_key_string(json, "name", shape->edges[r].name);
        weir_json_key_string(json, "from", shape->vertices[shape->ends[r].from].name);
        weir_json_key_string(json, "to", shape->vertices[shape->ends[r].to].name);
        shape_print_features(json, &shape->edges[r]);
        weir_json_object_end(json);
    }
    weir_json_array_end(json);

    weir_json_key(json, "steps");
    weir_json_array(json);
    for (uint32_t s = 0; s < shape->step_count; s++)
        shape_print_step(json, shape, &shape->steps[s]);
    weir_json_array_end(json);
    weir_json_object_end(json);
}

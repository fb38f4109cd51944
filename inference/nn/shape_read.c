/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shape_read.c - a shape out of text that nobody trusts.
 *
 * Each object has no other keys than shape_print.c writes, each number its range; what the parts mean together is
 * checked where a shape out of a schema is: weir_nn_shape_finish.
 */
#include <string.h>

#include "shape_json.h"
#include "shape_private.h"

#define SHAPE_DEPTH_MAX 16u

/* --- values ------------------------------------------------------------------------------------------------------ */

static weir_err shape_get_u32(const weir_json_node *map, const char *key, uint32_t min, uint32_t max,
                              uint32_t *valuep) {
    int64_t value;
    weir_err err = weir_json_need_i64(map, key, min, max, &value);
    *valuep = (uint32_t)value;
    return err;
}

static weir_err shape_get_list(const weir_json_node *map, const char *key, size_t max, const weir_json_node **listp) {
    weir_err err = weir_json_need(map, key, WEIR_JSON_ARRAY, listp);
    if (err || (*listp)->count <= max) return err;
    return WEIR_JSON_ERR(*listp, "'%s' has %zu items, and at most %zu are allowed", key, (*listp)->count, max);
}

static weir_err shape_get_name(const weir_json_node *map, const char *key, const char **namep) {
    const weir_json_node *node = NULL;
    weir_err err = weir_json_need(map, key, WEIR_JSON_STRING, &node);
    if (err) return err;
    const char *text = weir_json_node_text(node);
    if (!weir_schema_is_name(text))
        return WEIR_JSON_ERR(node, "'%s' is a name of at most %u letters, digits, _ and -, a letter first", key,
                             WEIR_SCHEMA_NAME_BYTES_MAX);
    *namep = text;
    return WEIR_OK;
}

/* Of an import's array, which may begin as it likes: store/snapshot takes the names of files. */
static weir_err shape_get_array_name(const weir_json_node *map, const char **namep) {
    const weir_json_node *node = NULL;
    weir_err err = weir_json_need(map, "name", WEIR_JSON_STRING, &node);
    if (err) return err;
    const char *text = weir_json_node_text(node);
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    size_t length = strlen(text);
    if (length == 0 || length > WEIR_SCHEMA_NAME_BYTES_MAX || strspn(text, letters) != length)
        return WEIR_JSON_ERR(node, "'name' of a matrix is 1 to %u letters, digits, _ and -",
                             WEIR_SCHEMA_NAME_BYTES_MAX);
    *namep = text;
    return WEIR_OK;
}

static weir_err shape_get_word(const weir_json_node *map, const char *key, const char *const *words, uint32_t *indexp) {
    const weir_json_node *node = NULL;
    weir_err err = weir_json_need(map, key, WEIR_JSON_STRING, &node);
    if (err) return err;
    const char *text = weir_json_node_text(node);
    for (*indexp = 0; words[*indexp]; ++*indexp) {
        if (strcmp(words[*indexp], text) == 0) return WEIR_OK;
    }
    return WEIR_JSON_ERR(node, "'%s' is no %s that this program knows; the model is from a newer one", text, key);
}

/* A vertex type or relation by its name. */
static weir_err shape_get_ref(const weir_json_node *map, const char *key, const weir_nn_inputs *inputs, uint32_t count,
                              uint32_t *indexp) {
    const char *name = NULL;
    *indexp = 0;
    weir_err err = shape_get_name(map, key, &name);
    if (err) return err;
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(inputs[i].name, name) == 0) {
            *indexp = i;
            return WEIR_OK;
        }
    }
    return WEIR_JSON_ERR(map, "%s '%s' is nowhere in this shape", key, name);
}

/* --- inputs ------------------------------------------------------------------------------------------------------ */

static weir_err shape_read_scale(const weir_json_node *map, weir_nn_scale *scale) {
    const weir_json_node *list = NULL;
    double values[4] = {0};
    weir_err err = shape_get_list(map, "scale", 4, &list);
    if (!err && list->count != 4) err = WEIR_JSON_ERR(list, "a scale is four numbers: mean, deviation, least, most");
    const weir_json_node *value = err ? NULL : list->first;
    for (size_t i = 0; !err && value; i++, value = value->next)
        err = weir_json_node_f64(value, &values[i]);
    if (!err && !(values[1] > 0 && values[3] >= values[2]))
        err = WEIR_JSON_ERR(list, "a scale has a deviation above 0, and its most is not below its least");
    *scale = (weir_nn_scale){values[0], values[1], values[2], values[3]};
    return err;
}

static weir_err shape_read_number(weir_nn_shape *shape, const weir_json_node *map, weir_nn_inputs *inputs,
                                  const char *name, bool time) {
    static const char *const keys[] = {"name", "kind", "normalise", "scale", NULL};
    uint32_t normalise = 0;
    weir_nn_scale scale = {0};
    weir_err err = weir_json_only(map, "a number", keys);
    if (!err) err = shape_get_word(map, "normalise", weir_nn_normalise_words, &normalise);
    if (!err) err = shape_read_scale(map, &scale);
    if (!err && time && normalise != WEIR_SCHEMA_NORMALISE_STANDARD)
        err = WEIR_JSON_ERR(map, "an age is normalised as standard");
    if (!err)
        err = weir_nn_inputs_feature(shape, inputs, name, time ? WEIR_SCHEMA_TIME : WEIR_SCHEMA_NUMBER, normalise, 0);
    if (!err) weir_nn_numbers_of(inputs)[inputs->number_count - 1].scale = scale;
    return err;
}

static weir_err shape_read_feature(weir_nn_shape *shape, const weir_json_node *map, weir_nn_inputs *inputs) {
    static const char *const keys[] = {"name", "kind", "slots", NULL};
    const char *name = NULL;
    uint32_t kind = 0, slots = 0;
    weir_err err = map->token.kind == WEIR_JSON_OBJECT ? shape_get_name(map, "name", &name)
                                                       : WEIR_JSON_ERR(map, "a feature is an object");
    if (!err) err = shape_get_word(map, "kind", weir_nn_kind_words, &kind);
    if (err) return err;
    if (kind != WEIR_VALUE_CATEGORY) return shape_read_number(shape, map, inputs, name, kind == WEIR_VALUE_TIME);
    err = weir_json_only(map, "a category", keys);
    if (!err) err = shape_get_u32(map, "slots", 1, WEIR_SCHEMA_CATEGORY_BUCKETS_MAX + 1, &slots);
    return err ? err : weir_nn_inputs_feature(shape, inputs, name, WEIR_SCHEMA_CATEGORY, 0, slots);
}

static weir_err shape_read_aggregate(weir_nn_shape *shape, const weir_json_node *map, weir_nn_inputs *inputs) {
    static const char *const keys[] = {"name", "id", "normalise", "scale", NULL};
    const char *name = NULL;
    uint32_t id = 0, normalise = 0;
    weir_nn_scale scale = {0};
    weir_err err = weir_json_only(map, "an aggregate", keys);
    if (!err) err = shape_get_name(map, "name", &name);
    if (!err) err = shape_get_u32(map, "id", 0, WEIR_SCHEMA_AGGREGATES_MAX - 1, &id);
    if (!err) err = shape_get_word(map, "normalise", weir_nn_normalise_words, &normalise);
    if (!err) err = shape_read_scale(map, &scale);
    if (!err && inputs->aggregate_count > 0 && inputs->numbers[inputs->number_count - 1].source >= id)
        err = WEIR_JSON_ERR(map, "aggregates stand by rising id");
    if (!err) err = weir_nn_inputs_aggregate(shape, inputs, name, id, normalise);
    if (!err) weir_nn_numbers_of(inputs)[inputs->number_count - 1].scale = scale;
    return err;
}

static weir_err shape_read_matrix(weir_nn_shape *shape, const weir_json_node *map, weir_nn_inputs *inputs) {
    static const char *const keys[] = {"name", "columns", "rows", NULL};
    weir_nn_matrix matrix = {.name = NULL};
    uint32_t unit = 0;
    weir_err err = weir_json_only(map, "a matrix", keys);
    if (!err) err = shape_get_array_name(map, &matrix.name);
    if (!err) err = shape_get_u32(map, "columns", 1, WEIR_NN_COLUMNS_MAX, &matrix.columns);
    if (!err) err = shape_get_word(map, "rows", weir_nn_rows_words, &unit);
    matrix.unit = unit != 0;
    for (uint32_t i = 0; !err && i < inputs->matrix_count; i++) {
        if (strcmp(inputs->matrices[i].name, matrix.name) == 0)
            err = WEIR_JSON_ERR(map, "matrix '%s' is here twice", matrix.name);
    }
    return err ? err : weir_nn_inputs_matrix(shape, inputs, &matrix);
}

/* before: the list that it is in, of which those below index have been read. */
static weir_err shape_read_inputs(weir_nn_shape *shape, const weir_json_node *map, weir_nn_inputs *before, size_t index,
                                  bool vertex) {
    weir_nn_inputs *inputs = &before[index];
    const weir_json_node *features = NULL, *aggregates = NULL;
    const char *name = NULL;
    size_t aggregate_count = 0;
    weir_err err = shape_get_name(map, "name", &name);
    for (size_t i = 0; !err && i < index; i++) {
        if (strcmp(before[i].name, name) == 0) err = WEIR_JSON_ERR(map, "'%s' is here twice", name);
    }
    if (!err) err = shape_get_list(map, "features", WEIR_SCHEMA_FEATURES_MAX, &features);
    if (!err && vertex) err = shape_get_list(map, "aggregates", WEIR_SCHEMA_AGGREGATES_MAX, &aggregates);
    if (err) return err;
    if (aggregates) aggregate_count = aggregates->count;
    err = weir_nn_inputs_begin(shape, inputs, name, (uint32_t)features->count, (uint32_t)aggregate_count);
    for (const weir_json_node *item = features->first; !err && item; item = item->next)
        err = shape_read_feature(shape, item, inputs);
    for (const weir_json_node *item = aggregates ? aggregates->first : NULL; !err && item; item = item->next)
        err = shape_read_aggregate(shape, item, inputs);
    return err;
}

static weir_err shape_read_vertex(weir_nn_shape *shape, const weir_json_node *map, size_t index) {
    static const char *const keys[] = {"name", "features", "aggregates", "matrices", "known", NULL};
    const weir_json_node *list = NULL;
    uint32_t known;
    weir_err err = weir_json_only(map, "a vertex type", keys);
    if (!err) err = shape_read_inputs(shape, map, shape->vertices, index, true);
    if (!err && weir_json_find(map, "known")) {
        err = shape_get_u32(map, "known", 1, (uint32_t)WEIR_NN_PARAMETERS_MAX, &known);
        if (!err) err = weir_nn_inputs_known(&shape->vertices[index], known);
    }
    /* Matrices are an import's; a living graph has none, and its shape says nothing of them. */
    if (err || !weir_json_find(map, "matrices")) return err;
    err = shape_get_list(map, "matrices", WEIR_NN_MATRICES_MAX, &list);
    if (!err && list->count == 0) err = WEIR_JSON_ERR(list, "'matrices' is empty; leave it out");
    for (const weir_json_node *item = err ? NULL : list->first; !err && item; item = item->next)
        err = shape_read_matrix(shape, item, &shape->vertices[index]);
    return err;
}

static weir_err shape_read_relation(weir_nn_shape *shape, const weir_json_node *map, size_t index) {
    static const char *const keys[] = {"name", "from", "to", "features", NULL};
    uint32_t from = 0, to = 0;
    weir_err err = weir_json_only(map, "a relation", keys);
    if (!err) err = shape_read_inputs(shape, map, shape->edges, index, false);
    if (!err) err = shape_get_ref(map, "from", shape->vertices, shape->types, &from);
    if (!err) err = shape_get_ref(map, "to", shape->vertices, shape->types, &to);
    shape->ends[index] = (weir_sample_ends){(uint16_t)from, (uint16_t)to};
    return err;
}

/* --- steps ------------------------------------------------------------------------------------------------------- */

static weir_err shape_read_weight(const weir_nn_shape *shape, const weir_json_node *map, weir_sample_step *step) {
    const weir_json_node *weight = weir_json_find(map, "weight"), *half_life = weir_json_find(map, "half_life_us");
    const weir_nn_inputs *edge = &shape->edges[step->relation];
    int64_t feature = 0;
    step->weight = WEIR_SCHEMA_NONE;
    if (step->strategy != WEIR_SAMPLE_WEIGHTED && (weight || half_life))
        return WEIR_JSON_ERR(map, "a weight of a step that does not weigh");
    if (step->strategy != WEIR_SAMPLE_WEIGHTED) return WEIR_OK;
    if (!weight == !half_life) return WEIR_JSON_ERR(map, "a step weighs by 'weight' or by 'half_life_us'");
    if (half_life) return weir_json_node_i64(half_life, 1, INT64_MAX, &step->half_life_us);
    weir_err err = weir_json_node_i64(weight, 0, (int64_t)edge->feature_count - 1, &feature);
    if (!err && edge->kinds[feature] != WEIR_VALUE_NUMBER)
        err = WEIR_JSON_ERR(weight, "the weight of a step is a number of its relation");
    step->weight = (uint32_t)feature;
    return err;
}

static weir_err shape_read_step(weir_nn_shape *shape, const weir_json_node *map, weir_sample_step *step) {
    static const char *const keys[] = {"hop",    "relation", "direction",    "strategy",
                                       "fanout", "weight",   "half_life_us", NULL};
    uint32_t relation = 0, direction = 0, strategy = 0;
    weir_err err = weir_json_only(map, "a step", keys);
    if (!err) err = shape_get_u32(map, "hop", 1, WEIR_NN_LAYERS_MAX, &step->hop);
    if (!err) err = shape_get_ref(map, "relation", shape->edges, shape->relations, &relation);
    if (!err) err = shape_get_word(map, "direction", weir_nn_direction_words, &direction);
    if (!err) err = shape_get_word(map, "strategy", weir_nn_strategy_words, &strategy);
    if (!err)
        err = shape_get_u32(map, "fanout", strategy == WEIR_SAMPLE_FULL ? 0 : 1, WEIR_SAMPLE_FANOUT_MAX, &step->fanout);
    if (err) return err;
    step->relation = (uint16_t)relation;
    step->direction = (weir_direction)direction;
    step->strategy = (weir_strategy)strategy;
    return shape_read_weight(shape, map, step);
}

/* --- the whole --------------------------------------------------------------------------------------------------- */

/* A GAT was another network before a vertex was among what it mixes. */
static weir_err shape_read_loops(const weir_nn_shape *shape, const weir_json_node *root) {
    const weir_json_node *loops = weir_json_find(root, "loops");
    const bool has = weir_nn_shape_has_loops(shape);
    if (!loops && has)
        return WEIR_JSON_ERR(root, "this 'gat' was made before a vertex was among what it mixes, and would say "
                                   "something else now; train it again");
    if (!loops) return WEIR_OK;
    weir_err err = weir_json_need(root, "loops", WEIR_JSON_BOOL, &loops);
    if (err || (has && *loops->token.bytes == 't')) return err;
    return WEIR_JSON_ERR(loops,
                         "'loops' is true, and of a network 'gat' with a step that joins a type with itself alone; "
                         "leave it out of others");
}

/* Without the word it is what it was when there was one alone. */
static weir_err shape_read_network(weir_nn_shape *shape, const weir_json_node *root) {
    const char *words[WEIR_NN_NETWORKS + 1] = {NULL};
    uint32_t network = WEIR_NN_MEAN;
    for (uint32_t i = 0; i < WEIR_NN_NETWORKS; i++)
        words[i] = weir_nn_network_word(i);
    weir_err err = weir_json_find(root, "network") ? shape_get_word(root, "network", words, &network) : WEIR_OK;
    shape->network = network;
    if (!err) err = shape_read_loops(shape, root);
    if (err || (!weir_nn_network_has_heads(network) && !weir_json_find(root, "heads"))) return err;
    return shape_get_u32(root, "heads", 1, WEIR_NN_HIDDEN_MAX, &shape->heads);
}

static weir_err shape_read_sizes(weir_nn_shape *shape, const weir_json_node *root) {
    const char *task = "";
    weir_err err = shape_get_name(root, "task", &task);
    if (!err) err = shape_get_ref(root, "target", shape->vertices, shape->types, &shape->target_type);
    if (!err) err = shape_get_u32(root, "outputs", 1, WEIR_NN_OUTPUTS_MAX, &shape->outputs);
    if (!err) err = shape_get_u32(root, "hidden", 1, WEIR_NN_HIDDEN_MAX, &shape->hidden);
    if (!err) err = shape_get_u32(root, "window", 1, WEIR_SAMPLE_WINDOW_MAX, &shape->window);
    uint32_t encoder = 0;
    if (!err && weir_json_find(root, "encoder")) err = shape_get_word(root, "encoder", weir_nn_encoder_words, &encoder);
    shape->bare = encoder > 0;
    uint32_t norm = WEIR_NN_NORM_LAYER;
    if (!err && weir_json_find(root, "norm")) err = shape_get_word(root, "norm", weir_nn_norm_words, &norm);
    shape->norm = norm;
    uint32_t head = 0;
    if (!err && weir_json_find(root, "head")) err = shape_get_word(root, "head", weir_nn_head_words, &head);
    shape->headless = head > 0;
    uint32_t jump = WEIR_NN_JUMP_NONE;
    if (!err && weir_json_find(root, "jump")) err = shape_get_word(root, "jump", weir_nn_jump_words, &jump);
    shape->jump = jump;
    if (!err) err = shape_read_network(shape, root);
    const weir_json_node *residual = weir_json_find(root, "residual"), *feeds = weir_json_find(root, "feed_forward");
    if (!err && residual) err = weir_json_need(root, "residual", WEIR_JSON_BOOL, &residual);
    if (!err && feeds) err = weir_json_need(root, "feed_forward", WEIR_JSON_BOOL, &feeds);
    if (err) return err;
    shape->feed_forward = feeds && *feeds->token.bytes == 't';
    shape->residual = residual && *residual->token.bytes == 't';
    shape->task = weir_arena_strndup(shape->arena, task, strlen(task));
    return shape->task ? WEIR_OK : WEIR_NOMEM("for the shape of a network");
}

static weir_err shape_read_parts(weir_nn_shape *shape, const weir_json_node *root, const weir_json_node *vertices,
                                 const weir_json_node *relations, const weir_json_node *steps) {
    weir_err err = WEIR_OK;
    size_t vertex = 0, relation = 0, step = 0;
    for (const weir_json_node *item = vertices->first; !err && item; item = item->next)
        err = shape_read_vertex(shape, item, vertex++);
    for (const weir_json_node *item = relations->first; !err && item; item = item->next)
        err = shape_read_relation(shape, item, relation++);
    shape->step_count = (uint32_t)steps->count;
    for (const weir_json_node *item = steps->first; !err && item; item = item->next)
        err = shape_read_step(shape, item, &shape->steps[step++]);
    if (!err) err = shape_read_sizes(shape, root);
    if (err) return err;
    err = weir_nn_shape_finish(shape);
    if (!err || weir_err_is(err, WEIR_ENOMEM)) return err;
    char sentence[WEIR_ERR_SENTENCE_MAX];
    weir_err_sentence(err, sentence, sizeof sentence);
    return WEIR_JSON_ERR(root, "%s", sentence);
}

weir_err weir_nn_shape_read_node(const weir_json_node *root, weir_nn_shape **shapep) {
    static const char *const keys[] = {
        "version", "task", "target", "outputs", "hidden",       "window",   "encoder",   "residual", "network", "heads",
        "loops",   "jump", "head",   "norm",    "feed_forward", "vertices", "relations", "steps",    NULL};
    const weir_json_node *vertices = NULL, *relations = NULL, *steps = NULL;
    weir_nn_shape *shape = NULL;
    uint32_t version;
    *shapep = NULL;
    weir_err err = weir_json_only(root, "a shape", keys);
    if (!err) err = shape_get_u32(root, "version", WEIR_NN_LANGUAGE, WEIR_NN_LANGUAGE, &version);
    if (!err) err = shape_get_list(root, "vertices", WEIR_SCHEMA_VERTICES_MAX, &vertices);
    if (!err) err = shape_get_list(root, "relations", WEIR_SCHEMA_RELATIONS_MAX, &relations);
    if (!err) err = shape_get_list(root, "steps", WEIR_SAMPLE_STEPS_MAX, &steps);
    if (!err) err = weir_nn_shape_begin((uint32_t)vertices->count, (uint32_t)relations->count, &shape);
    if (!err) err = shape_read_parts(shape, root, vertices, relations, steps);
    if (err)
        weir_nn_shape_free(shape);
    else
        *shapep = shape;
    return err;
}

weir_err weir_nn_shape_read(const char *name, const char *text, size_t length, weir_nn_shape **shapep) {
    const weir_json_node *root;
    weir_arena *arena = NULL;
    *shapep = NULL;
    weir_err err = weir_arena_open(WEIR_JSON_FILE_ARENA, &arena);
    if (!err) err = weir_json_parse(name, text, length, SHAPE_DEPTH_MAX, arena, &root);
    if (!err) err = weir_nn_shape_read_node(root, shapep);
    weir_arena_close(arena);
    return err;
}

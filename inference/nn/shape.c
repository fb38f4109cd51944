/* SPDX-License-Identifier: Apache-2.0 */
/* shape.c - a shape out of a schema, and what both of its makers (shape_read.c is the other) need. */
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>

#include "gather.h"
#include "shape_json.h"

#define HIDDEN_DEFAULT 64u

/* --- both makers ------------------------------------------------------------------------------------------------- */

weir_err weir_nn_shape_begin(uint32_t types, uint32_t relations, weir_nn_shape **shapep) {
    weir_arena *arena = NULL;
    *shapep = NULL;
    weir_err err = weir_arena_open(WEIR_NN_SHAPE_BYTES_MAX, &arena);
    if (err) return err;
    weir_nn_shape *shape = weir_arena_calloc(arena, 1, sizeof *shape);
    if (shape) {
        *shape = (weir_nn_shape){.arena = arena, .types = types, .relations = relations};
        shape->vertices = weir_arena_calloc(arena, types + 1, sizeof *shape->vertices);
        shape->edges = weir_arena_calloc(arena, relations + 1, sizeof *shape->edges);
        shape->ends = weir_arena_calloc(arena, relations + 1, sizeof *shape->ends);
    }
    if (!shape || !shape->vertices || !shape->edges || !shape->ends) {
        weir_arena_close(arena);
        return WEIR_NOMEM("for the shape of a network");
    }
    *shapep = shape;
    return WEIR_OK;
}

weir_err weir_nn_inputs_begin(weir_nn_shape *shape, weir_nn_inputs *inputs, const char *name, uint32_t features,
                              uint32_t aggregates) {
    *inputs = (weir_nn_inputs){
        .name = weir_arena_strndup(shape->arena, name, strlen(name)),
        .numbers = weir_arena_calloc(shape->arena, features + aggregates + 1, sizeof(weir_nn_number)),
        .categories = weir_arena_calloc(shape->arena, features + 1, sizeof(weir_nn_category)),
        .matrices = weir_arena_calloc(shape->arena, WEIR_NN_MATRICES_MAX, sizeof(weir_nn_matrix)),
        .kinds = weir_arena_calloc(shape->arena, features + 1, sizeof(weir_value_kind)),
    };
    bool all = inputs->name && inputs->numbers && inputs->categories && inputs->matrices && inputs->kinds;
    return all ? WEIR_OK : WEIR_NOMEM("for the shape of a network");
}

/* The arrays are the shape's own; only their readers see them as constant. */
weir_nn_number *weir_nn_numbers_of(const weir_nn_inputs *inputs) {
    return (weir_nn_number *)(uintptr_t)inputs->numbers;
}

static void shape_add_number(weir_nn_inputs *inputs, weir_nn_number number) {
    number.column = inputs->width;
    number.scale = (weir_nn_scale){.mean = 0, .deviation = 1, .min = 0, .max = 1};
    weir_nn_numbers_of(inputs)[inputs->number_count++] = number;
    inputs->width += number.kind == WEIR_NN_AGGREGATE ? 1 : 2;
    inputs->timed |= number.kind != WEIR_NN_VALUE;
}

weir_err weir_nn_inputs_feature(weir_nn_shape *shape, weir_nn_inputs *inputs, const char *name,
                                weir_schema_feature_kind kind, weir_schema_normalise normalise, uint32_t slots) {
    static const weir_value_kind kinds[] = {[WEIR_SCHEMA_NUMBER] = WEIR_VALUE_NUMBER,
                                            [WEIR_SCHEMA_CATEGORY] = WEIR_VALUE_CATEGORY,
                                            [WEIR_SCHEMA_TIME] = WEIR_VALUE_TIME};
    const char *copy = weir_arena_strndup(shape->arena, name, strlen(name));
    uint32_t feature = inputs->feature_count++;
    if (!copy) return WEIR_NOMEM("for the shape of a network");
    ((weir_value_kind *)(uintptr_t)inputs->kinds)[feature] = kinds[kind];
    if (kind == WEIR_SCHEMA_CATEGORY) {
        weir_nn_category *categories = (weir_nn_category *)(uintptr_t)inputs->categories;
        categories[inputs->category_count++] = (weir_nn_category){.name = copy, .feature = feature, .slots = slots};
    } else if (kind == WEIR_SCHEMA_TIME) {
        shape_add_number(inputs, (weir_nn_number){.name = copy,
                                                  .kind = WEIR_NN_AGE,
                                                  .normalise = WEIR_SCHEMA_NORMALISE_STANDARD,
                                                  .source = feature});
    } else {
        shape_add_number(
            inputs, (weir_nn_number){.name = copy, .kind = WEIR_NN_VALUE, .normalise = normalise, .source = feature});
    }
    return WEIR_OK;
}

weir_err weir_nn_inputs_aggregate(weir_nn_shape *shape, weir_nn_inputs *inputs, const char *name, uint32_t id,
                                  weir_schema_normalise normalise) {
    const char *copy = weir_arena_strndup(shape->arena, name, strlen(name));
    if (!copy) return WEIR_NOMEM("for the shape of a network");
    shape_add_number(inputs,
                     (weir_nn_number){.name = copy, .kind = WEIR_NN_AGGREGATE, .normalise = normalise, .source = id});
    inputs->aggregate_count++;
    return WEIR_OK;
}

weir_err weir_nn_inputs_matrix(weir_nn_shape *shape, weir_nn_inputs *inputs, const weir_nn_matrix *matrix) {
    weir_nn_matrix *matrices = (weir_nn_matrix *)(uintptr_t)inputs->matrices;
    if (inputs->matrix_count == WEIR_NN_MATRICES_MAX)
        return WEIR_ERR(WEIR_EINVAL,
                        "vertex type '%s' has more than %u matrices; leave some out of the import by --skip",
                        inputs->name, WEIR_NN_MATRICES_MAX);
    if (matrix->columns == 0 || matrix->columns > WEIR_NN_COLUMNS_MAX)
        return WEIR_ERR(WEIR_EINVAL, "matrix '%s' has %u columns; 1 to %u are possible", matrix->name, matrix->columns,
                        WEIR_NN_COLUMNS_MAX);
    weir_nn_matrix copy = *matrix;
    copy.name = weir_arena_strndup(shape->arena, matrix->name, strlen(matrix->name));
    copy.column = inputs->width;
    if (!copy.name) return WEIR_NOMEM("for the shape of a network");
    matrices[inputs->matrix_count++] = copy;
    inputs->width += copy.columns;
    return WEIR_OK;
}

weir_err weir_nn_inputs_known(weir_nn_inputs *inputs, uint64_t count) {
    weir_nn_category *categories = (weir_nn_category *)(uintptr_t)inputs->categories;
    if (count == 0 || inputs->known_count > 0)
        return WEIR_ERR(WEIR_EINVAL, "vertex type '%s' has no vertices to embed, or is named twice", inputs->name);
    if (count > WEIR_NN_PARAMETERS_MAX)
        return WEIR_ERR(WEIR_ELIMIT, "type '%s' has %llu vertices, too many for an embedding of each", inputs->name,
                        (unsigned long long)count);
    inputs->known_count = (uint32_t)count;
    categories[inputs->category_count++] =
        (weir_nn_category){.name = "", .feature = WEIR_SCHEMA_NONE, .slots = inputs->known_count};
    return WEIR_OK;
}

weir_err weir_nn_shape_know(weir_nn_shape *shape, const weir_nn_known *known) {
    WEIR_ASSERT(known->type < shape->types);
    weir_nn_inputs *inputs = &shape->vertices[known->type];
    bool right = known->count > 0 && known->count == inputs->known_count;
    for (uint64_t i = 1; right && i < known->count; i++)
        right = known->ids[i - 1] < known->ids[i];
    if (!right)
        return WEIR_ERR(WEIR_EDATA, "the ids of the known vertices of type '%s' are not %u ascending ones",
                        inputs->name, inputs->known_count);
    uint64_t *ids = weir_calloc(known->count, sizeof *ids);
    if (!ids) return WEIR_NOMEM("for the known vertices of a network");
    memcpy(ids, known->ids, known->count * sizeof *ids);
    weir_free((void *)(uintptr_t)inputs->known);
    inputs->known = ids;
    return WEIR_OK;
}

uint32_t weir_nn_parent_of(const weir_nn_shape *shape, uint32_t step) {
    const weir_sample_step *s = &shape->steps[step];
    return s->direction == WEIR_OUT ? shape->ends[s->relation].from : shape->ends[s->relation].to;
}

uint32_t weir_nn_child_of(const weir_nn_shape *shape, uint32_t step) {
    const weir_sample_step *s = &shape->steps[step];
    return s->direction == WEIR_OUT ? shape->ends[s->relation].to : shape->ends[s->relation].from;
}

bool weir_nn_shape_has_loops(const weir_nn_shape *shape) {
    bool has = false;
    for (uint32_t s = 0; s < shape->step_count; s++)
        has = has || weir_nn_child_of(shape, s) == weir_nn_parent_of(shape, s);
    return has && shape->network == WEIR_NN_GAT;
}

static bool shape_reached(const weir_nn_shape *shape, uint32_t hop, uint32_t type) {
    return shape->reach[(size_t)hop * shape->types + type];
}

uint32_t weir_nn_hop_of(const weir_nn_shape *shape, uint32_t type) {
    WEIR_ASSERT(type < shape->types);
    for (uint32_t hop = 0; hop <= shape->layers; hop++)
        if (shape_reached(shape, hop, type)) return hop;
    return UINT32_MAX;
}

bool weir_nn_layer_has(const weir_nn_shape *shape, uint32_t layer, uint32_t type) {
    WEIR_ASSERT(layer >= 1 && layer <= shape->layers);
    return weir_nn_hop_of(shape, type) <= shape->layers - layer;
}

bool weir_nn_layer_steps(const weir_nn_shape *shape, uint32_t layer, uint32_t step) {
    WEIR_ASSERT(layer >= 1 && layer <= shape->layers && step < shape->step_count);
    uint32_t hop = shape->steps[step].hop;
    return hop + layer <= shape->layers + 1 && shape_reached(shape, hop - 1, weir_nn_parent_of(shape, step));
}

static weir_err shape_check_step(const weir_nn_shape *shape, uint32_t index) {
    const weir_sample_step *step = &shape->steps[index];
    uint32_t before = index > 0 ? step[-1].hop : 0;
    if (step->hop != before + 1 && (index == 0 || step->hop != before)) {
        return WEIR_ERR(WEIR_EINVAL, "step %u is of hop %u; hops begin at 1 and rise without a gap", index, step->hop);
    }
    if (step->hop > WEIR_NN_LAYERS_MAX)
        return WEIR_ERR(WEIR_EINVAL, "step %u is of hop %u; at most %u are possible", index, step->hop,
                        WEIR_NN_LAYERS_MAX);
    if (step->relation >= shape->relations)
        return WEIR_ERR(WEIR_EINVAL, "step %u: there is no relation %u", index, step->relation);
    for (uint32_t i = 0; i < index; i++) {
        const weir_sample_step *other = &shape->steps[i];
        if (other->hop == step->hop && other->relation == step->relation && other->direction == step->direction)
            return WEIR_ERR(WEIR_EINVAL,
                            "steps %u and %u have the same hop, relation and direction; join them into one", i, index);
    }
    return WEIR_OK;
}

/* Whether a step of an earlier hop along the same relation and direction has the weights. */
static bool shape_shares_weight(const weir_nn_shape *shape, uint32_t step) {
    const weir_sample_step *s = &shape->steps[step];
    for (uint32_t i = 0; i < step; i++)
        if (shape->steps[i].relation == s->relation && shape->steps[i].direction == s->direction) return true;
    return false;
}

/* Counts every type and step, in reach or not, so at least what the tensors will have: a hostile text ends here. An id
 * of a known vertex is as long as two parameters, and lies beside them in one file. */
static weir_err shape_check_size(const weir_nn_shape *shape) {
    uint64_t hidden = shape->hidden, columns = 0, edge_width = 0, ids = 0;
    for (uint32_t t = 0; t < shape->types; t++) {
        const weir_nn_inputs *inputs = &shape->vertices[t];
        columns += inputs->width + 1u;
        ids += inputs->known_count;
        for (uint32_t c = 0; c < inputs->category_count; c++)
            columns += inputs->categories[c].slots;
    }
    for (uint32_t s = 0; s < shape->step_count; s++)
        edge_width += hidden + shape->edges[shape->steps[s].relation].width + WEIR_TIME_CODE_COUNT + 1;
    for (uint32_t s = 0; s < shape->step_count; s++) {
        const weir_nn_inputs *child = &shape->vertices[weir_nn_child_of(shape, s)];
        if (child->bare && !shape_shares_weight(shape, s)) columns += child->width;
    }
    columns += shape->layers * (shape->types * (hidden + 3) + edge_width);
    if (shape->feed_forward) columns += (uint64_t)shape->layers * shape->types * (hidden + 1);
    columns += (uint64_t)weir_nn_head_rows(shape) / hidden * shape->outputs;
    uint64_t apart = shape->outputs + 2 * ids; /* not multiplied by hidden */
    if (shape->headless) apart += (shape->types * (hidden + 1) + edge_width) * shape->outputs;
    for (uint32_t s = 0; s < shape->step_count; s++)
        for (uint32_t layer = 1; layer <= shape->layers; layer++)
            apart += weir_nn_way_parameters(shape, layer, s);
    if (apart <= WEIR_NN_PARAMETERS_MAX && columns <= (WEIR_NN_PARAMETERS_MAX - apart) / hidden) return WEIR_OK;
    return WEIR_ERR(WEIR_ELIMIT,
                    "a network of about %llu parameters; at most %llu are possible: lower hidden, or the "
                    "buckets of the categories, embed fewer types, or leave out wide matrices",
                    (unsigned long long)(columns * hidden + apart), (unsigned long long)WEIR_NN_PARAMETERS_MAX);
}

weir_err weir_nn_shape_finish(weir_nn_shape *shape) {
    if (shape->hidden == 0 || shape->hidden > WEIR_NN_HIDDEN_MAX)
        return WEIR_ERR(WEIR_EINVAL, "a hidden width of %u; it can be 1 to %u", shape->hidden, WEIR_NN_HIDDEN_MAX);
    if (shape->heads && !weir_nn_network_has_heads(shape->network))
        return WEIR_ERR(WEIR_EINVAL, "a network '%s' has no heads; omit them", weir_nn_network_word(shape->network));
    if (shape->heads && shape->hidden % shape->heads != 0)
        return WEIR_ERR(WEIR_EINVAL, "%u heads do not divide a hidden width of %u; choose a number that does",
                        shape->heads, shape->hidden);
    if (shape->headless && shape->jump)
        return WEIR_ERR(WEIR_EINVAL, "without a head, no layer's rows but the last's are seen: jump is 'none' then");
    if (shape->step_count == 0) return WEIR_ERR(WEIR_EINVAL, "a network without steps; give it at least one");
    for (uint32_t s = 0; s < shape->step_count; s++) {
        weir_err err = shape_check_step(shape, s);
        if (err) return err;
    }
    shape->layers = shape->steps[shape->step_count - 1].hop;
    if (shape->headless && shape->layers == 1)
        return WEIR_ERR(WEIR_EINVAL,
                        "a network of one layer and no head has no embeddings; take two layers, or a head");
    bool any = false;
    for (uint32_t t = 0; t < shape->types; t++) {
        weir_nn_inputs *inputs = &shape->vertices[t];
        inputs->bare = shape->bare && inputs->width > 0 && inputs->category_count == 0;
        any = any || inputs->bare;
    }
    shape->bare = any; /* else it is the network that it would be without, and is written as that */
    shape->residual = shape->residual && shape->layers > (shape->headless ? 2 : 1); /* so here */
    if (shape->layers == 1) shape->jump = WEIR_NN_JUMP_NONE;
    weir_err err = shape_check_size(shape);
    if (err) return err;

    /* Which types each hop has: the targets', then what the steps from there lead to. */
    shape->reach = weir_arena_calloc(shape->arena, (size_t)(shape->layers + 1) * shape->types, sizeof *shape->reach);
    if (!shape->reach) return WEIR_NOMEM("for the shape of a network");
    WEIR_ASSERT(shape->target_type < shape->types);
    shape->reach[shape->target_type] = true;
    for (uint32_t s = 0; s < shape->step_count; s++) {
        uint32_t hop = shape->steps[s].hop;
        if (shape_reached(shape, hop - 1, weir_nn_parent_of(shape, s)))
            shape->reach[(size_t)hop * shape->types + weir_nn_child_of(shape, s)] = true;
    }
    return WEIR_OK;
}

/* --- out of a schema --------------------------------------------------------------------------------------------- */

static weir_err shape_add_features(weir_nn_shape *shape, weir_nn_inputs *inputs, const weir_schema_feature *features,
                                   uint32_t count) {
    weir_err err = WEIR_OK;
    for (uint32_t i = 0; !err && i < count; i++) {
        const weir_schema_feature *f = &features[i];
        uint32_t slots = f->kind == WEIR_SCHEMA_CATEGORY ? weir_schema_category_slots(f) : 0;
        err = weir_nn_inputs_feature(shape, inputs, f->name, f->kind, f->normalise, slots);
    }
    return err;
}

/* Features, aggregates and matrices of a vertex type, in this order of their columns; and which of its vertices are
 * known. */
static weir_err shape_add_vertex(weir_nn_shape *shape, const weir_schema *schema, const weir_nn_opts *opts,
                                 uint32_t type) {
    const weir_schema_vertex *vertex = weir_schema_vertex_at(schema, type);
    weir_nn_inputs *inputs = &shape->vertices[type];
    uint32_t aggregates = weir_schema_aggregate_count(schema);
    weir_err err = weir_nn_inputs_begin(shape, inputs, vertex->name, vertex->feature_count, aggregates);
    if (!err) err = shape_add_features(shape, inputs, vertex->features, vertex->feature_count);
    for (uint32_t a = 0; !err && a < aggregates; a++) {
        const weir_schema_aggregate *aggregate = weir_schema_aggregate_at(schema, a);
        if (aggregate->vertex == type)
            err = weir_nn_inputs_aggregate(shape, inputs, aggregate->name, a, aggregate->normalise);
    }
    for (uint32_t i = 0; !err && i < opts->matrix_count; i++) {
        if (opts->matrices[i].type == type) err = weir_nn_inputs_matrix(shape, inputs, &opts->matrices[i].matrix);
    }
    for (uint32_t i = 0; !err && i < opts->known_count; i++) {
        if (opts->known[i].type == type) err = weir_nn_inputs_known(inputs, opts->known[i].count);
    }
    return err;
}

/* What the head answers, and for whom. */
static weir_err shape_set_task(weir_nn_shape *shape, const weir_schema *schema, uint32_t id) {
    if (id >= weir_schema_task_count(schema)) return WEIR_ERR(WEIR_EINVAL, "the schema has no task %u", id);
    const weir_schema_task *task = weir_schema_task_at(schema, id);
    if (task->kind != WEIR_SCHEMA_CLASSIFY)
        return WEIR_ERR(WEIR_ECONFIG, "task '%s' recommends; this network classifies: name a task of kind classify",
                        task->name);
    const weir_schema_label *label = weir_schema_label_at(schema, task->label);
    if (label->on_relation)
        return WEIR_ERR(WEIR_ECONFIG,
                        "task '%s' is about the label '%s' of a relation; this network classifies vertices: make what "
                        "is labelled a vertex, as payments.yaml does",
                        task->name, label->name);
    if (label->values.count < 2)
        return WEIR_ERR(WEIR_ECONFIG, "label '%s' has one value only; a network has nothing to tell apart",
                        label->name);
    shape->target_type = label->target;
    shape->outputs = task->positive_count > 0 ? 1 : label->values.count;
    shape->task = weir_arena_strndup(shape->arena, task->name, strlen(task->name));
    return shape->task ? WEIR_OK : WEIR_NOMEM("for the shape of a network");
}

weir_err weir_nn_shape_open(const weir_schema *schema, const weir_nn_opts *opts, weir_nn_shape **shapep) {
    weir_nn_shape *shape = NULL;
    *shapep = NULL;
    weir_err err = weir_nn_shape_begin(weir_schema_vertex_count(schema), weir_schema_relation_count(schema), &shape);
    if (err) return err;
    shape->hidden = opts->hidden ? opts->hidden : HIDDEN_DEFAULT;
    shape->window = opts->window ? opts->window : WEIR_SAMPLE_WINDOW;
    shape->bare = opts->bare;
    shape->residual = opts->residual;
    shape->feed_forward = opts->feed_forward;
    shape->headless = opts->headless;
    shape->norm = opts->norm;
    shape->jump = opts->jump;
    shape->network = opts->network;
    shape->heads = opts->heads || !weir_nn_network_has_heads(opts->network) ? opts->heads : WEIR_NN_HEADS_DEFAULT;
    if (opts->step_count > WEIR_SAMPLE_STEPS_MAX)
        err = WEIR_ERR(WEIR_EINVAL, "%u steps; at most %u are possible", opts->step_count, WEIR_SAMPLE_STEPS_MAX);
    shape->step_count = err ? 0 : opts->step_count;
    if (shape->step_count > 0) memcpy(shape->steps, opts->steps, shape->step_count * sizeof *opts->steps);
    if (!err) err = shape_set_task(shape, schema, opts->task);
    for (uint32_t t = 0; !err && t < shape->types; t++)
        err = shape_add_vertex(shape, schema, opts, t);
    for (uint32_t r = 0; !err && r < shape->relations; r++) {
        const weir_schema_relation *relation = weir_schema_relation_at(schema, r);
        shape->ends[r] = (weir_sample_ends){(uint16_t)relation->from, (uint16_t)relation->to};
        err = weir_nn_inputs_begin(shape, &shape->edges[r], relation->name, relation->feature_count, 0);
        if (!err) err = shape_add_features(shape, &shape->edges[r], relation->features, relation->feature_count);
    }
    if (!err) err = weir_nn_shape_finish(shape);
    for (uint32_t i = 0; !err && i < opts->known_count; i++)
        err = weir_nn_shape_know(shape, &opts->known[i]);
    if (err)
        weir_nn_shape_free(shape);
    else
        *shapep = shape;
    return err;
}

void weir_nn_shape_free(weir_nn_shape *shape) {
    if (!shape) return;
    for (uint32_t t = 0; t < shape->types; t++)
        weir_free((void *)(uintptr_t)shape->vertices[t].known);
    weir_arena_close(shape->arena); /* the shape lies in it */
}

/* --- accessors --------------------------------------------------------------------------------------------------- */

uint32_t weir_nn_hidden(const weir_nn_shape *shape) {
    return shape->hidden;
}

bool weir_nn_residual(const weir_nn_shape *shape) {
    return shape->residual;
}

weir_nn_norm weir_nn_norm_of(const weir_nn_shape *shape) {
    return shape->norm;
}

const char *weir_nn_norm_word(weir_nn_norm norm) {
    WEIR_ASSERT(norm < WEIR_NN_NORMS);
    return weir_nn_norm_words[norm];
}

bool weir_nn_answers(const weir_nn_shape *shape, uint32_t layer) {
    WEIR_ASSERT(layer <= shape->layers);
    return shape->headless && layer == shape->layers;
}

uint32_t weir_nn_width(const weir_nn_shape *shape, uint32_t layer) {
    return weir_nn_answers(shape, layer) ? shape->outputs : shape->hidden;
}

uint32_t weir_nn_layer_heads(const weir_nn_shape *shape, uint32_t layer) {
    return weir_nn_answers(shape, layer) && shape->heads ? 1 : shape->heads;
}

weir_nn_jump weir_nn_jump_of(const weir_nn_shape *shape) {
    return shape->jump;
}

const char *weir_nn_jump_word(weir_nn_jump jump) {
    WEIR_ASSERT(jump < WEIR_NN_JUMPS);
    return weir_nn_jump_words[jump];
}

uint32_t weir_nn_head_rows(const weir_nn_shape *shape) {
    if (shape->headless) return 0;
    return shape->jump == WEIR_NN_JUMP_CONCAT ? shape->layers * shape->hidden : shape->hidden;
}

weir_nn_network weir_nn_network_of(const weir_nn_shape *shape) {
    return shape->network;
}

uint32_t weir_nn_heads(const weir_nn_shape *shape) {
    return shape->heads;
}

uint32_t weir_nn_layers(const weir_nn_shape *shape) {
    return shape->layers;
}

uint32_t weir_nn_outputs(const weir_nn_shape *shape) {
    return shape->outputs;
}

uint32_t weir_nn_target_type(const weir_nn_shape *shape) {
    return shape->target_type;
}

const char *weir_nn_task(const weir_nn_shape *shape) {
    return shape->task;
}

uint32_t weir_nn_window(const weir_nn_shape *shape) {
    return shape->window;
}

const weir_sample_step *weir_nn_steps(const weir_nn_shape *shape, uint32_t *countp) {
    *countp = shape->step_count;
    return shape->steps;
}

uint32_t weir_nn_types(const weir_nn_shape *shape) {
    return shape->types;
}

weir_nn_inputs *weir_nn_inputs_at(const weir_nn_shape *shape, uint32_t index) {
    WEIR_ASSERT(index < shape->types + shape->relations);
    return index < shape->types ? &shape->vertices[index] : &shape->edges[index - shape->types];
}

const weir_nn_inputs *weir_nn_vertex(const weir_nn_shape *shape, uint32_t type) {
    WEIR_ASSERT(type < shape->types);
    return &shape->vertices[type];
}

const weir_nn_inputs *weir_nn_edge(const weir_nn_shape *shape, uint32_t relation) {
    WEIR_ASSERT(relation < shape->relations);
    return &shape->edges[relation];
}

uint32_t weir_nn_below(const weir_nn_shape *shape, uint32_t type) {
    WEIR_ASSERT(type < shape->types);
    return shape->vertices[type].bare ? shape->vertices[type].width : shape->hidden;
}

bool weir_nn_sees(const weir_nn_shape *shape, uint32_t type) {
    return weir_nn_hop_of(shape, type) != UINT32_MAX;
}

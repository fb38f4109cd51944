/* SPDX-License-Identifier: Apache-2.0 */
/* nn.c - the tensors of a shape, where each begins, and what they hold at first. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <weir/store/base/assert.h>
#include <weir/store/base/hash.h>
#include <weir/store/base/rng.h>

#include "gather.h"

#define NN_BYTES_MAX ((size_t)64 << 20)

/* --- tensors ----------------------------------------------------------------------------------------------------- */

static uint64_t nn_add_tensor(weir_nn *nn, uint32_t rows, uint32_t cols, weir_nn_kind kind, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* Returns its offset. A name for which there is no memory is NULL, which nn_plan_tensors sees at the end. */
static uint64_t nn_add_tensor(weir_nn *nn, uint32_t rows, uint32_t cols, weir_nn_kind kind, const char *format, ...) {
    char name[WEIR_NN_TENSOR_NAME_MAX];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(name, sizeof name, format, arguments);
    va_end(arguments);
    WEIR_ASSERT(length > 0 && (size_t)length < sizeof name && nn->tensor_count < nn->tensor_room);
    weir_nn_tensor *tensor = &nn->tensors[nn->tensor_count];
    nn->kinds[nn->tensor_count++] = kind;
    *tensor = (weir_nn_tensor){.name = weir_arena_strndup(nn->arena, name, (size_t)length),
                               .offset = nn->parameters,
                               .rows = rows,
                               .cols = cols,
                               .decays = kind <= WEIR_NN_OWN,
                               .looked_up = kind == WEIR_NN_EMBEDDING || kind == WEIR_NN_OWN};
    nn->parameters += (uint64_t)rows * cols;
    return tensor->offset;
}

/* NULL: the network has all rows of the category's embedding. */
static const weir_nn_held *nn_find_held(const weir_nn *nn, uint32_t type, uint32_t category) {
    for (uint32_t i = 0; i < nn->held_count; i++)
        if (nn->held[i].type == type && nn->held[i].category == category) return &nn->held[i];
    return NULL;
}

static void nn_plan_encode(weir_nn *nn, uint32_t type, weir_nn_encode_slots *slots, uint64_t *categories,
                           bool *brought) {
    const weir_nn_inputs *inputs = &nn->shape->vertices[type];
    uint32_t hidden = nn->shape->hidden;
    *slots = (weir_nn_encode_slots){WEIR_NN_NO_TENSOR, WEIR_NN_NO_TENSOR, categories, brought};
    if (!weir_nn_sees(nn->shape, type) || inputs->bare) return;
    if (inputs->width > 0)
        slots->weight = nn_add_tensor(nn, inputs->width, hidden, WEIR_NN_WEIGHT, "encode.%s.weight", inputs->name);
    for (uint32_t c = 0; c < inputs->category_count; c++) {
        const weir_nn_category *category = &inputs->categories[c];
        const weir_nn_held *held = nn_find_held(nn, type, c);
        bool own = category->feature == WEIR_SCHEMA_NONE;
        uint32_t rows = !held ? category->slots : held->count ? held->count : 1;
        WEIR_ASSERT(!held || !held->count || held->slots[held->count - 1] < category->slots);
        categories[c] = own ? nn_add_tensor(nn, rows, hidden, WEIR_NN_OWN, "encode.%s.embedding", inputs->name)
                            : nn_add_tensor(nn, rows, hidden, WEIR_NN_EMBEDDING, "encode.%s.%s.embedding", inputs->name,
                                            category->name);
        brought[c] = nn->tensors[nn->tensor_count - 1].held = held != NULL;
        nn->held_rows[nn->tensor_count - 1] = held;
        nn->shared |= brought[c];
    }
    slots->bias = nn_add_tensor(nn, 1, hidden, inputs->known_count ? WEIR_NN_COMMON_BIAS : WEIR_NN_BIAS,
                                "encode.%s.bias", inputs->name);
}

static void nn_plan_type(weir_nn *nn, uint32_t layer, uint32_t type, weir_nn_type_slots *slots) {
    const char *name = nn->shape->vertices[type].name;
    const uint32_t hidden = nn->shape->hidden, width = weir_nn_width(nn->shape, layer);
    *slots = (weir_nn_type_slots){WEIR_NN_NO_TENSOR, WEIR_NN_NO_TENSOR, WEIR_NN_NO_TENSOR,
                                  WEIR_NN_NO_TENSOR, WEIR_NN_NO_TENSOR, WEIR_NN_NO_TENSOR};
    if (!weir_nn_layer_has(nn->shape, layer, type)) return;
    if (weir_nn_way_has_self(nn->shape, layer, type))
        slots->self = nn_add_tensor(nn, layer == 1 ? weir_nn_below(nn->shape, type) : hidden, width, WEIR_NN_WEIGHT,
                                    "layer%u.%s.self.weight", layer, name);
    slots->bias = nn_add_tensor(nn, 1, width, WEIR_NN_BIAS, "layer%u.%s.bias", layer, name);
    if (weir_nn_answers(nn->shape, layer)) return;
    if (nn->shape->feed_forward) {
        slots->dense = nn_add_tensor(nn, hidden, hidden, WEIR_NN_WEIGHT, "layer%u.%s.dense.weight", layer, name);
        slots->dense_bias = nn_add_tensor(nn, 1, hidden, WEIR_NN_BIAS, "layer%u.%s.dense.bias", layer, name);
    }
    if (nn->shape->norm == WEIR_NN_NORM_NONE) return;
    slots->gain = nn_add_tensor(nn, 1, hidden, WEIR_NN_GAIN, "layer%u.%s.norm.gain", layer, name);
    slots->shift = nn_add_tensor(nn, 1, hidden, WEIR_NN_BIAS, "layer%u.%s.norm.bias", layer, name);
}

/* What the network's way to gather has beside the weight, behind it. */
static void nn_plan_extras(weir_nn *nn, uint32_t layer, uint32_t step, weir_nn_extra_slots *slots) {
    const weir_nn_way *way = weir_nn_way_of(nn->shape);
    const weir_nn_widths widths = weir_nn_widths_of(nn->shape, layer, step);
    const weir_sample_step *s = &nn->shape->steps[step];
    weir_nn_extra list[WEIR_NN_EXTRAS];
    const uint32_t count = way->extras ? way->extras(&widths, list) : 0;
    WEIR_ASSERT(count <= WEIR_NN_EXTRAS);
    for (uint32_t i = 0; i < count; i++)
        slots->at[i] =
            nn_add_tensor(nn, list[i].rows, list[i].cols, list[i].kind, "layer%u.%s.%s.%s", layer,
                          nn->shape->edges[s->relation].name, s->direction == WEIR_OUT ? "out" : "in", list[i].name);
}

/* Steps of other hops along the same relation and direction have the same weights. */
static void nn_plan_step(weir_nn *nn, uint32_t layer, uint32_t step, uint64_t *neighbors, weir_nn_extra_slots *extras) {
    const weir_nn_shape *shape = nn->shape;
    const weir_sample_step *s = &shape->steps[step];
    neighbors[step] = WEIR_NN_NO_TENSOR;
    if (!weir_nn_layer_steps(shape, layer, step)) return;
    for (uint32_t i = 0; i < step; i++) {
        const weir_sample_step *other = &shape->steps[i];
        if (neighbors[i] == WEIR_NN_NO_TENSOR || other->relation != s->relation || other->direction != s->direction)
            continue;
        neighbors[step] = neighbors[i];
        extras[step] = extras[i];
        return;
    }
    neighbors[step] = nn_add_tensor(nn, weir_nn_way_rows(shape, layer, step) + weir_nn_edge_cols(nn, step),
                                    weir_nn_width(shape, layer), WEIR_NN_WEIGHT, "layer%u.%s.%s.weight", layer,
                                    shape->edges[s->relation].name, s->direction == WEIR_OUT ? "out" : "in");
    nn_plan_extras(nn, layer, step, &extras[step]);
}

/* Every tensor gets its place, in the order of the flat array. False: no memory. */
static bool nn_plan_tensors(weir_nn *nn) {
    const weir_nn_shape *shape = nn->shape;
    uint32_t layers = shape->layers, types = shape->types, categories = 0;
    for (uint32_t t = 0; t < types; t++)
        categories += shape->vertices[t].category_count;
    nn->tensor_room = /* if all is in reach */
        2 * types + categories + layers * (6 * types + (1 + WEIR_NN_EXTRAS) * shape->step_count) + 2;
    nn->tensors = weir_arena_calloc(nn->arena, nn->tensor_room, sizeof *nn->tensors);
    nn->kinds = weir_arena_calloc(nn->arena, nn->tensor_room, sizeof *nn->kinds);
    nn->held_rows = weir_arena_calloc(nn->arena, nn->tensor_room, sizeof *nn->held_rows);
    weir_nn_encode_slots *encode = weir_arena_calloc(nn->arena, types, sizeof *encode);
    weir_nn_type_slots *slots = weir_arena_calloc(nn->arena, (size_t)layers * types, sizeof *slots);
    uint64_t *neighbors = weir_arena_calloc(nn->arena, (size_t)layers * shape->step_count, sizeof *neighbors);
    weir_nn_extra_slots *extras = weir_arena_calloc(nn->arena, (size_t)layers * shape->step_count, sizeof *extras);
    uint64_t *embeddings = weir_arena_calloc(nn->arena, categories + 1, sizeof *embeddings);
    bool *brought = weir_arena_calloc(nn->arena, categories + 1, sizeof *brought);
    uint64_t *begins = weir_arena_calloc(nn->arena, (size_t)layers + 2, sizeof *begins);
    if (!nn->tensors || !nn->kinds || !nn->held_rows || !encode || !slots || !neighbors || !extras || !embeddings ||
        !brought || !begins)
        return false;

    for (uint32_t t = 0, at = 0; t < types; at += shape->vertices[t++].category_count)
        nn_plan_encode(nn, t, &encode[t], embeddings + at, brought + at);
    for (uint32_t l = 1; l <= layers; l++) {
        begins[l] = nn->parameters;
        for (uint32_t t = 0; t < types; t++)
            nn_plan_type(nn, l, t, &slots[(l - 1) * types + t]);
        for (uint32_t s = 0; s < shape->step_count; s++)
            nn_plan_step(nn, l, s, &neighbors[(l - 1) * shape->step_count], &extras[(l - 1) * shape->step_count]);
    }
    begins[layers + 1] = nn->parameters;
    nn->plan =
        (weir_nn_plan){.encode = encode, .types = slots, .neighbors = neighbors, .extras = extras, .begins = begins};
    nn->plan.head_weight = nn->plan.head_bias = WEIR_NN_NO_TENSOR;
    if (!shape->headless) {
        nn->plan.head_weight =
            nn_add_tensor(nn, weir_nn_head_rows(shape), shape->outputs, WEIR_NN_WEIGHT, "head.weight");
        nn->plan.head_bias = nn_add_tensor(nn, 1, shape->outputs, WEIR_NN_BIAS, "head.bias");
    }
    for (uint32_t i = 0; i < nn->tensor_count; i++)
        if (!nn->tensors[i].name) return false;
    WEIR_ASSERT(nn->parameters <= WEIR_NN_PARAMETERS_MAX);
    return true;
}

weir_err weir_nn_open(const weir_nn_shape *shape, const weir_kernels *kernels, weir_nn **nnp) {
    return weir_nn_open_share(shape, kernels, NULL, 0, nnp);
}

weir_err weir_nn_open_share(const weir_nn_shape *shape, const weir_kernels *kernels, const weir_nn_held *held,
                            uint32_t count, weir_nn **nnp) {
    weir_arena *arena = NULL;
    *nnp = NULL;
    weir_err err = weir_arena_open(NN_BYTES_MAX, &arena);
    if (err) return err;
    weir_nn *nn = weir_arena_calloc(arena, 1, sizeof *nn);
    weir_nn_held *copy = weir_arena_calloc(arena, (size_t)count + 1, sizeof *copy);
    if (nn) *nn = (weir_nn){.shape = shape, .kernels = kernels, .arena = arena, .held = copy, .held_count = count};
    if (copy && count) memcpy(copy, held, count * sizeof *copy);
    if (!nn || !copy || !nn_plan_tensors(nn)) {
        weir_arena_close(arena);
        return WEIR_NOMEM("for the tensors of a network");
    }
    *nnp = nn;
    return WEIR_OK;
}

void weir_nn_close(weir_nn *nn) {
    if (nn) weir_arena_close(nn->arena); /* the network lies in it */
}

/* --- accessors --------------------------------------------------------------------------------------------------- */

const weir_nn_shape *weir_nn_shape_of(const weir_nn *nn) {
    return nn->shape;
}

const weir_kernels *weir_nn_kernels(const weir_nn *nn) {
    return nn->kernels;
}

uint64_t weir_nn_parameter_count(const weir_nn *nn) {
    return nn->parameters;
}

const weir_nn_tensor *weir_nn_tensors(const weir_nn *nn, uint32_t *countp) {
    *countp = nn->tensor_count;
    return nn->tensors;
}

const weir_nn_tensor *weir_nn_tensor_find(const weir_nn *nn, const char *name) {
    for (uint32_t i = 0; i < nn->tensor_count; i++) {
        if (strcmp(nn->tensors[i].name, name) == 0) return &nn->tensors[i];
    }
    return NULL;
}

const weir_nn_plan *weir_nn_plan_of(const weir_nn *nn) {
    return &nn->plan;
}

uint32_t weir_nn_edge_cols(const weir_nn *nn, uint32_t step) {
    WEIR_ASSERT(step < nn->shape->step_count);
    return nn->shape->edges[nn->shape->steps[step].relation].width + WEIR_TIME_CODE_COUNT + 1;
}

/* --- first values ------------------------------------------------------------------------------------------------ */

void weir_nn_init(const weir_nn *nn, uint64_t seed, weir_real *params) {
    for (uint32_t i = 0; i < nn->tensor_count; i++) {
        const weir_nn_tensor *tensor = &nn->tensors[i];
        const weir_nn_held *held = nn->held_rows[i];
        weir_real *values = params + tensor->offset;
        WEIR_ASSERT(tensor->offset + (uint64_t)tensor->rows * tensor->cols <= nn->parameters);
        double middle = 0, reach = 0;
        switch (nn->kinds[i]) {
        case WEIR_NN_WEIGHT:
            reach = sqrt(6.0 / ((double)tensor->rows + tensor->cols));
            break;
        case WEIR_NN_EMBEDDING:
            reach = 1 / sqrt(nn->shape->hidden);
            break;
        case WEIR_NN_COMMON_BIAS: /* above 0: relu lets no gradient through to a vertex that has nothing else */
            middle = reach = 0.5 / sqrt(nn->shape->hidden);
            break;
        case WEIR_NN_GAIN:
            middle = 1;
            break;
        case WEIR_NN_OWN: // NN-N8
        case WEIR_NN_BIAS:
            break;
        }
        weir_rng rng = weir_rng_stream(seed, weir_xxh3(tensor->name, strlen(tensor->name), 0), 0); // NN-N6
        uint32_t rows = held ? held->count : tensor->rows;
        for (uint32_t row = 0, next = 0; next < rows; row++) {
            WEIR_ASSERT(!held || held->slots[next] >= row);
            bool here = !held || held->slots[next] == row; /* else another share has what is drawn */
            for (uint32_t c = 0; c < tensor->cols; c++) {
                double value = reach > 0 ? middle + reach * (2 * weir_rng_double(&rng) - 1) : middle;
                if (here) *values++ = (weir_real)value;
            }
            next += here;
        }
    }
}

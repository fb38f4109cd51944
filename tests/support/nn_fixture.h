/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nn_fixture.h - a small network on a small random graph with a random batch, and the same network once more as naive
 * loops in double: from names of tensors and lists of edges, with nothing of the plan, the offsets or the kernels.
 */
#ifndef WEIR_NN_FIXTURE_H
#define WEIR_NN_FIXTURE_H

#include <math.h>
#include <stdio.h>
#include <string.h>

#include <weir/inference/nn/nn.h>
#include <weir/inference/nn/tape.h>
#include <weir/store/sample/sampler.h>

#include "arrays_fixture.h"
#include "weir_test.h"

#define NN_TARGETS  12u
#define NN_WIDEST   16u /* columns of a type are at most so many */
#define NN_LAST_US  ((int64_t)40 * 86400 * WEIR_US)
#define WEIR_US     1000000
#define NN_STEPS(a) (a), sizeof(a) / sizeof *(a)

#define NN_SCHEMA(c, d)                                                                                     \
    "version: 1\n"                                                                                          \
    "name: tiny\n"                                                                                          \
    "vertices:\n"                                                                                           \
    "  a:\n"                                                                                                \
    "    features:\n"                                                                                       \
    "      x: {kind: number, normalise: standard}\n" c "      y: {kind: number, normalise: log-standard}\n" \
    "      born: {kind: time}\n" d "  b:\n"                                                                 \
    "    features:\n"                                                                                       \
    "      z: {kind: number, normalise: min-max}\n"                                                         \
    "  lonely: {}\n"                                                                                        \
    "relations:\n"                                                                                          \
    "  ab:\n"                                                                                               \
    "    from: a\n"                                                                                         \
    "    to: b\n"                                                                                           \
    "    features:\n"                                                                                       \
    "      w: {kind: number}\n"                                                                             \
    "  aa: {from: a, to: a}\n"                                                                              \
    "aggregates:\n"                                                                                         \
    "  out_1d: {vertex: a, relation: ab, function: count, window: 1d, "                                     \
    "normalise: log-standard}\n"                                                                            \
    "labels:\n"                                                                                             \
    "  mark: {vertex: a, values: [no, yes], lag: 1d}\n"                                                     \
    "  kind: {vertex: a, values: [one, two, three], lag: 1d}\n"                                             \
    "tasks:\n"                                                                                              \
    "  find: {kind: classify, label: mark, positive: yes}\n"                                                \
    "  sort: {kind: classify, label: kind}\n"

static const char nn_schema_text[] =
    NN_SCHEMA("      c: {kind: category, values: [p, q, r]}\n", "      d: {kind: category, buckets: 5}\n");
static const char nn_schema_of_numbers[] = NN_SCHEMA("", "");

/* Which types have an encoder: all; a, with its categories, but not b; neither, of the schema without categories; all,
 * of a network whose layers add. */
typedef enum nn_encoders { NN_ALL, NN_OF_CATEGORIES, NN_NONE, NN_RESIDUAL } nn_encoders;

/* Two hops; and a third, of layers that add: so one adds to what another has added. */
#define NN_STEP_COUNT          5u
#define NN_STEP_COUNT_RESIDUAL 6u
static const weir_sample_step nn_steps[NN_STEP_COUNT_RESIDUAL] = {
    {.hop = 1, .fanout = 4, .relation = 0, .direction = WEIR_OUT, .strategy = WEIR_SAMPLE_UNIFORM},
    {.hop = 1, .fanout = 3, .relation = 1, .direction = WEIR_OUT, .strategy = WEIR_SAMPLE_UNIFORM},
    {.hop = 1, .fanout = 3, .relation = 1, .direction = WEIR_IN, .strategy = WEIR_SAMPLE_RECENT},
    {.hop = 2, .fanout = 4, .relation = 0, .direction = WEIR_IN, .strategy = WEIR_SAMPLE_UNIFORM},
    {.hop = 2, .fanout = 3, .relation = 1, .direction = WEIR_OUT, .strategy = WEIR_SAMPLE_UNIFORM},
    {.hop = 3, .fanout = 3, .relation = 0, .direction = WEIR_OUT, .strategy = WEIR_SAMPLE_RECENT},
};

/* The vertex type that each leads to. */
static const uint32_t nn_children[NN_STEP_COUNT_RESIDUAL] = {1, 0, 0, 0, 0, 1};

/* Vertices of type b that have embeddings of their own. */
static const uint64_t nn_known_ids[] = {3, 17, 18, 1000, 5000000000, UINT64_MAX - 1, UINT64_MAX};
#define NN_KNOWN ((uint32_t)(sizeof nn_known_ids / sizeof *nn_known_ids))

typedef struct nn_fixture {
    weir_rng rng;
    arrays_fixture graph;
    weir_sample_arrays arrays; /* the graph's, and a type without vertices */
    weir_sample_source *source;
    weir_sampler *sampler;
    weir_block *block;
    weir_schema *schema;
    nn_encoders encoders;
    weir_nn_shape *shape;
    weir_nn *nn;
    weir_real *params;
    uint64_t vertices[3];
    const uint64_t *ids[3];
    weir_real *numbers[3], *edges[WEIR_SAMPLE_STEPS_MAX];
    uint32_t *slots[3];
    weir_nn_batch batch;
} nn_fixture;

static inline double nn_normal(nn_fixture *f) {
    return weir_rng_normal(&f->rng);
}

/* Vertices of type b have embeddings of their own where all types have encoders. */
static inline void nn_open_as(nn_fixture *f, uint64_t seed, const char *task, uint32_t hidden, nn_encoders encoders) {
    *f = (nn_fixture){.rng = weir_rng_stream(seed, 7, 0)};
    fixture_random(&f->graph, &f->rng, 50, 500, (uint64_t)NN_LAST_US);
    const char *text = encoders == NN_NONE ? nn_schema_of_numbers : nn_schema_text;
    assert_ok(weir_schema_parse("tiny.yaml", text, strlen(text), &f->schema));
    f->encoders = encoders;
    weir_nn_opts opts = {.task = weir_schema_task_find(f->schema, task), .hidden = hidden, .window = 20};
    opts.steps = nn_steps;
    opts.step_count = encoders == NN_RESIDUAL ? NN_STEP_COUNT_RESIDUAL : NN_STEP_COUNT;
    const weir_nn_known known = {1, nn_known_ids, NN_KNOWN};
    opts.known = &known;
    opts.residual = encoders == NN_RESIDUAL;
    opts.known_count = encoders == NN_ALL || encoders == NN_RESIDUAL;
    opts.bare = !opts.known_count;
    assert_ok(weir_nn_shape_open(f->schema, &opts, &f->shape));
    assert_ok(weir_nn_open(f->shape, weir_kernels_cpu(), &f->nn));
    f->params = fixture_array(weir_nn_parameter_count(f->nn), sizeof *f->params);
    weir_nn_init(f->nn, seed, f->params);
    for (uint64_t i = 0; i < weir_nn_parameter_count(f->nn); i++)
        f->params[i] += (weir_real)(0.1 * nn_normal(f)); /* no bias of 0, no gain of 1 */
    for (unsigned t = 0; t < 2; t++) {
        f->vertices[t] = f->graph.vertices[t];
        f->ids[t] = f->graph.ids[t];
    }
    f->arrays = f->graph.arrays;
    f->arrays.types = 3;
    f->arrays.vertices = f->vertices;
    f->arrays.ids = f->ids;
    weir_sample_opts sample = {.steps = nn_steps, .step_count = opts.step_count, .window = 20, .seed = seed};
    sample.targets_max = NN_TARGETS;
    assert_ok(weir_sample_over_arrays(&f->arrays, &f->source));
    assert_ok(weir_sampler_open(&sample, f->source, &f->sampler));
    assert_ok(weir_block_open(f->sampler, &f->block));
}

static inline void nn_open(nn_fixture *f, uint64_t seed, const char *task, uint32_t hidden) {
    nn_open_as(f, seed, task, hidden, NN_ALL);
}

/* Floats of a vertex are a function of it, so that the same target is the same in every batch. */
static inline void nn_fill_type(nn_fixture *f, uint32_t type) {
    const weir_block_view *v = f->batch.block;
    const weir_nn_inputs *inputs = weir_nn_vertex(f->shape, type);
    weir_block_range range = v->input_ranges[type];
    free(f->numbers[type]);
    free(f->slots[type]);
    f->numbers[type] = fixture_array((size_t)(range.end - range.begin) * inputs->width, sizeof(weir_real));
    f->slots[type] = fixture_array((size_t)(range.end - range.begin) * inputs->category_count, sizeof(uint32_t));
    for (uint32_t row = 0; row < range.end - range.begin; row++) {
        weir_rng rng = weir_rng_stream(11, v->vertices[v->input_nodes[range.begin + row]], type);
        for (uint32_t c = 0; c < inputs->width; c++)
            f->numbers[type][row * inputs->width + c] = (weir_real)weir_rng_normal(&rng);
        for (uint32_t c = 0; c < inputs->category_count; c++) {
            const weir_nn_category *category = &inputs->categories[c];
            bool own = category->feature == WEIR_SCHEMA_NONE; /* some are unknown */
            uint32_t slot = (uint32_t)weir_rng_below(&rng, category->slots + (own ? 2 : 0));
            f->slots[type][row * inputs->category_count + c] = slot < category->slots ? slot : WEIR_NO_SLOT;
        }
    }
}

static inline void nn_fill_step(nn_fixture *f, uint32_t step) {
    const weir_block_edges *e = &f->batch.block->edges[step];
    uint32_t width = weir_nn_edge(f->shape, nn_steps[step].relation)->width;
    free(f->edges[step]);
    f->edges[step] = fixture_array((size_t)e->count * width, sizeof(weir_real));
    for (uint32_t i = 0; i < e->count; i++) {
        weir_rng rng = weir_rng_stream(12, e->refs[i], step);
        for (uint32_t c = 0; c < width; c++)
            f->edges[step][i * width + c] = (weir_real)weir_rng_normal(&rng);
    }
}

/* Random inputs for this block. */
static inline void nn_bring(nn_fixture *f, const weir_block_view *block) {
    f->batch.block = block;
    for (uint32_t t = 0; t < 3; t++)
        nn_fill_type(f, t);
    for (uint32_t s = 0; s < block->steps; s++)
        nn_fill_step(f, s);
    f->batch.numbers = (const weir_real *const *)f->numbers;
    f->batch.slots = (const uint32_t *const *)f->slots;
    f->batch.edges = (const weir_real *const *)f->edges;
}

static inline void nn_sample(nn_fixture *f, const weir_target *targets, uint32_t count) {
    assert_ok(weir_sample(f->sampler, targets, count, f->block));
    weir_block_inputs(f->sampler, f->block, false);
    nn_bring(f, weir_block_look(f->block));
}

static inline void nn_targets(nn_fixture *f, weir_target *targets, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) {
        targets[i] = (weir_target){.vertex = weir_rng_below(&f->rng, f->graph.vertices[0]),
                                   .before_us = 1 + (int64_t)weir_rng_below(&f->rng, (uint64_t)NN_LAST_US)};
    }
}

static inline void nn_random_batch(nn_fixture *f) {
    weir_target targets[NN_TARGETS];
    nn_targets(f, targets, NN_TARGETS);
    nn_sample(f, targets, NN_TARGETS);
}

static inline void nn_close(nn_fixture *f) {
    for (uint32_t t = 0; t < 3; t++) {
        free(f->numbers[t]);
        free(f->slots[t]);
    }
    for (uint32_t s = 0; s < WEIR_SAMPLE_STEPS_MAX; s++)
        free(f->edges[s]);
    free(f->params);
    weir_nn_close(f->nn);
    weir_nn_shape_free(f->shape);
    weir_schema_free(f->schema);
    weir_block_close(f->block);
    weir_sampler_close(f->sampler);
    weir_sample_source_close(f->source);
    fixture_close(&f->graph);
}

/* --- the naive network ------------------------------------------------------------------------------------------- */

static inline const double *naive_tensor(const nn_fixture *f, const double *params, const char *name) {
    const weir_nn_tensor *tensor = weir_nn_tensor_find(f->nn, name);
    if (!tensor) fail_msg("no tensor %s", name);
    return params + tensor->offset;
}

#define NAIVE(f, params, ...) \
    (snprintf(naive_name, sizeof naive_name, __VA_ARGS__), naive_tensor((f), (params), naive_name))
static char naive_name[WEIR_NN_TENSOR_NAME_MAX];

static inline void naive_where(const weir_block_view *v, uint32_t node, uint32_t *hopp, uint32_t *typep) {
    for (uint32_t i = 0; i < (v->hops + 1) * v->types; i++) {
        if (node < v->ranges[i].begin || node >= v->ranges[i].end) continue;
        *hopp = i / v->types;
        *typep = i % v->types;
        return;
    }
    fail_msg("node %u is nowhere", node);
}

static inline void naive_apply(uint32_t in, uint32_t out, const double *x, const double *weight, double *y) {
    for (uint32_t i = 0; i < in; i++) {
        for (uint32_t o = 0; o < out; o++)
            y[o] += x[i] * weight[i * out + o];
    }
}

static inline void naive_relu(uint32_t n, const double *bias, double *y) {
    for (uint32_t i = 0; i < n; i++)
        y[i] = fmax(0, y[i] + bias[i]);
}

/* What layer 1 sees of a type without an encoder is its numbers. */
static inline uint32_t naive_cols(const nn_fixture *f, uint32_t layer, uint32_t type) {
    const weir_nn_inputs *inputs = weir_nn_vertex(f->shape, type);
    assert_int_equal(inputs->bare, f->encoders == NN_NONE || (f->encoders == NN_OF_CATEGORIES && type == 1));
    assert_true(inputs->width <= NN_WIDEST);
    return layer == 1 && inputs->bare ? inputs->width : weir_nn_hidden(f->shape);
}

/* From one node to the next, of what a layer sees. */
static inline uint32_t naive_stride(const nn_fixture *f, uint32_t layer) {
    uint32_t hidden = weir_nn_hidden(f->shape);
    return layer == 1 && hidden < NN_WIDEST ? NN_WIDEST : hidden;
}

static inline void naive_encode(const nn_fixture *f, const double *params, uint32_t node, double *h) {
    const weir_block_view *v = f->batch.block;
    uint32_t hop = 0, type = 0, hidden = weir_nn_hidden(f->shape);
    naive_where(v, node, &hop, &type);
    const weir_nn_inputs *inputs = weir_nn_vertex(f->shape, type);
    uint32_t row = v->input_of[node] - v->input_ranges[type].begin;
    double x[64] = {0};
    for (uint32_t i = 0; i < inputs->width; i++)
        x[i] = (double)f->numbers[type][row * inputs->width + i];
    if (inputs->bare) {
        memcpy(h, x, inputs->width * sizeof *h);
        return;
    }
    if (inputs->width) naive_apply(inputs->width, hidden, x, NAIVE(f, params, "encode.%s.weight", inputs->name), h);
    for (uint32_t c = 0; c < inputs->category_count; c++) {
        double one = 1;
        uint32_t slot = f->slots[type][row * inputs->category_count + c];
        const double *table =
            inputs->categories[c].feature == WEIR_SCHEMA_NONE
                ? NAIVE(f, params, "encode.%s.embedding", inputs->name)
                : NAIVE(f, params, "encode.%s.%s.embedding", inputs->name, inputs->categories[c].name);
        if (slot != WEIR_NO_SLOT) naive_apply(1, hidden, &one, table + slot * hidden, h);
    }
    naive_relu(hidden, NAIVE(f, params, "encode.%s.bias", inputs->name), h);
}

/* [mean of children | mean of edge numbers | mean of the time code | log(1 + children)] */
static inline uint32_t naive_message(const nn_fixture *f, uint32_t layer, uint32_t step, uint32_t node,
                                     const double *below, double *m) {
    const weir_block_view *v = f->batch.block;
    const weir_block_edges *e = &v->edges[step];
    uint32_t hidden = naive_cols(f, layer, nn_children[step]), count = 0, stride = naive_stride(f, layer);
    uint32_t width = weir_nn_edge(f->shape, nn_steps[step].relation)->width, cols = hidden + width + 8;
    memset(m, 0, (cols + 1) * sizeof *m);
    for (uint32_t i = 0; i < e->count; i++) {
        if (e->parents[i] != node) continue;
        double age = (double)(v->before_us[v->groups[node]] - e->times[i]) / 1e6;
        count++;
        for (uint32_t c = 0; c < hidden; c++)
            m[c] += below[e->children[i] * stride + c];
        for (uint32_t c = 0; c < width; c++)
            m[hidden + c] += (double)f->edges[step][i * width + c];
        for (uint32_t k = 0; k < 8; k++) {
            double first = log(2), space = (log1p(400.0 * 86400) - first) / 7;
            m[hidden + width + k] += exp(-pow((log1p(age) - first - k * space) / space, 2));
        }
    }
    for (uint32_t c = 0; count && c < cols; c++)
        m[c] /= count;
    m[cols] = log(1 + (double)count);
    return cols + 1;
}

static inline void naive_norm(uint32_t n, const double *gain, const double *shift, double *y) {
    double mean = 0, variance = 0;
    for (uint32_t i = 0; i < n; i++)
        mean += y[i] / n;
    for (uint32_t i = 0; i < n; i++)
        variance += (y[i] - mean) * (y[i] - mean) / n;
    for (uint32_t i = 0; i < n; i++)
        y[i] = (y[i] - mean) / sqrt(variance + 1e-5) * gain[i] + shift[i];
}

static inline void naive_layer(const nn_fixture *f, const double *params, uint32_t layer, uint32_t node,
                               const double *below, double *out) {
    uint32_t hop = 0, type = 0, hidden = weir_nn_hidden(f->shape);
    double m[256];
    naive_where(f->batch.block, node, &hop, &type);
    const char *name = weir_nn_vertex(f->shape, type)->name;
    naive_apply(naive_cols(f, layer, type), hidden, below + node * naive_stride(f, layer),
                NAIVE(f, params, "layer%u.%s.self.weight", layer, name), out);
    for (uint32_t s = 0; s < f->batch.block->steps; s++) {
        const weir_block_edges *e = &f->batch.block->edges[s];
        if (node < e->parent_begin || node >= e->parent_end) continue;
        const char *relation = weir_nn_edge(f->shape, nn_steps[s].relation)->name;
        const char *direction = nn_steps[s].direction == WEIR_OUT ? "out" : "in";
        uint32_t cols = naive_message(f, layer, s, node, below, m);
        naive_apply(cols, hidden, m, NAIVE(f, params, "layer%u.%s.%s.weight", layer, relation, direction), out);
    }
    naive_relu(hidden, NAIVE(f, params, "layer%u.%s.bias", layer, name), out);
    const double *gain = NAIVE(f, params, "layer%u.%s.norm.gain", layer, name);
    naive_norm(hidden, gain, NAIVE(f, params, "layer%u.%s.norm.bias", layer, name), out);
}

/* The mask is the kernel's own: what is dropped is tested apart, that it is dropped both ways here. */
static inline void naive_dropout(const nn_fixture *f, const weir_nn_drop *drop, uint32_t layer, uint32_t nodes,
                                 double *out) {
    uint32_t hidden = weir_nn_hidden(f->shape);
    weir_real *mask = fixture_array((size_t)nodes * hidden, sizeof *mask);
    weir_dropout dropout = weir_nn_dropout_of(drop, layer);
    for (size_t i = 0; i < (size_t)nodes * hidden; i++)
        mask[i] = 1;
    weir_nn_kernels(f->nn)->dropout(nodes, hidden, &dropout, mask);
    for (size_t i = 0; i < (size_t)nodes * hidden; i++)
        out[i] *= (double)mask[i];
    free(mask);
}

/* The rows of the last of so many layers, to be freed. */
static inline double *naive_layers(const nn_fixture *f, const double *params, const weir_nn_drop *drop,
                                   uint32_t layers) {
    const weir_block_view *v = f->batch.block;
    uint32_t hidden = weir_nn_hidden(f->shape);
    double *below = fixture_array((size_t)v->nodes * naive_stride(f, 1), sizeof *below);
    for (uint32_t n = 0; n < v->nodes; n++)
        naive_encode(f, params, n, below + n * naive_stride(f, 1));
    for (uint32_t layer = 1; layer <= layers; layer++) {
        double *out = fixture_array((size_t)v->nodes * hidden, sizeof *out);
        for (uint32_t n = 0; n < v->hop_end[v->hops - layer]; n++)
            naive_layer(f, params, layer, n, below, out + n * hidden);
        if (drop) naive_dropout(f, drop, layer, v->hop_end[v->hops - layer], out);
        for (size_t i = 0; f->encoders == NN_RESIDUAL && layer > 1 && i < v->hop_end[v->hops - layer] * hidden; i++)
            out[i] += below[i];
        free(below);
        below = out;
    }
    return below;
}

/* drop may be NULL. logits: targets x outputs. */
static inline void naive_forward(const nn_fixture *f, const double *params, const weir_nn_drop *drop, double *logits) {
    const weir_block_view *v = f->batch.block;
    uint32_t hidden = weir_nn_hidden(f->shape), outputs = weir_nn_outputs(f->shape);
    double *below = naive_layers(f, params, drop, v->hops);
    memset(logits, 0, v->targets * outputs * sizeof *logits);
    for (uint32_t t = 0; t < v->targets; t++) {
        double one = 1;
        naive_apply(hidden, outputs, below + t * hidden, NAIVE(f, params, "head.weight"), logits + t * outputs);
        naive_apply(1, outputs, &one, NAIVE(f, params, "head.bias"), logits + t * outputs);
    }
    free(below);
}

#endif /* WEIR_NN_FIXTURE_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nn_fixture.h - a small network on a small random graph with a random batch.
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

/* How a network is built beside the way it gathers. Where nothing else is said all types have an encoder and layers
 * end with a norm. */
typedef enum nn_encoders {
    NN_ALL,
    NN_OF_CATEGORIES,   /* but b has no encoder                              */
    NN_NONE,            /* neither has                                       */
    NN_RESIDUAL,        /* three layers that add                             */
    NN_CONCAT,          /* a head that sees the layers side by side          */
    NN_MOST,            /* three layers that add, and of which it sees most  */
    NN_HEADLESS,        /* three layers that add, but for the last: no head  */
    NN_PLAIN,           /* the same without norms                            */
    NN_DENSE,           /* three layers that add and feed forward            */
    NN_PLAIN_DENSE,     /* the same without norms and head                   */
    NN_STREAM,          /* the same with norms of what is added up, a head   */
    NN_STREAM_HEADLESS, /* three layers that add, norms of that, and no head */
    NN_FLAT,            /* no encoders, norms or head; feeds forward         */
    NN_FLAT_CONCAT      /* as NN_CONCAT without norms                        */
} nn_encoders;

static inline bool nn_bare(nn_encoders encoders) {
    return encoders == NN_NONE || encoders == NN_FLAT;
}

static inline bool nn_concat(nn_encoders encoders) {
    return encoders == NN_CONCAT || encoders == NN_FLAT_CONCAT;
}

static inline bool nn_adds(nn_encoders encoders) {
    return encoders == NN_RESIDUAL || (encoders >= NN_MOST && encoders < NN_FLAT);
}

static inline bool nn_feeds_forward(nn_encoders encoders) {
    return encoders == NN_DENSE || encoders == NN_PLAIN_DENSE || encoders == NN_STREAM || encoders == NN_FLAT;
}

static inline bool nn_normless(nn_encoders encoders) {
    return encoders == NN_PLAIN || encoders == NN_PLAIN_DENSE || encoders >= NN_FLAT;
}

static inline bool nn_has_stream(nn_encoders encoders) {
    return encoders == NN_STREAM || encoders == NN_STREAM_HEADLESS;
}

static inline bool nn_headless(nn_encoders encoders) {
    return encoders == NN_HEADLESS || encoders == NN_STREAM_HEADLESS ||
           (nn_normless(encoders) && encoders != NN_FLAT_CONCAT);
}

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
    uint64_t serial; /* differs from that of every other of the program */
    weir_rng rng;
    arrays_fixture graph;
    weir_sample_arrays arrays; /* the graph's, and a type without vertices */
    weir_sample_source *source;
    weir_sampler *sampler;
    weir_block *block;
    weir_schema *schema;
    nn_encoders encoders;
    weir_nn_network network;
    const weir_nn_drop *drop; /* of the pass that is compared; NULL: none */
    double each;              /* how many edges one stands for, where some are left out */
    weir_nn_shape *shape;
    weir_nn *nn;
    weir_real *params;
    uint64_t vertices[3];
    const uint64_t *ids[3];
    weir_real *numbers[3], *edges[WEIR_SAMPLE_STEPS_MAX];
    uint32_t *slots[3];
    weir_nn_batch batch;
} nn_fixture;

static inline void nn_near(double actual, double expected, double error) {
    if (!(fabs(actual - expected) <= error)) fail_msg("%.12g should be %.12g", actual, expected);
}

/* Of arrays of the host's. */
static inline double nn_loss(uint32_t outputs, const weir_loss *loss, weir_real *dlogits) {
    double sum = 0;
    weir_kernels_cpu()->loss(weir_kernels_cpu(), outputs, loss, dlogits, &sum);
    return sum;
}

static inline double nn_normal(nn_fixture *f) {
    return weir_rng_normal(&f->rng);
}

/* Vertices of type b have embeddings of their own where all types have encoders. heads: 0: as many as there are if
 * nobody says. */
static inline void nn_open_network(nn_fixture *f, uint64_t seed, const char *task, uint32_t hidden,
                                   nn_encoders encoders, weir_nn_network network, uint32_t heads) {
    static uint64_t opened;
    *f = (nn_fixture){.serial = ++opened, .rng = weir_rng_stream(seed, 7, 0), .network = network, .each = 1};
    fixture_random(&f->graph, &f->rng, 50, 500, (uint64_t)NN_LAST_US);
    const char *text = nn_bare(encoders) ? nn_schema_of_numbers : nn_schema_text;
    assert_ok(weir_schema_parse("tiny.yaml", text, strlen(text), &f->schema));
    f->encoders = encoders;
    weir_nn_opts opts = {.task = weir_schema_task_find(f->schema, task), .hidden = hidden, .window = 20};
    opts.steps = nn_steps;
    opts.step_count = nn_adds(encoders) ? NN_STEP_COUNT_RESIDUAL : NN_STEP_COUNT;
    const weir_nn_known known = {1, nn_known_ids, NN_KNOWN};
    opts.known = &known;
    opts.residual = nn_adds(encoders);
    opts.feed_forward = nn_feeds_forward(encoders);
    opts.headless = nn_headless(encoders);
    opts.norm = nn_has_stream(encoders) ? WEIR_NN_NORM_STREAM
                : nn_normless(encoders) ? WEIR_NN_NORM_NONE
                                        : WEIR_NN_NORM_LAYER;
    opts.jump = nn_concat(encoders) ? WEIR_NN_JUMP_CONCAT : encoders == NN_MOST ? WEIR_NN_JUMP_MAX : WEIR_NN_JUMP_NONE;
    opts.network = network;
    opts.heads = heads;
    opts.known_count = encoders != NN_OF_CATEGORIES && !nn_bare(encoders);
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

static inline void nn_open_as(nn_fixture *f, uint64_t seed, const char *task, uint32_t hidden, nn_encoders encoders) {
    nn_open_network(f, seed, task, hidden, encoders, WEIR_NN_MEAN, 0);
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

#endif /* WEIR_NN_FIXTURE_H */

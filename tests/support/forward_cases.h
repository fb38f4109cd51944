/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forward_cases.h - the way forward against the naive network, which is double in both builds. In double nothing but
 * the order of sums differs; in float a network makes what was rounded larger, and how much depends on its parameters.
 */
#ifndef WEIR_FORWARD_CASES_H
#define WEIR_FORWARD_CASES_H

#include <weir/store/base/alloc.h>
#include <weir/store/sample/sampler.h>

#include "naive_network.h"

#define OUTPUTS_MAX 3u

/* A layer norm over few columns, which may be nearly equal, makes what was rounded larger; so do a deviation, which is
 * what two sums leave of each other, and a most: by up to 3e-5 in three of 600 random networks. */
static inline double forward_tolerance(uint32_t hidden, weir_nn_network network) {
#ifdef WEIR_REAL_DOUBLE
    (void)hidden, (void)network;
    return 1e-11;
#else
    return hidden < 8 ? 1e-4 : network == WEIR_NN_MEAN ? 1e-5 : 5e-5;
#endif
}

static inline void run_forward(nn_fixture *f, bool tape, weir_real *logits, weir_real *embeddings) {
    weir_nn_workspace *workspace = NULL;
    assert_ok(weir_nn_workspace_open(f->nn, tape, &workspace));
    for (unsigned i = 0; i < 3; i++) /* the 2nd pass has its memory in one piece; the 3rd allocates nothing */
        assert_ok(weir_nn_forward(f->nn, f->params, &f->batch, NULL, workspace, logits, embeddings));
    assert_int_equal(tape, weir_nn_tape_of(workspace) != NULL);
    assert_true(weir_nn_workspace_bytes(workspace) > 0);
    weir_nn_workspace_close(workspace);
}

static inline void compare_network(const char *task, nn_encoders encoders, uint32_t hidden, weir_nn_network network) {
    nn_fixture f;
    const double tolerance = forward_tolerance(hidden, network);
    weir_real logits[NN_TARGETS * OUTPUTS_MAX];
    double naive[NN_TARGETS * OUTPUTS_MAX];
    nn_open_network(&f, weir_test_seed(), task, hidden, encoders, network, 0);
    nn_random_batch(&f);
    uint64_t count = weir_nn_parameter_count(f.nn);
    double *params = fixture_array(count, sizeof *params);
    for (uint64_t i = 0; i < count; i++)
        params[i] = (double)f.params[i];
    naive_forward(&f, params, NULL, naive);
    weir_real *embeddings = fixture_array((size_t)NN_TARGETS * hidden, sizeof *embeddings);
    const uint32_t layers = weir_nn_layers(f.shape), last = naive_answers(&f, layers) ? layers - 1 : layers;
    double *rows = naive_layers(&f, params, NULL, last); /* targets are the first nodes of each layer */
    run_forward(&f, false, logits, embeddings);
    for (uint32_t i = 0; i < NN_TARGETS * hidden; i++)
        if (!(fabs((double)embeddings[i] - rows[i]) < 10 * tolerance * (1 + fabs(rows[i]))))
            fail_msg("%s, %u columns: number %u of the embeddings is %.9g, and should be %.9g",
                     weir_nn_network_word(network), hidden, i, (double)embeddings[i], rows[i]);
    for (uint32_t i = 0; i < NN_TARGETS * weir_nn_outputs(f.shape); i++) {
        if (!(fabs((double)logits[i] - naive[i]) < tolerance * (1 + fabs(naive[i]))))
            fail_msg("%s, %u columns: logit %u is %.9g, and should be %.9g", weir_nn_network_word(network), hidden, i,
                     (double)logits[i], naive[i]);
    }
    free(embeddings);
    free(rows);
    free(params);
    nn_close(&f);
}

static inline void compare_with_naive(const char *task, nn_encoders encoders, uint32_t hidden) {
    compare_network(task, encoders, hidden, WEIR_NN_MEAN);
}

/* Vertices of type b stand one hop from the targets, which are of type a: layer 1 of 2 is the last that has them. */
static inline void inner_is_the_naive_network(nn_encoders encoders, weir_nn_network network) {
    nn_fixture f;
    weir_sample_step steps[WEIR_SAMPLE_STEPS_MAX];
    weir_sample_opts opts = {.steps = steps, .window = 20, .targets_max = NN_TARGETS, .seed = weir_test_seed()};
    weir_sampler *sampler;
    weir_block *block;
    weir_block_view lifted;
    weir_arena *arena;
    weir_nn_workspace *workspace;
    weir_target targets[NN_TARGETS];
    nn_open_network(&f, weir_test_seed(), "find", 12, encoders, network, 0);
    const uint32_t hidden = weir_nn_hidden(f.shape), hop = weir_nn_hop_of(f.shape, 1);
    assert_int_equal(hop, 1);
    assert_int_equal(weir_nn_hop_of(f.shape, 0), 0);
    assert_int_equal(weir_nn_hop_of(f.shape, 2), UINT32_MAX);
    opts.step_count = weir_nn_steps_from(f.shape, hop, steps);
    assert_int_equal(opts.step_count, nn_adds(encoders) ? 3 : 2);
    assert_ok(weir_arena_open(1u << 20, &arena));
    assert_ok(weir_sampler_open(&opts, f.source, &sampler));
    assert_ok(weir_block_open(sampler, &block));
    assert_ok(weir_nn_workspace_open(f.nn, false, &workspace));
    for (uint32_t i = 0; i < NN_TARGETS; i++)
        targets[i] = (weir_target){.vertex = weir_rng_below(&f.rng, f.graph.vertices[1]),
                                   .before_us = 1 + (int64_t)weir_rng_below(&f.rng, (uint64_t)NN_LAST_US),
                                   .type = 1};
    assert_ok(weir_sample(sampler, targets, NN_TARGETS, block));
    weir_block_inputs(sampler, block, true);
    assert_ok(weir_nn_lift(f.shape, weir_block_look(block), hop, arena, &lifted));
    nn_bring(&f, &lifted);

    uint64_t count = weir_nn_parameter_count(f.nn);
    double *params = fixture_array(count, sizeof *params);
    for (uint64_t i = 0; i < count; i++)
        params[i] = (double)f.params[i];
    double *naive = naive_layers(&f, params, NULL, weir_nn_layers(f.shape) - hop);
    weir_real *embeddings = fixture_array((size_t)NN_TARGETS * hidden, sizeof *embeddings);
    assert_ok(weir_nn_embed(f.nn, f.params, &f.batch, hop, workspace, embeddings));
    for (uint32_t i = 0; i < NN_TARGETS * hidden; i++)
        if (!(fabs((double)embeddings[i] - naive[i]) < forward_tolerance(hidden, network) * (1 + fabs(naive[i]))))
            fail_msg("%s: value %u is %.9g, and should be %.9g", weir_nn_network_word(network), i,
                     (double)embeddings[i], naive[i]);
    free(embeddings);
    free(naive);
    free(params);
    weir_nn_workspace_close(workspace);
    weir_block_close(block);
    weir_sampler_close(sampler);
    weir_arena_close(arena);
    nn_close(&f);
}

static inline void inner_vertices_are_those_of_the_naive_network(void **state) {
    (void)state;
    inner_is_the_naive_network(NN_ALL, WEIR_NN_MEAN);
    inner_is_the_naive_network(NN_OF_CATEGORIES, WEIR_NN_MEAN);
    inner_is_the_naive_network(NN_NONE, WEIR_NN_MEAN);
    inner_is_the_naive_network(NN_RESIDUAL, WEIR_NN_MEAN);
    for (weir_nn_network network = 0; network < WEIR_NN_NETWORKS; network++) {
        inner_is_the_naive_network(NN_OF_CATEGORIES, network);
        inner_is_the_naive_network(NN_RESIDUAL, network);
        inner_is_the_naive_network(NN_HEADLESS, network);
    }
}

static inline void forward_is_the_naive_network(void **state) {
    (void)state;
    compare_with_naive("find", NN_ALL, 13);
}

static inline void forward_of_classes_is_the_naive_network(void **state) {
    (void)state;
    compare_with_naive("sort", NN_ALL, 13);
}

static inline void forward_without_encoders_is_the_naive_network(void **state) {
    (void)state;
    compare_with_naive("find", NN_OF_CATEGORIES, 13);
    compare_with_naive("sort", NN_NONE, 13);
    compare_with_naive("find", NN_NONE, 5); /* narrower than what type a has */
}

static inline void forward_of_layers_that_add_is_the_naive_network(void **state) {
    (void)state;
    compare_with_naive("find", NN_RESIDUAL, 13);
    compare_with_naive("sort", NN_RESIDUAL, 13);
}

static inline void forward_of_a_head_that_sees_all_layers_is_the_naive_network(void **state) {
    (void)state;
    compare_with_naive("find", NN_CONCAT, 13);
    compare_with_naive("sort", NN_CONCAT, 13);
    compare_with_naive("find", NN_MOST, 13);
    compare_with_naive("sort", NN_MOST, 13);
}

static inline void forward_without_a_head_is_the_naive_network(void **state) {
    (void)state;
    for (weir_nn_network network = 0; network < WEIR_NN_NETWORKS; network++) {
        compare_network("find", NN_HEADLESS, 12, network);
        compare_network("sort", NN_HEADLESS, 12, network);
        compare_network("find", NN_PLAIN, 12, network);
    }
}

static inline void forward_of_two_dense_layers_is_the_naive_network(void **state) {
    (void)state;
    compare_with_naive("find", NN_DENSE, 13);
    compare_with_naive("sort", NN_PLAIN_DENSE, 13);
    compare_with_naive("sort", NN_FLAT, 13);
    compare_with_naive("find", NN_FLAT_CONCAT, 13);
}

static inline void forward_with_norms_of_a_stream_is_the_naive_network(void **state) {
    (void)state;
    compare_with_naive("find", NN_STREAM, 13);
    compare_with_naive("sort", NN_STREAM_HEADLESS, 13);
}

static inline void forward_of_each_network_is_the_naive_one(void **state) {
    (void)state;
    for (weir_nn_network network = 0; network < WEIR_NN_NETWORKS; network++) {
        compare_network("find", NN_ALL, 12, network);
        compare_network("sort", NN_OF_CATEGORIES, 20, network);
        compare_network("find", NN_NONE, 12, network);
        compare_network("sort", NN_RESIDUAL, 12, network);
    }
}

#define FORWARD_CASES                                                                                                 \
    WEIR_CASE(forward_is_the_naive_network), WEIR_CASE(inner_vertices_are_those_of_the_naive_network),                \
        WEIR_CASE(forward_of_classes_is_the_naive_network), WEIR_CASE(forward_without_encoders_is_the_naive_network), \
        WEIR_CASE(forward_of_layers_that_add_is_the_naive_network),                                                   \
        WEIR_CASE(forward_of_a_head_that_sees_all_layers_is_the_naive_network),                                       \
        WEIR_CASE(forward_without_a_head_is_the_naive_network),                                                       \
        WEIR_CASE(forward_of_two_dense_layers_is_the_naive_network),                                                  \
        WEIR_CASE(forward_with_norms_of_a_stream_is_the_naive_network),                                               \
        WEIR_CASE(forward_of_each_network_is_the_naive_one)

#endif /* WEIR_FORWARD_CASES_H */

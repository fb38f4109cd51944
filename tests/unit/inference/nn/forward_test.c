/* SPDX-License-Identifier: Apache-2.0 */
/* forward_test.c - the way forward against the naive network of nn_fixture.h; its promises NN-N4 to NN-N6, NN-N8. */
#include <weir/store/base/alloc.h>
#include <weir/store/sample/sampler.h>

#include "forward_cases.h"

static void n4_of(nn_encoders encoders, weir_nn_network network) {
    nn_fixture f;
    weir_real with[NN_TARGETS], without[NN_TARGETS], embeddings[2][NN_TARGETS * 12];
    nn_open_network(&f, weir_test_seed(), "find", 12, encoders, network, 0);
    nn_random_batch(&f);
    run_forward(&f, true, with, embeddings[0]);
    run_forward(&f, false, without, embeddings[1]);
    assert_memory_equal(with, without, sizeof with);
    assert_memory_equal(embeddings[0], embeddings[1], sizeof embeddings[0]);
    nn_close(&f);
}

static void n4_a_tape_changes_no_bit(void **state) {
    (void)state;
    n4_of(NN_ALL, WEIR_NN_MEAN);
    n4_of(NN_OF_CATEGORIES, WEIR_NN_MEAN);
    n4_of(NN_NONE, WEIR_NN_MEAN);
    n4_of(NN_RESIDUAL, WEIR_NN_MEAN);
    n4_of(NN_CONCAT, WEIR_NN_MEAN);
    n4_of(NN_MOST, WEIR_NN_MEAN);
    n4_of(NN_HEADLESS, WEIR_NN_GAT);
    n4_of(NN_PLAIN, WEIR_NN_MEAN);
    n4_of(NN_DENSE, WEIR_NN_MEAN);
    n4_of(NN_PLAIN_DENSE, WEIR_NN_MEAN);
    n4_of(NN_STREAM, WEIR_NN_MEAN);
    for (weir_nn_network network = 0; network < WEIR_NN_NETWORKS; network++) {
        n4_of(NN_OF_CATEGORIES, network);
        n4_of(NN_RESIDUAL, network);
    }
}

static void n5_of(nn_encoders encoders, weir_nn_network network) {
    nn_fixture f;
    weir_target targets[NN_TARGETS];
    weir_real all[NN_TARGETS], alone;
    /* What is rounded in a score stands in an exponent, and what is in a mean in the small deviations from it. */
    const double tolerance = network == WEIR_NN_MEAN ? 1e-6 : 1e-5;
    nn_open_network(&f, weir_test_seed(), "find", 12, encoders, network, 0);
    nn_targets(&f, targets, NN_TARGETS);
    nn_sample(&f, targets, NN_TARGETS);
    run_forward(&f, false, all, NULL);
    for (uint32_t i = 0; i < NN_TARGETS; i++) {
        nn_sample(&f, &targets[i], 1);
        run_forward(&f, false, &alone, NULL);
        if (!(fabs((double)(alone - all[i])) <= tolerance * (1 + fabs((double)all[i]))))
            fail_msg("%s: target %u: %.9g alone, %.9g in the batch", weir_nn_network_word(network), i, (double)alone,
                     (double)all[i]);
    }
    nn_close(&f);
}

static void n5_a_target_alone_is_the_target_in_a_batch(void **state) {
    (void)state;
    n5_of(NN_ALL, WEIR_NN_MEAN);
    n5_of(NN_OF_CATEGORIES, WEIR_NN_MEAN);
    n5_of(NN_NONE, WEIR_NN_MEAN);
    n5_of(NN_RESIDUAL, WEIR_NN_MEAN);
    n5_of(NN_CONCAT, WEIR_NN_MEAN);
    n5_of(NN_MOST, WEIR_NN_MEAN);
    n5_of(NN_HEADLESS, WEIR_NN_GAT);
    n5_of(NN_PLAIN, WEIR_NN_MEAN);
    n5_of(NN_DENSE, WEIR_NN_MEAN);
    n5_of(NN_STREAM, WEIR_NN_MEAN);
    for (weir_nn_network network = 0; network < WEIR_NN_NETWORKS; network++) {
        n5_of(NN_OF_CATEGORIES, network);
        n5_of(NN_RESIDUAL, network);
    }
}

static void n6_a_tensor_begins_by_its_name(void **state) {
    (void)state;
    nn_fixture small, other;
    uint64_t seed = weir_test_seed();
    nn_open(&small, seed, "find", 8);
    nn_open(&other, seed, "sort", 8); /* another head; all else is the same */
    weir_nn_init(small.nn, 3, small.params);
    weir_nn_init(other.nn, 3, other.params);
    uint32_t count;
    const weir_nn_tensor *tensors = weir_nn_tensors(small.nn, &count);
    uint64_t end = 0;
    for (uint32_t i = 0; i < count; i++) {
        const weir_nn_tensor *twin = weir_nn_tensor_find(other.nn, tensors[i].name);
        assert_int_equal(tensors[i].offset, end); /* without gaps */
        end += (uint64_t)tensors[i].rows * tensors[i].cols;
        if (strncmp(tensors[i].name, "head", 4) == 0) continue;
        assert_non_null(twin);
        assert_memory_equal(small.params + tensors[i].offset, other.params + twin->offset,
                            (size_t)tensors[i].rows * tensors[i].cols * sizeof(weir_real));
    }
    assert_int_equal(end, weir_nn_parameter_count(small.nn));
    nn_close(&small);
    nn_close(&other);
}

static void init_is_glorot(void **state) {
    (void)state;
    nn_fixture f;
    nn_open(&f, 1, "find", 64);
    weir_nn_init(f.nn, weir_test_seed(), f.params);
    const weir_nn_tensor *t = weir_nn_tensor_find(f.nn, "layer1.a.self.weight");
    assert_non_null(t);
    double bound = sqrt(6.0 / 128), sum = 0, squares = 0;
    for (uint32_t i = 0; i < 64 * 64; i++) {
        double value = (double)f.params[t->offset + i];
        assert_true(fabs(value) <= bound);
        sum += value;
        squares += value * value;
    }
    assert_true(fabs(sum / 4096) < 5 * bound / sqrt(3) / 64); /* 5 deviations of the mean */
    assert_true(fabs(squares / 4096 / (bound * bound / 3) - 1) < 0.1);
    assert_true(f.params[weir_nn_tensor_find(f.nn, "layer1.a.norm.gain")->offset] == 1);
    assert_true(f.params[weir_nn_tensor_find(f.nn, "head.bias")->offset] == 0);
    nn_close(&f);
}

/* Before anything was learnt, and ever after for vertices that no batch meets. */
static void n8_a_known_vertex_begins_as_an_unknown_one(void **state) {
    (void)state;
    nn_fixture f;
    weir_nn_workspace *w = NULL;
    weir_real known[NN_TARGETS], unknown[NN_TARGETS];
    nn_open(&f, weir_test_seed(), "find", 8);
    weir_nn_init(f.nn, weir_test_seed(), f.params);
    assert_ok(weir_nn_workspace_open(f.nn, false, &w));
    nn_random_batch(&f);
    assert_ok(weir_nn_forward(f.nn, f.params, &f.batch, NULL, w, known, NULL));
    weir_block_range range = f.batch.block->input_ranges[1];
    for (uint32_t i = 0; i < range.end - range.begin; i++)
        f.slots[1][i] = WEIR_NO_SLOT;
    assert_ok(weir_nn_forward(f.nn, f.params, &f.batch, NULL, w, unknown, NULL));
    assert_memory_equal(known, unknown, sizeof known);
    const weir_nn_tensor *bias = weir_nn_tensor_find(f.nn, "encode.b.bias");
    for (uint32_t i = 0; i < 8; i++) /* else a vertex without features could not begin to learn */
        assert_true(f.params[bias->offset + i] > 0 && (double)f.params[bias->offset + i] <= 1 / sqrt(8));
    weir_nn_workspace_close(w);
    nn_close(&f);
}

static void a_type_that_no_step_reaches_has_no_tensor(void **state) {
    (void)state;
    nn_fixture f;
    nn_open(&f, 1, "find", 8);
    assert_true(weir_nn_sees(f.shape, 0) && weir_nn_sees(f.shape, 1) && !weir_nn_sees(f.shape, 2));
    assert_null(weir_nn_tensor_find(f.nn, "encode.lonely.bias"));
    assert_null(weir_nn_tensor_find(f.nn, "layer2.b.self.weight")); /* layer 2 is of the targets alone */
    assert_non_null(weir_nn_tensor_find(f.nn, "layer1.b.self.weight"));
    assert_null(weir_nn_tensor_find(f.nn, "layer2.ab.in.weight"));
    nn_close(&f);
}

static void another_block_is_refused(void **state) {
    (void)state;
    nn_fixture f;
    weir_nn_workspace *workspace = NULL;
    weir_real logits[NN_TARGETS];
    nn_open(&f, 1, "find", 8);
    nn_random_batch(&f);
    assert_ok(weir_nn_workspace_open(f.nn, true, &workspace));
    assert_ok(weir_nn_forward(f.nn, f.params, &f.batch, NULL, workspace, logits, NULL));
    assert_non_null(weir_nn_tape_of(workspace));
    weir_block_view view = *f.batch.block;
    f.batch.block = &view;
    view.hops = 1;
    assert_err(weir_nn_forward(f.nn, f.params, &f.batch, NULL, workspace, logits, NULL), WEIR_EINVAL, "own steps");
    assert_null(weir_nn_tape_of(workspace)); /* that of the pass before is not this one's */
    view.hops = 2;
    view.inputs = 0;
    assert_err(weir_nn_forward(f.nn, f.params, &f.batch, NULL, workspace, logits, NULL), WEIR_EINVAL,
               "weir_block_inputs");
    weir_nn_workspace_close(workspace);
    nn_close(&f);
}

static weir_err attempt_forward(void *context) {
    nn_fixture *f = context;
    weir_nn_workspace *workspace = NULL;
    weir_real logits[NN_TARGETS];
    weir_err err = weir_nn_workspace_open(f->nn, true, &workspace);
    if (!err) err = weir_nn_forward(f->nn, f->params, &f->batch, NULL, workspace, logits, NULL);
    if (!err) err = weir_nn_forward(f->nn, f->params, &f->batch, NULL, workspace, logits, NULL);
    weir_nn_workspace_close(workspace);
    return err;
}

static void every_allocation_of_a_pass_may_fail(void **state) {
    (void)state;
    for (weir_nn_network network = 0; network < WEIR_NN_NETWORKS; network++) {
        nn_fixture f;
        nn_open_network(&f, 1, "find", 8, NN_ALL, network, 0);
        nn_random_batch(&f);
        weir_test_every_allocation(attempt_forward, &f);
        nn_close(&f);
    }
    static const nn_encoders others[] = {NN_MOST, NN_HEADLESS, NN_PLAIN, NN_DENSE, NN_PLAIN_DENSE, NN_STREAM, NN_FLAT};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        nn_fixture f;
        nn_open_as(&f, 1, "find", 8, others[i]);
        nn_random_batch(&f);
        weir_test_every_allocation(attempt_forward, &f);
        nn_close(&f);
    }
}

static weir_err attempt_open(void *context) {
    const nn_fixture *f = context;
    weir_nn *nn = NULL;
    weir_nn_shape *shape = NULL;
    const weir_nn_known known = {1, nn_known_ids, NN_KNOWN};
    weir_nn_opts opts = {.hidden = 8,
                         .steps = nn_steps,
                         .step_count = sizeof nn_steps / sizeof *nn_steps,
                         .known = &known,
                         .known_count = 1};
    weir_err err = weir_nn_shape_open(f->schema, &opts, &shape);
    if (!err) err = weir_nn_open(shape, weir_kernels_cpu(), &nn);
    weir_nn_close(nn);
    weir_nn_shape_free(shape);
    return err;
}

static void every_allocation_of_open_may_fail(void **state) {
    (void)state;
    nn_fixture f;
    nn_open(&f, 1, "find", 8);
    weir_test_every_allocation(attempt_open, &f);
    nn_close(&f);
}

/* Whether a block says that all edges of a step have one time changes nothing, but for what a mean of them rounds. */
static void one_time_of_all_edges_changes_nothing(void **state) {
    (void)state;
    for (weir_nn_network network = 0; network < WEIR_NN_NETWORKS; network++) {
        nn_fixture f;
        weir_real logits[2][NN_TARGETS];
        weir_block_edges edges[WEIR_SAMPLE_STEPS_MAX];
        nn_open_network(&f, weir_test_seed(), "find", 12, NN_ALL, network, 0);
        nn_random_batch(&f);
        weir_block_view view = *f.batch.block;
        uint32_t alike = 0;
        for (uint32_t s = 0; s < view.steps; s++) {
            edges[s] = view.edges[s];
            int64_t *times = fixture_array(edges[s].count, sizeof *times);
            for (uint32_t e = 0; e < edges[s].count; e++)
                times[e] = 77;
            edges[s].times = times;
            alike += edges[s].count > 0;
        }
        assert_true(alike > 0);
        view.edges = edges;
        f.batch.block = &view;
        for (unsigned i = 0; i < 2; i++) {
            for (uint32_t s = 0; s < view.steps; s++)
                edges[s].alike = i && edges[s].count > 0;
            run_forward(&f, false, logits[i], NULL);
        }
        for (uint32_t i = 0; i < NN_TARGETS; i++)
            assert_true(fabs((double)(logits[0][i] - logits[1][i])) <= 1e-4 * (1 + fabs((double)logits[0][i])));
        for (uint32_t s = 0; s < view.steps; s++)
            free((void *)(uintptr_t)edges[s].times);
        nn_close(&f);
    }
}

WEIR_TESTS(FORWARD_CASES, WEIR_CASE(n4_a_tape_changes_no_bit), WEIR_CASE(n5_a_target_alone_is_the_target_in_a_batch),
           WEIR_CASE(n6_a_tensor_begins_by_its_name), WEIR_CASE(init_is_glorot),
           WEIR_CASE(n8_a_known_vertex_begins_as_an_unknown_one), WEIR_CASE(a_type_that_no_step_reaches_has_no_tensor),
           WEIR_CASE(another_block_is_refused), WEIR_CASE(every_allocation_of_a_pass_may_fail),
           WEIR_CASE(every_allocation_of_open_may_fail), WEIR_CASE(one_time_of_all_edges_changes_nothing))

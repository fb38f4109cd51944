/* SPDX-License-Identifier: Apache-2.0 */
/* bound_test.c - what the bound lets pass gives numbers, with each tensor as large as it lets it be. */
#include "nn_fixture.h"

#define INPUT_MAX 1e4

static void set_inputs(nn_fixture *f) {
    const weir_block_view *v = f->batch.block;
    for (uint32_t t = 0; t < 3; t++) {
        size_t rows = v->input_ranges[t].end - v->input_ranges[t].begin;
        for (size_t i = 0; i < rows * weir_nn_vertex(f->shape, t)->width; i++)
            f->numbers[t][i] = (weir_real)(weir_rng_below(&f->rng, 2) ? INPUT_MAX : -INPUT_MAX);
    }
    for (uint32_t s = 0; s < f->batch.block->steps; s++) {
        size_t width = weir_nn_edge(f->shape, nn_steps[s].relation)->width;
        for (size_t i = 0; i < v->edges[s].count * width; i++)
            f->edges[s][i] = (weir_real)(weir_rng_below(&f->rng, 2) ? INPUT_MAX : -INPUT_MAX);
    }
}

static void fill(nn_fixture *f, const weir_nn_tensor *tensor, double scale, bool one_sign) {
    for (uint64_t i = 0; i < (uint64_t)tensor->rows * tensor->cols; i++)
        f->params[tensor->offset + i] = (weir_real)(one_sign || weir_rng_below(&f->rng, 2) ? scale : -scale);
}

static bool gives_numbers(nn_fixture *f, double logit_max) {
    weir_nn_workspace *workspace = NULL;
    weir_real logits[NN_TARGETS * 3], embeddings[NN_TARGETS * 12];
    bool finite = true;
    assert_ok(weir_nn_workspace_open(f->nn, false, &workspace));
    assert_ok(weir_nn_forward(f->nn, f->params, &f->batch, NULL, workspace, logits, embeddings));
    weir_nn_workspace_close(workspace);
    for (uint32_t i = 0; i < NN_TARGETS * weir_nn_outputs(f->shape); i++)
        finite = finite && isfinite(logits[i]) && fabs((double)logits[i]) <= 1.001 * logit_max;
    for (uint32_t i = 0; i < NN_TARGETS * 12; i++)
        finite = finite && isfinite(embeddings[i]);
    return finite;
}

/* The largest power of two that passes, and what it gives; then far past it. */
static void push(nn_fixture *f, const weir_nn_tensor *tensor, bool one_sign, unsigned *overflowsp) {
    double logit_max = 0;
    int power = 127;
    for (; power > -100; power--) {
        fill(f, tensor, ldexp(1, power), one_sign);
        weir_err err = weir_nn_bound(f->nn, f->params, &logit_max);
        if (!err) break;
        assert_err(err, WEIR_EDATA, tensor->name);
    }
    assert_true(power > -100 && power < 127);
    if (!gives_numbers(f, logit_max)) fail_msg("%s of 2^%d passes and gives no number", tensor->name, power);
    fill(f, tensor, ldexp(1, 127), one_sign);
    *overflowsp += !gives_numbers(f, INFINITY);
}

static void n7_of(nn_encoders encoders, weir_nn_network network) {
    nn_fixture f;
    uint32_t count;
    unsigned overflows = 0;
    double logit_max;
    nn_open_network(&f, weir_test_seed(), "sort", 12, encoders, network, 0);
    nn_random_batch(&f);
    set_inputs(&f);
    assert_ok(weir_nn_bound(f.nn, f.params, &logit_max));
    assert_true(gives_numbers(&f, logit_max));
    const weir_nn_tensor *tensors = weir_nn_tensors(f.nn, &count);
    for (uint32_t i = 0; i < count; i++) {
        size_t size = (size_t)tensors[i].rows * tensors[i].cols * sizeof(weir_real);
        weir_real *kept = fixture_array(size, 1);
        memcpy(kept, f.params + tensors[i].offset, size);
        push(&f, &tensors[i], true, &overflows);
        push(&f, &tensors[i], false, &overflows);
        memcpy(f.params + tensors[i].offset, kept, size);
        free(kept);
    }
    assert_true(overflows > count); /* what it refuses was worth refusing */
    nn_close(&f);
}

static void n7_what_passes_gives_numbers(void **state) {
    (void)state;
    n7_of(NN_ALL, WEIR_NN_MEAN);
    n7_of(NN_OF_CATEGORIES, WEIR_NN_MEAN);
    n7_of(NN_NONE, WEIR_NN_MEAN);
    n7_of(NN_RESIDUAL, WEIR_NN_MEAN);
    n7_of(NN_CONCAT, WEIR_NN_MEAN);
    n7_of(NN_MOST, WEIR_NN_MEAN);
    n7_of(NN_HEADLESS, WEIR_NN_GCN);
    n7_of(NN_PLAIN, WEIR_NN_MEAN);
    n7_of(NN_DENSE, WEIR_NN_MEAN);
    n7_of(NN_STREAM, WEIR_NN_MEAN);
    n7_of(NN_PLAIN_DENSE, WEIR_NN_MEAN);
    n7_of(NN_PLAIN, WEIR_NN_GAT);
    n7_of(NN_HEADLESS, WEIR_NN_GAT);
    for (weir_nn_network network = 1; network < WEIR_NN_NETWORKS; network++) {
        n7_of(NN_OF_CATEGORIES, network);
        n7_of(NN_RESIDUAL, network);
    }
}

static void one_weight_of(weir_nn_network network) {
    nn_fixture f;
    uint32_t count;
    double logit_max;
    nn_open_network(&f, weir_test_seed(), "find", 12, NN_ALL, network, 0);
    const weir_nn_tensor *tensors = weir_nn_tensors(f.nn, &count);
    for (uint32_t i = 0; i < count; i++) {
        weir_real *one = &f.params[tensors[i].offset + (uint64_t)tensors[i].rows * tensors[i].cols / 2], kept = *one;
        static const weir_real bad[] = {3e38f, -3e38f, INFINITY, -INFINITY};
        for (size_t b = 0; b < sizeof bad / sizeof bad[0]; b++) {
            *one = bad[b];
            assert_err(weir_nn_bound(f.nn, f.params, &logit_max), WEIR_EDATA, tensors[i].name);
        }
        *one = kept;
    }
    assert_ok(weir_nn_bound(f.nn, f.params, &logit_max));
    nn_close(&f);
}

static void one_weight_that_is_none_is_enough(void **state) {
    (void)state;
    for (weir_nn_network network = 0; network < WEIR_NN_NETWORKS; network++)
        one_weight_of(network);
}

WEIR_TESTS(WEIR_CASE(n7_what_passes_gives_numbers), WEIR_CASE(one_weight_that_is_none_is_enough))

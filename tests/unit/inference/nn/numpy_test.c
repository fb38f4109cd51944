/* SPDX-License-Identifier: Apache-2.0 */
/* numpy_test.c - one random batch, computed once more by tests/support/forward_oracle.py. */
#include "naive_network.h"

#include <stdlib.h>

#include <weir/store/base/buf.h>

static void reals(weir_json *json, const char *key, const weir_real *x, size_t count) {
    weir_json_key(json, key);
    weir_json_array(json);
    for (size_t i = 0; i < count; i++)
        weir_json_f64(json, (double)x[i]);
    weir_json_array_end(json);
}

static void numbers(weir_json *json, const char *key, const uint32_t *x, size_t count) {
    weir_json_key(json, key);
    weir_json_array(json);
    for (size_t i = 0; i < count; i++)
        weir_json_u64(json, x[i]);
    weir_json_array_end(json);
}

static void times(weir_json *json, const char *key, const int64_t *x, size_t count) {
    weir_json_key(json, key);
    weir_json_array(json);
    for (size_t i = 0; i < count; i++)
        weir_json_i64(json, x[i]);
    weir_json_array_end(json);
}

static void text(weir_json *json, const char *key, const char *value) {
    weir_json_key(json, key);
    weir_json_string(json, value);
}

static void number(weir_json *json, const char *key, uint32_t value) {
    weir_json_key(json, key);
    weir_json_u64(json, value);
}

static void print_type(weir_json *json, const nn_fixture *f, uint32_t type) {
    const weir_nn_inputs *inputs = weir_nn_vertex(f->shape, type);
    weir_block_range range = f->batch.block->input_ranges[type];
    size_t rows = range.end - range.begin;
    weir_json_object(json);
    text(json, "name", inputs->name);
    number(json, "width", inputs->width);
    reals(json, "numbers", f->numbers[type], rows * inputs->width);
    numbers(json, "slots", f->slots[type], rows * inputs->category_count);
    weir_json_key(json, "categories");
    weir_json_array(json);
    for (uint32_t c = 0; c < inputs->category_count; c++)
        weir_json_string(json, inputs->categories[c].name);
    weir_json_array_end(json);
    weir_json_object_end(json);
}

static void print_step(weir_json *json, const nn_fixture *f, uint32_t step) {
    const weir_block_edges *e = &f->batch.block->edges[step];
    const weir_nn_inputs *inputs = weir_nn_edge(f->shape, nn_steps[step].relation);
    weir_json_object(json);
    text(json, "relation", inputs->name);
    text(json, "direction", nn_steps[step].direction == WEIR_OUT ? "out" : "in");
    number(json, "hop", nn_steps[step].hop);
    number(json, "width", inputs->width);
    number(json, "begin", e->parent_begin);
    number(json, "end", e->parent_end);
    numbers(json, "parents", e->parents, e->count);
    numbers(json, "children", e->children, e->count);
    times(json, "times", e->times, e->count);
    reals(json, "numbers", f->edges[step], (size_t)e->count * inputs->width);
    weir_json_object_end(json);
}

static void print_tensors(weir_json *json, const nn_fixture *f) {
    uint32_t count;
    const weir_nn_tensor *tensors = weir_nn_tensors(f->nn, &count);
    weir_json_key(json, "tensors");
    weir_json_array(json);
    for (uint32_t i = 0; i < count; i++) {
        weir_json_object(json);
        text(json, "name", tensors[i].name);
        number(json, "rows", tensors[i].rows);
        number(json, "cols", tensors[i].cols);
        reals(json, "values", f->params + tensors[i].offset, (size_t)tensors[i].rows * tensors[i].cols);
        weir_json_object_end(json);
    }
    weir_json_array_end(json);
}

static void print_block(weir_json *json, const nn_fixture *f) {
    const weir_block_view *v = f->batch.block;
    uint32_t *node_types = fixture_array(v->nodes, sizeof *node_types);
    uint32_t *input_types = fixture_array(v->inputs, sizeof *input_types), hop;
    for (uint32_t n = 0; n < v->nodes; n++)
        naive_where(v, n, &hop, &node_types[n]);
    for (uint32_t i = 0; i < v->inputs; i++)
        input_types[i] = node_types[v->input_nodes[i]];
    numbers(json, "hop_end", v->hop_end, v->hops + 1);
    numbers(json, "node_types", node_types, v->nodes);
    numbers(json, "input_types", input_types, v->inputs);
    numbers(json, "input_of", v->input_of, v->nodes);
    numbers(json, "groups", v->groups, v->nodes);
    times(json, "before_us", v->before_us, v->targets);
    free(node_types);
    free(input_types);
}

static void print_batch(const nn_fixture *f, const weir_real *logits, size_t logit_count, weir_buf *out) {
    weir_json json = weir_json_begin(out);
    weir_json_object(&json);
    number(&json, "hidden", weir_nn_hidden(f->shape));
    text(&json, "network", weir_nn_network_word(f->network));
    number(&json, "heads", weir_nn_heads(f->shape));
    number(&json, "residual", weir_nn_residual(f->shape));
    number(&json, "feed_forward", nn_feeds_forward(f->encoders));
    number(&json, "headless", nn_headless(f->encoders));
    text(&json, "norm", weir_nn_norm_word(weir_nn_norm_of(f->shape)));
    text(&json, "jump", weir_nn_jump_word(weir_nn_jump_of(f->shape)));
    print_block(&json, f);
    weir_json_key(&json, "types");
    weir_json_array(&json);
    for (uint32_t t = 0; t < 3; t++)
        print_type(&json, f, t);
    weir_json_array_end(&json);
    weir_json_key(&json, "steps");
    weir_json_array(&json);
    for (uint32_t s = 0; s < f->batch.block->steps; s++)
        print_step(&json, f, s);
    weir_json_array_end(&json);
    print_tensors(&json, f);
    reals(&json, "logits", logits, logit_count);
    weir_json_object_end(&json);
    assert_ok(weir_buf_err(out));
}

#define PYTHON "/usr/bin/python3" /* Debian's, which has Debian's NumPy */

static void run_oracle(const char *path) {
    const char *source = getenv("WEIR_SOURCE_DIR");
    char script[4096];
    weir_test_output output = {0};
    if (!source) weir_test_skip("WEIR_SOURCE_DIR is not set: run it by ctest");
    snprintf(script, sizeof script, "%s/tests/support/forward_oracle.py", source);
    weir_test_run((const char *const[]){PYTHON, "-c", "import numpy", NULL}, NULL, &output);
    bool there = output.status == 0;
    weir_test_output_free(&output);
    if (!there) weir_test_skip(PYTHON " has no NumPy: install python3-numpy");
    weir_test_run((const char *const[]){PYTHON, script, path, NULL}, NULL, &output);
    print_message("%s%s", output.out, output.err);
    assert_int_equal(output.status, 0);
    weir_test_output_free(&output);
}

static void one_network(nn_encoders encoders, weir_nn_network network) {
    nn_fixture f;
    weir_nn_workspace *workspace = NULL;
    weir_real logits[NN_TARGETS * 3];
    weir_buf out = {0};
    nn_open_network(&f, weir_test_seed(), "sort", 12, encoders, network, 0);
    nn_random_batch(&f);
    assert_ok(weir_nn_workspace_open(f.nn, false, &workspace));
    assert_ok(weir_nn_forward(f.nn, f.params, &f.batch, NULL, workspace, logits, NULL));
    print_batch(&f, logits, NN_TARGETS * 3, &out);
    const char *path = weir_test_path("batch.json");
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(out.bytes, 1, out.length, file), out.length);
    assert_int_equal(fclose(file), 0);
    run_oracle(path);
    weir_buf_free(&out);
    weir_nn_workspace_close(workspace);
    nn_close(&f);
}

static void forward_is_that_of_numpy(void **state) {
    (void)state;
    for (weir_nn_network network = 0; network < WEIR_NN_NETWORKS; network++)
        one_network(NN_ALL, network);
    for (weir_nn_network network = 0; network < WEIR_NN_NETWORKS; network++)
        one_network(network % 2 ? NN_HEADLESS : NN_PLAIN, network);
    one_network(NN_DENSE, WEIR_NN_ATTENTION);
    one_network(NN_PLAIN_DENSE, WEIR_NN_MEAN);
    one_network(NN_STREAM, WEIR_NN_GAT);
    one_network(NN_STREAM_HEADLESS, WEIR_NN_MEAN);
    one_network(NN_CONCAT, WEIR_NN_MEAN);
    one_network(NN_MOST, WEIR_NN_GAT);
}

WEIR_TESTS(WEIR_CASE(forward_is_that_of_numpy))

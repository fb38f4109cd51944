/* SPDX-License-Identifier: Apache-2.0 */
/* gradient_test.c - the gradients of the network as it is built for work. */
#include "gradient_cases.h"

static void b1_binary(void **state) {
    (void)state;
    gradient_run("find", NULL, NN_ALL);
}

static void b1_softmax(void **state) {
    (void)state;
    gradient_run("sort", NULL, NN_ALL);
}

static void b1_dropout(void **state) {
    (void)state;
    weir_nn_drop drop = {.rate = 0.3, .seed = 5, .step = 9};
    gradient_run("find", &drop, NN_ALL);
}

static void b1_without_encoders(void **state) {
    (void)state;
    weir_nn_drop drop = {.rate = 0.3, .seed = 5, .step = 9};
    gradient_run("sort", NULL, NN_OF_CATEGORIES);
    gradient_run("find", &drop, NN_NONE);
}

static void b1_residual(void **state) {
    (void)state;
    weir_nn_drop drop = {.rate = 0.3, .seed = 5, .step = 9};
    gradient_run("sort", NULL, NN_RESIDUAL);
    gradient_run("find", &drop, NN_RESIDUAL);
}

static void b1_jump(void **state) {
    (void)state;
    weir_nn_drop drop = {.rate = 0.3, .seed = 5, .step = 9};
    gradient_run("sort", &drop, NN_CONCAT);
    gradient_run("find", &drop, NN_MOST);
}

static void b1_without_head(void **state) {
    (void)state;
    weir_nn_drop drop = {.rate = 0.3, .seed = 5, .step = 9};
    gradient_run("find", &drop, NN_HEADLESS);
    gradient_run("sort", &drop, NN_PLAIN);
    /* Another one each time: all of them take minutes under a sanitizer. */
    const weir_nn_network network = 1 + (weir_nn_network)(weir_test_seed() % (WEIR_NN_NETWORKS - 1));
    gradient_run_network("sort", network % 2 ? &drop : NULL, network % 3 ? NN_HEADLESS : NN_PLAIN, network);
    gradient_run("sort", &drop, NN_FLAT);
    gradient_run("find", &drop, NN_FLAT_CONCAT);
}

static void b1_feed_forward(void **state) {
    (void)state;
    weir_nn_drop drop = {.rate = 0.3, .seed = 5, .step = 9};
    gradient_run("find", &drop, NN_DENSE);
    gradient_run("sort", &drop, NN_PLAIN_DENSE);
}

static void b1_stream(void **state) {
    (void)state;
    weir_nn_drop drop = {.rate = 0.3, .seed = 5, .step = 9};
    gradient_run("find", &drop, NN_STREAM);
    gradient_run("sort", &drop, NN_STREAM_HEADLESS);
}

static void b1_attention(void **state) {
    (void)state;
    gradient_run_both(WEIR_NN_ATTENTION);
}

static void b1_gat(void **state) {
    (void)state;
    gradient_run_both(WEIR_NN_GAT);
}

static void b1_gcn(void **state) {
    (void)state;
    gradient_run_both(WEIR_NN_GCN);
}

static void b1_max(void **state) {
    (void)state;
    gradient_run_both(WEIR_NN_MAX);
}

static void b1_gin(void **state) {
    (void)state;
    gradient_run_both(WEIR_NN_GIN);
}

static void b1_pna(void **state) {
    (void)state;
    gradient_run_both(WEIR_NN_PNA);
}

WEIR_TESTS(WEIR_CASE(b1_max), WEIR_CASE(b1_gin), WEIR_CASE(b1_pna), WEIR_CASE(b1_gcn), WEIR_CASE(b1_attention),
           WEIR_CASE(b1_gat), WEIR_CASE(b1_residual), WEIR_CASE(b1_jump), WEIR_CASE(b1_without_head),
           WEIR_CASE(b1_feed_forward), WEIR_CASE(b1_stream), WEIR_CASE(b1_binary), WEIR_CASE(b1_softmax),
           WEIR_CASE(b1_dropout), WEIR_CASE(b1_without_encoders))

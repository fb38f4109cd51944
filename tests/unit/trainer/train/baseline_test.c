/* SPDX-License-Identifier: Apache-2.0 */
/* baseline_test.c - the trees that are learnt beside a network see what they should, and no leak. */
#include <math.h>

#include "train_fixture.h"

#define PAYS 1200u

static weir_train_trees trees_of(const weir_trained *trained, weir_train_baseline which) {
    weir_train_trees trees;
    assert_ok(weir_train_trees_learn(trained, which, &trees, NULL));
    assert_true((trees.trees != NULL) == (which == WEIR_TRAIN_GRAPH_TREES));
    assert_true(!trees.trees || weir_trees_look(trees.trees).trees == trees.rounds);
    weir_train_trees_free(&trees);
    return trees;
}

/* An edge's row is nothing that these trees look at: the row of who alone tells. */
static void trees_see_neighbours_only_with_the_graph(void **state) {
    (void)state;
    const learn_plan plan = {
        .seed = weir_test_seed(), .pays = PAYS, .coin = true, .leak = LEARN_LEAK_ROW, .leak_us = -1};
    weir_snapshot *snapshot = learn_snapshot_open(&plan);
    weir_train_opts opts = train_opts_of(snapshot);
    opts.epochs = 1;
    weir_trained *trained = train_run(&opts);
    weir_train_trees row = trees_of(trained, WEIR_TRAIN_ROW_TREES), graph = trees_of(trained, WEIR_TRAIN_GRAPH_TREES);
    weir_train_trees again = trees_of(trained, WEIR_TRAIN_GRAPH_TREES);
    assert_true(fabs(row.metrics[WEIR_TARGETS_TEST].auroc - 0.5) < 0.2);
    assert_true(graph.metrics[WEIR_TARGETS_TEST].auroc > 0.95);
    assert_memory_equal(&graph, &again, sizeof graph);
    weir_trained_close(trained);
    weir_snapshot_close(snapshot);
}

static void trees_see_no_leak_either(void **state) {
    (void)state;
    const learn_plan plan = {
        .seed = weir_test_seed(), .pays = PAYS, .coin = true, .leak = LEARN_LEAK_ROW, .leak_us = 0};
    weir_snapshot *snapshot = learn_snapshot_open(&plan);
    weir_train_opts opts = train_opts_of(snapshot);
    opts.epochs = 1;
    weir_trained *trained = train_run(&opts);
    weir_train_trees graph = trees_of(trained, WEIR_TRAIN_GRAPH_TREES);
    assert_true(fabs(graph.metrics[WEIR_TARGETS_TEST].auroc - 0.5) < 0.2);
    weir_trained_close(trained);
    weir_snapshot_close(snapshot);
}

typedef void (*learn_world_fill)(learn_world *w);

static double auroc_of_graph_trees(learn_world_fill fill, double *of_rowsp) {
    weir_snapshot *snapshot;
    char out[4096];
    learn_world w;
    snprintf(out, sizeof out, "%s", learn_path("snapshot"));
    learn_open(&w, learn_schema_text, weir_test_seed());
    fill(&w);
    learn_build(&w, out, LEARN_START_US + PAYS * 60 * LEARN_SECOND + LEARN_RIPE_US);
    assert_ok(weir_snapshot_open(out, &(weir_snapshot_opts){0}, &snapshot));
    weir_train_opts opts = train_opts_of(snapshot);
    opts.epochs = 1;
    weir_trained *trained = train_run(&opts);
    *of_rowsp = trees_of(trained, WEIR_TRAIN_ROW_TREES).metrics[WEIR_TARGETS_TEST].auroc;
    double auroc = trees_of(trained, WEIR_TRAIN_GRAPH_TREES).metrics[WEIR_TARGETS_TEST].auroc;
    printf("AUROC of rows %.3f, with the graph %.3f\n", *of_rowsp, auroc);
    weir_trained_close(trained);
    weir_snapshot_close(snapshot);
    return auroc;
}

/* Of four neighbours of a moment all say a fourth of it, and none is the newest. */
static void fill_by_all_neighbors(learn_world *w) {
    for (uint64_t n = 0; n < PAYS; n++) {
        int64_t t = LEARN_START_US + (int64_t)n * 60 * LEARN_SECOND;
        double x = weir_rng_normal(&w->rng), sum = 0;
        uint64_t event = 0;
        for (uint64_t i = 0; i < 4; i++) {
            double hint = weir_rng_normal(&w->rng);
            sum += hint;
            learn_put(w, LEARN_WHO, 4 * n + i, t - LEARN_SECOND, &hint);
        }
        learn_put(w, LEARN_PAY, n, t, &x);
        event = w->offset;
        for (uint64_t i = 0; i < 4; i++)
            learn_edge_of(w, n, 4 * n + i, t, 1, event);
        learn_label(w, LEARN_BAD, n, sum > 0 ? "yes" : "no", t + LEARN_SECOND);
    }
}

/* What a person is, each other pay says, and is itself a coin; of those between only what the person's others say. */
static void fill_by_the_second_hop(learn_world *w) {
    for (uint64_t n = 0; n < PAYS; n++) {
        int64_t t = LEARN_START_US + (int64_t)n * 60 * LEARN_SECOND;
        uint64_t who = weir_rng_below(&w->rng, 60);
        bool bad = who % 2, yes = n % 2 ? bad : weir_rng_below(&w->rng, 2);
        double x = n % 2 ? 0 : bad ? 3 : -3;
        learn_put(w, LEARN_PAY, n, t, &x);
        learn_edge_of(w, n, who, t, 1, w->offset);
        learn_label(w, LEARN_BAD, n, yes ? "yes" : "no", t + LEARN_SECOND);
    }
}

static void trees_see_all_neighbours_and_theirs(void **state) {
    (void)state;
    double of_rows;
    assert_true(auroc_of_graph_trees(fill_by_all_neighbors, &of_rows) > 0.9);
    assert_true(fabs(of_rows - 0.5) < 0.2);
    assert_true(auroc_of_graph_trees(fill_by_the_second_hop, &of_rows) > 0.75);
    assert_true(of_rows < 0.7);
}

/* A target that says nothing of itself: only its neighbours can be learnt from. */
static void trees_of_a_target_without_columns(void **state) {
    (void)state;
    static const char pay[] = "  pay: {features: {x: {kind: number, normalise: standard}}}";
    const char *begin = strstr(learn_schema_text, pay);
    char text[sizeof learn_schema_text], out[4096];
    weir_snapshot *snapshot;
    weir_train_trees trees;
    learn_world w;
    assert_non_null(begin);
    snprintf(text, sizeof text, "%.*s  pay: {}%s", (int)(begin - learn_schema_text), learn_schema_text,
             begin + strlen(pay));
    learn_open(&w, text, weir_test_seed());
    for (uint64_t n = 0; n < 600; n++) {
        int64_t t = LEARN_START_US + (int64_t)n * 60 * LEARN_SECOND;
        uint64_t who = weir_rng_below(&w.rng, 40);
        learn_put(&w, LEARN_PAY, n, t, NULL);
        learn_edge(&w, n, who, t - 1, 1);
        learn_label(&w, LEARN_BAD, n, who < 10 && weir_rng_below(&w.rng, 5) ? "yes" : "no", t + LEARN_SECOND);
    }
    snprintf(out, sizeof out, "%s", learn_path("snapshot"));
    learn_build(&w, out, LEARN_START_US + 600 * 60 * LEARN_SECOND + LEARN_RIPE_US);
    assert_ok(weir_snapshot_open(out, &(weir_snapshot_opts){0}, &snapshot));
    weir_train_opts opts = train_opts_of(snapshot);
    opts.epochs = 1;
    weir_trained *trained = train_run(&opts);
    assert_err(weir_train_trees_learn(trained, WEIR_TRAIN_ROW_TREES, &trees, NULL), WEIR_EUNAVAILABLE,
               "'pay' has no feature");
    trees = trees_of(trained, WEIR_TRAIN_GRAPH_TREES);
    assert_true(isfinite(trees.metrics[WEIR_TARGETS_TEST].auroc));
    weir_trained_close(trained);
    weir_snapshot_close(snapshot);
}

WEIR_TESTS(WEIR_CASE(trees_see_neighbours_only_with_the_graph), WEIR_CASE(trees_see_all_neighbours_and_theirs),
           WEIR_CASE(trees_see_no_leak_either), WEIR_CASE(trees_of_a_target_without_columns))

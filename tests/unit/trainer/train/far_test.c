/* SPDX-License-Identifier: Apache-2.0 */
/*
 * far_test.c - a training whose memory is not the host's has the bits of one on the processor: nothing above the
 * kernels' table reads or writes what lies there, and no kernel is given what does not.
 */
#include "far_kernels.h"
#include "train_fixture.h"

static weir_trained *run_far(const weir_train_opts *opts) {
    weir_train_opts o = *opts;
    const uint64_t before = far.calls;
    o.kernels = far_kernels();
    weir_trained *trained = train_run(&o);
    assert_true(far.calls > before + 100);
    return trained;
}

static void same_scores(const weir_trained *here, const weir_trained *there) {
    const weir_trained_view a = weir_trained_look(here), b = weir_trained_look(there);
    const uint64_t judged = a.targets->count - a.targets->ends[WEIR_TARGETS_TRAIN];
    assert_int_equal(b.targets->count, a.targets->count);
    assert_int_equal(b.best_epoch, a.best_epoch);
    assert_memory_equal(a.scores, b.scores, judged * sizeof *a.scores);
}

static void same_bits(const weir_train_opts *opts) {
    weir_trained *here = train_run(opts), *there = run_far(opts);
    same_scores(here, there);
    weir_trained_close(here);
    weir_trained_close(there);
}

static weir_train_opts far_opts(weir_snapshot **snapshotp) {
    const learn_plan plan = {.seed = weir_test_seed(), .pays = 500, .people = 30, .bad = 0.3};
    *snapshotp = learn_snapshot_open(&plan);
    weir_train_opts opts = train_opts_of(*snapshotp);
    opts.epochs = 2;
    return opts;
}

/* Learning waits for an answer of the device once a step, judging once a batch, and an epoch a few times besides. What
 * is copied to the device is not counted: a table may do that without waiting. */
static void a_step_waits_for_one_answer(void **state) {
    (void)state;
    static const uint32_t embedded[] = {LEARN_WHO};
    weir_snapshot *snapshot;
    weir_train_opts opts = far_opts(&snapshot);
    opts.negatives = 0;
    opts.batch = 16;
    opts.embedded = embedded;
    opts.embedded_count = 1;
    const uint64_t before = far.waits;
    weir_trained *trained = run_far(&opts);
    const weir_targets *targets = weir_trained_look(trained).targets;
    uint64_t batches[WEIR_TARGETS_TEST + 1], begin = 0;
    for (uint32_t part = 0; part <= WEIR_TARGETS_TEST; begin = targets->ends[part++])
        batches[part] = (targets->ends[part] - begin + opts.batch - 1) / opts.batch;
    const uint64_t waits = far.waits - before, steps = opts.epochs * batches[WEIR_TARGETS_TRAIN],
                   judged = opts.epochs * batches[WEIR_TARGETS_VALIDATION] + batches[WEIR_TARGETS_TEST];
    assert_true(steps >= 20 && waits >= steps + judged);
    if (waits > steps + judged + (opts.epochs + 1) * 4)
        fail_msg("%llu waits for %llu steps and %llu judged batches", (unsigned long long)waits,
                 (unsigned long long)steps, (unsigned long long)judged);
    weir_trained_close(trained);
    weir_snapshot_close(snapshot);
}

static void every_network_has_the_same_bits(void **state) {
    (void)state;
    weir_snapshot *snapshot;
    weir_train_opts opts = far_opts(&snapshot);
    opts.dropout = opts.edge_dropout = 0.2;
    for (uint32_t network = 0; network < WEIR_NN_NETWORKS; network++) {
        opts.network = (weir_nn_network)network;
        opts.attention_dropout = weir_nn_network_has_heads(opts.network) ? 0.2 : 0;
        same_bits(&opts);
    }
    weir_snapshot_close(snapshot);
}

static void every_jump_and_norm_has_the_same_bits(void **state) {
    (void)state;
    weir_snapshot *snapshot;
    weir_train_opts opts = far_opts(&snapshot);
    opts.residual = opts.feed_forward = true;
    for (uint32_t jump = 0; jump < WEIR_NN_JUMPS; jump++) {
        opts.jump = (weir_nn_jump)jump;
        opts.norm = (weir_nn_norm)(jump % WEIR_NN_NORMS);
        same_bits(&opts);
    }
    weir_snapshot_close(snapshot);
}

static void embeddings_have_the_same_bits(void **state) {
    (void)state;
    static const uint32_t embedded[] = {LEARN_WHO};
    weir_snapshot *snapshot;
    weir_train_opts opts = far_opts(&snapshot);
    opts.embedded = embedded;
    opts.embedded_count = 1;
    opts.unknown = 0.1;
    opts.embedding_rate = 0.05;
    opts.average = 0.5;
    opts.rate_rise = 3;
    opts.norm_max = 0.5;
    for (uint32_t adagrad = 0; adagrad < 2; adagrad++) {
        opts.adagrad = adagrad;
        same_bits(&opts);
    }
    weir_snapshot_close(snapshot);
}

static void what_is_resumed_has_the_same_bits(void **state) {
    (void)state;
    weir_snapshot *snapshot;
    weir_train_opts opts = far_opts(&snapshot);
    opts.epochs = 3;
    weir_trained *here = train_run(&opts);
    opts.folder = weir_test_path("far");
    opts.epochs = 2;
    weir_trained_close(run_far(&opts));
    opts.epochs = 3;
    opts.resume = true;
    weir_trained *there = run_far(&opts);
    same_scores(here, there);
    weir_trained_close(here);
    weir_trained_close(there);
    weir_snapshot_close(snapshot);
}

#define STILL_NODES   400u
#define STILL_COLUMNS 24u

/* A graph that stands still, with a matrix, labels and masks. */
static weir_snapshot *still_open(void) {
    char nodes[4096], edges[4096], folder[4096];
    weir_snapshot_stats stats;
    weir_snapshot *snapshot;
    weir_rng rng = weir_rng_stream(weir_test_seed(), 7, 0);
    snprintf(nodes, sizeof nodes, "%s", weir_test_path("nodes.csv"));
    snprintf(edges, sizeof edges, "%s", weir_test_path("edges.csv"));
    snprintf(folder, sizeof folder, "%s", weir_test_path("still"));
    FILE *file = fopen(nodes, "w");
    assert_non_null(file);
    fprintf(file, "id,label,matrix.x.24,mask.train,mask.validation,mask.test\n");
    for (unsigned i = 0; i < STILL_NODES; i++) {
        fprintf(file, "%u,c%u,%u", i, i % 3, i % 3);
        for (unsigned c = 1; c < STILL_COLUMNS; c++)
            fprintf(file, " %g", weir_rng_below(&rng, 4) ? weir_rng_normal(&rng) : 0);
        fprintf(file, ",%d,%d,%d\n", i % 4 < 2, i % 4 == 2, i % 4 == 3);
    }
    assert_int_equal(fclose(file), 0);
    file = fopen(edges, "w");
    assert_non_null(file);
    fprintf(file, "src,dst\n");
    for (unsigned i = 0; i < 5 * STILL_NODES; i++)
        fprintf(file, "%u,%u\n", (unsigned)weir_rng_below(&rng, STILL_NODES), i % STILL_NODES);
    assert_int_equal(fclose(file), 0);
    assert_ok(
        weir_snapshot_import(&(weir_snapshot_import_opts){.out = folder, .nodes = nodes, .edges = edges}, &stats));
    assert_ok(weir_snapshot_open(folder, &(weir_snapshot_opts){0}, &snapshot));
    return snapshot;
}

/* TRAIN-D1: whether batches bring input rows, or all stay, or those that are read most; and the more stay, the less is
 * copied. With an encoder and without, and beside embeddings of vertices. */
static void d1_rows_that_stay_have_the_same_bits(void **state) {
    (void)state;
    static const double shares[] = {0, 0.4, 1, -1};
    static const uint32_t embedded[] = {0};
    weir_snapshot *snapshot = still_open();
    weir_train_opts opts = train_opts_of(snapshot);
    opts.task = 0;
    opts.epochs = 2;
    opts.batch = 32;
    opts.cut = (weir_targets_cut){.split = WEIR_TARGETS_BY_MASKS, .masks = {"train", "validation", "test"}};
    for (unsigned kind = 0; kind < 3; kind++) {
        uint64_t copied[4] = {0};
        opts.bare = kind == 1;
        opts.embedded = embedded;
        opts.embedded_count = kind == 2;
        weir_trained *here = train_run(&opts);
        for (unsigned i = 0; i < 4; i++) {
            const uint64_t before = far.copied_in;
            opts.resident = shares[i];
            weir_trained *there = run_far(&opts);
            same_scores(here, there);
            weir_trained_close(there);
            copied[i] = far.copied_in - before;
        }
        assert_true(copied[0] > copied[1] && copied[1] > copied[2] && copied[2] == copied[3]);
        opts.resident = -1;
        weir_trained_close(here);
    }
    weir_snapshot_close(snapshot);
}

static void rows_of_graphs_with_times_do_not_stay(void **state) {
    (void)state;
    weir_snapshot *snapshot;
    weir_train_opts opts = far_opts(&snapshot);
    opts.resident = 0.5;
    train_refused(&opts, WEIR_EUSAGE, "omit --resident");
    weir_snapshot_close(snapshot);
}

WEIR_TESTS(WEIR_CASE(d1_rows_that_stay_have_the_same_bits), WEIR_CASE(rows_of_graphs_with_times_do_not_stay),
           WEIR_CASE(a_step_waits_for_one_answer), WEIR_CASE(every_network_has_the_same_bits),
           WEIR_CASE(every_jump_and_norm_has_the_same_bits), WEIR_CASE(embeddings_have_the_same_bits),
           WEIR_CASE(what_is_resumed_has_the_same_bits))

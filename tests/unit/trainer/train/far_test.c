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

WEIR_TESTS(WEIR_CASE(a_step_waits_for_one_answer), WEIR_CASE(every_network_has_the_same_bits),
           WEIR_CASE(every_jump_and_norm_has_the_same_bits), WEIR_CASE(embeddings_have_the_same_bits),
           WEIR_CASE(what_is_resumed_has_the_same_bits))

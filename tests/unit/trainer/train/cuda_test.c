/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda_test.c - trainings with the kernels for CUDA, on the device that a processor plays: each epoch's loss is that of
 * the processor's table within 1e-5, each score within 1e-4 in a long one, and no kernel has an access that a device
 * would not forgive.
 */
#include <math.h>

#include "cuda.h"
#include "cuda/emulator.h"
#include "train_fixture.h"

#define EPOCHS_MAX 40u
/* A norm may divide by a deviation that is next to nothing, and what products were rounded by grows as much. */
#define WIDE 1e-3
/* AdamW moves a weight whose gradient is nothing but rounding by its whole rate, one way or the other. So of some
 * hundred random graphs one has scores that are 0.1 apart, and as far between the processor's own two builds of its
 * loops: a training has a graph on which both agree. In which order the device's threads run is drawn each time. */
#define GRAPH 7u

typedef struct losses {
    double of[EPOCHS_MAX];
    uint32_t count;
} losses;

static weir_err note_loss(void *context, const weir_train_epoch *epoch) {
    losses *l = context;
    assert_true(l->count < EPOCHS_MAX);
    l->of[l->count++] = epoch->loss;
    return WEIR_OK;
}

static weir_trained *run_on(const weir_train_opts *opts, const weir_kernels *kernels, losses *l) {
    weir_train_opts o = *opts;
    *l = (losses){.count = 0};
    o.kernels = kernels;
    o.on_epoch = note_loss;
    o.context = l;
    return train_run(&o);
}

/* How far the scores of all that was judged are apart, at most, as a part of 1 or of themselves. */
static double apart(const weir_trained *here, const weir_trained *there) {
    const weir_trained_view a = weir_trained_look(here), b = weir_trained_look(there);
    const uint64_t judged = a.targets->count - a.targets->ends[WEIR_TARGETS_TRAIN];
    double most = 0;
    for (uint64_t i = 0; i < judged; i++)
        most = fmax(most, fabs(a.scores[i] - b.scores[i]) / fmax(1, fabs(a.scores[i])));
    return most;
}

/* All memory has been given back, too. */
static void nothing_is_found(void) {
    size_t findings;
    emu_findings(&findings);
    emu_print_findings();
    assert_int_equal(findings, 0);
    assert_int_equal(emu_counts().live_bytes, 0);
}

/* Returns how many steps were taken. far: that scores may be apart. */
static uint64_t trains_alike(const weir_train_opts *opts, double far) {
    const weir_kernels *cuda;
    losses of_here, of_there;
    double loss = 0;
    emu_reset(weir_test_seed());
    assert_ok(weir_cuda_open(0, &cuda));
    weir_trained *here = run_on(opts, NULL, &of_here), *there = run_on(opts, cuda, &of_there);
    assert_int_equal(of_here.count, of_there.count);
    for (uint32_t i = 0; i < of_here.count; i++)
        loss = fmax(loss, fabs(of_here.of[i] - of_there.of[i]));
    const double score = apart(here, there);
    if (!(loss <= 1e-5 && score <= far)) fail_msg("losses are %g apart, scores %g", loss, score);
    const uint64_t learnt = weir_trained_look(here).targets->ends[WEIR_TARGETS_TRAIN];
    weir_trained_close(here);
    weir_trained_close(there);
    cuda->close(cuda);
    nothing_is_found();
    return of_here.count * ((learnt + opts->batch - 1) / opts->batch);
}

static weir_train_opts cuda_opts(weir_snapshot **snapshotp) {
    const learn_plan plan = {.seed = GRAPH, .pays = 300, .people = 30, .bad = 0.3};
    *snapshotp = learn_snapshot_open(&plan);
    weir_train_opts opts = train_opts_of(*snapshotp);
    opts.epochs = 1;
    return opts;
}

/* Two hundred steps with all that a plain training has: dropout, decay, a bound of the gradients, embeddings. */
static void two_hundred_steps_have_the_losses_of_the_processor(void **state) {
    (void)state;
    weir_test_skip_under("address", "the other cases take such steps, but fewer");
    static const uint32_t embedded[] = {LEARN_WHO};
    weir_snapshot *snapshot;
    weir_train_opts opts = cuda_opts(&snapshot);
    opts.embedded = embedded;
    opts.embedded_count = 1;
    opts.negatives = 0;
    opts.batch = 8;
    opts.epochs = 16;
    opts.patience = 0;
    opts.rate = 0.003;
    assert_true(trains_alike(&opts, 1e-4) >= 200);
    weir_snapshot_close(snapshot);
}

typedef struct steady {
    emu_counted counts[16];
    uint32_t epochs;
} steady;

static weir_err on_epoch_count(void *context, const weir_train_epoch *epoch) {
    steady *s = context;
    (void)epoch;
    assert_true(s->epochs < sizeof s->counts / sizeof s->counts[0]);
    s->counts[s->epochs++] = emu_counts();
    return WEIR_OK;
}

/* Once memory has grown to the largest batch no step takes any; judging does, for the makers that it begins with. The
 * host waits for a batch's copies, on its maker's thread, and on that which computes for the step's norm and loss, or
 * for scores: a copy to the host counts twice, as it is one that waits, to memory that is not page-locked. */
static void a_steady_step_takes_no_memory_and_waits_once(void **state) {
    (void)state;
    weir_snapshot *snapshot;
    weir_train_opts opts = cuda_opts(&snapshot);
    const weir_kernels *cuda;
    steady s = {.epochs = 0};
    emu_reset(weir_test_seed());
    assert_ok(weir_cuda_open(0, &cuda));
    opts.kernels = cuda;
    opts.negatives = 0;
    opts.batch = 4;
    opts.ahead = 3;
    opts.epochs = 8;
    opts.patience = 0;
    opts.on_epoch = on_epoch_count;
    opts.context = &s;
    weir_trained *trained = train_run(&opts);
    const uint64_t *ends = weir_trained_look(trained).targets->ends;
    const uint64_t steps = (ends[WEIR_TARGETS_TRAIN] + opts.batch - 1) / opts.batch,
                   judged = (ends[WEIR_TARGETS_VALIDATION] - ends[WEIR_TARGETS_TRAIN] + opts.batch - 1) / opts.batch;
    assert_int_equal(s.epochs, opts.epochs);
    const emu_counted *from = &s.counts[3], *to = &s.counts[7];
    const uint64_t syncs = to->syncs - from->syncs, most = 4 * (6 * steps + 5 * judged + 10);
    assert_true(steps >= 30 && to->launches > from->launches + 4 * 50 * steps);
    assert_in_range(to->allocations - from->allocations, 0, 4 * (opts.ahead * 5));
    if (syncs > most)
        fail_msg("%llu waits in 4 epochs of %llu steps and %llu judged batches", (unsigned long long)syncs,
                 (unsigned long long)steps, (unsigned long long)judged);
    weir_trained_close(trained);
    cuda->close(cuda);
    nothing_is_found();
    weir_snapshot_close(snapshot);
}

static void every_network_trains_alike(void **state) {
    (void)state;
    weir_snapshot *snapshot;
    weir_train_opts opts = cuda_opts(&snapshot);
    opts.dropout = opts.edge_dropout = 0.2;
    for (uint32_t network = 0; network < WEIR_NN_NETWORKS; network++) {
        opts.network = (weir_nn_network)network;
        opts.attention_dropout = weir_nn_network_has_heads(opts.network) ? 0.2 : 0;
        trains_alike(&opts, WIDE);
    }
    weir_snapshot_close(snapshot);
}

static void every_jump_and_norm_trains_alike(void **state) {
    (void)state;
    weir_snapshot *snapshot;
    weir_train_opts opts = cuda_opts(&snapshot);
    opts.residual = opts.feed_forward = true;
    for (uint32_t jump = 0; jump < WEIR_NN_JUMPS; jump++) {
        opts.jump = (weir_nn_jump)jump;
        opts.norm = (weir_nn_norm)(jump % WEIR_NN_NORMS);
        trains_alike(&opts, WIDE);
    }
    weir_snapshot_close(snapshot);
}

/* Three epochs, and two of them, a checkpoint and the third: the same bits, as each sum has one order. */
static void what_is_resumed_has_the_same_bits(void **state) {
    (void)state;
    weir_snapshot *snapshot;
    weir_train_opts opts = cuda_opts(&snapshot);
    const weir_kernels *cuda;
    losses l;
    emu_reset(weir_test_seed());
    assert_ok(weir_cuda_open(0, &cuda));
    opts.epochs = 3;
    weir_trained *whole = run_on(&opts, cuda, &l);
    opts.folder = weir_test_path("cuda");
    opts.epochs = 2;
    weir_trained_close(run_on(&opts, cuda, &l));
    opts.epochs = 3;
    opts.resume = true;
    weir_trained *resumed = run_on(&opts, cuda, &l);
    assert_int_equal(l.count, 1);
    assert_true(apart(whole, resumed) == 0);
    weir_trained_close(whole);
    weir_trained_close(resumed);
    cuda->close(cuda);
    nothing_is_found();
    weir_snapshot_close(snapshot);
}

WEIR_TESTS(WEIR_CASE(two_hundred_steps_have_the_losses_of_the_processor),
           WEIR_CASE(a_steady_step_takes_no_memory_and_waits_once), WEIR_CASE(every_network_trains_alike),
           WEIR_CASE(every_jump_and_norm_trains_alike), WEIR_CASE(what_is_resumed_has_the_same_bits))

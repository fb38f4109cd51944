/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pipeline_bench.c - what a batch costs where the network is slow: some epochs of a training by several ranks, once for
 * each delay that every round of an exchange between them is given.
 *
 * Computing takes 10 ms a batch, asleep, so that as many ranks as one likes have room on one machine. A batch asks in
 * one round and is answered in the next. One after the other these would cost two delays and the computing. Side by
 * side, of as many batches as are prepared ahead, they cost their share or the computing, whichever is more. The floor
 * is one round and a tenth: stages that have one batch each under way would cost as much.
 *
 * `ready` says how many batches of an epoch had been prepared when it began, at least, in all epochs but the first: the
 * pipeline did not run dry between them.
 *
 * The other tables delay sums, too. Where each takes 20 ms and they run side by side, the last ones begin as the way
 * back ends, and all of theirs is exposed. What the way back hides shows where sums take 3 ms and one waits for the
 * other, as on a network that each fills: a way back that computes nothing leaves all of them to wait for, one of 10 ms
 * those of the first layer and of the encoders; the difference, the loss, the head and the other layer, was hidden. A
 * way back longer than all sums, of 5 ms at each of its ten biases, hides all but what the encoders end it with: two
 * sums here, since a table of categories, whose rows are summed apart, lies between their weights.
 *
 *     mpirun -n 4 weir-bench pipeline
 */
#include <stdio.h>

#include <weir/store/base/clock.h>
#include <weir/trainer/train/train.h>

#include "bench.h"
#include "train_world.h"

#define PAYS       3000u
#define QUICK_PAYS 600u
#define BATCH      64u
#define HIDDEN     16u
#define EPOCHS     4u
#define COMPUTE_US 10000
#define BIAS_US    5000
#define FLOOR      1.1 /* of a round */

/* How long what takes, and in which way. */
typedef struct setting {
    weir_comm_delays delays;
    int64_t compute_us; /* once a batch */
    int64_t bias_us;    /* at each bias of the network: in the head, in each layer and in each encoder */
} setting;

typedef struct bench {
    weir_comm *comm;
    weir_snapshot *snapshot;
    weir_kernels kernels;
    bool quick;
    uint32_t ahead;
    /* Of the training at hand. */
    weir_train_times times;
    int64_t learning_us;
    uint32_t ready; /* the fewest, of epochs but the first */
} bench;

static int64_t compute_us, bias_us;

/* The way back of each batch comes here once, before the last of its layers is finished. */
static void slow_scatter(const weir_kernels *k, uint32_t rows, uint32_t cols, const weir_real *dout,
                         const uint32_t *index, weir_real *dx) {
    weir_clock *clock = weir_clock_system();
    weir_clock_sleep_until(clock, weir_clock_mono_us(clock) + compute_us);
    weir_kernels_cpu()->scatter_add_rows(k, rows, cols, dout, index, dx);
}

static void slow_bias_back(const weir_kernels *k, uint32_t rows, uint32_t cols, const weir_real *dx, weir_real *dbias) {
    weir_clock *clock = weir_clock_system();
    weir_clock_sleep_until(clock, weir_clock_mono_us(clock) + bias_us);
    weir_kernels_cpu()->bias_back(k, rows, cols, dx, dbias);
}

static weir_err on_epoch(void *context, const weir_train_epoch *epoch) {
    bench *b = context;
    b->times.sample += epoch->times.sample;
    b->times.exchange += epoch->times.exchange;
    b->times.encode += epoch->times.encode + epoch->times.bring;
    b->times.wait += epoch->times.wait;
    b->times.compute += epoch->times.compute;
    b->times.sum += epoch->times.sum + epoch->times.pull;
    b->times.sum_wait += epoch->times.sum_wait + epoch->times.pull;
    b->learning_us += epoch->learning_us;
    if (epoch->number > 1 && epoch->ready < b->ready) b->ready = epoch->ready;
    return WEIR_OK;
}

static weir_err train(bench *b, const setting *at, uint64_t *batchesp) {
    static const uint32_t fanouts[] = {10, 10};
    weir_trained *trained;
    weir_train_opts opts = weir_train_defaults();
    opts.snapshot = b->snapshot;
    opts.kernels = &b->kernels;
    opts.reach.fanouts = fanouts;
    opts.hidden = HIDDEN;
    opts.batch = BATCH;
    opts.ahead = b->ahead;
    opts.epochs = b->quick ? 2 : EPOCHS;
    opts.patience = 0;
    opts.negatives = 0;
    opts.cut.warm_up = 0.1;
    opts.cut.validation = opts.cut.test = 0.1;
    opts.on_epoch = on_epoch;
    opts.context = b;
    b->times = (weir_train_times){0};
    b->learning_us = 0;
    b->ready = UINT32_MAX;
    compute_us = at->compute_us;
    bias_us = at->bias_us;
    weir_comm_delay(b->comm, &at->delays);
    weir_err err = weir_train_run(b->comm, &opts, &trained);
    if (err) return err;
    *batchesp = (weir_trained_look(trained).targets->ends[WEIR_TARGETS_TRAIN] + BATCH - 1) / BATCH * opts.epochs;
    weir_trained_close(trained);
    return WEIR_OK;
}

/* Of rank 0: milliseconds a batch. */
static weir_err print(const weir_cli *cli, const bench *b, const setting *at, uint64_t batches) {
    double scale = 1e-3 / (double)batches, round_ms = (double)at->delays.exchange_us * 1e-3;
    const struct {
        const char *key, *name;
        int64_t us;
    } columns[] = {
        {"all", "a batch of learning", b->learning_us},
        {"sample", "sample", b->times.sample},
        {"exchange", "ask and answer", b->times.exchange},
        {"encode", "encode", b->times.encode},
        {"compute", "compute", b->times.compute},
        {"sum", "sums", b->times.sum},
        {"exposed", "exposed: compute waits for a batch", b->times.wait},
        {"sum_exposed", "exposed: update waits for sums", b->times.sum_wait},
    };
    bool json = weir_cli_given(cli, "json");
    const char *queue = at->delays.sums_queue ? json ? "true" : " one after the other" : json ? "false" : "";
    weir_buf out = {0};
    weir_buf_printf(&out,
                    json ? "{\"bench\":\"pipeline\",\"ranks\":%u,\"ahead\":%u,\"round_ms\":%g,\"sum_round_ms\":%g,"
                           "\"sums_queue\":%s,\"way_back_ms\":%g,\"bias_ms\":%g,\"floor_ms\":%g,\"ready\":%u"
                         : "pipeline   %u ranks, %u batches ahead; rounds of %g ms, of sums %g ms%s; way back %g ms "
                           "and %g ms a bias; floor %g ms; at least %u batches ready when an epoch began\n",
                    weir_comm_ranks(b->comm), b->ahead, round_ms, (double)at->delays.sum_us * 1e-3, queue,
                    (double)at->compute_us * 1e-3, (double)at->bias_us * 1e-3, round_ms * FLOOR, b->ready);
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
        weir_buf_printf(&out, json ? ",\"%s_ms\":%.6g" : "             %-36s %9.3f ms\n",
                        json ? columns[i].key : columns[i].name, (double)columns[i].us * scale);
    if (json) weir_buf_text(&out, "}\n");
    weir_err err = weir_buf_err(&out);
    if (!err) err = weir_cli_output(out.bytes, out.length);
    weir_buf_free(&out);
    return err;
}

static weir_err run(weir_cli *cli) {
    static const setting settings[] = {{{0}, COMPUTE_US, 0},
                                       {{20000, 0, false}, COMPUTE_US, 0},
                                       {{60000, 0, false}, COMPUTE_US, 0},
                                       {{20000, 20000, false}, COMPUTE_US, 0},
                                       {{0, 3000, true}, 0, 0},
                                       {{0, 3000, true}, COMPUTE_US, 0},
                                       {{0, 3000, true}, 0, BIAS_US}};
    static bench b;
    uint64_t rounds = 1, ahead = weir_train_defaults().ahead;
    b.quick = weir_bench_quick(cli);
    b.kernels = *weir_kernels_cpu();
    b.kernels.scatter_add_rows = slow_scatter;
    b.kernels.bias_back = slow_bias_back;
    weir_err err = weir_cli_u64(cli, "rounds", 1, WEIR_BENCH_ROUNDS_MAX, &rounds);
    if (!err) err = weir_cli_u64(cli, "ahead", 1, WEIR_TRAIN_AHEAD_MAX, &ahead);
    b.ahead = (uint32_t)ahead;
    if (!err) err = weir_train_world_open(b.quick ? QUICK_PAYS : PAYS, &b.comm, &b.snapshot);
    for (uint64_t round = 0; !err && round < rounds; round++)
        for (size_t i = 0; !err && i < sizeof settings / sizeof *settings; i++) {
            uint64_t batches;
            err = train(&b, &settings[i], &batches);
            if (!err) err = print(cli, &b, &settings[i], batches);
        }
    if (err && b.comm) err = weir_comm_fail(b.comm, err);
    weir_snapshot_close(b.snapshot);
    weir_bench_folder_remove(&err);
    weir_comm_stop(b.comm);
    return err;
}

static const weir_option options[] = {
    WEIR_BENCH_OPTIONS, {"ahead", 0, "N", "batches that are prepared ahead (default: as weir train does)", NULL}, {0}};

extern const weir_command weir_bench_pipeline;
const weir_command weir_bench_pipeline = {
    .name = "pipeline",
    .summary = "a batch of training on a slow network: by stage, and what is exposed",
    .example = "mpirun -n 4 weir-bench pipeline --rounds 3",
    .options = options,
    .run = run,
};

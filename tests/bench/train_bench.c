/* SPDX-License-Identifier: Apache-2.0 */
/*
 * train_bench.c - epochs of a training as `weir train` runs them, against the machine's GEMM rate in the same rounds.
 *
 * The first line is the limit. The second counts the flops of the training's GEMMs over the time of its compute stage,
 * the third over the whole epoch. The table says what each stage took of a batch: they run side by side, so that only
 * what compute waits for is lost. Under mpirun rank 0 speaks: its own times, and the rates of all.
 *
 *     mpirun -n 2 weir-bench train --rounds 3
 */
#include <stdio.h>

#include <weir/store/base/alloc.h>
#include <weir/trainer/train/train.h>

#include "bench.h"
#include "train_world.h"

#define SQUARE     512u
#define PAYS       40000u
#define QUICK_PAYS 1200u
#define BATCH      512u
#define HIDDEN     64u

/* What is measured of training: which of its times the flops are held against. */
typedef enum span { COMPUTE, EPOCH, SPANS } span;

typedef struct bench {
    weir_comm *comm;
    weir_snapshot *snapshot;
    weir_kernels kernels;
    bool quick;
    weir_train_times times; /* of all rounds */
    int64_t elapsed_us;
    uint64_t edges, targets, batches;
} bench;

typedef struct subject {
    bench *b;
    span span;
    weir_bench_sample *sample; /* of the round at hand */
} subject;

static double flops; /* of this process */

static void counted_gemm(const weir_kernels *k, const weir_gemm *g) {
    flops += 2.0 * g->m * g->n * g->k;
    weir_kernels_cpu()->gemm(k, g);
}

/* --- lines -------------------------------------------------------------------------------------------------------- */

static weir_err run_square(void *context, uint64_t round, weir_bench_sample *samplep) {
    const bench *b = context;
    size_t size = (size_t)SQUARE * SQUARE;
    uint64_t repeats = b->quick ? 1 : 40;
    weir_real *memory = weir_calloc(3 * size, sizeof *memory);
    (void)round;
    if (!memory) return WEIR_NOMEM("for the bench's product");
    for (size_t i = 0; i < 2 * size; i++)
        memory[i] = (weir_real)(i % 17) / 17;
    weir_gemm g = {.m = SQUARE, .n = SQUARE, .k = SQUARE, .lda = SQUARE, .ldb = SQUARE, .ldc = SQUARE};
    g.a = memory;
    g.b = memory + size;
    g.c = memory + 2 * size;
    weir_kernels_cpu()->gemm(weir_kernels_cpu(), &g);
    weir_bench_start(samplep);
    for (uint64_t i = 0; i < repeats; i++)
        weir_kernels_cpu()->gemm(weir_kernels_cpu(), &g);
    weir_bench_stop(samplep, 2.0 * SQUARE * SQUARE * SQUARE * (double)repeats);
    weir_free(memory);
    return WEIR_OK;
}

/* Validation is some targets of a thousand, so that the flops of judging do not count. */
static weir_err on_epoch(void *context, const weir_train_epoch *epoch) {
    subject *s = context;
    bench *b = s->b;
    s->sample->units = flops;
    s->sample->elapsed_ns = 1000 * (s->span == COMPUTE ? epoch->times.compute : epoch->elapsed_us);
    b->times.sample += epoch->times.sample;
    b->times.exchange += epoch->times.exchange;
    b->times.encode += epoch->times.encode + epoch->times.bring;
    b->times.wait += epoch->times.wait;
    b->times.compute += epoch->times.compute;
    b->times.sum += epoch->times.sum + epoch->times.pull;
    b->elapsed_us += epoch->elapsed_us;
    b->edges += epoch->edges;
    b->targets += epoch->targets;
    return WEIR_OK;
}

static weir_err run_epoch(void *context, uint64_t round, weir_bench_sample *samplep) {
    static const uint32_t fanouts[] = {10, 10};
    subject *s = context;
    bench *b = s->b;
    weir_trained *trained;
    weir_train_opts opts = weir_train_defaults();
    s->sample = samplep;
    flops = 0;
    opts.snapshot = b->snapshot;
    opts.kernels = &b->kernels;
    opts.reach.fanouts = fanouts;
    opts.hidden = HIDDEN;
    opts.batch = BATCH;
    opts.epochs = 1;
    opts.negatives = 0;
    opts.cut.warm_up = 0.1;
    opts.cut.validation = opts.cut.test = b->quick ? 0.1 : 0.003;
    opts.seed = round;
    opts.on_epoch = on_epoch;
    opts.context = s;
    weir_err err = weir_train_run(b->comm, &opts, &trained);
    if (err) return err;
    b->batches += (weir_trained_look(trained).targets->ends[WEIR_TARGETS_TRAIN] + BATCH - 1) / BATCH;
    weir_trained_close(trained);
    return WEIR_OK;
}

/* --- where the time went ------------------------------------------------------------------------------------------ */

static void print_stage(const weir_cli *cli, weir_buf *out, const bench *b, const char *name, int64_t us) {
    double ms = (double)us * 1e-3 / (double)b->batches, share = (double)us / (double)b->elapsed_us;
    uint32_t ranks = weir_comm_ranks(b->comm);
    if (weir_cli_given(cli, "json"))
        weir_buf_printf(out, "{\"bench\":\"train\",\"ranks\":%u,\"stage\":\"%s\",\"ms\":%.6g,\"share\":%.6g}\n", ranks,
                        name, ms, share);
    else
        weir_buf_printf(out, "train      %u ranks  %-34s %9.3f ms a batch  %5.1f %% of the epoch\n", ranks, name, ms,
                        100 * share);
}

static void print_rate(const weir_cli *cli, weir_buf *out, const bench *b, const char *name, double rate) {
    uint32_t ranks = weir_comm_ranks(b->comm);
    if (weir_cli_given(cli, "json"))
        weir_buf_printf(out, "{\"bench\":\"train\",\"ranks\":%u,\"rate\":\"%s\",\"per_second\":%.6g}\n", ranks, name,
                        rate);
    else
        weir_buf_printf(out, "train      %u ranks  %-34s %9.0f /s\n", ranks, name, rate);
}

static weir_err print_table(const weir_cli *cli, bench *b) {
    weir_buf out = {0};
    double all[] = {(double)b->edges, (double)b->targets};
    weir_comm_sum_doubles(b->comm, all, 2);
    print_stage(cli, &out, b, "sample", b->times.sample);
    print_stage(cli, &out, b, "exchange of remote rows", b->times.exchange);
    print_stage(cli, &out, b, "encode", b->times.encode);
    print_stage(cli, &out, b, "compute: forward, loss, back", b->times.compute);
    print_stage(cli, &out, b, "sum of gradients", b->times.sum);
    print_stage(cli, &out, b, "exposed: compute waits for a batch", b->times.wait);
    print_stage(cli, &out, b, "in all", b->elapsed_us);
    print_rate(cli, &out, b, "edges sampled, a second of epoch", all[0] / ((double)b->elapsed_us * 1e-6));
    print_rate(cli, &out, b, "edges sampled, a second of sampling",
               (double)b->edges / ((double)b->times.sample * 1e-6));
    print_rate(cli, &out, b, "targets learnt, a second of epoch", all[1] / ((double)b->elapsed_us * 1e-6));
    weir_err err = weir_buf_err(&out);
    if (!err) err = weir_cli_output(out.bytes, out.length);
    weir_buf_free(&out);
    return err;
}

/* --- the bench ---------------------------------------------------------------------------------------------------- */

static weir_err run(weir_cli *cli) {
    static bench b;
    b.quick = weir_bench_quick(cli);
    b.kernels = *weir_kernels_cpu();
    b.kernels.gemm = counted_gemm;
    subject subjects[SPANS] = {{&b, COMPUTE, NULL}, {&b, EPOCH, NULL}};
    const char *limit = "GEMM of 512 x 512 x 512";
    const weir_bench_line lines[] = {
        {limit, "GFLOP/s", 1e-9, NULL, run_square, &b},
        {"GEMMs of training over its compute", "GFLOP/s", 1e-9, limit, run_epoch, &subjects[COMPUTE]},
        {"GEMMs of training over its epoch", "GFLOP/s", 1e-9, limit, run_epoch, &subjects[EPOCH]},
    };
    weir_err err = weir_train_world_open(b.quick ? QUICK_PAYS : PAYS, &b.comm, &b.snapshot);
    if (!err) err = weir_bench_run(cli, "train", lines, sizeof lines / sizeof lines[0]);
    if (!err) err = print_table(cli, &b);
    if (err && b.comm) err = weir_comm_fail(b.comm, err);
    weir_snapshot_close(b.snapshot);
    weir_comm_stop(b.comm);
    return err;
}

extern const weir_command weir_bench_train;
const weir_command weir_bench_train = {
    .name = "train",
    .summary = "epochs of training: share of GEMM, milliseconds by stage, sampled edges",
    .example = "weir bench train --rounds 3",
    .options = weir_bench_options,
    .run = run,
};

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * epoch_bench.c - epochs of a training over a large graph that stands still, as other programs train on it, too:
 * tests/bench/peers/train has them read the same arrays.
 *
 * The limit is what no training of this network can save: its GEMMs, called one after the other with nothing between
 * them, and the input rows fetched out of the matrix. Both are measured after each epoch. Stages run side by side, so
 * that their shares need not add up: what compute waits for a batch is the time that is lost. Under mpirun rank 0
 * speaks: its own times, and the processor time of all.
 *
 *     weir-bench epoch --graph build/graph --rounds 2
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/clock.h>
#include <weir/store/base/file.h>
#include <weir/store/base/rng.h>
#include <weir/trainer/train/train.h>

#include "bench.h"
#include "epoch_world.h"

#define EPOCH_LAYERS    3u
#define EPOCH_HIDDEN    256u
#define EPOCH_ROUNDS    3u
#define EPOCH_NO_MEMORY "for the limit of the bench's epochs"

static const uint32_t epoch_fanouts[EPOCH_LAYERS] = {15, 10, 5};

/* By the clock, and by what the thread that computes got of a processor: on a busy machine trust the second. */
typedef struct epoch_span {
    int64_t us, thread_us;
} epoch_span;

/* Sums over the epochs that count. */
typedef struct epoch_sums {
    weir_train_times times;
    int64_t whole_us, cpu_us, thread_us;
    epoch_span update;
    double flops, alone_flops;
    epoch_span alone_gemms, alone_gather; /* of as many batches as were learnt from */
    double edges, rows, batches;
    double loss; /* of the last one */
} epoch_sums;

typedef struct epoch_bench {
    weir_comm *comm;
    weir_snapshot *snapshot;
    weir_kernels kernels;
    epoch_world world;
    uint32_t rounds;
    bool bare; /* no encoder */
    double cache;
    int64_t cpu_us, thread_us; /* when the epoch at hand began */
    epoch_sums sums;
} epoch_bench;

/* --- kernels that count and take their time ----------------------------------------------------------------------- */

static struct epoch_count {
    double pending, flops; /* flops: of what led to an update, so that judging does not count */
    epoch_span update;
    int64_t updated_us;
    bool recorded; /* the GEMMs of a batch: all before the first update */
    weir_gemm *gemms;
    size_t gemm_count, gemm_room;
} counted;

static int64_t epoch_now_us(void) {
    return weir_clock_mono_us(weir_clock_system());
}

/* As if it had begun at 0. */
static epoch_span epoch_begin(void) {
    struct timespec used;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return (epoch_span){epoch_now_us(), (int64_t)used.tv_sec * 1000000 + used.tv_nsec / 1000};
}

static void epoch_end(epoch_span begin, epoch_span *sum) {
    epoch_span now = epoch_begin();
    sum->us += now.us - begin.us;
    sum->thread_us += now.thread_us - begin.thread_us;
}

static void counted_gemm(const weir_kernels *k, const weir_gemm *g) {
    counted.pending += 2.0 * g->m * g->n * g->k;
    if (!counted.recorded && WEIR_GROW(counted.gemms, counted.gemm_room, counted.gemm_count))
        counted.gemms[counted.gemm_count++] = *g;
    weir_kernels_cpu()->gemm(k, g);
}

static void counted_square_sum(const weir_kernels *k, size_t count, const weir_real *x, double *sum) {
    epoch_span begin = epoch_begin();
    weir_kernels_cpu()->square_sum(k, count, x, sum);
    epoch_end(begin, &counted.update);
}

static void counted_adamw(const weir_kernels *k, size_t count, const weir_adamw_step *step, const weir_real *gradients,
                          weir_real *moment1, weir_real *moment2, weir_real *parameters) {
    epoch_span begin = epoch_begin();
    weir_kernels_cpu()->adamw(k, count, step, gradients, moment1, moment2, parameters);
    epoch_end(begin, &counted.update);
    counted.updated_us = epoch_now_us();
    counted.flops += counted.pending;
    counted.pending = 0;
    counted.recorded = true;
}

/* --- the limit ---------------------------------------------------------------------------------------------------- */

static size_t epoch_larger(size_t a, uint32_t rows, uint32_t ld) {
    size_t b = (size_t)rows * ld;
    return a > b ? a : b;
}

static weir_real *epoch_operand(size_t count) {
    weir_real *x = NULL;
    if (weir_kernels_cpu()->alloc(weir_kernels_cpu(), count * sizeof *x, (void **)&x)) return NULL;
    for (size_t i = 0; i < count; i++)
        x[i] = (weir_real)(i % 17) / 4096;
    return x;
}

/* The GEMMs of one batch, of the same shapes. */
static weir_err epoch_measure_gemms(epoch_span *spanp, double *flopsp) {
    const weir_kernels *k = weir_kernels_cpu();
    size_t sizes[3] = {1, 1, 1};
    *flopsp = 0;
    for (size_t i = 0; i < counted.gemm_count; i++) {
        const weir_gemm *g = &counted.gemms[i];
        sizes[0] = epoch_larger(sizes[0], g->a_transposed ? g->k : g->m, g->lda);
        sizes[1] = epoch_larger(sizes[1], g->b_transposed ? g->n : g->k, g->ldb);
        sizes[2] = epoch_larger(sizes[2], g->m, g->ldc);
        *flopsp += 2.0 * g->m * g->n * g->k;
    }
    weir_real *a = epoch_operand(sizes[0]), *b = epoch_operand(sizes[1]), *c = epoch_operand(sizes[2]);
    weir_err err = a && b && c ? WEIR_OK : WEIR_NOMEM(EPOCH_NO_MEMORY);
    epoch_span begin = epoch_begin();
    for (size_t i = 0; !err && i < counted.gemm_count; i++) {
        weir_gemm g = counted.gemms[i];
        g.a = a;
        g.b = b;
        g.c = c;
        k->gemm(k, &g);
    }
    epoch_end(begin, spanp);
    k->release(k, a);
    k->release(k, b);
    k->release(k, c);
    return err;
}

/* As many rows as a batch has, from anywhere in the matrix. */
static weir_err epoch_measure_gather(const epoch_bench *b, uint32_t rows, uint64_t seed, epoch_span *spanp) {
    const weir_snapshot_vertices *v = weir_snapshot_vertices_of(b->snapshot, 0);
    const weir_snapshot_extra *x = v->extras;
    weir_rng rng = weir_rng_stream(seed, rows, 0);
    while (!x->columns)
        x++;
    uint32_t *index = weir_calloc(rows + 1, sizeof *index);
    weir_real *out = epoch_operand((size_t)rows * x->columns + 1);
    weir_err err = index && out ? WEIR_OK : WEIR_NOMEM(EPOCH_NO_MEMORY);
    for (uint32_t i = 0; !err && i < rows; i++)
        index[i] = (uint32_t)weir_rng_below(&rng, v->count);
    epoch_span begin = epoch_begin();
    if (!err)
        weir_kernels_cpu()->gather_rows(weir_kernels_cpu(), rows, (uint32_t)x->columns, x->matrix, index, out,
                                        (uint32_t)x->columns);
    epoch_end(begin, spanp);
    weir_free(index);
    weir_kernels_cpu()->release(weir_kernels_cpu(), out);
    return err;
}

/* --- epochs ------------------------------------------------------------------------------------------------------- */

static int64_t epoch_cpu_us(void) {
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return (int64_t)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000 + used.ru_utime.tv_usec +
           used.ru_stime.tv_usec;
}

static void epoch_add_times(epoch_sums *s, const weir_train_epoch *epoch) {
    s->times.sample += epoch->times.sample;
    s->times.exchange += epoch->times.exchange;
    s->times.encode += epoch->times.encode + epoch->times.bring;
    s->times.wait += epoch->times.wait;
    s->times.compute += epoch->times.compute;
    s->times.sum += epoch->times.sum + epoch->times.pull;
    s->edges += (double)epoch->edges;
    s->rows += (double)epoch->rows;
    s->loss = epoch->loss;
}

/* The first epoch is for the memory to be there. An epoch ends with its last update: validation is not measured. */
static weir_err epoch_on_epoch(void *context, const weir_train_epoch *epoch) {
    epoch_bench *b = context;
    epoch_sums *s = &b->sums;
    epoch_span now = epoch_begin(), gemms = {0}, gather = {0};
    int64_t cpu_us = epoch_cpu_us();
    uint64_t batches = (b->world.targets + b->world.batch - 1) / b->world.batch;
    double gemm_flops;
    weir_err err = epoch_measure_gemms(&gemms, &gemm_flops);
    if (!err) err = epoch_measure_gather(b, (uint32_t)(epoch->rows / batches), epoch->number, &gather);
    if (err) return err;
    if (epoch->number > 1) {
        epoch_add_times(s, epoch);
        s->whole_us += counted.updated_us - (now.us - epoch->elapsed_us);
        s->update.us += counted.update.us;
        s->update.thread_us += counted.update.thread_us;
        s->cpu_us += cpu_us - b->cpu_us;
        s->thread_us += now.thread_us - b->thread_us;
        s->flops += counted.flops;
        s->alone_flops += gemm_flops;
        s->alone_gemms.us += gemms.us;
        s->alone_gemms.thread_us += gemms.thread_us;
        s->alone_gather.us += gather.us * (int64_t)batches;
        s->alone_gather.thread_us += gather.thread_us * (int64_t)batches;
        s->batches += (double)batches;
    }
    counted.flops = counted.pending = 0;
    counted.update = (epoch_span){0};
    b->cpu_us = epoch_cpu_us();
    b->thread_us = epoch_begin().thread_us;
    return WEIR_OK;
}

static weir_err epoch_train(epoch_bench *b) {
    weir_train_opts opts = weir_train_defaults();
    weir_trained *trained;
    opts.snapshot = b->snapshot;
    opts.kernels = &b->kernels;
    opts.hidden = EPOCH_HIDDEN;
    opts.bare = b->bare;
    opts.reach = (weir_train_reach){.fanouts = epoch_fanouts, .layers = EPOCH_LAYERS, .out_only = true};
    opts.batch = b->world.batch;
    opts.epochs = 1 + b->rounds;
    opts.patience = opts.negatives = 0;
    opts.dropout = 0;
    opts.cut = (weir_targets_cut){.split = WEIR_TARGETS_BY_MASKS, .masks = {"train", "validation", "test"}};
    opts.cached = b->cache > 0 ? WEIR_TRAIN_CACHED_VIP : WEIR_TRAIN_CACHED_NONE;
    opts.cache_share = b->cache;
    opts.on_epoch = epoch_on_epoch;
    opts.context = b;
    weir_err err = weir_train_run(b->comm, &opts, &trained);
    if (!err) weir_trained_close(trained);
    return err;
}

/* --- figures ------------------------------------------------------------------------------------------------------ */

typedef struct epoch_line {
    const char *what, *unit;
    double value, of; /* of: what the ratio is to; 0: no ratio */
} epoch_line;

static weir_err epoch_print(const weir_cli *cli, const epoch_bench *b) {
    const epoch_sums *s = &b->sums;
    double each = 1e-3 / s->batches, whole = (double)s->whole_us * each, thread = (double)s->thread_us * each,
           cpu = (double)s->cpu_us, times = s->flops / s->alone_flops, /* of the GEMMs that were measured alone */
        gather = (double)s->alone_gather.us * each, gather_thread = (double)s->alone_gather.thread_us * each,
           gemms = times * (double)s->alone_gemms.us * each,
           gemms_thread = times * (double)s->alone_gemms.thread_us * each;
    weir_comm_sum_doubles(b->comm, &cpu, 1);
    const epoch_line lines[] = {
        {"a batch", "ms", whole, 0},
        {"batches", "/s", 1000 / whole, 0},
        {"a batch, time of processors", "ms", cpu * each, 0},
        {"sample", "ms a batch", (double)s->times.sample * each, whole},
        {"exchange of remote rows", "ms a batch", (double)s->times.exchange * each, whole},
        {"encode", "ms a batch", (double)s->times.encode * each, whole},
        {"compute: forward, loss, back", "ms a batch", (double)s->times.compute * each, whole},
        {"sum of gradients", "ms a batch", (double)s->times.sum * each, whole},
        {"update", "ms a batch", (double)s->update.us * each, whole},
        {"exposed: compute waits for a batch", "ms a batch", (double)s->times.wait * each, whole},
        {"GEMMs alone", "GFLOP/s", s->flops / s->batches / gemms * 1e-6, 0},
        {"GEMMs over compute", "GFLOP/s", s->flops / (double)s->times.compute * 1e-3, 0},
        {"GEMMs alone, of compute", "ms a batch", gemms, (double)s->times.compute * each},
        {"limit: GEMMs and gather alone", "ms a batch", gemms + gather, whole},
        {"the thread that computes, its time", "ms a batch", thread, 0},
        {"GEMMs alone, of its time", "ms a batch", gemms_thread, thread - (double)s->update.thread_us * each},
        {"limit, of its time", "ms a batch", gemms_thread + gather_thread, thread},
        {"edges of a batch", "edges", s->edges / s->batches, 0},
        {"input rows of a batch", "rows", s->rows / s->batches, 0},
        {"loss", "", s->loss, 0},
    };
    weir_buf out = {0};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        const epoch_line *l = &lines[i];
        if (weir_cli_given(cli, "json"))
            weir_buf_printf(&out,
                            "{\"bench\":\"epoch\",\"ranks\":%u,\"what\":\"%s\",\"unit\":\"%s\",\"value\":%.6g,"
                            "\"ratio\":%.6g}\n",
                            weir_comm_ranks(b->comm), l->what, l->unit, l->value, l->of > 0 ? l->value / l->of : 0);
        else if (l->of > 0)
            weir_buf_printf(&out, "epoch      %-36s %12.4g %-11s %6.3f\n", l->what, l->value, l->unit,
                            l->value / l->of);
        else
            weir_buf_printf(&out, "epoch      %-36s %12.6g %s\n", l->what, l->value, l->unit);
    }
    weir_buf_printf(&out,
                    weir_cli_given(cli, "json") ? "{\"bench\":\"epoch\",\"sum\":\"%016" PRIx64 "\"}\n"
                                                : "epoch      sum of the graph %016" PRIx64 "\n",
                    weir_epoch_world_sum(b->snapshot));
    weir_err err = weir_buf_err(&out);
    if (!err) err = weir_cli_output(out.bytes, out.length);
    weir_buf_free(&out);
    return err;
}

/* --- the bench ---------------------------------------------------------------------------------------------------- */

static weir_err epoch_read_options(const weir_cli *cli, epoch_bench *b) {
    uint64_t rounds = weir_bench_quick(cli) ? 1 : EPOCH_ROUNDS;
    weir_err err = weir_epoch_world_read(cli, &b->world);
    if (!err) err = weir_cli_u64(cli, "rounds", 1, WEIR_BENCH_ROUNDS_MAX, &rounds);
    if (!err) err = weir_cli_f64(cli, "cache", 0, 1, &b->cache);
    b->rounds = (uint32_t)rounds;
    b->bare = !weir_cli_given(cli, "encoder") || strcmp(weir_cli_text(cli, "encoder"), "none") == 0;
    return err;
}

static weir_err epoch_run(weir_cli *cli) {
    epoch_bench b = {.kernels = *weir_kernels_cpu()};
    b.kernels.gemm = counted_gemm;
    b.kernels.square_sum = counted_square_sum;
    b.kernels.adamw = counted_adamw;
    weir_err err = epoch_read_options(cli, &b);
    if (!err) err = weir_comm_start(NULL, NULL, &b.comm);
    if (err) return err;
    if (weir_comm_rank(b.comm) != 0 && !freopen("/dev/null", "w", stdout))
        err = WEIR_ERR(WEIR_EIO, "/dev/null cannot be written to");
    if (!err) err = weir_epoch_world_open(cli, b.comm, &b.world, &b.snapshot);
    if (!err) err = epoch_train(&b);
    if (!err) err = epoch_print(cli, &b);
    err = weir_comm_fail(b.comm, err);
    weir_snapshot_close(b.snapshot);
    weir_comm_stop(b.comm);
    weir_free(counted.gemms);
    if (!weir_cli_given(cli, "graph")) weir_bench_folder_remove(&err);
    return err;
}

static const weir_option options[] = {
    EPOCH_WORLD_OPTIONS,
    {"encoder", 0, "KIND", "none: a plain GraphSAGE, whose first layer has the features; or layer (default: none)",
     "layer|none"},
    {"cache", 'c', "SHARE", "of rows of other ranks that are kept, under mpirun (default 0)", NULL},
    {"rounds", 'r', "N", "epochs that count, after a first one that does not (default 3; quick: 1)", NULL},
    {"quick", 'q', NULL, "a small graph", NULL},
    {"json", 'j', NULL, "one JSON object a line", NULL},
    {0},
};

extern const weir_command weir_bench_epoch;
const weir_command weir_bench_epoch = {
    .name = "epoch",
    .summary = "epochs over a large graph that stands still: batches, stages, and GEMM and gather alone",
    .description = "Three layers of 256 that look at 15, 10 and 5 edges. The ratio beside a stage is its share of the "
                   "batch; stages run side by side. Under mpirun each rank has its share of every batch. "
                   "tests/bench/peers/train runs other programs on the same graph.",
    .example = "weir bench epoch --vertices 100000 --edges 2500000 --targets 8192",
    .options = options,
    .run = epoch_run,
};

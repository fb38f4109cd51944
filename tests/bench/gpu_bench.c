/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpu_bench.c - what a step of a training takes of a device, kernel by kernel: calls, bytes and operations are counted
 * on whatever computes here, and times measured on it; and from the counts those of an H100 are modelled.
 *
 * The model, which is never a measurement: a kernel takes its launches, and its bytes at a share of the bandwidth or
 * its operations at a share of the rate, whichever is longer. Copies take the bus; those of the context that computes
 * are exposed, of contexts beside it what is longer than the kernels.
 *
 *     weir bench gpu --graph build/graph
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <weir/inference/kernel/device.h>
#include <weir/store/base/alloc.h>
#include <weir/store/base/clock.h>
#include <weir/trainer/train/train.h>

#include "bench.h"
#include "epoch_world.h"
#include "gpu_count.h"

#define GPU_LAYERS     3u
#define GPU_COPY_BYTES ((size_t)256 << 20)
#define GPU_PRODUCT    4096u /* rows and columns of the product whose rate the others are compared with */

static const uint32_t gpu_fanouts[GPU_LAYERS] = {15, 10, 5};

/* What a kernel can reach of it, and the device: by its data sheet, an H100 SXM with PCIe 5. */
typedef struct gpu_model {
    double bandwidth, bandwidth_share; /* GB/s */
    double rate, rate_share;           /* GFLOP/s in FP32, without tensor cores */
    double bus;                        /* GB/s, of memory that is page-locked */
    double launch_us;
} gpu_model;

/* Of the device that computes here: the most that a kernel could reach. */
typedef struct gpu_limits {
    double copy, bus; /* GB/s */
    double products;  /* GFLOP/s */
} gpu_limits;

typedef struct gpu_bench {
    weir_comm *comm;
    weir_snapshot *snapshot;
    const weir_kernels *device, *counted;
    epoch_world world;
    gpu_model model;
    gpu_limits limits;
    gpu_counts counts;
    uint32_t rounds, hidden;
    double resident;
    double steps, batches; /* of an epoch, and made in all, judged ones, too */
    double step_us;        /* step_us: by the clock, of epochs whose kernels are not timed */
} gpu_bench;

static double gpu_now_us(void) {
    return (double)weir_clock_mono_us(weir_clock_system());
}

/* --- what bounds a kernel here ------------------------------------------------------------------------------------ */

typedef struct gpu_try {
    const weir_kernels *kernels;
    void *from, *to, *host;
    size_t bytes;
    uint32_t side; /* of a product */
} gpu_try;

static void gpu_try_bus(const gpu_try *t) {
    t->kernels->to_device(t->kernels, t->from, t->host, t->bytes);
}

static void gpu_try_copy(const gpu_try *t) {
    t->kernels->copy(t->kernels, t->to, t->from, t->bytes);
}

static void gpu_try_product(const gpu_try *t) {
    const weir_gemm g = {.m = t->side,
                         .n = t->side,
                         .k = t->side,
                         .a = t->from,
                         .lda = t->side,
                         .b = t->from,
                         .ldb = t->side,
                         .c = t->to,
                         .ldc = t->side};
    t->kernels->gemm(t->kernels, &g);
}

/* The best of a few: the first one has its memory to touch. */
static weir_err gpu_best_us(const gpu_try *t, void (*run)(const gpu_try *t), double *usp) {
    weir_err err = t->kernels->finish(t->kernels);
    for (int turn = 0; !err && turn < 5; turn++) {
        const double begun_us = gpu_now_us();
        run(t);
        err = t->kernels->finish(t->kernels);
        const double us = 1 + gpu_now_us() - begun_us;
        if (turn == 0 || us < *usp) *usp = us;
    }
    return err;
}

static weir_err gpu_measure_limits(const weir_cli *cli, gpu_bench *b) {
    const bool quick = weir_bench_quick(cli);
    gpu_try t = {.kernels = b->device,
                 .bytes = quick ? GPU_COPY_BYTES / 64 : GPU_COPY_BYTES, /* more than the product's matrices */
                 .side = quick ? 64 : GPU_PRODUCT};
    double copy_us = 1, bus_us = 1, product_us = 1;
    t.host = weir_calloc(1, t.bytes);
    weir_err err = t.host ? WEIR_OK : WEIR_NOMEM("for the limits of the device");
    if (!err) err = t.kernels->alloc(t.kernels, t.bytes, &t.from);
    if (!err) err = t.kernels->alloc(t.kernels, t.bytes, &t.to);
    if (!err) err = gpu_best_us(&t, gpu_try_bus, &bus_us);
    if (!err) err = gpu_best_us(&t, gpu_try_copy, &copy_us);
    if (!err) err = gpu_best_us(&t, gpu_try_product, &product_us);
    b->limits = (gpu_limits){2e-3 * (double)t.bytes / copy_us, 1e-3 * (double)t.bytes / bus_us,
                             2e-3 * t.side * t.side * t.side / product_us};
    t.kernels->release(t.kernels, t.from);
    t.kernels->release(t.kernels, t.to);
    weir_free(t.host);
    return err;
}

/* --- the training ------------------------------------------------------------------------------------------------- */

/* The first epoch is for memory to be there, and the last one's kernels are timed: those between are timed whole. */
static weir_err gpu_on_epoch(void *context, const weir_train_epoch *epoch) {
    gpu_bench *b = context;
    const uint64_t batch = b->world.batch, steps = (b->world.targets + batch - 1) / batch,
                   judged = (EPOCH_JUDGED + batch - 1) / batch;
    gpu_counts counts;
    weir_gpu_count_take(&counts);
    if (epoch->number > 1 && epoch->number <= 1 + b->rounds)
        b->step_us += counts.until_us - (gpu_now_us() - (double)epoch->elapsed_us);
    if (epoch->number == 1 + b->rounds) weir_gpu_count_time(true);
    b->steps = (double)steps;
    b->batches = (double)(epoch->number * (steps + judged));
    b->counts = counts;
    return WEIR_OK;
}

static weir_err gpu_train(gpu_bench *b) {
    weir_train_opts opts = weir_train_defaults();
    weir_trained *trained = NULL;
    opts.snapshot = b->snapshot;
    opts.kernels = b->counted;
    opts.hidden = b->hidden;
    opts.bare = true;
    opts.reach = (weir_train_reach){.fanouts = gpu_fanouts, .layers = GPU_LAYERS, .out_only = true};
    opts.batch = b->world.batch;
    opts.epochs = 2 + b->rounds;
    opts.patience = opts.negatives = 0;
    opts.dropout = 0;
    opts.cut = (weir_targets_cut){.split = WEIR_TARGETS_BY_MASKS, .masks = {"train", "validation", "test"}};
    opts.on_epoch = gpu_on_epoch;
    opts.context = b;
    opts.resident = b->resident;
    weir_err err = weir_train_run(b->comm, &opts, &trained);
    weir_trained_close(trained);
    b->step_us /= b->rounds * b->steps;
    return err;
}

/* --- figures ------------------------------------------------------------------------------------------------------ */

static double gpu_modelled_us(const gpu_model *m, gpu_kernel kernel, const gpu_count *c) {
    if (kernel == GPU_KERNEL_to_device || kernel == GPU_KERNEL_to_host)
        return c->calls * m->launch_us + c->bytes / m->bus * 1e-3;
    const double memory_us = c->bytes / (m->bandwidth * m->bandwidth_share) * 1e-3,
                 arithmetic_us = c->flops / (m->rate * m->rate_share) * 1e-3;
    return c->calls * m->launch_us + fmax(memory_us, arithmetic_us);
}

/* Of a step, all modelled. */
typedef struct gpu_step {
    double kernels_us, copies_us, exposed_us;
    gpu_kernel longest;
    double longest_us;
} gpu_step;

static gpu_step gpu_step_of(const gpu_bench *b) {
    gpu_step step = {0};
    double beside_us = 0;
    for (gpu_kernel i = 0; i < GPU_KERNELS; i++) {
        const double us = gpu_modelled_us(&b->model, i, &b->counts.of[i]) / b->steps;
        beside_us += gpu_modelled_us(&b->model, i, &b->counts.beside[i]) / b->batches;
        if (i == GPU_KERNEL_to_device || i == GPU_KERNEL_to_host) {
            step.copies_us += us;
            continue;
        }
        step.kernels_us += us;
        if (us <= step.longest_us) continue;
        step.longest_us = us;
        step.longest = i;
    }
    step.exposed_us = step.copies_us + fmax(0, beside_us - step.kernels_us);
    step.copies_us += beside_us;
    return step;
}

static void gpu_print_kernel(const weir_cli *cli, const gpu_bench *b, gpu_kernel kernel, bool beside, weir_buf *out) {
    const gpu_count *c = beside ? &b->counts.beside[kernel] : &b->counts.of[kernel];
    const char *name = weir_gpu_kernel_name(kernel);
    if (c->calls <= 0) return;
    const double steps = beside ? b->batches : b->steps, us = c->timed > 0 ? c->us / c->timed * c->calls / steps : 0,
                 bytes = c->bytes / steps, flops = c->flops / steps,
                 modelled_us = gpu_modelled_us(&b->model, kernel, c) / steps,
                 of_copy = us > 0 ? bytes / us * 1e-3 / b->limits.copy : 0,
                 of_products = us > 0 ? flops / us * 1e-3 / b->limits.products : 0;
    weir_buf_printf(out,
                    weir_cli_given(cli, "json")
                        ? "{\"bench\":\"gpu\",\"kernel\":\"%s%s\",\"calls\":%.6g,\"bytes\":%.6g,\"flops\":%.6g,"
                          "\"us\":%.6g,\"of_copy\":%.4g,\"of_products\":%.4g,\"modelled_us\":%.6g}\n"
                        : "gpu        %-24s%-7s %7.1f %11.4g %11.4g %10.1f %7.2f %7.2f %10.1f\n",
                    name, beside ? " beside" : "", c->calls / steps, bytes, flops, us, of_copy, of_products,
                    modelled_us);
}

static void gpu_print_step(const weir_cli *cli, const gpu_bench *b, weir_buf *out) {
    const gpu_step step = gpu_step_of(b);
    const gpu_model *m = &b->model;
    const double whole_us = step.kernels_us + step.exposed_us;
    if (weir_cli_given(cli, "json")) {
        weir_buf_printf(out,
                        "{\"bench\":\"gpu\",\"device\":\"%s\",\"copy\":%.6g,\"bus\":%.6g,\"products\":%.6g,"
                        "\"step_us\":%.6g,\"allocations\":%.6g,\"modelled_kernels_us\":%.6g,"
                        "\"modelled_copies_us\":%.6g,\"modelled_exposed_us\":%.6g,\"bound\":\"%s\"}\n",
                        b->device->name, b->limits.copy, b->limits.bus, b->limits.products, b->step_us,
                        b->counts.allocations / b->steps, step.kernels_us, step.copies_us, step.exposed_us,
                        weir_gpu_kernel_name(step.longest));
        return;
    }
    weir_buf_printf(out,
                    "gpu        measured on %s: a step %.1f us; limits: copies in its memory %.1f GB/s, to it %.1f "
                    "GB/s, products %.1f GFLOP/s; %.1f allocations a step\n",
                    b->device->name, b->step_us, b->limits.copy, b->limits.bus, b->limits.products,
                    b->counts.allocations / b->steps);
    weir_buf_printf(out,
                    "gpu        modelled, not measured: one device with %.0f GB/s of which kernels reach %.2f, %.0f "
                    "GFLOP/s of which they reach %.2f, %.0f GB/s to it, and %.1f us a launch\n",
                    m->bandwidth, m->bandwidth_share, m->rate, m->rate_share, m->bus, m->launch_us);
    weir_buf_printf(out,
                    "gpu        modelled: a step %.1f us: kernels %.1f, of which %s %.1f; copies %.1f, of which "
                    "exposed %.1f: %.3f of the step\n",
                    whole_us, step.kernels_us, weir_gpu_kernel_name(step.longest), step.longest_us, step.copies_us,
                    step.exposed_us, step.exposed_us / whole_us);
}

static weir_err gpu_print(const weir_cli *cli, const gpu_bench *b) {
    weir_buf out = {0};
    if (!weir_cli_given(cli, "json"))
        weir_buf_printf(&out, "gpu        %-31s %7s %11s %11s %10s %7s %7s %10s\n", "of a step", "calls", "bytes",
                        "operations", "us", "of copy", "of GEMM", "modelled");
    for (gpu_kernel i = 0; i < GPU_KERNELS; i++) {
        gpu_print_kernel(cli, b, i, false, &out);
        gpu_print_kernel(cli, b, i, true, &out);
    }
    gpu_print_step(cli, b, &out);
    weir_err err = weir_buf_err(&out);
    if (!err) err = weir_cli_output(out.bytes, out.length);
    weir_buf_free(&out);
    return err;
}

/* --- the bench ---------------------------------------------------------------------------------------------------- */

static weir_err gpu_read_options(const weir_cli *cli, gpu_bench *b) {
    uint64_t rounds = 1, hidden = weir_bench_quick(cli) ? 16 : 256;
    weir_err err = weir_epoch_world_read(cli, &b->world);
    b->resident = 1;
    b->model = (gpu_model){3350, 0.7, 67000, 0.6, 55, 4};
    if (!err) err = weir_cli_u64(cli, "rounds", 1, WEIR_BENCH_ROUNDS_MAX, &rounds);
    if (!err) err = weir_cli_u64(cli, "hidden", 1, 4096, &hidden);
    if (!err) err = weir_cli_f64(cli, "resident", 0, 1, &b->resident);
    if (!err) err = weir_cli_f64(cli, "bandwidth", 1, 1e6, &b->model.bandwidth);
    if (!err) err = weir_cli_f64(cli, "rate", 1, 1e9, &b->model.rate);
    if (!err) err = weir_cli_f64(cli, "bus", 1, 1e6, &b->model.bus);
    if (!err) err = weir_cli_f64(cli, "launch", 0, 1e6, &b->model.launch_us);
    b->rounds = (uint32_t)rounds;
    b->hidden = (uint32_t)hidden;
    return err;
}

/* Unless a device is named, the one that there is. */
static weir_err gpu_open_device(const weir_cli *cli, gpu_bench *b) {
    const char *named = weir_cli_text(cli, "device");
    if (named) return weir_kernels_open(named, 0, &b->device);
    weir_err missing, err = weir_kernels_open_or_cpu("cuda", 0, &b->device, &missing);
    return err || !missing || weir_cli_given(cli, "json") ? err : weir_cli_output_sentence("gpu        ", missing);
}

static weir_err gpu_run(weir_cli *cli) {
    gpu_bench b = {0};
    weir_err err = gpu_read_options(cli, &b);
    if (!err) err = weir_comm_start(NULL, NULL, &b.comm);
    if (err) return err;
    if (weir_comm_ranks(b.comm) > 1) err = WEIR_ERR(WEIR_EUSAGE, "weir bench gpu is of one rank; start it alone");
    if (!err) err = gpu_open_device(cli, &b);
    if (!err) err = gpu_measure_limits(cli, &b);
    if (!err) err = weir_gpu_count_open(b.device, &b.counted);
    if (!err) err = weir_epoch_world_open(cli, b.comm, &b.world, &b.snapshot);
    if (!err) err = gpu_train(&b);
    if (!err) err = gpu_print(cli, &b);
    err = weir_comm_fail(b.comm, err);
    weir_snapshot_close(b.snapshot);
    if (b.counted) b.counted->close(b.counted);
    if (b.device) b.device->close(b.device);
    weir_comm_stop(b.comm);
    if (!weir_cli_given(cli, "graph")) weir_bench_folder_remove(&err);
    return err;
}

static const weir_option options[] = {
    {"device", 0, "NAME", "what computes: cpu, or cuda (default: cuda, where there is a GPU)", "cpu|cuda"},
    EPOCH_WORLD_OPTIONS,
    {"hidden", 0, "N", "numbers of a vertex in each of the three layers (default 256; quick: 16)", NULL},
    {"resident", 0, "SHARE", "of the input rows that stay in the device's memory (default 1)", NULL},
    {"bandwidth", 0, "GB/S", "of the memory of the device that is modelled (default 3350)", NULL},
    {"rate", 0, "GFLOP/S", "of its arithmetic in FP32 (default 67000)", NULL},
    {"bus", 0, "GB/S", "to it and from it (default 55)", NULL},
    {"launch", 0, "US", "of each kernel and copy (default 4)", NULL},
    {"rounds", 'r', "N", "epochs that are timed whole, before one whose kernels are timed (default 1)", NULL},
    {"quick", 'q', NULL, "a small graph", NULL},
    {"json", 'j', NULL, "one JSON object a line", NULL},
    {0},
};

extern const weir_command weir_bench_gpu;
const weir_command weir_bench_gpu = {
    .name = "gpu",
    .summary = "a step of a training, kernel by kernel: counted, timed on what is here, and modelled for an H100",
    .description = "Three layers that look at 15, 10 and 5 edges, on the graph of weir bench epoch. Bytes are "
                   "counted as if nothing stayed in a cache, so a kernel may have more of the copy's bandwidth than "
                   "1. What is modelled follows from the counts and is not a measurement.",
    .example = "weir bench gpu --vertices 100000 --edges 2500000 --targets 8192",
    .options = options,
    .run = gpu_run,
};

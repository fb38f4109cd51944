/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scale_bench.c - trainings of 1, 2, 4, … ranks on parts: what each rank sends a step, counted where MPI is called
 * (tests/support/mpi_watch.c), the memory of the largest, and a model that goes on from there (scale_model.c).
 *
 * A rank has as many targets a step however many ranks there are. They share the cores of one machine here, so it is
 * the bytes, messages and rounds that mean something for others, not the milliseconds of many ranks.
 */
#include <errno.h>
#include <ftw.h>
#include <libgen.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir/partitioner/parts/parts.h>
#include <weir/store/base/alloc.h>
#include <weir/store/base/file.h>
#include <weir/trainer/train/train.h>

#include "bench.h"
#include "scale_bench.h"
#include "train_world.h"

#define PAYS       40000u
#define QUICK_PAYS 1200u
#define RANKS_MAX  64u
#define MODEL_MAX  1024u
#define WARM_UP    0.1
#define JUDGED     0.05 /* shares of validation and test */
#define PATH       4096

typedef struct bench {
    const weir_cli *cli;
    char folder[PATH / 2], snapshot[PATH], train[PATH];
    uint64_t most, batch, depth;
    const char *fanouts, *hidden, *method;
    uint64_t edges; /* of the snapshot */
    uint64_t ends[WEIR_TARGETS_PARTS];
    uint64_t bytes; /* of the snapshot */
} bench;

static uint64_t walked; /* bytes of the files that a walk has met */

static int walk(const char *path, const struct stat *of, int kind, struct FTW *at) {
    (void)path;
    (void)at;
    if (kind == FTW_F) walked += (uint64_t)of->st_size;
    return 0;
}

static uint64_t bytes_below(const char *folder) {
    walked = 0;
    return nftw(folder, walk, 16, FTW_PHYS) == 0 ? walked : 0;
}

/* --- a run -------------------------------------------------------------------------------------------------------- */

/* What mpi_watch.c has left of all ranks: the first channel is that of the time before the batches. */
static weir_err read_counts(const bench *b, double batches, double steps, scale_row *row) {
    double calls = 0;
    row->peak_mib = 0; /* mpirun was the largest, maybe */
    weir_err err = WEIR_OK;
    for (uint32_t rank = 0; !err && rank < row->ranks; rank++) {
        char path[PATH], *text = NULL, *at;
        size_t length;
        snprintf(path, sizeof path, "%s/sent.%u", b->folder, rank);
        err = weir_file_load(path, 1u << 16, &text, &length);
        at = err ? NULL : text;
        /* What was sent to each rank stands behind. */
        for (unsigned line = 0; at && *at && strncmp(at, "to ", 3) != 0; line++) {
            double numbers[4] = {0};
            const bool sums = strncmp(at, "sums ", 5) == 0, embeddings = strncmp(at, "embeddings ", 11) == 0;
            at += sums ? 5 : embeddings ? 11 : 0;
            for (unsigned i = 0; i < 4; i++)
                numbers[i] = strtod(at, &at);
            if (sums) {
                row->peak_mib = fmax(row->peak_mib, numbers[2] / 1024);
                row->sum_floats += numbers[0] / steps / row->ranks;
                row->sums += numbers[3] / steps / row->ranks;
                row->told_bytes += numbers[1] / steps / row->ranks / row->ranks;
            } else if (embeddings) {
                row->embedding_bytes += numbers[2] / batches / row->ranks;
            } else if (line > 0) {
                calls += numbers[0] / row->ranks;
                row->messages += numbers[1] / batches / row->ranks;
                row->row_bytes += numbers[2] / batches / row->ranks;
            }
            if (*at != '\n') {
                err = WEIR_ERR(WEIR_EDATA, "%s is not what mpi_watch.c writes", path);
                break;
            }
            at++;
        }
        weir_free(text);
    }
    row->rounds = calls / batches;
    return err;
}

static weir_err read_times(const bench *b, double steps, scale_row *row) {
    static const char *const names[] = {"\"seconds\":", "\"compute_seconds\":", "\"exposed_seconds\":"};
    double *to[] = {&row->step_ms, &row->compute_ms, &row->exposed_ms};
    char path[PATH], *text = NULL;
    size_t length;
    snprintf(path, sizeof path, "%s/run/epochs.jsonl", b->folder);
    weir_err err = weir_file_load(path, 1u << 20, &text, &length);
    for (size_t i = 0; !err && i < 3; i++) {
        const char *at = strstr(text, names[i]);
        if (!at) err = WEIR_ERR(WEIR_EDATA, "%s lacks %s", path, names[i]);
        if (!err) *to[i] = strtod(at + strlen(names[i]), NULL) * 1e3 / steps;
    }
    weir_free(text);
    return err;
}

/* What it prints is thrown away. The memory is the program's own, or that of the largest that it has waited for. */
static weir_err run_program(const char *const *argv, double *peak_mibp) {
    struct rusage usage;
    int status = 0;
    fflush(NULL);
    pid_t child = fork();
    if (child < 0) return WEIR_ERRNO(errno, "a process cannot be started");
    if (child == 0) {
        if (freopen("/dev/null", "w", stdout)) execvp(argv[0], (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    if (wait4(child, &status, 0, &usage) != child) return WEIR_ERRNO(errno, "a process cannot be waited for");
    *peak_mibp = (double)usage.ru_maxrss / 1024;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return WEIR_OK;
    return WEIR_ERR(WEIR_EUNAVAILABLE, "%s has failed; it says why above. mpirun is of the package openmpi-bin",
                    argv[0]);
}

static double steps_of(uint64_t targets, double batch) {
    return (double)((uint64_t)((double)targets / batch) + (targets % (uint64_t)batch > 0));
}

static weir_err cut(const bench *b, uint32_t ranks, double *bytesp) {
    char out[PATH];
    weir_snapshot *snapshot;
    weir_parts_report report;
    weir_parts_method method = WEIR_PARTS_METIS;
    while (method < WEIR_PARTS_METHODS && strcmp(weir_parts_method_name(method), b->method) != 0)
        method++;
    snprintf(out, sizeof out, "%s/parts", b->folder);
    const weir_parts_opts opts = {.out = out,
                                  .parts = ranks,
                                  .depth = (uint32_t)b->depth,
                                  .method = method,
                                  .seed = 1,
                                  .clock = weir_clock_system()};
    weir_err err = weir_snapshot_open(b->snapshot, &(weir_snapshot_opts){0}, &snapshot);
    if (err) return err;
    err = weir_parts_write(snapshot, &opts, &report);
    weir_snapshot_close(snapshot);
    *bytesp = (double)bytes_below(out) / ranks;
    return err;
}

static weir_err run_ranks(bench *b, uint32_t ranks, scale_row *row) {
    char number[16], batch[24], parts[PATH], run[PATH], shares[3][16], watch[PATH];
    double steps = steps_of(b->ends[WEIR_TARGETS_TRAIN], (double)b->batch * ranks);
    double validation =
        steps_of(b->ends[WEIR_TARGETS_VALIDATION] - b->ends[WEIR_TARGETS_TRAIN], (double)b->batch * ranks);
    double test = steps_of(b->ends[WEIR_TARGETS_TEST] - b->ends[WEIR_TARGETS_VALIDATION], (double)b->batch * ranks);
    *row = (scale_row){.ranks = ranks, .part_bytes = (double)b->bytes};
    snprintf(number, sizeof number, "%u", ranks);
    snprintf(batch, sizeof batch, "%llu", (unsigned long long)(b->batch * ranks));
    snprintf(parts, sizeof parts, "%s/parts", b->folder);
    snprintf(run, sizeof run, "%s/run", b->folder);
    snprintf(watch, sizeof watch, "%s/sent", b->folder);
    snprintf(shares[0], sizeof shares[0], "%g", WARM_UP);
    snprintf(shares[1], sizeof shares[1], "%g", JUDGED);
    const char *argv[] = {"mpirun",
                          "--allow-run-as-root",
                          "--oversubscribe",
                          "--bind-to",
                          "none",
                          "-n",
                          number,
                          b->train,
                          ranks > 1 ? "--parts" : b->snapshot,
                          ranks > 1 ? parts : "--no-baselines",
                          "--no-baselines",
                          "--learn",
                          "once",
                          "--folder",
                          run,
                          "--epochs",
                          "1",
                          "--negatives",
                          "0",
                          "--batch",
                          batch,
                          "--hidden",
                          b->hidden,
                          "--fanouts",
                          b->fanouts,
                          "--warm-up",
                          shares[0],
                          "--validation",
                          shares[1],
                          "--test",
                          shares[1],
                          NULL};
    setenv("LD_PRELOAD", WEIR_BENCH_MPI_WATCH, 1);
    setenv("WEIR_TEST_MPI", watch, 1);
    setenv("OPENBLAS_NUM_THREADS", "1", 1);
    weir_err err = ranks > 1 ? cut(b, ranks, &row->part_bytes) : WEIR_OK;
    if (!err) err = run_program(ranks > 1 ? argv : argv + 7, &row->peak_mib);
    unsetenv("LD_PRELOAD");
    if (!err && ranks > 1) err = read_counts(b, steps + 2 * validation + test, steps, row);
    if (!err) err = read_times(b, steps, row);
    weir_err removed = weir_folder_remove(run);
    if (!err) err = removed;
    if (!err && ranks > 1) err = weir_folder_remove(parts);
    return err;
}

/* --- what is printed ---------------------------------------------------------------------------------------------- */

static weir_err print_rows(const bench *b, const scale_row *rows, size_t count) {
    weir_buf out = {0};
    bool json = weir_cli_given(b->cli, "json");
    if (!json)
        weir_buf_text(&out,
                      "scale      ranks   messages   rounds   KiB of rows, edges   embeddings    sums   "
                      "KiB of sums   KiB told   ms a step   compute   exposed   MiB of the largest   MiB of a part\n");
    for (size_t i = 0; i < count; i++) {
        const scale_row *r = &rows[i];
        weir_buf_printf(
            &out,
            json ? "{\"bench\":\"scale\",\"ranks\":%u,\"messages\":%.6g,\"rounds\":%.6g,\"row_kib\":%.6g,"
                   "\"embedding_kib\":%.6g,\"sums\":%.6g,"
                   "\"sum_kib\":%.6g,\"told_kib\":%.6g,\"step_ms\":%.6g,\"compute_ms\":%.6g,"
                   "\"exposed_ms\":%.6g,\"peak_mib\":%.6g,\"part_mib\":%.6g}\n"
                 : "scale      %5u %10.1f %8.1f %20.1f %12.1f %7.1f %13.1f %10.1f %11.1f %9.1f %9.1f %20.1f %15.1f\n",
            r->ranks, r->messages, r->rounds, r->row_bytes / 1024, r->embedding_bytes / 1024, r->sums,
            r->sum_floats * 4 / 1024, r->told_bytes / 1024, r->step_ms, r->compute_ms, r->exposed_ms, r->peak_mib,
            r->part_bytes / 1048576);
    }
    weir_err err = weir_buf_err(&out);
    if (!err) err = weir_cli_output(out.bytes, out.length);
    weir_buf_free(&out);
    return err;
}

static weir_err print_model(const bench *b, const scale_model *m) {
    weir_buf out = {0};
    bool json = weir_cli_given(b->cli, "json");
    if (!json)
        weir_buf_printf(&out,
                        "model      %g us a message, %g us of its sender, %g Gbit/s a rank; %.3g edges; %.1f rounds of "
                        "%g batches side by side, %.0f KiB of rows and edges, %.1f sums of %.0f KiB a step\n",
                        m->latency_us, m->overhead_us, m->gigabits, m->edges, m->rounds, m->ahead,
                        m->remote_bytes / 1024, m->sums, m->sum_bytes / 1024);
    for (uint32_t ranks = 2; ranks <= MODEL_MAX; ranks *= 2) {
        scale_step s = scale_step_of(m, ranks);
        scale_memory memory = scale_memory_of(m, ranks);
        double need = memory.part + memory.targets;
        const bool fits = scale_fits(m, &memory);
        weir_buf_printf(
            &out,
            json ? "{\"bench\":\"scale\",\"model\":true,\"ranks\":%u,\"compute_ms\":%.6g,"
                   "\"exchange_ms\":%.6g,\"sum_ms\":%.6g,\"step_ms\":%.6g,\"bound\":\"%s\",\"rank_gib\":%.6g,"
                   "\"targets_gib\":%.6g,\"targets\":%.6g,\"edges_of_memory\":%.6g,\"edges_of_targets\":%.6g,"
                   "\"fits\":%s,\"ended_by\":\"%s\"}\n"
                 : "model      %5u ranks: compute %.2f ms, exchange %.2f, sum %.2f: %.2f ms a step, bound by %s; %.2f "
                   "GiB of a rank, %.2f of them of all %.3g targets; memory holds %.3g edges, targets allow %.3g: %s "
                   "by %s\n",
            ranks, s.compute, s.exchange, s.sum, scale_longest(&s), scale_bound(&s), need, memory.targets,
            memory.target_count, memory.edges_memory, memory.edges_targets,
            json   ? fits ? "true" : "false"
            : fits ? "a larger one is ended"
                   : "this graph is too large",
            scale_end(&memory));
    }
    char verdict[SCALE_VERDICT][160];
    scale_verdict(m, MODEL_MAX, verdict);
    for (unsigned i = 0; !json && i < SCALE_VERDICT; i++)
        weir_buf_printf(&out, "model      %s\n", verdict[i]);
    weir_err err = weir_buf_err(&out);
    if (!err) err = weir_cli_output(out.bytes, out.length);
    weir_buf_free(&out);
    return err;
}

/* --- the bench ---------------------------------------------------------------------------------------------------- */

/* The snapshot that was named, or one of its own; and what there is to learn from. */
static weir_err bench_open(bench *b, weir_cli *cli) {
    const weir_targets_opts by = {.task = 0, .cut = {.warm_up = WARM_UP, .validation = JUDGED, .test = JUDGED}};
    char program[PATH] = {0};
    const char *folder;
    weir_snapshot *snapshot;
    weir_targets *targets;
    weir_err err = weir_bench_folder(&folder);
    if (err) return err;
    snprintf(b->folder, sizeof b->folder, "%s", folder);
    if (readlink("/proc/self/exe", program, sizeof program - 1) <= 0)
        return WEIR_ERRNO(errno, "/proc/self/exe cannot be read");
    snprintf(b->train, sizeof b->train, "%.4000s/weir-train", dirname(program));
    if (weir_cli_given(cli, "snapshot")) {
        snprintf(b->snapshot, sizeof b->snapshot, "%s", weir_cli_text(cli, "snapshot"));
    } else {
        err = weir_train_world_make(b->folder, weir_bench_quick(cli) ? QUICK_PAYS : PAYS);
        snprintf(b->snapshot, sizeof b->snapshot, "%s/snapshot", b->folder);
    }
    if (!err) err = weir_snapshot_open(b->snapshot, &(weir_snapshot_opts){0}, &snapshot);
    if (err) return err;
    for (uint32_t r = 0; r < weir_schema_relation_count(weir_snapshot_schema(snapshot)); r++)
        b->edges += weir_snapshot_edges_of(snapshot, r, WEIR_OUT)->edges;
    b->bytes = bytes_below(b->snapshot);
    err = weir_targets_open(snapshot, &by, &targets);
    if (!err) memcpy(b->ends, targets->ends, sizeof b->ends);
    if (!err) weir_targets_close(targets);
    weir_snapshot_close(snapshot);
    return err;
}

static weir_err run(weir_cli *cli) {
    static bench b;
    static scale_row rows[16];
    size_t count = 0;
    scale_model m = {0};
    weir_buf svg = {0};
    b = (bench){.cli = cli, .most = weir_bench_quick(cli) ? 2 : 8, .batch = 128, .depth = 0};
    b.fanouts = weir_cli_given(cli, "fanouts") ? weir_cli_text(cli, "fanouts") : "10,10";
    b.hidden = weir_cli_given(cli, "hidden") ? weir_cli_text(cli, "hidden") : "64";
    b.method = weir_cli_given(cli, "method") ? weir_cli_text(cli, "method") : "metis";
    weir_err err = weir_cli_u64(cli, "ranks", 2, RANKS_MAX, &b.most);
    if (!err) err = weir_cli_u64(cli, "batch", 1, 4096, &b.batch);
    if (!err) err = weir_cli_u64(cli, "depth", 0, WEIR_PARTS_DEPTH_MAX, &b.depth);
    if (!err) err = bench_open(&b, cli);
    for (uint32_t ranks = 1; !err && ranks <= b.most; ranks *= 2)
        err = run_ranks(&b, ranks, &rows[count++]);
    if (!err) err = print_rows(&b, rows, count);

    double edges = 1e10, latency = 2, overhead = 0.3, gigabits = 100, memory = 64;
    if (!err) err = weir_cli_f64(cli, "edges", 1, 1e15, &edges);
    if (!err) err = weir_cli_f64(cli, "latency", 0, 1e6, &latency);
    if (!err) err = weir_cli_f64(cli, "overhead", 0, 1e6, &overhead);
    if (!err) err = weir_cli_f64(cli, "gigabits", 1e-3, 1e6, &gigabits);
    if (!err) err = weir_cli_f64(cli, "memory", 1e-3, 1e6, &memory);
    if (!err) {
        const scale_row *last = &rows[count - 1];
        m = (scale_model){.latency_us = latency,
                          .overhead_us = overhead,
                          .gigabits = gigabits,
                          .ahead = weir_train_defaults().ahead,
                          .edges = edges,
                          .compute_ms = rows[0].compute_ms,
                          .rounds = last->rounds,
                          .remote_bytes = (last->row_bytes + last->embedding_bytes) * last->ranks / (last->ranks - 1.0),
                          .sums = last->sums,
                          .sum_bytes = last->sum_floats * 4,
                          .told_bytes = last->told_bytes,
                          .part_bytes_edge = last->part_bytes * last->ranks / (double)b.edges,
                          .targets_edge = (double)b.ends[WEIR_TARGETS_TEST] / (double)b.edges,
                          .judged_edge =
                              (double)(b.ends[WEIR_TARGETS_TEST] - b.ends[WEIR_TARGETS_TRAIN]) / (double)b.edges,
                          .memory_gib = memory};
        err = print_model(&b, &m);
    }
    if (!err && weir_cli_given(cli, "svg")) {
        scale_plot(&m, MODEL_MAX, rows, count, &svg);
        err = weir_buf_err(&svg);
        if (!err) err = weir_file_replace(weir_cli_text(cli, "svg"), svg.bytes, svg.length);
    }
    weir_buf_free(&svg);
    weir_bench_folder_remove(&err);
    return err;
}

static const weir_option options[] = {
    {"ranks", 'n', "N", "1, 2, 4, … up to so many ranks (default: 8; quick: 2)", NULL},
    {"snapshot", 0, "DIR", "train on this one (default: one of 40,000 payments is made)", NULL},
    {"batch", 'b', "N", "targets of a rank a step (default: 128)", NULL},
    {"fanouts", 0, "N,N", "as of weir train (default: 10,10)", NULL},
    {"hidden", 0, "N", "as of weir train (default: 64)", NULL},
    {"depth", 'd', "N", "as of weir partition (default: 0)", NULL},
    {"method", 0, "METHOD", "as of weir partition (default: metis)", "metis|random|hash"},
    {"edges", 0, "N", "of the model's graph (default: 1e10)", NULL},
    {"latency", 0, "US", "of a message, in the model (default: 2)", NULL},
    {"overhead", 0, "US", "of a message for its sender, in the model (default: 0.3)", NULL},
    {"gigabits", 0, "N", "a rank's wire carries a second, in the model (default: 100)", NULL},
    {"memory", 0, "GIB", "that a rank may have, in the model (default: 64)", NULL},
    {"svg", 0, "FILE", "draw the model and what was measured", NULL},
    WEIR_BENCH_OPTIONS,
    {0}};

extern const weir_command weir_bench_scale;
const weir_command weir_bench_scale = {
    .name = "scale",
    .summary = "training on parts by ranks: bytes, messages, memory, and a model of 1,024 ranks",
    .example = "weir bench scale --ranks 8 --svg scale.svg",
    .options = options,
    .run = run,
};

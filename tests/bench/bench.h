/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench.h - figures that mean something on a noisy machine.
 *
 * A bench is a few lines measured side by side: what we built, and what bounds it (a plain write, a bare loop, a
 * peer). Every round runs every line once, in an order that turns around from round to round, so that a slow minute
 * hits all of them; a line's ratio is the median of its rounds' own ratios to the line that it names.
 * Nothing is ever asserted about time.
 *
 *     static weir_err run_append(void *context, uint64_t round, weir_bench_sample *samplep) {
 *         … set up …
 *         weir_bench_start(samplep);
 *         … work …
 *         weir_bench_stop(samplep, bytes);
 *         return …;
 *     }
 *     static weir_err run(weir_cli *cli) {
 *         weir_bench_line lines[] = {
 *             {.what = "plain write and sync", .unit = "MB/s", .scale = 1e-6, .run = run_plain, .context = &c},
 *             {.what = "append, group sync", .unit = "MB/s", .scale = 1e-6, .run = run_append, .context = &c,
 *              .against = "plain write and sync"},
 *         };
 *         return weir_bench_run(cli, "log", lines, 2);
 *     }
 *     const weir_command weir_bench_log = {.name = "log", …, .options = weir_bench_options, .run = run};
 *
 * and one row in benches.def. A bench that is not made of lines and rounds prints its own table. Every bench
 * understands --rounds N, --quick (least work that still runs every line)
 * and --json.
 */
#ifndef WEIR_BENCH_H
#define WEIR_BENCH_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/store/base/err.h>
#include <weir/store/cli/cli.h>

#define WEIR_BENCH_ROUNDS_MAX 1000u
#define WEIR_BENCH_LINES_MAX  16u

typedef struct weir_bench_sample {
    double units; /* of work done: bytes, records, requests */
    int64_t start_ns;
    int64_t elapsed_ns; /* may be added to by several start and stop pairs */
} weir_bench_sample;

typedef struct weir_bench_line {
    const char *what;
    const char *unit;    /* of the printed rate: "MB/s"                          */
    double scale;        /* rate printed = units / second * scale                */
    const char *against; /* the `what` of the line that is its limit; or NULL    */
    weir_err (*run)(void *context, uint64_t round, weir_bench_sample *samplep);
    void *context;
} weir_bench_line;

void weir_bench_start(weir_bench_sample *sample);
void weir_bench_stop(weir_bench_sample *sample, double units);
/* True under --quick: benches then do as little work as shows that they run. */
bool weir_bench_quick(const weir_cli *cli);
/* A fresh folder for the bench's files, on the disk of the current folder unless WEIR_BENCH_FOLDER names another;
 * removed by weir_bench_run. */
weir_err weir_bench_folder(const char **pathp);
/* Another one, which the caller removes; what a signal ends has its folders removed too. */
weir_err weir_bench_folder_make(char path[PATH_MAX]);
/* For a bench that is not run by weir_bench_run. */
void weir_bench_folder_remove(weir_err *errp);
/* A line of /proc/self/status in bytes: "VmRSS:" what the process has in memory, "VmHWM:" its most since the mark. */
uint64_t weir_bench_memory(const char *name);
void weir_bench_memory_mark(void);
/* Runs and prints; the first error of a line ends it.  WEIR_EINVAL an `against` that no line has. */
weir_err weir_bench_run(const weir_cli *cli, const char *bench, const weir_bench_line *lines, size_t count);

/* A bench's own options go into a table of its own that begins with these. */
#define WEIR_BENCH_OPTIONS                                                     \
    {"rounds", 'r', "N", "rounds to run (default 7; quick: 1)", NULL},         \
        {"quick", 'q', NULL, "least work that still runs every line", NULL}, { \
        "json", 'j', NULL, "one JSON object a line", NULL                      \
    }

extern const weir_option weir_bench_options[];

#endif /* WEIR_BENCH_H */

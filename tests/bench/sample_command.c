/* SPDX-License-Identifier: Apache-2.0 */
/* sample_command.c - `weir bench sample` as a table. */
#include "sample_bench.h"

extern const weir_command weir_bench_sample;

static const weir_option options[] = {
    {"rounds", 'r', "N", "rounds to run (default 7; quick: 1)", NULL},
    {"quick", 'q', NULL, "least work that still runs every line", NULL},
    {"json", 'j', NULL, "one JSON object a line", NULL},
    {"scale", 's', "N", "2^N vertices, 16 edges each (default 20; quick: 10)", NULL},
    {"graph", 'g', "FOLDER", "writes indptr.npy and neighbors.npy of the graph there, unless they are there", NULL},
    {0},
};

const weir_command weir_bench_sample = {
    .name = "sample",
    .summary = "sampling 15, 10 and 5 neighbours over an R-MAT snapshot, one core",
    .example = "weir bench sample --rounds 5",
    .options = options,
    .run = weir_sample_bench_run,
};

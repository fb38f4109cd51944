/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - `weir bench NAME`: the table of benches as a command of its own program, so that the server carries none. */
#include <weir/store/cli/cli.h>

#define WEIR_BENCH(symbol) extern const weir_command weir_bench_##symbol;
#include "benches.def"
#undef WEIR_BENCH

static const weir_command *const benches[] = {
#define WEIR_BENCH(symbol) &weir_bench_##symbol,
#include "benches.def"
#undef WEIR_BENCH
    NULL,
};

static const weir_command command = {
    .name = "bench",
    .summary = "measure against a limit taken in the same run",
    .description =
        "Each bench prints median, least and most of several rounds, and the ratio to the limit that the same "
        "rounds measured.",
    .example = "weir bench base --rounds 5",
    .subcommands = benches,
};

int main(int argc, char **argv) {
    return weir_cli_main(&command, "weir bench", argc, argv);
}

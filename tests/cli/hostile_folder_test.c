/* SPDX-License-Identifier: Apache-2.0 */
/* A program is started in a folder that somebody else may write: nothing of what lies there is loaded or read. */
#include "cli_support.h"

/* A file by the name of each library that the program asks for: whoever opens one stops, "file too short". */
#define LIBRARIES "$(readelf -dW \"$(command -v $program)\" | sed -n 's/.*Shared library: .\\(.*\\)]/\\1/p')"
#define LAY_TRAPS "for name in " LIBRARIES "; do printf trap >$name; done; test -e libc.so.6; "

static void runs_among_traps(const char *program) {
    char line[1024];
    weir_test_output output;
    snprintf(line, sizeof line, "program=%s; " LAY_TRAPS "\"$program\" --help", program);
    cli_bash(weir_test_folder(), line, &output);
    CLI_ASSERT(output.status == 0, line, &output, "must not look for libraries where its user stands");
    weir_test_output_free(&output);
}

static void libraries_come_from_the_system_alone(void **state) {
    (void)state;
    runs_among_traps("weir");
    runs_among_traps("weir-simulate");
    runs_among_traps("weir-train");
    runs_among_traps("weir-backtest");
    runs_among_traps("weir-partition");
}

WEIR_TESTS(WEIR_CASE(libraries_come_from_the_system_alone))

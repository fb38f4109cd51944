/* SPDX-License-Identifier: Apache-2.0 */
/* systemd_test.c - the units of ops/systemd, as systemd reads them. */
#include "weir_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ANALYZE  "/usr/bin/systemd-analyze"
#define UNIT_MAX 16384u

static const char *const units[] = {"weir.service", "weir-nightly.service", "weir-nightly.timer"};

/* systemd wants the program to be there: the one of this build stands in for the installed one. */
static void copy_unit(const char *name) {
    static char text[UNIT_MAX];
    char from[1024];
    const char *source = getenv("WEIR_SOURCE_DIR");
    snprintf(from, sizeof from, "%s/ops/systemd/%s", source ? source : ".", name);
    FILE *in = fopen(from, "r"), *out = fopen(weir_test_path(name), "w");
    assert_non_null(in);
    assert_non_null(out);
    while (fgets(text, sizeof text, in)) {
        char *program = strstr(text, "/usr/bin/weir ");
        if (program)
            fprintf(out, "%.*s%s%s", (int)(program - text), text, weir_test_program(),
                    program + strlen("/usr/bin/weir"));
        else
            fputs(text, out);
    }
    fclose(in);
    assert_int_equal(fclose(out), 0);
}

static void systemd_takes_the_units(void **state) {
    char paths[3][512];
    weir_test_output output;
    (void)state;
    if (access(ANALYZE, X_OK) != 0) weir_test_skip("there is no " ANALYZE " here");
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        copy_unit(units[i]);
        snprintf(paths[i], sizeof paths[i], "%s", weir_test_path(units[i]));
    }
    const char *const argv[] = {ANALYZE, "verify", "--man=no", paths[0], paths[1], paths[2], NULL};
    weir_test_run(argv, NULL, &output);
    if (output.status || strstr(output.err, units[0]) || strstr(output.err, "Unknown"))
        fail_msg("%d %s", output.status, output.err);
    weir_test_output_free(&output);
}

WEIR_TESTS(WEIR_CASE(systemd_takes_the_units))

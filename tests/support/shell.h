/* SPDX-License-Identifier: Apache-2.0 */
/* shell.h - a line of bash that must go well. */
#ifndef WEIR_TEST_SHELL_H
#define WEIR_TEST_SHELL_H

#include "weir_test.h"

#include <stdio.h>

/* $weir is the program, $folder the case's; $data is the one below it that a server of the case has, and the log that
 * weir works on unless it is told another. The line and what it says are printed. Fails where any part of it does. */
static inline void shell(const char *line) {
    const char *const argv[] = {"bash", "-e", "-o", "pipefail", "-c", line, NULL};
    char weir[4096], folder[4096], data[4096], log[4096];
    const char *const environment[] = {weir, folder, data, log, NULL};
    weir_test_output output;
    snprintf(weir, sizeof weir, "weir=%s", weir_test_program());
    snprintf(folder, sizeof folder, "folder=%s", weir_test_folder());
    snprintf(data, sizeof data, "data=%s", weir_test_path("data"));
    snprintf(log, sizeof log, "WEIR_EVENTLOG_PATH=%s", weir_test_path("data/eventlog"));
    weir_test_run(argv, environment, &output);
    printf("$ %s\n%s%s", line, output.out, output.err);
    if (output.status) fail_msg("status %d", output.status);
    weir_test_output_free(&output);
}

#endif /* WEIR_TEST_SHELL_H */

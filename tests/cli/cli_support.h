/* SPDX-License-Identifier: Apache-2.0 */
/* cli_support.h - running weir as a user does: a line of bash, in a fresh folder, with weir in PATH. */
#ifndef WEIR_TESTS_CLI_SUPPORT_H
#define WEIR_TESTS_CLI_SUPPORT_H

#include "weir_test.h"

#include <libgen.h>
#include <regex.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Prints what was run and seen, then fails. */
static inline void cli_fail(const char *line, const weir_test_output *output, const char *why, const char *file,
                            int number) {
    print_error("$ %s\n%s\nstatus %d\nstdout: %.2000s\nstderr: %.2000s\n", line, why, output->status, output->out,
                output->err);
    _fail(file, number);
}
#define CLI_ASSERT(condition, line, output, why)                                 \
    do {                                                                         \
        if (!(condition)) cli_fail((line), (output), (why), __FILE__, __LINE__); \
    } while (0)

/* PATH begins with the folder of the weir under test. */
static inline void cli_path_set(void) {
    char program[4096], path[8192];
    snprintf(program, sizeof program, "%s", weir_test_program());
    snprintf(path, sizeof path, "%s:%s", dirname(program), getenv("PATH"));
    setenv("PATH", path, 1);
}

static inline void cli_bash(const char *folder, const char *line, weir_test_output *outputp) {
    char script[8192];
    snprintf(script, sizeof script, "cd '%s' && %s", folder, line);
    const char *const argv[] = {"bash", "-e", "-o", "pipefail", "-c", script, NULL};
    cli_path_set();
    /* A build with the thread sanitizer would sleep a second at the end of every program that has threads. */
    char sanitizer[1024];
    const char *set = getenv("TSAN_OPTIONS");
    snprintf(sanitizer, sizeof sanitizer, "TSAN_OPTIONS=%s:atexit_sleep_ms=0", set ? set : "");
    const char *const environment[] = {sanitizer, NULL};
    weir_test_run(argv, environment, outputp);
}

static inline bool cli_matches(const char *text, const char *pattern) {
    regex_t regex;
    if (regcomp(&regex, pattern, REG_EXTENDED | REG_NEWLINE | REG_NOSUB) != 0) {
        print_error("not a regular expression: %s\n", pattern);
        _fail(__FILE__, __LINE__);
    }
    bool found = regexec(&regex, text, 0, NULL, 0) == 0;
    regfree(&regex);
    return found;
}

/* One line that ends with a newline. */
static inline bool cli_one_line(const char *text) {
    const char *newline = strchr(text, '\n');
    return newline && newline != text && !newline[1];
}

/* The line of bash, in the folder of the case, goes well and says what is wanted. */
static inline void cli_must(const char *line, const char *pattern) {
    weir_test_output output;
    cli_bash(weir_test_folder(), line, &output);
    CLI_ASSERT(output.status == 0 && cli_matches(output.out, pattern), line, &output, pattern);
    weir_test_output_free(&output);
}

/* It is refused in one sentence, which has what is wanted. */
static inline void cli_refused(const char *line, const char *pattern) {
    weir_test_output output;
    cli_bash(weir_test_folder(), line, &output);
    CLI_ASSERT(output.status != 0 && cli_one_line(output.err) && cli_matches(output.err, pattern), line, &output,
               pattern);
    weir_test_output_free(&output);
}

#endif /* WEIR_TESTS_CLI_SUPPORT_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir_test.h - what every test file includes: cmocka, and a runner that gives each case its own process.
 *
 *     static void append_then_read_back(void **state) { … }
 *     WEIR_TESTS(WEIR_CASE(append_then_read_back), WEIR_CASE(i1_order_rejected))
 *
 * `PROGRAM` runs all cases, each forked with a time limit (10 s times WEIR_TEST_TIMEOUT_MULTIPLIER; on a busy machine
 * a case that computes may go on until it has computed for as long), its output printed only when it fails;
 * `PROGRAM NAME` runs one in this process, for gdb, which stops where an assertion fails;
 * `PROGRAM --list` names them. The last line is "N passed, N failed, N skipped", the status 0, 1 when one failed, 77
 * when all were skipped. Asserts may be used on any thread. A case that skips prints why. A random test takes its
 * seed from weir_test_seed(), which prints it; WEIR_TEST_SEED=N repeats a run.
 */
#ifndef WEIR_TEST_H
#define WEIR_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <weir/store/base/err.h>

typedef struct weir_test_case {
    const char *name;
    void (*run)(void **state);
} weir_test_case;

#define WEIR_CASE(function) \
    { #function, (function) }
#define WEIR_TESTS(...)                                                           \
    int main(int argc, char **argv) {                                             \
        static const weir_test_case cases[] = {__VA_ARGS__};                      \
        return weir_test_main(cases, sizeof cases / sizeof cases[0], argc, argv); \
    }

int weir_test_main(const weir_test_case *cases, size_t count, int argc, char **argv);

/* Ends the case as skipped and prints the reason. */
__attribute__((noreturn)) void weir_test_skip(const char *reason);
/* WEIR_TEST_SEED, or a fresh one; printed once with the way to repeat it. */
uint64_t weir_test_seed(void);
/* How many rounds a random test shall do: normal, times WEIR_TEST_ROUNDS_MULTIPLIER (the long campaigns). */
uint64_t weir_test_rounds(uint64_t normal);
/* By what a test divides its rounds, its points or its data where the machine works several times as hard for each:
 * address or thread in a build with that sanitizer, else 1. It is 1 in a long campaign, with a multiplier above 1, and
 * where one below 1 has made them fewer already. */
uint64_t weir_test_part(uint64_t address, uint64_t thread);
/* Skips the case in a build with this sanitizer, which has nothing to find in it that others do not show; not in a long
 * campaign. */
void weir_test_skip_under(const char *sanitizer, const char *reason);
/* How long a case may take. */
int64_t weir_test_limit_ms(void);
/* "address" or "thread" when this build has that sanitizer, else "". */
const char *weir_test_sanitizer(void);
/* A fresh folder of this case below TMPDIR, removed unless the case fails. Without TMPDIR it is below /tmp, or, of a
 * program of tests/unit or tests/prop, below WEIR_TEST_MEMORY. */
const char *weir_test_folder(void);
/* folder + "/" + name in a static ring of 8 buffers. */
const char *weir_test_path(const char *name);

/* Fails with the sentence and the place when err is not success. */
#define assert_ok(err) weir_test_assert_ok((err), #err, __FILE__, __LINE__)
/* Fails unless err has this code and its sentence contains text (NULL: any). */
#define assert_err(err, code, text) weir_test_assert_err((err), (code), (text), #err, __FILE__, __LINE__)
void weir_test_assert_ok(weir_err err, const char *expression, const char *file, int line);
void weir_test_assert_err(weir_err err, weir_code code, const char *text, const char *expression, const char *file,
                          int line);

/* Fails unless act(context), run in a process of its own, ends it otherwise than by success, and writes text to
 * stderr. */
#define assert_dies(act, context, text) weir_test_assert_dies((act), (context), (text), #act, __FILE__, __LINE__)
void weir_test_assert_dies(void (*act)(void *context), void *context, const char *text, const char *expression,
                           const char *file, int line);

/* Calls attempt with the 1st, 2nd, … allocation failing until it succeeds without a failure; asserts that every failed
 * attempt returns WEIR_ENOMEM and that nothing leaks. attempt must clean up what it opened when it succeeds.
 * What is wrong with an error path the address sanitizer or the counts of blocks tell, so the thread sanitizer, under
 * which an attempt takes ten times as long, sees some: as by a step of 16, unless in a long campaign. */
void weir_test_every_allocation(weir_err (*attempt)(void *context), void *context);
/* Behind the first 16 only each step-th, from one on that the seed draws: many runs meet all. */
void weir_test_some_allocations(weir_err (*attempt)(void *context), void *context, uint64_t step);

/* Runs a program with its output caught; argv ends with NULL. For CLI tests: weir_test_program() is the path of
 * `weir`. */
typedef struct weir_test_output {
    int status; /* exit status; 128 + signal */
    char *out;  /* ended by 0 */
    char *err;
} weir_test_output;
const char *weir_test_program(void);
void weir_test_run(const char *const *argv, const char *const *environment_extra, weir_test_output *outputp);
void weir_test_output_free(weir_test_output *output);

#endif /* WEIR_TEST_H */

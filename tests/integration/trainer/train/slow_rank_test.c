/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slow_rank_test.c - weir-train under mpirun where one rank computes much slower than the others: it is named, from the
 * second epoch on, and nobody else is.
 */
#include <inttypes.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/file.h>

#include "learn_fixture.h"
#include "ranks.h"

#define RANKS  3u
#define EPOCHS 4u

/* Each product of matrices takes so long that the rank sleeps most of the time, whatever else the machine does. */
static void make_slow(const char *rank) {
    assert_int_equal(setenv("LD_PRELOAD", WEIR_TEST_BLAS, 1), 0);
    assert_int_equal(setenv("WEIR_TEST_BLAS_US", "5000", 1), 0);
    assert_int_equal(setenv("WEIR_TEST_BLAS_RANK", rank, 1), 0);
}

static double number_of(const char *line, const char *key) {
    const char *at = strstr(line, key);
    assert_non_null(at);
    return strtod(at + strlen(key), NULL);
}

static void the_slow_one_is_named(unsigned slow) {
    char rank[16], snapshot[4096], run[4096], said[64], *text = NULL;
    weir_test_output output;
    size_t length;
    unsigned epochs = 0, named = 0, lines = 0;
    snprintf(rank, sizeof rank, "%u", slow);
    snprintf(snapshot, sizeof snapshot, "%s", weir_test_path("snapshot"));
    snprintf(run, sizeof run, "%s", weir_test_path("run"));
    const char *const arguments[] = {
        snapshot, "--task",    "bad",  "--folder",       run, "--epochs",  "4",    "--hidden",     "8",    "--batch",
        "64",     "--fanouts", "4,4",  "--patience",     "0", "--warm-up", "0.05", "--validation", "0.25", "--test",
        "0.25",   "--learn",   "once", "--no-baselines", NULL};
    make_slow(rank);
    ranks_run(RANKS, ranks_train_program(), arguments, &output);
    unsetenv("LD_PRELOAD");
    if (output.status) fail_msg("status %d\n%s\n%s", output.status, output.out, output.err);
    assert_ok(weir_file_load(weir_test_path("run/epochs.jsonl"), 1u << 20, &text, &length));
    for (char *line = text, *end; (end = strchr(line, '\n')); line = end + 1, epochs++) {
        *end = 0;
        if (!(number_of(line, "\"slowest_rank_lag\":") > 1.25) ||
            (unsigned)number_of(line, "\"slowest_rank\":") != slow)
            fail_msg("%s", line);
    }
    assert_int_equal(epochs, EPOCHS);
    snprintf(said, sizeof said, "rank %u computes ", slow);
    for (const char *at = output.out; (at = strstr(at, " times as long on a target as the median rank")); at++)
        lines++;
    for (const char *at = output.out; (at = strstr(at, said)); at++)
        named++;
    if (lines != EPOCHS - 1 || named != lines) fail_msg("%s", output.out); /* a first time may be chance */
    weir_free(text);
    weir_test_output_free(&output);
}

static void a_rank_that_lags_is_named(void **state) {
    (void)state;
    const learn_plan plan = {.seed = weir_test_seed(), .pays = 400, .people = 30, .bad = 0.3};
    learn_snapshot(&plan, weir_test_path("snapshot"));
    the_slow_one_is_named(1);
    the_slow_one_is_named(0);
}

WEIR_TESTS(WEIR_CASE(a_rank_that_lags_is_named))

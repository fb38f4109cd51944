/* SPDX-License-Identifier: Apache-2.0 */
/* nightly_fixture.h - a store with enough payments to learn from in a second, and nights over it. */
#ifndef WEIR_NIGHTLY_FIXTURE_H
#define WEIR_NIGHTLY_FIXTURE_H

#include "weir_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/store/base/file.h>

#define NIGHT_UNSIGNED "models.require_signature=false"
#define NIGHT_ANY      "--", "--epochs", "1", "--hidden", "4", "--fanouts", "2", "--no-baselines"
#define NIGHT_SMALL    NIGHT_ANY, "--model", "network" /* without trees, which take longer */
#define NIGHT_WORDS    32

static inline void night_must(const char *const *argv) {
    weir_test_output output;
    weir_test_run(argv, NULL, &output);
    if (output.status) fail_msg("%s %s: %s", argv[1], argv[2], output.err);
    weir_test_output_free(&output);
}

/* The store and the log in folder `d` of the case. */
static inline void night_store(const char *days) {
    char place[512];
    snprintf(place, sizeof place, "file:%s", weir_test_path("sim"));
    const char *const simulate[] = {
        weir_test_program(), "simulate", "payments",      "--accounts", "300",  "--days", days, "--per-day", "120",
        "--fraud-rate",      "0.06",     "--label-delay", "2d",         "--to", place,    NULL};
    const char *const load[] = {weir_test_program(),
                                "load",
                                "--schema",
                                "payments",
                                "--data",
                                weir_test_path("d"),
                                weir_test_path("sim/payments.jsonl"),
                                weir_test_path("sim/chargebacks.jsonl"),
                                NULL};
    night_must(simulate);
    night_must(load);
}

/* more: ended by NULL; environment may be NULL. */
static inline void night_run(const char *const *more, const char *const *environment, weir_test_output *output) {
    const char *argv[NIGHT_WORDS] = {weir_test_program(), "nightly", "--data", weir_test_path("d")};
    size_t count = 4;
    while (more && *more && count + 1 < NIGHT_WORDS)
        argv[count++] = *more++;
    weir_test_run(argv, environment, output);
}

static inline weir_err night_count(void *context, const char *name) {
    *(size_t *)context += name[0] == '2'; /* both nights and models are named by their time, in this century */
    return WEIR_OK;
}

static inline size_t night_entries(const char *folder) {
    size_t count = 0;
    if (weir_path_exists(weir_test_path(folder)))
        assert_ok(weir_folder_list(weir_test_path(folder), night_count, &count));
    return count;
}

#define NIGHT_TEXT_MAX 65536u

/* The whole of a small file; free it. */
static inline char *night_text(const char *name) {
    char *text = calloc(1, NIGHT_TEXT_MAX);
    FILE *file = fopen(weir_test_path(name), "r");
    assert_non_null(text);
    assert_non_null(file);
    assert_true(fread(text, 1, NIGHT_TEXT_MAX - 1, file) > 0);
    fclose(file);
    return text;
}

#endif /* WEIR_NIGHTLY_FIXTURE_H */

/* SPDX-License-Identifier: Apache-2.0 */
/* kill_test.c - a night that is killed at the edges of its steps, and anywhere, ends as if it had not been. */
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir/store/base/rng.h>

#include "nightly_fixture.h"

#define SIGKILLED   (128 + SIGKILL)
#define IN_USE      69 /* a step of the killed night still ends */
#define STEPS       7
#define TRIES_MAX   200
#define LIFE_MAX_US 1500000

static ino_t snapshot_inode(void) {
    struct stat status;
    return stat(weir_test_path("d/nights/n/snapshot/MANIFEST"), &status) == 0 ? status.st_ino : 0;
}

static void go_on(weir_test_output *output) {
    static const char *const resume[] = {"--resume", "--set", NIGHT_UNSIGNED, NIGHT_SMALL, NULL};
    for (int i = 0; i < TRIES_MAX; i++) {
        night_run(resume, NULL, output);
        if (output->status != IN_USE) return;
        weir_test_output_free(output);
        usleep(50000);
    }
    fail_msg("the steps of a killed night do not end");
}

/* One model, which serves; every step done. */
static void is_whole(void) {
    char *state = night_text("d/nights/n/night.json"), *current = night_text("d/models/current");
    assert_non_null(strstr(state, "\"done\":7"));
    assert_non_null(strstr(state, "\"outcome\":\"promoted\""));
    assert_int_equal(night_entries("d/models"), 1);
    assert_non_null(strstr(current, "\nend 1\n")); /* one promotion */
    free(state);
    free(current);
}

static void kill_at(const char *point, int step) {
    char spec[64];
    static const char *const named[] = {"--name", "n", "--set", NIGHT_UNSIGNED, NIGHT_SMALL, NULL};
    snprintf(spec, sizeof spec, "WEIR_KILL_AT=nightly.%s:%d", point, step);
    const char *const environment[] = {spec, NULL};
    weir_test_output output;
    night_store("60");
    night_run(named, environment, &output);
    assert_int_equal(output.status, SIGKILLED);
    weir_test_output_free(&output);
    ino_t before = snapshot_inode();
    if (strcmp(point, "after") != 0 || step != STEPS) { /* else the night has ended */
        go_on(&output);
        if (output.status) fail_msg("after %s: %s", spec, output.err);
        weir_test_output_free(&output);
    }
    is_whole();
    if (before) assert_int_equal(snapshot_inode(), before); /* NIGHTLY-G1 */
}

/* What comes before a step comes after another; between is when a step is done and night.json does not know. */
#define KILLS(X)                 \
    X(checkpoint, between, 1)    \
    X(checkpoint, after, 1)      \
    X(snapshot, between, 2)      \
    X(snapshot, after, 2)        \
    X(partition, between, 3)     \
    X(partition, after, 3)       \
    X(train, between, 4)         \
    X(train, after, 4)           \
    X(judge, between, 5)         \
    X(judge, after, 5)           \
    X(judge_serving, between, 6) \
    X(judge_serving, after, 6)   \
    X(decide, between, 7)        \
    X(decide, after, 7)

#define KILL_CASE(step, point, number)              \
    static void g1_##point##_##step(void **state) { \
        (void)state;                                \
        kill_at(#point, number);                    \
    }
KILLS(KILL_CASE)

static void g2_nothing_serves_before_the_last_step(void **state) {
    static const char *const named[] = {"--name", "n", "--set", NIGHT_UNSIGNED, NIGHT_SMALL, NULL};
    static const char *const environment[] = {"WEIR_KILL_AT=nightly.before:7", NULL};
    weir_test_output output;
    (void)state;
    night_store("60");
    night_run(named, environment, &output);
    assert_int_equal(output.status, SIGKILLED);
    weir_test_output_free(&output);
    assert_int_equal(night_entries("d/models"), 1);
    assert_false(weir_path_exists(weir_test_path("d/models/current")));
}

/* What the models were compared by was in the memory of a night that is dead: the next decides as it would have. */
static void g3_a_comparison_outlives_the_night_that_made_it(void **state) {
    static const char *const first[] = {"--set", NIGHT_UNSIGNED, NIGHT_SMALL, NULL};
    static const char *const learnt[] = {"--name",         "n", "--set", NIGHT_UNSIGNED, "--", "--epochs", "20",
                                         "--no-baselines", NULL};
    static const char *const environment[] = {"WEIR_KILL_AT=nightly.after:6", NULL};
    weir_test_output output;
    (void)state;
    night_store("120");
    night_run(first, NULL, &output);
    assert_int_equal(output.status, 0);
    weir_test_output_free(&output);
    night_run(learnt, environment, &output);
    assert_int_equal(output.status, SIGKILLED);
    weir_test_output_free(&output);
    go_on(&output);
    if (output.status || !strstr(output.out, "7/7  decide         promoted ") || !strstr(output.out, " targets (+0."))
        fail_msg("%s\n%s", output.out, output.err);
    assert_null(strstr(output.out, "+0.0000"));
    weir_test_output_free(&output);
}

/* Its folder is there, and nothing says yet what it is. */
static void g1_as_it_begins(void **state) {
    static const char *const resume[] = {"--resume", "--set", NIGHT_UNSIGNED, NIGHT_SMALL, NULL};
    static const char *const environment[] = {"WEIR_KILL_AT=nightly.begun:1", NULL};
    weir_test_output output;
    (void)state;
    night_store("60");
    night_run(resume, environment, &output);
    assert_int_equal(output.status, SIGKILLED);
    weir_test_output_free(&output);
    go_on(&output);
    if (output.status) fail_msg("%s", output.err);
    weir_test_output_free(&output);
    assert_int_equal(night_entries("d/nights"), 1);
    assert_int_equal(night_entries("d/models"), 1);
}

/* Neither a folder of somebody else's, nor a night that was cut off before another one ended. */
static void g1_only_the_newest_night_is_continued(void **state) {
    static const char *const resume[] = {"--resume", "--set", NIGHT_UNSIGNED, NIGHT_SMALL, NULL};
    static const char *const anew[] = {"--set", NIGHT_UNSIGNED, NIGHT_SMALL, NULL};
    static const char *const environment[] = {"WEIR_KILL_AT=nightly.after:1", NULL};
    weir_test_output output;
    (void)state;
    night_store("60");
    assert_ok(weir_folder_create(weir_test_path("d/nights")));
    assert_ok(weir_folder_create(weir_test_path("d/nights/lost+found")));
    night_run(resume, environment, &output);
    assert_int_equal(output.status, SIGKILLED);
    weir_test_output_free(&output);
    assert_false(weir_path_exists(weir_test_path("d/nights/lost+found/night.json")));
    assert_int_equal(night_entries("d/nights"), 1);
    night_run(anew, NULL, &output);
    if (output.status) fail_msg("%s", output.err);
    weir_test_output_free(&output);
    assert_int_equal(night_entries("d/nights"), 2);
    go_on(&output);
    if (output.status) fail_msg("%s", output.err);
    weir_test_output_free(&output);
    assert_int_equal(night_entries("d/nights"), 3); /* and not the first */
    assert_int_equal(night_entries("d/models"), 2);
}

static void run_and_kill(int64_t life_us) {
    pid_t child = fork();
    assert_true(child >= 0);
    if (!child) {
        execl(weir_test_program(), "weir", "nightly", "--data", weir_test_path("d"), "--resume", "--set",
              NIGHT_UNSIGNED, NIGHT_SMALL, (char *)NULL);
        _exit(127);
    }
    usleep((useconds_t)life_us);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
}

static void g1_at_random_moments(void **state) {
    (void)state;
    weir_rng rng = weir_rng_stream(weir_test_seed(), 0, 0);
    weir_test_output output;
    night_store("60");
    for (uint64_t round = 0; round < weir_test_rounds(3); round++)
        run_and_kill((int64_t)weir_rng_below(&rng, LIFE_MAX_US));
    go_on(&output);
    if (output.status) fail_msg("%s", output.err);
    weir_test_output_free(&output);
    /* a round may have been long enough to end, and then the next began another night: a model a night, no more */
    assert_int_equal(night_entries("d/models"), night_entries("d/nights"));
}

#define KILL_ROW(step, point, number) WEIR_CASE(g1_##point##_##step),
WEIR_TESTS(KILLS(KILL_ROW) WEIR_CASE(g3_a_comparison_outlives_the_night_that_made_it),
           WEIR_CASE(g2_nothing_serves_before_the_last_step), WEIR_CASE(g1_as_it_begins),
           WEIR_CASE(g1_only_the_newest_night_is_continued), WEIR_CASE(g1_at_random_moments))

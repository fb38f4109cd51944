/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runner_test.c - the runner is run by itself: with WEIR_RUNNER_FIXTURE set, this program holds the cases that fail,
 * crash, hang and skip, and the cases below look at what becomes of them.
 */
#include "weir_test.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/thread.h>

/* --- the fixture -------------------------------------------------------------------------------------------- */

static void passes(void **state) {
    (void)state;
    puts("output of a case that passes");
    assert_int_equal(weir_thread_role(), WEIR_ROLE_TEST);
}

static void fails(void **state) {
    (void)state;
    printf("what it said");
    assert_int_equal(1, 2);
}

static void fails_on_another_thread_main(void *context) {
    fails(context);
}

static void fails_on_another_thread(void **state) {
    (void)state;
    weir_thread *thread;
    assert_ok(weir_thread_start("failing", WEIR_ROLE_TEST, fails_on_another_thread_main, NULL, &thread));
    weir_thread_join(thread);
}

static void asserts(void **state) {
    (void)state;
    int the_impossible = 0;
    WEIR_ASSERT(the_impossible);
}

static void crashes(void **state) {
    (void)state;
    raise(SIGKILL);
}

static void exits(void **state) {
    (void)state;
    exit(3);
}

static void hangs(void **state) {
    (void)state;
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    for (;;)
        pause();
}

/* Computes for ever, and 100 times as long as the limit is when there is much else to do. */
static void spins(void **state) {
    (void)state;
    for (volatile unsigned turns = 0;; turns++) {
    }
}

/* Three times the limit, of which it computes a quarter: what it is on a machine that does other things too. */
static void computes_and_waits(void **state) {
    (void)state;
    struct timespec begun, now;
    clock_gettime(CLOCK_MONOTONIC, &begun);
    do {
        clock_t until = clock() + CLOCKS_PER_SEC / 50;
        while (clock() < until) {
        }
        usleep(60000);
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (now.tv_sec - begun.tv_sec < 2);
}

/* Writes the number of a process that would outlive the case into the file that the environment names. */
static void leaves_a_process(void **state) {
    (void)state;
    pid_t child = fork();
    if (child == 0)
        for (;;)
            pause();
    FILE *file = fopen(getenv("WEIR_RUNNER_FILE"), "w");
    assert_non_null(file);
    fprintf(file, "%d\n", (int)child);
    fclose(file);
}

static void skips(void **state) {
    (void)state;
    weir_test_path("kept.txt");
    weir_test_skip("there is no moon");
}

static void is_left_to_others(void **state) {
    (void)state;
    const char *sanitizer = weir_test_sanitizer();
    printf("parts: %d\n", (int)weir_test_part(3, 5));
    weir_test_skip_under(strcmp(sanitizer, "address") == 0 ? "thread" : "address", "it is another");
    weir_test_skip_under(*sanitizer ? sanitizer : "thread", "there is no wind");
}

static void make_file(const char *name) {
    FILE *file = fopen(weir_test_path(name), "w");
    assert_non_null(file);
    fclose(file);
}

static void uses_a_folder(void **state) {
    (void)state;
    assert_int_equal(mkdir(weir_test_path("below"), 0700), 0);
    make_file("below/file");
}

static void fails_with_a_folder(void **state) {
    (void)state;
    make_file("evidence");
    fail();
}

static void draws_a_seed(void **state) {
    (void)state;
    assert_true(weir_test_seed() == weir_test_seed());
}

static void says_too_much(void **state) {
    (void)state;
    for (int i = 0; i < 100000; i++)
        printf("line %d\n", i);
    fail();
}

static void wrong_error(void **state) {
    (void)state;
    assert_err(WEIR_ERR(WEIR_EIO, "the disk is gone"), WEIR_EFULL, "space");
}

static void error_for_success(void **state) {
    (void)state;
    assert_ok(WEIR_ERR(WEIR_EIO, "the disk is gone"));
}

static weir_err leak_when_failing(void *context) {
    char *first = weir_malloc(1), *second = first ? weir_malloc(1) : NULL;
    if (!second) return WEIR_ERR(WEIR_ENOMEM, "no memory");
    weir_free(first);
    weir_free(second);
    return *(int *)context ? WEIR_ERR(WEIR_EIO, "after all") : WEIR_OK;
}

static void allocation_leaks(void **state) {
    (void)state;
    weir_test_every_allocation(leak_when_failing, &(int){0});
}

static weir_err hide_the_failure(void *context) {
    (void)context;
    weir_free(weir_malloc(1));
    return WEIR_OK;
}

static void allocation_is_hidden(void **state) {
    (void)state;
    weir_test_every_allocation(hide_the_failure, NULL);
}

enum { MANY = 100, STEP = 7, EACH_TO = 16 };

typedef struct many_allocations {
    bool failed[MANY];
    unsigned leaks_at; /* which of them has to fail */
} many_allocations;

static weir_err allocate_many(void *context) {
    many_allocations *m = context;
    char *blocks[MANY] = {NULL};
    unsigned count = 0;
    while (count < MANY && (blocks[count] = weir_malloc(1)))
        count++;
    if (count < MANY) m->failed[count] = true;
    for (unsigned i = count + 1 == m->leaks_at ? 1 : 0; i < count; i++)
        weir_free(blocks[i]);
    return count < MANY ? WEIR_ERR(WEIR_ENOMEM, "no memory") : WEIR_OK;
}

static void some_allocation_leaks(void **state) {
    (void)state;
    weir_test_some_allocations(allocate_many, &(many_allocations){.leaks_at = EACH_TO - 1}, MANY);
}

static void fails_some_allocations(void **state) {
    (void)state;
    many_allocations m = {.leaks_at = 0};
    weir_test_some_allocations(allocate_many, &m, STEP);
    printf("failed: ");
    for (unsigned i = 0; i < MANY; i++)
        putchar(m.failed[i] ? '1' : '0');
    putchar('\n');
}

static void come_back(void *context) {
    (void)context;
    fputs("alive", stderr);
}

static void does_not_die(void **state) {
    (void)state;
    assert_dies(come_back, NULL, "alive");
}

static void dies_with_other_words(void **state) {
    (void)state;
    assert_dies((void (*)(void *))abort, NULL, "famous last words");
}

static const weir_test_case bad[] = {
    WEIR_CASE(passes),
    WEIR_CASE(fails),
    WEIR_CASE(fails_on_another_thread),
    WEIR_CASE(asserts),
    WEIR_CASE(crashes),
    WEIR_CASE(exits),
    WEIR_CASE(skips),
    WEIR_CASE(says_too_much),
    WEIR_CASE(fails_with_a_folder),
    WEIR_CASE(wrong_error),
    WEIR_CASE(error_for_success),
    WEIR_CASE(allocation_leaks),
    WEIR_CASE(allocation_is_hidden),
    WEIR_CASE(some_allocation_leaks),
    WEIR_CASE(does_not_die),
    WEIR_CASE(dies_with_other_words),
};
static const weir_test_case hanging[] = {WEIR_CASE(hangs), WEIR_CASE(passes)};
static const weir_test_case spinning[] = {WEIR_CASE(spins), WEIR_CASE(passes)};
static const weir_test_case slow[] = {WEIR_CASE(computes_and_waits)};
static const weir_test_case good[] = {WEIR_CASE(passes), WEIR_CASE(uses_a_folder), WEIR_CASE(skips)};
static const weir_test_case skipping[] = {WEIR_CASE(skips)};
static const weir_test_case seeded[] = {WEIR_CASE(draws_a_seed)};
static const weir_test_case sparing[] = {WEIR_CASE(fails_some_allocations), WEIR_CASE(is_left_to_others)};
static const weir_test_case starting[] = {WEIR_CASE(passes)};
static const weir_test_case leaving[] = {WEIR_CASE(leaves_a_process)};

#define SET(name) \
    { #name, name, sizeof(name) / sizeof((name)[0]) }
static const struct {
    const char *name;
    const weir_test_case *cases;
    size_t count;
} fixtures[] = {SET(bad),      SET(hanging), SET(spinning), SET(slow),     SET(good),
                SET(skipping), SET(seeded),  SET(sparing),  SET(starting), SET(leaving)};

/* --- running it --------------------------------------------------------------------------------------------- */

static weir_test_output run_fixture(const char *name, const char *argument, const char *environment) {
    char fixture[64], folder[4096], self[4096];
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    assert_true(length > 0);
    self[length] = 0;
    snprintf(fixture, sizeof fixture, "WEIR_RUNNER_FIXTURE=%s", name);
    snprintf(folder, sizeof folder, "TMPDIR=%s", weir_test_folder());
    weir_test_output output;
    weir_test_run((const char *const[]){self, argument, NULL},
                  (const char *const[]){fixture, folder, "WEIR_TEST_SEED=", environment, NULL}, &output);
    return output;
}

static void assert_says(const weir_test_output *output, const char *text) {
    if (strstr(output->out, text)) return;
    fprintf(stderr, "'%s' is not in:\n%s%s", text, output->out, output->err);
    fail();
}

static void assert_last_line(const weir_test_output *output, const char *line) {
    size_t length = strlen(output->out), line_length = strlen(line);
    assert_true(length > line_length && output->out[length - 1] == '\n');
    assert_memory_equal(output->out + length - 1 - line_length, line, line_length);
}

static void every_bad_end_is_told_by_name(void **state) {
    (void)state;
    weir_test_output output = run_fixture("bad", NULL, NULL);
    assert_int_equal(output.status, 1);
    assert_true(strstr(output.out, "ok    passes\n") || strstr(output.out, "ok    passes  "));
    assert_says(&output, "FAIL  fails: an assertion failed, signal 6 (Aborted)\nwhat it said");
    assert_says(&output, "0x1 != 0x2");
    assert_says(&output, "FAIL  fails_on_another_thread: an assertion failed");
    assert_says(&output, "FAIL  asserts: an assertion failed");
    assert_says(&output, "assertion failed: the_impossible");
    assert_says(&output, "FAIL  crashes: killed by signal 9 (Killed)\n");
    assert_says(&output, "FAIL  exits: exit status 3\n");
    assert_says(&output, "skip  skips: there is no moon\n");
    assert_says(&output, "EIO at ");
    assert_says(&output, "should be EFULL with 'space'");
    assert_says(&output, "FAIL  error_for_success");
    assert_says(&output, "FAIL  allocation_leaks");
    assert_says(&output, "with allocation 2 failing");
    assert_says(&output, "FAIL  allocation_is_hidden");
    assert_says(&output, "FAIL  some_allocation_leaks");
    assert_says(&output, "with allocation 15 failing");
    assert_says(&output, "FAIL  does_not_die");
    assert_says(&output, "goes on and should die with 'alive'");
    assert_says(&output, "FAIL  dies_with_other_words");
    assert_null(strstr(output.out, "output of a case that passes"));
    assert_last_line(&output, "1 passed, 14 failed, 1 skipped");
    weir_test_output_free(&output);
}

static void hanging_case_is_killed_and_the_next_runs(void **state) {
    (void)state;
    weir_test_output output = run_fixture("hanging", NULL, "WEIR_TEST_TIMEOUT_MULTIPLIER=0.05");
    assert_int_equal(output.status, 1);
    assert_says(&output, "FAIL  hangs: not done after 0.5 s; for a slow machine raise WEIR_TEST_TIMEOUT_MULTIPLIER\n");
    assert_last_line(&output, "1 passed, 1 failed, 0 skipped");
    weir_test_output_free(&output);
}

static void spinning_case_is_killed_and_the_next_runs(void **state) {
    (void)state;
    weir_test_output output = run_fixture("spinning", NULL, "WEIR_TEST_TIMEOUT_MULTIPLIER=0.05");
    assert_int_equal(output.status, 1);
    assert_says(&output, "FAIL  spins: not done after 0.5 s");
    assert_last_line(&output, "1 passed, 1 failed, 0 skipped");
    weir_test_output_free(&output);
}

/* Past its limit by the clock on the wall, and not by what it had of the machine. */
static void slow_case_that_computes_may_end(void **state) {
    (void)state;
    weir_test_output output = run_fixture("slow", NULL, "WEIR_TEST_TIMEOUT_MULTIPLIER=0.1");
    assert_int_equal(output.status, 0);
    /* A quarter of 2 s, less where others compute, and never more than by the clock. */
    static const char told[] = "ok    computes_and_waits  ";
    assert_memory_equal(output.out, told, sizeof told - 1);
    char *end;
    const double used_s = strtod(output.out + sizeof told - 1, &end);
    assert_memory_equal(end, " s\n", 3);
    assert_true(used_s > 0.1 && used_s < 3.5);
    assert_last_line(&output, "1 passed, 0 failed, 0 skipped");
    weir_test_output_free(&output);
}

static void all_well_is_status_0(void **state) {
    (void)state;
    weir_test_output output = run_fixture("good", NULL, NULL);
    assert_int_equal(output.status, 0);
    assert_last_line(&output, "2 passed, 0 failed, 1 skipped");
    assert_int_equal(rmdir(weir_test_folder()), 0); /* the cases have left nothing in it */
    assert_int_equal(mkdir(weir_test_folder(), 0700), 0);
    weir_test_output_free(&output);
}

static void all_skipped_is_status_77(void **state) {
    (void)state;
    weir_test_output output = run_fixture("skipping", NULL, NULL);
    assert_int_equal(output.status, 77);
    assert_last_line(&output, "0 passed, 0 failed, 1 skipped");
    weir_test_output_free(&output);
    output = run_fixture("skipping", "skips", NULL);
    assert_int_equal(output.status, 77);
    assert_last_line(&output, "0 passed, 0 failed, 1 skipped");
    weir_test_output_free(&output);
    assert_int_equal(rmdir(weir_test_folder()), 0);
    assert_int_equal(mkdir(weir_test_folder(), 0700), 0);
}

static void folder_of_a_failed_case_is_kept_and_named(void **state) {
    (void)state;
    static const char before[] = "its folder is kept: ";
    weir_test_output output = run_fixture("bad", NULL, NULL);
    char *folder = strstr(output.out, before);
    assert_non_null(folder);
    folder += sizeof before - 1;
    *strchr(folder, '\n') = 0;
    char evidence[4096];
    snprintf(evidence, sizeof evidence, "%s/evidence", folder);
    assert_int_equal(access(evidence, F_OK), 0);
    weir_test_output_free(&output);
}

static void long_output_is_cut_at_its_beginning(void **state) {
    (void)state;
    weir_test_output output = run_fixture("bad", NULL, NULL);
    assert_says(&output, "bytes of output before this)");
    assert_says(&output, "line 99999\n");
    assert_null(strstr(output.out, "line 100\n"));
    weir_test_output_free(&output);
}

static void one_case_runs_in_this_process(void **state) {
    (void)state;
    weir_test_output output = run_fixture("good", "passes", NULL);
    assert_int_equal(output.status, 0);
    assert_says(&output, "output of a case that passes\n");
    assert_last_line(&output, "1 passed, 0 failed, 0 skipped");
    weir_test_output_free(&output);
    output = run_fixture("bad", "fails", NULL);
    assert_int_equal(output.status, 128 + SIGABRT);
    weir_test_output_free(&output);
}

static void cases_are_listed_and_unknown_ones_refused(void **state) {
    (void)state;
    weir_test_output output = run_fixture("good", "--list", NULL);
    assert_int_equal(output.status, 0);
    assert_string_equal(output.out, "passes\nuses_a_folder\nskips\n");
    weir_test_output_free(&output);
    output = run_fixture("good", "nobody", NULL);
    assert_int_equal(output.status, 2);
    assert_non_null(strstr(output.err, "no case 'nobody'; --list names them"));
    weir_test_output_free(&output);
}

static void seed_is_told_and_repeats(void **state) {
    (void)state;
    weir_test_output given = run_fixture("seeded", NULL, "WEIR_TEST_SEED=7");
    weir_test_output first = run_fixture("seeded", NULL, NULL), second = run_fixture("seeded", NULL, NULL);
    assert_says(&given, "ok    draws_a_seed  WEIR_TEST_SEED=7");
    assert_says(&first, "ok    draws_a_seed  WEIR_TEST_SEED=");
    assert_string_not_equal(first.out, second.out);
    weir_test_output_free(&given);
    weir_test_output_free(&first);
    weir_test_output_free(&second);
}

/* The first ones each time, and of the others one in STEP: which, the seed says, and all of them are met. */
static void some_allocations_are_all_of_them_over_seeds(void **state) {
    (void)state;
    bool met[MANY] = {false};
    for (unsigned seed = 0; seed < STEP; seed++) {
        char environment[64];
        unsigned behind = 0;
        snprintf(environment, sizeof environment, "WEIR_TEST_SEED=%u", seed);
        weir_test_output output = run_fixture("sparing", "fails_some_allocations", environment);
        assert_int_equal(output.status, 0);
        const char *failed = strstr(output.out, "failed: ");
        assert_non_null(failed);
        failed += strlen("failed: ");
        assert_int_equal(strspn(failed, "01"), MANY);
        for (unsigned i = 0; i < MANY; i++) {
            met[i] = met[i] || failed[i] == '1';
            behind += i >= EACH_TO && failed[i] == '1';
            assert_true(failed[i] == '1' || i >= EACH_TO);
        }
        assert_int_equal(behind, (MANY - EACH_TO) / STEP);
        weir_test_output_free(&output);
    }
    for (unsigned i = 0; i < MANY; i++)
        assert_true(met[i]);
}

/* What a sanitizer is spared is done in a long campaign. */
static void a_sanitizer_is_spared_but_for_a_long_campaign(void **state) {
    (void)state;
    const char *sanitizer = weir_test_sanitizer();
    weir_test_output output = run_fixture("sparing", "is_left_to_others", "WEIR_TEST_ROUNDS_MULTIPLIER=");
    assert_int_equal(output.status, *sanitizer ? 77 : 0);
    assert_says(&output, strcmp(sanitizer, "address") == 0  ? "parts: 3\n"
                         : strcmp(sanitizer, "thread") == 0 ? "parts: 5\n"
                                                            : "parts: 1\n");
    weir_test_output_free(&output);
    output = run_fixture("sparing", "is_left_to_others", "WEIR_TEST_ROUNDS_MULTIPLIER=20");
    assert_int_equal(output.status, 0);
    assert_says(&output, "parts: 1\n");
    weir_test_output_free(&output);
}

static void wrong_environment_is_refused(void **state) {
    (void)state;
    static const char *const wrong[] = {"WEIR_TEST_TIMEOUT_MULTIPLIER=0", "WEIR_TEST_TIMEOUT_MULTIPLIER=fast",
                                        "WEIR_TEST_TIMEOUT_MULTIPLIER=1e7", "WEIR_TEST_TIMEOUT_MULTIPLIER=nan"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        weir_test_output output = run_fixture("seeded", NULL, wrong[i]);
        assert_int_equal(output.status, 2);
        assert_non_null(strstr(output.err, "give a number from 0.001 to a million"));
        weir_test_output_free(&output);
    }
    weir_test_output output = run_fixture("seeded", NULL, "WEIR_TEST_SEED=seven");
    assert_int_equal(output.status, 1);
    assert_says(&output, "WEIR_TEST_SEED is 'seven'");
    weir_test_output_free(&output);
}

static void process_that_outlives_its_case_is_killed(void **state) {
    (void)state;
    char path[4096 + 32], text[32] = "";
    snprintf(path, sizeof path, "WEIR_RUNNER_FILE=%s", weir_test_path("process"));
    weir_test_output output = run_fixture("leaving", NULL, path);
    assert_int_equal(output.status, 0);
    weir_test_output_free(&output);
    FILE *file = fopen(weir_test_path("process"), "r");
    assert_non_null(fgets(text, sizeof text, file));
    fclose(file);
    /* Dead is gone, or waiting for a parent that never asks: a process in a container may stay in that state. */
    char status[64], line[512] = "";
    snprintf(status, sizeof status, "/proc/%.*s/stat", (int)strcspn(text, "\n"), text);
    for (bool alive = true; alive;) {
        file = fopen(status, "r");
        alive = file && fgets(line, sizeof line, file) && !strstr(line, ") Z") && !strstr(line, ") X");
        if (file) fclose(file);
    }
}

/* --- running programs --------------------------------------------------------------------------------------- */

static weir_test_output run_shell(const char *script) {
    weir_test_output output;
    weir_test_run((const char *const[]){"sh", "-c", script, NULL}, (const char *const[]){"GREETING=good day", NULL},
                  &output);
    return output;
}

static void output_and_status_of_a_program_are_caught(void **state) {
    (void)state;
    weir_test_output output = run_shell("echo \"$GREETING\"; echo no >&2; exit 65");
    assert_int_equal(output.status, 65);
    assert_string_equal(output.out, "good day\n");
    assert_string_equal(output.err, "no\n");
    weir_test_output_free(&output);
    assert_null(output.out);
    output = run_shell("kill -TERM $$");
    assert_int_equal(output.status, 128 + SIGTERM);
    weir_test_output_free(&output);
    output = run_shell("cat; head -c 1000000 /dev/zero | tr '\\0' x");
    assert_int_equal(output.status, 0);
    assert_int_equal(strlen(output.out), 1000000);
    weir_test_output_free(&output);
}

/* A program may start what all its cases need, as a broker, before the first of them. */
static void program_runs_before_the_cases(void **state) {
    (void)state;
    weir_test_output output = run_fixture("starting", NULL, NULL);
    assert_says(&output, "started with status 3: hello");
    assert_last_line(&output, "1 passed, 0 failed, 0 skipped");
    weir_test_output_free(&output);
}

static void program_that_is_not_there_is_status_127(void **state) {
    (void)state;
    weir_test_output output;
    weir_test_run((const char *const[]){"/nowhere/weir", NULL}, NULL, &output);
    assert_int_equal(output.status, 127);
    assert_non_null(strstr(output.err, "/nowhere/weir: No such file"));
    weir_test_output_free(&output);
}

static void paths_are_in_the_folder_and_eight_at_once(void **state) {
    (void)state;
    const char *paths[8];
    for (int i = 0; i < 8; i++)
        paths[i] = weir_test_path((char[2]){(char)('a' + i), 0});
    for (int i = 0; i < 8; i++) {
        char expected[4096 + 2];
        snprintf(expected, sizeof expected, "%s/%c", weir_test_folder(), 'a' + i);
        assert_string_equal(paths[i], expected);
    }
}

static const weir_test_case cases[] = {
    WEIR_CASE(every_bad_end_is_told_by_name),
    WEIR_CASE(hanging_case_is_killed_and_the_next_runs),
    WEIR_CASE(spinning_case_is_killed_and_the_next_runs),
    WEIR_CASE(slow_case_that_computes_may_end),
    WEIR_CASE(all_well_is_status_0),
    WEIR_CASE(all_skipped_is_status_77),
    WEIR_CASE(folder_of_a_failed_case_is_kept_and_named),
    WEIR_CASE(long_output_is_cut_at_its_beginning),
    WEIR_CASE(one_case_runs_in_this_process),
    WEIR_CASE(cases_are_listed_and_unknown_ones_refused),
    WEIR_CASE(seed_is_told_and_repeats),
    WEIR_CASE(some_allocations_are_all_of_them_over_seeds),
    WEIR_CASE(a_sanitizer_is_spared_but_for_a_long_campaign),
    WEIR_CASE(wrong_environment_is_refused),
    WEIR_CASE(process_that_outlives_its_case_is_killed),
    WEIR_CASE(output_and_status_of_a_program_are_caught),
    WEIR_CASE(program_runs_before_the_cases),
    WEIR_CASE(program_that_is_not_there_is_status_127),
    WEIR_CASE(paths_are_in_the_folder_and_eight_at_once),
};

int main(int argc, char **argv) {
    const char *fixture = getenv("WEIR_RUNNER_FIXTURE");
    if (fixture && strcmp(fixture, "starting") == 0) {
        weir_test_output output = run_shell("printf hello; exit 3");
        printf("started with status %d: %s\n", output.status, output.out);
        weir_test_output_free(&output);
    }
    for (size_t i = 0; fixture && i < sizeof fixtures / sizeof fixtures[0]; i++)
        if (strcmp(fixtures[i].name, fixture) == 0)
            return weir_test_main(fixtures[i].cases, fixtures[i].count, argc, argv);
    return weir_test_main(cases, sizeof cases / sizeof cases[0], argc, argv);
}

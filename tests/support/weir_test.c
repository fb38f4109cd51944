/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir_test.c - the runner: each case in a process of its own, with a limit and its output kept.
 *
 * A case that crashes, hangs or leaks takes only itself down, and allocation counters and armed faults start fresh.
 */
#include "weir_test.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <weir/base/alloc.h>

#define CASE_LIMIT_S   10
#define STATUS_SKIPPED 77
#define PATH_RING      8
#define PATH_BYTES     4096

static char folder[PATH_BYTES]; /* of this case; empty until asked for */
static uint64_t seed;
static bool seed_known;

static unsigned long environment_number(const char *name, unsigned long otherwise) {
    const char *text = getenv(name);
    return text && *text ? strtoul(text, NULL, 10) : otherwise;
}

/* --- folders and seeds --------------------------------------------------------------------------------------- */

const char *weir_test_folder(void) {
    if (!folder[0]) {
        const char *parent = getenv("TMPDIR");
        snprintf(folder, sizeof folder, "%s/weir-test.XXXXXX", parent && *parent ? parent : "/tmp");
        if (!mkdtemp(folder)) {
            fprintf(stderr, "cannot make %s: %s\n", folder, strerror(errno));
            abort();
        }
    }
    return folder;
}

const char *weir_test_path(const char *name) {
    static char ring[PATH_RING][PATH_BYTES];
    static unsigned next;
    char *path = ring[next++ % PATH_RING];
    snprintf(path, PATH_BYTES, "%s/%s", weir_test_folder(), name);
    return path;
}

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *walk) {
    (void)status, (void)type, (void)walk;
    return remove(path);
}

static void folder_remove(void) {
    if (folder[0]) nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

uint64_t weir_test_seed(void) {
    if (!seed_known) {
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        seed = environment_number("WEIR_TEST_SEED", (unsigned long)now.tv_nsec ^ (unsigned long)getpid() << 20);
        seed_known = true;
        printf("seed %llu (repeat with WEIR_TEST_SEED=%llu)\n", (unsigned long long)seed, (unsigned long long)seed);
    }
    return seed;
}

uint64_t weir_test_rounds(uint64_t normal) {
    return normal * environment_number("WEIR_TEST_ROUNDS_MULTIPLIER", 1);
}

void weir_test_skip(const char *reason) {
    printf("skipped: %s\n", reason);
    folder_remove();
    fflush(NULL);
    _exit(STATUS_SKIPPED);
}

/* --- one case ------------------------------------------------------------------------------------------------ */

static int run_here(const weir_test_case *one) {
    const struct CMUnitTest test = {one->name, one->run, NULL, NULL, NULL};
    int failed = _cmocka_run_group_tests(one->name, &test, 1, NULL, NULL);
    if (failed == 0) {
        folder_remove();
    } else if (folder[0]) {
        printf("its files are kept in %s\n", folder);
    }
    return failed ? 1 : 0;
}

static void run_child(const weir_test_case *one, int output) {
    setpgid(0, 0); /* so that the limit reaches what the case has started too */
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
    close(output);
    setvbuf(stdout, NULL, _IOLBF, 0);
    exit(run_here(one));
}

typedef struct caught {
    char *bytes;
    size_t length;
} caught;

static void caught_read(caught *c, int fd) {
    char chunk[4096];
    ssize_t got = read(fd, chunk, sizeof chunk);
    if (got <= 0) return;
    c->bytes = realloc(c->bytes, c->length + (size_t)got + 1);
    if (!c->bytes) abort();
    memcpy(c->bytes + c->length, chunk, (size_t)got);
    c->length += (size_t)got;
    c->bytes[c->length] = '\0';
}

static int64_t now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Reads until the child has ended or its time is up. The pipe alone does not tell: a grandchild may hold it open. */
static bool wait_for_child(pid_t child, int output, int64_t limit_ms, caught *c, int *statusp) {
    int64_t end_ms = now_ms() + limit_ms;
    for (;;) {
        struct pollfd ready = {.fd = output, .events = POLLIN};
        if (poll(&ready, 1, 20) > 0 && ready.revents & POLLIN) {
            caught_read(c, output);
            continue;
        }
        if (waitpid(child, statusp, WNOHANG) == child) break;
        if (now_ms() >= end_ms) return false;
    }
    fcntl(output, F_SETFL, O_NONBLOCK);
    for (size_t before = c->length + 1; before != c->length;) {
        before = c->length;
        caught_read(c, output);
    }
    return true;
}

typedef enum verdict { PASSED, FAILED, SKIPPED } verdict;

static verdict judge(const weir_test_case *one, bool in_time, int status, const caught *c) {
    char why[64] = "";
    if (!in_time) {
        snprintf(why, sizeof why, "took too long");
    } else if (WIFSIGNALED(status)) {
        snprintf(why, sizeof why, "killed by signal %d", WTERMSIG(status));
    } else if (WEXITSTATUS(status) == STATUS_SKIPPED) {
        printf("skip %s\n%s", one->name, c->length ? c->bytes : "");
        return SKIPPED;
    } else if (WEXITSTATUS(status) != 0) {
        snprintf(why, sizeof why, "status %d", WEXITSTATUS(status));
    }
    if (!why[0]) {
        printf("ok   %s\n", one->name);
        return PASSED;
    }
    printf("FAIL %s: %s\n%s", one->name, why, c->length ? c->bytes : "");
    return FAILED;
}

static verdict run_forked(const weir_test_case *one) {
    int ends[2], status = 0;
    caught c = {NULL, 0};
    int64_t limit_ms = (int64_t)environment_number("WEIR_TEST_TIMEOUT_MULTIPLIER", 1) *
                       (int64_t)environment_number("WEIR_TEST_LIMIT_S", CASE_LIMIT_S) * 1000;
    fflush(NULL);
    if (pipe2(ends, O_CLOEXEC) != 0) abort();
    pid_t child = fork();
    if (child < 0) abort();
    if (child == 0) run_child(one, ends[1]);
    close(ends[1]);
    bool in_time = wait_for_child(child, ends[0], limit_ms, &c, &status);
    kill(-child, SIGKILL);
    if (!in_time) waitpid(child, &status, 0);
    close(ends[0]);
    verdict v = judge(one, in_time, status, &c);
    free(c.bytes);
    return v;
}

int weir_test_main(const weir_test_case *cases, size_t count, int argc, char **argv) {
    size_t totals[3] = {0, 0, 0};
    bool list = argc > 1 && strcmp(argv[1], "--list") == 0;
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (size_t i = 0; i < count; i++) {
        if (list) {
            printf("%s\n", cases[i].name);
        } else if (argc > 1 && strcmp(argv[1], cases[i].name) == 0) {
            return run_here(&cases[i]);
        } else if (argc == 1) {
            totals[run_forked(&cases[i])]++;
        }
    }
    if (list) return 0;
    if (argc > 1) {
        fprintf(stderr, "no case is called '%s'; --list names them\n", argv[1]);
        return 64;
    }
    printf("%zu passed, %zu failed, %zu skipped\n", totals[PASSED], totals[FAILED], totals[SKIPPED]);
    if (totals[FAILED]) return 1;
    return totals[PASSED] == 0 && totals[SKIPPED] ? STATUS_SKIPPED : 0;
}

/* --- asserts ------------------------------------------------------------------------------------------------- */

void weir_test_assert_ok(weir_err err, const char *expression, const char *file, int line) {
    char sentence[WEIR_ERR_SENTENCE_MAX], place[256];
    if (!err) return;
    weir_err_sentence(err, sentence, sizeof sentence);
    weir_err_place(err, place, sizeof place);
    print_error("%s\n  gave %s: %s\n  born at %s\n", expression, weir_code_name(weir_err_code(err)), sentence, place);
    _fail(file, line);
}

void weir_test_assert_err(weir_err err, weir_code code, const char *text, const char *expression, const char *file,
                          int line) {
    char sentence[WEIR_ERR_SENTENCE_MAX];
    weir_err_sentence(err, sentence, sizeof sentence);
    if (weir_err_is(err, code) && (!text || strstr(sentence, text))) return;
    print_error("%s\n  gave %s: %s\n  wanted %s with \"%s\"\n", expression, weir_code_name(weir_err_code(err)),
                sentence, weir_code_name(code), text ? text : "");
    _fail(file, line);
}

void weir_test_every_allocation(weir_err (*attempt)(void *context), void *context) {
    for (uint64_t nth = 1;; nth++) {
        weir_alloc_stats before, after;
        weir_alloc_stats_get(&before);
        weir_alloc_fail_nth(nth);
        weir_err err = attempt(context);
        int happened = weir_alloc_failed();
        weir_alloc_fail_nth(0);
        weir_alloc_stats_get(&after);
        if (after.live_blocks != before.live_blocks) {
            print_error("allocation %llu failed: %lld blocks leaked\n", (unsigned long long)nth,
                        (long long)(after.live_blocks - before.live_blocks));
            _fail(__FILE__, __LINE__);
        }
        if (!happened) {
            assert_ok(err);
            return;
        }
        assert_err(err, WEIR_ENOMEM, NULL);
    }
}

/* --- programs ------------------------------------------------------------------------------------------------ */

const char *weir_test_program(void) {
    const char *program = getenv("WEIR_PROGRAM");
    if (!program) weir_test_skip("WEIR_PROGRAM does not name the weir program; run through ctest");
    return program;
}

static char *read_all(FILE *file) {
    caught c = {NULL, 0};
    size_t before;
    rewind(file);
    lseek(fileno(file), 0, SEEK_SET);
    do {
        before = c.length;
        caught_read(&c, fileno(file));
    } while (c.length != before);
    fclose(file);
    return c.bytes ? c.bytes : calloc(1, 1);
}

void weir_test_run(const char *const *argv, const char *const *environment_extra, weir_test_output *outputp) {
    FILE *out = tmpfile(), *err = tmpfile();
    int status = 0;
    if (!out || !err) abort();
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        for (; environment_extra && *environment_extra; environment_extra++)
            putenv((char *)(uintptr_t)*environment_extra);
        dup2(fileno(out), STDOUT_FILENO);
        dup2(fileno(err), STDERR_FILENO);
        int nothing = open("/dev/null", O_RDONLY);
        dup2(nothing, STDIN_FILENO);
        execvp(argv[0], (char *const *)(uintptr_t)argv);
        fprintf(stderr, "cannot run %s: %s\n", argv[0], strerror(errno));
        _exit(127);
    }
    if (child < 0 || waitpid(child, &status, 0) != child) abort();
    outputp->status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    outputp->out = read_all(out);
    outputp->err = read_all(err);
}

void weir_test_output_free(weir_test_output *output) {
    free(output->out);
    free(output->err);
    output->out = output->err = NULL;
}

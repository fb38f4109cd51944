/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir_test.c - the runner, and what cases ask of it.
 *
 * A case runs in a forked child and in a process group of its own, with its output caught in memory and printed only
 * when it fails. The child ends by exit, so that leak checks and coverage see every case. cmocka is told to abort
 * where an assertion fails (not to jump back): that works on every thread, leaves sanitizers their signal handlers,
 * and lets gdb stop on the line. What the parent must know when the child is dead (its folder, its seed, why it
 * skipped) lies in one shared page. The runner leans little on what it tests: it counts time by waiting and takes its
 * seed from the system.
 */
#include "weir_test.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/thread.h>

#define CASE_MS          10000
#define COMPUTES_PART    100  /* of its limit: a case that computes less meanwhile waits */
#define SAID_S           0.05 /* of processors' time: a case that took less is as good as free */
#define IDLE_PART        10   /* of all cores' time: a machine that has less left is busy */
#define BUSY_LIMITS      5
#define CORES_MAX        4
#define SKIP_STATUS      77
#define OUTPUT_BYTES_MAX (256 * 1024) /* of a failed case: its last ones are printed */
#define ALLOCATIONS_MAX  100000u
#define ALLOCATIONS_EACH 16u /* fails, whatever the step behind it is */
#define PATH_BUFFERS     8u
#define MULTIPLIER_MAX   1e6

typedef struct shared_page {
    char folder[PATH_MAX];
    char skip_reason[512];
    char note[64]; /* printed beside the verdict; set with the seed */
    uint64_t seed;
    bool forked; /* the case has a process of its own */
} shared_page;

static shared_page *page;
static const char *program = "?";

/* For failures of the runner itself, where there is no case to blame. */
_Noreturn static void die(const char *what) {
    fprintf(stderr, "%s: the test runner cannot go on: %s: %s\n", program, what, strerror(errno));
    exit(2);
}

_Noreturn static void refuse_environment(const char *name, const char *wanted) {
    fprintf(stderr, "%s: %s is '%s'; give %s\n", program, name, getenv(name), wanted);
    exit(2);
}

static bool has_environment(const char *name) {
    const char *text = getenv(name);
    return text && *text;
}

/* From 0.001, for tests of the runner itself, to MULTIPLIER_MAX. */
static double multiplier(const char *name) {
    if (!has_environment(name)) return 1;
    char *end;
    double value = strtod(getenv(name), &end);
    if (*end || !(value >= 0.001 && value <= MULTIPLIER_MAX))
        refuse_environment(name, "a number from 0.001 to a million");
    return value;
}

int64_t weir_test_limit_ms(void) {
    return (int64_t)(CASE_MS * multiplier("WEIR_TEST_TIMEOUT_MULTIPLIER"));
}

/* A file in memory; the program's output is not bounded by a pipe that nobody empties. */
static int memory_file(const char *name) {
    int fd = memfd_create(name, MFD_CLOEXEC);
    if (fd < 0) die("memfd_create");
    return fd;
}

static char *text_of(int fd) {
    off_t length = lseek(fd, 0, SEEK_END);
    char *text = length < 0 ? NULL : weir_malloc((size_t)length + 1);
    if (!text || pread(fd, text, (size_t)length, 0) != length) die("reading the output of a child");
    text[length] = 0;
    close(fd);
    return text;
}

/* --- what cases ask ----------------------------------------------------------------------------------------- */

static int remove_entry(const char *path, const struct stat *status, int kind, struct FTW *walk) {
    (void)status, (void)kind, (void)walk;
    return remove(path);
}

static void remove_folder(void) {
    if (page->folder[0] && nftw(page->folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS) != 0)
        fprintf(stderr, "%s: cannot remove the folder %s: %s\n", program, page->folder, strerror(errno));
    page->folder[0] = 0;
}

void weir_test_skip(const char *reason) {
    snprintf(page->skip_reason, sizeof page->skip_reason, "%s", reason);
    if (!page->forked) {
        printf("skip  %s\n0 passed, 0 failed, 1 skipped\n", reason);
        remove_folder();
    }
    fflush(NULL);
    _exit(SKIP_STATUS);
}

static uint64_t seed_of_environment(void) {
    char *end;
    errno = 0;
    unsigned long long seed = strtoull(getenv("WEIR_TEST_SEED"), &end, 0);
    if (errno || *end) refuse_environment("WEIR_TEST_SEED", "a whole number of 64 bits");
    return seed;
}

uint64_t weir_test_seed(void) {
    if (page->note[0]) return page->seed;
    if (has_environment("WEIR_TEST_SEED")) {
        page->seed = seed_of_environment();
    } else if (getrandom(&page->seed, sizeof page->seed, 0) != (ssize_t)sizeof page->seed) {
        die("getrandom");
    }
    snprintf(page->note, sizeof page->note, "WEIR_TEST_SEED=%" PRIu64, page->seed);
    printf("to repeat: %s %s\n", page->note, program);
    return page->seed;
}

uint64_t weir_test_rounds(uint64_t normal) {
    double rounds = (double)normal * multiplier("WEIR_TEST_ROUNDS_MULTIPLIER");
    return rounds < 1 ? 1 : (uint64_t)rounds;
}

static bool is_long_campaign(void) {
    return multiplier("WEIR_TEST_ROUNDS_MULTIPLIER") > 1;
}

uint64_t weir_test_part(uint64_t address, uint64_t thread) {
    const char *sanitizer = weir_test_sanitizer();
    if (!*sanitizer || is_long_campaign() || multiplier("WEIR_TEST_ROUNDS_MULTIPLIER") < 1) return 1;
    return strcmp(sanitizer, "address") == 0 ? address : thread;
}

void weir_test_skip_under(const char *sanitizer, const char *reason) {
    if (!is_long_campaign() && strcmp(weir_test_sanitizer(), sanitizer) == 0) weir_test_skip(reason);
}

const char *weir_test_sanitizer(void) {
#if defined(__SANITIZE_ADDRESS__)
    return "address";
#elif defined(__SANITIZE_THREAD__)
    return "thread";
#elif defined(__has_feature)
    return __has_feature(address_sanitizer) ? "address" : __has_feature(thread_sanitizer) ? "thread" : "";
#else
    return "";
#endif
}

/* Below TMPDIR; without one, tests of modules below what WEIR_TEST_MEMORY names, as a folder in memory. */
static const char *folder_parent(void) {
    const char *base = strrchr(program, '/'), *asked = getenv("TMPDIR"), *memory = getenv("WEIR_TEST_MEMORY");
    base = base ? base + 1 : program;
    if (asked && *asked) return asked;
    const bool of_a_module = strncmp(base, "unit.", 5) == 0 || strncmp(base, "prop.", 5) == 0;
    return of_a_module && memory && *memory ? memory : "/tmp";
}

const char *weir_test_folder(void) {
    if (!page->folder[0]) {
        char folder[PATH_MAX];
        snprintf(folder, sizeof folder, "%s/weir-test-XXXXXX", folder_parent());
        if (!mkdtemp(folder)) die(folder);
        memcpy(page->folder, folder, sizeof folder);
    }
    return page->folder;
}

const char *weir_test_path(const char *name) {
    static char paths[PATH_BUFFERS][PATH_MAX];
    static atomic_uint next;
    char *path = paths[atomic_fetch_add(&next, 1) % PATH_BUFFERS];
    int length = snprintf(path, PATH_MAX, "%s/%s", weir_test_folder(), name);
    if (length < 0 || length >= PATH_MAX) {
        errno = ENAMETOOLONG;
        die(name);
    }
    return path;
}

/* --- asserts -------------------------------------------------------------------------------------------------- */

static void print_err(weir_err err) {
    char sentence[WEIR_ERR_SENTENCE_MAX], place[PATH_MAX];
    weir_err_sentence(err, sentence, sizeof sentence);
    weir_err_place(err, place, sizeof place);
    fprintf(stderr, "  %s at %s: %s\n", weir_code_name(weir_err_code(err)), place, sentence);
}

void weir_test_assert_ok(weir_err err, const char *expression, const char *file, int line) {
    if (err == WEIR_OK) return;
    fprintf(stderr, "%s failed:\n", expression);
    print_err(err);
    _fail(file, line);
}

void weir_test_assert_err(weir_err err, weir_code code, const char *text, const char *expression, const char *file,
                          int line) {
    char sentence[WEIR_ERR_SENTENCE_MAX];
    weir_err_sentence(err, sentence, sizeof sentence);
    if (weir_err_is(err, code) && (!text || strstr(sentence, text))) return;
    fprintf(stderr, "%s should be %s with '%s', but is:\n", expression, weir_code_name(code), text ? text : "");
    print_err(err);
    _fail(file, line);
}

/* Runs act with stderr caught; returns its wait status. It may end in any way but by coming back. */
static int run_to_its_end(void (*act)(void *context), void *context, int err) {
    int wait_status;
    fflush(NULL);
    pid_t child = fork();
    if (child < 0) die("fork");
    if (child == 0) {
        const struct rlimit no_core = {0, 0};
        setrlimit(RLIMIT_CORE, &no_core);
        if (dup2(err, STDERR_FILENO) < 0) die("dup2");
        act(context);
        _exit(0);
    }
    while (waitpid(child, &wait_status, 0) < 0)
        if (errno != EINTR) die("waitpid");
    return wait_status;
}

void weir_test_assert_dies(void (*act)(void *context), void *context, const char *text, const char *expression,
                           const char *file, int line) {
    int fd = memory_file("err"), wait_status = run_to_its_end(act, context, fd);
    char *err = text_of(fd);
    bool dies = !WIFEXITED(wait_status) || WEXITSTATUS(wait_status) != 0;
    if (!dies || !strstr(err, text)) {
        fprintf(stderr, "%s %s and should die with '%s'; it wrote:\n%s\n", expression, dies ? "dies" : "goes on", text,
                err);
        _fail(file, line);
    }
    weir_free(err);
}

static uint64_t live_blocks(void) {
    weir_alloc_stats stats;
    weir_alloc_stats_get(&stats);
    return stats.live_blocks;
}

/* The allocation to fail after the nth; the steps begin at one that is drawn. */
static uint64_t next_allocation(uint64_t nth, uint64_t step) {
    if (nth < ALLOCATIONS_EACH) return nth + 1;
    if (nth > ALLOCATIONS_EACH || step == 1) return nth + step;
    return nth + 1 + weir_test_seed() % step;
}

void weir_test_some_allocations(weir_err (*attempt)(void *context), void *context, uint64_t step) {
    for (uint64_t nth = 1; nth <= ALLOCATIONS_MAX; nth = next_allocation(nth, step)) {
        uint64_t before = live_blocks();
        weir_alloc_fail_nth(nth);
        weir_err err = attempt(context);
        int failed = weir_alloc_failed();
        weir_alloc_fail_nth(0);
        uint64_t after = live_blocks();
        if (after != before || (failed ? !weir_err_is(err, WEIR_ENOMEM) : err != WEIR_OK)) {
            fprintf(stderr, "with allocation %" PRIu64 " %s: %" PRIu64 " blocks before, %" PRIu64 " after, and\n", nth,
                    failed ? "failing" : "not reached", before, after);
            print_err(err);
            fail();
        }
        if (!failed) return;
    }
    fail_msg("more than %u allocations; give the attempt less to do", ALLOCATIONS_MAX);
}

void weir_test_every_allocation(weir_err (*attempt)(void *context), void *context) {
    weir_test_some_allocations(attempt, context, weir_test_part(1, 16));
}

/* --- running a program -------------------------------------------------------------------------------------- */

const char *weir_test_program(void) {
    static char path[PATH_MAX];
    const char *given = getenv("WEIR_PROGRAM");
    if (given && *given) return given;
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - sizeof "/../bin/weir");
    if (length < 0) die("/proc/self/exe");
    path[length] = 0;
    strcpy(strrchr(path, '/'), "/../bin/weir"); /* BUILD/tests/this and BUILD/bin/weir */
    char resolved[PATH_MAX];
    if (!realpath(path, resolved)) fail_msg("there is no %s; build `weir`, or set WEIR_PROGRAM to its path", path);
    return strcpy(path, resolved);
}

static void connect_streams(int out, int err) {
    int in = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (in < 0 || dup2(in, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0 || dup2(err, STDERR_FILENO) < 0)
        die("connecting the streams of a child");
}

/* environ with the extra lines behind it, where putenv lets the last one win. Each mpirun keeps its files in the case's
 * folder: two that begin at one moment fail to make the one that they would share below /tmp. What main starts before
 * the cases, as a broker, belongs to none. */
static void add_environment(const char *const *extra) {
    if (page && page->folder[0] && setenv("OMPI_MCA_orte_tmpdir_base", page->folder, 0) != 0) die("setenv");
    for (; extra && *extra; extra++) {
        char *line = strdup(*extra);
        if (!line || putenv(line) != 0) die("putenv");
    }
}

static int status_of(int wait_status) {
    return WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 128 + WTERMSIG(wait_status);
}

void weir_test_run(const char *const *argv, const char *const *environment_extra, weir_test_output *outputp) {
    int out = memory_file("out"), err = memory_file("err"), wait_status;
    fflush(NULL);
    pid_t child = fork();
    if (child < 0) die("fork");
    if (child == 0) {
        connect_streams(out, err);
        unsetenv("CMOCKA_TEST_ABORT");
        add_environment(environment_extra);
        execvp(argv[0], (char *const *)(uintptr_t)argv);
        fprintf(stderr, "%s: %s\n", argv[0], strerror(errno));
        _exit(127);
    }
    while (waitpid(child, &wait_status, 0) < 0)
        if (errno != EINTR) die("waitpid");
    *outputp = (weir_test_output){.status = status_of(wait_status), .out = text_of(out), .err = text_of(err)};
}

void weir_test_output_free(weir_test_output *output) {
    weir_free(output->out);
    weir_free(output->err);
    *output = (weir_test_output){0};
}

/* --- the runner --------------------------------------------------------------------------------------------- */

typedef enum case_verdict { PASSED, FAILED, SKIPPED, VERDICTS } case_verdict;

static void run_in_process(const weir_test_case *test) {
    void *state = NULL;
    weir_thread_adopt("test", WEIR_ROLE_TEST);
    setenv("CMOCKA_TEST_ABORT", "1", 1);
    test->run(&state);
    fflush(NULL);
}

_Noreturn static void run_as_child(const weir_test_case *test, const sigset_t *mask, int output) {
    const struct rlimit no_core = {0, 0};
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* a runner that is interrupted leaves nobody behind */
    setrlimit(RLIMIT_CORE, &no_core);
    sigprocmask(SIG_SETMASK, mask, NULL);
    connect_streams(output, output);
    setvbuf(stdout, NULL, _IONBF, 0); /* an abort flushes nothing */
    run_in_process(test);
    exit(0);
}

/* What the processes of a group have computed, and those that they waited for. */
static int64_t computed_ms(pid_t group) {
    static const char from_group[] = "%*c %*d %d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %lld %lld";
    DIR *folder = opendir("/proc");
    int64_t ticks = 0;
    if (!folder) return 0;
    for (const struct dirent *entry; (entry = readdir(folder));) {
        char path[300], line[1024];
        if (!isdigit((unsigned char)entry->d_name[0])) continue;
        snprintf(path, sizeof path, "/proc/%s/stat", entry->d_name);
        FILE *file = fopen(path, "re");
        if (!file) continue; /* it has ended meanwhile */
        const char *rest = fgets(line, sizeof line, file) ? strrchr(line, ')') : NULL;
        unsigned long long user, system;
        long long waited_user, waited_system;
        int of;
        if (rest && sscanf(rest + 2, from_group, &of, &user, &system, &waited_user, &waited_system) == 5 && of == group)
            ticks += (int64_t)(user + system) + waited_user + waited_system;
        fclose(file);
    }
    closedir(folder);
    return ticks * 1000 / sysconf(_SC_CLK_TCK);
}

/* Of all cores since the machine was started: what they did, and what they had nothing to do. */
static void machine_ticks(uint64_t *allp, uint64_t *idlep) {
    uint64_t t[8] = {0};
    char line[512] = "", *end = line + strlen("cpu ");
    FILE *file = fopen("/proc/stat", "re");
    if (file && fgets(line, sizeof line, file)) {
        for (size_t i = 0; i < 7; i++)
            t[i] = strtoull(end, &end, 10);
    }
    if (file) fclose(file);
    *idlep = t[3] + t[4];
    *allp = t[0] + t[1] + t[2] + t[5] + t[6] + *idlep;
}

typedef struct patience {
    int64_t computed_ms;
    uint64_t all, idle; /* of the machine */
    unsigned times;     /* that the limit has passed */
} patience;

/* Whether a case whose limit has passed once more may go on. The limit is there to find what hangs. On a busy machine a
 * case gets its share of a core, no more: what computes goes on until it has computed for as long as the limit is, on
 * all cores. What waits may wait for a process that waits for a core, for some limits; where cores were idle, it
 * hangs. */
static bool still_works(pid_t child, patience *p) {
    const patience before = *p;
    int64_t limit = weir_test_limit_ms(), cores = sysconf(_SC_NPROCESSORS_ONLN);
    p->computed_ms = computed_ms(child);
    machine_ticks(&p->all, &p->idle);
    bool computes = p->computed_ms - before.computed_ms > limit / COMPUTES_PART;
    bool busy = (p->idle - before.idle) * IDLE_PART < p->all - before.all;
    return p->computed_ms < limit * (cores < CORES_MAX ? cores : CORES_MAX) &&
           (computes || (busy && ++p->times < BUSY_LIMITS));
}

/* False when the limit passes first; the child is then killed. Its group is killed in any case. */
static bool wait_for(pid_t child, const sigset_t *child_ends, int *wait_statusp) {
    const struct timespec limit = {.tv_sec = weir_test_limit_ms() / 1000,
                                   .tv_nsec = weir_test_limit_ms() % 1000 * 1000000};
    patience p = {0};
    bool in_time = true;
    pid_t ended;
    machine_ticks(&p.all, &p.idle);
    while ((ended = waitpid(child, wait_statusp, WNOHANG)) == 0 && in_time)
        in_time = sigtimedwait(child_ends, NULL, &limit) >= 0 || errno == EINTR || still_works(child, &p);
    if (ended < 0) die("waitpid");
    kill(-child, SIGKILL);
    if (ended == 0 && waitpid(child, wait_statusp, 0) != child) die("waitpid");
    return in_time;
}

static void print_output(int fd) {
    static char bytes[OUTPUT_BYTES_MAX];
    off_t length = lseek(fd, 0, SEEK_END), from = length > OUTPUT_BYTES_MAX ? length - OUTPUT_BYTES_MAX : 0;
    ssize_t count = pread(fd, bytes, sizeof bytes, from);
    if (from > 0) printf("(%lld bytes of output before this)\n", (long long)from);
    if (count > 0) {
        if (fwrite(bytes, 1, (size_t)count, stdout) != (size_t)count) die("printing the output of a case");
        if (bytes[count - 1] != '\n') printf("\n");
    }
}

/* Of processors, by all children so far. */
static double children_s(void) {
    struct rusage used;
    if (getrusage(RUSAGE_CHILDREN, &used) != 0) die("getrusage");
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

static case_verdict verdict_of(const char *name, bool in_time, int wait_status, double used_s) {
    if (!in_time) {
        printf("FAIL  %s: not done after %g s; for a slow machine raise WEIR_TEST_TIMEOUT_MULTIPLIER\n", name,
               (double)weir_test_limit_ms() / 1000);
    } else if (WIFSIGNALED(wait_status)) {
        int number = WTERMSIG(wait_status);
        printf("FAIL  %s: %s signal %d (%s)\n", name, number == SIGABRT ? "an assertion failed," : "killed by", number,
               strsignal(number));
    } else if (WEXITSTATUS(wait_status) == SKIP_STATUS) {
        printf("skip  %s: %s\n", name, page->skip_reason[0] ? page->skip_reason : "no reason given");
        return SKIPPED;
    } else if (WEXITSTATUS(wait_status) != 0) {
        printf("FAIL  %s: exit status %d\n", name, WEXITSTATUS(wait_status));
    } else {
        printf("ok    %s%s%s", name, page->note[0] ? "  " : "", page->note);
        if (used_s >= SAID_S) printf("  %.1f s", used_s);
        printf("\n");
        return PASSED;
    }
    return FAILED;
}

static case_verdict run_forked(const weir_test_case *test) {
    sigset_t child_ends, mask;
    int output = memory_file("output"), wait_status = 0;
    const double before_s = children_s();
    *page = (shared_page){.forked = true};
    sigemptyset(&child_ends);
    sigaddset(&child_ends, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child_ends, &mask);
    fflush(NULL);
    pid_t child = fork();
    if (child < 0) die("fork");
    if (child == 0) run_as_child(test, &mask, output);
    setpgid(child, child); /* whoever is first; the group must exist before it is killed */
    bool in_time = wait_for(child, &child_ends, &wait_status);
    case_verdict verdict = verdict_of(test->name, in_time, wait_status, children_s() - before_s);
    if (verdict == FAILED) {
        print_output(output);
        if (page->folder[0]) printf("its folder is kept: %s\n", page->folder);
    } else {
        remove_folder();
    }
    close(output);
    return verdict;
}

static int close_with(const size_t counts[VERDICTS]) {
    printf("%zu passed, %zu failed, %zu skipped\n", counts[PASSED], counts[FAILED], counts[SKIPPED]);
    if (counts[FAILED] > 0) return 1;
    return counts[SKIPPED] > 0 && counts[PASSED] == 0 ? SKIP_STATUS : 0;
}

static int run_all(const weir_test_case *cases, size_t count) {
    size_t counts[VERDICTS] = {0};
    for (size_t i = 0; i < count; i++)
        counts[run_forked(&cases[i])]++;
    return close_with(counts);
}

static int run_one(const weir_test_case *cases, size_t count, const char *name) {
    for (size_t i = 0; i < count; i++) {
        if (strcmp(cases[i].name, name) != 0) continue;
        run_in_process(&cases[i]);
        remove_folder();
        return close_with((const size_t[VERDICTS]){[PASSED] = 1});
    }
    fprintf(stderr, "%s: no case '%s'; --list names them\n", program, name);
    return 2;
}

int weir_test_main(const weir_test_case *cases, size_t count, int argc, char **argv) {
    program = argv[0];
    page = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) die("mmap");
    if (argc == 1) return run_all(cases, count);
    if (argc == 2 && strcmp(argv[1], "--list") != 0) return run_one(cases, count, argv[1]);
    if (argc != 2) {
        fprintf(stderr, "usage: %s [--list | CASE]\n", program);
        return 2;
    }
    for (size_t i = 0; i < count; i++)
        puts(cases[i].name);
    return 0;
}

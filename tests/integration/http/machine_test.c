/* SPDX-License-Identifier: Apache-2.0 */
/*
 * machine_test.c - the machine below a running server runs out of disk, or of memory, or its clock jumps.
 *
 * A real file system that is full, a real limit of memory, a wall clock that a preloaded library moves: no call is told
 * to fail. The server goes on or says why, comes back by itself, and all that it ever acknowledged is there.
 */
#include "serve_payments.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <weir/store/base/clock.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED true
#else
#define SANITIZED false
#endif

#define EVENTS_MAX 80000u
#define BATCH      50u
#define MANY       2000u /* in a request that takes much memory */

static bool acknowledged[EVENTS_MAX];

static const char *const quick[] = {"--set", "store.seal_interval=50ms", "--set", "eventlog.segment_bytes=1MiB",
                                    "--set", "store.memory=64MiB",       NULL};

static void start(serve_child *child, const char *data) {
    serve_start(child, data, quick);
    assert_true(child->port);
    serve_await(child, "/readyz", NULL, 200, NULL);
}

static int get(const serve_child *child, const char *path, char said[300]) {
    http_answer answer;
    serve_get(child, path, &answer);
    int status = answer.status;
    snprintf(said, 300, "%s", answer.body ? answer.body : "");
    answer_free(&answer);
    return status;
}

/* `count` events from `first` on, a millisecond apart; the first of all is of this moment by the test's own clock. */
static int post_some(const serve_child *child, unsigned first, unsigned count, char said[300]) {
    static char body[MANY * 400];
    static int64_t now_us;
    char time[WEIR_TIME_TEXT_MAX];
    size_t length = 0;
    assert_in_range(first + count, count, EVENTS_MAX);
    if (!now_us) now_us = weir_clock_wall_us(weir_clock_system());
    for (unsigned n = first; n < first + count; n++) {
        weir_time_format(now_us + n * INT64_C(1000), time);
        length += (size_t)snprintf(body + length, sizeof body - length,
                                   "{\"id\":\"p%u\",\"time\":\"%s\",\"account\":\"a%u\",\"merchant\":\"%0200u\","
                                   "\"amount\":1,\"currency\":\"EUR\",\"channel\":\"web\"}\n",
                                   n, time, n % 97, n % 1009);
    }
    int status = serve_post_lines(child, body, length, said, 300);
    for (unsigned n = first; status == 200 && n < first + count; n++)
        acknowledged[n] = true;
    return status;
}

static int post(const serve_child *child, unsigned first, char said[300]) {
    return post_some(child, first, BATCH, said);
}

static void post_well(const serve_child *child, unsigned first) {
    char said[300];
    int status = post(child, first, said);
    if (status != 200) fail_msg("events are answered %d: %s", status, said);
}

/* It comes back by itself, and says until then that it is not there. */
static void post_at_last(const serve_child *child, unsigned first, unsigned count) {
    char said[300];
    int status;
    while ((status = post_some(child, first, count, said)) != 200) {
        if (status != 503) fail_msg("events are answered %d: %s", status, said);
        usleep(50000);
    }
}

/* Each tenth of them, and the last. */
static void all_are_there(const serve_child *child, unsigned count) {
    char path[64], said[300];
    serve_await_applied(child);
    for (unsigned n = 0; n < count; n += n + 10 < count ? 10 : 1) {
        if (!acknowledged[n]) continue;
        snprintf(path, sizeof path, "/v1/vertices/payment/p%u", n);
        int status = get(child, path, said);
        if (status != 200) fail_msg("p%u was acknowledged and is answered %d: %s", n, status, said);
    }
}

static void all_are_there_after_a_restart(serve_child *child, const char *data, unsigned count) {
    all_are_there(child, count);
    assert_int_equal(serve_end(child, SIGTERM), 0);
    start(child, data);
    all_are_there(child, count);
    assert_int_equal(serve_end(child, SIGTERM), 0);
}

/* --- a full disk ------------------------------------------------------------------------------------------------ */

/* A file system of its own, as root or in a user namespace; without either the case is skipped. */
static void mount_disk(const char *folder) {
    char options[32];
    if (geteuid() != 0 || unshare(CLONE_NEWNS) != 0) {
        unsigned uid = geteuid();
        if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) weir_test_skip("no file system may be mounted here");
        FILE *map = fopen("/proc/self/uid_map", "w");
        assert_non_null(map);
        fprintf(map, "0 %u 1\n", uid);
        assert_int_equal(fclose(map), 0);
    }
    snprintf(options, sizeof options, "size=48m,mode=0700");
    bool mounted = mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 && mkdir(folder, 0700) == 0 &&
                   mount("disk", folder, "tmpfs", 0, options) == 0;
    if (!mounted) weir_test_skip("no file system may be mounted here");
}

/* Takes what is left, but for so much. */
static void fill_disk(const char *path, size_t left) {
    static const char zeros[64 << 10];
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    off_t length = 0;
    ssize_t written;
    assert_true(fd >= 0);
    while ((written = write(fd, zeros, sizeof zeros)) > 0)
        length += written;
    assert_int_equal(ftruncate(fd, length > (off_t)left ? length - (off_t)left : 0), 0);
    close(fd);
}

/* Log and store on it, as they are by default. Twice, so that what it does at the end is not done once only. */
static void a_full_disk_is_said_and_survived(void **state) {
    (void)state;
    serve_child child;
    char data[512], filler[512], said[300];
    unsigned next = 0;
    snprintf(data, sizeof data, "%s/data", weir_test_path("disk"));
    snprintf(filler, sizeof filler, "%s/filler", weir_test_path("disk"));
    mount_disk(weir_test_path("disk"));
    start(&child, data);
    post_well(&child, next);
    next += BATCH;
    for (int times = 0; times < 2; times++) {
        int failed = 0;
        fill_disk(filler, times ? 0 : 128 << 10);
        for (; !failed || get(&child, "/readyz", said) != 503 || !strstr(said, "o space left"); next += BATCH) {
            int status = post(&child, next, said);
            if (status != 200 && status != 503) fail_msg("a full disk is answered %d: %s", status, said);
            failed += status == 503;
        }
        assert_int_equal(get(&child, "/v1/vertices/payment/p0", said), 200);
        assert_int_equal(get(&child, "/livez", said), 200);
        assert_int_equal(unlink(filler), 0);
        for (unsigned first = 0; first < next; first += BATCH) /* what was refused, or not known */
            if (!acknowledged[first]) post_at_last(&child, first, BATCH);
        all_are_there(&child, next);
    }
    all_are_there_after_a_restart(&child, data, next);
    assert_int_equal(umount2(weir_test_path("disk"), MNT_DETACH), 0);
}

/* --- no memory -------------------------------------------------------------------------------------------------- */

/* What it may write to, which is what RLIMIT_DATA bounds: heaps that are only reserved are not in it. */
static rlim_t memory_of(const serve_child *child) {
    char path[64], line[128], *at = NULL;
    snprintf(path, sizeof path, "/proc/%d/status", (int)child->pid);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (!at && fgets(line, sizeof line, file))
        at = strncmp(line, "VmData:", 7) == 0 ? line + 7 : NULL;
    fclose(file);
    assert_non_null(at);
    return (rlim_t)strtoul(at, NULL, 10) << 10;
}

static void limit_memory(const serve_child *child, rlim_t bytes) {
    struct rlimit limit = {bytes, RLIM_INFINITY};
    assert_int_equal(prlimit(child->pid, RLIMIT_DATA, &limit, NULL), 0);
}

static unsigned failures;

/* An answer may be missing: a connection costs memory too. A wrong one may not. */
static void expect_one_of(int status, const char *said) {
    failures += status != 200;
    if (status != 200 && status != 503 && status != 500 && status != 0) fail_msg("%d: %s", status, said);
}

static void no_memory_is_said_and_survived(void **state) {
    (void)state;
    static const rlim_t more[] = {0, 2 << 20};
    serve_child child;
    char said[300];
    unsigned next = 0;
    if (SANITIZED) weir_test_skip("a sanitizer maps more than any limit");
    start(&child, weir_test_path("data"));
    for (; next < 40 * BATCH; next += BATCH)
        post_well(&child, next);
    for (size_t i = 0; i < sizeof more / sizeof more[0]; i++) {
        limit_memory(&child, memory_of(&child) + more[i]);
        for (int round = 0; round < 8; round++, next += MANY) {
            expect_one_of(post_some(&child, next, MANY, said), said);
            expect_one_of(get(&child, "/v1/neighbors/account/a1?limit=1000", said), said);
            expect_one_of(get(&child, "/v1/status", said), said);
        }
        limit_memory(&child, RLIM_INFINITY);
        serve_await(&child, "/readyz", NULL, 200, NULL);
        post_at_last(&child, next - MANY, MANY);
        all_are_there(&child, next);
    }
    if (!failures) fail_msg("the limit was never felt");
    all_are_there_after_a_restart(&child, weir_test_path("data"), next);
}

/* --- a clock that jumps ----------------------------------------------------------------------------------------- */

static volatile int64_t *jump_file(void) {
    int fd = open(weir_test_path("jump"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, sizeof(int64_t)), 0);
    void *page = mmap(NULL, sizeof(int64_t), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_ptr_not_equal(page, MAP_FAILED);
    close(fd);
    return page;
}

/* Ten years ahead, back, ten years back, and so on. Events bear the true time: those that the clock calls far ahead are
 * refused as such, which is what it is there for; nothing else may change, and nothing of it last. */
static void a_clock_that_jumps_leaves_no_trace(void **state) {
    (void)state;
    static const int64_t years = INT64_C(365) * 86400, jumps[] = {10, 0, -10, 0, 10, -10, 0};
    serve_child child;
    char said[300];
    unsigned next = 0;
    if (SANITIZED) weir_test_skip("a sanitizer has to be loaded first");
    volatile int64_t *ahead_s = jump_file();
    setenv("WEIR_TEST_JUMP", weir_test_path("jump"), 1);
    setenv("LD_PRELOAD", WEIR_TEST_CLOCK, 1);
    start(&child, weir_test_path("data"));
    unsetenv("LD_PRELOAD");
    post_well(&child, next);
    next += BATCH;
    for (size_t i = 0; i < sizeof jumps / sizeof jumps[0]; i++) {
        *ahead_s = jumps[i] * years;
        int status = post(&child, next, said);
        if (jumps[i] < 0) {
            if (status != 422 || !strstr(said, "in the future")) fail_msg("events are answered %d: %s", status, said);
        } else {
            if (status != 200) fail_msg("events are answered %d: %s", status, said);
            next += BATCH; /* those that were refused are sent again */
        }
        all_are_there(&child, next);
        assert_int_equal(get(&child, "/v1/neighbors/account/a1?limit=5", said), 200);
    }
    all_are_there_after_a_restart(&child, weir_test_path("data"), next);
}

WEIR_TESTS(WEIR_CASE(a_full_disk_is_said_and_survived), WEIR_CASE(no_memory_is_said_and_survived),
           WEIR_CASE(a_clock_that_jumps_leaves_no_trace))

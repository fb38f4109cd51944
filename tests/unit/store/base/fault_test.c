/* SPDX-License-Identifier: Apache-2.0 */
#include "weir_test.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir/store/base/fault.h>
#include <weir/store/base/thread.h>

static int check(weir_fault_op op, const char *path) {
    return weir_fault_check(op, path, NULL);
}

static void nothing_armed_nothing_happens(void **state) {
    (void)state;
    size_t bytes = 100;
    for (int op = 0; op <= WEIR_FAULT_CLOSE; op++)
        assert_int_equal(weir_fault_check((weir_fault_op)op, "/a", &bytes), 0);
    assert_int_equal(bytes, 100);
    weir_kill_point("anything");
}

static void nth_and_all_after_it(void **state) {
    (void)state;
    assert_ok(weir_fault_arm("write:3:ENOSPC"));
    for (unsigned i = 1; i <= 6; i++) {
        size_t bytes = 100;
        assert_int_equal(check(WEIR_FAULT_SYNC, "/a"), 0);
        assert_int_equal(weir_fault_check(WEIR_FAULT_WRITE, "/a", &bytes), i < 3 ? 0 : ENOSPC);
        assert_int_equal(bytes, i < 3 ? 100 : 0);
        assert_int_equal(weir_fault_seen(), i);
    }
    assert_ok(weir_fault_arm(NULL));
    assert_int_equal(check(WEIR_FAULT_WRITE, "/a"), 0);
    assert_int_equal(weir_fault_seen(), 6);
    assert_ok(weir_fault_arm("write:1:EIO")); /* counts from the start */
    assert_int_equal(weir_fault_seen(), 0);
}

static void once_is_once(void **state) {
    (void)state;
    assert_ok(weir_fault_arm("sync:2:EIO:once"));
    assert_int_equal(check(WEIR_FAULT_SYNC, "/a"), 0);
    assert_int_equal(check(WEIR_FAULT_SYNC, "/a"), EIO);
    assert_int_equal(check(WEIR_FAULT_SYNC, "/a"), 0);
}

static void any_counts_every_operation(void **state) {
    (void)state;
    assert_ok(weir_fault_arm("any:3:EIO:once"));
    assert_int_equal(check(WEIR_FAULT_OPEN, "/a"), 0);
    assert_int_equal(check(WEIR_FAULT_SYNC, "/a"), 0);
    assert_int_equal(check(WEIR_FAULT_RENAME, "/a"), EIO);
    assert_int_equal(check(WEIR_FAULT_CLOSE, "/a"), 0);
    assert_int_equal(weir_fault_seen(), 4);
}

static void path_part_selects(void **state) {
    (void)state;
    assert_ok(weir_fault_arm("open:2:EACCES:/log/"));
    assert_int_equal(check(WEIR_FAULT_OPEN, "/data/log/1"), 0);
    assert_int_equal(check(WEIR_FAULT_OPEN, "/data/other/1"), 0);
    assert_int_equal(check(WEIR_FAULT_OPEN, "/data/log/2"), EACCES);
    assert_int_equal(check(WEIR_FAULT_OPEN, "/data/other/1"), 0);
    assert_ok(weir_fault_arm("open:1:EACCES:once:a:b")); /* a part may have a colon */
    assert_int_equal(check(WEIR_FAULT_OPEN, "/a"), 0);
    assert_int_equal(check(WEIR_FAULT_OPEN, "/a:b"), EACCES);
    assert_int_equal(check(WEIR_FAULT_OPEN, "/a:b"), 0);
    assert_ok(weir_fault_arm("open:1:EACCES:oncelike")); /* and begin with the word */
    assert_int_equal(check(WEIR_FAULT_OPEN, "/oncelike"), EACCES);
}

static void short_stores_half_and_then_nothing(void **state) {
    (void)state;
    size_t bytes = 7;
    assert_ok(weir_fault_arm("write:1:short"));
    assert_int_equal(weir_fault_check(WEIR_FAULT_WRITE, "/a", &bytes), ENOSPC);
    assert_int_equal(bytes, 3);
    assert_int_equal(weir_fault_check(WEIR_FAULT_WRITE, "/a", &bytes), ENOSPC);
    assert_int_equal(bytes, 0);
}

static void part_goes_on_with_at_least_one_byte(void **state) {
    (void)state;
    size_t bytes = 7;
    assert_ok(weir_fault_arm("read:1:part"));
    assert_int_equal(weir_fault_check(WEIR_FAULT_READ, "/a", &bytes), 0);
    assert_int_equal(bytes, 4);
    bytes = 1;
    assert_int_equal(weir_fault_check(WEIR_FAULT_READ, "/a", &bytes), 0);
    assert_int_equal(bytes, 1);
}

static void wrong_specs_name_the_part(void **state) {
    (void)state;
    static const struct {
        const char *spec, *text;
    } wrong[] = {
        {"", "'' is not an operation"},
        {"writ:1:EIO", "did you mean 'write'?"},
        {"write", "'' is not a count"},
        {"write:0:EIO", "'0' is not a count"},
        {"write:-1:EIO", "'-1' is not a count"},
        {"write:1x:EIO", "'1x' is not a count"},
        {"write:99999999999999999999:EIO", "is not a count"},
        {"write:1", "'' is not a failure"},
        {"write:1:ENOSPACE", "did you mean 'ENOSPC'?"},
        {"sync:1:short", "'short' needs an operation that moves bytes"},
        {"anything-that-is-longer-than-any-word-of-a-spec:1:EIO", "is not an operation"},
    };
    char long_part[300] = "write:1:EIO:";
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_err(weir_fault_arm(wrong[i].spec), WEIR_EUSAGE, wrong[i].text);
        assert_int_equal(check(WEIR_FAULT_WRITE, "/a"), 0);
    }
    memset(long_part + 12, 'x', 255);
    assert_ok(weir_fault_arm(long_part));
    memset(long_part + 12, 'x', 256);
    assert_err(weir_fault_arm(long_part), WEIR_EUSAGE, "256 bytes; at most 255");
    assert_err(weir_fault_kill_arm("point"), WEIR_EUSAGE, "name:count");
    assert_err(weir_fault_kill_arm(":1"), WEIR_EUSAGE, "name:count");
    assert_err(weir_fault_kill_arm("point:"), WEIR_EUSAGE, "'' is not a count");
    assert_err(weir_fault_kill_arm("point:0"), WEIR_EUSAGE, "'0' is not a count");
}

static void environment_arms_and_names_its_variable(void **state) {
    (void)state;
    unsetenv("WEIR_FAULT");
    unsetenv("WEIR_KILL_AT");
    assert_ok(weir_fault_from_environment());
    setenv("WEIR_FAULT", "rename:1:EROFS", 1);
    assert_ok(weir_fault_from_environment());
    assert_int_equal(check(WEIR_FAULT_RENAME, "/a"), EROFS);
    setenv("WEIR_FAULT", "rename", 1);
    assert_err(weir_fault_from_environment(), WEIR_EUSAGE, "WEIR_FAULT: ");
    unsetenv("WEIR_FAULT");
    setenv("WEIR_KILL_AT", "x", 1);
    assert_err(weir_fault_from_environment(), WEIR_EUSAGE, "WEIR_KILL_AT: ");
}

/* How far a child comes that passes a point ten times. */
static int passes_before_death(const char *spec, int *signalp) {
    int ends[2], status;
    char byte;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (weir_fault_kill_arm(spec)) _exit(1);
        for (unsigned i = 0; i < 10; i++) {
            weir_kill_point("other.point");
            weir_kill_point("base.point");
            if (write(ends[1], "x", 1) != 1) _exit(1);
        }
        _exit(0);
    }
    close(ends[1]);
    assert_int_equal(waitpid(child, &status, 0), child);
    *signalp = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    int passes = 0;
    while (read(ends[0], &byte, 1) == 1)
        passes++;
    close(ends[0]);
    return passes;
}

static void kill_point_kills_at_its_count(void **state) {
    (void)state;
    int signal;
    assert_int_equal(passes_before_death("base.point:7", &signal), 6);
    assert_int_equal(signal, SIGKILL);
    assert_int_equal(passes_before_death("base.point:11", &signal), 10);
    assert_int_equal(signal, 0);
    assert_int_equal(passes_before_death("base:1", &signal), 10);
    assert_int_equal(signal, 0);
}

static void see(void *context, weir_fault_op op, const char *path) {
    char *text = context;
    strcat(strcat(strcat(strcat(text, weir_fault_op_name(op)), " "), path), ";");
}

static void watcher_sees_what_is_done(void **state) {
    (void)state;
    char text[100] = "";
    weir_fault_watch(see, text);
    check(WEIR_FAULT_OPEN, "/a");
    assert_ok(weir_fault_arm("sync:1:EIO"));
    assert_int_equal(check(WEIR_FAULT_SYNC, "/b"), EIO);
    weir_fault_watch(NULL, NULL);
    check(WEIR_FAULT_CLOSE, "/c");
    assert_string_equal(text, "open /a;sync /b;");
}

static atomic_uint failures;

static void check_many(void *context) {
    (void)context;
    for (unsigned i = 0; i < 1000; i++) {
        if (check(WEIR_FAULT_WRITE, "/a")) atomic_fetch_add(&failures, 1);
        weir_kill_point("never.reached");
    }
}

static void threads_share_one_count(void **state) {
    (void)state;
    weir_thread *threads[4];
    assert_ok(weir_fault_arm("write:1001:EIO"));
    assert_ok(weir_fault_kill_arm("never.reached:1000000"));
    for (unsigned i = 0; i < 4; i++)
        assert_ok(weir_thread_start("checker", WEIR_ROLE_TEST, check_many, NULL, &threads[i]));
    for (unsigned i = 0; i < 4; i++)
        weir_thread_join(threads[i]);
    assert_int_equal(weir_fault_seen(), 4000);
    assert_int_equal(atomic_load(&failures), 3000);
}

WEIR_TESTS(WEIR_CASE(nothing_armed_nothing_happens), WEIR_CASE(nth_and_all_after_it), WEIR_CASE(once_is_once),
           WEIR_CASE(any_counts_every_operation), WEIR_CASE(path_part_selects),
           WEIR_CASE(short_stores_half_and_then_nothing), WEIR_CASE(part_goes_on_with_at_least_one_byte),
           WEIR_CASE(wrong_specs_name_the_part), WEIR_CASE(environment_arms_and_names_its_variable),
           WEIR_CASE(kill_point_kills_at_its_count), WEIR_CASE(watcher_sees_what_is_done),
           WEIR_CASE(threads_share_one_count))

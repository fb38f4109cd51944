/* SPDX-License-Identifier: Apache-2.0 */
/* lock_test.c - EVENTLOG-L5: one process appends; others may read. */
#include <signal.h>
#include <sys/wait.h>

#include "eventlog_private.h"

#include "eventlog_fixture.h"

/* Opens the log in a process of its own, which says so through the pipe and then waits to be killed. */
static pid_t start_holder(const char *folder) {
    int pipe_fds[2];
    char ready;
    assert_int_equal(pipe(pipe_fds), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        weir_eventlog *log = fixture_open(folder, 1, 0);
        fixture_append(log, 0, 0, 3);
        assert_ok(weir_eventlog_sync(log));
        if (write(pipe_fds[1], "r", 1) != 1) _exit(1);
        for (;;)
            pause();
    }
    close(pipe_fds[1]);
    assert_int_equal(read(pipe_fds[0], &ready, 1), 1);
    close(pipe_fds[0]);
    return pid;
}

static void stop_holder(pid_t pid) {
    int status;
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
}

static void l5_second_process_refused_with_the_pid_of_the_first(void **state) {
    (void)state;
    char expected[64];
    weir_eventlog *log = NULL;
    pid_t pid = start_holder(weir_test_folder());
    snprintf(expected, sizeof expected, "process %ld", (long)pid);
    assert_err(fixture_try_open(weir_test_folder(), &log), WEIR_EBUSY, expected);
    assert_null(log);
    weir_eventlog *reader = fixture_open_read_only(weir_test_folder());
    assert_int_equal(fixture_check(reader, 0, 0, 0), 3);
    assert_ok(weir_eventlog_close(reader));
    stop_holder(pid); /* the lock dies with its process */
    assert_ok(fixture_try_open(weir_test_folder(), &log));
    assert_int_equal(fixture_check(log, 0, 0, 0), 3);
    assert_ok(weir_eventlog_close(log));
}

static void l5_second_handle_of_the_same_process_refused(void **state) {
    (void)state;
    weir_eventlog *log = fixture_open(weir_test_folder(), 1, 0), *second = NULL;
    assert_err(fixture_try_open(weir_test_folder(), &second), WEIR_EBUSY, "process");
    fixture_append(log, 0, 0, 3); /* and the first is as it was */
    assert_ok(weir_eventlog_close(log));
    assert_ok(fixture_try_open(weir_test_folder(), &second));
    assert_ok(weir_eventlog_close(second));
}

static void l5_the_lock_is_let_go_when_open_fails(void **state) {
    (void)state;
    weir_eventlog *log = fixture_open(weir_test_folder(), 1, 0);
    assert_ok(weir_eventlog_close(log));
    fixture_bytes marks = fixture_load(weir_test_path("t/durable"));
    fixture_store(weir_test_path("t/durable"), "", 0);
    for (unsigned i = 0; i < 3; i++)
        assert_err(fixture_try_open(weir_test_folder(), &log), WEIR_ECORRUPT, "durable");
    fixture_store(weir_test_path("t/durable"), marks.bytes, marks.length);
    assert_ok(fixture_try_open(weir_test_folder(), &log));
    assert_ok(weir_eventlog_close(log));
    weir_free(marks.bytes);
}

WEIR_TESTS(WEIR_CASE(l5_second_process_refused_with_the_pid_of_the_first),
           WEIR_CASE(l5_second_handle_of_the_same_process_refused), WEIR_CASE(l5_the_lock_is_let_go_when_open_fails))

/* SPDX-License-Identifier: Apache-2.0 */
/* A case is a process of its own, and so is what assert_dies and ends_by run: each installs for itself. */
#include "weir_test.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/clock.h>
#include <weir/store/base/signals.h>
#include <weir/store/base/thread.h>

#define FOREVER INT64_MAX

/* Sends and waits until the signal thread has taken it: two of a kind that wait together would be one. */
static void send_signal(int number) {
    sigset_t pending;
    assert_int_equal(kill(getpid(), number), 0);
    do {
        sched_yield();
        assert_int_equal(sigpending(&pending), 0);
    } while (sigismember(&pending, number));
}

static void nothing_is_asked_at_first(void **state) {
    (void)state;
    assert_false(weir_signals_stop_asked());
    assert_false(weir_signals_wait(0));
    assert_false(weir_signals_wait(-1));
    assert_false(weir_signals_wait(2000));
}

static void program_asks_itself(void **state) {
    (void)state;
    weir_signals_ask_stop();
    assert_true(weir_signals_stop_asked());
    assert_true(weir_signals_wait(0));
    weir_signals_ask_stop();
    assert_true(weir_signals_wait(FOREVER));
}

static void wait_for_stop(void *context) {
    (void)context;
    assert_true(weir_signals_wait(FOREVER));
}

static void one_request_wakes_all_who_wait(void **state) {
    (void)state;
    enum { THREADS = 4 };
    weir_thread *threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_ok(weir_thread_start("waiter", WEIR_ROLE_TEST, wait_for_stop, NULL, &threads[i]));
    weir_clock_sleep_until(weir_clock_system(),
                           weir_clock_mono_us(weir_clock_system()) + 20000); /* most wait by then */
    weir_signals_ask_stop();
    for (int i = 0; i < THREADS; i++)
        weir_thread_join(threads[i]);
}

static void hangups_are_remembered_once(void **state) {
    (void)state;
    weir_signals_take_hangups();
    assert_ok(weir_signals_install());
    assert_false(weir_signals_hung_up());
    for (int i = 0; i < 3; i++) {
        send_signal(SIGHUP);
        while (!weir_signals_hung_up())
            sched_yield();
        assert_false(weir_signals_hung_up());
    }
    assert_false(weir_signals_stop_asked());
    send_signal(SIGTERM); /* and it is the first that asks for a stop */
    assert_true(weir_signals_wait(FOREVER));
}

static void sigterm_asks_for_the_stop(void **state) {
    (void)state;
    assert_ok(weir_signals_install());
    assert_false(weir_signals_stop_asked());
    send_signal(SIGTERM);
    assert_true(weir_signals_wait(FOREVER));
    assert_true(weir_signals_stop_asked());
}

static void sigint_asks_for_the_stop(void **state) {
    (void)state;
    assert_ok(weir_signals_install());
    send_signal(SIGINT);
    assert_true(weir_signals_wait(FOREVER));
}

/* The signal by which a process ends that gets these two, one after the other, after it has asked itself or not. */
static int ends_by(bool asks_itself, int first, int second) {
    int status;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (asks_itself) weir_signals_ask_stop();
        assert_ok(weir_signals_install());
        send_signal(first);
        if (!weir_signals_wait(FOREVER)) _exit(1);
        kill(getpid(), second);
        for (;;)
            pause();
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void second_signal_ends_the_process(void **state) {
    (void)state;
    assert_int_equal(ends_by(false, SIGINT, SIGINT), SIGINT);
    assert_int_equal(ends_by(false, SIGINT, SIGTERM), SIGTERM);
    assert_int_equal(ends_by(false, SIGTERM, SIGTERM), SIGTERM);
}

/* A service that stops by itself and is told to stop a moment later shall still stop in order. */
static void own_request_is_not_the_first_signal(void **state) {
    (void)state;
    assert_int_equal(ends_by(true, SIGTERM, SIGINT), SIGINT);
}

static void peer_that_goes_away_is_an_error_code(void **state) {
    (void)state;
    int ends[2];
    assert_ok(weir_signals_install());
    assert_int_equal(pipe(ends), 0);
    close(ends[0]);
    assert_int_equal(write(ends[1], "x", 1), -1);
    assert_int_equal(errno, EPIPE);
    close(ends[1]);
}

static void install_fails_cleanly_and_can_be_repeated(void **state) {
    (void)state;
    weir_alloc_fail_nth(1);
    assert_err(weir_signals_install(), WEIR_ENOMEM, "signals");
    assert_ok(weir_signals_install());
    send_signal(SIGTERM);
    assert_true(weir_signals_wait(FOREVER));
}

static void install_twice(void *context) {
    (void)context;
    assert_ok(weir_signals_install());
    assert_ok(weir_signals_install());
}

static void installing_twice_dies(void **state) {
    (void)state;
    assert_dies(install_twice, NULL, "assertion failed");
}

WEIR_TESTS(WEIR_CASE(nothing_is_asked_at_first), WEIR_CASE(program_asks_itself),
           WEIR_CASE(one_request_wakes_all_who_wait), WEIR_CASE(hangups_are_remembered_once),
           WEIR_CASE(sigterm_asks_for_the_stop), WEIR_CASE(sigint_asks_for_the_stop),
           WEIR_CASE(second_signal_ends_the_process), WEIR_CASE(own_request_is_not_the_first_signal),
           WEIR_CASE(peer_that_goes_away_is_an_error_code), WEIR_CASE(install_fails_cleanly_and_can_be_repeated),
           WEIR_CASE(installing_twice_dies))

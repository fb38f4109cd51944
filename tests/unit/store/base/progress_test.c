/* SPDX-License-Identifier: Apache-2.0 */
#include "weir_test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/log.h>
#include <weir/store/base/progress.h>
#include <weir/store/base/thread.h>

#include "terminal.h"

#define WIPE "\r\033[K"

static weir_clock *manual;
static terminal screen;

static weir_progress *open_on(int fd, uint64_t total) {
    weir_progress *progress;
    if (!manual) assert_ok(weir_clock_manual_open(0, &manual));
    assert_ok(weir_progress_open(&(weir_progress_opts){.what = "payments", .total = total, .fd = fd, .clock = manual},
                                 &progress));
    return progress;
}

static weir_progress *open_on_terminal(unsigned short columns, uint64_t total) {
    setenv("TERM", "xterm", 1);
    screen = terminal_open(columns);
    return open_on(screen.fd, total);
}

static void pass_ms(int64_t ms) {
    weir_clock_manual_advance(manual, ms * 1000);
}

/* --- on a terminal ---------------------------------------------------------------------------------------------- */

static void nothing_is_drawn_in_the_first_two_seconds(void **state) {
    (void)state;
    weir_progress *progress = open_on_terminal(80, 100);
    for (unsigned i = 0; i < 20; i++) {
        weir_progress_add(progress, 1);
        assert_string_equal(terminal_read(&screen), "");
        pass_ms(i < 19 ? 100 : 99);
    }
    weir_progress_add(progress, 1);
    assert_string_equal(terminal_read(&screen), "");
    weir_progress_close(progress);
    assert_string_equal(terminal_read(&screen), "");
    weir_progress_close(NULL);
}

static void bar_word_for_word(void **state) {
    (void)state;
    weir_progress *progress = open_on_terminal(80, 100000);
    pass_ms(2000);
    weir_progress_add(progress, 20000);
    assert_string_equal(terminal_read(&screen),
                        WIPE "payments  20 % [===>            ] 20.0 k of 100 k, 10.0 k/s, 8 s left");
    pass_ms(8000);
    weir_progress_add(progress, 80000);
    assert_string_equal(terminal_read(&screen),
                        WIPE "payments 100 % [================] 100 k of 100 k, 10.0 k/s, 0 s left");
    weir_progress_close(progress);
    assert_string_equal(terminal_read(&screen),
                        WIPE "payments 100 % [================] 100 k of 100 k, 10.0 k/s, took 10 s\n");
}

static void unknown_total_has_no_bar(void **state) {
    (void)state;
    weir_progress *progress = open_on_terminal(80, 0);
    pass_ms(4000);
    weir_progress_add(progress, 4936);
    assert_string_equal(terminal_read(&screen), WIPE "payments 4.94 k, 1.23 k/s");
    pass_ms(3600000);
    weir_progress_close(progress);
    assert_string_equal(terminal_read(&screen), WIPE "payments 4.94 k, 1/s, took 1 h 00 min\n");
}

/* How often the line was wiped to be drawn anew. */
static unsigned drawings(const char *text) {
    unsigned count = 0;
    for (; (text = strstr(text, WIPE)); text += strlen(WIPE))
        count++;
    return count;
}

static void at_most_ten_drawings_a_second(void **state) {
    (void)state;
    weir_progress *progress = open_on_terminal(80, 10000);
    for (unsigned ms = 0; ms < 7000; ms++) {
        weir_progress_add(progress, 1);
        pass_ms(1);
    }
    assert_int_equal(drawings(terminal_read(&screen)), 50);
    weir_progress_close(progress);
}

/* A line that fills the last column would wrap, and a wrapped line cannot be wiped. */
static void every_width_leaves_the_last_column_free(void **state) {
    (void)state;
    for (unsigned short columns = 1; columns < 260; columns++) {
        weir_progress *progress = open_on_terminal(columns, 1000000);
        pass_ms(3000);
        weir_progress_add(progress, 123456);
        const char *line = terminal_read(&screen);
        assert_true(strncmp(line, WIPE, strlen(WIPE)) == 0);
        assert_true(strlen(line) - strlen(WIPE) < columns);
        assert_true(columns < 80 || strstr(line, "left"));
        weir_progress_close(progress);
        close(screen.fd);
        close(screen.other_fd);
    }
}

static void terminal_without_a_size_has_80_columns(void **state) {
    (void)state;
    weir_progress *progress = open_on_terminal(0, 100);
    pass_ms(3000);
    weir_progress_add(progress, 50);
    assert_string_equal(terminal_read(&screen), WIPE "payments  50 % [========>       ] 50 of 100, 17/s, 3 s left");
    weir_progress_close(progress);
}

static void more_than_all_is_all(void **state) {
    (void)state;
    weir_progress *progress = open_on_terminal(80, 10);
    pass_ms(3000);
    weir_progress_add(progress, 3000);
    assert_non_null(strstr(terminal_read(&screen), "payments 100 % [=="));
    weir_progress_close(progress);
}

/* It slows down to a tenth: the time left follows the new rate within half a minute, without a jump. */
static void time_left_follows_the_rate(void **state) {
    (void)state;
    weir_progress *progress = open_on_terminal(80, 1000000);
    for (unsigned second = 0; second < 60; second++) {
        weir_progress_add(progress, second < 30 ? 1000 : 100);
        const char *line = terminal_read(&screen), *comma = strstr(line, ", ");
        pass_ms(1000);
        if (second < 3) continue;
        double rate = strtod(comma + 2, NULL) * (strstr(comma, " k/s") ? 1000 : 1);
        if (second < 30) assert_in_range((unsigned)rate, 990, 1500);
        if (second == 31) assert_in_range((unsigned)rate, 700, 950);
        if (second == 59) assert_in_range((unsigned)rate, 100, 180);
    }
    weir_progress_close(progress);
}

static void log_line_wipes_the_bar_off(void **state) {
    (void)state;
    setenv("NO_COLOR", "1", 1);
    weir_progress *progress = open_on_terminal(80, 100);
    weir_log_setup(&(weir_log_opts){.fd = screen.fd, .clock = manual});
    WEIR_LOG(INFO, "a.b", "before");
    assert_string_equal(terminal_read(&screen), "00:00:00.000Z INFO  before [a.b]\n");
    pass_ms(3000);
    weir_progress_add(progress, 50);
    terminal_read(&screen);
    WEIR_LOG(INFO, "a.b", "meanwhile");
    assert_string_equal(terminal_read(&screen), WIPE "00:00:03.000Z INFO  meanwhile [a.b]\n");
    weir_progress_close(progress);
    terminal_read(&screen);
    WEIR_LOG(INFO, "a.b", "after");
    assert_string_equal(terminal_read(&screen), "00:00:03.000Z INFO  after [a.b]\n");
}

/* --- elsewhere -------------------------------------------------------------------------------------------------- */

static int pipe_ends[2];

static const char *logged(void) {
    static char text[10000];
    ssize_t got = read(pipe_ends[0], text, sizeof text - 1);
    text[got < 0 ? 0 : got] = 0;
    return text;
}

static void log_to_a_pipe(void) {
    assert_int_equal(pipe2(pipe_ends, O_NONBLOCK), 0);
    if (!manual) assert_ok(weir_clock_manual_open(0, &manual));
    weir_log_setup(&(weir_log_opts){.fd = pipe_ends[1], .repeat_us = 5000000, .clock = manual});
}

static void elsewhere_one_line_in_thirty_seconds(void **state) {
    (void)state;
    log_to_a_pipe();
    weir_progress *progress = open_on(pipe_ends[1], 1000);
    for (unsigned second = 0; second < 90; second++) {
        weir_progress_add(progress, 5);
        const char *text = logged();
        assert_int_equal(*text != 0, second > 0 && second % 30 == 0);
        if (second == 60) {
            assert_non_null(strstr(text, "\"event\":\"progress\",\"msg\":\"payments\""));
            assert_non_null(
                strstr(text, "\"done\":305,\"total\":1000,\"per_second\":5,\"left_s\":139,\"elapsed_s\":60}\n"));
            assert_null(strchr(text, '\r'));
        }
        pass_ms(1000);
    }
    weir_progress_close(progress);
    assert_non_null(strstr(logged(), "\"event\":\"progress.end\",\"msg\":\"payments\""));
}

static void elsewhere_a_short_job_says_nothing(void **state) {
    (void)state;
    log_to_a_pipe();
    weir_progress *progress = open_on(pipe_ends[1], 0);
    pass_ms(29999);
    weir_progress_add(progress, 5);
    weir_progress_close(progress);
    assert_string_equal(logged(), "");
}

static void terminal_that_cannot_wipe_is_no_terminal(void **state) {
    (void)state;
    screen = terminal_open(80);
    setenv("TERM", "dumb", 1);
    weir_progress *progress = open_on(screen.fd, 100);
    pass_ms(3000);
    weir_progress_add(progress, 50);
    weir_progress_close(progress);
    assert_string_equal(terminal_read(&screen), "");
}

/* --- threads, memory -------------------------------------------------------------------------------------------- */

static void add_many(void *context) {
    for (unsigned i = 0; i < 10000; i++) {
        weir_progress_add(context, 1);
        if (i % 100 == 0) pass_ms(10);
    }
}

static void threads_add_up(void **state) {
    (void)state;
    weir_thread *threads[4];
    weir_progress *progress = open_on_terminal(80, 40000);
    pass_ms(2000);
    for (unsigned i = 0; i < 4; i++)
        assert_ok(weir_thread_start("adder", WEIR_ROLE_TEST, add_many, progress, &threads[i]));
    for (unsigned i = 0; i < 4; i++)
        weir_thread_join(threads[i]);
    weir_progress_close(progress);
    const char *text = terminal_read(&screen);
    assert_true(drawings(text) <= 2 + 40);
    assert_non_null(strstr(text, "40.0 k of 40.0 k"));
}

static weir_err open_and_close(void *context) {
    weir_progress *progress;
    weir_err err = weir_progress_open(&(weir_progress_opts){.what = "x", .fd = *(int *)context}, &progress);
    weir_progress_close(progress);
    return err;
}

static void out_of_memory_opens_cleanly_and_draws_nothing(void **state) {
    (void)state;
    weir_progress *progress = open_on_terminal(80, 100);
    weir_test_every_allocation(open_and_close, &screen.fd);
    pass_ms(3000);
    weir_alloc_fail_nth(1);
    weir_progress_add(progress, 50);
    assert_true(weir_alloc_failed());
    assert_string_equal(terminal_read(&screen), "");
    pass_ms(100);
    weir_progress_add(progress, 1);
    assert_int_equal(drawings(terminal_read(&screen)), 1);
    weir_progress_close(progress);
}

WEIR_TESTS(WEIR_CASE(nothing_is_drawn_in_the_first_two_seconds), WEIR_CASE(bar_word_for_word),
           WEIR_CASE(unknown_total_has_no_bar), WEIR_CASE(at_most_ten_drawings_a_second),
           WEIR_CASE(every_width_leaves_the_last_column_free), WEIR_CASE(terminal_without_a_size_has_80_columns),
           WEIR_CASE(more_than_all_is_all), WEIR_CASE(time_left_follows_the_rate),
           WEIR_CASE(log_line_wipes_the_bar_off), WEIR_CASE(elsewhere_one_line_in_thirty_seconds),
           WEIR_CASE(elsewhere_a_short_job_says_nothing), WEIR_CASE(terminal_that_cannot_wipe_is_no_terminal),
           WEIR_CASE(threads_add_up), WEIR_CASE(out_of_memory_opens_cleanly_and_draws_nothing))

/* SPDX-License-Identifier: Apache-2.0 */
/* schedule_test.c - cron expressions with their sentences, and a scheduler under a clock that stands still. */
#include "weir_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/store/base/file.h>
#include <weir/store/base/metrics.h>
#include <weir/trainer/schedule/schedule.h>

static int64_t at(const char *text) {
    int64_t us = 0;
    assert_ok(weir_time_parse(text, strlen(text), &us));
    return us;
}

static void next_is(const char *expression, const char *after, const char *wanted) {
    weir_cron cron;
    char text[WEIR_TIME_TEXT_MAX];
    int64_t next;
    assert_ok(weir_cron_parse(expression, &cron));
    assert_ok(weir_cron_next(&cron, at(after), &next));
    weir_time_format(next, text);
    if (next != at(wanted)) fail_msg("%s after %s: %s, not %s", expression, after, text, wanted);
}

static void c1_known_times(void **state) {
    (void)state;
    next_is("15 2 * * *", "2026-11-21T02:14:59Z", "2026-11-21T02:15:00Z");
    next_is("15 2 * * *", "2026-11-21T02:15:00Z", "2026-11-22T02:15:00Z");
    next_is("0 0 29 feb *", "2096-03-01T00:00:00Z", "2104-02-29T00:00:00Z");
    next_is("0 12 13 * fri", "2026-11-21T00:00:00Z", "2026-11-27T12:00:00Z"); /* either day */
    next_is("0 12 13 * *", "2026-11-21T00:00:00Z", "2026-12-13T12:00:00Z");
    next_is("*/20 8-10 * * 7", "2026-11-21T00:00:00Z", "2026-11-22T08:00:00Z");
    next_is("59 23 31 12 *", "1969-12-30T00:00:00Z", "1969-12-31T23:59:00Z");
}

static void what_cannot_be_read_is_named(void **state) {
    static const struct {
        const char *text, *part;
    } cases[] = {
        {"", "has no minute"},
        {"1 2 3 4", "has no day of the week"},
        {"1 2 3 4 5 6", "more than five"},
        {"60 * * * *", "the minute '60'"},
        {"* 24 * * *", "the hour '24'"},
        {"* * 0 * *", "the day of the month '0'"},
        {"* * * foo *", "the month 'foo'"},
        {"* * * * 8", "the day of the week '8'"},
        {"5-1 * * * *", "the minute '5-1'"},
        {"*/0 * * * *", "the minute '*/0'"},
        {"1,,2 * * * *", "the minute '1,,2'"},
        {"1, * * * *", "the minute '1,'"},
        {"5/2 * * * *", "the minute '5/2'"},
        {"-1 * * * *", "the minute '-1'"},
        {"99999999999 * * * *", "the minute"},
        {"* * * * */sun", "the day of the week"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        weir_cron cron;
        assert_err(weir_cron_parse(cases[i].text, &cron), WEIR_EDATA, cases[i].part);
    }
}

static void there_is_no_30th_of_february(void **state) {
    weir_cron cron;
    int64_t next;
    (void)state;
    assert_ok(weir_cron_parse("0 0 30 2 *", &cron));
    assert_err(weir_cron_next(&cron, at("2026-11-21T00:00:00Z"), &next), WEIR_ENOTFOUND, "no day");
}

/* --- the scheduler ----------------------------------------------------------------------------------------------- */

typedef struct rig {
    weir_clock *clock;
    weir_scheduler *scheduler;
    weir_scheduler_stats stats;
} rig;

static void rig_open(rig *r, const char *const *arguments, const char *now) {
    assert_ok(weir_clock_manual_open(at(now), &r->clock));
    const weir_scheduler_opts opts = {
        .cron = "*/10 * * * *", .arguments = arguments, .file = weir_test_path("scheduled"), .clock = r->clock};
    assert_ok(weir_scheduler_open(&opts, &r->scheduler));
}

static void rig_close(rig *r) {
    weir_scheduler_close(r->scheduler);
    weir_clock_close(r->clock);
}

/* Looks until as many have been started and, if so wanted, ended. */
static void await(rig *r, uint64_t starts, bool ended) {
    do {
        usleep(10000);
        weir_scheduler_stats_get(r->scheduler, &r->stats);
    } while (r->stats.starts < starts || (ended && r->stats.running));
}

static void c3_what_was_missed_is_made_up_for_once(void **state) {
    static const char *const program[] = {"/bin/true", NULL};
    rig r = {NULL, NULL, {0}};
    (void)state;
    rig_open(&r, program, "2026-11-21T10:01:00Z");
    weir_scheduler_stats_get(r.scheduler, &r.stats);
    assert_int_equal(r.stats.starts, 0); /* a first start has missed nothing */
    assert_true(r.stats.next_us == at("2026-11-21T10:10:00Z"));
    rig_close(&r);
    rig_open(&r, program, "2026-11-23T17:05:00Z");
    await(&r, 1, true);
    assert_int_equal(r.stats.last_status, 0);
    assert_true(r.stats.next_us == at("2026-11-23T17:10:00Z"));
    usleep(600000); /* two looks */
    weir_scheduler_stats_get(r.scheduler, &r.stats);
    assert_int_equal(r.stats.starts, 1);
    rig_close(&r);
}

static void c2_one_at_a_time(void **state) {
    static const char *const program[] = {"/bin/sleep", "100", NULL};
    rig r = {NULL, NULL, {0}};
    (void)state;
    rig_open(&r, program, "2026-11-21T10:09:00Z");
    weir_clock_manual_advance(r.clock, 60 * WEIR_US_PER_S);
    await(&r, 1, false);
    weir_clock_manual_advance(r.clock, 600 * WEIR_US_PER_S);
    while (!r.stats.passed_over) {
        usleep(10000);
        weir_scheduler_stats_get(r.scheduler, &r.stats);
    }
    assert_int_equal(r.stats.starts, 1);
    assert_true(r.stats.running);
    rig_close(&r); /* ends the sleeper: else this would take its 100 s */
}

static void a_failure_is_counted(void **state) {
    static const char *const program[] = {"/bin/false", NULL}, *const none[] = {"/nonexistent", NULL};
    rig r = {NULL, NULL, {0}};
    (void)state;
    rig_open(&r, program, "2026-11-21T10:09:00Z");
    weir_clock_manual_advance(r.clock, 60 * WEIR_US_PER_S);
    await(&r, 1, true);
    assert_int_equal(r.stats.last_status, 1);
    assert_int_equal(r.stats.failures, 1);
    rig_close(&r);
    rig_open(&r, none, "2026-11-21T10:29:00Z");
    await(&r, 1, true);
    assert_int_equal(r.stats.failures, 1);
    rig_close(&r);
}

/* A schedule that fails night after night looked like one that runs. */
static void a_night_that_does_not_end_well_is_overdue_until_one_does(void **state) {
    static const char script[] = "test -e \"$GO\"";
    static const char *const program[] = {"/bin/sh", "-c", script, NULL};
    rig r = {NULL, NULL, {0}};
    (void)state;
    setenv("GO", weir_test_path("go"), 1);
    rig_open(&r, program, "2026-11-21T10:09:00Z");
    weir_scheduler_stats_get(r.scheduler, &r.stats);
    assert_int_equal(r.stats.due_us, 0);
    int64_t since_us = 0;
    for (uint64_t night = 1; night <= 3; night++) {
        since_us = weir_clock_mono_us(weir_clock_system());
        weir_clock_manual_advance(r.clock, (night == 1 ? 60 : 600) * WEIR_US_PER_S);
        await(&r, night, true);
        assert_true(r.stats.due_us == at("2026-11-21T10:10:00Z")); /* the first of them */
    }
    while (weir_metric_gauge(WEIR_METRIC_NIGHTLY_OVERDUE) != 1200)
        usleep(10000);
    printf("weir_nightly_overdue_seconds after %.2f s: schedule overdue\n",
           (double)(weir_clock_mono_us(weir_clock_system()) - since_us) / 1e6);
    FILE *go = fopen(weir_test_path("go"), "w");
    assert_non_null(go);
    fclose(go);
    weir_clock_manual_advance(r.clock, 600 * WEIR_US_PER_S);
    await(&r, 4, true);
    assert_int_equal(r.stats.due_us, 0);
    while (weir_metric_gauge(WEIR_METRIC_NIGHTLY_OVERDUE) != 0)
        usleep(10000);
    rig_close(&r);
}

static void await_next(rig *r, const char *wanted) {
    do {
        usleep(10000);
        weir_scheduler_stats_get(r->scheduler, &r->stats);
    } while (r->stats.next_us != at(wanted));
}

/* Ten years ahead and back again, more than once; and back to before it was opened. */
static void c4_a_clock_that_goes_back_takes_the_plan_back(void **state) {
    static const char *const program[] = {"/bin/true", NULL};
    rig r = {NULL, NULL, {0}};
    (void)state;
    rig_open(&r, program, "2026-11-21T10:01:00Z");
    for (uint64_t jump = 1; jump <= 3; jump++) {
        weir_clock_manual_set_wall(r.clock, at("2036-11-21T10:01:00Z"));
        await(&r, 2 * jump - 1, true); /* what seems to have been missed */
        await_next(&r, "2036-11-21T10:10:00Z");
        weir_clock_manual_set_wall(r.clock, at("2026-11-21T10:05:00Z"));
        await_next(&r, "2026-11-21T10:10:00Z");
        weir_clock_manual_set_wall(r.clock, at("2026-11-21T10:10:00Z"));
        await(&r, 2 * jump, true);
        weir_clock_manual_set_wall(r.clock, at("2026-11-21T10:01:00Z"));
        await_next(&r, "2026-11-21T10:10:00Z");
    }
    weir_clock_manual_set_wall(r.clock, at("2025-01-01T00:00:30Z"));
    await_next(&r, "2025-01-01T00:10:00Z");
    rig_close(&r);
    rig_open(&r, program, "2025-01-01T00:05:00Z"); /* nor does the file speak of the future */
    weir_scheduler_stats_get(r.scheduler, &r.stats);
    assert_true(r.stats.next_us == at("2025-01-01T00:10:00Z"));
    rig_close(&r);
}

/* A second less, as from a clock that is being set, is not the same time once more. */
static void c4_a_small_step_back_starts_nothing_twice(void **state) {
    static const char *const program[] = {"/bin/true", NULL};
    rig r = {NULL, NULL, {0}};
    (void)state;
    rig_open(&r, program, "2026-11-21T10:09:59Z");
    weir_clock_manual_set_wall(r.clock, at("2026-11-21T10:10:00Z"));
    await(&r, 1, true);
    for (int step = 0; step < 3; step++) {
        weir_clock_manual_set_wall(r.clock, at(step % 2 ? "2026-11-21T10:10:00Z" : "2026-11-21T10:09:59Z"));
        usleep(300000); /* a look */
    }
    weir_clock_manual_set_wall(r.clock, at("2026-11-21T10:20:00Z"));
    await(&r, 2, true);
    await_next(&r, "2026-11-21T10:30:00Z");
    assert_int_equal(r.stats.starts, 2);
    rig_close(&r);
}

WEIR_TESTS(WEIR_CASE(c4_a_clock_that_goes_back_takes_the_plan_back),
           WEIR_CASE(c4_a_small_step_back_starts_nothing_twice), WEIR_CASE(c1_known_times),
           WEIR_CASE(what_cannot_be_read_is_named), WEIR_CASE(there_is_no_30th_of_february),
           WEIR_CASE(c3_what_was_missed_is_made_up_for_once), WEIR_CASE(c2_one_at_a_time),
           WEIR_CASE(a_failure_is_counted), WEIR_CASE(a_night_that_does_not_end_well_is_overdue_until_one_does))

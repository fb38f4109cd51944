/* SPDX-License-Identifier: Apache-2.0 */
#include "weir_test.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <weir/store/base/clock.h>
#include <weir/store/base/rng.h>
#include <weir/store/base/thread.h>

#define FIRST_US INT64_C(-62167219200000000) /* 0000-01-01T00:00:00.000000Z */
#define LAST_US  INT64_C(253402300799999999) /* 9999-12-31T23:59:59.999999Z */

/* --- clocks ------------------------------------------------------------------------------------------------- */

static void manual_clock_stands_still_until_moved(void **state) {
    (void)state;
    weir_clock *clock;
    assert_ok(weir_clock_manual_open(1000, &clock));
    assert_int_equal(weir_clock_mono_us(clock), 0);
    assert_int_equal(weir_clock_wall_us(clock), 1000);
    weir_clock_manual_advance(clock, 0);
    weir_clock_manual_advance(clock, 7);
    assert_int_equal(weir_clock_mono_us(clock), 7);
    assert_int_equal(weir_clock_mono_ns(clock), 7000);
    assert_int_equal(weir_clock_wall_us(clock), 1007);
    weir_clock_manual_set_wall(clock, -5);
    assert_int_equal(weir_clock_mono_us(clock), 7);
    assert_int_equal(weir_clock_wall_us(clock), -5);
    weir_clock_sleep_until(clock, 7);
    weir_clock_sleep_until(clock, INT64_MIN);
    weir_clock_close(clock);
}

static weir_err open_and_close(void *context) {
    (void)context;
    weir_clock *clock;
    weir_err err = weir_clock_manual_open(0, &clock);
    weir_clock_close(clock);
    return err;
}

static void manual_open_fails_cleanly_at_every_allocation(void **state) {
    (void)state;
    weir_test_every_allocation(open_and_close, NULL);
}

static void turn_back(void *clock) {
    weir_clock_manual_advance(clock, -1);
}

static void set_system_clock(void *context) {
    (void)context;
    weir_clock_manual_set_wall(weir_clock_system(), 0);
}

static void moving_what_cannot_move_dies(void **state) {
    (void)state;
    weir_clock *clock;
    assert_ok(weir_clock_manual_open(0, &clock));
    assert_dies(turn_back, clock, "us >= 0");
    assert_dies(set_system_clock, NULL, "manual");
    weir_clock_close(clock);
    weir_clock_close(weir_clock_system());
    weir_clock_close(NULL);
}

typedef struct sleeper {
    weir_clock *clock;
    int64_t until_us;
    atomic_bool awake;
} sleeper;

static void sleep_and_say(void *context) {
    sleeper *self = context;
    weir_clock_sleep_until(self->clock, self->until_us);
    assert_true(weir_clock_mono_us(self->clock) >= self->until_us);
    atomic_store(&self->awake, true);
}

static void sleepers_of_a_manual_clock_wake_in_time(void **state) {
    (void)state;
    enum { SLEEPERS = 3 };
    weir_clock *clock;
    assert_ok(weir_clock_manual_open(0, &clock));
    sleeper sleepers[SLEEPERS];
    weir_thread *threads[SLEEPERS];
    for (int i = 0; i < SLEEPERS; i++) {
        sleepers[i] = (sleeper){.clock = clock, .until_us = 100 * (i + 1)};
        assert_ok(weir_thread_start("sleeper", WEIR_ROLE_TEST, sleep_and_say, &sleepers[i], &threads[i]));
    }
    for (int i = 0; i < SLEEPERS; i++) {
        weir_clock_manual_advance(clock, 99);
        assert_false(atomic_load(&sleepers[i].awake));
        weir_clock_manual_advance(clock, 1);
        weir_thread_join(threads[i]);
        assert_true(atomic_load(&sleepers[i].awake));
    }
    weir_clock_close(clock);
}

static void system_clock_goes_forward(void **state) {
    (void)state;
    weir_clock *clock = weir_clock_system();
    int64_t last_ns = weir_clock_mono_ns(clock);
    for (int i = 0; i < 10000; i++) {
        int64_t now_ns = weir_clock_mono_ns(clock);
        assert_true(now_ns >= last_ns);
        last_ns = now_ns;
    }
    int64_t until_us = weir_clock_mono_us(clock) + 2000;
    weir_clock_sleep_until(clock, until_us);
    assert_true(weir_clock_mono_us(clock) >= until_us);
    weir_clock_sleep_until(clock, -1);
    assert_true(weir_clock_wall_us(clock) > INT64_C(1600000000) * WEIR_US_PER_S);
}

/* --- times -------------------------------------------------------------------------------------------------- */

static void known_times_are_formatted(void **state) {
    (void)state;
    static const struct {
        int64_t wall_us;
        const char *text;
    } rows[] = {
        {0, "1970-01-01T00:00:00.000000Z"},
        {-1, "1969-12-31T23:59:59.999999Z"},
        {INT64_C(951782399999999), "2000-02-28T23:59:59.999999Z"},
        {INT64_C(951782400000000), "2000-02-29T00:00:00.000000Z"},
        {INT64_C(-2203891200000000), "1900-03-01T00:00:00.000000Z"},
        {INT64_C(-2203891200000001), "1900-02-28T23:59:59.999999Z"},
        {INT64_C(1795255445000123), "2026-11-21T10:04:05.000123Z"},
        {FIRST_US, "0000-01-01T00:00:00.000000Z"},
        {FIRST_US - 1, "0000-01-01T00:00:00.000000Z"},
        {INT64_MIN, "0000-01-01T00:00:00.000000Z"},
        {LAST_US, "9999-12-31T23:59:59.999999Z"},
        {LAST_US + 1, "9999-12-31T23:59:59.999999Z"},
        {INT64_MAX, "9999-12-31T23:59:59.999999Z"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[WEIR_TIME_TEXT_MAX];
        assert_int_equal(weir_time_format(rows[i].wall_us, text), strlen(rows[i].text));
        assert_string_equal(text, rows[i].text);
    }
}

static int64_t parse(const char *text) {
    int64_t wall_us;
    assert_ok(weir_time_parse(text, strlen(text), &wall_us));
    return wall_us;
}

/* The C library's calendar is the model; it knows nothing of microseconds, which are counted apart. */
static void times_equal_the_system_calendar_and_come_back(void **state) {
    (void)state;
    weir_rng rng = weir_rng_stream(weir_test_seed(), 0, 0);
    for (uint64_t round = 0; round < weir_test_rounds(200000); round++) {
        int64_t wall_us = FIRST_US + (int64_t)weir_rng_below(&rng, LAST_US - FIRST_US + 1);
        int64_t us = (wall_us % WEIR_US_PER_S + WEIR_US_PER_S) % WEIR_US_PER_S;
        time_t seconds = (time_t)((wall_us - us) / WEIR_US_PER_S);
        struct tm date;
        assert_non_null(gmtime_r(&seconds, &date));
        char text[WEIR_TIME_TEXT_MAX], expected[128];
        snprintf(expected, sizeof expected, "%04d-%02d-%02dT%02d:%02d:%02d.%06dZ", date.tm_year + 1900, date.tm_mon + 1,
                 date.tm_mday, date.tm_hour, date.tm_min, date.tm_sec, (int)us);
        weir_time_format(wall_us, text);
        assert_string_equal(text, expected);
        assert_true(parse(text) == wall_us);
    }
}

/* Every day of 800 years, counted by hand. */
static void every_day_follows_the_one_before(void **state) {
    (void)state;
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int64_t wall_us = parse("1600-01-01");
    for (int year = 1600; year < 2400; year++) {
        bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
        for (int month = 1; month <= 12; month++) {
            for (int day = 1; day <= days[month - 1] + (leap && month == 2); day++) {
                char text[64];
                snprintf(text, sizeof text, "%04d-%02d-%02d", year, month, day);
                assert_true(parse(text) == wall_us);
                wall_us += INT64_C(86400) * WEIR_US_PER_S;
            }
        }
    }
}

static void all_forms_of_a_time_are_read(void **state) {
    (void)state;
    static const struct {
        const char *text, *same;
    } rows[] = {
        {"2026-11-21", "2026-11-21T00:00:00.000000Z"},
        {"2026-11-21T10:00:00Z", "2026-11-21T10:00:00.000000Z"},
        {"2026-11-21t10:00:00z", "2026-11-21T10:00:00.000000Z"},
        {"2026-11-21 10:00:00Z", "2026-11-21T10:00:00.000000Z"},
        {"2026-11-21T10:00:00.1Z", "2026-11-21T10:00:00.100000Z"},
        {"2026-11-21T10:00:00.123456Z", "2026-11-21T10:00:00.123456Z"},
        {"2026-11-21T10:00:00.123456789Z", "2026-11-21T10:00:00.123456Z"},
        {"2026-11-21T10:00:00+00:00", "2026-11-21T10:00:00.000000Z"},
        {"2026-11-21T10:00:00+01:30", "2026-11-21T08:30:00.000000Z"},
        {"2026-11-21T10:00:00.5-23:59", "2026-11-22T09:59:00.500000Z"},
        {"2024-02-29T23:59:59Z", "2024-02-29T23:59:59.000000Z"},
        {"0000-01-01", "0000-01-01T00:00:00.000000Z"},
        {"9999-12-31T23:59:59.999999999Z", "9999-12-31T23:59:59.999999Z"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[WEIR_TIME_TEXT_MAX];
        weir_time_format(parse(rows[i].text), text);
        assert_string_equal(text, rows[i].same);
    }
    assert_true(parse("0000-01-01T00:00:00+01:00") == FIRST_US - 3600 * WEIR_US_PER_S);
}

static void text_that_is_no_time_is_refused_where_it_errs(void **state) {
    (void)state;
    static const struct {
        const char *text;
        size_t character;
    } rows[] = {
        {"", 1},
        {"x", 1},
        {"-026-11-21", 1},
        {"202", 4},
        {"2026", 5},
        {"2026/11/21", 5},
        {"2026-1-21", 7},
        {"2026-00-21", 6},
        {"2026-13-21", 6},
        {"2026-11-00", 9},
        {"2026-11-31", 9},
        {"2023-02-29", 9},
        {"1900-02-29", 9},
        {"2026-11-21x", 11},
        {"2026-11-21T", 12},
        {"2026-11-21T24:00:00Z", 12},
        {"2026-11-21T10:60:00Z", 15},
        {"2026-11-21T10:00:60Z", 18},
        {"2026-11-21T10:00Z", 17},
        {"2026-11-21T10:00:00", 20},
        {"2026-11-21T10:00:00.Z", 21},
        {"2026-11-21T10:00:00.1234567890Z", 31},
        {"2026-11-21T10:00:00+1:00", 22},
        {"2026-11-21T10:00:00+0100", 23},
        {"2026-11-21T10:00:00+24:00", 21},
        {"2026-11-21T10:00:00+01:60", 24},
        {"2026-11-21T10:00:00ZZ", 21},
        {"2026-11-21T10:00:00Z ", 21},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char expected[64];
        int64_t wall_us = 1;
        snprintf(expected, sizeof expected, "at character %zu; write it as 2026-11-21T10:00:00Z", rows[i].character);
        assert_err(weir_time_parse(rows[i].text, strlen(rows[i].text), &wall_us), WEIR_EDATA, expected);
        assert_int_equal(wall_us, 0);
    }
    int64_t wall_us;
    assert_err(weir_time_parse("2026-11-21\0", 11, &wall_us), WEIR_EDATA, "character 11");
    assert_ok(weir_time_parse("2026-11-21trailing", 10, &wall_us));
}

/* One character of a valid time is replaced by every other: what is still read must be formatted as it was written. */
static void no_wrong_character_is_overlooked(void **state) {
    (void)state;
    static const char valid[] = "2026-11-21T10:04:05.678901Z";
    for (size_t at = 0; at < sizeof valid - 1; at++) {
        for (int c = 0; c < 256; c++) {
            char text[sizeof valid], again[WEIR_TIME_TEXT_MAX];
            int64_t wall_us;
            memcpy(text, valid, sizeof valid);
            text[at] = (char)c;
            if (weir_time_parse(text, sizeof valid - 1, &wall_us) != WEIR_OK) continue;
            if (at == 10) text[at] = 'T';
            if (at == sizeof valid - 2) text[at] = 'Z';
            weir_time_format(wall_us, again);
            assert_string_equal(again, text);
        }
    }
}

/* --- durations ---------------------------------------------------------------------------------------------- */

static void durations_are_read(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int64_t us;
    } rows[] = {
        {"0s", 0},
        {"10us", 10},
        {"250ms", 250000},
        {"90s", 90000000},
        {"15m", 900000000},
        {"36h", 129600000000},
        {"7d", 604800000000},
        {"007d", 604800000000},
        {"9223372036854775807us", INT64_MAX},
        {"106751991d", INT64_C(106751991) * 86400 * WEIR_US_PER_S},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int64_t us;
        assert_ok(weir_duration_parse(rows[i].text, &us));
        assert_true(us == rows[i].us);
    }
}

static void text_that_is_no_duration_is_refused(void **state) {
    (void)state;
    static const char *const malformed[] = {"",     "s",    "90",   "-1s", "+1s", "1.5h",
                                            "90 s", " 90s", "90s ", "1w",  "1S",  "1h30m"};
    static const char *const too_long[] = {"9223372036854775808us", "106751992d", "99999999999999999999999999s"};
    int64_t us;
    for (size_t i = 0; i < sizeof malformed / sizeof malformed[0]; i++) {
        us = 1;
        assert_err(weir_duration_parse(malformed[i], &us), WEIR_EDATA, "write it as 90s");
        assert_int_equal(us, 0);
    }
    for (size_t i = 0; i < sizeof too_long / sizeof too_long[0]; i++) {
        us = 1;
        assert_err(weir_duration_parse(too_long[i], &us), WEIR_EDATA, "the longest is 106751991d");
        assert_int_equal(us, 0);
    }
}

WEIR_TESTS(WEIR_CASE(manual_clock_stands_still_until_moved), WEIR_CASE(manual_open_fails_cleanly_at_every_allocation),
           WEIR_CASE(moving_what_cannot_move_dies), WEIR_CASE(sleepers_of_a_manual_clock_wake_in_time),
           WEIR_CASE(system_clock_goes_forward), WEIR_CASE(known_times_are_formatted),
           WEIR_CASE(times_equal_the_system_calendar_and_come_back), WEIR_CASE(every_day_follows_the_one_before),
           WEIR_CASE(all_forms_of_a_time_are_read), WEIR_CASE(text_that_is_no_time_is_refused_where_it_errs),
           WEIR_CASE(no_wrong_character_is_overlooked), WEIR_CASE(durations_are_read),
           WEIR_CASE(text_that_is_no_duration_is_refused))

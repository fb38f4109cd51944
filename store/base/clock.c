/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock.c - clocks, and times as text.
 *
 * A manual clock is read without a lock, so that code may stamp while it holds a mutex of any rank; its mutex is only
 * for those who sleep. Text is converted in integers alone: a time that was parsed is formatted as it came.
 */
#include <weir/store/base/clock.h>

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/thread.h>

struct weir_clock {
    bool manual; /* the rest is a manual clock's */
    _Atomic int64_t mono_us;
    _Atomic int64_t wall_us;
    weir_mutex mutex; /* held to move mono_us, so that no sleeper misses it */
    weir_cond moved;
};

/* --- reading and waiting ------------------------------------------------------------------------------------ */

weir_clock *weir_clock_system(void) {
    static weir_clock system_clock;
    return &system_clock;
}

static int64_t clock_read_ns(clockid_t id) {
    struct timespec now;
    WEIR_ASSERT(clock_gettime(id, &now) == 0);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

int64_t weir_clock_mono_us(weir_clock *clock) {
    return clock->manual ? atomic_load(&clock->mono_us) : clock_read_ns(CLOCK_MONOTONIC) / 1000;
}

int64_t weir_clock_mono_ns(weir_clock *clock) {
    return clock->manual ? atomic_load(&clock->mono_us) * 1000 : clock_read_ns(CLOCK_MONOTONIC);
}

int64_t weir_clock_wall_us(weir_clock *clock) {
    return clock->manual ? atomic_load(&clock->wall_us) : clock_read_ns(CLOCK_REALTIME) / 1000;
}

void weir_clock_sleep_until(weir_clock *clock, int64_t mono_us) {
    if (mono_us <= weir_clock_mono_us(clock)) return;
    if (!clock->manual) {
        struct timespec until = {.tv_sec = mono_us / WEIR_US_PER_S, .tv_nsec = mono_us % WEIR_US_PER_S * 1000};
        int result;
        do {
            result = clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
        } while (result == EINTR);
        WEIR_ASSERT(result == 0);
        return;
    }
    weir_mutex_lock(&clock->mutex);
    while (atomic_load(&clock->mono_us) < mono_us)
        weir_cond_wait(&clock->moved, &clock->mutex);
    weir_mutex_unlock(&clock->mutex);
}

/* --- a clock for tests -------------------------------------------------------------------------------------- */

weir_err weir_clock_manual_open(int64_t wall_us, weir_clock **clockp) {
    *clockp = NULL;
    weir_clock *clock = weir_calloc(1, sizeof *clock);
    if (!clock) return WEIR_NOMEM("for a manual clock");
    clock->manual = true;
    atomic_init(&clock->wall_us, wall_us);
    weir_mutex_init(&clock->mutex, WEIR_RANK_CLOCK, "clock");
    weir_cond_init(&clock->moved);
    *clockp = clock;
    return WEIR_OK;
}

void weir_clock_manual_advance(weir_clock *clock, int64_t us) {
    WEIR_ASSERT(clock->manual && us >= 0);
    weir_mutex_lock(&clock->mutex);
    atomic_fetch_add(&clock->mono_us, us);
    atomic_fetch_add(&clock->wall_us, us);
    weir_cond_broadcast(&clock->moved);
    weir_mutex_unlock(&clock->mutex);
}

void weir_clock_manual_set_wall(weir_clock *clock, int64_t wall_us) {
    WEIR_ASSERT(clock->manual);
    atomic_store(&clock->wall_us, wall_us);
}

void weir_clock_close(weir_clock *clock) {
    if (!clock || !clock->manual) return;
    weir_cond_destroy(&clock->moved);
    weir_mutex_destroy(&clock->mutex);
    weir_free(clock);
}

/* --- dates -------------------------------------------------------------------------------------------------- */

#define US_PER_MINUTE  (60 * WEIR_US_PER_S)
#define US_PER_HOUR    (60 * US_PER_MINUTE)
#define US_PER_DAY     (24 * US_PER_HOUR)
#define YEAR_MAX       9999
#define DAYS_PER_400_Y 146097
#define DAYS_TO_1970   719528 /* from the first day of year 0 */

/* Days before the first of January of year, since that of year 0, which was a leap year. */
static int64_t days_before_year(int64_t year) {
    return 365 * year + (year + 3) / 4 - (year + 99) / 100 + (year + 399) / 400;
}

/* Month 13 stands for the end of the year. */
static int64_t days_before_month(int64_t year, int64_t month) {
    static const int16_t before[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365};
    WEIR_ASSERT(month >= 1 && month <= 13);
    return before[month - 1] + (month > 2 && days_before_year(year + 1) - days_before_year(year) == 366);
}

size_t weir_time_format(int64_t wall_us, char buffer[WEIR_TIME_TEXT_MAX]) {
    const int64_t first_us = -DAYS_TO_1970 * US_PER_DAY;
    const int64_t end_us = (days_before_year(YEAR_MAX + 1) - DAYS_TO_1970) * US_PER_DAY;
    if (wall_us < first_us) wall_us = first_us;
    if (wall_us >= end_us) wall_us = end_us - 1;

    int64_t days = wall_us / US_PER_DAY - (wall_us % US_PER_DAY < 0) + DAYS_TO_1970; /* rounded down */
    int64_t us = wall_us - (days - DAYS_TO_1970) * US_PER_DAY;
    int64_t year = days * 400 / DAYS_PER_400_Y; /* right, or off by one */
    while (days_before_year(year) > days)
        year--;
    while (days_before_year(year + 1) <= days)
        year++;
    days -= days_before_year(year);
    int64_t month = 1;
    while (days_before_month(year, month + 1) <= days)
        month++;
    days -= days_before_month(year, month);
    WEIR_ASSERT(year >= 0 && year <= YEAR_MAX && month <= 12 && days >= 0 && us >= 0 && us < US_PER_DAY);
    int length = snprintf(buffer, WEIR_TIME_TEXT_MAX, "%04d-%02d-%02dT%02d:%02d:%02d.%06dZ", (int)year, (int)month,
                          (int)days + 1, (int)(us / US_PER_HOUR), (int)(us / US_PER_MINUTE % 60),
                          (int)(us / WEIR_US_PER_S % 60), (int)(us % WEIR_US_PER_S));
    WEIR_ASSERT(length > 0 && (size_t)length < WEIR_TIME_TEXT_MAX);
    return (size_t)length;
}

/* --- reading times ------------------------------------------------------------------------------------------ */

#define FRACTION_DIGITS_MAX 9
#define QUOTED_BYTES_MAX    40

/* A failed read leaves `at` on the offending character and says what was wanted there. */
typedef struct time_reader {
    const char *text;
    size_t length;
    size_t at;
    const char *wanted;
} time_reader;

static bool time_is_digit(const time_reader *in) {
    return in->at < in->length && in->text[in->at] >= '0' && in->text[in->at] <= '9';
}

static bool time_refuse(time_reader *in, size_t at, const char *wanted) {
    in->at = at;
    in->wanted = wanted;
    return false;
}

static bool time_read_number(time_reader *in, size_t digits, int64_t min, int64_t max, const char *wanted,
                             int64_t *valuep) {
    size_t start = in->at;
    int64_t value = 0;
    for (; in->at < start + digits; in->at++) {
        if (!time_is_digit(in)) return time_refuse(in, in->at, wanted);
        value = value * 10 + (in->text[in->at] - '0');
    }
    *valuep = value;
    return (value >= min && value <= max) || time_refuse(in, start, wanted);
}

static bool time_at_one_of(const time_reader *in, const char *marks) {
    return in->at < in->length && in->text[in->at] && strchr(marks, in->text[in->at]);
}

static bool time_read_mark(time_reader *in, const char *marks, const char *wanted) {
    if (!time_at_one_of(in, marks)) return time_refuse(in, in->at, wanted);
    in->at++;
    return true;
}

static bool time_read_date(time_reader *in, int64_t *wall_usp) {
    int64_t year, month, day;
    if (!time_read_number(in, 4, 0, YEAR_MAX, "a year of four digits", &year) || !time_read_mark(in, "-", "'-'") ||
        !time_read_number(in, 2, 1, 12, "a month from 01 to 12", &month) || !time_read_mark(in, "-", "'-'") ||
        !time_read_number(in, 2, 1, days_before_month(year, month + 1) - days_before_month(year, month),
                          "a day of that month", &day))
        return false;
    *wall_usp += (days_before_year(year) + days_before_month(year, month) + day - 1 - DAYS_TO_1970) * US_PER_DAY;
    return true;
}

static bool time_read_of_day(time_reader *in, int64_t *wall_usp) {
    int64_t hour, minute, second;
    if (!time_read_mark(in, "Tt ", "'T'") || !time_read_number(in, 2, 0, 23, "an hour from 00 to 23", &hour) ||
        !time_read_mark(in, ":", "':'") || !time_read_number(in, 2, 0, 59, "a minute from 00 to 59", &minute) ||
        !time_read_mark(in, ":", "':'") || !time_read_number(in, 2, 0, 59, "a second from 00 to 59", &second))
        return false;
    *wall_usp += hour * US_PER_HOUR + minute * US_PER_MINUTE + second * WEIR_US_PER_S;
    if (!time_at_one_of(in, ".")) return true;
    size_t digits = 0;
    in->at++;
    for (int64_t unit = WEIR_US_PER_S / 10; time_is_digit(in); unit /= 10, digits++, in->at++)
        *wall_usp += unit * (in->text[in->at] - '0'); /* digits past the microsecond are dropped */
    return (digits > 0 && digits <= FRACTION_DIGITS_MAX) || time_refuse(in, in->at, "1 to 9 digits of a fraction");
}

static bool time_read_offset(time_reader *in, int64_t *wall_usp) {
    static const char wanted[] = "'Z' or an offset such as +01:00";
    if (time_at_one_of(in, "Zz")) {
        in->at++;
        return true;
    }
    int64_t hour, minute, sign = time_at_one_of(in, "-") ? -1 : 1;
    if (!time_read_mark(in, "+-", wanted) || !time_read_number(in, 2, 0, 23, wanted, &hour) ||
        !time_read_mark(in, ":", wanted) || !time_read_number(in, 2, 0, 59, wanted, &minute))
        return false;
    *wall_usp -= sign * (hour * US_PER_HOUR + minute * US_PER_MINUTE);
    return true;
}

weir_err weir_time_parse(const char *text, size_t length, int64_t *wall_usp) {
    time_reader in = {.text = text, .length = length};
    int64_t wall_us = 0;
    *wall_usp = 0;
    bool ok = time_read_date(&in, &wall_us);
    if (ok && in.at < in.length)
        ok = time_read_of_day(&in, &wall_us) && time_read_offset(&in, &wall_us) &&
             (in.at == in.length || time_refuse(&in, in.at, "nothing more"));
    if (!ok) {
        int quoted = length < QUOTED_BYTES_MAX ? (int)length : QUOTED_BYTES_MAX;
        return WEIR_ERR(WEIR_EDATA, "time '%.*s' needs %s at character %zu; write it as 2026-11-21T10:00:00Z", quoted,
                        text, in.wanted, in.at + 1);
    }
    *wall_usp = wall_us;
    return WEIR_OK;
}

/* --- durations ---------------------------------------------------------------------------------------------- */

weir_err weir_duration_parse(const char *text, int64_t *usp) {
    static const struct {
        const char *name;
        int64_t us;
    } units[] = {{"us", 1},          {"ms", 1000},     {"s", WEIR_US_PER_S}, {"m", US_PER_MINUTE},
                 {"h", US_PER_HOUR}, {"d", US_PER_DAY}};
    time_reader in = {.text = text, .length = strlen(text)};
    int64_t value = 0;
    bool overflow = false;
    *usp = 0;
    for (; time_is_digit(&in); in.at++)
        overflow |=
            __builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, text[in.at] - '0', &value);
    int64_t unit = 0;
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (strcmp(units[i].name, text + in.at) == 0) unit = units[i].us;
    if (in.at == 0 || unit == 0)
        return WEIR_ERR(WEIR_EDATA,
                        "duration '%.*s' is not a whole number with a unit us, ms, s, m, h or d; write it as 90s",
                        QUOTED_BYTES_MAX, text);
    if (overflow || __builtin_mul_overflow(value, unit, &value))
        return WEIR_ERR(WEIR_EDATA, "duration '%.*s' is too long; the longest is %lldd", QUOTED_BYTES_MAX, text,
                        (long long)(INT64_MAX / US_PER_DAY));
    *usp = value;
    return WEIR_OK;
}

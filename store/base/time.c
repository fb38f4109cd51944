/* SPDX-License-Identifier: Apache-2.0 */
/* time.c - dates and durations as text, in whole numbers only: a date must read back as it was written. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include <weir/base/clock.h>

#define US_PER_DAY     (86400ll * WEIR_US_PER_S)
#define YEAR_0_DAYS    (-719528ll)
#define YEAR_9999_DAYS 2932896ll

typedef struct date {
    int64_t year;
    unsigned month, day;
} date;

/* Days are counted in eras of 400 years (146,097 days) that begin in March, so that the leap day comes last. */
static int64_t days_of_date(date d) {
    int64_t year = d.year - (d.month <= 2);
    int64_t era = (year >= 0 ? year : year - 399) / 400;
    int64_t year_of_era = year - era * 400;
    int64_t day_of_year = (153 * ((int64_t)d.month + (d.month > 2 ? -3 : 9)) + 2) / 5 + (int64_t)d.day - 1;
    return era * 146097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719468;
}

static date date_of_days(int64_t days) {
    days += 719468;
    int64_t era = (days >= 0 ? days : days - 146096) / 146097;
    int64_t day_of_era = days - era * 146097;
    int64_t year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int64_t shifted = (5 * day_of_year + 2) / 153;
    unsigned month = (unsigned)(shifted < 10 ? shifted + 3 : shifted - 9);
    return (date){
        .year = year_of_era + era * 400 + (month <= 2),
        .month = month,
        .day = (unsigned)(day_of_year - (153 * shifted + 2) / 5 + 1),
    };
}

static void put_digits(char *at, uint64_t value, int digits) {
    for (int i = digits - 1; i >= 0; i--) {
        at[i] = (char)('0' + value % 10);
        value /= 10;
    }
}

size_t weir_time_format(int64_t wall_us, char buffer[WEIR_TIME_TEXT_MAX]) {
    int64_t days = wall_us / US_PER_DAY, rest = wall_us % US_PER_DAY;
    if (rest < 0) {
        rest += US_PER_DAY;
        days--;
    }
    if (days < YEAR_0_DAYS) days = YEAR_0_DAYS, rest = 0;
    if (days > YEAR_9999_DAYS) days = YEAR_9999_DAYS, rest = US_PER_DAY - 1;
    date d = date_of_days(days);
    memcpy(buffer, "0000-00-00T00:00:00.000000Z", 28);
    put_digits(buffer, (uint64_t)d.year, 4);
    put_digits(buffer + 5, d.month, 2);
    put_digits(buffer + 8, d.day, 2);
    put_digits(buffer + 11, (uint64_t)(rest / (3600 * WEIR_US_PER_S)), 2);
    put_digits(buffer + 14, (uint64_t)(rest / (60 * WEIR_US_PER_S) % 60), 2);
    put_digits(buffer + 17, (uint64_t)(rest / WEIR_US_PER_S % 60), 2);
    put_digits(buffer + 20, (uint64_t)(rest % WEIR_US_PER_S), 6);
    return 27;
}

/* --- reading ------------------------------------------------------------------------------------------------- */

typedef struct reader {
    const char *next, *end;
    bool wrong;
} reader;

static unsigned read_digits(reader *r, int digits) {
    unsigned value = 0;
    for (int i = 0; i < digits; i++) {
        if (r->next == r->end || *r->next < '0' || *r->next > '9') {
            r->wrong = true;
            return 0;
        }
        value = value * 10 + (unsigned)(*r->next++ - '0');
    }
    return value;
}

static bool read_char(reader *r, char a, char b) {
    if (r->next == r->end || (*r->next != a && *r->next != b)) return false;
    r->next++;
    return true;
}

static void need_char(reader *r, char a, char b) {
    if (!read_char(r, a, b)) r->wrong = true;
}

static unsigned days_in_month(int64_t year, unsigned month) {
    static const unsigned char days[12] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return month == 2 && leap ? 29 : days[month - 1];
}

static date read_date(reader *r) {
    date d = {.year = read_digits(r, 4)};
    need_char(r, '-', '-');
    d.month = read_digits(r, 2);
    need_char(r, '-', '-');
    d.day = read_digits(r, 2);
    if (d.month < 1 || d.month > 12 || d.day < 1 || d.day > days_in_month(d.year, d.month)) r->wrong = true;
    return d;
}

/* Digits behind the sixth are read and dropped: the resolution is a microsecond. */
static int64_t read_fraction(reader *r) {
    int64_t us = 0, scale = WEIR_US_PER_S / 10;
    int digits = 0;
    if (!read_char(r, '.', ',')) return 0;
    for (; r->next < r->end && *r->next >= '0' && *r->next <= '9'; r->next++, digits++) {
        us += (*r->next - '0') * scale;
        scale /= 10;
    }
    if (digits < 1 || digits > 9) r->wrong = true;
    return us;
}

static int64_t read_time_of_day(reader *r) {
    unsigned hour = read_digits(r, 2);
    need_char(r, ':', ':');
    unsigned minute = read_digits(r, 2);
    need_char(r, ':', ':');
    unsigned second = read_digits(r, 2);
    int64_t us = read_fraction(r);
    if (hour > 23 || minute > 59 || second > 60) r->wrong = true; /* :60 is a leap second, and counts as the next */
    return ((int64_t)hour * 3600 + minute * 60 + second) * WEIR_US_PER_S + us;
}

static int64_t read_zone(reader *r) {
    if (read_char(r, 'Z', 'z')) return 0;
    int64_t sign = r->next < r->end && *r->next == '-' ? -1 : 1;
    need_char(r, '+', '-');
    unsigned hours = read_digits(r, 2);
    need_char(r, ':', ':');
    unsigned minutes = read_digits(r, 2);
    if (hours > 23 || minutes > 59) r->wrong = true;
    return sign * ((int64_t)hours * 3600 + minutes * 60) * WEIR_US_PER_S;
}

weir_err weir_time_parse(const char *text, size_t length, int64_t *wall_usp) {
    reader r = {text, text + length, false};
    *wall_usp = 0;
    date d = read_date(&r);
    int64_t us = r.wrong ? 0 : days_of_date(d) * US_PER_DAY;
    if (!r.wrong && r.next < r.end) {
        need_char(&r, 'T', ' ');
        us += read_time_of_day(&r);
        us -= read_zone(&r);
    }
    if (r.wrong || r.next != r.end) {
        return WEIR_ERR(WEIR_EDATA, "'%.*s' is not a time; write 2026-11-21 or 2026-11-21T10:00:00Z",
                        (int)(length < 64 ? length : 64), text);
    }
    *wall_usp = us;
    return WEIR_OK;
}

weir_err weir_duration_parse(const char *text, int64_t *usp) {
    static const struct {
        const char *name;
        int64_t us;
    } units[] = {
        {"us", 1},        {"ms", 1000}, {"s", WEIR_US_PER_S}, {"m", 60 * WEIR_US_PER_S}, {"h", 3600 * WEIR_US_PER_S},
        {"d", US_PER_DAY}};
    int64_t value = 0;
    const char *p = text;
    bool fits = true;
    *usp = 0;
    for (; isdigit((unsigned char)*p); p++) {
        fits = fits && !__builtin_mul_overflow(value, 10, &value) && !__builtin_add_overflow(value, *p - '0', &value);
    }
    for (size_t i = 0; p > text && i < sizeof units / sizeof units[0]; i++) {
        if (strcmp(p, units[i].name) != 0) continue;
        if (!fits || __builtin_mul_overflow(value, units[i].us, usp)) {
            *usp = 0;
            return WEIR_ERR(WEIR_EDATA, "'%.64s' is too long a time", text);
        }
        return WEIR_OK;
    }
    return WEIR_ERR(WEIR_EDATA, "'%.64s' is not a duration; write a whole number and us, ms, s, m, h or d, as in 90s",
                    text);
}

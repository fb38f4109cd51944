/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim_text.h - the writers of message bytes.
 *
 * A generator spends most of its time here, so these are inline, unchecked and fed only with numbers of our own; a
 * message's longest form is far below WEIR_SIM_LINE_MAX, which weir_sim_line_check asserts.
 */
#ifndef WEIR_SIM_TEXT_H
#define WEIR_SIM_TEXT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <weir/store/base/assert.h>
#include <weir/store/base/clock.h>

#include "sim_math.h"

#define WEIR_SIM_LINE_MAX 512u

/* Text of the day that the last time fell into: a new one is due once a day, not once a message. */
typedef struct weir_sim_date {
    int64_t day;
    char text[WEIR_TIME_TEXT_MAX];
} weir_sim_date;

#define WEIR_SIM_PUT(p, literal) ((char *)memcpy((p), (literal), sizeof(literal) - 1) + sizeof(literal) - 1)

static inline char *weir_sim_put_pair(char *p, uint32_t below_100) {
    static const char pairs[] =
        "0001020304050607080910111213141516171819202122232425262728293031323334353637383940414243"
        "4445464748495051525354555657585960616263646566676869707172737475767778798081828384858687"
        "888990919293949596979899";
    memcpy(p, pairs + 2 * (size_t)below_100, 2);
    return p + 2;
}

/* Exactly so many digits, zeros in front. */
static inline char *weir_sim_put_digits(char *p, uint64_t value, uint32_t digits) {
    uint32_t at = digits;
    for (; at >= 2; value /= 100) {
        at -= 2;
        weir_sim_put_pair(p + at, (uint32_t)(value % 100));
    }
    if (at) p[0] = (char)('0' + value % 10);
    return p + digits;
}

/* 1234 becomes 12.34. */
static inline char *weir_sim_put_cents(char *p, uint64_t cents) {
    uint64_t whole = cents / 100;
    uint32_t digits = 1;
    for (uint64_t past = 10; whole >= past; past *= 10)
        digits++;
    p = weir_sim_put_digits(p, whole, digits);
    *p++ = '.';
    return weir_sim_put_pair(p, (uint32_t)(cents % 100));
}

static inline char *weir_sim_put_time(char *p, weir_sim_date *date, int64_t time_us) {
    int64_t day = time_us / WEIR_SIM_DAY;
    if (day != date->day) {
        date->day = day;
        weir_time_format(day * WEIR_SIM_DAY, date->text);
    }
    uint64_t in_day = (uint64_t)(time_us - day * WEIR_SIM_DAY);
    uint32_t second = (uint32_t)(in_day / WEIR_SIM_SECOND);
    uint32_t fraction = (uint32_t)(in_day % WEIR_SIM_SECOND);
    memcpy(p, date->text, 11);
    p = weir_sim_put_pair(p + 11, second / 3600);
    *p++ = ':';
    p = weir_sim_put_pair(p, second / 60 % 60);
    *p++ = ':';
    p = weir_sim_put_pair(p, second % 60);
    *p++ = '.';
    p = weir_sim_put_digits(p, fraction, 6);
    *p++ = 'Z';
    return p;
}

static inline size_t weir_sim_line_check(const char *line, const char *end) {
    WEIR_ASSERT(end > line && (size_t)(end - line) <= WEIR_SIM_LINE_MAX);
    return (size_t)(end - line);
}

#endif /* WEIR_SIM_TEXT_H */

/* SPDX-License-Identifier: Apache-2.0 */
/* cron.c - a cron expression as sets of bits, and the first minute that is in all of them. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include <weir/trainer/schedule/schedule.h>

#define FIELDS        5u
#define DAY_MINUTES   1440
#define MINUTE_US     (60 * WEIR_US_PER_S)
#define DAYS_LOOKED   (9 * 366) /* 29 February comes after eight years at the latest */
#define FIELD_LETTERS 64u

typedef struct field {
    const char *name;
    uint32_t min, max;
    const char *const *names; /* of min and up; NULL: none */
} field;

static const char *const month_names[] = {"jan", "feb", "mar", "apr", "may", "jun", "jul",
                                          "aug", "sep", "oct", "nov", "dec", NULL};
static const char *const weekday_names[] = {"sun", "mon", "tue", "wed", "thu", "fri", "sat", NULL};
static const field fields[FIELDS] = {{"minute", 0, 59, NULL},
                                     {"hour", 0, 23, NULL},
                                     {"day of the month", 1, 31, NULL},
                                     {"month", 1, 12, month_names},
                                     {"day of the week", 0, 7, weekday_names}};

/* --- reading ----------------------------------------------------------------------------------------------------- */

static weir_err wrong(const field *f, const char *text) {
    return WEIR_ERR(WEIR_EDATA,
                    "the %s '%.40s' cannot be read; it is *, numbers from %u to %u%s, ranges 1-5, steps */2, "
                    "or several of these parted by commas",
                    f->name, text, f->min, f->max, f->names ? ", names" : "");
}

/* A number or a name; false: neither. */
static bool read_value(const field *f, const char **textp, uint32_t *valuep) {
    const char *text = *textp;
    for (uint32_t i = 0; f->names && f->names[i]; i++) {
        if (strncasecmp(text, f->names[i], 3) != 0) continue;
        *valuep = f->min + i;
        *textp = text + 3;
        return true;
    }
    uint32_t value = 0, digits = 0;
    for (; text[digits] >= '0' && text[digits] <= '9' && digits < 3; digits++)
        value = value * 10 + (uint32_t)(text[digits] - '0');
    *valuep = value;
    *textp = text + digits;
    return digits > 0;
}

/* "*", "5", "1-5", each but the single one with "/2" behind it. */
static bool read_item(const field *f, const char **textp, uint64_t *bits) {
    uint32_t from = f->min, to = f->max, step = 1;
    bool many = **textp == '*';
    if (many) {
        ++*textp;
    } else {
        if (!read_value(f, textp, &from)) return false;
        to = from;
    }
    if (!many && **textp == '-') {
        ++*textp;
        many = true;
        if (!read_value(f, textp, &to)) return false;
    }
    if (many && **textp == '/') {
        ++*textp;
        if (**textp < '0' || **textp > '9' || !read_value(f, textp, &step) || !step || step > f->max) return false;
    }
    if (from < f->min || to > f->max || from > to) return false;
    for (uint32_t i = from; i <= to; i += step)
        *bits |= (uint64_t)1 << i;
    return true;
}

static weir_err read_field(const field *f, const char *text, uint64_t *bits) {
    const char *at = text;
    *bits = 0;
    while (read_item(f, &at, bits)) {
        if (!*at) return WEIR_OK;
        if (*at++ != ',') break;
    }
    return wrong(f, text);
}

static bool next_word(const char **textp, char word[FIELD_LETTERS]) {
    const char *text = *textp + strspn(*textp, " \t");
    size_t length = strcspn(text, " \t");
    *textp = text + length;
    if (!length || length >= FIELD_LETTERS) return false;
    memcpy(word, text, length);
    word[length] = 0;
    return true;
}

weir_err weir_cron_parse(const char *text, weir_cron *cronp) {
    char words[FIELDS][FIELD_LETTERS], more[FIELD_LETTERS];
    uint64_t bits[FIELDS] = {0};
    const char *at = text;
    weir_err err = WEIR_OK;
    *cronp = (weir_cron){0};
    for (uint32_t i = 0; i < FIELDS; i++) {
        if (!next_word(&at, words[i]))
            return WEIR_ERR(WEIR_EDATA, "'%.80s' has no %s; it takes five: minute, hour, day, month, weekday", text,
                            fields[i].name);
    }
    if (next_word(&at, more) || *at) return WEIR_ERR(WEIR_EDATA, "'%.80s' has more than five fields", text);
    for (uint32_t i = 0; !err && i < FIELDS; i++)
        err = read_field(&fields[i], words[i], &bits[i]);
    if (err) return err;
    if (bits[4] & 1u << 7) bits[4] |= 1; /* 7 is sunday too */
    *cronp = (weir_cron){bits[0],           (uint32_t)bits[1],       (uint32_t)bits[2],
                         (uint32_t)bits[3], (uint32_t)bits[4] & 127, *words[2] != '*' && *words[4] != '*'};
    return WEIR_OK;
}

/* --- the calendar ------------------------------------------------------------------------------------------------ */

typedef struct date {
    uint32_t month, day, weekday;
} date;

/* Days since 1970; years that begin in March have their leap day at the end. */
static date date_of(int64_t days) {
    int64_t since = days + 719468; /* since 1 March of the year 0 */
    int64_t era = (since >= 0 ? since : since - 146096) / 146097;
    int64_t of_era = since - era * 146097;
    int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int64_t of_year = of_era - (365 * year + year / 4 - year / 100);
    int64_t march = (5 * of_year + 2) / 153; /* months since March */
    return (date){.month = (uint32_t)(march < 10 ? march + 3 : march - 9),
                  .day = (uint32_t)(of_year - (153 * march + 2) / 5 + 1),
                  .weekday = (uint32_t)(((days + 4) % 7 + 7) % 7)}; /* 1970 began on a Thursday */
}

static bool day_matches(const weir_cron *cron, int64_t days) {
    date d = date_of(days);
    bool day = cron->days >> d.day & 1, weekday = cron->weekdays >> d.weekday & 1;
    return cron->months >> d.month & 1 && (cron->either_day ? day || weekday : day && weekday);
}

/* The first minute of a day from `minute` on; -1: none. */
static int minute_of(const weir_cron *cron, int minute) {
    for (; minute < DAY_MINUTES; minute++)
        if (cron->hours >> (minute / 60) & 1 && cron->minutes >> (minute % 60) & 1) return minute;
    return -1;
}

weir_err weir_cron_next(const weir_cron *cron, int64_t wall_us, int64_t *nextp) {
    int64_t minute = wall_us / MINUTE_US - (wall_us % MINUTE_US < 0) + 1; /* C1: behind it, even at a full minute */
    int64_t day = minute / DAY_MINUTES - (minute % DAY_MINUTES < 0);
    int from = (int)(minute - day * DAY_MINUTES);
    *nextp = 0;
    for (int64_t last = day + DAYS_LOOKED; day < last; day++, from = 0) {
        int found = day_matches(cron, day) ? minute_of(cron, from) : -1;
        if (found < 0) continue;
        *nextp = (day * DAY_MINUTES + found) * MINUTE_US;
        return WEIR_OK;
    }
    return WEIR_ERR(WEIR_ENOTFOUND, "no day of the next years matches; correct the day or the month");
}

/* SPDX-License-Identifier: Apache-2.0 */
/* cron_test.c - random expressions against a twin that walks minute by minute and asks the C library for the date. */
#include "weir_test.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include <weir/store/base/rng.h>
#include <weir/trainer/schedule/schedule.h>

#define MINUTE_US    (60 * WEIR_US_PER_S)
#define WALK_MINUTES (400 * 1440) /* more than a year */

/* What a field was written as, by hand of the generator: a list of its values. */
typedef struct drawn {
    bool values[64];
    bool star;
    char text[128];
} drawn;

static const int mins[] = {0, 0, 1, 1, 0}, maxs[] = {59, 23, 31, 12, 7};
static const char *const names[][12] = {
    {"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"},
    {"sun", "mon", "tue", "wed", "thu", "fri", "SAT"}};

static void put_value(drawn *d, int field, int value, bool named, char *text, size_t size) {
    (void)d;
    if (named && field == 3)
        snprintf(text, size, "%s", names[0][value - 1]);
    else if (named && field == 4 && value < 7)
        snprintf(text, size, "%s", names[1][value]);
    else
        snprintf(text, size, "%d", value);
}

static void draw_item(weir_rng *rng, int field, drawn *d) {
    int min = mins[field], max = maxs[field], span = max - min + 1;
    int from = min + (int)weir_rng_below(rng, (uint64_t)span), step = 1;
    int to = from + (int)weir_rng_below(rng, (uint64_t)max - (uint64_t)from + 1);
    char a[16], b[16], item[64];
    bool named = weir_rng_below(rng, 3) == 0;
    uint64_t kind = weir_rng_below(rng, 4);
    if (kind == 0) to = from;
    if (kind >= 2) step = 1 + (int)weir_rng_below(rng, (uint64_t)max);
    put_value(d, field, from, named, a, sizeof a);
    put_value(d, field, to, named, b, sizeof b);
    if (kind == 0) snprintf(item, sizeof item, "%s", a);
    if (kind == 1) snprintf(item, sizeof item, "%s-%s", a, b);
    if (kind >= 2) snprintf(item, sizeof item, "%s-%s/%d", a, b, step);
    for (int v = from; v <= to; v += step)
        d->values[field == 4 ? v % 7 : v] = true;
    size_t used = strlen(d->text);
    snprintf(d->text + used, sizeof d->text - used, "%s%s", used ? "," : "", item);
}

static void draw_star(weir_rng *rng, int field, drawn *d) {
    int step = weir_rng_below(rng, 2) ? 1 : 1 + (int)weir_rng_below(rng, (uint64_t)maxs[field]);
    d->star = true;
    snprintf(d->text, sizeof d->text, step == 1 ? "*" : "*/%d", step);
    for (int v = mins[field]; v <= maxs[field]; v += step)
        d->values[field == 4 ? v % 7 : v] = true;
}

static void draw_field(weir_rng *rng, int field, drawn *d) {
    memset(d, 0, sizeof *d);
    if (weir_rng_below(rng, 2)) {
        draw_star(rng, field, d);
        return;
    }
    for (uint64_t i = 0, count = 1 + weir_rng_below(rng, 3); i < count; i++)
        draw_item(rng, field, d);
}

static bool twin_matches(const drawn d[5], int64_t minute) {
    time_t seconds = (time_t)(minute * 60);
    struct tm tm;
    gmtime_r(&seconds, &tm);
    bool day = d[2].values[tm.tm_mday], weekday = d[4].values[tm.tm_wday];
    bool either = !d[2].star && !d[4].star;
    return d[0].values[tm.tm_min] && d[1].values[tm.tm_hour] && d[3].values[tm.tm_mon + 1] &&
           (either ? day || weekday : day && weekday);
}

/* -1: not in the time that is walked. */
static int64_t twin_next(const drawn d[5], int64_t wall_us) {
    int64_t first = wall_us / MINUTE_US + 1;
    for (int64_t minute = first; minute < first + WALK_MINUTES; minute++)
        if (twin_matches(d, minute)) return minute * MINUTE_US;
    return -1;
}

static void c1_next_is_the_twins(void **state) {
    weir_rng rng = weir_rng_stream(weir_test_seed(), 0, 0);
    (void)state;
    for (uint64_t round = 0; round < weir_test_rounds(400); round++) {
        drawn d[5];
        char text[700];
        weir_cron cron;
        int64_t at = (int64_t)weir_rng_below(&rng, 4102444800ull * 1000000), next = 0;
        for (int i = 0; i < 5; i++)
            draw_field(&rng, i, &d[i]);
        snprintf(text, sizeof text, "%s %s  %s\t%s %s", d[0].text, d[1].text, d[2].text, d[3].text, d[4].text);
        bool fits = true;
        for (int i = 0; i < 5; i++)
            fits = fits && strlen(d[i].text) < 64;
        if (!fits) continue;
        if (weir_rng_below(&rng, 4) == 0) at -= at % MINUTE_US;
        assert_ok(weir_cron_parse(text, &cron));
        int64_t wanted = twin_next(d, at);
        weir_err err = weir_cron_next(&cron, at, &next);
        if (wanted < 0 ? !err && next < at + (int64_t)WALK_MINUTES * MINUTE_US : err || next != wanted)
            fail_msg("'%s' after %lld: %lld, the twin says %lld", text, (long long)at, (long long)next,
                     (long long)wanted);
    }
}

WEIR_TESTS(WEIR_CASE(c1_next_is_the_twins))

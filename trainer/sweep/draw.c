/* SPDX-License-Identifier: Apache-2.0 */
/* draw.c - what an option may be, and what a trial tries of it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/store/base/assert.h>
#include <weir/store/base/hash.h>
#include <weir/store/base/rng.h>

#include "sweep_private.h"

#define DRAW_WHOLE_MAX 9007199254740992.0 /* a double has each whole number below */
#define DRAW_LETTERS   "abcdefghijklmnopqrstuvwxyz0123456789-"
#define DRAW_SHAPES    "VALUE|VALUE…, LOW..HIGH or log:LOW..HIGH"

/* --- reading ------------------------------------------------------------------------------------------------------ */

/* A number that ends where `end` is. */
static bool draw_number(const char *text, const char *end, double *valuep, bool *wholep) {
    char copy[64], *behind = NULL;
    const size_t length = (size_t)(end - text);
    if (!length || length >= sizeof copy || strspn(text, "0123456789+-.eE") < length) return false;
    memcpy(copy, text, length);
    copy[length] = 0;
    *valuep = strtod(copy, &behind);
    *wholep = strspn(copy, "0123456789") == length && *valuep <= DRAW_WHOLE_MAX;
    return !*behind && isfinite(*valuep);
}

static weir_err draw_read_range(const char *text, weir_sweep_try *try) {
    const bool logarithmic = strncmp(text, "log:", 4) == 0;
    const char *low = logarithmic ? text + 4 : text, *dots = strstr(low, "..");
    bool low_whole, high_whole;
    if (!dots || !draw_number(low, dots, &try->low, &low_whole) ||
        !draw_number(dots + 2, dots + strlen(dots), &try->high, &high_whole))
        return WEIR_ERR(WEIR_EUSAGE, "--try %s: '%.60s' is no range of two numbers; give " DRAW_SHAPES, try->name,
                        text);
    try->kind = logarithmic ? WEIR_SWEEP_LOG : WEIR_SWEEP_EVEN;
    try->whole = low_whole && high_whole;
    if (!(try->low < try->high))
        return WEIR_ERR(WEIR_EUSAGE, "--try %s: '%.60s' does not rise; give the lower number first", try->name, text);
    if (logarithmic && !(try->low > 0))
        return WEIR_ERR(WEIR_EUSAGE, "--try %s: '%.60s' begins at 0 or below, where there is no logarithm", try->name,
                        text);
    return WEIR_OK;
}

static weir_err draw_read_choices(const char *text, weir_sweep_try *try) {
    try->kind = WEIR_SWEEP_CHOICE;
    for (const char *rest = text; rest; try->choices++) {
        const size_t length = strcspn(rest, "|");
        if (!length || length >= WEIR_SWEEP_VALUE_MAX)
            return WEIR_ERR(WEIR_EUSAGE, "--try %s: each value of '%.60s' has 1 to %u bytes; part them by one |",
                            try->name, text, WEIR_SWEEP_VALUE_MAX - 1);
        rest = rest[length] ? rest + length + 1 : NULL;
    }
    return WEIR_OK;
}

weir_err weir_sweep_try_read(const char *text, weir_sweep_try *try) {
    const size_t length = strcspn(text, "=");
    *try = (weir_sweep_try){.kind = WEIR_SWEEP_CHOICE};
    if (!text[length] || !length || length >= sizeof try->name || strspn(text, DRAW_LETTERS) < length || text[0] == '-')
        return WEIR_ERR(WEIR_EUSAGE,
                        "--try '%.60s': give NAME=VALUES, where NAME is an option of weir train without "
                        "its dashes and VALUES is " DRAW_SHAPES,
                        text);
    memcpy(try->name, text, length);
    try->values = text + length + 1;
    /* "1..2" is a range, and "a..b|c" are choices. */
    const bool range = strncmp(try->values, "log:", 4) == 0 || strstr(try->values, "..");
    return range && !strchr(try->values, '|') ? draw_read_range(try->values, try) : draw_read_choices(try->values, try);
}

/* --- drawing ------------------------------------------------------------------------------------------------------ */

static void draw_choice(const weir_sweep_try *try, uint64_t which, char value[WEIR_SWEEP_VALUE_MAX]) {
    const char *rest = try->values;
    for (; which > 0; which--)
        rest += strcspn(rest, "|") + 1;
    snprintf(value, WEIR_SWEEP_VALUE_MAX, "%.*s", (int)strcspn(rest, "|"), rest);
}

/* As short as six digits say it; the ends are never passed. */
static void draw_print(const weir_sweep_try *try, double number, char value[WEIR_SWEEP_VALUE_MAX]) {
    if (try->whole) {
        snprintf(value, WEIR_SWEEP_VALUE_MAX, "%.0f", number);
        return;
    }
    snprintf(value, WEIR_SWEEP_VALUE_MAX, "%.6g", number);
    const double printed = strtod(value, NULL);
    if (printed < try->low || printed > try->high)
        snprintf(value, WEIR_SWEEP_VALUE_MAX, "%.17g", printed < try->low ? try->low : try->high);
}

/* Each whole number has the share of the line that begins at it. */
static double draw_number_of(const weir_sweep_try *try, weir_rng *rng) {
    const double end = try->whole ? try->high + 1 : try->high, share = weir_rng_double(rng);
    double number =
        try->kind == WEIR_SWEEP_LOG ? try->low * pow(end / try->low, share) : try->low + (end - try->low) * share;
    if (try->whole) number = floor(number);
    return fmin(fmax(number, try->low), try->high);
}

void weir_sweep_draw(const weir_sweep_try *try, uint64_t seed, uint32_t trial, char value[WEIR_SWEEP_VALUE_MAX]) {
    weir_rng rng = weir_rng_stream(seed, weir_xxh3(try->name, strlen(try->name), 0), trial); /* SWEEP-H1 */
    if (try->kind == WEIR_SWEEP_CHOICE)
        draw_choice(try, weir_rng_below(&rng, try->choices), value);
    else
        draw_print(try, draw_number_of(try, &rng), value);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * value.c - the typed reading of cells.
 *
 * Most numbers are short decimals: up to 15 digits and a power of ten up to 22 are both exact in a double, and so is
 * one division; everything else goes to strtod.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <weir/store/base/clock.h>

#include "value.h"

/* 0000-01-01 and 9999-12-31, as RFC 3339 can say them: the ends of int64 have meanings of their own in the store. */
#define TIME_US_MIN (-62167219200 * WEIR_US_PER_S)
#define TIME_US_MAX (253402300800 * WEIR_US_PER_S - 1)

#define NUMBER_BYTES_MAX 64u
#define EXACT_DIGITS     15

weir_err weir_cell_wrong(const weir_cell *cell, const char *field, const char *what) {
    if (cell->at == 0) return WEIR_ERR(WEIR_EDATA, "field '%s': %s", field, what);
    return WEIR_ERR(WEIR_EDATA, "field '%s' (byte %zu): %s", field, cell->at, what);
}

static bool value_plain_number(const char *text, size_t length, double *numberp) {
    static const double powers[] = {1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                    1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
    uint64_t digits = 0;
    int count = 0, behind = -1;
    bool negative = length > 0 && text[0] == '-';
    for (size_t i = negative; i < length; i++) {
        if (text[i] == '.' && behind < 0) {
            behind = 0;
            continue;
        }
        if (text[i] < '0' || text[i] > '9' || ++count > EXACT_DIGITS) return false;
        digits = digits * 10 + (uint64_t)(text[i] - '0');
        if (behind >= 0) behind++;
    }
    if (count == 0 || behind == 0) return false;
    *numberp = (double)digits / powers[behind > 0 ? behind : 0];
    if (negative) *numberp = -*numberp;
    return true;
}

/* strtod alone would take hexadecimal, "inf" and leading spaces. */
static bool value_any_number(const char *text, size_t length, double *numberp) {
    char copy[NUMBER_BYTES_MAX + 1], *end;
    if (length == 0 || length > NUMBER_BYTES_MAX) return false;
    for (size_t i = 0; i < length; i++)
        if (!memchr("+-.0123456789eE", text[i], 15)) return false;
    memcpy(copy, text, length);
    copy[length] = '\0';
    *numberp = strtod(copy, &end);
    return *end == '\0' && end != copy && isfinite(*numberp);
}

weir_err weir_cell_number(const weir_cell *cell, const char *field, double *numberp) {
    *numberp = 0;
    if (cell->kind == WEIR_CELL_TRUTH) {
        *numberp = cell->text[0] == 't';
        return WEIR_OK;
    }
    if (cell->kind != WEIR_CELL_NUMBER && cell->kind != WEIR_CELL_TEXT)
        return weir_cell_wrong(cell, field, "not a number");
    if (value_plain_number(cell->text, cell->length, numberp)) return WEIR_OK;
    if (value_any_number(cell->text, cell->length, numberp)) return WEIR_OK;
    *numberp = 0;
    return weir_cell_wrong(cell, field, "not a number, or one that no double holds");
}

weir_err weir_cell_integer(const weir_cell *cell, const char *field, int64_t *integerp) {
    char copy[NUMBER_BYTES_MAX + 1], *end;
    *integerp = 0;
    if ((cell->kind != WEIR_CELL_NUMBER && cell->kind != WEIR_CELL_TEXT) || cell->length == 0 ||
        cell->length > NUMBER_BYTES_MAX) {
        return weir_cell_wrong(cell, field, "not a whole number");
    }
    memcpy(copy, cell->text, cell->length);
    copy[cell->length] = '\0';
    errno = 0;
    long long value = strtoll(copy, &end, 10);
    bool digit = (copy[0] >= '0' && copy[0] <= '9') || copy[0] == '-';
    if (end != copy + cell->length || end == copy || errno || !digit)
        return weir_cell_wrong(cell, field, "not a whole number of 64 bits");
    *integerp = value;
    return WEIR_OK;
}

/* Whole units and a fraction, in integers: a double lacks the digits for microseconds of this century. */
static bool value_decimal_time(const char *text, size_t length, int64_t unit_us, int64_t *time_usp) {
    int64_t whole = 0, fraction = 0, scale = unit_us;
    size_t i = length > 0 && text[0] == '-';
    bool negative = i == 1, digit = false;
    for (; i < length && text[i] >= '0' && text[i] <= '9'; i++, digit = true) {
        if (__builtin_mul_overflow(whole, 10, &whole) || __builtin_add_overflow(whole, text[i] - '0', &whole))
            return false;
    }
    if (digit && i < length && text[i] == '.') {
        for (i++; i < length && text[i] >= '0' && text[i] <= '9'; i++) {
            scale /= 10;
            fraction += (text[i] - '0') * scale;
        }
    }
    if (!digit || i < length || __builtin_mul_overflow(whole, unit_us, time_usp)) return false;
    if (__builtin_add_overflow(*time_usp, fraction, time_usp)) return false;
    if (negative) *time_usp = -*time_usp;
    return *time_usp >= TIME_US_MIN && *time_usp <= TIME_US_MAX;
}

weir_err weir_cell_time(const weir_cell *cell, const char *field, weir_schema_time_format format, int64_t *time_usp) {
    *time_usp = 0;
    if (cell->kind != WEIR_CELL_TEXT && cell->kind != WEIR_CELL_NUMBER)
        return weir_cell_wrong(cell, field, "not a time");
    if (format == WEIR_SCHEMA_RFC3339) {
        weir_err err = weir_time_parse(cell->text, cell->length, time_usp);
        return err ? weir_cell_wrong(cell, field, "not a time as in 2026-11-21T10:00:00Z") : WEIR_OK;
    }
    int64_t unit_us = format == WEIR_SCHEMA_S ? WEIR_US_PER_S : format == WEIR_SCHEMA_MS ? 1000 : 1;
    if (value_decimal_time(cell->text, cell->length, unit_us, time_usp)) return WEIR_OK;
    *time_usp = 0;
    return weir_cell_wrong(cell, field, "not a time in the schema's unit, or not of the years 0 to 9999");
}

weir_err weir_cell_text(const weir_cell *cell, const char *field, const char **textp, size_t *lengthp) {
    *textp = NULL;
    *lengthp = 0;
    if (cell->kind == WEIR_CELL_ABSENT) return weir_cell_wrong(cell, field, "missing");
    if (cell->kind == WEIR_CELL_NESTED) return weir_cell_wrong(cell, field, "an object or array, not a plain value");
    *textp = cell->text;
    *lengthp = cell->length;
    return WEIR_OK;
}

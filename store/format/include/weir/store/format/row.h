/* SPDX-License-Identifier: Apache-2.0 */
/*
 * row.h - a row of features as bytes: of a vertex, of an edge, or the value of a label.
 *
 *   offset size   meaning
 *     0     1     format, = 1
 *     1     2     number of features in the row, at most WEIR_ROW_FEATURES_MAX, little-endian
 *     3   (n+7)/8 presence bits, feature 0 in bit 0 of the first byte
 *     …     …     for each present feature, in order:
 *                   number    8  IEEE 754 double, little-endian; never NaN or infinite
 *                   time      8  microseconds since 1970, little-endian two's complement
 *                   category  1  length, then so many bytes; UTF-8 is not checked
 *
 * The kinds are the schema's and not in the row. Rows are hostile until weir_row_check has passed them.
 * Every function is [any].
 */
#ifndef WEIR_STORE_FORMAT_ROW_H
#define WEIR_STORE_FORMAT_ROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/store/base/err.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_ROW_FEATURES_MAX 256u
#define WEIR_ROW_TEXT_MAX     255u
#define WEIR_ROW_BYTES_MAX    (3u + 32u + WEIR_ROW_FEATURES_MAX * (1u + WEIR_ROW_TEXT_MAX))

typedef enum weir_value_kind { WEIR_VALUE_NUMBER, WEIR_VALUE_TIME, WEIR_VALUE_CATEGORY } weir_value_kind;

/* A plain value; text is borrowed and not ended. */
typedef struct weir_value {
    bool present;
    uint8_t text_length;
    double number;
    int64_t time_us;
    const char *text;
} weir_value;

/* The bytes that values need; at most WEIR_ROW_BYTES_MAX. */
size_t weir_row_size(const weir_value_kind *kinds, const weir_value *values, size_t count);
/* Writes them; returns the same size. The room is the caller's promise. */
size_t weir_row_write(const weir_value_kind *kinds, const weir_value *values, size_t count, uint8_t *row);
/* WEIR_ECORRUPT a row that breaks the table above or has more features than kinds. */
weir_err weir_row_check(const weir_value_kind *kinds, size_t count, const uint8_t *row, size_t length);
/* Reads a checked row; features that the row is too short for are absent (the schema has grown since). */
void weir_row_read(const weir_value_kind *kinds, size_t count, const uint8_t *row, size_t length, weir_value *values);
/* The same, but leaves what is present in values alone: going from the newest row to the oldest, each feature ends
 * with its newest value. Returns how many features are present then. */
size_t weir_row_fill(const weir_value_kind *kinds, size_t count, const uint8_t *row, size_t length, weir_value *values);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_STORE_FORMAT_ROW_H */

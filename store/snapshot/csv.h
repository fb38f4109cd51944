/* SPDX-License-Identifier: Apache-2.0 */
/* csv.h - comma-separated rows under a line of names, quoted as RFC 4180 says, read from a mapped file. */
#ifndef WEIR_STORE_CSV_H
#define WEIR_STORE_CSV_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/store/base/buf.h>

#define WEIR_CSV_COLUMNS_MAX 4096u

typedef struct weir_csv weir_csv;

/* Reads the names.  WEIR_EDATA, WEIR_ENOTFOUND, WEIR_ENOMEM. */
weir_err weir_csv_open(const char *path, weir_csv **csvp);
void weir_csv_close(weir_csv *csv); /* NULL is allowed */
/* Back to the first row. */
void weir_csv_rewind(weir_csv *csv);
uint32_t weir_csv_columns(const weir_csv *csv);
const char *weir_csv_name(const weir_csv *csv, uint32_t column);
/* false in *foundp: the end.  WEIR_EDATA a row of another width, a quote that is not closed, a byte 0: names the
 * line. */
weir_err weir_csv_next(weir_csv *csv, bool *foundp);
/* Ended by 0; until the next row. */
const char *weir_csv_field(const weir_csv *csv, uint32_t column);
/* "file:line" of the row at hand, until the next call. */
const char *weir_csv_place(weir_csv *csv);

#endif /* WEIR_STORE_CSV_H */

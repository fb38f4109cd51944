/* SPDX-License-Identifier: Apache-2.0 */
/* csv.c - one row at a time, its fields unquoted into one buffer. */
#include "csv.h"

#include <stdio.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>

#include "npy_private.h"

#define ROW_BYTES_MAX (16u << 20)

struct weir_csv {
    char *path;
    char *place;
    weir_mapping mapping;
    size_t at, first; /* next byte; first byte after the names */
    uint64_t line, next_line;
    weir_buf names, row; /* fields, each ended by 0 */
    size_t *name_starts, *starts;
    uint32_t columns;
};

static weir_err csv_broken(weir_csv *csv, const char *what) {
    return WEIR_ERR(WEIR_EDATA, "%s: %s", weir_csv_place(csv), what);
}

static int csv_peek(const weir_csv *csv) {
    return csv->at < csv->mapping.length ? csv->mapping.bytes[csv->at] : -1;
}

static bool csv_at_line_end(const weir_csv *csv) {
    int c = csv_peek(csv);
    return c == -1 || c == '\n' ||
           (c == '\r' && csv->at + 1 < csv->mapping.length && csv->mapping.bytes[csv->at + 1] == '\n');
}

static weir_err csv_read_field(weir_csv *csv, weir_buf *out) {
    bool quoted = csv_peek(csv) == '"';
    csv->at += quoted;
    for (; quoted || (!csv_at_line_end(csv) && csv_peek(csv) != ','); csv->at++) {
        int c = csv_peek(csv);
        if (c == -1) return csv_broken(csv, "a quote is not closed");
        if (c == 0) return csv_broken(csv, "a byte 0 is in the text");
        if (c == '\n') csv->next_line++;
        if (quoted && c == '"') {
            csv->at++;
            if (csv_peek(csv) != '"') break; /* two of them stand for one */
        }
        weir_buf_byte(out, (char)c);
    }
    weir_buf_byte(out, 0);
    if (!csv_at_line_end(csv) && csv_peek(csv) != ',') return csv_broken(csv, "text goes on after a closed quote");
    return weir_buf_err(out);
}

/* Fields up to the end of the line; starts has room for max. */
static weir_err csv_read_row(weir_csv *csv, weir_buf *out, size_t *starts, uint32_t max, uint32_t *countp) {
    weir_err err = WEIR_OK;
    bool more = true;
    *countp = 0;
    weir_buf_clear(out);
    csv->line = csv->next_line;
    while (!err && more) {
        if (*countp == max) return csv_broken(csv, "there are more fields than names, or than 4096");
        starts[(*countp)++] = out->length;
        err = csv_read_field(csv, out);
        more = csv_peek(csv) == ',';
        if (more) csv->at++;
    }
    if (csv_peek(csv) == '\r') csv->at++;
    if (csv_peek(csv) == '\n') csv->at++;
    csv->next_line++;
    WEIR_ASSERT(csv->at <= csv->mapping.length);
    return err;
}

weir_err weir_csv_open(const char *path, weir_csv **csvp) {
    *csvp = NULL;
    weir_csv *csv = weir_calloc(1, sizeof *csv);
    if (!csv) return WEIR_NOMEM("while reading %s", path);
    csv->path = weir_strdup(path);
    weir_err err = csv->path ? weir_mapping_open(path, &csv->mapping) : WEIR_NOMEM("while reading %s", path);
    if (err) goto done;
    csv->name_starts = weir_calloc(WEIR_CSV_COLUMNS_MAX, sizeof *csv->name_starts);
    csv->starts = weir_calloc(WEIR_CSV_COLUMNS_MAX, sizeof *csv->starts);
    csv->place = weir_malloc(strlen(path) + 32);
    csv->next_line = 1;
    csv->names.length_max = csv->row.length_max = ROW_BYTES_MAX;
    if (!csv->name_starts || !csv->starts || !csv->place) {
        err = WEIR_NOMEM("while reading %s", path);
    } else if (csv->mapping.length == 0) {
        err = WEIR_ERR(WEIR_EDATA, "%s is empty; its first line names the columns", path);
    } else {
        err = csv_read_row(csv, &csv->names, csv->name_starts, WEIR_CSV_COLUMNS_MAX, &csv->columns);
        csv->first = csv->at;
    }
done:
    if (err) {
        weir_csv_close(csv);
        return err;
    }
    *csvp = csv;
    return WEIR_OK;
}

void weir_csv_close(weir_csv *csv) {
    if (!csv) return;
    weir_mapping_close(&csv->mapping);
    weir_buf_free(&csv->names);
    weir_buf_free(&csv->row);
    weir_free(csv->name_starts);
    weir_free(csv->starts);
    weir_free(csv->place);
    weir_free(csv->path);
    weir_free(csv);
}

void weir_csv_rewind(weir_csv *csv) {
    csv->at = csv->first;
    csv->next_line = 2;
}

uint32_t weir_csv_columns(const weir_csv *csv) {
    return csv->columns;
}

const char *weir_csv_name(const weir_csv *csv, uint32_t column) {
    WEIR_ASSERT(column < csv->columns);
    return csv->names.bytes + csv->name_starts[column];
}

weir_err weir_csv_next(weir_csv *csv, bool *foundp) {
    uint32_t count;
    *foundp = csv->at < csv->mapping.length;
    if (!*foundp) return WEIR_OK;
    weir_err err = csv_read_row(csv, &csv->row, csv->starts, csv->columns, &count);
    if (!err && count != csv->columns) err = csv_broken(csv, "there are fewer fields than names");
    return err;
}

const char *weir_csv_field(const weir_csv *csv, uint32_t column) {
    WEIR_ASSERT(column < csv->columns);
    return csv->row.bytes + csv->starts[column];
}

const char *weir_csv_place(weir_csv *csv) {
    snprintf(csv->place, strlen(csv->path) + 32, "%s:%llu", csv->path, (unsigned long long)csv->line);
    return csv->place;
}

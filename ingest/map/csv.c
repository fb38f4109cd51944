/* SPDX-License-Identifier: Apache-2.0 */
/* csv.c - one line of cells, as RFC 4180 has them: a quoted cell may hold separators, and quotes written twice. */
#include <string.h>

#include <weir/ingest/map/map.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/utf8.h>

#include "message.h"

typedef struct csv_line {
    const char *start, *next, *end;
    char separator;
    weir_arena *arena;
} csv_line;

static weir_err csv_fault(const csv_line *c, const char *what) {
    return WEIR_ERR(WEIR_EDATA, "byte %zu: %s", (size_t)(c->next - c->start) + 1, what);
}

/* From the opening quote to behind the closing one; quotes that are written twice are one in the cell. */
static weir_err csv_quoted(csv_line *c, weir_cell *cell) {
    const char *from = ++c->next;
    for (;; c->next++) {
        c->next = c->next < c->end ? memchr(c->next, '"', (size_t)(c->end - c->next)) : NULL;
        if (!c->next) {
            c->next = c->end;
            return csv_fault(c, "a quoted cell without a closing quote");
        }
        if (c->next + 1 == c->end || c->next[1] != '"') break;
        c->next++;
    }
    size_t room = (size_t)(c->next - from) + 1;
    char *text = weir_arena_alloc_aligned(c->arena, 1, room), *to = text;
    if (!text) return WEIR_NOMEM("for a line of CSV");
    for (const char *p = from; p < c->next; p++) {
        if (*p == '"') p++;
        *to++ = *p;
    }
    WEIR_ASSERT((size_t)(to - text) < room);
    c->next++;
    *cell = (weir_cell){WEIR_CELL_TEXT, (uint32_t)(to - text), (size_t)(from - c->start) + 1, text};
    return WEIR_OK;
}

static weir_err csv_cell(csv_line *c, weir_cell *cell) {
    const char *from = c->next;
    if (c->next < c->end && *c->next == '"') {
        weir_err err = csv_quoted(c, cell);
        if (err) return err;
    } else {
        while (c->next < c->end && *c->next != c->separator && *c->next != '"')
            c->next++;
        *cell = (weir_cell){WEIR_CELL_TEXT, (uint32_t)(c->next - from), (size_t)(from - c->start) + 1, from};
    }
    if (c->next < c->end && *c->next != c->separator)
        return csv_fault(c, "a quote inside a cell, or something after a closing quote");
    if (cell->length == 0) cell->kind = WEIR_CELL_ABSENT;
    if (weir_utf8_valid(cell->text, cell->length)) return WEIR_OK;
    return WEIR_ERR(WEIR_EDATA, "byte %zu: a cell with bytes that are not UTF-8", cell->at);
}

weir_err weir_message_csv(char separator, const uint32_t *field_of_column, size_t column_count, const char *bytes,
                          size_t length, weir_arena *arena, weir_cell *cells, size_t cell_count) {
    memset(cells, 0, cell_count * sizeof *cells);
    while (length && (bytes[length - 1] == '\n' || bytes[length - 1] == '\r'))
        length--;
    csv_line c = {bytes, bytes, bytes + length, separator, arena};
    if (length > WEIR_MESSAGE_BYTES_MAX) {
        return WEIR_ERR(WEIR_EDATA, "the line has %zu bytes, at most %u are accepted", length, WEIR_MESSAGE_BYTES_MAX);
    }
    for (size_t column = 0; column < column_count; column++) {
        weir_cell cell;
        if (column > 0) {
            if (c.next == c.end) return csv_fault(&c, "the line has too few cells");
            c.next++;
        }
        weir_err err = csv_cell(&c, &cell);
        if (err) return err;
        uint32_t field = field_of_column[column];
        WEIR_ASSERT(field == WEIR_SCHEMA_NONE || field < cell_count);
        if (field != WEIR_SCHEMA_NONE) cells[field] = cell;
    }
    return c.next == c.end ? WEIR_OK : csv_fault(&c, "the line has too many cells");
}

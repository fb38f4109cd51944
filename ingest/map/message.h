/* SPDX-License-Identifier: Apache-2.0 */
/*
 * message.h - a message read once: the fields that a source names, by their index.
 *
 * Both readers check the whole message, also what the schema does not ask for: a message that is half JSON is a dead
 * letter, whatever the schema takes from it.
 */
#ifndef WEIR_INGEST_MESSAGE_H
#define WEIR_INGEST_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/store/base/arena.h>
#include <weir/store/base/err.h>
#include <weir/store/schema/schema.h>

typedef enum weir_cell_kind {
    WEIR_CELL_ABSENT, /* not there, JSON null, or an empty CSV cell */
    WEIR_CELL_TEXT,
    WEIR_CELL_NUMBER, /* text is the number as written */
    WEIR_CELL_TRUTH,  /* "true" or "false"             */
    WEIR_CELL_NESTED, /* an object or array where a value was wanted */
} weir_cell_kind;

/* text is borrowed from the message, or from the arena where escapes had to be undone. at is its byte in the message,
 * the first being 1; 0: it is not there. */
typedef struct weir_cell {
    weir_cell_kind kind;
    uint32_t length;
    size_t at;
    const char *text;
} weir_cell;

typedef struct weir_paths weir_paths;

/* Compiles a source's JSON paths.  WEIR_ENOMEM. */
weir_err weir_paths_open(const weir_schema_source *source, weir_paths **pathsp);
void weir_paths_close(weir_paths *paths);

/* cells: one a field of the source; set whole.  WEIR_EDATA "byte 120: …"; WEIR_ENOMEM. */
weir_err weir_message_json(weir_paths *paths, const char *bytes, size_t length, weir_arena *arena, weir_cell *cells,
                           size_t cell_count);
/* One line, without its end; quoted cells as RFC 4180 has them. field_of_column: the field of each column or NONE. */
weir_err weir_message_csv(char separator, const uint32_t *field_of_column, size_t column_count, const char *bytes,
                          size_t length, weir_arena *arena, weir_cell *cells, size_t cell_count);

#endif /* WEIR_INGEST_MESSAGE_H */

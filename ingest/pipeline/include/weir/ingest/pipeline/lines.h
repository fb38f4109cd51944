/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lines.h - the lines of a file, each with its number, in large pieces.
 *
 * THREADS: a handle belongs to one thread at a time.
 */
#ifndef WEIR_INGEST_PIPELINE_LINES_H
#define WEIR_INGEST_PIPELINE_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/store/base/err.h>
#include <weir/store/schema/schema.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_LINE_MAX (2u << 20) /* bytes; a longer one is handed out cut */

typedef struct weir_lines weir_lines;

/* Borrowed until the next call; without its end, which is "\n" or "\r\n". */
typedef struct weir_line {
    uint64_t number; /* from 0 on; empty lines count, and are not handed out */
    const char *bytes;
    size_t length;
    uint64_t cut; /* bytes are only its beginning: so many more it has */
} weir_line;

/* WEIR_ENOTFOUND and the like, as weir_file_open; WEIR_ENOMEM.  Blocks on the disk. */
weir_err weir_lines_open(const char *path, weir_lines **linesp);
/* Up to capacity lines; *countp is 0 at the end.  WEIR_EIO.  Blocks on the disk. */
weir_err weir_lines_next(weir_lines *lines, weir_line *out, size_t capacity, size_t *countp);
/* The first line of a CSV file, and it only names the source's columns.  [any] */
bool weir_line_names_columns(const weir_line *line, const weir_schema_source *source);
uint64_t weir_lines_number(const weir_lines *lines); /* of the line to come */
/* NULL is allowed. */
void weir_lines_close(weir_lines *lines);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_INGEST_PIPELINE_LINES_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lines.c - a window over a file, cut at newlines.
 *
 * The window moves only when it has no whole line any more, so what was handed out stays where it is until the next
 * call.
 */
#include <string.h>

#include <weir/ingest/pipeline/lines.h>
#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/file.h>

#define WINDOW_BYTES (2u * WEIR_LINE_MAX)
#define PIECE_BYTES  (64u << 10) /* read at once of what is passed over */

struct weir_lines {
    weir_file *file;
    uint64_t number;   /* of the next line to be cut               */
    uint64_t position; /* of the byte after the window             */
    size_t begin, end; /* of what is in the window and not yet cut */
    bool at_end;       /* the file has no more than the window     */
    char *window;
    char piece[PIECE_BYTES];
};

weir_err weir_lines_open(const char *path, weir_lines **linesp) {
    *linesp = NULL;
    weir_lines *lines = weir_calloc(1, sizeof *lines);
    if (lines) lines->window = weir_malloc(WINDOW_BYTES);
    weir_err err = lines && lines->window ? weir_file_open(path, WEIR_FILE_READ, &lines->file)
                                          : WEIR_NOMEM("while reading %s", path);
    if (err) {
        weir_lines_close(lines);
        return err;
    }
    *linesp = lines;
    return WEIR_OK;
}

void weir_lines_close(weir_lines *lines) {
    if (!lines) return;
    if (lines->file) (void)weir_file_close(lines->file); /* read only: nothing can be lost */
    weir_free(lines->window);
    weir_free(lines);
}

uint64_t weir_lines_number(const weir_lines *lines) {
    return lines->number;
}

/* Of a line that is too long and goes on behind the window: how many bytes more it has, and the last of them. What is
 * read next stands behind its end. After an error nothing has moved: the next call finds the same line again. */
static weir_err lines_pass(weir_lines *lines, uint64_t *restp, char *lastp) {
    uint64_t at = lines->position;
    const char *newline = NULL;
    size_t got = PIECE_BYTES;
    while (!newline && got == PIECE_BYTES) {
        weir_err err = weir_file_read_at(lines->file, at, lines->piece, PIECE_BYTES, &got);
        if (err) return err;
        newline = memchr(lines->piece, '\n', got);
        size_t length = newline ? (size_t)(newline - lines->piece) : got;
        if (length) *lastp = lines->piece[length - 1];
        at += length;
    }
    *restp = at - lines->position;
    lines->position = at + (newline ? 1 : 0);
    lines->at_end = !newline;
    return WEIR_OK;
}

/* The next line of the window; *foundp false: it has no whole one. */
static weir_err lines_cut_one(weir_lines *lines, weir_line *line, bool *foundp) {
    const char *bytes = lines->window + lines->begin;
    size_t left = lines->end - lines->begin;
    const char *newline = left ? memchr(bytes, '\n', left) : NULL;
    *foundp = left > 0 && (newline || lines->at_end || left > WEIR_LINE_MAX);
    if (!*foundp) return WEIR_OK;
    uint64_t length = newline ? (size_t)(newline - bytes) : left, rest = 0;
    char last = length ? bytes[length - 1] : '\n';
    weir_err err = newline || lines->at_end ? WEIR_OK : lines_pass(lines, &rest, &last);
    if (err) return err;
    lines->begin += length + (newline ? 1 : 0);
    length += rest - (last == '\r' ? 1 : 0);
    size_t kept = length < WEIR_LINE_MAX ? (size_t)length : WEIR_LINE_MAX;
    *line = (weir_line){lines->number++, bytes, kept, length - kept};
    return WEIR_OK;
}

/* The whole lines of the window that are not empty; after an error, those before it. */
static weir_err lines_cut(weir_lines *lines, weir_line *out, size_t capacity, size_t *countp) {
    bool found = true;
    weir_err err = WEIR_OK;
    *countp = 0;
    while (!err && found && *countp < capacity) {
        err = lines_cut_one(lines, &out[*countp], &found);
        *countp += !err && found && out[*countp].length > 0;
    }
    WEIR_ASSERT(lines->begin <= lines->end && lines->end <= WINDOW_BYTES);
    return err;
}

weir_err weir_lines_next(weir_lines *lines, weir_line *out, size_t capacity, size_t *countp) {
    for (;;) {
        weir_err err = lines_cut(lines, out, capacity, countp);
        if (*countp) return WEIR_OK; /* an error after good lines is met again by the next call */
        if (err || lines->at_end) return err;
        /* The window moves: what is left goes to its begin, and more of the file behind that. */
        size_t got;
        memmove(lines->window, lines->window + lines->begin, lines->end - lines->begin);
        lines->end -= lines->begin;
        lines->begin = 0;
        size_t room = WINDOW_BYTES - lines->end;
        WEIR_ASSERT(room > 0); /* a line that fills more than half of the window was cut */
        err = weir_file_read_at(lines->file, lines->position, lines->window + lines->end, room, &got);
        if (err) return err;
        lines->at_end = got < room;
        lines->end += got;
        lines->position += got;
    }
}

bool weir_line_names_columns(const weir_line *line, const weir_schema_source *source) {
    const char *rest = line->bytes;
    size_t length = line->length;
    if (source->format != WEIR_SCHEMA_CSV || line->number != 0) return false;
    for (uint32_t i = 0; i < source->columns.count; i++) {
        const char *name = source->columns.texts[i];
        size_t name_length = strlen(name);
        if (i > 0) {
            if (length == 0 || *rest != source->separator) return false;
            rest++, length--;
        }
        if (length < name_length || memcmp(rest, name, name_length) != 0) return false;
        rest += name_length;
        length -= name_length;
    }
    return length == 0;
}

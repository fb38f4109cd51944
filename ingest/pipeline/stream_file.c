/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream_file.c - the lines of a file.
 *
 * A window over the file holds whole lines; one longer than LINE_MAX is handed out cut, which makes it a dead letter,
 * and its rest is passed over.
 */
#include <string.h>

#include <weir/base/alloc.h>
#include <weir/base/file.h>
#include <weir/base/hash.h>
#include <weir/ingest/map.h>

#include "stream.h"

#define LINE_MAX     (2u * WEIR_MESSAGE_BYTES_MAX)
#define WINDOW_BYTES (2u * LINE_MAX)
#define HASH_BYTES   (1u << 20)

typedef struct stream_file {
    weir_stream stream;
    weir_file *file;
    const weir_schema_source *source;
    uint32_t partition;
    uint64_t start, line; /* lines below start are passed over; line is the next to be cut */
    uint64_t position;    /* of the byte behind the window */
    size_t begin, end;    /* of what is in the window and not yet cut */
    bool at_end;          /* the file has no more than the window */
    bool skipping;        /* the rest of a line that was too long */
    char *window;
    weir_stream_record records[WEIR_STREAM_RECORDS_MAX];
} stream_file;

/* "account,amount": what the first line of a CSV file says if it only names the columns. */
static bool is_column_line(const weir_schema_source *source, const char *line, size_t length) {
    if (source->format != WEIR_SCHEMA_CSV) return false;
    for (uint32_t i = 0; i < source->columns.count; i++) {
        const char *name = source->columns.texts[i];
        size_t name_length = strlen(name);
        if (i > 0) {
            if (length == 0 || *line != source->separator) return false;
            line++, length--;
        }
        if (length < name_length || memcmp(line, name, name_length) != 0) return false;
        line += name_length;
        length -= name_length;
    }
    return length == 0;
}

static weir_err refill(stream_file *s) {
    size_t got;
    memmove(s->window, s->window + s->begin, s->end - s->begin);
    s->end -= s->begin;
    s->begin = 0;
    weir_err err = weir_file_read_at(s->file, s->position, s->window + s->end, WINDOW_BYTES - s->end, &got);
    if (err) return err;
    s->at_end = got < WINDOW_BYTES - s->end;
    s->end += got;
    s->position += got;
    return WEIR_OK;
}

/* The next line of the window without its end; false: there is no whole one. */
static bool cut_line(stream_file *s, const char **linep, size_t *lengthp, bool *cutp) {
    const char *line = s->window + s->begin;
    size_t left = s->end - s->begin;
    const char *newline = left ? memchr(line, '\n', left) : NULL;
    if (left == 0 || (!newline && !s->at_end && left < LINE_MAX)) return false;
    size_t length = newline ? (size_t)(newline - line) : left;
    s->begin += length + (newline ? 1 : 0);
    s->skipping = !newline && !s->at_end;
    *cutp = s->skipping || length > LINE_MAX;
    if (length > LINE_MAX) length = LINE_MAX;
    if (length && line[length - 1] == '\r' && !*cutp) length--;
    *linep = line;
    *lengthp = length;
    return true;
}

/* What is left of a line that was cut. */
static void skip_rest(stream_file *s) {
    const char *newline = s->end > s->begin ? memchr(s->window + s->begin, '\n', s->end - s->begin) : NULL;
    s->begin = newline ? (size_t)(newline - s->window) + 1 : s->end;
    s->skipping = !newline && !s->at_end;
}

static bool wanted(const stream_file *s, const char *line, size_t length, uint64_t number) {
    return number >= s->start && length > 0 && !(number == 0 && is_column_line(s->source, line, length));
}

static void cut_lines(stream_file *s, size_t *countp) {
    const char *line;
    size_t length;
    bool cut;
    if (s->skipping) skip_rest(s);
    while (*countp < WEIR_STREAM_RECORDS_MAX && !s->skipping && cut_line(s, &line, &length, &cut)) {
        uint64_t number = s->line++;
        if (!wanted(s, line, length, number)) continue;
        s->records[(*countp)++] = (weir_stream_record){
            .partition = s->partition, .cut = cut, .offset = number, .value = line, .value_length = length};
    }
}

/* The window moves only when it has no whole line any more, so what was handed out stays where it is until then. */
static weir_err poll_next(weir_stream *stream, const weir_stream_record **recordsp, size_t *countp, bool *emptyp) {
    stream_file *s = (stream_file *)stream;
    *recordsp = s->records;
    *countp = 0;
    cut_lines(s, countp);
    while (*countp == 0 && !s->at_end) {
        weir_err err = refill(s);
        if (err) return err;
        cut_lines(s, countp);
    }
    *emptyp = *countp == 0;
    return WEIR_OK;
}

static uint64_t end_of(weir_stream *stream, uint32_t partition) {
    (void)partition;
    return ((stream_file *)stream)->line;
}

static void close_file(weir_stream *stream) {
    stream_file *s = (stream_file *)stream;
    weir_file_close(s->file); /* read only: nothing can be lost */
    weir_free(s->window);
    weir_free(s);
}

static const weir_stream_ops ops = {.poll = poll_next, .end = end_of, .close = close_file, .ends = true};

weir_err weir_stream_file_open(const char *path, const weir_schema_source *source, uint32_t partition,
                               weir_stream_start_at start_at, void *context, weir_stream **streamp) {
    weir_stream_start start = {0};
    *streamp = NULL;
    stream_file *s = weir_calloc(1, sizeof *s);
    if (!s) return WEIR_ERR(WEIR_ENOMEM, "no memory to read %s", path);
    s->stream.ops = &ops;
    s->source = source;
    s->partition = partition;
    s->window = weir_malloc(WINDOW_BYTES);
    weir_err err = s->window ? weir_file_open(path, WEIR_FILE_READ, &s->file)
                             : WEIR_ERR(WEIR_ENOMEM, "no memory to read %s", path);
    if (!err) err = start_at(context, partition, 0, &start);
    if (err) {
        close_file(&s->stream);
        return err;
    }
    s->start = start.offset;
    *streamp = &s->stream;
    return WEIR_OK;
}

weir_err weir_stream_file_hash(const char *path, uint64_t *hashp) {
    weir_file *file = NULL;
    size_t got = HASH_BYTES;
    *hashp = 0;
    char *bytes = weir_malloc(HASH_BYTES);
    weir_err err =
        bytes ? weir_file_open(path, WEIR_FILE_READ, &file) : WEIR_ERR(WEIR_ENOMEM, "no memory to read %s", path);
    for (uint64_t at = 0; !err && got == HASH_BYTES; at += got) {
        err = weir_file_read_at(file, at, bytes, HASH_BYTES, &got);
        if (!err) *hashp = weir_xxh3(bytes, got, *hashp);
    }
    if (file) weir_err_keep(&err, weir_file_close(file));
    weir_free(bytes);
    if (*hashp == 0) *hashp = 1;
    return err;
}

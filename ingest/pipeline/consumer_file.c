/* SPDX-License-Identifier: Apache-2.0 */
/* consumer_file.c - the lines of a file as records; a line that was cut becomes a dead letter, because it says so. */
#include <weir/ingest/pipeline/lines.h>
#include <weir/store/base/alloc.h>
#include <weir/store/base/file.h>
#include <weir/store/base/hash.h>

#include "consumer.h"

#define HASH_BYTES (1u << 20)

typedef struct stream_file {
    weir_consumer stream;
    weir_lines *lines;
    const weir_schema_source *source;
    uint32_t partition;
    uint64_t start; /* lines below it are passed over */
    weir_line raw[WEIR_CONSUMER_RECORDS_MAX];
    weir_consumer_record records[WEIR_CONSUMER_RECORDS_MAX];
} stream_file;

static bool is_wanted(const stream_file *s, const weir_line *line) {
    return line->number >= s->start && !weir_line_names_columns(line, s->source);
}

static weir_err poll_next(weir_consumer *stream, const weir_consumer_record **recordsp, size_t *countp, bool *emptyp) {
    stream_file *s = (stream_file *)stream;
    size_t count;
    *recordsp = s->records;
    *countp = 0;
    weir_err err = weir_lines_next(s->lines, s->raw, WEIR_CONSUMER_RECORDS_MAX, &count);
    for (size_t i = 0; !err && i < count; i++) {
        const weir_line *line = &s->raw[i];
        if (!is_wanted(s, line)) continue;
        s->records[(*countp)++] = (weir_consumer_record){.partition = s->partition,
                                                         .cut = line->cut,
                                                         .offset = line->number,
                                                         .value = line->bytes,
                                                         .value_length = line->length};
    }
    *emptyp = count == 0;
    return err;
}

static uint64_t end_of(weir_consumer *stream, uint32_t partition) {
    (void)partition;
    return weir_lines_number(((stream_file *)stream)->lines);
}

static void close_file(weir_consumer *stream) {
    stream_file *s = (stream_file *)stream;
    weir_lines_close(s->lines);
    weir_free(s);
}

static const weir_consumer_ops ops = {.poll = poll_next, .end = end_of, .close = close_file, .ends = true};

weir_err weir_consumer_file_open(const char *path, const weir_schema_source *source, uint32_t partition,
                                 weir_consumer_start_at start_at, void *context, weir_consumer **streamp) {
    weir_consumer_start start = {0};
    *streamp = NULL;
    stream_file *s = weir_calloc(1, sizeof *s);
    if (!s) return WEIR_NOMEM("while reading %s", path);
    s->stream.ops = &ops;
    s->source = source;
    s->partition = partition;
    weir_err err = weir_lines_open(path, &s->lines);
    if (!err) err = start_at(context, partition, 0, &start);
    if (err) {
        close_file(&s->stream);
        return err;
    }
    s->start = start.offset;
    *streamp = &s->stream;
    return WEIR_OK;
}

weir_err weir_consumer_file_hash(const char *path, uint64_t *hashp) {
    weir_file *file = NULL;
    size_t got = HASH_BYTES;
    *hashp = 0;
    char *bytes = weir_malloc(HASH_BYTES);
    weir_err err = bytes ? weir_file_open(path, WEIR_FILE_READ, &file) : WEIR_NOMEM("while reading %s", path);
    for (uint64_t at = 0; !err && got == HASH_BYTES; at += got) {
        err = weir_file_read_at(file, at, bytes, HASH_BYTES, &got);
        if (!err) *hashp = weir_xxh3(bytes, got, *hashp);
    }
    if (file) weir_err_keep(&err, weir_file_close(file));
    weir_free(bytes);
    if (*hashp == 0) *hashp = 1;
    return err;
}

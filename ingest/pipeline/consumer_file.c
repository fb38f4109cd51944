/* SPDX-License-Identifier: Apache-2.0 */
/* consumer_file.c - the lines of a file as records; one that is too long says that it was cut, and is a dead letter. */
#include <weir/ingest/pipeline/lines.h>
#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/file.h>
#include <weir/store/base/hash.h>

#include "consumer.h"

#define HASH_BYTES (1u << 20)

typedef struct consumer_file {
    weir_consumer consumer;
    weir_lines *lines;
    const weir_schema_source *source;
    uint32_t partition;
    uint64_t start; /* lines below it are passed over */
    weir_line raw[WEIR_CONSUMER_RECORDS_MAX];
    weir_consumer_record records[WEIR_CONSUMER_RECORDS_MAX];
} consumer_file;

static weir_err consumer_file_poll(weir_consumer *consumer, const weir_consumer_record **recordsp, size_t *countp,
                                   bool *emptyp) {
    consumer_file *c = (consumer_file *)consumer;
    size_t count;
    *recordsp = c->records;
    *countp = 0;
    weir_err err = weir_lines_next(c->lines, c->raw, WEIR_CONSUMER_RECORDS_MAX, &count);
    for (size_t i = 0; !err && i < count; i++) {
        const weir_line *line = &c->raw[i];
        if (line->number < c->start || weir_line_names_columns(line, c->source)) continue;
        WEIR_ASSERT(line->length <= WEIR_LINE_MAX);
        c->records[(*countp)++] = (weir_consumer_record){.partition = c->partition,
                                                         .cut = line->cut,
                                                         .offset = line->number,
                                                         .value = line->bytes,
                                                         .value_length = line->length};
    }
    *emptyp = count == 0;
    return err;
}

static uint64_t consumer_file_end(weir_consumer *consumer, uint32_t partition) {
    (void)partition;
    return weir_lines_number(((consumer_file *)consumer)->lines);
}

static void consumer_file_close(weir_consumer *consumer) {
    consumer_file *c = (consumer_file *)consumer;
    weir_lines_close(c->lines);
    weir_free(c);
}

weir_err weir_consumer_file_open(const char *path, const weir_schema_source *source, uint32_t partition,
                                 weir_consumer_start_at start_at, void *context, weir_consumer **consumerp) {
    static const weir_consumer_ops ops = {
        .poll = consumer_file_poll, .end = consumer_file_end, .close = consumer_file_close, .ends = true};
    weir_consumer_start start = {0};
    *consumerp = NULL;
    consumer_file *c = weir_calloc(1, sizeof *c);
    if (!c) return WEIR_NOMEM("while reading %s", path);
    c->consumer.ops = &ops;
    c->source = source;
    c->partition = partition;
    weir_err err = weir_lines_open(path, &c->lines);
    if (!err) err = start_at(context, partition, 0, &start);
    if (err) {
        consumer_file_close(&c->consumer);
        return err;
    }
    c->start = start.offset;
    *consumerp = &c->consumer;
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

/* SPDX-License-Identifier: Apache-2.0 */
/* consumer_eventlog.c - one reader a partition, asked in turn. */
#include <weir/store/base/alloc.h>

#include "consumer.h"

typedef struct stream_eventlog {
    weir_consumer stream;
    weir_eventlog *log; /* borrowed */
    weir_eventlog_reader **readers;
    uint32_t partitions, turn;
    weir_record raw[WEIR_CONSUMER_RECORDS_MAX];
    weir_consumer_record records[WEIR_CONSUMER_RECORDS_MAX];
} stream_eventlog;

static void convert(stream_eventlog *s, uint32_t partition, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const weir_record *r = &s->raw[i];
        s->records[i] = (weir_consumer_record){.partition = partition,
                                               .offset = r->offset,
                                               .time_us = r->time_us,
                                               .key = r->key,
                                               .key_length = r->key_length,
                                               .value = r->value,
                                               .value_length = r->value_length};
    }
}

/* From the partition behind the last one that had something, so that a busy one does not starve the others. */
static weir_err poll_next(weir_consumer *stream, const weir_consumer_record **recordsp, size_t *countp, bool *emptyp) {
    stream_eventlog *s = (stream_eventlog *)stream;
    *recordsp = s->records;
    *countp = 0;
    for (uint32_t tried = 0; tried < s->partitions; tried++) {
        uint32_t partition = s->turn;
        s->turn = (s->turn + 1) % s->partitions;
        weir_err err = weir_eventlog_reader_next(s->readers[partition], s->raw, WEIR_CONSUMER_RECORDS_MAX, countp);
        if (err) return err;
        if (*countp == 0) continue;
        convert(s, partition, *countp);
        *emptyp = false;
        return WEIR_OK;
    }
    *emptyp = true;
    return WEIR_OK;
}

static uint64_t end_of(weir_consumer *stream, uint32_t partition) {
    weir_eventlog_partition_stats stats;
    weir_err err = weir_eventlog_stats_get(((stream_eventlog *)stream)->log, partition, &stats);
    return err ? 0 : stats.offset_durable;
}

static void close_readers(weir_consumer *stream) {
    stream_eventlog *s = (stream_eventlog *)stream;
    for (uint32_t i = 0; s->readers && i < s->partitions; i++)
        weir_eventlog_reader_close(s->readers[i]);
    weir_free(s->readers);
    weir_free(s);
}

static const weir_consumer_ops ops = {.poll = poll_next, .end = end_of, .close = close_readers};

static weir_err open_reader(stream_eventlog *s, uint32_t partition, weir_consumer_start_at start_at, void *context) {
    weir_eventlog_partition_stats stats;
    weir_consumer_start start = {0};
    weir_err err = weir_eventlog_stats_get(s->log, partition, &stats);
    if (!err) err = start_at(context, partition, stats.offset_begin, &start);
    return err ? err : weir_eventlog_reader_open(s->log, partition, start.offset, &s->readers[partition]);
}

weir_err weir_consumer_eventlog_open(weir_eventlog *log, weir_consumer_start_at start_at, void *context,
                                     weir_consumer **streamp) {
    *streamp = NULL;
    stream_eventlog *s = weir_calloc(1, sizeof *s);
    if (!s) return WEIR_NOMEM("while reading the event log");
    s->stream.ops = &ops;
    s->log = log;
    s->partitions = weir_eventlog_partitions(log);
    s->readers = weir_calloc(s->partitions, sizeof(weir_eventlog_reader *));
    weir_err err = s->readers ? WEIR_OK : WEIR_NOMEM("while reading the event log");
    for (uint32_t i = 0; !err && i < s->partitions; i++)
        err = open_reader(s, i, start_at, context);
    if (err) {
        close_readers(&s->stream);
        return err;
    }
    *streamp = &s->stream;
    return WEIR_OK;
}

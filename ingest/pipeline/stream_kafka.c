/* SPDX-License-Identifier: Apache-2.0 */
/* stream_kafka.c - every partition of a topic, assigned from the offsets that the store has. */
#include <weir/base/alloc.h>
#include <weir/ingest/kafka.h>

#include "stream.h"

#define POLL_US 50000

typedef struct stream_kafka {
    weir_stream stream;
    weir_kafka_consumer *consumer;
    uint64_t *ends; /* of the partitions, when the stream was opened: the consumer learns them only as it reads */
    size_t end_count;
    weir_kafka_record raw[WEIR_STREAM_RECORDS_MAX];
    weir_stream_record records[WEIR_STREAM_RECORDS_MAX];
} stream_kafka;

static weir_err poll_next(weir_stream *stream, const weir_stream_record **recordsp, size_t *countp, bool *emptyp) {
    stream_kafka *s = (stream_kafka *)stream;
    *recordsp = s->records;
    weir_err err = weir_kafka_consumer_poll(s->consumer, POLL_US, s->raw, WEIR_STREAM_RECORDS_MAX, countp);
    *emptyp = !err && *countp == 0 && weir_kafka_consumer_at_end(s->consumer);
    for (size_t i = 0; !err && i < *countp; i++) {
        const weir_kafka_record *r = &s->raw[i];
        s->records[i] = (weir_stream_record){.partition = r->partition,
                                             .offset = r->offset,
                                             .time_us = r->time_us,
                                             .key = r->key,
                                             .key_length = r->key_length,
                                             .value = r->value,
                                             .value_length = r->value_length};
    }
    return err;
}

/* Behind a partition's last record there may be marks of transactions: whoever has come that far is at the end. */
static uint64_t end_of(weir_stream *stream, uint32_t partition) {
    stream_kafka *s = (stream_kafka *)stream;
    weir_kafka_position_stats stats;
    weir_err err = weir_kafka_consumer_position(s->consumer, partition, &stats);
    if (err) return 0;
    uint64_t end = partition < s->end_count ? s->ends[partition] : 0;
    if (end < stats.offset_end) end = stats.offset_end;
    return stats.offset_next < end ? end : 0;
}

static uint64_t check_of(const weir_stream_record *r) {
    const weir_kafka_record record = {.time_us = r->time_us,
                                      .key = r->key,
                                      .key_length = r->key_length,
                                      .value = r->value,
                                      .value_length = r->value_length};
    return weir_kafka_record_check(&record);
}

static void close_consumer(weir_stream *stream) {
    stream_kafka *s = (stream_kafka *)stream;
    weir_kafka_consumer_close(s->consumer);
    weir_free(s->ends);
    weir_free(s);
}

static const weir_stream_ops ops = {.poll = poll_next, .end = end_of, .check = check_of, .close = close_consumer};

static weir_err ends_keep(stream_kafka *s, const weir_kafka_partition_stats *parts, size_t count) {
    s->ends = weir_calloc(count + 1, sizeof *s->ends);
    if (!s->ends) return WEIR_ERR(WEIR_ENOMEM, "no memory for the ends of %zu partitions", count);
    for (size_t i = 0; i < count; i++)
        s->ends[i] = parts[i].offset_end;
    s->end_count = count;
    return WEIR_OK;
}

/* Where each of the topic's partitions is to begin; the caller frees *startsp. */
static weir_err starts_get(const weir_stream_kafka_opts *opts, stream_kafka *s, weir_stream_start_at start_at,
                           void *context, weir_kafka_start **startsp, size_t *countp) {
    weir_kafka_partition_stats *parts = NULL;
    size_t room, count;
    *startsp = NULL;
    weir_err err = weir_kafka_topic_stats_get(opts->brokers, opts->topic, opts->timeout_us, NULL, 0, &room);
    if (err) return err;
    parts = weir_calloc(room + 1, sizeof *parts);
    *startsp = weir_calloc(room + 1, sizeof **startsp);
    if (!parts || !*startsp) err = WEIR_ERR(WEIR_ENOMEM, "no memory for the partitions of topic '%s'", opts->topic);
    if (!err) err = weir_kafka_topic_stats_get(opts->brokers, opts->topic, opts->timeout_us, parts, room, &count);
    *countp = err || count > room ? room : count; /* one that was added just now is read from the next start on */
    if (!err) err = ends_keep(s, parts, *countp);
    for (size_t i = 0; !err && i < *countp; i++) {
        weir_stream_start start = {0};
        err = start_at(context, (uint32_t)i, parts[i].offset_begin, &start);
        (*startsp)[i] = (weir_kafka_start){.offset = start.offset, .check = start.check, .partition = (uint32_t)i};
    }
    weir_free(parts);
    return err;
}

weir_err weir_stream_kafka_open(const weir_stream_kafka_opts *opts, weir_stream_start_at start_at, void *context,
                                weir_stream **streamp) {
    weir_kafka_start *starts;
    size_t count = 0;
    *streamp = NULL;
    stream_kafka *s = weir_calloc(1, sizeof *s);
    if (!s) return WEIR_ERR(WEIR_ENOMEM, "no memory to read topic '%s'", opts->topic);
    s->stream.ops = &ops;
    weir_err err = starts_get(opts, s, start_at, context, &starts, &count);
    const weir_kafka_consumer_opts consumer = {.brokers = opts->brokers,
                                               .topic = opts->topic,
                                               .starts = starts,
                                               .start_count = count,
                                               .buffer_bytes = opts->buffer_bytes,
                                               .timeout_us = opts->timeout_us};
    if (!err) err = weir_kafka_consumer_open(&consumer, &s->consumer);
    weir_free(starts);
    if (err) {
        close_consumer(&s->stream);
        return err;
    }
    *streamp = &s->stream;
    return WEIR_OK;
}

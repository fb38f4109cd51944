/* SPDX-License-Identifier: Apache-2.0 */
/* consumer_kafka.c - every partition of a topic, from the offsets that the store has. */
#include <weir/store/base/alloc.h>

#include "consumer.h"

#define POLL_US 50000

typedef struct stream_kafka {
    weir_consumer stream;
    weir_kafka_consumer *consumer;
    weir_consumer_start_at start_at; /* these three while it is opened, told and stop for ever */
    void (*told)(void *context, const weir_kafka_told *parts, size_t count, int64_t contact_us);
    bool (*stop)(void *context);
    void *context;
    weir_kafka_record raw[WEIR_CONSUMER_RECORDS_MAX];
    weir_consumer_record records[WEIR_CONSUMER_RECORDS_MAX];
} stream_kafka;

static weir_err poll_next(weir_consumer *stream, const weir_consumer_record **recordsp, size_t *countp, bool *emptyp) {
    stream_kafka *s = (stream_kafka *)stream;
    *recordsp = s->records;
    weir_err err = weir_kafka_consumer_poll(s->consumer, POLL_US, s->raw, WEIR_CONSUMER_RECORDS_MAX, countp);
    *emptyp = !err && *countp == 0 && weir_kafka_consumer_at_end(s->consumer);
    for (size_t i = 0; !err && i < *countp; i++) {
        const weir_kafka_record *r = &s->raw[i];
        s->records[i] = (weir_consumer_record){.partition = r->partition,
                                               .offset = r->offset,
                                               .time_us = r->time_us,
                                               .stored_ms = r->stored_ms,
                                               .key = r->key,
                                               .key_length = r->key_length,
                                               .value = r->value,
                                               .value_length = r->value_length};
    }
    return err;
}

static uint64_t clear_of(weir_consumer *stream, uint32_t partition) {
    weir_kafka_position_stats stats;
    weir_err err = weir_kafka_consumer_position(((stream_kafka *)stream)->consumer, partition, &stats);
    return err ? 0 : stats.offset_next;
}

static uint64_t check_of(const weir_consumer_record *r) {
    const weir_kafka_record record = {.time_us = r->time_us,
                                      .stored_ms = r->stored_ms,
                                      .key = r->key,
                                      .key_length = r->key_length,
                                      .value = r->value,
                                      .value_length = r->value_length};
    return weir_kafka_record_check(&record);
}

static void close_consumer(weir_consumer *stream) {
    stream_kafka *s = (stream_kafka *)stream;
    weir_kafka_consumer_close(s->consumer);
    weir_free(s);
}

static const weir_consumer_ops ops = {.poll = poll_next, .clear = clear_of, .check = check_of, .close = close_consumer};

static weir_err start_at(void *context, uint32_t partition, uint64_t begin, weir_kafka_start *startp) {
    stream_kafka *s = context;
    weir_consumer_start start = {0};
    weir_err err = s->start_at(s->context, partition, begin, &start);
    *startp = (weir_kafka_start){
        .offset = start.offset, .known = start.known, .partition = partition, .mark_count = start.mark_count};
    for (uint32_t i = 0; i < start.mark_count && i < WEIR_KAFKA_MARKS_MAX; i++)
        startp->marks[i] = (weir_kafka_mark){start.marks[i].offset, start.marks[i].check};
    return err;
}

static void told(void *context, const weir_kafka_told *parts, size_t count, int64_t contact_us) {
    const stream_kafka *s = context;
    s->told(s->context, parts, count, contact_us);
}

static bool stop(void *context) {
    const stream_kafka *s = context;
    return s->stop(s->context);
}

weir_err weir_consumer_kafka_open(const weir_consumer_kafka_opts *opts, weir_consumer_start_at start, void *context,
                                  weir_consumer **streamp) {
    *streamp = NULL;
    stream_kafka *s = weir_calloc(1, sizeof *s);
    if (!s) return WEIR_NOMEM("while reading topic '%s'", opts->topic);
    s->stream.ops = &ops;
    s->start_at = start;
    s->told = opts->told;
    s->stop = opts->stop;
    s->context = context;
    const weir_kafka_consumer_opts consumer = {.brokers = opts->brokers,
                                               .topic = opts->topic,
                                               .start_at = start_at,
                                               .told = told,
                                               .stop = stop,
                                               .context = s,
                                               .buffer_bytes = opts->buffer_bytes,
                                               .timeout_us = opts->timeout_us};
    weir_err err = weir_kafka_consumer_open(&consumer, &s->consumer);
    if (err) {
        close_consumer(&s->stream);
        return err;
    }
    *streamp = &s->stream;
    return WEIR_OK;
}

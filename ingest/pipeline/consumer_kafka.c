/* SPDX-License-Identifier: Apache-2.0 */
/* consumer_kafka.c - all partitions of a topic of Kafka, from the offsets that the store has. */
#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>

#include "consumer.h"

#define POLL_US 50000

_Static_assert(WEIR_CONSUMER_MARKS_MAX <= WEIR_KAFKA_MARKS_MAX, "a start's marks fit into one of Kafka's");

typedef struct consumer_kafka {
    weir_consumer consumer;
    weir_kafka_consumer *kafka;
    weir_consumer_start_at start_at; /* called while it is opened; told and stop at any time */
    void (*told)(void *context, const weir_kafka_told *partitions, size_t count, int64_t contact_us);
    bool (*stop)(void *context);
    void *context;
    weir_kafka_record raw[WEIR_CONSUMER_RECORDS_MAX];
    weir_consumer_record records[WEIR_CONSUMER_RECORDS_MAX];
} consumer_kafka;

static weir_err consumer_kafka_poll(weir_consumer *consumer, const weir_consumer_record **recordsp, size_t *countp,
                                    bool *emptyp) {
    consumer_kafka *c = (consumer_kafka *)consumer;
    *recordsp = c->records;
    weir_err err = weir_kafka_consumer_poll(c->kafka, POLL_US, c->raw, WEIR_CONSUMER_RECORDS_MAX, countp);
    *emptyp = !err && *countp == 0 && weir_kafka_consumer_at_end(c->kafka);
    WEIR_ASSERT(*countp <= WEIR_CONSUMER_RECORDS_MAX);
    for (size_t i = 0; !err && i < *countp; i++) {
        const weir_kafka_record *r = &c->raw[i];
        c->records[i] = (weir_consumer_record){.partition = r->partition,
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

static uint64_t consumer_kafka_clear(weir_consumer *consumer, uint32_t partition) {
    weir_kafka_position_stats stats;
    weir_err err = weir_kafka_consumer_position(((consumer_kafka *)consumer)->kafka, partition, &stats);
    return err ? 0 : stats.offset_next;
}

static uint64_t consumer_kafka_check(const weir_consumer_record *r) {
    const weir_kafka_record record = {.time_us = r->time_us,
                                      .stored_ms = r->stored_ms,
                                      .key = r->key,
                                      .key_length = r->key_length,
                                      .value = r->value,
                                      .value_length = r->value_length};
    return weir_kafka_record_check(&record);
}

static void consumer_kafka_close(weir_consumer *consumer) {
    consumer_kafka *c = (consumer_kafka *)consumer;
    weir_kafka_consumer_close(c->kafka);
    weir_free(c);
}

/* --- what the Kafka client asks and tells, passed on ------------------------------------------------------------ */

static weir_err consumer_kafka_start_at(void *context, uint32_t partition, uint64_t begin, weir_kafka_start *startp) {
    consumer_kafka *c = context;
    weir_consumer_start start = {0};
    weir_err err = c->start_at(c->context, partition, begin, &start);
    *startp = (weir_kafka_start){
        .offset = start.offset, .known = start.known, .partition = partition, .mark_count = start.mark_count};
    WEIR_ASSERT(start.mark_count <= WEIR_CONSUMER_MARKS_MAX);
    for (uint32_t i = 0; i < start.mark_count; i++)
        startp->marks[i] = (weir_kafka_mark){start.marks[i].offset, start.marks[i].check};
    return err;
}

static void consumer_kafka_told(void *context, const weir_kafka_told *partitions, size_t count, int64_t contact_us) {
    const consumer_kafka *c = context;
    c->told(c->context, partitions, count, contact_us);
}

static bool consumer_kafka_stop(void *context) {
    const consumer_kafka *c = context;
    return c->stop(c->context);
}

weir_err weir_consumer_kafka_open(const weir_consumer_kafka_opts *opts, weir_consumer_start_at start_at, void *context,
                                  weir_consumer **consumerp) {
    static const weir_consumer_ops ops = {.poll = consumer_kafka_poll,
                                          .clear = consumer_kafka_clear,
                                          .check = consumer_kafka_check,
                                          .close = consumer_kafka_close};
    *consumerp = NULL;
    consumer_kafka *c = weir_calloc(1, sizeof *c);
    if (!c) return WEIR_NOMEM("while reading topic '%s'", opts->topic);
    c->consumer.ops = &ops;
    c->start_at = start_at;
    c->told = opts->told;
    c->stop = opts->stop;
    c->context = context;
    const weir_kafka_consumer_opts kafka = {.brokers = opts->brokers,
                                            .topic = opts->topic,
                                            .start_at = consumer_kafka_start_at,
                                            .told = consumer_kafka_told,
                                            .stop = consumer_kafka_stop,
                                            .context = c,
                                            .buffer_bytes = opts->buffer_bytes,
                                            .timeout_us = opts->timeout_us};
    weir_err err = weir_kafka_consumer_open(&kafka, &c->kafka);
    if (err) {
        consumer_kafka_close(&c->consumer);
        return err;
    }
    *consumerp = &c->consumer;
    return WEIR_OK;
}

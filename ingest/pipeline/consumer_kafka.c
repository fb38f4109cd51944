/* SPDX-License-Identifier: Apache-2.0 */
/* consumer_kafka.c - all partitions of a topic of Kafka, from the offsets that the store has. */
#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>

#include "consumer.h"

#define POLL_US 50000

typedef struct consumer_kafka {
    weir_consumer consumer;
    weir_kafka_consumer *kafka;
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

weir_err weir_consumer_kafka_open(const weir_kafka_consumer_opts *opts, weir_consumer **consumerp) {
    static const weir_consumer_ops ops = {.poll = consumer_kafka_poll,
                                          .clear = consumer_kafka_clear,
                                          .check = consumer_kafka_check,
                                          .close = consumer_kafka_close};
    *consumerp = NULL;
    consumer_kafka *c = weir_calloc(1, sizeof *c);
    if (!c) return WEIR_NOMEM("while reading topic '%s'", opts->topic);
    c->consumer.ops = &ops;
    weir_err err = weir_kafka_consumer_open(opts, &c->kafka);
    if (err) {
        consumer_kafka_close(&c->consumer);
        return err;
    }
    *consumerp = &c->consumer;
    return WEIR_OK;
}

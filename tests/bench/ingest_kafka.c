/* SPDX-License-Identifier: Apache-2.0 */
/* ingest_kafka.c - payments through a broker: into a topic, and out of it by a consumer that only polls and maps. */
#include <string.h>

#include <librdkafka/rdkafka.h>

#include <weir/ingest/kafka/kafka.h>
#include <weir/store/base/clock.h>

#include "ingest_bench.h"

#define PARTITIONS 4u
#define TIMEOUT_US (60 * WEIR_US_PER_S)
#define POLL_US    100000
#define BATCH      4096u
#define REMOVE_MS  5000

static const char *topic_of(const ingest_context *c) {
    return weir_schema_source_at(c->schema, weir_schema_source_find(c->schema, "payments"))->topic;
}

weir_err weir_ingest_bench_produce(const ingest_context *c) {
    const weir_kafka_producer_opts opts = {
        .brokers = c->brokers, .topic = topic_of(c), .partitions = PARTITIONS, .timeout_us = TIMEOUT_US};
    weir_simulate_payments_opts simulated = weir_simulate_payments_defaults();
    weir_kafka_producer *producer;
    weir_simulate *sim;
    uint64_t acknowledged, sent = 0;
    weir_err err = weir_simulate_payments_open(&simulated, &sim);
    if (err) return err;
    err = weir_kafka_producer_open(&opts, &producer);
    while (!err && sent < c->payments) {
        weir_simulate_message m;
        weir_simulate_next(sim, &m);
        if (m.topic != WEIR_SIMULATE_PAYMENTS) continue;
        err = weir_kafka_produce(producer, m.time_us, m.key, m.key_length, m.value, m.value_length);
        sent++;
    }
    if (!err) err = weir_kafka_flush(producer, &acknowledged);
    weir_kafka_producer_close(producer);
    weir_simulate_close(sim);
    return err;
}

static weir_err poll_all(const ingest_context *c, weir_kafka_consumer *consumer, weir_mapper *mapper) {
    static weir_kafka_record records[BATCH];
    weir_err err = WEIR_OK;
    for (uint64_t got = 0; !err && got < c->payments;) {
        size_t count;
        err = weir_kafka_consumer_poll(consumer, POLL_US, records, BATCH, &count);
        for (size_t i = 0; !err && i < count; i++) {
            const weir_kafka_record *r = &records[i];
            weir_mapped mapped;
            err = weir_mapper_map(mapper, r->partition, r->offset, r->value, r->value_length, &mapped);
        }
        got += count;
    }
    return err;
}

weir_err weir_ingest_bench_poll(void *context, uint64_t round, weir_bench_sample *samplep) {
    const ingest_context *c = context;
    weir_kafka_start starts[PARTITIONS] = {{0}};
    const weir_kafka_consumer_opts opts = {.brokers = c->brokers,
                                           .topic = topic_of(c),
                                           .starts = starts,
                                           .start_count = PARTITIONS,
                                           .timeout_us = TIMEOUT_US};
    weir_kafka_consumer *consumer = NULL;
    weir_mapper *mapper;
    (void)round;
    for (uint32_t p = 0; p < PARTITIONS; p++)
        starts[p].partition = p;
    weir_err err =
        weir_mapper_open(c->schema, weir_schema_source_find(c->schema, "payments"), &weir_id_key_public, &mapper);
    if (!err) err = weir_kafka_consumer_open(&opts, &consumer);
    weir_bench_start(samplep);
    if (!err) err = poll_all(c, consumer, mapper);
    weir_bench_stop(samplep, (double)c->records);
    weir_kafka_consumer_close(consumer);
    weir_mapper_close(mapper);
    return err;
}

void weir_ingest_bench_remove_topic(const ingest_context *c) {
    char text[256];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    rd_kafka_conf_set(conf, "bootstrap.servers", c->brokers, text, sizeof text);
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, text, sizeof text);
    if (!rk) return;
    rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
    rd_kafka_DeleteTopic_t *request = rd_kafka_DeleteTopic_new(topic_of(c));
    rd_kafka_DeleteTopics(rk, &request, 1, NULL, queue);
    rd_kafka_event_t *event = rd_kafka_queue_poll(queue, REMOVE_MS);
    if (event) rd_kafka_event_destroy(event);
    rd_kafka_DeleteTopic_destroy(request);
    rd_kafka_queue_destroy(queue);
    rd_kafka_destroy(rk);
}

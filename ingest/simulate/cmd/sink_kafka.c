/* SPDX-License-Identifier: Apache-2.0 */
/* sink_kafka.c - simulated messages into Kafka, each topic through its own producer. */
#include <weir/ingest/kafka/kafka.h>
#include <weir/store/base/alloc.h>

#include "sink.h"

typedef struct sink_kafka {
    weir_simulate_sink base;
    weir_kafka_producer *topics[WEIR_SIMULATE_TOPICS];
} sink_kafka;

static weir_err sink_kafka_put(weir_simulate_sink *sink, const weir_simulate_message *message) {
    return weir_kafka_produce(((sink_kafka *)sink)->topics[message->topic], message->time_us, message->key,
                              message->key_length, message->value, message->value_length);
}

/* The client sends by itself within milliseconds. */
static weir_err sink_kafka_rest(weir_simulate_sink *sink) {
    (void)sink;
    return WEIR_OK;
}

static weir_err sink_kafka_finish(weir_simulate_sink *sink) {
    weir_err err = WEIR_OK;
    for (int topic = 0; topic < WEIR_SIMULATE_TOPICS; topic++) {
        weir_kafka_producer *producer = ((sink_kafka *)sink)->topics[topic];
        uint64_t acknowledged;
        if (producer) weir_err_keep(&err, weir_kafka_flush(producer, &acknowledged));
    }
    return err;
}

static weir_err sink_kafka_close(weir_simulate_sink *sink) {
    for (int topic = 0; topic < WEIR_SIMULATE_TOPICS; topic++)
        weir_kafka_producer_close(((sink_kafka *)sink)->topics[topic]);
    weir_free(sink);
    return WEIR_OK;
}

weir_err weir_simulate_sink_kafka(const weir_simulate_sink_opts *opts, const char *where, weir_simulate_sink **sinkp) {
    *sinkp = NULL;
    sink_kafka *sink = weir_calloc(1, sizeof *sink);
    if (!sink) return WEIR_NOMEM("for the producers");
    sink->base = (weir_simulate_sink){sink_kafka_put, sink_kafka_rest, sink_kafka_finish, sink_kafka_close};
    weir_kafka_producer_opts producer = {
        .brokers = *where ? where : weir_config_text(opts->config, WEIR_CONFIG_KAFKA_BROKERS),
        .partitions = opts->partitions,
        .timeout_us = weir_config_us(opts->config, WEIR_CONFIG_KAFKA_TIMEOUT),
    };
    weir_err err = WEIR_OK;
    for (int topic = 0; !err && topic < WEIR_SIMULATE_TOPICS; topic++) {
        if (!opts->topics[topic]) continue;
        producer.topic = weir_simulate_topic_name((weir_simulate_topic)topic);
        err = weir_kafka_producer_open(&producer, &sink->topics[topic]);
    }
    if (err) {
        sink_kafka_close(&sink->base);
        return err;
    }
    *sinkp = &sink->base;
    return WEIR_OK;
}

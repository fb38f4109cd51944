/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kafka_bench.c - our producer and consumer against librdkafka in a bare loop, with the same settings for safety.
 *
 * A record is a payment of 220 bytes of key and value, in 4 partitions. The bare producer counts acknowledgements and
 * writes no time header; the bare consumer touches nothing. A run ends when all is acknowledged, or read. Each run of
 * a producer has a topic of its own, which is removed after it: an old one would make the broker's next run slower.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

#include <weir/ingest/kafka/kafka.h>
#include <weir/store/base/clock.h>

#include "bench.h"

#define KEY_BYTES   16u
#define VALUE_BYTES 204u
#define KEYS        50000u
#define PARTITIONS  4u
#define RECORDS     500000u
#define TIMEOUT_US  60000000
#define OLD_US      1700000000000000ll
#define POLL_EVERY  64u
#define BATCH       4096u
#define WAIT_MS     100
#define QUEUE_LIMITS                              \
    {"queue.buffering.max.messages", "500000"}, { \
        "queue.buffering.max.kbytes", "131072"    \
    }

typedef struct kafka_context {
    const char *brokers;
    bool is_mock;
    uint64_t records; /* in one run */
    const char *read_topic;
    char value[VALUE_BYTES];
} kafka_context;

static void write_key(char key[KEY_BYTES + 1], uint64_t i) {
    snprintf(key, KEY_BYTES + 1, "card-%011" PRIu64, i * 2654435761u % KEYS);
}

static void topic_of(const char *line, uint64_t round, char topic[64]) {
    snprintf(topic, 64, "weir-bench-%s-%" PRIu64, line, round);
}

/* --- librdkafka in a bare loop --- */

static weir_err bare_open(const kafka_context *c, rd_kafka_type_t type, const char *const (*settings)[2], size_t count,
                          void (*delivered)(rd_kafka_t *, const rd_kafka_message_t *, void *), uint64_t *acknowledged,
                          rd_kafka_t **rkp) {
    char text[256] = "";
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    bool good = rd_kafka_conf_set(conf, "bootstrap.servers", c->brokers, text, sizeof text) == RD_KAFKA_CONF_OK;
    for (size_t i = 0; good && i < count; i++)
        good = rd_kafka_conf_set(conf, settings[i][0], settings[i][1], text, sizeof text) == RD_KAFKA_CONF_OK;
    rd_kafka_conf_set_opaque(conf, acknowledged);
    if (delivered) rd_kafka_conf_set_dr_msg_cb(conf, delivered);
    *rkp = good ? rd_kafka_new(type, conf, text, sizeof text) : NULL;
    if (*rkp) return WEIR_OK;
    rd_kafka_conf_destroy(conf);
    return WEIR_ERR(WEIR_EUNAVAILABLE, "the bare client did not start: %s", text);
}

static void bare_delivered(rd_kafka_t *rk, const rd_kafka_message_t *message, void *context) {
    uint64_t *acknowledged = context;
    (void)rk;
    if (!message->err) (*acknowledged)++;
}

static void bare_loop(const kafka_context *c, rd_kafka_t *rk, rd_kafka_topic_t *rkt) {
    char key[KEY_BYTES + 1];
    for (uint64_t i = 0; i < c->records; i++) {
        write_key(key, i);
        while (rd_kafka_produce(rkt, RD_KAFKA_PARTITION_UA, RD_KAFKA_MSG_F_COPY, (void *)(uintptr_t)c->value,
                                VALUE_BYTES, key, KEY_BYTES, NULL) != 0 &&
               rd_kafka_last_error() == RD_KAFKA_RESP_ERR__QUEUE_FULL)
            rd_kafka_poll(rk, 10);
        if (i % POLL_EVERY == 0) rd_kafka_poll(rk, 0);
    }
    rd_kafka_flush(rk, TIMEOUT_US / 1000);
}

static void remove_topic(const kafka_context *c, const char *topic);
static weir_err create_topic(const kafka_context *c, const char *topic);

static weir_err run_bare_produce(void *context, uint64_t round, weir_bench_sample *samplep) {
    static const char *const settings[][2] = {
        QUEUE_LIMITS, {"enable.idempotence", "true"}, {"acks", "all"}, {"partitioner", "murmur2_random"}};
    const kafka_context *c = context;
    char topic[64];
    uint64_t acknowledged = 0;
    rd_kafka_t *rk;
    topic_of("bare", round, topic);
    weir_err err = create_topic(c, topic);
    if (!err) {
        err = bare_open(c, RD_KAFKA_PRODUCER, settings, sizeof settings / sizeof settings[0], bare_delivered,
                        &acknowledged, &rk);
    }
    if (err) return err;
    rd_kafka_topic_t *rkt = rd_kafka_topic_new(rk, topic, NULL);
    const struct rd_kafka_metadata *metadata;
    if (rd_kafka_metadata(rk, 0, rkt, &metadata, TIMEOUT_US / 1000) == 0) rd_kafka_metadata_destroy(metadata);
    weir_bench_start(samplep);
    bare_loop(c, rk, rkt);
    weir_bench_stop(samplep, (double)c->records);
    rd_kafka_topic_destroy(rkt);
    rd_kafka_destroy(rk);
    remove_topic(c, topic);
    if (acknowledged == c->records) return WEIR_OK;
    return WEIR_ERR(WEIR_EUNAVAILABLE, "%" PRIu64 " of %" PRIu64 " records were acknowledged", acknowledged,
                    c->records);
}

static rd_kafka_queue_t *bare_assign(const kafka_context *c, rd_kafka_t *rk) {
    rd_kafka_poll_set_consumer(rk);
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(PARTITIONS);
    for (int32_t p = 0; p < (int32_t)PARTITIONS; p++)
        rd_kafka_topic_partition_list_add(list, c->read_topic, p)->offset = 0;
    rd_kafka_assign(rk, list);
    rd_kafka_topic_partition_list_destroy(list);
    return rd_kafka_queue_get_consumer(rk);
}

static weir_err run_bare_consume(void *context, uint64_t round, weir_bench_sample *samplep) {
    static const char *const settings[][2] = {{"group.id", "weir-bench"},
                                              {"enable.auto.commit", "false"},
                                              {"check.crcs", "true"},
                                              {"queued.max.messages.kbytes", "65536"}};
    const kafka_context *c = context;
    static rd_kafka_message_t *messages[BATCH];
    uint64_t got = 0;
    rd_kafka_t *rk;
    (void)round;
    weir_err err = bare_open(c, RD_KAFKA_CONSUMER, settings, sizeof settings / sizeof settings[0], NULL, NULL, &rk);
    if (err) return err;
    rd_kafka_queue_t *queue = bare_assign(c, rk);
    weir_bench_start(samplep);
    while (got < c->records) {
        ssize_t first = rd_kafka_consume_batch_queue(queue, WAIT_MS, messages, 1);
        ssize_t rest = first > 0 ? rd_kafka_consume_batch_queue(queue, 0, messages + 1, BATCH - 1) : 0;
        for (ssize_t i = 0; i < first + rest; i++) {
            if (!messages[i]->err) got++;
            rd_kafka_message_destroy(messages[i]);
        }
    }
    weir_bench_stop(samplep, (double)got);
    rd_kafka_queue_destroy(queue);
    rd_kafka_destroy_flags(rk, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
    return WEIR_OK;
}

/* --- ours --- */

static weir_err open_producer(const kafka_context *c, const char *topic, weir_kafka_producer **producerp) {
    const weir_kafka_producer_opts opts = {
        .brokers = c->brokers, .topic = topic, .partitions = PARTITIONS, .timeout_us = TIMEOUT_US};
    return weir_kafka_producer_open(&opts, producerp);
}

static int64_t now_ms(void) {
    return weir_clock_wall_us(weir_clock_system()) / 1000;
}

static weir_err create_topic(const kafka_context *c, const char *topic) {
    weir_kafka_producer *producer;
    weir_err err = open_producer(c, topic, &producer);
    weir_kafka_producer_close(producer);
    return err;
}

static weir_err produce_all(const kafka_context *c, weir_kafka_producer *producer, int64_t time_us) {
    char key[KEY_BYTES + 1];
    uint64_t acknowledged;
    weir_err err = WEIR_OK;
    for (uint64_t i = 0; !err && i < c->records; i++) {
        write_key(key, i);
        err = weir_kafka_produce(producer, time_us, key, KEY_BYTES, c->value, VALUE_BYTES);
    }
    return err ? err : weir_kafka_flush(producer, &acknowledged);
}

static weir_err produce_timed(const kafka_context *c, const char *topic, int64_t time_us, weir_bench_sample *samplep) {
    weir_kafka_producer *producer;
    weir_err err = open_producer(c, topic, &producer);
    if (err) return err;
    weir_bench_start(samplep);
    err = produce_all(c, producer, time_us);
    weir_bench_stop(samplep, (double)c->records);
    weir_kafka_producer_close(producer);
    remove_topic(c, topic);
    return err;
}

static weir_err run_produce(void *context, uint64_t round, weir_bench_sample *samplep) {
    char topic[64];
    topic_of("now", round, topic);
    return produce_timed(context, topic, now_ms() * 1000, samplep);
}

/* Their time goes in a header. */
static weir_err run_produce_old(void *context, uint64_t round, weir_bench_sample *samplep) {
    char topic[64];
    topic_of("old", round, topic);
    return produce_timed(context, topic, OLD_US, samplep);
}

static weir_err run_consume(void *context, uint64_t round, weir_bench_sample *samplep) {
    static weir_kafka_record records[BATCH];
    const kafka_context *c = context;
    weir_kafka_start starts[PARTITIONS] = {{0}};
    uint64_t got = 0;
    (void)round;
    for (uint32_t p = 0; p < PARTITIONS; p++)
        starts[p].partition = p;
    const weir_kafka_consumer_opts opts = {.brokers = c->brokers,
                                           .topic = c->read_topic,
                                           .starts = starts,
                                           .start_count = PARTITIONS,
                                           .timeout_us = TIMEOUT_US};
    weir_kafka_consumer *consumer;
    weir_err err = weir_kafka_consumer_open(&opts, &consumer);
    if (err) return err;
    weir_bench_start(samplep);
    while (!err && got < c->records) {
        size_t count;
        err = weir_kafka_consumer_poll(consumer, WAIT_MS * 1000, records, BATCH, &count);
        got += count;
    }
    weir_bench_stop(samplep, (double)got);
    weir_kafka_consumer_close(consumer);
    return err;
}

/* --- around them --- */

static void remove_topic(const kafka_context *c, const char *topic) {
    rd_kafka_t *rk;
    if (c->is_mock) return; // it cannot, and its topics go with it
    if (bare_open(c, RD_KAFKA_PRODUCER, NULL, 0, NULL, NULL, &rk)) return;
    rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
    rd_kafka_DeleteTopic_t *request = rd_kafka_DeleteTopic_new(topic);
    rd_kafka_DeleteTopics(rk, &request, 1, NULL, queue);
    rd_kafka_event_t *event = rd_kafka_queue_poll(queue, WAIT_MS * 50);
    if (event) rd_kafka_event_destroy(event);
    rd_kafka_DeleteTopic_destroy(request);
    rd_kafka_queue_destroy(queue);
    rd_kafka_destroy(rk);
}

static weir_err run_lines(weir_cli *cli, kafka_context *c) {
    const weir_bench_line lines[] = {
        {.what = "librdkafka, produce", .unit = "krec/s", .scale = 1e-3, .run = run_bare_produce, .context = c},
        {.what = "weir, produce",
         .unit = "krec/s",
         .scale = 1e-3,
         .run = run_produce,
         .context = c,
         .against = "librdkafka, produce"},
        {.what = "weir, produce old events",
         .unit = "krec/s",
         .scale = 1e-3,
         .run = run_produce_old,
         .context = c,
         .against = "librdkafka, produce"},
        {.what = "librdkafka, consume", .unit = "krec/s", .scale = 1e-3, .run = run_bare_consume, .context = c},
        {.what = "weir, consume",
         .unit = "krec/s",
         .scale = 1e-3,
         .run = run_consume,
         .context = c,
         .against = "librdkafka, consume"},
    };
    weir_kafka_producer *producer;
    weir_err err = open_producer(c, c->read_topic, &producer);
    if (err) return err;
    err = produce_all(c, producer, now_ms() * 1000);
    weir_kafka_producer_close(producer);
    if (!err) err = weir_bench_run(cli, "kafka", lines, sizeof lines / sizeof lines[0]);
    return err;
}

/* --quick shows that every line runs, on librdkafka's mock broker; its rates mean nothing. */
static weir_err run_on_mock(weir_cli *cli, kafka_context *c) {
    char text[256];
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_PRODUCER, rd_kafka_conf_new(), text, sizeof text);
    if (!rk) return WEIR_ERR(WEIR_EUNAVAILABLE, "the mock broker did not start: %s", text);
    rd_kafka_mock_cluster_t *mock = rd_kafka_mock_cluster_new(rk, 1);
    rd_kafka_mock_topic_create(mock, c->read_topic, PARTITIONS, 1);
    c->brokers = rd_kafka_mock_cluster_bootstraps(mock);
    c->is_mock = true;
    weir_err err = run_lines(cli, c);
    rd_kafka_mock_cluster_destroy(mock);
    rd_kafka_destroy(rk);
    return err;
}

static weir_err run(weir_cli *cli) {
    kafka_context context = {.brokers = weir_cli_text(cli, "brokers"),
                             .records = weir_bench_quick(cli) ? 2000 : RECORDS,
                             .read_topic = "weir-bench-read"};
    memset(context.value, 'v', sizeof context.value);
    if (!context.brokers && weir_bench_quick(cli)) return run_on_mock(cli, &context);
    if (!context.brokers) {
        return WEIR_ERR(WEIR_EUSAGE, "--brokers names the broker to measure; ops/kafka up starts one and prints it");
    }
    remove_topic(&context, context.read_topic);
    weir_err err = run_lines(cli, &context);
    remove_topic(&context, context.read_topic);
    return err;
}

static const weir_option options[] = {
    WEIR_BENCH_OPTIONS,
    {"brokers", 'b', "HOST:PORT", "the broker to measure (quick: a mock)", NULL},
    {0},
};

const weir_command weir_bench_kafka = {
    .name = "kafka",
    .summary = "producer and consumer against bare librdkafka",
    .description = "Makes topics named weir-bench-… and removes them.",
    .example = "weir bench kafka --brokers 127.0.0.1:9092",
    .options = options,
    .run = run,
};

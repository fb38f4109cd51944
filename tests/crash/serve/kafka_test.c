/* SPDX-License-Identifier: Apache-2.0 */
/* kafka_test.c - the campaign with events through a real Kafka broker; a delivered message counts as acknowledged. */
#include "campaign.h"

#include <weir/ingest/kafka.h>

#include "../../integration/kafka/broker.h"

#define TIMEOUT_US 30000000
#define PARTITIONS 2u

static weir_kafka_producer *producer;

/* --- sending ------------------------------------------------------------------------------------------------------ */

static void begin(campaign *c) {
    const weir_kafka_producer_opts opts = {
        .brokers = broker_address, .topic = c->topic, .partitions = PARTITIONS, .timeout_us = TIMEOUT_US};
    weir_kafka_producer_close(producer);
    assert_ok(weir_kafka_producer_open(&opts, &producer));
}

static bool is_alive(const serve_child *server) {
    siginfo_t info = {0};
    assert_int_equal(waitid(P_PID, (id_t)server->pid, &info, WEXITED | WNOHANG | WNOWAIT), 0);
    return info.si_pid == 0;
}

static bool send_events(campaign *c, const serve_child *server, size_t count) {
    uint64_t delivered;
    size_t first = c->book.count;
    for (size_t i = 0; i < count; i++) {
        char key[16];
        const book_event *event = book_next(&c->book, &c->rng, true);
        int length = snprintf(key, sizeof key, "a%u", event->account);
        assert_ok(weir_kafka_produce(producer, WEIR_US_PER_S, key, (size_t)length, event->text, strlen(event->text)));
    }
    assert_ok(weir_kafka_flush(producer, &delivered));
    assert_int_equal(delivered, c->book.count);
    for (size_t i = first; i < c->book.count; i++)
        book_acknowledge(&c->book, i, 0, 0);
    return is_alive(server);
}

/* --- the topic ---------------------------------------------------------------------------------------------------- */

static void see_records(const campaign *c, const weir_kafka_record *records, size_t count, uint8_t *seen) {
    for (size_t i = 0; i < count; i++) {
        size_t number = book_number(records[i].value, records[i].value_length);
        assert_in_range(number, 0, c->book.count - 1);
        if (seen[number]++) doubled("in the topic: event", number);
    }
}

static void compare_log(campaign *c) {
    weir_kafka_start starts[PARTITIONS] = {{0}};
    weir_kafka_record records[256];
    weir_kafka_consumer *consumer;
    if (!c->book.acknowledged) return;
    uint8_t *seen = weir_calloc(c->book.count, 1);
    assert_non_null(seen);
    for (uint32_t p = 0; p < PARTITIONS; p++)
        starts[p].partition = p;
    const weir_kafka_consumer_opts opts = {.brokers = broker_address,
                                           .topic = c->topic,
                                           .starts = starts,
                                           .start_count = PARTITIONS,
                                           .timeout_us = TIMEOUT_US};
    assert_ok(weir_kafka_consumer_open(&opts, &consumer));
    while (!weir_kafka_consumer_at_end(consumer)) {
        size_t count;
        assert_ok(weir_kafka_consumer_poll(consumer, 100000, records, 256, &count));
        see_records(c, records, count, seen);
    }
    for (size_t i = 0; i < c->book.count; i++)
        if (!seen[i]) lose("in the topic: event", i);
    weir_kafka_consumer_close(consumer);
    weir_free(seen);
}

/* --- the campaign ------------------------------------------------------------------------------------------------- */

static kill_point points[] = {
    {"seal.begin", 9, 0},         {"seal.half_written", 9, 0}, {"engine.finished", 9, 0},
    {"engine.ingested", 9, 0},    {"seal.ingested", 9, 0},     {"seal.end", 9, 0},
    {"serve.opened", 1, 0},       {"serve.ready", 1, 0},       {"pipeline.letters_synced", 9, 0},
    {"pipeline.submitted", 9, 0}, {"shard.applied", 30, 0},    {"checkpoint.shard", 3, 0},
    {"checkpoint.whole", 1, 0},
};

static void kill_between_kafka_and_graph(void **state) {
    const stream kafka = {.kafka = broker_needed(),
                          .life_max_ms = 1500,
                          .points = points,
                          .point_count = sizeof points / sizeof points[0],
                          .begin = begin,
                          .send = send_events,
                          .compare_log = compare_log};
    (void)state;
    run_campaign(&kafka, cycles_wanted(5));
    weir_kafka_producer_close(producer);
}

int main(int argc, char **argv) {
    static const weir_test_case cases[] = {WEIR_CASE(kill_between_kafka_and_graph)};
    if (!campaign_share()) return 2;
    if (argc < 2 || strcmp(argv[1], "--list") != 0) broker_start();
    int status = weir_test_main(cases, sizeof cases / sizeof cases[0], argc, argv);
    broker_stop();
    campaign_say();
    return status;
}

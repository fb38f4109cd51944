/* SPDX-License-Identifier: Apache-2.0 */
/* `weir simulate` into a real broker: every message, in event-time order within its partition, by its key. */
#include "../kafka/broker.h"

#include <weir/ingest/kafka/kafka.h>
#include <weir/ingest/simulate/simulate.h>
#include <weir/store/base/alloc.h>
#include <weir/store/base/hash.h>

#define ACCOUNTS   2000u
#define PARTITIONS 3u

/* Sums of hashes do not depend on the order. */
typedef struct tally {
    uint64_t messages, sum;
} tally;

static void count(tally *t, const void *key, size_t key_length, const void *value, size_t value_length) {
    t->messages++;
    t->sum += weir_xxh3(value, value_length, weir_xxh3(key, key_length, 0));
}

static tally expected(weir_simulate_topic topic, int64_t days) {
    weir_simulate_payments_opts opts = weir_simulate_payments_defaults();
    opts.accounts = ACCOUNTS;
    opts.label_delay_us = 3600 * INT64_C(1000000);
    weir_simulate *sim = NULL;
    tally t = {0};
    weir_simulate_message m;
    assert_ok(weir_simulate_payments_open(&opts, &sim));
    for (weir_simulate_next(sim, &m); m.time_us < opts.start_us + days * 86400000000; weir_simulate_next(sim, &m))
        if (m.topic == topic) count(&t, m.key, m.key_length, m.value, m.value_length);
    weir_simulate_close(sim);
    return t;
}

static tally consumed(const char *topic) {
    static weir_kafka_record records[4096];
    const weir_kafka_start starts[PARTITIONS] = {{.partition = 0}, {.partition = 1}, {.partition = 2}};
    const weir_kafka_consumer_opts opts = {
        .brokers = broker_address, .topic = topic, .starts = starts, .start_count = PARTITIONS, .timeout_us = 30000000};
    weir_kafka_consumer *consumer = NULL;
    tally t = {0};
    int64_t last[PARTITIONS] = {0};
    assert_ok(weir_kafka_consumer_open(&opts, &consumer));
    while (!weir_kafka_consumer_at_end(consumer)) {
        size_t got = 0;
        assert_ok(weir_kafka_consumer_poll(consumer, 100000, records, 4096, &got));
        for (size_t i = 0; i < got; i++) {
            const weir_kafka_record *r = &records[i];
            assert_true(r->time_us >= last[r->partition]);
            last[r->partition] = r->time_us;
            count(&t, r->key, r->key_length, r->value, r->value_length);
        }
    }
    weir_kafka_consumer_close(consumer);
    return t;
}

static void both_topics_arrive(void **state) {
    (void)state;
    char to[128];
    snprintf(to, sizeof to, "kafka:%s", broker_needed());
    const char *const argv[] = {weir_test_program(),
                                "simulate",
                                "payments",
                                "--days",
                                "2",
                                "--accounts",
                                "2000",
                                "--partitions",
                                "3",
                                "--to",
                                to,
                                "--label-delay",
                                "1h",
                                NULL};
    weir_test_output output;
    weir_test_run(argv, NULL, &output);
    print_message("%s", output.err);
    assert_int_equal(output.status, 0);
    weir_test_output_free(&output);
    for (int topic = WEIR_SIMULATE_PAYMENTS; topic <= WEIR_SIMULATE_CHARGEBACKS; topic++) {
        tally sent = expected((weir_simulate_topic)topic, 2);
        tally got = consumed(weir_simulate_topic_name((weir_simulate_topic)topic));
        assert_true(sent.messages > 10);
        assert_int_equal(got.messages, sent.messages);
        assert_true(got.sum == sent.sum);
    }
}

WEIR_BROKER_TESTS(broker_start, WEIR_CASE(both_topics_arrive))

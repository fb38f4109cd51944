/* SPDX-License-Identifier: Apache-2.0 */
/* The producer's errors: what is refused, what is tried again, and that giving up is for good. */
#include <inttypes.h>
#include <string.h>

#include <weir/ingest/kafka/kafka.h>
#include <weir/store/base/alloc.h>
#include <weir/store/base/clock.h>

#include "mock.h"

#define TOPIC      "events"
#define TIMEOUT_US 20000000
#define SHORT_US   400000
#define TIME_US    1700000000000000ll

static weir_err open_at(const char *address, int64_t timeout_us, weir_kafka_producer **producerp) {
    const weir_kafka_producer_opts opts = {.brokers = address, .topic = TOPIC, .timeout_us = timeout_us};
    return weir_kafka_producer_open(&opts, producerp);
}

static weir_err produce(weir_kafka_producer *producer) {
    return weir_kafka_produce(producer, TIME_US, "key", 3, "value", 5);
}

static void no_broker(void **state) {
    (void)state;
    mock_skip_under_thread_sanitizer();
    weir_kafka_producer *producer = (void *)1;
    weir_err err = open_at("127.0.0.1:1", SHORT_US, &producer);
    assert_err(err, WEIR_EUNAVAILABLE, "no Kafka broker at 127.0.0.1:1 answered within 400 ms");
    assert_err(err, WEIR_EUNAVAILABLE, "Connection refused");
    assert_err(err, WEIR_EUNAVAILABLE, "ops/kafka up");
    assert_null(producer);
}

static void bad_options(void **state) {
    (void)state;
    static const struct {
        weir_kafka_producer_opts opts;
        const char *text;
    } rows[] = {
        {{.brokers = NULL, .topic = TOPIC, .timeout_us = TIMEOUT_US}, "no Kafka broker is named"},
        {{.brokers = "", .topic = TOPIC, .timeout_us = TIMEOUT_US}, "no Kafka broker is named"},
        {{.brokers = "h:1", .topic = NULL, .timeout_us = TIMEOUT_US}, "cannot name a topic"},
        {{.brokers = "h:1", .topic = "", .timeout_us = TIMEOUT_US}, "cannot name a topic"},
        {{.brokers = "h:1", .topic = "..", .timeout_us = TIMEOUT_US}, "'..' cannot name a topic"},
        {{.brokers = "h:1", .topic = "a b", .timeout_us = TIMEOUT_US}, "'a b' cannot name a topic"},
        {{.brokers = "h:1", .topic = TOPIC, .timeout_us = WEIR_KAFKA_TIMEOUT_MIN_US - 1}, "may be 100 ms to 1 h"},
        {{.brokers = "h:1", .topic = TOPIC, .timeout_us = INT64_MAX}, "may be 100 ms to 1 h"},
        {{.brokers = "h:1", .topic = TOPIC, .timeout_us = 1, .partitions = WEIR_KAFKA_PARTITIONS_MAX + 1},
         "a topic may have 4096"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        weir_kafka_producer *producer;
        assert_err(weir_kafka_producer_open(&rows[i].opts, &producer), WEIR_EINVAL, rows[i].text);
        assert_null(producer);
    }
}

static void topic_name_at_the_limit_and_one_past_it(void **state) {
    (void)state;
    mock_skip_under_thread_sanitizer();
    char name[WEIR_KAFKA_TOPIC_MAX + 2] = "";
    weir_kafka_producer *producer;
    const weir_kafka_producer_opts opts = {.brokers = "127.0.0.1:1", .topic = name, .timeout_us = SHORT_US};
    memset(name, 'n', WEIR_KAFKA_TOPIC_MAX);
    assert_err(weir_kafka_producer_open(&opts, &producer), WEIR_EUNAVAILABLE, NULL);
    name[WEIR_KAFKA_TOPIC_MAX] = 'n';
    assert_err(weir_kafka_producer_open(&opts, &producer), WEIR_EINVAL, "cannot name a topic");
}

/* What Kafka says for a while is no error. */
static void tried_again(void **state) {
    (void)state;
    static const rd_kafka_resp_err_t errors[] = {RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION,
                                                 RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT,
                                                 RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS, RD_KAFKA_RESP_ERR__TRANSPORT};
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        mock_broker mock = mock_open(TOPIC, 1);
        weir_kafka_producer *producer;
        uint64_t acknowledged;
        assert_ok(open_at(mock.address, TIMEOUT_US, &producer));
        mock_refuse(&mock, MOCK_PRODUCE, 2, errors[i]);
        for (int n = 0; n < 10; n++)
            assert_ok(produce(producer));
        assert_ok(weir_kafka_flush(producer, &acknowledged));
        assert_int_equal(acknowledged, 10);
        weir_kafka_producer_close(producer);
        mock_close(&mock);
    }
}

/* A partition that has just been made, or that is led by another broker since, knows no order of this producer's
 * records yet: it refuses the first request, because it is not ready, and takes the second. */
static void what_is_acknowledged_after_a_refusal_is_stored(void **state) {
    (void)state;
    mock_broker mock = mock_open(TOPIC, 1);
    weir_kafka_producer *producer;
    weir_kafka_partition_stats stats;
    size_t partitions;
    uint64_t acknowledged;
    assert_ok(open_at(mock.address, TIMEOUT_US, &producer));
    assert_ok(produce(producer));
    assert_ok(weir_kafka_flush(producer, &acknowledged)); /* the producer has its id: requests leave at once */
    assert_int_equal(rd_kafka_mock_broker_set_rtt(mock.cluster, 1, 200), 0);
    mock_refuse(&mock, MOCK_PRODUCE, 1, RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION);
    for (int n = 0; n < 10; n++) { /* each in a request of its own, and all before the first is answered */
        assert_ok(produce(producer));
        weir_clock_sleep_until(weir_clock_system(), weir_clock_mono_us(weir_clock_system()) + 15000);
    }
    assert_ok(weir_kafka_flush(producer, &acknowledged));
    assert_int_equal(acknowledged, 11);
    assert_ok(weir_kafka_topic_stats_get(mock.address, TOPIC, TIMEOUT_US, &stats, 1, &partitions));
    assert_int_equal(stats.offset_end, 11);
    weir_kafka_producer_close(producer);
    mock_close(&mock);
}

static void refused_is_refused_for_good(void **state) {
    (void)state;
    static const struct {
        rd_kafka_resp_err_t error;
        weir_code code;
    } rows[] = {
        {RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED, WEIR_EPERM},
        {RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, WEIR_ELIMIT},
        {RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP, WEIR_EINVAL},
        {RD_KAFKA_RESP_ERR_UNSUPPORTED_VERSION, WEIR_EUNAVAILABLE},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        mock_broker mock = mock_open(TOPIC, 1);
        weir_kafka_producer *producer;
        uint64_t acknowledged;
        assert_ok(open_at(mock.address, TIMEOUT_US, &producer));
        mock_refuse(&mock, MOCK_PRODUCE, 1, rows[i].error);
        assert_ok(produce(producer));
        assert_err(weir_kafka_flush(producer, &acknowledged), rows[i].code, "1 of 1 records were not acknowledged");
        assert_int_equal(acknowledged, 0);
        assert_err(produce(producer), rows[i].code, "Kafka refused a record");
        assert_err(weir_kafka_flush(producer, &acknowledged), rows[i].code, "1 of 1 records");
        weir_kafka_producer_close(producer);
        mock_close(&mock);
    }
}

/* The broker comes back after we gave up: a record that waited must not reach it, for one before it may be missing. */
static void k1_nothing_is_sent_after_giving_up(void **state) {
    (void)state;
    mock_broker mock = mock_open(TOPIC, 1);
    weir_kafka_producer *producer;
    uint64_t acknowledged;
    assert_ok(open_at(mock.address, SHORT_US, &producer));
    assert_ok(produce(producer));
    assert_ok(weir_kafka_flush(producer, &acknowledged));
    assert_int_equal(rd_kafka_mock_broker_set_down(mock.cluster, 1), 0);
    for (int n = 0; n < 5; n++)
        assert_ok(produce(producer));
    weir_err err = weir_kafka_flush(producer, &acknowledged);
    assert_err(err, WEIR_ETIMEOUT, "5 of 6 records were not acknowledged");
    assert_err(err, WEIR_ETIMEOUT, "no record was acknowledged for 400 ms");
    assert_int_equal(acknowledged, 1);
    assert_int_equal(rd_kafka_mock_broker_set_up(mock.cluster, 1), 0);
    assert_err(produce(producer), WEIR_ETIMEOUT, NULL);
    // Each would wait a second for what is still on its way: long enough to reach the broker again.
    for (int n = 0; n < 4; n++)
        assert_err(weir_kafka_flush(producer, &acknowledged), WEIR_ETIMEOUT, "5 of 6 records");
    weir_kafka_partition_stats stats;
    size_t partitions;
    assert_ok(weir_kafka_topic_stats_get(mock.address, TOPIC, TIMEOUT_US, &stats, 1, &partitions));
    assert_int_equal(stats.offset_end, 1);
    weir_kafka_producer_close(producer);
    mock_close(&mock);
}

/* A broker that is away for less than the limit costs nothing. */
static void broker_away_for_a_while(void **state) {
    (void)state;
    mock_broker mock = mock_open(TOPIC, 1);
    weir_kafka_producer *producer;
    uint64_t acknowledged;
    assert_ok(open_at(mock.address, TIMEOUT_US, &producer));
    for (int n = 0; n < 100; n++) {
        if (n == 30) assert_int_equal(rd_kafka_mock_broker_set_down(mock.cluster, 1), 0);
        if (n == 60) assert_int_equal(rd_kafka_mock_broker_set_up(mock.cluster, 1), 0);
        assert_ok(produce(producer));
    }
    assert_ok(weir_kafka_flush(producer, &acknowledged));
    assert_int_equal(acknowledged, 100);
    weir_kafka_producer_close(producer);
    mock_close(&mock);
}

/* Memory stays bounded while nobody takes the records: produce waits, then says so. */
static void full_queue_waits_then_times_out(void **state) {
    (void)state;
    static char value[500000];
    mock_broker mock = mock_open(TOPIC, 1);
    weir_kafka_producer *producer;
    uint64_t acknowledged, produced = 0;
    weir_err err = WEIR_OK;
    assert_ok(open_at(mock.address, SHORT_US, &producer));
    assert_int_equal(rd_kafka_mock_broker_set_down(mock.cluster, 1), 0);
    while (!err && produced < 1000) {
        err = weir_kafka_produce(producer, TIME_US, "key", 3, value, sizeof value);
        if (!err) produced++;
    }
    assert_err(err, WEIR_ETIMEOUT, "no record was acknowledged for 400 ms");
    assert_in_range(produced, 1, (64u << 20) / sizeof value + 1);
    assert_err(weir_kafka_flush(producer, &acknowledged), WEIR_ETIMEOUT, NULL);
    assert_int_equal(acknowledged, 0);
    weir_kafka_producer_close(producer);
    mock_close(&mock);
}

/* Slow is not stuck: the limit is on the time without any acknowledgement. */
static void slow_broker_is_waited_for(void **state) {
    (void)state;
    mock_broker mock = mock_open(TOPIC, 1);
    weir_kafka_producer *producer;
    uint64_t acknowledged = 0;
    assert_ok(open_at(mock.address, 4 * SHORT_US, &producer));
    assert_int_equal(rd_kafka_mock_broker_set_rtt(mock.cluster, 1, SHORT_US / 1000 / 2), 0);
    for (uint64_t n = 1; n <= 10; n++) {
        assert_ok(produce(producer));
        assert_ok(weir_kafka_flush(producer, &acknowledged));
        assert_int_equal(acknowledged, n);
    }
    weir_kafka_producer_close(producer);
    mock_close(&mock);
}

static weir_err open_and_close(void *context) {
    mock_broker *mock = context;
    weir_kafka_producer *producer;
    weir_err err = open_at(mock->address, TIMEOUT_US, &producer);
    if (err) assert_null(producer);
    weir_kafka_producer_close(producer);
    return err;
}

static void open_fails_cleanly_at_every_allocation(void **state) {
    (void)state;
    mock_broker mock = mock_open(TOPIC, 1);
    weir_test_every_allocation(open_and_close, &mock);
    mock_close(&mock);
}

static void close_without_flush_does_not_wait(void **state) {
    (void)state;
    mock_broker mock = mock_open(TOPIC, 1);
    weir_kafka_producer *producer;
    assert_ok(open_at(mock.address, TIMEOUT_US, &producer));
    assert_int_equal(rd_kafka_mock_broker_set_down(mock.cluster, 1), 0);
    assert_ok(produce(producer));
    weir_kafka_producer_close(producer);
    weir_kafka_producer_close(NULL);
    mock_close(&mock);
}

WEIR_TESTS(WEIR_CASE(no_broker), WEIR_CASE(bad_options), WEIR_CASE(topic_name_at_the_limit_and_one_past_it),
           WEIR_CASE(tried_again), WEIR_CASE(what_is_acknowledged_after_a_refusal_is_stored),
           WEIR_CASE(refused_is_refused_for_good), WEIR_CASE(k1_nothing_is_sent_after_giving_up),
           WEIR_CASE(broker_away_for_a_while), WEIR_CASE(full_queue_waits_then_times_out),
           WEIR_CASE(slow_broker_is_waited_for), WEIR_CASE(open_fails_cleanly_at_every_allocation),
           WEIR_CASE(close_without_flush_does_not_wait))

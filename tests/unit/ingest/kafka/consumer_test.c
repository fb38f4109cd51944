/* SPDX-License-Identifier: Apache-2.0 */
/* The consumer's errors, and the mark by which a record is known again. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <weir/ingest/kafka/kafka.h>

#include "mock.h"

#define TOPIC      "events"
#define TIMEOUT_US 20000000
#define SHORT_US   400000
#define WAIT_US    50000
#define TIME_US    1700000000000000ll
#define POLLS_MAX  10000

static weir_err open_at(const char *address, const weir_kafka_start *starts, size_t count, int64_t timeout_us,
                        weir_kafka_consumer **consumerp) {
    const weir_kafka_consumer_opts opts = {
        .brokers = address, .topic = TOPIC, .starts = starts, .start_count = count, .timeout_us = timeout_us};
    return weir_kafka_consumer_open(&opts, consumerp);
}

static void fill(const mock_broker *mock, int count) {
    const weir_kafka_producer_opts opts = {.brokers = mock->address, .topic = TOPIC, .timeout_us = TIMEOUT_US};
    weir_kafka_producer *producer;
    uint64_t acknowledged;
    assert_ok(weir_kafka_producer_open(&opts, &producer));
    for (int i = 0; i < count; i++)
        assert_ok(weir_kafka_produce(producer, TIME_US, "k", 1, "v", 1));
    assert_ok(weir_kafka_flush(producer, &acknowledged));
    weir_kafka_producer_close(producer);
}

/* Reads to the end or to an error; the records must be *nextp, *nextp + 1, … */
static weir_err read_on(weir_kafka_consumer *consumer, uint64_t *nextp) {
    weir_kafka_record records[16];
    for (int polls = 0; polls < POLLS_MAX && !weir_kafka_consumer_at_end(consumer); polls++) {
        size_t got;
        weir_err err = weir_kafka_consumer_poll(consumer, WAIT_US, records, 16, &got);
        if (err) return err;
        for (size_t i = 0; i < got; i++)
            assert_int_equal(records[i].offset, (*nextp)++);
    }
    return WEIR_OK;
}

static void no_broker(void **state) {
    (void)state;
    mock_skip_under_thread_sanitizer();
    weir_kafka_consumer *consumer = (void *)1;
    weir_err err = open_at("127.0.0.1:1", &(weir_kafka_start){0}, 1, SHORT_US, &consumer);
    assert_err(err, WEIR_EUNAVAILABLE, "no Kafka broker at 127.0.0.1:1 answered within 400 ms");
    assert_err(err, WEIR_EUNAVAILABLE, "Connection refused");
    assert_null(consumer);
}

static void bad_options(void **state) {
    (void)state;
    const weir_kafka_start start = {0};
    weir_kafka_consumer *consumer;
    weir_kafka_consumer_opts opts = {.brokers = "h:1", .topic = TOPIC, .timeout_us = TIMEOUT_US};
    assert_err(weir_kafka_consumer_open(&opts, &consumer), WEIR_EINVAL, "0 partitions to read");
    opts.starts = &start;
    opts.start_count = WEIR_KAFKA_PARTITIONS_MAX + 1;
    assert_err(weir_kafka_consumer_open(&opts, &consumer), WEIR_EINVAL, "4097 partitions to read");
    opts.start_count = 1;
    opts.buffer_bytes = (1 << 20) - 1;
    assert_err(weir_kafka_consumer_open(&opts, &consumer), WEIR_EINVAL, "1 MiB to 1 GiB");
    opts.buffer_bytes = (1 << 30) + 1;
    assert_err(weir_kafka_consumer_open(&opts, &consumer), WEIR_EINVAL, "1 MiB to 1 GiB");
}

static void partitions_that_are_not_to_be_read(void **state) {
    (void)state;
    mock_broker mock = mock_open(TOPIC, 3);
    weir_kafka_consumer *consumer;
    weir_kafka_position_stats position;
    weir_kafka_record record;
    size_t got;
    const weir_kafka_start starts[] = {{.partition = 0}, {.partition = 2}};
    assert_err(open_at(mock.address, &(weir_kafka_start){.partition = 3}, 1, TIMEOUT_US, &consumer), WEIR_ENOTFOUND,
               "3 partitions");
    assert_ok(open_at(mock.address, starts, 2, TIMEOUT_US, &consumer));
    assert_ok(weir_kafka_consumer_position(consumer, 2, &position));
    assert_err(weir_kafka_consumer_position(consumer, 1, &position), WEIR_EINVAL, "partition 1 of topic");
    assert_err(weir_kafka_consumer_position(consumer, 9, &position), WEIR_EINVAL, "partition 9 of topic");
    assert_err(weir_kafka_consumer_poll(consumer, 0, &record, 0, &got), WEIR_EINVAL, "no records");
    weir_kafka_consumer_close(consumer);
    weir_kafka_consumer_close(NULL);
    mock_close(&mock);
}

static void refused_is_refused_for_good(void **state) {
    (void)state;
    mock_broker mock = mock_open(TOPIC, 1);
    weir_kafka_consumer *consumer;
    uint64_t next = 0;
    fill(&mock, 10);
    assert_ok(open_at(mock.address, &(weir_kafka_start){0}, 1, TIMEOUT_US, &consumer));
    assert_ok(read_on(consumer, &next));
    assert_int_equal(next, 10);
    mock_refuse(&mock, MOCK_FETCH, 3, RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED);
    fill(&mock, 10);
    weir_kafka_record record;
    weir_err err = WEIR_OK;
    for (int polls = 0; polls < POLLS_MAX && !err; polls++) {
        size_t got;
        err = weir_kafka_consumer_poll(consumer, WAIT_US, &record, 1, &got);
        next += got;
    }
    assert_err(err, WEIR_EPERM, "topic 'events' partition 0 at offset 10");
    assert_int_equal(next, 10);
    size_t got = 1;
    assert_err(weir_kafka_consumer_poll(consumer, 0, &record, 1, &got), WEIR_EPERM, "partition 0 at offset 10");
    assert_int_equal(got, 0);
    weir_kafka_consumer_close(consumer);
    mock_close(&mock);
}

/* Nothing comes over a connection that is not the one that was compared: not even when the log is the same. */
static void k6_another_connection_ends_it(void **state) {
    (void)state;
    mock_broker mock = mock_open(TOPIC, 1);
    weir_kafka_consumer *consumer;
    weir_kafka_record record;
    weir_kafka_start start = {.mark_count = 1};
    size_t got;
    fill(&mock, 10);
    assert_ok(open_at(mock.address, &(weir_kafka_start){0}, 1, TIMEOUT_US, &consumer));
    while (start.offset < 10) {
        assert_ok(weir_kafka_consumer_poll(consumer, WAIT_US, &record, 1, &got));
        if (!got) continue;
        assert_int_equal(record.offset, start.offset++);
        start.marks[0] = (weir_kafka_mark){start.offset, weir_kafka_record_check(&record)};
    }
    assert_int_equal(rd_kafka_mock_broker_set_down(mock.cluster, 1), 0);
    usleep(200000);
    assert_int_equal(rd_kafka_mock_broker_set_up(mock.cluster, 1), 0);
    fill(&mock, 10);
    weir_err err = WEIR_OK;
    for (int polls = 0; polls < POLLS_MAX && !err; polls++) {
        err = weir_kafka_consumer_poll(consumer, WAIT_US, &record, 1, &got);
        assert_int_equal(got, 0);
    }
    assert_err(err, WEIR_ECLOSED, "open the consumer again");
    weir_kafka_consumer_close(consumer);
    assert_ok(open_at(mock.address, &start, 1, TIMEOUT_US, &consumer));
    assert_ok(read_on(consumer, &start.offset));
    assert_int_equal(start.offset, 20);
    weir_kafka_consumer_close(consumer);
    start = (weir_kafka_start){.offset = 10, .mark_count = 1, .marks = {{10, 4711}}}; /* the log is not that one */
    assert_err(open_at(mock.address, &start, 1, TIMEOUT_US, &consumer), WEIR_ECORRUPT, "the record at offset 9");
    mock_close(&mock);
}

static weir_err open_and_close(void *context) {
    mock_broker *mock = context;
    weir_kafka_consumer *consumer;
    weir_err err = open_at(mock->address, &(weir_kafka_start){0}, 1, TIMEOUT_US, &consumer);
    if (err) assert_null(consumer);
    weir_kafka_consumer_close(consumer);
    return err;
}

static void open_fails_cleanly_at_every_allocation(void **state) {
    (void)state;
    mock_broker mock = mock_open(TOPIC, 1);
    weir_test_every_allocation(open_and_close, &mock);
    mock_close(&mock);
}

static void record_check_tells_records_apart(void **state) {
    (void)state;
    const weir_kafka_record records[] = {
        {.time_us = 1000},
        {.time_us = 1001},
        {.time_us = WEIR_KAFKA_NO_TIME},
        {.time_us = 1000, .stored_ms = 1},
        {.time_us = 1000, .key = ""},
        {.time_us = 1000, .value = ""},
        {.time_us = 1000, .key = "", .value = ""},
        {.time_us = 1000, .key = "ab", .key_length = 2, .value = "c", .value_length = 1},
        {.time_us = 1000, .key = "a", .key_length = 1, .value = "bc", .value_length = 2},
        {.time_us = 1000, .key = "a", .key_length = 1},
        {.time_us = 1000, .value = "a", .value_length = 1},
    };
    const size_t count = sizeof records / sizeof records[0];
    for (size_t i = 0; i < count; i++) {
        weir_kafka_record elsewhere = records[i];
        elsewhere.offset = 9;
        elsewhere.partition = 3;
        assert_true(weir_kafka_record_check(&records[i]) != 0);
        assert_true(weir_kafka_record_check(&records[i]) == weir_kafka_record_check(&elsewhere));
        for (size_t j = 0; j < i; j++)
            assert_true(weir_kafka_record_check(&records[i]) != weir_kafka_record_check(&records[j]));
    }
}

WEIR_TESTS(WEIR_CASE(no_broker), WEIR_CASE(bad_options), WEIR_CASE(partitions_that_are_not_to_be_read),
           WEIR_CASE(refused_is_refused_for_good), WEIR_CASE(k6_another_connection_ends_it),
           WEIR_CASE(open_fails_cleanly_at_every_allocation), WEIR_CASE(record_check_tells_records_apart))

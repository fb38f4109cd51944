/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mock.h - librdkafka's own mock brokers, for the errors that a real broker does not give on demand.
 *
 * What a broker really does is tested against a real one: tests/integration/kafka.
 */
#ifndef WEIR_TEST_KAFKA_MOCK_H
#define WEIR_TEST_KAFKA_MOCK_H

#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

#include "weir_test.h"

#define MOCK_PRODUCE      0 /* API keys of Kafka's protocol */
#define MOCK_FETCH        1
#define MOCK_LIST_OFFSETS 2
#define MOCK_METADATA     3

typedef struct mock_broker {
    rd_kafka_t *rk; /* carries the cluster and does nothing else */
    rd_kafka_mock_cluster_t *cluster;
    const char *address;
} mock_broker;

/* librdkafka starts its threads by thrd_create. gcc 12's thread sanitizer does not follow that: they would run without
 * the state that it keeps for each thread, and crash. */
static inline void mock_skip_under_thread_sanitizer(void) {
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define MOCK_NO_THREADS 1
#endif
#elif defined(__SANITIZE_THREAD__)
#define MOCK_NO_THREADS 1
#endif
#ifdef MOCK_NO_THREADS
    weir_test_skip("the thread sanitizer does not follow the threads of librdkafka");
#endif
}

/* One broker with one topic. */
static inline mock_broker mock_open(const char *topic, int partitions) {
    char text[256];
    mock_skip_under_thread_sanitizer();
    mock_broker mock = {.rk = rd_kafka_new(RD_KAFKA_PRODUCER, rd_kafka_conf_new(), text, sizeof text)};
    assert_non_null(mock.rk);
    mock.cluster = rd_kafka_mock_cluster_new(mock.rk, 1);
    assert_non_null(mock.cluster);
    mock.address = rd_kafka_mock_cluster_bootstraps(mock.cluster);
    assert_int_equal(rd_kafka_mock_topic_create(mock.cluster, topic, partitions, 1), 0);
    return mock;
}

static inline void mock_close(mock_broker *mock) {
    rd_kafka_mock_cluster_destroy(mock->cluster);
    rd_kafka_destroy(mock->rk);
}

/* The next `count` requests of this kind are answered with the error. */
static inline void mock_refuse(mock_broker *mock, int16_t api, size_t count, rd_kafka_resp_err_t error) {
    for (size_t i = 0; i < count; i++)
        rd_kafka_mock_push_request_errors(mock->cluster, api, 1, error);
}

static inline void mock_refuse_no_more(mock_broker *mock, int16_t api) {
    rd_kafka_mock_clear_request_errors(mock->cluster, api);
}

#endif /* WEIR_TEST_KAFKA_MOCK_H */

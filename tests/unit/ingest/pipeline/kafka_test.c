/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kafka_test.c - the pipeline over Kafka: offsets that the store keeps, a broker that is away, a topic that is
 * another one.
 *
 * What is produced is also appended to a log beside it, which nobody reads but the expectation.
 */
#include "../kafka/mock.h"

#include <unistd.h>

#include <weir/ingest/kafka/kafka.h>
#include <weir/store/base/metrics.h>

#include "fixture.h"
#include "positions.h"

static const char cards[] = "version: 1\n"
                            "name: cards\n"
                            "vertices: {account: {}, card: {}}\n"
                            "relations: {holds: {from: account, to: card}}\n"
                            "sources:\n"
                            "  cards:\n"
                            "    id: id\n"
                            "    time: {field: t, format: s}\n"
                            "    mutations:\n"
                            "      - {put_edge: holds, from: account, to: card}\n";

static void kafka_start(fixture *f, const mock_broker *mock) {
    const weir_pipeline_source source = {.source = 0, .stream = WEIR_PIPELINE_KAFKA};
    const weir_pipeline_opts opts = {.graph = f->graph,
                                     .folder = weir_test_path("store"),
                                     .letter_folder = weir_test_path("log"),
                                     .sources = &source,
                                     .source_count = 1,
                                     .brokers = mock->address,
                                     .kafka_timeout_us = 2 * WEIR_US_PER_S};
    assert_ok(weir_pipeline_open(&opts, &f->pipeline));
    assert_ok(weir_pipeline_start(f->pipeline));
}

static void produce(fixture *f, const mock_broker *mock, uint64_t begin, uint64_t end) {
    const weir_kafka_producer_opts opts = {
        .brokers = mock->address, .topic = "cards", .timeout_us = 30 * WEIR_US_PER_S};
    weir_kafka_producer *producer;
    uint64_t acknowledged;
    assert_ok(weir_kafka_producer_open(&opts, &producer));
    for (uint64_t n = begin; n < end; n++) {
        char text[128], key[32];
        int length =
            snprintf(text, sizeof text, "{\"id\":\"e%llu\",\"t\":%llu,\"account\":\"a%llu\",\"card\":\"c%llu\"}",
                     (unsigned long long)n, 1000 + (unsigned long long)n, (unsigned long long)n % 17,
                     (unsigned long long)n % 23);
        int key_length = snprintf(key, sizeof key, "%llu", (unsigned long long)n);
        assert_ok(weir_kafka_produce(producer, (int64_t)(1000 + n) * WEIR_US_PER_S, key, (size_t)key_length, text,
                                     (size_t)length));
        fixture_append(f, 0, 0, text, (size_t)length);
    }
    assert_ok(weir_kafka_flush(producer, &acknowledged));
    assert_int_equal(acknowledged, end - begin);
    weir_kafka_producer_close(producer);
    assert_ok(weir_eventlog_sync(f->logs[0]));
}

/* A client of its own: weir_kafka_produce gives every record a value. */
static void produce_tombstones(const mock_broker *mock, int count) {
    char text[256];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    assert_int_equal(rd_kafka_conf_set(conf, "bootstrap.servers", mock->address, text, sizeof text), RD_KAFKA_CONF_OK);
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, text, sizeof text);
    assert_non_null(rk);
    rd_kafka_topic_t *topic = rd_kafka_topic_new(rk, "cards", NULL);
    assert_non_null(topic);
    for (int i = 0; i < count; i++)
        assert_int_equal(rd_kafka_produce(topic, 0, 0, NULL, 0, "a", 1, NULL), 0);
    assert_int_equal(rd_kafka_flush(rk, 30000), RD_KAFKA_RESP_ERR_NO_ERROR);
    rd_kafka_topic_destroy(topic);
    rd_kafka_destroy(rk);
}

/* Until so many records were handed over: what the broker has told of may be less for a moment. */
static void wait_for_records(fixture *f, uint64_t records) {
    weir_pipeline_source_stats stats;
    for (int i = 0; i < 6000; i++) {
        weir_pipeline_source_stats_get(f->pipeline, 0, &stats);
        if (stats.records >= records) break;
        if (stats.status == WEIR_PIPELINE_FAILED) assert_ok(stats.err);
        usleep(10000);
    }
    assert_int_equal(stats.records, records);
    assert_ok(weir_graph_drain(f->graph));
}

static void wait_for_status(fixture *f, weir_pipeline_status status, weir_pipeline_source_stats *stats) {
    for (int i = 0; i < 6000; i++) {
        weir_pipeline_source_stats_get(f->pipeline, 0, stats);
        if (stats->status == status) return;
        usleep(10000);
    }
    fail_msg("the source is %s", weir_pipeline_status_name(stats->status));
}

static void a_topic_is_read_on_where_the_store_is(void **state) {
    (void)state;
    mock_broker mock = mock_open("cards", 3);
    fixture f = {.schema = fixture_schema(cards)};
    fixture_open_logs(&f);
    fixture_open_graph(&f);
    produce(&f, &mock, 0, 500);
    kafka_start(&f, &mock);
    wait_for_records(&f, 500);
    produce(&f, &mock, 500, 700);
    wait_for_records(&f, 700);
    fixture_compare(&f);
    fixture_stop(&f);
    produce(&f, &mock, 700, 900);
    fixture_open_graph(&f);
    kafka_start(&f, &mock);
    wait_for_records(&f, 200);
    fixture_compare(&f);
    fixture_close(&f);
    mock_close(&mock);
}

static void a_broker_that_is_away_is_waited_for(void **state) {
    (void)state;
    mock_broker mock = mock_open("cards", 1);
    fixture f = {.schema = fixture_schema(cards)};
    weir_pipeline_source_stats stats;
    fixture_open_logs(&f);
    fixture_open_graph(&f);
    produce(&f, &mock, 0, 50);
    assert_int_equal(rd_kafka_mock_broker_set_down(mock.cluster, 1), 0);
    kafka_start(&f, &mock);
    wait_for_status(&f, WEIR_PIPELINE_WAITING, &stats);
    assert_err(stats.err, WEIR_EUNAVAILABLE, NULL);
    assert_err(weir_pipeline_drain(f.pipeline, 10000), WEIR_ETIMEOUT, NULL);
    assert_int_equal(rd_kafka_mock_broker_set_up(mock.cluster, 1), 0);
    wait_for_records(&f, 50);
    assert_int_equal(rd_kafka_mock_broker_set_down(mock.cluster, 1), 0); /* and once more while it reads */
    usleep(200000);
    assert_int_equal(rd_kafka_mock_broker_set_up(mock.cluster, 1), 0);
    produce(&f, &mock, 50, 80);
    wait_for_records(&f, 80);
    fixture_compare(&f);
    fixture_close(&f);
    mock_close(&mock);
}

/*
 * Rights are given and taken in steps: what is refused for a time only is no failure. It is refused until the source is
 * seen to wait: on a busy machine one refusal may be over before anybody looks.
 */
static void a_refusal_that_ends_is_waited_for(void **state) {
    (void)state;
    mock_broker mock = mock_open("cards", 1);
    fixture f = {.schema = fixture_schema(cards)};
    weir_pipeline_source_stats stats;
    fixture_open_logs(&f);
    fixture_open_graph(&f);
    produce(&f, &mock, 0, 50);
    kafka_start(&f, &mock);
    wait_for_records(&f, 50);
    mock_refuse(&mock, MOCK_FETCH, 1000, RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED);
    wait_for_status(&f, WEIR_PIPELINE_WAITING, &stats);
    mock_refuse_no_more(&mock, MOCK_FETCH);
    assert_err(stats.err, WEIR_EPERM, "cards");
    assert_false(stats.connected);
    produce(&f, &mock, 50, 80);
    wait_for_records(&f, 80);
    fixture_compare(&f);
    weir_pipeline_source_stats_get(f.pipeline, 0, &stats);
    assert_int_equal(stats.status, WEIR_PIPELINE_RUNNING);
    fixture_close(&f);
    mock_close(&mock);
}

/* What of the topic is written down to know it again by; false: nothing. */
static bool written_down(weir_position *foundp) {
    weir_positions *positions;
    bool found = false;
    assert_ok(weir_positions_open(weir_test_path("store"), &positions));
    for (uint32_t source = 0; !found && source < 8; source++)
        found = weir_positions_get(positions, source, 0, foundp) && foundp->check;
    weir_positions_close(positions);
    return found;
}

/* After a crash it is read on from what is sealed: by a record behind that nobody would know the topic again, and one
 * that was made anew would be taken for it. */
static void a_topic_is_known_by_what_is_sealed(void **state) {
    (void)state;
    mock_broker mock = mock_open("cards", 1);
    fixture f = {.schema = fixture_schema(cards)};
    weir_position position;
    f.graph_opts = (weir_graph_opts){.shards = 2, .memory_bytes = 64u << 20, .seal_us = 3600 * WEIR_US_PER_S};
    fixture_open_logs(&f);
    fixture_open_graph(&f);
    produce(&f, &mock, 0, 50);
    kafka_start(&f, &mock);
    wait_for_records(&f, 50);
    assert_ok(weir_graph_seal(f.graph));
    produce(&f, &mock, 50, 100);
    wait_for_records(&f, 100);
    assert_ok(weir_pipeline_close(f.pipeline));
    f.pipeline = NULL;
    assert_true(written_down(&position));
    assert_in_range(position.offset, 1, 50);
    fixture_close(&f);
    mock_close(&mock);
}

/* The same name, the same length and more, other records. */
static void a_recreated_topic_is_found_out(void **state) {
    (void)state;
    mock_broker mock = mock_open("cards", 1);
    fixture f = {.schema = fixture_schema(cards)};
    weir_pipeline_source_stats stats;
    fixture_open_logs(&f);
    fixture_open_graph(&f);
    produce(&f, &mock, 0, 50);
    kafka_start(&f, &mock);
    wait_for_records(&f, 50);
    assert_ok(weir_graph_seal(f.graph));
    fixture_stop(&f);
    mock_close(&mock);
    mock = mock_open("cards", 1);
    produce(&f, &mock, 1000, 1100);
    fixture_open_graph(&f);
    kafka_start(&f, &mock);
    wait_for_status(&f, WEIR_PIPELINE_FAILED, &stats);
    assert_err(stats.err, WEIR_ECORRUPT, "not the one that was read there before");
    fixture_stop(&f);
    mock_close(&mock);
    mock = mock_open("cards", 1); /* shorter than what was read */
    produce(&f, &mock, 2000, 2010);
    fixture_open_graph(&f);
    kafka_start(&f, &mock);
    wait_for_status(&f, WEIR_PIPELINE_FAILED, &stats);
    assert_err(stats.err, WEIR_ECORRUPT, NULL);
    fixture_close(&f);
    mock_close(&mock);
}

static void a_topic_with_fewer_partitions_is_another(void **state) {
    (void)state;
    mock_broker mock = mock_open("cards", 3);
    fixture f = {.schema = fixture_schema(cards)};
    weir_pipeline_source_stats stats;
    fixture_open_logs(&f);
    fixture_open_graph(&f);
    kafka_start(&f, &mock);
    wait_for_status(&f, WEIR_PIPELINE_RUNNING, &stats);
    fixture_stop(&f);
    mock_close(&mock);
    mock = mock_open("cards", 2);
    fixture_open_graph(&f);
    kafka_start(&f, &mock);
    wait_for_status(&f, WEIR_PIPELINE_FAILED, &stats);
    assert_err(stats.err, WEIR_EDATA, "recreated");
    fixture_close(&f);
    mock_close(&mock);
}

static void a_log_is_not_a_topic_of_the_same_name(void **state) {
    (void)state;
    mock_broker mock = mock_open("cards", 1);
    fixture f = {.schema = fixture_schema(cards)};
    fixture_open(&f);
    fixture_stop(&f);
    fixture_open_graph(&f);
    const weir_pipeline_source source = {.source = 0, .stream = WEIR_PIPELINE_KAFKA};
    const weir_pipeline_opts opts = {.graph = f.graph,
                                     .folder = weir_test_path("store"),
                                     .letter_folder = weir_test_path("log"),
                                     .sources = &source,
                                     .source_count = 1,
                                     .brokers = mock.address};
    assert_err(weir_pipeline_open(&opts, &f.pipeline), WEIR_EDATA, NULL);
    fixture_close(&f);
    mock_close(&mock);
}

static void tombstones_that_mean_nothing_are_counted(void **state) {
    (void)state;
    mock_broker mock = mock_open("cards", 1);
    fixture f = {.schema = fixture_schema(cards)};
    weir_pipeline_source_stats stats;
    uint64_t counted = weir_metric_counter(WEIR_METRIC_INGEST_TOMBSTONES);
    fixture_open_logs(&f);
    fixture_open_graph(&f);
    produce(&f, &mock, 0, 20);
    produce_tombstones(&mock, 7);
    kafka_start(&f, &mock);
    wait_for_records(&f, 27);
    weir_pipeline_source_stats_get(f.pipeline, 0, &stats);
    assert_int_equal(stats.tombstones, 7);
    assert_int_equal(stats.dead_letters, 0);
    fixture_compare(&f);
    fixture_close(&f); /* its threads have ended: all is counted */
    assert_int_equal(weir_metric_counter(WEIR_METRIC_INGEST_TOMBSTONES) - counted, 7);
    mock_close(&mock);
}

WEIR_TESTS(WEIR_CASE(a_topic_is_read_on_where_the_store_is), WEIR_CASE(a_broker_that_is_away_is_waited_for),
           WEIR_CASE(a_refusal_that_ends_is_waited_for), WEIR_CASE(a_recreated_topic_is_found_out),
           WEIR_CASE(a_topic_is_known_by_what_is_sealed), WEIR_CASE(a_topic_with_fewer_partitions_is_another),
           WEIR_CASE(a_log_is_not_a_topic_of_the_same_name), WEIR_CASE(tombstones_that_mean_nothing_are_counted))

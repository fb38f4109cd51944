/* SPDX-License-Identifier: Apache-2.0 */
/* serve_test.c - `weir serve --kafka` whose broker is down, dies and comes back, and whose topic was recreated. */
#include <weir/ingest/kafka/kafka.h>

#include "../../support/serve_child.h"
#include "broker.h"
#include "positions.h"

#define TIMEOUT_US 300000000 /* longer than a broker on a busy machine needs to come back */

/* --- events ----------------------------------------------------------------------------------------------------- */

static void produce(const char *prefix, unsigned first, unsigned count) {
    const weir_kafka_producer_opts opts = {
        .brokers = broker_address, .topic = "payments", .partitions = 1, .timeout_us = TIMEOUT_US};
    weir_kafka_producer *producer;
    uint64_t delivered;
    char text[256];
    assert_ok(weir_kafka_producer_open(&opts, &producer));
    for (unsigned i = first; i < first + count; i++) {
        int length = snprintf(text, sizeof text,
                              "{\"id\":\"%s%u\",\"time\":\"2026-01-05T10:00:%02uZ\",\"account\":\"a1\",\"amount\":1,"
                              "\"currency\":\"EUR\",\"channel\":\"web\"}",
                              prefix, i, i % 60);
        assert_ok(weir_kafka_produce(producer, TIMEOUT_US, "a1", 2, text, (size_t)length));
    }
    assert_ok(weir_kafka_flush(producer, &delivered));
    assert_int_equal(delivered, count);
    weir_kafka_producer_close(producer);
}

/* The schema's other source has a topic, too. */
static void make_topics(void) {
    broker_do("topic", "create", "payments", "--partitions", "1");
    broker_do("topic", "create", "chargebacks", "--partitions", "1");
}

/* Until it is gone: the broker agrees first. */
static void remove_topic(const char *name) {
    const char *const ls[] = {"topic", "ls", "--dir", broker_folder, NULL};
    broker_do("topic", "rm", name);
    for (bool there = true; there;) {
        weir_test_output output;
        assert_int_equal(broker_tool(ls, NULL, &output), 0);
        there = strstr(output.out, name) != NULL;
        weir_test_output_free(&output);
    }
}

static void start(serve_child *server) {
    char kafka[128];
    snprintf(kafka, sizeof kafka, "--kafka=%s", broker_address);
    const char *const more[] = {kafka, "--set", "kafka.timeout=2s", "--set", "store.seal_interval=50ms", NULL};
    serve_start(server, weir_test_path("data"), more);
    assert_true(server->port);
}

static void ready(const serve_child *server) {
    serve_await(server, "/readyz", NULL, 200, NULL);
}

static void answers(const serve_child *server, const char *event) {
    char part[64];
    snprintf(part, sizeof part, "\"%s\"", event);
    serve_await(server, "/v1/neighbors/account/a1?limit=1000", NULL, 200, part);
}

/* --- cases ------------------------------------------------------------------------------------------------------ */

static void a_broker_that_is_down_is_said_and_waited_for(void **state) {
    (void)state;
    serve_child server;
    broker_needed();
    make_topics();
    produce("p", 0, 10);
    broker_kill();
    start(&server);
    serve_await(&server, "/readyz?verbose", NULL, 503, "\"status\":\"waiting\"");
    serve_await(&server, "/readyz?verbose", NULL, 503, "ops/kafka up");
    serve_await(&server, "/livez", NULL, 200, NULL);
    broker_start_again();
    ready(&server);
    answers(&server, "p9");
    broker_kill(); /* while it reads */
    answers(&server, "p9");
    broker_start_again();
    produce("p", 10, 10);
    answers(&server, "p19");
    assert_int_equal(serve_end(&server, SIGTERM), 0);
}

/* What was stored is served on, but the source stops: its offsets mean something else now. */
static void a_recreated_topic_stops_its_source(void **state) {
    (void)state;
    serve_child server;
    broker_needed();
    make_topics();
    produce("p", 0, 20);
    start(&server);
    ready(&server);
    http_answer at_once;
    client_ask(server.port, "GET /v1/neighbors/account/a1?limit=1000 HTTP/1.1\r\nHost: localhost\r\n\r\n", &at_once);
    assert_non_null(strstr(at_once.body, "\"p19\"")); /* ready means that what was there before is applied */
    answer_free(&at_once);
    positions_await((const uint64_t[]){20}, 1);
    assert_int_equal(serve_end(&server, SIGTERM), 0);
    remove_topic("payments");
    broker_do("topic", "create", "payments", "--partitions", "1");
    produce("q", 0, 40);
    start(&server);
    serve_await(&server, "/readyz", NULL, 503, "was created again");
    answers(&server, "p19");
    http_answer answer;
    client_ask(server.port, "GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n", &answer);
    printf("%s", answer.body);
    answer_free(&answer);
    client_ask(server.port, "GET /v1/neighbors/account/a1?limit=1000 HTTP/1.1\r\nHost: localhost\r\n\r\n", &answer);
    assert_null(strstr(answer.body, "\"q"));
    answer_free(&answer);
    assert_int_equal(serve_end(&server, SIGTERM), 0);
}

WEIR_BROKER_TESTS(broker_start, WEIR_CASE(a_broker_that_is_down_is_said_and_waited_for),
                  WEIR_CASE(a_recreated_topic_stops_its_source))

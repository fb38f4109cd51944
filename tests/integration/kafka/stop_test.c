/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stop_test.c - SIGTERM ends a server in whatever state its topic is, 100 times each in a long campaign.
 *
 * Nothing here looks at a clock but to say how long it took: a stop that hangs meets the limit of its case.
 */
#include "living.h"

#define EVENTS 40u

/* Starts a server, brings it into the state and stops it, so often; resume is called behind each stop. */
static void stops(const char *name, void (*enter)(const serve_child *server), void (*resume)(void)) {
    int64_t longest_us = 0;
    uint64_t rounds = weir_test_rounds(1);
    if (rounds > 1) rounds = 100;
    for (uint64_t i = 0; i < rounds; i++) {
        serve_child server;
        living_serve(&server, NULL);
        enter(&server);
        int64_t begin_us = serve_now_us();
        int status = serve_end(&server, SIGTERM);
        int64_t took_us = serve_now_us() - begin_us;
        if (resume) resume();
        assert_true(status < 128);
        if (took_us > longest_us) longest_us = took_us;
    }
    printf("%s: %llu stops, the longest %.1f s\n", name, (unsigned long long)rounds, (double)longest_us / 1e6);
}

static void make(const char *topic) {
    broker_needed();
    living_make(topic, 1, NULL);
    living_describe(topic, "");
    living_produce(topic, 0, 0, EVENTS);
    living_add(truth, 0, EVENTS);
}

static void hold_broker(const serve_child *server) {
    living_await_truth(server, truth);
    assert_int_equal(kill(broker_pid(broker_folder), SIGSTOP), 0);
    serve_await(server, "/readyz", NULL, 503, "has not heard from its Kafka brokers since");
}

static void let_broker_go(void) {
    assert_int_equal(kill(broker_pid(broker_folder), SIGCONT), 0);
}

static void while_the_broker_is_silent(void **state) {
    (void)state;
    living_stale = "ingest.stale_max=1s";
    make("silent-stop");
    stops(__func__, hold_broker, let_broker_go);
}

static void await_silence(const serve_child *server) {
    serve_await(server, "/readyz", NULL, 503, "has not heard from its Kafka brokers since");
}

/* The store knows the topic from before. */
static void while_the_broker_is_gone(void **state) {
    (void)state;
    serve_child server;
    living_stale = "ingest.stale_max=1s";
    make("gone-stop");
    living_serve(&server, NULL);
    living_await_truth(&server, truth);
    living_stop(&server);
    broker_kill();
    stops(__func__, await_silence, NULL);
    broker_start_again();
}

static void await_another(const serve_child *server) {
    serve_await(server, "/readyz", NULL, 503, "created again");
}

static void while_the_topic_is_another(void **state) {
    (void)state;
    serve_child server;
    make("remade-stop");
    living_serve(&server, NULL);
    living_await_truth(&server, truth);
    living_await_known(&server, "remade-stop", 1);
    living_stop(&server);
    living_remake("remade-stop", 1000, EVENTS, 0);
    stops(__func__, await_another, NULL);
}

static void await_transaction(const serve_child *server) {
    serve_await(server, "/readyz", NULL, 503, "open transaction");
}

static void while_a_transaction_is_open(void **state) {
    (void)state;
    living_stale = "ingest.stale_max=1s";
    make("open-stop");
    rd_kafka_t *rk = living_transactional("open-stop");
    assert_null(rd_kafka_begin_transaction(rk));
    for (uint64_t n = EVENTS; n < 2 * EVENTS; n++)
        living_send(rk, "open-stop", 0, n, 0);
    assert_int_equal(rd_kafka_flush(rk, LIVING_WAIT_MS), 0);
    stops(__func__, await_transaction, NULL);
    living_end(rk, false);
    rd_kafka_destroy(rk);
}

WEIR_BROKER_TESTS(broker_start, WEIR_CASE(while_the_broker_is_silent), WEIR_CASE(while_the_broker_is_gone),
                  WEIR_CASE(while_the_topic_is_another), WEIR_CASE(while_a_transaction_is_open))

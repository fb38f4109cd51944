/* SPDX-License-Identifier: Apache-2.0 */
/* kafka_test.c - the campaign with events through a real Kafka broker; a delivered message counts as acknowledged. */
#include "campaign.h"

#include <weir/ingest/kafka/kafka.h>

#include "../../integration/kafka/broker.h"

#define TIMEOUT_US 300000000 /* longer than a broker on a busy machine needs to come back */
#define PARTITIONS 2u

static weir_kafka_producer *producer;

/* --- sending ------------------------------------------------------------------------------------------------*/

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

static void produce(campaign *c, size_t number, const char *text) {
    char key[16];
    int length = snprintf(key, sizeof key, "a%u", c->book.events[number].account);
    assert_ok(weir_kafka_produce(producer, WEIR_US_PER_S, key, (size_t)length, text, strlen(text)));
}

/* What a producer without memory does to a topic: an event again, which changes nothing, and its id with other bytes,
 * which is refused. */
static void produce_again(campaign *c) {
    char text[BOOK_TEXT_MAX];
    size_t number = weir_rng_below(&c->rng, c->book.acknowledged);
    bool stands = !c->book.events[number].broken; /* behind what was refused the next one would be the first */
    bool other = stands && weir_rng_below(&c->rng, 3) == 0;
    if (other) book_other_bytes(&c->book, number, text);
    produce(c, number, other ? text : c->book.events[number].text);
    c->book.events[number].losers += other;
    c->book.events[number].copies += !other;
    c->book.records++;
}

static bool send_events(campaign *c, const serve_child *server, size_t count) {
    uint64_t delivered;
    size_t first = c->book.count;
    for (size_t i = 0; i < count; i++) {
        book_next(&c->book, &c->rng, true);
        produce(c, c->book.count - 1, c->book.events[c->book.count - 1].text);
        if (c->book.acknowledged && weir_rng_below(&c->rng, 10) == 0) produce_again(c);
    }
    assert_ok(weir_kafka_flush(producer, &delivered));
    for (size_t i = first; i < c->book.count; i++)
        book_acknowledge(&c->book, i, 0, 0);
    assert_int_equal(delivered, c->book.records);
    return is_alive(server);
}

/* --- the topic ----------------------------------------------------------------------------------------------*/

static void see_records(const campaign *c, const weir_kafka_record *records, size_t count, uint32_t *seen) {
    for (size_t i = 0; i < count; i++) {
        size_t number = book_number(records[i].value, records[i].value_length);
        assert_in_range(number, 0, c->book.count - 1);
        seen[number]++;
    }
}

static void compare_log(campaign *c) {
    weir_kafka_start starts[PARTITIONS] = {{0}};
    weir_kafka_record records[256];
    weir_kafka_consumer *consumer;
    if (!c->book.acknowledged) return;
    uint32_t *seen = weir_calloc(c->book.count, sizeof *seen);
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
    for (size_t i = 0; i < c->book.count; i++) {
        uint32_t wanted = 1 + c->book.events[i].copies + c->book.events[i].losers;
        if (seen[i] < wanted) lose("in the topic: event", i);
        if (seen[i] > wanted) doubled("in the topic: event", i);
    }
    weir_kafka_consumer_close(consumer);
    weir_free(seen);
}

/* --- a topic that is another one ------------------------------------------------------------------------------*/

/* Under the same name, with events of its own: as many as the first one has, or fewer, or more. */
static void remake_topic(campaign *c) {
    char text[BOOK_TEXT_MAX];
    uint64_t delivered, count = 1 + weir_rng_below(&c->rng, 2 * c->book.records);
    const weir_kafka_producer_opts opts = {
        .brokers = broker_address, .topic = c->topic, .partitions = PARTITIONS, .timeout_us = TIMEOUT_US};
    weir_kafka_producer_close(producer);
    producer = NULL;
    broker_do("topic", "rm", c->topic);
    assert_ok(weir_kafka_producer_open(&opts, &producer));
    for (uint64_t i = 0; i < count; i++) {
        snprintf(text, sizeof text, "{\"id\":\"n%" PRIu64 "\",\"t\":1,\"account\":\"new\",\"age\":1}", i);
        assert_ok(weir_kafka_produce(producer, WEIR_US_PER_S, text, 8, text, strlen(text)));
    }
    assert_ok(weir_kafka_flush(producer, &delivered));
}

/* The status of /readyz, and whether its sentence is more than a request to wait. */
static bool says_why_not(campaign *c) {
    http_answer answer;
    assert_true(client_text(&c->client, "GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    client_read(&c->client, &answer);
    assert_true(answer.status == 200 || answer.status == 503);
    bool says = answer.status == 503 && !strstr(answer.body, "; wait");
    answer_free(&answer);
    return says;
}

/* The store is of a topic that is gone: while the server runs, or while it does not, the next one came. It must stop
 * and say so, whatever the new one's offsets are: its first events would be missing, and the old ones stay. */
static void topic_remade_is_said(campaign *c) {
    serve_child server;
    bool running = weir_rng_below(&c->rng, 2);
    if (!c->book.acknowledged) return;
    fprintf(stderr, "  the topic is made again while the server %s\n", running ? "runs" : "is down");
    if (!running) remake_topic(c);
    server_start(c, NULL, 0, INT64_MAX / 2, &server);
    if (server.port) {
        assert_true(connect_to(c, &server));
        if (running) serve_await(&server, "/readyz", NULL, 200, NULL);
        if (running) await_all(c);
        if (running) remake_topic(c);
        bool said = false;
        for (int waited_ms = 0; !said && waited_ms < CAUGHT_UP_MS; waited_ms += 20) {
            said = says_why_not(c);
            if (!said) usleep(20000);
        }
        if (!said) lose("the word that the topic is another one, after cycle", sum->cycles);
        disconnect(c);
    }
    int status = serve_end(&server, SIGTERM);
    if (status >= 128) fail_msg("the server was ended by signal %d", status - 128);
}

/* --- the campaign -------------------------------------------------------------------------------------------*/

static kill_point points[] = {
    {"seal.begin", 9, 0},         {"seal.half_written", 9, 0}, {"engine.finished", 9, 0},
    {"engine.ingested", 9, 0},    {"seal.ingested", 9, 0},     {"seal.end", 9, 0},
    {"serve.opened", 1, 0},       {"serve.ready", 1, 0},       {"pipeline.letters_synced", 9, 0},
    {"pipeline.submitted", 9, 0}, {"shard.applied", 30, 0},    {"trim.begun", 3, 0},
    {"trim.written", 3, 0},       {"trim.whole", 3, 0},        {"trim.replaced", 3, 0},
    {"checkpoint.shard", 3, 0},   {"checkpoint.whole", 1, 0},
};

static void kill_between_kafka_and_graph(void **state) {
    const stream kafka = {.kafka = broker_needed(),
                          .life_max_ms = 1500,
                          .points = points,
                          .point_count = sizeof points / sizeof points[0],
                          .begin = begin,
                          .end = topic_remade_is_said,
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

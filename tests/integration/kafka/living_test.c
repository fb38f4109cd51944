/* SPDX-License-Identifier: Apache-2.0 */
/* living_test.c - what others do to a topic that `weir serve` reads: each must be read, or said. */
#include <dirent.h>

#include "living.h"

/* The same sentence, whatever else is said meanwhile: more often than the ring of sentences is long. */
static void stays(const serve_child *server, const char *words) {
    char first[1024], again[1024];
    living_await_failure(server, words, first);
    for (int i = 0; i < 400; i++) {
        assert_int_equal(living_ready(server, again), 503);
        assert_string_equal(again, first);
    }
}

/* --- partitions and topics that appear ---------------------------------------------------------------------------- */

static void partitions_added_while_running_are_read(void **state) {
    (void)state;
    serve_child server;
    broker_needed();
    living_make("widened", 2, NULL);
    living_describe("widened", "");
    living_produce("widened", 0, 0, 50);
    living_produce("widened", 1, 50, 50);
    living_add(truth, 0, 100);
    living_serve(&server, NULL);
    living_await_truth(&server, truth);
    living_widen("widened", 4);
    living_produce("widened", 2, 100, 50); /* from their first records on */
    living_produce("widened", 3, 150, 50);
    living_produce("widened", 0, 200, 50);
    living_add(truth, 100, 150);
    living_await_truth(&server, truth);
    living_stop(&server);
    living_serve(&server, NULL);
    living_await_truth(&server, truth);
    living_stop(&server);
}

static void a_topic_that_appears_later_is_read(void **state) {
    (void)state;
    serve_child server;
    broker_needed();
    living_describe("later", "");
    living_serve(&server, NULL);
    stays(&server, "no topic 'later'");
    serve_await(&server, "/readyz?verbose", NULL, 503, "\"status\":\"waiting\"");
    living_make("later", 2, NULL);
    living_produce("later", 1, 0, 30);
    living_add(truth, 0, 30);
    living_await_truth(&server, truth);
    serve_await(&server, "/readyz", NULL, 200, NULL);
    living_stop(&server);
}

/* --- another log under the same name ------------------------------------------------------------------------------ */

static void is_remade(const char *topic, uint64_t first, uint64_t count, int64_t stamp_ms, bool running,
                      const char *words) {
    serve_child server;
    broker_needed();
    living_make(topic, 1, NULL);
    living_describe(topic, "");
    living_produce_at(topic, 0, 0, 100, stamp_ms);
    living_add(truth, 0, 100);
    living_serve(&server, NULL);
    living_await_truth(&server, truth);
    living_await_known(&server, topic, 1);
    if (!running) living_stop(&server);
    living_remake(topic, first, count, stamp_ms ? stamp_ms + 7 : 0);
    if (!running) living_serve(&server, NULL);
    living_is_found(&server, words);
    stays(&server, words);
    living_stop(&server);
    living_serve(&server, NULL); /* and the next start knows it, too */
    living_is_found(&server, words);
    living_stop(&server);
}

static const char *const other = "created again";

static void a_topic_made_again_longer_is_found(void **state) {
    (void)state;
    is_remade("longer", 1000, 250, 0, true, other);
}
static void a_topic_made_again_as_long_is_found(void **state) {
    (void)state;
    is_remade("equal", 1000, 100, 0, true, other);
}
static void a_topic_made_again_shorter_is_found(void **state) {
    (void)state;
    is_remade("shorter", 1000, 40, 0, true, other);
}
static void a_topic_made_again_empty_is_found(void **state) {
    (void)state;
    is_remade("empty", 1000, 0, 0, true, other);
}
/* The same events sent once more: their own time is the same, Kafka's is not. */
static void a_topic_made_again_with_the_same_events_is_found(void **state) {
    (void)state;
    is_remade("same", 0, 250, 1700000000000, true, other);
}
static void a_topic_made_again_while_stopped_is_found(void **state) {
    (void)state;
    is_remade("stopped", 1000, 250, 0, false, other);
}
static void a_topic_made_again_as_long_while_stopped_is_found(void **state) {
    (void)state;
    is_remade("stopped-equal", 1000, 100, 0, false, other);
}

/* --- a log that was cut back -------------------------------------------------------------------------------------- */

/* Produced one batch each, so that the cut leaves a prefix of them. */
static void produce_singly(const char *topic, uint64_t first, uint64_t count) {
    rd_kafka_t *rk = living_client(NULL);
    for (uint64_t n = first; n < first + count; n++) {
        living_send(rk, topic, 0, n, 0);
        assert_int_equal(rd_kafka_flush(rk, LIVING_WAIT_MS), 0);
    }
    rd_kafka_destroy(rk);
}

static void is_cut(const char *topic, uint64_t grown, bool running) {
    serve_child server;
    broker_needed();
    living_make(topic, 1, NULL);
    living_describe(topic, "");
    produce_singly(topic, 0, 100);
    living_add(truth, 0, 100);
    living_serve(&server, NULL);
    living_await_truth(&server, truth);
    living_await_known(&server, topic, 1);
    if (!running) living_stop(&server);
    broker_kill();
    broker_do("down");
    living_cut(topic, 0, 0.75);
    broker_start_again();
    if (grown) living_produce(topic, 0, 1000, grown);
    if (!running) living_serve(&server, NULL);
    living_is_found(&server, other);
    living_stop(&server);
}

static void a_log_cut_back_is_found(void **state) {
    (void)state;
    is_cut("cut", 0, true);
}
static void a_log_cut_back_and_grown_again_is_found(void **state) {
    (void)state;
    is_cut("cut-grown", 150, true);
}
static void a_log_cut_back_and_grown_again_while_stopped_is_found(void **state) {
    (void)state;
    is_cut("cut-stopped", 150, false);
}

/* --- a store that is filled anew ---------------------------------------------------------------------------------- */

static size_t count_aside(void) {
    size_t count = 0;
    struct dirent *entry;
    DIR *folder = opendir(weir_test_path("data"));
    assert_non_null(folder);
    while ((entry = readdir(folder)))
        count += strncmp(entry->d_name, "store.aside-", 12) == 0;
    closedir(folder);
    return count;
}

static void a_rebuild_keeps_the_old_store_aside(void **state) {
    (void)state;
    serve_child server;
    char sentence[1024];
    broker_needed();
    living_make("rebuilt", 1, NULL);
    living_describe("rebuilt", "");
    living_produce("rebuilt", 0, 0, 100);
    living_serve(&server, NULL);
    living_add(truth, 0, 100);
    living_await_truth(&server, truth);
    living_stop(&server);
    living_remake("rebuilt", 1000, 60, 0);
    living_serve(&server, NULL);
    living_await_failure(&server, other, sentence);
    living_stop(&server);
    memset(truth, 0, sizeof truth);
    living_add(truth, 1000, 60);
    living_serve(&server, "--rebuild");
    living_await_truth(&server, truth);
    serve_await(&server, "/readyz", NULL, 200, NULL);
    assert_int_equal(count_aside(), 1);
    const char *const second[] = {weir_test_program(),
                                  "serve",
                                  "--schema",
                                  weir_test_path("schema.yaml"),
                                  "--data",
                                  weir_test_path("data"),
                                  "--rebuild",
                                  "--listen",
                                  "127.0.0.1:0",
                                  NULL};
    weir_test_output output;
    weir_test_run(second, NULL, &output); /* not under a server that runs */
    assert_int_equal(output.status, 69);
    weir_test_output_free(&output);
    assert_int_equal(count_aside(), 1);
    living_stop(&server);
}

/* --- transactions ------------------------------------------------------------------------------------------------- */

static rd_kafka_t *open_transactional(const char *name) {
    const char *const settings[][2] = {{"transactional.id", name}, {"transaction.timeout.ms", "600000"}, {NULL, NULL}};
    rd_kafka_t *rk = living_client(settings);
    assert_null(rd_kafka_init_transactions(rk, LIVING_WAIT_MS));
    return rk;
}

static void end_transaction(rd_kafka_t *rk, bool commit) {
    assert_null(commit ? rd_kafka_commit_transaction(rk, LIVING_WAIT_MS)
                       : rd_kafka_abort_transaction(rk, LIVING_WAIT_MS));
}

static void an_open_transaction_is_said(void **state) {
    (void)state;
    serve_child server;
    char sentence[1024];
    broker_needed();
    living_stale = "ingest.stale_max=2s";
    living_make("open", 1, NULL);
    living_describe("open", "");
    living_produce("open", 0, 0, 20);
    living_add(truth, 0, 20);
    living_serve(&server, NULL);
    living_await_truth(&server, truth);
    rd_kafka_t *rk = open_transactional("open");
    assert_null(rd_kafka_begin_transaction(rk));
    for (uint64_t n = 20; n < 30; n++)
        living_send(rk, "open", 0, n, 0);
    assert_int_equal(rd_kafka_flush(rk, LIVING_WAIT_MS), 0);
    living_await_failure(&server, "open transaction", sentence);
    printf("%s\n", sentence);
    living_await_behind(&server, 10, 10);
    stays(&server, "open transaction");
    end_transaction(rk, true);
    living_add(truth, 20, 10);
    living_await_truth(&server, truth);
    serve_await(&server, "/readyz", NULL, 200, "\"behind\":0"); /* the mark of the commit is not an event */
    assert_null(rd_kafka_begin_transaction(rk));
    living_send(rk, "open", 0, 30, 0);
    assert_int_equal(rd_kafka_flush(rk, LIVING_WAIT_MS), 0);
    end_transaction(rk, false);
    serve_await(&server, "/readyz", NULL, 200, "\"behind\":0");
    living_await_truth(&server, truth);
    rd_kafka_destroy(rk);
    living_stop(&server);
}

/* --- brokers that are silent -------------------------------------------------------------------------------------- */

static void is_unknown(const serve_child *server) {
    serve_await(server, "/readyz", NULL, 503, "\"behind\":null");
    json_t *fresh = living_fresh(server);
    assert_true(json_is_false(json_object_get(fresh, "connected")));
    assert_true(json_number_value(json_object_get(fresh, "lag_seconds")) > 0);
    assert_true(json_number_value(json_object_get(fresh, "contact_age_seconds")) > 0);
    json_decref(fresh);
    stays(server, "no word of its brokers since");
}

static void a_silent_broker_is_not_zero_behind(void **state) {
    (void)state;
    serve_child server;
    broker_needed();
    living_stale = "ingest.stale_max=3s";
    living_make("silent", 2, NULL);
    living_describe("silent", "");
    living_produce("silent", 0, 0, 20);
    living_add(truth, 0, 20);
    living_serve(&server, NULL);
    living_await_truth(&server, truth);
    serve_await(&server, "/readyz", NULL, 200, "\"behind\":0");
    broker_kill();
    is_unknown(&server);
    broker_start_again();
    serve_await(&server, "/readyz", NULL, 200, "\"behind\":0");
    pid_t broker = broker_pid(broker_folder);
    assert_int_equal(kill(broker, SIGSTOP), 0); /* its connections stay, and say nothing */
    is_unknown(&server);
    assert_int_equal(kill(broker, SIGCONT), 0);
    living_produce("silent", 1, 20, 20);
    living_add(truth, 20, 20);
    living_await_truth(&server, truth);
    serve_await(&server, "/readyz", NULL, 200, "\"behind\":0");
    living_stop(&server);
}

/* --- records without a value -------------------------------------------------------------------------------------- */

static void send_tombstone(rd_kafka_t *rk, const char *topic, const char *key) {
    char text[16];
    snprintf(text, sizeof text, "%s", key ? key : "");
    living_put(rk, topic, 0, key ? text : NULL, NULL, 0, 0);
    assert_int_equal(rd_kafka_flush(rk, LIVING_WAIT_MS), 0);
}

static int64_t number_of(const serve_child *server, const char *name) {
    json_t *root;
    living_ask(server, "/readyz?verbose", &root);
    int64_t number = json_integer_value(json_object_get(json_array_get(json_object_get(root, "sources"), 0), name));
    json_decref(root);
    return number;
}

static void tombstones_are_passed_over_and_counted(void **state) {
    (void)state;
    serve_child server;
    broker_needed();
    living_make("nulls", 1, NULL);
    living_describe("nulls", "");
    living_produce("nulls", 0, 0, 8);
    rd_kafka_t *rk = living_client(NULL);
    for (int i = 0; i < 25; i++)
        send_tombstone(rk, "nulls", i % 2 ? "a1" : NULL);
    rd_kafka_destroy(rk);
    living_produce("nulls", 0, 8, 8);
    living_add(truth, 0, 16);
    living_serve(&server, NULL);
    living_await_truth(&server, truth);
    serve_await(&server, "/readyz", NULL, 200, "\"behind\":0");
    assert_int_equal(number_of(&server, "tombstones"), 25);
    assert_int_equal(number_of(&server, "dead_letters"), 0);
    living_stop(&server);
}

static void tombstones_delete_what_the_schema_says(void **state) {
    (void)state;
    serve_child server;
    broker_needed();
    living_make("deletes", 1, NULL);
    living_describe("deletes", "    tombstone: {delete_vertex: account}\n");
    living_produce("deletes", 0, 0, 16);
    rd_kafka_t *rk = living_client(NULL);
    send_tombstone(rk, "deletes", "a3");
    send_tombstone(rk, "deletes", NULL);
    rd_kafka_destroy(rk);
    living_add(truth, 0, 16);
    truth[3] = truth[11] = 0;
    living_serve(&server, NULL);
    living_await_truth(&server, truth);
    serve_await(&server, "/readyz", NULL, 200, "\"behind\":0");
    serve_await(&server, "/v1/neighbors/account/a3", NULL, 404, NULL);
    assert_int_equal(number_of(&server, "tombstones"), 1);
    assert_int_equal(number_of(&server, "dead_letters"), 0);
    living_stop(&server);
}

WEIR_BROKER_TESTS(broker_start, WEIR_CASE(partitions_added_while_running_are_read),
                  WEIR_CASE(a_topic_that_appears_later_is_read), WEIR_CASE(a_topic_made_again_longer_is_found),
                  WEIR_CASE(a_topic_made_again_as_long_is_found), WEIR_CASE(a_topic_made_again_shorter_is_found),
                  WEIR_CASE(a_topic_made_again_empty_is_found),
                  WEIR_CASE(a_topic_made_again_with_the_same_events_is_found),
                  WEIR_CASE(a_topic_made_again_while_stopped_is_found),
                  WEIR_CASE(a_topic_made_again_as_long_while_stopped_is_found), WEIR_CASE(a_log_cut_back_is_found),
                  WEIR_CASE(a_log_cut_back_and_grown_again_is_found),
                  WEIR_CASE(a_log_cut_back_and_grown_again_while_stopped_is_found),
                  WEIR_CASE(a_rebuild_keeps_the_old_store_aside), WEIR_CASE(an_open_transaction_is_said),
                  WEIR_CASE(a_silent_broker_is_not_zero_behind), WEIR_CASE(tombstones_are_passed_over_and_counted),
                  WEIR_CASE(tombstones_delete_what_the_schema_says))

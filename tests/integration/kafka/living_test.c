/* SPDX-License-Identifier: Apache-2.0 */
/* living_test.c - what others do to a topic that `weir serve` reads: each must be read, or said. */
#include <dirent.h>
#include <sys/stat.h>

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

/* The metric tells sooner than readiness, which waits for ingest.stale_max. */
static void is_measured(const serve_child *server, const char *what, int64_t since_us, const char *metric) {
    http_client client;
    client_open(&client, server->port);
    serve_await_metric(&client, what, since_us, metric, 0);
    client_close(&client);
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
    int64_t since_us = serve_now_us();
    living_widen("widened", 4);
    living_produce("widened", 2, 100, 50); /* from their first records on */
    living_produce("widened", 3, 150, 50);
    living_produce("widened", 0, 200, 50);
    living_add(truth, 100, 150);
    living_await_truth(&server, truth);
    printf("all read after %.2f s: partitions added\n", (double)(serve_now_us() - since_us) / 1e6);
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
    int64_t since_us = serve_now_us();
    living_remake(topic, first, count, stamp_ms ? stamp_ms + 7 : 0);
    if (!running) living_serve(&server, NULL);
    free(serve_await_red(&server, "topic remade", since_us, words));
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
    rd_kafka_t *rk = living_transactional("open");
    assert_null(rd_kafka_begin_transaction(rk));
    for (uint64_t n = 20; n < 30; n++)
        living_send(rk, "open", 0, n, 0);
    int64_t since_us = serve_now_us();
    assert_int_equal(rd_kafka_flush(rk, LIVING_WAIT_MS), 0);
    is_measured(&server, "stuck transaction", since_us, "weir_ingest_transaction_records");
    free(serve_await_red(&server, "stuck transaction, ingest.stale_max=2s", since_us, "open transaction"));
    living_await_failure(&server, "open transaction", sentence);
    printf("%s\n", sentence);
    living_await_behind(&server, 10, 10);
    stays(&server, "open transaction");
    living_end(rk, true);
    living_add(truth, 20, 10);
    living_await_truth(&server, truth);
    serve_await(&server, "/readyz", NULL, 200, "\"behind\":0"); /* the mark of the commit is not an event */
    assert_null(rd_kafka_begin_transaction(rk));
    living_send(rk, "open", 0, 30, 0);
    assert_int_equal(rd_kafka_flush(rk, LIVING_WAIT_MS), 0);
    living_end(rk, false);
    serve_await(&server, "/readyz", NULL, 200, "\"behind\":0");
    living_await_truth(&server, truth);
    rd_kafka_destroy(rk);
    living_stop(&server);
}

/* --- what retention removes behind the last event ----------------------------------------------------------------- */

static void committed(const char *topic) {
    living_transact(topic, 0, 0, 10, true, 0);
}

static void aborted(const char *topic) {
    living_produce(topic, 0, 0, 10);
    living_add(truth, 0, 10);
    living_transact(topic, 0, 10, 10, false, 0);
}

static void only_aborted(const char *topic) {
    living_transact(topic, 0, 0, 10, false, 0);
}

/* Bytes of the partition's records on the broker's disk. */
static off_t bytes_of(const char *topic) {
    char path[PATH_MAX];
    struct dirent *entry;
    off_t bytes = 0;
    snprintf(path, sizeof path, "%s/data/%s-0", broker_folder, topic);
    DIR *folder = opendir(path);
    assert_non_null(folder);
    while ((entry = readdir(folder))) {
        struct stat about;
        size_t length = strlen(entry->d_name);
        bool records = length > 4 && strcmp(entry->d_name + length - 4, ".log") == 0;
        if (records && fstatat(dirfd(folder), entry->d_name, &about, 0) == 0) bytes += about.st_size;
    }
    closedir(folder);
    return bytes;
}

/* The mark of the abort has a segment of its own, so that compaction can take all that it took back. */
static void compacted(const char *topic) {
    off_t bytes;
    living_produce(topic, 0, 0, 10);
    living_add(truth, 0, 10);
    living_transact(topic, 0, 10, 500, false, 300);
    bytes = bytes_of(topic);
    for (int waited_ms = 0; bytes_of(topic) > bytes / 2; waited_ms += 50) {
        if (waited_ms >= LIVING_WAIT_MS) fail_msg("%s is not compacted: %lld bytes", topic, (long long)bytes_of(topic));
        usleep(50000);
    }
}

/* All of it is removed while the server is stopped: it had everything, so it goes on, and the next one does. */
static void is_read_on(const char *topic, void (*fill)(const char *topic), bool killed) {
    static const char *const compact[][2] = {{"cleanup.policy", "compact,delete"},  {"segment.ms", "100"},
                                             {"min.cleanable.dirty.ratio", "0.01"}, {"max.compaction.lag.ms", "100"},
                                             {"delete.retention.ms", "0"},          {NULL, NULL}};
    serve_child server;
    broker_needed();
    living_make(topic, 1, fill == compacted ? compact : NULL);
    living_describe(topic, "");
    fill(topic);
    living_serve(&server, NULL);
    living_await_truth(&server, truth);
    if (killed) {
        living_seal(&server, topic, 1);
        assert_int_equal(serve_end(&server, SIGKILL), 128 + SIGKILL);
    } else {
        living_await_applied(&server, topic, 1);
        living_stop(&server);
    }
    living_remove_records(topic, 1);
    for (uint64_t n = 1000; n < 1020; n += 10) {
        living_serve(&server, NULL);
        serve_await(&server, "/readyz", NULL, 200, "\"behind\":0");
        living_await_truth(&server, truth);
        living_produce(topic, 0, n, 10);
        living_add(truth, n, 10);
        living_await_truth(&server, truth);
        living_await_applied(&server, topic, 1);
        living_stop(&server);
    }
}

static void a_commit_that_retention_removes_is_not_missed(void **state) {
    (void)state;
    is_read_on("commit-stopped", committed, false);
    memset(truth, 0, sizeof truth);
    assert_ok(weir_folder_remove(weir_test_path("data")));
    is_read_on("commit-killed", committed, true);
}
static void an_abort_that_retention_removes_is_not_missed(void **state) {
    (void)state;
    is_read_on("abort-stopped", aborted, false);
    memset(truth, 0, sizeof truth);
    assert_ok(weir_folder_remove(weir_test_path("data")));
    is_read_on("abort-killed", aborted, true);
}
static void a_topic_of_aborts_that_retention_removes_is_not_missed(void **state) {
    (void)state;
    is_read_on("aborts-stopped", only_aborted, false);
    assert_ok(weir_folder_remove(weir_test_path("data")));
    memset(truth, 0, sizeof truth);
    is_read_on("aborts-killed", only_aborted, true);
}
static void a_compacted_end_that_retention_removes_is_not_missed(void **state) {
    (void)state;
    is_read_on("compact-stopped", compacted, false);
}
static void a_compacted_end_is_not_missed_after_a_kill(void **state) {
    (void)state;
    is_read_on("compact-killed", compacted, true);
}

/* The same while the server runs: the broker goes, and the topic is opened again. */
static void a_commit_that_retention_removes_under_a_server_is_not_missed(void **state) {
    (void)state;
    serve_child server;
    broker_needed();
    living_make("commit-running", 1, NULL);
    living_describe("commit-running", "");
    living_serve(&server, NULL);
    living_transact("commit-running", 0, 0, 10, true, 0);
    living_await_truth(&server, truth);
    living_await_applied(&server, "commit-running", 1);
    living_remove_records("commit-running", 1);
    broker_kill();
    broker_start_again();
    living_produce("commit-running", 0, 10, 10);
    living_add(truth, 10, 10);
    living_await_truth(&server, truth);
    serve_await(&server, "/readyz", NULL, 200, "\"behind\":0");
    living_stop(&server);
}

/* Its events are read when it is committed, so what retention takes of it before that is missing. */
static void is_missed(const char *topic, bool killed) {
    serve_child server;
    char sentence[1024];
    broker_needed();
    living_make(topic, 1, NULL);
    living_describe(topic, "");
    living_produce(topic, 0, 0, 20);
    living_add(truth, 0, 20);
    living_serve(&server, NULL);
    rd_kafka_t *rk = living_transactional(topic);
    assert_null(rd_kafka_begin_transaction(rk));
    for (uint64_t n = 20; n < 30; n++)
        living_send(rk, topic, 0, n, 0);
    assert_int_equal(rd_kafka_flush(rk, LIVING_WAIT_MS), 0);
    living_produce(topic, 0, 30, 10); /* behind it, and hidden by it */
    living_await_truth(&server, truth);
    living_await_behind(&server, 20, 20);
    living_checkpoint(&server);
    assert_int_equal(serve_end(&server, killed ? SIGKILL : SIGTERM), killed ? 128 + SIGKILL : 0);
    living_end(rk, true);
    rd_kafka_destroy(rk);
    living_remove_records(topic, 1);
    living_serve(&server, NULL);
    living_await_failure(&server, "offset 20 is gone", sentence);
    living_stop(&server);
}

static void an_open_transaction_that_retention_removes_is_missed(void **state) {
    (void)state;
    is_missed("open-stopped", false);
    memset(truth, 0, sizeof truth);
    assert_ok(weir_folder_remove(weir_test_path("data")));
    is_missed("open-killed", true);
}

/* The mark counts for the end, and the record before it for what the log is known by. */
static void is_found_behind_a_mark(const char *topic, uint64_t count) {
    static const uint64_t events = 100;
    serve_child server;
    broker_needed();
    living_make(topic, 1, NULL);
    living_describe(topic, "");
    living_transact(topic, 0, 0, events, true, 0);
    living_serve(&server, NULL);
    living_await_truth(&server, truth);
    living_await_applied(&server, topic, 1);
    positions_await(&events, 1);
    living_stop(&server);
    living_remake(topic, 1000, count, 0);
    living_serve(&server, NULL);
    living_is_found(&server, other);
    living_stop(&server);
}

static void a_topic_made_again_behind_a_mark_is_found(void **state) {
    (void)state;
    is_found_behind_a_mark("mark-shorter", 100);
    memset(truth, 0, sizeof truth);
    assert_ok(weir_folder_remove(weir_test_path("data")));
    is_found_behind_a_mark("mark-equal", 101);
    memset(truth, 0, sizeof truth);
    assert_ok(weir_folder_remove(weir_test_path("data")));
    is_found_behind_a_mark("mark-longer", 150);
}

/* --- brokers that are silent -------------------------------------------------------------------------------------- */

static void is_unknown(const serve_child *server) {
    serve_await(server, "/readyz", NULL, 503, "\"behind\":null");
    json_t *fresh = living_fresh(server);
    assert_true(json_is_false(json_object_get(fresh, "connected")));
    assert_true(json_number_value(json_object_get(fresh, "lag_seconds")) > 0);
    assert_true(json_number_value(json_object_get(fresh, "contact_age_seconds")) > 0);
    json_decref(fresh);
    stays(server, "has not heard from its Kafka brokers since");
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
    int64_t since_us = serve_now_us();
    broker_kill();
    is_measured(&server, "broker gone", since_us, "weir_ingest_unconnected_sources");
    free(serve_await_red(&server, "broker gone, ingest.stale_max=3s", since_us,
                         "has not heard from its Kafka brokers since"));
    is_unknown(&server);
    broker_start_again();
    serve_await(&server, "/readyz", NULL, 200, "\"behind\":0");
    pid_t broker = broker_pid(broker_folder);
    since_us = serve_now_us();
    assert_int_equal(kill(broker, SIGSTOP), 0); /* its connections stay, and say nothing */
    is_measured(&server, "broker silent", since_us, "weir_ingest_unconnected_sources");
    free(serve_await_red(&server, "broker silent, ingest.stale_max=3s", since_us,
                         "has not heard from its Kafka brokers since"));
    is_unknown(&server);
    assert_int_equal(kill(broker, SIGCONT), 0);
    living_produce("silent", 1, 20, 20);
    living_add(truth, 20, 20);
    living_await_truth(&server, truth);
    serve_await(&server, "/readyz", NULL, 200, "\"behind\":0");
    living_stop(&server);
}

/* --- records without a value -------------------------------------------------------------------------------------- */

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
        living_tombstone(rk, "nulls", 0, i % 2 ? "a1" : NULL);
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
    living_tombstone(rk, "deletes", 0, "a3");
    living_tombstone(rk, "deletes", 0, NULL);
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
                  WEIR_CASE(a_commit_that_retention_removes_is_not_missed),
                  WEIR_CASE(an_abort_that_retention_removes_is_not_missed),
                  WEIR_CASE(a_topic_of_aborts_that_retention_removes_is_not_missed),
                  WEIR_CASE(a_compacted_end_that_retention_removes_is_not_missed),
                  WEIR_CASE(a_compacted_end_is_not_missed_after_a_kill),
                  WEIR_CASE(a_commit_that_retention_removes_under_a_server_is_not_missed),
                  WEIR_CASE(an_open_transaction_that_retention_removes_is_missed),
                  WEIR_CASE(a_topic_made_again_behind_a_mark_is_found), WEIR_CASE(a_silent_broker_is_not_zero_behind),
                  WEIR_CASE(tombstones_are_passed_over_and_counted), WEIR_CASE(tombstones_delete_what_the_schema_says))

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mended_test.c - damaged files of a store that is fed through a real broker: the topic is read once more, with all
 * that stands in it and is no event.
 */
#include "flip.h"
#include "living.h"
#include "shell.h"

#define SHARDS     2u
#define PARTITIONS 3

static void look_often(void) {
    setenv("WEIR_STORE_SCRUB_INTERVAL", "10ms", 1);
}

static uint64_t repairs(const serve_child *server) {
    static const char name[] = "\nweir_store_repairs_total ";
    http_answer answer;
    client_ask(server->port, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n", &answer);
    const char *at = answer.body ? strstr(answer.body, name) : NULL;
    assert_non_null(at);
    uint64_t count = strtoull(at + strlen(name), NULL, 10);
    answer_free(&answer);
    return count;
}

static void flip_all(void) {
    for (unsigned shard = 0; shard < SHARDS; shard++)
        assert_true(flip_shard(weir_test_path("data/store"), shard) > 0);
}

/* What is sealed goes to FOLDER/<name>. Nobody has the store open. */
static void export(const char *name) {
    char line[512];
    snprintf(line, sizeof line,
             "$weir store verify --path $data/store && rm -rf $folder/csv $folder/cut && "
             "$weir snapshot build $folder/cut --path $data/store && $weir snapshot export $folder/cut $folder/csv && "
             "cat $folder/csv/nodes.csv $folder/csv/edges.csv | LC_ALL=C sort >$folder/%s",
             name);
    shell(line);
}

/* Aborted events, marks of transactions at the ends, keys without values, a message that is none, and a beginning that
 * retention had removed before the store was there. */
static void fill(const char *topic) {
    static char broken[] = "{\"id\":\"broken\"}", broken_key[] = "broken";
    for (int32_t p = 0; p < PARTITIONS; p++)
        living_produce(topic, p, 5000 + 10 * (uint64_t)p, 10);
    living_remove_records(topic, PARTITIONS);
    for (int32_t p = 0; p < PARTITIONS; p++)
        living_produce(topic, p, 100 * (uint64_t)p, 100);
    living_add(truth, 0, 300);
    living_transact(topic, 0, 300, 50, false, 0);
    living_transact(topic, 1, 350, 50, true, 0);
    living_transact(topic, 0, 400, 50, true, 0);
    living_transact(topic, 1, 450, 50, false, 0);
    rd_kafka_t *rk = living_client(NULL);
    living_put(rk, topic, 2, broken_key, broken, strlen(broken), 0);
    living_tombstone(rk, topic, 2, "a3");
    living_tombstone(rk, topic, 2, NULL);
    rd_kafka_destroy(rk);
    for (uint64_t n = 3; n < 500; n += LIVING_ACCOUNTS)
        truth[n] = 0;
}

static void a_shard_is_made_anew_from_its_topic(void **state) {
    (void)state;
    serve_child server;
    broker_needed();
    look_often();
    living_make("anew", PARTITIONS, NULL);
    living_describe("anew", "    tombstone: {delete_vertex: account}\n");
    fill("anew");
    living_serve(&server, NULL);
    living_await_truth(&server, truth);
    living_seal(&server, "anew", PARTITIONS);
    living_produce("anew", 2, 500, 20);
    living_add(truth, 500, 20);
    truth[507] = truth[515] = 0;
    living_await_truth(&server, truth);
    living_stop(&server);
    export("whole");
    living_serve(&server, NULL);
    serve_await(&server, "/readyz", NULL, 200, "\"behind\":0");
    flip_all();
    serve_await(&server, "/readyz", NULL, 503, ".sst");
    while (repairs(&server) < SHARDS)
        usleep(20000);
    serve_await(&server, "/readyz", NULL, 200, "\"behind\":0");
    living_await_truth(&server, truth);
    living_stop(&server);
    export("mended");
    shell("test -s $folder/whole && diff $folder/whole $folder/mended && ls -d $data/store/shard-*.damaged");
    living_serve(&server, NULL); /* and it goes on where it was */
    living_produce("anew", 0, 600, 20);
    living_add(truth, 600, 20);
    truth[603] = truth[611] = truth[619] = 0;
    living_await_truth(&server, truth);
    living_stop(&server);
}

static void what_retention_has_removed_is_said(void **state) {
    (void)state;
    serve_child server;
    broker_needed();
    look_often();
    living_make("shorn", 1, NULL);
    living_describe("shorn", "");
    living_produce("shorn", 0, 0, 100);
    living_add(truth, 0, 100);
    living_serve(&server, NULL);
    living_await_truth(&server, truth);
    living_seal(&server, "shorn", 1);
    living_remove_records("shorn", 1);
    living_produce("shorn", 0, 100, 10);
    living_add(truth, 100, 10);
    living_await_truth(&server, truth);
    living_seal(&server, "shorn", 1);
    living_stop(&server);
    living_serve(&server, NULL);
    living_await_truth(&server, truth);
    flip_all();
    serve_await(&server, "/readyz?verbose", NULL, 503,
                "begins at offset 100 now, and offsets from 0 on are wanted: retention has removed them");
    serve_await(&server, "/readyz?verbose", NULL, 503, "Restore a checkpoint");
    assert_int_equal(repairs(&server), 0);
    assert_true(serve_end(&server, SIGTERM) < 128);
}

WEIR_BROKER_TESTS(broker_start, WEIR_CASE(a_shard_is_made_anew_from_its_topic),
                  WEIR_CASE(what_retention_has_removed_is_said))

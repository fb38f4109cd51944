/* SPDX-License-Identifier: Apache-2.0 */
/*
 * living.h - a topic that others change, a `weir serve` that reads it, and the truth: which events were acknowledged.
 *
 * Event n is a card c<n> that account a<n modulo LIVING_ACCOUNTS> gets. Records are produced and topics changed by
 * librdkafka itself, so that nothing here is of what is tested.
 */
#ifndef WEIR_TEST_KAFKA_LIVING_H
#define WEIR_TEST_KAFKA_LIVING_H

#include <dirent.h>
#include <inttypes.h>
#include <jansson.h>
#include <librdkafka/rdkafka.h>

#include <weir/store/base/clock.h>
#include <weir/store/base/file.h>

#include "../../support/serve_child.h"
#include "broker.h"
#include "positions.h"

#define LIVING_ACCOUNTS   8u
#define LIVING_EVENTS_MAX 7000u /* of an account at most 1000 are asked for */
#define LIVING_WAIT_MS    60000
#define LIVING_PARTS_MAX  16u

static const char living_schema[] = "version: 1\n"
                                    "name: cards\n"
                                    "vertices: {account: {}, card: {}}\n"
                                    "relations: {holds: {from: account, to: card}}\n"
                                    "sources:\n"
                                    "  cards:\n"
                                    "    id: id\n"
                                    "    topic: %s\n"
                                    "    time: {field: t, format: s}\n"
                                    "    mutations:\n"
                                    "      - {put_edge: holds, from: account, to: card}\n"
                                    "%s";

/* --- clients of somebody else ------------------------------------------------------------------------------------ */

__attribute__((unused)) static rd_kafka_t *living_client(const char *const (*settings)[2]) {
    char text[256];
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    assert_int_equal(rd_kafka_conf_set(conf, "bootstrap.servers", broker_address, text, sizeof text), 0);
    assert_int_equal(rd_kafka_conf_set(conf, "reconnect.backoff.max.ms", "500", text, sizeof text), 0);
    assert_int_equal(rd_kafka_conf_set(conf, "log_level", "2", text, sizeof text), 0);
    for (; settings && (*settings)[0]; settings++)
        assert_int_equal(rd_kafka_conf_set(conf, (*settings)[0], (*settings)[1], text, sizeof text), 0);
    rd_kafka_t *rk = rd_kafka_new(RD_KAFKA_PRODUCER, conf, text, sizeof text);
    if (!rk) fail_msg("%s", text);
    return rk;
}

/* The first error of an answer to a request about topics. */
static rd_kafka_resp_err_t living_answer(rd_kafka_queue_t *queue) {
    size_t count = 0;
    const rd_kafka_topic_result_t **results = NULL;
    rd_kafka_event_t *event = rd_kafka_queue_poll(queue, LIVING_WAIT_MS);
    assert_non_null(event);
    rd_kafka_resp_err_t error = rd_kafka_event_error(event);
    if (!error && rd_kafka_event_type(event) == RD_KAFKA_EVENT_CREATETOPICS_RESULT)
        results = rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(event), &count);
    if (!error && rd_kafka_event_type(event) == RD_KAFKA_EVENT_DELETETOPICS_RESULT)
        results = rd_kafka_DeleteTopics_result_topics(rd_kafka_event_DeleteTopics_result(event), &count);
    if (!error && rd_kafka_event_type(event) == RD_KAFKA_EVENT_CREATEPARTITIONS_RESULT)
        results = rd_kafka_CreatePartitions_result_topics(rd_kafka_event_CreatePartitions_result(event), &count);
    if (!error && results && count) error = rd_kafka_topic_result_error(results[0]);
    rd_kafka_event_destroy(event);
    return error;
}

/* Until it is done: what was removed a moment ago may still be there. settings: pairs, ended by NULL; or NULL. */
__attribute__((unused)) static void living_make(const char *topic, int partitions, const char *const (*settings)[2]) {
    char text[256];
    rd_kafka_t *rk = living_client(NULL);
    rd_kafka_resp_err_t error = RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS;
    for (int waited_ms = 0; waited_ms < LIVING_WAIT_MS && error; waited_ms += 50) {
        rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
        rd_kafka_NewTopic_t *made = rd_kafka_NewTopic_new(topic, partitions, 1, text, sizeof text);
        assert_non_null(made);
        rd_kafka_NewTopic_set_config(made, "retention.ms", "-1");
        for (const char *const(*pair)[2] = settings; pair && (*pair)[0]; pair++)
            rd_kafka_NewTopic_set_config(made, (*pair)[0], (*pair)[1]);
        rd_kafka_CreateTopics(rk, &made, 1, NULL, queue);
        error = living_answer(queue);
        rd_kafka_NewTopic_destroy(made);
        rd_kafka_queue_destroy(queue);
        if (error) usleep(50000);
    }
    if (error) fail_msg("%s is not created: %s", topic, rd_kafka_err2str(error));
    rd_kafka_destroy(rk);
}

__attribute__((unused)) static void living_remove(const char *topic) {
    rd_kafka_t *rk = living_client(NULL);
    rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
    rd_kafka_DeleteTopic_t *gone = rd_kafka_DeleteTopic_new(topic);
    rd_kafka_DeleteTopics(rk, &gone, 1, NULL, queue);
    assert_int_equal(living_answer(queue), 0);
    rd_kafka_DeleteTopic_destroy(gone);
    rd_kafka_queue_destroy(queue);
    rd_kafka_destroy(rk);
}

__attribute__((unused)) static void living_widen(const char *topic, size_t partitions) {
    char text[256];
    rd_kafka_t *rk = living_client(NULL);
    rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
    rd_kafka_NewPartitions_t *more = rd_kafka_NewPartitions_new(topic, partitions, text, sizeof text);
    rd_kafka_CreatePartitions(rk, &more, 1, NULL, queue);
    assert_int_equal(living_answer(queue), 0);
    rd_kafka_NewPartitions_destroy(more);
    rd_kafka_queue_destroy(queue);
    rd_kafka_destroy(rk);
}

/* The first error of an answer about records, of any partition. */
static rd_kafka_resp_err_t living_removed(rd_kafka_queue_t *queue) {
    rd_kafka_event_t *event = rd_kafka_queue_poll(queue, LIVING_WAIT_MS);
    assert_non_null(event);
    rd_kafka_resp_err_t error = rd_kafka_event_error(event);
    if (!error) {
        const rd_kafka_topic_partition_list_t *list =
            rd_kafka_DeleteRecords_result_offsets(rd_kafka_event_DeleteRecords_result(event));
        for (int i = 0; !error && i < list->cnt; i++)
            error = list->elems[i].err;
    }
    rd_kafka_event_destroy(event);
    return error;
}

/* Retention, up to the end of every partition. A broker that has just come back may not know all leaders yet. */
__attribute__((unused)) static void living_remove_records(const char *topic, int partitions) {
    rd_kafka_resp_err_t error = RD_KAFKA_RESP_ERR__NOENT;
    rd_kafka_t *rk = living_client(NULL);
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(partitions);
    for (int p = 0; p < partitions; p++)
        rd_kafka_topic_partition_list_add(list, topic, p)->offset = RD_KAFKA_OFFSET_END;
    for (int waited_ms = 0; waited_ms < LIVING_WAIT_MS && error; waited_ms += 100) {
        rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
        rd_kafka_DeleteRecords_t *request = rd_kafka_DeleteRecords_new(list);
        rd_kafka_DeleteRecords(rk, &request, 1, NULL, queue);
        error = living_removed(queue);
        rd_kafka_DeleteRecords_destroy(request);
        rd_kafka_queue_destroy(queue);
        if (error) usleep(100000);
    }
    if (error) fail_msg("records are not removed: %s", rd_kafka_err2str(error));
    rd_kafka_topic_partition_list_destroy(list);
    rd_kafka_destroy(rk);
}

/* --- events ------------------------------------------------------------------------------------------------------ */

static inline int living_text(uint64_t n, char text[160]) {
    return snprintf(text, 160,
                    "{\"id\":\"e%" PRIu64 "\",\"t\":%" PRIu64 ",\"account\":\"a%u\",\"card\":\"c%" PRIu64 "\"}", n,
                    1000000 + n, (unsigned)(n % LIVING_ACCOUNTS), n);
}

/* Waits for room in the client. A NULL value is Kafka's mark of a deleted key; stamp_ms: Kafka's timestamp; 0: now. */
__attribute__((unused)) static void living_put(rd_kafka_t *rk, const char *topic, int32_t partition, char *key,
                                               char *value, size_t length, int64_t stamp_ms) {
    const rd_kafka_vu_t parts[] = {
        {.vtype = RD_KAFKA_VTYPE_TOPIC, .u.cstr = topic},
        {.vtype = RD_KAFKA_VTYPE_PARTITION, .u.i32 = partition},
        {.vtype = RD_KAFKA_VTYPE_MSGFLAGS, .u.i = RD_KAFKA_MSG_F_COPY},
        {.vtype = RD_KAFKA_VTYPE_KEY, .u.mem = {key, key ? strlen(key) : 0}},
        {.vtype = RD_KAFKA_VTYPE_VALUE, .u.mem = {value, length}},
        {.vtype = RD_KAFKA_VTYPE_TIMESTAMP, .u.i64 = stamp_ms},
    };
    for (;;) {
        rd_kafka_error_t *error = rd_kafka_produceva(rk, parts, sizeof parts / sizeof parts[0]);
        if (!error) return;
        assert_int_equal(rd_kafka_error_code(error), RD_KAFKA_RESP_ERR__QUEUE_FULL);
        rd_kafka_error_destroy(error);
        rd_kafka_poll(rk, 20);
    }
}

__attribute__((unused)) static void living_send(rd_kafka_t *rk, const char *topic, int32_t partition, uint64_t n,
                                                int64_t stamp_ms) {
    char text[160], key[24];
    int length = living_text(n, text);
    snprintf(key, sizeof key, "k%" PRIu64, n);
    living_put(rk, topic, partition, key, text, (size_t)length, stamp_ms);
}

/* Events first to first + count - 1 into one partition, all acknowledged when it returns. */
__attribute__((unused)) static void living_produce_at(const char *topic, int32_t partition, uint64_t first,
                                                      uint64_t count, int64_t stamp_ms) {
    static const char *const settings[][2] = {{"enable.idempotence", "true"}, {NULL, NULL}};
    rd_kafka_t *rk = living_client(settings);
    for (uint64_t n = first; n < first + count; n++)
        living_send(rk, topic, partition, n, stamp_ms ? stamp_ms + (int64_t)n : 0);
    assert_int_equal(rd_kafka_flush(rk, LIVING_WAIT_MS), 0);
    rd_kafka_destroy(rk);
}

__attribute__((unused)) static void living_produce(const char *topic, int32_t partition, uint64_t first,
                                                   uint64_t count) {
    living_produce_at(topic, partition, first, count, 0);
}

/* --- the server -------------------------------------------------------------------------------------------------- */

static const char *living_stale = "ingest.stale_max=60s";

/* tail: more lines of the source; or "". */
__attribute__((unused)) static void living_describe(const char *topic, const char *tail) {
    char text[2048];
    int length = snprintf(text, sizeof text, living_schema, topic, tail);
    assert_ok(weir_file_replace(weir_test_path("schema.yaml"), text, (size_t)length));
}

__attribute__((unused)) static void living_serve(serve_child *server, const char *more) {
    char kafka[128];
    snprintf(kafka, sizeof kafka, "--kafka=%s", broker_address);
    const char *const arguments[] = {"--schema",
                                     weir_test_path("schema.yaml"),
                                     "--data",
                                     weir_test_path("data"),
                                     kafka,
                                     "--set",
                                     "kafka.timeout=10s",
                                     "--set",
                                     "store.seal_interval=50ms",
                                     "--set",
                                     "log.level=warn",
                                     strstr(living_stale, "60s") ? more : "--set",
                                     strstr(living_stale, "60s") ? NULL : living_stale,
                                     more,
                                     NULL};
    serve_spawn(server, arguments);
    serve_read_port(server);
    assert_true(server->port);
}

__attribute__((unused)) static void living_stop(serve_child *server) {
    assert_int_equal(serve_end(server, SIGTERM), 0);
}

static inline int living_ask(const serve_child *server, const char *path, json_t **rootp) {
    char text[256];
    http_answer answer;
    snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path);
    client_ask(server->port, text, &answer);
    int status = answer.status;
    *rootp = json_loads(answer.body, 0, NULL);
    answer_free(&answer);
    return status;
}

/* Of /readyz: 200 or 503, and the sentence, which is "" when it is ready. */
__attribute__((unused)) static int living_ready(const serve_child *server, char sentence[1024]) {
    json_t *root;
    int status = living_ask(server, "/readyz", &root);
    const char *detail = json_string_value(json_object_get(root, "detail"));
    snprintf(sentence, 1024, "%s", detail ? detail : "");
    json_decref(root);
    return status;
}

/* Until it is not ready, for a reason with these words. */
__attribute__((unused)) static void living_await_failure(const serve_child *server, const char *words,
                                                         char sentence[1024]) {
    for (int waited_ms = 0; waited_ms < LIVING_WAIT_MS; waited_ms += 20) {
        if (living_ready(server, sentence) == 503 && strstr(sentence, words)) return;
        usleep(20000);
    }
    fail_msg("not ready is wanted for '%s'; it says '%s'", words, sentence);
}

__attribute__((unused)) static json_t *living_fresh(const serve_child *server) {
    json_t *root;
    living_ask(server, "/readyz", &root);
    json_t *fresh = json_incref(json_object_get(json_object_get(root, "freshness"), "cards"));
    json_decref(root);
    assert_non_null(fresh);
    return fresh;
}

/* Until one answer says all of it; behind and open: records. */
__attribute__((unused)) static void living_await_behind(const serve_child *server, int64_t behind, int64_t open) {
    int64_t says_behind = -1, says_open = -1;
    for (int waited_ms = 0; waited_ms < LIVING_WAIT_MS; waited_ms += 20) {
        json_t *fresh = living_fresh(server);
        bool connected = json_is_true(json_object_get(fresh, "connected"));
        bool lags = json_number_value(json_object_get(fresh, "lag_seconds")) > 0;
        says_behind = json_integer_value(json_object_get(fresh, "behind"));
        says_open = json_integer_value(json_object_get(fresh, "in_open_transactions"));
        json_decref(fresh);
        if (connected && says_behind == behind && says_open == open && lags == (behind > 0)) return;
        usleep(20000);
    }
    fail_msg("%" PRId64 " behind, %" PRId64 " of them open, are wanted; it says %" PRId64 " and %" PRId64, behind, open,
             says_behind, says_open);
}

/* What is in the graph; there[n] counts event n. */
__attribute__((unused)) static void living_read(const serve_child *server, uint8_t *there) {
    memset(there, 0, LIVING_EVENTS_MAX);
    for (unsigned account = 0; account < LIVING_ACCOUNTS; account++) {
        char path[96];
        size_t i;
        json_t *root, *neighbor;
        snprintf(path, sizeof path, "/v1/neighbors/account/a%u?limit=1000", account);
        int status = living_ask(server, path, &root);
        assert_true(status == 200 || status == 404 || status == 503); /* 503: it is not whole yet, and so empty */
        json_array_foreach(json_object_get(root, "neighbors"), i, neighbor) {
            const char *key = json_string_value(json_object_get(neighbor, "key"));
            if (!key) continue; /* the name comes with the card's own shard */
            uint64_t n = strtoull(key + 1, NULL, 10);
            assert_in_range(n, 0, LIVING_EVENTS_MAX - 1);
            there[n]++;
        }
        json_decref(root);
    }
}

/* How many events of the truth are not there, and how many are there that are not of it. */
__attribute__((unused)) static void living_differ(const serve_child *server, const uint8_t *truth, uint64_t *lostp,
                                                  uint64_t *extrap) {
    static uint8_t there[LIVING_EVENTS_MAX];
    *lostp = *extrap = 0;
    living_read(server, there);
    for (size_t n = 0; n < LIVING_EVENTS_MAX; n++) {
        *lostp += truth[n] && !there[n];
        *extrap += there[n] > truth[n];
    }
}

/* Until it is the truth, and stays so with `behind` 0. */
__attribute__((unused)) static void living_await_truth(const serve_child *server, const uint8_t *truth) {
    uint64_t lost = 1, extra = 0;
    for (int waited_ms = 0; waited_ms < LIVING_WAIT_MS && (lost || extra); waited_ms += 50) {
        living_differ(server, truth, &lost, &extra);
        if (lost || extra) usleep(50000);
    }
    if (lost || extra) fail_msg("%" PRIu64 " events are lost, %" PRIu64 " are of nobody", lost, extra);
}

static inline void living_add(uint8_t *truth, uint64_t first, uint64_t count) {
    for (uint64_t n = first; n < first + count; n++)
        truth[n] = 1;
}

static uint8_t truth[LIVING_EVENTS_MAX]; /* how often each event is to be there: 0 or 1 */

/* --- transactions and records without a value ------------------------------------------------------------------- */

/* A client whose events are in transactions; name: its own. */
__attribute__((unused)) static rd_kafka_t *living_transactional(const char *name) {
    const char *const settings[][2] = {{"transactional.id", name}, {"transaction.timeout.ms", "600000"}, {NULL, NULL}};
    rd_kafka_t *rk = living_client(settings);
    assert_null(rd_kafka_init_transactions(rk, LIVING_WAIT_MS));
    return rk;
}

__attribute__((unused)) static void living_end(rd_kafka_t *rk, bool commit) {
    assert_null(commit ? rd_kafka_commit_transaction(rk, LIVING_WAIT_MS)
                       : rd_kafka_abort_transaction(rk, LIVING_WAIT_MS));
}

/* Events from `first` on in a transaction that is ended; pause_ms before that. */
__attribute__((unused)) static void living_transact(const char *topic, int32_t partition, uint64_t first,
                                                    uint64_t count, bool commit, unsigned pause_ms) {
    rd_kafka_t *rk = living_transactional(topic);
    assert_null(rd_kafka_begin_transaction(rk));
    for (uint64_t n = first; n < first + count; n++)
        living_send(rk, topic, partition, n, 0);
    assert_int_equal(rd_kafka_flush(rk, LIVING_WAIT_MS), 0);
    usleep(pause_ms * 1000);
    living_end(rk, commit);
    if (commit) living_add(truth, first, count);
    rd_kafka_destroy(rk);
}

/* A record without a value; key: NULL for none. */
__attribute__((unused)) static void living_tombstone(rd_kafka_t *rk, const char *topic, int32_t partition,
                                                     const char *key) {
    char text[16];
    snprintf(text, sizeof text, "%s", key ? key : "");
    living_put(rk, topic, partition, key ? text : NULL, NULL, 0, 0);
    assert_int_equal(rd_kafka_flush(rk, LIVING_WAIT_MS), 0);
}

/* --- what the server has ------------------------------------------------------------------------------------------ */

/* The end of each partition, as the broker has it. One that has just come back may not know all leaders yet. */
static inline void living_ends(const char *topic, int partitions, uint64_t *ends) {
    rd_kafka_t *rk = living_client(NULL);
    for (int p = 0; p < partitions; p++) {
        int64_t begin, end = 0;
        rd_kafka_resp_err_t error = RD_KAFKA_RESP_ERR__NOENT;
        for (int waited_ms = 0; waited_ms < LIVING_WAIT_MS && error; waited_ms += 50) {
            error = rd_kafka_query_watermark_offsets(rk, topic, p, &begin, &end, LIVING_WAIT_MS);
            if (error) usleep(50000);
        }
        if (error) fail_msg("%s has no end: %s", topic, rd_kafka_err2str(error));
        ends[p] = (uint64_t)end;
    }
    rd_kafka_destroy(rk);
}

static inline uint64_t living_applied(const serve_child *server, int partition) {
    json_t *fresh = living_fresh(server);
    const json_t *offset = json_array_get(json_object_get(fresh, "applied"), (size_t)partition);
    uint64_t applied = (uint64_t)json_integer_value(offset); /* 0: it does not know of the partition yet */
    json_decref(fresh);
    return applied;
}

/* Until all that the broker has of each partition is applied: what is no event, too. */
static inline void living_await_applied(const serve_child *server, const char *topic, int partitions) {
    uint64_t ends[LIVING_PARTS_MAX];
    living_ends(topic, partitions, ends);
    for (int p = 0; p < partitions; p++) {
        for (int waited_ms = 0; living_applied(server, p) < ends[p]; waited_ms += 10) {
            if (waited_ms >= LIVING_WAIT_MS) fail_msg("partition %d is not applied up to %" PRIu64, p, ends[p]);
            usleep(10000);
        }
    }
}

/* Seals what is applied, as a checkpoint does before it copies. */
static inline void living_checkpoint(const serve_child *server) {
    static unsigned count;
    char body[64], text[256];
    http_answer answer;
    int length = snprintf(body, sizeof body, "{\"name\":\"sealed-%u\",\"hard_links\":true}", count++);
    snprintf(text, sizeof text,
             "POST /v1/admin/checkpoint HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
             "Content-Length: %d\r\n\r\n%s",
             length, body);
    client_ask(server->port, text, &answer);
    if (answer.status != 200 || !strstr(answer.body, "\"created\":true"))
        fail_msg("a checkpoint was answered %d: %s", answer.status, answer.body);
    answer_free(&answer);
    assert_ok(weir_folder_remove(weir_test_path("data/checkpoints")));
}

/* Until all that the broker has is applied and sealed: then no server that is killed needs it again. */
__attribute__((unused)) static void living_seal(const serve_child *server, const char *topic, int partitions) {
    living_await_applied(server, topic, partitions);
    living_checkpoint(server);
}

/* When the newest round that the server's watch has ended was begun, on the monotonic clock: not before *fromp, not
 * after *top. */
static inline void living_round(const serve_child *server, int64_t *fromp, int64_t *top) {
    int64_t asked_us = weir_clock_mono_us(weir_clock_system());
    json_t *fresh = living_fresh(server), *age = json_object_get(fresh, "contact_age_seconds");
    int64_t answered_us = weir_clock_mono_us(weir_clock_system()), age_us = INT64_MAX / 2; /* there was none */
    if (json_is_number(age)) age_us = (int64_t)(json_number_value(age) * 1e6);
    json_decref(fresh);
    *fromp = asked_us - age_us - 1000; /* the age is in whole milliseconds */
    *top = answered_us - age_us;
}

/* Until the server would know that another log has taken this one's place: two rounds of its watch, begun after all was
 * read, have made the newest record of each partition an anchor and found it again, and its file has that record. Each
 * partition ends with a record, not with the mark of a transaction. */
__attribute__((unused)) static void living_await_known(const serve_child *server, const char *topic, int partitions) {
    uint64_t ends[LIVING_PARTS_MAX];
    living_await_applied(server, topic, partitions);
    int64_t after_us = weir_clock_mono_us(weir_clock_system());
    for (int rounds = 0, waited_ms = 0; rounds < 2; waited_ms += 10) {
        int64_t from_us, to_us;
        if (waited_ms >= LIVING_WAIT_MS) fail_msg("the watch has begun %d rounds", rounds);
        usleep(10000);
        living_round(server, &from_us, &to_us);
        if (from_us <= after_us) continue;
        after_us = to_us;
        rounds++;
    }
    living_ends(topic, partitions, ends);
    positions_await(ends, partitions);
}

/* --- another log under the same name ------------------------------------------------------------------------------ */

/* The same name again, with one partition and so many events from `first` on. */
__attribute__((unused)) static void living_remake(const char *topic, uint64_t first, uint64_t count, int64_t stamp_ms) {
    living_remove(topic);
    living_make(topic, 1, NULL);
    if (count) living_produce_at(topic, 0, first, count, stamp_ms);
}

/* What was stored is served on; of the new log nothing is in the store but what the sentence names. */
__attribute__((unused)) static void living_is_found(const serve_child *server, const char *words) {
    char sentence[1024];
    uint64_t lost, extra, named = 0;
    living_await_failure(server, words, sentence);
    printf("%s\n", sentence);
    assert_non_null(strstr(sentence, "weir serve --rebuild"));
    for (const char *range = strstr(sentence, "offsets "); range; range = strstr(range + 1, "offsets ")) {
        char *end;
        uint64_t from = strtoull(range + strlen("offsets "), &end, 10);
        assert_int_equal(strncmp(end, " to ", 4), 0);
        uint64_t to = strtoull(end + 4, NULL, 10);
        named += to - from + 1;
    }
    living_differ(server, truth, &lost, &extra);
    assert_int_equal(lost, 0);
    if (extra > named) fail_msg("%" PRIu64 " events of the new log, and %" PRIu64 " are named", extra, named);
}

/* What an unclean election leaves: the newest records of the partition are gone, the index with them. */
__attribute__((unused)) static void living_cut(const char *topic, int partition, double share) {
    char path[PATH_MAX], name[PATH_MAX + 64];
    struct dirent *entry;
    snprintf(path, sizeof path, "%s/data/%s-%d", broker_folder, topic, partition);
    DIR *folder = opendir(path);
    assert_non_null(folder);
    while ((entry = readdir(folder))) {
        snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
        size_t length = strlen(entry->d_name);
        if (length > 4 && strcmp(entry->d_name + length - 4, ".log") == 0) {
            FILE *file = fopen(name, "re");
            assert_non_null(file);
            assert_int_equal(fseek(file, 0, SEEK_END), 0);
            long bytes = ftell(file);
            fclose(file);
            assert_int_equal(truncate(name, (off_t)((double)bytes * share)), 0);
        } else if (strstr(entry->d_name, "index") || strstr(entry->d_name, ".snapshot")) {
            assert_int_equal(unlink(name), 0);
        }
    }
    closedir(folder);
    snprintf(name, sizeof name, "%s/data/recovery-point-offset-checkpoint", broker_folder);
    unlink(name);
    snprintf(name, sizeof name, "%s/data/replication-offset-checkpoint", broker_folder);
    unlink(name);
    snprintf(name, sizeof name, "%s/data/.kafka_cleanshutdown", broker_folder);
    unlink(name); /* so that it looks at what the disk has */
}

#endif /* WEIR_TEST_KAFKA_LIVING_H */

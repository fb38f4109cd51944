/* SPDX-License-Identifier: Apache-2.0 */
/* time_test.c - hostile times into a real `weir serve`: refused before they are acknowledged, set aside where they come
 * by the log, and nothing that was there vanishes: not for readers, not in a snapshot, not after a restart. */
#include "../../support/serve_child.h"
#include "../../support/shell.h"

#include <time.h>

#include <weir/store/base/file.h>

#define HISTORY 11

static const char schema[] = "version: 1\n"
                             "name: cards\n"
                             "vertices: {account: {expire: 60d}, card: {}}\n"
                             "relations: {holds: {from: account, to: card, expire: 30d}}\n"
                             "sources:\n"
                             "  cards:\n"
                             "    id: id\n"
                             "    time: time\n"
                             "    mutations:\n"
                             "      - {put_edge: holds, from: account, to: card}\n";

static void start(serve_child *server) {
    char *data = strdup(weir_test_path("data")), *path = strdup(weir_test_path("schema.yaml"));
    const char *const arguments[] = {"--schema", path, "--data", data, NULL};
    serve_spawn(server, arguments);
    serve_read_port(server);
    assert_true(server->port);
    serve_await(server, "/readyz", NULL, 200, NULL);
    free(data);
    free(path);
}

static void make(char event[256], int n, const char *time) {
    snprintf(event, 256, "{\"id\":\"e%d\",\"time\":\"%s\",\"account\":\"a%d\",\"card\":\"c%d\"}", n, time, n, n);
}

static void post(const serve_child *server, const char *path, const char *body, int status, const char *part) {
    char request[1024];
    http_answer answer;
    snprintf(request, sizeof request,
             "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
             path, strlen(body), body);
    client_ask(server->port, request, &answer);
    if (answer.status != status || !strstr(answer.body, part))
        fail_msg("%s: %d, not %d: %s", body, answer.status, status, answer.body);
    answer_free(&answer);
}

static void ahead(char text[32], int minutes) {
    time_t then = time(NULL) + minutes * 60;
    struct tm parts;
    assert_true(strftime(text, 32, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&then, &parts)) > 0);
}

/* Each account is there, with its card. */
static void all_are_there(const serve_child *server, int accounts) {
    for (int n = 0; n < accounts; n++) {
        char path[64], card[32];
        snprintf(path, sizeof path, "/v1/neighbors/account/a%d", n);
        snprintf(card, sizeof card, "\"key\":\"c%d\"", n);
        serve_await(server, path, NULL, 200, card);
    }
}

static void store_history(serve_child *server) {
    assert_ok(weir_file_replace(weir_test_path("schema.yaml"), schema, strlen(schema)));
    start(server);
    for (int n = 0; n < HISTORY; n++) {
        char event[256], time[32];
        snprintf(time, sizeof time, "2023-06-%02dT00:00:00Z", n + 1);
        make(event, n, time);
        post(server, "/v1/events", event, 200, "\"accepted\":1");
    }
    all_are_there(server, HISTORY);
}

static void the_year_9999_is_refused_before_it_is_acknowledged(void **state) {
    (void)state;
    serve_child server;
    char event[256];
    store_history(&server);
    make(event, 99, "9999-12-31T23:59:59Z");
    post(&server, "/v1/events", event, 422,
         "event 0 of the request: field 'time' (byte 21): the event's time, 9999-12-31T23:59:59.000000Z, is in the "
         "future");
    post(&server, "/v1/events", event, 422,
         "(ingest.future_max); check the sender's clock; no event of the request was");
    all_are_there(&server, HISTORY);
    assert_int_equal(serve_end(&server, SIGTERM), 0);
    shell("test \"$($weir ingest dlq list | wc -l)\" = 1; "
          "$weir snapshot build $data/snapshot --path $data/store | grep ' 11 edges,'");
}

static void the_year_9999_in_the_log_is_a_letter(void **state) {
    (void)state;
    serve_child server;
    store_history(&server);
    assert_int_equal(serve_end(&server, SIGTERM), 0);
    shell("echo '{\"id\":\"e99\",\"time\":\"9999-12-31T23:59:59Z\",\"account\":\"a99\",\"card\":\"c99\"}' | "
          "$weir log append cards --path $data/eventlog");
    start(&server);
    all_are_there(&server, HISTORY);
    serve_await(&server, "/metrics", NULL, 200, "weir_ingest_future_total 1\n");
    assert_int_equal(serve_end(&server, SIGTERM), 0);
    start(&server);
    all_are_there(&server, HISTORY);
    assert_int_equal(serve_end(&server, SIGTERM), 0);
    shell("$weir ingest dlq list | grep 'ingest.future_max'; $weir store verify --against-log --path $data/store; "
          "$weir snapshot build $data/snapshot --path $data/store | grep ' 11 edges,'");
}

/* Within the bound it is taken, and still makes nothing old. */
static void an_event_59_minutes_ahead_makes_nothing_old(void **state) {
    (void)state;
    serve_child server;
    char event[256], time[32];
    store_history(&server);
    ahead(time, 59);
    make(event, HISTORY, time);
    post(&server, "/v1/events", event, 200, "\"accepted\":1");
    ahead(time, 70);
    make(event, HISTORY + 1, time);
    post(&server, "/v1/events", event, 422, "ingest.future_max");
    all_are_there(&server, HISTORY + 1);
    serve_await(&server, "/v1/status", NULL, 200, "\"watermark\":\"2023-06-");
    assert_int_equal(serve_end(&server, SIGTERM), 0);
    start(&server);
    all_are_there(&server, HISTORY + 1);
    assert_int_equal(serve_end(&server, SIGTERM), 0);
    shell("$weir store stats --path $data/store | grep 'watermark: 2023-06-'; "
          "$weir snapshot build $data/snapshot --path $data/store | grep ' 12 edges,'");
}

static void load_sets_the_year_9999_aside(void **state) {
    (void)state;
    serve_child server;
    assert_ok(weir_file_replace(weir_test_path("schema.yaml"), schema, strlen(schema)));
    shell("for n in 0 1 2 3 4 5 6 7 8 9 10; do "
          "echo '{\"id\":\"e'$n'\",\"time\":\"2023-06-01T00:00:00Z\",\"account\":\"a'$n'\",\"card\":\"c'$n'\"}'; "
          "done > $data.jsonl");
    shell("echo '{\"id\":\"e99\",\"time\":\"9999-12-31T23:59:59Z\",\"account\":\"a99\",\"card\":\"c99\"}' >> "
          "$data.jsonl");
    shell("$weir load $data.jsonl --schema $folder/schema.yaml --data $data | grep '1 of them set aside'; "
          "$weir ingest dlq list | grep 'ingest.future_max'");
    start(&server);
    all_are_there(&server, HISTORY);
    assert_int_equal(serve_end(&server, SIGTERM), 0);
}

WEIR_TESTS(WEIR_CASE(the_year_9999_is_refused_before_it_is_acknowledged),
           WEIR_CASE(the_year_9999_in_the_log_is_a_letter), WEIR_CASE(an_event_59_minutes_ahead_makes_nothing_old),
           WEIR_CASE(load_sets_the_year_9999_aside))

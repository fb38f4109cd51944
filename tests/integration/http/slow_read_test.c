/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slow_read_test.c - reads of a vertex whose newest thousands of edges are deleted: they do not hold the loop that
 * others are answered by, their answers are right, and they end with the time of their request.
 *
 * Nothing here is measured: what counts is which answers are there first.
 */
#include <stdlib.h>
#include <string.h>

#include <weir/store/base/file.h>

#include "serve_child.h"

enum { BOUGHT = 20000, A_POST = 10000, KEPT = 5, SHOPS = 97, SLOW = 48, PROBES = 20, TRIES = 100 };

static const char schema_text[] =
    "version: 1\n"
    "name: undone\n"
    "vertices:\n"
    "  account: {}\n"
    "  shop: {}\n"
    "relations:\n"
    "  bought: {from: account, to: shop}\n"
    "sources:\n"
    "  purchases:\n"
    "    id: id\n"
    "    time: {field: t, format: s}\n"
    "    mutations:\n"
    "      - {put_vertex: account, key: account}\n"
    "      - {put_vertex: shop, key: shop}\n"
    "      - {put_edge: bought, from: account, to: shop, when: {lacks: undoes}}\n"
    "      - {delete_edge: bought, from: account, to: shop, event: undoes, when: {has: undoes}}\n";

#define SLOW_READ "GET /v1/neighbors/account/a?limit=5 HTTP/1.1\r\nHost: localhost\r\n\r\n"

/* One loop; more: another setting, or NULL. Nothing is sealed: what is, is passed by the first of them only. */
static void start(serve_child *server, const char *more) {
    char *path = strdup(weir_test_path("undone.yaml")), *data = strdup(weir_test_path("data"));
    assert_ok(weir_file_replace(path, schema_text, sizeof schema_text - 1));
    const char *arguments[] = {
        "--schema", path, "--data", data, "--set", "http.threads=1", "--set", "store.seal_interval=1h",
        NULL,       NULL, NULL};
    if (more) arguments[8] = "--set", arguments[9] = more;
    serve_spawn(server, arguments);
    serve_read_port(server);
    free(path);
    free(data);
    assert_true(server->port);
    serve_await(server, "/readyz", NULL, 200, NULL);
}

/* Event i stands at second i; the deletions follow all of them. */
static void post(const serve_child *server, int first, bool undo) {
    static char body[A_POST * 128];
    size_t length = 0;
    http_answer answer;
    for (int i = first; i < first + A_POST; i++) {
        if (undo && i < KEPT) continue;
        length += (size_t)snprintf(body + length, sizeof body - length,
                                   "{\"id\":\"%c%d\",\"t\":%d,\"account\":\"a\",\"shop\":\"s%d\"", undo ? 'u' : 'p', i,
                                   undo ? BOUGHT + i : i, i % SHOPS);
        if (undo) length += (size_t)snprintf(body + length, sizeof body - length, ",\"undoes\":\"p%d\"", i);
        length += (size_t)snprintf(body + length, sizeof body - length, "}\n");
    }
    serve_post(server, "/v1/events?source=purchases", SERVE_LINES, body, length, &answer);
    serve_expect("/v1/events", &answer, 200, NULL);
}

static void buy_and_undo(const serve_child *server) {
    for (int first = 0; first < BOUGHT; first += A_POST)
        post(server, first, false);
    for (int first = 0; first < BOUGHT; first += A_POST)
        post(server, first, true);
    serve_await(server, "/v1/neighbors/account/a?limit=1", NULL, 200, "\"key\":\"s4\""); /* all of them are applied */
}

static void send_slow_reads(const serve_child *server, http_client slow[SLOW]) {
    for (int i = 0; i < SLOW; i++) {
        client_open(&slow[i], server->port);
        assert_true(client_text(&slow[i], SLOW_READ));
    }
}

static int answers_there(const http_client slow[SLOW]) {
    struct pollfd fds[SLOW];
    for (int i = 0; i < SLOW; i++)
        fds[i] = (struct pollfd){.fd = slow[i].fd, .events = POLLIN};
    int there = poll(fds, SLOW, 0);
    assert_true(there >= 0);
    return there;
}

/* The newest KEPT, from the newest on, and no other. */
static void is_right(const http_answer *answer) {
    const char *at = answer->body;
    char key[32], text[256];
    assert_int_equal(answer->status, 200);
    for (int i = KEPT - 1; i >= 0; i--) {
        snprintf(key, sizeof key, "\"key\":\"s%d\"", i);
        at = strstr(at, key);
        assert_non_null(at);
    }
    assert_null(strstr(at + 1, "\"key\":"));
    const char *fresh = answer_header(answer, "Weir-Freshness", text, sizeof text);
    assert_non_null(fresh);
    assert_null(strstr(strstr(answer->head, "Weir-Freshness") + 1, "Weir-Freshness")); /* said once */
}

static void others_are_answered_while_slow_reads_run(void **state) {
    (void)state;
    serve_child server;
    http_client slow[SLOW], other;
    http_answer answer;
    start(&server, NULL);
    buy_and_undo(&server);
    client_open(&other, server.port);
    send_slow_reads(&server, slow);
    for (int i = 0; i < PROBES; i++) {
        assert_true(client_text(&other, "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"));
        client_read(&other, &answer);
        serve_expect("/livez", &answer, 200, NULL);
    }
    int there = answers_there(slow);
    printf("%d of %d slow reads were answered before %d others\n", there, SLOW, PROBES);
    assert_true(there < SLOW);
    for (int i = 0; i < SLOW; i++) {
        client_read(&slow[i], &answer);
        is_right(&answer);
        answer_free(&answer);
        client_close(&slow[i]);
    }
    client_close(&other);
    assert_int_equal(serve_end(&server, SIGTERM), 0);
}

/* How many of them were told that their time is over; others have an answer, or their connection was closed. */
static int slow_reads_too_late(const serve_child *server) {
    http_client slow[SLOW];
    http_answer answer;
    int late = 0;
    send_slow_reads(server, slow);
    for (int i = 0; i < SLOW; i++) {
        client_read(&slow[i], &answer);
        if (answer.status == 504) {
            assert_non_null(strstr(answer.body, "as long as a request may (http.request_timeout)"));
            late++;
        } else if (answer.status == 200) {
            is_right(&answer);
        }
        answer_free(&answer);
        client_close(&slow[i]);
    }
    return late;
}

static void a_slow_read_ends_with_the_time_of_its_request(void **state) {
    (void)state;
    serve_child server;
    int late = 0;
    start(&server, NULL);
    buy_and_undo(&server);
    serve_end(&server, SIGKILL);
    start(&server, "http.request_timeout=100ms");
    for (int i = 0; i < TRIES && !late; i++)
        late = slow_reads_too_late(&server);
    assert_true(late > 0);
    assert_int_equal(serve_end(&server, SIGTERM), 0);
}

WEIR_TESTS(WEIR_CASE(others_are_answered_while_slow_reads_run),
           WEIR_CASE(a_slow_read_ends_with_the_time_of_its_request))

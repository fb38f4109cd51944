/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deadline_test.c - what a request for scores says of its time reaches who scores: a large model and a target with many
 * neighbours take longer than is allowed, so that sooner or later an answer has less than the whole neighbourhood.
 *
 * How soon is the machine's affair, and so nothing here is measured.
 */
#include "model_register.h"
#include "serve_child.h"

#include <jansson.h>

#define HIDDEN    256
#define STORED    30
#define MANY      64 /* targets */
#define FEW       4
#define TRIES     500
#define DEADLINES 20 /* ms: between what is refused and what is enough for all */

static int post(const serve_child *child, const char *path, const char *body, json_t **rootp) {
    http_answer answer;
    http_client client;
    char head[256];
    snprintf(head, sizeof head,
             "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n",
             path, strlen(body));
    client_open(&client, child->port);
    client_text(&client, head);
    client_text(&client, body);
    client_read(&client, &answer);
    client_close(&client);
    *rootp = json_loads(answer.body, 0, NULL);
    assert_non_null(*rootp);
    int status = answer.status;
    answer_free(&answer);
    return status;
}

static void must_post(const serve_child *child, const char *path, const char *body) {
    json_t *root;
    assert_int_equal(post(child, path, body, &root), 200);
    json_decref(root);
}

static void store(const serve_child *child) {
    char event[512];
    for (int i = 0; i < STORED; i++) {
        snprintf(
            event, sizeof event,
            "{\"id\":\"p%d\",\"time\":\"2026-01-05T10:%02d:00Z\",\"account\":\"a\",\"card\":\"c\",\"device\":\"d\","
            "\"merchant\":\"m\",\"amount\":17.5,\"currency\":\"EUR\",\"channel\":\"web\"}",
            i, i);
        must_post(child, "/v1/events?source=payments", event);
    }
    serve_await_applied(child);
}

/* more: further members. */
static const char *ask_for(const char *more, int targets) {
    static char body[8192];
    size_t used = (size_t)snprintf(body, sizeof body, "{%s\"targets\":[", more);
    for (int i = 0; i < targets; i++)
        used += (size_t)snprintf(body + used, sizeof body - used, "%s{\"type\":\"payment\",\"key\":\"p%d\"}",
                                 i ? "," : "", i % STORED);
    snprintf(body + used, sizeof body - used, "]}");
    return body;
}

static bool all_whole(const json_t *root, int targets) {
    const json_t *scores = json_object_get(root, "scores");
    assert_int_equal(json_array_size(scores), targets);
    for (int i = 0; i < targets; i++)
        if (strcmp(json_string_value(json_object_get(json_array_get(scores, (size_t)i), "neighborhood")), "whole") != 0)
            return false;
    return true;
}

static void start(serve_child *child, const char *delay) {
    const char *const more[] = {"--set", "models.require_signature=false", "--set", delay, NULL};
    char id[WEIR_MODEL_ID_MAX];
    register_make(weir_test_path("data/models"), HIDDEN, 5, id);
    serve_start(child, weir_test_path("data"), more);
    assert_true(child->port);
    serve_await(child, "/readyz", NULL, 200, NULL);
}

/* Asks with deadlines of so many milliseconds and a little more, until one was too short for all of it. */
static bool is_cut(const serve_child *child, int targets, int beyond_ms) {
    json_t *root;
    bool cut = false;
    for (int i = 0; i < TRIES && !cut; i++) {
        char more[64];
        snprintf(more, sizeof more, "\"deadline_ms\":%d,", beyond_ms + 1 + i % DEADLINES);
        int status = post(child, "/v1/score", ask_for(more, targets), &root);
        assert_true(status == 200 || status == 503 || status == 504);
        cut = status == 200 && !all_whole(root, targets);
        json_decref(root);
    }
    return cut;
}

static void a_deadline_cuts_short_and_none_does_not(void **state) {
    (void)state;
    serve_child child;
    json_t *root;
    start(&child, "score.delay=0s");
    store(&child);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(post(&child, "/v1/score", ask_for("", MANY), &root), 200);
        assert_true(all_whole(root, MANY));
        json_decref(root);
    }
    assert_true(is_cut(&child, MANY, 0));
    assert_int_equal(serve_end(&child, SIGTERM), 0);
}

/* A tenth of a second of it is over before the worker begins: counted from there, all of these are long enough
 * for a few. */
static void a_deadline_runs_while_the_request_waits(void **state) {
    (void)state;
    serve_child child;
    start(&child, "score.delay=100ms");
    store(&child);
    assert_true(is_cut(&child, FEW, 100));
    assert_int_equal(serve_end(&child, SIGTERM), 0);
}

WEIR_TESTS(WEIR_CASE(a_deadline_cuts_short_and_none_does_not), WEIR_CASE(a_deadline_runs_while_the_request_waits))

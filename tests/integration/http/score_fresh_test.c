/* SPDX-License-Identifier: Apache-2.0 */
/*
 * score_fresh_test.c - a score that says that nothing is behind has seen all that was acknowledged before it was asked
 * for (API-A3), however long the network took.
 *
 * An account pays, and at once another payment of it is judged, with a large model. The answer has the first payment
 * among its nodes, or says that something is behind.
 */
#include "model_register.h"
#include "serve_child.h"

#include <jansson.h>

#define HIDDEN 256
#define TRIES  150

/* The second payment of the n-th account, a minute after the first. */
static const char *payment(int n, bool second) {
    static char text[512];
    snprintf(
        text, sizeof text,
        "{\"id\":\"%c%d\",\"time\":\"2026-01-05T10:%02d:00Z\",\"account\":\"a%d\",\"card\":\"c%d\",\"device\":\"d%d\","
        "\"merchant\":\"m%d\",\"amount\":17.5,\"currency\":\"EUR\",\"channel\":\"web\"}",
        second ? 'q' : 'p', n, second, n, n, n, n);
    return text;
}

/* Of the payment that is judged: how many nodes it was judged by, and how far the graph was behind. */
static json_int_t judge(const serve_child *child, int n, json_int_t *behindp) {
    char body[640];
    http_answer answer;
    int length = snprintf(body, sizeof body, "{\"source\":\"payments\",\"event\":%s}", payment(n, true));
    serve_post(child, "/v1/score", SERVE_JSON, body, (size_t)length, &answer);
    json_t *root = json_loads(answer.body, 0, NULL);
    serve_expect("/v1/score", &answer, 200, NULL);
    const json_t *score = json_array_get(json_object_get(root, "scores"), 0);
    const json_t *source = json_object_get(json_object_get(root, "freshness"), "payments");
    json_int_t nodes = json_integer_value(json_object_get(score, "nodes"));
    assert_true(nodes > 0 && json_is_integer(json_object_get(source, "behind")));
    *behindp = json_integer_value(json_object_get(source, "behind"));
    json_decref(root);
    return nodes;
}

static void start(serve_child *child) {
    const char *const more[] = {"--set", "models.require_signature=false", NULL};
    char id[WEIR_MODEL_ID_MAX];
    register_make(weir_test_path("data/models"), HIDDEN, 5, id);
    serve_start(child, weir_test_path("data"), more);
    assert_true(child->port);
    serve_await(child, "/readyz", NULL, 200, NULL);
}

static void a_score_has_seen_what_it_says(void **state) {
    (void)state;
    serve_child child;
    json_int_t behind;
    int claims = 0, early = 0;
    start(&child);
    json_int_t alone = judge(&child, TRIES, &behind);
    for (int n = 0; n < TRIES; n++) {
        serve_expect_post(&child, "/v1/events?source=payments", SERVE_JSON, payment(n, false), 200, NULL);
        json_int_t at_once = judge(&child, n, &behind);
        serve_await_applied(&child);
        json_int_t ignored, whole = judge(&child, n, &ignored);
        assert_true(whole > alone);
        claims += behind == 0;
        early += at_once < whole;
        if (at_once < whole && behind == 0)
            fail_msg("try %d: nothing is behind, and %lld of %lld nodes were seen", n, (long long)at_once,
                     (long long)whole);
    }
    printf("%d of %d were judged before the payment was applied, %d said that nothing was behind\n", early, TRIES,
           claims);
    assert_true(claims > 0);
    assert_int_equal(serve_end(&child, SIGTERM), 0);
}

WEIR_TESTS(WEIR_CASE(a_score_has_seen_what_it_says))

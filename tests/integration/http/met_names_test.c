/* SPDX-License-Identifier: Apache-2.0 */
/*
 * met_names_test.c - who asks for a score chooses the keys, and was once able to choose one that met a victim's: the
 * event, of which nothing is stored, was judged by the victim's payments, and told of them.
 */
#include "met_names.h"
#include "model_register.h"
#include "serve_child.h"

#include <jansson.h>

#define STORED 5

static void event_of(char *text, size_t room, const char *id, int hour, const char *account) {
    snprintf(
        text, room,
        "{\"id\":\"%s\",\"time\":\"2026-01-05T%02d:00:00Z\",\"account\":\"%s\",\"amount\":17.5,\"currency\":\"EUR\","
        "\"channel\":\"web\"}",
        id, hour, account);
}

static json_t *post(const serve_child *child, const char *path, const char *body) {
    http_answer answer;
    char request[4096];
    snprintf(request, sizeof request,
             "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
             path, strlen(body), body);
    client_ask(child->port, request, &answer);
    if (answer.status != 200) fail_msg("%s was answered %d: %s", path, answer.status, answer.body);
    json_t *root = json_loads(answer.body, 0, NULL);
    assert_non_null(root);
    answer_free(&answer);
    return root;
}

static void store(const serve_child *child) {
    char event[1024], id[16], path[64];
    for (int i = 0; i < STORED; i++) {
        snprintf(id, sizeof id, "p%d", i);
        event_of(event, sizeof event, id, 10, MET_KEY);
        json_decref(post(child, "/v1/events?source=payments", event));
        snprintf(path, sizeof path, "/v1/vertices/payment/%s", id);
        serve_await(child, path, NULL, 200, NULL);
    }
    snprintf(path, sizeof path, "\"p%d\"", STORED - 1);
    serve_await(child, "/v1/neighbors/" MET_TYPE "/" MET_KEY, NULL, 200, path);
}

typedef struct judged {
    double nodes, logit;
} judged;

/* A new payment of the account. */
static judged judge(const serve_child *child, const char *account) {
    char event[1024], body[1200];
    event_of(event, sizeof event, "new", 11, account);
    snprintf(body, sizeof body, "{\"source\":\"payments\",\"event\":%s}", event);
    json_t *root = post(child, "/v1/score", body);
    const json_t *score = json_array_get(json_object_get(root, "scores"), 0);
    judged j = {json_number_value(json_object_get(score, "nodes")), json_number_value(json_object_get(score, "logit"))};
    json_decref(root);
    return j;
}

static void a_name_that_met_a_victims_is_judged_as_a_strangers(void **state) {
    static const char *const more[] = {"--set", "models.require_signature=false", NULL};
    (void)state;
    serve_child child;
    char model[WEIR_MODEL_ID_MAX];
    assert_true(met_hash(MET_KEY) == met_hash(MET_TWIN));
    register_make(weir_test_path("data/models"), 16, 5, model);
    serve_start(&child, weir_test_path("data"), more);
    assert_true(child.port);
    serve_await(&child, "/readyz", NULL, 200, NULL);
    store(&child);
    judged victim = judge(&child, MET_KEY), twin = judge(&child, MET_TWIN), stranger = judge(&child, "stranger");
    assert_true(stranger.nodes == 2); /* the payment, and who pays */
    assert_true(victim.nodes == stranger.nodes + STORED);
    assert_true(twin.nodes == stranger.nodes);
    assert_true(victim.logit != stranger.logit);
    assert_true(twin.logit == stranger.logit);
    assert_int_equal(serve_end(&child, SIGTERM), 0);
}

WEIR_TESTS(WEIR_CASE(a_name_that_met_a_victims_is_judged_as_a_strangers))

/* SPDX-License-Identifier: Apache-2.0 */
/* score_test.c - scores of a real `weir serve`: models come, go and are refused while requests are answered. */
#include "model_register.h"
#include "serve_child.h"

#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include <jansson.h>

#define CLIENTS 2u
#define SWAPS   20u

#define ASK_P1 "{\"targets\":[{\"type\":\"payment\",\"key\":\"p1\"},{\"type\":\"payment\",\"key\":\"p2\"}]}"

#define ASK_P2 "{\"targets\":[{\"type\":\"payment\",\"key\":\"p2\"}]}"

static const char *const events[] = {
    "{\"id\":\"p1\",\"time\":\"2026-01-05T10:00:00Z\",\"account\":\"a1\",\"card\":\"c1\",\"device\":\"d1\","
    "\"merchant\":\"m1\",\"amount\":17.99,\"currency\":\"EUR\",\"channel\":\"web\"}",
    "{\"id\":\"p2\",\"time\":\"2026-01-05T11:00:00Z\",\"account\":\"a1\",\"payee\":\"a2\",\"amount\":250,"
    "\"currency\":\"EUR\",\"channel\":\"transfer\"}",
    "{\"id\":\"p3\",\"time\":\"2026-01-05T12:00:00Z\",\"account\":\"a2\",\"card\":\"c1\",\"device\":\"d1\","
    "\"merchant\":\"m1\",\"amount\":99,\"currency\":\"EUR\",\"channel\":\"web\"}",
};

static void post(const serve_child *child, const char *path, const char *body, http_answer *answer) {
    char request[8192];
    snprintf(request, sizeof request,
             "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
             path, strlen(body), body);
    client_ask(child->port, request, answer);
}

static json_t *post_json(const serve_child *child, const char *path, const char *body, int status) {
    http_answer answer;
    post(child, path, body, &answer);
    if (answer.status != status) fail_msg("%s %s: %d, not %d: %s", path, body, answer.status, status, answer.body);
    json_t *root = json_loads(answer.body, 0, NULL);
    assert_non_null(root);
    answer_free(&answer);
    return root;
}

static const char *text_at(json_t *object, const char *member, const char *name) {
    return json_string_value(json_object_get(json_object_get(object, member), name));
}

static double number_of(json_t *root, size_t score, const char *name) {
    return json_number_value(json_object_get(json_array_get(json_object_get(root, "scores"), score), name));
}

static void start(serve_child *child, bool unsigned_too) {
    const char *const more[] = {"--set", "models.require_signature=false", NULL};
    serve_start(child, weir_test_path("data"), unsigned_too ? more : NULL);
    assert_true(child->port != 0);
    serve_await(child, "/readyz", NULL, 200, NULL);
}

static void store_event(const serve_child *child, size_t i, const char *path) {
    json_decref(post_json(child, "/v1/events?source=payments", events[i], 200));
    serve_await_applied(child);
    serve_await(child, path, NULL, 200, NULL);
}

static void reload(const serve_child *child, const char *serving, const char *trouble) {
    http_answer answer;
    client_ask(child->port, "POST /v1/models/reload HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n", &answer);
    json_t *root = json_loads(answer.body, 0, NULL);
    assert_int_equal(answer.status, 200);
    if (serving) assert_string_equal(text_at(root, "model", "serving"), serving);
    if (trouble && !strstr(text_at(root, "model", "trouble"), trouble))
        fail_msg("trouble is: %s", text_at(root, "model", "trouble"));
    if (!trouble) assert_null(text_at(root, "model", "trouble"));
    json_decref(root);
    answer_free(&answer);
}

static void promote(weir_models *models, const char *id) {
    const weir_model_opts unsigned_too = {.accept_unsigned = true};
    weir_models_entry entry;
    assert_ok(weir_models_promote(models, id, &(weir_models_change){.reason = "a test"}, &unsigned_too, &entry));
}

/* The columns of an answer add up to its logit, and say what the event said; of a network there are none. */
static void columns_are_told(json_t *score, weir_pack_family family) {
    json_t *columns = json_object_get(score, "columns"), *column;
    double sum = json_number_value(json_object_get(score, "base")) +
                 json_number_value(json_object_get(score, "other_columns")) +
                 json_number_value(json_object_get(score, "network"));
    size_t i, met = 0;
    if (family == WEIR_PACK_NETWORK) {
        assert_true(!columns && !json_object_get(score, "base"));
        return;
    }
    assert_int_equal(json_object_get(score, "network") != NULL, family == WEIR_PACK_BLEND);
    assert_true(json_array_size(columns) > 8);
    json_array_foreach(columns, i, column) {
        const char *name = json_string_value(json_object_get(column, "column"));
        json_t *value = json_object_get(column, "value");
        assert_true(name && value);
        sum += json_number_value(json_object_get(column, "contribution"));
        if (!strcmp(name, "amount")) assert_true(json_number_value(value) == 99);
        if (!strcmp(name, "channel")) assert_string_equal(json_string_value(value), "web");
        if (!strcmp(name, "paid_by.out.edges")) assert_true(json_number_value(value) == 1);
        met += !strcmp(name, "amount") || !strcmp(name, "channel") || !strcmp(name, "paid_by.out.edges");
    }
    assert_true(met > 0);
    assert_true(fabs(sum - json_number_value(json_object_get(score, "logit"))) <= 1e-5);
}

/* --- cases ------------------------------------------------------------------------------------------------------ */

static void event_is_judged(weir_pack_family family, int status_of_embedding) {
    serve_child child;
    char id[WEIR_MODEL_ID_MAX], body[2048];
    register_make_family(weir_test_path("data/models"), family, 16, 5, id);
    start(&child, true);
    store_event(&child, 0, "/v1/vertices/payment/p1");
    store_event(&child, 1, "/v1/vertices/payment/p2");
    snprintf(body, sizeof body, "{\"source\": \"payments\", \"reasons\":2, \"columns\":2,\n \"event\" : %s }",
             events[2]);
    json_t *before = post_json(&child, "/v1/score", body, 200);
    store_event(&child, 2, "/v1/vertices/payment/p3");
    json_t *after = post_json(&child, "/v1/score",
                              "{\"targets\":[{\"type\":\"payment\",\"key\":\"p3\"}],\"reasons\":2,\"columns\":2}", 200);
    json_t *a = json_array_get(json_object_get(before, "scores"), 0);
    json_t *b = json_array_get(json_object_get(after, "scores"), 0);
    assert_true(fabs(number_of(before, 0, "logit") - number_of(after, 0, "logit")) <= 1e-5);
    assert_string_equal(json_string_value(json_object_get(a, "decision")),
                        json_string_value(json_object_get(b, "decision")));
    assert_true(json_equal(json_object_get(a, "key"), json_object_get(b, "key")));
    assert_true(json_equal(json_object_get(a, "nodes"), json_object_get(b, "nodes")));
    json_t *reason = json_array_get(json_object_get(a, "reasons"), 0);
    assert_int_equal(json_array_size(json_object_get(a, "reasons")), 2);
    assert_true(json_is_string(json_object_get(reason, "key")));
    assert_true(json_equal(json_object_get(reason, "key"),
                           json_object_get(json_array_get(json_object_get(b, "reasons"), 0), "key")));
    if (family != WEIR_PACK_NETWORK) assert_int_equal(json_array_size(json_object_get(a, "columns")), 2);
    json_decref(before);
    json_decref(after);
    after = post_json(&child, "/v1/score", "{\"targets\":[{\"type\":\"payment\",\"key\":\"p3\"}],\"columns\":64}", 200);
    columns_are_told(json_array_get(json_object_get(after, "scores"), 0), family);
    json_decref(after);
    after = post_json(&child, "/v1/score", "{\"targets\":[{\"type\":\"payment\",\"key\":\"p3\"}]}", 200);
    assert_null(json_object_get(json_array_get(json_object_get(after, "scores"), 0), "columns"));
    json_decref(after);
    serve_expect_get(&child, "/v1/embeddings/payment/p3", status_of_embedding,
                     status_of_embedding == 200 ? "embedding" : "it is boosted trees");
    serve_expect_get(&child, "/v1/embeddings/account/a1", status_of_embedding,
                     status_of_embedding == 200 ? "embedding" : "it is boosted trees");
    assert_int_equal(serve_end(&child, SIGTERM), 0);
}

static void an_event_is_judged_before_it_is_stored(void **state) {
    (void)state;
    event_is_judged(WEIR_PACK_NETWORK, 200);
}

/* They say why, and have no embedding of anything. */
static void so_it_is_by_trees(void **state) {
    (void)state;
    event_is_judged(WEIR_PACK_TREES, 404);
}

static void so_it_is_by_a_blend(void **state) {
    (void)state;
    event_is_judged(WEIR_PACK_BLEND, 200);
}

static json_t *embedding_of(const serve_child *child, const char *path) {
    http_answer answer;
    serve_get(child, path, &answer);
    if (answer.status != 200) fail_msg("%s: %d: %s", path, answer.status, answer.body);
    json_t *root = json_loads(answer.body, 0, NULL);
    assert_true(json_array_size(json_object_get(root, "embedding")) > 1);
    answer_free(&answer);
    return root;
}

/* Of the payment as of its own time, of its account as of now: a payment more is a new one of the account alone. */
static void what_a_model_meets_has_an_embedding(void **state) {
    (void)state;
    static const char payment[] = "/v1/embeddings/payment/p1", account[] = "/v1/embeddings/account/a1";
    serve_child child;
    char id[WEIR_MODEL_ID_MAX];
    register_make(weir_test_path("data/models"), 16, 5, id);
    start(&child, true);
    store_event(&child, 0, "/v1/vertices/payment/p1");
    json_t *of_payment = embedding_of(&child, payment), *of_account = embedding_of(&child, account);
    assert_string_equal(json_string_value(json_object_get(of_payment, "time")), "2026-01-05T10:00:00.000000Z");
    assert_string_not_equal(json_string_value(json_object_get(of_account, "time")), "2026-01-05T10:00:00.000000Z");
    assert_string_equal(json_string_value(json_object_get(of_account, "type")), "account");
    store_event(&child, 1, "/v1/vertices/payment/p2");
    json_t *payment_again = embedding_of(&child, payment), *account_again = embedding_of(&child, account);
    assert_true(json_equal(json_object_get(of_payment, "embedding"), json_object_get(payment_again, "embedding")));
    assert_false(json_equal(json_object_get(of_account, "embedding"), json_object_get(account_again, "embedding")));
    serve_expect_get(&child, "/v1/embeddings/account/nobody", 404, "no such account");
    json_decref(of_payment);
    json_decref(of_account);
    json_decref(payment_again);
    json_decref(account_again);
    assert_int_equal(serve_end(&child, SIGTERM), 0);
}

static const char *neighborhood_of(json_t *root) {
    return json_string_value(json_object_get(json_array_get(json_object_get(root, "scores"), 0), "neighborhood"));
}

static json_t *score_within(const serve_child *child, int nodes_max) {
    char body[256];
    snprintf(body, sizeof body, "{\"targets\":[{\"type\":\"payment\",\"key\":\"p2\"}],\"nodes_max\":%d}", nodes_max);
    return post_json(child, "/v1/score", body, 200);
}

static void more_nodes_than_are_wanted_are_not_looked_at(void **state) {
    (void)state;
    serve_child child;
    char id[WEIR_MODEL_ID_MAX];
    register_make(weir_test_path("data/models"), 16, 5, id);
    start(&child, true);
    store_event(&child, 0, "/v1/vertices/payment/p1");
    store_event(&child, 1, "/v1/vertices/payment/p2");
    json_t *whole = post_json(&child, "/v1/score", ASK_P2, 200);
    int nodes = (int)number_of(whole, 0, "nodes");
    json_t *enough = score_within(&child, nodes), *less = score_within(&child, nodes - 1);
    assert_string_equal(neighborhood_of(whole), "whole");
    assert_string_equal(neighborhood_of(enough), "whole");
    assert_string_not_equal(neighborhood_of(less), "whole");
    json_decref(whole);
    json_decref(enough);
    json_decref(less);
    assert_int_equal(serve_end(&child, SIGTERM), 0);
}

/* --- how fresh a score is --------------------------------------------------------------------------------------- */

/* Payment i, at 10:00 or at 9:00, of an account of its own: what came earlier is in its neighbourhood. */
static json_t *post_payment(const serve_child *child, int i, bool is_target) {
    char event[256];
    snprintf(event, sizeof event,
             "{\"id\":\"%s%d\",\"time\":\"2026-01-05T%s:00:00Z\",\"account\":\"a%d\",\"amount\":1,"
             "\"currency\":\"EUR\",\"channel\":\"web\"}",
             is_target ? "t" : "p", i, is_target ? "10" : "09", i);
    return post_json(child, "/v1/events?source=payments", event, 200);
}

/* The target many times over, so that there is time between what is read and what is written. */
static json_t *score_target(const serve_child *child, int i) {
    enum { TARGETS = 64 };
    char body[TARGETS * 64];
    size_t used = (size_t)snprintf(body, sizeof body, "{\"reasons\":0,\"targets\":[");
    for (int t = 0; t < TARGETS; t++)
        used += (size_t)snprintf(body + used, sizeof body - used, "%s{\"type\":\"payment\",\"key\":\"t%d\"}",
                                 t ? "," : "", i);
    snprintf(body + used, sizeof body - used, "]}");
    return post_json(child, "/v1/score", body, 200);
}

/* Whether the answer says that what was acknowledged so is applied. */
static bool says_applied(json_t *answer, json_t *acknowledged) {
    json_t *at = json_array_get(json_object_get(acknowledged, "events"), 0);
    json_t *source = json_object_get(json_object_get(answer, "freshness"), "payments");
    json_t *offset = json_object_get(at, "offset"), *partition = json_object_get(at, "partition");
    assert_true(json_is_integer(offset) && json_is_integer(partition));
    json_t *applied = json_array_get(json_object_get(source, "applied"), (size_t)json_integer_value(partition));
    return json_integer_value(applied) > json_integer_value(offset);
}

/* Asks at once after each event: as soon as a score says that the event was applied, it was made with it. */
static void a3_what_freshness_says_is_in_the_score(void **state) {
    (void)state;
    enum { EVENTS = 60 };
    serve_child child;
    char id[WEIR_MODEL_ID_MAX], path[64];
    weir_schema *schema = register_schema();
    weir_models *models;
    assert_ok(weir_models_open(weir_test_path("data/models"), weir_clock_system(), &models));
    assert_ok(register_add(models, schema, 256, 5, NULL, id));
    promote(models, id);
    start(&child, true);
    for (int i = 0; i < EVENTS; i++) {
        json_decref(post_payment(&child, i, true));
        snprintf(path, sizeof path, "/v1/vertices/payment/t%d", i);
        serve_await(&child, path, NULL, 200, NULL);
        json_t *at = post_payment(&child, i, false);
        for (bool applied = false; !applied;) {
            json_t *answer = score_target(&child, i);
            applied = says_applied(answer, at);
            if (applied && number_of(answer, 0, "nodes") < 3) /* the target, its account, and what that paid before */
                fail_msg("p%d is said to be applied, and the score is without it", i);
            json_decref(answer);
        }
        json_decref(at);
    }
    weir_models_close(models);
    weir_schema_free(schema);
    assert_int_equal(serve_end(&child, SIGTERM), 0);
}

static void bodies_that_are_refused(void **state) {
    (void)state;
    serve_child child;
    char id[WEIR_MODEL_ID_MAX];
    static const struct {
        const char *body;
        int status;
        const char *part;
    } rows[] = {
        {"{}", 400, "either targets, or source and event"},
        {"{\"targets\":[]}", 400, "1 to 64"},
        {"{\"targets\":[{\"type\":\"payment\",\"key\":\"p1\"}],\"event\":{}}", 400, "either targets"},
        {"{\"targets\":[{\"type\":\"account\",\"key\":\"a1\"}]}", 422,
         "scores vertices of type payment, not of type account"},
        {"{\"targets\":[{\"type\":\"payment\",\"key\":\"none\"}]}", 422, "no such payment"},
        {"{\"source\":\"payments\",\"event\":[]}", 422,
         "event 0 of the request: byte 1: the message is not a JSON object"},
        {"{\"source\":\"payment\",\"event\":{}}", 400, "no source 'payment'"},
        {"{\"source\":\"payments\",\"\\u0065vent\":{}}", 400, "escape sequences"},
        {"{\"source\":\"payments\",\"event\":{\"id\":\"x\"}}", 422, "time"},
        {"{\"source\":\"payments\",\"event\":{\"id\":\"x\",\"time\":\"9999-12-31T00:00:00Z\",\"account\":\"a1\","
         "\"amount\":1,\"currency\":\"EUR\",\"channel\":\"web\"}}",
         422, "is in the future: none after"},
        {"{\"source\":\"chargebacks\",\"event\":{\"id\":\"x\",\"time\":\"2026-01-05T10:00:00Z\",\"payment\":\"p\","
         "\"label\":\"fraud\"}}",
         422, "puts no payment"},
        {"{\"targets\":[{\"type\":\"payment\",\"key\":\"p1\"}],\"reasons\":65}", 400, "0 to 64"},
    };
    register_make(weir_test_path("data/models"), 16, 5, id);
    start(&child, true);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        json_t *root = post_json(&child, "/v1/score", rows[i].body, rows[i].status);
        const char *detail = json_string_value(json_object_get(root, "detail"));
        if (!detail || !strstr(detail, rows[i].part)) fail_msg("%s: says '%s'", rows[i].body, detail);
        json_decref(root);
    }
    assert_int_equal(serve_end(&child, SIGTERM), 0);
}

/* Over sockets, by status and sentence: what the one takes the other takes, and refuses what it refuses. */
static void an_event_is_refused_as_the_log_would(void **state) {
    (void)state;
    enum { LONG = 1300000 };
    static const char taken_behind[] = "; no event of the request was accepted";
    static char text[LONG + 512], body[LONG + 1024];
    static const char odd[] =
        "{\"id\":\"y\",\"time\":\"2026-01-05T12:00:00Z\",\"account\":\"a2\",\"merchant\":\"m1\",\"amount\":99,"
        "\"currency\":\"EUR\",\"channel\":\"web\",\"extra\":{\"n\":1,\"n\":123456789012345678901234567890}}";
    static const char *const all[] = {
        "{\"id\":\"x\"}", "7", "null", "{\"id\":\"x\",\"id\":\"y\"}", "{\"id\":\"x\" \"time\":1}", "long", odd,
    };
    serve_child child;
    char id[WEIR_MODEL_ID_MAX];
    register_make(weir_test_path("data/models"), 16, 5, id);
    start(&child, true);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        http_client client;
        http_answer answers[2];
        const char *event = all[i];
        if (!strcmp(event, "long")) {
            int length = snprintf(text, sizeof text, "{\"id\":\"%0*d\"}", LONG, 1);
            assert_true(length > LONG);
            event = text;
        }
        for (int score = 0; score < 2; score++) {
            char head[512];
            snprintf(body, sizeof body, score ? "{\"source\":\"payments\",\"event\":%s}" : "%s", event);
            snprintf(
                head, sizeof head,
                "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n",
                score ? "/v1/score" : "/v1/events?source=payments", strlen(body));
            client_open(&client, child.port);
            client_text(&client, head);
            client_text(&client, body);
            client_read(&client, &answers[score]);
            client_close(&client);
        }
        if (answers[0].status != answers[1].status)
            fail_msg("%.200s: %s but %s", event, answers[0].body, answers[1].body);
        if (answers[0].status != 200) {
            json_t *a = json_loads(answers[0].body, 0, NULL), *b = json_loads(answers[1].body, 0, NULL);
            const char *logged = json_string_value(json_object_get(a, "detail"));
            const char *score = json_string_value(json_object_get(b, "detail"));
            assert_true(logged && score && strlen(logged) == strlen(score) + strlen(taken_behind));
            assert_memory_equal(logged, score, strlen(score));
            assert_string_equal(logged + strlen(score), taken_behind);
            json_decref(a);
            json_decref(b);
        }
        assert_int_equal(answers[0].status, i + 1 < sizeof all / sizeof all[0] ? 422 : 200);
        answer_free(&answers[0]);
        answer_free(&answers[1]);
    }
    assert_int_equal(serve_end(&child, SIGTERM), 0);
}

static void spoil(const char *folder) {
    char path[512];
    snprintf(path, sizeof path, "%s/model.json", folder);
    int fd = open(path, O_WRONLY | O_APPEND);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, " ", 1), 1);
    close(fd);
}

static json_t *reload_and_score(const serve_child *child) {
    http_answer answer;
    client_ask(child->port, "POST /v1/models/reload HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n", &answer);
    assert_int_equal(answer.status, 200);
    answer_free(&answer);
    return post_json(child, "/v1/score", ASK_P1, 200);
}

static void bad_models_leave_the_good_one(void **state) {
    (void)state;
    serve_child child;
    char good[WEIR_MODEL_ID_MAX], bad[WEIR_MODEL_ID_MAX], path[512];
    weir_models *models;
    weir_schema *schema = register_schema();
    assert_ok(weir_models_open(weir_test_path("data/models"), weir_clock_system(), &models));
    start(&child, true);
    store_event(&child, 0, "/v1/vertices/payment/p1");
    store_event(&child, 1, "/v1/vertices/payment/p2");
    json_t *none = post_json(&child, "/v1/score", ASK_P1, 503);
    assert_non_null(strstr(json_string_value(json_object_get(none, "detail")), "no model serves yet"));
    json_decref(none);
    assert_ok(register_add(models, schema, 16, 1, NULL, good));
    promote(models, good);
    reload(&child, good, NULL);
    json_t *first = post_json(&child, "/v1/score", ASK_P1, 200);
    assert_ok(register_add(models, schema, 8, 2, NULL, bad));
    assert_ok(weir_models_path(models, bad, path, sizeof path));
    kill(child.pid, SIGSTOP); /* so that it cannot look in between */
    promote(models, bad);
    spoil(path);
    kill(child.pid, SIGCONT);
    json_t *then = reload_and_score(&child);
    assert_string_equal(text_at(then, "model", "id"), good);
    assert_true(fabs(number_of(first, 0, "logit") - number_of(then, 0, "logit")) <= 1e-5);
    serve_await(&child, "/readyz?verbose", NULL, 200, bad);
    json_decref(first);
    json_decref(then);
    weir_models_close(models);
    weir_schema_free(schema);
    assert_int_equal(serve_end(&child, SIGTERM), 0);
}

static void an_unsigned_model_is_refused_by_default(void **state) {
    (void)state;
    serve_child child;
    char id[WEIR_MODEL_ID_MAX];
    register_make(weir_test_path("data/models"), 16, 1, id);
    serve_start(&child, weir_test_path("data"), NULL);
    assert_true(child.port != 0);
    serve_await(&child, "/readyz", NULL, 503, "no model can be loaded");
    store_event(&child, 0, "/v1/vertices/payment/p1");
    reload(&child, NULL, "sign");
    json_decref(post_json(&child, "/v1/score", ASK_P1, 503));
    assert_int_equal(serve_end(&child, SIGTERM), 0);
}

/* What stands in the place of a model keeps nobody waiting, and a server without one is not ready, by name. */
static void a_pipe_in_the_place_of_a_model_hangs_nothing(void **state) {
    (void)state;
    serve_child child;
    char id[WEIR_MODEL_ID_MAX], path[512], aside[512];
    register_make(weir_test_path("data/models"), 16, 1, id);
    snprintf(path, sizeof path, "%s/%s/model.json", weir_test_path("data/models"), id);
    snprintf(aside, sizeof aside, "%s", weir_test_path("aside"));
    assert_int_equal(rename(path, aside), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    const char *const more[] = {"--set", "models.require_signature=false", NULL};
    int64_t since_us = serve_now_us();
    serve_start(&child, weir_test_path("data"), more);
    assert_true(child.port != 0);
    char *sentence = serve_await_red(&child, "no model", since_us, "model.json is not a regular file");
    reload(&child, NULL, "model.json is not a regular file");
    serve_is_as_red(&child, sentence, NULL);
    assert_int_equal(rename(aside, path), 0);
    serve_await(&child, "/readyz", NULL, 200, NULL); /* nobody has to say that it is mended */
    store_event(&child, 0, "/v1/vertices/payment/p1");
    store_event(&child, 1, "/v1/vertices/payment/p2");
    json_decref(post_json(&child, "/v1/score", ASK_P1, 200));
    assert_int_equal(serve_end(&child, SIGTERM), 0);
}

/* Whoever can write one of these decides who may ask, which model judges, or what was said. */
static void what_others_may_write_is_refused(void **state) {
    (void)state;
    static const char *const names[] = {"eventlog", "eventlog/payments", "keys"};
    char keys[512], path[512];
    snprintf(keys, sizeof keys, "%s", weir_test_path("keys"));
    FILE *file = fopen(keys, "w");
    assert_non_null(file);
    fprintf(file, "admin ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad boss\n");
    assert_int_equal(fclose(file), 0);
    const char *const more[] = {"--keys", keys, NULL};
    serve_child child;
    serve_start(&child, weir_test_path("data"), more);
    assert_true(child.port != 0);
    assert_int_equal(serve_end(&child, SIGTERM), 0);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct stat status;
        snprintf(path, sizeof path, "%s", i == 2 ? keys : weir_test_path("data"));
        if (i < 2) snprintf(path + strlen(path), sizeof path - strlen(path), "/%s", names[i]);
        assert_int_equal(stat(path, &status), 0);
        assert_int_equal(chmod(path, status.st_mode | 022), 0);
        serve_start(&child, weir_test_path("data"), more);
        assert_int_equal(child.port, 0);
        assert_int_equal(serve_end(&child, SIGTERM), 69);
        assert_int_equal(chmod(path, status.st_mode), 0);
    }
    serve_start(&child, weir_test_path("data"), more);
    assert_true(child.port != 0);
    assert_int_equal(serve_end(&child, SIGTERM), 0);
}

/* The first key is made, and signs, while the server runs. */
static void keys_beside_the_data_may_come_after_the_start(void **state) {
    (void)state;
    serve_child child;
    char id[WEIR_MODEL_ID_MAX];
    weir_models *models;
    weir_models_entry entry;
    weir_public_key public_key;
    weir_secret_key *secret;
    weir_schema *schema = register_schema();
    const weir_model_opts signed_by_it = {.keys = &public_key, .key_count = 1};
    start(&child, false);
    assert_ok(weir_key_pair_write(weir_test_path("data/models.key"), weir_test_path("data/models.pub"), &public_key));
    assert_ok(weir_secret_key_load(weir_test_path("data/models.key"), &secret));
    assert_ok(weir_models_open(weir_test_path("data/models"), weir_clock_system(), &models));
    assert_ok(register_add(models, schema, 16, 1, secret, id));
    assert_ok(weir_models_promote(models, id, &(weir_models_change){.key = secret}, &signed_by_it, &entry));
    reload(&child, id, NULL);
    weir_models_close(models);
    weir_secret_key_free(secret);
    weir_schema_free(schema);
    assert_int_equal(serve_end(&child, SIGTERM), 0);
}

/* --- swaps under load ------------------------------------------------------------------------------------------- */

typedef struct load {
    const serve_child *child;
    atomic_bool stop;
    atomic_uint answers, failed;
    char ids[2][WEIR_MODEL_ID_MAX];
    double logits[2];
} load;

static void *load_main(void *context) {
    load *l = context;
    while (!atomic_load(&l->stop)) {
        http_answer answer;
        post(l->child, "/v1/score", ASK_P1, &answer);
        json_t *root = answer.status == 200 ? json_loads(answer.body, 0, NULL) : NULL;
        bool fine = false;
        for (uint32_t m = 0; root && m < 2; m++)
            fine = fine || (!strcmp(text_at(root, "model", "id"), l->ids[m]) &&
                            fabs(number_of(root, 0, "logit") - l->logits[m]) <= 1e-5);
        atomic_fetch_add(fine ? &l->answers : &l->failed, 1);
        json_decref(root);
        answer_free(&answer);
    }
    return NULL;
}

static void swaps_under_load_fail_no_request(void **state) {
    (void)state;
    serve_child child;
    weir_models *models;
    pthread_t clients[CLIENTS];
    weir_schema *schema = register_schema();
    static load l;
    assert_ok(weir_models_open(weir_test_path("data/models"), weir_clock_system(), &models));
    start(&child, true);
    store_event(&child, 0, "/v1/vertices/payment/p1");
    store_event(&child, 1, "/v1/vertices/payment/p2");
    l.child = &child;
    for (uint32_t m = 0; m < 2; m++) {
        assert_ok(register_add(models, schema, 16, 10 + m, NULL, l.ids[m]));
        promote(models, l.ids[m]);
        reload(&child, l.ids[m], NULL);
        json_t *root = post_json(&child, "/v1/score", ASK_P1, 200);
        l.logits[m] = number_of(root, 0, "logit");
        json_decref(root);
    }
    assert_true(fabs(l.logits[0] - l.logits[1]) > 1e-4);
    for (uint32_t i = 0; i < CLIENTS; i++)
        assert_int_equal(pthread_create(&clients[i], NULL, load_main, &l), 0);
    for (uint64_t i = 0; i < weir_test_rounds(SWAPS); i++) {
        promote(models, l.ids[i % 2]);
        reload(&child, l.ids[i % 2], NULL);
    }
    atomic_store(&l.stop, true);
    for (uint32_t i = 0; i < CLIENTS; i++)
        assert_int_equal(pthread_join(clients[i], NULL), 0);
    assert_int_equal(atomic_load(&l.failed), 0);
    assert_true(atomic_load(&l.answers) > 0);
    weir_models_close(models);
    weir_schema_free(schema);
    assert_int_equal(serve_end(&child, SIGTERM), 0);
}

WEIR_TESTS(WEIR_CASE(an_event_is_refused_as_the_log_would), WEIR_CASE(a_pipe_in_the_place_of_a_model_hangs_nothing),
           WEIR_CASE(what_others_may_write_is_refused), WEIR_CASE(an_event_is_judged_before_it_is_stored),
           WEIR_CASE(so_it_is_by_trees), WEIR_CASE(so_it_is_by_a_blend), WEIR_CASE(what_a_model_meets_has_an_embedding),
           WEIR_CASE(more_nodes_than_are_wanted_are_not_looked_at), WEIR_CASE(a3_what_freshness_says_is_in_the_score),
           WEIR_CASE(bodies_that_are_refused), WEIR_CASE(bad_models_leave_the_good_one),
           WEIR_CASE(an_unsigned_model_is_refused_by_default), WEIR_CASE(keys_beside_the_data_may_come_after_the_start),
           WEIR_CASE(swaps_under_load_fail_no_request))

/* SPDX-License-Identifier: Apache-2.0 */
/* Events into a real `weir serve`: what is acknowledged stays, what is repeated is not taken twice, what is said is so.
 * */
#include <jansson.h>

#include "serve_child.h"

#define EVENT_MAX 512

/* --- asking --------------------------------------------------------------------------------------------------- */

static void make_event(char event[EVENT_MAX], const char *id, const char *account) {
    snprintf(event, EVENT_MAX,
             "{\"id\":\"%s\",\"time\":\"2026-01-05T10:00:00Z\",\"account\":\"%s\",\"amount\":1,\"currency\":\"EUR\","
             "\"channel\":\"web\"}",
             id, account);
}

static void post_on(http_client *client, const char *body, http_answer *answer) {
    char head[256];
    snprintf(head, sizeof head,
             "POST /v1/events?source=payments HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\n"
             "Content-Length: %zu\r\n\r\n",
             strlen(body));
    client_text(client, head);
    client_text(client, body);
    client_read(client, answer);
}

static void post(const serve_child *child, const char *body, http_answer *answer) {
    http_client client;
    client_open(&client, child->port);
    post_on(&client, body, answer);
    client_close(&client);
}

static void get(const serve_child *child, const char *path, http_answer *answer) {
    char text[512];
    snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path);
    client_ask(child->port, text, answer);
}

typedef struct place {
    long long partition, offset;
    bool duplicate;
} place;

/* Wants 200 and takes the place of one event out of the answer. */
static place place_of(const http_answer *answer, size_t index) {
    json_t *root = json_loads(answer->body, 0, NULL);
    if (answer->status != 200) fail_msg("answered %d: %s", answer->status, answer->body);
    json_t *event = json_array_get(json_object_get(root, "events"), index);
    assert_non_null(event);
    place found = {json_integer_value(json_object_get(event, "partition")),
                   json_integer_value(json_object_get(event, "offset")),
                   json_is_true(json_object_get(event, "duplicate"))};
    json_decref(root);
    return found;
}

static place post_one(const serve_child *child, const char *id, const char *account) {
    char event[EVENT_MAX];
    http_answer answer;
    make_event(event, id, account);
    post(child, event, &answer);
    place found = place_of(&answer, 0);
    answer_free(&answer);
    return found;
}

static void same_place(place one, place two) {
    assert_int_equal(one.partition, two.partition);
    assert_int_equal(one.offset, two.offset);
}

static void start(serve_child *child, const char *const *more) {
    serve_start(child, weir_test_path("data"), more);
    assert_true(child->port);
}

/* --- cases ---------------------------------------------------------------------------------------------------- */

static void a1_what_is_acknowledged_survives_a_kill(void **state) {
    (void)state;
    enum { EVENTS = 20 };
    serve_child child;
    place places[EVENTS];
    char id[32], path[64];
    start(&child, NULL);
    for (int i = 0; i < EVENTS; i++) {
        snprintf(id, sizeof id, "p%d", i);
        places[i] = post_one(&child, id, id);
        assert_false(places[i].duplicate);
    }
    assert_int_equal(serve_end(&child, SIGKILL), 128 + SIGKILL);
    start(&child, NULL);
    serve_await(&child, "/readyz", NULL, 200, NULL);
    for (int i = 0; i < EVENTS; i++) {
        http_answer answer;
        snprintf(path, sizeof path, "/v1/neighbors/account/p%d", i);
        get(&child, path, &answer);
        assert_int_equal(answer.status, 200);
        answer_free(&answer);
    }
    assert_int_equal(serve_end(&child, SIGTERM), 0);
}

static void a1_a_request_is_taken_whole_or_not(void **state) {
    (void)state;
    serve_child child;
    char good[EVENT_MAX], other[EVENT_MAX], body[3 * EVENT_MAX];
    http_answer answer;
    start(&child, NULL);
    make_event(good, "p1", "a1");
    make_event(other, "p2", "a1");
    snprintf(body, sizeof body, "%s\n{\"id\":\"bad\"}\n%s\n", good, other);
    post(&child, body, &answer);
    assert_int_equal(answer.status, 422);
    assert_non_null(strstr(answer.body, "event 1 of the request: field 'time'"));
    answer_free(&answer);
    assert_false(post_one(&child, "p1", "a1").duplicate);
    snprintf(body, sizeof body, "%s\n%s\n", good, other);
    post(&child, body, &answer);
    assert_true(place_of(&answer, 0).duplicate);
    assert_false(place_of(&answer, 1).duplicate);
    answer_free(&answer);
    assert_int_equal(serve_end(&child, SIGTERM), 0);
}

static void a1_a_full_disk_acknowledges_nothing(void **state) {
    (void)state;
    serve_child child;
    char event[EVENT_MAX];
    http_answer answer;
    setenv("WEIR_FAULT", "sync:1:ENOSPC:/payments/0", 1);
    start(&child, NULL);
    unsetenv("WEIR_FAULT");
    serve_await(&child, "/readyz", NULL, 200, NULL);
    make_event(event, "p1", "a1");
    post(&child, event, &answer);
    assert_int_equal(answer.status, 503);
    answer_free(&answer);
    post(&child, event, &answer); /* the same event is not taken for one that is there */
    assert_int_equal(answer.status, 503);
    assert_non_null(strstr(answer.body, "tried every second"));
    answer_free(&answer);
    get(&child, "/readyz", &answer);
    assert_int_equal(answer.status, 503);
    answer_free(&answer);
    get(&child, "/livez", &answer);
    assert_int_equal(answer.status, 200);
    answer_free(&answer);
    serve_end(&child, SIGTERM);
    start(&child, NULL);
    (void)post_one(&child, "p1", "a1");
    serve_await(&child, "/v1/neighbors/account/a1", NULL, 200, "\"p1\"");
    assert_int_equal(serve_end(&child, SIGTERM), 0);
}

static void a2_a_repeated_event_keeps_its_place(void **state) {
    (void)state;
    serve_child child;
    char one[EVENT_MAX], body[2 * EVENT_MAX];
    http_answer answer;
    start(&child, NULL);
    make_event(one, "p1", "a1");
    snprintf(body, sizeof body, "%s\n%s\n", one, one);
    post(&child, body, &answer);
    place first = place_of(&answer, 0), again = place_of(&answer, 1);
    answer_free(&answer);
    assert_false(first.duplicate);
    assert_true(again.duplicate);
    same_place(first, again);
    again = post_one(&child, "p1", "a1");
    assert_true(again.duplicate);
    same_place(first, again);
    assert_int_equal(serve_end(&child, SIGKILL), 128 + SIGKILL);
    start(&child, NULL);
    again = post_one(&child, "p1", "a1"); /* the table is read back from the log */
    assert_true(again.duplicate);
    same_place(first, again);
    assert_int_equal(serve_end(&child, SIGTERM), 0);
}

static void a2_only_recent_events_are_known(void **state) {
    (void)state;
    serve_child child;
    const char *const more[] = {"--set", "http.recent_events=2", NULL};
    start(&child, more);
    assert_false(post_one(&child, "p1", "a1").duplicate);
    assert_false(post_one(&child, "p2", "a1").duplicate);
    assert_true(post_one(&child, "p1", "a1").duplicate);
    assert_false(post_one(&child, "p3", "a1").duplicate);
    assert_false(post_one(&child, "p1", "a1").duplicate);
    assert_int_equal(serve_end(&child, SIGTERM), 0);
}

static long long applied_of(const http_answer *answer, long long partition) {
    json_t *root = json_loads(answer->body, 0, NULL);
    json_t *source = json_object_get(json_object_get(root, "freshness"), "payments");
    json_t *applied = json_array_get(json_object_get(source, "applied"), (size_t)partition);
    long long offset = applied ? json_integer_value(applied) : 0;
    json_decref(root);
    return offset;
}

/* Asks at once after each event: as soon as an answer says that the event was applied, it must hold it. */
static void a3_what_freshness_says_is_in_the_answer(void **state) {
    (void)state;
    enum { EVENTS = 100 };
    serve_child child;
    char id[32], known[40];
    start(&child, NULL);
    serve_await(&child, "/readyz", NULL, 200, NULL);
    (void)post_one(&child, "p-first", "a1");
    serve_await(&child, "/v1/neighbors/account/a1", NULL, 200, "p-first");
    for (int i = 0; i < EVENTS; i++) {
        snprintf(id, sizeof id, "p%d", i);
        snprintf(known, sizeof known, "\"key\":\"p%d\"", i);
        place at = post_one(&child, id, "a1");
        for (bool applied = false; !applied;) {
            http_answer answer;
            get(&child, "/v1/neighbors/account/a1?limit=1000", &answer);
            assert_int_equal(answer.status, 200);
            applied = applied_of(&answer, at.partition) > at.offset;
            if (applied && !strstr(answer.body, known)) fail_msg("%s is said to be applied, and is not there", id);
            answer_free(&answer);
        }
    }
    assert_int_equal(serve_end(&child, SIGTERM), 0);
}

static void simulate(int count, int seed) {
    weir_test_output output;
    char to[512], events[32], number[32];
    snprintf(to, sizeof to, "log:%s/eventlog", weir_test_path("data"));
    snprintf(events, sizeof events, "%d", count);
    snprintf(number, sizeof number, "%d", seed);
    const char *const argv[] = {
        weir_test_program(), "simulate", "payments", "--count", events, "--seed", number, "--to", to, NULL};
    weir_test_run(argv, NULL, &output);
    if (output.status) fail_msg("weir simulate: %s", output.err);
    weir_test_output_free(&output);
}

static void a4_ready_means_that_all_was_applied(void **state) {
    (void)state;
    serve_child child;
    http_answer answer;
    json_t *root;
    simulate(20000, 1);
    start(&child, NULL);
    do {
        get(&child, "/readyz", &answer);
        assert_true(answer.status == 200 || answer.status == 503);
        if (answer.status == 200) break;
        answer_free(&answer);
    } while (true);
    root = json_loads(answer.body, 0, NULL);
    json_t *source = json_object_get(json_object_get(root, "freshness"), "payments");
    assert_int_equal(json_integer_value(json_object_get(source, "behind")), 0);
    json_int_t applied = 0;
    for (size_t i = 0; i < json_array_size(json_object_get(source, "applied")); i++)
        applied += json_integer_value(json_array_get(json_object_get(source, "applied"), i));
    assert_int_equal(applied, 20000);
    json_decref(root);
    answer_free(&answer);
    assert_int_equal(serve_end(&child, SIGTERM), 0);
}

static void a4_a_stopping_server_says_so_and_goes_on_serving(void **state) {
    (void)state;
    serve_child child;
    http_answer answer;
    int status;
    const char *const more[] = {"--set", "http.stop_delay=2s", NULL};
    start(&child, more);
    serve_await(&child, "/readyz", NULL, 200, NULL);
    kill(child.pid, SIGTERM);
    serve_await(&child, "/readyz", NULL, 503, "stopping");
    get(&child, "/livez", &answer);
    assert_int_equal(answer.status, 200);
    answer_free(&answer);
    assert_int_equal(waitpid(child.pid, &status, 0), child.pid);
    assert_true(WIFEXITED(status) && !WEXITSTATUS(status));
    close(child.out);
}

/* --- who else has the data ------------------------------------------------------------------------------------ */

static void a_second_server_is_refused(void **state) {
    (void)state;
    serve_child child;
    weir_test_output output;
    start(&child, NULL);
    const char *const argv[] = {weir_test_program(),    "serve",    "--schema",    "payments", "--data",
                                weir_test_path("data"), "--listen", "127.0.0.1:0", NULL};
    weir_test_run(argv, NULL, &output);
    assert_int_equal(output.status, 69);
    assert_non_null(strstr(output.err, "is locked by process"));
    weir_test_output_free(&output);
    assert_int_equal(serve_end(&child, SIGTERM), 0);
}

WEIR_TESTS(WEIR_CASE(a1_what_is_acknowledged_survives_a_kill), WEIR_CASE(a1_a_request_is_taken_whole_or_not),
           WEIR_CASE(a1_a_full_disk_acknowledges_nothing), WEIR_CASE(a2_a_repeated_event_keeps_its_place),
           WEIR_CASE(a2_only_recent_events_are_known), WEIR_CASE(a3_what_freshness_says_is_in_the_answer),
           WEIR_CASE(a4_ready_means_that_all_was_applied), WEIR_CASE(a4_a_stopping_server_says_so_and_goes_on_serving),
           WEIR_CASE(a_second_server_is_refused))

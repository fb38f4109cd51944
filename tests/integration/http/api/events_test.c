/* SPDX-License-Identifier: Apache-2.0 */
/* Events into a real `weir serve`: what is acknowledged stays, what is repeated is not taken twice, what is said is so.
 * */
#include <jansson.h>

#include <weir/store/base/file.h>
#include <weir/store/base/rng.h>

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
    assert_non_null(strstr(answer.body, "the server retries every second"));
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

/* Each request goes to the next of four partitions, so the thirteenth is the fourth of the first. */
static void a2_an_id_is_compared_within_the_window(void **state) {
    (void)state;
    serve_child child;
    char id[32];
    const char *const more[] = {"--set", "ingest.event_window=2", NULL};
    start(&child, more);
    assert_false(post_one(&child, "p0", "a1").duplicate);
    for (int i = 1; i < 9; i++) {
        snprintf(id, sizeof id, "p%d", i);
        assert_false(post_one(&child, id, "a1").duplicate);
        assert_int_equal(post_one(&child, "p0", "a1").duplicate, i < 8);
    }
    assert_int_equal(serve_end(&child, SIGTERM), 0);
}

static void refused_as_other(const serve_child *child, const char *id, const char *account, const place *first) {
    char event[EVENT_MAX], other[EVENT_MAX], body[2 * EVENT_MAX + 2], where[64];
    http_answer answer;
    make_event(event, id, account);
    make_event(other, "new", account);
    snprintf(body, sizeof body, "%s\n%s\n", other, event);
    post(child, body, &answer);
    assert_int_equal(answer.status, 409);
    snprintf(where, sizeof where, "offset %lld of partition %lld", first->offset, first->partition);
    assert_non_null(strstr(answer.body, "event 1 of the request: an event with the same id and different content"));
    assert_non_null(strstr(answer.body, where));
    answer_free(&answer);
}

/* At once, after a kill, and from a store that the log fills anew; nothing of a refused request is taken. */
static void a2_other_content_is_refused(void **state) {
    (void)state;
    serve_child child;
    http_answer answer;
    start(&child, NULL);
    place first = post_one(&child, "p1", "a1");
    refused_as_other(&child, "p1", "a2", &first);
    assert_int_equal(serve_end(&child, SIGKILL), 128 + SIGKILL);
    start(&child, NULL);
    refused_as_other(&child, "p1", "a2", &first);
    assert_int_equal(serve_end(&child, SIGTERM), 0); /* sealed: from now on it is the store that knows */
    start(&child, NULL);
    refused_as_other(&child, "p1", "a2", &first);
    assert_int_equal(serve_end(&child, SIGTERM), 0);
    assert_ok(weir_folder_remove(weir_test_path("data/store")));
    start(&child, NULL);
    refused_as_other(&child, "p1", "a2", &first);
    serve_await(&child, "/v1/neighbors/account/a1", NULL, 200, "\"p1\"");
    get(&child, "/v1/vertices/account/a2", &answer);
    assert_int_equal(answer.status, 404);
    answer_free(&answer);
    get(&child, "/v1/vertices/payment/new", &answer);
    assert_int_equal(answer.status, 404);
    answer_free(&answer);
    assert_true(post_one(&child, "p1", "a1").duplicate);
    assert_int_equal(serve_end(&child, SIGTERM), 0);
}

/* Requests of any size, so that partitions fill unevenly: what was known before is known after, at the same place. */
static void a2_a_restart_forgets_no_id(void **state) {
    (void)state;
    enum { REQUESTS = 60, MOST = 40, WINDOW = 100, PARTITIONS = 4 };
    weir_rng rng = weir_rng_stream(weir_test_seed(), 0, 0);
    const char *const more[] = {"--set", "ingest.event_window=100", NULL};
    static char body[MOST * EVENT_MAX];
    static place places[REQUESTS * MOST];
    long long next[PARTITIONS] = {0};
    char id[32];
    http_answer answer;
    serve_child child;
    size_t posted = 0;
    start(&child, more);
    for (int request = 0; request < REQUESTS; request++) {
        size_t count = 1 + weir_rng_below(&rng, MOST), used = 0;
        for (size_t i = 0; i < count; i++) {
            snprintf(id, sizeof id, "p%zu", posted + i);
            make_event(body + used, id, "a1");
            used += strlen(body + used);
            body[used++] = '\n';
        }
        body[used] = 0;
        post(&child, body, &answer);
        for (size_t i = 0; i < count; i++)
            places[posted + i] = place_of(&answer, i);
        next[places[posted].partition] = places[posted + count - 1].offset + 1;
        posted += count;
        answer_free(&answer);
    }
    for (int life = 0; life < 2; life++) {
        int how = life ? SIGKILL : SIGTERM;
        assert_int_equal(serve_end(&child, how), how == SIGTERM ? 0 : 128 + SIGKILL);
        start(&child, more);
        for (size_t i = 0; i < posted; i++) {
            if (next[places[i].partition] - places[i].offset > WINDOW) continue;
            snprintf(id, sizeof id, "p%zu", i);
            place again = post_one(&child, id, "a1");
            assert_true(again.duplicate);
            same_place(again, places[i]);
        }
    }
    assert_int_equal(serve_end(&child, SIGTERM), 0);
}

static long long offset_of(const http_answer *answer, const char *what, long long partition) {
    json_t *root = json_loads(answer->body, 0, NULL);
    json_t *source = json_object_get(json_object_get(root, "freshness"), "payments");
    json_t *told = json_array_get(json_object_get(source, what), (size_t)partition);
    long long offset = told ? json_integer_value(told) : 0;
    json_decref(root);
    return offset;
}

/* Asks at once after each event: every answer knows of it, and as soon as one says that it was applied, it must hold
 * it. */
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
            applied = offset_of(&answer, "applied", at.partition) > at.offset;
            assert_true(offset_of(&answer, "end", at.partition) > at.offset);
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
           WEIR_CASE(a2_an_id_is_compared_within_the_window), WEIR_CASE(a2_other_content_is_refused),
           WEIR_CASE(a2_a_restart_forgets_no_id), WEIR_CASE(a3_what_freshness_says_is_in_the_answer),
           WEIR_CASE(a4_ready_means_that_all_was_applied), WEIR_CASE(a4_a_stopping_server_says_so_and_goes_on_serving),
           WEIR_CASE(a_second_server_is_refused))

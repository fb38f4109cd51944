/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recommend_test.c - a shop's stream is learnt by `weir train` and answered by a real `weir serve`: a click that was
 * just stored changes the answer, what was bought is not recommended, and who is not known gets what is bought lately.
 */
#include "serve_child.h"
#include "shell.h"

#include <time.h>

#include <jansson.h>

#define NEWCOMERS 3u

/* Events end a minute before now, so that what is stored during the test is newer. */
static void shop_make(const char *task, const char *more) {
    char line[2048];
    snprintf(line, sizeof line,
             "unset WEIR_EVENTLOG_PATH; cd $folder; "
             "start=$(date -u -d '24 days ago 1 minute ago' +%%FT%%TZ); "
             "$weir simulate clicks --people 200 --items 480 --days 24 --seed 5 --start $start --to file:stream; "
             "$weir load stream/clicks.jsonl --schema clicks --data $data; "
             "$weir snapshot build snapshot --path $data/store; "
             "$weir train snapshot --task %s --epochs 3 --models $data/models %s; "
             "$weir model promote $(ls $data/models | grep Z-) --path $data/models "
             "--set models.require_signature=false",
             task, more);
    shell(line);
}

static void shop_serve(serve_child *child) {
    const char *const more[] = {"--schema", "clicks", "--set", "models.require_signature=false", NULL};
    serve_start(child, weir_test_path("data"), more);
    assert_true(child->port != 0);
    serve_await(child, "/readyz", NULL, 200, NULL);
}

static json_t *shop_ask(const serve_child *child, const char *person, const char *query) {
    char path[256];
    http_answer answer;
    snprintf(path, sizeof path, "/v1/recommend/person/%s%s", person, query);
    serve_get(child, path, &answer);
    if (answer.status != 200) fail_msg("%s: %d: %s", path, answer.status, answer.body);
    json_t *root = json_loads(answer.body, 0, NULL);
    assert_non_null(root);
    answer_free(&answer);
    return root;
}

static json_t *shop_items(json_t *answer) {
    return json_object_get(answer, "recommendations");
}

static const char *shop_item(json_t *answer, size_t i) {
    return json_string_value(json_object_get(json_array_get(shop_items(answer), i), "key"));
}

static bool shop_has(json_t *answer, const char *item) {
    for (size_t i = 0; i < json_array_size(shop_items(answer)); i++)
        if (strcmp(shop_item(answer, i), item) == 0) return true;
    return false;
}

/* Stores one event as of now, and waits until it shows. */
static void shop_store(const serve_child *child, const char *id, const char *person, const char *item,
                       const char *kind) {
    char body[512], request[1024], now[32];
    const time_t seconds = time(NULL);
    struct tm utc;
    http_answer answer;
    assert_true(strftime(now, sizeof now, "%FT%TZ", gmtime_r(&seconds, &utc)) > 0);
    snprintf(body, sizeof body,
             "{\"id\":\"%s\",\"time\":\"%s\",\"person\":\"%s\",\"item\":\"%s\",\"kind\":\"%s\",\"price\":3.5}", id, now,
             person, item, kind);
    snprintf(request, sizeof request,
             "POST /v1/events?source=clicks HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
             "Content-Length: %zu\r\n\r\n%s",
             strlen(body), body);
    client_ask(child->port, request, &answer);
    if (answer.status != 200) fail_msg("%s: %d: %s", body, answer.status, answer.body);
    answer_free(&answer);
    serve_await_applied(child);
}

/* --- cases -------------------------------------------------------------------------------------------------------- */

static void a_click_changes_the_answer(void **state) {
    (void)state;
    serve_child child;
    json_t *before, *after[NEWCOMERS];
    shop_make("next_view", "");
    shop_serve(&child);
    before = shop_ask(&child, "newcomer0", "?limit=40");
    assert_string_equal(json_string_value(json_object_get(before, "by")), "trend");
    assert_int_equal(json_integer_value(json_object_get(before, "met")), 0);
    assert_int_equal(json_array_size(shop_items(before)), 40);
    for (size_t i = 1; i < 40; i++) {
        const double score = json_number_value(json_object_get(json_array_get(shop_items(before), i), "score"));
        const double ahead = json_number_value(json_object_get(json_array_get(shop_items(before), i - 1), "score"));
        assert_true(ahead >= score);
    }

    /* Each newcomer looks at another item: each gets an answer of its own, at once. */
    for (size_t n = 0; n < NEWCOMERS; n++) {
        char person[32], id[32];
        snprintf(person, sizeof person, "newcomer%zu", n);
        snprintf(id, sizeof id, "later%zu", n);
        shop_store(&child, id, person, shop_item(before, 3 * n), "view");
        after[n] = shop_ask(&child, person, "?limit=40");
        assert_string_equal(json_string_value(json_object_get(after[n], "by")), "history");
        assert_int_equal(json_integer_value(json_object_get(after[n], "met")), 1);
        assert_false(json_equal(shop_items(before), shop_items(after[n])));
        for (size_t other = 0; other < n; other++)
            assert_false(json_equal(shop_items(after[other]), shop_items(after[n])));
    }
    for (size_t n = 0; n < NEWCOMERS; n++)
        json_decref(after[n]);
    json_decref(before);
    serve_expect_get(&child, "/v1/recommend/item/i1", 404, "recommends to vertices of type person");
    serve_expect_get(&child, "/v1/recommend/person/u1?limit=969", 400, "from 1 to 968");
    serve_expect_get(&child, "/v1/embeddings/person/u1", 503, "the model that serves recommends");
    assert_int_equal(serve_end(&child, SIGTERM), 0);
}

/* next_purchase has no `repeat`: what was bought is left out from then on, and the rest moves up. */
static void what_was_bought_is_left_out(void **state) {
    (void)state;
    serve_child child;
    shop_make("next_purchase", "");
    shop_serve(&child);
    json_t *before = shop_ask(&child, "newcomer", "");
    assert_int_equal(json_array_size(shop_items(before)), 20);
    shop_store(&child, "later1", "newcomer", shop_item(before, 0), "buy");
    shop_store(&child, "later2", "newcomer", shop_item(before, 2), "view");
    json_t *after = shop_ask(&child, "newcomer", "?limit=900");
    assert_int_equal(json_integer_value(json_object_get(after, "met")), 2);
    assert_false(shop_has(after, shop_item(before, 0)));
    assert_true(shop_has(after, shop_item(before, 2)));
    json_decref(before);
    json_decref(after);
    assert_int_equal(serve_end(&child, SIGTERM), 0);
}

WEIR_TESTS(WEIR_CASE(a_click_changes_the_answer), WEIR_CASE(what_was_bought_is_left_out))

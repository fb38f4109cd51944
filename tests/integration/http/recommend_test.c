/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recommend_test.c - a shop's stream is learnt by `weir train` and answered by a real `weir serve`: a click that was
 * just stored changes the answer, what was bought is not recommended, and who is not known gets what is bought lately.
 */
#include "serve_child.h"
#include "shell.h"

#include <math.h>
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

static json_t *shop_get(const serve_child *child, const char *path) {
    http_answer answer;
    serve_get(child, path, &answer);
    if (answer.status != 200) fail_msg("%s: %d: %s", path, answer.status, answer.body);
    json_t *root = json_loads(answer.body, 0, NULL);
    assert_non_null(root);
    answer_free(&answer);
    return root;
}

static json_t *shop_ask(const serve_child *child, const char *person, const char *query) {
    char path[256];
    snprintf(path, sizeof path, "/v1/recommend/person/%s%s", person, query);
    return shop_get(child, path);
}

static json_t *shop_embedding(const serve_child *child, const char *type, const char *key) {
    char path[256];
    snprintf(path, sizeof path, "/v1/embeddings/%s/%s", type, key);
    return shop_get(child, path);
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
    assert_int_equal(serve_end(&child, SIGTERM), 0);
}

/* The product of two vectors that the server tells. */
static double shop_product(json_t *a, json_t *b) {
    const json_t *x = json_object_get(a, "embedding"), *y = json_object_get(b, "embedding");
    double sum = 0;
    assert_true(json_array_size(x) > 1 && json_array_size(x) == json_array_size(y));
    for (size_t i = 0; i < json_array_size(x); i++)
        sum += json_number_value(json_array_get(x, i)) * json_number_value(json_array_get(y, i));
    return sum;
}

/* The oracle is the other answer: each score is the product of two vectors, whether the user is known or not. */
static void scores_are_products_of_embeddings(void **state) {
    (void)state;
    static const char *const persons[] = {"newcomer0", "newcomer1"};
    serve_child child;
    shop_make("next_view", "");
    shop_serve(&child);
    serve_expect_get(&child, "/v1/embeddings/person/newcomer0", 404, "no such person");
    json_t *lately = shop_ask(&child, persons[0], "?limit=4");
    shop_store(&child, "later0", persons[0], shop_item(lately, 0), "view");
    shop_store(&child, "later1", persons[1], "brandnew", "view");
    for (size_t p = 0; p < sizeof persons / sizeof persons[0]; p++) {
        json_t *answer = shop_ask(&child, persons[p], "?limit=8");
        json_t *user = shop_embedding(&child, "person", persons[p]);
        assert_string_equal(json_string_value(json_object_get(answer, "by")), p ? "trend" : "history");
        for (size_t i = 0; i < 8; i++) {
            json_t *item = shop_embedding(&child, "item", shop_item(answer, i));
            const double score = json_number_value(json_object_get(json_array_get(shop_items(answer), i), "score"));
            assert_true(fabs(shop_product(user, item) - score) <= 1e-4 * (1 + fabs(score)));
            json_decref(item);
        }
        json_decref(user);
        json_decref(answer);
    }
    json_decref(lately);
    serve_expect_get(&child, "/v1/embeddings/item/brandnew", 404, "does not know this item");
    serve_expect_get(&child, "/v1/embeddings/session/s1", 404, "no embedding of a session");
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

WEIR_TESTS(WEIR_CASE(a_click_changes_the_answer), WEIR_CASE(scores_are_products_of_embeddings),
           WEIR_CASE(what_was_bought_is_left_out))

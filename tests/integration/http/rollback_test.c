/* SPDX-License-Identifier: Apache-2.0 */
/* rollback_test.c - who can write a model's files and has no key, against a real `weir serve`: by copying files. */
#include "register_fixture.h"
#include "serve_child.h"

#include <jansson.h>

#define OLD 0
#define NEW 1

typedef struct scene {
    signed_register ours, theirs; /* of the same key; a register beside ours, for tests of its own */
    serve_child child;
} scene;

static const char *text_at(json_t *root, const char *name) {
    return json_string_value(json_object_get(json_object_get(root, "model"), name));
}

/* serving NULL: none; trouble NULL: none. */
static void look(const scene *s, const char *serving, const char *trouble) {
    http_answer answer;
    client_ask(s->child.port, "POST /v1/models/reload HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n",
               &answer);
    assert_int_equal(answer.status, 200);
    json_t *root = json_loads(answer.body, 0, NULL);
    const char *serves = text_at(root, "serving"), *said = text_at(root, "trouble");
    if (serving ? !serves || strcmp(serves, serving) != 0 : serves != NULL) fail_msg("serves %s", answer.body);
    if (trouble ? !said || !strstr(said, trouble) : said != NULL) fail_msg("says %s", answer.body);
    json_decref(root);
    answer_free(&answer);
}

static void begin(scene *s) {
    char copy[4 * SIGNED_PATH_MAX];
    weir_test_output output;
    signed_make(&s->ours, "data");
    signed_make(&s->theirs, "other");
    snprintf(s->theirs.trusted, sizeof s->theirs.trusted, "%s", s->ours.trusted);
    snprintf(s->theirs.key, sizeof s->theirs.key, "%s", s->ours.key);
    snprintf(copy, sizeof copy, "rm -r '%s' && cp -r '%s' '%s'", s->theirs.models, s->ours.models, s->theirs.models);
    weir_test_run((const char *const[]){"/bin/sh", "-c", copy, NULL}, NULL, &output);
    assert_int_equal(output.status, 0);
    weir_test_output_free(&output);
    memcpy(s->theirs.ids, s->ours.ids, sizeof s->ours.ids);
    for (int i = 0; i < 3; i++)
        signed_promote(&s->theirs, i % 2);
    signed_promote(&s->ours, OLD);
    copy_small(s->ours.current, weir_test_path("old"));
    signed_promote(&s->ours, NEW);
    copy_small(s->ours.current, weir_test_path("new"));
    serve_start(&s->child, weir_test_path("data"), NULL);
    assert_true(s->child.port != 0);
    serve_await(&s->child, "/readyz", NULL, 200, NULL);
    look(s, s->ours.ids[NEW], NULL);
}

static void start_again(scene *s) {
    assert_int_equal(serve_end(&s->child, SIGTERM), 0);
    serve_start(&s->child, weir_test_path("data"), NULL);
    assert_true(s->child.port != 0);
}

static void end(scene *s) {
    assert_int_equal(serve_end(&s->child, SIGTERM), 0);
}

/* What was put there is refused by name, by the server that runs and by one that starts; put right, it serves. */
static void refused_then_mended(scene *s, const char *sentence) {
    look(s, s->ours.ids[NEW], sentence);
    serve_await(&s->child, "/readyz?verbose", NULL, 200, sentence);
    start_again(s);
    serve_await(&s->child, "/readyz", NULL, 503, sentence);
    look(s, NULL, sentence);
    copy_small(weir_test_path("new"), s->ours.current);
    serve_await(&s->child, "/readyz", NULL, 200, NULL); /* nobody has to say so */
    look(s, s->ours.ids[NEW], NULL);
    end(s);
}

static void m6_an_older_promotion_put_back_is_refused(void **state) {
    scene s;
    (void)state;
    begin(&s);
    copy_small(weir_test_path("old"), s.ours.current);
    refused_then_mended(&s, "is generation 1, and 2 was seen");
}

static void m6_a_promotion_of_another_register_is_refused(void **state) {
    scene s;
    (void)state;
    begin(&s);
    copy_small(s.theirs.current, s.ours.current); /* same key, higher generation, a model that is here too */
    refused_then_mended(&s, "and this server follows");
}

static void m6_a_promotion_that_is_gone_is_missed(void **state) {
    scene s;
    (void)state;
    begin(&s);
    assert_ok(weir_file_remove(s.ours.current));
    refused_then_mended(&s, "is gone, and generation 2 was seen");
}

static void m5_a_promotion_that_nobody_signed_is_refused(void **state) {
    scene s;
    char *text = NULL;
    size_t length = 0;
    (void)state;
    begin(&s);
    assert_ok(weir_file_load(weir_test_path("new"), 1u << 20, &text, &length));
    char *id = strstr(text, s.ours.ids[NEW]);
    assert_non_null(id);
    memcpy(id, s.ours.ids[OLD], strlen(s.ours.ids[OLD]));
    assert_ok(weir_file_replace(s.ours.current, text, length));
    look(&s, s.ours.ids[NEW], "its signature does not match");
    char *signature = strstr(text, "weir-ed25519");
    assert_non_null(signature);
    memcpy(signature, "unsigned\n", sizeof "unsigned\n");
    assert_ok(weir_file_replace(s.ours.current, text, strlen(text)));
    weir_free(text);
    refused_then_mended(&s, "is not signed");
}

/* The older model lies under the newer's name; both were signed by our key. */
static void m5_an_older_model_in_the_newer_ones_folder_is_refused(void **state) {
    scene s;
    char path[2][2 * SIGNED_PATH_MAX];
    (void)state;
    begin(&s);
    for (int i = 0; i < 2; i++)
        snprintf(path[i], sizeof path[i], "%s/%s", s.ours.models, s.ours.ids[i]);
    assert_ok(weir_file_rename(path[NEW], weir_test_path("aside")));
    assert_ok(weir_file_rename(path[OLD], path[NEW]));
    look(&s, s.ours.ids[NEW], NULL); /* what serves is in memory */
    start_again(&s);
    serve_await(&s.child, "/readyz", NULL, 503, "holds another model than the one that was promoted");
    assert_ok(weir_folder_remove(path[NEW]));
    assert_ok(weir_file_rename(weir_test_path("aside"), path[NEW]));
    serve_await(&s.child, "/readyz", NULL, 200, NULL);
    look(&s, s.ours.ids[NEW], NULL);
    end(&s);
}

/* Going back is for who has the key: by a rollback, and by what the refusal says. */
static void with_the_key_everything_goes(void **state) {
    scene s;
    weir_models_entry entry;
    char after[64];
    (void)state;
    begin(&s);
    entry = signed_entry(&s.ours);
    signed_must(&s.ours, (const char *const[]){"rollback", "--reason", "alerts doubled", NULL});
    look(&s, s.ours.ids[OLD], NULL);
    assert_int_equal(signed_entry(&s.ours).generation, 3);
    copy_small(weir_test_path("old"), s.ours.current);
    look(&s, s.ours.ids[OLD], "is generation 1, and 3 was seen");
    signed_promote(&s.ours, NEW); /* goes on from the old file: too low still */
    look(&s, s.ours.ids[OLD], "is generation 2, and 3 was seen");
    snprintf(after, sizeof after, "%s:3", entry.register_id);
    signed_must(&s.ours, (const char *const[]){"promote", s.ours.ids[2], "--after", after, NULL});
    look(&s, s.ours.ids[2], NULL);
    assert_int_equal(signed_entry(&s.ours).generation, 4);
    start_again(&s);
    serve_await(&s.child, "/readyz", NULL, 200, NULL);
    look(&s, s.ours.ids[2], NULL);
    end(&s);
}

/* The file of what was seen is the operator's to remove: then another register is followed. */
static void an_operator_may_follow_another_register(void **state) {
    scene s;
    (void)state;
    begin(&s);
    copy_small(s.theirs.current, s.ours.current);
    look(&s, s.ours.ids[NEW], "models.seen to follow the other");
    assert_ok(weir_file_remove(weir_test_path("data/models.seen")));
    look(&s, s.ours.ids[OLD], NULL);
    end(&s);
}

WEIR_TESTS(WEIR_CASE(m6_an_older_promotion_put_back_is_refused),
           WEIR_CASE(m6_a_promotion_of_another_register_is_refused), WEIR_CASE(m6_a_promotion_that_is_gone_is_missed),
           WEIR_CASE(m5_a_promotion_that_nobody_signed_is_refused),
           WEIR_CASE(m5_an_older_model_in_the_newer_ones_folder_is_refused), WEIR_CASE(with_the_key_everything_goes),
           WEIR_CASE(an_operator_may_follow_another_register))

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sentence_test.c - why a source is not ready is said for as long as it is so. The words of errors lie in a ring, and
 * those of a source that had failed once were gone after as many others; it then had failed for no reason.
 */
#include "serve_child.h"

#define EVENTS 600   /* enough for a segment after the first */
#define RING   256u  /* of err.c */
#define CUT_TO 3000L /* within the first segment's records */

static void start(serve_child *child) {
    setenv("WEIR_EVENTLOG_PARTITIONS", "1", 1);
    setenv("WEIR_EVENTLOG_SEGMENT_BYTES", "64KiB", 1);
    serve_start(child, weir_test_path("data"), NULL);
    assert_true(child->port);
}

static void fill(const serve_child *child) {
    char *text = malloc(EVENTS * 256u);
    size_t used = 0;
    assert_non_null(text);
    for (int i = 0; i < EVENTS; i++)
        used += (size_t)snprintf(text + used, 256,
                                 "%c{\"id\":\"p%d\",\"time\":\"2026-01-05T10:00:00Z\",\"account\":\"a1\",\"amount\":1,"
                                 "\"currency\":\"EUR\",\"channel\":\"web\"}",
                                 i ? ',' : '[', i);
    snprintf(text + used, 2, "]");
    serve_expect_post(child, "/v1/events?source=payments", SERVE_JSON, text, 200, NULL);
    free(text);
}

/* The store is to be filled from a log that is damaged: the source fails, once and for all. */
static void make_a_source_fail(serve_child *child) {
    char store[4096];
    start(child);
    serve_await(child, "/readyz", NULL, 200, NULL);
    fill(child);
    assert_int_equal(serve_end(child, SIGTERM), 0);
    assert_int_equal(truncate(weir_test_path("data/eventlog/payments/00000/00000000000000000000.seg"), CUT_TO), 0);
    snprintf(store, sizeof store, "%s", weir_test_path("data/store"));
    assert_int_equal(rename(store, weir_test_path("aside")), 0);
    start(child);
    serve_await(child, "/readyz?verbose", NULL, 503, "\"source\":\"payments\",\"status\":\"failed\"");
}

static uint64_t errors_so_far(const serve_child *child) {
    static const char name[] = "\nweir_errors_total{";
    http_answer answer;
    uint64_t sum = 0;
    serve_get(child, "/metrics", &answer);
    assert_int_equal(answer.status, 200);
    for (const char *at = strstr(answer.body, name); at; at = strstr(at + 1, name))
        sum += strtoull(strchr(at, '}') + 1, NULL, 10);
    answer_free(&answer);
    return sum;
}

static void ask_nonsense(const serve_child *child) {
    http_answer answer;
    serve_get(child, "/v1/vertices/nothing/1", &answer);
    assert_true(answer.status >= 400);
    answer_free(&answer);
}

/* What is said of the source; it names the segment. */
static char *sentence_of(const serve_child *child) {
    http_answer answer;
    serve_get(child, "/readyz?verbose", &answer);
    assert_int_equal(answer.status, 503);
    const char *at = strstr(answer.body, "\"payments\"");
    if (!at) fail_msg("it says: %s", answer.body);
    char *sentence = strndup(at, strcspn(at, "}"));
    if (!strstr(sentence, "00000000000000000000.seg")) fail_msg("it says: %s", answer.body);
    answer_free(&answer);
    return sentence;
}

static void a_sources_sentence_outlives_newer_errors(void **state) {
    (void)state;
    serve_child child;
    make_a_source_fail(&child);
    char *before = sentence_of(&child);
    uint64_t errors = errors_so_far(&child);
    while (errors_so_far(&child) <= errors + 2 * RING)
        for (uint32_t i = 0; i < RING / 4; i++)
            ask_nonsense(&child);
    char *after = sentence_of(&child);
    assert_string_equal(after, before);
    free(before);
    free(after);
    serve_end(&child, SIGTERM);
}

WEIR_TESTS(WEIR_CASE(a_sources_sentence_outlives_newer_errors))

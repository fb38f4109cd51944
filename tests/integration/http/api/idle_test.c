/* SPDX-License-Identifier: Apache-2.0 */
/* idle_test.c - a server that has nothing to do has nothing to report: errors that are counted are errors. */
#include "serve_child.h"

/* The counters of errors, all lines of them; free it. */
static char *errors_of(const serve_child *child) {
    http_answer answer;
    client_ask(child->port, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n", &answer);
    assert_int_equal(answer.status, 200);
    const char *first = strstr(answer.body, "\nweir_errors_total{");
    assert_non_null(first);
    char *lines = strdup(first);
    answer_free(&answer);
    return lines;
}

/* ETIMEOUT was counted 20 times a second. */
static void an_idle_server_counts_no_errors(void **state) {
    (void)state;
    serve_child child;
    serve_start(&child, weir_test_path("data"), NULL);
    assert_true(child.port);
    serve_await(&child, "/readyz", NULL, 200, NULL);
    char *before = errors_of(&child);
    sleep(2); /* of nothing */
    char *after = errors_of(&child);
    assert_string_equal(before, after);
    free(before);
    free(after);
    assert_int_equal(serve_end(&child, SIGTERM), 0);
}

WEIR_TESTS(WEIR_CASE(an_idle_server_counts_no_errors))

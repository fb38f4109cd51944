/* SPDX-License-Identifier: Apache-2.0 */
/* behind_test.c - more events than the graph applies: they are refused and it is not ready, until it has caught up. */
#include "serve_payments.h"

#define EVENTS 2000u

static int post(const serve_child *child, unsigned first, unsigned count, char said[400]) {
    return serve_post_payments(child, first, count, 97, said);
}

static void start(serve_child *child, const char *fault, const char *limit) {
    const char *const more[] = {"--set", limit, "--set", "store.memory=64MiB", "--set", "store.shards=8", NULL};
    if (fault) setenv("WEIR_FAULT", fault, 1);
    serve_start(child, weir_test_path("data"), more);
    unsetenv("WEIR_FAULT");
    assert_true(child->port);
}

/* It was ready 289,330 events behind. Here nothing can be sealed; what is refused once may have been applied a moment
 * later, until the deltas are full. */
static void who_does_not_keep_up_takes_no_more(void **state) {
    (void)state;
    serve_child child;
    char said[400];
    unsigned taken = 0;
    start(&child, "write:1:ENOSPC:/seal-", "ingest.behind_max=100");
    serve_await(&child, "/readyz", NULL, 200, NULL);
    for (unsigned refused = 0; refused < 100;) {
        bool well = post(&child, taken, 100, said) == 200;
        taken += well ? 100 : 0;
        refused = well ? 0 : refused + 1;
        if (!well) usleep(10000);
    }
    assert_non_null(strstr(said, "ingest.behind_max allows"));
    assert_true(taken >= 100);
    serve_is_as_red(&child, serve_why_red(&child), NULL);
    assert_true(serve_end(&child, SIGTERM) < 128);
    start(&child, NULL, "ingest.behind_max=100");
    serve_await(&child, "/readyz", NULL, 200, NULL);
    for (unsigned n = 0; n < taken; n++) {
        char path[64];
        snprintf(path, sizeof path, "/v1/vertices/payment/p%u", n);
        serve_await(&child, path, NULL, 200, NULL);
    }
    assert_int_equal(post(&child, taken, 10, said), 200);
    assert_int_equal(serve_end(&child, SIGTERM), 0);
}

/* Nothing is wrong but that more comes in than is applied. It passes, so it is asked for until it is met. */
static void who_is_behind_is_not_ready(void **state) {
    (void)state;
    serve_child child;
    char said[400], *sentence = NULL;
    int64_t since_us = 0;
    start(&child, NULL, "ingest.behind_max=1");
    serve_await(&child, "/readyz", NULL, 200, NULL);
    for (unsigned next = 0; !sentence; next += EVENTS) {
        since_us = serve_now_us();
        if (post(&child, next, EVENTS, said) == 200) sentence = serve_why_red(&child);
    }
    printf("red after %.2f s: behind a limit\n", (double)(serve_now_us() - since_us) / 1e6);
    if (!strstr(sentence, "further behind source 'payments' than ingest.behind_max allows")) fail_msg("%s", sentence);
    free(sentence);
    serve_await(&child, "/readyz", NULL, 200, NULL);
    assert_int_equal(serve_end(&child, SIGTERM), 0);
}

/* A burst, and it comes back by itself; nothing that was taken is lost, and nothing refused was taken. */
static void a_burst_is_shed_until_it_is_applied(void **state) {
    (void)state;
    serve_child child;
    char said[400];
    unsigned next = 0;
    start(&child, NULL, "ingest.behind_max=500");
    serve_await(&child, "/readyz", NULL, 200, NULL);
    for (; post(&child, next, EVENTS, said) == 200; next += EVENTS)
        if (next > 1000 * EVENTS) weir_test_skip("this machine applies events as fast as they are sent");
    assert_non_null(strstr(said, "send fewer events, or wait"));
    while (post(&child, next, 1, said) != 200)
        usleep(1000);
    serve_await(&child, "/readyz", NULL, 200, NULL);
    char path[64];
    snprintf(path, sizeof path, "/v1/vertices/payment/p%u", next);
    serve_await(&child, path, NULL, 200, NULL);
    snprintf(path, sizeof path, "GET /v1/vertices/payment/p%u HTTP/1.1\r\nHost: localhost\r\n\r\n", next + 1);
    http_answer answer;
    client_ask(child.port, path, &answer);
    assert_int_equal(answer.status, 404);
    answer_free(&answer);
    assert_int_equal(serve_end(&child, SIGTERM), 0);
}

WEIR_TESTS(WEIR_CASE(who_does_not_keep_up_takes_no_more), WEIR_CASE(who_is_behind_is_not_ready),
           WEIR_CASE(a_burst_is_shed_until_it_is_applied))

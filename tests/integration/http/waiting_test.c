/* SPDX-License-Identifier: Apache-2.0 */
/*
 * waiting_test.c - a source that cannot read its log: what it was given is not visible, so the server is not
 * ready, and says why; a start without the cause shows it.
 */
#include "serve_child.h"

#define EVENT                                                                                                \
    "{\"id\":\"p1\",\"time\":\"2026-01-05T10:00:00Z\",\"account\":\"a1\",\"amount\":1,\"currency\":\"EUR\"," \
    "\"channel\":\"web\"}"

static void a_source_that_waits_is_not_ready(void **state) {
    (void)state;
    serve_child child;
    setenv("WEIR_FAULT", "read:1:EIO:.seg", 1); /* nothing is there to be read yet */
    serve_start(&child, weir_test_path("data"), NULL);
    unsetenv("WEIR_FAULT");
    assert_true(child.port);
    serve_await(&child, "/readyz", NULL, 200, NULL);
    serve_expect_post(&child, "/v1/events?source=payments", SERVE_JSON, EVENT, 200, NULL);
    serve_await(&child, "/readyz?verbose", NULL, 503, "source 'payments' waits: ");
    serve_await(&child, "/v1/status", NULL, 200, "\"part\":\"source\"");
    assert_int_equal(serve_end(&child, SIGTERM), 0);
    serve_start(&child, weir_test_path("data"), NULL);
    assert_true(child.port);
    serve_await(&child, "/readyz", NULL, 200, NULL);
    serve_await(&child, "/v1/vertices/payment/p1", NULL, 200, NULL);
    assert_int_equal(serve_end(&child, SIGTERM), 0);
}

WEIR_TESTS(WEIR_CASE(a_source_that_waits_is_not_ready))

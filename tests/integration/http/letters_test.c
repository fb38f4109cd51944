/* SPDX-License-Identifier: Apache-2.0 */
/* letters_test.c - a dead letter that is put right and replayed while the server runs comes into the graph, once. */
#include "../../support/serve_child.h"
#include "../../support/shell.h"

#define WRONG "{\"id\":\"c1\",\"time\":\"2026-01-06T00:00:00Z\",\"payment\":\"p1\",\"label\":\"frau\"}"

static void start(serve_child *server) {
    serve_start(server, weir_test_path("data"), NULL);
    assert_true(server->port);
    serve_await(server, "/readyz", NULL, 200, NULL);
}

static void a_corrected_letter_reaches_the_graph(void **state) {
    (void)state;
    serve_child server;
    shell("mkdir -p $data; echo '{\"id\":\"p1\",\"time\":\"2026-01-05T10:00:00Z\",\"account\":\"a1\",\"amount\":1,"
          "\"currency\":\"EUR\",\"channel\":\"web\"}' | $weir log append payments --path $data/eventlog; echo '" WRONG
          "' | $weir log append chargebacks --path $data/eventlog");
    start(&server);
    serve_await(&server, "/v1/vertices/payment/p1", NULL, 200, "\"labels\":{}");
    assert_int_equal(serve_end(&server, SIGTERM), 0);
    shell("$weir ingest dlq list; test \"$($weir ingest dlq list | wc -l)\" = 2");
    shell("$weir ingest dlq show 0 | sed s/frau/fraud/ | $weir ingest dlq replay 0 --file - --schema payments");
    start(&server);
    serve_await(&server, "/v1/vertices/payment/p1", NULL, 200, "{\"value\":\"fraud\"");
    assert_int_equal(serve_end(&server, SIGTERM), 0);
    shell("test \"$($weir ingest dlq list --all | wc -l)\" = 2; $weir store verify --against-log --path $data/store");
}

WEIR_TESTS(WEIR_CASE(a_corrected_letter_reaches_the_graph))

/* SPDX-License-Identifier: Apache-2.0 */
/* retain_test.c - a server's log lets go of what its options say and every shard has sealed, and of nothing else. */
#include "serve_payments.h"
#include "shell.h"

#include <weir/store/base/file.h>

#define SEALED  1500u
#define EVENTS  3000u
#define ALL     "eventlog.retain_bytes=0"
#define NOTHING "eventlog.retain_bytes=1"

static void start(serve_child *child, const char *retain) {
    const char *const more[] = {"--set", retain, "--set", "store.seal_interval=1h", NULL};
    serve_start(child, weir_test_path("data"), more);
    assert_true(child->port);
}

static void has(const serve_child *child, unsigned n) {
    char path[64];
    snprintf(path, sizeof path, "/v1/vertices/payment/p%u", n);
    serve_await(child, path, NULL, 200, NULL);
}

static weir_err see_segment(void *context, const char *name) {
    uint64_t *least = context;
    const char *dot = strchr(name, '.');
    if (!dot || strcmp(dot, ".seg") != 0) return WEIR_OK;
    uint64_t first = strtoull(name, NULL, 10);
    if (first < *least) *least = first;
    return WEIR_OK;
}

/* The first offset that the log still has. */
static uint64_t begin_of_log(void) {
    uint64_t least = UINT64_MAX;
    assert_ok(weir_folder_list(weir_test_path("data/eventlog/payments/00000"), see_segment, &least));
    return least;
}

/* Half of the events is sealed, half is added while no server runs, which removes nothing whatever is asked for. */
static void fill(void) {
    serve_child child;
    char said[400];
    setenv("WEIR_EVENTLOG_SEGMENT_BYTES", "64KiB", 1);
    setenv("WEIR_EVENTLOG_PARTITIONS", "1", 1);
    start(&child, ALL);
    serve_await(&child, "/readyz", NULL, 200, NULL);
    if (serve_post_payments(&child, 0, SEALED, 97, said) != 200) fail_msg("the payments are answered: %s", said);
    has(&child, SEALED - 1);
    assert_int_equal(serve_end(&child, SIGTERM), 0); /* which seals them */
    shell("for i in $(seq 1500 2999); do echo '{\"id\":\"p'$i'\",\"time\":\"2026-01-05T10:00:00Z\",\"account\":\"a1\","
          "\"amount\":1,\"currency\":\"EUR\",\"channel\":\"web\"}'; done | WEIR_EVENTLOG_RETAIN_BYTES=1 "
          "WEIR_EVENTLOG_RETAIN_AGE=1s $weir log append payments --path $data/eventlog");
    assert_int_equal(begin_of_log(), 0);
}

/* Nothing was ever removed by a server, and `weir log append` removed what the store had not applied: it was 6,001
 * events behind for ever. A second look is seen, because the first is not allowed to remove anything: by then the
 * events are applied, and not sealed. */
static void what_is_not_sealed_stays(void **state) {
    (void)state;
    serve_child child;
    fill();
    setenv("WEIR_FAULT", "unlink:1:EACCES:once:/payments/00000/", 1);
    start(&child, NOTHING);
    unsetenv("WEIR_FAULT");
    has(&child, EVENTS - 1);
    while (begin_of_log() == 0)
        usleep(10000);
    assert_int_equal(serve_end(&child, SIGTERM), 0); /* what was looked at is looked through */
    assert_in_range(begin_of_log(), 1, SEALED);
    start(&child, ALL);
    serve_await(&child, "/readyz", NULL, 200, NULL);
    for (unsigned n = 0; n < EVENTS; n += 7)
        has(&child, n);
    has(&child, EVENTS - 1);
    assert_int_equal(serve_end(&child, SIGTERM), 0);
}

WEIR_TESTS(WEIR_CASE(what_is_not_sealed_stays))

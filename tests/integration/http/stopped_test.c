/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stopped_test.c - a shard of a server that has stopped for ever: red in the same words from then on, nothing more is
 * taken, what is there is read on, and a stop ends. A new start after the cause is gone has all of it.
 *
 * The cause is an event that is larger than a delta may be: FACTS rows of FEATURES long texts each, at one vertex.
 */
#include "flip.h"
#include "serve_child.h"

#include <weir/store/base/file.h>

#define FEATURES   256u
#define FACTS      20u
#define TEXT_BYTES 255u
#define BODY_BYTES (FEATURES * (TEXT_BYTES + 16u) + 256u)

static void describe(void) {
    FILE *file = fopen(weir_test_path("schema.yaml"), "we");
    assert_non_null(file);
    fprintf(file, "version: 1\nname: wide\nvertices: {account: {}, thing: {}}\n"
                  "relations:\n  has:\n    from: account\n    to: thing\n    features:\n");
    for (unsigned f = 0; f < FEATURES; f++)
        fprintf(file, "      f%u: {kind: category}\n", f);
    fprintf(file, "sources:\n  facts:\n    id: id\n    time: time\n    mutations:\n");
    for (unsigned n = 0; n < FACTS; n++) {
        fprintf(file, "      - put_edge: has\n        from: account\n        to: t%u\n        when: {has: t%u}\n", n,
                n);
        fprintf(file, "        features:\n");
        for (unsigned f = 0; f < FEATURES; f++)
            fprintf(file, "          f%u: {field: f%u, optional: true}\n", f, f);
    }
    assert_int_equal(fclose(file), 0);
}

static void start(serve_child *child, const char *memory, const char *more, const char *more_too) {
    char setting[64];
    snprintf(setting, sizeof setting, "store.memory=%s", memory);
    const char *const arguments[] = {"--schema", weir_test_path("schema.yaml"),
                                     "--data",   weir_test_path("data"),
                                     "--set",    "store.shards=16",
                                     "--set",    "store.seal_interval=10ms",
                                     "--set",    setting,
                                     "--set",    more,
                                     "--set",    more_too,
                                     NULL};
    serve_spawn(child, arguments);
    serve_read_port(child);
    assert_true(child->port);
    serve_await(child, "/readyz", NULL, 200, NULL);
}

/* Account a<n> has thing t0 of its own. */
static void post_small(const serve_child *child, unsigned n, int status, const char *part) {
    char event[256];
    snprintf(event, sizeof event,
             "{\"id\":\"small%u\",\"time\":\"2026-01-05T10:00:00Z\",\"account\":\"a%u\",\"t0\":\"of%u\"}", n, n, n);
    serve_expect_post(child, "/v1/events", SERVE_JSON, event, status, part);
}

static void post_large(const serve_child *child) {
    static char event[BODY_BYTES + FACTS * 32u];
    size_t length = (size_t)snprintf(event, sizeof event,
                                     "{\"id\":\"large\",\"time\":\"2026-01-05T10:00:00Z\",\"account\":\"large\"");
    for (unsigned n = 0; n < FACTS; n++)
        length += (size_t)snprintf(event + length, sizeof event - length, ",\"t%u\":\"large%u\"", n, n);
    for (unsigned f = 0; f < FEATURES; f++)
        length += (size_t)snprintf(event + length, sizeof event - length, ",\"f%u\":\"%0*u\"", f, (int)TEXT_BYTES, f);
    assert_true(length + 2 < sizeof event);
    snprintf(event + length, sizeof event - length, "}");
    serve_expect_post(child, "/v1/events", SERVE_JSON, event, 200, NULL); /* the log has it */
}

/* How it is red then. */
static char *make_a_shard_stop(const serve_child *child) {
    for (unsigned n = 0; n < 100; n++)
        post_small(child, n, 200, NULL);
    serve_await_applied(child);
    int64_t since_us = serve_now_us();
    post_large(child);
    return serve_await_red(child, "shard dead", since_us, "apply, has stopped");
}

static void is_read_on(const serve_child *child) {
    for (unsigned n = 0; n < 100; n++) {
        char path[64], part[32];
        snprintf(path, sizeof path, "/v1/neighbors/account/a%u", n);
        snprintf(part, sizeof part, "\"of%u\"", n);
        serve_expect_get(child, path, 200, part);
    }
}

/* Events were acknowledged that nothing would apply, up to ingest.behind_max, and who then was refused was told that it
 * catches up by itself. */
static void a_stopped_shard_is_named_and_takes_nothing_more(void **state) {
    (void)state;
    serve_child child;
    describe();
    start(&child, "64MiB", "ingest.behind_max=0", "store.repair=true");
    char *sentence = make_a_shard_stop(&child);
    printf("%s\n", sentence);
    assert_non_null(strstr(sentence, "raise store.memory"));
    for (unsigned n = 100; n < 110; n++)
        post_small(&child, n, 503, sentence);
    serve_expect_get(&child, "/v1/status", 200, "\"stopped\":true");
    is_read_on(&child);
    serve_is_as_red(&child, sentence, NULL);
    int status = serve_end(&child, SIGTERM);
    assert_true(status != 0 && status < 128);
    start(&child, "1GiB", "ingest.behind_max=0", "store.repair=true");
    is_read_on(&child);
    serve_expect_get(&child, "/v1/neighbors/account/large?limit=1", 200, "\"large");
    serve_expect_get(&child, "/v1/neighbors/account/a100", 404, NULL); /* it was refused, so it was not taken */
    post_small(&child, 100, 200, "\"duplicate\":false");
    assert_int_equal(serve_end(&child, SIGTERM), 0);
}

/* What may pass is told of behind what does not, whichever came first and in whichever shard. */
static void later_troubles_do_not_take_its_place(void **state) {
    (void)state;
    serve_child child;
    unsigned files = 0;
    describe();
    start(&child, "64MiB", "store.scrub_interval=10ms", "store.repair=false");
    char *sentence = make_a_shard_stop(&child);
    for (unsigned shard = 0; shard < 16; shard++)
        files += flip_shard(weir_test_path("data/store"), shard);
    assert_true(files > 0);
    serve_await(&child, "/v1/status", NULL, 200, "/files\"");
    post_small(&child, 100, 503, sentence);
    serve_is_as_red(&child, sentence, NULL);
    int status = serve_end(&child, SIGTERM);
    assert_true(status != 0 && status < 128);
}

/* 100 times in a long campaign, as in stop_test.c. */
static void while_a_shard_has_stopped(void **state) {
    (void)state;
    int64_t longest_us = 0;
    uint64_t rounds = weir_test_rounds(1);
    if (rounds > 1) rounds = 100;
    describe();
    for (uint64_t i = 0; i < rounds; i++) {
        serve_child child;
        start(&child, "64MiB", "http.stop_timeout=1s", "store.repair=true");
        free(make_a_shard_stop(&child));
        int64_t begin_us = serve_now_us();
        int status = serve_end(&child, SIGTERM);
        int64_t took_us = serve_now_us() - begin_us;
        assert_true(status != 0 && status < 128);
        if (took_us > longest_us) longest_us = took_us;
        assert_ok(weir_folder_remove(weir_test_path("data")));
    }
    printf("%s: %llu stops, the longest %.1f s\n", __func__, (unsigned long long)rounds, (double)longest_us / 1e6);
}

WEIR_TESTS(WEIR_CASE(a_stopped_shard_is_named_and_takes_nothing_more), WEIR_CASE(later_troubles_do_not_take_its_place),
           WEIR_CASE(while_a_shard_has_stopped))

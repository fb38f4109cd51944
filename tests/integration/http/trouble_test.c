/* SPDX-License-Identifier: Apache-2.0 */
/* trouble_test.c - a server whose disks fail: it says what, serves what it can, comes back by itself, and stops. */
#include <dirent.h>

#include "serve_child.h"

static void expect_post(const serve_child *child, const char *id, int status, const char *part) {
    char event[512];
    snprintf(event, sizeof event,
             "{\"id\":\"%s\",\"time\":\"2026-01-05T10:00:00Z\",\"account\":\"a1\",\"amount\":1,\"currency\":\"EUR\","
             "\"channel\":\"web\"}",
             id);
    serve_expect_post(child, "/v1/events?source=payments", SERVE_LINES, event, status, part);
}

static void start(serve_child *child, const char *fault) {
    setenv("WEIR_STORE_SEAL_INTERVAL", "10ms", 1);
    if (fault) setenv("WEIR_FAULT", fault, 1);
    serve_start(child, weir_test_path("data"), NULL);
    unsetenv("WEIR_FAULT");
    assert_true(child->port);
}

/* Nothing is lost and nothing is there twice, whatever the client was told. */
static void the_log_goes_on_after(const char *fault) {
    serve_child child;
    start(&child, fault);
    serve_await(&child, "/readyz", NULL, 200, NULL);
    expect_post(&child, "p1", 503, "it is unknown whether the events were stored");
    serve_await(&child, "/readyz", NULL, 200, NULL); /* no restart */
    expect_post(&child, "p1", 200, "\"duplicate\":true");
    expect_post(&child, "p2", 200, "\"duplicate\":false");
    serve_await(&child, "/v1/neighbors/account/a1", NULL, 200, "\"p2\"");
    serve_expect_get(&child, "/v1/neighbors/account/a1", 200, "\"p1\"");
    assert_int_equal(serve_end(&child, SIGTERM), 0);
    start(&child, NULL);
    serve_await(&child, "/readyz", NULL, 200, NULL);
    expect_post(&child, "p1", 200, "\"duplicate\":true");
    assert_int_equal(serve_end(&child, SIGTERM), 0);
}

static void a_full_log_disk_is_resumed_without_a_restart(void **state) {
    (void)state;
    the_log_goes_on_after("sync:1:ENOSPC:once:/payments/0");
}

static void out_of_descriptors_the_log_is_resumed_too(void **state) {
    (void)state;
    the_log_goes_on_after("open:1:EMFILE:once:/payments/00");
}

static void a_poisoned_log_is_named_and_a_stop_ends(void **state) {
    (void)state;
    serve_child child;
    start(&child, "sync:1:EIO:/payments/0");
    serve_await(&child, "/readyz", NULL, 200, NULL);
    int64_t since_us = serve_now_us();
    expect_post(&child, "p1", 503, "it is unknown whether");
    expect_post(&child, "p2", 503, "no event of the request was accepted");
    char *sentence = serve_await_red(&child, "log poisoned", since_us, "the event log");
    serve_expect_get(&child, "/v1/status", 200, "\"part\":\"eventlog\"");
    serve_expect_get(&child, "/v1/neighbors/account/a1", 404, "");
    serve_is_as_red(&child, sentence, NULL);
    assert_int_not_equal(serve_end(&child, SIGTERM), 0);
}

/* Events were acknowledged, not visible after a crash, and readiness was green; SIGTERM hung. */
static void a_full_store_disk_is_named_and_a_stop_ends(void **state) {
    (void)state;
    serve_child child;
    start(&child, "write:1:ENOSPC:/seal-");
    int64_t since_us = serve_now_us();
    expect_post(&child, "p1", 200, "\"duplicate\":false");
    free(serve_await_red(&child, "seal failing", since_us, "seal"));
    serve_await(&child, "/v1/status", NULL, 200, "store/shard-000/seal\""); /* which is told first */
    serve_await(&child, "/v1/neighbors/account/a1", NULL, 200, "\"p1\"");
    serve_is_as_red(&child, serve_why_red(&child), NULL);
    int status = serve_end(&child, SIGTERM);
    assert_true(status != 0 && status < 128);
    start(&child, NULL);
    serve_await(&child, "/readyz", NULL, 200, NULL);
    serve_expect_get(&child, "/v1/neighbors/account/a1", 200, "\"p1\"");
    assert_int_equal(serve_end(&child, SIGTERM), 0);
}

static void a_store_disk_that_was_full_once_is_no_trouble(void **state) {
    (void)state;
    serve_child child;
    start(&child, "write:1:ENOSPC:once:/seal-");
    expect_post(&child, "p1", 200, "\"duplicate\":false");
    serve_await(&child, "/v1/status", NULL, 200, "\"events\":1,");
    serve_await(&child, "/v1/status", NULL, 200,
                "\"memory_bytes\":0,"); /* sealed, else it might be the stop that fails */
    serve_await(&child, "/v1/status", NULL, 200, "\"troubles\":[]");
    serve_await(&child, "/readyz", NULL, 200, NULL);
    assert_int_equal(serve_end(&child, SIGTERM), 0);
}

/* --- a damaged file --------------------------------------------------------------------------------------------- */

#define FLIPPED_MAX 16u

static char flipped[FLIPPED_MAX][1024]; /* the files of which flip_all has flipped a bit */
static unsigned flipped_count;

static void flip(const char *path) {
    FILE *file = fopen(path, "r+b");
    if (!file) return; /* the store is through with it */
    assert_int_equal(fseek(file, 12, SEEK_SET), 0);
    int byte = fgetc(file);
    assert_int_equal(fseek(file, 12, SEEK_SET), 0);
    fputc(byte ^ 4, file);
    fclose(file);
}

/* One bit of each sorted file of the store. */
static void flip_all(void) {
    flipped_count = 0;
    for (unsigned shard = 0; shard < 2; shard++) {
        char folder[512];
        snprintf(folder, sizeof folder, "%s/store/shard-%03u", weir_test_path("data"), shard);
        DIR *open = opendir(folder);
        for (struct dirent *entry; open && (entry = readdir(open));) {
            if (!strstr(entry->d_name, ".sst")) continue;
            assert_true(flipped_count < FLIPPED_MAX);
            snprintf(flipped[flipped_count], sizeof flipped[0], "%s/%s", folder, entry->d_name);
            flip(flipped[flipped_count++]);
        }
        if (open) closedir(open);
    }
    assert_true(flipped_count > 0);
}

/* Somebody brings the files back: the server shall not make others with their names meanwhile. */
static void flip_back(void) {
    for (unsigned i = 0; i < flipped_count; i++)
        flip(flipped[i]);
}

/* In a sorted file 318 of 450 flipped bits gave error answers while readiness stayed green. */
static void a_damaged_read_turns_readiness_red_until_it_is_mended(void **state) {
    (void)state;
    serve_child child;
    http_answer answer;
    setenv("WEIR_STORE_REPAIR", "false", 1);
    start(&child, NULL);
    serve_await(&child, "/readyz", NULL, 200, NULL);
    expect_post(&child, "p1", 200, "\"duplicate\":false");
    serve_await(&child, "/v1/neighbors/account/a1", NULL, 200, "\"p1\"");
    assert_int_equal(serve_end(&child, SIGTERM), 0); /* all is sealed, and nothing cached */
    start(&child, NULL);
    serve_await(&child, "/readyz", NULL, 200, NULL);
    int64_t since_us = serve_now_us();
    flip_all();
    client_ask(child.port, "GET /v1/neighbors/account/a1 HTTP/1.1\r\nHost: localhost\r\n\r\n", &answer);
    assert_true(answer.status >= 500);
    answer_free(&answer);
    serve_expect_get(&child, "/readyz", 503, ".sst");
    char *sentence = serve_await_red(&child, "corrupt read", since_us, ".sst");
    serve_expect_get(&child, "/v1/status", 200, "/files\"");
    serve_is_as_red(&child, sentence, ".sst");
    flip_back();
    serve_await(&child, "/readyz", NULL, 200, NULL);
    serve_expect_get(&child, "/v1/neighbors/account/a1", 200, "\"p1\"");
    assert_int_equal(serve_end(&child, SIGTERM), 0);
}

/* Of an account of its own, so that nothing that is stored is read for it. */
static void post_alone(const serve_child *child, unsigned n) {
    char request[1024], event[512];
    http_answer answer;
    snprintf(event, sizeof event,
             "{\"id\":\"q%u\",\"time\":\"2026-01-05T10:00:00Z\",\"account\":\"b%u\",\"amount\":1,\"currency\":\"EUR\","
             "\"channel\":\"web\"}",
             n, n);
    snprintf(request, sizeof request,
             "POST /v1/events?source=payments HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\n"
             "Content-Length: %zu\r\n\r\n%s",
             strlen(event), event);
    client_ask(child->port, request, &answer);
    if (answer.status != 200) fail_msg("q%u was answered %d: %s", n, answer.status, answer.body);
    answer_free(&answer);
}

/* Whether readiness is red, which it may be for a damaged file alone. */
static bool damage_is_named(const serve_child *child) {
    http_answer answer;
    client_ask(child->port, "GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n", &answer);
    bool red = answer.status != 200;
    if (red && !strstr(answer.body, ".sst")) fail_msg("/readyz was answered %d: %s", answer.status, answer.body);
    answer_free(&answer);
    return red;
}

static void are_visible(const serve_child *child, unsigned count) {
    char path[64], part[32];
    for (unsigned n = 0; n < count; n++) {
        snprintf(path, sizeof path, "/v1/vertices/payment/q%u", n);
        snprintf(part, sizeof part, "\"q%u\"", n);
        serve_expect_get(child, path, 200, part);
    }
}

/* A compaction that read the file failed all seals behind it: 32 of 242 acknowledged events were visible, readiness was
 * green, and SIGTERM hung. */
static void a_damaged_compaction_is_named_and_a_stop_ends(void **state) {
    (void)state;
    serve_child child;
    unsigned count = 0;
    setenv("WEIR_STORE_REPAIR", "false", 1);
    start(&child, NULL);
    serve_await(&child, "/readyz", NULL, 200, NULL);
    expect_post(&child, "p1", 200, "\"duplicate\":false");
    assert_int_equal(serve_end(&child, SIGTERM), 0); /* it is sealed, and not cached */
    start(&child, NULL);
    serve_await(&child, "/readyz", NULL, 200, NULL);
    flip_all();
    while (!damage_is_named(&child)) {
        post_alone(&child, count++);
        serve_await_applied(&child);
    }
    are_visible(&child, count);
    for (unsigned more = count + 20; count < more; count++)
        post_alone(&child, count);
    serve_await_applied(&child);
    are_visible(&child, count);
    assert_true(damage_is_named(&child));
    assert_true(serve_end(&child, SIGTERM) < 128);
    flip_back();
    start(&child, NULL);
    serve_await(&child, "/readyz", NULL, 200, NULL);
    are_visible(&child, count);
    assert_int_equal(serve_end(&child, SIGTERM), 0);
}

/* --- weir load -------------------------------------------------------------------------------------------------- */

/* It said "298993 records", exited 0, and half of them were missing. */
static void load(const char *lines, const char *data, const char *fault, weir_test_output *output) {
    const char *environment[] = {fault, NULL};
    const char *argv[] = {weir_test_program(), "load", "--schema", "payments", "--data", data, lines, NULL};
    weir_test_run(argv, fault ? environment : NULL, output);
}

static void a_load_that_is_not_whole_does_not_end_well(void **state) {
    (void)state;
    static const char *const faults[] = {"WEIR_FAULT=write:1:ENOSPC:/seal-", "WEIR_FAULT=engine:24:EIO:/store/shard-",
                                         "WEIR_FAULT=engine:24:ENOMEM:/store/shard-"};
    char lines[512], data[512];
    snprintf(lines, sizeof lines, "%s", weir_test_path("payments.jsonl"));
    FILE *file = fopen(lines, "w");
    assert_non_null(file);
    for (int i = 0; i < 300; i++)
        fprintf(file,
                "{\"id\":\"p%d\",\"time\":\"2026-01-05T10:00:00Z\",\"account\":\"a%d\",\"amount\":1,"
                "\"currency\":\"EUR\",\"channel\":\"web\"}\n",
                i, i % 50);
    fclose(file);
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        weir_test_output output;
        serve_child child;
        snprintf(data, sizeof data, "%s/data%zu", weir_test_folder(), i);
        load(lines, data, faults[i], &output);
        assert_int_not_equal(output.status, 0);
        assert_string_equal(output.out, "");
        weir_test_output_free(&output);
        load(lines, data, NULL, &output); /* goes on where it was */
        assert_int_equal(output.status, 0);
        weir_test_output_free(&output);
        serve_start(&child, data, NULL);
        serve_await(&child, "/readyz", NULL, 200, NULL);
        for (int p = 0; p < 300; p += 13) {
            char path[64], part[32];
            snprintf(path, sizeof path, "/v1/vertices/payment/p%d", p);
            snprintf(part, sizeof part, "\"p%d\"", p);
            serve_expect_get(&child, path, 200, part);
        }
        assert_int_equal(serve_end(&child, SIGTERM), 0);
    }
}

WEIR_TESTS(WEIR_CASE(a_full_log_disk_is_resumed_without_a_restart),
           WEIR_CASE(out_of_descriptors_the_log_is_resumed_too), WEIR_CASE(a_poisoned_log_is_named_and_a_stop_ends),
           WEIR_CASE(a_full_store_disk_is_named_and_a_stop_ends),
           WEIR_CASE(a_store_disk_that_was_full_once_is_no_trouble),
           WEIR_CASE(a_damaged_read_turns_readiness_red_until_it_is_mended),
           WEIR_CASE(a_damaged_compaction_is_named_and_a_stop_ends),
           WEIR_CASE(a_load_that_is_not_whole_does_not_end_well))

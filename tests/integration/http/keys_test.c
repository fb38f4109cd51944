/* SPDX-License-Identifier: Apache-2.0 */
/* keys_test.c - keys of a real `weir serve` that are taken away while it runs, and what its log says of wrong ones. */
#include "serve_child.h"

#include <sys/stat.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/file.h>
#include <weir/store/trust/trust.h>

#define ADMIN  "the-admin-s-own-key-of-many-letters"
#define READER "the-reader-s-own-key-of-many-letters"
#define WRONG  "nobody-s-key-which-no-log-may-hold"

static char keys[4096], logged[4096];

static void put_line(char *text, size_t size, const char *role, const char *key) {
    char hex[65];
    size_t used = strlen(text);
    weir_sha256_hex(key, strlen(key), hex);
    snprintf(text + used, size - used, "%s %s %s\n", role, hex, role);
}

static void write_keys(bool admin, bool reader) {
    char text[512] = "";
    if (admin) put_line(text, sizeof text, "admin", ADMIN);
    if (reader) put_line(text, sizeof text, "reader", READER);
    assert_ok(weir_file_replace(keys, text, strlen(text)));
}

/* With what it logs in a file. */
static void start(serve_child *child) {
    char path[4096];
    snprintf(keys, sizeof keys, "%s", weir_test_path("keys"));
    snprintf(logged, sizeof logged, "%s", weir_test_path("log"));
    snprintf(path, sizeof path, "%s", weir_test_path("logging"));
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "#!/bin/sh\nexec '%s' \"$@\" 2>'%s'\n", weir_test_program(), logged);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(path, 0700), 0);
    assert_int_equal(setenv("WEIR_PROGRAM", path, 1), 0);
    write_keys(true, true);
    const char *const more[] = {"--keys", keys, NULL};
    serve_start(child, weir_test_path("data"), more);
    assert_true(child->port != 0);
}

static int status_for(const serve_child *child, const char *key) {
    char text[512];
    http_answer answer;
    snprintf(text, sizeof text, "GET /v1/status HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n", key);
    client_ask(child->port, text, &answer);
    answer_free(&answer);
    return answer.status;
}

static bool has_logged(const char *part) {
    char *text;
    size_t length;
    assert_ok(weir_file_load(logged, 16u << 20, &text, &length));
    bool found = strstr(text, part) != NULL;
    weir_free(text);
    return found;
}

static int lines_of(const char *part) {
    char *text;
    size_t length;
    int count = 0;
    assert_ok(weir_file_load(logged, 16u << 20, &text, &length));
    for (const char *at = text; (at = strstr(at, part)); at++)
        count++;
    weir_free(text);
    return count;
}

/* A line that came a moment ago is held back, so it is asked for again. */
static void hang_up_until(const serve_child *child, const char *part) {
    while (!has_logged(part)) {
        kill(child->pid, SIGHUP);
        usleep(100000);
    }
}

static void a_key_that_is_taken_away_opens_nothing(void **state) {
    (void)state;
    serve_child child;
    start(&child);
    assert_int_equal(status_for(&child, ADMIN), 200);
    assert_int_equal(status_for(&child, READER), 200);
    write_keys(false, true);
    kill(child.pid, SIGHUP);
    while (status_for(&child, ADMIN) == 200)
        usleep(10000);
    assert_int_equal(status_for(&child, READER), 200);
    write_keys(true, true);
    kill(child.pid, SIGHUP);
    while (status_for(&child, ADMIN) != 200)
        usleep(10000);
    /* what cannot be read, or others could have written, changes nothing and says so */
    write_keys(false, false);
    hang_up_until(&child, "the API keys stay as they were: ");
    assert_true(has_logged("has no key"));
    assert_int_equal(status_for(&child, ADMIN), 200);
    write_keys(false, true);
    assert_int_equal(chmod(keys, 0666), 0);
    hang_up_until(&child, "run: chmod go-w ");
    assert_int_equal(status_for(&child, ADMIN), 200);
    assert_int_equal(serve_end(&child, SIGTERM), 0);
}

static void a_wrong_key_is_counted_and_written_down_without_itself(void **state) {
    (void)state;
    enum { LIMIT = 20, TRIES = 30 };
    serve_child child;
    int statuses[TRIES];
    start(&child);
    for (int i = 0; i < TRIES; i++)
        statuses[i] = status_for(&child, WRONG);
    for (int i = 0; i < TRIES; i++)
        assert_int_equal(statuses[i], i < LIMIT ? 401 : 429);
    assert_int_equal(status_for(&child, READER), 200);    /* one who is wrong does not lock out who is right */
    assert_int_equal(lines_of("audit.wrong_key"), LIMIT); /* each, and none is held back */
    assert_true(has_logged("\"address\":\"127.0.0.1:"));
    assert_false(has_logged(WRONG));
    assert_false(has_logged(READER));
    serve_await(&child, "/metrics", "Authorization: Bearer " READER "\r\n", 200, "\nweir_http_wrong_keys_total 30\n");
    assert_int_equal(serve_end(&child, SIGTERM), 0);
}

/* What /readyz?verbose says to a key, or to nobody's; the caller frees the answer. */
static void ask_ready(const serve_child *child, const char *key, http_answer *answer) {
    char text[512], header[256] = "";
    if (key) snprintf(header, sizeof header, "Authorization: Bearer %s\r\n", key);
    snprintf(text, sizeof text, "GET /readyz?verbose HTTP/1.1\r\nHost: localhost\r\n%s\r\n", header);
    client_ask(child->port, text, answer);
}

static void ready_is_said_without_details(const serve_child *child, const char *key) {
    http_answer answer;
    ask_ready(child, key, &answer);
    assert_int_equal(answer.status, 200);
    assert_null(strstr(answer.body, "\"sources\""));
    assert_null(strstr(answer.body, "\"troubles\""));
    answer_free(&answer);
}

static void trouble_is_said_without_details(const serve_child *child, const char *key) {
    http_answer answer;
    ask_ready(child, key, &answer);
    assert_int_equal(answer.status, 503);
    assert_non_null(strstr(answer.body, "has a problem; the server's log says which"));
    assert_null(strstr(answer.body, "no model can be loaded"));
    assert_null(strstr(answer.body, "\"sources\""));
    assert_null(strstr(answer.body, "\"troubles\""));
    answer_free(&answer);
}

static void details_are_said(const serve_child *child, const char *key, int status, const char *part) {
    http_answer answer;
    ask_ready(child, key, &answer);
    if (answer.status != status || !strstr(answer.body, part)) fail_msg("answered %d: %s", answer.status, answer.body);
    assert_non_null(strstr(answer.body, "\"sources\":[{"));
    assert_non_null(strstr(answer.body, "\"troubles\":["));
    answer_free(&answer);
}

static void only_a_right_key_is_told_what_is_wrong(void **state) {
    (void)state;
    static const char nonsense[] = "nonsense";
    serve_child child;
    char current[4096];
    start(&child);
    serve_await(&child, "/readyz", NULL, 200, NULL);
    ready_is_said_without_details(&child, NULL);
    ready_is_said_without_details(&child, WRONG);
    details_are_said(&child, READER, 200, "\"ready\":true");
    assert_ok(weir_folder_create(weir_test_path("data/models")));
    snprintf(current, sizeof current, "%s", weir_test_path("data/models/current"));
    assert_ok(weir_file_replace(current, nonsense, sizeof nonsense - 1));
    serve_await(&child, "/readyz", NULL, 503, NULL);
    trouble_is_said_without_details(&child, NULL);
    details_are_said(&child, READER, 503, "no model can be loaded: ");
    details_are_said(&child, ADMIN, 503, "no model can be loaded: ");
    for (int i = 0; i < 24; i++) /* a probe that was not told of its new key asks on */
        trouble_is_said_without_details(&child, WRONG);
    assert_int_equal(status_for(&child, WRONG), 429);
    details_are_said(&child, READER, 503, "no model can be loaded: ");
    assert_int_equal(lines_of("audit.wrong_key"), 20);
    assert_false(has_logged(WRONG));
    serve_await(&child, "/metrics", "Authorization: Bearer " READER "\r\n", 200, "\nweir_http_wrong_keys_total 26\n");
    assert_int_equal(serve_end(&child, SIGTERM), 0);
}

WEIR_TESTS(WEIR_CASE(a_key_that_is_taken_away_opens_nothing),
           WEIR_CASE(a_wrong_key_is_counted_and_written_down_without_itself),
           WEIR_CASE(only_a_right_key_is_told_what_is_wrong))

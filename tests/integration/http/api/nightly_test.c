/* SPDX-License-Identifier: Apache-2.0 */
/* nightly_test.c - nights beside a running server: checkpoints on demand, what is told of them, nights that stop. */
#include "nightly_fixture.h"
#include "serve_child.h"

#include <weir/store/base/buf.h>
#include <weir/store/trust/trust.h>

static void ask_for(const serve_child *serve, const char *request, int status, const char *part) {
    http_answer answer;
    client_ask(serve->port, request, &answer);
    if (answer.status != status || !strstr(answer.body, part))
        fail_msg("%s… answers %d, not %d with %s: %s", request, answer.status, status, part, answer.body);
    answer_free(&answer);
}

static void start(serve_child *serve, const char *const *more) {
    char data[512];
    snprintf(data, sizeof data, "%s", weir_test_path("d"));
    serve_start(serve, data, more);
    assert_true(serve->port);
    serve_await(serve, "/readyz", NULL, 200, NULL);
}

static void a_night_beside_a_server(void **state) {
    char url[64];
    serve_child serve;
    weir_test_output output;
    static const char *const accept[] = {"--set", NIGHT_UNSIGNED, NULL};
    const char *const night[] = {"--server", url, "--set", NIGHT_UNSIGNED, NIGHT_SMALL, NULL};
    (void)state;
    night_store("60");
    start(&serve, accept);
    snprintf(url, sizeof url, "http://127.0.0.1:%u", serve.port);
    ask_for(&serve, "GET /v1/nightly HTTP/1.1\r\nHost: localhost\r\n\r\n", 200,
            "{\"night\":null,\"epochs\":[],\"trouble\":null,\"last_success\":null,\"overdue_since\":null}");
    night_run(night, NULL, &output);
    if (output.status) fail_msg("%s", output.err);
    assert_non_null(strstr(output.out, "by the server"));
    weir_test_output_free(&output);
    ask_for(&serve, "GET /v1/nightly HTTP/1.1\r\nHost: localhost\r\n\r\n", 200, "\"outcome\":\"promoted\"");
    ask_for(&serve, "GET /v1/nightly HTTP/1.1\r\nHost: localhost\r\n\r\n", 200, "\"epochs\":[{\"epoch\":1,");
    ask_for(&serve, "GET /v1/nightly HTTP/1.1\r\nHost: localhost\r\n\r\n", 200, "\"last_success\":\"20");
    ask_for(&serve, "GET /v1/nightly HTTP/1.1\r\nHost: localhost\r\n\r\n", 200, "\"overdue_since\":null}");
    serve_await(&serve, "/readyz?verbose=1", NULL, 200, "\"model\":{"); /* it took the model */
    assert_int_equal(serve_end(&serve, SIGTERM), 0);
}

static void a_key_is_asked_for(void **state) {
    char url[64], line[160], digits[65] = "";
    uint8_t digest[32];
    serve_child serve;
    weir_test_output output;
    char keys_file[512], key_file[512]; /* the ring of paths is short */
    const char *const keys[] = {"--keys", keys_file, "--set", NIGHT_UNSIGNED, NULL};
    const char *const without[] = {"--server", url, NULL};
    const char *const with[] = {"--server",  url, "--api-key-file", key_file, "--set", NIGHT_UNSIGNED,
                                NIGHT_SMALL, NULL};
    snprintf(keys_file, sizeof keys_file, "%s", weir_test_path("keys"));
    snprintf(key_file, sizeof key_file, "%s", weir_test_path("key"));
    (void)state;
    night_store("60");
    weir_sha256_bytes("sesame", 6, digest);
    for (size_t i = 0; i < sizeof digest; i++)
        snprintf(digits + 2 * i, 3, "%02x", digest[i]);
    int length = snprintf(line, sizeof line, "admin %s nightly\n", digits);
    assert_ok(weir_file_replace(keys_file, line, (size_t)length));
    assert_ok(weir_file_replace(key_file, "sesame\n", 7));
    start(&serve, keys);
    snprintf(url, sizeof url, "127.0.0.1:%u", serve.port);
    night_run(without, NULL, &output);
    assert_int_equal(output.status, 69);
    assert_non_null(strstr(output.err, "the server wrote no checkpoint (status 401)"));
    weir_test_output_free(&output);
    night_run(with, NULL, &output);
    if (output.status) fail_msg("%s", output.err);
    weir_test_output_free(&output);
    assert_int_equal(serve_end(&serve, SIGTERM), 0);
}

/* --- nights that do not come ------------------------------------------------------------------------------------- */

#define ASK_NIGHTLY "GET /v1/nightly HTTP/1.1\r\nHost: localhost\r\n\r\n"
#define ASK_METRICS "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"

/* As `weir nightly` leaves it, with a check of its bytes. */
static void leave_night(const char *name, const char *outcome, const char *begun, const char *ended) {
    const char *const members[][2] = {{"name", name}, {"outcome", outcome}, {"begun", begun}, {"ended", ended}};
    char path[128];
    weir_buf text = {0};
    weir_json json = weir_json_begin(&text);
    weir_json_object(&json);
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
        weir_json_key(&json, members[i][0]);
        weir_json_string(&json, members[i][1]);
    }
    weir_json_object_end_checked(&json, 0);
    assert_ok(weir_buf_err(&text));
    const char *const folders[] = {"d", "d/nights", path};
    snprintf(path, sizeof path, "d/nights/%s", name);
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++)
        if (!weir_path_exists(weir_test_path(folders[i]))) assert_ok(weir_folder_create(weir_test_path(folders[i])));
    snprintf(path, sizeof path, "d/nights/%s/night.json", name);
    assert_ok(weir_file_replace(weir_test_path(path), text.bytes, text.length));
    weir_buf_free(&text);
}

static void nights_that_have_stopped_are_overdue(void **state) {
    serve_child serve;
    (void)state;
    leave_night("1", "kept", "2026-01-01T02:15:00Z", "2026-01-01T03:00:00Z");
    leave_night("2", "failed", "2026-01-02T02:15:00Z", "2026-01-02T03:00:00Z");
    leave_night("3", "", "2026-01-03T02:15:00Z", "");
    start(&serve, NULL);
    ask_for(&serve, ASK_NIGHTLY, 200,
            "\"last_success\":\"2026-01-01T03:00:00.000000Z\",\"overdue_since\":\"2026-01-02T05:00:00.000000Z\"}");
    serve_await(&serve, "/metrics", NULL, 200, "\nweir_nightly_overdue_seconds ");
    http_answer answer;
    client_ask(serve.port, ASK_METRICS, &answer);
    assert_null(strstr(answer.body, "\nweir_nightly_overdue_seconds 0\n"));
    answer_free(&answer);
    assert_int_equal(serve_end(&serve, SIGTERM), 0);
}

static void nights_that_never_ended_well_are_overdue(void **state) {
    static const char *const daily[] = {"--set", "nightly.every=1d", NULL};
    serve_child serve;
    (void)state;
    leave_night("1", "failed", "2026-01-02T02:15:00Z", "2026-01-02T03:00:00Z");
    start(&serve, daily);
    ask_for(&serve, ASK_NIGHTLY, 200, "\"last_success\":null,\"overdue_since\":\"2026-01-03T02:15:00.000000Z\"}");
    assert_int_equal(serve_end(&serve, SIGTERM), 0);
}

/* A time that a clock which was ahead has left would hide years of missing nights. */
static void a_night_of_the_future_is_no_success(void **state) {
    serve_child serve;
    (void)state;
    leave_night("1", "kept", "2026-01-01T02:15:00Z", "2026-01-01T03:00:00Z");
    leave_night("2", "kept", "2126-01-01T02:15:00Z", "2126-01-01T03:00:00Z");
    start(&serve, NULL);
    ask_for(&serve, ASK_NIGHTLY, 200, "\"overdue_since\":\"2026-01-02T05:00:00.000000Z\"}");
    assert_int_equal(serve_end(&serve, SIGTERM), 0);
}

static void no_night_is_expected_by_who_wants_none(void **state) {
    static const char *const none[] = {"--set", "nightly.every=0s", NULL};
    serve_child serve;
    (void)state;
    leave_night("1", "kept", "2026-01-01T02:15:00Z", "2026-01-01T03:00:00Z");
    start(&serve, none);
    ask_for(&serve, ASK_NIGHTLY, 200, "\"overdue_since\":null}");
    ask_for(&serve, ASK_METRICS, 200, "\nweir_nightly_overdue_seconds 0\n");
    assert_int_equal(serve_end(&serve, SIGTERM), 0);
}

WEIR_TESTS(WEIR_CASE(a_night_beside_a_server), WEIR_CASE(a_key_is_asked_for),
           WEIR_CASE(nights_that_have_stopped_are_overdue), WEIR_CASE(nights_that_never_ended_well_are_overdue),
           WEIR_CASE(a_night_of_the_future_is_no_success), WEIR_CASE(no_night_is_expected_by_who_wants_none))

/* SPDX-License-Identifier: Apache-2.0 */
/* nightly_test.c - nights beside a server that runs: checkpoints on demand, what is told of them, its schedule. */
#include "nightly_fixture.h"
#include "serve_child.h"

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
    ask_for(&serve, "GET /v1/nightly HTTP/1.1\r\nHost: localhost\r\n\r\n", 200, "{\"night\":null,\"epochs\":[]");
    night_run(night, NULL, &output);
    if (output.status) fail_msg("%s", output.err);
    assert_non_null(strstr(output.out, "by the server"));
    weir_test_output_free(&output);
    ask_for(&serve, "GET /v1/nightly HTTP/1.1\r\nHost: localhost\r\n\r\n", 200, "\"outcome\":\"promoted\"");
    ask_for(&serve, "GET /v1/nightly HTTP/1.1\r\nHost: localhost\r\n\r\n", 200, "\"epochs\":[{\"epoch\":1,");
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

/* A last start long ago, so that one was missed: it is made up for at once. */
static void the_server_starts_a_night_itself(void **state) {
    serve_child serve;
    static const char *const more[] = {"--set", NIGHT_UNSIGNED,
                                       "--set", "nightly.cron=15 2 * * *",
                                       "--set", "nightly.train=--epochs 1  --hidden 4 --fanouts 2 --no-baselines",
                                       NULL};
    (void)state;
    night_store("60");
    assert_ok(weir_folder_create(weir_test_path("d/nights")));
    assert_ok(weir_file_replace(weir_test_path("d/nights/scheduled"), "1000000\n", 8));
    start(&serve, more);
    serve_await(&serve, "/v1/nightly", NULL, 200, "\"outcome\":\"promoted\"");
    serve_await(&serve, "/v1/nightly", NULL, 200, "\"running\":false,\"starts\":1,\"failures\":0}}");
    assert_int_equal(serve_end(&serve, SIGTERM), 0);
}

static void a_wrong_expression_is_refused_at_the_start(void **state) {
    const char *const argv[] = {weir_test_program(),
                                "serve",
                                "--schema",
                                "payments",
                                "--data",
                                weir_test_path("d"),
                                "--listen",
                                "127.0.0.1:0",
                                "--set",
                                "nightly.cron=15 25 * * *",
                                NULL};
    weir_test_output output;
    (void)state;
    weir_test_run(argv, NULL, &output);
    assert_int_equal(output.status, 65);
    assert_non_null(strstr(output.err, "nightly.cron: the hour '25' cannot be read"));
    weir_test_output_free(&output);
}

WEIR_TESTS(WEIR_CASE(a_night_beside_a_server), WEIR_CASE(a_key_is_asked_for),
           WEIR_CASE(the_server_starts_a_night_itself), WEIR_CASE(a_wrong_expression_is_refused_at_the_start))

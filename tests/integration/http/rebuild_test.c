/* SPDX-License-Identifier: Apache-2.0 */
/* rebuild_test.c - a store made again from its log answers as the one before, also where times are equal. */
#include "serve_payments.h"

#include <sys/stat.h>

#define EVENTS 40

/* All of one account and one moment, so that nothing but ids says which are the newest five. */
static void post_ties(const serve_child *child) {
    char said[400];
    assert_int_equal(serve_post_payments(child, 0, EVENTS, 1, said), 200);
}

/* What the store says of five neighbours, up to how fresh it is; free it. */
static char *five(const serve_child *child) {
    http_answer answer;
    serve_await(child, "/readyz", NULL, 200, NULL); /* a store that is filled again answers nothing before */
    serve_await_applied(child);
    client_ask(child->port, "GET /v1/neighbors/account/a0?limit=5 HTTP/1.1\r\nHost: localhost\r\n\r\n", &answer);
    assert_int_equal(answer.status, 200);
    char *fresh = strstr(answer.body, "\"freshness\""), *text;
    assert_non_null(fresh);
    *fresh = 0;
    text = strdup(answer.body);
    answer_free(&answer);
    assert_non_null(strstr(text, "\"p"));
    return text;
}

static char *five_after(const char *data, const char *option) {
    serve_child child;
    const char *const more[] = {option, NULL};
    serve_start(&child, data, option ? more : NULL);
    assert_true(child.port);
    char *text = five(&child);
    assert_int_equal(serve_end(&child, SIGTERM), 0);
    return text;
}

static char *five_of_new(const char *data) {
    serve_child child;
    serve_start(&child, data, NULL);
    serve_await(&child, "/readyz", NULL, 200, NULL);
    post_ties(&child);
    serve_await(&child, "/v1/vertices/payment/p39", NULL, 200, "");
    char *text = five(&child);
    assert_int_equal(serve_end(&child, SIGTERM), 0);
    return text;
}

static void a_rebuild_keeps_the_order_of_equal_times(void **state) {
    (void)state;
    for (int i = 0; i < 3; i++) { /* by chance it would be so once in 78,960,960 */
        char data[512];
        snprintf(data, sizeof data, "%s/data%d", weir_test_folder(), i);
        char *before = five_of_new(data), *after = five_after(data, "--rebuild");
        assert_string_equal(after, before);
        free(before);
        free(after);
    }
}

static void write_key(const char *path, const char *text, mode_t mode) {
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    assert_int_equal(chmod(path, mode), 0);
}

static void stores_that_share_a_key_are_equal(void **state) {
    (void)state;
    char one[512], other[512], third[512];
    snprintf(one, sizeof one, "%s/one", weir_test_folder());
    snprintf(other, sizeof other, "%s/other", weir_test_folder());
    snprintf(third, sizeof third, "%s/third", weir_test_folder());
    write_key(weir_test_path("key"), "00112233445566778899aabbccddeeff\n", 0600);
    setenv("WEIR_STORE_ID_KEY", weir_test_path("key"), 1);
    char *a = five_of_new(one), *b = five_of_new(other);
    assert_string_equal(a, b);
    write_key(weir_test_path("key"), "f0112233445566778899aabbccddeeff\n", 0600);
    char *c = five_of_new(third), *still = five_after(one, NULL); /* which was made with the first */
    assert_string_not_equal(a, c);
    assert_string_equal(a, still);
    free(a);
    free(b);
    free(c);
    free(still);
}

static void expect_refusal(const char *words) {
    weir_test_output output;
    const char *const argv[] = {weir_test_program(),    "serve",    "--schema",    "payments", "--data",
                                weir_test_path("data"), "--listen", "127.0.0.1:0", NULL};
    weir_test_run(argv, NULL, &output);
    assert_int_not_equal(output.status, 0);
    if (!strstr(output.err, words)) fail_msg("'%s' is wanted, and it says: %s", words, output.err);
    weir_test_output_free(&output);
}

static void a_key_that_others_may_read_or_that_is_none_is_refused(void **state) {
    (void)state;
    setenv("WEIR_STORE_ID_KEY", weir_test_path("key"), 1);
    expect_refusal("No such file");
    write_key(weir_test_path("key"), "00112233445566778899aabbccddeeff\n", 0644);
    expect_refusal("run: chmod 600");
    static const char *const wrong[] = {"",
                                        "\n",
                                        "00112233445566778899aabbccddeef\n",
                                        "00112233445566778899aabbccddeeff0\n",
                                        "00112233445566778899aabbccddeefg\n",
                                        "00112233445566778899aabbccddeeff\n\n"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        write_key(weir_test_path("key"), wrong[i], 0600);
        expect_refusal("openssl rand -hex 16");
    }
}

WEIR_TESTS(WEIR_CASE(a_rebuild_keeps_the_order_of_equal_times), WEIR_CASE(stores_that_share_a_key_are_equal),
           WEIR_CASE(a_key_that_others_may_read_or_that_is_none_is_refused))

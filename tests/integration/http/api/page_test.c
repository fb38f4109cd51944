/* SPDX-License-Identifier: Apache-2.0 */
/* page_test.c - the console page in a real browser: what it shows, and what it must not do. */
#include "model_register.h"
#include "serve_child.h"

#include <sys/stat.h>

#include <weir/store/base/buf.h>
#include <weir/store/base/file.h>

#define BROWSER "/usr/bin/chromium"

static const char events[] =
    "{\"id\":\"p1\",\"time\":\"2026-01-05T10:00:00Z\",\"account\":\"a1\",\"card\":\"c1\",\"device\":\"d1\","
    "\"merchant\":\"m1\",\"amount\":17.99,\"currency\":\"EUR\",\"channel\":\"web\",\"country\":\"DE\",\"mcc\":\"5814\"}"
    "\n"
    "{\"id\":\"p2\",\"time\":\"2026-01-05T11:00:00Z\",\"account\":\"<img src=x onerror=document.title='owned'>\","
    "\"card\":\"c1\",\"device\":\"d1\",\"merchant\":\"m1\",\"amount\":1,\"currency\":\"EUR\",\"channel\":\"web\","
    "\"country\":\"DE\",\"mcc\":\"5814\"}\n";

static void serve_with_events(serve_child *serve) {
    static const char *const more[] = {"--set", "models.require_signature=false", NULL};
    serve_start(serve, weir_test_path("d"), more);
    assert_true(serve->port);
    serve_await(serve, "/readyz", NULL, 200, NULL);
    serve_expect_post(serve, "/v1/events?source=payments", SERVE_LINES, events, 200, NULL);
    serve_await(serve, "/v1/vertices/payment/p2", NULL, 200, NULL);
}

static void browse(const serve_child *serve, const char *fragment, const char *what, weir_test_output *output) {
    char url[256], profile[512];
    if (access(BROWSER, X_OK) != 0) weir_test_skip("there is no " BROWSER "; `ops/check --install` installs it");
    snprintf(url, sizeof url, "http://127.0.0.1:%u/%s", serve->port, fragment);
    snprintf(profile, sizeof profile, "--user-data-dir=%s", weir_test_path("profile"));
    const char *const argv[] = {BROWSER,
                                "--headless=new",
                                "--no-sandbox",
                                "--disable-gpu",
                                "--disable-dev-shm-usage",
                                "--no-first-run",
                                "--window-size=1080,900",
                                "--virtual-time-budget=4000",
                                profile,
                                what,
                                url,
                                NULL};
    weir_test_run(argv, NULL, output);
    if (output->status) fail_msg("the browser ended with %d: %s", output->status, output->err);
}

static void has(const weir_test_output *output, const char *part) {
    if (!strstr(output->out, part)) fail_msg("the page has no %s:\n%s", part, output->out);
}

static void it_shows_counts_and_a_neighbourhood(void **state) {
    serve_child serve;
    weir_test_output output;
    (void)state;
    serve_with_events(&serve);
    browse(&serve, "#payment/p1", "--dump-dom", &output);
    has(&output, "class=\"ready\">ready");
    has(&output, "<dt>events applied</dt><dd>2</dd>");
    has(&output, "schema payments");
    has(&output, ">payment p1</text>");
    has(&output, ">account a1</text>");
    weir_test_output_free(&output);
    assert_int_equal(serve_end(&serve, SIGTERM), 0);
}

static void it_names_the_model_and_the_score(void **state) {
    serve_child serve;
    weir_test_output output;
    char id[WEIR_MODEL_ID_MAX], part[WEIR_MODEL_ID_MAX + 32];
    (void)state;
    register_make(weir_test_path("d/models"), 16, 5, id);
    serve_with_events(&serve);
    browse(&serve, "#payment/p1", "--dump-dom", &output);
    snprintf(part, sizeof part, "ready · model %s", id);
    has(&output, part);
    has(&output, "likely to be ");
    weir_test_output_free(&output);
    assert_int_equal(serve_end(&serve, SIGTERM), 0);
}

/* A model with trees has columns among its reasons; each is told with its value. */
static void it_tells_what_columns_contribute(void **state) {
    serve_child serve;
    weir_test_output output;
    char id[WEIR_MODEL_ID_MAX];
    (void)state;
    register_make_family(weir_test_path("d/models"), WEIR_PACK_TREES, 16, 5, id);
    serve_with_events(&serve);
    browse(&serve, "#payment/p1", "--dump-dom", &output);
    has(&output, "<ol id=\"columns\"><li><span class=\"");
    weir_test_output_free(&output);
    assert_int_equal(serve_end(&serve, SIGTERM), 0);
}

/* A night whose third epoch had a loss that is no number: it was drawn as if there had been no such epoch. */
static void it_tells_of_a_loss_that_is_no_number(void **state) {
    static const char *const numbers[] = {"1", "0.5", "null"};
    serve_child serve;
    weir_test_output output;
    weir_buf night = {0}, epochs = {0};
    (void)state;
    weir_json json = weir_json_begin(&night);
    weir_json_object(&json);
    weir_json_key_string(&json, "name", "n");
    weir_json_object_end_checked(&json, 0);
    for (unsigned i = 0; i < 3; i++) {
        weir_buf_printf(&epochs, "{\"epoch\":%u,\"loss\":%s,\"validation\":0.5", i + 1, numbers[i]);
        json = (weir_json){.buf = &epochs, .depth = 1};
        if (i == 2)
            weir_json_object_end_checked(&json, 0);
        else
            weir_json_object_end(&json);
        weir_buf_byte(&epochs, '\n');
    }
    assert_ok(weir_folder_create(weir_test_path("d/nights/n/train")));
    assert_ok(weir_file_replace(weir_test_path("d/nights/n/night.json"), night.bytes, night.length));
    assert_ok(weir_file_replace(weir_test_path("d/nights/n/train/epochs.jsonl"), epochs.bytes, epochs.length));
    weir_buf_free(&night);
    weir_buf_free(&epochs);
    serve_with_events(&serve);
    browse(&serve, "", "--dump-dom", &output);
    has(&output, ">loss is not a number</text>");
    has(&output, ">validation 0.5000</text>");
    has(&output, "d=\"M40.0 30.0h0 L240.0 170.0 \""); /* two of three: the place of the third is empty */
    has(&output, ">3 epochs</text>");
    weir_test_output_free(&output);
    assert_int_equal(serve_end(&serve, SIGTERM), 0);
}

static void text_of_events_is_never_markup(void **state) {
    serve_child serve;
    weir_test_output output;
    (void)state;
    serve_with_events(&serve);
    browse(&serve, "#payment/p2", "--dump-dom", &output);
    has(&output, "<title>Weir</title>");
    has(&output, ">account &lt;img src=x");
    if (strstr(output.out, "<img")) fail_msg("a key became markup:\n%s", output.out);
    weir_test_output_free(&output);
    assert_int_equal(serve_end(&serve, SIGTERM), 0);
}

static void it_can_be_photographed(void **state) {
    serve_child serve;
    weir_test_output output;
    struct stat file = {0};
    char screenshot[512];
    (void)state;
    serve_with_events(&serve);
    snprintf(screenshot, sizeof screenshot, "--screenshot=%s", weir_test_path("page.png"));
    browse(&serve, "#payment/p1", screenshot, &output);
    weir_test_output_free(&output);
    assert_int_equal(stat(weir_test_path("page.png"), &file), 0);
    assert_true(file.st_size > 4096); /* not an empty one */
    assert_int_equal(serve_end(&serve, SIGTERM), 0);
}

static void it_asks_nobody_else(void **state) {
    static const char *const files[] = {"/", "/page.js", "/page.css"};
    serve_child serve;
    (void)state;
    serve_start(&serve, weir_test_path("d"), NULL);
    assert_true(serve.port);
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        char request[128], policy[256] = "";
        http_answer answer;
        snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", files[i]);
        client_ask(serve.port, request, &answer);
        assert_int_equal(answer.status, 200);
        assert_non_null(answer_header(&answer, "Content-Security-Policy", policy, sizeof policy));
        assert_memory_equal(policy, "default-src 'self';", strlen("default-src 'self';"));
        for (const char *at = answer.body; (at = strstr(at, "http")); at++)
            assert_memory_equal(at, "http://www.w3.org/2000/svg",
                                strlen("http://www.w3.org/2000/svg")); /* a name, no address */
        answer_free(&answer);
    }
    assert_int_equal(serve_end(&serve, SIGTERM), 0);
}

WEIR_TESTS(WEIR_CASE(it_shows_counts_and_a_neighbourhood), WEIR_CASE(it_names_the_model_and_the_score),
           WEIR_CASE(it_tells_what_columns_contribute), WEIR_CASE(it_tells_of_a_loss_that_is_no_number),
           WEIR_CASE(text_of_events_is_never_markup), WEIR_CASE(it_can_be_photographed), WEIR_CASE(it_asks_nobody_else))

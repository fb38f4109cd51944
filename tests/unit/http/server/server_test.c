/* SPDX-License-Identifier: Apache-2.0 */
/* The server over sockets: what is routed, what is refused, what is cut, what survives a stop. */
#include "http_client.h"

#include <stdatomic.h>

#include <weir/http/server/server.h>
#include <weir/store/base/alloc.h>
#include <weir/store/base/metrics.h>
#include <weir/store/base/queue.h>
#include <weir/store/base/thread.h>

/* --- a server under test -------------------------------------------------------------------------------------- */

#define BODY_MAX 1000u

static weir_queue *deferred;

static weir_err hello(void *context, weir_http_request *request) {
    (void)context;
    weir_buf_text(weir_http_out(request), "hello\n");
    weir_http_reply(request, 200, "text/plain");
    return WEIR_OK;
}

static weir_err echo(void *context, weir_http_request *request) {
    size_t length;
    (void)context;
    const char *body = weir_http_body(request, &length);
    weir_buf_append(weir_http_out(request), body, length);
    weir_http_reply(request, 200, "application/octet-stream");
    return WEIR_OK;
}

static weir_err thing(void *context, weir_http_request *request) {
    size_t kind_length, name_length;
    (void)context;
    const char *kind = weir_http_param(request, 0, &kind_length), *name = weir_http_param(request, 1, &name_length);
    const char *color = weir_http_query(request, "color");
    weir_buf_printf(weir_http_out(request), "%s %zu %s %zu %s", kind, kind_length, name, name_length,
                    color ? color : "-");
    weir_http_reply(request, 200, "text/plain");
    return WEIR_OK;
}

static weir_err later(void *context, weir_http_request *request) {
    (void)context;
    weir_http_defer(request);
    return weir_queue_push(deferred, &request, WEIR_QUEUE_FOREVER);
}

static weir_err broken(void *context, weir_http_request *request) {
    (void)context;
    (void)request;
    return WEIR_ERR(WEIR_ECORRUPT, "the secret file /etc/x is damaged");
}

static weir_err missing(void *context, weir_http_request *request) {
    (void)context;
    (void)request;
    return WEIR_ERR(WEIR_ENOTFOUND, "no thing 'x'; make one");
}

/* Its roles, and its name. */
static weir_err who(void *context, weir_http_request *request) {
    const weir_http_caller *caller = weir_http_request_caller(request);
    (void)context;
    weir_buf_printf(weir_http_out(request), "%u '%s'", caller->roles, caller->name);
    weir_http_reply(request, 200, "text/plain");
    return WEIR_OK;
}

static const char *const colors[] = {"color", "shade", NULL};
static const weir_http_route routes[] = {
    {"GET", "/hello", WEIR_HTTP_ANYONE, NULL, 0, hello},
    {"GET", "/who", WEIR_HTTP_ANYONE, NULL, 0, who},
    {"POST", "/echo", WEIR_HTTP_WRITER, NULL, BODY_MAX, echo},
    {"POST", "/echo/more", WEIR_HTTP_WRITER, NULL, 10 * BODY_MAX, echo},
    {"GET", "/things/{kind}/{name}", WEIR_HTTP_READER, colors, 0, thing},
    {"POST", "/later", WEIR_HTTP_ANYONE, NULL, BODY_MAX, later},
    {"GET", "/broken", WEIR_HTTP_ANYONE, NULL, 0, broken},
    {"GET", "/missing", WEIR_HTTP_ANYONE, NULL, 0, missing},
    {"DELETE", "/missing", WEIR_HTTP_ADMIN, NULL, 0, missing},
};

static bool authenticate(void *context, const char *key, size_t length, weir_http_caller *callerp) {
    (void)context;
    (void)length;
    *callerp = (weir_http_caller){0};
    if (!strcmp(key, "r")) *callerp = (weir_http_caller){WEIR_HTTP_READER, "reader"};
    if (!strcmp(key, "w")) *callerp = (weir_http_caller){WEIR_HTTP_WRITER, "writer"};
    if (!strcmp(key, "a")) *callerp = (weir_http_caller){WEIR_HTTP_ADMIN, "admin"};
    return callerp->roles != 0;
}

static weir_http_opts standard(void) {
    return (weir_http_opts){.listen = "127.0.0.1:0", .routes = routes, .route_count = sizeof routes / sizeof routes[0]};
}

static weir_http *serve(const weir_http_opts *opts) {
    weir_http *http;
    assert_ok(weir_http_open(opts, &http));
    assert_true(weir_http_port(http) > 0);
    return http;
}

static weir_http *serve_standard(void) {
    weir_http_opts opts = standard();
    return serve(&opts);
}

/* Asks, and holds the status and a part of the answer against what is wanted. */
static void expect(const weir_http *http, const char *text, int status, const char *part) {
    http_answer answer;
    client_ask(weir_http_port(http), text, &answer);
    if (answer.status != status) fail_msg("%s: answered %d, not %d: %s", text, answer.status, status, answer.body);
    if (part && !strstr(answer.body, part) && !strstr(answer.head, part))
        fail_msg("%s: no '%s' in %s%s", text, part, answer.head, answer.body);
    answer_free(&answer);
}

/* --- routes --------------------------------------------------------------------------------------------------- */

static void routes_and_parameters(void **state) {
    (void)state;
    weir_http *http = serve_standard();
    expect(http, "GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n", 200, "hello\n");
    expect(http, "GET /things/a/b HTTP/1.1\r\nHost: localhost\r\n\r\n", 200, "a 1 b 1 -");
    expect(http, "GET /things/a%2Fb/c%20d%00e HTTP/1.1\r\nHost: localhost\r\n\r\n", 200, "a/b 3 c d 5 -");
    expect(http, "GET /things/a/b?color=1+2%2B3%26 HTTP/1.1\r\nHost: localhost\r\n\r\n", 200, "a 1 b 1 1+2+3&");
    expect(http, "GET /things/a/b?&color HTTP/1.1\r\nHost: localhost\r\n\r\n", 200, "a 1 b 1 ");
    expect(http, "POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc", 200, "abc");
    expect(http, "POST /echo HTTP/1.1\r\nHost: localhost\r\n\r\n", 200, NULL);
    expect(http,
           "POST /echo HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n",
           200, "abc");
    weir_http_close(http);
}

static void what_is_not_there_is_a_problem(void **state) {
    (void)state;
    weir_http *http = serve_standard();
    expect(http, "GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n", 404, "\"status\":404");
    expect(http, "GET /things/a HTTP/1.1\r\nHost: localhost\r\n\r\n", 404, "application/problem+json");
    expect(http, "GET /things/a/b/ HTTP/1.1\r\nHost: localhost\r\n\r\n", 404, NULL);
    expect(http, "GET /things//b HTTP/1.1\r\nHost: localhost\r\n\r\n", 404, NULL);
    expect(http, "GET /hello/ HTTP/1.1\r\nHost: localhost\r\n\r\n", 404, NULL);
    expect(http, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", 404, NULL);
    expect(http, "GET /things/a/%zz HTTP/1.1\r\nHost: localhost\r\n\r\n", 400, "hex");
    expect(http, "GET /things/a/b%4 HTTP/1.1\r\nHost: localhost\r\n\r\n", 400, "hex");
    expect(http, "PUT /hello HTTP/1.1\r\nHost: localhost\r\n\r\n", 405, "Allow: GET");
    expect(http, "PUT /missing HTTP/1.1\r\nHost: localhost\r\n\r\n", 405, "Allow: GET, DELETE");
    expect(http, "GET /missing HTTP/1.1\r\nHost: localhost\r\n\r\n", 404, "no thing 'x'; make one");
    weir_http_close(http);
}

static void queries_are_held_against_the_route(void **state) {
    (void)state;
    weir_http *http = serve_standard();
    expect(http, "GET /hello?x=1 HTTP/1.1\r\nHost: localhost\r\n\r\n", 400, "unknown query parameter 'x'");
    expect(http, "GET /things/a/b?colour=1 HTTP/1.1\r\nHost: localhost\r\n\r\n", 400, "did you mean 'color'");
    expect(http, "GET /things/a/b?color=1&color=2 HTTP/1.1\r\nHost: localhost\r\n\r\n", 400, "twice");
    expect(http, "GET /things/a/b?color=%00 HTTP/1.1\r\nHost: localhost\r\n\r\n", 400, "zero byte");
    expect(http, "GET /things/a/b?color=%g0 HTTP/1.1\r\nHost: localhost\r\n\r\n", 400, "hex");
    weir_http_close(http);
}

static void inside_failures_keep_their_words(void **state) {
    (void)state;
    weir_http *http = serve_standard();
    http_answer answer;
    client_ask(weir_http_port(http), "GET /broken HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: my-7\r\n\r\n", &answer);
    assert_int_equal(answer.status, 500);
    assert_null(strstr(answer.body, "/etc/x"));
    assert_non_null(strstr(answer.body, "\"request_id\":\"my-7\""));
    assert_non_null(strstr(answer.head, "X-Request-Id: my-7\r\n"));
    answer_free(&answer);
    client_ask(weir_http_port(http), "GET /hello HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: a b\r\n\r\n", &answer);
    assert_null(strstr(answer.head, "a b"));
    assert_non_null(strstr(answer.head, "X-Content-Type-Options: nosniff\r\n"));
    assert_non_null(strstr(answer.head, "Cache-Control: no-store\r\n"));
    answer_free(&answer);
    weir_http_close(http);
}

/* --- roles ---------------------------------------------------------------------------------------------------- */

static void w2_roles_are_kept_apart(void **state) {
    (void)state;
    weir_http_opts opts = standard();
    opts.authenticate = authenticate;
    weir_http *http = serve(&opts);
    expect(http, "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n", 200, "hello");
    expect(http, "GET /things/a/b HTTP/1.1\r\nHost: x\r\n\r\n", 401, "WWW-Authenticate: Bearer");
    expect(http, "GET /things/a/b HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer q\r\n\r\n", 401,
           "is unknown to this server");
    expect(http, "GET /things/a/b HTTP/1.1\r\nHost: x\r\nAuthorization: Basic r\r\n\r\n", 401, NULL);
    expect(http, "GET /things/a/b HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer r\r\n\r\n", 200, "a 1 b 1");
    expect(http, "GET /things/a/b HTTP/1.1\r\nHost: x\r\nX-API-Key: r\r\n\r\n", 200, NULL);
    expect(http, "GET /things/a/b HTTP/1.1\r\nHost: x\r\nX-API-Key: w\r\n\r\n", 403,
           "'writer' lacks the required role; use a key with role 'reader'");
    expect(http, "POST /echo HTTP/1.1\r\nHost: x\r\nX-API-Key: r\r\nContent-Length: 1\r\n\r\nq", 403, NULL);
    expect(http, "POST /echo HTTP/1.1\r\nHost: x\r\nX-API-Key: w\r\nContent-Length: 1\r\n\r\nq", 200, NULL);
    expect(http, "DELETE /missing HTTP/1.1\r\nHost: x\r\nX-API-Key: w\r\n\r\n", 403, NULL);
    expect(http, "DELETE /missing HTTP/1.1\r\nHost: x\r\nX-API-Key: a\r\n\r\n", 404, NULL);
    expect(http, "GET /things/a/b HTTP/1.1\r\nHost: x\r\nX-API-Key: a\r\n\r\n", 200, NULL);
    weir_http_close(http);
}

static int status_of(const weir_http *http, const char *key) {
    char text[256];
    http_answer answer;
    snprintf(text, sizeof text, "GET /things/a/b HTTP/1.1\r\nHost: x\r\nX-API-Key: %s\r\n\r\n", key);
    client_ask(weir_http_port(http), text, &answer);
    if (answer.status == 429) assert_non_null(strstr(answer.head, "Retry-After: 60"));
    answer_free(&answer);
    return answer.status;
}

/* By a clock that stands still: the limit, one past it, and a minute later. */
static void w2_wrong_keys_of_an_address_have_a_limit(void **state) {
    (void)state;
    weir_clock *clock;
    weir_http_opts opts = standard();
    assert_ok(weir_clock_manual_open(0, &clock));
    weir_clock_manual_advance(clock, WEIR_US_PER_S);
    opts.authenticate = authenticate;
    opts.clock = clock;
    weir_http *http = serve(&opts);
    for (int minute = 0; minute < 2; minute++) {
        for (int i = 0; i < 20; i++)
            assert_int_equal(status_of(http, "no"), 401);
        assert_int_equal(status_of(http, "no"), 429);
        assert_int_equal(status_of(http, "r"), 200);
        weir_clock_manual_advance(clock, 60 * WEIR_US_PER_S - 1);
        assert_int_equal(status_of(http, "no"), 429);
        weir_clock_manual_advance(clock, 1);
    }
    assert_int_equal(status_of(http, "no"), 401);
    assert_int_equal(weir_metric_counter(WEIR_METRIC_HTTP_WRONG_KEYS), 45);
    weir_http_close(http);
    weir_clock_close(clock);
}

/* A right key says who asks; a wrong one is counted and strikes its address, and the request has its answer all the
 * same. */
static void w2_a_key_counts_where_none_is_needed(void **state) {
    (void)state;
    weir_http_opts opts = standard();
    opts.authenticate = authenticate;
    weir_http *http = serve(&opts);
    expect(http, "GET /who HTTP/1.1\r\nHost: x\r\n\r\n", 200, "0 ''");
    expect(http, "GET /who HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer r\r\n\r\n", 200, "1 'reader'");
    expect(http, "GET /who HTTP/1.1\r\nHost: x\r\nX-API-Key: a\r\n\r\n", 200, "4 'admin'");
    assert_int_equal(weir_metric_counter(WEIR_METRIC_HTTP_WRONG_KEYS), 0);
    for (int i = 0; i < 25; i++) /* more than an address may have where a key is needed */
        expect(http, "GET /who HTTP/1.1\r\nHost: x\r\nX-API-Key: no\r\n\r\n", 200, "0 ''");
    expect(http, "GET /who HTTP/1.1\r\nHost: x\r\nAuthorization: Basic r\r\n\r\n", 200, "0 ''");
    assert_int_equal(weir_metric_counter(WEIR_METRIC_HTTP_WRONG_KEYS), 26);
    assert_int_equal(status_of(http, "no"), 429);
    expect(http, "GET /who HTTP/1.1\r\nHost: x\r\nX-API-Key: w\r\n\r\n", 200, "2 'writer'");
    expect(http, "GET /who HTTP/1.1\r\nHost: x\r\n\r\n", 200, "0 ''");
    weir_http_close(http);
    http = serve_standard();
    expect(http, "GET /who HTTP/1.1\r\nHost: localhost\r\nX-API-Key: no\r\n\r\n", 200, "4 'local'");
    assert_int_equal(weir_metric_counter(WEIR_METRIC_HTTP_WRONG_KEYS), 27);
    weir_http_close(http);
}

static void w3_without_keys_only_this_machine(void **state) {
    (void)state;
    static const char *const open_ones[] = {"0.0.0.0:0", ":0", "[::]:0", "192.0.2.1:0"};
    weir_http_opts opts = standard();
    weir_http *http;
    for (size_t i = 0; i < sizeof open_ones / sizeof open_ones[0]; i++) {
        opts.listen = open_ones[i];
        assert_err(weir_http_open(&opts, &http), WEIR_EPERM, "--keys");
        assert_null(http);
    }
    opts = standard();
    http = serve(&opts);
    expect(http, "GET /hello HTTP/1.1\r\nHost: evil.example\r\n\r\n", 421, NULL);
    expect(http, "GET /hello HTTP/1.1\r\nHost: localhost.evil.example\r\n\r\n", 421, NULL);
    expect(http, "GET /hello HTTP/1.1\r\nHost: 127.0.0.1:99\r\n\r\n", 200, NULL);
    expect(http, "GET /hello HTTP/1.1\r\nHost: [::1]\r\n\r\n", 200, NULL);
    weir_http_close(http);
}

/* What browsers say, by the page that asked: the newest beside the older header, and the older alone. */
static void w5_pages_of_other_sites_change_nothing(void **state) {
    (void)state;
    static const struct {
        const char *headers;
        bool passes;
    } cases[] = {
        {"", true}, /* no browser */
        {"Sec-Fetch-Site: same-origin\r\nOrigin: http://localhost:8080\r\n", true},
        {"Sec-Fetch-Site: none\r\n", true},
        {"Origin: http://localhost:8080\r\n", true},
        {"Origin: https://LOCALHOST:8080\r\n", true}, /* a proxy in front speaks TLS */
        {"Sec-Fetch-Site: cross-site\r\nOrigin: https://evil.example\r\n", false},
        {"Sec-Fetch-Site: cross-site\r\n", false},
        {"Sec-Fetch-Site: same-site\r\nOrigin: http://localhost:3000\r\n", false}, /* another program's page */
        {"Sec-Fetch-Site: cross-site\r\nOrigin: http://localhost:8080\r\n", false},
        {"Sec-Fetch-Site: \r\n", false},
        {"Origin: https://evil.example\r\n", false},
        {"Origin: http://localhost\r\n", false},
        {"Origin: http://localhost:80800\r\n", false},
        {"Origin: null\r\n", false},
        {"Origin: \r\n", false},
        {"Origin: http://localhost:8080.evil.example\r\n", false},
    };
    static const char *const with_keys[] = {"", "X-API-Key: w\r\n"};
    char text[512];
    for (int keys = 0; keys < 2; keys++) {
        weir_http_opts opts = standard();
        if (keys) opts.authenticate = authenticate;
        weir_http *http = serve(&opts);
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
            const char *host = "Host: localhost:8080\r\n", *key = with_keys[keys], *headers = cases[i].headers;
            snprintf(text, sizeof text, "POST /echo HTTP/1.1\r\n%s%s%sContent-Length: 2\r\n\r\nhi", host, key, headers);
            expect(http, text, cases[i].passes ? 200 : 403, cases[i].passes ? "hi" : "page of another site");
            snprintf(text, sizeof text, "DELETE /missing HTTP/1.1\r\n%s%s%s\r\n", host, key, headers);
            expect(http, text, cases[i].passes && !keys ? 404 : 403, NULL);
            snprintf(text, sizeof text, "GET /hello HTTP/1.1\r\n%s%s%s\r\n", host, key, headers);
            expect(http, text, 200, NULL); /* which the page cannot read */
        }
        weir_http_close(http);
    }
}

static void addresses(void **state) {
    (void)state;
    static const char *const bad[] = {
        "",       "x",       "127.0.0.1",    "127.0.0.1:",   "127.0.0.1:65536", "127.0.0.1:-1",
        "::1:80", "[::1:80", "300.0.0.1:80", "[127.0.0.1:1", "127.0.0.1:8x"};
    weir_http_opts opts = standard();
    weir_http *http, *second;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        opts.listen = bad[i];
        assert_err(weir_http_open(&opts, &http), WEIR_ECONFIG, NULL);
    }
    opts.listen = "localhost:0";
    http = serve(&opts);
    char taken[64];
    snprintf(taken, sizeof taken, "127.0.0.1:%u", weir_http_port(http));
    opts.listen = taken;
    assert_err(weir_http_open(&opts, &second), WEIR_EBUSY, "another program listens on");
    weir_http_close(http);
}

/* --- limits --------------------------------------------------------------------------------------------------- */

static void post_of(size_t length, bool chunked, const char *path, http_client *client) {
    char head[256];
    char *body = calloc(1, length + 1);
    memset(body, 'x', length);
    snprintf(head, sizeof head,
             chunked ? "POST %s HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n%zx\r\n"
                     : "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %zu\r\n\r\n",
             path, length);
    client_text(client, head);
    client_send(client, body, length);
    if (chunked) client_text(client, "\r\n0\r\n\r\n");
    free(body);
}

static void a_body_at_its_limit_and_past_it(void **state) {
    (void)state;
    weir_http *http = serve_standard();
    for (int chunked = 0; chunked < 2; chunked++) {
        for (size_t over = 0; over < 2; over++) {
            http_client client;
            http_answer answer;
            client_open(&client, weir_http_port(http));
            post_of(BODY_MAX + over, chunked, "/echo", &client);
            client_read(&client, &answer);
            assert_int_equal(answer.status, over ? 413 : 200);
            if (over) assert_true(client_closed(&client));
            answer_free(&answer);
            client_close(&client);
        }
    }
    expect(http, "GET /hello HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nGET /", 400, "accepts no body");
    weir_http_close(http);
}

/* A loop keeps what a larger body was in for the requests that follow. */
static void a_body_past_its_limit_after_a_larger_one(void **state) {
    (void)state;
    static const size_t chunks[][2] = {{BODY_MAX + 1, 0}, {4 * BODY_MAX, 0}, {4 * BODY_MAX, 2 * BODY_MAX}};
    weir_http_opts opts = standard();
    opts.loops = 1;
    weir_http *http = serve(&opts);
    for (size_t i = 0; i < sizeof chunks / sizeof chunks[0]; i++) {
        http_client client;
        http_answer answer;
        client_open(&client, weir_http_port(http));
        post_of(5 * BODY_MAX, false, "/echo/more", &client);
        client_read(&client, &answer);
        assert_int_equal(answer.status, 200);
        answer_free(&answer);
        client_text(&client, "POST /echo HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n");
        for (size_t chunk = 0; chunk < 2 && chunks[i][chunk]; chunk++) {
            char size[32], body[4 * BODY_MAX] = "";
            snprintf(size, sizeof size, "%zx\r\n", chunks[i][chunk]);
            client_text(&client, size);
            client_send(&client, body, chunks[i][chunk]);
            client_text(&client, "\r\n");
        }
        client_text(&client, "0\r\n\r\n");
        client_read(&client, &answer);
        assert_int_equal(answer.status, 413);
        answer_free(&answer);
        client_close(&client);
    }
    weir_http_close(http);
}

static void w4_bodies_in_flight_have_a_budget(void **state) {
    (void)state;
    weir_http_opts opts = standard();
    opts.memory_bytes = BODY_MAX - 1;
    weir_http *http = serve(&opts);
    http_client client;
    http_answer answer;
    for (int chunked = 0; chunked < 2; chunked++) {
        client_open(&client, weir_http_port(http));
        post_of(BODY_MAX, chunked, "/echo", &client);
        client_read(&client, &answer);
        assert_int_equal(answer.status, 503);
        answer_free(&answer);
        client_close(&client);
    }
    /* what was held is given back */
    expect(http, "POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc", 200, "abc");
    weir_http_close(http);
}

static void connections_have_limits(void **state) {
    (void)state;
    weir_http_opts opts = standard();
    opts.connections_per_ip = 2;
    weir_http *http = serve(&opts);
    http_client clients[3];
    http_answer answer;
    for (size_t i = 0; i < 2; i++) {
        client_open(&clients[i], weir_http_port(http));
        client_text(&clients[i], "GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n");
        client_read(&clients[i], &answer);
        assert_int_equal(answer.status, 200);
        answer_free(&answer);
    }
    client_open(&clients[2], weir_http_port(http));
    client_read(&clients[2], &answer);
    assert_int_equal(answer.status, 503);
    answer_free(&answer);
    assert_true(client_closed(&clients[2]));
    client_close(&clients[2]);
    client_close(&clients[0]);
    /* the place is free again as soon as the server has seen the end */
    for (int status = 0; status != 200;) {
        client_ask(weir_http_port(http), "GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n", &answer);
        status = answer.status;
        answer_free(&answer);
    }
    client_close(&clients[1]);
    weir_http_close(http);
}

/* --- connections ---------------------------------------------------------------------------------------------- */

static void requests_follow_each_other_on_a_connection(void **state) {
    (void)state;
    weir_http *http = serve_standard();
    http_client client;
    http_answer answer;
    client_open(&client, weir_http_port(http));
    client_text(&client, "GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n"
                         "POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\nab"
                         "HEAD /hello HTTP/1.1\r\nHost: localhost\r\n\r\n"
                         "GET /missing HTTP/1.1\r\nHost: localhost\r\n\r\n");
    client_read(&client, &answer);
    assert_string_equal(answer.body, "hello\n");
    answer_free(&answer);
    client_read(&client, &answer);
    assert_string_equal(answer.body, "ab");
    answer_free(&answer);
    client_read_headers_only(&client, &answer, false);
    assert_int_equal(answer.status, 200);
    assert_non_null(strstr(answer.head, "Content-Length: 6"));
    answer_free(&answer);
    client_read(&client, &answer);
    assert_int_equal(answer.status, 404);
    answer_free(&answer);
    client_close(&client);
    weir_http_close(http);
}

static void a_half_closed_client_is_answered(void **state) {
    (void)state;
    weir_http_opts opts = standard();
    opts.idle_us = 100000; /* the library may see the end no earlier */
    weir_http *http = serve(&opts);
    http_client client;
    http_answer answer;
    client_open(&client, weir_http_port(http));
    client_text(&client, "GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n");
    shutdown(client.fd, SHUT_WR);
    client_read(&client, &answer);
    assert_int_equal(answer.status, 200);
    answer_free(&answer);
    assert_true(client_closed(&client));
    client_close(&client);
    weir_http_close(http);
}

/* What proxies may read in another way is refused, and what follows it on the connection is never answered. */
static void w2_a_request_within_a_request_is_not_answered(void **state) {
    (void)state;
#define POST_HEAD "POST /echo HTTP/1.1\r\nHost: localhost\r\n"
#define INNER     "GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n"
    static const char *const outer[] = {
        POST_HEAD "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        POST_HEAD "Content-Length: 4\r\nContent-Length: 0\r\n\r\nabcd",
        POST_HEAD "Content-Length: 4\r\nContent-Length: 4\r\n\r\nabcd",
        POST_HEAD "Content-Length: 4, 4\r\n\r\nabcd",
        POST_HEAD "Content-Length: +4\r\n\r\nabcd",
        POST_HEAD "Content-Length: -1\r\n\r\n",
        POST_HEAD "Content-Length: 4x\r\n\r\nabcd",
        POST_HEAD "Content-Length: 99999999999999999999999\r\n\r\n",
        POST_HEAD "Content-Length: \r\n\r\n",
        POST_HEAD "Transfer-Encoding: gzip\r\n\r\n0\r\n\r\n",
        POST_HEAD "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        POST_HEAD "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        POST_HEAD "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
        POST_HEAD "Transfer-Encoding : chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
        POST_HEAD "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        POST_HEAD "Transfer-Encoding: chunked\r\n\r\nzz\r\nab\r\n0\r\n\r\n",
        POST_HEAD "Transfer-Encoding: chunked\r\n\r\n-1\r\nab\r\n0\r\n\r\n",
        POST_HEAD "Transfer-Encoding: chunked\r\n\r\nffffffffffffffffffff\r\nab\r\n0\r\n\r\n",
        "POST /echo HTTP/1.0\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "GET /missing HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n",
        "GET /missing HTTP/1.1\r\nHost: localhost\r\nX Y: a\r\n\r\n",
        "GET /missing HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc",
        "GET /missing HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "GET /missing HTTP/1.1\rHost: localhost\r\n\r\n",
        "GET /missing\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "GET /missing HTTP/1.1\r\n\r\n",
    };
    weir_http_opts opts = standard();
    opts.idle_us = 100000;
    weir_http *http = serve(&opts);
    for (size_t i = 0; i < sizeof outer / sizeof outer[0]; i++) {
        http_client client;
        client_open(&client, weir_http_port(http));
        client_text(&client, outer[i]);
        client_text(&client, INNER);
        while (client_fill(&client)) {
        }
        if (client.length && (strstr(client.bytes, "hello\n") || strstr(client.bytes, " 200 ")))
            fail_msg("%s… is answered with %s", outer[i], client.bytes);
        client_close(&client);
    }
    weir_http_close(http);
}

static void a_header_past_its_limit(void **state) {
    (void)state;
    static char text[200000];
    weir_http *http = serve_standard();
    http_answer answer;
    memset(text, 'a', sizeof text - 1);
    memcpy(text, "GET /", 5);
    client_ask(weir_http_port(http), text, &answer);
    assert_int_equal(answer.status, 414);
    answer_free(&answer);
    static const char begin[] = "GET /hello HTTP/1.1\r\nHost: localhost\r\nX: ";
    memcpy(text, begin, sizeof begin - 1);
    client_ask(weir_http_port(http), text, &answer);
    assert_int_equal(answer.status, 431);
    answer_free(&answer);
    /* a query that the library takes and we do not */
    snprintf(text, sizeof text, "GET /hello?%0*d HTTP/1.1\r\nHost: localhost\r\n\r\n", 9000, 1);
    client_ask(weir_http_port(http), text, &answer);
    assert_int_equal(answer.status, 400);
    answer_free(&answer);
    weir_http_close(http);
}

/* --- time ----------------------------------------------------------------------------------------------------- */

static void w1_a_slow_request_is_cut(void **state) {
    (void)state;
    static const char *const beginnings[] = {
        "GET /hello HTTP/1.1\r\nHost: loc",
        "POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\nab",
        "POST /echo HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n300\r\nab",
    };
    weir_http_opts opts = standard();
    opts.request_us = 100000;
    weir_http *http = serve(&opts);
    for (size_t i = 0; i < sizeof beginnings / sizeof beginnings[0]; i++) {
        http_client client;
        http_answer answer;
        client_open(&client, weir_http_port(http));
        client_text(&client, beginnings[i]);
        /* a byte now and then does not help */
        while (client_text(&client, "x")) {
            struct pollfd wait = {.fd = client.fd, .events = POLLIN};
            if (poll(&wait, 1, 10) == 1) break;
        }
        client_read(&client, &answer);
        assert_true(answer.status == 408);
        answer_free(&answer);
        client_close(&client);
    }
    assert_true(weir_metric_counter(WEIR_METRIC_HTTP_DEADLINES) >= 2);
    weir_http_close(http);
}

static void an_idle_connection_is_closed(void **state) {
    (void)state;
    weir_http_opts opts = standard();
    opts.idle_us = 100000;
    weir_http *http = serve(&opts);
    http_client client;
    client_open(&client, weir_http_port(http));
    while (!client_closed(&client))
        client.length = 0;
    client_close(&client);
    weir_http_close(http);
}

/* --- deferred ------------------------------------------------------------------------------------------------- */

static void finish_all(void *context) {
    weir_http_request *request;
    size_t count;
    (void)context;
    while (!weir_queue_pop(deferred, &request, 1, WEIR_QUEUE_FOREVER, &count)) {
        weir_buf_text(weir_http_out(request), "at last");
        weir_http_reply(request, 200, "text/plain");
        weir_http_finish(request);
    }
}

static void a_deferred_request_is_finished_elsewhere(void **state) {
    (void)state;
    weir_thread *thread;
    assert_ok(weir_queue_open(1000, sizeof(weir_http_request *), &deferred));
    assert_ok(weir_thread_start("finisher", WEIR_ROLE_WORKER, finish_all, NULL, &thread));
    weir_http *http = serve_standard();
    http_client client;
    http_answer answer;
    client_open(&client, weir_http_port(http));
    for (int i = 0; i < 100; i++)
        assert_true(client_text(&client, "POST /later HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\nx"));
    for (int i = 0; i < 100; i++) {
        client_read(&client, &answer);
        assert_string_equal(answer.body, "at last");
        answer_free(&answer);
    }
    client_close(&client);
    weir_http_close(http);
    weir_queue_close(deferred);
    weir_thread_join(thread);
    weir_queue_free(deferred);
}

static void stop_main(void *http) {
    weir_http_stop(http, 0);
}

static void stop_patiently(void *http) {
    weir_http_stop(http, 60 * WEIR_US_PER_S);
}

static void a_stop_waits_for_what_is_deferred(void **state) {
    (void)state;
    weir_thread *stopper, *finisher;
    assert_ok(weir_queue_open(10, sizeof(weir_http_request *), &deferred));
    weir_http *http = serve_standard();
    http_client client;
    http_answer answer;
    client_open(&client, weir_http_port(http));
    client_text(&client, "POST /later HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\nx");
    weir_queue_stats stats = {0};
    while (!stats.items)
        weir_queue_stats_get(deferred, &stats);
    assert_ok(weir_thread_start("stopper", WEIR_ROLE_WORKER, stop_main, http, &stopper));
    client_read(&client, &answer); /* cut: there was no time to drain */
    assert_int_equal(answer.status, 0);
    assert_ok(weir_thread_start("finisher", WEIR_ROLE_WORKER, finish_all, NULL, &finisher));
    weir_thread_join(stopper);
    weir_http_close(http);
    weir_queue_close(deferred);
    weir_thread_join(finisher);
    weir_queue_free(deferred);
    client_close(&client);
}

static void a_stop_lets_requests_end(void **state) {
    (void)state;
    weir_thread *stopper;
    weir_http_opts opts = standard();
    weir_http *http = serve(&opts);
    http_client idle, busy;
    http_answer answer;
    client_open(&idle, weir_http_port(http));
    client_text(&idle, "GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n");
    client_read(&idle, &answer);
    answer_free(&answer);
    client_open(&busy, weir_http_port(http));
    client_text(&busy, "POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\na");
    while (weir_metric_counter(WEIR_METRIC_HTTP_REQUESTS) < 2)
        usleep(1000);
    assert_ok(weir_thread_start("stopper", WEIR_ROLE_WORKER, stop_patiently, http, &stopper));
    assert_true(client_closed(&idle));
    client_text(&busy, "b");
    client_read(&busy, &answer);
    assert_int_equal(answer.status, 200);
    assert_string_equal(answer.body, "ab");
    assert_non_null(strstr(answer.head, "Connection: close"));
    answer_free(&answer);
    weir_thread_join(stopper);
    weir_http_close(http);
    client_close(&idle);
    client_close(&busy);
}

/* --- many ----------------------------------------------------------------------------------------------------- */

/* The library's own epoll loop falls asleep at a multiple of 128 clients in flight; ours must not. */
static void no_number_of_clients_stalls(void **state) {
    (void)state;
    enum { CLIENTS = 256, ROUNDS = 20 };
    weir_http_opts opts = standard();
    opts.loops = 1;
    opts.connections_per_ip = 1000;
    weir_http *http = serve(&opts);
    static http_client clients[CLIENTS];
    for (size_t count = 128; count <= CLIENTS; count += 128) {
        for (size_t i = 0; i < count; i++)
            client_open(&clients[i], weir_http_port(http));
        for (int round = 0; round < ROUNDS; round++) {
            for (size_t i = 0; i < count; i++)
                client_text(&clients[i], "GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n");
            for (size_t i = 0; i < count; i++) {
                http_answer answer;
                client_read(&clients[i], &answer);
                assert_int_equal(answer.status, 200);
                answer_free(&answer);
            }
        }
        for (size_t i = 0; i < count; i++)
            client_close(&clients[i]);
    }
    weir_http_close(http);
}

static weir_err open_and_close(void *context) {
    weir_http *http;
    weir_err err = weir_http_open(context, &http);
    if (!err) weir_http_close(http);
    return err;
}

static void every_allocation_of_open(void **state) {
    (void)state;
    weir_http_opts opts = standard();
    weir_test_every_allocation(open_and_close, &opts);
}

WEIR_TESTS(WEIR_CASE(routes_and_parameters), WEIR_CASE(what_is_not_there_is_a_problem),
           WEIR_CASE(queries_are_held_against_the_route), WEIR_CASE(inside_failures_keep_their_words),
           WEIR_CASE(w2_roles_are_kept_apart), WEIR_CASE(w2_wrong_keys_of_an_address_have_a_limit),
           WEIR_CASE(w2_a_key_counts_where_none_is_needed), WEIR_CASE(w3_without_keys_only_this_machine),
           WEIR_CASE(w5_pages_of_other_sites_change_nothing), WEIR_CASE(addresses),
           WEIR_CASE(a_body_at_its_limit_and_past_it), WEIR_CASE(a_body_past_its_limit_after_a_larger_one),
           WEIR_CASE(w4_bodies_in_flight_have_a_budget), WEIR_CASE(connections_have_limits),
           WEIR_CASE(requests_follow_each_other_on_a_connection), WEIR_CASE(a_half_closed_client_is_answered),
           WEIR_CASE(w2_a_request_within_a_request_is_not_answered), WEIR_CASE(a_header_past_its_limit),
           WEIR_CASE(w1_a_slow_request_is_cut), WEIR_CASE(an_idle_connection_is_closed),
           WEIR_CASE(a_deferred_request_is_finished_elsewhere), WEIR_CASE(a_stop_waits_for_what_is_deferred),
           WEIR_CASE(a_stop_lets_requests_end), WEIR_CASE(no_number_of_clients_stalls),
           WEIR_CASE(every_allocation_of_open))

/* SPDX-License-Identifier: Apache-2.0 */
/* The server among clients that break the rules, do not read, and come in thousands; and without descriptors. */
#include "http_client.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <weir/http/server/server.h>
#include <weir/store/base/alloc.h>
#include <weir/store/base/clock.h>
#include <weir/store/base/metrics.h>

#define REPLY_BYTES (5u << 20) /* more than a kernel takes; a buffer that doubles has 3 MiB more */
#define ARENA_BYTES (2u << 20)
#define BODY_MAX    1000u

static weir_err hello(void *context, weir_http_request *request) {
    (void)context;
    weir_buf_text(weir_http_out(request), "hello\n");
    weir_http_reply(request, 200, "text/plain");
    return WEIR_OK;
}

static weir_err large(void *context, weir_http_request *request) {
    static const char line[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde\n";
    (void)context;
    assert_non_null(weir_arena_alloc(weir_http_arena(request), ARENA_BYTES));
    for (size_t i = 0; i < REPLY_BYTES; i += sizeof line - 1)
        weir_buf_append(weir_http_out(request), line, sizeof line - 1);
    weir_http_reply(request, 200, "text/plain");
    return WEIR_OK;
}

static const weir_http_route routes[] = {
    {"GET", "/hello", WEIR_HTTP_ANYONE, NULL, 0, hello},
    {"POST", "/body", WEIR_HTTP_ANYONE, NULL, BODY_MAX, hello},
    {"GET", "/large", WEIR_HTTP_ANYONE, NULL, 0, large},
};

static weir_http_opts standard(void) {
    return (weir_http_opts){.listen = "127.0.0.1:0",
                            .routes = routes,
                            .route_count = sizeof routes / sizeof routes[0],
                            .connections_per_ip = 20000};
}

static weir_http *serve(const weir_http_opts *opts) {
    weir_http *http;
    assert_ok(weir_http_open(opts, &http));
    return http;
}

/* Asks until the answer is a greeting: for what is to come back by itself. */
static void served(const weir_http *http) {
    for (int status = 0; status != 200;) {
        http_answer answer;
        client_ask(weir_http_port(http), "GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n", &answer);
        status = answer.status;
        answer_free(&answer);
    }
}

static int connect_to(const weir_http *http, int fd) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(weir_http_port(http))};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

static int new_socket(void) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    return fd;
}

/* --- requests that are none --------------------------------------------------------------------------------------- */

/* Lines that begin as a status line does. */
static unsigned status_lines(const char *text) {
    unsigned count = !strncmp(text, "HTTP/", 5);
    for (const char *at = text; (at = strstr(at, "\nHTTP/")); at++)
        count++;
    return count;
}

/* One status line, whoever writes it, and then the end: two, and the next request's answer is somebody else's. */
static void each_bad_request_has_one_answer(void **state) {
    (void)state;
    static const struct {
        const char *text, *status;
    } rows[] = {
        {"GET /hello HTTP/1.1\r\nHost: localhost\r\nContent-Length: abc\r\n\r\n", "400"},
        {"GET /hello HTTP/1.1\r\nHost: localhost\r\nContent-Length:\r\n\r\n", "400"},
        {"GET /hello HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0x10\r\n\r\n", "400"},
        {"POST /body HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\nx", "400"},
        {"POST /body HTTP/1.1\r\nHost: localhost\r\nContent-Length: +1\r\n\r\nx", "400"},
        {"POST /body HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1, 1\r\n\r\nx", "400"},
        {"POST /body HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1 1\r\n\r\nx", "400"},
        {"POST /body HTTP/1.1\r\nHost: localhost\r\nContent-Length: 18446744073709551615\r\n\r\n", "413"},
        {"POST /body HTTP/1.1\r\nHost: localhost\r\nContent-Length: 18446744073709551616\r\n\r\n", "413"},
        {"POST /body HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999999\r\n\r\n", "413"},
        {"POST /body HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1001\r\n\r\n", "413"},
        {"POST /body HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx", "400"},
        {"POST /body HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: x\r\n\r\nxx", "400"},
        {"POST /body HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\nContent-Length: 1\r\n\r\nxx", "400"},
        {"GET /hello HTTP/1.1\r\n\r\n", "400"},
        {"GET /hello HTTP/1.1\r\nHos: localhost\r\n\r\n", "400"},
        {"POST /body HTTP/1.1\r\nContent-Length: 1\r\n\r\nx", "400"},
        {"GET /hello HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n", "400"},
        {"GET /he llo HTTP/1.1\r\nHost: localhost\r\n\r\n", "400"},
        {"GET /hello HTTP/1.1\r\nHost: elsewhere\r\nConnection: close\r\n\r\n", "421"},
        {"GET /hello HTTP/1.1\r\nHost: localhost\r\nabc\r\n\r\n", "400"},
        {"GET /hello HTTP/1.1\r\n abc\r\nHost: localhost\r\n\r\n", "400"},
        {"POST /body HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip\r\n\r\n", "400"},
        {"POST /body HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "400"},
        {"POST /body HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nContent-Length: x\r\n\r\n0\r\n\r\n",
         "400"},
        {"GET /hello\r\n\r\n", "400"},
        {"GET /hello HTTP/2.0\r\nHost: localhost\r\n\r\n", "505"},
        {"GET /hello HTTP/9.9\r\nHost: localhost\r\n\r\n", "505"},
        {"GET /hello HTTZ/1.1\r\nHost: localhost\r\n\r\n", "400"},
        {"GET /nothing HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", "404"},
    };
    weir_http_opts opts = standard();
    weir_http *http = serve(&opts);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (int good_first = 0; good_first < 2; good_first++) { /* the first of a connection, and behind a good one */
            http_client client;
            http_answer answer;
            client_open(&client, weir_http_port(http));
            if (good_first) {
                client_text(&client, "GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n");
                client_read(&client, &answer);
                assert_int_equal(answer.status, 200);
                answer_free(&answer);
            }
            client_text(&client, rows[i].text);
            while (client_fill(&client)) {
            }
            unsigned lines = client.length ? status_lines(client.bytes) : 0;
            if (lines != 1 || strncmp(client.bytes + 9, rows[i].status, 3) != 0)
                fail_msg("%s%u status lines, wanted %s:\n%.*s", rows[i].text, lines, rows[i].status, (int)client.length,
                         client.bytes);
            client_close(&client);
        }
    }
    served(http);
    weir_http_close(http);
}

/* --- clients that do not read ------------------------------------------------------------------------------------- */

static uint64_t responses(void) {
    return weir_metric_counter(WEIR_METRIC_HTTP_RESPONSES_2XX) + weir_metric_counter(WEIR_METRIC_HTTP_RESPONSES_5XX);
}

static uint64_t live_bytes(void) {
    weir_alloc_stats stats;
    weir_alloc_stats_get(&stats);
    return stats.live_bytes;
}

static void w4_unread_replies_stay_in_the_budget(void **state) {
    (void)state;
    enum { READERS = 40 };
    weir_http_opts opts = standard();
    opts.memory_bytes = 48u << 20;
    weir_http *http = serve(&opts);
    int fds[READERS], small = 4096;
    served(http);
    uint64_t before = live_bytes(), answered = responses(),
             refused = weir_metric_counter(WEIR_METRIC_HTTP_RESPONSES_5XX);
    for (size_t i = 0; i < READERS; i++) {
        static const char ask[] = "GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n";
        fds[i] = new_socket();
        assert_int_equal(setsockopt(fds[i], SOL_SOCKET, SO_RCVBUF, &small, sizeof small), 0);
        connect_to(http, fds[i]);
        assert_int_equal(send(fds[i], ask, sizeof ask - 1, MSG_NOSIGNAL), sizeof ask - 1);
    }
    while (responses() < answered + READERS)
        usleep(1000);
    uint64_t held = live_bytes() - before;
    if (held > opts.memory_bytes + opts.memory_bytes / 5)
        fail_msg("%llu bytes are held, of a budget of %llu", (unsigned long long)held,
                 (unsigned long long)opts.memory_bytes);
    /* Somebody was refused: the budget was reached, else this shows nothing. How much is still held is the kernel's
     * affair, which takes more of each reply the longer it lasts. */
    refused = weir_metric_counter(WEIR_METRIC_HTTP_RESPONSES_5XX) - refused;
    assert_in_range(refused, 1, READERS - 1); /* and not everybody */
    served(http);
    for (size_t i = 0; i < READERS; i++)
        close(fds[i]);
    while (live_bytes() - before > opts.memory_bytes / 4) /* and comes back */
        usleep(1000);
    weir_http_close(http);
}

/* --- thousands ------------------------------------------------------------------------------------------------ */

/* Ten times as many as there are places say nothing, five hundred one byte at a time: who asks is answered. */
static void idle_and_slow_clients_keep_nobody_out(void **state) {
    (void)state;
    enum { IDLE = 10000, SLOW = 500, PLACES = 1000 };
    static int idle[IDLE], slow[SLOW];
    struct rlimit before, more;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    more = before;
    more.rlim_cur = IDLE + SLOW + 2 * PLACES + 100;
    if (more.rlim_cur > before.rlim_max) skip();
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &more), 0);
    weir_http_opts opts = standard();
    opts.connections = PLACES;
    opts.idle_us = 3600 * WEIR_US_PER_S; /* so that nothing but their number makes them go */
    opts.request_us = 3600 * WEIR_US_PER_S;
    weir_http *http = serve(&opts);
    for (size_t i = 0; i < SLOW; i++) {
        static const char part[] = "POST /body HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\nX-";
        slow[i] = connect_to(http, new_socket());
        assert_int_equal(send(slow[i], part, sizeof part - 1, MSG_NOSIGNAL), sizeof part - 1);
    }
    while (weir_metric_counter(WEIR_METRIC_HTTP_REQUESTS) < SLOW)
        usleep(1000);
    for (size_t i = 0; i < IDLE; i++) {
        idle[i] = connect_to(http, new_socket());
        if (i % 1000 == 999) served(http);
    }
    assert_true(weir_metric_counter(WEIR_METRIC_HTTP_IDLE_CUTS) +
                    weir_metric_counter(WEIR_METRIC_HTTP_REFUSED_CONNECTIONS) >=
                IDLE - PLACES);
    for (size_t i = 0; i < SLOW; i++) { /* those in the middle of a request were not the ones that went */
        static const char rest[] = "A: b\r\n\r\n0123456789";
        char byte;
        assert_int_equal(send(slow[i], rest, sizeof rest - 1, MSG_NOSIGNAL), sizeof rest - 1);
        assert_int_equal(recv(slow[i], &byte, 1, 0), 1);
        close(slow[i]);
    }
    for (size_t i = 0; i < IDLE; i++)
        close(idle[i]);
    served(http);
    weir_http_close(http);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

/* --- no descriptors ------------------------------------------------------------------------------------------- */

/* The limit as low as what is open: whatever wants one more fails. */
static void take_all_descriptors(struct rlimit *beforep, int *highestp) {
    int fd;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, beforep), 0);
    struct rlimit low = *beforep;
    low.rlim_cur = 200;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
    for (*highestp = 0; (fd = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0;)
        if (fd > *highestp) *highestp = fd;
    assert_int_equal(errno, EMFILE);
}

static void without_descriptors_a_loop_rests(void **state) {
    (void)state;
    enum { WAITING = 20, FAILURES = 10 };
    static const char ask[] = "GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n";
    struct rlimit before;
    int fds[WAITING], highest;
    weir_http_opts opts = standard();
    opts.loops = 2;
    weir_http *http = serve(&opts);
    served(http);
    for (size_t i = 0; i < WAITING; i++)
        fds[i] = new_socket();
    take_all_descriptors(&before, &highest);
    int64_t begin_us = weir_clock_mono_us(weir_clock_system());
    for (size_t i = 0; i < WAITING; i++) { /* the kernel takes them; the server cannot */
        connect_to(http, fds[i]);
        assert_int_equal(send(fds[i], ask, sizeof ask - 1, MSG_NOSIGNAL), sizeof ask - 1);
    }
    while (weir_metric_counter(WEIR_METRIC_HTTP_ACCEPT_FAILURES) < FAILURES)
        usleep(1000);
    int64_t spent_us = weir_clock_mono_us(weir_clock_system()) - begin_us;
    uint64_t failures = weir_metric_counter(WEIR_METRIC_HTTP_ACCEPT_FAILURES);
    /* one a loop every 100 ms, and one that each begins with */
    assert_true(failures <= 2 * ((uint64_t)spent_us / 100000 + 1));
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    for (size_t i = 0; i < WAITING; i++) { /* by itself, and nobody who waited was forgotten */
        char byte;
        assert_int_equal(recv(fds[i], &byte, 1, 0), 1);
        close(fds[i]);
    }
    weir_http_close(http);
}

/* Who has a connection keeps it while he asks; who says nothing gives his descriptor to who waits. */
static void idle_connections_give_their_descriptors(void **state) {
    (void)state;
    enum { IDLE = 20 };
    struct rlimit before;
    int fds[IDLE], highest, waiting;
    weir_http_opts opts = standard();
    opts.loops = 1;
    weir_http *http = serve(&opts);
    for (size_t i = 0; i < IDLE; i++)
        fds[i] = connect_to(http, new_socket());
    served(http); /* all before it are taken by now: one loop, in order */
    waiting = new_socket();
    take_all_descriptors(&before, &highest);
    static const char ask[] = "GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n";
    char byte;
    connect_to(http, waiting);
    assert_int_equal(send(waiting, ask, sizeof ask - 1, MSG_NOSIGNAL), sizeof ask - 1);
    assert_int_equal(recv(waiting, &byte, 1, 0), 1);
    assert_true(weir_metric_counter(WEIR_METRIC_HTTP_IDLE_CUTS) > 0);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    close(waiting);
    for (size_t i = 0; i < IDLE; i++)
        close(fds[i]);
    weir_http_close(http);
}

WEIR_TESTS(WEIR_CASE(each_bad_request_has_one_answer), WEIR_CASE(w4_unread_replies_stay_in_the_budget),
           WEIR_CASE(idle_and_slow_clients_keep_nobody_out), WEIR_CASE(without_descriptors_a_loop_rests),
           WEIR_CASE(idle_connections_give_their_descriptors))

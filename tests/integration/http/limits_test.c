/* SPDX-License-Identifier: Apache-2.0 */
/* limits_test.c - a real `weir serve` where descriptors are few: what clients take, the log does not miss. */
#include "serve_child.h"

#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>

#define IDLE      1100u
#define ADDRESSES 19u

/* What serve_spawn runs is a shell that limits itself, and then the server. */
static void limit_children(const char *ulimits) {
    char path[4096];
    snprintf(path, sizeof path, "%s", weir_test_path("limited"));
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "#!/bin/sh\n%s\nexec '%s' \"$@\"\n", ulimits, weir_test_program());
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(path, 0700), 0);
    assert_int_equal(setenv("WEIR_PROGRAM", path, 1), 0);
}

static void limits_of(const serve_child *child, unsigned long *softp, unsigned long *hardp) {
    char path[64], line[256], soft[24], hard[24];
    bool found = false;
    snprintf(path, sizeof path, "/proc/%d/limits", (int)child->pid);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (!found && fgets(line, sizeof line, file))
        found = sscanf(line, "Max open files %23s %23s", soft, hard) == 2;
    fclose(file);
    assert_true(found);
    *softp = strtoul(soft, NULL, 10);
    *hardp = strtoul(hard, NULL, 10);
}

static void the_soft_limit_is_raised(void **state) {
    (void)state;
    serve_child child;
    unsigned long soft = 0, hard = 0;
    limit_children("ulimit -S -n 300");
    serve_start(&child, weir_test_path("data"), NULL);
    assert_true(child.port != 0);
    limits_of(&child, &soft, &hard);
    assert_true(soft > 300 && (soft == hard || soft == 1u << 18));
    assert_int_equal(serve_end(&child, SIGTERM), 0);
}

static int connect_from(const serve_child *child, uint32_t host) {
    struct sockaddr_in from = {.sin_family = AF_INET}, to = {.sin_family = AF_INET, .sin_port = htons(child->port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    from.sin_addr.s_addr = htonl(INADDR_LOOPBACK + host);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(fd, (struct sockaddr *)&from, sizeof from), 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

/* 503 is an answer too: the next one is let in when an idle one has gone. */
static void post_until_taken(const serve_child *child, unsigned n) {
    char request[1024], body[512];
    snprintf(body, sizeof body,
             "{\"id\":\"p%u\",\"time\":\"2026-01-05T10:00:00Z\",\"account\":\"a1\",\"payee\":\"a2\",\"amount\":17,"
             "\"currency\":\"EUR\",\"channel\":\"transfer\"}",
             n);
    snprintf(request, sizeof request,
             "POST /v1/events?source=payments HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
             "Content-Length: %zu\r\n\r\n%s",
             strlen(body), body);
    for (int status = 0; status != 200;) {
        http_answer answer;
        client_ask(child->port, request, &answer);
        status = answer.status;
        if (status && status != 200 && status != 503) fail_msg("%d: %s", status, answer.body);
        if (answer.body && strstr(answer.body, "log cannot be written")) fail_msg("%s", answer.body);
        answer_free(&answer);
    }
}

/* By the defaults, 1,100 clients that say nothing took all descriptors of a limit of 1,024, and the log had none. */
static void idle_clients_leave_the_log_its_descriptors(void **state) {
    (void)state;
    static int fds[IDLE];
    serve_child child;
    limit_children("ulimit -n 400");
    const char *const more[] = {"--set", "http.idle_timeout=1h", "--set", "store.seal_interval=100ms", NULL};
    serve_start(&child, weir_test_path("data"), more);
    assert_true(child.port != 0);
    for (unsigned i = 0; i < IDLE; i++) {
        fds[i] = connect_from(&child, 1 + i % ADDRESSES);
        if (i % 50 == 0) post_until_taken(&child, i);
    }
    for (unsigned i = 0; i < IDLE; i++)
        close(fds[i]);
    post_until_taken(&child, IDLE);
    serve_await(&child, "/v1/vertices/payment/p1100", NULL, 200, NULL);
    serve_await(&child, "/v1/vertices/payment/p1050", NULL, 200, NULL);
    serve_await(&child, "/readyz", NULL, 200, NULL);
    assert_int_equal(serve_end(&child, SIGTERM), 0);
}

/* None left at all, for whatever reason: the server rests, and serves again when there are some. */
static void serving_comes_back_with_the_descriptors(void **state) {
    (void)state;
    serve_child child;
    struct rlimit none = {8, 0}, before;
    const char *const more[] = {"--set", "http.threads=2", NULL};
    serve_start(&child, weir_test_path("data"), more);
    assert_true(child.port != 0);
    serve_await(&child, "/readyz", NULL, 200, NULL);
    assert_int_equal(prlimit(child.pid, RLIMIT_NOFILE, NULL, &before), 0);
    none.rlim_max = before.rlim_max;
    http_client earlier; /* one whose request has begun is not closed for want of descriptors */
    client_open(&earlier, child.port);
    client_text(&earlier, "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\nGET /metrics HTTP/1.1\r\n");
    http_answer answer;
    client_read(&earlier, &answer);
    assert_int_equal(answer.status, 200);
    answer_free(&answer);
    int64_t begin_us = weir_clock_mono_us(weir_clock_system());
    assert_int_equal(prlimit(child.pid, RLIMIT_NOFILE, &none, NULL), 0);
    int waiting = connect_from(&child, 1);
    static const char ask[] = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    assert_int_equal(send(waiting, ask, sizeof ask - 1, MSG_NOSIGNAL), sizeof ask - 1);
    struct pollfd wait = {.fd = waiting, .events = POLLIN};
    assert_int_equal(poll(&wait, 1, 1000), 0); /* nobody answers */
    client_text(&earlier, "Host: localhost\r\n\r\n");
    client_read(&earlier, &answer);
    const char *told = strstr(answer.body, "\nweir_http_accept_failures_total ");
    assert_true(told && strtoul(strchr(told, ' ') + 1, NULL, 10) > 0);
    printf("weir_http_accept_failures_total within %.2f s: no descriptors\n",
           (double)(serve_now_us() - begin_us) / 1e6);
    answer_free(&answer);
    client_close(&earlier);
    assert_int_equal(prlimit(child.pid, RLIMIT_NOFILE, &before, NULL), 0);
    http_client client = {.fd = waiting, .bytes = malloc(CLIENT_BYTES_MAX + 1)};
    assert_non_null(client.bytes);
    while (client_fill(&client)) {
    }
    const char *failures = strstr(client.bytes, "\nweir_http_accept_failures_total ");
    assert_non_null(failures);
    unsigned long count = strtoul(strchr(failures, ' ') + 1, NULL, 10);
    int64_t took_us = weir_clock_mono_us(weir_clock_system()) - begin_us;
    /* and nobody spins: each of two loops tries ten times a second at most, however fast the machine is */
    assert_in_range(count, 1, 2 * (10 * took_us / WEIR_US_PER_S + 1));
    client_close(&client);
    post_until_taken(&child, 1);
    assert_int_equal(serve_end(&child, SIGTERM), 0);
}

WEIR_TESTS(WEIR_CASE(the_soft_limit_is_raised), WEIR_CASE(idle_clients_leave_the_log_its_descriptors),
           WEIR_CASE(serving_comes_back_with_the_descriptors))

/* SPDX-License-Identifier: Apache-2.0 */
/* memory_test.c - a real `weir serve` and readers that ask for much and read nothing: what it takes at its peak. */
#include "serve_child.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED true
#else
#define SANITIZED false
#endif

#define READERS     300u
#define EVENTS      300u
#define FANOUT      250u
#define TARGETS     48u
#define REPLY_MIN   ((size_t)6 << 20) /* more than the kernel takes off the server's hands for one connection */
#define REQUEST_MAX 4096u

static void post_events(const serve_child *child) {
    static char text[EVENTS * 1200], body[EVENTS * 1200];
    size_t length = 0;
    http_answer answer;
    for (unsigned n = 0; n < EVENTS; n++)
        length += (size_t)snprintf(body + length, sizeof body - length,
                                   "{\"id\":\"p%01000u\",\"time\":\"2026-01-05T10:00:00Z\",\"account\":\"a1\","
                                   "\"amount\":1,\"currency\":\"EUR\",\"channel\":\"web\"}\n",
                                   n);
    snprintf(text, sizeof text,
             "POST /v1/events?source=payments HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-ndjson\r\n"
             "Content-Length: %zu\r\n\r\n%s",
             length, body);
    client_ask(child->port, text, &answer);
    if (answer.status != 200) fail_msg("the events are answered %d: %s", answer.status, answer.body);
    answer_free(&answer);
}

static void make_request(char request[REQUEST_MAX]) {
    char body[REQUEST_MAX - 256];
    size_t length = (size_t)snprintf(body, sizeof body, "{\"targets\":[");
    for (unsigned i = 0; i < TARGETS; i++)
        length += (size_t)snprintf(body + length, sizeof body - length, "%s{\"type\":\"account\",\"key\":\"a1\"}",
                                   i ? "," : "");
    snprintf(body + length, sizeof body - length,
             "],\"steps\":[{\"relation\":\"paid_by\",\"direction\":\"in\",\"fanout\":%u}]}", FANOUT);
    snprintf(request, REQUEST_MAX,
             "POST /v1/sample HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
             "Content-Length: %zu\r\n\r\n%s",
             strlen(body), body);
}

/* Asks and reads: how many bytes the answer has, which is far more than the client of other tests takes. */
static size_t read_reply(const serve_child *child, const char *request) {
    static char bytes[1 << 16];
    http_client client;
    size_t length = 0;
    const char *end = strstr(request, "\r\n");
    client_open(&client, child->port);
    client_send(&client, request, (size_t)(end - request));
    client_text(&client, "\r\nConnection: close");
    client_text(&client, end);
    for (ssize_t got; (got = recv(client.fd, bytes, sizeof bytes, 0)) > 0;)
        length += (size_t)got;
    client_close(&client);
    return length;
}

/* In KiB. */
static uint64_t peak_of(const serve_child *child) {
    char path[64], line[256];
    uint64_t peak = 0;
    snprintf(path, sizeof path, "/proc/%d/status", (int)child->pid);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (!peak && fgets(line, sizeof line, file))
        if (!strncmp(line, "VmHWM:", 6)) peak = strtoull(line + 6, NULL, 10);
    fclose(file);
    assert_true(peak > 0);
    return peak;
}

static uint64_t metric(const char *metrics, const char *name) {
    const char *line = strstr(metrics, name);
    assert_non_null(line);
    return strtoull(line + strlen(name), NULL, 10);
}

/* How many it has given, those that refuse among them. */
static uint64_t answers(const serve_child *child, uint64_t *refusedp) {
    http_answer answer;
    serve_get(child, "/metrics", &answer);
    for (; answer.status == 503; serve_get(child, "/metrics", &answer)) { /* its own answer needs memory, too */
        answer_free(&answer);
        usleep(10000);
    }
    assert_int_equal(answer.status, 200);
    *refusedp = metric(answer.body, "\nweir_http_responses_5xx_total ");
    uint64_t well = metric(answer.body, "\nweir_http_responses_2xx_total ");
    answer_free(&answer);
    return *refusedp + well;
}

static int ask_and_leave(const serve_child *child, const char *request) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(child->port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), small = 4096;
    assert_true(fd >= 0);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small), 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    assert_int_equal(send(fd, request, strlen(request), MSG_NOSIGNAL), strlen(request));
    return fd;
}

/* The peak had no bound: replies were counted once they were whole, and the holes between those that were held fitted
 * no other. */
static void the_peak_is_within(const char *setting, uint64_t budget_kib) {
    char request[REQUEST_MAX];
    int fds[READERS];
    uint64_t refused, refused_before;
    serve_child child;
    if (SANITIZED) weir_test_skip("a sanitizer keeps memory of its own");
    const char *const more[] = {"--set", setting,
                                "--set", "http.connections_per_ip=1000",
                                "--set", "http.idle_timeout=1h", /* so that none of them is cut off */
                                "--set", "http.request_timeout=1h",
                                NULL};
    serve_start(&child, weir_test_path("data"), more);
    assert_true(child.port);
    serve_await(&child, "/readyz", NULL, 200, NULL);
    post_events(&child);
    make_request(request);
    while (read_reply(&child, request) < REPLY_MIN) /* until all of them are applied */
        usleep(10000);
    (void)read_reply(&child, request);
    uint64_t base_kib = peak_of(&child), before = answers(&child, &refused_before);
    for (size_t i = 0; i < READERS; i++)
        fds[i] = ask_and_leave(&child, request);
    while (answers(&child, &refused) < before + READERS)
        usleep(10000);
    uint64_t peak_kib = peak_of(&child);
    print_message("%s: %llu KiB before, %llu KiB at the peak, %llu refused\n", setting, (unsigned long long)base_kib,
                  (unsigned long long)peak_kib, (unsigned long long)(refused - refused_before));
    assert_true(refused > refused_before); /* else the budget was not reached */
    assert_true(peak_kib > base_kib + budget_kib / 2);
    assert_true(peak_kib <= base_kib + budget_kib + budget_kib / 5);
    for (size_t i = 0; i < READERS; i++)
        close(fds[i]);
    while (read_reply(&child, request) < REPLY_MIN) /* as soon as it has seen them go */
        usleep(10000);
    assert_int_equal(serve_end(&child, SIGTERM), 0);
}

static void unread_replies_stay_within_128_mib(void **state) {
    (void)state;
    the_peak_is_within("http.memory=128MiB", 128u << 10);
}

static void unread_replies_stay_within_48_mib(void **state) {
    (void)state;
    the_peak_is_within("http.memory=48MiB", 48u << 10);
}

WEIR_TESTS(WEIR_CASE(unread_replies_stay_within_128_mib), WEIR_CASE(unread_replies_stay_within_48_mib))

/* SPDX-License-Identifier: Apache-2.0 */
/* serve_child.h - a real `weir serve` in a process of its own, on a free port. */
#ifndef SERVE_CHILD_H
#define SERVE_CHILD_H

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <weir/store/base/clock.h>

#include "http_client.h"

#define SERVE_ARGUMENTS_MAX 32
#define SERVE_AWAIT_MS_MAX  (15 * 60 * 1000) /* whatever a case may take: campaigns have hours */

typedef struct serve_child {
    pid_t pid;
    int out;
    uint16_t port; /* 0: it did not come up; see the log in the case's folder */
} serve_child;

/* What it says on stdout up to the first line's end. */
static inline void serve_read_port(serve_child *child) {
    char line[1024] = "";
    size_t length = 0;
    while (length + 1 < sizeof line && !strchr(line, '\n')) {
        ssize_t got = read(child->out, line + length, sizeof line - 1 - length);
        if (got <= 0) break;
        length += (size_t)got;
        line[length] = 0;
    }
    const char *colon = strstr(line, "http://127.0.0.1:");
    child->port = colon ? (uint16_t)strtoul(colon + strlen("http://127.0.0.1:"), NULL, 10) : 0;
}

/* `weir serve --listen 127.0.0.1:0 ARGUMENTS…`, ended by NULL; what it says is not read yet. */
static inline void serve_spawn(serve_child *child, const char *const *arguments) {
    const char *words[SERVE_ARGUMENTS_MAX] = {weir_test_program(), "serve", "--listen", "127.0.0.1:0", NULL};
    size_t count = 4;
    int ends[2];
    for (size_t i = 0; arguments[i] && count + 1 < SERVE_ARGUMENTS_MAX; i++)
        words[count++] = arguments[i];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    *child = (serve_child){.out = ends[0]};
    child->pid = fork();
    assert_true(child->pid >= 0);
    if (!child->pid) {
        char *own[SERVE_ARGUMENTS_MAX] = {NULL};
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(ends[1], STDOUT_FILENO);
        for (size_t i = 0; i < count; i++)
            memcpy(&own[i], &words[i], sizeof own[i]);
        execv(own[0], own);
        _exit(127);
    }
    close(ends[1]);
}

/* more: further arguments, ended by NULL; or NULL. */
static inline void serve_start(serve_child *child, const char *data, const char *const *more) {
    const char *arguments[SERVE_ARGUMENTS_MAX] = {"--schema", "payments", "--data", data, NULL};
    size_t count = 4;
    for (size_t i = 0; more && more[i] && count + 1 < SERVE_ARGUMENTS_MAX; i++)
        arguments[count++] = more[i];
    serve_spawn(child, arguments);
    serve_read_port(child);
}

/* Its exit status; 128 + the signal that ended it. */
static inline int serve_end(serve_child *child, int signal_number) {
    int status;
    kill(child->pid, signal_number);
    assert_int_equal(waitpid(child->pid, &status, 0), child->pid);
    close(child->out);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Sooner than the runner ends the case, so that it can be said what was answered. */
static inline int64_t serve_await_ms(void) {
    int64_t most_ms = weir_test_limit_ms() / 10 * 8;
    return most_ms < SERVE_AWAIT_MS_MAX ? most_ms : SERVE_AWAIT_MS_MAX;
}

/* Asks until the status is the wanted one: for what follows within milliseconds, such as readiness. */
static inline void serve_await(const serve_child *child, const char *path, const char *headers, int status,
                               const char *part) {
    char text[1024];
    snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nHost: localhost\r\n%s\r\n", path, headers ? headers : "");
    int64_t until_us = weir_clock_mono_us(weir_clock_system()) + serve_await_ms() * 1000;
    for (bool there = false; !there;) {
        http_answer answer;
        client_ask(child->port, text, &answer);
        there = answer.status == status && (!part || strstr(answer.body, part));
        if (!there && weir_clock_mono_us(weir_clock_system()) >= until_us)
            fail_msg("%s: %d%s%s is wanted; after %lld s the answer was %d: %.4000s", path, status,
                     part ? " with " : "", part ? part : "", (long long)serve_await_ms() / 1000, answer.status,
                     answer.body);
        answer_free(&answer);
        if (!there) usleep(10000);
    }
}

#define SERVE_JSON  "application/json"
#define SERVE_LINES "application/x-ndjson"

static inline void serve_get(const serve_child *child, const char *path, http_answer *answer) {
    char text[512];
    snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path);
    client_ask(child->port, text, answer);
}

static inline void serve_post(const serve_child *child, const char *path, const char *type, const char *body,
                              size_t length, http_answer *answer) {
    char head[512];
    http_client client;
    snprintf(head, sizeof head,
             "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: %s\r\nContent-Length: %zu\r\n\r\n", path, type,
             length);
    client_open(&client, child->port);
    client_text(&client, head);
    client_send(&client, body, length);
    client_read(&client, answer);
    client_close(&client);
}

/* Fails unless it was answered with this status, and with this part in it (NULL: any); frees the answer. */
static inline void serve_expect(const char *asked, http_answer *answer, int status, const char *part) {
    if (answer->status != status || (part && !strstr(answer->body, part)))
        fail_msg("%s was answered %d, and not %d%s%s: %.4000s", asked, answer->status, status, part ? " with " : "",
                 part ? part : "", answer->body);
    answer_free(answer);
}

static inline void serve_expect_get(const serve_child *child, const char *path, int status, const char *part) {
    http_answer answer;
    serve_get(child, path, &answer);
    serve_expect(path, &answer, status, part);
}

static inline void serve_expect_post(const serve_child *child, const char *path, const char *type, const char *body,
                                     int status, const char *part) {
    http_answer answer;
    serve_post(child, path, type, body, strlen(body), &answer);
    serve_expect(path, &answer, status, part);
}

/* --- what a failing state looks like from outside -------------------------------------------------------------------
 * How long it takes until it shows is printed, for people; a state that never shows meets the limit of its case. */

static inline int64_t serve_now_us(void) {
    return weir_clock_mono_us(weir_clock_system());
}

/* What /readyz says of why it is red; NULL: it is green. To be freed. */
static inline char *serve_why_red(const serve_child *child) {
    http_answer answer;
    char *sentence = NULL;
    serve_get(child, "/readyz", &answer);
    const char *from = answer.status == 503 ? strstr(answer.body, "\"detail\":\"") : NULL;
    const char *to = from ? strstr(from, "\",\"ready\":false") : NULL;
    if (to) sentence = strndup(from + strlen("\"detail\":\""), (size_t)(to - from) - strlen("\"detail\":\""));
    if (!sentence && answer.status != 200) fail_msg("/readyz was answered %d: %s", answer.status, answer.body);
    answer_free(&answer);
    return sentence;
}

/* Until /readyz is red with this part in its sentence, returned, to be freed. since_us: when the state began. */
static inline char *serve_await_red(const serve_child *child, const char *state, int64_t since_us, const char *part) {
    char *sentence = NULL;
    while (!sentence || !strstr(sentence, part)) {
        if (sentence) usleep(10000);
        if (serve_now_us() - since_us > serve_await_ms() * 1000)
            fail_msg("%s: '%s' is wanted; /readyz says '%s'", state, part, sentence ? sentence : "ready");
        free(sentence);
        sentence = serve_why_red(child);
    }
    printf("red after %.2f s: %s\n", (double)(serve_now_us() - since_us) / 1e6, state);
    return sentence;
}

/* Ever the same, also when more than all the words that errors are kept in have been used since. Frees the sentence.
 * part: once another sentence with it may take its place, for a second file that is found damaged; NULL: never. */
static inline void serve_is_as_red(const serve_child *child, char *sentence, const char *part) {
    for (unsigned i = 0; i < 600; i++) {
        http_answer answer;
        serve_get(child, "/v1/vertices/nothing/1", &answer);
        assert_int_equal(answer.status, 404);
        answer_free(&answer);
        if (i % 100 != 99) continue;
        char *again = serve_why_red(child);
        bool same = again && strcmp(again, sentence) == 0;
        if (!same && !(again && part && strstr(again, part)))
            fail_msg("it said '%s', and then '%s'", sentence, again ? again : "ready");
        if (!same) part = NULL;
        free(sentence);
        sentence = again;
    }
    free(sentence);
}

/* Over a connection that is open: for who has no descriptors left. */
static inline double serve_metric_over(http_client *client, const char *name) {
    http_answer answer;
    char line[128];
    snprintf(line, sizeof line, "\n%s ", name);
    client_text(client, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
    client_read(client, &answer);
    const char *at = answer.status == 200 ? strstr(answer.body, line) : NULL;
    if (!at) fail_msg("/metrics was answered %d, without %s", answer.status, name);
    double value = strtod(at + strlen(line), NULL);
    answer_free(&answer);
    return value;
}

/* Until the metric is above this. */
static inline void serve_await_metric(http_client *client, const char *state, int64_t since_us, const char *name,
                                      double above) {
    while (serve_metric_over(client, name) <= above) {
        if (serve_now_us() - since_us > serve_await_ms() * 1000) fail_msg("%s: %s stays as it was", state, name);
        usleep(10000);
    }
    printf("%s after %.2f s: %s\n", name, (double)(serve_now_us() - since_us) / 1e6, state);
}

static inline bool serve_nothing_is_behind(const serve_child *child) {
    http_answer answer;
    client_ask(child->port, "GET /v1/status HTTP/1.1\r\nHost: localhost\r\n\r\n", &answer);
    bool applied = answer.status == 200;
    for (const char *at = answer.body; applied && at && (at = strstr(at, "\"behind\":")); at++)
        applied = strtoull(at + strlen("\"behind\":"), NULL, 10) == 0 && strncmp(at, "\"behind\":null", 13) != 0;
    answer_free(&answer);
    return applied;
}

/* Until all that was acknowledged is applied, and all of each event. An answer may say how it was 5 ms ago, so none is
 * believed before more than those have passed. */
static inline void serve_await_applied(const serve_child *child) {
    do
        usleep(10000);
    while (!serve_nothing_is_behind(child));
}

#endif /* SERVE_CHILD_H */

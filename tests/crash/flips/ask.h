/* SPDX-License-Identifier: Apache-2.0 */
/* ask.h - requests to a server that may be dying: what does not come in time is an outcome here, not a failed test. */
#ifndef WEIR_CRASH_FLIPS_ASK_H
#define WEIR_CRASH_FLIPS_ASK_H

#include <arpa/inet.h>
#include <jansson.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "process.h"

#define BOSS_KEY  "flips-boss"
#define GUEST_KEY "flips-guest"

enum { ANSWER_GONE = 0, ANSWER_SILENT = -1 }; /* besides the statuses of HTTP */

typedef struct asker {
    uint16_t port;
    int64_t patience_ms;
    int fd; /* -1: not connected */
    char *bytes;
    size_t length, capacity;
} asker;

static inline void ask_end(asker *a) {
    if (a->fd >= 0) close(a->fd);
    a->fd = -1;
    a->length = 0;
}

static inline void ask_free(asker *a) {
    ask_end(a);
    free(a->bytes);
    a->bytes = NULL;
    a->capacity = 0;
}

static inline bool ask_connect(asker *a) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(a->port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    a->length = 0;
    a->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(a->fd >= 0);
    if (connect(a->fd, (struct sockaddr *)&address, sizeof address) == 0) return true;
    ask_end(a);
    return false;
}

static inline bool ask_send(asker *a, const char *bytes, size_t length) {
    while (length) {
        ssize_t sent = send(a->fd, bytes, length, MSG_NOSIGNAL);
        if (sent <= 0) return false;
        bytes += sent;
        length -= (size_t)sent;
    }
    return true;
}

/* More of the answer: 1, or ANSWER_GONE, ANSWER_SILENT. */
static inline int ask_fill(asker *a, int64_t end_ms) {
    struct pollfd wait = {.fd = a->fd, .events = POLLIN};
    int64_t left_ms = end_ms - now_ms();
    if (left_ms <= 0 || poll(&wait, 1, (int)left_ms) != 1) return ANSWER_SILENT;
    if (a->length + 65536 >= a->capacity) {
        a->capacity = a->capacity ? a->capacity * 2 : 1u << 18;
        a->bytes = realloc(a->bytes, a->capacity);
        assert_non_null(a->bytes);
    }
    ssize_t got = recv(a->fd, a->bytes + a->length, a->capacity - a->length - 1, 0);
    if (got <= 0) return ANSWER_GONE;
    a->length += (size_t)got;
    a->bytes[a->length] = 0;
    return 1;
}

/* The answer's status; its body is in *bodyp until the next question. */
static inline int ask_read(asker *a, const char **bodyp) {
    int64_t end_ms = now_ms() + a->patience_ms;
    char *end = NULL;
    int more = 1;
    while (more == 1 && !(a->length && (end = strstr(a->bytes, "\r\n\r\n"))))
        more = ask_fill(a, end_ms);
    if (more != 1) return more;
    const char *said = strcasestr(a->bytes, "\r\nContent-Length:");
    size_t head = (size_t)(end - a->bytes) + 4, body = said && said < end ? strtoul(said + 17, NULL, 10) : 0;
    while (more == 1 && a->length < head + body)
        more = ask_fill(a, end_ms);
    *bodyp = a->bytes + head;
    return more == 1 ? (int)strtol(a->bytes + 9, NULL, 10) : more;
}

/* One request and its answer. A connection that was closed meanwhile is opened again, once. */
static inline int ask_as(asker *a, const char *key, const char *method, const char *path, const char *type,
                         const char *body, const char **bodyp) {
    char head[512];
    int status = ANSWER_GONE;
    *bodyp = "";
    int length = snprintf(head, sizeof head,
                          "%s %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n"
                          "Content-Type: %s\r\nContent-Length: %zu\r\n\r\n",
                          method, path, key, type, strlen(body));
    for (int tries = 0; tries < 2 && status == ANSWER_GONE; tries++) {
        if (a->fd < 0 && !ask_connect(a)) return ANSWER_GONE;
        a->length = 0;
        if (ask_send(a, head, (size_t)length) && ask_send(a, body, strlen(body))) status = ask_read(a, bodyp);
        if (status <= 0) ask_end(a);
    }
    return status;
}

static inline int ask(asker *a, const char *path, const char **bodyp) {
    return ask_as(a, BOSS_KEY, "GET", path, "application/json", "", bodyp);
}

static inline int ask_post(asker *a, const char *path, const char *type, const char *body, const char **bodyp) {
    return ask_as(a, BOSS_KEY, "POST", path, type, body, bodyp);
}

/* --- readiness ----------------------------------------------------------------------------------------------*/

typedef enum readiness { READY, WAITS, RED, GONE, SILENT } readiness;

/* behind: of all sources together; -1 where it is not said. sentence: why it is not ready. */
static inline readiness ask_ready(asker *a, int64_t *behindp, char sentence[SENTENCE_MAX]) {
    const char *body, *name;
    json_t *source;
    int status = ask(a, "/readyz?verbose", &body);
    json_t *root = json_loads(body, 0, NULL);
    const char *detail = json_string_value(json_object_get(root, "detail"));
    *behindp = root ? 0 : -1;
    json_object_foreach(json_object_get(root, "freshness"), name, source) {
        const json_t *behind = json_object_get(source, "behind");
        *behindp = json_is_integer(behind) && *behindp >= 0 ? *behindp + json_integer_value(behind) : -1;
    }
    snprintf(sentence, SENTENCE_MAX, "%s", detail ? detail : "");
    bool waits = detail && (strstr(detail, "; wait") || strstr(detail, "rebuil"));
    json_decref(root);
    if (status == ANSWER_GONE) return GONE;
    if (status == ANSWER_SILENT) return SILENT;
    return status == 200 ? READY : waits ? WAITS : RED;
}

#endif /* WEIR_CRASH_FLIPS_ASK_H */

/* SPDX-License-Identifier: Apache-2.0 */
/* http_client.h - a socket, bytes as the test writes them, and the answer cut into status, headers and body. */
#ifndef HTTP_CLIENT_H
#define HTTP_CLIENT_H

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "weir_test.h"

#define CLIENT_PATIENCE_MS 30000
#define CLIENT_BYTES_MAX   (1u << 20)

typedef struct http_answer {
    int status; /* 0: the connection was closed without one */
    char head[8192];
    char *body; /* ended by 0 */
    size_t length;
} http_answer;

typedef struct http_client {
    int fd;
    char *bytes; /* read and not yet taken */
    size_t length;
} http_client;

static inline void client_open(http_client *client, uint16_t port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    *client =
        (http_client){.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), .bytes = malloc(CLIENT_BYTES_MAX + 1)};
    assert_true(client->fd >= 0);
    assert_non_null(client->bytes);
    assert_int_equal(connect(client->fd, (struct sockaddr *)&address, sizeof address), 0);
}

static inline void client_close(http_client *client) {
    close(client->fd);
    free(client->bytes);
}

/* false: the other side has closed. */
static inline bool client_send(http_client *client, const char *bytes, size_t length) {
    while (length) {
        ssize_t sent = send(client->fd, bytes, length, MSG_NOSIGNAL);
        if (sent < 0) return false;
        bytes += sent;
        length -= (size_t)sent;
    }
    return true;
}

static inline bool client_text(http_client *client, const char *text) {
    return client_send(client, text, strlen(text));
}

/* false: the end. */
static inline bool client_fill(http_client *client) {
    struct pollfd wait = {.fd = client->fd, .events = POLLIN};
    if (client->length == CLIENT_BYTES_MAX) fail_msg("the answer is too long");
    if (poll(&wait, 1, CLIENT_PATIENCE_MS) != 1) fail_msg("the server says nothing");
    ssize_t got = recv(client->fd, client->bytes + client->length, CLIENT_BYTES_MAX - client->length, 0);
    if (got <= 0) return false;
    client->length += (size_t)got;
    client->bytes[client->length] = 0;
    return true;
}

static inline bool client_closed(http_client *client) {
    return !client->length && !client_fill(client);
}

/* The value of a header, up to the end of its line, or NULL. */
static inline const char *answer_header(const http_answer *answer, const char *name, char *buffer, size_t size) {
    size_t length = strlen(name);
    for (const char *line = strstr(answer->head, "\r\n"); line; line = strstr(line + 2, "\r\n")) {
        if (strncasecmp(line + 2, name, length) != 0 || line[2 + length] != ':') continue;
        const char *value = line + 3 + length + strspn(line + 3 + length, " ");
        snprintf(buffer, size, "%.*s", (int)strcspn(value, "\r"), value);
        return buffer;
    }
    return NULL;
}

static inline void answer_free(http_answer *answer) {
    free(answer->body);
    answer->body = NULL;
}

static inline void client_read_headers_only(http_client *client, http_answer *answer, bool body_follows) {
    char *end, text[32];
    *answer = (http_answer){0};
    while (!client->length || !(end = strstr(client->bytes, "\r\n\r\n")))
        if (!client_fill(client)) return;
    size_t head = (size_t)(end - client->bytes) + 4;
    snprintf(answer->head, sizeof answer->head, "%.*s", (int)head, client->bytes);
    answer->status = (int)strtol(client->bytes + 9, NULL, 10);
    size_t body = answer_header(answer, "Content-Length", text, sizeof text) ? strtoul(text, NULL, 10) : 0;
    if (!body_follows) body = 0;
    while (client->length < head + body)
        if (!client_fill(client)) break;
    if (client->length < head + body) body = client->length - head;
    answer->body = strndup(client->bytes + head, body);
    answer->length = body;
    client->length -= head + body;
    memmove(client->bytes, client->bytes + head + body, client->length + 1);
}

static inline void client_read(http_client *client, http_answer *answer) {
    client_read_headers_only(client, answer, true);
}

/* One request on a connection of its own. */
static inline void client_ask(uint16_t port, const char *text, http_answer *answer) {
    http_client client;
    client_open(&client, port);
    client_text(&client, text);
    client_read(&client, answer);
    client_close(&client);
}

#endif /* HTTP_CLIENT_H */

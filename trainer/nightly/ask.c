/* SPDX-License-Identifier: Apache-2.0 */
/* ask.c - one request to a server that runs on this machine: write a checkpoint. Plain HTTP/1.1, one connection. */
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/json.h>

#include "nightly_private.h"

#define PATIENCE_S      600
#define REPLY_BYTES_MAX 65536u
#define KEY_BYTES_MAX   4096u
#define HOST_BYTES_MAX  256u

typedef struct address {
    char host[HOST_BYTES_MAX], port[8];
} address;

static weir_err read_url(const char *url, address *a) {
    const char *host = strncmp(url, "http://", 7) == 0 ? url + 7 : url;
    const char *end = host + strcspn(host, "/");
    const char *bracket = *host == '[' ? memchr(host, ']', (size_t)(end - host)) : NULL;
    const char *begin = bracket ? host + 1 : host;
    const char *colon = memchr(bracket ? bracket : host, ':', (size_t)(end - (bracket ? bracket : host)));
    size_t length = (size_t)((bracket ? bracket : colon ? colon : end) - begin);
    if (strstr(url, "https://") == url || !length || length >= sizeof a->host || (colon && end - colon > 6))
        return WEIR_ERR(WEIR_EUSAGE, "--server %.100s is not like http://127.0.0.1:8080", url);
    snprintf(a->host, sizeof a->host, "%.*s", (int)length, begin);
    snprintf(a->port, sizeof a->port, "%.*s", colon ? (int)(end - colon - 1) : 2, colon ? colon + 1 : "80");
    return WEIR_OK;
}

static weir_err connect_to(const address *a, int *fdp) {
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    const struct timeval patience = {.tv_sec = PATIENCE_S};
    struct addrinfo *found = NULL;
    int code = getaddrinfo(a->host, a->port, &hints, &found), fd = -1;
    if (code) return WEIR_ERR(WEIR_EUNAVAILABLE, "cannot find server %s: %s", a->host, gai_strerror(code));
    for (const struct addrinfo *one = found; one && fd < 0; one = one->ai_next) {
        fd = socket(one->ai_family, one->ai_socktype | SOCK_CLOEXEC, one->ai_protocol);
        if (fd >= 0 && connect(fd, one->ai_addr, one->ai_addrlen) == 0) break;
        if (fd >= 0) close(fd);
        fd = -1;
    }
    freeaddrinfo(found);
    if (fd < 0)
        return WEIR_ERR(WEIR_EUNAVAILABLE, "nobody answers at %s port %s; start `weir serve`, or leave --server out",
                        a->host, a->port);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    *fdp = fd;
    return WEIR_OK;
}

static weir_err write_request(const weir_night *night, const address *a, const char *name, weir_buf *text) {
    char *key = NULL;
    size_t length = 0;
    weir_err err =
        night->server_key_file ? weir_file_load(night->server_key_file, KEY_BYTES_MAX, &key, &length) : WEIR_OK;
    if (err) return err;
    char body[WEIR_NIGHT_NAME_MAX + 64];
    /* Read within the hour and removed by the next night: it need not outlive the store. */
    int body_length = snprintf(body, sizeof body, "{\"name\":\"%s\",\"hard_links\":true}", name);
    weir_buf_printf(text, "POST /v1/admin/checkpoint HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n", a->host);
    if (key) weir_buf_printf(text, "Authorization: Bearer %.*s\r\n", (int)strcspn(key, "\r\n"), key);
    weir_buf_printf(text, "Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", body_length, body);
    weir_free(key);
    return weir_buf_err(text);
}

static weir_err exchange(int fd, const weir_buf *request, char *reply, size_t size) {
    size_t length = 0;
    for (size_t sent = 0; sent < request->length;) {
        ssize_t n = send(fd, request->bytes + sent, request->length - sent, MSG_NOSIGNAL);
        if (n < 0) return WEIR_ERRNO(errno, "cannot ask the server");
        sent += (size_t)n;
    }
    while (length + 1 < size) {
        ssize_t n = recv(fd, reply + length, size - 1 - length, 0);
        if (n < 0) return WEIR_ERRNO(errno, "the server has not answered");
        if (n == 0) break;
        length += (size_t)n;
    }
    reply[length] = 0;
    return WEIR_OK;
}

/* The member of the answer's object. */
static weir_err member(const char *body, const char *key, char *text, size_t size) {
    const weir_json_node *root, *node;
    weir_arena *arena = NULL;
    weir_err err = weir_arena_open(WEIR_JSON_FILE_ARENA, &arena);
    if (!err) err = weir_json_parse("the server's answer", body, strlen(body), WEIR_JSON_DEPTH_MAX, arena, &root);
    if (!err) err = weir_json_need(root, key, WEIR_JSON_STRING, &node);
    if (!err) snprintf(text, size, "%s", node->text);
    weir_arena_close(arena);
    return err;
}

/* An earlier try of the same night may have got as far: the server says the same then. */
static weir_err read_reply(const char *reply, char path[WEIR_NIGHT_PATH_MAX]) {
    char detail[256] = "no sentence";
    const char *body = strstr(reply, "\r\n\r\n");
    int status = strncmp(reply, "HTTP/1.1 ", 9) == 0 ? (int)strtol(reply + 9, NULL, 10) : 0;
    if (status == 200 && body) return member(body + 4, "folder", path, WEIR_NIGHT_PATH_MAX);
    if (body) (void)member(body + 4, "detail", detail, sizeof detail);
    return WEIR_ERR(WEIR_EUNAVAILABLE, "the server wrote no checkpoint (status %d): %s", status, detail);
}

weir_err weir_night_ask_checkpoint(const weir_night *night, const char *name, char path[WEIR_NIGHT_PATH_MAX]) {
    address a = {.port = ""};
    weir_buf request = {0};
    int fd = -1;
    char *reply = weir_malloc(REPLY_BYTES_MAX);
    weir_err err = reply ? read_url(night->server, &a) : WEIR_NOMEM("for a request");
    if (!err) err = write_request(night, &a, name, &request);
    if (!err) err = connect_to(&a, &fd);
    if (!err) err = exchange(fd, &request, reply, REPLY_BYTES_MAX);
    if (!err) err = read_reply(reply, path);
    if (fd >= 0) close(fd);
    weir_buf_free(&request);
    weir_free(reply);
    return err;
}

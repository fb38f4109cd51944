/* SPDX-License-Identifier: Apache-2.0 */
/* serve_load.c - one thread and one epoll for all connections of the load. */
#include "serve_load.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/clock.h>

#define ANSWER_MAX  (256u << 10)
#define REQUEST_MAX 1024u
#define EVENTS_MAX  64

typedef struct load_connection {
    int fd;
    bool busy;
    int64_t due_ns;
    size_t length;
    char bytes[ANSWER_MAX];
} load_connection;

typedef struct load_state {
    const weir_load_opts *opts;
    int epoll_fd;
    load_connection *connections;
    uint32_t idle[WEIR_LOAD_CONNECTIONS_MAX];
    uint32_t idle_count;
    uint64_t sent, done;
    int64_t start_ns;
    uint32_t *latencies; /* of each answer, in units of 0.1 us */
} load_state;

static int64_t now_ns(void) {
    return weir_clock_mono_ns(weir_clock_system());
}

static weir_err connect_one(load_state *load, uint32_t index) {
    const int on = 1;
    load_connection *connection = &load->connections[index];
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(load->opts->port)};
    struct epoll_event event = {.events = EPOLLIN, .data = {.u32 = index}};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connection->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connection->fd < 0 || connect(connection->fd, (struct sockaddr *)&address, sizeof address) ||
        setsockopt(connection->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) ||
        epoll_ctl(load->epoll_fd, EPOLL_CTL_ADD, connection->fd, &event)) {
        return WEIR_ERRNO(errno, "cannot connect to the server under load");
    }
    load->idle[load->idle_count++] = index;
    return WEIR_OK;
}

static int64_t due_of(const load_state *load, uint64_t n) {
    return load->opts->rate > 0 ? load->start_ns + (int64_t)((double)n * 1e9 / load->opts->rate) : now_ns();
}

static weir_err send_next(load_state *load) {
    char request[REQUEST_MAX];
    load_connection *connection = &load->connections[load->idle[--load->idle_count]];
    connection->due_ns = due_of(load, load->sent);
    connection->busy = true;
    connection->length = 0;
    size_t length = load->opts->request(load->opts->context, load->sent++, request, sizeof request);
    if (send(connection->fd, request, length, MSG_NOSIGNAL) == (ssize_t)length) return WEIR_OK;
    return WEIR_ERRNO(errno, "cannot send a request");
}

/* True when the answer in hand is whole. */
static bool whole(load_connection *connection) {
    static const char name[] = "Content-Length: ";
    connection->bytes[connection->length] = 0;
    const char *end = strstr(connection->bytes, "\r\n\r\n"), *length = strstr(connection->bytes, name);
    if (!end) return false;
    size_t body = length && length < end ? strtoul(length + sizeof name - 1, NULL, 10) : 0;
    return connection->length >= (size_t)(end - connection->bytes) + 4 + body;
}

static weir_err receive(load_state *load, uint32_t index) {
    load_connection *connection = &load->connections[index];
    ssize_t got = recv(connection->fd, connection->bytes + connection->length, ANSWER_MAX - 1 - connection->length, 0);
    if (got <= 0) return WEIR_ERR(WEIR_EIO, "the server under load has closed a connection");
    connection->length += (size_t)got;
    if (!whole(connection)) return WEIR_OK;
    if (strncmp(connection->bytes + 8, " 200", 4) != 0)
        return WEIR_ERR(WEIR_EDATA, "the server under load answers %.60s", connection->bytes);
    int64_t tenths = (now_ns() - connection->due_ns) / 100;
    load->latencies[load->done++] = tenths < UINT32_MAX ? (uint32_t)tenths : UINT32_MAX;
    connection->busy = false;
    load->idle[load->idle_count++] = index;
    return WEIR_OK;
}

/* Open loop: what is due and finds no idle connection waits for one, and its latency runs. */
static weir_err send_due(load_state *load) {
    weir_err err = WEIR_OK;
    while (!err && load->idle_count && load->sent < load->opts->requests && due_of(load, load->sent) <= now_ns())
        err = send_next(load);
    return err;
}

static weir_err drive(load_state *load) {
    struct epoll_event events[EVENTS_MAX];
    weir_err err = send_due(load);
    while (!err && load->done < load->opts->requests) {
        /* between two due times it spins: a sleep would be longer than what is measured */
        int count = epoll_wait(load->epoll_fd, events, EVENTS_MAX, load->opts->rate > 0 ? 0 : -1);
        for (int i = 0; !err && i < count; i++)
            err = receive(load, events[i].data.u32);
        if (!err) err = send_due(load);
    }
    return err;
}

static int compare(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static void summarise(load_state *load, weir_load_result *resultp) {
    resultp->elapsed_ns = now_ns() - load->start_ns;
    qsort(load->latencies, load->done, sizeof *load->latencies, compare);
    uint64_t middle = load->done / 2, slow = load->done - 1 - load->done / 100;
    resultp->p50_us = load->latencies[middle] / 10.0;
    resultp->p99_us = load->latencies[slow] / 10.0;
}

weir_err weir_load_run(const weir_load_opts *opts, weir_load_result *resultp) {
    load_state load = {.opts = opts};
    *resultp = (weir_load_result){0};
    if (!opts->requests || !opts->connections || opts->connections > WEIR_LOAD_CONNECTIONS_MAX)
        return WEIR_ERR(WEIR_EINVAL, "a load has requests and 1 to %u connections", WEIR_LOAD_CONNECTIONS_MAX);
    load.connections = weir_calloc(opts->connections, sizeof *load.connections);
    load.latencies = weir_calloc(opts->requests, sizeof *load.latencies);
    load.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    weir_err err = load.connections && load.latencies && load.epoll_fd >= 0 ? WEIR_OK : WEIR_NOMEM("for the load");
    uint32_t opened = 0;
    for (; !err && opened < opts->connections; opened++)
        err = connect_one(&load, opened);
    load.start_ns = now_ns();
    if (!err) err = drive(&load);
    if (!err) summarise(&load, resultp);
    for (uint32_t i = 0; i < opened; i++)
        if (load.connections[i].fd >= 0) close(load.connections[i].fd);
    if (load.epoll_fd >= 0) close(load.epoll_fd);
    weir_free(load.connections);
    weir_free(load.latencies);
    return err;
}

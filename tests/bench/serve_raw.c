/* SPDX-License-Identifier: Apache-2.0 */
/* serve_raw.c - the least that a server can do: read until the blank line, write an answer that was made before. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/thread.h>

#include "serve_load.h"

#define EVENTS_MAX  64
#define REQUEST_MAX 4096u

struct weir_raw_server {
    const char *answer;
    size_t length;
    int listen_fd, epoll_fd, stop_fd;
    uint16_t port;
    weir_thread *thread;
};

static void watch(weir_raw_server *server, int fd) {
    struct epoll_event event = {.events = EPOLLIN, .data = {.fd = fd}};
    epoll_ctl(server->epoll_fd, EPOLL_CTL_ADD, fd, &event);
}

static void accept_one(weir_raw_server *server) {
    const int on = 1;
    int fd = accept4(server->listen_fd, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0) return;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    watch(server, fd);
}

/* A request comes in one piece here: the load sends it so. */
static void answer_one(const weir_raw_server *server, int fd) {
    char request[REQUEST_MAX];
    ssize_t got = recv(fd, request, sizeof request, 0);
    if (got <= 0)
        close(fd);
    else if (memmem(request, (size_t)got, "\r\n\r\n", 4))
        (void)!send(fd, server->answer, server->length, MSG_NOSIGNAL);
}

static void raw_main(void *context) {
    weir_raw_server *server = context;
    struct epoll_event events[EVENTS_MAX];
    for (;;) {
        int count = epoll_wait(server->epoll_fd, events, EVENTS_MAX, -1);
        for (int i = 0; i < count; i++) {
            int fd = events[i].data.fd;
            if (fd == server->stop_fd) return;
            if (fd == server->listen_fd)
                accept_one(server);
            else
                answer_one(server, fd);
        }
    }
}

weir_err weir_raw_server_open(const char *answer, size_t length, weir_raw_server **serverp) {
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t size = sizeof address;
    *serverp = NULL;
    weir_raw_server *server = weir_calloc(1, sizeof *server);
    if (!server) return WEIR_NOMEM("for the raw server");
    *server = (weir_raw_server){.answer = answer, .length = length};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    server->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    server->stop_fd = eventfd(0, EFD_CLOEXEC);
    server->listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    weir_err err = WEIR_OK;
    if (bind(server->listen_fd, (struct sockaddr *)&address, sizeof address) || listen(server->listen_fd, 1024) ||
        getsockname(server->listen_fd, (struct sockaddr *)&address, &size))
        err = WEIR_ERRNO(errno, "cannot listen for the raw server");
    server->port = ntohs(address.sin_port);
    watch(server, server->listen_fd);
    watch(server, server->stop_fd);
    if (!err) err = weir_thread_start("raw-server", WEIR_ROLE_LOOP, raw_main, server, &server->thread);
    if (err)
        weir_raw_server_close(server);
    else
        *serverp = server;
    return err;
}

uint16_t weir_raw_server_port(const weir_raw_server *server) {
    return server->port;
}

void weir_raw_server_close(weir_raw_server *server) {
    uint64_t one = 1;
    if (!server) return;
    (void)!write(server->stop_fd, &one, sizeof one);
    weir_thread_join(server->thread);
    close(server->listen_fd);
    close(server->epoll_fd);
    close(server->stop_fd);
    weir_free(server);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* server.c - binds, starts and stops the loops. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/rng.h>

#include "private.h"

#define BACKLOG 1024

static weir_err server_check_opts(const weir_http_opts *opts) {
    if (!opts->listen || !opts->routes || !opts->route_count || opts->route_count > WEIR_HTTP_ROUTES_MAX)
        return WEIR_ERR(WEIR_EINVAL, "a server needs an address and 1 to %u routes", WEIR_HTTP_ROUTES_MAX);
    if (opts->loops > WEIR_HTTP_LOOPS_MAX || opts->connections > WEIR_HTTP_CONNECTIONS_MAX)
        return WEIR_ERR(WEIR_EINVAL, "a server has at most %u loops and %u connections", WEIR_HTTP_LOOPS_MAX,
                        WEIR_HTTP_CONNECTIONS_MAX);
    if (opts->idle_us < 0 || opts->request_us < 0)
        return WEIR_ERR(WEIR_EINVAL, "a time limit of the server is negative");
    return WEIR_OK;
}

static weir_http_opts server_complete_opts(const weir_http_opts *opts) {
    weir_http_opts whole = *opts;
    if (!whole.loops) whole.loops = 2;
    if (!whole.connections) whole.connections = 4096;
    if (!whole.connections_per_ip) whole.connections_per_ip = 64;
    if (!whole.header_bytes) whole.header_bytes = 32u << 10;
    if (!whole.memory_bytes) whole.memory_bytes = 256u << 20;
    if (!whole.idle_us) whole.idle_us = 10 * WEIR_US_PER_S;
    if (!whole.request_us) whole.request_us = 30 * WEIR_US_PER_S;
    return whole;
}

static weir_err server_bind_failed(int errno_value, const char *listen) {
    switch (errno_value) {
    case EADDRINUSE:
        return WEIR_ERR(WEIR_EBUSY, "another program listens on %s; stop it or choose another address with --listen",
                        listen);
    case EACCES:
        return WEIR_ERR(WEIR_EPERM, "no permission to listen on %s; ports below 1024 need CAP_NET_BIND_SERVICE",
                        listen);
    case EADDRNOTAVAIL:
        return WEIR_ERR(WEIR_ECONFIG, "%s is not an address of this machine", listen);
    default:
        return WEIR_ERRNO(errno_value, "cannot listen on %s", listen);
    }
}

static weir_err server_listen(weir_http *http, const weir_http_address *address) {
    const int on = 1, off = 0;
    const struct sockaddr *name = (const struct sockaddr *)&address->storage;
    http->listen_fd = socket(name->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (http->listen_fd < 0) return WEIR_ERRNO(errno, "cannot create a socket");
    /* so that a restart need not wait until the connections of the last run are forgotten */
    setsockopt(http->listen_fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (name->sa_family == AF_INET6) setsockopt(http->listen_fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    if (bind(http->listen_fd, name, address->length) || listen(http->listen_fd, BACKLOG))
        return server_bind_failed(errno, http->opts.listen);
    union {
        struct sockaddr any;
        struct sockaddr_in four;
        struct sockaddr_in6 six;
    } bound = {.six = {0}};
    socklen_t length = sizeof bound;
    if (getsockname(http->listen_fd, &bound.any, &length))
        return WEIR_ERRNO(errno, "cannot read the address of a socket");
    char text[80];
    weir_http_address_text(&bound.any, text, sizeof text);
    snprintf(http->url, sizeof http->url, "http://%s", text);
    http->port = ntohs(bound.any.sa_family == AF_INET ? bound.four.sin_port : bound.six.sin6_port);
    return WEIR_OK;
}

weir_err weir_http_open(const weir_http_opts *opts, weir_http **httpp) {
    *httpp = NULL;
    weir_http_address address;
    weir_err err = server_check_opts(opts);
    if (!err) err = weir_http_address_read(opts->listen, &address);
    if (err) return err;
    if (!opts->authenticate && !address.loopback) // SERVER-W3
        return WEIR_ERR(WEIR_EPERM,
                        "listening on %.100s without API keys would open the store to everyone; name a key file "
                        "with --keys, or listen on 127.0.0.1",
                        opts->listen);
    weir_http *http = weir_calloc(1, sizeof *http);
    if (!http) return WEIR_NOMEM("for a server");
    http->opts = server_complete_opts(opts);
    http->clock = opts->clock ? opts->clock : weir_clock_system();
    http->listen_fd = -1;
    http->id_seed = weir_rng_fresh_seed();
    err = server_listen(http, &address);
    if (!err) err = weir_http_peers_open(http->opts.connections, http->opts.connections_per_ip, &http->peers);
    for (uint32_t i = 0; !err && i < http->opts.loops; i++) {
        err = weir_http_loop_open(http, i, &http->loops[i]);
        http->loop_count++;
    }
    for (uint32_t i = 0; !err && i < http->loop_count; i++)
        err = weir_http_loop_start(&http->loops[i]);
    if (err) {
        weir_http_close(http);
        return err;
    }
    *httpp = http;
    return WEIR_OK;
}

uint16_t weir_http_port(const weir_http *http) {
    return http->port;
}

const char *weir_http_url(const weir_http *http) {
    return http->url;
}

void weir_http_stop(weir_http *http, int64_t drain_us) {
    if (http->stopped) return;
    WEIR_ASSERT(http->loop_count <= WEIR_HTTP_LOOPS_MAX);
    http->stopped = true;
    int64_t stop_us = weir_clock_mono_us(http->clock) + drain_us;
    atomic_store_explicit(&http->stop_us, stop_us > 0 ? stop_us : 1, memory_order_release);
    for (uint32_t i = 0; i < http->loop_count; i++)
        weir_http_loop_wake(&http->loops[i]);
    for (uint32_t i = 0; i < http->loop_count; i++)
        weir_http_loop_join(&http->loops[i]);
    if (http->listen_fd >= 0) close(http->listen_fd);
    http->listen_fd = -1;
}

void weir_http_close(weir_http *http) {
    if (!http) return;
    weir_http_stop(http, 0);
    for (uint32_t i = 0; i < http->loop_count; i++)
        weir_http_loop_close(&http->loops[i]);
    weir_http_peers_close(http->peers);
    weir_free(http);
}

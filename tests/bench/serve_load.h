/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serve_load.h - requests for a server, closed loop for its greatest rate and open loop for its latency.
 *
 * In the open loop a request is due at its time whether the server is done with the last one or not, and its latency
 * counts from then: a server that falls behind cannot slow its own measurement down.
 */
#ifndef WEIR_SERVE_LOAD_H
#define WEIR_SERVE_LOAD_H

#include <stddef.h>
#include <stdint.h>

#include <weir/store/base/err.h>

#define WEIR_LOAD_CONNECTIONS_MAX 256u

/* Writes request number n; returns its length. */
typedef size_t (*weir_load_request)(void *context, uint64_t n, char *buffer, size_t size);

typedef struct weir_load_opts {
    uint16_t port;
    uint32_t connections;
    uint64_t requests;
    double rate; /* of requests due a second; 0: closed loop */
    weir_load_request request;
    void *context;
} weir_load_opts;

typedef struct weir_load_result {
    int64_t elapsed_ns;
    double p50_us, p99_us; /* open loop */
} weir_load_result;

/* WEIR_EDATA an answer that is not 200; WEIR_EIO; WEIR_ENOMEM. */
weir_err weir_load_run(const weir_load_opts *opts, weir_load_result *resultp);

/* The limit: one thread, one epoll, one answer that was made before. Serves until stop. */
typedef struct weir_raw_server weir_raw_server;
weir_err weir_raw_server_open(const char *answer, size_t length, weir_raw_server **serverp);
uint16_t weir_raw_server_port(const weir_raw_server *server);
void weir_raw_server_close(weir_raw_server *server);

#endif /* WEIR_SERVE_LOAD_H */

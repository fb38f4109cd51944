/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server.h - HTTP/1.1 with limits on everything: routes, requests, replies. Knows nothing of graphs.
 *
 *   accept ──► connection ──request line──► request ──headers──► route, role, limits ──body──► handler ──► reply
 *                  ▲                                                                 └─defer─► any thread ─finish┘
 *                  └──────────────────────────── keep-alive ◄──────────────────────────────────────────────┘
 *
 * A pool of loops, each a thread that owns its connections and its requests. A handler runs on the loop and must not
 * wait; what waits (for a disk, say) defers the request, hands it to a thread of its own, and finishes it from there.
 *
 * INVARIANTS: each is cited where the code keeps it, and by a test of the same name
 *
 *   SERVER-W1  Every request gets one reply, or its connection is closed: a deadline runs from the request's first line
 *              to the last byte of its reply.
 *   SERVER-W2  No handler sees a request that its role, its size or its parameters forbid.
 *   SERVER-W3  Without keys only this machine is served: the address is loopback, and so is the Host header, which only
 *              HTTP/1.0 may leave out.
 *   SERVER-W4  What bodies, replies and weir_http_hold take together stays within memory_bytes; a request that would
 *              exceed it is refused. Arenas have a limit of their own (WEIR_HTTP_ARENA_BYTES_MAX) and do not count,
 *              nor does a reply of up to 32 KiB before it is ready, or a problem in place of one that is refused.
 *   SERVER-W5  A page of another site, in a browser that can reach this server, changes nothing: of its requests only
 *              GET and HEAD, whose answers it cannot read, reach a handler.
 *
 * Every error is application/problem+json (RFC 9457), except what the parser below us refuses by itself (a first line,
 * headers or chunks that are malformed or too long), and the 503 for a connection too many. Every reply but these, and
 * but one that cuts off a request that is still arriving, carries X-Request-Id: the client's own, if it is short and
 * plain, else a fresh one.
 */
#ifndef WEIR_HTTP_SERVER_SERVER_H
#define WEIR_HTTP_SERVER_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/store/base/arena.h>
#include <weir/store/base/buf.h>
#include <weir/store/base/clock.h>
#include <weir/store/base/err.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_HTTP_LOOPS_MAX       64u
#define WEIR_HTTP_CONNECTIONS_MAX 65536u
#define WEIR_HTTP_ROUTES_MAX      256u
#define WEIR_HTTP_PARAMS_MAX      4u    /* {names} in a pattern                   */
#define WEIR_HTTP_QUERY_MAX       16u   /* parameters in a query                  */
#define WEIR_HTTP_HEADERS_MAX     8u    /* that a handler adds to a reply         */
#define WEIR_HTTP_URI_BYTES_MAX   8192u /* path and query as sent                 */
#define WEIR_HTTP_ARENA_BYTES_MAX (64u << 20)
#define WEIR_HTTP_NAME_MAX        64u /* of a caller, its end included, and of a request's id */

typedef struct weir_http weir_http;
typedef struct weir_http_request weir_http_request;

/* What a key may do: a set of bits. */
typedef enum weir_http_role {
    WEIR_HTTP_ANYONE = 0, /* of a route: needs no key; a valid one tells the handler who asks */
    WEIR_HTTP_READER = 1,
    WEIR_HTTP_WRITER = 2,
    WEIR_HTTP_ADMIN = 4, /* may do all that the others may */
} weir_http_role;

/* A plain value. */
typedef struct weir_http_caller {
    unsigned roles;
    char name[WEIR_HTTP_NAME_MAX];
} weir_http_caller;

/* false: no such key; then *callerp does not matter.  [loop] */
typedef bool (*weir_http_authenticate)(void *context, const char *key, size_t length, weir_http_caller *callerp);

/* An error that is returned becomes a problem with the status of its code: EDATA, EUSAGE and EINVAL 400, EPERM 403,
 * ENOTFOUND 404, EEXIST 409, ELIMIT 413, EBUSY, EUNAVAILABLE, EFULL, EPOISONED, ENOMEM and ECLOSED 503, ETIMEOUT 504,
 * all others 500 with the sentence in the log only.  [loop] */
typedef weir_err (*weir_http_handler)(void *context, weir_http_request *request);

/* A row of the table; borrowed for the server's life. */
typedef struct weir_http_route {
    const char *method;
    const char *pattern; /* "/v1/vertices/{type}/{key}"                                   */
    weir_http_role role;
    const char *const *query; /* NULL-ended names that the query may have; NULL: none         */
    uint32_t body_bytes_max;  /* 0: a request with a body is refused                          */
    weir_http_handler handler;
} weir_http_route;

typedef struct weir_http_opts {
    const char *listen;          /* "127.0.0.1:8080", "[::1]:0", ":8080" for all addresses; port 0: any free one   */
    uint32_t loops;              /* threads; 0: 2                                                                   */
    uint32_t connections;        /* at once; 0: 4096                                                                */
    uint32_t connections_per_ip; /* of one IPv4 address or one IPv6 /64; 0: 64                                      */
    uint32_t header_bytes;       /* request line and headers, and those of the reply; 0: 32 KiB                     */
    uint64_t memory_bytes; /* of bodies in flight, both ways; 0: 256 MiB (SERVER-W4)                                 */
    int64_t idle_us;       /* a connection without progress, in seconds rounded up; without a request line,
                              whatever it sends, twice as long at most; 0: 10 s                                */
    int64_t request_us;    /* from a request's first line to the last byte of its reply; 0: 30 s              */
    const weir_http_route *routes;
    size_t route_count;
    void *context; /* of handlers and of authenticate                                         */
    weir_http_authenticate
        authenticate;  /* NULL: every caller is an admin, from this machine only (SERVER-W3)              */
    weir_clock *clock; /* borrowed; NULL: the system's                                            */
} weir_http_opts;

/* Binds, and serves when it returns.  [owner]
 * WEIR_EBUSY the port is taken; WEIR_EPERM no right to it, or not loopback and no keys (SERVER-W3); WEIR_ECONFIG the
 * address cannot be read or is not this machine's; WEIR_EINVAL an option; WEIR_EIO, WEIR_ENOMEM, WEIR_EUNAVAILABLE. */
weir_err weir_http_open(const weir_http_opts *opts, weir_http **httpp);
uint16_t weir_http_port(const weir_http *http);
/* "http://127.0.0.1:8080"; borrowed. */
const char *weir_http_url(const weir_http *http);
/* Takes no more connections, lets requests end for drain_us, then closes what is left; deferred requests are waited for
 * however long they take.  Blocks.  [owner]   May be called twice. */
void weir_http_stop(weir_http *http, int64_t drain_us);
/* weir_http_stop with a drain_us of 0, then frees; NULL is allowed.  [owner] */
void weir_http_close(weir_http *http);

/* --- the request: of the handler's thread, then of who finishes it -------------------------------------------- */

/* Of this request: its memory may be gone once the reply is handed over to be sent. */
weir_arena *weir_http_arena(weir_http_request *request);
/* Without authenticate an admin; no roles: a caller without a valid key, on a route for anyone. */
const weir_http_caller *weir_http_request_caller(const weir_http_request *request);
/* Which loop runs the handler, below the number of loops: for state that handlers keep for each loop. */
uint32_t weir_http_loop_index(const weir_http_request *request);
/* Decoded; may hold any byte, and a 0 behind its end. index: as the pattern numbers its names. */
const char *weir_http_param(const weir_http_request *request, size_t index, size_t *lengthp);
/* Decoded, ended by 0, without a 0 inside; NULL: not given. '+' stays '+', so that a time zone needs no escape. */
const char *weir_http_query(const weir_http_request *request, const char *name);
/* NULL: not sent. Only on the handler's thread.  [loop] */
const char *weir_http_header(const weir_http_request *request, const char *name);
const char *weir_http_body(const weir_http_request *request, size_t *lengthp);
/* How long until the connection is closed, with or without a reply (SERVER-W1); 0: that time has come. */
int64_t weir_http_left_us(const weir_http_request *request);
/* Counts what the handler is about to hold beside body and reply, until the reply is ready.  WEIR_EBUSY (SERVER-W4). */
weir_err weir_http_hold(weir_http_request *request, uint64_t bytes);

/* --- the reply ------------------------------------------------------------------------------------------------ */

/* What is written here is sent. */
weir_buf *weir_http_out(weir_http_request *request);
/* Status and type of the reply; content_type and value are borrowed until it is sent, or literals. */
void weir_http_reply(weir_http_request *request, unsigned status, const char *content_type);
void weir_http_add_header(weir_http_request *request, const char *name, const char *value);
/* Bytes that outlive the server in place of what was written: no copy is made. */
void weir_http_reply_static(weir_http_request *request, unsigned status, const char *content_type, const void *bytes,
                            size_t length);
/* A problem: slug is the end of its type ("/problems/SLUG"; NULL: that of the status), detail a sentence. Replaces what
 * was written; headers that were added stay. Always false, for a check that ends with it. */
bool weir_http_problem(weir_http_request *request, unsigned status, const char *slug, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* The problem of an error, as if the handler had returned it. */
void weir_http_problem_err(weir_http_request *request, weir_err err);
/* Discards what was written and the headers that were added: another will answer instead. Before weir_http_defer.
 * [loop] */
void weir_http_start_over(weir_http_request *request);
/* The handler will return before there is a reply: from then on the request belongs to who calls finish.  [loop] */
void weir_http_defer(weir_http_request *request);
/* The reply is ready; the request is gone for the caller.  [any] */
void weir_http_finish(weir_http_request *request);

/* --- for routes and tests ------------------------------------------------------------------------------------- */

/* Decodes %XX of length bytes into decoded (as much room), which gets a 0 at its end (one more).  false: not valid.
 * [any] */
bool weir_http_decode(const char *text, size_t length, char *decoded, size_t *lengthp);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_HTTP_SERVER_SERVER_H */

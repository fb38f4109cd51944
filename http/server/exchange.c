/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exchange.c - the life of one request on its loop: request line, headers, body, handler, reply.
 *
 * libmicrohttpd calls access once when the headers are there, once for each piece of a body, once when all is there,
 * and again after a deferred request was finished. A reply to the first of these calls ends the connection (0.9.75): so
 * only a request with a body is refused there, one without is answered at the second. In the middle of a body the
 * library takes no reply at all; there it is written by hand and the connection cut.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include <microhttpd.h>

#include <weir/store/base/assert.h>
#include <weir/store/base/bytes.h>
#include <weir/store/base/log.h>
#include <weir/store/base/metrics.h>

#include "private.h"

/* --- the reply ------------------------------------------------------------------------------------------------ */

static void response_add(struct MHD_Response *response, const char *name, const char *value) {
    (void)MHD_add_response_header(response, name, value); /* fails when out of memory: the reply goes without it */
}

static struct MHD_Response *response_make(const weir_http_request *request) {
    const void *bytes = request->fixed ? request->fixed : request->out.bytes;
    size_t length = request->fixed ? request->fixed_length : request->out.length;
    void *borrowed = NULL; /* the library does not write to it, and says so only in its manual */
    memcpy(&borrowed, &bytes, sizeof borrowed);
    struct MHD_Response *response = MHD_create_response_from_buffer(length, borrowed, MHD_RESPMEM_PERSISTENT);
    if (!response) return NULL;
    if (request->content_type) response_add(response, "Content-Type", request->content_type);
    response_add(response, "X-Request-Id", request->id);
    response_add(response, "Cache-Control", "no-store");
    response_add(response, "X-Content-Type-Options", "nosniff");
    /* A browser applies both of two policies: a handler's stands in place of ours. */
    bool own_policy = false;
    for (size_t i = 0; i < request->header_count; i++)
        own_policy = own_policy || !strcmp(request->headers[i].name, "Content-Security-Policy");
    if (!own_policy) response_add(response, "Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'");
    if (request->status == 503) response_add(response, "Retry-After", "1");
    if (request->close) response_add(response, "Connection", "close");
    for (size_t i = 0; i < request->header_count; i++)
        response_add(response, request->headers[i].name, request->headers[i].value);
    return response;
}

static enum MHD_Result exchange_reply(weir_http_request *request) {
    WEIR_ASSERT(request->status && request->stage != WEIR_HTTP_STAGE_REPLIED); // SERVER-W1
    weir_err err = weir_buf_err(&request->out);
    if (err) {
        weir_buf_free(&request->out);
        weir_http_problem_err(request, err);
    }
    if (!weir_http_lighten(request)) { // SERVER-W4
        weir_buf_free(&request->out);
        weir_http_problem(request, 503, NULL, WEIR_HTTP_NO_MEMORY);
    }
    if (atomic_load_explicit(&request->loop->http->stop_us, memory_order_relaxed)) request->close = true;
    struct MHD_Response *response = response_make(request);
    if (!response) return MHD_NO;
    weir_metric_add(request->status < 400   ? WEIR_METRIC_HTTP_RESPONSES_2XX
                    : request->status < 500 ? WEIR_METRIC_HTTP_RESPONSES_4XX
                                            : WEIR_METRIC_HTTP_RESPONSES_5XX,
                    1);
    request->stage = WEIR_HTTP_STAGE_REPLIED;
    enum MHD_Result queued = MHD_queue_response(request->mhd, request->status, response);
    MHD_destroy_response(response); /* its headers are copies */
    weir_http_shed_arena(request);
    return queued;
}

/* --- the request line ----------------------------------------------------------------------------------------- */

const char *weir_http_header(const weir_http_request *request, const char *name) {
    return MHD_lookup_connection_value(request->mhd, MHD_HEADER_KIND, name);
}

/* The client's own id if it is short and plain, else one that no other request of this process has. */
static void exchange_set_id(weir_http_request *request) {
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    const char *own = weir_http_header(request, "X-Request-Id");
    size_t length = own ? strlen(own) : 0;
    if (length && length <= WEIR_HTTP_NAME_MAX && strspn(own, plain) == length) {
        memcpy(request->id, own, length + 1);
        return;
    }
    weir_http_loop *loop = request->loop;
    uint64_t number = (loop->id_next + loop->http->id_seed) * 0x9E3779B97F4A7C15u; /* odd: none comes twice */
    loop->id_next += WEIR_HTTP_LOOPS_MAX;
    weir_hex_put_u64(request->id, number);
    request->id[16] = 0;
}

/* Reserves a request when its first line is there; its deadline begins. NULL ends the exchange at the next call. */
void *weir_http_exchange_begin(weir_http_loop *loop, const char *uri, struct MHD_Connection *mhd) {
    WEIR_ON_ROLE(LOOP);
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    weir_http_connection *connection = info ? info->socket_context : NULL;
    weir_http_request *request = connection && !connection->request ? weir_http_request_take(loop) : NULL;
    if (!request) return NULL;
    WEIR_ASSERT(connection->loop == loop && request->loop == loop);
    request->uri = weir_arena_strndup(request->arena, uri, strlen(uri));
    if (!request->uri) {
        weir_http_request_give(loop, request);
        return NULL;
    }
    request->path_length = strcspn(request->uri, "?");
    request->connection = connection;
    request->mhd = mhd;
    request->stage = WEIR_HTTP_STAGE_HEADERS;
    request->started_us = weir_clock_mono_us(loop->http->clock);
    connection->request = request;
    weir_http_deadline_move(connection, &loop->working, request->started_us); // SERVER-W1
    weir_metric_add(WEIR_METRIC_HTTP_REQUESTS, 1);
    return request;
}

/* --- the headers ---------------------------------------------------------------------------------------------- */

typedef struct header_scan {
    unsigned hosts, lengths, encodings;
    bool odd; /* a name that is not a token, a 0 byte, an encoding other than plain chunked */
} header_scan;

static bool header_is_token(const char *name, size_t length) {
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789!#$%&'*+-.^_`|~";
    size_t i = 0;
    while (i < length && name[i] && strchr(letters, name[i]))
        i++;
    return length && i == length;
}

static enum MHD_Result header_scan_one(void *context, enum MHD_ValueKind kind, const char *name, size_t name_length,
                                       const char *value, size_t value_length) {
    header_scan *scan = context;
    (void)kind;
    if (!header_is_token(name, name_length) || (value && memchr(value, 0, value_length))) scan->odd = true;
    if (!strcasecmp(name, "Host")) scan->hosts++;
    if (!strcasecmp(name, "Content-Length")) scan->lengths++;
    if (!strcasecmp(name, "Transfer-Encoding")) {
        scan->encodings++;
        if (!value || strcasecmp(value, "chunked") != 0) scan->odd = true;
    }
    return MHD_YES;
}

/* The library takes what proxies before us may read in another way: a length twice, a length beside a transfer
 * encoding, a blank before a colon. Whoever disagrees on where a request ends can be made to answer one that was never
 * sent.  false: the request has its refusal. */
static bool exchange_check_framing(weir_http_request *request, const char *version) {
    header_scan scan = {0};
    (void)MHD_get_connection_values_n(request->mhd, MHD_HEADER_KIND, header_scan_one, &scan);
    bool old = strcmp(version, "HTTP/1.1") < 0;
    if (!old && !scan.hosts) {
        request->close = true;
        return weir_http_problem(request, 400, NULL, "the Host header is missing; HTTP/1.1 requires one");
    }
    if (!scan.odd && !strchr(request->uri, ' ') && scan.hosts <= 1 && scan.lengths + scan.encodings <= 1 &&
        !(old && scan.encodings))
        return true;
    request->close = true;
    return weir_http_problem(request, 400, NULL,
                             "the headers are ambiguous or malformed; send Host once, and either one Content-Length or "
                             "Transfer-Encoding: chunked");
}

static bool exchange_has_body(const weir_http_request *request, uint64_t *lengthp) {
    const char *length = weir_http_header(request, "Content-Length");
    *lengthp = length ? strtoull(length, NULL, 10) : 0;
    return *lengthp || weir_http_header(request, "Transfer-Encoding");
}

/* --- who may ask ---------------------------------------------------------------------------------------------- */

/* "Bearer KEY" or X-API-Key; NULL: none was sent. */
static const char *exchange_key(const weir_http_request *request) {
    const char *authorization = weir_http_header(request, "Authorization");
    if (!authorization) return weir_http_header(request, "X-API-Key");
    return strncasecmp(authorization, "Bearer ", 7) ? "" : authorization + 7;
}

/* A browser sends what any page that it shows asks for, and without being asked first where a form could have sent it.
 * It says which page that was, in a header that no page can set: the older one is asked where the newer is missing,
 * which browsers send over HTTPS and to this machine only. Clients other than browsers send neither. */
static bool exchange_is_cross_site(const weir_http_request *request) {
    if (!strcmp(request->method, "GET") || !strcmp(request->method, "HEAD")) return false;
    const char *site = weir_http_header(request, "Sec-Fetch-Site"), *origin = weir_http_header(request, "Origin");
    if (site) return strcmp(site, "same-origin") != 0 && strcmp(site, "none") != 0;
    return origin && !weir_http_origin_is_host(origin, weir_http_header(request, "Host"));
}

/* The log says from where an unknown key came, never the key itself.  false: more came from this address within a
 * minute than are logged. */
static bool exchange_count_wrong_key(weir_http_request *request) {
    weir_http *http = request->loop->http;
    uint32_t count = weir_http_peers_strike(http->peers, request->connection->peer, weir_clock_mono_us(http->clock));
    weir_metric_add(WEIR_METRIC_HTTP_WRONG_KEYS, 1);
    if (count > WEIR_HTTP_STRIKES_MAX) return false;
    char address[80] = "unknown";
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(request->mhd, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    if (info && info->client_addr) weir_http_address_text(info->client_addr, address, sizeof address);
    WEIR_LOG(WARN, "audit.wrong_key",
             count < WEIR_HTTP_STRIKES_MAX
                 ? "a request with an unknown API key"
                 : "a request with an unknown API key; more from this address are counted, not logged, for a minute",
             WEIR_TEXT("address", address), WEIR_TEXT("request", request->id), WEIR_U64("count", count));
    return true;
}

/* false: the request has its refusal (SERVER-W2, W3, W5). */
static bool exchange_authorize(weir_http_request *request, weir_http_role role) {
    const weir_http_opts *opts = &request->loop->http->opts;
    if (exchange_is_cross_site(request)) // SERVER-W5
        return weir_http_problem(
            request, 403, "another-site",
            "the request comes from a page of another site; send it from this server's own page or "
            "from a client that is not a browser");
    if (!opts->authenticate) {
        request->caller = (weir_http_caller){.roles = WEIR_HTTP_ADMIN, .name = "local"};
        if (weir_http_host_is_local(weir_http_header(request, "Host"))) return true; // SERVER-W3
        return weir_http_problem(request, 421, NULL,
                                 "the Host header does not name this machine; without API keys the server answers only "
                                 "to localhost, 127.0.0.1 and [::1]");
    }

    /* A right key passes however many wrong ones came before it: behind a proxy all clients have one address, and one
     * that was not told of its new key must not lock out the others. Where no key is needed a wrong one is counted and
     * not refused: a probe whose key was revoked is still told whether the server is ready. */
    const char *key = exchange_key(request);
    bool known = key && opts->authenticate(opts->context, key, strlen(key), &request->caller);
    if (!known) request->caller = (weir_http_caller){0};
    bool too_many = key && !known && !exchange_count_wrong_key(request);
    if (role == WEIR_HTTP_ANYONE || (request->caller.roles & (role | WEIR_HTTP_ADMIN))) return true; // SERVER-W2
    if (known)
        return weir_http_problem(request, 403, NULL,
                                 "the API key '%s' lacks the required role; use a key with role '%s'",
                                 request->caller.name,
                                 role == WEIR_HTTP_READER   ? "reader"
                                 : role == WEIR_HTTP_WRITER ? "writer"
                                                            : "admin");
    if (too_many) {
        weir_http_add_header(request, "Retry-After", "60");
        return weir_http_problem(request, 429, NULL, "too many unknown API keys came from this address; wait a minute");
    }
    weir_http_add_header(request, "WWW-Authenticate", "Bearer");
    return weir_http_problem(request, 401, NULL, "%s as `Authorization: Bearer KEY`",
                             key ? "the API key is unknown to this server; send a valid one"
                                 : "an API key is required; send one");
}

/* --- what is asked -------------------------------------------------------------------------------------------- */

/* Checks the caller's role before it tells what is there.  false: the request has its refusal. */
static bool exchange_find_route(weir_http_request *request) {
    const weir_http_opts *opts = &request->loop->http->opts;
    weir_http_match match;
    weir_http_match_find(opts->routes, opts->route_count, request->method, request->uri, request->path_length, &match);
    if (!exchange_authorize(request, match.route ? match.route->role : WEIR_HTTP_ANYONE)) return false;
    if (!match.route && *match.allow) {
        char *allow = weir_arena_printf(request->arena, "%s", match.allow);
        if (allow) weir_http_add_header(request, "Allow", allow);
        return weir_http_problem(request, 405, NULL, "this path accepts %s, not %.16s", match.allow, request->method);
    }
    if (!match.route) return weir_http_problem(request, 404, NULL, "no such path; /openapi.json lists all paths");
    request->route = match.route;
    for (size_t i = 0; i < WEIR_HTTP_PARAMS_MAX && match.params[i].bytes; i++) {
        size_t length = match.params[i].length;
        char *decoded = weir_arena_alloc(request->arena, length + 1);
        if (!decoded || !weir_http_decode(match.params[i].bytes, length, decoded, &length))
            return weir_http_problem(
                request, 400, NULL,
                "the path has a '%%' without two hex digits after it; percent-encode the path again");
        request->params[i] = (weir_http_text){decoded, length};
    }
    return true;
}

/* Path, caller, size and query, in this order (SERVER-W2).  false: the request has its refusal. */
static bool exchange_check_request(weir_http_request *request) {
    if (request->path_length == 0 || strlen(request->uri) > WEIR_HTTP_URI_BYTES_MAX)
        return weir_http_problem(request, 400, NULL, "the path is empty, or path and query have more than %u bytes",
                                 WEIR_HTTP_URI_BYTES_MAX);
    if (!exchange_find_route(request)) return false;

    uint64_t length, limit = request->route->body_bytes_max;
    if (exchange_has_body(request, &length) && !limit)
        return weir_http_problem(request, 400, NULL, "this path accepts no body; send the request without one");
    if (length > limit)
        return weir_http_problem(request, 413, NULL, "the body has %llu bytes; at most %llu are allowed here",
                                 (unsigned long long)length, (unsigned long long)limit);
    if (length && !weir_http_charge(request, length)) // SERVER-W4
        return weir_http_problem(request, 503, NULL, WEIR_HTTP_NO_MEMORY);
    request->body.length_max = (size_t)(length ? length : limit); /* what is known is not doubled */

    const char *query = request->uri + request->path_length;
    weir_err err = *query == '?' ? weir_http_query_read(request->arena, request->route->query, query + 1,
                                                        request->query, &request->query_count)
                                 : WEIR_OK;
    if (err) weir_http_problem_err(request, err);
    return !err;
}

/* --- the calls from below ------------------------------------------------------------------------------------- */

static enum MHD_Result exchange_take_headers(weir_http_request *request, const char *method, const char *version) {
    uint64_t length;
    request->method = method;
    exchange_set_id(request);
    request->stage = WEIR_HTTP_STAGE_BODY;
    bool pass = exchange_check_framing(request, version) && exchange_check_request(request);
    WEIR_ASSERT(pass == !request->status);
    if (pass || !exchange_has_body(request, &length)) return MHD_YES; /* a reply now would end the connection */
    request->close = true;                                            /* the body is not read */
    return exchange_reply(request);
}

static enum MHD_Result exchange_take_body(weir_http_request *request, const char *upload, size_t *length) {
    weir_buf_append(&request->body, upload, *length);
    uint64_t room = weir_http_held(&request->body), known = request->charged_bytes;
    const char *detail = NULL;
    unsigned status = 503;
    if (room > known + 1 && !weir_http_charge(request, room - known)) { // SERVER-W4
        detail = WEIR_HTTP_NO_MEMORY;
    } else if (request->body.failed == WEIR_ELIMIT) {
        status = 413;
        detail = "the body is larger than this path allows; send less";
    } else if (request->body.failed) {
        detail = "the server is out of memory; try again in a second";
    }
    if (detail) {
        weir_http_exchange_cut(request->connection, status, detail);
        return MHD_NO;
    }
    *length = 0;
    return MHD_YES;
}

static enum MHD_Result exchange_run_handler(weir_http_request *request) {
    WEIR_ASSERT(request->route); // SERVER-W2
    weir_err err = request->route->handler(request->loop->http->opts.context, request);
    if (request->stage == WEIR_HTTP_STAGE_DEFERRED) {
        WEIR_ASSERT(!err); /* a deferred request is no longer the handler's */
        MHD_suspend_connection(request->mhd);
        return MHD_YES;
    }
    if (err) weir_http_problem_err(request, err);
    return exchange_reply(request);
}

int weir_http_exchange_access(const char *method, const char *version, const char *upload, size_t *upload_length,
                              void **request_slot) {
    WEIR_ON_ROLE(LOOP);
    weir_http_request *request = *request_slot;
    if (!request) return MHD_NO; /* out of memory when it began */
    switch (request->stage) {
    case WEIR_HTTP_STAGE_HEADERS:
        return exchange_take_headers(request, method, version);
    case WEIR_HTTP_STAGE_BODY:
        if (*upload_length) return exchange_take_body(request, upload, upload_length);
        if (request->status) return exchange_reply(request); /* refused at the headers */
        return exchange_run_handler(request);
    case WEIR_HTTP_STAGE_FINISHED:
        return exchange_reply(request);
    default:
        return MHD_YES;
    }
}

void weir_http_exchange_end(weir_http_loop *loop, weir_http_request *request) {
    WEIR_ON_ROLE(LOOP);
    weir_http_connection *connection = request->connection;
    int64_t now_us = weir_clock_mono_us(loop->http->clock);
    weir_metric_observe(WEIR_METRIC_HTTP_REQUEST_SECONDS, (uint64_t)(now_us - request->started_us));
    WEIR_ASSERT(request->stage != WEIR_HTTP_STAGE_DEFERRED && connection->request == request);
    connection->request = NULL;
    weir_http_deadline_move(connection, &loop->waiting, now_us);
    weir_http_request_give(loop, request);
}

/* --- past the library ------------------------------------------------------------------------------------------- */

/* Before there is a request nothing is said: a client between two requests would take it for the answer to its next.
 * Whether the refusal arrives is the peer's affair: it is cut off either way. */
void weir_http_exchange_cut(weir_http_connection *connection, unsigned status, const char *detail) {
    weir_http_request *request = connection->request;
    if (request && request->stage < WEIR_HTTP_STAGE_DEFERRED) {
        weir_buf body = {0}, head = {0};
        if (!request->id[0]) exchange_set_id(request);
        weir_http_problem_write(&body, status, NULL, detail, request->id);
        weir_buf_printf(&head,
                        "HTTP/1.1 %u %s\r\nContent-Type: application/problem+json\r\nContent-Length: %zu\r\n"
                        "Connection: close\r\n\r\n",
                        status, weir_http_status_title(status), body.length);
        weir_buf_append(&head, body.bytes, body.length);
        if (!weir_buf_err(&head)) (void)!send(connection->fd, head.bytes, head.length, MSG_NOSIGNAL | MSG_DONTWAIT);
        weir_buf_free(&body);
        weir_buf_free(&head);
    }
    shutdown(connection->fd, SHUT_RDWR);
}

/* The library refuses such a length before it calls access, but not cleanly (loop_on_message). */
void weir_http_exchange_refuse_length(weir_http_connection *connection) {
    if (connection->expired || !connection->request || connection->request->stage != WEIR_HTTP_STAGE_HEADERS) return;
    const char *length = weir_http_header(connection->request, "Content-Length");
    if (!length) return;
    bool digits = *length && !length[strspn(length, "0123456789")];
    errno = 0;
    if (digits && (strtoull(length, NULL, 10) != ULLONG_MAX || !errno)) return;
    connection->expired = true;
    if (digits)
        weir_http_exchange_cut(connection, 413, "the body is larger than any path allows; send less");
    else
        weir_http_exchange_cut(connection, 400,
                               "the Content-Length header is not a number; send the body's length in bytes");
}

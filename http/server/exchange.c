/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exchange.c - the life of one request on its loop: request line, headers, body, handler, reply.
 *
 * The library below calls access once when the headers are there, once for each piece of a body, once when all is
 * there, and again after a deferred request was finished. A reply to the first of these calls ends the connection
 * (0.9.75): so a request with a body is refused, one without is answered at the second. In the middle of a body the
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
#include <weir/store/base/log.h>
#include <weir/store/base/metrics.h>

#include "private.h"

/* --- the reply ------------------------------------------------------------------------------------------------ */

static void add(struct MHD_Response *response, const char *name, const char *value) {
    (void)MHD_add_response_header(response, name, value); /* fails when out of memory: the reply goes without it */
}

/* Two policies would both hold: a handler's stands in place of ours. */
static bool has_header(const weir_http_request *request, const char *name) {
    for (size_t i = 0; i < request->header_count; i++)
        if (!strcmp(request->headers[i].name, name)) return true;
    return false;
}

static struct MHD_Response *make_response(weir_http_request *request) {
    const void *bytes = request->fixed ? request->fixed : request->out.bytes;
    size_t length = request->fixed ? request->fixed_length : request->out.length;
    void *borrowed = NULL; /* the library does not write to it, and says so only in its manual */
    memcpy(&borrowed, &bytes, sizeof borrowed);
    struct MHD_Response *response = MHD_create_response_from_buffer(length, borrowed, MHD_RESPMEM_PERSISTENT);
    if (!response) return NULL;
    if (request->content_type) add(response, "Content-Type", request->content_type);
    add(response, "X-Request-Id", request->id);
    add(response, "Cache-Control", "no-store");
    add(response, "X-Content-Type-Options", "nosniff");
    if (!has_header(request, "Content-Security-Policy"))
        add(response, "Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'");
    if (request->status == 503) add(response, "Retry-After", "1");
    if (request->close) add(response, "Connection", "close");
    for (size_t i = 0; i < request->header_count; i++)
        add(response, request->headers[i].name, request->headers[i].value);
    return response;
}

static void count(const weir_http_request *request) {
    static const weir_metric classes[] = {WEIR_METRIC_HTTP_RESPONSES_2XX, WEIR_METRIC_HTTP_RESPONSES_4XX,
                                          WEIR_METRIC_HTTP_RESPONSES_5XX};
    weir_metric_add(classes[request->status < 400 ? 0 : request->status < 500 ? 1 : 2], 1);
}

static enum MHD_Result send_reply(weir_http_request *request) {
    weir_http *http = request->loop->http;
    WEIR_ASSERT(request->status && request->stage != WEIR_HTTP_STAGE_REPLIED); // W1
    weir_err err = weir_buf_err(&request->out);
    if (err) {
        weir_buf_free(&request->out);
        weir_http_problem_err(request, err);
    }
    if (!weir_http_lighten(request)) { // W4
        weir_buf_free(&request->out);
        weir_http_problem(request, 503, NULL, "the server holds as much as it may; try again in a second");
    }
    if (atomic_load_explicit(&http->stop_us, memory_order_relaxed)) request->close = true;
    struct MHD_Response *response = make_response(request);
    if (!response) return MHD_NO;
    count(request);
    request->stage = WEIR_HTTP_STAGE_REPLIED;
    enum MHD_Result queued = MHD_queue_response(request->mhd, request->status, response);
    MHD_destroy_response(response); /* its headers are copies */
    weir_http_shed_arena(request);
    return queued;
}

/* --- the request line and the headers ------------------------------------------------------------------------- */

static bool plain_id(const char *text) {
    size_t length = strlen(text);
    return length && length <= WEIR_HTTP_NAME_MAX &&
           strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") == length;
}

static void give_id(weir_http_request *request) {
    const char *own = weir_http_header(request, "X-Request-Id");
    if (own && plain_id(own)) {
        snprintf(request->id, sizeof request->id, "%s", own);
        return;
    }
    static const char digits[] = "0123456789abcdef";
    weir_http_loop *loop = request->loop;
    uint64_t number = (loop->id_next + loop->http->id_seed) * 0x9E3779B97F4A7C15u; /* odd: none comes twice */
    loop->id_next += WEIR_HTTP_LOOPS_MAX;
    for (size_t i = 16; i--; number >>= 4)
        request->id[i] = digits[number & 15];
    request->id[16] = 0;
}

const char *weir_http_header(const weir_http_request *request, const char *name) {
    return MHD_lookup_connection_value(request->mhd, MHD_HEADER_KIND, name);
}

/* Reserves a request when its first line is there; its deadline begins. NULL ends the exchange at the next call. */
void *weir_http_exchange_begin(weir_http_loop *loop, const char *uri, struct MHD_Connection *mhd) {
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    weir_http_connection *connection = info ? info->socket_context : NULL;
    weir_http_request *request = connection && !connection->request ? weir_http_request_take(loop) : NULL;
    if (!request) return NULL;
    size_t length = strlen(uri);
    request->uri = weir_arena_strndup(request->arena, uri, length);
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
    weir_http_deadline_move(connection, &loop->working, request->started_us); // W1
    weir_metric_add(WEIR_METRIC_HTTP_REQUESTS, 1);
    return request;
}

/* --- what a request may look like ----------------------------------------------------------------------------- */

/* The library takes what proxies before us may read in another way: a length twice, a length beside a transfer
 * encoding, a blank before a colon. Whoever disagrees on where a request ends can be made to answer one that was never
 * sent. */
/* What the library looks at before it asks us (W1: on_message in loop.c): digits, and as many as a number has. */
static bool is_length(const char *text) {
    size_t digits = strspn(text, "0123456789");
    errno = 0;
    return digits && !text[digits] && (strtoull(text, NULL, 10) != ULLONG_MAX || !errno);
}

typedef struct header_scan {
    unsigned hosts, lengths, encodings;
    bool odd; /* a name that is no token, a 0 byte, an encoding that is not plain chunked */
} header_scan;

static bool is_token(const char *name, size_t length) {
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789!#$%&'*+-.^_`|~";
    size_t i = 0;
    while (i < length && name[i] && strchr(letters, name[i]))
        i++;
    return length && i == length;
}

static enum MHD_Result scan_header(void *context, enum MHD_ValueKind kind, const char *name, size_t name_length,
                                   const char *value, size_t value_length) {
    header_scan *scan = context;
    (void)kind;
    if (!is_token(name, name_length) || (value && memchr(value, 0, value_length))) scan->odd = true;
    if (!strcasecmp(name, "Host")) scan->hosts++;
    if (!strcasecmp(name, "Content-Length")) scan->lengths++;
    if (!strcasecmp(name, "Transfer-Encoding")) {
        scan->encodings++;
        if (!value || strcasecmp(value, "chunked") != 0) scan->odd = true;
    }
    return MHD_YES;
}

static bool unambiguous(weir_http_request *request, const char *version) {
    header_scan scan = {0};
    (void)MHD_get_connection_values_n(request->mhd, MHD_HEADER_KIND, scan_header, &scan);
    bool old = strcmp(version, "HTTP/1.1") < 0;
    if (!old && !scan.hosts) {
        request->close = true;
        weir_http_problem(request, 400, NULL, "a request of HTTP/1.1 names its host; send a header Host");
        return false;
    }
    if (!scan.odd && !strchr(request->uri, ' ') && scan.hosts <= 1 && scan.lengths + scan.encodings <= 1 &&
        !(old && scan.encodings))
        return true;
    request->close = true;
    weir_http_problem(request, 400, NULL, "the headers can be read in more than one way; send each once and plainly");
    return false;
}

static bool has_body(const weir_http_request *request, uint64_t *lengthp) {
    const char *length = weir_http_header(request, "Content-Length");
    *lengthp = length ? strtoull(length, NULL, 10) : 0;
    return *lengthp || weir_http_header(request, "Transfer-Encoding");
}

static bool decode_params(weir_http_request *request, const weir_http_match *match) {
    for (size_t i = 0; i < WEIR_HTTP_PARAMS_MAX && match->params[i].bytes; i++) {
        size_t length = match->params[i].length;
        char *decoded = weir_arena_alloc(request->arena, length + 1);
        if (!decoded || !weir_http_decode(match->params[i].bytes, length, decoded, &length)) return false;
        request->params[i] = (weir_http_text){decoded, length};
    }
    return true;
}

/* "Bearer KEY" or X-API-Key. */
static const char *key_of(const weir_http_request *request) {
    const char *authorization = weir_http_header(request, "Authorization");
    if (!authorization) return weir_http_header(request, "X-API-Key");
    return strncasecmp(authorization, "Bearer ", 7) ? "" : authorization + 7;
}

/* A browser sends what any page that it shows asks for, and without being asked first where a form could have sent it.
 * It says which page that was, in a header that no page can set: the older one is asked where the newer is missing,
 * which browsers send over HTTPS and to this machine only. What is no browser sends neither. */
static bool from_another_site(const weir_http_request *request) {
    if (!strcmp(request->method, "GET") || !strcmp(request->method, "HEAD")) return false;
    const char *site = weir_http_header(request, "Sec-Fetch-Site"), *origin = weir_http_header(request, "Origin");
    if (site) return strcmp(site, "same-origin") != 0 && strcmp(site, "none") != 0;
    return origin && !weir_http_origin_is_host(origin, weir_http_header(request, "Host"));
}

/* Of whom, and that it happened, is for the operator's eyes; the key is for nobody's. A right key passes whatever came
 * before it: behind a proxy all clients have one address, and one that was not told of its new key must not lock out
 * the others. false: more came from this address than are written down. */
static bool count_wrong_key(weir_http_request *request) {
    weir_http *http = request->loop->http;
    uint32_t count = weir_http_peers_strike(http->peers, request->connection->peer, weir_clock_mono_us(http->clock));
    weir_metric_add(WEIR_METRIC_HTTP_WRONG_KEYS, 1);
    if (count > WEIR_HTTP_STRIKES_MAX) return false;
    char address[80] = "unknown";
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(request->mhd, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    if (info && info->client_addr) weir_http_address_text(info->client_addr, address, sizeof address);
    WEIR_LOG(WARN, "audit.wrong_key",
             count < WEIR_HTTP_STRIKES_MAX ? "a key that is not one of this server's"
                                           : "a key that is not one of this server's; more of the address's are "
                                             "counted and not written down for a minute",
             WEIR_TEXT("address", address), WEIR_TEXT("request", request->id), WEIR_U64("count", count));
    return true;
}

static void refuse_key(weir_http_request *request) {
    if (!count_wrong_key(request)) {
        weir_http_add_header(request, "Retry-After", "60");
        weir_http_problem(request, 429, NULL, "too many wrong keys came from this address; wait a minute");
        return;
    }
    weir_http_add_header(request, "WWW-Authenticate", "Bearer");
    weir_http_problem(request, 401, NULL, "the key is not one of this server's; send `Authorization: Bearer KEY`");
}

/* Where nobody needs a key none is refused, however many wrong ones came from the address: a probe whose key was taken
 * away is still told whether the server is ready. */
static void know_caller(weir_http_request *request) {
    const weir_http_opts *opts = &request->loop->http->opts;
    const char *key = key_of(request);
    if (!key || opts->authenticate(opts->context, key, strlen(key), &request->caller)) return;
    request->caller = (weir_http_caller){0};
    (void)count_wrong_key(request);
}

/* false: the request has its refusal (W2, W3, W5). */
static bool allowed(weir_http_request *request, weir_http_role role) {
    const weir_http_opts *opts = &request->loop->http->opts;
    if (from_another_site(request)) { // W5
        weir_http_problem(request, 403, "another-site",
                          "a page of another site asked for this; only this server's own page may, and what is no "
                          "browser");
        return false;
    }
    if (!opts->authenticate) {
        request->caller = (weir_http_caller){.roles = WEIR_HTTP_ADMIN, .name = "local"};
        if (weir_http_host_is_local(weir_http_header(request, "Host"))) return true; // W3
        weir_http_problem(request, 421, NULL,
                          "without keys this server answers only to localhost, 127.0.0.1 and [::1]");
        return false;
    }
    if (role == WEIR_HTTP_ANYONE) {
        know_caller(request);
        return true;
    }
    const char *key = key_of(request);
    if (!key) {
        weir_http_add_header(request, "WWW-Authenticate", "Bearer");
        weir_http_problem(request, 401, NULL, "this needs a key; send `Authorization: Bearer KEY`");
        return false;
    }
    if (!opts->authenticate(opts->context, key, strlen(key), &request->caller)) {
        refuse_key(request);
        return false;
    }
    if (request->caller.roles & (role | WEIR_HTTP_ADMIN)) return true; // W2
    weir_http_problem(request, 403, NULL, "the key '%s' has no right to this", request->caller.name);
    return false;
}

/* false: the request has its refusal. */
static bool route(weir_http_request *request) {
    const weir_http_opts *opts = &request->loop->http->opts;
    weir_http_match match;
    weir_http_match_find(opts->routes, opts->route_count, request->method, request->uri, request->path_length, &match);
    if (!allowed(request, match.route ? match.route->role : WEIR_HTTP_ANYONE)) return false;
    if (match.route) {
        request->route = match.route;
        if (decode_params(request, &match)) return true;
        weir_http_problem(request, 400, NULL, "the path has a '%%' without two hex digits; encode it anew");
    } else if (*match.allow) {
        char *allow = weir_arena_printf(request->arena, "%s", match.allow);
        if (allow) weir_http_add_header(request, "Allow", allow);
        weir_http_problem(request, 405, NULL, "this path takes %s, not %.16s", match.allow, request->method);
    } else {
        weir_http_problem(request, 404, NULL, "there is nothing at this path; /openapi.json lists what there is");
    }
    return false;
}

static bool fits(weir_http_request *request) {
    uint64_t length, limit = request->route->body_bytes_max;
    bool body = has_body(request, &length);
    if (body && !limit) {
        weir_http_problem(request, 400, NULL, "this takes no body; send none");
    } else if (length > limit) {
        weir_http_problem(request, 413, NULL, "the body has %llu bytes; %llu are allowed here",
                          (unsigned long long)length, (unsigned long long)limit);
    } else if (length && !weir_http_charge(request, length)) { // W4
        weir_http_problem(request, 503, NULL, "the server holds as many bodies as it may; try again in a second");
    } else {
        request->body.length_max = (size_t)(length ? length : limit); /* what is known is not doubled */
        return true;
    }
    return false;
}

static bool read_query(weir_http_request *request) {
    const char *query = request->uri + request->path_length;
    if (*query != '?') return true;
    weir_err err =
        weir_http_query_read(request->arena, request->route->query, query + 1, request->query, &request->query_count);
    if (!err) return true;
    weir_http_problem_err(request, err);
    return false;
}

static bool headers_pass(weir_http_request *request) {
    if (request->path_length == 0 || strlen(request->uri) > WEIR_HTTP_URI_BYTES_MAX) {
        weir_http_problem(request, 400, NULL, "the path and query have more than %u bytes, or none",
                          WEIR_HTTP_URI_BYTES_MAX);
        return false;
    }
    return route(request) && fits(request) && read_query(request); // W2
}

/* --- the calls from below ------------------------------------------------------------------------------------- */

static enum MHD_Result run_handler(weir_http_request *request) {
    WEIR_ON_ROLE(LOOP);
    weir_err err = request->route->handler(request->loop->http->opts.context, request);
    if (request->stage == WEIR_HTTP_STAGE_DEFERRED) {
        WEIR_ASSERT(!err); /* a deferred request is no longer the handler's */
        MHD_suspend_connection(request->mhd);
        return MHD_YES;
    }
    if (err) weir_http_problem_err(request, err);
    return send_reply(request);
}

static enum MHD_Result take_headers(weir_http_request *request, const char *method, const char *version) {
    uint64_t length;
    request->method = method;
    give_id(request);
    request->stage = WEIR_HTTP_STAGE_BODY;
    bool pass = unambiguous(request, version) && headers_pass(request);
    if (pass || !has_body(request, &length)) return MHD_YES; /* a reply to this call would end the connection */
    request->close = true;                                   /* nobody will read the body */
    return send_reply(request);
}

static enum MHD_Result take_body(weir_http_request *request, const char *upload, size_t *length) {
    weir_buf_append(&request->body, upload, *length);
    uint64_t room = weir_http_held(&request->body), known = request->charged_bytes;
    if (room > known + 1 && !weir_http_charge(request, room - known)) { // W4
        weir_http_exchange_cut(request->connection, 503, "the server holds as much as it may; try again in a second");
        return MHD_NO;
    }
    if (request->body.failed == WEIR_ELIMIT) {
        weir_http_exchange_cut(request->connection, 413, "the body is larger than this path allows");
        return MHD_NO;
    }
    if (request->body.failed) {
        weir_http_exchange_cut(request->connection, 503, "the server is out of memory; try again in a second");
        return MHD_NO;
    }
    *length = 0;
    return MHD_YES;
}

int weir_http_exchange_access(const char *method, const char *version, const char *upload, size_t *upload_length,
                              void **request_slot) {
    weir_http_request *request = *request_slot;
    if (!request) return MHD_NO; /* no memory when it began */
    switch (request->stage) {
    case WEIR_HTTP_STAGE_HEADERS:
        return take_headers(request, method, version);
    case WEIR_HTTP_STAGE_BODY:
        if (*upload_length) return take_body(request, upload, upload_length);
        return request->status ? send_reply(request) : run_handler(request); /* W2: refused at the headers */
    case WEIR_HTTP_STAGE_FINISHED:
        return send_reply(request);
    default:
        return MHD_YES;
    }
}

void weir_http_exchange_end(weir_http_loop *loop, weir_http_request *request) {
    weir_http_connection *connection = request->connection;
    int64_t now_us = weir_clock_mono_us(loop->http->clock);
    weir_metric_observe(WEIR_METRIC_HTTP_REQUEST_SECONDS, (uint64_t)(now_us - request->started_us));
    WEIR_ASSERT(request->stage != WEIR_HTTP_STAGE_DEFERRED && connection->request == request);
    connection->request = NULL;
    weir_http_deadline_move(connection, &loop->waiting, now_us);
    weir_http_request_give(loop, request);
}

/* Past the library, so by hand. Whether it arrives is the peer's affair: it is cut off either way. */
static void send_refusal(const weir_http_connection *connection, unsigned status, const char *detail) {
    weir_buf body = {0}, head = {0};
    if (!connection->request->id[0]) give_id(connection->request);
    weir_http_problem_write(&body, status, NULL, detail, connection->request->id);
    weir_buf_printf(&head,
                    "HTTP/1.1 %u %s\r\nContent-Type: application/problem+json\r\nContent-Length: %zu\r\n"
                    "Connection: close\r\n\r\n",
                    status, weir_http_status_title(status), body.length);
    weir_buf_append(&head, body.bytes, body.length);
    if (!weir_buf_err(&head)) (void)!send(connection->fd, head.bytes, head.length, MSG_NOSIGNAL | MSG_DONTWAIT);
    weir_buf_free(&body);
    weir_buf_free(&head);
}

/* Before there is a request nothing is said: a client between two requests would take it for the answer to its next. */
void weir_http_exchange_cut(weir_http_connection *connection, unsigned status, const char *detail) {
    if (connection->request && connection->request->stage < WEIR_HTTP_STAGE_DEFERRED)
        send_refusal(connection, status, detail);
    shutdown(connection->fd, SHUT_RDWR);
}

void weir_http_exchange_refuse_length(weir_http_connection *connection) {
    if (connection->expired || !connection->request || connection->request->stage != WEIR_HTTP_STAGE_HEADERS) return;
    const char *length = weir_http_header(connection->request, "Content-Length");
    if (!length || is_length(length)) return;
    connection->expired = true;
    if (length[strspn(length, "0123456789")] || !*length)
        weir_http_exchange_cut(connection, 400, "the header Content-Length is no number; send the body's length");
    else
        weir_http_exchange_cut(connection, 413, "the body is larger than any path allows");
}

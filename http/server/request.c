/* SPDX-License-Identifier: Apache-2.0 */
/*
 * request.c - what a handler sees of a request, and the memory behind it.
 *
 * A loop keeps its requests for the next ones: a request of a kind that was seen before allocates nothing.
 */
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>

#include "private.h"

#define KEPT_REQUESTS_MAX 64u         /* of a loop */
#define KEPT_BYTES_MAX    (32u << 10) /* of a body, a reply or an arena */

/* --- memory --------------------------------------------------------------------------------------------------- */

/* Small buffers are kept from request to request and not counted: there are few of them. */
static uint64_t request_metered(uint64_t capacity) {
    return capacity > KEPT_BYTES_MAX ? capacity : 0;
}

/* A reply counts while it is written, with what it was before it moved: else as many as there are threads to write
 * them would pass the budget together. */
static bool request_meter(void *context, uint64_t more, uint64_t less) {
    weir_http_request *request = context;
    uint64_t taken = request_metered(more), given = request_metered(less);
    if (taken > given) return weir_http_charge(request, taken - given); // SERVER-W4
    WEIR_ASSERT(request->charged_bytes >= given - taken);
    request->charged_bytes -= given - taken;
    atomic_fetch_sub_explicit(&request->loop->http->charged_bytes, given - taken, memory_order_relaxed);
    return true;
}

static void request_free(weir_http_request *request) {
    weir_arena_close(request->arena);
    weir_buf_free(&request->body);
    weir_buf_free(&request->out);
    weir_free(request);
}

weir_http_request *weir_http_request_take(weir_http_loop *loop) {
    WEIR_ON_ROLE(LOOP);
    weir_http_request *request = loop->free;
    if (request) {
        WEIR_ASSERT(loop->free_count && !request->charged_bytes);
        loop->free = request->next;
        loop->free_count--;
        return request;
    }
    request = weir_calloc(1, sizeof *request);
    if (!request) return NULL;
    weir_err err = weir_arena_open(WEIR_HTTP_ARENA_BYTES_MAX, &request->arena);
    if (err) {
        weir_free(request);
        return NULL;
    }
    request->loop = loop;
    request->out = (weir_buf){.meter = request_meter, .meter_context = request};
    return request;
}

/* Empties it for the next request. */
static void request_keep_buf(weir_buf *buf) {
    if (buf->capacity > KEPT_BYTES_MAX) weir_buf_free(buf);
    weir_buf_clear(buf);
    buf->length_max = 0;
}

/* Empties it for the next request; a large one is replaced.  false: out of memory, and the arena is NULL. */
static bool request_keep_arena(weir_http_request *request) {
    if (weir_arena_used(request->arena) <= KEPT_BYTES_MAX) {
        weir_arena_reset(request->arena);
        return true;
    }
    weir_arena_close(request->arena);
    return !weir_arena_open(WEIR_HTTP_ARENA_BYTES_MAX, &request->arena);
}

/* Gives back all that was charged but what the reply holds. */
static void request_discharge(weir_http_request *request) {
    uint64_t held = request_metered(request->out.capacity);
    WEIR_ASSERT(request->charged_bytes >= held);
    atomic_fetch_sub_explicit(&request->loop->http->charged_bytes, request->charged_bytes - held, memory_order_relaxed);
    request->charged_bytes = held;
}

uint64_t weir_http_held(const weir_buf *buf) {
    return buf->capacity > KEPT_BYTES_MAX ? buf->capacity : buf->length;
}

bool weir_http_lighten(weir_http_request *request) {
    weir_buf *out = &request->out;
    request_keep_buf(&request->body);
    request_discharge(request);
    if (out->capacity - out->length > KEPT_BYTES_MAX) weir_buf_shrink(out);
    return request->fixed || request_metered(out->capacity) || weir_http_charge(request, out->length);
}

void weir_http_shed_arena(weir_http_request *request) {
    if (weir_arena_used(request->arena) > KEPT_BYTES_MAX) (void)request_keep_arena(request);
}

void weir_http_request_give(weir_http_loop *loop, weir_http_request *request) {
    WEIR_ON_ROLE(LOOP);
    WEIR_ASSERT(request->loop == loop && request->stage != WEIR_HTTP_STAGE_DEFERRED);
    request_keep_buf(&request->body);
    request_keep_buf(&request->out);
    request_discharge(request);
    if (loop->free_count == KEPT_REQUESTS_MAX || !request->arena || !request_keep_arena(request)) {
        request_free(request);
        return;
    }
    weir_buf body = request->body, out = request->out;
    *request = (weir_http_request){.loop = loop, .arena = request->arena, .body = body, .out = out, .next = loop->free};
    loop->free = request;
    loop->free_count++;
}

void weir_http_requests_free(weir_http_loop *loop) {
    while (loop->free) {
        weir_http_request *request = loop->free;
        loop->free = request->next;
        request_free(request);
    }
    loop->free_count = 0;
}

bool weir_http_charge(weir_http_request *request, uint64_t bytes) {
    weir_http *http = request->loop->http;
    uint64_t before = atomic_fetch_add_explicit(&http->charged_bytes, bytes, memory_order_relaxed);
    if (before + bytes > http->opts.memory_bytes) { // SERVER-W4
        atomic_fetch_sub_explicit(&http->charged_bytes, bytes, memory_order_relaxed);
        return false;
    }
    request->charged_bytes += bytes;
    return true;
}

/* --- what is asked -------------------------------------------------------------------------------------------- */

weir_arena *weir_http_arena(weir_http_request *request) {
    return request->arena;
}

const weir_http_caller *weir_http_request_caller(const weir_http_request *request) {
    return &request->caller;
}

uint32_t weir_http_loop_index(const weir_http_request *request) {
    return request->loop->index;
}

const char *weir_http_param(const weir_http_request *request, size_t index, size_t *lengthp) {
    WEIR_ASSERT(index < WEIR_HTTP_PARAMS_MAX && request->params[index].bytes);
    *lengthp = request->params[index].length;
    return request->params[index].bytes;
}

const char *weir_http_query(const weir_http_request *request, const char *name) {
    for (size_t i = 0; i < request->query_count; i++)
        if (!strcmp(request->query[i].name, name)) return request->query[i].value;
    return NULL;
}

const char *weir_http_body(const weir_http_request *request, size_t *lengthp) {
    *lengthp = request->body.length;
    return request->body.bytes ? request->body.bytes : "";
}

int64_t weir_http_left_us(const weir_http_request *request) {
    const weir_http *http = request->loop->http;
    int64_t left_us = request->started_us + http->opts.request_us - weir_clock_mono_us(http->clock);
    return left_us > 0 ? left_us : 0;
}

weir_err weir_http_hold(weir_http_request *request, uint64_t bytes) {
    if (weir_http_charge(request, bytes)) return WEIR_OK; // SERVER-W4
    return WEIR_ERR(WEIR_EBUSY, "%s", WEIR_HTTP_NO_MEMORY);
}

/* --- what is answered ----------------------------------------------------------------------------------------- */

weir_buf *weir_http_out(weir_http_request *request) {
    return &request->out;
}

void weir_http_start_over(weir_http_request *request) {
    WEIR_ASSERT(request->stage == WEIR_HTTP_STAGE_BODY && !request->fixed);
    weir_buf_clear(&request->out);
    request->header_count = 0;
}

void weir_http_reply(weir_http_request *request, unsigned status, const char *content_type) {
    WEIR_ASSERT(status >= 200 && status < 600);
    request->status = status;
    request->content_type = content_type;
}

void weir_http_add_header(weir_http_request *request, const char *name, const char *value) {
    WEIR_ASSERT(request->header_count < WEIR_HTTP_HEADERS_MAX);
    request->headers[request->header_count++] = (weir_http_pair){name, value};
}

void weir_http_reply_static(weir_http_request *request, unsigned status, const char *content_type, const void *bytes,
                            size_t length) {
    weir_http_reply(request, status, content_type);
    request->fixed = bytes;
    request->fixed_length = length;
}

void weir_http_defer(weir_http_request *request) {
    WEIR_ON_ROLE(LOOP);
    WEIR_ASSERT(request->stage == WEIR_HTTP_STAGE_BODY);
    request->stage = WEIR_HTTP_STAGE_DEFERRED;
}

void weir_http_finish(weir_http_request *request) {
    weir_http_loop *loop = request->loop;
    WEIR_ASSERT(request->stage == WEIR_HTTP_STAGE_DEFERRED && request->status); // SERVER-W1
    weir_mutex_lock(&loop->mutex);
    bool first = !loop->finished;
    request->next = loop->finished;
    loop->finished = request;
    weir_mutex_unlock(&loop->mutex);
    if (first) weir_http_loop_wake(loop);
}

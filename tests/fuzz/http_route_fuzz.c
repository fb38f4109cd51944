/* SPDX-License-Identifier: Apache-2.0 */
/* Any request target is matched, decoded and read, or refused: nothing decoded is longer than what was sent. */
#include <stdlib.h>
#include <string.h>

#include "../../http/server/private.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const query[] = {"relation", "before", "limit", NULL};
static const weir_http_route routes[] = {
    {"GET", "/v1/neighbors/{type}/{key}", WEIR_HTTP_READER, query, 0, NULL},
    {"POST", "/v1/events", WEIR_HTTP_WRITER, NULL, 1, NULL},
    {"GET", "/{a}/{b}/{c}/{d}", WEIR_HTTP_ANYONE, query, 0, NULL},
    {"GET", "/", WEIR_HTTP_ANYONE, NULL, 0, NULL},
};

static void must(int condition) {
    if (!condition) abort();
}

static void decode_params(const weir_http_match *match, char *room) {
    for (size_t i = 0; i < WEIR_HTTP_PARAMS_MAX && match->params[i].bytes; i++) {
        size_t length;
        must(!memchr(match->params[i].bytes, '/', match->params[i].length) && match->params[i].length > 0);
        if (!weir_http_decode(match->params[i].bytes, match->params[i].length, room, &length)) continue;
        must(length <= match->params[i].length && room[length] == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    weir_arena *arena;
    weir_http_match match;
    weir_http_pair pairs[WEIR_HTTP_QUERY_MAX];
    size_t count;
    if (weir_arena_open(1u << 20, &arena)) return 0;
    char *uri = weir_arena_strndup(arena, (const char *)data, size), *room = weir_arena_alloc(arena, size + 1);
    if (uri && room) {
        size_t path = strcspn(uri, "?");
        weir_http_match_find(routes, sizeof routes / sizeof routes[0], "GET", uri, path, &match);
        if (match.route) decode_params(&match, room);
        const char *const *allowed = match.route ? match.route->query : query;
        if (!weir_http_query_read(arena, allowed, uri + path + (uri[path] == '?'), pairs, &count)) {
            must(count <= WEIR_HTTP_QUERY_MAX);
            for (size_t i = 0; i < count; i++)
                must(strlen(pairs[i].name) + strlen(pairs[i].value) <= size);
        }
    }
    weir_arena_close(arena);
    return 0;
}

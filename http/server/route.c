/* SPDX-License-Identifier: Apache-2.0 */
/*
 * route.c - a method and a path find a row of the table; a query is held against it.
 *
 * Paths are matched as they were sent and decoded afterwards, segment by segment: a "%2F" in a key is part of the key
 * and never ends a segment.
 */
#include <stdio.h>
#include <string.h>

#include <weir/store/base/assert.h>
#include <weir/store/base/bytes.h>
#include <weir/store/base/suggest.h>

#include "private.h"

bool weir_http_decode(const char *text, size_t length, char *decoded, size_t *lengthp) {
    size_t used = 0;
    *lengthp = 0;
    for (size_t i = 0; i < length; i++) {
        char c = text[i];
        if (c == '%') {
            if (length - i < 3) return false;
            int high = weir_hex_digit(text[i + 1]), low = weir_hex_digit(text[i + 2]);
            if (high < 0 || low < 0) return false;
            c = (char)(high << 4 | low);
            i += 2;
        }
        decoded[used++] = c;
    }
    WEIR_ASSERT(used <= length);
    decoded[used] = 0;
    *lengthp = used;
    return true;
}

/* --- paths ---------------------------------------------------------------------------------------------------- */

/* One segment, or what is left; *restp stands behind its slash, or is at the end. */
static size_t route_segment(const char *text, const char *end, const char **restp) {
    const char *slash = memchr(text, '/', (size_t)(end - text));
    *restp = slash ? slash + 1 : end;
    return (size_t)((slash ? slash : end) - text);
}

static bool route_matches(const char *pattern, const char *path, size_t length, weir_http_text *params) {
    const char *pattern_end = pattern + strlen(pattern), *path_end = path + length;
    size_t count = 0;
    while (pattern < pattern_end && path < path_end) {
        const char *want = pattern, *have = path;
        size_t want_length = route_segment(want, pattern_end, &pattern),
               have_length = route_segment(have, path_end, &path);
        if (*want == '{') {
            if (!have_length || count == WEIR_HTTP_PARAMS_MAX) return false;
            params[count++] = (weir_http_text){have, have_length};
        } else if (want_length != have_length || memcmp(want, have, want_length) != 0) {
            return false;
        }
        /* one of the two goes on behind a slash, the other ends */
        if ((want[want_length] == '/') != (have + have_length < path_end)) return false;
    }
    return pattern == pattern_end && path == path_end;
}

void weir_http_match_find(const weir_http_route *routes, size_t count, const char *method, const char *path,
                          size_t length, weir_http_match *matchp) {
    const char *wanted = strcmp(method, "HEAD") ? method : "GET"; /* HEAD is answered as GET is, without the body */
    *matchp = (weir_http_match){0};
    for (size_t i = 0; i < count; i++) {
        weir_http_text params[WEIR_HTTP_PARAMS_MAX] = {{0}};
        if (!route_matches(routes[i].pattern, path, length, params)) continue;
        size_t used = strlen(matchp->allow), room = sizeof matchp->allow - used;
        if (strlen(routes[i].method) + sizeof ", " <= room) /* "GET, DELETE": what still fits */
            snprintf(matchp->allow + used, room, "%s%s", used ? ", " : "", routes[i].method);
        if (strcmp(routes[i].method, wanted) != 0) continue;
        matchp->route = &routes[i];
        memcpy(matchp->params, params, sizeof params);
        return;
    }
}

/* --- queries -------------------------------------------------------------------------------------------------- */

static weir_err query_decode(weir_arena *arena, const char *text, size_t length, const char **decodedp) {
    size_t decoded_length;
    char *decoded = weir_arena_alloc(arena, length + 1);
    if (!decoded) return WEIR_NOMEM("for the query");
    *decodedp = decoded;
    if (!weir_http_decode(text, length, decoded, &decoded_length) || strlen(decoded) != decoded_length)
        return WEIR_ERR(
            WEIR_EDATA,
            "the query has a '%%' without two hex digits after it, or a zero byte; percent-encode the query again");
    return WEIR_OK;
}

static weir_err query_read_pair(weir_arena *arena, const char *const *allowed, const char *text, size_t length,
                                weir_http_pair *pairs, size_t *countp) {
    const char *equals = memchr(text, '=', length);
    size_t name_length = equals ? (size_t)(equals - text) : length;
    weir_http_pair pair = {NULL, ""};
    weir_err err = query_decode(arena, text, name_length, &pair.name);
    if (!err && equals) err = query_decode(arena, equals + 1, length - name_length - 1, &pair.value);
    if (err) return err;
    bool known = false;
    for (size_t i = 0; allowed && allowed[i] && !known; i++)
        known = !strcmp(allowed[i], pair.name);
    if (!known) {
        char nearest[128];
        weir_suggest suggest = weir_suggest_for(pair.name);
        for (size_t i = 0; allowed && allowed[i]; i++)
            weir_suggest_offer(&suggest, allowed[i]);
        return WEIR_ERR(WEIR_EDATA, "unknown query parameter '%.64s'%s", pair.name,
                        weir_suggest_text(&suggest, nearest, sizeof nearest));
    }
    for (size_t i = 0; i < *countp; i++)
        if (!strcmp(pairs[i].name, pair.name))
            return WEIR_ERR(WEIR_EDATA, "query parameter '%.64s' is given twice; give it once", pair.name);
    if (*countp == WEIR_HTTP_QUERY_MAX)
        return WEIR_ERR(WEIR_ELIMIT, "the query has more than %u parameters; send fewer", WEIR_HTTP_QUERY_MAX);
    pairs[(*countp)++] = pair;
    return WEIR_OK;
}

weir_err weir_http_query_read(weir_arena *arena, const char *const *allowed, const char *query,
                              weir_http_pair pairs[WEIR_HTTP_QUERY_MAX], size_t *countp) {
    *countp = 0;
    while (*query) {
        size_t length = strcspn(query, "&");
        weir_err err = length ? query_read_pair(arena, allowed, query, length, pairs, countp) : WEIR_OK;
        if (err) return err;
        query += length + (query[length] == '&');
    }
    return WEIR_OK;
}

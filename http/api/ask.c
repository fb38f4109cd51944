/* SPDX-License-Identifier: Apache-2.0 */
/* ask.c - reads the types, keys, times and relations that requests name, against the schema. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <weir/store/base/suggest.h>

#include "private.h"

static weir_err ask_no_such(const char *what, const char *name, const weir_suggest *suggest, weir_code code) {
    char nearest[128];
    return WEIR_ERR(code, "the schema has no %s '%.64s'%s", what, name,
                    weir_suggest_text(suggest, nearest, sizeof nearest));
}

/* 7, "7" and "007" are one vertex: the key is the number's one spelling. */
static weir_err ask_spell_integer(weir_arena *arena, weir_api_vertex *vertex) {
    char *end;
    errno = 0;
    long long value = strtoll(vertex->key, &end, 10);
    bool begins = vertex->key_length && strchr("-0123456789", vertex->key[0]);
    if (!begins || errno || end != vertex->key + vertex->key_length)
        return WEIR_ERR(WEIR_EDATA, "the key of a %s must be a 64-bit integer", vertex->type_name);
    vertex->key = weir_arena_printf(arena, "%lld", value);
    if (!vertex->key) return WEIR_NOMEM("for a key");
    vertex->key_length = strlen(vertex->key);
    return WEIR_OK;
}

weir_err weir_api_vertex_read(const weir_schema *schema, weir_arena *arena, const char *type, const char *key,
                              size_t key_length, weir_api_vertex *vertexp) {
    uint32_t id = weir_schema_vertex_find(schema, type);
    if (id == WEIR_SCHEMA_NONE) {
        weir_suggest suggest = weir_suggest_for(type);
        for (uint32_t i = 0; i < weir_schema_vertex_count(schema); i++)
            weir_suggest_offer(&suggest, weir_schema_vertex_at(schema, i)->name);
        return ask_no_such("vertex type", type, &suggest, WEIR_ENOTFOUND);
    }
    const weir_schema_vertex *vertex = weir_schema_vertex_at(schema, id);
    *vertexp = (weir_api_vertex){.type = (uint16_t)id, .type_name = vertex->name, .key = key, .key_length = key_length};
    if (key_length > WEIR_KEY_MAX)
        return WEIR_ERR(WEIR_EDATA, "the key has %zu bytes; at most %u are allowed", key_length, WEIR_KEY_MAX);
    return vertex->key == WEIR_SCHEMA_KEY_INTEGER ? ask_spell_integer(arena, vertexp) : WEIR_OK;
}

weir_err weir_api_vertex_of_path(const weir_api *api, weir_http_request *request, weir_api_vertex *vertexp) {
    size_t type_length, key_length;
    const char *type = weir_http_param(request, 0, &type_length), *key = weir_http_param(request, 1, &key_length);
    if (strlen(type) != type_length) return WEIR_ERR(WEIR_EDATA, "the vertex type contains a zero byte; remove it");
    return weir_api_vertex_read(api->schema, weir_http_arena(request), type, key, key_length, vertexp);
}

weir_vertex weir_api_vertex_id(const weir_api *api, const weir_api_vertex *vertex) {
    return weir_vertex_id(weir_graph_id_key(api->graph), vertex->type_name, vertex->key, vertex->key_length);
}

weir_err weir_api_time_read(const char *name, const char *text, size_t length, int64_t *time_usp) {
    if (!weir_time_parse(text, length, time_usp)) return WEIR_OK;
    return WEIR_ERR(WEIR_EDATA, "'%s' is not a time; write it like 2026-11-21T10:00:00Z", name);
}

weir_err weir_api_before(const weir_http_request *request, int64_t *before_usp) {
    const char *text = weir_http_query(request, "before");
    *before_usp = WEIR_BEFORE_ALL;
    return text ? weir_api_time_read("before", text, strlen(text), before_usp) : WEIR_OK;
}

weir_err weir_api_direction_read(const char *text, weir_direction *directionp) {
    if (strcmp(text, "out") != 0 && strcmp(text, "in") != 0)
        return WEIR_ERR(WEIR_EDATA, "direction is '%.16s'; it must be out or in", text);
    *directionp = *text == 'o' ? WEIR_OUT : WEIR_IN;
    return WEIR_OK;
}

weir_err weir_api_relation_read(const weir_schema *schema, const char *text, uint16_t *relationp) {
    uint32_t id = weir_schema_relation_find(schema, text);
    if (id != WEIR_SCHEMA_NONE) {
        *relationp = (uint16_t)id;
        return WEIR_OK;
    }
    weir_suggest suggest = weir_suggest_for(text);
    for (uint32_t i = 0; i < weir_schema_relation_count(schema); i++)
        weir_suggest_offer(&suggest, weir_schema_relation_at(schema, i)->name);
    return ask_no_such("relation", text, &suggest, WEIR_EDATA);
}

weir_err weir_api_source_read(const weir_schema *schema, const char *text, uint32_t *sourcep) {
    *sourcep = weir_schema_source_find(schema, text);
    if (*sourcep != WEIR_SCHEMA_NONE) return WEIR_OK;
    weir_suggest suggest = weir_suggest_for(text);
    for (uint32_t i = 0; i < weir_schema_source_count(schema); i++)
        weir_suggest_offer(&suggest, weir_schema_source_at(schema, i)->name);
    return ask_no_such("source", text, &suggest, WEIR_EDATA);
}

bool weir_api_is_type(const char *header, const char *type) {
    size_t length = strlen(type);
    return !strncasecmp(header, type, length) && (!header[length] || strchr("; \t", header[length]));
}

bool weir_api_takes_json(weir_http_request *request) {
    const char *type = weir_http_header(request, "Content-Type");
    return (type && weir_api_is_type(type, "application/json")) ||
           weir_http_problem(request, 415, NULL, "the Content-Type must be application/json");
}

int64_t weir_api_now(const weir_api *api) {
    int64_t now_us = weir_clock_wall_us(api->clock), agreed_us = weir_graph_watermark(api->graph);
    return now_us > agreed_us ? now_us : agreed_us + 1;
}

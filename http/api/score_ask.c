/* SPDX-License-Identifier: Apache-2.0 */
/*
 * score_ask.c - the body of POST /v1/score.
 *
 * An event goes to the mapper with the bytes that it was sent in, as it would from the log: so it is cut out of the
 * body, not written anew from what the reader of JSON understood.
 */
#include <stdio.h>
#include <string.h>

#include "body.h"
#include "score_ask.h"

#define DEPTH_MAX       (WEIR_MESSAGE_DEPTH_MAX + 1)
#define REASONS_DEFAULT 5
#define NODES_MAX       1000000
#define DEADLINE_MAX_MS 10000

static weir_err no_memory(void) {
    return WEIR_ERR(WEIR_ENOMEM, "no memory for a request");
}

/* --- targets -------------------------------------------------------------------------------------------------- */

static weir_err read_target(const weir_schema *schema, const json_t *value, const char *where, weir_arena *arena,
                            weir_api_score_ask *ask) {
    static const char *const names[] = {"type", "key", NULL};
    const char *type, *key;
    size_t type_length, key_length;
    weir_err err = weir_api_body_members(value, where, names);
    if (!err) err = weir_api_body_need(value, where, "type", &type, &type_length);
    if (!err) err = weir_api_body_need(value, where, "key", &key, &key_length);
    if (err) return err;
    key = weir_arena_strndup(arena, key, key_length); /* it outlives the JSON */
    if (!key) return no_memory();
    err = weir_api_vertex_read(schema, arena, type, key, key_length, &ask->vertices[ask->count]);
    if (weir_err_is(err, WEIR_ENOTFOUND)) err = WEIR_ERR(WEIR_EDATA, "the schema has no vertex type '%.64s'", type);
    if (err) return weir_err_prefix(err, "%s", where);
    ask->count++;
    return WEIR_OK;
}

static weir_err read_targets(const weir_schema *schema, const json_t *targets, weir_arena *arena,
                             weir_api_score_ask *ask) {
    size_t count = json_array_size(targets);
    weir_err err = WEIR_OK;
    if (!json_is_array(targets) || !count || count > WEIR_SCORE_BATCH_MAX)
        return WEIR_ERR(WEIR_EDATA, "targets must be an array of 1 to %u objects", WEIR_SCORE_BATCH_MAX);
    for (size_t i = 0; !err && i < count; i++) {
        char where[32];
        snprintf(where, sizeof where, "targets[%zu]", i);
        err = read_target(schema, json_array_get(targets, i), where, arena, ask);
    }
    return err;
}

/* --- an event ----------------------------------------------------------------------------------------------------- */

static const char *past_text(const char *at) {
    for (at++; *at != '"'; at++)
        if (*at == '\\') at++;
    return at + 1;
}

static const char *past_blanks(const char *at) {
    return at + strspn(at, " \t\r\n");
}

/* Behind a value of JSON that is known to be whole. */
static const char *past_value(const char *at) {
    size_t depth = 0;
    if (!strchr("{[\"", *at)) return at + strcspn(at, ",}] \t\r\n");
    do {
        if (*at == '"') {
            at = past_text(at);
            continue;
        }
        if (*at == '{' || *at == '[') depth++;
        if (*at == '}' || *at == ']') depth--;
        at++;
    } while (depth);
    return at;
}

/* The bytes of a member's value. The body was read before, and ends with a 0; a name that is spelt with escapes is not
 * found. */
static bool find_member(const char *body, const char *name, const char **valuep, size_t *lengthp) {
    size_t length = strlen(name);
    const char *at = past_blanks(past_blanks(body) + 1);
    while (*at == '"') {
        const char *end = past_text(at);
        bool wanted = (size_t)(end - at) == length + 2 && !memcmp(at + 1, name, length);
        at = past_blanks(past_blanks(end) + 1);
        end = past_value(at);
        if (wanted) {
            *valuep = at;
            *lengthp = (size_t)(end - at);
            return true;
        }
        at = past_blanks(end);
        if (*at == ',') at = past_blanks(at + 1);
    }
    return false;
}

static weir_err read_source(const weir_schema *schema, const json_t *root, weir_api_score_ask *ask) {
    const char *name;
    size_t length;
    weir_err err = weir_api_body_need(root, "the body", "source", &name, &length);
    if (err) return err;
    ask->source = weir_schema_source_find(schema, name);
    if (ask->source == WEIR_SCHEMA_NONE) return WEIR_ERR(WEIR_EDATA, "the schema has no source '%.64s'", name);
    if (weir_schema_source_at(schema, ask->source)->format != WEIR_SCHEMA_JSON)
        return WEIR_ERR(WEIR_EDATA, "source '%.64s' has lines, not JSON; store the event and score its target", name);
    return WEIR_OK;
}

static weir_err read_event(const weir_schema *schema, const json_t *root, const char *body, weir_api_score_ask *ask) {
    weir_err err = read_source(schema, root, ask);
    if (err) return err;
    if (!json_is_object(json_object_get(root, "event"))) return WEIR_ERR(WEIR_EDATA, "event must be an object");
    if (!find_member(body, "event", &ask->event, &ask->event_length))
        return WEIR_ERR(WEIR_EDATA, "the member event must be spelt without escapes");
    ask->count = 1;
    return WEIR_OK;
}

weir_err weir_api_score_keep_event(weir_api_score_ask *ask, weir_arena *arena, const weir_mapped *mapped) {
    weir_mutation *kept = weir_arena_alloc(arena, mapped->count * sizeof *kept);
    if (!kept) return no_memory();
    for (size_t i = 0; i < mapped->count; i++) {
        weir_mutation *m = &kept[i];
        *m = mapped->mutations[i];
        uint8_t *row = m->row_length ? weir_arena_alloc_aligned(arena, 1, m->row_length) : NULL;
        char *key = m->key_length ? weir_arena_strndup(arena, m->key, m->key_length) : NULL;
        if ((m->row_length && !row) || (m->key_length && !key)) return no_memory();
        if (row) memcpy(row, m->row, m->row_length);
        m->row = row;
        m->key = key;
    }
    ask->mutations = kept;
    ask->mutation_count = mapped->count;
    return WEIR_OK;
}

weir_err weir_api_score_name_event(weir_api_score_ask *ask, const weir_schema *schema) {
    for (size_t i = 0; i < ask->mutation_count; i++) {
        const weir_mutation *m = &ask->mutations[i];
        if (m->kind != WEIR_PUT_VERTEX || m->vertex != ask->asks[0].vertex) continue;
        ask->vertices[0] = (weir_api_vertex){.type = m->type,
                                             .type_name = weir_schema_vertex_at(schema, m->type)->name,
                                             .key = m->key,
                                             .key_length = m->key_length};
        return WEIR_OK;
    }
    return WEIR_ERR(WEIR_EDATA, "the event puts nothing that can be judged");
}

/* --- the whole ---------------------------------------------------------------------------------------------------- */

static weir_err read_limits(const json_t *root, weir_api_score_ask *ask) {
    int64_t reasons = REASONS_DEFAULT, nodes = 0, deadline_ms = 0;
    weir_err err = weir_api_body_number(root, "the body", "reasons", 0, WEIR_SCORE_REASONS_MAX, &reasons);
    if (!err) err = weir_api_body_number(root, "the body", "nodes_max", 1, NODES_MAX, &nodes);
    if (!err) err = weir_api_body_number(root, "the body", "deadline_ms", 1, DEADLINE_MAX_MS, &deadline_ms);
    if (err) return err; /* what was read is out of range, and out of what may be multiplied */
    ask->reasons = (uint32_t)reasons;
    ask->nodes_max = (uint32_t)nodes;
    ask->deadline_us = deadline_ms * 1000;
    return WEIR_OK;
}

static weir_err read_root(const weir_schema *schema, const json_t *root, const char *body, weir_arena *arena,
                          weir_api_score_ask *ask) {
    static const char *const names[] = {"targets", "source", "event", "reasons", "nodes_max", "deadline_ms", NULL};
    const json_t *targets = json_object_get(root, "targets"), *event = json_object_get(root, "event");
    weir_err err = weir_api_body_members(root, "the body", names);
    if (!err) err = read_limits(root, ask);
    if (err) return err;
    if (!targets == !event || (targets && json_object_get(root, "source")))
        return WEIR_ERR(WEIR_EDATA, "the body must have either targets, or source and event");
    return targets ? read_targets(schema, targets, arena, ask) : read_event(schema, root, body, ask);
}

weir_err weir_api_score_read(const weir_schema *schema, const char *body, size_t length, weir_arena *arena,
                             weir_api_score_ask *ask) {
    json_t *root = NULL;
    weir_err err = weir_api_body_json(body, length, DEPTH_MAX, &root);
    if (!err) err = read_root(schema, root, body, arena, ask);
    json_decref(root);
    return err;
}

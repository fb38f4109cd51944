/* SPDX-License-Identifier: Apache-2.0 */
/*
 * score_ask.c - the body of POST /v1/score.
 *
 * An event goes to the mapper with the bytes that it was sent in, as it would from the log: so it is cut out of the
 * body as /v1/events cuts its messages, and no other reader of JSON decides what it may be.
 */
#include <string.h>

#include <weir/store/base/assert.h>

#include "body.h"
#include "score_ask.h"

#define DEPTH_MAX       8u
#define REST_BYTES_MAX  (256u << 10)
#define REASONS_DEFAULT 5
#define NODES_MAX       1000000
#define DEADLINE_MAX_MS 10000

/* What the body is read into, and with. */
typedef struct score_ask_reading {
    const weir_schema *schema;
    weir_arena *arena;
    weir_api_score_ask *ask;
} score_ask_reading;

static weir_err score_ask_read_target(void *context, const weir_json_node *item, const char *where) {
    static const char *const names[] = {"type", "key", NULL};
    score_ask_reading *in = context;
    WEIR_ASSERT(in->ask->count < WEIR_SCORE_BATCH_MAX);
    weir_err err = weir_json_only(item, where, names);
    if (!err) err = weir_api_body_vertex(item, where, in->schema, in->arena, &in->ask->vertices[in->ask->count++]);
    return err;
}

/* --- an event ----------------------------------------------------------------------------------------------------- */

/* A line stands in the body as a text, and is cut out of that as it would be out of a body of lines. */
static weir_err score_ask_read_line(weir_arena *arena, weir_api_message *event) {
    const weir_api_message *lines;
    size_t count;
    weir_json_token text;
    weir_json_reader r = weir_json_reader_of(event->bytes, event->length, DEPTH_MAX);
    if (!weir_json_read(&r, &text) || text.kind != WEIR_JSON_STRING || !weir_json_read_end(&r))
        return WEIR_ERR(WEIR_EDATA, "the source is read line by line, so event must be a string of one line");
    char *line = weir_arena_alloc_aligned(arena, 1, text.length + 1);
    if (!line) return WEIR_NOMEM("for a request");
    weir_err err = weir_api_split(WEIR_API_LINES, line, weir_json_unescape(&text, line), arena, &lines, &count);
    if (!err && count > 1) err = WEIR_ERR(WEIR_EDATA, "event has %zu lines; only one can be scored at a time", count);
    if (!err) *event = lines[0];
    return err;
}

static weir_err score_ask_read_event(const score_ask_reading *in, const weir_json_node *root) {
    const char *name;
    weir_api_score_ask *ask = in->ask;
    weir_err err = weir_api_body_need(root, "the body", "source", &name);
    if (err) return err;
    err = weir_api_source_read(in->schema, name, &ask->source);
    if (err) return err;
    if (!ask->event.bytes) return WEIR_ERR(WEIR_EDATA, "the member name \"event\" must not contain escape sequences");
    ask->count = 1;
    bool json = weir_schema_source_at(in->schema, ask->source)->format == WEIR_SCHEMA_JSON;
    return json ? WEIR_OK : score_ask_read_line(in->arena, &ask->event);
}

weir_err weir_api_score_keep_event(weir_api_score_ask *ask, weir_arena *arena, const weir_mapped *mapped) {
    weir_mutation *kept = weir_arena_alloc(arena, mapped->count * sizeof *kept);
    if (!kept) return WEIR_NOMEM("for a request");
    for (size_t i = 0; i < mapped->count; i++) {
        weir_mutation *m = &kept[i];
        *m = mapped->mutations[i];
        uint8_t *row = m->row_length ? weir_arena_alloc_aligned(arena, 1, m->row_length) : NULL;
        char *key = m->key_length ? weir_arena_strndup(arena, m->key, m->key_length) : NULL;
        if ((m->row_length && !row) || (m->key_length && !key)) return WEIR_NOMEM("for a request");
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
    return WEIR_ERR(WEIR_EDATA, "the event adds no vertex that the model can score");
}

/* --- the whole ---------------------------------------------------------------------------------------------------- */

static weir_err score_ask_read_root(score_ask_reading *in, const weir_json_node *root) {
    static const char *const names[] = {"targets", "source",    "event",       "reasons",
                                        "columns", "nodes_max", "deadline_ms", NULL};
    int64_t reasons = REASONS_DEFAULT, columns = 0, nodes = 0, deadline_ms = 0;
    weir_err err = weir_json_only(root, "it", names);
    if (!err) err = weir_api_body_number(root, "the body", "reasons", 0, WEIR_SCORE_REASONS_MAX, &reasons);
    if (!err) err = weir_api_body_number(root, "the body", "columns", 0, WEIR_SCORE_REASONS_MAX, &columns);
    if (!err) err = weir_api_body_number(root, "the body", "nodes_max", 1, NODES_MAX, &nodes);
    if (!err) err = weir_api_body_number(root, "the body", "deadline_ms", 1, DEADLINE_MAX_MS, &deadline_ms);
    if (err) return err; /* what was read is out of range, and out of what may be multiplied */
    in->ask->reasons = (uint32_t)reasons;
    in->ask->columns = (uint32_t)columns;
    in->ask->nodes_max = (uint32_t)nodes;
    in->ask->deadline_us = deadline_ms * 1000;

    bool targets = weir_json_find(root, "targets"), event = weir_json_find(root, "event");
    if (targets == event || (targets && weir_json_find(root, "source")))
        return WEIR_ERR(WEIR_EDATA, "the body must have either targets, or source and event");
    return targets ? weir_api_body_items(root, "targets", WEIR_SCORE_BATCH_MAX, score_ask_read_target, in)
                   : score_ask_read_event(in, root);
}

/* The body with a 0 and blanks in place of its event: the reader of the rest does not decide what an event may be, and
 * each byte that it names stands where it was sent. */
static weir_err score_ask_without_event(const char *body, size_t length, weir_arena *arena, weir_api_message *event,
                                        const char **restp) {
    *restp = body;
    bool cut = weir_api_cut(body, length, "event", event);
    if (length - event->length > REST_BYTES_MAX)
        return WEIR_ERR(WEIR_ELIMIT, "the body has %zu bytes beside its event; at most %u are allowed",
                        length - event->length, REST_BYTES_MAX);
    if (!cut) return WEIR_OK;
    WEIR_ASSERT(event->bytes >= body && event->length <= length - (size_t)(event->bytes - body));
    char *rest = weir_arena_alloc_aligned(arena, 1, length);
    if (!rest) return WEIR_NOMEM("for a request");
    memcpy(rest, body, length);
    memset(rest + (event->bytes - body), ' ', event->length);
    rest[event->bytes - body] = '0';
    *restp = rest;
    return WEIR_OK;
}

weir_err weir_api_score_read(const weir_schema *schema, const char *body, size_t length, weir_arena *arena,
                             weir_api_score_ask *ask) {
    score_ask_reading in = {.schema = schema, .arena = arena, .ask = ask};
    const weir_json_node *root = NULL;
    const char *rest;
    weir_err err = score_ask_without_event(body, length, arena, &ask->event, &rest);
    if (!err) err = weir_json_parse("the body", rest, length, DEPTH_MAX, arena, &root);
    return err ? err : score_ask_read_root(&in, root);
}

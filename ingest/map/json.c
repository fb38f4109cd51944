/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json.c - a message of JSON in one pass, keeping only what the source names.
 *
 * The whole message is checked, also what is not kept. A name that the source needs and that comes twice is refused:
 * which of the two counts is what two programs disagree about.
 */
#include <string.h>

#include <weir/ingest/map/map.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/json.h>

#include "paths.h"

typedef struct json_message {
    weir_json_reader reader;
    weir_arena *arena;
    weir_cell *cells;
    uint64_t number; /* of the message, for weir_path_node.seen */
    bool no_memory;
} json_message;

static weir_path_node *path_among(weir_path_node *from, const weir_path_node *to, const char *name, size_t length) {
    for (; from != to; from = from->sibling) {
        if (from->length == length && memcmp(from->name, name, length) == 0) return from;
    }
    return NULL;
}

/* The node of this name below parent, or NULL. */
static weir_path_node *path_find(weir_path_node *parent, const char *name, size_t length) {
    weir_path_node *node = path_among(parent->hint, NULL, name, length);
    if (!node) node = path_among(parent->child, parent->hint, name, length);
    if (node) parent->hint = node->sibling;
    return node;
}

/* What a string means: in the message, or in the arena where it has escapes. */
static bool json_message_text(json_message *m, const weir_json_token *token, const char **textp, size_t *lengthp) {
    *textp = token->bytes;
    *lengthp = token->length;
    if (!token->escaped) return true;
    char *text = weir_arena_alloc_aligned(m->arena, 1, token->length);
    m->no_memory = !text;
    if (!text) return false;
    *lengthp = weir_json_unescape(token, text);
    *textp = text;
    return true;
}

static bool json_message_cell(json_message *m, const weir_json_token *value, weir_cell *cell) {
    static const weir_cell_kind kinds[] = {
        [WEIR_JSON_NULL] = WEIR_CELL_ABSENT,   [WEIR_JSON_BOOL] = WEIR_CELL_TRUTH,
        [WEIR_JSON_NUMBER] = WEIR_CELL_NUMBER, [WEIR_JSON_STRING] = WEIR_CELL_TEXT,
        [WEIR_JSON_ARRAY] = WEIR_CELL_NESTED,  [WEIR_JSON_OBJECT] = WEIR_CELL_NESTED};
    const char *text;
    size_t length;
    if (!json_message_text(m, value, &text, &length)) return false;
    *cell = (weir_cell){kinds[value->kind], 0, weir_json_byte(&m->reader, value->bytes), NULL};
    if (cell->kind == WEIR_CELL_NESTED) return true;
    WEIR_ASSERT(length <= WEIR_MESSAGE_BYTES_MAX);
    cell->text = text;
    cell->length = (uint32_t)length;
    return true;
}

/* parent: where the object stands in the tree of wanted names. */
static bool json_message_object(json_message *m, weir_path_node *parent) {
    weir_json_reader *r = &m->reader;
    weir_json_token name, value;
    while (weir_json_read_name(r, &name)) {
        const char *text;
        size_t length;
        if (!json_message_text(m, &name, &text, &length)) return false;
        weir_path_node *node = path_find(parent, text, length);
        if (node && node->seen == m->number)
            return weir_json_fail(r, name.bytes, "a name that came before in the same object");
        if (node) node->seen = m->number;
        if (!weir_json_read(r, &value)) return false;
        if (node && node->field != WEIR_SCHEMA_NONE && !json_message_cell(m, &value, &m->cells[node->field]))
            return false;
        bool inside = node && node->child && value.kind == WEIR_JSON_OBJECT;
        if (inside ? !json_message_object(m, node) : !weir_json_skip(r, &value)) return false;
    }
    return !r->fault;
}

weir_err weir_message_json(weir_paths *paths, const char *bytes, size_t length, weir_arena *arena, weir_cell *cells,
                           size_t cell_count) {
    memset(cells, 0, cell_count * sizeof *cells);
    if (length > WEIR_MESSAGE_BYTES_MAX) {
        return WEIR_ERR(WEIR_EDATA, "the message has %zu bytes, at most %u are accepted", length,
                        WEIR_MESSAGE_BYTES_MAX);
    }
    json_message m = {.reader = weir_json_reader_of(bytes, length, WEIR_MESSAGE_DEPTH_MAX),
                      .arena = arena,
                      .cells = cells,
                      .number = ++paths->message};
    if (weir_json_enter(&m.reader, "the message is not a JSON object") && json_message_object(&m, &paths->root) &&
        weir_json_read_end(&m.reader))
        return WEIR_OK;
    if (m.no_memory) return WEIR_NOMEM("for a message of %zu bytes", length);
    return WEIR_ERR(WEIR_EDATA, "byte %zu: %s", weir_json_byte(&m.reader, m.reader.next), m.reader.fault);
}

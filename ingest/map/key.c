/* SPDX-License-Identifier: Apache-2.0 */
/* key.c - the fields of a key become the text that names a vertex outside. */
#include <stdio.h>
#include <string.h>

#include <weir/store/base/utf8.h>

#include "map_private.h"

#define INTEGER_BYTES 24u

/* Escapes so that ("a|b", "c") and ("a", "b|c") are two keys. */
static char *part_append(char *to, const char *text, size_t length) {
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '|' || text[i] == '\\') *to++ = '\\';
        *to++ = text[i];
    }
    return to;
}

static weir_err wrong(const weir_mapper *mapper, const weir_schema_key *key, const char *what) {
    uint32_t field = key->fields[0];
    return weir_cell_wrong(&mapper->cells[field], weir_map_path(mapper, field), what);
}

static weir_err too_long(const weir_mapper *mapper, const weir_schema_key *key) {
    return wrong(mapper, key, "a key longer than 1024 bytes");
}

static weir_err join_parts(weir_mapper *mapper, const weir_schema_key *key, const char **textp, size_t *lengthp) {
    const char *parts[WEIR_SCHEMA_KEY_PARTS_MAX];
    size_t lengths[WEIR_SCHEMA_KEY_PARTS_MAX], total = 0;
    for (uint32_t i = 0; i < key->count; i++) {
        uint32_t field = key->fields[i];
        weir_err err = weir_cell_text(&mapper->cells[field], weir_map_path(mapper, field), &parts[i], &lengths[i]);
        if (err) return err;
        total += lengths[i];
    }
    if (total > WEIR_KEY_MAX) return too_long(mapper, key);
    char *text = weir_arena_alloc_aligned(mapper->arena, 1, 2 * total + key->count), *to = text;
    if (!text) return weir_map_no_memory();
    for (uint32_t i = 0; i < key->count; i++) {
        if (i > 0) *to++ = '|';
        to = part_append(to, parts[i], lengths[i]);
    }
    *textp = text;
    *lengthp = (size_t)(to - text);
    return WEIR_OK;
}

weir_err weir_map_key(weir_mapper *mapper, const weir_schema_key *key, const char **textp, size_t *lengthp) {
    uint32_t field = key->fields[0];
    *textp = NULL;
    *lengthp = 0;
    weir_err err = key->count > 1 ? join_parts(mapper, key, textp, lengthp)
                                  : weir_cell_text(&mapper->cells[field], weir_map_path(mapper, field), textp, lengthp);
    if (err) return err;
    if (*lengthp == 0) return wrong(mapper, key, "an empty key");
    return *lengthp > WEIR_KEY_MAX ? too_long(mapper, key) : WEIR_OK;
}

/* 7, "7" and "007" are one vertex: whole numbers are written again. */
static weir_err integer_key(weir_mapper *mapper, const weir_schema_key *key, const char **textp, size_t *lengthp) {
    int64_t value;
    uint32_t field = key->fields[0];
    weir_err err = weir_cell_integer(&mapper->cells[field], weir_map_path(mapper, field), &value);
    if (err) return err;
    char *text = weir_arena_alloc_aligned(mapper->arena, 1, INTEGER_BYTES);
    if (!text) return weir_map_no_memory();
    *lengthp = (size_t)snprintf(text, INTEGER_BYTES, "%lld", (long long)value);
    *textp = text;
    return WEIR_OK;
}

static void set_end(weir_mapper *mapper, weir_end *end, size_t length) {
    end->key_length = (uint16_t)length;
    end->vertex = weir_vertex_id(&mapper->id_key, end->type_name, end->key, length);
    end->put = false;
    end->message = mapper->message;
}

weir_err weir_map_end_named(weir_mapper *mapper, weir_end *end, const char *text, size_t length) {
    static const char what[] = "the record's key";
    weir_cell cell = {.kind = WEIR_CELL_TEXT, .text = text, .at = 1};
    int64_t number;
    if (length == 0 || length > WEIR_KEY_MAX || !weir_utf8_valid(text, length))
        return WEIR_ERR(WEIR_EDATA, "the record's key, which is to name a vertex, is not 1 to %u bytes of UTF-8",
                        WEIR_KEY_MAX);
    cell.length = (uint32_t)length;
    end->key = text;
    if (end->integer) {
        weir_err err = weir_cell_integer(&cell, what, &number);
        char *written = weir_arena_alloc_aligned(mapper->arena, 1, INTEGER_BYTES);
        if (err || !written) return err ? err : weir_map_no_memory();
        length = (size_t)snprintf(written, INTEGER_BYTES, "%lld", (long long)number);
        end->key = written;
    }
    set_end(mapper, end, length);
    return WEIR_OK;
}

weir_err weir_map_end(weir_mapper *mapper, weir_end *end) {
    size_t length = 0;
    if (end->message == mapper->message) return WEIR_OK;
    weir_err err = end->integer ? integer_key(mapper, end->parts, &end->key, &length)
                                : weir_map_key(mapper, end->parts, &end->key, &length);
    if (err) return err;
    set_end(mapper, end, length);
    return WEIR_OK;
}

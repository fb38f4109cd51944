/* SPDX-License-Identifier: Apache-2.0 */
/* key.c - the fields of a key become the text that names a vertex outside. */
#include <stdio.h>
#include <string.h>

#include <weir/store/base/assert.h>
#include <weir/store/base/utf8.h>

#include "map_private.h"

#define INTEGER_BYTES 24u

#define KEY_TOO_LONG "the key is longer than 1024 bytes"
_Static_assert(WEIR_KEY_MAX == 1024, "the sentence says so");

static weir_err key_wrong(const weir_mapper *mapper, const weir_schema_key *key, const char *what) {
    uint32_t field = key->fields[0];
    return weir_cell_wrong(&mapper->cells[field], weir_map_path(mapper, field), what);
}

/* Escapes so that ("a|b", "c") and ("a", "b|c") are two keys. */
static weir_err key_join(weir_mapper *mapper, const weir_schema_key *key, const char **textp, size_t *lengthp) {
    const char *parts[WEIR_SCHEMA_KEY_PARTS_MAX];
    size_t lengths[WEIR_SCHEMA_KEY_PARTS_MAX], total = 0;
    WEIR_ASSERT(key->count <= WEIR_SCHEMA_KEY_PARTS_MAX);
    for (uint32_t i = 0; i < key->count; i++) {
        uint32_t field = key->fields[i];
        weir_err err = weir_cell_text(&mapper->cells[field], weir_map_path(mapper, field), &parts[i], &lengths[i]);
        if (err) return err;
        total += lengths[i];
    }
    if (total > WEIR_KEY_MAX) return key_wrong(mapper, key, KEY_TOO_LONG);
    size_t room = 2 * total + key->count;
    char *text = weir_arena_alloc_aligned(mapper->arena, 1, room), *to = text;
    if (!text) return weir_map_no_memory();
    for (uint32_t i = 0; i < key->count; i++) {
        if (i > 0) *to++ = '|';
        for (size_t at = 0; at < lengths[i]; at++) {
            if (parts[i][at] == '|' || parts[i][at] == '\\') *to++ = '\\';
            *to++ = parts[i][at];
        }
    }
    *textp = text;
    *lengthp = (size_t)(to - text);
    WEIR_ASSERT(*lengthp <= room);
    return WEIR_OK;
}

weir_err weir_map_key(weir_mapper *mapper, const weir_schema_key *key, const char **textp, size_t *lengthp) {
    uint32_t field = key->fields[0];
    *textp = NULL;
    *lengthp = 0;
    weir_err err = key->count > 1 ? key_join(mapper, key, textp, lengthp)
                                  : weir_cell_text(&mapper->cells[field], weir_map_path(mapper, field), textp, lengthp);
    if (err) return err;
    if (*lengthp == 0) return key_wrong(mapper, key, "the key is empty");
    return *lengthp > WEIR_KEY_MAX ? key_wrong(mapper, key, KEY_TOO_LONG) : WEIR_OK;
}

/* 7, "7" and "007" are one vertex: whole numbers are written again. */
static weir_err key_of_integer(weir_mapper *mapper, const weir_cell *cell, const char *field, const char **textp,
                               size_t *lengthp) {
    int64_t value;
    weir_err err = weir_cell_integer(cell, field, &value);
    if (err) return err;
    char *text = weir_arena_alloc_aligned(mapper->arena, 1, INTEGER_BYTES);
    if (!text) return weir_map_no_memory();
    *lengthp = (size_t)snprintf(text, INTEGER_BYTES, "%lld", (long long)value);
    WEIR_ASSERT(*lengthp < INTEGER_BYTES);
    *textp = text;
    return WEIR_OK;
}

static void key_set_end(weir_mapper *mapper, weir_end *end, size_t length) {
    WEIR_ASSERT(length > 0 && length <= WEIR_KEY_MAX);
    end->key_length = (uint16_t)length;
    end->vertex = weir_vertex_id(&mapper->id_key, end->type_name, end->key, length);
    end->put = false;
    end->message = mapper->message;
}

weir_err weir_map_end_named(weir_mapper *mapper, weir_end *end, const char *text, size_t length) {
    if (length == 0 || length > WEIR_KEY_MAX || !weir_utf8_valid(text, length))
        return WEIR_ERR(WEIR_EDATA, "the record's key, which names the vertex to delete, is not 1 to %u bytes of UTF-8",
                        WEIR_KEY_MAX);
    const weir_cell cell = {.kind = WEIR_CELL_TEXT, .text = text, .length = (uint32_t)length, .at = 1};
    end->key = text;
    weir_err err = end->integer ? key_of_integer(mapper, &cell, "the record's key", &end->key, &length) : WEIR_OK;
    if (!err) key_set_end(mapper, end, length);
    return err;
}

weir_err weir_map_end(weir_mapper *mapper, weir_end *end) {
    size_t length = 0;
    weir_err err;
    if (end->message == mapper->message) return WEIR_OK;
    if (end->integer) {
        uint32_t field = end->parts->fields[0];
        err = key_of_integer(mapper, &mapper->cells[field], weir_map_path(mapper, field), &end->key, &length);
    } else {
        err = weir_map_key(mapper, end->parts, &end->key, &length);
    }
    if (!err) key_set_end(mapper, end, length);
    return err;
}

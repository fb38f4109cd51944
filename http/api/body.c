/* SPDX-License-Identifier: Apache-2.0 */
/* body.c - members of a JSON body, each with its own sentence when it is wrong. */
#include <string.h>

#include <weir/store/base/alloc.h>

#include "body.h"

static _Thread_local bool body_no_memory; /* was found by what this thread reads */

static void *body_alloc(size_t bytes) {
    void *memory = weir_malloc(bytes);
    if (!memory) body_no_memory = true;
    return memory;
}

void weir_api_body_prepare(void) {
    json_set_alloc_funcs(body_alloc, weir_free);
}

weir_err weir_api_body_parse(const char *text, size_t length, size_t flags, json_error_t *error, json_t **rootp) {
    body_no_memory = false;
    *rootp = json_loadb(text, length, flags, error);
    if (*rootp || !body_no_memory) return WEIR_OK;
    return WEIR_NOMEM("while reading %zu bytes of JSON", length);
}

/* The reader below us calls itself for each level, so the levels are counted first. */
static bool too_deep(const char *text, size_t length, size_t depth_max) {
    size_t depth = 0;
    bool quoted = false;
    for (size_t i = 0; i < length; i++) {
        char c = text[i];
        if (quoted && c == '\\')
            i++;
        else if (c == '"')
            quoted = !quoted;
        else if (!quoted && (c == '{' || c == '[') && ++depth > depth_max)
            return true;
        else if (!quoted && (c == '}' || c == ']') && depth)
            depth--;
    }
    return false;
}

weir_err weir_api_body_json(const char *text, size_t length, size_t depth_max, json_t **rootp) {
    json_error_t error;
    *rootp = NULL;
    if (too_deep(text, length, depth_max))
        return WEIR_ERR(WEIR_EDATA, "the body is nested deeper than %zu levels", depth_max);
    weir_err err = weir_api_body_parse(text, length, JSON_REJECT_DUPLICATES, &error, rootp);
    if (err || *rootp) return err;
    return WEIR_ERR(WEIR_EDATA, "the body is not JSON: %s (byte %d)", error.text, error.position);
}

weir_err weir_api_body_members(const json_t *object, const char *where, const char *const *names) {
    if (!json_is_object(object)) return WEIR_ERR(WEIR_EDATA, "%s must be an object", where);
    const char *name;
    json_t *value;
    json_t *members = json_incref((json_t *)(uintptr_t)object);
    weir_err err = WEIR_OK;
    json_object_foreach(members, name, value) {
        size_t i = 0;
        while (names[i] && strcmp(names[i], name) != 0)
            i++;
        if (!err && !names[i]) err = WEIR_ERR(WEIR_EDATA, "%s has an unknown member '%.64s'", where, name);
    }
    json_decref(members);
    return err;
}

weir_err weir_api_body_text(const json_t *object, const char *where, const char *name, const char **textp,
                            size_t *lengthp) {
    const json_t *value = json_object_get(object, name);
    *textp = NULL;
    *lengthp = 0;
    if (!value) return WEIR_OK;
    if (!json_is_string(value)) return WEIR_ERR(WEIR_EDATA, "%s: %s must be a text", where, name);
    *textp = json_string_value(value);
    *lengthp = json_string_length(value);
    if (strlen(*textp) != *lengthp) return WEIR_ERR(WEIR_EDATA, "%s: %s has a 0 byte in it", where, name);
    return WEIR_OK;
}

weir_err weir_api_body_need(const json_t *object, const char *where, const char *name, const char **textp,
                            size_t *lengthp) {
    weir_err err = weir_api_body_text(object, where, name, textp, lengthp);
    return err || *textp ? err : WEIR_ERR(WEIR_EDATA, "%s: %s is missing", where, name);
}

/* *valuep keeps its default when the member is not there. */
weir_err weir_api_body_number(const json_t *object, const char *where, const char *name, int64_t min, int64_t max,
                              int64_t *valuep) {
    const json_t *value = json_object_get(object, name);
    if (!value) return WEIR_OK;
    if (json_is_integer(value)) *valuep = json_integer_value(value);
    if (json_is_integer(value) && *valuep >= min && *valuep <= max) return WEIR_OK;
    return WEIR_ERR(WEIR_EDATA, "%s: %s must be an integer from %lld to %lld", where, name, (long long)min,
                    (long long)max);
}

weir_err weir_api_body_vertex(const json_t *object, const char *where, const weir_schema *schema, weir_arena *arena,
                              weir_api_vertex *vertexp) {
    const char *type, *key;
    size_t type_length, key_length;
    weir_err err = weir_api_body_need(object, where, "type", &type, &type_length);
    if (!err) err = weir_api_body_need(object, where, "key", &key, &key_length);
    if (err) return err;
    key = weir_arena_strndup(arena, key, key_length);
    if (!key) return WEIR_NOMEM("for a key");
    err = weir_api_vertex_read(schema, arena, type, key, key_length, vertexp);
    if (weir_err_is(err, WEIR_ENOTFOUND)) err = WEIR_ERR(WEIR_EDATA, "the schema has no vertex type '%.64s'", type);
    return weir_err_prefix(err, "%s", where);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* body.c - members of a JSON body, each with its own sentence when it is wrong. */
#include <string.h>

#include "body.h"

weir_err weir_api_body_json(const char *text, size_t length, unsigned depth_max, weir_arena *arena,
                            const weir_json_node **rootp) {
    return weir_json_parse("the body", text, length, depth_max, arena, rootp);
}

weir_err weir_api_body_members(const weir_json_node *object, const char *where, const char *const *names) {
    if (object->token.kind != WEIR_JSON_OBJECT) return WEIR_ERR(WEIR_EDATA, "%s must be an object", where);
    for (const weir_json_node *member = object->first; member; member = member->next) {
        size_t i = 0;
        while (names[i] && strcmp(names[i], member->name) != 0)
            i++;
        if (!names[i]) return WEIR_ERR(WEIR_EDATA, "%s has an unknown member '%.64s'", where, member->name);
    }
    return WEIR_OK;
}

weir_err weir_api_body_text(const weir_json_node *object, const char *where, const char *name, const char **textp,
                            size_t *lengthp) {
    const weir_json_node *value = weir_json_find(object, name);
    *textp = NULL;
    *lengthp = 0;
    if (!value) return WEIR_OK;
    if (value->token.kind != WEIR_JSON_STRING) return WEIR_ERR(WEIR_EDATA, "%s: %s must be a text", where, name);
    *textp = value->text;
    *lengthp = strlen(value->text);
    return WEIR_OK;
}

weir_err weir_api_body_need(const weir_json_node *object, const char *where, const char *name, const char **textp,
                            size_t *lengthp) {
    weir_err err = weir_api_body_text(object, where, name, textp, lengthp);
    return err || *textp ? err : WEIR_ERR(WEIR_EDATA, "%s: %s is missing", where, name);
}

/* *valuep keeps its default when the member is not there. */
weir_err weir_api_body_number(const weir_json_node *object, const char *where, const char *name, int64_t min,
                              int64_t max, int64_t *valuep) {
    const weir_json_node *value = weir_json_find(object, name);
    if (!value || weir_json_token_i64(&value->token, min, max, valuep)) return WEIR_OK;
    return WEIR_ERR(WEIR_EDATA, "%s: %s must be an integer from %lld to %lld", where, name, (long long)min,
                    (long long)max);
}

weir_err weir_api_body_vertex(const weir_json_node *object, const char *where, const weir_schema *schema,
                              weir_arena *arena, weir_api_vertex *vertexp) {
    const char *type, *key;
    size_t type_length, key_length;
    weir_err err = weir_api_body_need(object, where, "type", &type, &type_length);
    if (!err) err = weir_api_body_need(object, where, "key", &key, &key_length);
    if (err) return err;
    err = weir_api_vertex_read(schema, arena, type, key, key_length, vertexp);
    if (weir_err_is(err, WEIR_ENOTFOUND)) err = WEIR_ERR(WEIR_EDATA, "the schema has no vertex type '%.64s'", type);
    return weir_err_prefix(err, "%s", where);
}

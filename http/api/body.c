/* SPDX-License-Identifier: Apache-2.0 */
/* body.c - members of a JSON body, each with its own sentence when it is wrong. */
#include <stdio.h>
#include <string.h>

#include "body.h"

weir_err weir_api_body_text(const weir_json_node *object, const char *where, const char *name, const char **textp) {
    const weir_json_node *value = weir_json_find(object, name);
    *textp = NULL;
    if (value && value->token.kind != WEIR_JSON_STRING)
        return WEIR_ERR(WEIR_EDATA, "%s: %s must be a text", where, name);
    if (value) *textp = value->text;
    return WEIR_OK;
}

weir_err weir_api_body_need(const weir_json_node *object, const char *where, const char *name, const char **textp) {
    weir_err err = weir_api_body_text(object, where, name, textp);
    return err || *textp ? err : WEIR_ERR(WEIR_EDATA, "%s: %s is missing", where, name);
}

weir_err weir_api_body_number(const weir_json_node *object, const char *where, const char *name, int64_t min,
                              int64_t max, int64_t *valuep) {
    const weir_json_node *value = weir_json_find(object, name);
    if (!value || weir_json_token_i64(&value->token, min, max, valuep)) return WEIR_OK;
    return WEIR_ERR(WEIR_EDATA, "%s: %s must be an integer from %lld to %lld", where, name, (long long)min,
                    (long long)max);
}

weir_err weir_api_body_items(const weir_json_node *object, const char *name, size_t max, weir_api_body_item read,
                             void *context) {
    const weir_json_node *items = weir_json_find(object, name);
    if (!items || items->token.kind != WEIR_JSON_ARRAY || !items->count || items->count > max)
        return WEIR_ERR(WEIR_EDATA, "%s must be an array of 1 to %zu objects", name, max);
    weir_err err = WEIR_OK;
    const weir_json_node *item = items->first;
    for (size_t i = 0; !err && item; i++, item = item->next) {
        char where[32];
        snprintf(where, sizeof where, "%s[%zu]", name, i);
        err = read(context, item, where);
    }
    return err;
}

weir_err weir_api_body_vertex(const weir_json_node *object, const char *where, const weir_schema *schema,
                              weir_arena *arena, weir_api_vertex *vertexp) {
    const char *type, *key;
    weir_err err = weir_api_body_need(object, where, "type", &type);
    if (!err) err = weir_api_body_need(object, where, "key", &key);
    if (err) return err;
    err = weir_api_vertex_read(schema, arena, type, key, strlen(key), vertexp);
    if (weir_err_is(err, WEIR_ENOTFOUND)) err = WEIR_ERR(WEIR_EDATA, "the schema has no vertex type '%.64s'", type);
    return weir_err_prefix(err, "%s", where);
}

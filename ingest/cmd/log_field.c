/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log_field.c - one field out of a line of JSON, without reading the rest.
 *
 * Takes only what it needs: the fields before the wanted one must be JSON, what follows is not looked at.
 */
#include <string.h>

#include <weir/store/base/json.h>

#include "log_private.h"

static void log_field_append(weir_buf *out, const weir_json_token *token) {
    char *to = weir_buf_reserve(out, token->length);
    if (!to) return;
    if (token->escaped) {
        weir_buf_commit(out, weir_json_unescape(token, to));
    } else {
        memcpy(to, token->bytes, token->length);
        weir_buf_commit(out, token->length);
    }
}

weir_err weir_cmd_log_field(const char *line, size_t length, const char *name, weir_buf *out) {
    weir_json_reader r = weir_json_reader_of(line, length, 1 + WEIR_CMD_LOG_DEPTH_MAX);
    weir_json_token token;
    weir_buf meant = {0};
    bool found = false;
    weir_err err = WEIR_OK;
    if (!weir_json_enter(&r, "each line must be one JSON object")) goto done;
    while (!found && weir_json_read_name(&r, &token)) {
        weir_buf_clear(&meant);
        log_field_append(&meant, &token);
        err = weir_buf_err(&meant);
        if (err || !weir_json_read(&r, &token)) goto done;
        found = meant.length == strlen(name) && memcmp(meant.bytes, name, meant.length) == 0;
        if (!found) weir_json_skip(&r, &token);
    }
    if (r.fault) goto done;
    if (!found) {
        err = WEIR_ERR(WEIR_EDATA, "there is no field '%s' in the line", name);
    } else if (token.kind == WEIR_JSON_ARRAY || token.kind == WEIR_JSON_OBJECT || token.kind == WEIR_JSON_NULL) {
        err = WEIR_ERR(WEIR_EDATA, "the field '%s' is %s, so it cannot be a key", name,
                       token.kind == WEIR_JSON_NULL ? "null" : "an array or object");
    } else {
        log_field_append(out, &token);
        err = weir_buf_err(out);
    }
done:
    if (r.fault) err = WEIR_ERR(WEIR_EDATA, "byte %zu of the line: %s", weir_json_byte(&r, r.next), r.fault);
    weir_buf_free(&meant);
    return err;
}

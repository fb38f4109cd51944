/* SPDX-License-Identifier: Apache-2.0 */
/* card.c - model.json: what must be known before the weights mean anything. */
#include <string.h>

#include <weir/store/base/buf.h>
#include <weir/store/base/file.h>

#include "files.h"

#define TASK_BYTES_MAX 256u

/* --- writing --------------------------------------------------------------------------------------------------- */

static weir_err put_object(weir_buf *out, const char *key, const char *text) {
    weir_err err = weir_model_json_check(key, (weir_span){text ? text : "", text ? strlen(text) : 0});
    if (!err) weir_buf_printf(out, ",\"%s\":%s", key, text);
    return err;
}

static weir_err put_card(weir_buf *out, const weir_model_write_opts *opts) {
    if (!opts->task || !*opts->task || strlen(opts->task) > TASK_BYTES_MAX || strpbrk(opts->task, "\"\\")) {
        return WEIR_ERR(WEIR_EINVAL, "a model needs the name of its task, of at most %u bytes", TASK_BYTES_MAX);
    }
    weir_buf_printf(out, "{\"format\":%u,\"schema_hash\":\"%016llx\",\"task\":", WEIR_MODEL_FORMAT,
                    (unsigned long long)opts->schema_hash);
    weir_json json = weir_json_begin(out);
    weir_json_string(&json, opts->task);
    weir_err err = put_object(out, "architecture", opts->architecture);
    if (!err) err = put_object(out, "normalisation", opts->normalisation);
    if (!err) err = put_object(out, "calibration", opts->calibration);
    weir_buf_text(out, "}\n");
    return err ? err : weir_buf_err(out);
}

weir_err weir_model_card_write(const char *path, const weir_model_write_opts *opts) {
    weir_buf out = {.length_max = WEIR_MODEL_TEXT_BYTES_MAX};
    weir_err err = put_card(&out, opts);
    if (!err) err = weir_file_replace(path, out.bytes, out.length);
    weir_buf_free(&out);
    return err;
}

/* --- reading --------------------------------------------------------------------------------------------------- */

static weir_err missing(const char *name, const char *key, const char *what) {
    return WEIR_ERR(WEIR_EDATA, "%s: \"%s\" is missing or is not %s", name, key, what);
}

/* Sixteen lower-case hex digits. */
static bool read_hash(weir_span value, uint64_t *hashp) {
    static const char digits[] = "0123456789abcdef";
    weir_span text;
    *hashp = 0;
    if (!weir_model_json_text(value, &text) || text.length != 16) return false;
    for (size_t i = 0; i < text.length; i++) {
        const char *digit = memchr(digits, text.bytes[i], sizeof digits - 1);
        if (!digit) return false;
        *hashp = *hashp << 4 | (uint64_t)(digit - digits);
    }
    return true;
}

static weir_err read_format(const char *name, weir_span text) {
    weir_span value;
    uint64_t format = 0;
    if (!weir_model_json_find(text, "format", &value) || !weir_model_json_u64(value, &format)) {
        return missing(name, "format", "a whole number");
    }
    if (format == WEIR_MODEL_FORMAT) return WEIR_OK;
    return WEIR_ERR(WEIR_EVERSION, "%s has format %llu; this version reads %u: use the version that wrote it", name,
                    (unsigned long long)format, WEIR_MODEL_FORMAT);
}

static weir_err read_object(const char *name, weir_span text, const char *key, weir_span *objectp) {
    if (weir_model_json_find(text, key, objectp) && *objectp->bytes == '{') return WEIR_OK;
    return missing(name, key, "an object");
}

/* Two programs could disagree about which of two members counts. */
static weir_err check_once(const char *name, weir_span text) {
    static const char *const keys[] = {"format", "schema_hash", "task", "architecture", "normalisation", "calibration"};
    unsigned seen = 0;
    weir_span key, value;
    while (weir_model_json_member(&text, &key, &value)) {
        unsigned at = 0;
        while (at < sizeof keys / sizeof keys[0] && !weir_span_is(key, keys[at]))
            at++;
        if (at == sizeof keys / sizeof keys[0] || seen >> at & 1) {
            return WEIR_ERR(WEIR_EDATA, "%s: \"%.*s\" is unknown or there twice", name,
                            (int)(key.length > 60 ? 60 : key.length), key.bytes);
        }
        seen |= 1u << at;
    }
    return WEIR_OK;
}

weir_err weir_model_card_read(const char *name, weir_span text, weir_model_card *cardp) {
    weir_span value;
    *cardp = (weir_model_card){0};
    weir_err err = weir_model_json_check(name, text);
    if (!err) err = read_format(name, text);
    if (!err) err = check_once(name, text);
    if (err) return err;
    if (!weir_model_json_find(text, "schema_hash", &value) || !read_hash(value, &cardp->schema_hash)) {
        return missing(name, "schema_hash", "16 hex digits");
    }
    if (!weir_model_json_find(text, "task", &value) || !weir_model_json_text(value, &cardp->task) ||
        cardp->task.length == 0 || cardp->task.length > TASK_BYTES_MAX) {
        return missing(name, "task", "a short text");
    }
    err = read_object(name, text, "architecture", &cardp->architecture);
    if (!err) err = read_object(name, text, "normalisation", &cardp->normalisation);
    if (!err) err = read_object(name, text, "calibration", &cardp->calibration);
    return err;
}

weir_err weir_model_json_file_check(const char *name, const char *text, size_t length) {
    weir_model_card card;
    return weir_model_card_read(name, (weir_span){text, length}, &card);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* card.c - model.json: what must be known before the weights mean anything. */
#include <string.h>

#include <weir/store/base/assert.h>
#include <weir/store/base/buf.h>
#include <weir/store/base/file.h>
#include <weir/store/base/json.h>

#include "files.h"

#define TASK_BYTES_MAX 256u

/* --- writing --------------------------------------------------------------------------------------------------- */

static weir_err card_put_object(weir_buf *out, const char *key, const char *text) {
    weir_err err = weir_json_check_object(key, text ? text : "", text ? strlen(text) : 0, WEIR_MODEL_JSON_DEPTH_MAX);
    if (!err) weir_buf_printf(out, ",\"%s\":%s", key, text);
    return err;
}

weir_err weir_model_card_write(const char *path, const weir_model_write_opts *opts) {
    weir_buf out = {.length_max = WEIR_MODEL_TEXT_BYTES_MAX};
    if (!opts->task || !*opts->task || strlen(opts->task) > TASK_BYTES_MAX || strpbrk(opts->task, "\"\\")) {
        return WEIR_ERR(WEIR_EINVAL, "a model needs the name of its task, of at most %u bytes", TASK_BYTES_MAX);
    }
    weir_buf_printf(&out, "{\"format\":%u,\"schema_hash\":\"%016llx\",\"task\":", WEIR_MODEL_FORMAT,
                    (unsigned long long)opts->schema_hash);
    weir_json json = weir_json_begin(&out);
    weir_json_string(&json, opts->task);
    weir_err err = card_put_object(&out, "architecture", opts->architecture);
    if (!err) err = card_put_object(&out, "normalisation", opts->normalisation);
    if (!err) err = card_put_object(&out, "calibration", opts->calibration);
    weir_buf_text(&out, "}\n");
    if (!err) err = weir_buf_err(&out);
    if (!err) err = weir_file_replace(path, out.bytes, out.length);
    weir_buf_free(&out);
    return err;
}

/* --- reading --------------------------------------------------------------------------------------------------- */

static weir_err card_missing(const char *name, const char *key, const char *what) {
    return WEIR_ERR(WEIR_EDATA, "%s: \"%s\" is missing or is not %s", name, key, what);
}

/* Sixteen lower-case hex digits. */
static bool card_read_hash(const weir_json_token *value, uint64_t *hashp) {
    static const char digits[] = "0123456789abcdef";
    *hashp = 0;
    if (value->kind != WEIR_JSON_STRING || value->length != 16) return false;
    for (size_t i = 0; i < value->length; i++) {
        const char *digit = memchr(digits, value->bytes[i], sizeof digits - 1);
        if (!digit) return false;
        *hashp = *hashp << 4 | (uint64_t)(digit - digits);
    }
    return true;
}

weir_err weir_model_card_read(const char *name, weir_span text, weir_model_card *cardp) {
    enum { FORMAT, SCHEMA_HASH, TASK, ARCHITECTURE, NORMALISATION, CALIBRATION, COUNT };
    static const char *const keys[] = {"format", "schema_hash", "task", "architecture", "normalisation", "calibration"};
    weir_json_token key, values[COUNT + 1] = {{0}}; /* the last one takes what is not known */
    weir_span spans[COUNT + 1] = {{0}}, odd = {0};
    int64_t format = 0;
    *cardp = (weir_model_card){0};
    weir_err err = weir_json_check_object(name, text.bytes, text.length, WEIR_MODEL_JSON_DEPTH_MAX);
    if (err) return err;
    weir_json_reader r = weir_json_reader_of(text.bytes, text.length, WEIR_MODEL_JSON_DEPTH_MAX);
    weir_json_enter(&r, NULL);
    while (weir_json_read_name(&r, &key)) {
        unsigned at = 0;
        while (at < COUNT && !weir_json_token_is(&key, keys[at]))
            at++;
        if (at < COUNT && spans[at].bytes) at = COUNT; /* two programs could disagree about which one counts */
        if (at == COUNT && !odd.bytes) odd = (weir_span){key.bytes, key.length};
        weir_json_read(&r, &values[at]);
        weir_json_skip(&r, &values[at]);
        spans[at] = (weir_span){values[at].bytes, (size_t)(r.next - values[at].bytes)};
    }
    WEIR_ASSERT(!r.fault); /* the text was checked */
    if (!weir_json_token_i64(&values[FORMAT], 0, INT64_MAX, &format))
        return card_missing(name, "format", "a whole number");
    if (format != WEIR_MODEL_FORMAT)
        return WEIR_ERR(WEIR_EVERSION, "%s has format %lld; this version reads %u: use the version that wrote it", name,
                        (long long)format, WEIR_MODEL_FORMAT);
    if (odd.bytes)
        return WEIR_ERR(WEIR_EDATA, "%s: \"%.*s\" is unknown or there twice", name,
                        (int)(odd.length > 60 ? 60 : odd.length), odd.bytes);
    if (!card_read_hash(&values[SCHEMA_HASH], &cardp->schema_hash))
        return card_missing(name, "schema_hash", "16 hex digits");
    const weir_json_token *task = &values[TASK];
    if (task->kind != WEIR_JSON_STRING || task->escaped || task->length == 0 || task->length > TASK_BYTES_MAX)
        return card_missing(name, "task", "a short text");
    for (unsigned i = ARCHITECTURE; i <= CALIBRATION; i++)
        if (values[i].kind != WEIR_JSON_OBJECT) return card_missing(name, keys[i], "an object");
    cardp->task = (weir_span){task->bytes, task->length};
    cardp->architecture = spans[ARCHITECTURE];
    cardp->normalisation = spans[NORMALISATION];
    cardp->calibration = spans[CALIBRATION];
    return WEIR_OK;
}

weir_err weir_model_json_file_check(const char *name, const char *text, size_t length) {
    weir_model_card card;
    return weir_model_card_read(name, (weir_span){text, length}, &card);
}

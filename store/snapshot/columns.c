/* SPDX-License-Identifier: Apache-2.0 */
/* columns.c - numbers become floats, times stay, categories become indices of their texts. */
#include "columns.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/hash.h>

/* --- texts ------------------------------------------------------------------------------------------------------- */

typedef struct texts_code {
    uint32_t tag;
    int32_t code;
} texts_code;

static const texts_code *texts_find(const weir_texts *texts, const char *text, size_t length, uint64_t hash) {
    const texts_code *found = weir_table_first(&texts->codes, hash, sizeof *found);
    for (; found; found = weir_table_next(&texts->codes, found, sizeof *found)) {
        int64_t begin = texts->offsets[found->code], end = texts->offsets[found->code + 1];
        if ((size_t)(end - begin) == length && memcmp(texts->bytes.bytes + begin, text, length) == 0) break;
    }
    return found;
}

static bool texts_reserve(weir_texts *texts) {
    if (texts->count == texts->capacity) {
        uint32_t capacity = texts->capacity ? texts->capacity * 2 : 32;
        int64_t *offsets = weir_realloc_array(texts->offsets, (size_t)capacity + 1, sizeof *offsets);
        if (!offsets) return false;
        texts->offsets = offsets;
        texts->offsets[0] = 0;
        texts->capacity = capacity;
    }
    return weir_table_reserve(&texts->codes, (size_t)texts->count + 1, sizeof(texts_code));
}

weir_err weir_texts_code(weir_texts *texts, const char *text, size_t length, int32_t *codep) {
    uint64_t hash = weir_xxh3(text, length, 0);
    const texts_code *found = texts_find(texts, text, length, hash);
    *codep = found ? found->code : -1;
    if (found) return WEIR_OK;
    if (texts->bytes.length + length > WEIR_TEXTS_BYTES_MAX)
        return WEIR_ERR(WEIR_ELIMIT, "a category has more than 1 GiB of different texts, which is not a category "
                                     "any more; leave the feature out");
    if (!texts_reserve(texts)) return WEIR_NOMEM("for the texts of a category");
    weir_buf_append(&texts->bytes, text, length);
    if (weir_buf_err(&texts->bytes)) return WEIR_NOMEM("for the texts of a category");
    texts_code *added = weir_table_add(&texts->codes, hash, sizeof *added);
    *codep = added->code = (int32_t)texts->count++;
    texts->offsets[texts->count] = (int64_t)texts->bytes.length;
    return WEIR_OK;
}

int32_t weir_texts_find(const weir_texts *texts, const char *text, size_t length) {
    const texts_code *found = texts_find(texts, text, length, weir_xxh3(text, length, 0));
    return found ? found->code : -1;
}

void weir_texts_free(weir_texts *texts) {
    weir_buf_free(&texts->bytes);
    weir_free(texts->offsets);
    weir_table_free(&texts->codes);
    *texts = (weir_texts){.count = 0};
}

weir_err weir_columns_texts_open(const weir_schema_feature *features, uint32_t count, weir_columns_texts *textsp) {
    *textsp = (weir_columns_texts){.features = features, .count = count};
    textsp->of = weir_calloc(count, sizeof *textsp->of);
    return textsp->of ? WEIR_OK : WEIR_NOMEM("for the texts of a category");
}

void weir_columns_texts_free(weir_columns_texts *texts) {
    for (uint32_t i = 0; texts->of && i < texts->count; i++)
        weir_texts_free(&texts->of[i]);
    weir_free(texts->of);
    *texts = (weir_columns_texts){.of = NULL};
}

weir_err weir_columns_texts_write(const weir_snapshot_draft *draft, const char *folder,
                                  const weir_columns_texts *texts) {
    static const int64_t none = 0;
    weir_err err = WEIR_OK;
    for (uint32_t i = 0; !err && i < texts->count; i++) {
        const weir_schema_feature *f = &texts->features[i];
        const weir_texts *t = &texts->of[i];
        if (f->kind != WEIR_SCHEMA_CATEGORY) continue;
        weir_npy_writer *offsets = NULL, *bytes = NULL;
        err = weir_draft_array(draft, WEIR_NPY_I64, (uint64_t)t->count + 1, 0, &offsets,
                               "%s/feature.%s.text_offsets.npy", folder, f->name);
        if (!err)
            err = weir_draft_array(draft, WEIR_NPY_U8, t->bytes.length, 0, &bytes, "%s/feature.%s.text_bytes.npy",
                                   folder, f->name);
        if (!err) err = weir_npy_write(offsets, t->count ? t->offsets : &none, (uint64_t)t->count + 1);
        if (!err) err = weir_npy_write(bytes, t->bytes.bytes, t->bytes.length);
        if (err) {
            weir_npy_writer_cancel(offsets);
            weir_npy_writer_cancel(bytes);
            return err;
        }
        err = weir_npy_writer_close(offsets);
        weir_err_keep(&err, weir_npy_writer_close(bytes));
    }
    return err;
}

/* --- columns ----------------------------------------------------------------------------------------------------- */

struct weir_columns {
    weir_columns_texts *texts; /* borrowed */
    weir_npy_writer *writers[];
};

weir_err weir_columns_open(const weir_snapshot_draft *draft, const char *folder, weir_columns_texts *texts,
                           uint64_t rows, weir_columns **columnsp) {
    static const weir_npy_type types[] = {
        [WEIR_SCHEMA_NUMBER] = WEIR_NPY_F32, [WEIR_SCHEMA_CATEGORY] = WEIR_NPY_I32, [WEIR_SCHEMA_TIME] = WEIR_NPY_I64};
    weir_err err = WEIR_OK;
    *columnsp = NULL;
    weir_columns *columns = weir_calloc(1, sizeof *columns + texts->count * sizeof columns->writers[0]);
    if (!columns) return WEIR_NOMEM("for columns of features");
    columns->texts = texts;
    for (uint32_t i = 0; !err && i < texts->count; i++) {
        const weir_schema_feature *f = &texts->features[i];
        err = weir_draft_array(draft, types[f->kind], rows, 0, &columns->writers[i], "%s/feature.%s.npy", folder,
                               f->name);
    }
    if (err) {
        weir_columns_cancel(columns);
        return err;
    }
    *columnsp = columns;
    return WEIR_OK;
}

weir_err weir_columns_add(weir_columns *columns, const weir_value *values) {
    weir_err err = WEIR_OK;
    for (uint32_t i = 0; !err && i < columns->texts->count; i++) {
        const weir_value *value = &values[i];
        weir_npy_writer *writer = columns->writers[i];
        float number = value->present ? (float)value->number : NAN;
        int64_t time_us = value->present ? value->time_us : WEIR_SNAPSHOT_NEVER;
        int32_t code = -1;
        switch (columns->texts->features[i].kind) {
        case WEIR_SCHEMA_NUMBER:
            err = weir_npy_write(writer, &number, 1);
            break;
        case WEIR_SCHEMA_TIME:
            err = weir_npy_write(writer, &time_us, 1);
            break;
        default:
            if (value->present) err = weir_texts_code(&columns->texts->of[i], value->text, value->text_length, &code);
            if (!err) err = weir_npy_write(writer, &code, 1);
        }
    }
    return err;
}

weir_err weir_columns_close(weir_columns *columns) {
    weir_err err = WEIR_OK;
    for (uint32_t i = 0; i < columns->texts->count; i++) {
        weir_err_keep(&err, weir_npy_writer_close(columns->writers[i]));
        columns->writers[i] = NULL;
    }
    weir_columns_cancel(columns);
    return err;
}

void weir_columns_cancel(weir_columns *columns) {
    if (!columns) return;
    for (uint32_t i = 0; i < columns->texts->count; i++)
        weir_npy_writer_cancel(columns->writers[i]);
    weir_free(columns);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* columns.h - feature rows as columns, one file each, and the texts of categories. */
#ifndef WEIR_STORE_COLUMNS_H
#define WEIR_STORE_COLUMNS_H

#include <weir/store/base/table.h>

#include "draft.h"

#define WEIR_TEXTS_BYTES_MAX ((uint64_t)1 << 30) /* of one category */

/* The texts of one category, numbered in the order in which they are met. */
typedef struct weir_texts {
    weir_buf bytes;
    int64_t *offsets; /* count + 1 */
    uint32_t count, capacity;
    weir_table codes;
} weir_texts;

/* WEIR_ELIMIT, WEIR_ENOMEM. */
weir_err weir_texts_code(weir_texts *texts, const char *text, size_t length, int32_t *codep);
/* The code of a text that is there, or -1. */
int32_t weir_texts_find(const weir_texts *texts, const char *text, size_t length);
void weir_texts_free(weir_texts *texts);

/* The categories of one owner; NULL where there are no features. */
typedef struct weir_columns_texts {
    weir_texts *of; /* one a feature */
    const weir_schema_feature *features;
    uint32_t count;
} weir_columns_texts;

weir_err weir_columns_texts_open(const weir_schema_feature *features, uint32_t count, weir_columns_texts *textsp);
/* FOLDER/feature.NAME.text_offsets.npy and text_bytes.npy, FOLDER below the draft. */
weir_err weir_columns_texts_write(const weir_snapshot_draft *draft, const char *folder,
                                  const weir_columns_texts *texts);
void weir_columns_texts_free(weir_columns_texts *texts);

typedef struct weir_columns weir_columns;

/* FOLDER/feature.NAME.npy of rows numbers each. texts is borrowed. */
weir_err weir_columns_open(const weir_snapshot_draft *draft, const char *folder, weir_columns_texts *texts,
                           uint64_t rows, weir_columns **columnsp);
weir_err weir_columns_add(weir_columns *columns, const weir_value *values);
weir_err weir_columns_close(weir_columns *columns);
void weir_columns_cancel(weir_columns *columns);

#endif /* WEIR_STORE_COLUMNS_H */

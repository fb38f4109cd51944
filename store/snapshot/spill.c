/* SPDX-License-Identifier: Apache-2.0 */
/* spill.c - buffered files of records. Nothing here is durable or needs to be: after a crash, a build starts again. */
#include "spill.h"

#include <stdio.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/bytes.h>
#include <weir/store/base/file.h>
#include <weir/store/format/row.h>

#define WRITE_BYTES (64u << 10)
#define READ_BYTES  (WEIR_SPILL_HEAD_BYTES + WEIR_ROW_BYTES_MAX + WRITE_BYTES)

static weir_err spill_path(const char *folder, const char *name, uint32_t shard, char path[WEIR_SPILL_PATH_MAX]) {
    int length = snprintf(path, WEIR_SPILL_PATH_MAX, "%s/%s.%u", folder, name, shard);
    if (length < 0 || length >= (int)WEIR_SPILL_PATH_MAX)
        return WEIR_ERR(WEIR_ELIMIT, "the path %.64s… is too long", folder);
    return WEIR_OK;
}

/* --- writing ----------------------------------------------------------------------------------------------------- */

struct weir_spill {
    weir_file *file; /* NULL until the first record */
    char *path;
    size_t used;
    uint8_t bytes[WRITE_BYTES];
};

weir_err weir_spill_open(const char *folder, const char *name, uint32_t shard, weir_spill **spillp) {
    char path[WEIR_SPILL_PATH_MAX];
    *spillp = NULL;
    weir_err err = spill_path(folder, name, shard, path);
    if (err) return err;
    weir_spill *spill = weir_malloc(sizeof *spill);
    if (!spill) return WEIR_NOMEM("while writing %s", path);
    spill->file = NULL;
    spill->used = 0;
    spill->path = weir_strdup(path);
    if (!spill->path) {
        weir_free(spill);
        return WEIR_NOMEM("while writing %s", path);
    }
    *spillp = spill;
    return WEIR_OK;
}

static weir_err spill_put(weir_spill *spill, const void *bytes, size_t length) {
    const uint8_t *p = bytes;
    while (length > 0) {
        size_t room = WRITE_BYTES - spill->used, part = length < room ? length : room;
        memcpy(spill->bytes + spill->used, p, part);
        spill->used += part;
        WEIR_ASSERT(spill->used <= WRITE_BYTES);
        p += part;
        length -= part;
        if (spill->used < WRITE_BYTES) break;
        weir_err err = weir_file_append(spill->file, spill->bytes, WRITE_BYTES);
        if (err) return err;
        spill->used = 0;
    }
    return WEIR_OK;
}

static void spill_put_vertex(uint8_t *at, weir_vertex vertex) {
    weir_put_u64(at, weir_vertex_low(vertex));
    weir_put_u64(at + 8, weir_vertex_high(vertex));
}

weir_err weir_spill_add(weir_spill *spill, const weir_spill_record *record) {
    uint8_t head[WEIR_SPILL_HEAD_BYTES];
    weir_err err = spill->file ? WEIR_OK : weir_file_open(spill->path, WEIR_FILE_CREATE, &spill->file);
    WEIR_ASSERT(record->row_length <= WEIR_ROW_BYTES_MAX);
    spill_put_vertex(head, record->vertex);
    spill_put_vertex(head + 16, record->neighbor);
    weir_put_u64(head + 32, (uint64_t)record->time_us);
    weir_put_u64(head + 40, record->event);
    weir_put_u32(head + 48, record->row_length);
    weir_put_u64(head + 52, (uint64_t)record->until_us);
    if (!err) err = spill_put(spill, head, sizeof head);
    if (!err && record->row_length) err = spill_put(spill, record->row, record->row_length);
    return err;
}

weir_err weir_spill_close(weir_spill *spill) {
    if (!spill) return WEIR_OK;
    weir_err err = spill->used ? weir_file_append(spill->file, spill->bytes, spill->used) : WEIR_OK;
    weir_err_keep(&err, weir_file_close(spill->file));
    weir_free(spill->path);
    weir_free(spill);
    return err;
}

/* --- reading ----------------------------------------------------------------------------------------------------- */

typedef struct spill_reader {
    weir_file *file; /* NULL: at its end, or never written */
    uint64_t offset; /* of what is read next */
    size_t begin, end;
    weir_vertex vertex; /* of the record at begin */
    uint8_t *bytes;
} spill_reader;

struct weir_merge {
    uint32_t shards;
    uint32_t current; /* the shard that the last record was of */
    weir_vertex vertex;
    size_t taken; /* bytes of the record that is lent out */
    spill_reader readers[];
};

static weir_vertex spill_get_vertex(const uint8_t *at) {
    return weir_vertex_make(weir_get_u64(at + 8), weir_get_u64(at));
}

/* Looks at the next record, reading on where less than a whole one is there. */
static weir_err spill_reader_fill(spill_reader *r) {
    size_t got, left = r->end - r->begin;
    size_t whole = left < WEIR_SPILL_HEAD_BYTES ? WEIR_SPILL_HEAD_BYTES
                                                : WEIR_SPILL_HEAD_BYTES + weir_get_u32(r->bytes + r->begin + 48);
    WEIR_ASSERT(whole <= READ_BYTES && r->begin <= r->end);
    if (left < whole) {
        memmove(r->bytes, r->bytes + r->begin, left);
        weir_err err = weir_file_read_at(r->file, r->offset, r->bytes + left, READ_BYTES - left, &got);
        if (err) return err;
        r->offset += got;
        r->begin = 0;
        r->end = left + got;
        WEIR_ASSERT(r->end <= READ_BYTES && (got > 0 || left == 0)); /* nothing ends inside a record */
    }
    if (r->begin == r->end) {
        weir_err err = weir_file_close(r->file);
        r->file = NULL;
        return err;
    }
    r->vertex = spill_get_vertex(r->bytes + r->begin);
    return WEIR_OK;
}

weir_err weir_merge_open(const char *folder, const char *name, uint32_t shards, weir_merge **mergep) {
    char path[WEIR_SPILL_PATH_MAX];
    weir_err err = WEIR_OK;
    *mergep = NULL;
    weir_merge *merge = weir_calloc(1, sizeof *merge + shards * sizeof merge->readers[0]);
    if (!merge) return WEIR_NOMEM("while reading %s/%s", folder, name);
    merge->shards = shards;
    merge->current = shards;
    for (uint32_t i = 0; !err && i < shards; i++) {
        err = spill_path(folder, name, i, path);
        if (err || !weir_path_exists(path)) continue;
        spill_reader *r = &merge->readers[i];
        r->bytes = weir_malloc(READ_BYTES);
        err = r->bytes ? weir_file_open(path, WEIR_FILE_READ, &r->file) : WEIR_NOMEM("while reading %s", path);
        if (!err) err = spill_reader_fill(r);
    }
    if (err) {
        weir_merge_close(merge);
        return err;
    }
    *mergep = merge;
    return WEIR_OK;
}

void weir_merge_close(weir_merge *merge) {
    if (!merge) return;
    for (uint32_t i = 0; i < merge->shards; i++) {
        weir_file_close(merge->readers[i].file);
        weir_free(merge->readers[i].bytes);
    }
    weir_free(merge);
}

/* The record that was lent out is given back first; while its shard goes on with the same vertex, so does the merge. */
weir_err weir_merge_next(weir_merge *merge, weir_spill_record *recordp, bool *foundp) {
    *foundp = false;
    if (merge->taken) {
        spill_reader *lender = &merge->readers[merge->current];
        weir_vertex before = lender->vertex;
        lender->begin += merge->taken;
        merge->taken = 0;
        weir_err err = spill_reader_fill(lender);
        if (err) return err;
        WEIR_ASSERT(!lender->file || lender->vertex >= before);
        if (!lender->file || lender->vertex != before) merge->current = merge->shards;
    }
    if (merge->current == merge->shards) { /* the lowest vertex of all */
        for (uint32_t i = 0; i < merge->shards; i++) {
            const spill_reader *r = &merge->readers[i];
            bool none = merge->current == merge->shards;
            if (r->file && (none || r->vertex < merge->readers[merge->current].vertex)) merge->current = i;
        }
    }
    if (merge->current == merge->shards) return WEIR_OK;

    const spill_reader *r = &merge->readers[merge->current];
    const uint8_t *p = r->bytes + r->begin;
    *recordp = (weir_spill_record){
        .vertex = spill_get_vertex(p),
        .neighbor = spill_get_vertex(p + 16),
        .time_us = (int64_t)weir_get_u64(p + 32),
        .event = weir_get_u64(p + 40),
        .until_us = (int64_t)weir_get_u64(p + 52),
        .row = p + WEIR_SPILL_HEAD_BYTES,
        .row_length = weir_get_u32(p + 48),
    };
    merge->taken = WEIR_SPILL_HEAD_BYTES + recordp->row_length;
    WEIR_ASSERT(merge->taken <= r->end - r->begin);
    *foundp = true;
    return WEIR_OK;
}

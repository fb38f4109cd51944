/* SPDX-License-Identifier: Apache-2.0 */
/* unpack.c - an archive as the two files that an import reads: for what a store must put in order. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <weir/store/base/assert.h>

#include "export.h"
#include "import_private.h"

/* --- rows -------------------------------------------------------------------------------------------------------- */

static void unpack_put_header(const weir_archive *a, bool nodes, weir_buf *out) {
    char column[WEIR_ARCHIVE_COLUMN_MAX];
    for (uint32_t i = 0; i < a->member_count; i++) {
        const weir_archive_member *m = &a->members[i];
        if ((m->kind == WEIR_MEMBER_EDGE) == nodes || m->kind == WEIR_MEMBER_OTHER) continue;
        weir_archive_column(m, column);
        weir_buf_byte(out, ',');
        weir_buf_csv(out, column, strlen(column));
    }
    weir_buf_byte(out, '\n');
}

static void unpack_put_cells(const weir_archive *a, bool nodes, uint64_t row, weir_buf *out) {
    for (uint32_t i = 0; i < a->member_count; i++) {
        const weir_archive_member *m = &a->members[i];
        if ((m->kind == WEIR_MEMBER_EDGE) == nodes || m->kind == WEIR_MEMBER_OTHER) continue;
        weir_buf_byte(out, ',');
        if (m->kind == WEIR_MEMBER_MASK) {
            weir_buf_byte(out, weir_npy_f64(&m->array, row) != 0 ? '1' : '0');
            continue;
        }
        uint64_t width = m->kind == WEIR_MEMBER_MATRIX ? m->array.shape[1] : 1;
        WEIR_ASSERT(m->array.count == (nodes ? a->nodes : a->edges) * width);
        for (uint64_t c = 0; c < width; c++) {
            if (c) weir_buf_byte(out, ' ');
            weir_export_number(out, (float)weir_npy_f64(&m->array, row * width + c));
        }
    }
    weir_buf_byte(out, '\n');
}

static weir_err unpack_put_id(const weir_archive *a, int64_t place, weir_buf *out) {
    int64_t id = place;
    weir_err err = WEIR_OK;
    if (place < 0 || (uint64_t)place >= a->nodes) return weir_archive_wrong_end(a, place);
    if (a->ids.count) err = weir_npy_i64(&a->ids, a->path, (uint64_t)place, &id);
    weir_buf_i64(out, id);
    return err;
}

static weir_err unpack_put_time(const weir_archive *a, const weir_npy_array *times, uint64_t row, weir_buf *out) {
    int64_t time_us = WEIR_SNAPSHOT_NEVER;
    weir_err err = times->count ? weir_npy_i64(times, a->path, row, &time_us) : WEIR_OK;
    weir_buf_byte(out, ',');
    if (!err) weir_export_seconds(out, time_us);
    return err;
}

static weir_err unpack_put_nodes(const weir_archive *a, const char *folder) {
    weir_export_file file;
    weir_err err = weir_export_open(folder, "nodes.csv", &file);
    weir_buf_text(&file.text, "id,timestamp,label");
    unpack_put_header(a, true, &file.text);
    for (uint64_t row = 0; !err && row < a->nodes; row++) {
        int64_t label = -1;
        err = unpack_put_id(a, (int64_t)row, &file.text);
        if (!err) err = unpack_put_time(a, &a->node_times, row, &file.text);
        if (!err && a->labels.count) err = weir_npy_i64(&a->labels, a->path, row, &label);
        weir_buf_byte(&file.text, ',');
        if (label >= 0) weir_buf_printf(&file.text, "%0*lld", a->label_digits, (long long)label);
        unpack_put_cells(a, true, row, &file.text);
        if (!err) err = weir_export_flush(&file);
    }
    return weir_export_close(&file, err);
}

static weir_err unpack_put_edges(const weir_archive *a, const char *folder) {
    weir_export_file file;
    int64_t src, dst;
    weir_err err = weir_export_open(folder, "edges.csv", &file);
    weir_buf_text(&file.text, "src,dst,timestamp");
    unpack_put_header(a, false, &file.text);
    for (uint64_t row = 0; !err && row < a->edges; row++) {
        err = weir_npy_i64(&a->src, a->path, row, &src);
        if (!err) err = unpack_put_id(a, src, &file.text);
        weir_buf_byte(&file.text, ',');
        if (!err) err = weir_npy_i64(&a->dst, a->path, row, &dst);
        if (!err) err = unpack_put_id(a, dst, &file.text);
        if (!err) err = unpack_put_time(a, &a->edge_times, row, &file.text);
        unpack_put_cells(a, false, row, &file.text);
        if (!err) err = weir_export_flush(&file);
    }
    return weir_export_close(&file, err);
}

weir_err weir_import_unpack(const weir_archive *archive, const char *folder) {
    weir_err err = unpack_put_nodes(archive, folder);
    return err ? err : unpack_put_edges(archive, folder);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export_npz.c - one vertex type and one relation as the archive that graph libraries pass around.
 *
 *   node_id (n) int64          edge_index (2, m) int64: places in node_id      x.NAME (n, width) float32
 *   node_time (n) int64, us    edge_time (m) int64, us                         mask.NAME (n) bool
 *   node.NAME (n) float32      edge.NAME (m) float32                           y (n) int32, -1: unlabelled
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/base/alloc.h>

#include "export.h"

typedef struct archive {
    const weir_snapshot *snapshot;
    const weir_snapshot_vertices *nodes;
    const weir_snapshot_edges *edges;
    weir_npz_writer *writer;
} archive;

static weir_err no_memory(void) {
    return WEIR_ERR(WEIR_ENOMEM, "no memory to export a snapshot");
}

static weir_err add(archive *a, const char *prefix, const char *name, weir_npy_type type, const void *data,
                    uint64_t rows, uint64_t columns) {
    char whole[128];
    snprintf(whole, sizeof whole, "%s%s", prefix, name);
    weir_npy_array array = {.type = type, .dims = columns ? 2 : 1, .shape = {rows, columns}, .data = data};
    array.count = rows * (columns ? columns : 1);
    return weir_npz_add(a->writer, whole, &array);
}

/* A key that is no whole number has no place in an array. */
static weir_err key_number(const weir_snapshot_vertices *v, uint64_t index, int64_t *numberp) {
    char text[24], again[24];
    int64_t begin = v->key_offsets[index], length = v->key_offsets[index + 1] - begin;
    bool fits = length > 0 && length < (int64_t)sizeof text;
    snprintf(text, sizeof text, "%.*s", fits ? (int)length : 0, (const char *)v->key_bytes + begin);
    *numberp = strtoll(text, NULL, 10);
    snprintf(again, sizeof again, "%lld", (long long)*numberp);
    if (fits && strcmp(text, again) == 0) return WEIR_OK;
    return WEIR_ERR(WEIR_EINVAL, "the vertex '%s' has no whole number as its key; export CSV instead", text);
}

static weir_err add_ids(archive *a) {
    weir_err err = WEIR_OK;
    int64_t *ids = weir_calloc((size_t)a->nodes->count + 1, sizeof *ids);
    if (!ids) return no_memory();
    for (uint64_t i = 0; !err && i < a->nodes->count; i++)
        err = key_number(a->nodes, i, &ids[i]);
    if (!err) err = add(a, "node_id", "", WEIR_NPY_I64, ids, a->nodes->count, 0);
    weir_free(ids);
    return err;
}

static weir_err add_features(archive *a, const char *prefix, const weir_snapshot_column *columns, uint32_t count,
                             uint64_t rows) {
    weir_err err = WEIR_OK;
    for (uint32_t i = 0; !err && i < count; i++) {
        if (columns[i].kind != WEIR_VALUE_NUMBER)
            return WEIR_ERR(WEIR_EINVAL, "the feature %s is no number; export CSV instead", columns[i].name);
        err = add(a, prefix, columns[i].name, WEIR_NPY_F32, columns[i].numbers, rows, 0);
    }
    return err;
}

static weir_err add_extras(archive *a) {
    weir_err err = WEIR_OK;
    for (uint32_t i = 0; !err && i < a->nodes->extra_count; i++) {
        const weir_snapshot_extra *e = &a->nodes->extras[i];
        err = e->columns ? add(a, "x.", e->name, WEIR_NPY_F32, e->matrix, a->nodes->count, e->columns)
                         : add(a, "mask.", e->name, WEIR_NPY_BOOL, e->mask, a->nodes->count, 0);
    }
    return err;
}

static weir_err add_label(archive *a) {
    const weir_schema *schema = weir_snapshot_schema(a->snapshot);
    if (weir_schema_label_count(schema) == 0) return WEIR_OK;
    if (weir_schema_label_count(schema) > 1 || weir_schema_label_at(schema, 0)->on_relation)
        return WEIR_ERR(WEIR_EINVAL, "an archive has one label of its vertices; export CSV instead");
    int32_t *newest = weir_export_newest(weir_snapshot_labels_of(a->snapshot, 0), a->nodes->count);
    if (!newest) return no_memory();
    weir_err err = add(a, "y", "", WEIR_NPY_I32, newest, a->nodes->count, 0);
    weir_free(newest);
    return err;
}

static weir_err add_edges(archive *a) {
    uint64_t edges = a->edges->edges;
    int64_t *ends = weir_calloc((size_t)edges * 2 + 1, sizeof *ends);
    if (!ends) return no_memory();
    for (uint64_t v = 0; v < a->edges->vertices; v++) {
        for (int64_t at = a->edges->indptr[v]; at < a->edges->indptr[v + 1]; at++) {
            ends[at] = (int64_t)v;
            ends[(int64_t)edges + at] = a->edges->neighbors[at];
        }
    }
    weir_err err = add(a, "edge_index", "", WEIR_NPY_I64, ends, 2, edges);
    weir_free(ends);
    if (!err) err = add(a, "edge_time", "", WEIR_NPY_I64, a->edges->times, edges, 0);
    return err ? err : add_features(a, "edge.", a->edges->columns, a->edges->column_count, edges);
}

static weir_err add_all(archive *a) {
    weir_err err = add_ids(a);
    if (!err) err = add(a, "node_time", "", WEIR_NPY_I64, a->nodes->first_us, a->nodes->count, 0);
    if (!err) err = add_features(a, "node.", a->nodes->columns, a->nodes->column_count, a->nodes->count);
    if (!err) err = add_extras(a);
    if (!err) err = add_label(a);
    return err ? err : add_edges(a);
}

weir_err weir_export_npz(const weir_snapshot *snapshot, const char *out) {
    const weir_schema *schema = weir_snapshot_schema(snapshot);
    archive a = {.snapshot = snapshot};
    if (weir_schema_vertex_count(schema) != 1 || weir_schema_relation_count(schema) != 1)
        return WEIR_ERR(WEIR_EINVAL,
                        "an archive holds one vertex type and one relation, and %s has %u and %u; export CSV instead",
                        weir_schema_name(schema), weir_schema_vertex_count(schema), weir_schema_relation_count(schema));
    a.nodes = weir_snapshot_vertices_of(snapshot, 0);
    a.edges = weir_snapshot_edges_of(snapshot, 0, WEIR_OUT);
    weir_err err = weir_npz_writer_open(out, &a.writer);
    if (err) return err;
    err = add_all(&a);
    if (!err) return weir_npz_writer_close(a.writer);
    weir_npz_writer_cancel(a.writer);
    weir_err_keep(&err, weir_file_remove(out));
    return err;
}

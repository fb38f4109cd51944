/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export_npz.c - one vertex type and one relation as the archive that graph libraries pass around.
 *
 *   node_id (n) int64          edge_index (2, m) int64: places in node_id      x.NAME (n, width) float32
 *   node_time (n) int64, us    edge_time (m) int64, us                         mask.NAME (n) bool
 *   node.NAME (n) float32      edge.NAME (m) float32                           y (n) int32, -1: unlabelled
 *
 * Each array is written to a file of OUT.partial first; the archive is packed there and renamed to OUT.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>

#include "draft.h"
#include "export.h"
#include "npy_private.h"

typedef struct npz_export {
    const weir_snapshot *snapshot;
    const weir_snapshot_vertices *nodes;
    const weir_snapshot_edges *edges;
    char folder[WEIR_DRAFT_PATH_MAX];
    weir_npz_writer *archive;
    uint32_t arrays;        /* that were begun                                              */
    weir_npy_writer *array; /* the one at hand                                              */
    int64_t *places;        /* of each node that exists as of the snapshot, its vertex     */
    int64_t *numbers;       /* of each vertex, its node                                     */
    int64_t *rows;          /* of each node, its row; -1: none                              */
    int64_t *edge_places;   /* of each visible edge, its position                           */
    uint64_t node_count, edge_count;
} npz_export;

/* --- arrays ------------------------------------------------------------------------------------------------------ */

static void npz_export_array_path(const npz_export *x, char path[WEIR_DRAFT_PATH_MAX + 32]) {
    snprintf(path, WEIR_DRAFT_PATH_MAX + 32, "%s/%" PRIu32 ".npy", x->folder, x->arrays);
}

/* dims 1: columns is not looked at. */
static weir_err npz_export_begin(npz_export *x, weir_npy_type type, uint32_t dims, uint64_t rows, uint64_t columns) {
    char path[WEIR_DRAFT_PATH_MAX + 32];
    const weir_npy_array shape = {.type = type, .dims = dims, .shape = {rows, columns}};
    WEIR_ASSERT(!x->array); /* the one before is closed */
    x->arrays++;
    npz_export_array_path(x, path);
    return weir_npy_writer_open_shape(path, &shape, &x->array);
}

/* Closes the array at hand, unless err is set already, and adds it as PREFIXNAME. */
static weir_err npz_export_end(npz_export *x, const char *prefix, const char *name, weir_err err) {
    char path[WEIR_DRAFT_PATH_MAX + 32], whole[128];
    npz_export_array_path(x, path);
    snprintf(whole, sizeof whole, "%s%s", prefix, name);
    err = weir_npy_writer_end(x->array, err);
    x->array = NULL;
    return err ? err : weir_npz_add(x->archive, whole, path);
}

/* `columns` numbers of each of these positions; NaN where a position is -1. */
static weir_err npz_export_floats(npz_export *x, const char *prefix, const char *name, const float *source,
                                  const int64_t *places, uint64_t count, uint64_t columns) {
    uint64_t width = columns ? columns : 1;
    const float missing = NAN;
    weir_err err = npz_export_begin(x, WEIR_NPY_F32, columns ? 2 : 1, count, columns);
    for (uint64_t i = 0; !err && i < count; i++) {
        WEIR_ASSERT(places[i] >= 0 || width == 1);
        err = weir_npy_write(x->array, places[i] < 0 ? &missing : source + (uint64_t)places[i] * width, width);
    }
    return npz_export_end(x, prefix, name, err);
}

static weir_err npz_export_features(npz_export *x, const char *prefix, const weir_snapshot_column *columns,
                                    uint32_t count, const int64_t *places, uint64_t rows) {
    weir_err err = WEIR_OK;
    for (uint32_t i = 0; !err && i < count; i++) {
        if (columns[i].kind != WEIR_VALUE_NUMBER)
            return WEIR_ERR(WEIR_EINVAL, "the feature %s is not a number; export CSV instead", columns[i].name);
        err = npz_export_floats(x, prefix, columns[i].name, columns[i].numbers, places, rows, 0);
    }
    return err;
}

/* --- nodes ------------------------------------------------------------------------------------------------------- */

/* An array of ids holds whole numbers only. */
static weir_err npz_export_key(const weir_snapshot_vertices *v, uint64_t index, int64_t *numberp) {
    char text[24], again[24];
    int64_t begin = v->key_offsets[index], length = v->key_offsets[index + 1] - begin;
    bool fits = length > 0 && length < (int64_t)sizeof text;
    snprintf(text, sizeof text, "%.*s", fits ? (int)length : 0, (const char *)v->key_bytes + begin);
    *numberp = strtoll(text, NULL, 10);
    snprintf(again, sizeof again, "%lld", (long long)*numberp);
    if (fits && strcmp(text, again) == 0) return WEIR_OK;
    return WEIR_ERR(WEIR_EINVAL, "the key '%s' of a vertex is not a whole number; export CSV instead", text);
}

static weir_err npz_export_label(npz_export *x) {
    const weir_schema *schema = weir_snapshot_schema(x->snapshot);
    if (weir_schema_label_count(schema) == 0) return WEIR_OK;
    if (weir_schema_label_count(schema) > 1 || weir_schema_label_at(schema, 0)->on_relation)
        return WEIR_ERR(WEIR_EINVAL, "an archive has one label, of its vertices; export CSV instead");
    const weir_snapshot_labels *labels = weir_snapshot_labels_of(x->snapshot, 0);
    int64_t *newest = weir_export_newest(x->snapshot, labels, x->nodes->count, x->nodes);
    if (!newest) return WEIR_NOMEM("while exporting a snapshot");
    weir_err err = npz_export_begin(x, WEIR_NPY_I32, 1, x->node_count, 0);
    for (uint64_t i = 0; !err && i < x->node_count; i++) {
        int64_t place = newest[x->places[i]];
        int32_t value = place < 0 ? -1 : labels->values[place];
        err = weir_npy_write(x->array, &value, 1);
    }
    weir_free(newest);
    return npz_export_end(x, "y", "", err);
}

static weir_err npz_export_nodes(npz_export *x) {
    const weir_snapshot_vertices *v = x->nodes;
    int64_t as_of_us = weir_snapshot_as_of_us(x->snapshot);

    weir_err err = npz_export_begin(x, WEIR_NPY_I64, 1, x->node_count, 0);
    for (uint64_t i = 0; !err && i < x->node_count; i++) {
        int64_t id;
        err = npz_export_key(v, (uint64_t)x->places[i], &id);
        if (!err) err = weir_npy_write_i64(x->array, id);
    }
    err = npz_export_end(x, "node_id", "", err);

    if (!err) err = npz_export_begin(x, WEIR_NPY_I64, 1, x->node_count, 0);
    for (uint64_t i = 0; !err && i < x->node_count; i++) {
        uint64_t life;
        bool there = weir_snapshot_span(&v->lives, (uint64_t)x->places[i], as_of_us, &life);
        err = weir_npy_write_i64(x->array, there ? v->lives.times[life] : WEIR_SNAPSHOT_NEVER);
    }
    err = npz_export_end(x, "node_time", "", err);

    if (!err) err = npz_export_features(x, "node.", v->columns, v->column_count, x->rows, x->node_count);
    for (uint32_t i = 0; !err && i < v->extra_count; i++) {
        const weir_snapshot_extra *e = &v->extras[i];
        if (e->columns) {
            err = npz_export_floats(x, "x.", e->name, e->matrix, x->places, x->node_count, e->columns);
            continue;
        }
        err = npz_export_begin(x, WEIR_NPY_BOOL, 1, x->node_count, 0);
        for (uint64_t n = 0; !err && n < x->node_count; n++)
            err = weir_npy_write(x->array, &e->mask[x->places[n]], 1);
        err = npz_export_end(x, "mask.", e->name, err);
    }
    return err ? err : npz_export_label(x);
}

/* --- edges ------------------------------------------------------------------------------------------------------- */

static weir_err npz_export_edges(npz_export *x) {
    const weir_snapshot_edges *e = x->edges;
    uint64_t v = 0;

    weir_err err = npz_export_begin(x, WEIR_NPY_I64, 2, 2, x->edge_count);
    for (uint64_t i = 0; !err && i < x->edge_count; i++) {
        while (e->indptr[v + 1] <= x->edge_places[i])
            v++;
        WEIR_ASSERT(v < e->vertices && x->edge_places[i] >= e->indptr[v]);
        err = weir_npy_write_i64(x->array, x->numbers[v]);
    }
    for (uint64_t i = 0; !err && i < x->edge_count; i++)
        err = weir_npy_write_i64(x->array, x->numbers[e->neighbors[x->edge_places[i]]]);
    err = npz_export_end(x, "edge_index", "", err);

    if (!err) err = npz_export_begin(x, WEIR_NPY_I64, 1, x->edge_count, 0);
    for (uint64_t i = 0; !err && i < x->edge_count; i++)
        err = weir_npy_write_i64(x->array, e->times[x->edge_places[i]]);
    err = npz_export_end(x, "edge_time", "", err);
    return err ? err : npz_export_features(x, "edge.", e->columns, e->column_count, x->edge_places, x->edge_count);
}

/* The nodes and edges that exist as of the snapshot. */
static weir_err npz_export_choose(npz_export *x) {
    uint8_t *there = weir_export_there(x->snapshot, 0);
    x->places = weir_calloc((size_t)x->nodes->count + 1, sizeof *x->places);
    x->numbers = weir_calloc((size_t)x->nodes->count + 1, sizeof *x->numbers);
    x->rows = weir_calloc((size_t)x->nodes->count + 1, sizeof *x->rows);
    x->edge_places = weir_calloc((size_t)x->edges->edges + 1, sizeof *x->edge_places);
    bool room = there && x->places && x->numbers && x->rows && x->edge_places;
    for (uint64_t v = 0; room && v < x->nodes->count; v++) {
        uint64_t row;
        x->numbers[v] = (int64_t)x->node_count;
        if (!there[v]) continue;
        bool has = weir_snapshot_span(&x->nodes->rows, v, weir_snapshot_as_of_us(x->snapshot), &row);
        x->rows[x->node_count] = has ? (int64_t)row : -1;
        x->places[x->node_count++] = (int64_t)v;
    }
    for (int64_t at = 0; room && at < (int64_t)x->edges->edges; at++) {
        if (weir_export_sees(x->snapshot, x->edges, at)) x->edge_places[x->edge_count++] = at;
    }
    weir_free(there);
    return room ? WEIR_OK : WEIR_NOMEM("while exporting a snapshot");
}

weir_err weir_export_npz(const weir_snapshot *snapshot, const char *out) {
    const weir_schema *schema = weir_snapshot_schema(snapshot);
    char packed[WEIR_DRAFT_PATH_MAX + 32];
    npz_export x = {.snapshot = snapshot};
    if (weir_schema_vertex_count(schema) != 1 || weir_schema_relation_count(schema) != 1)
        return WEIR_ERR(WEIR_EINVAL,
                        "an archive holds one vertex type and one relation, and %s has %u and %u; export CSV instead",
                        weir_schema_name(schema), weir_schema_vertex_count(schema), weir_schema_relation_count(schema));
    x.nodes = weir_snapshot_vertices_of(snapshot, 0);
    x.edges = weir_snapshot_edges_of(snapshot, 0, WEIR_OUT);
    weir_err err = weir_draft_beside(out, "partial", x.folder);
    if (!err && weir_path_exists(x.folder)) err = weir_folder_remove(x.folder);
    if (!err) err = weir_folder_create(x.folder);
    if (err) return err;
    snprintf(packed, sizeof packed, "%s/archive", x.folder);
    err = weir_npz_writer_open(packed, &x.archive);
    if (!err) err = npz_export_choose(&x);
    if (!err) err = npz_export_nodes(&x);
    if (!err) err = npz_export_edges(&x);
    if (err) {
        weir_npz_writer_cancel(x.archive);
    } else {
        err = weir_npz_writer_close(x.archive);
    }
    if (!err) err = weir_file_rename(packed, out);
    weir_err_keep(&err, weir_folder_remove(x.folder));
    weir_free(x.places);
    weir_free(x.numbers);
    weir_free(x.rows);
    weir_free(x.edge_places);
    return err;
}

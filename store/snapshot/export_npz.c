/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export_npz.c - one vertex type and one relation as the archive that graph libraries pass around.
 *
 *   node_id (n) int64          edge_index (2, m) int64: places in node_id      x.NAME (n, width) float32
 *   node_time (n) int64, us    edge_time (m) int64, us                         mask.NAME (n) bool
 *   node.NAME (n) float32      edge.NAME (m) float32                           y (n) int32, -1: unlabelled
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/store/base/alloc.h>

#include "export.h"

typedef struct archive {
    const weir_snapshot *snapshot;
    const weir_snapshot_vertices *nodes;
    const weir_snapshot_edges *edges;
    weir_npz_writer *writer;
    int64_t *places;      /* of each node that is there as of the snapshot, its place in that */
    int64_t *numbers;     /* of each vertex, its place among those                            */
    int64_t *rows;        /* of each node, its row; -1: none                                  */
    int64_t *edge_places; /* of each edge that is seen, its place                             */
    uint64_t node_count, edge_count;
} archive;

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
    int64_t *ids = weir_calloc((size_t)a->node_count + 1, sizeof *ids);
    if (!ids) return WEIR_NOMEM("while exporting a snapshot");
    for (uint64_t i = 0; !err && i < a->node_count; i++)
        err = key_number(a->nodes, (uint64_t)a->places[i], &ids[i]);
    if (!err) err = add(a, "node_id", "", WEIR_NPY_I64, ids, a->node_count, 0);
    weir_free(ids);
    return err;
}

/* Numbers of 4 bytes, `columns` a place, in the order of places; NaN where there is none. */
static weir_err add_floats(archive *a, const char *prefix, const char *name, const float *source, const int64_t *places,
                           uint64_t count, uint64_t columns) {
    uint64_t width = columns ? columns : 1;
    float *numbers = weir_malloc((size_t)(count * width + 1) * sizeof *numbers);
    if (!numbers) return WEIR_NOMEM("while exporting a snapshot");
    for (uint64_t i = 0; i < count * width; i++)
        numbers[i] = places[i / width] < 0 ? NAN : source[(uint64_t)places[i / width] * width + i % width];
    weir_err err = add(a, prefix, name, WEIR_NPY_F32, numbers, count, columns);
    weir_free(numbers);
    return err;
}

static weir_err add_times(archive *a, const char *name, const int64_t *source, const int64_t *places, uint64_t count) {
    int64_t *times = weir_malloc((size_t)(count + 1) * sizeof *times);
    if (!times) return WEIR_NOMEM("while exporting a snapshot");
    for (uint64_t i = 0; i < count; i++)
        times[i] = places[i] < 0 ? WEIR_SNAPSHOT_NEVER : source[places[i]];
    weir_err err = add(a, name, "", WEIR_NPY_I64, times, count, 0);
    weir_free(times);
    return err;
}

static weir_err add_node_times(archive *a) {
    int64_t *lives = weir_malloc((size_t)(a->node_count + 1) * sizeof *lives);
    if (!lives) return WEIR_NOMEM("while exporting a snapshot");
    for (uint64_t i = 0; i < a->node_count; i++) {
        uint64_t life;
        bool there =
            weir_snapshot_span(&a->nodes->lives, (uint64_t)a->places[i], weir_snapshot_as_of_us(a->snapshot), &life);
        lives[i] = there ? (int64_t)life : -1;
    }
    weir_err err = add_times(a, "node_time", a->nodes->lives.times, lives, a->node_count);
    weir_free(lives);
    return err;
}

static weir_err add_features(archive *a, const char *prefix, const weir_snapshot_column *columns, uint32_t count,
                             const int64_t *places, uint64_t rows) {
    weir_err err = WEIR_OK;
    for (uint32_t i = 0; !err && i < count; i++) {
        if (columns[i].kind != WEIR_VALUE_NUMBER)
            return WEIR_ERR(WEIR_EINVAL, "the feature %s is no number; export CSV instead", columns[i].name);
        err = add_floats(a, prefix, columns[i].name, columns[i].numbers, places, rows, 0);
    }
    return err;
}

static weir_err add_mask(archive *a, const weir_snapshot_extra *e) {
    uint8_t *mask = weir_calloc((size_t)a->node_count + 1, 1);
    if (!mask) return WEIR_NOMEM("while exporting a snapshot");
    for (uint64_t i = 0; i < a->node_count; i++)
        mask[i] = e->mask[a->places[i]];
    weir_err err = add(a, "mask.", e->name, WEIR_NPY_BOOL, mask, a->node_count, 0);
    weir_free(mask);
    return err;
}

static weir_err add_extras(archive *a) {
    weir_err err = WEIR_OK;
    for (uint32_t i = 0; !err && i < a->nodes->extra_count; i++) {
        const weir_snapshot_extra *e = &a->nodes->extras[i];
        err =
            e->columns ? add_floats(a, "x.", e->name, e->matrix, a->places, a->node_count, e->columns) : add_mask(a, e);
    }
    return err;
}

static weir_err add_label(archive *a) {
    const weir_schema *schema = weir_snapshot_schema(a->snapshot);
    if (weir_schema_label_count(schema) == 0) return WEIR_OK;
    if (weir_schema_label_count(schema) > 1 || weir_schema_label_at(schema, 0)->on_relation)
        return WEIR_ERR(WEIR_EINVAL, "an archive has one label of its vertices; export CSV instead");
    const weir_snapshot_labels *labels = weir_snapshot_labels_of(a->snapshot, 0);
    int64_t *newest = weir_export_newest(a->snapshot, labels, a->nodes->count, a->nodes);
    int32_t *values = weir_malloc((size_t)(a->node_count + 1) * sizeof *values);
    weir_err err = newest && values ? WEIR_OK : WEIR_NOMEM("while exporting a snapshot");
    for (uint64_t i = 0; !err && i < a->node_count; i++) {
        int64_t place = newest[a->places[i]];
        values[i] = place < 0 ? -1 : labels->values[place];
    }
    if (!err) err = add(a, "y", "", WEIR_NPY_I32, values, a->node_count, 0);
    weir_free(newest);
    weir_free(values);
    return err;
}

static weir_err add_edges(archive *a) {
    int64_t *ends = weir_calloc((size_t)a->edge_count * 2 + 1, sizeof *ends);
    if (!ends) return WEIR_NOMEM("while exporting a snapshot");
    uint64_t v = 0;
    for (uint64_t i = 0; i < a->edge_count; i++) {
        while (a->edges->indptr[v + 1] <= a->edge_places[i])
            v++;
        ends[i] = a->numbers[v];
        ends[a->edge_count + i] = a->numbers[a->edges->neighbors[a->edge_places[i]]];
    }
    weir_err err = add(a, "edge_index", "", WEIR_NPY_I64, ends, 2, a->edge_count);
    weir_free(ends);
    if (!err) err = add_times(a, "edge_time", a->edges->times, a->edge_places, a->edge_count);
    return err ? err
               : add_features(a, "edge.", a->edges->columns, a->edges->column_count, a->edge_places, a->edge_count);
}

/* What is there as of the snapshot. */
static weir_err choose(archive *a) {
    uint8_t *there = weir_export_there(a->snapshot, 0);
    a->places = weir_malloc((size_t)(a->nodes->count + 1) * sizeof *a->places);
    a->numbers = weir_malloc((size_t)(a->nodes->count + 1) * sizeof *a->numbers);
    a->rows = weir_malloc((size_t)(a->nodes->count + 1) * sizeof *a->rows);
    a->edge_places = weir_malloc((size_t)(a->edges->edges + 1) * sizeof *a->edge_places);
    weir_err err = there && a->places && a->numbers && a->rows && a->edge_places
                       ? WEIR_OK
                       : WEIR_NOMEM("while exporting a snapshot");
    for (uint64_t v = 0; !err && v < a->nodes->count; v++) {
        uint64_t row;
        a->numbers[v] = (int64_t)a->node_count;
        if (!there[v]) continue;
        bool has = weir_snapshot_span(&a->nodes->rows, v, weir_snapshot_as_of_us(a->snapshot), &row);
        a->rows[a->node_count] = has ? (int64_t)row : -1;
        a->places[a->node_count++] = (int64_t)v;
    }
    for (int64_t at = 0; !err && at < (int64_t)a->edges->edges; at++) {
        if (weir_export_sees(a->snapshot, a->edges, at)) a->edge_places[a->edge_count++] = at;
    }
    weir_free(there);
    return err;
}

static void archive_free(archive *a) {
    weir_free(a->places);
    weir_free(a->numbers);
    weir_free(a->rows);
    weir_free(a->edge_places);
}

static weir_err add_all(archive *a) {
    weir_err err = choose(a);
    if (!err) err = add_ids(a);
    if (!err) err = add_node_times(a);
    if (!err) err = add_features(a, "node.", a->nodes->columns, a->nodes->column_count, a->rows, a->node_count);
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
    archive_free(&a);
    if (!err) return weir_npz_writer_close(a.writer);
    weir_npz_writer_cancel(a.writer);
    weir_err_keep(&err, weir_file_remove(out));
    return err;
}

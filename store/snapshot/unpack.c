/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unpack.c - an archive as the two files that an import reads. Besides the names of export_npz.c it knows those that
 * are common elsewhere: src and dst for edge_index, x for a matrix, NAME_mask for a mask, and labels or label for y.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>

#include "export.h"
#include "import_private.h"

/* What a member is, by its name and shape. */
typedef enum unpack_kind { MEMBER_OTHER, MEMBER_NODE, MEMBER_EDGE, MEMBER_MATRIX, MEMBER_MASK } unpack_kind;

typedef struct unpack_member {
    unpack_kind kind;
    const char *name; /* without the prefix that gives the kind */
    weir_npy_array array;
} unpack_member;

typedef struct unpack {
    weir_npz *npz;
    const char *path;
    uint64_t nodes, edges;
    weir_npy_array src, dst;
    weir_npy_array ids, labels, node_times, edge_times; /* count 0: there is none */
    unpack_member *members;
    int label_digits;
} unpack;

static weir_err unpack_wrong(const unpack *u, const char *what) {
    return WEIR_ERR(WEIR_EDATA, "%s: %s", u->path, what);
}

/* The first of these names that the archive has; NULL-terminated. */
static weir_err unpack_any_of(unpack *u, const char *const *names, weir_npy_array *arrayp, bool *foundp) {
    weir_err err = WEIR_OK;
    for (*foundp = false; *names && !*foundp && !err; names++) {
        err = weir_npz_array(u->npz, *names, arrayp);
        *foundp = !err;
        if (weir_err_is(err, WEIR_ENOTFOUND)) err = WEIR_OK;
    }
    return err;
}

/* --- edges ------------------------------------------------------------------------------------------------------- */

static weir_err unpack_find_ends(unpack *u) {
    static const char *const names[] = {"edge_index", NULL};
    weir_npy_array both;
    bool found;
    weir_err err = unpack_any_of(u, names, &both, &found);
    if (err) return err;
    if (found) {
        if (both.dims != 2 || both.shape[0] != 2) return unpack_wrong(u, "edge_index is not an array of (2, edges)");
        u->src = u->dst = both;
        u->src.count = u->dst.count = both.shape[1];
        u->dst.data = (const uint8_t *)both.data + both.shape[1] * weir_npy_size(both.type);
    } else {
        err = weir_npz_array(u->npz, "src", &u->src);
        if (!err) err = weir_npz_array(u->npz, "dst", &u->dst);
        if (err) return weir_err_prefix(err, "edges are in edge_index, or in src and dst");
        if (u->src.count != u->dst.count) return unpack_wrong(u, "src and dst differ in length");
    }
    u->edges = u->src.count;
    return WEIR_OK;
}

/* The number of nodes: the length of an array of nodes, else one more than the largest end. */
static weir_err unpack_count_nodes(unpack *u) {
    static const char *const names[] = {"node_id", "y", "x", "labels", "label", "node_time", NULL};
    weir_npy_array array;
    bool found;
    int64_t end;
    weir_err err = unpack_any_of(u, names, &array, &found);
    if (!err && found && array.dims == 0) err = unpack_wrong(u, "an array of nodes has no dimension");
    if (!err && found && array.count < array.shape[0]) /* else a few bytes would ask for any number of nodes */
        err = unpack_wrong(u, "an array of nodes has no column");
    if (!err && found) u->nodes = array.shape[0];
    for (uint64_t i = 0; !err && !found && i < 2 * u->edges; i++) {
        err = weir_npy_i64(i % 2 ? &u->dst : &u->src, u->path, i / 2, &end);
        if (!err && (uint64_t)end + 1 > u->nodes && end >= 0) u->nodes = (uint64_t)end + 1;
    }
    return err;
}

/* --- what a member is -------------------------------------------------------------------------------------------- */

static unpack_kind unpack_kind_of(const unpack *u, const char *name, const weir_npy_array *a, const char **restp) {
    size_t length = strlen(name);
    bool mask = strncmp(name, "mask.", 5) == 0 || (length > 5 && strcmp(name + length - 5, "_mask") == 0);
    bool nodes = a->dims > 0 && a->shape[0] == u->nodes, edges = a->dims == 1 && a->shape[0] == u->edges;
    *restp = strchr(name, '.') ? strchr(name, '.') + 1 : name;
    if (strncmp(name, "edge.", 5) == 0) return edges ? MEMBER_EDGE : MEMBER_OTHER;
    if (!nodes) return MEMBER_OTHER;
    if (strncmp(name, "node.", 5) == 0) return a->dims == 1 ? MEMBER_NODE : MEMBER_OTHER;
    if (a->dims == 2 && (strcmp(name, "x") == 0 || strncmp(name, "x.", 2) == 0)) return MEMBER_MATRIX;
    if (a->dims == 1 && mask) return MEMBER_MASK;
    return MEMBER_OTHER;
}

/* Members are kept: a row asks for all of them. */
static weir_err unpack_find_members(unpack *u) {
    static const char *const ids[] = {"node_id", NULL}, *const labels[] = {"y", "labels", "label", NULL};
    static const char *const node_times[] = {"node_time", NULL}, *const edge_times[] = {"edge_time", NULL};
    uint32_t count = weir_npz_count(u->npz);
    bool found;
    u->members = weir_calloc(count + 1, sizeof *u->members);
    weir_err err = u->members ? WEIR_OK : WEIR_NOMEM("while unpacking %s", u->path);
    for (uint32_t i = 0; !err && i < count; i++) {
        unpack_member *m = &u->members[i];
        err = weir_npz_array(u->npz, weir_npz_name(u->npz, i), &m->array);
        if (!err) m->kind = unpack_kind_of(u, weir_npz_name(u->npz, i), &m->array, &m->name);
    }
    if (!err) err = unpack_any_of(u, ids, &u->ids, &found);
    if (!err) err = unpack_any_of(u, node_times, &u->node_times, &found);
    if (!err) err = unpack_any_of(u, edge_times, &u->edge_times, &found);
    if (!err) err = unpack_any_of(u, labels, &u->labels, &found);
    if (err) return err;
    const weir_npy_array *of_nodes[] = {&u->ids, &u->node_times, &u->labels};
    for (size_t i = 0; i < 3; i++) {
        if (of_nodes[i]->count && of_nodes[i]->count != u->nodes)
            return unpack_wrong(u, "node_id, node_time and y differ in length");
    }
    return u->edge_times.count && u->edge_times.count != u->edges
               ? unpack_wrong(u, "edge_time and the edges differ in length")
               : WEIR_OK;
}

/* Values become texts, which sort as such: so all have as many digits as the largest. */
static weir_err unpack_measure_labels(unpack *u) {
    int64_t value, largest = 0;
    weir_err err = WEIR_OK;
    for (uint64_t i = 0; !err && i < u->labels.count; i++) {
        err = weir_npy_i64(&u->labels, u->path, i, &value);
        if (!err && value > largest) largest = value;
    }
    for (u->label_digits = 1; largest >= 10; largest /= 10)
        u->label_digits++;
    return err;
}

/* --- rows -------------------------------------------------------------------------------------------------------- */

static void unpack_put_header(const unpack *u, bool nodes, weir_buf *out) {
    char column[512]; /* a name has at most 255 bytes */
    for (uint32_t i = 0; i < weir_npz_count(u->npz); i++) {
        const unpack_member *m = &u->members[i];
        if ((m->kind == MEMBER_EDGE) == nodes || m->kind == MEMBER_OTHER) continue;
        int length =
            m->kind == MEMBER_MATRIX
                ? snprintf(column, sizeof column, "matrix.%s.%" PRIu64, m->name, m->array.shape[1])
                : snprintf(column, sizeof column, "%s.%s", m->kind == MEMBER_MASK ? "mask" : "number", m->name);
        WEIR_ASSERT(length > 0 && length < (int)sizeof column);
        weir_buf_byte(out, ',');
        weir_csv_put(out, column, (size_t)length);
    }
    weir_buf_byte(out, '\n');
}

static void unpack_put_cells(const unpack *u, bool nodes, uint64_t row, weir_buf *out) {
    for (uint32_t i = 0; i < weir_npz_count(u->npz); i++) {
        const unpack_member *m = &u->members[i];
        if ((m->kind == MEMBER_EDGE) == nodes || m->kind == MEMBER_OTHER) continue;
        weir_buf_byte(out, ',');
        if (m->kind == MEMBER_MASK) {
            weir_buf_byte(out, weir_npy_f64(&m->array, row) != 0 ? '1' : '0');
            continue;
        }
        uint64_t width = m->kind == MEMBER_MATRIX ? m->array.shape[1] : 1;
        WEIR_ASSERT(m->array.count == (nodes ? u->nodes : u->edges) * width);
        for (uint64_t c = 0; c < width; c++) {
            if (c) weir_buf_byte(out, ' ');
            weir_export_number(out, (float)weir_npy_f64(&m->array, row * width + c));
        }
    }
    weir_buf_byte(out, '\n');
}

static weir_err unpack_put_id(const unpack *u, int64_t place, weir_buf *out) {
    int64_t id = place;
    weir_err err = WEIR_OK;
    if (place < 0 || (uint64_t)place >= u->nodes)
        return WEIR_ERR(WEIR_EDATA, "%s: an edge ends at node %lld, and there are %llu", u->path, (long long)place,
                        (unsigned long long)u->nodes);
    if (u->ids.count) err = weir_npy_i64(&u->ids, u->path, (uint64_t)place, &id);
    weir_buf_i64(out, id);
    return err;
}

static weir_err unpack_put_time(const unpack *u, const weir_npy_array *times, uint64_t row, weir_buf *out) {
    int64_t time_us = WEIR_SNAPSHOT_NEVER;
    weir_err err = times->count ? weir_npy_i64(times, u->path, row, &time_us) : WEIR_OK;
    weir_buf_byte(out, ',');
    if (!err) weir_export_seconds(out, time_us);
    return err;
}

static weir_err unpack_put_nodes(const unpack *u, const char *folder) {
    weir_export_file file;
    weir_err err = weir_export_open(folder, "nodes.csv", &file);
    weir_buf_text(&file.text, "id,timestamp,label");
    unpack_put_header(u, true, &file.text);
    for (uint64_t row = 0; !err && row < u->nodes; row++) {
        int64_t label = -1;
        err = unpack_put_id(u, (int64_t)row, &file.text);
        if (!err) err = unpack_put_time(u, &u->node_times, row, &file.text);
        if (!err && u->labels.count) err = weir_npy_i64(&u->labels, u->path, row, &label);
        weir_buf_byte(&file.text, ',');
        if (label >= 0) weir_buf_printf(&file.text, "%0*lld", u->label_digits, (long long)label);
        unpack_put_cells(u, true, row, &file.text);
        if (!err) err = weir_export_flush(&file);
    }
    return weir_export_close(&file, err);
}

static weir_err unpack_put_edges(const unpack *u, const char *folder) {
    weir_export_file file;
    int64_t src, dst;
    weir_err err = weir_export_open(folder, "edges.csv", &file);
    weir_buf_text(&file.text, "src,dst,timestamp");
    unpack_put_header(u, false, &file.text);
    for (uint64_t row = 0; !err && row < u->edges; row++) {
        err = weir_npy_i64(&u->src, u->path, row, &src);
        if (!err) err = unpack_put_id(u, src, &file.text);
        weir_buf_byte(&file.text, ',');
        if (!err) err = weir_npy_i64(&u->dst, u->path, row, &dst);
        if (!err) err = unpack_put_id(u, dst, &file.text);
        if (!err) err = unpack_put_time(u, &u->edge_times, row, &file.text);
        unpack_put_cells(u, false, row, &file.text);
        if (!err) err = weir_export_flush(&file);
    }
    return weir_export_close(&file, err);
}

weir_err weir_import_unpack(const char *npz, const char *folder) {
    unpack u = {.path = npz};
    weir_err err = weir_npz_open(npz, folder, &u.npz);
    if (err) return err;
    err = unpack_find_ends(&u);
    if (!err) err = unpack_count_nodes(&u);
    if (!err) err = unpack_find_members(&u);
    if (!err) err = unpack_measure_labels(&u);
    if (!err) err = unpack_put_nodes(&u, folder);
    if (!err) err = unpack_put_edges(&u, folder);
    weir_free(u.members);
    weir_npz_close(u.npz);
    return err;
}

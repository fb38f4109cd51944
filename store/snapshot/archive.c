/* SPDX-License-Identifier: Apache-2.0 */
/*
 * archive.c - what the arrays of an archive are. Besides the names of export_npz.c it knows those that are common
 * elsewhere: src and dst for edge_index, x for a matrix, NAME_mask for a mask, and labels or label for y.
 */
#include "archive.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>

#define BLOCK 4096u /* ends that are read at a time */

static weir_err archive_wrong(const weir_archive *a, const char *what) {
    return WEIR_ERR(WEIR_EDATA, "%s: %s", a->path, what);
}

/* The first of these names that the archive has; NULL-terminated. */
static weir_err archive_any_of(weir_archive *a, const char *const *names, weir_npy_array *arrayp, bool *foundp) {
    weir_err err = WEIR_OK;
    for (*foundp = false; *names && !*foundp && !err; names++) {
        err = weir_npz_array(a->npz, *names, arrayp);
        *foundp = !err;
        if (weir_err_is(err, WEIR_ENOTFOUND)) err = WEIR_OK;
    }
    return err;
}

/* --- edges ------------------------------------------------------------------------------------------------------- */

static weir_err archive_find_ends(weir_archive *a) {
    static const char *const names[] = {"edge_index", NULL};
    weir_npy_array both;
    bool found;
    weir_err err = archive_any_of(a, names, &both, &found);
    if (err) return err;
    if (found) {
        if (both.dims != 2 || both.shape[0] != 2) return archive_wrong(a, "edge_index is not an array of (2, edges)");
        a->src = a->dst = both;
        a->src.count = a->dst.count = both.shape[1];
        a->dst.data = (const uint8_t *)both.data + both.shape[1] * weir_npy_size(both.type);
    } else {
        err = weir_npz_array(a->npz, "src", &a->src);
        if (!err) err = weir_npz_array(a->npz, "dst", &a->dst);
        if (err) return weir_err_prefix(err, "edges are in edge_index, or in src and dst");
        if (a->src.count != a->dst.count) return archive_wrong(a, "src and dst differ in length");
    }
    a->edges = a->src.count;
    return WEIR_OK;
}

/* The number of nodes: the length of an array of nodes, else one more than the largest end. */
static weir_err archive_count_nodes(weir_archive *a) {
    static const char *const names[] = {"node_id", "y", "x", "labels", "label", "node_time", NULL};
    weir_npy_array array;
    bool found;
    int64_t ends[BLOCK];
    weir_err err = archive_any_of(a, names, &array, &found);
    if (!err && found && array.dims == 0) err = archive_wrong(a, "an array of nodes has no dimension");
    if (!err && found && array.count < array.shape[0]) /* else a few bytes would ask for any number of nodes */
        err = archive_wrong(a, "an array of nodes has no column");
    if (!err && found) a->nodes = array.shape[0];
    for (uint64_t i = 0; !err && !found && i < 2 * a->edges;) {
        const weir_npy_array *of = i < a->edges ? &a->src : &a->dst;
        uint64_t at = i % a->edges, left = a->edges - at, count = left < BLOCK ? left : BLOCK;
        err = weir_npy_i64s(of, a->path, at, count, ends);
        for (uint64_t k = 0; !err && k < count; k++) {
            if (ends[k] >= 0 && (uint64_t)ends[k] + 1 > a->nodes) a->nodes = (uint64_t)ends[k] + 1;
        }
        i += count;
    }
    return err;
}

/* --- what a member is -------------------------------------------------------------------------------------------- */

static weir_archive_kind archive_kind_of(const weir_archive *a, const char *name, const weir_npy_array *array,
                                         const char **restp) {
    size_t length = strlen(name);
    bool mask = strncmp(name, "mask.", 5) == 0 || (length > 5 && strcmp(name + length - 5, "_mask") == 0);
    bool nodes = array->dims > 0 && array->shape[0] == a->nodes,
         edges = array->dims == 1 && array->shape[0] == a->edges;
    *restp = strchr(name, '.') ? strchr(name, '.') + 1 : name;
    if (strncmp(name, "edge.", 5) == 0) return edges ? WEIR_MEMBER_EDGE : WEIR_MEMBER_OTHER;
    if (!nodes) return WEIR_MEMBER_OTHER;
    if (strncmp(name, "node.", 5) == 0) return array->dims == 1 ? WEIR_MEMBER_NODE : WEIR_MEMBER_OTHER;
    if (array->dims == 2 && (strcmp(name, "x") == 0 || strncmp(name, "x.", 2) == 0)) return WEIR_MEMBER_MATRIX;
    if (array->dims == 1 && mask) return WEIR_MEMBER_MASK;
    return WEIR_MEMBER_OTHER;
}

/* Members are kept: a row asks for all of them. */
static weir_err archive_find_members(weir_archive *a) {
    static const char *const ids[] = {"node_id", NULL}, *const labels[] = {"y", "labels", "label", NULL};
    static const char *const node_times[] = {"node_time", NULL}, *const edge_times[] = {"edge_time", NULL};
    uint32_t count = a->member_count = weir_npz_count(a->npz);
    bool found;
    a->members = weir_calloc(count + 1, sizeof *a->members);
    weir_err err = a->members ? WEIR_OK : WEIR_NOMEM("while unpacking %s", a->path);
    for (uint32_t i = 0; !err && i < count; i++) {
        weir_archive_member *m = &a->members[i];
        err = weir_npz_array(a->npz, weir_npz_name(a->npz, i), &m->array);
        if (!err) m->kind = archive_kind_of(a, weir_npz_name(a->npz, i), &m->array, &m->name);
    }
    if (!err) err = archive_any_of(a, ids, &a->ids, &found);
    if (!err) err = archive_any_of(a, node_times, &a->node_times, &found);
    if (!err) err = archive_any_of(a, edge_times, &a->edge_times, &found);
    if (!err) err = archive_any_of(a, labels, &a->labels, &found);
    if (err) return err;
    const weir_npy_array *of_nodes[] = {&a->ids, &a->node_times, &a->labels};
    for (size_t i = 0; i < 3; i++) {
        if (of_nodes[i]->count && of_nodes[i]->count != a->nodes)
            return archive_wrong(a, "node_id, node_time and y differ in length");
    }
    return a->edge_times.count && a->edge_times.count != a->edges
               ? archive_wrong(a, "edge_time and the edges differ in length")
               : WEIR_OK;
}

/* Values become texts, which sort as such: so all have as many digits as the largest. */
static weir_err archive_measure_labels(weir_archive *a) {
    int64_t value, largest = 0;
    weir_err err = WEIR_OK;
    for (uint64_t i = 0; !err && i < a->labels.count; i++) {
        err = weir_npy_i64(&a->labels, a->path, i, &value);
        if (!err && value > largest) largest = value;
    }
    for (a->label_digits = 1; largest >= 10; largest /= 10)
        a->label_digits++;
    return err;
}

weir_err weir_archive_open(const char *path, const char *folder, weir_archive *archivep) {
    *archivep = (weir_archive){.path = path, .origin = path};
    weir_err err = weir_npz_open(path, folder, &archivep->npz);
    if (!err) err = archive_find_ends(archivep);
    if (!err) err = archive_count_nodes(archivep);
    if (!err) err = archive_find_members(archivep);
    if (!err) err = archive_measure_labels(archivep);
    archivep->rows = archivep->nodes + archivep->edges;
    if (err) weir_archive_close(archivep);
    return err;
}

void weir_archive_close(weir_archive *archive) {
    weir_free(archive->members);
    weir_npz_close(archive->npz);
    *archive = (weir_archive){.npz = NULL};
}

void weir_archive_column(const weir_archive_member *m, char column[WEIR_ARCHIVE_COLUMN_MAX]) {
    int length = m->kind == WEIR_MEMBER_MATRIX
                     ? snprintf(column, WEIR_ARCHIVE_COLUMN_MAX, "matrix.%s.%" PRIu64, m->name, m->array.shape[1])
                     : snprintf(column, WEIR_ARCHIVE_COLUMN_MAX, "%s.%s",
                                m->kind == WEIR_MEMBER_MASK ? "mask" : "number", m->name);
    WEIR_ASSERT(length > 0 && length < (int)WEIR_ARCHIVE_COLUMN_MAX);
}

weir_err weir_archive_wrong_end(const weir_archive *a, int64_t end) {
    return WEIR_ERR(WEIR_EDATA, "%s: an edge ends at node %lld, and there are %llu", a->path, (long long)end,
                    (unsigned long long)a->nodes);
}

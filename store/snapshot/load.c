/* SPDX-License-Identifier: Apache-2.0 */
/* load.c - what a sampler reads together is stored together: list begin beside id, neighbour beside time, if it
 * has one, in large pages; and so are matrices, of which a batch reads rows that lie anywhere. */
#include <string.h>

#include <weir/store/base/alloc.h>

#include "snapshot_private.h"

static weir_err load_alloc(size_t bytes, void **memoryp) {
    *memoryp = weir_large_alloc(bytes);
    return *memoryp
               ? WEIR_OK
               : WEIR_NOMEM("while loading a snapshot: %zu bytes; map its files instead, as without --load", bytes);
}

/* left and right side by side; what right lacks is 0. step: numbers from one of right's to the next. */
static weir_err load_pairs(const void *left, uint64_t left_count, const void *right, uint64_t right_count, size_t step,
                           const int64_t **pairsp) {
    void *memory;
    weir_err err = load_alloc((size_t)left_count * 2 * sizeof(int64_t), &memory);
    if (err) return err;
    int64_t *pairs = memory;
    for (uint64_t i = 0; i < left_count; i++) {
        pairs[2 * i] = ((const int64_t *)left)[i];
        pairs[2 * i + 1] = i < right_count ? ((const int64_t *)right)[i * step] : 0;
    }
    *pairsp = pairs;
    return WEIR_OK;
}

static weir_err load_neighbors(const int64_t *neighbors, uint64_t count, const int64_t **loadedp) {
    void *memory;
    weir_err err = load_alloc((size_t)count * sizeof *neighbors, &memory);
    if (err) return err;
    if (count > 0) memcpy(memory, neighbors, (size_t)count * sizeof *neighbors);
    *loadedp = memory;
    return WEIR_OK;
}

/* The type's extras once more, of which each matrix is a copy. */
static weir_err load_matrices(weir_snapshot_vertices *v) {
    weir_snapshot_extra *extras = weir_calloc((size_t)v->extra_count + 1, sizeof *extras);
    if (!extras) return WEIR_NOMEM("while loading a snapshot; map its files instead, as without --load");
    weir_err err = WEIR_OK;
    for (uint32_t i = 0; i < v->extra_count; i++)
        extras[i] = v->extras[i];
    for (uint32_t i = 0; !err && i < v->extra_count; i++) {
        const size_t bytes = (size_t)(v->own * extras[i].columns) * sizeof *extras[i].matrix;
        void *memory;
        if (!extras[i].matrix) continue;
        err = load_alloc(bytes, &memory);
        if (err) break;
        memcpy(memory, extras[i].matrix, bytes);
        extras[i].matrix = extras[i].loaded = memory;
    }
    weir_snapshot_free_lent(v->extras);
    v->extras = extras;
    return err;
}

weir_err weir_snapshot_load(weir_snapshot *s) {
    weir_err err = WEIR_OK;
    for (uint32_t i = 0; !err && i < weir_schema_vertex_count(s->description.schema); i++)
        err = load_matrices(&s->vertices[i]);
    for (uint32_t i = 0; !err && i < 2 * weir_schema_relation_count(s->description.schema); i++) {
        const weir_schema_relation *r = weir_schema_relation_at(s->description.schema, i / 2);
        weir_snapshot_edges *e = &s->edges[i];
        const weir_vertex_pair *ids = s->vertices[i % 2 == WEIR_OUT ? r->from : r->to].ids;
        err = load_pairs(e->indptr, e->vertices + 1, &ids->low, e->vertices, 2, &e->vertex_pairs);
        if (!err && e->has_times) err = load_pairs(e->neighbors, e->edges, e->times, e->edges, 1, &e->edge_pairs);
        if (!err && !e->has_times) err = load_neighbors(e->neighbors, e->edges, &e->edge_pairs);
    }
    weir_snapshot_give_back(s); /* the files that were copied */
    return err;
}

uint64_t weir_snapshot_load_bytes(const weir_snapshot *s) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < weir_schema_vertex_count(s->description.schema); i++) {
        const weir_snapshot_vertices *v = &s->vertices[i];
        for (uint32_t j = 0; j < v->extra_count; j++)
            bytes += v->own * v->extras[j].columns * sizeof *v->extras[j].matrix;
    }
    for (uint32_t i = 0; i < 2 * weir_schema_relation_count(s->description.schema); i++)
        bytes +=
            ((s->edges[i].vertices + 1) * 2 + s->edges[i].edges * (s->edges[i].has_times ? 2 : 1)) * sizeof(int64_t);
    return bytes;
}

void weir_snapshot_unload(weir_snapshot *s) {
    for (uint32_t i = 0; s->vertices && i < weir_schema_vertex_count(s->description.schema); i++)
        for (uint32_t j = 0; s->vertices[i].extras && j < s->vertices[i].extra_count; j++)
            weir_snapshot_free_lent(s->vertices[i].extras[j].loaded);
    for (uint32_t i = 0; s->edges && i < 2 * weir_schema_relation_count(s->description.schema); i++) {
        weir_snapshot_free_lent(s->edges[i].vertex_pairs);
        weir_snapshot_free_lent(s->edges[i].edge_pairs);
    }
}

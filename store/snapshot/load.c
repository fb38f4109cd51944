/* SPDX-License-Identifier: Apache-2.0 */
/* load.c - what a sampler reads together is stored together: list begin beside id, neighbour beside time, in large
 * pages. */
#include <string.h>
#include <sys/mman.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>

#include "snapshot_private.h"

#define LARGE_PAGE_BYTES ((size_t)2 << 20)

/* left and right side by side; what right lacks is 0. step: numbers from one of right's to the next. */
static weir_err load_pairs(const void *left, uint64_t left_count, const void *right, uint64_t right_count, size_t step,
                           const int64_t **pairsp) {
    size_t bytes = (size_t)left_count * 2 * sizeof(int64_t);
    size_t whole = (bytes + LARGE_PAGE_BYTES) / LARGE_PAGE_BYTES * LARGE_PAGE_BYTES;
    int64_t *pairs = weir_aligned_alloc(LARGE_PAGE_BYTES, whole);
    if (!pairs) return WEIR_NOMEM("while loading a snapshot: %zu bytes; open it mapped instead", whole);
    madvise(pairs, whole, MADV_HUGEPAGE); /* advice only: small pages work too, slower */
    for (uint64_t i = 0; i < left_count; i++) {
        pairs[2 * i] = ((const int64_t *)left)[i];
        pairs[2 * i + 1] = i < right_count ? ((const int64_t *)right)[i * step] : 0;
    }
    WEIR_ASSERT(whole > bytes);
    *pairsp = pairs;
    return WEIR_OK;
}

weir_err weir_snapshot_load(weir_snapshot *s) {
    weir_err err = WEIR_OK;
    for (uint32_t i = 0; !err && i < 2 * weir_schema_relation_count(s->description.schema); i++) {
        const weir_schema_relation *r = weir_schema_relation_at(s->description.schema, i / 2);
        weir_snapshot_edges *e = &s->edges[i];
        const weir_vertex_pair *ids = s->vertices[i % 2 == WEIR_OUT ? r->from : r->to].ids;
        err = load_pairs(e->indptr, e->vertices + 1, &ids->low, e->vertices, 2, &e->vertex_pairs);
        if (!err) err = load_pairs(e->neighbors, e->edges, e->times, e->edges, 1, &e->edge_pairs);
    }
    return err;
}

void weir_snapshot_unload(weir_snapshot *s) {
    for (uint32_t i = 0; s->edges && i < 2 * weir_schema_relation_count(s->description.schema); i++) {
        weir_free((void *)(uintptr_t)s->edges[i].vertex_pairs);
        weir_free((void *)(uintptr_t)s->edges[i].edge_pairs);
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
/* thin.c - edges that a training step does not see. */
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/hash.h>

#include "thin.h"

#define THIN_UNIT 0x1p-53 /* of the 53 bits that a double holds */

static bool thin_is_seen(const weir_train_thinning *by, uint32_t step, uint64_t key, uint32_t place) {
    const uint64_t name[4] = {by->seed, by->batch, key, (uint64_t)step << 32 | place};
    return (double)(weir_xxh3(name, sizeof name, 0) >> 11) * THIN_UNIT >= by->rate;
}

void weir_train_thinned_free(weir_train_thinned *t) {
    weir_free(t->offsets);
    weir_free(t->parents);
    weir_free(t->children);
    weir_free(t->times);
    *t = (weir_train_thinned){0};
}

static weir_err thin_grow(weir_train_thinned *t, const weir_block_edges *e) {
    size_t parents = e->parent_end - e->parent_begin + 1u, edges = e->count;
    if (parents <= t->parent_room && edges <= t->room) return WEIR_OK;
    if (parents < t->parent_room) parents = t->parent_room;
    if (edges < t->room) edges = t->room;
    weir_train_thinned_free(t);
    *t = (weir_train_thinned){.offsets = weir_calloc(parents, sizeof *t->offsets),
                              .parents = weir_calloc(edges + 1u, sizeof *t->parents),
                              .children = weir_calloc(edges + 1u, sizeof *t->children),
                              .times = weir_calloc(edges + 1u, sizeof *t->times),
                              .parent_room = parents,
                              .room = edges};
    if (t->offsets && t->parents && t->children && t->times) return WEIR_OK;
    weir_train_thinned_free(t);
    return WEIR_NOMEM("for the edges of a batch; lower --batch or the fan-outs");
}

weir_err weir_train_thin(weir_train_thinned *t, const weir_block_edges *edges, uint32_t step,
                         const weir_train_thinning *by, uint32_t width, weir_real *numbers, weir_block_edges *edgesp) {
    const uint32_t parents = edges->parent_end - edges->parent_begin;
    uint32_t seen = 0;
    *edgesp = *edges;
    if (edges->count == 0) return WEIR_OK;
    weir_err err = thin_grow(t, edges);
    if (err) return err;
    for (uint32_t p = 0; p < parents; p++) {
        t->offsets[p] = seen;
        for (uint32_t e = edges->offsets[p]; e < edges->offsets[p + 1]; e++) {
            WEIR_ASSERT(edges->parents[e] == edges->parent_begin + p);
            if (!thin_is_seen(by, step, by->keys[edges->parents[e]], e - edges->offsets[p])) continue;
            t->parents[seen] = edges->parents[e];
            t->children[seen] = edges->children[e];
            t->times[seen] = edges->times[e];
            if (width) memmove(numbers + (size_t)seen * width, numbers + (size_t)e * width, width * sizeof *numbers);
            seen++;
        }
    }
    t->offsets[parents] = seen;
    *edgesp = (weir_block_edges){.parent_begin = edges->parent_begin,
                                 .parent_end = edges->parent_end,
                                 .count = seen,
                                 .offsets = t->offsets,
                                 .parents = t->parents,
                                 .children = t->children,
                                 .times = t->times,
                                 .alike = edges->alike && seen > 0};
    return WEIR_OK;
}

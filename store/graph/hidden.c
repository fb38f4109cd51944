/* SPDX-License-Identifier: Apache-2.0 */
/* hidden.c - open addressing, doubled when two thirds are used. */
#include "hidden.h"

#include <weir/store/base/assert.h>

#define HIDDEN_MIN 16u /* a power of two */

/* Where this deletion stands in the table, or where it would. */
static struct weir_hidden_edge *hidden_place(weir_hidden *h, weir_vertex neighbor, uint64_t event) {
    uint64_t mixed = (weir_vertex_fold(neighbor) ^ event * 0x9e3779b97f4a7c15ull) * 0xd6e8feb86659fd93ull;
    size_t at = (size_t)(mixed ^ mixed >> 32) & (h->capacity - 1);
    h->steps++;
    while (h->edges[at].used && (h->edges[at].neighbor != neighbor || h->edges[at].event != event)) {
        at = (at + 1) & (h->capacity - 1);
        h->steps++;
    }
    return &h->edges[at];
}

static weir_err hidden_grow(weir_hidden *h, weir_arena *arena) {
    const weir_hidden old = *h;
    h->capacity = old.capacity ? old.capacity * 2 : HIDDEN_MIN;
    h->edges = weir_arena_calloc(arena, h->capacity, sizeof *h->edges);
    if (!h->edges)
        return WEIR_ARENA_ERR(arena, "the read needs more memory than its request may use; ask for fewer neighbours");
    for (size_t i = 0; i < old.capacity; i++) {
        const struct weir_hidden_edge *edge = &old.edges[i];
        if (edge->used) *hidden_place(h, edge->neighbor, edge->event) = *edge;
    }
    return WEIR_OK;
}

weir_err weir_hidden_add(weir_hidden *h, const weir_entry *deletion, bool cold, weir_arena *arena) {
    weir_err err = h->count * 3 >= h->capacity * 2 ? hidden_grow(h, arena) : WEIR_OK;
    if (err) return err;
    WEIR_ASSERT(h->count < h->capacity); /* else a search would not end */
    struct weir_hidden_edge *edge = hidden_place(h, deletion->neighbor, deletion->event);
    if (!edge->used) h->count++;
    *edge = (struct weir_hidden_edge){deletion->neighbor, deletion->event, true, edge->cold || cold};
    h->neighbors = h->neighbors || deletion->event == 0;
    return WEIR_OK;
}

weir_hidden_by weir_hidden_find(weir_hidden *h, const weir_entry *e) {
    if (h->count == 0) return WEIR_HIDDEN_BY_NONE;
    const struct weir_hidden_edge *edge = hidden_place(h, e->neighbor, e->event);
    const struct weir_hidden_edge *all = h->neighbors && !edge->cold ? hidden_place(h, e->neighbor, 0) : edge;
    if (edge->cold || all->cold) return WEIR_HIDDEN_BY_COLD;
    return edge->used || all->used ? WEIR_HIDDEN_BY_DELTAS : WEIR_HIDDEN_BY_NONE;
}

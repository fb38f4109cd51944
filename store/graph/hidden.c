/* SPDX-License-Identifier: Apache-2.0 */
/* hidden.c - a table of them, by neighbour and event. */
#include "hidden.h"

typedef struct hidden_edge {
    uint32_t tag;
    bool cold;      /* the cold store has such a deletion */
    uint64_t event; /* 0: all of the neighbour            */
    weir_vertex neighbor;
} hidden_edge;

static hidden_edge *hidden_find(weir_hidden *h, weir_vertex neighbor, uint64_t event) {
    hidden_edge *edge = weir_table_first(&h->edges, weir_edge_fold(neighbor, event), sizeof *edge);
    h->steps++;
    while (edge && (edge->neighbor != neighbor || edge->event != event))
        edge = weir_table_next(&h->edges, edge, sizeof *edge);
    return edge;
}

weir_err weir_hidden_add(weir_hidden *h, const weir_entry *deletion, bool cold, weir_arena *arena) {
    hidden_edge *edge = hidden_find(h, deletion->neighbor, deletion->event);
    if (!edge) {
        h->edges.arena = arena;
        if (!weir_table_reserve(&h->edges, h->edges.count + 1, sizeof *edge))
            return WEIR_ARENA_ERR(arena,
                                  "the read needs more memory than its request may use; ask for fewer neighbours");
        edge = weir_table_add(&h->edges, weir_edge_fold(deletion->neighbor, deletion->event), sizeof *edge);
        edge->neighbor = deletion->neighbor;
        edge->event = deletion->event;
    }
    edge->cold = edge->cold || cold;
    h->neighbors = h->neighbors || deletion->event == 0;
    return WEIR_OK;
}

weir_hidden_by weir_hidden_find(weir_hidden *h, const weir_entry *e) {
    if (h->edges.count == 0) return WEIR_HIDDEN_BY_NONE;
    const hidden_edge *edge = hidden_find(h, e->neighbor, e->event), *all = NULL;
    if (h->neighbors && !(edge && edge->cold)) all = hidden_find(h, e->neighbor, 0);
    if ((edge && edge->cold) || (all && all->cold)) return WEIR_HIDDEN_BY_COLD;
    return edge || all ? WEIR_HIDDEN_BY_DELTAS : WEIR_HIDDEN_BY_NONE;
}

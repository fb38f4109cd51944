/* SPDX-License-Identifier: Apache-2.0 */
/* choose.c - which of an event's mutations are handed over, and in which order. */
#include <weir/store/base/assert.h>

#include "pipeline_private.h"

/* When a vertex was put must be told, because a deletion may come late; an edge of the event tells it. */
static bool choose_edge_tells(const weir_mapped *event, const weir_mutation *put) {
    for (size_t i = 0; i < event->count; i++) {
        const weir_mutation *m = &event->mutations[i];
        if (m->kind == WEIR_PUT_EDGE && m->vertex == put->vertex) return true;
    }
    return false;
}

/* By vertex, each vertex's own order kept: readers see an event at a vertex whole (GRAPH-S2). Few, so by insertion. */
size_t weir_choose(const weir_mapped *event, weir_claim claim, void *context, weir_chosen *chosen) {
    size_t count = 0;
    WEIR_ASSERT(event->count <= WEIR_MAP_MUTATIONS_MAX);
    for (size_t i = 0; i < event->count; i++) {
        const weir_mutation *m = &event->mutations[i];
        weir_chosen c = {.index = (uint16_t)i};
        if (m->kind == WEIR_PUT_VERTEX) {
            c.named = claim(context, m);
            if (!c.named && m->row_length == 0 && choose_edge_tells(event, m)) continue;
        }
        size_t at = count++;
        for (; at > 0 && event->mutations[chosen[at - 1].index].vertex > m->vertex; at--)
            chosen[at] = chosen[at - 1];
        chosen[at] = c;
    }
    return count;
}

weir_mutation weir_chosen_mutation(const weir_mapped *event, weir_chosen chosen) {
    WEIR_ASSERT(chosen.index < event->count);
    weir_mutation m = event->mutations[chosen.index];
    if (m.kind == WEIR_PUT_VERTEX && !chosen.named) m.key_length = 0;
    return m;
}

weir_mutation weir_event_note_mutation(const weir_worker *worker, uint32_t partition, const weir_mapped *event,
                                       uint64_t offset) {
    return (weir_mutation){
        .kind = WEIR_NOTE_EVENT,
        .vertex = weir_graph_source_vertex(worker->pipeline->graph, worker->graph_source, partition),
        .time_us = (int64_t)offset,
        .offset = offset,
        .event = event->event,
        .content = event->content,
    };
}

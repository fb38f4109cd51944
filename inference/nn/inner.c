/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inner.c - what the network says of a vertex that is no target: the row of the last layer that such a vertex has in a
 * target's tree. Below it lies the same tree, whoever asks; so it is sampled from there on, and then stands in a block
 * of the whole shape in which the hops before it are empty.
 */
#include <string.h>

#include <weir/store/base/assert.h>

#include "nn_private.h"

/* How many steps are of the hops up to this one: they stand first. */
static uint32_t inner_steps_before(const weir_nn_shape *shape, uint32_t hop) {
    uint32_t first = 0;
    while (first < shape->step_count && shape->steps[first].hop <= hop)
        first++;
    return first;
}

uint32_t weir_nn_steps_from(const weir_nn_shape *shape, uint32_t hop, weir_sample_step steps[WEIR_SAMPLE_STEPS_MAX]) {
    uint32_t first = inner_steps_before(shape, hop);
    WEIR_ASSERT(hop < shape->layers && shape->step_count <= WEIR_SAMPLE_STEPS_MAX);
    for (uint32_t s = first; s < shape->step_count; s++) {
        steps[s - first] = shape->steps[s];
        steps[s - first].hop -= hop;
    }
    return shape->step_count - first;
}

weir_err weir_nn_lift(const weir_nn_shape *shape, const weir_block_view *view, uint32_t hop, weir_arena *arena,
                      weir_block_view *liftedp) {
    static const uint32_t no_offsets[1];
    const uint32_t first = inner_steps_before(shape, hop), types = shape->types;
    WEIR_ASSERT(view->hops + hop == shape->layers && view->steps + first == shape->step_count && view->types == types);
    weir_block_range *ranges = weir_arena_calloc(arena, (size_t)(shape->layers + 1) * types, sizeof *ranges);
    uint32_t *hop_end = weir_arena_calloc(arena, shape->layers + 1, sizeof *hop_end);
    weir_block_edges *edges = weir_arena_calloc(arena, shape->step_count, sizeof *edges);
    uint64_t *events = weir_arena_calloc(arena, view->targets, sizeof *events);
    if (!ranges || !hop_end || !edges || !events)
        return WEIR_ARENA_ERR(arena, "an embedding needs more memory than a batch may use");
    memcpy(&ranges[(size_t)hop * types], view->ranges, (size_t)(view->hops + 1) * types * sizeof *ranges);
    memcpy(&hop_end[hop], view->hop_end, (view->hops + 1) * sizeof *hop_end);
    memcpy(&edges[first], view->edges, view->steps * sizeof *edges);
    for (uint32_t s = 0; s < first; s++)
        edges[s].offsets = no_offsets;
    for (uint32_t i = 0; i < view->targets; i++)
        events[i] = WEIR_SAMPLE_NO_TARGET;
    *liftedp = *view;
    liftedp->hops = shape->layers;
    liftedp->steps = shape->step_count;
    liftedp->ranges = ranges;
    liftedp->hop_end = hop_end;
    liftedp->edges = edges;
    liftedp->events = events;
    return WEIR_OK;
}

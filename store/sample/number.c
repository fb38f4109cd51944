/* SPDX-License-Identifier: Apache-2.0 */
/*
 * number.c - the children of a hop become its nodes, each once in its group: a target, or under `shared` those of one
 * time.
 *
 * Edges stand by parent, parents by group: so one group's children are met together, and the table that finds those
 * which were met before is as small as that group's edges allow, whatever the next one's do. It is emptied by counting
 * the epoch up, once for each group: too often for a weir_table, which would have to be cleared.
 */
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>

#include "sampler_private.h"

#define GOLDEN    0x9E3779B97F4A7C15ull
#define AHEAD     28u /* edges between the prefetch of a place and its use */
#define NEAR_BITS 11u

/* The loops below are there once for vertices of 64 bits and once for those of 128: `wide` is a constant in each, and
 * so is `per_time` where vertices have 64 bits. */
#define TWICE static inline __attribute__((always_inline))

typedef struct numbering {
    weir_sampler *sampler;
    weir_block *block;
    void *slots;
    uint32_t shift; /* 64 less the bits of the table in use */
    uint32_t mask;
    uint32_t epoch;
    bool ahead; /* the table is too large for the first cache: ask for places ahead */
} numbering;

static inline uint64_t number_place(const numbering *n, uint64_t folded) {
    return folded * GOLDEN >> n->shift;
}

TWICE uint64_t number_fold(weir_vertex vertex, bool wide) {
    return wide ? weir_vertex_fold(vertex) : (uint64_t)vertex;
}

TWICE weir_sample_wide_slot number_slot_at(const numbering *n, uint64_t at, bool wide) {
    if (wide) return ((const weir_sample_wide_slot *)n->slots)[at];
    const weir_sample_slot *slot = &((const weir_sample_slot *)n->slots)[at];
    return (weir_sample_wide_slot){slot->vertex, slot->epoch, slot->node};
}

TWICE void number_slot_put(const numbering *n, uint64_t at, weir_vertex vertex, uint32_t node, bool wide) {
    if (wide) {
        ((weir_sample_wide_slot *)n->slots)[at] = (weir_sample_wide_slot){vertex, n->epoch, node};
    } else {
        ((weir_sample_slot *)n->slots)[at] = (weir_sample_slot){(uint64_t)vertex, n->epoch, node};
    }
}

/* Asks for the place of what stands so many vertices ahead. */
TWICE void number_slot_ahead(const numbering *n, const void *vertices, size_t index, bool wide) {
    uint64_t at = number_place(n, number_fold(weir_sample_vertex_at(vertices, index, wide), wide));
    size_t bytes = wide ? sizeof(weir_sample_wide_slot) : sizeof(weir_sample_slot);
    __builtin_prefetch((const uint8_t *)n->slots + at * bytes, 1);
}

/* Most of a table for the worst of trees is never used, and no memory is taken for that. */
static void number_slots_ready(weir_sampler *s, uint64_t slots) {
    const size_t bytes = weir_sample_slot_bytes(s->source);
    if (slots <= s->slots_used) return;
    memset((uint8_t *)s->slots + bytes * s->slots_used, 0, bytes * (slots - s->slots_used));
    weir_sparse_settle(s->slots, bytes * s->slots_used, bytes * slots);
    s->slots_used = slots;
}

/* A table for count vertices out of the sampler's, empty. */
static void number_table_use(numbering *n, uint64_t count) {
    uint32_t bits = 4;
    while ((uint64_t)1 << bits < count * 2 && bits < n->sampler->slot_bits)
        bits++;
    n->slots = n->sampler->slots;
    n->shift = 64 - bits;
    n->mask = (uint32_t)(((uint64_t)1 << bits) - 1);
    n->ahead = bits > NEAR_BITS;
    number_slots_ready(n->sampler, (uint64_t)n->mask + 1);
}

static void number_table_clear(numbering *n) {
    weir_sampler *s = n->sampler;
    if (s->epoch == UINT32_MAX) {
        memset(s->slots, 0, weir_sample_slot_bytes(s->source) * s->slots_used);
        s->epoch = 0;
    }
    n->epoch = ++s->epoch;
}

TWICE uint32_t number_node_of(numbering *n, weir_vertex vertex, uint32_t group, bool wide) {
    weir_block *block = n->block;
    uint64_t at = number_place(n, number_fold(vertex, wide));
    for (weir_sample_wide_slot slot; (slot = number_slot_at(n, at, wide)).epoch == n->epoch; at = (at + 1) & n->mask) {
        if (slot.vertex == vertex) return slot.node;
    }
    uint32_t node = block->view.nodes++;
    number_slot_put(n, at, vertex, node, wide);
    weir_sample_vertex_put(block->vertices, node, vertex, wide);
    block->groups[node] = group;
    return node;
}

/* --- the steps that lead to one type ------------------------------------------------------------------------------ */

/* Where one step has come to. */
typedef struct number_lane {
    const weir_block_columns *columns;
    const uint32_t *offsets; /* by node */
    uint32_t parent, end;    /* nodes   */
    uint32_t stop;           /* of those, where the group at hand ends */
    uint32_t edges;
} number_lane;

typedef struct number_lanes {
    number_lane of[WEIR_SAMPLE_STEPS_MAX];
    uint32_t count;
} number_lanes;

static void number_lanes_open(const numbering *n, uint32_t hop, uint32_t type, number_lanes *l) {
    const weir_sampler *s = n->sampler;
    for (uint32_t step = 0; step < s->opts.step_count; step++) {
        if (s->steps[step].hop != hop || s->plan.child_type[step] != type) continue;
        const weir_block_edges *edges = &n->block->edges[step];
        WEIR_ASSERT(edges->parent_begin <= edges->parent_end && edges->count <= s->plan.edges_max[step]);
        l->of[l->count++] = (number_lane){
            .columns = &n->block->columns[step],
            .offsets = edges->offsets - edges->parent_begin,
            .parent = edges->parent_begin,
            .end = edges->parent_end,
            .edges = edges->count,
        };
    }
}

/* How many edges the lane has of this group, and where that ends. */
static uint64_t number_lane_find(const numbering *n, number_lane *l, uint32_t group) {
    const uint32_t *groups = n->block->groups;
    l->stop = l->parent;
    while (l->stop < l->end && groups[l->stop] == group)
        l->stop++;
    WEIR_ASSERT(l->stop == l->end || groups[l->stop] > group); /* they rise */
    return l->offsets[l->stop] - l->offsets[l->parent];
}

/* Numbers what the lane has of this group. */
TWICE void number_lane_run(numbering *n, number_lane *l, uint32_t group, bool wide) {
    const void *neighbors = l->columns->neighbors;
    uint32_t *children = l->columns->children;
    for (uint32_t e = l->offsets[l->parent], end = l->offsets[l->stop]; e < end; e++) {
        if (n->ahead && e + AHEAD < l->edges) number_slot_ahead(n, neighbors, e + AHEAD, wide);
        children[e] = number_node_of(n, weir_sample_vertex_at(neighbors, e, wide), group, wide);
    }
    l->parent = l->stop;
}

/* Group after group: the lowest that any lane has next. */
TWICE void number_run_groups(numbering *n, number_lanes *l, bool wide) {
    const uint32_t none = UINT32_MAX;
    for (;;) {
        uint32_t group = none;
        uint64_t edges = 0;
        for (uint32_t i = 0; i < l->count; i++) {
            const number_lane *one = &l->of[i];
            if (one->parent < one->end && n->block->groups[one->parent] < group) group = n->block->groups[one->parent];
        }
        if (group == none) return;
        for (uint32_t i = 0; i < l->count; i++)
            edges += number_lane_find(n, &l->of[i], group);
        number_table_use(n, edges);
        number_table_clear(n);
        for (uint32_t i = 0; i < l->count; i++)
            number_lane_run(n, &l->of[i], group, wide);
    }
}

void weir_sample_number(weir_sampler *sampler, weir_block *block, uint32_t hop, uint32_t type) {
    numbering n = {.sampler = sampler, .block = block};
    number_lanes l = {.count = 0};
    uint32_t begin = block->view.nodes;
    number_lanes_open(&n, hop, type, &l);
    if (sampler->source->wide) {
        number_run_groups(&n, &l, true);
    } else {
        number_run_groups(&n, &l, false);
    }
    WEIR_ASSERT(block->view.nodes <= sampler->plan.nodes_max); /* SAMPLE-P4 */
    WEIR_ASSERT(hop <= sampler->plan.hops && type < sampler->plan.types);
    block->ranges[hop * sampler->plan.types + type] = (weir_block_range){begin, block->view.nodes};
}

/* --- the rows of layer 0 ------------------------------------------------------------------------------------------ */

/* Whether two nodes of one vertex are the same as targets: neither is one, or both came with one event. */
static bool number_same_target(const weir_block *block, uint32_t a, uint32_t b) {
    const uint64_t none = WEIR_SAMPLE_NO_TARGET;
    return (a < block->view.targets ? block->events[a] : none) == (b < block->view.targets ? block->events[b] : none);
}

TWICE uint32_t number_row_of(numbering *n, uint32_t node, bool per_time, bool wide) {
    weir_block *block = n->block;
    const int64_t *before_us = block->before_us;
    const uint32_t *groups = block->groups;
    weir_vertex vertex = weir_sample_vertex_at(block->vertices, node, wide);
    uint64_t at = number_place(n, number_fold(vertex, wide) + (per_time ? (uint64_t)before_us[groups[node]] : 0));
    for (weir_sample_wide_slot slot; (slot = number_slot_at(n, at, wide)).epoch == n->epoch; at = (at + 1) & n->mask) {
        const uint32_t row = slot.node;
        if (slot.vertex != vertex) continue;
        if (!per_time) return row;
        const uint32_t other = block->input_nodes[row];
        if (before_us[groups[other]] == before_us[groups[node]] &&
            (!n->sampler->opts.own_rows || number_same_target(block, other, node)))
            return row;
    }
    uint32_t row = block->view.inputs++;
    number_slot_put(n, at, vertex, row, wide);
    block->input_nodes[row] = node;
    return row;
}

TWICE void number_rows_of_range(numbering *n, weir_block_range range, bool per_time, bool wide) {
    for (uint32_t node = range.begin; node < range.end; node++) {
        if (n->ahead && !per_time && node + AHEAD < range.end)
            number_slot_ahead(n, n->block->vertices, node + AHEAD, wide);
        n->block->input_of[node] = number_row_of(n, node, per_time, wide);
    }
}

void weir_block_inputs(weir_sampler *sampler, weir_block *block, bool per_time) {
    numbering n = {.sampler = sampler, .block = block};
    const weir_sample_plan *plan = &sampler->plan;
    WEIR_ASSERT(block->plan == plan);
    block->view.inputs = 0;
    for (uint32_t type = 0; type < plan->types; type++) {
        uint64_t nodes = 0;
        uint32_t begin = block->view.inputs;
        for (uint32_t hop = 0; hop <= plan->hops; hop++)
            nodes += block->ranges[hop * plan->types + type].end - block->ranges[hop * plan->types + type].begin;
        number_table_use(&n, nodes);
        number_table_clear(&n);
        for (uint32_t hop = 0; hop <= plan->hops; hop++) {
            weir_block_range range = block->ranges[hop * plan->types + type];
            if (sampler->source->wide) {
                number_rows_of_range(&n, range, per_time, true);
            } else if (per_time) {
                number_rows_of_range(&n, range, true, false);
            } else {
                number_rows_of_range(&n, range, false, false);
            }
        }
        WEIR_ASSERT(block->view.inputs <= block->view.nodes);
        block->input_ranges[type] = (weir_block_range){begin, block->view.inputs};
    }
    weir_sample_block_settle(sampler, block);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * number.c - the children of a hop become its nodes, each once below its target.
 *
 * Edges stand by parent, parents by target: so one target's children are met together, and the table that finds those
 * which were met before is as small as one target's share. It is emptied by counting the epoch up.
 */
#include <string.h>

#include <weir/base/assert.h>

#include "sampler_private.h"

#define GOLDEN    0x9E3779B97F4A7C15ull
#define AHEAD     12u /* edges between the prefetch of a place and its use */
#define NEAR_BITS 11u

typedef struct numbering {
    weir_sampler *sampler;
    weir_block *block;
    weir_sample_slot *slots;
    uint32_t shift; /* 64 less the bits of the table in use */
    uint32_t mask;
    uint32_t epoch;
    bool ahead; /* the table is too large for the first cache: ask for places ahead */
} numbering;

static uint64_t place_of(const numbering *n, weir_vertex vertex) {
    return vertex * GOLDEN >> n->shift;
}

/* A table for count vertices out of the sampler's, empty. */
static void table_use(numbering *n, uint64_t count) {
    uint32_t bits = 4;
    while ((uint64_t)1 << bits < count * 2 && bits < n->sampler->slot_bits)
        bits++;
    n->slots = n->sampler->slots;
    n->shift = 64 - bits;
    n->mask = (uint32_t)(((uint64_t)1 << bits) - 1);
    n->ahead = bits > NEAR_BITS;
}

static void table_clear(numbering *n) {
    weir_sampler *s = n->sampler;
    if (s->epoch == UINT32_MAX) {
        memset(s->slots, 0, sizeof *s->slots << s->slot_bits);
        s->epoch = 0;
    }
    n->epoch = ++s->epoch;
}

static uint32_t node_of(numbering *n, weir_vertex vertex, uint32_t group) {
    weir_block *block = n->block;
    uint64_t at = place_of(n, vertex);
    for (; n->slots[at].epoch == n->epoch; at = (at + 1) & n->mask) {
        if (n->slots[at].vertex == vertex) return n->slots[at].node;
    }
    uint32_t node = block->view.nodes++;
    n->slots[at] = (weir_sample_slot){vertex, n->epoch, node};
    block->vertices[node] = vertex;
    block->groups[node] = group;
    return node;
}

/* --- the steps that lead to one type ------------------------------------------------------------------------------ */

/* Where one step has come to. */
typedef struct lane {
    const weir_block_columns *columns;
    const uint32_t *offsets; /* by node */
    uint32_t parent, end;    /* nodes   */
    uint32_t edges;
} lane;

typedef struct lanes {
    lane of[WEIR_SAMPLE_STEPS_MAX];
    uint32_t count;
    uint64_t edges;
} lanes;

static void lanes_open(const numbering *n, uint32_t hop, uint32_t type, lanes *l) {
    const weir_sampler *s = n->sampler;
    for (uint32_t step = 0; step < s->opts.step_count; step++) {
        if (s->steps[step].hop != hop || s->plan.child_type[step] != type) continue;
        const weir_block_edges *edges = &n->block->edges[step];
        l->of[l->count++] = (lane){
            .columns = &n->block->columns[step],
            .offsets = edges->offsets - edges->parent_begin,
            .parent = edges->parent_begin,
            .end = edges->parent_end,
            .edges = edges->count,
        };
        l->edges += edges->count;
    }
}

/* Numbers what the lane has of this group. */
static void lane_run(numbering *n, lane *l, uint32_t group) {
    const weir_vertex *neighbors = l->columns->neighbors;
    const uint32_t *groups = n->block->groups;
    uint32_t *children = l->columns->children, first = l->parent;
    while (l->parent < l->end && groups[l->parent] == group)
        l->parent++;
    for (uint32_t e = l->offsets[first], end = l->offsets[l->parent]; e < end; e++) {
        if (n->ahead && e + AHEAD < l->edges) __builtin_prefetch(&n->slots[place_of(n, neighbors[e + AHEAD])], 1);
        children[e] = node_of(n, neighbors[e], group);
    }
}

#define NO_GROUP UINT32_MAX

/* The lowest group that any lane has next. */
static uint32_t next_group(const numbering *n, const lanes *l) {
    uint32_t lowest = NO_GROUP;
    for (uint32_t i = 0; i < l->count; i++) {
        const lane *one = &l->of[i];
        if (one->parent == one->end) continue;
        uint32_t group = n->block->groups[one->parent];
        if (group < lowest) lowest = group;
    }
    return lowest;
}

/* How many children one target can have at this hop, over all lanes. */
static uint64_t group_max(const weir_sampler *s, const lanes *l, uint32_t hop, uint32_t type) {
    uint64_t edges = 0;
    for (uint32_t step = 0; step < s->opts.step_count; step++) {
        if (s->steps[step].hop == hop && s->plan.child_type[step] == type) edges += s->plan.edges_max[step];
    }
    uint64_t share = s->opts.shared ? edges : edges / s->opts.targets_max;
    return share < l->edges ? share : l->edges;
}

void weir_sample_number(weir_sampler *sampler, weir_block *block, uint32_t hop, uint32_t type) {
    numbering n = {.sampler = sampler, .block = block};
    lanes l = {.count = 0};
    uint32_t begin = block->view.nodes;
    lanes_open(&n, hop, type, &l);
    table_use(&n, group_max(sampler, &l, hop, type));
    for (uint32_t group; (group = next_group(&n, &l)) != NO_GROUP;) {
        table_clear(&n);
        for (uint32_t i = 0; i < l.count; i++)
            lane_run(&n, &l.of[i], group);
    }
    WEIR_ASSERT(block->view.nodes <= sampler->plan.nodes_max); /* P4 */
    block->ranges[hop * sampler->plan.types + type] = (weir_block_range){begin, block->view.nodes};
}

/* --- the rows of layer 0 ------------------------------------------------------------------------------------------ */

static uint32_t row_of(numbering *n, uint32_t node, bool per_time) {
    weir_block *block = n->block;
    const int64_t *before_us = block->before_us;
    const uint32_t *groups = block->groups;
    weir_vertex vertex = block->vertices[node];
    uint64_t at = place_of(n, per_time ? vertex + (uint64_t)before_us[groups[node]] : vertex);
    for (; n->slots[at].epoch == n->epoch; at = (at + 1) & n->mask) {
        uint32_t row = n->slots[at].node, other = block->input_nodes[row];
        if (n->slots[at].vertex != vertex) continue;
        if (!per_time || before_us[groups[other]] == before_us[groups[node]]) return row;
    }
    uint32_t row = block->view.inputs++;
    n->slots[at] = (weir_sample_slot){vertex, n->epoch, row};
    block->input_nodes[row] = node;
    return row;
}

static void rows_of_range(numbering *n, weir_block_range range, bool per_time) {
    const weir_vertex *vertices = n->block->vertices;
    for (uint32_t node = range.begin; node < range.end; node++) {
        if (n->ahead && !per_time && node + AHEAD < range.end) {
            __builtin_prefetch(&n->slots[place_of(n, vertices[node + AHEAD])], 1);
        }
        n->block->input_of[node] = row_of(n, node, per_time);
    }
}

void weir_block_inputs(weir_sampler *sampler, weir_block *block, bool per_time) {
    numbering n = {.sampler = sampler, .block = block};
    const weir_sample_plan *plan = &sampler->plan;
    block->view.inputs = 0;
    for (uint32_t type = 0; type < plan->types; type++) {
        uint64_t nodes = 0;
        uint32_t begin = block->view.inputs;
        for (uint32_t hop = 0; hop <= plan->hops; hop++)
            nodes += block->ranges[hop * plan->types + type].end - block->ranges[hop * plan->types + type].begin;
        table_use(&n, nodes);
        table_clear(&n);
        for (uint32_t hop = 0; hop <= plan->hops; hop++)
            rows_of_range(&n, block->ranges[hop * plan->types + type], per_time);
        block->input_ranges[type] = (weir_block_range){begin, block->view.inputs};
    }
}

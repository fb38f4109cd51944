/* SPDX-License-Identifier: Apache-2.0 */
/*
 * number.c - the children of a hop become its nodes, each once in its group: a target, or under `shared` those of one
 * time.
 *
 * Edges stand by parent, parents by group: so one group's children are met together, and the table that finds those
 * which were met before is as small as that group's edges allow, whatever the next one's do. It is emptied by counting
 * the epoch up, once for each group: too often for a weir_table, which would have to be cleared.
 *
 * Where one group is all there is, a vertex has one row whatever the hop: the table keeps the nodes of earlier hops,
 * and tells the row of a vertex that was met there. So rows cost no pass of their own.
 */
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>

#include "sampler_private.h"

#define GOLDEN     0x9E3779B97F4A7C15ull
#define AHEAD      28u /* edges between the prefetch of a slot and its use                           */
#define NODE_AHEAD 10u /* between that of the slot's node and its use: the slot has arrived by then */
#define NEAR_BITS  11u

_Static_assert(NODE_AHEAD < AHEAD, "an edge AHEAD exists only if one NODE_AHEAD does");

/* The loops below are there for vertices of 64 bits and for those of 128: `wide` is a constant in each, and so are
 * `alone` (there is one group) and, where vertices have 64 bits, `per_time`. */
#define VARIANT static inline __attribute__((always_inline))

typedef struct numbering {
    weir_sampler *sampler;
    weir_block *block;
    weir_sample_slot *slots;
    uint32_t shift; /* 64 less the bits of the table in use */
    uint32_t mask;
    uint32_t epoch;
    uint32_t begin; /* of the hop's nodes of the type */
    uint32_t rows;  /* of the type so far, where there is one group */
    bool ahead;     /* the table is too large for the first cache: ask for places ahead */
} numbering;

VARIANT uint64_t number_hash(weir_vertex vertex, bool wide) {
    return (wide ? weir_vertex_fold(vertex) : (uint64_t)vertex) * GOLDEN;
}

static inline uint32_t number_stamp(const numbering *n, uint64_t hash) {
    const uint32_t tag = (uint32_t)(hash >> (n->shift - WEIR_SAMPLE_TAG_BITS)) & ((1u << WEIR_SAMPLE_TAG_BITS) - 1);
    return n->epoch << WEIR_SAMPLE_TAG_BITS | tag;
}

static inline bool number_taken(const numbering *n, uint64_t at) {
    return n->slots[at].stamp >> WEIR_SAMPLE_TAG_BITS == n->epoch;
}

/* The place of a node of this vertex, or the one that is free for it. */
VARIANT uint64_t number_find(const numbering *n, weir_vertex vertex, uint64_t hash, bool wide) {
    const uint32_t stamp = number_stamp(n, hash);
    const void *const vertices = n->block->vertices;
    uint64_t at = hash >> n->shift;
    while (number_taken(n, at) &&
           (n->slots[at].stamp != stamp || weir_sample_vertex_at(vertices, n->slots[at].node, wide) != vertex))
        at = (at + 1) & n->mask;
    return at;
}

/* Asks for the place of what stands so many vertices ahead. */
VARIANT void number_slot_ahead(const numbering *n, const void *vertices, size_t index, bool wide) {
    __builtin_prefetch(&n->slots[number_hash(weir_sample_vertex_at(vertices, index, wide), wide) >> n->shift], 1);
}

/* Prefetches the vertex of the slot's node. What an earlier epoch has left there is below plan.nodes_max, too, so the
 * address is inside the array. */
VARIANT void number_node_ahead(const numbering *n, const void *vertices, size_t index, bool wide) {
    const uint64_t at = number_hash(weir_sample_vertex_at(vertices, index, wide), wide) >> n->shift;
    const size_t bytes = wide ? sizeof(weir_vertex) : sizeof(uint64_t);
    __builtin_prefetch((const char *)n->block->vertices + n->slots[at].node * bytes);
}

/* Most of a table for the worst of trees is never used, and no memory is taken for that. */
static void number_slots_ready(weir_sampler *s, uint64_t slots) {
    if (slots <= s->slots_used) return;
    memset(s->slots + s->slots_used, 0, (slots - s->slots_used) * sizeof *s->slots);
    weir_sparse_settle(s->slots, s->slots_used * sizeof *s->slots, slots * sizeof *s->slots);
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
    if (s->epoch == UINT32_MAX >> WEIR_SAMPLE_TAG_BITS) {
        memset(s->slots, 0, s->slots_used * sizeof *s->slots);
        s->epoch = 0;
    }
    n->epoch = ++s->epoch;
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

/* Numbers what the lane has of this group. What does not change is in names of its own: the compiler sees stores
 * between that might change the rest. */
VARIANT void number_lane_run(numbering *whole, number_lane *l, uint32_t group, bool alone, bool wide) {
    const numbering n = *whole;
    const void *const neighbors = l->columns->neighbors;
    uint32_t *const children = l->columns->children, *const groups = n.block->groups;
    uint32_t *const input_of = n.block->input_of;
    void *const vertices = n.block->vertices;
    const uint32_t end = l->offsets[l->stop], edges = n.ahead ? l->edges : 0;
    uint32_t nodes = n.block->view.nodes, rows = n.rows;
    for (uint32_t e = l->offsets[l->parent]; e < end; e++) {
        if (e + AHEAD < edges) {
            number_slot_ahead(&n, neighbors, e + AHEAD, wide);
            number_node_ahead(&n, neighbors, e + NODE_AHEAD, wide);
        }
        const weir_vertex vertex = weir_sample_vertex_at(neighbors, e, wide);
        const uint64_t hash = number_hash(vertex, wide), at = number_find(&n, vertex, hash, wide);
        const bool met = number_taken(&n, at);
        const uint32_t last = n.slots[at].node;
        if (met && (!alone || last >= n.begin)) {
            children[e] = last;
            continue;
        }
        if (alone) input_of[nodes] = met ? input_of[last] : rows++;
        weir_sample_vertex_put(vertices, nodes, vertex, wide);
        groups[nodes] = group;
        n.slots[at] = (weir_sample_slot){number_stamp(&n, hash), nodes};
        children[e] = nodes++;
    }
    n.block->view.nodes = nodes;
    whole->rows = rows;
    l->parent = l->stop;
}

/* The nodes of earlier hops of the type, and the row that each has: the first of its vertex says which. */
VARIANT void number_met_before(numbering *n, uint32_t hop, uint32_t type, bool wide) {
    const weir_block *block = n->block;
    for (uint32_t earlier = 0; earlier < hop; earlier++) {
        const weir_block_range range = block->ranges[earlier * n->sampler->plan.types + type];
        for (uint32_t node = range.begin; node < range.end; node++) {
            if (n->ahead && node + AHEAD < range.end) number_slot_ahead(n, block->vertices, node + AHEAD, wide);
            const weir_vertex vertex = weir_sample_vertex_at(block->vertices, node, wide);
            const uint64_t hash = number_hash(vertex, wide), at = number_find(n, vertex, hash, wide);
            block->input_of[node] = number_taken(n, at) ? block->input_of[n->slots[at].node] : n->rows++;
            n->slots[at] = (weir_sample_slot){number_stamp(n, hash), node};
        }
    }
}

/* All edges at once: there is one group. */
VARIANT void number_run_alone(numbering *n, number_lanes *l, uint32_t hop, uint32_t type, bool wide) {
    uint64_t count = 0;
    for (uint32_t i = 0; i < l->count; i++)
        count += l->of[i].edges;
    for (uint32_t earlier = 0; earlier < hop; earlier++) {
        const weir_block_range range = n->block->ranges[earlier * n->sampler->plan.types + type];
        count += range.end - range.begin;
    }
    number_table_use(n, count);
    number_table_clear(n);
    number_met_before(n, hop, type, wide);
    for (uint32_t i = 0; i < l->count; i++) {
        l->of[i].stop = l->of[i].end;
        number_lane_run(n, &l->of[i], 0, true, wide);
    }
}

/* Group after group: the lowest that any lane has next. */
VARIANT void number_run_groups(numbering *n, number_lanes *l, bool wide) {
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
            number_lane_run(n, &l->of[i], group, false, wide);
    }
}

void weir_sample_number(weir_sampler *sampler, weir_block *block, uint32_t hop, uint32_t type) {
    const uint32_t begin = block->view.nodes;
    WEIR_ASSERT(hop <= sampler->plan.hops && type < sampler->plan.types);
    numbering n = {.sampler = sampler, .block = block, .begin = begin};
    number_lanes l = {.count = 0};
    number_lanes_open(&n, hop, type, &l);
    block->ranges[hop * sampler->plan.types + type] = (weir_block_range){begin, begin};
    if (l.count == 0 && (hop < sampler->plan.hops || !block->alone))
        return; /* the last hop has the rows of all types */
    if (block->alone && sampler->source->wide) {
        number_run_alone(&n, &l, hop, type, true);
    } else if (block->alone) {
        number_run_alone(&n, &l, hop, type, false);
    } else if (sampler->source->wide) {
        number_run_groups(&n, &l, true);
    } else {
        number_run_groups(&n, &l, false);
    }
    WEIR_ASSERT(block->view.nodes <= sampler->plan.nodes_max); /* SAMPLE-P4 */
    block->ranges[hop * sampler->plan.types + type].end = block->view.nodes;
}

/* --- the rows of layer 0 ------------------------------------------------------------------------------------------ */

/* Whether two nodes of one vertex are the same as targets: neither is one, or both came with one event. */
static bool number_same_target(const weir_block *block, uint32_t a, uint32_t b) {
    const uint64_t none = WEIR_SAMPLE_NO_TARGET;
    return (a < block->view.targets ? block->events[a] : none) == (b < block->view.targets ? block->events[b] : none);
}

VARIANT uint32_t number_row_of(numbering *n, uint32_t node, bool per_time, bool wide) {
    weir_block *block = n->block;
    const int64_t *before_us = block->before_us;
    const uint32_t *groups = block->groups;
    const weir_vertex vertex = weir_sample_vertex_at(block->vertices, node, wide);
    const uint64_t since = per_time ? (uint64_t)before_us[groups[node]] * GOLDEN : 0;
    const uint64_t hash = number_hash(vertex, wide) + since;
    const uint32_t stamp = number_stamp(n, hash);
    uint64_t at = hash >> n->shift;
    for (; number_taken(n, at); at = (at + 1) & n->mask) {
        const uint32_t other = n->slots[at].node;
        if (n->slots[at].stamp != stamp || weir_sample_vertex_at(block->vertices, other, wide) != vertex) continue;
        if (!per_time || (before_us[groups[other]] == before_us[groups[node]] &&
                          (!n->sampler->opts.own_rows || number_same_target(block, other, node))))
            return block->input_of[other];
    }
    n->slots[at] = (weir_sample_slot){stamp, node};
    block->input_nodes[block->view.inputs] = node;
    return block->view.inputs++;
}

VARIANT void number_rows_of_range(numbering *n, weir_block_range range, bool per_time, bool wide) {
    for (uint32_t node = range.begin; node < range.end; node++) {
        if (n->ahead && !per_time && node + AHEAD < range.end)
            number_slot_ahead(n, n->block->vertices, node + AHEAD, wide);
        n->block->input_of[node] = number_row_of(n, node, per_time, wide);
    }
}

/* Numbered within their types already: they begin where those of the type before end. */
static void number_rows_alone(const weir_sampler *s, weir_block *block) {
    uint32_t begin = 0;
    for (uint32_t type = 0; type < s->plan.types; type++) {
        uint32_t next = begin;
        for (uint32_t hop = 0; hop <= s->plan.hops; hop++) {
            const weir_block_range range = block->ranges[hop * s->plan.types + type];
            for (uint32_t node = range.begin; node < range.end; node++) {
                const uint32_t row = block->input_of[node] += begin;
                block->input_nodes[next] = node; /* counts where the row is new */
                next += row == next;
            }
        }
        block->input_ranges[type] = (weir_block_range){begin, next};
        begin = next;
    }
    block->view.inputs = begin;
    block->alone = false; /* and are no longer within their types */
}

void weir_block_inputs(weir_sampler *sampler, weir_block *block, bool per_time) {
    numbering n = {.sampler = sampler, .block = block};
    const weir_sample_plan *plan = &sampler->plan;
    WEIR_ASSERT(block->plan == plan);
    if (block->alone) {
        number_rows_alone(sampler, block);
        weir_sample_block_settle(sampler, block);
        return;
    }
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

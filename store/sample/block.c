/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block.c - a block is one allocation, laid out by one walk that is done twice: once to count, once to point
 * (SAMPLE-P4).
 *
 * Only what is written is touched: a worst case that is rarely reached costs addresses, not memory.
 */
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>

#include "sampler_private.h"

#define ALIGNMENT 64u

/* Columns that may be large begin at a large page: weir_sample_block_settle. */
typedef struct sample_block_layout {
    uint8_t *base; /* NULL: only counts */
    uint64_t used;
    bool answers; /* it has room for one step at a time: the columns of all begin at one place */
} sample_block_layout;

static void *sample_block_take(sample_block_layout *l, uint64_t count, size_t size) {
    const uint64_t alignment = count * size < WEIR_LARGE_PAGE ? ALIGNMENT : WEIR_LARGE_PAGE;
    const uint64_t at = (l->used + alignment - 1) / alignment * alignment;
    WEIR_ASSERT(l->used % ALIGNMENT == 0);
    l->used = (at + count * size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    return l->base ? l->base + at : NULL;
}

/* Returns the block, or NULL when it only counts. */
static weir_block *sample_block_lay(sample_block_layout *l, const weir_sampler *sampler) {
    const weir_sample_plan *plan = &sampler->plan;
    uint64_t targets = sampler->opts.targets_max, ranges = (uint64_t)(plan->hops + 1) * plan->types;
    weir_block *block = sample_block_take(l, 1, sizeof *block), counted = {0};
    weir_block *b = block ? block : &counted;
    b->edges = sample_block_take(l, sampler->opts.step_count, sizeof *b->edges);
    b->ranges = sample_block_take(l, ranges, sizeof *b->ranges);
    b->input_ranges = sample_block_take(l, plan->types, sizeof *b->input_ranges);
    b->hop_end = sample_block_take(l, (uint64_t)plan->hops + 1, sizeof *b->hop_end);
    b->before_us = sample_block_take(l, targets, sizeof *b->before_us);
    b->events = sample_block_take(l, targets, sizeof *b->events);
    b->used = sample_block_take(l, targets, sizeof *b->used);
    b->cut = sample_block_take(l, targets, sizeof *b->cut);
    b->vertices = sample_block_take(l, plan->nodes_max, weir_sample_vertex_bytes(sampler->source));
    b->groups = sample_block_take(l, plan->nodes_max, sizeof *b->groups);
    b->input_nodes = sample_block_take(l, plan->nodes_max, sizeof *b->input_nodes);
    b->input_of = sample_block_take(l, plan->nodes_max, sizeof *b->input_of);
    const uint64_t begin = l->used;
    uint64_t end = begin;
    for (uint32_t i = 0; i < sampler->opts.step_count; i++) {
        weir_block_columns *c = &b->columns[i];
        if (l->answers) l->used = begin;
        uint64_t edges = plan->edges_max[i], rows = sampler->source->rows ? edges : 0;
        c->offsets = sample_block_take(l, (uint64_t)plan->parents_max[i] + 1, sizeof *c->offsets);
        c->parents = sample_block_take(l, edges, sizeof *c->parents);
        c->children = sample_block_take(l, edges, sizeof *c->children);
        c->times = sample_block_take(l, edges, sizeof *c->times);
        c->refs = sample_block_take(l, edges, sizeof *c->refs);
        c->neighbors = sample_block_take(l, edges, weir_sample_vertex_bytes(sampler->source));
        c->rows = sample_block_take(l, rows, sizeof *c->rows);
        c->row_lengths = sample_block_take(l, rows, sizeof *c->row_lengths);
        if (l->used > end) end = l->used;
    }
    l->used = end;
    return block;
}

static uint64_t sample_block_size(const weir_sampler *sampler, bool answers) {
    sample_block_layout l = {.answers = answers};
    sample_block_lay(&l, sampler);
    return l.used;
}

uint64_t weir_block_bytes(const weir_sampler *sampler) {
    return sample_block_size(sampler, false);
}

static weir_err sample_block_open(const weir_sampler *sampler, bool answers, weir_block **blockp) {
    uint64_t size = sample_block_size(sampler, answers);
    sample_block_layout l = {.base = weir_sparse_alloc(size), .answers = answers};
    *blockp = NULL;
    if (!l.base) return WEIR_NOMEM("for a block of %llu bytes", (unsigned long long)size);
    weir_block *b = sample_block_lay(&l, sampler);
    WEIR_ASSERT(l.used == size); /* SAMPLE-P4 */
    b->answers = answers;
    b->settled_nodes = b->settled_inputs = 0;
    memset(b->settled_edges, 0, sizeof b->settled_edges);
    b->plan = &sampler->plan;
    b->view = (weir_block_view){
        .hops = sampler->plan.hops,
        .types = sampler->plan.types,
        .steps = sampler->opts.step_count,
        .hop_end = b->hop_end,
        .ranges = b->ranges,
        .vertices = sampler->source->wide ? NULL : b->vertices,
        .ids = sampler->source->wide ? b->vertices : NULL,
        .groups = b->groups,
        .before_us = b->before_us,
        .events = b->events,
        .cut = b->cut,
        .edges = b->edges,
        .input_nodes = b->input_nodes,
        .input_of = b->input_of,
        .input_ranges = b->input_ranges,
    };
    *blockp = b;
    return WEIR_OK;
}

weir_err weir_block_open(const weir_sampler *sampler, weir_block **blockp) {
    return sample_block_open(sampler, false, blockp);
}

weir_err weir_block_open_answers(const weir_sampler *sampler, weir_block **blockp) {
    return sample_block_open(sampler, true, blockp);
}

typedef struct sample_block_array {
    void *array;
    size_t size; /* of an item */
} sample_block_array;

/* What has grown beyond what was settled before. */
static void sample_block_settle(const sample_block_array *arrays, size_t count, size_t now, uint32_t *settledp) {
    if (now <= *settledp) return;
    for (size_t i = 0; i < count; i++)
        weir_sparse_settle(arrays[i].array, *settledp * arrays[i].size, now * arrays[i].size);
    *settledp = (uint32_t)now;
}

void weir_sample_block_settle(const weir_sampler *sampler, weir_block *b) {
    const size_t vertex_bytes = weir_sample_vertex_bytes(sampler->source);
    const sample_block_array of_nodes[] = {
        {b->vertices, vertex_bytes}, {b->groups, sizeof *b->groups}, {b->input_of, sizeof *b->input_of}};
    const sample_block_array of_inputs = {b->input_nodes, sizeof *b->input_nodes};
    sample_block_settle(of_nodes, sizeof of_nodes / sizeof of_nodes[0], b->view.nodes, &b->settled_nodes);
    sample_block_settle(&of_inputs, 1, b->view.inputs, &b->settled_inputs);
    for (uint32_t i = 0; i < sampler->opts.step_count; i++) {
        const weir_block_columns *c = &b->columns[i];
        const sample_block_array of_edges[] = {{c->parents, sizeof *c->parents},
                                               {c->children, sizeof *c->children},
                                               {c->times, sizeof *c->times},
                                               {c->refs, sizeof *c->refs},
                                               {c->neighbors, vertex_bytes}};
        sample_block_settle(of_edges, sizeof of_edges / sizeof of_edges[0], b->edges[i].count, &b->settled_edges[i]);
    }
}

void weir_block_close(weir_block *block) {
    weir_free(block);
}

const weir_block_view *weir_block_look(const weir_block *block) {
    return &block->view;
}

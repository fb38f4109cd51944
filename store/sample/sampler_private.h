/* SPDX-License-Identifier: Apache-2.0 */
/* sampler_private.h - what the files of the sampler share. */
#ifndef WEIR_STORE_SAMPLER_PRIVATE_H
#define WEIR_STORE_SAMPLER_PRIVATE_H

#include <weir/store/sample/sampler.h>

#include "draw.h"

#define WEIR_SAMPLE_BATCH  WEIR_SAMPLE_ASK_MAX /* parents whose windows are fetched side by side */
#define WEIR_SAMPLE_BLOCKS 16u                 /* of four numbers, that a parent's stream is filled ahead at most */

/* What a block can hold at most; found before there is one. */
typedef struct weir_sample_plan {
    uint32_t hops, types;
    uint32_t nodes_max;
    uint32_t fanout_max;                         /* of any step; of a full one the window    */
    uint32_t parents_max[WEIR_SAMPLE_STEPS_MAX]; /* of a step */
    uint32_t edges_max[WEIR_SAMPLE_STEPS_MAX];
    uint16_t parent_type[WEIR_SAMPLE_STEPS_MAX], child_type[WEIR_SAMPLE_STEPS_MAX];
} weir_sample_plan;

/* A place in a table of nodes by vertex; what another epoch has left is empty. It says little of the vertex, so that a
 * batch's table fits into a cache: the node itself has the rest. */
#define WEIR_SAMPLE_TAG_BITS 12u
typedef struct weir_sample_slot {
    uint32_t stamp; /* the epoch, then a tag: bits of the vertex' hash */
    uint32_t node;
} weir_sample_slot;

struct weir_sampler {
    weir_sample_source *source; /* borrowed */
    weir_sample_step steps[WEIR_SAMPLE_STEPS_MAX];
    weir_sample_opts opts;
    weir_sample_plan plan;
    uint64_t *keys; /* of each group: seed of its random numbers */
    weir_draw draw;
    weir_sample_slot *slots;
    uint32_t slot_bits;  /* the table has 2^slot_bits */
    uint64_t slots_used; /* so many have been zeroed; those behind them hold anything */
    uint32_t epoch;
    /* of the batch of parents at hand */
    weir_sample_window windows[WEIR_SAMPLE_BATCH];
    int64_t before_us[WEIR_SAMPLE_BATCH];
    uint32_t pick_counts[WEIR_SAMPLE_BATCH];
    uint64_t stream_keys[WEIR_SAMPLE_BATCH]; /* of those that draw */
    uint64_t stream_ids[WEIR_SAMPLE_BATCH];
    uint32_t draws[WEIR_SAMPLE_BATCH * WEIR_SAMPLE_BLOCKS * 4];
    uint32_t *picks;   /* [WEIR_SAMPLE_BATCH * plan.fanout_max] */
    uint32_t *visible; /* positions of one window that a target sees through its own event */
};

/* The columns of one step, writable. */
typedef struct weir_block_columns {
    uint32_t *offsets, *parents, *children;
    int64_t *times;
    uint64_t *refs;
    void *neighbors; /* as the source calls them, until they are numbered: uint64_t or weir_vertex */
    const uint8_t **rows;
    uint32_t *row_lengths;
} weir_block_columns;

struct weir_block {
    weir_block_view view;
    const weir_sample_plan *plan;
    bool answers; /* the columns of all steps lie one over the other */
    bool alone;   /* one group is all there is, and input_of says each node's row within its type */
    weir_block_columns columns[WEIR_SAMPLE_STEPS_MAX];
    /* the same arrays as in the view, writable */
    weir_block_edges *edges;
    weir_block_range *ranges, *input_ranges;
    void *vertices; /* uint64_t or weir_vertex */
    uint32_t *groups, *hop_end, *input_nodes, *input_of;
    int64_t *before_us;
    uint64_t *events; /* of each target: its own event */
    uint32_t *used;   /* of each target: edges so far  */
    uint8_t *cut;
    /* The most that a batch has had so far: */
    uint32_t settled_nodes, settled_inputs, settled_edges[WEIR_SAMPLE_STEPS_MAX];
};

/* plan.c.  WEIR_EINVAL, WEIR_ELIMIT. */
weir_err weir_sample_plan_make(const weir_sample_opts *opts, const weir_sample_source *source, weir_sample_plan *planp);
/* block.c: puts the columns that are read most into large pages, as far as they are filled. */
void weir_sample_block_settle(const weir_sampler *sampler, weir_block *block);
/* expand.c: the edges of one step. */
weir_err weir_sample_expand(weir_sampler *sampler, weir_block *block, uint32_t step);
/* number.c: the nodes of one hop and type, from the edges of all steps that lead there. */
void weir_sample_number(weir_sampler *sampler, weir_block *block, uint32_t hop, uint32_t type);

/* arrays.c: what a source over arrays borrows goes with it: release is called when the source is closed. */
void weir_sample_arrays_own(weir_sample_source *source, void *owned, void (*release)(void *owned));
void *weir_sample_arrays_owned(const weir_sample_source *source);

static inline size_t weir_sample_vertex_bytes(const weir_sample_source *source) {
    return source->wide ? sizeof(weir_vertex) : sizeof(uint64_t);
}

/* `wide` is a constant wherever speed matters: what calls these is inlined once for each. */
static inline weir_vertex weir_sample_vertex_at(const void *vertices, size_t index, bool wide) {
    return wide ? ((const weir_vertex *)vertices)[index] : ((const uint64_t *)vertices)[index];
}

static inline void weir_sample_vertex_put(void *vertices, size_t index, weir_vertex vertex, bool wide) {
    if (wide) {
        ((weir_vertex *)vertices)[index] = vertex;
    } else {
        ((uint64_t *)vertices)[index] = (uint64_t)vertex;
    }
}

/* The parents of an ask: nodes from `first` on. */
static inline void weir_sample_ask_nodes(weir_sample_ask *ask, const weir_block *block, uint32_t first, bool wide) {
    ask->parents = wide ? NULL : (const uint64_t *)block->vertices + first;
    ask->parent_ids = wide ? (const weir_vertex *)block->vertices + first : NULL;
}

static inline uint32_t weir_sample_fanout(const weir_sampler *sampler, const weir_sample_step *step) {
    return step->strategy == WEIR_SAMPLE_FULL ? sampler->opts.window : step->fanout;
}

#endif /* WEIR_STORE_SAMPLER_PRIVATE_H */

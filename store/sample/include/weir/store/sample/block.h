/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block.h - one sampled minibatch as plain arrays, and the steps that made it.
 *
 *   hop 0        hop 1                  hop 2                       nodes are numbered hop after hop, within a hop by
 *   targets ──►  nodes of type a  ──►  …                            type, within a type by group: so the rows of
 *            └►  nodes of type b  ──►  …                            layer l of L are the nodes of hops 0 to L - l,
 *                                                                   a prefix, and the targets are the first rows.
 *
 * Code that computes on blocks needs this header and no graph.
 */
#ifndef WEIR_STORE_SAMPLE_BLOCK_H
#define WEIR_STORE_SAMPLE_BLOCK_H

#include <stddef.h>
#include <stdint.h>

#include <weir/store/format/id.h>
#include <weir/store/format/mutation.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_SAMPLE_HOPS_MAX    8u
#define WEIR_SAMPLE_STEPS_MAX   64u
#define WEIR_SAMPLE_FANOUT_MAX  1024u
#define WEIR_SAMPLE_TARGETS_MAX 65536u
#define WEIR_SAMPLE_WINDOW      128u   /* newest edges of a vertex that are looked at, if nothing else is said */
#define WEIR_SAMPLE_WINDOW_MAX  65536u /* WEIR_WINDOW_MAX of the graph, without its header */

#define WEIR_SAMPLE_NO_TARGET UINT64_MAX /* in place of a target's event */

typedef struct weir_block weir_block;

typedef struct weir_sample_ends {
    uint16_t from, to; /* vertex types of a relation */
} weir_sample_ends;

typedef enum weir_strategy {
    WEIR_SAMPLE_RECENT,   /* the newest                                                             */
    WEIR_SAMPLE_UNIFORM,  /* any of the window, without replacement: SAMPLE-P1                             */
    WEIR_SAMPLE_WEIGHTED, /* without replacement, one after the other in proportion to what is left */
    WEIR_SAMPLE_FULL      /* the whole window; fanout is not looked at                              */
} weir_strategy;

/* From the nodes of hop - 1 along one relation. A plain value. */
typedef struct weir_sample_step {
    uint32_t hop;    /* from 1; rising, without a gap */
    uint32_t fanout; /* edges that a parent gets at most */
    uint16_t relation;
    weir_direction direction;
    weir_strategy strategy;
    uint32_t weight;      /* weighted: a number feature of the relation, or WEIR_SCHEMA_NONE: by age  */
    int64_t half_life_us; /* weighted by age: a weight halves every so long                           */
} weir_sample_step;

/* The edges of one step, by parent: parent p has offsets[p - parent_begin] up to the next. Plain values, borrowed. */
typedef struct weir_block_edges {
    uint32_t parent_begin, parent_end; /* nodes: of the hop before, of the relation's type at that end */
    uint32_t count;
    const uint32_t *offsets;
    const uint32_t *parents;  /* node     */
    const uint32_t *children; /* node     */
    const int64_t *times;
    bool alike;                 /* true: there are edges, and all have times[0]; false says nothing */
    const uint64_t *refs;       /* arrays: the edge's position; graph: its event               */
    const uint8_t *const *rows; /* NULL, or one a edge: until the source's next block          */
    const uint32_t *row_lengths;
} weir_block_edges;

typedef struct weir_block_range {
    uint32_t begin, end;
} weir_block_range;

typedef struct weir_block_view {
    uint32_t targets, hops, types, steps;
    uint32_t nodes;
    const uint32_t *hop_end;        /* hops + 1: nodes of the hops up to this one                                 */
    const weir_block_range *ranges; /* [hop * types + type]: its nodes; those that have any follow each other     */
    const uint64_t *vertices;       /* of each node, over arrays: its index within its type; else NULL            */
    const weir_vertex *ids;         /* of each node, over a graph: its id; else NULL                              */
    const uint32_t *groups;         /* of each node: its target; under `shared` the rank of its time              */
    const int64_t *before_us;       /* of each group                                                              */
    const uint64_t *events;         /* of each target: its own event, or 0; targets are the first nodes           */
    const uint8_t *cut;             /* of each target: edges_max ended its tree                                   */
    const weir_block_edges *edges;  /* one a step                                                                 */
    /* After weir_block_inputs; before it they say nothing: */
    uint32_t inputs;
    const uint32_t *input_nodes;          /* of each input row, a node that wants it                              */
    const uint32_t *input_of;             /* of each node, its row                                                */
    const weir_block_range *input_ranges; /* of each type, its rows; those that have any follow each other        */
} weir_block_view;

/* Borrowed from the block, until it is filled again. */
const weir_block_view *weir_block_look(const weir_block *block);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_STORE_SAMPLE_BLOCK_H */

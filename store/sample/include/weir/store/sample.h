/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sample.h - one sampler for training and serving, over a living graph or over plain arrays.
 *
 * It knows its graph only as "neighbours of v, relation, direction, before t, at most W newest". A target has a time,
 * and everything below it is seen as of that time. The random numbers are a function of (seed, target, hop, relation,
 * vertex): a sample depends on no thread, no rank and no batch, and a decision can be replayed.
 *
 *   hop 0        hop 1                  hop 2                       nodes are numbered hop after hop, within a hop by
 *   targets ──►  nodes of type a  ──►  …                            type, within a type by target: so the rows of
 *            └►  nodes of type b  ──►  …                            layer l of L are the nodes of hops 0 to L - l,
 *                                                                   a prefix, and the targets are the first rows.
 *
 * INVARIANTS: each is cited by an assert and by a test of the same name
 *
 *   P1  Each k-subset of a vertex's window is equally likely under `uniform` (Floyd, each draw from [0, j] inclusive).
 *   P2  The targets come first; every edge exists in the source, is older than its target's time, and occurs once a
 * parent.
 *   P3  The same (source, opts, target) gives the same tree of edges, whatever else is in the batch and whoever asks.
 *   P4  A block is one allocation, sized for the worst case before the first hop.
 *
 * THREADS: a sampler, a source and a block belong to one thread at a time; threads that share a graph or arrays each
 * open their own.
 */
#ifndef WEIR_STORE_SAMPLE_H
#define WEIR_STORE_SAMPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/base/err.h>
#include <weir/store/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_SAMPLE_HOPS_MAX    8u
#define WEIR_SAMPLE_STEPS_MAX   64u
#define WEIR_SAMPLE_FANOUT_MAX  1024u
#define WEIR_SAMPLE_TARGETS_MAX 65536u
#define WEIR_SAMPLE_WINDOW      128u /* W when opts say 0                                */
#define WEIR_BLOCK_BYTES_MAX    ((uint64_t)1 << 34)
#define WEIR_BLOCK_EDGES_MAX    ((uint64_t)1 << 28) /* the worst case of one block                  */

typedef struct weir_sampler weir_sampler;
typedef struct weir_block weir_block;

/* --- where neighbours come from ------------------------------------------------------------------------------- */

/* The window of one vertex: newest first, equal times by neighbour, then event. Strided, so that a column of an array
 * and a field of a struct are read by one loop. Borrowed until the next call of the source. */
typedef struct weir_sample_window {
    const uint8_t *neighbors; /* what the source calls the vertex: uint64_t, or weir_vertex each   */
    const uint8_t *times;     /* int64_t each                                                     */
    const uint64_t *events;   /* beside each other; NULL: in `edges`, or none                     */
    const weir_edge *edges;   /* with their rows; NULL: arrays, where the position stands for it  */
    uint64_t first;           /* arrays: position of the first edge                               */
    const uint64_t *places;   /* arrays: position of each; NULL: they follow the first            */
    uint64_t id;              /* of the parent, by which it draws: the same in every source       */
    uint32_t stride;          /* bytes from one to the next                                       */
    uint32_t count;
} weir_sample_window;

/* What is asked of many parents at once, so that their memory can be fetched side by side. A source calls them by what
 * it has: arrays by index, a graph by id; the other of the two is NULL. */
typedef struct weir_sample_ask {
    const uint64_t *parents;       /* arrays       */
    const weir_vertex *parent_ids; /* a graph      */
    const int64_t *before_us;      /* one a parent */
    uint32_t count;
    uint32_t limit; /* W */
    uint16_t relation;
    uint16_t type; /* of the parents */
    weir_direction direction;
} weir_sample_ask;

typedef struct weir_sample_ends {
    uint16_t from, to; /* vertex types of a relation */
} weir_sample_ends;

typedef struct weir_target {
    weir_vertex vertex; /* as the source calls it */
    int64_t before_us;
    /* Its own event, or 0: at the first hop, edges of this event count though their time is not older but the target's
     * own. So a payment that is a vertex sees what it was put with. */
    uint64_t event;
    uint16_t type;
} weir_target;

typedef struct weir_sample_source weir_sample_source;
/* A source fills this in; opaque handles of several kinds of source all begin with it. */
struct weir_sample_source {
    uint32_t types, relations;
    const weir_sample_ends *ends; /* one a relation */
    bool rows;                    /* edges have rows to keep */
    /* Vertices are called by their ids, as a graph does, and not by an index: 128 bits instead of 64. The loops over
     * arrays are bound by memory; so they have the narrow kind, and each loop is there twice. */
    bool wide;

    /* Forgets what the last block kept. */
    void (*begin)(weir_sample_source *source);
    /* What targets draw by, the same in every source: the low halves of their ids, in which two may agree; then they
     * draw alike, which is no harm.  WEIR_EINVAL no such vertex. */
    weir_err (*ids)(weir_sample_source *source, const weir_target *targets, uint32_t count, uint64_t *ids);
    weir_err (*windows)(weir_sample_source *source, const weir_sample_ask *ask, weir_sample_window *windows);
    /* A number feature of every edge of the window; NaN where it is missing.  WEIR_EINVAL no such number. */
    weir_err (*numbers)(weir_sample_source *source, const weir_sample_ask *ask, const weir_sample_window *window,
                        uint32_t feature, float *numbers);
    /* A category of every edge: equal texts have equal codes within this source; 0: missing.  WEIR_EINVAL. */
    weir_err (*codes)(weir_sample_source *source, const weir_sample_ask *ask, const weir_sample_window *window,
                      uint32_t feature, uint64_t *codes);
    /* Copies a row to where it lives until the next begin. May be NULL where `rows` is false.  WEIR_ELIMIT,
     * WEIR_ENOMEM. */
    weir_err (*keep)(weir_sample_source *source, const uint8_t *row, uint32_t length, const uint8_t **keptp);
    void (*close)(weir_sample_source *source);
};

/* Over a living graph: vertices are called by their ids. bytes_max bounds one call's windows, and the rows of one
 * block.  WEIR_ENOMEM.  [any] */
weir_err weir_sample_over_graph(weir_graph *graph, size_t bytes_max, weir_sample_source **sourcep);

/* One relation and direction as arrays. Edges of vertex v: indptr[v] up to indptr[v + 1], newest first. Two strides, so
 * that what is read together can lie together: a vertex's begin and id, an edge's neighbour and time. A processor core
 * has few misses under way at once; with arrays of their own, each edge needs two. */
typedef struct weir_sample_csr {
    const int64_t *indptr; /* vertices + 1                                               */
    const uint64_t *ids;   /* the low halves of the vertices' ids, the same everywhere   */
    const int64_t *neighbors;
    const int64_t *times;
    uint32_t vertex_stride;       /* bytes from one indptr to the next; 0: 8                  */
    uint32_t id_stride;           /* the same of ids; 0: vertex_stride                        */
    uint32_t edge_stride;         /* the same of neighbors and of times; 0: 8                 */
    const uint64_t *events;       /* may be NULL                                               */
    const int64_t *until_us;      /* from when on each is deleted; NULL: none is                */
    const float *const *features; /* one a feature of the relation; NULL where it is no number; NaN: missing */
    const int32_t *const *codes;  /* the same of categories; -1: missing. NULL: there are none               */
    uint32_t feature_count;
    uint64_t vertices, edges;
    int64_t newest_us; /* no edge is newer; INT64_MAX: not known */
    int64_t expire_us; /* 0: never                               */
} weir_sample_csr;

typedef struct weir_sample_arrays {
    uint32_t types, relations;
    const weir_sample_ends *ends;
    const weir_sample_csr *csrs; /* relation * 2 + direction; copied     */
    const uint64_t *const *ids;  /* one a type: low halves               */
    const uint64_t *vertices;    /* how many of each type                */
    uint32_t id_stride;          /* bytes from one id to the next; 0: 8  */
} weir_sample_arrays;

/* Over arrays, without a copy: vertices are called by their index within their type. Everything is borrowed; what the
 * arrays say is checked where it is used: WEIR_ECORRUPT.  WEIR_ENOMEM.  [any] */
weir_err weir_sample_over_arrays(const weir_sample_arrays *arrays, weir_sample_source **sourcep);

struct weir_snapshot;
/* Over a snapshot (snapshot.h), mapped or loaded: vertices are called by their index within their type. The snapshot is
 * borrowed.  WEIR_ENOMEM.  [any] */
weir_err weir_sample_over_snapshot(const struct weir_snapshot *snapshot, weir_sample_source **sourcep);

/* NULL is allowed.  [owner] */
void weir_sample_source_close(weir_sample_source *source);

/* --- what is asked --------------------------------------------------------------------------------------------- */

typedef enum weir_strategy {
    WEIR_SAMPLE_RECENT,   /* the newest                                                             */
    WEIR_SAMPLE_UNIFORM,  /* any of the window, without replacement: P1                             */
    WEIR_SAMPLE_WEIGHTED, /* without replacement, one after the other in proportion to what is left */
    WEIR_SAMPLE_FULL      /* the whole window; fanout is not looked at                              */
} weir_strategy;

/* From the nodes of hop - 1 along one relation. A plain value. */
typedef struct weir_sample_step {
    uint32_t hop;    /* from 1; rising, none left out */
    uint32_t fanout; /* edges that a parent gets at most */
    uint16_t relation;
    weir_direction direction;
    weir_strategy strategy;
    uint32_t weight;      /* weighted: a number feature of the relation, or WEIR_SCHEMA_NONE: by age  */
    int64_t half_life_us; /* weighted by age: a weight halves every so long                           */
} weir_sample_step;

typedef struct weir_sample_opts {
    const weir_sample_step *steps; /* copied */
    uint32_t step_count;
    uint32_t window;      /* W; 0: WEIR_SAMPLE_WINDOW                                               */
    uint32_t targets_max; /* of a block                                                             */
    uint32_t edges_max;   /* of one target: then its tree is cut, and says so; 0: no such limit     */
    uint64_t seed;
    /* Targets of one time share what lies below them: a vertex that several reach at a hop is one node there. For
     * batches whose targets all have the same time; the tree of a target is then drawn without its name. */
    bool shared;
} weir_sample_opts;

/* The source is borrowed.  WEIR_EINVAL says which step and why; WEIR_ELIMIT the worst case of a block is too large:
 * says how large and what to lower; WEIR_ENOMEM.  [owner] */
weir_err weir_sampler_open(const weir_sample_opts *opts, weir_sample_source *source, weir_sampler **samplerp);
/* NULL is allowed. */
void weir_sampler_close(weir_sampler *sampler);
/* A block for what this sampler samples, to be used again and again (P4).  WEIR_ENOMEM. */
weir_err weir_block_open(const weir_sampler *sampler, weir_block **blockp);
void weir_block_close(weir_block *block);
/* What one block holds in memory. */
uint64_t weir_block_bytes(const weir_sampler *sampler);

/* Fills the block: what it held is gone.  Targets stand by type, rising.  [owner]
 * WEIR_EINVAL no target, more than targets_max, types that fall, times that differ under `shared`, a vertex that the
 * source does not have; whatever the source reports. After an error the block is empty. */
weir_err weir_sample(weir_sampler *sampler, const weir_target *targets, uint32_t count, weir_block *block);

/* --- what comes out -------------------------------------------------------------------------------------------- */

/* The edges of one step, by parent: parent p has offsets[p - parent_begin] up to the next. Plain values, borrowed. */
typedef struct weir_block_edges {
    uint32_t parent_begin, parent_end; /* nodes: of the hop before, of the relation's type at that end */
    uint32_t count;
    const uint32_t *offsets;
    const uint32_t *parents;  /* node     */
    const uint32_t *children; /* node     */
    const int64_t *times;
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
    const weir_block_range *ranges; /* [hop * types + type]: its nodes                                            */
    const uint64_t *vertices;       /* of each node, over arrays: its index within its type; else NULL            */
    const weir_vertex *ids;         /* of each node, over a graph: its id; else NULL                              */
    const uint32_t *groups;         /* of each node: its target; 0 under `shared`                                 */
    const int64_t *before_us;       /* of each target                                                             */
    const uint8_t *cut;             /* of each target: edges_max ended its tree                                   */
    const weir_block_edges *edges;  /* one a step                                                                 */
    /* After weir_block_inputs: */
    uint32_t inputs;
    const uint32_t *input_nodes;          /* of each input row, a node that wants it                              */
    const uint32_t *input_of;             /* of each node, its row                                                */
    const weir_block_range *input_ranges; /* of each type, its rows                                               */
} weir_block_view;

const weir_block_view *weir_block_look(const weir_block *block);

/* Numbers the distinct vertices of the block, by type: the rows that layer 0 reads. per_time: a vertex seen at two
 * times is two rows, for features that change.  [owner] */
void weir_block_inputs(weir_sampler *sampler, weir_block *block, bool per_time);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_STORE_SAMPLE_H */

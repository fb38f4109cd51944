/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source.h - where a graph comes from: "neighbours of v, relation, direction, before t, at most W newest" and "what is
 * known of these vertices, each as of its own time", over a living graph, over a snapshot, or over plain arrays.
 *
 * Not asked here: when a vertex was put, by which event, and its key. Callers ask the graph (weir_graph_first_put,
 * weir_graph_name, and ask.c for the event) or the snapshot (its `lives`, weir_snapshot_event_of_put,
 * weir_snapshot_csv_key), one vertex at a time. That both give payments the same time and event is tested by
 * tests/prop/inference/score/parity_test.c, and the same scores by tests/unit/inference/bulk/bulk_test.c.
 *
 * THREADS: a source belongs to one thread at a time; threads that share a graph or arrays each open their own.
 */
#ifndef WEIR_STORE_SAMPLE_SOURCE_H
#define WEIR_STORE_SAMPLE_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <weir/store/base/err.h>
#include <weir/store/format/row.h>
#include <weir/store/graph/graph.h>
#include <weir/store/sample/block.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The window of one vertex: newest first, equal times by neighbour, then event. Strided, so that a column of an array
 * and a field of a struct are read by one loop. Borrowed until the source is asked for windows again, or told of a hop.
 */
typedef struct weir_sample_window {
    const uint8_t *neighbors; /* what the source calls the vertex: uint64_t, or weir_vertex each   */
    const uint8_t *times;     /* int64_t each                                                     */
    const uint64_t *events;   /* beside each other; NULL: in `edges`, or none                     */
    const weir_edge *edges;   /* with their rows; NULL: arrays, where the position stands for it  */
    uint64_t first;           /* arrays without `places`: position of the first edge              */
    const uint64_t *places;   /* arrays: position of each; NULL: they follow the first            */
    uint64_t id;              /* of the parent, by which it draws: the same in every source       */
    uint32_t stride;          /* bytes from one neighbour to the next                             */
    uint32_t times_stride;    /* the same of times; 0: the relation's edges have all this one     */
    uint32_t count;
} weir_sample_window;

/* Its edges [begin, end). */
static inline weir_sample_window weir_sample_window_part(const weir_sample_window *window, uint32_t begin,
                                                         uint32_t end) {
    weir_sample_window part = *window;
    part.neighbors += (size_t)begin * window->stride;
    part.times += (size_t)begin * window->times_stride;
    if (window->events) part.events += begin;
    if (window->edges) part.edges += begin;
    if (window->places) part.places += begin;
    part.first += begin;
    part.count = end - begin;
    return part;
}

static inline int64_t weir_sample_window_time(const weir_sample_window *window, uint32_t i) {
    int64_t time_us;
    memcpy(&time_us, window->times + (size_t)i * window->times_stride, sizeof time_us);
    return time_us;
}

/* The event of one of its edges; 0 in arrays that have none. */
static inline uint64_t weir_sample_window_event(const weir_sample_window *window, uint32_t i) {
    if (window->edges) return window->edges[i].event;
    return window->events ? window->events[i] : 0;
}

#define WEIR_SAMPLE_ASK_MAX 64u

/* What is asked of many parents at once, so that their memory can be fetched side by side. A source calls them by what
 * it has: arrays by index, a graph by id; the other of the two is NULL. */
typedef struct weir_sample_ask {
    const uint64_t *parents;       /* arrays       */
    const weir_vertex *parent_ids; /* a graph      */
    const int64_t *before_us;      /* one a parent */
    const int64_t *since_us;       /* one a parent: older edges may be left out; NULL: none may */
    uint32_t count;                /* at most WEIR_SAMPLE_ASK_MAX */
    uint32_t limit;                /* W            */
    uint16_t relation;
    uint16_t type; /* of the parents */
    weir_direction direction;
} weir_sample_ask;

/* Vertices of one type, each as of its own time, called as in weir_sample_ask. */
typedef struct weir_sample_vertices {
    const uint64_t *vertices; /* arrays  */
    const weir_vertex *ids;   /* a graph */
    const int64_t *before_us;
    /* Which of them are targets, each with its own event or 0, and which are WEIR_SAMPLE_NO_TARGET. NULL: none is. */
    const uint64_t *events;
    uint32_t count;
    uint16_t type;
    bool targets; /* of the targets' type: what was put at that very time counts, too: a target comes with its row */
} weir_sample_vertices;

typedef struct weir_target {
    weir_vertex vertex; /* as the source calls it */
    int64_t before_us;
    /* Its own event, or 0: at the first hop, edges of this event count though their time is not older but the target's
     * own. So a payment that is a vertex sees what it was put with. */
    uint64_t event;
    uint16_t type;
} weir_target;

/* All parents of a hop, step by step. Plain values, borrowed. */
typedef struct weir_sample_hop {
    const weir_sample_step *steps;
    const weir_block_range *parents; /* of each step: its nodes */
    uint32_t step_count;
    uint32_t first_step;      /* where they stand among all steps */
    const uint64_t *vertices; /* of each node                     */
    const uint32_t *groups;   /* of each node                     */
    const int64_t *before_us; /* of each group                    */
    const uint64_t *keys;     /* of each group: what its parents draw by */
    const uint64_t *events;   /* at the first hop, of each node: as of its target; else NULL */
} weir_sample_hop;

typedef struct weir_sample_source weir_sample_source;
/* A source fills this in; opaque handles of several kinds of source all begin with it. */
struct weir_sample_source {
    uint32_t types, relations;
    const weir_sample_ends *ends; /* one a relation */
    bool rows;                    /* edges have rows to keep */
    /* Vertices are called by their ids, as a graph does, and not by an index: 128 bits instead of 64. The loops over
     * arrays are bound by memory; so they have the narrow kind, and each loop is there twice. */
    bool wide;

    /* Forgets what the last block kept; NULL: a source that keeps nothing. */
    void (*begin)(weir_sample_source *source);
    /* What targets draw by, the same in every source: the low halves of their ids, in which two may agree; then they
     * draw alike, which is no harm.  WEIR_EINVAL over arrays: no such vertex. */
    weir_err (*ids)(weir_sample_source *source, const weir_target *targets, uint32_t count, uint64_t *ids);
    /* All parents of a hop, before the windows of any: for a source that has to ask for some elsewhere, with one
     * question. Their windows are then asked for in the order of the steps, and of the nodes within each.  NULL, as
     * always over a graph: nothing has to be asked. Not with a limit of edges a target. */
    weir_err (*hop)(weir_sample_source *source, const weir_sample_hop *hop);
    weir_err (*windows)(weir_sample_source *source, const weir_sample_ask *ask, weir_sample_window *windows);
    /* A number feature of every edge of the window; NaN where it is missing.  WEIR_EINVAL no such number; WEIR_ECORRUPT
     * over a graph: a row. */
    weir_err (*numbers)(weir_sample_source *source, const weir_sample_ask *ask, const weir_sample_window *window,
                        uint32_t feature, float *numbers);
    /* A category of every edge: equal texts have equal codes within this source; 0: missing.  Errors as above. */
    weir_err (*codes)(weir_sample_source *source, const weir_sample_ask *ask, const weir_sample_window *window,
                      uint32_t feature, uint64_t *codes);
    /* What is known of vertices. values: of each vertex one a feature of its type, absent where it has none; numbers
     * have gone through float, because that is what a snapshot keeps. Texts are borrowed until the next call.  NULL:
     * it cannot tell, as plain arrays, which have no schema. */
    weir_err (*features)(weir_sample_source *source, const weir_sample_vertices *of, weir_value *values);
    /* For how long `features` and `there` say of each what they say as of its own time: whoever asks as of a time from
     * since_us on, and before until_us, is told the same.  NULL: it cannot tell.  WEIR_ECORRUPT over a snapshot: no
     * such vertex. */
    weir_err (*spans)(weir_sample_source *source, const weir_sample_vertices *of, int64_t *since_us, int64_t *until_us);
    /* What a label on vertices had told of each before its own time, strictly, of targets too: the newest label of the
     * life that the vertex has then, as an index of the label's values; WEIR_SCHEMA_NONE: nothing was told.  NULL: it
     * has no labels, as plain arrays.  WEIR_ECORRUPT over a snapshot: no such vertex or value. */
    weir_err (*labels)(weir_sample_source *source, const weir_sample_vertices *of, uint32_t label, uint32_t *values);
    /* What an aggregate of ends says of targets, if that was computed where there are more edges than here: to
     * values[0], values[stride] and so on, NaN of who is no target; *therep false: it was not. NULL: nothing was.
     * WEIR_ECORRUPT over a snapshot: no such vertex, or a file has become shorter; WEIR_EDATA: not as of the time that
     * a vertex was put; errors of a file. */
    weir_err (*precomputed)(weir_sample_source *source, const weir_sample_vertices *of, uint32_t aggregate,
                            double *values, size_t stride, bool *therep);
    /* The same as `features` of edges [begin, begin + count) of a step that was sampled here. */
    weir_err (*edge_features)(weir_sample_source *source, const weir_sample_step *step, const weir_block_edges *edges,
                              uint32_t begin, uint32_t count, weir_value *values);
    /* A matrix of an import, one row a vertex; NULL: it has not got this one. */
    const float *(*matrix)(weir_sample_source *source, uint32_t type, const char *name, uint32_t columns);
    /* Which vertices were there: put before, neither deleted nor forgotten since.  NULL, as matrix is: no matrices. */
    void (*there)(weir_sample_source *source, const weir_sample_vertices *of, bool *there);
    /* Copies a row to where it lives until the next begin. May be NULL where `rows` is false.  WEIR_ELIMIT,
     * WEIR_ENOMEM. */
    weir_err (*keep)(weir_sample_source *source, const uint8_t *row, uint32_t length, const uint8_t **keptp);
    void (*close)(weir_sample_source *source);
};

/* Over a living graph: vertices are called by their ids. bytes_max bounds one call's windows, one call's features
 * and the rows of one block, each by itself.  WEIR_ENOMEM.  [any] */
weir_err weir_sample_over_graph(weir_graph *graph, size_t bytes_max, weir_sample_source **sourcep);

/* One relation and direction as arrays. Edges of vertex v: indptr[v] up to indptr[v + 1], newest first. Two strides, so
 * that what is read together can lie together: a vertex's begin and id, an edge's neighbour and time. A processor core
 * has few misses under way at once; with arrays of their own, each edge needs two. */
typedef struct weir_sample_csr {
    const int64_t *indptr; /* vertices + 1                                               */
    const uint64_t *ids;   /* the low halves of the vertices' ids, the same everywhere   */
    const int64_t *neighbors;
    const int64_t *times;         /* NULL: each is newest_us                                     */
    uint32_t vertex_stride;       /* bytes from one indptr to the next; 0: 8                  */
    uint32_t id_stride;           /* the same of ids; 0: vertex_stride                        */
    uint32_t edge_stride;         /* the same of neighbors and of times; 0: 8                 */
    const uint64_t *events;       /* may be NULL                                               */
    const int64_t *until_us;      /* from when on each is deleted, INT64_MAX: never; NULL: none is */
    const float *const *features; /* one a feature of the relation; NULL where it is not a number; NaN: missing */
    const int32_t *const *codes;  /* the same of categories; -1: missing. NULL: there are none               */
    uint32_t feature_count;
    uint64_t vertices, edges;
    int64_t newest_us; /* no edge is newer; INT64_MAX: not known, which needs times */
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

#ifdef __cplusplus
}
#endif

#endif /* WEIR_STORE_SAMPLE_SOURCE_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan.h - all vertex types as one graph, and which part owns which of its vertices.
 *
 * Vertex v of type T is offsets[T] + v here.
 */
#ifndef WEIR_PARTITIONER_PARTS_PLAN_H
#define WEIR_PARTITIONER_PARTS_PLAN_H

#include <weir/partitioner/cut/lists.h>
#include <weir/partitioner/parts/parts.h>
#include <weir/store/aggregate/aggregate.h>

#define WEIR_PARTS_PATH_MAX 4608u

/* budget.c: what may lie in memory, and where the rest lies. All 0: whatever it takes. */
typedef struct weir_parts_budget {
    uint64_t bytes;
    bool metis_whole;                  /* METIS sees the whole graph */
    bool edges_in_file;                /* of the whole graph */
    char scratch[WEIR_PARTS_PATH_MAX]; /* "OUT.scratch" */
    uint64_t live_bytes;               /* above this edges of coarser graphs lie there, too */
    uint64_t beside_metis;             /* in memory while METIS sees the whole graph, but for edges */
} weir_parts_budget;

/* By how many vertices and edges there are; nothing of them is read.  WEIR_ELIMIT: what is by vertex does not fit. */
weir_err weir_parts_budget_of(const weir_snapshot *snapshot, const weir_parts_opts *opts, weir_parts_budget *budget);

/* Edges of all relations in both directions; repeated edges add to the weight, up to what that holds; no loops;
 * neighbours ascend. */
typedef struct weir_parts_graph {
    uint32_t types;
    uint64_t *offsets; /* types + 1 */
    uint64_t vertices;
    int64_t *indptr;
    weir_cut_lists lists;
    uint32_t *targets;               /* by vertex, up to what that holds */
    uint64_t training;               /* all targets */
    const weir_parts_budget *budget; /* borrowed */
} weir_parts_graph;

/* The snapshot must have passed weir_snapshot_check; of opts count masks.  WEIR_ELIMIT, WEIR_ENOMEM; errors of scratch
 * files. */
weir_err weir_parts_graph_open(const weir_snapshot *snapshot, const weir_parts_opts *opts,
                               const weir_parts_budget *budget, weir_parts_graph *graph);
/* What METIS may take, as weir_cut_opts has it, for this graph with so many weights. */
uint64_t weir_parts_budget_of_metis(const weir_parts_graph *graph, uint32_t constraints);
/* Once vertices have their parts: all that stays is by vertex, but for indptr. */
void weir_parts_graph_drop_edges(weir_parts_graph *graph);
void weir_parts_graph_close(weir_parts_graph *graph);

/* Entries of lists, in both directions, repeated edges and loops included. */
uint64_t weir_parts_degree(const weir_snapshot *snapshot, uint32_t type, uint64_t v);

/* weights.c: what is to be shared out. */
typedef struct weir_parts_weights {
    weir_parts_held held[WEIR_PARTS_BALANCES_MAX]; /* name, total and asked */
    uint32_t count;
    /* Of those that there is anything of; of vertices, if there is of none. */
    int64_t *numbers; /* vertices × columns */
    uint32_t columns;
    double tolerance[WEIR_PARTS_BALANCES_MAX];
    uint32_t held_of[WEIR_PARTS_BALANCES_MAX]; /* which of held; count: none of them, vertices were not asked for */
} weir_parts_weights;

/* WEIR_ELIMIT too many; WEIR_EINVAL a tolerance; WEIR_ENOMEM. */
weir_err weir_parts_weights_open(const weir_snapshot *snapshot, const weir_parts_graph *graph,
                                 const weir_parts_opts *opts, weir_parts_weights *weights);
void weir_parts_weights_close(weir_parts_weights *weights);
/* What the parts have of each, and why more than was asked for, into report.  WEIR_ENOMEM. */
weir_err weir_parts_weights_report(const weir_parts_weights *weights, const weir_parts_graph *graph,
                                   const int32_t *part_of, weir_parts_method method, weir_parts_report *report);

/* like.c: part_of says where each vertex was in opts->like; WEIR_CUT_NOWHERE: it is new. Counts them in the report.
 * Errors as weir_parts_write says. */
weir_err weir_parts_like(const weir_snapshot *snapshot, const weir_parts_graph *graph, const weir_parts_opts *opts,
                         int32_t *part_of, weir_parts_report *report);
/* part_of[offsets[T] + v] by this method, for opts->parts; of WEIR_PARTS_LIKE it is what weir_parts_like has left. */
weir_err weir_parts_assign(const weir_snapshot *snapshot, const weir_parts_graph *graph,
                           const weir_parts_weights *weights, const weir_parts_opts *opts, weir_parts_method method,
                           int32_t *part_of);
/* All of quality but method and seconds.  machines: divides parts.  WEIR_ENOMEM. */
weir_err weir_parts_measure(const weir_snapshot *snapshot, const weir_parts_graph *graph, const int32_t *part_of,
                            uint32_t parts, uint32_t machines, weir_parts_quality *qualityp);

/* order.c: by type and vertex, the logarithm of the chance that a batch of a training does not read it: what is read
 * most often is lowest.  WEIR_ENOMEM. */
weir_err weir_parts_order_open(const weir_snapshot *snapshot, const weir_parts_graph *graph, double ***sparedp);
void weir_parts_order_close(const weir_parts_graph *graph, double **spared); /* NULL is allowed */

/* Who owns what, and the new numbers. By type. */
typedef struct weir_parts_plan {
    uint32_t types, parts;
    const weir_parts_graph *graph;
    const int32_t *part_of;
    int64_t **new_of, **old_of;
    int64_t **starts; /* parts + 1 */
} weir_parts_plan;

/* graph is of the snapshot.  WEIR_ENOMEM. */
weir_err weir_parts_plan_open(const weir_snapshot *snapshot, const weir_parts_graph *graph, const int32_t *part_of,
                              uint32_t parts, weir_parts_plan *plan);
void weir_parts_plan_close(weir_parts_plan *plan);

/* --- one part ---------------------------------------------------------------------------------------------------- */

#define WEIR_PARTS_ELSEWHERE INT64_C(-1)

/* The vertices of one type that a part has, by place: first its own, in the order of their numbers; then what these
 * lead to, a step after the other, each step in that order. */
typedef struct weir_parts_here {
    int64_t *vertices; /* which one of the snapshot */
    size_t count, capacity;
    size_t own, listed; /* the first so many are owned; have lists of edges */
    size_t stepped;     /* where those of the last step begin */
    int64_t *place_of;  /* by vertex of the snapshot, or WEIR_PARTS_ELSEWHERE */
} weir_parts_here;

typedef struct weir_parts_local {
    const weir_snapshot *snapshot;
    uint32_t types;
    weir_parts_here *here; /* by type */
} weir_parts_local;

/* local.c. Nothing is here yet; the snapshot must have passed weir_snapshot_check.  WEIR_ENOMEM. */
weir_err weir_parts_local_open(const weir_snapshot *snapshot, weir_parts_local *local);
/* The vertices of this part, and of no other: PARTS-P2, PARTS-P3.  WEIR_ENOMEM. */
weir_err weir_parts_local_fill(weir_parts_local *local, const weir_parts_plan *plan, uint32_t part, uint32_t depth);
void weir_parts_local_close(weir_parts_local *local);

/* ends.c: what says of each life what a part has not the edges to say. */
typedef struct weir_parts_ends {
    weir_sample_source *source;
    weir_aggregates *aggregates;
} weir_parts_ends;

weir_err weir_parts_ends_open(const weir_snapshot *snapshot, weir_parts_ends *ends); /* WEIR_ENOMEM */
void weir_parts_ends_close(weir_parts_ends *ends);

/* folder/part-P of this plan, into a folder that is there.  cutting: 64 hex digits. */
typedef struct weir_parts_draft {
    const weir_snapshot *snapshot;
    const weir_parts_plan *plan;
    const weir_parts_opts *opts;
    char folder[4096];
    char cutting[65];
    uint32_t part;
    weir_parts_local local; /* of this part */
    weir_parts_ends ends;
} weir_parts_draft;

/* ends.c, PARTS-P6: one number a life, in the order of the part's lives, which are so many of this type; an array an
 * aggregate, into the folder of the part. Those of others' vertices, which are the last, are NaN. A single part has all
 * edges, and brings nothing.  WEIR_ELIMIT, WEIR_ENOMEM; errors of aggregates and of files. */
weir_err weir_parts_ends_write(const weir_parts_draft *draft, const char *folder, uint32_t type, uint64_t lives);

/* "FOLDER/part-P/…" of this draft.  WEIR_ELIMIT. */
weir_err weir_parts_path(const weir_parts_draft *draft, char path[WEIR_PARTS_PATH_MAX], const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* What was written of draft->part. */
typedef struct weir_parts_counts {
    uint64_t lives[WEIR_SCHEMA_VERTICES_MAX], rows[WEIR_SCHEMA_VERTICES_MAX];
    uint64_t edges[2 * WEIR_SCHEMA_RELATIONS_MAX]; /* relation * 2 + direction */
    uint64_t labels[WEIR_SCHEMA_LABELS_MAX];
} weir_parts_counts;
/* write.c: all files of draft->part. */
weir_err weir_parts_write_part(const weir_parts_draft *draft, weir_parts_counts *counts);
/* manifest.c */
weir_err weir_parts_write_manifest(const weir_parts_draft *draft, const weir_parts_counts *counts);

#endif /* WEIR_PARTITIONER_PARTS_PLAN_H */

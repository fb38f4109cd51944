/* SPDX-License-Identifier: Apache-2.0 */
/* cut_private.h - what the steps of a cutting share: limits, the parts as they are now, the queue of moves, levels. */
#ifndef WEIR_PARTITIONER_CUT_PRIVATE_H
#define WEIR_PARTITIONER_CUT_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>

#include <weir/partitioner/cut/cut.h>
#include <weir/partitioner/cut/lists.h>

/* What is held. */
typedef struct cut_limits {
    uint32_t parts, constraints;
    int64_t most[WEIR_METIS_CONSTRAINTS_MAX]; /* of a part                                     */
    double share[WEIR_METIS_CONSTRAINTS_MAX]; /* what a part has on average; 0: nothing there  */
} cut_limits;

/* --- a queue: the vertex with the highest rank leaves first; of equals the one of the lowest number ------------- */

typedef struct cut_queue {
    uint32_t *vertices; /* a binary heap */
    uint64_t count;
    uint32_t *at; /* by vertex: its place in the heap and one; 0: it is not there */
    double *rank; /* by vertex */
} cut_queue;

/* Puts v in, or where its new rank belongs. */
void weir_cut_queue_put(cut_queue *q, uint64_t v, double rank);
void weir_cut_queue_drop(cut_queue *q, uint64_t v); /* may be absent */
uint64_t weir_cut_queue_take(cut_queue *q);         /* must not be empty */

/* --- the parts as they are now ---------------------------------------------------------------------------------- */

typedef struct cut_state {
    const weir_metis_graph *graph;
    const cut_limits *limits;
    int32_t *part_of; /* borrowed */
    int64_t *loads;   /* parts × constraints */
    int64_t *shared;  /* by part: the weight of the edges between it and the vertex that was looked at last */
    int32_t *beside;  /* the parts of which shared is not 0 */
    uint32_t beside_count;
    cut_queue queue;
    const bool *stays; /* by vertex: never moves; NULL: none. Borrowed */
    bool *moved;       /* by vertex: in this pass, or it stays */
} cut_state;

/* Vertices may be WEIR_CUT_NOWHERE until they are moved. */
weir_err weir_cut_state_open(const weir_metis_graph *graph, const cut_limits *limits, int32_t *part_of, cut_state *s);
void weir_cut_state_close(cut_state *s);

/* Fills shared and beside for v. */
void weir_cut_look(cut_state *s, uint64_t v);
void weir_cut_move(cut_state *s, uint64_t v, int32_t to);
/* What is above the limits in all parts, as shares of a part. */
double weir_cut_excess(const cut_state *s);
/* By how much that grows when v goes there; below 0: it falls. */
double weir_cut_excess_of_move(const cut_state *s, uint64_t v, int32_t to);
int64_t weir_cut_weight_between(const weir_metis_graph *graph, const int32_t *part_of);

/* What a move must gain to count as less excess: sums of shares are rounded. */
#define CUT_EXCESS_STEP 1e-9
/* The rank of a vertex with more neighbours than this is looked at again when it leaves the queue, and not for each
 * neighbour that moves: of a hub those are many. */
#define CUT_HUB 256

/* weights.c. A part may have tolerance × share, or the least that some part must have if that is more. */
weir_err weir_cut_limits_of(const weir_metis_graph *graph, uint32_t parts, const double *tolerance, cut_limits *limits);
/* METIS on this graph, the whole one or a coarser one: by all weights, or by their sum as shares of a part. Weights are
 * made smaller where they add up to more than 10^9: METIS may add in 32 bits. */
weir_err weir_cut_metis(const weir_metis_graph *graph, const cut_limits *limits, bool sum, uint64_t seed,
                        int32_t *part_of);

/* balance.c: vertices leave parts that are above a limit, those first that add least to the cut for what they mend. */
void weir_cut_balance(cut_state *s);
/* refine.c: fewer edges between parts, and not more excess. */
weir_err weir_cut_refine(cut_state *s);

/* --- levels ------------------------------------------------------------------------------------------------------ */

/* A graph of clusters of a finer one. Edges that weigh more than 32 bits hold weigh as much as these do. */
typedef struct cut_level {
    weir_metis_graph graph;
    int64_t *indptr, *vertex_weights;
    weir_cut_lists lists;
    uint32_t *cluster_of; /* by vertex of the finer graph */
    int32_t *part_of;     /* by cluster                   */
} cut_level;

/* lists.c: opts->scratch where so many ends more would be above opts->live_bytes; NULL: there is room in memory. */
const char *weir_cut_scratch_for(const weir_cut_opts *opts, uint64_t ends);

/* Clusters have at most `most` of each weight, unless a vertex in them alone has more; where part_of is not NULL each
 * lies in one part. Of opts counts where edges may lie. */
weir_err weir_cut_level_open(const weir_metis_graph *finer, const int32_t *part_of, uint32_t parts, const int64_t *most,
                             uint64_t seed, const weir_cut_opts *opts, cut_level *level);
void weir_cut_level_close(cut_level *level);

/* machines.c: WEIR_EINVAL, WEIR_ELIMIT as weir_cut says. */
weir_err weir_cut_check(const weir_metis_graph *graph, const weir_cut_opts *opts);

/* cut.c: one level of parts; of opts neither parts nor machines nor tolerance count. */
weir_err weir_cut_solve(const weir_metis_graph *graph, const cut_limits *limits, const weir_cut_opts *opts,
                        int32_t *part_of);

#endif /* WEIR_PARTITIONER_CUT_PRIVATE_H */

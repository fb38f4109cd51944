/* SPDX-License-Identifier: Apache-2.0 */
/*
 * aggregate.h - a schema's streaming aggregates as of any time: the same code for training and for serving.
 *
 *   earlier                       t - window           t
 *   ────────────┬──────────────────────┬───────────────┤  the window begins at a multiple of the resolution since
 *               └ rounded down ────────┘               │  1970, at or before t - window (exact: there), ends before t
 *
 * Nothing is kept: an aggregate is a function of (vertex, relation, t) over the edges that a source shows before t.
 * So a replay, a snapshot and the live store cannot disagree, and nothing that comes later can leak into the past.
 *
 *   target ──between[0]──► first end ──relation, before t──► second end ◄──between[1]── target        a pair
 *
 *   vertex ──relation, before t──► neighbour ◄──label, before t                                       a labelled one
 *
 *   target ──end──► first end ──through, before t──► … ──► those met ──relation, before t──►          a walked one
 *
 * INVARIANTS: each is cited by an assert and by a test of the same name
 *
 *   AGGREGATE-G1  The value depends on the edges with begin <= time < t only, and of a pair on which its ends are (G3),
 *                 of a labelled one on what their neighbours were told to be (G4).
 *   AGGREGATE-G2  Of a vertex with more than WEIR_AGGREGATE_EDGES such edges, the newest WEIR_AGGREGATE_EDGES count, in
 *                 every source: a hub costs no more than that. Of a pair these are edges of its first end.
 *   AGGREGATE-G3  The ends of a pair are told by what a target sees: its newest edges before t, and those of its own
 *                 event, whose time is t. Another event's edges of that moment say nothing; of more than 15 of them the
 *                 end is not found, in any source.
 *   AGGREGATE-G4  With a label, of the newest WEIR_AGGREGATE_LABELLED edges of the window those count whose neighbour's
 *                 newest label before t, of the life that it has at t, has one of the values. A label of t or later
 *                 changes nothing, nor does the value of an absent one.
 *   AGGREGATE-G5  A walk sees edges with begin <= time < t only, as its value does (an ordered one goes as far back
 *                 from the edge that led to a vertex, and newer ones do not count), all as of t: of a step's at most
 *                 WEIR_AGGREGATE_WALK vertices the newest WEIR_AGGREGATE_WALK_EDGES each. Of those whom it meets so
 *                 many count, too, or, where they are many, an equal part of WEIR_AGGREGATE_EDGES each. Different ones
 *                 are those whom it meets. With a share, edges of the aggregate's relation that do not have it are as
 *                 if they were not there, in the walk and at its end.
 *
 * THREADS: a handle belongs to one thread at a time, as its source does.
 */
#ifndef WEIR_STORE_AGGREGATE_AGGREGATE_H
#define WEIR_STORE_AGGREGATE_AGGREGATE_H

#include <stdint.h>

#include <weir/store/base/err.h>
#include <weir/store/sample/source.h>
#include <weir/store/schema/schema.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_AGGREGATE_EDGES    4096u
#define WEIR_AGGREGATE_LABELLED 256u /* a label is asked for of each neighbour */
/* A walk's bounds: the vertices of a step, and the edges of each. */
#define WEIR_AGGREGATE_WALK       64u
#define WEIR_AGGREGATE_WALK_EDGES 256u

typedef struct weir_aggregates weir_aggregates;

/* Schema and source are borrowed.  WEIR_ENOMEM.  [owner] */
weir_err weir_aggregates_open(const weir_schema *schema, weir_sample_source *source, weir_aggregates **aggregatesp);
/* NULL is allowed. */
void weir_aggregates_close(weir_aggregates *aggregates);
/* How many aggregates a vertex of this type has.  [any] */
uint32_t weir_aggregates_count(const weir_schema *schema, uint32_t vertex_type);
/* Of them the one that looks furthest from a target's ends, so that a target's differ from those of the same vertex
 * elsewhere; NULL: all are of the vertex itself.  [any] */
const weir_schema_aggregate *weir_aggregates_of_ends(const weir_schema *schema, uint32_t vertex_type);
/* So many hops from a target are the edges that an aggregate of ends looks at; 0: it is of the vertex itself.  [any] */
uint32_t weir_aggregates_hops(const weir_schema_aggregate *aggregate);
/* values: of->count × weir_aggregates_count, in the schema's order; NaN where there is none: mean and max of no number,
 * and what is said of a pair if the vertex is no target (of->events) or lacks an end. The first time takes memory.
 * WEIR_ENOMEM; WEIR_EINVAL an aggregate asks for labels and the source has none; errors of the source.  [owner] */
weir_err weir_aggregates_read(weir_aggregates *aggregates, const weir_sample_vertices *of, double *values);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_STORE_AGGREGATE_AGGREGATE_H */

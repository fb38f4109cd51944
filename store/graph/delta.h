/* SPDX-License-Identifier: Apache-2.0 */
/*
 * delta.h - the mutations of a shard since its last seal, in memory, indexed by vertex.
 *
 * What a vertex has is a few lists: one per (relation, direction), one of feature rows, one per label, one of bare
 * puts, one of notes. A list is an array in the order of the cold store's keys turned around, so that what streams in
 * mostly appends. The lists of a vertex are guarded by the stripe that the vertex hashes to.
 *
 * While a store is filled there are no readers of what is not sealed. Then the delta is a PILE: what an event brings
 * for a vertex is put down as it comes, and no read finds it; what belongs together is put together when it is sealed.
 *
 * LIFE: filled by one thread, its shard's owner or that of a repair; frozen (there are no more writers, and readers
 * need no lock); sealed; freed with the last reference. Nodes, lists and rows lie in one arena, given back at once.
 */
#ifndef WEIR_STORE_DELTA_H
#define WEIR_STORE_DELTA_H

#include <stdatomic.h>

#include <weir/store/base/arena.h>
#include <weir/store/base/thread.h>
#include <weir/store/format/entry.h>
#include <weir/store/format/mutation.h>

#include "bundling.h"

typedef struct weir_delta weir_delta;

/* With one reference. bytes_max: of the arena. In a pile readers find nothing.  WEIR_ENOMEM */
weir_err weir_delta_open(size_t bytes_max, bool pile, weir_delta **deltap);
weir_delta *weir_delta_keep(weir_delta *delta); /* [any] */
void weir_delta_release(weir_delta *delta);     /* NULL is allowed  [any] */

/* Mutations of this vertex follow soon: begins to fetch where it is looked for; once that is there, what the delta has
 * of it; and once that is there, its lists.  [owner] */
typedef enum weir_delta_stage { WEIR_DELTA_SLOT, WEIR_DELTA_NODE, WEIR_DELTA_LISTS } weir_delta_stage;
void weir_delta_ahead(const weir_delta *delta, weir_vertex vertex, weir_delta_stage stage);
/* Applies mutations that are of one vertex and one event, as one step for readers (GRAPH-S2).  WEIR_ENOMEM: the delta
 * is as before or holds some of them; applying them again is harmless (GRAPH-S4).  [owner] */
weir_err weir_delta_apply(weir_delta *delta, const weir_mutation *mutations, size_t count);
/* Remembers a vertex's deletion for the cold store; what it hides is deleted.h's.  WEIR_ENOMEM.  [owner] */
weir_err weir_delta_put_deletion(weir_delta *delta, weir_vertex vertex, int64_t time_us);
bool weir_delta_is_pile(const weir_delta *delta);   /* [any] */
void weir_delta_unpile(weir_delta *delta);          /* an empty one is for readers then  [owner] */
size_t weir_delta_bytes(const weir_delta *delta);   /* [any] */
size_t weir_delta_records(const weir_delta *delta); /* [any] */
/* From now on there are no more writers, and reads take no lock.  [owner] */
void weir_delta_freeze(weir_delta *delta);

/* Copies, newest first, up to capacity entries of a list that are older than before_us. *completep: there are no more
 * behind them. Rows stay in the delta: they live as long as the caller's reference.  [any] */
size_t weir_delta_collect(weir_delta *delta, weir_vertex vertex, weir_list id, int64_t before_us, weir_entry *entries,
                          size_t capacity, bool *completep);
/* How many entries of a list are older than before_us.  [any] */
size_t weir_delta_count(weir_delta *delta, weir_vertex vertex, weir_list id, int64_t before_us);
/* Whether a list has an entry, no deletion, of this span: older than before_us and newer than newer_than_us (the least
 * of int64: of any age); *time_usp: of the oldest.  [any] */
bool weir_delta_oldest(weir_delta *delta, weir_vertex vertex, weir_list id, int64_t newer_than_us, int64_t before_us,
                       int64_t *time_usp);
/* Whether the delta has a name for the vertex; the key is borrowed as the rows are.  [any] */
bool weir_delta_name(weir_delta *delta, weir_vertex vertex, weir_name *namep);

/* A frozen delta in the order of the cold store's keys: made once, and walked several times.  [owner]  WEIR_ENOMEM */
typedef struct weir_delta_order weir_delta_order;
weir_err weir_delta_order_open(const weir_delta *delta, weir_delta_order **orderp);
void weir_delta_order_close(weir_delta_order *order);
/* Keys and values of the cold store: bundles of all that the vertices have; and the deletions, which sort before those,
 * by a call of their own.  [owner]  WEIR_ENOMEM; what visit returns. */
weir_err weir_delta_order_walk(const weir_delta_order *order, weir_bundling_visit visit, void *context);
weir_err weir_delta_order_walk_deletions(const weir_delta_order *order, weir_bundling_visit visit, void *context);
/* The lists, oldest entry first, for the window cache.  [owner] */
typedef weir_err (*weir_delta_list_visit)(void *context, weir_vertex vertex, weir_list list, const weir_entry *entries,
                                          size_t count);
weir_err weir_delta_order_lists(const weir_delta_order *order, weir_delta_list_visit visit, void *context);

#endif /* WEIR_STORE_DELTA_H */

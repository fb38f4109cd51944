/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deleted.h - which vertices were deleted, and when: asked for every neighbour of every window.
 *
 * Each shard has all deletions, because any may hold an edge to any vertex, and all their times, so that the past can
 * be asked. They lie in its cold store; those that are not sealed yet lie here. Nearly all that is asked about was
 * never deleted, which a filter says, one for all shards, in memory that does not grow. Where that says "perhaps", a
 * table of some answers is asked, and what that does not know is looked up in the cold store.
 *
 *   add ──► filter, young ──(freeze)──► old ──(sealed)──► cold store
 */
#ifndef WEIR_STORE_DELETED_H
#define WEIR_STORE_DELETED_H

#include <stdint.h>

#include <weir/store/engine/engine.h>
#include <weir/store/graph/graph.h>

#include "deleted_filter.h"

typedef struct weir_deleted weir_deleted;

#define WEIR_DELETED_NEVER INT64_MIN

/* The engine is the shard's, the filter that of all shards; both are borrowed. Reads what was sealed.  WEIR_ENOMEM,
 * WEIR_ECORRUPT, WEIR_EIO */
weir_err weir_deleted_open(weir_engine *engine, weir_deleted_filter *filter, size_t answer_bytes,
                           weir_deleted **deletedp);
void weir_deleted_close(weir_deleted *deleted);

/* Twice counts once.  WEIR_ENOMEM.  [shard] */
weir_err weir_deleted_add(weir_deleted *deleted, weir_vertex vertex, int64_t time_us);
/* What was added is in the delta that was just frozen: all before it is sealed.  [shard] */
void weir_deleted_freeze(weir_deleted *deleted);
/* What was frozen is in the cold store.  [worker] */
void weir_deleted_sealed(weir_deleted *deleted);

/* A reader's questions, in one thread: what is looked up is looked up by one cursor. All zero but for the first two, or
 * three. */
typedef struct weir_deleted_look {
    weir_deleted *deleted;
    weir_graph_budget *budget;        /* NULL: any; a lookup takes the steps of a seek, of the past of two */
    const weir_engine_cursor *beside; /* one of the same shard that the reader holds; NULL: none */
    weir_engine_cursor *cursor;
    uint64_t seals;
} weir_deleted_look;
/* The newest deletion before before_us, or WEIR_DELETED_NEVER: what is of that time or older is hidden.  [owner]
 * WEIR_EBUSY, WEIR_ETIMEOUT as weir_graph_budget says; WEIR_ECORRUPT, WEIR_EIO, WEIR_ENOMEM. */
weir_err weir_deleted_time(weir_deleted_look *look, weir_vertex vertex, int64_t before_us, int64_t *time_usp);
void weir_deleted_look_end(weir_deleted_look *look);
/* What says of most that they were never deleted; borrowed.  [any] */
const weir_deleted_filter *weir_deleted_filter_of(const weir_deleted *deleted);
/* How many there are; one that comes twice may count twice until the store is opened again.  [any] */
uint64_t weir_deleted_count(const weir_deleted *deleted);

/* Every deletion of a shard, rising by vertex, the newest of a vertex first, each at least once.  [owner] */
typedef struct weir_deleted_walk weir_deleted_walk;
weir_err weir_deleted_walk_open(weir_deleted *deleted, weir_deleted_walk **walkp);
/* *foundp false: there are no more. */
weir_err weir_deleted_walk_next(weir_deleted_walk *walk, bool *foundp, weir_vertex *vertexp, int64_t *time_usp);
void weir_deleted_walk_close(weir_deleted_walk *walk);

#endif /* WEIR_STORE_DELETED_H */

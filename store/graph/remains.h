/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remains.h - what remains of lists of the cold store whose newest entries are mostly deleted.
 *
 * A reader of the newest edges passes all the deletions and what they hide, which may be many thousands, to find a few.
 * A window of the cache must hold all of them, because it answers as of any time. What is kept here answers only
 * questions as of a time at which all of the cold store's list is known, and so needs none of what is hidden.
 *
 * Of a list the newest entries that the cold store's own deletions leave, as of some time and with no edge older than
 * some other. A reader as of no earlier time, who wants nothing older, finds in them what is in the cold store for him:
 * what was hidden then is hidden now. He sees to two things himself: deletions of his deltas may hide some of them, and
 * an edge of his deltas that is no newer than the cold store's newest deletion may be hidden by a deletion that is not
 * kept.
 *
 * The cold store is that of a moment, so it goes by the epoch of the window cache: a fill carries the one of before its
 * scan, and a seal drops the lists that it has added to (cache.h has the race).
 */
#ifndef WEIR_STORE_REMAINS_H
#define WEIR_STORE_REMAINS_H

#include "cache.h"

#define WEIR_REMAINS_MAX       128u   /* entries of a list … */
#define WEIR_REMAINS_BYTES_MAX 32768u /* … and their bytes: some 200 of a row each */

typedef struct weir_remains weir_remains;

typedef struct weir_remains_span {
    int64_t before_us, newer_than_us; /* answers as of before_us or later, for edges newer than newer_than_us */
    int64_t deletion_us; /* of the newest deletion in the cold store; INT64_MIN: none has hidden anything         */
    bool complete;       /* there is nothing behind what is kept                                     */
} weir_remains_span;

/* cache: borrowed; its epoch is the one that fills carry.  WEIR_ENOMEM. */
weir_err weir_remains_open(size_t bytes_max, weir_cache *cache, weir_remains **remainsp);
void weir_remains_close(weir_remains *remains);
/* Rows are copied. Refused (without a word) when the epoch has passed, where what is kept says no less, or without
 * memory.  [any] */
void weir_remains_fill(weir_remains *remains, uint64_t epoch, weir_vertex vertex, weir_list list,
                       const weir_remains_span *span, const weir_entry *entries, size_t count);
/* Without a lock: whether it is worth to ask for what is kept of the list before anything else.  [any] */
bool weir_remains_may_have(weir_remains *remains, weir_vertex vertex, weir_list list);
/* false: nothing is kept of the list that answers the question. Else up to capacity entries; span->complete: behind
 * them there is nothing that is newer than newer_than_us.  [any] */
bool weir_remains_collect(weir_remains *remains, weir_vertex vertex, weir_list list, int64_t before_us,
                          int64_t newer_than_us, weir_entry *entries, size_t capacity, weir_cache_allocate allocate,
                          void *context, size_t *countp, weir_remains_span *spanp);

/* Up to `limit` edges in the arena with their rows; the last of them may be as old as newer_than_us. false: what is
 * kept does not answer the question, or the arena is full.  [any] */
bool weir_remains_edges(weir_remains *remains, weir_vertex vertex, weir_list list, int64_t before_us,
                        int64_t newer_than_us, size_t limit, weir_arena *arena, weir_edge **edgesp, uint32_t *countp);

/* Of which lists something may be kept: taken after weir_cache_sealed, as marks of the cache are.  [worker] */
typedef struct weir_remains_marks {
    bool any;
    uint64_t words[64];
} weir_remains_marks;
void weir_remains_marks_take(weir_remains *remains, weir_remains_marks *marks);
bool weir_remains_marks_may_have(const weir_remains_marks *marks, weir_vertex vertex, weir_list list);
/* The seal has added to the list.  [worker] */
void weir_remains_drop(weir_remains *remains, weir_vertex vertex, weir_list list);

#endif /* WEIR_STORE_REMAINS_H */

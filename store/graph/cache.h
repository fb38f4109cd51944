/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cache.h - the newest entries of the cold store's lists, of the vertices that are asked for.
 *
 * A cached window is what the cold store held, newest first, down to some entry; `complete` says that there is nothing
 * behind it. It never holds what is only in a delta, so it changes in two moments: when a reader fills it, and when a
 * seal has made a delta part of the cold store. It is as wide as what was filled in: a list of which a reader
 * wants more gets a wider window, and keeps it.
 *
 * THE RACE that the epoch is for: a reader scans the cold store, a seal then adds newer entries to it and finds no
 * window to update, the reader then stores what it had scanned: a window that lacks the newest entries, for ever. So a
 * fill carries the epoch of before its scan. A seal ends with three steps in this order: the file is in the cold store;
 * the epoch moves (sealed); each of its lists is added to its window (seal_list). A fill that comes before the epoch
 * moves is there to be updated; one that comes later is refused, or has scanned the new file already.
 */
#ifndef WEIR_STORE_CACHE_H
#define WEIR_STORE_CACHE_H

#include <weir/store/base/arena.h>
#include <weir/store/base/err.h>
#include <weir/store/format/entry.h>
#include <weir/store/graph/graph.h>

typedef struct weir_cache weir_cache;

typedef struct weir_cache_stats {
    uint64_t bytes, windows;          /* gauges; bytes of the share that were ever written to: they stay taken */
    uint64_t hits, misses, evictions; /* counters */
} weir_cache_stats;

static inline uint64_t weir_cache_mix(weir_vertex vertex, weir_list list) {
    uint64_t h = (weir_vertex_fold(vertex) ^ (uint64_t)list * 0x9e3779b97f4a7c15ull) * 0xd6e8feb86659fd93ull;
    return h ^ h >> 32;
}

/* bytes_max: all that windows and their tables ever take, a sixteenth at a time, from the first window on; what is not
 * written to yet, the system has not given.  width: entries that a list may grow to by seals, unless it was filled with
 * more.  WEIR_ENOMEM.  */
weir_err weir_cache_open(size_t bytes_max, uint32_t width, weir_cache **cachep);
void weir_cache_close(weir_cache *cache);

/* Before scanning the cold store.  [any] */
uint64_t weir_cache_epoch(weir_cache *cache);
/* Offers what a scan from the newest on gave; rows are copied. Refused (without a word) when the epoch has passed, when
 * the window knows as much already, when there is no memory, or when it would take more than its share.  [any] */
void weir_cache_fill(weir_cache *cache, uint64_t epoch, weir_vertex vertex, weir_list list, const weir_entry *entries,
                     size_t count, bool complete);
/* Whether the list has a window, of whatever width.  [any] */
bool weir_cache_has(weir_cache *cache, weir_vertex vertex, weir_list list);
typedef void *(*weir_cache_allocate)(void *context, size_t size);
/* Entries older than before_us, newest first; of those as old as newer_than_us, or older, one is enough (INT64_MIN: all
 * are wanted). */
typedef struct weir_cache_span {
    int64_t before_us, newer_than_us;
} weir_cache_span;
/* Copies up to capacity entries of the span, their rows into one block of allocate's. true: the answer stands, and
 * *completep says whether there is nothing behind it. false: *countp is how many entries the window has, which do not
 * reach that far, or for whose rows there is no memory; 0: it is not cached.  [any] */
bool weir_cache_collect(weir_cache *cache, weir_vertex vertex, weir_list list, weir_cache_span span,
                        weir_entry *entries, size_t capacity, weir_cache_allocate allocate, void *context,
                        size_t *countp, bool *completep);
/* Up to `limit` edges of the span in the arena with their rows: what weir_cache_collect gives, where that is the whole
 * answer. false: it is not cached, does not reach that far, has a deletion among them, or the arena is full;
 * weir_cache_collect says which.  [any] */
bool weir_cache_edges(weir_cache *cache, weir_vertex vertex, weir_list list, weir_cache_span span, size_t limit,
                      weir_arena *arena, weir_edge **edgesp, uint32_t *countp);
/* Before a reader collects from many windows: fetches where one is found, and some collects later the window itself,
 * with so many entries.  [any] */
typedef enum weir_cache_stage { WEIR_CACHE_SLOT, WEIR_CACHE_WINDOW } weir_cache_stage;
void weir_cache_ahead(const weir_cache *cache, weir_vertex vertex, weir_list list, size_t entries,
                      weir_cache_stage stage);
/* A delta has become part of the cold store: fills that scanned it earlier are refused from now on.  [worker] */
void weir_cache_sealed(weir_cache *cache);
/* A list that the seal has added to the cold store (oldest first): its window, if cached, gets them.  [worker] */
void weir_cache_seal_list(weir_cache *cache, weir_vertex vertex, weir_list list, const weir_entry *entries,
                          size_t count);
/* Which lists may have a window that a seal must update: taken after weir_cache_sealed, because windows that come later
 * have what was sealed. NULL: there was no memory, and any list may have one.  [worker] */
typedef struct weir_cache_marks weir_cache_marks;
weir_cache_marks *weir_cache_marks_take(weir_cache *cache);
bool weir_cache_marks_may_have(const weir_cache_marks *marks, weir_vertex vertex, weir_list list);
bool weir_cache_marks_any(const weir_cache_marks *marks);
void weir_cache_marks_free(weir_cache_marks *marks);
void weir_cache_stats_get(weir_cache *cache, weir_cache_stats *statsp); /* [any] */

#endif /* WEIR_STORE_CACHE_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cache.c - stripes of a chained hash table; what was not asked for since it was passed over makes room. No weir_table:
 * windows come and go all the time, and weir_cache_ahead looks at its places while they change.
 *
 * A window is one block: header, entries, rows. Updating one makes a new block: windows are short, and readers copy out
 * under the stripe's lock, so that there is never a pointer into a window outside of it. A hit changes one byte of the
 * window: to keep a list by last use it would have to fetch the neighbours of a window in that list, too.
 */
#include <stdatomic.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/thread.h>

#include "cache.h"

_Static_assert(sizeof(weir_entry) == 48, "deltas and windows are made of these: a word more is a third more memory");

#define STRIPES     16u /* few, so that a wide window is a small part of one */
#define BUCKETS_MIN 256u
#define CACHE_LINE  64u
#define SPARED_MAX  64u
#define AHEAD_LINES 12u /* most windows have no more, and of longer ones the processor fetches on by itself */
#define MARK_BITS   8u  /* a window: one list in eight is looked for in vain */

typedef struct cache_window {
    struct cache_window *chain;         /* same bucket          */
    struct cache_window *newer, *older; /* by when they came, or were spared last */
    bool used;                          /* since then                             */
    weir_vertex vertex;
    weir_list list;
    uint32_t count;
    bool complete;
    size_t bytes; /* of this block */
    weir_entry entries[];
} cache_window;

/* weir_cache_ahead reads them without the lock, so those that are replaced stay until the end: as much again. */
typedef struct cache_buckets {
    struct cache_buckets *smaller;
    size_t count;
    cache_window *_Atomic slots[];
} cache_buckets;

typedef struct cache_stripe {
    /* Changed under the lock, read without it by weir_cache_ahead: not beside the lock, which every reader writes. */
    _Alignas(CACHE_LINE) cache_buckets *_Atomic buckets;
    _Alignas(CACHE_LINE) weir_mutex mutex; /* guards all else */
    size_t window_count;
    cache_window *newest, *oldest;
    size_t bytes;
    weir_cache_stats stats; /* the counters */
} cache_stripe;

struct weir_cache {
    atomic_uint_fast64_t epoch;
    size_t stripe_bytes_max;
    uint32_t width;
    cache_stripe stripes[STRIPES];
};

uint64_t weir_cache_epoch(weir_cache *cache) {
    return atomic_load_explicit(&cache->epoch, memory_order_acquire);
}

void weir_cache_sealed(weir_cache *cache) {
    WEIR_ON_ROLE(WORKER);
    atomic_fetch_add_explicit(&cache->epoch, 1, memory_order_acq_rel);
}

/* --- the table of a stripe, changed under its lock -------------------------------------------------------------- */

static cache_stripe *cache_stripe_of(weir_cache *cache, weir_vertex vertex, weir_list list) {
    return &cache->stripes[weir_cache_mix(vertex, list) % STRIPES];
}

static cache_window *_Atomic *cache_slot_of(const cache_stripe *s, weir_vertex vertex, weir_list list) {
    cache_buckets *b = atomic_load_explicit(&s->buckets, memory_order_acquire);
    return &b->slots[(weir_cache_mix(vertex, list) >> 8) & (b->count - 1)];
}

static cache_window *cache_find(const cache_stripe *s, weir_vertex vertex, weir_list list) {
    cache_window *w = atomic_load_explicit(cache_slot_of(s, vertex, list), memory_order_relaxed);
    while (w && (w->vertex != vertex || w->list != list))
        w = w->chain;
    return w;
}

static void cache_use_unlink(cache_stripe *s, cache_window *w) {
    *(w->newer ? &w->newer->older : &s->newest) = w->older;
    *(w->older ? &w->older->newer : &s->oldest) = w->newer;
}

static void cache_use_push(cache_stripe *s, cache_window *w) {
    w->newer = NULL;
    w->older = s->newest;
    *(s->newest ? &s->newest->newer : &s->oldest) = w;
    s->newest = w;
}

static void cache_chain_push(const cache_stripe *s, cache_window *w) {
    cache_window *_Atomic *slot = cache_slot_of(s, w->vertex, w->list);
    w->chain = atomic_load_explicit(slot, memory_order_relaxed);
    atomic_store_explicit(slot, w, memory_order_relaxed);
}

static void cache_chain_unlink(const cache_stripe *s, const cache_window *w) {
    cache_window *_Atomic *slot = cache_slot_of(s, w->vertex, w->list);
    cache_window *at = atomic_load_explicit(slot, memory_order_relaxed);
    if (at == w) {
        atomic_store_explicit(slot, w->chain, memory_order_relaxed);
        return;
    }
    while (at->chain != w)
        at = at->chain;
    at->chain = w->chain;
}

static void cache_window_remove(cache_stripe *s, cache_window *w) {
    WEIR_ASSERT(weir_mutex_held(&s->mutex) && s->bytes >= w->bytes && s->window_count > 0);
    cache_chain_unlink(s, w);
    cache_use_unlink(s, w);
    s->bytes -= w->bytes;
    s->window_count--;
    weir_free(w);
}

/* Without memory for more buckets the chains get longer, that is all. */
static bool cache_buckets_grow(cache_stripe *s) {
    cache_buckets *old = atomic_load_explicit(&s->buckets, memory_order_relaxed);
    size_t count = old ? old->count * 2 : BUCKETS_MIN;
    cache_buckets *grown = weir_calloc(1, sizeof *grown + count * sizeof grown->slots[0]);
    if (!grown) return false;
    grown->smaller = old;
    grown->count = count;
    atomic_store_explicit(&s->buckets, grown, memory_order_release);
    for (cache_window *w = s->newest; w; w = w->older)
        cache_chain_push(s, w);
    return true;
}

/* Those that were used since they were passed over are spared once more, but few at a time: readers wait. */
static void cache_make_room(const weir_cache *cache, cache_stripe *s, size_t bytes) {
    unsigned spared = 0;
    while (s->oldest && s->bytes + bytes > cache->stripe_bytes_max) { /* GRAPH-S6 */
        cache_window *w = s->oldest;
        if (w->used && spared++ < SPARED_MAX) {
            w->used = false;
            cache_use_unlink(s, w);
            cache_use_push(s, w);
        } else {
            s->stats.evictions++;
            cache_window_remove(s, w);
        }
    }
}

static void cache_window_add(const weir_cache *cache, cache_stripe *s, cache_window *w) {
    WEIR_ASSERT(weir_mutex_held(&s->mutex));
    cache_make_room(cache, s, w->bytes);
    if (s->window_count > s->buckets->count) (void)cache_buckets_grow(s);
    cache_chain_push(s, w);
    cache_use_push(s, w);
    s->bytes += w->bytes;
    s->window_count++;
}

/* --- opening and closing ---------------------------------------------------------------------------------------- */

weir_err weir_cache_open(size_t bytes_max, uint32_t width, weir_cache **cachep) {
    *cachep = NULL;
    weir_cache *cache = weir_aligned_alloc(_Alignof(weir_cache), sizeof *cache);
    if (!cache) return WEIR_NOMEM("for a window cache");
    memset(cache, 0, sizeof *cache);
    cache->stripe_bytes_max = bytes_max / STRIPES;
    cache->width = width;
    bool fits = true;
    for (size_t i = 0; i < STRIPES; i++) {
        cache_stripe *s = &cache->stripes[i];
        weir_mutex_init(&s->mutex, WEIR_RANK_LEAF, "window cache stripe");
        fits = fits && cache_buckets_grow(s);
    }
    if (!fits) {
        weir_cache_close(cache);
        return WEIR_NOMEM("for a window cache");
    }
    *cachep = cache;
    return WEIR_OK;
}

void weir_cache_close(weir_cache *cache) {
    if (!cache) return;
    for (size_t i = 0; i < STRIPES; i++) {
        cache_stripe *s = &cache->stripes[i];
        for (cache_window *w = s->newest, *older; w; w = older) {
            older = w->older;
            weir_free(w);
        }
        for (cache_buckets *b = s->buckets, *smaller; b; b = smaller) {
            smaller = b->smaller;
            weir_free(b);
        }
        weir_mutex_destroy(&s->mutex);
    }
    weir_free(cache);
}

/* --- windows ---------------------------------------------------------------------------------------------------- */

/* NULL when it would be too large, or when there is no memory: a cache may always forget. */
static cache_window *cache_window_new(const weir_cache *cache, weir_vertex vertex, weir_list list,
                                      const weir_entry *entries, size_t count, bool complete) {
    size_t bytes = sizeof(cache_window) + count * sizeof *entries + weir_entries_row_bytes(entries, count);
    if (bytes > cache->stripe_bytes_max / 2) return NULL;
    cache_window *w = weir_malloc(bytes);
    if (!w) return NULL;
    *w = (cache_window){.vertex = vertex, .list = list, .count = (uint32_t)count, .complete = complete, .bytes = bytes};
    if (count) memcpy(w->entries, entries, count * sizeof *entries);
    weir_entries_own_rows(w->entries, count, (uint8_t *)&w->entries[count]);
    return w;
}

void weir_cache_fill(weir_cache *cache, uint64_t epoch, weir_vertex vertex, weir_list list, const weir_entry *entries,
                     size_t count, bool complete) {
    cache_window *w = cache_window_new(cache, vertex, list, entries, count, complete);
    cache_stripe *s = cache_stripe_of(cache, vertex, list);
    if (!w) return;
    weir_mutex_lock(&s->mutex);
    cache_window *old = cache_find(s, vertex, list);
    bool knows_more = !old || old->count < w->count || (w->complete && !old->complete);
    if (weir_cache_epoch(cache) == epoch && knows_more) { /* GRAPH-S5 */
        if (old) w->used = old->used;
        if (old) cache_window_remove(s, old);
        cache_window_add(cache, s, w);
        w = NULL;
    }
    weir_mutex_unlock(&s->mutex);
    weir_free(w);
}

/* First entry older than before_us. */
static uint32_t cache_place_before(const cache_window *w, int64_t before_us) {
    uint32_t low = 0, high = w->count;
    if (high == 0 || w->entries[0].time_us < before_us) return 0;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (w->entries[middle].time_us >= before_us) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

bool weir_cache_copy(const weir_entry *from, size_t count, weir_entry *entries, weir_cache_allocate allocate,
                     void *context) {
    if (count) memcpy(entries, from, count * sizeof *entries);
    size_t bytes = weir_entries_row_bytes(entries, count);
    uint8_t *rows = bytes ? allocate(context, bytes) : NULL;
    if (rows) weir_entries_own_rows(entries, count, rows);
    return rows || bytes == 0;
}

bool weir_cache_collect(weir_cache *cache, weir_vertex vertex, weir_list list, int64_t before_us, weir_entry *entries,
                        size_t capacity, weir_cache_allocate allocate, void *context, size_t *countp, bool *completep) {
    cache_stripe *s = cache_stripe_of(cache, vertex, list);
    bool answered = false;
    *countp = 0;
    weir_mutex_lock(&s->mutex);
    cache_window *w = cache_find(s, vertex, list);
    if (w) {
        uint32_t from = cache_place_before(w, before_us);
        WEIR_ASSERT(from <= w->count);
        size_t count = w->count - from < capacity ? w->count - from : capacity;
        bool reaches = w->complete || count == capacity;
        if (reaches && weir_cache_copy(&w->entries[from], count, entries, allocate, context)) {
            *countp = count;
            *completep = w->complete && from + count == w->count;
            answered = true;
            if (!w->used) w->used = true;
        } else {
            *countp = w->count;
        }
    }
    *(answered ? &s->stats.hits : &s->stats.misses) += 1;
    weir_mutex_unlock(&s->mutex);
    return answered;
}

void weir_cache_ahead(const weir_cache *cache, weir_vertex vertex, weir_list list, size_t entries,
                      weir_cache_stage stage) {
    cache_window *_Atomic *slot = cache_slot_of(&cache->stripes[weir_cache_mix(vertex, list) % STRIPES], vertex, list);
    if (stage == WEIR_CACHE_SLOT) {
        __builtin_prefetch(slot);
        return;
    }
    const char *at = (const char *)atomic_load_explicit(slot, memory_order_relaxed); /* it may be gone by now */
    size_t lines = 2 + entries * sizeof(weir_entry) / CACHE_LINE;
    for (size_t i = 0; at && i < lines && i < AHEAD_LINES; i++)
        __builtin_prefetch(at + i * CACHE_LINE);
}

/* Merges the window with the added list, which is oldest first, newest first into merged. An added record replaces its
 * equal. */
static size_t cache_merge(const cache_window *w, const weir_entry *added, size_t added_count, weir_entry *merged,
                          size_t capacity) {
    size_t count = 0, i = 0, j = added_count;
    while (count < capacity && (i < w->count || j > 0)) {
        int order = i == w->count ? 1 : j == 0 ? -1 : weir_entry_order(&w->entries[i], &added[j - 1]);
        if (order < 0) {
            merged[count++] = w->entries[i++];
            continue;
        }
        /* Behind the end of a window that is not complete there may be entries that it does not know. */
        if (i == w->count && !w->complete) break;
        merged[count++] = added[--j];
        if (order == 0) i++;
    }
    WEIR_ASSERT(count <= capacity);
    return count;
}

void weir_cache_seal_list(weir_cache *cache, weir_vertex vertex, weir_list list, const weir_entry *entries,
                          size_t count) {
    cache_stripe *s = cache_stripe_of(cache, vertex, list);
    weir_mutex_lock(&s->mutex);
    cache_window *w = cache_find(s, vertex, list);
    if (w) { /* without memory for its successor it is forgotten */
        size_t capacity = w->count > cache->width ? w->count : cache->width;
        weir_entry *merged = weir_malloc(capacity * sizeof *merged);
        cache_window *updated = NULL;
        if (merged) {
            size_t merged_count = cache_merge(w, entries, count, merged, capacity);
            bool complete = w->complete && merged_count < capacity;
            updated = cache_window_new(cache, vertex, list, merged, merged_count, complete);
        }
        if (updated) updated->used = w->used;
        cache_window_remove(s, w);
        if (updated) cache_window_add(cache, s, updated);
        weir_free(merged);
    }
    weir_mutex_unlock(&s->mutex);
}

/* --- marks ------------------------------------------------------------------------------------------------------ */

struct weir_cache_marks {
    bool any;
    size_t bits; /* a power of two */
    uint64_t words[];
};

static size_t cache_mark_of(const weir_cache_marks *marks, weir_vertex vertex, weir_list list) {
    return (size_t)(weir_cache_mix(vertex, list) >> 8) & (marks->bits - 1);
}

weir_cache_marks *weir_cache_marks_take(weir_cache *cache) {
    WEIR_ON_ROLE(WORKER);
    size_t bits = 64;
    weir_cache_stats stats;
    weir_cache_stats_get(cache, &stats);
    while (bits < stats.windows * MARK_BITS)
        bits *= 2;
    weir_cache_marks *marks = weir_calloc(1, sizeof *marks + bits / 8);
    if (!marks) return NULL;
    marks->bits = bits;
    for (size_t i = 0; i < STRIPES; i++) {
        cache_stripe *s = &cache->stripes[i];
        weir_mutex_lock(&s->mutex);
        for (const cache_window *w = s->newest; w; w = w->older) {
            size_t mark = cache_mark_of(marks, w->vertex, w->list);
            marks->words[mark / 64] |= 1ull << mark % 64;
            marks->any = true;
        }
        weir_mutex_unlock(&s->mutex);
    }
    return marks;
}

bool weir_cache_marks_may_have(const weir_cache_marks *marks, weir_vertex vertex, weir_list list) {
    if (!marks) return true;
    size_t mark = cache_mark_of(marks, vertex, list);
    return marks->words[mark / 64] >> mark % 64 & 1;
}

bool weir_cache_marks_any(const weir_cache_marks *marks) {
    return !marks || marks->any;
}

void weir_cache_marks_free(weir_cache_marks *marks) {
    weir_free(marks);
}

void weir_cache_stats_get(weir_cache *cache, weir_cache_stats *statsp) {
    memset(statsp, 0, sizeof *statsp);
    for (size_t i = 0; i < STRIPES; i++) {
        cache_stripe *s = &cache->stripes[i];
        weir_mutex_lock(&s->mutex);
        statsp->bytes += s->bytes;
        statsp->windows += s->window_count;
        statsp->hits += s->stats.hits;
        statsp->misses += s->stats.misses;
        statsp->evictions += s->stats.evictions;
        weir_mutex_unlock(&s->mutex);
    }
}

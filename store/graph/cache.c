/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cache.c - stripes of a hash table over a ring; what was not asked for since it was passed over makes room. No
 * weir_table: windows come and go all the time, and weir_cache_ahead looks at its places while they change.
 *
 * The memory of a stripe is one piece, and all that it ever takes: windows in a ring from its beginning, the table at
 * its end. A table that becomes larger takes its room from the ring.
 *
 *     ├─ ring of windows ──────────────►          ◄─── table ─┤
 *
 * A window is one block: header, edges, what else there is of each entry, rows. Who reads many windows waits for their
 * lines more than for anything else, so what an answer needs of every edge stands together, in front.
 * Updating one makes a new block: windows are short, and readers copy out under the stripe's lock, so that there is
 * never a pointer into a window outside of it. Therefore a window may move: one that was used goes to the newest end of
 * the ring when it has become the oldest. A hit changes one byte of the window.
 *
 * The block that was replaced stays in the ring until it is the oldest. While such blocks are more than a fourth of the
 * ring, the oldest windows move on even if nobody has used them, because others are to make room.
 */
#include <stdatomic.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/thread.h>

#include "cache.h"
#include "ring.h"

_Static_assert(sizeof(weir_entry) == 48, "deltas are made of these: a word more is a third more memory");

#define STRIPES     16u /* few, so that a wide window is a small part of one */
#define SLOTS_MIN   64u
#define SLOTS_AHEAD 8u /* are looked at by who looks ahead: most lists stand in the first or the second */
#define CACHE_LINE  64u
#define DEAD_SHARE  4u           /* more of a ring than one in so many was replaced: windows move, used or not */
#define MOVED_MAX   (128u << 10) /* bytes, to make room for one window: readers wait */
#define AHEAD_LINES 12u          /* most windows have no more, and of longer ones the processor fetches on by itself */
#define MARK_BITS   8u           /* a window: one list in eight is looked for in vain */

/* What a reader is told of an edge that has no row. */
typedef struct cache_edge {
    weir_vertex neighbor;
    int64_t time_us;
    uint64_t event;
} cache_edge;

/* The rest of its entry; in a window without rows and deletions there is the content alone. */
typedef struct cache_rest {
    uint32_t content;
    uint32_t row; /* where it begins in the window's rows */
    uint32_t row_length : 31, deletion : 1;
} cache_rest;

_Static_assert(sizeof(cache_edge) == 32 && sizeof(cache_rest) == 12, "windows are made of these");

typedef struct cache_window {
    weir_ring_block block;
    weir_list list;
    uint32_t count : 29;
    uint32_t complete : 1;
    uint32_t plain : 1; /* no rows and no deletions  */
    uint32_t used : 1;  /* since it came or was spared */
    weir_vertex vertex;
    cache_edge edges[]; /* behind them: as many contents, if it is plain, else rests, then the rows */
} cache_window;

_Static_assert(sizeof(cache_window) == 32, "of a window of one edge it is two fifths");

/* In the upper half bits of the hash, so that no other window is looked at to find one; in the lower half where its
 * window begins, in units of WEIR_RING_ALIGNMENT, and 1 more. 0: free. */
typedef atomic_uint_fast64_t cache_slot;

#define STRIPE_BYTES_MAX ((size_t)(UINT32_MAX - 1) * WEIR_RING_ALIGNMENT)
#define STRIPE_BYTES_MIN (4 * SLOTS_MIN * sizeof(cache_slot))

typedef struct cache_stripe {
    /* Changed under the lock, read without it by weir_cache_ahead: not beside the lock, which every reader writes. */
    _Alignas(CACHE_LINE) atomic_size_t slot_count; /* a power of two; 0: no window came yet, and there is no memory */
    uint8_t *memory;                               /* cache.stripe_bytes, from the first window on */
    cache_slot *slots_end;
    _Alignas(CACHE_LINE) weir_mutex mutex; /* guards all else */
    weir_ring ring;
    size_t window_count;    /* at least a fourth of the slots are free: every search ends, and soon */
    weir_cache_stats stats; /* the counters */
} cache_stripe;

struct weir_cache {
    atomic_uint_fast64_t epoch;
    size_t stripe_bytes;
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

/* As it was at a moment. What a larger one has taken over keeps its place in it, so who looks ahead in an older one
 * finds slots, if not the right ones. */
typedef struct cache_table {
    uint8_t *memory;
    cache_slot *slots;
    size_t count;
} cache_table;

static cache_stripe *cache_stripe_of(weir_cache *cache, uint64_t hash) {
    return &cache->stripes[hash % STRIPES];
}

static cache_table cache_table_of(const cache_stripe *s) {
    size_t count = atomic_load_explicit(&s->slot_count, memory_order_acquire);
    if (count == 0) return (cache_table){0};
    return (cache_table){s->memory, s->slots_end - count, count};
}

static uint32_t cache_tag_of(uint64_t hash) {
    return (uint32_t)(hash >> 8);
}

static size_t cache_home_of(cache_table t, uint32_t tag) {
    return tag & (t.count - 1);
}

static uint64_t cache_slot_at(cache_table t, size_t at) {
    return atomic_load_explicit(&t.slots[at & (t.count - 1)], memory_order_relaxed);
}

static cache_window *cache_window_of(cache_table t, uint64_t slot) {
    return (cache_window *)(void *)(t.memory + ((uint32_t)slot - 1) * (size_t)WEIR_RING_ALIGNMENT);
}

static void cache_slot_set(cache_table t, size_t at, uint64_t slot) {
    atomic_store_explicit(&t.slots[at & (t.count - 1)], slot, memory_order_relaxed);
}

/* The slot of a list's window, or the free one where it belongs. */
static size_t cache_place_of(cache_table t, uint64_t hash, weir_vertex vertex, weir_list list) {
    const uint32_t tag = cache_tag_of(hash);
    for (size_t at = cache_home_of(t, tag);; at++) {
        uint64_t slot = cache_slot_at(t, at);
        if (!slot) return at;
        if (slot >> 32 != tag) continue;
        const cache_window *w = cache_window_of(t, slot);
        if (w->vertex == vertex && w->list == list) return at;
    }
}

static cache_window *cache_find(const cache_stripe *s, uint64_t hash, weir_vertex vertex, weir_list list) {
    const cache_table t = cache_table_of(s);
    uint64_t slot = t.count ? cache_slot_at(t, cache_place_of(t, hash, vertex, list)) : 0;
    return slot ? cache_window_of(t, slot) : NULL;
}

static size_t cache_place_of_window(cache_table t, const cache_window *w) {
    return cache_place_of(t, weir_cache_mix(w->vertex, w->list), w->vertex, w->list);
}

static void cache_slot_fill(cache_table t, size_t at, const cache_window *w) {
    const uint64_t place = (uint64_t)((const uint8_t *)w - t.memory) / WEIR_RING_ALIGNMENT + 1;
    cache_slot_set(t, at, (uint64_t)cache_tag_of(weir_cache_mix(w->vertex, w->list)) << 32 | place);
}

/* The window of a slot. What stands behind the slot moves up, if a search for it passes the hole. */
static void cache_window_remove(cache_stripe *s, size_t hole) {
    const cache_table t = cache_table_of(s);
    const size_t mask = t.count - 1;
    uint64_t slot = cache_slot_at(t, hole);
    WEIR_ASSERT(weir_mutex_held(&s->mutex) && s->window_count > 0 && slot);
    cache_window *w = cache_window_of(t, slot);
    for (size_t at = hole + 1; (slot = cache_slot_at(t, at)) != 0; at++) {
        if (((at - cache_home_of(t, (uint32_t)(slot >> 32))) & mask) < ((at - hole) & mask)) continue;
        cache_slot_set(t, hole, slot);
        hole = at;
    }
    cache_slot_set(t, hole, 0);
    s->window_count--;
    weir_ring_drop(&s->ring, &w->block);
}

/* --- the ring of a stripe --------------------------------------------------------------------------------------- */

/* Of the first window: there is memory, and a table in it. */
static bool cache_stripe_begin(const weir_cache *cache, cache_stripe *s) {
    const size_t table_bytes = SLOTS_MIN * sizeof(cache_slot);
    if (cache_table_of(s).count) return true;
    s->memory = weir_aligned_alloc(CACHE_LINE, cache->stripe_bytes);
    if (!s->memory) return false;
    s->slots_end = (cache_slot *)(void *)(s->memory + cache->stripe_bytes);
    memset(s->slots_end - SLOTS_MIN, 0, table_bytes);
    weir_ring_open(&s->ring, s->memory, cache->stripe_bytes - table_bytes);
    atomic_store_explicit(&s->slot_count, SLOTS_MIN, memory_order_release);
    return true;
}

/* The oldest block moves on, or goes. */
static void cache_oldest_pass(cache_stripe *s, size_t *movedp) {
    weir_ring *ring = &s->ring;
    cache_window *oldest = weir_ring_oldest(ring);
    WEIR_ASSERT(oldest); /* an empty ring has room for any window: each takes at most half of the stripe */
    bool crowded = ring->held - ring->live > ring->end / DEAD_SHARE;
    if (!oldest->block.live) {
        weir_ring_pass(ring);
        return;
    }
    const cache_table t = cache_table_of(s);
    const size_t at = cache_place_of_window(t, oldest);
    if (*movedp < MOVED_MAX && (oldest->used || crowded)) {
        oldest->used = false;
        *movedp += oldest->block.bytes;
        cache_slot_fill(t, at, weir_ring_renew(ring));
    } else {
        s->stats.evictions++;
        cache_window_remove(s, at);
    }
}

/* The table has so many slots now, in front of those that there were; what is live in the ring fits into what is left
 * of it. */
static void cache_slots_grow(cache_stripe *s, size_t count, size_t ring_bytes) {
    const cache_table t = {s->memory, s->slots_end - count, count};
    weir_ring_shrink(&s->ring, ring_bytes);
    for (size_t at = 0; at < count; at++)
        cache_slot_set(t, at, 0);
    for (const cache_window *w = weir_ring_oldest(&s->ring); w; w = weir_ring_next(&s->ring, w))
        cache_slot_fill(t, cache_place_of_window(t, w), w);
    atomic_store_explicit(&s->slot_count, count, memory_order_release);
}

/* A copy of the window, in the ring, in the place of the one that the list has. Where three of four slots are taken the
 * table doubles: three windows take at least 24 bytes a slot in the ring, so the table, of 8 bytes a slot, was at most
 * a fourth of the stripe, and is at most half of it then. */
static void cache_window_put(const weir_cache *cache, cache_stripe *s, cache_window *old, cache_window *w) {
    WEIR_ASSERT(weir_mutex_held(&s->mutex));
    const size_t bytes = w->block.bytes;
    cache_window *copy;
    size_t moved = 0;
    if (old) w->used = old->used;
    if (old && old->block.bytes == bytes) {
        w->block = old->block;
        memcpy(old, w, bytes);
        return;
    }
    if (old) cache_window_remove(s, cache_place_of_window(cache_table_of(s), old));
    const size_t slots = cache_table_of(s).count;
    if (s->window_count >= slots / 4 * 3) {
        const size_t ring_bytes = cache->stripe_bytes - 2 * slots * sizeof(cache_slot);
        while (s->ring.live > ring_bytes)
            cache_oldest_pass(s, &moved);
        cache_slots_grow(s, 2 * slots, ring_bytes);
    }
    while (!(copy = weir_ring_add(&s->ring, bytes))) /* GRAPH-S6 */
        cache_oldest_pass(s, &moved);
    w->block = copy->block;
    memcpy(copy, w, bytes);
    const cache_table t = cache_table_of(s);
    cache_slot_fill(t, cache_place_of_window(t, copy), copy);
    s->window_count++;
}

/* --- opening and closing ---------------------------------------------------------------------------------------- */

weir_err weir_cache_open(size_t bytes_max, uint32_t width, weir_cache **cachep) {
    *cachep = NULL;
    weir_cache *cache = weir_aligned_alloc(_Alignof(weir_cache), sizeof *cache);
    if (!cache) return WEIR_NOMEM("for a window cache");
    memset(cache, 0, sizeof *cache);
    cache->stripe_bytes = bytes_max / STRIPES < STRIPE_BYTES_MAX ? bytes_max / STRIPES : STRIPE_BYTES_MAX;
    cache->stripe_bytes -= cache->stripe_bytes % CACHE_LINE;
    if (cache->stripe_bytes < STRIPE_BYTES_MIN) cache->stripe_bytes = 0; /* which holds no window */
    cache->width = width;
    for (size_t i = 0; i < STRIPES; i++)
        weir_mutex_init(&cache->stripes[i].mutex, WEIR_RANK_LEAF, "window cache stripe");
    *cachep = cache;
    return WEIR_OK;
}

void weir_cache_close(weir_cache *cache) {
    if (!cache) return;
    for (size_t i = 0; i < STRIPES; i++) {
        cache_stripe *s = &cache->stripes[i];
        weir_ring_close(&s->ring);
        weir_free(s->memory);
        weir_mutex_destroy(&s->mutex);
    }
    weir_free(cache);
}

/* --- windows ---------------------------------------------------------------------------------------------------- */

static uint32_t *cache_contents_of(cache_window *w) {
    WEIR_ASSERT(w->plain);
    return (uint32_t *)&w->edges[w->count];
}

static cache_rest *cache_rests_of(cache_window *w) {
    WEIR_ASSERT(!w->plain);
    return (cache_rest *)&w->edges[w->count];
}

static uint8_t *cache_rows_of(cache_window *w) {
    return (uint8_t *)&cache_rests_of(w)[w->count];
}

/* With its row in the window. */
static weir_entry cache_entry_at(cache_window *w, size_t at) {
    const cache_edge *edge = &w->edges[at];
    weir_entry e = {.neighbor = edge->neighbor, .time_us = edge->time_us, .event = edge->event};
    if (w->plain) {
        e.content = cache_contents_of(w)[at];
        return e;
    }
    const cache_rest *rest = &cache_rests_of(w)[at];
    e.content = rest->content;
    e.row_length = rest->row_length;
    e.deletion = rest->deletion;
    if (rest->row_length) e.row = cache_rows_of(w) + rest->row;
    return e;
}

static void cache_entry_set(cache_window *w, size_t at, const weir_entry *e, uint32_t row) {
    w->edges[at] = (cache_edge){e->neighbor, e->time_us, e->event};
    if (w->plain) {
        cache_contents_of(w)[at] = e->content;
        return;
    }
    cache_rests_of(w)[at] = (cache_rest){e->content, row, e->row_length, e->deletion};
    if (e->row_length) memcpy(cache_rows_of(w) + row, e->row, e->row_length);
}

/* NULL when it would be too large, or when there is no memory: a cache may always forget. */
static cache_window *cache_window_new(const weir_cache *cache, weir_vertex vertex, weir_list list,
                                      const weir_entry *entries, size_t count, bool complete) {
    size_t row_bytes = weir_entries_row_bytes(entries, count);
    bool plain = row_bytes == 0;
    for (size_t i = 0; plain && i < count; i++)
        plain = !entries[i].deletion;
    size_t bytes = sizeof(cache_window) + row_bytes +
                   count * (sizeof(cache_edge) + (plain ? sizeof(uint32_t) : sizeof(cache_rest)));
    bytes = weir_ring_round(bytes);
    if (bytes > cache->stripe_bytes / 2 || bytes > UINT32_MAX) return NULL;
    cache_window *w = weir_malloc(bytes);
    if (!w) return NULL;
    *w = (cache_window){.block = {.bytes = (uint32_t)bytes},
                        .list = list,
                        .count = (uint32_t)count & 0x1fffffff,
                        .complete = complete,
                        .plain = plain,
                        .vertex = vertex};
    for (size_t i = 0, row = 0; i < count; row += entries[i++].row_length)
        cache_entry_set(w, i, &entries[i], (uint32_t)row);
    return w;
}

void weir_cache_fill(weir_cache *cache, uint64_t epoch, weir_vertex vertex, weir_list list, const weir_entry *entries,
                     size_t count, bool complete) {
    uint64_t hash = weir_cache_mix(vertex, list);
    cache_window *w = cache_window_new(cache, vertex, list, entries, count, complete);
    cache_stripe *s = cache_stripe_of(cache, hash);
    if (!w) return;
    weir_mutex_lock(&s->mutex);
    cache_window *old = cache_find(s, hash, vertex, list);
    bool knows_more = !old || old->count < w->count || (w->complete && !old->complete);
    if (weir_cache_epoch(cache) == epoch && knows_more && cache_stripe_begin(cache, s)) /* GRAPH-S5 */
        cache_window_put(cache, s, old, w);
    weir_mutex_unlock(&s->mutex);
    weir_free(w);
}

bool weir_cache_has(weir_cache *cache, weir_vertex vertex, weir_list list) {
    uint64_t hash = weir_cache_mix(vertex, list);
    cache_stripe *s = cache_stripe_of(cache, hash);
    weir_mutex_lock(&s->mutex);
    bool has = cache_find(s, hash, vertex, list) != NULL;
    weir_mutex_unlock(&s->mutex);
    return has;
}

/* First entry older than before_us, from `low` on. */
static uint32_t cache_place_before(const cache_window *w, uint32_t low, int64_t before_us) {
    uint32_t high = w->count;
    if (high == low || w->edges[low].time_us < before_us) return low;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (w->edges[middle].time_us >= before_us) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* Whether entries of a window answer a question for so many of a span, and which those are. */
static bool cache_reaches(const cache_window *w, weir_cache_span span, size_t capacity, size_t *fromp, size_t *countp) {
    const uint32_t from = cache_place_before(w, 0, span.before_us);
    uint32_t count = w->count - from;
    bool ends = false;
    WEIR_ASSERT(from <= w->count);
    if (span.newer_than_us != INT64_MIN && count && w->edges[w->count - 1].time_us <= span.newer_than_us) {
        ends = true;
        count = 1;
        if (span.newer_than_us < INT64_MAX) count += cache_place_before(w, from, span.newer_than_us + 1) - from;
    }
    *fromp = from;
    *countp = count < capacity ? count : capacity;
    return w->complete || ends || *countp == capacity;
}

bool weir_cache_collect(weir_cache *cache, weir_vertex vertex, weir_list list, weir_cache_span span,
                        weir_entry *entries, size_t capacity, weir_cache_allocate allocate, void *context,
                        size_t *countp, bool *completep) {
    uint64_t hash = weir_cache_mix(vertex, list);
    cache_stripe *s = cache_stripe_of(cache, hash);
    bool answered = false;
    *countp = 0;
    weir_mutex_lock(&s->mutex);
    cache_window *w = cache_find(s, hash, vertex, list);
    if (w) {
        size_t from, count, row_bytes = 0;
        answered = cache_reaches(w, span, capacity, &from, &count);
        for (size_t i = 0; answered && i < count; i++) {
            entries[i] = cache_entry_at(w, from + i);
            row_bytes += entries[i].row_length;
        }
        uint8_t *rows = answered && row_bytes ? allocate(context, row_bytes) : NULL;
        if (rows) weir_entries_own_rows(entries, count, rows);
        answered = answered && (rows || row_bytes == 0);
        *countp = answered ? count : w->count;
        *completep = w->complete && from + count == w->count;
        if (answered && !w->used) w->used = true;
    }
    *(answered ? &s->stats.hits : &s->stats.misses) += 1;
    weir_mutex_unlock(&s->mutex);
    return answered;
}

/* Rows lie one behind the other, so those of a part of a window do, too. */
static bool cache_edges_with_rows(cache_window *w, size_t from, size_t count, weir_arena *arena, weir_edge *edges) {
    const cache_rest *rests = cache_rests_of(w) + from;
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++) {
        if (rests[i].deletion) return false;
        bytes += rests[i].row_length;
    }
    uint8_t *rows = bytes ? weir_arena_alloc_aligned(arena, 1, bytes) : NULL;
    if (bytes && !rows) return false;
    if (bytes) memcpy(rows, cache_rows_of(w) + rests[0].row, bytes);
    for (size_t i = 0; i < count; i++) {
        const cache_edge *e = &w->edges[from + i];
        const uint8_t *row = rests[i].row_length ? rows + (rests[i].row - rests[0].row) : NULL;
        edges[i] = (weir_edge){e->neighbor, e->time_us, e->event, row, rests[i].row_length};
    }
    return true;
}

bool weir_cache_edges(weir_cache *cache, weir_vertex vertex, weir_list list, weir_cache_span span, size_t limit,
                      weir_arena *arena, weir_edge **edgesp, uint32_t *countp) {
    uint64_t hash = weir_cache_mix(vertex, list);
    cache_stripe *s = cache_stripe_of(cache, hash);
    size_t from = 0, count = 0;
    weir_edge *edges = NULL;
    bool answered = false;
    weir_mutex_lock(&s->mutex);
    cache_window *w = cache_find(s, hash, vertex, list);
    if (w && cache_reaches(w, span, limit, &from, &count)) edges = weir_arena_alloc(arena, count * sizeof *edges);
    if (edges && w->plain) {
        for (size_t i = 0; i < count; i++) {
            const cache_edge *e = &w->edges[from + i];
            edges[i] = (weir_edge){e->neighbor, e->time_us, e->event, NULL, 0};
        }
        answered = true;
    } else if (edges) {
        answered = cache_edges_with_rows(w, from, count, arena, edges);
    }
    if (answered && !w->used) w->used = true;
    s->stats.hits += answered;
    weir_mutex_unlock(&s->mutex);
    *edgesp = edges;
    *countp = (uint32_t)count;
    return answered;
}

void weir_cache_ahead(const weir_cache *cache, weir_vertex vertex, weir_list list, size_t entries,
                      weir_cache_stage stage) {
    uint64_t hash = weir_cache_mix(vertex, list);
    const cache_table t = cache_table_of(&cache->stripes[hash % STRIPES]);
    const uint32_t tag = cache_tag_of(hash);
    size_t home = cache_home_of(t, tag), bytes = sizeof(cache_window) + entries * sizeof(cache_edge);
    if (t.count == 0) return;
    if (stage == WEIR_CACHE_SLOT) {
        __builtin_prefetch(&t.slots[home]);
        return;
    }
    for (size_t at = home; at < home + SLOTS_AHEAD; at++) {
        uint64_t slot = cache_slot_at(t, at); /* its window may be gone by now */
        if (!slot) return;
        if (slot >> 32 != tag) continue;
        const char *window = (const char *)cache_window_of(t, slot);
        for (size_t i = 0; i < bytes && i < AHEAD_LINES * CACHE_LINE; i += CACHE_LINE)
            __builtin_prefetch(window + i);
        return;
    }
}

/* Merges the window with the added list, which is oldest first, newest first into merged. An added record replaces its
 * equal. */
static size_t cache_merge(cache_window *w, const weir_entry *added, size_t added_count, weir_entry *merged,
                          size_t capacity) {
    size_t count = 0, i = 0, j = added_count;
    while (count < capacity && (i < w->count || j > 0)) {
        const weir_entry known = i < w->count ? cache_entry_at(w, i) : (weir_entry){0};
        int order = i == w->count ? 1 : j == 0 ? -1 : weir_entry_order(&known, &added[j - 1]);
        if (order < 0) {
            merged[count++] = known;
            i++;
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
    uint64_t hash = weir_cache_mix(vertex, list);
    cache_stripe *s = cache_stripe_of(cache, hash);
    weir_mutex_lock(&s->mutex);
    cache_window *w = cache_find(s, hash, vertex, list);
    if (w) {                            /* without memory for its successor it is forgotten */
        size_t capacity = cache->width; /* of a window that was filled with more the next power of two */
        while (capacity < w->count)
            capacity *= 2;
        weir_entry *merged = weir_malloc(capacity * sizeof *merged);
        cache_window *updated = NULL;
        if (merged) {
            size_t merged_count = cache_merge(w, entries, count, merged, capacity);
            bool complete = w->complete && merged_count < capacity;
            updated = cache_window_new(cache, vertex, list, merged, merged_count, complete);
        }
        if (updated) {
            cache_window_put(cache, s, w, updated);
        } else {
            cache_window_remove(s, cache_place_of_window(cache_table_of(s), w));
        }
        weir_free(updated);
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
        for (const cache_window *w = weir_ring_oldest(&s->ring); w; w = weir_ring_next(&s->ring, w)) {
            if (!w->block.live) continue;
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
        statsp->bytes += s->ring.reached + cache_table_of(s).count * sizeof(cache_slot);
        statsp->windows += s->window_count;
        statsp->hits += s->stats.hits;
        statsp->misses += s->stats.misses;
        statsp->evictions += s->stats.evictions;
        weir_mutex_unlock(&s->mutex);
    }
}

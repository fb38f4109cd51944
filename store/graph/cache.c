/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cache.c - stripes of a hash table; what was not asked for since it was passed over makes room. No weir_table: windows
 * come and go all the time, and weir_cache_ahead looks at its places while they change.
 *
 * A window is one block: header, edges, what else there is of each entry, rows. Who reads many windows waits for their
 * lines more than for anything else, so what an answer needs of every edge stands together, in front.
 * Updating one makes a new block: windows are short, and readers copy out under the stripe's lock, so that there is
 * never a pointer into a window outside of it. A hit changes one byte of the window: to keep a list by last use it
 * would have to fetch the neighbours of a window in that list, too.
 */
#include <stdatomic.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/thread.h>

#include "cache.h"

_Static_assert(sizeof(weir_entry) == 48, "deltas are made of these: a word more is a third more memory");

#define STRIPES     16u /* few, so that a wide window is a small part of one */
#define SLOTS_MIN   256u
#define SLOTS_AHEAD 8u /* are looked at by who looks ahead: most lists stand in the first or the second */
#define CACHE_LINE  64u
#define SPARED_MAX  64u
#define AHEAD_LINES 12u /* most windows have no more, and of longer ones the processor fetches on by itself */
#define MARK_BITS   8u  /* a window: one list in eight is looked for in vain */

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
    weir_vertex vertex;
    struct cache_window *newer, *older; /* by when they came, or were spared last */
    weir_list list;
    uint32_t count;
    uint32_t bytes; /* of this block             */
    bool complete;
    bool plain;         /* no rows and no deletions  */
    bool used;          /* since it came or was spared */
    cache_edge edges[]; /* behind them: as many contents, if it is plain, else rests, then the rows */
} cache_window;

/* Its hash stands beside a window, so that no other is looked at to find it, nor to move what stands behind it. */
typedef struct cache_slot {
    atomic_uint_fast64_t hash;
    cache_window *_Atomic window; /* NULL: free */
} cache_slot;

/* weir_cache_ahead reads them without the lock, so those that are replaced stay until the end: as much again. */
typedef struct cache_slots {
    struct cache_slots *smaller;
    size_t count; /* a power of two, at least a fourth of them free: every search ends, and soon */
    cache_slot slots[];
} cache_slots;

typedef struct cache_stripe {
    /* Changed under the lock, read without it by weir_cache_ahead: not beside the lock, which every reader writes. */
    _Alignas(CACHE_LINE) cache_slots *_Atomic slots;
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

static cache_stripe *cache_stripe_of(weir_cache *cache, uint64_t hash) {
    return &cache->stripes[hash % STRIPES];
}

static size_t cache_home_of(const cache_slots *slots, uint64_t hash) {
    return (size_t)(hash >> 8) & (slots->count - 1);
}

static cache_slots *cache_slots_of(const cache_stripe *s) {
    return atomic_load_explicit(&s->slots, memory_order_relaxed);
}

static cache_window *cache_window_at(const cache_slots *slots, size_t at) {
    return atomic_load_explicit(&slots->slots[at & (slots->count - 1)].window, memory_order_relaxed);
}

static uint64_t cache_hash_at(const cache_slots *slots, size_t at) {
    return atomic_load_explicit(&slots->slots[at & (slots->count - 1)].hash, memory_order_relaxed);
}

static void cache_slot_set(cache_slots *slots, size_t at, uint64_t hash, cache_window *w) {
    cache_slot *slot = &slots->slots[at & (slots->count - 1)];
    atomic_store_explicit(&slot->hash, hash, memory_order_relaxed);
    atomic_store_explicit(&slot->window, w, memory_order_relaxed);
}

/* The slot of a list's window, or the free one where it belongs. */
static size_t cache_slot_of(const cache_slots *slots, uint64_t hash, weir_vertex vertex, weir_list list) {
    for (size_t at = cache_home_of(slots, hash);; at++) {
        const cache_window *w = cache_window_at(slots, at);
        if (!w || (cache_hash_at(slots, at) == hash && w->vertex == vertex && w->list == list)) return at;
    }
}

static cache_window *cache_find(const cache_stripe *s, uint64_t hash, weir_vertex vertex, weir_list list) {
    const cache_slots *slots = cache_slots_of(s);
    return cache_window_at(slots, cache_slot_of(slots, hash, vertex, list));
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

static void cache_slot_fill(cache_slots *slots, cache_window *w) {
    uint64_t hash = weir_cache_mix(w->vertex, w->list);
    cache_slot_set(slots, cache_slot_of(slots, hash, w->vertex, w->list), hash, w);
}

/* What stands behind it moves up, if a search for it passes the hole. */
static void cache_slot_clear(cache_slots *slots, const cache_window *w) {
    const size_t mask = slots->count - 1;
    size_t hole = cache_slot_of(slots, weir_cache_mix(w->vertex, w->list), w->vertex, w->list);
    WEIR_ASSERT(cache_window_at(slots, hole) == w);
    for (size_t at = hole + 1; cache_window_at(slots, at); at++) {
        uint64_t hash = cache_hash_at(slots, at);
        if (((at - cache_home_of(slots, hash)) & mask) < ((at - hole) & mask)) continue;
        cache_slot_set(slots, hole, hash, cache_window_at(slots, at));
        hole = at;
    }
    cache_slot_set(slots, hole, 0, NULL);
}

static void cache_window_remove(cache_stripe *s, cache_window *w) {
    WEIR_ASSERT(weir_mutex_held(&s->mutex) && s->bytes >= w->bytes && s->window_count > 0);
    cache_slot_clear(cache_slots_of(s), w);
    cache_use_unlink(s, w);
    s->bytes -= w->bytes;
    s->window_count--;
    weir_free(w);
}

/* Makes room in the table for one more: a fourth of it stays free. */
static bool cache_slots_reserve(cache_stripe *s) {
    cache_slots *old = cache_slots_of(s);
    if (old && s->window_count < old->count / 4 * 3) return true;
    size_t count = old ? old->count * 2 : SLOTS_MIN;
    cache_slots *grown = weir_calloc(1, sizeof *grown + count * sizeof grown->slots[0]);
    if (!grown) return false;
    grown->smaller = old;
    grown->count = count;
    for (cache_window *w = s->newest; w; w = w->older)
        cache_slot_fill(grown, w);
    atomic_store_explicit(&s->slots, grown, memory_order_release);
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

/* A window that finds no place is forgotten: a cache may always forget. */
static void cache_window_add(const weir_cache *cache, cache_stripe *s, cache_window *w) {
    WEIR_ASSERT(weir_mutex_held(&s->mutex));
    cache_make_room(cache, s, w->bytes);
    if (!cache_slots_reserve(s)) {
        weir_free(w);
        return;
    }
    cache_slot_fill(cache_slots_of(s), w);
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
        fits = fits && cache_slots_reserve(s);
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
        for (cache_slots *slots = cache_slots_of(s), *smaller; slots; slots = smaller) {
            smaller = slots->smaller;
            weir_free(slots);
        }
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
    if (bytes > cache->stripe_bytes_max / 2 || bytes > UINT32_MAX) return NULL;
    cache_window *w = weir_malloc(bytes);
    if (!w) return NULL;
    *w = (cache_window){.vertex = vertex,
                        .list = list,
                        .count = (uint32_t)count,
                        .complete = complete,
                        .plain = plain,
                        .bytes = (uint32_t)bytes};
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
    if (weir_cache_epoch(cache) == epoch && knows_more) { /* GRAPH-S5 */
        if (old) w->used = old->used;
        if (old) cache_window_remove(s, old);
        cache_window_add(cache, s, w);
        w = NULL;
    }
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

/* First entry older than before_us. */
static uint32_t cache_place_before(const cache_window *w, int64_t before_us) {
    uint32_t low = 0, high = w->count;
    if (high == 0 || w->edges[0].time_us < before_us) return 0;
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

/* Whether entries of a window answer a question for so many that are older than before_us, and which those are. */
static bool cache_reaches(const cache_window *w, int64_t before_us, size_t capacity, size_t *fromp, size_t *countp) {
    *fromp = cache_place_before(w, before_us);
    WEIR_ASSERT(*fromp <= w->count);
    *countp = w->count - *fromp < capacity ? w->count - *fromp : capacity;
    return w->complete || *countp == capacity;
}

bool weir_cache_collect(weir_cache *cache, weir_vertex vertex, weir_list list, int64_t before_us, weir_entry *entries,
                        size_t capacity, weir_cache_allocate allocate, void *context, size_t *countp, bool *completep) {
    uint64_t hash = weir_cache_mix(vertex, list);
    cache_stripe *s = cache_stripe_of(cache, hash);
    bool answered = false;
    *countp = 0;
    weir_mutex_lock(&s->mutex);
    cache_window *w = cache_find(s, hash, vertex, list);
    if (w) {
        size_t from, count, row_bytes = 0;
        answered = cache_reaches(w, before_us, capacity, &from, &count);
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

bool weir_cache_edges(weir_cache *cache, weir_vertex vertex, weir_list list, int64_t before_us, size_t limit,
                      weir_arena *arena, weir_edge **edgesp, uint32_t *countp) {
    uint64_t hash = weir_cache_mix(vertex, list);
    cache_stripe *s = cache_stripe_of(cache, hash);
    size_t from = 0, count = 0;
    weir_edge *edges = NULL;
    bool answered = false;
    weir_mutex_lock(&s->mutex);
    cache_window *w = cache_find(s, hash, vertex, list);
    if (w && cache_reaches(w, before_us, limit, &from, &count)) edges = weir_arena_alloc(arena, count * sizeof *edges);
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
    const cache_slots *slots = atomic_load_explicit(&cache->stripes[hash % STRIPES].slots, memory_order_acquire);
    size_t home = cache_home_of(slots, hash), bytes = sizeof(cache_window) + entries * sizeof(cache_edge);
    if (stage == WEIR_CACHE_SLOT) {
        __builtin_prefetch(&slots->slots[home]);
        return;
    }
    for (size_t at = home; at < home + SLOTS_AHEAD; at++) {
        const char *window = (const char *)cache_window_at(slots, at); /* it may be gone by now */
        if (!window) return;
        if (cache_hash_at(slots, at) != hash) continue;
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

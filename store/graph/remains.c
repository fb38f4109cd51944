/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remains.c - sets of a few places, each with a block: what it is of, entries, rows. Few lists are kept, and readers
 * copy out under the lock: there is never a pointer into a block outside of it.
 */
#include "remains.h"

#include <stdatomic.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/thread.h>

#define WAYS  4u
#define MARKS (sizeof(((weir_remains_marks *)0)->words) * 8)

typedef struct remains_block {
    weir_vertex vertex;
    weir_list list;
    uint32_t count;
    weir_remains_span span;
    weir_entry entries[];
} remains_block;

typedef struct remains_set {
    remains_block *ways[WAYS];
    unsigned next;      /* the one that makes room                         */
    atomic_uint filled; /* of the ways; looked at without the lock, as count */
} remains_set;

struct weir_remains {
    weir_cache *cache;
    atomic_size_t count; /* looked at without the lock: mostly there is nothing */
    weir_mutex mutex;    /* guards the sets */
    size_t set_count;
    remains_set sets[];
};

weir_err weir_remains_open(size_t bytes_max, weir_cache *cache, weir_remains **remainsp) {
    size_t sets = bytes_max / WEIR_REMAINS_BYTES_MAX / WAYS + 1;
    weir_remains *r = weir_calloc(1, sizeof *r + sets * sizeof r->sets[0]);
    *remainsp = r;
    if (!r) return WEIR_NOMEM("for what remains of lists");
    weir_mutex_init(&r->mutex, WEIR_RANK_LEAF, "what remains of lists");
    r->cache = cache;
    r->set_count = sets;
    return WEIR_OK;
}

void weir_remains_close(weir_remains *remains) {
    if (!remains) return;
    for (size_t i = 0; i < remains->set_count; i++)
        for (size_t way = 0; way < WAYS; way++)
            weir_free(remains->sets[i].ways[way]);
    weir_mutex_destroy(&remains->mutex);
    weir_free(remains);
}

static remains_set *remains_set_of(weir_remains *r, weir_vertex vertex, weir_list list) {
    return &r->sets[weir_cache_mix(vertex, list) % r->set_count];
}

/* The place of the list, under the lock; NULL: nothing is kept of it. */
static remains_block **remains_find(weir_remains *r, weir_vertex vertex, weir_list list) {
    remains_set *s = remains_set_of(r, vertex, list);
    for (size_t way = 0; way < WAYS; way++)
        if (s->ways[way] && s->ways[way]->vertex == vertex && s->ways[way]->list == list) return &s->ways[way];
    return NULL;
}

/* A place for a list of which nothing is kept: one that is free, or the next in turn. */
static remains_block **remains_place(weir_remains *r, weir_vertex vertex, weir_list list) {
    remains_set *s = remains_set_of(r, vertex, list);
    for (size_t way = 0; way < WAYS; way++)
        if (!s->ways[way]) return &s->ways[way];
    return &s->ways[s->next++ % WAYS];
}

/* Puts a block, or nothing, in the place of what is there. */
static void remains_set_place(weir_remains *r, remains_block **place, remains_block *block) {
    const remains_block *of = *place ? *place : block;
    WEIR_ASSERT(weir_mutex_held(&r->mutex) && of);
    int more = (block != NULL) - (*place != NULL);
    atomic_fetch_add_explicit(&r->count, (size_t)more, memory_order_relaxed);
    atomic_fetch_add_explicit(&remains_set_of(r, of->vertex, of->list)->filled, (unsigned)more, memory_order_relaxed);
    weir_free(*place);
    *place = block;
}

/* As many of them as a block may hold; with fewer than there are it does not reach the end. */
static remains_block *remains_block_new(weir_vertex vertex, weir_list list, const weir_remains_span *span,
                                        const weir_entry *entries, size_t count) {
    size_t bytes = sizeof(remains_block), fits = 0;
    while (fits < count && bytes + sizeof *entries + entries[fits].row_length <= WEIR_REMAINS_BYTES_MAX)
        bytes += sizeof *entries + entries[fits++].row_length;
    if (fits == 0 && count > 0) return NULL; /* its first row is too long */
    remains_block *b = weir_malloc(bytes);
    if (!b) return NULL;
    *b = (remains_block){.vertex = vertex, .list = list, .count = (uint32_t)fits, .span = *span};
    b->span.complete = span->complete && fits == count;
    if (fits) memcpy(b->entries, entries, fits * sizeof *entries);
    weir_entries_own_rows(b->entries, fits, (uint8_t *)&b->entries[fits]);
    return b;
}

/* Whether all that is newer is among them. */
static bool remains_reach(const remains_block *b, int64_t newer_than_us) {
    return newer_than_us != INT64_MIN && b->count && b->entries[b->count - 1].time_us <= newer_than_us;
}

void weir_remains_fill(weir_remains *remains, uint64_t epoch, weir_vertex vertex, weir_list list,
                       const weir_remains_span *span, const weir_entry *entries, size_t count) {
    WEIR_ASSERT(count <= WEIR_REMAINS_MAX && span->deletion_us < span->before_us);
    remains_block *b = remains_block_new(vertex, list, span, entries, count);
    if (!b) return;
    weir_mutex_lock(&remains->mutex);
    remains_block **place = remains_find(remains, vertex, list);
    const remains_block *old = place ? *place : NULL; /* two readers may have passed the same list side by side */
    bool of_as_much =
        old && old->span.before_us <= b->span.before_us && old->span.newer_than_us <= b->span.newer_than_us;
    bool is_longer = of_as_much && old->count >= b->count;
    /* Readers who want edges of different ages must not take each other's: the long pass would be made each time. */
    bool says_no_less =
        of_as_much && (old->span.complete || remains_reach(old, b->span.newer_than_us) ||
                       (is_longer && (!b->span.complete || old->span.newer_than_us < b->span.newer_than_us)));
    if (weir_cache_epoch(remains->cache) == epoch && !says_no_less) { /* GRAPH-S5 */
        remains_set_place(remains, place ? place : remains_place(remains, vertex, list), b);
        b = NULL;
    }
    weir_mutex_unlock(&remains->mutex);
    weir_free(b);
}

/* What is kept of the list, under the lock, where it answers as of before_us for edges newer than newer_than_us; NULL:
 * nothing does. */
static const remains_block *remains_answering(weir_remains *r, weir_vertex vertex, weir_list list, int64_t before_us,
                                              int64_t newer_than_us) {
    remains_block **place = remains_find(r, vertex, list);
    const remains_block *b = place ? *place : NULL;
    return b && before_us >= b->span.before_us && newer_than_us >= b->span.newer_than_us ? b : NULL;
}

bool weir_remains_may_have(weir_remains *remains, weir_vertex vertex, weir_list list) {
    return atomic_load_explicit(&remains->count, memory_order_relaxed) > 0 &&
           atomic_load_explicit(&remains_set_of(remains, vertex, list)->filled, memory_order_relaxed) > 0;
}

bool weir_remains_collect(weir_remains *remains, weir_vertex vertex, weir_list list, int64_t before_us,
                          int64_t newer_than_us, weir_entry *entries, size_t capacity, weir_cache_allocate allocate,
                          void *context, size_t *countp, weir_remains_span *spanp) {
    bool answers = false;
    if (atomic_load_explicit(&remains->count, memory_order_relaxed) == 0) return false;
    weir_mutex_lock(&remains->mutex);
    const remains_block *b = remains_answering(remains, vertex, list, before_us, newer_than_us);
    if (b) {
        WEIR_ASSERT(b->count <= WEIR_REMAINS_MAX);
        *countp = b->count < capacity ? b->count : capacity;
        *spanp = b->span;
        spanp->complete = (b->span.complete || remains_reach(b, newer_than_us)) && *countp == b->count;
        if (*countp) memcpy(entries, b->entries, *countp * sizeof *entries);
        size_t bytes = weir_entries_row_bytes(entries, *countp);
        uint8_t *rows = bytes ? allocate(context, bytes) : NULL;
        if (rows) weir_entries_own_rows(entries, *countp, rows);
        answers = rows || bytes == 0;
    }
    weir_mutex_unlock(&remains->mutex);
    return answers;
}

bool weir_remains_edges(weir_remains *remains, weir_vertex vertex, weir_list list, int64_t before_us,
                        int64_t newer_than_us, size_t limit, weir_arena *arena, weir_edge **edgesp, uint32_t *countp) {
    weir_edge *edges = NULL;
    uint8_t *rows = NULL;
    size_t count = 0, bytes = 0;
    *countp = 0;
    if (atomic_load_explicit(&remains->count, memory_order_relaxed) == 0) return false;
    weir_mutex_lock(&remains->mutex);
    const remains_block *b = remains_answering(remains, vertex, list, before_us, newer_than_us);
    if (b && (b->count >= limit || b->span.complete || remains_reach(b, newer_than_us))) {
        count = b->count < limit ? b->count : limit;
        bytes = weir_entries_row_bytes(b->entries, count);
        edges = weir_arena_alloc(arena, count * sizeof *edges);
        rows = bytes ? weir_arena_alloc_aligned(arena, 1, bytes) : NULL;
    }
    const bool answers = edges && (rows || bytes == 0);
    for (size_t i = 0; answers && i < count; i++) {
        const weir_entry *e = &b->entries[i];
        edges[i] = (weir_edge){e->neighbor, e->time_us, e->event, e->row_length ? rows : NULL, e->row_length};
        if (e->row_length) rows = (uint8_t *)memcpy(rows, e->row, e->row_length) + e->row_length;
    }
    weir_mutex_unlock(&remains->mutex);
    *edgesp = edges;
    *countp = answers ? (uint32_t)count : 0;
    return answers;
}

/* --- what a seal changes ---------------------------------------------------------------------------------------- */

void weir_remains_marks_take(weir_remains *remains, weir_remains_marks *marks) {
    WEIR_ON_ROLE(WORKER);
    *marks = (weir_remains_marks){0};
    weir_mutex_lock(&remains->mutex); /* what is filled after this meets the new epoch */
    for (size_t i = 0; i < remains->set_count * WAYS; i++) {
        const remains_block *b = remains->sets[i / WAYS].ways[i % WAYS];
        if (!b) continue;
        size_t mark = weir_cache_mix(b->vertex, b->list) % MARKS;
        marks->words[mark / 64] |= 1ull << mark % 64;
        marks->any = true;
    }
    weir_mutex_unlock(&remains->mutex);
}

bool weir_remains_marks_may_have(const weir_remains_marks *marks, weir_vertex vertex, weir_list list) {
    size_t mark = weir_cache_mix(vertex, list) % MARKS;
    return marks->words[mark / 64] >> mark % 64 & 1;
}

void weir_remains_drop(weir_remains *remains, weir_vertex vertex, weir_list list) {
    weir_mutex_lock(&remains->mutex);
    remains_block **place = remains_find(remains, vertex, list);
    if (place) remains_set_place(remains, place, NULL);
    weir_mutex_unlock(&remains->mutex);
}

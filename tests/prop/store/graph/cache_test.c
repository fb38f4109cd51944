/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cache_test.c - windows that are filled, sealed into, evicted and asked, among few lists and among many: whatever a
 * cache answers is what the lists have.
 */
#include "weir_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/rng.h>

#include "cache.h"

enum { ENTRIES_MAX = 40, ROW_MAX = 30, STEPS = 60000, WIDTH = 16, CACHES = 4 };

/* What the cold store would have of a list: newest first. */
typedef struct naive_list {
    weir_entry entries[ENTRIES_MAX];
    size_t count;
} naive_list;

typedef struct campaign {
    weir_rng rng;
    weir_cache *cache;
    weir_arena *arena;
    naive_list *lists;
    uint64_t list_count, events;
    bool plain;                   /* no rows, no deletions */
    uint64_t collected, as_edges; /* answers               */
} campaign;

/* Of which each begins somewhere. */
static uint8_t bytes[256 + ROW_MAX];

static uint64_t below(campaign *c, uint64_t bound) {
    return weir_rng_below(&c->rng, bound);
}

/* Ids whose hashes stand close together, too: each of them in four lists. */
static weir_vertex vertex_of(uint64_t list) {
    return weir_vertex_make(list / 4 % 7, list / 4);
}

static weir_list list_of(uint64_t list) {
    return WEIR_LIST_EDGES(list / 2 % 2, list % 2 ? WEIR_IN : WEIR_OUT);
}

/* A few are most asked for. */
static uint64_t some_list(campaign *c) {
    return below(c, below(c, 3) ? c->list_count : 1 + c->list_count / 50);
}

static weir_entry some_entry(campaign *c) {
    weir_entry e = {.neighbor = below(c, 5), .time_us = (int64_t)below(c, 100), .event = ++c->events};
    e.content = (uint32_t)below(c, 1000);
    if (c->plain) return e;
    e.deletion = below(c, 8) == 0;
    e.row_length = (!e.deletion && below(c, 2) ? (uint32_t)below(c, ROW_MAX) : 0) & 0x7fffffff;
    if (e.row_length) e.row = &bytes[below(c, 256)];
    return e;
}

static void list_put(naive_list *l, const weir_entry *e) {
    size_t at = 0;
    while (at < l->count && weir_entry_order(&l->entries[at], e) < 0)
        at++;
    if (at == l->count || weir_entry_order(&l->entries[at], e) != 0) {
        memmove(&l->entries[at + 1], &l->entries[at], (l->count++ - at) * sizeof *e);
    }
    l->entries[at] = *e;
}

static int compare_oldest_first(const void *a, const void *b) {
    return -weir_entry_order(a, b);
}

/* New records, or one that the list has already, perhaps with another row. */
static void seal(campaign *c) {
    weir_cache_sealed(c->cache);
    for (uint64_t lists = 1 + below(c, 4); lists > 0; lists--) {
        uint64_t number = some_list(c);
        naive_list *l = &c->lists[number];
        weir_entry added[4];
        size_t count = below(c, 4);
        if (l->count + count > ENTRIES_MAX) continue;
        for (size_t i = 0; i < count; i++)
            added[i] = some_entry(c);
        if (count == 0 && l->count) {
            weir_entry row = some_entry(c);
            added[count] = l->entries[below(c, l->count)];
            added[count].row = added[count].deletion ? NULL : row.row;
            added[count].row_length = added[count].deletion ? 0 : row.row_length;
            count++;
        }
        for (size_t i = 0; i < count; i++)
            list_put(l, &added[i]);
        qsort(added, count, sizeof added[0], compare_oldest_first);
        weir_cache_seal_list(c->cache, vertex_of(number), list_of(number), added, count);
    }
}

static void fill(campaign *c) {
    uint64_t number = some_list(c), epoch = weir_cache_epoch(c->cache);
    const naive_list *l = &c->lists[number];
    size_t room = 1 + below(c, ENTRIES_MAX), count = l->count < room ? l->count : room;
    if (epoch &&
        below(c, 10) == 0) { /* who began before a seal is refused: that this is no window of the list shows it */
        const weir_entry wrong = {.time_us = 1000};
        weir_cache_fill(c->cache, epoch - 1, vertex_of(number), list_of(number), &wrong, 1, true);
        return;
    }
    weir_cache_fill(c->cache, epoch, vertex_of(number), list_of(number), l->entries, count, count < room);
}

static void *allocate(void *arena, size_t size) {
    return weir_arena_alloc_aligned(arena, 1, size);
}

static void ask(campaign *c) {
    uint64_t number = some_list(c);
    const naive_list *l = &c->lists[number];
    weir_vertex vertex = vertex_of(number);
    weir_list list = list_of(number);
    const weir_cache_span span = {below(c, 2) ? INT64_MAX : (int64_t)below(c, 101),
                                  below(c, 2) ? INT64_MIN : (int64_t)below(c, 101)};
    size_t capacity = 1 + below(c, ENTRIES_MAX), count, from = 0, young = 0;
    weir_entry entries[ENTRIES_MAX];
    weir_edge *edges;
    uint32_t edge_count;
    bool complete, deletion = false;
    weir_arena_reset(c->arena);
    weir_cache_ahead(c->cache, vertex, list, capacity, below(c, 2) ? WEIR_CACHE_SLOT : WEIR_CACHE_WINDOW);
    bool answered =
        weir_cache_collect(c->cache, vertex, list, span, entries, capacity, allocate, c->arena, &count, &complete);
    bool as_edges = weir_cache_edges(c->cache, vertex, list, span, capacity, c->arena, &edges, &edge_count);
    while (from < l->count && l->entries[from].time_us >= span.before_us)
        from++;
    while (from + young < l->count && l->entries[from + young].time_us > span.newer_than_us)
        young++;
    size_t wanted = l->count - from < capacity ? l->count - from : capacity;
    size_t least = young < wanted ? young + (span.newer_than_us != INT64_MIN) : wanted;
    for (size_t i = 0; answered && i < count; i++) {
        const weir_entry *e = &entries[i], *naive = &l->entries[from + i];
        assert_true(i < wanted && weir_entry_order(e, naive) == 0 && e->row_length == naive->row_length);
        assert_true(e->row_length == 0 || memcmp(e->row, naive->row, e->row_length) == 0);
        deletion = deletion || e->deletion;
    }
    assert_true(!answered || (count >= least && count <= wanted)); /* one that is too old is enough */
    assert_true(!answered || !complete || from + count == l->count);
    assert_int_equal(as_edges, answered && !deletion);
    assert_true(!as_edges || edge_count == count);
    for (size_t i = 0; as_edges && i < count; i++) {
        const weir_edge *e = &edges[i];
        const weir_entry *naive = &l->entries[from + i];
        assert_true(e->neighbor == naive->neighbor && e->time_us == naive->time_us && e->event == naive->event);
        assert_true(e->row_length == naive->row_length && (e->row != NULL) == (e->row_length > 0));
        assert_true(e->row_length == 0 || memcmp(e->row, naive->row, e->row_length) == 0);
    }
    c->collected += answered;
    c->as_edges += as_edges;
}

/* What the table finds is what there is, however often windows have moved in it: each is marked, and none is lost. */
static void look_at_all(campaign *c) {
    weir_cache_stats stats;
    uint64_t found = 0;
    weir_cache_marks *marks = weir_cache_marks_take(c->cache);
    assert_non_null(marks);
    for (uint64_t i = 0; i < c->list_count; i++) {
        weir_entry none;
        size_t count;
        bool complete;
        bool there = weir_cache_collect(c->cache, vertex_of(i), list_of(i), (weir_cache_span){INT64_MAX, INT64_MIN},
                                        &none, 0, allocate, c->arena, &count, &complete);
        assert_true(!there || weir_cache_marks_may_have(marks, vertex_of(i), list_of(i)));
        found += there;
    }
    weir_cache_stats_get(c->cache, &stats);
    assert_int_equal(found, stats.windows);
    weir_cache_marks_free(marks);
}

static void s5_what_a_cache_answers_is_what_the_lists_have(void **state) {
    static const size_t memory[] = {64u << 10, 512u << 10}; /* tables grow in the second */
    (void)state;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * 37);
    for (uint64_t i = 0; i < weir_test_rounds(CACHES); i++) {
        campaign c = {.rng = weir_rng_stream(weir_test_seed(), i, 0), .plain = i / 2 % 2};
        weir_cache_stats stats;
        c.list_count = i % 2 ? 20000 : 400;
        c.lists = weir_calloc(c.list_count, sizeof *c.lists);
        assert_non_null(c.lists);
        assert_ok(weir_arena_open(1u << 20, &c.arena));
        assert_ok(weir_cache_open(memory[i % 2], WIDTH, &c.cache));
        for (unsigned step = 0; step < STEPS; step++) {
            uint64_t drawn = below(&c, 10);
            if (drawn < 4) ask(&c);
            if (drawn >= 4 && drawn < 8) fill(&c);
            if (drawn >= 8) seal(&c);
            if (step % (STEPS / 8) == 0) look_at_all(&c);
        }
        look_at_all(&c);
        weir_cache_stats_get(c.cache, &stats);
        printf("%llu windows, %llu evicted; %llu answers, %llu of them as edges\n", (unsigned long long)stats.windows,
               (unsigned long long)stats.evictions, (unsigned long long)c.collected, (unsigned long long)c.as_edges);
        assert_true(stats.bytes <= memory[i % 2] && c.collected > 0 && c.as_edges > 0);
        weir_cache_close(c.cache);
        weir_arena_close(c.arena);
        weir_free(c.lists);
    }
}

WEIR_TESTS(WEIR_CASE(s5_what_a_cache_answers_is_what_the_lists_have))

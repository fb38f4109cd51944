/* SPDX-License-Identifier: Apache-2.0 */
/*
 * delta_walk.c - a frozen delta in the order of the cold store's keys, which is what makes a seal one sorted file.
 *
 * Vertices are sorted once, and their lists put down by kind; each kind of record is then one pass over its lists. A
 * delta is larger than the processor's caches and its vertices lie in it as they came, so what a pass is about to need
 * is asked for ahead: without that, a third of a seal's time was waiting for memory.
 */
#include <stdlib.h>
#include <string.h>

#include <weir/base/alloc.h>
#include <weir/base/assert.h>
#include <weir/base/bytes.h>
#include <weir/store/key.h>
#include <weir/store/stored.h>

#include "delta_private.h"

#define AHEAD_FAR  16u /* in elements of what is walked: the pointer's target */
#define AHEAD_NEAR 8u  /* and what that points to                             */

/* A vertex of the delta; its id beside the pointer, so that sorting looks at nothing else. */
typedef struct place {
    weir_vertex vertex;
    const node *node;
} place;

/* A list, and whose it is. */
typedef struct row_of_entries {
    weir_vertex vertex;
    weir_list id;
    uint32_t count;
    const weir_entry *entries;
} row_of_entries;

typedef struct walk {
    const weir_delta *delta;
    place *places; /* rising by vertex */
    size_t count;
    row_of_entries *lists[WEIR_LIST_KINDS]; /* of each kind, rising by vertex and id */
    size_t filled[WEIR_LIST_KINDS];
    weir_delta_visit visit;
    void *context;
} walk;

static int compare_places(const void *a, const void *b) {
    weir_vertex x = ((const place *)a)->vertex, y = ((const place *)b)->vertex;
    return (x > y) - (x < y);
}

static size_t put_places(const stripe *s, place *places) {
    size_t filled = 0;
    for (size_t i = 0; i < s->capacity; i++) {
        if (i + AHEAD_FAR < s->capacity) __builtin_prefetch(s->slots[i + AHEAD_FAR]);
        if (s->slots[i]) places[filled++] = (place){s->slots[i]->vertex, s->slots[i]};
    }
    return filled;
}

static weir_err sort_places(walk *w) {
    size_t filled = 0;
    for (size_t i = 0; i < STRIPES; i++)
        w->count += w->delta->stripes[i].count;
    w->places = weir_malloc(w->count * sizeof *w->places);
    if (!w->places) return WEIR_ERR(WEIR_ENOMEM, "no memory to sort %zu vertices for a seal", w->count);
    for (size_t i = 0; i < STRIPES; i++)
        filled += put_places(&w->delta->stripes[i], w->places + filled);
    WEIR_ASSERT(filled == w->count);
    qsort(w->places, w->count, sizeof *w->places, compare_places);
    return WEIR_OK;
}

/* A list that was made for an entry which then found no memory is empty: it has nothing to tell, and no newest. */
static weir_err gather_lists(walk *w) {
    for (size_t kind = 0; kind < WEIR_LIST_KINDS; kind++) {
        w->lists[kind] = weir_malloc(w->delta->lists[kind] * sizeof(row_of_entries));
        if (!w->lists[kind])
            return WEIR_ERR(WEIR_ENOMEM, "no memory to sort %zu lists for a seal", w->delta->lists[kind]);
    }
    for (size_t i = 0; i < w->count; i++) {
        if (i + AHEAD_FAR < w->count) __builtin_prefetch(w->places[i + AHEAD_FAR].node);
        if (i + AHEAD_NEAR < w->count) __builtin_prefetch(w->places[i + AHEAD_NEAR].node->lists);
        for (const list *l = w->places[i].node->lists; l; l = l->next) {
            row_of_entries row = {w->places[i].vertex, l->id, l->count, l->entries};
            if (l->count) w->lists[WEIR_LIST_KIND(l->id)][w->filled[WEIR_LIST_KIND(l->id)]++] = row;
        }
    }
    for (size_t kind = 0; kind < WEIR_LIST_KINDS; kind++)
        WEIR_ASSERT(w->filled[kind] <= w->delta->lists[kind]);
    return WEIR_OK;
}

static size_t key_write(weir_vertex vertex, weir_list id, const weir_entry *e, uint8_t key[WEIR_EDGE_KEY_BYTES]) {
    switch (WEIR_LIST_KIND(id)) {
    case WEIR_LIST_KIND_EDGES:
        weir_edge_key_write(&(weir_edge_key){.vertex = vertex,
                                             .relation = (uint16_t)(id >> 1),
                                             .direction = id & 1 ? WEIR_IN : WEIR_OUT,
                                             .deletion = e->deletion,
                                             .time_us = e->time_us,
                                             .neighbor = e->neighbor,
                                             .event = e->event},
                            key);
        return WEIR_EDGE_KEY_BYTES;
    case WEIR_LIST_KIND_FEATURES:
        weir_feature_key_write(vertex, e->time_us, e->event, key);
        return WEIR_FEATURE_KEY_BYTES;
    case WEIR_LIST_KIND_PUTS:
        weir_put_key_write(vertex, e->time_us, key);
        return WEIR_PUT_KEY_BYTES;
    default:
        weir_label_key_write(vertex, (uint16_t)id, e->time_us, e->event, key);
        return WEIR_LABEL_KEY_BYTES;
    }
}

static weir_err walk_list(const walk *w, const row_of_entries *row) {
    uint8_t key[WEIR_EDGE_KEY_BYTES];
    weir_err err = WEIR_OK;
    for (uint32_t i = row->count; !err && i > 0; i--) { /* newest first is rising by key */
        const weir_entry *e = &row->entries[i - 1];
        size_t length = key_write(row->vertex, row->id, e, key);
        err = w->visit(w->context, key, length, e->row, e->row_length);
    }
    return err;
}

static const weir_entry *newest(const row_of_entries *row) {
    return &row->entries[row->count - 1];
}

static weir_err walk_kind(const walk *w, size_t kind) {
    const row_of_entries *rows = w->lists[kind];
    size_t count = w->filled[kind];
    weir_err err = WEIR_OK;
    for (size_t i = 0; !err && i < count; i++) {
        if (i + AHEAD_FAR < count) __builtin_prefetch(newest(&rows[i + AHEAD_FAR]));
        if (i + AHEAD_NEAR < count) __builtin_prefetch(newest(&rows[i + AHEAD_NEAR])->row);
        err = walk_list(w, &rows[i]);
    }
    return err;
}

static weir_err walk_names(const walk *w) {
    uint8_t key[WEIR_NAME_KEY_BYTES], value[WEIR_STORED_NAME_MAX];
    weir_err err = WEIR_OK;
    for (size_t i = 0; !err && i < w->count; i++) {
        const node *n = w->places[i].node;
        if (i + AHEAD_FAR < w->count) __builtin_prefetch(&w->places[i + AHEAD_FAR].node->name);
        if (i + AHEAD_NEAR < w->count) __builtin_prefetch(w->places[i + AHEAD_NEAR].node->name.key);
        if (!n->named) continue;
        weir_name_key_write(n->vertex, key);
        size_t length =
            weir_stored_name_write(n->name.vertex_type, n->name.time_us, n->name.key, n->name.key_length, value);
        err = w->visit(w->context, key, sizeof key, value, length);
    }
    return err;
}

static int compare_deletions(const void *a, const void *b) {
    const deletion_record *x = a, *y = b;
    if (x->vertex != y->vertex) return x->vertex < y->vertex ? -1 : 1;
    return (x->time_us < y->time_us) - (x->time_us > y->time_us); /* newest first */
}

static weir_err walk_deletions(const walk *w) {
    uint8_t key[WEIR_DELETED_KEY_BYTES];
    weir_err err = WEIR_OK;
    const weir_delta *delta = w->delta;
    if (delta->deletion_count) {
        qsort(delta->deletions, delta->deletion_count, sizeof delta->deletions[0], compare_deletions);
    }
    for (size_t i = 0; !err && i < delta->deletion_count; i++) {
        if (i > 0 && compare_deletions(&delta->deletions[i - 1], &delta->deletions[i]) == 0) continue;
        weir_deleted_key_write(delta->deletions[i].vertex, delta->deletions[i].time_us, key);
        err = w->visit(w->context, key, sizeof key, NULL, 0);
    }
    return err;
}

weir_err weir_delta_walk(weir_delta *delta, weir_delta_visit visit, void *context) {
    walk w = {.delta = delta, .visit = visit, .context = context};
    WEIR_ASSERT(atomic_load(&delta->frozen));
    weir_err err = sort_places(&w);
    if (!err) err = gather_lists(&w);
    if (!err) err = walk_kind(&w, WEIR_LIST_KIND_EDGES);
    if (!err) err = walk_kind(&w, WEIR_LIST_KIND_FEATURES);
    if (!err) err = walk_kind(&w, WEIR_LIST_KIND_PUTS);
    if (!err) err = walk_kind(&w, WEIR_LIST_KIND_LABEL);
    if (!err) err = walk_names(&w);
    for (size_t kind = 0; kind < WEIR_LIST_KINDS; kind++)
        weir_free(w.lists[kind]);
    weir_free(w.places);
    return err;
}

weir_err weir_delta_walk_deletions(weir_delta *delta, weir_delta_visit visit, void *context) {
    walk w = {.delta = delta, .visit = visit, .context = context};
    WEIR_ASSERT(atomic_load(&delta->frozen));
    return walk_deletions(&w);
}

/* Turns each list around, because its readers go newest first. */
weir_err weir_delta_lists(weir_delta *delta, weir_delta_list_visit visit, void *context) {
    weir_err err = WEIR_OK;
    WEIR_ASSERT(atomic_load(&delta->frozen));
    for (size_t i = 0; !err && i < STRIPES; i++) {
        const stripe *s = &delta->stripes[i];
        for (size_t j = 0; !err && j < s->capacity; j++) {
            if (j + AHEAD_FAR < s->capacity) __builtin_prefetch(s->slots[j + AHEAD_FAR]);
            for (const list *l = s->slots[j] ? s->slots[j]->lists : NULL; !err && l; l = l->next) {
                err = visit(context, s->slots[j]->vertex, l->id, l->entries, l->count);
            }
        }
    }
    return err;
}

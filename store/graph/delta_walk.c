/* SPDX-License-Identifier: Apache-2.0 */
/*
 * delta_walk.c - a frozen delta in the order of the cold store's keys, which is what makes a seal one sorted file.
 *
 * Vertices are sorted once, and their lists put down by kind; each kind of record is then one pass over its lists. A
 * delta is larger than the processor's caches and its vertices lie in it as they came, so what a pass is about to need
 * is asked for ahead: without that, a third of a seal's time was waiting for memory.
 *
 * Ids are hashes: dealt out by their first bits, a few of them fall into each bucket, and sorting those is all that is
 * left. Comparing them all with each other took a fifth of a seal's time. Ids of tests are small, and all fall into one
 * bucket, which is sorted as any array is.
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

#define BUCKET_BITS_MAX  20u
#define BUCKET_BITS_LESS 2u /* some four vertices a bucket */
#define BUCKET_FEW       16u

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

struct weir_delta_order {
    const weir_delta *delta;
    place *places; /* rising by vertex */
    size_t count;
    row_of_entries *lists[WEIR_LIST_KINDS]; /* of each kind, rising by vertex and id */
    size_t filled[WEIR_LIST_KINDS];
};

/* --- the order -------------------------------------------------------------------------------------------------- */

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

static unsigned bucket_bits(size_t count) {
    unsigned bits = 0;
    while (bits < BUCKET_BITS_MAX && count >> (bits + BUCKET_BITS_LESS))
        bits++;
    return bits;
}

static size_t bucket_of(const place *p, unsigned bits) {
    return bits ? (size_t)(weir_vertex_high(p->vertex) >> (64 - bits)) : 0;
}

static void sort_bucket(place *places, size_t count) {
    if (count > BUCKET_FEW) {
        qsort(places, count, sizeof *places, compare_places);
        return;
    }
    for (size_t i = 1; i < count; i++) {
        const place moved = places[i];
        size_t at = i;
        for (; at > 0 && places[at - 1].vertex > moved.vertex; at--)
            places[at] = places[at - 1];
        places[at] = moved;
    }
}

/* From one array into another of the same size; ends has a counter for each bucket, and one more. */
static void deal_places(const place *from, place *to, size_t count, size_t *ends, unsigned bits) {
    for (size_t i = 0; i < count; i++)
        ends[bucket_of(&from[i], bits) + 1]++;
    for (size_t bucket = 0; bucket < (size_t)1 << bits; bucket++)
        ends[bucket + 1] += ends[bucket];
    for (size_t i = 0; i < count; i++) /* each counter goes from where its bucket begins to where it ends */
        to[ends[bucket_of(&from[i], bits)]++] = from[i];
    for (size_t bucket = 0, begin = 0; bucket < (size_t)1 << bits; begin = ends[bucket++])
        sort_bucket(to + begin, ends[bucket] - begin);
}

static weir_err sort_places(weir_delta_order *order) {
    size_t filled = 0;
    for (size_t i = 0; i < STRIPES; i++)
        order->count += order->delta->stripes[i].count;
    unsigned bits = bucket_bits(order->count);
    place *places = weir_malloc(order->count * sizeof *places);
    size_t *ends = weir_calloc(((size_t)1 << bits) + 1, sizeof *ends);
    order->places = weir_malloc(order->count * sizeof *order->places);
    if (places && ends && order->places) {
        for (size_t i = 0; i < STRIPES; i++)
            filled += put_places(&order->delta->stripes[i], places + filled);
        WEIR_ASSERT(filled == order->count);
        deal_places(places, order->places, filled, ends, bits);
    }
    bool fits = places && ends && order->places;
    weir_free(places);
    weir_free(ends);
    return fits ? WEIR_OK : WEIR_ERR(WEIR_ENOMEM, "no memory to sort %zu vertices for a seal", order->count);
}

/* A list that was made for an entry which then found no memory is empty: it has nothing to tell, and no newest. */
static weir_err gather_lists(weir_delta_order *order) {
    for (size_t kind = 0; kind < WEIR_LIST_KINDS; kind++) {
        order->lists[kind] = weir_malloc(order->delta->lists[kind] * sizeof(row_of_entries));
        if (!order->lists[kind])
            return WEIR_ERR(WEIR_ENOMEM, "no memory to sort %zu lists for a seal", order->delta->lists[kind]);
    }
    for (size_t i = 0; i < order->count; i++) {
        if (i + AHEAD_FAR < order->count) __builtin_prefetch(order->places[i + AHEAD_FAR].node);
        if (i + AHEAD_NEAR < order->count) __builtin_prefetch(order->places[i + AHEAD_NEAR].node->lists);
        for (const list *l = order->places[i].node->lists; l; l = l->next) {
            row_of_entries row = {order->places[i].vertex, l->id, l->count, l->entries};
            if (l->count) order->lists[WEIR_LIST_KIND(l->id)][order->filled[WEIR_LIST_KIND(l->id)]++] = row;
        }
    }
    for (size_t kind = 0; kind < WEIR_LIST_KINDS; kind++)
        WEIR_ASSERT(order->filled[kind] <= order->delta->lists[kind]);
    return WEIR_OK;
}

weir_err weir_delta_order_open(const weir_delta *delta, weir_delta_order **orderp) {
    WEIR_ASSERT(atomic_load(&delta->frozen));
    *orderp = NULL;
    weir_delta_order *order = weir_calloc(1, sizeof *order);
    if (!order) return WEIR_ERR(WEIR_ENOMEM, "no memory to sort a delta for a seal");
    order->delta = delta;
    weir_err err = sort_places(order);
    if (!err) err = gather_lists(order);
    if (err) {
        weir_delta_order_close(order);
        return err;
    }
    *orderp = order;
    return WEIR_OK;
}

void weir_delta_order_close(weir_delta_order *order) {
    if (!order) return;
    for (size_t kind = 0; kind < WEIR_LIST_KINDS; kind++)
        weir_free(order->lists[kind]);
    weir_free(order->places);
    weir_free(order);
}

/* --- walking over it -------------------------------------------------------------------------------------------- */

typedef struct walk {
    const weir_delta_order *order;
    weir_delta_visit visit;
    void *context;
} walk;

static size_t key_write(weir_vertex vertex, weir_list id, const weir_entry *e, uint8_t key[WEIR_EDGE_KEY_BYTES]) {
    const weir_version_key version = {vertex, e->time_us, e->event, e->content};
    switch (WEIR_LIST_KIND(id)) {
    case WEIR_LIST_KIND_EDGES:
        weir_edge_key_write(&(weir_edge_key){.vertex = vertex,
                                             .relation = (uint16_t)(id >> 1),
                                             .direction = id & 1 ? WEIR_IN : WEIR_OUT,
                                             .deletion = e->deletion,
                                             .time_us = e->time_us,
                                             .neighbor = e->neighbor,
                                             .event = e->event,
                                             .content = e->content},
                            key);
        return WEIR_EDGE_KEY_BYTES;
    case WEIR_LIST_KIND_FEATURES:
        weir_feature_key_write(&version, key);
        return WEIR_FEATURE_KEY_BYTES;
    case WEIR_LIST_KIND_EVENTS:
        weir_event_key_write(&version, key);
        return WEIR_EVENT_KEY_BYTES;
    case WEIR_LIST_KIND_PUTS:
        weir_put_key_write(vertex, e->time_us, key);
        return WEIR_PUT_KEY_BYTES;
    default:
        weir_label_key_write(&version, (uint16_t)id, key);
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
    const row_of_entries *rows = w->order->lists[kind];
    size_t count = w->order->filled[kind];
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
    const place *places = w->order->places;
    size_t count = w->order->count;
    weir_err err = WEIR_OK;
    for (size_t i = 0; !err && i < count; i++) {
        const node *n = places[i].node;
        if (i + AHEAD_FAR < count) __builtin_prefetch(&places[i + AHEAD_FAR].node->name);
        if (i + AHEAD_NEAR < count) __builtin_prefetch(places[i + AHEAD_NEAR].node->name.key);
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

weir_err weir_delta_order_walk_deletions(const weir_delta_order *order, weir_delta_visit visit, void *context) {
    uint8_t key[WEIR_DELETED_KEY_BYTES];
    weir_err err = WEIR_OK;
    const weir_delta *delta = order->delta;
    if (delta->deletion_count)
        qsort(delta->deletions, delta->deletion_count, sizeof delta->deletions[0], compare_deletions);
    for (size_t i = 0; !err && i < delta->deletion_count; i++) {
        if (i > 0 && compare_deletions(&delta->deletions[i - 1], &delta->deletions[i]) == 0) continue;
        weir_deleted_key_write(delta->deletions[i].vertex, delta->deletions[i].time_us, key);
        err = visit(context, key, sizeof key, NULL, 0);
    }
    return err;
}

weir_err weir_delta_order_walk(const weir_delta_order *order, weir_delta_visit visit, void *context) {
    const walk w = {.order = order, .visit = visit, .context = context};
    weir_err err = walk_kind(&w, WEIR_LIST_KIND_EDGES);
    if (!err) err = walk_kind(&w, WEIR_LIST_KIND_FEATURES);
    if (!err) err = walk_kind(&w, WEIR_LIST_KIND_EVENTS);
    if (!err) err = walk_kind(&w, WEIR_LIST_KIND_PUTS);
    if (!err) err = walk_kind(&w, WEIR_LIST_KIND_LABEL);
    return err ? err : walk_names(&w);
}

weir_err weir_delta_order_lists(const weir_delta_order *order, weir_delta_list_visit visit, void *context) {
    weir_err err = WEIR_OK;
    for (size_t kind = 0; kind < WEIR_LIST_KINDS; kind++) {
        const row_of_entries *rows = order->lists[kind];
        for (size_t i = 0; !err && i < order->filled[kind]; i++)
            err = visit(context, rows[i].vertex, rows[i].id, rows[i].entries, rows[i].count);
    }
    return err;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * delta_walk.c - a frozen delta in the order of the cold store's keys, which is what makes a seal one sorted file.
 *
 * Vertices are sorted once, and each is then written with all that it has, as bundles (bundle.h). A delta is larger
 * than the processor's caches and its vertices lie in it as they came, so what a pass is about to need is asked for
 * ahead: without that, a third of a seal's time was waiting for memory.
 *
 * Ids are hashes: dealt out by their first bits, a few of them fall into each bucket, and sorting those is all that is
 * left. Comparing them all with each other took a fifth of a seal's time. Ids of tests are small, and all fall into one
 * bucket, which is sorted as any array is.
 */
#include <stdlib.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/bytes.h>
#include <weir/store/format/key.h>

#include "bundling.h"
#include "delta_private.h"

#define AHEAD_FAR  24u /* in vertices: what is known of one */
#define AHEAD_NEAR 16u /* its lists                         */
#define AHEAD_NEXT 8u  /* and what those point to           */

#define CACHE_LINE  64u
#define LISTS_LINES 5u /* from the first list on: as far as those of an event mostly reach */

#define LISTS_MIN 8u

#define BUCKET_BITS_MAX  20u
#define BUCKET_BITS_LESS 2u /* two to four vertices a bucket, where there are not more than the bits can tell apart */
#define BUCKET_FEW       16u

/* A vertex of the delta; its id beside the pointer, so that sorting looks at nothing else. Of a pile there may be many
 * of one vertex, in the order in which they came. */
typedef struct delta_place {
    weir_vertex vertex;
    const delta_node *node;
    uint64_t number;
} delta_place;

struct weir_delta_order {
    const weir_delta *delta;
    delta_place *places; /* rising by vertex */
    size_t count;
};

/* --- the order -------------------------------------------------------------------------------------------------- */

static int delta_order_compare_places(const void *a, const void *b) {
    const delta_place *x = a, *y = b;
    if (x->vertex != y->vertex) return x->vertex > y->vertex ? 1 : -1;
    return (x->number > y->number) - (x->number < y->number);
}

/* As they lie in the pile or in the tables.  Returns how many there are. */
static size_t delta_order_fill(const weir_delta *delta, delta_place *places) {
    size_t filled = 0;
    for (; filled < delta->piled_count; filled++) {
        const delta_node *n = delta->piled[filled];
        if (filled + AHEAD_FAR < delta->piled_count) __builtin_prefetch(delta->piled[filled + AHEAD_FAR]);
        places[filled] = (delta_place){n->vertex, n, filled};
    }
    for (const delta_stripe *s = delta->stripes; s < delta->stripes + STRIPES; s++) {
        const delta_slot *slots = s->slots.entries;
        for (size_t i = 0, end = s->slots.capacity; i < end; i++) {
            if (i + AHEAD_FAR < end) __builtin_prefetch(slots[i + AHEAD_FAR].node);
            if (slots[i].tag) places[filled++] = (delta_place){slots[i].node->vertex, slots[i].node, i};
        }
    }
    return filled;
}

static size_t delta_order_bucket_of(const delta_place *p, unsigned bits) {
    return bits ? (size_t)(weir_vertex_high(p->vertex) >> (64 - bits)) : 0;
}

static void delta_order_sort_bucket(delta_place *places, size_t count) {
    if (count > BUCKET_FEW) {
        qsort(places, count, sizeof *places, delta_order_compare_places);
        return;
    }
    for (size_t i = 1; i < count; i++) {
        const delta_place moved = places[i];
        size_t at = i;
        for (; at > 0 && places[at - 1].vertex > moved.vertex; at--)
            places[at] = places[at - 1];
        places[at] = moved;
    }
}

/* From one array into another of the same size; ends has a counter for each bucket, and one more. */
static void delta_order_deal(const delta_place *from, delta_place *to, size_t count, size_t *ends, unsigned bits) {
    for (size_t i = 0; i < count; i++)
        ends[delta_order_bucket_of(&from[i], bits) + 1]++;
    for (size_t bucket = 0; bucket < (size_t)1 << bits; bucket++)
        ends[bucket + 1] += ends[bucket];
    for (size_t i = 0; i < count; i++) /* each counter goes from where its bucket begins to where it ends */
        to[ends[delta_order_bucket_of(&from[i], bits)]++] = from[i];
    WEIR_ASSERT(ends[((size_t)1 << bits) - 1] == count);
    for (size_t bucket = 0, begin = 0; bucket < (size_t)1 << bits; begin = ends[bucket++])
        delta_order_sort_bucket(to + begin, ends[bucket] - begin);
}

weir_err weir_delta_order_open(const weir_delta *delta, weir_delta_order **orderp) {
    WEIR_ASSERT(atomic_load(&delta->frozen));
    *orderp = NULL;
    weir_delta_order *order = weir_calloc(1, sizeof *order);
    if (!order) return WEIR_NOMEM("while sorting a delta for a seal");
    order->delta = delta;
    order->count = delta->piled_count;
    for (size_t i = 0; i < STRIPES; i++)
        order->count += delta->stripes[i].slots.count;
    unsigned bits = 0;
    while (bits < BUCKET_BITS_MAX && order->count >> (bits + BUCKET_BITS_LESS))
        bits++;
    delta_place *unsorted = weir_malloc(order->count * sizeof *unsorted);
    size_t *ends = weir_calloc(((size_t)1 << bits) + 1, sizeof *ends);
    order->places = weir_malloc(order->count * sizeof *order->places);
    weir_err err = WEIR_OK;
    if (unsorted && ends && order->places) {
        size_t filled = delta_order_fill(delta, unsorted);
        WEIR_ASSERT(filled == order->count);
        delta_order_deal(unsorted, order->places, filled, ends, bits);
        *orderp = order;
    } else {
        err = WEIR_NOMEM("while sorting %zu vertices for a seal", order->count);
        weir_delta_order_close(order);
    }
    weir_free(unsorted);
    weir_free(ends);
    return err;
}

void weir_delta_order_close(weir_delta_order *order) {
    if (!order) return;
    weir_free(order->places);
    weir_free(order);
}

/* --- walking over it -------------------------------------------------------------------------------------------- */

/* An entry of a pile, and how many of the vertex came before it: of the same record the last one counts. */
typedef struct delta_part {
    weir_list list;
    const weir_entry *entry;
    size_t number;
} delta_part;

typedef struct delta_walk {
    weir_bundling bundling;
    weir_name name;
    bool named;
    weir_bundling_list *lists; /* of the vertex at hand */
    size_t count, capacity;
    delta_part *parts;
    size_t part_count, part_capacity;
    weir_entry *joined; /* of a vertex of several nodes */
    size_t joined_capacity;
} delta_walk;

static void delta_order_fetch_ahead(const weir_delta_order *order, size_t i) {
    if (i + AHEAD_FAR < order->count) __builtin_prefetch(order->places[i + AHEAD_FAR].node);
    if (i + AHEAD_NEAR < order->count) {
        const char *lists = (const char *)order->places[i + AHEAD_NEAR].node->lists;
        for (size_t line = 0; line < LISTS_LINES; line++) /* those of one event lie close together */
            __builtin_prefetch(lists + line * CACHE_LINE);
    }
    if (i + AHEAD_NEXT >= order->count) return;
    const delta_node *n = order->places[i + AHEAD_NEXT].node;
    if (n->named) __builtin_prefetch(n->name.key);
    for (const delta_list *l = n->lists; l; l = l->next) {
        if (l->count) __builtin_prefetch(l->entries[l->count - 1].row);
    }
}

/* Room for one more in an array of the walk. */
static weir_err delta_walk_room(void **arrayp, size_t count, size_t *capacityp, size_t size) {
    if (count < *capacityp) return WEIR_OK;
    size_t capacity = *capacityp ? *capacityp * 2 : LISTS_MIN;
    void *grown = weir_realloc_array(*arrayp, capacity, size);
    if (!grown) return WEIR_NOMEM("for %zu lists of a vertex", capacity);
    *arrayp = grown;
    *capacityp = capacity;
    return WEIR_OK;
}

static weir_err delta_walk_add_list(delta_walk *w, weir_list id, uint32_t count, const weir_entry *entries) {
    void *lists = w->lists;
    weir_err err = delta_walk_room(&lists, w->count, &w->capacity, sizeof *w->lists);
    w->lists = lists;
    if (!err) w->lists[w->count++] = (weir_bundling_list){id, count, entries};
    return err;
}

/* --- a vertex of a pile ----------------------------------------------------------------------------------------- */

static int delta_walk_compare_parts(const void *a, const void *b) {
    const delta_part *x = a, *y = b;
    if (x->list != y->list) return x->list < y->list ? -1 : 1;
    int order = weir_entry_order(y->entry, x->entry); /* oldest first */
    return order ? order : (x->number > y->number) - (x->number < y->number);
}

/* The name is that of all nodes, as of the newest (delta.c). */
static weir_err delta_walk_add_node(delta_walk *w, const delta_node *n) {
    weir_err err = WEIR_OK;
    if (n->named) {
        int64_t time_us = w->named && w->name.time_us > n->name.time_us ? w->name.time_us : n->name.time_us;
        if (!w->named) w->name = n->name;
        w->name.time_us = time_us;
        w->named = true;
    }
    for (const delta_list *l = n->lists; !err && l; l = l->next) {
        for (uint32_t i = 0; !err && i < l->count; i++) {
            void *parts = w->parts;
            err = delta_walk_room(&parts, w->part_count, &w->part_capacity, sizeof *w->parts);
            w->parts = parts;
            if (err) break;
            w->parts[w->part_count] = (delta_part){l->id, &l->entries[i], w->part_count};
            w->part_count++;
        }
    }
    return err;
}

/* What several nodes have. It is sorted, not inserted: in a log that runs backwards each entry would have to go before
 * all others. */
static weir_err delta_walk_take_many(delta_walk *w, const delta_place *places, size_t count) {
    weir_err err = WEIR_OK;
    w->part_count = 0;
    for (size_t i = 0; !err && i < count; i++)
        err = delta_walk_add_node(w, places[i].node);
    if (err) return err;
    if (w->part_count > w->joined_capacity) {
        weir_free(w->joined);
        w->joined_capacity = 0;
        w->joined = weir_malloc(w->part_capacity * sizeof *w->joined);
        if (!w->joined) return WEIR_NOMEM("for %zu entries of a vertex", w->part_count);
        w->joined_capacity = w->part_capacity;
    }
    if (w->part_count) qsort(w->parts, w->part_count, sizeof *w->parts, delta_walk_compare_parts);
    size_t joined = 0;
    for (size_t i = 0, first = 0; !err && i < w->part_count; i++) {
        const delta_part *p = &w->parts[i], *next = i + 1 < w->part_count && p[1].list == p->list ? &p[1] : NULL;
        if (!next || weir_entry_order(next->entry, p->entry) != 0) w->joined[joined++] = *p->entry;
        if (next) continue;
        err = delta_walk_add_list(w, p->list, (uint32_t)(joined - first), &w->joined[first]);
        first = joined;
    }
    WEIR_ASSERT(joined <= w->part_count);
    return err;
}

/* --- vertex by vertex ------------------------------------------------------------------------------------------- */

/* What the vertex at *atp has; *atp is behind it then. */
static weir_err delta_walk_next(delta_walk *w, const weir_delta_order *order, size_t *atp) {
    const delta_place *places = &order->places[*atp];
    size_t count = 0;
    do {
        delta_order_fetch_ahead(order, (*atp)++);
        count++;
    } while (*atp < order->count && places[count].vertex == places->vertex);
    w->named = false;
    w->count = 0;
    if (count > 1) return delta_walk_take_many(w, places, count);
    weir_err err = WEIR_OK;
    w->named = places->node->named;
    w->name = places->node->name;
    for (const delta_list *l = places->node->lists; !err && l; l = l->next) /* empty, if its entry found no memory */
        err = delta_walk_add_list(w, l->id, l->count, l->entries);
    return err;
}

static void delta_walk_free(delta_walk *w) {
    weir_buf_free(&w->bundling.bundle.value);
    weir_free(w->lists);
    weir_free(w->parts);
    weir_free(w->joined);
}

weir_err weir_delta_order_walk(const weir_delta_order *order, weir_bundling_visit visit, void *context) {
    delta_walk w = {.bundling = {.visit = visit, .context = context}};
    weir_err err = WEIR_OK;
    for (size_t i = 0; !err && i < order->count;) {
        weir_vertex vertex = order->places[i].vertex;
        err = delta_walk_next(&w, order, &i);
        if (!err) err = weir_bundling_vertex(&w.bundling, vertex, w.named ? &w.name : NULL, w.lists, w.count);
    }
    delta_walk_free(&w);
    return err;
}

weir_err weir_delta_order_lists(const weir_delta_order *order, weir_delta_list_visit visit, void *context) {
    delta_walk w = {0};
    weir_err err = WEIR_OK;
    for (size_t i = 0; !err && i < order->count;) {
        weir_vertex vertex = order->places[i].vertex;
        err = delta_walk_next(&w, order, &i);
        for (size_t k = 0; !err && k < w.count; k++)
            if (w.lists[k].count) err = visit(context, vertex, w.lists[k].id, w.lists[k].entries, w.lists[k].count);
    }
    delta_walk_free(&w);
    return err;
}

static int delta_walk_compare_deletions(const void *a, const void *b) {
    const delta_deletion *x = a, *y = b;
    if (x->vertex != y->vertex) return x->vertex < y->vertex ? -1 : 1;
    return (x->time_us < y->time_us) - (x->time_us > y->time_us); /* newest first */
}

weir_err weir_delta_order_walk_deletions(const weir_delta_order *order, weir_bundling_visit visit, void *context) {
    uint8_t key[WEIR_DELETED_KEY_BYTES];
    weir_err err = WEIR_OK;
    const weir_delta *delta = order->delta;
    if (delta->deletion_count)
        qsort(delta->deletions, delta->deletion_count, sizeof delta->deletions[0], delta_walk_compare_deletions);
    for (size_t i = 0; !err && i < delta->deletion_count; i++) {
        if (i > 0 && delta_walk_compare_deletions(&delta->deletions[i - 1], &delta->deletions[i]) == 0) continue;
        weir_deleted_key_write(delta->deletions[i].vertex, delta->deletions[i].time_us, key);
        err = visit(context, key, sizeof key, NULL, 0);
    }
    return err;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * delta_walk.c - a frozen delta in the order of the cold store's keys, which is what makes a seal one sorted file.
 *
 * Vertices are sorted once; each kind of record is then one pass over them.
 */
#include <stdlib.h>
#include <string.h>

#include <weir/base/alloc.h>
#include <weir/base/assert.h>
#include <weir/base/bytes.h>
#include <weir/store/key.h>
#include <weir/store/stored.h>

#include "delta_private.h"

typedef struct walk {
    const weir_delta *delta;
    const node **nodes; /* rising by vertex */
    size_t count;
    weir_delta_visit visit;
    void *context;
} walk;

static int compare_nodes(const void *a, const void *b) {
    weir_vertex x = (*(const node *const *)a)->vertex, y = (*(const node *const *)b)->vertex;
    return (x > y) - (x < y);
}

static weir_err nodes_sorted(const weir_delta *delta, const node ***nodesp, size_t *countp) {
    size_t total = 0, filled = 0;
    *nodesp = NULL;
    *countp = 0;
    for (size_t i = 0; i < STRIPES; i++)
        total += delta->stripes[i].count;
    const node **nodes = weir_malloc(total * sizeof *nodes);
    if (!nodes) return WEIR_ERR(WEIR_ENOMEM, "no memory to sort %zu vertices for a seal", total);
    for (size_t i = 0; i < STRIPES; i++) {
        const stripe *s = &delta->stripes[i];
        for (size_t j = 0; j < s->capacity; j++) {
            if (s->slots[j]) nodes[filled++] = s->slots[j];
        }
    }
    WEIR_ASSERT(filled == total);
    qsort(nodes, total, sizeof *nodes, compare_nodes);
    *nodesp = nodes;
    *countp = total;
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

static weir_err walk_list(const walk *w, const node *n, const list *l) {
    uint8_t key[WEIR_EDGE_KEY_BYTES];
    weir_err err = WEIR_OK;
    for (uint32_t i = l->count; !err && i > 0; i--) { /* newest first is rising by key */
        const weir_entry *e = &l->entries[i - 1];
        size_t length = key_write(n->vertex, l->id, e, key);
        err = w->visit(w->context, key, length, e->row, e->row_length);
    }
    return err;
}

static weir_err walk_kind(const walk *w, uint32_t kind) {
    weir_err err = WEIR_OK;
    for (size_t i = 0; !err && i < w->count; i++) {
        for (const list *l = w->nodes[i]->lists; !err && l; l = l->next) {
            if (WEIR_LIST_KIND(l->id) == kind) err = walk_list(w, w->nodes[i], l);
        }
    }
    return err;
}

static weir_err walk_names(const walk *w) {
    uint8_t key[WEIR_NAME_KEY_BYTES], value[WEIR_STORED_NAME_MAX];
    weir_err err = WEIR_OK;
    for (size_t i = 0; !err && i < w->count; i++) {
        const node *n = w->nodes[i];
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
    weir_err err = nodes_sorted(delta, &w.nodes, &w.count);
    if (!err) err = walk_kind(&w, WEIR_LIST_KIND_EDGES);
    if (!err) err = walk_kind(&w, WEIR_LIST_KIND_FEATURES);
    if (!err) err = walk_kind(&w, WEIR_LIST_KIND_PUTS);
    if (!err) err = walk_kind(&w, WEIR_LIST_KIND_LABEL);
    if (!err) err = walk_names(&w);
    weir_free(w.nodes);
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
            for (const list *l = s->slots[j] ? s->slots[j]->lists : NULL; !err && l; l = l->next) {
                err = visit(context, s->slots[j]->vertex, l->id, l->entries, l->count);
            }
        }
    }
    return err;
}

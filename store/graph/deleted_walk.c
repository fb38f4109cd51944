/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deleted_walk.c - what is not sealed, sorted, beside a cursor over what is.
 *
 * It may be sealed meanwhile, and comes twice then.
 */
#include <stdlib.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/format/bundle.h>
#include <weir/store/format/key.h>

#include "deleted_private.h"

typedef struct deleted_walk_item {
    weir_vertex vertex;
    int64_t time_us;
} deleted_walk_item;

struct weir_deleted_walk {
    deleted_walk_item *pending;
    size_t count, next;
    weir_engine_cursor *cursor;
    bool sealed_found;
    deleted_walk_item sealed; /* where the cursor stands */
};

/* By vertex, the newest first: as they lie in the cold store. */
static int deleted_walk_compare(const void *a, const void *b) {
    const deleted_walk_item *x = a, *y = b;
    if (x->vertex != y->vertex) return x->vertex < y->vertex ? -1 : 1;
    return (x->time_us < y->time_us) - (x->time_us > y->time_us);
}

static void deleted_walk_copy_table(weir_deleted_walk *walk, const weir_deletion_table *table) {
    const weir_deletion_place *places = table->places.entries;
    for (size_t i = 0; i < table->places.capacity; i++)
        for (uint32_t j = 0; j < places[i].count; j++)
            walk->pending[walk->count++] = (deleted_walk_item){places[i].vertex, weir_deletion_times(&places[i])[j]};
}

static weir_err deleted_walk_copy_pending(weir_deleted_walk *walk, weir_deleted *deleted) {
    pthread_rwlock_rdlock(&deleted->lock);
    walk->pending = weir_malloc((deleted->young.count + deleted->old.count) * sizeof *walk->pending);
    if (walk->pending) {
        deleted_walk_copy_table(walk, &deleted->young);
        deleted_walk_copy_table(walk, &deleted->old);
    }
    WEIR_ASSERT(!walk->pending || walk->count == deleted->young.count + deleted->old.count);
    pthread_rwlock_unlock(&deleted->lock);
    if (!walk->pending) return WEIR_NOMEM("for the deletions that are not sealed");
    if (walk->count) qsort(walk->pending, walk->count, sizeof *walk->pending, deleted_walk_compare);
    return WEIR_OK;
}

/* Behind them are the bundles. */
static weir_err deleted_walk_take_sealed(weir_deleted_walk *walk) {
    size_t length = 0;
    walk->sealed_found = false;
    if (!weir_engine_cursor_valid(walk->cursor)) return weir_engine_cursor_err(walk->cursor);
    const char *key = weir_engine_cursor_key(walk->cursor, &length);
    if (length && key[0] == WEIR_BUNDLE_KIND) return WEIR_OK;
    walk->sealed_found = true;
    if (weir_deletion_read(key, length, &walk->sealed.vertex, &walk->sealed.time_us)) return WEIR_OK;
    return WEIR_ERR(WEIR_ECORRUPT, "a deletion of a vertex is damaged; restore a checkpoint");
}

weir_err weir_deleted_walk_open(weir_deleted *deleted, weir_deleted_walk **walkp) {
    *walkp = NULL;
    weir_deleted_walk *walk = weir_calloc(1, sizeof *walk);
    if (!walk) return WEIR_NOMEM("while walking over the deletions");
    weir_err err = deleted_walk_copy_pending(walk, deleted); /* first: what is sealed now is met by the cursor */
    if (!err) err = weir_engine_cursor_open(deleted->engine, WEIR_ENGINE_SCAN, &walk->cursor);
    if (!err) {
        weir_engine_cursor_seek(walk->cursor, "T", 1);
        err = deleted_walk_take_sealed(walk);
    }
    if (err) {
        weir_deleted_walk_close(walk);
        return err;
    }
    *walkp = walk;
    return WEIR_OK;
}

weir_err weir_deleted_walk_next(weir_deleted_walk *walk, bool *foundp, weir_vertex *vertexp, int64_t *time_usp) {
    const deleted_walk_item *pending = walk->next < walk->count ? &walk->pending[walk->next] : NULL, *first = pending;
    bool from_cold = walk->sealed_found && (!pending || deleted_walk_compare(&walk->sealed, pending) <= 0);
    if (from_cold) first = &walk->sealed;
    *foundp = first != NULL;
    if (!first) return WEIR_OK;
    *vertexp = first->vertex;
    *time_usp = first->time_us;
    if (!from_cold) {
        walk->next++;
        return WEIR_OK;
    }
    weir_engine_cursor_next(walk->cursor);
    return deleted_walk_take_sealed(walk);
}

void weir_deleted_walk_close(weir_deleted_walk *walk) {
    if (!walk) return;
    weir_engine_cursor_close(walk->cursor);
    weir_free(walk->pending);
    weir_free(walk);
}

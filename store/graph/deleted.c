/* SPDX-License-Identifier: Apache-2.0 */
/* deleted.c - what is not sealed in two tables, what is in the cold store, and answers of it that were asked for. */
#include <weir/base/alloc.h>
#include <weir/base/assert.h>
#include <weir/store/key.h>

#include "deleted_private.h"
#include "shard.h"

#define PLACES_MIN 64u
#define ANSWERS    16384u /* a power of two */

static size_t hash(weir_vertex vertex) {
    return (size_t)(weir_vertex_fold(vertex) * 0x9e3779b97f4a7c15ull >> 20);
}

/* --- tables of what is not sealed ---------------------------------------------------------------------------------- */

static bool table_insert(weir_deletion_table *table, weir_deletion deletion) {
    size_t at = hash(deletion.vertex) & (table->capacity - 1);
    for (; table->places[at].time_us != WEIR_DELETED_NEVER; at = (at + 1) & (table->capacity - 1)) {
        const weir_deletion *d = &table->places[at];
        if (d->vertex == deletion.vertex && d->time_us == deletion.time_us) return false;
    }
    table->places[at] = deletion;
    table->count++;
    return true;
}

static bool table_grow(weir_deletion_table *table) {
    weir_deletion_table grown = {.capacity = table->capacity ? table->capacity * 2 : PLACES_MIN};
    grown.places = weir_malloc(grown.capacity * sizeof *grown.places);
    if (!grown.places) return false;
    for (size_t i = 0; i < grown.capacity; i++)
        grown.places[i] = (weir_deletion){0, WEIR_DELETED_NEVER};
    for (size_t i = 0; i < table->capacity; i++)
        if (table->places[i].time_us != WEIR_DELETED_NEVER) table_insert(&grown, table->places[i]);
    weir_free(table->places);
    *table = grown;
    return true;
}

static int64_t table_newest(const weir_deletion_table *table, weir_vertex vertex, int64_t before_us) {
    int64_t newest_us = WEIR_DELETED_NEVER;
    if (table->count == 0) return newest_us;
    for (size_t at = hash(vertex) & (table->capacity - 1); table->places[at].time_us != WEIR_DELETED_NEVER;
         at = (at + 1) & (table->capacity - 1)) {
        const weir_deletion *d = &table->places[at];
        if (d->vertex == vertex && d->time_us < before_us && d->time_us > newest_us) newest_us = d->time_us;
    }
    return newest_us;
}

/* --- life ---------------------------------------------------------------------------------------------------------- */

static weir_err load_one(void *context, const void *key, size_t length, const void *value, size_t value_length) {
    weir_deleted *deleted = context;
    weir_vertex vertex;
    int64_t time_us;
    (void)value, (void)value_length;
    if (!weir_deleted_key_read(key, length, &vertex, &time_us))
        return WEIR_ERR(WEIR_ECORRUPT, "a deletion of a vertex is damaged; restore a checkpoint");
    weir_deleted_filter_add(deleted->filter, vertex);
    atomic_fetch_add_explicit(&deleted->count, 1, memory_order_relaxed);
    return WEIR_OK;
}

weir_err weir_deleted_open(weir_engine *engine, weir_deleted_filter *filter, weir_deleted **deletedp) {
    *deletedp = NULL;
    weir_deleted *deleted = weir_calloc(1, sizeof *deleted);
    if (!deleted) return WEIR_ERR(WEIR_ENOMEM, "no memory for the deleted vertices");
    int error = pthread_rwlock_init(&deleted->lock, NULL);
    WEIR_ASSERT(error == 0);
    deleted->engine = engine;
    deleted->filter = filter;
    deleted->answers = weir_calloc(ANSWERS, sizeof *deleted->answers);
    weir_err err = WEIR_OK;
    if (!deleted->answers) err = WEIR_ERR(WEIR_ENOMEM, "no memory for the deleted vertices");
    if (!err) err = weir_shard_scan_kind(engine, 'T', load_one, deleted);
    if (err) {
        weir_deleted_close(deleted);
        return err;
    }
    *deletedp = deleted;
    return WEIR_OK;
}

void weir_deleted_close(weir_deleted *deleted) {
    if (!deleted) return;
    pthread_rwlock_destroy(&deleted->lock);
    weir_free(deleted->young.places);
    weir_free(deleted->old.places);
    weir_free(deleted->answers);
    weir_free(deleted);
}

/* --- writing ------------------------------------------------------------------------------------------------------- */

weir_err weir_deleted_add(weir_deleted *deleted, weir_vertex vertex, int64_t time_us) {
    const weir_deletion added = {vertex, time_us == WEIR_DELETED_NEVER ? time_us + 1 : time_us};
    bool fits = true;
    pthread_rwlock_wrlock(&deleted->lock);
    if (deleted->young.count * 2 >= deleted->young.capacity) fits = table_grow(&deleted->young);
    if (fits && table_insert(&deleted->young, added))
        atomic_fetch_add_explicit(&deleted->count, 1, memory_order_relaxed);
    pthread_rwlock_unlock(&deleted->lock);
    if (!fits) return WEIR_ERR(WEIR_ENOMEM, "no memory for the deleted vertices");
    weir_deleted_filter_add(deleted->filter, vertex);
    return WEIR_OK;
}

void weir_deleted_freeze(weir_deleted *deleted) {
    pthread_rwlock_wrlock(&deleted->lock);
    WEIR_ASSERT(deleted->old.count == 0);
    const weir_deletion_table empty = deleted->old;
    deleted->old = deleted->young;
    deleted->young = empty;
    pthread_rwlock_unlock(&deleted->lock);
}

/* An answer of a vertex that was sealed now is another one from now on. The table gives its memory back. */
void weir_deleted_sealed(weir_deleted *deleted) {
    pthread_rwlock_wrlock(&deleted->lock);
    const weir_deletion_table sealed = deleted->old;
    deleted->old = (weir_deletion_table){0};
    deleted->seals += sealed.count > 0;
    for (size_t i = 0; sealed.count && i < sealed.capacity; i++) {
        if (sealed.places[i].time_us == WEIR_DELETED_NEVER) continue;
        deleted->answers[hash(sealed.places[i].vertex) & (ANSWERS - 1)].known = false;
    }
    pthread_rwlock_unlock(&deleted->lock);
    weir_free(sealed.places);
}

/* --- asking -------------------------------------------------------------------------------------------------------- */

/* The newest of a vertex that is sealed and older than before_us, by a cursor. */
static weir_err seek(weir_engine_cursor *cursor, weir_vertex vertex, int64_t before_us, int64_t *time_usp) {
    uint8_t key[WEIR_DELETED_KEY_BYTES];
    weir_vertex found;
    size_t length;
    *time_usp = WEIR_DELETED_NEVER;
    if (before_us <= INT64_MIN + 1) return WEIR_OK; /* the least time counts as the one behind it */
    weir_deleted_key_write(vertex, before_us - 1, key);
    weir_engine_cursor_seek(cursor, key, sizeof key);
    if (!weir_engine_cursor_valid(cursor)) return weir_engine_cursor_err(cursor);
    const void *at = weir_engine_cursor_key(cursor, &length);
    bool is = weir_deleted_key_read(at, length, &found, time_usp) && found == vertex;
    if (!is) *time_usp = WEIR_DELETED_NEVER;
    if (is && *time_usp == WEIR_DELETED_NEVER) ++*time_usp;
    return WEIR_OK;
}

/* What any reader but one of the past needs is kept: the newest of all. */
static weir_err look_up(weir_deleted *deleted, weir_vertex vertex, int64_t before_us, uint64_t seals,
                        int64_t *time_usp) {
    weir_engine_cursor *cursor;
    int64_t newest_us = WEIR_DELETED_NEVER;
    weir_err err = weir_engine_cursor_open(deleted->engine, WEIR_ENGINE_POINT, &cursor);
    if (err) return err;
    err = seek(cursor, vertex, INT64_MAX, &newest_us);
    *time_usp = newest_us;
    if (!err && newest_us >= before_us) err = seek(cursor, vertex, before_us, time_usp);
    weir_engine_cursor_close(cursor);
    if (err) return err;
    pthread_rwlock_wrlock(&deleted->lock);
    if (deleted->seals == seals)
        deleted->answers[hash(vertex) & (ANSWERS - 1)] = (weir_deleted_answer){vertex, newest_us, true};
    pthread_rwlock_unlock(&deleted->lock);
    return WEIR_OK;
}

weir_err weir_deleted_time(weir_deleted *deleted, weir_vertex vertex, int64_t before_us, weir_graph_budget *budget,
                           int64_t *time_usp) {
    *time_usp = WEIR_DELETED_NEVER;
    if (!weir_deleted_filter_may_have(deleted->filter, vertex)) return WEIR_OK;
    pthread_rwlock_rdlock(&deleted->lock);
    int64_t young_us = table_newest(&deleted->young, vertex, before_us);
    int64_t old_us = table_newest(&deleted->old, vertex, before_us), sealed_us;
    const weir_deleted_answer answer = deleted->answers[hash(vertex) & (ANSWERS - 1)];
    uint64_t seals = deleted->seals;
    pthread_rwlock_unlock(&deleted->lock);
    weir_err err = WEIR_OK;
    if (answer.known && answer.vertex == vertex && answer.time_us < before_us) {
        sealed_us = answer.time_us;
    } else {
        err = weir_shard_spend(budget, WEIR_GRAPH_SEEK_STEPS);
        if (!err) err = look_up(deleted, vertex, before_us, seals, &sealed_us);
    }
    if (err) return err;
    *time_usp = young_us > old_us ? young_us : old_us;
    if (sealed_us > *time_usp) *time_usp = sealed_us;
    return WEIR_OK;
}

uint64_t weir_deleted_count(const weir_deleted *deleted) {
    return atomic_load_explicit(&deleted->count, memory_order_relaxed);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* deleted.c - what is not sealed in two tables, what is in the cold store, and answers of it that were asked for. */
#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/thread.h>
#include <weir/store/format/key.h>

#include "cold.h"
#include "deleted_private.h"
#include "shard.h"

#define ANSWERS_MIN    64u
#define FORGOTTEN_PART 1024u /* places of a sealed table that are passed before readers have their turn */

bool weir_deletion_read(const void *key, size_t length, weir_vertex *vertexp, int64_t *time_usp) {
    if (!weir_deleted_key_read(key, length, vertexp, time_usp)) return false;
    if (*time_usp == WEIR_DELETED_NEVER) ++*time_usp;
    return true;
}

/* --- life ------------------------------------------------------------------------------------------------------- */

static weir_err deleted_load_one(void *context, const void *key, size_t length, const void *value,
                                 size_t value_length) {
    weir_deleted *deleted = context;
    weir_vertex vertex;
    int64_t time_us;
    (void)value, (void)value_length;
    if (!weir_deletion_read(key, length, &vertex, &time_us))
        return WEIR_ERR(WEIR_ECORRUPT, "a deletion of a vertex is damaged; restore a checkpoint");
    weir_deleted_filter_add(deleted->filter, vertex);
    atomic_fetch_add_explicit(&deleted->count, 1, memory_order_relaxed);
    return WEIR_OK;
}

weir_err weir_deleted_open(weir_engine *engine, weir_deleted_filter *filter, size_t answer_bytes,
                           weir_deleted **deletedp) {
    *deletedp = NULL;
    weir_deleted *deleted = weir_calloc(1, sizeof *deleted);
    if (!deleted) return WEIR_NOMEM("for the deleted vertices");
    int error = pthread_rwlock_init(&deleted->lock, NULL);
    WEIR_ASSERT(error == 0);
    deleted->engine = engine;
    deleted->filter = filter;
    deleted->answer_count = ANSWERS_MIN;
    while (deleted->answer_count * 2 * sizeof *deleted->answers <= answer_bytes)
        deleted->answer_count *= 2;
    deleted->answers = weir_calloc(deleted->answer_count, sizeof *deleted->answers);
    weir_err err = WEIR_OK;
    if (!deleted->answers) err = WEIR_NOMEM("for the deleted vertices");
    if (!err) err = weir_cold_scan_kind(engine, 'T', deleted_load_one, deleted);
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
    weir_deletion_table_free(&deleted->young);
    weir_deletion_table_free(&deleted->old);
    weir_free(deleted->answers);
    weir_free(deleted);
}

/* --- writing ---------------------------------------------------------------------------------------------------- */

weir_err weir_deleted_add(weir_deleted *deleted, weir_vertex vertex, int64_t time_us) {
    WEIR_ON_ROLE(SHARD);
    bool is_new;
    pthread_rwlock_wrlock(&deleted->lock);
    bool fits = weir_deletion_table_insert(&deleted->young, vertex,
                                           time_us == WEIR_DELETED_NEVER ? time_us + 1 : time_us, &is_new);
    pthread_rwlock_unlock(&deleted->lock);
    if (!fits) return WEIR_NOMEM("for the deleted vertices");
    if (is_new) atomic_fetch_add_explicit(&deleted->count, 1, memory_order_relaxed);
    weir_deleted_filter_add(deleted->filter, vertex);
    return WEIR_OK;
}

void weir_deleted_freeze(weir_deleted *deleted) {
    WEIR_ON_ROLE(SHARD);
    pthread_rwlock_wrlock(&deleted->lock);
    WEIR_ASSERT(deleted->old.count == 0);
    deleted->old = deleted->young;
    deleted->young = (weir_deletion_table){0};
    pthread_rwlock_unlock(&deleted->lock);
}

static weir_deleted_answer *deleted_answer_of(const weir_deleted *deleted, weir_vertex vertex) {
    return &deleted->answers[weir_hash_mix(weir_vertex_fold(vertex)) & (deleted->answer_count - 1)];
}

/* An answer about a vertex that was sealed now is another one from now on. While answers are forgotten, in parts, the
 * table still says what they lack. */
void weir_deleted_sealed(weir_deleted *deleted) {
    WEIR_ON_ROLE(WORKER);
    const weir_table sealed = deleted->old.places; /* only this thread empties it */
    const weir_deletion_place *places = sealed.entries;
    if (sealed.count == 0) return;
    for (size_t i = 0; i < sealed.capacity;) {
        pthread_rwlock_wrlock(&deleted->lock);
        deleted->seals += i == 0;
        for (size_t end = i + FORGOTTEN_PART; i < end && i < sealed.capacity; i++)
            if (places[i].tag) deleted_answer_of(deleted, places[i].vertex)->known = false;
        pthread_rwlock_unlock(&deleted->lock);
    }
    pthread_rwlock_wrlock(&deleted->lock);
    weir_deletion_table forgotten = deleted->old;
    deleted->old = (weir_deletion_table){0};
    pthread_rwlock_unlock(&deleted->lock);
    weir_deletion_table_free(&forgotten);
}

/* --- asking ----------------------------------------------------------------------------------------------------- */

/* What a look knows without the cold store. */
typedef struct deleted_in_memory {
    int64_t newest_us; /* before the time, and not sealed */
    weir_deleted_answer answer;
    uint64_t seals;
} deleted_in_memory;

static deleted_in_memory deleted_ask_memory(weir_deleted *deleted, weir_vertex vertex, int64_t before_us) {
    pthread_rwlock_rdlock(&deleted->lock);
    int64_t young_us = weir_deletion_table_newest(&deleted->young, vertex, before_us);
    int64_t old_us = weir_deletion_table_newest(&deleted->old, vertex, before_us);
    deleted_in_memory found = {.newest_us = young_us > old_us ? young_us : old_us,
                               .answer = *deleted_answer_of(deleted, vertex),
                               .seals = deleted->seals};
    pthread_rwlock_unlock(&deleted->lock);
    found.answer.known = found.answer.known && found.answer.vertex == vertex;
    return found;
}

/* The newest of a vertex that is sealed and older than before_us. */
static weir_err deleted_seek(weir_deleted_look *look, weir_vertex vertex, int64_t before_us, int64_t *time_usp) {
    uint8_t key[WEIR_DELETED_KEY_BYTES];
    weir_vertex found;
    size_t length;
    *time_usp = WEIR_DELETED_NEVER;
    if (before_us <= INT64_MIN + 1) return WEIR_OK; /* the least time counts as the one behind it */
    weir_err err = weir_shard_spend(look->budget, WEIR_GRAPH_SEEK_STEPS);
    if (err) return err;
    weir_deleted_key_write(vertex, before_us - 1, key);
    weir_engine_cursor_seek(look->cursor, key, sizeof key);
    if (!weir_engine_cursor_valid(look->cursor)) return weir_engine_cursor_err(look->cursor);
    const void *at = weir_engine_cursor_key(look->cursor, &length);
    if (!weir_deletion_read(at, length, &found, time_usp))
        return WEIR_ERR(WEIR_ECORRUPT, "a deletion of vertex " WEIR_VERTEX_FORMAT " is damaged; restore a checkpoint",
                        WEIR_VERTEX_WORDS(vertex));
    if (found != vertex) *time_usp = WEIR_DELETED_NEVER;
    return WEIR_OK;
}

static weir_err deleted_look_up(weir_deleted_look *look, const deleted_in_memory *known, weir_vertex vertex,
                                int64_t before_us, int64_t *time_usp) {
    weir_deleted *deleted = look->deleted;
    int64_t newest_us = known->answer.time_us;
    weir_err err = WEIR_OK;

    /* A cursor from before a seal may lack what is in the tables no more. */
    if (!look->cursor || look->seals != known->seals) {
        weir_engine_cursor_close(look->cursor);
        look->cursor = NULL;
        look->seals = known->seals;
        err = look->beside ? weir_engine_cursor_open_beside(look->beside, &look->cursor)
                           : weir_engine_cursor_open(deleted->engine, WEIR_ENGINE_POINT, &look->cursor);
    }
    if (!err && !known->answer.known) {
        err = deleted_seek(look, vertex, INT64_MAX, &newest_us);
        /* The newest of all is what every reader but one of the past needs, so it is kept, unless the lock is taken. */
        if (!err && pthread_rwlock_trywrlock(&deleted->lock) == 0) {
            if (deleted->seals == known->seals)
                *deleted_answer_of(deleted, vertex) = (weir_deleted_answer){vertex, newest_us, true};
            pthread_rwlock_unlock(&deleted->lock);
        }
    }
    *time_usp = newest_us;
    if (!err && newest_us >= before_us) err = deleted_seek(look, vertex, before_us, time_usp);
    return err;
}

weir_err weir_deleted_time(weir_deleted_look *look, weir_vertex vertex, int64_t before_us, int64_t *time_usp) {
    *time_usp = WEIR_DELETED_NEVER;
    if (!weir_deleted_filter_may_have(look->deleted->filter, vertex)) return WEIR_OK;
    const deleted_in_memory known = deleted_ask_memory(look->deleted, vertex, before_us);
    int64_t sealed_us = known.answer.time_us;
    if (!known.answer.known || sealed_us >= before_us) {
        weir_err err = deleted_look_up(look, &known, vertex, before_us, &sealed_us);
        if (err) return err;
    }
    *time_usp = known.newest_us > sealed_us ? known.newest_us : sealed_us;
    return WEIR_OK;
}

void weir_deleted_look_end(weir_deleted_look *look) {
    weir_engine_cursor_close(look->cursor);
    look->cursor = NULL;
}

const weir_deleted_filter *weir_deleted_filter_of(const weir_deleted *deleted) {
    return deleted->filter;
}

uint64_t weir_deleted_count(const weir_deleted *deleted) {
    return atomic_load_explicit(&deleted->count, memory_order_relaxed);
}

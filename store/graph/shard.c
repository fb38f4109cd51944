/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shard.c - the owner: takes batches in order, applies what is new, freezes the delta when it is due.
 *
 *   fill ──(size, age, or asked)──► freeze: the delta becomes `frozen`, a new one `active` ──► the sealer's
 *                                   └ waits while the one before is still being sealed (S6)
 */
#include <stdio.h>
#include <string.h>

#include <weir/base/alloc.h>
#include <weir/base/assert.h>
#include <weir/base/bytes.h>
#include <weir/base/fault.h>
#include <weir/base/log.h>
#include <weir/store/key.h>

#include "shard.h"

#define QUEUE_BATCHES 64u
#define POP_BATCHES   16u
#define TICK_US       100000
#define GROUP_MAX     512u /* mutations of one event at one vertex that become visible together */

typedef enum message_kind { MESSAGE_BATCH, MESSAGE_DRAIN, MESSAGE_SEAL } message_kind;

/* Lives on the stack of who waits for it. */
typedef struct request {
    bool done; /* guarded by the shard's mutex */
    uint64_t seals_wanted;
} request;

typedef struct message {
    message_kind kind;
    void *batch; /* owned */
    size_t length;
    request *request;
} message;

void weir_shard_version(weir_shard *shard, weir_delta *deltas[2]) {
    weir_mutex_lock(&shard->mutex);
    deltas[0] = weir_delta_keep(shard->active);
    deltas[1] = weir_delta_keep(shard->frozen);
    weir_mutex_unlock(&shard->mutex);
}

/* --- the owner -----------------------------------------------------------------------------------------------------
 * */

static void delta_swap(weir_shard *shard, weir_delta *fresh) {
    weir_delta_freeze(shard->active);
    shard->frozen = shard->active;
    shard->frozen_newest_us = atomic_load_explicit(&shard->event_time_last_us, memory_order_relaxed);
    shard->active = fresh;
    shard->seals_wanted++;
    weir_cond_broadcast(&shard->changed);
}

static bool nothing_new(weir_shard *shard) {
    return weir_delta_records(shard->active) == 0 && weir_offsets_equal(shard->applied, shard->sealed);
}

/* Somebody waits for an answer, and the disk is full: without this, a stop would wait for room.  Under the mutex. */
static bool cannot_seal_now(const weir_shard *shard) {
    return shard->asking && shard->seal_err && !shard->stopping;
}

/* Waits for the seal before; after that there is room for one more. */
static weir_err freeze(weir_shard *shard) {
    WEIR_ON_ROLE(SHARD);
    weir_delta *fresh = NULL;
    weir_err err = WEIR_OK;
    shard->postponed = false;
    if (nothing_new(shard)) goto end;
    err = weir_delta_open(shard->seal_bytes * 2, &fresh);
    if (err) return err;
    weir_mutex_lock(&shard->mutex);
    while (shard->frozen && !shard->stopping && !cannot_seal_now(shard))
        weir_cond_wait(&shard->changed, &shard->mutex);
    shard->postponed = shard->frozen && cannot_seal_now(shard); /* the next one tries again */
    if (shard->postponed) {
        err = WEIR_OK;
    } else if (shard->frozen) {
        err = WEIR_ERR(WEIR_ECLOSED, "shard %u stops before its delta could be sealed; the log has it", shard->index);
    } else {
        err = weir_offsets_copy(shard->frozen_offsets, shard->applied);
    }
    if (!err && !shard->frozen) {
        delta_swap(shard, fresh);
        fresh = NULL;
    }
    weir_mutex_unlock(&shard->mutex);
    weir_delta_release(fresh);
end:
    shard->active_since_us = weir_clock_mono_us(shard->clock);
    return err;
}

static void event_time_seen(weir_shard *shard, int64_t time_us) {
    if (time_us > atomic_load_explicit(&shard->event_time_last_us, memory_order_relaxed)) {
        atomic_store_explicit(&shard->event_time_last_us, time_us, memory_order_relaxed);
    }
}

static weir_err apply_group(weir_shard *shard, const weir_mutation *group, size_t count) {
    weir_err err = WEIR_OK;
    for (size_t i = 0; !err && i < count; i++) {
        event_time_seen(shard, group[i].time_us);
        if (group[i].kind != WEIR_DELETE_VERTEX) continue;
        err = weir_delta_put_deletion(shard->active, group[i].vertex, group[i].time_us);
        if (!err) err = weir_deleted_add(shard->deleted, group[i].vertex, group[i].time_us);
    }
    if (!err) err = weir_delta_apply(shard->active, group, count);
    if (!weir_err_is(err, WEIR_ENOMEM)) return err;
    err = freeze(shard); /* the delta is full: what it has of the group is the same when it is applied again (S4) */
    return err ? err : weir_delta_apply(shard->active, group, count);
}

/* One event at one vertex at a time, because that is what readers may see of it. */
static weir_err apply_new(weir_shard *shard, weir_batch_cursor *cursor, uint64_t from) {
    weir_mutation group[GROUP_MAX], next;
    size_t count = 0;
    weir_err err = WEIR_OK;
    while (!err && weir_batch_next(cursor, &next)) {
        if (next.offset < from) { /* S4 */
            atomic_fetch_add_explicit(&shard->skipped_mutations, 1, memory_order_relaxed);
            continue;
        }
        weir_delta_ahead(shard->active, next.vertex);
        bool same = count > 0 && group[0].vertex == next.vertex && group[0].offset == next.offset;
        if (count > 0 && (!same || count == GROUP_MAX)) {
            err = apply_group(shard, group, count);
            count = 0;
        }
        group[count++] = next;
        atomic_fetch_add_explicit(&shard->applied_mutations, 1, memory_order_relaxed);
    }
    if (!err && count > 0) err = apply_group(shard, group, count);
    return err;
}

static weir_err apply_batch(weir_shard *shard, const message *m) {
    WEIR_ON_ROLE(SHARD);
    weir_batch_cursor cursor;
    uint64_t from;
    weir_err err = weir_batch_open(m->batch, m->length, &cursor);
    if (err) return err;
    const weir_batch_span span = cursor.span;
    bool seen = weir_offsets_get(shard->applied, span.source, span.partition, &from);
    if (seen && span.offset_end <= from) {
        atomic_fetch_add_explicit(&shard->skipped_mutations, cursor.left, memory_order_relaxed);
        return WEIR_OK;
    }
    if (seen && span.offset_begin > from) { /* S1 */
        return WEIR_ERR(WEIR_EORDER, "source %u partition %u jumps from offset %llu to %llu: events are missing",
                        span.source, span.partition, (unsigned long long)from, (unsigned long long)span.offset_begin);
    }
    err = apply_new(shard, &cursor, from);
    weir_kill_point("shard.applied");
    if (!err) err = weir_offsets_set(shard->applied, span.source, span.partition, span.offset_end);
    return err;
}

static bool due(weir_shard *shard) {
    if (weir_delta_bytes(shard->active) >= shard->seal_bytes) return true;
    return weir_clock_mono_us(shard->clock) - shard->active_since_us >= shard->seal_us;
}

static weir_err handle(weir_shard *shard, const message *m) {
    weir_err err = WEIR_OK;
    if (m->kind == MESSAGE_BATCH) err = apply_batch(shard, m);
    if (m->kind == MESSAGE_SEAL) err = freeze(shard);
    if (m->kind == MESSAGE_BATCH && !err && weir_delta_bytes(shard->active) >= shard->seal_bytes) err = freeze(shard);
    return err;
}

static void answer(weir_shard *shard, const message *m) {
    weir_free(m->batch);
    if (!m->request) return;
    weir_mutex_lock(&shard->mutex);
    m->request->done = true;
    m->request->seals_wanted = shard->seals_wanted + shard->postponed;
    weir_cond_broadcast(&shard->changed);
    weir_mutex_unlock(&shard->mutex);
}

static void stop_failed(weir_shard *shard, weir_err err) {
    weir_mutex_lock(&shard->mutex);
    if (!shard->failed) shard->failed = err;
    weir_cond_broadcast(&shard->changed);
    weir_mutex_unlock(&shard->mutex);
    weir_log_error("shard.stopped", err);
}

/* What could not be frozen can be now. */
static bool has_room_again(weir_shard *shard) {
    if (!shard->postponed) return false;
    weir_mutex_lock(&shard->mutex);
    bool room = !shard->frozen;
    weir_mutex_unlock(&shard->mutex);
    return room;
}

static void own(void *context) {
    weir_shard *shard = context;
    message messages[POP_BATCHES];
    weir_err err = WEIR_OK;
    size_t count;
    for (;;) {
        weir_err pop_err = weir_queue_pop(shard->queue, messages, POP_BATCHES, TICK_US, &count);
        for (size_t i = 0; i < count; i++) {
            bool was_well = !err;
            if (was_well) err = handle(shard, &messages[i]);
            if (was_well && err) stop_failed(shard, err);
            answer(shard, &messages[i]);
        }
        if (weir_err_is(pop_err, WEIR_ECLOSED)) break;
        if (!err && (due(shard) || has_room_again(shard))) err = freeze(shard);
    }
}

/* --- talking to it -------------------------------------------------------------------------------------------------
 * */

static weir_err failed_err(weir_shard *shard) {
    weir_mutex_lock(&shard->mutex);
    weir_err err = shard->failed;
    weir_mutex_unlock(&shard->mutex);
    return err;
}

weir_err weir_shard_push(weir_shard *shard, const void *batch, size_t length) {
    weir_err err = failed_err(shard);
    if (err) return err;
    message m = {.kind = MESSAGE_BATCH, .batch = weir_malloc(length), .length = length};
    if (!m.batch) return WEIR_ERR(WEIR_ENOMEM, "no memory for a batch of %zu bytes", length);
    memcpy(m.batch, batch, length);
    err = weir_queue_push(shard->queue, &m, WEIR_QUEUE_FOREVER);
    if (err) weir_free(m.batch);
    return err;
}

static void asking(weir_shard *shard, uint32_t begins, uint32_t ends) {
    weir_mutex_lock(&shard->mutex);
    shard->asking += begins - ends;
    weir_cond_broadcast(&shard->changed);
    weir_mutex_unlock(&shard->mutex);
}

static weir_err ask(weir_shard *shard, message_kind kind, request *r) {
    message m = {.kind = kind, .request = r};
    asking(shard, 1, 0); /* before the push: it may wait for a shard that waits for room */
    weir_err err = weir_queue_push(shard->queue, &m, WEIR_QUEUE_FOREVER);
    weir_mutex_lock(&shard->mutex);
    while (!err && !r->done)
        weir_cond_wait(&shard->changed, &shard->mutex);
    if (!err) err = shard->failed;
    weir_mutex_unlock(&shard->mutex);
    asking(shard, 0, 1);
    return err;
}

weir_err weir_shard_drain(weir_shard *shard) {
    request r = {0};
    return ask(shard, MESSAGE_DRAIN, &r);
}

static uint64_t tries_begun(weir_shard *shard) {
    weir_mutex_lock(&shard->mutex);
    uint64_t tries = shard->tries;
    weir_mutex_unlock(&shard->mutex);
    return tries;
}

/* A try that began before says nothing: there may be room since.  Under the mutex. */
static bool tried_in_vain(const weir_shard *shard, uint64_t tries_before) {
    return shard->seal_err && shard->tries_ended > tries_before;
}

weir_err weir_shard_seal(weir_shard *shard) {
    request r = {0};
    uint64_t tries_before = tries_begun(shard);
    weir_err err = ask(shard, MESSAGE_SEAL, &r);
    if (err) return err;
    weir_mutex_lock(&shard->mutex);
    while (shard->seals_done < r.seals_wanted && !tried_in_vain(shard, tries_before) && !shard->failed) {
        weir_cond_wait(&shard->changed, &shard->mutex);
    }
    if (shard->seals_done < r.seals_wanted) err = shard->failed ? shard->failed : shard->seal_err;
    weir_mutex_unlock(&shard->mutex);
    return err;
}

/* --- open and close ------------------------------------------------------------------------------------------------
 * */

static weir_err load_offset(weir_shard *shard, const void *key, size_t length, const void *value, size_t value_length) {
    uint32_t source, partition;
    if (!weir_offset_key_read(key, length, &source, &partition) || value_length != 8) {
        return WEIR_ERR(WEIR_ECORRUPT, "an offset of shard %u is damaged; restore a checkpoint", shard->index);
    }
    weir_err err = weir_offsets_set(shard->applied, source, partition, weir_get_u64(value));
    if (!err) err = weir_offsets_set(shard->sealed, source, partition, weir_get_u64(value));
    return err;
}

static weir_err load_deletion(weir_shard *shard, const void *key, size_t length, const void *value,
                              size_t value_length) {
    weir_vertex vertex;
    int64_t time_us;
    (void)value, (void)value_length;
    if (!weir_deleted_key_read(key, length, &vertex, &time_us)) {
        return WEIR_ERR(WEIR_ECORRUPT, "a deletion of shard %u is damaged; restore a checkpoint", shard->index);
    }
    return weir_deleted_add(shard->deleted, vertex, time_us);
}

static weir_err load_newest(weir_shard *shard, const void *key, size_t length, const void *value, size_t value_length) {
    (void)key;
    if (length != 1 || value_length != 8) {
        return WEIR_ERR(WEIR_ECORRUPT, "the newest time of shard %u is damaged; restore a checkpoint", shard->index);
    }
    event_time_seen(shard, (int64_t)weir_get_u64(value));
    return WEIR_OK;
}

typedef weir_err (*load_one)(weir_shard *shard, const void *key, size_t length, const void *value, size_t value_length);

static weir_err load_kind(weir_shard *shard, char kind, load_one load) {
    weir_engine_cursor *cursor;
    weir_err err = weir_engine_cursor_open(shard->engine, WEIR_ENGINE_SCAN, &cursor);
    if (err) return err;
    for (weir_engine_cursor_seek(cursor, &kind, 1); !err && weir_engine_cursor_valid(cursor);
         weir_engine_cursor_next(cursor)) {
        size_t length, value_length;
        const char *key = weir_engine_cursor_key(cursor, &length);
        if (length == 0 || key[0] != kind) break;
        const void *value = weir_engine_cursor_value(cursor, &value_length);
        err = load(shard, key, length, value, value_length);
    }
    if (!err) err = weir_engine_cursor_err(cursor);
    weir_engine_cursor_close(cursor);
    return err;
}

static weir_err open_parts(weir_shard *shard, const weir_shard_opts *opts) {
    weir_engine_opts engine_opts = {.cache = opts->blocks, .create = opts->create, .read_only = opts->read_only};
    weir_err err = weir_engine_open(opts->folder, &engine_opts, &shard->engine);
    if (!err) err = weir_cache_open(opts->cache_bytes, opts->window, &shard->cache);
    if (!err) err = weir_deleted_open(&shard->deleted);
    if (!err) err = weir_offsets_open(&shard->applied);
    if (!err) err = weir_offsets_open(&shard->sealed);
    if (!err) err = weir_offsets_open(&shard->frozen_offsets);
    if (!err) err = weir_queue_open(QUEUE_BATCHES, sizeof(message), &shard->queue);
    if (!err) err = weir_delta_open(shard->seal_bytes * 2, &shard->active);
    if (!err) err = load_kind(shard, 'O', load_offset);
    if (!err) err = load_kind(shard, WEIR_NEWEST_KEY, load_newest);
    if (!err) err = load_kind(shard, 'T', load_deletion);
    return err;
}

static void seal_thread(void *context);

static weir_err start_threads(weir_shard *shard) {
    char name[WEIR_THREAD_NAME_MAX + 1];
    snprintf(name, sizeof name, "shard-%u", shard->index);
    weir_err err = weir_thread_start(name, WEIR_ROLE_SHARD, own, shard, &shard->owner);
    snprintf(name, sizeof name, "seal-%u", shard->index);
    if (!err) err = weir_thread_start(name, WEIR_ROLE_WORKER, seal_thread, shard, &shard->sealer);
    return err;
}

weir_err weir_shard_open(const weir_shard_opts *opts, weir_shard **shardp) {
    *shardp = NULL;
    weir_shard *shard = weir_calloc(1, sizeof *shard);
    if (!shard) return WEIR_ERR(WEIR_ENOMEM, "no memory for shard %u", opts->index);
    weir_mutex_init(&shard->mutex, WEIR_RANK_SHARD, "shard");
    weir_cond_init(&shard->changed);
    shard->clock = opts->clock;
    shard->seal_bytes = opts->seal_bytes;
    shard->seal_us = opts->seal_us;
    shard->window = opts->window;
    shard->index = opts->index;
    shard->read_only = opts->read_only;
    shard->active_since_us = weir_clock_mono_us(shard->clock);
    atomic_init(&shard->event_time_last_us, INT64_MIN);
    weir_err err = open_parts(shard, opts);
    if (!err && !opts->read_only) err = start_threads(shard);
    if (err) {
        weir_err_keep(&err, weir_shard_close(shard));
        return err;
    }
    *shardp = shard;
    return WEIR_OK;
}

static void stop_threads(weir_shard *shard) {
    weir_mutex_lock(&shard->mutex);
    shard->stopping = true;
    weir_cond_broadcast(&shard->changed);
    weir_mutex_unlock(&shard->mutex);
    if (shard->queue) weir_queue_close(shard->queue);
    weir_thread_join(shard->owner);
    weir_thread_join(shard->sealer);
}

weir_err weir_shard_close(weir_shard *shard) {
    weir_err err = WEIR_OK;
    if (!shard) return WEIR_OK;
    if (shard->owner && shard->sealer) err = weir_shard_seal(shard);
    stop_threads(shard);
    weir_delta_release(shard->active);
    weir_delta_release(shard->frozen);
    weir_queue_free(shard->queue);
    weir_offsets_close(shard->frozen_offsets);
    weir_offsets_close(shard->sealed);
    weir_offsets_close(shard->applied);
    weir_deleted_close(shard->deleted);
    weir_cache_close(shard->cache);
    weir_engine_close(shard->engine);
    weir_cond_destroy(&shard->changed);
    weir_mutex_destroy(&shard->mutex);
    weir_free(shard);
    return err;
}

/* --- the sealer's loop; what it does is seal.c ---------------------------------------------------------------------
 * */

#define RETRY_US WEIR_US_PER_S

/* Waits for something to seal; false: stop. After a failure it waits a while first: a full disk is not free at once. */
static bool wait_for_frozen(weir_shard *shard, bool after_failure) {
    int64_t retry_us = weir_clock_mono_us(weir_clock_system()) + (after_failure ? RETRY_US : 0);
    weir_mutex_lock(&shard->mutex);
    while (!shard->stopping) {
        int64_t now_us = weir_clock_mono_us(weir_clock_system());
        if (shard->frozen && now_us >= retry_us) break;
        if (shard->frozen) {
            weir_cond_wait_until(&shard->changed, &shard->mutex, retry_us);
        } else {
            weir_cond_wait(&shard->changed, &shard->mutex);
        }
    }
    bool go_on = !shard->stopping;
    if (go_on) shard->tries++;
    weir_mutex_unlock(&shard->mutex);
    return go_on;
}

static void seal_thread(void *context) {
    weir_shard *shard = context;
    bool failed = false;
    while (wait_for_frozen(shard, failed)) {
        weir_err err = weir_shard_write_frozen(shard);
        failed = err != WEIR_OK;
        if (failed) weir_log_error("shard.seal_failed", err);
        weir_mutex_lock(&shard->mutex);
        shard->seal_err = err;
        shard->tries_ended = shard->tries;
        if (failed) {
            shard->seal_failures++;
        } else {
            shard->seals_done++;
        }
        weir_cond_broadcast(&shard->changed);
        weir_mutex_unlock(&shard->mutex);
    }
}

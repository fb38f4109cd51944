/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shard.c - the owner: takes batches in order, applies what is new, freezes the delta when it is due.
 *
 *   fill ──(size, age, or asked)──► freeze: the delta becomes `frozen`, a new one `active` ──► the sealer's
 *                                   └ waits while the one before is still being sealed (S6)
 */
#include <stdio.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/bytes.h>
#include <weir/store/base/fault.h>
#include <weir/store/base/log.h>
#include <weir/store/format/bundle.h>
#include <weir/store/format/key.h>

#include "shard.h"

#define QUEUE_BATCHES  64u
#define POP_BATCHES    16u
#define TICK_US        100000
#define GROUP_MAX      512u /* mutations of one event at one vertex that become visible together */
#define AHEAD_SLOT     16u  /* mutations that are read before one is applied; a power of two */
#define AHEAD_NODE     10u
#define AHEAD_LISTS    5u
#define STALL_US_MIN   2000
#define STALL_US_MAX   WEIR_US_PER_S
#define REMAINS_SHARE  16u  /* of the memory for windows */
#define MUTATION_BYTES 256u /* that one takes in a delta beside its row and its key, at most */

/* Without a batch it only wakes the owner. */
typedef struct message {
    void *batch; /* owned */
    size_t length;
    weir_clock_note *note; /* of a batch; given back when it is done with */
} message;

void weir_shard_version(weir_shard *shard, weir_delta *deltas[2]) {
    weir_mutex_lock(&shard->mutex);
    deltas[0] = weir_delta_keep(shard->active);
    deltas[1] = weir_delta_keep(shard->frozen);
    weir_mutex_unlock(&shard->mutex);
}

bool weir_shard_is_piled(weir_shard *shard) {
    weir_mutex_lock(&shard->mutex);
    bool piled = weir_delta_is_pile(shard->active) || (shard->frozen && weir_delta_is_pile(shard->frozen));
    weir_mutex_unlock(&shard->mutex);
    return piled;
}

void weir_shard_unpile(weir_shard *shard) {
    weir_mutex_lock(&shard->mutex);
    shard->piles = false;
    weir_mutex_unlock(&shard->mutex);
}

/* --- the owner -----------------------------------------------------------------------------------------------------
 * */

static void delta_swap(weir_shard *shard, weir_delta *fresh) {
    weir_delta_freeze(shard->active);
    weir_deleted_freeze(shard->deleted);
    shard->frozen = shard->active;
    shard->frozen_newest_us = atomic_load_explicit(&shard->event_time_last_us, memory_order_relaxed);
    shard->frozen_mark = weir_watermark_mark_get(shard->watermark);
    if (!shard->piles) weir_delta_unpile(fresh);
    shard->active = fresh;
    shard->seals_wanted++;
    shard->news = false;
    weir_cond_broadcast(&shard->changed);
}

static bool time_has_passed(const weir_shard *shard) {
    return weir_watermark_now(shard->watermark) != shard->frozen_mark.now_us;
}

/* One without records may still be used up, by what could not be applied whole. */
static bool is_empty(const weir_shard *shard) {
    return weir_delta_records(shard->active) == 0 && weir_delta_bytes(shard->active) == 0;
}

/* Under the mutex.  must: the active delta takes no more. */
static void wait_for_room(weir_shard *shard, bool must) {
    while (shard->frozen && !shard->stopping && (must || !shard->seal_err.err)) {
        shard->waits_for_seal = true;
        weir_cond_wait(&shard->changed, &shard->mutex);
    }
    shard->waits_for_seal = false;
}

/* The first delta never is: what is there of a small log is found though the disk is full. */
static bool next_is_pile(weir_shard *shard) {
    weir_mutex_lock(&shard->mutex);
    bool pile = shard->piles && shard->seals_done > 0;
    weir_mutex_unlock(&shard->mutex);
    return pile;
}

static size_t full_at(const weir_shard *shard, bool pile) {
    return pile ? shard->pile_bytes : shard->seal_bytes;
}

static weir_err delta_open(const weir_shard *shard, bool pile, weir_delta **deltap) {
    size_t bytes = full_at(shard, pile);
    return weir_delta_open(bytes + bytes / WEIR_SHARD_SPARE_SHARE, pile, deltap);
}

/* Waits for the seal before, because after that there is room for one more; but if that fails, only when it must: who
 * asked is told why, and it is done once there is room. */
static weir_err freeze(weir_shard *shard, bool must) {
    WEIR_ON_ROLE(SHARD);
    weir_delta *fresh = NULL;
    weir_err err = WEIR_OK;
    shard->postponed = false;
    bool pile = next_is_pile(shard), unpiles = weir_delta_is_pile(shard->active) && !pile;
    if (is_empty(shard) && !shard->news && !time_has_passed(shard) && !unpiles) goto end;
    err = delta_open(shard, pile, &fresh);
    if (err) return err;
    weir_mutex_lock(&shard->mutex);
    wait_for_room(shard, must);
    if (!shard->frozen) {
        err = weir_offsets_copy(shard->frozen_offsets, shard->applied);
    } else if (must) {
        err = WEIR_ERR(WEIR_ECLOSED, "shard %u stops before its delta could be sealed; the log has it", shard->index);
    } else {
        shard->postponed = true;
    }
    if (!err && !shard->frozen) {
        delta_swap(shard, fresh);
        fresh = NULL;
    }
    weir_mutex_unlock(&shard->mutex);
    weir_delta_release(fresh);
    if (err) return err;
end:
    shard->active_since_us = weir_clock_mono_us(shard->clock);
    return WEIR_OK;
}

static bool is_full(const weir_shard *shard) {
    return weir_delta_bytes(shard->active) >= full_at(shard, weir_delta_is_pile(shard->active));
}

static void event_time_seen(weir_shard *shard, int64_t time_us) {
    if (time_us > atomic_load_explicit(&shard->event_time_last_us, memory_order_relaxed)) {
        atomic_store_explicit(&shard->event_time_last_us, time_us, memory_order_relaxed);
    }
}

/* An empty delta that cannot take a group never will, if that is larger than the delta may be. */
static weir_err fits_never(const weir_shard *shard, const weir_mutation *group, size_t count, weir_err err) {
    size_t bytes = 0, delta_bytes = full_at(shard, weir_delta_is_pile(shard->active));
    if (!weir_err_is(err, WEIR_ENOMEM)) return err;
    for (size_t i = 0; i < count; i++)
        bytes += MUTATION_BYTES + group[i].row_length + group[i].key_length;
    if (bytes <= delta_bytes) return err;
    return WEIR_ERR(WEIR_ELIMIT,
                    "the event at offset %llu needs %zu bytes of memory, and a delta of shard %u has %zu; raise "
                    "store.memory",
                    (unsigned long long)group[0].offset, bytes, shard->index, delta_bytes);
}

static weir_err apply_once(weir_shard *shard, const weir_mutation *group, size_t count) {
    weir_err err = WEIR_OK;
    for (size_t i = 0; !err && i < count; i++) {
        if (group[i].kind != WEIR_NOTE_EVENT) event_time_seen(shard, group[i].time_us);
        if (group[i].kind != WEIR_DELETE_VERTEX) continue;
        err = weir_delta_put_deletion(shard->active, group[i].vertex, group[i].time_us);
        if (!err) err = weir_deleted_add(shard->deleted, group[i].vertex, group[i].time_us);
    }
    return err ? err : weir_delta_apply(shard->active, group, count);
}

/* When the delta is full: what it has of the group is the same when all of the group is applied again (S4). */
static weir_err apply_group(weir_shard *shard, const weir_mutation *group, size_t count) {
    bool was_empty = is_empty(shard);
    weir_err err = apply_once(shard, group, count);
    if (weir_err_is(err, WEIR_ENOMEM) && !was_empty) {
        err = freeze(shard, true);
        if (!err) err = apply_once(shard, group, count);
    }
    return fits_never(shard, group, count, err);
}

/* The mutations that follow, so that a delta, which is larger than the processor's caches, is asked for what they need
 * while others are applied. */
typedef struct lookahead {
    weir_mutation ring[AHEAD_SLOT];
    uint32_t read, taken;
} lookahead;

static const weir_mutation *lookahead_next(lookahead *l, weir_batch_cursor *cursor, const weir_delta *delta) {
    for (; l->read - l->taken < AHEAD_SLOT && weir_batch_next(cursor, &l->ring[l->read % AHEAD_SLOT]); l->read++)
        weir_delta_ahead(delta, l->ring[l->read % AHEAD_SLOT].vertex, WEIR_DELTA_SLOT);
    if (l->taken + AHEAD_NODE < l->read)
        weir_delta_ahead(delta, l->ring[(l->taken + AHEAD_NODE) % AHEAD_SLOT].vertex, WEIR_DELTA_NODE);
    if (l->taken + AHEAD_LISTS < l->read)
        weir_delta_ahead(delta, l->ring[(l->taken + AHEAD_LISTS) % AHEAD_SLOT].vertex, WEIR_DELTA_LISTS);
    return l->taken == l->read ? NULL : &l->ring[l->taken++ % AHEAD_SLOT];
}

/* One event at one vertex at a time, because that is what readers may see of it. */
static weir_err apply_new(weir_shard *shard, weir_batch_cursor *cursor, uint64_t from) {
    weir_mutation group[GROUP_MAX];
    lookahead ahead = {.read = 0};
    size_t count = 0;
    uint64_t applied = 0, skipped = 0;
    weir_err err = WEIR_OK;
    for (const weir_mutation *next; !err && (next = lookahead_next(&ahead, cursor, shard->active));) {
        if (next->offset < from) { /* S4 */
            skipped++;
            continue;
        }
        bool same = count > 0 && group[0].vertex == next->vertex && group[0].offset == next->offset;
        if (count > 0 && (!same || count == GROUP_MAX)) {
            err = apply_group(shard, group, count);
            count = 0;
        }
        group[count++] = *next;
        applied++;
    }
    if (!err && count > 0) err = apply_group(shard, group, count);
    if (err) return err; /* it is applied again, or never counts */
    atomic_fetch_add_explicit(&shard->applied_mutations, applied, memory_order_relaxed);
    atomic_fetch_add_explicit(&shard->skipped_mutations, skipped, memory_order_relaxed);
    return WEIR_OK;
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
    if (!err) err = weir_offsets_set(shard->applied, span.source, span.partition, span.offset_end, &m->note->clock);
    if (!err) shard->news = true;
    return err;
}

/* --- what goes wrong ------------------------------------------------------------------------------------------------
 * */

/* Memory comes back, and a step that failed for want of it has changed nothing that the same step does not do again
 * (S4). So the owner tries until it goes well: what waits behind it waits too, and nothing is dropped (S6). Everything
 * else is a defect or damage, and ends it. */
static bool will_pass(weir_err err) {
    return weir_err_is(err, WEIR_ENOMEM);
}

static void set_stall(weir_shard *shard, weir_err err) {
    weir_mutex_lock(&shard->mutex);
    bool news = !shard->stall.err != !err;
    weir_err_kept_set(&shard->stall, err);
    shard->stalls += err != WEIR_OK;
    weir_cond_broadcast(&shard->changed);
    weir_mutex_unlock(&shard->mutex);
    if (news && err) weir_log_error("shard.waits", err);
    if (news && !err) WEIR_LOG(INFO, "shard.goes_on", "the shard goes on", WEIR_U64("shard", shard->index));
}

/* false: the shard is to stop. */
static bool wait_a_while(weir_shard *shard, int64_t *wait_usp) {
    int64_t until_us = weir_clock_mono_us(weir_clock_system()) + *wait_usp;
    bool in_time = true;
    *wait_usp = *wait_usp < STALL_US_MAX / 2 ? *wait_usp * 2 : STALL_US_MAX;
    weir_mutex_lock(&shard->mutex);
    while (!shard->stopping && in_time)
        in_time = weir_cond_wait_until(&shard->changed, &shard->mutex, until_us);
    bool go_on = !shard->stopping;
    weir_mutex_unlock(&shard->mutex);
    return go_on;
}

typedef weir_err (*owner_step)(weir_shard *shard, const message *m);

static weir_err until_it_goes_well(weir_shard *shard, owner_step step, const message *m) {
    int64_t wait_us = STALL_US_MIN;
    weir_err err = step(shard, m);
    if (!will_pass(err)) return err;
    do {
        set_stall(shard, err);
        if (!wait_a_while(shard, &wait_us)) return err;
        err = step(shard, m);
    } while (will_pass(err));
    set_stall(shard, WEIR_OK);
    return err;
}

static void stop_failed(weir_shard *shard, weir_err err) {
    weir_mutex_lock(&shard->mutex);
    weir_err_kept_set(&shard->failed, err);
    weir_cond_broadcast(&shard->changed);
    weir_mutex_unlock(&shard->mutex);
    weir_log_error("shard.stopped", err);
}

/* --- the owner's loop -----------------------------------------------------------------------------------------------
 * */

static weir_err handle(weir_shard *shard, const message *m) {
    weir_err err = m->batch ? apply_batch(shard, m) : WEIR_OK;
    return !err && is_full(shard) ? freeze(shard, true) : err;
}

/* What could not be frozen can be now. */
static bool has_room_again(weir_shard *shard) {
    if (!shard->postponed) return false;
    weir_mutex_lock(&shard->mutex);
    bool room = !shard->frozen;
    weir_mutex_unlock(&shard->mutex);
    return room;
}

static weir_err freeze_if_due(weir_shard *shard, const message *m) {
    (void)m;
    weir_mutex_lock(&shard->mutex);
    uint64_t asked = shard->seals_asked;
    bool is_asked = asked > shard->seals_answered && shard->handled >= shard->seal_behind;
    weir_mutex_unlock(&shard->mutex);
    bool old = weir_clock_mono_us(shard->clock) - shard->active_since_us >= shard->seal_us;
    weir_err err = is_asked || old || has_room_again(shard) ? freeze(shard, is_full(shard)) : WEIR_OK;
    if (err || !is_asked) return err;
    weir_mutex_lock(&shard->mutex);
    shard->seals_answered = asked;
    shard->seal_answer = shard->seals_wanted + shard->postponed;
    weir_cond_broadcast(&shard->changed);
    weir_mutex_unlock(&shard->mutex);
    return WEIR_OK;
}

static void done_with(weir_shard *shard, const message *m, bool well) {
    weir_free(m->batch);
    if (m->note) weir_watermark_give_back(shard->watermark, m->note, 1, well);
    weir_mutex_lock(&shard->mutex);
    if (well) shard->handled++;
    weir_cond_broadcast(&shard->changed);
    weir_mutex_unlock(&shard->mutex);
}

static void own(void *context) {
    weir_shard *shard = context;
    message messages[POP_BATCHES];
    weir_err err = WEIR_OK;
    size_t count;
    for (;;) {
        bool was_well = !err;
        weir_err pop_err = weir_queue_pop(shard->queue, messages, POP_BATCHES, TICK_US, &count);
        for (size_t i = 0; i < count; i++) {
            if (!err) err = until_it_goes_well(shard, handle, &messages[i]);
            done_with(shard, &messages[i], !err);
            if (!err) err = until_it_goes_well(shard, freeze_if_due, NULL);
        }
        if (!err && !pop_err) err = until_it_goes_well(shard, freeze_if_due, NULL);
        if (was_well && err) stop_failed(shard, err);
        if (pop_err) break; /* closed and empty */
    }
}

/* --- talking to it -------------------------------------------------------------------------------------------------
 * */

static weir_err failed_err(weir_shard *shard) {
    weir_mutex_lock(&shard->mutex);
    weir_err err = weir_err_kept_get(&shard->failed);
    weir_mutex_unlock(&shard->mutex);
    return err;
}

weir_err weir_shard_push(weir_shard *shard, const void *batch, size_t length, weir_clock_note *note) {
    weir_err err = failed_err(shard);
    if (err) return err;
    message m = {.batch = weir_malloc(length), .length = length, .note = note};
    if (!m.batch) return WEIR_NOMEM("for a batch of %zu bytes", length);
    memcpy(m.batch, batch, length);
    err = weir_queue_push(shard->queue, &m, WEIR_QUEUE_FOREVER);
    if (err) weir_free(m.batch);
    return err;
}

/* In the order of the queue, so that one number says how far the owner is. */
static uint64_t pushed_so_far(weir_shard *shard) {
    weir_queue_stats stats;
    weir_queue_stats_get(shard->queue, &stats);
    return stats.pushed_total;
}

weir_shard_ticket weir_shard_ask(weir_shard *shard) {
    weir_shard_ticket ticket = {.pushed = pushed_so_far(shard)};
    weir_mutex_lock(&shard->mutex);
    ticket.tries = shard->tries;
    ticket.stalls = shard->stalls;
    weir_mutex_unlock(&shard->mutex);
    return ticket;
}

weir_shard_ticket weir_shard_ask_seal(weir_shard *shard) {
    static const message wake = {0};
    weir_shard_ticket ticket = weir_shard_ask(shard);
    weir_mutex_lock(&shard->mutex);
    ticket.question = ++shard->seals_asked;
    if (shard->seal_behind < ticket.pushed) shard->seal_behind = ticket.pushed;
    weir_mutex_unlock(&shard->mutex);
    (void)weir_queue_push(shard->queue, &wake, 0); /* who has a full queue is awake */
    return ticket;
}

/* A try that began before the question says nothing: there may be room since.  Under the mutex. */
static bool sealed_in_vain(const weir_shard *shard, const weir_shard_ticket *ticket) {
    return shard->seal_err.err && shard->tries_ended > ticket->tries;
}

/* Why the answer is an error; success: it is worth waiting for.  Under the mutex. */
static weir_err no_answer(const weir_shard *shard, const weir_shard_ticket *ticket) {
    if (shard->failed.err) return weir_err_kept_get(&shard->failed);
    if (shard->stopping) return WEIR_ERR(WEIR_ECLOSED, "shard %u is being closed", shard->index);
    if (shard->stall.err && shard->stalls > ticket->stalls + 1) return weir_err_kept_get(&shard->stall);
    return shard->waits_for_seal && sealed_in_vain(shard, ticket) ? weir_err_kept_get(&shard->seal_err) : WEIR_OK;
}

weir_err weir_shard_drained(weir_shard *shard, const weir_shard_ticket *ticket) {
    weir_err err = WEIR_OK;
    weir_mutex_lock(&shard->mutex);
    while (!err && shard->handled < ticket->pushed) {
        err = no_answer(shard, ticket);
        if (!err) weir_cond_wait(&shard->changed, &shard->mutex);
    }
    weir_mutex_unlock(&shard->mutex);
    return err;
}

weir_err weir_shard_sealed(weir_shard *shard, const weir_shard_ticket *ticket) {
    weir_err err = WEIR_OK;
    weir_mutex_lock(&shard->mutex);
    while (!err && shard->seals_answered < ticket->question) {
        err = no_answer(shard, ticket);
        if (!err) weir_cond_wait(&shard->changed, &shard->mutex);
    }
    uint64_t wanted = shard->seal_answer;
    while (!err && shard->seals_done < wanted) {
        err = sealed_in_vain(shard, ticket) ? weir_err_kept_get(&shard->seal_err) : no_answer(shard, ticket);
        if (!err) weir_cond_wait(&shard->changed, &shard->mutex);
    }
    weir_mutex_unlock(&shard->mutex);
    return err;
}

/* --- open and close ------------------------------------------------------------------------------------------------
 * */

bool weir_shard_offset_read(const void *key, size_t key_length, const void *value, size_t value_length,
                            uint32_t *sourcep, uint32_t *partitionp, uint64_t *offsetp, weir_event_clock *clockp) {
    if (!weir_offset_key_read(key, key_length, sourcep, partitionp) || value_length < 8) return false;
    *offsetp = weir_get_u64(value);
    return weir_event_clock_read((const uint8_t *)value + 8, value_length - 8, clockp);
}

static weir_err load_offset(void *context, const void *key, size_t length, const void *value, size_t value_length) {
    weir_shard *shard = context;
    uint32_t source, partition;
    uint64_t offset;
    weir_event_clock clock;
    if (!weir_shard_offset_read(key, length, value, value_length, &source, &partition, &offset, &clock))
        return WEIR_ERR(WEIR_ECORRUPT, "an offset of shard %u is damaged; restore a checkpoint", shard->index);
    weir_err err = weir_offsets_set(shard->applied, source, partition, offset, &clock);
    return err ? err : weir_offsets_set(shard->sealed, source, partition, offset, &clock);
}

static weir_err load_newest(void *context, const void *key, size_t length, const void *value, size_t value_length) {
    weir_shard *shard = context;
    const uint8_t *bytes = value;
    if (!weir_newest_key_read(key, length) || value_length != WEIR_NEWEST_BYTES)
        return WEIR_ERR(WEIR_ECORRUPT, "the newest time of shard %u is damaged; restore a checkpoint", shard->index);
    event_time_seen(shard, (int64_t)weir_get_u64(bytes));
    shard->frozen_mark = (weir_watermark_mark){(int64_t)weir_get_u64(bytes + 8), weir_get_u64(bytes + 16)};
    shard->sealed_us = shard->frozen_mark.now_us;
    shard->trimmed = (weir_trimmed){(int64_t)weir_get_u64(bytes + 24), (int64_t)weir_get_u64(bytes + 32)};
    weir_watermark_load_mark(shard->watermark, shard->frozen_mark);
    return WEIR_OK;
}

static weir_err open_parts(weir_shard *shard, const weir_shard_opts *opts) {
    const size_t remains_bytes = opts->cache_bytes / REMAINS_SHARE;
    weir_engine_opts engine_opts = {.cache = opts->blocks,
                                    .create = opts->create,
                                    .read_only = opts->read_only,
                                    .last_rank = weir_bundle_last_rank};
    weir_err err = weir_engine_open(opts->folder, &engine_opts, &shard->engine);
    if (!err) err = weir_cache_open(opts->cache_bytes - remains_bytes, opts->window, &shard->cache);
    if (!err) err = weir_remains_open(remains_bytes, shard->cache, &shard->remains);
    if (!err) err = weir_deleted_open(shard->engine, opts->deleted, opts->deleted_bytes, &shard->deleted);
    if (!err) err = weir_offsets_open(&shard->applied);
    if (!err) err = weir_offsets_open(&shard->sealed);
    if (!err) err = weir_offsets_open(&shard->frozen_offsets);
    if (!err) err = weir_queue_open(QUEUE_BATCHES, sizeof(message), &shard->queue);
    if (!err) err = delta_open(shard, false, &shard->active);
    if (!err) err = weir_shard_scan_kind(shard->engine, 'O', load_offset, shard);
    if (!err) err = weir_shard_scan_kind(shard->engine, 'P', load_newest, shard);
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
    if (!shard) return WEIR_NOMEM("for shard %u", opts->index);
    weir_mutex_init(&shard->mutex, WEIR_RANK_SHARD, "shard");
    weir_cond_init(&shard->changed);
    shard->clock = opts->clock;
    shard->watermark = opts->watermark;
    shard->frozen_mark.now_us = WEIR_EVENT_CLOCK_NONE;
    shard->sealed_us = WEIR_EVENT_CLOCK_NONE;
    shard->trimmed = (weir_trimmed){WEIR_TRIMMED_NEVER, WEIR_TRIMMED_NEVER};
    shard->seal_bytes = opts->seal_bytes;
    shard->pile_bytes = opts->pile_bytes;
    shard->seal_us = opts->seal_us;
    shard->window = opts->window;
    shard->index = opts->index;
    shard->read_only = opts->read_only;
    shard->piles = opts->pile_bytes > 0;
    shard->active_since_us = weir_clock_mono_us(shard->clock);
    atomic_init(&shard->event_time_last_us, INT64_MIN);
    weir_err err = open_parts(shard, opts);
    if (!err && !opts->read_only) err = start_threads(shard);
    if (err) {
        weir_shard_close(shard);
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

void weir_shard_close(weir_shard *shard) {
    if (!shard) return;
    stop_threads(shard);
    weir_delta_release(shard->active);
    weir_delta_release(shard->frozen);
    weir_queue_free(shard->queue);
    weir_offsets_close(shard->frozen_offsets);
    weir_offsets_close(shard->sealed);
    weir_offsets_close(shard->applied);
    weir_deleted_close(shard->deleted);
    weir_remains_close(shard->remains);
    weir_cache_close(shard->cache);
    weir_engine_close(shard->engine);
    weir_cond_destroy(&shard->changed);
    weir_mutex_destroy(&shard->mutex);
    weir_free(shard);
}

/* --- the sealer's loop; what it does is seal.c ---------------------------------------------------------------------
 * */

#define LOOK_US      WEIR_US_PER_S
#define RETRY_US_MIN 5000

typedef enum work { WORK_SEAL, WORK_REPLACE, WORK_LOOK, WORK_END } work;

/* Waits for something to seal, or until the engine is to be looked at. After a failure it waits a while first: a full
 * disk is not free at once. */
static work next_work(weir_shard *shard, int64_t retry_us) {
    bool after_failure = retry_us > 0;
    int64_t until_us = weir_clock_mono_us(weir_clock_system()) + (after_failure ? retry_us : LOOK_US);
    bool in_time = true;
    weir_mutex_lock(&shard->mutex);
    while (!shard->stopping && !shard->fresh && in_time && (after_failure || shard->held || !shard->frozen))
        in_time = weir_cond_wait_until(&shard->changed, &shard->mutex, until_us);
    work next = shard->stopping                 ? WORK_END
                : shard->fresh                  ? WORK_REPLACE
                : shard->frozen && !shard->held ? WORK_SEAL
                                                : WORK_LOOK;
    if (next == WORK_SEAL) shard->tries++;
    weir_mutex_unlock(&shard->mutex);
    return next;
}

/* RocksDB may have to be opened again before it takes a file. What is still wrong then need not be in the way: a
 * damaged file lets others in. */
static void mend(weir_shard *shard) {
    if (!weir_engine_health(shard->engine)) return;
    weir_err err = weir_engine_mend(shard->engine);
    if (err) weir_log_error("shard.damaged", err);
}

static bool seal_once(weir_shard *shard) {
    weir_err err = weir_shard_write_frozen(shard);
    if (err) weir_log_error("shard.seal_failed", err);
    weir_mutex_lock(&shard->mutex);
    weir_err_kept_set(&shard->seal_err, err);
    shard->tries_ended = shard->tries;
    if (err) {
        shard->seal_failures++;
    } else {
        shard->seals_done++;
    }
    weir_cond_broadcast(&shard->changed);
    weir_mutex_unlock(&shard->mutex);
    return !err;
}

static void replace_engine(weir_shard *shard) {
    weir_err err = weir_engine_replace(shard->engine, shard->fresh);
    weir_mutex_lock(&shard->mutex);
    weir_err_kept_set(&shard->replace_err, err);
    shard->fresh = NULL;
    weir_cond_broadcast(&shard->changed);
    weir_mutex_unlock(&shard->mutex);
}

static void seal_thread(void *context) {
    weir_shard *shard = context;
    int64_t retry_us = 0;
    for (work next; (next = next_work(shard, retry_us)) != WORK_END;) {
        if (next == WORK_REPLACE) {
            replace_engine(shard);
            continue;
        }
        mend(shard);
        bool failed = next == WORK_SEAL && !seal_once(shard);
        retry_us = !failed ? 0 : retry_us == 0 ? RETRY_US_MIN : retry_us < LOOK_US / 2 ? retry_us * 2 : LOOK_US;
    }
}

/* --- another cold store ---------------------------------------------------------------------------------------- */

weir_err weir_shard_hold(weir_shard *shard) {
    weir_mutex_lock(&shard->mutex);
    shard->held = true;
    while (!shard->stopping && shard->tries != shard->tries_ended)
        weir_cond_wait(&shard->changed, &shard->mutex);
    bool stopping = shard->stopping;
    weir_mutex_unlock(&shard->mutex);
    return stopping ? WEIR_ERR(WEIR_ECLOSED, "shard %u is being closed", shard->index) : WEIR_OK;
}

void weir_shard_release(weir_shard *shard) {
    weir_mutex_lock(&shard->mutex);
    shard->held = false;
    weir_cond_broadcast(&shard->changed);
    weir_mutex_unlock(&shard->mutex);
}

weir_err weir_shard_replace(weir_shard *shard, const char *folder) {
    weir_mutex_lock(&shard->mutex);
    WEIR_ASSERT(shard->held && !shard->fresh);
    shard->fresh = folder;
    weir_cond_broadcast(&shard->changed);
    while (!shard->stopping && shard->fresh)
        weir_cond_wait(&shard->changed, &shard->mutex);
    weir_err err = shard->fresh ? WEIR_ERR(WEIR_ECLOSED, "shard %u is being closed", shard->index)
                                : weir_err_kept_get(&shard->replace_err);
    weir_mutex_unlock(&shard->mutex);
    return err;
}

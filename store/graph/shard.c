/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shard.c - the owner: takes batches in order, applies what is new, freezes the delta when it is due.
 *
 *   fill ──(size, age, or asked)──► freeze: the delta becomes `frozen`, a new one `active` ──► the sealer's
 *                                   └ waits while the one before is still being sealed (GRAPH-S6)
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

#include "cold.h"
#include "joining.h"
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

_Static_assert(GROUP_MAX > WEIR_EVENT_MUTATIONS_MAX, "readers see all that an event does to a vertex, or nothing");
_Static_assert((AHEAD_SLOT & (AHEAD_SLOT - 1)) == 0 && AHEAD_NODE < AHEAD_SLOT && AHEAD_LISTS < AHEAD_NODE,
               "each stage fetches by what the stage before has fetched");

/* Without a batch it only wakes the owner. */
typedef struct shard_message {
    void *batch; /* owned */
    size_t length;
    weir_clock_note *note; /* of a batch; given back when it is done with */
} shard_message;

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

/* --- freezing --------------------------------------------------------------------------------------------------- */

/* Under the mutex: from here on readers find the new one, and what was active is the sealer's. */
static void shard_swap_delta(weir_shard *shard, weir_delta *fresh) {
    WEIR_ASSERT(weir_mutex_held(&shard->mutex) && !shard->frozen);
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

/* A delta without records may still be used up, by what could not be applied whole. */
static bool shard_is_empty(const weir_shard *shard) {
    return weir_delta_records(shard->active) == 0 && weir_delta_bytes(shard->active) == 0;
}

static size_t shard_full_at(const weir_shard *shard, bool pile) {
    return pile ? shard->pile_bytes : shard->seal_bytes;
}

static bool shard_is_full(const weir_shard *shard) {
    return weir_delta_bytes(shard->active) >= shard_full_at(shard, weir_delta_is_pile(shard->active));
}

static weir_err shard_open_delta(const weir_shard *shard, bool pile, weir_delta **deltap) {
    size_t bytes = shard_full_at(shard, pile);
    return weir_delta_open(bytes + bytes / WEIR_SHARD_SPARE_SHARE, pile, deltap);
}

/* must: the active delta takes no more. Waits for the seal before, because after that there is room for one more delta
 * (GRAPH-S6); but if that seal has failed, only when it must: who asked is told why, and the delta is frozen once there
 * is room. */
static weir_err shard_freeze(weir_shard *shard, bool must) {
    WEIR_ON_ROLE(SHARD);
    weir_delta *fresh = NULL;
    weir_err err = WEIR_OK;
    shard->postponed = false;

    /* The first delta is never a pile: readers find what there is of a small log even if the disk is full. */
    weir_mutex_lock(&shard->mutex);
    bool pile = shard->piles && shard->seals_done > 0;
    weir_mutex_unlock(&shard->mutex);
    bool unpiles = weir_delta_is_pile(shard->active) && !pile;
    bool time_has_passed = weir_watermark_now(shard->watermark) != shard->frozen_mark.now_us;
    if (shard_is_empty(shard) && !shard->news && !time_has_passed && !unpiles) goto done;
    err = shard_open_delta(shard, pile, &fresh);
    if (err) return err;

    weir_mutex_lock(&shard->mutex);
    while (shard->frozen && !shard->stopping && (must || !shard->seal_err.err)) {
        shard->waits_for_seal = true;
        weir_cond_wait(&shard->changed, &shard->mutex);
    }
    shard->waits_for_seal = false;
    if (!shard->frozen) {
        err = weir_offsets_copy(shard->frozen_offsets, shard->applied);
        if (!err) {
            shard_swap_delta(shard, fresh);
            fresh = NULL;
        }
    } else if (must) {
        err = WEIR_ERR(WEIR_ECLOSED, "shard %u stops before its delta could be sealed; the log has it", shard->index);
    } else {
        shard->postponed = true;
    }
    weir_mutex_unlock(&shard->mutex);
    weir_delta_release(fresh);
    if (err) return err;
done:
    shard->active_since_us = weir_clock_mono_us(shard->clock);
    return WEIR_OK;
}

/* --- applying --------------------------------------------------------------------------------------------------- */

static void shard_event_time_seen(weir_shard *shard, int64_t time_us) {
    if (time_us > atomic_load_explicit(&shard->event_time_last_us, memory_order_relaxed)) {
        atomic_store_explicit(&shard->event_time_last_us, time_us, memory_order_relaxed);
    }
}

static weir_err shard_apply_once(weir_shard *shard, const weir_mutation *group, size_t count) {
    weir_err err = WEIR_OK;
    for (size_t i = 0; !err && i < count; i++) {
        if (group[i].kind != WEIR_NOTE_EVENT) shard_event_time_seen(shard, group[i].time_us);
        if (group[i].kind != WEIR_DELETE_VERTEX) continue;
        err = weir_delta_put_deletion(shard->active, group[i].vertex, group[i].time_us);
        if (!err) err = weir_deleted_add(shard->deleted, group[i].vertex, group[i].time_us);
    }
    return err ? err : weir_delta_apply(shard->active, group, count);
}

/* One event at one vertex. A full delta is frozen, and the next one takes all of the group: what the full one has of it
 * counts once (GRAPH-S4). */
static weir_err shard_apply_group(weir_shard *shard, const weir_mutation *group, size_t count) {
    bool was_empty = shard_is_empty(shard);
    weir_err err = shard_apply_once(shard, group, count);
    if (weir_err_is(err, WEIR_ENOMEM) && !was_empty) {
        err = shard_freeze(shard, true);
        if (!err) err = shard_apply_once(shard, group, count);
    }
    if (!weir_err_is(err, WEIR_ENOMEM)) return err;

    /* An empty delta that cannot take the group never will, if the group is larger than a delta may be. */
    size_t bytes = 0, delta_bytes = shard_full_at(shard, weir_delta_is_pile(shard->active));
    for (size_t i = 0; i < count; i++)
        bytes += MUTATION_BYTES + group[i].row_length + group[i].key_length;
    if (bytes <= delta_bytes) return err;
    return WEIR_ERR(WEIR_ELIMIT,
                    "the event at offset %llu needs %zu bytes of memory, and a delta of shard %u has %zu; raise "
                    "store.memory",
                    (unsigned long long)group[0].offset, bytes, shard->index, delta_bytes);
}

/* The mutations that follow, so that what they need of a delta, which is larger than the processor's caches, is fetched
 * while others are applied. */
typedef struct shard_lookahead {
    weir_mutation ring[AHEAD_SLOT];
    uint32_t read, taken;
} shard_lookahead;

static const weir_mutation *shard_lookahead_next(shard_lookahead *l, weir_batch_cursor *cursor,
                                                 const weir_delta *delta) {
    for (; l->read - l->taken < AHEAD_SLOT && weir_batch_next(cursor, &l->ring[l->read % AHEAD_SLOT]); l->read++)
        weir_delta_ahead(delta, l->ring[l->read % AHEAD_SLOT].vertex, WEIR_DELTA_SLOT);
    if (l->taken + AHEAD_NODE < l->read)
        weir_delta_ahead(delta, l->ring[(l->taken + AHEAD_NODE) % AHEAD_SLOT].vertex, WEIR_DELTA_NODE);
    if (l->taken + AHEAD_LISTS < l->read)
        weir_delta_ahead(delta, l->ring[(l->taken + AHEAD_LISTS) % AHEAD_SLOT].vertex, WEIR_DELTA_LISTS);
    return l->taken == l->read ? NULL : &l->ring[l->taken++ % AHEAD_SLOT];
}

/* What of a batch is new, as one event at one vertex at a time, because that is what readers may see of it (GRAPH-S2).
 * After an error the batch is applied again, or the shard stops: in both cases nothing of it is counted. */
static weir_err shard_apply_batch(weir_shard *shard, const shard_message *m) {
    WEIR_ON_ROLE(SHARD);
    weir_mutation group[GROUP_MAX];
    shard_lookahead ahead = {.read = 0};
    weir_batch_cursor cursor;
    uint64_t from, applied = 0, skipped = 0;
    size_t count = 0;
    weir_err err = weir_batch_open(m->batch, m->length, &cursor);
    if (err) return err;
    const weir_batch_span span = cursor.span;
    bool seen = weir_offsets_get(shard->applied, span.source, span.partition, &from);
    if (seen && span.offset_end <= from) {
        atomic_fetch_add_explicit(&shard->skipped_mutations, cursor.left, memory_order_relaxed);
        return WEIR_OK;
    }
    if (seen && span.offset_begin > from) { /* GRAPH-S1 */
        return WEIR_ERR(WEIR_EORDER, "source %u partition %u jumps from offset %llu to %llu: events are missing",
                        span.source, span.partition, (unsigned long long)from, (unsigned long long)span.offset_begin);
    }

    for (const weir_mutation *next; !err && (next = shard_lookahead_next(&ahead, &cursor, shard->active));) {
        if (next->offset < from) { /* GRAPH-S4 */
            skipped++;
            continue;
        }
        bool same = count > 0 && group[0].vertex == next->vertex && group[0].offset == next->offset;
        if (count > 0 && (!same || count == GROUP_MAX)) {
            err = shard_apply_group(shard, group, count);
            count = 0;
        }
        group[count++] = *next;
        applied++;
    }
    if (!err && count > 0) err = shard_apply_group(shard, group, count);
    if (err) return err;
    atomic_fetch_add_explicit(&shard->applied_mutations, applied, memory_order_relaxed);
    atomic_fetch_add_explicit(&shard->skipped_mutations, skipped, memory_order_relaxed);

    weir_kill_point("shard.applied");
    err = weir_offsets_set(shard->applied, span.source, span.partition, span.offset_end, &m->note->clock);
    if (!err) shard->news = true;
    return err;
}

/* --- the owner's loop ------------------------------------------------------------------------------------------- */

static void shard_set_stall(weir_shard *shard, weir_err err) {
    weir_mutex_lock(&shard->mutex);
    bool news = !shard->stall.err != !err;
    weir_err_kept_set(&shard->stall, err);
    shard->stalls += err != WEIR_OK;
    weir_cond_broadcast(&shard->changed);
    weir_mutex_unlock(&shard->mutex);
    if (news && err) weir_log_error("shard.waits", err);
    if (news && !err) WEIR_LOG(INFO, "shard.goes_on", "the shard goes on", WEIR_U64("shard", shard->index));
}

typedef weir_err (*shard_step)(weir_shard *shard, const shard_message *m);

/* Memory comes back, and a step that failed for want of it has changed nothing that the same step does not do again
 * (GRAPH-S4). So the owner tries again until it has memory, or the shard is to stop: what waits behind the step waits
 * too, and nothing is dropped (GRAPH-S6). Every other error is a defect or damage, and ends the owner. */
static weir_err shard_retry(weir_shard *shard, shard_step step, const shard_message *m) {
    weir_err err = step(shard, m);
    bool stalled = false;
    for (int64_t wait_us = STALL_US_MIN; weir_err_is(err, WEIR_ENOMEM);) {
        stalled = true;
        shard_set_stall(shard, err);
        int64_t until_us = weir_clock_mono_us(weir_clock_system()) + wait_us;
        bool in_time = true;
        wait_us = wait_us < STALL_US_MAX / 2 ? wait_us * 2 : STALL_US_MAX;
        weir_mutex_lock(&shard->mutex);
        while (!shard->stopping && in_time)
            in_time = weir_cond_wait_until(&shard->changed, &shard->mutex, until_us);
        bool stopping = shard->stopping;
        weir_mutex_unlock(&shard->mutex);
        if (stopping) return err;
        err = step(shard, m);
    }
    if (stalled) shard_set_stall(shard, WEIR_OK);
    return err;
}

static weir_err shard_handle_message(weir_shard *shard, const shard_message *m) {
    weir_err err = m->batch ? shard_apply_batch(shard, m) : WEIR_OK;
    return !err && shard_is_full(shard) ? shard_freeze(shard, true) : err;
}

/* By age; because it was asked for, once all that the question is about is applied; or because there is room again for
 * what could not be frozen before. */
static weir_err shard_freeze_if_due(weir_shard *shard, const shard_message *m) {
    (void)m;
    weir_mutex_lock(&shard->mutex);
    uint64_t asked = shard->seals_asked;
    bool is_asked = asked > shard->seals_answered && shard->handled >= shard->seal_behind;
    bool has_room_again = shard->postponed && !shard->frozen;
    weir_mutex_unlock(&shard->mutex);
    bool old = weir_clock_mono_us(shard->clock) - shard->active_since_us >= shard->seal_us;
    weir_err err = is_asked || old || has_room_again ? shard_freeze(shard, shard_is_full(shard)) : WEIR_OK;
    if (err || !is_asked) return err;
    weir_mutex_lock(&shard->mutex);
    WEIR_ASSERT(asked > shard->seals_answered && asked <= shard->seals_asked);
    shard->seals_answered = asked;
    shard->seal_answer = shard->seals_wanted + shard->postponed;
    weir_cond_broadcast(&shard->changed);
    weir_mutex_unlock(&shard->mutex);
    return WEIR_OK;
}

static void shard_finish_message(weir_shard *shard, const shard_message *m, bool well) {
    weir_free(m->batch);
    if (m->note) weir_watermark_give_back(shard->watermark, m->note, 1, well);
    weir_mutex_lock(&shard->mutex);
    if (well) shard->handled++;
    weir_cond_broadcast(&shard->changed);
    weir_mutex_unlock(&shard->mutex);
}

static void shard_owner_thread(void *context) {
    weir_shard *shard = context;
    shard_message messages[POP_BATCHES];
    weir_err err = WEIR_OK;
    size_t count;
    for (;;) {
        bool was_well = !err;
        weir_err pop_err = weir_queue_pop(shard->queue, messages, POP_BATCHES, TICK_US, &count);
        for (size_t i = 0; i < count; i++) {
            if (!err) err = shard_retry(shard, shard_handle_message, &messages[i]);
            shard_finish_message(shard, &messages[i], !err);
            if (!err) err = shard_retry(shard, shard_freeze_if_due, NULL);
        }
        if (!err && !pop_err) err = shard_retry(shard, shard_freeze_if_due, NULL);
        if (was_well && err) { /* it only empties its queue from now on */
            weir_mutex_lock(&shard->mutex);
            weir_err_kept_set(&shard->failed, err);
            weir_cond_broadcast(&shard->changed);
            weir_mutex_unlock(&shard->mutex);
            weir_log_error("shard.stopped", err);
        }
        if (pop_err) break; /* closed and empty */
    }
}

/* --- talking to it ---------------------------------------------------------------------------------------------- */

weir_err weir_shard_push(weir_shard *shard, const void *batch, size_t length, weir_clock_note *note) {
    weir_mutex_lock(&shard->mutex);
    weir_err err = weir_err_kept_get(&shard->failed);
    weir_mutex_unlock(&shard->mutex);
    if (err) return err;
    shard_message m = {.batch = weir_malloc(length), .length = length, .note = note};
    if (!m.batch) return WEIR_NOMEM("for a batch of %zu bytes", length);
    memcpy(m.batch, batch, length);
    err = weir_queue_push(shard->queue, &m, WEIR_QUEUE_FOREVER);
    if (err) weir_free(m.batch);
    return err;
}

weir_shard_ticket weir_shard_ask(weir_shard *shard) {
    weir_queue_stats stats;
    weir_queue_stats_get(shard->queue, &stats);
    /* Messages are handled in the order of the queue, so one number says how far the owner is. */
    weir_shard_ticket ticket = {.pushed = stats.pushed_total};
    weir_mutex_lock(&shard->mutex);
    ticket.tries = shard->tries;
    ticket.stalls = shard->stalls;
    weir_mutex_unlock(&shard->mutex);
    return ticket;
}

weir_shard_ticket weir_shard_ask_seal(weir_shard *shard) {
    static const shard_message wake = {0};
    weir_shard_ticket ticket = weir_shard_ask(shard);
    weir_mutex_lock(&shard->mutex);
    ticket.question = ++shard->seals_asked;
    if (shard->seal_behind < ticket.pushed) shard->seal_behind = ticket.pushed;
    weir_mutex_unlock(&shard->mutex);
    (void)weir_queue_push(shard->queue, &wake, 0); /* an owner with a full queue is awake */
    return ticket;
}

/* A try that began before the question says nothing: there may be room since.  Under the mutex. */
static bool shard_sealed_in_vain(const weir_shard *shard, const weir_shard_ticket *ticket) {
    return shard->seal_err.err && shard->tries_ended > ticket->tries;
}

/* Why the answer is an error; success: it is worth waiting for.  Under the mutex. */
static weir_err shard_why_no_answer(const weir_shard *shard, const weir_shard_ticket *ticket) {
    if (shard->failed.err) return weir_err_kept_get(&shard->failed);
    if (shard->stopping) return WEIR_ERR(WEIR_ECLOSED, "shard %u is being closed", shard->index);
    if (shard->stall.err && shard->stalls > ticket->stalls + 1) return weir_err_kept_get(&shard->stall);
    return shard->waits_for_seal && shard_sealed_in_vain(shard, ticket) ? weir_err_kept_get(&shard->seal_err) : WEIR_OK;
}

weir_err weir_shard_drained(weir_shard *shard, const weir_shard_ticket *ticket) {
    weir_err err = WEIR_OK;
    weir_mutex_lock(&shard->mutex);
    while (!err && shard->handled < ticket->pushed) {
        err = shard_why_no_answer(shard, ticket);
        if (!err) weir_cond_wait(&shard->changed, &shard->mutex);
    }
    weir_mutex_unlock(&shard->mutex);
    return err;
}

weir_err weir_shard_sealed(weir_shard *shard, const weir_shard_ticket *ticket) {
    weir_err err = WEIR_OK;
    weir_mutex_lock(&shard->mutex);
    while (!err && shard->seals_answered < ticket->question) {
        err = shard_why_no_answer(shard, ticket);
        if (!err) weir_cond_wait(&shard->changed, &shard->mutex);
    }
    uint64_t wanted = shard->seal_answer;
    while (!err && shard->seals_done < wanted) {
        err = shard_sealed_in_vain(shard, ticket) ? weir_err_kept_get(&shard->seal_err)
                                                  : shard_why_no_answer(shard, ticket);
        if (!err) weir_cond_wait(&shard->changed, &shard->mutex);
    }
    weir_mutex_unlock(&shard->mutex);
    return err;
}

/* --- the sealer's loop; what it does is seal.c ------------------------------------------------------------------ */

#define LOOK_US      WEIR_US_PER_S
#define RETRY_US_MIN 5000

typedef enum shard_work { WORK_SEAL, WORK_REPLACE, WORK_LOOK, WORK_END } shard_work;

/* Waits for something to seal, or until the engine is to be looked at. After a failure it waits a while first: a full
 * disk is not free at once. */
static shard_work shard_next_work(weir_shard *shard, int64_t retry_us) {
    bool after_failure = retry_us > 0;
    int64_t until_us = weir_clock_mono_us(weir_clock_system()) + (after_failure ? retry_us : LOOK_US);
    bool in_time = true;
    weir_mutex_lock(&shard->mutex);
    while (!shard->stopping && !shard->fresh && in_time && (after_failure || shard->held || !shard->frozen))
        in_time = weir_cond_wait_until(&shard->changed, &shard->mutex, until_us);
    shard_work next = shard->stopping                 ? WORK_END
                      : shard->fresh                  ? WORK_REPLACE
                      : shard->frozen && !shard->held ? WORK_SEAL
                                                      : WORK_LOOK;
    if (next == WORK_SEAL) shard->tries++;
    weir_mutex_unlock(&shard->mutex);
    return next;
}

static bool shard_seal_once(weir_shard *shard) {
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
    WEIR_ASSERT(shard->seals_done <= shard->seals_wanted);
    weir_cond_broadcast(&shard->changed);
    weir_mutex_unlock(&shard->mutex);
    return !err;
}

static void shard_sealer_thread(void *context) {
    weir_shard *shard = context;
    int64_t retry_us = 0;
    for (shard_work next; (next = shard_next_work(shard, retry_us)) != WORK_END;) {
        weir_err err;
        if (next == WORK_REPLACE) {
            err = weir_engine_replace(shard->engine, shard->fresh);
            weir_mutex_lock(&shard->mutex);
            weir_err_kept_set(&shard->replace_err, err);
            shard->fresh = NULL;
            weir_cond_broadcast(&shard->changed);
            weir_mutex_unlock(&shard->mutex);
            continue;
        }
        /* RocksDB may have to be opened again before it takes a file. What is still wrong then need not be in the way:
         * a damaged file lets others in. */
        err = weir_engine_health(shard->engine) ? weir_engine_mend(shard->engine) : WEIR_OK;
        if (err) weir_log_error("shard.damaged", err);
        bool failed = next == WORK_SEAL && !shard_seal_once(shard);
        retry_us = !failed ? 0 : retry_us == 0 ? RETRY_US_MIN : retry_us < LOOK_US / 2 ? retry_us * 2 : LOOK_US;
    }
}

/* --- another cold store ----------------------------------------------------------------------------------------- */

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

/* --- open and close --------------------------------------------------------------------------------------------- */

bool weir_shard_offset_read(const void *key, size_t key_length, const void *value, size_t value_length,
                            uint32_t *sourcep, uint32_t *partitionp, uint64_t *offsetp, weir_event_clock *clockp) {
    if (!weir_offset_key_read(key, key_length, sourcep, partitionp) || value_length < 8) return false;
    *offsetp = weir_get_u64(value);
    return weir_event_clock_read((const uint8_t *)value + 8, value_length - 8, clockp);
}

static weir_err shard_load_offset(void *context, const void *key, size_t length, const void *value,
                                  size_t value_length) {
    weir_shard *shard = context;
    uint32_t source, partition;
    uint64_t offset;
    weir_event_clock clock;
    if (!weir_shard_offset_read(key, length, value, value_length, &source, &partition, &offset, &clock))
        return WEIR_ERR(WEIR_ECORRUPT, "an offset of shard %u is damaged; restore a checkpoint", shard->index);
    weir_err err = weir_offsets_set(shard->applied, source, partition, offset, &clock);
    return err ? err : weir_offsets_set(shard->sealed, source, partition, offset, &clock);
}

static weir_err shard_load_newest(void *context, const void *key, size_t length, const void *value,
                                  size_t value_length) {
    weir_shard *shard = context;
    const uint8_t *bytes = value;
    if (!weir_newest_key_read(key, length) || value_length != WEIR_NEWEST_BYTES)
        return WEIR_ERR(WEIR_ECORRUPT, "the newest time of shard %u is damaged; restore a checkpoint", shard->index);
    shard_event_time_seen(shard, (int64_t)weir_get_u64(bytes));
    shard->frozen_mark = (weir_watermark_mark){(int64_t)weir_get_u64(bytes + 8), weir_get_u64(bytes + 16)};
    shard->sealed_us = shard->frozen_mark.now_us;
    shard->trimmed = (weir_trimmed){(int64_t)weir_get_u64(bytes + 24), (int64_t)weir_get_u64(bytes + 32)};
    weir_watermark_load_mark(shard->watermark, shard->frozen_mark);
    return WEIR_OK;
}

weir_err weir_shard_open(const weir_shard_opts *opts, weir_shard **shardp) {
    const size_t remains_bytes = opts->cache_bytes / REMAINS_SHARE;
    char name[WEIR_THREAD_NAME_MAX + 1];
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

    weir_engine_opts engine_opts = {.cache = opts->blocks,
                                    .create = opts->create,
                                    .read_only = opts->read_only,
                                    .last_rank = weir_bundle_last_rank,
                                    .joining = &weir_joining};
    weir_err err = weir_engine_open(opts->folder, &engine_opts, &shard->engine);
    if (!err) err = weir_cache_open(opts->cache_bytes - remains_bytes, opts->window, &shard->cache);
    if (!err) err = weir_remains_open(remains_bytes, shard->cache, &shard->remains);
    if (!err) err = weir_deleted_open(shard->engine, opts->deleted, opts->deleted_bytes, &shard->deleted);
    if (!err) err = weir_offsets_open(&shard->applied);
    if (!err) err = weir_offsets_open(&shard->sealed);
    if (!err) err = weir_offsets_open(&shard->frozen_offsets);
    if (!err) err = weir_queue_open(QUEUE_BATCHES, sizeof(shard_message), &shard->queue);
    if (!err) err = shard_open_delta(shard, false, &shard->active);
    if (!err) err = weir_cold_scan_kind(shard->engine, 'O', shard_load_offset, shard);
    if (!err) err = weir_cold_scan_kind(shard->engine, 'P', shard_load_newest, shard);

    if (!err && !opts->read_only) {
        snprintf(name, sizeof name, "shard-%u", shard->index);
        err = weir_thread_start(name, WEIR_ROLE_SHARD, shard_owner_thread, shard, &shard->owner);
        snprintf(name, sizeof name, "seal-%u", shard->index);
        if (!err) err = weir_thread_start(name, WEIR_ROLE_WORKER, shard_sealer_thread, shard, &shard->sealer);
    }
    if (err) {
        weir_shard_close(shard);
        return err;
    }
    *shardp = shard;
    return WEIR_OK;
}

void weir_shard_close(weir_shard *shard) {
    if (!shard) return;
    weir_mutex_lock(&shard->mutex);
    WEIR_ASSERT(!shard->trimming); /* weir_graph_close: the caller has ended it */
    shard->stopping = true;
    weir_cond_broadcast(&shard->changed);
    weir_mutex_unlock(&shard->mutex);
    if (shard->queue) weir_queue_close(shard->queue);
    weir_thread_join(shard->owner);
    weir_thread_join(shard->sealer);
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

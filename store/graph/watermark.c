/* SPDX-License-Identifier: Apache-2.0 */
/* watermark.c - a clock a source partition, which of them count, and what follows from them. */
#include "watermark.h"

#include <stdatomic.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/thread.h>

#include "offsets.h"

typedef struct weir_clock_row {
    uint32_t source, partition;
    weir_event_median ahead;  /* as submitted                                       [ingest]             */
    uint64_t submitted;       /* the offset behind the last run in it               [ingest]             */
    uint64_t wound;           /* events that it has counted since the store was opened [ingest]          */
    int64_t submitted_us;     /* the newest time in it                              guarded by the mutex */
    weir_event_clock applied; /* as all shards have it                              guarded              */
    uint64_t applied_to;      /* the offset behind the last run in it               guarded              */
    uint64_t applied_wound;   /* of its events                                      guarded              */
    uint64_t handed;          /* as submitted                                       guarded              */
    uint64_t idle_from;       /* IDLE was said, and counts from this offset on; 0: no  guarded           */
    weir_clock_state state;   /*                                                    guarded              */
} weir_clock_row;

struct weir_watermark {
    weir_clock *clock; /* borrowed */
    int64_t future_us;
    _Atomic int64_t now_us; /* written under the mutex */

    weir_mutex mutex;          /* LEAF; guards the fields below */
    weir_clock_row **rows;     /* rising by source, then partition; a row never moves */
    weir_clock_row **counting; /* those that are not IDLE, in no order; room for all  */
    size_t count, capacity, counting_count;
    uint64_t events; /* in the windows of all rows, as applied */
    uint64_t turn;   /* rises with each change of now_us       */
};

weir_err weir_watermark_open(weir_clock *clock, int64_t future_us, weir_watermark **watermarkp) {
    *watermarkp = weir_calloc(1, sizeof **watermarkp);
    if (!*watermarkp) return WEIR_NOMEM("for the clocks of sources");
    (*watermarkp)->clock = clock;
    (*watermarkp)->future_us = future_us;
    atomic_init(&(*watermarkp)->now_us, WEIR_EVENT_CLOCK_NONE);
    weir_mutex_init(&(*watermarkp)->mutex, WEIR_RANK_LEAF, "watermark");
    return WEIR_OK;
}

void weir_watermark_close(weir_watermark *watermark) {
    if (!watermark) return;
    for (size_t i = 0; i < watermark->count; i++)
        weir_free(watermark->rows[i]);
    weir_mutex_destroy(&watermark->mutex);
    weir_free(watermark->rows);
    weir_free(watermark->counting);
    weir_free(watermark);
}

/* --- rows: all under the mutex ---------------------------------------------------------------------------------- */

static size_t watermark_place(const weir_watermark *watermark, uint32_t source, uint32_t partition) {
    uint64_t id = (uint64_t)source << 32 | partition;
    size_t low = 0, high = watermark->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const weir_clock_row *row = watermark->rows[middle];
        if (((uint64_t)row->source << 32 | row->partition) < id) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static weir_err watermark_find_or_add(weir_watermark *watermark, uint32_t source, uint32_t partition,
                                      weir_clock_row **rowp) {
    size_t at = watermark_place(watermark, source, partition);
    *rowp = at < watermark->count ? watermark->rows[at] : NULL;
    if (*rowp && (*rowp)->source == source && (*rowp)->partition == partition) return WEIR_OK;
    *rowp = NULL;
    if (watermark->count == WEIR_OFFSETS_MAX)
        return WEIR_ERR(WEIR_ELIMIT, "more than %u source partitions feed one store", WEIR_OFFSETS_MAX);
    WEIR_ASSERT(weir_mutex_held(&watermark->mutex) && at <= watermark->count);
    size_t of_rows = watermark->capacity;
    bool room = WEIR_GROW(watermark->rows, of_rows, watermark->count) &&
                WEIR_GROW(watermark->counting, watermark->capacity, watermark->count);
    weir_clock_row *row = room ? weir_calloc(1, sizeof *row) : NULL;
    if (!row) return WEIR_NOMEM("for the clocks of sources");
    *rowp = row;
    row->source = source;
    row->partition = partition;
    row->state = WEIR_CLOCK_IDLE;
    row->applied = row->ahead.clock = weir_event_clock_unset();
    row->submitted_us = WEIR_EVENT_CLOCK_NONE;
    memmove(&watermark->rows[at + 1], &watermark->rows[at], (watermark->count - at) * sizeof(weir_clock_row *));
    watermark->rows[at] = row;
    watermark->count++;
    WEIR_ASSERT(watermark->count <= watermark->capacity); /* and there is room to count all of them */
    return WEIR_OK;
}

static void watermark_set_state(weir_watermark *watermark, weir_clock_row *row, weir_clock_state state) {
    bool counted = row->state != WEIR_CLOCK_IDLE, counts = state != WEIR_CLOCK_IDLE;
    row->state = state;
    WEIR_ASSERT(counted || !counts || watermark->counting_count < watermark->capacity);
    if (!counted && counts) watermark->counting[watermark->counting_count++] = row;
    for (size_t i = 0; counted && !counts && i < watermark->counting_count; i++) {
        if (watermark->counting[i] != row) continue;
        watermark->counting[i] = watermark->counting[--watermark->counting_count];
        break;
    }
}

/* --- the watermark: all under the mutex ------------------------------------------------------------------------- */

/* false: none counts, or one that is being read has not said anything yet. */
static bool watermark_least_clock(const weir_watermark *watermark, int64_t *least_usp) {
    bool any = false;
    for (size_t i = 0; i < watermark->counting_count; i++) {
        const weir_clock_row *row = watermark->counting[i];
        if (!row->applied.count && row->state == WEIR_CLOCK_READING) return false;
        if (!row->applied.count) continue;
        if (!any || row->applied.now_us < *least_usp) *least_usp = row->applied.now_us;
        any = true;
    }
    return any;
}

/* The newest times of all rows, so many of them, newest first. */
typedef struct watermark_newest_times {
    int64_t times[WEIR_EVENT_CLOCK_MAJORITY];
    uint32_t count, wanted;
} watermark_newest_times;

static void watermark_newest_offer(watermark_newest_times *newest, int64_t time_us) {
    if (newest->count == newest->wanted && time_us <= newest->times[newest->count - 1]) return;
    uint32_t at = newest->count < newest->wanted ? newest->count++ : newest->count - 1;
    for (; at > 0 && newest->times[at - 1] < time_us; at--)
        newest->times[at] = newest->times[at - 1];
    newest->times[at] = time_us;
}

/* GRAPH-W2. The clock of a full window was reached by a majority, and stands for it though the window has moved on: so
 * that one partition's clock is the watermark whatever runs its events came in. */
static int64_t watermark_supported_us(const weir_watermark *watermark, int64_t wanted_us) {
    watermark_newest_times newest = {.wanted = weir_event_clock_majority(watermark->events)};
    int64_t most_us = INT64_MIN;
    for (size_t i = 0; i < watermark->counting_count; i++) { /* nearly always one of them is enough */
        const weir_event_clock *clock = &watermark->counting[i]->applied;
        if (clock->count == WEIR_EVENT_CLOCK_EVENTS && clock->now_us >= wanted_us) return wanted_us;
    }
    for (size_t r = 0; r < watermark->count; r++) {
        const weir_event_clock *clock = &watermark->rows[r]->applied;
        for (uint32_t i = 0; i < clock->count; i++)
            watermark_newest_offer(&newest, clock->times[i]);
        if (clock->count == WEIR_EVENT_CLOCK_EVENTS && clock->now_us > most_us) most_us = clock->now_us;
    }
    WEIR_ASSERT(newest.count == newest.wanted);
    if (newest.times[newest.count - 1] > most_us) most_us = newest.times[newest.count - 1];
    return wanted_us < most_us ? wanted_us : most_us;
}

static int64_t watermark_latest_by_wall(const weir_watermark *watermark) {
    int64_t latest_us;
    if (!watermark->future_us) return INT64_MAX;
    bool beyond = __builtin_add_overflow(weir_clock_wall_us(watermark->clock), watermark->future_us, &latest_us);
    return beyond ? INT64_MAX : latest_us;
}

static void watermark_update(weir_watermark *watermark) {
    WEIR_ASSERT(weir_mutex_held(&watermark->mutex));
    int64_t least_us = 0, now_us = atomic_load_explicit(&watermark->now_us, memory_order_relaxed);
    if (!watermark_least_clock(watermark, &least_us)) return; /* GRAPH-W1 */
    bool settled = watermark->events >= WEIR_EVENT_CLOCK_EVENTS && now_us <= watermark_latest_by_wall(watermark);
    if (settled && least_us <= now_us) return; /* GRAPH-W3 */
    least_us = watermark_supported_us(watermark, least_us);
    if (least_us == now_us || (settled && least_us < now_us)) return;
    atomic_store_explicit(&watermark->now_us, least_us, memory_order_relaxed);
    watermark->turn++;
}

int64_t weir_watermark_now(const weir_watermark *watermark) {
    return atomic_load_explicit(&watermark->now_us, memory_order_relaxed);
}

weir_watermark_mark weir_watermark_mark_get(weir_watermark *watermark) {
    weir_mutex_lock(&watermark->mutex);
    weir_watermark_mark mark = {weir_watermark_now(watermark), watermark->turn};
    weir_mutex_unlock(&watermark->mutex);
    return mark;
}

weir_err weir_watermark_state(weir_watermark *watermark, uint32_t source, uint32_t partition, weir_clock_state state) {
    weir_clock_row *row;
    weir_mutex_lock(&watermark->mutex);
    weir_err err = watermark_find_or_add(watermark, source, partition, &row);
    /* It was idle when the store was closed, and has said nothing since. */
    bool sleeps = !err && row->state == WEIR_CLOCK_IDLE && row->applied.now_us < weir_watermark_now(watermark);
    if (!err && !(state == WEIR_CLOCK_WAITING && sleeps)) {
        bool later = state == WEIR_CLOCK_IDLE && row->applied_to < row->handed;
        row->idle_from = later ? row->handed : 0;
        if (!later) watermark_set_state(watermark, row, state);
        watermark_update(watermark);
    }
    weir_mutex_unlock(&watermark->mutex);
    return err;
}

/* --- opening ---------------------------------------------------------------------------------------------------- */

void weir_watermark_load_mark(weir_watermark *watermark, weir_watermark_mark mark) {
    weir_mutex_lock(&watermark->mutex); /* shards that are open already seal */
    if (mark.turn >= watermark->turn) {
        watermark->turn = mark.turn;
        atomic_store_explicit(&watermark->now_us, mark.now_us, memory_order_relaxed); /* GRAPH-W4 */
    }
    weir_mutex_unlock(&watermark->mutex);
}

static int64_t watermark_newest_of(const weir_event_clock *clock) {
    int64_t newest_us = WEIR_EVENT_CLOCK_NONE;
    for (uint32_t i = 0; i < clock->count; i++)
        if (clock->times[i] > newest_us) newest_us = clock->times[i];
    return newest_us;
}

weir_err weir_watermark_load(weir_watermark *watermark, uint32_t source, uint32_t partition, uint64_t offset,
                             const weir_event_clock *clock) {
    weir_clock_row *row;
    weir_mutex_lock(&watermark->mutex);
    weir_err err = watermark_find_or_add(watermark, source, partition, &row);
    if (!err) {
        row->applied = *clock;
        row->submitted = row->applied_to = row->handed = offset;
        row->submitted_us = watermark_newest_of(clock);
        weir_event_median_begin(&row->ahead, clock);
        watermark->events += clock->count;
    }
    weir_mutex_unlock(&watermark->mutex);
    return err;
}

/* --- a run ------------------------------------------------------------------------------------------------------ */

/* A batch of a run, and the next event in it. */
typedef struct watermark_cursor {
    weir_batch_cursor cursor;
    weir_batch_event next;
    bool any;
} watermark_cursor;

static void watermark_cursor_step(watermark_cursor *c) {
    c->any = weir_batch_next_event(&c->cursor, &c->next);
}

/* Events in the order of their offsets, each once though several shards have parts of it. */
static void watermark_wind(weir_watermark *watermark, weir_clock_row *row, watermark_cursor *cursors, uint32_t shards) {
    int64_t latest_us = watermark_latest_by_wall(watermark);
    for (;;) {
        const watermark_cursor *first = NULL;
        for (uint32_t i = 0; i < shards; i++)
            if (cursors[i].any && (!first || cursors[i].next.offset < first->next.offset)) first = &cursors[i];
        if (!first) break;
        const weir_batch_event event = first->next;
        if (event.offset >= row->submitted) {
            weir_event_median_add(&row->ahead, event.time_us, latest_us);
            row->wound++;
        }
        for (uint32_t i = 0; i < shards; i++)
            if (cursors[i].any && cursors[i].next.offset == event.offset) watermark_cursor_step(&cursors[i]);
    }
}

weir_err weir_watermark_submit(weir_watermark *watermark, const weir_batch_cursor *batches, uint32_t shards,
                               weir_clock_note **notep) {
    const weir_batch_span span = batches[0].span;
    weir_clock_row *row = NULL;
    weir_clock_note *note = weir_calloc(1, sizeof *note);
    watermark_cursor *cursors = weir_calloc(shards, sizeof *cursors);
    weir_err err = note && cursors ? WEIR_OK : WEIR_NOMEM("while handing a run over");
    weir_mutex_lock(&watermark->mutex);
    if (!err) err = watermark_find_or_add(watermark, span.source, span.partition, &row);
    weir_mutex_unlock(&watermark->mutex);
    if (!err) {
        for (uint32_t i = 0; i < shards; i++) {
            cursors[i].cursor = batches[i];
            watermark_cursor_step(&cursors[i]);
        }
        watermark_wind(watermark, row, cursors, shards);
        if (row->submitted < span.offset_end) row->submitted = span.offset_end;
        WEIR_ASSERT(row->submitted >= span.offset_end && row->submitted >= row->handed);
        *note = (weir_clock_note){row, row->submitted, row->wound, row->ahead.clock, shards, false};
        weir_mutex_lock(&watermark->mutex);
        row->submitted_us = watermark_newest_of(&row->ahead.clock);
        row->handed = row->submitted;
        weir_mutex_unlock(&watermark->mutex);
    }
    weir_free(cursors);
    if (err) weir_free(note);
    *notep = err ? NULL : note;
    return err;
}

/* Runs end in the order in which they were handed over, because each shard takes them in that order. */
static void watermark_apply(weir_watermark *watermark, const weir_clock_note *note) {
    weir_clock_row *row = note->row;
    if (note->offset_end <= row->applied_to) return; /* a run that comes again */
    bool news = note->wound > row->applied_wound;
    WEIR_ASSERT(watermark->events + note->clock.count >= row->applied.count && note->wound >= row->applied_wound);
    watermark->events += note->clock.count - row->applied.count;
    row->applied = note->clock;
    row->applied_to = note->offset_end;
    row->applied_wound = note->wound;
    if (news && row->state == WEIR_CLOCK_IDLE) watermark_set_state(watermark, row, WEIR_CLOCK_WAITING);
    watermark_update(watermark);
    if (!row->idle_from || row->applied_to < row->idle_from) return;
    row->idle_from = 0;
    watermark_set_state(watermark, row, WEIR_CLOCK_IDLE);
    watermark_update(watermark);
}

void weir_watermark_give_back(weir_watermark *watermark, weir_clock_note *note, uint32_t shards, bool was_applied) {
    weir_mutex_lock(&watermark->mutex);
    WEIR_ASSERT(note->shards >= shards);
    note->shards -= shards;
    note->dropped = note->dropped || !was_applied;
    bool last = note->shards == 0;
    if (last && !note->dropped) watermark_apply(watermark, note);
    weir_mutex_unlock(&watermark->mutex);
    if (last) weir_free(note);
}

/* --- questions -------------------------------------------------------------------------------------------------- */

int64_t weir_watermark_latest(weir_watermark *watermark, int64_t arrived_us) {
    int64_t latest_us = watermark_latest_by_wall(watermark), of_arrival_us;
    if (!watermark->future_us) return INT64_MAX;
    if (__builtin_add_overflow(arrived_us, watermark->future_us, &of_arrival_us)) of_arrival_us = INT64_MAX;
    if (of_arrival_us > latest_us) latest_us = of_arrival_us;
    if (weir_watermark_now(watermark) > latest_us) latest_us = weir_watermark_now(watermark);
    weir_mutex_lock(&watermark->mutex);
    for (size_t i = 0; i < watermark->count; i++) {
        const weir_clock_row *row = watermark->rows[i];
        bool lives = row->state != WEIR_CLOCK_IDLE || row->applied_to < row->handed;
        if (lives && row->submitted_us > latest_us) latest_us = row->submitted_us;
    }
    weir_mutex_unlock(&watermark->mutex);
    return latest_us;
}

bool weir_watermark_clock_at(weir_watermark *watermark, size_t index, uint32_t *sourcep, weir_graph_clock *clockp) {
    weir_mutex_lock(&watermark->mutex);
    bool there = index < watermark->count;
    if (there) {
        const weir_clock_row *row = watermark->rows[index];
        *sourcep = row->source;
        *clockp = (weir_graph_clock){.partition = row->partition,
                                     .state = row->state,
                                     .clock_us = row->applied.now_us,
                                     .newest_us = watermark_newest_of(&row->applied)};
    }
    weir_mutex_unlock(&watermark->mutex);
    return there;
}

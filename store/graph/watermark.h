/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watermark.h - what time it is for expiry: what the source partitions agree on, never the largest time seen.
 *
 *   submit ──► each event winds the clock of its partition ──► note ──► applied by all shards ──► watermark
 *
 * INVARIANTS: each is named by a test
 *
 *   GRAPH-W1  It is the least of the clocks (event_clock.h) of the partitions that count: those that are being read,
 *             and those at their ends that have had an event and are not idle. If none counts, it stays.
 *   GRAPH-W2  It is no later than what a majority of the newest events of all partitions bear, idle ones too, or than
 *             the clock of one with WEIR_EVENT_CLOCK_EVENTS of them: so that one event cannot be the majority of a
 *             partition that happens to be the only one left.
 *   GRAPH-W3  It never goes back, with two exceptions. While there are fewer than WEIR_EVENT_CLOCK_EVENTS newest events
 *             in all, it is what they say now. And when it is later than a right wall clock would let events be, then
 *             it has followed a wrong one, and goes back as soon as the clocks do.
 *   GRAPH-W4  It is sealed with the offsets, and is the same after a restart.
 *
 * THREADS: any; one at a time submits for a partition.
 */
#ifndef WEIR_STORE_WATERMARK_H
#define WEIR_STORE_WATERMARK_H

#include <weir/store/base/clock.h>
#include <weir/store/base/err.h>
#include <weir/store/format/mutation.h>
#include <weir/store/graph/graph.h>

#include "event_clock.h"

typedef struct weir_watermark weir_watermark;

/* One run of a partition on its way through the shards. */
typedef struct weir_clock_note {
    struct weir_clock_row *row;
    uint64_t offset_end;
    uint64_t wound;         /* events that the partition's clock had counted behind the run */
    weir_event_clock clock; /* behind its last event */
    uint32_t shards;        /* that have it still; guarded by the watermark's mutex */
    bool dropped;
} weir_clock_note;

/* As it is sealed: of two, that of the higher turn is the newer one. */
typedef struct weir_watermark_mark {
    int64_t now_us; /* WEIR_EVENT_CLOCK_NONE: none yet */
    uint64_t turn;
} weir_watermark_mark;

/* future_us 0: events may bear any time. clock is borrowed.  WEIR_ENOMEM. */
weir_err weir_watermark_open(weir_clock *clock, int64_t future_us, weir_watermark **watermarkp);
void weir_watermark_close(weir_watermark *watermark);
/* While a store is opened: a mark that a shard had sealed; a partition as the shard that is furthest behind has it.
 * WEIR_ENOMEM, WEIR_ELIMIT.  [owner] */
void weir_watermark_load_mark(weir_watermark *watermark, weir_watermark_mark mark);
weir_err weir_watermark_load(weir_watermark *watermark, uint32_t source, uint32_t partition, uint64_t offset,
                             const weir_event_clock *clock);

/* Counts the events of a run that were not counted before: its batches, one a shard. The note is each shard's until it
 * has given it back.  WEIR_ENOMEM, WEIR_ELIMIT.  [ingest] */
weir_err weir_watermark_submit(weir_watermark *watermark, const weir_batch_cursor *batches, uint32_t shards,
                               weir_clock_note **notep);
/* shards of them have no more use for it: applied, or not.  [any] */
void weir_watermark_give_back(weir_watermark *watermark, weir_clock_note *note, uint32_t shards, bool applied);

/* As weir_graph_clock_state.  WEIR_ENOMEM, WEIR_ELIMIT. */
weir_err weir_watermark_state(weir_watermark *watermark, uint32_t source, uint32_t partition, weir_clock_state state);
int64_t weir_watermark_now(const weir_watermark *watermark); /* WEIR_EVENT_CLOCK_NONE: none yet */
weir_watermark_mark weir_watermark_mark_get(weir_watermark *watermark);
/* As weir_graph_latest. */
int64_t weir_watermark_latest(weir_watermark *watermark, int64_t arrived_us);
/* false: there is none of this number. */
bool weir_watermark_clock_at(weir_watermark *watermark, size_t index, uint32_t *sourcep, weir_graph_clock *clockp);

#endif /* WEIR_STORE_WATERMARK_H */

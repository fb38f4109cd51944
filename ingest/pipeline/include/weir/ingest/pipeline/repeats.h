/* SPDX-License-Identifier: Apache-2.0 */
/*
 * repeats.h - which event ids a source partition has had among its newest records.
 *
 * An event names itself by an id. The first event of an id stands; a later one that says the same is a repetition, and
 * one that says something else is refused. Which was first the log decides, so the rule knows only offsets of one
 * partition: an id is compared with the ids that were first at the `window` offsets before it. So it gives the same
 * after a restart and when a store is filled anew, however the partitions of a topic come in between each other; and
 * what it remembers is bounded.
 *
 *   PIPELINE-R1  An event at an offset is FIRST if no FIRST of its id stands at one of the `window` offsets before it.
 *   PIPELINE-R2  What was added and then undone leaves no trace: a span that is read again is judged as it was.
 *
 * THREADS: [owner].
 */
#ifndef WEIR_INGEST_PIPELINE_REPEATS_H
#define WEIR_INGEST_PIPELINE_REPEATS_H

#include <stdint.h>

#include <weir/store/base/err.h>
#include <weir/store/graph/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_repeats weir_repeats;

typedef enum weir_repeat {
    WEIR_REPEAT_FIRST, /* no FIRST in the window has the id         */
    WEIR_REPEAT_SAME,  /* the first one said the same               */
    WEIR_REPEAT_OTHER  /* the first one said something else         */
} weir_repeat;

/* window: how many offsets it looks back; 0: every event is FIRST.  WEIR_ENOMEM; WEIR_ELIMIT above
 * WEIR_EVENT_WINDOW_MAX. */
weir_err weir_repeats_open(uint32_t window, weir_repeats **repeatsp);
void weir_repeats_close(weir_repeats *repeats); /* NULL is allowed */
/* What an event at this offset is; *firstp: the offset of the first one.  [owner] */
weir_repeat weir_repeats_ask(const weir_repeats *repeats, uint64_t event, uint32_t content, uint64_t offset,
                             uint64_t *firstp);
/* Remembers a FIRST; offsets rise.  WEIR_ENOMEM: it is as it was.  [owner] */
weir_err weir_repeats_add(weir_repeats *repeats, uint64_t event, uint32_t content, uint64_t offset);
/* Takes back what was added at this offset and above: it will be asked and added again.  [owner] */
void weir_repeats_undo(weir_repeats *repeats, uint64_t offset);
/* Nothing below this offset is asked any more: gives back what no window reaches.  [owner] */
void weir_repeats_forget(weir_repeats *repeats, uint64_t offset);
/* Remembers what the graph has noted of a partition's events below an offset. While it remembers none: first, or when
 * all was undone.  [owner]  WEIR_ENOMEM; what reading the graph returns. */
weir_err weir_repeats_load(weir_repeats *repeats, weir_graph *graph, uint32_t source, uint32_t partition,
                           uint64_t before);
uint32_t weir_repeats_count(const weir_repeats *repeats);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_INGEST_PIPELINE_REPEATS_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shard.h - one share of the graph: an owner thread that applies, a seal thread that writes, readers of any thread.
 *
 *                 push            freeze                     ingest, update windows, drop
 *   any thread ───────► [shard] ─────────► frozen delta ─► [worker] ────────────────────► cold store
 *
 * A version is the pair (active delta, frozen delta). It changes under `mutex`, and readers take references under it;
 * the cold store and the windows are read without it, which is right because a delta is dropped only after both have
 * it: what a reader meets twice is the same record twice, and counts once.
 */
#ifndef WEIR_STORE_SHARD_H
#define WEIR_STORE_SHARD_H

#include <stdatomic.h>

#include <weir/store/base/arena.h>
#include <weir/store/base/clock.h>
#include <weir/store/base/queue.h>
#include <weir/store/base/thread.h>
#include <weir/store/engine/engine.h>
#include <weir/store/graph/graph.h>

#include "cache.h"
#include "deleted.h"
#include "delta.h"
#include "offsets.h"
#include "remains.h"
#include "watermark.h"

#define WEIR_NEWEST_BYTES  40u /* of its record: the newest event time, the watermark, its turn, the last trim */
#define WEIR_TRIMMED_NEVER INT64_MIN
/* The watermark at which a shard was trimmed; and the time from which on all is there, whatever the schema says now. */
typedef struct weir_trimmed {
    int64_t now_us, whole_from_us;
} weir_trimmed;

#define WEIR_SHARD_SPARE_SHARE 4u /* a delta may exceed its seal size by a fourth, for the event that fills it */

typedef struct weir_shard_opts {
    const char *folder;           /* of this shard; borrowed for the call */
    weir_engine_cache *blocks;    /* borrowed                         */
    weir_deleted_filter *deleted; /* borrowed                         */
    uint32_t index, shards;
    size_t seal_bytes; /* a delta is frozen at this size       */
    int64_t seal_us;   /* or at this age                       */
    size_t cache_bytes, deleted_bytes;
    uint32_t window;
    bool create, read_only;
    size_t pile_bytes;         /* until weir_shard_unpile deltas are piles, and frozen at this size; 0: never */
    weir_clock *clock;         /* borrowed                             */
    weir_watermark *watermark; /* borrowed                             */
} weir_shard_opts;

typedef struct weir_shard {
    weir_engine *engine;
    weir_cache *cache;
    weir_remains *remains;
    weir_deleted *deleted;
    weir_offsets *applied; /* what readers see, piles aside */
    weir_offsets *sealed;  /* what the cold store covers */
    weir_queue *queue;     /* of messages: shard.c       */
    weir_thread *owner, *sealer;
    weir_clock *clock;
    weir_watermark *watermark;
    size_t seal_bytes; /* when a delta is frozen … */
    size_t pile_bytes; /* … or a pile              */
    int64_t seal_us;
    uint32_t window, index;
    bool read_only;

    weir_mutex mutex;   /* SHARD; guards the fields below */
    weir_cond changed;  /* any of them changed            */
    weir_delta *active; /* written by [shard] only        */
    weir_delta *frozen; /* NULL: nothing to seal          */
    weir_offsets *frozen_offsets;
    int64_t frozen_newest_us;          /* newest event time when it was frozen */
    weir_watermark_mark frozen_mark;   /* the watermark when it was frozen, or as it was loaded */
    uint64_t seals_wanted, seals_done; /* freezes so far, and seals so far */
    uint64_t tries, tries_ended;       /* of the sealer, each to seal what is frozen */
    uint64_t seal_failures;
    weir_err_kept seal_err;  /* of the try that ended last; none after a success            */
    weir_err_kept stall;     /* what the owner tries again and again; none: it goes on      */
    uint64_t stalls;         /* how often it has tried in vain, since open                  */
    weir_err_kept failed;    /* why the owner has stopped for good                          */
    uint64_t handled;        /* messages, as the queue counts those that were pushed        */
    uint64_t seals_asked;    /* questions so far                                            */
    uint64_t seal_behind;    /* the newest is about so many messages                        */
    uint64_t seals_answered; /* questions for which the delta was frozen, or will be …      */
    uint64_t seal_answer;    /* … and is in the cold store after so many seals              */
    bool waits_for_seal;     /* the owner cannot go on before the frozen delta is sealed    */
    bool stopping;
    bool piles;                /* behind the first seal the next delta is a pile              */
    bool held;                 /* nothing is sealed: its cold store is about to be replaced   */
    const char *fresh;         /* by the engine in this folder; NULL: by none                 */
    weir_err_kept replace_err; /* how that went */
    weir_err_kept repair;      /* what is done about damage, or why nothing can be            */
    int64_t sealed_us;         /* the watermark when what is sealed was frozen */
    weir_trimmed trimmed;

    bool trimming; /* by one at a time */

    struct weir_trim *trim; /* set while it is held: what is sealed is wanted there, too  */

    bool news;               /* [shard] offsets have moved since the last freeze */
    bool postponed;          /* [shard] the active delta is to be frozen as soon as there is room */
    int64_t active_since_us; /* [shard] */
    atomic_uint_fast64_t applied_mutations, skipped_mutations, sealed_records;
    atomic_int_fast64_t event_time_last_us;
} weir_shard;

weir_err weir_shard_open(const weir_shard_opts *opts, weir_shard **shardp);
/* The sealer ends after the seal at work, the owner when its queue is empty; what is not sealed then is the log's. NULL
 * is allowed. */
void weir_shard_close(weir_shard *shard);

/* Copies the batch; gives the note back when it is done with, not when this fails. Blocks while the queue is full.
 * WEIR_ENOMEM; WEIR_ECLOSED; WEIR_ECANCELLED its queue is interrupted; what stopped the owner.  [any] */
weir_err weir_shard_push(weir_shard *shard, const void *batch, size_t length, weir_clock_note *note);

/* A question to a shard: begun at all of them before the first answer is waited for. */
typedef struct weir_shard_ticket {
    uint64_t pushed; /* what the answer is about: messages */
    uint64_t question, tries, stalls;
} weir_shard_ticket;

/* The answer comes when what was pushed before is applied. It is an error when the shard has stopped, and when it has
 * tried to go on since the question, and could not: a stop does not wait for a disk.  [any] */
weir_shard_ticket weir_shard_ask(weir_shard *shard);
weir_err weir_shard_drained(weir_shard *shard, const weir_shard_ticket *ticket);
/* The answer comes when what was pushed before is in the cold store; errors as for a drain.  [any] */
weir_shard_ticket weir_shard_ask_seal(weir_shard *shard);
weir_err weir_shard_sealed(weir_shard *shard, const weir_shard_ticket *ticket);
/* Whether there may be something that readers do not find until it is sealed.  [any] */
bool weir_shard_is_piled(weir_shard *shard);
/* After the next freeze readers find what comes as soon as it is applied.  [any] */
void weir_shard_unpile(weir_shard *shard);
/* Until release nothing is sealed, and the sealed offsets stay as they are: waits for the seal that is at work. What is
 * submitted waits in memory, then at the door.  [any]  WEIR_ECLOSED. */
weir_err weir_shard_hold(weir_shard *shard);
void weir_shard_release(weir_shard *shard);
/* While it is held: the cold store becomes the one in a folder beside it, which is closed; what it was is there then.
 * Errors are those of weir_engine_replace; WEIR_ECLOSED.  Blocks.  [any] */
weir_err weir_shard_replace(weir_shard *shard, const char *folder);

/* What a reader sees of a list. Visible entries only, newest first; rows are copied into the arena.  [any] */
typedef struct weir_list_query {
    weir_vertex vertex;
    weir_list list;
    int64_t before_us;
    int64_t newer_than_us; /* what is of this time or older has expired, or is not asked for; INT64_MIN: all is */
    uint32_t limit;
    bool hidden_too;               /* also edges that the deletion of an edge or of the neighbour hides */
    const weir_graph_list *beside; /* of the vertex, rising: read with it where the cold store must be; or NULL */
    size_t beside_count;
    weir_arena *scratch;       /* of those */
    weir_graph_budget *budget; /* NULL: any */
} weir_list_query;

/* Takes steps from a budget (NULL: any).  WEIR_EBUSY, WEIR_ETIMEOUT as weir_graph_budget says.  [any] */
weir_err weir_shard_spend(weir_graph_budget *budget, uint64_t steps);

weir_err weir_shard_list(weir_shard *shard, const weir_list_query *query, weir_arena *arena,
                         const weir_entry **entriesp, uint32_t *countp);
/* The same for a reader of many lists, who holds the version. */
weir_err weir_shard_list_in(weir_shard *shard, weir_delta *const deltas[2], const weir_list_query *query,
                            weir_arena *arena, const weir_entry **entriesp, uint32_t *countp);
/* The same of a list of edges. */
weir_err weir_shard_edges(weir_shard *shard, weir_delta *const deltas[2], const weir_list_query *query,
                          weir_arena *arena, const weir_edge **edgesp, uint32_t *countp);
/* The time of the oldest entry, no deletion, of any of the lists (rising) of a vertex, whatever hides it: of the
 * query's span; its list and limit are not looked at. One pass over the files that have the vertex: of a list that is
 * more than a few bundles in a file, a seek for each span that it has there, however long it is. It takes the steps of
 * one seek, and one for each bundle.  [any] */
weir_err weir_shard_oldest(weir_shard *shard, const weir_list_query *query, const weir_list *lists, size_t count,
                           bool *foundp, int64_t *time_usp);
weir_err weir_shard_name(weir_shard *shard, weir_vertex vertex, weir_graph_budget *budget, weir_arena *arena,
                         weir_name *namep, bool *foundp);

/* Writes the frozen delta into the cold store and drops it.  [worker] */
weir_err weir_shard_write_frozen(weir_shard *shard);
/* Into a sorted file of another engine: all offsets that the cold store has, what time it is, and of which time the
 * other was trimmed.  While it is held. */
weir_err weir_shard_write_sealed(weir_shard *shard, weir_engine_writer *writer, weir_trimmed trimmed);
/* What the record of an offset says; false: it is not one. */
bool weir_shard_offset_read(const void *key, size_t key_length, const void *value, size_t value_length,
                            uint32_t *sourcep, uint32_t *partitionp, uint64_t *offsetp, weir_event_clock *clockp);
/* The deltas of this moment, each with a reference.  [any] */
void weir_shard_version(weir_shard *shard, weir_delta *deltas[2]);

#endif /* WEIR_STORE_SHARD_H */

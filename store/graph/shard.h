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

#include <weir/base/arena.h>
#include <weir/base/clock.h>
#include <weir/base/queue.h>
#include <weir/base/thread.h>
#include <weir/store/engine.h>
#include <weir/store/graph.h>

#include "cache.h"
#include "deleted.h"
#include "delta.h"
#include "offsets.h"

typedef struct weir_shard_opts {
    const char *folder;        /* of this shard; borrowed for the call */
    weir_engine_cache *blocks; /* borrowed                             */
    uint32_t index, shards;
    size_t seal_bytes; /* a delta is frozen at this size       */
    int64_t seal_us;   /* or at this age                       */
    size_t cache_bytes;
    uint32_t window;
    bool create, read_only;
    weir_clock *clock; /* borrowed                             */
} weir_shard_opts;

typedef struct weir_shard {
    weir_engine *engine;
    weir_cache *cache;
    weir_deleted *deleted;
    weir_offsets *applied; /* what readers see           */
    weir_offsets *sealed;  /* what the cold store covers */
    weir_queue *queue;     /* of messages: shard.c       */
    weir_thread *owner, *sealer;
    weir_clock *clock;
    size_t seal_bytes;
    int64_t seal_us;
    uint32_t window, index;
    bool read_only;

    weir_mutex mutex;   /* SHARD; guards the fields below */
    weir_cond changed;  /* any of them changed            */
    weir_delta *active; /* written by [shard] only        */
    weir_delta *frozen; /* NULL: nothing to seal          */
    weir_offsets *frozen_offsets;
    int64_t frozen_newest_us;          /* newest event time when it was frozen */
    uint64_t seals_wanted, seals_done; /* freezes so far, and seals so far */
    uint64_t tries, tries_ended;       /* of the sealer, each to seal what is frozen */
    uint64_t seal_failures;
    weir_err seal_err; /* of the try that ended last; 0 after a success */
    uint32_t asking;   /* threads that wait for an answer of the owner */
    weir_err failed;   /* why the owner has stopped          */
    bool stopping;

    bool postponed;          /* [shard] the active delta could not be frozen for want of room */
    int64_t active_since_us; /* [shard] */
    atomic_uint_fast64_t applied_mutations, skipped_mutations, sealed_records;
    atomic_int_fast64_t event_time_last_us;
} weir_shard;

weir_err weir_shard_open(const weir_shard_opts *opts, weir_shard **shardp);
/* Stops both threads; seals first unless something has failed. */
weir_err weir_shard_close(weir_shard *shard);

/* Copies the batch. Blocks while the queue is full.  WEIR_ENOMEM; WEIR_ECLOSED; what stopped the owner.  [any] */
weir_err weir_shard_push(weir_shard *shard, const void *batch, size_t length);
/* Returns when what was pushed before is applied.  [any] */
weir_err weir_shard_drain(weir_shard *shard);
/* Returns when what was pushed before is sealed.  [any] */
weir_err weir_shard_seal(weir_shard *shard);

/* What a reader sees of a list. Visible entries only, newest first; rows are copied into the arena.  [any] */
typedef struct weir_list_query {
    weir_vertex vertex;
    weir_list list;
    int64_t before_us;
    int64_t newer_than_us; /* expiry: what is of this time or older is gone; INT64_MIN: none */
    uint32_t limit;
    bool hidden_too; /* also edges that the deletion of an edge or of the neighbour hides */
} weir_list_query;

weir_err weir_shard_list(weir_shard *shard, const weir_list_query *query, weir_arena *arena,
                         const weir_entry **entriesp, uint32_t *countp);
/* The time of the oldest entry, no deletion, of a list, whatever hides it: of the query's span, whose limit is not
 * looked at. A seek, however long the list is.  [any] */
weir_err weir_shard_oldest(weir_shard *shard, const weir_list_query *query, bool *foundp, int64_t *time_usp);
weir_err weir_shard_name(weir_shard *shard, weir_vertex vertex, weir_arena *arena, weir_name *namep, bool *foundp);

/* Writes the frozen delta into the cold store and drops it.  [worker] */
weir_err weir_shard_write_frozen(weir_shard *shard);
/* The deltas of this moment, each with a reference.  [any] */
void weir_shard_version(weir_shard *shard, weir_delta *deltas[2]);

#endif /* WEIR_STORE_SHARD_H */

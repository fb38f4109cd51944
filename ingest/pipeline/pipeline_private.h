/* SPDX-License-Identifier: Apache-2.0 */
/* pipeline_private.h - what the files of the pipeline share. */
#ifndef WEIR_INGEST_PIPELINE_PRIVATE_H
#define WEIR_INGEST_PIPELINE_PRIVATE_H

#include <stdatomic.h>

#include <weir/ingest/map/map.h>
#include <weir/ingest/pipeline/pipeline.h>
#include <weir/ingest/pipeline/repeats.h>
#include <weir/store/base/thread.h>
#include <weir/store/graph/repair.h>

#include "consumer.h"
#include "letters.h"
#include "positions.h"

/* The state of one partition of a source: what its thread alone uses, and what others look at. */
typedef struct weir_source_partition {
    uint32_t partition;
    uint64_t next;      /* the offset that the next span begins at: PIPELINE-P1                  [ingest] */
    weir_mark newest;   /* of the last record: at or below next                                  [ingest] */
    uint64_t marked;    /* marks that went into the positions                                    [ingest] */
    uint64_t had;       /* all shards had what is below when the store was opened                [ingest] */
    size_t known_count; /* places that are dead letters already, rising                          [ingest] */
    const weir_letters_place *known; /* borrowed                                                    [ingest] */
    weir_marks marks;                /* not yet sealed; of consumers that compare                   [ingest] */
    weir_repeats *repeats;           /* the event ids of its newest records                         [ingest] */
    int64_t quiet_us;                /* since when it is at its end, by the pipeline's clock             [ingest] */
    uint64_t quiet_at;               /* where that was                                                   [ingest] */
    /* guarded by the worker's mutex */
    uint64_t read;         /* above the last record                                                           */
    uint64_t clear;        /* next, if it is above read: no record stands between                             */
    uint64_t end, stable;  /* of the source; from stable on records are in open transactions                  */
    uint64_t verified;     /* what is below is known to be of the log that the source has now                 */
    int64_t open_us;       /* since when stable stands still below end, by the wall clock; 0: it does not      */
    int64_t event_time_us; /* newest handed over, or INT64_MIN                                                */
} weir_source_partition;

/* Maps the records of one partition after the other, and submits what becomes of them. */
typedef struct weir_source_run weir_source_run;

/* A source at work, and the thread that reads it. */
typedef struct weir_worker {
    weir_pipeline *pipeline;
    const weir_schema_source *schema_source;
    weir_pipeline_source from;
    uint32_t graph_source;
    uint32_t file_partition;
    uint64_t identity;
    weir_thread *thread;
    weir_consumer *consumer;                     /* [ingest] */
    weir_source_run *run;                        /* [ingest] */
    int64_t ticked_us;                           /* [ingest] */
    int64_t wait_us;                             /* [ingest] how long it has just waited; 0: it goes on */
    bool of_consumer;                            /* [ingest] the error in hand is the consumer's own */
    bool of_start;                               /* [ingest] … is of the store, which says where to begin, */
    bool of_damage;                              /* [ingest] … and which has damaged files                 */
    int64_t refused_us;                          /* [ingest] since when the brokers refuse; 0: they do not */
    uint32_t tries;                              /* [ingest] to open the consumer, in vain */
    uint32_t *group_ends;                        /* [ingest] one a partition: where its records end in grouped */
    uint32_t grouped[WEIR_CONSUMER_RECORDS_MAX]; /* [ingest] */

    weir_mutex mutex;                  /* LEAF; guards the fields below */
    weir_source_partition *partitions; /* grown by [ingest], which alone reads it without the mutex */
    uint32_t partition_count;
    weir_pipeline_status status;
    weir_err_kept err;       /* of the status */
    bool stuck;              /* by what weir_worker_waits waits for */
    int64_t begun_us;        /* when the pipeline was started, by the wall clock               */
    int64_t contact_us;      /* when the brokers were last heard of; by the monotonic clock    */
    int64_t contact_wall_us; /* the same by the wall clock; 0: never                           */
    uint64_t records, bytes, mutations, dead_letters, tombstones;
    uint64_t drained; /* the newest drain that it has seen through */
} weir_worker;

struct weir_pipeline {
    weir_graph *graph;
    weir_clock *clock;
    char *brokers;
    int64_t kafka_timeout_us, idle_us;
    uint64_t kafka_buffer_bytes;
    weir_letters *letters;
    weir_positions *positions;
    weir_worker *workers;
    size_t worker_count;
    bool repairs;
    char *checkpoints;         /* NULL: none  */
    int64_t keep_us, scrub_us; /* scrub_us 0: never */
    weir_thread *keeper;       /* NULL: none  */

    weir_mutex mutex;  /* LEAF; guards the fields below */
    weir_cond changed; /* any of them, or a worker's status or drained */
    uint64_t wakes;
    uint64_t drains; /* asked for */
    bool stopping;
};

/* choose.c: of an event's mutations, those that are handed over, by vertex. A put carries its name once; claim says
 * whether this is the time. Up to WEIR_MAP_MUTATIONS_MAX are chosen. */
typedef struct weir_chosen {
    uint16_t index; /* into the event's mutations  */
    bool named;     /* a put that carries its name */
} weir_chosen;
typedef bool (*weir_claim)(void *context, const weir_mutation *put);
size_t weir_choose(const weir_mapped *event, weir_claim claim, void *context, weir_chosen *chosen);
weir_mutation weir_chosen_mutation(const weir_mapped *event, weir_chosen chosen);
/* Tells the partition's later events, also after a restart, that this one was the first of its id. */
weir_mutation weir_event_note_mutation(const weir_worker *worker, uint32_t partition, const weir_mapped *event,
                                       uint64_t offset);

/* replay.c: adds to a repair what it lacks, out of the sources' logs: each call of run adds what was sealed since the
 * one before. After an error neither is of any use. counted is called now and then, with how many events were read and
 * how many are to be read in all; false: stop, with WEIR_ECLOSED.  Blocks.  WEIR_ENOTFOUND a source that can no longer
 * be read; WEIR_ETIMEOUT; what the sources, the mapping and the repair return. */
typedef struct weir_replay weir_replay;
typedef bool (*weir_replay_counted)(void *context, uint64_t read, uint64_t wanted);
weir_err weir_replay_open(weir_pipeline *pipeline, weir_graph_repair *repair, weir_replay_counted counted,
                          void *context, weir_replay **replayp);
weir_err weir_replay_run(weir_replay *replay);
void weir_replay_close(weir_replay *replay); /* NULL is allowed */

/* pipeline.c: the graph's number of the source that a letter came from, or UINT32_MAX; context: the pipeline. */
uint32_t weir_pipeline_letter_source(void *context, const char *source, size_t length, uint64_t identity);
bool weir_pipeline_stopping(weir_pipeline *pipeline); /* [any] */
/* false: the pipeline stops.  [any] */
bool weir_pipeline_sleep(weir_pipeline *pipeline, int64_t us);
/* The wait that follows one of wait_us: twice as long, at most most_us; after none, which is 0, least_us.  [any] */
int64_t weir_pipeline_longer_wait(int64_t wait_us, int64_t least_us, int64_t most_us);
/* Tells those who wait for a status or for a drain.  [any] */
void weir_pipeline_changed(weir_pipeline *pipeline);

/* keeper.c: the thread that looks after what is stored. Stop waits; without a start it does nothing. */
weir_err weir_keeper_start(weir_pipeline *pipeline);
void weir_keeper_stop(weir_pipeline *pipeline);

/* run.c: the records of one partition become batches. */
weir_err weir_source_run_open(weir_worker *worker, weir_source_run **runp);
void weir_source_run_close(weir_source_run *run);
/* Maps the records and hands over what becomes of them; after an error, what is below part->next was handed over and
 * nothing else.  [ingest] */
weir_err weir_source_run_records(weir_source_run *run, weir_source_partition *part, const weir_consumer_record *records,
                                 const uint32_t *indices, size_t count);
/* Hands over that no offset from part->next up to clear, which is above it, has a record.  [ingest] */
weir_err weir_source_run_clear(weir_source_run *run, weir_source_partition *part, uint64_t clear);

/* status.c: what others see of a source, and what the brokers say of it. */
void weir_worker_status_set(weir_worker *worker, weir_pipeline_status status, weir_err err);
/* The error, with what was taken in and not compared with the log since; each partition has a line in the log, too.
 * [ingest] */
weir_err weir_worker_doubt(weir_worker *worker, weir_err err);
/* Nothing was heard of its brokers for some seconds.  Under the worker's mutex. */
bool weir_worker_contact_is_old(const weir_worker *worker);
/* As weir_kafka_consumer_opts has it; context: a weir_worker.  [any] */
void weir_worker_told(void *context, const weir_kafka_told *partitions, size_t count, int64_t contact_us);
/* worker.c: whether to try again what failed with err. If that is something that passes (a full disk, no memory), sets
 * the status, waits a while and returns true, unless the pipeline stops. Success ends the wait.
 *     do err = try(); while (weir_worker_waits(worker, err));   [ingest] */
bool weir_worker_waits(weir_worker *worker, weir_err err);
void weir_worker_main(void *context); /* the thread of a source: a weir_worker */

#endif /* WEIR_INGEST_PIPELINE_PRIVATE_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pipeline.h - from the sources of a schema into a living graph, each event once.
 *
 *   consumer ──poll──► records ──map──► mutations ──claim names──► one batch a shard ──submit──► graph
 *                          └─ bad ones ──► dead letters, durable before the span that passes them
 *
 * One thread a source. Its consumer reads the records; its run maps them and hands over what becomes of them, span by
 * span: a span is a row of offsets of one partition, good records and bad, so that after a crash each shard knows what
 * it has. Reading begins again at the least offset that all shards have sealed.
 *
 * INVARIANTS: each is cited by an assert, or by a comment where it is kept, and by a test
 *
 *   PIPELINE-P1  Spans of a source partition follow each other without a gap, from the first one of a store on.
 *   PIPELINE-P2  A store has an event whole or as a dead letter, never both, never in part: also across crashes.
 *   PIPELINE-P3  A dead letter is durable before its offset can be sealed, and there once for each offset.
 *   PIPELINE-P4  What cannot be read is not skipped: the source stops with one sentence, the others go on.
 *
 * A source that waits for its broker, or for its topic to appear, has not failed. One that has failed stays so, with
 * the same sentence, until the pipeline is opened again.
 */
#ifndef WEIR_INGEST_PIPELINE_PIPELINE_H
#define WEIR_INGEST_PIPELINE_PIPELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/ingest/eventlog/eventlog.h>
#include <weir/store/base/clock.h>
#include <weir/store/base/err.h>
#include <weir/store/graph/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_PIPELINE_SOURCES_MAX 64u
#define WEIR_PIPELINE_FOREVER     INT64_MAX

typedef struct weir_pipeline weir_pipeline;

/* What a source is. */
typedef enum weir_pipeline_stream {
    WEIR_PIPELINE_EVENTLOG,
    WEIR_PIPELINE_KAFKA, /* the topic that the schema's source names */
    WEIR_PIPELINE_FILE   /* a message a line, JSON or CSV as the schema's source says; the last line ends it */
} weir_pipeline_stream;

/* Where one of the schema's sources comes from. A plain value; what it points to is borrowed and must outlive the
 * pipeline. */
typedef struct weir_pipeline_source {
    uint32_t source; /* as the schema numbers it */
    weir_pipeline_stream stream;
    weir_eventlog *log; /* EVENTLOG */
    const char *path;   /* FILE     */
} weir_pipeline_source;

typedef struct weir_pipeline_opts {
    weir_graph *graph;         /* borrowed; outlives the pipeline                                                */
    const char *folder;        /* of the graph's store: FOLDER/positions is kept there; borrowed for the call    */
    const char *letter_folder; /* of the event log that has the topic of dead letters; borrowed for the call     */
    const weir_pipeline_source *sources;
    size_t source_count;
    const char *brokers;         /* KAFKA; borrowed for the call       */
    int64_t kafka_timeout_us;    /* for the broker to answer; 0: 30 s  */
    uint64_t kafka_buffer_bytes; /* fetched ahead; 0: 64 MiB           */
    int64_t idle_us;             /* a partition that has been at its end for so long is idle; 0: 5 min */
    weir_clock *clock;           /* borrowed; NULL: the system's       */
    bool repairs;                /* a shard whose files are damaged is made anew from the sources */
    const char *checkpoints;     /* folder of checkpoints that this may begin from; borrowed for the call; NULL: none */
    int64_t scrub_us;            /* every file of the store is read once in so long; 0: never     */
    /* Damage is looked for once in so long. A repair begins 3 times as long after damage was first seen, which may pass
     * by itself; one that has failed is tried again after 10, 20, … 3600 times. 0: 1 s. */
    int64_t keep_us;
} weir_pipeline_opts;

/* Registers the sources with the graph, reads how far they were read and which dead letters there are. Starts nothing.
 * WEIR_EINVAL an option; WEIR_EDATA a topic was recreated, or a shard lacks records that no source has; WEIR_ENOTFOUND
 * a file is not there; WEIR_EBUSY another process has the dead letters; WEIR_ELIMIT too many sources or partitions for
 * a store, a path that is too long or a file that is too large; WEIR_ECORRUPT, WEIR_EVERSION; errors of a file;
 * WEIR_ENOMEM.  Blocks on the disk, never on a broker.  [owner] */
weir_err weir_pipeline_open(const weir_pipeline_opts *opts, weir_pipeline **pipelinep);
/* Starts a thread for each source, and one for repairs, scrubs and trims if any are asked for.  WEIR_ENOMEM,
 * WEIR_EUNAVAILABLE.  [owner] */
weir_err weir_pipeline_start(weir_pipeline *pipeline);
/* Ends each thread after the records that it has in hand, or before those for which it would have to wait, then waits
 * until all that was handed over is applied.  Blocks. May be called twice. Returns the error of the graph's drain;
 * those of sources are in their statuses.  [owner] */
weir_err weir_pipeline_stop(weir_pipeline *pipeline);
/* Stops; NULL is allowed. Close it before the graph.  [owner]   What stop returns; what weir_eventlog_close returns of
 * the dead letters. */
weir_err weir_pipeline_close(weir_pipeline *pipeline);

/* Something was appended to a log: look now instead of within a few milliseconds.  [any] */
void weir_pipeline_wake(weir_pipeline *pipeline);
/* Waits until all that was durable in the sources at the call is applied (Kafka: all that the broker has told of; a
 * file: all of it). The timeout is for the reading; that what was read is applied is waited for without one.  [any]
 * WEIR_ETIMEOUT; WEIR_ECLOSED stopped; the error of a source that has failed; those of weir_graph_drain. */
weir_err weir_pipeline_drain(weir_pipeline *pipeline, int64_t timeout_us);

/* --- how it is ------------------------------------------------------------------------------------------------- */

typedef enum weir_pipeline_status {
    WEIR_PIPELINE_STARTING,
    WEIR_PIPELINE_RUNNING,
    WEIR_PIPELINE_WAITING, /* for what can end by itself: a broker, a topic, a disk, memory; err says for what */
    WEIR_PIPELINE_ENDED,   /* a file was read to its end      */
    WEIR_PIPELINE_STOPPED,
    WEIR_PIPELINE_FAILED /* err says why */
} weir_pipeline_status;

typedef struct weir_pipeline_source_stats {
    const char *name;            /* of the schema's source; borrowed from the schema */
    weir_pipeline_status status; /* gauge                                            */
    weir_err err;                /* gauge: of the status                             */
    bool stuck;                  /* gauge: waiting for what is ours: a disk, memory  */
    uint64_t records;            /* counter: read since open                         */
    uint64_t bytes;              /* counter: of their values                         */
    uint64_t mutations;          /* counter: handed over since open                  */
    uint64_t dead_letters;       /* counter: written since open                      */
    uint64_t tombstones;         /* counter: of Kafka's, those without a value that mean nothing */
    bool connected;              /* gauge: it is read, and its end is known as of now */
    int64_t contact_age_us;      /* gauge: since its brokers told of every partition; -1: never; 0: not of Kafka */
    int64_t contact_wall_us;     /* gauge: when that was; 0: never                   */
    int64_t begun_us;            /* gauge: when the pipeline was started, by the wall clock */
    /* gauges: records that wait in transactions that are open; of the one that has stood still longest, since when, and
     * where its records begin */
    uint64_t waiting_records;
    int64_t waiting_since_us; /* by the wall clock; 0: none */
    uint64_t waiting_offset;
    uint32_t waiting_partition;
} weir_pipeline_source_stats;

typedef struct weir_pipeline_partition_stats {
    const char *source; /* of the schema; borrowed from it */
    uint32_t partition;
    uint64_t offset_read;    /* gauge: handed over below this                                   */
    uint64_t offset_applied; /* gauge: readers see all below this, piles aside (graph.h)        */
    uint64_t offset_sealed;  /* gauge: the cold store has all below this                        */
    uint64_t offset_end;     /* gauge: of the source, as it was last told: see `connected`       */
    uint64_t offset_stable;  /* gauge: from here to the end they wait in open transactions       */
    int64_t event_time_us;   /* gauge: newest event time handed over since open; 0: none        */
    int64_t lag_us;          /* gauge: the age of that event; 0: none, or applied to the end    */
} weir_pipeline_partition_stats;

/* "running"  [any] */
const char *weir_pipeline_status_name(weir_pipeline_status status);
size_t weir_pipeline_source_count(const weir_pipeline *pipeline); /* [any] */
void weir_pipeline_source_stats_get(weir_pipeline *pipeline, size_t index,
                                    weir_pipeline_source_stats *statsp); /* [any] */
/* Calls visit for each source partition until it returns an error, which is passed on.  [any] */
typedef weir_err (*weir_pipeline_partition_visit)(void *context, const weir_pipeline_partition_stats *stats);
weir_err weir_pipeline_partitions(weir_pipeline *pipeline, weir_pipeline_partition_visit visit, void *context);
/* Sets the gauges of metrics.def that speak of ingest: before they are printed.  [any] */
void weir_pipeline_gauges_set(weir_pipeline *pipeline);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_INGEST_PIPELINE_PIPELINE_H */

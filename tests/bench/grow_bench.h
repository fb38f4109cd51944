/* SPDX-License-Identifier: Apache-2.0 */
/* grow_bench.h - what the files of the grow bench share: a row of its table. */
#ifndef WEIR_GROW_BENCH_H
#define WEIR_GROW_BENCH_H

#include <weir/ingest/eventlog/eventlog.h>
#include <weir/store/base/arena.h>
#include <weir/store/base/buf.h>
#include <weir/store/graph/graph.h>

#define GROW_ROWS_MAX 64u

typedef struct grow_latency {
    double p50_us, p99_us;
} grow_latency;

/* What one step was like, and what the store is like behind it. Neither time nor bytes of the thread that makes
 * the payments, writes the log, and waits are in it. */
typedef struct grow_row {
    uint64_t records, payments;     /* sealed so far, fed so far                                                  */
    uint64_t step_records;          /* of this step                                                               */
    double feed_cpu_s, feed_wall_s; /* until all of it is sealed                                                  */
    double owed_cpu_s, owed_wall_s; /* from then on, until RocksDB has nothing left to do                         */
    double compaction_cpu_s;        /* of the threads that compacted, within both                                 */
    double so_far_cpu_s;            /* fed and owed, of all steps                             */
    uint64_t written_bytes;         /* all write calls, within both                                               */
    uint64_t compacted_bytes;       /* of them by compactions                                                     */
    uint64_t read_bytes;            /* from the disk, within both: what the page cache did not have */
    uint64_t written_so_far_bytes;  /* all write calls since the store was made                                   */
    uint64_t live_bytes;            /* of all sorted files                                                        */
    uint64_t files, level0_files;   /* level0_files: before the compactions that were owed                        */
    uint64_t resident_bytes;        /* of the process, at the end                                                 */
    uint64_t peak_bytes;            /* and at its most in this step                                               */
    grow_latency block;             /* a bare read of a block: the limit of the reads below                       */
    grow_latency first, again;      /* neighbours of vertices of any age; and of the same once more               */
    grow_latency hub;               /* neighbours of the hottest vertex, as of any moment                         */
    grow_latency features;          /* of vertices of any age                                                     */
    grow_latency newest, scores;    /* scores of the newest payments; of payments of any age, as of when they came */
    double newest_edges;            /* of the tree of a newest payment: it grows, as accounts do                  */
} grow_row;

typedef struct grow_run {
    const char *stream;
    grow_row rows[GROW_ROWS_MAX];
    size_t count;
    double records_a_payment;
} grow_run;

/* --- grow_scores.c: a network over the store ---------------------------------------------------------------------- */

typedef struct grow_scorer grow_scorer;

/* After an error the handle is there, to be closed. */
weir_err weir_grow_scorer_open(weir_graph *graph, grow_scorer **scorerp);
/* The vertex type that is scored. */
uint32_t weir_grow_scorer_target(const grow_scorer *scorer);
/* *edgesp: of the tree that was drawn for it. */
weir_err weir_grow_scorer_run(grow_scorer *scorer, weir_vertex payment, weir_arena *arena, uint32_t *edgesp);
void weir_grow_scorer_close(grow_scorer *scorer); /* NULL is allowed */

/* --- grow_reads.c: a sample of all that was fed, and how long it takes to read it --------------------------------- */

typedef struct grow_sample grow_sample;

/* reads: of each kind, in a step. */
weir_err weir_grow_sample_open(uint32_t reads, grow_sample **samplep);
/* Each payment of the stream so far is as likely to be kept as another.  For weir_bench_stream_append. */
void weir_grow_sample_offer(void *sample, const weir_record *record);
/* Sets the latencies of the row.  WEIR_EDATA: most of what was fed is not there. */
weir_err weir_grow_sample_read(grow_sample *sample, weir_graph *graph, grow_scorer *scorer, uint32_t source,
                               grow_row *row);
void weir_grow_sample_close(grow_sample *sample);
/* Of so many times, at least one, which it puts in order. */
grow_latency weir_grow_latency(double *took_us, uint32_t count);

/* --- grow_limit.c: a read without a store ------------------------------------------------------------------------ */

/* Of the sorted files in the shards' folders.  WEIR_EDATA there are none; errors of files; WEIR_ENOMEM. */
weir_err weir_grow_limit(const char *store, uint32_t shards, uint32_t reads, grow_latency *latencyp);

/* --- grow_plot.c: two panels, over the records on a logarithmic axis ---------------------------------------------- */

void weir_grow_plot(const grow_run *runs, size_t count, weir_buf *out);

#endif /* WEIR_GROW_BENCH_H */

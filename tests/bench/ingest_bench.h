/* SPDX-License-Identifier: Apache-2.0 */
/* ingest_bench.h - what the files of the ingest bench share: the payments, and the records that they become. */
#ifndef WEIR_INGEST_BENCH_H
#define WEIR_INGEST_BENCH_H

#include <weir/ingest/eventlog/eventlog.h>
#include <weir/ingest/map/map.h>
#include <weir/ingest/simulate/simulate.h>
#include <weir/store/base/buf.h>
#include <weir/store/graph/graph.h>

#include "bench.h"
#include "stream.h"

#define INGEST_SHARDS 2u

/* A stored record, as offsets into bytes: key, then value. */
typedef struct ingest_record {
    size_t at;
    uint32_t key_length, value_length;
} ingest_record;

/* What one shard stores, rising by key. */
typedef struct ingest_records {
    weir_buf bytes;
    ingest_record *of;
    size_t count, capacity;
    uint32_t *shuffled; /* places in `of`, in the order in which a stream of events would meet them: any */
} ingest_records;

typedef struct ingest_context {
    const char *folder;
    weir_bench_stream *stream; /* of the payments in the log */
    bool foreign;
    weir_schema *schema;
    weir_eventlog *log;  /* of the payments        */
    const char *brokers; /* NULL: from the log     */
    uint64_t payments;
    uint64_t files; /* that a shard's records are sealed in */
    uint64_t records;
    uint64_t budget_bytes, peak_bytes; /* of memory, in our own line: most that it grew by in any round */
    ingest_records shards[INGEST_SHARDS];
    bool ran; /* our own line, in this round: */
    uint64_t ran_round;
    weir_bench_sample ran_sample;
} ingest_context;

/* ingest_limits.c: the same records, straight into sorted files of RocksDB or of the engine, or into memtables.  */
weir_err weir_ingest_bench_sorted(void *context, uint64_t round, weir_bench_sample *samplep);
weir_err weir_ingest_bench_engine(void *context, uint64_t round, weir_bench_sample *samplep);
weir_err weir_ingest_bench_memtable(void *context, uint64_t round, weir_bench_sample *samplep);

/* ingest_kafka.c: the payments into a topic of their own; read and mapped, and nothing else; the topic's end. */
weir_err weir_ingest_bench_produce(const ingest_context *c);
weir_err weir_ingest_bench_poll(void *context, uint64_t round, weir_bench_sample *samplep);
void weir_ingest_bench_remove_topic(const ingest_context *c);

/* "FOLDER/name", a folder that is not there. */
weir_err weir_ingest_bench_fresh(const ingest_context *c, const char *name, char path[1024]);

#endif /* WEIR_INGEST_BENCH_H */

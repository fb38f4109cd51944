/* SPDX-License-Identifier: Apache-2.0 */
/*
 * consumer.h - a consumer reads the records of one source, whatever its kind: an event log, a topic of Kafka, a file.
 *
 * Opening it asks for each partition where to begin; from then on records are polled.
 *
 * THREADS: a consumer belongs to the thread that opened it.
 */
#ifndef WEIR_INGEST_PIPELINE_CONSUMER_H
#define WEIR_INGEST_PIPELINE_CONSUMER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/ingest/eventlog/eventlog.h>
#include <weir/ingest/kafka/kafka.h>
#include <weir/store/base/err.h>
#include <weir/store/schema/schema.h>

#include "positions.h"

typedef struct weir_consumer weir_consumer;

#define WEIR_CONSUMER_RECORDS_MAX 4096u /* of one poll */

/* Borrowed until the next poll. */
typedef struct weir_consumer_record {
    uint32_t partition;
    uint64_t cut; /* value is only the beginning: so many bytes more it has */
    uint64_t offset;
    int64_t time_us;
    int64_t stored_ms; /* of Kafka: see weir_kafka_record */
    const void *key;   /* NULL: none */
    size_t key_length;
    const void *value; /* NULL: none */
    size_t value_length;
} weir_consumer_record;

/* Where to begin; partition is the consumer's to set. Consumers of Kafka compare the marks, the others do not. */
typedef weir_kafka_start weir_consumer_start;

/* Called for each partition while a consumer opens; begin is the first offset that the source still has. */
typedef weir_err (*weir_consumer_start_at)(void *context, uint32_t partition, uint64_t begin,
                                           weir_consumer_start *startp);

typedef struct weir_consumer_ops {
    /* Up to WEIR_CONSUMER_RECORDS_MAX records, rising in each partition. *emptyp: there was nothing more just now.
     * Waits for a record for 50 ms at most. */
    weir_err (*poll)(weir_consumer *consumer, const weir_consumer_record **recordsp, size_t *countp, bool *emptyp);
    /* The offset of the partition's next record, as far as it is known; NULL: `told` of the options says it. */
    uint64_t (*end)(weir_consumer *consumer, uint32_t partition);
    /* All records below this offset have been handed out; it may be far above the last of them, because offsets were
     * given to what is not a record. NULL: only records have offsets that must be passed. */
    uint64_t (*clear)(weir_consumer *consumer, uint32_t partition);
    /* What a mark holds of a record, see weir_consumer_start; NULL: this kind compares nothing. */
    uint64_t (*check)(const weir_consumer_record *record);
    void (*close)(weir_consumer *consumer);
    bool ends; /* empty once is empty for ever */
} weir_consumer_ops;

struct weir_consumer {
    const weir_consumer_ops *ops;
};

weir_err weir_consumer_eventlog_open(weir_eventlog *log, weir_consumer_start_at start_at, void *context,
                                     weir_consumer **consumerp);

/* All partitions of the topic, from where opts->start_at says; it, told and stop are called with opts->context. */
weir_err weir_consumer_kafka_open(const weir_kafka_consumer_opts *opts, weir_consumer **consumerp);
/* Offsets are the numbers of lines, from 0 on; empty lines, and a first one that only names the columns, are passed
 * over. */
weir_err weir_consumer_file_open(const char *path, const weir_schema_source *source, uint32_t partition,
                                 weir_consumer_start_at start_at, void *context, weir_consumer **consumerp);
/* What a file is known by: the hash of its bytes, never 0. */
weir_err weir_consumer_file_hash(const char *path, uint64_t *hashp);

#endif /* WEIR_INGEST_PIPELINE_CONSUMER_H */

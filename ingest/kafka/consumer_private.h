/* SPDX-License-Identifier: Apache-2.0 */
/*
 * consumer_private.h - the two halves of a consumer: consumer.c reads, watch.c checks that the log is still the same.
 *
 *   main client, reads what is committed ──records──► poll ──► the caller      told ◄── watch
 *        ▲ starts, once the marks were compared                                          │ once a second
 *   watch client, reads everything ──► partitions, leaders, ends; the last records that were handed out, a second time
 */
#ifndef WEIR_INGEST_KAFKA_CONSUMER_PRIVATE_H
#define WEIR_INGEST_KAFKA_CONSUMER_PRIVATE_H

#include <weir/ingest/kafka/kafka.h>
#include <weir/store/base/thread.h>

#include "client.h"

/* One partition that is read. */
typedef struct kafka_part {
    uint32_t partition;
    int32_t leader; /* KAFKA-K6: the broker that its records come from                    [owner] */
    uint64_t next;  /* KAFKA-K3: records below are not handed out                         [owner] */
    bool started;
    bool at_end;
    bool failed; /* KAFKA-K3: nothing of it is handed out any more */
    /* guarded by the consumer's mutex */
    uint64_t handed;        /* next, as others may see it */
    weir_kafka_mark newest; /* of the last record handed out; check 0: none */
    uint64_t end;
    /* [watch], or the owner before that runs */
    weir_kafka_mark anchors[WEIR_KAFKA_MARKS_MAX]; /* known to be of this log, newest first */
    uint32_t anchor_count;
    uint64_t verified;
    uint64_t looked; /* handed at the last look */
} kafka_part;

struct weir_kafka_consumer {
    weir_kafka_client *client;
    weir_kafka_client *watch_client;
    rd_kafka_queue_t *queue;
    kafka_part *parts;
    size_t part_count;
    size_t parts_at_end;
    uint32_t *part_of; /* index into parts by partition, or UINT32_MAX: it is not read */
    uint32_t partition_count;
    unsigned connects;             /* KAFKA-K6: of the client, when the marks were compared */
    rd_kafka_message_t **messages; /* WEIR_KAFKA_BATCH_MAX of them: of the last poll, not yet given back */
    size_t message_count;
    weir_err_kept failure; /* what every call says from now on */
    void (*told)(void *context, const weir_kafka_told *parts, size_t count, int64_t contact_us);
    void *context;
    weir_thread *thread;
    /* [watch], or the owner before that runs */
    uint64_t *begins, *ends, *stables; /* by partition */
    int32_t *leaders;
    weir_kafka_told *news;   /* one a part, as the next two */
    weir_kafka_mark *newest; /* as they were when the look began */
    uint64_t *handed;
    bool missing;              /* the topic was not there */
    uint32_t odd_rounds, turn; /* rounds that found fewer partitions, none, or an early end; the next idle part */

    weir_mutex mutex; /* LEAF; guards the fields below, and some of each part */
    weir_cond stopped;
    bool stopping;
    weir_err_kept verdict; /* of the watch: the next poll fails with it */
};

/* What one record is read again for. */
typedef struct weir_kafka_probe {
    uint32_t partition;
    weir_kafka_mark mark; /* the record before mark.offset is asked for */
    enum { WEIR_KAFKA_PROBE_OPEN, WEIR_KAFKA_PROBE_SAME, WEIR_KAFKA_PROBE_OTHER, WEIR_KAFKA_PROBE_GONE } result;
} weir_kafka_probe;

#define WEIR_KAFKA_PROBES_MAX 64u

/* probe.c: reads the records of up to WEIR_KAFKA_PROBES_MAX partitions, each once. GONE: there is none at the offset
 * any more, by retention, compaction, or because the log ends before it; or its CRC is wrong.  WEIR_EUNAVAILABLE some
 * had no answer. */
weir_err weir_kafka_probe_all(weir_kafka_client *client, weir_kafka_probe *probes, size_t count, int64_t timeout_us);

/* consumer.c: the record of a message that has no error. */
weir_kafka_record weir_kafka_record_of(const rd_kafka_message_t *message);

/* watch.c */
weir_err weir_kafka_watch_open(weir_kafka_consumer *consumer, const weir_kafka_consumer_opts *from);
/* Partitions, leaders, begins and ends, as of now.  [owner], before the thread is started. */
weir_err weir_kafka_watch_first(weir_kafka_consumer *consumer);
/* Compares the marks of the starts (KAFKA-K6) and makes them the parts' anchors. */
weir_err weir_kafka_watch_compare(weir_kafka_consumer *consumer, const weir_kafka_start *starts);
weir_err weir_kafka_watch_start(weir_kafka_consumer *consumer);
void weir_kafka_watch_close(weir_kafka_consumer *consumer);
/* The sentence of a mark that differs. */
weir_err weir_kafka_other_log(const weir_kafka_consumer *consumer, uint32_t partition, const weir_kafka_mark *mark);
/* Asks for the ends once more, some times: what ends before it was read may be a broker's stale word. */
weir_err weir_kafka_watch_ends_again(weir_kafka_consumer *consumer, uint32_t partition, uint64_t offset);

/* consumer.c: the sentences of an offset that is not there. */
weir_err weir_kafka_offset_error(const weir_kafka_client *client, uint32_t partition, uint64_t offset, uint64_t begin,
                                 uint64_t end);

#endif /* WEIR_INGEST_KAFKA_CONSUMER_PRIVATE_H */

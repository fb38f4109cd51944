/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kafka.h - the Kafka client as Weir uses it; the only module that includes librdkafka.
 *
 * Producers are idempotent with acks=all. Consumers start each partition at an offset that the caller keeps, without a
 * group, check CRCs, and treat an offset that retention has run past as an error.
 *
 * INVARIANTS
 *   KAFKA-K1  A producer sends no record of a partition after it gave up an earlier one, or before the broker has said
 *             what became of it. So what the broker has of a partition is a prefix of what was produced, each record
 *             once.
 *   KAFKA-K2  A record counts as acknowledged only when every in-sync replica has it.
 *   KAFKA-K3  A consumer hands out the records of a partition in rising offsets, each once, and none after a record
 *             that it could not read.
 *   KAFKA-K4  A consumer begins exactly where it was told, or fails: it never resets an offset by itself.
 *   KAFKA-K5  Neither creates a topic unless it was asked to, whatever the broker's own setting.
 *   KAFKA-K6  What a consumer hands out comes over the connections, and from the leaders, that it had when it compared
 *             the records before it with its marks; over others it hands out nothing before it was opened again.
 *
 * TIME: a record's time, in microseconds, comes back as it was given, if the topic's message.timestamp.type is
 * CreateTime. Kafka's own timestamp holds it when it is in whole milliseconds, of the last twelve hours and at most a
 * minute ahead; otherwise that is the time of sending, and the text of the header "weir.time" holds it: a broker
 * forgets the sequence numbers of a producer whose timestamps are older than a day, and then stores what is sent again
 * twice.
 */
#ifndef WEIR_INGEST_KAFKA_KAFKA_H
#define WEIR_INGEST_KAFKA_KAFKA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/store/base/err.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_KAFKA_TOPIC_MAX      249u      /* letters, digits, '.', '_', '-'            */
#define WEIR_KAFKA_PARTITIONS_MAX 4096u     /* of a topic                                */
#define WEIR_KAFKA_BATCH_MAX      16384u    /* records that one poll hands out           */
#define WEIR_KAFKA_TIMEOUT_MIN_US 100000    /* 100 ms                                    */
#define WEIR_KAFKA_NO_TIME        INT64_MIN /* a record that was stored without its time */

typedef struct weir_kafka_producer weir_kafka_producer;
typedef struct weir_kafka_consumer weir_kafka_consumer;

/* --- what is there --------------------------------------------------------------------------------------------- */

/* The broker's word at the time of the call. Kafka's topic id cannot be had through librdkafka 2.0, so a topic that was
 * deleted and created again is found out by its records: see weir_kafka_start. */
typedef struct weir_kafka_partition_stats {
    uint64_t offset_begin; /* gauge: first record that is still there */
    uint64_t offset_end;   /* gauge: next offset to be given          */
} weir_kafka_partition_stats;

/* Sets *countp to the number of partitions and fills the first `capacity` of them (0 asks for the number only).
 * Blocks: for timeout_us at most to find the topic, and again for each partition's offsets.  [any]
 * WEIR_EUNAVAILABLE, as where no broker answered; WEIR_ENOTFOUND no such topic; WEIR_EPERM; WEIR_ELIMIT more than
 * WEIR_KAFKA_PARTITIONS_MAX; WEIR_ECORRUPT an answer that cannot be read; WEIR_EINVAL; WEIR_ENOMEM. */
weir_err weir_kafka_topic_stats_get(const char *brokers, const char *topic, int64_t timeout_us,
                                    weir_kafka_partition_stats *partitions, size_t capacity, size_t *countp);

/* --- producer -------------------------------------------------------------------------------------------------- */

typedef struct weir_kafka_producer_opts {
    const char *brokers; /* "host:port,host:port"; borrowed for the call                                       */
    const char *topic;   /* borrowed for the call                                                              */
    uint32_t partitions; /* creates the topic with so many if it is not there; 0: must exist                   */
    int64_t timeout_us;  /* for the broker to answer, and for the records that wait to go on being acknowledged */
} weir_kafka_producer_opts;

/* Waits until the broker has told about the topic. A topic that it creates keeps all its records, however old and
 * however many, whatever the broker's own limits are: a log that forgets cannot be replayed.  Blocks.  [owner]
 * WEIR_EUNAVAILABLE, as where no broker answered: that sentence names the address and says how to start one;
 * WEIR_ENOTFOUND no such topic; WEIR_EPERM; WEIR_ELIMIT the topic has more than WEIR_KAFKA_PARTITIONS_MAX partitions;
 * WEIR_ECORRUPT an answer that cannot be read; WEIR_EINVAL; WEIR_ENOMEM. */
weir_err weir_kafka_producer_open(const weir_kafka_producer_opts *opts, weir_kafka_producer **producerp);
/* Hands a copy over; the key chooses the partition as Java clients choose it, no key takes any. Blocks while the
 * client's queue is full.  [owner]
 * WEIR_ELIMIT key, value and 160 bytes for the rest of a record are more than the topic's max.message.bytes, or than
 * Kafka's default for it where the broker does not tell: without effect. WEIR_ETIMEOUT, WEIR_EUNAVAILABLE, WEIR_EPERM,
 * WEIR_ENOTFOUND, WEIR_EINVAL, WEIR_ECORRUPT, and WEIR_ELIMIT of the broker: this or an earlier record was refused, or
 * none was acknowledged for timeout_us; from then on every call fails, and what was not acknowledged may or may not be
 * there (KAFKA-K1). */
weir_err weir_kafka_produce(weir_kafka_producer *producer, int64_t time_us, const void *key, size_t key_length,
                            const void *value, size_t value_length);
/* Returns when all are acknowledged; *acknowledgedp counts them since open, on failure too.  Blocks.  [owner]
 * WEIR_ETIMEOUT, WEIR_EUNAVAILABLE, WEIR_EPERM, WEIR_ENOTFOUND, WEIR_EINVAL, WEIR_ECORRUPT, WEIR_ELIMIT: the sentence
 * says how many were not. */
weir_err weir_kafka_flush(weir_kafka_producer *producer, uint64_t *acknowledgedp);
/* What was not flushed may be lost; NULL is allowed.  [owner] */
void weir_kafka_producer_close(weir_kafka_producer *producer);

/* --- consumer -------------------------------------------------------------------------------------------------- */

/* A plain value. Borrowed bytes. */
typedef struct weir_kafka_record {
    uint64_t offset;
    int64_t time_us;   /* or WEIR_KAFKA_NO_TIME                                                            */
    int64_t stored_ms; /* Kafka's own timestamp, whatever the record says of its time; WEIR_KAFKA_NO_TIME: none */
    uint32_t partition;
    const void *key; /* NULL: no key */
    size_t key_length;
    const void *value; /* NULL: no value, Kafka's mark of a deleted key */
    size_t value_length;
} weir_kafka_record;

/* What a log is known by: `check` is weir_kafka_record_check of the record before `offset`. */
typedef struct weir_kafka_mark {
    uint64_t offset, check;
} weir_kafka_mark;

#define WEIR_KAFKA_MARKS_MAX 6u

/* Where to begin in one partition: a plain value. The marks, newest first and none above `offset`, are compared with
 * what the broker has there, so that a topic that was created again, or that lost its newest records in an unclean
 * election and grew past offset since, is an error instead of silently other events. A record may be gone for a good
 * reason, by retention or compaction: then the next older mark is compared. Marks above `known` may be of another log
 * themselves, if that came in the last second; one at or below it is compared, too. */
typedef struct weir_kafka_start {
    uint64_t offset;
    uint64_t known;
    uint32_t partition;
    uint32_t mark_count;
    weir_kafka_mark marks[WEIR_KAFKA_MARKS_MAX];
} weir_kafka_start;

/* Never 0; of the key, the value and both times.  [any] */
uint64_t weir_kafka_record_check(const weir_kafka_record *record);

/* What the brokers have said of one partition. Offsets from `stable` to `end` are in transactions that are open, or of
 * records that are not replicated yet. What is below `verified` is known to be of the log that the brokers have now,
 * unless no record is left that it could be known by. */
typedef struct weir_kafka_told {
    uint32_t partition;
    uint64_t end, stable, verified;
} weir_kafka_told;

typedef struct weir_kafka_consumer_opts {
    const char *brokers;            /* borrowed for the call                                        */
    const char *topic;              /* borrowed for the call                                        */
    const weir_kafka_start *starts; /* one for each partition to read, or NULL: all, as start_at says; borrowed for
                                       the call */
    size_t start_count;
    /* Asked in open for each partition, 0 first; begin: the first offset that is still there. */
    weir_err (*start_at)(void *context, uint32_t partition, uint64_t begin, weir_kafka_start *startp);
    /* Called in open, then by the watch's thread about once a second, when all partitions were heard of; contact_us is
     * of the monotonic clock. NULL: not told.  [any] */
    void (*told)(void *context, const weir_kafka_told *parts, size_t count, int64_t contact_us);
    /* Asked while partitions and ends are awaited, not while leaders are asked for or marks are compared: true gives
     * up, open with WEIR_ECANCELLED. NULL: never.  [any] */
    bool (*stop)(void *context);
    void *context;
    uint64_t buffer_bytes; /* fetched ahead of poll; 0: 64 MiB; from 1 MiB to 1 GiB        */
    int64_t timeout_us;    /* for the broker to answer                                     */
} weir_kafka_consumer_opts;

/* Checks each start against what the broker has, and starts the thread that watches the topic.  Blocks.  [owner]
 * WEIR_ECANCELLED; WEIR_EUNAVAILABLE, as where no broker answered; WEIR_ENOTFOUND no such topic or partition, which may
 * come; WEIR_EDATA its offset is gone: the sentence names the earliest; WEIR_ECORRUPT the partition ends before the
 * offset, or a mark differs: it is not the log that was read before; or an answer cannot be read; WEIR_EPERM;
 * WEIR_EINVAL no start, a partition twice, a bad option; WEIR_ELIMIT more than WEIR_KAFKA_PARTITIONS_MAX partitions;
 * WEIR_ENOMEM; what start_at returns. */
weir_err weir_kafka_consumer_open(const weir_kafka_consumer_opts *opts, weir_kafka_consumer **consumerp);
/* Waits up to wait_us for records, then hands out what is there, at most `capacity` and WEIR_KAFKA_BATCH_MAX; none is
 * success, and may come earlier than wait_us when a partition's end was reached. Their bytes are borrowed until the
 * next call on the consumer. An error at a record comes when what this call had read was handed out; that of a new
 * connection, or of the watch, at once: what was fetched ahead is not handed out. From then on every call says so: open
 * again where you are.  Blocks.  [owner]
 * WEIR_ECLOSED the connection or a leader is another one (KAFKA-K6), there are more partitions, the log ends before
 * what was read of it, or the watch gets no answers: open again, which goes on or says why not; WEIR_ENOTFOUND the
 * topic was deleted; WEIR_EDATA retention has run past the offset; WEIR_ECORRUPT a CRC is wrong, a mark differs, or
 * there are fewer partitions: what is not below `verified` is in doubt; WEIR_EORDER the broker sent an offset that was
 * handed out before: open again; WEIR_EPERM; WEIR_EUNAVAILABLE; WEIR_EINVAL capacity 0. */
weir_err weir_kafka_consumer_poll(weir_kafka_consumer *consumer, int64_t wait_us, weir_kafka_record *records,
                                  size_t capacity, size_t *countp);
/* True when each partition's end, as the broker last told it, has been handed out; records of open transactions are
 * above that end.  [owner] */
bool weir_kafka_consumer_at_end(const weir_kafka_consumer *consumer);

typedef struct weir_kafka_position_stats {
    uint64_t offset_next; /* gauge: the next record handed out has this offset or a higher one          */
    uint64_t offset_end;  /* gauge: as the broker last told it, records of open transactions included   */
} weir_kafka_position_stats;

/* WEIR_EINVAL a partition that is not read.  [owner] */
weir_err weir_kafka_consumer_position(weir_kafka_consumer *consumer, uint32_t partition,
                                      weir_kafka_position_stats *statsp);
/* Commits nothing; NULL is allowed.  [owner] */
void weir_kafka_consumer_close(weir_kafka_consumer *consumer);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_INGEST_KAFKA_KAFKA_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client.h - what producer and consumer share: a librdkafka handle with our settings, its log lines and errors as ours,
 * and the questions asked of a topic before it is used.
 *
 * THREADS: every function is [owner]; where it says [any], another thread of the same owner may call it too.
 * librdkafka's own threads come in only to write log lines and to connect.
 */
#ifndef WEIR_INGEST_KAFKA_CLIENT_H
#define WEIR_INGEST_KAFKA_CLIENT_H

#include <librdkafka/rdkafka.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/store/base/err.h>
#include <weir/store/base/thread.h>

#define WEIR_KAFKA_FAULT_MAX   256u
#define WEIR_KAFKA_TIME_HEADER "weir.time" /* holds a record's time in microseconds, as decimal text */
#define WEIR_KAFKA_TIME_MAX    24u

/* What the last broken connection said: the reason in "no broker answered". */
struct weir_kafka_fault {
    weir_mutex mutex; /* LEAF */
    char text[WEIR_KAFKA_FAULT_MAX];
};

typedef struct weir_kafka_client {
    rd_kafka_t *rk;
    rd_kafka_topic_t *rkt;
    char *brokers;
    char *topic;
    int64_t timeout_us;
    int32_t leader;              /* a broker that leads a partition of the topic; -1 until asked */
    void *owner;                 /* the producer, for its delivery reports              */
    bool (*stop)(void *context); /* asked while the owner waits; NULL: never */
    void *context;
    atomic_uint connects; /* connections that were begun: a new one may lead to another log  [any] */
    struct weir_kafka_fault *fault;
} weir_kafka_client;

typedef struct weir_kafka_setting {
    const char *name;
    const char *value;
} weir_kafka_setting;

typedef struct weir_kafka_client_opts {
    rd_kafka_type_t type;
    const char *brokers;
    const char *topic;
    int64_t timeout_us;
    const weir_kafka_setting *settings; /* in addition to those of every client; may be NULL when there are none */
    size_t setting_count;
    void (*delivered)(rd_kafka_t *rk, const rd_kafka_message_t *message, void *client); /* producers; or NULL */
    void *owner;
    bool (*stop)(void *context); /* or NULL */
    void *context;
} weir_kafka_client_opts;

/* Checks brokers, topic and timeout_us, and starts the client; asks no broker.
 * WEIR_EINVAL; WEIR_EUNAVAILABLE the system refuses threads; WEIR_ENOMEM. */
weir_err weir_kafka_client_open(const weir_kafka_client_opts *opts, weir_kafka_client **clientp);
/* Drops what is queued; NULL is allowed. May block for about a second. */
void weir_kafka_client_close(weir_kafka_client *client);

/* How many partitions the topic has. Waits until each has a leader; while `created`, for the topic to appear as well.
 * WEIR_ECANCELLED, WEIR_EUNAVAILABLE, WEIR_ENOTFOUND, WEIR_EPERM, WEIR_ELIMIT. */
weir_err weir_kafka_client_topic(weir_kafka_client *client, bool created, uint32_t *partitionsp);
/* Creates it, or finds that it was created meanwhile.  WEIR_EUNAVAILABLE, WEIR_EPERM, WEIR_EINVAL. */
weir_err weir_kafka_client_create_topic(weir_kafka_client *client, uint32_t partitions);
/* The topic's max.message.bytes; Kafka's default when the broker does not say. */
uint64_t weir_kafka_client_record_max(weir_kafka_client *client);
/* First and next offset of one partition.  WEIR_EUNAVAILABLE, WEIR_ENOTFOUND, WEIR_EPERM. */
weir_err weir_kafka_client_offsets(weir_kafka_client *client, uint32_t partition, uint64_t *beginp, uint64_t *endp);
/* The first offsets (RD_KAFKA_OFFSET_BEGINNING) or the next ones (RD_KAFKA_OFFSET_END; of what is committed, for a
 * client that reads only that) of partitions 0 to count - 1: one request a leader.  [any]
 * WEIR_ECANCELLED, WEIR_EUNAVAILABLE, WEIR_ENOTFOUND, WEIR_EPERM. */
weir_err weir_kafka_client_ends(weir_kafka_client *client, uint32_t count, int64_t which, int64_t timeout_us,
                                uint64_t *offsets);
/* How many partitions, and the broker that leads each of the first `capacity`. Asks once.  [any]
 * WEIR_EUNAVAILABLE no answer, or a partition without a leader; WEIR_ENOTFOUND, WEIR_EPERM, WEIR_ELIMIT. */
weir_err weir_kafka_client_leaders(weir_kafka_client *client, int64_t timeout_us, int32_t *leaders, uint32_t capacity,
                                   uint32_t *countp);

weir_code weir_kafka_code(rd_kafka_resp_err_t error);
/* The error as ours; `doing` stands before the topic's name: "report the offsets of".  [any] */
weir_err weir_kafka_error(const weir_kafka_client *client, rd_kafka_resp_err_t error, const char *doing);

/* The value of the time header; returns its length. */
size_t weir_kafka_time_write(int64_t time_us, char text[WEIR_KAFKA_TIME_MAX]);
/* False when it is not a decimal whole number of 64 bits. */
bool weir_kafka_time_read(const void *text, size_t length, int64_t *time_usp);

/* ": REASON", or nothing, into text of this size.  [any] */
void weir_kafka_fault_text(const weir_kafka_client *client, char *text, size_t size);

/* In milliseconds, rounded up, from 0 to an hour. */
int weir_kafka_wait_ms(int64_t wait_us);

#endif /* WEIR_INGEST_KAFKA_CLIENT_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kafka.h - the Kafka client as Weir uses it; the only module that includes librdkafka.
 *
 * Producers are idempotent with acks=all. Consumers are assigned statically from offsets that the caller keeps
 * (assign, never subscribe), check CRCs, and treat an offset that retention has run past as an error.
 */
#ifndef WEIR_INGEST_KAFKA_H
#define WEIR_INGEST_KAFKA_H

#include <stddef.h>
#include <stdint.h>

#include <weir/base/err.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_kafka_producer weir_kafka_producer;

typedef struct weir_kafka_producer_opts {
    const char *brokers; /* "host:port,host:port"; borrowed for the call                      */
    const char *topic;   /* borrowed for the call                                             */
    uint32_t partitions; /* creates the topic with so many if it is not there; 0: must exist  */
    int64_t timeout_us;  /* for the broker to answer and for a record to be acknowledged      */
} weir_kafka_producer_opts;

/* Waits until the broker has told about the topic.  Blocks.  [owner]
 * WEIR_EUNAVAILABLE no broker answered: the sentence names the address and says how to start one; WEIR_ENOTFOUND no
 * such topic; WEIR_EINVAL; WEIR_ENOMEM. */
weir_err weir_kafka_producer_open(const weir_kafka_producer_opts *opts, weir_kafka_producer **producerp);
/* Hands a copy over; the key chooses the partition. Blocks while the client's queue is full.  [owner]
 * WEIR_ELIMIT larger than the broker takes; WEIR_ETIMEOUT; WEIR_EUNAVAILABLE an earlier record was refused. */
weir_err weir_kafka_produce(weir_kafka_producer *producer, int64_t time_us, const void *key, size_t key_length,
                            const void *value, size_t value_length);
/* Returns when all are acknowledged.  Blocks.  [owner]   WEIR_ETIMEOUT, WEIR_EUNAVAILABLE: the sentence says how many were not. */
weir_err weir_kafka_flush(weir_kafka_producer *producer, uint64_t *acknowledgedp);
/* What was not flushed may be lost; NULL is allowed.  [owner] */
void weir_kafka_producer_close(weir_kafka_producer *producer);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_INGEST_KAFKA_H */

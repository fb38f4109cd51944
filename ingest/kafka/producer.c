/* SPDX-License-Identifier: Apache-2.0 */
/*
 * producer.c - records into one topic, in order, each once, counted when acknowledged.
 *
 * librdkafka would drop a record that waited too long and send the next one: a broker that comes back in between then
 * has a log with a hole, and an event's later twin is applied without it. So records are given no time limit of their
 * own (message.timeout.ms=0); the limit is ours, on the time without any acknowledgement, and giving up means giving up
 * on all that is not acknowledged (KAFKA-K1).
 *
 * One request is on its way at a time. A partition that is not ready yet refuses a request, and takes the next one if
 * it has become ready in between: it knows nothing of this producer, so that any sequence number will do. The broker
 * then refuses the first one for good, and librdkafka takes its records for stored, because later ones are
 * (KAFKA-15591).
 *
 * A broker forgets an idempotent producer whose newest record carries a timestamp older than producer.id.expiration.ms,
 * a day by default: at its next check, every ten minutes, or at once when it restarts. What is sent again after that is
 * stored twice. Events may be years old: where a time is not of these hours, the record's own timestamp is the time of
 * sending, and the event's goes in a header. A header costs librdkafka about as much as the rest of a record does, so
 * that events as they happen do without.
 */
#include <inttypes.h>
#include <stdio.h>

#include <weir/ingest/kafka/kafka.h>
#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/clock.h>
#include <weir/store/base/metrics.h>

#include "client.h"

#define BATCH_BYTES_MAX    1000000u /* of one request for one partition                                           */
#define BATCH_BYTES_MIN    1000u    /* librdkafka takes no less                                                   */
#define RECORD_OVERHEAD    160u     /* of one record alone in its batch: 61 of header, up to 70 of lengths and time */
#define QUEUE_RECORDS      "100000"
#define QUEUE_KBYTES       "65536"
#define REQUEST_WAIT_MAX   30000 /* ms until a request that was not answered is sent again                        */
#define STAMP_AGE_MAX_US   (12ll * 3600 * WEIR_US_PER_S) /* half of producer.id.expiration.ms */
#define STAMP_AHEAD_MAX_US (60 * WEIR_US_PER_S)          /* Kafka 4 refuses an hour, by default */
#define POLL_EVERY         64u     /* records between two looks at the acknowledgements                            */
#define POLL_EVERY_US      10000   /* or so long, for callers that are slower                                      */
#define FULL_WAIT_MS       10      /* a look at a full queue                                                       */
#define FLUSH_WAIT_MS      100     /* a look while flushing                                                        */
#define FAILED_WAIT_US     1000000 /* for what was dropped to be reported so                                       */

struct weir_kafka_producer {
    weir_kafka_client *client;
    uint64_t record_max; /* bytes of key and value */
    uint64_t produced;
    uint64_t acknowledged; /* KAFKA-K2 */
    uint64_t refused;
    uint64_t counted_acknowledged; /* already in the metrics */
    uint64_t counted_refused;
    uint64_t unpolled; /* records since the last poll */
    int64_t polled_us;
    int64_t progress_us;   /* when a record was last acknowledged, or began to wait with none before it */
    weir_err_kept failure; /* what every call says from now on */
    bool closing;
};

/* --- failing: once, for good ------------------------------------------------------------------------------------- */

static void kafka_producer_fail(weir_kafka_producer *producer, weir_err err) {
    if (producer->failure.err) return;
    weir_err_kept_set(&producer->failure, err);
    // KAFKA-K1: nothing that waits may be sent any more.
    rd_kafka_purge(producer->client->rk,
                   RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT | RD_KAFKA_PURGE_F_NON_BLOCKING);
}

/* A delivery report: within rd_kafka_poll, so on the owner's thread. */
static void kafka_producer_delivered(rd_kafka_t *rk, const rd_kafka_message_t *message, void *context) {
    weir_kafka_client *client = context;
    weir_kafka_producer *producer = client->owner;
    if (!message->err) {
        producer->acknowledged++;
        return;
    }
    producer->refused++;
    if (producer->failure.err || producer->closing) return;
    char text[WEIR_KAFKA_FAULT_MAX];
    rd_kafka_resp_err_t error = message->err;
    // A fatal error of the client ends every record with "fatal"; the reason is asked for.
    if (error == RD_KAFKA_RESP_ERR__FATAL) error = rd_kafka_fatal_error(rk, text, sizeof text);
    kafka_producer_fail(producer,
                        WEIR_ERR(weir_kafka_code(error), "topic '%s' partition %" PRId32 ": Kafka refused a record: %s",
                                 client->topic, message->partition, rd_kafka_err2str(error)));
}

/* Looks at acknowledgements for up to wait_ms; fails the producer when too long there were none. */
static void kafka_producer_poll(weir_kafka_producer *producer, int wait_ms) {
    const uint64_t before = producer->acknowledged;
    rd_kafka_poll(producer->client->rk, wait_ms);
    producer->unpolled = 0;
    producer->polled_us = weir_clock_mono_us(weir_clock_system());
    WEIR_ASSERT(producer->acknowledged + producer->refused <= producer->produced);
    uint64_t waiting = producer->produced - producer->acknowledged - producer->refused;
    if (producer->acknowledged > before || waiting == 0) producer->progress_us = producer->polled_us;
    weir_metric_add(WEIR_METRIC_KAFKA_PRODUCED_RECORDS, producer->acknowledged - producer->counted_acknowledged);
    weir_metric_add(WEIR_METRIC_KAFKA_PRODUCE_ERRORS, producer->refused - producer->counted_refused);
    producer->counted_acknowledged = producer->acknowledged;
    producer->counted_refused = producer->refused;
    const weir_kafka_client *client = producer->client;
    if (producer->polled_us - producer->progress_us > client->timeout_us) {
        char fault[WEIR_KAFKA_FAULT_MAX + 2];
        weir_kafka_fault_text(client, fault, sizeof fault);
        kafka_producer_fail(producer, WEIR_ERR(WEIR_ETIMEOUT,
                                               "topic '%s' at %.128s: no record was acknowledged for %" PRId64
                                               " ms%s; see the broker's log",
                                               client->topic, client->brokers, client->timeout_us / 1000, fault));
    }
}

/* --- opening ---------------------------------------------------------------------------------------------------- */

/* The size limits of the producing client follow the topic's, so another client asks for them first. */
static weir_err kafka_producer_ask_topic(const weir_kafka_producer_opts *opts, uint64_t *record_maxp) {
    const weir_kafka_client_opts client_opts = {
        .type = RD_KAFKA_PRODUCER, .brokers = opts->brokers, .topic = opts->topic, .timeout_us = opts->timeout_us};
    weir_kafka_client *client;
    weir_err err = weir_kafka_client_open(&client_opts, &client);
    if (err) return err;
    uint32_t partitions = 0;
    err = weir_kafka_client_topic(client, false, &partitions);
    if (weir_err_is(err, WEIR_ENOTFOUND) && opts->partitions > 0) {
        err = weir_kafka_client_create_topic(client, opts->partitions);
        if (!err) err = weir_kafka_client_topic(client, true, &partitions);
    }
    if (!err) *record_maxp = weir_kafka_client_record_max(client);
    weir_kafka_client_close(client);
    return err;
}

static weir_err kafka_producer_open_client(weir_kafka_producer *producer, const weir_kafka_producer_opts *opts) {
    char message_max[24], batch_max[24], request_ms[24];
    uint64_t record_max = producer->record_max;
    snprintf(message_max, sizeof message_max, "%" PRIu64, record_max < BATCH_BYTES_MAX ? BATCH_BYTES_MAX : record_max);
    // One byte too many in a batch and the broker refuses it whole.
    uint64_t batch_bytes = record_max < BATCH_BYTES_MAX ? record_max : BATCH_BYTES_MAX;
    snprintf(batch_max, sizeof batch_max, "%" PRIu64, batch_bytes < BATCH_BYTES_MIN ? BATCH_BYTES_MIN : batch_bytes);
    int64_t timeout_ms = opts->timeout_us / 1000;
    snprintf(request_ms, sizeof request_ms, "%" PRId64, timeout_ms < REQUEST_WAIT_MAX ? timeout_ms : REQUEST_WAIT_MAX);
    const weir_kafka_setting settings[] = {
        {"enable.idempotence", "true"},
        {"acks", "all"},                      // KAFKA-K2
        {"enable.gapless.guarantee", "true"}, // KAFKA-K1
        {"max.in.flight", "1"},               // KAFKA-K1
        {"message.timeout.ms", "0"},          // KAFKA-K1
        {"partitioner", "murmur2_random"},    // as Java clients
        {"queue.buffering.max.messages", QUEUE_RECORDS},
        {"queue.buffering.max.kbytes", QUEUE_KBYTES},
        {"message.max.bytes", message_max},
        {"batch.size", batch_max},
        {"request.timeout.ms", request_ms},
    };
    const weir_kafka_client_opts client_opts = {
        .type = RD_KAFKA_PRODUCER,
        .brokers = opts->brokers,
        .topic = opts->topic,
        .timeout_us = opts->timeout_us,
        .settings = settings,
        .setting_count = sizeof settings / sizeof settings[0],
        .delivered = kafka_producer_delivered,
        .owner = producer,
    };
    weir_err err = weir_kafka_client_open(&client_opts, &producer->client);
    if (err) return err;
    uint32_t partitions;
    return weir_kafka_client_topic(producer->client, false, &partitions);
}

weir_err weir_kafka_producer_open(const weir_kafka_producer_opts *opts, weir_kafka_producer **producerp) {
    *producerp = NULL;
    if (opts->partitions > WEIR_KAFKA_PARTITIONS_MAX) {
        return WEIR_ERR(WEIR_EINVAL, "%" PRIu32 " partitions are asked for; a topic may have %u", opts->partitions,
                        WEIR_KAFKA_PARTITIONS_MAX);
    }
    uint64_t record_max = 0;
    weir_err err = kafka_producer_ask_topic(opts, &record_max);
    if (err) return err;
    weir_kafka_producer *producer = weir_calloc(1, sizeof *producer);
    if (!producer) return WEIR_NOMEM("for a Kafka producer");
    producer->record_max = record_max;
    err = kafka_producer_open_client(producer, opts);
    if (err) {
        weir_kafka_producer_close(producer);
        return err;
    }
    producer->polled_us = producer->progress_us = weir_clock_mono_us(weir_clock_system());
    *producerp = producer;
    return WEIR_OK;
}

/* --- producing -------------------------------------------------------------------------------------------------- */

/* A copy of the record goes into the client's queue. */
static rd_kafka_resp_err_t kafka_producer_enqueue(weir_kafka_producer *producer, int64_t time_us, const void *key,
                                                  size_t key_length, const void *value, size_t value_length) {
    char time[WEIR_KAFKA_TIME_MAX];
    // Kafka's own timestamp holds the time if it can: exactly, and without the broker taking us for long gone.
    const int64_t now_us = weir_clock_wall_us(weir_clock_system());
    const bool stamped =
        time_us % 1000 == 0 && time_us >= now_us - STAMP_AGE_MAX_US && time_us <= now_us + STAMP_AHEAD_MAX_US;
    const size_t time_length = stamped ? 0 : weir_kafka_time_write(time_us, time);
    // The interface has no const; RD_KAFKA_MSG_F_COPY promises that the bytes are only read.
    const rd_kafka_vu_t parts[] = {
        {.vtype = RD_KAFKA_VTYPE_RKT, .u.rkt = producer->client->rkt},
        {.vtype = RD_KAFKA_VTYPE_MSGFLAGS, .u.i = RD_KAFKA_MSG_F_COPY},
        {.vtype = RD_KAFKA_VTYPE_KEY, .u.mem = {.ptr = (void *)(uintptr_t)key, .size = key_length}},
        {.vtype = RD_KAFKA_VTYPE_VALUE, .u.mem = {.ptr = (void *)(uintptr_t)value, .size = value_length}},
        {.vtype = RD_KAFKA_VTYPE_TIMESTAMP, .u.i64 = stamped ? time_us / 1000 : 0}, // 0: now
        {.vtype = RD_KAFKA_VTYPE_HEADER,
         .u.header = {.name = WEIR_KAFKA_TIME_HEADER, .val = time, .size = (ssize_t)time_length}},
    };
    const size_t count = sizeof parts / sizeof parts[0] - (stamped ? 1 : 0);
    rd_kafka_error_t *error = rd_kafka_produceva(producer->client->rk, parts, count);
    if (!error) return RD_KAFKA_RESP_ERR_NO_ERROR;
    rd_kafka_resp_err_t code = rd_kafka_error_code(error);
    rd_kafka_error_destroy(error);
    return code;
}

weir_err weir_kafka_produce(weir_kafka_producer *producer, int64_t time_us, const void *key, size_t key_length,
                            const void *value, size_t value_length) {
    const uint64_t max = producer->record_max;
    if (key_length > max || value_length > max || key_length + value_length + RECORD_OVERHEAD > max) {
        return WEIR_ERR(WEIR_ELIMIT,
                        "a record of %zu bytes is larger than topic '%s' takes; send less, or raise the topic's "
                        "max.message.bytes, which is %" PRIu64,
                        key_length + value_length, producer->client->topic, max);
    }
    const int64_t now_us = weir_clock_mono_us(weir_clock_system());
    if (producer->produced == producer->acknowledged + producer->refused) producer->progress_us = now_us;
    if (++producer->unpolled >= POLL_EVERY || now_us - producer->polled_us >= POLL_EVERY_US)
        kafka_producer_poll(producer, 0);
    while (!producer->failure.err) {
        rd_kafka_resp_err_t error = kafka_producer_enqueue(producer, time_us, key, key_length, value, value_length);
        if (error == RD_KAFKA_RESP_ERR_NO_ERROR) {
            producer->produced++;
            return WEIR_OK;
        }
        if (error == RD_KAFKA_RESP_ERR__QUEUE_FULL) {
            kafka_producer_poll(producer, FULL_WAIT_MS);
        } else {
            char text[WEIR_KAFKA_FAULT_MAX];
            if (error == RD_KAFKA_RESP_ERR__FATAL)
                error = rd_kafka_fatal_error(producer->client->rk, text, sizeof text);
            kafka_producer_fail(producer, WEIR_ERR(weir_kafka_code(error), "topic '%s': Kafka refused a record: %s",
                                                   producer->client->topic, rd_kafka_err2str(error)));
        }
    }
    return weir_err_kept_get(&producer->failure);
}

weir_err weir_kafka_flush(weir_kafka_producer *producer, uint64_t *acknowledgedp) {
    const uint64_t produced = producer->produced;
    int64_t failed_until_us = INT64_MAX;
    while (producer->acknowledged + producer->refused < produced &&
           weir_clock_mono_us(weir_clock_system()) < failed_until_us) {
        // Sends at once what waits to fill a batch; the poll then counts and judges.
        rd_kafka_flush(producer->client->rk, FLUSH_WAIT_MS);
        kafka_producer_poll(producer, 0);
        if (producer->failure.err && failed_until_us == INT64_MAX) {
            failed_until_us = weir_clock_mono_us(weir_clock_system()) + FAILED_WAIT_US;
        }
    }
    kafka_producer_poll(producer, 0);
    WEIR_ASSERT(producer->acknowledged + producer->refused <= produced);
    *acknowledgedp = producer->acknowledged;
    return weir_err_prefix(weir_err_kept_get(&producer->failure),
                           "%" PRIu64 " of %" PRIu64 " records were not acknowledged",
                           produced - producer->acknowledged, produced);
}

void weir_kafka_producer_close(weir_kafka_producer *producer) {
    if (!producer) return;
    producer->closing = true;
    weir_kafka_client_close(producer->client);
    weir_free(producer);
}

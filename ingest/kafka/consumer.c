/* SPDX-License-Identifier: Apache-2.0 */
/*
 * consumer.c - records out of one topic, from offsets that the caller keeps.
 *
 * librdkafka tells of a batch with a wrong CRC and goes on after it, so the first error of a partition ends it here,
 * and records after it are dropped (KAFKA-K3). Nor does it see that a log was cut back or made anew (KIP-320 came with
 * 2.1): that takes another connection or another leader, or is seen by the watch. Over the first two nothing is handed
 * out (KAFKA-K6): the caller opens again, and the marks of what it was given last are compared before anything else is
 * read.
 *
 * Partitions are started one by one, without a group: there is nothing to join, and no coordinator to ask.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/bytes.h>
#include <weir/store/base/hash.h>
#include <weir/store/base/log.h>

#include "consumer_private.h"

#define BUFFER_DEFAULT     ((uint64_t)64 << 20)
#define BUFFER_MAX         ((uint64_t)1 << 30)
#define BUFFER_MIN         ((uint64_t)1 << 20)
#define FETCH_BYTES_MAX    ((uint64_t)16 << 20) /* of one answer */
#define PARTITION_NOT_OURS UINT32_MAX

/* --- opening ---------------------------------------------------------------------------------------------------- */

static weir_err kafka_consumer_check_opts(const weir_kafka_consumer_opts *opts) {
    bool all = !opts->starts && opts->start_count == 0 && opts->start_at;
    if (!all && (!opts->starts || opts->start_count == 0 || opts->start_count > WEIR_KAFKA_PARTITIONS_MAX)) {
        return WEIR_ERR(WEIR_EINVAL, "a Kafka consumer was given %zu partitions to read; it takes 1 to %u",
                        opts->start_count, WEIR_KAFKA_PARTITIONS_MAX);
    }
    for (size_t i = 0; i < opts->start_count; i++) {
        if (opts->starts[i].mark_count > WEIR_KAFKA_MARKS_MAX)
            return WEIR_ERR(WEIR_EINVAL, "a Kafka consumer was given %u marks of a partition; it takes at most %u",
                            opts->starts[i].mark_count, WEIR_KAFKA_MARKS_MAX);
    }
    if (opts->buffer_bytes != 0 && (opts->buffer_bytes < BUFFER_MIN || opts->buffer_bytes > BUFFER_MAX)) {
        return WEIR_ERR(WEIR_EINVAL, "the Kafka read buffer is %" PRIu64 " bytes; it may be 1 MiB to 1 GiB",
                        opts->buffer_bytes);
    }
    return WEIR_OK;
}

static weir_err kafka_consumer_open_client(weir_kafka_consumer *consumer, const weir_kafka_consumer_opts *opts) {
    char buffer_kbytes[24], fetch_bytes[24];
    uint64_t buffer_bytes = opts->buffer_bytes ? opts->buffer_bytes : BUFFER_DEFAULT;
    snprintf(buffer_kbytes, sizeof buffer_kbytes, "%" PRIu64, buffer_bytes >> 10);
    snprintf(fetch_bytes, sizeof fetch_bytes, "%" PRIu64,
             buffer_bytes < FETCH_BYTES_MAX ? buffer_bytes : FETCH_BYTES_MAX);
    const weir_kafka_setting settings[] = {
        {"enable.auto.commit", "false"},
        {"auto.offset.reset", "error"}, // KAFKA-K4
        {"check.crcs", "true"},         // KAFKA-K3
        {"isolation.level", "read_committed"},
        {"enable.partition.eof", "true"},
        {"queued.max.messages.kbytes", buffer_kbytes},
        {"message.max.bytes", "1000000"},
        {"fetch.max.bytes", fetch_bytes},
    };
    const weir_kafka_client_opts client_opts = {
        .type = RD_KAFKA_CONSUMER,
        .brokers = opts->brokers,
        .topic = opts->topic,
        .timeout_us = opts->timeout_us,
        .settings = settings,
        .setting_count = sizeof settings / sizeof settings[0],
        .stop = opts->stop,
        .context = opts->context,
    };
    return weir_kafka_client_open(&client_opts, &consumer->client);
}

weir_err weir_kafka_offset_error(const weir_kafka_client *client, uint32_t partition, uint64_t offset, uint64_t begin,
                                 uint64_t end) {
    if (offset < begin) {
        return WEIR_ERR(WEIR_EDATA,
                        "topic '%s' partition %" PRIu32 ": offset %" PRIu64
                        " is gone; the earliest that the broker still has is %" PRIu64
                        ". Restore a snapshot that reaches it, or start there knowing what is missing",
                        client->topic, partition, offset, begin);
    }
    return WEIR_ERR(
        WEIR_ECORRUPT,
        "topic '%s' partition %" PRIu32 " ends at %" PRIu64 ", before offset %" PRIu64
        " which was read: it was created again, or lost its newest records. Fill a new store from this one: "
        "weir serve --rebuild",
        client->topic, partition, end, offset);
}

static weir_err kafka_consumer_open_part(weir_kafka_consumer *consumer, const weir_kafka_start *start) {
    uint32_t partition = start->partition;
    if (partition >= consumer->partition_count) {
        return WEIR_ERR(WEIR_ENOTFOUND,
                        "topic '%s' has %" PRIu32 " partitions, numbered from 0; there is no partition %" PRIu32,
                        consumer->client->topic, consumer->partition_count, partition);
    }
    if (consumer->part_of[partition] != PARTITION_NOT_OURS) {
        return WEIR_ERR(WEIR_EINVAL, "partition %" PRIu32 " of topic '%s' cannot be read twice", partition,
                        consumer->client->topic);
    }
    weir_err err = WEIR_OK;
    if (start->offset > consumer->ends[partition])
        err = weir_kafka_watch_ends_again(consumer, partition, start->offset);
    if (err) return err;
    uint64_t begin = consumer->begins[partition], end = consumer->ends[partition];
    if (start->offset < begin || start->offset > end)
        return weir_kafka_offset_error(consumer->client, partition, start->offset, begin, end);
    WEIR_ASSERT(consumer->part_count < consumer->partition_count);
    consumer->part_of[partition] = (uint32_t)consumer->part_count;
    consumer->parts[consumer->part_count++] = (kafka_part){.partition = partition,
                                                           .leader = consumer->leaders[partition],
                                                           .next = start->offset,
                                                           .handed = start->offset,
                                                           .end = end};
    return WEIR_OK;
}

/* The starts are the caller's own, or what start_at says of each partition. */
static weir_err kafka_consumer_open_parts(weir_kafka_consumer *consumer, const weir_kafka_consumer_opts *opts,
                                          weir_kafka_start **startsp) {
    size_t count = opts->starts ? opts->start_count : consumer->partition_count;
    weir_kafka_start *starts = weir_calloc(count, sizeof *starts);
    *startsp = starts;
    if (!starts) return WEIR_NOMEM("for a Kafka consumer");
    for (uint32_t i = 0; i < consumer->partition_count; i++)
        consumer->part_of[i] = PARTITION_NOT_OURS;
    weir_err err = WEIR_OK;
    if (opts->starts) memcpy(starts, opts->starts, count * sizeof *starts);
    for (uint32_t i = 0; !err && !opts->starts && i < count; i++) {
        err = opts->start_at(opts->context, i, consumer->begins[i], &starts[i]);
        starts[i].partition = i;
        WEIR_ASSERT(err || starts[i].mark_count <= WEIR_KAFKA_MARKS_MAX);
    }
    for (size_t i = 0; !err && i < count; i++) /* all are known to the caller, who may have to say what is in doubt */
        err = kafka_consumer_open_part(consumer, &starts[i]);
    return err;
}

weir_err weir_kafka_consumer_open(const weir_kafka_consumer_opts *opts, weir_kafka_consumer **consumerp) {
    weir_kafka_start *starts = NULL;
    *consumerp = NULL;
    weir_err err = kafka_consumer_check_opts(opts);
    if (err) return err;
    weir_kafka_consumer *consumer = weir_calloc(1, sizeof *consumer);
    if (!consumer) return WEIR_NOMEM("for a Kafka consumer");
    weir_mutex_init(&consumer->mutex, WEIR_RANK_LEAF, "kafka consumer");
    weir_cond_init(&consumer->stopped);
    consumer->told = opts->told;
    consumer->context = opts->context;
    consumer->messages = weir_calloc(WEIR_KAFKA_BATCH_MAX, sizeof *consumer->messages);
    if (!consumer->messages) err = WEIR_NOMEM("for a Kafka consumer");
    if (!err) err = kafka_consumer_open_client(consumer, opts);
    if (!err) err = weir_kafka_watch_open(consumer, opts);
    if (!err) err = weir_kafka_watch_first(consumer);
    if (err) goto done;

    weir_kafka_client *client = consumer->client;
    consumer->connects = atomic_load(&client->connects); // KAFKA-K6
    err = kafka_consumer_open_parts(consumer, opts, &starts);
    if (!err) err = weir_kafka_watch_compare(consumer, starts);
    if (err) goto done;

    consumer->queue = rd_kafka_queue_new(client->rk);
    for (size_t i = 0; i < consumer->part_count; i++) {
        kafka_part *part = &consumer->parts[i];
        if (rd_kafka_consume_start_queue(client->rkt, (int32_t)part->partition, (int64_t)part->next, consumer->queue)) {
            err = weir_kafka_error(client, rd_kafka_last_error(), "read");
            goto done;
        }
        part->started = true;
    }
    err = weir_kafka_watch_start(consumer);
done:
    weir_free(starts);
    if (err)
        weir_kafka_consumer_close(consumer);
    else
        *consumerp = consumer;
    return err;
}

/* --- a message -------------------------------------------------------------------------------------------------- */

weir_kafka_record weir_kafka_record_of(const rd_kafka_message_t *message) {
    rd_kafka_timestamp_type_t type;
    const int64_t stamp_ms = rd_kafka_message_timestamp(message, &type);
    const bool stamped = type != RD_KAFKA_TIMESTAMP_NOT_AVAILABLE;
    weir_kafka_record record = {
        .offset = (uint64_t)message->offset,
        .stored_ms = stamped ? stamp_ms : WEIR_KAFKA_NO_TIME,
        .partition = (uint32_t)message->partition,
        .key = message->key,
        .key_length = message->key_len,
        .value = message->payload,
        .value_length = message->len,
    };
    /* The time that our producer wrote, or else the record's own. */
    rd_kafka_headers_t *headers;
    const void *text;
    size_t length;
    if (!rd_kafka_message_headers(message, &headers) &&
        !rd_kafka_header_get_last(headers, WEIR_KAFKA_TIME_HEADER, &text, &length) && text &&
        weir_kafka_time_read(text, length, &record.time_us))
        return record;
    bool fits = stamped && stamp_ms >= INT64_MIN / 1000 && stamp_ms <= INT64_MAX / 1000;
    record.time_us = fits ? stamp_ms * 1000 : WEIR_KAFKA_NO_TIME;
    return record;
}

static void kafka_consumer_set_at_end(weir_kafka_consumer *consumer, kafka_part *part, bool at_end) {
    if (part->at_end == at_end) return;
    WEIR_ASSERT(at_end || consumer->parts_at_end > 0);
    part->at_end = at_end;
    consumer->parts_at_end += at_end ? 1 : 0;
    consumer->parts_at_end -= at_end ? 0 : 1;
    WEIR_ASSERT(consumer->parts_at_end <= consumer->part_count);
}

/* Keeps the first error. */
static void kafka_consumer_fail(weir_kafka_consumer *consumer, weir_err err) {
    if (!consumer->failure.err) weir_err_kept_set(&consumer->failure, err);
}

static weir_err kafka_consumer_error(const weir_kafka_consumer *consumer, const rd_kafka_message_t *message,
                                     const kafka_part *part) {
    const weir_kafka_client *client = consumer->client;
    if (message->err == RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET || message->err == RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE) {
        uint64_t begin, end;
        weir_err err = weir_kafka_client_offsets(consumer->client, part->partition, &begin, &end);
        if (err || part->next < begin)
            return err ? err : weir_kafka_offset_error(client, part->partition, part->next, begin, end);
        // The end is before it, or has passed it again since: what opens again compares the marks.
        return WEIR_ERR(WEIR_ECLOSED, "topic '%s' partition %" PRIu32 " did not have offset %" PRIu64 " for a moment",
                        client->topic, part->partition, part->next);
    }
    if (weir_kafka_code(message->err) == WEIR_ENOTFOUND) {
        return WEIR_ERR(WEIR_ENOTFOUND, "topic '%s' partition %" PRIu32 " was deleted while it was read", client->topic,
                        part->partition);
    }
    return WEIR_ERR(weir_kafka_code(message->err), "topic '%s' partition %" PRIu32 " at offset %" PRIu64 ": %s",
                    client->topic, part->partition, part->next, rd_kafka_message_errstr(message));
}

static void kafka_consumer_take_error(weir_kafka_consumer *consumer, const rd_kafka_message_t *message,
                                      kafka_part *part) {
    if (message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
        if (!part || part->failed) return;
        if (rd_kafka_message_broker_id(message) != part->leader) return; // KAFKA-K6
        // Behind the last record there may be marks of transactions: they were read, too.
        if (message->offset > 0 && (uint64_t)message->offset > part->next) part->next = (uint64_t)message->offset;
        kafka_consumer_set_at_end(consumer, part, true);
        return;
    }
    if (!part) {
        // Of the client or the group, which nothing depends on: worth a line.
        WEIR_LOG(WARN, "kafka.client", rd_kafka_message_errstr(message), WEIR_TEXT("topic", consumer->client->topic));
        return;
    }
    if (part->failed) return;
    part->failed = true;
    kafka_consumer_fail(consumer, kafka_consumer_error(consumer, message, part));
}

/* True when *recordp is to be handed out. */
static bool kafka_consumer_take(weir_kafka_consumer *consumer, const rd_kafka_message_t *message,
                                weir_kafka_record *recordp) {
    const char *topic = consumer->client->topic;
    kafka_part *part = NULL;
    if (message->rkt && message->partition >= 0 && (uint32_t)message->partition < consumer->partition_count &&
        consumer->part_of[message->partition] != PARTITION_NOT_OURS)
        part = &consumer->parts[consumer->part_of[message->partition]];
    if (message->err) {
        kafka_consumer_take_error(consumer, message, part);
        return false;
    }
    if (!part || part->failed) return false; // KAFKA-K3
    int32_t broker = rd_kafka_message_broker_id(message);
    weir_err err = WEIR_OK;
    if (broker != part->leader) // KAFKA-K6
        err = WEIR_ERR(WEIR_ECLOSED,
                       "topic '%s' partition %" PRIu32 " is led by broker %" PRId32 " instead of %" PRId32
                       "; open the consumer again",
                       topic, part->partition, broker, part->leader);
    else if ((uint64_t)message->offset < part->next) // KAFKA-K3
        err = WEIR_ERR(WEIR_EORDER,
                       "topic '%s' partition %" PRIu32 ": the broker sent offset %" PRId64 " where %" PRIu64
                       " or a higher one was due; open the consumer again",
                       topic, part->partition, message->offset, part->next);
    if (err) {
        part->failed = true;
        kafka_consumer_fail(consumer, err);
        return false;
    }
    *recordp = weir_kafka_record_of(message);
    kafka_consumer_set_at_end(consumer, part, false);
    part->next = recordp->offset + 1;
    return true;
}

/* --- reading ---------------------------------------------------------------------------------------------------- */

static void kafka_consumer_release(weir_kafka_consumer *consumer) {
    for (size_t i = 0; i < consumer->message_count; i++)
        rd_kafka_message_destroy(consumer->messages[i]);
    consumer->message_count = 0;
}

/* What the watch may look at from now on: of each partition the last record. */
static void kafka_consumer_show(weir_kafka_consumer *consumer, const weir_kafka_record *records, size_t count) {
    uint32_t last_partition = PARTITION_NOT_OURS;
    weir_mutex_lock(&consumer->mutex);
    for (size_t i = count; i > 0; i--) {
        const weir_kafka_record *record = &records[i - 1];
        WEIR_ASSERT(record->partition < consumer->partition_count);
        kafka_part *part = &consumer->parts[consumer->part_of[record->partition]];
        WEIR_ASSERT(record->offset < part->next);
        if (record->partition == last_partition || part->newest.offset > record->offset) continue;
        last_partition = record->partition;
        part->newest = (weir_kafka_mark){record->offset + 1, weir_kafka_record_check(record)};
    }
    for (size_t i = 0; i < consumer->part_count; i++)
        consumer->parts[i].handed = consumer->parts[i].next;
    weir_mutex_unlock(&consumer->mutex);
}

weir_err weir_kafka_consumer_poll(weir_kafka_consumer *consumer, int64_t wait_us, weir_kafka_record *records,
                                  size_t capacity, size_t *countp) {
    *countp = 0;
    if (capacity == 0)
        return WEIR_ERR(WEIR_EINVAL, "a Kafka consumer was polled for no records; give room for at least one");
    if (capacity > WEIR_KAFKA_BATCH_MAX) capacity = WEIR_KAFKA_BATCH_MAX;
    kafka_consumer_release(consumer);
    weir_mutex_lock(&consumer->mutex);
    if (consumer->verdict.err) kafka_consumer_fail(consumer, weir_err_kept_get(&consumer->verdict));
    weir_mutex_unlock(&consumer->mutex);
    if (consumer->failure.err) return weir_err_kept_get(&consumer->failure);

    /* librdkafka waits until the array is full: so for the first alone, then for none. */
    ssize_t got = rd_kafka_consume_batch_queue(consumer->queue, weir_kafka_wait_ms(wait_us), consumer->messages, 1);
    if (got > 0) consumer->message_count = 1;
    if (got > 0 && capacity > 1) {
        got = rd_kafka_consume_batch_queue(consumer->queue, 0, consumer->messages + 1, capacity - 1);
        if (got > 0) consumer->message_count += (size_t)got;
    }
    WEIR_ASSERT(consumer->message_count <= capacity);

    // KAFKA-K6: asked after the records were taken
    if (atomic_load(&consumer->client->connects) != consumer->connects) {
        kafka_consumer_release(consumer);
        kafka_consumer_fail(consumer,
                            WEIR_ERR(WEIR_ECLOSED, "the connection to %.128s is a new one; open the consumer again",
                                     consumer->client->brokers));
    }
    size_t count = 0;
    for (size_t i = 0; i < consumer->message_count; i++)
        count += kafka_consumer_take(consumer, consumer->messages[i], &records[count]);
    kafka_consumer_show(consumer, records, count);
    rd_kafka_poll(consumer->client->rk, 0); // the reasons of broken connections
    if (count == 0 && consumer->failure.err) return weir_err_kept_get(&consumer->failure);
    *countp = count;
    return WEIR_OK;
}

bool weir_kafka_consumer_at_end(const weir_kafka_consumer *consumer) {
    return consumer->parts_at_end == consumer->part_count;
}

weir_err weir_kafka_consumer_position(weir_kafka_consumer *consumer, uint32_t partition,
                                      weir_kafka_position_stats *statsp) {
    *statsp = (weir_kafka_position_stats){0};
    if (partition >= consumer->partition_count || consumer->part_of[partition] == PARTITION_NOT_OURS) {
        return WEIR_ERR(WEIR_EINVAL, "partition %" PRIu32 " of topic '%s' is not read here", partition,
                        consumer->client->topic);
    }
    const kafka_part *part = &consumer->parts[consumer->part_of[partition]];
    WEIR_ASSERT(part->partition == partition);
    statsp->offset_next = statsp->offset_end = part->next;
    weir_mutex_lock(&consumer->mutex);
    if (part->end > statsp->offset_end) statsp->offset_end = part->end;
    weir_mutex_unlock(&consumer->mutex);
    return WEIR_OK;
}

void weir_kafka_consumer_close(weir_kafka_consumer *consumer) {
    if (!consumer) return;
    weir_kafka_watch_close(consumer);
    kafka_consumer_release(consumer);
    for (size_t i = 0; i < consumer->part_count; i++) {
        if (consumer->parts[i].started)
            rd_kafka_consume_stop(consumer->client->rkt, (int32_t)consumer->parts[i].partition);
    }
    if (consumer->queue) rd_kafka_queue_destroy(consumer->queue);
    weir_kafka_client_close(consumer->client);
    weir_free(consumer->begins);
    weir_free(consumer->ends);
    weir_free(consumer->stables);
    weir_free(consumer->leaders);
    weir_free(consumer->news);
    weir_free(consumer->newest);
    weir_free(consumer->handed);
    weir_free(consumer->messages);
    weir_free(consumer->parts);
    weir_free(consumer->part_of);
    weir_cond_destroy(&consumer->stopped);
    weir_mutex_destroy(&consumer->mutex);
    weir_free(consumer);
}

uint64_t weir_kafka_record_check(const weir_kafka_record *record) {
    uint8_t head[24];
    weir_put_u64(head, (uint64_t)record->time_us);
    // A missing key is not an empty one, and "ab"+"c" is not "a"+"bc".
    weir_put_u64(head + 8, record->key ? record->key_length : UINT64_MAX);
    // The same events sent again to a topic of the same name are another log.
    weir_put_u64(head + 16, (uint64_t)record->stored_ms);
    uint64_t hash = weir_xxh3(head, sizeof head, record->value ? 1 : 0);
    if (record->key) hash = weir_xxh3(record->key, record->key_length, hash);
    if (record->value) hash = weir_xxh3(record->value, record->value_length, hash);
    return hash ? hash : 1;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * consumer.c - records out of one topic, from offsets that the caller keeps.
 *
 * librdkafka tells of a batch with a wrong CRC and goes on behind it, and does not see that a log was cut back (KIP-320
 * came with 2.1). So the first error of a partition ends it here, records behind it are dropped (K3), and a caller may
 * have the record before its offset compared (weir_kafka_start).
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <weir/base/alloc.h>
#include <weir/base/assert.h>
#include <weir/base/bytes.h>
#include <weir/base/hash.h>
#include <weir/base/log.h>
#include <weir/ingest/kafka.h>

#include "client.h"

#define BUFFER_DEFAULT     ((uint64_t)64 << 20)
#define BUFFER_MAX         ((uint64_t)1 << 30)
#define BUFFER_MIN         ((uint64_t)1 << 20)
#define FETCH_BYTES_MAX    ((uint64_t)16 << 20) /* of one answer */
#define PARTITION_NOT_OURS UINT32_MAX

/* One partition that is read. */
typedef struct kafka_part {
    uint64_t next;  /* K3: records below are not handed out */
    uint64_t check; /* of the record at next, which is then not handed out; 0: no more */
    uint32_t partition;
    bool at_end;
    bool failed; /* K3: nothing of it is handed out any more */
} kafka_part;

struct weir_kafka_consumer {
    weir_kafka_client *client;
    rd_kafka_queue_t *queue;
    kafka_part *parts;
    size_t part_count;
    size_t parts_at_end;
    uint32_t *part_of; /* index into parts by partition, or PARTITION_NOT_OURS */
    uint32_t partition_count;
    rd_kafka_message_t **messages; /* WEIR_KAFKA_BATCH_MAX of them: of the last poll, not yet given back */
    size_t message_count;
    weir_code failure; /* WEIR_CODE_OK, or what every call says from now on */
    char failure_text[WEIR_ERR_SENTENCE_MAX];
};

/* --- opening --- */

static weir_err check_opts(const weir_kafka_consumer_opts *opts);
static weir_err open_client(weir_kafka_consumer *consumer, const weir_kafka_consumer_opts *opts);
static weir_err open_parts(weir_kafka_consumer *consumer, const weir_kafka_consumer_opts *opts);
static weir_err assign(weir_kafka_consumer *consumer);

weir_err weir_kafka_consumer_open(const weir_kafka_consumer_opts *opts, weir_kafka_consumer **consumerp) {
    *consumerp = NULL;
    weir_err err = check_opts(opts);
    if (err) return err;
    weir_kafka_consumer *consumer = weir_calloc(1, sizeof *consumer);
    if (!consumer) return WEIR_ERR(WEIR_ENOMEM, "out of memory for a Kafka consumer");
    consumer->messages = weir_calloc(WEIR_KAFKA_BATCH_MAX, sizeof *consumer->messages);
    if (!consumer->messages) {
        err = WEIR_ERR(WEIR_ENOMEM, "out of memory for a Kafka consumer");
        goto err;
    }
    err = open_client(consumer, opts);
    if (!err) err = open_parts(consumer, opts);
    if (!err) err = assign(consumer);
    if (err) goto err;
    *consumerp = consumer;
    return WEIR_OK;
err:
    weir_kafka_consumer_close(consumer);
    return err;
}

static weir_err check_opts(const weir_kafka_consumer_opts *opts) {
    if (!opts->starts || opts->start_count == 0 || opts->start_count > WEIR_KAFKA_PARTITIONS_MAX) {
        return WEIR_ERR(WEIR_EINVAL, "a Kafka consumer was given %zu partitions to read; it takes 1 to %u",
                        opts->start_count, WEIR_KAFKA_PARTITIONS_MAX);
    }
    if (opts->buffer_bytes != 0 && (opts->buffer_bytes < BUFFER_MIN || opts->buffer_bytes > BUFFER_MAX)) {
        return WEIR_ERR(WEIR_EINVAL, "the Kafka read buffer is %" PRIu64 " bytes; it may be 1 MiB to 1 GiB",
                        opts->buffer_bytes);
    }
    return WEIR_OK;
}

static weir_err open_client(weir_kafka_consumer *consumer, const weir_kafka_consumer_opts *opts) {
    char buffer_kbytes[24], fetch_bytes[24];
    uint64_t buffer_bytes = opts->buffer_bytes ? opts->buffer_bytes : BUFFER_DEFAULT;
    snprintf(buffer_kbytes, sizeof buffer_kbytes, "%" PRIu64, buffer_bytes >> 10);
    snprintf(fetch_bytes, sizeof fetch_bytes, "%" PRIu64,
             buffer_bytes < FETCH_BYTES_MAX ? buffer_bytes : FETCH_BYTES_MAX);
    const weir_kafka_setting settings[] = {
        {"group.id", "weir"}, // assign asks for one; nothing is ever committed to it
        {"enable.auto.commit", "false"},
        {"enable.auto.offset.store", "false"},
        {"auto.offset.reset", "error"}, // K4
        {"check.crcs", "true"},         // K3
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
    };
    weir_err err = weir_kafka_client_open(&client_opts, &consumer->client);
    if (err) return err;
    return weir_kafka_client_topic(consumer->client, false, &consumer->partition_count);
}

static weir_err open_part(weir_kafka_consumer *consumer, const weir_kafka_start *start);

static weir_err open_parts(weir_kafka_consumer *consumer, const weir_kafka_consumer_opts *opts) {
    consumer->parts = weir_calloc(opts->start_count, sizeof *consumer->parts);
    consumer->part_of = weir_calloc(consumer->partition_count, sizeof *consumer->part_of);
    if (!consumer->parts || !consumer->part_of) return WEIR_ERR(WEIR_ENOMEM, "out of memory for a Kafka consumer");
    for (uint32_t i = 0; i < consumer->partition_count; i++)
        consumer->part_of[i] = PARTITION_NOT_OURS;
    for (size_t i = 0; i < opts->start_count; i++) {
        weir_err err = open_part(consumer, &opts->starts[i]);
        if (err) return err;
    }
    return WEIR_OK;
}

static weir_err check_offset(const weir_kafka_consumer *consumer, const weir_kafka_start *start, uint64_t *beginp);

static weir_err open_part(weir_kafka_consumer *consumer, const weir_kafka_start *start) {
    if (start->partition >= consumer->partition_count) {
        return WEIR_ERR(WEIR_ENOTFOUND, "topic '%s' has %" PRIu32 " partitions, so none with number %" PRIu32,
                        consumer->client->topic, consumer->partition_count, start->partition);
    }
    if (consumer->part_of[start->partition] != PARTITION_NOT_OURS) {
        return WEIR_ERR(WEIR_EINVAL, "partition %" PRIu32 " of topic '%s' is to be read twice", start->partition,
                        consumer->client->topic);
    }
    uint64_t begin;
    weir_err err = check_offset(consumer, start, &begin);
    if (err) return err;
    kafka_part *part = &consumer->parts[consumer->part_count];
    *part = (kafka_part){.next = start->offset, .partition = start->partition};
    if (start->check != 0 && start->offset > begin) {
        part->next = start->offset - 1;
        part->check = start->check;
    } else if (start->check != 0 && start->offset > 0) {
        WEIR_LOG(WARN, "kafka.unchecked",
                 "the record before the first to read is gone, so it is not known whether this is still the same log",
                 WEIR_TEXT("topic", consumer->client->topic), WEIR_U64("partition", start->partition),
                 WEIR_U64("offset", start->offset));
    }
    consumer->part_of[start->partition] = (uint32_t)consumer->part_count++;
    return WEIR_OK;
}

static weir_err offset_error(const weir_kafka_client *client, uint32_t partition, uint64_t offset, uint64_t begin,
                             uint64_t end) {
    if (offset < begin) {
        return WEIR_ERR(WEIR_ENOTFOUND,
                        "topic '%s' partition %" PRIu32 ": offset %" PRIu64
                        " is gone; the earliest that the broker still has is %" PRIu64
                        ". Restore a snapshot that reaches it, or start there knowing what is missing",
                        client->topic, partition, offset, begin);
    }
    return WEIR_ERR(WEIR_ECORRUPT,
                    "topic '%s' partition %" PRIu32 " ends at %" PRIu64 ", before offset %" PRIu64
                    ": it was created again, or lost its newest records. Rebuild from its beginning",
                    client->topic, partition, end, offset);
}

static weir_err check_offset(const weir_kafka_consumer *consumer, const weir_kafka_start *start, uint64_t *beginp) {
    uint64_t end;
    weir_err err = weir_kafka_client_offsets(consumer->client, start->partition, beginp, &end);
    if (err) return err;
    if (start->offset >= *beginp && start->offset <= end) return WEIR_OK;
    return offset_error(consumer->client, start->partition, start->offset, *beginp, end);
}

static weir_err assign(weir_kafka_consumer *consumer) {
    weir_kafka_client *client = consumer->client;
    client->consuming = true;
    rd_kafka_resp_err_t error = rd_kafka_poll_set_consumer(client->rk);
    if (error) return weir_kafka_error(client, error, "read it");
    consumer->queue = rd_kafka_queue_get_consumer(client->rk);
    if (!consumer->queue) return WEIR_ERR(WEIR_ENOMEM, "out of memory for a Kafka consumer");
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new((int)consumer->part_count);
    for (size_t i = 0; i < consumer->part_count; i++) {
        const kafka_part *part = &consumer->parts[i];
        rd_kafka_topic_partition_list_add(list, client->topic, (int32_t)part->partition)->offset = (int64_t)part->next;
    }
    error = rd_kafka_assign(client->rk, list);
    rd_kafka_topic_partition_list_destroy(list);
    return error ? weir_kafka_error(client, error, "read it") : WEIR_OK;
}

/* --- reading --- */

static void release(weir_kafka_consumer *consumer) {
    for (size_t i = 0; i < consumer->message_count; i++)
        rd_kafka_message_destroy(consumer->messages[i]);
    consumer->message_count = 0;
}

/* Keeps the first error, and its words: those in the ring of sentences do not last. */
static void keep_failure(weir_kafka_consumer *consumer, weir_err err) {
    if (consumer->failure) return;
    consumer->failure = weir_err_code(err);
    weir_err_sentence(err, consumer->failure_text, sizeof consumer->failure_text);
}

static bool take(weir_kafka_consumer *consumer, const rd_kafka_message_t *message, weir_kafka_record *recordp);

weir_err weir_kafka_consumer_poll(weir_kafka_consumer *consumer, int64_t wait_us, weir_kafka_record *records,
                                  size_t capacity, size_t *countp) {
    *countp = 0;
    if (capacity == 0) return WEIR_ERR(WEIR_EINVAL, "a Kafka consumer was polled for no records");
    release(consumer);
    if (consumer->failure) return WEIR_ERR(consumer->failure, "%s", consumer->failure_text);
    if (capacity > WEIR_KAFKA_BATCH_MAX) capacity = WEIR_KAFKA_BATCH_MAX;
    // librdkafka waits until the array is full: so for the first alone, then for none.
    const int wait_ms = weir_kafka_wait_ms(wait_us);
    ssize_t got = rd_kafka_consume_batch_queue(consumer->queue, wait_ms, consumer->messages, 1);
    consumer->message_count = got > 0 ? (size_t)got : 0;
    if (got > 0 && capacity > 1) {
        got = rd_kafka_consume_batch_queue(consumer->queue, 0, consumer->messages + 1, capacity - 1);
        consumer->message_count += got > 0 ? (size_t)got : 0;
    }
    size_t count = 0;
    for (size_t i = 0; i < consumer->message_count; i++) {
        if (take(consumer, consumer->messages[i], &records[count])) count++;
    }
    if (count == 0 && consumer->failure) return WEIR_ERR(consumer->failure, "%s", consumer->failure_text);
    *countp = count;
    return WEIR_OK;
}

static void take_error(weir_kafka_consumer *consumer, const rd_kafka_message_t *message, kafka_part *part);
static bool take_checked(weir_kafka_consumer *consumer, kafka_part *part, const weir_kafka_record *record);
static void set_at_end(weir_kafka_consumer *consumer, kafka_part *part, bool at_end);
static weir_kafka_record read_message(const rd_kafka_message_t *message);

/* True when *recordp is to be handed out. */
static bool take(weir_kafka_consumer *consumer, const rd_kafka_message_t *message, weir_kafka_record *recordp) {
    kafka_part *part = NULL;
    if (message->rkt && message->partition >= 0 && (uint32_t)message->partition < consumer->partition_count &&
        consumer->part_of[message->partition] != PARTITION_NOT_OURS) {
        part = &consumer->parts[consumer->part_of[message->partition]];
    }
    if (message->err) {
        take_error(consumer, message, part);
        return false;
    }
    if (!part || part->failed) return false; // K3
    *recordp = read_message(message);
    if (recordp->offset < part->next) {
        part->failed = true;
        keep_failure(consumer, WEIR_ERR(WEIR_EORDER,
                                        "topic '%s' partition %" PRIu32 ": the broker sent offset %" PRIu64
                                        " where %" PRIu64 " or a higher one was due; open the consumer again",
                                        consumer->client->topic, part->partition, recordp->offset, part->next));
        return false;
    }
    set_at_end(consumer, part, false);
    if (part->check != 0 && !take_checked(consumer, part, recordp)) return false;
    part->next = recordp->offset + 1;
    return true;
}

static void set_at_end(weir_kafka_consumer *consumer, kafka_part *part, bool at_end) {
    if (part->at_end == at_end) return;
    part->at_end = at_end;
    consumer->parts_at_end += at_end ? 1 : 0;
    consumer->parts_at_end -= at_end ? 0 : 1;
}

/* The first record after opening with a `check`: usually the one to compare, which is not handed out. */
static bool take_checked(weir_kafka_consumer *consumer, kafka_part *part, const weir_kafka_record *record) {
    const uint64_t check = part->check;
    part->check = 0;
    if (record->offset != part->next) {
        WEIR_LOG(WARN, "kafka.unchecked",
                 "the record before the first to read is gone, so it is not known whether this is still the same log",
                 WEIR_TEXT("topic", consumer->client->topic), WEIR_U64("partition", part->partition),
                 WEIR_U64("offset", part->next + 1));
        return true;
    }
    part->next++;
    if (weir_kafka_record_check(record) == check) return false;
    part->failed = true;
    keep_failure(consumer, WEIR_ERR(WEIR_ECORRUPT,
                                    "topic '%s' partition %" PRIu32 ": the record at offset %" PRIu64
                                    " is not the one that was read there before: the topic was created again, or lost "
                                    "records and took new ones. Rebuild from its beginning",
                                    consumer->client->topic, part->partition, record->offset));
    return false;
}

/* The time that our producer wrote, or else the record's own. */
static int64_t read_time(const rd_kafka_message_t *message) {
    rd_kafka_headers_t *headers;
    const void *value;
    size_t length;
    int64_t time_us;
    if (!rd_kafka_message_headers(message, &headers) &&
        !rd_kafka_header_get_last(headers, WEIR_KAFKA_TIME_HEADER, &value, &length) && value &&
        weir_kafka_time_read(value, length, &time_us)) {
        return time_us;
    }
    rd_kafka_timestamp_type_t type;
    const int64_t time_ms = rd_kafka_message_timestamp(message, &type);
    if (type == RD_KAFKA_TIMESTAMP_NOT_AVAILABLE || time_ms < INT64_MIN / 1000 || time_ms > INT64_MAX / 1000) {
        return WEIR_KAFKA_NO_TIME;
    }
    return time_ms * 1000;
}

static weir_kafka_record read_message(const rd_kafka_message_t *message) {
    return (weir_kafka_record){
        .offset = (uint64_t)message->offset,
        .time_us = read_time(message),
        .partition = (uint32_t)message->partition,
        .key = message->key,
        .key_length = message->key_len,
        .value = message->payload,
        .value_length = message->len,
    };
}

static weir_err read_error(const weir_kafka_consumer *consumer, const rd_kafka_message_t *message,
                           const kafka_part *part);

static void take_error(weir_kafka_consumer *consumer, const rd_kafka_message_t *message, kafka_part *part) {
    if (message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
        if (part) set_at_end(consumer, part, true);
        return;
    }
    if (!part) {
        // Of the client or the group, which nothing rests on: worth a line.
        WEIR_LOG(WARN, "kafka.client", rd_kafka_message_errstr(message), WEIR_TEXT("topic", consumer->client->topic));
        return;
    }
    if (part->failed) return;
    part->failed = true;
    keep_failure(consumer, read_error(consumer, message, part));
}

static weir_err read_error(const weir_kafka_consumer *consumer, const rd_kafka_message_t *message,
                           const kafka_part *part) {
    const weir_kafka_client *client = consumer->client;
    if (message->err == RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET || message->err == RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE) {
        uint64_t begin, end;
        weir_err err = weir_kafka_client_offsets(consumer->client, part->partition, &begin, &end);
        // The end may have passed the offset again since.
        return err ? err : offset_error(client, part->partition, part->next, begin, end);
    }
    if (weir_kafka_code(message->err) == WEIR_ENOTFOUND) {
        return WEIR_ERR(WEIR_ENOTFOUND, "topic '%s' partition %" PRIu32 " was deleted while it was read", client->topic,
                        part->partition);
    }
    return WEIR_ERR(weir_kafka_code(message->err), "topic '%s' partition %" PRIu32 " at offset %" PRIu64 ": %s",
                    client->topic, part->partition, part->next, rd_kafka_message_errstr(message));
}

/* --- the rest --- */

bool weir_kafka_consumer_at_end(const weir_kafka_consumer *consumer) {
    return consumer->parts_at_end == consumer->part_count;
}

weir_err weir_kafka_consumer_position(const weir_kafka_consumer *consumer, uint32_t partition,
                                      weir_kafka_position_stats *statsp) {
    *statsp = (weir_kafka_position_stats){0};
    if (partition >= consumer->partition_count || consumer->part_of[partition] == PARTITION_NOT_OURS) {
        return WEIR_ERR(WEIR_EINVAL, "partition %" PRIu32 " of topic '%s' is not read here", partition,
                        consumer->client->topic);
    }
    const kafka_part *part = &consumer->parts[consumer->part_of[partition]];
    int64_t begin = 0, end = 0;
    statsp->offset_next = part->next + (part->check != 0 ? 1 : 0);
    statsp->offset_end = statsp->offset_next;
    rd_kafka_get_watermark_offsets(consumer->client->rk, consumer->client->topic, (int32_t)partition, &begin, &end);
    if (end >= 0 && (uint64_t)end > statsp->offset_end) statsp->offset_end = (uint64_t)end;
    return WEIR_OK;
}

void weir_kafka_consumer_close(weir_kafka_consumer *consumer) {
    if (!consumer) return;
    release(consumer);
    if (consumer->queue) rd_kafka_queue_destroy(consumer->queue);
    weir_kafka_client_close(consumer->client);
    weir_free(consumer->messages);
    weir_free(consumer->parts);
    weir_free(consumer->part_of);
    weir_free(consumer);
}

uint64_t weir_kafka_record_check(const weir_kafka_record *record) {
    uint8_t head[16];
    weir_put_u64(head, (uint64_t)record->time_us);
    // A missing key is not an empty one, and "ab"+"c" is not "a"+"bc".
    weir_put_u64(head + 8, record->key ? record->key_length : UINT64_MAX);
    uint64_t hash = weir_xxh3(head, sizeof head, record->value ? 1 : 0);
    if (record->key) hash = weir_xxh3(record->key, record->key_length, hash);
    if (record->value) hash = weir_xxh3(record->value, record->value_length, hash);
    return hash ? hash : 1;
}

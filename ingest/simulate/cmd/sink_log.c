/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sink_log.c - simulated messages into the built-in event log.
 *
 * Messages of a topic are gathered into a batch, which is appended partition by partition; after some batches one group
 * sync makes them durable. A sync per batch would leave the processor idle for most of the time, and no reader waits
 * for the single message.
 */
#include <string.h>

#include <weir/ingest/eventlog/eventlog.h>
#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/log.h>

#include "sink.h"

#define BATCH_RECORDS 8192u
#define BATCH_BYTES   (BATCH_RECORDS * 320u)
#define SYNC_BATCHES  16u

typedef struct sink_log_topic {
    weir_eventlog *log;
    char *bytes; /* of the batch's messages, each key within its value */
    size_t length;
    weir_record *records; /* in the order in which they came */
    uint32_t *partitions; /* of each                         */
    uint32_t count;
    uint32_t unsynced; /* batches */
} sink_log_topic;

typedef struct sink_log {
    weir_simulate_sink base;
    weir_record *sorted; /* the records of one partition */
    sink_log_topic topics[WEIR_SIMULATE_TOPICS];
} sink_log;

/* Appends what has been gathered, partition by partition. */
static weir_err sink_log_batch(sink_log *sink, sink_log_topic *topic) {
    weir_err err = WEIR_OK;
    for (uint32_t partition = 0; !err && partition < weir_eventlog_partitions(topic->log); partition++) {
        size_t count = 0;
        uint64_t first_offset;
        for (uint32_t i = 0; i < topic->count; i++)
            if (topic->partitions[i] == partition) sink->sorted[count++] = topic->records[i];
        if (count) err = weir_eventlog_append(topic->log, partition, sink->sorted, count, &first_offset);
    }
    topic->unsynced += topic->count > 0;
    topic->count = 0;
    topic->length = 0;
    return err;
}

static weir_err sink_log_sync(sink_log_topic *topic) {
    if (topic->unsynced == 0) return WEIR_OK;
    topic->unsynced = 0;
    return weir_eventlog_sync(topic->log);
}

static weir_err sink_log_put(weir_simulate_sink *base, const weir_simulate_message *message) {
    sink_log *sink = (sink_log *)base;
    sink_log_topic *topic = &sink->topics[message->topic];
    WEIR_ASSERT(topic->log && message->value_length <= BATCH_BYTES);
    WEIR_ASSERT(topic->count <= BATCH_RECORDS && topic->length <= BATCH_BYTES);
    WEIR_ASSERT(message->key >= message->value &&
                message->key + message->key_length <= message->value + message->value_length);
    if (topic->count == BATCH_RECORDS || topic->length + message->value_length > BATCH_BYTES) {
        weir_err err = sink_log_batch(sink, topic);
        if (!err && topic->unsynced >= SYNC_BATCHES) err = sink_log_sync(topic);
        if (err) return err;
    }
    char *value = topic->bytes + topic->length;
    memcpy(value, message->value, message->value_length);
    topic->length += message->value_length;
    topic->partitions[topic->count] = weir_eventlog_partition_of(topic->log, message->key, message->key_length);
    topic->records[topic->count++] = (weir_record){.time_us = message->time_us,
                                                   .key = value + (message->key - message->value),
                                                   .key_length = message->key_length,
                                                   .value = value,
                                                   .value_length = message->value_length};
    return WEIR_OK;
}

/* Readers of the log see only what is durable, so a pause makes all of it durable, as the end does. */
static weir_err sink_log_rest(weir_simulate_sink *base) {
    sink_log *sink = (sink_log *)base;
    weir_err err = WEIR_OK;
    for (int i = 0; !err && i < WEIR_SIMULATE_TOPICS; i++) {
        if (sink->topics[i].log) err = sink_log_batch(sink, &sink->topics[i]);
        if (!err) err = sink_log_sync(&sink->topics[i]);
    }
    return err;
}

static weir_err sink_log_close(weir_simulate_sink *base) {
    sink_log *sink = (sink_log *)base;
    weir_err err = WEIR_OK;
    for (int i = 0; i < WEIR_SIMULATE_TOPICS; i++) {
        sink_log_topic *topic = &sink->topics[i];
        weir_err_keep(&err, weir_eventlog_close(topic->log));
        weir_free(topic->bytes);
        weir_free(topic->records);
        weir_free(topic->partitions);
    }
    weir_free(sink->sorted);
    weir_free(sink);
    return err;
}

/* Ids begin at 1 in every run: a second run into the same topic repeats them, and a store takes them for the same
 * events again. That may be intended, so it is a warning. */
static void sink_log_warn(weir_eventlog *log, weir_simulate_topic topic) {
    uint64_t records = 0;
    weir_eventlog_partition_stats stats;
    for (uint32_t i = 0; i < weir_eventlog_partitions(log); i++)
        if (!weir_eventlog_stats_get(log, i, &stats)) records += stats.offset_end;
    if (records == 0) return;
    WEIR_LOG(WARN, "simulate.appends", "the topic holds records already; ids of this run may repeat theirs",
             WEIR_TEXT("topic", weir_simulate_topic_name(topic)), WEIR_U64("records", records));
}

static weir_err sink_log_topic_open(const weir_simulate_sink_opts *opts, const char *folder, weir_simulate_topic which,
                                    sink_log_topic *topic) {
    const weir_eventlog_opts log = {
        .partitions = opts->partitions,
        .segment_bytes = weir_config_u64(opts->config, WEIR_CONFIG_EVENTLOG_SEGMENT_BYTES),
    };
    weir_err err = weir_eventlog_open(folder, weir_simulate_topic_name(which), &log, &topic->log);
    if (err) return err;
    sink_log_warn(topic->log, which);
    topic->bytes = weir_malloc(BATCH_BYTES);
    topic->records = weir_calloc(BATCH_RECORDS, sizeof *topic->records);
    topic->partitions = weir_calloc(BATCH_RECORDS, sizeof *topic->partitions);
    if (!topic->bytes || !topic->records || !topic->partitions) return WEIR_NOMEM("for a batch");
    return WEIR_OK;
}

weir_err weir_simulate_sink_log(const weir_simulate_sink_opts *opts, const char *where, weir_simulate_sink **sinkp) {
    *sinkp = NULL;
    const char *folder = *where ? where : weir_config_text(opts->config, WEIR_CONFIG_EVENTLOG_PATH);
    sink_log *sink = weir_calloc(1, sizeof *sink);
    if (!sink) return WEIR_NOMEM("for the log's batches");
    sink->base = (weir_simulate_sink){sink_log_put, sink_log_rest, sink_log_rest, sink_log_close};
    sink->sorted = weir_calloc(BATCH_RECORDS, sizeof *sink->sorted);
    weir_err err = sink->sorted ? WEIR_OK : WEIR_NOMEM("for the log's batches");
    for (int i = 0; !err && i < WEIR_SIMULATE_TOPICS; i++)
        if (opts->topics[i]) err = sink_log_topic_open(opts, folder, (weir_simulate_topic)i, &sink->topics[i]);
    if (err) {
        weir_err_keep(&err, sink_log_close(&sink->base));
        return err;
    }
    *sinkp = &sink->base;
    return WEIR_OK;
}

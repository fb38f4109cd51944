/* SPDX-License-Identifier: Apache-2.0 */
/* topic.c - what is asked of a topic before records go in or out. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <weir/ingest/kafka/kafka.h>
#include <weir/store/base/clock.h>
#include <weir/store/base/log.h>

#include "client.h"

#define RETRY_WAIT_US      50000
#define SLICE_US           2000000
#define RECORD_MAX_DEFAULT 1048588u /* max.message.bytes of a broker that was not told otherwise */
#define ERROR_TEXT_MAX     256u

static void kafka_topic_pause(void) {
    weir_clock_sleep_until(weir_clock_system(), weir_clock_mono_us(weir_clock_system()) + RETRY_WAIT_US);
}

/* A request cannot be taken back, so each waits for a part of the time only. */
static int kafka_topic_slice_ms(int64_t left_us) {
    return weir_kafka_wait_ms(left_us < SLICE_US ? left_us : SLICE_US);
}

/* WEIR_ECANCELLED: the owner stops. */
static weir_err kafka_topic_check_stop(const weir_kafka_client *client) {
    if (!client->stop || !client->stop(client->context)) return WEIR_OK;
    return WEIR_ERR(WEIR_ECANCELLED, "the questions about topic '%s' were cancelled: its reader stops", client->topic);
}

/* --- partitions and offsets ------------------------------------------------------------------------------------- */

/* What one answer says: WEIR_OK with *partitionsp 0 means "not yet". */
static weir_err kafka_topic_read_metadata(weir_kafka_client *client, const rd_kafka_metadata_t *metadata, bool created,
                                          uint32_t *partitionsp) {
    *partitionsp = 0;
    if (metadata->topic_cnt != 1) return WEIR_OK;
    const rd_kafka_metadata_topic_t *topic = &metadata->topics[0];
    if (topic->err == RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE) return WEIR_OK;
    if (topic->err == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART && created) return WEIR_OK;
    if (topic->err) return weir_kafka_error(client, topic->err, "list the partitions of");
    if (topic->partition_cnt > (int)WEIR_KAFKA_PARTITIONS_MAX) {
        return WEIR_ERR(WEIR_ELIMIT, "topic '%s' has %d partitions; at most %u are read", client->topic,
                        topic->partition_cnt, WEIR_KAFKA_PARTITIONS_MAX);
    }
    for (int i = 0; i < topic->partition_cnt; i++) {
        if (topic->partitions[i].leader < 0) return WEIR_OK;
    }
    if (topic->partition_cnt > 0) client->leader = topic->partitions[0].leader;
    *partitionsp = (uint32_t)topic->partition_cnt;
    return WEIR_OK;
}

weir_err weir_kafka_client_topic(weir_kafka_client *client, bool created, uint32_t *partitionsp) {
    const int64_t until_us = weir_clock_mono_us(weir_clock_system()) + client->timeout_us;
    rd_kafka_resp_err_t error = RD_KAFKA_RESP_ERR_NO_ERROR;
    *partitionsp = 0;
    for (int64_t left_us = client->timeout_us; left_us > 0;
         left_us = until_us - weir_clock_mono_us(weir_clock_system())) {
        const rd_kafka_metadata_t *metadata = NULL;
        weir_err err = kafka_topic_check_stop(client);
        if (err) return err;
        error = rd_kafka_metadata(client->rk, 0, client->rkt, &metadata, kafka_topic_slice_ms(left_us));
        if (error == RD_KAFKA_RESP_ERR_NO_ERROR) {
            err = kafka_topic_read_metadata(client, metadata, created, partitionsp);
            rd_kafka_metadata_destroy(metadata);
            if (err || *partitionsp > 0) return err;
        } else if (error != RD_KAFKA_RESP_ERR__TRANSPORT && error != RD_KAFKA_RESP_ERR__TIMED_OUT) {
            return weir_kafka_error(client, error, "list the partitions of");
        }
        kafka_topic_pause();
    }
    if (error) return weir_kafka_error(client, error, "list the partitions of");
    return WEIR_ERR(WEIR_EUNAVAILABLE,
                    "topic '%s' at %.128s had a partition without a leader for %" PRId64 " ms; see the brokers' logs",
                    client->topic, client->brokers, client->timeout_us / 1000);
}

/* Metadata runs ahead of the partitions' leaders: a new or moved one may refuse for some milliseconds. */
static bool kafka_topic_error_passes(rd_kafka_resp_err_t error) {
    switch (error) {
    case RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION:
    case RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE:
    case RD_KAFKA_RESP_ERR_REPLICA_NOT_AVAILABLE:
    case RD_KAFKA_RESP_ERR_OFFSET_NOT_AVAILABLE:
    case RD_KAFKA_RESP_ERR__TRANSPORT:
        return true;
    default:
        return false;
    }
}

weir_err weir_kafka_client_offsets(weir_kafka_client *client, uint32_t partition, uint64_t *beginp, uint64_t *endp) {
    int64_t begin = 0, end = 0;
    const int64_t until_us = weir_clock_mono_us(weir_clock_system()) + client->timeout_us;
    rd_kafka_resp_err_t error = RD_KAFKA_RESP_ERR__TIMED_OUT;
    *beginp = *endp = 0;
    for (int64_t left_us = client->timeout_us; left_us > 0;
         left_us = until_us - weir_clock_mono_us(weir_clock_system())) {
        error = rd_kafka_query_watermark_offsets(client->rk, client->topic, (int32_t)partition, &begin, &end,
                                                 weir_kafka_wait_ms(left_us));
        if (!kafka_topic_error_passes(error)) break;
        kafka_topic_pause();
    }
    if (error) return weir_kafka_error(client, error, "report the offsets of");
    if (begin < 0 || end < begin) {
        return WEIR_ERR(WEIR_EUNAVAILABLE, "topic '%s' partition %" PRIu32 ": the broker reports no offsets; try again",
                        client->topic, partition);
    }
    *beginp = (uint64_t)begin;
    *endp = (uint64_t)end;
    return WEIR_OK;
}

/* WEIR_OK and *passesp: not now, ask again. */
static weir_err kafka_topic_read_ends(const weir_kafka_client *client, const rd_kafka_topic_partition_list_t *list,
                                      uint64_t *offsets, bool *passesp) {
    *passesp = false;
    for (int i = 0; i < list->cnt; i++) {
        const rd_kafka_topic_partition_t *part = &list->elems[i];
        *passesp = *passesp || kafka_topic_error_passes(part->err) || (!part->err && part->offset < 0);
        if (part->err && !kafka_topic_error_passes(part->err))
            return weir_kafka_error(client, part->err, "report the offsets of");
        offsets[i] = part->offset < 0 ? 0 : (uint64_t)part->offset;
    }
    return WEIR_OK;
}

/* librdkafka asks each leader once, for all that it leads; a "time" of -1 or -2 asks for the end or the beginning. */
weir_err weir_kafka_client_ends(weir_kafka_client *client, uint32_t count, int64_t which, int64_t timeout_us,
                                uint64_t *offsets) {
    const int64_t until_us = weir_clock_mono_us(weir_clock_system()) + timeout_us;
    rd_kafka_resp_err_t error = RD_KAFKA_RESP_ERR__TIMED_OUT;
    for (int64_t left_us = timeout_us; left_us > 0; left_us = until_us - weir_clock_mono_us(weir_clock_system())) {
        bool again = true;
        weir_err err = kafka_topic_check_stop(client);
        if (err) return err;
        rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new((int)count);
        for (uint32_t i = 0; i < count; i++)
            rd_kafka_topic_partition_list_add(list, client->topic, (int32_t)i)->offset = which;
        error = rd_kafka_offsets_for_times(client->rk, list, kafka_topic_slice_ms(left_us));
        err = error ? WEIR_OK : kafka_topic_read_ends(client, list, offsets, &again);
        rd_kafka_topic_partition_list_destroy(list);
        if (err || !again) return err;
        if (error && error != RD_KAFKA_RESP_ERR__TIMED_OUT && !kafka_topic_error_passes(error))
            return weir_kafka_error(client, error, "report the offsets of");
        kafka_topic_pause();
    }
    return weir_kafka_error(client, error ? error : RD_KAFKA_RESP_ERR__TIMED_OUT, "report the offsets of");
}

weir_err weir_kafka_client_leaders(weir_kafka_client *client, int64_t timeout_us, int32_t *leaders, uint32_t capacity,
                                   uint32_t *countp) {
    const rd_kafka_metadata_t *metadata = NULL;
    *countp = 0;
    rd_kafka_resp_err_t error =
        rd_kafka_metadata(client->rk, 0, client->rkt, &metadata, weir_kafka_wait_ms(timeout_us));
    if (error) return weir_kafka_error(client, error, "list the partitions of");
    weir_err err = kafka_topic_read_metadata(client, metadata, false, countp);
    if (!err && *countp == 0)
        err =
            WEIR_ERR(WEIR_EUNAVAILABLE, "topic '%s' at %.128s has a partition without a leader; see the brokers' logs",
                     client->topic, client->brokers);
    for (uint32_t i = 0; !err && i < *countp; i++) {
        const struct rd_kafka_metadata_partition *part = &metadata->topics[0].partitions[i];
        if (part->id >= 0 && (uint32_t)part->id < capacity) leaders[part->id] = part->leader;
    }
    rd_kafka_metadata_destroy(metadata);
    return err;
}

weir_err weir_kafka_topic_stats_get(const char *brokers, const char *topic, int64_t timeout_us,
                                    weir_kafka_partition_stats *partitions, size_t capacity, size_t *countp) {
    *countp = 0;
    const weir_kafka_client_opts opts = {
        .type = RD_KAFKA_PRODUCER, .brokers = brokers, .topic = topic, .timeout_us = timeout_us};
    weir_kafka_client *client;
    weir_err err = weir_kafka_client_open(&opts, &client);
    if (err) return err;
    uint32_t count = 0;
    err = weir_kafka_client_topic(client, false, &count);
    for (uint32_t i = 0; !err && i < count && i < capacity; i++) {
        err = weir_kafka_client_offsets(client, i, &partitions[i].offset_begin, &partitions[i].offset_end);
    }
    if (!err) *countp = count;
    weir_kafka_client_close(client);
    return err;
}

/* --- admin requests --------------------------------------------------------------------------------------------- */

/* Asks this broker, or the controller (-1), by `send` and waits for the answer; NULL and *errorp when none came. */
static rd_kafka_event_t *kafka_topic_ask_admin(weir_kafka_client *client, int32_t broker, rd_kafka_admin_op_t op,
                                               void (*send)(rd_kafka_t *rk, void *request,
                                                            rd_kafka_AdminOptions_t *options, rd_kafka_queue_t *queue),
                                               void *request, rd_kafka_resp_err_t *errorp) {
    char text[ERROR_TEXT_MAX];
    const int wait_ms = (int)(client->timeout_us / 1000);
    rd_kafka_AdminOptions_t *options = rd_kafka_AdminOptions_new(client->rk, op);
    rd_kafka_queue_t *queue = rd_kafka_queue_new(client->rk);
    rd_kafka_AdminOptions_set_request_timeout(options, wait_ms, text, sizeof text);
    if (broker >= 0) rd_kafka_AdminOptions_set_broker(options, broker, text, sizeof text);
    send(client->rk, request, options, queue);
    // The request times out by itself; the second on top is for the answer that says so.
    rd_kafka_event_t *event = rd_kafka_queue_poll(queue, wait_ms + 1000);
    *errorp = event ? rd_kafka_event_error(event) : RD_KAFKA_RESP_ERR__TIMED_OUT;
    if (event && *errorp) {
        rd_kafka_event_destroy(event);
        event = NULL;
    }
    rd_kafka_queue_destroy(queue);
    rd_kafka_AdminOptions_destroy(options);
    return event;
}

static void kafka_topic_send_create(rd_kafka_t *rk, void *request, rd_kafka_AdminOptions_t *options,
                                    rd_kafka_queue_t *queue) {
    rd_kafka_NewTopic_t *topics[] = {request};
    rd_kafka_CreateTopics(rk, topics, 1, options, queue);
}

weir_err weir_kafka_client_create_topic(weir_kafka_client *client, uint32_t partitions) {
    char text[ERROR_TEXT_MAX];
    // -1: the broker's own replication factor.
    rd_kafka_NewTopic_t *topic = rd_kafka_NewTopic_new(client->topic, (int)partitions, -1, text, sizeof text);
    if (!topic) return WEIR_ERR(WEIR_EINVAL, "cannot create topic '%s': %s", client->topic, text);
    rd_kafka_NewTopic_set_config(topic, "retention.ms", "-1");
    rd_kafka_NewTopic_set_config(topic, "retention.bytes", "-1");
    rd_kafka_NewTopic_set_config(topic, "cleanup.policy", "delete");
    rd_kafka_NewTopic_set_config(topic, "message.timestamp.type", "CreateTime");
    rd_kafka_resp_err_t error;
    rd_kafka_event_t *event =
        kafka_topic_ask_admin(client, -1, RD_KAFKA_ADMIN_OP_CREATETOPICS, kafka_topic_send_create, topic, &error);
    rd_kafka_NewTopic_destroy(topic);
    if (!event) return weir_kafka_error(client, error, "create");
    size_t count = 0;
    const rd_kafka_topic_result_t **results =
        rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(event), &count);
    weir_err err = WEIR_OK;
    error = count == 1 ? rd_kafka_topic_result_error(results[0]) : RD_KAFKA_RESP_ERR__BAD_MSG;
    if (count != 1) {
        err = weir_kafka_error(client, error, "create");
    } else if (error && error != RD_KAFKA_RESP_ERR_TOPIC_ALREADY_EXISTS) {
        const char *why = rd_kafka_topic_result_error_string(results[0]);
        err = WEIR_ERR(weir_kafka_code(error), "Kafka did not create topic '%s': %s", client->topic,
                       why ? why : rd_kafka_err2str(error));
    }
    rd_kafka_event_destroy(event);
    return err;
}

static void kafka_topic_send_describe(rd_kafka_t *rk, void *request, rd_kafka_AdminOptions_t *options,
                                      rd_kafka_queue_t *queue) {
    rd_kafka_ConfigResource_t *resources[] = {request};
    rd_kafka_DescribeConfigs(rk, resources, 1, options, queue);
}

static uint64_t kafka_topic_read_record_max(rd_kafka_event_t *event) {
    size_t count = 0, entry_count = 0;
    const rd_kafka_ConfigResource_t **resources =
        rd_kafka_DescribeConfigs_result_resources(rd_kafka_event_DescribeConfigs_result(event), &count);
    if (count != 1) return RECORD_MAX_DEFAULT;
    const rd_kafka_ConfigEntry_t **entries = rd_kafka_ConfigResource_configs(resources[0], &entry_count);
    for (size_t i = 0; i < entry_count; i++) {
        if (strcmp(rd_kafka_ConfigEntry_name(entries[i]), "max.message.bytes") != 0) continue;
        const char *value = rd_kafka_ConfigEntry_value(entries[i]);
        long long bytes = value ? strtoll(value, NULL, 10) : 0;
        if (bytes > 0) return (uint64_t)bytes;
    }
    return RECORD_MAX_DEFAULT;
}

uint64_t weir_kafka_client_record_max(weir_kafka_client *client) {
    rd_kafka_ConfigResource_t *resource = rd_kafka_ConfigResource_new(RD_KAFKA_RESOURCE_TOPIC, client->topic);
    rd_kafka_resp_err_t error;
    // Any broker knows; the controller may be in the middle of an election.
    rd_kafka_event_t *event = kafka_topic_ask_admin(client, client->leader, RD_KAFKA_ADMIN_OP_DESCRIBECONFIGS,
                                                    kafka_topic_send_describe, resource, &error);
    rd_kafka_ConfigResource_destroy(resource);
    if (!event) {
        // Reading settings may be forbidden where writing records is not; then a record that is too large is refused
        // by the broker instead of by us.
        WEIR_LOG(DEBUG, "kafka.no_settings", "the broker does not report the topic's settings",
                 WEIR_TEXT("topic", client->topic), WEIR_TEXT("reason", rd_kafka_err2str(error)));
        return RECORD_MAX_DEFAULT;
    }
    uint64_t bytes = kafka_topic_read_record_max(event);
    rd_kafka_event_destroy(event);
    return bytes;
}

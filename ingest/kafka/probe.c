/* SPDX-License-Identifier: Apache-2.0 */
/* probe.c - one record of each of some partitions, read a second time. */
#include <weir/store/base/assert.h>
#include <weir/store/base/clock.h>
#include <weir/store/base/log.h>

#include "consumer_private.h"

#define POLL_MS 50

/* True when the probe has its answer now. */
static bool kafka_probe_take(weir_kafka_probe *probe, const rd_kafka_message_t *message) {
    switch (message->err) {
    case RD_KAFKA_RESP_ERR_NO_ERROR:
        break;
    case RD_KAFKA_RESP_ERR__PARTITION_EOF:
    case RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET:
    case RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE:
    case RD_KAFKA_RESP_ERR__BAD_MSG: /* there is something, but no record that could be compared */
        probe->result = WEIR_KAFKA_PROBE_GONE;
        return true;
    default: /* the topic went, or its leader moved: the next look says what that means */
        return false;
    }
    if ((uint64_t)message->offset < probe->mark.offset - 1) return false;
    if ((uint64_t)message->offset > probe->mark.offset - 1) {
        probe->result = WEIR_KAFKA_PROBE_GONE;
        return true;
    }
    const weir_kafka_record record = weir_kafka_record_of(message);
    bool same = weir_kafka_record_check(&record) == probe->mark.check;
    probe->result = same ? WEIR_KAFKA_PROBE_SAME : WEIR_KAFKA_PROBE_OTHER;
    return true;
}

/* A partition that has answered is not read further: a broker fills its answer from the partitions in turn, a batch
 * that is larger than a partition's share only as the first of it, and with long logs the same ones came first again
 * and again. */
static void kafka_probe_collect(const weir_kafka_client *client, rd_kafka_queue_t *queue, weir_kafka_probe *probes,
                                size_t count, int64_t timeout_us) {
    size_t open = count;
    const int64_t until_us = weir_clock_mono_us(weir_clock_system()) + timeout_us;
    while (open > 0 && weir_clock_mono_us(weir_clock_system()) < until_us) {
        rd_kafka_message_t *message = rd_kafka_consume_queue(queue, POLL_MS);
        if (!message) continue;
        for (size_t i = 0; i < count; i++) {
            weir_kafka_probe *probe = &probes[i];
            if ((int32_t)probe->partition != message->partition || probe->result != WEIR_KAFKA_PROBE_OPEN) continue;
            if (!kafka_probe_take(probe, message)) continue;
            rd_kafka_consume_stop(client->rkt, message->partition);
            open--;
        }
        rd_kafka_message_destroy(message);
    }
}

weir_err weir_kafka_probe_all(weir_kafka_client *client, weir_kafka_probe *probes, size_t count, int64_t timeout_us) {
    size_t started = 0;
    if (count == 0) return WEIR_OK;
    WEIR_ASSERT(count <= WEIR_KAFKA_PROBES_MAX);
    rd_kafka_queue_t *queue = rd_kafka_queue_new(client->rk);
    for (; started < count; started++) {
        const weir_kafka_probe *probe = &probes[started];
        if (rd_kafka_consume_start_queue(client->rkt, (int32_t)probe->partition, (int64_t)probe->mark.offset - 1,
                                         queue))
            break;
    }
    if (started == count) kafka_probe_collect(client, queue, probes, count, timeout_us);
    for (size_t i = 0; i < started; i++)
        if (probes[i].result == WEIR_KAFKA_PROBE_OPEN) rd_kafka_consume_stop(client->rkt, (int32_t)probes[i].partition);
    rd_kafka_queue_destroy(queue);
    for (size_t i = 0; i < count; i++) {
        if (probes[i].result == WEIR_KAFKA_PROBE_OPEN)
            return weir_kafka_error(client, RD_KAFKA_RESP_ERR__TIMED_OUT, "read again");
    }
    return WEIR_OK;
}

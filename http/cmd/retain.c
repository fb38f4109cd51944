/* SPDX-License-Identifier: Apache-2.0 */
/*
 * retain.c - the event log's retention: only a server knows what may be removed.
 *
 * A store is a view of the log, and is built from it again after a crash: what not every shard has sealed must stay,
 * whatever its age. Only the server knows that, so only the server removes segments; `weir log append` does not. While
 * a part of the store is damaged nothing is removed at all: it may be repaired from what the log still has.
 */
#include <weir/store/base/alloc.h>
#include <weir/store/base/clock.h>
#include <weir/store/base/log.h>

#include "serve_private.h"

#define EVERY_US (2 * WEIR_US_PER_S)

static weir_err retain_log(weir_graph *graph, weir_eventlog *log, const char *topic) {
    uint32_t partitions = weir_eventlog_partitions(log), source;
    uint64_t removed = 0, *keep_from = weir_calloc(partitions, sizeof *keep_from);
    if (!keep_from) return WEIR_NOMEM("for the offsets that retention keeps");
    weir_err err = weir_graph_source(graph, topic, weir_eventlog_creation_id(log), &source);
    for (uint32_t i = 0; !err && i < partitions; i++)
        keep_from[i] = weir_graph_offset_sealed(graph, source, i);
    if (!err) err = weir_eventlog_retain_from(log, keep_from, &removed);
    weir_free(keep_from);
    if (removed)
        WEIR_LOG(INFO, "serve.retained",
                 "removed the oldest segments of an event log; the store has sealed their events",
                 WEIR_TEXT("topic", topic), WEIR_U64("segments", removed));
    return err;
}

void weir_serve_retain(weir_graph *graph, weir_eventlog *log, const char *topic, int64_t *retained_usp) {
    int64_t now_us = weir_clock_mono_us(weir_clock_system());
    if (*retained_usp && now_us - *retained_usp < EVERY_US) return;
    *retained_usp = now_us;
    if (weir_graph_health(graph)) return;
    weir_err err = retain_log(graph, log, topic);
    if (err) weir_log_error("serve.retention", err); /* nothing is lost by what stays */
}

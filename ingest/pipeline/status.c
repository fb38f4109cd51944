/* SPDX-License-Identifier: Apache-2.0 */
/* status.c - what others see of a source: its status, how far it is, and when its brokers were last heard of. */
#include <stdio.h>
#include <string.h>

#include <weir/store/base/assert.h>
#include <weir/store/base/log.h>
#include <weir/store/base/metrics.h>

#include "pipeline_private.h"

/* The watch of a topic asks once a second; a source of which nothing was heard for so long is not connected. */
#define CONTACT_OLD_US (5 * WEIR_US_PER_S)

/* --- the status ------------------------------------------------------------------------------------------------- */

void weir_worker_status_set(weir_worker *worker, weir_pipeline_status status, weir_err err) {
    char before[WEIR_ERR_SENTENCE_MAX];
    weir_mutex_lock(&worker->mutex);
    memcpy(before, worker->err.sentence, sizeof before);
    weir_err_kept_set(&worker->err, err);
    bool changed = worker->status != status, news = changed || strcmp(worker->err.sentence, before) != 0;
    worker->status = status;
    worker->stuck = worker->wait_us > 0;
    weir_mutex_unlock(&worker->mutex);
    if (err && news) weir_log_error(status == WEIR_PIPELINE_WAITING ? "ingest.waiting" : "ingest.failed", err);
    if (changed) weir_pipeline_changed(worker->pipeline);
}

weir_err weir_worker_doubt(weir_worker *worker, weir_err err) {
    WEIR_ON_ROLE(INGEST);
    char list[200] = "", more[40] = "", sentence[WEIR_ERR_SENTENCE_MAX];
    uint32_t others = 0; /* for which the list has no room */
    for (uint32_t i = 0; i < worker->partition_count; i++) {
        char text[96];
        weir_mutex_lock(&worker->mutex);
        const uint32_t partition = worker->partitions[i].partition;
        const uint64_t from = worker->partitions[i].verified, end = worker->partitions[i].newest.offset;
        weir_mutex_unlock(&worker->mutex);
        if (from >= end) continue;
        int length = snprintf(text, sizeof text, "%spartition %u offsets %llu to %llu", list[0] ? ", " : "", partition,
                              (unsigned long long)from, (unsigned long long)end - 1);
        if (strlen(list) + (size_t)length < sizeof list)
            strcat(list, text);
        else
            others++;
        WEIR_LOG(WARN, "ingest.not_compared", "records were taken in that may belong to another log",
                 WEIR_TEXT("source", worker->schema_source->name), WEIR_U64("partition", partition),
                 WEIR_U64("from", from), WEIR_U64("to", end - 1));
    }
    if (!list[0]) return err;
    if (others) snprintf(more, sizeof more, " and of %u more", others);
    weir_err_sentence(err, sentence, sizeof sentence);
    return WEIR_ERR(weir_err_code(err), "%s. Taken in and not compared before that: %s%s", sentence, list, more);
}

/* --- what the brokers say --------------------------------------------------------------------------------------- */

void weir_worker_told(void *context, const weir_kafka_told *partitions, size_t count, int64_t contact_us) {
    weir_worker *worker = context;
    int64_t wall_us = weir_clock_wall_us(worker->pipeline->clock);
    weir_mutex_lock(&worker->mutex);
    for (size_t i = 0; i < count; i++) {
        const weir_kafka_told *told = &partitions[i];
        if (told->partition >= worker->partition_count) continue;
        weir_source_partition *part = &worker->partitions[told->partition];
        bool same = part->open_us && part->stable == told->stable; /* records wait above it as before */
        part->open_us = told->stable >= told->end ? 0 : same ? part->open_us : wall_us;
        part->end = told->end;
        part->stable = told->stable;
        part->verified = told->verified;
    }
    worker->contact_us = contact_us;
    worker->contact_wall_us = wall_us;
    weir_mutex_unlock(&worker->mutex);
}

bool weir_worker_contact_is_old(const weir_worker *worker) {
    return weir_clock_mono_us(weir_clock_system()) - worker->contact_us >= CONTACT_OLD_US;
}

/* --- for others ------------------------------------------------------------------------------------------------- */

/* Of the open transactions, the one that has stood still longest. */
static void status_add_transaction(const weir_source_partition *part, weir_pipeline_source_stats *stats) {
    if (!part->open_us) return;
    stats->waiting_records += part->end - part->stable;
    if (stats->waiting_since_us && stats->waiting_since_us <= part->open_us) return;
    stats->waiting_since_us = part->open_us;
    stats->waiting_partition = part->partition;
    stats->waiting_offset = part->stable;
}

void weir_pipeline_source_stats_get(weir_pipeline *pipeline, size_t index, weir_pipeline_source_stats *statsp) {
    WEIR_ASSERT(index < pipeline->worker_count);
    weir_worker *worker = &pipeline->workers[index];
    bool kafka = worker->from.stream == WEIR_PIPELINE_KAFKA;
    weir_mutex_lock(&worker->mutex);
    *statsp = (weir_pipeline_source_stats){
        .name = worker->schema_source->name,
        .status = worker->status,
        .err = weir_err_kept_get(&worker->err),
        .stuck = worker->stuck,
        .records = worker->records,
        .bytes = worker->bytes,
        .mutations = worker->mutations,
        .dead_letters = worker->dead_letters,
        .tombstones = worker->tombstones,
        .contact_age_us = kafka ? -1 : 0,
        .contact_wall_us = worker->contact_wall_us,
        .begun_us = worker->begun_us,
    };
    if (kafka && worker->contact_wall_us)
        statsp->contact_age_us = weir_clock_mono_us(weir_clock_system()) - worker->contact_us;
    for (uint32_t i = 0; kafka && i < worker->partition_count; i++)
        status_add_transaction(&worker->partitions[i], statsp);
    weir_mutex_unlock(&worker->mutex);
    bool reads = statsp->status == WEIR_PIPELINE_RUNNING || statsp->status == WEIR_PIPELINE_ENDED;
    statsp->connected = reads && (!kafka || (statsp->contact_age_us >= 0 && statsp->contact_age_us < CONTACT_OLD_US));
}

/* false: there is no such partition. */
static bool status_partition(weir_pipeline *pipeline, weir_worker *worker, uint32_t index,
                             weir_pipeline_partition_stats *stats) {
    int64_t event_time_us = INT64_MIN;
    uint64_t clear = 0;
    *stats = (weir_pipeline_partition_stats){.source = worker->schema_source->name};
    weir_mutex_lock(&worker->mutex);
    bool there = index < worker->partition_count;
    if (there) {
        const weir_source_partition *part = &worker->partitions[index];
        clear = part->clear;
        stats->partition = part->partition;
        stats->offset_read = part->read;
        stats->offset_end = part->end;
        stats->offset_stable = part->open_us ? part->stable : part->end;
        event_time_us = part->event_time_us;
    }
    weir_mutex_unlock(&worker->mutex);
    if (!there) return false;

    uint32_t source = worker->graph_source, partition = stats->partition;
    stats->offset_applied = weir_graph_offset_applied(pipeline->graph, source, partition);
    stats->offset_sealed = weir_graph_offset_sealed(pipeline->graph, source, partition);
    /* What follows the last record, marks of transactions and what they took back, needs no applying. */
    if (stats->offset_applied >= stats->offset_read && stats->offset_applied < clear) stats->offset_applied = clear;
    /* A log in this process is asked itself: the thread may be waiting for room in the graph, and its last word be
     * old. */
    if (worker->from.stream == WEIR_PIPELINE_EVENTLOG) {
        weir_eventlog_partition_stats log;
        weir_err err = weir_eventlog_stats_get(worker->from.log, partition, &log);
        if (!err && log.offset_durable > stats->offset_end)
            stats->offset_end = stats->offset_stable = log.offset_durable;
    }
    if (event_time_us == INT64_MIN) return true;
    stats->event_time_us = event_time_us;
    int64_t age_us = weir_clock_wall_us(pipeline->clock) - event_time_us;
    if (stats->offset_applied < stats->offset_end && age_us > 0) stats->lag_us = age_us;
    return true;
}

weir_err weir_pipeline_partitions(weir_pipeline *pipeline, weir_pipeline_partition_visit visit, void *context) {
    weir_err err = WEIR_OK;
    for (size_t i = 0; i < pipeline->worker_count; i++) {
        weir_pipeline_partition_stats stats;
        for (uint32_t p = 0; !err && status_partition(pipeline, &pipeline->workers[i], p, &stats); p++)
            err = visit(context, &stats);
    }
    return err;
}

/* --- gauges ----------------------------------------------------------------------------------------------------- */

typedef struct status_lag {
    int64_t records, us;
} status_lag;

static weir_err status_add_lag(void *context, const weir_pipeline_partition_stats *stats) {
    status_lag *sum = context;
    uint64_t applied = stats->offset_applied < stats->offset_end ? stats->offset_applied : stats->offset_end;
    sum->records += (int64_t)(stats->offset_end - applied);
    if (stats->lag_us > sum->us) sum->us = stats->lag_us;
    return WEIR_OK;
}

static weir_err status_see_newest(void *context, const weir_graph_clock *clock) {
    int64_t *newest_us = context;
    if (clock->newest_us > *newest_us) *newest_us = clock->newest_us;
    return WEIR_OK;
}

void weir_pipeline_gauges_set(weir_pipeline *pipeline) {
    status_lag sum = {0};
    int64_t waiting = 0, failed = 0, unconnected = 0, contact_us = 0, in_transactions = 0;
    (void)weir_pipeline_partitions(pipeline, status_add_lag, &sum); /* it has no errors */
    for (size_t i = 0; i < pipeline->worker_count; i++) {
        weir_pipeline_source_stats stats;
        weir_pipeline_source_stats_get(pipeline, i, &stats);
        waiting += stats.status == WEIR_PIPELINE_WAITING;
        failed += stats.status == WEIR_PIPELINE_FAILED;
        unconnected += !stats.connected;
        in_transactions += (int64_t)stats.waiting_records;
        int64_t age_us =
            stats.contact_age_us < 0 ? weir_clock_wall_us(pipeline->clock) - stats.begun_us : stats.contact_age_us;
        if (age_us > contact_us) contact_us = age_us;
    }
    if (unconnected && contact_us > sum.us) sum.us = contact_us; /* what has come there since then is not known */
    weir_metric_set(WEIR_METRIC_INGEST_LAG_RECORDS, sum.records);
    weir_metric_set(WEIR_METRIC_INGEST_LAG_SECONDS, sum.us / WEIR_US_PER_S);
    weir_metric_set(WEIR_METRIC_INGEST_WAITING_SOURCES, waiting);
    weir_metric_set(WEIR_METRIC_INGEST_FAILED_SOURCES, failed);
    weir_metric_set(WEIR_METRIC_INGEST_UNCONNECTED_SOURCES, unconnected);
    weir_metric_set(WEIR_METRIC_INGEST_CONTACT_SECONDS, contact_us / WEIR_US_PER_S);
    weir_metric_set(WEIR_METRIC_INGEST_TRANSACTION_RECORDS, in_transactions);
    int64_t now_us = weir_graph_watermark(pipeline->graph), newest_us = now_us;
    (void)weir_graph_clocks(pipeline->graph, status_see_newest, &newest_us); /* it has no errors */
    bool any = now_us != INT64_MIN;
    weir_metric_set(WEIR_METRIC_INGEST_WATERMARK, any ? now_us / WEIR_US_PER_S : 0);
    weir_metric_set(WEIR_METRIC_INGEST_AHEAD, any ? (newest_us - now_us) / WEIR_US_PER_S : 0);
}

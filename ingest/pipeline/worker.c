/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker.c - the thread of a source.
 *
 *   open stream ──► turn: poll, one run a partition ──► … ──► stop, end of the file, or failure
 *        ▲               │ broker away
 *        └──── wait ◄────┘
 */
#include <string.h>

#include <weir/base/alloc.h>
#include <weir/base/assert.h>
#include <weir/base/log.h>

#include "pipeline_private.h"

#define TICK_US     WEIR_US_PER_S
#define RETRY_US    WEIR_US_PER_S
#define IDLE_US_MIN 1000
#define IDLE_US_MAX 16000
#define NO_OFFSET   UINT64_MAX

/* --- what others see -------------------------------------------------------------------------------------------- */

static void set_status(weir_worker *worker, weir_pipeline_status status, weir_err err) {
    weir_mutex_lock(&worker->mutex);
    bool changed = worker->status != status;
    worker->status = status;
    worker->err = err;
    weir_mutex_unlock(&worker->mutex);
    if (!changed) return;
    if (err) weir_log_error(status == WEIR_PIPELINE_WAITING ? "ingest.waiting" : "ingest.failed", err);
    weir_pipeline_changed(worker->pipeline);
}

static bool stopping(weir_pipeline *pipeline) {
    weir_mutex_lock(&pipeline->mutex);
    bool stop = pipeline->stopping;
    weir_mutex_unlock(&pipeline->mutex);
    return stop;
}

/* Until the time has passed, or somebody says that there is something to do. */
static void idle(weir_pipeline *pipeline, uint64_t wakes, int64_t us) {
    int64_t until_us = weir_clock_mono_us(weir_clock_system()) + us;
    weir_mutex_lock(&pipeline->mutex);
    while (!pipeline->stopping && pipeline->wakes == wakes) {
        if (!weir_cond_wait_until(&pipeline->changed, &pipeline->mutex, until_us)) break;
    }
    weir_mutex_unlock(&pipeline->mutex);
}

static uint64_t wakes_and_drains(weir_pipeline *pipeline, uint64_t *drainsp) {
    weir_mutex_lock(&pipeline->mutex);
    uint64_t wakes = pipeline->wakes;
    *drainsp = pipeline->drains;
    weir_mutex_unlock(&pipeline->mutex);
    return wakes;
}

static void drained(weir_worker *worker, uint64_t drains) {
    weir_mutex_lock(&worker->mutex);
    bool news = worker->drained < drains;
    worker->drained = drains;
    weir_mutex_unlock(&worker->mutex);
    if (news) weir_pipeline_changed(worker->pipeline);
}

/* --- where to begin --------------------------------------------------------------------------------------------- */

static weir_part *part_of(const weir_worker *worker, uint32_t partition) {
    if (worker->from.stream == WEIR_PIPELINE_FILE) return worker->part_count ? &worker->parts[0] : NULL;
    return partition < worker->part_count ? &worker->parts[partition] : NULL;
}

static weir_err add_part(weir_worker *worker, const weir_part *added) {
    WEIR_ASSERT(worker->from.stream == WEIR_PIPELINE_FILE || added->partition == worker->part_count);
    weir_mutex_lock(&worker->mutex);
    weir_part *parts = weir_realloc_array(worker->parts, worker->part_count + 1, sizeof *parts);
    if (parts) {
        parts[worker->part_count++] = *added;
        worker->parts = parts;
    }
    weir_mutex_unlock(&worker->mutex);
    return parts ? WEIR_OK : WEIR_ERR(WEIR_ENOMEM, "no memory for partition %u", added->partition);
}

/* A partition that the store has never seen begins where the stream does. */
static weir_err remember_begin(weir_worker *worker, uint64_t begin, uint64_t applied, weir_position *position) {
    if (applied == 0) position->begin = position->offset = begin;
    if (applied == 0 && begin > 0) {
        WEIR_LOG(WARN, "ingest.begins_late", "the store begins behind what retention has removed",
                 WEIR_TEXT("source", worker->schema_source->name), WEIR_U64("partition", position->partition),
                 WEIR_U64("offset", begin));
    }
    return weir_positions_put(worker->pipeline->positions, position);
}

/* From where all shards have it: in a store that was just opened, what they have sealed. A stream that can compare
 * goes back to the last record that it can compare with; the shards pass over what they have. */
static weir_err first_start(weir_worker *worker, uint32_t partition, uint64_t begin, weir_stream_start *startp) {
    weir_pipeline *pipeline = worker->pipeline;
    uint64_t applied = weir_graph_offset_applied(pipeline->graph, worker->graph_source, partition);
    weir_position position;
    bool seen = weir_positions_get(pipeline->positions, worker->graph_source, partition, &position);
    weir_err err = seen ? WEIR_OK : remember_begin(worker, begin, applied, &position);
    startp->offset = applied > position.begin ? applied : position.begin;
    bool comparable = worker->from.stream == WEIR_PIPELINE_KAFKA && position.check;
    if (comparable && position.offset <= startp->offset) *startp = (weir_stream_start){position.offset, position.check};
    return err;
}

static weir_err start_at(void *context, uint32_t partition, uint64_t begin, weir_stream_start *startp) {
    weir_worker *worker = context;
    const weir_part *part = part_of(worker, partition);
    *startp = (weir_stream_start){0};
    if (part) { /* the stream is opened again */
        *startp = (weir_stream_start){part->next, part->check};
        return WEIR_OK;
    }
    weir_err err = first_start(worker, partition, begin, startp);
    if (err) return err;
    weir_part added = {.partition = partition,
                       .next = startp->offset,
                       .check = startp->check,
                       .had = weir_graph_offset_applied(worker->pipeline->graph, worker->graph_source, partition),
                       .read = startp->offset,
                       .end = startp->offset,
                       .event_time_us = INT64_MIN};
    weir_letters_known(worker->pipeline->letters, worker->graph_source, partition, startp->offset, &added.known,
                       &added.known_count);
    return add_part(worker, &added);
}

/* A topic that has fewer partitions than were read is another one. */
static weir_err check_partitions(const weir_worker *worker) {
    uint32_t seen = weir_positions_partitions(worker->pipeline->positions, worker->graph_source);
    if (worker->from.stream == WEIR_PIPELINE_FILE || seen <= worker->part_count) return WEIR_OK;
    return WEIR_ERR(
        WEIR_EDATA,
        "topic '%s' has %u partitions, and the store has read %u: it was recreated. Start an empty store, or "
        "bring the old topic back",
        worker->schema_source->topic, worker->part_count, seen);
}

static weir_err open_stream(weir_worker *worker) {
    weir_pipeline *pipeline = worker->pipeline;
    const weir_stream_kafka_opts kafka = {pipeline->brokers, worker->schema_source->topic, pipeline->kafka_timeout_us,
                                          pipeline->kafka_buffer_bytes};
    weir_err err = WEIR_OK;
    switch (worker->from.stream) {
    case WEIR_PIPELINE_EVENTLOG:
        err = weir_stream_eventlog_open(worker->from.log, start_at, worker, &worker->stream);
        break;
    case WEIR_PIPELINE_KAFKA:
        err = weir_stream_kafka_open(&kafka, start_at, worker, &worker->stream);
        break;
    case WEIR_PIPELINE_FILE:
        err = weir_stream_file_open(worker->from.path, worker->schema_source, worker->file_partition, start_at, worker,
                                    &worker->stream);
        break;
    }
    if (!err) err = check_partitions(worker);
    return err ? err : weir_positions_save(pipeline->positions); /* before the first span can be sealed */
}

static void close_stream(weir_worker *worker) {
    if (worker->stream) worker->stream->ops->close(worker->stream);
    worker->stream = NULL;
}

/* --- a turn ----------------------------------------------------------------------------------------------------- */

/* Indices of the records, those of one partition together, in their order: counted, then placed. */
static weir_err group(weir_worker *worker, const weir_stream_record *records, size_t count) {
    memset(worker->group_ends, 0, worker->part_count * sizeof *worker->group_ends);
    for (size_t i = 0; i < count; i++) {
        const weir_part *part = part_of(worker, records[i].partition);
        if (!part) return WEIR_ERR(WEIR_EINTERNAL, "a record of partition %u, which is not read", records[i].partition);
        worker->group_ends[part - worker->parts]++;
    }
    uint32_t end = 0;
    for (uint32_t i = 0; i < worker->part_count; i++) {
        uint32_t size = worker->group_ends[i];
        worker->group_ends[i] = end; /* where the group begins, until it is filled */
        end += size;
    }
    for (size_t i = 0; i < count; i++)
        worker->grouped[worker->group_ends[part_of(worker, records[i].partition) - worker->parts]++] = (uint32_t)i;
    return WEIR_OK;
}

static weir_err run_all(weir_worker *worker, const weir_stream_record *records, size_t count) {
    weir_err err = group(worker, records, count);
    uint32_t begin = 0;
    for (uint32_t i = 0; !err && begin < count; i++) {
        uint32_t end = worker->group_ends[i];
        if (end > begin)
            err = weir_run_records(worker->run, &worker->parts[i], records, worker->grouped + begin, end - begin);
        begin = end;
    }
    return err;
}

static void pass_letters(weir_pipeline *pipeline) {
    weir_positions_letters letters = weir_positions_letters_get(pipeline->positions);
    if (!weir_letters_passed(pipeline->letters, pipeline->graph, &letters.from)) return;
    weir_positions_letters_set(pipeline->positions, letters);
}

static void see_end(weir_worker *worker, weir_part *part) {
    uint64_t end = worker->stream ? worker->stream->ops->end(worker->stream, part->partition) : 0;
    weir_mutex_lock(&worker->mutex);
    if (end > part->end) part->end = end;
    weir_mutex_unlock(&worker->mutex);
}

/* All is read, whatever offsets stand behind it without a record. */
static void at_end(weir_worker *worker) {
    weir_mutex_lock(&worker->mutex);
    for (uint32_t i = 0; i < worker->part_count; i++)
        worker->parts[i].end = worker->parts[i].read;
    weir_mutex_unlock(&worker->mutex);
}

/* What is done once a second: ends for those who ask how far behind we are, positions for the next start. */
static weir_err tick(weir_worker *worker, bool at_once) {
    weir_pipeline *pipeline = worker->pipeline;
    int64_t now_us = weir_clock_mono_us(weir_clock_system());
    weir_err err = WEIR_OK;
    uint64_t offset, check;
    if (!at_once && now_us - worker->ticked_us < TICK_US) return WEIR_OK;
    worker->ticked_us = now_us;
    for (uint32_t i = 0; !err && i < worker->part_count; i++) {
        weir_part *part = &worker->parts[i];
        see_end(worker, part);
        uint64_t sealed = weir_graph_offset_sealed(pipeline->graph, worker->graph_source, part->partition);
        if (!weir_marks_take(&part->marks, sealed, &offset, &check)) continue;
        weir_position position;
        weir_positions_get(pipeline->positions, worker->graph_source, part->partition, &position);
        position.offset = offset;
        position.check = check;
        err = weir_positions_put(pipeline->positions, &position);
    }
    if (!err) pass_letters(pipeline);
    return err ? err : weir_positions_save(pipeline->positions);
}

/* *idle_usp: how long to sleep when nothing came; *endedp: nothing will come any more. */
static weir_err turn(weir_worker *worker, int64_t *idle_usp, bool *endedp) {
    WEIR_ON_ROLE(INGEST);
    const weir_stream_record *records;
    uint64_t drains;
    size_t count;
    bool empty;
    uint64_t wakes = wakes_and_drains(worker->pipeline, &drains);
    weir_err err = worker->stream->ops->poll(worker->stream, &records, &count, &empty);
    if (!err && count) err = run_all(worker, records, count);
    if (!err) err = tick(worker, false);
    if (err) return err;
    *endedp = empty && worker->stream->ops->ends;
    if (count) *idle_usp = IDLE_US_MIN;
    if (empty) at_end(worker);
    if (!empty || *endedp) return WEIR_OK;
    drained(worker, drains);
    idle(worker->pipeline, wakes, *idle_usp);
    if (*idle_usp < IDLE_US_MAX) *idle_usp *= 2;
    return WEIR_OK;
}

static weir_err read_on(weir_worker *worker, bool *endedp) {
    int64_t idle_us = IDLE_US_MIN;
    weir_err err = open_stream(worker);
    if (err) return err;
    uint32_t *ends = weir_realloc_array(worker->group_ends, worker->part_count, sizeof *ends);
    if (!ends) return WEIR_ERR(WEIR_ENOMEM, "no memory for %u partitions", worker->part_count);
    worker->group_ends = ends;
    for (uint32_t i = 0; i < worker->part_count; i++)
        see_end(worker, &worker->parts[i]); /* before anybody asks how far it is */
    set_status(worker, WEIR_PIPELINE_RUNNING, WEIR_OK);
    while (!err && !*endedp && !stopping(worker->pipeline))
        err = turn(worker, &idle_us, endedp);
    return err;
}

static bool is_worth_waiting(const weir_worker *worker, weir_err err) {
    return worker->from.stream == WEIR_PIPELINE_KAFKA &&
           (weir_err_is(err, WEIR_EUNAVAILABLE) || weir_err_is(err, WEIR_ETIMEOUT));
}

static void finish(weir_worker *worker, weir_err err, bool ended) {
    weir_err_keep(&err, tick(worker, true));
    weir_pipeline_status status = err ? WEIR_PIPELINE_FAILED : ended ? WEIR_PIPELINE_ENDED : WEIR_PIPELINE_STOPPED;
    close_stream(worker);
    set_status(worker, status, err);
}

void weir_worker_main(void *context) {
    weir_worker *worker = context;
    bool ended = false;
    weir_err err = WEIR_OK;
    do {
        err = read_on(worker, &ended);
        if (!is_worth_waiting(worker, err)) break;
        close_stream(worker);
        set_status(worker, WEIR_PIPELINE_WAITING, err);
        err = WEIR_OK;
        uint64_t drains;
        idle(worker->pipeline, wakes_and_drains(worker->pipeline, &drains), RETRY_US);
    } while (!stopping(worker->pipeline));
    finish(worker, err, ended);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker.c - the thread of a source.
 *
 *   open stream ──► turn: poll, one run a partition ──► … ──► stop, end of the file, or failure
 *        ▲               │ broker or topic away; another connection, leader or partition
 *        └──── wait ◄────┘
 */
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/log.h>

#include "pipeline_private.h"

#define TICK_US     WEIR_US_PER_S
#define RETRY_US    WEIR_US_PER_S
#define WAIT_US_MIN 20000
#define AGAIN_US    (100 * 1000)
#define OPEN_US     (5 * WEIR_US_PER_S)
#define STALE_TRIES 3u                   /* a broker that has just started may not know of partitions that were added */
#define REFUSED_US  (60 * WEIR_US_PER_S) /* rights are given and taken in steps: a refusal is believed after so long */
#define IDLE_US_MIN 1000
#define IDLE_US_MAX 16000
#define NO_OFFSET   UINT64_MAX

/* --- what others see -------------------------------------------------------------------------------------------- */

/* Until the time has passed, or somebody says that there is something to do. */
static void idle(weir_pipeline *pipeline, uint64_t wakes, int64_t us) {
    int64_t until_us = weir_clock_mono_us(weir_clock_system()) + us;
    weir_mutex_lock(&pipeline->mutex);
    while (!pipeline->stopping && pipeline->wakes == wakes) {
        if (!weir_cond_wait_until(&pipeline->changed, &pipeline->mutex, until_us)) break;
    }
    weir_mutex_unlock(&pipeline->mutex);
}

/* --- waiting for what passes ------------------------------------------------------------------------------------ */

static void wait_out(weir_pipeline *pipeline, int64_t us) {
    int64_t until_us = weir_clock_mono_us(weir_clock_system()) + us;
    bool in_time = true;
    weir_mutex_lock(&pipeline->mutex);
    while (!pipeline->stopping && in_time)
        in_time = weir_cond_wait_until(&pipeline->changed, &pipeline->mutex, until_us);
    weir_mutex_unlock(&pipeline->mutex);
}

/* What a file's load is told at once, because somebody sits before it. What the store reads may be mended, too. */
static bool will_pass(const weir_worker *worker, weir_err err) {
    if (worker->from.stream == WEIR_PIPELINE_FILE) return false;
    switch (weir_err_code(err)) {
    case WEIR_ENOMEM:
    case WEIR_EFULL:
    case WEIR_EIO:
    case WEIR_EPERM:
    case WEIR_EBUSY:
    case WEIR_EUNAVAILABLE:
    case WEIR_EPOISONED:
        return true;
    case WEIR_ECORRUPT:
        return weir_graph_health(worker->pipeline->graph) != WEIR_OK;
    default:
        return false;
    }
}

bool weir_worker_waits(weir_worker *worker, weir_err err) {
    if (!err && worker->wait_us == 0) return false;
    if (!err) {
        worker->wait_us = 0;
        weir_worker_status_set(worker, WEIR_PIPELINE_RUNNING, WEIR_OK);
        return false;
    }
    if (!will_pass(worker, err) || weir_pipeline_stopping(worker->pipeline)) return false;
    worker->wait_us = worker->wait_us == 0             ? WAIT_US_MIN
                      : worker->wait_us < RETRY_US / 2 ? worker->wait_us * 2
                                                       : RETRY_US;
    weir_worker_status_set(worker, WEIR_PIPELINE_WAITING, err);
    wait_out(worker->pipeline, worker->wait_us);
    if (weir_err_is(err, WEIR_EPOISONED)) (void)weir_letters_resume(worker->pipeline->letters); /* the next try tells */
    return !weir_pipeline_stopping(worker->pipeline);
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

static weir_source_partition *part_of(const weir_worker *worker, uint32_t partition) {
    if (worker->from.stream == WEIR_PIPELINE_FILE) return worker->part_count ? &worker->parts[0] : NULL;
    return partition < worker->part_count ? &worker->parts[partition] : NULL;
}

static weir_err add_part(weir_worker *worker, const weir_source_partition *added) {
    WEIR_ASSERT(worker->from.stream == WEIR_PIPELINE_FILE || added->partition == worker->part_count);
    weir_mutex_lock(&worker->mutex);
    weir_source_partition *parts = weir_realloc_array(worker->parts, worker->part_count + 1, sizeof *parts);
    if (parts) {
        parts[worker->part_count++] = *added;
        worker->parts = parts;
    }
    weir_mutex_unlock(&worker->mutex);
    return parts ? WEIR_OK : WEIR_NOMEM("for partition %u", added->partition);
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

/* The next older mark; those that are not older say nothing more. */
static void add_mark(weir_consumer_start *start, weir_mark mark) {
    uint64_t limit = start->mark_count ? start->marks[start->mark_count - 1].offset - 1 : start->offset;
    if (!mark.check || !mark.offset || mark.offset > limit || start->mark_count == WEIR_CONSUMER_MARKS_MAX) return;
    start->marks[start->mark_count++] = mark;
}

static void add_marks(weir_consumer_start *start, const weir_position *position) {
    add_mark(start, (weir_mark){position->offset, position->check});
    for (uint32_t i = 0; i < WEIR_POSITIONS_OLDER; i++)
        add_mark(start, position->older[i]);
}

/* From where all shards have it: in a store that was just opened, what they have sealed. */
static weir_err first_start(weir_worker *worker, uint32_t partition, uint64_t begin, weir_consumer_start *startp) {
    weir_pipeline *pipeline = worker->pipeline;
    uint64_t applied = weir_graph_offset_applied(pipeline->graph, worker->graph_source, partition);
    weir_position position;
    bool seen = weir_positions_get(pipeline->positions, worker->graph_source, partition, &position);
    weir_err err = seen ? WEIR_OK : remember_begin(worker, begin, applied, &position);
    startp->offset = applied > position.begin ? applied : position.begin;
    if (worker->from.stream == WEIR_PIPELINE_KAFKA) add_marks(startp, &position);
    bool verified = position.older[0].check && position.older[0].offset < startp->offset;
    bool behind = position.check && position.offset < startp->offset; /* what is sealed beyond it was not compared */
    startp->known = verified ? position.older[0].offset : behind ? position.offset : UINT64_MAX;
    return err;
}

/* The stream is opened again: what it has must be what it had, up to the newest record, and at the newest that it was
 * known by before (weir_kafka_start). */
static void next_start(weir_worker *worker, const weir_source_partition *part, weir_consumer_start *startp) {
    weir_mark known = {0};
    weir_position position;
    weir_mutex_lock(&worker->mutex);
    uint64_t verified = part->verified;
    weir_mutex_unlock(&worker->mutex);
    startp->offset = part->next;
    startp->known = verified;
    add_mark(startp, part->newest);
    if (weir_marks_find(&part->marks, verified, &known)) add_mark(startp, known);
    if (weir_positions_get(worker->pipeline->positions, worker->graph_source, part->partition, &position))
        add_marks(startp, &position);
}

static weir_err start_at(void *context, uint32_t partition, uint64_t begin, weir_consumer_start *startp) {
    weir_worker *worker = context;
    const weir_source_partition *part = part_of(worker, partition);
    *startp = (weir_consumer_start){0};
    if (part) {
        next_start(worker, part, startp);
        weir_repeats_undo(part->repeats, part->next);
        return WEIR_OK;
    }
    weir_err err = first_start(worker, partition, begin, startp);
    if (err) return err;
    weir_source_partition added = {
        .partition = partition,
        .next = startp->offset,
        .newest = {.offset = startp->offset},
        .had = weir_graph_offset_applied(worker->pipeline->graph, worker->graph_source, partition),
        .read = startp->offset,
        .end = startp->offset,
        .stable = startp->offset,
        .verified = startp->known < startp->offset ? startp->known : startp->offset,
        .event_time_us = INT64_MIN};
    weir_letters_known(worker->pipeline->letters, worker->graph_source, partition, startp->offset, &added.known,
                       &added.known_count);
    err = weir_repeats_open(weir_graph_event_window(worker->pipeline->graph), &added.repeats);
    if (!err)
        err = weir_repeats_load(added.repeats, worker->pipeline->graph, worker->graph_source, partition,
                                added.had > added.next ? added.had : added.next);
    if (!err) err = add_part(worker, &added);
    if (err) weir_repeats_close(added.repeats);
    return err;
}

/* A topic that has fewer partitions than were read is another one. */
static weir_err check_partitions(weir_worker *worker) {
    uint32_t seen = weir_positions_partitions(worker->pipeline->positions, worker->graph_source);
    if (worker->from.stream == WEIR_PIPELINE_FILE || seen <= worker->part_count) return WEIR_OK;
    worker->of_stream = worker->from.stream == WEIR_PIPELINE_KAFKA;
    return WEIR_ERR(
        worker->of_stream && worker->tries < STALE_TRIES ? WEIR_EUNAVAILABLE : WEIR_EDATA,
        "topic '%s' has %u partitions, and the store has read %u: it was recreated. Start an empty store, or "
        "bring the old topic back",
        worker->schema_source->topic, worker->part_count, seen);
}

static bool is_to_stop(void *context) {
    return weir_pipeline_stopping(((weir_worker *)context)->pipeline);
}

/* The first tries are short, so that a source that cannot be reached says so soon. */
static int64_t open_timeout_us(const weir_worker *worker) {
    int64_t most_us = worker->pipeline->kafka_timeout_us, us = OPEN_US << (worker->tries < 4 ? worker->tries : 4);
    return us < most_us ? us : most_us;
}

static weir_err open_stream(weir_worker *worker) {
    weir_pipeline *pipeline = worker->pipeline;
    const weir_consumer_kafka_opts kafka = {.brokers = pipeline->brokers,
                                            .topic = worker->schema_source->topic,
                                            .timeout_us = open_timeout_us(worker),
                                            .buffer_bytes = pipeline->kafka_buffer_bytes,
                                            .told = weir_worker_told,
                                            .stop = is_to_stop};
    weir_err err = WEIR_OK;
    switch (worker->from.stream) {
    case WEIR_PIPELINE_EVENTLOG:
        err = weir_consumer_eventlog_open(worker->from.log, start_at, worker, &worker->stream);
        break;
    case WEIR_PIPELINE_KAFKA:
        err = weir_consumer_kafka_open(&kafka, start_at, worker, &worker->stream);
        break;
    case WEIR_PIPELINE_FILE:
        err = weir_consumer_file_open(worker->from.path, worker->schema_source, worker->file_partition, start_at,
                                      worker, &worker->stream);
        break;
    }
    worker->of_stream = err != WEIR_OK;
    if (!err) err = check_partitions(worker);
    return err ? err : weir_positions_save(pipeline->positions); /* before the first span can be sealed */
}

static void close_stream(weir_worker *worker) {
    if (worker->stream) worker->stream->ops->close(worker->stream);
    worker->stream = NULL;
}

/* --- a turn ----------------------------------------------------------------------------------------------------- */

/* Indices of the records, those of one partition together, in their order: counted, then placed. */
static weir_err group(weir_worker *worker, const weir_consumer_record *records, size_t count) {
    memset(worker->group_ends, 0, worker->part_count * sizeof *worker->group_ends);
    for (size_t i = 0; i < count; i++) {
        const weir_source_partition *part = part_of(worker, records[i].partition);
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

static weir_err run_all(weir_worker *worker, const weir_consumer_record *records, size_t count) {
    weir_err err = group(worker, records, count);
    uint32_t begin = 0;
    for (uint32_t i = 0; !err && begin < count; i++) {
        uint32_t end = worker->group_ends[i];
        if (end > begin)
            err =
                weir_source_run_records(worker->run, &worker->parts[i], records, worker->grouped + begin, end - begin);
        begin = end;
    }
    return err;
}

static void pass_letters(weir_pipeline *pipeline) {
    weir_positions_letters letters = weir_positions_letters_get(pipeline->positions);
    if (!weir_letters_passed(pipeline->letters, pipeline->graph, &letters.from)) return;
    weir_positions_letters_set(pipeline->positions, letters);
}

static void see_end(weir_worker *worker, weir_source_partition *part) {
    const weir_consumer_ops *ops = worker->stream ? worker->stream->ops : NULL;
    uint64_t end = ops && ops->end ? ops->end(worker->stream, part->partition) : 0;
    weir_mutex_lock(&worker->mutex);
    if (end > part->end) part->end = end;
    if (ops && !ops->clear) part->verified = UINT64_MAX; /* a log of ours, a file: known by its id */
    weir_mutex_unlock(&worker->mutex);
}

static void see_ends(weir_worker *worker) {
    for (uint32_t i = 0; i < worker->part_count; i++)
        see_end(worker, &worker->parts[i]);
}

/* Whether the graph may wait for what this partition says of the time. One that is away, or has failed, keeps the state
 * that it had: it is not known to be at its end. */
static weir_err tell_clock(weir_worker *worker, weir_source_partition *part) {
    const weir_pipeline *pipeline = worker->pipeline;
    weir_clock_state state = WEIR_CLOCK_WAITING;
    if (!worker->stream) return WEIR_OK;
    int64_t now_us = weir_clock_mono_us(pipeline->clock);
    weir_mutex_lock(&worker->mutex);
    bool told = worker->from.stream != WEIR_PIPELINE_KAFKA || worker->contact_wall_us;
    bool more = !told || part->end > part->next;
    bool away = worker->contact_wall_us && weir_worker_contact_is_old(worker);
    weir_mutex_unlock(&worker->mutex);
    if (away) return WEIR_OK;
    if (more || part->quiet_at != part->next) {
        part->quiet_at = part->next;
        part->quiet_us = now_us;
    }
    if (now_us - part->quiet_us >= pipeline->idle_us || worker->stream->ops->ends) state = WEIR_CLOCK_IDLE;
    if (more) state = WEIR_CLOCK_READING;
    return weir_graph_clock_state(pipeline->graph, worker->graph_source, part->partition, state);
}

/* All is read. Of a topic its watch says how far it goes, and what is hidden in transactions is not read. */
static void at_end(weir_worker *worker) {
    see_ends(worker);
    if (worker->from.stream == WEIR_PIPELINE_KAFKA) return;
    weir_mutex_lock(&worker->mutex);
    for (uint32_t i = 0; i < worker->part_count; i++)
        worker->parts[i].end = worker->parts[i].read;
    weir_mutex_unlock(&worker->mutex);
}

/* Of what is sealed, the newest record; those that were verified are kept behind it. One of another log would
 * otherwise be compared with that other from then on. */
static weir_err keep_mark(weir_worker *worker, weir_source_partition *part) {
    weir_pipeline *pipeline = worker->pipeline;
    uint64_t sealed = weir_graph_offset_sealed(pipeline->graph, worker->graph_source, part->partition);
    weir_position position;
    weir_mark mark;
    weir_mutex_lock(&worker->mutex);
    uint64_t verified = part->verified;
    weir_mutex_unlock(&worker->mutex);
    if (!weir_marks_take(&part->marks, sealed, &mark.offset, &mark.check)) return WEIR_OK;
    weir_positions_get(pipeline->positions, worker->graph_source, part->partition, &position);
    weir_position_mark(&position, mark, verified, part->marked++);
    return weir_positions_put(pipeline->positions, &position);
}

/* What stands behind the last record, marks of transactions and what they took back, is passed as records are: or else
 * its removal by retention would look like that of records which were missed. All that was polled is handed over. */
static weir_err pass_clear(weir_worker *worker) {
    const weir_consumer_ops *ops = worker->stream->ops;
    weir_err err = WEIR_OK;
    for (uint32_t i = 0; !err && ops->clear && i < worker->part_count; i++) {
        weir_source_partition *part = &worker->parts[i];
        uint64_t clear = ops->clear(worker->stream, part->partition);
        if (clear > part->next) err = weir_source_run_clear(worker->run, part, clear);
    }
    return err;
}

static bool ticks(const weir_worker *worker, int64_t now_us) {
    return now_us - worker->ticked_us >= TICK_US;
}

/* What is done once a second: ends for those who ask how far behind we are, positions for the next start. */
static weir_err tick(weir_worker *worker, bool at_once) {
    weir_pipeline *pipeline = worker->pipeline;
    int64_t now_us = weir_clock_mono_us(weir_clock_system());
    weir_err err = WEIR_OK;
    if (!at_once && !ticks(worker, now_us)) return WEIR_OK;
    worker->ticked_us = now_us;
    see_ends(worker);
    for (uint32_t i = 0; !err && i < worker->part_count; i++) {
        err = tell_clock(worker, &worker->parts[i]);
        if (!err) err = keep_mark(worker, &worker->parts[i]);
    }
    if (!err) pass_letters(pipeline);
    return err ? err : weir_positions_save(pipeline->positions);
}

static weir_err tick_well(weir_worker *worker, bool at_once) {
    weir_err err;
    do {
        err = tick(worker, at_once);
        at_once = true;
    } while (weir_worker_waits(worker, err));
    return err;
}

/* *idle_usp: how long to sleep when nothing came; *endedp: nothing will come any more. */
static weir_err turn(weir_worker *worker, int64_t *idle_usp, bool *endedp) {
    WEIR_ON_ROLE(INGEST);
    const weir_consumer_record *records;
    uint64_t drains;
    size_t count;
    bool empty;
    uint64_t wakes = wakes_and_drains(worker->pipeline, &drains);
    weir_err err = worker->stream->ops->poll(worker->stream, &records, &count, &empty);
    worker->of_stream = err != WEIR_OK;
    if (!err && count) err = run_all(worker, records, count);
    if (!err && (empty || ticks(worker, weir_clock_mono_us(weir_clock_system())))) err = pass_clear(worker);
    if (!err) err = tick_well(worker, empty && worker->drained < drains); /* who drains wants all of it seen */
    if (err) return err;
    *endedp = empty && worker->stream->ops->ends;
    if (count) *idle_usp = IDLE_US_MIN;
    if (count) worker->refused_us = 0;
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
    if (!ends) return WEIR_NOMEM("for %u partitions", worker->part_count);
    worker->group_ends = ends;
    see_ends(worker); /* before anybody asks how far it is */
    for (uint32_t i = 0; !err && i < worker->part_count; i++) {
        weir_source_partition *part = &worker->parts[i];
        part->quiet_us = weir_clock_mono_us(worker->pipeline->clock);
        part->quiet_at = part->next;
        err = tell_clock(worker, part);
    }
    if (err) return err;
    worker->tries = 0;
    weir_worker_status_set(worker, WEIR_PIPELINE_RUNNING, WEIR_OK);
    while (!err && !*endedp && !weir_pipeline_stopping(worker->pipeline))
        err = turn(worker, &idle_us, endedp);
    if (!err || worker->of_stream) weir_err_keep(&err, pass_clear(worker)); /* nothing is in hand */
    return err;
}

/* What ends by itself, and what the brokers have refused for less than REFUSED_US. What the graph or the letters say is
 * not of the stream. */
static bool is_worth_waiting(weir_worker *worker, weir_err err) {
    int64_t now_us = weir_clock_mono_us(weir_clock_system());
    if (worker->from.stream != WEIR_PIPELINE_KAFKA || !worker->of_stream) return false;
    bool refused = weir_err_is(err, WEIR_EPERM);
    if (!refused) worker->refused_us = 0;
    if (refused && !worker->refused_us) worker->refused_us = now_us;
    if (refused) return now_us - worker->refused_us < REFUSED_US;
    return weir_err_is(err, WEIR_EUNAVAILABLE) || weir_err_is(err, WEIR_ETIMEOUT) || weir_err_is(err, WEIR_ENOTFOUND) ||
           weir_err_is(err, WEIR_EORDER);
}

/* The stream is to be opened anew at once, which compares what was read (K6); the status stays. */
static bool is_to_be_opened_again(const weir_worker *worker, weir_err err) {
    return worker->from.stream == WEIR_PIPELINE_KAFKA && worker->of_stream && weir_err_is(err, WEIR_ECLOSED);
}

static void log_again(const weir_worker *worker, weir_err err) {
    char sentence[WEIR_ERR_SENTENCE_MAX];
    weir_err_sentence(err, sentence, sizeof sentence);
    WEIR_LOG(INFO, "ingest.opened_again", "a topic is opened again, and what was read of it compared",
             WEIR_TEXT("source", worker->schema_source->name), WEIR_TEXT("because", sentence));
}

static void finish(weir_worker *worker, weir_err err, bool ended) {
    if (weir_err_is(err, WEIR_ECANCELLED) && weir_pipeline_stopping(worker->pipeline))
        err = WEIR_OK; /* the log has the rest */
    if (worker->of_stream && weir_err_is(err, WEIR_ECORRUPT)) err = weir_worker_doubt(worker, err);
    weir_err_keep(&err, tick(worker, true));
    worker->wait_us = 0;
    weir_pipeline_status status = err ? WEIR_PIPELINE_FAILED : ended ? WEIR_PIPELINE_ENDED : WEIR_PIPELINE_STOPPED;
    close_stream(worker);
    weir_worker_status_set(worker, status, err);
}

void weir_worker_main(void *context) {
    weir_worker *worker = context;
    bool ended = false;
    weir_err err = WEIR_OK;
    do {
        uint64_t drains;
        err = read_on(worker, &ended);
        bool again = is_to_be_opened_again(worker, err), waits = !again && is_worth_waiting(worker, err);
        bool of_brokers = worker->from.stream == WEIR_PIPELINE_KAFKA && worker->of_stream;
        if (err && !again && !waits && !of_brokers && weir_worker_waits(worker, err)) {
            close_stream(worker); /* opened again, it goes on behind what was handed over */
            continue;
        }
        if (!again && !waits) break;
        close_stream(worker);
        if (again) {
            log_again(worker, err);
        } else {
            weir_worker_status_set(worker, WEIR_PIPELINE_WAITING, err);
            worker->tries++;
        }
        err = WEIR_OK;
        idle(worker->pipeline, wakes_and_drains(worker->pipeline, &drains), again ? AGAIN_US : RETRY_US);
    } while (!weir_pipeline_stopping(worker->pipeline));
    if (weir_pipeline_stopping(worker->pipeline) && worker->of_stream && weir_err_is(err, WEIR_ECANCELLED))
        err = WEIR_OK;
    finish(worker, err, ended);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker.c - the thread of a source.
 *
 *   open consumer ──► turn: poll, one span or more a partition ──► … ──► stop, end of the file, or failure
 *        ▲                 │ broker or topic away; another connection, leader or partition
 *        └───── wait ◄─────┘
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

/* --- waiting ---------------------------------------------------------------------------------------------------- */

/* What passes by itself. Who loads a file waits for it, and is told at once. Damage in the store may be repaired
 * meanwhile, and that may be over before it is asked for here. */
static bool worker_error_passes(const weir_worker *worker, weir_err err) {
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
        return worker->of_damage || weir_graph_health(worker->pipeline->graph);
    default:
        return false;
    }
}

bool weir_worker_waits(weir_worker *worker, weir_err err) {
    if (!err && worker->wait_us == 0) return false; /* once a record and more */
    WEIR_ON_ROLE(INGEST);
    if (!err) {
        worker->wait_us = 0;
        weir_worker_status_set(worker, WEIR_PIPELINE_RUNNING, WEIR_OK);
        return false;
    }
    if (!worker_error_passes(worker, err) || weir_pipeline_stopping(worker->pipeline)) return false;
    worker->wait_us = weir_pipeline_longer_wait(worker->wait_us, WAIT_US_MIN, RETRY_US);
    weir_worker_status_set(worker, WEIR_PIPELINE_WAITING, err);
    bool goes_on = weir_pipeline_sleep(worker->pipeline, worker->wait_us);
    if (weir_err_is(err, WEIR_EPOISONED)) (void)weir_letters_resume(worker->pipeline->letters); /* the next try tells */
    return goes_on;
}

/* Counts of what others have asked for: to be woken, and a drain. */
static uint64_t worker_wakes(weir_pipeline *pipeline, uint64_t *drainsp) {
    weir_mutex_lock(&pipeline->mutex);
    uint64_t wakes = pipeline->wakes;
    *drainsp = pipeline->drains;
    weir_mutex_unlock(&pipeline->mutex);
    return wakes;
}

/* Until the time has passed, or something was asked for since `wakes` was read. */
static void worker_idle(weir_pipeline *pipeline, uint64_t wakes, int64_t us) {
    int64_t until_us = weir_clock_mono_us(weir_clock_system()) + us;
    weir_mutex_lock(&pipeline->mutex);
    while (!pipeline->stopping && pipeline->wakes == wakes) {
        if (!weir_cond_wait_until(&pipeline->changed, &pipeline->mutex, until_us)) break;
    }
    weir_mutex_unlock(&pipeline->mutex);
}

/* --- where to begin --------------------------------------------------------------------------------------------- */

static weir_source_partition *worker_partition(const weir_worker *worker, uint32_t partition) {
    if (worker->from.stream == WEIR_PIPELINE_FILE) return worker->partition_count ? &worker->partitions[0] : NULL;
    return partition < worker->partition_count ? &worker->partitions[partition] : NULL;
}

/* The next older mark; those that are not older say nothing more. */
static void worker_add_mark(weir_consumer_start *start, weir_mark mark) {
    WEIR_ASSERT(start->mark_count <= WEIR_KAFKA_MARKS_MAX);
    uint64_t limit = start->mark_count ? start->marks[start->mark_count - 1].offset - 1 : start->offset;
    if (!mark.check || !mark.offset || mark.offset > limit || start->mark_count == WEIR_KAFKA_MARKS_MAX) return;
    start->marks[start->mark_count++] = mark;
}

static void worker_add_marks(weir_consumer_start *start, const weir_position *position) {
    worker_add_mark(start, (weir_mark){position->offset, position->check});
    for (uint32_t i = 0; i < WEIR_POSITIONS_OLDER; i++)
        worker_add_mark(start, position->older[i]);
}

/* From where all shards have it: in a store that was just opened, what they have sealed. A partition that the store has
 * never seen begins where the log does. */
static weir_err worker_first_start(weir_worker *worker, uint32_t partition, uint64_t begin,
                                   weir_consumer_start *startp) {
    weir_pipeline *pipeline = worker->pipeline;
    uint64_t applied = weir_graph_offset_applied(pipeline->graph, worker->graph_source, partition);
    weir_position position;
    weir_err err = WEIR_OK;
    if (!weir_positions_get(pipeline->positions, worker->graph_source, partition, &position)) {
        if (applied == 0) position.begin = position.offset = begin;
        if (applied == 0 && begin > 0)
            WEIR_LOG(WARN, "ingest.begins_late", "the store begins after records that retention has removed",
                     WEIR_TEXT("source", worker->schema_source->name), WEIR_U64("partition", partition),
                     WEIR_U64("offset", begin));
        err = weir_positions_put(pipeline->positions, &position);
    }
    startp->offset = applied > position.begin ? applied : position.begin;
    if (worker->from.stream == WEIR_PIPELINE_KAFKA) worker_add_marks(startp, &position);
    bool verified = position.older[0].check && position.older[0].offset < startp->offset;
    bool behind = position.check && position.offset < startp->offset; /* what is sealed beyond it was not compared */
    startp->known = verified ? position.older[0].offset : behind ? position.offset : UINT64_MAX;
    return err;
}

/* The consumer is opened again: what the log has must be what it had, up to the newest record, and at the newest that
 * it was known by before (weir_kafka_start). */
static void worker_next_start(weir_worker *worker, const weir_source_partition *part, weir_consumer_start *startp) {
    weir_mark known = {0};
    weir_position position;
    weir_mutex_lock(&worker->mutex);
    uint64_t verified = part->verified;
    weir_mutex_unlock(&worker->mutex);
    startp->offset = part->next;
    startp->known = verified;
    worker_add_mark(startp, part->newest);
    if (weir_marks_find(&part->marks, verified, &known)) worker_add_mark(startp, known);
    if (weir_positions_get(worker->pipeline->positions, worker->graph_source, part->partition, &position))
        worker_add_marks(startp, &position);
}

/* The state of a partition that was not read before, with the dead letters and the event ids that it had. */
static weir_err worker_add_partition(weir_worker *worker, uint32_t partition, const weir_consumer_start *start) {
    weir_pipeline *pipeline = worker->pipeline;
    weir_source_partition added = {.partition = partition,
                                   .next = start->offset,
                                   .newest = {.offset = start->offset},
                                   .had = weir_graph_offset_applied(pipeline->graph, worker->graph_source, partition),
                                   .read = start->offset,
                                   .end = start->offset,
                                   .stable = start->offset,
                                   .verified = start->known < start->offset ? start->known : start->offset,
                                   .event_time_us = INT64_MIN};
    WEIR_ASSERT(worker->from.stream == WEIR_PIPELINE_FILE || partition == worker->partition_count);
    weir_letters_known(pipeline->letters, worker->graph_source, partition, start->offset, &added.known,
                       &added.known_count);
    weir_err err = weir_repeats_open(weir_graph_event_window(pipeline->graph), &added.repeats);
    if (!err)
        err = weir_repeats_load(added.repeats, pipeline->graph, worker->graph_source, partition,
                                added.had > added.next ? added.had : added.next);
    if (!err) {
        weir_mutex_lock(&worker->mutex);
        weir_source_partition *grown =
            weir_realloc_array(worker->partitions, worker->partition_count + 1, sizeof *grown);
        if (grown) {
            grown[worker->partition_count++] = added;
            worker->partitions = grown;
        }
        weir_mutex_unlock(&worker->mutex);
        if (!grown) err = WEIR_NOMEM("for partition %u", partition);
    }
    if (err) weir_repeats_close(added.repeats);
    return err;
}

static weir_err worker_start_at(void *context, uint32_t partition, uint64_t begin, weir_consumer_start *startp) {
    weir_worker *worker = context;
    const weir_source_partition *part = worker_partition(worker, partition);
    *startp = (weir_consumer_start){0};
    if (part) {
        worker_next_start(worker, part, startp);
        weir_repeats_undo(part->repeats, part->next);
        return WEIR_OK;
    }
    weir_err err = worker_first_start(worker, partition, begin, startp);
    if (!err) err = worker_add_partition(worker, partition, startp);
    worker->of_start = err != WEIR_OK;
    worker->of_damage = weir_err_is(err, WEIR_ECORRUPT) && weir_graph_health(worker->pipeline->graph);
    return err;
}

/* --- the consumer ----------------------------------------------------------------------------------------------- */

static bool worker_is_to_stop(void *context) {
    return weir_pipeline_stopping(((weir_worker *)context)->pipeline);
}

/* A topic that has fewer partitions than were read is another one. */
static weir_err worker_check_partitions(weir_worker *worker) {
    uint32_t seen = weir_positions_partitions(worker->pipeline->positions, worker->graph_source);
    if (worker->from.stream == WEIR_PIPELINE_FILE || seen <= worker->partition_count) return WEIR_OK;
    worker->of_consumer = worker->from.stream == WEIR_PIPELINE_KAFKA;
    return WEIR_ERR(
        worker->of_consumer && worker->tries < STALE_TRIES ? WEIR_EUNAVAILABLE : WEIR_EDATA,
        "topic '%s' has %u partitions, and the store has read %u: it was recreated. Start an empty store, or "
        "bring the old topic back",
        worker->schema_source->topic, worker->partition_count, seen);
}

static weir_err worker_open_consumer(weir_worker *worker) {
    weir_pipeline *pipeline = worker->pipeline;
    /* The first tries are short, so that a source that cannot be reached says so soon. */
    int64_t timeout_us = OPEN_US << (worker->tries < 4 ? worker->tries : 4);
    if (timeout_us > pipeline->kafka_timeout_us) timeout_us = pipeline->kafka_timeout_us;
    const weir_kafka_consumer_opts kafka = {.brokers = pipeline->brokers,
                                            .topic = worker->schema_source->topic,
                                            .timeout_us = timeout_us,
                                            .buffer_bytes = pipeline->kafka_buffer_bytes,
                                            .start_at = worker_start_at,
                                            .told = weir_worker_told,
                                            .stop = worker_is_to_stop,
                                            .context = worker};
    weir_err err = WEIR_OK;
    WEIR_ASSERT(!worker->consumer);
    worker->of_start = worker->of_damage = false;
    switch (worker->from.stream) {
    case WEIR_PIPELINE_EVENTLOG:
        err = weir_consumer_eventlog_open(worker->from.log, worker_start_at, worker, &worker->consumer);
        break;
    case WEIR_PIPELINE_KAFKA:
        err = weir_consumer_kafka_open(&kafka, &worker->consumer);
        break;
    case WEIR_PIPELINE_FILE:
        err = weir_consumer_file_open(worker->from.path, worker->schema_source, worker->file_partition, worker_start_at,
                                      worker, &worker->consumer);
        break;
    }
    worker->of_consumer = err && !worker->of_start;
    if (!err) err = worker_check_partitions(worker);
    return err ? err : weir_positions_save(pipeline->positions); /* before the first span can be sealed */
}

static void worker_close_consumer(weir_worker *worker) {
    if (worker->consumer) worker->consumer->ops->close(worker->consumer);
    worker->consumer = NULL;
}

/* --- a turn ----------------------------------------------------------------------------------------------------- */

/* Partition by partition, the records of each in their order. */
static weir_err worker_submit(weir_worker *worker, const weir_consumer_record *records, size_t count) {
    /* Their indices, grouped by partition: counted, then placed. */
    memset(worker->group_ends, 0, worker->partition_count * sizeof *worker->group_ends);
    for (size_t i = 0; i < count; i++) {
        const weir_source_partition *part = worker_partition(worker, records[i].partition);
        if (!part) return WEIR_ERR(WEIR_EINTERNAL, "a record of partition %u, which is not read", records[i].partition);
        worker->group_ends[part - worker->partitions]++;
    }
    uint32_t end = 0;
    for (uint32_t i = 0; i < worker->partition_count; i++) {
        uint32_t size = worker->group_ends[i];
        worker->group_ends[i] = end; /* where the group begins, until it is filled */
        end += size;
    }
    WEIR_ASSERT(end == count && count <= WEIR_CONSUMER_RECORDS_MAX);
    for (size_t i = 0; i < count; i++) {
        const weir_source_partition *part = worker_partition(worker, records[i].partition);
        worker->grouped[worker->group_ends[part - worker->partitions]++] = (uint32_t)i;
    }

    weir_err err = WEIR_OK;
    for (uint32_t i = 0, begin = 0; !err && begin < count; begin = worker->group_ends[i++]) {
        uint32_t size = worker->group_ends[i] - begin;
        if (size == 0) continue;
        err = weir_source_run_records(worker->run, &worker->partitions[i], records, worker->grouped + begin, size);
    }
    return err;
}

/* Asks the consumer how far each partition goes. Of a topic of Kafka its watch says so. */
static void worker_see_ends(weir_worker *worker) {
    const weir_consumer_ops *ops = worker->consumer ? worker->consumer->ops : NULL;
    for (uint32_t i = 0; ops && i < worker->partition_count; i++) {
        weir_source_partition *part = &worker->partitions[i];
        uint64_t end = ops->end ? ops->end(worker->consumer, part->partition) : 0;
        weir_mutex_lock(&worker->mutex);
        if (end > part->end) part->end = end;
        if (!ops->clear) part->verified = UINT64_MAX; /* a log of ours, a file: known by its id */
        weir_mutex_unlock(&worker->mutex);
    }
}

/* Whether the graph may wait for what this partition says of the time. One that is away, or has failed, keeps the state
 * that it had: it is not known to be at its end. */
static weir_err worker_tell_clock(weir_worker *worker, weir_source_partition *part) {
    const weir_pipeline *pipeline = worker->pipeline;
    weir_clock_state state = WEIR_CLOCK_WAITING;
    if (!worker->consumer) return WEIR_OK;
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
    if (now_us - part->quiet_us >= pipeline->idle_us || worker->consumer->ops->ends) state = WEIR_CLOCK_IDLE;
    if (more) state = WEIR_CLOCK_READING;
    return weir_graph_clock_state(pipeline->graph, worker->graph_source, part->partition, state);
}

/* Of what is sealed, the newest record; those that were verified are kept as older ones. Without them, a record of
 * another log would be all that the next start could compare. */
static weir_err worker_keep_mark(weir_worker *worker, weir_source_partition *part) {
    weir_pipeline *pipeline = worker->pipeline;
    uint64_t sealed = weir_graph_offset_sealed(pipeline->graph, worker->graph_source, part->partition);
    weir_position position;
    weir_mark mark;
    weir_mutex_lock(&worker->mutex);
    uint64_t verified = part->verified;
    weir_mutex_unlock(&worker->mutex);
    if (!weir_marks_take(&part->marks, sealed, &mark)) return WEIR_OK;
    WEIR_ASSERT(mark.offset <= part->next);
    weir_positions_get(pipeline->positions, worker->graph_source, part->partition, &position);
    weir_position_mark(&position, mark, verified, part->marked++);
    return weir_positions_put(pipeline->positions, &position);
}

/* What follows the last record, marks of transactions and what they took back, is passed as records are: or else its
 * removal by retention would look like that of records which were missed. All that was polled is handed over. */
static weir_err worker_pass_clear(weir_worker *worker) {
    const weir_consumer_ops *ops = worker->consumer->ops;
    weir_err err = WEIR_OK;
    for (uint32_t i = 0; !err && ops->clear && i < worker->partition_count; i++) {
        weir_source_partition *part = &worker->partitions[i];
        uint64_t clear = ops->clear(worker->consumer, part->partition);
        if (clear > part->next) err = weir_source_run_clear(worker->run, part, clear);
    }
    return err;
}

static bool worker_tick_is_due(const weir_worker *worker) {
    return weir_clock_mono_us(weir_clock_system()) - worker->ticked_us >= TICK_US;
}

/* What is done once a second: ends for those who ask how far the source has been read, positions for the next start. */
static weir_err worker_tick(weir_worker *worker) {
    weir_pipeline *pipeline = worker->pipeline;
    weir_err err = WEIR_OK;
    worker->ticked_us = weir_clock_mono_us(weir_clock_system());
    worker_see_ends(worker);
    for (uint32_t i = 0; !err && i < worker->partition_count; i++) {
        err = worker_tell_clock(worker, &worker->partitions[i]);
        if (!err) err = worker_keep_mark(worker, &worker->partitions[i]);
    }
    if (err) return err;
    weir_positions_letters letters = weir_positions_letters_get(pipeline->positions);
    if (weir_letters_passed(pipeline->letters, pipeline->graph, &letters.from))
        weir_positions_letters_set(pipeline->positions, letters);
    return weir_positions_save(pipeline->positions);
}

/* *idle_usp: how long to sleep when nothing came; *endedp: nothing will come any more. */
static weir_err worker_turn(weir_worker *worker, int64_t *idle_usp, bool *endedp) {
    WEIR_ON_ROLE(INGEST);
    const weir_consumer_record *records;
    uint64_t drains;
    size_t count;
    bool empty;
    uint64_t wakes = worker_wakes(worker->pipeline, &drains);
    weir_err err = worker->consumer->ops->poll(worker->consumer, &records, &count, &empty);
    worker->of_consumer = err != WEIR_OK;
    if (!err && count) err = worker_submit(worker, records, count);
    if (!err && (empty || worker_tick_is_due(worker))) err = worker_pass_clear(worker);
    if (err) return err;

    bool news = empty && worker->drained < drains; /* who drains wants all of it seen */
    const bool due = news || worker_tick_is_due(worker);
    do
        err = due ? worker_tick(worker) : WEIR_OK;
    while (weir_worker_waits(worker, err)); /* also ends a wait that began before the consumer was opened */
    if (err) return err;
    if (count) *idle_usp = IDLE_US_MIN;
    if (count) worker->refused_us = 0;
    *endedp = empty && worker->consumer->ops->ends;
    if (!empty) return WEIR_OK;

    /* At the end. Of a topic its watch says how far it goes, and what is hidden in transactions is not read. */
    worker_see_ends(worker);
    weir_mutex_lock(&worker->mutex);
    for (uint32_t i = 0; worker->from.stream != WEIR_PIPELINE_KAFKA && i < worker->partition_count; i++)
        worker->partitions[i].end = worker->partitions[i].read;
    if (!*endedp) worker->drained = drains;
    weir_mutex_unlock(&worker->mutex);
    if (*endedp) return WEIR_OK;
    if (news) weir_pipeline_changed(worker->pipeline);
    worker_idle(worker->pipeline, wakes, *idle_usp);
    if (*idle_usp < IDLE_US_MAX) *idle_usp *= 2;
    return WEIR_OK;
}

/* --- the thread ------------------------------------------------------------------------------------------------- */

/* Opens the consumer, and takes turns until the pipeline stops, the file ends or something fails. */
static weir_err worker_read(weir_worker *worker, bool *endedp) {
    int64_t idle_us = IDLE_US_MIN;
    weir_err err = worker_open_consumer(worker);
    if (err) return err;
    uint32_t *ends = weir_realloc_array(worker->group_ends, worker->partition_count, sizeof *ends);
    if (!ends) return WEIR_NOMEM("for %u partitions", worker->partition_count);
    worker->group_ends = ends;
    worker_see_ends(worker); /* before anybody asks how far it is */
    for (uint32_t i = 0; !err && i < worker->partition_count; i++) {
        weir_source_partition *part = &worker->partitions[i];
        part->quiet_us = weir_clock_mono_us(worker->pipeline->clock);
        part->quiet_at = part->next;
        err = worker_tell_clock(worker, part);
    }
    if (err) return err;
    worker->tries = 0;
    weir_worker_status_set(worker, WEIR_PIPELINE_RUNNING, WEIR_OK);
    while (!err && !*endedp && !weir_pipeline_stopping(worker->pipeline))
        err = worker_turn(worker, &idle_us, endedp);
    if (!err || worker->of_consumer) weir_err_keep(&err, worker_pass_clear(worker)); /* nothing is in hand */
    return err;
}

/* What ends by itself, and what the brokers have refused for less than REFUSED_US. */
static bool worker_brokers_may_come_back(weir_worker *worker, weir_err err) {
    int64_t now_us = weir_clock_mono_us(weir_clock_system());
    bool refused = weir_err_is(err, WEIR_EPERM);
    if (!refused) worker->refused_us = 0;
    if (refused && !worker->refused_us) worker->refused_us = now_us;
    if (refused) return now_us - worker->refused_us < REFUSED_US;
    return weir_err_is(err, WEIR_EUNAVAILABLE) || weir_err_is(err, WEIR_ETIMEOUT) || weir_err_is(err, WEIR_ENOTFOUND) ||
           weir_err_is(err, WEIR_EORDER);
}

void weir_worker_main(void *context) {
    weir_worker *worker = context;
    weir_pipeline *pipeline = worker->pipeline;
    bool ended = false;
    weir_err err;
    do {
        err = worker_read(worker, &ended);
        if (!err) break;
        uint64_t drains;
        bool of_brokers = worker->from.stream == WEIR_PIPELINE_KAFKA && worker->of_consumer;
        if (!of_brokers) {
            if (!weir_worker_waits(worker, err)) break;
            worker_close_consumer(worker); /* opened again, it goes on after what was handed over */
            continue;
        }
        bool again = weir_err_is(err, WEIR_ECLOSED);
        if (!again && !worker_brokers_may_come_back(worker, err)) break;
        worker_close_consumer(worker);
        if (again) { /* at once, which compares what was read (KAFKA-K6); the status stays */
            char sentence[WEIR_ERR_SENTENCE_MAX];
            weir_err_sentence(err, sentence, sizeof sentence);
            WEIR_LOG(INFO, "ingest.opened_again", "a topic is opened again, and the records read from it are compared",
                     WEIR_TEXT("source", worker->schema_source->name), WEIR_TEXT("because", sentence));
        } else {
            weir_worker_status_set(worker, WEIR_PIPELINE_WAITING, err);
            worker->tries++;
        }
        err = WEIR_OK;
        worker_idle(pipeline, worker_wakes(pipeline, &drains), again ? AGAIN_US : RETRY_US);
    } while (!weir_pipeline_stopping(pipeline));

    if (weir_err_is(err, WEIR_ECANCELLED) && weir_pipeline_stopping(pipeline)) err = WEIR_OK; /* the log has the rest */
    if (worker->of_consumer && weir_err_is(err, WEIR_ECORRUPT)) err = weir_worker_doubt(worker, err);
    weir_err_keep(&err, worker_tick(worker));
    worker->wait_us = 0;
    worker_close_consumer(worker);
    weir_worker_status_set(worker,
                           err     ? WEIR_PIPELINE_FAILED
                           : ended ? WEIR_PIPELINE_ENDED
                                   : WEIR_PIPELINE_STOPPED,
                           err);
}

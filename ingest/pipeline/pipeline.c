/* SPDX-License-Identifier: Apache-2.0 */
/* pipeline.c - opening, starting and stopping the sources; how they are. */
#include <stdio.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>

#include "pipeline_private.h"

#define KAFKA_TIMEOUT_DEFAULT (30 * WEIR_US_PER_S)
#define IDLE_DEFAULT          (300 * WEIR_US_PER_S)
#define FILE_PREFIX           "file/" /* no topic has a '/' in its name */

/* What tells a topic of Kafka, or a row of files, from an event log's topic of the same name: that has its creation
 * id. */
#define IDENTITY_KAFKA 0x004b41464b410001ull
#define IDENTITY_FILE  0x0046494c45530001ull

/* --- sources ---------------------------------------------------------------------------------------------------- */

/* The graph's number of a source; files go by names that no topic has. */
static weir_err pipeline_register(weir_graph *graph, const weir_schema_source *source, uint64_t identity,
                                  uint32_t *numberp) {
    char name[sizeof FILE_PREFIX + WEIR_SCHEMA_TOPIC_BYTES_MAX];
    snprintf(name, sizeof name, "%s%s", identity == IDENTITY_FILE ? FILE_PREFIX : "", source->topic);
    return weir_graph_source(graph, name, identity, numberp);
}

static weir_err pipeline_see_file_partition(void *context, const char *source, uint32_t partition, uint64_t sealed,
                                            uint64_t applied) {
    const char *topic = strncmp(source, FILE_PREFIX, strlen(FILE_PREFIX)) == 0 ? source + strlen(FILE_PREFIX) : NULL;
    weir_worker *worker = context;
    (void)sealed, (void)applied;
    if (topic && strcmp(topic, worker->schema_source->topic) == 0 && worker->file_partition <= partition)
        worker->file_partition = partition + 1;
    return WEIR_OK;
}

/* A file that is known by its bytes goes on where it was; another one gets a partition that was never used. */
static weir_err pipeline_choose_file_partition(weir_worker *worker) {
    weir_pipeline *pipeline = worker->pipeline;
    weir_position position;
    uint64_t hash;
    weir_err err = weir_consumer_file_hash(worker->from.path, &hash);
    if (err) return err;
    if (weir_positions_find_check(pipeline->positions, worker->graph_source, hash, &position)) {
        worker->file_partition = position.partition;
        return WEIR_OK;
    }
    worker->file_partition = weir_positions_partitions(pipeline->positions, worker->graph_source);
    err = weir_graph_offsets(pipeline->graph, pipeline_see_file_partition, worker);
    position = (weir_position){.source = worker->graph_source, .partition = worker->file_partition, .check = hash};
    if (!err) err = weir_positions_put(pipeline->positions, &position);
    return err ? err : weir_positions_save(pipeline->positions);
}

/* An earlier version made its checks of Kafka's records in another way. */
static weir_err pipeline_forget_old_checks(weir_worker *worker) {
    weir_positions *positions = worker->pipeline->positions;
    weir_err err = WEIR_OK;
    if (worker->from.stream != WEIR_PIPELINE_KAFKA || !weir_positions_are_old(positions)) return WEIR_OK;
    for (uint32_t i = 0; !err && i < weir_positions_partitions(positions, worker->graph_source); i++) {
        weir_position position;
        if (!weir_positions_get(positions, worker->graph_source, i, &position)) continue;
        position.check = 0;
        err = weir_positions_put(positions, &position);
    }
    return err;
}

static weir_err pipeline_open_source(weir_pipeline *pipeline, const weir_pipeline_source *from, weir_worker *worker) {
    const weir_schema *schema = weir_graph_schema(pipeline->graph);
    weir_mutex_init(&worker->mutex, WEIR_RANK_LEAF, "source");
    worker->pipeline = pipeline;
    worker->from = *from;
    pipeline->worker_count++;
    if (from->source >= weir_schema_source_count(schema))
        return WEIR_ERR(WEIR_EINVAL, "the schema has no source %u", from->source);
    worker->schema_source = weir_schema_source_at(schema, from->source);
    bool there = false;
    switch (from->stream) {
    case WEIR_PIPELINE_EVENTLOG:
        there = from->log != NULL;
        if (there) worker->identity = weir_eventlog_creation_id(from->log);
        break;
    case WEIR_PIPELINE_KAFKA:
        there = pipeline->brokers != NULL;
        worker->identity = IDENTITY_KAFKA;
        break;
    case WEIR_PIPELINE_FILE:
        there = from->path != NULL;
        worker->identity = IDENTITY_FILE;
        break;
    }
    if (!there) return WEIR_ERR(WEIR_EINVAL, "source %u has no log, no brokers or no path", from->source);
    weir_err err = pipeline_register(pipeline->graph, worker->schema_source, worker->identity, &worker->graph_source);
    if (!err) err = pipeline_forget_old_checks(worker);
    if (!err && from->stream == WEIR_PIPELINE_FILE) err = pipeline_choose_file_partition(worker);
    return err ? err : weir_source_run_open(worker, &worker->run);
}

/* Letters of topics that were recreated since, or that are not read here, belong to none; files go by one identity, so
 * any may be asked for. */
uint32_t weir_pipeline_letter_source(void *context, const char *source, size_t length, uint64_t identity) {
    weir_pipeline *pipeline = context;
    const weir_schema *schema = weir_graph_schema(pipeline->graph);
    uint32_t number = UINT32_MAX;
    for (size_t i = 0; i < pipeline->worker_count; i++) {
        const weir_worker *worker = &pipeline->workers[i];
        const char *name = worker->schema_source->name;
        if (worker->identity == identity && strlen(name) == length && memcmp(name, source, length) == 0)
            return worker->graph_source;
    }
    for (uint32_t i = 0; identity == IDENTITY_FILE && i < weir_schema_source_count(schema); i++) {
        const weir_schema_source *s = weir_schema_source_at(schema, i);
        if (strlen(s->name) != length || memcmp(s->name, source, length) != 0) continue;
        weir_err err = pipeline_register(pipeline->graph, s, identity, &number);
        if (err) number = UINT32_MAX;
    }
    return number;
}

/* --- open and close --------------------------------------------------------------------------------------------- */

/* What is not read any more must be the same in all shards: one that was emptied would lack it for ever. */
static weir_err pipeline_refuse_gap(void *context, const char *source, uint32_t partition, uint32_t shard,
                                    uint64_t least, uint64_t most) {
    const weir_pipeline *pipeline = context;
    for (size_t i = 0; i < pipeline->worker_count; i++) {
        const weir_worker *worker = &pipeline->workers[i];
        if (worker->from.stream == WEIR_PIPELINE_FILE || !strcmp(worker->schema_source->topic, source)) return WEIR_OK;
    }
    return WEIR_ERR(WEIR_EDATA,
                    "shard %u of the store has %llu of the %llu records of '%s', partition %u, and no log has them: "
                    "load the file again if its load was cut short, otherwise restore a checkpoint",
                    shard, (unsigned long long)least, (unsigned long long)most, source, partition);
}

weir_err weir_pipeline_open(const weir_pipeline_opts *opts, weir_pipeline **pipelinep) {
    *pipelinep = NULL;
    if (!opts->graph || !opts->folder || !opts->letter_folder || opts->source_count > WEIR_PIPELINE_SOURCES_MAX) {
        return WEIR_ERR(WEIR_EINVAL, "a pipeline needs a graph, two folders and at most %u sources",
                        WEIR_PIPELINE_SOURCES_MAX);
    }
    weir_pipeline *pipeline = weir_calloc(1, sizeof *pipeline);
    if (!pipeline) return WEIR_NOMEM("for a pipeline");
    weir_mutex_init(&pipeline->mutex, WEIR_RANK_LEAF, "pipeline");
    weir_cond_init(&pipeline->changed);
    pipeline->graph = opts->graph;
    pipeline->clock = opts->clock ? opts->clock : weir_clock_system();
    pipeline->kafka_timeout_us = opts->kafka_timeout_us ? opts->kafka_timeout_us : KAFKA_TIMEOUT_DEFAULT;
    pipeline->kafka_buffer_bytes = opts->kafka_buffer_bytes;
    pipeline->idle_us = opts->idle_us ? opts->idle_us : IDLE_DEFAULT;
    pipeline->repairs = opts->repairs;
    pipeline->scrub_us = opts->scrub_us;
    pipeline->keep_us = opts->keep_us ? opts->keep_us : WEIR_US_PER_S;
    pipeline->brokers = opts->brokers ? weir_strdup(opts->brokers) : NULL;
    pipeline->checkpoints = opts->checkpoints ? weir_strdup(opts->checkpoints) : NULL;
    weir_err err = WEIR_OK;
    if ((opts->brokers && !pipeline->brokers) || (opts->checkpoints && !pipeline->checkpoints))
        err = WEIR_NOMEM("for a pipeline");
    if (!err) err = weir_positions_open(opts->folder, &pipeline->positions);
    if (!err) err = weir_letters_open(opts->letter_folder, pipeline->clock, &pipeline->letters);
    if (err) goto done;
    weir_positions_letters numbers = {0, weir_letters_end(pipeline->letters)};
    if (weir_positions_are_new(pipeline->positions)) weir_positions_letters_set(pipeline->positions, numbers);

    pipeline->workers = weir_calloc(opts->source_count, sizeof *pipeline->workers);
    if (!pipeline->workers) err = WEIR_NOMEM("for %zu sources", opts->source_count);
    for (size_t i = 0; !err && i < opts->source_count; i++)
        err = pipeline_open_source(pipeline, &opts->sources[i], &pipeline->workers[i]);
    if (!err) err = weir_graph_uneven(pipeline->graph, pipeline_refuse_gap, pipeline);
    if (err) goto done;

    /* The letters, by the sources: those that may be read again. A shard that is being filled begins at the first. */
    numbers = weir_positions_letters_get(pipeline->positions);
    uint64_t from = weir_graph_filling(pipeline->graph) ? 0 : numbers.from;
    err = weir_letters_load(pipeline->letters, from, numbers.born, weir_pipeline_letter_source, pipeline);
done:
    if (err)
        weir_err_keep(&err, weir_pipeline_close(pipeline));
    else
        *pipelinep = pipeline;
    return err;
}

weir_err weir_pipeline_start(weir_pipeline *pipeline) {
    weir_err err = WEIR_OK;
    for (size_t i = 0; !err && i < pipeline->worker_count; i++) {
        weir_worker *worker = &pipeline->workers[i];
        char name[WEIR_THREAD_NAME_MAX + 1];
        snprintf(name, sizeof name, "ingest-%zu", i);
        worker->begun_us = weir_clock_wall_us(pipeline->clock);
        err = weir_thread_start(name, WEIR_ROLE_INGEST, weir_worker_main, worker, &worker->thread);
    }
    return err ? err : weir_keeper_start(pipeline);
}

weir_err weir_pipeline_stop(weir_pipeline *pipeline) {
    bool started = false;
    weir_mutex_lock(&pipeline->mutex);
    pipeline->stopping = true;
    weir_cond_broadcast(&pipeline->changed);
    weir_mutex_unlock(&pipeline->mutex);
    weir_keeper_stop(pipeline);
    weir_graph_interrupt(pipeline->graph, true); /* who waits for room in a shard that is stuck would wait for ever */
    for (size_t i = 0; i < pipeline->worker_count; i++) {
        started = started || pipeline->workers[i].thread;
        weir_thread_join(pipeline->workers[i].thread);
        pipeline->workers[i].thread = NULL;
    }
    weir_graph_interrupt(pipeline->graph, false);
    return started ? weir_graph_drain(pipeline->graph) : WEIR_OK;
}

weir_err weir_pipeline_close(weir_pipeline *pipeline) {
    if (!pipeline) return WEIR_OK;
    weir_err err = weir_pipeline_stop(pipeline);
    for (size_t i = 0; i < pipeline->worker_count; i++) {
        weir_worker *worker = &pipeline->workers[i];
        weir_source_run_close(worker->run);
        weir_mutex_destroy(&worker->mutex);
        for (uint32_t p = 0; p < worker->partition_count; p++)
            weir_repeats_close(worker->partitions[p].repeats);
        weir_free(worker->group_ends);
        weir_free(worker->partitions);
    }
    weir_err_keep(&err, weir_letters_close(pipeline->letters));
    weir_positions_close(pipeline->positions);
    weir_cond_destroy(&pipeline->changed);
    weir_mutex_destroy(&pipeline->mutex);
    weir_free(pipeline->workers);
    weir_free(pipeline->brokers);
    weir_free(pipeline->checkpoints);
    weir_free(pipeline);
    return err;
}

bool weir_pipeline_stopping(weir_pipeline *pipeline) {
    weir_mutex_lock(&pipeline->mutex);
    bool stop = pipeline->stopping;
    weir_mutex_unlock(&pipeline->mutex);
    return stop;
}

/* --- waking and waiting ----------------------------------------------------------------------------------------- */

bool weir_pipeline_sleep(weir_pipeline *pipeline, int64_t us) {
    int64_t until_us = weir_clock_mono_us(weir_clock_system()) + us;
    bool in_time = true;
    weir_mutex_lock(&pipeline->mutex);
    while (!pipeline->stopping && in_time)
        in_time = weir_cond_wait_until(&pipeline->changed, &pipeline->mutex, until_us);
    bool goes_on = !pipeline->stopping;
    weir_mutex_unlock(&pipeline->mutex);
    return goes_on;
}

int64_t weir_pipeline_longer_wait(int64_t wait_us, int64_t least_us, int64_t most_us) {
    if (wait_us == 0) return least_us;
    return wait_us < most_us / 2 ? wait_us * 2 : most_us;
}

void weir_pipeline_changed(weir_pipeline *pipeline) {
    weir_mutex_lock(&pipeline->mutex);
    weir_cond_broadcast(&pipeline->changed);
    weir_mutex_unlock(&pipeline->mutex);
}

void weir_pipeline_wake(weir_pipeline *pipeline) {
    weir_mutex_lock(&pipeline->mutex);
    pipeline->wakes++;
    weir_cond_broadcast(&pipeline->changed);
    weir_mutex_unlock(&pipeline->mutex);
}

/* *donep: each source has seen this drain through. */
static weir_err pipeline_see_drained(weir_pipeline *pipeline, uint64_t drain, bool *donep) {
    weir_err err = WEIR_OK;
    *donep = true;
    for (size_t i = 0; i < pipeline->worker_count; i++) {
        weir_worker *worker = &pipeline->workers[i];
        weir_mutex_lock(&worker->mutex);
        if (worker->status == WEIR_PIPELINE_FAILED) weir_err_keep(&err, weir_err_kept_get(&worker->err));
        if (worker->status == WEIR_PIPELINE_STOPPED)
            weir_err_keep(&err, WEIR_ERR(WEIR_ECLOSED, "the pipeline was stopped before its sources were read"));
        if (worker->status != WEIR_PIPELINE_ENDED && worker->drained < drain) *donep = false;
        weir_mutex_unlock(&worker->mutex);
    }
    return err;
}

weir_err weir_pipeline_drain(weir_pipeline *pipeline, int64_t timeout_us) {
    int64_t start_us = weir_clock_mono_us(weir_clock_system());
    weir_mutex_lock(&pipeline->mutex);
    uint64_t drain = ++pipeline->drains;
    pipeline->wakes++;
    weir_cond_broadcast(&pipeline->changed);
    weir_mutex_unlock(&pipeline->mutex);
    for (;;) {
        bool done;
        weir_err err = pipeline_see_drained(pipeline, drain, &done);
        if (err) return err;
        if (done) return weir_graph_drain(pipeline->graph);
        int64_t now_us = weir_clock_mono_us(weir_clock_system());
        if (now_us - start_us >= timeout_us)
            return WEIR_ERR(WEIR_ETIMEOUT, "the sources were not read to their ends in time");
        weir_mutex_lock(&pipeline->mutex); /* short: a change since the look is not missed for long */
        weir_cond_wait_until(&pipeline->changed, &pipeline->mutex, now_us + 10000);
        weir_mutex_unlock(&pipeline->mutex);
    }
}

/* --- names ------------------------------------------------------------------------------------------------------ */

const char *weir_pipeline_status_name(weir_pipeline_status status) {
    static const char *const names[] = {"starting", "running", "waiting", "ended", "stopped", "failed"};
    WEIR_ASSERT((size_t)status < sizeof names / sizeof names[0]);
    return names[status];
}

size_t weir_pipeline_source_count(const weir_pipeline *pipeline) {
    return pipeline->worker_count;
}

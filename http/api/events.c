/* SPDX-License-Identifier: Apache-2.0 */
/*
 * events.c - POST /v1/events: into the log, acknowledged when durable.
 *
 *   [loop] weir_api_post_events: defer ─► queue ─► [writer] events_run_group
 *                                                    each request: events_take: split ─► map ─► known? ─► append
 *                                                    the group: events_sync ─► answer all of them
 *
 * One writer thread takes what has come while the last sync ran, and makes it durable by one sync: the busier the
 * server, the larger the group. So that a group is one sync and not one a partition, all of it goes to one partition,
 * another one each time. Everything that tells a repeated event from a new one belongs to this thread, and needs no
 * lock.
 *
 * Mapping only checks the messages here; the pipeline, which reads them from the log, applies them to the graph.
 */
#include <string.h>

#include <weir/ingest/map/map.h>
#include <weir/ingest/pipeline/repeats.h>
#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/fault.h>
#include <weir/store/base/log.h>
#include <weir/store/base/metrics.h>
#include <weir/store/base/queue.h>

#include "private.h"

#define QUEUE_MAX 4096u
#define GROUP_MAX 256u
#define TAIL_READ 1024u /* records at a time */

#define NOT_WRITTEN "the event log cannot be written; the server retries every second"

typedef struct event_post {
    weir_http_request *request;
    uint32_t source;
    weir_api_format format;
} event_post;

/* One event of a request, and what became of it. */
typedef struct event_seen {
    uint64_t event;
    uint32_t content;
    bool has_id, duplicate;
    uint32_t partition; /* where it stands, or the first of its id does */
    uint64_t offset;
} event_seen;

/* A request whose events are appended and not yet durable. */
typedef struct event_pending {
    event_post post;
    event_seen *events;
    size_t count, fresh;
    bool waits; /* for the sync; else it was answered */
} event_pending;

typedef struct event_target {
    weir_eventlog *log; /* NULL: none is appended here */
    weir_mapper *mapper;
    weir_repeats **repeats; /* one a partition: the ids that it has                */
    uint64_t *next;         /* one a partition: the offset that its next event gets */
    uint32_t partitions;
    uint32_t partition; /* of this group */
    bool dirty;
    atomic_bool failed;    /* failure is an error               */
    weir_err_kept failure; /* under the writer's failures mutex */
} event_target;

struct weir_api_writer {
    weir_api *api;
    uint32_t thread_index; /* of its freshness */
    weir_queue *queue;
    weir_thread *thread;
    event_target *targets; /* one a source of the schema */
    uint32_t target_count;
    weir_mutex failures; /* LEAF */
    event_post posts[GROUP_MAX];
    event_pending group[GROUP_MAX];
};

/* --- a log that cannot be written ------------------------------------------------------------------------------- */

/* In the words that it had, for as long as it lasts.  [any] */
static weir_err event_target_failure(weir_api_writer *writer, event_target *target) {
    if (!atomic_load_explicit(&target->failed, memory_order_acquire)) return WEIR_OK;
    weir_mutex_lock(&writer->failures);
    weir_err err = weir_err_kept_get(&target->failure);
    weir_mutex_unlock(&writer->failures);
    return err;
}

/* What was said first stays until it is over: a later try may fail at another call, for the same cause. */
static void event_target_set_failure(weir_api_writer *writer, event_target *target, weir_err err) {
    weir_mutex_lock(&writer->failures);
    if (!err || !target->failure.err) weir_err_kept_set(&target->failure, err);
    weir_mutex_unlock(&writer->failures);
    atomic_store_explicit(&target->failed, err != WEIR_OK, memory_order_release);
}

/* --- on the loop ---------------------------------------------------------------------------------------------- */

weir_err weir_api_post_events(void *context, weir_http_request *request) {
    WEIR_ON_ROLE(LOOP);
    weir_api *api = context;
    event_post post = {.request = request};
    uint32_t count = weir_schema_source_count(api->schema);

    /* From which source; its name may be omitted where there is just one. */
    const char *name = weir_http_query(request, "source");
    if (!name && count != 1)
        return WEIR_ERR(WEIR_EDATA, "query parameter 'source' is missing; name one of the schema's sources");
    weir_err err = name ? weir_api_source_read(api->schema, name, &post.source) : WEIR_OK;
    if (err) return err;
    WEIR_ASSERT(post.source < count && count == api->writer->target_count);
    const weir_schema_source *source = weir_schema_source_at(api->schema, post.source);
    if (!api->writer->targets[post.source].log) {
        weir_http_problem(request, 501, NULL,
                          "this server does not append events of source '%s'; produce them to its Kafka topic",
                          source->name);
        return WEIR_OK;
    }

    /* In which format. A page of another site cannot send these types without being asked, so it makes no browser write
     * here. */
    const char *type = weir_http_header(request, "Content-Type");
    bool csv = source->format == WEIR_SCHEMA_CSV;
    bool json = type && !csv && weir_api_is_type(type, "application/json");
    bool lines = type && weir_api_is_type(type, csv ? "text/csv" : "application/x-ndjson");
    if (!json && !lines) {
        weir_http_problem(request, 415, NULL, "source '%s' requires Content-Type %s", source->name,
                          csv ? "text/csv" : "application/json or application/x-ndjson");
        return WEIR_OK;
    }
    post.format = json ? WEIR_API_JSON : WEIR_API_LINES;

    weir_http_defer(request);
    if (!weir_queue_push(api->writer->queue, &post, 0)) return WEIR_OK;
    weir_http_problem(request, 503, NULL, "too many requests are waiting for the event log; try again in a second");
    weir_http_finish(request);
    return WEIR_OK;
}

/* --- one request ---------------------------------------------------------------------------------------------- */

weir_err weir_api_event_map(weir_mapper *mapper, const weir_api_message *message, size_t index, int64_t latest_us,
                            weir_mapped *mappedp) {
    weir_err err = weir_mapper_map(mapper, 0, 0, message->bytes, message->length, mappedp);
    if (!err) err = weir_mapper_check_time(mapper, latest_us);
    return err ? weir_err_prefix(err, "event %zu of the request", index) : WEIR_OK;
}

/* The first event of the same id, in whichever partition: *foundp false if there is none that is remembered. */
static weir_err event_find_first(const event_target *target, event_seen *seen, uint64_t offset, bool *foundp) {
    *foundp = false;
    for (uint32_t p = 0; !*foundp && p < target->partitions; p++) {
        uint64_t at = p == target->partition ? offset : target->next[p];
        weir_repeat repeat = weir_repeats_ask(target->repeats[p], seen->event, seen->content, at, &seen->offset);
        seen->partition = p;
        *foundp = repeat != WEIR_REPEAT_FIRST;
        if (repeat != WEIR_REPEAT_OTHER) continue;
        return WEIR_ERR(WEIR_EEXIST,
                        "an event with the same id and different content is at offset %llu of partition %u; the first "
                        "event with an id is kept: give this one its own id",
                        (unsigned long long)seen->offset, p);
    }
    return WEIR_OK;
}

/* Each event to its place: of those that are there already, the first one's; of the others, what the append will give
 * them. */
static weir_err events_place(event_target *target, event_pending *pending) {
    uint64_t offset = target->next[target->partition];
    weir_err err = WEIR_OK;
    for (size_t i = 0; !err && i < pending->count; i++) {
        event_seen *seen = &pending->events[i];
        if (seen->has_id) err = event_find_first(target, seen, offset, &seen->duplicate); // API-A2
        if (err) return weir_err_prefix(err, "event %zu of the request", i);
        if (seen->duplicate) continue;
        if (seen->has_id)
            err = weir_repeats_add(target->repeats[target->partition], seen->event, seen->content, offset);
        seen->partition = target->partition;
        seen->offset = offset++;
        pending->fresh++;
    }
    WEIR_ASSERT(err || offset == target->next[target->partition] + pending->fresh);
    return err;
}

static weir_err events_append(weir_api_writer *writer, event_target *target, int64_t now_us,
                              const weir_api_message *messages, event_pending *pending, weir_arena *arena) {
    weir_record *records = weir_arena_calloc(arena, pending->fresh, sizeof *records);
    if (!records) return WEIR_NOMEM("for the records of a request");
    size_t count = 0;
    for (size_t i = 0; i < pending->count; i++) {
        if (pending->events[i].duplicate) continue;
        records[count++] =
            (weir_record){.time_us = now_us, .value = messages[i].bytes, .value_length = messages[i].length};
    }
    WEIR_ASSERT(count == pending->fresh && target->partition < target->partitions);
    uint64_t first;
    weir_err err = weir_eventlog_append(target->log, target->partition, records, pending->fresh, &first);
    if (err && weir_eventlog_health(target->log))
        event_target_set_failure(writer, target, weir_err_prefix(err, NOT_WRITTEN));
    if (err) return err;
    WEIR_ASSERT(first == target->next[target->partition]); /* only this thread appends to a topic */
    target->dirty = true;
    target->next[target->partition] += pending->fresh;
    weir_repeats_forget(target->repeats[target->partition], target->next[target->partition]);
    return WEIR_OK;
}

/* The events of one request into the log's memory: all or none (API-A1). */
static weir_err events_take(weir_api_writer *writer, event_pending *pending) {
    WEIR_ON_ROLE(WRITER);
    size_t length;
    const weir_api_message *messages;
    WEIR_ASSERT(pending->post.source < writer->target_count);
    event_target *target = &writer->targets[pending->post.source];
    int64_t now_us = weir_clock_wall_us(writer->api->clock); /* one reading: the pipeline judges by the record's time */
    weir_arena *arena = weir_http_arena(pending->post.request);
    weir_err err = event_target_failure(writer, target);
    const char *body = weir_http_body(pending->post.request, &length);
    if (!err) err = weir_api_split(pending->post.format, body, length, arena, &messages, &pending->count);
    if (err) return err;
    pending->events = weir_arena_calloc(arena, pending->count, sizeof *pending->events);
    if (!pending->events) return WEIR_NOMEM("for the events of a request");

    /* Every message is checked before anything is appended. */
    int64_t latest_us = weir_graph_latest(writer->api->graph, now_us);
    for (size_t i = 0; i < pending->count; i++) {
        weir_mapped mapped;
        err = weir_api_event_map(target->mapper, &messages[i], i, latest_us, &mapped);
        if (err) return err;
        pending->events[i] =
            (event_seen){.has_id = mapped.event_id != NULL, .event = mapped.event, .content = mapped.content};
    }

    err = events_place(target, pending);
    if (!err && pending->fresh) err = events_append(writer, target, now_us, messages, pending, arena);
    if (err) weir_repeats_undo(target->repeats[target->partition], target->next[target->partition]);
    return err;
}

/* --- the answer ----------------------------------------------------------------------------------------------- */

static void events_acknowledge(weir_api_writer *writer, const event_pending *pending) {
    WEIR_ASSERT(pending->waits && pending->fresh <= pending->count); // API-A1
    weir_api *api = writer->api;
    weir_http_request *request = pending->post.request;
    weir_api_fresh_begin(api, writer->thread_index, request);
    weir_json json = weir_json_begin(weir_http_out(request));
    weir_json_object(&json);
    weir_json_key_string(&json, "source", weir_schema_source_at(api->schema, pending->post.source)->name);
    weir_json_key_u64(&json, "accepted", pending->fresh);
    weir_json_key_u64(&json, "duplicates", pending->count - pending->fresh);
    weir_json_key(&json, "events");
    weir_json_array(&json);
    for (size_t i = 0; i < pending->count; i++) {
        const event_seen *event = &pending->events[i];
        weir_json_object(&json);
        weir_json_key_u64(&json, "partition", event->partition);
        weir_json_key_u64(&json, "offset", event->offset);
        weir_json_key_bool(&json, "duplicate", event->duplicate);
        weir_json_object_end(&json);
    }
    weir_json_array_end(&json);
    weir_api_json_answer(api, writer->thread_index, &json, request);
    weir_metric_add(WEIR_METRIC_HTTP_EVENTS, pending->fresh);
    weir_metric_add(WEIR_METRIC_HTTP_DUPLICATE_EVENTS, pending->count - pending->fresh);
}

/* Nothing of the request was appended: the log's own failure is 503, whatever its code. */
static void events_refuse(weir_http_request *request, weir_err err) {
    char sentence[WEIR_ERR_SENTENCE_MAX];
    unsigned status = weir_err_is(err, WEIR_EIO) || weir_err_is(err, WEIR_EPOISONED) ? 503
                      : weir_err_is(err, WEIR_EEXIST)                                ? 409
                      : weir_err_is(err, WEIR_EDATA)                                 ? 422
                                                                                     : 0;
    if (!status) {
        weir_http_problem_err(request, err);
        return;
    }
    weir_err_sentence(err, sentence, sizeof sentence);
    weir_http_problem(request, status, NULL, "%s; no event of the request was accepted", sentence);
}

/* --- the writer ----------------------------------------------------------------------------------------------- */

/* Where nothing is applied before a restart no client is told that all is well, up to ingest.behind_max or for ever. */
static weir_err events_applicable(weir_api_writer *writer, uint32_t source) {
    char sentence[WEIR_ERR_SENTENCE_MAX];
    weir_err err = weir_api_stopped(writer->api, weir_schema_source_at(writer->api->schema, source)->name);
    if (!err) return WEIR_OK;
    weir_err_sentence(err, sentence, sizeof sentence);
    return WEIR_ERR(WEIR_EUNAVAILABLE,
                    "no events are applied until the server is restarted, so no event of the request was accepted: %s",
                    sentence);
}

/* All that the group has appended becomes durable; the next group goes to the next partition. */
static void events_sync(weir_api_writer *writer) {
    WEIR_ON_ROLE(WRITER);
    weir_kill_point("events.appended");
    for (uint32_t i = 0; i < writer->target_count; i++) {
        event_target *target = &writer->targets[i];
        if (!target->dirty) continue;
        weir_err err = weir_eventlog_sync_partition(target->log, target->partition);
        if (err) {
            weir_log_error("events.failed", err);
            event_target_set_failure(writer, target, weir_err_prefix(err, NOT_WRITTEN));
        }
        target->dirty = false;
        target->partition = (target->partition + 1) % weir_eventlog_partitions(target->log);
    }
    weir_kill_point("events.synced");
}

static void events_run_group(weir_api_writer *writer, size_t count) {
    weir_err behind = weir_api_keeps_up(writer->api);
    WEIR_ASSERT(count <= GROUP_MAX);
    for (size_t i = 0; i < count; i++) {
        event_pending *pending = &writer->group[i];
        *pending = (event_pending){.post = writer->posts[i]};
        weir_err err = events_applicable(writer, pending->post.source);
        if (!err) err = behind ? behind : events_take(writer, pending);
        pending->waits = !err;
        if (err) events_refuse(pending->post.request, err);
    }
    events_sync(writer);
    atomic_fetch_add(&writer->api->acknowledged, 1); // API-A3
    weir_pipeline_wake(writer->api->pipeline);
    for (size_t i = 0; i < count; i++) {
        event_pending *pending = &writer->group[i];
        weir_http_request *request = pending->post.request;
        weir_err failure = event_target_failure(writer, &writer->targets[pending->post.source]);
        if (pending->waits && failure) {
            /* What was appended is in the log once it is resumed; after a crash it may not be. */
            char sentence[WEIR_ERR_SENTENCE_MAX];
            weir_err_sentence(failure, sentence, sizeof sentence);
            weir_http_problem(request, 503, NULL,
                              "it is unknown whether the events were stored; send them again with the same ids: %s",
                              sentence);
        } else if (pending->waits) {
            events_acknowledge(writer, pending); // API-A1
        }
        weir_http_finish(request);
    }
}

/* --- the ids that a log has ------------------------------------------------------------------------------------- */

/* The id of a record, as the pipeline will judge it, or has. */
static weir_err events_learn_record(event_target *target, uint32_t partition, const weir_record *record) {
    weir_mapped mapped;
    uint64_t first;
    weir_err err =
        weir_mapper_map(target->mapper, partition, record->offset, record->value, record->value_length, &mapped);
    if (weir_err_is(err, WEIR_EDATA) || weir_err_is(err, WEIR_ELIMIT)) return WEIR_OK; /* a dead letter by now */
    if (err || !mapped.event_id) return err;
    weir_repeats *repeats = target->repeats[partition];
    if (weir_repeats_ask(repeats, mapped.event, mapped.content, record->offset, &first) == WEIR_REPEAT_FIRST)
        err = weir_repeats_add(repeats, mapped.event, mapped.content, record->offset);
    weir_repeats_forget(repeats, record->offset);
    return err;
}

/* The store knows the ids of what is sealed; those that came after are read from the log. */
static weir_err events_learn_partition(weir_api_writer *writer, event_target *target, uint32_t source,
                                       uint32_t partition) {
    weir_graph *graph = writer->api->graph;
    weir_eventlog_partition_stats stats;
    weir_eventlog_reader *reader = NULL;
    weir_record records[TAIL_READ];
    weir_err err = weir_eventlog_stats_get(target->log, partition, &stats);
    if (err) return err;
    uint64_t begin = weir_graph_offset_sealed(graph, source, partition);
    uint64_t reach = 2 * (uint64_t)weir_graph_event_window(graph); /* a window, and the one that it is compared with */
    if (begin + reach < stats.offset_durable) begin = stats.offset_durable - reach;
    if (begin < stats.offset_begin) begin = stats.offset_begin;
    target->next[partition] = stats.offset_end;
    weir_repeats_undo(target->repeats[partition], 0); /* it may be learnt again */
    err = weir_repeats_load(target->repeats[partition], graph, source, partition, begin);
    if (!err) err = weir_eventlog_reader_open(target->log, partition, begin, &reader);
    for (size_t count = 1; !err && count;) {
        err = weir_eventlog_reader_next(reader, records, TAIL_READ, &count);
        for (size_t i = 0; !err && i < count; i++)
            err = events_learn_record(target, partition, &records[i]);
        if (atomic_load(&writer->api->state) == WEIR_API_STOPPING) break;
    }
    weir_eventlog_reader_close(reader);
    return err;
}

static void events_learn_ids(weir_api_writer *writer, uint32_t index) {
    event_target *target = &writer->targets[index];
    const weir_schema_source *schema_source = weir_schema_source_at(writer->api->schema, index);
    uint32_t source = 0;
    if (!target->log) return;
    weir_err err =
        weir_graph_source(writer->api->graph, schema_source->topic, weir_eventlog_creation_id(target->log), &source);
    for (uint32_t p = 0; !err && p < target->partitions; p++)
        err = events_learn_partition(writer, target, source, p);
    if (!err) return;
    weir_log_error("events.ids", err);
    event_target_set_failure(writer, target, weir_err_prefix(err, "cannot read the event ids of the event log"));
}

/* Until it goes well: the log can be written again, and its ids are known. */
static void events_resume(weir_api_writer *writer) {
    for (uint32_t i = 0; i < writer->target_count; i++) {
        event_target *target = &writer->targets[i];
        if (!atomic_load(&target->failed)) continue;
        weir_err err = weir_eventlog_resume(target->log);
        event_target_set_failure(writer, target, weir_err_prefix(err, NOT_WRITTEN));
        if (err) continue;
        weir_pipeline_wake(writer->api->pipeline);
        events_learn_ids(writer, i);
    }
}

static void events_main(void *context) {
    weir_api_writer *writer = context;
    int64_t resumed_us = 0; /* when the failed logs were last tried */
    WEIR_ON_ROLE(WRITER);
    for (uint32_t i = 0; i < writer->target_count; i++)
        events_learn_ids(writer, i);
    for (;;) {
        size_t count;
        bool failed = false;
        for (uint32_t i = 0; i < writer->target_count; i++)
            failed = failed || atomic_load(&writer->targets[i].failed);
        if (weir_queue_pop(writer->queue, writer->posts, GROUP_MAX, failed ? WEIR_US_PER_S : WEIR_QUEUE_FOREVER,
                           &count))
            return;
        if (count) events_run_group(writer, count);
        if (!failed) continue;
        int64_t now_us = weir_clock_mono_us(weir_clock_system());
        if (now_us - resumed_us < WEIR_US_PER_S) continue;
        resumed_us = now_us;
        events_resume(writer);
    }
}

/* --- open and close ------------------------------------------------------------------------------------------- */

static weir_err event_target_open(weir_api_writer *writer, const weir_api_opts *opts, uint32_t source) {
    event_target *target = &writer->targets[source];
    target->log = opts->logs ? opts->logs[source] : NULL;
    target->partitions = target->log ? weir_eventlog_partitions(target->log) : 0;
    target->repeats = weir_calloc(target->partitions + 1, sizeof *target->repeats);
    target->next = weir_calloc(target->partitions + 1, sizeof *target->next);
    weir_err err = target->repeats && target->next ? WEIR_OK : WEIR_NOMEM("for the ids of a log");
    for (uint32_t p = 0; !err && p < target->partitions; p++)
        err = weir_repeats_open(weir_graph_event_window(writer->api->graph), &target->repeats[p]);
    return err ? err
               : weir_mapper_open(writer->api->schema, source, weir_graph_id_key(writer->api->graph), &target->mapper);
}

weir_err weir_api_writer_open(weir_api *api, const weir_api_opts *opts, weir_api_writer **writerp) {
    *writerp = NULL;
    weir_api_writer *writer = weir_calloc(1, sizeof *writer);
    if (!writer) return WEIR_NOMEM("for the writer of events");
    weir_mutex_init(&writer->failures, WEIR_RANK_LEAF, "failures of the logs");
    writer->api = api;
    writer->thread_index = api->loops;
    writer->target_count = weir_schema_source_count(api->schema);
    writer->targets = weir_calloc(writer->target_count ? writer->target_count : 1, sizeof *writer->targets);
    weir_err err = writer->targets ? WEIR_OK : WEIR_NOMEM("for the sources of events");
    if (!writer->targets) writer->target_count = 0;
    for (uint32_t i = 0; !err && i < writer->target_count; i++)
        err = event_target_open(writer, opts, i);
    if (!err) err = weir_queue_open(QUEUE_MAX, sizeof(event_post), &writer->queue);
    if (!err) err = weir_thread_start("events", WEIR_ROLE_WRITER, events_main, writer, &writer->thread);
    if (err) {
        weir_api_writer_close(writer);
        return err;
    }
    *writerp = writer;
    return WEIR_OK;
}

void weir_api_writer_close(weir_api_writer *writer) {
    if (!writer) return;
    if (writer->queue) weir_queue_close(writer->queue);
    weir_thread_join(writer->thread);
    weir_queue_free(writer->queue);
    for (uint32_t i = 0; i < writer->target_count; i++) {
        event_target *target = &writer->targets[i];
        weir_mapper_close(target->mapper);
        for (uint32_t p = 0; target->repeats && p < target->partitions; p++)
            weir_repeats_close(target->repeats[p]);
        weir_free(target->repeats);
        weir_free(target->next);
    }
    weir_free(writer->targets);
    weir_mutex_destroy(&writer->failures);
    weir_free(writer);
}

weir_err weir_api_writer_failure(weir_api_writer *writer) {
    for (uint32_t i = 0; i < writer->target_count; i++) {
        weir_err failure = event_target_failure(writer, &writer->targets[i]);
        if (failure) return failure;
    }
    return WEIR_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * events.c - POST /v1/events: into the log, acknowledged when durable.
 *
 *   [loop] defer ─► queue ─► [writer] split ─► map ─► known? ─► append ─┐ next request of the group
 *                                                                       └─► sync ─► answer all of them
 *
 * One writer thread takes what has come while the last sync ran, and makes it durable by one sync: the busier the
 * server, the larger the group. So that a group is one sync and not one a partition, all of it goes to one partition,
 * another one each time. Everything that tells a repeated event from a new one belongs to this thread, and needs no
 * lock.
 *
 * A map only checks the messages here; what they do to the graph is the pipeline's, which reads them from the log.
 */
#include <string.h>

#include <weir/base/alloc.h>
#include <weir/base/assert.h>
#include <weir/base/fault.h>
#include <weir/base/log.h>
#include <weir/base/metrics.h>
#include <weir/base/queue.h>
#include <weir/base/suggest.h>
#include <weir/ingest/map.h>

#include "private.h"
#include "recent.h"

#define QUEUE_MAX 4096u
#define GROUP_MAX 256u
#define TAIL_READ 1024u /* records at a time */

typedef struct event_post {
    weir_http_request *request;
    uint32_t source;
    weir_api_format format;
} event_post;

/* One event of a request, and what became of it. */
typedef struct event_seen {
    weir_recent_id id;
    bool has_id, duplicate;
    uint32_t record; /* not duplicate: its index among the request's records */
    weir_recent_place place;
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
    weir_recent *recent;
    uint32_t partition; /* of this group */
    bool dirty;
    _Atomic weir_err failure;
} event_target;

struct weir_api_writer {
    weir_api *api;
    uint32_t thread_index; /* of its freshness */
    weir_queue *queue;
    weir_thread *thread;
    event_target *targets; /* one a source of the schema */
    uint32_t target_count;
    event_post posts[GROUP_MAX];
    event_pending group[GROUP_MAX];
};

/* --- on the loop ---------------------------------------------------------------------------------------------- */

static weir_err no_source(const weir_schema *schema, const char *name) {
    char nearest[128];
    weir_suggest suggest = weir_suggest_for(name);
    for (uint32_t i = 0; i < weir_schema_source_count(schema); i++)
        weir_suggest_offer(&suggest, weir_schema_source_at(schema, i)->name);
    return WEIR_ERR(WEIR_EDATA, "the schema has no source '%.64s'%s", name,
                    weir_suggest_text(&suggest, nearest, sizeof nearest));
}

static weir_err find_source(const weir_schema *schema, const weir_http_request *request, uint32_t *sourcep) {
    const char *name = weir_http_query(request, "source");
    *sourcep = 0;
    if (!name && weir_schema_source_count(schema) == 1) return WEIR_OK;
    if (!name) return WEIR_ERR(WEIR_EDATA, "query parameter 'source' is missing; name one of the schema's sources");
    *sourcep = weir_schema_source_find(schema, name);
    return *sourcep == WEIR_SCHEMA_NONE ? no_source(schema, name) : WEIR_OK;
}

/* Types that a page of another site cannot send without being asked: so no browser is made to write here. */
static bool find_format(const weir_schema *schema, uint32_t source, const char *type, weir_api_format *formatp) {
    bool csv = weir_schema_source_at(schema, source)->format == WEIR_SCHEMA_CSV;
    *formatp = type && weir_api_is_type(type, "application/json") ? WEIR_API_JSON : WEIR_API_LINES;
    if (!type) return false;
    return csv ? weir_api_is_type(type, "text/csv")
               : weir_api_is_type(type, "application/json") || weir_api_is_type(type, "application/x-ndjson");
}

static void hand_over(weir_api_writer *writer, const event_post *post) {
    weir_http_defer(post->request);
    weir_err err = weir_queue_push(writer->queue, post, 0);
    if (!err) return;
    weir_http_problem(post->request, 503, NULL, "too many requests wait for the log; try again in a second");
    weir_http_finish(post->request);
}

weir_err weir_api_post_events(void *context, weir_http_request *request) {
    weir_api *api = context;
    event_post post = {.request = request};
    weir_err err = find_source(api->schema, request, &post.source);
    if (err) return err;
    const char *name = weir_schema_source_at(api->schema, post.source)->name;
    if (!api->writer->targets[post.source].log) {
        weir_http_problem(request, 501, NULL, "the events of source '%s' are read from elsewhere; produce them there",
                          name);
        return WEIR_OK;
    }
    if (!find_format(api->schema, post.source, weir_http_header(request, "Content-Type"), &post.format)) {
        bool csv = weir_schema_source_at(api->schema, post.source)->format == WEIR_SCHEMA_CSV;
        weir_http_problem(request, 415, NULL, "source '%s' takes Content-Type %s", name,
                          csv ? "text/csv" : "application/json or application/x-ndjson");
        return WEIR_OK;
    }
    hand_over(api->writer, &post);
    return WEIR_OK;
}

/* --- one request ---------------------------------------------------------------------------------------------- */

weir_err weir_api_event_map(weir_mapper *mapper, const weir_api_message *message, size_t index, weir_mapped *mappedp) {
    weir_err err = weir_mapper_map(mapper, 0, 0, message->bytes, message->length, mappedp);
    return err ? weir_err_prefix(err, "event %zu of the request", index) : WEIR_OK;
}

/* Every message, before anything is appended: all or none (A1). */
static weir_err check_messages(event_target *target, const weir_api_message *messages, size_t count,
                               event_seen *events) {
    for (size_t i = 0; i < count; i++) {
        weir_mapped mapped;
        weir_err err = weir_api_event_map(target->mapper, &messages[i], i, &mapped);
        if (err) return err;
        events[i].has_id = mapped.event_id != NULL;
        if (events[i].has_id)
            events[i].id = weir_recent_id_of(target->recent, mapped.event, mapped.event_id, mapped.event_id_length);
    }
    return WEIR_OK;
}

/* Among the recent ones, or earlier in this request: the place of those is not known yet, so the record's index stands
 * in until the append. */
static size_t sort_out(event_target *target, event_seen *events, size_t count) {
    size_t fresh = 0;
    for (size_t i = 0; i < count; i++) {
        const weir_recent_place *known = events[i].has_id ? weir_recent_find(target->recent, events[i].id) : NULL;
        if (known) { // A2
            events[i].duplicate = true;
            events[i].place = *known;
            continue;
        }
        events[i].record = (uint32_t)fresh++;
        events[i].place = (weir_recent_place){.offset = events[i].record, .partition = UINT32_MAX};
        if (events[i].has_id) weir_recent_put(target->recent, events[i].id, events[i].place);
    }
    return fresh;
}

static void settle(event_target *target, event_seen *events, size_t count, uint64_t first) {
    for (size_t i = 0; i < count; i++) {
        if (events[i].place.partition != UINT32_MAX) continue;
        events[i].place.offset += first;
        events[i].place.partition = target->partition;
        weir_recent_place *kept = events[i].has_id ? weir_recent_find(target->recent, events[i].id) : NULL;
        if (kept && !events[i].duplicate) *kept = events[i].place;
    }
}

static void take_back(event_target *target, const event_seen *events, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (events[i].has_id && !events[i].duplicate) weir_recent_undo(target->recent);
}

static weir_err append(weir_api_writer *writer, event_target *target, const weir_api_message *messages,
                       event_pending *pending, weir_arena *arena) {
    int64_t now_us = weir_clock_wall_us(writer->api->clock);
    weir_record *records = weir_arena_calloc(arena, pending->fresh, sizeof *records);
    if (!records) return WEIR_ERR(WEIR_ENOMEM, "no memory for the records of a request");
    for (size_t i = 0; i < pending->count; i++) {
        if (pending->events[i].duplicate) continue;
        records[pending->events[i].record] =
            (weir_record){.time_us = now_us, .value = messages[i].bytes, .value_length = messages[i].length};
    }
    uint64_t first;
    weir_err err = weir_eventlog_append(target->log, target->partition, records, pending->fresh, &first);
    if (err) return err;
    target->dirty = true;
    settle(target, pending->events, pending->count, first);
    return WEIR_OK;
}

/* The events of one request into the log's memory. */
static weir_err take_post(weir_api_writer *writer, event_pending *pending) {
    WEIR_ON_ROLE(WRITER);
    size_t length;
    const weir_api_message *messages;
    event_target *target = &writer->targets[pending->post.source];
    weir_arena *arena = weir_http_arena(pending->post.request);
    weir_err err = atomic_load_explicit(&target->failure, memory_order_relaxed);
    const char *body = weir_http_body(pending->post.request, &length);
    if (!err) err = weir_api_split(pending->post.format, body, length, arena, &messages, &pending->count);
    if (err) return err;
    pending->events = weir_arena_calloc(arena, pending->count, sizeof *pending->events);
    if (!pending->events) return WEIR_ERR(WEIR_ENOMEM, "no memory for the events of a request");
    err = check_messages(target, messages, pending->count, pending->events);
    if (err) return err;
    pending->fresh = sort_out(target, pending->events, pending->count);
    if (pending->fresh)
        err = append(writer, target, messages, pending, arena);
    else
        settle(target, pending->events, pending->count, 0);
    if (err) take_back(target, pending->events, pending->count);
    return err;
}

/* --- the answer ----------------------------------------------------------------------------------------------- */

static void write_event(weir_json *json, const event_seen *event) {
    weir_json_object(json);
    weir_json_key(json, "partition");
    weir_json_u64(json, event->place.partition);
    weir_json_key(json, "offset");
    weir_json_u64(json, event->place.offset);
    weir_json_key(json, "duplicate");
    weir_json_bool(json, event->duplicate);
    weir_json_object_end(json);
}

static void acknowledge(weir_api_writer *writer, event_pending *pending) {
    weir_api *api = writer->api;
    weir_http_request *request = pending->post.request;
    weir_api_fresh_begin(api, writer->thread_index, request);
    weir_json json = weir_json_begin(weir_http_out(request));
    weir_json_object(&json);
    weir_json_key(&json, "source");
    weir_json_string(&json, weir_schema_source_at(api->schema, pending->post.source)->name);
    weir_json_key(&json, "accepted");
    weir_json_u64(&json, pending->fresh);
    weir_json_key(&json, "duplicates");
    weir_json_u64(&json, pending->count - pending->fresh);
    weir_json_key(&json, "events");
    weir_json_array(&json);
    for (size_t i = 0; i < pending->count; i++)
        write_event(&json, &pending->events[i]);
    weir_json_array_end(&json);
    weir_api_fresh_member(api, writer->thread_index, &json);
    weir_json_object_end(&json);
    weir_buf_byte(json.buf, '\n');
    weir_http_reply(request, 200, "application/json");
    weir_metric_add(WEIR_METRIC_HTTP_EVENTS, pending->fresh);
    weir_metric_add(WEIR_METRIC_HTTP_DUPLICATE_EVENTS, pending->count - pending->fresh);
}

static void refuse(weir_http_request *request, weir_err err) {
    char sentence[WEIR_ERR_SENTENCE_MAX];
    if (weir_err_code(err) != WEIR_EDATA) {
        weir_http_problem_err(request, err);
        return;
    }
    weir_err_sentence(err, sentence, sizeof sentence);
    weir_http_problem(request, 422, NULL, "%s; no event of the request was taken", sentence);
}

/* --- the writer ----------------------------------------------------------------------------------------------- */

static void sync_targets(weir_api_writer *writer) {
    weir_kill_point("events.appended");
    for (uint32_t i = 0; i < writer->target_count; i++) {
        event_target *target = &writer->targets[i];
        if (!target->dirty) continue;
        weir_err err = weir_eventlog_sync_partition(target->log, target->partition);
        if (err) {
            weir_log_error("events.failed", err);
            atomic_store(&target->failure,
                         weir_err_prefix(err, "the log cannot be written until the server is started again"));
        }
        target->dirty = false;
        target->partition = (target->partition + 1) % weir_eventlog_partitions(target->log);
    }
    weir_kill_point("events.synced");
}

static void answer_group(weir_api_writer *writer, size_t count) {
    weir_pipeline_wake(writer->api->pipeline);
    for (size_t i = 0; i < count; i++) {
        event_pending *pending = &writer->group[i];
        weir_err failure = atomic_load(&writer->targets[pending->post.source].failure);
        if (pending->waits && failure)
            refuse(pending->post.request, failure);
        else if (pending->waits)
            acknowledge(writer, pending); // A1
        weir_http_finish(pending->post.request);
    }
}

static void run_group(weir_api_writer *writer, const event_post *posts, size_t count) {
    for (size_t i = 0; i < count; i++) {
        event_pending *pending = &writer->group[i];
        memset(pending, 0, sizeof *pending);
        pending->post = posts[i];
        weir_err err = take_post(writer, pending);
        pending->waits = !err;
        if (err) refuse(posts[i].request, err);
    }
    sync_targets(writer);
    answer_group(writer, count);
}

/* --- the recent events of a log ------------------------------------------------------------------------------- */

static weir_err remember_record(event_target *target, uint32_t partition, const weir_record *record) {
    weir_mapped mapped;
    weir_err err =
        weir_mapper_map(target->mapper, partition, record->offset, record->value, record->value_length, &mapped);
    if (weir_err_is(err, WEIR_EDATA) || weir_err_is(err, WEIR_ELIMIT)) return WEIR_OK; /* a dead letter by now */
    if (err || !mapped.event_id) return err;
    weir_recent_id id = weir_recent_id_of(target->recent, mapped.event, mapped.event_id, mapped.event_id_length);
    weir_recent_put(target->recent, id, (weir_recent_place){record->offset, partition});
    return WEIR_OK;
}

static weir_err remember_partition(weir_api_writer *writer, event_target *target, uint32_t partition, uint64_t most) {
    weir_eventlog_partition_stats stats;
    weir_eventlog_reader *reader = NULL;
    weir_record records[TAIL_READ];
    weir_err err = weir_eventlog_stats_get(target->log, partition, &stats);
    if (err) return err;
    uint64_t begin = stats.offset_durable > most ? stats.offset_durable - most : 0;
    if (begin < stats.offset_begin) begin = stats.offset_begin;
    err = weir_eventlog_reader_open(target->log, partition, begin, &reader);
    for (size_t count = 1; !err && count;) {
        err = weir_eventlog_reader_next(reader, records, TAIL_READ, &count);
        for (size_t i = 0; !err && i < count; i++)
            err = remember_record(target, partition, &records[i]);
        if (atomic_load(&writer->api->state) == WEIR_API_STOPPING) break;
    }
    weir_eventlog_reader_close(reader);
    return err;
}

static void remember_tail(weir_api_writer *writer, event_target *target, uint64_t most) {
    weir_err err = WEIR_OK;
    uint32_t partitions = target->log && most ? weir_eventlog_partitions(target->log) : 0;
    for (uint32_t i = 0; !err && i < partitions; i++)
        err = remember_partition(writer, target, i, (most + partitions - 1) / partitions);
    if (!err) return;
    weir_log_error("events.recent", err);
    atomic_store(&target->failure, weir_err_prefix(err, "the recent events cannot be read"));
}

static void writer_main(void *context) {
    weir_api_writer *writer = context;
    event_post *posts = writer->posts;
    size_t count;
    for (uint32_t i = 0; i < writer->target_count; i++)
        remember_tail(writer, &writer->targets[i], weir_recent_capacity(writer->targets[i].recent));
    while (!weir_queue_pop(writer->queue, posts, GROUP_MAX, WEIR_QUEUE_FOREVER, &count))
        run_group(writer, posts, count);
}

/* --- open and close ------------------------------------------------------------------------------------------- */

static weir_err open_target(weir_api_writer *writer, const weir_api_opts *opts, uint32_t source) {
    event_target *target = &writer->targets[source];
    target->log = opts->logs ? opts->logs[source] : NULL;
    weir_err err = weir_recent_open(target->log ? opts->recent_events : 0, &target->recent);
    return err ? err : weir_mapper_open(writer->api->schema, source, &target->mapper);
}

weir_err weir_api_writer_open(weir_api *api, const weir_api_opts *opts, weir_api_writer **writerp) {
    *writerp = NULL;
    weir_api_writer *writer = weir_calloc(1, sizeof *writer);
    if (!writer) return WEIR_ERR(WEIR_ENOMEM, "no memory for the writer of events");
    writer->api = api;
    writer->thread_index = api->loops;
    writer->target_count = weir_schema_source_count(api->schema);
    writer->targets = weir_calloc(writer->target_count ? writer->target_count : 1, sizeof *writer->targets);
    weir_err err = writer->targets ? WEIR_OK : WEIR_ERR(WEIR_ENOMEM, "no memory for the sources of events");
    if (!writer->targets) writer->target_count = 0;
    for (uint32_t i = 0; !err && i < writer->target_count; i++)
        err = open_target(writer, opts, i);
    if (!err) err = weir_queue_open(QUEUE_MAX, sizeof(event_post), &writer->queue);
    if (!err) err = weir_thread_start("events", WEIR_ROLE_WRITER, writer_main, writer, &writer->thread);
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
        weir_mapper_close(writer->targets[i].mapper);
        weir_recent_close(writer->targets[i].recent);
    }
    weir_free(writer->targets);
    weir_free(writer);
}

weir_err weir_api_writer_failure(weir_api_writer *writer) {
    for (uint32_t i = 0; i < writer->target_count; i++) {
        weir_err failure = atomic_load(&writer->targets[i].failure);
        if (failure) return failure;
    }
    return WEIR_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ready.c - /livez, /readyz, /metrics and /openapi.json.
 *
 *   STARTING ──all sources run──► CATCHING_UP ──all goals applied──► READY ──weir_api_stopping──► STOPPING
 *                                               and the store whole (API-A5)
 *
 * The goals are the ends of the sources as they were when all of them ran, without what was in open transactions. A
 * source that has failed, whose brokers have been silent for too long, or that a transaction holds up for too long, and
 * a part in trouble (health.c), make any state not ready, with a sentence that stays the same until that ends.
 */
#include <stdio.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/log.h>
#include <weir/store/base/metrics.h>

#include "private.h"

#define BEHIND_KEPT_US 5000

/* --- the state ------------------------------------------------------------------------------------------------ */

weir_err weir_api_failure(weir_api *api, const char *source) {
    for (size_t i = 0; i < weir_pipeline_source_count(api->pipeline); i++) {
        weir_pipeline_source_stats stats;
        weir_pipeline_source_stats_get(api->pipeline, i, &stats);
        if (source && strcmp(stats.name, source) != 0) continue;
        if (stats.status == WEIR_PIPELINE_FAILED) return stats.err;
    }
    return WEIR_OK;
}

static weir_err ready_add_goal(void *context, const weir_pipeline_partition_stats *stats) {
    weir_api *api = context;
    if (!WEIR_GROW(api->goals, api->goal_capacity, api->goal_count)) return WEIR_NOMEM("for the goals of the start");
    api->goals[api->goal_count++] = (weir_api_goal){stats->source, stats->partition, stats->offset_stable};
    return WEIR_OK;
}

/* WEIR_ECANCELLED ends the visit at a partition that has not reached its goal. */
static weir_err ready_goal_reached(void *context, const weir_pipeline_partition_stats *stats) {
    const weir_api *api = context;
    for (size_t i = 0; i < api->goal_count; i++) {
        const weir_api_goal *goal = &api->goals[i];
        if (goal->partition != stats->partition || strcmp(goal->source, stats->source) != 0) continue;
        if (stats->offset_applied < goal->offset) return WEIR_ERR(WEIR_ECANCELLED, "not there yet");
    }
    return WEIR_OK;
}

weir_err weir_api_whole(const weir_api *api) {
    if (!weir_graph_filling(api->graph)) return WEIR_OK;
    return WEIR_ERR(WEIR_EUNAVAILABLE,
                    "the graph is being filled from the event log and is not complete yet; wait until "
                    "/readyz says that the server is ready");
}

/* Each source's records that could be applied and are not, summed over its partitions, which follow each other. What
 * stands behind an open transaction is another trouble (ready_is_stale). */
typedef struct ready_backlog {
    const char *source, *longest;
    uint64_t records, most;
} ready_backlog;

static weir_err ready_add_backlog(void *context, const weir_pipeline_partition_stats *stats) {
    ready_backlog *sum = context;
    if (!sum->source || strcmp(sum->source, stats->source) != 0) sum->records = 0;
    sum->source = stats->source;
    if (stats->offset_applied < stats->offset_stable) sum->records += stats->offset_stable - stats->offset_applied;
    if (sum->records <= sum->most) return WEIR_OK;
    sum->most = sum->records;
    sum->longest = sum->source;
    return WEIR_OK;
}

/* Any number of events may be there before the start: until they are applied the server is not ready, and events are
 * accepted all the same, because the log is there for them. A verdict stands for some milliseconds, because it asks
 * every partition and shard; of two that are made at once either will do. */
weir_err weir_api_keeps_up(weir_api *api) {
    if (!api->behind_max || atomic_load(&api->state) != WEIR_API_READY) return WEIR_OK;
    int64_t now_us = weir_clock_mono_us(api->clock);
    if (now_us - atomic_load(&api->behind_seen_us) >= BEHIND_KEPT_US) {
        ready_backlog sum = {0};
        uint64_t allowed = atomic_load(&api->behind) ? api->behind_max / 2 : api->behind_max;
        (void)weir_pipeline_partitions(api->pipeline, ready_add_backlog, &sum); /* the visit has no errors */
        atomic_store(&api->behind, sum.most > allowed ? sum.longest : NULL);
        atomic_store(&api->behind_seen_us, now_us);
    }
    const char *source = atomic_load(&api->behind);
    if (!source) return WEIR_OK;
    return WEIR_ERR(
        WEIR_EUNAVAILABLE,
        "the graph is further behind source '%s' than ingest.behind_max allows (%llu records); send fewer events, or "
        "wait until it has caught up",
        source, (unsigned long long)api->behind_max);
}

bool weir_api_look(weir_api *api) {
    int state = atomic_load(&api->state);
    if (state == WEIR_API_STARTING) {
        bool all_run = true;
        for (size_t i = 0; i < weir_pipeline_source_count(api->pipeline); i++) {
            weir_pipeline_source_stats stats;
            weir_pipeline_source_stats_get(api->pipeline, i, &stats);
            if (stats.status != WEIR_PIPELINE_RUNNING && stats.status != WEIR_PIPELINE_ENDED) all_run = false;
        }
        api->goal_count = 0;
        if (all_run && !weir_pipeline_partitions(api->pipeline, ready_add_goal, api)) state = WEIR_API_CATCHING_UP;
    }
    if (state == WEIR_API_CATCHING_UP && !weir_pipeline_partitions(api->pipeline, ready_goal_reached, api)) {
        weir_err err = weir_graph_filled(api->graph); // API-A5
        bool filling = weir_graph_filling(api->graph);
        if (err && !api->fill_failed)
            weir_log_error("serve.filled",
                           weir_err_prefix(err, filling ? "the server does not answer from the rebuilt graph yet"
                                                        : "a restart will read the log again first"));
        api->fill_failed = err != WEIR_OK;
        if (!filling) state = WEIR_API_READY; // API-A4
    }
    if (state != WEIR_API_STOPPING) atomic_store(&api->state, state);
    return state == WEIR_API_READY;
}

void weir_api_stopping(weir_api *api) {
    atomic_store(&api->state, WEIR_API_STOPPING);
}

/* --- probes --------------------------------------------------------------------------------------------------- */

weir_err weir_api_livez(void *context, weir_http_request *request) {
    static const char alive[] = "{\"alive\":true}\n";
    (void)context;
    weir_http_reply_static(request, 200, "application/json", alive, sizeof alive - 1);
    return WEIR_OK;
}

/* Of a source that is out of touch for longer than is allowed. While it starts, one that waits says so at once. */
static weir_err ready_stale(weir_api *api) {
    char since[WEIR_TIME_TEXT_MAX];
    int64_t now_us = weir_clock_wall_us(api->clock);
    bool starting = atomic_load(&api->state) == WEIR_API_STARTING;
    for (size_t i = 0; i < weir_pipeline_source_count(api->pipeline); i++) {
        weir_pipeline_source_stats stats;
        weir_pipeline_source_stats_get(api->pipeline, i, &stats);
        int64_t age_us = stats.contact_age_us < 0 ? now_us - stats.begun_us : stats.contact_age_us;
        bool old = api->stale_max_us && !stats.connected && age_us > api->stale_max_us;
        bool held = api->stale_max_us && stats.waiting_since_us && now_us - stats.waiting_since_us > api->stale_max_us;
        /* A source that waits says why, unless it is for its brokers. */
        bool says_why = stats.status == WEIR_PIPELINE_WAITING && !weir_err_is(stats.err, WEIR_EUNAVAILABLE) &&
                        !weir_err_is(stats.err, WEIR_ETIMEOUT);
        if ((old || starting) && says_why) return weir_err_prefix(stats.err, "source '%s' waits", stats.name);
        weir_time_format(!old                    ? stats.waiting_since_us
                         : stats.contact_wall_us ? stats.contact_wall_us
                                                 : stats.begun_us,
                         since);
        if (old)
            return WEIR_ERR(
                WEIR_EUNAVAILABLE,
                "source '%s' has not heard from its Kafka brokers since %s, so it is unknown how far behind "
                "it is; check the brokers, or correct kafka.brokers: it resumes by itself",
                stats.name, since);
        if (held)
            return WEIR_ERR(
                WEIR_EUNAVAILABLE,
                "source '%s', partition %u: the records after offset %llu have been waiting since %s for an "
                "open transaction to end; commit or abort it, or stop its producer",
                stats.name, stats.waiting_partition, (unsigned long long)stats.waiting_offset, since);
    }
    return WEIR_OK;
}

/* NULL: ready; else the sentence, which lies in the buffer where it says more than the state. */
static const char *ready_reason(weir_api *api, char *buffer, size_t size) {
    weir_err failure = weir_api_stopped(api, NULL);
    if (!failure) failure = weir_api_parts(api);
    if (!failure) failure = weir_api_keeps_up(api);
    int state = atomic_load(&api->state);
    if (!failure && state != WEIR_API_STOPPING) failure = ready_stale(api);
    if (failure) {
        weir_err_sentence(failure, buffer, size);
        return buffer;
    }
    if (state == WEIR_API_STARTING) return "the sources are being opened; wait";
    if (state == WEIR_API_CATCHING_UP) return "events from before the start are being applied; wait";
    if (state == WEIR_API_STOPPING) return "the server is stopping; use another one";

    /* A server that should score by a model and has none is not ready. One that goes on with the model before is: its
     * trouble is for the operator, in ?verbose and in the log. */
    weir_scoring_state scoring = {0};
    if (api->watch) weir_scoring_watch_state(api->watch, &scoring);
    if (!scoring.trouble[0] || scoring.serving[0]) return NULL;
    snprintf(buffer, size, "no model can be loaded: %s", scoring.trouble);
    return buffer;
}

static void ready_write_sources(weir_api *api, weir_json *json) {
    weir_json_key(json, "sources");
    weir_json_array(json);
    for (size_t i = 0; i < weir_pipeline_source_count(api->pipeline); i++) {
        weir_pipeline_source_stats stats;
        weir_pipeline_source_stats_get(api->pipeline, i, &stats);
        weir_json_object(json);
        weir_json_key_string(json, "source", stats.name);
        weir_json_key_string(json, "status", weir_pipeline_status_name(stats.status));
        if (stats.err) {
            char sentence[WEIR_ERR_SENTENCE_MAX];
            weir_err_sentence(stats.err, sentence, sizeof sentence);
            weir_json_key_string(json, "error", sentence);
        }
        weir_json_key_bool(json, "connected", stats.connected);
        weir_json_key_u64(json, "records", stats.records);
        weir_json_key_u64(json, "dead_letters", stats.dead_letters);
        weir_json_key_u64(json, "tombstones", stats.tombstones);
        weir_json_object_end(json);
    }
    weir_json_array_end(json);
}

/* A probe has no key, or an old one: only callers with a valid key are told what the sources say. */
weir_err weir_api_readyz(void *context, weir_http_request *request) {
    weir_api *api = context;
    char sentence[WEIR_ERR_SENTENCE_MAX];
    const char *why = ready_reason(api, sentence, sizeof sentence);
    bool known = weir_http_request_caller(request)->roles != 0;
    if (why == sentence && !known)
        why = "a source, the event log, the store or the model has a problem; the server's log says which";
    /* Made anew: what was true before it was ready must not stand beside the answer. */
    api->fresh[weir_http_loop_index(request)].made_us = 0;
    weir_api_fresh_begin(api, weir_http_loop_index(request), request);
    weir_json json = weir_json_begin(weir_http_out(request));
    weir_json_object(&json);
    if (why) {
        weir_json_key_string(&json, "type", "/problems/not-ready");
        weir_json_key_string(&json, "title", "Service Unavailable");
        weir_json_key_u64(&json, "status", 503);
        weir_json_key_string(&json, "detail", why);
    }
    weir_json_key_bool(&json, "ready", !why);
    if (known && weir_http_query(request, "verbose")) {
        ready_write_sources(api, &json);
        weir_api_json_troubles(api, &json);
        weir_api_json_serving(api, &json);
    }
    weir_api_fresh_member(api, weir_http_loop_index(request), &json);
    weir_json_object_end(&json);
    weir_buf_byte(json.buf, '\n');
    weir_http_reply(request, why ? 503 : 200, why ? "application/problem+json" : "application/json");
    return WEIR_OK;
}

/* --- for machines --------------------------------------------------------------------------------------------- */

weir_err weir_api_metrics(void *context, weir_http_request *request) {
    weir_api *api = context;
    weir_buf *out = weir_http_out(request);
    weir_pipeline_gauges_set(api->pipeline);
    size_t length = weir_metrics_text(NULL, 0) + 4096; /* numbers may grow longer meanwhile */
    char *room = weir_buf_reserve(out, length);
    if (!room) return weir_buf_err(out);
    size_t written = weir_metrics_text(room, length);
    weir_buf_commit(out, written < length ? written : length - 1);
    weir_http_reply(request, 200, "text/plain; version=0.0.4");
    return WEIR_OK;
}

weir_err weir_api_get_openapi(void *context, weir_http_request *request) {
    size_t length;
    (void)context;
    const char *text = weir_api_openapi(&length);
    weir_http_reply_static(request, 200, "application/json", text, length);
    return WEIR_OK;
}

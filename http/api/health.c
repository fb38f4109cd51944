/* SPDX-License-Identifier: Apache-2.0 */
/*
 * health.c - which parts of a running server are in trouble, in the words of each: for /readyz and /v1/status.
 *
 *   store    a shard tries again, cannot seal, has read damage, or has stopped     weir_graph_troubles
 *   log      the event log cannot be written                                       weir_api_writer_failure
 *   source   a source waits for a disk or for memory                               weir_pipeline_source_stats.stuck
 *
 * All but a part that has stopped recover by themselves, and are asked each time, so that no trouble is told of for
 * longer than it lasts.
 */
#include <stdio.h>

#include "private.h"

static weir_err health_stuck_source(weir_api *api) {
    for (size_t i = 0; i < weir_pipeline_source_count(api->pipeline); i++) {
        weir_pipeline_source_stats stats;
        weir_pipeline_source_stats_get(api->pipeline, i, &stats);
        if (stats.stuck) return weir_err_prefix(stats.err, "source '%s' waits", stats.name);
    }
    return WEIR_OK;
}

/* A shard before a source: the sources fail because of it, one after the other, and its words say the cause. */
weir_err weir_api_stopped(weir_api *api, const char *source) {
    weir_err err = weir_graph_stopped(api->graph);
    return err ? err : weir_api_failure(api, source);
}

weir_err weir_api_parts(weir_api *api) {
    weir_err err = weir_graph_health(api->graph);
    if (!err) err = weir_api_writer_failure(api->writer);
    return err ? err : health_stuck_source(api);
}

static void health_write_trouble(weir_json *json, const char *part, bool stopped, weir_err err) {
    char sentence[WEIR_ERR_SENTENCE_MAX];
    weir_err_sentence(err, sentence, sizeof sentence);
    weir_json_object(json);
    weir_json_key_string(json, "part", part);
    weir_json_key_bool(json, "stopped", stopped);
    weir_json_key_string(json, "detail", sentence);
    weir_json_object_end(json);
}

static weir_err health_write_store_trouble(void *context, const weir_graph_trouble *trouble) {
    char part[64];
    snprintf(part, sizeof part, "store/shard-%03u/%s", trouble->shard, trouble->part);
    health_write_trouble(context, part, trouble->stopped, trouble->err);
    return WEIR_OK;
}

void weir_api_json_troubles(weir_api *api, weir_json *json) {
    weir_err log = weir_api_writer_failure(api->writer), source = health_stuck_source(api);
    weir_json_key(json, "troubles");
    weir_json_array(json);
    (void)weir_graph_troubles(api->graph, health_write_store_trouble, json); /* the visit has no errors */
    if (log) health_write_trouble(json, "eventlog", false, log);
    if (source) health_write_trouble(json, "source", false, source);
    weir_json_array_end(json);
}

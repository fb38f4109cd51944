/* SPDX-License-Identifier: Apache-2.0 */
/* status.c - GET /v1/status: the few numbers that say how the server is, for the page and for people. */
#include <weir/base/metrics.h>

#include "private.h"

static void put(weir_json *json, const char *key, uint64_t number) {
    weir_json_key(json, key);
    weir_json_u64(json, number);
}

static uint64_t records_of(weir_api *api, uint64_t *dead_letters) {
    uint64_t records = 0;
    *dead_letters = 0;
    for (size_t i = 0; i < weir_pipeline_source_count(api->pipeline); i++) {
        weir_pipeline_source_stats stats;
        weir_pipeline_source_stats_get(api->pipeline, i, &stats);
        records += stats.records;
        *dead_letters += stats.dead_letters;
    }
    return records;
}

static void put_counts(weir_api *api, weir_json *json) {
    weir_graph_stats graph;
    uint64_t dead_letters, records = records_of(api, &dead_letters);
    weir_graph_stats_get(api->graph, &graph);
    put(json, "events", records);
    put(json, "dead_letters", dead_letters);
    put(json, "mutations", graph.applied_mutations);
    put(json, "memory_bytes", graph.delta_bytes + graph.cache_bytes);
    put(json, "disk_bytes", graph.cold_bytes);
    put(json, "requests", weir_metric_counter(WEIR_METRIC_HTTP_REQUESTS));
    if (!graph.event_time_last_us) return;
    weir_json_key(json, "newest_event");
    weir_api_json_time(json, graph.event_time_last_us);
}

weir_err weir_api_get_status(void *context, weir_http_request *request) {
    weir_api *api = context;
    uint32_t loop = weir_http_loop_index(request);
    weir_api_fresh_begin(api, loop, request);
    weir_json json = weir_json_begin(weir_http_out(request));
    weir_json_object(&json);
    weir_json_key(&json, "schema");
    weir_json_string(&json, weir_schema_name(api->schema));
    weir_json_key(&json, "time");
    weir_api_json_time(&json, weir_clock_wall_us(api->clock));
    put_counts(api, &json);
    weir_api_json_troubles(api, &json);
    weir_api_fresh_member(api, loop, &json);
    weir_json_object_end(&json);
    weir_buf_byte(json.buf, '\n');
    weir_http_reply(request, 200, "application/json");
    return WEIR_OK;
}

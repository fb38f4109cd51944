/* SPDX-License-Identifier: Apache-2.0 */
/* status.c - GET /v1/status: the server's most important figures, for the console page and for people. */
#include <string.h>

#include <weir/store/base/metrics.h>

#include "private.h"

static void status_write_counts(weir_api *api, weir_json *json) {
    weir_graph_stats graph;
    uint64_t records = 0, dead_letters = 0;
    for (size_t i = 0; i < weir_pipeline_source_count(api->pipeline); i++) {
        weir_pipeline_source_stats stats;
        weir_pipeline_source_stats_get(api->pipeline, i, &stats);
        records += stats.records;
        dead_letters += stats.dead_letters;
    }
    weir_graph_stats_get(api->graph, &graph);
    weir_json_key_u64(json, "events", records);
    weir_json_key_u64(json, "dead_letters", dead_letters);
    weir_json_key_u64(json, "mutations", graph.applied_mutations);
    weir_json_key_u64(json, "memory_bytes", graph.delta_bytes + graph.cache_bytes);
    weir_json_key_u64(json, "disk_bytes", graph.cold_bytes);
    weir_json_key_u64(json, "requests", weir_metric_counter(WEIR_METRIC_HTTP_REQUESTS));
    if (graph.event_time_last_us != INT64_MIN) weir_json_key_time(json, "newest_event", graph.event_time_last_us);
}

/* --- what time it is, by the sources ---------------------------------------------------------------------------- */

typedef struct clock_survey {
    weir_json *json;
    int64_t watermark_us;
    weir_graph_clock
        source; /* sum of its partitions: the least clock that counts, else the greatest; the newest event */
} clock_survey;

static void clock_survey_end_source(const clock_survey *survey) {
    const weir_graph_clock *source = &survey->source;
    weir_json *json = survey->json;
    if (!source->source || source->clock_us == INT64_MIN) return;
    weir_json_key(json, source->source);
    weir_json_object(json);
    weir_json_key_time(json, "clock", source->clock_us);
    weir_json_key_time(json, "newest", source->newest_us);
    weir_json_key_bool(json, "counts", source->state != WEIR_CLOCK_IDLE);
    if (survey->watermark_us != INT64_MIN) {
        weir_json_key_f64(json, "ahead_seconds",
                          ((double)source->newest_us - (double)survey->watermark_us) / (double)WEIR_US_PER_S);
    }
    weir_json_object_end(json);
}

static weir_err clock_survey_visit(void *context, const weir_graph_clock *clock) {
    clock_survey *survey = context;
    weir_graph_clock *sum = &survey->source;
    if (!sum->source || strcmp(sum->source, clock->source) != 0) {
        clock_survey_end_source(survey);
        *sum = *clock;
        return WEIR_OK;
    }
    /* The least of the clocks that count; where none counts, the greatest. */
    bool counted = sum->state != WEIR_CLOCK_IDLE, counts = clock->state != WEIR_CLOCK_IDLE;
    bool wanted =
        counted == counts ? (counts ? clock->clock_us < sum->clock_us : clock->clock_us > sum->clock_us) : counts;
    if (clock->newest_us > sum->newest_us) sum->newest_us = clock->newest_us;
    if (!wanted || clock->clock_us == INT64_MIN) return WEIR_OK;
    sum->clock_us = clock->clock_us;
    sum->state = clock->state;
    return WEIR_OK;
}

static void status_write_clocks(weir_api *api, weir_json *json) {
    clock_survey survey = {.json = json, .watermark_us = weir_graph_watermark(api->graph)};
    if (survey.watermark_us != INT64_MIN) weir_json_key_time(json, "watermark", survey.watermark_us);
    weir_json_key(json, "clocks");
    weir_json_object(json);
    (void)weir_graph_clocks(api->graph, clock_survey_visit, &survey); /* the visit has no errors */
    clock_survey_end_source(&survey);
    weir_json_object_end(json);
}

weir_err weir_api_get_status(void *context, weir_http_request *request) {
    weir_api *api = context;
    uint32_t loop = weir_http_loop_index(request);
    weir_api_fresh_begin(api, loop, request);
    weir_json json = weir_json_begin(weir_http_out(request));
    weir_json_object(&json);
    weir_json_key_string(&json, "schema", weir_schema_name(api->schema));
    weir_json_key_time(&json, "time", weir_clock_wall_us(api->clock));
    status_write_counts(api, &json);
    weir_api_json_troubles(api, &json);
    status_write_clocks(api, &json);
    weir_api_json_answer(api, loop, &json, request);
    return WEIR_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * freshness.c - how far the graph is behind its sources, in every answer.
 *
 * Asking each partition costs more than most reads, so each thread keeps the text for a few milliseconds, unless
 * events were acknowledged since. That errs to the safe side: an older text claims less to be applied than there is,
 * never more, and no client that has sent an event is told of an end before it (API-A3).
 */
#include <math.h>
#include <string.h>

#include <weir/store/base/assert.h>

#include "private.h"

#define KEPT_US        5000
#define PARTITIONS_MAX 64u /* of a source, told one by one; of more only the sums are */

typedef struct fresh_part {
    uint64_t applied, end;
} fresh_part;

typedef struct fresh_source {
    const char *name;
    bool known; /* its end */
    uint64_t behind;
    int64_t lag_us, contact_us; /* contact_us -1: never */
    uint64_t in_transactions;
    uint32_t partitions;
    fresh_part parts[PARTITIONS_MAX];
} fresh_source;

/* Sources follow each other in the pipeline's order: each is written when the next one begins. */
typedef struct fresh_survey {
    weir_api *api;
    weir_json json;
    weir_buf *header;
    fresh_source sum;
    size_t next; /* source to begin */
    bool any;
} fresh_survey;

static double fresh_seconds(int64_t us) {
    int64_t ms = us / 1000; /* more digits say nothing */
    return (double)ms / 1000;
}

static void fresh_write_parts(weir_json *json, const char *name, const fresh_source *sum, bool ends) {
    weir_json_key(json, name);
    weir_json_array(json);
    for (uint32_t i = 0; i < sum->partitions; i++)
        weir_json_u64(json, ends ? sum->parts[i].end : sum->parts[i].applied);
    weir_json_array_end(json);
}

static void fresh_end_source(fresh_survey *survey) {
    const fresh_source *sum = &survey->sum;
    weir_json *json = &survey->json;
    if (!sum->name) return;
    weir_json_key(json, sum->name);
    weir_json_object(json);
    weir_json_key_bool(json, "connected", sum->known);
    weir_json_key(json, "behind");
    if (sum->known) weir_json_u64(json, sum->behind);
    if (!sum->known) weir_json_null(json);
    weir_json_key_f64(json, "lag_seconds", fresh_seconds(sum->lag_us));
    weir_json_key_f64(json, "contact_age_seconds", sum->contact_us >= 0 ? fresh_seconds(sum->contact_us) : NAN);
    if (sum->in_transactions) weir_json_key_u64(json, "in_open_transactions", sum->in_transactions);
    if (sum->partitions <= PARTITIONS_MAX) {
        fresh_write_parts(json, "applied", sum, false);
        fresh_write_parts(json, "end", sum, true);
    }
    weir_json_object_end(json);

    /* payments;behind=0;lag=0.000 */
    weir_buf_printf(survey->header, "%s%s;behind=", survey->any ? ", " : "", sum->name);
    if (sum->known) weir_buf_printf(survey->header, "%llu", (unsigned long long)sum->behind);
    if (!sum->known) weir_buf_text(survey->header, "unknown");
    weir_buf_printf(survey->header, ";lag=%.3f", fresh_seconds(sum->lag_us));
    survey->any = true;
}

/* When a topic's brokers are silent its end is not known, and the least lag is how long that has been so. */
static void fresh_begin_source(fresh_survey *survey) {
    weir_pipeline_source_stats stats;
    fresh_source *sum = &survey->sum;
    WEIR_ASSERT(survey->next <
                weir_pipeline_source_count(survey->api->pipeline)); /* it knows those of its partitions */
    fresh_end_source(survey);
    weir_pipeline_source_stats_get(survey->api->pipeline, survey->next++, &stats);
    bool kafka = stats.contact_age_us != 0 || stats.contact_wall_us;
    *sum = (fresh_source){.name = stats.name, .known = !kafka || stats.connected, .contact_us = stats.contact_age_us};
    sum->in_transactions = stats.waiting_records;
    if (sum->known) return;
    sum->lag_us =
        stats.contact_age_us >= 0 ? stats.contact_age_us : weir_clock_wall_us(survey->api->clock) - stats.begun_us;
    if (sum->lag_us < 0) sum->lag_us = 0; /* the clock was set back */
}

static weir_err fresh_visit(void *context, const weir_pipeline_partition_stats *stats) {
    fresh_survey *survey = context;
    fresh_source *sum = &survey->sum;
    while (!sum->name || strcmp(sum->name, stats->source) != 0)
        fresh_begin_source(survey);
    uint64_t applied = stats->offset_applied < stats->offset_end ? stats->offset_applied : stats->offset_end;
    sum->behind += stats->offset_end - applied;
    if (stats->lag_us > sum->lag_us) sum->lag_us = stats->lag_us;
    if (sum->partitions < PARTITIONS_MAX) sum->parts[sum->partitions] = (fresh_part){applied, stats->offset_end};
    sum->partitions++;
    return WEIR_OK;
}

void weir_api_fresh_begin(weir_api *api, uint32_t thread, weir_http_request *request) {
    WEIR_ASSERT(thread < api->fresh_count);
    weir_api_fresh *fresh = &api->fresh[thread];
    int64_t now_us = weir_clock_mono_us(api->clock);
    uint64_t acknowledged = atomic_load(&api->acknowledged);
    bool old = !fresh->made_us || now_us - fresh->made_us >= KEPT_US || fresh->acknowledged != acknowledged;
    if (old || fresh->member.failed || fresh->header.failed) {
        weir_buf_clear(&fresh->member);
        weir_buf_clear(&fresh->header);
        fresh_survey survey = {.api = api, .json = weir_json_begin(&fresh->member), .header = &fresh->header};
        weir_json_object(&survey.json);
        (void)weir_pipeline_partitions(api->pipeline, fresh_visit, &survey); /* the visit has no errors */
        while (survey.next < weir_pipeline_source_count(api->pipeline))
            fresh_begin_source(&survey);
        fresh_end_source(&survey);
        weir_json_object_end(&survey.json);
        fresh->made_us = now_us;
        fresh->acknowledged = acknowledged;
    }
    if (!fresh->header.length || fresh->header.failed) return; /* no partition is known yet */
    char *header = weir_arena_strndup(weir_http_arena(request), fresh->header.bytes, fresh->header.length);
    if (header) weir_http_add_header(request, "Weir-Freshness", header);
}

void weir_api_fresh_member(weir_api *api, uint32_t thread, weir_json *json) {
    WEIR_ASSERT(thread < api->fresh_count);
    const weir_api_fresh *fresh = &api->fresh[thread];
    weir_json_key(json, "freshness");
    weir_buf_append(json->buf, fresh->member.bytes, fresh->member.length);
    if (!json->buf->failed) json->buf->failed = fresh->member.failed; /* a part of it is not JSON */
    json->after_key = false;                                          /* the value was written past the writer */
}

void weir_api_fresh_free(weir_api_fresh *fresh) {
    weir_buf_free(&fresh->member);
    weir_buf_free(&fresh->header);
}

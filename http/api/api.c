/* SPDX-License-Identifier: Apache-2.0 */
/* api.c - the table of routes, and what stands behind it. */
#include <weir/store/base/alloc.h>

#include "private.h"

#define SAMPLE_BYTES_MAX (256u << 10)
#define SMALL_BYTES_MAX  4096u

static const char *const api_vertex_query[] = {"before", NULL};
static const char *const api_neighbors_query[] = {"relation", "direction", "before", "limit", NULL};
static const char *const api_recommend_query[] = {"limit", NULL};
static const char *const api_events_query[] = {"source", NULL};
static const char *const api_ready_query[] = {"verbose", NULL};

static const weir_http_route api_routes[] = {
    {"GET", "/v1/neighbors/{type}/{key}", WEIR_HTTP_READER, api_neighbors_query, 0, weir_api_get_neighbors},
    {"GET", "/v1/vertices/{type}/{key}", WEIR_HTTP_READER, api_vertex_query, 0, weir_api_get_vertex},
    {"POST", "/v1/events", WEIR_HTTP_WRITER, api_events_query, WEIR_API_EVENTS_BYTES, weir_api_post_events},
    {"POST", "/v1/sample", WEIR_HTTP_READER, NULL, SAMPLE_BYTES_MAX, weir_api_post_sample},
    {"POST", "/v1/score", WEIR_HTTP_READER, NULL, WEIR_API_EVENTS_BYTES, weir_api_post_score},
    {"GET", "/v1/embeddings/{type}/{key}", WEIR_HTTP_READER, NULL, 0, weir_api_get_embedding},
    {"GET", "/v1/recommend/{type}/{key}", WEIR_HTTP_READER, api_recommend_query, 0, weir_api_get_recommend},
    {"POST", "/v1/models/reload", WEIR_HTTP_ADMIN, NULL, 0, weir_api_post_reload},
    {"GET", "/v1/status", WEIR_HTTP_READER, NULL, 0, weir_api_get_status},
    {"GET", "/v1/nightly", WEIR_HTTP_READER, NULL, 0, weir_api_get_nightly},
    {"POST", "/v1/admin/checkpoint", WEIR_HTTP_ADMIN, NULL, SMALL_BYTES_MAX, weir_api_post_checkpoint},
    {"GET", "/", WEIR_HTTP_ANYONE, NULL, 0, weir_api_get_page},
    {"GET", "/page.js", WEIR_HTTP_ANYONE, NULL, 0, weir_api_get_page_script},
    {"GET", "/page.css", WEIR_HTTP_ANYONE, NULL, 0, weir_api_get_page_style},
    {"GET", "/livez", WEIR_HTTP_ANYONE, NULL, 0, weir_api_livez},
    {"GET", "/readyz", WEIR_HTTP_ANYONE, api_ready_query, 0, weir_api_readyz},
    {"GET", "/metrics", WEIR_HTTP_READER, NULL, 0, weir_api_metrics},
    {"GET", "/openapi.json", WEIR_HTTP_ANYONE, NULL, 0, weir_api_get_openapi},
};

const weir_http_route *weir_api_routes(size_t *countp) {
    *countp = sizeof api_routes / sizeof api_routes[0];
    return api_routes;
}

bool weir_api_authenticate(void *context, const char *key, size_t length, weir_http_caller *callerp) {
    const weir_api *api = context;
    return weir_api_keys_find(api->keys, key, length, callerp);
}

weir_err weir_api_open(const weir_api_opts *opts, weir_api **apip) {
    *apip = NULL;
    weir_api *api = weir_calloc(1, sizeof *api);
    if (!api) return WEIR_NOMEM("for the API");
    api->graph = opts->graph;
    api->schema = weir_graph_schema(opts->graph);
    api->pipeline = opts->pipeline;
    api->keys = opts->keys;
    api->checkpoints = opts->checkpoints;
    api->nights = opts->nights;
    api->nightly_every_us = opts->nightly_every_us;
    api->clock = opts->clock ? opts->clock : weir_clock_system();
    api->loops = opts->loops;
    api->stale_max_us = opts->stale_max_us;
    api->behind_max = opts->behind_max;
    api->scoring = opts->scoring;
    api->watch = opts->watch;
    api->fresh_count = opts->loops + 1 + WEIR_API_POOL_THREADS;
    if (opts->scoring) api->fresh_count += weir_scoring_threads(opts->scoring);
    api->fresh = weir_calloc(api->fresh_count, sizeof *api->fresh);
    weir_err err = api->fresh ? WEIR_OK : WEIR_NOMEM("for the API");
    if (!err) err = weir_api_writer_open(api, opts, &api->writer);
    if (!err) err = weir_api_scores_open(api);
    if (!err) err = weir_api_pool_open(api, &api->pool);
    if (err) {
        weir_api_close(api);
        return err;
    }
    *apip = api;
    return WEIR_OK;
}

void weir_api_close(weir_api *api) {
    if (!api) return;
    weir_api_stopping(api);
    weir_api_pool_close(api->pool);
    weir_api_writer_close(api->writer);
    for (uint32_t i = 0; api->fresh && i < api->fresh_count; i++)
        weir_api_fresh_free(&api->fresh[i]);
    weir_api_scores_close(api);
    weir_api_recommend_close(api);
    weir_free(api->fresh);
    weir_free(api->goals);
    weir_free(api);
}

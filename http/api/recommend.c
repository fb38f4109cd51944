/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recommend.c - GET /v1/recommend/{type}/{key}: what this vertex will meet next.
 *
 * The vector of the vertex is computed from its edges as they are at that moment, so an event that was just applied
 * counts. That, and products with all items, is done by a thread of the pool.
 */
#include <stdlib.h>
#include <string.h>

#include <weir/store/base/assert.h>

#include "private.h"

#define RECOMMEND_DEFAULT  20u
#define RECOMMEND_SPARE    32u /* asked for beside, for those that were deleted or have expired since the training */
#define RECOMMEND_KEY_ROOM (64u << 10)

typedef struct recommendation_question {
    weir_api *api;
    weir_http_request *request;
    weir_api_vertex vertex;
    uint32_t limit;
} recommendation_question;

static weir_err recommendation_read(recommendation_question *ask) {
    const char *limit = weir_http_query(ask->request, "limit");
    ask->limit = RECOMMEND_DEFAULT;
    if (limit) {
        const bool digits = *limit && !limit[strspn(limit, "0123456789")];
        const unsigned long number = digits ? strtoul(limit, NULL, 10) : 0;
        if (!number || number > WEIR_RECOMMEND_LIMIT_MAX - RECOMMEND_SPARE)
            return WEIR_ERR(WEIR_EDATA, "limit is '%.16s'; it must be a number from 1 to %u", limit,
                            WEIR_RECOMMEND_LIMIT_MAX - RECOMMEND_SPARE);
        ask->limit = (uint32_t)number;
    }
    return weir_api_vertex_of_path(ask->api, ask->request, &ask->vertex);
}

/* What the graph no longer has is left out. */
static weir_err recommendation_write_items(const recommendation_question *ask, const weir_recommend_model *model,
                                           const weir_recommend_answer *answer, weir_json *json) {
    const weir_recommend_tables *tables = weir_recommend_model_tables(model);
    weir_arena *arena = NULL;
    uint32_t written = 0;
    weir_err err = weir_arena_open(RECOMMEND_KEY_ROOM, &arena);
    weir_json_key(json, "recommendations");
    weir_json_array(json);
    for (uint32_t i = 0; !err && i < answer->count && written < ask->limit; i++) {
        uint16_t type;
        const char *key;
        uint32_t length;
        const weir_vertex item = weir_vertex_of(tables->item_ids[answer->best[i].item]);
        err = weir_graph_name(ask->api->graph, item, arena, &type, &key, &length);
        if (err || !key) continue;
        weir_json_object(json);
        weir_json_key_string(json, "type", weir_schema_vertex_at(ask->api->schema, type)->name);
        weir_json_key_text(json, "key", key, length);
        weir_json_key_f64(json, "score", (double)answer->best[i].score);
        weir_json_object_end(json);
        weir_arena_reset(arena);
        written++;
    }
    weir_json_array_end(json);
    weir_arena_close(arena);
    return err;
}

static weir_err recommendation_write(const recommendation_question *ask, const weir_recommend_model *model,
                                     const weir_recommend_answer *answer, uint32_t thread) {
    const weir_schema_task *task = weir_schema_task_at(ask->api->schema, weir_recommend_model_shape(model)->task);
    weir_json json = weir_json_begin(weir_http_out(ask->request));
    weir_json_object(&json);
    weir_json_key(&json, "model");
    weir_json_object(&json);
    weir_json_key_string(&json, "task", task->name);
    weir_json_key_string(&json, "id", weir_recommend_model_version(model));
    weir_json_object_end(&json);
    weir_json_key_string(&json, "type", ask->vertex.type_name);
    weir_json_key_text(&json, "key", ask->vertex.key, ask->vertex.key_length);
    weir_json_key_string(&json, "by", answer->by_trend ? "trend" : "history");
    weir_json_key_u64(&json, "met", answer->met);
    weir_err err = recommendation_write_items(ask, model, answer, &json);
    if (!err) weir_api_json_answer(ask->api, thread, &json, ask->request);
    return err;
}

/* The pool's threads each have a reader of the graph, opened when it is first wanted. */
static weir_err recommendation_run(const recommendation_question *ask, const weir_recommend_model *model,
                                   uint32_t thread) {
    weir_api *api = ask->api;
    weir_recommender **own = &api->recommenders[thread - api->loops - 1];
    const weir_schema_task *task = weir_schema_task_at(api->schema, weir_recommend_model_shape(model)->task);
    const uint32_t of = weir_schema_relation_at(api->schema, task->relation)->from;
    weir_recommend_answer answer;
    WEIR_ASSERT(thread > api->loops && thread - api->loops - 1 < WEIR_API_POOL_THREADS);
    if (ask->vertex.type != of)
        return WEIR_ERR(WEIR_ENOTFOUND, "the model recommends to vertices of type %s, not of type %s",
                        weir_schema_vertex_at(api->schema, of)->name, ask->vertex.type_name);
    weir_err err = *own ? WEIR_OK : weir_recommender_open(api->graph, own);
    if (!err)
        err = weir_recommender_run(*own, model, weir_api_vertex_id(api, &ask->vertex), weir_api_now(api),
                                   ask->limit + RECOMMEND_SPARE, &answer);
    return err ? err : recommendation_write(ask, model, &answer, thread);
}

static weir_err recommendation_answer(weir_api *api, uint32_t thread, weir_http_request *request) {
    recommendation_question ask = {.api = api, .request = request};
    weir_api_fresh_begin(api, thread, request); // API-A3
    weir_err err = recommendation_read(&ask);
    if (!err) err = weir_api_whole(api);
    if (err) return err;
    weir_recommend_model *model = weir_scoring_recommender(api->scoring);
    if (model)
        err = recommendation_run(&ask, model, thread);
    else
        weir_http_problem(
            request, 503, "no-model",
            "no model that recommends serves; train one on a task of kind recommend with `weir train` and "
            "promote it with `weir model promote`");
    weir_recommend_model_drop(model);
    return err;
}

weir_err weir_api_get_recommend(void *context, weir_http_request *request) {
    weir_api *api = context;
    if (!api->scoring)
        return WEIR_ERR(WEIR_EUNAVAILABLE, "this server has no models; start it with a models folder (--models DIR)");
    weir_api_pool_run(api->pool, request, recommendation_answer);
    return WEIR_OK;
}

void weir_api_recommend_close(weir_api *api) {
    for (uint32_t i = 0; i < WEIR_API_POOL_THREADS; i++)
        weir_recommender_close(api->recommenders[i]);
}

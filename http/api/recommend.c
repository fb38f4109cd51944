/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recommend.c - GET /v1/recommend/{type}/{key}: what this vertex will meet next; and, while such a model serves,
 * GET /v1/embeddings/{type}/{key}.
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

/* One that the graph still has, and what it is called. */
typedef struct recommendation_item {
    const char *key;
    uint32_t length;
    float score;
} recommendation_item;

/* Of the best those that the graph still has, at most as many as are wanted; a folder could name vertices of any type,
 * so the others are left out. */
static weir_err recommendation_find_living(const recommendation_question *ask, const weir_recommend_model *model,
                                           uint32_t of_type, const weir_recommend_answer *answer,
                                           recommendation_item *items, uint32_t *countp) {
    const weir_recommend_tables *tables = weir_recommend_model_tables(model);
    weir_arena *arena = NULL;
    weir_err err = weir_arena_open(RECOMMEND_KEY_ROOM, &arena);
    *countp = 0;
    for (uint32_t i = 0; !err && i < answer->count && *countp < ask->limit; i++) {
        uint16_t type;
        const char *key;
        uint32_t length;
        const weir_vertex item = weir_vertex_of(tables->item_ids[answer->best[i].item]);
        err = weir_graph_name(ask->api->graph, item, arena, &type, &key, &length);
        if (err || !key || type != of_type) continue;
        char *kept = weir_arena_alloc(weir_http_arena(ask->request), length + 1);
        if (kept)
            memcpy(kept, key, length);
        else
            err = WEIR_NOMEM("for recommendations");
        items[(*countp)++] = (recommendation_item){kept, length, answer->best[i].score};
        weir_arena_reset(arena);
    }
    weir_arena_close(arena);
    return err;
}

/* By what, and of whom. */
static void recommendation_write_head(const recommendation_question *ask, const weir_recommend_model *model,
                                      const weir_schema *schema, weir_json *json) {
    weir_json_key(json, "model");
    weir_json_object(json);
    weir_json_key_string(json, "task", weir_schema_task_at(schema, weir_recommend_model_shape(model)->task)->name);
    weir_json_key_string(json, "id", weir_recommend_model_version(model));
    weir_json_object_end(json);
    weir_json_key_string(json, "type", ask->vertex.type_name);
    weir_json_key_text(json, "key", ask->vertex.key, ask->vertex.key_length);
}

static void recommendation_write(const recommendation_question *ask, const weir_recommend_model *model,
                                 const weir_recommend_answer *answer, const recommendation_item *items, uint32_t count,
                                 uint32_t thread) {
    const weir_schema *schema = ask->api->schema;
    const weir_schema_task *task = weir_schema_task_at(schema, weir_recommend_model_shape(model)->task);
    const char *type = weir_schema_vertex_at(schema, weir_schema_relation_at(schema, task->relation)->to)->name;
    weir_json json = weir_json_begin(weir_http_out(ask->request));
    weir_json_object(&json);
    recommendation_write_head(ask, model, schema, &json);
    weir_json_key_string(&json, "by", answer->by_trend ? "trend" : "history");
    weir_json_key_u64(&json, "met", answer->met);
    weir_json_key(&json, "recommendations");
    weir_json_array(&json);
    for (uint32_t i = 0; i < count; i++) {
        weir_json_object(&json);
        weir_json_key_string(&json, "type", type);
        weir_json_key_text(&json, "key", items[i].key, items[i].length);
        weir_json_key_f64(&json, "score", (double)items[i].score);
        weir_json_object_end(&json);
    }
    weir_json_array_end(&json);
    weir_api_json_answer(ask->api, thread, &json, ask->request);
}

/* The pool's threads each have a reader of the graph, opened when it is first wanted. */
static weir_err recommendation_own(weir_api *api, uint32_t thread, weir_recommender **ownp) {
    WEIR_ASSERT(thread > api->loops && thread - api->loops - 1 < WEIR_API_POOL_THREADS);
    weir_recommender **own = &api->recommenders[thread - api->loops - 1];
    weir_err err = *own ? WEIR_OK : weir_recommender_open(api->graph, own);
    *ownp = *own;
    return err;
}

/* Where more of the best are gone than were asked for beside, as many are asked for as may be. */
static weir_err recommendation_run(const recommendation_question *ask, const weir_recommend_model *model,
                                   uint32_t thread) {
    weir_api *api = ask->api;
    const weir_schema_task *task = weir_schema_task_at(api->schema, weir_recommend_model_shape(model)->task);
    const weir_schema_relation *r = weir_schema_relation_at(api->schema, task->relation);
    weir_recommend_answer answer = {.count = 0};
    uint32_t asked = ask->limit + RECOMMEND_SPARE, count = 0;
    if (ask->vertex.type != r->from)
        return WEIR_ERR(WEIR_ENOTFOUND, "the model recommends to vertices of type %s, not of type %s",
                        weir_schema_vertex_at(api->schema, r->from)->name, ask->vertex.type_name);
    recommendation_item *items = weir_arena_calloc(weir_http_arena(ask->request), ask->limit, sizeof *items);
    if (!items) return WEIR_NOMEM("for recommendations");
    weir_recommender *own;
    weir_err err = recommendation_own(api, thread, &own);
    for (bool again = true; !err && again; asked = WEIR_RECOMMEND_LIMIT_MAX) {
        err =
            weir_recommender_run(own, model, weir_api_vertex_id(api, &ask->vertex), weir_api_now(api), asked, &answer);
        if (!err) err = recommendation_find_living(ask, model, r->to, &answer, items, &count);
        again = count < ask->limit && answer.count == asked && asked < WEIR_RECOMMEND_LIMIT_MAX;
    }
    if (!err) recommendation_write(ask, model, &answer, items, count, thread);
    return err;
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

/* --- GET /v1/embeddings/{type}/{key} of a model that recommends --------------------------------------------------- */

static weir_err recommendation_find_vector(const recommendation_question *ask, const weir_recommend_model *model,
                                           uint32_t thread, int64_t now_us, float *vector) {
    weir_api *api = ask->api;
    const weir_schema_task *task = weir_schema_task_at(api->schema, weir_recommend_model_shape(model)->task);
    const weir_schema_relation *r = weir_schema_relation_at(api->schema, task->relation);
    const weir_vertex vertex = weir_api_vertex_id(api, &ask->vertex);
    weir_recommender *own = NULL;
    bool known;
    int64_t first_us;
    if (ask->vertex.type != r->from && ask->vertex.type != r->to)
        return WEIR_ERR(WEIR_ENOTFOUND, "the model has no embedding of a %s: it recommends %s to %s",
                        ask->vertex.type_name, weir_schema_vertex_at(api->schema, r->to)->name,
                        weir_schema_vertex_at(api->schema, r->from)->name);
    weir_err err =
        weir_graph_first_put(api->graph, vertex, WEIR_BEFORE_ALL, weir_http_arena(ask->request), &known, &first_us);
    if (err) return err;
    if (!known)
        return WEIR_ERR(WEIR_ENOTFOUND, "no such %s: no event has named it yet, or it was deleted or has expired",
                        ask->vertex.type_name);
    if (ask->vertex.type == r->to && !weir_recommend_item_vector(model, vertex, vector))
        return WEIR_ERR(WEIR_ENOTFOUND, "the model does not know this %s, which came after its training",
                        ask->vertex.type_name);
    if (ask->vertex.type == r->to) return WEIR_OK;
    err = recommendation_own(api, thread, &own);
    return err ? err : weir_recommender_vector(own, model, vertex, now_us, vector);
}

static weir_err recommendation_embed(const recommendation_question *ask, const weir_recommend_model *model,
                                     uint32_t thread) {
    const weir_schema *schema = ask->api->schema;
    const weir_recommend_shape *shape = weir_recommend_model_shape(model);
    const int64_t now_us = weir_api_now(ask->api);
    float vector[WEIR_RECOMMEND_WIDTH_MAX + 1];
    weir_err err = recommendation_find_vector(ask, model, thread, now_us, vector);
    if (err) return err;
    weir_json json = weir_json_begin(weir_http_out(ask->request));
    weir_json_object(&json);
    recommendation_write_head(ask, model, schema, &json);
    weir_json_key_time(&json, "time", now_us);
    weir_json_key(&json, "embedding");
    weir_json_array(&json);
    for (uint32_t i = 0; i <= shape->width; i++)
        weir_json_f64(&json, (double)vector[i]);
    weir_json_array_end(&json);
    weir_api_json_answer(ask->api, thread, &json, ask->request);
    return WEIR_OK;
}

/* The model may have been swapped since the request came. */
static weir_err recommendation_answer_embedding(weir_api *api, uint32_t thread, weir_http_request *request) {
    recommendation_question ask = {.api = api, .request = request};
    weir_api_fresh_begin(api, thread, request); // API-A3
    weir_err err = weir_api_vertex_of_path(api, request, &ask.vertex);
    if (!err) err = weir_api_whole(api);
    if (err) return err;
    weir_recommend_model *model = weir_scoring_recommender(api->scoring);
    if (model)
        err = recommendation_embed(&ask, model, thread);
    else
        weir_http_problem(request, 503, "no-model", "another model serves since this moment; ask again");
    weir_recommend_model_drop(model);
    return err;
}

bool weir_api_recommend_embeds(weir_api *api, weir_http_request *request) {
    weir_recommend_model *model = weir_scoring_recommender(api->scoring);
    const bool embeds = model;
    if (embeds) weir_api_pool_run(api->pool, request, recommendation_answer_embedding);
    weir_recommend_model_drop(model);
    return embeds;
}

void weir_api_recommend_close(weir_api *api) {
    for (uint32_t i = 0; i < WEIR_API_POOL_THREADS; i++)
        weir_recommender_close(api->recommenders[i]);
}

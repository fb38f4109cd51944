/* SPDX-License-Identifier: Apache-2.0 */
/*
 * score.c - POST /v1/score, GET /v1/embeddings/{type}/{key}, POST /v1/models/reload.
 *
 *   [loop] weir_api_post_score: read the body, admit ─► scoring's queue
 *   [worker] score_job_prepare: map the event, ask ─► one pass of the network for the batch ─► score_job_done: answer
 *
 * The body is read where the request arrives: its deadline and the number of its targets decide whether it is admitted.
 * Only the worker reads the graph. Freshness is taken before anything is read (API-A3).
 */
#include <math.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>

#include "score_ask.h"

#define WAIT_MAX_US (10 * WEIR_US_PER_S) /* in the queue */

/* One request on its way; lives in its arena. */
typedef struct score_job {
    weir_api *api;
    weir_http_request *request;
    weir_api_score_ask ask;
    bool embedding;
    bool prepared; /* the body could be read: what it names and cannot be scored is 422 */
} score_job;

static uint32_t score_fresh_index(const weir_api *api, uint32_t thread) {
    uint32_t index = api->loops + 1 + WEIR_API_POOL_THREADS + thread;
    WEIR_ASSERT(index < api->fresh_count);
    return index;
}

/* --- the answer ----------------------------------------------------------------------------------------------- */

/* Type and key of a reason's neighbour; one that only the event knows has its key from there. */
static weir_err score_write_neighbor(const score_job *job, weir_json *json, const weir_score_ask *ask,
                                     const weir_score_reason *reason) {
    uint16_t type;
    const char *key;
    uint32_t length;
    weir_err err =
        weir_graph_name(job->api->graph, reason->neighbor, weir_http_arena(job->request), &type, &key, &length);
    if (err) return err;
    for (size_t i = 0; !key && i < ask->mutation_count; i++) {
        const weir_mutation *m = &ask->mutations[i];
        if (m->kind != WEIR_PUT_VERTEX || m->vertex != reason->neighbor || !m->key_length) continue;
        key = m->key;
        length = m->key_length;
    }
    weir_json_key_string(json, "type", weir_schema_vertex_at(job->api->schema, reason->neighbor_type)->name);
    weir_api_json_key_or_null(json, key, length);
    return WEIR_OK;
}

/* Together they are the logit. */
static void score_write_columns(weir_json *json, const weir_score_model *model, const weir_score *score) {
    weir_json_key_f64(json, "base", score->base);
    weir_json_key(json, "columns");
    weir_json_array(json);
    for (uint32_t i = 0; i < score->column_count; i++) {
        const weir_score_column *column = &score->columns[i];
        weir_json_object(json);
        weir_json_key_string(json, "column", column->name);
        if (column->text || isnan(column->value))
            weir_json_key_string(json, "value", column->text);
        else
            weir_json_key_f64(json, "value", column->value);
        weir_json_key_f64(json, "contribution", column->contribution);
        weir_json_object_end(json);
    }
    weir_json_array_end(json);
    weir_json_key_f64(json, "other_columns", score->other_columns);
    if (weir_score_model_blends(model)) weir_json_key_f64(json, "network", score->network);
}

static weir_err score_write_reasons(const score_job *job, weir_json *json, const weir_score_ask *ask,
                                    const weir_score *score) {
    weir_err err = WEIR_OK;
    weir_json_key_f64(json, "own_change", score->own_change);
    weir_json_key(json, "reasons");
    weir_json_array(json);
    for (uint32_t i = 0; !err && i < score->reason_count; i++) {
        const weir_score_reason *reason = &score->reasons[i];
        weir_json_object(json);
        weir_json_key_string(json, "relation", weir_schema_relation_at(job->api->schema, reason->relation)->name);
        weir_json_key_string(json, "direction", reason->direction == WEIR_OUT ? "out" : "in");
        err = score_write_neighbor(job, json, ask, reason);
        weir_json_key_time(json, "time", reason->time_us);
        weir_api_json_event(json, "event", reason->event);
        weir_json_key_f64(json, "change", reason->change);
        weir_json_object_end(json);
    }
    weir_json_array_end(json);
    if (score->untried) weir_json_key_u64(json, "edges_not_tried", score->untried);
    return err;
}

static void score_write_target(const score_job *job, weir_json *json, uint32_t i) {
    const weir_api_vertex *vertex = &job->ask.vertices[i];
    weir_json_key_string(json, "type", vertex->type_name);
    weir_json_key_text(json, "key", vertex->key, vertex->key_length);
    weir_json_key_time(json, "time", job->ask.asks[i].time_us);
}

static weir_err score_write(const score_job *job, weir_json *json, uint32_t i, const weir_score_model *model,
                            const weir_score *score) {
    static const char *const efforts[] = {"whole", "less", "least"};
    const weir_score_ask *ask = &job->ask.asks[i];
    WEIR_ASSERT(score->effort < sizeof efforts / sizeof efforts[0]);
    weir_json_object(json);
    score_write_target(job, json, i);
    weir_api_json_event(json, "decision", score->decision);
    if (weir_nn_outputs(weir_score_model_shape(model)) > 1) {
        weir_json_key_u64(json, "class", score->label);
    }
    weir_json_key_f64(json, "score", score->score);
    weir_json_key_f64(json, "probability", score->probability);
    weir_json_key_f64(json, "logit", score->logit);
    weir_json_key_u64(json, "nodes", score->nodes);
    weir_json_key_u64(json, "edges", score->edges);
    weir_json_key_string(json, "neighborhood", efforts[score->effort]);
    weir_err err = ask->reasons ? score_write_reasons(job, json, ask, score) : WEIR_OK;
    if (score->columns) score_write_columns(json, model, score);
    weir_json_object_end(json);
    return err;
}

static weir_err score_write_answer(const score_job *job, uint32_t thread, const weir_score_model *model,
                                   const weir_score *scores) {
    weir_err err = WEIR_OK;
    weir_json json = weir_json_begin(weir_http_out(job->request));
    weir_json_object(&json);
    weir_json_key(&json, "model");
    weir_json_object(&json);
    weir_json_key_string(&json, "task", weir_score_model_name(model));
    weir_json_key_string(&json, "id", weir_score_model_version(model));
    weir_json_object_end(&json);
    if (job->embedding) {
        score_write_target(job, &json, 0);
        weir_json_key(&json, "embedding");
        weir_json_array(&json);
        for (uint32_t i = 0; i < scores->embedding_width; i++)
            weir_json_f64(&json, (double)scores->embedding[i]);
        weir_json_array_end(&json);
    } else {
        weir_json_key(&json, "scores");
        weir_json_array(&json);
        for (uint32_t i = 0; !err && i < job->ask.count; i++)
            err = score_write(job, &json, i, model, &scores[i]);
        weir_json_array_end(&json);
    }
    if (!err) weir_api_json_answer(job->api, score_fresh_index(job->api, thread), &json, job->request);
    return err;
}

/* --- on a thread that scores ------------------------------------------------------------------------------------ */

/* Maps the event as it would be from the log. The mapper is this thread's own, opened when it is first wanted. */
static weir_err score_job_map_event(score_job *job, uint32_t thread, const weir_score_model *model) {
    weir_api *api = job->api;
    weir_api_score_ask *ask = &job->ask;
    size_t place = thread * weir_schema_source_count(api->schema) + ask->source;
    weir_mapped mapped = {0};
    weir_err err = WEIR_OK;
    WEIR_ASSERT(place < api->mapper_count);
    if (!api->mappers[place])
        err = weir_mapper_open(api->schema, ask->source, weir_graph_id_key(api->graph), &api->mappers[place]);
    int64_t latest_us = weir_graph_latest(api->graph, INT64_MIN);
    if (!err) err = weir_api_event_map(api->mappers[place], &ask->event, 0, latest_us, &mapped);
    if (!err) err = weir_api_score_keep_event(ask, weir_http_arena(job->request), &mapped);
    if (!err) err = weir_score_ask_event(model, ask->mutations, ask->mutation_count, &ask->asks[0]);
    if (!err) err = weir_api_score_name_event(ask, api->schema);
    return err;
}

static weir_err score_job_ask_vertices(score_job *job, const weir_score_model *model) {
    const weir_nn_shape *shape = weir_score_model_shape(model);
    weir_api_score_ask *ask = &job->ask;
    weir_err err = WEIR_OK;
    for (uint32_t i = 0; !err && i < ask->count; i++) {
        const weir_vertex vertex = weir_api_vertex_id(job->api, &ask->vertices[i]);
        weir_arena *arena = weir_http_arena(job->request);
        if (job->embedding) {
            err = weir_score_ask_embedding(job->api->graph, model, (uint16_t)ask->vertices[i].type, vertex,
                                           weir_api_now(job->api), arena, &ask->asks[i]);
            continue;
        }
        if (ask->vertices[i].type != weir_nn_target_type(shape))
            return WEIR_ERR(WEIR_EDATA, "the model scores vertices of type %s, not of type %s",
                            weir_nn_vertex(shape, weir_nn_target_type(shape))->name, ask->vertices[i].type_name);
        err = weir_score_ask_vertex(job->api->graph, model, vertex, weir_api_now(job->api), arena, &ask->asks[i]);
    }
    return err;
}

static weir_err score_job_prepare(void *context, uint32_t thread, const weir_score_model *model,
                                  const weir_score_ask **asksp, uint32_t *countp) {
    WEIR_ON_ROLE(WORKER);
    score_job *job = context;
    weir_api_score_ask *ask = &job->ask;
    WEIR_ASSERT(ask->count && ask->count <= WEIR_SCORE_BATCH_MAX);
    weir_api_fresh_begin(job->api, score_fresh_index(job->api, thread), job->request); // API-A3
    job->prepared = true;
    weir_err err = ask->event.bytes ? score_job_map_event(job, thread, model) : score_job_ask_vertices(job, model);
    for (uint32_t i = 0; i < ask->count; i++) {
        ask->asks[i].reasons = ask->reasons;
        ask->asks[i].columns = ask->columns;
        ask->asks[i].nodes_max = ask->nodes_max;
        ask->asks[i].deadline_us = ask->deadline_us ? ask->arrival_us + ask->deadline_us : 0;
        ask->asks[i].embedding = job->embedding;
    }
    *asksp = ask->asks;
    *countp = ask->count;
    return err;
}

static void score_job_done(void *context, uint32_t thread, const weir_score_model *model, const weir_score *scores,
                           weir_err err) {
    score_job *job = context;
    if (!err && model) err = score_write_answer(job, thread, model, scores);
    bool unfit = job->prepared && !job->embedding && (weir_err_is(err, WEIR_EDATA) || weir_err_is(err, WEIR_ENOTFOUND));
    weir_recommend_model *recommender = err || model ? NULL : weir_scoring_recommender(job->api->scoring);
    if (recommender) {
        weir_http_problem(job->request, 503, "no-model",
                          "the model that serves recommends (GET /v1/recommend), and scores nothing; promote one that "
                          "classifies with `weir model promote`");
        weir_recommend_model_drop(recommender);
    } else if (!err && !model) {
        weir_http_problem(job->request, 503, "no-model",
                          "no model serves yet; train one with `weir train` and promote it with `weir model promote`");
    } else if (unfit) {
        char sentence[WEIR_ERR_SENTENCE_MAX];
        weir_err_sentence(err, sentence, sizeof sentence);
        weir_http_problem(job->request, 422, NULL, "%s", sentence);
    } else if (err) {
        weir_http_problem_err(job->request, err);
    }
    weir_http_finish(job->request);
}

/* --- on the loop -------------------------------------------------------------------------------------------------- */

static weir_err score_job_open(weir_api *api, weir_http_request *request, score_job **jobp) {
    *jobp = NULL;
    if (!api->scoring)
        return WEIR_ERR(WEIR_EUNAVAILABLE,
                        "this server computes no scores; start it with a models folder (--models DIR)");
    *jobp = weir_arena_calloc(weir_http_arena(request), 1, sizeof **jobp);
    if (!*jobp) return WEIR_NOMEM("for a request");
    **jobp = (score_job){.api = api, .request = request};
    (*jobp)->ask.arrival_us = weir_clock_mono_us(weir_clock_system());
    return WEIR_OK;
}

/* After its deadline no client waits for the answer, so none is begun. */
static void score_job_submit(score_job *job) {
    const weir_api_score_ask *ask = &job->ask;
    const weir_scoring_work work = {
        .context = job,
        .prepare = score_job_prepare,
        .done = score_job_done,
        .deadline_us = ask->arrival_us + (ask->deadline_us ? ask->deadline_us : WAIT_MAX_US),
        .targets = ask->count,
    };
    WEIR_ON_ROLE(LOOP);
    weir_http_defer(job->request);
    weir_err err = weir_scoring_submit(job->api->scoring, &work);
    if (!err) return;
    weir_http_problem_err(job->request, err);
    weir_http_finish(job->request);
}

weir_err weir_api_post_score(void *context, weir_http_request *request) {
    score_job *job;
    if (!weir_api_takes_json(request)) return WEIR_OK;
    weir_err err = score_job_open(context, request, &job);
    if (err) return err;
    size_t length;
    const char *body = weir_http_body(request, &length);
    err = weir_api_score_read(job->api->schema, body, length, weir_http_arena(request), &job->ask);
    if (!err) err = weir_api_whole(job->api);
    if (!err) score_job_submit(job);
    return err;
}

weir_err weir_api_get_embedding(void *context, weir_http_request *request) {
    weir_api *api = context;
    score_job *job;
    if (api->scoring && weir_api_recommend_embeds(api, request)) return WEIR_OK;
    weir_err err = score_job_open(api, request, &job);
    if (err) return err;
    err = weir_api_vertex_of_path(api, request, &job->ask.vertices[0]);
    if (!err) err = weir_api_whole(api);
    if (err) return err;
    job->embedding = true;
    job->ask.count = 1;
    score_job_submit(job);
    return WEIR_OK;
}

/* --- the register ----------------------------------------------------------------------------------------------- */

void weir_api_json_serving(weir_api *api, weir_json *json) {
    weir_scoring_state state = {0};
    if (api->watch) weir_scoring_watch_state(api->watch, &state);
    weir_json_key(json, "model");
    weir_json_object(json);
    weir_json_key_string(json, "serving", state.serving[0] ? state.serving : NULL);
    weir_json_key_u64(json, "generation", state.generation);
    weir_json_key_string(json, "trouble", state.trouble[0] ? state.trouble : NULL);
    weir_json_object_end(json);
}

static weir_err score_reload(weir_api *api, uint32_t thread, weir_http_request *request) {
    (void)thread;
    weir_scoring_watch_look(api->watch, true);
    weir_json json = weir_json_begin(weir_http_out(request));
    weir_json_object(&json);
    weir_api_json_serving(api, &json);
    weir_json_object_end(&json);
    weir_buf_byte(json.buf, '\n');
    weir_http_reply(request, 200, "application/json");
    return WEIR_OK;
}

weir_err weir_api_post_reload(void *context, weir_http_request *request) {
    weir_api *api = context;
    if (!api->watch)
        return WEIR_ERR(WEIR_EUNAVAILABLE, "this server has no models folder; start it with one (--models DIR)");
    weir_api_pool_run(api->pool, request, score_reload);
    return WEIR_OK;
}

/* --- open and close --------------------------------------------------------------------------------------------- */

weir_err weir_api_scores_open(weir_api *api) {
    if (!api->scoring) return WEIR_OK;
    size_t count = (size_t)weir_scoring_threads(api->scoring) * weir_schema_source_count(api->schema);
    api->mappers = weir_calloc(count, sizeof(weir_mapper *));
    if (!api->mappers) return WEIR_NOMEM("for the mappers of events");
    api->mapper_count = count;
    return WEIR_OK;
}

void weir_api_scores_close(weir_api *api) {
    for (size_t i = 0; i < api->mapper_count; i++)
        weir_mapper_close(api->mappers[i]);
    weir_free(api->mappers);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* private.h - what the files of the API share. */
#ifndef WEIR_HTTP_API_PRIVATE_H
#define WEIR_HTTP_API_PRIVATE_H

#include <stdatomic.h>

#include <weir/http/api/api.h>
#include <weir/ingest/map/map.h>
#include <weir/store/base/thread.h>

typedef struct weir_api_writer weir_api_writer;
typedef struct weir_api_pool weir_api_pool;

#define WEIR_API_POOL_THREADS 2u

/* --- freshness: per thread, made anew when it is older than a few milliseconds, or events were acknowledged since - */

typedef struct weir_api_fresh {
    int64_t made_us;
    uint64_t acknowledged; /* groups of events, when it was made */
    weir_buf member;       /* a JSON object */
    weir_buf header;
} weir_api_fresh;

/* Before the read that it speaks for (API-A3): adds the header, keeps the member for weir_api_fresh_member. */
void weir_api_fresh_begin(weir_api *api, uint32_t thread, weir_http_request *request);
/* `"freshness":{…}` into the object that is being written. */
void weir_api_fresh_member(weir_api *api, uint32_t thread, weir_json *json);
void weir_api_fresh_free(weir_api_fresh *fresh);

/* --- readiness ------------------------------------------------------------------------------------------------ */

typedef enum weir_api_state {
    WEIR_API_STARTING,
    WEIR_API_CATCHING_UP,
    WEIR_API_READY,
    WEIR_API_STOPPING
} weir_api_state;

typedef struct weir_api_goal {
    const char *source;
    uint32_t partition;
    uint64_t offset;
} weir_api_goal;

struct weir_api {
    weir_graph *graph;
    const weir_schema *schema;
    weir_pipeline *pipeline;
    weir_api_keys *keys;
    weir_clock *clock;
    uint32_t loops;
    uint32_t fresh_count;
    weir_api_fresh *fresh;         /* one a loop, then the writer's, then the pool's threads', then those that score */
    _Atomic uint64_t acknowledged; /* groups of events that the log has */
    weir_api_writer *writer;
    weir_api_pool *pool;
    weir_scoring *scoring;     /* borrowed; NULL: no scores */
    weir_scoring_watch *watch; /* borrowed; NULL: no register */
    weir_mapper **mappers;     /* of the threads that score: thread * sources + source; NULL until wanted */
    size_t mapper_count;
    weir_recommender *recommenders[WEIR_API_POOL_THREADS]; /* of the pool's threads; NULL until wanted */
    _Atomic int state;                                     /* weir_api_state */
    const char *checkpoints, *nights;
    int64_t nightly_every_us;  /* 0: no night is expected */
    _Atomic int checkpointing; /* one is being written */
    int64_t stale_max_us;
    uint64_t behind_max;
    _Atomic(const char *) behind; /* a source that was further behind, until it is half as far; NULL: none */
    _Atomic int64_t behind_seen_us;
    /* [owner] */
    bool fill_failed;          /* the store could not be sealed at the start's goals, which was logged */
    int64_t nightly_looked_us; /* when the gauge of overdue nights was set; 0: not yet */
    weir_api_goal *goals;
    size_t goal_count, goal_capacity;
};

/* WEIR_EUNAVAILABLE: the store is being filled from the log, so that what it lacks may only not have been read yet
 * (API-A5).  [any] */
weir_err weir_api_whole(const weir_api *api);
/* WEIR_EUNAVAILABLE: the graph is further behind a source than ingest.behind_max allows.  [any] */
weir_err weir_api_keeps_up(weir_api *api);
/* The error of the source of this name, if it has failed; NULL: of the first that has.  [any] */
weir_err weir_api_failure(weir_api *api, const char *source);
/* health.c: why no events of this source (NULL: of any) are applied until a restart, or success.  [any] */
weir_err weir_api_stopped(weir_api *api, const char *source);
/* health.c: the error of the first part of the server that is in trouble, or success.  [any] */
weir_err weir_api_parts(weir_api *api);
/* The member "troubles": all parts that are in trouble.  [any] */
void weir_api_json_troubles(weir_api *api, weir_json *json);

/* --- asking --------------------------------------------------------------------------------------------------- */

/* A vertex as a path names it. */
typedef struct weir_api_vertex {
    uint16_t type;
    const char *type_name;
    const char *key;
    size_t key_length;
} weir_api_vertex;

/* WEIR_ENOTFOUND no such type: names the nearest; WEIR_EDATA the key is not valid; WEIR_ENOMEM. An integer key is
 * normalized: 007 is 7.  [any] */
weir_err weir_api_vertex_read(const weir_schema *schema, weir_arena *arena, const char *type, const char *key,
                              size_t key_length, weir_api_vertex *vertexp);
/* The vertex of a path /…/{type}/{key}; the key stays in the request's arena.  As weir_api_vertex_read.  [any] */
weir_err weir_api_vertex_of_path(const weir_api *api, weir_http_request *request, weir_api_vertex *vertexp);
/* Its id in the graph that is served.  [any] */
weir_vertex weir_api_vertex_id(const weir_api *api, const weir_api_vertex *vertex);
/* The query's `before`, or WEIR_BEFORE_ALL.  WEIR_EDATA. */
weir_err weir_api_before(const weir_http_request *request, int64_t *before_usp);
weir_err weir_api_time_read(const char *name, const char *text, size_t length, int64_t *time_usp);
/* The wall clock, or just after the watermark if that is later. Not the newest event's time, which one sender sets. */
int64_t weir_api_now(const weir_api *api);
weir_err weir_api_direction_read(const char *text, weir_direction *directionp);
weir_err weir_api_relation_read(const weir_schema *schema, const char *text, uint16_t *relationp);
weir_err weir_api_source_read(const weir_schema *schema, const char *text, uint32_t *sourcep);

/* Whether a Content-Type is this one; its parameters ("; charset=utf-8") do not matter. */
bool weir_api_is_type(const char *header, const char *type);
/* Whether the Content-Type is JSON, which a page of another site cannot send without being asked.  false: the request
 * has its refusal. */
bool weir_api_takes_json(weir_http_request *request);

/* --- answering ------------------------------------------------------------------------------------------------ */

void weir_api_json_event(weir_json *json, const char *key, uint64_t event);
/* The member "key" of a vertex; NULL, of one that has no name any more: null. */
void weir_api_json_key_or_null(weir_json *json, const char *key, size_t length);
/* Ends an answer, which is an object, with its freshness, and sends it. */
void weir_api_json_answer(weir_api *api, uint32_t thread, weir_json *json, weir_http_request *request);
/* The member "features": those that a row has, by name. */
void weir_api_json_features(weir_json *json, const weir_schema_feature *features, const weir_value_kind *kinds,
                            size_t count, const uint8_t *row, uint32_t row_length);

/* --- handlers ------------------------------------------------------------------------------------------------- */

weir_err weir_api_get_vertex(void *context, weir_http_request *request);
weir_err weir_api_get_neighbors(void *context, weir_http_request *request);
weir_err weir_api_post_events(void *context, weir_http_request *request);
weir_err weir_api_post_sample(void *context, weir_http_request *request);
weir_err weir_api_post_score(void *context, weir_http_request *request);
weir_err weir_api_get_embedding(void *context, weir_http_request *request);
weir_err weir_api_get_recommend(void *context, weir_http_request *request);
weir_err weir_api_post_reload(void *context, weir_http_request *request);
weir_err weir_api_get_status(void *context, weir_http_request *request);
weir_err weir_api_get_nightly(void *context, weir_http_request *request);
weir_err weir_api_post_checkpoint(void *context, weir_http_request *request);
weir_err weir_api_get_page(void *context, weir_http_request *request);
weir_err weir_api_get_page_script(void *context, weir_http_request *request);
weir_err weir_api_get_page_style(void *context, weir_http_request *request);
weir_err weir_api_livez(void *context, weir_http_request *request);
weir_err weir_api_readyz(void *context, weir_http_request *request);
weir_err weir_api_metrics(void *context, weir_http_request *request);
weir_err weir_api_get_openapi(void *context, weir_http_request *request);

/* --- events --------------------------------------------------------------------------------------------------- */

weir_err weir_api_writer_open(weir_api *api, const weir_api_opts *opts, weir_api_writer **writerp);
void weir_api_writer_close(weir_api_writer *writer);
weir_err weir_api_writer_failure(weir_api_writer *writer);

typedef enum weir_api_format { WEIR_API_JSON, WEIR_API_LINES } weir_api_format;

typedef struct weir_api_message {
    const char *bytes;
    size_t length;
} weir_api_message;

/* Cuts a body into messages, which stay in the body: JSON is one value or an array of them; of lines each is a message,
 * and empty ones are skipped. Only as much of JSON is looked at as shows where a value ends; the mapper looks at the
 * rest. WEIR_EDATA says where; WEIR_ELIMIT more than WEIR_API_EVENTS_MAX; WEIR_ENOMEM.  [any] */
weir_err weir_api_split(weir_api_format format, const char *body, size_t length, weir_arena *arena,
                        const weir_api_message **messagesp, size_t *countp);

/* The value of a member of the body, which is an object; cut as weir_api_split cuts an element of an array: no more of
 * it is looked at than shows where it ends.  false: there is none of this name, its name has escapes, or what stands
 * before its end is not JSON.  [any] */
bool weir_api_cut(const char *body, size_t length, const char *name, weir_api_message *valuep);
/* Maps a message of the source, for the log and for a score alike: nothing else decides whether an event is valid.
 * index: among those of its request, for the message.  WEIR_EDATA, WEIR_ENOMEM as weir_mapper_map.  [owner] */
weir_err weir_api_event_map(weir_mapper *mapper, const weir_api_message *message, size_t index, int64_t latest_us,
                            weir_mapped *mappedp);

/* --- scores --------------------------------------------------------------------------------------------------- */

weir_err weir_api_scores_open(weir_api *api);
void weir_api_scores_close(weir_api *api);
/* `"model":{…}`: the model that serves, and why a promoted one does not. */
void weir_api_json_serving(weir_api *api, weir_json *json);

/* Whether the model that serves recommends: then the pool answers this request for an embedding. */
bool weir_api_recommend_embeds(weir_api *api, weir_http_request *request);
void weir_api_recommend_close(weir_api *api);

/* --- what runs beside the loops ------------------------------------------------------------------------------- */

typedef weir_err (*weir_api_work)(weir_api *api, uint32_t thread, weir_http_request *request);

/* A read of the graph within a budget: returns the error of the first read that exceeds it. */
typedef weir_err (*weir_api_read)(weir_api *api, uint32_t thread, weir_http_request *request,
                                  weir_graph_budget *budget);

weir_err weir_api_pool_open(weir_api *api, weir_api_pool **poolp);
/* Defers the request and has a thread of the pool answer it by work; 503 if too many wait already.  [loop] */
void weir_api_pool_run(weir_api_pool *pool, weir_http_request *request, weir_api_work work);
/* Answers on the loop what takes few steps. What takes more is done anew by a thread of the pool, until the time of the
 * request is nearly over: no read holds up a loop, whatever is asked.  [loop] */
weir_err weir_api_pool_read(weir_api_pool *pool, weir_http_request *request, weir_api_read read);
void weir_api_pool_close(weir_api_pool *pool);

#endif /* WEIR_HTTP_API_PRIVATE_H */

/* SPDX-License-Identifier: Apache-2.0 */
/* vertex.c - GET /v1/vertices/{type}/{key} and GET /v1/neighbors/{type}/{key}. */
#include <stdlib.h>
#include <string.h>

#include <weir/store/base/assert.h>

#include "private.h"

#define LIMIT_DEFAULT 20u

/* What both routes ask. */
typedef struct vertex_question {
    weir_api *api;
    uint32_t thread;
    weir_http_request *request;
    weir_graph_budget *budget;
    weir_arena *arena;
    weir_api_vertex vertex;
    weir_vertex id;
    int64_t before_us;
} vertex_question;

/* Takes the freshness, then reads the path and the query's `before`. */
static weir_err vertex_question_read(vertex_question *ask) {
    weir_api_fresh_begin(ask->api, ask->thread, ask->request); // API-A3
    ask->arena = weir_http_arena(ask->request);
    weir_err err = weir_api_vertex_of_path(ask->api, ask->request, &ask->vertex);
    if (!err) ask->id = weir_api_vertex_id(ask->api, &ask->vertex);
    return err ? err : weir_api_before(ask->request, &ask->before_us);
}

/* Whether the graph is whole and has the vertex, under this very key; then begins the answer. */
static weir_err vertex_begin_answer(const vertex_question *ask, weir_json *json) {
    uint16_t type;
    const char *key;
    uint32_t length;
    const weir_api_vertex *vertex = &ask->vertex;
    weir_err err = weir_api_whole(ask->api);
    if (!err) err = weir_graph_name_within(ask->api->graph, ask->id, ask->budget, ask->arena, &type, &key, &length);
    if (err) return err;
    if (!key || type != vertex->type || length != vertex->key_length || memcmp(key, vertex->key, length) != 0)
        return WEIR_ERR(WEIR_ENOTFOUND, "no such %s: no event has named it yet, or it was deleted or has expired",
                        vertex->type_name);
    *json = weir_json_begin(weir_http_out(ask->request));
    weir_json_object(json);
    weir_json_key_string(json, "type", vertex->type_name);
    weir_json_key_text(json, "key", vertex->key, vertex->key_length);
    if (ask->before_us == WEIR_BEFORE_ALL) return WEIR_OK;
    weir_json_key_time(json, "before", ask->before_us);
    return WEIR_OK;
}

/* --- vertices ------------------------------------------------------------------------------------------------- */

static weir_err vertex_write_features(const vertex_question *ask, weir_json *json) {
    size_t count;
    weir_row_view view;
    const weir_schema_vertex *vertex = weir_schema_vertex_at(ask->api->schema, ask->vertex.type);
    weir_err err = weir_graph_features_within(ask->api->graph, ask->id, ask->before_us, ask->budget, ask->arena, &view);
    if (err) return err;
    const weir_value_kind *kinds = weir_graph_vertex_kinds(ask->api->graph, ask->vertex.type, &count);
    if (view.row) {
        weir_json_key_time(json, "time", view.time_us);
    }
    weir_api_json_features(json, vertex->features, kinds, count, view.row, view.row_length);
    return WEIR_OK;
}

static weir_err vertex_write_label(const vertex_question *ask, weir_json *json, uint32_t id) {
    static const weir_value_kind kind = WEIR_VALUE_CATEGORY;
    const weir_schema_label *label = weir_schema_label_at(ask->api->schema, id);
    weir_row_view view;
    weir_value value;
    if (label->on_relation || label->target != ask->vertex.type) return WEIR_OK;
    weir_err err =
        weir_graph_label_within(ask->api->graph, ask->id, (uint16_t)id, ask->before_us, ask->budget, ask->arena, &view);
    if (err || !view.row) return err;
    weir_row_read(&kind, 1, view.row, view.row_length, &value);
    weir_json_key(json, label->name);
    weir_json_object(json);
    if (value.present)
        weir_json_key_text(json, "value", value.text, value.text_length);
    else
        weir_json_key_string(json, "value", NULL);
    weir_json_key_time(json, "time", view.time_us);
    weir_json_object_end(json);
    return WEIR_OK;
}

static weir_err vertex_answer(weir_api *api, uint32_t thread, weir_http_request *request, weir_graph_budget *budget) {
    vertex_question ask = {.api = api, .thread = thread, .request = request, .budget = budget};
    weir_json json;
    weir_err err = vertex_question_read(&ask);
    if (!err) err = vertex_begin_answer(&ask, &json);
    if (!err) err = vertex_write_features(&ask, &json);
    if (err) return err;
    weir_json_key(&json, "labels");
    weir_json_object(&json);
    for (uint32_t i = 0; !err && i < weir_schema_label_count(api->schema); i++)
        err = vertex_write_label(&ask, &json, i);
    weir_json_object_end(&json);
    if (!err) weir_api_json_answer(api, thread, &json, request);
    return err;
}

weir_err weir_api_get_vertex(void *context, weir_http_request *request) {
    weir_api *api = context;
    return weir_api_pool_read(api->pool, request, vertex_answer);
}

/* --- neighbours ----------------------------------------------------------------------------------------------- */

typedef struct neighbor_list {
    weir_direction direction;
    const weir_schema_relation *of;
    const weir_value_kind *kinds;
    size_t kind_count;
} neighbor_list;

static weir_err neighbor_write(const vertex_question *ask, weir_json *json, const neighbor_list *list,
                               const weir_edge *edge) {
    uint32_t end = list->direction == WEIR_OUT ? list->of->to : list->of->from;
    uint16_t type;
    const char *key;
    uint32_t length;
    weir_err err =
        weir_graph_name_within(ask->api->graph, edge->neighbor, ask->budget, ask->arena, &type, &key, &length);
    if (err) return err;
    weir_json_object(json);
    weir_json_key_string(json, "relation", list->of->name);
    weir_json_key_string(json, "direction", list->direction == WEIR_OUT ? "out" : "in");
    weir_json_key_string(json, "type", weir_schema_vertex_at(ask->api->schema, end)->name);
    weir_api_json_key_or_null(json, key, length); /* forgotten since: the edge outlives the name */
    weir_json_key_time(json, "time", edge->time_us);
    weir_api_json_event(json, "event", edge->event);
    weir_api_json_features(json, list->of->features, list->kinds, list->kind_count, edge->row, edge->row_length);
    weir_json_object_end(json);
    return WEIR_OK;
}

static weir_err neighbor_write_list(const vertex_question *ask, weir_json *json, uint16_t relation,
                                    weir_direction direction, uint32_t limit) {
    const weir_edge *edges;
    uint32_t count;
    neighbor_list list = {.direction = direction, .of = weir_schema_relation_at(ask->api->schema, relation)};
    list.kinds = weir_graph_relation_kinds(ask->api->graph, relation, &list.kind_count);
    weir_err err = weir_graph_neighbors_within(ask->api->graph, ask->id, relation, direction, ask->before_us, limit,
                                               ask->budget, ask->arena, &edges, &count);
    WEIR_ASSERT(err || count <= limit);
    /* Their names take longest: what is too much for a loop is known before they are read. */
    if (!err) err = weir_graph_budget_covers(ask->budget, (uint64_t)count * WEIR_GRAPH_SEEK_STEPS);
    for (uint32_t i = 0; !err && i < count; i++)
        err = neighbor_write(ask, json, &list, &edges[i]);
    return err;
}

/* Whether the vertex's type stands at the end of the relation that this direction begins at. */
static bool neighbor_stands_at(const vertex_question *ask, uint16_t relation, weir_direction direction) {
    const weir_schema_relation *of = weir_schema_relation_at(ask->api->schema, relation);
    return (direction == WEIR_OUT ? of->from : of->to) == ask->vertex.type;
}

/* The lists that are meant: those of the relations and directions asked for at which the type stands. */
typedef struct neighbor_choice {
    bool any_relation, any_direction;
    uint16_t relation;
    weir_direction direction;
    uint32_t limit; /* edges a list */
} neighbor_choice;

static weir_err neighbor_read_choice(const vertex_question *ask, neighbor_choice *choice) {
    const char *relation = weir_http_query(ask->request, "relation");
    const char *direction = weir_http_query(ask->request, "direction");
    const char *limit = weir_http_query(ask->request, "limit");
    weir_err err = WEIR_OK;
    *choice = (neighbor_choice){.any_relation = !relation, .any_direction = !direction, .limit = LIMIT_DEFAULT};
    if (relation) err = weir_api_relation_read(ask->api->schema, relation, &choice->relation);
    if (!err && direction) err = weir_api_direction_read(direction, &choice->direction);
    if (err) return err;
    if (relation) {
        bool out = neighbor_stands_at(ask, choice->relation, WEIR_OUT);
        bool in = neighbor_stands_at(ask, choice->relation, WEIR_IN);
        if (!(direction ? (choice->direction == WEIR_OUT ? out : in) : out || in))
            return WEIR_ERR(WEIR_EDATA, "relation '%s' %s at vertex type '%s'; choose another", relation,
                            !direction                      ? "neither begins nor ends"
                            : choice->direction == WEIR_OUT ? "does not begin"
                                                            : "does not end",
                            ask->vertex.type_name);
    }
    if (limit) {
        bool digits = *limit && !limit[strspn(limit, "0123456789")];
        unsigned long number = digits ? strtoul(limit, NULL, 10) : 0; /* too large a one is ULONG_MAX */
        choice->limit = (uint32_t)number;
        if (!number || number > WEIR_API_NEIGHBORS_MAX)
            return WEIR_ERR(WEIR_EDATA, "limit is '%.16s'; it must be a number from 1 to %u", limit,
                            WEIR_API_NEIGHBORS_MAX);
    }
    return WEIR_OK;
}

static weir_err neighbor_answer(weir_api *api, uint32_t thread, weir_http_request *request, weir_graph_budget *budget) {
    vertex_question ask = {.api = api, .thread = thread, .request = request, .budget = budget};
    neighbor_choice choice;
    weir_json json;
    weir_err err = vertex_question_read(&ask);
    if (!err) err = neighbor_read_choice(&ask, &choice);
    if (!err) err = vertex_begin_answer(&ask, &json);
    if (err) return err;
    weir_json_key(&json, "neighbors");
    weir_json_array(&json);
    for (uint32_t r = 0; !err && r < weir_schema_relation_count(api->schema); r++) {
        if (!choice.any_relation && choice.relation != r) continue;
        for (int d = WEIR_OUT; !err && d <= WEIR_IN; d++) {
            weir_direction direction = (weir_direction)d;
            if (!choice.any_direction && choice.direction != direction) continue;
            if (!neighbor_stands_at(&ask, (uint16_t)r, direction)) continue;
            err = neighbor_write_list(&ask, &json, (uint16_t)r, direction, choice.limit);
        }
    }
    weir_json_array_end(&json);
    if (!err) weir_api_json_answer(api, thread, &json, request);
    return err;
}

weir_err weir_api_get_neighbors(void *context, weir_http_request *request) {
    weir_api *api = context;
    return weir_api_pool_read(api->pool, request, neighbor_answer);
}

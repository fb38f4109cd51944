/* SPDX-License-Identifier: Apache-2.0 */
/* vertex.c - GET /v1/vertices/{type}/{key} and GET /v1/neighbors/{type}/{key}. */
#include <string.h>

#include "private.h"

/* What both routes ask. */
typedef struct question {
    weir_api *api;
    uint32_t thread;
    weir_http_request *request;
    weir_graph_budget *budget;
    weir_arena *arena;
    weir_api_vertex vertex;
    weir_vertex id;
    int64_t before_us;
    uint32_t limit; /* neighbours */
} question;

static weir_err read_question(question *ask) {
    size_t type_length, key_length;
    weir_api *api = ask->api;
    weir_http_request *request = ask->request;
    const char *type = weir_http_param(request, 0, &type_length), *key = weir_http_param(request, 1, &key_length);
    ask->arena = weir_http_arena(request);
    if (strlen(type) != type_length) return WEIR_ERR(WEIR_EDATA, "the vertex type has a 0 byte in it");
    weir_err err = weir_api_vertex_read(api->schema, ask->arena, type, key, key_length, &ask->vertex);
    if (!err) ask->id = weir_api_vertex_id(api, &ask->vertex);
    return err ? err : weir_api_before(request, &ask->before_us);
}

static void write_vertex(weir_json *json, const question *ask) {
    weir_json_key(json, "type");
    weir_json_string(json, ask->vertex.type_name);
    weir_json_key(json, "key");
    weir_json_text(json, ask->vertex.key, ask->vertex.key_length);
    if (ask->before_us == WEIR_BEFORE_ALL) return;
    weir_json_key(json, "before");
    weir_api_json_time(json, ask->before_us);
}

static weir_err check_known(question *ask) {
    uint16_t type;
    const char *key;
    uint32_t length;
    weir_err err = weir_graph_name_within(ask->api->graph, ask->id, ask->budget, ask->arena, &type, &key, &length);
    if (err) return err;
    bool same =
        key && type == ask->vertex.type && length == ask->vertex.key_length && !memcmp(key, ask->vertex.key, length);
    if (same) return WEIR_OK;
    return WEIR_ERR(WEIR_ENOTFOUND, "no such %s: no event has named it yet, or it was deleted or has expired",
                    ask->vertex.type_name);
}

/* Ends an answer that was begun as an object. */
static weir_err finish(question *ask, weir_json *json) {
    weir_api_json_answer(ask->api, ask->thread, json, ask->request);
    return WEIR_OK;
}

/* --- vertices ------------------------------------------------------------------------------------------------- */

static weir_err write_features(question *ask, weir_json *json) {
    size_t count;
    weir_row_view view;
    const weir_schema_vertex *vertex = weir_schema_vertex_at(ask->api->schema, ask->vertex.type);
    weir_err err = weir_graph_features_within(ask->api->graph, ask->id, ask->before_us, ask->budget, ask->arena, &view);
    if (err) return err;
    const weir_value_kind *kinds = weir_graph_vertex_kinds(ask->api->graph, ask->vertex.type, &count);
    if (view.row) {
        weir_json_key(json, "time");
        weir_api_json_time(json, view.time_us);
    }
    weir_json_key(json, "features");
    weir_api_json_features(json, vertex->features, kinds, count, view.row, view.row_length);
    return WEIR_OK;
}

static weir_err write_label(question *ask, weir_json *json, uint16_t id, const weir_schema_label *label) {
    static const weir_value_kind kind = WEIR_VALUE_CATEGORY;
    weir_row_view view;
    weir_value value;
    weir_err err =
        weir_graph_label_within(ask->api->graph, ask->id, id, ask->before_us, ask->budget, ask->arena, &view);
    if (err || !view.row) return err;
    weir_row_read(&kind, 1, view.row, view.row_length, &value);
    weir_json_key(json, label->name);
    weir_json_object(json);
    weir_json_key(json, "value");
    if (value.present)
        weir_json_text(json, value.text, value.text_length);
    else
        weir_json_null(json);
    weir_json_key(json, "time");
    weir_api_json_time(json, view.time_us);
    weir_json_object_end(json);
    return WEIR_OK;
}

static weir_err write_labels(question *ask, weir_json *json) {
    weir_json_key(json, "labels");
    weir_json_object(json);
    for (uint32_t i = 0; i < weir_schema_label_count(ask->api->schema); i++) {
        const weir_schema_label *label = weir_schema_label_at(ask->api->schema, i);
        if (label->on_relation || label->target != ask->vertex.type) continue;
        weir_err err = write_label(ask, json, (uint16_t)i, label);
        if (err) return err;
    }
    weir_json_object_end(json);
    return WEIR_OK;
}

static weir_err answer_vertex(weir_api *api, uint32_t thread, weir_http_request *request, weir_graph_budget *budget) {
    question ask = {.api = api, .thread = thread, .request = request, .budget = budget};
    weir_api_fresh_begin(api, thread, request); // A3
    weir_err err = read_question(&ask);
    if (!err) err = weir_api_whole(api);
    if (!err) err = check_known(&ask);
    if (err) return err;
    weir_json json = weir_json_begin(weir_http_out(request));
    weir_json_object(&json);
    write_vertex(&json, &ask);
    err = write_features(&ask, &json);
    if (!err) err = write_labels(&ask, &json);
    return err ? err : finish(&ask, &json);
}

weir_err weir_api_get_vertex(void *context, weir_http_request *request) {
    weir_api *api = context;
    return weir_api_pool_read(api->pool, request, answer_vertex);
}

/* --- neighbours ----------------------------------------------------------------------------------------------- */

static const char *direction_name(weir_direction direction) {
    return direction == WEIR_OUT ? "out" : "in";
}

static weir_err write_end(question *ask, weir_json *json, const weir_edge *edge) {
    uint16_t type;
    const char *key;
    uint32_t length;
    weir_err err =
        weir_graph_name_within(ask->api->graph, edge->neighbor, ask->budget, ask->arena, &type, &key, &length);
    if (err) return err;
    weir_json_key(json, "key");
    if (key)
        weir_json_text(json, key, length);
    else
        weir_json_null(json); /* forgotten since: the edge is older than the name's end */
    return WEIR_OK;
}

typedef struct edge_list {
    uint16_t relation;
    weir_direction direction;
    const weir_schema_relation *of;
    const weir_value_kind *kinds;
    size_t kind_count;
} edge_list;

static weir_err write_neighbor(question *ask, weir_json *json, const edge_list *list, const weir_edge *edge) {
    uint32_t type = list->direction == WEIR_OUT ? list->of->to : list->of->from;
    weir_json_object(json);
    weir_json_key(json, "relation");
    weir_json_string(json, list->of->name);
    weir_json_key(json, "direction");
    weir_json_string(json, direction_name(list->direction));
    weir_json_key(json, "type");
    weir_json_string(json, weir_schema_vertex_at(ask->api->schema, type)->name);
    weir_err err = write_end(ask, json, edge);
    if (err) return err;
    weir_json_key(json, "time");
    weir_api_json_time(json, edge->time_us);
    weir_json_key(json, "event");
    weir_api_json_event(json, edge->event);
    weir_json_key(json, "features");
    weir_api_json_features(json, list->of->features, list->kinds, list->kind_count, edge->row, edge->row_length);
    weir_json_object_end(json);
    return WEIR_OK;
}

static weir_err write_list(question *ask, weir_json *json, uint16_t relation, weir_direction direction) {
    const weir_edge *edges;
    uint32_t count;
    edge_list list = {
        .relation = relation, .direction = direction, .of = weir_schema_relation_at(ask->api->schema, relation)};
    list.kinds = weir_graph_relation_kinds(ask->api->graph, relation, &list.kind_count);
    weir_err err = weir_graph_neighbors_within(ask->api->graph, ask->id, relation, direction, ask->before_us,
                                               ask->limit, ask->budget, ask->arena, &edges, &count);
    /* Their names take longest: what is too much for a loop is known before they are read. */
    if (!err) err = weir_graph_budget_covers(ask->budget, (uint64_t)count * WEIR_GRAPH_SEEK_STEPS);
    for (uint32_t i = 0; !err && i < count; i++)
        err = write_neighbor(ask, json, &list, &edges[i]);
    return err;
}

/* Whether the vertex's type stands at the end of the relation that this direction begins at. */
static bool stands_at(const question *ask, uint16_t relation, weir_direction direction) {
    const weir_schema_relation *of = weir_schema_relation_at(ask->api->schema, relation);
    return (direction == WEIR_OUT ? of->from : of->to) == ask->vertex.type;
}

/* Which lists are meant: those of the relations and directions asked for at which the type stands. */
typedef struct list_choice {
    bool any_relation, any_direction;
    uint16_t relation;
    weir_direction direction;
} list_choice;

static weir_err read_choice(question *ask, list_choice *choice) {
    const char *relation = weir_http_query(ask->request, "relation");
    const char *direction = weir_http_query(ask->request, "direction");
    choice->any_relation = !relation;
    choice->any_direction = !direction;
    weir_err err = relation ? weir_api_relation_read(ask->api->schema, relation, &choice->relation) : WEIR_OK;
    if (!err && direction) err = weir_api_direction_read(direction, &choice->direction);
    if (err || !relation) return err;
    bool out = stands_at(ask, choice->relation, WEIR_OUT), in = stands_at(ask, choice->relation, WEIR_IN);
    if (direction ? (choice->direction == WEIR_OUT ? out : in) : out || in) return WEIR_OK;
    return WEIR_ERR(WEIR_EDATA, "relation '%s' %s at a %s", relation,
                    !direction                      ? "neither begins nor ends"
                    : choice->direction == WEIR_OUT ? "does not begin"
                                                    : "does not end",
                    ask->vertex.type_name);
}

static weir_err read_limit(question *ask) {
    const char *text = weir_http_query(ask->request, "limit");
    uint32_t limit = 0;
    ask->limit = 20;
    if (!text) return WEIR_OK;
    for (const char *digit = text; limit <= WEIR_API_NEIGHBORS_MAX && *digit; digit++) {
        if (*digit < '0' || *digit > '9') {
            limit = 0;
            break;
        }
        limit = limit * 10 + (uint32_t)(*digit - '0');
    }
    ask->limit = limit;
    if (limit && limit <= WEIR_API_NEIGHBORS_MAX) return WEIR_OK;
    return WEIR_ERR(WEIR_EDATA, "limit is '%.16s'; it may be 1 to %u", text, WEIR_API_NEIGHBORS_MAX);
}

static weir_err write_lists(question *ask, weir_json *json, const list_choice *choice) {
    weir_err err = WEIR_OK;
    for (uint32_t r = 0; !err && r < weir_schema_relation_count(ask->api->schema); r++) {
        if (!choice->any_relation && choice->relation != r) continue;
        for (int d = WEIR_OUT; !err && d <= WEIR_IN; d++) {
            if (!choice->any_direction && (int)choice->direction != d) continue;
            if (!stands_at(ask, (uint16_t)r, (weir_direction)d)) continue;
            err = write_list(ask, json, (uint16_t)r, (weir_direction)d);
        }
    }
    return err;
}

static weir_err answer_neighbors(weir_api *api, uint32_t thread, weir_http_request *request,
                                 weir_graph_budget *budget) {
    question ask = {.api = api, .thread = thread, .request = request, .budget = budget};
    list_choice choice = {0};
    weir_api_fresh_begin(api, thread, request); // A3
    weir_err err = read_question(&ask);
    if (!err) err = read_choice(&ask, &choice);
    if (!err) err = read_limit(&ask);
    if (!err) err = weir_api_whole(api);
    if (!err) err = check_known(&ask);
    if (err) return err;
    weir_json json = weir_json_begin(weir_http_out(request));
    weir_json_object(&json);
    write_vertex(&json, &ask);
    weir_json_key(&json, "neighbors");
    weir_json_array(&json);
    err = write_lists(&ask, &json, &choice);
    weir_json_array_end(&json);
    return err ? err : finish(&ask, &json);
}

weir_err weir_api_get_neighbors(void *context, weir_http_request *request) {
    weir_api *api = context;
    return weir_api_pool_read(api->pool, request, answer_neighbors);
}

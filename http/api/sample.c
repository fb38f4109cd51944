/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sample.c - POST /v1/sample: the neighbourhood that a model would see, as JSON.
 *
 * The same sampler as in training, over the living graph. It may read a few thousand windows from disk, so it runs in the
 * pool. What it may cost is bounded before it begins: the edges of all targets together, whatever the request says.
 */
#include <string.h>

#include <jansson.h>

#include <weir/store/sample.h>

#include "private.h"

#define TARGETS_MAX      256u
#define STEPS_MAX        16u
#define WINDOW_MAX       4096u
#define EDGES_MAX        50000u /* of a step, over all targets */
#define FANOUT_DEFAULT   10u
#define ROWS_BYTES_MAX   (32u << 20)
#define DEPTH_MAX        8u
#define SEED_DEFAULT     1u
#define HALF_LIFE_MAX_US (36525ll * 86400 * WEIR_US_PER_S)

typedef struct sample_target {
    weir_api_vertex vertex;
    int64_t before_us;
    uint32_t place; /* in the request */
} sample_target;

typedef struct sample_ask {
    weir_api *api;
    weir_arena *arena;
    sample_target targets[TARGETS_MAX];
    weir_sample_step steps[STEPS_MAX];
    weir_sample_opts opts;
    uint32_t target_count;
} sample_ask;

/* --- reading JSON ----------------------------------------------------------------------------------------------------- */

/* The reader below us calls itself for each level, so the levels are counted first. */
static bool too_deep(const char *text, size_t length) {
    size_t depth = 0;
    bool quoted = false;
    for (size_t i = 0; i < length; i++) {
        char c = text[i];
        if (quoted && c == '\\')
            i++;
        else if (c == '"')
            quoted = !quoted;
        else if (!quoted && (c == '{' || c == '[') && ++depth > DEPTH_MAX)
            return true;
        else if (!quoted && (c == '}' || c == ']') && depth)
            depth--;
    }
    return false;
}

static weir_err read_json(const char *text, size_t length, json_t **rootp) {
    json_error_t error;
    *rootp = NULL;
    if (too_deep(text, length)) return WEIR_ERR(WEIR_EDATA, "the body is nested deeper than %u levels", DEPTH_MAX);
    *rootp = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);
    if (*rootp) return WEIR_OK;
    return WEIR_ERR(WEIR_EDATA, "the body is not JSON: %s (byte %d)", error.text, error.position);
}

static weir_err only_members(const json_t *object, const char *where, const char *const *names) {
    if (!json_is_object(object)) return WEIR_ERR(WEIR_EDATA, "%s must be an object", where);
    const char *name;
    json_t *value;
    json_t *members = json_incref((json_t *)(uintptr_t)object);
    weir_err err = WEIR_OK;
    json_object_foreach(members, name, value) {
        size_t i = 0;
        while (names[i] && strcmp(names[i], name) != 0)
            i++;
        if (!err && !names[i]) err = WEIR_ERR(WEIR_EDATA, "%s has an unknown member '%.64s'", where, name);
    }
    json_decref(members);
    return err;
}

static weir_err read_text(const json_t *object, const char *where, const char *name, const char **textp,
                          size_t *lengthp) {
    const json_t *value = json_object_get(object, name);
    *textp = NULL;
    *lengthp = 0;
    if (!value) return WEIR_OK;
    if (!json_is_string(value)) return WEIR_ERR(WEIR_EDATA, "%s: %s must be a text", where, name);
    *textp = json_string_value(value);
    *lengthp = json_string_length(value);
    if (strlen(*textp) != *lengthp) return WEIR_ERR(WEIR_EDATA, "%s: %s has a 0 byte in it", where, name);
    return WEIR_OK;
}

static weir_err need_text(const json_t *object, const char *where, const char *name, const char **textp,
                          size_t *lengthp) {
    weir_err err = read_text(object, where, name, textp, lengthp);
    return err || *textp ? err : WEIR_ERR(WEIR_EDATA, "%s: %s is missing", where, name);
}

/* *valuep keeps its default when the member is not there. */
static weir_err read_number(const json_t *object, const char *where, const char *name, int64_t min, int64_t max,
                            int64_t *valuep) {
    const json_t *value = json_object_get(object, name);
    if (!value) return WEIR_OK;
    if (json_is_integer(value)) *valuep = json_integer_value(value);
    if (json_is_integer(value) && *valuep >= min && *valuep <= max) return WEIR_OK;
    return WEIR_ERR(WEIR_EDATA, "%s: %s must be an integer from %lld to %lld", where, name, (long long)min,
                    (long long)max);
}

/* --- targets ---------------------------------------------------------------------------------------------------------- */

static weir_err read_target(sample_ask *ask, const json_t *value, const char *where, int64_t now_us) {
    static const char *const names[] = {"type", "key", "before", NULL};
    const char *type, *key, *before;
    size_t type_length, key_length, before_length;
    sample_target *target = &ask->targets[ask->target_count];
    weir_err err = only_members(value, where, names);
    if (!err) err = need_text(value, where, "type", &type, &type_length);
    if (!err) err = need_text(value, where, "key", &key, &key_length);
    if (!err) err = read_text(value, where, "before", &before, &before_length);
    if (err) return err;
    target->place = ask->target_count;
    target->before_us = now_us;
    err = weir_api_vertex_read(ask->api, ask->arena, type, key, key_length, &target->vertex);
    if (!err && before) err = weir_api_time_read("before", before, before_length, &target->before_us);
    if (weir_err_is(err, WEIR_ENOTFOUND)) err = WEIR_ERR(WEIR_EDATA, "the schema has no vertex type '%.64s'", type);
    if (err) return weir_err_prefix(err, "%s", where);
    ask->target_count++;
    return WEIR_OK;
}

/* The sampler wants targets by type; those of one type keep the request's order. */
static void sort_targets(sample_ask *ask) {
    for (uint32_t i = 1; i < ask->target_count; i++) {
        sample_target target = ask->targets[i];
        uint32_t j = i;
        for (; j && ask->targets[j - 1].vertex.type > target.vertex.type; j--)
            ask->targets[j] = ask->targets[j - 1];
        ask->targets[j] = target;
    }
}

/* All that is known: events may bear a time that is yet to come. */
static int64_t now_of(const weir_api *api) {
    weir_graph_stats stats;
    weir_graph_stats_get(api->graph, &stats);
    int64_t now_us = weir_clock_wall_us(api->clock);
    return now_us > stats.event_time_last_us ? now_us : stats.event_time_last_us + 1;
}

static weir_err read_targets(sample_ask *ask, const json_t *root) {
    const json_t *targets = json_object_get(root, "targets");
    size_t count = json_array_size(targets);
    int64_t now_us = now_of(ask->api);
    weir_err err = WEIR_OK;
    if (!json_is_array(targets) || !count || count > TARGETS_MAX)
        return WEIR_ERR(WEIR_EDATA, "targets must be an array of 1 to %u objects", TARGETS_MAX);
    for (size_t i = 0; !err && i < count; i++) {
        char where[32];
        snprintf(where, sizeof where, "targets[%zu]", i);
        err = read_target(ask, json_array_get(targets, i), where, now_us);
    }
    if (!err) sort_targets(ask);
    return err;
}

/* --- steps ------------------------------------------------------------------------------------------------------------ */

static weir_err read_strategy(const char *where, const char *text, weir_strategy *strategyp) {
    static const char *const names[] = {"recent", "uniform", "weighted", "full"};
    *strategyp = WEIR_SAMPLE_RECENT;
    if (!text) return WEIR_OK;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(names[i], text) != 0) continue;
        *strategyp = (weir_strategy)i;
        return WEIR_OK;
    }
    return WEIR_ERR(WEIR_EDATA, "%s: strategy is '%.16s'; it may be recent, uniform, weighted or full", where, text);
}

static weir_err read_weight(sample_ask *ask, const char *where, const char *text, weir_sample_step *step) {
    const weir_schema_relation *relation = weir_schema_relation_at(ask->api->schema, step->relation);
    step->weight = WEIR_SCHEMA_NONE;
    if (!text) return WEIR_OK;
    step->weight = weir_schema_feature_find(relation->features, relation->feature_count, text);
    if (step->weight != WEIR_SCHEMA_NONE && relation->features[step->weight].kind == WEIR_SCHEMA_NUMBER) return WEIR_OK;
    return WEIR_ERR(WEIR_EDATA, "%s: relation '%s' has no number feature '%.64s' to weigh by", where, relation->name,
                    text);
}

static weir_err read_half_life(const char *where, const char *text, weir_sample_step *step) {
    step->half_life_us = 0;
    if (!text) return WEIR_OK;
    weir_err err = weir_duration_parse(text, &step->half_life_us);
    if (!err && step->half_life_us > 0 && step->half_life_us <= HALF_LIFE_MAX_US) return WEIR_OK;
    return WEIR_ERR(WEIR_EDATA, "%s: half_life is '%.16s'; write 36h or 7d", where, text);
}

static weir_err read_step(sample_ask *ask, const json_t *value, const char *where, int64_t hop_before) {
    static const char *const names[] = {"hop",    "relation", "direction", "strategy",
                                        "fanout", "weight",   "half_life", NULL};
    const char *relation, *direction, *strategy, *weight, *half_life;
    size_t length;
    weir_sample_step *step = &ask->steps[ask->opts.step_count];
    int64_t hop = hop_before + 1, fanout = FANOUT_DEFAULT;
    weir_err err = only_members(value, where, names);
    if (!err) err = need_text(value, where, "relation", &relation, &length);
    if (!err) err = need_text(value, where, "direction", &direction, &length);
    if (!err) err = read_text(value, where, "strategy", &strategy, &length);
    if (!err) err = read_text(value, where, "weight", &weight, &length);
    if (!err) err = read_text(value, where, "half_life", &half_life, &length);
    if (!err) err = read_number(value, where, "hop", 1, WEIR_SAMPLE_HOPS_MAX, &hop);
    if (!err) err = read_number(value, where, "fanout", 1, WEIR_SAMPLE_FANOUT_MAX, &fanout);
    if (err) return err;
    step->hop = (uint32_t)hop;
    step->fanout = (uint32_t)fanout;
    err = weir_api_relation_read(ask->api, relation, &step->relation);
    if (!err) err = weir_api_direction_read(direction, &step->direction);
    if (err) return weir_err_prefix(err, "%s", where);
    err = read_strategy(where, strategy, &step->strategy);
    if (!err) err = read_weight(ask, where, weight, step);
    if (!err) err = read_half_life(where, half_life, step);
    if (!err) ask->opts.step_count++;
    return err;
}

static weir_err read_steps(sample_ask *ask, const json_t *root) {
    const json_t *steps = json_object_get(root, "steps");
    size_t count = json_array_size(steps);
    weir_err err = WEIR_OK;
    if (!json_is_array(steps) || !count || count > STEPS_MAX)
        return WEIR_ERR(WEIR_EDATA, "steps must be an array of 1 to %u objects", STEPS_MAX);
    for (size_t i = 0; !err && i < count; i++) {
        char where[32];
        snprintf(where, sizeof where, "steps[%zu]", i);
        err = read_step(ask, json_array_get(steps, i), where, i ? ask->steps[i - 1].hop : 0);
    }
    return err;
}

static weir_err read_ask(sample_ask *ask, const json_t *root) {
    static const char *const names[] = {"targets", "steps", "seed", "window", "edges_max", NULL};
    int64_t seed = SEED_DEFAULT, window = WEIR_SAMPLE_WINDOW, edges_max = EDGES_MAX;
    weir_err err = only_members(root, "the body", names);
    if (!err) err = read_targets(ask, root);
    if (!err) err = read_steps(ask, root);
    if (!err) err = read_number(root, "the body", "seed", 0, INT64_MAX, &seed);
    if (!err) err = read_number(root, "the body", "window", 1, WINDOW_MAX, &window);
    if (!err) err = read_number(root, "the body", "edges_max", 1, EDGES_MAX, &edges_max);
    if (err) return err;
    uint32_t share = EDGES_MAX / ask->target_count;
    ask->opts.seed = (uint64_t)seed;
    ask->opts.window = (uint32_t)window;
    ask->opts.edges_max = edges_max < share ? (uint32_t)edges_max : share;
    ask->opts.targets_max = ask->target_count;
    ask->opts.steps = ask->steps;
    return WEIR_OK;
}

/* --- the answer ------------------------------------------------------------------------------------------------------- */

/* Of the targets the request knew the keys, also of those that the graph does not know yet. */
static weir_err write_key(const sample_ask *ask, weir_json *json, uint32_t node, weir_vertex vertex) {
    uint16_t type;
    const char *key;
    uint32_t length;
    if (node < ask->target_count) {
        weir_json_text(json, ask->targets[node].vertex.key, ask->targets[node].vertex.key_length);
        return WEIR_OK;
    }
    weir_err err = weir_graph_name(ask->api->graph, vertex, ask->arena, &type, &key, &length);
    if (!err && key) weir_json_text(json, key, length);
    if (!err && !key) weir_json_null(json);
    return err;
}

static weir_err write_node(const sample_ask *ask, weir_json *json, const weir_block_view *view, uint32_t hop,
                           uint32_t type, uint32_t node) {
    weir_json_object(json);
    weir_json_key(json, "hop");
    weir_json_u64(json, hop);
    weir_json_key(json, "type");
    weir_json_string(json, weir_schema_vertex_at(ask->api->schema, type)->name);
    weir_json_key(json, "key");
    weir_err err = write_key(ask, json, node, view->vertices[node]);
    weir_json_key(json, "target");
    weir_json_u64(json, ask->targets[view->groups[node]].place);
    weir_json_object_end(json);
    return err;
}

static weir_err write_nodes(const sample_ask *ask, weir_json *json, const weir_block_view *view) {
    weir_err err = WEIR_OK;
    weir_json_key(json, "nodes");
    weir_json_array(json);
    for (uint32_t hop = 0; !err && hop <= view->hops; hop++) {
        for (uint32_t type = 0; !err && type < view->types; type++) {
            weir_block_range range = view->ranges[hop * view->types + type];
            for (uint32_t node = range.begin; !err && node < range.end; node++)
                err = write_node(ask, json, view, hop, type, node);
        }
    }
    weir_json_array_end(json);
    return err;
}

static void write_edge(const sample_ask *ask, weir_json *json, const weir_block_edges *edges, uint32_t step,
                       uint32_t i) {
    size_t count;
    uint16_t relation = ask->steps[step].relation;
    const weir_schema_feature *features = weir_schema_relation_at(ask->api->schema, relation)->features;
    const weir_value_kind *kinds = weir_graph_relation_kinds(ask->api->graph, relation, &count);
    weir_json_object(json);
    weir_json_key(json, "step");
    weir_json_u64(json, step);
    weir_json_key(json, "parent");
    weir_json_u64(json, edges->parents[i]);
    weir_json_key(json, "child");
    weir_json_u64(json, edges->children[i]);
    weir_json_key(json, "time");
    weir_api_json_time(json, edges->times[i]);
    weir_json_key(json, "event");
    weir_api_json_event(json, edges->refs[i]);
    weir_json_key(json, "features");
    weir_api_json_features(json, features, kinds, count, edges->rows ? edges->rows[i] : NULL,
                           edges->rows ? edges->row_lengths[i] : 0);
    weir_json_object_end(json);
}

static void write_edges(const sample_ask *ask, weir_json *json, const weir_block_view *view) {
    weir_json_key(json, "edges");
    weir_json_array(json);
    for (uint32_t step = 0; step < view->steps; step++)
        for (uint32_t i = 0; i < view->edges[step].count; i++)
            write_edge(ask, json, &view->edges[step], step, i);
    weir_json_array_end(json);
}

/* In the order of the request. */
static void write_targets(const sample_ask *ask, weir_json *json, const weir_block_view *view) {
    uint32_t nodes[TARGETS_MAX];
    for (uint32_t i = 0; i < ask->target_count; i++)
        nodes[ask->targets[i].place] = i;
    weir_json_key(json, "targets");
    weir_json_array(json);
    for (uint32_t i = 0; i < ask->target_count; i++) {
        weir_json_object(json);
        weir_json_key(json, "node");
        weir_json_u64(json, nodes[i]);
        weir_json_key(json, "before");
        weir_api_json_time(json, view->before_us[nodes[i]]);
        weir_json_key(json, "cut");
        weir_json_bool(json, view->cut[nodes[i]] != 0);
        weir_json_object_end(json);
    }
    weir_json_array_end(json);
}

static weir_err write_answer(const sample_ask *ask, const weir_block_view *view, uint32_t thread,
                             weir_http_request *request) {
    weir_json json = weir_json_begin(weir_http_out(request));
    weir_json_object(&json);
    write_targets(ask, &json, view);
    weir_err err = write_nodes(ask, &json, view);
    write_edges(ask, &json, view);
    weir_api_fresh_member(ask->api, thread, &json);
    weir_json_object_end(&json);
    weir_buf_byte(json.buf, '\n');
    if (!err) weir_http_reply(request, 200, "application/json");
    return err;
}

/* --- sampling --------------------------------------------------------------------------------------------------------- */

static weir_err sample_block(const sample_ask *ask, weir_sampler *sampler, weir_block *block) {
    weir_target targets[TARGETS_MAX];
    for (uint32_t i = 0; i < ask->target_count; i++) {
        targets[i] = (weir_target){
            .vertex = ask->targets[i].vertex.id,
            .before_us = ask->targets[i].before_us,
            .type = ask->targets[i].vertex.type,
        };
    }
    return weir_sample(sampler, targets, ask->target_count, block);
}

static weir_err sample(const sample_ask *ask, uint32_t thread, weir_http_request *request) {
    weir_sample_source *source = NULL;
    weir_sampler *sampler = NULL;
    weir_block *block = NULL;
    weir_err err = weir_sample_over_graph(ask->api->graph, ROWS_BYTES_MAX, &source);
    if (!err) err = weir_sampler_open(&ask->opts, source, &sampler);
    if (!err) err = weir_block_open(sampler, &block);
    if (!err) err = sample_block(ask, sampler, block);
    if (!err) err = write_answer(ask, weir_block_look(block), thread, request);
    weir_block_close(block);
    weir_sampler_close(sampler);
    weir_sample_source_close(source);
    return err;
}

static weir_err answer(weir_api *api, uint32_t thread, weir_http_request *request) {
    size_t length;
    json_t *root = NULL;
    const char *body = weir_http_body(request, &length);
    weir_api_fresh_begin(api, thread, request); // A3
    sample_ask *ask = weir_arena_calloc(weir_http_arena(request), 1, sizeof *ask);
    if (!ask) return WEIR_ERR(WEIR_ENOMEM, "no memory for a sample");
    ask->api = api;
    ask->arena = weir_http_arena(request);
    weir_err err = read_json(body, length, &root);
    if (!err) err = read_ask(ask, root);
    if (!err) err = sample(ask, thread, request);
    json_decref(root);
    return err;
}

/* Types that a page of another site cannot send without being asked. */
weir_err weir_api_post_sample(void *context, weir_http_request *request) {
    weir_api *api = context;
    const char *type = weir_http_header(request, "Content-Type");
    if (!type || !weir_api_is_type(type, "application/json")) {
        weir_http_problem(request, 415, NULL, "this takes Content-Type application/json");
        return WEIR_OK;
    }
    weir_api_pool_run(api->pool, request, answer);
    return WEIR_OK;
}

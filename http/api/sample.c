/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sample.c - POST /v1/sample: the neighbourhood that a model would see, as JSON.
 *
 * The same sampler as in training, over the living graph. It may read a few thousand windows from disk, so it runs on
 * a thread of the pool.
 */
#include <weir/store/base/assert.h>

#include "sample_ask.h"

#define ROWS_BYTES_MAX (32u << 20)
#define KEY_BYTES_MAX  (64u << 10) /* to read one key from the store */
#define EDGE_BYTES     256u        /* of a block and of what the sampler looks at for it, with some to spare */

typedef struct sampling {
    weir_api *api;
    weir_arena *arena, *key; /* key: of one vertex at a time */
    const weir_api_sample_ask *ask;
} sampling;

/* --- the answer ----------------------------------------------------------------------------------------------- */

/* A target's key is the request's, also where the graph does not know it yet. */
static weir_err sampling_write_key(const sampling *in, weir_json *json, uint32_t node, weir_vertex vertex) {
    uint16_t type;
    const char *key;
    uint32_t length;
    if (node < in->ask->target_count) {
        const weir_api_vertex *target = &in->ask->targets[node].vertex;
        weir_json_key_text(json, "key", target->key, target->key_length);
        return WEIR_OK;
    }
    weir_err err = weir_graph_name(in->api->graph, vertex, in->key, &type, &key, &length);
    if (!err) weir_api_json_key_or_null(json, key, length);
    weir_arena_reset(in->key);
    return err;
}

static weir_err sampling_write_nodes(const sampling *in, weir_json *json, const weir_block_view *view) {
    weir_err err = WEIR_OK;
    weir_json_key(json, "nodes");
    weir_json_array(json);
    for (uint32_t i = 0; !err && i < (view->hops + 1) * view->types; i++) {
        uint32_t hop = i / view->types, type = i % view->types;
        weir_block_range range = view->ranges[i];
        for (uint32_t node = range.begin; !err && node < range.end; node++) {
            weir_json_object(json);
            weir_json_key_u64(json, "hop", hop);
            weir_json_key_string(json, "type", weir_schema_vertex_at(in->api->schema, type)->name);
            err = sampling_write_key(in, json, node, view->ids[node]);
            weir_json_key_u64(json, "target", in->ask->targets[view->groups[node]].place);
            weir_json_object_end(json);
        }
    }
    weir_json_array_end(json);
    return err;
}

static void sampling_write_edge(const sampling *in, weir_json *json, const weir_block_edges *edges, uint32_t step,
                                uint32_t i) {
    size_t count;
    uint16_t relation = in->ask->steps[step].relation;
    const weir_schema_feature *features = weir_schema_relation_at(in->api->schema, relation)->features;
    const weir_value_kind *kinds = weir_graph_relation_kinds(in->api->graph, relation, &count);
    weir_json_object(json);
    weir_json_key_u64(json, "step", step);
    weir_json_key_u64(json, "parent", edges->parents[i]);
    weir_json_key_u64(json, "child", edges->children[i]);
    weir_json_key_time(json, "time", edges->times[i]);
    weir_api_json_event(json, "event", edges->refs[i]);
    weir_api_json_features(json, features, kinds, count, edges->rows ? edges->rows[i] : NULL,
                           edges->rows ? edges->row_lengths[i] : 0);
    weir_json_object_end(json);
}

/* In the order of the request. */
static void sampling_write_targets(const sampling *in, weir_json *json, const weir_block_view *view) {
    uint32_t nodes[WEIR_API_SAMPLE_TARGETS];
    for (uint32_t i = 0; i < in->ask->target_count; i++) {
        WEIR_ASSERT(in->ask->targets[i].place < in->ask->target_count);
        nodes[in->ask->targets[i].place] = i;
    }
    weir_json_key(json, "targets");
    weir_json_array(json);
    for (uint32_t i = 0; i < in->ask->target_count; i++) {
        weir_json_object(json);
        weir_json_key_u64(json, "node", nodes[i]);
        weir_json_key_time(json, "before", view->before_us[nodes[i]]);
        weir_json_key_bool(json, "cut", view->cut[nodes[i]] != 0);
        weir_json_object_end(json);
    }
    weir_json_array_end(json);
}

static weir_err sampling_write_answer(const sampling *in, const weir_block_view *view, uint32_t thread,
                                      weir_http_request *request) {
    weir_json json = weir_json_begin(weir_http_out(request));
    weir_json_object(&json);
    sampling_write_targets(in, &json, view);
    weir_err err = sampling_write_nodes(in, &json, view);
    weir_json_key(&json, "edges");
    weir_json_array(&json);
    for (uint32_t step = 0; step < view->steps; step++)
        for (uint32_t i = 0; i < view->edges[step].count; i++)
            sampling_write_edge(in, &json, &view->edges[step], step, i);
    weir_json_array_end(&json);
    if (!err) weir_api_json_answer(in->api, thread, &json, request);
    return err;
}

/* --- sampling ------------------------------------------------------------------------------------------------- */

static weir_err sampling_run(const sampling *in, uint32_t thread, weir_http_request *request) {
    weir_sample_source *source = NULL;
    weir_sampler *sampler = NULL;
    weir_block *block = NULL;
    weir_target targets[WEIR_API_SAMPLE_TARGETS];
    WEIR_ASSERT(in->ask->target_count && in->ask->target_count <= WEIR_API_SAMPLE_TARGETS);
    for (uint32_t i = 0; i < in->ask->target_count; i++) {
        const weir_api_sample_target *target = &in->ask->targets[i];
        targets[i] = (weir_target){
            .vertex = weir_api_vertex_id(in->api, &target->vertex),
            .before_us = target->before_us,
            .type = target->vertex.type,
        };
    }
    weir_err err = weir_sample_over_graph(in->api->graph, ROWS_BYTES_MAX, &source);
    if (!err) err = weir_sampler_open(&in->ask->opts, source, &sampler);
    if (!err) err = weir_block_open(sampler, &block);
    if (!err) err = weir_sample(sampler, targets, in->ask->target_count, block);
    if (!err) err = sampling_write_answer(in, weir_block_look(block), thread, request);
    weir_block_close(block);
    weir_sampler_close(sampler);
    weir_sample_source_close(source);
    return err;
}

/* At most so many edges do the steps find, within the limit of the request. */
static uint64_t sampling_edges_max(const weir_api_sample_ask *ask) {
    uint64_t max = (uint64_t)ask->opts.edges_max * ask->target_count, all = 0, parents = ask->target_count, found = 0;
    for (uint32_t i = 0; i < ask->opts.step_count; i++) {
        if (i && ask->steps[i].hop != ask->steps[i - 1].hop) {
            parents = found < max ? found : max;
            found = 0;
        }
        found += parents * ask->steps[i].fanout;
        all += parents * ask->steps[i].fanout;
    }
    return all < max ? all : max;
}

static weir_err sampling_answer(weir_api *api, uint32_t thread, weir_http_request *request) {
    size_t length;
    weir_api_sample_ask *ask;
    sampling in = {.api = api, .arena = weir_http_arena(request)};
    const char *body = weir_http_body(request, &length);
    weir_api_fresh_begin(api, thread, request); // API-A3
    weir_err err = weir_api_sample_read(api->schema, weir_api_now(api), body, length, in.arena, &ask);
    in.ask = ask;
    if (!err) err = weir_api_whole(api);
    if (!err) err = weir_http_hold(request, sampling_edges_max(ask) * EDGE_BYTES);
    if (!err) err = weir_arena_open(KEY_BYTES_MAX, &in.key);
    if (!err) err = sampling_run(&in, thread, request);
    weir_arena_close(in.key);
    return err;
}

weir_err weir_api_post_sample(void *context, weir_http_request *request) {
    weir_api *api = context;
    if (!weir_api_takes_json(request)) return WEIR_OK;
    weir_api_pool_run(api->pool, request, sampling_answer);
    return WEIR_OK;
}

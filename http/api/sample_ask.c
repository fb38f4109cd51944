/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sample_ask.c - the body of POST /v1/sample.
 *
 * What a sample may cost is bounded here, before it begins: the edges of all targets together, whatever the request
 * says.
 */
#include <stdio.h>
#include <string.h>

#include <weir/store/base/assert.h>

#include "body.h"
#include "sample_ask.h"

#define WINDOW_MAX       4096u
#define FANOUT_DEFAULT   10u
#define DEPTH_MAX        8u
#define SEED_DEFAULT     1u
#define HALF_LIFE_MAX_US (36525ll * 86400 * WEIR_US_PER_S)

/* --- targets -------------------------------------------------------------------------------------------------- */

static weir_err sample_ask_read_target(weir_api_sample_ask *ask, const weir_json_node *value, const char *where,
                                       int64_t now_us) {
    static const char *const names[] = {"type", "key", "before", NULL};
    const char *before;
    size_t before_length;
    WEIR_ASSERT(ask->target_count < WEIR_API_SAMPLE_TARGETS);
    weir_api_sample_target *target = &ask->targets[ask->target_count];
    weir_err err = weir_api_body_members(value, where, names);
    if (!err) err = weir_api_body_vertex(value, where, ask->schema, ask->arena, &target->vertex);
    if (!err) err = weir_api_body_text(value, where, "before", &before, &before_length);
    if (err) return err;
    target->place = ask->target_count;
    target->before_us = now_us;
    if (before) err = weir_api_time_read("before", before, before_length, &target->before_us);
    if (err) return weir_err_prefix(err, "%s", where);
    ask->target_count++;
    return WEIR_OK;
}

/* The sampler wants targets by type; those of one type keep the request's order. */
static void sample_ask_sort_targets(weir_api_sample_ask *ask) {
    for (uint32_t i = 1; i < ask->target_count; i++) {
        weir_api_sample_target target = ask->targets[i];
        uint32_t j = i;
        for (; j && ask->targets[j - 1].vertex.type > target.vertex.type; j--)
            ask->targets[j] = ask->targets[j - 1];
        ask->targets[j] = target;
    }
}

static weir_err sample_ask_read_targets(weir_api_sample_ask *ask, const weir_json_node *root, int64_t now_us) {
    const weir_json_node *targets = weir_json_find(root, "targets");
    size_t count = targets ? targets->count : 0;
    weir_err err = WEIR_OK;
    if (!targets || targets->token.kind != WEIR_JSON_ARRAY || !count || count > WEIR_API_SAMPLE_TARGETS)
        return WEIR_ERR(WEIR_EDATA, "targets must be an array of 1 to %u objects", WEIR_API_SAMPLE_TARGETS);
    const weir_json_node *item = targets->first;
    for (size_t i = 0; !err && item; i++, item = item->next) {
        char where[32];
        snprintf(where, sizeof where, "targets[%zu]", i);
        err = sample_ask_read_target(ask, item, where, now_us);
    }
    if (!err) sample_ask_sort_targets(ask);
    return err;
}

/* --- steps ---------------------------------------------------------------------------------------------------- */

static weir_err sample_ask_read_strategy(const char *where, const char *text, weir_strategy *strategyp) {
    static const char *const names[] = {"recent", "uniform", "weighted", "full"};
    *strategyp = WEIR_SAMPLE_RECENT;
    if (!text) return WEIR_OK;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(names[i], text) != 0) continue;
        *strategyp = (weir_strategy)i;
        return WEIR_OK;
    }
    return WEIR_ERR(WEIR_EDATA, "%s: strategy is '%.16s'; it must be recent, uniform, weighted or full", where, text);
}

static weir_err sample_ask_read_weight(weir_api_sample_ask *ask, const char *where, const char *text,
                                       weir_sample_step *step) {
    const weir_schema_relation *relation = weir_schema_relation_at(ask->schema, step->relation);
    step->weight = WEIR_SCHEMA_NONE;
    if (!text) return WEIR_OK;
    step->weight = weir_schema_feature_find(relation->features, relation->feature_count, text);
    if (step->weight != WEIR_SCHEMA_NONE && relation->features[step->weight].kind == WEIR_SCHEMA_NUMBER) return WEIR_OK;
    return WEIR_ERR(WEIR_EDATA, "%s: relation '%s' has no feature '%.64s' of kind number to use as weight", where,
                    relation->name, text);
}

static weir_err sample_ask_read_half_life(const char *where, const char *text, weir_sample_step *step) {
    step->half_life_us = 0;
    if (!text) return WEIR_OK;
    weir_err err = weir_duration_parse(text, &step->half_life_us);
    if (!err && step->half_life_us > 0 && step->half_life_us <= HALF_LIFE_MAX_US) return WEIR_OK;
    return WEIR_ERR(WEIR_EDATA, "%s: half_life is '%.16s'; write a duration such as 36h or 7d", where, text);
}

static weir_err sample_ask_read_step(weir_api_sample_ask *ask, const weir_json_node *value, const char *where,
                                     int64_t hop_before) {
    static const char *const names[] = {"hop",    "relation", "direction", "strategy",
                                        "fanout", "weight",   "half_life", NULL};
    const char *relation, *direction, *strategy, *weight, *half_life;
    size_t length;
    WEIR_ASSERT(ask->opts.step_count < WEIR_API_SAMPLE_STEPS);
    weir_sample_step *step = &ask->steps[ask->opts.step_count];
    int64_t hop = hop_before + 1, fanout = FANOUT_DEFAULT;
    weir_err err = weir_api_body_members(value, where, names);
    if (!err) err = weir_api_body_need(value, where, "relation", &relation, &length);
    if (!err) err = weir_api_body_need(value, where, "direction", &direction, &length);
    if (!err) err = weir_api_body_text(value, where, "strategy", &strategy, &length);
    if (!err) err = weir_api_body_text(value, where, "weight", &weight, &length);
    if (!err) err = weir_api_body_text(value, where, "half_life", &half_life, &length);
    if (!err) err = weir_api_body_number(value, where, "hop", 1, WEIR_SAMPLE_HOPS_MAX, &hop);
    if (!err) err = weir_api_body_number(value, where, "fanout", 1, WEIR_SAMPLE_FANOUT_MAX, &fanout);
    if (err) return err;
    step->hop = (uint32_t)hop;
    step->fanout = (uint32_t)fanout;
    err = weir_api_relation_read(ask->schema, relation, &step->relation);
    if (!err) err = weir_api_direction_read(direction, &step->direction);
    if (err) return weir_err_prefix(err, "%s", where);
    err = sample_ask_read_strategy(where, strategy, &step->strategy);
    if (!err) err = sample_ask_read_weight(ask, where, weight, step);
    if (!err) err = sample_ask_read_half_life(where, half_life, step);
    if (!err) ask->opts.step_count++;
    return err;
}

static weir_err sample_ask_read_steps(weir_api_sample_ask *ask, const weir_json_node *root) {
    const weir_json_node *steps = weir_json_find(root, "steps");
    size_t count = steps ? steps->count : 0;
    weir_err err = WEIR_OK;
    if (!steps || steps->token.kind != WEIR_JSON_ARRAY || !count || count > WEIR_API_SAMPLE_STEPS)
        return WEIR_ERR(WEIR_EDATA, "steps must be an array of 1 to %u objects", WEIR_API_SAMPLE_STEPS);
    const weir_json_node *item = steps->first;
    for (size_t i = 0; !err && item; i++, item = item->next) {
        char where[32];
        snprintf(where, sizeof where, "steps[%zu]", i);
        err = sample_ask_read_step(ask, item, where, i ? ask->steps[i - 1].hop : 0);
    }
    return err;
}

static weir_err sample_ask_read(weir_api_sample_ask *ask, const weir_json_node *root, int64_t now_us) {
    static const char *const names[] = {"targets", "steps", "seed", "window", "edges_max", NULL};
    int64_t seed = SEED_DEFAULT, window = WEIR_SAMPLE_WINDOW, edges_max = WEIR_API_SAMPLE_EDGES;
    weir_err err = weir_api_body_members(root, "the body", names);
    if (!err) err = sample_ask_read_targets(ask, root, now_us);
    if (!err) err = sample_ask_read_steps(ask, root);
    if (!err) err = weir_api_body_number(root, "the body", "seed", 0, INT64_MAX, &seed);
    if (!err) err = weir_api_body_number(root, "the body", "window", 1, WINDOW_MAX, &window);
    if (!err) err = weir_api_body_number(root, "the body", "edges_max", 1, WEIR_API_SAMPLE_EDGES, &edges_max);
    if (err) return err;
    uint32_t share = WEIR_API_SAMPLE_EDGES / ask->target_count;
    ask->opts.seed = (uint64_t)seed;
    ask->opts.window = (uint32_t)window;
    ask->opts.edges_max = edges_max < share ? (uint32_t)edges_max : share;
    ask->opts.targets_max = ask->target_count;
    ask->opts.steps = ask->steps;
    return WEIR_OK;
}

weir_err weir_api_sample_read(const weir_schema *schema, int64_t now_us, const char *body, size_t length,
                              weir_arena *arena, weir_api_sample_ask **askp) {
    const weir_json_node *root = NULL;
    *askp = NULL;
    weir_api_sample_ask *ask = weir_arena_calloc(arena, 1, sizeof *ask);
    if (!ask) return WEIR_NOMEM("for a sample");
    ask->schema = schema;
    ask->arena = arena;
    weir_err err = weir_api_body_json(body, length, DEPTH_MAX, arena, &root);
    if (!err) err = sample_ask_read(ask, root, now_us);
    if (!err) *askp = ask;
    return err;
}

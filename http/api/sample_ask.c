/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sample_ask.c - the body of POST /v1/sample.
 *
 * What a sample may cost is bounded here, before it begins: the edges of all targets together, whatever the request
 * says.
 */
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

static weir_err sample_ask_read_target(void *context, const weir_json_node *item, const char *where) {
    static const char *const names[] = {"type", "key", "before", NULL};
    weir_api_sample_ask *ask = context;
    const char *before;
    WEIR_ASSERT(ask->target_count < WEIR_API_SAMPLE_TARGETS);
    weir_api_sample_target *target = &ask->targets[ask->target_count];
    *target = (weir_api_sample_target){.before_us = ask->now_us, .place = ask->target_count++};
    weir_err err = weir_json_only(item, where, names);
    if (!err) err = weir_api_body_vertex(item, where, ask->schema, ask->arena, &target->vertex);
    if (!err) err = weir_api_body_text(item, where, "before", &before);
    if (err || !before) return err;
    return weir_err_prefix(weir_api_time_read("before", before, strlen(before), &target->before_us), "%s", where);
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

/* --- steps ---------------------------------------------------------------------------------------------------- */

static weir_err sample_ask_read_strategy(const char *where, const char *text, weir_strategy *strategyp) {
    static const char *const names[] = {"recent", "uniform", "weighted", "full"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(names[i], text) != 0) continue;
        *strategyp = (weir_strategy)i;
        return WEIR_OK;
    }
    return WEIR_ERR(WEIR_EDATA, "%s: strategy is '%.16s'; it must be recent, uniform, weighted or full", where, text);
}

static weir_err sample_ask_read_step(void *context, const weir_json_node *item, const char *where) {
    static const char *const names[] = {"hop",    "relation", "direction", "strategy",
                                        "fanout", "weight",   "half_life", NULL};
    weir_api_sample_ask *ask = context;
    const char *relation, *direction, *strategy, *weight, *half_life;
    WEIR_ASSERT(ask->opts.step_count < WEIR_API_SAMPLE_STEPS);
    weir_sample_step *step = &ask->steps[ask->opts.step_count++];
    int64_t hop = step > ask->steps ? step[-1].hop + 1 : 1, fanout = FANOUT_DEFAULT;
    weir_err err = weir_json_only(item, where, names);
    if (!err) err = weir_api_body_need(item, where, "relation", &relation);
    if (!err) err = weir_api_body_need(item, where, "direction", &direction);
    if (!err) err = weir_api_body_text(item, where, "strategy", &strategy);
    if (!err) err = weir_api_body_text(item, where, "weight", &weight);
    if (!err) err = weir_api_body_text(item, where, "half_life", &half_life);
    if (!err) err = weir_api_body_number(item, where, "hop", 1, WEIR_SAMPLE_HOPS_MAX, &hop);
    if (!err) err = weir_api_body_number(item, where, "fanout", 1, WEIR_SAMPLE_FANOUT_MAX, &fanout);
    if (err) return err;
    *step = (weir_sample_step){
        .hop = (uint32_t)hop, .fanout = (uint32_t)fanout, .strategy = WEIR_SAMPLE_RECENT, .weight = WEIR_SCHEMA_NONE};
    err = weir_api_relation_read(ask->schema, relation, &step->relation);
    if (!err) err = weir_api_direction_read(direction, &step->direction);
    if (err) return weir_err_prefix(err, "%s", where);
    if (strategy) err = sample_ask_read_strategy(where, strategy, &step->strategy);

    const weir_schema_relation *of = weir_schema_relation_at(ask->schema, step->relation);
    if (!err && weight) {
        step->weight = weir_schema_feature_find(of->features, of->feature_count, weight);
        if (step->weight == WEIR_SCHEMA_NONE || of->features[step->weight].kind != WEIR_SCHEMA_NUMBER)
            err = WEIR_ERR(WEIR_EDATA, "%s: relation '%s' has no feature '%.64s' of kind number to use as weight",
                           where, of->name, weight);
    }
    if (err || !half_life) return err;
    weir_err wrong = weir_duration_parse(half_life, &step->half_life_us);
    if (!wrong && step->half_life_us > 0 && step->half_life_us <= HALF_LIFE_MAX_US) return WEIR_OK;
    return WEIR_ERR(WEIR_EDATA, "%s: half_life is '%.16s'; write a duration such as 36h or 7d", where, half_life);
}

/* --- the whole ---------------------------------------------------------------------------------------------------- */

static weir_err sample_ask_read(weir_api_sample_ask *ask, const weir_json_node *root) {
    static const char *const names[] = {"targets", "steps", "seed", "window", "edges_max", NULL};
    int64_t seed = SEED_DEFAULT, window = WEIR_SAMPLE_WINDOW, edges_max = WEIR_API_SAMPLE_EDGES;
    weir_err err = weir_json_only(root, "it", names);
    if (!err) err = weir_api_body_items(root, "targets", WEIR_API_SAMPLE_TARGETS, sample_ask_read_target, ask);
    if (!err) err = weir_api_body_items(root, "steps", WEIR_API_SAMPLE_STEPS, sample_ask_read_step, ask);
    if (!err) err = weir_api_body_number(root, "the body", "seed", 0, INT64_MAX, &seed);
    if (!err) err = weir_api_body_number(root, "the body", "window", 1, WINDOW_MAX, &window);
    if (!err) err = weir_api_body_number(root, "the body", "edges_max", 1, WEIR_API_SAMPLE_EDGES, &edges_max);
    if (err) return err;
    sample_ask_sort_targets(ask);
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
    *ask = (weir_api_sample_ask){.schema = schema, .arena = arena, .now_us = now_us};
    weir_err err = weir_json_parse("the body", body, length, DEPTH_MAX, arena, &root);
    if (!err) err = sample_ask_read(ask, root);
    if (!err) *askp = ask;
    return err;
}

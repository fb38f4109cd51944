/* SPDX-License-Identifier: Apache-2.0 */
/* model_register.h - models of random weights for the shipped schemas, in a register of their own. */
#ifndef MODEL_REGISTER_H
#define MODEL_REGISTER_H

#include <string.h>

#include <weir/inference/inputs/columns.h>
#include <weir/inference/pack/pack.h>
#include <weir/inference/recommend/recommend.h>

#include "trees_fixture.h"
#include "weir_test.h"

/* How the shipped payments are judged: who paid with what and where, and what those did before. */
static inline uint32_t register_steps(const weir_schema *schema, weir_sample_step steps[16]) {
    static const struct {
        uint32_t hop, fanout;
        const char *relation;
        weir_direction direction;
    } rows[] = {
        {1, 1, "paid_by", WEIR_OUT},   {1, 1, "paid_with", WEIR_OUT}, {1, 1, "paid_from", WEIR_OUT},
        {1, 1, "paid_at", WEIR_OUT},   {1, 1, "paid_to", WEIR_OUT},   {2, 10, "paid_by", WEIR_IN},
        {2, 10, "paid_to", WEIR_IN},   {2, 5, "seen_on", WEIR_OUT},   {2, 10, "paid_with", WEIR_IN},
        {2, 10, "paid_from", WEIR_IN}, {2, 10, "seen_on", WEIR_IN},   {2, 10, "paid_at", WEIR_IN},
    };
    uint32_t count = sizeof rows / sizeof rows[0];
    for (uint32_t i = 0; i < count; i++)
        steps[i] = (weir_sample_step){.hop = rows[i].hop,
                                      .fanout = rows[i].fanout,
                                      .relation = (uint16_t)weir_schema_relation_find(schema, rows[i].relation),
                                      .direction = rows[i].direction,
                                      .strategy = WEIR_SAMPLE_RECENT};
    return count;
}

/* Writes a model of random weights, or trees, and does not promote it. */
static inline weir_err register_add_family(weir_models *models, const weir_schema *schema, weir_pack_family family,
                                           uint32_t hidden, uint64_t seed, const weir_secret_key *key,
                                           char id[WEIR_MODEL_ID_MAX]) {
    weir_sample_step steps[16];
    weir_rng rng = weir_rng_stream(seed, 6, 0);
    weir_trees *trees = NULL;
    const weir_nn_opts opts = {.hidden = hidden, .steps = steps, .step_count = register_steps(schema, steps)};
    const weir_kernels *cpu = weir_kernels_cpu();
    weir_nn_shape *shape = NULL;
    weir_nn *nn = NULL;
    weir_pack_draft *draft = NULL;
    void *params = NULL;
    weir_err err = weir_nn_shape_open(schema, &opts, &shape);
    if (!err) err = weir_nn_open(shape, cpu, &nn);
    if (!err) err = cpu->alloc(cpu, weir_nn_parameter_count(nn) * sizeof(weir_real), &params);
    if (!err) {
        weir_nn_init(nn, seed, params);
        if (family != WEIR_PACK_NETWORK)
            trees = forest_random(&rng, 30, (uint32_t)weir_tree_columns_count(shape, WEIR_TREE_COLUMNS_HOPS_MAX));
        const weir_pack_opts pack = {.nn = family == WEIR_PACK_TREES ? NULL : nn,
                                     .params = params,
                                     .shape = shape,
                                     .trees = trees,
                                     .hops = WEIR_TREE_COLUMNS_HOPS_MAX,
                                     .blend = {1, 0, 1, 0},
                                     .sample_seed = seed,
                                     .slope = 1,
                                     .schema_hash = weir_schema_hash(schema),
                                     .key = key};
        err = weir_pack_draft_open(&pack, &draft);
    }
    if (!err) err = weir_models_add(models, weir_pack_draft_opts(draft), id);
    weir_pack_draft_close(draft);
    weir_trees_close(trees);
    if (params) cpu->release(cpu, params);
    weir_nn_close(nn);
    weir_nn_shape_free(shape);
    return err;
}

static inline weir_err register_add(weir_models *models, const weir_schema *schema, uint32_t hidden, uint64_t seed,
                                    const weir_secret_key *key, char id[WEIR_MODEL_ID_MAX]) {
    return register_add_family(models, schema, WEIR_PACK_NETWORK, hidden, seed, key, id);
}

static inline weir_schema *register_schema_of(const char *name) {
    const weir_schema_shipped *shipped = weir_schema_shipped_find(name);
    weir_schema *schema;
    assert_ok(weir_schema_parse(shipped->name, shipped->text, shipped->length, &schema));
    return schema;
}

static inline weir_schema *register_schema(void) {
    return register_schema_of("payments");
}

/* The same for clicks: one that recommends, and knows two items that no store has. */
static inline void register_make_recommender(const char *folder, char id[WEIR_MODEL_ID_MAX]) {
    static const weir_vertex_pair items[2] = {{1, 2}, {3, 4}}, users[1] = {{5, 6}};
    static const float rows[4] = {1, 0, 0, 1}, trends[2] = {0, 1};
    const weir_model_opts unsigned_too = {.accept_unsigned = true};
    weir_schema *schema = register_schema_of("clicks");
    const weir_recommend_tables tables = {users, items, 1, 2, rows, rows, rows, rows, trends};
    weir_recommend_shape shape = {
        .task = weir_schema_task_find(schema, "next_view"), .width = 2, .layers = 1, .cosine = true, .temperature = 1};
    weir_recommend_draft *draft;
    weir_models *models;
    weir_models_entry entry;
    shape.rule.relations[0] = (weir_recommend_relation){weir_schema_task_at(schema, shape.task)->relation, 1};
    shape.rule.relation_count = 1;
    assert_ok(weir_recommend_draft_open(&shape, &tables, schema, &draft));
    const weir_model_write_opts opts = weir_recommend_draft_opts(draft);
    assert_ok(weir_models_open(folder, weir_clock_system(), &models));
    assert_ok(weir_models_add(models, &opts, id));
    assert_ok(weir_models_promote(models, id, &(weir_models_change){.reason = "a test"}, &unsigned_too, &entry));
    weir_models_close(models);
    weir_recommend_draft_close(draft);
    weir_schema_free(schema);
}

/* A register with one unsigned model, which serves. */
static inline void register_make_family(const char *folder, weir_pack_family family, uint32_t hidden, uint64_t seed,
                                        char id[WEIR_MODEL_ID_MAX]) {
    const weir_model_opts unsigned_too = {.accept_unsigned = true};
    weir_schema *schema = register_schema();
    weir_models *models;
    weir_models_entry entry;
    assert_ok(weir_models_open(folder, weir_clock_system(), &models));
    assert_ok(register_add_family(models, schema, family, hidden, seed, NULL, id));
    assert_ok(weir_models_promote(models, id, &(weir_models_change){.reason = "a test"}, &unsigned_too, &entry));
    weir_models_close(models);
    weir_schema_free(schema);
}

static inline void register_make(const char *folder, uint32_t hidden, uint64_t seed, char id[WEIR_MODEL_ID_MAX]) {
    register_make_family(folder, WEIR_PACK_NETWORK, hidden, seed, id);
}

#endif /* MODEL_REGISTER_H */

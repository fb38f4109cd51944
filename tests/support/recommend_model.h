/* SPDX-License-Identifier: Apache-2.0 */
/* recommend_model.h - a model of random numbers for the worlds of recommend_fixture.h, in memory and as a folder. */
#ifndef RECOMMEND_MODEL_H
#define RECOMMEND_MODEL_H

#include <weir/inference/recommend/recommend.h>

#include "recommend_fixture.h"

#define USERS     9u
#define ITEMS     14u
#define WIDTH     5u
#define ITEMS_MAX 32u

static inline weir_recommend_rule rule_of(int64_t half_life_us) {
    return (weir_recommend_rule){
        .relations = {{SHOP_BOUGHT, 1}, {SHOP_VIEWED, 0.3}}, .relation_count = 2, .half_life_us = half_life_us};
}

typedef struct random_model {
    weir_recommend_shape shape;
    weir_recommend_tables tables;
    weir_vertex_pair users[ITEMS_MAX], items[ITEMS_MAX];
    float user_own[ITEMS_MAX * WIDTH], item_own[ITEMS_MAX * WIDTH], sums[ITEMS_MAX * WIDTH], vectors[ITEMS_MAX * WIDTH];
    float trends[ITEMS_MAX];
} random_model;

static inline int by_id(const void *a, const void *b) {
    const weir_vertex x = weir_vertex_of(*(const weir_vertex_pair *)a),
                      y = weir_vertex_of(*(const weir_vertex_pair *)b);
    return x < y ? -1 : x > y;
}

static inline void random_ids(weir_vertex_pair *ids, uint32_t type, uint64_t from, uint64_t count) {
    for (uint64_t i = 0; i < count; i++) {
        const weir_vertex id = shop_vertex(type, from + i);
        ids[i] = (weir_vertex_pair){(uint64_t)(id >> 64), (uint64_t)id};
    }
    qsort(ids, count, sizeof *ids, by_id);
}

/* Of all items, and of all users but the first. */
static inline void random_model_make(random_model *m, weir_rng *rng, bool cosine) {
    float *const all[] = {m->user_own, m->item_own, m->sums, m->vectors};
    *m = (random_model){.shape = {.rule = rule_of(2 * SHOP_HOUR),
                                  .task = SHOP_TASK_BUY,
                                  .width = WIDTH,
                                  .layers = 2,
                                  .cosine = cosine,
                                  .temperature = 0.25,
                                  .trend_weight = 0.5,
                                  .trend_half_life_us = SHOP_HOUR}};
    random_ids(m->users, SHOP_USER, 1, USERS - 1);
    random_ids(m->items, SHOP_ITEM, 0, ITEMS);
    for (unsigned a = 0; a < 4; a++)
        for (unsigned i = 0; i < ITEMS_MAX * WIDTH; i++)
            all[a][i] = (float)weir_rng_normal(rng);
    for (unsigned i = 0; i < ITEMS_MAX; i++)
        m->trends[i] = (float)weir_rng_normal(rng);
    m->tables = (weir_recommend_tables){.user_ids = m->users,
                                        .item_ids = m->items,
                                        .user_count = USERS - 1,
                                        .item_count = ITEMS,
                                        .user_own = m->user_own,
                                        .item_own = m->item_own,
                                        .item_sums = m->sums,
                                        .items = m->vectors,
                                        .trends = m->trends};
}

static inline weir_err model_write(const random_model *m, const weir_schema *schema, const char *folder) {
    weir_recommend_draft *draft;
    assert_ok(weir_recommend_draft_open(&m->shape, &m->tables, schema, &draft));
    const weir_model_write_opts opts = weir_recommend_draft_opts(draft);
    weir_err err = weir_model_write(folder, &opts);
    weir_recommend_draft_close(draft);
    return err;
}

static inline weir_err folder_open(const char *folder, const weir_schema *schema, weir_recommend_model **modelp) {
    const weir_model_opts opts = {.accept_unsigned = true};
    weir_model *model;
    *modelp = NULL;
    weir_err err = weir_model_open(folder, &opts, &model);
    return err ? err : weir_recommend_model_open(model, "7", schema, modelp);
}

static inline weir_recommend_model *model_of(const random_model *m, const weir_schema *schema) {
    weir_recommend_model *model;
    char folder[4096];
    snprintf(folder, sizeof folder, "%s", shop_path("model"));
    assert_ok(model_write(m, schema, folder));
    assert_ok(folder_open(folder, schema, &model));
    return model;
}

#endif /* RECOMMEND_MODEL_H */

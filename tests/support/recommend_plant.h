/* SPDX-License-Identifier: Apache-2.0 */
/* recommend_plant.h - a world of users who buy mostly what is of their own group, and what is learnt of it. */
#ifndef RECOMMEND_PLANT_H
#define RECOMMEND_PLANT_H

#include <weir/trainer/recommend/learn.h>

#include "recommend_fixture.h"

#define GROUPS      4u
#define USERS       48u /* some of whom come late */
#define ITEMS       96u
#define BOUGHT      15u /* by each user */
#define EPOCHS      6u
#define PLANT_HOURS 24
#define TASTE       92u /* of a hundred buys, how many are of the user's own group */

/* Where two worlds differ, if they do: from then on. */
typedef struct plant {
    uint64_t seed;
    int64_t other_from_us; /* 0: nowhere */
    bool deletes;          /* of what is bought, some at the last moment of its hour */
} plant;

static const int64_t plant_end_us = SHOP_START_US + PLANT_HOURS * SHOP_HOUR;

/* Each user buys what is of its group, mostly, and looks at as much. One in eight comes in the last hours. */
static inline void plant_user(shop_world *w, uint64_t user, const plant *p) {
    const uint64_t group = user % GROUPS;
    const int64_t from_us = user % 8 == 7 ? plant_end_us - 5 * SHOP_HOUR / 2 : SHOP_START_US;
    for (unsigned i = 0; i < 2 * BOUGHT; i++) {
        const uint64_t own = shop_below(w, ITEMS / GROUPS) * GROUPS + group, any = shop_below(w, ITEMS);
        const uint64_t item = shop_below(w, 100) < TASTE ? own : any;
        const int64_t time_us = from_us + 1 + (int64_t)shop_below(w, (uint64_t)(plant_end_us - from_us - 1));
        if (p->other_from_us && time_us >= p->other_from_us) continue; /* those are others there */
        shop_edge(w, i % 2 ? SHOP_VIEWED : SHOP_BOUGHT, user, item, time_us);
        if (!p->deletes || i % 2 || shop_below(w, 4)) continue;
        const int64_t hours = (time_us - SHOP_START_US) / SHOP_HOUR + 1;
        shop_tell(w, WEIR_DELETE_EDGE, SHOP_BOUGHT, user, item, SHOP_START_US + hours * SHOP_HOUR - 1);
    }
}

/* What the other world has instead: edges, deletions of what was before, and vertices that nobody knew. */
static inline void plant_others(shop_world *w, const plant *p) {
    for (uint64_t n = 0; n < 10; n++) {
        shop_put(w, SHOP_USER, USERS + n, p->other_from_us);
        shop_put(w, SHOP_ITEM, ITEMS + n, p->other_from_us);
    }
    for (unsigned i = 0; i < 300; i++) {
        const int64_t time_us = p->other_from_us + (int64_t)shop_below(w, (uint64_t)(plant_end_us - p->other_from_us));
        shop_tell(w, shop_below(w, 6) ? WEIR_PUT_EDGE : WEIR_DELETE_EDGE, (uint32_t)shop_below(w, 2),
                  shop_below(w, USERS + 10), shop_below(w, ITEMS + 10), time_us);
    }
}

static inline weir_snapshot *plant_make(shop_world *w, const plant *p) {
    shop_open(w, shop_schema_text, p->seed);
    shop_put_all(w, USERS, ITEMS);
    for (uint64_t user = 0; user < USERS; user++)
        plant_user(w, user, p);
    if (p->other_from_us) plant_others(w, p);
    return shop_snapshot(w, plant_end_us);
}

static inline weir_recommend_opts plant_opts(const weir_snapshot *snapshot) {
    weir_recommend_opts o = weir_recommend_defaults(snapshot, SHOP_TASK_BUY);
    o.width = 9; /* no multiple of what a register holds */
    o.epochs = EPOCHS;
    o.patience = 0;
    o.batch = 300; /* two parts */
    o.negatives = 64;
    o.horizons = 2;
    o.threads = 2;
    o.rate = 0.03;
    o.rule.half_life_us = 0;
    return o;
}

typedef struct said {
    weir_recommend_epoch epochs[EPOCHS];
    uint32_t count;
} said;

static inline weir_err hear(void *context, const weir_recommend_epoch *epoch) {
    said *s = context;
    assert_true(s->count < EPOCHS && epoch->number == s->count + 1);
    s->epochs[s->count++] = *epoch;
    return WEIR_OK;
}

static inline weir_recommend_model *finished(const weir_recommended *learnt, const weir_schema *schema) {
    const weir_recommended_view v = weir_recommended_look(learnt);
    const weir_model_opts opts = {.accept_unsigned = true};
    weir_recommend_draft *draft;
    weir_recommend_model *model;
    weir_model *folder;
    char path[4096];
    snprintf(path, sizeof path, "%s", shop_path("model"));
    assert_ok(weir_recommend_draft_open(&v.shape, &v.tables, schema, &draft));
    const weir_model_write_opts write = weir_recommend_draft_opts(draft);
    assert_ok(weir_model_write(path, &write));
    weir_recommend_draft_close(draft);
    assert_ok(weir_model_open(path, &opts, &folder));
    assert_ok(weir_recommend_model_open(folder, "1", schema, &model));
    return model;
}

#endif /* RECOMMEND_PLANT_H */

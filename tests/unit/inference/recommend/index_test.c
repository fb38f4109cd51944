/* SPDX-License-Identifier: Apache-2.0 */
/* index_test.c - answers by an index of the items, beside exact ones, and what becomes of one that is not awaited. */
#include <weir/store/base/metrics.h>

#include "recommend_model.h"

#define EVENTS 400u

static void world_grow_at_random(shop_world *w) {
    shop_put_all(w, USERS, ITEMS);
    for (unsigned i = 0; i < EVENTS; i++)
        shop_edge(w, (uint32_t)shop_below(w, 2) ? SHOP_BOUGHT : SHOP_VIEWED, shop_below(w, USERS), shop_below(w, ITEMS),
                  SHOP_START_US + (int64_t)shop_below(w, (uint64_t)SHOP_HOUR));
    assert_ok(weir_graph_drain(w->graph));
}

/* Of so few items an index names all that are asked for, so that answers are the same to the last bit. */
static void r3_an_index_answers_as_all_items_do(void **state) {
    (void)state;
    shop_world w;
    random_model m;
    weir_recommender *recommender;
    weir_recommend_model *plain, *indexed;
    uint32_t by_index = 0;
    char folder[4096];
    shop_open(&w, shop_schema_text, weir_test_seed());
    random_model_make(&m, &w.rng, true);
    world_grow_at_random(&w);
    snprintf(folder, sizeof folder, "%s", shop_path("model"));
    assert_ok(model_write(&m, w.schema, folder));
    assert_ok(folder_open(folder, w.schema, &plain));
    assert_ok(folder_open(folder, w.schema, &indexed));
    assert_ok(weir_recommend_model_index(plain, ITEMS + 1)); /* too few */
    assert_false(weir_recommend_model_is_indexed(plain));
    assert_ok(weir_recommend_model_index(indexed, ITEMS));
    assert_true(weir_recommend_model_is_indexed(indexed));
    assert_int_equal(weir_metric_gauge(WEIR_METRIC_RECOMMEND_RECALL), 1000);
    assert_ok(weir_recommender_open(w.graph, &recommender));
    for (uint64_t user = 0; user <= USERS; user++)
        for (uint32_t limit = 1; limit <= ITEMS; limit += 4) {
            weir_recommend_answer answer;
            weir_recommend_best best[ITEMS];
            assert_ok(weir_recommender_run(recommender, plain, shop_vertex(SHOP_USER, user), SHOP_START_US + SHOP_HOUR,
                                           limit, &answer));
            const uint32_t count = answer.count;
            assert_false(answer.indexed);
            memcpy(best, answer.best, count * sizeof *best);
            assert_ok(weir_recommender_run(recommender, indexed, shop_vertex(SHOP_USER, user),
                                           SHOP_START_US + SHOP_HOUR, limit, &answer));
            by_index += answer.indexed;
            assert_true(answer.indexed || answer.by_trend);
            assert_int_equal(answer.count, count);
            for (uint32_t i = 0; i < count; i++)
                assert_true(answer.best[i].item == best[i].item && answer.best[i].score == best[i].score);
        }
    assert_true(by_index > 0);
    weir_recommender_close(recommender);
    weir_recommend_model_drop(plain);
    weir_recommend_model_drop(indexed);
    shop_close(&w);
}

/* The last reference ends the thread that makes the index, wherever it is. */
static void a_model_may_go_before_its_index_is_there(void **state) {
    (void)state;
    random_model m;
    weir_schema *schema = shop_schema(shop_schema_text);
    weir_rng rng = weir_rng_stream(weir_test_seed(), 0, 0);
    char folder[4096];
    random_model_make(&m, &rng, true);
    snprintf(folder, sizeof folder, "%s", shop_path("model"));
    assert_ok(model_write(&m, schema, folder));
    for (unsigned round = 0; round < 50; round++) {
        weir_recommend_model *model;
        assert_ok(folder_open(folder, schema, &model));
        assert_ok(weir_recommend_model_index(model, 1));
        weir_recommend_model_drop(model);
    }
    weir_schema_free(schema);
}

WEIR_TESTS(WEIR_CASE(r3_an_index_answers_as_all_items_do), WEIR_CASE(a_model_may_go_before_its_index_is_there))

/* SPDX-License-Identifier: Apache-2.0 */
/* contributions_test.c - what the columns of trees and blends contribute to scores, and what they are called. */
#include "score_fixture.h"

#include <math.h>

#define EVENTS 300u
#define ALL    WEIR_SCORE_REASONS_MAX
#define NEAR   2e-5 /* 400 leaves of about 0.1, added as floats */

static const weir_blend uneven = {0.5, 0.1, 0.7, -0.3};

/* One graph, and a network and trees that answer as any family. */
typedef struct telling {
    score_world world;
    score_net net;
    weir_score_model *models[SCORE_BLEND + 1];
    weir_scorer *scorer;
    weir_arena *arena;
} telling;

static void telling_open(telling *t, bool covered) {
    const uint64_t seed = weir_test_seed();
    score_world_open(&t->world, seed, weir_test_path("store"));
    score_world_grow(&t->world, EVENTS);
    score_net_open_family(&t->net, t->world.schema, seed, SCORE_BLEND, WEIR_TREE_COLUMNS_HOPS_MAX);
    if (!covered) t->net.trees = forest_without_covers(t->net.trees);
    for (score_family family = SCORE_NETWORK; family <= SCORE_BLEND; family++) {
        const weir_score_model_opts opts = {.name = "random",
                                            .version = "1",
                                            .nn = family == SCORE_TREES ? NULL : t->net.nn,
                                            .params = t->net.params,
                                            .shape = t->net.shape,
                                            .trees = family == SCORE_NETWORK ? NULL : t->net.trees,
                                            .hops = t->net.hops,
                                            .blend = uneven,
                                            .seed = 77,
                                            .slope = 2};
        assert_ok(weir_score_model_open(&opts, t->world.schema, &t->models[family]));
        assert_int_equal(weir_score_model_blends(t->models[family]), family == SCORE_BLEND);
    }
    assert_ok(weir_scorer_open(t->world.graph, &t->scorer));
    assert_ok(weir_arena_open(1u << 20, &t->arena));
}

static void telling_close(telling *t) {
    weir_arena_close(t->arena);
    weir_scorer_close(t->scorer);
    for (score_family family = SCORE_NETWORK; family <= SCORE_BLEND; family++)
        weir_score_model_drop(t->models[family]);
    score_net_close(&t->net);
    score_world_close(&t->world);
}

static weir_score_ask draw_ask(telling *t, uint32_t columns) {
    char key[SCORE_VERTEX_KEY];
    weir_score_ask ask;
    const weir_vertex payment = score_vertex(&t->world, SCORE_PAYMENT, 1 + score_below(&t->world, EVENTS), key);
    weir_arena_reset(t->arena);
    assert_ok(weir_score_ask_vertex(t->world.graph, t->models[SCORE_NETWORK], payment, 0, t->arena, &ask));
    ask.reasons = 0;
    ask.columns = columns;
    return ask;
}

static double sum_of(const weir_score *score) {
    double sum = score->base + score->network + score->other_columns;
    for (uint32_t i = 0; i < score->column_count; i++)
        sum += score->columns[i].contribution;
    return sum;
}

static void c6_contributions_add_up_to_the_logit(void **state) {
    (void)state;
    telling t;
    telling_open(&t, true);
    for (uint64_t i = weir_test_rounds(60); i > 0; i--) {
        weir_score_ask asks[3] = {draw_ask(&t, ALL), draw_ask(&t, 0), draw_ask(&t, 3)};
        for (score_family family = SCORE_TREES; family <= SCORE_BLEND; family++) {
            weir_score scores[3];
            assert_ok(weir_scorer_run(t.scorer, t.models[family], asks, 3, scores));
            for (uint32_t n = 0; n < 3; n += 2) {
                assert_true(fabs(sum_of(&scores[n]) - scores[n].logit) <= NEAR);
                assert_in_range(scores[n].column_count, n ? 3 : 4, n ? 3 : ALL);
                for (uint32_t c = 1; c < scores[n].column_count; c++)
                    assert_true(fabs(scores[n].columns[c].contribution) <= fabs(scores[n].columns[c - 1].contribution));
            }
            assert_true(scores[1].columns == NULL && scores[1].column_count == 0); /* which asked for none */
        }
    }
    telling_close(&t);
}

/* Of a blend: those of its trees, weighed, and what the network says alone. */
static void c6_a_blend_weighs_what_its_trees_say(void **state) {
    (void)state;
    telling t;
    telling_open(&t, true);
    for (uint64_t i = weir_test_rounds(30); i > 0; i--) {
        const weir_score_ask ask = draw_ask(&t, ALL);
        weir_score score;
        weir_score_column alone[ALL];
        assert_ok(weir_scorer_run(t.scorer, t.models[SCORE_NETWORK], &ask, 1, &score));
        const double network = score.logit;
        assert_true(score.columns == NULL && score.base == 0);
        assert_ok(weir_scorer_run(t.scorer, t.models[SCORE_TREES], &ask, 1, &score));
        const double base = score.base;
        const uint32_t count = score.column_count;
        memcpy(alone, score.columns, count * sizeof *alone);
        assert_true(score.network == 0);
        assert_ok(weir_scorer_run(t.scorer, t.models[SCORE_BLEND], &ask, 1, &score));
        assert_true(fabs(score.network - (uneven.network_slope * network + uneven.network_offset) / 2) <= NEAR);
        assert_true(fabs(score.base - (uneven.trees_slope * base + uneven.trees_offset) / 2) <= NEAR);
        assert_int_equal(score.column_count, count);
        for (uint32_t c = 0; c < count; c++) {
            const double weighed = alone[c].contribution * uneven.trees_slope / 2;
            assert_true(fabs(score.columns[c].contribution - weighed) <= 1e-9);
        }
    }
    telling_close(&t);
}

/* An event that says what the payment's row is: so its columns say, in the words of the event. */
static void columns_say_what_the_event_said(void **state) {
    (void)state;
    static const weir_value_kind kinds[] = {WEIR_VALUE_NUMBER, WEIR_VALUE_CATEGORY, WEIR_VALUE_TIME};
    telling t;
    weir_mutation *m;
    weir_score score;
    weir_score_ask ask;
    char key[SCORE_VERTEX_KEY];
    uint32_t met = 0;
    telling_open(&t, true);
    for (int missing = 0; missing < 2; missing++) {
        score_event e = {.time_us = t.world.now_us + 1000, .id = 4711};
        const weir_value values[] = {{.present = !missing, .number = 950},
                                     score_text("web"),
                                     {.present = true, .time_us = e.time_us - 60000000}};
        e.payment = score_put(&t.world, &e, SCORE_PAYMENT, EVENTS + 1, &m);
        score_row(&e, m, kinds, values, 3);
        score_edge(&e, SCORE_PAID_BY, e.payment, score_vertex(&t.world, SCORE_ACCOUNT, 1, key));
        assert_ok(weir_score_ask_event(t.models[SCORE_TREES], e.mutations, e.count, &ask));
        ask.columns = ALL;
        assert_ok(weir_scorer_run(t.scorer, t.models[SCORE_TREES], &ask, 1, &score));
        for (uint32_t i = 0; i < score.column_count; i++) {
            const weir_score_column *c = &score.columns[i];
            if (!strcmp(c->name, "amount")) assert_true(missing ? isnan(c->value) : c->value == 950);
            if (!strcmp(c->name, "opened")) assert_true(fabs(c->value - 60) < 1e-3);
            if (!strcmp(c->name, "channel")) /* buckets have no words */
                assert_true(c->text == NULL && c->value >= 1 && c->value <= 8);
            if (!strcmp(c->name, "paid_by.out.edges")) assert_true(c->value == 1);
            if (!strcmp(c->name, "paid_at.out.edges")) assert_true(c->value == 0);
            if (!strcmp(c->name, "paid_at.out.newest.mcc")) assert_true(isnan(c->value) && !c->text);
            met += !strcmp(c->name, "amount") + !strcmp(c->name, "opened") + !strcmp(c->name, "channel");
        }
    }
    assert_true(met > 0);
    telling_close(&t);
}

/* A model from before covers: reasons are what they were. */
static void without_covers_edges_alone_are_reasons(void **state) {
    (void)state;
    telling t;
    telling_open(&t, false);
    for (score_family family = SCORE_TREES; family <= SCORE_BLEND; family++) {
        weir_score_ask ask = draw_ask(&t, 5);
        weir_score score;
        ask.reasons = 5;
        assert_ok(weir_scorer_run(t.scorer, t.models[family], &ask, 1, &score));
        assert_true(score.reason_count > 0 && score.columns == NULL && score.column_count == 0);
    }
    telling_close(&t);
}

WEIR_TESTS(WEIR_CASE(c6_contributions_add_up_to_the_logit), WEIR_CASE(c6_a_blend_weighs_what_its_trees_say),
           WEIR_CASE(columns_say_what_the_event_said), WEIR_CASE(without_covers_edges_alone_are_reasons))

/* SPDX-License-Identifier: Apache-2.0 */
/* scorer_test.c - events before and after they are stored, reasons, batches, budgets. */
#include "score_fixture.h"

#include <math.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/clock.h>

#define EVENTS 400u
#define NEAR   1e-5

typedef struct scoring {
    score_world world;
    score_net net;
    weir_score_model *model;
    weir_scorer *scorer;
    weir_arena *arena;
} scoring;

/* What the models of a case are. */
static score_family family = SCORE_NETWORK;
static uint32_t hops = WEIR_TREE_COLUMNS_HOPS_MAX;

static void scoring_open(scoring *s, uint64_t seed, uint64_t events) {
    score_world_open(&s->world, seed, weir_test_path("store"));
    score_world_grow(&s->world, events);
    score_net_open_family(&s->net, s->world.schema, seed, family, hops);
    s->model = score_model_of(&s->net, s->world.schema, "1");
    assert_ok(weir_scorer_open(s->world.graph, &s->scorer));
    assert_ok(weir_arena_open(1u << 20, &s->arena));
}

static void scoring_close(scoring *s) {
    weir_arena_close(s->arena);
    weir_scorer_close(s->scorer);
    weir_score_model_drop(s->model);
    score_net_close(&s->net);
    score_world_close(&s->world);
}

static weir_score_ask ask_for(scoring *s, weir_vertex payment) {
    weir_score_ask ask;
    weir_arena_reset(s->arena);
    assert_ok(weir_score_ask_vertex(s->world.graph, s->model, payment, 0, s->arena, &ask));
    return ask;
}

static weir_score_ask some_ask(scoring *s) {
    char key[SCORE_VERTEX_KEY];
    return ask_for(s, score_vertex(&s->world, SCORE_PAYMENT, 1 + score_below(&s->world, s->world.events), key));
}

static weir_score run_one(scoring *s, const weir_score_ask *ask) {
    weir_score score;
    assert_ok(weir_scorer_run(s->scorer, s->model, ask, 1, &score));
    return score;
}

/* Weights that are all numbers, and whose sums are none: refused, in a batch and alone, with and without reasons. */
static void what_is_not_finite_is_no_answer(void **state) {
    (void)state;
    scoring s;
    weir_score scores[2];
    scoring_open(&s, weir_test_seed(), 100);
    weir_score_ask asks[2] = {some_ask(&s), some_ask(&s)};
    size_t parameters = weir_nn_parameter_count(s.net.nn);
    for (size_t i = 0; i < parameters; i++)
        s.net.params[i] = i % 2 ? 3e38f : -3e38f;
    for (uint32_t reasons = 0; reasons < 3; reasons++) {
        for (uint32_t count = 1; count <= 2; count++) {
            asks[0].reasons = reasons;
            asks[1].embedding = count == 2;
            assert_err(weir_scorer_run(s.scorer, s.model, asks, count, scores), WEIR_EUNAVAILABLE,
                       "model 1 gives a score that is not a finite number");
        }
    }
    scoring_close(&s);
}

/* --- events ----------------------------------------------------------------------------------------------------- */

typedef struct seen_block {
    uint32_t nodes, counts[SCORE_STEPS];
    weir_vertex children[SCORE_STEPS][64];
    int64_t times[SCORE_STEPS][64];
    uint64_t events[SCORE_STEPS][64];
} seen_block;

static void block_see(const scoring *s, seen_block *seen) {
    const weir_block_view *view = weir_scorer_block(s->scorer);
    memset(seen, 0, sizeof *seen);
    seen->nodes = view->nodes;
    for (uint32_t step = 0; step < SCORE_STEPS; step++) {
        const weir_block_edges *e = &view->edges[step];
        seen->counts[step] = e->count;
        assert_true(e->count <= 64);
        for (uint32_t i = 0; i < e->count; i++) {
            seen->children[step][i] = view->ids[e->children[i]];
            seen->times[step][i] = e->times[i];
            seen->events[step][i] = e->refs[i];
        }
    }
}

static void c1_before_and_after_an_event_is_stored(void **state) {
    (void)state;
    scoring s;
    scoring_open(&s, weir_test_seed(), EVENTS);
    for (uint64_t i = weir_test_rounds(60); i > 0; i--) {
        score_event e;
        weir_score_ask before;
        seen_block first, then;
        score_event_make(&s.world, &e);
        assert_ok(weir_score_ask_event(s.model, e.mutations, e.count, &before));
        weir_score a = run_one(&s, &before);
        block_see(&s, &first);
        score_event_store(&s.world, &e, s.world.events - 1);
        assert_ok(weir_graph_drain(s.world.graph));
        weir_score_ask after = ask_for(&s, e.payment);
        weir_score b = run_one(&s, &after);
        block_see(&s, &then);
        assert_memory_equal(&first, &then, sizeof first);
        assert_true(first.counts[0] >= 1);
        assert_true(after.time_us == e.time_us && after.event == e.id);
        assert_true(fabs(a.logit - b.logit) <= NEAR);
        assert_true(a.decision == b.decision && a.nodes == b.nodes && a.edges == b.edges);
    }
    scoring_close(&s);
}

/* An event over one that is stored already, and over one with the same time and vertex in the same batch. */
static void c3_events_of_a_batch_do_not_see_each_other(void **state) {
    (void)state;
    scoring s;
    score_event one, other;
    weir_score_ask asks[4];
    weir_score alone[4], together[4];
    scoring_open(&s, weir_test_seed(), EVENTS);
    asks[2] = some_ask(&s); /* before events are made that the store never gets */
    asks[3] = some_ask(&s);
    /* Until rows make a difference: some are empty, and some the random network does not care for. */
    for (int tries = 0; tries < 100; tries++) {
        score_event_make(&s.world, &one);
        other = one;
        for (size_t i = 0; i < other.count; i++) { /* the same payment, without its rows */
            other.mutations[i].row = NULL;
            other.mutations[i].row_length = 0;
        }
        assert_ok(weir_score_ask_event(s.model, one.mutations, one.count, &asks[0]));
        assert_ok(weir_score_ask_event(s.model, other.mutations, other.count, &asks[1]));
        alone[0] = run_one(&s, &asks[0]);
        alone[1] = run_one(&s, &asks[1]);
        if (fabs(alone[0].logit - alone[1].logit) > NEAR) break;
    }
    alone[2] = run_one(&s, &asks[2]);
    alone[3] = run_one(&s, &asks[3]);
    assert_ok(weir_scorer_run(s.scorer, s.model, asks, 4, together));
    for (uint32_t i = 0; i < 4; i++) {
        assert_true(fabs(alone[i].logit - together[i].logit) <= NEAR);
        assert_int_equal(alone[i].nodes, together[i].nodes);
        assert_int_equal(alone[i].edges, together[i].edges);
    }
    assert_true(fabs(alone[0].logit - alone[1].logit) > NEAR);
    scoring_close(&s);
}

static void events_that_cannot_be_judged(void **state) {
    (void)state;
    scoring s;
    weir_score_ask ask;
    scoring_open(&s, 1, 1);
    const weir_mutation account = {.kind = WEIR_PUT_VERTEX, .type = SCORE_ACCOUNT, .vertex = 5};
    const weir_mutation deletion = {.kind = WEIR_DELETE_EDGE, .vertex = 5};
    assert_err(weir_score_ask_event(s.model, &account, 1, &ask), WEIR_EDATA, "puts no payment");
    assert_err(weir_score_ask_event(s.model, &deletion, 1, &ask), WEIR_EDATA, "deletes");
    assert_err(weir_score_ask_vertex(s.world.graph, s.model, 99, 0, s.arena, &ask), WEIR_ENOTFOUND, "no such payment");
    scoring_close(&s);
}

/* Of an account: alone and beside scores the same bits, and another one once the account has paid again. */
static void an_embedding_of_what_is_no_target(void **state) {
    (void)state;
    scoring s;
    weir_score_ask asks[3];
    weir_score scores[3];
    weir_real before[64];
    weir_mutation *m;
    weir_vertex account = 0;
    score_event e;
    char key[SCORE_VERTEX_KEY];
    bool known = false;
    scoring_open(&s, weir_test_seed(), EVENTS);
    for (uint64_t n = 0; !known; n++) {
        int64_t first_us;
        account = score_vertex(&s.world, SCORE_ACCOUNT, n, key);
        assert_ok(weir_graph_first_put(s.world.graph, account, WEIR_BEFORE_ALL, s.arena, &known, &first_us));
    }
    asks[0] = some_ask(&s);
    asks[2] = some_ask(&s);
    assert_ok(weir_score_ask_embedding(s.world.graph, s.model, SCORE_ACCOUNT, account, s.world.now_us + 1000, s.arena,
                                       &asks[1]));
    assert_true(asks[1].inner && asks[1].time_us == s.world.now_us + 1000);
    scores[1] = run_one(&s, &asks[1]);
    assert_in_range(scores[1].embedding_width, 1, 64);
    memcpy(before, scores[1].embedding, scores[1].embedding_width * sizeof *before);
    assert_ok(weir_scorer_run(s.scorer, s.model, asks, 3, scores));
    assert_memory_equal(before, scores[1].embedding, scores[1].embedding_width * sizeof *before);
    assert_true(scores[0].nodes > 0 && scores[0].embedding == NULL && scores[1].nodes > 0);

    e = (score_event){.time_us = s.world.now_us + 1, .id = 4711};
    e.payment = score_put(&s.world, &e, SCORE_PAYMENT, s.world.events + 1, &m);
    score_edge(&e, SCORE_PAID_BY, e.payment, account);
    score_other_half(&e);
    score_event_store(&s.world, &e, s.world.events);
    assert_ok(weir_graph_drain(s.world.graph));
    scores[1] = run_one(&s, &asks[1]);
    assert_true(memcmp(before, scores[1].embedding, scores[1].embedding_width * sizeof *before) != 0);

    assert_err(weir_score_ask_embedding(s.world.graph, s.model, SCORE_ACCOUNT, 99, 1, s.arena, &asks[0]),
               WEIR_ENOTFOUND, "no such account");
    assert_err(weir_score_ask_embedding(s.world.graph, s.model, SCORE_PAYMENT, 99, 1, s.arena, &asks[0]),
               WEIR_ENOTFOUND, "no such payment");
    asks[1].type = SCORE_PAYMENT;
    assert_err(weir_scorer_run(s.scorer, s.model, &asks[1], 1, scores), WEIR_EINVAL, "not a target's");
    scoring_close(&s);
}

/* --- reasons ---------------------------------------------------------------------------------------------------- */

/* A payment of several accounts and at several shops, without edge `left_out`: a star. */
static void star_store(score_world *w, uint32_t left_out, score_event *e) {
    static const weir_value_kind number = WEIR_VALUE_NUMBER;
    weir_mutation *m;
    *e = (score_event){.time_us = w->now_us, .id = 4711};
    e->payment = score_put(w, e, SCORE_PAYMENT, 1, &m);
    score_payment_row(w, e, m);
    for (uint32_t i = 0; i < 5; i++) {
        char key[SCORE_VERTEX_KEY];
        weir_vertex end = score_vertex(w, i < 3 ? SCORE_ACCOUNT : SCORE_SHOP, i, key);
        weir_value amount = {.present = true, .number = 10.0 * i};
        if (i == left_out) continue;
        m = score_edge(e, i < 3 ? SCORE_PAID_BY : SCORE_PAID_AT, e->payment, end);
        if (i < 3) score_row(e, m, &number, &amount, 1);
        score_other_half(e);
    }
    w->events = 1;
    score_event_store(w, e, 0);
    assert_ok(weir_graph_drain(w->graph));
}

static double star_logit(uint64_t seed, uint32_t left_out, weir_score_reason *topp, uint32_t *countp) {
    scoring s;
    score_event e;
    char name[16];
    snprintf(name, sizeof name, "star%u", left_out);
    score_world_open(&s.world, seed, weir_test_path(name));
    star_store(&s.world, left_out, &e);
    score_net_open_family(&s.net, s.world.schema, seed, family, hops);
    s.model = score_model_of(&s.net, s.world.schema, "1");
    assert_ok(weir_scorer_open(s.world.graph, &s.scorer));
    assert_ok(weir_arena_open(1u << 20, &s.arena));
    weir_score_ask ask = ask_for(&s, e.payment);
    ask.reasons = topp ? 3 : 0;
    weir_score score = run_one(&s, &ask);
    if (topp) {
        *topp = score.reasons[0];
        *countp = score.reason_count;
        for (uint32_t i = 1; i < score.reason_count; i++)
            assert_true(fabs(score.reasons[i - 1].change) >= fabs(score.reasons[i].change));
    }
    scoring_close(&s);
    return score.logit;
}

static void c5_a_reason_is_the_logit_without_its_edge(void **state) {
    (void)state;
    uint64_t seed = weir_test_seed();
    weir_score_reason top;
    uint32_t count, named = 5;
    double whole = star_logit(seed, 5, &top, &count);
    score_world names;
    assert_int_equal(count, 3);
    assert_true(fabs(top.change) > NEAR && top.event == 4711 && top.direction == WEIR_OUT);
    score_world_open(&names, seed, weir_test_path("names"));
    for (uint32_t i = 0; i < 5; i++) {
        char key[SCORE_VERTEX_KEY];
        if (score_vertex(&names, i < 3 ? SCORE_ACCOUNT : SCORE_SHOP, i, key) == top.neighbor) named = i;
    }
    score_world_close(&names);
    assert_in_range(named, 0, 4);
    assert_int_equal(top.relation, named < 3 ? SCORE_PAID_BY : SCORE_PAID_AT);
    assert_int_equal(top.neighbor_type, named < 3 ? SCORE_ACCOUNT : SCORE_SHOP);
    assert_true(fabs(whole - top.change - star_logit(seed, named, NULL, NULL)) <= NEAR);
}

typedef struct known {
    double logit, changes[SCORE_RELATIONS]; /* of the edge of each relation */
    uint32_t reasons;
} known;

/* An account that has known the shop for an hour pays there, or it pays nowhere, or nobody pays. */
static known known_score(uint64_t seed, const char *folder, bool by, bool at) {
    scoring s;
    score_event e;
    weir_mutation *m;
    char key[SCORE_VERTEX_KEY];
    score_world_open(&s.world, seed, weir_test_path(folder));
    weir_vertex account = score_vertex(&s.world, SCORE_ACCOUNT, 1, key),
                shop = score_vertex(&s.world, SCORE_SHOP, 1, key);
    e = (score_event){.time_us = s.world.now_us - 3600000000, .id = 1};
    score_edge(&e, SCORE_KNOWS, account, shop);
    score_other_half(&e);
    score_event_store(&s.world, &e, 0);
    e = (score_event){.time_us = s.world.now_us, .id = 2};
    e.payment = score_put(&s.world, &e, SCORE_PAYMENT, 1, &m);
    if (by) score_edge(&e, SCORE_PAID_BY, e.payment, account);
    if (by) score_other_half(&e);
    if (at) score_edge(&e, SCORE_PAID_AT, e.payment, shop);
    if (at) score_other_half(&e);
    score_event_store(&s.world, &e, 1);
    s.world.events = 2;
    assert_ok(weir_graph_drain(s.world.graph));
    score_net_open_family(&s.net, s.world.schema, seed, family, hops);
    s.model = score_model_of(&s.net, s.world.schema, "1");
    assert_ok(weir_scorer_open(s.world.graph, &s.scorer));
    assert_ok(weir_arena_open(1u << 20, &s.arena));
    weir_score_ask ask = ask_for(&s, e.payment);
    ask.reasons = 2;
    weir_score score = run_one(&s, &ask);
    known k = {.logit = score.logit, .reasons = score.reason_count};
    for (uint32_t i = 0; i < score.reason_count; i++)
        k.changes[score.reasons[i].relation] = score.reasons[i].change;
    scoring_close(&s);
    return k;
}

/* With an edge goes what was known by it of a pair: the score is that of a payment that never had it. */
static void c5_a_pair_goes_with_its_edge(void **state) {
    (void)state;
    uint64_t seed = weir_test_seed();
    const known whole = known_score(seed, "whole", true, true), nowhere = known_score(seed, "nowhere", true, false),
                nobody = known_score(seed, "nobody", false, true);
    assert_int_equal(whole.reasons, 2);
    assert_true(fabs(whole.logit - whole.changes[SCORE_PAID_AT] - nowhere.logit) <= NEAR);
    assert_true(fabs(whole.logit - whole.changes[SCORE_PAID_BY] - nobody.logit) <= NEAR);
}

/* A payment with MANY edges to accounts, and as many newer ones to shops; one of the newer ones is left out. */
#define MANY (WEIR_SCORE_EDGES_MAX - 40)

static weir_score many_score(scoring *s, const char *folder, uint64_t seed, uint64_t left_out) {
    static const weir_sample_step steps[] = {
        {.hop = 1, .fanout = MANY, .relation = SCORE_PAID_BY, .direction = WEIR_OUT, .strategy = WEIR_SAMPLE_RECENT},
        {.hop = 1, .fanout = MANY, .relation = SCORE_PAID_AT, .direction = WEIR_OUT, .strategy = WEIR_SAMPLE_RECENT}};
    score_event e;
    weir_mutation *m;
    score_world_open(&s->world, seed, weir_test_path(folder));
    for (uint64_t i = 0; i < 2 * MANY; i++) {
        char key[SCORE_VERTEX_KEY];
        bool old = i < MANY;
        e = (score_event){.time_us = SCORE_START_US + (int64_t)i, .id = i + 1};
        e.payment = score_put(&s->world, &e, SCORE_PAYMENT, 1, &m);
        if (i != left_out) {
            score_edge(&e, old ? SCORE_PAID_BY : SCORE_PAID_AT, e.payment,
                       score_vertex(&s->world, old ? SCORE_ACCOUNT : SCORE_SHOP, i, key));
            score_other_half(&e);
        }
        score_event_store(&s->world, &e, i);
    }
    assert_ok(weir_graph_drain(s->world.graph));
    score_net_open_wide(&s->net, s->world.schema, steps, 2, seed, 2 * MANY);
    s->model = score_model_of(&s->net, s->world.schema, "1");
    assert_ok(weir_scorer_open(s->world.graph, &s->scorer));
    assert_ok(weir_arena_open(1u << 20, &s->arena));
    const weir_score_ask ask = {
        .vertex = e.payment, .time_us = SCORE_START_US + 2 * MANY, .reasons = WEIR_SCORE_REASONS_MAX};
    return run_one(s, &ask);
}

/* Of more edges than are tried, it was the first ones in the order of the network's steps. */
static void c5_of_very_many_edges_the_newest_are_tried(void **state) {
    (void)state;
    scoring s, without;
    uint64_t seed = weir_test_seed();
    weir_score score = many_score(&s, "many", seed, UINT64_MAX);
    assert_int_equal(score.edges, 2 * MANY);
    assert_int_equal(score.untried, 2 * MANY - WEIR_SCORE_EDGES_MAX);
    assert_int_equal(score.reason_count, WEIR_SCORE_REASONS_MAX);
    for (uint32_t i = 0; i < score.reason_count; i++)
        assert_true(score.reasons[i].time_us >= SCORE_START_US + 2 * MANY - WEIR_SCORE_EDGES_MAX);
    uint64_t top = (uint64_t)(score.reasons[0].time_us - SCORE_START_US);
    double logit = score.logit, change = score.reasons[0].change;
    assert_int_equal(score.reasons[0].event, top + 1);
    scoring_close(&s);
    score = many_score(&without, "without", seed, top);
    assert_int_equal(score.edges, 2 * MANY - 1);
    assert_true(fabs(logit - change - score.logit) <= NEAR);
    scoring_close(&without);
}

/* Reasons are computed beside the score; they must not move it, in a batch neither. */
static void reasons_leave_the_score_alone(void **state) {
    (void)state;
    scoring s;
    weir_score_ask asks[8];
    weir_score plain[8], reasoned[8];
    scoring_open(&s, weir_test_seed(), EVENTS);
    for (uint32_t i = 0; i < 8; i++)
        asks[i] = some_ask(&s);
    assert_ok(weir_scorer_run(s.scorer, s.model, asks, 8, plain));
    for (uint32_t i = 0; i < 8; i += 2)
        asks[i].reasons = 2;
    assert_ok(weir_scorer_run(s.scorer, s.model, asks, 8, reasoned));
    for (uint32_t i = 0; i < 8; i++) {
        assert_true(fabs(plain[i].logit - reasoned[i].logit) <= NEAR);
        assert_int_equal(reasoned[i].reason_count > 0, i % 2 == 0);
        assert_int_equal(plain[i].reason_count, 0);
    }
    for (uint32_t i = 0; i < 8; i += 2) { /* alone, the same reasons */
        weir_score_reason kept[2];
        uint32_t count = reasoned[i].reason_count;
        assert_ok(weir_scorer_run(s.scorer, s.model, asks, 8, reasoned));
        memcpy(kept, reasoned[i].reasons, count * sizeof kept[0]);
        weir_score alone = run_one(&s, &asks[i]);
        assert_int_equal(alone.reason_count, count);
        for (uint32_t r = 0; r < count; r++)
            assert_true(fabs(alone.reasons[r].change - kept[r].change) <= NEAR);
    }
    scoring_close(&s);
}

/* --- limits ----------------------------------------------------------------------------------------------------- */

static void a_budget_gives_a_smaller_tree(void **state) {
    (void)state;
    scoring s;
    scoring_open(&s, weir_test_seed(), EVENTS);
    weir_score_ask ask;
    weir_score whole;
    do { /* a quarter of each fan-out is 8 vertices at most */
        ask = some_ask(&s);
        whole = run_one(&s, &ask);
    } while (whole.nodes < 12);
    assert_int_equal(whole.effort, WEIR_SCORE_WHOLE);
    ask.nodes_max = whole.nodes;
    assert_int_equal(run_one(&s, &ask).effort, WEIR_SCORE_WHOLE);
    ask.nodes_max = whole.nodes - 1;
    weir_score less = run_one(&s, &ask);
    assert_true(less.effort > WEIR_SCORE_WHOLE);
    assert_true(less.nodes < whole.nodes);
    ask.nodes_max = 1;
    weir_score least = run_one(&s, &ask);
    assert_int_equal(least.effort, WEIR_SCORE_LEAST);
    /* Not always smaller than less: it has the newest edges, which may lead further than those that were drawn. */
    assert_true(least.nodes < whole.nodes && least.nodes >= 2);
    ask.nodes_max = 0;
    ask.deadline_us = 1; /* long ago */
    assert_int_equal(run_one(&s, &ask).effort, WEIR_SCORE_LEAST);
    ask.deadline_us = INT64_MAX / 2000;
    assert_int_equal(run_one(&s, &ask).effort, WEIR_SCORE_WHOLE);
    scoring_close(&s);
}

static void each_of_a_batch_has_its_own_budget(void **state) {
    (void)state;
    scoring s;
    weir_score_ask asks[4];
    weir_score scores[4];
    scoring_open(&s, weir_test_seed(), EVENTS);
    for (uint32_t i = 0; i < 4; i++) {
        asks[i] = some_ask(&s);
        if (i % 2) asks[i].nodes_max = 1;
    }
    assert_ok(weir_scorer_run(s.scorer, s.model, asks, 4, scores));
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(scores[i].effort, i % 2 ? WEIR_SCORE_LEAST : WEIR_SCORE_WHOLE);
        assert_true(fabs(scores[i].logit - run_one(&s, &asks[i]).logit) <= NEAR);
    }
    assert_err(weir_scorer_run(s.scorer, s.model, asks, 0, scores), WEIR_EINVAL, "0 asks");
    assert_err(weir_scorer_run(s.scorer, s.model, asks, WEIR_SCORE_BATCH_MAX + 1, scores), WEIR_EINVAL, "65 asks");
    scoring_close(&s);
}

/* All of a run pay for all of it: whatever the deadline and the crowd, what was looked at is what there was time for,
 * and who was looked at in full is said to be. The clock stands still; a vertex takes as long as the test says. */
static void a_deadline_is_of_the_whole_round(void **state) {
    (void)state;
    static weir_score_ask asks[WEIR_SCORE_BATCH_MAX];
    static weir_score whole[WEIR_SCORE_BATCH_MAX], scores[WEIR_SCORE_BATCH_MAX];
    const int64_t node_us = 100;
    weir_clock *clock;
    scoring s;
    scoring_open(&s, weir_test_seed(), EVENTS);
    assert_ok(weir_clock_manual_open(SCORE_START_US, &clock));
    weir_clock_manual_advance(clock, WEIR_US_PER_S);
    weir_scorer_pace_set(s.scorer, clock, (double)node_us * 1000);
    for (uint64_t round = weir_test_rounds(60) / weir_test_part(3, 10); round > 0; round--) {
        uint32_t count = 1 + (uint32_t)score_below(&s.world, WEIR_SCORE_BATCH_MAX), full = 0;
        int64_t all = 0, begin_us;
        bool least = true;
        for (uint32_t i = 0; i < count; i++)
            asks[i] = some_ask(&s);
        assert_ok(weir_scorer_run(s.scorer, s.model, asks, count, whole));
        for (uint32_t i = 0; i < count; i++)
            all += whole[i].nodes;
        int64_t room = (int64_t)score_below(&s.world, (uint64_t)all + 200);
        begin_us = weir_clock_mono_us(clock);
        for (uint32_t i = 0; i < count; i++)
            asks[i].deadline_us = begin_us + room * node_us;
        assert_ok(weir_scorer_run(s.scorer, s.model, asks, count, scores));
        int64_t spent = (weir_clock_mono_us(clock) - begin_us) / node_us;
        for (uint32_t i = 0; i < count; i++) {
            full += scores[i].effort == WEIR_SCORE_WHOLE;
            least = least && scores[i].effort == WEIR_SCORE_LEAST;
            if (scores[i].effort != WEIR_SCORE_WHOLE) continue;
            assert_int_equal(scores[i].nodes, whole[i].nodes);
            assert_true(fabs(scores[i].logit - whole[i].logit) <= NEAR);
        }
        /* the least trees are looked at whatever the time; beside them nothing is that there was no time for, but for
         * what was not known of the trees of others */
        if (spent > room + room / 4 + 16 && !least)
            fail_msg("%lld vertices in time for %lld, %u of %u whole", (long long)spent, (long long)room, full, count);
        if (full == count) assert_true(spent == all);
    }
    weir_clock_close(clock);
    scoring_close(&s);
}

static void embeddings_are_the_last_layer(void **state) {
    (void)state;
    scoring s;
    scoring_open(&s, weir_test_seed(), EVENTS);
    weir_score_ask ask = some_ask(&s);
    ask.embedding = true;
    weir_score score = run_one(&s, &ask);
    const weir_nn_tensor *weight = weir_nn_tensor_find(s.net.nn, "head.weight");
    const weir_nn_tensor *bias = weir_nn_tensor_find(s.net.nn, "head.bias");
    assert_non_null(weight);
    assert_non_null(bias);
    double logit = (double)s.net.params[bias->offset];
    assert_int_equal(score.embedding_width, 16);
    for (uint32_t i = 0; i < score.embedding_width; i++)
        logit += (double)score.embedding[i] * (double)s.net.params[weight->offset + i];
    assert_true(fabs(logit - score.logit) <= NEAR);
    assert_true(fabs(score.probability - 1 / (1 + exp(-(2 * score.logit - 1)))) <= 1e-12);
    scoring_close(&s);
}

/* --- memory ----------------------------------------------------------------------------------------------------- */

static weir_err open_and_run(void *context) {
    scoring *s = context;
    weir_scorer *scorer;
    weir_score score;
    weir_score_ask ask = {.vertex = 1, .time_us = SCORE_START_US, .reasons = 1};
    weir_err err = weir_scorer_open(s->world.graph, &scorer);
    if (err) return err;
    err = weir_scorer_run(scorer, s->model, &ask, 1, &score);
    weir_scorer_close(scorer);
    return err;
}

/* What an arena cannot get, it cannot tell from its limit: both codes are right. */
static void every_allocation_may_fail(void **state) {
    (void)state;
    scoring s;
    weir_err err = WEIR_OK;
    bool failed = true;
    scoring_open(&s, 3, 5);
    assert_ok(open_and_run(&s)); /* what the store caches is there now */
    for (uint64_t nth = 1; failed; nth++) {
        weir_alloc_stats before, after;
        weir_alloc_stats_get(&before);
        weir_alloc_fail_nth(nth);
        err = open_and_run(&s);
        failed = weir_alloc_failed();
        weir_alloc_fail_nth(0);
        weir_alloc_stats_get(&after);
        assert_int_equal(before.live_blocks, after.live_blocks);
        if (failed && err) assert_true(weir_err_is(err, WEIR_ENOMEM) || weir_err_is(err, WEIR_ELIMIT));
    }
    assert_ok(err);
    scoring_close(&s);
}

static void a_model_of_another_schema_is_refused(void **state) {
    (void)state;
    static const char other_text[] =
        "version: 1\nname: other\nvertices: {payment: {}, account: {}, shop: {}}\n"
        "relations: {paid_by: {from: payment, to: account}, paid_at: {from: payment, to: shop},\n"
        "  knows: {from: account, to: shop}}\n"
        "labels: {bad: {vertex: payment, values: [no, yes], absent: no}}\n"
        "tasks: {fraud: {kind: classify, label: bad, positive: yes}}\n"
        "sources: {s: {id: id, time: t, mutations: [{put_edge: paid_at, from: a, to: b}]}}\n";
    scoring s;
    weir_schema *other;
    weir_score_model *model;
    scoring_open(&s, 1, 1);
    assert_ok(weir_schema_parse("other", other_text, strlen(other_text), &other));
    const weir_score_model_opts opts = {.name = "x", .version = "1", .nn = s.net.nn, .params = s.net.params};
    assert_err(weir_score_model_open(&opts, other, &model), WEIR_EVERSION, "payment");
    assert_null(model);
    weir_schema_free(other);
    scoring_close(&s);
}

/* A living graph has no matrix: its columns would hold what lay in memory. */
static void a_model_of_an_import_s_matrix_is_refused(void **state) {
    (void)state;
    const weir_nn_matrix_of matrix = {SCORE_PAYMENT, {.name = "words", .columns = 3}};
    const weir_nn_opts opts = {
        .hidden = 4, .steps = score_steps, .step_count = SCORE_STEPS, .matrices = &matrix, .matrix_count = 1};
    scoring s;
    weir_nn_shape *shape;
    weir_nn *nn;
    weir_score_model *model;
    scoring_open(&s, 1, 1);
    assert_ok(weir_nn_shape_open(s.world.schema, &opts, &shape));
    assert_ok(weir_nn_open(shape, weir_kernels_cpu(), &nn));
    const weir_score_model_opts model_opts = {.name = "x", .version = "1", .nn = nn, .params = s.net.params};
    assert_err(weir_score_model_open(&model_opts, s.world.schema, &model), WEIR_EVERSION, "matrix 'words'");
    assert_null(model);
    weir_nn_close(nn);
    weir_nn_shape_free(shape);
    scoring_close(&s);
}

/* --- other families --------------------------------------------------------------------------------------------- */

static void c1_trees_before_and_after(void **state) {
    family = SCORE_TREES;
    c1_before_and_after_an_event_is_stored(state);
}

static void c1_blend_before_and_after(void **state) {
    family = SCORE_BLEND;
    c1_before_and_after_an_event_is_stored(state);
}

static void c3_trees_do_not_see_each_other_s_events(void **state) {
    family = SCORE_TREES;
    c3_events_of_a_batch_do_not_see_each_other(state);
}

static void c5_a_reason_of_trees(void **state) {
    family = SCORE_TREES;
    c5_a_reason_is_the_logit_without_its_edge(state);
}

/* Where two hops were too many to be learnt from, serving samples one. */
static void c5_a_reason_of_trees_of_one_hop(void **state) {
    family = SCORE_TREES;
    hops = 1;
    c5_a_reason_is_the_logit_without_its_edge(state);
}

static void c5_a_reason_of_a_blend(void **state) {
    family = SCORE_BLEND;
    c5_a_reason_is_the_logit_without_its_edge(state);
}

static void c5_a_pair_of_trees(void **state) {
    family = SCORE_TREES;
    c5_a_pair_goes_with_its_edge(state);
}

static void every_allocation_of_a_blend_may_fail(void **state) {
    family = SCORE_BLEND;
    every_allocation_may_fail(state);
}

/* A blend has the network's embedding, trees have none: the sentence says so. */
static void embeddings_are_the_network_s(void **state) {
    (void)state;
    char key[SCORE_VERTEX_KEY];
    const uint64_t seed = weir_test_seed();
    for (family = SCORE_NETWORK; family <= SCORE_BLEND; family++) {
        scoring s;
        weir_score score;
        scoring_open(&s, seed, 100);
        const weir_vertex payment = score_vertex(&s.world, SCORE_PAYMENT, 50, key),
                          account = score_vertex(&s.world, SCORE_ACCOUNT, 1, key);
        weir_score_ask ask = ask_for(&s, payment);
        ask.embedding = true;
        if (family == SCORE_TREES) {
            assert_err(weir_scorer_run(s.scorer, s.model, &ask, 1, &score), WEIR_EINVAL, "has no embeddings");
            const weir_score_ask inner = {.vertex = account, .inner = true, .type = SCORE_ACCOUNT, .embedding = true};
            assert_err(weir_scorer_run(s.scorer, s.model, &inner, 1, &score), WEIR_EINVAL, "has no embeddings");
            assert_err(weir_score_ask_embedding(s.world.graph, s.model, SCORE_PAYMENT, payment, 0, s.arena, &ask),
                       WEIR_ENOTFOUND, "it is boosted trees");
        } else {
            score = run_one(&s, &ask);
            assert_true(score.embedding_width == weir_nn_hidden(s.net.shape));
            for (uint32_t i = 0; i < score.embedding_width; i++)
                assert_true(isfinite(score.embedding[i]));
        }
        scoring_close(&s);
    }
}

WEIR_TESTS(WEIR_CASE(c1_trees_before_and_after), WEIR_CASE(c1_blend_before_and_after),
           WEIR_CASE(c3_trees_do_not_see_each_other_s_events), WEIR_CASE(c5_a_reason_of_trees),
           WEIR_CASE(c5_a_reason_of_trees_of_one_hop), WEIR_CASE(c5_a_reason_of_a_blend), WEIR_CASE(c5_a_pair_of_trees),
           WEIR_CASE(every_allocation_of_a_blend_may_fail), WEIR_CASE(embeddings_are_the_network_s),
           WEIR_CASE(a_deadline_is_of_the_whole_round), WEIR_CASE(what_is_not_finite_is_no_answer),
           WEIR_CASE(c1_before_and_after_an_event_is_stored), WEIR_CASE(c3_events_of_a_batch_do_not_see_each_other),
           WEIR_CASE(events_that_cannot_be_judged), WEIR_CASE(c5_a_reason_is_the_logit_without_its_edge),
           WEIR_CASE(c5_a_pair_goes_with_its_edge), WEIR_CASE(an_embedding_of_what_is_no_target),
           WEIR_CASE(c5_of_very_many_edges_the_newest_are_tried), WEIR_CASE(reasons_leave_the_score_alone),
           WEIR_CASE(a_budget_gives_a_smaller_tree), WEIR_CASE(each_of_a_batch_has_its_own_budget),
           WEIR_CASE(embeddings_are_the_last_layer), WEIR_CASE(every_allocation_may_fail),
           WEIR_CASE(a_model_of_another_schema_is_refused), WEIR_CASE(a_model_of_an_import_s_matrix_is_refused))

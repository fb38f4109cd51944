/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recommend_test.c - what a user has met by a snapshot, by the living graph and by a list of all edges; the best items
 * against sorting all; and answers of a living graph.
 */
#include <math.h>

#include <weir/store/base/alloc.h>
#include <weir/store/sample/source.h>

#include "recommend_model.h"

#define EVENTS   700u
#define READ_MAX ((size_t)8 << 20)
#define HALVINGS 30

static const char schema_text[] = SHOP_SCHEMA_WITH(", expire: 6h", SHOP_VIEWED_TEXT, SHOP_BUY_TEXT);

/* Puts, several of a pair, many at the same time, and deletions, over a day. */
static void world_grow(shop_world *w, uint64_t events) {
    for (uint64_t i = 0; i < events; i++) {
        const int64_t time_us = SHOP_START_US + 1 + (int64_t)shop_below(w, 96) * SHOP_HOUR / 4;
        const weir_mutation_kind kind = shop_below(w, 12) ? WEIR_PUT_EDGE : WEIR_DELETE_EDGE;
        shop_tell(w, kind, (uint32_t)shop_below(w, 2), shop_below(w, USERS), shop_below(w, ITEMS), time_us);
    }
}

/* --- what a user has met ------------------------------------------------------------------------------------------ */

/* Of each item by its number: what its edges weigh, and whether any is of the task. */
typedef struct naive_met {
    double weights[ITEMS_MAX];
    bool by_task[ITEMS_MAX];
} naive_met;

static naive_met naive_read(const shop_world *w, const weir_recommend_rule *rule, uint64_t user, int64_t before_us) {
    static naive_edge edges[WEIR_RECOMMEND_WINDOW];
    naive_met met = {{0}, {0}};
    for (uint32_t r = 0; r < rule->relation_count; r++) {
        const uint32_t relation = rule->relations[r].relation;
        const int64_t expire_us = weir_schema_relation_at(w->schema, relation)->expire_us;
        const size_t count = naive_graph_neighbors(w->naive, shop_vertex(SHOP_USER, user), (uint16_t)relation, WEIR_OUT,
                                                   before_us, expire_us, before_us, WEIR_RECOMMEND_WINDOW, edges);
        for (size_t i = 0; i < count; i++) {
            uint64_t item = 0;
            while (shop_vertex(SHOP_ITEM, item) != edges[i].neighbor)
                item++;
            assert_true(item < ITEMS_MAX);
            double halvings =
                rule->half_life_us ? (double)(before_us - edges[i].time_us) / (double)rule->half_life_us : 0;
            if (halvings > HALVINGS) halvings = HALVINGS;
            met.weights[item] += rule->relations[r].weight * pow(0.5, halvings);
            met.by_task[item] |= relation == SHOP_BOUGHT;
        }
    }
    return met;
}

static void assert_naive(const naive_met *naive, const weir_recommend_met *met, uint32_t count) {
    uint32_t expected = 0;
    for (uint64_t item = 0; item < ITEMS_MAX; item++) {
        if (naive->weights[item] == 0) continue;
        uint32_t at = 0;
        while (at < count && met[at].item != shop_vertex(SHOP_ITEM, item))
            at++;
        assert_true(at < count);
        assert_true(fabs(met[at].weight - naive->weights[item]) <= 1e-12 * naive->weights[item]);
        assert_true(met[at].by_task == naive->by_task[item]);
        expected++;
    }
    assert_int_equal(count, expected);
    for (uint32_t i = 1; i < count; i++)
        assert_true(met[i - 1].item < met[i].item);
}

/* The header's formula, item by item. */
static void assert_query(const random_model *m, const float *own, const naive_met *naive, bool known,
                         const float *query) {
    double vector[WIDTH] = {0}, degree = 0, square = 0;
    for (uint64_t item = 0; item < ITEMS; item++)
        degree += naive->weights[item];
    for (unsigned c = 0; c < WIDTH; c++) {
        for (uint64_t item = 0; item < ITEMS; item++) {
            uint64_t place;
            assert_true(weir_recommend_find(m->items, ITEMS, shop_vertex(SHOP_ITEM, item), &place));
            if (degree > 0) vector[c] += naive->weights[item] / sqrt(degree) * (double)m->sums[place * WIDTH + c];
        }
        if (own) vector[c] += (double)own[c];
        vector[c] /= m->shape.layers + 1;
        square += vector[c] * vector[c];
    }
    assert_true(known == (own || degree > 0));
    for (unsigned c = 0; c < WIDTH; c++) {
        const double expected = !known ? 0 : m->shape.cosine ? vector[c] / sqrt(square) : vector[c];
        assert_true(fabs((double)query[c] - expected) <= 1e-5 * (1 + fabs(expected)));
    }
}

/* The query of what a source tells. */
static bool query_of(const random_model *m, const weir_recommend_met *met, uint32_t count, const float *own,
                     float *query) {
    uint64_t places[ITEMS_MAX];
    double weights[ITEMS_MAX], sums[WIDTH];
    const weir_recommend_user user = {.own = own, .items = places, .weights = weights, .count = count};
    for (uint32_t i = 0; i < count; i++) {
        assert_true(weir_recommend_find(m->items, ITEMS, met[i].item, &places[i]));
        weights[i] = met[i].weight;
    }
    return weir_recommend_query(&m->shape, &m->tables, &user, sums, query);
}

typedef struct two_readers {
    weir_snapshot *snapshot;
    weir_sample_source *frozen_source, *live_source;
    weir_recommend_reader *frozen, *live;
} two_readers;

static void readers_open(two_readers *r, shop_world *w, const weir_recommend_rule *rule) {
    r->snapshot = shop_snapshot(w, SHOP_START_US + 30 * SHOP_HOUR);
    assert_ok(weir_sample_over_snapshot(r->snapshot, &r->frozen_source));
    assert_ok(weir_sample_over_graph(w->graph, READ_MAX, &r->live_source));
    assert_ok(weir_recommend_reader_open(rule, w->schema, r->frozen_source, &r->frozen));
    assert_ok(weir_recommend_reader_open(rule, w->schema, r->live_source, &r->live));
}

static void readers_close(two_readers *r) {
    weir_recommend_reader_close(r->frozen);
    weir_recommend_reader_close(r->live);
    weir_sample_source_close(r->frozen_source);
    weir_sample_source_close(r->live_source);
    weir_snapshot_close(r->snapshot);
}

static void check_user(const shop_world *w, const two_readers *r, const random_model *m, uint64_t user,
                       int64_t before_us) {
    const weir_snapshot_vertices *users = weir_snapshot_vertices_of(r->snapshot, SHOP_USER);
    const weir_snapshot_vertices *items = weir_snapshot_vertices_of(r->snapshot, SHOP_ITEM);
    const weir_recommend_met *met;
    weir_recommend_met frozen[ITEMS_MAX];
    uint32_t count, live_count;
    uint64_t index, place;
    float query[WIDTH], live_query[WIDTH];
    assert_true(weir_recommend_find(users->ids, users->count, shop_vertex(SHOP_USER, user), &index));
    assert_ok(weir_recommend_reader_read(r->frozen, index, before_us, &met, &count));
    assert_true(count <= ITEMS_MAX);
    for (uint32_t i = 0; i < count; i++) {
        frozen[i] = met[i];
        frozen[i].item = weir_vertex_of(items->ids[met[i].item]);
    }
    assert_ok(weir_recommend_reader_read(r->live, shop_vertex(SHOP_USER, user), before_us, &met, &live_count));
    assert_int_equal(count, live_count);
    for (uint32_t i = 0; i < count; i++) {
        assert_true(frozen[i].item == met[i].item && frozen[i].by_task == met[i].by_task);
        assert_memory_equal(&frozen[i].weight, &met[i].weight, sizeof met[i].weight);
    }
    const naive_met naive = naive_read(w, &m->shape.rule, user, before_us);
    assert_naive(&naive, met, count);
    const bool has_own = weir_recommend_find(m->users, USERS - 1, shop_vertex(SHOP_USER, user), &place);
    const float *own = has_own ? m->user_own + place * WIDTH : NULL;
    const bool known = query_of(m, frozen, count, own, query);
    assert_true(query_of(m, met, count, own, live_query) == known);
    assert_memory_equal(query, live_query, sizeof query);
    assert_query(m, own, &naive, known, query);
}

static void r1_snapshot_and_graph_tell_the_same(void **state) {
    (void)state;
    const uint64_t seed = weir_test_seed();
    for (uint64_t round = 0; round < weir_test_rounds(3); round++) {
        shop_world w;
        random_model m;
        two_readers r;
        shop_open(&w, schema_text, seed + round);
        random_model_make(&m, &w.rng, round % 2);
        if (round % 3 == 1) m.shape.rule.half_life_us = 0;
        if (round % 3 == 2) m.shape.rule.half_life_us = SHOP_HOUR / 10; /* so that ages reach the most halvings */
        shop_put_all(&w, USERS, ITEMS);
        world_grow(&w, EVENTS);
        readers_open(&r, &w, &m.shape.rule);
        for (unsigned i = 0; i < 40; i++) {
            const int64_t quarters = (int64_t)shop_below(&w, 110);
            const int64_t before_us = SHOP_START_US + quarters * SHOP_HOUR / 4 + (int64_t)shop_below(&w, 3);
            for (uint64_t user = 0; user < USERS; user++)
                check_user(&w, &r, &m, user, before_us);
        }
        readers_close(&r);
        shop_close(&w);
    }
}

/* --- what does not count ------------------------------------------------------------------------------------------ */

static void r2_later_and_older_edges_change_nothing(void **state) {
    (void)state;
    const weir_recommend_rule rule = rule_of(SHOP_HOUR);
    const int64_t before_us = SHOP_START_US + 4 * SHOP_HOUR;
    const uint32_t window = WEIR_RECOMMEND_WINDOW;
    weir_sample_source *source;
    weir_recommend_reader *reader;
    const weir_recommend_met *met;
    weir_recommend_met kept[ITEMS_MAX];
    uint32_t count, again;
    shop_world w;
    shop_open(&w, schema_text, weir_test_seed());
    shop_put_all(&w, USERS, ITEMS);
    for (uint32_t i = 0; i < window; i++) /* the window of a user, as full as it may be */
        shop_edge(&w, SHOP_VIEWED, 0, shop_below(&w, ITEMS), before_us - 1 - (int64_t)i * SHOP_SECOND);
    for (uint32_t i = 0; i < 20; i++)
        shop_edge(&w, SHOP_BOUGHT, 0, shop_below(&w, ITEMS), before_us - 1 - (int64_t)shop_below(&w, SHOP_HOUR));
    assert_ok(weir_graph_drain(w.graph));
    assert_ok(weir_sample_over_graph(w.graph, READ_MAX, &source));
    assert_ok(weir_recommend_reader_open(&rule, w.schema, source, &reader));
    assert_ok(weir_recommend_reader_read(reader, shop_vertex(SHOP_USER, 0), before_us, &met, &count));
    memcpy(kept, met, count * sizeof *met);
    for (uint32_t i = 0; i < 60; i++) {
        const int64_t later_us = before_us + (i % 3 ? (int64_t)shop_below(&w, SHOP_HOUR) : 0);
        shop_edge(&w, (uint32_t)shop_below(&w, 2), 0, shop_below(&w, ITEMS), later_us);
        shop_edge(&w, SHOP_VIEWED, 0, shop_below(&w, ITEMS),
                  before_us - 1 - (int64_t)(window + i) * SHOP_SECOND); /* behind the window */
        shop_edge(&w, SHOP_BOUGHT, 0, shop_below(&w, ITEMS), before_us - SHOP_EXPIRE_US - (int64_t)i); /* expired */
    }
    shop_tell(&w, WEIR_DELETE_EDGE, SHOP_VIEWED, 0, 3, before_us);
    assert_ok(weir_graph_drain(w.graph));
    assert_ok(weir_recommend_reader_read(reader, shop_vertex(SHOP_USER, 0), before_us, &met, &again));
    assert_int_equal(count, again);
    for (uint32_t i = 0; i < count; i++) {
        assert_true(kept[i].item == met[i].item && kept[i].by_task == met[i].by_task);
        assert_memory_equal(&kept[i].weight, &met[i].weight, sizeof met[i].weight);
    }
    const naive_met naive = naive_read(&w, &rule, 0, before_us);
    assert_naive(&naive, met, count);
    assert_ok(weir_recommend_reader_read(reader, shop_vertex(SHOP_USER, 0), before_us + 1, &met, &again));
    const naive_met after = naive_read(&w, &rule, 0, before_us + 1); /* and they count from then on */
    assert_naive(&after, met, again);
    assert_true(after.weights[0] != naive.weights[0]);
    weir_recommend_reader_close(reader);
    weir_sample_source_close(source);
    shop_close(&w);
}

/* --- the best ----------------------------------------------------------------------------------------------------- */

typedef struct searched {
    weir_recommend_search search;
    float *items, *trends, *queries, *scores, *trend_weights;
    uint64_t **skipped;
    uint32_t *skipped_counts, *best_counts;
    weir_recommend_best *best;
} searched;

static void *room_of(size_t count, size_t size) {
    void *room = calloc(count + 1, size);
    assert_non_null(room);
    return room;
}

/* Small whole numbers: products are exact, and ties are many. */
static float small(weir_rng *rng) {
    return (float)weir_rng_below(rng, 5) - 2;
}

static void searched_make(searched *s, weir_rng *rng, uint64_t items) {
    const uint32_t width = 1 + (uint32_t)weir_rng_below(rng, 4), count = 1 + (uint32_t)weir_rng_below(rng, 4);
    const uint32_t limit = 1 + (uint32_t)weir_rng_below(rng, weir_rng_below(rng, 3) ? 40 : WEIR_RECOMMEND_LIMIT_MAX);
    s->items = room_of(items * width, sizeof *s->items);
    s->trends = room_of(items, sizeof *s->trends);
    s->queries = room_of((size_t)count * width, sizeof *s->queries);
    s->scores = room_of((size_t)count * WEIR_RECOMMEND_PIECE, sizeof *s->scores);
    s->trend_weights = room_of(count, sizeof *s->trend_weights);
    s->skipped = room_of(count, sizeof *s->skipped);
    s->skipped_counts = room_of(count, sizeof *s->skipped_counts);
    s->best_counts = room_of(count, sizeof *s->best_counts);
    s->best = room_of((size_t)count * limit, sizeof *s->best);
    for (uint64_t i = 0; i < items * width; i++)
        s->items[i] = small(rng);
    for (uint64_t i = 0; i < items; i++)
        s->trends[i] = small(rng);
    for (uint32_t i = 0; i < count * width; i++)
        s->queries[i] = small(rng);
    for (uint32_t q = 0; q < count; q++) {
        const uint64_t one_in = 1 + weir_rng_below(rng, 30);
        s->trend_weights[q] = (float)weir_rng_below(rng, 3) / 2;
        s->skipped[q] = room_of(items, sizeof **s->skipped);
        for (uint64_t i = 0; i < items; i++)
            if (one_in < 25 && weir_rng_below(rng, one_in) == 0) s->skipped[q][s->skipped_counts[q]++] = i;
    }
    s->search = (weir_recommend_search){.items = s->items,
                                        .trends = s->trends,
                                        .item_count = items,
                                        .width = width,
                                        .trend_weights = s->trend_weights,
                                        .queries = s->queries,
                                        .count = count,
                                        .limit = limit,
                                        .skipped = (const uint64_t *const *)s->skipped,
                                        .skipped_counts = s->skipped_counts,
                                        .scores = s->scores};
}

static void searched_free(searched *s) {
    for (uint32_t q = 0; q < s->search.count; q++)
        free(s->skipped[q]);
    free(s->items), free(s->trends), free(s->queries), free(s->scores), free(s->trend_weights), free(s->skipped);
    free(s->skipped_counts), free(s->best_counts), free(s->best);
}

static int by_score(const void *a, const void *b) {
    const weir_recommend_best *x = a, *y = b;
    if (x->score != y->score) return x->score > y->score ? -1 : 1;
    return x->item < y->item ? -1 : x->item > y->item;
}

static void check_top(const searched *s, uint32_t q) {
    const weir_recommend_search *of = &s->search;
    weir_recommend_best *all = room_of(of->item_count, sizeof *all);
    uint64_t count = 0;
    uint32_t at = 0;
    for (uint64_t i = 0; i < of->item_count; i++) {
        if (at < s->skipped_counts[q] && s->skipped[q][at] == i) {
            at++;
            continue;
        }
        float score = s->trend_weights[q] * s->trends[i];
        for (uint32_t c = 0; c < of->width; c++)
            score += s->queries[q * of->width + c] * s->items[i * of->width + c];
        all[count++] = (weir_recommend_best){i, score};
    }
    qsort(all, count, sizeof *all, by_score);
    if (count > of->limit) count = of->limit;
    assert_int_equal(s->best_counts[q], count);
    for (uint64_t i = 0; i < count; i++) {
        assert_int_equal(s->best[(size_t)q * of->limit + i].item, all[i].item);
        assert_true(s->best[(size_t)q * of->limit + i].score == all[i].score);
    }
    free(all);
}

static void r3_the_best_are_those_of_sorting_all(void **state) {
    (void)state;
    static const uint64_t sizes[] = {0,
                                     1,
                                     2,
                                     WEIR_RECOMMEND_PIECE - 1,
                                     WEIR_RECOMMEND_PIECE,
                                     WEIR_RECOMMEND_PIECE + 1,
                                     2 * WEIR_RECOMMEND_PIECE,
                                     2 * WEIR_RECOMMEND_PIECE + 7};
    weir_rng rng = weir_rng_stream(weir_test_seed(), 3, 0);
    for (uint64_t round = 0; round < weir_test_rounds(60); round++) {
        searched s = {0};
        searched_make(&s, &rng, round % 3 ? weir_rng_below(&rng, 200) : sizes[round / 3 % 8]);
        weir_recommend_top(&s.search, s.best, s.best_counts);
        for (uint32_t q = 0; q < s.search.count; q++)
            check_top(&s, q);
        searched_free(&s);
    }
}

/* --- answers of a living graph ------------------------------------------------------------------------------------ */

static bool is_answered(const random_model *m, const weir_recommend_answer *answer, uint64_t item) {
    uint64_t place;
    assert_true(weir_recommend_find(m->items, ITEMS, shop_vertex(SHOP_ITEM, item), &place));
    for (uint32_t i = 0; i < answer->count; i++)
        if (answer->best[i].item == place) return true;
    return false;
}

static void check_answer(const shop_world *w, const random_model *m, weir_recommender *recommender,
                         const weir_recommend_model *model, uint64_t user, bool repeat) {
    const int64_t before_us = SHOP_START_US + (int64_t)(12 * SHOP_HOUR);
    const naive_met naive = naive_read(w, &m->shape.rule, user, before_us);
    weir_recommend_answer answer;
    uint32_t met = 0;
    assert_ok(weir_recommender_run(recommender, model, shop_vertex(SHOP_USER, user), before_us,
                                   WEIR_RECOMMEND_LIMIT_MAX, &answer));
    for (uint64_t item = 0; item < ITEMS; item++) {
        met += naive.weights[item] > 0;
        assert_true(is_answered(m, &answer, item) == (repeat || !naive.by_task[item]));
    }
    assert_int_equal(answer.met, met);
    for (uint32_t i = 0; i < answer.count; i++) {
        assert_true(isfinite(answer.best[i].score));
        assert_true(i == 0 || by_score(&answer.best[i - 1], &answer.best[i]) < 0);
    }
}

static void r4_nothing_is_answered_twice(void **state) {
    (void)state;
    shop_world w;
    random_model m;
    weir_recommender *recommender;
    shop_open(&w, schema_text, weir_test_seed());
    random_model_make(&m, &w.rng, true);
    shop_put_all(&w, USERS, ITEMS);
    world_grow(&w, EVENTS / 4);
    assert_ok(weir_graph_drain(w.graph));
    assert_ok(weir_recommender_open(w.graph, &recommender));
    for (unsigned repeat = 0; repeat < 2; repeat++) {
        m.shape.task = repeat ? SHOP_TASK_AGAIN : SHOP_TASK_BUY;
        weir_recommend_model *model = model_of(&m, w.schema);
        for (uint64_t user = 0; user < USERS; user++)
            check_answer(&w, &m, recommender, model, user, repeat);
        weir_recommend_model_drop(model);
    }
    weir_recommender_close(recommender);
    shop_close(&w);
}

/* The score of an answer's first item is what the header's formula says. */
static void assert_score(const random_model *m, const weir_recommend_answer *answer, const float *query) {
    const uint64_t item = answer->best[0].item;
    const double weight = answer->by_trend ? 1 : m->shape.trend_weight;
    double score = weight * (double)m->trends[item];
    for (unsigned c = 0; c < WIDTH && !answer->by_trend; c++)
        score += (double)query[c] * (double)m->vectors[item * WIDTH + c];
    assert_true(fabs(score - (double)answer->best[0].score) <= 1e-5 * (1 + fabs(score)));
}

static void an_edge_more_is_another_answer(void **state) {
    (void)state;
    const int64_t now_us = SHOP_START_US + 2 * SHOP_HOUR;
    const weir_vertex user = shop_vertex(SHOP_USER, 0); /* unknown to the model */
    shop_world w;
    random_model m;
    weir_recommender *recommender;
    weir_recommend_answer answer;
    float trend_score, query[WIDTH];
    shop_open(&w, schema_text, weir_test_seed());
    random_model_make(&m, &w.rng, true);
    shop_put_all(&w, USERS, ITEMS);
    assert_ok(weir_graph_drain(w.graph));
    weir_recommend_model *model = model_of(&m, w.schema), *shared = weir_recommend_model_share(model);
    assert_ok(weir_recommender_open(w.graph, &recommender));

    assert_ok(weir_recommender_run(recommender, shared, user, now_us, 1, &answer));
    assert_true(answer.by_trend && answer.met == 0 && answer.count == 1);
    trend_score = answer.best[0].score;
    for (uint64_t item = 0; item < ITEMS; item++)
        assert_true(m.trends[item] <= trend_score);
    assert_score(&m, &answer, NULL);

    shop_edge(&w, SHOP_BOUGHT, 0, 3, now_us - 1);
    assert_ok(weir_graph_drain(w.graph));
    assert_ok(weir_recommender_run(recommender, shared, user, now_us, ITEMS, &answer));
    assert_true(!answer.by_trend && answer.met == 1 && answer.count == ITEMS - 1);
    const naive_met naive = naive_read(&w, &m.shape.rule, 0, now_us);
    const weir_recommend_met met = {shop_vertex(SHOP_ITEM, 3), naive.weights[3], true};
    assert_true(query_of(&m, &met, 1, NULL, query));
    assert_score(&m, &answer, query);

    assert_ok(weir_recommender_run(recommender, shared, user, now_us - 1, 1, &answer)); /* as it was then */
    assert_true(answer.by_trend && answer.best[0].score == trend_score);
    assert_ok(weir_recommender_run(recommender, shared, shop_vertex(SHOP_USER, 1000), now_us, 1, &answer));
    assert_true(answer.by_trend && answer.best[0].score == trend_score); /* a stranger to the graph, too */
    weir_recommender_close(recommender);
    weir_recommend_model_drop(shared);
    assert_string_equal(weir_recommend_model_version(model), "7");
    weir_recommend_model_drop(model);
    shop_close(&w);
}

typedef struct sweep {
    weir_schema *schema;
    weir_graph *graph;
    const char *folder;
} sweep;

static weir_err open_and_run(void *context) {
    const sweep *s = context;
    weir_recommend_model *model = NULL;
    weir_recommender *recommender = NULL;
    weir_recommend_answer answer;
    weir_err err = folder_open(s->folder, s->schema, &model);
    if (!err) err = weir_recommender_open(s->graph, &recommender);
    if (!err)
        err =
            weir_recommender_run(recommender, model, shop_vertex(SHOP_USER, 1), SHOP_START_US + SHOP_HOUR, 5, &answer);
    weir_recommender_close(recommender);
    weir_recommend_model_drop(model);
    return err;
}

static weir_err draft_once(void *context) {
    const sweep *s = context;
    random_model *m = room_of(1, sizeof *m);
    weir_rng rng = weir_rng_stream(1, 1, 1);
    weir_recommend_draft *draft = NULL;
    random_model_make(m, &rng, true);
    weir_err err = weir_recommend_draft_open(&m->shape, &m->tables, s->schema, &draft);
    weir_recommend_draft_close(draft);
    free(m);
    return err;
}

/* What the graph's cache cannot get, it does without; what an arena cannot get, it cannot tell from its limit. */
static void every_allocation_may_fail(void **state) {
    (void)state;
    shop_world w;
    random_model m;
    char folder[4096];
    weir_err err = WEIR_OK;
    bool failed = true;
    shop_open(&w, schema_text, weir_test_seed());
    random_model_make(&m, &w.rng, true);
    shop_put_all(&w, USERS, ITEMS);
    world_grow(&w, 50);
    assert_ok(weir_graph_drain(w.graph));
    snprintf(folder, sizeof folder, "%s", shop_path("model"));
    assert_ok(model_write(&m, w.schema, folder));
    sweep s = {.schema = w.schema, .graph = w.graph, .folder = folder};
    assert_ok(open_and_run(&s)); /* what the graph opens at the first read stays open */
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
    weir_test_every_allocation(draft_once, &s);
    shop_close(&w);
}

/* The extremes that are let in make no score that is infinite. */
static void r5_no_score_is_infinite(void **state) {
    (void)state;
    static random_model m;
    shop_world w;
    weir_recommender *recommender;
    weir_recommend_answer answer;
    shop_open(&w, schema_text, weir_test_seed());
    random_model_make(&m, &w.rng, false);
    m.shape.rule.half_life_us = 0;
    m.shape.trend_weight = 1e6;
    for (unsigned i = 0; i < 2; i++)
        m.shape.rule.relations[i].weight = WEIR_RECOMMEND_WEIGHT_MAX;
    for (unsigned i = 0; i < ITEMS_MAX * WIDTH; i++) {
        m.user_own[i] = m.sums[i] = 1e12f;
        m.vectors[i] = i % 2 ? 1e15f : -1e15f;
    }
    for (unsigned i = 0; i < ITEMS_MAX; i++)
        m.trends[i] = 1e12f;
    shop_put_all(&w, USERS, ITEMS);
    for (unsigned i = 0; i < 2 * WEIR_RECOMMEND_WINDOW; i++)
        shop_edge(&w, i % 2, 1, shop_below(&w, ITEMS / 2), SHOP_START_US + 1 + i);
    assert_ok(weir_graph_drain(w.graph));
    weir_recommend_model *model = model_of(&m, w.schema);
    assert_ok(weir_recommender_open(w.graph, &recommender));
    assert_ok(
        weir_recommender_run(recommender, model, shop_vertex(SHOP_USER, 1), SHOP_START_US + SHOP_HOUR, ITEMS, &answer));
    assert_true(answer.count > 0 && !answer.by_trend);
    for (uint32_t i = 0; i < answer.count; i++)
        assert_true(isfinite(answer.best[i].score));
    weir_recommender_close(recommender);
    weir_recommend_model_drop(model);
    shop_close(&w);
}

WEIR_TESTS(WEIR_CASE(r1_snapshot_and_graph_tell_the_same), WEIR_CASE(r2_later_and_older_edges_change_nothing),
           WEIR_CASE(r3_the_best_are_those_of_sorting_all), WEIR_CASE(r4_nothing_is_answered_twice),
           WEIR_CASE(an_edge_more_is_another_answer), WEIR_CASE(every_allocation_may_fail),
           WEIR_CASE(r5_no_score_is_infinite))

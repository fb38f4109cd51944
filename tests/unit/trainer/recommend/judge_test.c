/* SPDX-License-Identifier: Apache-2.0 */
/*
 * judge_test.c - what is read of a snapshot against a list of all edges, figures against counting all, and a finished
 * model against the training that made it.
 */
#include "recommend_dense.h"
#include "recommend_plant.h"

#define VERTICES 200u /* of a side, at most */

/* --- what is read ------------------------------------------------------------------------------------------------- */

#define READ_USERS 12u
#define READ_ITEMS 10u

static uint64_t item_number(weir_vertex id) {
    uint64_t n = 0;
    while (shop_vertex(SHOP_ITEM, n) != id)
        n++;
    return n;
}

/* Of each item by its number: weights of what the user has had before a time. */
static void naive_weights(const shop_world *w, const weir_recommend_rule *rule, weir_vertex user, int64_t before_us,
                          double *weights, bool *by_task) {
    static naive_edge edges[WEIR_RECOMMEND_WINDOW];
    for (uint32_t r = 0; r < rule->relation_count; r++) {
        const uint32_t relation = rule->relations[r].relation;
        const int64_t expire_us = weir_schema_relation_at(w->schema, relation)->expire_us;
        const size_t count = naive_graph_neighbors(w->naive, user, (uint16_t)relation, WEIR_OUT, before_us, expire_us,
                                                   before_us, WEIR_RECOMMEND_WINDOW, edges);
        for (size_t i = 0; i < count; i++) {
            const uint64_t item = item_number(edges[i].neighbor);
            const double age_us = (double)(before_us - edges[i].time_us);
            weights[item] += rule->relations[r].weight *
                             (rule->half_life_us ? pow(0.5, fmin(30, age_us / (double)rule->half_life_us)) : 1);
            by_task[item] |= r == 0;
        }
    }
}

static double naive_trend(const shop_world *w, weir_vertex item, int64_t before_us, int64_t half_life_us) {
    static naive_edge edges[4096];
    const int64_t expire_us = weir_schema_relation_at(w->schema, SHOP_BOUGHT)->expire_us;
    const size_t count = naive_graph_neighbors(w->naive, item, SHOP_BOUGHT, WEIR_IN, before_us, expire_us, before_us,
                                               sizeof edges / sizeof edges[0], edges);
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += half_life_us ? pow(0.5, (double)(before_us - edges[i].time_us) / (double)half_life_us) : 1;
    return log(sum + 0.1);
}

static void check_pairs(const shop_world *w, const weir_recommend_opts *o, int64_t before_us) {
    const weir_snapshot_vertices *users = weir_snapshot_vertices_of(o->snapshot, SHOP_USER);
    const weir_snapshot_vertices *items = weir_snapshot_vertices_of(o->snapshot, SHOP_ITEM);
    double a[READ_USERS][READ_ITEMS] = {{0}}, user_degrees[READ_USERS] = {0}, item_degrees[READ_ITEMS] = {0};
    uint32_t met[READ_ITEMS] = {0}, count = 0, task_count = 0;
    weir_recommend_pairs p;
    assert_ok(weir_recommend_pairs_read(o, before_us, &p));
    assert_true(p.users == READ_USERS && p.items == READ_ITEMS && users->count == READ_USERS);
    for (uint32_t u = 0; u < READ_USERS; u++) {
        bool by_task[READ_ITEMS] = {false};
        double weights[READ_ITEMS] = {0};
        naive_weights(w, &o->rule, weir_vertex_of(users->ids[u]), before_us, weights, by_task);
        for (uint32_t i = 0; i < READ_ITEMS; i++) {
            a[u][i] = weights[item_number(weir_vertex_of(items->ids[i]))];
            if (a[u][i] == 0) continue;
            user_degrees[u] += a[u][i];
            item_degrees[i] += a[u][i];
            met[i]++;
            assert_true(count < p.count && p.user_items[count] == i);
            assert_true(fabs(p.weights[count] - a[u][i]) <= 1e-12 * a[u][i]);
            assert_true(p.by_task[count] == by_task[item_number(weir_vertex_of(items->ids[i]))]);
            task_count += p.by_task[count++];
        }
        assert_int_equal(p.user_offsets[u + 1], count);
    }
    assert_true(p.count == count && p.task_count == task_count);
    for (uint32_t i = 0, at = 0; i < READ_ITEMS; i++) {
        assert_int_equal(p.item_offsets[i + 1] - p.item_offsets[i], met[i]);
        assert_true(fabs(p.item_degrees[i] - item_degrees[i]) <= 1e-12 * item_degrees[i]);
        for (uint32_t u = 0; u < READ_USERS; u++) {
            if (a[u][i] == 0) continue;
            const double expected = a[u][i] / sqrt(user_degrees[u] * item_degrees[i]);
            assert_true(p.item_users[at] == u && fabs((double)p.item_weights[at] - expected) <= 1e-6 * expected);
            at++;
        }
    }
    weir_recommend_pairs_free(&p);
}

static void check_trends(const shop_world *w, const weir_recommend_opts *o, int64_t before_us, int64_t half_life_us) {
    const weir_snapshot_vertices *items = weir_snapshot_vertices_of(o->snapshot, SHOP_ITEM);
    float trends[READ_ITEMS];
    assert_ok(weir_recommend_trends_read(o, before_us, half_life_us, trends));
    for (uint32_t i = 0; i < READ_ITEMS; i++) {
        const double expected = naive_trend(w, weir_vertex_of(items->ids[i]), before_us, half_life_us);
        assert_true(fabs((double)trends[i] - expected) <= 1e-5);
    }
}

/* With deletions and expiry, at times that edges and deletions have, too. */
static void pairs_and_trends_are_what_all_edges_say(void **state) {
    (void)state;
    static const char text[] = SHOP_SCHEMA_WITH(", expire: 6h", SHOP_VIEWED_TEXT, SHOP_BUY_TEXT);
    shop_world w;
    shop_open(&w, text, weir_test_seed());
    shop_put_all(&w, READ_USERS, READ_ITEMS);
    for (unsigned i = 0; i < 500; i++)
        shop_tell(&w, shop_below(&w, 6) ? WEIR_PUT_EDGE : WEIR_DELETE_EDGE, (uint32_t)shop_below(&w, 2),
                  shop_below(&w, READ_USERS), shop_below(&w, READ_ITEMS),
                  SHOP_START_US + 1 + (int64_t)shop_below(&w, 96) * SHOP_HOUR / 4);
    weir_snapshot *snapshot = shop_snapshot(&w, SHOP_START_US + 30 * SHOP_HOUR);
    weir_recommend_opts o = weir_recommend_defaults(snapshot, SHOP_TASK_BUY);
    assert_true(o.rule.relation_count == 2 && o.rule.relations[0].relation == SHOP_BOUGHT &&
                o.rule.relations[1].relation == SHOP_VIEWED);
    o.rule.relations[1].weight = 0.3;
    for (unsigned i = 0; i < 60; i++) {
        const int64_t before_us = SHOP_START_US + (int64_t)shop_below(&w, 110) * SHOP_HOUR / 4 + i % 3;
        o.rule.half_life_us = i % 2 ? SHOP_HOUR : 0;
        check_pairs(&w, &o, before_us);
        check_trends(&w, &o, before_us, i % 4 < 2 ? SHOP_HOUR : 0);
    }
    weir_snapshot_close(snapshot);
    shop_close(&w);
}

/* --- figures ------------------------------------------------------------------------------------------------------ */

/* What a model is made of, in double, with users and items by their indices in the snapshot. */
typedef struct counted {
    const shop_world *w;
    const weir_recommended_view *v;
    const weir_snapshot_vertices *users, *items;
    dense d;
    double *vectors;
    double trends[VERTICES];
    bool had[VERTICES][VERTICES];
    double recall, ndcg;
    uint64_t asked, wanted;
} counted;

static void counted_learnt(const weir_recommended_view *v, const weir_snapshot_vertices *of, bool items, double *rows) {
    const weir_recommend_tables *t = &v->tables;
    for (uint64_t i = 0; i < of->count; i++) {
        uint64_t place;
        const weir_vertex id = weir_vertex_of(of->ids[i]);
        if (!weir_recommend_find(items ? t->item_ids : t->user_ids, items ? t->item_count : t->user_count, id, &place))
            continue;
        for (uint32_t c = 0; c < v->shape.width; c++)
            rows[i * v->shape.width + c] = (double)(items ? t->item_own : t->user_own)[place * v->shape.width + c];
    }
}

/* Vectors and trends as of a time. */
static void counted_begin(counted *k, int64_t before_us) {
    const uint32_t users = (uint32_t)k->users->count, items = (uint32_t)k->items->count, width = k->v->shape.width;
    double degrees[VERTICES] = {0};
    k->d = (dense){.users = users, .items = items, .width = width};
    k->d.a = room_of((size_t)users * items, sizeof *k->d.a);
    k->d.matrix = room_of((size_t)users * items, sizeof *k->d.matrix);
    k->d.degrees = room_of(items, sizeof *k->d.degrees);
    for (uint32_t u = 0; u < users; u++) {
        double weights[VERTICES] = {0};
        bool by_task[VERTICES] = {false};
        naive_weights(k->w, &k->v->shape.rule, weir_vertex_of(k->users->ids[u]), before_us, weights, by_task);
        for (uint32_t i = 0; i < items; i++) {
            const uint64_t n = item_number(weir_vertex_of(k->items->ids[i]));
            k->d.a[u * items + i] = weights[n];
            k->had[u][i] = by_task[n];
            degrees[u] += weights[n];
            k->d.degrees[i] += weights[n];
        }
    }
    for (uint32_t u = 0; u < users; u++)
        for (uint32_t i = 0; i < items; i++)
            if (k->d.a[u * items + i] > 0)
                k->d.matrix[u * items + i] = k->d.a[u * items + i] / sqrt(degrees[u] * k->d.degrees[i]);
    double *learnt = room_of(dense_cells(&k->d), sizeof *learnt);
    k->vectors = room_of(dense_cells(&k->d), sizeof *k->vectors);
    counted_learnt(k->v, k->users, false, learnt);
    counted_learnt(k->v, k->items, true, learnt + (size_t)users * width);
    dense_propagate(&k->d, k->v->shape.layers, learnt, k->vectors, NULL);
    free(learnt);
    for (uint32_t i = 0; i < items; i++)
        k->trends[i] = naive_trend(k->w, weir_vertex_of(k->items->ids[i]), before_us, k->v->shape.trend_half_life_us);
}

static void counted_end(counted *k) {
    free(k->vectors);
    free(k->d.a);
    free(k->d.matrix);
    free(k->d.degrees);
}

static double counted_score(const counted *k, uint32_t user, uint32_t item) {
    const uint32_t width = k->d.width;
    const double *u = k->vectors + (size_t)user * width, *i = k->vectors + ((size_t)k->d.users + item) * width;
    double product = 0, of_user = 0, of_item = 0;
    for (uint32_t c = 0; c < width; c++) {
        product += u[c] * i[c];
        of_user += u[c] * u[c];
        of_item += i[c] * i[c];
    }
    if (of_user == 0) return k->trends[item];
    const double length = sqrt(of_user) * sqrt(of_item) * k->v->shape.temperature;
    return (of_item > 0 ? product / length : 0) + k->v->shape.trend_weight * k->trends[item];
}

/* Counts one user; *recallp: negative: so near a tie at the cut that rounding may say otherwise.  false: it is not
 * asked. */
static bool counted_user(counted *k, uint32_t user, int64_t from_us, double *recallp) {
    static naive_edge edges[4096];
    const size_t count = naive_graph_neighbors(k->w->naive, weir_vertex_of(k->users->ids[user]), SHOP_BOUGHT, WEIR_OUT,
                                               from_us + SHOP_HOUR, 0, from_us, 4096, edges);
    bool wanted[VERTICES] = {false}, taken[VERTICES] = {false};
    uint32_t all = 0, hits = 0;
    double gain = 0, most = 0, last = 0;
    for (size_t e = 0; e < count && edges[e].time_us >= from_us; e++)
        for (uint32_t i = 0; i < k->d.items; i++)
            if (weir_vertex_of(k->items->ids[i]) == edges[e].neighbor && !k->had[user][i] && !wanted[i]) {
                wanted[i] = true;
                most += all < WEIR_RECOMMEND_CUT ? 1 / log2(all + 2) : 0;
                all++;
            }
    if (all == 0) return false;
    *recallp = 0;
    for (uint32_t rank = 0; rank <= WEIR_RECOMMEND_CUT; rank++) {
        uint32_t best = UINT32_MAX;
        double score = 0;
        for (uint32_t i = 0; i < k->d.items; i++) {
            if (k->d.degrees[i] == 0 || k->had[user][i] || taken[i]) continue;
            const double other = counted_score(k, user, i);
            if (best != UINT32_MAX && other <= score) continue;
            best = i;
            score = other;
        }
        if (best == UINT32_MAX) break;
        if (rank == WEIR_RECOMMEND_CUT) {
            if (last - score < 1e-4) *recallp = -1;
            break;
        }
        last = score;
        taken[best] = true;
        hits += wanted[best];
        gain += wanted[best] ? 1 / log2(rank + 2) : 0;
    }
    if (*recallp == 0) *recallp = (double)hits / all;
    k->recall += (double)hits / all;
    k->ndcg += gain / most;
    k->asked++;
    k->wanted += all;
    return true;
}

static void figures_are_what_counting_says(void **state) {
    (void)state;
    static counted k;
    const plant p = {.seed = weir_test_seed(), .deletes = true};
    shop_world w;
    weir_recommended *learnt;
    weir_snapshot *snapshot = plant_make(&w, &p);
    weir_recommend_opts o = plant_opts(snapshot);
    o.rule.relations[1].weight = 0.4;
    o.rule.half_life_us = 6 * SHOP_HOUR;
    assert_ok(weir_recommend_learn(&o, &learnt));
    const weir_recommended_view v = weir_recommended_look(learnt);
    k = (counted){.w = &w,
                  .v = &v,
                  .users = weir_snapshot_vertices_of(snapshot, SHOP_USER),
                  .items = weir_snapshot_vertices_of(snapshot, SHOP_ITEM)};
    uint32_t ties = 0;
    for (int64_t from_us = v.test.from_us; from_us < v.test.to_us; from_us += SHOP_HOUR) {
        counted_begin(&k, from_us);
        for (uint32_t user = 0; user < k.users->count; user++) {
            double recall;
            const uint64_t at = k.asked;
            if (!counted_user(&k, user, from_us, &recall)) continue;
            assert_true(at < v.test.users);
            ties += recall < 0;
            if (recall >= 0) assert_true(fabs(recall - (double)v.test.recalls[at]) < 1e-6);
        }
        counted_end(&k);
    }
    assert_true(k.asked == v.test.users && k.wanted == v.test.items);
    assert_true(ties < k.asked / 4);
    assert_true(fabs(k.recall / (double)k.asked - v.test.recall) < 0.02);
    assert_true(fabs(k.ndcg / (double)k.asked - v.test.ndcg) < 0.02);
    weir_recommended_free(learnt);
    weir_snapshot_close(snapshot);
    shop_close(&w);
}

/* A server ranks by trend for who is unknown to it, even where trends count nothing otherwise. */
static void the_unknown_are_judged_by_trend(void **state) {
    (void)state;
    const plant p = {.seed = weir_test_seed()};
    shop_world w;
    weir_recommend_team *team;
    weir_recommend_field field;
    weir_recommend_metrics metrics[2];
    weir_snapshot *snapshot = plant_make(&w, &p);
    const weir_recommend_opts o = plant_opts(snapshot);
    const weir_recommend_shape shape = {
        .rule = o.rule, .task = o.task, .width = o.width, .layers = 2, .cosine = true, .temperature = 0.15};
    const weir_recommend_cell cells[2] = {{0, SHOP_HOUR, false}, {1, SHOP_HOUR, true}};
    float *parameters = room_of((USERS + ITEMS) * (size_t)o.width, sizeof *parameters);
    assert_ok(weir_recommend_team_open(2, &team));
    assert_ok(weir_recommend_field_of(&o, team, &field));
    assert_ok(weir_recommend_judge_rows(&(weir_recommend_judging){.field = &field,
                                                                  .shape = &shape,
                                                                  .parameters = parameters,
                                                                  .from_us = field.test_us,
                                                                  .to_us = field.end_us,
                                                                  .cells = cells,
                                                                  .cell_count = 2},
                                        metrics));
    assert_true(metrics[0].users > 0 && metrics[0].unknown == metrics[0].users && metrics[1].recall > 0);
    assert_true(metrics[0].recall == metrics[1].recall && metrics[0].ndcg == metrics[1].ndcg);
    weir_free(metrics[0].recalls);
    weir_recommend_team_close(team);
    free(parameters);
    weir_snapshot_close(snapshot);
    shop_close(&w);
}

/* --- a finished model --------------------------------------------------------------------------------------------- */

static void a_finished_model_is_judged_as_it_was(void **state) {
    (void)state;
    const plant p = {.seed = weir_test_seed()};
    shop_world w;
    weir_recommend_metrics m;
    weir_snapshot *snapshot = plant_make(&w, &p);
    for (weir_recommend_loss loss = 0; loss <= WEIR_RECOMMEND_BPR; loss++) {
        weir_recommended *learnt;
        weir_recommend_opts o = plant_opts(snapshot);
        o.loss = loss;
        assert_ok(weir_recommend_learn(&o, &learnt));
        const weir_recommended_view v = weir_recommended_look(learnt);
        weir_recommend_model *model = finished(learnt, weir_snapshot_schema(snapshot));
        weir_recommend_opts judge = weir_recommend_defaults(snapshot, SHOP_TASK_BUY);
        judge.horizons = o.horizons;
        judge.threads = 3;
        assert_ok(weir_recommend_judge(&judge, model, &m));
        assert_true(m.users == v.test.users && m.items == v.test.items && m.unknown == v.test.unknown);
        assert_true(m.recall == v.test.recall && m.ndcg == v.test.ndcg && m.low == v.test.low);
        assert_memory_equal(m.recalls, v.test.recalls, m.users * sizeof *m.recalls);
        weir_free(m.recalls);
        judge.horizons = 0;
        assert_err(weir_recommend_judge(&judge, model, &m), WEIR_EINVAL, "out of range");
        judge.horizons = 2;
        judge.threads = WEIR_RECOMMEND_THREADS_MAX + 1;
        assert_err(weir_recommend_judge(&judge, model, &m), WEIR_EINVAL, "out of range");
        judge.threads = 1;
        judge.horizons = UINT32_MAX;
        assert_err(weir_recommend_judge(&judge, model, &m), WEIR_EDATA, "shorter than two times");
        assert_null(m.recalls);
        weir_recommend_model_drop(model);
        weir_recommended_free(learnt);
    }
    weir_snapshot_close(snapshot);
    shop_close(&w);
}

WEIR_TESTS(WEIR_CASE(pairs_and_trends_are_what_all_edges_say), WEIR_CASE(figures_are_what_counting_says),
           WEIR_CASE(the_unknown_are_judged_by_trend), WEIR_CASE(a_finished_model_is_judged_as_it_was))

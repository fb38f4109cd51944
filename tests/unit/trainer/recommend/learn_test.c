/* SPDX-License-Identifier: Apache-2.0 */
/*
 * learn_test.c - gradients against finite differences and a dense matrix in double, figures against counting all, and
 * what must not change what is learnt: threads, and what comes later.
 */
#include <math.h>

#include <weir/store/base/alloc.h>

#include "recommend_fixture.h"
#include "recommend_private.h"

#define GROUPS      4u
#define USERS       48u /* of the planted world; some come late */
#define ITEMS       96u
#define BOUGHT      15u /* by each user */
#define EPOCHS      6u
#define PLANT_HOURS 24
#define VERTICES    200u /* the most of a side of a random graph, but for that of many parts */
#define TASTE       92u  /* of a hundred buys, how many are of the user's own group */

static void *room_of(size_t count, size_t size) {
    void *room = calloc(count + 1, size);
    assert_non_null(room);
    return room;
}

/* --- a random graph as a dense matrix ------------------------------------------------------------------------------- */

typedef struct dense {
    uint32_t users, items, width;
    double *a;       /* users x items: what each has had of each; 0: nothing */
    double *matrix;  /* the same, by the roots of degrees                    */
    double *degrees; /* of items                                             */
    recommend_pairs pairs;
} dense;

static void dense_pairs(dense *d) {
    recommend_pairs *p = &d->pairs;
    const size_t cells = (size_t)d->users * d->items + 1;
    *p = (recommend_pairs){.users = d->users, .items = d->items};
    p->user_offsets = weir_calloc((size_t)d->users + 1, sizeof *p->user_offsets);
    p->item_offsets = weir_calloc((size_t)d->items + 1, sizeof *p->item_offsets);
    p->user_items = weir_calloc(cells, sizeof *p->user_items);
    p->item_users = weir_calloc(cells, sizeof *p->item_users);
    p->weights = weir_calloc(cells, sizeof *p->weights);
    p->by_task = weir_calloc(cells, sizeof *p->by_task);
    p->user_weights = weir_calloc(cells, sizeof *p->user_weights);
    p->item_weights = weir_calloc(cells, sizeof *p->item_weights);
    p->item_degrees = weir_calloc((size_t)d->items + 1, sizeof *p->item_degrees);
    for (uint32_t u = 0; u < d->users; u++) {
        for (uint32_t i = 0; i < d->items; i++) {
            if (d->a[u * d->items + i] == 0) continue;
            p->user_items[p->count] = i;
            p->weights[p->count] = d->a[u * d->items + i];
            p->by_task[p->count] = p->count % 4 != 3;
            p->task_count += p->by_task[p->count];
            p->user_weights[p->count++] = (float)d->matrix[u * d->items + i];
        }
        p->user_offsets[u + 1] = p->count;
    }
    uint32_t at = 0;
    for (uint32_t i = 0; i < d->items; i++) {
        for (uint32_t u = 0; u < d->users; u++) {
            if (d->a[u * d->items + i] == 0) continue;
            p->item_users[at] = u;
            p->item_weights[at++] = (float)d->matrix[u * d->items + i];
        }
        p->item_offsets[i + 1] = at;
        p->item_degrees[i] = d->degrees[i];
    }
}

/* The last user and the last item have met nobody. */
static void dense_make(dense *d, weir_rng *rng, uint32_t users, uint32_t items, double share) {
    *d = (dense){.users = users, .items = items, .width = 1 + (uint32_t)weir_rng_below(rng, 6)};
    d->a = room_of((size_t)users * items, sizeof *d->a);
    d->matrix = room_of((size_t)users * items, sizeof *d->matrix);
    d->degrees = room_of(items, sizeof *d->degrees);
    double *of_users = room_of(users, sizeof *of_users);
    for (uint32_t u = 0; u + 1 < users; u++)
        for (uint32_t i = 0; i + 1 < items; i++) {
            if (weir_rng_double(rng) >= share) continue;
            d->a[u * items + i] = 0.1 + weir_rng_double(rng);
            of_users[u] += d->a[u * items + i];
            d->degrees[i] += d->a[u * items + i];
        }
    for (uint32_t u = 0; u < users; u++)
        for (uint32_t i = 0; i < items; i++)
            if (d->a[u * items + i] > 0)
                d->matrix[u * items + i] = d->a[u * items + i] / sqrt(of_users[u] * d->degrees[i]);
    free(of_users);
    dense_pairs(d);
}

static void dense_free(dense *d) {
    free(d->a);
    free(d->matrix);
    free(d->degrees);
    recommend_pairs_free(&d->pairs);
}

static size_t dense_cells(const dense *d) {
    return ((size_t)d->users + d->items) * d->width;
}

/* mean: of x and what each layer makes of it; sums: of items, all but the last. */
static void dense_propagate(const dense *d, uint32_t layers, const double *x, double *mean, double *sums) {
    const size_t cells = dense_cells(d), items_at = (size_t)d->users * d->width;
    double *in = room_of(cells, sizeof *in), *out = room_of(cells, sizeof *out);
    memcpy(in, x, cells * sizeof *in);
    memcpy(mean, x, cells * sizeof *mean);
    for (size_t i = 0; sums && i < (size_t)d->items * d->width; i++)
        sums[i] = 0;
    for (uint32_t k = 0; k < layers; k++) {
        memset(out, 0, cells * sizeof *out);
        for (uint32_t u = 0; u < d->users; u++)
            for (uint32_t i = 0; i < d->items; i++)
                for (uint32_t c = 0; d->a[u * d->items + i] > 0 && c < d->width; c++) {
                    const double weight = d->matrix[u * d->items + i];
                    out[u * d->width + c] += weight * in[items_at + i * d->width + c];
                    out[items_at + i * d->width + c] += weight * in[u * d->width + c];
                }
        for (size_t i = 0; sums && i < (size_t)d->items * d->width; i++)
            sums[i] += in[items_at + i];
        for (size_t i = 0; i < cells; i++)
            mean[i] += out[i];
        memcpy(in, out, cells * sizeof *in);
    }
    for (size_t i = 0; i < cells; i++)
        mean[i] /= layers + 1;
    free(in);
    free(out);
}

static float *random_rows(weir_rng *rng, size_t cells) {
    float *rows = room_of(cells, sizeof *rows);
    for (size_t i = 0; i < cells; i++)
        rows[i] = (float)weir_rng_normal(rng);
    return rows;
}

static double *doubles_of(const float *x, size_t count) {
    double *y = room_of(count, sizeof *y);
    for (size_t i = 0; i < count; i++)
        y[i] = (double)x[i];
    return y;
}

/* Frees the latter. */
static void assert_rows(const float *actual, double *expected, size_t count, const char *what) {
    for (size_t i = 0; i < count; i++)
        if (!(fabs((double)actual[i] - expected[i]) <= 1e-5 * (1 + fabs(expected[i]))))
            fail_msg("%s[%zu] is %.9g, and should be %.9g", what, i, (double)actual[i], expected[i]);
    free(expected);
}

static void check_propagation(weir_rng *rng, uint32_t users, uint32_t items, double share, recommend_team *team) {
    dense d;
    dense_make(&d, rng, users, items, share);
    const size_t cells = dense_cells(&d);
    const uint32_t layers = 1 + (uint32_t)weir_rng_below(rng, 4);
    float *x = random_rows(rng, cells), *out = random_rows(rng, cells), *one = random_rows(rng, cells);
    float *other = random_rows(rng, cells), *sums = random_rows(rng, (size_t)items * d.width);
    double *expected = room_of(cells, sizeof *expected), *wide = doubles_of(x, cells);
    double *expected_sums = room_of((size_t)items * d.width, sizeof *expected_sums);
    recommend_propagation p = {.pairs = &d.pairs,
                               .team = team,
                               .width = d.width,
                               .layers = layers,
                               .x = x,
                               .out = out,
                               .one = one,
                               .other = other,
                               .sums = sums};
    recommend_propagate(&p);
    dense_propagate(&d, layers, wide, expected, expected_sums);
    assert_rows(sums, expected_sums, (size_t)items * d.width, "sums");
    assert_rows(out, expected, cells, "mean");
    p.sums = NULL;
    memcpy(one, out, cells * sizeof *one);
    p.one = sums = realloc(sums, (cells + 1) * sizeof *sums);
    p.out = x; /* what it makes of the mean, without the sums */
    p.x = one;
    expected = room_of(cells, sizeof *expected);
    for (size_t i = 0; i < cells; i++)
        wide[i] = (double)one[i];
    recommend_propagate(&p);
    dense_propagate(&d, layers, wide, expected, NULL);
    assert_rows(x, expected, cells, "mean of the mean");
    free(x), free(out), free(one), free(other), free(sums), free(wide);
    dense_free(&d);
}

static void propagation_is_a_product_of_matrices(void **state) {
    (void)state;
    weir_rng rng = weir_rng_stream(weir_test_seed(), 1, 0);
    recommend_team *team;
    assert_ok(recommend_team_open(3, &team));
    for (uint64_t round = 0; round < weir_test_rounds(20); round++)
        check_propagation(&rng, 1 + (uint32_t)weir_rng_below(&rng, 40), 1 + (uint32_t)weir_rng_below(&rng, 40), 0.2,
                          team);
    check_propagation(&rng, 600, 530, 0.01, team); /* several parts of each side */
    recommend_team_close(team);
}

/* --- gradients ------------------------------------------------------------------------------------------------------ */

typedef struct slope {
    dense d;
    weir_recommend_opts opts;
    recommend_team *team;
    recommend_step *step;
    float *parameters;
    uint32_t *chosen, count;
} slope;

static void slope_open(slope *s, weir_rng *rng, weir_recommend_loss loss, bool uniform, uint32_t layers) {
    *s = (slope){.count = 0};
    dense_make(&s->d, rng, 7 + (uint32_t)weir_rng_below(rng, 4), 9 + (uint32_t)weir_rng_below(rng, 4), 0.4);
    s->d.width += 2; /* a cosine of one number has no slope */
    s->opts = (weir_recommend_opts){.width = s->d.width,
                                    .layers = layers,
                                    .batch = 300, /* more than a part */
                                    .negatives = uniform && weir_rng_below(rng, 2) ? 100 : 6,
                                    .loss = loss,
                                    .uniform = uniform,
                                    .rate = 0.01,
                                    .temperature = 0.5,
                                    .decay = 0.03,
                                    .seed = weir_rng_u64(rng)};
    assert_ok(recommend_team_open(2, &s->team));
    s->parameters = random_rows(rng, dense_cells(&s->d));
    assert_ok(recommend_step_open(&s->opts, &s->d.pairs, s->team, s->parameters, &s->step));
    s->chosen = room_of(300, sizeof *s->chosen);
    s->count = weir_rng_below(rng, 2) ? 300 : 1 + (uint32_t)weir_rng_below(rng, 40);
    for (uint32_t i = 0; i < s->count; i++) /* as often as it comes */
        s->chosen[i] = (uint32_t)weir_rng_below(rng, s->d.pairs.count);
}

static void slope_close(slope *s) {
    recommend_step_close(s->step);
    recommend_team_close(s->team);
    dense_free(&s->d);
    free(s->parameters);
    free(s->chosen);
}

static double slope_loss(slope *s, size_t cell, float moved) {
    const float kept = s->parameters[cell];
    const float *gradient;
    s->parameters[cell] = kept + moved;
    const double loss = recommend_step_gradient(s->step, s->chosen, s->count, 5, &gradient);
    s->parameters[cell] = kept;
    return loss;
}

/* A loss is rounded to some 10^-7 of its terms, which a difference over 0.02 makes 10^-5 of; what the four points leave
 * out is of the fourth power of 0.02. */
static void check_slope(slope *s) {
    const size_t cells = dense_cells(&s->d);
    const float h = 0x1p-6f, *gradient;
    double most = 0;
    (void)recommend_step_gradient(s->step, s->chosen, s->count, 5, &gradient);
    float *kept = room_of(cells, sizeof *kept);
    memcpy(kept, gradient, cells * sizeof *kept);
    for (size_t i = 0; i < cells; i++) {
        const double near = slope_loss(s, i, h) - slope_loss(s, i, -h);
        const double far = slope_loss(s, i, 2 * h) - slope_loss(s, i, -2 * h);
        const double expected = (8 * near - far) / (12 * (double)h);
        if (!(fabs((double)kept[i] - expected) <= 1e-4 + 2e-3 * fabs(expected)))
            fail_msg("the slope of cell %zu is %.9g, and should be %.9g", i, (double)kept[i], expected);
        most = fmax(most, fabs(expected));
    }
    assert_true(most > 0.01);
    free(kept);
}

static void check_slopes(weir_recommend_loss loss, bool uniform) {
    weir_rng rng = weir_rng_stream(weir_test_seed(), 2, 0);
    for (uint64_t round = 0; round < weir_test_rounds(6); round++) {
        slope s;
        slope_open(&s, &rng, loss, uniform, 2 + (uint32_t)(round % 2));
        check_slope(&s);
        slope_close(&s);
    }
}

static void l3_slopes_of_the_softmax_as_met(void **state) {
    (void)state;
    check_slopes(WEIR_RECOMMEND_SOFTMAX, false);
}

static void l3_slopes_of_the_softmax_drawn_evenly(void **state) {
    (void)state;
    check_slopes(WEIR_RECOMMEND_SOFTMAX, true);
}

static void l3_slopes_of_bpr(void **state) {
    (void)state;
    check_slopes(WEIR_RECOMMEND_BPR, false);
    check_slopes(WEIR_RECOMMEND_BPR, true);
}

/* The loss with all that anybody has met as what to compare with: nothing is drawn. */
static double dense_loss(const slope *s, const double *parameters) {
    const dense *d = &s->d;
    const uint32_t width = d->width;
    double *vectors = room_of(dense_cells(d), sizeof *vectors), loss = 0;
    dense_propagate(d, s->opts.layers, parameters, vectors, NULL);
    for (uint32_t row = 0; row < d->users + d->items; row++) {
        double square = 0;
        for (uint32_t c = 0; c < width; c++)
            square += vectors[row * width + c] * vectors[row * width + c];
        for (uint32_t c = 0; square > 0 && c < width; c++)
            vectors[row * width + c] /= sqrt(square);
    }
    for (uint32_t n = 0; n < s->count; n++) {
        uint32_t user = 0;
        while (d->pairs.user_offsets[user + 1] <= s->chosen[n])
            user++;
        double sum = 0, own = 0;
        for (uint32_t i = 0; i < d->items; i++) {
            double cosine = 0;
            for (uint32_t c = 0; c < width; c++)
                cosine += vectors[user * width + c] * vectors[(d->users + i) * width + c];
            if (i == d->pairs.user_items[s->chosen[n]]) own = cosine;
            if (d->degrees[i] > 0) sum += exp(cosine / s->opts.temperature);
        }
        loss += log(sum) - own / s->opts.temperature;
    }
    free(vectors);
    return loss / s->count;
}

static void l3_the_softmax_of_all_is_a_formula(void **state) {
    (void)state;
    weir_rng rng = weir_rng_stream(weir_test_seed(), 3, 0);
    for (uint64_t round = 0; round < weir_test_rounds(6); round++) {
        slope s;
        const float *gradient;
        slope_open(&s, &rng, WEIR_RECOMMEND_SOFTMAX, true, 1 + (uint32_t)(round % 3));
        recommend_step_close(s.step);
        s.opts.negatives = 100;
        assert_ok(recommend_step_open(&s.opts, &s.d.pairs, s.team, s.parameters, &s.step));
        const size_t cells = dense_cells(&s.d);
        double *wide = doubles_of(s.parameters, cells), *expected = room_of(cells, sizeof *expected);
        const double loss = recommend_step_gradient(s.step, s.chosen, s.count, 1, &gradient);
        assert_true(fabs(loss - dense_loss(&s, wide)) < 1e-5);
        for (size_t i = 0; i < cells; i++) {
            const double kept = wide[i], h = 1e-5;
            wide[i] = kept + h;
            expected[i] = dense_loss(&s, wide);
            wide[i] = kept - h;
            expected[i] = (expected[i] - dense_loss(&s, wide)) / (2 * h);
            wide[i] = kept;
        }
        assert_rows(gradient, expected, cells, "slope");
        free(wide);
        slope_close(&s);
    }
}

/* Who has met nothing stays at 0, whatever is drawn. */
static void the_unknown_stay_unknown(void **state) {
    (void)state;
    weir_rng rng = weir_rng_stream(weir_test_seed(), 4, 0);
    for (unsigned kind = 0; kind < 4; kind++) {
        slope s;
        const float *gradient;
        slope_open(&s, &rng, kind / 2 ? WEIR_RECOMMEND_BPR : WEIR_RECOMMEND_SOFTMAX, kind % 2, 2);
        const uint32_t width = s.d.width;
        float *user = s.parameters + (size_t)(s.d.users - 1) * width;
        float *item = s.parameters + (size_t)(s.d.users + s.d.items - 1) * width;
        for (uint32_t c = 0; c < width; c++)
            user[c] = item[c] = 0;
        for (unsigned i = 0; i < 20; i++) {
            (void)recommend_step_gradient(s.step, s.chosen, s.count, i, &gradient);
            recommend_step_move(s.step);
        }
        for (uint32_t c = 0; c < width; c++)
            assert_true(user[c] == 0 && item[c] == 0);
        for (size_t i = 0; i < dense_cells(&s.d); i++)
            assert_true(isfinite(s.parameters[i]));
        slope_close(&s);
    }
}

/* --- what is read --------------------------------------------------------------------------------------------------- */

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
    recommend_pairs p;
    assert_ok(recommend_pairs_read(o, before_us, &p));
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
    recommend_pairs_free(&p);
}

static void check_trends(const shop_world *w, const weir_recommend_opts *o, int64_t before_us, int64_t half_life_us) {
    const weir_snapshot_vertices *items = weir_snapshot_vertices_of(o->snapshot, SHOP_ITEM);
    float trends[READ_ITEMS];
    assert_ok(recommend_trends_read(o, before_us, half_life_us, trends));
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

/* --- planted taste -------------------------------------------------------------------------------------------------- */

/* Where two worlds differ, if they do: from then on. */
typedef struct plant {
    uint64_t seed;
    int64_t other_from_us; /* 0: nowhere */
} plant;

static const int64_t plant_end_us = SHOP_START_US + PLANT_HOURS * SHOP_HOUR;

/* Each user buys what is of its group, mostly, and looks at as much. One in eight comes in the last hours. */
static void plant_user(shop_world *w, uint64_t user, const plant *p) {
    const uint64_t group = user % GROUPS;
    const int64_t from_us = user % 8 == 7 ? plant_end_us - 5 * SHOP_HOUR / 2 : SHOP_START_US;
    for (unsigned i = 0; i < 2 * BOUGHT; i++) {
        const uint64_t own = shop_below(w, ITEMS / GROUPS) * GROUPS + group, any = shop_below(w, ITEMS);
        const uint64_t item = shop_below(w, 100) < TASTE ? own : any;
        const int64_t time_us = from_us + 1 + (int64_t)shop_below(w, (uint64_t)(plant_end_us - from_us - 1));
        if (p->other_from_us && time_us >= p->other_from_us) continue; /* those are others there */
        shop_edge(w, i % 2 ? SHOP_VIEWED : SHOP_BOUGHT, user, item, time_us);
    }
}

/* What the other world has instead: edges, deletions of what was before, and vertices that nobody knew. */
static void plant_others(shop_world *w, const plant *p) {
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

static weir_snapshot *plant_make(shop_world *w, const plant *p) {
    shop_open(w, shop_schema_text, p->seed);
    shop_put_all(w, USERS, ITEMS);
    for (uint64_t user = 0; user < USERS; user++)
        plant_user(w, user, p);
    if (p->other_from_us) plant_others(w, p);
    return shop_snapshot(w, plant_end_us);
}

static weir_recommend_opts plant_opts(const weir_snapshot *snapshot) {
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

static weir_err hear(void *context, const weir_recommend_epoch *epoch) {
    said *s = context;
    assert_true(s->count < EPOCHS && epoch->number == s->count + 1);
    s->epochs[s->count++] = *epoch;
    return WEIR_OK;
}

static void a_planted_taste_is_learnt(void **state) {
    (void)state;
    const plant p = {.seed = weir_test_seed()};
    shop_world w;
    weir_snapshot *snapshot = plant_make(&w, &p);
    for (unsigned kind = 0; kind < 3; kind++) {
        weir_recommend_opts o = plant_opts(snapshot);
        said heard = {.count = 0};
        weir_recommended *learnt;
        o.loss = kind == 2 ? WEIR_RECOMMEND_BPR : WEIR_RECOMMEND_SOFTMAX;
        o.uniform = kind == 1;
        o.on_epoch = hear;
        o.context = &heard;
        assert_ok(weir_recommend_learn(&o, &learnt));
        const weir_recommended_view v = weir_recommended_look(learnt);
        assert_true(heard.count == EPOCHS && heard.epochs[v.best_epoch - 1].best);
        assert_true(heard.epochs[EPOCHS - 1].loss < heard.epochs[0].loss);
        assert_true(v.test.users > 20 && v.validation.users > 20);
        assert_true(v.test.from_us == plant_end_us - 2 * SHOP_HOUR && v.test.to_us == plant_end_us);
        if (!(v.test.recall > v.test.trend_recall + 0.2))
            fail_msg("recall is %.3f by the model and %.3f by popularity", v.test.recall, v.test.trend_recall);
        assert_true(v.test.ndcg > v.test.trend_ndcg && v.test.low < v.test.recall && v.test.recall < v.test.high);
        weir_recommended_free(learnt);
    }
    weir_snapshot_close(snapshot);
    shop_close(&w);
}

/* --- figures -------------------------------------------------------------------------------------------------------- */

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
    const plant p = {.seed = weir_test_seed()};
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
    recommend_team *team;
    recommend_field field;
    weir_recommend_metrics metrics[2];
    weir_snapshot *snapshot = plant_make(&w, &p);
    const weir_recommend_opts o = plant_opts(snapshot);
    const weir_recommend_shape shape = {
        .rule = o.rule, .task = o.task, .width = o.width, .layers = 2, .cosine = true, .temperature = 0.15};
    const recommend_cell cells[2] = {{0, SHOP_HOUR, false}, {1, SHOP_HOUR, true}};
    float *parameters = room_of((USERS + ITEMS) * (size_t)o.width, sizeof *parameters);
    assert_ok(recommend_team_open(2, &team));
    assert_ok(recommend_field_of(&o, team, &field));
    assert_ok(recommend_judge(&(recommend_judging){.field = &field,
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
    recommend_team_close(team);
    free(parameters);
    weir_snapshot_close(snapshot);
    shop_close(&w);
}

/* --- a finished model ----------------------------------------------------------------------------------------------- */

static weir_recommend_model *finished(const weir_recommended *learnt, const weir_schema *schema) {
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

static void a_finished_model_is_judged_as_it_was(void **state) {
    (void)state;
    const plant p = {.seed = weir_test_seed()};
    shop_world w;
    weir_recommend_metrics m;
    weir_snapshot *snapshot = plant_make(&w, &p);
    for (unsigned bpr = 0; bpr < 2; bpr++) {
        weir_recommended *learnt;
        weir_recommend_opts o = plant_opts(snapshot);
        o.loss = bpr ? WEIR_RECOMMEND_BPR : WEIR_RECOMMEND_SOFTMAX;
        assert_ok(weir_recommend_learn(&o, &learnt));
        const weir_recommended_view v = weir_recommended_look(learnt);
        weir_recommend_model *model = finished(learnt, weir_snapshot_schema(snapshot));
        weir_recommend_opts judge = weir_recommend_defaults(snapshot, SHOP_TASK_BUY);
        judge.horizons = o.horizons;
        judge.threads = 3;
        assert_ok(weir_recommend_judge(&judge, model, &m));
        assert_true(m.users == v.test.users && m.items == v.test.items && m.unknown == v.test.unknown);
        assert_true(m.recall == v.test.recall && m.ndcg == v.test.ndcg && m.low == v.test.low);
        assert_true(m.trend_recall == v.test.trend_recall && m.trend_ndcg == v.test.trend_ndcg);
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

/* --- the same bits -------------------------------------------------------------------------------------------------- */

static void assert_same_tables(const weir_recommended *one, const weir_recommended *other) {
    const weir_recommended_view a = weir_recommended_look(one), b = weir_recommended_look(other);
    const size_t row = a.shape.width * sizeof(float);
    assert_true(a.tables.user_count == b.tables.user_count && a.tables.item_count == b.tables.item_count);
    assert_memory_equal(a.tables.user_ids, b.tables.user_ids, a.tables.user_count * sizeof *a.tables.user_ids);
    assert_memory_equal(a.tables.item_ids, b.tables.item_ids, a.tables.item_count * sizeof *a.tables.item_ids);
    assert_memory_equal(a.tables.user_own, b.tables.user_own, a.tables.user_count * row);
    assert_memory_equal(a.tables.item_own, b.tables.item_own, a.tables.item_count * row);
    assert_memory_equal(a.tables.item_sums, b.tables.item_sums, a.tables.item_count * row);
    assert_memory_equal(a.tables.items, b.tables.items, a.tables.item_count * row);
    assert_memory_equal(a.tables.trends, b.tables.trends, a.tables.item_count * sizeof(float));
    assert_true(a.best_epoch == b.best_epoch && a.trend_half_life_us == b.trend_half_life_us);
    assert_true(a.test.recall == b.test.recall && a.test.ndcg == b.test.ndcg);
    assert_true(a.shape.trend_weight == b.shape.trend_weight);
}

static void l2_any_number_of_threads_learns_the_same(void **state) {
    (void)state;
    static const uint32_t threads[] = {1, 2, 5};
    const plant p = {.seed = weir_test_seed()};
    shop_world w;
    weir_snapshot *snapshot = plant_make(&w, &p);
    for (unsigned bpr = 0; bpr < 2; bpr++) {
        weir_recommended *learnt[3];
        weir_recommend_opts o = plant_opts(snapshot);
        o.loss = bpr ? WEIR_RECOMMEND_BPR : WEIR_RECOMMEND_SOFTMAX;
        o.epochs = 3;
        for (unsigned i = 0; i < 3; i++) {
            o.threads = threads[i];
            assert_ok(weir_recommend_learn(&o, &learnt[i]));
        }
        assert_same_tables(learnt[0], learnt[1]);
        assert_same_tables(learnt[0], learnt[2]);
        for (unsigned i = 0; i < 3; i++)
            weir_recommended_free(learnt[i]);
    }
    weir_snapshot_close(snapshot);
    shop_close(&w);
}

/* Learns the world and the one that is another from a time on. */
static void learn_both(int64_t other_from_us, weir_recommend_loss loss, bool uniform, said heard[2],
                       weir_recommended *learnt[2]) {
    const uint64_t seed = weir_test_seed();
    for (unsigned i = 0; i < 2; i++) {
        const plant p = {.seed = seed, .other_from_us = i ? other_from_us : 0};
        shop_world w;
        weir_snapshot *snapshot = plant_make(&w, &p);
        weir_recommend_opts o = plant_opts(snapshot);
        o.loss = loss;
        o.uniform = uniform;
        o.on_epoch = hear;
        o.context = &heard[i];
        heard[i].count = 0;
        assert_ok(weir_recommend_learn(&o, &learnt[i]));
        weir_snapshot_close(snapshot); /* what was learnt is looked at no further than its figures */
        shop_close(&w);
    }
    for (unsigned i = 0; i < EPOCHS; i++)
        assert_memory_equal(&heard[0].epochs[i].loss, &heard[1].epochs[i].loss, sizeof heard[0].epochs[i].loss);
}

static void l1_nothing_is_learnt_from_the_validation(void **state) {
    (void)state;
    for (unsigned kind = 0; kind < 4; kind++) {
        said heard[2];
        weir_recommended *learnt[2];
        learn_both(plant_end_us - 4 * SHOP_HOUR, kind / 2 ? WEIR_RECOMMEND_BPR : WEIR_RECOMMEND_SOFTMAX, kind % 2,
                   heard, learnt);
        const weir_recommended_view a = weir_recommended_look(learnt[0]), b = weir_recommended_look(learnt[1]);
        assert_true(a.validation.users != b.validation.users || a.validation.recall != b.validation.recall);
        weir_recommended_free(learnt[0]);
        weir_recommended_free(learnt[1]);
    }
}

static void l1_nothing_is_chosen_by_the_test(void **state) {
    (void)state;
    for (unsigned kind = 0; kind < 2; kind++) {
        said heard[2];
        weir_recommended *learnt[2];
        learn_both(plant_end_us - 2 * SHOP_HOUR, WEIR_RECOMMEND_SOFTMAX, kind, heard, learnt);
        const weir_recommended_view a = weir_recommended_look(learnt[0]), b = weir_recommended_look(learnt[1]);
        for (unsigned i = 0; i < EPOCHS; i++) {
            const weir_recommend_epoch *x = &heard[0].epochs[i], *y = &heard[1].epochs[i];
            assert_true(x->recall == y->recall && x->ndcg == y->ndcg && x->best == y->best);
        }
        assert_true(a.best_epoch == b.best_epoch && a.trend_half_life_us == b.trend_half_life_us);
        assert_true(a.shape.trend_weight == b.shape.trend_weight);
        assert_true(a.validation.users == b.validation.users && a.validation.items == b.validation.items);
        assert_true(a.validation.recall == b.validation.recall && a.validation.ndcg == b.validation.ndcg);
        assert_true(a.validation.trend_recall == b.validation.trend_recall);
        assert_true(a.test.users != b.test.users || a.test.recall != b.test.recall);
        weir_recommended_free(learnt[0]);
        weir_recommended_free(learnt[1]);
    }
}

/* --- errors --------------------------------------------------------------------------------------------------------- */

/* A few users and items, and edges in an hour of their own: before all, in the validation or in the test. */
static weir_snapshot *small_make_of(shop_world *w, unsigned before, unsigned in_test, int64_t history_us) {
    shop_open(w, shop_schema_text, weir_test_seed());
    shop_put_all(w, 8, 12);
    for (unsigned i = 0; i < before; i++)
        shop_edge(w, SHOP_BOUGHT, i % 8, i / 8, SHOP_START_US + 1 + (int64_t)i * SHOP_SECOND);
    for (unsigned i = 0; i < in_test; i++)
        shop_edge(w, SHOP_BOUGHT, i % 8, 6 + i / 8, SHOP_START_US + 3 * SHOP_HOUR + (int64_t)i * SHOP_SECOND);
    return shop_snapshot_of(w, SHOP_START_US + 4 * SHOP_HOUR, history_us);
}

static weir_snapshot *small_make(shop_world *w, unsigned before, unsigned in_test) {
    return small_make_of(w, before, in_test, 0);
}

static weir_recommend_opts small_opts(const weir_snapshot *snapshot) {
    weir_recommend_opts o = weir_recommend_defaults(snapshot, SHOP_TASK_BUY);
    o.width = 4;
    o.epochs = 1;
    o.negatives = 8;
    o.batch = 16;
    o.threads = 1;
    return o;
}

static weir_err learn_once(const weir_recommend_opts *o) {
    weir_recommended *learnt;
    weir_err err = weir_recommend_learn(o, &learnt);
    assert_true(!learnt == (err != WEIR_OK));
    weir_recommended_free(learnt);
    return err;
}

static weir_err stop(void *context, const weir_recommend_epoch *epoch) {
    (void)context;
    return WEIR_ERR(WEIR_ECANCELLED, "after epoch %u", epoch->number);
}

static void too_little_is_said(void **state) {
    (void)state;
    shop_world w;
    weir_snapshot *snapshot = small_make(&w, 19, 8);
    weir_recommend_opts o = small_opts(snapshot);
    assert_err(learn_once(&o), WEIR_EDATA, "there are 19 pairs");
    weir_snapshot_close(snapshot);
    shop_close(&w);

    snapshot = small_make(&w, 40, 0);
    o = small_opts(snapshot);
    assert_err(learn_once(&o), WEIR_EDATA, "nobody met anything new in the last 1 horizons");
    weir_snapshot_close(snapshot);
    shop_close(&w);

    snapshot = small_make_of(&w, 40, 8, 3 * SHOP_HOUR / 2); /* which begins within the validation */
    o = small_opts(snapshot);
    assert_err(learn_once(&o), WEIR_EDATA, "shorter than two times 1 horizons");
    weir_snapshot_close(snapshot);
    shop_close(&w);

    snapshot = small_make(&w, 40, 8); /* nobody in the validation is no error */
    o = small_opts(snapshot);
    assert_ok(learn_once(&o));
    o.horizons = UINT32_MAX;
    assert_err(learn_once(&o), WEIR_EDATA, "shorter than two times");
    o.horizons = 1;
    o.on_epoch = stop;
    assert_err(learn_once(&o), WEIR_ECANCELLED, "after epoch 1");
    weir_snapshot_close(snapshot);
    shop_close(&w);
}

static void options_out_of_range_are_refused(void **state) {
    (void)state;
    shop_world w;
    weir_snapshot *snapshot = small_make(&w, 40, 8);
    const weir_recommend_opts good = small_opts(snapshot);
    weir_recommend_opts o = good;
    assert_ok(learn_once(&o));
#define REFUSED(member, value)                                             \
    do {                                                                   \
        o = good;                                                          \
        o.member = (value);                                                \
        assert_err(learn_once(&o), WEIR_EINVAL, "option of the training"); \
    } while (0)
    REFUSED(width, 0);
    REFUSED(width, WEIR_RECOMMEND_WIDTH_MAX + 1);
    REFUSED(layers, 0);
    REFUSED(layers, WEIR_RECOMMEND_LAYERS_MAX + 1);
    REFUSED(epochs, 0);
    REFUSED(epochs, UINT32_MAX);
    REFUSED(batch, 0);
    REFUSED(batch, (1u << 20) + 1);
    REFUSED(negatives, 0);
    REFUSED(negatives, (1u << 20) + 1);
    REFUSED(threads, 0);
    REFUSED(threads, WEIR_RECOMMEND_THREADS_MAX + 1);
    REFUSED(horizons, 0);
    REFUSED(rate, 0);
    REFUSED(rate, INFINITY);
    REFUSED(rate, NAN);
    REFUSED(decay, -1);
    REFUSED(decay, NAN);
    REFUSED(temperature, 1e-4);
    REFUSED(temperature, NAN);
    REFUSED(loss, (weir_recommend_loss)2);
    REFUSED(task, SHOP_TASK_BAD);
    REFUSED(task, 3);
    REFUSED(rule.half_life_us, -1);
    REFUSED(rule.relation_count, 0);
    REFUSED(rule.relation_count, WEIR_RECOMMEND_RELATIONS_MAX + 1);
    REFUSED(rule.relations[0].relation, SHOP_VIEWED);
    REFUSED(rule.relations[1].relation, SHOP_SOLD);
    REFUSED(rule.relations[1].relation, 3);
    REFUSED(rule.relations[1].weight, 0);
    REFUSED(rule.relations[1].weight, 1e-7);
    REFUSED(rule.relations[1].weight, INFINITY);
#undef REFUSED
    weir_snapshot_close(snapshot);
    shop_close(&w);
}

/* Writes a number of 8 bytes into an array of the snapshot, as somebody does who also corrects the sums of its files;
 * returns what it was. */
static int64_t spoil(const shop_world *w, const char *array, uint64_t index, int64_t value) {
    char path[8192];
    int64_t before;
    snprintf(path, sizeof path, "%s/relations/bought/%s.npy", w->snapshot, array);
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, 128 + 8 * (long)index, SEEK_SET), 0);
    assert_int_equal(fread(&before, sizeof before, 1, file), 1);
    assert_int_equal(fseek(file, 128 + 8 * (long)index, SEEK_SET), 0);
    assert_int_equal(fwrite(&value, sizeof value, 1, file), 1);
    assert_int_equal(fclose(file), 0);
    return before;
}

static void a_snapshot_is_not_believed(void **state) {
    (void)state;
    static const struct {
        const char *array;
        uint64_t index;
        int64_t value;
    } wrong[] = {
        {"out/neighbors", 0, 12},           {"out/neighbors", 0, -1},    {"out/neighbors", 7, (int64_t)1 << 40},
        {"out/times", 5, INT64_MAX},        {"out/indptr", 3, -5},       {"out/indptr", 3, (int64_t)1 << 40},
        {"in/indptr", 3, (int64_t)1 << 40}, {"in/indptr", 2, INT64_MIN},
    };
    shop_world w;
    weir_snapshot *snapshot = small_make(&w, 40, 8);
    weir_recommend_opts o = small_opts(snapshot);
    weir_recommended *learnt;
    assert_ok(weir_recommend_learn(&o, &learnt));
    weir_recommend_model *model = finished(learnt, weir_snapshot_schema(snapshot));
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        weir_recommend_metrics metrics;
        const int64_t kept = spoil(&w, wrong[i].array, wrong[i].index, wrong[i].value);
        assert_err(learn_once(&o), WEIR_ECORRUPT, NULL);
        assert_err(weir_recommend_judge(&o, model, &metrics), WEIR_ECORRUPT, NULL);
        assert_null(metrics.recalls);
        spoil(&w, wrong[i].array, wrong[i].index, kept);
    }
    assert_ok(learn_once(&o));
    weir_recommend_model_drop(model);
    weir_recommended_free(learnt);
    weir_snapshot_close(snapshot);
    shop_close(&w);
}

static weir_err learn_sweep(void *context) {
    weir_recommended *learnt;
    weir_err err = weir_recommend_learn(context, &learnt);
    weir_recommended_free(learnt);
    return err;
}

typedef struct judge_sweep {
    weir_recommend_opts opts;
    weir_recommend_model *model;
} judge_sweep;

static weir_err judge_once(void *context) {
    const judge_sweep *s = context;
    weir_recommend_metrics m;
    weir_err err = weir_recommend_judge(&s->opts, s->model, &m);
    weir_free(m.recalls);
    return err;
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    shop_world w;
    weir_recommended *learnt;
    weir_snapshot *snapshot = small_make(&w, 24, 8);
    judge_sweep s = {.opts = small_opts(snapshot)};
    s.opts.batch = 300; /* two parts, and two threads */
    s.opts.threads = 2;
    weir_test_every_allocation(learn_sweep, &s.opts);
    s.opts.loss = WEIR_RECOMMEND_BPR;
    s.opts.uniform = true;
    weir_test_every_allocation(learn_sweep, &s.opts);
    assert_ok(weir_recommend_learn(&s.opts, &learnt));
    s.model = finished(learnt, weir_snapshot_schema(snapshot));
    weir_test_every_allocation(judge_once, &s);
    weir_recommend_model_drop(s.model);
    weir_recommended_free(learnt);
    weir_snapshot_close(snapshot);
    shop_close(&w);
}

WEIR_TESTS(WEIR_CASE(propagation_is_a_product_of_matrices), WEIR_CASE(l3_slopes_of_the_softmax_as_met),
           WEIR_CASE(l3_slopes_of_the_softmax_drawn_evenly), WEIR_CASE(l3_slopes_of_bpr),
           WEIR_CASE(l3_the_softmax_of_all_is_a_formula), WEIR_CASE(the_unknown_stay_unknown),
           WEIR_CASE(pairs_and_trends_are_what_all_edges_say), WEIR_CASE(a_planted_taste_is_learnt),
           WEIR_CASE(figures_are_what_counting_says), WEIR_CASE(the_unknown_are_judged_by_trend),
           WEIR_CASE(a_finished_model_is_judged_as_it_was), WEIR_CASE(l2_any_number_of_threads_learns_the_same),
           WEIR_CASE(l1_nothing_is_learnt_from_the_validation), WEIR_CASE(l1_nothing_is_chosen_by_the_test),
           WEIR_CASE(too_little_is_said), WEIR_CASE(options_out_of_range_are_refused),
           WEIR_CASE(a_snapshot_is_not_believed), WEIR_CASE(every_allocation_may_fail))

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step_test.c - layers against a dense matrix in double, and gradients against finite differences: of the loss itself,
 * and of a formula that shares nothing with it.
 */
#include "recommend_dense.h"

/* --- propagation -------------------------------------------------------------------------------------------------- */

static void check_propagation(weir_rng *rng, uint32_t users, uint32_t items, double share, weir_recommend_team *team) {
    dense d;
    dense_make(&d, rng, users, items, share);
    const size_t cells = dense_cells(&d);
    const uint32_t layers = 1 + (uint32_t)weir_rng_below(rng, 4);
    float *x = random_rows(rng, cells), *out = random_rows(rng, cells), *one = random_rows(rng, cells);
    float *other = random_rows(rng, cells), *sums = random_rows(rng, (size_t)items * d.width);
    double *expected = room_of(cells, sizeof *expected), *wide = doubles_of(x, cells);
    double *expected_sums = room_of((size_t)items * d.width, sizeof *expected_sums);
    weir_recommend_propagation p = {.pairs = &d.pairs,
                                    .team = team,
                                    .width = d.width,
                                    .layers = layers,
                                    .x = x,
                                    .out = out,
                                    .one = one,
                                    .other = other,
                                    .sums = sums};
    weir_recommend_propagate(&p);
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
    weir_recommend_propagate(&p);
    dense_propagate(&d, layers, wide, expected, NULL);
    assert_rows(x, expected, cells, "mean of the mean");
    free(x), free(out), free(one), free(other), free(sums), free(wide);
    dense_free(&d);
}

static void propagation_is_a_product_of_matrices(void **state) {
    (void)state;
    weir_rng rng = weir_rng_stream(weir_test_seed(), 1, 0);
    weir_recommend_team *team;
    assert_ok(weir_recommend_team_open(3, &team));
    for (uint64_t round = 0; round < weir_test_rounds(20); round++)
        check_propagation(&rng, 1 + (uint32_t)weir_rng_below(&rng, 40), 1 + (uint32_t)weir_rng_below(&rng, 40), 0.2,
                          team);
    check_propagation(&rng, 600, 530, 0.01, team); /* several parts of each side */
    weir_recommend_team_close(team);
}

/* --- gradients ---------------------------------------------------------------------------------------------------- */

typedef struct slope {
    dense d;
    weir_recommend_opts opts;
    weir_recommend_team *team;
    weir_recommend_step *step;
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
    assert_ok(weir_recommend_team_open(2, &s->team));
    s->parameters = random_rows(rng, dense_cells(&s->d));
    assert_ok(weir_recommend_step_open(&s->opts, &s->d.pairs, s->team, s->parameters, &s->step));
    s->chosen = room_of(300, sizeof *s->chosen);
    s->count = weir_rng_below(rng, 2) ? 300 : 1 + (uint32_t)weir_rng_below(rng, 40);
    for (uint32_t i = 0; i < s->count; i++) /* as often as it comes */
        s->chosen[i] = (uint32_t)weir_rng_below(rng, s->d.pairs.count);
}

static void slope_close(slope *s) {
    weir_recommend_step_close(s->step);
    weir_recommend_team_close(s->team);
    dense_free(&s->d);
    free(s->parameters);
    free(s->chosen);
}

static double slope_loss(slope *s, size_t cell, float moved) {
    const float kept = s->parameters[cell];
    const float *gradient;
    s->parameters[cell] = kept + moved;
    const double loss = weir_recommend_step_gradient(s->step, s->chosen, s->count, 5, &gradient);
    s->parameters[cell] = kept;
    return loss;
}

/* The steepest. A loss is rounded to some 10^-7 of its terms, which a difference over 0.01 makes 2e-5 of; what the
 * four points leave out is of the fourth power of 0.01. */
static double check_slope(slope *s) {
    const size_t cells = dense_cells(&s->d);
    const float h = 0x1p-7f, *gradient;
    double most = 0;
    (void)weir_recommend_step_gradient(s->step, s->chosen, s->count, 5, &gradient);
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
    free(kept);
    return most;
}

static void check_slopes(weir_recommend_loss loss, bool uniform) {
    weir_rng rng = weir_rng_stream(weir_test_seed(), 2, 0);
    double most = 0;
    for (uint64_t round = 0; round < weir_test_rounds(6); round++) {
        slope s;
        slope_open(&s, &rng, loss, uniform, 2 + (uint32_t)(round % 2));
        most = fmax(most, check_slope(&s));
        slope_close(&s);
    }
    assert_true(most > 0.01); /* of one round the loss may be sure, and have no slope */
}

static void l3_slopes_of_the_softmax_as_met(void **state) {
    (void)state;
    check_slopes(WEIR_RECOMMEND_SOFTMAX, false);
}

static void l3_slopes_of_the_softmax_drawn_evenly(void **state) {
    (void)state;
    check_slopes(WEIR_RECOMMEND_SOFTMAX, true);
}

static void l3_slopes_of_the_softmax_of_products(void **state) {
    (void)state;
    check_slopes(WEIR_RECOMMEND_PRODUCTS, false);
    check_slopes(WEIR_RECOMMEND_PRODUCTS, true);
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
    const bool cosines = s->opts.loss == WEIR_RECOMMEND_SOFTMAX;
    const double temperature = cosines ? s->opts.temperature : 1;
    double *vectors = room_of(dense_cells(d), sizeof *vectors), loss = 0;
    dense_propagate(d, s->opts.layers, parameters, vectors, NULL);
    for (uint32_t row = 0; row < d->users + d->items; row++) {
        double square = 0;
        for (uint32_t c = 0; c < width; c++)
            square += vectors[row * width + c] * vectors[row * width + c];
        for (uint32_t c = 0; cosines && square > 0 && c < width; c++)
            vectors[row * width + c] /= sqrt(square);
    }
    for (uint32_t n = 0; n < s->count; n++) {
        uint32_t user = 0;
        while (d->pairs.user_offsets[user + 1] <= s->chosen[n])
            user++;
        double sum = 0, own = 0;
        for (uint32_t i = 0; i < d->items; i++) {
            double score = 0;
            for (uint32_t c = 0; c < width; c++)
                score += vectors[user * width + c] * vectors[(d->users + i) * width + c];
            if (i == d->pairs.user_items[s->chosen[n]]) own = score;
            if (d->degrees[i] > 0) sum += exp(score / temperature);
        }
        loss += log(sum) - own / temperature;
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
        slope_open(&s, &rng, round % 2 ? WEIR_RECOMMEND_PRODUCTS : WEIR_RECOMMEND_SOFTMAX, true,
                   1 + (uint32_t)(round % 3));
        weir_recommend_step_close(s.step);
        s.opts.negatives = 100;
        assert_ok(weir_recommend_step_open(&s.opts, &s.d.pairs, s.team, s.parameters, &s.step));
        const size_t cells = dense_cells(&s.d);
        double *wide = doubles_of(s.parameters, cells), *expected = room_of(cells, sizeof *expected);
        const double loss = weir_recommend_step_gradient(s.step, s.chosen, s.count, 1, &gradient);
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
    for (unsigned kind = 0; kind < 6; kind++) {
        slope s;
        const float *gradient;
        slope_open(&s, &rng, (weir_recommend_loss)(kind / 2), kind % 2, 2);
        const uint32_t width = s.d.width;
        float *user = s.parameters + (size_t)(s.d.users - 1) * width;
        float *item = s.parameters + (size_t)(s.d.users + s.d.items - 1) * width;
        for (uint32_t c = 0; c < width; c++)
            user[c] = item[c] = 0;
        for (unsigned i = 0; i < 20; i++) {
            (void)weir_recommend_step_gradient(s.step, s.chosen, s.count, i, &gradient);
            weir_recommend_step_move(s.step, 1);
        }
        for (uint32_t c = 0; c < width; c++)
            assert_true(user[c] == 0 && item[c] == 0);
        for (size_t i = 0; i < dense_cells(&s.d); i++)
            assert_true(isfinite(s.parameters[i]));
        slope_close(&s);
    }
}

/* The first step of Adam is as long as its rate, in every cell that has a slope. */
static void a_step_is_as_long_as_its_share_of_the_rate(void **state) {
    (void)state;
    static const double shares[] = {1, 0.25, 0};
    weir_rng rng = weir_rng_stream(weir_test_seed(), 5, 0);
    for (weir_recommend_loss loss = 0; loss <= WEIR_RECOMMEND_BPR; loss++)
        for (unsigned i = 0; i < 3; i++) {
            slope s;
            const float *gradient;
            slope_open(&s, &rng, loss, false, 2);
            for (; s.count < 40; s.count++) /* a pair may have no slope: what it is compared with may be met, too */
                s.chosen[s.count] = (uint32_t)weir_rng_below(&rng, s.d.pairs.count);
            s.opts.decay = 0;
            double most = 0;
            double *before = doubles_of(s.parameters, dense_cells(&s.d));
            (void)weir_recommend_step_gradient(s.step, s.chosen, s.count, 1, &gradient);
            weir_recommend_step_move(s.step, shares[i]);
            for (size_t c = 0; c < dense_cells(&s.d); c++)
                most = fmax(most, fabs((double)s.parameters[c] - before[c]));
            assert_true(fabs(most - shares[i] * s.opts.rate) < 1e-5);
            free(before);
            slope_close(&s);
        }
}

WEIR_TESTS(WEIR_CASE(propagation_is_a_product_of_matrices), WEIR_CASE(l3_slopes_of_the_softmax_as_met),
           WEIR_CASE(l3_slopes_of_the_softmax_drawn_evenly), WEIR_CASE(l3_slopes_of_the_softmax_of_products),
           WEIR_CASE(l3_slopes_of_bpr), WEIR_CASE(l3_the_softmax_of_all_is_a_formula),
           WEIR_CASE(the_unknown_stay_unknown), WEIR_CASE(a_step_is_as_long_as_its_share_of_the_rate))

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * distribution_test.c - P1: every subset is equally likely, by chi-square of single vertices and of pairs; weighted
 * draws by closed formulas. All through the sampler, as a trainer calls it.
 */
#include <weir/store/sample/sampler.h>

#include "weir_test.h"

#include <math.h>

#include "arrays_fixture.h"
#include "subsets.h"

#define BATCH 1024u

static void count_block(subset_counts *c, const weir_block_view *v, uint32_t n) {
    const weir_block_edges *edges = &v->edges[0];
    for (uint32_t t = 0; t < v->targets; t++) {
        uint32_t picks[SUBSETS_OF], k = edges->offsets[t + 1] - edges->offsets[t];
        for (uint32_t i = 0; i < k; i++)
            picks[i] = (uint32_t)edges->refs[edges->offsets[t] + i];
        assert_true(k == 0 || picks[k - 1] < n);
        subset_count(c, picks, k);
    }
}

/* Each trial is a target of another time, all later than every edge: the same window, another stream. */
static void run_trials(const weir_sample_step *step, uint32_t n, uint64_t trials, const float *weights, uint64_t seed,
                       subset_counts *c) {
    static weir_target targets[BATCH];
    arrays_fixture f;
    weir_sample_source *source;
    weir_sampler *sampler;
    weir_block *block;
    weir_sample_opts opts = {.steps = step, .step_count = 1, .targets_max = BATCH, .window = n, .seed = seed};
    memset(c, 0, sizeof *c);
    fixture_star(&f, n, weights);
    assert_ok(weir_sample_over_arrays(&f.arrays, &source));
    assert_ok(weir_sampler_open(&opts, source, &sampler));
    assert_ok(weir_block_open(sampler, &block));
    for (uint64_t t = 0; t < trials; t += BATCH) {
        for (uint32_t i = 0; i < BATCH; i++)
            targets[i] = (weir_target){.vertex = 0, .before_us = (int64_t)(n + 1 + t + i)};
        assert_ok(weir_sample(sampler, targets, BATCH, block));
        count_block(c, weir_block_look(block), n);
    }
    weir_block_close(block);
    weir_sampler_close(sampler);
    weir_sample_source_close(source);
    fixture_close(&f);
}

static void uniform(uint32_t n, uint32_t k) {
    static subset_counts c;
    weir_sample_step step = {.hop = 1, .fanout = k, .strategy = WEIR_SAMPLE_UNIFORM};
    run_trials(&step, n, weir_test_rounds(40 * BATCH), NULL, weir_test_seed(), &c);
    if (k == n) {
        for (uint32_t i = 0; i < n; i++)
            assert_true(c.single[i] == (double)c.trials);
        return;
    }
    double single = subset_single_score(&c, n, k);
    if (single > SUBSETS_SCORE_MAX) fail_msg("n %u, k %u: singles score %.1f", n, k, single);
    if (n < 4 || k < 2 || k > n - 2) return;
    double pair = subset_pair_score(&c, n, k);
    if (pair > SUBSETS_SCORE_MAX) fail_msg("n %u, k %u: pairs score %.1f", n, k, pair);
}

static void p1_uniform_singles_and_pairs_k_1_to_20(void **state) {
    (void)state;
    for (uint32_t k = 1; k <= 20; k++) {
        uniform(k, k);
        uniform(k + 1, k);
        uniform(k + 2, k);
        uniform(2 * k + 3, k);
        uniform(50, k);
    }
}

/* Around the change from a line that is searched to a bit a position, and at the ends of its words. */
static void p1_uniform_many_picks(void **state) {
    (void)state;
    static const uint32_t rows[][2] = {{40, 32}, {40, 33}, {64, 40}, {65, 40}, {128, 64}, {128, 127}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        uniform(rows[i][0], rows[i][1]);
}

/* The known mistake, t from [0, j - 1], must not pass: else the test above says nothing. */
static void the_test_sees_a_draw_that_is_off_by_one(void **state) {
    (void)state;
    static subset_counts c;
    weir_rng rng = weir_rng_stream(weir_test_seed(), 1, 1);
    memset(&c, 0, sizeof c);
    for (uint32_t trial = 0; trial < 10000; trial++) {
        bool taken[10] = {false};
        uint32_t picks[3], count = 0;
        for (uint32_t j = 7; j < 10; j++) {
            uint32_t t = (uint32_t)weir_rng_below(&rng, j);
            taken[taken[t] ? j : t] = true;
        }
        for (uint32_t i = 0; i < 10; i++) {
            if (taken[i]) picks[count++] = i;
        }
        subset_count(&c, picks, count);
    }
    assert_true(subset_single_score(&c, 10, 3) > 10);
}

/* --- weighted ----------------------------------------------------------------------------------------------------- */

static void weighted_singles(const subset_counts *c, const double *weights, uint32_t n) {
    double sum = 0, chi = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += weights[i];
    for (uint32_t i = 0; i < n; i++) {
        double expected = (double)c->trials * weights[i] / sum;
        chi += (c->single[i] - expected) * (c->single[i] - expected) / expected;
    }
    assert_true(subset_score(chi, n - 1) < SUBSETS_SCORE_MAX);
}

static void weighted_pairs(const subset_counts *c, const double *weights, uint32_t n) {
    double sum = 0, chi = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += weights[i];
    for (uint32_t a = 0; a < n; a++) {
        for (uint32_t b = a + 1; b < n; b++) {
            double both =
                weights[a] / sum * weights[b] / (sum - weights[a]) + weights[b] / sum * weights[a] / (sum - weights[b]);
            double expected = (double)c->trials * both;
            chi += (c->pair[a][b] - expected) * (c->pair[a][b] - expected) / expected;
        }
    }
    assert_true(subset_score(chi, n * (n - 1) / 2.0 - 1) < SUBSETS_SCORE_MAX);
}

static void weighted_by_a_feature(void **state) {
    (void)state;
    static subset_counts c;
    static const float given[6] = {1, 2, 0, 3, 4, 10}; /* position 0 is the newest, and given first */
    static const double weights[6] = {1, 2, 0, 3, 4, 10}, positive[5] = {1, 2, 3, 4, 10};
    weir_sample_step step = {.hop = 1, .fanout = 1, .strategy = WEIR_SAMPLE_WEIGHTED, .weight = 0};
    for (uint32_t k = 1; k <= 2; k++) {
        step.fanout = k;
        run_trials(&step, 6, weir_test_rounds(200 * BATCH), given, weir_test_seed(), &c);
        assert_true(c.single[2] == 0);
        /* without the one that is never picked */
        for (uint32_t i = 2; i < 5; i++)
            c.single[i] = c.single[i + 1];
        for (uint32_t a = 0; a < 5; a++) {
            for (uint32_t b = a + 1; b < 5; b++)
                c.pair[a][b] = c.pair[a < 2 ? a : a + 1][b < 2 ? b : b + 1];
        }
        if (k == 1) weighted_singles(&c, positive, 5);
        if (k == 2) weighted_pairs(&c, positive, 5);
    }
    step.fanout = 6; /* all that have a weight */
    run_trials(&step, 6, BATCH, given, 1, &c);
    for (uint32_t i = 0; i < 6; i++)
        assert_true(c.single[i] == (weights[i] > 0 ? (double)c.trials : 0));
}

static void weighted_by_age(void **state) {
    (void)state;
    static subset_counts c;
    double weights[8];
    weir_sample_step step = {
        .hop = 1, .fanout = 1, .strategy = WEIR_SAMPLE_WEIGHTED, .weight = WEIR_SCHEMA_NONE, .half_life_us = 2};
    for (uint32_t i = 0; i < 8; i++)
        weights[i] = exp2(-(double)i / 2);
    for (uint32_t k = 1; k <= 2; k++) {
        step.fanout = k;
        run_trials(&step, 8, weir_test_rounds(200 * BATCH), NULL, weir_test_seed(), &c);
        if (k == 1) weighted_singles(&c, weights, 8);
        if (k == 2) weighted_pairs(&c, weights, 8);
    }
}

WEIR_TESTS(WEIR_CASE(p1_uniform_singles_and_pairs_k_1_to_20), WEIR_CASE(p1_uniform_many_picks),
           WEIR_CASE(the_test_sees_a_draw_that_is_off_by_one), WEIR_CASE(weighted_by_a_feature),
           WEIR_CASE(weighted_by_age))

/* SPDX-License-Identifier: Apache-2.0 */
/* contributions_test.c - what columns contribute, against all sets of columns; and covers that are damaged. */
#include "trees_fixture.h"

#include <float.h>
#include <math.h>
#include <string.h>

#define COLUMNS 7u
#define SETS    (1u << COLUMNS)
#define ROWS    10u
#define TREES   12u
#define LEVELS  9u /* more than columns: some come twice on a path */
#define NODES   (TREES * (2u << LEVELS))
#define CHAIN   WEIR_TREES_DEPTH_MAX

typedef struct grove {
    weir_rng rng;
    weir_trees_node nodes[NODES];
    float covers[NODES];
    uint32_t begins[TREES + 1];
    weir_trees_view view;
} grove;

/* Splits of random columns, level after level. A side gets a share of the cover that is drawn, which may be small; some
 * covers are a little off, as sums of floats are. */
static void grove_grow(grove *g, uint32_t tree, uint32_t columns) {
    weir_trees_node *nodes = g->nodes + g->begins[tree];
    float *covers = g->covers + g->begins[tree];
    uint32_t count = 1, level_end = 1;
    covers[0] = 100 + (float)weir_rng_below(&g->rng, 100000);
    for (uint32_t at = 0, level = 0; at < count; at++) {
        if (at == level_end) {
            level_end = count;
            level++;
        }
        nodes[at] = (weir_trees_node){.value = (float)weir_rng_normal(&g->rng)};
        if (level == LEVELS || weir_rng_below(&g->rng, 5) == 0) continue;
        nodes[at] = (weir_trees_node){.left = count,
                                      .column = (uint32_t)weir_rng_below(&g->rng, columns),
                                      .value = (float)weir_rng_below(&g->rng, 8),
                                      .missing_right = weir_rng_below(&g->rng, 2)};
        const float share = weir_rng_below(&g->rng, 6) ? (float)(1 + weir_rng_below(&g->rng, 999)) / 1000 : 1e-5f;
        covers[count] = covers[at] * share;
        covers[count + 1] = covers[at] * (1 - share) * (weir_rng_below(&g->rng, 4) ? 1 : 1.0001f);
        count += 2;
    }
    g->begins[tree + 1] = g->begins[tree] + count;
    assert_true(g->begins[tree + 1] <= NODES);
}

static grove *grove_make(uint64_t stream, uint32_t columns) {
    grove *g = calloc(1, sizeof *g);
    assert_non_null(g);
    g->rng = weir_rng_stream(weir_test_seed(), stream, 0);
    for (uint32_t tree = 0; tree < TREES; tree++)
        grove_grow(g, tree, columns);
    g->view = (weir_trees_view){g->nodes, g->begins, TREES, columns, 0.25f, g->covers};
    return g;
}

static void grove_row(weir_rng *rng, float *row, uint32_t columns) {
    for (uint32_t c = 0; c < columns; c++)
        row[c] = weir_rng_below(rng, 4) ? (float)weir_rng_below(rng, 8) : NAN;
}

/* --- by all sets -------------------------------------------------------------------------------------------------- */

/* What a tree says where only the columns of the set are known, in words of the header. */
static double said_by(const grove *g, uint32_t tree, uint32_t at, const float *row, uint32_t set) {
    const weir_trees_node *n = &g->nodes[g->begins[tree] + at];
    const float *covers = g->covers + g->begins[tree];
    if (n->left == 0) return (double)n->value;
    if (set & 1u << n->column) {
        const bool left = isnan(row[n->column]) ? !n->missing_right : row[n->column] < n->value;
        return said_by(g, tree, left ? n->left : n->left + 1, row, set);
    }
    const double a = (double)covers[n->left], b = (double)covers[n->left + 1];
    return (a * said_by(g, tree, n->left, row, set) + b * said_by(g, tree, n->left + 1, row, set)) / (a + b);
}

static double factorial(uint32_t n) {
    return n < 2 ? 1 : n * factorial(n - 1);
}

/* Shapley's own formula, over all sets without the column. */
static double naive_contribution(const double said[SETS], uint32_t column) {
    double sum = 0;
    for (uint32_t set = 0; set < SETS; set++) {
        if (set & 1u << column) continue;
        const uint32_t known = (uint32_t)__builtin_popcount(set);
        sum += factorial(known) * factorial(COLUMNS - known - 1) / factorial(COLUMNS) *
               (said[set | 1u << column] - said[set]);
    }
    return sum;
}

static void w4_a_contribution_is_the_mean_over_all_orders(void **state) {
    (void)state;
    grove *g = grove_make(1, COLUMNS);
    weir_trees *trees;
    double contributions[COLUMNS];
    static double said[SETS];
    float row[COLUMNS];
    assert_ok(weir_trees_open(&g->view, &trees));
    for (uint32_t i = 0; i < ROWS; i++) {
        grove_row(&g->rng, row, COLUMNS);
        for (uint32_t set = 0; set < SETS; set++) {
            said[set] = (double)g->view.base;
            for (uint32_t tree = 0; tree < TREES; tree++)
                said[set] += said_by(g, tree, 0, row, set);
        }
        weir_trees_contribute(trees, row, contributions);
        assert_true(fabs(weir_trees_expected(trees) - said[0]) < 1e-9);
        for (uint32_t c = 0; c < COLUMNS; c++) {
            const double naive = naive_contribution(said, c);
            if (fabs(contributions[c] - naive) > 1e-9)
                fail_msg("row %u, column %u: %.12g, not %.12g", i, c, contributions[c], naive);
        }
    }
    weir_trees_close(trees);
    free(g);
}

/* --- sums --------------------------------------------------------------------------------------------------------- */

static void adds_up(const weir_trees *trees, const float *row, double within) {
    const uint32_t columns = weir_trees_look(trees).columns;
    double *contributions = malloc(columns * sizeof *contributions), sum = weir_trees_expected(trees);
    float margin;
    assert_non_null(contributions);
    weir_trees_contribute(trees, row, contributions);
    weir_trees_walk(trees, row, 1, &margin);
    for (uint32_t c = 0; c < columns; c++)
        sum += contributions[c];
    if (!(fabs(sum - (double)margin) <= within)) fail_msg("%.9g and not %.9g", sum, (double)margin);
    free(contributions);
}

static void w4_contributions_add_up_to_the_margin(void **state) {
    (void)state;
    const uint64_t rounds = weir_test_rounds(40);
    for (uint64_t round = 0; round < rounds; round++) {
        const uint32_t columns = 1 + (uint32_t)round % 40;
        grove *g = grove_make(2 + round, columns);
        weir_trees *trees;
        float row[64];
        assert_ok(weir_trees_open(&g->view, &trees));
        for (uint32_t i = 0; i < ROWS; i++) {
            grove_row(&g->rng, row, columns);
            adds_up(trees, row, 1e-5); /* 12 leaves of about 1, added as floats */
        }
        weir_trees_close(trees);
        free(g);
    }
}

/* Of all: each learning's share of the contributions, and of what is expected. */
static void w3_a_mean_has_the_covers_of_all(void **state) {
    (void)state;
    grove *groves[2] = {grove_make(101, COLUMNS), grove_make(102, COLUMNS)};
    weir_trees *some[2], *mean;
    double apart[2][COLUMNS], together[COLUMNS];
    float row[COLUMNS];
    for (uint32_t n = 0; n < 2; n++)
        assert_ok(weir_trees_open(&groves[n]->view, &some[n]));
    assert_ok(weir_trees_mean(some, 2, &mean));
    assert_true(fabs(weir_trees_expected(mean) - (weir_trees_expected(some[0]) + weir_trees_expected(some[1])) / 2) <
                1e-6);
    for (uint32_t i = 0; i < ROWS; i++) {
        grove_row(&groves[0]->rng, row, COLUMNS);
        weir_trees_contribute(mean, row, together);
        for (uint32_t n = 0; n < 2; n++)
            weir_trees_contribute(some[n], row, apart[n]);
        for (uint32_t c = 0; c < COLUMNS; c++)
            assert_true(fabs(together[c] - (apart[0][c] + apart[1][c]) / 2) < 1e-6);
        adds_up(mean, row, 1e-5);
    }
    weir_trees_close(mean);
    some[1] = forest_without_covers(some[1]);
    assert_ok(weir_trees_mean(some, 2, &mean));
    assert_null(weir_trees_look(mean).covers);
    weir_trees_close(mean);
    for (uint32_t n = 0; n < 2; n++) {
        weir_trees_close(some[n]);
        free(groves[n]);
    }
}

static void a_leaf_alone_contributes_nothing(void **state) {
    (void)state;
    const weir_trees_node leaf = {0, 0, 0.5f, false};
    const uint32_t begins[] = {0, 1};
    const float cover = 0, row[2] = {1, NAN};
    const weir_trees_view view = {&leaf, begins, 1, 2, 0.25f, &cover};
    weir_trees *trees;
    double contributions[2] = {7, 7};
    assert_ok(weir_trees_open(&view, &trees)); /* learnt from nothing */
    weir_trees_contribute(trees, row, contributions);
    assert_true(contributions[0] == 0 && contributions[1] == 0 && weir_trees_expected(trees) == 0.75);
    weir_trees_close(trees);
}

/* --- what is deep, and what is damaged ---------------------------------------------------------------------------- */

/* A chain of splits, each of a column of its own, with a leaf to the left of each. */
typedef struct chain {
    weir_trees_node nodes[2 * (CHAIN + 1) + 1];
    float covers[2 * (CHAIN + 1) + 1];
    uint32_t begins[2];
    weir_trees_view view;
} chain;

static void chain_make(chain *c, uint32_t splits, float share) {
    *c = (chain){.begins = {0, 2 * splits + 1}};
    c->covers[0] = 1e30f;
    for (uint32_t i = 0; i < splits; i++) {
        c->nodes[2 * i] = (weir_trees_node){2 * i + 1, i, 0.5f, false};
        c->nodes[2 * i + 1].value = (float)i;
        c->covers[2 * i + 1] = c->covers[2 * i] * (1 - share);
        c->covers[2 * i + 2] = c->covers[2 * i] * share;
        /* The right child stands behind the left one, and is the next split. */
    }
    c->nodes[2 * splits].value = 1000;
    c->view = (weir_trees_view){c->nodes, c->begins, 1, CHAIN + 1, 0, c->covers};
}

static void w4_the_deepest_trees_add_up(void **state) {
    (void)state;
    static chain c;
    static const float shares[] = {0.999999f, 0.9f, 0.5f, 0.03f};
    weir_rng rng = weir_rng_stream(weir_test_seed(), 103, 0);
    for (size_t s = 0; s < sizeof shares / sizeof shares[0]; s++) {
        weir_trees *trees;
        float row[CHAIN + 1];
        chain_make(&c, CHAIN, shares[s]);
        assert_ok(weir_trees_open(&c.view, &trees));
        for (int i = 0; i < 200; i++) {
            for (uint32_t n = 0; n <= CHAIN; n++)
                row[n] = i == 0 ? 1 : (float)weir_rng_below(&rng, 8) / 2; /* first along all of it */
            adds_up(trees, row, 1e-5);
        }
        weir_trees_close(trees);
    }
}

static void w5_each_rule_of_covers_has_a_sentence(void **state) {
    (void)state;
    static chain c;
    weir_trees *trees;
#define WRONG(change, code, words)                             \
    chain_make(&c, 3, 0.5f);                                   \
    change;                                                    \
    assert_err(weir_trees_open(&c.view, &trees), code, words); \
    assert_null(trees)
    WRONG(c.covers[2] = 0, WEIR_EDATA, "node 2 of tree 0: its cover is not a finite number above 0");
    WRONG(c.covers[1] = -1, WEIR_EDATA, "node 1 of tree 0: its cover is not");
    WRONG(c.covers[5] = NAN, WEIR_EDATA, "its cover is not");
    WRONG(c.covers[6] = INFINITY, WEIR_EDATA, "its cover is not");
    WRONG(c.covers[0] = NAN, WEIR_EDATA, "node 0 of tree 0: its cover is not");
    WRONG(c.covers[0] = -1, WEIR_EDATA, "its cover is not");
    WRONG((c.nodes[2].left = 4, c.nodes[4].left = 5), WEIR_EDATA, "node 3 of tree 0: no split leads to it");
    WRONG((c.nodes[0].left = 1, c.nodes[1] = c.nodes[2]), WEIR_EDATA, "leads to a node that another split leads to");
    WRONG(chain_make(&c, CHAIN + 1, 0.5f), WEIR_ELIMIT, "at most 24 are allowed");
#undef WRONG
}

/* As far apart as floats are, in one column: shares are multiplied to less than a double holds. */
static void w5_the_smallest_shares_add_up(void **state) {
    (void)state;
    static chain c;
    weir_trees *trees;
    float row[CHAIN + 1];
    chain_make(&c, CHAIN, 0.5f);
    for (uint32_t i = 0; i < CHAIN; i++) {
        c.covers[2 * i + 1] = FLT_MAX;
        c.covers[2 * i + 2] = FLT_TRUE_MIN;
        c.nodes[2 * i].column = i % 7;
    }
    assert_ok(weir_trees_open(&c.view, &trees));
    for (int i = 0; i < 100; i++) {
        for (uint32_t n = 0; n <= CHAIN; n++)
            row[n] = (float)((i >> n % 7) & 1);
        adds_up(trees, row, 1e-5);
    }
    weir_trees_close(trees);
}

/* Any float as one of the covers: refused, or what is said is finite, and adds up. */
static void w5_covers_that_are_damaged(void **state) {
    (void)state;
    grove *g = grove_make(104, COLUMNS);
    const uint64_t rounds = weir_test_rounds(1000);
    uint64_t refused = 0;
    for (uint64_t i = 0; i < rounds; i++) {
        const uint32_t at = (uint32_t)weir_rng_below(&g->rng, g->begins[TREES]);
        const uint32_t word = weir_rng_u32(&g->rng);
        const float good = g->covers[at];
        weir_trees *trees;
        float row[COLUMNS];
        memcpy(&g->covers[at], &word, sizeof word);
        weir_err err = weir_trees_open(&g->view, &trees);
        refused += err != WEIR_OK;
        if (err) assert_err(err, WEIR_EDATA, "cover");
        grove_row(&g->rng, row, COLUMNS);
        if (!err) adds_up(trees, row, 1e-5);
        weir_trees_close(trees);
        g->covers[at] = good;
    }
    assert_true(refused > rounds / 4 && refused < rounds);
    free(g);
}

WEIR_TESTS(WEIR_CASE(w4_a_contribution_is_the_mean_over_all_orders), WEIR_CASE(w4_contributions_add_up_to_the_margin),
           WEIR_CASE(w3_a_mean_has_the_covers_of_all), WEIR_CASE(a_leaf_alone_contributes_nothing),
           WEIR_CASE(w4_the_deepest_trees_add_up), WEIR_CASE(w5_each_rule_of_covers_has_a_sentence),
           WEIR_CASE(w5_the_smallest_shares_add_up), WEIR_CASE(w5_covers_that_are_damaged))

/* SPDX-License-Identifier: Apache-2.0 */
/* trees_test.c - random trees, walked as they are drawn; and trees that are damaged in one place. */
#include "weir_test.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <weir/inference/trees/trees.h>
#include <weir/store/base/rng.h>

#define TREES   40u
#define COLUMNS 7u
#define ROWS    50u
#define LEVELS  6u
#define NODES   (TREES * (2u << LEVELS))

typedef struct forest {
    weir_rng rng;
    weir_trees_node nodes[NODES];
    uint32_t begins[TREES + 1];
    weir_trees_view view;
} forest;

/* Splits of random columns, level after level; whether one goes on is drawn, too. Thresholds are of the numbers that
 * rows have, so that some are equal. */
static void forest_grow(forest *f, uint32_t tree) {
    weir_trees_node *nodes = f->nodes + f->begins[tree];
    uint32_t count = 1, level_end = 1;
    for (uint32_t at = 0, level = 0; at < count; at++) {
        if (at == level_end) {
            level_end = count;
            level++;
        }
        nodes[at] = (weir_trees_node){.value = (float)weir_rng_normal(&f->rng)};
        if (level == LEVELS || weir_rng_below(&f->rng, 4) == 0) continue;
        nodes[at] = (weir_trees_node){.left = count,
                                      .column = (uint32_t)weir_rng_below(&f->rng, COLUMNS),
                                      .value = (float)weir_rng_below(&f->rng, 8),
                                      .missing_right = weir_rng_below(&f->rng, 2)};
        count += 2;
    }
    f->begins[tree + 1] = f->begins[tree] + count;
    assert_true(f->begins[tree + 1] <= NODES);
}

static forest *forest_make(uint64_t seed) {
    forest *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->rng = weir_rng_stream(seed, 0, 0);
    for (uint32_t tree = 0; tree < TREES; tree++)
        forest_grow(f, tree);
    f->view = (weir_trees_view){f->nodes, f->begins, TREES, COLUMNS, 0.25f, NULL};
    return f;
}

static void draw_row(weir_rng *rng, float row[COLUMNS]) {
    for (uint32_t c = 0; c < COLUMNS; c++)
        row[c] = weir_rng_below(rng, 4) ? (float)weir_rng_below(rng, 8) : NAN;
}

/* The leaf below a node, in words of the header. */
static float leaf_below(const weir_trees_node *root, uint32_t at, const float *row) {
    const weir_trees_node *n = &root[at];
    if (n->left == 0) return n->value;
    if (isnan(row[n->column])) return leaf_below(root, n->missing_right ? n->left + 1 : n->left, row);
    return leaf_below(root, row[n->column] < n->value ? n->left : n->left + 1, row);
}

/* The integration with XGBoost itself is in boost_test.c: x3_exported_trees_are_the_library. */
static void w2_a_margin_is_the_sum_of_leaves_in_order(void **state) {
    (void)state;
    forest *f = forest_make(weir_test_seed());
    weir_trees *trees;
    float rows[ROWS][COLUMNS], margins[ROWS], alone;
    for (uint32_t i = 0; i < ROWS; i++)
        draw_row(&f->rng, rows[i]);
    assert_ok(weir_trees_open(&f->view, &trees));
    weir_trees_walk(trees, rows[0], ROWS, margins);
    for (uint32_t i = 0; i < ROWS; i++) {
        float sum = f->view.base;
        for (uint32_t t = 0; t < TREES; t++)
            sum += leaf_below(f->nodes + f->begins[t], 0, rows[i]);
        weir_trees_walk(trees, rows[i], 1, &alone);
        assert_true(margins[i] == sum && alone == sum);
        assert_true(fabs((double)sum) <= weir_trees_bound(trees));
    }
    weir_trees_close(trees);
    free(f);
}

/* Against the mean in doubles of what each gives alone. */
static void w3_a_mean_is_the_mean_of_margins(void **state) {
    (void)state;
    enum { SOME = 3 };
    forest *forests[SOME];
    weir_trees *some[SOME], *mean;
    float rows[ROWS][COLUMNS], alone[SOME][ROWS], margins[ROWS];
    for (uint32_t n = 0; n < SOME; n++) {
        forests[n] = forest_make(weir_test_seed() + n);
        forests[n]->view.base = (float)n;
        forests[n]->view.trees = TREES - n;
        assert_ok(weir_trees_open(&forests[n]->view, &some[n]));
    }
    for (uint32_t i = 0; i < ROWS; i++)
        draw_row(&forests[0]->rng, rows[i]);
    for (uint32_t count = 1; count <= SOME; count++) {
        assert_ok(weir_trees_mean(some, count, &mean));
        weir_trees_walk(mean, rows[0], ROWS, margins);
        for (uint32_t n = 0; n < count; n++)
            weir_trees_walk(some[n], rows[0], ROWS, alone[n]);
        for (uint32_t i = 0; i < ROWS; i++) {
            double sum = 0;
            for (uint32_t n = 0; n < count; n++)
                sum += (double)alone[n][i];
            assert_true(fabs((double)margins[i] - sum / count) < 1e-4); /* 117 leaves of about 1 */
            assert_true(count > 1 || margins[i] == alone[0][i]);
        }
        weir_trees_close(mean);
    }
    for (uint32_t n = 0; n < SOME; n++) {
        weir_trees_close(some[n]);
        free(forests[n]);
    }
}

/* One field of one node is any number; what is still taken gives finite margins, of which each walk ends. */
static void w1_what_is_damaged_is_refused_or_walked_to_an_end(void **state) {
    (void)state;
    forest *f = forest_make(weir_test_seed());
    uint64_t rounds = weir_test_rounds(3000), refused = 0;
    for (uint64_t i = 0; i < rounds; i++) {
        const uint32_t at = (uint32_t)weir_rng_below(&f->rng, f->begins[TREES]);
        const weir_trees_node good = f->nodes[at];
        const uint32_t word = weir_rng_below(&f->rng, 2) ? (uint32_t)weir_rng_below(&f->rng, 2 * NODES)
                                                         : (uint32_t)weir_rng_below(&f->rng, UINT32_MAX);
        weir_trees *trees;
        float row[COLUMNS], margin;
        switch (weir_rng_below(&f->rng, 4)) {
        case 0:
            f->nodes[at].left = word;
            break;
        case 1:
            f->nodes[at].column = word;
            break;
        case 2:
            f->nodes[at].missing_right = !good.missing_right;
            break;
        default:
            memcpy(&f->nodes[at].value, &word, sizeof word);
        }
        weir_err err = weir_trees_open(&f->view, &trees);
        refused += err != WEIR_OK;
        if (err) assert_err(err, WEIR_EDATA, "node ");
        for (uint32_t r = 0; !err && r < ROWS; r++) {
            draw_row(&f->rng, row);
            weir_trees_walk(trees, row, 1, &margin);
            assert_true(isfinite(margin) || isinf(weir_trees_bound(trees)));
        }
        weir_trees_close(trees);
        f->nodes[at] = good;
    }
    assert_true(refused > rounds / 10 && refused < rounds);
    free(f);
}

static void w1_each_rule_has_a_sentence(void **state) {
    (void)state;
    /* A root, a leaf to its left, a split to its right, and its two leaves. */
    const weir_trees_node good[] = {
        {1, 0, 0.5f, false}, {0, 0, -1, false}, {3, 1, 2, true}, {0, 0, 3, false}, {0, 0, 4, false}};
    weir_trees_node nodes[5];
    uint32_t begins[] = {0, 5, 5};
    weir_trees_view view = {nodes, begins, 1, 2, 0, NULL};
    weir_trees *trees;
    memcpy(nodes, good, sizeof good);
    assert_ok(weir_trees_open(&view, &trees));
    weir_trees_close(trees);
#define WRONG(change, words)                                       \
    memcpy(nodes, good, sizeof good);                              \
    change;                                                        \
    assert_err(weir_trees_open(&view, &trees), WEIR_EDATA, words); \
    assert_null(trees)
    WRONG(nodes[2].left = 2, "node 2 of tree 0: its children are not behind it");
    WRONG(nodes[2].left = 1, "its children are not behind it");
    WRONG(nodes[2].left = 4, "its children are not behind it");
    WRONG(nodes[2].left = UINT32_MAX, "its children are not behind it");
    WRONG(nodes[2].column = 2, "it splits by column 2 of 2");
    WRONG(nodes[3].column = 1, "it is a leaf");
    WRONG(nodes[3].missing_right = true, "it is a leaf");
    WRONG(nodes[4].value = INFINITY, "node 4 of tree 0: its value is not a finite number");
    WRONG(nodes[0].value = NAN, "node 0 of tree 0: its value is not a finite number");
    WRONG(view.trees = 2, "tree 1 has no nodes");
    WRONG(view.trees = 0, "there are no trees");
    WRONG((view.trees = 1, view.base = NAN), "there are no trees");
    WRONG((view.base = 0, begins[0] = 1), "there are no trees");
#undef WRONG
    begins[0] = 0;
    begins[1] = WEIR_TREES_NODES_MAX + 1;
    view.trees = 1;
    assert_err(weir_trees_open(&view, &trees), WEIR_ELIMIT, "nodes are too many");
    view.trees = WEIR_TREES_MAX + 1;
    assert_err(weir_trees_open(&view, &trees), WEIR_ELIMIT, "are too many");
}

static void leaves_that_are_too_large_have_no_bound(void **state) {
    (void)state;
    const weir_trees_node nodes[] = {{0, 0, FLT_MAX / 3, false}, {0, 0, -FLT_MAX / 3, false}};
    const uint32_t begins[] = {0, 1, 2};
    const weir_trees_view view = {nodes, begins, 2, 1, 0, NULL}, one = {nodes, begins, 1, 1, 0, NULL};
    weir_trees *trees;
    assert_ok(weir_trees_open(&view, &trees));
    assert_true(isinf(weir_trees_bound(trees)));
    weir_trees_close(trees);
    assert_ok(weir_trees_open(&one, &trees));
    assert_true(weir_trees_bound(trees) == (double)(FLT_MAX / 3));
    weir_trees_close(trees);
}

WEIR_TESTS(WEIR_CASE(w2_a_margin_is_the_sum_of_leaves_in_order), WEIR_CASE(w3_a_mean_is_the_mean_of_margins),
           WEIR_CASE(w1_what_is_damaged_is_refused_or_walked_to_an_end), WEIR_CASE(w1_each_rule_has_a_sentence),
           WEIR_CASE(leaves_that_are_too_large_have_no_bound))

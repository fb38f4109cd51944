/* SPDX-License-Identifier: Apache-2.0 */
/*
 * contributions.c - what each column of a row adds to its margin: Shapley values by covers, in polynomial time.
 *
 * Of a tree and a set of columns that are known, a row's value is found by going down: by the row where a split's
 * column is known, both ways elsewhere, each by its share of the cover. A column's contribution is what knowing it adds
 * to that, averaged over all orders in which columns become known. That is the game of TreeSHAP's algorithm 2 (Lundberg
 * et al., "From local explanations to global understanding with explainable AI for trees", 2020), which counts the sets
 * of a path's columns by their size. Here the average over orders is taken as the integral that it is (Owen,
 * "Multilinear extensions of games", 1972): let each column be known with the chance t, by itself; then
 *
 *   a leaf is reached by the product, over the columns of its path, of   share + t (goes - share)
 *   a column contributes the integral, over t from 0 to 1, of the sum over the leaves behind its splits of
 *                                                 what the leaf adds · the others' product · (goes - share)
 *
 * share: of the covers, over all splits by the column on the path; goes: 1 where the row takes their sides, else 0. The
 * integrand is a polynomial of a lower degree than the tree is deep, so that a Gauss-Legendre rule of half as many
 * points is exact. At a point each factor is above 0 and at most 1. Products are made on the way down, and leaves are
 * summed on the way up, each node once; where a column was met before, its factor there is divided out, and what its
 * split before gets of the leaves behind is taken back.
 */
#include <math.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>

#include "trees_private.h"

#define TREES_SHARE_MIN 1e-200 /* of a tree's cover that comes to a node: far inside of what a double holds */

/* --- the rule ----------------------------------------------------------------------------------------------------- */

/* Legendre's polynomial of degree n, and its slope. */
static double trees_legendre(uint32_t n, double x, double *slope) {
    double before = 1, value = x;
    for (uint32_t k = 2; k <= n; k++) {
        const double next = ((2 * k - 1) * x * value - (k - 1) * before) / k;
        before = value;
        value = next;
    }
    *slope = n * (x * value - before) / (x * x - 1);
    return value;
}

/* Exact for polynomials of a degree below 2 count, from 0 to 1. */
static void trees_make_rule(uint32_t count, weir_trees_rule *rule) {
    rule->count = count;
    for (uint32_t i = 0; i < count; i++) {
        double x = cos(M_PI * (i + 0.75) / (count + 0.5)), slope;
        for (int step = 0; step < 8; step++) { /* Newton's, from near: the last ones change nothing */
            const double value = trees_legendre(count, x, &slope);
            x -= value / slope;
        }
        trees_legendre(count, x, &slope);
        rule->at[i] = (1 + x) / 2;
        rule->unknown[i] = (1 - x) / 2;
        rule->weights[i] = 1 / ((1 - x * x) * slope * slope);
    }
}

/* --- what is believed of covers ----------------------------------------------------------------------------------- */

/* What is known of a node before its turn comes. */
typedef struct trees_reach {
    double share;   /* of the tree's cover */
    uint32_t level; /* the root's is 1; 0: no split leads there yet */
} trees_reach;

static double trees_share(const float *covers, uint32_t left, bool right) {
    const double a = (double)covers[left], b = (double)covers[left + 1];
    return (right ? b : a) / (a + b);
}

/* A root may have been learnt from nothing. */
static weir_err trees_check_cover(float cover, uint32_t at) {
    if (isfinite(cover) && (cover > 0 || (cover == 0 && at == 0))) return WEIR_OK;
    return WEIR_ERR(WEIR_EDATA, "its cover is not a finite number above 0");
}

/* A node that has its share gives its children theirs. Two ways to one node would make of few nodes very many leaves.
 */
static weir_err trees_weigh_node(const weir_trees_node *node, const float *covers, uint32_t at, trees_reach *reaches) {
    const trees_reach *reach = &reaches[at];
    if (reach->level == 0) return WEIR_ERR(WEIR_EDATA, "no split leads to it");
    if (reach->share < TREES_SHARE_MIN) return WEIR_ERR(WEIR_EDATA, "its cover is too small for its tree");
    if (node->left == 0) return WEIR_OK;
    if (reach->level > WEIR_TREES_DEPTH_MAX)
        return WEIR_ERR(WEIR_ELIMIT, "it is the %uth split from its root; at most %u are allowed",
                        WEIR_TREES_DEPTH_MAX + 1, WEIR_TREES_DEPTH_MAX);
    for (uint32_t side = 0; side < 2; side++) {
        trees_reach *child = &reaches[node->left + side];
        if (child->level) return WEIR_ERR(WEIR_EDATA, "it leads to a node that another split leads to");
        *child = (trees_reach){reach->share * trees_share(covers, node->left, side), reach->level + 1};
    }
    return WEIR_OK;
}

/* reaches: room for one a node of the tree. */
static weir_err trees_weigh_tree(const weir_trees_view *v, uint32_t tree, trees_reach *reaches, uint32_t *depth,
                                 double *expected) {
    const uint32_t begin = v->begins[tree], count = v->begins[tree + 1] - begin;
    weir_err err = WEIR_OK;
    memset(reaches, 0, count * sizeof *reaches);
    reaches[0] = (trees_reach){1, 1};
    for (uint32_t at = 0; !err && at < count; at++)
        err = weir_err_prefix(trees_check_cover(v->covers[begin + at], at), "node %u of tree %u", at, tree);
    for (uint32_t at = 0; !err && at < count; at++) {
        const weir_trees_node *node = &v->nodes[begin + at];
        err = weir_err_prefix(trees_weigh_node(node, v->covers + begin, at, reaches), "node %u of tree %u", at, tree);
        if (node->left == 0) *expected += reaches[at].share * (double)node->value;
        if (reaches[at].level > *depth + 1) *depth = reaches[at].level - 1;
    }
    return err;
}

weir_err weir_trees_weigh(weir_trees *trees) {
    const weir_trees_view *v = &trees->view;
    uint32_t most = 0, depth = 0;
    weir_err err = WEIR_OK;
    for (uint32_t t = 0; t < v->trees; t++)
        if (v->begins[t + 1] - v->begins[t] > most) most = v->begins[t + 1] - v->begins[t];
    trees_reach *reaches = weir_calloc(most, sizeof *reaches);
    if (!reaches) return WEIR_NOMEM("for the trees of a model");
    trees->expected = (double)v->base;
    for (uint32_t t = 0; !err && t < v->trees; t++)
        err = trees_weigh_tree(v, t, reaches, &depth, &trees->expected);
    weir_free(reaches);
    if (!err) trees_make_rule(depth > 1 ? (depth + 1) / 2 : 1, &trees->rule);
    return err;
}

double weir_trees_expected(const weir_trees *trees) {
    WEIR_ASSERT(trees->covers);
    return trees->expected;
}

/* --- the way down and up ------------------------------------------------------------------------------------------ */

/* A split on the way to a node, and the side that was taken. The first one is none: the root. */
typedef struct trees_edge {
    double share, goes;                    /* with those of the column's splits before */
    double reached[WEIR_TREES_POINTS_MAX]; /* the product to the node, at each point */
    uint32_t column;
} trees_edge;

typedef struct trees_telling {
    const float *row;
    const weir_trees_rule *rule;
    const weir_trees_node *nodes; /* of the tree at hand, as its covers */
    const float *covers;
    double *contributions;
    trees_edge edges[WEIR_TREES_DEPTH_MAX + 1];
} trees_telling;

/* A split whose turn it is, at each point. */
typedef struct trees_split {
    const trees_edge *before;              /* by the same column, the last one on the way; NULL: none */
    double without[WEIR_TREES_POINTS_MAX]; /* 1, divided by the factor of that one */
    double reached[WEIR_TREES_POINTS_MAX]; /* the product to here without it, weighed by the rule */
    uint32_t column, level;
} trees_split;

static double trees_factor(const weir_trees_rule *rule, const trees_edge *edge, uint32_t point) {
    return edge->goes * rule->at[point] + edge->share * rule->unknown[point];
}

static void trees_come(const trees_telling *t, uint32_t level, uint32_t column, trees_split *split) {
    const weir_trees_rule *rule = t->rule;
    const double *reached = t->edges[level].reached;
    split->level = level;
    split->column = column;
    while (level && t->edges[level].column != column)
        level--;
    split->before = level ? &t->edges[level] : NULL;
    for (uint32_t i = 0; i < rule->count; i++) {
        split->without[i] = level ? 1 / trees_factor(rule, split->before, i) : 1;
        split->reached[i] = rule->weights[i] * reached[i] * split->without[i];
    }
}

static void trees_tell(trees_telling *t, uint32_t at, uint32_t level, double *behind);

/* What the leaves on one side of a split give to its column. behind: at each point, what they add to what comes to it.
 */
static double trees_take(trees_telling *t, const trees_split *split, uint32_t to, double share, double goes,
                         double *restrict behind) {
    const weir_trees_rule *rule = t->rule;
    const trees_edge *before = split->before;
    const double *restrict from = t->edges[split->level].reached;
    trees_edge *edge = &t->edges[split->level + 1];
    const weir_trees_node *node = &t->nodes[to];
    const uint32_t count = rule->count;
    double factors[WEIR_TREES_POINTS_MAX], given = 0, back = 0;
    edge->column = split->column;
    edge->share = before ? before->share * share : share;
    edge->goes = before ? before->goes * goes : goes;
    for (uint32_t i = 0; i < count; i++) {
        factors[i] = trees_factor(rule, edge, i) * split->without[i];
        edge->reached[i] = from[i] * factors[i];
        behind[i] = (double)node->value;
    }
    if (node->left) trees_tell(t, to, split->level + 1, behind);
    for (uint32_t i = 0; i < count; i++) {
        given += split->reached[i] * behind[i];
        behind[i] *= factors[i];
    }
    for (uint32_t i = 0; before && i < count; i++)
        back += split->reached[i] * behind[i];
    return given * (edge->goes - edge->share) - (before ? back * (before->goes - before->share) : 0);
}

/* Of a split: behind is as above. At most as deep as WEIR_TREES_DEPTH_MAX, which was checked. */
static void trees_tell(trees_telling *t, uint32_t at, uint32_t level, double *behind) {
    const weir_trees_node *node = &t->nodes[at];
    const float value = t->row[node->column];
    const bool right = isnan(value) ? node->missing_right : !(value < node->value);
    double other[WEIR_TREES_POINTS_MAX];
    trees_split split;
    trees_come(t, level, node->column, &split);
    const double given =
        trees_take(t, &split, node->left + right, trees_share(t->covers, node->left, right), 1, behind);
    t->contributions[node->column] +=
        given + trees_take(t, &split, node->left + !right, trees_share(t->covers, node->left, !right), 0, other);
    for (uint32_t i = 0; i < t->rule->count; i++)
        behind[i] += other[i];
}

void weir_trees_contribute(const weir_trees *trees, const float *row, double *contributions) {
    const weir_trees_view *v = &trees->view;
    trees_telling t = {.row = row, .rule = &trees->rule, .contributions = contributions};
    double all[WEIR_TREES_POINTS_MAX];
    WEIR_ASSERT(trees->covers);
    for (uint32_t i = 0; i < WEIR_TREES_POINTS_MAX; i++)
        t.edges[0].reached[i] = 1;
    memset(contributions, 0, v->columns * sizeof *contributions);
    for (uint32_t tree = 0; tree < v->trees; tree++) {
        t.nodes = v->nodes + v->begins[tree];
        t.covers = v->covers + v->begins[tree];
        if (t.nodes->left) trees_tell(&t, 0, 0, all);
    }
}

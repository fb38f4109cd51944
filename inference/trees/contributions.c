/* SPDX-License-Identifier: Apache-2.0 */
/*
 * contributions.c - what each column of a row adds to its margin: Shapley values by covers, in polynomial time.
 *
 * Of a tree and a set of columns that are known, a row's value is found by going down: by the row where a split's
 * column is known, both ways elsewhere, each by its share of the cover. A column's contribution is what knowing it adds
 * to that, averaged over all orders in which columns become known. That is the game of TreeSHAP's algorithm 2 (Lundberg
 * et al., "From local explanations to global understanding with explainable AI for trees", 2020), which counts the sets
 * of a path's columns by their size. Here the average over orders is taken as the integral that it is (Owen,
 * "Multilinear extensions of games", 1972): let each column c be known with a chance t_c, by itself. Then
 *
 *   the tree's value is expected, and a column contributes the slope of that by t_c, where all chances are the same t,
 *   integrated over t from 0 to 1
 *
 * By t the slope is a polynomial of a lower degree than the tree is deep, so that a Gauss-Legendre rule of half as many
 * points is exact. At a point, a split sends a row to the other side than the row's own with the chance
 *
 *   (1 - t) (1 - own)                               own: the share of the row's own side
 *   (1 - t) before (1 - own) / (t + (1 - t) before) where the column has had splits before, and their shares of the
 *                                                   row's own sides are together `before`: who came so far is more
 *                                                   likely to know
 *   1 - own                                         where it went another way at one of those: it is not known
 *
 * On the way down these are multiplied, on the way up leaves are weighed by them; a split adds to its column what its
 * two sides differ by, as often as it is reached, times the slope of its chance. Each node costs as much as there are
 * points.
 */
#include <math.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>

#include "trees_private.h"

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
    double share; /* of the row's own side, with those of the column's splits before */
    uint32_t column;
    bool own;                              /* the side of the row, here and at those */
    double reached[WEIR_TREES_POINTS_MAX]; /* at each point: the chance that the node is reached, weighed by the rule */
} trees_edge;

typedef struct trees_telling {
    const float *row;
    const weir_trees_rule *rule;
    const weir_trees_node *nodes; /* of the tree at hand, as its covers */
    const float *covers;
    double *contributions;
    trees_edge edges[WEIR_TREES_DEPTH_MAX + 1];
} trees_telling;

/* A split whose turn it is: at each point, the chance of the other side, and how steeply it falls with the chance that
 * the column is known. */
typedef struct trees_split {
    double others[WEIR_TREES_POINTS_MAX], slopes[WEIR_TREES_POINTS_MAX];
} trees_split;

/* other: the share of the cover that goes there. before: the edge of the column's split before; NULL: none. */
static void trees_come(const weir_trees_rule *rule, const trees_edge *before, double other, trees_split *split) {
    for (uint32_t i = 0; i < rule->count; i++) {
        split->others[i] = before ? other : rule->unknown[i] * other;
        split->slopes[i] = before ? 0 : other;
        if (!before || !before->own) continue;
        const double came = rule->at[i] + rule->unknown[i] * before->share;
        split->others[i] = rule->unknown[i] * before->share * other / came;
        split->slopes[i] = before->share * other / (came * came);
    }
}

static void trees_tell(trees_telling *t, uint32_t at, uint32_t level, double *below);

/* From a split to one of its sides. others: the chances of the side that is not the row's own. below: at each point,
 * the value that is expected of a row that comes there. */
static void trees_go(trees_telling *t, uint32_t to, uint32_t level, const double *others, bool own, double *below) {
    const uint32_t count = t->rule->count;
    const double *reached = t->edges[level].reached;
    double *there = t->edges[level + 1].reached;
    if (t->nodes[to].left == 0) {
        for (uint32_t i = 0; i < count; i++)
            below[i] = (double)t->nodes[to].value;
        return;
    }
    for (uint32_t i = 0; i < count; i++)
        there[i] = reached[i] * (own ? 1 - others[i] : others[i]);
    trees_tell(t, to, level + 1, below);
}

/* Of a split; below is as above. At most as deep as WEIR_TREES_DEPTH_MAX, which was checked. */
static void trees_tell(trees_telling *t, uint32_t at, uint32_t level, double *below) {
    const weir_trees_node *node = &t->nodes[at];
    const float value = t->row[node->column];
    const bool right = isnan(value) ? node->missing_right : !(value < node->value);
    const double other = trees_share(t->covers, node->left, !right);
    trees_edge *edge = &t->edges[level + 1];
    uint32_t met = level;
    double there[WEIR_TREES_POINTS_MAX], sum = 0;
    trees_split split;
    while (met && t->edges[met].column != node->column)
        met--;
    const trees_edge *before = met ? &t->edges[met] : NULL;
    trees_come(t->rule, before, other, &split);
    edge->column = node->column;
    edge->share = (before ? before->share : 1) * (1 - other);
    edge->own = !before || before->own;
    trees_go(t, node->left + right, level, split.others, true, below);
    edge->own = false;
    trees_go(t, node->left + !right, level, split.others, false, there);
    for (uint32_t i = 0; i < t->rule->count; i++) {
        const double apart = below[i] - there[i];
        sum += t->edges[level].reached[i] * split.slopes[i] * apart;
        below[i] -= split.others[i] * apart;
    }
    t->contributions[node->column] += sum;
}

void weir_trees_contribute(const weir_trees *trees, const float *row, double *contributions) {
    const weir_trees_view *v = &trees->view;
    trees_telling t = {.row = row, .rule = &trees->rule, .contributions = contributions};
    double all[WEIR_TREES_POINTS_MAX];
    WEIR_ASSERT(trees->covers);
    memcpy(t.edges[0].reached, t.rule->weights, sizeof t.rule->weights);
    memset(contributions, 0, v->columns * sizeof *contributions);
    for (uint32_t tree = 0; tree < v->trees; tree++) {
        t.nodes = v->nodes + v->begins[tree];
        t.covers = v->covers + v->begins[tree];
        if (t.nodes->left) trees_tell(&t, 0, 0, all);
    }
}

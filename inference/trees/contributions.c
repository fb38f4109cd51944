/* SPDX-License-Identifier: Apache-2.0 */
/*
 * contributions.c - what each column of a row adds to its margin: Shapley values by covers, in polynomial time.
 *
 * Of a tree and a set of columns that are known, a row's value is found by going down: by the row where a split's column
 * is known, both ways elsewhere, each by its share of the cover. A column's contribution is what knowing it adds to
 * that, averaged over all orders in which columns become known. Going through 2^columns sets is not needed (Lundberg et
 * al., "From local explanations to global understanding with explainable AI for trees", 2020, algorithm 2): a leaf
 * depends on the columns of its own path alone, and sets of them count by their size alone. With a known column a leaf
 * is reached or not, with an unknown one by the shares of its splits on the path. So the path to a leaf is kept as
 *
 *   columns along which the row goes       the polynomial of (share + x) over them: the factor of x^k is what sets of
 *                                          k known ones leave to the shares of the others
 *   columns by which it goes another way   the product of their shares: known, any of them keeps the row from the leaf
 *
 * A split multiplies by a factor; where its column was met before, that one is divided out first. At the leaf one column
 * after the other is divided out, and the sets of the others are weighed.
 */
#include <math.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>

#include "trees_private.h"

#define TREES_SHARE_MIN 1e-200 /* of a tree's cover that comes to a node: far inside of what a double holds */

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

/* A node that has its share gives its children theirs. Two ways to one node would make of few nodes very many leaves. */
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
static weir_err trees_weigh_tree(const weir_trees_view *v, uint32_t tree, trees_reach *reaches, double *expected) {
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
    }
    return err;
}

weir_err weir_trees_weigh(weir_trees *trees) {
    const weir_trees_view *v = &trees->view;
    uint32_t most = 0;
    weir_err err = WEIR_OK;
    for (uint32_t t = 0; t < v->trees; t++)
        if (v->begins[t + 1] - v->begins[t] > most) most = v->begins[t + 1] - v->begins[t];
    trees_reach *reaches = weir_calloc(most, sizeof *reaches);
    if (!reaches) return WEIR_NOMEM("for the trees of a model");
    trees->expected = (double)v->base;
    for (uint32_t t = 0; !err && t < v->trees; t++)
        err = trees_weigh_tree(v, t, reaches, &trees->expected);
    weir_free(reaches);
    return err;
}

double weir_trees_expected(const weir_trees *trees) {
    WEIR_ASSERT(trees->covers);
    return trees->expected;
}

/* --- paths -------------------------------------------------------------------------------------------------------- */

/* Columns that were met between a root and a node, each once. */
typedef struct trees_path {
    uint32_t count, along;                 /* columns; and of them those along which the row goes */
    double others;                         /* the product of the shares of the rest */
    double ways[WEIR_TREES_DEPTH_MAX + 1]; /* the polynomial of those: along + 1 factors */
    double shares[WEIR_TREES_DEPTH_MAX];
    uint32_t columns[WEIR_TREES_DEPTH_MAX];
    bool goes[WEIR_TREES_DEPTH_MAX]; /* whether the row goes along */
} trees_path;

typedef struct trees_telling {
    const float *row;
    const weir_trees_node *nodes; /* of the tree at hand, as its covers */
    const float *covers;
    double *contributions;
    /* [n][k]: of n + 1 columns, in which part of all orders one stands behind k certain ones and before the others. */
    double weights[WEIR_TREES_DEPTH_MAX][WEIR_TREES_DEPTH_MAX];
    trees_path paths[WEIR_TREES_DEPTH_MAX + 1];
} trees_telling;

/* k! (n - k)! / (n + 1)! */
static void trees_weigh_orders(trees_telling *t) {
    for (uint32_t n = 0; n < WEIR_TREES_DEPTH_MAX; n++) {
        t->weights[n][0] = 1 / (double)(n + 1);
        for (uint32_t k = 1; k <= n; k++)
            t->weights[n][k] = t->weights[n][k - 1] * k / (n - k + 1);
    }
}

static void trees_path_copy(const trees_path *from, trees_path *to) {
    to->count = from->count;
    to->along = from->along;
    to->others = from->others;
    memcpy(to->ways, from->ways, (from->along + 1) * sizeof *to->ways);
    memcpy(to->shares, from->shares, from->count * sizeof *to->shares);
    memcpy(to->columns, from->columns, from->count * sizeof *to->columns);
    memcpy(to->goes, from->goes, from->count * sizeof *to->goes);
}

/* From the top down each factor of the polynomial is one of the wanted one, less a share of the next: what is lost by
 * rounding only shrinks. The last column takes the place of the one that goes. */
static void trees_path_drop(trees_path *p, uint32_t at) {
    double above = 0;
    for (uint32_t k = p->along; p->goes[at] && k > 0; k--) {
        const double way = p->ways[k] - p->shares[at] * above;
        p->ways[k] = above;
        above = way;
    }
    if (p->goes[at]) {
        p->ways[0] = above;
        p->along--;
    } else {
        p->others /= p->shares[at];
    }
    p->count--;
    p->shares[at] = p->shares[p->count];
    p->columns[at] = p->columns[p->count];
    p->goes[at] = p->goes[p->count];
}

static void trees_path_add(trees_path *p, uint32_t column, double share, bool goes) {
    for (uint32_t at = 0; at < p->count; at++) {
        if (p->columns[at] != column) continue;
        share *= p->shares[at];
        goes = goes && p->goes[at];
        trees_path_drop(p, at);
        break;
    }
    WEIR_ASSERT(p->count < WEIR_TREES_DEPTH_MAX);
    p->shares[p->count] = share;
    p->columns[p->count] = column;
    p->goes[p->count++] = goes;
    if (!goes) {
        p->others *= share;
        return;
    }
    p->ways[++p->along] = 0;
    for (uint32_t k = p->along; k > 0; k--)
        p->ways[k] = share * p->ways[k] + p->ways[k - 1];
    p->ways[0] *= share;
}

/* --- leaves ------------------------------------------------------------------------------------------------------- */

/* Sets of the other columns of the path, weighed, where one of those along which the row goes is known or is not. */
static double trees_path_without(const trees_path *p, double share, const double *weights) {
    double way = 0, sum = 0;
    for (uint32_t k = p->along; k > 0; k--) {
        way = p->ways[k] - share * way;
        sum += way * weights[k - 1];
    }
    return sum;
}

static void trees_add_leaf(trees_telling *t, const trees_path *p, double value) {
    if (p->count == 0) return;
    const double *weights = t->weights[p->count - 1];
    double against = 0;
    value *= p->others;
    for (uint32_t k = 0; k <= p->along && p->along < p->count; k++)
        against += p->ways[k] * weights[k];
    for (uint32_t i = 0; i < p->count; i++)
        t->contributions[p->columns[i]] +=
            value * (p->goes[i] ? (1 - p->shares[i]) * trees_path_without(p, p->shares[i], weights) : -against);
}

/* At most as deep as WEIR_TREES_DEPTH_MAX, which was checked: one path a level. */
static void trees_tell(trees_telling *t, uint32_t at, trees_path *path) {
    const weir_trees_node *node = &t->nodes[at];
    if (node->left == 0) {
        trees_add_leaf(t, path, (double)node->value);
        return;
    }
    const float value = t->row[node->column];
    const bool right = isnan(value) ? node->missing_right : !(value < node->value);
    for (uint32_t side = 0; side < 2; side++) {
        trees_path_copy(path, path + 1);
        trees_path_add(path + 1, node->column, trees_share(t->covers, node->left, side), side == right);
        trees_tell(t, node->left + side, path + 1);
    }
}

void weir_trees_contribute(const weir_trees *trees, const float *row, double *contributions) {
    const weir_trees_view *v = &trees->view;
    trees_telling t = {.row = row, .contributions = contributions};
    WEIR_ASSERT(trees->covers);
    trees_weigh_orders(&t);
    t.paths[0].others = t.paths[0].ways[0] = 1;
    memset(contributions, 0, v->columns * sizeof *contributions);
    for (uint32_t tree = 0; tree < v->trees; tree++) {
        t.nodes = v->nodes + v->begins[tree];
        t.covers = v->covers + v->begins[tree];
        trees_tell(&t, 0, t.paths);
    }
}

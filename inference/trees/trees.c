/* SPDX-License-Identifier: Apache-2.0 */
/* trees.c - boosted trees: checked once, then walked. */
#include <float.h>
#include <math.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>

#include "trees_private.h"

#define TREES_NO_MEMORY "for the trees of a model"

/* --- what is believed of them ------------------------------------------------------------------------------------- */

static weir_err trees_check_begins(const weir_trees_view *from) {
    if (from->trees > WEIR_TREES_MAX || from->columns > WEIR_TREES_COLUMNS_MAX)
        return WEIR_ERR(WEIR_ELIMIT, "%u trees of %u columns are too many: at most %u of %u", from->trees,
                        from->columns, WEIR_TREES_MAX, WEIR_TREES_COLUMNS_MAX);
    if (from->trees == 0 || from->begins[0] != 0 || !isfinite(from->base))
        return WEIR_ERR(WEIR_EDATA, "there are no trees, or they do not begin at the first node, or from a finite sum");
    for (uint32_t t = 0; t < from->trees; t++)
        if (from->begins[t] >= from->begins[t + 1])
            return WEIR_ERR(WEIR_EDATA, "tree %u has no nodes, or begins behind the next one", t);
    if (from->begins[from->trees] > WEIR_TREES_NODES_MAX)
        return WEIR_ERR(WEIR_ELIMIT, "%u nodes are too many for trees: at most %u", from->begins[from->trees],
                        WEIR_TREES_NODES_MAX);
    return WEIR_OK;
}

/* TREES-W1: a child behind its parent is what lets no walk come back to where it was. */
static weir_err trees_check_node(const weir_trees_node *node, uint32_t at, uint32_t count, uint32_t columns) {
    if (!isfinite(node->value)) return WEIR_ERR(WEIR_EDATA, "its value is not a finite number");
    if (node->left == 0) {
        if (node->column == 0 && !node->missing_right) return WEIR_OK;
        return WEIR_ERR(WEIR_EDATA, "it is a leaf, and has a column or a side for missing values");
    }
    if (node->left <= at || node->left >= count - 1)
        return WEIR_ERR(WEIR_EDATA, "its children are not behind it in its tree of %u nodes", count);
    if (node->column >= columns) return WEIR_ERR(WEIR_EDATA, "it splits by column %u of %u", node->column, columns);
    return WEIR_OK;
}

static weir_err trees_check(const weir_trees_view *from) {
    weir_err err = trees_check_begins(from);
    for (uint32_t t = 0; !err && t < from->trees; t++) {
        const uint32_t begin = from->begins[t], count = from->begins[t + 1] - begin;
        for (uint32_t at = 0; !err && at < count; at++)
            err = weir_err_prefix(trees_check_node(&from->nodes[begin + at], at, count, from->columns),
                                  "node %u of tree %u", at, t);
    }
    return err;
}

weir_err weir_trees_open(const weir_trees_view *from, weir_trees **treesp) {
    *treesp = NULL;
    weir_err err = trees_check(from);
    if (err) return err;
    const size_t nodes = from->begins[from->trees], begins = (size_t)from->trees + 1;
    weir_trees *trees = weir_calloc(1, sizeof *trees);
    if (!trees) return WEIR_NOMEM(TREES_NO_MEMORY);
    trees->nodes = weir_calloc(nodes, sizeof *trees->nodes);
    trees->begins = weir_calloc(begins, sizeof *trees->begins);
    if (from->covers) trees->covers = weir_calloc(nodes, sizeof *trees->covers);
    if (!trees->nodes || !trees->begins || (from->covers && !trees->covers)) err = WEIR_NOMEM(TREES_NO_MEMORY);
    if (!err) {
        memcpy(trees->nodes, from->nodes, nodes * sizeof *trees->nodes);
        memcpy(trees->begins, from->begins, begins * sizeof *trees->begins);
        if (from->covers) memcpy(trees->covers, from->covers, nodes * sizeof *trees->covers);
        trees->view = *from;
        trees->view.nodes = trees->nodes;
        trees->view.begins = trees->begins;
        trees->view.covers = trees->covers;
        if (from->covers) err = weir_trees_weigh(trees);
    }
    if (err) {
        weir_trees_close(trees);
        return err;
    }
    *treesp = trees;
    return WEIR_OK;
}

void weir_trees_close(weir_trees *trees) {
    if (!trees) return;
    weir_free(trees->nodes);
    weir_free(trees->begins);
    weir_free(trees->covers);
    weir_free(trees);
}

weir_trees_view weir_trees_look(const weir_trees *trees) {
    return trees->view;
}

/* What a mean is made in: the arrays of its view. */
typedef struct trees_sum {
    weir_trees_node *nodes;
    uint32_t *begins;
    float *covers;
    uint32_t node_count, tree_count;
} trees_sum;

/* One of count behind those before. */
static void trees_append(trees_sum *to, const weir_trees_view *v, uint32_t count) {
    for (uint32_t t = 0; t < v->trees; t++)
        to->begins[to->tree_count++] = to->node_count + v->begins[t];
    for (uint32_t at = 0; at < v->begins[v->trees]; at++) {
        weir_trees_node *node = &to->nodes[to->node_count];
        if (to->covers) to->covers[to->node_count] = v->covers[at];
        *node = v->nodes[at];
        if (node->left == 0) node->value /= (float)count; /* TREES-W3 */
        to->node_count++;
    }
}

weir_err weir_trees_mean(weir_trees *const *some, uint32_t count, weir_trees **treesp) {
    size_t nodes = 0, trees = 0;
    double base = 0;
    bool covered = true;
    *treesp = NULL;
    for (uint32_t i = 0; i < count; i++) {
        trees += some[i]->view.trees;
        nodes += some[i]->view.begins[some[i]->view.trees];
        base += (double)some[i]->view.base / count;
        covered = covered && some[i]->covers;
    }
    if (trees > WEIR_TREES_MAX || nodes > WEIR_TREES_NODES_MAX)
        return WEIR_ERR(WEIR_ELIMIT, "%zu trees of %zu nodes together; %u of %u may be", trees, nodes, WEIR_TREES_MAX,
                        WEIR_TREES_NODES_MAX);
    trees_sum all = {.nodes = weir_calloc(nodes, sizeof *all.nodes),
                     .begins = weir_calloc(trees + 1, sizeof *all.begins),
                     .covers = covered ? weir_calloc(nodes, sizeof *all.covers) : NULL};
    weir_err err = all.nodes && all.begins && (all.covers || !covered) ? WEIR_OK : WEIR_NOMEM(TREES_NO_MEMORY);
    for (uint32_t i = 0; !err && i < count; i++) {
        WEIR_ASSERT(some[i]->view.columns == some[0]->view.columns);
        trees_append(&all, &some[i]->view, count);
    }
    if (!err) all.begins[trees] = (uint32_t)nodes;
    const weir_trees_view view = {all.nodes,   all.begins, (uint32_t)trees, count ? some[0]->view.columns : 0,
                                  (float)base, all.covers};
    if (!err) err = weir_trees_open(&view, treesp);
    weir_free(all.nodes);
    weir_free(all.begins);
    weir_free(all.covers);
    return err;
}

double weir_trees_bound(const weir_trees *trees) {
    const weir_trees_view *v = &trees->view;
    double bound = fabs((double)v->base);
    for (uint32_t t = 0; t < v->trees; t++) {
        double most = 0;
        for (uint32_t at = v->begins[t]; at < v->begins[t + 1]; at++)
            if (v->nodes[at].left == 0) most = fmax(most, fabs((double)v->nodes[at].value));
        bound += most;
    }
    /* Rounding of each sum may add to it: a half of the largest float leaves more room than so many sums take. */
    return bound <= (double)FLT_MAX / 2 ? bound : HUGE_VAL;
}

/* --- the walk ----------------------------------------------------------------------------------------------------- */

static float trees_leaf(const weir_trees_node *root, const float *row) {
    const weir_trees_node *node = root;
    while (node->left) {
        const float value = row[node->column];
        const bool right = isnan(value) ? node->missing_right : !(value < node->value);
        node = root + node->left + right;
    }
    return node->value;
}

/* Tree after tree, so that one stays in the cache for all rows. */
void weir_trees_walk(const weir_trees *trees, const float *rows, size_t count, float *margins) {
    const weir_trees_view *v = &trees->view;
    for (size_t i = 0; i < count; i++)
        margins[i] = v->base;
    for (uint32_t t = 0; t < v->trees; t++) {
        const weir_trees_node *root = v->nodes + v->begins[t];
        for (size_t i = 0; i < count; i++)
            margins[i] += trees_leaf(root, rows + i * v->columns); /* TREES-W2 */
    }
}

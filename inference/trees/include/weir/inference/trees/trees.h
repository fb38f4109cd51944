/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trees.h - boosted trees as they are served: a walk from each root to a leaf, and the sum of the leaves.
 *
 *   a row of columns ──► tree 0: a split: value < threshold ? left child : right child; missing: as the split says
 *                                a leaf:  what it adds
 *                        tree 1 …
 *                    ──► margin = base + leaf of tree 0 + leaf of tree 1 + …    the log odds of a yes-or-no question
 *
 * No library stands behind it: trainer/boost writes what XGBoost has learnt in this form, and serving needs this alone.
 *
 * INVARIANTS
 *   TREES-W1  Whatever was given to weir_trees_open, each walk ends, and reads nothing but its row and its tree:
 *             children stand behind their parent and in its tree, columns are those of a row, and all numbers are
 *             finite.
 *   TREES-W2  A margin is the float that XGBoost gives for the same row, to the last bit: leaves are added in the order
 *             of the trees, as floats.
 *   TREES-W3  A mean has the trees of all in their order, each leaf divided by their number, and the mean of their
 *             bases; and the covers of all, if all have them.
 *   TREES-W4  What the columns of a row contribute adds up, with the expected margin, to its margin, but for the
 *             rounding of floats; and each of them is the column's Shapley value, where a column that is not known
 *             sends a row both ways, each by its share of the covers. XGBoost says the same (contributions.c).
 *   TREES-W5  Whatever covers were given to weir_trees_open, contributions are finite, take a time of nodes times
 *             depth, and a memory that WEIR_TREES_DEPTH_MAX bounds.
 *
 * THREADS: read-only after open, [any].
 */
#ifndef WEIR_INFERENCE_TREES_TREES_H
#define WEIR_INFERENCE_TREES_TREES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/store/base/err.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_TREES_MAX         65536u
#define WEIR_TREES_NODES_MAX   ((uint32_t)1 << 26) /* of all trees together: 1 GiB */
#define WEIR_TREES_COLUMNS_MAX ((uint32_t)1 << 20)
#define WEIR_TREES_DEPTH_MAX   24u /* splits from root to leaf, of trees that have covers */

typedef struct weir_trees weir_trees;

/* A split or a leaf. A plain value. */
typedef struct weir_trees_node {
    uint32_t left;      /* of a split: its left child, counted from the tree's root; the right one is next. 0: a leaf */
    uint32_t column;    /* of a split; of a leaf 0 */
    float value;        /* of a split: the threshold; of a leaf: what it adds */
    bool missing_right; /* of a split: where a missing value goes; of a leaf false */
} weir_trees_node;

/* Plain values, borrowed. */
typedef struct weir_trees_view {
    const weir_trees_node *nodes; /* of all trees, one behind the other, each from its root on */
    const uint32_t *begins;       /* trees + 1: where each begins; the last one is the number of nodes */
    uint32_t trees, columns;
    float base;
    /* One a node: how much of what the tree was learnt from came there, in any unit. NULL: not known, so that margins
     * are all that these trees say. */
    const float *covers;
} weir_trees_view;

/* Checks and copies.  WEIR_EDATA says what is wrong first, and where (TREES-W1, TREES-W5); WEIR_ELIMIT more trees,
 * nodes or columns than above, or with covers a deeper tree; WEIR_ENOMEM.  [any] */
weir_err weir_trees_open(const weir_trees_view *from, weir_trees **treesp);
void weir_trees_close(weir_trees *trees); /* NULL is allowed */
weir_trees_view weir_trees_look(const weir_trees *trees);

/* Those of several learnings as one: its margin is the mean of theirs, but for rounding (TREES-W3). All are of the same
 * columns.  WEIR_EDATA, WEIR_ELIMIT and WEIR_ENOMEM as above.  [any] */
weir_err weir_trees_mean(weir_trees *const *some, uint32_t count, weir_trees **treesp);

/* How far from 0 a margin can be; infinite where leaves are too large to be added up as floats.  [any] */
double weir_trees_bound(const weir_trees *trees);

/* rows: count x columns, NaN is missing; margins: one a row (TREES-W2).  [any] */
void weir_trees_walk(const weir_trees *trees, const float *rows, size_t count, float *margins);

/* --- why: of trees that have covers alone ------------------------------------------------------------------------- */

/* The mean of the margins of what they were learnt from, by their covers.  [any] */
double weir_trees_expected(const weir_trees *trees);
/* What each column of one row adds to that: contributions, one a column (TREES-W4).  [any] */
void weir_trees_contribute(const weir_trees *trees, const float *row, double *contributions);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_INFERENCE_TREES_TREES_H */

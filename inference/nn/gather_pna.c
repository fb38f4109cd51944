/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gather_pna.c - mean, most and standard deviation of the children's rows, each as it is, times log(1 + children) and
 * divided by that, as PNA has it; what PNA divides this logarithm by is one number for all, which the weights learn.
 *
 *   m_i = [t | t * s | t / s],  t = [mean | most | deviation],  s = log(1 + children);  out_i += m_i · W
 */
#include <float.h>
#include <math.h>

#include "gather.h"

#define PNA_SAYS   3u /* numbers of a column      */
#define PNA_SCALES 3u /* times that each is there */

static uint32_t pna_rows(const weir_nn_widths *widths) {
    return PNA_SAYS * PNA_SCALES * widths->child;
}

static bool pna_forward(const weir_nn_gather *g, weir_nn_workspace *w, weir_nn_kept *kept, weir_real *out) {
    const uint32_t rows = g->children.count, cols = g->child_cols, all = PNA_SAYS * PNA_SCALES * cols;
    weir_real *m = weir_nn_gather_reals(w, rows, all);
    kept->gathered = m;
    kept->chosen = weir_nn_workspace_alloc(w, (size_t)rows * cols, sizeof *kept->chosen);
    if (!m || !kept->chosen) return false;
    g->k->segment_mean(g->k, &g->children, cols, g->x, cols, m, all);
    g->k->segment_max(g->k, &g->children, cols, g->x, cols, m + cols, all, kept->chosen);
    g->k->segment_deviation(g->k, &g->children, cols, g->x, cols, m, m + 2 * cols, all);
    g->k->segment_amplify(g->k, &g->children, PNA_SAYS * cols, m);
    weir_nn_gather_apply(g, rows, all, m, g->weight, g->hidden, 1, out);
    return true;
}

/* A deviation of numbers that far from 0 is no larger, but for what is added to the variance. Half of what a square's
 * sum may be leaves room for rounding. */
static double pna_bound(weir_nn_bounds *b, const weir_nn_reach *r) {
    const double most = r->child + 0.01, scales[PNA_SCALES] = {1, log1p(r->children), 1 / log(2)};
    const uint32_t rows = PNA_SAYS * r->widths.child;
    double sum = 0;
    weir_nn_bounds_check(b, 4 * most * most * r->children, (double)FLT_MAX / 2);
    for (uint32_t i = 0; i < PNA_SCALES; i++)
        sum += most * scales[i] * weir_nn_bounds_column_sum(b, r->weight, i * rows, (i + 1) * rows);
    return sum;
}

const weir_nn_way weir_nn_way_pna = {.word = "pna", .rows = pna_rows, .forward = pna_forward, .bound = pna_bound};

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gather_gcn.c - the sum of the children's rows, each divided by the root of both degrees, as GCN has it.
 *
 *   m_i = sum of h_j / sqrt(d_i * d_j) + h_i / d_i, the latter where the step joins a type with itself
 *   out_i += m_i · W
 *
 * A type that is so joined with itself at each of its hops has no weight of its own beside W, as in GCN; other types
 * keep theirs. A degree is one more than the edges that were sampled of a vertex along the relation, for the vertex
 * itself. The nodes of the last hop have no edges in a block; there d_j is taken to be d_i, which makes a mean of all,
 * the vertex among them. So with `full` this is GCN but for the first layer's outermost hop.
 */
#include <math.h>

#include "gather.h"

static uint32_t gcn_rows(const weir_nn_widths *widths) {
    return widths->child;
}

static bool gcn_forward(const weir_nn_gather *g, weir_nn_workspace *w, weir_nn_kept *kept, weir_real *out) {
    const uint32_t rows = g->children.count, cols = g->child_cols;
    weir_real *sum = weir_nn_gather_reals(w, rows, cols);
    if (!sum) return false;
    g->k->segment_sum(g->k, &g->children, g->degree_weights, cols, g->x, cols, sum, cols);
    if (g->loops) g->k->add_scaled_rows(g->k, rows, cols, g->degree_own, g->parents, sum);
    weir_nn_gather_apply(g, rows, cols, sum, g->weight, g->hidden, 1, out);
    kept->gathered = sum;
    return true;
}

/* n weights of 1 / sqrt(n + 1) at most, where all children have no other edge; and 1 for a vertex without children. */
static double gcn_bound(weir_nn_bounds *b, const weir_nn_reach *r) {
    const double weights = r->children / sqrt(r->children + 1.0) + (r->widths.loops ? 1 : 0);
    return r->child * weights * weir_nn_bounds_column_sum(b, r->weight, 0, r->widths.child);
}

const weir_nn_way weir_nn_way_gcn = {.word = "gcn",
                                     .loops_are_own = true,
                                     .sees_degrees = true,
                                     .rows = gcn_rows,
                                     .forward = gcn_forward,
                                     .bound = gcn_bound};

/* SPDX-License-Identifier: Apache-2.0 */
/* gather_max.c - the most that any child has, in each column by itself; zeros where there are none. */
#include "gather.h"

static uint32_t max_rows(const weir_nn_widths *widths) {
    return widths->child;
}

static bool max_forward(const weir_nn_gather *g, weir_nn_workspace *w, weir_nn_kept *kept, weir_real *out) {
    const uint32_t rows = g->children.count, cols = g->child_cols;
    kept->gathered = weir_nn_gather_reals(w, rows, cols);
    kept->chosen = weir_nn_workspace_alloc(w, (size_t)rows * cols, sizeof *kept->chosen);
    if (!kept->gathered || !kept->chosen) return false;
    g->k->segment_max(g->k, &g->children, cols, g->x, cols, kept->gathered, cols, kept->chosen);
    weir_nn_gather_apply(g, rows, cols, kept->gathered, g->weight, g->hidden, 1, out);
    return true;
}

static double max_bound(weir_nn_bounds *b, const weir_nn_reach *r) {
    return r->child * weir_nn_bounds_column_sum(b, r->weight, 0, r->widths.child);
}

const weir_nn_way weir_nn_way_max = {.word = "max", .rows = max_rows, .forward = max_forward, .bound = max_bound};

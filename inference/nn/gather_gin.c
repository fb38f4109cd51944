/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gather_gin.c - sums of the children's rows, and two layers of what they say, as GIN has it.
 *
 *   s_i = sum of h_j + (1 + epsilon) · h_i, the latter where the step joins a type with itself
 *   out_i += relu(s_i · Whidden + b) · W
 *
 * A sum tells how many there are, where a mean does not; so it also grows with them, and bounds do with the fan-out.
 */
#include <float.h>

#include "gather.h"

enum { GIN_WEIGHT, GIN_BIAS, GIN_EPSILON, GIN_EXTRAS };

static uint32_t gin_rows(const weir_nn_widths *widths) {
    return widths->hidden;
}

/* epsilon begins at 0, as biases do. */
static uint32_t gin_extras(const weir_nn_widths *widths, weir_nn_extra *list) {
    list[GIN_WEIGHT] = (weir_nn_extra){"hidden.weight", widths->child, widths->hidden, WEIR_NN_WEIGHT};
    list[GIN_BIAS] = (weir_nn_extra){"hidden.bias", 1, widths->hidden, WEIR_NN_BIAS};
    list[GIN_EPSILON] = (weir_nn_extra){"epsilon", 1, 1, WEIR_NN_BIAS};
    return widths->loops ? GIN_EXTRAS : GIN_EPSILON;
}

static bool gin_forward(const weir_nn_gather *g, weir_nn_workspace *w, weir_nn_kept *kept, weir_real *out) {
    const uint32_t rows = g->children.count, cols = g->child_cols;
    kept->sums = weir_nn_gather_reals(w, rows, cols);
    kept->gathered = weir_nn_gather_reals(w, rows, g->hidden);
    if (!kept->sums || !kept->gathered) return false;
    g->k->segment_sum(g->k, &g->children, NULL, cols, g->x, cols, kept->sums, cols);
    if (g->loops) g->k->add_more(g->k, (size_t)rows * cols, g->params + g->extra[GIN_EPSILON], g->parents, kept->sums);
    weir_nn_gather_apply(g, rows, cols, kept->sums, g->extra[GIN_WEIGHT], g->hidden, 0, kept->gathered);
    g->k->bias_relu(g->k, rows, g->hidden, g->params + g->extra[GIN_BIAS], kept->gathered);
    weir_nn_gather_apply(g, rows, g->hidden, kept->gathered, g->weight, g->hidden, 1, out);
    return true;
}

static double gin_bound(weir_nn_bounds *b, const weir_nn_reach *r) {
    const double loop = r->widths.loops ? 1 + weir_nn_bounds_largest_entry(b, r->extra[GIN_EPSILON]) : 0;
    const double sum = r->child * r->children + r->parent * loop;
    const double hidden = sum * weir_nn_bounds_column_sum(b, r->extra[GIN_WEIGHT], 0, r->widths.child) +
                          weir_nn_bounds_largest_entry(b, r->extra[GIN_BIAS]);
    weir_nn_bounds_check(b, sum, (double)FLT_MAX / 2);
    weir_nn_bounds_check(b, hidden, (double)FLT_MAX / 2);
    return hidden * weir_nn_bounds_column_sum(b, r->weight, 0, r->widths.hidden);
}

const weir_nn_way weir_nn_way_gin = {
    .word = "gin", .rows = gin_rows, .extras = gin_extras, .forward = gin_forward, .bound = gin_bound};

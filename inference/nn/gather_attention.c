/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gather_attention.c - a mixture of the children's rows, each head's part with shares of its own.
 *
 *   v_j = h_j · W         the rows of the relation's weight that stand before those of the edges
 *   attention (GATv2)     e_ij = a · leaky(v_j + h_i · Wquery + x_ij · Wedge), one for each head
 *   gat (GAT)             e_ij = leaky(a · v_j + h_i · Wquery + x_ij · Wedge), where GAT's product of a and W is one
 *                         matrix with a column for each head, wherever nothing else is asked of W
 *   out_i += sum of softmax(e_i)_j · v_j, and nothing where there are no children
 *
 * x_ij is what is known of the edge: its numbers, and the code of its age. What is mixed is between the least and the
 * most of what there is: no sum grows with the number of children.
 */
#include <float.h>
#include <math.h>

#include "gather.h"

/* Its own tensors: of what the query is made, of what is known of an edge, and the weights of the score. */
enum { ATTENTION_QUERY, ATTENTION_EDGE, ATTENTION_SCORE, ATTENTION_EXTRAS };

static uint32_t attention_rows(const weir_nn_widths *widths) {
    return widths->child;
}

static uint32_t attention_list(const weir_nn_widths *widths, uint32_t cols, weir_nn_extra *list) {
    list[ATTENTION_QUERY] = (weir_nn_extra){"query.weight", widths->parent, cols, WEIR_NN_WEIGHT};
    list[ATTENTION_EDGE] = (weir_nn_extra){"edge.weight", widths->edge, cols, WEIR_NN_WEIGHT};
    list[ATTENTION_SCORE] = (weir_nn_extra){"score.weight", 1, widths->hidden, WEIR_NN_WEIGHT};
    return ATTENTION_EXTRAS;
}

static uint32_t attention_extras(const weir_nn_widths *widths, weir_nn_extra *list) {
    return attention_list(widths, widths->hidden, list);
}

static uint32_t attention_gat_extras(const weir_nn_widths *widths, weir_nn_extra *list) {
    return attention_list(widths, widths->heads, list);
}

/* Values of the children's rows alone, so entries are counted from the first of these; queries and edges, `cols` each.
 */
static bool attention_project(const weir_nn_gather *g, weir_nn_workspace *w, uint32_t cols, weir_nn_kept *kept) {
    const uint32_t rows = g->x_end - g->x_begin;
    kept->values = weir_nn_gather_reals(w, rows, g->hidden);
    kept->queries = weir_nn_gather_reals(w, g->children.count, cols);
    kept->edges = weir_nn_gather_reals(w, g->entries, cols);
    kept->shares = weir_nn_gather_reals(w, g->entries, g->heads);
    kept->index = weir_nn_workspace_alloc(w, g->entries, sizeof *kept->index);
    if (!kept->values || !kept->queries || !kept->edges || !kept->shares || !kept->index) return false;
    g->k->rebase(g->entries, g->children.index, g->x_begin, kept->index);
    weir_nn_gather_apply(g, rows, g->child_cols, g->x + (size_t)g->x_begin * g->child_cols, g->weight, g->hidden, 0,
                         kept->values);
    weir_nn_gather_apply(g, g->children.count, g->parent_cols, g->parents, g->extra[ATTENTION_QUERY], cols, 0,
                         kept->queries);
    weir_nn_gather_apply(g, g->entries, WEIR_TIME_CODE_COUNT, g->edge_codes,
                         g->extra[ATTENTION_EDGE] + (uint64_t)g->edge_width * cols, cols, 0, kept->edges);
    if (g->edge_width)
        weir_nn_gather_apply(g, g->entries, g->edge_width, g->edge_numbers, g->extra[ATTENTION_EDGE], cols, 1,
                             kept->edges);
    return true;
}

/* From what scores are made of to the parents' rows. */
static void attention_mix(const weir_nn_gather *g, const weir_attention *scoring, weir_nn_kept *kept, weir_real *out) {
    const weir_segments entries = {g->children.count, g->children.offsets, kept->index};
    g->k->segment_scores(&entries, scoring, kept->shares);
    g->k->segment_softmax(&entries, g->heads, kept->shares);
    g->k->segment_mix(&entries, g->heads, kept->shares, g->hidden, kept->values, out);
}

static bool attention_forward(const weir_nn_gather *g, weir_nn_workspace *w, weir_nn_kept *kept, weir_real *out) {
    if (!attention_project(g, w, g->hidden, kept)) return false;
    const weir_attention scoring = {.heads = g->heads,
                                    .cols = g->hidden,
                                    .keys = kept->values,
                                    .queries = kept->queries,
                                    .edges = kept->edges,
                                    .weights = g->params + g->extra[ATTENTION_SCORE]};
    attention_mix(g, &scoring, kept, out);
    return true;
}

/* The scores of GAT are those of GATv2 of keys with one column a head, each of weight 1. */
static bool attention_gat_forward(const weir_nn_gather *g, weir_nn_workspace *w, weir_nn_kept *kept, weir_real *out) {
    const uint32_t rows = g->x_end - g->x_begin;
    if (!attention_project(g, w, g->heads, kept)) return false;
    weir_real one[WEIR_NN_HIDDEN_MAX];
    for (uint32_t h = 0; h < g->heads; h++)
        one[h] = 1;
    kept->keys = weir_nn_gather_reals(w, rows, g->heads);
    kept->ones = weir_nn_gather_reals(w, 1, g->heads);
    if (!kept->keys || !kept->ones) return false;
    g->k->to_device(kept->ones, one, g->heads * sizeof *one);
    g->k->head_products(rows, g->heads, g->hidden, kept->values, g->params + g->extra[ATTENTION_SCORE], kept->keys);
    const weir_attention scoring = {.heads = g->heads,
                                    .cols = g->heads,
                                    .keys = kept->keys,
                                    .queries = kept->queries,
                                    .edges = kept->edges,
                                    .weights = kept->ones};
    attention_mix(g, &scoring, kept, out);
    return true;
}

/* --- how far from 0 ---------------------------------------------------------------------------------------------- */

/* Of queries and edges, which are added to keys. */
static double attention_beside_keys(weir_nn_bounds *b, const weir_nn_reach *r) {
    return r->parent * weir_nn_bounds_column_sum(b, r->extra[ATTENTION_QUERY], 0, r->widths.parent) +
           r->edge * weir_nn_bounds_column_sum(b, r->extra[ATTENTION_EDGE], 0, r->widths.edge);
}

/* A score's distance from the best is at most twice its most; half of that leaves room for rounding. */
#define ATTENTION_SCORE_MAX ((double)FLT_MAX / 4)

static double attention_bound(weir_nn_bounds *b, const weir_nn_reach *r) {
    const double value = r->child * weir_nn_bounds_column_sum(b, r->weight, 0, r->widths.child);
    const double sum = value + attention_beside_keys(b, r);
    const double weight = weir_nn_bounds_largest_entry(b, r->extra[ATTENTION_SCORE]);
    weir_nn_bounds_check(b, sum, ATTENTION_SCORE_MAX);
    weir_nn_bounds_check(b, sum * weight * r->widths.hidden / r->widths.heads, ATTENTION_SCORE_MAX);
    return value; /* shares are above 0 and add up to 1 */
}

static double attention_gat_bound(weir_nn_bounds *b, const weir_nn_reach *r) {
    const double value = r->child * weir_nn_bounds_column_sum(b, r->weight, 0, r->widths.child);
    const double weight = weir_nn_bounds_largest_entry(b, r->extra[ATTENTION_SCORE]);
    const double key = value * weight * r->widths.hidden / r->widths.heads;
    weir_nn_bounds_check(b, value, ATTENTION_SCORE_MAX);
    weir_nn_bounds_check(b, key + attention_beside_keys(b, r), ATTENTION_SCORE_MAX);
    return value;
}

const weir_nn_way weir_nn_way_attention = {.word = "attention",
                                           .has_heads = true,
                                           .sees_edges = true,
                                           .rows = attention_rows,
                                           .extras = attention_extras,
                                           .forward = attention_forward,
                                           .bound = attention_bound};
const weir_nn_way weir_nn_way_gat = {.word = "gat",
                                     .has_heads = true,
                                     .sees_edges = true,
                                     .rows = attention_rows,
                                     .extras = attention_gat_extras,
                                     .forward = attention_gat_forward,
                                     .bound = attention_gat_bound};

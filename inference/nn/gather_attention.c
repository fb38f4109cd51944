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
 * A training that drops shares makes each softmax(e_i)_j 0 by chance, or divides it by the chance that it is not.
 *
 * x_ij is what is known of the edge: its numbers, and the code of its age. Outside of training, what is mixed is
 * between the least and the most of what there is: no sum grows with the number of children.
 *
 * In GAT, where a step joins a type with itself, a vertex is among what it mixes, as in the paper: v_i = h_i · W, of an
 * edge of which nothing is known, and the query is b · v_i. A type that is so joined with itself at each of its hops
 * has no weight of its own besides. A vertex with several such relations is in the softmax of each, with the weight of
 * each: so each relation says by itself how much of the vertex stays beside these neighbours, one without neighbours
 * along it keeps itself, and a relation more does not change what the others mix.
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

/* Where a vertex is among what it mixes, its query is made of its value, as its key is. */
static uint32_t attention_gat_extras(const weir_nn_widths *widths, weir_nn_extra *list) {
    const uint32_t count = attention_list(widths, widths->heads, list);
    if (widths->loops) list[ATTENTION_QUERY] = (weir_nn_extra){"query.weight", 1, widths->hidden, WEIR_NN_WEIGHT};
    return count;
}

/* What is mixed: entries are counted from the first child's row on; joined: each parent is the last of its own, and
 * their values stand behind the children's. */
static bool attention_entries(const weir_nn_gather *g, weir_nn_workspace *w, bool joined, weir_nn_kept *kept) {
    const uint32_t parents = g->children.count, rows = g->x_end - g->x_begin;
    uint32_t *index = weir_nn_workspace_alloc(w, g->entries, sizeof *index);
    kept->rows = joined ? rows + parents : rows;
    kept->entries = g->children;
    kept->entries.index = index;
    kept->entries.each = 0;
    kept->origin = NULL;
    if (!index) return false;
    g->k->rebase(g->k, g->entries, g->children.index, g->x_begin, index);
    if (!joined) return true;
    uint32_t *offsets = weir_nn_workspace_alloc(w, parents + 1u, sizeof *offsets);
    uint32_t *all = weir_nn_workspace_alloc(w, g->entries + parents, sizeof *all);
    kept->origin = weir_nn_workspace_alloc(w, g->entries + parents, sizeof *kept->origin);
    if (!offsets || !all || !kept->origin) return false;
    g->k->segment_join(g->k, &kept->entries, rows, offsets, all, kept->origin);
    kept->entries.offsets = offsets;
    kept->entries.index = all;
    kept->entries.entries = g->entries + parents;
    return true;
}

/* What is known of each edge times its weight: `cols` an entry, zeros of a parent's own. */
static bool attention_edges(const weir_nn_gather *g, weir_nn_workspace *w, uint32_t cols, weir_nn_kept *kept) {
    weir_real *edges = weir_nn_gather_reals(w, g->entries, cols);
    kept->edges = edges;
    if (!edges) return false;
    weir_nn_gather_apply(g, g->entries, WEIR_TIME_CODE_COUNT, g->edge_codes,
                         g->extra[ATTENTION_EDGE] + (uint64_t)g->edge_width * cols, cols, 0, edges);
    if (g->edge_width)
        weir_nn_gather_apply(g, g->entries, g->edge_width, g->edge_numbers, g->extra[ATTENTION_EDGE], cols, 1, edges);
    if (!kept->origin) return true;
    kept->edges = weir_nn_gather_reals(w, kept->entries.entries, cols);
    if (!kept->edges) return false;
    g->k->zero(g->k, kept->edges, (size_t)kept->entries.entries * cols * sizeof *edges);
    g->k->embed(g->k, kept->entries.entries, cols, kept->origin, 1, edges, kept->edges);
    return true;
}

/* Values of what is mixed alone; queries and edges, `cols` each. */
static bool attention_project(const weir_nn_gather *g, weir_nn_workspace *w, uint32_t cols, bool joined,
                              weir_nn_kept *kept) {
    const uint32_t rows = g->x_end - g->x_begin, parents = g->children.count;
    if (!attention_entries(g, w, joined, kept)) return false;
    kept->values = weir_nn_gather_reals(w, kept->rows, g->hidden);
    kept->queries = weir_nn_gather_reals(w, parents, cols);
    kept->shares = weir_nn_gather_reals(w, kept->entries.entries, g->heads);
    if (!kept->values || !kept->queries || !kept->shares) return false;
    weir_real *own = kept->values + (size_t)rows * g->hidden;
    weir_nn_gather_apply(g, rows, g->child_cols, g->x + (size_t)g->x_begin * g->child_cols, g->weight, g->hidden, 0,
                         kept->values);
    if (joined) {
        weir_nn_gather_apply(g, parents, g->parent_cols, g->parents, g->weight, g->hidden, 0, own);
        g->k->head_products(g->k, parents, g->heads, g->hidden, own, g->params + g->extra[ATTENTION_QUERY],
                            kept->queries);
    } else {
        weir_nn_gather_apply(g, parents, g->parent_cols, g->parents, g->extra[ATTENTION_QUERY], cols, 0, kept->queries);
    }
    return attention_edges(g, w, cols, kept);
}

/* From what scores are made of to the parents' rows. The softmax's way back needs its shares as they were. */
static bool attention_mix(const weir_nn_gather *g, const weir_attention *scoring, weir_nn_workspace *w,
                          weir_nn_kept *kept, weir_real *out) {
    const size_t shares = (size_t)kept->entries.entries * g->heads;
    g->k->segment_scores(g->k, &kept->entries, scoring, kept->shares);
    g->k->segment_softmax(g->k, &kept->entries, g->heads, kept->shares);
    kept->mixed = kept->shares;
    if (g->share_drop.rate > 0) {
        kept->mixed = weir_nn_gather_reals(w, kept->entries.entries, g->heads);
        if (!kept->mixed) return false;
        g->k->zero(g->k, kept->mixed, shares * sizeof *kept->mixed);
        g->k->add(g->k, shares, kept->shares, kept->mixed);
        g->k->segment_dropout(g->k, &kept->entries, g->heads, &g->share_drop, kept->mixed);
    }
    g->k->segment_mix(g->k, &kept->entries, g->heads, kept->mixed, g->hidden, kept->values, out);
    return true;
}

static bool attention_forward(const weir_nn_gather *g, weir_nn_workspace *w, weir_nn_kept *kept, weir_real *out) {
    if (!attention_project(g, w, g->hidden, false, kept)) return false;
    const weir_attention scoring = {.heads = g->heads,
                                    .cols = g->hidden,
                                    .keys = kept->values,
                                    .queries = kept->queries,
                                    .edges = kept->edges,
                                    .weights = g->params + g->extra[ATTENTION_SCORE]};
    return attention_mix(g, &scoring, w, kept, out);
}

/* The scores of GAT are those of GATv2 of keys with one column a head, each of weight 1. */
static bool attention_gat_forward(const weir_nn_gather *g, weir_nn_workspace *w, weir_nn_kept *kept, weir_real *out) {
    if (!attention_project(g, w, g->heads, g->loops, kept)) return false;
    weir_real one[WEIR_NN_HIDDEN_MAX];
    for (uint32_t h = 0; h < g->heads; h++)
        one[h] = 1;
    kept->keys = weir_nn_gather_reals(w, kept->rows, g->heads);
    kept->ones = weir_nn_gather_reals(w, 1, g->heads);
    if (!kept->keys || !kept->ones) return false;
    g->k->to_device(g->k, kept->ones, one, g->heads * sizeof *one);
    g->k->head_products(g->k, kept->rows, g->heads, g->hidden, kept->values, g->params + g->extra[ATTENTION_SCORE],
                        kept->keys);
    const weir_attention scoring = {.heads = g->heads,
                                    .cols = g->heads,
                                    .keys = kept->keys,
                                    .queries = kept->queries,
                                    .edges = kept->edges,
                                    .weights = kept->ones};
    return attention_mix(g, &scoring, w, kept, out);
}

/* --- how far from 0 ---------------------------------------------------------------------------------------------- */

static double attention_edge_bound(weir_nn_bounds *b, const weir_nn_reach *r) {
    return r->edge * weir_nn_bounds_column_sum(b, r->extra[ATTENTION_EDGE], 0, r->widths.edge);
}

static double attention_query_bound(weir_nn_bounds *b, const weir_nn_reach *r) {
    return r->parent * weir_nn_bounds_column_sum(b, r->extra[ATTENTION_QUERY], 0, r->widths.parent);
}

/* A score's distance from the best is at most twice its most; half of that leaves room for rounding. */
#define ATTENTION_SCORE_MAX ((double)FLT_MAX / 4)

static double attention_bound(weir_nn_bounds *b, const weir_nn_reach *r) {
    const double value = r->child * weir_nn_bounds_column_sum(b, r->weight, 0, r->widths.child);
    const double sum = value + attention_query_bound(b, r) + attention_edge_bound(b, r);
    const double weight = weir_nn_bounds_largest_entry(b, r->extra[ATTENTION_SCORE]);
    weir_nn_bounds_check(b, sum, ATTENTION_SCORE_MAX);
    weir_nn_bounds_check(b, sum * weight * r->widths.hidden / r->widths.heads, ATTENTION_SCORE_MAX);
    return value; /* as served: shares are above 0 and add up to 1 */
}

static double attention_gat_bound(weir_nn_bounds *b, const weir_nn_reach *r) {
    const double value = r->child * weir_nn_bounds_column_sum(b, r->weight, 0, r->widths.child);
    const double wide = value * r->widths.hidden / r->widths.heads; /* of a head's columns together */
    const double key = wide * weir_nn_bounds_largest_entry(b, r->extra[ATTENTION_SCORE]);
    const double query = r->widths.loops ? wide * weir_nn_bounds_largest_entry(b, r->extra[ATTENTION_QUERY])
                                         : attention_query_bound(b, r);
    weir_nn_bounds_check(b, wide, ATTENTION_SCORE_MAX);
    weir_nn_bounds_check(b, key + query + attention_edge_bound(b, r), ATTENTION_SCORE_MAX);
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
                                     .loops_are_own = true,
                                     .sees_edges = true,
                                     .rows = attention_rows,
                                     .extras = attention_gat_extras,
                                     .forward = attention_gat_forward,
                                     .bound = attention_gat_bound};

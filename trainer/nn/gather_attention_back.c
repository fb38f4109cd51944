/* SPDX-License-Identifier: Apache-2.0 */
/* gather_attention_back.c - inference/nn/gather_attention.c, each line turned around (NN-B1). */
#include "gather_back.h"

/* As there. */
enum { ATTENTION_QUERY, ATTENTION_EDGE, ATTENTION_SCORE };

typedef struct attention_gradients {
    weir_real *values, *keys, *queries, *edges, *shares, *ones;
} attention_gradients;

/* cols: of keys, queries and edges. */
static bool attention_open(const weir_nn_gather_back *b, uint32_t cols, attention_gradients *d) {
    const weir_nn_gather *g = &b->g;
    d->values = weir_nn_back_zeros(g->k, b->w, b->kept.rows, g->hidden);
    d->queries = weir_nn_back_zeros(g->k, b->w, g->children.count, cols);
    d->edges = weir_nn_back_reals(b->w, b->kept.entries.entries, cols);
    d->shares = weir_nn_back_reals(b->w, b->kept.entries.entries, g->heads);
    return d->values && d->queries && d->edges && d->shares;
}

/* From the parents' rows to values, and to what scores are made of. */
static void attention_unmix(const weir_nn_gather_back *b, const weir_attention *scoring, const attention_gradients *d,
                            const weir_attention_back *back) {
    const weir_nn_gather *g = &b->g;
    const weir_segments *entries = &b->kept.entries;
    g->k->segment_mix_back(g->k, entries, g->heads, b->kept.mixed, g->hidden, b->kept.values, b->dout, d->shares,
                           d->values);
    if (g->share_drop.rate > 0) g->k->segment_dropout(g->k, entries, g->heads, &g->share_drop, d->shares);
    g->k->segment_softmax_back(g->k, entries, g->heads, b->kept.shares, d->shares);
    g->k->segment_scores_back(g->k, entries, scoring, d->shares, back);
}

/* From what is known of edges to its weight. False: no memory. */
static bool attention_unproject_edges(const weir_nn_gather_back *b, uint32_t cols, const weir_real *dentries) {
    const weir_nn_gather *g = &b->g;
    const uint64_t edge = g->extra[ATTENTION_EDGE];
    const weir_real *dedges = dentries;
    if (b->kept.origin) {
        weir_real *of_edges = weir_nn_back_zeros(g->k, b->w, g->entries, cols);
        if (!of_edges) return false;
        g->k->embed_back(g->k, b->kept.entries.entries, cols, b->kept.origin, 1, dentries, of_edges);
        dedges = of_edges;
    }
    if (g->edge_width)
        weir_nn_back_weight(g->k, g->entries, g->edge_width, cols, g->edge_numbers, dedges, b->gradients + edge);
    weir_nn_back_weight(g->k, g->entries, WEIR_TIME_CODE_COUNT, cols, g->edge_codes, dedges,
                        b->gradients + edge + (uint64_t)g->edge_width * cols);
    return true;
}

/* From rows of values to the weight, and to what lies behind. */
static void attention_unproject_values(const weir_nn_gather_back *b, uint32_t rows, const weir_real *x,
                                       const weir_real *dvalues, weir_real *dx) {
    const weir_nn_gather *g = &b->g;
    weir_nn_back_weight(g->k, rows, g->child_cols, g->hidden, x, dvalues, b->gradients + g->weight);
    if (dx) weir_nn_back_input(g->k, rows, g->child_cols, g->hidden, dvalues, g->params + g->weight, 1, dx);
}

/* From values, queries and edges to the weights, and to what lies behind. False: no memory. */
static bool attention_unproject(const weir_nn_gather_back *b, uint32_t cols, const attention_gradients *d) {
    const weir_nn_gather *g = &b->g;
    const uint32_t rows = g->x_end - g->x_begin, parents = g->children.count;
    const uint64_t query = g->extra[ATTENTION_QUERY];
    const size_t first = (size_t)g->x_begin * g->child_cols, own = (size_t)rows * g->hidden;
    if (b->kept.origin) {
        g->k->head_products_back(g->k, parents, g->heads, g->hidden, b->kept.values + own, g->params + query,
                                 d->queries, d->values + own, b->gradients + query);
        attention_unproject_values(b, parents, g->parents, d->values + own, b->dparents);
    } else {
        weir_nn_back_weight(g->k, parents, g->parent_cols, cols, g->parents, d->queries, b->gradients + query);
        if (b->dparents)
            weir_nn_back_input(g->k, parents, g->parent_cols, cols, d->queries, g->params + query, 1, b->dparents);
    }
    attention_unproject_values(b, rows, g->x + first, d->values, b->dx ? b->dx + first : NULL);
    return attention_unproject_edges(b, cols, d->edges);
}

bool weir_nn_attention_back(const weir_nn_gather_back *b) {
    const weir_nn_gather *g = &b->g;
    attention_gradients d;
    if (!attention_open(b, g->hidden, &d)) return false;
    const weir_attention scoring = {.heads = g->heads,
                                    .cols = g->hidden,
                                    .keys = b->kept.values,
                                    .queries = b->kept.queries,
                                    .edges = b->kept.edges,
                                    .weights = g->params + g->extra[ATTENTION_SCORE]};
    attention_unmix(b, &scoring, &d,
                    &(weir_attention_back){d.values, d.queries, d.edges, b->gradients + g->extra[ATTENTION_SCORE]});
    return attention_unproject(b, g->hidden, &d);
}

bool weir_nn_gat_back(const weir_nn_gather_back *b) {
    const weir_nn_gather *g = &b->g;
    const uint64_t score = g->extra[ATTENTION_SCORE];
    attention_gradients d;
    if (!attention_open(b, g->heads, &d)) return false;
    d.keys = weir_nn_back_zeros(g->k, b->w, b->kept.rows, g->heads);
    d.ones = weir_nn_back_zeros(g->k, b->w, 1, g->heads); /* nothing comes of it */
    if (!d.keys || !d.ones) return false;
    const weir_attention scoring = {.heads = g->heads,
                                    .cols = g->heads,
                                    .keys = b->kept.keys,
                                    .queries = b->kept.queries,
                                    .edges = b->kept.edges,
                                    .weights = b->kept.ones};
    attention_unmix(b, &scoring, &d, &(weir_attention_back){d.keys, d.queries, d.edges, d.ones});
    g->k->head_products_back(g->k, b->kept.rows, g->heads, g->hidden, b->kept.values, g->params + score, d.keys,
                             d.values, b->gradients + score);
    return attention_unproject(b, g->heads, &d);
}

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
    const uint32_t rows = g->x_end - g->x_begin;
    d->values = weir_nn_back_zeros(g->k, b->w, rows, g->hidden);
    d->queries = weir_nn_back_zeros(g->k, b->w, g->children.count, cols);
    d->edges = weir_nn_back_reals(b->w, g->entries, cols);
    d->shares = weir_nn_back_reals(b->w, g->entries, g->heads);
    return d->values && d->queries && d->edges && d->shares;
}

/* From the parents' rows to values, and to what scores are made of. */
static void attention_unmix(const weir_nn_gather_back *b, const weir_attention *scoring, const attention_gradients *d,
                            const weir_attention_back *back) {
    const weir_nn_gather *g = &b->g;
    const weir_segments entries = {g->children.count, g->children.offsets, b->kept.index};
    g->k->segment_mix_back(&entries, g->heads, b->kept.shares, g->hidden, b->kept.values, b->dout, d->shares,
                           d->values);
    g->k->segment_softmax_back(&entries, g->heads, b->kept.shares, d->shares);
    g->k->segment_scores_back(&entries, scoring, d->shares, back);
}

/* From values, queries and edges to the weights, and to what lies behind. */
static void attention_unproject(const weir_nn_gather_back *b, uint32_t cols, const attention_gradients *d) {
    const weir_nn_gather *g = &b->g;
    const uint32_t rows = g->x_end - g->x_begin, parents = g->children.count;
    const uint64_t query = g->extra[ATTENTION_QUERY], edge = g->extra[ATTENTION_EDGE];
    const size_t first = (size_t)g->x_begin * g->child_cols;
    weir_nn_back_weight(g->k, rows, g->child_cols, g->hidden, g->x + first, d->values, b->gradients + g->weight);
    if (b->dx)
        weir_nn_back_input(g->k, rows, g->child_cols, g->hidden, d->values, g->params + g->weight, 1, b->dx + first);
    weir_nn_back_weight(g->k, parents, g->parent_cols, cols, g->parents, d->queries, b->gradients + query);
    if (b->dparents)
        weir_nn_back_input(g->k, parents, g->parent_cols, cols, d->queries, g->params + query, 1, b->dparents);
    if (g->edge_width)
        weir_nn_back_weight(g->k, g->entries, g->edge_width, cols, g->edge_numbers, d->edges, b->gradients + edge);
    weir_nn_back_weight(g->k, g->entries, WEIR_TIME_CODE_COUNT, cols, g->edge_codes, d->edges,
                        b->gradients + edge + (uint64_t)g->edge_width * cols);
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
    attention_unproject(b, g->hidden, &d);
    return true;
}

bool weir_nn_gat_back(const weir_nn_gather_back *b) {
    const weir_nn_gather *g = &b->g;
    const uint32_t rows = g->x_end - g->x_begin;
    const uint64_t score = g->extra[ATTENTION_SCORE];
    attention_gradients d;
    if (!attention_open(b, g->heads, &d)) return false;
    d.keys = weir_nn_back_zeros(g->k, b->w, rows, g->heads);
    d.ones = weir_nn_back_zeros(g->k, b->w, 1, g->heads); /* nothing comes of it */
    if (!d.keys || !d.ones) return false;
    const weir_attention scoring = {.heads = g->heads,
                                    .cols = g->heads,
                                    .keys = b->kept.keys,
                                    .queries = b->kept.queries,
                                    .edges = b->kept.edges,
                                    .weights = b->kept.ones};
    attention_unmix(b, &scoring, &d, &(weir_attention_back){d.keys, d.queries, d.edges, d.ones});
    g->k->head_products_back(rows, g->heads, g->hidden, b->kept.values, g->params + score, d.keys, d.values,
                             b->gradients + score);
    attention_unproject(b, g->heads, &d);
    return true;
}

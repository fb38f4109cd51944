/* SPDX-License-Identifier: Apache-2.0 */
/* gather.c - the ways to gather by their names, what a way is given, and the one with means. */
#include <weir/store/base/assert.h>

#include "gather.h"

static const weir_nn_way *const gather_ways[WEIR_NN_NETWORKS] = {
    [WEIR_NN_MEAN] = &weir_nn_way_mean, [WEIR_NN_ATTENTION] = &weir_nn_way_attention,
    [WEIR_NN_GAT] = &weir_nn_way_gat,   [WEIR_NN_GCN] = &weir_nn_way_gcn,
    [WEIR_NN_MAX] = &weir_nn_way_max,   [WEIR_NN_GIN] = &weir_nn_way_gin,
    [WEIR_NN_PNA] = &weir_nn_way_pna};

const weir_nn_way *weir_nn_way_of(const weir_nn_shape *shape) {
    WEIR_ASSERT(shape->network < WEIR_NN_NETWORKS);
    return gather_ways[shape->network];
}

const char *weir_nn_network_word(weir_nn_network network) {
    WEIR_ASSERT(network < WEIR_NN_NETWORKS);
    return gather_ways[network]->word;
}

bool weir_nn_network_has_heads(weir_nn_network network) {
    WEIR_ASSERT(network < WEIR_NN_NETWORKS);
    return gather_ways[network]->has_heads;
}

/* --- sizes ------------------------------------------------------------------------------------------------------- */

weir_nn_widths weir_nn_widths_of(const weir_nn_shape *shape, uint32_t layer, uint32_t step) {
    const uint32_t child = weir_nn_child_of(shape, step), parent = weir_nn_parent_of(shape, step);
    return (weir_nn_widths){.child = layer == 1 ? weir_nn_below(shape, child) : shape->hidden,
                            .parent = layer == 1 ? weir_nn_below(shape, parent) : shape->hidden,
                            .edge = shape->edges[shape->steps[step].relation].width + WEIR_TIME_CODE_COUNT,
                            .hidden = weir_nn_width(shape, layer),
                            .heads = weir_nn_layer_heads(shape, layer),
                            .loops = child == parent};
}

uint32_t weir_nn_way_rows(const weir_nn_shape *shape, uint32_t layer, uint32_t step) {
    const weir_nn_widths widths = weir_nn_widths_of(shape, layer, step);
    return weir_nn_way_of(shape)->rows(&widths);
}

bool weir_nn_gather_joins_edges(const weir_nn *nn) {
    return weir_nn_way_of(nn->shape)->joins_edges;
}

uint32_t weir_nn_gather_rows(const weir_nn *nn, uint32_t layer, uint32_t step) {
    return weir_nn_way_rows(nn->shape, layer, step);
}

uint64_t weir_nn_way_parameters(const weir_nn_shape *shape, uint32_t layer, uint32_t step) {
    const weir_nn_way *way = weir_nn_way_of(shape);
    const weir_nn_widths widths = weir_nn_widths_of(shape, layer, step);
    weir_nn_extra extras[WEIR_NN_EXTRAS];
    const uint32_t count = way->extras ? way->extras(&widths, extras) : 0, rows = way->rows(&widths);
    uint64_t sum = rows > widths.child ? (uint64_t)(rows - widths.child) * widths.hidden : 0;
    for (uint32_t i = 0; i < count; i++)
        sum += (uint64_t)extras[i].rows * extras[i].cols;
    return sum;
}

/* Without such a step at one of the type's hops, its nodes there would be lost to themselves. */
bool weir_nn_way_has_self(const weir_nn_shape *shape, uint32_t layer, uint32_t type) {
    if (!weir_nn_way_of(shape)->loops_are_own) return true;
    for (uint32_t hop = 0; hop <= shape->layers - layer; hop++) {
        bool found = !shape->reach[(size_t)hop * shape->types + type];
        for (uint32_t s = 0; s < shape->step_count && !found; s++)
            found = shape->steps[s].hop == hop + 1 && weir_nn_parent_of(shape, s) == type &&
                    weir_nn_child_of(shape, s) == type;
        if (!found) return true;
    }
    return false;
}

/* --- what a way is given ----------------------------------------------------------------------------------------- */

/* Where the rows of the parents of a step begin in what layer 1 has gathered, range after range. */
static size_t gather_parents_begin(const weir_nn_shape *shape, const weir_block_view *block, uint32_t range) {
    size_t begin = 0;
    for (uint32_t i = 0; i < range; i++)
        begin += (size_t)(block->ranges[i].end - block->ranges[i].begin) * weir_nn_below(shape, i % shape->types);
    return begin;
}

/* A stream for each step of each layer, none of which is a layer's own. */
static weir_dropout gather_share_drop(const weir_nn_drop *drop, uint32_t layer, uint32_t step, uint32_t parent) {
    weir_dropout of_step = weir_nn_dropout_of(drop, layer);
    of_step.rate = drop->shares;
    of_step.stream = layer << 16 | (step + 1);
    if (of_step.keys) of_step.keys += parent;
    return of_step;
}

weir_nn_gather weir_nn_gather_of(const weir_nn *nn, const weir_real *params, const weir_nn_tape *tape, uint32_t layer,
                                 uint32_t step) {
    const weir_nn_shape *shape = nn->shape;
    const weir_block_view *block = tape->block;
    const weir_block_edges *e = &block->edges[step];
    const weir_nn_layer_tape *t = &tape->layers[layer - 1];
    const uint32_t child = weir_nn_child_of(shape, step), hop = shape->steps[step].hop, types = shape->types;
    const uint32_t range = (hop - 1) * types + weir_nn_parent_of(shape, step),
                   at = (layer - 1) * shape->step_count + step;
    const weir_nn_widths widths = weir_nn_widths_of(shape, layer, step);
    const bool bare = layer == 1 && shape->vertices[child].bare;
    weir_block_range rows = layer == 1 ? block->input_ranges[child] : block->ranges[hop * types + child];
    WEIR_ASSERT(e->parent_begin < e->parent_end && block->ranges[range].begin == e->parent_begin);
    if (bare) rows = (weir_block_range){0, rows.end - rows.begin};
    return (weir_nn_gather){
        .nn = nn,
        .k = tape->kernels,
        .params = params,
        .layer = layer,
        .step = step,
        .hidden = widths.hidden,
        .heads = widths.heads,
        .weight = nn->plan.neighbors[at],
        .extra = nn->plan.extras[at].at,
        .children = {.count = e->parent_end - e->parent_begin,
                     .offsets = tape->offsets[step],
                     .index = (layer == 1 ? tape->input_children : tape->children)[step],
                     .entries = e->count,
                     .each = weir_nn_drop_each(&tape->drop)},
        .entries = e->count,
        .x = layer > 1 ? t->below
             : bare    ? tape->numbers[child]
                       : tape->h0, /* of its children alone: NN-N5 */
        .child_cols = widths.child,
        .x_begin = rows.begin,
        .x_end = rows.end,
        .parents = t->below +
                   (layer > 1 ? (size_t)e->parent_begin * shape->hidden : gather_parents_begin(shape, block, range)),
        .parent_cols = widths.parent,
        .edge_means = tape->edge_means[step],
        .edge_cols = weir_nn_edge_cols(nn, step),
        .edge_numbers = tape->edge_numbers[step],
        .edge_codes = tape->edge_codes[step],
        .edge_width = widths.edge - WEIR_TIME_CODE_COUNT,
        .loops = widths.loops,
        .share_drop = gather_share_drop(&tape->drop, layer, step, e->parent_begin),
        .degree_weights = tape->degree_weights[step],
        .degree_own = tape->degree_own[step],
    };
}

weir_real *weir_nn_gather_reals(weir_nn_workspace *w, size_t rows, size_t cols) {
    return weir_nn_workspace_alloc(w, rows * cols, sizeof(weir_real));
}

void weir_nn_gather_apply(const weir_nn_gather *g, uint32_t rows, uint32_t k, const weir_real *x, uint64_t weight,
                          uint32_t cols, weir_real beta, weir_real *out) {
    g->k->gemm(g->k, &(weir_gemm){.m = rows,
                                  .n = cols,
                                  .k = k,
                                  .a = x,
                                  .lda = k,
                                  .b = g->params + weight,
                                  .ldb = cols,
                                  .beta = beta,
                                  .c = out,
                                  .ldc = cols});
}

/* --- means ------------------------------------------------------------------------------------------------------- */

static uint32_t gather_mean_rows(const weir_nn_widths *widths) {
    return widths->child;
}

/* The means over the edges stand beside those over the children, as their rows of the weight do below the others: one
 * product goes over out once, and the one of the way back over its gradient. In pieces, of tables that have any, so
 * that the first finds in a cache the rows that the second has written. */
static bool gather_mean_forward(const weir_nn_gather *g, weir_nn_workspace *w, weir_nn_kept *kept, weir_real *out) {
    const uint32_t rows = g->children.count, cols = g->child_cols, all = cols + g->edge_cols;
    weir_real *mean = weir_nn_gather_reals(w, rows, all);
    if (!mean) return false;
    const uint32_t piece = weir_kernels_piece(g->k, all);
    for (uint32_t done = 0, count; done < rows; done += count) {
        weir_segments children = g->children; /* its entries are the whole's: who has pieces looks at the offsets */
        weir_real *to = mean + (size_t)done * all;
        count = rows - done < piece ? rows - done : piece;
        children.offsets += done;
        children.count = count;
        g->k->segment_mean(g->k, &children, cols, g->x, cols, to, all);
        g->k->gather_rows(g->k, count, g->edge_cols, g->edge_means + (size_t)done * g->edge_cols, NULL, to + cols, all);
    }
    weir_nn_gather_apply(g, rows, all, mean, g->weight, g->hidden, 1, out);
    kept->gathered = mean;
    return true;
}

static double gather_mean_bound(weir_nn_bounds *b, const weir_nn_reach *r) {
    return r->child * weir_nn_bounds_column_sum(b, r->weight, 0, r->widths.child);
}

const weir_nn_way weir_nn_way_mean = {
    .word = "mean",
    .joins_edges = true,
    .rows = gather_mean_rows,
    .forward = gather_mean_forward,
    .bound = gather_mean_bound,
};

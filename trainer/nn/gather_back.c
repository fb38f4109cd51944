/* SPDX-License-Identifier: Apache-2.0 */
/* gather_back.c - the ways back by their networks, what they share, and that of means. */
#include <weir/store/base/assert.h>

#include "gather_back.h"

weir_real *weir_nn_back_reals(weir_nn_workspace *w, size_t rows, size_t cols) {
    return weir_nn_workspace_alloc(w, rows * cols, sizeof(weir_real));
}

weir_real *weir_nn_back_zeros(const weir_kernels *k, weir_nn_workspace *w, size_t rows, size_t cols) {
    weir_real *zeros = weir_nn_back_reals(w, rows, cols);
    if (zeros) k->zero(k, zeros, rows * cols * sizeof *zeros);
    return zeros;
}

void weir_nn_back_weight(const weir_kernels *k, uint32_t rows, uint32_t in, uint32_t out, const weir_real *x,
                         const weir_real *dy, weir_real *dweight) {
    k->gemm(k, &(weir_gemm){.m = in,
                            .n = out,
                            .k = rows,
                            .a_transposed = true,
                            .a = x,
                            .lda = in,
                            .b = dy,
                            .ldb = out,
                            .beta = 1,
                            .c = dweight,
                            .ldc = out});
}

void weir_nn_back_input(const weir_kernels *k, uint32_t rows, uint32_t in, uint32_t out, const weir_real *dy,
                        const weir_real *weight, weir_real beta, weir_real *dx) {
    k->gemm(k, &(weir_gemm){.m = rows,
                            .n = in,
                            .k = out,
                            .b_transposed = true,
                            .a = dy,
                            .lda = out,
                            .b = weight,
                            .ldb = out,
                            .beta = beta,
                            .c = dx,
                            .ldc = in});
}

bool weir_nn_back_gathered(const weir_nn_gather_back *b, uint32_t cols, uint32_t beside, bool wanted,
                           weir_real **dgatheredp) {
    const weir_nn_gather *g = &b->g;
    const uint32_t rows = g->children.count;
    *dgatheredp = NULL;
    weir_nn_back_weight(g->k, rows, cols + beside, g->hidden, b->kept.gathered, b->dout, b->gradients + g->weight);
    if (!wanted) return true;
    *dgatheredp = weir_nn_back_reals(b->w, rows, cols);
    if (!*dgatheredp) return false;
    weir_nn_back_input(g->k, rows, cols, g->hidden, b->dout, g->params + g->weight, 0, *dgatheredp);
    return true;
}

static bool gather_mean_back(const weir_nn_gather_back *b) {
    const weir_nn_gather *g = &b->g;
    weir_real *dmean;
    if (!weir_nn_back_gathered(b, g->child_cols, g->edge_cols, b->dx, &dmean)) return false;
    if (dmean && b->first)
        g->k->segment_mean_back_first(g->k, &g->children, g->child_cols, dmean, g->child_cols, b->dx, g->x_begin,
                                      g->x_end);
    else if (dmean)
        g->k->segment_mean_back(g->k, &g->children, g->child_cols, dmean, g->child_cols, b->dx, g->child_cols);
    return true;
}

bool weir_nn_way_back_writes(weir_nn_network network) {
    return network == WEIR_NN_MEAN;
}

weir_nn_way_back weir_nn_way_back_of(weir_nn_network network) {
    static const weir_nn_way_back ways[WEIR_NN_NETWORKS] = {
        [WEIR_NN_MEAN] = gather_mean_back, [WEIR_NN_ATTENTION] = weir_nn_attention_back,
        [WEIR_NN_GAT] = weir_nn_gat_back,  [WEIR_NN_GCN] = weir_nn_gcn_back,
        [WEIR_NN_MAX] = weir_nn_max_back,  [WEIR_NN_GIN] = weir_nn_gin_back,
        [WEIR_NN_PNA] = weir_nn_pna_back};
    WEIR_ASSERT(network < WEIR_NN_NETWORKS);
    return ways[network];
}

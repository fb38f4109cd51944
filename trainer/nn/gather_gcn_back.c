/* SPDX-License-Identifier: Apache-2.0 */
/* gather_gcn_back.c - inference/nn/gather_gcn.c, each line turned around (NN-B1). */
#include "gather_back.h"

bool weir_nn_gcn_back(const weir_nn_gather_back *b) {
    const weir_nn_gather *g = &b->g;
    weir_real *dsum;
    if (!weir_nn_back_gathered(b, g->child_cols, 0, b->dx || b->dparents, &dsum)) return false;
    if (b->dx) g->k->segment_sum_back(g->k, &g->children, g->degree_weights, g->child_cols, dsum, b->dx);
    if (g->loops && b->dparents)
        g->k->add_scaled_rows(g->k, g->children.count, g->child_cols, g->degree_own, dsum, b->dparents);
    return true;
}

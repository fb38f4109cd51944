/* SPDX-License-Identifier: Apache-2.0 */
/* gather_pna_back.c - inference/nn/gather_pna.c, each line turned around (NN-B1). */
#include "gather_back.h"

bool weir_nn_pna_back(const weir_nn_gather_back *b) {
    const weir_nn_gather *g = &b->g;
    const uint32_t rows = g->children.count, cols = g->child_cols, all = 9 * cols;
    const weir_real *m = b->kept.gathered;
    weir_real *d;
    if (!weir_nn_back_gathered(b, all, 0, b->dx, &d)) return false;
    if (!d) return true;
    g->k->segment_amplify_back(g->k, &g->children, 3 * cols, d);
    g->k->segment_mean_back(g->k, &g->children, cols, d, all, b->dx, cols);
    g->k->segment_max_back(g->k, rows, cols, b->kept.chosen, d + cols, all, b->dx, cols);
    g->k->segment_deviation_back(g->k, &g->children, cols, g->x, cols, m, m + 2 * cols, d + 2 * cols, all, b->dx, cols);
    return true;
}

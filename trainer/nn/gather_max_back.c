/* SPDX-License-Identifier: Apache-2.0 */
/* gather_max_back.c - inference/nn/gather_max.c, each line turned around (NN-B1). */
#include "gather_back.h"

bool weir_nn_max_back(const weir_nn_gather_back *b) {
    const weir_nn_gather *g = &b->g;
    const uint32_t cols = g->child_cols;
    weir_real *dmost;
    if (!weir_nn_back_gathered(b, cols, 0, b->dx, &dmost)) return false;
    if (dmost) g->k->segment_max_back(g->k, g->children.count, cols, b->kept.chosen, dmost, cols, b->dx, cols);
    return true;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* gather_gin_back.c - inference/nn/gather_gin.c, each line turned around (NN-B1). */
#include "gather_back.h"

/* As there. */
enum { GIN_WEIGHT, GIN_BIAS, GIN_EPSILON };

bool weir_nn_gin_back(const weir_nn_gather_back *b) {
    const weir_nn_gather *g = &b->g;
    const uint32_t rows = g->children.count, cols = g->child_cols;
    weir_real *dhidden;
    if (!weir_nn_back_gathered(b, g->hidden, 0, true, &dhidden)) return false;
    g->k->relu_back(g->k, (size_t)rows * g->hidden, b->kept.gathered, dhidden);
    g->k->bias_back(g->k, rows, g->hidden, dhidden, b->gradients + g->extra[GIN_BIAS]);
    weir_nn_back_weight(g->k, rows, cols, g->hidden, b->kept.sums, dhidden, b->gradients + g->extra[GIN_WEIGHT]);
    if (!b->dx && !g->loops) return true;
    weir_real *dsums = weir_nn_back_reals(b->w, rows, cols);
    if (!dsums) return false;
    weir_nn_back_input(g->k, rows, cols, g->hidden, dhidden, g->params + g->extra[GIN_WEIGHT], 0, dsums);
    if (b->dx) g->k->segment_sum_back(g->k, &g->children, NULL, cols, dsums, b->dx);
    if (g->loops)
        g->k->add_more_back(g->k, (size_t)rows * cols, g->params + g->extra[GIN_EPSILON], g->parents, dsums,
                            b->gradients + g->extra[GIN_EPSILON], b->dparents);
    return true;
}

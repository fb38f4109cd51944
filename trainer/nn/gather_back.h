/* SPDX-License-Identifier: Apache-2.0 */
/* gather_back.h - the way back of each way to gather (weir/inference/nn/gather.h): NN-B1. */
#ifndef WEIR_TRAINER_NN_GATHER_BACK_H
#define WEIR_TRAINER_NN_GATHER_BACK_H

#include <weir/inference/nn/gather.h>

/* A step of a layer, with what its way forward kept and where gradients go. A plain value. */
typedef struct weir_nn_gather_back {
    weir_nn_gather g;
    weir_nn_kept kept;
    weir_nn_workspace *w;
    const weir_real *dout; /* of what the step has added to its parents' rows */
    weir_real *dx;         /* of g.x and of g.parents, to be added to; NULL: nothing lies behind them */
    weir_real *dparents;
    bool first; /* g.x's rows of dx hold nothing yet, and are to be written; only where the way writes */
    weir_real *gradients;
} weir_nn_gather_back;

/* False: no memory. */
typedef bool (*weir_nn_way_back)(const weir_nn_gather_back *b);
weir_nn_way_back weir_nn_way_back_of(weir_nn_network network);
/* Whether it knows `first`: all others add to rows of zeros. */
bool weir_nn_way_back_writes(weir_nn_network network);

weir_real *weir_nn_back_reals(weir_nn_workspace *w, size_t rows, size_t cols);
weir_real *weir_nn_back_zeros(const weir_kernels *k, weir_nn_workspace *w, size_t rows, size_t cols);
/* Of y = x · weight, where x has `in` and y has `out` columns: x^T · dy is added to the weight's gradient; dx becomes
 * dy · weight^T + beta · dx. */
void weir_nn_back_weight(const weir_kernels *k, uint32_t rows, uint32_t in, uint32_t out, const weir_real *x,
                         const weir_real *dy, weir_real *dweight);
void weir_nn_back_input(const weir_kernels *k, uint32_t rows, uint32_t in, uint32_t out, const weir_real *dy,
                        const weir_real *weight, weir_real beta, weir_real *dx);

/* Of what is kept as gathered, so many columns a parent, to which the weight's first rows are applied, and some beside
 * them, to which the next rows are: the gradient of these rows is added to, and that of the columns that were gathered
 * made, if it is wanted; behind those beside them lies nothing. False: no memory. */
bool weir_nn_back_gathered(const weir_nn_gather_back *b, uint32_t cols, uint32_t beside, bool wanted,
                           weir_real **dgatheredp);

bool weir_nn_attention_back(const weir_nn_gather_back *b);
bool weir_nn_gat_back(const weir_nn_gather_back *b);
bool weir_nn_gcn_back(const weir_nn_gather_back *b);
bool weir_nn_max_back(const weir_nn_gather_back *b);
bool weir_nn_gin_back(const weir_nn_gather_back *b);
bool weir_nn_pna_back(const weir_nn_gather_back *b);

#endif /* WEIR_TRAINER_NN_GATHER_BACK_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nn.h - the way back: gradients of the network of weir/inference/nn/nn.h, AdamW and Adagrad.
 *
 * INVARIANTS
 *   NN-B1  Gradients are those of finite differences: relative error below 1e-3 in float, 1e-6 in double.
 *   NN-B2  A loss (weir_kernels) is a sum over its targets, divided by what the caller names: the parts of a batch,
 *          however it is shared among ranks, add up to the loss and the gradient of the whole.
 *   NN-B3  An embedding that is looked up seldom becomes what it would be if every step had gone over all of them.
 *
 * THREADS: [owner] all.
 */
#ifndef WEIR_TRAINER_NN_NN_H
#define WEIR_TRAINER_NN_NN_H

#include <weir/inference/nn/nn.h>
#include <weir/store/base/buf.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Who wants to go on with gradients before all are there: the way back finishes the flat array from its end to its
 * beginning, and says after the head, if there is one, and after each layer from where on it is finished; not where
 * that is the beginning, as of layer 1 without encoders: then the call is at its end. A plain value. */
typedef struct weir_nn_listener {
    void (*finished)(void *context, uint64_t from);
    void *context;
} weir_nn_listener;

/* Adds to gradients (in the kernels' memory, laid out as the parameters, zeroed by the caller) those of the last
 * forward pass, which kept a tape with the same params. dlogits: targets x outputs, in the kernels' memory. listener:
 * NULL: none, and the kernels may not have finished on return.
 * WEIR_EINVAL there is no tape; WEIR_ENOMEM; what the kernels report. */
weir_err weir_nn_backward(const weir_nn *nn, const weir_real *params, weir_nn_workspace *workspace,
                          const weir_real *dlogits, weir_real *gradients, const weir_nn_listener *listener);

/* --- rows of embeddings ------------------------------------------------------------------------------------------ */

/* Which rows of the tensors that are looked up a batch reads: all others have no gradient. Of a million buckets a batch
 * names some thousand. */
typedef struct weir_nn_rows weir_nn_rows;

/* The network is borrowed.  WEIR_ENOMEM. */
weir_err weir_nn_rows_open(const weir_nn *nn, weir_nn_rows **rowsp);
void weir_nn_rows_close(weir_nn_rows *rows); /* NULL is allowed */
/* The rows of one batch; NULL: of none. What was there before is forgotten. Of tensors of which a share holds some rows
 * there are none: what is read of them, the caller says.  WEIR_ECORRUPT a slot beyond its tensor; WEIR_ENOMEM. */
weir_err weir_nn_rows_of_batch(weir_nn_rows *rows, const weir_nn_batch *batch);
/* Adds rows that a share holds of an embedding, which type and category name as in weir_nn_held; ids are places among
 * its slots.  WEIR_ENOMEM. */
weir_err weir_nn_rows_of_held(weir_nn_rows *rows, uint32_t type, uint32_t category, const uint32_t *ids, size_t count);
/* For other ranks: appends the rows as bytes, but for those that a share holds; and adds those of others, which must be
 * of an equal network.  WEIR_ECORRUPT they name a row that there is not, or end too early; WEIR_ENOMEM. */
void weir_nn_rows_write(const weir_nn_rows *rows, weir_buf *out);
weir_err weir_nn_rows_add(weir_nn_rows *rows, const char *bytes, size_t length);
/* Of the n-th tensor that is looked up: its rows, ascending, each once. *tensorp NULL: there are no more tensors. */
const uint32_t *weir_nn_rows_look(const weir_nn_rows *rows, uint32_t n, const weir_nn_tensor **tensorp,
                                  uint32_t *countp);
/* The same for kernels, until the rows change.  WEIR_ENOMEM where they have a memory of their own. */
weir_err weir_nn_rows_list(weir_nn_rows *rows, uint32_t n, const weir_nn_tensor **tensorp, weir_row_list *listp);
/* Numbers in the rows that are packed: all but those that a share holds. */
size_t weir_nn_rows_size(const weir_nn_rows *rows);
/* Copies them from a flat array to packed ones, one after the other, or back. Both in the kernels' memory.
 * WEIR_ENOMEM where that is not the host's. */
weir_err weir_nn_rows_pack(weir_nn_rows *rows, const weir_real *flat, weir_real *packed);
weir_err weir_nn_rows_unpack(weir_nn_rows *rows, const weir_real *packed, weir_real *flat);
/* Of all rows, those that a share holds, too.  WEIR_ENOMEM as above. */
weir_err weir_nn_rows_zero(weir_nn_rows *rows, weir_real *flat);

/* --- AdamW, and Adagrad for embeddings --------------------------------------------------------------------------- */

typedef struct weir_adamw weir_adamw;

typedef struct weir_adamw_opts {
    double beta1, beta2, epsilon, decay; /* 0: 0.9, 0.999, 1e-8; decay 0 is none; beta2 at least beta1 squared */
    double l2;       /* of each weight but embeddings, added to its gradient once that is shortened */
    double norm_max; /* gradients longer than this are shortened to it; 0: never */
    bool adagrad;    /* for embeddings, without decay; all else moves by AdamW */
    double row_rate; /* of embeddings; 0: that of all else */
    /* Of a share: makes of the sum of the squares of its rows' gradients that of all shares, the same bits in each.
     * Called once a step that is given rows, and not without them; NULL: this is all. */
    double (*sum)(void *context, double squares);
    void *context;
} weir_adamw_opts;

/* Under AdamW, rows that have no gradient move, too: by what is left of their moments, and by decay. They do so when
 * they are read the next time, or the rate changes: step by step, as if it had been done in each (NN-B3), and, once
 * nothing is left of the first moment, by the decay of the rest at once, which is the same but for rounding. Under
 * Adagrad they stay.
 *
 * The network is borrowed.  WEIR_EINVAL opts out of range; WEIR_ENOMEM. */
weir_err weir_adamw_open(const weir_nn *nn, const weir_adamw_opts *opts, weir_adamw **adamwp);
void weir_adamw_close(weir_adamw *adamw); /* NULL is allowed */
/* Before a batch reads them: these rows (NULL: all) become what they are after the steps so far.  WEIR_ENOMEM where
 * kernels have a memory of their own. */
weir_err weir_adamw_bring(weir_adamw *adamw, weir_nn_rows *rows, weir_real *params);
/* One step. rows: those of looked-up tensors that have gradients; NULL: all. *normp: the length of the gradients before
 * they were shortened (may be NULL).
 * WEIR_EDATA gradients that are not finite: parameters and moments stay as they were, but that rows that waited may
 * have been brought; WEIR_ENOMEM as above; what the kernels report. */
weir_err weir_adamw_step_take(weir_adamw *adamw, double rate, const weir_real *gradients, weir_nn_rows *rows,
                              weir_real *params, double *normp);

/* The next steps' rates, of embeddings too, are multiplied by this; 1 at first. */
void weir_adamw_share_set(weir_adamw *adamw, double share);

/* For checkpoints: both moments (of embeddings under Adagrad: 0, and the sums of squares), in the kernels' memory, and
 * how many steps were taken. */
weir_real *weir_adamw_moments(weir_adamw *adamw, unsigned which); /* 0 or 1 */
uint64_t weir_adamw_steps(const weir_adamw *adamw);
/* After the moments were set: all rows are as of this step. */
void weir_adamw_steps_set(weir_adamw *adamw, uint64_t steps);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_TRAINER_NN_NN_H */

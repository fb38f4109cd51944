/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree_rows.h - what boosted trees read of targets (columns.h), from a snapshot: the one way of training, judging, and
 * scoring all of it.
 *
 * THREADS: one thread at a time.
 */
#ifndef WEIR_INFERENCE_INPUTS_TREE_ROWS_H
#define WEIR_INFERENCE_INPUTS_TREE_ROWS_H

#include <weir/inference/nn/nn.h>
#include <weir/store/sample/source.h>
#include <weir/store/snapshot/snapshot.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_TREE_ROWS_MAX 256u

typedef struct weir_tree_rows weir_tree_rows;

/* hops: as of columns.h. The shape has learnt its scales; both are borrowed.  WEIR_ELIMIT a block would be too large;
 * WEIR_EVERSION the snapshot lacks a matrix; WEIR_ENOMEM.  [owner] */
weir_err weir_tree_rows_open(const weir_nn_shape *shape, const weir_snapshot *snapshot, uint32_t hops, uint64_t seed,
                             weir_tree_rows **rowsp);
void weir_tree_rows_close(weir_tree_rows *t); /* NULL is allowed */
/* rows: one of weir_tree_columns_count floats for each of at most WEIR_TREE_ROWS_MAX targets.  WEIR_ECORRUPT lists of
 * the snapshot; WEIR_ENOMEM.  [owner] */
weir_err weir_tree_rows_read(weir_tree_rows *t, const weir_target *targets, uint32_t count, float *rows);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_INFERENCE_INPUTS_TREE_ROWS_H */

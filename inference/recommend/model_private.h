/* SPDX-License-Identifier: Apache-2.0 */
/* model_private.h - what the files of inference/recommend share. */
#ifndef WEIR_INFERENCE_RECOMMEND_MODEL_PRIVATE_H
#define WEIR_INFERENCE_RECOMMEND_MODEL_PRIVATE_H

#include <weir/inference/recommend/recommend.h>

#include "near.h"

/* top.c: of a heap of the best, whose worst stands first. Offers one; and sorts what is left, the best first. */
void weir_recommend_top_offer(weir_recommend_best *heap, uint32_t limit, uint32_t *countp,
                              const weir_recommend_best *one);
void weir_recommend_top_sort(weir_recommend_best *heap, uint32_t count);

/* index.c: the index of a model's items, which is made beside the answers. */
typedef struct weir_recommend_index weir_recommend_index;
weir_err weir_recommend_index_open(const weir_recommend_model *model, weir_recommend_index **indexp);
/* Ends what is being made. NULL is allowed.  Blocks. */
void weir_recommend_index_close(weir_recommend_index *index);
/* NULL: it is not there yet, or cannot be had.  [any] */
const weir_near *weir_recommend_index_get(const weir_recommend_index *index);
int64_t weir_recommend_index_permille(const weir_recommend_index *index);
void weir_recommend_index_await(weir_recommend_index *index);

/* NULL: the model has none, or not yet.  [any] */
const weir_near *weir_recommend_model_near(const weir_recommend_model *model);

#endif /* WEIR_INFERENCE_RECOMMEND_MODEL_PRIVATE_H */

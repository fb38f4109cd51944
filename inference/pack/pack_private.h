/* SPDX-License-Identifier: Apache-2.0 */
/* pack_private.h - what the way in and the way out of a model folder share. */
#ifndef WEIR_INFERENCE_PACK_PRIVATE_H
#define WEIR_INFERENCE_PACK_PRIVATE_H

#include <weir/inference/pack/pack.h>

_Static_assert(WEIR_MODEL_NAME_MAX >= WEIR_NN_TENSOR_NAME_MAX, "a network of long names trains, and is then written");

/* Of the list of a type's known vertices. */
void weir_pack_known_name(const weir_nn_inputs *inputs, char name[WEIR_NN_TENSOR_NAME_MAX]);

/* trees.c: trees as tensors, words before floats; the tensors borrow from the two arrays. */
#define WEIR_PACK_TREE_TENSORS 5u /* at most: one less without covers */
#define WEIR_PACK_TREE_WORDS   2u /* of these */
typedef struct weir_pack_tree_tensors {
    weir_model_tensor tensors[WEIR_PACK_TREE_TENSORS];
    uint32_t count;
    uint64_t *words;
    float *values; /* both are to be freed, after an error, too */
} weir_pack_tree_tensors;
/* How many trees are. */
uint32_t weir_pack_trees_tensors(const weir_trees *trees);
/* WEIR_ENOMEM. */
weir_err weir_pack_trees_draw(const weir_trees *trees, weir_pack_tree_tensors *t);
/* And back: nothing of the model is believed.  WEIR_EDATA, WEIR_ELIMIT, WEIR_ENOMEM. */
weir_err weir_pack_trees_read(const weir_model *model, const weir_nn_shape *shape, uint32_t hops, weir_trees **treesp);

#endif /* WEIR_INFERENCE_PACK_PRIVATE_H */

/* SPDX-License-Identifier: Apache-2.0 */
/* pack_private.h - what the way in and the way out of a model folder share. */
#ifndef WEIR_INFERENCE_PACK_PRIVATE_H
#define WEIR_INFERENCE_PACK_PRIVATE_H

#include <weir/inference/pack/pack.h>

_Static_assert(WEIR_MODEL_NAME_MAX >= WEIR_NN_TENSOR_NAME_MAX, "a network of long names trains, and is then written");

/* Of the list of a type's known vertices. */
void weir_pack_known_name(const weir_nn_inputs *inputs, char name[WEIR_NN_TENSOR_NAME_MAX]);

#endif /* WEIR_INFERENCE_PACK_PRIVATE_H */

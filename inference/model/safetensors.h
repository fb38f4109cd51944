/* SPDX-License-Identifier: Apache-2.0 */
/*
 * safetensors.h - weights.safetensors: a length, a JSON header, the numbers.
 *
 *   offset size  meaning
 *     0     8    N, bytes of the header, little-endian
 *     8     N    {"name": {"dtype": "F32", "shape": [rows, cols], "data_offsets": [begin, end]}, …}, padded with
 *                blanks; a dtype may be U64, of what begins at a multiple of 8 bytes
 *    8+N    …    the numbers, little-endian; offsets count from here
 *
 * The format cannot hold code. It is refused unless each byte behind the header belongs to exactly one tensor.
 */
#ifndef WEIR_INFERENCE_MODEL_SAFETENSORS_H
#define WEIR_INFERENCE_MODEL_SAFETENSORS_H

#include <weir/inference/model/model.h>
#include <weir/store/base/file.h>

/* Tensors and their numbers in memory of their own. */
typedef struct weir_weights {
    weir_model_tensor *tensors; /* sorted by name */
    size_t count;
    char *names;
    uint8_t *data;
} weir_weights;

/* Writes them in the order given.  WEIR_EINVAL, WEIR_ELIMIT name the tensor at fault; errors of file.h. */
weir_err weir_safetensors_write(const char *path, const weir_model_tensor *tensors, size_t count);
/* WEIR_EDATA says what is wrong with it; WEIR_ELIMIT, WEIR_ENOMEM. */
weir_err weir_safetensors_read(const char *name, const void *bytes, size_t length, weir_weights *weightsp);
void weir_weights_free(weir_weights *weights);

#endif /* WEIR_INFERENCE_MODEL_SAFETENSORS_H */

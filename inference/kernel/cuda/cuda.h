/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda.h - the table for a GPU, as far as it is there: memory, contexts, flat arrays, rows that are gathered,
 * optimisers and losses. What is NULL in it is still missing, and so no program opens it yet.
 */
#ifndef WEIR_INFERENCE_KERNEL_CUDA_CUDA_H
#define WEIR_INFERENCE_KERNEL_CUDA_CUDA_H

#include <weir/inference/kernel/kernel.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A context on the device at hand.  WEIR_ENOMEM; WEIR_EIO what CUDA says. */
weir_err weir_cuda_open(const weir_kernels **kernelsp);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_INFERENCE_KERNEL_CUDA_CUDA_H */

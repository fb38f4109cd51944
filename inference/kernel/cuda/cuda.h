/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda.h - the table for a GPU. No program opens it yet: it is compiled by nvcc in the checks, and by the tests, which
 * run it on a device that a processor plays.
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

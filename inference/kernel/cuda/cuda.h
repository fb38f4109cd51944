/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda.h - the table for a GPU: what libweir_cuda.so has, which weir_kernels_open loads. It is compiled by nvcc; and by
 * the tests, which run it on a device that a processor plays.
 */
#ifndef WEIR_INFERENCE_KERNEL_CUDA_CUDA_H
#define WEIR_INFERENCE_KERNEL_CUDA_CUDA_H

#include <weir/inference/kernel/kernel.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Of kernel.h, as this library was compiled with. */
extern const char *const weir_cuda_sum;

/* A context on a device: programs of one machine that have different numbers share its devices evenly.  WEIR_ENOMEM;
 * WEIR_EUNAVAILABLE no GPU; WEIR_EIO what CUDA says. */
weir_err weir_cuda_open(uint32_t number, const weir_kernels **kernelsp);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_INFERENCE_KERNEL_CUDA_CUDA_H */

/* SPDX-License-Identifier: Apache-2.0 */
/* gemm.h - products that are faster here than in OpenBLAS. Private to this folder. */
#ifndef WEIR_INFERENCE_KERNEL_GEMM_H
#define WEIR_INFERENCE_KERNEL_GEMM_H

#include <weir/inference/kernel/kernel.h>

#if defined(__x86_64__) && !defined(WEIR_REAL_DOUBLE)
#define WEIR_GEMM_AVX512 1
/* Any product of at least one row, column and term, for processors with AVX-512. */
void weir_gemm_avx512(const weir_gemm *gemm);
#endif

#endif /* WEIR_INFERENCE_KERNEL_GEMM_H */

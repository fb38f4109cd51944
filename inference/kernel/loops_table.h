/* SPDX-License-Identifier: Apache-2.0 */
/* loops_table.h - the two builds of loops.h, as tables of kernels; entries that are not loops are NULL. */
#ifndef WEIR_INFERENCE_LOOPS_TABLE_H
#define WEIR_INFERENCE_LOOPS_TABLE_H

#include <weir/inference/kernel/kernel.h>

typedef weir_kernels weir_loops;

extern const weir_loops weir_loops_plain;
#ifdef __x86_64__
extern const weir_loops weir_loops_avx2; /* for processors with AVX2 and FMA */
#endif

#endif /* WEIR_INFERENCE_LOOPS_TABLE_H */

/* SPDX-License-Identifier: Apache-2.0 */
/* loops_avx2.c - the loops for processors with AVX2 and FMA; the build compiles this file for them. */
#include "loops_table.h"

#ifdef __x86_64__
#define WEIR_LOOP weir_loops_avx2
#include "loops.h"
#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * uncached.h - stores that go past the caches.
 *
 * A store to memory that no cache holds reads a line, changes it and writes it back later. Where the next reader comes
 * only after much else, the line is gone by then: such rows are written past the caches, at half the traffic, and what
 * the caches hold stays there.
 *
 * THREADS: [any]. Another thread may be told of what was stored only after weir_uncached_end.
 */
#ifndef WEIR_INFERENCE_KERNEL_UNCACHED_H
#define WEIR_INFERENCE_KERNEL_UNCACHED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/inference/kernel/kernel.h>

/* More than a core has of any cache: the first rows of an array of so many bytes have left it when the last are
 * written. */
#define WEIR_UNCACHED_BYTES ((size_t)32 << 20)

#if defined(__SSE2__) && !defined(WEIR_REAL_DOUBLE)
#include <immintrin.h>
#ifdef __AVX2__
#define WEIR_UNCACHED_LANES 8u
static inline void weir_uncached_store(weir_real *to, const weir_real from[WEIR_UNCACHED_LANES]) {
    _mm256_stream_ps(to, _mm256_loadu_ps(from));
}
#else
#define WEIR_UNCACHED_LANES 4u
static inline void weir_uncached_store(weir_real *to, const weir_real from[WEIR_UNCACHED_LANES]) {
    _mm_stream_ps(to, _mm_loadu_ps(from));
}
#endif
static inline void weir_uncached_end(void) {
    _mm_sfence();
}
#else
#define WEIR_UNCACHED_LANES 1u
static inline void weir_uncached_store(weir_real *to, const weir_real from[WEIR_UNCACHED_LANES]) {
    *to = *from;
}
static inline void weir_uncached_end(void) {}
#endif

/* Whether rows of so many columns, one behind the other, should be written past the caches, WEIR_UNCACHED_LANES at a
 * time: there are bytes enough of them, and they are aligned for such stores. */
static inline bool weir_uncached_rows(const weir_real *to, uint32_t cols, size_t bytes) {
    return WEIR_UNCACHED_LANES > 1 && bytes >= WEIR_UNCACHED_BYTES && cols % WEIR_UNCACHED_LANES == 0 &&
           (uintptr_t)to % (WEIR_UNCACHED_LANES * sizeof *to) == 0;
}

#endif /* WEIR_INFERENCE_KERNEL_UNCACHED_H */

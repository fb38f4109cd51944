/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lanes.c - Philox 4x32-10 of rng.h, four streams to a vector.
 *
 * A lane is 64 bits wide and holds a word of 32 in its low half; what is in the high half is never looked at, because
 * the multiplication reads the low halves only and nothing else carries down.
 */
#include "lanes.h"

void weir_rng_lanes_fill_naive(const weir_rng_lanes *streams, uint32_t blocks, uint32_t *draws) {
    for (uint32_t i = 0; i < streams->count; i++) {
        weir_rng rng = weir_rng_stream(streams->keys[i], streams->ids[i], streams->substream);
        for (uint32_t d = 0; d < 4 * blocks; d++)
            *draws++ = weir_rng_u32(&rng);
    }
}

#if defined(__x86_64__)
#include <immintrin.h>

#define ROUNDS       10
#define MULTIPLIER_0 0xD2511F53
#define MULTIPLIER_1 0xCD9E8D57
#define WEYL_0       0x9E3779B9
#define WEYL_1       0xBB67AE85

typedef struct lanes_block {
    __m256i c0, c1, c2, c3;
} lanes_block;

__attribute__((target("avx2"))) static inline lanes_block lanes_philox(lanes_block b, __m256i k0, __m256i k1) {
    const __m256i m0 = _mm256_set1_epi64x(MULTIPLIER_0), m1 = _mm256_set1_epi64x(MULTIPLIER_1);
    const __m256i w0 = _mm256_set1_epi64x(WEYL_0), w1 = _mm256_set1_epi64x(WEYL_1);
    for (int round = 0; round < ROUNDS; round++) {
        __m256i p0 = _mm256_mul_epu32(b.c0, m0), p1 = _mm256_mul_epu32(b.c2, m1);
        b.c0 = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(p1, 32), b.c1), k0);
        b.c2 = _mm256_xor_si256(_mm256_xor_si256(_mm256_srli_epi64(p0, 32), b.c3), k1);
        b.c1 = p1;
        b.c3 = p0;
        k0 = _mm256_add_epi64(k0, w0);
        k1 = _mm256_add_epi64(k1, w1);
    }
    return b;
}

/* A lane's four words become 16 bytes of its own stream. */
__attribute__((target("avx2"))) static inline void lanes_store(lanes_block b, uint32_t *draws, size_t stride) {
    const __m256i low = _mm256_set1_epi64x(0xFFFFFFFF);
    __m256i x = _mm256_or_si256(_mm256_and_si256(b.c0, low), _mm256_slli_epi64(b.c1, 32));
    __m256i y = _mm256_or_si256(_mm256_and_si256(b.c2, low), _mm256_slli_epi64(b.c3, 32));
    __m256i even = _mm256_unpacklo_epi64(x, y), odd = _mm256_unpackhi_epi64(x, y);
    _mm_storeu_si128((__m128i *)(void *)draws, _mm256_castsi256_si128(even));
    _mm_storeu_si128((__m128i *)(void *)(draws + stride), _mm256_castsi256_si128(odd));
    _mm_storeu_si128((__m128i *)(void *)(draws + 2 * stride), _mm256_extracti128_si256(even, 1));
    _mm_storeu_si128((__m128i *)(void *)(draws + 3 * stride), _mm256_extracti128_si256(odd, 1));
}

__attribute__((target("avx2"))) static void lanes_fill_avx2(const weir_rng_lanes *streams, uint32_t blocks,
                                                            uint32_t *draws) {
    const size_t stride = (size_t)4 * blocks;
    const __m256i substream = _mm256_set1_epi64x(streams->substream);
    for (uint32_t first = 0; first < streams->count; first += WEIR_RNG_LANES) {
        __m256i keys = _mm256_loadu_si256((const __m256i *)(const void *)(streams->keys + first));
        __m256i ids = _mm256_loadu_si256((const __m256i *)(const void *)(streams->ids + first));
        __m256i k1 = _mm256_srli_epi64(keys, 32), id1 = _mm256_srli_epi64(ids, 32);
        for (uint32_t i = 0; i < blocks; i++) {
            lanes_block b = {_mm256_set1_epi64x(i), substream, ids, id1};
            lanes_store(lanes_philox(b, keys, k1), draws + first * stride + (size_t)4 * i, stride);
        }
    }
}
#endif

void weir_rng_lanes_fill(const weir_rng_lanes *streams, uint32_t blocks, uint32_t *draws) {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) {
        lanes_fill_avx2(streams, blocks, draws);
        return;
    }
#endif
    weir_rng_lanes_fill_naive(streams, blocks, draws);
}

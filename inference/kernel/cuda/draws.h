/* SPDX-License-Identifier: Apache-2.0 */
/* draws.h - Philox 4x32-10 on the device: the bits of weir_philox (rng.h), so that both tables drop the same. */
#ifndef WEIR_INFERENCE_KERNEL_CUDA_DRAWS_H
#define WEIR_INFERENCE_KERNEL_CUDA_DRAWS_H

#include <math.h>

#include <weir/inference/kernel/kernel.h>
#include <weir/store/base/assert.h>

#include "launch.h"

#define CUDA_PHILOX_ROUNDS 10u
#define CUDA_DRAWS         8u /* of 16 bits, from one block of the generator */
#define CUDA_DRAW_ENDS     65536.0

static __device__ __forceinline__ void cuda_philox(const uint32_t counter[4], uint64_t seed, uint32_t out[4]) {
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    uint32_t k0 = static_cast<uint32_t>(seed), k1 = static_cast<uint32_t>(seed >> 32);
    for (unsigned round = 0; round < CUDA_PHILOX_ROUNDS; round++) {
        const uint64_t product0 = static_cast<uint64_t>(0xD2511F53U) * c0,
                       product1 = static_cast<uint64_t>(0xCD9E8D57U) * c2;
        c0 = static_cast<uint32_t>(product1 >> 32) ^ c1 ^ k0;
        c1 = static_cast<uint32_t>(product1);
        c2 = static_cast<uint32_t>(product0 >> 32) ^ c3 ^ k1;
        c3 = static_cast<uint32_t>(product0);
        k0 += 0x9E3779B9U;
        k1 += 0xBB67AE85U;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

/* A draw below this drops. */
static inline uint32_t cuda_drop_limit(const weir_dropout *d) {
    WEIR_ASSERT(d->rate >= 0 && d->rate < 1);
    return static_cast<uint32_t>(lround(d->rate * CUDA_DRAW_ENDS));
}

/* What stays is multiplied with this. */
static inline weir_real cuda_drop_kept(uint32_t limit) {
    return static_cast<weir_real>(CUDA_DRAW_ENDS / (CUDA_DRAW_ENDS - limit));
}

/* Drops what is drawn of up to CUDA_DRAWS columns of a row, the block'th so many of it. */
static __device__ __forceinline__ void cuda_drop_block(const weir_dropout *d, uint64_t key, uint32_t block,
                                                       uint32_t limit, weir_real kept, uint32_t cols, weir_real *x) {
    const uint32_t counter[4] = {static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32), block, d->stream};
    uint32_t bits[4];
    cuda_philox(counter, d->seed, bits);
    for (uint32_t c = 0; c < CUDA_DRAWS; c++) {
        const uint32_t draw = bits[c / 2] >> 16 * (c % 2) & 0xFFFFU;
        if (c < cols) x[c] = draw < limit ? 0 : x[c] * kept;
    }
}

#endif /* WEIR_INFERENCE_KERNEL_CUDA_DRAWS_H */

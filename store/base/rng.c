/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rng.c - Philox 4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3; SC 2011).
 *
 * The counter of a stream is { block, substream, stream, stream >> 32 } and its key the seed. How each function
 * consumes the stream is as much a promise as the generator: a sample is replayed years later by the same calls.
 */
#include <weir/store/base/rng.h>

#include <errno.h>
#include <math.h>
#include <sys/random.h>

#include <weir/store/base/assert.h>

#define ROUNDS       10
#define MULTIPLIER_0 0xD2511F53u
#define MULTIPLIER_1 0xCD9E8D57u
#define WEYL_0       0x9E3779B9u /* the golden ratio */
#define WEYL_1       0xBB67AE85u /* the square root of 3, less 1 */

__extension__ typedef unsigned __int128 rng_u128;

void weir_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]) {
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    uint32_t k0 = key[0], k1 = key[1];
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t product_0 = (uint64_t)MULTIPLIER_0 * c0;
        uint64_t product_1 = (uint64_t)MULTIPLIER_1 * c2;
        c0 = (uint32_t)(product_1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)product_1;
        c2 = (uint32_t)(product_0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)product_0;
        k0 += WEYL_0;
        k1 += WEYL_1;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

weir_rng weir_rng_stream(uint64_t seed, uint64_t stream, uint32_t substream) {
    return (weir_rng){
        .key = {(uint32_t)seed, (uint32_t)(seed >> 32)},
        .counter = {0, substream, (uint32_t)stream, (uint32_t)(stream >> 32)},
        .used = 4,
    };
}

uint32_t weir_rng_u32(weir_rng *rng) {
    if (rng->used == 4) {
        WEIR_ASSERT(rng->counter[0] != UINT32_MAX); /* the next number would be the stream's first again */
        weir_philox(rng->counter, rng->key, rng->block);
        rng->counter[0]++;
        rng->used = 0;
    }
    return rng->block[rng->used++];
}

uint64_t weir_rng_u64(weir_rng *rng) {
    uint64_t low = weir_rng_u32(rng);
    return (uint64_t)weir_rng_u32(rng) << 32 | low;
}

/* A draw times the bound, and of the product the part above the draw's width: as even as the draws are, once those that
 * fall into the first (2^width mod bound) of the low part, the surplus, are drawn again. That division is made only
 * where the low part may be so small. */
uint64_t weir_rng_below(weir_rng *rng, uint64_t bound) {
    WEIR_ASSERT(bound > 0);
    if (bound <= UINT32_MAX) {
        uint32_t narrow = (uint32_t)bound;
        uint64_t product = (uint64_t)weir_rng_u32(rng) * narrow;
        while ((uint32_t)product < narrow && (uint32_t)product < -narrow % narrow)
            product = (uint64_t)weir_rng_u32(rng) * narrow;
        return product >> 32;
    }
    rng_u128 product = (rng_u128)weir_rng_u64(rng) * bound;
    while ((uint64_t)product < bound && (uint64_t)product < -bound % bound)
        product = (rng_u128)weir_rng_u64(rng) * bound;
    return (uint64_t)(product >> 64);
}

double weir_rng_double(weir_rng *rng) {
    return (double)(weir_rng_u64(rng) >> 11) * 0x1p-53;
}

double weir_rng_exponential(weir_rng *rng, double mean) {
    return -mean * log1p(-weir_rng_double(rng));
}

double weir_rng_normal(weir_rng *rng) {
    double radius = sqrt(-2.0 * log1p(-weir_rng_double(rng)));
    return radius * cos(6.283185307179586476925 * weir_rng_double(rng));
}

uint64_t weir_rng_fresh_seed(void) {
    uint64_t seed;
    ssize_t count;
    do {
        count = getrandom(&seed, sizeof seed, 0);
    } while (count < 0 && errno == EINTR);
    WEIR_ASSERT(count == (ssize_t)sizeof seed);
    return seed;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* rng.c - Philox 4x32-10 and what is drawn from it. */
#include <math.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

#include <weir/base/assert.h>
#include <weir/base/clock.h>
#include <weir/base/rng.h>

#define ROUNDS       10
#define MULTIPLIER_0 0xD2511F53u
#define MULTIPLIER_1 0xCD9E8D57u
#define WEYL_0       0x9E3779B9u
#define WEYL_1       0xBB67AE85u

void weir_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]) {
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    uint32_t k0 = key[0], k1 = key[1];
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t p0 = (uint64_t)MULTIPLIER_0 * c0;
        uint64_t p1 = (uint64_t)MULTIPLIER_1 * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)p0;
        k0 += WEYL_0;
        k1 += WEYL_1;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

/* The low half of the counter counts blocks; the stream is the high half, the substream goes into the key. */
weir_rng weir_rng_stream(uint64_t seed, uint64_t stream, uint32_t substream) {
    weir_rng rng = {
        .key = {(uint32_t)seed, (uint32_t)(seed >> 32)},
        .counter = {0, substream, (uint32_t)stream, (uint32_t)(stream >> 32)},
        .used = 4,
    };
    return rng;
}

uint32_t weir_rng_u32(weir_rng *rng) {
    if (rng->used == 4) {
        weir_philox(rng->counter, rng->key, rng->block);
        rng->counter[0]++;
        WEIR_ASSERT(rng->counter[0] != 0); /* 2^34 draws: a stream is used up, and would repeat */
        rng->used = 0;
    }
    return rng->block[rng->used++];
}

uint64_t weir_rng_u64(weir_rng *rng) {
    uint64_t high = weir_rng_u32(rng);
    return high << 32 | weir_rng_u32(rng);
}

/* A product's high word is uniform once the few low words that would come up once too often are drawn again. */
uint64_t weir_rng_below(weir_rng *rng, uint64_t bound) {
    WEIR_ASSERT(bound > 0);
    __extension__ typedef unsigned __int128 u128;
    u128 product = (u128)weir_rng_u64(rng) * bound;
    if ((uint64_t)product < bound) {
        uint64_t threshold = (0 - bound) % bound;
        while ((uint64_t)product < threshold)
            product = (u128)weir_rng_u64(rng) * bound;
    }
    return (uint64_t)(product >> 64);
}

double weir_rng_double(weir_rng *rng) {
    return (double)(weir_rng_u64(rng) >> 11) * 0x1p-53;
}

double weir_rng_exponential(weir_rng *rng, double mean) {
    return -mean * log1p(-weir_rng_double(rng));
}

double weir_rng_normal(weir_rng *rng) {
    double radius = sqrt(weir_rng_exponential(rng, 2.0));
    return radius * cos(6.283185307179586476925 * weir_rng_double(rng));
}

uint64_t weir_rng_fresh_seed(void) {
    uint64_t seed;
    if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) != (ssize_t)sizeof seed) {
        seed = (uint64_t)weir_clock_wall_us(weir_clock_system()) ^ (uint64_t)getpid() << 40;
    }
    return seed;
}

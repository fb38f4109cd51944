/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rng.h - counter-based random numbers (Philox 4x32-10).
 *
 * A draw is a pure function of (key, counter): it depends on no thread, no rank and no order, so a
 * sample can be replayed. `weir_rng` is only a cursor over one such stream.
 *
 *     weir_rng rng = weir_rng_stream(seed, vertex, hop);   // same three, same numbers, for ever
 *
 * A stream has 2^34 draws of 32 bits less four; drawing more is an assertion. The generator passes the published
 * known-answer vectors (tests/unit/store/base/rng_test.c). Not for secrets.
 */
#ifndef WEIR_STORE_BASE_RNG_H
#define WEIR_STORE_BASE_RNG_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A plain value: copy it to fork the stream at this point.  [owner] */
typedef struct weir_rng {
    uint32_t key[2];
    uint32_t counter[4];
    uint32_t block[4];
    uint32_t used; /* of block; 4 means a new block is due */
} weir_rng;

/* One Philox 4x32-10 block.  [any] */
void weir_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

weir_rng weir_rng_stream(uint64_t seed, uint64_t stream, uint32_t substream);
uint32_t weir_rng_u32(weir_rng *rng);
uint64_t weir_rng_u64(weir_rng *rng);
/* Uniform in [0, bound), without modulo bias; bound 0 is an assertion. */
uint64_t weir_rng_below(weir_rng *rng, uint64_t bound);
/* Uniform in [0, 1), 53 bits. */
double weir_rng_double(weir_rng *rng);
/* Exponential with this mean; standard normal (one draw of Box-Muller, the twin is discarded). */
double weir_rng_exponential(weir_rng *rng, double mean);
double weir_rng_normal(weir_rng *rng);

/* A seed for runs that did not name one, from the system; print it.  [any] */
uint64_t weir_rng_fresh_seed(void);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_STORE_BASE_RNG_H */

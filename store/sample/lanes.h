/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lanes.h - the first numbers of many streams at once.
 *
 * Parent i draws from weir_rng_stream(keys[i], ids[i], substream). A generator that is asked for one number after the
 * other waits for ten dependent multiplications each time; side by side, many streams hide that.
 */
#ifndef WEIR_STORE_LANES_H
#define WEIR_STORE_LANES_H

#include <stdint.h>

#include <weir/store/base/rng.h>

#define WEIR_RNG_LANES 4u /* streams that are computed side by side; arrays have room for a multiple of it */

typedef struct weir_rng_lanes {
    const uint64_t *keys;
    const uint64_t *ids;
    uint32_t substream;
    uint32_t count;
} weir_rng_lanes;

/* draws[i * 4 * blocks …]: what 4 * blocks calls of weir_rng_u32 on stream i return. Arrays are read and written up to
 * the next multiple of WEIR_RNG_LANES. */
void weir_rng_lanes_fill(const weir_rng_lanes *streams, uint32_t blocks, uint32_t *draws);
/* The twin that the fast one is tested against. */
void weir_rng_lanes_fill_naive(const weir_rng_lanes *streams, uint32_t blocks, uint32_t *draws);

/* Reads numbers that were filled in, then goes on with the stream they began. */
typedef struct weir_rng_lane {
    const uint32_t *next, *end; /* both NULL: none was filled in */
    weir_rng rest;              /* where the stream goes on      */
} weir_rng_lane;

static inline uint32_t weir_rng_lane_u32(weir_rng_lane *s) {
    return s->next < s->end ? *s->next++ : weir_rng_u32(&s->rest);
}

/* As weir_rng_below of a bound that fits: the same numbers from the same stream. */
static inline uint32_t weir_rng_lane_below(weir_rng_lane *s, uint32_t bound) {
    uint64_t product = (uint64_t)weir_rng_lane_u32(s) * bound;
    if (__builtin_expect((uint32_t)product < bound, 0)) {
        uint32_t surplus = -bound % bound;
        while ((uint32_t)product < surplus)
            product = (uint64_t)weir_rng_lane_u32(s) * bound;
    }
    return (uint32_t)(product >> 32);
}

#endif /* WEIR_STORE_LANES_H */

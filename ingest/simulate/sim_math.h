/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim_math.h - the few functions that a simulation needs, in fixed point.
 *
 * log() and exp() of two C libraries may differ in the last bit, and one bit is enough to choose another
 * merchant; integers give the same stream everywhere (SIMULATE-G1). Q24 means "times 2^24".
 */
#ifndef WEIR_SIM_MATH_H
#define WEIR_SIM_MATH_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/store/base/assert.h>
#include <weir/store/base/rng.h>

#define WEIR_SIM_SECOND 1000000ll
#define WEIR_SIM_MINUTE (60 * WEIR_SIM_SECOND)
#define WEIR_SIM_HOUR   (60 * WEIR_SIM_MINUTE)
#define WEIR_SIM_DAY    (24 * WEIR_SIM_HOUR)
#define WEIR_SIM_WEEK   (7 * WEIR_SIM_DAY)

/* What a random stream is for: two purposes never share numbers. The low 24 bits are free for the purpose. */
typedef enum weir_sim_domain {
    WEIR_SIM_GAP = 1u << 24,
    WEIR_SIM_BASE = 2u << 24,      /* one spontaneous payment           */
    WEIR_SIM_PLANNED = 3u << 24,   /* one planned payment               */
    WEIR_SIM_PERSON = 4u << 24,    /* what an account holder is like    */
    WEIR_SIM_DEVICE = 5u << 24,    /* when a holder buys a new one      */
    WEIR_SIM_HOUSEHOLD = 6u << 24, /* who lives with whom               */
    WEIR_SIM_COMMUNITY = 7u << 24, /* where a neighbourhood is          */
    WEIR_SIM_HABIT = 8u << 24,     /* favourite merchants               */
    WEIR_SIM_CONTACT = 9u << 24,   /* whom a holder sends money to      */
    WEIR_SIM_TRAVEL = 10u << 24,   /* weeks abroad                      */
    WEIR_SIM_MERCHANT = 11u << 24, /* what a merchant is like           */
    WEIR_SIM_OFFER = 12u << 24,    /* the day's promoted merchants      */
    WEIR_SIM_CREW = 13u << 24,     /* what a crew owns                  */
    WEIR_SIM_CAMPAIGN = 14u << 24, /* the plan of one fraud campaign    */
    WEIR_SIM_LABEL = 15u << 24,    /* when and whether a label arrives  */
    WEIR_SIM_SETUP = 16u << 24,    /* tables made at open               */
    WEIR_SIM_SESSION = 17u << 24,  /* one visit of a clicking person    */
    WEIR_SIM_TASTE = 18u << 24,    /* what a person likes               */
    WEIR_SIM_ITEM = 19u << 24,     /* what an item is like              */
    WEIR_SIM_WAYS = 20u << 24,     /* how a kind of fraud goes about    */
    WEIR_SIM_MOVE = 21u << 24,     /* when merchants move, and where to */
    WEIR_SIM_HOME = 22u << 24,     /* when a holder moves, and where to */
    WEIR_SIM_PATTERN = 23u << 24,  /* how long a habit is kept          */
} weir_sim_domain;

typedef struct weir_sim_math {
    uint32_t ln[257];   /* ln(1 + i/256), Q24  */
    uint32_t exp2[257]; /* 2^(i/256), Q24      */
} weir_sim_math;

void weir_sim_math_init(weir_sim_math *math);

#define WEIR_SIM_MEAN_MAX (INT64_C(1) << 38)

/* Exponentially distributed with this mean, at least 1; mean below WEIR_SIM_MEAN_MAX. */
int64_t weir_sim_exponential(const weir_sim_math *math, weir_rng *rng, int64_t mean);
/* median * 2^z, z bell-shaped with a deviation of sigma_q16 / 65536, cut at 3.46 deviations; at least 1. */
uint64_t weir_sim_lognormal(const weir_sim_math *math, weir_rng *rng, uint64_t median, uint32_t sigma_q16);

/* Uniform in [0, bound). One draw, whose bias of bound / 2^32 does not matter here. */
static inline uint32_t weir_sim_below(weir_rng *rng, uint32_t bound) {
    return (uint32_t)(((uint64_t)weir_rng_u32(rng) * bound) >> 32);
}

/* Uniform in [low, high]. */
static inline uint32_t weir_sim_between(weir_rng *rng, uint32_t low, uint32_t high) {
    return low + weir_sim_below(rng, high - low + 1);
}

static inline bool weir_sim_chance(weir_rng *rng, uint32_t per_mille) {
    return weir_sim_below(rng, 1000) < per_mille;
}

/* Uniform in [low, high) for spans below 2^44. */
static inline int64_t weir_sim_span(weir_rng *rng, int64_t low, int64_t high) {
    return low + (int64_t)(((uint64_t)(high - low) >> 12) * weir_rng_u32(rng) >> 20);
}

/* A bijection of [0, count): numbers on cards and devices must not tell who holds them, nor since when. */
typedef struct weir_sim_scramble {
    uint64_t count, multiplier, offset;
    uint32_t digits; /* of the largest number, at least those asked for */
} weir_sim_scramble;

weir_sim_scramble weir_sim_scramble_make(uint64_t seed, uint32_t which, uint64_t count, uint32_t digits_min);

/* count stays below 2^32, so the product fits. */
static inline uint64_t weir_sim_scrambled(const weir_sim_scramble *scramble, uint64_t raw) {
    WEIR_ASSERT(raw < scramble->count);
    return (raw * scramble->multiplier + scramble->offset) % scramble->count;
}

#endif /* WEIR_SIM_MATH_H */

/* SPDX-License-Identifier: Apache-2.0 */
#include "sim_math.h"

#include <weir/store/base/assert.h>

#define LN2_Q24 11629080u
#define LN2_Q32 2977044472u
#define ONE_Q31 (UINT64_C(1) << 31)

/* log2 of mantissa / 2^31, which lies in [1, 2), in Q24: squaring doubles the logarithm, one bit at a time. */
static uint32_t math_log2(uint32_t mantissa) {
    uint64_t x = mantissa;
    uint32_t result = 0;
    for (int bit = 0; bit < 24; bit++) {
        x = x * x >> 31; // SIMULATE-G1: no rounding mode, no library
        result <<= 1;
        if (x >> 32) {
            x >>= 1;
            result |= 1;
        }
    }
    return result;
}

/* 2^(log2_q24 / 2^24) in Q31, found by halving the interval: math_log2 is monotone. */
static uint32_t math_exp2(uint32_t log2_q24) {
    uint64_t low = ONE_Q31;
    uint64_t high = 2 * ONE_Q31 - 1;
    while (low < high) {
        uint64_t middle = (low + high) / 2;
        if (math_log2((uint32_t)middle) < log2_q24)
            low = middle + 1;
        else
            high = middle;
    }
    return (uint32_t)low;
}

void weir_sim_math_init(weir_sim_math *math) {
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t mantissa = (uint32_t)(ONE_Q31 + ((uint64_t)i << 23));
        math->ln[i] = (uint32_t)((uint64_t)math_log2(mantissa) * LN2_Q32 >> 32);
        math->exp2[i] = math_exp2(i << 16) >> 7;
    }
    math->ln[256] = LN2_Q24;
    math->exp2[256] = 2u << 24;
}

/* -ln(x / 2^32) in Q24 for x in [1, 2^32]. */
static uint64_t math_minus_ln(const weir_sim_math *math, uint64_t x) {
    uint32_t shift = (uint32_t)__builtin_clzll(x) - 31; /* brings x to [2^32, 2^33) */
    uint64_t mantissa = x << shift;
    uint32_t index = (uint32_t)(mantissa >> 24) & 255u;
    uint64_t fraction = mantissa & 0xFFFFFFu;
    uint64_t ln = math->ln[index] + ((math->ln[index + 1] - math->ln[index]) * fraction >> 24);
    return (uint64_t)shift * LN2_Q24 - ln;
}

int64_t weir_sim_exponential(const weir_sim_math *math, weir_rng *rng, int64_t mean) {
    WEIR_ASSERT(mean > 0 && mean < WEIR_SIM_MEAN_MAX);
    /* Q20 is fine enough, and leaves room for means of days. */
    uint64_t value = (math_minus_ln(math, (uint64_t)weir_rng_u32(rng) + 1) >> 4) * (uint64_t)mean >> 20;
    return value ? (int64_t)value : 1;
}

uint64_t weir_sim_lognormal(const weir_sim_math *math, weir_rng *rng, uint64_t median, uint32_t sigma_q16) {
    /* The sum of four uniform 16-bit numbers, centred and scaled to a deviation of 1 in Q16: bell-shaped enough for
     * prices and delays, and free of tables. */
    uint32_t a = weir_rng_u32(rng), b = weir_rng_u32(rng);
    int64_t sum = (int64_t)(a >> 16) + (a & 0xFFFFu) + (b >> 16) + (b & 0xFFFFu) - 131070;
    int64_t bell_q16 = sum * 65536 / 37837;
    /* Biased by 64 doublings, so that the split into whole and fraction never sees a negative number. */
    int64_t biased = (INT64_C(64) << 16) + bell_q16 * (int64_t)sigma_q16 / 65536;
    WEIR_ASSERT(biased >= 0);
    uint64_t exponent = (uint64_t)biased;
    uint32_t index = (uint32_t)(exponent >> 8) & 255u;
    uint32_t fraction = (uint32_t)exponent & 255u;
    uint64_t power = math->exp2[index] + ((math->exp2[index + 1] - math->exp2[index]) * fraction >> 8);
    uint64_t whole = exponent >> 16;
    uint64_t value = median * power >> 24;
    value = whole >= 64 ? value << (whole - 64) : value >> (64 - whole);
    return value ? value : 1;
}

static uint64_t math_common_divisor(uint64_t a, uint64_t b) {
    while (b) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

weir_sim_scramble weir_sim_scramble_make(uint64_t seed, uint32_t which, uint64_t count, uint32_t digits_min) {
    WEIR_ASSERT(count > 0 && count <= UINT32_MAX);
    weir_rng rng = weir_rng_stream(seed, which, WEIR_SIM_SETUP | 1u);
    weir_sim_scramble scramble = {.count = count, .digits = digits_min};
    scramble.offset = weir_sim_below(&rng, (uint32_t)count);
    scramble.multiplier = count > 2 ? 1 + weir_sim_below(&rng, (uint32_t)count - 1) : 1;
    while (math_common_divisor(scramble.multiplier, count) != 1) {
        scramble.multiplier = scramble.multiplier % count + 1;
    }
    uint64_t past = 1;
    for (uint32_t digit = 0; digit < digits_min; digit++)
        past *= 10;
    for (; past < count; past *= 10)
        scramble.digits++;
    return scramble;
}

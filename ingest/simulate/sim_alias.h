/* SPDX-License-Identifier: Apache-2.0 */
/* sim_alias.h - draws from a fixed discrete distribution with one look (Walker's alias method, in integers). */
#ifndef WEIR_SIM_ALIAS_H
#define WEIR_SIM_ALIAS_H

#include <stdint.h>

#include <weir/store/base/err.h>

typedef struct weir_sim_alias_entry {
    uint32_t threshold; /* of the low half of the draw: below it the entry itself, else the other */
    uint32_t other;
} weir_sim_alias_entry;

/* Fills entries[0..count) for these weights, whose sum times count stays below 2^63. weights is used up as scratch,
 * stack is scratch of count words. */
void weir_sim_alias_fill(weir_sim_alias_entry *entries, uint64_t *weights, uint32_t *stack, uint32_t count);

/* Zipf-Mandelbrot; flat is at least 1. */
static inline uint64_t weir_sim_zipf_weight(uint32_t rank, uint32_t flat) {
    return (UINT64_C(1) << 32) / ((uint64_t)rank + flat);
}

/* The weights of ranks 0 to count - 1. */
void weir_sim_zipf_weights(uint64_t *weights, uint32_t count, uint32_t flat);

static inline uint32_t weir_sim_alias_pick(const weir_sim_alias_entry *entries, uint32_t count, uint32_t draw) {
    uint64_t product = (uint64_t)draw * count;
    uint32_t index = (uint32_t)(product >> 32);
    return (uint32_t)product < entries[index].threshold ? index : entries[index].other;
}

#endif /* WEIR_SIM_ALIAS_H */

/* SPDX-License-Identifier: Apache-2.0 */
#include "sim_alias.h"

#include <weir/store/base/assert.h>

void weir_sim_zipf_weights(uint64_t *weights, uint32_t count, uint32_t flat) {
    WEIR_ASSERT(flat > 0);
    for (uint32_t rank = 0; rank < count; rank++)
        weights[rank] = weir_sim_zipf_weight(rank, flat);
}

/* weight * 2^32 / average, cut at what 32 bits hold: a full entry is never above its own threshold. */
static uint32_t alias_threshold(uint64_t weight, uint64_t average) {
    uint64_t whole = weight / average;
    if (whole) return UINT32_MAX;
    while (average >> 32) {
        weight >>= 1;
        average >>= 1;
    }
    return (uint32_t)((weight << 32) / average);
}

/* Weights are scaled by count, so that the average is the plain sum and stays whole. Entries below the average stand
 * at the front of the stack, those above at its back; each round fills one of the first from one of the second. */
void weir_sim_alias_fill(weir_sim_alias_entry *entries, uint64_t *weights, uint32_t *stack, uint32_t count) {
    uint64_t average = 0;
    for (uint32_t i = 0; i < count; i++)
        average += weights[i];
    WEIR_ASSERT(count > 0 && average > 0 && average < (UINT64_C(1) << 63) / count);
    uint32_t small = 0;
    uint32_t large = count;
    for (uint32_t i = 0; i < count; i++) {
        weights[i] *= count;
        entries[i] = (weir_sim_alias_entry){UINT32_MAX, i};
        if (weights[i] < average)
            stack[small++] = i;
        else
            stack[--large] = i;
    }
    while (small > 0 && large < count) {
        uint32_t poor = stack[--small];
        uint32_t rich = stack[large];
        entries[poor] = (weir_sim_alias_entry){alias_threshold(weights[poor], average), rich};
        weights[rich] -= average - weights[poor];
        if (weights[rich] < average) {
            large++;
            stack[small++] = rich;
        }
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * set.h - the different values of a window: emptied by counting a round up, so that nothing has to be cleared. Of the
 * slots a round uses as many as its window needs: short windows are the most, and leave the rest of the memory
 * untouched.
 */
#ifndef WEIR_STORE_AGGREGATE_SET_H
#define WEIR_STORE_AGGREGATE_SET_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <weir/store/aggregate/aggregate.h>
#include <weir/store/base/assert.h>

#define WEIR_AGGREGATE_SET_SLOTS (WEIR_AGGREGATE_EDGES * 2u) /* a power of two */

/* Zeroed before its first round. */
typedef struct weir_aggregate_set {
    weir_vertex values[WEIR_AGGREGATE_SET_SLOTS];
    uint32_t rounds[WEIR_AGGREGATE_SET_SLOTS];
    uint32_t round;
    uint32_t mask; /* of the slots that it uses */
} weir_aggregate_set;

/* Empty, for so many values: at most half of the slots. */
static inline void weir_aggregate_set_begin(weir_aggregate_set *set, uint32_t count) {
    uint32_t slots = 2;
    while (slots < 2 * count)
        slots *= 2;
    WEIR_ASSERT(slots <= WEIR_AGGREGATE_SET_SLOTS);
    set->mask = slots - 1;
    if (++set->round) return;
    memset(set->rounds, 0, sizeof set->rounds);
    set->round = 1;
}

/* Whether it is new. There is room: twice as many slots as values. */
static inline bool weir_aggregate_set_add(weir_aggregate_set *set, weir_vertex value) {
    uint64_t slot = (weir_vertex_fold(value) * 0x9E3779B97F4A7C15u) >> 32;
    for (;; slot++) {
        slot &= set->mask;
        if (set->rounds[slot] != set->round) break;
        if (set->values[slot] == value) return false;
    }
    set->values[slot] = value;
    set->rounds[slot] = set->round;
    return true;
}

#endif /* WEIR_STORE_AGGREGATE_SET_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ids.c - a search that guesses: ids are hashes, spread evenly, so a guess by proportion lands near. Ids that are not
 * spread would make each guess gain one place only; so every other step halves.
 */
#include "ids.h"

#define GUESS_FROM 16u

/* Within [low, high): where id would stand if the ids were spread evenly. */
static uint64_t guess(const weir_vertex *ids, uint64_t low, uint64_t high, weir_vertex id) {
    double part = (double)(id - ids[low]) / ((double)(ids[high - 1] - ids[low]) + 1);
    return low + (uint64_t)(part * (double)(high - low - 1));
}

bool weir_ids_find(const weir_vertex *ids, uint64_t count, weir_vertex id, uint64_t *indexp) {
    uint64_t low = 0, high = count;
    for (bool guessing = true; low < high; guessing = !guessing) {
        uint64_t middle = low + (high - low) / 2;
        if (guessing && high - low > GUESS_FROM) {
            if (id < ids[low] || id > ids[high - 1]) return false;
            middle = guess(ids, low, high, id);
        }
        if (ids[middle] == id) {
            *indexp = middle;
            return true;
        }
        if (ids[middle] < id) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return false;
}

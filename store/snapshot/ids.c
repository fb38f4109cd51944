/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ids.c - a search that guesses: ids are hashes, spread evenly, so a guess by proportion lands near. If ids are not
 * spread evenly, a guess may gain one position only; so every other step halves.
 */
#include "ids.h"

#define GUESS_FROM 16u

bool weir_ids_find(const weir_vertex_pair *ids, uint64_t count, weir_vertex id, uint64_t *indexp) {
    uint64_t low = 0, high = count;
    for (bool guessing = true; low < high; guessing = !guessing) {
        uint64_t middle = low + (high - low) / 2;
        if (guessing && high - low > GUESS_FROM) {
            if (id < weir_vertex_of(ids[low]) || id > weir_vertex_of(ids[high - 1])) return false;
            uint64_t first = ids[low].high; /* where id would stand if the ids were spread evenly */
            double part = (double)(weir_vertex_high(id) - first) / ((double)(ids[high - 1].high - first) + 1);
            middle = low + (uint64_t)(part * (double)(high - low - 1));
        }
        weir_vertex met = weir_vertex_of(ids[middle]);
        if (met == id) {
            *indexp = middle;
            return true;
        }
        if (met < id) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return false;
}

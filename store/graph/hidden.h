/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hidden.h - the deletions of edges that a reader of a list has met, newest first: what they hide comes after them. A
 * table with open addressing, so that a list of many thousands is passed in a time that grows with its length only.
 */
#ifndef WEIR_STORE_HIDDEN_H
#define WEIR_STORE_HIDDEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/base/arena.h>
#include <weir/store/entry.h>

/* All zero at first. */
typedef struct weir_hidden {
    struct weir_hidden_edge {
        weir_vertex neighbor;
        uint64_t event; /* 0: all of the neighbour */
        bool used;
    } * edges;
    size_t count, capacity; /* a power of two, or 0 */
    bool neighbors;         /* there is one of all of a neighbour */
    uint64_t steps;         /* places looked at */
} weir_hidden;

/* The table lies in the arena.  WEIR_ELIMIT, WEIR_ENOMEM. */
weir_err weir_hidden_add(weir_hidden *hidden, const weir_entry *deletion, weir_arena *arena);
bool weir_hidden_has(weir_hidden *hidden, const weir_entry *edge);

#endif /* WEIR_STORE_HIDDEN_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hidden.h - the deletions of edges that a reader of a list has met, newest first: what they hide comes after them. A
 * table, so that a list of many thousands is passed in a time that grows with its length only.
 */
#ifndef WEIR_STORE_HIDDEN_H
#define WEIR_STORE_HIDDEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/store/base/table.h>
#include <weir/store/format/entry.h>

/* All zero at first. */
typedef struct weir_hidden {
    weir_table edges;
    bool neighbors; /* there is one of all of a neighbour */
    uint64_t steps; /* searches of the table              */
} weir_hidden;

/* cold: it was met in the cold store. The table lies in the arena.  WEIR_ELIMIT, WEIR_ENOMEM. */
weir_err weir_hidden_add(weir_hidden *hidden, const weir_entry *deletion, bool cold, weir_arena *arena);

typedef enum weir_hidden_by { WEIR_HIDDEN_BY_NONE, WEIR_HIDDEN_BY_DELTAS, WEIR_HIDDEN_BY_COLD } weir_hidden_by;
/* What hides an edge: a deletion of the cold store, which does so without the deltas' too, or of the deltas alone. */
weir_hidden_by weir_hidden_find(weir_hidden *hidden, const weir_entry *edge);

#endif /* WEIR_STORE_HIDDEN_H */

/* SPDX-License-Identifier: Apache-2.0 */
/* gather.h - all that a cold store has of a vertex, in memory: for passes over the store, vertex by vertex. */
#ifndef WEIR_STORE_GATHER_H
#define WEIR_STORE_GATHER_H

#include <weir/store/base/arena.h>
#include <weir/store/engine/engine.h>
#include <weir/store/format/bundle.h>
#include <weir/store/format/entry.h>

typedef struct weir_gathered {
    weir_list list;
    weir_entry entry;
} weir_gathered;

/* The cursor is the caller's, and so is what it may hold of one vertex. */
typedef struct weir_gather {
    weir_engine_cursor *cursor;
    size_t entries_max, rows_max;
    weir_arena *rows; /* those of the entries, and the name's key */
    weir_vertex vertex;
    weir_gathered *of; /* lists rising, each newest first, each record once */
    size_t count, capacity;
    uint64_t bytes; /* of its bundles */
    bool named;
    weir_name name;
} weir_gather;

/* rows_bytes: of memory, above rows_max by what a bundle may have.  WEIR_ENOMEM. */
weir_err weir_gather_open(weir_engine_cursor *cursor, size_t entries_max, size_t rows_max, size_t rows_bytes,
                          weir_gather *gather);
void weir_gather_close(weir_gather *gather);
/* The vertex at whose first bundle the cursor stands. *largep: it has more than may be held, and what is held is not
 * whole; else the cursor stands behind it. Believes nothing: each bundle is checked.  WEIR_ECORRUPT; WEIR_ENOMEM; those
 * of the cursor. */
weir_err weir_gather_vertex(weir_gather *gather, weir_vertex vertex, bool *largep);
/* *therep: the cursor stands at a bundle of the vertex at hand. */
weir_err weir_gather_stands(const weir_gather *gather, weir_bundle_key *key, bool *therep);
/* Keeps a name: of several, which say the same, the newest.  WEIR_ENOMEM. */
weir_err weir_gather_keep_name(weir_gather *gather, const weir_name *name);

#endif /* WEIR_STORE_GATHER_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cold.h - the lists of a vertex as the cold store has them: bundles of many seals (bundle.h), read as one list.
 *
 * A cursor is the caller's; each function seeks with it and leaves it where it likes. Errors are those of the cursor;
 * WEIR_ECORRUPT for a bundle that cannot be read; WEIR_EBUSY, WEIR_ETIMEOUT as weir_graph_budget says, of which each
 * bundle that is passed takes a step; and what the arena has no room for.
 */
#ifndef WEIR_STORE_COLD_H
#define WEIR_STORE_COLD_H

#include <weir/store/base/arena.h>
#include <weir/store/engine/engine.h>
#include <weir/store/format/entry.h>
#include <weir/store/graph/graph.h>

/* Which part of lists: what is older than before_us, and, if `after` is given, what a reader meets behind it; or, with
 * it, from it on. */
typedef struct weir_cold_query {
    weir_vertex vertex;
    int64_t before_us;
    const weir_entry *after;
    bool with_it;
    weir_graph_budget *budget; /* NULL: any */
} weir_cold_query;

/* The first entries of that part of a list, newest first, each once. If it is `bounded`, what comes behind the first
 * that is as old as newer_than_us, or older, is not wanted, but for `least` that are older than least_before_us. */
typedef struct weir_cold_page {
    weir_list list;
    size_t capacity; /* entries that are wanted at most */
    bool bounded;
    size_t least;
    int64_t least_before_us, newer_than_us;
    weir_entry *entries; /* with room for so many, in the caller's memory; where that is not enough, in the arena */
    size_t room;
    weir_arena *arena; /* of rows, too; NULL: the room is enough, and the list has no rows */
    bool if_it_fits;   /* what the arena has no room for is no error, but `lost` */
    size_t count;
    bool more;         /* there may be more behind them */
    uint64_t gap_rank; /* cold.c's: of lesser ranks nothing was passed over */
    bool lost;         /* nothing is known of the list */
} weir_cold_page;

weir_err weir_cold_list(weir_engine_cursor *cursor, const weir_cold_query *query, weir_cold_page *page);
/* A cursor for the files that may have something of the vertex that is no newer than latest_us. */
weir_err weir_cold_files(weir_engine *engine, weir_vertex vertex, int64_t latest_us, weir_engine_cursor **cursorp);
/* The same of several lists (rising) in one pass, without a cursor: file by file, the newest first, and no further than
 * they need. Then what is behind a page is not looked for: there may be more. Not for notes of events: files do not say
 * how old those are. */
weir_err weir_cold_newest(weir_engine *engine, const weir_cold_query *query, weir_cold_page *pages, size_t count);
/* The time of the oldest entry, no deletion, of any of the lists (rising), that is newer than newer_than_us (INT64_MIN:
 * of all). *foundp: there is one. */
weir_err weir_cold_oldest(weir_engine *engine, weir_vertex vertex, const weir_list *lists, size_t count,
                          int64_t newer_than_us, weir_graph_budget *budget, bool *foundp, int64_t *time_usp);
/* The key is borrowed until the cursor moves. */
weir_err weir_cold_name(weir_engine_cursor *cursor, weir_vertex vertex, weir_name *namep, bool *foundp);
/* Every record that the cursor, for scans, sees: first those of the store itself and the deletions, then vertex by
 * vertex, the lists rising and each newest first, then the name. Believes nothing: each bundle is checked. */
weir_err weir_cold_scan(weir_engine_cursor *cursor, weir_graph_visit visit, void *context);
/* All records of a kind that are not in bundles, in their order: offsets, deletions, what the store says of itself.
 * What visit returns.  [any] */
weir_err weir_cold_scan_kind(weir_engine *engine, char kind, weir_graph_visit visit, void *context);

/* WEIR_ECORRUPT, for files that read bundles themselves. */
weir_err weir_cold_damaged(weir_vertex vertex);

#endif /* WEIR_STORE_COLD_H */

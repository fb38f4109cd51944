/* SPDX-License-Identifier: Apache-2.0 */
/*
 * walk.h - whom a walk along relations meets: from a vertex to its neighbours, from these to theirs, as of a time.
 *
 *   A step goes from at most WEIR_AGGREGATE_WALK vertices, of each along its newest WEIR_AGGREGATE_WALK_EDGES edges of
 *   the window. A vertex with more than `crowd` different neighbours among these is a place and no tie: it leads
 *   nowhere. A vertex is met once in a walk, its beginning never. Of those that a step meets, the last met go on:
 *   those of the newest edges, of one time as they are met.
 *   An ordered walk goes back in time: of a vertex that was met by an edge of time m, those edges lead on that are of
 *   m - window <= time <= m; of several edges by which it was met the newest counts. They are looked for as of the
 *   target's time, too, so that what was deleted since, or is forgotten, is not seen. With a share, an edge of the
 *   aggregate's relation is compared with the last one of that relation on the way to it, which is newer, and leads
 *   nowhere if that has another share of its number, or if it has none; then it does not count for a crowd, either.
 *
 * THREADS: [owner], as the source is.
 */
#ifndef WEIR_STORE_AGGREGATE_WALK_H
#define WEIR_STORE_AGGREGATE_WALK_H

#include <math.h>

#include "set.h"

typedef struct weir_walk weir_walk;

/* As the source calls it. */
static inline weir_vertex weir_aggregate_neighbor_at(const weir_sample_source *source, const weir_sample_window *window,
                                                     uint32_t i) {
    const uint8_t *at = window->neighbors + (size_t)i * window->stride;
    weir_vertex id;
    uint64_t index;
    if (source->wide) {
        memcpy(&id, at, sizeof id);
        return id;
    }
    memcpy(&index, at, sizeof index);
    return index;
}

/* Whom a walk has met, called as the source calls them; valid until the next walk. A plain value. */
typedef struct weir_walk_met {
    const uint64_t *vertices; /* over arrays; one of the two is NULL */
    const weir_vertex *ids;   /* over a graph                        */
    const int64_t *before_us, *since_us;
    const int64_t *upto_us; /* newer edges do not count */
    const float *numbers;   /* with a share, of the last edge compared on the way to each; NaN: none yet */
    uint32_t count;         /* at most WEIR_AGGREGATE_WALK */
    uint32_t steps;         /* that have met anybody */
    uint16_t type;
} weir_walk_met;

/* Whether an edge of this number leads on from one of that; newer: NaN: it is the first. */
static inline bool weir_walk_leads(const weir_schema_share *share, float newer, float older) {
    if (isnan(newer)) return !isnan(older);
    return (double)newer >= share->least * (double)older && (double)newer <= share->most * (double)older;
}

/* All are borrowed; a walk begins rounds of its own in the set.  WEIR_ENOMEM. */
weir_err weir_walk_open(const weir_schema *schema, weir_sample_source *source, weir_aggregate_set *set,
                        weir_walk **walkp);
void weir_walk_close(weir_walk *walk); /* NULL is allowed */
/* Along aggregate->through from a vertex of the type at which that begins, by edges of since_us <= time < before_us;
 * ordered, that is the first step's.
 * WEIR_ENOMEM; errors of the source. */
weir_err weir_walk_go(weir_walk *walk, const weir_schema_aggregate *aggregate, weir_vertex from, int64_t since_us,
                      int64_t before_us, weir_walk_met *metp);

#endif /* WEIR_STORE_AGGREGATE_WALK_H */

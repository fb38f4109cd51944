/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seen.c - what the targets of a snapshot see: a target sees what is older than itself and has not ended by then.
 *
 * A deletion of time d hides what is of time d or older from targets after d, so that ends at d + 1; what was put at d
 * itself is never visible. A snapshot without deleted things has nothing that a deletion ends, for any target.
 */
#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>

#include "draft.h"

/* --- deletions of vertices --------------------------------------------------------------------------------------- */

/* They come by vertex and time. */
static weir_err draft_keep_deletion(void *context, weir_vertex vertex, int64_t time_us) {
    weir_snapshot_draft *draft = context;
    weir_draft_deletions *d = &draft->deletions;
    if (time_us >= draft->as_of_us) return WEIR_OK; /* SNAPSHOT-Z3: of deletions too */
    size_t of_vertices = d->capacity;
    if (!WEIR_GROW(d->vertices, of_vertices, d->count) || !WEIR_GROW(d->times, d->capacity, d->count))
        return WEIR_NOMEM("for the deletions of the graph");
    WEIR_ASSERT(d->count == 0 || d->vertices[d->count - 1] <= vertex); /* they are searched */
    d->vertices[d->count] = vertex;
    d->times[d->count++] = time_us;
    return WEIR_OK;
}

weir_err weir_draft_deletions_read(weir_snapshot_draft *draft) {
    return weir_graph_deletions(draft->graph, draft_keep_deletion, draft);
}

const int64_t *weir_draft_deletions_of(const weir_snapshot_draft *draft, weir_vertex vertex, size_t *countp) {
    const weir_draft_deletions *d = &draft->deletions;
    size_t low = 0, high = d->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (d->vertices[middle] < vertex) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    *countp = 0;
    while (low + *countp < d->count && d->vertices[low + *countp] == vertex)
        ++*countp;
    return *countp ? d->times + low : NULL;
}

/* --- who sees what ----------------------------------------------------------------------------------------------- */

/* The first time for which the snapshot is complete; INT64_MIN: any. */
static int64_t draft_from_us(const weir_snapshot_draft *draft) {
    int64_t from_us;
    bool all = draft->opts->history_us == 0 || __builtin_sub_overflow(draft->age_us, draft->opts->history_us, &from_us);
    return all || from_us < draft->whole_us ? draft->whole_us : from_us;
}

/* The later of what the build keeps and what a `history` of the schema reaches; 0: any time. */
static int64_t draft_reached_from_us(const weir_snapshot_draft *draft, int64_t history_us) {
    int64_t from_us = draft_from_us(draft), reached_us;
    if (!history_us || __builtin_sub_overflow(draft->reach_us, history_us, &reached_us)) return from_us;
    return reached_us > from_us ? reached_us : from_us;
}

int64_t weir_draft_type_from_us(const weir_snapshot_draft *draft, uint32_t type) {
    return draft_reached_from_us(draft, weir_schema_vertex_at(draft->schema, type)->history_us);
}

int64_t weir_draft_relation_from_us(const weir_snapshot_draft *draft, uint32_t relation) {
    return draft_reached_from_us(draft, weir_schema_relation_at(draft->schema, relation)->history_us);
}

int64_t weir_draft_all_from_us(const weir_snapshot_draft *draft) {
    int64_t from_us = draft_from_us(draft);
    for (uint32_t i = 0; i < weir_schema_vertex_count(draft->schema); i++) {
        int64_t type_us = weir_draft_type_from_us(draft, i);
        if (type_us > from_us) from_us = type_us;
    }
    for (uint32_t i = 0; i < weir_schema_relation_count(draft->schema); i++) {
        int64_t relation_us = weir_draft_relation_from_us(draft, i);
        if (relation_us > from_us) from_us = relation_us;
    }
    return from_us;
}

int64_t weir_draft_gone_us(const weir_snapshot_draft *draft, uint32_t relation) {
    int64_t expire_us = weir_schema_relation_at(draft->schema, relation)->expire_us;
    int64_t from_us = weir_draft_relation_from_us(draft, relation), gone_us;
    bool never = expire_us == 0 || from_us == INT64_MIN || __builtin_sub_overflow(from_us, expire_us, &gone_us);
    return never ? INT64_MIN : gone_us;
}

bool weir_draft_sees(const weir_snapshot_draft *draft, int64_t from_us, int64_t time_us, int64_t until_us,
                     bool deleted) {
    if (until_us <= from_us || (deleted && draft->opts->without_deleted)) return false;
    return until_us == INT64_MAX || time_us < until_us - 1;
}

/* The first deletion that hides an edge at one of its ends. */
static void draft_end_at(const weir_snapshot_draft *draft, weir_vertex end, weir_spill_record *record) {
    size_t count;
    const int64_t *times = weir_draft_deletions_of(draft, end, &count);
    for (size_t i = 0; i < count; i++) {
        if (times[i] < record->time_us) continue;
        if (times[i] < record->until_us) record->until_us = times[i] + 1;
        return;
    }
}

weir_err weir_draft_next_edge(const weir_snapshot_draft *draft, uint32_t relation, weir_merge *merge,
                              weir_spill_record *recordp, bool *foundp) {
    int64_t from_us = weir_draft_relation_from_us(draft, relation);
    for (;;) {
        weir_err err = weir_merge_next(merge, recordp, foundp);
        if (err || !*foundp || draft->deletions.count == 0) return err;
        draft_end_at(draft, recordp->vertex, recordp);
        draft_end_at(draft, recordp->neighbor, recordp);
        bool deleted = recordp->until_us != INT64_MAX;
        if (weir_draft_sees(draft, from_us, recordp->time_us, recordp->until_us, deleted)) return WEIR_OK;
    }
}

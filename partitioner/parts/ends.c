/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ends.c - aggregates of ends that look further than a part does. The rank that owns a target computes its row, and a
 * walk of some hops leads nearly everywhere: so they are computed here, while all edges are at hand, for each life as
 * of the put that begins it, which is when a vertex is a target. They are written as they come: of a part's lives, and
 * of some at a time, so that their memory does not depend on how many there are.
 */
#include <math.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>

#include "plan.h"

#define ENDS_AT_ONCE   64u
#define ENDS_NO_MEMORY "for aggregates that parts bring"

bool weir_parts_bring(const weir_schema_aggregate *aggregate, uint32_t parts, uint32_t depth) {
    return parts > 1 && weir_aggregates_hops(aggregate) > depth;
}

weir_err weir_parts_ends_open(const weir_snapshot *snapshot, weir_parts_ends *ends) {
    *ends = (weir_parts_ends){.source = NULL};
    weir_err err = weir_sample_over_snapshot(snapshot, &ends->source);
    return err ? err : weir_aggregates_open(weir_snapshot_schema(snapshot), ends->source, &ends->aggregates);
}

void weir_parts_ends_close(weir_parts_ends *ends) {
    weir_aggregates_close(ends->aggregates);
    weir_sample_source_close(ends->source);
}

/* Lives of one type that wait to be computed. */
typedef struct ends_batch {
    const weir_parts_draft *draft;
    weir_npy_writer *writers[WEIR_SCHEMA_AGGREGATES_MAX]; /* by aggregate; NULL: a part has its edges */
    double *values;                                       /* ENDS_AT_ONCE × the aggregates of the type */
    uint64_t vertices[ENDS_AT_ONCE], events[ENDS_AT_ONCE];
    int64_t before_us[ENDS_AT_ONCE];
    uint32_t count;
    uint16_t type;
} ends_batch;

static weir_err ends_compute(ends_batch *b) {
    const weir_schema *schema = weir_snapshot_schema(b->draft->snapshot);
    const weir_sample_vertices of = {.vertices = b->vertices,
                                     .before_us = b->before_us,
                                     .events = b->events,
                                     .count = b->count,
                                     .type = b->type,
                                     .targets = true};
    const size_t columns = weir_aggregates_count(schema, b->type);
    double numbers[ENDS_AT_ONCE];
    weir_err err = b->count ? weir_aggregates_read(b->draft->ends.aggregates, &of, b->values) : WEIR_OK;
    for (uint32_t i = 0, column = 0; !err && i < weir_schema_aggregate_count(schema); i++) {
        if (weir_schema_aggregate_at(schema, i)->vertex != b->type) continue;
        for (uint32_t row = 0; row < b->count; row++)
            numbers[row] = b->values[row * columns + column];
        column++;
        if (b->writers[i]) err = weir_npy_write(b->writers[i], numbers, b->count);
    }
    b->count = 0;
    return err;
}

static weir_err ends_of_vertex(ends_batch *b, uint64_t vertex) {
    const weir_snapshot *snapshot = b->draft->snapshot;
    const weir_snapshot_spans *lives = &weir_snapshot_vertices_of(snapshot, b->type)->lives;
    weir_err err = WEIR_OK;
    for (int64_t life = lives->indptr[vertex]; !err && life < lives->indptr[vertex + 1]; life++) {
        const int64_t put_us = lives->times[life];
        b->vertices[b->count] = vertex;
        b->before_us[b->count] = put_us;
        err = weir_snapshot_event_of_put(snapshot, b->type, vertex, put_us, &b->events[b->count++]);
        if (!err && b->count == ENDS_AT_ONCE) err = ends_compute(b);
    }
    return err;
}

/* *anyp: of this type there are any. */
static weir_err ends_open_writers(ends_batch *b, const char *folder, uint64_t lives, bool *anyp) {
    const weir_parts_draft *draft = b->draft;
    const weir_schema *schema = weir_snapshot_schema(draft->snapshot);
    char path[WEIR_PARTS_PATH_MAX];
    weir_err err = WEIR_OK;
    *anyp = false;
    for (uint32_t i = 0; !err && i < weir_schema_aggregate_count(schema); i++) {
        const weir_schema_aggregate *aggregate = weir_schema_aggregate_at(schema, i);
        if (aggregate->vertex != b->type || !weir_parts_bring(aggregate, draft->opts->parts, draft->opts->depth))
            continue;
        err = weir_parts_path(draft, path, "%s/aggregate.%s.npy", folder, aggregate->name);
        if (!err) err = weir_npy_writer_open(path, WEIR_NPY_F64, lives, 0, &b->writers[i]);
        *anyp = true;
    }
    return err;
}

/* The part is not asked about vertices that it does not own. */
static weir_err ends_of_others(const ends_batch *b, uint64_t lives) {
    const double none = (double)NAN;
    weir_err err = WEIR_OK;
    for (uint32_t i = 0; i < WEIR_SCHEMA_AGGREGATES_MAX; i++)
        while (!err && b->writers[i] && weir_npy_written(b->writers[i]) < lives)
            err = weir_npy_write(b->writers[i], &none, 1);
    return err;
}

weir_err weir_parts_ends_write(const weir_parts_draft *draft, const char *folder, uint32_t type, uint64_t lives) {
    const weir_schema *schema = weir_snapshot_schema(draft->snapshot);
    const weir_parts_here *here = &draft->local.here[type];
    bool any;
    ends_batch *b = weir_calloc(1, sizeof *b);
    if (!b) return WEIR_NOMEM(ENDS_NO_MEMORY);
    b->draft = draft;
    b->type = (uint16_t)type;
    weir_err err = ends_open_writers(b, folder, lives, &any);
    if (!err && any) {
        b->values = weir_calloc((size_t)ENDS_AT_ONCE * weir_aggregates_count(schema, type), sizeof *b->values);
        if (!b->values) err = WEIR_NOMEM(ENDS_NO_MEMORY);
        for (size_t i = 0; !err && i < here->own; i++)
            err = ends_of_vertex(b, (uint64_t)here->vertices[i]);
        if (!err) err = ends_compute(b);
        if (!err) err = ends_of_others(b, lives);
    }
    for (uint32_t i = 0; i < weir_schema_aggregate_count(schema); i++)
        err = weir_npy_writer_end(b->writers[i], err);
    weir_free(b->values);
    weir_free(b);
    return err;
}

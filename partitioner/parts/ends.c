/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ends.c - aggregates of ends that look further than a part does. The rank that owns a target computes its row, and a
 * walk of some hops leads nearly everywhere: so they are computed here, while all edges are at hand, for each life as
 * of the put that begins it, which is when a vertex is a target.
 */
#include <weir/store/aggregate/aggregate.h>
#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>

#include "plan.h"

#define ENDS_AT_ONCE   64u
#define ENDS_NO_MEMORY "for aggregates that parts bring"

bool weir_parts_bring(const weir_schema_aggregate *aggregate, uint32_t parts, uint32_t depth) {
    return parts > 1 && weir_aggregates_hops(aggregate) > depth;
}

/* Lives of one type that wait to be computed. */
typedef struct ends_batch {
    const weir_snapshot *snapshot;
    weir_aggregates *aggregates;
    weir_parts_ends *ends;
    double *values; /* ENDS_AT_ONCE × the aggregates of the type */
    uint64_t vertices[ENDS_AT_ONCE], events[ENDS_AT_ONCE];
    int64_t before_us[ENDS_AT_ONCE];
    uint64_t first; /* the place of the first life */
    uint32_t count;
    uint16_t type;
} ends_batch;

static weir_err ends_compute(ends_batch *b) {
    const weir_schema *schema = weir_snapshot_schema(b->snapshot);
    const weir_sample_vertices of = {.vertices = b->vertices,
                                     .before_us = b->before_us,
                                     .events = b->events,
                                     .count = b->count,
                                     .type = b->type,
                                     .targets = true};
    const size_t columns = weir_aggregates_count(schema, b->type);
    weir_err err = weir_aggregates_read(b->aggregates, &of, b->values);
    for (uint32_t i = 0, column = 0; !err && i < weir_schema_aggregate_count(schema); i++) {
        if (weir_schema_aggregate_at(schema, i)->vertex != b->type) continue;
        for (uint32_t row = 0; b->ends->values[i] && row < b->count; row++)
            b->ends->values[i][b->first + row] = b->values[row * columns + column];
        column++;
    }
    b->first += b->count;
    b->count = 0;
    return err;
}

static weir_err ends_of_type(ends_batch *b) {
    const weir_snapshot_vertices *v = weir_snapshot_vertices_of(b->snapshot, b->type);
    weir_err err = WEIR_OK;
    b->first = 0;
    for (uint64_t vertex = 0; !err && vertex < v->count; vertex++) {
        for (int64_t life = v->lives.indptr[vertex]; !err && life < v->lives.indptr[vertex + 1]; life++) {
            const int64_t put_us = v->lives.times[life];
            b->vertices[b->count] = vertex;
            b->before_us[b->count] = put_us;
            err = weir_snapshot_event_of_put(b->snapshot, b->type, vertex, put_us, &b->events[b->count]);
            b->count++;
            if (!err && b->count == ENDS_AT_ONCE) err = ends_compute(b);
        }
    }
    if (!err && b->count > 0) err = ends_compute(b);
    WEIR_ASSERT(err || b->first == v->lives.count);
    return err;
}

/* Rooms for those that look further; *anyp: of this type there are any. */
static weir_err ends_make_room(const weir_snapshot *snapshot, uint32_t parts, uint32_t depth, uint32_t type,
                               weir_parts_ends *ends, bool *anyp) {
    const weir_schema *schema = weir_snapshot_schema(snapshot);
    const size_t lives = weir_snapshot_vertices_of(snapshot, type)->lives.count;
    *anyp = false;
    for (uint32_t i = 0; i < weir_schema_aggregate_count(schema); i++) {
        const weir_schema_aggregate *aggregate = weir_schema_aggregate_at(schema, i);
        if (aggregate->vertex != type || !weir_parts_bring(aggregate, parts, depth)) continue;
        ends->values[i] = weir_calloc(lives + 1, sizeof *ends->values[i]);
        if (!ends->values[i]) return WEIR_NOMEM(ENDS_NO_MEMORY);
        *anyp = true;
    }
    return WEIR_OK;
}

weir_err weir_parts_ends_open(const weir_snapshot *snapshot, uint32_t parts, uint32_t depth, weir_parts_ends *ends) {
    const weir_schema *schema = weir_snapshot_schema(snapshot);
    weir_sample_source *source = NULL;
    *ends = (weir_parts_ends){{NULL}};
    ends_batch *b = weir_calloc(1, sizeof *b);
    if (!b) return WEIR_NOMEM(ENDS_NO_MEMORY);
    b->snapshot = snapshot;
    b->ends = ends;
    weir_err err = weir_sample_over_snapshot(snapshot, &source);
    if (!err) err = weir_aggregates_open(schema, source, &b->aggregates);
    for (b->type = 0; !err && b->type < weir_schema_vertex_count(schema); b->type++) {
        bool any;
        err = ends_make_room(snapshot, parts, depth, b->type, ends, &any);
        if (err || !any) continue;
        b->values = weir_calloc((size_t)ENDS_AT_ONCE * weir_aggregates_count(schema, b->type), sizeof *b->values);
        err = b->values ? ends_of_type(b) : WEIR_NOMEM(ENDS_NO_MEMORY);
        weir_free(b->values);
    }
    weir_aggregates_close(b->aggregates);
    weir_sample_source_close(source);
    weir_free(b);
    return err; /* what there is of the values is the caller's to close */
}

void weir_parts_ends_close(weir_parts_ends *ends) {
    for (uint32_t i = 0; i < WEIR_SCHEMA_AGGREGATES_MAX; i++)
        weir_free(ends->values[i]);
}

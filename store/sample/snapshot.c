/* SPDX-License-Identifier: Apache-2.0 */
/* snapshot.c - a snapshot as arrays for the sampler: nothing is copied but the table of where they lie. */
#include <weir/store/base/alloc.h>
#include <weir/store/snapshot/snapshot.h>

#include "sampler_private.h"

/* What weir_sample_over_arrays borrows; it goes with the source. */
typedef struct snapshot_tables {
    uint32_t types, relations;
    weir_sample_ends *ends;
    weir_sample_csr *csrs;
    const uint64_t **ids; /* low halves */
    uint64_t *vertices;
    const float ***features; /* relation * 2 + direction */
    const int32_t ***codes;
} snapshot_tables;

static void snapshot_tables_free(void *tables) {
    snapshot_tables *t = tables;
    for (uint32_t i = 0; t->features && i < 2 * t->relations; i++)
        weir_free(t->features[i]);
    for (uint32_t i = 0; t->codes && i < 2 * t->relations; i++)
        weir_free(t->codes[i]);
    weir_free(t->features);
    weir_free(t->codes);
    weir_free(t->ends);
    weir_free(t->csrs);
    weir_free(t->ids);
    weir_free(t->vertices);
    weir_free(t);
}

/* Where pairs were loaded, two columns are read with one stride. */
static weir_err snapshot_tables_fill_csr(snapshot_tables *t, const weir_snapshot *snapshot, uint32_t relation,
                                         weir_direction direction) {
    const weir_snapshot_edges *e = weir_snapshot_edges_of(snapshot, relation, direction);
    const weir_sample_ends *ends = &t->ends[relation];
    const uint64_t *own = t->ids[direction == WEIR_OUT ? ends->from : ends->to];
    uint32_t at = 2 * relation + direction;
    bool paired = e->vertex_pairs != NULL;
    t->csrs[at] = (weir_sample_csr){
        .indptr = paired ? e->vertex_pairs : e->indptr,
        .ids = paired ? (const uint64_t *)(e->vertex_pairs + 1) : own,
        .neighbors = paired ? e->edge_pairs : e->neighbors,
        .times = paired ? e->edge_pairs + 1 : e->times,
        .vertex_stride = paired ? 16 : 8,
        .id_stride = sizeof(weir_vertex_pair), /* also that of pairs */
        .edge_stride = paired ? 16 : 8,
        .events = e->events,
        .until_us = e->until_us,
        .feature_count = e->column_count,
        .vertices = e->vertices,
        .edges = e->edges,
        .newest_us = e->newest_us,
        .expire_us = e->expire_us,
    };
    t->csrs[at].features = t->features[at] = weir_calloc(e->column_count + 1, sizeof *t->features[at]);
    t->csrs[at].codes = t->codes[at] = weir_calloc(e->column_count + 1, sizeof *t->codes[at]);
    if (!t->features[at] || !t->codes[at]) return WEIR_NOMEM("for a source of samples");
    for (uint32_t i = 0; i < e->column_count; i++) {
        t->features[at][i] = e->columns[i].numbers;
        t->codes[at][i] = e->columns[i].codes;
    }
    return WEIR_OK;
}

static weir_err snapshot_tables_fill(snapshot_tables *t, const weir_snapshot *snapshot) {
    const weir_schema *schema = weir_snapshot_schema(snapshot);
    uint32_t types = t->types, relations = t->relations;
    weir_err err = WEIR_OK;
    t->ends = weir_calloc(relations + 1, sizeof *t->ends);
    t->csrs = weir_calloc(2 * relations + 1, sizeof *t->csrs);
    t->ids = weir_calloc(types + 1, sizeof *t->ids);
    t->vertices = weir_calloc(types + 1, sizeof *t->vertices);
    t->features = weir_calloc(2 * relations + 1, sizeof *t->features);
    t->codes = weir_calloc(2 * relations + 1, sizeof *t->codes);
    if (!t->ends || !t->csrs || !t->ids || !t->vertices || !t->features || !t->codes)
        return WEIR_NOMEM("for a source of samples");
    for (uint32_t i = 0; i < types; i++) {
        t->ids[i] = &weir_snapshot_vertices_of(snapshot, i)->ids->low;
        t->vertices[i] = weir_snapshot_vertices_of(snapshot, i)->count;
    }
    for (uint32_t i = 0; !err && i < relations; i++) {
        const weir_schema_relation *r = weir_schema_relation_at(schema, i);
        t->ends[i] = (weir_sample_ends){(uint16_t)r->from, (uint16_t)r->to};
        err = snapshot_tables_fill_csr(t, snapshot, i, WEIR_OUT);
        if (!err) err = snapshot_tables_fill_csr(t, snapshot, i, WEIR_IN);
    }
    return err;
}

weir_err weir_sample_over_snapshot(const weir_snapshot *snapshot, weir_sample_source **sourcep) {
    const weir_schema *schema = weir_snapshot_schema(snapshot);
    *sourcep = NULL;
    snapshot_tables *t = weir_calloc(1, sizeof *t);
    if (!t) return WEIR_NOMEM("for a source of samples");
    t->types = weir_schema_vertex_count(schema);
    t->relations = weir_schema_relation_count(schema);
    weir_err err = snapshot_tables_fill(t, snapshot);
    const weir_sample_arrays arrays = {.types = t->types,
                                       .relations = t->relations,
                                       .ends = t->ends,
                                       .csrs = t->csrs,
                                       .ids = t->ids,
                                       .vertices = t->vertices,
                                       .id_stride = sizeof(weir_vertex_pair)};
    if (!err) err = weir_sample_over_arrays(&arrays, sourcep);
    if (err) {
        snapshot_tables_free(t);
        return err;
    }
    weir_sample_arrays_own(*sourcep, t, snapshot_tables_free);
    return WEIR_OK;
}

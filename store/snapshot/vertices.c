/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vertices.c - which vertices exist, numbered by their ids within their type.
 *
 * A vertex is in the snapshot if a target sees one of its lives or edges. Each source of ids is an ascending run; the
 * runs of a type are merged. So a number depends on the set of ids only, not on shards or order.
 */
#include <stdio.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/file.h>

#include "along.h"
#include "ids.h"

/* --- runs -------------------------------------------------------------------------------------------------------- */

/* How many runs each type has. */
typedef struct vertex_runs {
    weir_snapshot_draft *draft;
    uint32_t *counts;
} vertex_runs;

static weir_err runs_open_run(vertex_runs *r, uint32_t type, weir_spill **runp) {
    char name[64];
    snprintf(name, sizeof name, "run.%u", type);
    return weir_spill_open(r->draft->spill, name, r->counts[type]++, runp);
}

/* The ids of the vertices with edges, each once; and how many edges there are. */
static weir_err runs_of_edges(vertex_runs *r, uint32_t relation, weir_direction direction) {
    weir_snapshot_draft *draft = r->draft;
    const weir_schema_relation *of = weir_schema_relation_at(draft->schema, relation);
    weir_draft_direction *counted = &draft->directions[relation * 2 + direction];
    char spill[64];
    weir_merge *merge = NULL;
    weir_spill *run = NULL;
    weir_spill_record record, last = {.vertex = 0};
    bool found = true, any = false;
    snprintf(spill, sizeof spill, "edges.%u", relation * 2 + direction);
    weir_err err = runs_open_run(r, direction == WEIR_OUT ? of->from : of->to, &run);
    if (!err) err = weir_merge_open(draft->spill, spill, draft->shards, &merge);
    while (!err && found) {
        err = weir_draft_next_edge(draft, relation, merge, &record, &found);
        if (err || !found) break;
        WEIR_ASSERT(!any || record.vertex >= last.vertex); /* runs rise */
        if (counted->edges == 0 || record.time_us < counted->oldest_us) counted->oldest_us = record.time_us;
        if (counted->edges == 0 || record.time_us > counted->newest_us) counted->newest_us = record.time_us;
        counted->edges++;
        counted->deleted += record.until_us != INT64_MAX;
        if (any && record.vertex == last.vertex) continue;
        any = true;
        last = (weir_spill_record){.vertex = record.vertex};
        err = weir_spill_add(run, &last);
    }
    weir_merge_close(merge);
    weir_err_keep(&err, weir_spill_close(run));
    return err;
}

/* A vertex that was put has a name; its puts say whether a target sees one of its lives. */
static weir_err runs_of_names(vertex_runs *r, uint32_t type) {
    weir_spill *run = NULL;
    weir_along names = {.merge = NULL};
    weir_pulse pulse = {.expire_us = 0};
    weir_err err = runs_open_run(r, type, &run);
    if (!err) err = weir_along_open(r->draft, "names", type, &names);
    if (!err) err = weir_pulse_open(r->draft, type, &pulse);
    while (!err && names.found) {
        const weir_spill_record record = {.vertex = names.record.vertex};
        err = weir_pulse_to(&pulse, record.vertex);
        if (!err && weir_pulse_sees_any(&pulse)) err = weir_spill_add(run, &record);
        if (!err) err = weir_along_step(&names);
    }
    weir_err_keep(&err, weir_spill_close(run));
    weir_along_close(&names);
    weir_pulse_close(&pulse);
    return err;
}

/* --- ids --------------------------------------------------------------------------------------------------------- */

/* One walk over a type's runs: counts the ids, and writes them where there is a writer. */
static weir_err vertices_walk_ids(const vertex_runs *r, uint32_t type, weir_npy_writer *writer, uint64_t *countp) {
    weir_merge *merge = NULL;
    weir_spill_record record;
    weir_vertex last = 0;
    bool found = true;
    char name[64];
    *countp = 0;
    snprintf(name, sizeof name, "run.%u", type);
    weir_err err = weir_merge_open(r->draft->spill, name, r->counts[type], &merge);
    while (!err && found) {
        err = weir_merge_next(merge, &record, &found);
        if (err || !found || (*countp > 0 && record.vertex == last)) continue;
        WEIR_ASSERT(*countp == 0 || record.vertex > last);
        last = record.vertex;
        ++*countp;
        const weir_vertex_pair pair = {weir_vertex_high(last), weir_vertex_low(last)};
        if (writer) err = weir_npy_write(writer, &pair, 2);
    }
    weir_merge_close(merge);
    return err;
}

static weir_err vertices_write_ids(const vertex_runs *r, uint32_t type) {
    weir_snapshot_draft *draft = r->draft;
    weir_npy_writer *writer = NULL;
    char path[WEIR_DRAFT_PATH_MAX];
    uint64_t count;
    weir_err err = weir_draft_path(draft, path, "vertices/%s", weir_schema_vertex_at(draft->schema, type)->name);
    if (!err) err = weir_folder_create(path);
    if (!err)
        err = weir_draft_path(draft, path, "vertices/%s/ids.npy", weir_schema_vertex_at(draft->schema, type)->name);
    if (!err) err = vertices_walk_ids(r, type, NULL, &count);
    if (!err) err = weir_npy_writer_open(path, WEIR_NPY_U64, count, 2, &writer);
    if (!err) err = vertices_walk_ids(r, type, writer, &count);
    WEIR_ASSERT(err || weir_npy_written(writer) == 2 * count);
    err = weir_npy_writer_end(writer, err);
    if (err) return err;
    draft->stats.vertices += count;
    return weir_npy_map_open(path, &draft->id_maps[type], &draft->ids[type]);
}

bool weir_draft_find(const weir_snapshot_draft *draft, uint32_t type, weir_vertex id, uint64_t *indexp) {
    WEIR_ASSERT(type < weir_schema_vertex_count(draft->schema));
    return weir_ids_find(draft->ids[type].data, draft->ids[type].shape[0], id, indexp);
}

weir_err weir_draft_vertices(weir_snapshot_draft *draft) {
    uint32_t types = weir_schema_vertex_count(draft->schema);
    vertex_runs r = {draft, weir_calloc(types, sizeof *r.counts)};
    weir_err err = r.counts ? WEIR_OK : WEIR_NOMEM("for the vertex types");
    for (uint32_t i = 0; !err && i < weir_schema_relation_count(draft->schema); i++) {
        err = runs_of_edges(&r, i, WEIR_OUT);
        if (!err) err = runs_of_edges(&r, i, WEIR_IN);
    }
    for (uint32_t type = 0; !err && type < types; type++)
        err = runs_of_names(&r, type);
    for (uint32_t type = 0; !err && type < types; type++)
        err = vertices_write_ids(&r, type);
    weir_free(r.counts);
    return err;
}

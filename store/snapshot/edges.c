/* SPDX-License-Identifier: Apache-2.0 */
/*
 * edges.c - the lists of one relation and direction, written in one pass in the order of its vertices' ids.
 *
 * The edges were counted before, because the files' headers come first. The count is wrong only if a checkpoint was
 * taken while events came in, shard after shard: then an edge may have one end only. Such a half edge is left out, and
 * the direction is written again with the true count.
 */
#include <stdio.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/file.h>
#include <weir/store/base/hash.h>

#include "columns.h"

typedef struct edges_files {
    const weir_snapshot_draft *draft;
    uint32_t relation, own, other; /* vertex types */
    weir_direction direction;
    weir_npy_writer *indptr, *neighbors;
    weir_npy_writer *times, *events, *until; /* NULL: there are none */
    weir_columns *columns;
    weir_columns_texts *texts; /* borrowed */
    uint64_t index;            /* vertices whose list has begun */
    uint64_t edges, halves, sum;
} edges_files;

static void edges_folder(const edges_files *f, char folder[512]) {
    snprintf(folder, 512, "relations/%s/%s", weir_schema_relation_at(f->draft->schema, f->relation)->name,
             f->direction == WEIR_OUT ? "out" : "in");
}

/* --- files ------------------------------------------------------------------------------------------------------- */

bool weir_draft_has_times(const weir_snapshot_draft *draft, uint32_t relation) {
    const weir_draft_direction *both = &draft->directions[2 * relation];
    bool any = both[0].edges || both[1].edges, zero = true;
    for (int i = 0; i < 2; i++) /* of either direction, because a checkpoint may have one end only */
        zero = zero && (both[i].edges == 0 || (both[i].oldest_us == 0 && both[i].newest_us == 0));
    return !any || !zero;
}

bool weir_draft_has_events(const weir_snapshot_draft *draft, uint32_t relation) {
    bool named = draft->opts->events_of && draft->opts->events_of[relation];
    for (uint32_t i = 0; i < weir_schema_label_count(draft->schema); i++) {
        const weir_schema_label *label = weir_schema_label_at(draft->schema, i);
        named = named || (label->on_relation && label->target == relation);
    }
    return named || !draft->opts->without_events;
}

static weir_err edges_files_open(edges_files *f, uint64_t edges) {
    const weir_draft_direction *both = &f->draft->directions[2 * f->relation];
    char folder[512], path[WEIR_DRAFT_PATH_MAX];
    edges_folder(f, folder);
    weir_err err = weir_draft_path(f->draft, path, "%s", folder);
    if (!err) err = weir_folder_create(path);
    if (!err)
        err = weir_draft_array(f->draft, WEIR_NPY_I64, f->draft->ids[f->own].shape[0] + 1, 0, &f->indptr,
                               "%s/indptr.npy", folder);
    if (!err) err = weir_draft_array(f->draft, WEIR_NPY_I64, edges, 0, &f->neighbors, "%s/neighbors.npy", folder);
    if (!err && weir_draft_has_times(f->draft, f->relation))
        err = weir_draft_array(f->draft, WEIR_NPY_I64, edges, 0, &f->times, "%s/times.npy", folder);
    if (!err && weir_draft_has_events(f->draft, f->relation))
        err = weir_draft_array(f->draft, WEIR_NPY_U64, edges, 0, &f->events, "%s/events.npy", folder);
    /* Of either direction, because a checkpoint may have one end only. */
    if (!err && (both[0].deleted || both[1].deleted))
        err = weir_draft_array(f->draft, WEIR_NPY_I64, edges, 0, &f->until, "%s/until.npy", folder);
    if (!err) err = weir_columns_open(f->draft, folder, f->texts, edges, &f->columns);
    return err;
}

/* Closes what is open; when all went well, each file is whole. */
static weir_err edges_files_close(edges_files *f, bool whole) {
    weir_npy_writer *writers[] = {f->indptr, f->neighbors, f->times, f->events, f->until};
    weir_err err = WEIR_OK;
    for (size_t i = 0; i < sizeof writers / sizeof *writers; i++) {
        if (whole) {
            weir_err_keep(&err, weir_npy_writer_close(writers[i]));
        } else {
            weir_npy_writer_cancel(writers[i]);
        }
    }
    if (whole) {
        weir_err_keep(&err, weir_columns_close(f->columns));
    } else {
        weir_columns_cancel(f->columns);
    }
    return err;
}

/* --- one pass ---------------------------------------------------------------------------------------------------- */

static weir_err edges_write_edge(edges_files *f, const weir_spill_record *r) {
    const weir_vertex_pair *ids = f->draft->ids[f->own].data;
    uint64_t count = f->draft->ids[f->own].shape[0], neighbor;
    weir_err err = WEIR_OK;
    while (!err && f->index < count && weir_vertex_of(ids[f->index]) <= r->vertex) { /* earlier lists end here */
        err = weir_npy_write_i64(f->indptr, (int64_t)f->edges);
        f->index++;
    }
    if (err) return err;
    WEIR_ASSERT(f->index > 0 && weir_vertex_of(ids[f->index - 1]) == r->vertex); /* SNAPSHOT-Z2 */
    if (!weir_draft_find(f->draft, f->other, r->neighbor, &neighbor)) {
        f->halves++;
        return WEIR_OK;
    }
    WEIR_ASSERT(r->time_us < f->draft->as_of_us); /* SNAPSHOT-Z3 */
    uint64_t own = f->index - 1;
    bool out = f->direction == WEIR_OUT;
    uint64_t words[] = {out ? own : neighbor, out ? neighbor : own, (uint64_t)r->time_us, r->event,
                        (uint64_t)r->until_us};                              /* the same from both ends */
    WEIR_ASSERT(own < count && neighbor < f->draft->ids[f->other].shape[0]); /* SNAPSHOT-Z2 */
    f->edges++;
    f->sum += weir_xxh3(words, sizeof words, 0);
    err = weir_npy_write_i64(f->neighbors, (int64_t)neighbor);
    WEIR_ASSERT(f->times || r->time_us == 0);
    if (!err && f->times) err = weir_npy_write_i64(f->times, r->time_us);
    if (!err && f->events) err = weir_npy_write(f->events, &r->event, 1);
    if (!err && f->until) err = weir_npy_write_i64(f->until, r->until_us);
    if (err) return err;

    size_t kind_count;
    const weir_value_kind *kinds = weir_graph_relation_kinds(f->draft->graph, f->relation, &kind_count);
    weir_value values[WEIR_ROW_FEATURES_MAX];
    WEIR_ASSERT(kind_count <= WEIR_ROW_FEATURES_MAX);
    memset(values, 0, kind_count * sizeof values[0]);
    if (r->row_length > 0) {
        err = weir_row_check(kinds, kind_count, r->row, r->row_length);
        if (err) return weir_err_prefix(err, "an edge of vertex " WEIR_VERTEX_FORMAT, WEIR_VERTEX_WORDS(r->vertex));
        weir_row_read(kinds, kind_count, r->row, r->row_length, values);
    }
    return weir_columns_add(f->columns, values);
}

static weir_err edges_write_lists(edges_files *f) {
    weir_merge *merge = NULL;
    weir_spill_record record;
    bool found = true;
    char name[64];
    snprintf(name, sizeof name, "edges.%u", f->relation * 2 + f->direction);
    weir_err err = weir_merge_open(f->draft->spill, name, f->draft->shards, &merge);
    while (!err && found) {
        err = weir_draft_next_edge(f->draft, f->relation, merge, &record, &found);
        if (!err && found) err = edges_write_edge(f, &record);
    }
    weir_merge_close(merge);
    for (; !err && f->index <= f->draft->ids[f->own].shape[0]; f->index++)
        err = weir_npy_write_i64(f->indptr, (int64_t)f->edges);
    return err;
}

static weir_err edges_write_once(weir_snapshot_draft *draft, edges_files f, uint64_t edges, uint64_t *edgesp,
                                 uint64_t *halvesp) {
    f.draft = draft;
    weir_err err = edges_files_open(&f, edges);
    if (!err) err = edges_write_lists(&f);
    *edgesp = f.edges;
    *halvesp = f.halves;
    draft->directions[f.relation * 2 + f.direction].sum = f.sum;
    weir_err_keep(&err, edges_files_close(&f, !err && f.edges == edges));
    return err;
}

static weir_err edges_write_direction(weir_snapshot_draft *draft, uint32_t relation, weir_direction direction,
                                      weir_columns_texts *texts) {
    const weir_schema_relation *r = weir_schema_relation_at(draft->schema, relation);
    weir_draft_direction *counted = &draft->directions[relation * 2 + direction];
    edges_files f = {.draft = draft, .relation = relation, .direction = direction, .texts = texts};
    char folder[512], path[WEIR_DRAFT_PATH_MAX];
    uint64_t edges, halves;
    f.own = direction == WEIR_OUT ? r->from : r->to;
    f.other = direction == WEIR_OUT ? r->to : r->from;
    weir_err err = edges_write_once(draft, f, counted->edges, &edges, &halves);
    if (err || edges == counted->edges) return err;
    draft->stats.half_edges += halves;
    counted->edges = edges;
    edges_folder(&f, folder);
    err = weir_draft_path(draft, path, "%s", folder);
    if (!err) err = weir_folder_remove(path);
    return err ? err : edges_write_once(draft, f, edges, &edges, &halves);
}

/* SNAPSHOT-Z1: an edge that only one direction has cannot be found and left out if both its vertices exist anyway. */
static weir_err edges_check_ends(const weir_snapshot_draft *draft, uint32_t relation) {
    const weir_draft_direction *out = &draft->directions[2 * relation + WEIR_OUT], *in = out + 1;
    WEIR_ASSERT(in == &draft->directions[2 * relation + WEIR_IN]);
    if (out->edges == in->edges && out->sum == in->sum) return WEIR_OK; /* SNAPSHOT-Z1 */
    return WEIR_ERR(
        WEIR_EDATA,
        "relation %s has edges of which only one end is in the store: it was copied while events came in, or a "
        "`history` was made longer after the store was trimmed; give an earlier --as-of, or copy the store while "
        "nothing writes to it, or wait until the longer history has passed",
        weir_schema_relation_at(draft->schema, relation)->name);
}

weir_err weir_draft_edges(weir_snapshot_draft *draft) {
    weir_err err = WEIR_OK;
    for (uint32_t i = 0; !err && i < weir_schema_relation_count(draft->schema); i++) {
        const weir_schema_relation *r = weir_schema_relation_at(draft->schema, i);
        weir_columns_texts texts;
        char folder[512];
        snprintf(folder, sizeof folder, "relations/%s", r->name);
        err = weir_columns_texts_open(r->features, r->feature_count, &texts);
        if (!err) err = edges_write_direction(draft, i, WEIR_OUT, &texts);
        if (!err) err = edges_write_direction(draft, i, WEIR_IN, &texts);
        if (!err) err = weir_columns_texts_write(draft, folder, &texts);
        if (!err) err = edges_check_ends(draft, i);
        weir_columns_texts_free(&texts);
        draft->stats.edges += draft->directions[i * 2 + WEIR_OUT].edges;
    }
    return err;
}

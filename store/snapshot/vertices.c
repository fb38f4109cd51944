/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vertices.c - which vertices there are, numbered by their ids within their type, with keys and features.
 *
 * A vertex is there if it was put before as_of, or has a feature row, and has not expired since; or if it has a visible
 * edge, expired or not. Each of these is a run of rising ids; the runs of a type are merged. So a number depends on
 * nothing but the set of ids: not on shards, nor on order.
 */
#include <stdio.h>
#include <string.h>

#include <weir/base/alloc.h>
#include <weir/base/assert.h>
#include <weir/base/file.h>

#include "along.h"
#include "columns.h"
#include "ids.h"

/* Whether a name was put at its own time: it is carried once, and a deletion may have overtaken that put. */
static bool name_stands(const weir_snapshot_draft *draft, const weir_spill_record *name) {
    return name->time_us < draft->as_of_us && !weir_draft_hides(draft, name->vertex, name->time_us);
}

/* --- runs -------------------------------------------------------------------------------------------------------- */

/* How many runs each type has. */
typedef struct runs {
    weir_snapshot_draft *draft;
    uint32_t *counts;
} runs;

typedef enum run_kind { RUN_EDGES, RUN_FEATURES } run_kind;

static void count_edge(weir_draft_direction *d, int64_t time_us) {
    if (d->edges == 0 || time_us < d->oldest_us) d->oldest_us = time_us;
    if (d->edges == 0 || time_us > d->newest_us) d->newest_us = time_us;
    d->edges++;
}

/* Writes the ids of a spill, each once, of rows those that have not expired; counts edges into direction. */
static weir_err make_run(runs *r, run_kind kind, uint32_t type, weir_merge *merge, weir_draft_direction *direction,
                         weir_pulse *pulse) {
    weir_snapshot_draft *draft = r->draft;
    weir_spill *run = NULL;
    weir_spill_record record, last = {.vertex = 0};
    weir_life life;
    bool found = true, any = false, there = true;
    char name[64];
    snprintf(name, sizeof name, "run.%u", type);
    weir_err err = weir_spill_open(draft->spill, name, r->counts[type]++, &run);
    while (!err && found) {
        err = weir_draft_next(draft, merge, kind == RUN_EDGES, &record, &found);
        if (err || !found) break;
        if (kind == RUN_EDGES) count_edge(direction, record.time_us);
        if (any && record.vertex == last.vertex) continue;
        any = true;
        last = (weir_spill_record){.vertex = record.vertex};
        err = weir_pulse_to(pulse, last.vertex, &there, &life);
        if (!err && there) err = weir_spill_add(run, &last);
    }
    weir_err_keep(&err, weir_spill_close(run));
    return err;
}

static weir_err run_of(runs *r, run_kind kind, const char *spill, uint32_t type, weir_draft_direction *direction) {
    weir_merge *merge = NULL;
    weir_pulse pulse = {.expire_us = 0};
    weir_err err = kind == RUN_FEATURES ? weir_pulse_open(r->draft, type, &pulse) : WEIR_OK;
    if (!err) err = weir_merge_open(r->draft->spill, spill, r->draft->shards, &merge);
    if (!err) err = make_run(r, kind, type, merge, direction, &pulse);
    weir_merge_close(merge);
    weir_pulse_close(&pulse);
    return err;
}

/* Whether the vertex of this name was put, though no row and no visible edge may say so: by its name's put, one of its
 * own, or an event whose edge is not seen any more. */
static weir_err was_put(const weir_snapshot_draft *draft, const weir_spill_record *name, weir_along *puts,
                        weir_along *met, bool *putp) {
    bool end = false;
    weir_err err = weir_along_to(puts, name->vertex, putp);
    if (!err) err = weir_along_to(met, name->vertex, &end);
    *putp = *putp || end || name_stands(draft, name);
    return err;
}

static weir_err make_names_run(runs *r, uint32_t type) {
    weir_snapshot_draft *draft = r->draft;
    weir_spill *run = NULL;
    weir_along names = {.merge = NULL}, puts = {.merge = NULL}, met = {.merge = NULL};
    weir_pulse pulse = {.expire_us = 0};
    weir_life life;
    char name[64];
    bool put, there;
    snprintf(name, sizeof name, "run.%u", type);
    weir_err err = weir_spill_open(draft->spill, name, r->counts[type]++, &run);
    if (!err) err = weir_along_open(draft, "names", type, &names);
    if (!err) err = weir_along_open(draft, "puts", 0, &puts);
    if (!err) err = weir_along_open(draft, "met", 0, &met);
    if (!err) err = weir_pulse_open(draft, type, &pulse);
    while (!err && names.found) {
        const weir_spill_record record = {.vertex = names.record.vertex};
        err = was_put(draft, &names.record, &puts, &met, &put);
        if (!err) err = weir_pulse_to(&pulse, record.vertex, &there, &life);
        if (!err && put && there) err = weir_spill_add(run, &record);
        if (!err) err = weir_along_step(&names);
    }
    weir_err_keep(&err, run ? weir_spill_close(run) : WEIR_OK);
    weir_along_close(&names);
    weir_along_close(&puts);
    weir_along_close(&met);
    weir_pulse_close(&pulse);
    return err;
}

static weir_err make_runs(runs *r) {
    const weir_schema *schema = r->draft->schema;
    char spill[64];
    weir_err err = WEIR_OK;
    for (uint32_t i = 0; !err && i < 2 * weir_schema_relation_count(schema); i++) {
        const weir_schema_relation *relation = weir_schema_relation_at(schema, i / 2);
        snprintf(spill, sizeof spill, "edges.%u", i);
        uint32_t type = i % 2 == WEIR_OUT ? relation->from : relation->to;
        err = run_of(r, RUN_EDGES, spill, type, &r->draft->directions[i]);
    }
    for (uint32_t type = 0; !err && type < weir_schema_vertex_count(schema); type++) {
        err = make_names_run(r, type);
        snprintf(spill, sizeof spill, "features.%u", type);
        if (!err) err = run_of(r, RUN_FEATURES, spill, type, NULL);
    }
    return err;
}

/* --- ids --------------------------------------------------------------------------------------------------------- */

/* One walk over a type's runs: counts the ids, and writes them where there is a writer. */
static weir_err walk_ids(const runs *r, uint32_t type, weir_npy_writer *writer, uint64_t *countp) {
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

static weir_err write_ids(const runs *r, uint32_t type) {
    weir_snapshot_draft *draft = r->draft;
    weir_npy_writer *writer = NULL;
    char path[WEIR_DRAFT_PATH_MAX];
    uint64_t count;
    weir_err err = weir_draft_path(draft, path, "vertices/%s", weir_schema_vertex_at(draft->schema, type)->name);
    if (!err) err = weir_folder_create(path);
    if (!err)
        err = weir_draft_path(draft, path, "vertices/%s/ids.npy", weir_schema_vertex_at(draft->schema, type)->name);
    if (!err) err = walk_ids(r, type, NULL, &count);
    if (!err) err = weir_npy_writer_open(path, WEIR_NPY_U64, count, 2, &writer);
    if (!err) err = walk_ids(r, type, writer, &count);
    if (err) {
        weir_npy_writer_cancel(writer);
        return err;
    }
    err = weir_npy_writer_close(writer);
    draft->stats.vertices += count;
    return err ? err : weir_npy_map_open(path, &draft->id_maps[type], &draft->ids[type]);
}

bool weir_draft_find(const weir_snapshot_draft *draft, uint32_t type, weir_vertex id, uint64_t *indexp) {
    return weir_ids_find(draft->ids[type].data, draft->ids[type].shape[0], id, indexp);
}

/* --- keys and features ------------------------------------------------------------------------------------------- */

static weir_err key_bytes(const weir_snapshot_draft *draft, uint32_t type, uint64_t *bytesp) {
    const weir_vertex_pair *ids = draft->ids[type].data;
    weir_along names = {.merge = NULL};
    weir_pulse pulse;
    weir_life life;
    bool here, there;
    *bytesp = 0;
    weir_err err = weir_pulse_open(draft, type, &pulse);
    if (!err) err = weir_along_open(draft, "names", type, &names);
    for (uint64_t i = 0; !err && i < draft->ids[type].shape[0]; i++) {
        err = weir_along_to(&names, weir_vertex_of(ids[i]), &here);
        if (!err) err = weir_pulse_to(&pulse, weir_vertex_of(ids[i]), &there, &life);
        if (!err && here && there) *bytesp += names.record.row_length;
    }
    weir_along_close(&names);
    weir_pulse_close(&pulse);
    return err;
}

/* The features of a vertex, and since when each has been what it is. Its texts are its own: a row is gone at the next
 * step. */
typedef struct standing {
    weir_value values[WEIR_ROW_FEATURES_MAX];
    int64_t since_us[WEIR_ROW_FEATURES_MAX];
    bool settled[WEIR_ROW_FEATURES_MAX]; /* an older row says something else */
    char texts[WEIR_ROW_FEATURES_MAX][WEIR_ROW_TEXT_MAX];
    int64_t first_us;
} standing;

typedef struct vertex_files {
    weir_npy_writer *offsets, *bytes, *times, *since;
    weir_npy_writer *until; /* NULL: the type never expires */
    weir_columns *columns;
    weir_columns_texts texts;
    weir_along names, features, puts;
    weir_pulse pulse;
    const weir_value_kind *kinds;
    size_t kind_count;
    standing standing; /* of the vertex at hand */
} vertex_files;

static weir_err open_until(const weir_snapshot_draft *draft, const char *folder, uint64_t count,
                           weir_npy_writer **writerp) {
    char path[WEIR_DRAFT_PATH_MAX];
    weir_err err = weir_draft_path(draft, path, "%s/until.npy", folder);
    return err ? err : weir_npy_writer_open(path, WEIR_NPY_I64, count, 0, writerp);
}

static weir_err files_open(const weir_snapshot_draft *draft, uint32_t type, const char *folder, vertex_files *f) {
    const weir_schema_vertex *vertex = weir_schema_vertex_at(draft->schema, type);
    uint64_t count = draft->ids[type].shape[0], bytes;
    char path[WEIR_DRAFT_PATH_MAX];
    *f = (vertex_files){.kind_count = 0};
    f->kinds = weir_graph_vertex_kinds(draft->graph, type, &f->kind_count);
    weir_err err = key_bytes(draft, type, &bytes);
    if (!err) err = weir_draft_path(draft, path, "%s/key_offsets.npy", folder);
    if (!err) err = weir_npy_writer_open(path, WEIR_NPY_I64, count + 1, 0, &f->offsets);
    if (!err) err = weir_draft_path(draft, path, "%s/key_bytes.npy", folder);
    if (!err) err = weir_npy_writer_open(path, WEIR_NPY_U8, bytes, 0, &f->bytes);
    if (!err) err = weir_draft_path(draft, path, "%s/times.npy", folder);
    if (!err) err = weir_npy_writer_open(path, WEIR_NPY_I64, count, 0, &f->times);
    if (!err) err = weir_draft_path(draft, path, "%s/since.npy", folder);
    if (!err) err = weir_npy_writer_open(path, WEIR_NPY_I64, count, 0, &f->since);
    if (!err && vertex->expire_us) err = open_until(draft, folder, count, &f->until);
    if (!err) err = weir_columns_texts_open(vertex->features, vertex->feature_count, &f->texts);
    if (!err) err = weir_columns_open(draft, folder, &f->texts, count, &f->columns);
    if (!err) err = weir_along_open(draft, "names", type, &f->names);
    if (!err) err = weir_along_open(draft, "features", type, &f->features);
    if (!err) err = weir_along_open(draft, "puts", 0, &f->puts);
    return err ? err : weir_pulse_open(draft, type, &f->pulse);
}

/* Closes what is open; when all went well, each file is whole. */
static weir_err files_close(vertex_files *f, weir_err err) {
    weir_npy_writer **writers[] = {&f->offsets, &f->bytes, &f->times, &f->since, &f->until};
    for (size_t i = 0; i < sizeof writers / sizeof *writers; i++) {
        if (err) {
            weir_npy_writer_cancel(*writers[i]);
        } else {
            err = weir_npy_writer_close(*writers[i]);
        }
    }
    if (f->columns && !err) {
        err = weir_columns_close(f->columns);
    } else {
        weir_columns_cancel(f->columns);
    }
    weir_columns_texts_free(&f->texts);
    weir_along_close(&f->names);
    weir_along_close(&f->features);
    weir_along_close(&f->puts);
    weir_pulse_close(&f->pulse);
    return err;
}

static weir_err damaged_row(weir_vertex vertex, weir_err err) {
    return weir_err_prefix(err, "a feature row of vertex " WEIR_VERTEX_FORMAT, WEIR_VERTEX_WORDS(vertex));
}

static bool same_value(weir_value_kind kind, const weir_value *a, const weir_value *b) {
    if (kind == WEIR_VALUE_TIME) return a->time_us == b->time_us;
    if (kind == WEIR_VALUE_NUMBER) return a->number == b->number; /* rows hold no NaN */
    return a->text_length == b->text_length && memcmp(a->text, b->text, a->text_length) == 0;
}

static void take_value(standing *s, size_t feature, const weir_value *value) {
    s->values[feature] = *value;
    if (!value->text_length) return;
    memcpy(s->texts[feature], value->text, value->text_length);
    s->values[feature].text = s->texts[feature];
}

static void stand(vertex_files *f, const weir_spill_record *r) {
    weir_value older[WEIR_ROW_FEATURES_MAX];
    standing *s = &f->standing;
    weir_row_read(f->kinds, f->kind_count, r->row, r->row_length, older);
    for (size_t i = 0; i < f->kind_count; i++) {
        if (!older[i].present || s->settled[i]) continue;
        if (!s->values[i].present) take_value(s, i, &older[i]);
        if (same_value(f->kinds[i], &s->values[i], &older[i])) {
            s->since_us[i] = r->time_us;
        } else {
            s->settled[i] = true;
        }
    }
    if (s->first_us == WEIR_SNAPSHOT_NEVER || r->time_us < s->first_us) s->first_us = r->time_us;
}

/* Since when all of them together have been what they are, and the vertex has not been forgotten in between. */
static int64_t standing_since(const vertex_files *f, const weir_life *life) {
    const standing *s = &f->standing;
    int64_t since_us = WEIR_SNAPSHOT_NEVER;
    for (size_t i = 0; i < f->kind_count; i++) {
        if (s->values[i].present && s->since_us[i] > since_us) since_us = s->since_us[i];
    }
    return since_us == WEIR_SNAPSHOT_NEVER || since_us > life->first_us ? since_us : life->first_us;
}

/* Rows come newest first: each feature takes its first value. */
static weir_err features_of(vertex_files *f, weir_vertex vertex) {
    bool here;
    weir_err err = weir_along_to(&f->features, vertex, &here);
    memset(f->standing.settled, 0, sizeof f->standing.settled);
    while (!err && here) {
        const weir_spill_record *r = &f->features.record;
        err = weir_row_check(f->kinds, f->kind_count, r->row, r->row_length);
        if (err) return damaged_row(vertex, err);
        stand(f, r);
        err = weir_along_step(&f->features);
        here = f->features.found && f->features.record.vertex == vertex;
    }
    return err;
}

/* Puts come newest first. */
static weir_err first_put_of(vertex_files *f, weir_vertex vertex, int64_t *firstp) {
    bool here;
    weir_err err = weir_along_to(&f->puts, vertex, &here);
    while (!err && here) {
        int64_t time_us = f->puts.record.time_us;
        if (*firstp == WEIR_SNAPSHOT_NEVER || time_us < *firstp) *firstp = time_us;
        err = weir_along_step(&f->puts);
        here = f->puts.found && f->puts.record.vertex == vertex;
    }
    return err;
}

/* Key, first put and features; none of a vertex that has expired. */
static weir_err read_vertex(const weir_snapshot_draft *draft, vertex_files *f, weir_vertex vertex, bool there) {
    standing *s = &f->standing;
    bool named;
    s->first_us = WEIR_SNAPSHOT_NEVER;
    memset(s->values, 0, f->kind_count * sizeof s->values[0]);
    if (!there) return WEIR_OK;
    weir_err err = weir_along_to(&f->names, vertex, &named);
    if (!err && named) err = weir_npy_write(f->bytes, f->names.record.row, f->names.record.row_length);
    if (!err && named && name_stands(draft, &f->names.record)) s->first_us = f->names.record.time_us;
    if (!err) err = first_put_of(f, vertex, &s->first_us);
    return err ? err : features_of(f, vertex);
}

/* When it will be forgotten. */
static int64_t end_of(const vertex_files *f, bool there, const weir_life *life) {
    int64_t until_us;
    if (!there) return WEIR_SNAPSHOT_NEVER;
    return __builtin_add_overflow(life->last_us, f->pulse.expire_us, &until_us) ? INT64_MAX : until_us;
}

static weir_err write_vertex(const weir_snapshot_draft *draft, vertex_files *f, weir_vertex vertex) {
    bool there;
    weir_life life;
    weir_err err = weir_pulse_to(&f->pulse, vertex, &there, &life);
    if (!err) err = weir_npy_write_i64(f->offsets, (int64_t)weir_npy_written(f->bytes));
    if (!err) err = read_vertex(draft, f, vertex, there);
    if (!err) err = weir_columns_add(f->columns, f->standing.values);
    if (!err) err = weir_npy_write_i64(f->since, standing_since(f, &life));
    if (!err && f->until) err = weir_npy_write_i64(f->until, end_of(f, there, &life));
    return err ? err : weir_npy_write_i64(f->times, f->standing.first_us);
}

static weir_err write_type(const weir_snapshot_draft *draft, uint32_t type) {
    const weir_vertex_pair *ids = draft->ids[type].data;
    vertex_files files;
    char folder[512];
    snprintf(folder, sizeof folder, "vertices/%s", weir_schema_vertex_at(draft->schema, type)->name);
    weir_err err = files_open(draft, type, folder, &files);
    for (uint64_t i = 0; !err && i < draft->ids[type].shape[0]; i++)
        err = write_vertex(draft, &files, weir_vertex_of(ids[i]));
    if (!err) err = weir_npy_write_i64(files.offsets, (int64_t)weir_npy_written(files.bytes));
    if (!err) err = weir_columns_texts_write(draft, folder, &files.texts);
    return files_close(&files, err);
}

weir_err weir_draft_vertices(weir_snapshot_draft *draft) {
    uint32_t types = weir_schema_vertex_count(draft->schema);
    runs r = {draft, weir_calloc(types, sizeof *r.counts)};
    weir_err err = r.counts ? make_runs(&r) : WEIR_ERR(WEIR_ENOMEM, "no memory for the vertex types");
    for (uint32_t type = 0; !err && type < types; type++)
        err = write_ids(&r, type);
    for (uint32_t type = 0; !err && type < types; type++)
        err = write_type(draft, type);
    weir_free(r.counts);
    return err;
}

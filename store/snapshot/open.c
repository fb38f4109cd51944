/* SPDX-License-Identifier: Apache-2.0 */
/*
 * open.c - the files of a snapshot, mapped but for what a part says of aggregates, with checks of what is cheap: types,
 * lengths, and where lists begin and end.
 *
 * No list is walked: a snapshot of a billion edges opens as fast as an empty one. What lies between is checked where
 * it is followed (the sampler does), or by weir_snapshot_check. Offsets of texts are checked: they are few, and readers
 * follow them without a check.
 */
#include <stdio.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/file.h>
#include <weir/store/trust/trust.h>

#include "ids.h"
#include "snapshot_private.h"

/* --- one array --------------------------------------------------------------------------------------------------- */

/* The bytes that offsets point into: as many as the last offset. */
static weir_err snapshot_map_bytes(weir_snapshot *s, const int64_t *offsets, uint64_t count, const uint8_t **bytesp,
                                   const char *folder, const char *name) {
    weir_npy_array array;
    *bytesp = NULL;
    if (offsets[0] != 0 || offsets[count] < 0)
        return WEIR_ERR(WEIR_ECORRUPT, "%s/%s/%soffsets.npy does not begin at 0; take another copy", s->folder, folder,
                        name);
    weir_err err = weir_npy_folder_map(s->arrays, WEIR_NPY_U8, (uint64_t)offsets[count], 0, &array, "%s/%sbytes.npy",
                                       folder, name);
    *bytesp = array.data;
    return err;
}

/* --- features ---------------------------------------------------------------------------------------------------- */

/* The length of the file gives the number of texts. */
static weir_err snapshot_map_texts(weir_snapshot *s, const char *folder, weir_snapshot_column *column) {
    weir_npy_array array;
    char name[512];
    weir_err err = weir_npy_folder_map(s->arrays, WEIR_NPY_I64, WEIR_NPY_ANY_ROWS, 0, &array,
                                       "%s/feature.%s.text_offsets.npy", folder, column->name);
    if (err) return err;
    if (array.count == 0 || array.count - 1 > INT32_MAX)
        return WEIR_ERR(WEIR_ECORRUPT, "%s/%s/feature.%s.text_offsets.npy is empty or too long; take another copy",
                        s->folder, folder, column->name);
    column->texts = array.count - 1;
    column->text_offsets = array.data;
    snprintf(name, sizeof name, "feature.%s.text_", column->name);
    err = snapshot_map_bytes(s, column->text_offsets, column->texts, &column->text_bytes, folder, name);
    for (uint64_t i = 0; !err && i < column->texts; i++) {
        const int64_t *at = &column->text_offsets[i];
        if (at[0] <= at[1] && at[1] <= column->text_offsets[column->texts] && at[1] - at[0] <= WEIR_ROW_TEXT_MAX)
            continue;
        err = WEIR_ERR(WEIR_ECORRUPT, "%s/%s/feature.%s.text_offsets.npy: number %llu %s; take another copy", s->folder,
                       folder, column->name, (unsigned long long)i + 1,
                       at[0] > at[1] ? "is less than the one before it" : "ends beyond the texts, or a text too long");
    }
    return err;
}

/* like: columns whose texts these share, or NULL. */
static weir_err snapshot_map_columns(weir_snapshot *s, const weir_schema_feature *features, uint32_t count,
                                     const char *folder, const char *texts, uint64_t rows,
                                     const weir_snapshot_column *like, const weir_snapshot_column **columnsp) {
    weir_err err = WEIR_OK;
    weir_snapshot_column *columns = weir_calloc(count + 1, sizeof *columns);
    *columnsp = columns;
    if (!columns) return WEIR_NOMEM("while opening the snapshot %s", s->folder);
    for (uint32_t i = 0; !err && i < count; i++) {
        if (like) columns[i] = like[i];
        err = weir_snapshot_map_feature(s->arrays, folder, &features[i], rows, &columns[i]);
        if (!err && !like && columns[i].kind == WEIR_VALUE_CATEGORY) err = snapshot_map_texts(s, texts, &columns[i]);
    }
    return err;
}

/* --- vertices ---------------------------------------------------------------------------------------------------- */

/* Of an array of 8 bytes a number: it is mapped for as long as it takes to see that it is what the manifest says. */
static weir_err snapshot_open_numbers(weir_snapshot *s, weir_npy_type type, uint64_t count, const char *name,
                                      weir_snapshot_numbers *of) {
    weir_npy_folder *seen = NULL;
    weir_npy_array array;
    char path[WEIR_SNAPSHOT_PATH_MAX];
    weir_err err = weir_npy_folder_open(s->folder, &seen);
    if (!err) err = weir_npy_folder_map(seen, type, count, 0, &array, "%s", name);
    const uint64_t bytes = err ? 0 : weir_npy_folder_bytes(seen);
    weir_npy_folder_close(seen);
    if (err) return err;
    of->count = count;
    of->begin = bytes - count * sizeof(uint64_t);
    if (snprintf(path, sizeof path, "%s/%s", s->folder, name) >= (int)sizeof path)
        return WEIR_ERR(WEIR_ELIMIT, "the path %.64s… is too long", s->folder);
    err = weir_file_open(path, WEIR_FILE_READ, &of->file);
    if (!err && weir_file_length(of->file) != bytes)
        err = WEIR_ERR(WEIR_ECORRUPT, "%s changes while it is opened; take another copy", path);
    return err;
}

/* What is said of a type's lives, and which of them began with which put. */
static weir_err snapshot_open_precomputed(weir_snapshot *s, const char *folder, uint32_t type) {
    const weir_schema *schema = s->description.schema;
    const weir_snapshot_vertices *v = &s->vertices[type];
    char name[WEIR_SNAPSHOT_PATH_MAX];
    weir_err err = WEIR_OK;
    for (uint32_t i = 0; !err && i < weir_schema_aggregate_count(schema); i++) {
        const weir_schema_aggregate *aggregate = weir_schema_aggregate_at(schema, i);
        if (aggregate->vertex != type || !s->description.precomputed[i]) continue;
        snprintf(name, sizeof name, "%s/lives/aggregate.%s.npy", folder, aggregate->name);
        err = snapshot_open_numbers(s, WEIR_NPY_F64, v->lives.count, name, &s->precomputed[i]);
        if (err || s->life_times[type].file) continue;
        snprintf(name, sizeof name, "%s/lives/indptr.npy", folder);
        err = snapshot_open_numbers(s, WEIR_NPY_I64, v->count + 1, name, &s->life_lists[type]);
        snprintf(name, sizeof name, "%s/lives/first.npy", folder);
        if (!err) err = snapshot_open_numbers(s, WEIR_NPY_I64, v->lives.count, name, &s->life_times[type]);
    }
    return err;
}

static weir_err snapshot_map_spans(weir_snapshot *s, const char *folder, const char *name, const char *times,
                                   uint64_t vertices, uint64_t count, weir_snapshot_spans *spans) {
    weir_npy_array array;
    spans->count = count;
    weir_err err =
        weir_npy_folder_map(s->arrays, WEIR_NPY_I64, vertices + 1, 0, &array, "%s/%s/indptr.npy", folder, name);
    spans->indptr = array.data;
    if (!err && (spans->indptr[0] != 0 || spans->indptr[vertices] != (int64_t)count))
        err = WEIR_ERR(WEIR_ECORRUPT, "%s/%s/%s/indptr.npy does not lead from 0 to %llu; take another copy", s->folder,
                       folder, name, (unsigned long long)count);
    if (!err) err = weir_npy_folder_map(s->arrays, WEIR_NPY_I64, count, 0, &array, "%s/%s/%s.npy", folder, name, times);
    spans->times = array.data;
    if (!err) err = weir_npy_folder_map(s->arrays, WEIR_NPY_I64, count, 0, &array, "%s/%s/until.npy", folder, name);
    spans->until_us = array.data;
    return err;
}

static weir_err snapshot_map_vertices(weir_snapshot *s, uint32_t type) {
    const weir_schema_vertex *schema = weir_schema_vertex_at(s->description.schema, type);
    weir_snapshot_vertices *v = &s->vertices[type];
    char folder[512];
    weir_npy_array array;
    snprintf(folder, sizeof folder, "vertices/%s", schema->name);
    v->count = s->description.vertices[type];
    v->own = s->description.own[type];
    weir_err err = weir_npy_folder_map(s->arrays, WEIR_NPY_U64, v->count, 2, &array, "%s/ids.npy", folder);
    v->ids = array.data;
    if (!err && s->description.part) {
        err = weir_npy_folder_map(s->arrays, WEIR_NPY_I64, v->own, 0, &array, "%s/by_id.npy", folder);
        v->by_id = array.data;
    }
    if (!err) err = snapshot_map_spans(s, folder, "lives", "first", v->count, s->description.lives[type], &v->lives);
    if (!err) err = snapshot_map_spans(s, folder, "rows", "times", v->count, s->description.rows[type], &v->rows);
    if (!err) err = weir_npy_folder_map(s->arrays, WEIR_NPY_I64, v->count + 1, 0, &array, "%s/key_offsets.npy", folder);
    v->key_offsets = array.data;
    if (!err) err = snapshot_map_bytes(s, v->key_offsets, v->count, &v->key_bytes, folder, "key_");
    v->column_count = schema->feature_count;
    if (!err)
        err = snapshot_map_columns(s, schema->features, schema->feature_count, folder, folder, v->rows.count, NULL,
                                   &v->columns);
    if (!err) err = snapshot_open_precomputed(s, folder, type);
    if (err) return err;
    v->extra_count = s->description.extra_counts[type];
    return weir_snapshot_map_extras(s->arrays, folder, v->own, s->description.extras[type], v->extra_count, &v->extras);
}

/* --- edges ------------------------------------------------------------------------------------------------------- */

static weir_err snapshot_map_direction(weir_snapshot *s, uint32_t relation, weir_direction direction) {
    const weir_schema_relation *schema = weir_schema_relation_at(s->description.schema, relation);
    weir_snapshot_edges *e = &s->edges[2 * relation + direction];
    const weir_snapshot_column *like = direction == WEIR_IN ? s->edges[2 * relation + WEIR_OUT].columns : NULL;
    char texts[512], folder[520];
    weir_npy_array array;
    snprintf(texts, sizeof texts, "relations/%s", schema->name);
    snprintf(folder, sizeof folder, "%s/%s", texts, direction == WEIR_OUT ? "out" : "in");
    e->vertices = s->description.vertices[direction == WEIR_OUT ? schema->from : schema->to];
    e->edges = s->description.edges[2 * relation + direction];
    e->has_times = s->description.has_times[relation];
    e->has_events = s->description.has_events[relation];
    e->newest_us = s->description.newest_us[relation];
    e->expire_us = schema->expire_us;
    weir_err err = weir_npy_folder_map(s->arrays, WEIR_NPY_I64, e->vertices + 1, 0, &array, "%s/indptr.npy", folder);
    e->indptr = array.data;
    if (!err && (e->indptr[0] != 0 || e->indptr[e->vertices] != (int64_t)e->edges))
        err = WEIR_ERR(WEIR_ECORRUPT, "%s/%s/indptr.npy does not lead from 0 to %llu; take another copy", s->folder,
                       folder, (unsigned long long)e->edges);
    if (!err) err = weir_snapshot_map_edges(s->arrays, folder, s->description.deleted[relation], e);
    e->column_count = schema->feature_count;
    if (err) return err;
    return snapshot_map_columns(s, schema->features, schema->feature_count, folder, texts, e->edges, like, &e->columns);
}

/* --- the handle -------------------------------------------------------------------------------------------------- */

static weir_err snapshot_read_manifest(weir_snapshot *s) {
    char path[WEIR_SNAPSHOT_PATH_MAX];
    char *text = NULL;
    size_t length;
    int used = snprintf(path, sizeof path, "%s/manifest.json", s->folder);
    if (used < 0 || used >= (int)sizeof path) return WEIR_ERR(WEIR_ELIMIT, "the path %.64s… is too long", s->folder);
    weir_err err = weir_file_load(path, WEIR_SNAPSHOT_MANIFEST_MAX, &text, &length);
    if (weir_err_is(err, WEIR_ENOTFOUND))
        return WEIR_ERR(WEIR_ENOTFOUND, "%s is not a snapshot: it has no manifest.json", s->folder);
    if (!err) err = weir_snapshot_describe(path, text, length, &s->description);
    weir_free(text);
    return err;
}

static weir_err snapshot_map_all(weir_snapshot *s) {
    const weir_schema *schema = s->description.schema;
    weir_err err = WEIR_OK;
    s->vertices = weir_calloc(weir_schema_vertex_count(schema) + 1, sizeof *s->vertices);
    s->edges = weir_calloc(2 * weir_schema_relation_count(schema) + 1, sizeof *s->edges);
    s->labels = weir_calloc(weir_schema_label_count(schema) + 1, sizeof *s->labels);
    s->precomputed = weir_calloc(weir_schema_aggregate_count(schema) + 1, sizeof *s->precomputed);
    s->life_lists = weir_calloc(weir_schema_vertex_count(schema) + 1, sizeof *s->life_lists);
    s->life_times = weir_calloc(weir_schema_vertex_count(schema) + 1, sizeof *s->life_times);
    s->alike = weir_calloc(weir_schema_vertex_count(schema) + 1, sizeof *s->alike);
    if (!s->vertices || !s->edges || !s->labels || !s->precomputed || !s->life_lists || !s->life_times || !s->alike)
        err = WEIR_NOMEM("while opening the snapshot %s", s->folder);
    for (uint32_t i = 0; !err && i < weir_schema_vertex_count(schema); i++)
        err = snapshot_map_vertices(s, i);
    for (uint32_t i = 0; !err && i < weir_schema_relation_count(schema); i++) {
        err = snapshot_map_direction(s, i, WEIR_OUT);
        if (!err) err = snapshot_map_direction(s, i, WEIR_IN);
    }
    for (uint32_t i = 0; !err && i < weir_schema_label_count(schema); i++) {
        s->labels[i].count = s->description.labels[i];
        err = weir_snapshot_map_labels(s->arrays, weir_schema_label_at(schema, i)->name, &s->labels[i]);
    }
    return err;
}

weir_err weir_snapshot_open(const char *folder, const weir_snapshot_opts *opts, weir_snapshot **snapshotp) {
    *snapshotp = NULL;
    weir_snapshot *s = weir_calloc(1, sizeof *s);
    if (!s) return WEIR_NOMEM("while opening the snapshot %s", folder);
    s->folder = weir_strdup(folder);
    weir_err err = s->folder ? WEIR_OK : WEIR_NOMEM("while opening the snapshot %s", folder);
    if (!err) err = weir_npy_folder_open(folder, &s->arrays);
    if (!err) err = snapshot_read_manifest(s);
    if (!err && s->description.part != opts->part)
        err = WEIR_ERR(WEIR_EDATA,
                       opts->part ? "%s is a whole snapshot, not a part of one; weir partition makes parts"
                                  : "%s is a part of a snapshot; give the snapshot, or all parts with --parts",
                       folder);
    if (!err && opts->verify) err = weir_manifest_verify(folder);
    if (!err) err = snapshot_map_all(s);
    if (!err && opts->load) err = weir_snapshot_load(s);
    if (err) {
        weir_snapshot_close(s);
        return err;
    }
    *snapshotp = s;
    return WEIR_OK;
}

static void snapshot_close_numbers(weir_snapshot_numbers *numbers, uint32_t count) {
    for (uint32_t i = 0; numbers && i < count; i++)
        (void)weir_file_close(numbers[i].file); /* it was only read */
    weir_free(numbers);
}

void weir_snapshot_close(weir_snapshot *s) {
    if (!s) return;
    weir_snapshot_unload(s);
    /* Columns and extras were allocated by this file, and are lent out as read-only. */
    for (uint32_t i = 0; s->vertices && i < weir_schema_vertex_count(s->description.schema); i++) {
        weir_snapshot_free_lent(s->vertices[i].columns);
        weir_snapshot_free_lent(s->vertices[i].extras);
    }
    for (uint32_t i = 0; s->edges && i < 2 * weir_schema_relation_count(s->description.schema); i++)
        weir_snapshot_free_lent(s->edges[i].columns);
    weir_npy_folder_close(s->arrays);
    weir_free(s->vertices);
    weir_free(s->alike);
    weir_free(s->edges);
    weir_free(s->labels);
    if (s->description.schema) { /* else nothing was opened */
        const uint32_t types = weir_schema_vertex_count(s->description.schema);
        snapshot_close_numbers(s->precomputed, weir_schema_aggregate_count(s->description.schema));
        snapshot_close_numbers(s->life_lists, types);
        snapshot_close_numbers(s->life_times, types);
    }
    weir_snapshot_description_free(&s->description);
    weir_free(s->folder);
    weir_free(s);
}

/* --- looking ----------------------------------------------------------------------------------------------------- */

const weir_schema *weir_snapshot_schema(const weir_snapshot *snapshot) {
    return snapshot->description.schema;
}

uint64_t weir_snapshot_bytes(const weir_snapshot *snapshot) {
    return weir_npy_folder_bytes(snapshot->arrays);
}

void weir_snapshot_give_back(const weir_snapshot *snapshot) {
    weir_npy_folder_give_back(snapshot->arrays);
}

int64_t weir_snapshot_as_of_us(const weir_snapshot *snapshot) {
    return snapshot->description.as_of_us;
}

bool weir_snapshot_has_precomputed(const weir_snapshot *snapshot, uint32_t aggregate) {
    WEIR_ASSERT(aggregate < weir_schema_aggregate_count(snapshot->description.schema));
    return snapshot->precomputed[aggregate].file != NULL;
}

static weir_err snapshot_read_numbers(const weir_snapshot_numbers *of, uint64_t at, uint32_t count, void *numbers) {
    size_t got, wanted = count * sizeof(uint64_t);
    WEIR_ASSERT(at + count <= of->count);
    weir_err err = weir_file_read_at(of->file, of->begin + at * sizeof(uint64_t), numbers, wanted, &got);
    if (!err && got < wanted)
        err = WEIR_ERR(WEIR_ECORRUPT, "%s has become shorter; take another copy", weir_file_path(of->file));
    return err;
}

weir_err weir_snapshot_precomputed(const weir_snapshot *snapshot, uint32_t aggregate, uint64_t life, double *valuep) {
    WEIR_ASSERT(weir_snapshot_has_precomputed(snapshot, aggregate));
    return snapshot_read_numbers(&snapshot->precomputed[aggregate], life, 1, valuep);
}

weir_err weir_snapshot_life_of_put(const weir_snapshot *snapshot, uint32_t type, uint64_t vertex, int64_t put_us,
                                   uint64_t *lifep) {
    const weir_snapshot_numbers *times = &snapshot->life_times[type];
    int64_t ends[2] = {0, 0}, first_us = 0;
    WEIR_ASSERT(type < weir_schema_vertex_count(snapshot->description.schema) && times->file);
    *lifep = times->count;
    weir_err err = weir_snapshot_check_vertex(snapshot, type, vertex);
    if (!err) err = snapshot_read_numbers(&snapshot->life_lists[type], vertex, 2, ends);
    if (!err && (ends[0] < 0 || ends[1] < ends[0] || (uint64_t)ends[1] > times->count))
        err = WEIR_ERR(WEIR_ECORRUPT, "%s leads outside of %llu lives; take another copy",
                       weir_file_path(snapshot->life_lists[type].file), (unsigned long long)times->count);
    while (!err && ends[0] < ends[1]) { /* lives stand in the order of their times */
        const int64_t middle = ends[0] + (ends[1] - ends[0]) / 2;
        err = snapshot_read_numbers(times, (uint64_t)middle, 1, &first_us);
        if (!err && first_us == put_us) *lifep = (uint64_t)middle;
        ends[first_us < put_us ? 0 : 1] = first_us < put_us ? middle + 1 : middle;
    }
    return err;
}

int64_t weir_snapshot_from_us(const weir_snapshot *snapshot) {
    return snapshot->description.from_us;
}

const weir_snapshot_vertices *weir_snapshot_vertices_of(const weir_snapshot *snapshot, uint32_t type) {
    WEIR_ASSERT(type < weir_schema_vertex_count(snapshot->description.schema));
    return &snapshot->vertices[type];
}

const weir_snapshot_edges *weir_snapshot_edges_of(const weir_snapshot *snapshot, uint32_t relation,
                                                  weir_direction direction) {
    WEIR_ASSERT(relation < weir_schema_relation_count(snapshot->description.schema));
    return &snapshot->edges[2 * relation + direction];
}

const weir_snapshot_labels *weir_snapshot_labels_of(const weir_snapshot *snapshot, uint32_t label) {
    WEIR_ASSERT(label < weir_schema_label_count(snapshot->description.schema));
    return &snapshot->labels[label];
}

bool weir_snapshot_find(const weir_snapshot *snapshot, uint32_t type, weir_vertex id, uint64_t *indexp) {
    const weir_snapshot_vertices *v = weir_snapshot_vertices_of(snapshot, type);
    if (!v->by_id) return weir_ids_find(v->ids, v->own, id, indexp);
    uint64_t low = 0, high = v->own;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2, vertex = (uint64_t)v->by_id[middle];
        if (vertex >= v->own) return false; /* SNAPSHOT-Z2: the file is not trusted */
        if (weir_vertex_of(v->ids[vertex]) < id)
            low = middle + 1;
        else
            high = middle;
    }
    *indexp = low < v->own ? (uint64_t)v->by_id[low] : v->own;
    return *indexp < v->own && weir_vertex_of(v->ids[*indexp]) == id;
}

/* --- as of a time: of snapshots and of parts --------------------------------------------------------------------- */

weir_err weir_snapshot_check_vertex(const weir_snapshot *snapshot, uint32_t type, uint64_t vertex) {
    uint64_t count = weir_snapshot_vertices_of(snapshot, type)->count;
    if (vertex < count) return WEIR_OK;
    return WEIR_ERR(WEIR_ECORRUPT,
                    "the snapshot says that a neighbour is vertex %llu of type %u, of which there are only %llu; take "
                    "another copy",
                    (unsigned long long)vertex, type, (unsigned long long)count);
}

/* Threads that ask at once walk at once, and find the same. */
bool weir_snapshot_lives_alike(const weir_snapshot *snapshot, uint32_t type) {
    enum { NOT_LOOKED_AT, ALIKE, OF_THEIR_OWN };
    const weir_snapshot_vertices *v = weir_snapshot_vertices_of(snapshot, type);
    const weir_snapshot_spans *lives = &v->lives;
    uint8_t known = atomic_load_explicit(&snapshot->alike[type], memory_order_relaxed);
    if (known != NOT_LOOKED_AT) return known == ALIKE;
    bool alike = v->count > 0 && lives->count == v->count;
    for (uint64_t i = 0; alike && i < v->count; i++)
        alike = lives->indptr[i] == (int64_t)i && lives->times[i] == lives->times[0] && lives->until_us[i] == INT64_MAX;
    atomic_store_explicit(&snapshot->alike[type], alike ? ALIKE : OF_THEIR_OWN, memory_order_relaxed);
    return alike;
}

/* Most vertices have one, and most targets look for the last: so the search begins there. */
bool weir_snapshot_span(const weir_snapshot_spans *spans, uint64_t vertex, int64_t before_us, uint64_t *placep) {
    int64_t low = spans->indptr[vertex], high = spans->indptr[vertex + 1];
    if (low < 0 || high > (int64_t)spans->count || low >= high) return false; /* SNAPSHOT-Z2: the file is not trusted */
    int64_t begin = low;
    if (spans->times[high - 1] < before_us) low = high;
    while (low < high) { /* those below low are older than the time */
        int64_t middle = low + (high - low) / 2;
        if (spans->times[middle] < before_us) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    *placep = (uint64_t)(low - 1);
    return low > begin && (before_us < spans->until_us[low - 1] || spans->until_us[low - 1] == INT64_MAX);
}

void weir_snapshot_span_bounds(const weir_snapshot_spans *spans, uint64_t vertex, int64_t before_us, int64_t *since_us,
                               int64_t *until_us) {
    const int64_t low = spans->indptr[vertex], high = spans->indptr[vertex + 1];
    uint64_t place;
    if (low < 0 || high > (int64_t)spans->count || low >= high) return; /* as in weir_snapshot_span */
    const bool seen = weir_snapshot_span(spans, vertex, before_us, &place);
    const int64_t at = (int64_t)place, next = at + 1; /* at: the last that is older than the time, or low - 1 */
    int64_t since = INT64_MIN, until = INT64_MAX;
    if (at >= low) since = spans->times[at] + 1;
    if (at >= low && !seen && spans->until_us[at] > since) since = spans->until_us[at];
    if (at >= low && seen) until = spans->until_us[at];
    if (next < high && spans->times[next] < until) until = spans->times[next] + 1;
    WEIR_ASSERT(since <= before_us);
    if (since > *since_us) *since_us = since;
    if (until < *until_us) *until_us = until;
}

void weir_snapshot_labels_of_life(const weir_snapshot_vertices *vertices, uint64_t vertex, uint64_t life,
                                  const weir_snapshot_labels *labels, uint64_t *beginp, uint64_t *endp) {
    const weir_snapshot_spans *lives = &vertices->lives;
    bool is_first = life == (uint64_t)lives->indptr[vertex];
    bool is_last = life + 1 == (uint64_t)lives->indptr[vertex + 1];
    while (!is_last && *beginp < *endp && labels->times[*beginp] > lives->times[life + 1])
        ++*beginp;
    while (!is_first && *beginp < *endp && labels->times[*endp - 1] <= lives->times[life])
        --*endp;
}

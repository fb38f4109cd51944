/* SPDX-License-Identifier: Apache-2.0 */
/*
 * part.c - a part, mapped. Every array is checked against manifest.json, and every list is walked once, so that
 * training follows indices without checks.
 */
#include <stdio.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/file.h>
#include <weir/store/trust/trust.h>

#include "part.h"

/* --- numbers ------------------------------------------------------------------------------------------------- */

static weir_err part_wrong(const weir_part *p, const char *array, uint64_t place, const char *what) {
    return WEIR_ERR(WEIR_ECORRUPT, "%s/%s: number %llu %s; take another copy of the part", p->folder, array,
                    (unsigned long long)place, what);
}

/* count + 1 numbers that begin at 0, never fall, and end at `end`. */
static weir_err part_check_offsets(const weir_part *p, const char *array, const int64_t *offsets, uint64_t count,
                                   uint64_t end) {
    if (offsets[0] != 0) return part_wrong(p, array, 0, "is not 0");
    for (uint64_t i = 0; i < count; i++) {
        if (offsets[i] > offsets[i + 1]) return part_wrong(p, array, i + 1, "is less than the one before it");
    }
    if (offsets[count] == (int64_t)end) return WEIR_OK;
    return part_wrong(p, array, count, "is not the length of the array that it indexes");
}

static weir_err part_check_below(const weir_part *p, const char *array, const int64_t *numbers, uint64_t count,
                                 int64_t limit) {
    for (uint64_t i = 0; i < count; i++) {
        if (numbers[i] < 0 || numbers[i] >= limit) return part_wrong(p, array, i, "points outside");
    }
    return WEIR_OK;
}

/* --- features -------------------------------------------------------------------------------------------------- */

static weir_err part_map_texts(weir_part *p, const char *folder, weir_snapshot_column *c) {
    char name[512];
    weir_npy_array offsets, bytes;
    weir_err err = weir_npy_folder_map(p->arrays, WEIR_NPY_I64, WEIR_NPY_ANY_ROWS, 0, &offsets,
                                       "%s/feature.%s.text_offsets.npy", folder, c->name);
    if (!err)
        err = weir_npy_folder_map(p->arrays, WEIR_NPY_U8, WEIR_NPY_ANY_ROWS, 0, &bytes, "%s/feature.%s.text_bytes.npy",
                                  folder, c->name);
    if (err) return err;
    snprintf(name, sizeof name, "%s/feature.%s.text_offsets.npy", folder, c->name);
    if (!offsets.count || offsets.count - 1 > INT32_MAX) return part_wrong(p, name, 0, "is missing");
    c->texts = offsets.count - 1;
    c->text_offsets = offsets.data;
    c->text_bytes = bytes.data;
    return part_check_offsets(p, name, c->text_offsets, c->texts, bytes.count);
}

/* texts: the folder of the texts of categories. */
static weir_err part_map_columns(weir_part *p, const weir_schema_feature *features, uint32_t count, const char *folder,
                                 const char *texts, uint64_t rows, const weir_snapshot_column **columnsp) {
    char name[512];
    weir_err err = WEIR_OK;
    weir_snapshot_column *columns = weir_calloc(count + 1, sizeof *columns);
    *columnsp = columns;
    if (!columns) return WEIR_NOMEM("while opening the part %s", p->folder);
    for (uint32_t i = 0; !err && i < count; i++) {
        weir_snapshot_column *c = &columns[i];
        err = weir_snapshot_map_feature(p->arrays, folder, &features[i], rows, c);
        if (err || c->kind != WEIR_VALUE_CATEGORY) continue;
        err = part_map_texts(p, texts, c);
        snprintf(name, sizeof name, "%s/feature.%s.npy", folder, c->name);
        for (uint64_t row = 0; !err && row < rows; row++) {
            if (c->codes[row] < -1 || c->codes[row] >= (int64_t)c->texts) err = part_wrong(p, name, row, "has no text");
        }
    }
    return err;
}

/* --- vertices -------------------------------------------------------------------------------------------------- */

/* The arrays give the count, and must agree on it. */
static weir_err part_map_spans(weir_part *p, const char *folder, const char *name, const char *times, uint64_t vertices,
                               weir_snapshot_spans *spans) {
    char array_name[160];
    weir_npy_array array;
    weir_err err =
        weir_npy_folder_map(p->arrays, WEIR_NPY_I64, WEIR_NPY_ANY_ROWS, 0, &array, "%s/%s/%s.npy", folder, name, times);
    spans->times = array.data;
    spans->count = array.count;
    if (!err)
        err = weir_npy_folder_map(p->arrays, WEIR_NPY_I64, spans->count, 0, &array, "%s/%s/until.npy", folder, name);
    spans->until_us = array.data;
    if (!err)
        err = weir_npy_folder_map(p->arrays, WEIR_NPY_I64, vertices + 1, 0, &array, "%s/%s/indptr.npy", folder, name);
    spans->indptr = array.data;
    snprintf(array_name, sizeof array_name, "%s/%s/indptr.npy", folder, name);
    return err ? err : part_check_offsets(p, array_name, spans->indptr, vertices, spans->count);
}

static weir_err part_map_vertices(weir_part *p, uint32_t type) {
    const weir_schema_vertex *schema = weir_schema_vertex_at(p->manifest.schema, type);
    const int64_t *starts = p->manifest.starts[type];
    weir_snapshot_vertices *v = &p->vertices[type];
    weir_npy_array array, bytes;
    char folder[96], name[128];
    snprintf(folder, sizeof folder, "vertices/%s", schema->name);
    v->count = (uint64_t)(starts[p->manifest.part + 1] - starts[p->manifest.part]);

    weir_err err = weir_npy_folder_map(p->arrays, WEIR_NPY_U64, v->count, 2, &array, "%s/ids.npy", folder);
    v->ids = array.data;
    snprintf(name, sizeof name, "%s/ids.npy", folder);
    for (uint64_t i = 1; !err && i < v->count; i++) {
        if (weir_vertex_of(v->ids[i - 1]) >= weir_vertex_of(v->ids[i]))
            err = part_wrong(p, name, i, "is not above the one before it");
    }
    if (!err) err = part_map_spans(p, folder, "lives", "first", v->count, &v->lives);
    if (!err) err = part_map_spans(p, folder, "rows", "times", v->count, &v->rows);
    if (err) return err;

    err = weir_npy_folder_map(p->arrays, WEIR_NPY_I64, v->count + 1, 0, &array, "%s/key_offsets.npy", folder);
    v->key_offsets = array.data;
    if (!err)
        err = weir_npy_folder_map(p->arrays, WEIR_NPY_U8, WEIR_NPY_ANY_ROWS, 0, &bytes, "%s/key_bytes.npy", folder);
    if (err) return err;
    v->key_bytes = bytes.data;
    snprintf(name, sizeof name, "%s/key_offsets.npy", folder);
    err = part_check_offsets(p, name, v->key_offsets, v->count, bytes.count);

    v->column_count = schema->feature_count;
    if (!err)
        err = part_map_columns(p, schema->features, schema->feature_count, folder, folder, v->rows.count, &v->columns);
    if (err) return err;
    v->extra_count = p->manifest.extra_counts[type];
    return weir_snapshot_map_extras(p->arrays, folder, v->count, p->manifest.extras[type], v->extra_count, &v->extras);
}

/* Ascending, none of them owned, all of them numbers of the type. */
static weir_err part_map_halo(weir_part *p, uint32_t type) {
    const int64_t *starts = p->manifest.starts[type];
    int64_t first = starts[p->manifest.part], behind = starts[p->manifest.part + 1], before = -1;
    char name[96];
    weir_npy_array array;
    snprintf(name, sizeof name, "halo/%s.npy", weir_schema_vertex_at(p->manifest.schema, type)->name);
    weir_err err = weir_npy_folder_map(p->arrays, WEIR_NPY_I64, p->manifest.halos[type], 0, &array, "%s", name);
    const int64_t *halo = p->halos[type] = array.data;
    if (!err) err = part_check_below(p, name, halo, p->manifest.halos[type], starts[p->manifest.parts]);
    for (uint64_t i = 0; !err && i < p->manifest.halos[type]; i++) {
        if (halo[i] <= before || (halo[i] >= first && halo[i] < behind))
            err = part_wrong(p, name, i, "is owned, or not above the one before it");
        before = halo[i];
    }
    return err;
}

/* --- relations ------------------------------------------------------------------------------------------------- */

static weir_err part_map_direction(weir_part *p, uint32_t relation, weir_direction direction) {
    const weir_schema_relation *r = weir_schema_relation_at(p->manifest.schema, relation);
    weir_snapshot_edges *e = &p->edges[2 * relation + direction];
    bool out = direction == WEIR_OUT;
    int64_t others = p->manifest.starts[out ? r->to : r->from][p->manifest.parts];
    char texts[96], folder[128], name[160];
    weir_npy_array array;
    snprintf(texts, sizeof texts, "relations/%s", r->name);
    snprintf(folder, sizeof folder, "%s/%s", texts, out ? "out" : "in");
    e->vertices = p->vertices[out ? r->from : r->to].count;
    e->edges = p->manifest.edges[2 * relation + direction];
    e->newest_us = p->manifest.newest_us[relation];
    e->expire_us = r->expire_us;
    e->column_count = r->feature_count;

    weir_err err = weir_npy_folder_map(p->arrays, WEIR_NPY_I64, e->vertices + 1, 0, &array, "%s/indptr.npy", folder);
    e->indptr = array.data;
    snprintf(name, sizeof name, "%s/indptr.npy", folder);
    if (!err) err = part_check_offsets(p, name, e->indptr, e->vertices, e->edges);
    if (!err) err = weir_snapshot_map_edges(p->arrays, folder, p->manifest.deleted[relation], e);
    snprintf(name, sizeof name, "%s/neighbors.npy", folder);
    if (!err) err = part_check_below(p, name, e->neighbors, e->edges, others);
    return err ? err : part_map_columns(p, r->features, r->feature_count, folder, texts, e->edges, &e->columns);
}

/* PARTS-P3, from the reader's side: a neighbour is owned or in the halo, so that whoever fetches the halo has all. */
static weir_err part_check_halo(const weir_part *p, uint32_t relation, weir_direction direction) {
    const weir_schema_relation *r = weir_schema_relation_at(p->manifest.schema, relation);
    uint32_t type = direction == WEIR_OUT ? r->to : r->from;
    const weir_snapshot_edges *e = &p->edges[2 * relation + direction];
    const int64_t *starts = p->manifest.starts[type];
    for (uint64_t i = 0; i < e->edges; i++) {
        int64_t n = e->neighbors[i];
        bool own = n >= starts[p->manifest.part] && n < starts[p->manifest.part + 1];
        if (!own && !weir_part_in_halo(p, type, n)) {
            return part_wrong(p, r->name, i, "of its neighbours is neither owned nor in the halo");
        }
    }
    return WEIR_OK;
}

/* --- labels ---------------------------------------------------------------------------------------------------- */

static weir_err part_map_labels(weir_part *p, uint32_t label) {
    const weir_schema_label *schema = weir_schema_label_at(p->manifest.schema, label);
    weir_snapshot_labels *l = &p->labels[label];
    char name[128];
    int64_t limit = schema->on_relation ? (int64_t)p->manifest.edges[2 * schema->target + WEIR_OUT]
                                        : (int64_t)p->vertices[schema->target].count;
    l->count = p->manifest.labels[label];
    weir_err err = weir_snapshot_map_labels(p->arrays, schema->name, l);
    snprintf(name, sizeof name, "labels/%s/targets.npy", schema->name);
    if (!err) err = part_check_below(p, name, l->targets, l->count, limit);
    snprintf(name, sizeof name, "labels/%s/values.npy", schema->name);
    for (uint64_t i = 0; !err && i < l->count; i++) {
        if (l->values[i] < 0 || l->values[i] >= (int64_t)schema->values.count)
            err = part_wrong(p, name, i, "is not a value of the label");
    }
    return err;
}

/* --- the handle ------------------------------------------------------------------------------------------------ */

static weir_err part_map_all(weir_part *p) {
    uint32_t types = weir_schema_vertex_count(p->manifest.schema);
    uint32_t relations = weir_schema_relation_count(p->manifest.schema);
    uint32_t labels = weir_schema_label_count(p->manifest.schema);
    weir_err err = WEIR_OK;
    p->vertices = weir_calloc(types + 1, sizeof *p->vertices);
    p->halos = weir_calloc(types + 1, sizeof *p->halos);
    p->edges = weir_calloc(2 * relations + 1, sizeof *p->edges);
    p->labels = weir_calloc(labels + 1, sizeof *p->labels);
    if (!p->vertices || !p->halos || !p->edges || !p->labels) return WEIR_NOMEM("while opening the part %s", p->folder);
    for (uint32_t i = 0; !err && i < types; i++) {
        err = part_map_vertices(p, i);
        if (!err) err = part_map_halo(p, i);
    }
    for (uint32_t i = 0; !err && i < 2 * relations; i++) {
        err = part_map_direction(p, i / 2, i % 2);
        if (!err) err = part_check_halo(p, i / 2, i % 2);
    }
    for (uint32_t i = 0; !err && i < labels; i++)
        err = part_map_labels(p, i);
    return err;
}

weir_err weir_part_open(const char *folder, const weir_part_opts *opts, weir_part **partp) {
    *partp = NULL;
    weir_part *p = weir_calloc(1, sizeof *p);
    if (!p) return WEIR_NOMEM("while opening the part %s", folder);
    int length = snprintf(p->folder, sizeof p->folder, "%s", folder);
    weir_err err =
        length < (int)sizeof p->folder ? WEIR_OK : WEIR_ERR(WEIR_ELIMIT, "the path %.64s… is too long", folder);
    if (!err && opts->verify) err = weir_manifest_verify(folder);
    if (!err) err = weir_npy_folder_open(folder, &p->arrays);
    if (!err) err = weir_part_manifest_read(p->folder, &p->manifest);
    if (!err) err = part_map_all(p);
    if (err) {
        weir_part_close(p);
    } else {
        *partp = p;
    }
    return err;
}

void weir_part_close(weir_part *p) {
    if (!p) return;
    /* Columns and extras were allocated by this file, and are lent out as read-only. */
    for (uint32_t i = 0; p->vertices && i < weir_schema_vertex_count(p->manifest.schema); i++) {
        weir_snapshot_free_lent(p->vertices[i].columns);
        weir_snapshot_free_lent(p->vertices[i].extras);
    }
    for (uint32_t i = 0; p->edges && i < 2 * weir_schema_relation_count(p->manifest.schema); i++)
        weir_snapshot_free_lent(p->edges[i].columns);
    weir_npy_folder_close(p->arrays);
    weir_free(p->vertices);
    weir_free(p->halos);
    weir_free(p->edges);
    weir_free(p->labels);
    weir_part_manifest_free(&p->manifest);
    weir_free(p);
}

/* --- looking --------------------------------------------------------------------------------------------------- */

const weir_schema *weir_part_schema(const weir_part *part) {
    return part->manifest.schema;
}

int64_t weir_part_as_of_us(const weir_part *part) {
    return part->manifest.as_of_us;
}

int64_t weir_part_from_us(const weir_part *part) {
    return part->manifest.from_us;
}

uint32_t weir_part_index(const weir_part *part) {
    return part->manifest.part;
}

uint32_t weir_part_count(const weir_part *part) {
    return part->manifest.parts;
}

const char *weir_part_cutting(const weir_part *part) {
    return part->manifest.cutting;
}

const int64_t *weir_part_starts(const weir_part *part, uint32_t type) {
    WEIR_ASSERT(type < weir_schema_vertex_count(part->manifest.schema));
    return part->manifest.starts[type];
}

uint32_t weir_part_owner(const weir_part *part, uint32_t type, int64_t number) {
    const int64_t *starts = weir_part_starts(part, type);
    uint32_t low = 0, high = part->manifest.parts;
    WEIR_ASSERT(number >= 0 && number < starts[high]);
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (starts[middle] <= number)
            low = middle;
        else
            high = middle;
    }
    return low;
}

const int64_t *weir_part_halo(const weir_part *part, uint32_t type, uint64_t *countp) {
    WEIR_ASSERT(type < weir_schema_vertex_count(part->manifest.schema));
    *countp = part->manifest.halos[type];
    return part->halos[type];
}

bool weir_part_in_halo(const weir_part *part, uint32_t type, int64_t number) {
    const int64_t *halo = part->halos[type];
    uint64_t low = 0, high = part->manifest.halos[type];
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (halo[middle] < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low < part->manifest.halos[type] && halo[low] == number;
}

const weir_snapshot_vertices *weir_part_vertices_of(const weir_part *part, uint32_t type) {
    WEIR_ASSERT(type < weir_schema_vertex_count(part->manifest.schema));
    return &part->vertices[type];
}

const weir_snapshot_edges *weir_part_edges_of(const weir_part *part, uint32_t relation, weir_direction direction) {
    WEIR_ASSERT(relation < weir_schema_relation_count(part->manifest.schema));
    return &part->edges[2 * relation + direction];
}

const weir_snapshot_labels *weir_part_labels_of(const weir_part *part, uint32_t label) {
    WEIR_ASSERT(label < weir_schema_label_count(part->manifest.schema));
    return &part->labels[label];
}

/* SPDX-License-Identifier: Apache-2.0 */
/* direct_nodes.c - keys, lives, features, labels, matrices and masks of an archive, in the order of ids. */
#include "direct.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/file.h>

#include "sorter.h"

#define NODES_KEY_MAX 24u /* a whole number as text */
#define NODES_ID      0u  /* of the plain columns   */
#define NODES_TIME    1u
#define NODES_LABEL   2u

/* --- survey ------------------------------------------------------------------------------------------------------ */

/* In a file of rows a vertex without numbers has an empty cell; some of them are no row of a matrix. */
static weir_err nodes_see_matrix(const weir_direct *d, const weir_archive_member *m, bool *anyp) {
    uint64_t width = m->array.shape[1];
    *anyp = false;
    for (uint64_t row = 0; row < d->archive->nodes; row++) {
        uint64_t missing = 0;
        for (uint64_t c = 0; c < width; c++)
            missing += isnan(weir_npy_f64(&m->array, row * width + c)) != 0;
        *anyp = *anyp || missing < width;
        if (missing > 0 && missing < width)
            return WEIR_ERR(WEIR_EDATA,
                            "%s: row %" PRIu64 " of the matrix '%.64s' lacks %" PRIu64 " of its %" PRIu64
                            " numbers: NaN; give them a value, or leave the matrix out with --skip",
                            d->archive->path, row, m->name, missing, width);
    }
    return WEIR_OK;
}

static void nodes_label_text(const weir_direct *d, int64_t label, char text[NODES_KEY_MAX]) {
    snprintf(text, NODES_KEY_MAX, "%0*lld", d->archive->label_digits, (long long)label);
}

/* A negative one is none. */
static weir_err nodes_see_labels(const weir_direct *d, weir_import_owner *owner) {
    char text[NODES_KEY_MAX];
    int64_t label, last = -1;
    int32_t code;
    weir_err err = WEIR_OK;
    for (uint64_t row = 0; !err && row < d->labels.count; row++) {
        err = weir_npy_i64(&d->labels, d->archive->path, row, &label);
        if (err || label < 0 || label == last) continue;
        last = label;
        owner->seen[NODES_LABEL] = WEIR_IMPORT_TEXTS;
        nodes_label_text(d, label, text);
        err = weir_texts_code(&owner->values[NODES_LABEL], text, strlen(text), &code);
    }
    return err;
}

weir_err weir_direct_survey_nodes(weir_direct *d) {
    static const char *const plain[] = {"id", "timestamp", "label"};
    weir_import_table *table = &d->import->nodes;
    uint32_t index;
    bool any;
    weir_err err = weir_direct_columns(d, true, plain, &d->node_members);
    if (!err && table->columns[NODES_ID].role == WEIR_IMPORT_SKIP)
        err = WEIR_ERR(WEIR_EDATA, "%s has no column 'id' but the one that --skip leaves out", d->archive->path);
    if (err || d->archive->nodes == 0) return err;
    if (table->columns[NODES_TIME].role != WEIR_IMPORT_SKIP) d->node_times = d->archive->node_times;
    if (table->columns[NODES_LABEL].role != WEIR_IMPORT_SKIP) d->labels = d->archive->labels;
    err = weir_import_owner_of(table, "", "node", &any, &index);
    if (!err) err = nodes_see_labels(d, table->owners);
    for (uint32_t i = WEIR_DIRECT_PLAIN; !err && i < table->column_count; i++) {
        const weir_archive_member *m = d->node_members[i];
        any = table->columns[i].role == WEIR_IMPORT_MASK;
        if (table->columns[i].role == WEIR_IMPORT_FEATURE) err = weir_direct_see_numbers(d, m, &any);
        if (table->columns[i].role == WEIR_IMPORT_MATRIX) err = nodes_see_matrix(d, m, &any);
        if (any) table->owners[index].seen[i] = WEIR_IMPORT_NUMBERS;
    }

    d->label_column = NODES_LABEL;
    return err;
}

weir_err weir_direct_see_node_times(weir_direct *d) {
    d->newest_us = INT64_MIN;
    d->first_us = weir_calloc(d->archive->nodes, sizeof *d->first_us);
    if (!d->first_us) return WEIR_NOMEM("for %" PRIu64 " nodes", d->archive->nodes);
    weir_err err = weir_direct_times(d, &d->node_times, 0, d->archive->nodes, d->first_us);
    for (uint64_t row = 0; !err && row < d->archive->nodes; row++) {
        if (d->first_us[row] > d->newest_us) d->newest_us = d->first_us[row];
    }
    return err;
}

/* --- order ------------------------------------------------------------------------------------------------------- */

typedef struct nodes_key {
    char number[NODES_KEY_MAX];
    const char *text; /* not ended by 0 */
    size_t length;
    weir_vertex id;
} nodes_key;

static weir_err nodes_key_of(const weir_direct *d, uint64_t row, nodes_key *key) {
    int64_t number = (int64_t)row;
    weir_err err = WEIR_OK;
    if (d->keys) {
        key->text = d->keys->bytes.bytes + d->keys->offsets[row];
        key->length = (size_t)(d->keys->offsets[row + 1] - d->keys->offsets[row]);
    } else {
        if (d->archive->ids.count) err = weir_npy_i64(&d->archive->ids, d->archive->path, row, &number);
        key->length = (size_t)snprintf(key->number, sizeof key->number, "%" PRId64, number);
        key->text = key->number;
    }
    key->id = weir_vertex_id(&weir_id_key_public, d->import->nodes.owners[0].name, key->text, key->length);
    return err;
}

weir_err weir_direct_order(weir_direct *d, bool *repeatedp) {
    uint64_t nodes = d->archive->nodes, vertex = 0;
    nodes_key key;
    weir_sorter *sorter = NULL;
    weir_vertex id, last = 0;
    const uint64_t *record;
    size_t count = 1;
    *repeatedp = false;
    d->row_of = weir_calloc(nodes, sizeof *d->row_of);
    d->vertex_of = weir_calloc(nodes, sizeof *d->vertex_of);
    weir_err err = d->row_of && d->vertex_of ? WEIR_OK : WEIR_NOMEM("for %" PRIu64 " nodes", nodes);
    if (!err) err = weir_sorter_open(d->folder, 3, nodes, WEIR_DIRECT_SORT, &sorter);
    for (uint64_t row = 0; !err && row < nodes; row++) {
        err = nodes_key_of(d, row, &key);
        const uint64_t one[] = {weir_vertex_high(key.id), weir_vertex_low(key.id), row};
        if (!err) err = weir_sorter_add(sorter, one, 1);
    }
    if (!err) err = weir_sorter_end(sorter);
    while (!err && count > 0) {
        err = weir_sorter_next(sorter, &record, &count);
        for (size_t i = 0; i < count; i++, record += 3, vertex++) {
            id = weir_vertex_make(record[0], record[1]);
            *repeatedp = *repeatedp || (vertex > 0 && id == last);
            last = id;
            WEIR_ASSERT(vertex < nodes && record[2] < nodes);
            d->row_of[vertex] = record[2];
            d->vertex_of[record[2]] = vertex;
        }
    }
    WEIR_ASSERT(err || vertex == nodes);
    weir_sorter_close(sorter);
    return err;
}

/* --- ids, keys, lives -------------------------------------------------------------------------------------------- */

static weir_err nodes_write_keys(weir_direct *d, const char *folder) {
    weir_snapshot_draft *draft = &d->draft;
    uint64_t nodes = d->archive->nodes;
    char path[WEIR_DRAFT_PATH_MAX];
    nodes_key key;
    weir_npy_writer *ids = NULL, *offsets = NULL, *bytes = NULL;
    weir_err err = weir_draft_array(draft, WEIR_NPY_U64, nodes, 2, &ids, "%s/ids.npy", folder);
    if (!err) err = weir_draft_array(draft, WEIR_NPY_I64, nodes + 1, 0, &offsets, "%s/key_offsets.npy", folder);
    if (!err) err = weir_draft_array(draft, WEIR_NPY_U8, WEIR_NPY_ANY_ROWS, 0, &bytes, "%s/key_bytes.npy", folder);
    for (uint64_t v = 0; !err && v < nodes; v++) {
        err = nodes_key_of(d, d->row_of[v], &key);
        const weir_vertex_pair pair = {weir_vertex_high(key.id), weir_vertex_low(key.id)};
        if (!err) err = weir_npy_write(ids, &pair, 2);
        if (!err) err = weir_npy_write_i64(offsets, (int64_t)weir_npy_written(bytes));
        if (!err) err = weir_npy_write(bytes, key.text, key.length);
    }
    if (!err) err = weir_npy_write_i64(offsets, (int64_t)weir_npy_written(bytes));
    err = weir_npy_writer_end(ids, err);
    err = weir_npy_writer_end(offsets, err);
    err = weir_npy_writer_end(bytes, err);
    if (!err) err = weir_draft_path(draft, path, "%s/ids.npy", folder);
    draft->stats.vertices += nodes;
    return err ? err : weir_npy_map_open(path, &draft->id_maps[0], &draft->ids[0]);
}

/* Lists of one or none: `has`, of each row, says which; NULL: each has one. */
static weir_err nodes_write_spans(const weir_direct *d, const char *folder, const char *name, const char *times,
                                  const uint8_t *has, uint64_t count, const int64_t *times_us) {
    const weir_snapshot_draft *draft = &d->draft;
    uint64_t nodes = d->archive->nodes;
    char path[WEIR_DRAFT_PATH_MAX];
    weir_npy_writer *indptr = NULL, *begins = NULL, *until = NULL;
    weir_err err = weir_draft_path(draft, path, "%s/%s", folder, name);
    if (!err) err = weir_folder_create(path);
    if (!err) err = weir_draft_array(draft, WEIR_NPY_I64, nodes + 1, 0, &indptr, "%s/%s/indptr.npy", folder, name);
    if (!err) err = weir_draft_array(draft, WEIR_NPY_I64, count, 0, &begins, "%s/%s/%s.npy", folder, name, times);
    if (!err) err = weir_draft_array(draft, WEIR_NPY_I64, count, 0, &until, "%s/%s/until.npy", folder, name);
    for (uint64_t v = 0; !err && v < nodes; v++) {
        err = weir_npy_write_i64(indptr, (int64_t)weir_npy_written(begins));
        if (err || (has && !has[d->row_of[v]])) continue;
        err = weir_npy_write_i64(begins, times_us[d->row_of[v]]);
        if (!err) err = weir_npy_write_i64(until, INT64_MAX);
    }
    if (!err) err = weir_npy_write_i64(indptr, (int64_t)weir_npy_written(begins));
    err = weir_npy_writer_end(indptr, err);
    err = weir_npy_writer_end(begins, err);
    return weir_npy_writer_end(until, err);
}

/* --- features and labels ----------------------------------------------------------------------------------------- */

static const weir_npy_array *nodes_feature(const weir_direct *d, uint32_t feature) {
    return &d->node_members[d->import->nodes.owners[0].features[feature]]->array;
}

/* A vertex has a row if it has any of the features. */
static weir_err nodes_write_rows(weir_direct *d, const char *folder, const int64_t *times_us) {
    const weir_import_owner *owner = d->import->nodes.owners;
    uint64_t nodes = d->archive->nodes, count = 0;
    uint8_t *has = weir_calloc(nodes, 1);
    weir_err err = has ? WEIR_OK : WEIR_NOMEM("for %" PRIu64 " nodes", nodes);
    for (uint32_t f = 0; !err && f < owner->feature_count; f++) {
        for (uint64_t row = 0; row < nodes; row++)
            if (!isnan(weir_npy_f64(nodes_feature(d, f), row))) has[row] = 1;
    }
    for (uint64_t row = 0; !err && row < nodes; row++)
        count += has[row];
    if (!err) err = nodes_write_spans(d, folder, "rows", "times", has, count, times_us);
    for (uint32_t f = 0; !err && f < owner->feature_count;
         f++) { /* one by one: a column is in the cache, all are not */
        weir_npy_writer *writer = NULL;
        err = weir_draft_array(&d->draft, WEIR_NPY_F32, count, 0, &writer, "%s/feature.%s.npy", folder,
                               d->import->nodes.columns[owner->features[f]].name);
        for (uint64_t v = 0; !err && v < nodes; v++) {
            if (!has[d->row_of[v]]) continue;
            float number = (float)weir_npy_f64(nodes_feature(d, f), d->row_of[v]);
            if (isnan(number)) number = NAN;
            err = weir_npy_write(writer, &number, 1);
        }
        err = weir_npy_writer_end(writer, err);
    }
    d->draft.row_counts[0] = count;
    weir_free(has);
    return err;
}

/* The schema's values are sorted, which the numbers and codes of labels are not. */
static int32_t nodes_label_value(const weir_direct *d, const weir_schema_label *schema, int64_t label) {
    const weir_texts *known = &d->import->nodes.owners[0].values[d->label_column];
    char number[NODES_KEY_MAX];
    uint32_t value;
    if (d->keys) {
        value = weir_schema_values_find(&schema->values, known->bytes.bytes + known->offsets[label],
                                        (size_t)(known->offsets[label + 1] - known->offsets[label]));
    } else {
        nodes_label_text(d, label, number);
        value = weir_schema_values_find(&schema->values, number, strlen(number));
    }
    WEIR_ASSERT(value < schema->values.count); /* the survey has seen all */
    return (int32_t)value;
}

static weir_err nodes_write_labels(weir_direct *d, const int64_t *times_us) {
    weir_snapshot_draft *draft = &d->draft;
    uint32_t label = d->labels.count ? d->import->nodes.owners[0].labels[d->label_column] : WEIR_SCHEMA_NONE;
    weir_npy_writer *targets = NULL, *values = NULL, *times = NULL;
    char folder[512], path[WEIR_DRAFT_PATH_MAX];
    int64_t number;
    if (label == WEIR_SCHEMA_NONE) return WEIR_OK;
    const weir_schema_label *schema = weir_schema_label_at(draft->schema, label);
    snprintf(folder, sizeof folder, "labels/%s", schema->name);
    weir_err err = weir_draft_path(draft, path, "%s", folder);
    if (!err) err = weir_folder_create(path);
    if (!err) err = weir_draft_array(draft, WEIR_NPY_I64, WEIR_NPY_ANY_ROWS, 0, &targets, "%s/targets.npy", folder);
    if (!err) err = weir_draft_array(draft, WEIR_NPY_I32, WEIR_NPY_ANY_ROWS, 0, &values, "%s/values.npy", folder);
    if (!err) err = weir_draft_array(draft, WEIR_NPY_I64, WEIR_NPY_ANY_ROWS, 0, &times, "%s/times.npy", folder);
    for (uint64_t v = 0; !err && v < d->archive->nodes; v++) {
        err = weir_npy_i64(&d->labels, d->archive->path, d->row_of[v], &number);
        if (err || number < 0) continue;
        const int32_t value = nodes_label_value(d, schema, number);
        err = weir_npy_write_i64(targets, (int64_t)v);
        if (!err) err = weir_npy_write(values, &value, 1);
        if (!err) err = weir_npy_write_i64(times, times_us[d->row_of[v]]);
    }
    if (!err) draft->label_counts[label] = weir_npy_written(targets);
    draft->stats.labels += draft->label_counts[label];
    err = weir_npy_writer_end(targets, err);
    err = weir_npy_writer_end(values, err);
    return weir_npy_writer_end(times, err);
}

/* --- matrices and masks ------------------------------------------------------------------------------------------ */

static weir_err nodes_write_matrix(weir_direct *d, const char *name, const weir_npy_array *array) {
    uint64_t width = array->shape[1];
    weir_npy_writer *writer = NULL;
    float *numbers = weir_calloc((size_t)width, sizeof *numbers);
    weir_err err = numbers ? WEIR_OK : WEIR_NOMEM("for the array %s", name);
    if (!err) err = weir_draft_extra_open(&d->draft, 0, name, width, &writer);
    for (uint64_t v = 0; !err && v < d->archive->nodes; v++) {
        weir_npy_f32s(array, d->row_of[v] * width, (size_t)width, numbers);
        /* Of numbers in an archive all are missing, then, and the vertex has no row. */
        if (!d->keys && isnan(numbers[0])) memset(numbers, 0, (size_t)width * sizeof *numbers);
        err = weir_npy_write(writer, numbers, width);
    }
    weir_free(numbers);
    return weir_npy_writer_end(writer, err);
}

static weir_err nodes_write_mask(weir_direct *d, const char *name, const weir_npy_array *array) {
    weir_npy_writer *writer = NULL;
    weir_err err = weir_draft_extra_open(&d->draft, 0, name, 0, &writer);
    for (uint64_t v = 0; !err && v < d->archive->nodes; v++) {
        const uint8_t set = weir_npy_f64(array, d->row_of[v]) != 0;
        err = weir_npy_write(writer, &set, 1);
    }
    return weir_npy_writer_end(writer, err);
}

weir_err weir_direct_write_nodes(weir_direct *d) {
    const weir_import_table *table = &d->import->nodes;
    uint64_t nodes = d->archive->nodes;
    char folder[512], path[WEIR_DRAFT_PATH_MAX];
    int64_t *times_us = weir_calloc(nodes, sizeof *times_us); /* of rows and labels */
    snprintf(folder, sizeof folder, "vertices/%s", table->owners[0].name);
    weir_err err = times_us ? WEIR_OK : WEIR_NOMEM("for %" PRIu64 " nodes", nodes);
    if (!err) err = weir_direct_times(d, &d->node_times, 0, nodes, times_us);
    if (!err) err = weir_draft_path(&d->draft, path, "%s", folder);
    if (!err) err = weir_folder_create(path);
    if (!err) err = nodes_write_keys(d, folder);
    if (!err) err = nodes_write_spans(d, folder, "lives", "first", NULL, nodes, d->first_us);
    if (!err) d->draft.life_counts[0] = nodes;
    if (!err) err = nodes_write_rows(d, folder, times_us);
    if (!err) err = nodes_write_labels(d, times_us);
    for (uint32_t i = 0; !err && i < table->column_count; i++) {
        const weir_archive_member *m = d->node_members[i];
        if (!m || table->owners[0].seen[i] == WEIR_IMPORT_NOTHING) continue;
        if (table->columns[i].role == WEIR_IMPORT_SKIP) continue;
        if (m->kind == WEIR_MEMBER_MATRIX) err = nodes_write_matrix(d, table->columns[i].name, &m->array);
        if (m->kind == WEIR_MEMBER_MASK) err = nodes_write_mask(d, table->columns[i].name, &m->array);
    }
    weir_free(times_us);
    return err;
}

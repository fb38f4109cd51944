/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tabulate.c - rows of text as arrays: each column a file of numbers, keys and values of labels as their codes.
 *
 * A row's number is the code of its key: keys were numbered by the survey as they came, and each came once.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/file.h>

#include "import_private.h"

#define TABULATE_PLAIN 4u /* arrays that are no members */

/* An array while it is being written: writer NULL, there is none. */
typedef struct tabulate_file {
    weir_npy_writer *writer;
    weir_npy_type type;
    uint64_t columns;
} tabulate_file;

typedef struct tabulate {
    weir_import *import;
    const char *folder;
    weir_tabulated *rows;
    weir_import_table *table;  /* that is being read */
    tabulate_file *files;      /* times, src or labels, dst; then of each member */
    uint32_t time, first, dst; /* columns: of the time, of the key or src, of dst; WEIR_SCHEMA_NONE: there is none */
    float *matrix;             /* one row of the widest */
    uint64_t count;            /* rows */
} tabulate;

enum { TABULATE_TIMES, TABULATE_SRC, TABULATE_DST, TABULATE_LABELS };

/* --- whether they are -------------------------------------------------------------------------------------------- */

static bool tabulate_has(const weir_import_table *table, uint32_t column) {
    return table->owner_count > 0 && table->owners[0].seen[column] != WEIR_IMPORT_NOTHING;
}

static uint32_t tabulate_labels(const weir_import_table *table, uint32_t *columnp) {
    uint32_t count = 0;
    *columnp = WEIR_SCHEMA_NONE;
    for (uint32_t i = 0; i < table->column_count; i++) {
        if (table->columns[i].role != WEIR_IMPORT_LABEL || !tabulate_has(table, i)) continue;
        *columnp = i;
        count++;
    }
    return count;
}

static bool tabulate_is_plain(const weir_import_table *table) {
    for (uint32_t i = 0; i < table->column_count; i++) {
        if (!tabulate_has(table, i)) continue;
        weir_import_role role = table->columns[i].role;
        if (role == WEIR_IMPORT_MOMENT || role == WEIR_IMPORT_TEXT) return false;
        if (role == WEIR_IMPORT_EVENT || role == WEIR_IMPORT_LABEL_TIME) return false;
        if (role == WEIR_IMPORT_FEATURE && table->owners[0].seen[i] == WEIR_IMPORT_TEXTS) return false;
    }
    return table->owner_count <= 1;
}

bool weir_import_is_flat(const weir_import *import) {
    uint32_t column;
    return !import->opts->by_store && !import->repeated && import->nodes.owner_count == 1 &&
           tabulate_is_plain(&import->nodes) && tabulate_is_plain(&import->edges) &&
           tabulate_labels(&import->nodes, &column) <= 1 && tabulate_labels(&import->edges, &column) == 0;
}

/* --- values ------------------------------------------------------------------------------------------------------ */

static weir_err tabulate_changed(const tabulate *t) {
    return WEIR_ERR(WEIR_EDATA, "%s is not what it was when it was first read; import it again",
                    weir_csv_place(t->table->csv));
}

static weir_err tabulate_put_matrix(const tabulate *t, const weir_import_column *column, const char *text,
                                    weir_npy_writer *writer) {
    double value;
    bool bits = column->role == WEIR_IMPORT_BITS;
    memset(t->matrix, 0, (size_t)column->width * sizeof *t->matrix);
    for (uint64_t at = 0; weir_import_list(&text, &value); at++) {
        uint64_t place = bits ? (uint64_t)value : at;
        if (place >= column->width)
            return WEIR_ERR(WEIR_EDATA, "%s: bit %llu is beyond the %llu columns that were given",
                            weir_csv_place(t->table->csv), (unsigned long long)place,
                            (unsigned long long)column->width);
        t->matrix[place] = bits ? 1.0f : (float)value;
    }
    return weir_npy_write(writer, t->matrix, column->width);
}

static weir_err tabulate_put_member(const tabulate *t, uint32_t member) {
    uint32_t at = t->rows->columns[member];
    const weir_import_column *column = &t->table->columns[at];
    const char *text = weir_csv_field(t->table->csv, column->field);
    weir_npy_writer *writer = t->files[TABULATE_PLAIN + member].writer;
    double value = 0;
    if (t->rows->archive.members[member].kind == WEIR_MEMBER_MATRIX)
        return tabulate_put_matrix(t, column, text, writer);
    if (column->role == WEIR_IMPORT_MASK) {
        const uint8_t set = weir_import_in_mask(t->table, at);
        return weir_npy_write(writer, &set, 1);
    }
    if (*text && !weir_import_number(text, &value)) return tabulate_changed(t);
    const float number = *text ? (float)value : NAN;
    return weir_npy_write(writer, &number, 1);
}

/* Time and members of the row at hand. */
static weir_err tabulate_put_rest(tabulate *t, bool edges) {
    weir_npy_writer *times = t->files[TABULATE_TIMES].writer;
    int64_t time_us = 0;
    weir_err err = WEIR_OK;
    t->count++;
    if (times && !weir_import_seconds(weir_csv_field(t->table->csv, t->time), &time_us)) return tabulate_changed(t);
    if (times) err = weir_npy_write_i64(times, time_us);
    for (uint32_t i = 0; !err && i < t->rows->archive.member_count; i++) {
        if ((t->rows->archive.members[i].kind == WEIR_MEMBER_EDGE) == edges) err = tabulate_put_member(t, i);
    }
    return err;
}

/* --- rows -------------------------------------------------------------------------------------------------------- */

static int32_t tabulate_code(const tabulate *t, uint32_t column) {
    const char *key = weir_csv_field(t->table->csv, column);
    return weir_texts_find(&t->import->ids, key, strlen(key));
}

static weir_err tabulate_node(void *context) {
    tabulate *t = context;
    weir_npy_writer *labels = t->files[TABULATE_LABELS].writer;
    weir_err err = WEIR_OK;
    if (tabulate_code(t, t->first) != (int64_t)t->count) return tabulate_changed(t);
    if (labels) {
        const char *label = weir_csv_field(t->table->csv, t->rows->label_column);
        const weir_texts *values = &t->table->owners[0].values[t->rows->label_column];
        err = weir_npy_write_i64(labels, *label ? weir_texts_find(values, label, strlen(label)) : -1);
    }
    return err ? err : tabulate_put_rest(t, false);
}

static weir_err tabulate_edge(void *context) {
    tabulate *t = context;
    int32_t src = tabulate_code(t, t->first), dst = tabulate_code(t, t->dst);
    if (src < 0 || dst < 0) return tabulate_changed(t);
    weir_err err = weir_npy_write_i64(t->files[TABULATE_SRC].writer, src);
    if (!err) err = weir_npy_write_i64(t->files[TABULATE_DST].writer, dst);
    return err ? err : tabulate_put_rest(t, true);
}

/* --- files ------------------------------------------------------------------------------------------------------- */

/* The members of a table, in the order of its columns. */
static void tabulate_find_members(const tabulate *t, const weir_import_table *table, bool edges) {
    weir_archive *a = &t->rows->archive;
    for (uint32_t i = 0; i < table->column_count; i++) {
        weir_import_role role = table->columns[i].role;
        bool matrix = role == WEIR_IMPORT_MATRIX || role == WEIR_IMPORT_BITS;
        if (!tabulate_has(table, i) || (!matrix && role != WEIR_IMPORT_FEATURE && role != WEIR_IMPORT_MASK)) continue;
        weir_archive_kind number = edges ? WEIR_MEMBER_EDGE : WEIR_MEMBER_NODE;
        t->rows->columns[a->member_count] = i;
        a->members[a->member_count++] = (weir_archive_member){.kind = matrix                     ? WEIR_MEMBER_MATRIX
                                                                      : role == WEIR_IMPORT_MASK ? WEIR_MEMBER_MASK
                                                                                                 : number,
                                                              .name = table->columns[i].name};
    }
}

static weir_err tabulate_open(tabulate *t, uint32_t file, weir_npy_type type, uint64_t columns) {
    char path[WEIR_DRAFT_PATH_MAX];
    int length = snprintf(path, sizeof path, "%s/column.%u", t->folder, file);
    if (length < 0 || length >= (int)sizeof path)
        return WEIR_ERR(WEIR_ELIMIT, "the path %.64s… is too long", t->folder);
    t->files[file] = (tabulate_file){.type = type, .columns = columns};
    return weir_npy_writer_open(path, type, columns ? t->import->ids.count : WEIR_NPY_ANY_ROWS, columns,
                                &t->files[file].writer);
}

static weir_err tabulate_open_members(tabulate *t, bool edges) {
    weir_archive *a = &t->rows->archive;
    uint64_t widest = 1;
    weir_err err = WEIR_OK;
    for (uint32_t i = 0; !err && i < a->member_count; i++) {
        if ((a->members[i].kind == WEIR_MEMBER_EDGE) != edges) continue;
        uint64_t width = a->members[i].kind == WEIR_MEMBER_MATRIX ? t->table->columns[t->rows->columns[i]].width : 0;
        if (width > widest) widest = width;
        err = tabulate_open(t, TABULATE_PLAIN + i,
                            a->members[i].kind == WEIR_MEMBER_MASK ? WEIR_NPY_BOOL : WEIR_NPY_F32, width);
    }
    weir_free(t->matrix);
    t->matrix = weir_calloc((size_t)widest, sizeof *t->matrix);
    return err || t->matrix ? err : WEIR_NOMEM("for a row of %llu numbers", (unsigned long long)widest);
}

/* Closes what is open, and maps it. */
static weir_err tabulate_map(tabulate *t, weir_err err) {
    weir_archive *a = &t->rows->archive;
    weir_npy_array *const plain[TABULATE_PLAIN] = {[TABULATE_TIMES] =
                                                       t->table == &t->import->nodes ? &a->node_times : &a->edge_times,
                                                   [TABULATE_SRC] = &a->src,
                                                   [TABULATE_DST] = &a->dst,
                                                   [TABULATE_LABELS] = &a->labels};
    for (uint32_t i = 0; i < TABULATE_PLAIN + a->member_count; i++) {
        tabulate_file *file = &t->files[i];
        bool open = file->writer != NULL;
        err = weir_npy_writer_end(file->writer, err);
        file->writer = NULL;
        if (err || !open) continue;
        err =
            weir_npy_folder_map(t->rows->arrays, file->type, WEIR_NPY_ANY_ROWS, file->columns,
                                i < TABULATE_PLAIN ? plain[i] : &a->members[i - TABULATE_PLAIN].array, "column.%u", i);
        char path[WEIR_DRAFT_PATH_MAX];
        snprintf(path, sizeof path, "%s/column.%u", t->folder, i);
        if (!err) err = weir_file_remove(path); /* the mapping stays, and the number is free */
    }
    return err;
}

static weir_err tabulate_table(tabulate *t, weir_import_table *table, bool edges) {
    t->table = table;
    t->count = 0;
    if (!table->csv) return WEIR_OK;
    t->time = weir_import_find(table, WEIR_IMPORT_TIME);
    t->first = weir_import_find(table, edges ? WEIR_IMPORT_SRC : WEIR_IMPORT_ID);
    t->dst = weir_import_find(table, WEIR_IMPORT_DST);
    weir_err err = t->time == WEIR_SCHEMA_NONE ? WEIR_OK : tabulate_open(t, TABULATE_TIMES, WEIR_NPY_I64, 0);
    if (!err && edges) err = tabulate_open(t, TABULATE_SRC, WEIR_NPY_I64, 0);
    if (!err && edges) err = tabulate_open(t, TABULATE_DST, WEIR_NPY_I64, 0);
    if (!err && !edges && t->rows->label_column != WEIR_SCHEMA_NONE)
        err = tabulate_open(t, TABULATE_LABELS, WEIR_NPY_I64, 0);
    if (!err) err = tabulate_open_members(t, edges);
    if (!err) err = weir_import_walk(table, edges ? tabulate_edge : tabulate_node, t);
    if (!err && !edges && t->count != t->import->ids.count) err = tabulate_changed(t);
    t->rows->archive.rows += t->count;
    return tabulate_map(t, err);
}

weir_err weir_import_tabulate(weir_import *import, const char *folder, weir_tabulated *rowsp) {
    uint32_t columns = import->nodes.column_count + import->edges.column_count;
    const weir_snapshot_import_opts *opts = import->opts;
    *rowsp = (weir_tabulated){.archive = {.path = opts->edges, .origin = weir_import_origin(opts)}};
    tabulate t = {.import = import, .folder = folder, .rows = rowsp};
    tabulate_labels(&import->nodes, &rowsp->label_column);
    rowsp->archive.members = weir_calloc(columns + 1, sizeof *rowsp->archive.members);
    rowsp->columns = weir_calloc(columns + 1, sizeof *rowsp->columns);
    t.files = weir_calloc(TABULATE_PLAIN + columns, sizeof *t.files);
    weir_err err = rowsp->archive.members && rowsp->columns && t.files ? WEIR_OK : WEIR_NOMEM("for rows as arrays");
    if (!err) err = weir_npy_folder_open(folder, &rowsp->arrays);
    if (!err) {
        tabulate_find_members(&t, &import->nodes, false);
        tabulate_find_members(&t, &import->edges, true);
        err = tabulate_table(&t, &import->nodes, false);
    }
    if (!err) err = tabulate_table(&t, &import->edges, true);
    rowsp->archive.nodes = import->ids.count;
    rowsp->archive.edges = t.count;
    WEIR_ASSERT(err || rowsp->archive.src.count == t.count);
    weir_free(t.matrix);
    weir_free(t.files);
    return err;
}

void weir_import_tabulated_close(weir_tabulated *rows) {
    weir_npy_folder_close(rows->arrays);
    weir_free(rows->archive.members);
    weir_free(rows->columns);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * direct.c - the arrays of an archive, or of plain rows, become those of a snapshot, a column at a time.
 *
 *   survey   what there is ──► the schema, as if the archive were the two files of rows
 *   order    keys ──► ids, sorted ──► the vertex of each row
 *   nodes    each array in the order of vertices
 *   edges    by vertex, time and neighbour, once from each end
 *
 * The result is what a store fed with the same rows would give (README.md, "What an import reads"), but a store keeps
 * histories, and takes more than ten times as long. MEMORY: 40 bytes a node, WEIR_DIRECT_SORT, and pages of files,
 * which the system takes back when it needs them.
 */
#include "direct.h"

#include <math.h>
#include <string.h>

#include <weir/store/base/alloc.h>

weir_err weir_direct_columns(weir_direct *d, bool nodes, const char *const plain[WEIR_DIRECT_PLAIN],
                             const weir_archive_member ***membersp) {
    weir_import_table *table = nodes ? &d->import->nodes : &d->import->edges;
    char name[WEIR_ARCHIVE_COLUMN_MAX];
    weir_err err = WEIR_OK;
    table->columns = weir_calloc(WEIR_DIRECT_PLAIN + d->archive->member_count, sizeof *table->columns);
    table->owners = weir_calloc(WEIR_IMPORT_OWNERS_MAX, sizeof *table->owners);
    *membersp = weir_calloc(WEIR_DIRECT_PLAIN + d->archive->member_count, sizeof **membersp);
    if (!table->columns || !table->owners || !*membersp) return WEIR_NOMEM("while importing a data set");
    for (uint32_t i = 0; !err && i < WEIR_DIRECT_PLAIN; i++)
        err = weir_import_classify(d->import, plain[i], nodes, &table->columns[table->column_count++]);
    for (uint32_t i = 0; !err && i < d->archive->member_count; i++) {
        const weir_archive_member *m = &d->archive->members[i];
        if (m->kind == WEIR_MEMBER_OTHER || (m->kind == WEIR_MEMBER_EDGE) == nodes) continue;
        weir_archive_column(m, name);
        (*membersp)[table->column_count] = m;
        err = weir_import_classify(d->import, name, nodes, &table->columns[table->column_count++]);
    }
    return weir_err_prefix(err, "%s", d->archive->path);
}

weir_err weir_direct_see_numbers(const weir_direct *d, const weir_archive_member *m, bool *anyp) {
    *anyp = false;
    for (uint64_t i = 0; i < m->array.count; i++) {
        float number = (float)weir_npy_f64(&m->array, i);
        if (isinf(number))
            return WEIR_ERR(WEIR_EDATA, "%s: number %llu of '%.64s' is infinite; leave it out with --skip number.%.64s",
                            d->archive->path, (unsigned long long)i, m->name, m->name);
        *anyp = *anyp || !isnan(number);
    }
    return WEIR_OK;
}

weir_err weir_direct_times(const weir_direct *d, const weir_npy_array *array, uint64_t first, size_t count,
                           int64_t *times_us) {
    const int64_t most_us = INT64_MAX / 2000000 * 1000000 + 999999; /* as many seconds, and a fraction */
    if (array->count == 0) memset(times_us, 0, count * sizeof *times_us);
    weir_err err = array->count ? weir_npy_i64s(array, d->archive->path, first, count, times_us) : WEIR_OK;
    for (size_t i = 0; !err && i < count; i++) {
        if (times_us[i] == WEIR_SNAPSHOT_NEVER) times_us[i] = 0;
        if (times_us[i] > most_us || times_us[i] < -most_us)
            err = WEIR_ERR(WEIR_EDATA, "%s: %lld is not a time in microseconds since 1970: it is too far away",
                           d->archive->path, (long long)times_us[i]);
    }
    return err;
}

static weir_err direct_write(weir_snapshot_draft *draft, void *context) {
    weir_direct *d = context;
    (void)draft; /* it is d->draft */
    weir_err err = weir_direct_write_nodes(d);
    return err ? err : weir_direct_write_edges(d);
}

static weir_err direct_make(weir_direct *d) {
    const weir_snapshot_build_opts build = {.out = d->import->opts->out,
                                            .as_of_us = WEIR_BEFORE_ALL,
                                            .without_events = true,
                                            .seed = d->import->opts->seed,
                                            .origin = d->archive->origin};
    d->draft.schema = d->import->schema;
    d->draft.opts = &build;
    d->draft.as_of_us = d->draft.age_us = d->draft.reach_us = d->newest_us + 1; /* as a store's that has these puts */
    d->draft.whole_us = INT64_MIN;
    d->draft.import_rows = d->archive->rows;
    weir_err err = weir_draft_make(&d->draft, direct_write, d);
    weir_draft_close(&d->draft);
    return err;
}

static void direct_close(weir_direct *d) {
    weir_free(d->node_members);
    weir_free(d->edge_members);
    weir_free(d->row_of);
    weir_free(d->vertex_of);
    weir_free(d->first_us);
    weir_free(d);
}

/* The schema is there; *repeatedp: a key stands in two rows, and nothing was made. */
static weir_err direct_run(weir_direct *d, bool *repeatedp, weir_snapshot_stats *statsp) {
    weir_err err = weir_direct_see_node_times(d);
    if (!err) err = weir_direct_see_edges(d);
    if (!err) err = weir_direct_order(d, repeatedp);
    if (!err && !*repeatedp) err = direct_make(d);
    *statsp = d->draft.stats;
    return err;
}

weir_err weir_import_direct(const weir_snapshot_import_opts *opts, const weir_archive *archive, const char *folder,
                            bool *donep, weir_snapshot_stats *statsp) {
    weir_import import = {.opts = opts};
    bool repeated = false;
    *donep = false;
    if (opts->bits || opts->by_store) return WEIR_OK;
    weir_direct *d = weir_calloc(1, sizeof *d);
    if (!d) return WEIR_NOMEM("while importing a data set");
    d->archive = archive;
    d->folder = folder;
    d->import = &import;
    weir_err err = weir_direct_survey_nodes(d);
    if (!err) err = weir_direct_survey_edges(d);
    if (!err) err = weir_import_schema(&import);
    if (!err) err = direct_run(d, &repeated, statsp);
    *donep = err || !repeated;
    weir_import_table_close(&import.nodes);
    weir_import_table_close(&import.edges);
    weir_schema_free(import.schema);
    direct_close(d);
    return err;
}

weir_err weir_import_direct_rows(weir_import *import, const weir_tabulated *rows, const char *folder,
                                 weir_snapshot_stats *statsp) {
    bool repeated = false;
    weir_direct *d = weir_calloc(1, sizeof *d);
    if (!d) return WEIR_NOMEM("while importing a data set");
    d->archive = &rows->archive;
    d->folder = folder;
    d->import = import;
    d->keys = &import->ids;
    d->label_column = rows->label_column;
    d->labels = rows->archive.labels;
    d->node_times = rows->archive.node_times;
    d->edge_times = rows->archive.edge_times;
    d->node_members = weir_calloc(import->nodes.column_count + 1, sizeof *d->node_members);
    d->edge_members = weir_calloc(import->edges.column_count + 1, sizeof *d->edge_members);
    weir_err err = d->node_members && d->edge_members ? WEIR_OK : WEIR_NOMEM("while importing a data set");
    for (uint32_t i = 0; !err && i < rows->archive.member_count; i++) {
        const weir_archive_member *m = &rows->archive.members[i];
        (m->kind == WEIR_MEMBER_EDGE ? d->edge_members : d->node_members)[rows->columns[i]] = m;
    }
    if (!err) err = direct_run(d, &repeated, statsp);
    if (!err && repeated) /* the survey has seen each key once, and whoever looks for such keys may find them */
        err = WEIR_ERR(WEIR_EDATA, "%s: two keys have the same id; rename one of them", rows->archive.origin);
    direct_close(d);
    return err;
}

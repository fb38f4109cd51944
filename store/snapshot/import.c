/* SPDX-License-Identifier: Apache-2.0 */
/* import.c - a data set whose rows have histories, texts or several types is fed into a store beside OUT, and the
 * snapshot is built from that, as any other; arrays, and rows that are as plain as arrays, need no store. */
#include <stdio.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/file.h>

#include "import_private.h"

/* "OUT.what", which is removed at the end: so what has that name already is somebody's, and stays. */
static weir_err import_folder_beside(const char *out, const char *what, char folder[WEIR_DRAFT_PATH_MAX]) {
    weir_err err = weir_draft_beside(out, what, folder);
    if (!err && weir_path_exists(folder))
        err = WEIR_ERR(WEIR_EEXIST, "%s is there already; remove it if an import was killed, else name another OUT",
                       folder);
    return err;
}

/* Which relations have an edge that says with which event it came: the others' events would be the numbers of rows. */
static void import_find_events(const weir_import *import, bool events_of[WEIR_IMPORT_OWNERS_MAX]) {
    uint32_t column = weir_import_find(&import->edges, WEIR_IMPORT_EVENT);
    for (uint32_t i = 0; i < import->edges.owner_count; i++)
        events_of[i] = column != WEIR_SCHEMA_NONE && import->edges.owners[i].seen[column] != WEIR_IMPORT_NOTHING;
}

static weir_err import_through_store(weir_import *import, const char *folder, weir_snapshot_stats *statsp) {
    const weir_graph_opts opts = {
        .shards = 1, .memory_bytes = 256u << 20, .create = true, .id_key = &weir_id_key_public};
    bool events_of[WEIR_IMPORT_OWNERS_MAX];
    const weir_snapshot_build_opts build = {
        .out = import->opts->out,
        .as_of_us = WEIR_BEFORE_ALL,
        .without_events = true,
        .events_of = events_of,
        .seed = import->opts->seed,
        .origin = weir_import_origin(import->opts),
        .extend = weir_import_extend,
        .context = import,
    };
    weir_graph *graph = NULL;
    import_find_events(import, events_of);
    weir_err err = weir_graph_open(folder, import->schema, &opts, &graph);
    if (!err) err = weir_import_feed(import, graph);
    if (!err) err = weir_snapshot_build(graph, &build, statsp);
    weir_err_keep(&err, weir_graph_close(graph));
    return err;
}

static weir_err import_through_arrays(weir_import *import, const char *folder, weir_snapshot_stats *statsp) {
    weir_tabulated rows = {.arrays = NULL};
    weir_err err = weir_folder_create(folder);
    if (!err) err = weir_import_tabulate(import, folder, &rows);
    if (!err) err = weir_import_direct_rows(import, &rows, folder, statsp);
    weir_import_tabulated_close(&rows);
    return err;
}

static weir_err import_files(const weir_snapshot_import_opts *opts, weir_snapshot_stats *statsp) {
    weir_import import = {.opts = opts};
    char folder[WEIR_DRAFT_PATH_MAX];
    weir_err err = weir_import_survey(&import);
    if (!err) err = weir_import_schema(&import);
    if (!err) err = import_folder_beside(opts->out, "store", folder);
    if (!err) {
        err = weir_import_is_flat(&import) ? import_through_arrays(&import, folder, statsp)
                                           : import_through_store(&import, folder, statsp);
        if (weir_path_exists(folder)) weir_err_keep(&err, weir_folder_remove(folder));
    }
    weir_import_table_close(&import.nodes);
    weir_import_table_close(&import.edges);
    weir_texts_free(&import.ids);
    weir_free(import.types);
    weir_free(import.last_us);
    weir_schema_free(import.schema);
    return err;
}

/* Array by array; where that cannot be, the archive is converted to the two files. */
static weir_err import_npz(const weir_snapshot_import_opts *opts, weir_snapshot_stats *statsp) {
    char folder[WEIR_DRAFT_PATH_MAX], nodes[WEIR_DRAFT_PATH_MAX + 16], edges[WEIR_DRAFT_PATH_MAX + 16];
    weir_snapshot_import_opts files = *opts;
    weir_archive archive = {.npz = NULL};
    bool done = false;
    weir_err err = import_folder_beside(opts->out, "csv", folder);
    if (err) return err;
    err = weir_folder_create(folder);
    if (!err) err = weir_archive_open(opts->npz, folder, &archive);
    if (!err) err = weir_import_direct(opts, &archive, folder, &done, statsp);
    if (!err && !done) err = weir_import_unpack(&archive, folder);
    weir_archive_close(&archive);
    snprintf(nodes, sizeof nodes, "%s/nodes.csv", folder);
    snprintf(edges, sizeof edges, "%s/edges.csv", folder);
    files.nodes = nodes;
    files.edges = edges;
    files.npz = NULL;
    if (!err && !done) err = import_files(&files, statsp);
    if (weir_path_exists(folder)) weir_err_keep(&err, weir_folder_remove(folder));
    return err;
}

/* Edges become vertices in two files beside OUT, which are imported. */
static weir_err import_lifted(const weir_snapshot_import_opts *opts, weir_snapshot_stats *statsp) {
    char folder[WEIR_DRAFT_PATH_MAX], nodes[WEIR_DRAFT_PATH_MAX + 16], edges[WEIR_DRAFT_PATH_MAX + 16];
    weir_snapshot_import_opts files = *opts;
    weir_err err = import_folder_beside(opts->out, "lift", folder);
    if (err) return err;
    snprintf(nodes, sizeof nodes, "%s/nodes.csv", folder);
    snprintf(edges, sizeof edges, "%s/edges.csv", folder);
    files.origin = weir_import_origin(opts);
    files.nodes = nodes;
    files.edges = edges;
    files.as_vertices = NULL;
    err = weir_folder_create(folder);
    if (!err) err = weir_import_lift(opts, folder);
    if (!err) err = weir_err_prefix(import_files(&files, statsp), "of the files that --as-vertices has made");
    if (weir_path_exists(folder)) weir_err_keep(&err, weir_folder_remove(folder));
    return err;
}

weir_err weir_snapshot_import(const weir_snapshot_import_opts *opts, weir_snapshot_stats *statsp) {
    *statsp = (weir_snapshot_stats){.vertices = 0};
    if (weir_path_exists(opts->out)) return WEIR_ERR(WEIR_EEXIST, "%s is there already; name a new folder", opts->out);
    if (opts->as_vertices && weir_import_skips_structure(opts))
        return WEIR_ERR(WEIR_EUSAGE, "--skip leaves out a column that edges as vertices are made of; rename it in the "
                                     "file instead");
    if (opts->as_vertices && (opts->npz || opts->undirected))
        return WEIR_ERR(WEIR_EUSAGE, "edges of CSV files that have a direction can become vertices, no others");
    if (opts->npz && opts->splits)
        return WEIR_ERR(WEIR_EUSAGE, "--splits is of columns in CSV; an archive has masks, as NAME_mask");
    if (opts->npz) return import_npz(opts, statsp);
    if (!opts->edges) return WEIR_ERR(WEIR_EINVAL, "name a file of edges, or an archive");
    return opts->as_vertices ? import_lifted(opts, statsp) : import_files(opts, statsp);
}

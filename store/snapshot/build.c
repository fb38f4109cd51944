/* SPDX-License-Identifier: Apache-2.0 */
/*
 * build.c - the steps of a build, and the folder whose name appears only when it is complete.
 *
 *   OUT.spill    what the scan found, by kind; removed at the end
 *   OUT.partial  the arrays ──► manifest.json ──► MANIFEST ──► rename to OUT
 */
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/fault.h>
#include <weir/store/base/file.h>
#include <weir/store/graph/repair.h>
#include <weir/store/trust/trust.h>

#include "draft.h"

#define MANIFEST_BYTES_MAX (64u << 20)
#define MANIFEST_LENGTH_AT 66u

/* --- the draft --------------------------------------------------------------------------------------------------- */

weir_err weir_draft_path(const weir_snapshot_draft *draft, char path[WEIR_DRAFT_PATH_MAX], const char *format, ...) {
    va_list list;
    va_start(list, format);
    int used = snprintf(path, WEIR_DRAFT_PATH_MAX, "%s/", draft->partial);
    if (used < (int)WEIR_DRAFT_PATH_MAX)
        used += vsnprintf(path + used, WEIR_DRAFT_PATH_MAX - (size_t)used, format, list);
    va_end(list);
    if (used < (int)WEIR_DRAFT_PATH_MAX) return WEIR_OK;
    return WEIR_ERR(WEIR_ELIMIT, "the path %.64s… is too long", draft->partial);
}

weir_err weir_draft_array(const weir_snapshot_draft *draft, weir_npy_type type, uint64_t rows, uint64_t columns,
                          weir_npy_writer **writerp, const char *format, ...) {
    char name[WEIR_DRAFT_PATH_MAX], path[WEIR_DRAFT_PATH_MAX];
    va_list list;
    va_start(list, format);
    vsnprintf(name, sizeof name, format, list); /* one that is cut is too long for a path too */
    va_end(list);
    weir_err err = weir_draft_path(draft, path, "%s", name);
    return err ? err : weir_npy_writer_open(path, type, rows, columns, writerp);
}

weir_err weir_draft_beside(const char *out, const char *what, char path[WEIR_DRAFT_PATH_MAX]) {
    char copy[WEIR_DRAFT_PATH_MAX], parent[PATH_MAX];
    const char *slash = strrchr(out, '/'), *name = slash ? slash + 1 : out;
    if (!*name || strlen(out) >= WEIR_DRAFT_PATH_MAX)
        return WEIR_ERR(WEIR_EINVAL, "'%.64s' is not the name of a new folder; end it in a name", out);

    /* Without links and "..", because weir_folder_remove refuses others. */
    snprintf(copy, sizeof copy, "%.*s", slash == out ? 1 : slash ? (int)(slash - out) : 0, out);
    const char *folder = slash ? copy : ".";
    if (!realpath(folder, parent)) return WEIR_ERRNO(errno, "cannot write into %s", folder);
    int length = snprintf(path, WEIR_DRAFT_PATH_MAX, "%s/%s.%s", parent, name, what);
    if (length < 0 || length >= (int)WEIR_DRAFT_PATH_MAX)
        return WEIR_ERR(WEIR_ELIMIT, "the path %.64s… is too long; name a shorter one", out);
    return WEIR_OK;
}

static weir_err draft_tables_open(weir_snapshot_draft *draft) {
    uint32_t types = weir_schema_vertex_count(draft->schema), relations = weir_schema_relation_count(draft->schema);
    draft->id_maps = weir_calloc(types + 1, sizeof *draft->id_maps);
    draft->ids = weir_calloc(types + 1, sizeof *draft->ids);
    draft->directions = weir_calloc(2 * relations + 1, sizeof *draft->directions);
    draft->life_counts = weir_calloc(types + 1, sizeof *draft->life_counts);
    draft->row_counts = weir_calloc(types + 1, sizeof *draft->row_counts);
    draft->label_counts = weir_calloc(weir_schema_label_count(draft->schema) + 1, sizeof *draft->label_counts);
    if (draft->id_maps && draft->ids && draft->life_counts && draft->row_counts && draft->directions &&
        draft->label_counts)
        return WEIR_OK;
    return WEIR_NOMEM("while building %s", draft->opts->out);
}

void weir_draft_close(weir_snapshot_draft *draft) {
    for (uint32_t i = 0; draft->id_maps && i < weir_schema_vertex_count(draft->schema); i++)
        weir_npy_map_close(draft->id_maps[i]);
    for (uint32_t i = 0; i < draft->extra_count; i++)
        weir_free(draft->extras[i].name);
    weir_free(draft->extras);
    weir_free(draft->id_maps);
    weir_free(draft->ids);
    weir_free(draft->life_counts);
    weir_free(draft->row_counts);
    weir_free(draft->directions);
    weir_free(draft->label_counts);
    weir_free(draft->deletions.vertices);
    weir_free(draft->deletions.times);
}

/* Ages count from the time that was asked for; where none was, from the watermark, so that a single event far ahead of
 * all others makes nothing old. How far back a `history` of the schema reaches is counted as the store counts it
 * (SNAPSHOT-Z1): a snapshot of an earlier time cannot show what the store does not show any more. At the watermark less
 * a history the store shows nothing, so the first visible time is one microsecond later. */
static void draft_set_times(weir_snapshot_draft *draft) {
    int64_t agreed_us = weir_graph_watermark(draft->graph);
    bool given = draft->opts->as_of_us != WEIR_BEFORE_ALL;
    if (given) {
        draft->as_of_us = draft->opts->as_of_us;
    } else { /* right after the newest event, but no later than an event may be now */
        weir_graph_stats stats;
        weir_graph_stats_get(draft->graph, &stats);
        int64_t newest_us = stats.event_time_last_us, latest_us = weir_graph_latest(draft->graph, INT64_MIN);
        if (newest_us > latest_us) newest_us = latest_us;
        draft->as_of_us = newest_us < INT64_MAX ? newest_us + 1 : newest_us;
        if (stats.event_time_last_us == INT64_MIN) draft->as_of_us = 0;
    }
    draft->age_us = given || agreed_us > draft->as_of_us ? draft->as_of_us : agreed_us;
    draft->reach_us = agreed_us < INT64_MAX ? agreed_us + 1 : agreed_us;
    if (given && draft->reach_us < draft->as_of_us) draft->reach_us = draft->as_of_us;
}

/* The store may have been trimmed when a `history` was shorter than now, and each shard at another time: before the
 * latest of them it is not complete. */
static void draft_set_whole_us(weir_snapshot_draft *draft) {
    int64_t latest_us = INT64_MIN;
    draft->whole_us = INT64_MIN;
    for (uint32_t i = 0; i < draft->shards; i++) {
        int64_t whole_us = weir_graph_whole_from_us(draft->graph, i);
        if (whole_us > latest_us) latest_us = whole_us;
    }
    if (latest_us != INT64_MIN && weir_draft_all_from_us(draft) <= latest_us) draft->whole_us = latest_us + 1;
}

/* --- durable and whole ------------------------------------------------------------------------------------------- */

static weir_err draft_sync_folder(const weir_snapshot_draft *draft, const char *room, const char *name,
                                  const char *below) {
    char path[WEIR_DRAFT_PATH_MAX];
    weir_err err = weir_draft_path(draft, path, "%s/%s%s", room, name, below);
    return err ? err : weir_folder_sync(path);
}

/* Each file was synced when it was closed; here the folders are. */
static weir_err draft_sync_folders(const weir_snapshot_draft *draft) {
    const weir_schema *schema = draft->schema;
    weir_err err = WEIR_OK;
    for (uint32_t i = 0; !err && i < weir_schema_vertex_count(schema); i++) {
        const char *name = weir_schema_vertex_at(schema, i)->name;
        err = draft_sync_folder(draft, "vertices", name, "/lives");
        if (!err) err = draft_sync_folder(draft, "vertices", name, "/rows");
        if (!err) err = draft_sync_folder(draft, "vertices", name, "");
    }
    for (uint32_t i = 0; !err && i < weir_schema_relation_count(schema); i++) {
        const char *name = weir_schema_relation_at(schema, i)->name;
        err = draft_sync_folder(draft, "relations", name, "/out");
        if (!err) err = draft_sync_folder(draft, "relations", name, "/in");
        if (!err) err = draft_sync_folder(draft, "relations", name, "");
    }
    for (uint32_t i = 0; !err && i < weir_schema_label_count(schema); i++)
        err = draft_sync_folder(draft, "labels", weir_schema_label_at(schema, i)->name, "");
    return err;
}

/* Lengths are in the MANIFEST's second column, after 64 digits and two blanks; its last line is short. */
static weir_err draft_count_bytes(weir_snapshot_draft *draft) {
    char path[WEIR_DRAFT_PATH_MAX];
    char *text = NULL;
    size_t length;
    weir_err err = weir_draft_path(draft, path, "MANIFEST");
    if (!err) err = weir_file_load(path, MANIFEST_BYTES_MAX, &text, &length);
    for (const char *line = text; !err && line && *line;) {
        size_t width = strcspn(line, "\n");
        if (width > MANIFEST_LENGTH_AT) draft->stats.bytes += strtoull(line + MANIFEST_LENGTH_AT, NULL, 10);
        line += width + (line[width] == '\n');
    }
    weir_free(text);
    return err;
}

/* --- all of it --------------------------------------------------------------------------------------------------- */

static weir_err draft_write_graph(weir_snapshot_draft *draft, void *context) {
    (void)context;
    weir_err err = weir_draft_deletions_read(draft);
    if (!err) err = weir_draft_scan(draft);
    weir_kill_point("snapshot.scanned");
    if (!err) err = weir_draft_vertices(draft);
    if (!err) err = weir_draft_rows(draft);
    if (!err) err = weir_draft_edges(draft);
    if (!err) err = weir_draft_labels(draft);
    weir_kill_point("snapshot.written");
    if (!err && draft->opts->extend) err = draft->opts->extend(draft->opts->context, draft);
    return err;
}

static weir_err draft_finish(weir_snapshot_draft *draft) {
    weir_err err = draft_sync_folders(draft);
    if (!err) err = weir_draft_manifest(draft);
    if (!err) err = weir_manifest_write(draft->partial);
    if (!err) err = draft_count_bytes(draft);
    weir_kill_point("snapshot.whole");
    WEIR_ASSERT(err || !weir_path_exists(draft->opts->out)); /* SNAPSHOT-Z4 */
    return err ? err : weir_file_rename(draft->partial, draft->opts->out);
}

weir_err weir_draft_make(weir_snapshot_draft *draft, weir_err (*write)(weir_snapshot_draft *draft, void *context),
                         void *context) {
    const char *out = draft->opts->out, *folders[] = {draft->partial, draft->spill};
    weir_err err = weir_draft_beside(out, "partial", draft->partial);
    if (!err) err = weir_draft_beside(out, "spill", draft->spill);
    if (!err && weir_path_exists(out)) err = WEIR_ERR(WEIR_EEXIST, "%s is there already; name a new folder", out);
    if (err) return err;
    for (size_t i = 0; !err && i < 2; i++) { /* left over from a crash */
        if (weir_path_exists(folders[i])) err = weir_folder_remove(folders[i]);
        if (!err) err = weir_folder_create(folders[i]);
    }
    if (err) return err;
    err = draft_tables_open(draft);
    if (!err) err = write(draft, context);
    if (!err) err = draft_finish(draft);
    if (weir_path_exists(draft->spill)) weir_err_keep(&err, weir_folder_remove(draft->spill));
    if (err && weir_path_exists(draft->partial)) weir_err_keep(&err, weir_folder_remove(draft->partial));
    return err;
}

weir_err weir_snapshot_build(weir_graph *graph, const weir_snapshot_build_opts *opts, weir_snapshot_stats *statsp) {
    *statsp = (weir_snapshot_stats){.vertices = 0};
    if (opts->history_us < 0)
        return WEIR_ERR(WEIR_EINVAL, "a history of %lld us is negative", (long long)opts->history_us);
    if (weir_graph_filling(graph))
        return WEIR_ERR(
            WEIR_EUNAVAILABLE,
            "the store does not have all of its log yet, so nothing should be learned from it; let weir serve "
            "read on until it is ready");
    weir_snapshot_draft *draft = weir_calloc(1, sizeof *draft);
    if (!draft) return WEIR_NOMEM("while building %s", opts->out);
    draft->graph = graph;
    draft->schema = weir_graph_schema(graph);
    draft->opts = opts;
    draft->shards = weir_graph_shards(graph);
    draft_set_times(draft);
    draft_set_whole_us(draft);

    weir_err err = weir_draft_make(draft, draft_write_graph, NULL);
    *statsp = draft->stats;
    weir_draft_close(draft);
    weir_free(draft);
    return err;
}

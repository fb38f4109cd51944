/* SPDX-License-Identifier: Apache-2.0 */
/* manifest.c - manifest.json: what a reader must know before it opens an array. */
#include <stdio.h>
#include <string.h>

#include <weir/store/base/buf.h>
#include <weir/store/base/clock.h>
#include <weir/store/base/file.h>

#include "draft.h"
#include "snapshot_private.h"

static weir_err manifest_put_offset(void *context, const char *source, uint32_t partition, uint64_t sealed,
                                    uint64_t applied) {
    weir_json *json = context;
    (void)applied;
    weir_json_object(json);
    weir_json_key_string(json, "source", source);
    weir_json_key_u64(json, "partition", partition);
    weir_json_key_u64(json, "below", sealed);
    weir_json_object_end(json);
    return WEIR_OK;
}

static void manifest_put_vertices(weir_json *json, const weir_snapshot_draft *draft) {
    weir_json_key(json, "vertices");
    weir_json_array(json);
    for (uint32_t i = 0; i < weir_schema_vertex_count(draft->schema); i++) {
        weir_json_object(json);
        weir_json_key_string(json, "name", weir_schema_vertex_at(draft->schema, i)->name);
        weir_json_key_u64(json, "count", draft->ids[i].shape[0]);
        weir_json_key_u64(json, "lives", draft->life_counts[i]);
        weir_json_key_u64(json, "rows", draft->row_counts[i]);
        weir_json_key(json, "extras");
        weir_json_array(json);
        for (uint32_t x = 0; x < draft->extra_count; x++) {
            if (draft->extras[x].type != i) continue;
            weir_json_object(json);
            weir_json_key_string(json, "name", draft->extras[x].name);
            weir_json_key_u64(json, "columns", draft->extras[x].columns);
            weir_json_object_end(json);
        }
        weir_json_array_end(json);
        weir_json_object_end(json);
    }
    weir_json_array_end(json);
}

static weir_err manifest_put_all(weir_json *json, const weir_snapshot_draft *draft) {
    weir_buf schema = {0};
    char hash[17];
    weir_schema_print(draft->schema, &schema);
    snprintf(hash, sizeof hash, "%016llx", (unsigned long long)weir_schema_hash(draft->schema));
    weir_json_object(json);
    weir_json_key_u64(json, "format", WEIR_SNAPSHOT_FORMAT);
    weir_json_key_string(json, "origin", draft->opts->origin ? draft->opts->origin : "");
    weir_json_key_i64(json, "as_of_us", draft->as_of_us);
    weir_json_key_i64(json, "from_us", weir_draft_all_from_us(draft));
    weir_json_key_bool(json, "without_deleted", draft->opts->without_deleted);
    weir_json_key_u64(json, "seed", draft->opts->seed);
    weir_json_key_string(json, "schema_name", weir_schema_name(draft->schema));
    weir_json_key_string(json, "schema_hash", hash);
    weir_json_key_text(json, "schema", schema.bytes, schema.length);
    weir_err err = weir_buf_err(&schema);
    weir_buf_free(&schema);

    weir_json_key(json, "offsets");
    weir_json_array(json);
    if (!err) {
        err = draft->graph ? weir_graph_offsets(draft->graph, manifest_put_offset, json)
                           : manifest_put_offset(json, "import", 0, draft->import_rows, draft->import_rows);
    }
    weir_json_array_end(json);
    manifest_put_vertices(json, draft);

    weir_json_key(json, "relations");
    weir_json_array(json);
    for (uint32_t i = 0; i < weir_schema_relation_count(draft->schema); i++) {
        const weir_draft_direction *out = &draft->directions[2 * i + WEIR_OUT];
        weir_json_object(json);
        weir_json_key_string(json, "name", weir_schema_relation_at(draft->schema, i)->name);
        weir_json_key_u64(json, "edges", out->edges);
        weir_json_key_u64(json, "deleted", out->deleted);
        weir_json_key_bool(json, "times", weir_draft_has_times(draft, i));
        weir_json_key_bool(json, "events", weir_draft_has_events(draft, i));
        weir_json_key_i64(json, "oldest_us", out->edges ? out->oldest_us : WEIR_SNAPSHOT_NEVER);
        weir_json_key_i64(json, "newest_us", out->edges ? out->newest_us : WEIR_SNAPSHOT_NEVER);
        weir_json_object_end(json);
    }
    weir_json_array_end(json);

    weir_json_key(json, "labels");
    weir_json_array(json);
    for (uint32_t i = 0; i < weir_schema_label_count(draft->schema); i++) {
        weir_json_object(json);
        weir_json_key_string(json, "name", weir_schema_label_at(draft->schema, i)->name);
        weir_json_key_u64(json, "count", draft->label_counts[i]);
        weir_json_object_end(json);
    }
    weir_json_array_end(json);
    weir_json_key_u64(json, "half_edges", draft->stats.half_edges);
    weir_json_key_u64(json, "orphan_labels", draft->stats.orphan_labels);
    weir_json_object_end(json);
    return err;
}

weir_err weir_draft_manifest(weir_snapshot_draft *draft) {
    weir_buf out = {0};
    weir_json json = weir_json_begin(&out);
    char path[WEIR_DRAFT_PATH_MAX];
    weir_err err = manifest_put_all(&json, draft);
    weir_buf_byte(&out, '\n');
    if (!err) err = weir_buf_err(&out);
    if (!err && out.length > WEIR_SNAPSHOT_MANIFEST_MAX)
        err = WEIR_ERR(WEIR_ELIMIT, "the schema is too long for a snapshot's manifest of 1 MiB");
    if (!err) err = weir_draft_path(draft, path, "manifest.json");
    if (!err) err = weir_file_replace(path, out.bytes, out.length);
    weir_buf_free(&out);
    return err;
}

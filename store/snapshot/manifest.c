/* SPDX-License-Identifier: Apache-2.0 */
/* manifest.c - manifest.json: what a reader must know before it opens an array. */
#include <stdio.h>
#include <string.h>

#include <weir/store/base/buf.h>
#include <weir/store/base/clock.h>
#include <weir/store/base/file.h>

#include "draft.h"
#include "snapshot_private.h"

static void put_u64(weir_json *json, const char *key, uint64_t value) {
    weir_json_key(json, key);
    weir_json_u64(json, value);
}

static void put_i64(weir_json *json, const char *key, int64_t value) {
    weir_json_key(json, key);
    weir_json_i64(json, value);
}

static void put_string(weir_json *json, const char *key, const char *value) {
    weir_json_key(json, key);
    weir_json_string(json, value);
}

static weir_err put_schema(weir_json *json, const weir_schema *schema) {
    weir_buf text = {0};
    char hash[17];
    weir_schema_print(schema, &text);
    snprintf(hash, sizeof hash, "%016llx", (unsigned long long)weir_schema_hash(schema));
    put_string(json, "schema_name", weir_schema_name(schema));
    put_string(json, "schema_hash", hash);
    weir_json_key(json, "schema");
    weir_json_text(json, text.bytes, text.length);
    weir_err err = weir_buf_err(&text);
    weir_buf_free(&text);
    return err;
}

static weir_err put_offset(void *context, const char *source, uint32_t partition, uint64_t sealed, uint64_t applied) {
    weir_json *json = context;
    (void)applied;
    weir_json_object(json);
    put_string(json, "source", source);
    put_u64(json, "partition", partition);
    put_u64(json, "below", sealed);
    weir_json_object_end(json);
    return WEIR_OK;
}

static void put_extras(weir_json *json, const weir_snapshot_draft *draft, uint32_t type) {
    weir_json_key(json, "extras");
    weir_json_array(json);
    for (uint32_t i = 0; i < draft->extra_count; i++) {
        if (draft->extras[i].type != type) continue;
        weir_json_object(json);
        put_string(json, "name", draft->extras[i].name);
        put_u64(json, "columns", draft->extras[i].columns);
        weir_json_object_end(json);
    }
    weir_json_array_end(json);
}

static void put_vertices(weir_json *json, const weir_snapshot_draft *draft) {
    weir_json_key(json, "vertices");
    weir_json_array(json);
    for (uint32_t i = 0; i < weir_schema_vertex_count(draft->schema); i++) {
        weir_json_object(json);
        put_string(json, "name", weir_schema_vertex_at(draft->schema, i)->name);
        put_u64(json, "count", draft->ids[i].shape[0]);
        put_u64(json, "lives", draft->life_counts[i]);
        put_u64(json, "rows", draft->row_counts[i]);
        put_extras(json, draft, i);
        weir_json_object_end(json);
    }
    weir_json_array_end(json);
}

static void put_relations(weir_json *json, const weir_snapshot_draft *draft) {
    weir_json_key(json, "relations");
    weir_json_array(json);
    for (uint32_t i = 0; i < weir_schema_relation_count(draft->schema); i++) {
        const weir_draft_direction *out = &draft->directions[2 * i + WEIR_OUT];
        weir_json_object(json);
        put_string(json, "name", weir_schema_relation_at(draft->schema, i)->name);
        put_u64(json, "edges", out->edges);
        put_u64(json, "deleted", out->deleted);
        put_i64(json, "oldest_us", out->edges ? out->oldest_us : WEIR_SNAPSHOT_NEVER);
        put_i64(json, "newest_us", out->edges ? out->newest_us : WEIR_SNAPSHOT_NEVER);
        weir_json_object_end(json);
    }
    weir_json_array_end(json);
}

static void put_labels(weir_json *json, const weir_snapshot_draft *draft) {
    weir_json_key(json, "labels");
    weir_json_array(json);
    for (uint32_t i = 0; i < weir_schema_label_count(draft->schema); i++) {
        weir_json_object(json);
        put_string(json, "name", weir_schema_label_at(draft->schema, i)->name);
        put_u64(json, "count", draft->label_counts[i]);
        weir_json_object_end(json);
    }
    weir_json_array_end(json);
}

static weir_err put_all(weir_json *json, const weir_snapshot_draft *draft) {
    weir_json_object(json);
    put_u64(json, "format", WEIR_SNAPSHOT_FORMAT);
    put_string(json, "origin", draft->opts->origin ? draft->opts->origin : "");
    put_i64(json, "as_of_us", draft->as_of_us);
    put_i64(json, "from_us", weir_draft_all_from_us(draft));
    weir_json_key(json, "without_deleted");
    weir_json_bool(json, draft->opts->without_deleted);
    put_u64(json, "seed", draft->opts->seed);
    weir_err err = put_schema(json, draft->schema);
    weir_json_key(json, "offsets");
    weir_json_array(json);
    if (!err) err = weir_graph_offsets(draft->graph, put_offset, json);
    weir_json_array_end(json);
    put_vertices(json, draft);
    put_relations(json, draft);
    put_labels(json, draft);
    put_u64(json, "half_edges", draft->stats.half_edges);
    put_u64(json, "orphan_labels", draft->stats.orphan_labels);
    weir_json_object_end(json);
    return err;
}

weir_err weir_draft_manifest(weir_snapshot_draft *draft) {
    weir_buf out = {0};
    weir_json json = weir_json_begin(&out);
    char path[WEIR_DRAFT_PATH_MAX];
    weir_err err = put_all(&json, draft);
    weir_buf_byte(&out, '\n');
    if (!err) err = weir_buf_err(&out);
    if (!err && out.length > WEIR_SNAPSHOT_MANIFEST_MAX)
        err = WEIR_ERR(WEIR_ELIMIT, "the schema is too long for a snapshot's manifest of 1 MiB");
    if (!err) err = weir_draft_path(draft, path, "manifest.json");
    if (!err) err = weir_file_replace(path, out.bytes, out.length);
    weir_buf_free(&out);
    return err;
}

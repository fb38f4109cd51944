/* SPDX-License-Identifier: Apache-2.0 */
/* manifest.c - manifest.json of a part: that of a snapshot of what is here, and whose all of it is. */
#include <stdio.h>
#include <string.h>

#include <weir/store/base/file.h>

#include "part.h"
#include "plan.h"

static weir_err part_put_head(weir_json *json, const weir_parts_draft *draft) {
    const weir_schema *schema = weir_snapshot_schema(draft->snapshot);
    weir_buf text = {0};
    char hash[17];
    weir_schema_print(schema, &text);
    snprintf(hash, sizeof hash, "%016llx", (unsigned long long)weir_schema_hash(schema));
    weir_json_key_u64(json, "format", WEIR_SNAPSHOT_FORMAT);
    weir_json_key_i64(json, "as_of_us", weir_snapshot_as_of_us(draft->snapshot));
    weir_json_key_i64(json, "from_us", weir_snapshot_from_us(draft->snapshot));
    weir_json_key_string(json, "schema_name", weir_schema_name(schema));
    weir_json_key_string(json, "schema_hash", hash);
    weir_json_key_text(json, "schema", text.bytes, text.length);
    weir_err err = weir_buf_err(&text);
    weir_buf_free(&text);
    return err;
}

static void part_put_section(weir_json *json, const weir_parts_draft *draft) {
    weir_json_key(json, "part");
    weir_json_object(json);
    weir_json_key_u64(json, "format", WEIR_PARTS_FORMAT);
    weir_json_key_u64(json, "part", draft->part);
    weir_json_key_u64(json, "parts", draft->plan->parts);
    weir_json_key_u64(json, "depth", draft->opts->depth);
    weir_json_key_string(json, "method", weir_parts_method_name(draft->opts->method));
    weir_json_key_u64(json, "seed", draft->opts->seed);
    weir_json_key_string(json, "cutting", draft->cutting);
    weir_json_key_string(json, "order", "reads");
    weir_json_key(json, "starts");
    weir_json_array(json);
    for (uint32_t type = 0; type < draft->plan->types; type++) {
        weir_json_array(json);
        for (uint32_t p = 0; p <= draft->plan->parts; p++)
            weir_json_i64(json, draft->plan->starts[type][p]);
        weir_json_array_end(json);
    }
    weir_json_array_end(json);
    weir_json_key(json, "listed");
    weir_json_array(json);
    for (uint32_t type = 0; type < draft->plan->types; type++)
        weir_json_u64(json, draft->local.here[type].listed);
    weir_json_array_end(json);
    weir_json_object_end(json);
}

static void part_put_vertices(weir_json *json, const weir_parts_draft *draft, const weir_parts_counts *counts) {
    const weir_schema *schema = weir_snapshot_schema(draft->snapshot);
    weir_json_key(json, "vertices");
    weir_json_array(json);
    for (uint32_t type = 0; type < weir_schema_vertex_count(schema); type++) {
        const weir_snapshot_vertices *vertices = weir_snapshot_vertices_of(draft->snapshot, type);
        weir_json_object(json);
        weir_json_key_string(json, "name", weir_schema_vertex_at(schema, type)->name);
        weir_json_key_u64(json, "count", draft->local.here[type].count);
        weir_json_key_u64(json, "own", draft->local.here[type].own);
        weir_json_key_u64(json, "lives", counts->lives[type]);
        weir_json_key_u64(json, "rows", counts->rows[type]);
        weir_json_key(json, "extras");
        weir_json_array(json);
        for (uint32_t i = 0; i < vertices->extra_count; i++) {
            weir_json_object(json);
            weir_json_key_string(json, "name", vertices->extras[i].name);
            weir_json_key_u64(json, "columns", vertices->extras[i].columns);
            weir_json_object_end(json);
        }
        weir_json_array_end(json);
        weir_json_key(json, "aggregates");
        weir_json_array(json);
        for (uint32_t i = 0; i < weir_schema_aggregate_count(schema); i++) {
            const weir_schema_aggregate *aggregate = weir_schema_aggregate_at(schema, i);
            if (aggregate->vertex == type && weir_parts_bring(aggregate, draft->opts->parts, draft->opts->depth))
                weir_json_string(json, aggregate->name);
        }
        weir_json_array_end(json);
        weir_json_object_end(json);
    }
    weir_json_array_end(json);
}

static void part_put_relations_and_labels(weir_json *json, const weir_parts_draft *draft,
                                          const weir_parts_counts *counts) {
    const weir_schema *schema = weir_snapshot_schema(draft->snapshot);
    weir_json_key(json, "relations");
    weir_json_array(json);
    for (uint32_t r = 0; r < weir_schema_relation_count(schema); r++) {
        const weir_snapshot_edges *out = weir_snapshot_edges_of(draft->snapshot, r, WEIR_OUT);
        weir_json_object(json);
        weir_json_key_string(json, "name", weir_schema_relation_at(schema, r)->name);
        weir_json_key_u64(json, "edges", counts->edges[2 * r + WEIR_OUT]);
        weir_json_key_u64(json, "edges_in", counts->edges[2 * r + WEIR_IN]);
        weir_json_key_u64(json, "deleted", out->until_us != NULL); /* in all parts, so that all have the same arrays */
        weir_json_key_bool(json, "times", out->has_times);
        weir_json_key_bool(json, "events", out->has_events);
        weir_json_key_i64(json, "newest_us", out->newest_us);
        weir_json_object_end(json);
    }
    weir_json_array_end(json);
    weir_json_key(json, "labels");
    weir_json_array(json);
    for (uint32_t l = 0; l < weir_schema_label_count(schema); l++) {
        weir_json_object(json);
        weir_json_key_string(json, "name", weir_schema_label_at(schema, l)->name);
        weir_json_key_u64(json, "count", counts->labels[l]);
        weir_json_object_end(json);
    }
    weir_json_array_end(json);
}

weir_err weir_parts_write_manifest(const weir_parts_draft *draft, const weir_parts_counts *counts) {
    weir_buf out = {0};
    char path[WEIR_PARTS_PATH_MAX];
    weir_json json = weir_json_begin(&out);
    weir_json_object(&json);
    weir_err err = part_put_head(&json, draft);
    part_put_section(&json, draft);
    part_put_vertices(&json, draft, counts);
    part_put_relations_and_labels(&json, draft, counts);
    weir_json_object_end(&json);
    weir_buf_byte(&out, '\n');
    if (!err) err = weir_buf_err(&out);
    if (!err && out.length > WEIR_PART_MANIFEST_MAX) {
        err = WEIR_ERR(WEIR_ELIMIT, "the schema and %u parts are too much for a manifest of 1 MiB; ask for fewer parts",
                       draft->plan->parts);
    }
    if (!err) err = weir_parts_path(draft, path, "manifest.json");
    if (!err) err = weir_file_replace(path, out.bytes, out.length);
    weir_buf_free(&out);
    return err;
}

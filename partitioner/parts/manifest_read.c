/* SPDX-License-Identifier: Apache-2.0 */
/*
 * manifest_read.c - manifest.json of a part, read back. It must agree with the schema that it contains: each type,
 * relation and label once, in the schema's order.
 */
#include <stdio.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/file.h>
#include <weir/store/base/json.h>

#include "part.h"

#define MANIFEST_DEPTH_MAX 16u
#define TAKE_ANOTHER       "take another copy of the part"

/* --- vertices -------------------------------------------------------------------------------------------------- */

static weir_err part_read_starts(const weir_json_node *row, weir_part_manifest *m, uint32_t type) {
    const weir_json_node *node;
    int64_t before = 0;
    weir_err err = weir_json_need(row, "starts", WEIR_JSON_ARRAY, &node);
    if (err) return err;
    if (node->count != (size_t)m->parts + 1)
        return WEIR_JSON_ERR(node, "'starts' does not have one number a part and one more");
    m->starts[type] = weir_calloc((size_t)m->parts + 1, sizeof *m->starts[type]);
    if (!m->starts[type]) return WEIR_NOMEM("while reading a part's manifest");
    const weir_json_node *item = node->first;
    for (uint32_t p = 0; !err && item; p++, item = item->next) {
        err = weir_json_node_i64(item, before, p ? INT64_MAX / 64 : 0, &m->starts[type][p]);
        before = m->starts[type][p];
    }
    return err;
}

static weir_err part_read_vertices(const weir_json_node *root, weir_part_manifest *m) {
    const weir_json_node *rows;
    uint32_t count = weir_schema_vertex_count(m->schema);
    weir_err err = weir_snapshot_read_section(root, "vertices", count, &rows);
    const weir_json_node *row = err ? NULL : rows->first;
    for (uint32_t i = 0; !err && row; i++, row = row->next) {
        err = weir_snapshot_read_name(row, weir_schema_vertex_at(m->schema, i)->name);
        if (!err) err = part_read_starts(row, m, i);
        if (!err) err = weir_snapshot_read_count(row, "halo", &m->halos[i]);
        if (!err) err = weir_snapshot_read_extras(row, &m->extras[i], &m->extra_counts[i]);
    }
    return err;
}

/* --- relations, labels ----------------------------------------------------------------------------------------- */

static weir_err part_read_relations_and_labels(const weir_json_node *root, weir_part_manifest *m) {
    const weir_json_node *rows;
    uint32_t relations = weir_schema_relation_count(m->schema), labels = weir_schema_label_count(m->schema);
    weir_err err = weir_snapshot_read_section(root, "relations", relations, &rows);
    const weir_json_node *row = err ? NULL : rows->first;
    for (uint32_t i = 0; !err && row; i++, row = row->next) {
        err = weir_snapshot_read_name(row, weir_schema_relation_at(m->schema, i)->name);
        if (!err) err = weir_snapshot_read_count(row, "out", &m->edges[2 * i + WEIR_OUT]);
        if (!err) err = weir_snapshot_read_count(row, "in", &m->edges[2 * i + WEIR_IN]);
        if (!err) err = weir_json_need_i64(row, "newest_us", INT64_MIN, INT64_MAX, &m->newest_us[i]);
        if (!err) err = weir_snapshot_read_count(row, "deleted", &m->deleted[i]);
    }
    if (!err) err = weir_snapshot_read_section(root, "labels", labels, &rows);
    row = err ? NULL : rows->first;
    for (uint32_t i = 0; !err && row; i++, row = row->next) {
        err = weir_snapshot_read_name(row, weir_schema_label_at(m->schema, i)->name);
        if (!err) err = weir_snapshot_read_count(row, "count", &m->labels[i]);
    }
    return err;
}

/* --- all of it ------------------------------------------------------------------------------------------------- */

static weir_err part_read_head(const weir_json_node *root, weir_part_manifest *m) {
    const weir_json_node *cutting, *schema;
    int64_t format = 0, parts = 0, part = 0;
    weir_err err = weir_json_need_i64(root, "format", 0, INT64_MAX, &format);
    if (!err && format != WEIR_PARTS_FORMAT) {
        err = WEIR_ERR(WEIR_EVERSION,
                       "the part has format %lld, this program reads %u; cut the snapshot again with weir partition",
                       (long long)format, WEIR_PARTS_FORMAT);
    }
    if (!err) err = weir_json_need_i64(root, "parts", 1, WEIR_PARTS_COUNT_MAX, &parts);
    if (!err) err = weir_json_need_i64(root, "part", 0, parts - 1, &part);
    m->parts = (uint32_t)parts;
    m->part = (uint32_t)part;
    if (!err) err = weir_json_need_i64(root, "as_of_us", INT64_MIN, INT64_MAX, &m->as_of_us);
    if (!err) err = weir_json_need_i64(root, "from_us", INT64_MIN, INT64_MAX, &m->from_us);
    if (!err) err = weir_json_need(root, "cutting", WEIR_JSON_STRING, &cutting);
    if (!err) err = weir_json_need(root, "schema", WEIR_JSON_STRING, &schema);
    if (err) return err;
    const char *text = weir_json_node_text(cutting);
    if (strlen(text) != 64 || strspn(text, "0123456789abcdef") != 64)
        return WEIR_JSON_ERR(cutting, "'cutting' is not 64 hex digits; " TAKE_ANOTHER);
    memcpy(m->cutting, text, sizeof m->cutting);
    text = weir_json_node_text(schema);
    return weir_schema_parse("the part's schema", text, strlen(text), &m->schema);
}

static weir_err part_tables_open(weir_part_manifest *m) {
    size_t types = weir_schema_vertex_count(m->schema) + 1, relations = weir_schema_relation_count(m->schema) + 1;
    m->starts = weir_calloc(types, sizeof *m->starts);
    m->halos = weir_calloc(types, sizeof *m->halos);
    m->extras = weir_calloc(types, sizeof *m->extras);
    m->extra_counts = weir_calloc(types, sizeof *m->extra_counts);
    m->edges = weir_calloc(2 * relations, sizeof *m->edges);
    m->newest_us = weir_calloc(relations, sizeof *m->newest_us);
    m->deleted = weir_calloc(relations, sizeof *m->deleted);
    m->labels = weir_calloc(weir_schema_label_count(m->schema) + 1, sizeof *m->labels);
    bool all =
        m->starts && m->halos && m->extras && m->extra_counts && m->edges && m->newest_us && m->deleted && m->labels;
    return all ? WEIR_OK : WEIR_NOMEM("while reading a part's manifest");
}

weir_err weir_part_manifest_parse(const char *name, const char *text, size_t length, weir_part_manifest *manifest) {
    char sentence[WEIR_ERR_SENTENCE_MAX];
    const weir_json_node *root;
    weir_arena *arena = NULL;
    *manifest = (weir_part_manifest){.schema = NULL};
    weir_err err = weir_arena_open(WEIR_JSON_FILE_ARENA, &arena);
    if (!err) err = weir_json_parse(name, text, length, MANIFEST_DEPTH_MAX, arena, &root);
    if (!err) err = part_read_head(root, manifest);
    if (!err) err = part_tables_open(manifest);
    if (!err) err = part_read_vertices(root, manifest);
    if (!err) err = part_read_relations_and_labels(root, manifest);
    weir_arena_close(arena);
    if (!err) return WEIR_OK;
    weir_part_manifest_free(manifest);
    if (!weir_err_is(err, WEIR_ECONFIG)) return err;
    /* The schema's parser blames a settings file, but this is data. */
    weir_err_sentence(err, sentence, sizeof sentence);
    return WEIR_ERR(WEIR_EDATA, "%s", sentence);
}

weir_err weir_part_manifest_read(const char *folder, weir_part_manifest *manifest) {
    char path[WEIR_PART_PATH_MAX + 32], *text = NULL;
    size_t length = 0;
    *manifest = (weir_part_manifest){.schema = NULL};
    snprintf(path, sizeof path, "%s/manifest.json", folder);
    weir_err err = weir_file_load(path, WEIR_PART_MANIFEST_MAX, &text, &length);
    if (weir_err_is(err, WEIR_ENOTFOUND)) {
        return WEIR_ERR(WEIR_ENOTFOUND, "%s is not a part: it has no manifest.json; weir partition makes parts",
                        folder);
    }
    if (!err) err = weir_part_manifest_parse(path, text, length, manifest);
    weir_free(text);
    return err;
}

void weir_part_manifest_free(weir_part_manifest *m) {
    uint32_t types = m->schema ? weir_schema_vertex_count(m->schema) : 0;
    for (uint32_t i = 0; i < types; i++) {
        if (m->starts) weir_free(m->starts[i]);
        if (m->extras) weir_free(m->extras[i]);
    }
    weir_free(m->starts);
    weir_free(m->halos);
    weir_free(m->extras);
    weir_free(m->extra_counts);
    weir_free(m->edges);
    weir_free(m->newest_us);
    weir_free(m->deleted);
    weir_free(m->labels);
    weir_schema_free(m->schema);
    *m = (weir_part_manifest){.schema = NULL};
}

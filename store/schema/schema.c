/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schema.c - the handle: from a YAML tree to six numbered sections, and what is asked of them.
 *
 * A schema is read in one pass over the sections in the order of schema_reading, whatever their order in the file: each
 * definition refers only to sections that are complete by then, so the first fault found is reported at its own line.
 * Then the canonical text is printed once, for the hash.
 */
#include <stdio.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/hash.h>

#include "schema_private.h"

/* A 1 MiB text of short definitions takes a tenth of this. */
#define ARENA_BYTES_MAX ((size_t)256 << 20)

const weir_schema_section weir_schema_sections[WEIR_SCHEMA_SECTIONS] = {
    [WEIR_SCHEMA_VERTICES] = {"vertices", "vertex type", WEIR_SCHEMA_VERTICES_MAX, sizeof(weir_schema_vertex),
                              weir_schema_read_vertex},
    [WEIR_SCHEMA_RELATIONS] = {"relations", "relation", WEIR_SCHEMA_RELATIONS_MAX, sizeof(weir_schema_relation),
                               weir_schema_read_relation},
    [WEIR_SCHEMA_AGGREGATES] = {"aggregates", "aggregate", WEIR_SCHEMA_AGGREGATES_MAX, sizeof(weir_schema_aggregate),
                                weir_schema_read_aggregate},
    [WEIR_SCHEMA_LABELS] = {"labels", "label", WEIR_SCHEMA_LABELS_MAX, sizeof(weir_schema_label),
                            weir_schema_read_label},
    [WEIR_SCHEMA_TASKS] = {"tasks", "task", WEIR_SCHEMA_TASKS_MAX, sizeof(weir_schema_task), weir_schema_read_task},
    [WEIR_SCHEMA_SOURCES] = {"sources", "source", WEIR_SCHEMA_SOURCES_MAX, sizeof(weir_schema_source),
                             weir_schema_read_source},
};

/* Aggregates refer to labels, which the canonical text has behind them. */
static const weir_schema_section_id schema_reading[WEIR_SCHEMA_SECTIONS] = {
    WEIR_SCHEMA_VERTICES,   WEIR_SCHEMA_RELATIONS, WEIR_SCHEMA_LABELS,
    WEIR_SCHEMA_AGGREGATES, WEIR_SCHEMA_TASKS,     WEIR_SCHEMA_SOURCES};

static void *schema_slot_at(const weir_schema *schema, weir_schema_section_id section, uint32_t id) {
    const weir_schema_table *table = &schema->tables[section];
    WEIR_ASSERT(id < table->count); // SCHEMA-H3
    return (char *)table->slots + id * weir_schema_sections[section].slot_bytes;
}

const char *weir_schema_slot_name(const weir_schema *schema, weir_schema_section_id section, uint32_t id) {
    return *(const char *const *)schema_slot_at(schema, section, id);
}

uint32_t weir_schema_find(const weir_schema *schema, weir_schema_section_id section, const char *name) {
    for (uint32_t id = 0; id < schema->tables[section].count; id++)
        if (strcmp(weir_schema_slot_name(schema, section, id), name) == 0) return id;
    return WEIR_SCHEMA_NONE;
}

/* --- reading ------------------------------------------------------------------------------------------------- */

static weir_err schema_read_section(weir_schema *schema, weir_schema_section_id id, const weir_yaml_node *map) {
    const weir_schema_section *section = &weir_schema_sections[id];
    if (!map || weir_schema_is_empty(map)) return WEIR_OK;
    if (weir_yaml_node_kind(map) != WEIR_YAML_MAPPING)
        return WEIR_YAML_ERR(map, "'%s' holds %ss by their names; write it as a mapping", section->key, section->noun);
    size_t count = weir_yaml_count(map);
    if (count > section->count_max)
        return WEIR_YAML_ERR(weir_yaml_entry_key_node(map, section->count_max),
                             "'%s' has %zu entries; a schema has at most %u", section->key, count, section->count_max);
    void *slots = weir_schema_calloc(schema, count, section->slot_bytes);
    if (!slots) return weir_schema_no_memory();
    schema->tables[id] = (weir_schema_table){slots, (uint32_t)count};
    weir_err err = WEIR_OK;
    for (uint32_t i = 0; i < count && !err; i++) {
        weir_schema_def def = {
            .schema = schema, .place = weir_yaml_entry_key_node(map, i), .map = weir_yaml_entry_value(map, i)};
        const char *name = NULL;
        err = weir_schema_read_name(schema, def.place, section->noun, &name);
        if (err) break;
        snprintf(def.what, sizeof def.what, "%s '%s'", section->noun, name);
        void *slot = schema_slot_at(schema, id, i);
        memcpy(slot, &name, sizeof name); // every slot begins with its name
        err = section->read(&def, slot);
    }
    return err;
}

static weir_err schema_read_tree(weir_schema *schema, const weir_yaml_node *tree) {
    static const char *const keys[] = {"version", "name",  "vertices", "relations", "aggregates",
                                       "labels",  "tasks", "sources",  NULL};
    weir_schema_def root = {.schema = schema, .place = tree, .map = tree, .what = "the schema"};
    const weir_yaml_node *node = NULL, *vertices = NULL;
    int64_t version = 0;
    weir_err err = weir_yaml_only_keys(root.map, root.what, keys);
    if (!err) err = weir_schema_need(&root, "version", &node);
    if (!err) err = weir_yaml_i64(node, 0, INT64_MAX, &version);
    if (!err && version != WEIR_SCHEMA_LANGUAGE)
        err = WEIR_YAML_ERR(node, "this is version %lld of the schema language; this program reads version %u",
                            (long long)version, WEIR_SCHEMA_LANGUAGE);
    if (!err) err = weir_schema_need(&root, "name", &node);
    if (!err) err = weir_schema_read_name(schema, node, "schema", &schema->name);
    if (!err) err = weir_schema_need(&root, "vertices", &vertices);
    for (uint32_t i = 0; i < WEIR_SCHEMA_SECTIONS && !err; i++) {
        weir_schema_section_id section = schema_reading[i];
        err = schema_read_section(schema, section, weir_yaml_find(tree, weir_schema_sections[section].key));
    }
    if (!err && schema->tables[WEIR_SCHEMA_VERTICES].count == 0)
        err = WEIR_YAML_ERR(vertices, "'vertices' is empty; a graph has at least one vertex type");
    return err;
}

/* Spelled-out defaults can push a text that was just small enough over the limits of yaml.h; such a schema could be
 * stored, but never be read back. A node takes two bytes at least, so a small text needs no look. */
static weir_err schema_check_readable(const char *name, const weir_buf *text) {
    if (text->length <= 2 * (size_t)WEIR_YAML_NODES_MAX) return WEIR_OK;
    weir_yaml *yaml = NULL;
    weir_err err = weir_yaml_parse("canonical form", text->bytes, text->length, &yaml);
    weir_yaml_free(yaml);
    if (!weir_err_is(err, WEIR_ECONFIG)) return err;
    return weir_err_prefix(err, "%s: the schema is too large once its defaults are spelled out; shorten it", name);
}

/* Frees the tree. */
static weir_err schema_from_yaml(const char *name, weir_yaml *yaml, weir_schema **schemap) {
    weir_schema *schema = weir_calloc(1, sizeof *schema);
    weir_err err =
        schema ? WEIR_OK
               : WEIR_ERR(WEIR_ENOMEM, "%s: no memory for the schema; free some, or give the process more", name);
    if (!err) err = weir_arena_open(ARENA_BYTES_MAX, &schema->arena);
    if (!err && (!weir_yaml_root(yaml) || weir_schema_is_empty(weir_yaml_root(yaml))))
        err = WEIR_ERR(WEIR_ECONFIG,
                       "%s:1:1: the schema is empty; `weir schema show payments` prints one to begin with", name);
    if (!err) err = schema_read_tree(schema, weir_yaml_root(yaml));
    weir_buf text = {0};
    if (!err) {
        weir_schema_print(schema, &text);
        err = weir_buf_err(&text);
    }
    if (!err) err = schema_check_readable(name, &text);             // SCHEMA-H1
    if (!err) schema->hash = weir_xxh3(text.bytes, text.length, 0); // SCHEMA-H2
    weir_buf_free(&text);
    weir_yaml_free(yaml);
    if (err) {
        weir_schema_free(schema);
        return err;
    }
    *schemap = schema;
    return WEIR_OK;
}

weir_err weir_schema_parse(const char *name, const char *text, size_t length, weir_schema **schemap) {
    *schemap = NULL;
    weir_yaml *yaml = NULL;
    weir_err err = weir_yaml_parse(name, text, length, &yaml);
    return err ? err : schema_from_yaml(name, yaml, schemap);
}

weir_err weir_schema_load(const char *path, weir_schema **schemap) {
    *schemap = NULL;
    weir_yaml *yaml = NULL;
    weir_err err = weir_yaml_load(path, &yaml);
    return err ? err : schema_from_yaml(path, yaml, schemap);
}

void weir_schema_free(weir_schema *schema) {
    if (!schema) return;
    if (schema->arena) weir_arena_close(schema->arena);
    weir_free(schema);
}

/* --- asking -------------------------------------------------------------------------------------------------- */

const char *weir_schema_name(const weir_schema *schema) {
    return schema->name;
}

uint64_t weir_schema_hash(const weir_schema *schema) {
    return schema->hash;
}

#define SECTION_ACCESSORS(word, section)                                                        \
    uint32_t weir_schema_##word##_count(const weir_schema *schema) {                            \
        return schema->tables[section].count;                                                   \
    }                                                                                           \
    const weir_schema_##word *weir_schema_##word##_at(const weir_schema *schema, uint32_t id) { \
        return schema_slot_at(schema, section, id);                                             \
    }                                                                                           \
    uint32_t weir_schema_##word##_find(const weir_schema *schema, const char *name) {           \
        return weir_schema_find(schema, section, name);                                         \
    }

SECTION_ACCESSORS(vertex, WEIR_SCHEMA_VERTICES)
SECTION_ACCESSORS(relation, WEIR_SCHEMA_RELATIONS)
SECTION_ACCESSORS(aggregate, WEIR_SCHEMA_AGGREGATES)
SECTION_ACCESSORS(label, WEIR_SCHEMA_LABELS)
SECTION_ACCESSORS(task, WEIR_SCHEMA_TASKS)
SECTION_ACCESSORS(source, WEIR_SCHEMA_SOURCES)

bool weir_schema_label_counts(const weir_schema *schema, uint32_t label) {
    for (uint32_t i = 0; i < weir_schema_aggregate_count(schema); i++)
        if (weir_schema_aggregate_at(schema, i)->label == label) return true;
    return false;
}

uint32_t weir_schema_feature_find(const weir_schema_feature *features, uint32_t count, const char *name) {
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(features[i].name, name) == 0) return i;
    return WEIR_SCHEMA_NONE;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * describe.c - manifest.json read back. It must agree with the schema that it contains: each type, relation and label
 * once, in the schema's order.
 */
#include <stdio.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/json.h>

#include "snapshot_private.h"

#define DESCRIBE_DEPTH_MAX 16u

bool weir_snapshot_extra_name(const char *name) {
    size_t length = strlen(name);
    return length > 0 && length <= WEIR_SNAPSHOT_EXTRA_NAME_MAX &&
           strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == length;
}

static weir_err describe_find(const weir_json_node *mapping, const char *key, const weir_json_node **nodep) {
    *nodep = weir_json_find(mapping, key);
    return *nodep ? WEIR_OK : WEIR_JSON_ERR(mapping, "'%s' is missing; take another copy of the snapshot", key);
}

static weir_err describe_find_text(const weir_json_node *mapping, const char *key, const weir_json_node **nodep) {
    weir_err err = describe_find(mapping, key, nodep);
    if (err || (*nodep)->token.kind == WEIR_JSON_STRING) return err;
    return WEIR_JSON_ERR(*nodep, "'%s' is not a text; take another copy of the snapshot", key);
}

static weir_err describe_i64(const weir_json_node *mapping, const char *key, int64_t min, int64_t max,
                             int64_t *valuep) {
    const weir_json_node *node;
    weir_err err = describe_find(mapping, key, &node);
    return err ? err : weir_json_node_i64(node, min, max, valuep);
}

/* A count so large that multiplying it overflows was never written. */
static weir_err describe_count(const weir_json_node *mapping, const char *key, uint64_t *valuep) {
    int64_t value = 0;
    weir_err err = describe_i64(mapping, key, 0, INT64_MAX / 64, &value);
    *valuep = (uint64_t)value;
    return err;
}

/* The sequence of this section, which must have as many rows as the schema. */
static weir_err describe_section(const weir_json_node *root, const char *key, size_t wanted,
                                 const weir_json_node **nodep) {
    weir_err err = describe_find(root, key, nodep);
    if (err) return err;
    if ((*nodep)->token.kind == WEIR_JSON_ARRAY && (*nodep)->count == wanted) return WEIR_OK;
    return WEIR_JSON_ERR(*nodep, "'%s' does not have the schema's %zu rows; take another copy of the snapshot", key,
                         wanted);
}

static weir_err describe_check_name(const weir_json_node *row, const char *wanted) {
    const weir_json_node *node;
    weir_err err = describe_find_text(row, "name", &node);
    if (err || strcmp(weir_json_node_text(node), wanted) == 0) return err;
    return WEIR_JSON_ERR(node, "'%.64s' is where the schema has '%s'; take another copy of the snapshot",
                         weir_json_node_text(node), wanted);
}

/* --- sections ---------------------------------------------------------------------------------------------------- */

static weir_err describe_extras(const weir_json_node *row, weir_snapshot_description *d, uint32_t type) {
    const weir_json_node *node;
    weir_err err = describe_find(row, "extras", &node);
    if (err) return err;
    size_t count = node->count;
    if (node->token.kind != WEIR_JSON_ARRAY || count > WEIR_SNAPSHOT_EXTRAS_MAX)
        return WEIR_JSON_ERR(node, "'extras' is not a list of at most %u arrays", WEIR_SNAPSHOT_EXTRAS_MAX);
    d->extras[type] = weir_calloc(count + 1, sizeof *d->extras[type]);
    if (!d->extras[type]) return WEIR_NOMEM("while reading a snapshot's manifest");
    d->extra_counts[type] = (uint32_t)count;
    weir_snapshot_described *extra = d->extras[type];
    for (const weir_json_node *item = node->first; !err && item; item = item->next, extra++) {
        const weir_json_node *name;
        err = describe_find_text(item, "name", &name);
        if (!err && !weir_snapshot_extra_name(weir_json_node_text(name)))
            err = WEIR_JSON_ERR(name, "'%.64s' is not the name of an array", weir_json_node_text(name));
        if (err) break;
        snprintf(extra->name, sizeof extra->name, "%s", weir_json_node_text(name));
        err = describe_count(item, "columns", &extra->columns);
    }
    return err;
}

static weir_err describe_vertices(const weir_json_node *root, weir_snapshot_description *d) {
    const weir_json_node *rows;
    uint32_t count = weir_schema_vertex_count(d->schema);
    weir_err err = describe_section(root, "vertices", count, &rows);
    const weir_json_node *row = err ? NULL : rows->first;
    for (uint32_t i = 0; !err && row; i++, row = row->next) {
        err = describe_check_name(row, weir_schema_vertex_at(d->schema, i)->name);
        if (!err) err = describe_count(row, "count", &d->vertices[i]);
        if (!err) err = describe_count(row, "lives", &d->lives[i]);
        if (!err) err = describe_count(row, "rows", &d->rows[i]);
        if (!err) err = describe_extras(row, d, i);
    }
    return err;
}

/* --- all of it --------------------------------------------------------------------------------------------------- */

static weir_err describe_tables_open(weir_snapshot_description *d) {
    size_t types = weir_schema_vertex_count(d->schema) + 1, relations = weir_schema_relation_count(d->schema) + 1;
    d->vertices = weir_calloc(types, sizeof *d->vertices);
    d->lives = weir_calloc(types, sizeof *d->lives);
    d->rows = weir_calloc(types, sizeof *d->rows);
    d->extras = weir_calloc(types, sizeof *d->extras);
    d->extra_counts = weir_calloc(types, sizeof *d->extra_counts);
    d->edges = weir_calloc(relations, sizeof *d->edges);
    d->deleted = weir_calloc(relations, sizeof *d->deleted);
    d->newest_us = weir_calloc(relations, sizeof *d->newest_us);
    d->labels = weir_calloc(weir_schema_label_count(d->schema) + 1, sizeof *d->labels);
    if (d->vertices && d->lives && d->rows && d->extras && d->extra_counts && d->edges && d->deleted && d->newest_us &&
        d->labels)
        return WEIR_OK;
    return WEIR_NOMEM("while reading a snapshot's manifest");
}

static weir_err describe_root(const weir_json_node *root, weir_snapshot_description *d) {
    const weir_json_node *schema, *rows, *row;
    int64_t format = 0;
    weir_err err = describe_i64(root, "format", 0, INT64_MAX, &format);
    if (!err && format != WEIR_SNAPSHOT_FORMAT)
        err = WEIR_ERR(WEIR_EVERSION,
                       "the snapshot has format %lld, this program reads %u; build it again with weir snapshot build",
                       (long long)format, WEIR_SNAPSHOT_FORMAT);
    if (!err) err = describe_find_text(root, "schema", &schema);
    if (err) return err;
    const char *text = weir_json_node_text(schema);
    err = weir_schema_parse("the snapshot's schema", text, strlen(text), &d->schema);
    if (!err) err = describe_tables_open(d);
    if (!err) err = describe_i64(root, "as_of_us", INT64_MIN, INT64_MAX, &d->as_of_us);
    if (!err) err = describe_i64(root, "from_us", INT64_MIN, INT64_MAX, &d->from_us);
    if (!err) err = describe_vertices(root, d);
    if (err) return err;

    uint32_t relations = weir_schema_relation_count(d->schema), labels = weir_schema_label_count(d->schema);
    err = describe_section(root, "relations", relations, &rows);
    row = err ? NULL : rows->first;
    for (uint32_t i = 0; !err && row; i++, row = row->next) {
        err = describe_check_name(row, weir_schema_relation_at(d->schema, i)->name);
        if (!err) err = describe_count(row, "edges", &d->edges[i]);
        if (!err) err = describe_count(row, "deleted", &d->deleted[i]);
        if (!err) err = describe_i64(row, "newest_us", INT64_MIN, INT64_MAX, &d->newest_us[i]);
    }
    if (!err) err = describe_section(root, "labels", labels, &rows);
    row = err ? NULL : rows->first;
    for (uint32_t i = 0; !err && row; i++, row = row->next) {
        err = describe_check_name(row, weir_schema_label_at(d->schema, i)->name);
        if (!err) err = describe_count(row, "count", &d->labels[i]);
    }
    return err;
}

weir_err weir_snapshot_describe(const char *name, const char *text, size_t length,
                                weir_snapshot_description *descriptionp) {
    char sentence[WEIR_ERR_SENTENCE_MAX];
    const weir_json_node *root;
    weir_arena *arena = NULL;
    *descriptionp = (weir_snapshot_description){.schema = NULL};
    weir_err err = weir_arena_open(WEIR_JSON_FILE_ARENA, &arena);
    if (!err) err = weir_json_parse(name, text, length, DESCRIBE_DEPTH_MAX, arena, &root);
    if (!err) err = describe_root(root, descriptionp);
    weir_arena_close(arena);
    if (err) weir_snapshot_description_free(descriptionp);
    if (!weir_err_is(err, WEIR_ECONFIG)) return err;
    /* The schema's parser blames a settings file, but this is data. */
    weir_err_sentence(err, sentence, sizeof sentence);
    return WEIR_ERR(WEIR_EDATA, "%s", sentence);
}

void weir_snapshot_description_free(weir_snapshot_description *d) {
    for (uint32_t i = 0; d->extras && i < weir_schema_vertex_count(d->schema); i++)
        weir_free(d->extras[i]);
    weir_free(d->vertices);
    weir_free(d->lives);
    weir_free(d->rows);
    weir_free(d->extras);
    weir_free(d->extra_counts);
    weir_free(d->edges);
    weir_free(d->deleted);
    weir_free(d->newest_us);
    weir_free(d->labels);
    weir_schema_free(d->schema);
    *d = (weir_snapshot_description){.schema = NULL};
}

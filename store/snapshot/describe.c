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

/* --- sections ---------------------------------------------------------------------------------------------------- */

/* Aggregates of the type's ends that a part brings. */
static weir_err describe_precomputed(const weir_json_node *row, uint32_t type, weir_snapshot_description *d) {
    const weir_json_node *list;
    weir_err err = weir_json_need(row, "aggregates", WEIR_JSON_ARRAY, &list);
    for (const weir_json_node *item = err ? NULL : list->first; !err && item; item = item->next) {
        uint32_t found = weir_schema_aggregate_count(d->schema);
        for (uint32_t i = 0; i < weir_schema_aggregate_count(d->schema); i++) {
            const weir_schema_aggregate *a = weir_schema_aggregate_at(d->schema, i);
            const bool of_ends = a->vertex == type && a->between[0] != WEIR_SCHEMA_NONE;
            if (of_ends && strcmp(a->name, weir_json_node_text(item)) == 0) found = i;
        }
        if (found == weir_schema_aggregate_count(d->schema))
            err = WEIR_JSON_ERR(item, "'aggregates' names something else than an aggregate of the type's ends");
        else
            d->precomputed[found] = true;
    }
    return err;
}

static weir_err describe_vertices(const weir_json_node *root, weir_snapshot_description *d) {
    const weir_json_node *rows;
    uint32_t count = weir_schema_vertex_count(d->schema);
    weir_err err = weir_snapshot_read_section(root, "vertices", count, &rows);
    const weir_json_node *row = err ? NULL : rows->first;
    for (uint32_t i = 0; !err && row; i++, row = row->next) {
        err = weir_snapshot_read_name(row, weir_schema_vertex_at(d->schema, i)->name);
        if (!err) err = weir_snapshot_read_count(row, "count", &d->vertices[i]);
        d->own[i] = d->vertices[i];
        if (!err && d->part) err = weir_snapshot_read_count(row, "own", &d->own[i]);
        if (!err && d->own[i] > d->vertices[i]) err = WEIR_JSON_ERR(row, "'own' is more than 'count'");
        if (!err) err = weir_snapshot_read_count(row, "lives", &d->lives[i]);
        if (!err) err = weir_snapshot_read_count(row, "rows", &d->rows[i]);
        if (!err) err = weir_snapshot_read_extras(row, &d->extras[i], &d->extra_counts[i]);
        if (!err && d->part) err = describe_precomputed(row, i, d);
    }
    return err;
}

/* Of a relation's row. */
static weir_err describe_bool(const weir_json_node *row, const char *key, bool *valuep) {
    const weir_json_node *node;
    weir_err err = weir_json_need(row, key, WEIR_JSON_BOOL, &node);
    *valuep = !err && *node->token.bytes == 't';
    return err;
}

/* --- all of it --------------------------------------------------------------------------------------------------- */

static weir_err describe_tables_open(weir_snapshot_description *d) {
    size_t types = weir_schema_vertex_count(d->schema) + 1, relations = weir_schema_relation_count(d->schema) + 1;
    d->vertices = weir_calloc(types, sizeof *d->vertices);
    d->own = weir_calloc(types, sizeof *d->own);
    d->lives = weir_calloc(types, sizeof *d->lives);
    d->rows = weir_calloc(types, sizeof *d->rows);
    d->extras = weir_calloc(types, sizeof *d->extras);
    d->extra_counts = weir_calloc(types, sizeof *d->extra_counts);
    d->precomputed = weir_calloc(weir_schema_aggregate_count(d->schema) + 1, sizeof *d->precomputed);
    d->edges = weir_calloc(2 * relations, sizeof *d->edges);
    d->deleted = weir_calloc(relations, sizeof *d->deleted);
    d->has_times = weir_calloc(relations, sizeof *d->has_times);
    d->has_events = weir_calloc(relations, sizeof *d->has_events);
    d->newest_us = weir_calloc(relations, sizeof *d->newest_us);
    d->labels = weir_calloc(weir_schema_label_count(d->schema) + 1, sizeof *d->labels);
    if (d->vertices && d->own && d->lives && d->rows && d->extras && d->extra_counts && d->precomputed && d->edges &&
        d->deleted && d->has_times && d->has_events && d->newest_us && d->labels)
        return WEIR_OK;
    return WEIR_NOMEM("while reading a snapshot's manifest");
}

static weir_err describe_root(const weir_json_node *root, weir_snapshot_description *d) {
    const weir_json_node *schema, *rows, *row;
    int64_t format = 0;
    weir_err err = weir_json_need_i64(root, "format", 0, INT64_MAX, &format);
    if (!err && format != WEIR_SNAPSHOT_FORMAT && format != WEIR_SNAPSHOT_FORMAT_WHOLE)
        err = WEIR_ERR(
            WEIR_EVERSION,
            "the snapshot has format %lld, this program reads %u and %u; build it again with weir snapshot build",
            (long long)format, WEIR_SNAPSHOT_FORMAT_WHOLE, WEIR_SNAPSHOT_FORMAT);
    if (!err) err = weir_json_need(root, "schema", WEIR_JSON_STRING, &schema);
    if (err) return err;
    const char *text = weir_json_node_text(schema);
    err = weir_schema_parse("the snapshot's schema", text, strlen(text), &d->schema);
    if (!err) err = describe_tables_open(d);
    if (!err) err = weir_json_need_i64(root, "as_of_us", INT64_MIN, INT64_MAX, &d->as_of_us);
    if (!err) err = weir_json_need_i64(root, "from_us", INT64_MIN, INT64_MAX, &d->from_us);
    d->part = weir_json_find(root, "part") != NULL;
    if (!err) err = describe_vertices(root, d);
    if (err) return err;

    uint32_t relations = weir_schema_relation_count(d->schema), labels = weir_schema_label_count(d->schema);
    err = weir_snapshot_read_section(root, "relations", relations, &rows);
    row = err ? NULL : rows->first;
    for (uint32_t i = 0; !err && row; i++, row = row->next) {
        err = weir_snapshot_read_name(row, weir_schema_relation_at(d->schema, i)->name);
        if (!err) err = weir_snapshot_read_count(row, "edges", &d->edges[2 * i + WEIR_OUT]);
        d->edges[2 * i + WEIR_IN] = d->edges[2 * i + WEIR_OUT];
        if (!err && d->part) err = weir_snapshot_read_count(row, "edges_in", &d->edges[2 * i + WEIR_IN]);
        if (!err) err = weir_snapshot_read_count(row, "deleted", &d->deleted[i]);
        if (!err) err = weir_json_need_i64(row, "newest_us", INT64_MIN, INT64_MAX, &d->newest_us[i]);
        d->has_times[i] = d->has_events[i] = true;
        if (!err && format != WEIR_SNAPSHOT_FORMAT_WHOLE) err = describe_bool(row, "times", &d->has_times[i]);
        if (!err && format != WEIR_SNAPSHOT_FORMAT_WHOLE) err = describe_bool(row, "events", &d->has_events[i]);
    }
    if (!err) err = weir_snapshot_read_section(root, "labels", labels, &rows);
    row = err ? NULL : rows->first;
    for (uint32_t i = 0; !err && row; i++, row = row->next) {
        err = weir_snapshot_read_name(row, weir_schema_label_at(d->schema, i)->name);
        if (!err) err = weir_snapshot_read_count(row, "count", &d->labels[i]);
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
    weir_free(d->own);
    weir_free(d->lives);
    weir_free(d->rows);
    weir_free(d->extras);
    weir_free(d->extra_counts);
    weir_free(d->precomputed);
    weir_free(d->edges);
    weir_free(d->deleted);
    weir_free(d->has_times);
    weir_free(d->has_events);
    weir_free(d->newest_us);
    weir_free(d->labels);
    weir_schema_free(d->schema);
    *d = (weir_snapshot_description){.schema = NULL};
}

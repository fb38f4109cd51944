/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feed.c - rows as mutations of a store of one shard, and arrays beside the vertices of its snapshot.
 *
 * A row's number is its event id, so edges that are otherwise equal keep the order of their rows, unless the row says
 * with which event it came.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>

#include "import_private.h"

#define RUN_MUTATIONS 8192u

typedef struct feed {
    weir_import *import;
    weir_graph *graph;
    uint32_t source;
    uint64_t row, run_begin; /* rows are the offsets of the source */
    uint64_t event;          /* of the row at hand */
    uint32_t run_count;
    weir_buf batch;
    uint8_t *bytes; /* of one row of features: WEIR_ROW_BYTES_MAX */
    uint8_t *put;   /* without nodes: one a key, whether it was put */
} feed;

/* --- runs -------------------------------------------------------------------------------------------------------- */

static weir_err feed_flush(feed *f) {
    weir_batch_span span = {f->source, 0, f->run_begin, f->row};
    if (f->row == f->run_begin) return WEIR_OK;
    weir_batch_end(&f->batch, &span, f->run_count);
    weir_err err = weir_buf_err(&f->batch);
    if (!err) err = weir_graph_submit(f->graph, &f->batch);
    weir_buf_clear(&f->batch);
    weir_batch_begin(&f->batch);
    f->run_begin = f->row;
    f->run_count = 0;
    return err;
}

static void feed_add(feed *f, weir_mutation m) {
    m.offset = f->row;
    m.event = f->event;
    weir_batch_add(&f->batch, &m, f->run_begin);
    f->run_count++;
}

static weir_err feed_end_row(feed *f) {
    f->row++;
    return f->run_count >= RUN_MUTATIONS ? feed_flush(f) : WEIR_OK;
}

/* --- values ------------------------------------------------------------------------------------------------------ */

/* The features of the row at hand into f->bytes; 0: it has none. */
static uint32_t feed_row_of(feed *f, const weir_import_table *table, const weir_import_owner *owner,
                            const weir_value_kind *kinds) {
    weir_value values[WEIR_ROW_FEATURES_MAX];
    bool any = false;
    WEIR_ASSERT(owner->feature_count <= WEIR_ROW_FEATURES_MAX);
    for (uint32_t i = 0; i < owner->feature_count; i++) {
        uint32_t column = owner->features[i];
        const char *text = weir_csv_field(table->csv, column);
        values[i] = (weir_value){.present = *text != 0};
        if (!*text) continue;
        any = true;
        if (table->columns[column].role == WEIR_IMPORT_MOMENT) {
            weir_import_seconds(text, &values[i].time_us);
        } else if (owner->seen[column] == WEIR_IMPORT_TEXTS) {
            WEIR_ASSERT(strlen(text) <= WEIR_ROW_TEXT_MAX);
            values[i].text = text;
            values[i].text_length = (uint8_t)strlen(text);
        } else {
            weir_import_number(text, &values[i].number);
        }
    }
    return any ? (uint32_t)weir_row_write(kinds, values, owner->feature_count, f->bytes) : 0;
}

static void feed_labels(feed *f, const weir_import_table *table, const weir_import_owner *owner, weir_vertex vertex,
                        int64_t time_us) {
    static const weir_value_kind kind = WEIR_VALUE_CATEGORY;
    const char *known = weir_import_field(table, WEIR_IMPORT_LABEL_TIME);
    if (*known) weir_import_seconds(known, &time_us);
    for (uint32_t i = 0; i < table->column_count; i++) {
        const char *text = weir_csv_field(table->csv, table->columns[i].field);
        if (owner->labels[i] == WEIR_SCHEMA_NONE || !*text) continue;
        WEIR_ASSERT(strlen(text) <= WEIR_ROW_TEXT_MAX); /* the survey has seen all rows */
        weir_value value = {.present = true, .text = text, .text_length = (uint8_t)strlen(text)};
        weir_mutation m = {
            .kind = WEIR_PUT_LABEL, .type = (uint16_t)owner->labels[i], .vertex = vertex, .time_us = time_us};
        m.row_length = (uint32_t)weir_row_write(&kind, &value, 1, f->bytes);
        m.row = f->bytes;
        feed_add(f, m);
    }
}

/* Under the public key, so that the same data set makes the same bytes. Names need no secret: they come from whoever
 * imports the data set. */
static weir_vertex feed_vertex(const weir_import *import, uint32_t type, const char *key) {
    return weir_vertex_id(&weir_id_key_public, import->nodes.owners[type].name, key, strlen(key));
}

/* --- rows -------------------------------------------------------------------------------------------------------- */

static void feed_put_vertex(feed *f, uint32_t type, const char *key, int64_t time_us, uint32_t row_length) {
    feed_add(f, (weir_mutation){.kind = WEIR_PUT_VERTEX,
                                .type = (uint16_t)type,
                                .vertex = feed_vertex(f->import, type, key),
                                .time_us = time_us,
                                .key = key,
                                .key_length = (uint16_t)strlen(key),
                                .row = f->bytes,
                                .row_length = row_length});
}

static weir_err feed_node(void *context) {
    feed *f = context;
    const weir_import_table *table = &f->import->nodes;
    const char *key = weir_import_field(table, WEIR_IMPORT_ID);
    uint32_t type;
    size_t count;
    int64_t time_us = 0;
    weir_err err = weir_import_node(f->import, &type);
    if (err) return err;
    const weir_value_kind *kinds = weir_graph_vertex_kinds(f->graph, type, &count);
    WEIR_ASSERT(count == table->owners[type].feature_count);
    weir_import_seconds(weir_import_field(table, WEIR_IMPORT_TIME), &time_us);
    f->event = f->row + 1;
    feed_put_vertex(f, type, key, time_us, feed_row_of(f, table, &table->owners[type], kinds));
    feed_labels(f, table, &table->owners[type], feed_vertex(f->import, type, key), time_us);
    return feed_end_row(f);
}

/* Both ends of an edge that begins at `from`. */
static void feed_put_edge(feed *f, weir_mutation m, weir_vertex from, weir_vertex to) {
    m.direction = WEIR_OUT;
    m.vertex = from;
    m.neighbor = to;
    feed_add(f, m);
    m.direction = WEIR_IN;
    m.vertex = to;
    m.neighbor = from;
    feed_add(f, m);
}

static weir_err feed_edge(void *context) {
    feed *f = context;
    const weir_import_table *table = &f->import->edges;
    weir_import_edge e;
    size_t count;
    weir_mutation m = {.kind = WEIR_PUT_EDGE};
    weir_err err = weir_import_ends(f->import, &e);
    if (err) return err;
    if (f->import->opts->undirected && e.from != e.to)
        return WEIR_ERR(WEIR_EUSAGE, "%s: an edge between two types has a direction; leave out --undirected",
                        weir_csv_place(table->csv));
    const uint32_t types[] = {e.from, e.to};
    const char *keys[] = {e.src, e.dst};
    f->event = f->row + 1;
    for (size_t i = 0; i < 2 && !f->import->nodes.csv; i++) { /* without nodes, a vertex is put where first named */
        int32_t code = weir_texts_find(&f->import->ids, keys[i], strlen(keys[i]));
        WEIR_ASSERT(code >= 0 && (uint32_t)code < f->import->ids.count); /* weir_import_ends has added it */
        if (!f->put[code]) feed_put_vertex(f, types[i], keys[i], 0, 0);
        f->put[code] = 1;
    }
    const weir_value_kind *kinds = weir_graph_relation_kinds(f->graph, e.relation, &count);
    m.type = (uint16_t)e.relation;
    weir_import_event(weir_import_field(table, WEIR_IMPORT_EVENT), &f->event); /* "": it stays the row's number */
    weir_vertex from = feed_vertex(f->import, e.from, e.src), to = feed_vertex(f->import, e.to, e.dst);
    weir_import_seconds(weir_import_field(table, WEIR_IMPORT_TIME), &m.time_us);
    m.row_length = feed_row_of(f, table, &table->owners[e.relation], kinds);
    m.row = f->bytes;
    feed_put_edge(f, m, from, to);
    if (f->import->opts->undirected && from != to) feed_put_edge(f, m, to, from);
    feed_labels(f, table, &table->owners[e.relation], from, m.time_us);
    return feed_end_row(f);
}

weir_err weir_import_feed(weir_import *import, weir_graph *graph) {
    feed f = {.import = import,
              .graph = graph,
              .bytes = weir_malloc(WEIR_ROW_BYTES_MAX),
              .put = weir_calloc(import->ids.count + 1, 1)};
    weir_err err = f.bytes && f.put ? WEIR_OK : WEIR_NOMEM("while importing a data set");
    weir_batch_begin(&f.batch);
    if (!err) err = weir_graph_source(graph, "import", 1, &f.source);
    if (!err) err = weir_import_walk(&import->nodes, feed_node, &f);
    if (!err) err = weir_import_walk(&import->edges, feed_edge, &f);
    if (!err) err = feed_flush(&f);
    if (!err) err = weir_graph_drain(graph);
    if (!err) err = weir_graph_seal(graph);
    weir_buf_free(&f.batch);
    weir_free(f.bytes);
    weir_free(f.put);
    return err;
}

/* --- matrices and masks ------------------------------------------------------------------------------------------ */

typedef struct extra_fill {
    weir_import *import;
    weir_snapshot_draft *draft;
    uint32_t type, column;
    float *matrix; /* one of the two */
    uint8_t *mask;
} extra_fill;

static weir_err extra_fill_row(void *context) {
    extra_fill *x = context;
    const weir_import_table *table = &x->import->nodes;
    const weir_import_column *column = &table->columns[x->column];
    const char *key = weir_import_field(table, WEIR_IMPORT_ID), *text = weir_csv_field(table->csv, column->field);
    uint32_t type;
    uint64_t index, at = 0;
    double value;
    weir_err err = weir_import_node(x->import, &type);
    if (err || type != x->type) return err;
    if (!weir_draft_find(x->draft, type, feed_vertex(x->import, type, key), &index))
        return WEIR_ERR(WEIR_EINTERNAL, "the vertex '%.64s' is not in its snapshot", key);
    if (x->mask) {
        if (*text) x->mask[index] = weir_import_in_mask(table, x->column); /* a later line need not say it again */
        return WEIR_OK;
    }
    for (; weir_import_list(&text, &value); at++) {
        uint64_t place = column->role == WEIR_IMPORT_BITS ? (uint64_t)value : at;
        if (place >= column->width)
            return WEIR_ERR(WEIR_EDATA, "%s: bit %llu is beyond the %llu columns that were given",
                            weir_csv_place(table->csv), (unsigned long long)place, (unsigned long long)column->width);
        x->matrix[index * column->width + place] = column->role == WEIR_IMPORT_BITS ? 1.0f : (float)value;
    }
    return WEIR_OK;
}

weir_err weir_import_extend(void *context, weir_snapshot_draft *draft) {
    weir_import *import = context;
    const weir_import_table *table = &import->nodes;
    weir_err err = WEIR_OK;
    for (uint32_t i = 0; !err && i < table->column_count * table->owner_count; i++) {
        extra_fill x = {
            .import = import, .draft = draft, .type = i / table->column_count, .column = i % table->column_count};
        const weir_import_column *column = &table->columns[x.column];
        bool mask = column->role == WEIR_IMPORT_MASK;
        bool matrix = column->role == WEIR_IMPORT_BITS || column->role == WEIR_IMPORT_MATRIX;
        uint64_t count;
        if ((!mask && !matrix) || table->owners[x.type].seen[x.column] == WEIR_IMPORT_NOTHING) continue;
        weir_snapshot_draft_ids(draft, x.type, &count);
        if (mask) x.mask = weir_calloc((size_t)count + 1, 1);
        if (matrix) x.matrix = weir_calloc((size_t)(count * column->width) + 1, sizeof *x.matrix);
        err = x.mask || x.matrix ? WEIR_OK : WEIR_NOMEM("for the array %s", column->name);
        if (!err) err = weir_import_walk(&import->nodes, extra_fill_row, &x);
        if (!err && mask) err = weir_snapshot_draft_mask(draft, x.type, column->name, x.mask);
        if (!err && matrix) err = weir_snapshot_draft_matrix(draft, x.type, column->name, x.matrix, column->width);
        weir_free(x.mask);
        weir_free(x.matrix);
    }
    return err;
}

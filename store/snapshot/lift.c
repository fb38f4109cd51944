/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lift.c - edges that are to be judged become vertices: a task asks about vertices, so what there is to learn, score
 * and serve them is there for edges, too.
 *
 *   src,dst,type,timestamp,stars,label         nodes.csv   review/1, of type review: timestamp, stars, label
 *   ann,inn,review,17,4,0              ──►     edges.csv   review/1 ──review_src──► ann
 *                                                          review/1 ──review_dst──► inn     both at 17, of one event,
 *                                                                                           with stars
 *
 * Two files are written in place of those that were given. All other rows stand in them as they were.
 */
#include <stdio.h>
#include <string.h>

#include <weir/store/base/alloc.h>

#include "export.h"
#include "import_private.h"

#define LIFT_NONE      UINT32_MAX
#define LIFT_TYPES_MAX 64u

enum { LIFT_SRC, LIFT_DST, LIFT_TYPE, LIFT_SRC_TYPE, LIFT_DST_TYPE, LIFT_TIME, LIFT_EVENT, LIFT_PLAIN };
static const char *const lift_names[LIFT_PLAIN] = {"src",      "dst",       "type",    "src_type",
                                                   "dst_type", "timestamp", "event_id"};

/* A column of the new nodes, and where its value is found; LIFT_NONE: there is none. */
typedef struct lift_column {
    uint32_t node, edge;
    bool is_id, is_type;
} lift_column;

typedef struct lift {
    char types[LIFT_TYPES_MAX][WEIR_IMPORT_NAME_MAX + 1]; /* that become vertices, as a schema has them */
    bool met[LIFT_TYPES_MAX];
    uint32_t type_count;
    weir_csv *nodes, *edges; /* nodes: NULL, there is no file of them */
    uint32_t at[LIFT_PLAIN]; /* where edges have these columns, or LIFT_NONE */
    uint32_t id;             /* the same, of their own ids */
    const char *splits;      /* columns that say parts, as the import's options name them */
    lift_column *columns;
    uint32_t column_count;
    weir_export_file new_nodes, new_edges;
    weir_texts ends; /* without a file of nodes: types and keys of those that have a line */
    weir_texts keys; /* of edges that have become vertices */
    weir_buf text;
    bool timed;          /* some edge has a time */
    uint64_t row, event; /* event: the largest that is given; those that are drawn are above it */
} lift;

/* Which of the types it is, "" being `otherwise`; LIFT_NONE: none. */
static uint32_t lift_type_of(const lift *l, const char *name, const char *otherwise) {
    char clean[WEIR_IMPORT_NAME_MAX + 1];
    weir_import_clean_name(*name ? name : otherwise, clean);
    for (uint32_t i = 0; i < l->type_count; i++) {
        if (strcmp(l->types[i], clean) == 0) return i;
    }
    return LIFT_NONE;
}

/* "a,b,c" */
static weir_err lift_read_types(lift *l, const char *list) {
    for (const char *at = list; *at; at += strcspn(at, ","), at += *at == ',') {
        char name[WEIR_IMPORT_NAME_MAX + 1];
        const size_t length = strcspn(at, ",");
        if (length == 0 || length > WEIR_IMPORT_NAME_MAX - strlen("_src") || l->type_count == LIFT_TYPES_MAX)
            return WEIR_ERR(WEIR_EUSAGE, "--as-vertices is types of edges, at most %u, separated by commas",
                            LIFT_TYPES_MAX);
        snprintf(name, sizeof name, "%.*s", (int)length, at);
        weir_import_clean_name(name, l->types[l->type_count++]);
    }
    return l->type_count ? WEIR_OK : WEIR_ERR(WEIR_EUSAGE, "--as-vertices names no type of edges");
}

static uint32_t lift_find(const weir_csv *csv, const char *name) {
    for (uint32_t i = 0; csv && i < weir_csv_columns(csv); i++) {
        if (strcmp(weir_csv_name(csv, i), name) == 0) return i;
    }
    return LIFT_NONE;
}

static const char *lift_field(const weir_csv *csv, uint32_t column) {
    return csv && column != LIFT_NONE ? weir_csv_field(csv, column) : "";
}

static void lift_put(weir_export_file *file, const char *text, bool last) {
    weir_buf_csv(&file->text, text, strlen(text));
    weir_buf_byte(&file->text, last ? '\n' : ',');
}

/* --- columns ----------------------------------------------------------------------------------------------------- */

/* Whether the column says how an edge lies in the graph; its time is its vertex's, too. */
static bool lift_is_edges_own(const lift *l, uint32_t column) {
    for (uint32_t i = 0; i < LIFT_PLAIN; i++) {
        if (l->at[i] == column && i != LIFT_TIME) return true;
    }
    return false;
}

static void lift_add(lift *l, const char *name, uint32_t node, uint32_t edge) {
    bool is_id = strcmp(name, "id") == 0, is_type = strcmp(name, "type") == 0;
    if (edge != LIFT_NONE && lift_is_edges_own(l, edge)) edge = LIFT_NONE;
    if (l->column_count) weir_buf_byte(&l->new_nodes.text, ',');
    weir_buf_csv(&l->new_nodes.text, name, strlen(name));
    l->columns[l->column_count++] = (lift_column){node, edge, is_id, is_type};
}

static weir_err lift_headers(lift *l, const char *path) {
    const uint32_t of_nodes = l->nodes ? weir_csv_columns(l->nodes) : 0, of_edges = weir_csv_columns(l->edges);
    l->columns = weir_calloc((size_t)of_nodes + of_edges + 2, sizeof *l->columns);
    if (!l->columns) return WEIR_NOMEM("while edges become vertices");
    for (uint32_t i = 0; i < LIFT_PLAIN; i++)
        l->at[i] = lift_find(l->edges, lift_names[i]);
    l->id = lift_find(l->edges, "id");
    if (l->at[LIFT_SRC] == LIFT_NONE || l->at[LIFT_DST] == LIFT_NONE)
        return WEIR_ERR(WEIR_EDATA, "%s lacks the columns 'src' and 'dst'", path);
    if (!l->nodes) lift_add(l, "id", LIFT_NONE, l->id);
    for (uint32_t i = 0; i < of_nodes; i++)
        lift_add(l, weir_csv_name(l->nodes, i), i, lift_find(l->edges, weir_csv_name(l->nodes, i)));
    if (lift_find(l->nodes, "type") == LIFT_NONE) lift_add(l, "type", LIFT_NONE, LIFT_NONE);
    for (uint32_t i = 0; i < LIFT_PLAIN; i++)
        weir_buf_printf(&l->new_edges.text, "%s%s", i ? "," : "", lift_names[i]);
    for (uint32_t i = 0; i < of_edges; i++) {
        const char *name = weir_csv_name(l->edges, i);
        if (lift_is_edges_own(l, i)) continue;
        if (lift_find(l->nodes, name) == LIFT_NONE && strcmp(name, "id") != 0) lift_add(l, name, LIFT_NONE, i);
        if (i == l->at[LIFT_TIME]) continue;
        weir_buf_byte(&l->new_edges.text, ',');
        weir_buf_csv(&l->new_edges.text, name, strlen(name));
    }
    weir_buf_byte(&l->new_nodes.text, '\n');
    weir_buf_byte(&l->new_edges.text, '\n');
    return WEIR_OK;
}

/* Before anything is written: whether edges have times, and which numbers of events are taken. */
static weir_err lift_survey(lift *l) {
    bool found = true;
    weir_err err = WEIR_OK;
    while (!err && !(err = weir_csv_next(l->edges, &found)) && found) {
        uint64_t event = 0;
        weir_import_event(lift_field(l->edges, l->at[LIFT_EVENT]), &event);
        if (event > l->event) l->event = event;
        l->timed = l->timed || *lift_field(l->edges, l->at[LIFT_TIME]);
    }
    weir_csv_rewind(l->edges);
    if (!err && l->event > UINT64_MAX / 2)
        err = WEIR_ERR(WEIR_ELIMIT, "the largest event_id leaves no room for those of edges that become vertices");
    return err;
}

/* --- rows -------------------------------------------------------------------------------------------------------- */

static weir_err lift_copy_nodes(lift *l) {
    const uint32_t type = lift_find(l->nodes, "type");
    bool found = true;
    weir_err err = WEIR_OK;
    while (!err && l->nodes && !(err = weir_csv_next(l->nodes, &found)) && found) {
        if (lift_type_of(l, lift_field(l->nodes, type), "node") != LIFT_NONE)
            return WEIR_ERR(WEIR_EDATA, "%s: '%.64s' is a type of vertices already; give those edges another name",
                            weir_csv_place(l->nodes), lift_field(l->nodes, type));
        for (uint32_t i = 0; i < l->column_count; i++)
            lift_put(&l->new_nodes, lift_field(l->nodes, l->columns[i].node), i + 1 == l->column_count);
        err = weir_export_flush(&l->new_nodes);
    }
    return err;
}

/* Without a file of nodes, an end is a line of the new one when it is met first. */
static weir_err lift_put_end(lift *l, uint32_t end, uint32_t type) {
    const char *key = lift_field(l->edges, l->at[end]), *of = lift_field(l->edges, l->at[type]);
    const uint32_t before = l->ends.count;
    int32_t code;
    if (lift_type_of(l, of, "node") != LIFT_NONE)
        return WEIR_ERR(WEIR_EDATA, "%s: '%.64s' is a type of vertices already; give those edges another name",
                        weir_csv_place(l->edges), *of ? of : "node");
    weir_buf_clear(&l->text);
    weir_buf_printf(&l->text, "%zu %s%s", strlen(of), of, key);
    weir_err err = weir_buf_err(&l->text);
    if (!err) err = weir_texts_code(&l->ends, l->text.bytes, l->text.length, &code);
    if (err || l->ends.count == before) return err;
    for (uint32_t i = 0; i < l->column_count; i++)
        lift_put(&l->new_nodes, l->columns[i].is_id ? key : l->columns[i].is_type ? of : "", i + 1 == l->column_count);
    return WEIR_OK;
}

/* What the judged edge has besides numbers and texts stands with its vertex alone. */
static bool lift_is_of_vertex(const lift *l, const char *name) {
    return weir_import_is_listed(l->splits, name) || strcmp(name, "id") == 0 || strcmp(name, "label") == 0 ||
           strcmp(name, "label_time") == 0 || strncmp(name, "label.", 6) == 0 || strncmp(name, "mask.", 5) == 0 ||
           strncmp(name, "split.", 6) == 0;
}

/* As it was, or from a vertex that was an edge to one of its ends. Numbers and texts are there, too: an aggregate of an
 * end (the mean stars of a place) is made of those of edges. */
static void lift_put_edge(lift *l, const char *const fields[LIFT_PLAIN], bool lifted) {
    for (uint32_t i = 0; i < LIFT_PLAIN; i++) {
        if (i) weir_buf_byte(&l->new_edges.text, ',');
        weir_buf_csv(&l->new_edges.text, fields[i], strlen(fields[i]));
    }
    for (uint32_t i = 0; i < weir_csv_columns(l->edges); i++) {
        if (lift_is_edges_own(l, i) || i == l->at[LIFT_TIME]) continue;
        const char *text =
            lifted && lift_is_of_vertex(l, weir_csv_name(l->edges, i)) ? "" : weir_csv_field(l->edges, i);
        weir_buf_byte(&l->new_edges.text, ',');
        weir_buf_csv(&l->new_edges.text, text, strlen(text));
    }
    weir_buf_byte(&l->new_edges.text, '\n');
}

/* The key of the edge at hand: its id, or the type and the number of its row. No other has it. */
static weir_err lift_key(lift *l, const char *type, char key[WEIR_KEY_MAX + 1]) {
    const char *own = lift_field(l->edges, l->id);
    const uint32_t before = l->keys.count;
    int32_t code;
    if (strlen(own) > WEIR_KEY_MAX) return WEIR_ERR(WEIR_EDATA, "%s: the id is too long", weir_csv_place(l->edges));
    if (*own)
        snprintf(key, WEIR_KEY_MAX + 1, "%s", own);
    else
        snprintf(key, WEIR_KEY_MAX + 1, "%s/%llu", type, (unsigned long long)l->row);
    weir_err err = weir_texts_code(&l->keys, key, strlen(key), &code);
    if (err || l->keys.count > before) return err;
    return WEIR_ERR(WEIR_EDATA, "%s: an earlier edge has the id '%.64s'; give each its own, or none",
                    weir_csv_place(l->edges), key);
}

/* The vertex sees its own two edges, which are as old as itself, because they come with one event; where there are no
 * times there is no need to. */
static weir_err lift_put_vertex(lift *l, const char *type) {
    const char *time = lift_field(l->edges, l->at[LIFT_TIME]), *given = lift_field(l->edges, l->at[LIFT_EVENT]);
    char key[WEIR_KEY_MAX + 1], drawn[24], to_src[WEIR_IMPORT_NAME_MAX + 8], to_dst[WEIR_IMPORT_NAME_MAX + 8];
    weir_err err = lift_key(l, type, key);
    if (err) return err;
    snprintf(drawn, sizeof drawn, "%llu", (unsigned long long)(l->event + l->row));
    snprintf(to_src, sizeof to_src, "%s_src", type);
    snprintf(to_dst, sizeof to_dst, "%s_dst", type);
    for (uint32_t i = 0; i < l->column_count; i++) {
        const lift_column *c = &l->columns[i];
        const char *text = c->is_id ? key : c->is_type ? type : lift_field(l->edges, c->edge);
        lift_put(&l->new_nodes, text, i + 1 == l->column_count);
    }
    const char *event = *given ? given : l->timed ? drawn : "";
    const char *const src[LIFT_PLAIN] = {key,  lift_field(l->edges, l->at[LIFT_SRC]),      to_src,
                                         type, lift_field(l->edges, l->at[LIFT_SRC_TYPE]), time,
                                         event};
    const char *const dst[LIFT_PLAIN] = {key,  lift_field(l->edges, l->at[LIFT_DST]),      to_dst,
                                         type, lift_field(l->edges, l->at[LIFT_DST_TYPE]), time,
                                         event};
    lift_put_edge(l, src, true);
    lift_put_edge(l, dst, true);
    return WEIR_OK;
}

static weir_err lift_edges(lift *l) {
    bool found = true;
    weir_err err = WEIR_OK;
    while (!err && !(err = weir_csv_next(l->edges, &found)) && found) {
        const uint32_t type = lift_type_of(l, lift_field(l->edges, l->at[LIFT_TYPE]), "edge");
        l->row++;
        if (!l->nodes) err = lift_put_end(l, LIFT_SRC, LIFT_SRC_TYPE);
        if (!err && !l->nodes) err = lift_put_end(l, LIFT_DST, LIFT_DST_TYPE);
        if (err) break;
        if (type != LIFT_NONE) {
            l->met[type] = true;
            err = lift_put_vertex(l, l->types[type]);
        } else {
            const char *fields[LIFT_PLAIN];
            for (uint32_t i = 0; i < LIFT_PLAIN; i++)
                fields[i] = lift_field(l->edges, l->at[i]);
            lift_put_edge(l, fields, false);
        }
        if (!err) err = weir_export_flush(&l->new_nodes);
        if (!err) err = weir_export_flush(&l->new_edges);
    }
    for (uint32_t i = 0; !err && i < l->type_count; i++)
        if (!l->met[i]) err = WEIR_ERR(WEIR_ENOTFOUND, "--as-vertices: no edge is of type '%s'", l->types[i]);
    return err;
}

weir_err weir_import_lift(const weir_snapshot_import_opts *opts, const char *folder) {
    lift l = {.splits = opts->splits};
    weir_err err = lift_read_types(&l, opts->as_vertices);
    if (!err && opts->nodes) err = weir_csv_open(opts->nodes, &l.nodes);
    if (!err) err = weir_csv_open(opts->edges, &l.edges);
    if (!err) err = weir_export_open(folder, "nodes.csv", &l.new_nodes);
    if (!err) err = weir_export_open(folder, "edges.csv", &l.new_edges);
    if (!err) err = lift_headers(&l, opts->edges);
    if (!err) err = lift_survey(&l);
    if (!err) err = lift_copy_nodes(&l);
    if (!err) err = lift_edges(&l);
    err = weir_export_close(&l.new_nodes, err);
    err = weir_export_close(&l.new_edges, err);
    weir_csv_close(l.nodes);
    weir_csv_close(l.edges);
    weir_texts_free(&l.ends);
    weir_texts_free(&l.keys);
    weir_buf_free(&l.text);
    weir_free(l.columns);
    return err;
}

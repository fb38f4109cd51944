/* SPDX-License-Identifier: Apache-2.0 */
/*
 * write.c - the arrays of one part, gathered from those of the snapshot.
 *
 * Every file is written from front to end. The vertices of a part are not in the snapshot's order (plan.c), so what is
 * read of the snapshot for it lies anywhere.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/file.h>
#include <weir/store/trust/trust.h>

#include "plan.h"

#define PART_NAME_MAX 512u /* of an array */

weir_err weir_parts_path(const weir_parts_draft *draft, char path[WEIR_PARTS_PATH_MAX], const char *format, ...) {
    va_list list;
    int used = snprintf(path, WEIR_PARTS_PATH_MAX, "%s/part-%u/", draft->folder, draft->part);
    va_start(list, format);
    if (used > 0 && used < (int)WEIR_PARTS_PATH_MAX)
        used += vsnprintf(path + used, WEIR_PARTS_PATH_MAX - (size_t)used, format, list);
    va_end(list);
    if (used > 0 && used < (int)WEIR_PARTS_PATH_MAX) return WEIR_OK;
    return WEIR_ERR(WEIR_ELIMIT, "the path %.64s… is too long", draft->folder);
}

/* Some of the vertices of a type that are here, the first ones, as places in the snapshot. */
typedef struct part_some {
    const int64_t *old;
    uint64_t count;
    bool *told; /* NULL: all of them; else those that are marked */
} part_some;

static bool part_has(part_some rows, uint64_t i) {
    return !rows.told || rows.told[i];
}

static const weir_parts_here *part_here(const weir_parts_draft *draft, uint32_t type) {
    const weir_parts_here *here = &draft->local.here[type];
    WEIR_ASSERT(type < draft->local.types && here->own <= here->listed && here->listed <= here->count);
    return here;
}

static part_some part_own(const weir_parts_draft *draft, uint32_t type) {
    return (part_some){part_here(draft, type)->vertices, part_here(draft, type)->own, NULL};
}

/* Writes the numbers of one array. */
typedef weir_err (*part_fill)(weir_npy_writer *writer, const void *context);

static weir_err part_write_array(const weir_parts_draft *draft, const char *folder, const char *name,
                                 weir_npy_type type, uint64_t rows, uint64_t columns, part_fill fill,
                                 const void *context) {
    char path[WEIR_PARTS_PATH_MAX];
    weir_npy_writer *writer = NULL;
    weir_err err = weir_parts_path(draft, path, "%s/%s.npy", folder, name);
    if (!err) err = weir_npy_writer_open(path, type, rows, columns, &writer);
    if (!err) err = fill(writer, context);
    return weir_npy_writer_end(writer, err);
}

typedef struct part_plain {
    const void *numbers;
    uint64_t count;
} part_plain;

static weir_err part_fill_plain(weir_npy_writer *writer, const void *context) {
    const part_plain *p = context;
    return weir_npy_write(writer, p->numbers, p->count);
}

static weir_err part_write_plain(const weir_parts_draft *draft, const char *folder, const char *name,
                                 weir_npy_type type, const void *numbers, uint64_t count) {
    const part_plain p = {numbers, count};
    return part_write_array(draft, folder, name, type, count, 0, part_fill_plain, &p);
}

/* --- rows of vertices ------------------------------------------------------------------------------------------ */

typedef struct part_gather {
    part_some rows;
    const uint8_t *source;
    size_t size;      /* of one number    */
    uint64_t columns; /* numbers of a row */
} part_gather;

static weir_err part_fill_rows(weir_npy_writer *writer, const void *context) {
    const part_gather *g = context;
    size_t stride = g->size * g->columns;
    weir_err err = WEIR_OK;
    for (uint64_t i = 0; !err && i < g->rows.count; i++)
        err = weir_npy_write(writer, g->source + (size_t)g->rows.old[i] * stride, g->columns);
    return err;
}

/* columns 0: one dimension. */
static weir_err part_write_rows(const weir_parts_draft *draft, const char *folder, const char *name, weir_npy_type type,
                                part_some rows, const void *source, uint64_t columns) {
    const part_gather g = {rows, source, weir_npy_size(type), columns ? columns : 1};
    return part_write_array(draft, folder, name, type, rows.count, columns, part_fill_rows, &g);
}

/* --- lists: of edges, lives, rows, keys ------------------------------------------------------------------------- */

typedef struct part_lists {
    part_some rows;        /* that have a list */
    uint64_t vertices;     /* and behind them those that have none: so many in all */
    const int64_t *indptr; /* of the snapshot */
    const int64_t *neighbors;
    const uint8_t *source;
    size_t size;
    const int64_t *place_of; /* of what neighbours are */
} part_lists;

static uint64_t part_count_listed(part_some rows, const int64_t *indptr) {
    uint64_t count = 0;
    for (uint64_t i = 0; i < rows.count; i++)
        if (part_has(rows, i)) count += (uint64_t)(indptr[rows.old[i] + 1] - indptr[rows.old[i]]);
    return count;
}

static weir_err part_fill_lists(weir_npy_writer *writer, const void *context) {
    const part_lists *l = context;
    weir_err err = WEIR_OK;
    for (uint64_t i = 0; !err && i < l->rows.count; i++) {
        int64_t begin = l->indptr[l->rows.old[i]], end = l->indptr[l->rows.old[i] + 1];
        WEIR_ASSERT(begin >= 0 && begin <= end);
        if (!part_has(l->rows, i)) continue;
        err = weir_npy_write(writer, l->source + (size_t)begin * l->size, (uint64_t)(end - begin));
    }
    return err;
}

static weir_err part_fill_neighbors(weir_npy_writer *writer, const void *context) {
    const part_lists *l = context;
    weir_err err = WEIR_OK;
    for (uint64_t i = 0; !err && i < l->rows.count; i++) {
        int64_t end = l->indptr[l->rows.old[i] + 1];
        for (int64_t at = l->indptr[l->rows.old[i]]; !err && at < end; at++) {
            int64_t place = l->place_of[l->neighbors[at]];
            WEIR_ASSERT(place != WEIR_PARTS_ELSEWHERE); /* PARTS-P3 */
            err = weir_npy_write_i64(writer, place);
        }
    }
    return err;
}

static weir_err part_fill_indptr(weir_npy_writer *writer, const void *context) {
    const part_lists *l = context;
    int64_t at = 0;
    weir_err err = weir_npy_write_i64(writer, at);
    for (uint64_t i = 0; !err && i < l->rows.count; i++) {
        if (part_has(l->rows, i)) at += l->indptr[l->rows.old[i] + 1] - l->indptr[l->rows.old[i]];
        err = weir_npy_write_i64(writer, at);
    }
    for (uint64_t i = l->rows.count; !err && i < l->vertices; i++)
        err = weir_npy_write_i64(writer, at);
    return err;
}

static weir_err part_write_indptr(const weir_parts_draft *draft, const char *folder, const char *name, part_lists l) {
    return part_write_array(draft, folder, name, WEIR_NPY_I64, l.vertices + 1, 0, part_fill_indptr, &l);
}

static weir_err part_write_lists(const weir_parts_draft *draft, const char *folder, const char *name,
                                 weir_npy_type type, part_lists l, const void *source, uint64_t count) {
    l.source = source;
    l.size = weir_npy_size(type);
    return part_write_array(draft, folder, name, type, count, 0, part_fill_lists, &l);
}

/* --- features -------------------------------------------------------------------------------------------------- */

static const void *part_column_numbers(const weir_snapshot_column *c, weir_npy_type *typep) {
    switch (c->kind) {
    case WEIR_VALUE_NUMBER:
        *typep = WEIR_NPY_F32;
        return c->numbers;
    case WEIR_VALUE_TIME:
        *typep = WEIR_NPY_I64;
        return c->times;
    default:
        *typep = WEIR_NPY_I32;
        return c->codes;
    }
}

/* A part has the texts of all parts: a code means the same everywhere. */
static weir_err part_write_texts(const weir_parts_draft *draft, const char *folder, const weir_snapshot_column *c) {
    char name[PART_NAME_MAX];
    if (c->kind != WEIR_VALUE_CATEGORY) return WEIR_OK;
    snprintf(name, sizeof name, "feature.%s.text_offsets", c->name);
    weir_err err = part_write_plain(draft, folder, name, WEIR_NPY_I64, c->text_offsets, c->texts + 1);
    if (err) return err;
    snprintf(name, sizeof name, "feature.%s.text_bytes", c->name);
    return part_write_plain(draft, folder, name, WEIR_NPY_U8, c->text_bytes, (uint64_t)c->text_offsets[c->texts]);
}

static weir_err part_create_folder(const weir_parts_draft *draft, const char *folder) {
    char path[WEIR_PARTS_PATH_MAX];
    weir_err err = weir_parts_path(draft, path, "%s", folder);
    return err ? err : weir_folder_create(path);
}

/* --- what was told of vertices ----------------------------------------------------------------------------------- */

/* The first label of this vertex, or of the one whose list begins at this position, or of a later one: labels are in
 * that order. */
static uint64_t part_label_from(const weir_snapshot_labels *labels, int64_t place) {
    uint64_t low = 0, high = labels->count;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (labels->targets[middle] < place)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Marks what the label is of. */
static void part_mark_told(const weir_snapshot_labels *labels, part_some rows, bool *told) {
    for (uint64_t i = 0; i < rows.count; i++) {
        uint64_t at = told[i] ? labels->count : part_label_from(labels, rows.old[i]);
        told[i] = told[i] || (at < labels->count && labels->targets[at] == rows.old[i]);
    }
}

/* Those of which there are lives: what the part owns; and, where aggregates count by a label, whatever has that label,
 * because an owned vertex may lead to it, and a label belongs to a life (PARTS-P1). Frees told->told. */
static weir_err part_find_told(const weir_parts_draft *draft, uint32_t type, part_some *rows) {
    const weir_schema *schema = weir_snapshot_schema(draft->snapshot);
    const weir_parts_here *here = part_here(draft, type);
    bool *told = NULL;
    *rows = part_own(draft, type);
    for (uint32_t l = 0; l < weir_schema_label_count(schema); l++) {
        const weir_schema_label *label = weir_schema_label_at(schema, l);
        if (label->on_relation || label->target != type || !weir_schema_label_counts(schema, l)) continue;
        if (!told) told = weir_calloc(here->count + 1, sizeof *told);
        if (!told) return WEIR_NOMEM("for the labels of a part");
        memset(told, true, here->own);
        *rows = (part_some){here->vertices, here->count, told};
        part_mark_told(weir_snapshot_labels_of(draft->snapshot, l), *rows, told);
    }
    return WEIR_OK;
}

/* --- vertices -------------------------------------------------------------------------------------------------- */

static weir_err part_write_extras(const weir_parts_draft *draft, const char *folder, part_some rows,
                                  const weir_snapshot_vertices *vertices) {
    char name[PART_NAME_MAX];
    weir_err err = WEIR_OK;
    for (uint32_t i = 0; !err && i < vertices->extra_count; i++) {
        const weir_snapshot_extra *x = &vertices->extras[i];
        snprintf(name, sizeof name, "%s.%s", x->columns ? "matrix" : "mask", x->name);
        err = x->columns ? part_write_rows(draft, folder, name, WEIR_NPY_F32, rows, x->matrix, x->columns)
                         : part_write_rows(draft, folder, name, WEIR_NPY_BOOL, rows, x->mask, 0);
    }
    return err;
}

static weir_err part_write_spans(const weir_parts_draft *draft, const char *folder, const char *times, uint32_t type,
                                 part_some rows, const weir_snapshot_spans *spans, uint64_t *countp) {
    const part_lists l = {.rows = rows, .vertices = part_here(draft, type)->count, .indptr = spans->indptr};
    *countp = part_count_listed(l.rows, spans->indptr);
    weir_err err = part_create_folder(draft, folder);
    if (!err) err = part_write_indptr(draft, folder, "indptr", l);
    if (!err) err = part_write_lists(draft, folder, times, WEIR_NPY_I64, l, spans->times, *countp);
    return err ? err : part_write_lists(draft, folder, "until", WEIR_NPY_I64, l, spans->until_us, *countp);
}

/* One number a row, in the order of these lists. */
static weir_err part_write_columns(const weir_parts_draft *draft, const char *folder,
                                   const weir_snapshot_column *columns, uint32_t column_count, part_lists l,
                                   uint64_t count) {
    char name[PART_NAME_MAX];
    weir_err err = WEIR_OK;
    for (uint32_t i = 0; !err && i < column_count; i++) {
        weir_npy_type kind = WEIR_NPY_F32;
        const void *numbers = part_column_numbers(&columns[i], &kind);
        snprintf(name, sizeof name, "feature.%s", columns[i].name);
        err = part_write_lists(draft, folder, name, kind, l, numbers, count);
    }
    return err;
}

typedef struct part_id {
    weir_vertex id;
    int64_t place;
} part_id;

static int part_compare_ids(const void *a, const void *b) {
    const part_id *x = a, *y = b;
    return x->id < y->id ? -1 : x->id > y->id;
}

/* By which a vertex of the part's own is found by its id. */
static weir_err part_write_by_id(const weir_parts_draft *draft, const char *folder, uint32_t type) {
    const weir_vertex_pair *ids = weir_snapshot_vertices_of(draft->snapshot, type)->ids;
    part_some own = part_own(draft, type);
    part_id *sorted = weir_calloc(own.count + 1, sizeof *sorted);
    int64_t *places = weir_calloc(own.count + 1, sizeof *places);
    weir_err err = sorted && places ? WEIR_OK : WEIR_NOMEM("for the ids of a part");
    for (uint64_t place = 0; !err && place < own.count; place++)
        sorted[place] = (part_id){weir_vertex_of(ids[own.old[place]]), (int64_t)place};
    if (!err && own.count) qsort(sorted, own.count, sizeof *sorted, part_compare_ids);
    for (uint64_t i = 0; !err && i < own.count; i++)
        places[i] = sorted[i].place;
    if (!err) err = part_write_plain(draft, folder, "by_id", WEIR_NPY_I64, places, own.count);
    weir_free(sorted);
    weir_free(places);
    return err;
}

/* PARTS-P1: of those that others own there are ids, which sampling draws by, and lives if a label is there too. */
static weir_err part_write_vertices(const weir_parts_draft *draft, uint32_t type, weir_parts_counts *counts) {
    const weir_snapshot_vertices *vertices = weir_snapshot_vertices_of(draft->snapshot, type);
    const weir_parts_here *here = part_here(draft, type);
    part_some own = part_own(draft, type), all = {here->vertices, here->count, NULL}, told = {0};
    char folder[128], room[136];
    snprintf(folder, sizeof folder, "vertices/%s",
             weir_schema_vertex_at(weir_snapshot_schema(draft->snapshot), type)->name);
    weir_err err = part_create_folder(draft, folder);
    if (!err) err = part_write_rows(draft, folder, "ids", WEIR_NPY_U64, all, vertices->ids, 2);
    if (!err) err = part_write_by_id(draft, folder, type);
    if (!err) err = part_find_told(draft, type, &told);
    snprintf(room, sizeof room, "%s/lives", folder);
    if (!err) err = part_write_spans(draft, room, "first", type, told, &vertices->lives, &counts->lives[type]);
    if (!err) err = weir_parts_ends_write(draft, room, type, counts->lives[type]);
    weir_free(told.told);
    snprintf(room, sizeof room, "%s/rows", folder);
    if (!err) err = part_write_spans(draft, room, "times", type, own, &vertices->rows, &counts->rows[type]);
    const part_lists keys = {.rows = own, .vertices = here->count, .indptr = vertices->key_offsets};
    if (!err) err = part_write_indptr(draft, folder, "key_offsets", keys);
    if (!err)
        err = part_write_lists(draft, folder, "key_bytes", WEIR_NPY_U8, keys, vertices->key_bytes,
                               part_count_listed(own, keys.indptr));
    const part_lists l = {.rows = own, .indptr = vertices->rows.indptr};
    if (!err) err = part_write_columns(draft, folder, vertices->columns, vertices->column_count, l, counts->rows[type]);
    for (uint32_t i = 0; !err && i < vertices->column_count; i++)
        err = part_write_texts(draft, folder, &vertices->columns[i]);
    return err ? err : part_write_extras(draft, folder, own, vertices);
}

typedef struct part_others {
    const weir_parts_here *here;
    const int64_t *new_of;
} part_others;

static weir_err part_fill_numbers(weir_npy_writer *writer, const void *context) {
    const part_others *o = context;
    weir_err err = WEIR_OK;
    for (size_t place = o->here->own; !err && place < o->here->count; place++)
        err = weir_npy_write_i64(writer, o->new_of[o->here->vertices[place]]);
    return err;
}

/* Of those that others own: whom to ask for what they are like. */
static weir_err part_write_numbers(const weir_parts_draft *draft, uint32_t type) {
    const part_others o = {part_here(draft, type), draft->plan->new_of[type]};
    return part_write_array(draft, "numbers", weir_schema_vertex_at(weir_snapshot_schema(draft->snapshot), type)->name,
                            WEIR_NPY_I64, o.here->count - o.here->own, 0, part_fill_numbers, &o);
}

/* --- relations ------------------------------------------------------------------------------------------------- */

static weir_err part_write_direction(const weir_parts_draft *draft, uint32_t relation, weir_direction direction,
                                     uint64_t *countp) {
    const weir_schema_relation *r = weir_schema_relation_at(weir_snapshot_schema(draft->snapshot), relation);
    bool out = direction == WEIR_OUT;
    const weir_snapshot_edges *edges = weir_snapshot_edges_of(draft->snapshot, relation, direction);
    const weir_parts_here *here = part_here(draft, out ? r->from : r->to);
    const part_lists l = {.rows = {here->vertices, here->listed, NULL},
                          .vertices = here->count,
                          .indptr = edges->indptr,
                          .neighbors = edges->neighbors,
                          .place_of = part_here(draft, out ? r->to : r->from)->place_of};
    uint64_t count = *countp = part_count_listed(l.rows, l.indptr);
    char folder[128];
    snprintf(folder, sizeof folder, "relations/%s/%s", r->name, out ? "out" : "in");
    weir_err err = part_create_folder(draft, folder);
    if (!err) err = part_write_indptr(draft, folder, "indptr", l);
    if (!err) err = part_write_array(draft, folder, "neighbors", WEIR_NPY_I64, count, 0, part_fill_neighbors, &l);
    if (!err && edges->has_times) err = part_write_lists(draft, folder, "times", WEIR_NPY_I64, l, edges->times, count);
    if (!err && edges->has_events)
        err = part_write_lists(draft, folder, "events", WEIR_NPY_U64, l, edges->events, count);
    if (!err && edges->until_us)
        err = part_write_lists(draft, folder, "until", WEIR_NPY_I64, l, edges->until_us, count);
    return err ? err : part_write_columns(draft, folder, edges->columns, edges->column_count, l, count);
}

/* PARTS-P2: a list is there whole, or not at all. */
static weir_err part_write_relation(const weir_parts_draft *draft, uint32_t relation, weir_parts_counts *counts) {
    const weir_snapshot_edges *e = weir_snapshot_edges_of(draft->snapshot, relation, WEIR_OUT);
    char folder[96];
    snprintf(folder, sizeof folder, "relations/%s",
             weir_schema_relation_at(weir_snapshot_schema(draft->snapshot), relation)->name);
    weir_err err = part_create_folder(draft, folder);
    for (uint32_t i = 0; !err && i < e->column_count; i++)
        err = part_write_texts(draft, folder, &e->columns[i]);
    if (!err) err = part_write_direction(draft, relation, WEIR_OUT, &counts->edges[2 * relation + WEIR_OUT]);
    return err ? err : part_write_direction(draft, relation, WEIR_IN, &counts->edges[2 * relation + WEIR_IN]);
}

/* --- labels ---------------------------------------------------------------------------------------------------- */

/* Labels that are here: the position of each in the snapshot, and its target in the part. */
typedef struct part_taken {
    int64_t *places, *targets;
    size_t count, capacity;
} part_taken;

static weir_err part_take(part_taken *t, uint64_t place, int64_t target) {
    size_t of_places = t->capacity;
    if (!WEIR_GROW(t->places, of_places, t->count) || !WEIR_GROW(t->targets, t->capacity, t->count))
        return WEIR_NOMEM("for the labels of a part");
    t->places[t->count] = (int64_t)place;
    t->targets[t->count++] = target;
    return WEIR_OK;
}

static weir_err part_take_of_vertices(part_some rows, const weir_snapshot_labels *labels, part_taken *t) {
    weir_err err = WEIR_OK;
    for (uint64_t v = 0; !err && v < rows.count; v++) {
        uint64_t i = part_label_from(labels, rows.old[v]);
        for (; !err && i < labels->count && labels->targets[i] == rows.old[v]; i++)
            err = part_take(t, i, (int64_t)v);
    }
    return err;
}

/* Lists of owned vertices are the first of a part, in their order: each begins at `here`. */
static weir_err part_take_of_edges(const weir_parts_draft *draft, uint32_t relation, const weir_snapshot_labels *labels,
                                   part_taken *t) {
    const weir_snapshot_edges *e = weir_snapshot_edges_of(draft->snapshot, relation, WEIR_OUT);
    part_some rows = part_own(draft, weir_schema_relation_at(weir_snapshot_schema(draft->snapshot), relation)->from);
    int64_t here = 0;
    weir_err err = WEIR_OK;
    for (uint64_t v = 0; !err && v < rows.count; v++) {
        int64_t begin = e->indptr[rows.old[v]], end = e->indptr[rows.old[v] + 1];
        uint64_t i = part_label_from(labels, begin);
        for (; !err && i < labels->count && labels->targets[i] < end; i++) {
            if (labels->targets[i] < begin)
                return WEIR_ERR(WEIR_ECORRUPT,
                                "the snapshot's labels are not in the order of their edges; build it again");
            err = part_take(t, i, here + labels->targets[i] - begin);
        }
        here += end - begin;
    }
    return err;
}

static weir_err part_write_labels(const weir_parts_draft *draft, uint32_t label, uint64_t *countp) {
    const weir_schema_label *l = weir_schema_label_at(weir_snapshot_schema(draft->snapshot), label);
    const weir_snapshot_labels *labels = weir_snapshot_labels_of(draft->snapshot, label);
    part_taken t = {0};
    char folder[96];
    part_some of = {0};
    if (!l->on_relation) of = part_own(draft, l->target);
    if (weir_schema_label_counts(weir_snapshot_schema(draft->snapshot), label))
        of.count = part_here(draft, l->target)->count;
    weir_err err =
        l->on_relation ? part_take_of_edges(draft, l->target, labels, &t) : part_take_of_vertices(of, labels, &t);
    const part_some rows = {t.places, t.count, NULL};
    *countp = t.count;
    snprintf(folder, sizeof folder, "labels/%s", l->name);
    if (!err) err = part_create_folder(draft, folder);
    if (!err) err = part_write_plain(draft, folder, "targets", WEIR_NPY_I64, t.targets, t.count);
    if (!err) err = part_write_rows(draft, folder, "values", WEIR_NPY_I32, rows, labels->values, 0);
    if (!err) err = part_write_rows(draft, folder, "times", WEIR_NPY_I64, rows, labels->times, 0);
    weir_free(t.places);
    weir_free(t.targets);
    return err;
}

/* --- all of it ------------------------------------------------------------------------------------------------- */

weir_err weir_parts_write_part(const weir_parts_draft *draft, weir_parts_counts *counts) {
    char path[WEIR_PARTS_PATH_MAX];
    const weir_schema *schema = weir_snapshot_schema(draft->snapshot);
    *counts = (weir_parts_counts){0};
    weir_err err = part_create_folder(draft, "numbers");
    for (uint32_t i = 0; !err && i < weir_schema_vertex_count(schema); i++) {
        err = part_write_vertices(draft, i, counts);
        if (!err) err = part_write_numbers(draft, i);
    }
    for (uint32_t i = 0; !err && i < weir_schema_relation_count(schema); i++)
        err = part_write_relation(draft, i, counts);
    for (uint32_t i = 0; !err && i < weir_schema_label_count(schema); i++)
        err = part_write_labels(draft, i, &counts->labels[i]);
    if (!err) err = weir_parts_write_manifest(draft, counts);
    if (!err) err = weir_parts_path(draft, path, ".");
    if (!err) path[strlen(path) - 2] = '\0';
    return err ? err : weir_manifest_write(path);
}

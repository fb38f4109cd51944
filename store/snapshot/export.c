/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export.c - nodes.csv and edges.csv, as an import reads them.
 *
 * One file has the rows of all types, so its columns are those of all of them; cells of columns that a type lacks are
 * empty. A vertex that was never put has no key: its id is used instead, as "#" and 32 hex digits.
 *
 * A line of nodes.csv is a put: the first of the vertex's life, and each row. What is not visible as of the snapshot
 * any more, deleted or expired, is left out: a line cannot say when something ended.
 */
#include "export.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>

#include "csv.h"

#define FLUSH_BYTES (1u << 20)
#define HEADER_MAX  128u

/* --- text -------------------------------------------------------------------------------------------------------- */

void weir_export_number(weir_buf *out, float number) {
    char text[32];
    if (isnan(number)) return;
    for (int digits = 6; digits <= 9; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, (double)number);
        if (strtof(text, NULL) == number) break;
    }
    weir_buf_text(out, text);
}

void weir_export_seconds(weir_buf *out, int64_t time_us) {
    if (time_us == WEIR_SNAPSHOT_NEVER) return;
    int64_t seconds = time_us / 1000000, fraction = time_us % 1000000;
    weir_buf_printf(out, "%s%" PRId64, time_us < 0 && seconds == 0 ? "-" : "", seconds);
    if (fraction) weir_buf_printf(out, ".%06" PRId64, fraction < 0 ? -fraction : fraction);
}

static bool export_is_bits(const float *numbers, uint64_t count) {
    for (uint64_t i = 0; i < count; i++) {
        if (numbers[i] != 0 && numbers[i] != 1) return false;
    }
    return true;
}

/* Numbers separated by blanks; bits: the positions of those that are not 0. */
static void export_list(weir_buf *out, const float *numbers, uint64_t count, bool bits) {
    const char *blank = "";
    for (uint64_t i = 0; i < count; i++) {
        if (bits && numbers[i] == 0) continue;
        weir_buf_text(out, blank);
        blank = " ";
        if (bits) {
            weir_buf_u64(out, i);
        } else {
            weir_export_number(out, isnan(numbers[i]) ? 0 : numbers[i]);
        }
    }
}

/* --- a file ------------------------------------------------------------------------------------------------------ */

weir_err weir_export_open(const char *folder, const char *name, weir_export_file *filep) {
    char path[4096];
    *filep = (weir_export_file){.file = NULL};
    int length = snprintf(path, sizeof path, "%s/%s", folder, name);
    if (length < 0 || length >= (int)sizeof path) return WEIR_ERR(WEIR_ELIMIT, "the path %.64s… is too long", folder);
    return weir_file_open(path, WEIR_FILE_CREATE, &filep->file);
}

static weir_err export_write_text(weir_export_file *file) {
    weir_err err = weir_buf_err(&file->text);
    if (!err && file->text.length) err = weir_file_append(file->file, file->text.bytes, file->text.length);
    weir_buf_clear(&file->text);
    return err;
}

weir_err weir_export_flush(weir_export_file *file) {
    return file->text.length < FLUSH_BYTES && !file->text.failed ? WEIR_OK : export_write_text(file);
}

weir_err weir_export_close(weir_export_file *file, weir_err err) {
    if (!err) err = export_write_text(file);
    if (!err) err = weir_file_sync(file->file);
    weir_err_keep(&err, weir_file_close(file->file));
    weir_buf_free(&file->text);
    return err;
}

/* Entries of one target come newest first, so the last one written here is the newest. */
int64_t *weir_export_newest(const weir_snapshot *snapshot, const weir_snapshot_labels *labels, uint64_t targets,
                            const weir_snapshot_vertices *vertices) {
    int64_t *newest = weir_malloc((size_t)(targets + 1) * sizeof *newest);
    uint64_t life;
    for (uint64_t i = 0; newest && i < targets; i++)
        newest[i] = -1;
    for (uint64_t i = labels->count; newest && i-- > 0;)
        newest[labels->targets[i]] = (int64_t)i;
    for (uint64_t i = 0; newest && vertices && i < targets; i++) {
        if (newest[i] < 0) continue;
        uint64_t begin = (uint64_t)newest[i], end = begin + 1;
        bool there = weir_snapshot_span(&vertices->lives, i, weir_snapshot_as_of_us(snapshot), &life);
        if (there) weir_snapshot_labels_of_life(vertices, i, life, labels, &begin, &end);
        if (!there || begin == end) newest[i] = -1;
    }
    return newest;
}

bool weir_export_sees(const weir_snapshot *snapshot, const weir_snapshot_edges *e, int64_t edge) {
    int64_t as_of_us = weir_snapshot_as_of_us(snapshot), gone_us;
    if (e->until_us && e->until_us[edge] <= as_of_us) return false;
    return !e->expire_us || __builtin_sub_overflow(as_of_us, e->expire_us, &gone_us) || e->times[edge] > gone_us;
}

uint8_t *weir_export_there(const weir_snapshot *snapshot, uint32_t type) {
    const weir_schema *schema = weir_snapshot_schema(snapshot);
    const weir_snapshot_vertices *v = weir_snapshot_vertices_of(snapshot, type);
    uint8_t *there = weir_calloc((size_t)v->count + 1, 1);
    uint64_t life;
    for (uint64_t i = 0; there && i < v->count; i++)
        there[i] = weir_snapshot_span(&v->lives, i, weir_snapshot_as_of_us(snapshot), &life);
    for (uint32_t r = 0; there && r < 2 * weir_schema_relation_count(schema); r++) {
        const weir_schema_relation *relation = weir_schema_relation_at(schema, r / 2);
        weir_direction direction = r % 2 ? WEIR_IN : WEIR_OUT;
        if ((direction == WEIR_OUT ? relation->from : relation->to) != type) continue;
        const weir_snapshot_edges *e = weir_snapshot_edges_of(snapshot, r / 2, direction);
        for (uint64_t i = 0; i < e->vertices; i++) {
            for (int64_t at = e->indptr[i]; at < e->indptr[i + 1] && !there[i]; at++)
                there[i] = weir_export_sees(snapshot, e, at);
        }
    }
    return there;
}

/* --- columns ----------------------------------------------------------------------------------------------------- */

typedef enum sheet_item_kind { ITEM_NONE, ITEM_LABEL, ITEM_FEATURE, ITEM_EXTRA } sheet_item_kind;

/* One cell of a row of one type. */
typedef struct sheet_item {
    sheet_item_kind kind;
    bool bits;
    const weir_snapshot_column *feature;
    const weir_snapshot_extra *extra;
    const weir_schema_values *values; /* of a label */
    const weir_snapshot_labels *labels;
    int64_t *newest; /* of a label: owned */
} sheet_item;

/* A line of nodes.csv, or of edges.csv. */
typedef struct sheet_line {
    uint64_t target;
    int64_t row; /* of the features; -1: none */
    int64_t stamp_us;
    int64_t label_after_us, label_upto_us; /* labels of times between them go on this line */
} sheet_line;

/* headers[i] is the name of column i; items[owner * room + i] is what a row of that owner has there. */
typedef struct sheet {
    char (*headers)[HEADER_MAX];
    sheet_item *items;
    uint32_t count, room, owners;
    bool with_events; /* of edges: some has one, so there is a column event_id */
} sheet;

static weir_err sheet_open(sheet *s, uint32_t owners, uint32_t room) {
    *s = (sheet){.owners = owners, .room = room};
    s->headers = weir_calloc(room + 1, sizeof *s->headers);
    s->items = weir_calloc((size_t)owners * room + 1, sizeof *s->items);
    return s->headers && s->items ? WEIR_OK : WEIR_NOMEM("while exporting a snapshot");
}

static void sheet_close(sheet *s) {
    for (size_t i = 0; s->items && i < (size_t)s->owners * s->room; i++)
        weir_free(s->items[i].newest);
    weir_free(s->items);
    weir_free(s->headers);
}

static void sheet_add(sheet *s, uint32_t owner, const char *header, sheet_item it) {
    uint32_t at = 0;
    while (at < s->count && strcmp(s->headers[at], header) != 0)
        at++;
    WEIR_ASSERT(at < s->room);
    if (at == s->count) snprintf(s->headers[s->count++], HEADER_MAX, "%s", header);
    s->items[(size_t)owner * s->room + at] = it;
}

/* A number with the name of a special column is marked as a number. */
static void sheet_add_features(sheet *s, uint32_t owner, const weir_snapshot_column *columns, uint32_t count) {
    static const char *const taken = " id type timestamp src dst src_type dst_type event_id label label_time ";
    char header[HEADER_MAX], word[HEADER_MAX];
    for (uint32_t i = 0; i < count; i++) {
        const char *prefix = columns[i].kind == WEIR_VALUE_TIME ? "time." : "text.";
        snprintf(word, sizeof word, " %s ", columns[i].name);
        if (columns[i].kind == WEIR_VALUE_NUMBER) prefix = strstr(taken, word) ? "number." : "";
        snprintf(header, sizeof header, "%s%s", prefix, columns[i].name);
        sheet_add(s, owner, header, (sheet_item){.kind = ITEM_FEATURE, .feature = &columns[i]});
    }
}

static void sheet_add_extras(sheet *s, uint32_t owner, const weir_snapshot_vertices *v) {
    char header[HEADER_MAX];
    for (uint32_t i = 0; i < v->extra_count; i++) {
        const weir_snapshot_extra *e = &v->extras[i];
        bool bits = e->columns && export_is_bits(e->matrix, v->count * e->columns);
        if (e->columns) {
            snprintf(header, sizeof header, "%s.%s.%" PRIu64, bits ? "bits" : "matrix", e->name, e->columns);
        } else {
            snprintf(header, sizeof header, "mask.%s", e->name);
        }
        sheet_add(s, owner, header, (sheet_item){.kind = ITEM_EXTRA, .extra = e, .bits = bits});
    }
}

static weir_err sheet_add_labels(sheet *s, const weir_snapshot *snapshot, bool on_relation, uint32_t owner,
                                 uint64_t targets) {
    const weir_schema *schema = weir_snapshot_schema(snapshot);
    char header[HEADER_MAX];
    for (uint32_t i = 0; i < weir_schema_label_count(schema); i++) {
        const weir_schema_label *label = weir_schema_label_at(schema, i);
        if (label->on_relation != on_relation || label->target != owner) continue;
        sheet_item it = {.kind = ITEM_LABEL, .values = &label->values, .labels = weir_snapshot_labels_of(snapshot, i)};
        it.newest = weir_export_newest(snapshot, it.labels, targets,
                                       on_relation ? NULL : weir_snapshot_vertices_of(snapshot, owner));
        if (!it.newest) return WEIR_NOMEM("while exporting a snapshot");
        snprintf(header, sizeof header, "label.%s", label->name);
        sheet_add(s, owner, header, it);
    }
    return WEIR_OK;
}

static void sheet_put_header(weir_buf *out, const char *begin, const sheet *s) {
    weir_buf_text(out, begin);
    for (uint32_t i = 0; i < s->count; i++)
        weir_buf_printf(out, ",%s", s->headers[i]);
    weir_buf_byte(out, '\n');
}

/* --- cells ------------------------------------------------------------------------------------------------------- */

static void sheet_put_item(weir_buf *out, const sheet_item *it, const sheet_line *l) {
    const weir_snapshot_column *c = it->feature;
    switch (it->kind) {
    case ITEM_NONE:
        return;
    case ITEM_LABEL: {
        int64_t place = it->newest[l->target], time_us = place < 0 ? 0 : it->labels->times[place];
        if (place < 0 || time_us <= l->label_after_us || time_us > l->label_upto_us) return;
        const char *text = it->values->texts[it->labels->values[place]];
        weir_buf_csv(out, text, strlen(text));
        return;
    }
    case ITEM_FEATURE:
        if (l->row < 0) return;
        if (c->kind == WEIR_VALUE_NUMBER) weir_export_number(out, c->numbers[l->row]);
        if (c->kind == WEIR_VALUE_TIME) weir_export_seconds(out, c->times[l->row]);
        if (c->kind == WEIR_VALUE_CATEGORY && c->codes[l->row] >= 0) {
            const int64_t *at = &c->text_offsets[c->codes[l->row]];
            weir_buf_csv(out, (const char *)c->text_bytes + at[0], (size_t)(at[1] - at[0]));
        }
        return;
    case ITEM_EXTRA:
        if (it->extra->columns) {
            export_list(out, it->extra->matrix + l->target * it->extra->columns, it->extra->columns, it->bits);
        } else {
            weir_buf_byte(out, it->extra->mask[l->target] ? '1' : '0');
        }
        return;
    }
}

static void sheet_put_items(weir_buf *out, const sheet *s, uint32_t owner, const sheet_line *l) {
    for (uint32_t i = 0; i < s->count; i++) {
        weir_buf_byte(out, ',');
        sheet_put_item(out, &s->items[(size_t)owner * s->room + i], l);
    }
    weir_buf_byte(out, '\n');
}

static void export_put_key(weir_buf *out, const weir_snapshot_vertices *v, uint64_t index) {
    int64_t begin = v->key_offsets[index], end = v->key_offsets[index + 1];
    weir_buf_csv(out, (const char *)v->key_bytes + begin, (size_t)(end - begin));
    if (begin == end) weir_buf_printf(out, "#%016" PRIx64 "%016" PRIx64, v->ids[index].high, v->ids[index].low);
}

/* --- nodes ------------------------------------------------------------------------------------------------------- */

static weir_err sheet_of_nodes(const weir_snapshot *snapshot, sheet *s) {
    const weir_schema *schema = weir_snapshot_schema(snapshot);
    uint32_t types = weir_schema_vertex_count(schema), room = weir_schema_label_count(schema);
    for (uint32_t i = 0; i < types; i++) {
        const weir_snapshot_vertices *v = weir_snapshot_vertices_of(snapshot, i);
        room += v->column_count + v->extra_count;
    }
    weir_err err = sheet_open(s, types, room);
    for (uint32_t i = 0; !err && i < types; i++)
        err = sheet_add_labels(s, snapshot, false, i, weir_snapshot_vertices_of(snapshot, i)->count);
    for (uint32_t i = 0; !err && i < types; i++) {
        const weir_snapshot_vertices *v = weir_snapshot_vertices_of(snapshot, i);
        sheet_add_features(s, i, v->columns, v->column_count);
        sheet_add_extras(s, i, v);
    }
    return err;
}

/* Where the lines of one type go. */
typedef struct export_walk {
    const weir_snapshot *snapshot;
    const weir_snapshot_vertices *vertices;
    const sheet *sheet;
    uint32_t type;
    weir_export_file *file;
} export_walk;

static weir_err export_put_node(const export_walk *n, const sheet_line *l) {
    weir_buf *out = &n->file->text;
    export_put_key(out, n->vertices, l->target);
    weir_buf_printf(out, ",%s,", weir_schema_vertex_at(weir_snapshot_schema(n->snapshot), n->type)->name);
    weir_export_seconds(out, l->stamp_us);
    sheet_put_items(out, n->sheet, n->type, l);
    return weir_export_flush(n->file);
}

/* The first put of the life, then each row. A label goes on the first line that is at least as new; the last line has
 * the rest. */
static weir_err export_put_life(const export_walk *n, uint64_t vertex, uint64_t life) {
    const weir_snapshot_spans *lives = &n->vertices->lives, *rows = &n->vertices->rows;
    int64_t first_us = lives->times[life], at = rows->indptr[vertex], end = rows->indptr[vertex + 1];
    weir_err err = WEIR_OK;
    while (at < end && rows->times[at] < first_us)
        at++;
    bool with_row = at < end && rows->times[at] == first_us;
    sheet_line l = {vertex, with_row ? at++ : -1, first_us, INT64_MIN, first_us};
    for (; !err && at < end; at++) {
        err = export_put_node(n, &l);
        l = (sheet_line){vertex, at, rows->times[at], l.label_upto_us, rows->times[at]};
    }
    l.label_upto_us = INT64_MAX;
    return err ? err : export_put_node(n, &l);
}

static weir_err export_nodes(const weir_snapshot *snapshot, const char *folder) {
    weir_export_file file;
    sheet s;
    uint64_t life;
    weir_err err = sheet_of_nodes(snapshot, &s);
    if (err) goto done;
    err = weir_export_open(folder, "nodes.csv", &file);
    if (!err) sheet_put_header(&file.text, "id,type,timestamp", &s);
    for (uint32_t type = 0; !err && type < s.owners; type++) {
        const export_walk n = {snapshot, weir_snapshot_vertices_of(snapshot, type), &s, type, &file};
        uint8_t *there = weir_export_there(snapshot, type);
        if (!there) err = WEIR_NOMEM("while exporting a snapshot");
        for (uint64_t i = 0; !err && i < n.vertices->count; i++) {
            const sheet_line bare = {i, -1, WEIR_SNAPSHOT_NEVER, INT64_MIN, INT64_MAX};
            if (weir_snapshot_span(&n.vertices->lives, i, weir_snapshot_as_of_us(snapshot), &life)) {
                err = export_put_life(&n, i, life);
            } else if (there[i]) {
                err = export_put_node(&n, &bare);
            }
        }
        weir_free(there);
    }
    err = weir_export_close(&file, err);
done:
    sheet_close(&s);
    return err;
}

/* --- edges ------------------------------------------------------------------------------------------------------- */

static weir_err sheet_of_edges(const weir_snapshot *snapshot, sheet *s) {
    const weir_schema *schema = weir_snapshot_schema(snapshot);
    uint32_t relations = weir_schema_relation_count(schema), room = weir_schema_label_count(schema);
    for (uint32_t i = 0; i < relations; i++)
        room += weir_snapshot_edges_of(snapshot, i, WEIR_OUT)->column_count;
    weir_err err = sheet_open(s, relations, room);
    for (uint32_t i = 0; !err && i < relations; i++)
        err = sheet_add_labels(s, snapshot, true, i, weir_snapshot_edges_of(snapshot, i, WEIR_OUT)->edges);
    for (uint32_t i = 0; !err && i < relations; i++) {
        const weir_snapshot_edges *e = weir_snapshot_edges_of(snapshot, i, WEIR_OUT);
        sheet_add_features(s, i, e->columns, e->column_count);
        s->with_events = s->with_events || e->has_events;
    }
    return err;
}

static weir_err export_put_list(const weir_snapshot *snapshot, const sheet *s, uint32_t relation, uint64_t vertex,
                                weir_export_file *file) {
    const weir_schema *schema = weir_snapshot_schema(snapshot);
    const weir_schema_relation *r = weir_schema_relation_at(schema, relation);
    const weir_snapshot_edges *e = weir_snapshot_edges_of(snapshot, relation, WEIR_OUT);
    weir_buf *out = &file->text;
    weir_err err = WEIR_OK;
    for (int64_t at = e->indptr[vertex]; !err && at < e->indptr[vertex + 1]; at++) {
        const sheet_line l = {(uint64_t)at, at, e->times[at], INT64_MIN, INT64_MAX};
        if (!weir_export_sees(snapshot, e, at)) continue;
        export_put_key(out, weir_snapshot_vertices_of(snapshot, r->from), vertex);
        weir_buf_byte(out, ',');
        export_put_key(out, weir_snapshot_vertices_of(snapshot, r->to), (uint64_t)e->neighbors[at]);
        weir_buf_printf(out, ",%s,%s,%s,", r->name, weir_schema_vertex_at(schema, r->from)->name,
                        weir_schema_vertex_at(schema, r->to)->name);
        weir_export_seconds(out, e->times[at]);
        if (s->with_events) weir_buf_byte(out, ',');
        if (s->with_events && e->events[at]) weir_buf_u64(out, e->events[at]);
        sheet_put_items(out, s, relation, &l);
        err = weir_export_flush(file);
    }
    return err;
}

static weir_err export_edges(const weir_snapshot *snapshot, const char *folder) {
    weir_export_file file;
    sheet s;
    weir_err err = sheet_of_edges(snapshot, &s);
    if (!err) {
        err = weir_export_open(folder, "edges.csv", &file);
        if (!err)
            sheet_put_header(&file.text,
                             s.with_events ? "src,dst,type,src_type,dst_type,timestamp,event_id"
                                           : "src,dst,type,src_type,dst_type,timestamp",
                             &s);
        for (uint32_t i = 0; !err && i < s.owners; i++) {
            uint64_t vertices = weir_snapshot_edges_of(snapshot, i, WEIR_OUT)->vertices;
            for (uint64_t v = 0; !err && v < vertices; v++)
                err = export_put_list(snapshot, &s, i, v, &file);
        }
        err = weir_export_close(&file, err);
    }
    sheet_close(&s);
    return err;
}

/* An export follows indices without checking them, so all of them are checked first. */
weir_err weir_snapshot_export(const weir_snapshot *snapshot, weir_snapshot_export_format format, const char *out) {
    if (weir_path_exists(out)) return WEIR_ERR(WEIR_EEXIST, "%s is there already; name another", out);
    weir_err err = weir_snapshot_check(snapshot);
    if (err) return err;
    if (format == WEIR_SNAPSHOT_NPZ) return weir_export_npz(snapshot, out);
    err = weir_folder_create(out);
    if (!err) err = export_nodes(snapshot, out);
    if (!err) err = export_edges(snapshot, out);
    return err ? err : weir_folder_sync(out);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows.c - keys, lives and rows of a type's vertices, in one walk in the order of their ids.
 *
 * A row of the store has what one event brought; a row of a snapshot has all that was known from its time on: each
 * feature at its newest value put in the same life. So a reader needs one row only. A row that changes nothing is left
 * out, and so is one that was replaced before any target.
 *
 *   the store, newest first    {b:3} t=9   {a:2} t=7   {a:1 b:1} t=5        a deletion at 6 separates the lives
 *   here, oldest first         a:1 b:1 from 5 until 7, a:2 from 7, a:2 b:3 from 9
 */
#include <stdio.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/file.h>

#include "along.h"
#include "columns.h"

/* A row of the vertex at hand; its bytes are in the walk's buffer. */
typedef struct held_row {
    int64_t time_us;
    size_t life, offset;
    uint32_t length;
} held_row;

/* What is known from a time on. */
typedef struct rows_standing {
    weir_value values[WEIR_ROW_FEATURES_MAX];
    int64_t time_us, until_us;
    bool any;
} rows_standing;

typedef struct span_files {
    weir_npy_writer *indptr, *times, *until;
} span_files;

typedef struct rows_walk {
    const weir_snapshot_draft *draft;
    int64_t needed_us;  /* a row that was replaced before this is seen by no target      */
    int64_t visible_us; /* no row is visible before this; INT64_MIN: no such bound       */
    weir_npy_writer *offsets, *bytes;
    span_files lives, rows;
    weir_columns *columns;
    weir_columns_texts texts;
    weir_along names, features;
    weir_pulse pulse;
    const weir_value_kind *kinds;
    size_t kind_count;
    /* the rows of the vertex at hand, newest first */
    weir_buf held_bytes;
    held_row *held;
    size_t held_count, held_capacity;
    rows_standing now, next; /* now: written when next differs, or nothing follows */
} rows_walk;

/* --- files ------------------------------------------------------------------------------------------------------- */

static weir_err rows_open_spans(const weir_snapshot_draft *draft, const char *folder, const char *name,
                                const char *times, uint64_t vertices, span_files *files) {
    char room[520], path[WEIR_DRAFT_PATH_MAX];
    snprintf(room, sizeof room, "%s/%s", folder, name);
    weir_err err = weir_draft_path(draft, path, "%s", room);
    if (!err) err = weir_folder_create(path);
    if (!err) err = weir_draft_array(draft, WEIR_NPY_I64, vertices + 1, 0, &files->indptr, "%s/indptr.npy", room);
    if (!err)
        err = weir_draft_array(draft, WEIR_NPY_I64, WEIR_NPY_ANY_ROWS, 0, &files->times, "%s/%s.npy", room, times);
    return err ? err : weir_draft_array(draft, WEIR_NPY_I64, WEIR_NPY_ANY_ROWS, 0, &files->until, "%s/until.npy", room);
}

static weir_err rows_walk_open(const weir_snapshot_draft *draft, uint32_t type, const char *folder, rows_walk *w) {
    const weir_schema_vertex *vertex = weir_schema_vertex_at(draft->schema, type);
    uint64_t count = draft->ids[type].shape[0];
    *w = (rows_walk){.draft = draft, .needed_us = weir_draft_type_from_us(draft, type)};
    w->visible_us = vertex->history_us ? w->needed_us : INT64_MIN;
    w->kinds = weir_graph_vertex_kinds(draft->graph, type, &w->kind_count);
    WEIR_ASSERT(w->kind_count <= WEIR_ROW_FEATURES_MAX);
    weir_err err = weir_draft_array(draft, WEIR_NPY_I64, count + 1, 0, &w->offsets, "%s/key_offsets.npy", folder);
    if (!err) err = weir_draft_array(draft, WEIR_NPY_U8, WEIR_NPY_ANY_ROWS, 0, &w->bytes, "%s/key_bytes.npy", folder);
    if (!err) err = rows_open_spans(draft, folder, "lives", "first", count, &w->lives);
    if (!err) err = rows_open_spans(draft, folder, "rows", "times", count, &w->rows);
    if (!err) err = weir_columns_texts_open(vertex->features, vertex->feature_count, &w->texts);
    if (!err) err = weir_columns_open(draft, folder, &w->texts, WEIR_NPY_ANY_ROWS, &w->columns);
    if (!err) err = weir_along_open(draft, "names", type, &w->names);
    if (!err) err = weir_along_open(draft, "features", type, &w->features);
    return err ? err : weir_pulse_open(draft, type, &w->pulse);
}

/* Closes what is open; when all went well, each file is whole. */
static weir_err rows_walk_close(rows_walk *w, weir_err err) {
    weir_npy_writer *writers[] = {w->offsets,     w->bytes,       w->lives.indptr, w->lives.times,
                                  w->lives.until, w->rows.indptr, w->rows.times,   w->rows.until};
    for (size_t i = 0; i < sizeof writers / sizeof *writers; i++)
        err = weir_npy_writer_end(writers[i], err);
    if (w->columns && !err) {
        err = weir_columns_close(w->columns);
    } else {
        weir_columns_cancel(w->columns);
    }
    weir_columns_texts_free(&w->texts);
    weir_along_close(&w->names);
    weir_along_close(&w->features);
    weir_pulse_close(&w->pulse);
    weir_buf_free(&w->held_bytes);
    weir_free(w->held);
    return err;
}

/* --- rows as the store has them ---------------------------------------------------------------------------------- */

static weir_err rows_hold(rows_walk *w, size_t life, const weir_spill_record *r) {
    held_row *newer = w->held_count ? &w->held[w->held_count - 1] : NULL;
    if (newer && newer->life == life && newer->length == r->row_length &&
        memcmp(w->held_bytes.bytes + newer->offset, r->row, r->row_length) == 0) {
        WEIR_ASSERT(newer->time_us >= r->time_us);
        newer->time_us = r->time_us; /* the newer row says the same in the same life: so it has since this one */
        return WEIR_OK;
    }
    if (!WEIR_GROW(w->held, w->held_capacity, w->held_count))
        return WEIR_NOMEM("for the %zu rows of a vertex", w->held_count + 1);
    w->held[w->held_count++] = (held_row){r->time_us, life, w->held_bytes.length, r->row_length};
    weir_buf_append(&w->held_bytes, r->row, r->row_length);
    return weir_buf_err(&w->held_bytes);
}

/* The rows of lives that a target sees. A row put at the time of a deletion belongs to no life. */
static weir_err rows_hold_all(rows_walk *w, weir_vertex vertex) {
    const weir_lives *lives = &w->pulse.lives;
    int64_t until_us;
    bool here;
    w->held_count = 0;
    weir_buf_clear(&w->held_bytes);
    weir_err err = weir_along_to(&w->features, vertex, &here);
    while (!err && here) {
        const weir_spill_record *r = &w->features.record;
        size_t life = weir_lives_find(lives, r->time_us);
        bool alive = life < lives->count && r->time_us <= lives->of[life].last_us;
        err = weir_row_check(w->kinds, w->kind_count, r->row, r->row_length);
        if (err) return weir_err_prefix(err, "a feature row of vertex " WEIR_VERTEX_FORMAT, WEIR_VERTEX_WORDS(vertex));
        if (alive && weir_pulse_sees(&w->pulse, &lives->of[life], &until_us)) err = rows_hold(w, life, r);
        if (!err) err = weir_along_step(&w->features);
        here = w->features.found && w->features.record.vertex == vertex;
    }
    return err;
}

/* --- rows as a snapshot has them --------------------------------------------------------------------------------- */

static bool rows_same_values(const rows_walk *w, const rows_standing *x, const rows_standing *y) {
    for (size_t i = 0; i < w->kind_count; i++) {
        const weir_value *a = &x->values[i], *b = &y->values[i];
        bool same = a->present == b->present;
        if (same && a->present && w->kinds[i] == WEIR_VALUE_TIME) {
            same = a->time_us == b->time_us;
        } else if (same && a->present && w->kinds[i] == WEIR_VALUE_NUMBER) {
            same = a->number == b->number; /* rows hold no NaN */
        } else if (same && a->present) {
            same =
                a->text_length == b->text_length && (!a->text_length || memcmp(a->text, b->text, a->text_length) == 0);
        }
        if (!same) return false;
    }
    return true;
}

static weir_err rows_write_now(rows_walk *w) {
    if (!w->now.any) return WEIR_OK;
    w->now.any = false;
    if (w->now.until_us <= w->visible_us || w->visible_us > w->draft->as_of_us) return WEIR_OK;
    if (w->now.time_us < w->visible_us) w->now.time_us = w->visible_us - 1; /* as in the store: not before that */
    weir_err err = weir_npy_write_i64(w->rows.times, w->now.time_us);
    if (!err) err = weir_npy_write_i64(w->rows.until, w->now.until_us);
    return err ? err : weir_columns_add(w->columns, w->now.values);
}

/* Rows of one time are one row; the first of them, the newest, has the last word. */
static weir_err rows_write(rows_walk *w, weir_vertex vertex) {
    weir_value said[WEIR_ROW_FEATURES_MAX];
    weir_err err = rows_hold_all(w, vertex);
    size_t life = SIZE_MAX;
    w->now.any = false;
    for (size_t i = w->held_count; !err && i-- > 0;) {
        const held_row *row = &w->held[i];
        if (row->life != life) memset(w->next.values, 0, w->kind_count * sizeof w->next.values[0]);
        life = row->life;
        weir_row_read(w->kinds, w->kind_count, (const uint8_t *)w->held_bytes.bytes + row->offset, row->length, said);
        for (size_t f = 0; f < w->kind_count; f++) {
            if (said[f].present) w->next.values[f] = said[f];
        }
        w->next.time_us = row->time_us;
        w->next.until_us = weir_lives_until_us(&w->pulse.lives, &w->pulse.lives.of[life]);
        if (i > 0 && w->held[i - 1].time_us == row->time_us) continue;

        /* What `next` says from its time on. */
        if (w->now.any && w->now.until_us == w->next.until_us && rows_same_values(w, &w->now, &w->next)) continue;
        if (w->next.time_us < w->needed_us) w->now.any = false;
        err = rows_write_now(w);
        memcpy(w->now.values, w->next.values, w->kind_count * sizeof w->next.values[0]);
        w->now.time_us = w->next.time_us;
        w->now.until_us = w->next.until_us;
        w->now.any = true;
    }
    return err ? err : rows_write_now(w);
}

/* --- the walk ---------------------------------------------------------------------------------------------------- */

/* The key is left out where no target sees a life. */
static weir_err rows_write_lives(rows_walk *w, weir_vertex vertex) {
    bool named, any = false;
    int64_t until_us;
    weir_err err = weir_pulse_to(&w->pulse, vertex);
    for (size_t i = 0; !err && i < w->pulse.lives.count; i++) {
        const weir_life *life = &w->pulse.lives.of[i];
        if (!weir_pulse_sees(&w->pulse, life, &until_us)) continue;
        WEIR_ASSERT(life->first_us < w->draft->as_of_us); /* SNAPSHOT-Z3 */
        any = true;
        err = weir_npy_write_i64(w->lives.times, life->first_us);
        if (!err) err = weir_npy_write_i64(w->lives.until, until_us);
    }
    if (!err) err = weir_along_to(&w->names, vertex, &named);
    if (!err && named && any) err = weir_npy_write(w->bytes, w->names.record.row, w->names.record.row_length);
    return err;
}

static weir_err rows_begin_vertex(rows_walk *w) {
    weir_err err = weir_npy_write_i64(w->offsets, (int64_t)weir_npy_written(w->bytes));
    if (!err) err = weir_npy_write_i64(w->lives.indptr, (int64_t)weir_npy_written(w->lives.times));
    return err ? err : weir_npy_write_i64(w->rows.indptr, (int64_t)weir_npy_written(w->rows.times));
}

static weir_err rows_write_type(weir_snapshot_draft *draft, uint32_t type, rows_walk *w) {
    const weir_vertex_pair *ids = draft->ids[type].data;
    char folder[512];
    snprintf(folder, sizeof folder, "vertices/%s", weir_schema_vertex_at(draft->schema, type)->name);
    weir_err err = rows_walk_open(draft, type, folder, w);
    for (uint64_t i = 0; !err && i < draft->ids[type].shape[0]; i++) {
        err = rows_begin_vertex(w);
        if (!err) err = rows_write_lives(w, weir_vertex_of(ids[i]));
        if (!err) err = rows_write(w, weir_vertex_of(ids[i]));
    }
    if (!err) err = rows_begin_vertex(w); /* after the last */
    if (!err) draft->life_counts[type] = weir_npy_written(w->lives.times);
    if (!err) draft->row_counts[type] = weir_npy_written(w->rows.times);
    if (!err) err = weir_columns_texts_write(draft, folder, &w->texts);
    return rows_walk_close(w, err);
}

weir_err weir_draft_rows(weir_snapshot_draft *draft) {
    rows_walk *w = weir_malloc(sizeof *w);
    weir_err err = w ? WEIR_OK : WEIR_NOMEM("while walking along the vertices");
    for (uint32_t type = 0; !err && type < weir_schema_vertex_count(draft->schema); type++)
        err = rows_write_type(draft, type, w);
    weir_free(w);
    return err;
}

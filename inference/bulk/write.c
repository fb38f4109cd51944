/* SPDX-License-Identifier: Apache-2.0 */
/*
 * write.c - rows become bytes, and bytes files that are whole when they have their names (BULK-B3).
 *
 * The table is locked while it is written, and of an array its keys are the table: so two processes never write one
 * file. An array's old file goes before its keys change, and its new one comes after them.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/clock.h>
#include <weir/store/base/fault.h>
#include <weir/store/snapshot/npy.h>

#include "bulk_private.h"

#define PATH_BYTES_MAX 4096u
#define WRITE_PARTIAL  ".partial"
#define WRITE_KEYS     ".keys.csv"

struct weir_bulk_files {
    const weir_bulk_plan *plan;
    weir_file *table;
    weir_npy_writer *numbers;
    char table_path[PATH_BYTES_MAX], table_partial[PATH_BYTES_MAX];
    char numbers_path[PATH_BYTES_MAX], numbers_partial[PATH_BYTES_MAX]; /* of .npy; else empty */
};

/* --- rows --------------------------------------------------------------------------------------------------------- */

static void write_head(const weir_bulk_plan *plan, weir_buf *out) {
    weir_buf_text(out, "key,time");
    if (!plan->npy && plan->opts->scores)
        weir_buf_text(out, plan->values ? ",predicted,probability" : ",score,probability");
    for (uint32_t c = 0; !plan->npy && !plan->opts->scores && c < plan->columns; c++)
        weir_buf_printf(out, ",e%u", c);
    weir_buf_byte(out, '\n');
}

static void write_score(const weir_bulk_plan *plan, const weir_bulk_score *s, weir_bulk_text *text) {
    if (plan->npy) {
        const double cells[2] = {plan->values ? s->label : s->score, s->probability};
        weir_buf_append(&text->numbers, cells, sizeof cells);
        return;
    }
    weir_buf_byte(&text->table, ',');
    if (plan->values)
        weir_buf_csv(&text->table, plan->values->texts[s->label], strlen(plan->values->texts[s->label]));
    else
        weir_buf_printf(&text->table, "%.9g", s->score);
    weir_buf_printf(&text->table, ",%.9g", s->probability);
}

weir_err weir_bulk_print(const weir_bulk_plan *plan, const weir_target *targets, uint32_t count,
                         const weir_bulk_score *scores, const float *rows, weir_bulk_text *text) {
    char time[WEIR_TIME_TEXT_MAX];
    weir_err err = WEIR_OK;
    weir_buf_clear(&text->table);
    weir_buf_clear(&text->numbers);
    for (uint32_t i = 0; !err && i < count; i++) {
        const float *row = rows ? rows + (size_t)i * plan->columns : NULL;
        err = weir_snapshot_csv_key(plan->vertices, (uint64_t)targets[i].vertex, &text->table);
        weir_time_format(targets[i].before_us, time);
        weir_buf_printf(&text->table, ",%s", time);
        if (plan->opts->scores) write_score(plan, &scores[i], text);
        for (uint32_t c = 0; row && !plan->npy && c < plan->columns; c++)
            weir_buf_printf(&text->table, ",%.9g", (double)row[c]);
        weir_buf_byte(&text->table, '\n');
        if (row && plan->npy) weir_buf_append(&text->numbers, row, plan->columns * sizeof *row);
    }
    if (!err) err = weir_buf_err(&text->table);
    return err ? err : weir_buf_err(&text->numbers);
}

/* --- files -------------------------------------------------------------------------------------------------------- */

static weir_err write_name(char path[PATH_BYTES_MAX], const char *stem, size_t length, const char *ending) {
    if (snprintf(path, PATH_BYTES_MAX, "%.*s%s", (int)length, stem, ending) < (int)PATH_BYTES_MAX) return WEIR_OK;
    return WEIR_ERR(WEIR_ELIMIT, "the path %.64s… is too long; name a shorter one", stem);
}

static weir_err write_name_all(weir_bulk_files *f) {
    const char *path = f->plan->opts->path;
    const size_t whole = strlen(path);
    weir_err err = f->plan->npy ? write_name(f->table_path, path, whole - strlen(".npy"), WRITE_KEYS)
                                : write_name(f->table_path, path, whole, "");
    if (!err) err = write_name(f->table_partial, f->table_path, strlen(f->table_path), WRITE_PARTIAL);
    if (!err && f->plan->npy) err = write_name(f->numbers_path, path, whole, "");
    if (!err && f->plan->npy) err = write_name(f->numbers_partial, path, whole, WRITE_PARTIAL);
    return err;
}

/* What a process that was killed has left goes; what one writes just now stays, and is its. */
static weir_err write_make_room(const weir_bulk_files *f) {
    weir_file *left = NULL;
    weir_err err = weir_file_open(f->table_partial, WEIR_FILE_READ_WRITE, &left);
    if (weir_err_is(err, WEIR_ENOTFOUND)) return WEIR_OK;
    if (!err) err = weir_file_lock(left);
    if (!err) err = weir_file_remove(f->table_partial);
    weir_err_keep(&err, weir_file_close(left));
    return err;
}

weir_err weir_bulk_files_open(const weir_bulk_plan *plan, uint64_t rows, weir_bulk_files **filesp) {
    const weir_npy_type type = plan->opts->scores ? WEIR_NPY_F64 : WEIR_NPY_F32;
    weir_buf head = {0};
    *filesp = NULL;
    weir_bulk_files *f = weir_calloc(1, sizeof *f);
    if (!f) return WEIR_NOMEM("for a file of rows");
    f->plan = plan;
    weir_err err = write_name_all(f);
    if (!err) err = write_make_room(f);
    if (!err) err = weir_file_open(f->table_partial, WEIR_FILE_CREATE, &f->table);
    if (!err) err = weir_file_lock(f->table);
    if (!err && plan->npy && weir_path_exists(f->numbers_partial)) err = weir_file_remove(f->numbers_partial);
    if (!err && plan->npy) err = weir_npy_writer_open(f->numbers_partial, type, rows, plan->columns, &f->numbers);
    write_head(plan, &head);
    if (!err) err = weir_buf_err(&head);
    if (!err) err = weir_file_append(f->table, head.bytes, head.length);
    weir_buf_free(&head);
    if (err) return weir_bulk_files_end(f, err);
    *filesp = f;
    return WEIR_OK;
}

weir_err weir_bulk_files_add(weir_bulk_files *files, const weir_bulk_text *text) {
    const size_t size = files->plan->opts->scores ? sizeof(double) : sizeof(float);
    weir_err err = text->table.length ? weir_file_append(files->table, text->table.bytes, text->table.length) : WEIR_OK;
    if (!err && files->numbers && text->numbers.length)
        err = weir_npy_write(files->numbers, text->numbers.bytes, text->numbers.length / size);
    return err;
}

/* BULK-B3: synced before they are named, and an array never beside the keys of another. */
static weir_err write_publish(const weir_bulk_files *f) {
    const bool npy = f->plan->npy;
    weir_kill_point("bulk.written");
    weir_err err = npy && weir_path_exists(f->numbers_path) ? weir_file_remove(f->numbers_path) : WEIR_OK;
    if (!err) err = weir_file_rename(f->table_partial, f->table_path);
    weir_kill_point("bulk.named");
    if (!err && npy) err = weir_file_rename(f->numbers_partial, f->numbers_path);
    return err;
}

weir_err weir_bulk_files_end(weir_bulk_files *f, weir_err err) {
    if (!f) return err;
    const bool begun = f->table;
    err = weir_npy_writer_end(f->numbers, err);
    if (!err) err = weir_file_sync(f->table);
    if (!err) err = write_publish(f);
    if (err && begun && weir_path_exists(f->table_partial)) (void)weir_file_remove(f->table_partial);
    if (err && begun && f->plan->npy && weir_path_exists(f->numbers_partial))
        (void)weir_file_remove(f->numbers_partial);
    weir_err_keep(&err, weir_file_close(f->table)); /* and gives the lock back */
    weir_free(f);
    return err;
}

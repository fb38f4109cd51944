/* SPDX-License-Identifier: Apache-2.0 */
/* fixture.h - a small engine whose values tell the file that wrote them, and what damages its files. */
#ifndef WEIR_ENGINE_FIXTURE_H
#define WEIR_ENGINE_FIXTURE_H

#include "weir_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/store/base/fault.h>
#include <weir/store/base/file.h>
#include <weir/store/engine/engine.h>

#include "reads.h"

static inline weir_engine *engine_open_at(const char *name, bool create) {
    weir_engine *engine;
    const weir_engine_opts opts = {.create = create};
    assert_ok(weir_engine_open(weir_test_path(name), &opts, &engine));
    return engine;
}

static inline weir_engine *engine_open(bool create) {
    return engine_open_at("engine", create);
}

/* Long enough to have a rank. */
static inline size_t key_of(uint64_t i, char key[32]) {
    return (size_t)snprintf(key, 32, "Kvertex%010lluabcde01234567", (unsigned long long)i);
}

static inline weir_err write_file(weir_engine *engine, uint64_t records, const char *value) {
    weir_engine_writer *writer;
    char key[32];
    weir_err err = weir_engine_writer_open(engine, &writer);
    if (err) return err;
    for (uint64_t i = 0; !err && i < records; i++) {
        err = weir_engine_writer_add(writer, key, key_of(i, key), value, strlen(value));
    }
    if (err) {
        weir_engine_writer_cancel(writer);
        return err;
    }
    return weir_engine_writer_ingest(writer);
}

/* How many records there are, all of them with this value. */
static inline uint64_t count_with(weir_engine *engine, const char *value) {
    weir_engine_cursor *cursor;
    uint64_t count = 0;
    assert_ok(weir_engine_cursor_open(engine, WEIR_ENGINE_SCAN, &cursor));
    for (weir_engine_cursor_seek(cursor, "", 0); weir_engine_cursor_valid(cursor); weir_engine_cursor_next(cursor)) {
        size_t length;
        const char *found = weir_engine_cursor_value(cursor, &length);
        assert_true(length == strlen(value) && memcmp(found, value, length) == 0);
        count++;
    }
    assert_ok(weir_engine_cursor_err(cursor));
    weir_engine_cursor_close(cursor);
    return count;
}

/* Until nothing is merged any more. */
static inline void wait_for_merges(weir_engine *engine, weir_engine_stats *stats) {
    enum { LOOKS_MAX = 100000 };
    for (int look = 0; look < LOOKS_MAX; look++) {
        weir_engine_stats_get(engine, stats);
        if (stats->jobs == 0) return;
        usleep(1000);
    }
    assert_int_equal(stats->jobs, 0);
}

/* --- damage ------------------------------------------------------------------------------------------------------ */

static inline void flip(const char *path, long at, int bit) {
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, at, SEEK_SET), 0);
    int byte = fgetc(file);
    assert_int_equal(fseek(file, at, SEEK_SET), 0);
    fputc(byte ^ 1 << bit, file);
    fclose(file);
}

static inline long size_of(const char *path) {
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    long size = ftell(file);
    fclose(file);
    return size;
}

#define FILES_MAX 64

typedef struct files {
    const char *folder, *with; /* part of the names that are wanted */
    char paths[FILES_MAX][512];
    size_t count;
} files;

static inline weir_err files_take(void *context, const char *name) {
    files *f = context;
    if (!strstr(name, f->with)) return WEIR_OK;
    assert_true(f->count < FILES_MAX);
    snprintf(f->paths[f->count++], sizeof f->paths[0], "%s/%s", f->folder, name);
    return WEIR_OK;
}

static inline void files_find(files *f, const char *engine, const char *with) {
    *f = (files){.folder = weir_test_path(engine), .with = with};
    assert_ok(weir_folder_list(f->folder, files_take, f));
    assert_true(f->count > 0);
}

#endif /* WEIR_ENGINE_FIXTURE_H */

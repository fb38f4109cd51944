/* SPDX-License-Identifier: Apache-2.0 */
/* damage.h - what a shard has, as bytes to compare, and bits of its files that are flipped. */
#ifndef WEIR_TEST_DAMAGE_H
#define WEIR_TEST_DAMAGE_H

#include <stdio.h>
#include <string.h>

#include <weir/store/base/buf.h>
#include <weir/store/base/file.h>
#include <weir/store/base/rng.h>
#include <weir/store/graph/repair.h>

#include "weir_test.h"

/* --- what is stored ----------------------------------------------------------------------------------------------- */

/* All records but offsets and the newest time; of a name, not which of its puts carried it. */
static inline weir_err damage_dump_record(void *dump, const void *key, size_t key_length, const void *value,
                                          size_t value_length) {
    const char *k = key, *v = value;
    uint32_t lengths[2] = {(uint32_t)key_length, (uint32_t)value_length};
    if (k[0] == 'O' || k[0] == 'P') return WEIR_OK;
    weir_buf_append(dump, lengths, sizeof lengths);
    weir_buf_append(dump, key, key_length);
    weir_buf_append(dump, v, k[0] == 'N' ? 2 : value_length);
    if (k[0] == 'N') weir_buf_append(dump, v + 10, value_length - 10);
    return WEIR_OK;
}

static inline weir_buf damage_dump(weir_graph *graph, uint32_t shard) {
    weir_buf dump = {0};
    assert_ok(weir_graph_scan(graph, shard, damage_dump_record, &dump));
    assert_ok(weir_buf_err(&dump));
    return dump;
}

static inline void damage_same(weir_graph *graph, uint32_t shard, const weir_buf *wanted) {
    weir_buf is = damage_dump(graph, shard);
    assert_int_equal(is.length, wanted->length);
    if (is.length) assert_memory_equal(is.bytes, wanted->bytes, is.length);
    weir_buf_free(&is);
}

/* --- damage ------------------------------------------------------------------------------------------------------- */

#define DAMAGE_FILES_MAX 256

typedef struct damage_files {
    char paths[DAMAGE_FILES_MAX][512];
    const char *folder;
    size_t count;
} damage_files;

static inline weir_err damage_take(void *context, const char *name) {
    damage_files *f = context;
    if (!strstr(name, ".sst")) return WEIR_OK;
    assert_true(f->count < DAMAGE_FILES_MAX);
    snprintf(f->paths[f->count++], sizeof f->paths[0], "%s/%s", f->folder, name);
    return WEIR_OK;
}

static inline void damage_find(damage_files *f, const char *store, uint32_t shard) {
    char folder[400];
    f->count = 0;
    f->folder = folder;
    snprintf(folder, sizeof folder, "%s/shard-%03u", weir_test_path(store), shard);
    assert_ok(weir_folder_list(folder, damage_take, f));
    f->folder = NULL;
}

/* false: it has gone. */
static inline bool damage_flip(const char *path, uint64_t at, int bit) {
    FILE *file = fopen(path, "r+b");
    if (!file) return false;
    assert_int_equal(fseek(file, (long)at, SEEK_SET), 0);
    int byte = fgetc(file);
    assert_int_equal(fseek(file, (long)at, SEEK_SET), 0);
    fputc(byte ^ 1 << bit, file);
    fclose(file);
    return true;
}

/* Of any sorted file of the shard, anywhere in it. */
static inline void damage_bits(weir_rng *rng, const char *store, uint32_t shard, uint64_t bits) {
    static damage_files f;
    damage_find(&f, store, shard);
    for (uint64_t i = 0; f.count && i < bits; i++) {
        const char *path = f.paths[weir_rng_below(rng, f.count)];
        weir_file *file;
        if (weir_file_open(path, WEIR_FILE_READ, &file)) continue;
        uint64_t size = weir_file_length(file);
        assert_ok(weir_file_close(file));
        if (size) damage_flip(path, weir_rng_below(rng, size), (int)weir_rng_below(rng, 8)); /* one that is begun */
    }
}

/* In a block of bundles of the shard's largest file, behind what a start reads: the store opens all the same. */
static inline void damage_a_block(const char *store, uint32_t shard) {
    static damage_files f;
    uint64_t most = 0;
    size_t at = 0;
    damage_find(&f, store, shard);
    for (size_t i = 0; i < f.count; i++) {
        weir_file *file;
        if (weir_file_open(f.paths[i], WEIR_FILE_READ, &file)) continue; /* merged meanwhile */
        if (weir_file_length(file) > most) {
            most = weir_file_length(file);
            at = i;
        }
        assert_ok(weir_file_close(file));
    }
    assert_true(most > 0);
    assert_true(damage_flip(f.paths[at], most / 2, 2));
}

static inline bool damage_never_wait(void *context, uint64_t bytes) {
    (void)context, (void)bytes;
    return true;
}

static inline bool damage_beside(const char *store, uint32_t shard, const char *suffix) {
    char name[300];
    snprintf(name, sizeof name, "%s/shard-%03u%s", store, shard, suffix);
    return weir_path_exists(weir_test_path(name));
}

#endif /* WEIR_TEST_DAMAGE_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grow_limit.c - what no read of a cold store can be faster than: one read of a block's length, at any place of its
 * sorted files; out of the page cache, as long as that has room for them. It becomes slower itself as the files grow,
 * because less of them, and of what the kernel knows of them, lies in the processor's caches.
 */
#include <stdio.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/clock.h>
#include <weir/store/base/file.h>
#include <weir/store/base/rng.h>

#include "grow_bench.h"

#define READ_BYTES 4181u /* of a block of payments, most often, and what stands behind it */
#define FILES_MAX  4096u

typedef struct limit_files {
    char folder[1024];
    weir_file *files[FILES_MAX];
    uint64_t begins[FILES_MAX + 1]; /* one behind the other */
    size_t count;
} limit_files;

static weir_err take_file(void *context, const char *name) {
    limit_files *l = context;
    char path[1200];
    size_t length = strlen(name);
    if (length < 5 || strcmp(name + length - 4, ".sst") != 0) return WEIR_OK;
    if (l->count == FILES_MAX) return WEIR_ERR(WEIR_ELIMIT, "more than %u files", FILES_MAX);
    snprintf(path, sizeof path, "%s/%s", l->folder, name);
    weir_err err = weir_file_open(path, WEIR_FILE_READ, &l->files[l->count]);
    if (err) return weir_err_is(err, WEIR_ENOTFOUND) ? WEIR_OK : err; /* merged away since it was listed */
    const uint64_t bytes = weir_file_length(l->files[l->count]);
    l->begins[l->count + 1] = l->begins[l->count] + bytes;
    l->count++;
    return WEIR_OK;
}

static weir_err read_anywhere(const limit_files *l, weir_rng *rng, double *took_us) {
    uint8_t bytes[READ_BYTES];
    const uint64_t place = weir_rng_below(rng, l->begins[l->count]);
    size_t at = 0, got;
    while (l->begins[at + 1] <= place)
        at++;
    const int64_t begin_ns = weir_clock_mono_ns(weir_clock_system());
    weir_err err = weir_file_read_at(l->files[at], place - l->begins[at], bytes, sizeof bytes, &got);
    *took_us = (double)(weir_clock_mono_ns(weir_clock_system()) - begin_ns) / 1000;
    return err;
}

weir_err weir_grow_limit(const char *store, uint32_t shards, uint32_t reads, grow_latency *latencyp) {
    weir_rng rng = weir_rng_stream(3, 0, 0);
    limit_files *l = weir_calloc(1, sizeof *l);
    double *took_us = weir_calloc(reads, sizeof *took_us);
    weir_err err = l && took_us ? WEIR_OK : WEIR_NOMEM("for %u reads", reads);
    for (uint32_t i = 0; !err && i < shards; i++) {
        snprintf(l->folder, sizeof l->folder, "%.1000s/shard-%03u", store, i);
        err = weir_folder_list(l->folder, take_file, l);
    }
    if (!err && l->begins[l->count] == 0) err = WEIR_ERR(WEIR_EDATA, "%s has no sorted files", store);
    for (uint32_t i = 0; !err && i < reads; i++)
        err = read_anywhere(l, &rng, &took_us[i]);
    if (!err) *latencyp = weir_grow_latency(took_us, reads);
    for (size_t i = 0; l && i < l->count; i++)
        (void)weir_file_close(l->files[i]); /* they were only read */
    weir_free(l);
    weir_free(took_us);
    return err;
}

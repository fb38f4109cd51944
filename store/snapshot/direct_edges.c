/* SPDX-License-Identifier: Apache-2.0 */
/*
 * direct_edges.c - the edges of an archive as lists of vertices, sorted once from each end.
 *
 * What is sorted is one number: the list's vertex, the time from the newest back, the neighbour, the row; each in as
 * many bits as it needs here. Without times and features that is 40 bits for a million vertices, one word an edge.
 */
#include "direct.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/file.h>

#include "sorter.h"

#define ENDS_TIME 2u /* of the plain columns */

typedef enum ends_field { ENDS_OWN, ENDS_AGE, ENDS_OTHER, ENDS_ROW, ENDS_FIELDS } ends_field;

/* Where each field stands, from the lowest bit of the lowest word on. */
typedef struct ends_key {
    uint32_t bits[ENDS_FIELDS], shift[ENDS_FIELDS], words;
} ends_key;

/* --- survey ------------------------------------------------------------------------------------------------------ */

static weir_err ends_read(weir_direct *d, uint64_t first) {
    const weir_archive *a = d->archive;
    weir_direct_block *b = &d->block;
    b->count = a->edges - first < WEIR_DIRECT_BLOCK ? (size_t)(a->edges - first) : WEIR_DIRECT_BLOCK;
    weir_err err = weir_npy_i64s(&a->src, a->path, first, b->count, b->src);
    if (!err) err = weir_npy_i64s(&a->dst, a->path, first, b->count, b->dst);
    if (!err) err = weir_direct_times(d, &d->edge_times, first, b->count, b->times_us);
    for (size_t i = 0; !err && i < b->count; i++) {
        if ((uint64_t)b->src[i] >= a->nodes) return weir_archive_wrong_end(a, b->src[i]);
        if ((uint64_t)b->dst[i] >= a->nodes) return weir_archive_wrong_end(a, b->dst[i]);
    }
    return err;
}

static void ends_see_put(weir_direct *d, int64_t row, int64_t time_us) {
    if (time_us < d->first_us[row]) d->first_us[row] = time_us;
}

weir_err weir_direct_survey_edges(weir_direct *d) {
    static const char *const plain[] = {"src", "dst", "timestamp"};
    weir_import_table *table = &d->import->edges;
    uint32_t index;
    bool any;
    weir_err err = weir_direct_columns(d, false, plain, &d->edge_members);
    if (!err && (table->columns[0].role == WEIR_IMPORT_SKIP || table->columns[1].role == WEIR_IMPORT_SKIP))
        err = WEIR_ERR(WEIR_EDATA, "%s has no columns 'src' and 'dst' but those that --skip leaves out",
                       d->archive->path);
    if (err || d->archive->edges == 0) return err;
    if (table->columns[ENDS_TIME].role != WEIR_IMPORT_SKIP) d->edge_times = d->archive->edge_times;
    err = weir_import_owner_of(table, "", "edge", &any, &index);
    for (uint32_t i = WEIR_DIRECT_PLAIN; !err && i < table->column_count; i++) {
        if (table->columns[i].role != WEIR_IMPORT_FEATURE) continue;
        err = weir_direct_see_numbers(d, d->edge_members[i], &any);
        if (any) table->owners[index].seen[i] = WEIR_IMPORT_NUMBERS;
    }
    return err;
}

weir_err weir_direct_see_edges(weir_direct *d) {
    weir_err err = WEIR_OK;
    d->oldest_edge_us = INT64_MAX;
    d->newest_edge_us = INT64_MIN;
    for (uint64_t first = 0; !err && first < d->archive->edges; first += WEIR_DIRECT_BLOCK) {
        err = ends_read(d, first);
        for (size_t i = 0; !err && i < d->block.count; i++) {
            int64_t time_us = d->block.times_us[i];
            if (time_us < d->oldest_edge_us) d->oldest_edge_us = time_us;
            if (time_us > d->newest_edge_us) d->newest_edge_us = time_us;
            ends_see_put(d, d->block.src[i], time_us);
            ends_see_put(d, d->block.dst[i], time_us);
            d->loops += d->block.src[i] == d->block.dst[i];
        }
    }
    if (d->newest_edge_us > d->newest_us) d->newest_us = d->newest_edge_us;
    return err;
}

/* --- a record ---------------------------------------------------------------------------------------------------- */

static uint32_t ends_bits_of(uint64_t most) {
    return most ? 64u - (uint32_t)__builtin_clzll(most) : 0;
}

static ends_key ends_key_of(const weir_direct *d) {
    const uint64_t most[ENDS_FIELDS] = {
        [ENDS_OWN] = d->archive->nodes - 1,
        [ENDS_AGE] = (uint64_t)d->newest_edge_us - (uint64_t)d->oldest_edge_us,
        [ENDS_OTHER] = d->archive->nodes - 1,
        [ENDS_ROW] = d->import->edges.owners[0].feature_count ? d->archive->edges - 1 : 0,
    };
    ends_key key = {.words = 1};
    uint32_t sum = 0;
    for (uint32_t field = ENDS_FIELDS; field-- > 0; sum += key.bits[field]) {
        key.bits[field] = ends_bits_of(most[field]);
        key.shift[field] = sum;
    }
    if (sum > 64) key.words = (sum + 63) / 64;
    WEIR_ASSERT(key.words <= WEIR_SORTER_WORDS_MAX);
    return key;
}

static void ends_put(const ends_key *key, ends_field field, uint64_t value, uint64_t *record) {
    uint32_t at = key->shift[field] % 64, word = key->words - 1 - key->shift[field] / 64;
    if (key->bits[field] == 0) return;
    record[word] |= value << at;
    if (at + key->bits[field] > 64) record[word - 1] |= value >> (64 - at);
}

static uint64_t ends_get(const ends_key *key, ends_field field, const uint64_t *record) {
    uint32_t at = key->shift[field] % 64, word = key->words - 1 - key->shift[field] / 64;
    if (key->bits[field] == 0) return 0;
    uint64_t value = record[word] >> at;
    if (at + key->bits[field] > 64) value |= record[word - 1] << (64 - at);
    return key->bits[field] == 64 ? value : value & (((uint64_t)1 << key->bits[field]) - 1);
}

static weir_err ends_add(const weir_direct *d, const ends_key *key, weir_sorter *sorter, int64_t own, int64_t other,
                         int64_t time_us, uint64_t row) {
    uint64_t record[WEIR_SORTER_WORDS_MAX] = {0};
    ends_put(key, ENDS_OWN, d->vertex_of[own], record);
    ends_put(key, ENDS_AGE, (uint64_t)d->newest_edge_us - (uint64_t)time_us, record);
    ends_put(key, ENDS_OTHER, d->vertex_of[other], record);
    ends_put(key, ENDS_ROW, row, record);
    return weir_sorter_add(sorter, record, 1);
}

/* Both ways round where edges have no direction; a loop stands once. */
static weir_err ends_add_all(weir_direct *d, const ends_key *key, weir_direction direction, weir_sorter *sorter) {
    weir_err err = WEIR_OK;
    for (uint64_t first = 0; !err && first < d->archive->edges; first += WEIR_DIRECT_BLOCK) {
        err = ends_read(d, first);
        const weir_direct_block *b = &d->block;
        for (size_t i = 0; !err && i < b->count; i++) {
            int64_t own = direction == WEIR_OUT ? b->src[i] : b->dst[i], other = b->src[i] + b->dst[i] - own;
            err = ends_add(d, key, sorter, own, other, b->times_us[i], first + i);
            if (!err && d->import->opts->undirected && own != other)
                err = ends_add(d, key, sorter, other, own, b->times_us[i], first + i);
        }
    }
    return err ? err : weir_sorter_end(sorter);
}

/* --- lists ------------------------------------------------------------------------------------------------------- */

typedef struct ends_files {
    weir_npy_writer *indptr, *neighbors, *times; /* times NULL: all are 0 */
    weir_npy_writer **features;
    uint64_t lists; /* that have begun */
} ends_files;

static weir_err ends_open(const weir_direct *d, const char *folder, ends_files *f) {
    const weir_import_owner *owner = d->import->edges.owners;
    uint64_t edges = d->draft.directions[WEIR_OUT].edges;
    char path[WEIR_DRAFT_PATH_MAX];
    weir_err err = weir_draft_path(&d->draft, path, "%s", folder);
    if (!err) err = weir_folder_create(path);
    f->features = weir_calloc(owner->feature_count + 1, sizeof *f->features);
    if (!err && !f->features) err = WEIR_NOMEM("for the edges of an archive");
    if (!err)
        err = weir_draft_array(&d->draft, WEIR_NPY_I64, d->archive->nodes + 1, 0, &f->indptr, "%s/indptr.npy", folder);
    if (!err) err = weir_draft_array(&d->draft, WEIR_NPY_I64, edges, 0, &f->neighbors, "%s/neighbors.npy", folder);
    if (!err && weir_draft_has_times(&d->draft, 0))
        err = weir_draft_array(&d->draft, WEIR_NPY_I64, edges, 0, &f->times, "%s/times.npy", folder);
    for (uint32_t i = 0; !err && i < owner->feature_count; i++)
        err = weir_draft_array(&d->draft, WEIR_NPY_F32, edges, 0, &f->features[i], "%s/feature.%s.npy", folder,
                               d->import->edges.columns[owner->features[i]].name);
    return err;
}

static weir_err ends_close(const weir_direct *d, ends_files *f, weir_err err) {
    for (uint32_t i = 0; f->features && i < d->import->edges.owners[0].feature_count; i++)
        err = weir_npy_writer_end(f->features[i], err);
    weir_free(f->features);
    err = weir_npy_writer_end(f->indptr, err);
    err = weir_npy_writer_end(f->neighbors, err);
    return weir_npy_writer_end(f->times, err);
}

static weir_err ends_write(const weir_direct *d, const ends_key *key, ends_files *f, const uint64_t *record) {
    const weir_import_owner *owner = d->import->edges.owners;
    uint64_t own = ends_get(key, ENDS_OWN, record), row = ends_get(key, ENDS_ROW, record);
    weir_err err = WEIR_OK;
    for (; !err && f->lists <= own; f->lists++)
        err = weir_npy_write_i64(f->indptr, (int64_t)weir_npy_written(f->neighbors));
    if (!err) err = weir_npy_write_i64(f->neighbors, (int64_t)ends_get(key, ENDS_OTHER, record));
    if (!err && f->times)
        err = weir_npy_write_i64(f->times, (int64_t)((uint64_t)d->newest_edge_us - ends_get(key, ENDS_AGE, record)));
    for (uint32_t i = 0; !err && i < owner->feature_count; i++) {
        const weir_archive_member *m = d->edge_members[owner->features[i]];
        float number = (float)weir_npy_f64(&m->array, row);
        if (isnan(number)) number = NAN;
        err = weir_npy_write(f->features[i], &number, 1);
    }
    return err;
}

static weir_err ends_write_direction(weir_direct *d, const ends_key *key, weir_direction direction) {
    ends_files f = {.lists = 0};
    weir_sorter *sorter = NULL;
    const uint64_t *records;
    size_t count = 1;
    char folder[512];
    snprintf(folder, sizeof folder, "relations/%s/%s", d->import->edges.owners[0].name,
             direction == WEIR_OUT ? "out" : "in");
    weir_err err = ends_open(d, folder, &f);
    if (!err)
        err = weir_sorter_open(d->folder, key->words, d->draft.directions[direction].edges, WEIR_DIRECT_SORT, &sorter);
    if (!err) err = ends_add_all(d, key, direction, sorter);
    while (!err && count > 0) {
        err = weir_sorter_next(sorter, &records, &count);
        for (size_t i = 0; !err && i < count; i++)
            err = ends_write(d, key, &f, records + i * key->words);
    }
    weir_sorter_close(sorter);
    for (; !err && f.lists <= d->archive->nodes; f.lists++)
        err = weir_npy_write_i64(f.indptr, (int64_t)weir_npy_written(f.neighbors));
    return ends_close(d, &f, err);
}

weir_err weir_direct_write_edges(weir_direct *d) {
    uint64_t edges = d->archive->edges;
    if (edges == 0) return WEIR_OK; /* then there is no relation */
    if (d->import->opts->undirected) edges += edges - d->loops;
    const weir_draft_direction all = {.edges = edges, .oldest_us = d->oldest_edge_us, .newest_us = d->newest_edge_us};
    d->draft.directions[WEIR_OUT] = d->draft.directions[WEIR_IN] = all;
    d->draft.stats.edges = edges;
    const ends_key key = ends_key_of(d);
    weir_err err = ends_write_direction(d, &key, WEIR_OUT);
    return err ? err : ends_write_direction(d, &key, WEIR_IN);
}

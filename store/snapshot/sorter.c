/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sorter.c - runs by radix, then a merge.
 *
 *   add ──► memory ──(full)──► sorted ──► run.0, run.1, …     in two halves: a pass moves all from one to the other
 *   next ◄── memory, if it was never full, else the least of the runs' first records, in a heap
 */
#include "sorter.h"

#include <stdio.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/file.h>

#define DIGITS       256u
#define BLOCK        1024u /* records that a merge gives at a time */
#define MEMORY_LEAST ((size_t)64 << 10)

/* A run that is being read. */
typedef struct sorter_run {
    weir_file *file;
    uint64_t offset; /* of what is read next, in bytes */
    uint64_t *records;
    size_t at, count, room; /* in records */
} sorter_run;

struct weir_sorter {
    char *folder;
    uint32_t words;
    size_t memory_bytes, room, count; /* of records, in each half */
    uint64_t *half, *other;
    size_t given;
    sorter_run *runs;
    uint32_t run_count, *heap, heap_count; /* the heap holds runs, that with the least record at the top */
    uint64_t *block;
};

weir_err weir_sorter_open(const char *folder, uint32_t words, uint64_t records, size_t memory_bytes,
                          weir_sorter **sorterp) {
    WEIR_ASSERT(words >= 1 && words <= WEIR_SORTER_WORDS_MAX && memory_bytes >= MEMORY_LEAST);
    *sorterp = NULL;
    weir_sorter *s = weir_calloc(1, sizeof *s);
    if (!s) return WEIR_NOMEM("for sorting");
    s->words = words;
    s->memory_bytes = memory_bytes;
    s->room = memory_bytes / 2 / (words * sizeof *s->half);
    if (records < s->room) s->room = records ? (size_t)records : 1;
    const size_t bytes = s->room * words * sizeof *s->half;
    s->folder = weir_strdup(folder);
    s->half = weir_large_alloc(bytes); /* a pass writes to 256 places at a time */
    s->other = weir_large_alloc(bytes);
    if (!s->folder || !s->half || !s->other) {
        weir_sorter_close(s);
        return WEIR_NOMEM("for sorting %llu records", (unsigned long long)records);
    }
    *sorterp = s;
    return WEIR_OK;
}

static weir_err sorter_run_path(const weir_sorter *s, uint32_t run, char path[4096]) {
    int length = snprintf(path, 4096, "%s/run.%u", s->folder, run);
    if (length > 0 && length < 4096) return WEIR_OK;
    return WEIR_ERR(WEIR_ELIMIT, "the path %.64s… is too long", s->folder);
}

void weir_sorter_close(weir_sorter *s) {
    char path[4096];
    if (!s) return;
    for (uint32_t i = 0; i < s->run_count; i++) { /* what stays goes with the folder */
        weir_file_close(s->runs[i].file);
        weir_free(s->runs[i].records);
        if (!sorter_run_path(s, i, path) && weir_path_exists(path)) weir_file_remove(path);
    }
    weir_free(s->runs);
    weir_free(s->heap);
    weir_free(s->block);
    weir_free(s->half);
    weir_free(s->other);
    weir_free(s->folder);
    weir_free(s);
}

/* --- by radix ---------------------------------------------------------------------------------------------------- */

/* To the other half, in the order of one byte; those with the same byte stay in theirs. Inlined for each `words`. */
static inline __attribute__((always_inline)) void sorter_pass(const uint64_t *from, uint64_t *to, size_t count,
                                                              uint32_t words, uint32_t word, uint32_t shift,
                                                              size_t *places) {
    for (size_t i = 0; i < count; i++, from += words) {
        uint64_t *at = to + words * places[from[word] >> shift & (DIGITS - 1)]++;
        for (uint32_t w = 0; w < words; w++)
            at[w] = from[w];
    }
}

static void sorter_sort_by(weir_sorter *s, uint32_t word, uint32_t shift, size_t *places) {
    switch (s->words) {
    case 1:
        sorter_pass(s->half, s->other, s->count, 1, 0, shift, places);
        break;
    case 2:
        sorter_pass(s->half, s->other, s->count, 2, word, shift, places);
        break;
    case 3:
        sorter_pass(s->half, s->other, s->count, 3, word, shift, places);
        break;
    default:
        sorter_pass(s->half, s->other, s->count, 4, word, shift, places);
    }
    uint64_t *sorted = s->other;
    s->other = s->half;
    s->half = sorted;
}

/* Bytes in which all agree need no pass. */
static void sorter_sort(weir_sorter *s) {
    for (uint32_t word = s->words; word-- > 0;) {
        size_t counts[sizeof(uint64_t)][DIGITS] = {{0}};
        for (size_t i = 0; i < s->count; i++) {
            uint64_t value = s->half[i * s->words + word];
            for (uint32_t byte = 0; byte < sizeof value; byte++, value >>= 8)
                counts[byte][value & (DIGITS - 1)]++;
        }
        for (uint32_t byte = 0; byte < sizeof(uint64_t); byte++) {
            size_t places[DIGITS], sum = 0, most = 0;
            for (uint32_t digit = 0; digit < DIGITS; digit++) {
                places[digit] = sum;
                sum += counts[byte][digit];
                if (counts[byte][digit] > most) most = counts[byte][digit];
            }
            WEIR_ASSERT(sum == s->count);
            if (most < s->count) sorter_sort_by(s, word, 8 * byte, places);
        }
    }
}

/* --- runs -------------------------------------------------------------------------------------------------------- */

static weir_err sorter_put_run(weir_sorter *s) {
    char path[4096];
    if (s->run_count == WEIR_SORTER_RUNS_MAX)
        return WEIR_ERR(WEIR_ELIMIT, "more is to be sorted than %u runs hold", WEIR_SORTER_RUNS_MAX);
    sorter_run *grown = weir_realloc_array(s->runs, s->run_count + 1, sizeof *grown);
    if (!grown) return WEIR_NOMEM("for sorting");
    s->runs = grown;
    sorter_run *run = &s->runs[s->run_count];
    *run = (sorter_run){.file = NULL};
    weir_err err = sorter_run_path(s, s->run_count, path);
    if (!err) err = weir_file_open(path, WEIR_FILE_CREATE, &run->file);
    if (err) return err;
    s->run_count++;
    sorter_sort(s);
    err = weir_file_append(run->file, s->half, s->count * s->words * sizeof *s->half);
    s->count = 0;
    return err;
}

weir_err weir_sorter_add(weir_sorter *s, const uint64_t *records, size_t count) {
    weir_err err = WEIR_OK;
    while (!err && count > 0) {
        if (s->count == s->room) err = sorter_put_run(s);
        if (err) break;
        size_t part = s->room - s->count < count ? s->room - s->count : count;
        memcpy(s->half + s->count * s->words, records, part * s->words * sizeof *records);
        s->count += part;
        records += part * s->words;
        count -= part;
    }
    return err;
}

static weir_err sorter_run_fill(const weir_sorter *s, sorter_run *run) {
    size_t size = s->words * sizeof *run->records, got;
    weir_err err = weir_file_read_at(run->file, run->offset, run->records, run->room * size, &got);
    run->at = 0;
    run->count = err ? 0 : got / size;
    run->offset += got;
    return err;
}

/* --- the merge --------------------------------------------------------------------------------------------------- */

static bool sorter_is_less(const weir_sorter *s, uint32_t a, uint32_t b) {
    const sorter_run *x = &s->runs[a], *y = &s->runs[b];
    const uint64_t *left = x->records + x->at * s->words, *right = y->records + y->at * s->words;
    for (uint32_t w = 0; w < s->words; w++) {
        if (left[w] != right[w]) return left[w] < right[w];
    }
    return false;
}

static void sorter_sink(weir_sorter *s, uint32_t at) {
    for (uint32_t child; (child = 2 * at + 1) < s->heap_count; at = child) {
        if (child + 1 < s->heap_count && sorter_is_less(s, s->heap[child + 1], s->heap[child])) child++;
        if (!sorter_is_less(s, s->heap[child], s->heap[at])) break;
        uint32_t run = s->heap[at];
        s->heap[at] = s->heap[child];
        s->heap[child] = run;
    }
}

weir_err weir_sorter_end(weir_sorter *s) {
    if (s->run_count == 0) {
        sorter_sort(s);
        return WEIR_OK;
    }
    weir_err err = s->count ? sorter_put_run(s) : WEIR_OK;
    if (err) return err;
    weir_free(s->half);
    weir_free(s->other);
    s->half = s->other = NULL;
    size_t size = s->words * sizeof *s->half, room = s->memory_bytes / s->run_count / size;
    s->heap = weir_calloc(s->run_count, sizeof *s->heap);
    s->block = weir_calloc(BLOCK, size);
    if (!s->heap || !s->block) return WEIR_NOMEM("for sorting");
    for (uint32_t i = 0; !err && i < s->run_count; i++) {
        s->runs[i].room = room > BLOCK ? room : BLOCK;
        s->runs[i].records = weir_calloc(s->runs[i].room, size);
        err = s->runs[i].records ? sorter_run_fill(s, &s->runs[i]) : WEIR_NOMEM("for sorting");
        s->heap[s->heap_count++] = i;
    }
    for (uint32_t i = s->heap_count; !err && i-- > 0;)
        sorter_sink(s, i);
    return err;
}

weir_err weir_sorter_next(weir_sorter *s, const uint64_t **recordsp, size_t *countp) {
    weir_err err = WEIR_OK;
    *countp = 0;
    *recordsp = s->block;
    if (s->run_count == 0) {
        *recordsp = s->half;
        *countp = s->given ? 0 : s->count;
        s->given = s->count;
        return WEIR_OK;
    }
    while (!err && *countp < BLOCK && s->heap_count > 0) {
        sorter_run *run = &s->runs[s->heap[0]];
        memcpy(s->block + *countp * s->words, run->records + run->at * s->words, s->words * sizeof *s->block);
        ++*countp;
        if (++run->at == run->count) err = sorter_run_fill(s, run);
        if (run->count == 0) s->heap[0] = s->heap[--s->heap_count];
        sorter_sink(s, 0);
    }
    return err;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* filter.c - lines of 512 bits; a vertex has one line and in it one bit of each of the eight words. */
#include <stdatomic.h>

#include <weir/base/alloc.h>

#include "filter.h"

#define LINE_BYTES    64u
#define LINE_WORDS    8u
#define BITS_A_NAME   8u /* at capacity; at ten bits one in a hundred is wrong, here about three */
#define WORD_BIT_MASK 63u

typedef struct line {
    _Alignas(LINE_BYTES) atomic_uint_fast64_t words[LINE_WORDS];
} line;

struct weir_filter {
    line *lines;
    size_t count; /* a power of two */
};

weir_err weir_filter_open(size_t bytes_max, weir_filter **filterp) {
    *filterp = NULL;
    weir_filter *filter = weir_calloc(1, sizeof *filter);
    size_t count = 1;
    while (count * 2 * sizeof(line) <= bytes_max)
        count *= 2;
    line *lines = weir_aligned_alloc(LINE_BYTES, count * sizeof *lines);
    if (!filter || !lines) {
        weir_free(filter);
        weir_free(lines);
        return WEIR_ERR(WEIR_ENOMEM, "no memory for the filter of names");
    }
    for (size_t i = 0; i < count; i++) {
        for (size_t word = 0; word < LINE_WORDS; word++)
            atomic_init(&lines[i].words[word], 0);
    }
    *filter = (weir_filter){lines, count};
    *filterp = filter;
    return WEIR_OK;
}

void weir_filter_close(weir_filter *filter) {
    if (!filter) return;
    weir_free(filter->lines);
    weir_free(filter);
}

/* Ids are hashes, but those of tests are small. */
static uint64_t mix(weir_vertex vertex) {
    uint64_t h = weir_vertex_fold(vertex);
    h = (h ^ h >> 31) * 0xbf58476d1ce4e5b9ull;
    return (h ^ h >> 29) * 0x94d049bb133111ebull;
}

static line *line_of(const weir_filter *filter, uint64_t h) {
    return &filter->lines[(size_t)(h >> 8) & (filter->count - 1)];
}

/* Six bits of a second hash for each word: 48 of its 64. */
static uint64_t bits_of(uint64_t h) {
    return h * 0x9e3779b97f4a7c15ull >> 16;
}

void weir_filter_add(weir_filter *filter, weir_vertex vertex) {
    uint64_t h = mix(vertex), bits = bits_of(h);
    line *l = line_of(filter, h);
    for (size_t word = 0; word < LINE_WORDS; word++, bits >>= 6)
        atomic_fetch_or_explicit(&l->words[word], 1ull << (bits & WORD_BIT_MASK), memory_order_relaxed);
}

bool weir_filter_has(const weir_filter *filter, weir_vertex vertex) {
    uint64_t h = mix(vertex), bits = bits_of(h);
    line *l = line_of(filter, h);
    for (size_t word = 0; word < LINE_WORDS; word++, bits >>= 6) {
        uint64_t found = atomic_load_explicit(&l->words[word], memory_order_relaxed);
        if (!(found >> (bits & WORD_BIT_MASK) & 1)) return false;
    }
    return true;
}

void weir_filter_ahead(const weir_filter *filter, weir_vertex vertex) {
    __builtin_prefetch(line_of(filter, mix(vertex)));
}

size_t weir_filter_capacity(const weir_filter *filter) {
    return filter->count * LINE_BYTES * 8 / BITS_A_NAME;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deleted_filter.c - a Bloom filter in blocks of a cache line: a question waits for memory once at most.
 *
 * Ids are hashes, half of whose bits choose the block and the other half the bits in it; those of tests are small, so
 * both are mixed.
 */
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/hash.h>

#include "deleted_filter.h"

#define BLOCK_WORDS 8u
#define BLOCK_BYTES (BLOCK_WORDS * sizeof(uint64_t))
#define BITS_SET    6u /* of a block's 512 by each vertex: nine bits of the hash each */

struct weir_deleted_filter {
    atomic_bool any; /* changes once */
    size_t blocks;
    void *memory;
    atomic_uint_fast64_t *words; /* in it, where a cache line begins */
};

weir_err weir_deleted_filter_open(size_t bytes, weir_deleted_filter **filterp) {
    *filterp = NULL;
    weir_deleted_filter *filter = weir_calloc(1, sizeof *filter);
    if (!filter) return WEIR_NOMEM("for the filter of deleted vertices");
    filter->blocks = bytes < BLOCK_BYTES ? 1 : bytes / BLOCK_BYTES;
    filter->memory = weir_calloc(filter->blocks + 1, BLOCK_BYTES); /* pages that were never touched take none */
    if (!filter->memory) {
        weir_free(filter);
        return WEIR_NOMEM("for the filter of deleted vertices");
    }
    filter->words = (void *)(((uintptr_t)filter->memory + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES);
    *filterp = filter;
    return WEIR_OK;
}

void weir_deleted_filter_close(weir_deleted_filter *filter) {
    if (!filter) return;
    weir_free(filter->memory);
    weir_free(filter);
}

static atomic_uint_fast64_t *deleted_filter_block_of(const weir_deleted_filter *filter, weir_vertex vertex) {
    uint64_t hash = weir_hash_mix(weir_vertex_fold(vertex));
    size_t block = (size_t)((hash >> 32) * filter->blocks >> 32); /* fewer than 2^32, of 64 bytes */
    return filter->words + block * BLOCK_WORDS;
}

void weir_deleted_filter_add(weir_deleted_filter *filter, weir_vertex vertex) {
    atomic_uint_fast64_t *block = deleted_filter_block_of(filter, vertex);
    uint64_t bits = weir_hash_mix(weir_vertex_low(vertex) + 0x9e3779b97f4a7c15ull);
    for (unsigned i = 0; i < BITS_SET; i++, bits >>= 9)
        atomic_fetch_or_explicit(&block[bits >> 6 & 7], 1ull << (bits & 63), memory_order_relaxed);
    if (!atomic_load_explicit(&filter->any, memory_order_acquire))
        atomic_store_explicit(&filter->any, true, memory_order_release);
}

bool weir_deleted_filter_any(const weir_deleted_filter *filter) {
    return atomic_load_explicit(&filter->any, memory_order_acquire);
}

void weir_deleted_filter_ahead(const weir_deleted_filter *filter, weir_vertex vertex) {
    __builtin_prefetch(deleted_filter_block_of(filter, vertex));
}

bool weir_deleted_filter_may_have(const weir_deleted_filter *filter, weir_vertex vertex) {
    if (!weir_deleted_filter_any(filter)) return false;
    const atomic_uint_fast64_t *block = deleted_filter_block_of(filter, vertex);
    uint64_t bits = weir_hash_mix(weir_vertex_low(vertex) + 0x9e3779b97f4a7c15ull);
    for (unsigned i = 0; i < BITS_SET; i++, bits >>= 9)
        if (!(atomic_load_explicit(&block[bits >> 6 & 7], memory_order_relaxed) >> (bits & 63) & 1)) return false;
    return true;
}

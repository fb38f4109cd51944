/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alloc.h - the memory of Weir's C goes through here, but for what is mapped.
 *
 * So that a test can fail the N-th allocation for every N and see that nothing leaks, and so that a running server can
 * say what it holds. Of our C only alloc.c calls malloc and free, and engine/unfailing.c, which stands where RocksDB
 * does; tests/lint/symbols checks it. Counters are atomics, mostly with one writer each.  Every function is [any].
 */
#ifndef WEIR_STORE_BASE_ALLOC_H
#define WEIR_STORE_BASE_ALLOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* NULL when out of memory or when a test says so; size 0 gives a unique pointer. Free with weir_free. */
void *weir_malloc(size_t size) __attribute__((malloc, warn_unused_result));
/* Zeroed; refuses a product that overflows. */
void *weir_calloc(size_t count, size_t size) __attribute__((malloc, warn_unused_result));
/* As realloc: on failure the old block stays. Refuses an overflowing product. */
void *weir_realloc_array(void *block, size_t count, size_t size) __attribute__((warn_unused_result));
/* Room for one more behind so many items: where there is none, an array with a capacity becomes twice as long.
 * false: no memory; it is as it was. */
#define WEIR_GROW(array, capacity, count) weir_grow(&(array), &(capacity), (count), sizeof *(array))
bool weir_grow(void *arrayp, size_t *capacityp, size_t count, size_t item_bytes) __attribute__((warn_unused_result));
/* alignment: a power of two, at least sizeof(void *). */
void *weir_aligned_alloc(size_t alignment, size_t size) __attribute__((malloc, warn_unused_result));
#define WEIR_LARGE_PAGE ((size_t)2 << 20)
/* For arrays that are read at random: from 4 MiB on in large pages, of 2 MiB, where the system has them, since a core
 * remembers where only some thousand pages are. Smaller ones are aligned to 64 bytes: rounding up would waste them. */
void *weir_large_alloc(size_t size) __attribute__((malloc, warn_unused_result));
/* For an array with room for the worst case, of which only what is written takes memory, in small pages at first. What
 * it holds in its first `to` bytes moves into large pages, those that it fills but for an eighth; the first `from`
 * bytes have moved already. Where the system cannot, nothing moves. */
void *weir_sparse_alloc(size_t size) __attribute__((malloc, warn_unused_result));
void weir_sparse_settle(void *array, size_t from, size_t to);
char *weir_strdup(const char *text) __attribute__((malloc, warn_unused_result));
char *weir_strndup(const char *text, size_t length) __attribute__((malloc, warn_unused_result));
/* NULL is allowed. */
void weir_free(void *block);

/* From now on a large block (1 MiB and more) that glibc had no room for goes back to the system as soon as it is freed:
 * it would keep it for the next, in pieces that the next does not fit into. For a process whose memory has a bound. */
void weir_alloc_return_large(void);

typedef struct weir_alloc_stats {
    uint64_t live_blocks; /* gauge:   allocated and not yet freed  */
    uint64_t live_bytes;  /* gauge:   as the allocator rounds them */
    uint64_t allocations; /* counter: since the process began      */
} weir_alloc_stats;

void weir_alloc_stats_get(weir_alloc_stats *statsp);

/* Tests: the nth allocation from now on returns NULL (1 is the next), once; 0 disarms. */
void weir_alloc_fail_nth(uint64_t nth);
/* Tests: 1 if the armed failure has happened since weir_alloc_fail_nth. */
int weir_alloc_failed(void);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_STORE_BASE_ALLOC_H */

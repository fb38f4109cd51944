/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alloc.c - the allocator's wrapper, its counters, and the failure that a test arms.
 *
 * Two locked additions per call would cost as much as the allocation itself. So each thread claims one of STRIPES
 * sets of counters and is then their only writer, with plain loads and stores; a thread that finds none free, or that
 * is past its end, shares set 0 and adds with locked instructions. A block may be freed by another thread than made
 * it: one set may then go below zero, but the sum, taken modulo 2^64, is right.
 */
#include <weir/store/base/alloc.h>

#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <weir/store/base/assert.h>

#define STRIPES 64u
/* glibc would raise it with each such block that is freed. Not less: libraries that forget to look at what malloc gave
 * them live, when memory is short, by the smaller blocks that it keeps. */
#define LARGE      (1 << 20)
#define CACHE_LINE 64
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* since Linux 6.1; the C library does not know it yet */
#endif
#define CAPACITY_MIN 16u

typedef struct alloc_stripe {
    _Alignas(CACHE_LINE) _Atomic uint64_t allocated;
    _Atomic uint64_t freed;
    _Atomic uint64_t bytes;
    atomic_bool claimed;
} alloc_stripe;

static alloc_stripe stripes[STRIPES];
#define SHARED (&stripes[0])

static _Thread_local alloc_stripe *stripe_here; /* NULL before the first call of the thread */
static pthread_once_t stripe_once = PTHREAD_ONCE_INIT;
static pthread_key_t stripe_key;

/* --- counters ----------------------------------------------------------------------------------------------- */

static void stripe_release(void *claimed) {
    alloc_stripe *stripe = claimed;
    stripe_here = SHARED; /* destructors of others may still free */
    atomic_store_explicit(&stripe->claimed, false, memory_order_release);
}

static void stripe_key_make(void) {
    WEIR_ASSERT(pthread_key_create(&stripe_key, stripe_release) == 0);
}

__attribute__((noinline, cold)) static alloc_stripe *stripe_claim(void) {
    pthread_once(&stripe_once, stripe_key_make);
    stripe_here = SHARED;
    for (size_t i = 1; i < STRIPES && stripe_here == SHARED; i++) {
        bool claimed = false;
        if (atomic_compare_exchange_strong_explicit(&stripes[i].claimed, &claimed, true, memory_order_acquire,
                                                    memory_order_relaxed)) {
            stripe_here = &stripes[i];
        }
    }
    if (stripe_here != SHARED && pthread_setspecific(stripe_key, stripe_here) != 0) stripe_release(stripe_here);
    return stripe_here;
}

static void stripe_add(alloc_stripe *stripe, _Atomic uint64_t *counter, uint64_t delta) {
    if (stripe == SHARED) {
        atomic_fetch_add_explicit(counter, delta, memory_order_release);
    } else {
        uint64_t now = atomic_load_explicit(counter, memory_order_relaxed);
        atomic_store_explicit(counter, now + delta, memory_order_release);
    }
}

static void *alloc_count_in(void *block) {
    if (!block) return NULL;
    alloc_stripe *stripe = stripe_here ? stripe_here : stripe_claim();
    stripe_add(stripe, &stripe->allocated, 1);
    stripe_add(stripe, &stripe->bytes, malloc_usable_size(block));
    return block;
}

static void alloc_count_out(size_t bytes) {
    alloc_stripe *stripe = stripe_here ? stripe_here : stripe_claim();
    stripe_add(stripe, &stripe->freed, 1);
    stripe_add(stripe, &stripe->bytes, 0 - (uint64_t)bytes);
}

/* Frees are read first, and counted with release: who sees a block's end sees its birth, so the gauge is never
 * negative. */
void weir_alloc_stats_get(weir_alloc_stats *statsp) {
    uint64_t freed = 0, allocated = 0, bytes = 0;
    for (size_t i = 0; i < STRIPES; i++)
        freed += atomic_load_explicit(&stripes[i].freed, memory_order_acquire);
    for (size_t i = 0; i < STRIPES; i++) {
        allocated += atomic_load_explicit(&stripes[i].allocated, memory_order_relaxed);
        bytes += atomic_load_explicit(&stripes[i].bytes, memory_order_relaxed);
    }
    *statsp = (weir_alloc_stats){.live_blocks = allocated - freed, .live_bytes = bytes, .allocations = allocated};
}

void weir_alloc_return_large(void) {
    (void)mallopt(M_MMAP_THRESHOLD, LARGE); /* an allocator that has no such setting keeps to its own ways */
}

/* --- the armed failure -------------------------------------------------------------------------------------- */

static _Atomic uint64_t until_failure; /* 0: disarmed */
static atomic_bool failure_happened;

void weir_alloc_fail_nth(uint64_t nth) {
    atomic_store(&failure_happened, false);
    atomic_store(&until_failure, nth);
}

int weir_alloc_failed(void) {
    return atomic_load(&failure_happened);
}

__attribute__((noinline, cold)) static bool failure_count_down(void) {
    uint64_t left = atomic_load(&until_failure);
    while (left > 0 && !atomic_compare_exchange_weak(&until_failure, &left, left - 1)) {
    }
    if (left == 1) atomic_store(&failure_happened, true);
    return left == 1;
}

static bool alloc_must_fail(void) {
    return __builtin_expect(atomic_load_explicit(&until_failure, memory_order_relaxed) != 0, 0) && failure_count_down();
}

/* --- the wrapper -------------------------------------------------------------------------------------------- */

/* malloc(0) may be NULL, which would read as out of memory. */
static size_t alloc_size(size_t size) {
    return size ? size : 1;
}

void *weir_malloc(size_t size) {
    return alloc_must_fail() ? NULL : alloc_count_in(malloc(alloc_size(size)));
}

void *weir_calloc(size_t count, size_t size) {
    size_t total;
    if (alloc_must_fail() || __builtin_mul_overflow(count, size, &total)) return NULL;
    return alloc_count_in(calloc(alloc_size(total), 1));
}

void *weir_realloc_array(void *block, size_t count, size_t size) {
    size_t total;
    if (alloc_must_fail() || __builtin_mul_overflow(count, size, &total)) return NULL;
    size_t before = block ? malloc_usable_size(block) : 0;
    void *moved = realloc(block, alloc_size(total));
    alloc_count_in(moved);
    if (moved && block) alloc_count_out(before);
    return moved;
}

bool weir_grow(void *arrayp, size_t *capacityp, size_t count, size_t item_bytes) {
    void *array;
    WEIR_ASSERT(count <= *capacityp);
    if (count < *capacityp) return true;
    size_t capacity = *capacityp ? *capacityp * 2 : CAPACITY_MIN; /* of an array that is there: it cannot overflow */
    memcpy(&array, arrayp, sizeof array);
    array = weir_realloc_array(array, capacity, item_bytes);
    if (!array) return false;
    memcpy(arrayp, &array, sizeof array);
    *capacityp = capacity;
    return true;
}

void *weir_aligned_alloc(size_t alignment, size_t size) {
    WEIR_ASSERT(alignment >= sizeof(void *) && (alignment & (alignment - 1)) == 0);
    void *block = NULL;
    if (alloc_must_fail() || posix_memalign(&block, alignment, alloc_size(size)) != 0) return NULL;
    return alloc_count_in(block);
}

void *weir_large_alloc(size_t size) {
    const size_t alignment = size >= 2 * WEIR_LARGE_PAGE ? WEIR_LARGE_PAGE : CACHE_LINE;
    if (size > SIZE_MAX - alignment) return NULL;
    const size_t whole = (size + alignment - 1) / alignment * alignment;
    void *block = weir_aligned_alloc(alignment, whole);
    if (block && alignment == WEIR_LARGE_PAGE) madvise(block, whole, MADV_HUGEPAGE); /* advice only */
    return block;
}

void *weir_sparse_alloc(size_t size) {
    return weir_aligned_alloc(size < WEIR_LARGE_PAGE ? CACHE_LINE : WEIR_LARGE_PAGE, size);
}

void weir_sparse_settle(void *array, size_t from, size_t to) {
    const size_t page = WEIR_LARGE_PAGE, eighth = page / 8, at = (size_t)(uintptr_t)array;
    const size_t first = (at + page - eighth - 1) / page * page, settled = (at + from + eighth) / page * page;
    const size_t begin = first > settled ? first : settled, end = (at + to + eighth) / page * page;
    if (begin < end) madvise((uint8_t *)array + (ptrdiff_t)(begin - at), end - begin, MADV_COLLAPSE); /* advice only */
}

char *weir_strdup(const char *text) {
    return weir_strndup(text, strlen(text));
}

char *weir_strndup(const char *text, size_t length) {
    size_t bytes = strnlen(text, length);
    char *copy = weir_malloc(bytes + 1);
    if (!copy) return NULL;
    memcpy(copy, text, bytes);
    copy[bytes] = 0;
    return copy;
}

void weir_free(void *block) {
    if (!block) return;
    alloc_count_out(malloc_usable_size(block));
    free(block);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alloc.c - the only caller of malloc and free.
 *
 * Counters are striped by thread: one shared cache line that every allocation of every thread writes costs more than the
 * allocation. A block may be freed by another thread than took it, so a stripe alone can go below zero; the sum cannot.
 */
#include <malloc.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <weir/base/alloc.h>

#define STRIPES 16u

typedef struct stripe {
    _Alignas(64) atomic_int_fast64_t live_blocks;
    atomic_int_fast64_t live_bytes;
    atomic_uint_fast64_t allocations;
} stripe;

static stripe stripes[STRIPES];
static atomic_uint next_stripe;
static _Thread_local unsigned own_stripe; /* 0: none yet; else index + 1 */

static atomic_uint_fast64_t fail_countdown; /* 0: disarmed */
static atomic_bool failed;

static stripe *stripe_of_thread(void) {
    if (own_stripe == 0) {
        own_stripe = 1 + atomic_fetch_add_explicit(&next_stripe, 1, memory_order_relaxed) % STRIPES;
    }
    return &stripes[own_stripe - 1];
}

static bool must_fail(void) {
    uint_fast64_t left = atomic_load_explicit(&fail_countdown, memory_order_relaxed);
    while (left > 0) {
        if (atomic_compare_exchange_weak_explicit(&fail_countdown, &left, left - 1, memory_order_relaxed,
                                                  memory_order_relaxed)) {
            if (left == 1) atomic_store_explicit(&failed, true, memory_order_relaxed);
            return left == 1;
        }
    }
    return false;
}

static void *count_taken(void *block) {
    stripe *s = stripe_of_thread();
    if (!block) return NULL;
    atomic_fetch_add_explicit(&s->live_blocks, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&s->live_bytes, (int64_t)malloc_usable_size(block), memory_order_relaxed);
    atomic_fetch_add_explicit(&s->allocations, 1, memory_order_relaxed);
    return block;
}

static void count_given(void *block) {
    stripe *s = stripe_of_thread();
    atomic_fetch_sub_explicit(&s->live_blocks, 1, memory_order_relaxed);
    atomic_fetch_sub_explicit(&s->live_bytes, (int64_t)malloc_usable_size(block), memory_order_relaxed);
}

void *weir_malloc(size_t size) {
    return must_fail() ? NULL : count_taken(malloc(size ? size : 1));
}

void *weir_calloc(size_t count, size_t size) {
    if (must_fail()) return NULL;
    return count_taken(count && size ? calloc(count, size) : calloc(1, 1));
}

void *weir_realloc_array(void *block, size_t count, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes) || must_fail()) return NULL;
    size_t old_bytes = block ? malloc_usable_size(block) : 0;
    void *grown = realloc(block, bytes ? bytes : 1);
    if (!grown) return NULL;
    stripe *s = stripe_of_thread();
    atomic_fetch_add_explicit(&s->live_blocks, block ? 0 : 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&s->live_bytes, (int64_t)malloc_usable_size(grown) - (int64_t)old_bytes,
                              memory_order_relaxed);
    atomic_fetch_add_explicit(&s->allocations, 1, memory_order_relaxed);
    return grown;
}

void *weir_aligned_alloc(size_t alignment, size_t size) {
    void *block = NULL;
    if (must_fail() || posix_memalign(&block, alignment, size ? size : 1) != 0) return NULL;
    return count_taken(block);
}

char *weir_strndup(const char *text, size_t length) {
    size_t kept = strnlen(text, length);
    char *copy = weir_malloc(kept + 1);
    if (!copy) return NULL;
    memcpy(copy, text, kept);
    copy[kept] = '\0';
    return copy;
}

char *weir_strdup(const char *text) {
    return weir_strndup(text, strlen(text));
}

void weir_free(void *block) {
    if (!block) return;
    count_given(block);
    free(block);
}

void weir_alloc_stats_get(weir_alloc_stats *statsp) {
    int64_t blocks = 0, bytes = 0;
    uint64_t allocations = 0;
    for (size_t i = 0; i < STRIPES; i++) {
        blocks += atomic_load_explicit(&stripes[i].live_blocks, memory_order_relaxed);
        bytes += atomic_load_explicit(&stripes[i].live_bytes, memory_order_relaxed);
        allocations += atomic_load_explicit(&stripes[i].allocations, memory_order_relaxed);
    }
    /* While other threads allocate, the stripes are not read at one moment. */
    statsp->live_blocks = blocks > 0 ? (uint64_t)blocks : 0;
    statsp->live_bytes = bytes > 0 ? (uint64_t)bytes : 0;
    statsp->allocations = allocations;
}

void weir_alloc_fail_nth(uint64_t nth) {
    atomic_store_explicit(&failed, false, memory_order_relaxed);
    atomic_store_explicit(&fail_countdown, nth, memory_order_relaxed);
}

int weir_alloc_failed(void) {
    return atomic_load_explicit(&failed, memory_order_relaxed);
}

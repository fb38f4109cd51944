/* SPDX-License-Identifier: Apache-2.0 */
#include "weir_test.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/queue.h>
#include <weir/store/base/rng.h>
#include <weir/store/base/thread.h>

static weir_alloc_stats stats(void) {
    weir_alloc_stats now;
    weir_alloc_stats_get(&now);
    return now;
}

static void blocks_and_bytes_are_counted(void **state) {
    (void)state;
    weir_alloc_stats before = stats();
    char *a = weir_malloc(100), *b = weir_calloc(10, 10);
    weir_alloc_stats during = stats();
    assert_int_equal(during.live_blocks, before.live_blocks + 2);
    assert_int_equal(during.allocations, before.allocations + 2);
    assert_true(during.live_bytes >= before.live_bytes + 200);
    weir_free(a);
    weir_free(b);
    weir_free(NULL);
    weir_alloc_stats after = stats();
    assert_int_equal(after.live_blocks, before.live_blocks);
    assert_int_equal(after.live_bytes, before.live_bytes);
    assert_int_equal(after.allocations, before.allocations + 2);
}

static void size_zero_gives_a_pointer_of_its_own(void **state) {
    (void)state;
    void *blocks[] = {
        weir_malloc(0),           weir_malloc(0), weir_calloc(0, 8), weir_calloc(8, 0), weir_realloc_array(NULL, 0, 8),
        weir_aligned_alloc(64, 0)};
    enum { COUNT = sizeof blocks / sizeof blocks[0] };
    for (size_t i = 0; i < COUNT; i++) {
        assert_non_null(blocks[i]);
        for (size_t j = 0; j < i; j++)
            assert_ptr_not_equal(blocks[i], blocks[j]);
    }
    for (size_t i = 0; i < COUNT; i++)
        weir_free(blocks[i]);
}

static void calloc_is_zeroed_and_refuses_overflow(void **state) {
    (void)state;
    char *block = weir_calloc(1000, 7);
    assert_non_null(block);
    for (size_t i = 0; i < 7000; i++)
        assert_int_equal(block[i], 0);
    weir_free(block);
    assert_null(weir_calloc(SIZE_MAX / 8 + 1, 8));
}

static void realloc_keeps_content_and_on_failure_the_block(void **state) {
    (void)state;
    weir_alloc_stats before = stats();
    char *block = weir_realloc_array(NULL, 3, 4);
    assert_non_null(block);
    memcpy(block, "eleven char", 12);
    block = weir_realloc_array(block, 1000, 40);
    assert_non_null(block);
    assert_string_equal(block, "eleven char");
    assert_int_equal(stats().live_blocks, before.live_blocks + 1);
    assert_null(weir_realloc_array(block, SIZE_MAX / 40 + 1, 40));
    weir_alloc_fail_nth(1);
    assert_null(weir_realloc_array(block, 2000, 40));
    assert_string_equal(block, "eleven char");
    block = weir_realloc_array(block, 0, 40);
    assert_non_null(block);
    weir_free(block);
    assert_int_equal(stats().live_blocks, before.live_blocks);
    assert_int_equal(stats().live_bytes, before.live_bytes);
}

static void aligned_blocks_are_aligned(void **state) {
    (void)state;
    for (size_t alignment = sizeof(void *); alignment <= 65536; alignment *= 2) {
        void *block = weir_aligned_alloc(alignment, 3 * alignment / 2);
        assert_int_equal((uintptr_t)block % alignment, 0);
        memset(block, 1, 3 * alignment / 2);
        weir_free(block);
    }
}

static void large_blocks_have_their_size(void **state) {
    const size_t page = (size_t)2 << 20, sizes[] = {0, 1, 65, 2 * page - 1, 2 * page, 2 * page + 3, 5 * page};
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        uint8_t *block = weir_large_alloc(sizes[i]);
        assert_non_null(block);
        assert_int_equal((uintptr_t)block % (sizes[i] < 2 * page ? 64 : page), 0);
        memset(block, 1, sizes[i]);
        weir_free(block);
    }
    assert_null(weir_large_alloc(SIZE_MAX));
}

enum { MIB = 1 << 20, SMALL_PAGE = 4096, SPARSE = 32 * MIB };

/* Of [from, to), the pages that are in memory. */
static size_t resident(uint8_t *from, const uint8_t *to) {
    static unsigned char in[SPARSE / SMALL_PAGE];
    uint8_t *begin = from + (SMALL_PAGE - (uintptr_t)from % SMALL_PAGE) % SMALL_PAGE;
    const size_t pages = to > begin ? (size_t)(to - begin) / SMALL_PAGE : 0;
    size_t count = 0;
    assert_true(pages <= sizeof in && mincore(begin, pages * SMALL_PAGE, in) == 0);
    for (size_t i = 0; i < pages; i++)
        count += in[i] & 1;
    return count;
}

static uint8_t *sparse_map(void) {
    uint8_t *block = mmap(NULL, SPARSE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(block != MAP_FAILED);
    return block;
}

/* Whether or not the system has large pages to give, and gives them unasked. */
static void what_settles_stays_and_what_is_empty_takes_no_memory(void **state) {
    (void)state;
    weir_rng rng = weir_rng_stream(weir_test_seed(), 0, 0);
    for (unsigned round = 0; round < 20; round++) {
        uint8_t *block = sparse_map();
        size_t at = weir_rng_below(&rng, 3 * MIB), settled = 0, filled = 0;
        while (filled < 19 * MIB) {
            size_t more = weir_rng_below(&rng, 9 * MIB);
            for (size_t i = filled; i < filled + more; i++)
                block[at + i] = (uint8_t)(i * 7 + i / 251);
            filled += more;
            uint8_t *behind = block + at + filled + MIB / 4, *before = block + (at > MIB / 4 ? at - MIB / 4 : 0);
            const size_t had = resident(behind, block + SPARSE) + resident(block, before);
            weir_sparse_settle(block + at, settled, filled);
            settled = filled;
            assert_int_equal(resident(behind, block + SPARSE) + resident(block, before), had);
            for (size_t i = 0; i < filled; i += 97)
                assert_int_equal(block[at + i], (uint8_t)(i * 7 + i / 251));
        }
        munmap(block, SPARSE);
    }
}

/* A page that lacks a tenth is one of them, which brings the rest into memory; one that lacks half is not. */
static void what_fills_a_large_page_but_for_an_eighth_is_in_it(void **state) {
    (void)state;
    uint8_t *block = sparse_map(), *page = block + (WEIR_LARGE_PAGE - (uintptr_t)block % WEIR_LARGE_PAGE);
    const size_t tenth = WEIR_LARGE_PAGE / 10;
    memset(page, 1, 2 * WEIR_LARGE_PAGE - tenth);
    const bool unasked = resident(page, page + 2 * WEIR_LARGE_PAGE) == 2 * WEIR_LARGE_PAGE / SMALL_PAGE;
    if (unasked || madvise(page, WEIR_LARGE_PAGE, 25) != 0) { /* MADV_COLLAPSE */
        munmap(block, SPARSE);
        weir_test_skip("the system has no large pages to give, or gives them unasked");
    }
    weir_sparse_settle(page, 0, 2 * WEIR_LARGE_PAGE - tenth);
    assert_int_equal(resident(page, page + 2 * WEIR_LARGE_PAGE), 2 * WEIR_LARGE_PAGE / SMALL_PAGE);
    uint8_t *other = page + 4 * WEIR_LARGE_PAGE;
    memset(other, 1, WEIR_LARGE_PAGE / 2);
    weir_sparse_settle(other, 0, WEIR_LARGE_PAGE / 2);
    assert_int_equal(resident(other, other + WEIR_LARGE_PAGE), WEIR_LARGE_PAGE / 2 / SMALL_PAGE);
    munmap(block, SPARSE);
}

static void align_badly(void *alignment) {
    weir_free(weir_aligned_alloc(*(size_t *)alignment, 8));
}

static void alignment_that_is_none_dies(void **state) {
    (void)state;
    size_t small = sizeof(void *) / 2, crooked = 24;
    assert_dies(align_badly, &small, "alignment");
    assert_dies(align_badly, &crooked, "alignment");
}

static void strings_are_copied_to_their_end_or_the_limit(void **state) {
    (void)state;
    static const struct {
        size_t length;
        const char *copy;
    } rows[] = {{0, ""}, {1, "a"}, {2, "ab"}, {3, "abc"}, {4, "abc"}, {SIZE_MAX, "abc"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char *copy = weir_strndup("abc", rows[i].length);
        assert_string_equal(copy, rows[i].copy);
        weir_free(copy);
    }
    char *copy = weir_strdup("whole");
    assert_string_equal(copy, "whole");
    weir_free(copy);
}

static void nth_allocation_fails_once(void **state) {
    (void)state;
    for (uint64_t nth = 1; nth <= 5; nth++) {
        weir_alloc_fail_nth(nth);
        for (uint64_t i = 1; i <= 6; i++) {
            void *block = weir_malloc(1);
            assert_int_equal(block == NULL, i == nth);
            assert_int_equal(weir_alloc_failed(), i >= nth);
            weir_free(block);
        }
    }
    weir_alloc_fail_nth(1);
    weir_alloc_fail_nth(0);
    void *block = weir_malloc(1);
    assert_non_null(block);
    assert_int_equal(weir_alloc_failed(), 0);
    weir_free(block);
}

static void every_function_can_fail(void **state) {
    (void)state;
    weir_alloc_stats before = stats();
    for (int function = 0; function < 8; function++) {
        weir_alloc_fail_nth(1);
        void *block = function == 0   ? weir_malloc(8)
                      : function == 1 ? weir_calloc(1, 8)
                      : function == 2 ? weir_realloc_array(NULL, 1, 8)
                      : function == 3 ? weir_aligned_alloc(8, 8)
                      : function == 4 ? weir_strdup("x")
                      : function == 5 ? weir_large_alloc(8)
                      : function == 6 ? weir_sparse_alloc(8)
                                      : weir_strndup("x", 1);
        assert_null(block);
        assert_int_equal(weir_alloc_failed(), 1);
    }
    assert_int_equal(stats().allocations, before.allocations);
}

/* --- threads ------------------------------------------------------------------------------------------------ */

enum { THREADS = 150, STEPS = 10000 };
static pthread_barrier_t all_are_there;

static void allocate_into(void *context) {
    void **block = context;
    weir_free(weir_malloc(1)); /* from here on the thread has its set, or shares one */
    pthread_barrier_wait(&all_are_there);
    for (int i = 0; i < STEPS; i++)
        weir_free(weir_malloc((size_t)i % 500));
    *block = weir_malloc(1000);
}

/* More threads at once than there are sets of counters, each ended before its block is freed by another. */
static void blocks_outlive_their_threads(void **state) {
    (void)state;
    static void *blocks[THREADS];
    static weir_thread *threads[THREADS];
    weir_alloc_stats before = stats();
    assert_int_equal(pthread_barrier_init(&all_are_there, NULL, THREADS), 0);
    for (int i = 0; i < THREADS; i++)
        assert_ok(weir_thread_start("allocator", WEIR_ROLE_TEST, allocate_into, &blocks[i], &threads[i]));
    for (int i = 0; i < THREADS; i++)
        weir_thread_join(threads[i]);
    weir_alloc_stats during = stats();
    assert_int_equal(during.live_blocks, before.live_blocks + THREADS);
    assert_true(during.live_bytes >= before.live_bytes + 1000u * THREADS);
    assert_true(during.allocations >= before.allocations + (STEPS + 2u) * THREADS);
    for (int i = 0; i < THREADS; i++)
        weir_free(blocks[i]);
    assert_int_equal(stats().live_blocks, before.live_blocks);
    assert_int_equal(stats().live_bytes, before.live_bytes);
}

enum { HANDED_OVER = 20000 };

static void free_what_comes(void *queue) {
    void *blocks[16];
    size_t count;
    while (weir_queue_pop(queue, blocks, 16, WEIR_QUEUE_FOREVER, &count) == WEIR_OK)
        for (size_t i = 0; i < count; i++)
            weir_free(blocks[i]);
}

static atomic_bool watch;

static void watch_the_gauge(void *context) {
    uint64_t bound = *(uint64_t *)context;
    while (atomic_load(&watch))
        assert_in_range(stats().live_blocks, 0, bound);
}

/* The gauge is a difference of counters of several threads: read in the wrong order it would wrap below zero. */
static void gauge_is_never_negative(void **state) {
    (void)state;
    weir_queue *queue;
    weir_thread *freer, *watcher;
    assert_ok(weir_queue_open(4, sizeof(void *), &queue));
    uint64_t before = stats().live_blocks, bound = before + HANDED_OVER;
    atomic_store(&watch, true);
    assert_ok(weir_thread_start("freer", WEIR_ROLE_TEST, free_what_comes, queue, &freer));
    assert_ok(weir_thread_start("watcher", WEIR_ROLE_TEST, watch_the_gauge, &bound, &watcher));
    for (int i = 0; i < HANDED_OVER; i++) {
        void *block = weir_malloc(16);
        assert_ok(weir_queue_push(queue, &block, WEIR_QUEUE_FOREVER));
    }
    weir_queue_close(queue);
    weir_thread_join(freer);
    atomic_store(&watch, false);
    weir_thread_join(watcher);
    assert_int_equal(stats().live_blocks, before);
    weir_queue_free(queue);
}

static void an_array_grows_or_stays(void **state) {
    (void)state;
    uint32_t *numbers = NULL;
    size_t capacity = 0;
    for (size_t i = 0; i < 1000; i++) {
        assert_true(WEIR_GROW(numbers, capacity, i));
        assert_true(capacity > i);
        numbers[i] = (uint32_t)i;
    }
    const size_t before = capacity;
    weir_alloc_fail_nth(1);
    assert_false(WEIR_GROW(numbers, capacity, before));
    weir_alloc_fail_nth(0);
    assert_int_equal(capacity, before);
    for (size_t i = 0; i < 1000; i++)
        assert_int_equal(numbers[i], i);
    weir_free(numbers);
}

WEIR_TESTS(WEIR_CASE(an_array_grows_or_stays), WEIR_CASE(blocks_and_bytes_are_counted),
           WEIR_CASE(size_zero_gives_a_pointer_of_its_own), WEIR_CASE(calloc_is_zeroed_and_refuses_overflow),
           WEIR_CASE(realloc_keeps_content_and_on_failure_the_block), WEIR_CASE(aligned_blocks_are_aligned),
           WEIR_CASE(large_blocks_have_their_size), WEIR_CASE(what_settles_stays_and_what_is_empty_takes_no_memory),
           WEIR_CASE(what_fills_a_large_page_but_for_an_eighth_is_in_it), WEIR_CASE(alignment_that_is_none_dies),
           WEIR_CASE(strings_are_copied_to_their_end_or_the_limit), WEIR_CASE(nth_allocation_fails_once),
           WEIR_CASE(every_function_can_fail), WEIR_CASE(blocks_outlive_their_threads),
           WEIR_CASE(gauge_is_never_negative))

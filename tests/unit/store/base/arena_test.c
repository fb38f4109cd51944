/* SPDX-License-Identifier: Apache-2.0 */
#include "weir_test.h"

#include <stdio.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/arena.h>
#include <weir/store/base/rng.h>

static weir_arena *open_arena(size_t bytes_max) {
    weir_arena *arena;
    assert_ok(weir_arena_open(bytes_max, &arena));
    return arena;
}

static uint64_t live_blocks(void) {
    weir_alloc_stats stats;
    weir_alloc_stats_get(&stats);
    return stats.live_blocks;
}

static uint64_t allocations(void) {
    weir_alloc_stats stats;
    weir_alloc_stats_get(&stats);
    return stats.allocations;
}

static void limit_of_zero_is_refused(void **state) {
    (void)state;
    weir_arena *arena = (weir_arena *)&arena;
    assert_err(weir_arena_open(0, &arena), WEIR_EINVAL, "0 bytes");
    assert_null(arena);
    weir_arena_close(NULL);
}

/* What was written into the block with this number. */
static unsigned char mark_of(size_t block) {
    return (unsigned char)(block * 37 + 11);
}

static void a1_blocks_stay_where_and_what_they_are(void **state) {
    (void)state;
    enum { BLOCKS = 3000 };
    static unsigned char *blocks[BLOCKS];
    static size_t sizes[BLOCKS];
    weir_rng rng = weir_rng_stream(weir_test_seed(), 1, 0);
    weir_arena *arena = open_arena(64u << 20);
    for (int scope = 0; scope < 3; scope++) {
        for (size_t i = 0; i < BLOCKS; i++) {
            sizes[i] = weir_rng_below(&rng, i % 100 == 0 ? 100000 : 200);
            blocks[i] = weir_arena_alloc(arena, sizes[i]);
            assert_non_null(blocks[i]);
            memset(blocks[i], mark_of(i), sizes[i]);
        }
        for (size_t i = 0; i < BLOCKS; i++)
            for (size_t byte = 0; byte < sizes[i]; byte++)
                assert_int_equal(blocks[i][byte], mark_of(i));
        weir_arena_reset(arena);
    }
    weir_arena_close(arena);
}

static void a2_limit_and_one_past_it(void **state) {
    (void)state;
    static const size_t limits[] = {1, 2, 15, 16, 17, 1000, 4095, 4096, 4097, 100000};
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        weir_arena *arena = open_arena(limits[i]);
        for (int scope = 0; scope < 3; scope++) {
            assert_null(weir_arena_alloc(arena, limits[i] + 1));
            assert_non_null(weir_arena_alloc(arena, limits[i]));
            assert_int_equal(weir_arena_used(arena), limits[i]);
            assert_null(weir_arena_alloc(arena, 1));
            assert_null(weir_arena_alloc(arena, SIZE_MAX));
            weir_arena_reset(arena);
        }
        weir_arena_close(arena);
    }
}

/* The limit is reached exactly, whichever small steps lead there; what the kept chunk of an earlier scope was, is
 * no matter. */
static void a2_small_steps_reach_the_limit(void **state) {
    (void)state;
    enum { LIMIT = 16 * 4096 };
    weir_arena *arena = open_arena(LIMIT);
    for (int scope = 0; scope < 3; scope++) {
        for (size_t used = 0; used < LIMIT; used += 16)
            assert_non_null(weir_arena_alloc(arena, 16));
        assert_int_equal(weir_arena_used(arena), LIMIT);
        assert_null(weir_arena_alloc(arena, 1));
        weir_arena_reset(arena);
    }
    weir_arena_close(arena);
}

/* What reset keeps must not stand in the way of what the next scope asks for. */
static void a2_whole_limit_after_small_steps(void **state) {
    (void)state;
    enum { LIMIT = 100000 };
    weir_arena *arena = open_arena(LIMIT);
    for (int scope = 0; scope < 3; scope++) {
        while (weir_arena_alloc(arena, 64)) {
        }
        weir_arena_reset(arena);
        assert_null(weir_arena_alloc(arena, LIMIT + 1));
        assert_non_null(weir_arena_alloc(arena, LIMIT));
        weir_arena_reset(arena);
    }
    weir_arena_close(arena);
}

static void a2_used_never_passes_the_limit(void **state) {
    (void)state;
    weir_rng rng = weir_rng_stream(weir_test_seed(), 2, 0);
    for (uint64_t round = 0; round < weir_test_rounds(300); round++) {
        size_t limit = 1 + weir_rng_below(&rng, 50000), asked = 0;
        weir_arena *arena = open_arena(limit);
        for (int refused = 0; refused < 5;) {
            size_t size = weir_rng_below(&rng, 1 + limit / 4), alignment = (size_t)1 << weir_rng_below(&rng, 9);
            void *block = weir_arena_alloc_aligned(arena, alignment, size);
            refused += block == NULL;
            asked += block ? size : 0;
            assert_true(weir_arena_used(arena) >= asked && weir_arena_used(arena) <= limit);
        }
        weir_arena_close(arena);
    }
}

static void a3_reset_forgets_all(void **state) {
    (void)state;
    uint64_t before = live_blocks();
    weir_arena *arena = open_arena(1u << 20);
    assert_int_equal(weir_arena_used(arena), 0);
    while (weir_arena_alloc(arena, 1000)) {
    }
    assert_true(live_blocks() > before + 2);
    weir_arena_reset(arena);
    assert_int_equal(weir_arena_used(arena), 0);
    bool keeps_one = strcmp(weir_test_sanitizer(), "address") != 0;
    assert_int_equal(live_blocks(), before + 1 + keeps_one);
    weir_arena_reset(arena);
    weir_arena_close(arena);
    assert_int_equal(live_blocks(), before);
}

static void a3_reset_keeps_the_largest_chunk(void **state) {
    (void)state;
    if (strcmp(weir_test_sanitizer(), "address") == 0) weir_test_skip("an address sanitizer's arena keeps none");
    weir_arena *arena = open_arena(1u << 20);
    for (int i = 0; i < 700; i++) /* chunks of 4, 8, … 512 KiB: the last is not full */
        assert_non_null(weir_arena_alloc(arena, 1024));
    weir_arena_reset(arena);
    uint64_t before = allocations();
    for (int i = 0; i < 512; i++)
        assert_non_null(weir_arena_alloc(arena, 1024));
    assert_int_equal(allocations(), before);
    weir_arena_close(arena);
}

static void use_after_reset(void *context) {
    weir_arena *arena = context;
    volatile char *block = weir_arena_alloc(arena, 100);
    weir_arena_reset(arena);
    block[0] = 1;
}

static void a3_use_after_reset_is_seen(void **state) {
    (void)state;
    if (strcmp(weir_test_sanitizer(), "address") != 0) weir_test_skip("only an address sanitizer sees it");
    weir_arena *arena = open_arena(1000);
    assert_dies(use_after_reset, arena, "heap-use-after-free");
    weir_arena_close(arena);
}

static void blocks_are_aligned(void **state) {
    (void)state;
    weir_arena *arena = open_arena(16u << 20);
    for (size_t alignment = 1; alignment <= 4096; alignment *= 2) {
        assert_non_null(weir_arena_strndup(arena, "", 0)); /* one byte, to lose every alignment */
        assert_int_equal((uintptr_t)weir_arena_alloc(arena, 1) % _Alignof(max_align_t), 0);
        assert_non_null(weir_arena_strndup(arena, "", 0));
        assert_int_equal((uintptr_t)weir_arena_alloc_aligned(arena, alignment, 3) % alignment, 0);
    }
    assert_null(weir_arena_alloc_aligned(arena, 4096, SIZE_MAX - 100));
    for (size_t alignment = 32; alignment <= 4096; alignment *= 2) { /* each larger than any chunk before it */
        void *block = weir_arena_alloc_aligned(arena, alignment, 200 * alignment);
        assert_non_null(block);
        assert_int_equal((uintptr_t)block % alignment, 0);
    }
    weir_arena_close(arena);
}

static void align_badly(void *arena) {
    weir_arena_alloc_aligned(arena, 24, 8);
}

static void alignment_that_is_none_dies(void **state) {
    (void)state;
    weir_arena *arena = open_arena(1000);
    assert_dies(align_badly, arena, "alignment");
    weir_arena_close(arena);
}

static void size_zero_gives_a_pointer_of_its_own(void **state) {
    (void)state;
    weir_arena *arena = open_arena(1000);
    void *first = weir_arena_alloc(arena, 0), *second = weir_arena_calloc(arena, 0, 8);
    assert_non_null(first);
    assert_non_null(second);
    assert_ptr_not_equal(first, second);
    weir_arena_close(arena);
}

static void calloc_is_zeroed_and_refuses_overflow(void **state) {
    (void)state;
    weir_arena *arena = open_arena(10000);
    memset(weir_arena_alloc(arena, 8000), 0xff, 8000);
    weir_arena_reset(arena);
    const char *block = weir_arena_calloc(arena, 1000, 8);
    for (size_t i = 0; i < 8000; i++)
        assert_int_equal(block[i], 0);
    assert_null(weir_arena_calloc(arena, SIZE_MAX / 8 + 1, 8));
    weir_arena_close(arena);
}

static void strings_are_copied_and_printed(void **state) {
    (void)state;
    weir_arena *arena = open_arena(16);
    assert_string_equal(weir_arena_strndup(arena, "abcdef", 3), "abc");
    assert_string_equal(weir_arena_strndup(arena, "ab", 9), "ab");
    assert_int_equal(weir_arena_used(arena), 7);
    assert_null(weir_arena_printf(arena, "%d-%s", 1234, "wxyz"));
    assert_string_equal(weir_arena_printf(arena, "%d-%s", 1234, "xyz"), "1234-xyz");
    assert_null(weir_arena_strndup(arena, "", 0));
    weir_arena_close(arena);
}

static weir_err open_and_use(void *context) {
    (void)context;
    weir_arena *arena;
    weir_err err = weir_arena_open(100000, &arena);
    if (err) return err;
    for (size_t size = 1; !err && size < 40000; size *= 3)
        if (!weir_arena_alloc(arena, size)) err = WEIR_NOMEM("for %zu bytes", size);
    if (err && !weir_arena_alloc(arena, 1)) err = WEIR_ERR(WEIR_EINTERNAL, "unusable after a failed allocation");
    weir_arena_close(arena);
    return err;
}

static void fails_cleanly_at_every_allocation(void **state) {
    (void)state;
    weir_test_every_allocation(open_and_use, NULL);
}

/* "Ask for less" was said where there was no memory at all: who asks again with less is refused again. */
static void the_limit_and_want_of_memory_are_told_apart(void **state) {
    (void)state;
    weir_arena *arena;
    assert_ok(weir_arena_open(64 << 10, &arena));
    assert_null(weir_arena_alloc(arena, 65 << 10));
    assert_err(WEIR_ARENA_ERR(arena, "ask for less"), WEIR_ELIMIT, "ask for less");
    weir_alloc_fail_nth(1);
    assert_null(weir_arena_alloc(arena, 1000));
    assert_err(WEIR_ARENA_ERR(arena, "ask for less"), WEIR_ENOMEM, "the machine has no memory");
    weir_alloc_fail_nth(0);
    assert_non_null(weir_arena_alloc(arena, 1000));
    assert_err(WEIR_ARENA_ERR(arena, "ask for less"), WEIR_ENOMEM, ""); /* one of what was asked for is missing */
    weir_arena_reset(arena);
    assert_null(weir_arena_alloc(arena, 65 << 10));
    assert_err(WEIR_ARENA_ERR(arena, "ask for less"), WEIR_ELIMIT, "");
    weir_arena_close(arena);
}

WEIR_TESTS(WEIR_CASE(the_limit_and_want_of_memory_are_told_apart), WEIR_CASE(limit_of_zero_is_refused),
           WEIR_CASE(a1_blocks_stay_where_and_what_they_are), WEIR_CASE(a2_limit_and_one_past_it),
           WEIR_CASE(a2_small_steps_reach_the_limit), WEIR_CASE(a2_whole_limit_after_small_steps),
           WEIR_CASE(a2_used_never_passes_the_limit), WEIR_CASE(a3_reset_keeps_the_largest_chunk),
           WEIR_CASE(a3_reset_forgets_all), WEIR_CASE(a3_use_after_reset_is_seen), WEIR_CASE(blocks_are_aligned),
           WEIR_CASE(alignment_that_is_none_dies), WEIR_CASE(size_zero_gives_a_pointer_of_its_own),
           WEIR_CASE(calloc_is_zeroed_and_refuses_overflow), WEIR_CASE(strings_are_copied_and_printed),
           WEIR_CASE(fails_cleanly_at_every_allocation))

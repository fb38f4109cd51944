/* SPDX-License-Identifier: Apache-2.0 */
/*
 * merge_test.c - targets of many ranks, told some at a time, become one list: that of everything sorted at once. Times
 * and ids are drawn from few, so that many are equal; some ranks have none, and some nearly all.
 */
#include <stdlib.h>
#include <string.h>

#include <weir/store/base/rng.h>

#include "targets_private.h"
#include "weir_test.h"

#define RANKS_MAX   24u
#define TARGETS_MAX 600u
#define ROUNDS      60u

typedef struct entry {
    weir_target_told told;
    uint32_t rank;
} entry;

typedef struct world {
    uint32_t ranks;
    size_t room, count;
    uint64_t counts[RANKS_MAX];
    weir_target_told of[RANKS_MAX][TARGETS_MAX];
    entry sorted[RANKS_MAX * TARGETS_MAX];
} world;

static int by_time(const void *a, const void *b) {
    const weir_target_told *x = a, *y = b;
    if (x->before_us != y->before_us) return x->before_us < y->before_us ? -1 : 1;
    if (x->id.high != y->id.high) return x->id.high < y->id.high ? -1 : 1;
    if (x->id.low != y->id.low) return x->id.low < y->id.low ? -1 : 1;
    return (x->class_of > y->class_of) - (x->class_of < y->class_of);
}

static int by_time_and_rank(const void *a, const void *b) {
    const entry *x = a, *y = b;
    int order = by_time(&x->told, &y->told);
    return order ? order : (x->rank > y->rank) - (x->rank < y->rank);
}

static void draw(world *w, uint64_t seed) {
    weir_rng rng = weir_rng_stream(seed, 3, 0);
    uint64_t times = 1 + weir_rng_below(&rng, 400), ids = 1 + weir_rng_below(&rng, 30);
    w->ranks = 1 + (uint32_t)weir_rng_below(&rng, RANKS_MAX);
    w->room = 1 + weir_rng_below(&rng, weir_rng_below(&rng, 2) ? 4 : TARGETS_MAX);
    w->count = 0;
    for (uint32_t rank = 0; rank < w->ranks; rank++) {
        uint64_t kind = weir_rng_below(&rng, 4);
        w->counts[rank] = kind == 0 ? 0 : kind == 1 ? TARGETS_MAX : weir_rng_below(&rng, 40);
        uint64_t later = weir_rng_below(&rng, 3) * times / 2; /* some ranks have what comes later */
        for (uint64_t i = 0; i < w->counts[rank]; i++)
            w->of[rank][i] = (weir_target_told){.id = {weir_rng_below(&rng, 2), weir_rng_below(&rng, ids)},
                                                .before_us = (int64_t)(later + weir_rng_below(&rng, times)),
                                                .class_of = (uint32_t)weir_rng_below(&rng, 3),
                                                .part = WEIR_TARGETS_PARTS};
        qsort(w->of[rank], w->counts[rank], sizeof w->of[rank][0], by_time);
        for (uint64_t i = 0; i < w->counts[rank]; i++)
            w->sorted[w->count++] = (entry){w->of[rank][i], rank};
    }
    qsort(w->sorted, w->count, sizeof *w->sorted, by_time_and_rank);
}

static void as_sorted_at_once(const world *w) {
    uint64_t fed[RANKS_MAX] = {0}, left[RANKS_MAX] = {0};
    size_t count = 0, rounds = 0;
    weir_target_merger *m = NULL;
    assert_ok(weir_target_merger_open(w->counts, w->ranks, w->room, by_time, &m));
    for (; !weir_target_merger_done(m); rounds++) {
        const size_t before = count;
        for (uint32_t rank = 0; rank < w->ranks; rank++) {
            size_t wanted = weir_target_merger_wants(m, rank);
            assert_true(fed[rank] + wanted <= w->counts[rank] && fed[rank] + wanted - left[rank] <= w->room);
            weir_target_merger_feed(m, rank, (const char *)&w->of[rank][fed[rank]]);
            fed[rank] += wanted;
            assert_true(fed[rank] == w->counts[rank] || fed[rank] - left[rank] == w->room); /* as many as fit */
        }
        uint32_t rank;
        for (const weir_target_told *told; (told = weir_target_merger_next(m, &rank)); count++, left[rank]++) {
            assert_true(count < w->count);
            assert_int_equal(rank, w->sorted[count].rank);
            assert_memory_equal(told, &w->sorted[count].told, sizeof *told);
        }
        assert_true(count > before); /* each round comes further */
    }
    assert_int_equal(count, w->count);
    weir_target_merger_close(m);
}

static void t5_told_in_rounds_as_sorted_at_once(void **state) {
    (void)state;
    world *w = malloc(sizeof *w);
    assert_non_null(w);
    for (uint64_t round = 0; round < ROUNDS; round++) {
        draw(w, weir_test_seed() + round);
        as_sorted_at_once(w);
    }
    free(w);
}

static weir_err open_and_close(void *context) {
    const world *w = context;
    weir_target_merger *m = NULL;
    weir_err err = weir_target_merger_open(w->counts, w->ranks, w->room, by_time, &m);
    weir_target_merger_close(m);
    return err;
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    world *w = malloc(sizeof *w);
    assert_non_null(w);
    draw(w, weir_test_seed());
    weir_test_every_allocation(open_and_close, w);
    free(w);
}

/* Up to 256 ranks one takes a byte. */
static void t6_owners_are_what_was_put(void **state) {
    (void)state;
    weir_rng rng = weir_rng_stream(weir_test_seed(), 3, 0);
    for (uint32_t bytes = 1; bytes <= 2; bytes++) {
        const uint32_t count = 1 + (uint32_t)weir_rng_below(&rng, TARGETS_MAX), ranks = 1u << 8 * bytes;
        void *owners = calloc(count, bytes);
        uint32_t *expected = calloc(count, sizeof *expected);
        const weir_targets t = {.count = count, .owners = owners, .owner_bytes = bytes};
        assert_true(owners && expected);
        for (uint32_t i = 0; i < count; i++) {
            expected[i] = i == 0 ? ranks - 1 : (uint32_t)weir_rng_below(&rng, ranks);
            weir_targets_owner_put(&t, owners, i, expected[i]);
        }
        for (uint32_t i = 0; i < count; i++)
            assert_int_equal(weir_targets_owner(&t, i), expected[i]);
        free(owners);
        free(expected);
    }
}

WEIR_TESTS(WEIR_CASE(t6_owners_are_what_was_put), WEIR_CASE(t5_told_in_rounds_as_sorted_at_once),
           WEIR_CASE(every_allocation_may_fail))

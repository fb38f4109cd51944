/* SPDX-License-Identifier: Apache-2.0 */
/* deal_test.c - whatever ranks own, of every stretch of a dealt list all take as many; and nothing is lost. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <weir/store/base/rng.h>

#include "deal.h"
#include "weir_test.h"

#define TARGETS 3000u
#define RANKS   16u

typedef struct world {
    weir_train_dealer dealer;
    uint64_t count;
    uint32_t list[TARGETS];
    uint32_t owner_of[TARGETS], ranks; /* by target */
    uint64_t owned[RANKS];
} world;

/* even: every rank owns as many; else some own most. */
static world *world_open(uint64_t seed, bool even) {
    weir_rng rng = weir_rng_stream(seed, 7, 0);
    world *w = calloc(1, sizeof *w);
    assert_non_null(w);
    w->ranks = 1 + (uint32_t)weir_rng_below(&rng, RANKS);
    w->count = 1 + weir_rng_below(&rng, TARGETS);
    if (even) w->count = w->ranks * (1 + w->count / (2 * w->ranks));
    for (uint64_t i = 0; i < w->count; i++) {
        w->list[i] = (uint32_t)i;
        w->owner_of[i] = even ? (uint32_t)(i % w->ranks) : (uint32_t)((double)w->ranks * pow(weir_rng_double(&rng), 2));
        w->owned[w->owner_of[i]]++;
    }
    for (uint64_t i = w->count; i > 1; i--) {
        uint64_t other = weir_rng_below(&rng, i);
        uint32_t last = w->list[i - 1];
        w->list[i - 1] = w->list[other];
        w->list[other] = last;
    }
    assert_ok(weir_train_dealer_open(w->count, w->ranks, &w->dealer));
    for (uint64_t i = 0; i < w->count; i++)
        w->dealer.owner_of[i] = w->owner_of[w->list[i]];
    return w;
}

static void world_close(world *w) {
    weir_train_dealer_close(&w->dealer);
    free(w);
}

/* Each once. */
static void same_targets(const world *w) {
    bool seen[TARGETS] = {false};
    for (uint64_t i = 0; i < w->count; i++) {
        assert_true(w->list[i] < w->count && !seen[w->list[i]]);
        seen[w->list[i]] = true;
    }
}

static bool is_handed(const world *w, uint64_t place) {
    return w->owner_of[w->list[place]] != weir_train_deal_taker(place, w->ranks);
}

/* Of a piece of the list: the fewest and the most that a rank takes. */
static void taken(const world *w, uint64_t begin, uint64_t end, uint64_t *leastp, uint64_t *mostp) {
    uint64_t counts[RANKS] = {0};
    for (uint64_t place = begin; place < end; place++)
        counts[weir_train_deal_taker(place, w->ranks)]++;
    *leastp = *mostp = counts[0];
    for (uint32_t rank = 1; rank < w->ranks; rank++) {
        *leastp = counts[rank] < *leastp ? counts[rank] : *leastp;
        *mostp = counts[rank] > *mostp ? counts[rank] : *mostp;
    }
}

/* Batches of any size, and the whole epoch. */
static void all_ranks_take_as_many(void **state) {
    (void)state;
    for (uint64_t round = 0; round < 60; round++) {
        world *w = world_open(weir_test_seed() + round, round % 4 == 0);
        uint64_t batch = 1 + w->count / (1 + round), least, most;
        weir_train_deal(&w->dealer, w->list, w->count);
        same_targets(w);
        for (uint64_t begin = 0; begin < w->count; begin += batch) {
            taken(w, begin, begin + batch < w->count ? begin + batch : w->count, &least, &most);
            assert_true(most - least <= 1);
        }
        taken(w, 0, w->count, &least, &most);
        assert_true(most - least <= 1);
        world_close(w);
    }
}

/* What a rank has above its share, and where the sum is no multiple of the ranks one of each rank more at most. */
static void few_are_handed_over(void **state) {
    (void)state;
    for (uint64_t round = 0; round < 60; round++) {
        world *w = world_open(weir_test_seed() + round, round % 4 == 0);
        uint64_t handed = 0, fewest = 0, rest = w->count % w->ranks;
        weir_train_deal(&w->dealer, w->list, w->count);
        for (uint64_t place = 0; place < w->count; place++)
            handed += is_handed(w, place);
        for (uint32_t rank = 0; rank < w->ranks; rank++)
            if (w->owned[rank] > w->count / w->ranks) fewest += w->owned[rank] - w->count / w->ranks;
        fewest -= fewest < rest ? fewest : rest;
        assert_true(handed >= fewest && handed <= fewest + rest);
        world_close(w);
    }
}

/* No stretch of an epoch has more of what was handed over than another, whoever takes it. */
static void they_are_spread_over_the_epoch(void **state) {
    (void)state;
    for (uint64_t round = 0; round < 60; round++) {
        world *w = world_open(weir_test_seed() + round, false);
        uint64_t handed[RANKS] = {0}, turns[RANKS] = {0}, all[RANKS] = {0}, all_turns[RANKS] = {0};
        weir_train_deal(&w->dealer, w->list, w->count);
        for (uint64_t place = 0; place < w->count; place++) {
            uint32_t rank = weir_train_deal_taker(place, w->ranks);
            all[rank] += is_handed(w, place);
            all_turns[rank]++;
        }
        for (uint64_t place = 0; place < w->count; place++) {
            uint32_t rank = weir_train_deal_taker(place, w->ranks);
            handed[rank] += is_handed(w, place);
            double wanted = (double)++turns[rank] * (double)all[rank] / (double)all_turns[rank];
            if (!(fabs((double)handed[rank] - wanted) <= 1))
                fail_msg("after %llu turns rank %u of %u has %llu of others, not %g", (unsigned long long)turns[rank],
                         rank, w->ranks, (unsigned long long)handed[rank], wanted);
        }
        world_close(w);
    }
}

/* The same list and owners give the same order, whatever was dealt before. */
static void no_deal_remembers_another(void **state) {
    (void)state;
    world *w = world_open(weir_test_seed(), false);
    uint32_t before[TARGETS], first[TARGETS];
    memcpy(before, w->list, sizeof before);
    for (unsigned time = 0; time < 3; time++) {
        memcpy(w->list, before, sizeof before);
        for (uint64_t i = 0; i < w->count; i++)
            w->dealer.owner_of[i] = time == 1 ? 0 : w->owner_of[before[i]];
        weir_train_deal(&w->dealer, w->list, w->count);
        if (time == 0) memcpy(first, w->list, sizeof first);
    }
    assert_memory_equal(w->list, first, w->count * sizeof *first);
    world_close(w);
}

static weir_err open_once(void *context) {
    weir_train_dealer dealer;
    weir_err err = weir_train_dealer_open(10, 3, &dealer);
    (void)context;
    if (!err) weir_train_dealer_close(&dealer);
    return err;
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    weir_test_every_allocation(open_once, NULL);
}

WEIR_TESTS(WEIR_CASE(all_ranks_take_as_many), WEIR_CASE(few_are_handed_over), WEIR_CASE(they_are_spread_over_the_epoch),
           WEIR_CASE(no_deal_remembers_another), WEIR_CASE(every_allocation_may_fail))

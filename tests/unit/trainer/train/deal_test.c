/* SPDX-License-Identifier: Apache-2.0 */
/* deal_test.c - whatever ranks own, every stretch of a dealt list has of each its share; and nothing is lost. */
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

/* Each once, and those of a rank in the order in which they were. */
static void same_targets(const world *w, const uint32_t *before) {
    uint64_t at[RANKS] = {0};
    for (uint64_t i = 0; i < w->count; i++) {
        uint32_t rank = w->owner_of[w->list[i]];
        while (w->owner_of[before[at[rank]]] != rank)
            at[rank]++;
        assert_int_equal(w->list[i], before[at[rank]++]);
    }
}

static void every_batch_has_its_shares(void **state) {
    (void)state;
    for (uint64_t round = 0; round < 60; round++) {
        world *w = world_open(weir_test_seed() + round, false);
        uint64_t batch = 1 + w->count / (1 + round);
        uint32_t before[TARGETS];
        memcpy(before, w->list, sizeof before);
        weir_train_deal(&w->dealer, w->list, w->count);
        same_targets(w, before);
        for (uint64_t begin = 0; begin < w->count; begin += batch) {
            uint64_t end = begin + batch < w->count ? begin + batch : w->count, counts[RANKS] = {0};
            for (uint64_t i = begin; i < end; i++)
                counts[w->owner_of[w->list[i]]]++;
            for (uint32_t rank = 0; rank < w->ranks; rank++) {
                double share = (double)w->owned[rank] / (double)w->count, wanted = share * (double)(end - begin);
                /* At either end half of one by rounding, and what half of the ranks may be off. */
                if (!(fabs((double)counts[rank] - wanted) <= 1 + w->ranks * share + 1e-9))
                    fail_msg("rank %u of %u has %llu of a batch, not %g", rank, w->ranks,
                             (unsigned long long)counts[rank], wanted);
            }
        }
        world_close(w);
    }
}

static void equal_ranks_have_equal_batches(void **state) {
    (void)state;
    for (uint64_t round = 0; round < 60; round++) {
        world *w = world_open(weir_test_seed() + round, true);
        uint32_t before[TARGETS];
        memcpy(before, w->list, sizeof before);
        weir_train_deal(&w->dealer, w->list, w->count);
        same_targets(w, before);
        for (uint64_t begin = 0; begin < w->count; begin += w->ranks) {
            uint64_t seen = 0;
            for (uint64_t i = begin; i < begin + w->ranks; i++)
                seen |= (uint64_t)1 << w->owner_of[w->list[i]];
            assert_int_equal(seen, ((uint64_t)1 << w->ranks) - 1);
        }
        world_close(w);
    }
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

WEIR_TESTS(WEIR_CASE(every_batch_has_its_shares), WEIR_CASE(equal_ranks_have_equal_batches),
           WEIR_CASE(every_allocation_may_fail))

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deal.c - a rank that has more targets than turns leaves some to others, evenly over its own; a rank that has fewer
 * leaves turns to those, evenly over its turns. So at any time of an epoch a batch is of all parts alike.
 */
#include "deal.h"

#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>

weir_err weir_train_dealer_open(uint64_t targets, uint32_t ranks, weir_train_dealer *dealer) {
    *dealer = (weir_train_dealer){.ranks = ranks,
                                  .owner_of = weir_calloc(targets + 1, sizeof *dealer->owner_of),
                                  .dealt = weir_calloc(targets + 1, sizeof *dealer->dealt),
                                  .counts = weir_calloc(ranks, sizeof *dealer->counts),
                                  .seen = weir_calloc(ranks, sizeof *dealer->seen),
                                  .next = weir_calloc(ranks, sizeof *dealer->next)};
    if (dealer->owner_of && dealer->dealt && dealer->counts && dealer->seen && dealer->next) return WEIR_OK;
    weir_train_dealer_close(dealer);
    return WEIR_NOMEM("for the order of an epoch");
}

void weir_train_dealer_close(weir_train_dealer *dealer) {
    weir_free(dealer->owner_of);
    weir_free(dealer->dealt);
    weir_free(dealer->counts);
    weir_free(dealer->seen);
    weir_free(dealer->next);
    *dealer = (weir_train_dealer){0};
}

uint32_t weir_train_deal_taker(uint64_t place, uint32_t ranks) {
    return (uint32_t)(place % ranks);
}

__extension__ typedef unsigned __int128 deal_wide; /* targets times targets may need it */

/* Whether the i-th of n is one of the `some` that are spread over them evenly. */
static bool deal_is_of(uint64_t i, uint64_t some, uint64_t n) {
    return ((deal_wide)(i + 1) * some + n / 2) / n > ((deal_wide)i * some + n / 2) / n;
}

/* How often a rank has its turn. */
static uint64_t deal_turns(const weir_train_dealer *d, uint32_t rank, uint64_t count) {
    return count / d->ranks + (rank < count % d->ranks);
}

/* Whether a place of the list is for a target of another rank than whose turn it is. */
static bool deal_is_others(const weir_train_dealer *d, uint64_t place, uint64_t count) {
    uint32_t rank = weir_train_deal_taker(place, d->ranks);
    uint64_t turns = deal_turns(d, rank, count);
    return d->counts[rank] < turns && deal_is_of(place / d->ranks, turns - d->counts[rank], turns);
}

void weir_train_deal(weir_train_dealer *d, uint32_t *list, uint64_t count) {
    uint64_t others = 0; /* the next place that is for a target of another rank */
    memset(d->counts, 0, d->ranks * sizeof *d->counts);
    for (uint64_t i = 0; i < count; i++) {
        WEIR_ASSERT(d->owner_of[i] < d->ranks);
        d->counts[d->owner_of[i]]++;
    }
    for (uint32_t rank = 0; rank < d->ranks; rank++) {
        d->seen[rank] = 0;
        d->next[rank] = rank;
    }
    for (uint64_t i = 0; i < count; i++) {
        uint32_t rank = d->owner_of[i];
        uint64_t turns = deal_turns(d, rank, count), owned = d->counts[rank], place;
        if (owned > turns && deal_is_of(d->seen[rank]++, owned - turns, owned)) {
            while (!deal_is_others(d, others, count))
                others++;
            place = others++;
        } else {
            while (deal_is_others(d, d->next[rank], count))
                d->next[rank] += d->ranks;
            place = d->next[rank];
            d->next[rank] += d->ranks;
        }
        WEIR_ASSERT(place < count); /* as many are too many as are missing */
        d->dealt[place] = list[i];
    }
    memcpy(list, d->dealt, count * sizeof *list);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deal.c - the i-th of a rank's n targets belongs at (i + 1/2) / n of the list; those places, rounded down, are then
 * sorted by counting. Of each rank that is even, and of all together never further off than half of them.
 */
#include "deal.h"

#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>

weir_err weir_train_dealer_open(uint64_t targets, uint32_t ranks, weir_train_dealer *dealer) {
    *dealer = (weir_train_dealer){.ranks = ranks,
                                  .owner_of = weir_calloc(targets + 1, sizeof *dealer->owner_of),
                                  .dealt = weir_calloc(targets + 1, sizeof *dealer->dealt),
                                  .places = weir_calloc(targets + 1, sizeof *dealer->places),
                                  .counts = weir_calloc(ranks, sizeof *dealer->counts),
                                  .seen = weir_calloc(ranks, sizeof *dealer->seen)};
    if (dealer->owner_of && dealer->dealt && dealer->places && dealer->counts && dealer->seen) return WEIR_OK;
    weir_train_dealer_close(dealer);
    return WEIR_NOMEM("for the order of an epoch");
}

void weir_train_dealer_close(weir_train_dealer *dealer) {
    weir_free(dealer->owner_of);
    weir_free(dealer->dealt);
    weir_free(dealer->places);
    weir_free(dealer->counts);
    weir_free(dealer->seen);
    *dealer = (weir_train_dealer){0};
}

__extension__ typedef unsigned __int128 deal_wide; /* targets times targets may need it */

static uint64_t deal_place(const weir_train_dealer *d, uint32_t rank, uint64_t count) {
    return (uint64_t)((deal_wide)(2 * d->seen[rank] + 1) * count / (2 * d->counts[rank]));
}

void weir_train_deal(weir_train_dealer *d, uint32_t *list, uint64_t count) {
    memset(d->counts, 0, d->ranks * sizeof *d->counts);
    memset(d->places, 0, (count + 1) * sizeof *d->places);
    for (uint64_t i = 0; i < count; i++) {
        WEIR_ASSERT(d->owner_of[i] < d->ranks);
        d->counts[d->owner_of[i]]++;
    }
    memset(d->seen, 0, d->ranks * sizeof *d->seen);
    for (uint64_t i = 0; i < count; i++, d->seen[d->owner_of[i - 1]]++)
        d->places[deal_place(d, d->owner_of[i], count) + 1]++;
    for (uint64_t i = 0; i < count; i++) /* how many belong before each place */
        d->places[i + 1] += d->places[i];
    memset(d->seen, 0, d->ranks * sizeof *d->seen);
    for (uint64_t i = 0; i < count; i++, d->seen[d->owner_of[i - 1]]++)
        d->dealt[d->places[deal_place(d, d->owner_of[i], count)]++] = list[i];
    memcpy(list, d->dealt, count * sizeof *list);
}

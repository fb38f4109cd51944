/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deal.h - the order of an epoch in which ranks take turns, so that of whatever stands together all have as many, give
 * or take one. Private to this folder.
 *
 *   whose turn     0 1 2 0 1 2 0 1 2 0 1 2
 *   who owns it    0 1 2 0 1 0 0 1 2 0 1 0      of targets that rank 0 has too many of, and rank 2 too few
 *
 * Such a target is handed to whose turn it is (hand.h). As few are as can be, but for a sum that is no multiple of the
 * ranks: the turns that are left over then go to the first ranks, and not to those that have most.
 */
#ifndef WEIR_TRAINER_TRAIN_DEAL_H
#define WEIR_TRAINER_TRAIN_DEAL_H

#include <stdint.h>

#include <weir/store/base/err.h>

typedef struct weir_train_dealer {
    uint32_t ranks;
    uint32_t *owner_of; /* of each target of the list: the caller's to fill in */
    uint32_t *dealt;
    uint64_t *counts, *seen, *next; /* by rank: targets that it has, and of them seen; its next turn */
} weir_train_dealer;

/* For lists of at most so many targets.  WEIR_ENOMEM. */
weir_err weir_train_dealer_open(uint64_t targets, uint32_t ranks, weir_train_dealer *dealer);
void weir_train_dealer_close(weir_train_dealer *dealer);
/* Puts the list into an order in which each target that can be stands where its owner has its turn. owner_of is of the
 * list as it was. */
void weir_train_deal(weir_train_dealer *dealer, uint32_t *list, uint64_t count);
/* Whose turn it is at a place of a dealt list. */
uint32_t weir_train_deal_taker(uint64_t place, uint32_t ranks);

#endif /* WEIR_TRAINER_TRAIN_DEAL_H */

/* SPDX-License-Identifier: Apache-2.0 */
/* deal.h - the order of an epoch in which ranks have work in proportion. Private to this folder. */
#ifndef WEIR_TRAINER_TRAIN_DEAL_H
#define WEIR_TRAINER_TRAIN_DEAL_H

#include <stdint.h>

#include <weir/store/base/err.h>

typedef struct weir_train_dealer {
    uint32_t ranks;
    uint32_t *owner_of; /* of each target of the list: the caller's to fill in */
    uint32_t *dealt, *places;
    uint64_t *counts, *seen; /* by rank */
} weir_train_dealer;

/* For lists of at most so many targets.  WEIR_ENOMEM. */
weir_err weir_train_dealer_open(uint64_t targets, uint32_t ranks, weir_train_dealer *dealer);
void weir_train_dealer_close(weir_train_dealer *dealer);
/* Puts the list into an order in which whatever stands together has of each rank the share that the whole list has,
 * give or take one at each end; the targets of one rank stay in their order. owner_of is of the list as it was. */
void weir_train_deal(weir_train_dealer *dealer, uint32_t *list, uint64_t count);

#endif /* WEIR_TRAINER_TRAIN_DEAL_H */

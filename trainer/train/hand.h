/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hand.h - targets of a dealt batch (deal.h) that another rank computes than has them. Private to this folder.
 *
 * All ranks know whose turn it is at each place, and who owns what stands there: so an owner sends unasked what the
 * taker has to know, and the taker knows how many will come. The rows and edges that it then lacks it asks for, as it
 * does those of any vertex (asks.h, remote.h).
 */
#ifndef WEIR_TRAINER_TRAIN_HAND_H
#define WEIR_TRAINER_TRAIN_HAND_H

#include "asks.h"
#include "batch.h"

/* A target, as it goes over the wire. */
typedef struct weir_train_handed {
    weir_train_name name;
    int64_t before_us;
    uint64_t event;
} weir_train_handed;

/* Of one batch. Memory grows to the largest and stays. */
typedef struct weir_train_hands {
    weir_buf told, received;
    uint64_t *lengths, *received_lengths, *wanted; /* to and from each rank; wanted: what has to come */
    uint64_t *places; /* of what is told to each rank, while it is laid out; then of what each has told, that is next */
} weir_train_hands;

/* WEIR_ENOMEM. */
weir_err weir_train_hands_open(uint32_t ranks, weir_train_hands *hands);
void weir_train_hands_close(weir_train_hands *hands);
/* Hands over the targets of a batch, all ranks together; handedp: whether there are any, on whatever rank. Without, no
 * rank sends anything.  WEIR_ECORRUPT another rank handed over too much or too little; WEIR_ENOMEM; errors of the
 * exchange. */
weir_err weir_train_hands_exchange(weir_train_hands *hands, const weir_train_owners *owners,
                                   const weir_targets *targets, const weir_train_slice *slice, weir_comm *comm,
                                   bool *handedp);
/* The next one that this owner has handed over, in the order of the batch. */
weir_train_handed weir_train_hands_next(weir_train_hands *hands, uint32_t owner);

#endif /* WEIR_TRAINER_TRAIN_HAND_H */

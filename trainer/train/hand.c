/* SPDX-License-Identifier: Apache-2.0 */
/* hand.c - targets sorted by their takers: counted, then laid out, in two passes over the batch. */
#include "hand.h"

#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>

#include "deal.h"

#define HAND_NO_MEMORY "for targets of other ranks; lower --batch"

weir_err weir_train_hands_open(uint32_t ranks, weir_train_hands *hands) {
    *hands = (weir_train_hands){.lengths = weir_calloc(ranks, sizeof *hands->lengths),
                                .received_lengths = weir_calloc(ranks, sizeof *hands->received_lengths),
                                .wanted = weir_calloc(ranks, sizeof *hands->wanted),
                                .places = weir_calloc(ranks, sizeof *hands->places)};
    if (hands->lengths && hands->received_lengths && hands->wanted && hands->places) return WEIR_OK;
    weir_train_hands_close(hands);
    return WEIR_NOMEM(HAND_NO_MEMORY);
}

void weir_train_hands_close(weir_train_hands *hands) {
    weir_buf_free(&hands->told);
    weir_buf_free(&hands->received);
    weir_free(hands->lengths);
    weir_free(hands->received_lengths);
    weir_free(hands->wanted);
    weir_free(hands->places);
    *hands = (weir_train_hands){.lengths = NULL};
}

/* Lays out what this rank hands over. */
static weir_err hands_lay_out(weir_train_hands *h, const weir_train_owners *owners, const weir_targets *targets,
                              const weir_train_slice *slice) {
    uint64_t bytes = 0;
    for (uint32_t rank = 0; rank < owners->ranks; rank++) {
        h->places[rank] = bytes;
        bytes += h->lengths[rank];
    }
    weir_buf_clear(&h->told);
    char *told = weir_buf_reserve(&h->told, bytes + 1);
    if (!told) return weir_buf_err(&h->told);
    for (uint64_t at = slice->begin; bytes && at < slice->end; at++) {
        uint32_t number = slice->list[at - slice->begin], taker = weir_train_deal_taker(at, owners->ranks);
        if (taker == owners->rank || weir_train_target_owner(owners, targets, number) != owners->rank) continue;
        const weir_target *target = &targets->targets[weir_targets_place(targets, number)];
        weir_train_handed handed = {.before_us = target->before_us, .event = target->event};
        weir_err err = weir_train_name_of(owners, NULL, target->type, (uint64_t)target->vertex, &handed.name);
        if (err) return err;
        memcpy(told + h->places[taker], &handed, sizeof handed);
        h->places[taker] += sizeof handed;
    }
    weir_buf_commit(&h->told, bytes);
    return WEIR_OK;
}

weir_err weir_train_hands_exchange(weir_train_hands *h, const weir_train_owners *owners, const weir_targets *targets,
                                   const weir_train_slice *slice, weir_comm *comm, bool *handedp) {
    *handedp = false;
    memset(h->lengths, 0, owners->ranks * sizeof *h->lengths);
    memset(h->wanted, 0, owners->ranks * sizeof *h->wanted);
    for (uint64_t at = slice->begin; at < slice->end; at++) {
        uint32_t owner = weir_train_target_owner(owners, targets, slice->list[at - slice->begin]);
        uint32_t taker = weir_train_deal_taker(at, owners->ranks);
        if (owner == taker) continue;
        *handedp = true;
        if (owner == owners->rank) h->lengths[taker] += sizeof(weir_train_handed);
        if (taker == owners->rank) h->wanted[owner] += sizeof(weir_train_handed);
    }
    if (!*handedp) return WEIR_OK;
    weir_err err = hands_lay_out(h, owners, targets, slice);
    weir_buf_clear(&h->received);
    if (!err) err = weir_comm_exchange(comm, h->told.bytes, h->lengths, &h->received, h->received_lengths);
    uint64_t place = 0;
    for (uint32_t rank = 0; !err && rank < owners->ranks; rank++) {
        h->places[rank] = place;
        place += h->received_lengths[rank];
        if (h->received_lengths[rank] != h->wanted[rank])
            err = WEIR_ERR(WEIR_ECORRUPT,
                           "rank %u handed over %llu bytes of targets, not %llu; all ranks need parts of one cutting, "
                           "and the same program",
                           rank, (unsigned long long)h->received_lengths[rank], (unsigned long long)h->wanted[rank]);
    }
    return err;
}

weir_train_handed weir_train_hands_next(weir_train_hands *hands, uint32_t owner) {
    weir_train_handed handed;
    WEIR_ASSERT(hands->places[owner] + sizeof handed <= hands->received.length); /* as many as were wanted */
    memcpy(&handed, hands->received.bytes + hands->places[owner], sizeof handed);
    hands->places[owner] += sizeof handed;
    return handed;
}

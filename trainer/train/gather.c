/* SPDX-License-Identifier: Apache-2.0 */
/* gather.c - targets that lie in parts: each rank tells the others its own. */
#include <stdlib.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>

#include "targets_private.h"

/* What all ranks have to know of a target: its place in the order, its part and its class. */
typedef struct gathered_target {
    weir_vertex_pair id;
    int64_t before_us;
    uint32_t class_of;
    uint32_t part;
} gathered_target;

static int gather_by_id(const void *a, const void *b) {
    const weir_target_candidate *x = a, *y = b;
    if (x->id != y->id) return x->id < y->id ? -1 : 1;
    if (x->target.before_us != y->target.before_us) return x->target.before_us < y->target.before_us ? -1 : 1;
    return x->class_of < y->class_of ? -1 : x->class_of > y->class_of;
}

static weir_err gather_take(const weir_target_collector *c, const char *bytes, uint64_t length, uint32_t rank,
                            weir_target_candidate *to) {
    for (uint64_t i = 0; i < length / sizeof(gathered_target); i++) {
        gathered_target told;
        memcpy(&told, bytes + i * sizeof told, sizeof told);
        if (told.class_of >= c->out->classes || told.part > WEIR_TARGETS_PARTS)
            return WEIR_ERR(WEIR_ECORRUPT,
                            "rank %u has a target of class %u in part %u; all ranks need parts of one "
                            "cutting",
                            rank, told.class_of, told.part);
        const weir_target target = {.before_us = told.before_us, .type = (uint16_t)c->label->target};
        to[i] = (weir_target_candidate){target, weir_vertex_of(told.id), told.class_of, rank, told.part};
    }
    return WEIR_OK;
}

/* TRAIN-T5: one after the other in the order of the ranks, then sorted: the order of one rank that has everything. */
weir_err weir_targets_gather(weir_target_collector *c, weir_comm *comm) {
    uint32_t ranks = weir_comm_ranks(comm), me = weir_comm_rank(comm);
    double counts[] = {(double)c->out->young, (double)c->out->old, (double)c->out->unlabelled};
    uint64_t *lengths = weir_calloc(ranks, sizeof *lengths);
    weir_target_candidate *all = NULL;
    weir_buf own = {0}, received = {0};
    weir_err err = lengths ? WEIR_OK : WEIR_NOMEM("for the targets of training");
    for (size_t i = 0; i < c->count; i++) {
        const weir_target_candidate *from = &c->candidates[i];
        const gathered_target told = {{weir_vertex_high(from->id), weir_vertex_low(from->id)},
                                      from->target.before_us,
                                      from->class_of,
                                      from->part};
        weir_buf_append(&own, &told, sizeof told);
    }
    if (!err) err = weir_buf_err(&own);
    if (!err) err = weir_comm_gather(comm, own.bytes, own.length, &received, lengths);
    size_t count = received.length / sizeof(gathered_target), at = 0;
    if (!err) all = weir_calloc(count + 1, sizeof *all);
    if (!err && !all) err = WEIR_NOMEM("for the targets of training");
    for (uint32_t rank = 0; !err && rank < ranks; rank++) {
        if (rank == me) {
            WEIR_ASSERT(lengths[rank] == c->count * sizeof(gathered_target));
            if (c->count) memcpy(all + at, c->candidates, c->count * sizeof *all);
            for (size_t i = 0; i < c->count; i++)
                all[at + i].rank = rank;
        } else {
            err = gather_take(c, received.bytes + at * sizeof(gathered_target), lengths[rank], rank, all + at);
        }
        at += lengths[rank] / sizeof(gathered_target);
    }
    if (!err) {
        if (count) qsort(all, count, sizeof *all, gather_by_id);
        weir_comm_sum_doubles(comm, counts, sizeof counts / sizeof counts[0]);
        c->out->young = (uint64_t)counts[0];
        c->out->old = (uint64_t)counts[1];
        c->out->unlabelled = (uint64_t)counts[2];
        weir_free(c->candidates);
        c->candidates = all;
        c->count = c->capacity = count;
        all = NULL;
    }
    weir_free(all);
    weir_free(lengths);
    weir_buf_free(&own);
    weir_buf_free(&received);
    return err;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gather.c - targets that lie in parts: each rank tells the others its own, some at a time.
 *
 *   own candidates, sorted ──a round: as many as fit──► a list of each rank ──merged──► one after the other
 *
 * What is merged leaves at once, up to the first list that is empty but not at its end: then there is another round. So
 * nobody ever has more than a few of each other rank.
 */
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/hash.h>

#include "targets_private.h"

#define GATHER_NO_MEMORY "for the targets of training"
#define GATHER_ROOM      32768u /* targets of all ranks together, unless that leaves of each: */
#define GATHER_ROOM_MIN  64u

/* --- many lists become one ---------------------------------------------------------------------------------------- */

typedef struct merger_list {
    weir_target_told *told; /* room for as many as the merger has room for */
    size_t begin, end;
    uint64_t untold; /* that have not come yet */
} merger_list;

struct weir_target_merger {
    weir_target_order order;
    uint32_t ranks;
    size_t room;
    merger_list *lists;
    uint32_t *heap; /* ranks whose lists are not empty: that with the first target on top */
    uint32_t heap_count;
    uint32_t hungry; /* lists that are empty, but not at their end */
};

weir_err weir_target_merger_open(const uint64_t *counts, uint32_t ranks, size_t room, weir_target_order order,
                                 weir_target_merger **mergerp) {
    weir_target_merger *m = *mergerp = weir_calloc(1, sizeof *m);
    if (!m) return WEIR_NOMEM(GATHER_NO_MEMORY);
    *m = (weir_target_merger){.order = order, .ranks = ranks, .room = room};
    m->lists = weir_calloc(ranks, sizeof *m->lists);
    m->heap = weir_calloc(ranks, sizeof *m->heap);
    bool all = m->lists && m->heap;
    for (uint32_t rank = 0; all && rank < ranks; rank++) {
        merger_list *list = &m->lists[rank];
        list->untold = counts[rank];
        list->told = weir_calloc(counts[rank] < room ? counts[rank] + 1 : room, sizeof *list->told);
        m->hungry += counts[rank] > 0;
        all = list->told != NULL;
    }
    if (all) return WEIR_OK;
    weir_target_merger_close(m);
    *mergerp = NULL;
    return WEIR_NOMEM(GATHER_NO_MEMORY);
}

void weir_target_merger_close(weir_target_merger *merger) {
    if (!merger) return;
    for (uint32_t rank = 0; merger->lists && rank < merger->ranks; rank++)
        weir_free(merger->lists[rank].told);
    weir_free(merger->lists);
    weir_free(merger->heap);
    weir_free(merger);
}

size_t weir_target_merger_wants(const weir_target_merger *merger, uint32_t rank) {
    const merger_list *list = &merger->lists[rank];
    size_t free_room = merger->room - (list->end - list->begin);
    return list->untold < free_room ? (size_t)list->untold : free_room;
}

static bool merger_before(const weir_target_merger *m, uint32_t a, uint32_t b) {
    const merger_list *x = &m->lists[a], *y = &m->lists[b];
    int order = m->order(&x->told[x->begin], &y->told[y->begin]);
    return order < 0 || (order == 0 && a < b);
}

/* The rank at this place may have got a later target: those before it go up. */
static void merger_sink(weir_target_merger *m, uint32_t at) {
    uint32_t rank = m->heap[at];
    for (uint32_t child; (child = 2 * at + 1) < m->heap_count; at = child) {
        if (child + 1 < m->heap_count && merger_before(m, m->heap[child + 1], m->heap[child])) child++;
        if (!merger_before(m, m->heap[child], rank)) break;
        m->heap[at] = m->heap[child];
    }
    m->heap[at] = rank;
}

void weir_target_merger_feed(weir_target_merger *merger, uint32_t rank, const char *told) {
    merger_list *list = &merger->lists[rank];
    size_t count = weir_target_merger_wants(merger, rank), pending = list->end - list->begin;
    if (!count) return;
    if (pending) memmove(list->told, list->told + list->begin, pending * sizeof *list->told);
    memcpy(list->told + pending, told, count * sizeof *list->told);
    list->begin = 0;
    list->end = pending + count;
    list->untold -= count;
    if (pending) return;
    merger->hungry--;
    uint32_t at = merger->heap_count++; /* it goes up to behind the first that is before it */
    for (; at > 0 && merger_before(merger, rank, merger->heap[(at - 1) / 2]); at = (at - 1) / 2)
        merger->heap[at] = merger->heap[(at - 1) / 2];
    merger->heap[at] = rank;
}

const weir_target_told *weir_target_merger_next(weir_target_merger *merger, uint32_t *rankp) {
    if (merger->hungry || !merger->heap_count) return NULL;
    uint32_t rank = *rankp = merger->heap[0];
    merger_list *list = &merger->lists[rank];
    const weir_target_told *told = &list->told[list->begin++];
    if (list->begin == list->end) {
        merger->hungry += list->untold > 0;
        merger->heap[0] = merger->heap[--merger->heap_count];
    }
    if (merger->heap_count) merger_sink(merger, 0);
    return told;
}

bool weir_target_merger_done(const weir_target_merger *merger) {
    return !merger->hungry && !merger->heap_count;
}

/* --- ranks -------------------------------------------------------------------------------------------------------- */

weir_err weir_targets_count(weir_target_collector *c) {
    uint32_t ranks = c->comm ? weir_comm_ranks(c->comm) : 1;
    double excluded[] = {(double)c->out->young, (double)c->out->old, (double)c->out->unlabelled,
                         (double)c->out->untold};
    const uint64_t own = c->count;
    weir_buf counts = {0};
    uint64_t *lengths = weir_calloc(ranks, sizeof *lengths), count = 0;
    c->counts = weir_calloc(ranks, sizeof *c->counts);
    weir_err err = lengths && c->counts ? WEIR_OK : WEIR_NOMEM(GATHER_NO_MEMORY);
    if (!err && c->comm) err = weir_comm_gather(c->comm, &own, sizeof own, &counts, lengths);
    if (!err) memcpy(c->counts, c->comm ? counts.bytes : (const char *)&own, ranks * sizeof *c->counts);
    for (uint32_t rank = 0; !err && rank < ranks; rank++)
        count += c->counts[rank];
    weir_buf_free(&counts);
    weir_free(lengths);
    if (err) return err;
    if (count >= WEIR_TARGETS_ELSEWHERE || (c->comm && ranks > UINT16_MAX))
        return WEIR_ERR(WEIR_ELIMIT,
                        "there are %llu targets on %u ranks, more than 4 billion or 65535; take a shorter history, or "
                        "fewer parts",
                        (unsigned long long)count, ranks);
    if (c->comm) weir_comm_sum_doubles(c->comm, excluded, sizeof excluded / sizeof excluded[0]);
    c->out->count = count;
    c->out->young = (uint64_t)excluded[0];
    c->out->old = (uint64_t)excluded[1];
    c->out->unlabelled = (uint64_t)excluded[2];
    c->out->untold = (uint64_t)excluded[3];
    c->out->classes_of = c->classes_of = weir_calloc(count + 1, sizeof *c->classes_of);
    c->out->owner_bytes = ranks > UINT8_MAX + 1u ? 2 : 1;
    if (c->comm) c->out->owners = c->owners = weir_calloc(count + 1, c->out->owner_bytes);
    return c->classes_of && (c->owners || !c->comm) ? WEIR_OK : WEIR_NOMEM(GATHER_NO_MEMORY);
}

void weir_targets_put(weir_target_collector *c, const weir_target_told *told, uint32_t rank) {
    const uint64_t one[] = {told->id.low, (uint64_t)told->before_us, told->class_of, told->part};
    WEIR_ASSERT(c->taken < c->out->count);
    c->classes_of[c->taken] = (uint8_t)told->class_of;
    if (c->owners) weir_targets_owner_put(c->out, c->owners, c->taken, rank);
    c->taken++;
    c->out->digest = weir_xxh3(one, sizeof one, c->out->digest);
}

static weir_err gather_check(const weir_target_collector *c, const char *bytes, size_t count, uint32_t rank) {
    for (size_t i = 0; i < count; i++) {
        weir_target_told told;
        memcpy(&told, bytes + i * sizeof told, sizeof told);
        if (told.class_of >= c->out->classes || told.part > WEIR_TARGETS_PARTS)
            return WEIR_ERR(WEIR_ECORRUPT,
                            "rank %u has a target of class %u in part %u; all ranks need parts of one "
                            "cutting",
                            rank, told.class_of, told.part);
    }
    return WEIR_OK;
}

/* One round: what the merger wants of each rank. sent: of this rank's, how many it has told. */
static weir_err gather_round(const weir_target_collector *c, weir_target_merger *m, size_t *sentp, weir_buf *own,
                             weir_buf *received, uint64_t *lengths) {
    uint32_t ranks = weir_comm_ranks(c->comm);
    size_t end = *sentp + weir_target_merger_wants(m, weir_comm_rank(c->comm));
    WEIR_ASSERT(end <= c->count);
    weir_buf_clear(own);
    weir_buf_clear(received);
    for (; *sentp < end; ++*sentp)
        weir_buf_append(own, &c->candidates[*sentp].told, sizeof c->candidates->told);
    weir_err err = weir_buf_err(own);
    if (!err) err = weir_comm_gather(c->comm, own->bytes, own->length, received, lengths);
    const char *at = received->bytes;
    for (uint32_t rank = 0; !err && rank < ranks; rank++) {
        size_t count = weir_target_merger_wants(m, rank);
        if (lengths[rank] != count * sizeof(weir_target_told))
            return WEIR_ERR(WEIR_ECORRUPT,
                            "rank %u tells %llu bytes of targets, not of %zu; all ranks need the same "
                            "program",
                            rank, (unsigned long long)lengths[rank], count);
        err = gather_check(c, at, count, rank);
        if (!err) weir_target_merger_feed(m, rank, at);
        at += lengths[rank];
    }
    return err;
}

weir_err weir_targets_gather(weir_target_collector *c, weir_target_order order, weir_target_hear hear, void *context) {
    if (!c->comm) {
        for (size_t i = 0; i < c->count; i++)
            hear(context, &c->candidates[i].told, 0);
        return WEIR_OK;
    }
    uint32_t ranks = weir_comm_ranks(c->comm), rank;
    size_t room = GATHER_ROOM / ranks > GATHER_ROOM_MIN ? GATHER_ROOM / ranks : GATHER_ROOM_MIN, sent = 0;
    weir_target_merger *m = NULL;
    weir_buf own = {0}, received = {0};
    uint64_t *lengths = weir_calloc(ranks, sizeof *lengths);
    weir_err err = lengths ? weir_target_merger_open(c->counts, ranks, room, order, &m) : WEIR_NOMEM(GATHER_NO_MEMORY);
    while (!err && !weir_target_merger_done(m)) {
        err = gather_round(c, m, &sent, &own, &received, lengths);
        for (const weir_target_told *told; !err && (told = weir_target_merger_next(m, &rank));)
            hear(context, told, rank);
    }
    weir_target_merger_close(m);
    weir_buf_free(&own);
    weir_buf_free(&received);
    weir_free(lengths);
    return err;
}

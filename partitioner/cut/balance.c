/* SPDX-License-Identifier: Apache-2.0 */
/*
 * balance.c - vertices leave parts that have more of a weight than is allowed.
 *
 * A move is ranked by what it adds to the cut for each share of a part that it mends, so that a few vertices with much
 * of a weight compete with many that have little. Ranks are those of when they were computed: a vertex that leaves the
 * queue is looked at again, and goes back if it has become a worse one.
 */
#include <math.h>

#include <weir/store/base/assert.h>

#include "cut_private.h"

#define BALANCE_ROUNDS 8

/* The parts with the most room: by each weight, and by the weight that each has least room of. */
typedef struct balance_room {
    int32_t parts[WEIR_METIS_CONSTRAINTS_MAX + 1];
    uint32_t count;
} balance_room;

static void balance_find_room(const cut_state *s, balance_room *room) {
    const cut_limits *l = s->limits;
    double least[WEIR_METIS_CONSTRAINTS_MAX + 1];
    room->count = l->constraints + 1;
    for (uint32_t i = 0; i < room->count; i++)
        least[i] = INFINITY;
    for (uint32_t p = 0; p < l->parts; p++) {
        double fullest = 0;
        for (uint32_t c = 0; c <= l->constraints; c++) {
            double full = c == l->constraints ? fullest
                          : l->share[c] > 0   ? (double)s->loads[(size_t)p * l->constraints + c] / l->share[c]
                                              : 0;
            if (full > fullest) fullest = full;
            if (full < least[c]) {
                least[c] = full;
                room->parts[c] = (int32_t)p;
            }
        }
    }
}

/* Where v should go, and the rank of that; -1: no move of it mends anything. */
static int32_t balance_best(cut_state *s, const balance_room *room, uint64_t v, double *rankp) {
    int32_t own = s->part_of[v], best = -1;
    weir_cut_look(s, v);
    for (uint32_t i = 0; i < s->beside_count + room->count; i++) {
        int32_t to = i < s->beside_count ? s->beside[i] : room->parts[i - s->beside_count];
        if (to == own) continue;
        double mends = -weir_cut_excess_of_move(s, v, to);
        if (mends < CUT_EXCESS_STEP) continue;
        double gain = (double)(s->shared[to] - s->shared[own]);
        double rank = gain > 0 ? gain * mends : gain / mends;
        if (best >= 0 && rank <= *rankp) continue;
        best = to;
        *rankp = rank;
    }
    return best;
}

static bool balance_is_above(const cut_state *s, int32_t part) {
    for (uint32_t c = 0; c < s->limits->constraints; c++)
        if (s->loads[(size_t)part * s->limits->constraints + c] > s->limits->most[c]) return true;
    return false;
}

static void balance_put(cut_state *s, const balance_room *room, uint64_t v) {
    double rank = 0;
    if (!(s->stays && s->stays[v]) && balance_is_above(s, s->part_of[v]) && balance_best(s, room, v, &rank) >= 0)
        weir_cut_queue_put(&s->queue, v, rank);
    else
        weir_cut_queue_drop(&s->queue, v);
}

/* Takes moves until none mends anything; returns how many. */
static uint64_t balance_round(cut_state *s) {
    const weir_metis_graph *g = s->graph;
    balance_room room;
    uint64_t moves = 0;
    balance_find_room(s, &room);
    for (uint64_t v = 0; v < g->vertices; v++)
        balance_put(s, &room, v);
    while (s->queue.count) {
        uint64_t v = weir_cut_queue_take(&s->queue);
        double was = s->queue.rank[v], rank = 0;
        int32_t to = balance_is_above(s, s->part_of[v]) ? balance_best(s, &room, v, &rank) : -1;
        if (to < 0) continue;
        if (rank < was && s->queue.count && s->queue.rank[s->queue.vertices[0]] > rank) {
            weir_cut_queue_put(&s->queue, v, rank);
            continue;
        }
        weir_cut_move(s, v, to);
        if (moves++ % (1 + s->limits->parts / 64) == 0) balance_find_room(s, &room);
        for (int64_t i = g->indptr[v]; i < g->indptr[v + 1]; i++) {
            uint64_t u = (uint64_t)g->neighbors[i];
            if (s->queue.at[u] && g->indptr[u + 1] - g->indptr[u] <= CUT_HUB) balance_put(s, &room, u);
        }
    }
    return moves;
}

void weir_cut_balance(cut_state *s) {
    for (int round = 0; round < BALANCE_ROUNDS && weir_cut_excess(s) > 0; round++)
        if (!balance_round(s)) return;
}

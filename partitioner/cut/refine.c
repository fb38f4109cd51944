/* SPDX-License-Identifier: Apache-2.0 */
/*
 * refine.c - Fiduccia and Mattheyses between many parts: each vertex of the boundary moves at most once in a pass, the
 * best first, also where that makes the cut larger for a while; the pass is taken back to where it was best.
 */
#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>

#include "cut_private.h"

#define REFINE_PASSES   12
#define REFINE_PATIENCE 400 /* moves beyond the best, and one in so many vertices of the graph: */
#define REFINE_SHARE    200

typedef struct refine_move {
    uint32_t vertex;
    int32_t from;
} refine_move;

typedef struct refine_log {
    refine_move *moves;
    size_t count, capacity;
} refine_log;

/* Where v should go without more excess, and by how much the cut falls; -1: nowhere. */
static int32_t refine_best(cut_state *s, uint64_t v, int64_t *gainp) {
    int32_t own = s->part_of[v], best = -1;
    weir_cut_look(s, v);
    for (uint32_t i = 0; i < s->beside_count; i++) {
        int32_t to = s->beside[i];
        int64_t gain = s->shared[to] - s->shared[own];
        if (to == own || (best >= 0 && gain <= *gainp)) continue;
        if (weir_cut_excess_of_move(s, v, to) > 0) continue;
        best = to;
        *gainp = gain;
    }
    return best;
}

static void refine_put(cut_state *s, uint64_t v) {
    int64_t gain = 0;
    if (refine_best(s, v, &gain) >= 0)
        weir_cut_queue_put(&s->queue, v, (double)gain);
    else
        weir_cut_queue_drop(&s->queue, v);
}

static void refine_fill(cut_state *s) {
    const weir_metis_graph *g = s->graph;
    for (uint64_t v = 0; v < g->vertices; v++) {
        bool boundary = false;
        s->moved[v] = s->stays && s->stays[v];
        if (s->moved[v]) continue;
        for (int64_t i = g->indptr[v]; !boundary && i < g->indptr[v + 1]; i++)
            boundary = s->part_of[g->neighbors[i]] != s->part_of[v];
        if (boundary) refine_put(s, v);
    }
}

static void refine_look_again(cut_state *s, uint64_t v) {
    const weir_metis_graph *g = s->graph;
    for (int64_t i = g->indptr[v]; i < g->indptr[v + 1]; i++) {
        uint64_t u = (uint64_t)g->neighbors[i];
        bool hub = g->indptr[u + 1] - g->indptr[u] > CUT_HUB;
        if (!s->moved[u] && (!hub || !s->queue.at[u])) refine_put(s, u);
    }
}

/* The cut falls by *gainp, which may be 0. */
static weir_err refine_pass(cut_state *s, refine_log *log, int64_t *gainp) {
    int64_t sum = 0, best = 0;
    size_t kept = 0, patience = REFINE_PATIENCE + s->graph->vertices / REFINE_SHARE;
    log->count = 0;
    refine_fill(s);
    while (s->queue.count && log->count - kept < patience) {
        uint64_t v = weir_cut_queue_take(&s->queue);
        int64_t gain = 0;
        int32_t to = refine_best(s, v, &gain), from = s->part_of[v];
        if (to < 0) continue;
        if ((double)gain < s->queue.rank[v] && s->queue.count && s->queue.rank[s->queue.vertices[0]] > (double)gain) {
            weir_cut_queue_put(&s->queue, v, (double)gain);
            continue;
        }
        if (!WEIR_GROW(log->moves, log->capacity, log->count)) return WEIR_NOMEM("for the moves of a cutting");
        log->moves[log->count++] = (refine_move){(uint32_t)v, from};
        weir_cut_move(s, v, to);
        s->moved[v] = true;
        sum += gain;
        if (sum > best) {
            best = sum;
            kept = log->count;
        }
        refine_look_again(s, v);
    }
    while (s->queue.count)
        weir_cut_queue_take(&s->queue);
    while (log->count > kept) {
        log->count--;
        weir_cut_move(s, log->moves[log->count].vertex, log->moves[log->count].from);
    }
    *gainp = best;
    return WEIR_OK;
}

weir_err weir_cut_refine(cut_state *s) {
    refine_log log = {0};
    int64_t gain = 1;
    weir_err err = WEIR_OK;
    for (int pass = 0; !err && pass < REFINE_PASSES && gain > 0; pass++)
        err = refine_pass(s, &log, &gain);
    weir_free(log.moves);
    return err;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place.c - a cutting of an earlier graph goes on: vertices that have a part stay there, new ones come to their
 * neighbours.
 *
 * New vertices are placed one after the other, in the order of their numbers. A vertex v goes to the part p with the
 * highest
 *
 *     w(v, p) × (1 - f(v, p))
 *
 * among those that have room for it. w is the weight of the edges between v and what lies in p already; f is how full p
 * would be with v: the highest of load / limit over the weights that v has. That is linear deterministic greedy of
 * Stanton and Kliot (Streaming graph partitioning for large distributed graphs, KDD 2012), whose one capacity is here
 * the fullest of several. Where no neighbour's part has room, v goes to the part that would be least full.
 *
 * Whoever came early knew few of its neighbours. So then the new vertices, and no others, are mended and refined as
 * those of a whole cutting are.
 */
#include <weir/store/base/alloc.h>

#include "cut_private.h"

/* Above 1: it has no room. */
static double place_fullness(const cut_state *s, uint64_t v, int32_t part) {
    const cut_limits *l = s->limits;
    double fullest = 0;
    for (uint32_t c = 0; c < l->constraints; c++) {
        int64_t weight = s->graph->vertex_weights[v * l->constraints + c];
        if (!weight) continue;
        double full = (double)(s->loads[(size_t)part * l->constraints + c] + weight) / (double)l->most[c];
        if (full > fullest) fullest = full;
    }
    return fullest;
}

/* Of equals the first. */
static int32_t place_best(cut_state *s, uint64_t v) {
    int32_t best = -1;
    double highest = 0, emptiest = 0;
    weir_cut_look(s, v);
    for (uint32_t i = 0; i < s->beside_count; i++) {
        int32_t part = s->beside[i];
        double full = place_fullness(s, v, part), score = (double)s->shared[part] * (1 - full);
        if (full > 1 || (best >= 0 && (score < highest || (score == highest && part > best)))) continue;
        best = part;
        highest = score;
    }
    if (best >= 0) return best;
    for (int32_t part = 0; part < (int32_t)s->limits->parts; part++) {
        double full = place_fullness(s, v, part);
        if (best >= 0 && full >= emptiest) continue;
        best = part;
        emptiest = full;
    }
    return best;
}

weir_err weir_cut_place(const weir_metis_graph *graph, const weir_cut_opts *opts, int32_t *part_of) {
    cut_limits limits;
    cut_state s = {0};
    weir_err err = weir_cut_check(graph, opts);
    if (err) return err;
    bool *stays = weir_calloc(graph->vertices + 1, sizeof *stays);
    if (!stays) return WEIR_NOMEM("while placing %llu vertices", (unsigned long long)graph->vertices);
    for (uint64_t v = 0; v < graph->vertices; v++)
        stays[v] = part_of[v] != WEIR_CUT_NOWHERE;
    err = weir_cut_limits_of(graph, opts->parts, opts->tolerance, &limits);
    if (!err) err = weir_cut_state_open(graph, &limits, part_of, &s);
    if (err) goto done;

    s.stays = stays;
    for (uint64_t v = 0; v < graph->vertices; v++)
        if (!stays[v]) weir_cut_move(&s, v, place_best(&s, v));
    if (!opts->quick) {
        weir_cut_balance(&s);
        err = weir_cut_refine(&s);
    }
done:
    weir_cut_state_close(&s);
    weir_free(stays);
    return err;
}

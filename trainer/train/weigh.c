/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weigh.c - how much a rank's batches read each vertex: from its training targets outwards, a hop at a time, over the
 * lists that the sampler will draw from.
 *
 * VIP (vertex inclusion probability): a target is in a batch with the chance of its class; a parent at hop h - 1
 * draws each of its d edges with chance t = min(1, fanout / d); so a vertex u is reached at hop h unless no parent
 * draws it, 1 - p(u) = prod (1 - t p(parent)), as if draws did not depend on each other. In logarithms, because the
 * products are long; a chance of 1 stays a little below, whose logarithm is finite.
 */
#include <math.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>

#include "cache.h"

#define WEIGH_NO_MEMORY "for weighing the vertices of a part"
#define CHANCE_MAX      (1 - 1e-12)

static double *weigh_array(const weir_snapshot *snapshot, uint32_t type) {
    return weir_calloc(weir_snapshot_vertices_of(snapshot, type)->count + 1, sizeof(double));
}

typedef struct weigh_pass {
    const weir_train_cache_opts *opts;
    uint32_t types;
    double **now, **next; /* of the hop before, and of the one at hand: chances, or walks */
} weigh_pass;

/* What each edge of a parent adds to its neighbour: of VIP the logarithm of the chance that it is not drawn. */
static double weigh_edge(const weigh_pass *w, const weir_sample_step *step, double parent, uint64_t degree) {
    bool all = step->strategy == WEIR_SAMPLE_FULL || step->strategy == WEIR_SAMPLE_RECENT || degree <= step->fanout;
    if (w->opts->policy != WEIR_TRAIN_CACHED_VIP) return parent;
    double chance = parent * (all ? 1 : (double)step->fanout / (double)degree);
    return log1p(-(chance < CHANCE_MAX ? chance : CHANCE_MAX));
}

/* Along one step of the sampler. With no part, only vertices that batches reach have a weight, wherever they lie. */
static void weigh_step(const weigh_pass *w, const weir_sample_step *step) {
    const weir_snapshot *snapshot = w->opts->owners.snapshot;
    const weir_schema_relation *r = weir_schema_relation_at(weir_snapshot_schema(snapshot), step->relation);
    const weir_snapshot_edges *e = weir_snapshot_edges_of(snapshot, step->relation, step->direction);
    uint32_t from = step->direction == WEIR_OUT ? r->from : r->to, to = step->direction == WEIR_OUT ? r->to : r->from;
    uint64_t others = weir_snapshot_vertices_of(snapshot, to)->count;
    const int64_t window = weir_nn_window(w->opts->shape); /* of longer lists the sampler draws from that much */
    for (uint64_t v = 0; v < e->vertices; v++) {
        int64_t begin = e->indptr[v], end = e->indptr[v + 1];
        if (!(w->now[from][v] > 0) || begin < 0 || end <= begin || end > (int64_t)e->edges) continue;
        if (end - begin > window) end = begin + window;
        double add = weigh_edge(w, step, w->now[from][v], (uint64_t)(end - begin));
        if (step->strategy == WEIR_SAMPLE_RECENT && end - begin > step->fanout) end = begin + step->fanout;
        for (int64_t i = begin; i < end; i++)
            if ((uint64_t)e->neighbors[i] < others) w->next[to][e->neighbors[i]] += add; /* the file is not trusted */
    }
}

/* The hop is over: what it has added up becomes chances, and goes into the weights. */
static void weigh_hop_end(const weigh_pass *w, double **weights) {
    bool vip = w->opts->policy == WEIR_TRAIN_CACHED_VIP;
    for (uint32_t type = 0; type < w->types; type++) {
        uint64_t count = weir_snapshot_vertices_of(w->opts->owners.snapshot, type)->count;
        for (uint64_t v = 0; v < count; v++) {
            weights[type][v] += w->next[type][v];
            w->now[type][v] = vip ? -expm1(w->next[type][v]) : w->next[type][v];
            w->next[type][v] = 0;
        }
    }
}

/* The chance of each training target of this rank to be in a batch. Of class 0 an epoch takes some only: as in
 * weir_training_list_epoch. */
static void weigh_targets(const weigh_pass *w) {
    const weir_targets *t = w->opts->targets;
    uint64_t count = t->ends[WEIR_TARGETS_TRAIN], zeros = w->opts->negatives ? t->class_counts[0] : 0;
    double wanted = (double)w->opts->negatives * (double)(count - zeros);
    double keep = zeros == 0 || wanted >= (double)zeros ? 1 : wanted / (double)zeros;
    double chance = fmin(1, (double)w->opts->batch / ((double)(count - zeros) + keep * (double)zeros));
    for (uint32_t place = 0; place < t->held; place++) {
        uint64_t target = weir_targets_number(t, place);
        if (target < count && weir_train_target_owner(&w->opts->owners, t, target) == w->opts->owners.rank)
            w->now[t->targets[place].type][(uint64_t)t->targets[place].vertex] =
                chance * (zeros && t->classes_of[target] == 0 ? keep : 1);
    }
}

/* How often the lists that are here name a vertex; or only whether lists of own vertices do. */
static void weigh_names(const weigh_pass *w, double **weights) {
    const weir_snapshot *snapshot = w->opts->owners.snapshot;
    const weir_schema *schema = weir_snapshot_schema(snapshot);
    bool halo = w->opts->policy == WEIR_TRAIN_CACHED_HALO;
    for (uint32_t i = 0; i < 2 * weir_schema_relation_count(schema); i++) {
        const weir_schema_relation *r = weir_schema_relation_at(schema, i / 2);
        const weir_snapshot_edges *e = weir_snapshot_edges_of(snapshot, i / 2, i % 2);
        uint32_t from = i % 2 == WEIR_OUT ? r->from : r->to, to = i % 2 == WEIR_OUT ? r->to : r->from;
        uint64_t others = weir_snapshot_vertices_of(snapshot, to)->count;
        for (uint64_t v = 0; v < e->vertices; v++) {
            if (halo && weir_train_owner(&w->opts->owners, from, v) != w->opts->owners.rank) continue;
            for (int64_t at = e->indptr[v]; at >= 0 && at < e->indptr[v + 1] && at < (int64_t)e->edges; at++) {
                uint64_t other = (uint64_t)e->neighbors[at];
                if (other < others) weights[to][other] = halo ? 1 : weights[to][other] + 1;
            }
        }
    }
}

weir_err weir_train_weigh(const weir_train_cache_opts *opts, double **weights) {
    uint32_t types = weir_nn_types(opts->shape), steps, hops = 0;
    const weir_sample_step *step = weir_nn_steps(opts->shape, &steps);
    weigh_pass w = {.opts = opts, .types = types};
    w.now = weir_calloc(types, sizeof *w.now);
    w.next = weir_calloc(types, sizeof *w.next);
    bool all = w.now && w.next;
    for (uint32_t type = 0; type < types; type++) {
        weights[type] = weigh_array(opts->owners.snapshot, type);
        if (all) w.now[type] = weigh_array(opts->owners.snapshot, type);
        if (all) w.next[type] = weigh_array(opts->owners.snapshot, type);
        all = all && weights[type] && w.now[type] && w.next[type];
    }
    for (uint32_t i = 0; i < steps; i++)
        hops = step[i].hop > hops ? step[i].hop : hops;
    bool walks = opts->policy == WEIR_TRAIN_CACHED_VIP || opts->policy == WEIR_TRAIN_CACHED_PATHS;
    if (all && !walks) weigh_names(&w, weights);
    if (all && walks) weigh_targets(&w);
    for (uint32_t hop = 1; all && walks && hop <= hops; hop++) {
        for (uint32_t i = 0; i < steps; i++)
            if (step[i].hop == hop) weigh_step(&w, &step[i]);
        weigh_hop_end(&w, weights);
    }
    /* Unless no hop reaches it. */
    for (uint32_t type = 0; all && opts->policy == WEIR_TRAIN_CACHED_VIP && type < types; type++)
        for (uint64_t v = 0; v < weir_snapshot_vertices_of(opts->owners.snapshot, type)->count; v++)
            weights[type][v] = -expm1(weights[type][v]);
    for (uint32_t type = 0; type < types; type++) {
        if (w.now) weir_free(w.now[type]);
        if (w.next) weir_free(w.next[type]);
    }
    weir_free(w.now);
    weir_free(w.next);
    return all ? WEIR_OK : WEIR_NOMEM(WEIGH_NO_MEMORY);
}

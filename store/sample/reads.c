/* SPDX-License-Identifier: Apache-2.0 */
/* reads.c - chances in logarithms, because the products over all parents are long. */
#include <math.h>

#include <weir/store/base/alloc.h>
#include <weir/store/sample/reads.h>

#define CHANCE_MAX (1 - 1e-12)

double weir_sample_log_spared(double chance) {
    return log1p(-(chance < CHANCE_MAX ? chance : CHANCE_MAX));
}

/* What each edge of a parent adds to its neighbour. */
static double reads_of_edge(const weir_sample_reads *r, const weir_sample_step *step, double parent, uint64_t degree) {
    bool all = step->strategy == WEIR_SAMPLE_FULL || step->strategy == WEIR_SAMPLE_RECENT || degree <= step->fanout;
    return r->walks ? parent : weir_sample_log_spared(parent * (all ? 1 : (double)step->fanout / (double)degree));
}

/* Along one step. Of a part, only vertices that have their lists there lead on. */
static void reads_step(const weir_sample_reads *r, const weir_sample_step *step, double **now, double **next) {
    const weir_schema_relation *relation = weir_schema_relation_at(weir_snapshot_schema(r->snapshot), step->relation);
    const weir_snapshot_edges *e = weir_snapshot_edges_of(r->snapshot, step->relation, step->direction);
    bool out = step->direction == WEIR_OUT;
    uint32_t from = out ? relation->from : relation->to, to = out ? relation->to : relation->from;
    uint64_t others = weir_snapshot_vertices_of(r->snapshot, to)->count;
    for (uint64_t v = 0; v < e->vertices; v++) {
        int64_t begin = e->indptr[v], end = e->indptr[v + 1];
        if (!(now[from][v] > 0) || begin < 0 || end <= begin || end > (int64_t)e->edges) continue;
        if (end - begin > r->window) end = begin + r->window;
        double add = reads_of_edge(r, step, now[from][v], (uint64_t)(end - begin));
        if (step->strategy == WEIR_SAMPLE_RECENT && end - begin > step->fanout) end = begin + step->fanout;
        for (int64_t i = begin; i < end; i++)
            if ((uint64_t)e->neighbors[i] < others) next[to][e->neighbors[i]] += add;
    }
}

/* The hop is over: what it has added up becomes chances, and goes into the weights. */
static void reads_hop_end(const weir_sample_reads *r, uint32_t types, double **now, double **next, double **weights) {
    for (uint32_t type = 0; type < types; type++) {
        for (uint64_t v = 0; v < weir_snapshot_vertices_of(r->snapshot, type)->count; v++) {
            weights[type][v] += next[type][v];
            now[type][v] = r->walks ? next[type][v] : -expm1(next[type][v]);
            next[type][v] = 0;
        }
    }
}

weir_err weir_sample_reads_add(const weir_sample_reads *reads, double **first, double **weights) {
    uint32_t types = weir_schema_vertex_count(weir_snapshot_schema(reads->snapshot)), hops = 0;
    double **next = weir_calloc(types, sizeof *next);
    bool all = next != NULL;
    for (uint32_t type = 0; all && type < types; type++) {
        next[type] = weir_calloc(weir_snapshot_vertices_of(reads->snapshot, type)->count + 1, sizeof *next[type]);
        all = next[type] != NULL;
    }
    for (uint32_t i = 0; i < reads->step_count; i++)
        hops = reads->steps[i].hop > hops ? reads->steps[i].hop : hops;
    for (uint32_t hop = 1; all && hop <= hops; hop++) {
        for (uint32_t i = 0; i < reads->step_count; i++)
            if (reads->steps[i].hop == hop) reads_step(reads, &reads->steps[i], first, next);
        reads_hop_end(reads, types, first, next, weights);
    }
    for (uint32_t type = 0; next && type < types; type++)
        weir_free(next[type]);
    weir_free(next);
    return all ? WEIR_OK : WEIR_NOMEM("for how often vertices are read");
}

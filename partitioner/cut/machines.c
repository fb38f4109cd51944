/* SPDX-License-Identifier: Apache-2.0 */
/* machines.c - one cutting, or one between machines and then one within each. */
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>

#include "cut_private.h"

/* The vertices of one machine, and the edges between them. Of a cut_level, cluster_of has which vertex each was. */
static weir_err machines_take(const weir_metis_graph *g, const int32_t *machine_of, int32_t machine,
                              const weir_cut_opts *opts, uint32_t *place_of, cut_level *share) {
    uint64_t count = 0, at = 0, ends = 0;
    *share = (cut_level){0};
    for (uint64_t v = 0; v < g->vertices; v++) {
        if (machine_of[v] != machine) continue;
        place_of[v] = (uint32_t)count++;
        for (int64_t i = g->indptr[v]; i < g->indptr[v + 1]; i++)
            ends += machine_of[g->neighbors[i]] == machine;
    }
    share->indptr = weir_calloc(count + 1, sizeof *share->indptr);
    share->vertex_weights = weir_calloc(count * g->constraints + 1, sizeof *share->vertex_weights);
    share->cluster_of = weir_calloc(count + 1, sizeof *share->cluster_of);
    share->part_of = weir_calloc(count + 1, sizeof *share->part_of);
    weir_err err = WEIR_OK;
    if (!share->indptr || !share->vertex_weights || !share->cluster_of || !share->part_of)
        err = WEIR_NOMEM("for the %llu vertices of a machine", (unsigned long long)count);
    if (!err) err = weir_cut_lists_open(ends, weir_cut_scratch_for(opts, ends), &share->lists);
    for (uint64_t v = 0; !err && v < g->vertices; v++) {
        if (machine_of[v] != machine) continue;
        for (int64_t i = g->indptr[v]; !err && i < g->indptr[v + 1]; i++) {
            if (machine_of[g->neighbors[i]] != machine) continue;
            err = weir_cut_lists_put(&share->lists, place_of[g->neighbors[i]], g->edge_weights[i]);
        }
        memcpy(share->vertex_weights + at * g->constraints, g->vertex_weights + v * g->constraints,
               g->constraints * sizeof *share->vertex_weights);
        share->cluster_of[at++] = (uint32_t)v;
        share->indptr[at] = (int64_t)share->lists.count;
    }
    if (!err) err = weir_cut_lists_end(&share->lists);
    if (err) {
        weir_cut_level_close(share);
        return err;
    }
    WEIR_ASSERT(at == count && share->lists.count == ends);
    share->graph = (weir_metis_graph){.vertices = count,
                                      .indptr = share->indptr,
                                      .neighbors = share->lists.neighbors,
                                      .edge_weights = share->lists.edge_weights,
                                      .constraints = g->constraints,
                                      .vertex_weights = share->vertex_weights};
    return WEIR_OK;
}

/* The limits of a part stay those of the whole, whatever the machine got. */
static weir_err machines_cut_within(const weir_metis_graph *graph, const weir_cut_opts *opts, const cut_limits *limits,
                                    const int32_t *machine_of, int32_t *part_of) {
    cut_limits within = *limits;
    weir_err err = WEIR_OK;
    uint32_t *place_of = weir_calloc(graph->vertices + 1, sizeof *place_of);
    if (!place_of) return WEIR_NOMEM("while cutting %llu vertices", (unsigned long long)graph->vertices);
    within.parts = opts->parts / opts->machines;
    for (uint32_t m = 0; !err && m < opts->machines; m++) {
        cut_level share;
        err = machines_take(graph, machine_of, (int32_t)m, opts, place_of, &share);
        if (!err) err = weir_cut_solve(&share.graph, &within, opts, share.part_of);
        for (uint64_t v = 0; !err && v < share.graph.vertices; v++)
            part_of[share.cluster_of[v]] = (int32_t)(m * within.parts) + share.part_of[v];
        weir_cut_level_close(&share);
    }
    weir_free(place_of);
    return err;
}

/* A machine may be half as far above its share as a part: the parts in it need room, too. */
static weir_err machines_cut_both(const weir_metis_graph *graph, const weir_cut_opts *opts, const cut_limits *limits,
                                  int32_t *part_of) {
    double tolerance[WEIR_METIS_CONSTRAINTS_MAX];
    cut_limits between;
    int32_t *machine_of = weir_calloc(graph->vertices + 1, sizeof *machine_of);
    if (!machine_of) return WEIR_NOMEM("while cutting %llu vertices", (unsigned long long)graph->vertices);
    for (uint32_t c = 0; c < graph->constraints; c++)
        tolerance[c] = 1 + (opts->tolerance[c] - 1) / 2;
    weir_err err = weir_cut_limits_of(graph, opts->machines, tolerance, &between);
    if (!err) err = weir_cut_solve(graph, &between, opts, machine_of);
    if (!err) err = machines_cut_within(graph, opts, limits, machine_of, part_of);
    weir_free(machine_of);
    return err;
}

weir_err weir_cut_check(const weir_metis_graph *graph, const weir_cut_opts *opts) {
    if (!graph->constraints || graph->constraints > WEIR_METIS_CONSTRAINTS_MAX)
        return WEIR_ERR(WEIR_EINVAL, "%u weights a vertex are not 1 to %u", graph->constraints,
                        WEIR_METIS_CONSTRAINTS_MAX);
    if (!opts->parts || !opts->machines || opts->parts % opts->machines)
        return WEIR_ERR(WEIR_EINVAL, "%u machines cannot have the same number of %u parts", opts->machines,
                        opts->parts);
    if (graph->vertices > WEIR_METIS_VERTICES_MAX)
        return WEIR_ERR(WEIR_ELIMIT, "%llu vertices are more than the %u that can be cut",
                        (unsigned long long)graph->vertices, WEIR_METIS_VERTICES_MAX);
    if (graph->vertices < opts->parts)
        return WEIR_ERR(WEIR_ELIMIT, "%u parts of %llu vertices would leave some empty; ask for fewer", opts->parts,
                        (unsigned long long)graph->vertices);
    for (uint32_t c = 0; c < graph->constraints; c++) {
        if (!(opts->tolerance[c] >= 1))
            return WEIR_ERR(WEIR_EINVAL, "a tolerance of %g would leave vertices out", opts->tolerance[c]);
    }
    return WEIR_OK;
}

weir_err weir_cut(const weir_metis_graph *graph, const weir_cut_opts *opts, int32_t *part_of) {
    cut_limits limits;
    weir_err err = weir_cut_check(graph, opts);
    if (!err) err = weir_cut_limits_of(graph, opts->parts, opts->tolerance, &limits);
    if (err) return err;
    return opts->machines == 1 ? weir_cut_solve(graph, &limits, opts, part_of)
                               : machines_cut_both(graph, opts, &limits, part_of);
}

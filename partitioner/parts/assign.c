/* SPDX-License-Identifier: Apache-2.0 */
/* assign.c - four ways to assign vertices to parts, and a measure of each. */
#include <string.h>

#include <weir/partitioner/cut/cut.h>
#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/hash.h>
#include <weir/store/base/rng.h>

#include "plan.h"

const char *weir_parts_method_name(weir_parts_method method) {
    static const char *const names[] = {"metis", "random", "hash", "like"};
    return names[method];
}

weir_err weir_parts_assign(const weir_snapshot *snapshot, const weir_parts_graph *graph,
                           const weir_parts_weights *weights, const weir_parts_opts *opts, weir_parts_method method,
                           int32_t *part_of) {
    if (method == WEIR_PARTS_METIS || method == WEIR_PARTS_LIKE) {
        const weir_metis_graph weighed = {.vertices = graph->vertices,
                                          .indptr = graph->indptr,
                                          .neighbors = graph->lists.neighbors,
                                          .edge_weights = graph->lists.edge_weights,
                                          .constraints = weights->columns,
                                          .vertex_weights = weights->numbers};
        const weir_cut_opts cut = {.parts = opts->parts,
                                   .machines = opts->machines ? opts->machines : 1,
                                   .tolerance = weights->tolerance,
                                   .seed = opts->seed,
                                   .memory_bytes = weir_parts_budget_of_metis(graph, weights->columns),
                                   .scratch = graph->budget->bytes ? graph->budget->scratch : NULL,
                                   .live_bytes = graph->budget->live_bytes,
                                   .quick = opts->quick};
        return method == WEIR_PARTS_METIS ? weir_cut(&weighed, &cut, part_of) : weir_cut_place(&weighed, &cut, part_of);
    }
    for (uint32_t type = 0; type < graph->types; type++) {
        const weir_snapshot_vertices *vertices = weir_snapshot_vertices_of(snapshot, type);
        for (uint64_t v = 0; v < vertices->count; v++) {
            uint64_t at = graph->offsets[type] + v;
            weir_rng rng = weir_rng_stream(opts->seed, at, 0);
            part_of[at] = (int32_t)(method == WEIR_PARTS_RANDOM
                                        ? weir_rng_below(&rng, opts->parts)
                                        : weir_xxh3(&vertices->ids[v], sizeof vertices->ids[v], type) % opts->parts);
        }
    }
    return WEIR_OK;
}

/* --- measuring ------------------------------------------------------------------------------------------------- */

/* By part. */
typedef struct parts_tally {
    uint64_t *vertices, *training, *degree, *halo, *send, *stamp;
    uint64_t cut_twice, machine_cut_twice;
    int32_t parts_of_machine;
} parts_tally;

static double parts_balance(const uint64_t *numbers, uint32_t parts) {
    uint64_t most = 0, sum = 0;
    for (uint32_t p = 0; p < parts; p++) {
        sum += numbers[p];
        if (numbers[p] > most) most = numbers[p];
    }
    return sum ? (double)most * parts / (double)sum : 0;
}

/* Adds v to the halo of each other part that has a neighbour of it, and its edges to those that are cut. */
static void parts_tally_vertex(const weir_parts_graph *g, const int32_t *part_of, uint64_t v, parts_tally *t) {
    int32_t own = part_of[v];
    t->vertices[own]++;
    t->training[own] += g->targets[v];
    for (int64_t i = g->indptr[v]; i < g->indptr[v + 1]; i++) {
        int32_t other = part_of[g->lists.neighbors[i]];
        WEIR_ASSERT(g->lists.neighbors[i] != v); /* no loops */
        if (other == own) continue;
        t->cut_twice += g->lists.edge_weights[i];
        if (other / t->parts_of_machine != own / t->parts_of_machine) t->machine_cut_twice += g->lists.edge_weights[i];
        if (t->stamp[other] == v + 1) continue;
        t->stamp[other] = v + 1;
        t->halo[other]++;
        t->send[own]++;
    }
}

weir_err weir_parts_measure(const weir_snapshot *snapshot, const weir_parts_graph *graph, const int32_t *part_of,
                            uint32_t parts, uint32_t machines, weir_parts_quality *qualityp) {
    size_t n = parts;
    uint64_t *numbers = weir_calloc(n * 6, sizeof *numbers);
    *qualityp = (weir_parts_quality){.method = qualityp->method, .seconds = qualityp->seconds};
    if (!numbers) return WEIR_NOMEM("while measuring %u parts", parts);
    parts_tally t = {.vertices = numbers,
                     .training = numbers + n,
                     .degree = numbers + 2 * n,
                     .halo = numbers + 3 * n,
                     .send = numbers + 4 * n,
                     .stamp = numbers + 5 * n,
                     .parts_of_machine = (int32_t)(parts / machines)};
    weir_cut_lists_in_order(&graph->lists, true);
    for (uint32_t type = 0; type < graph->types; type++) {
        for (uint64_t v = graph->offsets[type]; v < graph->offsets[type + 1]; v++) {
            t.degree[part_of[v]] += weir_parts_degree(snapshot, type, v - graph->offsets[type]);
            parts_tally_vertex(graph, part_of, v, &t);
        }
    }
    weir_cut_lists_in_order(&graph->lists, false);
    qualityp->cut_edges = t.cut_twice / 2; /* each cut edge is counted from both ends */
    qualityp->machine_cut_edges = t.machine_cut_twice / 2;
    qualityp->vertex_balance = parts_balance(t.vertices, parts);
    qualityp->training_balance = parts_balance(t.training, parts);
    qualityp->degree_balance = parts_balance(t.degree, parts);
    for (uint32_t p = 0; p < parts; p++) {
        qualityp->halo += t.halo[p];
        if (t.halo[p] > qualityp->halo_max) qualityp->halo_max = t.halo[p];
        if (t.send[p] > qualityp->send_max) qualityp->send_max = t.send[p];
    }
    weir_free(numbers);
    return WEIR_OK;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* assign.c - three ways to assign vertices to parts, and a measure of each. */
#include <string.h>

#include <weir/partitioner/metis/metis.h>
#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/hash.h>
#include <weir/store/base/rng.h>

#include "plan.h"

const char *weir_parts_method_name(weir_parts_method method) {
    static const char *const names[] = {"metis", "random", "hash"};
    return names[method];
}

weir_err weir_parts_assign(const weir_snapshot *snapshot, const weir_parts_graph *graph, weir_parts_method method,
                           uint32_t parts, uint64_t seed, int32_t *part_of) {
    if (method == WEIR_PARTS_METIS) {
        const weir_metis_graph metis = {.vertices = graph->vertices,
                                        .indptr = graph->indptr,
                                        .neighbors = graph->neighbors,
                                        .edge_weights = graph->edge_weights,
                                        .constraints = WEIR_PARTS_CONSTRAINTS,
                                        .vertex_weights = graph->vertex_weights};
        return weir_metis_partition(&metis, parts, seed, part_of);
    }
    for (uint32_t type = 0; type < graph->types; type++) {
        const weir_snapshot_vertices *vertices = weir_snapshot_vertices_of(snapshot, type);
        for (uint64_t v = 0; v < vertices->count; v++) {
            uint64_t at = graph->offsets[type] + v;
            weir_rng rng = weir_rng_stream(seed, at, 0);
            part_of[at] = (int32_t)(method == WEIR_PARTS_RANDOM
                                        ? weir_rng_below(&rng, parts)
                                        : weir_xxh3(&vertices->ids[v], sizeof vertices->ids[v], type) % parts);
        }
    }
    return WEIR_OK;
}

/* --- measuring ------------------------------------------------------------------------------------------------- */

/* By part. */
typedef struct parts_tally {
    uint64_t *vertices, *training, *degree, *halo, *stamp;
} parts_tally;

static double parts_balance(const uint64_t *numbers, uint32_t parts) {
    uint64_t most = 0, sum = 0;
    for (uint32_t p = 0; p < parts; p++) {
        sum += numbers[p];
        if (numbers[p] > most) most = numbers[p];
    }
    return sum ? (double)most * parts / (double)sum : 0;
}

/* Adds v to the halo of each other part that has a neighbour of it; returns how many of its edges are cut. */
static uint64_t parts_tally_vertex(const weir_parts_graph *g, const int32_t *part_of, uint64_t v, parts_tally *t) {
    uint64_t cut = 0;
    int32_t own = part_of[v];
    t->vertices[own]++;
    t->training[own] += (uint64_t)g->vertex_weights[v * WEIR_PARTS_CONSTRAINTS];
    t->degree[own] += (uint64_t)g->vertex_weights[v * WEIR_PARTS_CONSTRAINTS + 1];
    for (int64_t i = g->indptr[v]; i < g->indptr[v + 1]; i++) {
        int32_t other = part_of[g->neighbors[i]];
        WEIR_ASSERT(g->neighbors[i] != (int64_t)v); /* no loops */
        if (other == own) continue;
        cut += (uint64_t)g->edge_weights[i];
        if (t->stamp[other] != v + 1) t->halo[other]++;
        t->stamp[other] = v + 1;
    }
    return cut;
}

weir_err weir_parts_measure(const weir_parts_graph *graph, const int32_t *part_of, uint32_t parts,
                            weir_parts_quality *qualityp) {
    uint64_t *numbers = weir_calloc((size_t)parts * 5, sizeof *numbers), twice = 0;
    *qualityp = (weir_parts_quality){.method = qualityp->method, .seconds = qualityp->seconds};
    if (!numbers) return WEIR_NOMEM("while measuring %u parts", parts);
    parts_tally t = {numbers, numbers + parts, numbers + 2 * (size_t)parts, numbers + 3 * (size_t)parts,
                     numbers + 4 * (size_t)parts};
    for (uint64_t v = 0; v < graph->vertices; v++)
        twice += parts_tally_vertex(graph, part_of, v, &t);
    qualityp->cut_edges = twice / 2; /* each cut edge is counted from both ends */
    qualityp->vertex_balance = parts_balance(t.vertices, parts);
    qualityp->training_balance = parts_balance(t.training, parts);
    qualityp->degree_balance = parts_balance(t.degree, parts);
    for (uint32_t p = 0; p < parts; p++) {
        qualityp->halo += t.halo[p];
        if (t.halo[p] > qualityp->halo_max) qualityp->halo_max = t.halo[p];
    }
    weir_free(numbers);
    return WEIR_OK;
}

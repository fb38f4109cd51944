/* SPDX-License-Identifier: Apache-2.0 */
/*
 * budget.c - what --memory leaves room for. What is by vertex has to be in memory, where it is read at random; what is
 * by edge lies in files where it does not fit beside that; METIS, which knows no files, sees the whole graph only if
 * there is room for what it makes of it.
 */
#include <stdio.h>
#include <string.h>

#include <weir/partitioner/cut/cut.h>
#include <weir/store/base/assert.h>

#include "plan.h"

#define BUDGET_BASE (UINT64_C(16) << 20) /* the program, what it writes through, and METIS on a small graph */

/* Bytes a vertex, of weights of this many columns, while the graph is cut. */
static uint64_t budget_of_cutting(const weir_parts_opts *opts, uint64_t columns) {
    const uint64_t held = 12 + 8 * columns + 4; /* where lists begin, targets, weights, its part */
    const uint64_t refining = 21 + 8;           /* the queue of moves (state.c), a log of them, who stays */
    /* Two cuttings to choose from, and clusters (coarsen.c), with a coarser graph of a third of the vertices. */
    const uint64_t clustering = 4 + 24 + 8 * columns + (20 + 8 * columns) / 3;
    if (opts->method == WEIR_PARTS_METIS) return held + clustering + (opts->machines > 1 ? 4 : 0);
    return held + (opts->method == WEIR_PARTS_LIKE ? refining : 4);
}

/* While it is written: new and old numbers, places, and what the largest part has: its vertices, and their ids while
 * they are sorted (write.c). */
static uint64_t budget_of_writing(const weir_parts_opts *opts) {
    return 40 + 48 / opts->parts;
}

static uint64_t budget_columns(const weir_parts_opts *opts, uint32_t types) {
    uint64_t columns = opts->balance_count ? 0 : 3; /* the default is three */
    for (uint32_t i = 0; i < opts->balance_count; i++)
        columns += opts->balances[i].weight == WEIR_PARTS_TYPES ? types : 1;
    return columns;
}

weir_err weir_parts_budget_of(const weir_snapshot *snapshot, const weir_parts_opts *opts, weir_parts_budget *budget) {
    const weir_schema *schema = weir_snapshot_schema(snapshot);
    uint64_t vertices = 0, ends = 0;
    *budget = (weir_parts_budget){.bytes = opts->memory_bytes};
    if (!budget->bytes) return WEIR_OK;
    for (uint32_t type = 0; type < weir_schema_vertex_count(schema); type++)
        vertices += weir_snapshot_vertices_of(snapshot, type)->count;
    for (uint32_t r = 0; r < weir_schema_relation_count(schema); r++)
        ends += 2 * weir_snapshot_edges_of(snapshot, r, WEIR_OUT)->edges;
    const uint64_t columns = budget_columns(opts, weir_schema_vertex_count(schema)),
                   cutting = budget_of_cutting(opts, columns), writing = budget_of_writing(opts),
                   least = BUDGET_BASE + vertices * (cutting > writing ? cutting : writing),
                   edges = ends * WEIR_CUT_END_BYTES;
    if (budget->bytes < least)
        return WEIR_ERR(WEIR_ELIMIT,
                        "%llu vertices, each with weights to balance: %llu, take %llu MiB of memory wherever their "
                        "edges lie, and %llu are allowed; allow as much, or balance fewer weights",
                        (unsigned long long)vertices, (unsigned long long)columns,
                        (unsigned long long)((least >> 20) + 1), (unsigned long long)(budget->bytes >> 20));
    int length = snprintf(budget->scratch, sizeof budget->scratch, "%s.scratch", opts->out);
    if (length < 0 || length >= (int)sizeof budget->scratch)
        return WEIR_ERR(WEIR_ELIMIT, "the path %.64s… is too long", opts->out);
    const weir_metis_graph whole = {.vertices = vertices, .constraints = (uint32_t)columns};
    const uint64_t metis = weir_cut_metis_bytes(&whole, ends);
    budget->beside_metis = BUDGET_BASE + vertices * (12 + 8 * columns + 4 + 4 + (opts->machines > 1 ? 4 : 0));
    budget->live_bytes = budget->bytes - BUDGET_BASE;
    budget->edges_in_file = least + edges > budget->bytes;
    /* Fewer edges are cut where METIS sees the whole graph: that comes before edges in memory. Repeated edges count
     * here: how many are left when they are merged is not known before it is decided where they lie, and more memory
     * must not take METIS away. */
    budget->metis_whole = opts->method == WEIR_PARTS_METIS && budget->beside_metis + metis <= budget->bytes;
    if (budget->metis_whole && budget->beside_metis + metis + edges > budget->bytes) budget->edges_in_file = true;
    return WEIR_OK;
}

uint64_t weir_parts_budget_of_metis(const weir_parts_graph *graph, uint32_t constraints) {
    const weir_parts_budget *budget = graph->budget;
    const weir_metis_graph weighed = {.vertices = graph->vertices, .constraints = constraints};
    const uint64_t held = budget->beside_metis + (budget->edges_in_file ? 0 : graph->lists.count * WEIR_CUT_END_BYTES);
    const uint64_t needed = weir_cut_metis_bytes(&weighed, graph->lists.count);
    if (!budget->bytes) return 0;
    uint64_t room = budget->bytes > held ? budget->bytes - held : 1;
    WEIR_ASSERT(!budget->metis_whole || needed <= room);
    if (!budget->metis_whole && room >= needed) room = needed - 1; /* of one machine's share it may see all */
    return room ? room : 1;
}

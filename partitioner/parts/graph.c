/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graph.c - one graph of all types, with what each vertex weighs.
 *
 * Vertices are visited in ascending order, and each adds itself to the lists of its neighbours. So lists come out
 * sorted without sorting, and a repeated edge finds its twin at the end of the list.
 */
#include <string.h>

#include <weir/partitioner/metis/metis.h>
#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>

#include "plan.h"

typedef struct graph_builder {
    const weir_snapshot *snapshot;
    const weir_schema *schema;
    weir_parts_graph *graph;
    int64_t *ends; /* where the next neighbour of a vertex goes */
} graph_builder;

static weir_err graph_no_memory(const weir_parts_graph *g) {
    return WEIR_NOMEM("while seeing %llu vertices as one graph; partition on a larger machine",
                      (unsigned long long)g->vertices);
}

static uint32_t graph_own_type(const weir_schema_relation *r, weir_direction direction) {
    return direction == WEIR_OUT ? r->from : r->to;
}

/* --- edges ----------------------------------------------------------------------------------------------------- */

/* Calls visit for the list of one vertex in each relation and direction that it has. */
typedef void (*graph_list_visit)(graph_builder *b, uint64_t vertex, const int64_t *neighbors, int64_t count,
                                 uint64_t offset);

static void graph_visit_all(graph_builder *b, graph_list_visit visit) {
    const uint64_t *offsets = b->graph->offsets;
    for (uint32_t type = 0; type < b->graph->types; type++) {
        for (uint64_t v = 0; v < offsets[type + 1] - offsets[type]; v++) {
            for (uint32_t r = 0; r < 2 * weir_schema_relation_count(b->schema); r++) {
                const weir_schema_relation *relation = weir_schema_relation_at(b->schema, r / 2);
                if (graph_own_type(relation, r % 2) != type) continue;
                const weir_snapshot_edges *e = weir_snapshot_edges_of(b->snapshot, r / 2, r % 2);
                uint64_t others = offsets[graph_own_type(relation, !(r % 2))];
                visit(b, offsets[type] + v, e->neighbors + e->indptr[v], e->indptr[v + 1] - e->indptr[v], others);
            }
        }
    }
}

/* As if no two edges had the same ends; the degree counts repeated edges and loops. */
static void graph_count_list(graph_builder *b, uint64_t vertex, const int64_t *neighbors, int64_t count,
                             uint64_t offset) {
    (void)neighbors, (void)offset;
    b->graph->indptr[vertex + 1] += count;
    b->graph->degrees[vertex] += count;
}

static void graph_add_list(graph_builder *b, uint64_t vertex, const int64_t *neighbors, int64_t count,
                           uint64_t offset) {
    weir_parts_graph *g = b->graph;
    for (int64_t i = 0; i < count; i++) {
        uint64_t other = offset + (uint64_t)neighbors[i];
        if (other == vertex) continue;
        int64_t end = b->ends[other];
        if (end > g->indptr[other] && g->neighbors[end - 1] == vertex) {
            g->edge_weights[end - 1] += g->edge_weights[end - 1] < UINT32_MAX;
        } else {
            WEIR_ASSERT(other < g->vertices && end < g->indptr[other + 1]);
            g->neighbors[end] = (uint32_t)vertex;
            g->edge_weights[end] = 1;
            b->ends[other]++;
        }
    }
}

static weir_err graph_build_edges(graph_builder *b) {
    weir_parts_graph *g = b->graph;
    graph_visit_all(b, graph_count_list);
    for (uint64_t v = 0; v < g->vertices; v++)
        g->indptr[v + 1] += g->indptr[v];
    size_t ends = (size_t)g->indptr[g->vertices];
    g->neighbors = weir_calloc(ends + 1, sizeof *g->neighbors);
    g->edge_weights = weir_calloc(ends + 1, sizeof *g->edge_weights);
    b->ends = weir_calloc(g->vertices + 1, sizeof *b->ends);
    if (!g->neighbors || !g->edge_weights || !b->ends) return graph_no_memory(g);
    memcpy(b->ends, g->indptr, g->vertices * sizeof *b->ends);
    graph_visit_all(b, graph_add_list);

    int64_t to = 0; /* repeated edges have left gaps, which are closed */
    for (uint64_t v = 0; v < g->vertices; v++) {
        int64_t from = g->indptr[v], count = b->ends[v] - from;
        WEIR_ASSERT(to <= from && b->ends[v] <= g->indptr[v + 1]);
        memmove(g->neighbors + to, g->neighbors + from, (size_t)count * sizeof *g->neighbors);
        memmove(g->edge_weights + to, g->edge_weights + from, (size_t)count * sizeof *g->edge_weights);
        g->indptr[v] = to;
        to += count;
    }
    g->indptr[g->vertices] = to;
    return WEIR_OK;
}

/* --- training vertices ----------------------------------------------------------------------------------------- */

static void graph_weigh(graph_builder *b, uint32_t type, uint64_t v, int64_t targets) {
    b->graph->targets[b->graph->offsets[type] + v] += targets;
}

/* The vertex whose list contains this position. */
static uint64_t graph_from_of(const weir_snapshot_edges *e, int64_t place) {
    uint64_t low = 0, high = e->vertices;
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        if (e->indptr[middle] <= place)
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Where the absence of a label means a value, every target is a training target. */
static void graph_weigh_targets(graph_builder *b, const weir_schema_label *label, const weir_snapshot_labels *labels) {
    const weir_snapshot_edges *e =
        label->on_relation ? weir_snapshot_edges_of(b->snapshot, label->target, WEIR_OUT) : NULL;
    uint32_t type = e ? weir_schema_relation_at(b->schema, label->target)->from : label->target;
    if (label->absent != WEIR_SCHEMA_NONE) {
        uint64_t count = weir_snapshot_vertices_of(b->snapshot, type)->count;
        WEIR_ASSERT(!e || e->vertices == count);
        for (uint64_t v = 0; v < count; v++)
            graph_weigh(b, type, v, e ? e->indptr[v + 1] - e->indptr[v] : 1);
        return;
    }
    for (uint64_t i = 0; i < labels->count; i++) {
        if (i && labels->targets[i] == labels->targets[i - 1]) continue; /* labelled again */
        graph_weigh(b, type, e ? graph_from_of(e, labels->targets[i]) : (uint64_t)labels->targets[i], 1);
    }
}

/* An import's mask `train` names the training targets, whatever else has a label. */
static bool graph_weigh_masked(graph_builder *b) {
    bool found = false;
    for (uint32_t type = 0; type < b->graph->types; type++) {
        const weir_snapshot_vertices *vertices = weir_snapshot_vertices_of(b->snapshot, type);
        for (uint32_t x = 0; x < vertices->extra_count; x++) {
            const weir_snapshot_extra *extra = &vertices->extras[x];
            if (!extra->mask || strcmp(extra->name, "train") != 0) continue;
            found = true;
            for (uint64_t v = 0; v < vertices->count; v++)
                graph_weigh(b, type, v, extra->mask[v] != 0);
        }
    }
    return found;
}

/* --- all of it ------------------------------------------------------------------------------------------------- */

weir_err weir_parts_graph_open(const weir_snapshot *snapshot, weir_parts_graph *graph) {
    graph_builder b = {.snapshot = snapshot, .schema = weir_snapshot_schema(snapshot), .graph = graph};
    *graph = (weir_parts_graph){.types = weir_schema_vertex_count(b.schema)};
    graph->offsets = weir_calloc(graph->types + 1, sizeof *graph->offsets);
    if (!graph->offsets) return graph_no_memory(graph);
    for (uint32_t type = 0; type < graph->types; type++)
        graph->offsets[type + 1] = graph->offsets[type] + weir_snapshot_vertices_of(snapshot, type)->count;
    graph->vertices = graph->offsets[graph->types];
    if (graph->vertices > WEIR_METIS_VERTICES_MAX) {
        const unsigned long long vertices = graph->vertices;
        weir_parts_graph_close(graph);
        return WEIR_ERR(WEIR_ELIMIT, "%llu vertices are more than the %u that parts are made of", vertices,
                        WEIR_METIS_VERTICES_MAX);
    }
    graph->indptr = weir_calloc(graph->vertices + 1, sizeof *graph->indptr);
    graph->targets = weir_calloc(graph->vertices + 1, sizeof *graph->targets);
    graph->degrees = weir_calloc(graph->vertices + 1, sizeof *graph->degrees);
    weir_err err = graph->indptr && graph->targets && graph->degrees ? graph_build_edges(&b) : graph_no_memory(graph);
    weir_free(b.ends);
    if (err) {
        weir_parts_graph_close(graph);
        return err;
    }
    bool masked = graph_weigh_masked(&b);
    for (uint32_t l = 0; !masked && l < weir_schema_label_count(b.schema); l++)
        graph_weigh_targets(&b, weir_schema_label_at(b.schema, l), weir_snapshot_labels_of(snapshot, l));
    for (uint64_t v = 0; v < graph->vertices; v++)
        graph->training += (uint64_t)graph->targets[v];
    return WEIR_OK;
}

void weir_parts_graph_close(weir_parts_graph *graph) {
    weir_free(graph->offsets);
    weir_free(graph->indptr);
    weir_free(graph->neighbors);
    weir_free(graph->edge_weights);
    weir_free(graph->targets);
    weir_free(graph->degrees);
    *graph = (weir_parts_graph){0};
}

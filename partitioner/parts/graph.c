/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graph.c - one graph of all types, with what each vertex weighs.
 *
 * A snapshot has both directions of each relation, so the neighbours of a vertex are those in its own lists. They are
 * sorted and merged vertex by vertex: what is written never changes again, and may as well go into a file. Of a hub,
 * whose list is not short beside all vertices, they are counted by neighbour instead: that takes no more memory than
 * one number a vertex, whatever its degree.
 */
#include <string.h>

#include <weir/partitioner/metis/metis.h>
#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>

#include "plan.h"

#define GRAPH_HUB_SHARE 16   /* a hub has a neighbour in so many vertices */
#define GRAPH_HUB_LEAST 4096 /* or that many, in a small graph */
#define GRAPH_FEW       24   /* so few are sorted without counting digits */
#define GRAPH_DIGIT     8u   /* bits */

typedef struct graph_builder {
    const weir_snapshot *snapshot;
    const weir_schema *schema;
    weir_parts_graph *graph;
    uint64_t hub;                                   /* from so many ends on it is one */
    uint32_t *ends, *spare;                         /* of one vertex that is no hub: hub of each */
    uint32_t *counts;                               /* by vertex; NULL: there is no hub yet */
    uint64_t offset[2 * WEIR_SCHEMA_RELATIONS_MAX]; /* of the neighbours of relation * 2 + direction */
} graph_builder;

static weir_err graph_no_memory(const weir_parts_graph *g) {
    return WEIR_NOMEM("while seeing %llu vertices as one graph; partition on a larger machine",
                      (unsigned long long)g->vertices);
}

static uint32_t graph_own_type(const weir_schema_relation *r, weir_direction direction) {
    return direction == WEIR_OUT ? r->from : r->to;
}

uint64_t weir_parts_degree(const weir_snapshot *snapshot, uint32_t type, uint64_t v) {
    const weir_schema *schema = weir_snapshot_schema(snapshot);
    uint64_t degree = 0;
    for (uint32_t r = 0; r < 2 * weir_schema_relation_count(schema); r++) {
        if (graph_own_type(weir_schema_relation_at(schema, r / 2), r % 2) != type) continue;
        const weir_snapshot_edges *e = weir_snapshot_edges_of(snapshot, r / 2, r % 2);
        degree += (uint64_t)(e->indptr[v + 1] - e->indptr[v]);
    }
    return degree;
}

/* --- edges ----------------------------------------------------------------------------------------------------- */

/* Into one of the two, which it returns: by digits from the lowest on, or, where there are few, each to its place. */
static uint32_t *graph_sort(uint32_t *ends, uint32_t *spare, uint64_t count, uint64_t vertices) {
    for (uint64_t i = 1; count <= GRAPH_FEW && i < count; i++) {
        const uint32_t end = ends[i];
        uint64_t at = i;
        for (; at && ends[at - 1] > end; at--)
            ends[at] = ends[at - 1];
        ends[at] = end;
    }
    if (count <= GRAPH_FEW) return ends;
    for (uint32_t shift = 0; shift < 32 && (vertices - 1) >> shift; shift += GRAPH_DIGIT) {
        uint64_t starts[(1u << GRAPH_DIGIT) + 1] = {0};
        const uint32_t mask = (1u << GRAPH_DIGIT) - 1;
        for (uint64_t i = 0; i < count; i++)
            starts[(ends[i] >> shift & mask) + 1]++;
        for (uint32_t digit = 0; digit < mask; digit++)
            starts[digit + 1] += starts[digit];
        for (uint64_t i = 0; i < count; i++)
            spare[starts[ends[i] >> shift & mask]++] = ends[i];
        uint32_t *sorted = spare;
        spare = ends;
        ends = sorted;
    }
    return ends;
}

/* Fewer than hub, so the weight of an edge fits. */
static weir_err graph_put_sorted(graph_builder *b, uint64_t vertex, uint64_t count) {
    const uint32_t *ends = graph_sort(b->ends, b->spare, count, b->graph->vertices);
    weir_err err = WEIR_OK;
    for (uint64_t i = 0, next = 0; !err && i < count; i = next) {
        while (next < count && ends[next] == ends[i])
            next++;
        if (ends[i] != vertex) err = weir_cut_lists_put(&b->graph->lists, ends[i], (uint32_t)(next - i));
    }
    return err;
}

static weir_err graph_put_counted(graph_builder *b, uint64_t vertex) {
    weir_err err = WEIR_OK;
    b->counts[vertex] = 0; /* no loops */
    for (uint64_t other = 0; !err && other < b->graph->vertices; other++) {
        if (b->counts[other]) err = weir_cut_lists_put(&b->graph->lists, (uint32_t)other, b->counts[other]);
        b->counts[other] = 0;
    }
    return err;
}

/* All ends of vertex v of this type. */
static weir_err graph_put_vertex(graph_builder *b, uint32_t type, uint64_t v) {
    const uint64_t degree = weir_parts_degree(b->snapshot, type, v);
    const bool hub = degree >= b->hub;
    uint64_t count = 0;
    if (hub && !b->counts) {
        b->counts = weir_calloc(b->graph->vertices, sizeof *b->counts);
        if (!b->counts) return graph_no_memory(b->graph);
    }
    for (uint32_t r = 0; r < 2 * weir_schema_relation_count(b->schema); r++) {
        if (graph_own_type(weir_schema_relation_at(b->schema, r / 2), r % 2) != type) continue;
        const weir_snapshot_edges *e = weir_snapshot_edges_of(b->snapshot, r / 2, r % 2);
        for (int64_t i = e->indptr[v]; i < e->indptr[v + 1]; i++) {
            const uint64_t other = b->offset[r] + (uint64_t)e->neighbors[i];
            WEIR_ASSERT(other < b->graph->vertices);
            if (hub)
                b->counts[other] += b->counts[other] < UINT32_MAX;
            else
                b->ends[count++] = (uint32_t)other;
        }
    }
    WEIR_ASSERT(hub || count == degree);
    const uint64_t vertex = b->graph->offsets[type] + v;
    return hub ? graph_put_counted(b, vertex) : graph_put_sorted(b, vertex, count);
}

static weir_err graph_build_edges(graph_builder *b) {
    weir_parts_graph *g = b->graph;
    uint64_t ends = 0;
    for (uint32_t r = 0; r < 2 * weir_schema_relation_count(b->schema); r++) {
        ends += weir_snapshot_edges_of(b->snapshot, r / 2, r % 2)->edges;
        b->offset[r] = g->offsets[graph_own_type(weir_schema_relation_at(b->schema, r / 2), !(r % 2))];
    }
    b->hub = g->vertices / GRAPH_HUB_SHARE > GRAPH_HUB_LEAST ? g->vertices / GRAPH_HUB_SHARE : GRAPH_HUB_LEAST;
    b->ends = weir_calloc(b->hub, sizeof *b->ends);
    b->spare = weir_calloc(b->hub, sizeof *b->spare);
    if (!b->ends || !b->spare) return graph_no_memory(g);
    weir_err err = weir_cut_lists_open(ends, g->budget->edges_in_file ? g->budget->scratch : NULL, &g->lists);
    for (uint32_t type = 0; !err && type < g->types; type++) {
        for (uint64_t v = g->offsets[type]; !err && v < g->offsets[type + 1]; v++) {
            err = graph_put_vertex(b, type, v - g->offsets[type]);
            g->indptr[v + 1] = (int64_t)g->lists.count;
        }
    }
    return err ? err : weir_cut_lists_end(&g->lists);
}

/* --- training vertices ----------------------------------------------------------------------------------------- */

/* Up to what the number holds. */
static void graph_weigh(graph_builder *b, uint32_t type, uint64_t v, int64_t targets) {
    uint32_t *sum = &b->graph->targets[b->graph->offsets[type] + v];
    *sum = (uint64_t)targets < UINT32_MAX - *sum ? *sum + (uint32_t)targets : UINT32_MAX;
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

/* An import's mask `train`, or the one that was named, has the training targets, whatever else has a label. */
static bool graph_weigh_masked(graph_builder *b, const char *name) {
    bool found = false;
    for (uint32_t type = 0; type < b->graph->types; type++) {
        const weir_snapshot_vertices *vertices = weir_snapshot_vertices_of(b->snapshot, type);
        for (uint32_t x = 0; x < vertices->extra_count; x++) {
            const weir_snapshot_extra *extra = &vertices->extras[x];
            if (!extra->mask || strcmp(extra->name, name) != 0) continue;
            found = true;
            for (uint64_t v = 0; v < vertices->count; v++)
                graph_weigh(b, type, v, extra->mask[v] != 0);
        }
    }
    return found;
}

/* --- all of it ------------------------------------------------------------------------------------------------- */

weir_err weir_parts_graph_open(const weir_snapshot *snapshot, const weir_parts_opts *opts,
                               const weir_parts_budget *budget, weir_parts_graph *graph) {
    graph_builder b = {.snapshot = snapshot, .schema = weir_snapshot_schema(snapshot), .graph = graph};
    *graph = (weir_parts_graph){.types = weir_schema_vertex_count(b.schema), .budget = budget};
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
    weir_err err = graph->indptr && graph->targets ? graph_build_edges(&b) : graph_no_memory(graph);
    weir_free(b.ends);
    weir_free(b.spare);
    weir_free(b.counts);
    if (err) {
        weir_parts_graph_close(graph);
        return err;
    }
    bool masked = graph_weigh_masked(&b, opts->masks[0] ? opts->masks[0] : "train");
    for (uint32_t l = 0; !masked && l < weir_schema_label_count(b.schema); l++)
        graph_weigh_targets(&b, weir_schema_label_at(b.schema, l), weir_snapshot_labels_of(snapshot, l));
    for (uint64_t v = 0; v < graph->vertices; v++)
        graph->training += graph->targets[v];
    return WEIR_OK;
}

void weir_parts_graph_drop_edges(weir_parts_graph *graph) {
    weir_cut_lists_close(&graph->lists);
    weir_free(graph->indptr);
    graph->indptr = NULL;
}

void weir_parts_graph_close(weir_parts_graph *graph) {
    weir_parts_graph_drop_edges(graph);
    weir_free(graph->offsets);
    weir_free(graph->targets);
    *graph = (weir_parts_graph){0};
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vip_ring.c - the graph is drawn into CSV files and imported, so that its parts are those that a training opens.
 *
 * The draws are those of the rings whose published figures the bench is compared with: SplitMix64 from VIP_RING_SEED
 * on, weights first, then edge by edge, then who is learnt from. So it is the same graph, vertex by vertex and edge by
 * edge, and not one that only looks like it: of rings drawn otherwise a rank reads up to a tenth more rows, or fewer.
 */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/file.h>

#include "plan.h"
#include "vip_bench.h"

#define RING_NO_MEMORY "for the bench's ring of %llu vertices"

static const double ring_least = 0.001; /* of the draw that a weight is made of: none is above 100 */

/* --- drawing ----------------------------------------------------------------------------------------------------- */

typedef struct ring_draw {
    const vip_ring *ring;
    uint64_t state;  /* of SplitMix64 */
    double *sums;    /* of the weights up to each vertex */
    uint64_t *edges; /* the lower end above the higher one, so that equal edges are equal numbers */
    size_t count;
} ring_draw;

static uint64_t ring_draw_bits(ring_draw *d) {
    uint64_t z = d->state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

/* From 0 to 1, without 1. */
static double ring_draw_unit(ring_draw *d) {
    return (double)(ring_draw_bits(d) >> 11) * 0x1p-53;
}

static void ring_draw_close(ring_draw *d) {
    weir_free(d->sums);
    weir_free(d->edges);
}

static weir_err ring_draw_open(const vip_ring *ring, ring_draw *d) {
    double sum = 0;
    *d = (ring_draw){.ring = ring, .state = ring->seed};
    d->count = (size_t)((double)ring->vertices * ring->degree / 2);
    d->sums = weir_calloc(ring->vertices, sizeof *d->sums);
    d->edges = weir_calloc(d->count, sizeof *d->edges);
    if (!d->sums || !d->edges) return WEIR_NOMEM(RING_NO_MEMORY, (unsigned long long)ring->vertices);
    for (uint64_t v = 0; v < ring->vertices; v++)
        d->sums[v] = sum += pow(ring_least + (1 - ring_least) * ring_draw_unit(d), -1 / 1.5);
    return WEIR_OK;
}

static uint64_t ring_draw_by_weight(ring_draw *d) {
    uint64_t low = 0, high = d->ring->vertices - 1;
    double at = ring_draw_unit(d) * d->sums[high];
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (d->sums[middle] > at)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* By the inverse of the distribution of distances from 1 to half way round. */
static uint64_t ring_draw_near(ring_draw *d, uint64_t from) {
    uint64_t n = d->ring->vertices;
    double rest = 1 - d->ring->gamma, farthest = pow((double)n / 2, rest);
    uint64_t distance = (uint64_t)pow(1 - ring_draw_unit(d) * (1 - farthest), 1 / rest);
    if (distance < 1) distance = 1;
    if (distance > n / 2) distance = n / 2;
    return (ring_draw_bits(d) & 1 ? from + distance : from + n - distance) % n;
}

/* One number is drawn for nothing: the program of the published figures chooses by it between two ways that are one
 * here. */
static uint64_t ring_draw_far(ring_draw *d) {
    ring_draw_bits(d);
    return ring_draw_by_weight(d);
}

static int ring_order(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void ring_draw_edges(ring_draw *d) {
    size_t distinct = 0;
    for (size_t i = 0; i < d->count; i++) {
        uint64_t a, b;
        do {
            a = ring_draw_by_weight(d);
            b = ring_draw_unit(d) < d->ring->far ? ring_draw_far(d) : ring_draw_near(d, a);
        } while (a == b);
        d->edges[i] = a < b ? a << 32 | b : b << 32 | a;
    }
    qsort(d->edges, d->count, sizeof *d->edges, ring_order);
    for (size_t i = 0; i < d->count; i++)
        if (i == 0 || d->edges[i] != d->edges[i - 1]) d->edges[distinct++] = d->edges[i];
    d->count = distinct;
}

/* --- files ------------------------------------------------------------------------------------------------------- */

/* Only what is learnt from has a label: the task is there, and no vertex more. */
static weir_err ring_write(ring_draw *d, const char *nodes, const char *edges) {
    FILE *file = fopen(nodes, "we");
    if (!file) return WEIR_ERR(WEIR_EIO, "cannot write %s", nodes);
    fprintf(file, "id,label,mask.train\n");
    for (uint64_t v = 0; v < d->ring->vertices; v++) {
        bool train = ring_draw_unit(d) < d->ring->train;
        fprintf(file, "%llu,%s,%d\n", (unsigned long long)v, !train ? "" : v % 2 ? "a" : "b", train);
    }
    bool good = !ferror(file);
    if (fclose(file) || !good) return WEIR_ERR(WEIR_EIO, "cannot write %s", nodes);
    file = fopen(edges, "we");
    if (!file) return WEIR_ERR(WEIR_EIO, "cannot write %s", edges);
    fprintf(file, "src,dst\n");
    for (size_t i = 0; i < d->count; i++)
        fprintf(file, "%llu,%llu\n", (unsigned long long)(d->edges[i] >> 32),
                (unsigned long long)(d->edges[i] & UINT32_MAX));
    good = !ferror(file);
    if (fclose(file) || !good) return WEIR_ERR(WEIR_EIO, "cannot write %s", edges);
    return WEIR_OK;
}

weir_err weir_vip_ring_make(const vip_ring *ring, const char *folder, weir_snapshot **snapshotp) {
    char nodes[PATH_MAX], edges[PATH_MAX], out[PATH_MAX];
    ring_draw draw;
    weir_snapshot_stats stats;
    weir_err err = ring_draw_open(ring, &draw);
    if (!err) err = weir_path_join(nodes, sizeof nodes, folder, "nodes.csv");
    if (!err) err = weir_path_join(edges, sizeof edges, folder, "edges.csv");
    if (!err) err = weir_path_join(out, sizeof out, folder, "ring");
    if (!err) {
        ring_draw_edges(&draw);
        err = ring_write(&draw, nodes, edges);
    }
    ring_draw_close(&draw);
    const weir_snapshot_import_opts opts = {.out = out, .nodes = nodes, .edges = edges, .undirected = true};
    if (!err) err = weir_snapshot_import(&opts, &stats);
    return err ? err : weir_snapshot_open(out, &(weir_snapshot_opts){0}, snapshotp);
}

/* --- parts ------------------------------------------------------------------------------------------------------- */

/* Where a vertex stands on the ring is its name. */
static void ring_assign_arcs(const weir_snapshot *snapshot, const vip_ring *ring, int32_t *part_of) {
    const weir_snapshot_vertices *vertices = weir_snapshot_vertices_of(snapshot, 0);
    for (uint64_t v = 0; v < vertices->count; v++) {
        uint64_t at = 0;
        for (int64_t i = vertices->key_offsets[v]; i < vertices->key_offsets[v + 1]; i++)
            at = at * 10 + (uint64_t)(vertices->key_bytes[i] - '0');
        part_of[v] = (int32_t)(at * ring->parts / ring->vertices);
    }
}

/* As weir_parts_write does, with an assignment of our own. */
static weir_err ring_write_parts(const weir_snapshot *snapshot, const weir_parts_plan *plan, const char *out) {
    const weir_parts_opts opts = {.out = out, .parts = plan->parts, .depth = 2, .clock = weir_clock_system()};
    weir_parts_draft *draft = weir_calloc(1, sizeof *draft);
    weir_parts_counts *counts = weir_calloc(1, sizeof *counts);
    weir_err err = draft && counts ? WEIR_OK : WEIR_NOMEM("while writing the bench's parts");
    if (!err && strlen(out) >= sizeof draft->folder) err = WEIR_ERR(WEIR_ELIMIT, "the path %.64s… is too long", out);
    if (!err) {
        draft->snapshot = snapshot;
        draft->plan = plan;
        draft->opts = &opts;
        memset(draft->cutting, '0', sizeof draft->cutting - 1);
        memcpy(draft->folder, out, strlen(out) + 1);
        err = weir_folder_create(out);
        if (!err) err = weir_parts_local_open(snapshot, &draft->local);
    }
    for (uint32_t part = 0; !err && part < plan->parts; part++) {
        draft->part = part;
        err = weir_parts_local_fill(&draft->local, plan, part, opts.depth);
        if (!err) err = weir_parts_write_part(draft, counts);
    }
    if (draft) weir_parts_local_close(&draft->local);
    weir_free(draft);
    weir_free(counts);
    return err;
}

weir_err weir_vip_ring_cut(const weir_snapshot *snapshot, const vip_ring *ring, vip_cut cut, const char *out,
                           double *sharep) {
    weir_parts_graph graph = {0};
    weir_parts_plan plan = {0};
    weir_parts_quality quality = {0};
    weir_parts_weights weights = {0};
    const weir_parts_opts opts = {.parts = ring->parts, .seed = 1};
    const weir_parts_budget all = {0};
    weir_err err = weir_parts_graph_open(snapshot, &opts, &all, &graph);
    if (err) return err;
    int32_t *part_of = weir_calloc(graph.vertices + 1, sizeof *part_of);
    if (!part_of) err = WEIR_NOMEM(RING_NO_MEMORY, (unsigned long long)graph.vertices);
    if (!err && cut == VIP_ARCS) ring_assign_arcs(snapshot, ring, part_of);
    if (!err) err = weir_parts_weights_open(snapshot, &graph, &opts, &weights);
    if (!err && cut == VIP_METIS) err = weir_parts_assign(snapshot, &graph, &weights, &opts, WEIR_PARTS_METIS, part_of);
    if (!err) err = weir_parts_measure(snapshot, &graph, part_of, ring->parts, 1, &quality);
    *sharep = (double)quality.cut_edges / (double)weir_snapshot_edges_of(snapshot, 0, WEIR_OUT)->edges;
    if (!err) err = weir_parts_plan_open(snapshot, &graph, part_of, ring->parts, &plan);
    if (!err) err = ring_write_parts(snapshot, &plan, out);
    weir_parts_plan_close(&plan);
    weir_parts_weights_close(&weights);
    weir_free(part_of);
    weir_parts_graph_close(&graph);
    return err;
}

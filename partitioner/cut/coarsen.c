/* SPDX-License-Identifier: Apache-2.0 */
/*
 * coarsen.c - clusters by label propagation, and the graph that they are the vertices of.
 *
 * Each vertex in turn joins the cluster that most of its edges lead to, among those with room for it. Vertices of few
 * neighbours come first: they have less choice, and hubs then find clusters to join. Whoever stays alone joins others
 * that stayed alone beside the same cluster, as the leaves of a star do when the hub's cluster is full.
 */
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/rng.h>

#include "cut_private.h"

#define COARSEN_ROUNDS 3
#define COARSEN_NONE   UINT32_MAX

/* All are by vertex, or by the vertex that a cluster is called by. */
typedef struct coarsen {
    const weir_metis_graph *graph;
    const int32_t *part_of;
    const int64_t *most;
    uint32_t *cluster_of;
    int64_t *weights; /* of clusters: vertices × constraints */
    int64_t *shared;  /* the weight of the edges between a cluster and the vertex that is looked at */
    uint32_t *beside; /* the clusters of which shared is not 0 */
    uint32_t *order;  /* vertices as they come; later the members of clusters, one cluster after the other */
    uint64_t beside_count;
} coarsen;

static void coarsen_close(coarsen *c) {
    weir_free(c->weights);
    weir_free(c->shared);
    weir_free(c->beside);
    weir_free(c->order);
}

static weir_err coarsen_open(const weir_metis_graph *graph, const int32_t *part_of, const int64_t *most,
                             uint32_t *cluster_of, coarsen *c) {
    size_t n = graph->vertices;
    *c = (coarsen){.graph = graph, .part_of = part_of, .most = most, .cluster_of = cluster_of};
    c->weights = weir_calloc(n * graph->constraints + 1, sizeof *c->weights);
    c->shared = weir_calloc(n + 1, sizeof *c->shared);
    c->beside = weir_calloc(n + 1, sizeof *c->beside);
    c->order = weir_calloc(n + 1, sizeof *c->order);
    if (!c->weights || !c->shared || !c->beside || !c->order)
        return WEIR_NOMEM("while clustering %llu vertices", (unsigned long long)n);
    memcpy(c->weights, graph->vertex_weights, n * graph->constraints * sizeof *c->weights);
    for (uint64_t v = 0; v < n; v++)
        cluster_of[v] = (uint32_t)v;
    return WEIR_OK;
}

static uint32_t coarsen_magnitude(const weir_metis_graph *g, uint64_t v) {
    uint64_t degree = (uint64_t)(g->indptr[v + 1] - g->indptr[v]);
    return degree ? 64 - (uint32_t)__builtin_clzll(degree) : 0;
}

/* By magnitude of degree, and at random among equals. */
static void coarsen_shuffle(coarsen *c, uint64_t seed) {
    weir_rng rng = weir_rng_stream(seed, c->graph->vertices, 0);
    uint64_t n = c->graph->vertices, starts[66] = {0};
    uint32_t *shuffled = c->beside;
    for (uint64_t v = 0; v < n; v++) {
        uint64_t with = weir_rng_below(&rng, v + 1);
        shuffled[v] = shuffled[with];
        shuffled[with] = (uint32_t)v;
        starts[coarsen_magnitude(c->graph, v) + 1]++;
    }
    for (uint32_t i = 0; i < 65; i++)
        starts[i + 1] += starts[i];
    for (uint64_t i = 0; i < n; i++)
        c->order[starts[coarsen_magnitude(c->graph, shuffled[i])]++] = shuffled[i];
}

static bool coarsen_fits(const coarsen *c, uint64_t v, uint32_t cluster) {
    const uint32_t constraints = c->graph->constraints;
    for (uint32_t i = 0; i < constraints; i++) {
        int64_t weight = c->graph->vertex_weights[v * constraints + i];
        if (weight && c->weights[(uint64_t)cluster * constraints + i] + weight > c->most[i]) return false;
    }
    return true;
}

static void coarsen_join(coarsen *c, uint64_t v, uint32_t cluster) {
    const uint32_t constraints = c->graph->constraints;
    for (uint32_t i = 0; i < constraints; i++) {
        int64_t weight = c->graph->vertex_weights[v * constraints + i];
        c->weights[(uint64_t)c->cluster_of[v] * constraints + i] -= weight;
        c->weights[(uint64_t)cluster * constraints + i] += weight;
    }
    c->cluster_of[v] = cluster;
}

static void coarsen_look(coarsen *c, uint64_t v) {
    const weir_metis_graph *g = c->graph;
    for (uint64_t i = 0; i < c->beside_count; i++)
        c->shared[c->beside[i]] = 0;
    c->beside_count = 0;
    for (int64_t i = g->indptr[v]; i < g->indptr[v + 1]; i++) {
        if (c->part_of && c->part_of[g->neighbors[i]] != c->part_of[v]) continue;
        uint32_t cluster = c->cluster_of[g->neighbors[i]];
        if (!c->shared[cluster]) c->beside[c->beside_count++] = cluster;
        c->shared[cluster] += g->edge_weights[i];
    }
}

/* The cluster that most edges of v lead to, full or not; COARSEN_NONE: none. */
static uint32_t coarsen_nearest(coarsen *c, uint64_t v, bool fitting) {
    uint32_t own = c->cluster_of[v], best = COARSEN_NONE;
    coarsen_look(c, v);
    for (uint64_t i = 0; i < c->beside_count; i++) {
        uint32_t cluster = c->beside[i];
        if (best != COARSEN_NONE && c->shared[cluster] <= c->shared[best]) continue;
        if (cluster == own || !fitting || coarsen_fits(c, v, cluster)) best = cluster;
    }
    return best;
}

static void coarsen_propagate(coarsen *c) {
    for (int round = 0; round < COARSEN_ROUNDS; round++) {
        uint64_t joined = 0;
        for (uint64_t i = 0; i < c->graph->vertices; i++) {
            uint32_t v = c->order[i], cluster = coarsen_nearest(c, v, true);
            if (cluster == COARSEN_NONE || cluster == c->cluster_of[v]) continue;
            coarsen_join(c, v, cluster);
            joined++;
        }
        if (joined < c->graph->vertices / 50) return;
    }
}

/* Uses `order` for how many members a cluster has, and then for the vertex that gathers those alone beside one. */
static weir_err coarsen_gather_lonely(coarsen *c, uint32_t parts) {
    const uint32_t nobody = UINT32_MAX, lonely = UINT32_MAX - 1; /* no vertex is called so */
    uint64_t n = c->graph->vertices;
    uint32_t *gathers = c->order, *alone = weir_calloc(parts, sizeof *alone); /* of those without neighbours, by part */
    if (!alone) return WEIR_NOMEM("while clustering %llu vertices", (unsigned long long)n);
    for (uint32_t p = 0; p < parts; p++)
        alone[p] = nobody;
    memset(gathers, 0, n * sizeof *gathers);
    for (uint64_t v = 0; v < n; v++)
        gathers[c->cluster_of[v]]++;
    for (uint64_t v = 0; v < n; v++)
        gathers[v] = gathers[v] == 1 && c->cluster_of[v] == v ? lonely : nobody;
    for (uint64_t v = 0; v < n; v++) {
        if (gathers[v] != lonely) continue;
        uint32_t beside = coarsen_nearest(c, v, false);
        if (beside != COARSEN_NONE && gathers[beside] == lonely) continue; /* both are, and had no room */
        uint32_t *gather = beside == COARSEN_NONE ? &alone[c->part_of ? c->part_of[v] : 0] : &gathers[beside];
        if (*gather < lonely && coarsen_fits(c, v, *gather))
            coarsen_join(c, v, *gather);
        else
            *gather = (uint32_t)v;
    }
    weir_free(alone);
    return WEIR_OK;
}

/* --- the coarser graph ------------------------------------------------------------------------------------------- */

/* Numbers clusters as they come, and puts the members of each together into order; starts has one more than clusters.
 * Returns how many there are. */
static uint64_t coarsen_number(coarsen *c, uint32_t *starts) {
    uint64_t n = c->graph->vertices, count = 0;
    int64_t *number_of = c->shared;
    for (uint64_t v = 0; v < n; v++)
        number_of[v] = -1;
    for (uint64_t v = 0; v < n; v++) {
        int64_t *number = &number_of[c->cluster_of[v]];
        if (*number < 0) *number = (int64_t)count++;
        c->cluster_of[v] = (uint32_t)*number;
        starts[*number + 1]++;
    }
    for (uint64_t i = 0; i < count; i++)
        starts[i + 1] += starts[i];
    for (uint64_t v = n; v-- > 0;)
        c->order[--starts[(uint64_t)c->cluster_of[v] + 1]] = (uint32_t)v;
    memmove(starts, starts + 1, count * sizeof *starts); /* each had become where the one before it ends */
    starts[count] = (uint32_t)n;
    memset(c->shared, 0, n * sizeof *c->shared);
    return count;
}

/* The clusters beside this one, in order of their finding, with what the edges to each weigh in shared. */
static void coarsen_look_from(coarsen *c, const uint32_t *starts, uint64_t cluster) {
    const weir_metis_graph *g = c->graph;
    for (uint64_t i = 0; i < c->beside_count; i++)
        c->shared[c->beside[i]] = 0;
    c->beside_count = 0;
    for (uint64_t m = starts[cluster]; m < starts[cluster + 1]; m++) {
        uint32_t v = c->order[m];
        for (int64_t i = g->indptr[v]; i < g->indptr[v + 1]; i++) {
            uint32_t other = c->cluster_of[g->neighbors[i]];
            if (other == cluster) continue;
            if (!c->shared[other]) c->beside[c->beside_count++] = other;
            c->shared[other] += g->edge_weights[i];
        }
    }
}

static weir_err coarsen_build(coarsen *c, const uint32_t *starts, uint64_t count, const weir_cut_opts *opts,
                              cut_level *level) {
    const uint32_t constraints = c->graph->constraints;
    level->indptr = weir_calloc(count + 1, sizeof *level->indptr);
    level->vertex_weights = weir_calloc(count * constraints + 1, sizeof *level->vertex_weights);
    level->part_of = weir_calloc(count + 1, sizeof *level->part_of);
    if (!level->indptr || !level->vertex_weights || !level->part_of) return WEIR_NOMEM("for a coarser graph");
    for (uint64_t v = 0; v < c->graph->vertices; v++) {
        for (uint32_t i = 0; i < constraints; i++)
            level->vertex_weights[(uint64_t)c->cluster_of[v] * constraints + i] +=
                c->graph->vertex_weights[v * constraints + i];
    }
    c->beside_count = 0;
    for (uint64_t k = 0; k < count; k++) { /* twice, so that there is memory for the edges that are left, and no more */
        coarsen_look_from(c, starts, k);
        level->indptr[k + 1] = level->indptr[k] + (int64_t)c->beside_count;
    }
    const uint64_t ends = (uint64_t)level->indptr[count];
    weir_err err = weir_cut_lists_open(ends, weir_cut_scratch_for(opts, ends), &level->lists);
    for (uint64_t k = 0; !err && k < count; k++) {
        coarsen_look_from(c, starts, k);
        for (uint64_t i = 0; !err && i < c->beside_count; i++) {
            const int64_t weight = c->shared[c->beside[i]];
            err = weir_cut_lists_put(&level->lists, c->beside[i], weight < UINT32_MAX ? (uint32_t)weight : UINT32_MAX);
        }
    }
    if (!err) err = weir_cut_lists_end(&level->lists);
    level->graph = (weir_metis_graph){.vertices = count,
                                      .indptr = level->indptr,
                                      .neighbors = level->lists.neighbors,
                                      .edge_weights = level->lists.edge_weights,
                                      .constraints = constraints,
                                      .vertex_weights = level->vertex_weights};
    return err;
}

weir_err weir_cut_level_open(const weir_metis_graph *finer, const int32_t *part_of, uint32_t parts, const int64_t *most,
                             uint64_t seed, const weir_cut_opts *opts, cut_level *level) {
    coarsen c = {0};
    uint32_t *starts = NULL;
    *level = (cut_level){0};
    level->cluster_of = weir_calloc(finer->vertices + 1, sizeof *level->cluster_of);
    if (!level->cluster_of) return WEIR_NOMEM("for a coarser graph");
    weir_err err = coarsen_open(finer, part_of, most, level->cluster_of, &c);
    if (err) goto done;
    coarsen_shuffle(&c, seed);
    coarsen_propagate(&c);
    err = coarsen_gather_lonely(&c, parts);
    if (err) goto done;
    weir_free(c.weights);
    c.weights = NULL;
    starts = weir_calloc(finer->vertices + 2, sizeof *starts);
    if (!starts) {
        err = WEIR_NOMEM("for a coarser graph");
        goto done;
    }
    err = coarsen_build(&c, starts, coarsen_number(&c, starts), opts, level);
done:
    weir_free(starts);
    coarsen_close(&c);
    if (err) weir_cut_level_close(level);
    return err;
}

void weir_cut_level_close(cut_level *level) {
    weir_free(level->indptr);
    weir_cut_lists_close(&level->lists);
    weir_free(level->vertex_weights);
    weir_free(level->cluster_of);
    weir_free(level->part_of);
    *level = (cut_level){0};
}

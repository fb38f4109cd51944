/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cut.c - several beginnings, each mended and refined on a hierarchy of coarser graphs; the best goes on.
 *
 * METIS by all weights is one beginning, so that nothing is worse than that. METIS by one weight, the sum of all as
 * shares, cuts less and is mended. METIS on a graph that was made coarse here needs little memory, and is what there is
 * where the whole graph is more than METIS can count, or than it may have memory for. Parts filled by degree are the
 * last beginning: hubs that know each other are no cluster, and belong together.
 */
#include <math.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>

#include "cut_private.h"

#define CUT_LEVELS   48
#define CUT_GROWTH   10   /* times the usual vertex a cluster may have: more at once, and its edges are chosen badly */
#define CUT_CLUSTERS 24   /* in a part at least, when the graph is at its coarsest                                  */
#define CUT_COARSE   2000 /* vertices of which no coarser graph is made                                             */
#define CUT_TRIES    8    /* of METIS on a coarse graph                                                             */
#define CUT_CYCLES   2    /* more hierarchies for the best beginning                                                */
#define CUT_DEGREES  (1u << 16)

/* --- the best of several ----------------------------------------------------------------------------------------- */

typedef struct cut_found {
    double excess;
    int64_t cut; /* below 0: nothing yet */
} cut_found;

/* Keeps what was tried if it is better than what is kept. */
static weir_err cut_keep_better(const weir_metis_graph *graph, const cut_limits *limits, int32_t *tried,
                                cut_found *best, int32_t *part_of) {
    cut_state s;
    weir_err err = weir_cut_state_open(graph, limits, tried, &s);
    if (err) return err;
    const cut_found found = {weir_cut_excess(&s), weir_cut_weight_between(graph, tried)};
    weir_cut_state_close(&s);
    bool level = found.excess < best->excess + CUT_EXCESS_STEP && found.excess > best->excess - CUT_EXCESS_STEP;
    if (best->cut >= 0 && (level ? found.cut >= best->cut : found.excess > best->excess)) return WEIR_OK;
    *best = found;
    memcpy(part_of, tried, graph->vertices * sizeof *tried);
    return WEIR_OK;
}

/* --- a hierarchy ------------------------------------------------------------------------------------------------- */

static weir_err cut_improve_level(const weir_metis_graph *graph, const cut_limits *limits, int32_t *part_of) {
    cut_state s;
    weir_err err = weir_cut_state_open(graph, limits, part_of, &s);
    if (err) return err;
    weir_cut_balance(&s);
    err = weir_cut_refine(&s);
    weir_cut_state_close(&s);
    return err;
}

typedef struct cut_hierarchy {
    const weir_metis_graph *graph; /* the finest */
    int32_t *part_of;
    cut_level levels[CUT_LEVELS];
    uint32_t count;
} cut_hierarchy;

static const weir_metis_graph *cut_coarsest(const cut_hierarchy *h) {
    return h->count ? &h->levels[h->count - 1].graph : h->graph;
}

static int32_t *cut_coarsest_parts(cut_hierarchy *h) {
    return h->count ? h->levels[h->count - 1].part_of : h->part_of;
}

/* Adds levels until the graph is small, or does not become so. keep: clusters lie within parts. */
static weir_err cut_go_down(cut_hierarchy *h, const cut_limits *limits, const weir_cut_opts *opts, bool keep,
                            uint64_t seed) {
    uint64_t enough = CUT_COARSE + (uint64_t)2 * CUT_CLUSTERS * limits->parts;
    int64_t most[WEIR_METIS_CONSTRAINTS_MAX];
    while (h->count < CUT_LEVELS && cut_coarsest(h)->vertices > enough) {
        const weir_metis_graph *finer = cut_coarsest(h);
        const int32_t *assigned = keep ? cut_coarsest_parts(h) : NULL;
        for (uint32_t c = 0; c < limits->constraints; c++) {
            double usual = limits->share[c] * limits->parts / (double)finer->vertices;
            /* Within parts large clusters do no harm, and mend more. */
            double largest = limits->share[c] / CUT_CLUSTERS;
            most[c] = (int64_t)fmax(1, keep ? largest : fmin(CUT_GROWTH * usual, largest));
        }
        cut_level *level = &h->levels[h->count];
        weir_err err = weir_cut_level_open(finer, assigned, limits->parts, most, seed + h->count, opts, level);
        if (err) return err;
        if (level->graph.vertices < limits->parts || level->graph.vertices > finer->vertices - finer->vertices / 20) {
            weir_cut_level_close(level);
            return WEIR_OK;
        }
        for (uint64_t v = 0; keep && v < finer->vertices; v++)
            level->part_of[level->cluster_of[v]] = assigned[v];
        h->count++;
    }
    return WEIR_OK;
}

static weir_err cut_climb_up(cut_hierarchy *h, const cut_limits *limits) {
    weir_err err = cut_improve_level(cut_coarsest(h), limits, cut_coarsest_parts(h));
    while (!err && h->count) {
        cut_level *level = &h->levels[--h->count];
        int32_t *part_of = cut_coarsest_parts(h);
        for (uint64_t v = 0; v < cut_coarsest(h)->vertices; v++)
            part_of[v] = level->part_of[level->cluster_of[v]];
        weir_cut_level_close(level);
        err = cut_improve_level(cut_coarsest(h), limits, part_of);
    }
    return err;
}

/* METIS is quick on a coarse graph, and what it gives differs much by its seed. */
static weir_err cut_coarse(const weir_metis_graph *graph, const cut_limits *limits, uint64_t seed, int32_t *part_of) {
    cut_found best = {.cut = -1};
    int32_t *tried = weir_calloc(graph->vertices + 1, sizeof *tried);
    weir_err err = WEIR_OK;
    if (!tried) return WEIR_NOMEM("while cutting %llu vertices", (unsigned long long)graph->vertices);
    for (uint64_t try = 0; !err && try < CUT_TRIES; try++) {
        bool sum = limits->constraints > 1 && try % 2;
        err = weir_cut_metis(graph, limits, sum, seed + try, tried);
        if (!err) err = cut_improve_level(graph, limits, tried);
        if (!err) err = cut_keep_better(graph, limits, tried, &best, part_of);
    }
    weir_free(tried);
    return err;
}

/* keep: what part_of has is improved; otherwise METIS cuts the coarsest graph. */
static weir_err cut_cycle(const weir_metis_graph *graph, const cut_limits *limits, const weir_cut_opts *opts, bool keep,
                          uint64_t seed, int32_t *part_of) {
    cut_hierarchy *h = weir_calloc(1, sizeof *h);
    if (!h) return WEIR_NOMEM("while cutting a graph");
    h->graph = graph;
    h->part_of = part_of;
    weir_err err = cut_go_down(h, limits, opts, keep, seed);
    if (!err && !keep) err = cut_coarse(cut_coarsest(h), limits, seed, cut_coarsest_parts(h));
    if (!err) err = cut_climb_up(h, limits);
    while (h->count)
        weir_cut_level_close(&h->levels[--h->count]);
    weir_free(h);
    return err;
}

/* --- beginnings -------------------------------------------------------------------------------------------------- */

/* The whole graph by METIS, by all weights or by their sum, as it is and mended. Where METIS cannot, there is one
 * beginning less. */
static weir_err cut_try_metis(const weir_metis_graph *graph, const cut_limits *limits, const weir_cut_opts *opts,
                              bool sum, int32_t *tried, cut_found *best, int32_t *part_of) {
    weir_err err = weir_cut_metis(graph, limits, sum, opts->seed, tried);
    if (weir_err_is(err, WEIR_ELIMIT)) return WEIR_OK; /* it cannot count so far */
    if (!err) err = cut_keep_better(graph, limits, tried, best, part_of);
    if (!err) err = cut_cycle(graph, limits, opts, true, opts->seed, tried);
    return err ? err : cut_keep_better(graph, limits, tried, best, part_of);
}

/* Vertices by degree, the highest first; of equals the lowest number. Above CUT_DEGREES all count as equal. */
static weir_err cut_order_by_degree(const weir_metis_graph *graph, uint32_t **orderp) {
    const uint64_t n = graph->vertices;
    uint64_t *at = weir_calloc(CUT_DEGREES + 1, sizeof *at); /* where those of each degree begin */
    uint32_t *order = *orderp = weir_calloc(n + 1, sizeof *order);
    if (!at || !order) {
        weir_free(at);
        return WEIR_NOMEM("while cutting %llu vertices", (unsigned long long)n);
    }
    for (int pass = 0; pass < 2; pass++) {
        for (uint64_t v = 0; v < n; v++) {
            const uint64_t degree = (uint64_t)(graph->indptr[v + 1] - graph->indptr[v]);
            const uint64_t lower = CUT_DEGREES - (degree < CUT_DEGREES ? degree : CUT_DEGREES);
            if (pass == 1) {
                order[at[lower]++] = (uint32_t)v;
            } else if (lower < CUT_DEGREES) {
                at[lower + 1]++;
            }
        }
        for (uint64_t d = 1; pass == 0 && d <= CUT_DEGREES; d++)
            at[d] += at[d - 1];
    }
    weir_free(at);
    return WEIR_OK;
}

/* Ends of parts lie where a weight has had its share of all so far, so that what is rounded in one part is made up for
 * in the next. Each part gets some vertex. *fitp: each vertex has some weight, and the last part is not above twice
 * what it may have; else this is no beginning. */
static void cut_fill_in_order(const weir_metis_graph *graph, const cut_limits *limits, const uint32_t *order,
                              int32_t *part_of, bool *fitp) {
    const uint32_t constraints = limits->constraints, parts = limits->parts;
    const uint64_t n = graph->vertices;
    double total[WEIR_METIS_CONSTRAINTS_MAX] = {0}, filled[WEIR_METIS_CONSTRAINTS_MAX] = {0};
    double last[WEIR_METIS_CONSTRAINTS_MAX] = {0}; /* where the part at hand began */
    uint32_t part = 0;
    for (uint64_t i = 0; i < n * constraints; i++)
        total[i % constraints] += (double)graph->vertex_weights[i];
    *fitp = true;
    for (uint64_t i = 0, begin = 0; i < n; i++) {
        const int64_t *weights = graph->vertex_weights + (uint64_t)order[i] * constraints;
        bool weighs = false, full = n - i <= parts - 1 - part; /* as many vertices are left as parts */
        for (uint32_t c = 0; c < constraints; c++) {
            weighs = weighs || weights[c];
            full = full || (weights[c] && filled[c] + (double)weights[c] > total[c] * (part + 1) / parts);
        }
        *fitp = *fitp && weighs;
        if (full && i > begin && part + 1 < parts) {
            part++;
            begin = i;
            memcpy(last, filled, sizeof last);
        }
        for (uint32_t c = 0; c < constraints; c++)
            filled[c] += (double)weights[c];
        part_of[order[i]] = (int32_t)part;
    }
    for (uint32_t c = 0; c < constraints; c++)
        *fitp = *fitp && filled[c] - last[c] <= 2 * (double)limits->most[c];
}

/* One part after the other is filled, hubs first. In a graph of hubs most edges are between these, and who looks for
 * clusters spreads them over all parts: each has followers that know nobody else. */
static weir_err cut_try_hubs(const weir_metis_graph *graph, const cut_limits *limits, const weir_cut_opts *opts,
                             int32_t *tried, cut_found *best, int32_t *part_of) {
    uint32_t *order = NULL;
    bool fit = false;
    weir_err err = cut_order_by_degree(graph, &order);
    if (!err) cut_fill_in_order(graph, limits, order, tried, &fit);
    weir_free(order);
    if (err || !fit || weir_cut_weight_between(graph, tried) >= best->cut) return err;
    err = cut_cycle(graph, limits, opts, true, opts->seed, tried);
    return err ? err : cut_keep_better(graph, limits, tried, best, part_of);
}

/* A part that has nothing gets the vertex of the lowest degree out of one that has several: what is cut, and what is
 * above the limits, says nothing against an empty part. */
static weir_err cut_fill_empty(const weir_metis_graph *graph, uint32_t parts, int32_t *part_of) {
    uint64_t *count = weir_calloc(parts, sizeof *count);
    if (!count) return WEIR_NOMEM("while cutting into %u parts", parts);
    for (uint64_t v = 0; v < graph->vertices; v++)
        count[part_of[v]]++;
    for (uint32_t part = 0; part < parts; part++) {
        int64_t lowest = INT64_MAX;
        uint64_t found = 0;
        if (count[part]) continue;
        for (uint64_t v = 0; v < graph->vertices; v++) {
            const int64_t degree = graph->indptr[v + 1] - graph->indptr[v];
            if (count[part_of[v]] < 2 || degree >= lowest) continue;
            lowest = degree;
            found = v;
        }
        WEIR_ASSERT(lowest < INT64_MAX); /* there are more vertices than parts */
        count[part_of[found]]--;
        count[part]++;
        part_of[found] = (int32_t)part;
    }
    weir_free(count);
    return WEIR_OK;
}

weir_err weir_cut_solve(const weir_metis_graph *graph, const cut_limits *limits, const weir_cut_opts *opts,
                        int32_t *part_of) {
    bool whole = !opts->memory_bytes ||
                 weir_cut_metis_bytes(graph, (uint64_t)graph->indptr[graph->vertices]) <= opts->memory_bytes;
    cut_found best = {.cut = -1};
    if (graph->vertices <= limits->parts) {
        for (uint64_t v = 0; v < graph->vertices; v++)
            part_of[v] = (int32_t)v;
        return WEIR_OK;
    }
    int32_t *tried = weir_calloc(graph->vertices, sizeof *tried);
    if (!tried) return WEIR_NOMEM("while cutting %llu vertices", (unsigned long long)graph->vertices);
    weir_err err = WEIR_OK;
    for (int sum = 0; !err && whole && sum <= (limits->constraints > 1 && !opts->quick); sum++)
        err = cut_try_metis(graph, limits, opts, sum, tried, &best, part_of);
    if (!err && (!opts->quick || best.cut < 0)) {
        err = cut_cycle(graph, limits, opts, false, opts->seed, tried);
        if (!err) err = cut_keep_better(graph, limits, tried, &best, part_of);
    }
    if (!err) err = cut_try_hubs(graph, limits, opts, tried, &best, part_of);
    for (uint64_t cycle = 1; !err && !opts->quick && cycle <= CUT_CYCLES; cycle++) {
        memcpy(tried, part_of, graph->vertices * sizeof *tried);
        err = cut_cycle(graph, limits, opts, true, opts->seed + cycle, tried);
        if (!err) err = cut_keep_better(graph, limits, tried, &best, part_of);
    }
    weir_free(tried);
    return err ? err : cut_fill_empty(graph, limits->parts, part_of);
}

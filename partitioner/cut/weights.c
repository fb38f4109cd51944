/* SPDX-License-Identifier: Apache-2.0 */
/* weights.c - what a part may have of each weight, what none can have less than, and graphs as METIS can count them. */
#include <math.h>
#include <stdlib.h>

#include <weir/store/base/alloc.h>

#include "cut_private.h"

/* --- limits ------------------------------------------------------------------------------------------------------ */

#define WEIGHTS_SHARING 8 /* so many heavy vertices in one part are looked for */

static int weights_descending(const void *a, const void *b) {
    const int64_t *x = a, *y = b;
    return (*x < *y) - (*x > *y);
}

/* Of the n × parts + 1 heaviest vertices some part has n + 1, whoever cuts. Only those that n + 1 of are above most
 * matter, of which there are at most so many: their sum is at most the whole. */
static weir_err weights_of_heavy(const weir_metis_graph *g, uint32_t c, uint32_t parts, int64_t most, int64_t *leastp,
                                 weir_cut_bound *boundp) {
    int64_t *heavy = NULL;
    size_t count = 0, capacity = 0;
    for (uint64_t v = 0; v < g->vertices; v++) {
        int64_t weight = g->vertex_weights[v * g->constraints + c];
        if (weight <= most / WEIGHTS_SHARING) continue;
        if (!WEIR_GROW(heavy, capacity, count)) {
            weir_free(heavy);
            return WEIR_NOMEM("while looking for heavy vertices");
        }
        heavy[count++] = weight;
    }
    if (count) qsort(heavy, count, sizeof *heavy, weights_descending);
    for (uint32_t n = 0; n < WEIGHTS_SHARING && (size_t)n * parts < count; n++) {
        int64_t together = heavy[(size_t)n * parts] * (int64_t)(n + 1);
        if (together <= *leastp || together <= most) continue;
        *leastp = together;
        *boundp = n ? WEIR_CUT_HEAVY : WEIR_CUT_HEAVIEST;
    }
    weir_free(heavy);
    return WEIR_OK;
}

weir_err weir_cut_least(const weir_metis_graph *graph, uint32_t c, uint32_t parts, double tolerance, int64_t *leastp,
                        weir_cut_bound *boundp) {
    uint64_t sum = 0;
    for (uint64_t v = 0; v < graph->vertices; v++) {
        int64_t weight = graph->vertex_weights[v * graph->constraints + c];
        if (weight < 0) return WEIR_ERR(WEIR_EINVAL, "the graph has a negative weight");
        if (weight > INT64_MAX / (WEIGHTS_SHARING + 1) || __builtin_add_overflow(sum, (uint64_t)weight, &sum) ||
            sum > (uint64_t)INT64_MAX / 2)
            return WEIR_ERR(WEIR_EINVAL, "the weights of the graph add up to more than 2^62");
    }
    *leastp = (int64_t)(sum / parts + (sum % parts != 0));
    int64_t most = (int64_t)floor((double)sum / parts * tolerance);
    *boundp = *leastp > most ? WEIR_CUT_WHOLE : WEIR_CUT_SHARE;
    return weights_of_heavy(graph, c, parts, most, leastp, boundp);
}

weir_err weir_cut_limits_of(const weir_metis_graph *graph, uint32_t parts, const double *tolerance,
                            cut_limits *limits) {
    *limits = (cut_limits){.parts = parts, .constraints = graph->constraints};
    for (uint32_t c = 0; c < graph->constraints; c++) {
        int64_t least = 0;
        uint64_t sum = 0;
        weir_cut_bound bound;
        weir_err err = weir_cut_least(graph, c, parts, tolerance[c], &least, &bound);
        if (err) return err;
        for (uint64_t v = 0; v < graph->vertices; v++)
            sum += (uint64_t)graph->vertex_weights[v * graph->constraints + c];
        limits->share[c] = (double)sum / parts;
        limits->most[c] = (int64_t)floor(limits->share[c] * tolerance[c]);
        if (limits->most[c] < least) limits->most[c] = least;
    }
    return WEIR_OK;
}

/* --- for METIS --------------------------------------------------------------------------------------------------- */

/* METIS adds weights up in integers that may have 32 bits; twice that fits, too. */
#define WEIGHTS_METIS_SUM 1e9

/* Those of edges, so much smaller that their sum fits, and at least 1; *scaledp stays NULL where it does. */
static weir_err weights_of_edges(const weir_metis_graph *graph, uint32_t **scaledp) {
    uint64_t count = (uint64_t)graph->indptr[graph->vertices];
    double sum = 0;
    *scaledp = NULL;
    for (uint64_t i = 0; i < count; i++)
        sum += graph->edge_weights[i];
    if (sum <= WEIGHTS_METIS_SUM) return WEIR_OK;
    uint32_t *scaled = *scaledp = weir_calloc(count + 1, sizeof *scaled);
    if (!scaled) return WEIR_NOMEM("while weighing %llu ends of edges", (unsigned long long)count);
    for (uint64_t i = 0; i < count; i++)
        scaled[i] = (uint32_t)fmax(1, graph->edge_weights[i] * (WEIGHTS_METIS_SUM / sum));
    return WEIR_OK;
}

static double weights_in_shares(const weir_metis_graph *graph, const cut_limits *limits, uint64_t v) {
    double sum = 0;
    for (uint32_t c = 0; c < limits->constraints; c++) {
        if (limits->share[c] > 0) sum += (double)graph->vertex_weights[v * graph->constraints + c] / limits->share[c];
    }
    return sum;
}

/* What a vertex has of all weights together, as shares of a part. A machine that has what is above a share by itself
 * has more than its parts' shares. NULL: no memory. */
static int64_t *weights_of_sum(const weir_metis_graph *graph, const cut_limits *limits) {
    int64_t *sums = weir_calloc(graph->vertices + 1, sizeof *sums);
    double total = 0, unit = WEIGHTS_METIS_SUM / limits->parts / limits->constraints;
    for (uint64_t v = 0; sums && v < graph->vertices; v++)
        total += weights_in_shares(graph, limits, v);
    if (total * unit > 2 * WEIGHTS_METIS_SUM) unit = WEIGHTS_METIS_SUM / total;
    for (uint64_t v = 0; sums && v < graph->vertices; v++)
        sums[v] = (int64_t)(weights_in_shares(graph, limits, v) * unit);
    return sums;
}

/* Each column by itself. NULL: no memory. */
static int64_t *weights_of_all(const weir_metis_graph *graph, const cut_limits *limits) {
    int64_t *all = weir_calloc(graph->vertices * graph->constraints + 1, sizeof *all);
    for (uint32_t c = 0; all && c < graph->constraints; c++) {
        double sum = limits->share[c] * limits->parts, here = 0;
        for (uint64_t i = c; i < graph->vertices * graph->constraints; i += graph->constraints)
            here += (double)graph->vertex_weights[i];
        if (here > 2 * sum) sum = here;
        const double scale = sum > WEIGHTS_METIS_SUM ? WEIGHTS_METIS_SUM / sum : 1;
        for (uint64_t i = c; i < graph->vertices * graph->constraints; i += graph->constraints)
            all[i] = scale < 1 ? (int64_t)((double)graph->vertex_weights[i] * scale) : graph->vertex_weights[i];
    }
    return all;
}

/* As measured with a METIS of 32 bits: what it makes of the graph, and copies of what is by vertex. Sparse graphs took
 * 24 bytes an end; an R-MAT graph, whose hubs keep it from shrinking as METIS coarsens it, took 52. */
uint64_t weir_cut_metis_bytes(const weir_metis_graph *graph, uint64_t ends) {
    return ends * 52 + graph->vertices * (16 + 16 * (uint64_t)graph->constraints);
}

weir_err weir_cut_metis(const weir_metis_graph *graph, const cut_limits *limits, bool sum, uint64_t seed,
                        int32_t *part_of) {
    double tolerance[WEIR_METIS_CONSTRAINTS_MAX] = {1.03};
    weir_metis_graph fits = *graph;
    uint32_t *edge_weights = NULL;
    int64_t *vertex_weights = NULL;
    weir_err err = weights_of_edges(graph, &edge_weights);
    if (err) return err;
    vertex_weights = sum ? weights_of_sum(graph, limits) : weights_of_all(graph, limits);
    if (edge_weights) fits.edge_weights = edge_weights;
    fits.vertex_weights = vertex_weights;
    fits.constraints = sum ? 1 : graph->constraints;
    fits.tolerance = tolerance;
    for (uint32_t c = 0; !sum && c < graph->constraints; c++)
        tolerance[c] = limits->share[c] > 0 ? fmax((double)limits->most[c] / limits->share[c], 1.001) : 1.001;
    if (!vertex_weights) err = WEIR_NOMEM("while weighing %llu vertices", (unsigned long long)graph->vertices);
    if (!err) err = weir_metis_partition(&fits, limits->parts, seed, part_of);
    weir_free(edge_weights);
    weir_free(vertex_weights);
    return err;
}

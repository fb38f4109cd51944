/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metis.c - a graph in METIS's own integers, and back. Where these have 32 bits METIS is given the lists of neighbours
 * and their weights as they are, which it only reads (a test looks): a copy would be 8 bytes for each end of an edge.
 */
#include <string.h>

#include <metis.h>

#include <weir/partitioner/metis/metis.h>
#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>

/* How far above its share a part may be: the first constraint balances easily, degrees are lumpier. */
#define FIRST_SLACK 1.03f
#define OTHER_SLACK 1.05f

typedef struct metis_copy {
    idx_t *indptr, *neighbors, *edge_weights, *vertex_weights, *parts;
} metis_copy;

static weir_err metis_too_large(const char *what, uint64_t count) {
    return WEIR_ERR(WEIR_ELIMIT,
                    "METIS counts in %d bits here, and the graph has %llu %s; use --method hash, or build "
                    "with a METIS of 64 bits",
                    IDXTYPEWIDTH, (unsigned long long)count, what);
}

/* METIS adds weights up in the same integers. */
static weir_err metis_check_edges(const uint32_t *weights, uint64_t count) {
    uint64_t sum = 0;
    for (uint64_t i = 0; i < count; i++)
        sum += weights[i];
    return sum <= (uint64_t)IDX_MAX ? WEIR_OK : metis_too_large("ends of edges, repeated ones included", sum);
}

static weir_err metis_check_sum(const int64_t *weights, uint64_t count, uint64_t step, const char *what) {
    uint64_t sum = 0;
    for (uint64_t i = 0; i < count; i += step) {
        if (weights[i] < 0) return WEIR_ERR(WEIR_EINVAL, "the graph has a negative weight");
        if (__builtin_add_overflow(sum, (uint64_t)weights[i], &sum)) sum = UINT64_MAX;
    }
    return sum <= (uint64_t)IDX_MAX ? WEIR_OK : metis_too_large(what, sum);
}

static weir_err metis_check(const weir_metis_graph *g, uint32_t parts) {
    uint64_t entries = (uint64_t)g->indptr[g->vertices], numbers = g->vertices * g->constraints;
    weir_err err = WEIR_OK;
    if (g->vertices < parts) {
        return WEIR_ERR(WEIR_ELIMIT, "%u parts of %llu vertices would leave some empty; ask for fewer", parts,
                        (unsigned long long)g->vertices);
    }
    if (!g->constraints || g->constraints > WEIR_METIS_CONSTRAINTS_MAX) {
        return WEIR_ERR(WEIR_EINVAL, "%u constraints are not 1 to %u", g->constraints, WEIR_METIS_CONSTRAINTS_MAX);
    }
    if (numbers > (uint64_t)IDX_MAX) err = metis_too_large("weights", numbers);
    if (!err && entries > (uint64_t)IDX_MAX) err = metis_too_large("ends of edges", entries);
    if (!err) err = metis_check_edges(g->edge_weights, entries);
    for (uint32_t c = 0; !err && c < g->constraints; c++)
        err = metis_check_sum(g->vertex_weights + c, numbers - c, g->constraints, "as the sum of a weight");
    return err;
}

/* NULL: no memory. */
static idx_t *metis_copy_numbers(const int64_t *numbers, uint64_t count) {
    idx_t *copied = weir_calloc(count + 1, sizeof *copied);
    for (uint64_t i = 0; copied && i < count; i++)
        copied[i] = (idx_t)numbers[i];
    return copied;
}

/* Of a list. NULL: no memory. */
static idx_t *metis_see_list(const uint32_t *numbers, uint64_t count) {
#if IDXTYPEWIDTH == 32
    (void)count;
    return (idx_t *)(uintptr_t)numbers;
#else
    idx_t *copied = weir_calloc(count + 1, sizeof *copied);
    for (uint64_t i = 0; copied && i < count; i++)
        copied[i] = (idx_t)numbers[i];
    return copied;
#endif
}

static void metis_close_list(idx_t *list) {
#if IDXTYPEWIDTH == 32
    (void)list;
#else
    weir_free(list);
#endif
}

static weir_err metis_copy_open(const weir_metis_graph *g, metis_copy *c) {
    uint64_t entries = (uint64_t)g->indptr[g->vertices];
    c->indptr = metis_copy_numbers(g->indptr, g->vertices + 1);
    c->neighbors = metis_see_list(g->neighbors, entries);
    c->edge_weights = metis_see_list(g->edge_weights, entries);
    c->vertex_weights = metis_copy_numbers(g->vertex_weights, g->vertices * g->constraints);
    c->parts = weir_calloc(g->vertices + 1, sizeof *c->parts);
    if (c->indptr && c->neighbors && c->edge_weights && c->vertex_weights && c->parts) return WEIR_OK;
    return WEIR_NOMEM("while giving METIS %llu vertices and %llu ends of edges", (unsigned long long)g->vertices,
                      (unsigned long long)entries);
}

weir_err weir_metis_partition(const weir_metis_graph *graph, uint32_t parts, uint64_t seed, int32_t *part_of) {
    metis_copy c = {0};
    weir_err err = metis_check(graph, parts);
    if (err) return err;
    if (parts == 1) {
        memset(part_of, 0, graph->vertices * sizeof *part_of);
        return WEIR_OK;
    }
    err = metis_copy_open(graph, &c);
    if (err) goto done;

    idx_t options[METIS_NOPTIONS], vertices = (idx_t)graph->vertices, constraints = (idx_t)graph->constraints;
    idx_t count = (idx_t)parts, cut = 0;
    real_t slack[WEIR_METIS_CONSTRAINTS_MAX];
    for (uint32_t i = 0; i < graph->constraints; i++)
        slack[i] = graph->tolerance ? (real_t)graph->tolerance[i] : i ? OTHER_SLACK : FIRST_SLACK;
    METIS_SetDefaultOptions(options);
    options[METIS_OPTION_SEED] = (idx_t)((seed ^ seed >> 31) & 0x7fffffff);
    options[METIS_OPTION_NUMBERING] = 0;
    int status = METIS_PartGraphKway(&vertices, &constraints, c.indptr, c.neighbors, c.vertex_weights, NULL,
                                     c.edge_weights, &count, NULL, slack, options, &cut, c.parts);
    if (status == METIS_ERROR_MEMORY) {
        err = WEIR_ERR(WEIR_ENOMEM, "METIS has no memory for %llu vertices; use --method hash",
                       (unsigned long long)graph->vertices);
    } else if (status != METIS_OK) {
        err = WEIR_ERR(WEIR_EINTERNAL, "METIS refused the graph with status %d", status);
    }
    for (uint64_t i = 0; !err && i < graph->vertices; i++) {
        WEIR_ASSERT(c.parts[i] >= 0 && c.parts[i] < count);
        part_of[i] = (int32_t)c.parts[i];
    }
done:
    weir_free(c.indptr);
    metis_close_list(c.neighbors);
    metis_close_list(c.edge_weights);
    weir_free(c.vertex_weights);
    weir_free(c.parts);
    return err;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* weights.c - what parts are to have their share of, vertex by vertex; and what they got, and why not less. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/partitioner/cut/cut.h>
#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>

#include "plan.h"

static_assert(WEIR_PARTS_BALANCES_MAX <= WEIR_METIS_CONSTRAINTS_MAX, "each weight is a constraint");

#define WEIGHTS_TOLERANCE       1.03
#define WEIGHTS_TOLERANCE_EDGES 1.05 /* they are lumpier */

static const char *const weights_names[] = {"vertices", "types",  "training", "validation",
                                            "test",     "degree", "in-edges"};

const char *weir_parts_weight_name(weir_parts_weight weight) {
    return weights_names[weight];
}

/* --- options ----------------------------------------------------------------------------------------------------- */

static weir_err weights_read_name(const char *name, size_t length, weir_parts_opts *opts) {
    weir_parts_weight weight = 0;
    while (weight < WEIR_PARTS_WEIGHTS &&
           (strlen(weights_names[weight]) != length || memcmp(weights_names[weight], name, length) != 0))
        weight++;
    if (weight == WEIR_PARTS_WEIGHTS)
        return WEIR_ERR(WEIR_EUSAGE,
                        "'%.*s' is nothing to balance; it is vertices, types, training, validation, test, degree "
                        "or in-edges",
                        (int)length, name);
    for (uint32_t i = 0; i < opts->balance_count; i++) {
        if (opts->balances[i].weight == weight)
            return WEIR_ERR(WEIR_EUSAGE, "'%s' is there twice", weights_names[weight]);
    }
    if (opts->balance_count == WEIR_PARTS_BALANCES_MAX)
        return WEIR_ERR(WEIR_EUSAGE, "more than %u weights to balance", WEIR_PARTS_BALANCES_MAX);
    opts->balances[opts->balance_count++] = (weir_parts_balance){.weight = weight};
    return WEIR_OK;
}

static void weights_default(weir_parts_opts *opts) {
    opts->balances[0].weight = WEIR_PARTS_VERTICES;
    opts->balances[1].weight = WEIR_PARTS_TRAINING;
    opts->balances[2].weight = WEIR_PARTS_DEGREE;
    opts->balance_count = 3;
}

static weir_err weights_read_tolerances(const char *tolerances, weir_parts_opts *opts) {
    uint32_t given = 0;
    for (const char *at = tolerances;; given++) {
        char *end = NULL;
        double tolerance = strtod(at, &end);
        if (end == at || (*end && *end != ',') || !(tolerance >= 1 && tolerance <= WEIR_PARTS_COUNT_MAX))
            return WEIR_ERR(WEIR_EUSAGE, "the tolerance '%.32s' is not a number from 1 to %u, such as 1.03", at,
                            WEIR_PARTS_COUNT_MAX);
        if (given < opts->balance_count) opts->balances[given].tolerance = tolerance;
        if (!*end) break;
        at = end + 1;
    }
    given++;
    if (given != 1 && given != opts->balance_count)
        return WEIR_ERR(WEIR_EUSAGE, "%u tolerances for %u weights; give one for all, or one for each", given,
                        opts->balance_count);
    for (uint32_t i = given; i < opts->balance_count; i++)
        opts->balances[i].tolerance = opts->balances[0].tolerance;
    return WEIR_OK;
}

weir_err weir_parts_read_balances(const char *balances, const char *tolerances, weir_parts_opts *opts) {
    weir_err err = WEIR_OK;
    memset(opts->balances, 0, sizeof opts->balances);
    opts->balance_count = 0;
    if (!balances) weights_default(opts);
    for (const char *at = balances; !err && at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
        err = weights_read_name(at, strcspn(at, ","), opts);
    return err || !tolerances ? err : weights_read_tolerances(tolerances, opts);
}

/* --- what a vertex weighs ---------------------------------------------------------------------------------------- */

static bool weights_is_mask(const weir_parts_opts *opts, const char *name, weir_parts_weight weight) {
    const char *named = opts->masks[weight == WEIR_PARTS_TEST ? 2 : 1];
    if (named) return strcmp(name, named) == 0;
    if (weight == WEIR_PARTS_TEST) return strcmp(name, "test") == 0;
    return strcmp(name, "val") == 0 || strcmp(name, "valid") == 0 || strcmp(name, "validation") == 0;
}

/* Of a type in masks of the names of this weight. */
static int64_t weights_masked(const weir_snapshot_vertices *vertices, const weir_parts_opts *opts, uint64_t v,
                              weir_parts_weight weight) {
    for (uint32_t x = 0; x < vertices->extra_count; x++) {
        const weir_snapshot_extra *extra = &vertices->extras[x];
        if (extra->mask && weights_is_mask(opts, extra->name, weight)) return extra->mask[v] != 0;
    }
    return 0;
}

static int64_t weights_in_edges(const weir_snapshot *snapshot, uint32_t type, uint64_t v) {
    const weir_schema *schema = weir_snapshot_schema(snapshot);
    int64_t sum = 0;
    for (uint32_t r = 0; r < weir_schema_relation_count(schema); r++) {
        const weir_snapshot_edges *e = weir_snapshot_edges_of(snapshot, r, WEIR_IN);
        if (weir_schema_relation_at(schema, r)->to == type) sum += e->indptr[v + 1] - e->indptr[v];
    }
    return sum;
}

/* type: of WEIR_PARTS_TYPES, the one that counts. */
static int64_t weights_of(const weir_snapshot *snapshot, const weir_parts_graph *g, const weir_parts_opts *opts,
                          weir_parts_weight weight, uint32_t type, uint32_t type_of_v, uint64_t v) {
    switch (weight) {
    case WEIR_PARTS_TYPES:
        return type == type_of_v;
    case WEIR_PARTS_TRAINING:
        return g->targets[v];
    case WEIR_PARTS_VALIDATION:
    case WEIR_PARTS_TEST:
        return weights_masked(weir_snapshot_vertices_of(snapshot, type_of_v), opts, v - g->offsets[type_of_v], weight);
    case WEIR_PARTS_DEGREE:
        return (int64_t)weir_parts_degree(snapshot, type_of_v, v - g->offsets[type_of_v]);
    case WEIR_PARTS_IN_EDGES:
        return weights_in_edges(snapshot, type_of_v, v - g->offsets[type_of_v]);
    default:
        return 1;
    }
}

/* Puts a column behind those that are there, or none if its sum is 0. It has room. */
static void weights_put(const weir_snapshot *snapshot, const weir_parts_graph *g, const weir_parts_opts *opts,
                        weir_parts_weight weight, uint32_t type, uint32_t held, uint32_t stride,
                        weir_parts_weights *w) {
    uint64_t total = 0;
    for (uint32_t t = 0; t < g->types; t++) {
        for (uint64_t v = g->offsets[t]; v < g->offsets[t + 1]; v++) {
            int64_t weighs = weights_of(snapshot, g, opts, weight, type, t, v);
            w->numbers[v * stride + w->columns] = weighs;
            total += (uint64_t)weighs;
        }
    }
    if (held < w->count) w->held[held].total = total;
    w->held_of[w->columns] = held;
    w->tolerance[w->columns] = held < w->count ? w->held[held].asked : WEIGHTS_TOLERANCE;
    w->columns += total > 0;
}

/* Columns that turned out empty leave gaps at the end of each row. */
static void weights_close_gaps(const weir_parts_graph *g, uint32_t stride, weir_parts_weights *w) {
    for (uint64_t v = 0; w->columns < stride && v < g->vertices; v++)
        memmove(w->numbers + v * w->columns, w->numbers + v * stride, w->columns * sizeof *w->numbers);
}

/* One of each, and one of each type. */
static weir_err weights_name(const weir_snapshot *snapshot, const weir_parts_opts *opts, weir_parts_weights *w,
                             weir_parts_weight *weight_of, uint32_t *type_of) {
    const weir_schema *schema = weir_snapshot_schema(snapshot);
    for (uint32_t i = 0; i < opts->balance_count; i++) {
        const weir_parts_balance *b = &opts->balances[i];
        uint32_t columns = b->weight == WEIR_PARTS_TYPES ? weir_schema_vertex_count(schema) : 1;
        const bool edges = b->weight == WEIR_PARTS_DEGREE || b->weight == WEIR_PARTS_IN_EDGES;
        double usual = edges ? WEIGHTS_TOLERANCE_EDGES : WEIGHTS_TOLERANCE;
        double asked = b->tolerance != 0 ? b->tolerance : usual;
        if (!(asked >= 1)) return WEIR_ERR(WEIR_EINVAL, "a tolerance of %g would leave vertices out", asked);
        for (uint32_t type = 0; type < columns; type++) {
            if (w->count == WEIR_PARTS_BALANCES_MAX)
                return WEIR_ERR(WEIR_ELIMIT, "more than %u weights to balance, as each type is one; name fewer",
                                WEIR_PARTS_BALANCES_MAX);
            weir_parts_held *held = &w->held[w->count];
            held->asked = asked;
            snprintf(held->name, sizeof held->name, "%s",
                     b->weight == WEIR_PARTS_TYPES ? weir_schema_vertex_at(schema, type)->name
                                                   : weights_names[b->weight]);
            weight_of[w->count] = b->weight;
            type_of[w->count++] = type;
        }
    }
    return WEIR_OK;
}

weir_err weir_parts_weights_open(const weir_snapshot *snapshot, const weir_parts_graph *graph,
                                 const weir_parts_opts *opts, weir_parts_weights *weights) {
    weir_parts_opts asked = *opts;
    weir_parts_weight weight_of[WEIR_PARTS_BALANCES_MAX];
    uint32_t type_of[WEIR_PARTS_BALANCES_MAX];
    *weights = (weir_parts_weights){0};
    if (!asked.balance_count) weights_default(&asked);
    weir_err err = weights_name(snapshot, &asked, weights, weight_of, type_of);
    if (err) return err;
    uint32_t stride = weights->count;
    weights->numbers = weir_calloc(graph->vertices * stride + 1, sizeof *weights->numbers);
    if (!weights->numbers) return WEIR_NOMEM("while weighing %llu vertices", (unsigned long long)graph->vertices);
    for (uint32_t i = 0; i < stride; i++)
        weights_put(snapshot, graph, opts, weight_of[i], type_of[i], i, stride, weights);
    if (!weights->columns) weights_put(snapshot, graph, opts, WEIR_PARTS_VERTICES, 0, weights->count, stride, weights);
    weights_close_gaps(graph, stride, weights);
    return WEIR_OK;
}

void weir_parts_weights_close(weir_parts_weights *weights) {
    weir_free(weights->numbers);
    weights->numbers = NULL;
}

/* --- what parts got ---------------------------------------------------------------------------------------------- */

static weir_err weights_report_one(const weir_parts_weights *w, uint32_t column, const weir_parts_graph *g,
                                   const int32_t *part_of, weir_parts_method method, weir_parts_report *report) {
    static const weir_parts_reason of_bound[] = {WEIR_PARTS_HELD, WEIR_PARTS_WHOLE, WEIR_PARTS_HEAVIEST,
                                                 WEIR_PARTS_HEAVY};
    const weir_metis_graph weighed = {.vertices = g->vertices, .constraints = w->columns, .vertex_weights = w->numbers};
    weir_parts_held *held = &report->balances[w->held_of[column]];
    weir_cut_bound bound;
    int64_t least = 0;
    uint64_t most = 0, *loads = weir_calloc(report->parts, sizeof *loads);
    if (!loads) return WEIR_NOMEM("while measuring %u parts", report->parts);
    for (uint64_t v = 0; v < g->vertices; v++) {
        uint64_t *load = &loads[part_of[v]];
        *load += (uint64_t)w->numbers[v * w->columns + column];
        if (*load > most) most = *load;
    }
    weir_free(loads);
    weir_err err = weir_cut_least(&weighed, column, report->parts, held->asked, &least, &bound);
    double share = (double)held->total / report->parts;
    held->reached = (double)most / share;
    held->least = bound == WEIR_CUT_SHARE ? 1 : (double)least / share;
    if ((double)most <= share * held->asked)
        held->reason = WEIR_PARTS_HELD;
    else if ((int64_t)most <= least)
        held->reason = of_bound[bound];
    else
        held->reason = method == WEIR_PARTS_METIS  ? WEIR_PARTS_BESIDE
                       : method == WEIR_PARTS_LIKE ? WEIR_PARTS_STAYED
                                                   : WEIR_PARTS_UNASKED;
    return err;
}

weir_err weir_parts_weights_report(const weir_parts_weights *weights, const weir_parts_graph *graph,
                                   const int32_t *part_of, weir_parts_method method, weir_parts_report *report) {
    weir_err err = WEIR_OK;
    memcpy(report->balances, weights->held, sizeof report->balances);
    report->balance_count = weights->count;
    for (uint32_t column = 0; !err && column < weights->columns; column++) {
        if (weights->held_of[column] < weights->count)
            err = weights_report_one(weights, column, graph, part_of, method, report);
    }
    return err;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan.c - new numbers: within a type by part, within a part by how often training reads a vertex, and of equals in the
 * snapshot's order (PARTS-P1, PARTS-P5).
 */
#include <stdlib.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>

#include "plan.h"

typedef struct plan_place {
    double spared;
    int64_t vertex;
} plan_place;

static int plan_most_read_first(const void *a, const void *b) {
    const plan_place *x = a, *y = b;
    if (x->spared != y->spared) return x->spared < y->spared ? -1 : 1;
    return x->vertex < y->vertex ? -1 : x->vertex > y->vertex;
}

/* Of one part, which has these numbers: old_of, which is in the snapshot's order. PARTS-P5. */
static weir_err plan_sort(const double *spared, int64_t *old_of, uint64_t count) {
    plan_place *places = weir_calloc(count + 1, sizeof *places);
    if (!places) return WEIR_NOMEM("while numbering %llu vertices", (unsigned long long)count);
    for (uint64_t i = 0; i < count; i++)
        places[i] = (plan_place){spared[old_of[i]], old_of[i]};
    if (count) qsort(places, count, sizeof *places, plan_most_read_first);
    for (uint64_t i = 0; i < count; i++)
        old_of[i] = places[i].vertex;
    weir_free(places);
    return WEIR_OK;
}

static weir_err parts_plan_type(weir_parts_plan *plan, uint32_t type, const double *spared) {
    uint64_t first = plan->graph->offsets[type], count = plan->graph->offsets[type + 1] - first;
    int64_t *starts = plan->starts[type] = weir_calloc((size_t)plan->parts + 1, sizeof *starts);
    int64_t *new_of = plan->new_of[type] = weir_calloc(count + 1, sizeof *new_of);
    int64_t *old_of = plan->old_of[type] = weir_calloc(count + 1, sizeof *old_of);
    int64_t *next = weir_calloc((size_t)plan->parts + 1, sizeof *next);
    if (!starts || !new_of || !old_of || !next) {
        weir_free(next);
        return WEIR_NOMEM("while numbering %llu vertices", (unsigned long long)count);
    }
    for (uint64_t v = 0; v < count; v++) {
        WEIR_ASSERT(plan->part_of[first + v] >= 0 && (uint32_t)plan->part_of[first + v] < plan->parts);
        starts[plan->part_of[first + v] + 1]++;
    }
    for (uint32_t p = 0; p < plan->parts; p++) {
        starts[p + 1] += starts[p];
        next[p] = starts[p];
    }
    for (uint64_t v = 0; v < count; v++) {
        int64_t number = next[plan->part_of[first + v]]++;
        WEIR_ASSERT(number < starts[plan->part_of[first + v] + 1]); /* PARTS-P1 */
        old_of[number] = (int64_t)v;
    }
    weir_free(next);
    weir_err err = WEIR_OK;
    for (uint32_t p = 0; !err && p < plan->parts; p++)
        err = plan_sort(spared, old_of + starts[p], (uint64_t)(starts[p + 1] - starts[p]));
    for (uint64_t number = 0; number < count; number++)
        new_of[old_of[number]] = (int64_t)number;
    return err;
}

weir_err weir_parts_plan_open(const weir_snapshot *snapshot, const weir_parts_graph *graph, const int32_t *part_of,
                              uint32_t parts, weir_parts_plan *plan) {
    double **spared = NULL;
    *plan = (weir_parts_plan){.types = graph->types, .parts = parts, .graph = graph, .part_of = part_of};
    plan->new_of = weir_calloc(graph->types + 1, sizeof *plan->new_of);
    plan->old_of = weir_calloc(graph->types + 1, sizeof *plan->old_of);
    plan->starts = weir_calloc(graph->types + 1, sizeof *plan->starts);
    weir_err err = WEIR_OK;
    if (!plan->new_of || !plan->old_of || !plan->starts) err = WEIR_NOMEM("while planning parts");
    if (!err) err = weir_parts_order_open(snapshot, graph, &spared);
    for (uint32_t type = 0; !err && type < graph->types; type++)
        err = parts_plan_type(plan, type, spared[type]);
    weir_parts_order_close(graph, spared);
    if (err) weir_parts_plan_close(plan);
    return err;
}

void weir_parts_plan_close(weir_parts_plan *plan) {
    for (uint32_t type = 0; type < plan->types; type++) {
        if (plan->new_of) weir_free(plan->new_of[type]);
        if (plan->old_of) weir_free(plan->old_of[type]);
        if (plan->starts) weir_free(plan->starts[type]);
    }
    weir_free(plan->new_of);
    weir_free(plan->old_of);
    weir_free(plan->starts);
    *plan = (weir_parts_plan){0};
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * order.c - how often training reads each vertex, by which the vertices of a part are numbered.
 *
 * Nobody has said yet how the network will draw. So it is as `weir train` does by itself, 10 edges along each relation
 * in both directions, two hops, of batches of 512 targets; but any edge of a list is as likely as another, because
 * targets have all times, and each has newest edges of its own.
 */
#include <math.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/sample/reads.h>

#include "plan.h"

#define ORDER_HOPS   2u
#define ORDER_FANOUT 10u
#define ORDER_BATCH  512

static uint32_t order_steps(const weir_schema *schema,
                            weir_sample_step steps[2 * ORDER_HOPS * WEIR_SCHEMA_RELATIONS_MAX]) {
    uint32_t count = 0;
    for (uint32_t hop = 1; hop <= ORDER_HOPS; hop++) {
        for (uint32_t i = 0; i < 2 * weir_schema_relation_count(schema); i++)
            steps[count++] = (weir_sample_step){.hop = hop,
                                                .fanout = ORDER_FANOUT,
                                                .relation = (uint16_t)(i / 2),
                                                .direction = i % 2,
                                                .strategy = WEIR_SAMPLE_UNIFORM};
    }
    return count;
}

/* Where there is nothing to learn from, any vertex is a target. */
static void order_begin(const weir_parts_graph *graph, double **chances, double **spared) {
    for (uint32_t type = 0; type < graph->types; type++) {
        for (uint64_t v = graph->offsets[type]; v < graph->offsets[type + 1]; v++) {
            double share =
                graph->training ? (double)graph->targets[v] / (double)graph->training : 1 / (double)graph->vertices;
            chances[type][v - graph->offsets[type]] = fmin(1, ORDER_BATCH * share);
            spared[type][v - graph->offsets[type]] = weir_sample_log_spared(chances[type][v - graph->offsets[type]]);
        }
    }
}

weir_err weir_parts_order_open(const weir_snapshot *snapshot, const weir_parts_graph *graph, double ***sparedp) {
    weir_sample_step steps[2 * ORDER_HOPS * WEIR_SCHEMA_RELATIONS_MAX];
    const weir_sample_reads reads = {.snapshot = snapshot,
                                     .steps = steps,
                                     .step_count = order_steps(weir_snapshot_schema(snapshot), steps),
                                     .window = INT64_MAX};
    double **chances = weir_calloc(graph->types + 1, sizeof *chances);
    double **spared = *sparedp = weir_calloc(graph->types + 1, sizeof *spared);
    bool all = chances && spared;
    for (uint32_t type = 0; all && type < graph->types; type++) {
        uint64_t count = graph->offsets[type + 1] - graph->offsets[type];
        chances[type] = weir_calloc(count + 1, sizeof *chances[type]);
        spared[type] = weir_calloc(count + 1, sizeof *spared[type]);
        all = chances[type] && spared[type];
    }
    weir_err err = all ? WEIR_OK : WEIR_NOMEM("for the order of %llu vertices", (unsigned long long)graph->vertices);
    if (!err) order_begin(graph, chances, spared);
    if (!err) err = weir_sample_reads_add(&reads, chances, spared);
    weir_parts_order_close(graph, chances);
    if (err) {
        weir_parts_order_close(graph, spared);
        *sparedp = NULL;
    }
    return err;
}

void weir_parts_order_close(const weir_parts_graph *graph, double **spared) {
    for (uint32_t type = 0; spared && type < graph->types; type++)
        weir_free(spared[type]);
    weir_free(spared);
}

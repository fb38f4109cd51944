/* SPDX-License-Identifier: Apache-2.0 */
/* state.c - what each part has, what a move would change, and the queue of moves. */
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>

#include "cut_private.h"

/* --- the queue --------------------------------------------------------------------------------------------------- */

static bool cut_queue_before(const cut_queue *q, uint64_t one, uint64_t other) {
    double mine = q->rank[one], its = q->rank[other];
    return mine > its || (mine == its && one < other);
}

static void cut_queue_set(cut_queue *q, uint64_t place, uint64_t v) {
    q->vertices[place] = (uint32_t)v;
    q->at[v] = (uint32_t)(place + 1);
}

static void cut_queue_rise(cut_queue *q, uint64_t place, uint64_t v) {
    for (; place && cut_queue_before(q, v, q->vertices[(place - 1) / 2]); place = (place - 1) / 2)
        cut_queue_set(q, place, q->vertices[(place - 1) / 2]);
    cut_queue_set(q, place, v);
}

static void cut_queue_sink(cut_queue *q, uint64_t place, uint64_t v) {
    for (uint64_t child = 2 * place + 1; child < q->count; child = 2 * place + 1) {
        if (child + 1 < q->count && cut_queue_before(q, q->vertices[child + 1], q->vertices[child])) child++;
        if (!cut_queue_before(q, q->vertices[child], v)) break;
        cut_queue_set(q, place, q->vertices[child]);
        place = child;
    }
    cut_queue_set(q, place, v);
}

void weir_cut_queue_put(cut_queue *q, uint64_t v, double rank) {
    bool falls = q->at[v] && rank < q->rank[v];
    q->rank[v] = rank;
    if (falls)
        cut_queue_sink(q, q->at[v] - 1, v);
    else
        cut_queue_rise(q, q->at[v] ? q->at[v] - 1 : q->count++, v);
}

void weir_cut_queue_drop(cut_queue *q, uint64_t v) {
    if (!q->at[v]) return;
    uint64_t place = q->at[v] - 1, last = q->vertices[--q->count];
    q->at[v] = 0;
    if (last == v) return;
    if (cut_queue_before(q, last, v))
        cut_queue_rise(q, place, last);
    else
        cut_queue_sink(q, place, last);
}

uint64_t weir_cut_queue_take(cut_queue *q) {
    WEIR_ASSERT(q->count);
    uint64_t v = q->vertices[0];
    weir_cut_queue_drop(q, v);
    return v;
}

/* --- the parts --------------------------------------------------------------------------------------------------- */

weir_err weir_cut_state_open(const weir_metis_graph *graph, const cut_limits *limits, int32_t *part_of, cut_state *s) {
    size_t numbers = (size_t)limits->parts * limits->constraints, n = graph->vertices;
    *s = (cut_state){.graph = graph, .limits = limits, .part_of = part_of};
    s->loads = weir_calloc(numbers, sizeof *s->loads);
    s->shared = weir_calloc(limits->parts, sizeof *s->shared);
    s->beside = weir_calloc(limits->parts, sizeof *s->beside);
    s->moved = weir_calloc(n + 1, sizeof *s->moved);
    s->queue.vertices = weir_calloc(n + 1, sizeof *s->queue.vertices);
    s->queue.at = weir_calloc(n + 1, sizeof *s->queue.at);
    s->queue.rank = weir_calloc(n + 1, sizeof *s->queue.rank);
    if (!s->loads || !s->shared || !s->beside || !s->moved || !s->queue.vertices || !s->queue.at || !s->queue.rank) {
        weir_cut_state_close(s);
        return WEIR_NOMEM("while cutting %llu vertices", (unsigned long long)graph->vertices);
    }
    for (uint64_t v = 0; v < n; v++) {
        if (part_of[v] == WEIR_CUT_NOWHERE) continue;
        WEIR_ASSERT(part_of[v] >= 0 && (uint32_t)part_of[v] < limits->parts);
        for (uint32_t c = 0; c < limits->constraints; c++)
            s->loads[(size_t)part_of[v] * limits->constraints + c] += graph->vertex_weights[v * graph->constraints + c];
    }
    return WEIR_OK;
}

void weir_cut_state_close(cut_state *s) {
    weir_free(s->loads);
    weir_free(s->shared);
    weir_free(s->beside);
    weir_free(s->moved);
    weir_free(s->queue.vertices);
    weir_free(s->queue.at);
    weir_free(s->queue.rank);
    *s = (cut_state){0};
}

void weir_cut_look(cut_state *s, uint64_t v) {
    const weir_metis_graph *g = s->graph;
    for (uint32_t i = 0; i < s->beside_count; i++)
        s->shared[s->beside[i]] = 0;
    s->beside_count = 0;
    for (int64_t i = g->indptr[v]; i < g->indptr[v + 1]; i++) {
        int32_t part = s->part_of[g->neighbors[i]];
        if (part == WEIR_CUT_NOWHERE) continue;
        if (!s->shared[part]) s->beside[s->beside_count++] = part;
        s->shared[part] += g->edge_weights[i];
    }
}

void weir_cut_move(cut_state *s, uint64_t v, int32_t to) {
    const uint32_t constraints = s->limits->constraints;
    const int64_t *weights = s->graph->vertex_weights + v * constraints;
    int64_t *into = s->loads + (size_t)to * constraints;
    for (uint32_t c = 0; c < constraints; c++) {
        into[c] += weights[c];
        if (s->part_of[v] == WEIR_CUT_NOWHERE) continue;
        int64_t *from = s->loads + (size_t)s->part_of[v] * constraints;
        from[c] -= weights[c];
        WEIR_ASSERT(from[c] >= 0);
    }
    s->part_of[v] = to;
}

static double cut_above(const cut_limits *limits, uint32_t c, int64_t load) {
    return load > limits->most[c] ? (double)(load - limits->most[c]) / limits->share[c] : 0;
}

double weir_cut_excess(const cut_state *s) {
    double sum = 0;
    for (uint32_t p = 0; p < s->limits->parts; p++) {
        for (uint32_t c = 0; c < s->limits->constraints; c++)
            sum += cut_above(s->limits, c, s->loads[(size_t)p * s->limits->constraints + c]);
    }
    return sum;
}

double weir_cut_excess_of_move(const cut_state *s, uint64_t v, int32_t to) {
    const cut_limits *limits = s->limits;
    const int64_t *weights = s->graph->vertex_weights + v * limits->constraints;
    const int64_t *from = s->loads + (size_t)s->part_of[v] * limits->constraints;
    const int64_t *into = s->loads + (size_t)to * limits->constraints;
    double sum = 0;
    for (uint32_t c = 0; c < limits->constraints; c++) {
        if (!weights[c]) continue;
        sum += cut_above(limits, c, from[c] - weights[c]) - cut_above(limits, c, from[c]);
        sum += cut_above(limits, c, into[c] + weights[c]) - cut_above(limits, c, into[c]);
    }
    return sum;
}

int64_t weir_cut_weight_between(const weir_metis_graph *graph, const int32_t *part_of) {
    int64_t twice = 0;
    for (uint64_t v = 0; v < graph->vertices; v++) {
        for (int64_t i = graph->indptr[v]; i < graph->indptr[v + 1]; i++)
            if (part_of[graph->neighbors[i]] != part_of[v]) twice += graph->edge_weights[i];
    }
    return twice / 2;
}

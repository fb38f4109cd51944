/* SPDX-License-Identifier: Apache-2.0 */
/* lives.c - which lives of a type have rows, and as of when. */
#include <weir/store/base/assert.h>

#include "bulk_private.h"

typedef enum lives_kind { LIFE_WITHOUT, LIFE_ROW, LIFE_OLD, LIFE_UNKNOWN } lives_kind;

static weir_err lives_damaged(const weir_bulk_plan *plan, uint64_t life) {
    return WEIR_ERR(WEIR_ECORRUPT,
                    "the snapshot's lives of type '%s' are out of order at %llu; take another copy or build it again",
                    weir_schema_vertex_at(plan->schema, plan->type)->name, (unsigned long long)life);
}

/* The last vertex whose lives begin at this one or before. */
static uint64_t lives_find(const weir_snapshot_vertices *v, uint64_t life) {
    uint64_t low = 0, high = v->count;
    while (low + 1 < high) {
        const uint64_t middle = low + (high - low) / 2;
        if (v->lives.indptr[middle] <= (int64_t)life)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static bool lives_is_known(const weir_bulk_plan *plan, uint64_t vertex) {
    uint64_t place;
    if (!plan->items) return true;
    const weir_recommend_tables *t = weir_recommend_model_tables(plan->opts->recommender);
    return weir_recommend_find(t->item_ids, t->item_count, weir_vertex_of(plan->vertices->ids[vertex]), &place);
}

static lives_kind lives_look(const weir_bulk_plan *plan, uint64_t vertex, uint64_t life) {
    const weir_snapshot_vertices *v = plan->vertices;
    const weir_bulk_opts *o = plan->opts;
    const int64_t time_us = v->lives.times[life];
    const bool named = v->key_offsets[vertex] < v->key_offsets[vertex + 1];
    uint64_t at;
    if (o->scores && !named) return LIFE_WITHOUT; /* it was only named by edges: no target of training either */
    if (!plan->own_time || plan->living) {
        const int64_t then_us = plan->own_time ? weir_snapshot_as_of_us(o->snapshot) : plan->as_of_us;
        if (!weir_snapshot_span(&v->lives, vertex, then_us, &at) || at != life) return LIFE_WITHOUT;
    }
    if (plan->own_time && o->scores && (time_us < o->from_us || time_us >= o->to_us)) return LIFE_WITHOUT;
    if (plan->own_time && time_us < weir_snapshot_from_us(o->snapshot)) return LIFE_OLD;
    return lives_is_known(plan, vertex) ? LIFE_ROW : LIFE_UNKNOWN;
}

static weir_err lives_target(const weir_bulk_plan *plan, uint64_t vertex, uint64_t life, weir_target *target) {
    *target = (weir_target){.vertex = vertex, .before_us = plan->as_of_us, .type = (uint16_t)plan->type};
    if (!plan->own_time) return WEIR_OK;
    target->before_us = plan->vertices->lives.times[life];
    return weir_snapshot_event_of_put(plan->opts->snapshot, plan->type, vertex, target->before_us, &target->event);
}

/* targets: NULL: only counted. */
static weir_err lives_walk(const weir_bulk_plan *plan, uint64_t begin, uint64_t end, weir_target *targets,
                           weir_bulk_stats *stats) {
    const weir_snapshot_vertices *v = plan->vertices;
    uint64_t vertex = lives_find(v, begin);
    weir_err err = WEIR_OK;
    *stats = (weir_bulk_stats){.rows = 0};
    for (uint64_t life = begin; !err && life < end; life++) {
        while (vertex + 1 < v->count && v->lives.indptr[vertex + 1] <= (int64_t)life)
            vertex++;
        if (v->lives.indptr[vertex] > (int64_t)life || v->lives.indptr[vertex + 1] <= (int64_t)life)
            return lives_damaged(plan, life); /* the file is not trusted */
        const lives_kind kind = lives_look(plan, vertex, life);
        if (targets && kind == LIFE_ROW) err = lives_target(plan, vertex, life, &targets[stats->rows]);
        stats->rows += kind == LIFE_ROW;
        stats->old += kind == LIFE_OLD;
        stats->unknown += kind == LIFE_UNKNOWN;
    }
    return err;
}

weir_err weir_bulk_list(const weir_bulk_plan *plan, uint64_t begin, uint64_t end, weir_target *targets,
                        uint32_t *countp) {
    weir_bulk_stats stats;
    weir_err err = lives_walk(plan, begin, end, targets, &stats);
    WEIR_ASSERT(stats.rows <= end - begin);
    *countp = (uint32_t)stats.rows;
    return err;
}

weir_err weir_bulk_count(const weir_bulk_plan *plan, weir_bulk_stats *statsp) {
    return lives_walk(plan, 0, plan->vertices->lives.count, NULL, statsp);
}

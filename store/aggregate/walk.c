/* SPDX-License-Identifier: Apache-2.0 */
#include "walk.h"

#include <math.h>
#include <stdlib.h>

#include <weir/store/base/alloc.h>

#define WALK_STEPS (WEIR_SCHEMA_THROUGH_MAX + 1u) /* the beginning is one of them */

/* A vertex that a step meets. */
typedef struct walk_found {
    weir_vertex vertex;
    int64_t time_us;
    float number;
    uint32_t order; /* in which they are met: newest edge first, vertex after vertex */
} walk_found;

/* Whom one step has met. Index 0: the beginning. */
typedef struct walk_step {
    weir_vertex vertices[WEIR_AGGREGATE_WALK];
    int64_t times_us[WEIR_AGGREGATE_WALK]; /* of the newest edge to each */
    float numbers[WEIR_AGGREGATE_WALK];    /* with a share, what the next edge is compared with; NaN: nothing yet */
    uint32_t count;
    uint16_t type;
} walk_step;

struct weir_walk {
    const weir_schema *schema;
    weir_sample_source *source;
    weir_aggregate_set *set;
    walk_step steps[WALK_STEPS];
    uint64_t indices[WEIR_AGGREGATE_WALK]; /* of the step at hand, over arrays */
    int64_t before_us[WEIR_AGGREGATE_WALK], since_us[WEIR_AGGREGATE_WALK], upto_us[WEIR_AGGREGATE_WALK];
    weir_sample_window windows[WEIR_AGGREGATE_WALK];
    float numbers[WEIR_AGGREGATE_WALK_EDGES]; /* of the window at hand */
    walk_found found[WEIR_AGGREGATE_WALK * WEIR_SCHEMA_CROWD_MAX];
    uint32_t found_count;
};

_Static_assert(WEIR_AGGREGATE_WALK <= WEIR_SAMPLE_ASK_MAX, "a step asks its source once");
_Static_assert((WEIR_AGGREGATE_WALK * WEIR_SCHEMA_CROWD_MAX + WALK_STEPS * WEIR_AGGREGATE_WALK) * 2 <=
                   WEIR_AGGREGATE_SET_SLOTS,
               "the set has room for whom a step finds, and for whom the walk has met");

/* The different neighbours of the i-th vertex of a step, unless they are a crowd. With a share, only edges
 * of the aggregate's relation are compared; along others the number of the last of these is carried on. */
static weir_err walk_find_neighbors(weir_walk *w, const weir_schema_aggregate *aggregate, const weir_sample_ask *ask,
                                    const weir_walk_met *from, uint32_t i) {
    const weir_sample_window *window = &w->windows[i];
    const bool compared = aggregate->share.of != WEIR_SCHEMA_NONE && ask->relation == aggregate->relation;
    const uint32_t begin = w->found_count;
    WEIR_ASSERT(window->count <= WEIR_AGGREGATE_WALK_EDGES); /* AGGREGATE-G5 */
    weir_err err = compared ? w->source->numbers(w->source, ask, window, aggregate->share.of, w->numbers) : WEIR_OK;
    weir_aggregate_set_begin(w->set, window->count);
    for (uint32_t e = 0; !err && e < window->count; e++) {
        const weir_vertex neighbor = weir_aggregate_neighbor_at(w->source, window, e);
        const int64_t time_us = weir_sample_window_time(window, e);
        if (time_us < from->since_us[i]) break; /* times fall */
        if (time_us > from->upto_us[i]) continue;
        if (compared && !weir_walk_leads(&aggregate->share, from->numbers[i], w->numbers[e])) continue;
        if (!weir_aggregate_set_add(w->set, neighbor)) continue;
        if (w->found_count - begin == aggregate->crowd) {
            w->found_count = begin;
            break;
        }
        w->found[w->found_count] =
            (walk_found){neighbor, time_us, compared ? w->numbers[e] : from->numbers[i], w->found_count};
        w->found_count++;
    }
    return err;
}

static int walk_newest_first(const void *a, const void *b) {
    const walk_found *x = a, *y = b;
    if (x->time_us != y->time_us) return x->time_us > y->time_us ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

/* Of whom the step has found the last met, without whom the walk has met before. */
static void walk_meet(weir_walk *w, uint32_t step) {
    walk_step *next = &w->steps[step];
    next->count = 0;
    weir_aggregate_set_begin(w->set, w->found_count + step * WEIR_AGGREGATE_WALK);
    for (uint32_t before = 0; before < step; before++)
        for (uint32_t i = 0; w->steps[before].type == next->type && i < w->steps[before].count; i++)
            weir_aggregate_set_add(w->set, w->steps[before].vertices[i]);
    if (w->found_count > 1) qsort(w->found, w->found_count, sizeof *w->found, walk_newest_first);
    for (uint32_t i = 0; i < w->found_count && next->count < WEIR_AGGREGATE_WALK; i++)
        if (weir_aggregate_set_add(w->set, w->found[i].vertex)) {
            next->vertices[next->count] = w->found[i].vertex;
            next->numbers[next->count] = w->found[i].number;
            next->times_us[next->count++] = w->found[i].time_us;
        }
}

/* Those of a step, as the source calls them, and which edges of each count. */
static weir_walk_met walk_met_of(weir_walk *w, const weir_schema_aggregate *aggregate, uint32_t step) {
    const walk_step *s = &w->steps[step];
    for (uint32_t i = 0; i < s->count; i++) {
        w->indices[i] = (uint64_t)s->vertices[i];
        if (!aggregate->ordered || step == 0) continue;
        WEIR_ASSERT(s->times_us[i] < w->before_us[i]); /* AGGREGATE-G5 */
        w->upto_us[i] = s->times_us[i];
        if (__builtin_sub_overflow(s->times_us[i], aggregate->window_us, &w->since_us[i])) w->since_us[i] = INT64_MIN;
    }
    return (weir_walk_met){.vertices = w->source->wide ? NULL : w->indices,
                           .ids = w->source->wide ? s->vertices : NULL,
                           .before_us = w->before_us,
                           .since_us = w->since_us,
                           .upto_us = w->upto_us,
                           .numbers = s->numbers,
                           .count = s->count,
                           .type = s->type};
}

static weir_err walk_take_step(weir_walk *w, const weir_schema_aggregate *aggregate, uint32_t step) {
    const weir_schema_walk *along = &aggregate->through[step - 1];
    const weir_schema_relation *relation = weir_schema_relation_at(w->schema, along->relation);
    const bool out = along->direction == WEIR_SCHEMA_OUT;
    const weir_walk_met from = walk_met_of(w, aggregate, step - 1);
    const weir_sample_ask ask = {.parents = from.vertices,
                                 .parent_ids = from.ids,
                                 .before_us = from.before_us,
                                 .since_us = from.since_us,
                                 .count = from.count,
                                 .limit = WEIR_AGGREGATE_WALK_EDGES,
                                 .relation = (uint16_t)along->relation,
                                 .type = from.type,
                                 .direction = out ? WEIR_OUT : WEIR_IN};
    w->found_count = 0;
    w->steps[step].type = (uint16_t)(out ? relation->to : relation->from);
    weir_err err = from.count ? w->source->windows(w->source, &ask, w->windows) : WEIR_OK;
    for (uint32_t i = 0; !err && i < from.count; i++)
        err = walk_find_neighbors(w, aggregate, &ask, &from, i);
    if (!err) walk_meet(w, step);
    return err;
}

weir_err weir_walk_go(weir_walk *w, const weir_schema_aggregate *aggregate, weir_vertex from, int64_t since_us,
                      int64_t before_us, weir_walk_met *metp) {
    const weir_schema_walk *first = &aggregate->through[0];
    const weir_schema_relation *relation = weir_schema_relation_at(w->schema, first->relation);
    WEIR_ASSERT(aggregate->through_count > 0 && aggregate->through_count <= WEIR_SCHEMA_THROUGH_MAX);
    WEIR_ASSERT(aggregate->crowd <= WEIR_SCHEMA_CROWD_MAX);
    for (uint32_t i = 0; i < WEIR_AGGREGATE_WALK; i++) {
        w->before_us[i] = before_us;
        w->since_us[i] = since_us;
        w->upto_us[i] = INT64_MAX;
    }
    w->steps[0] = (walk_step){.count = 1,
                              .type = (uint16_t)(first->direction == WEIR_SCHEMA_OUT ? relation->from : relation->to)};
    w->steps[0].vertices[0] = from;
    w->steps[0].numbers[0] = NAN;
    weir_err err = WEIR_OK;
    uint32_t steps = 0;
    for (uint32_t step = 1; !err && step <= aggregate->through_count; step++) {
        err = walk_take_step(w, aggregate, step);
        steps += !err && w->steps[step].count > 0;
    }
    *metp = walk_met_of(w, aggregate, aggregate->through_count);
    metp->steps = steps;
    return err;
}

weir_err weir_walk_open(const weir_schema *schema, weir_sample_source *source, weir_aggregate_set *set,
                        weir_walk **walkp) {
    weir_walk *w = *walkp = weir_calloc(1, sizeof *w);
    if (!w) return WEIR_NOMEM("for aggregates through relations");
    w->schema = schema;
    w->source = source;
    w->set = set;
    return WEIR_OK;
}

void weir_walk_close(weir_walk *walk) {
    weir_free(walk);
}

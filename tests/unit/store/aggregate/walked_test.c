/* SPDX-License-Identifier: Apache-2.0 */
/* walked_test.c - aggregates of an end and through others, against a slow walk over the plain list of edges. */
#include <math.h>
#include <stdio.h>

#include "arrays_fixture.h"
#include "weir_test.h"

#include <weir/store/aggregate/aggregate.h>

#define COLUMNS 22u
#define ROWS    40u
#define HOURS   40u
#define HOUR_US ((int64_t)3600 * 1000000)

/* Each of a knows others of a, and has been at some of b. */
static const char text[] =
    "version: 1\n"
    "name: t\n"
    "vertices: {a: {}, b: {}}\n"
    "relations:\n"
    "  ab: {from: a, to: b, features: {x: {kind: number}}}\n"
    "  aa: {from: a, to: a, features: {x: {kind: number}}}\n"
    "aggregates:\n"
    "  own: {vertex: a, end: ab, relation: ab, function: count, window: 20h}\n"
    "  of_end: {vertex: a, end: ab, relation: ab, function: sum, of: x, window: 30h, resolution: 3h}\n"
    "  gap: {vertex: a, end: aa, relation: aa, direction: out, function: since_last, window: 9h}\n"
    "  near: {vertex: a, end: ab, through: [ab], relation: ab, function: distinct, window: 25h}\n"
    "  near_sum: {vertex: a, end: ab, through: [ab], relation: ab, function: sum, of: x, window: 25h}\n"
    "  latest_near: {vertex: a, end: ab, through: [ab, ab], relation: ab, function: newest, of: x, window: 25h}\n"
    "  narrow: {vertex: a, end: ab, through: [ab, ab], crowd: 3, relation: ab, function: count, window: 25h}\n"
    "  far: {vertex: a, end: ab, through: [ab, ab, ab], crowd: 48, relation: ab, function: distinct, window: 33h}\n"
    "  loop: {vertex: a, end: aa, through: [{relation: aa, direction: out}, {relation: aa, direction: in}],\n"
    "         crowd: 20, relation: ab, function: max, of: x, window: 18h, resolution: 6h}\n"
    "  back: {vertex: a, end: aa, through: [{relation: aa, direction: in}, ab], relation: ab,\n"
    "         function: since_first, window: 21h}\n"
    "  met: {vertex: a, between: [aa, ab], through: [{relation: aa, direction: out}], relation: ab,\n"
    "        function: count, window: 35h}\n"
    "  who_met: {vertex: a, between: [aa, ab], through: [{relation: aa, direction: out}], relation: ab,\n"
    "            function: distinct, window: 35h}\n"
    "  last_met: {vertex: a, between: [aa, ab], through: [{relation: aa, direction: out}, {relation: aa, direction: "
    "in}],\n"
    "             crowd: 30, relation: ab, function: since_last, window: 35h}\n"
    "  chain: {vertex: a, end: aa, through: [{relation: aa, direction: in}, {relation: aa, direction: in},\n"
    "          {relation: aa, direction: in}, {relation: aa, direction: in}, {relation: aa, direction: in}],\n"
    "          ordered: true, relation: aa, direction: in, function: depth, window: 3h}\n"
    "  back_in_time: {vertex: a, end: ab, through: [ab, ab, ab], crowd: 40, ordered: true, relation: ab,\n"
    "                 function: sum, of: x, window: 6h}\n"
    "  paid_before: {vertex: a, between: [aa, ab], through: [{relation: aa, direction: in}], ordered: true,\n"
    "                relation: ab, function: distinct, window: 30h}\n"
    "  as_far: {vertex: a, end: ab, through: [ab, ab, ab, ab, ab, ab, ab, ab], crowd: 2, relation: ab,\n"
    "           function: depth, window: 20h}\n"
    "  spread: {vertex: a, between: [ab, ab], through: [ab], relation: ab, function: deviation, of: x,\n"
    "           window: 35h}\n"
    "  kept: {vertex: a, end: aa, through: [{relation: aa, direction: in}, {relation: aa, direction: in},\n"
    "          {relation: aa, direction: in}], ordered: true, share: {of: x, least: 0.25, most: 1.5}, relation: aa,\n"
    "          direction: in, function: depth, window: 6h}\n"
    "  kept_sum: {vertex: a, end: ab, through: [ab, ab, ab], crowd: 40, ordered: true, relation: ab,\n"
    "             share: {of: x, least: 0, most: 1.5}, ratio: x, function: sum, of: x, window: 9h}\n"
    "  kept_on: {vertex: a, end: ab, through: [ab, {relation: aa, direction: in}, ab, ab], ordered: true,\n"
    "            share: {of: x, least: 0.5, most: 1}, relation: ab, function: depth, window: 8h}\n"
    "  kept_pair: {vertex: a, between: [aa, ab], through: [ab, ab], ordered: true,\n"
    "              share: {of: x, least: 0.5, most: 4}, relation: ab, function: count, window: 30h}\n"
    "sources:\n"
    "  s: {topic: s, format: json, id: id, time: time, mutations: [{put_vertex: a, key: id}]}\n";

typedef struct world {
    arrays_fixture f;
    weir_schema *schema;
    weir_sample_source *source;
    weir_aggregates *aggregates;
} world;

static void world_start(world *w) {
    assert_ok(weir_schema_parse("t.yaml", text, strlen(text), &w->schema));
    assert_ok(weir_sample_over_arrays(&w->f.arrays, &w->source));
    assert_ok(weir_aggregates_open(w->schema, w->source, &w->aggregates));
}

static void world_stop(world *w) {
    weir_aggregates_close(w->aggregates);
    weir_sample_source_close(w->source);
    weir_schema_free(w->schema);
    fixture_close(&w->f);
}

static void read_one(const world *w, uint64_t vertex, uint64_t event, int64_t before_us, double values[COLUMNS]) {
    const weir_sample_vertices of = {.vertices = &vertex, .before_us = &before_us, .events = &event, .count = 1};
    assert_int_equal(weir_aggregates_count(w->schema, 0), COLUMNS);
    assert_ok(weir_aggregates_read(w->aggregates, &of, values));
}

/* --- the naive twin --------------------------------------------------------------------------------------------- */

#define EDGES_MAX 4000u
#define MET_MAX   64u

typedef struct met {
    uint64_t who[MET_MAX];
    int64_t time_us[MET_MAX]; /* of the newest edge to each; of the beginning the target's, exclusive */
    double x[MET_MAX];        /* of the last edge of the aggregate's relation on the way to each; negative: none yet */
    uint32_t count, type;
} met;

typedef struct seen {
    uint64_t who;
    int64_t time_us;
    double x;
    bool gone; /* met already */
} seen;

static int64_t begin_of(const weir_schema_aggregate *a, int64_t before_us) {
    const int64_t begin_us = before_us - a->window_us, unit_us = a->resolution_us ? a->resolution_us : 1;
    return begin_us - ((begin_us % unit_us) + unit_us) % unit_us;
}

static weir_direction direction_of(weir_schema_direction direction) {
    return direction == WEIR_SCHEMA_OUT ? WEIR_OUT : WEIR_IN;
}

/* The vertex's edges of [begin, before), newest first, of one time by neighbour, then event; at most so many. By
 * insertion: slow, and plain. */
static uint32_t naive_window(const world *w, uint32_t relation, weir_direction direction, uint64_t vertex,
                             int64_t begin_us, int64_t before_us, uint32_t limit, const plain_edge **edges) {
    uint32_t count = 0;
    for (size_t i = 0; i < w->f.plain_count[relation]; i++) {
        const plain_edge *e = &w->f.plain[relation][i];
        if (plain_end(e, direction) != vertex || e->time_us >= before_us || e->time_us < begin_us) continue;
        uint32_t at = count++;
        for (; at > 0; at--) {
            const plain_edge *b = edges[at - 1];
            const uint64_t mine = plain_other(e, direction), its = plain_other(b, direction);
            if (b->time_us > e->time_us || (b->time_us == e->time_us && its < mine) ||
                (b->time_us == e->time_us && its == mine && b->event < e->event))
                break;
            edges[at] = b;
        }
        edges[at] = e;
    }
    return count < limit ? count : limit;
}

static bool naive_has(const met *steps, uint32_t count, uint32_t type, uint64_t who) {
    for (uint32_t s = 0; s < count; s++)
        for (uint32_t i = 0; steps[s].type == type && i < steps[s].count; i++)
            if (steps[s].who[i] == who) return true;
    return false;
}

/* Of what the older edge said, the newer one has this share. */
static bool naive_leads(const weir_schema_aggregate *a, double newer, const plain_edge *older) {
    if (a->share.of == WEIR_SCHEMA_NONE) return true;
    if (newer < 0) return !isnan(older->weight);
    return a->share.least * (double)older->weight <= newer && a->share.most * (double)older->weight >= newer;
}

/* The edges of one whom a step has met that count: of the window before the target, or, ordered, before it was met. */
static uint32_t naive_edges(const world *w, const weir_schema_aggregate *a, const weir_schema_walk *along,
                            const met *step, bool first, uint32_t i, int64_t before_us, uint32_t limit,
                            const plain_edge **edges) {
    const bool back = a->ordered && !first;
    const int64_t begin_us = back ? step->time_us[i] - a->window_us : begin_of(a, before_us);
    const uint32_t all = naive_window(w, along->relation, direction_of(along->direction), step->who[i], begin_us,
                                      before_us, limit, edges);
    uint32_t count = 0;
    for (uint32_t e = 0; e < all; e++)
        if ((!back || edges[e]->time_us <= step->time_us[i]) &&
            (along->relation != a->relation || naive_leads(a, step->x[i], edges[e])))
            edges[count++] = edges[e];
    return count;
}

/* From steps[step - 1] to steps[step]: again and again the one that was met last. */
static void naive_step(const world *w, const weir_schema_aggregate *a, int64_t before_us, met *steps, uint32_t step) {
    static const plain_edge *edges[EDGES_MAX];
    static seen found[EDGES_MAX];
    const weir_schema_walk *walk = &a->through[step - 1];
    const weir_direction direction = direction_of(walk->direction);
    const met *from = &steps[step - 1];
    met *to = &steps[step];
    uint32_t found_count = 0;
    *to = (met){.type = direction == WEIR_OUT ? w->f.ends[walk->relation].to : w->f.ends[walk->relation].from};
    for (uint32_t i = 0; i < from->count; i++) {
        const uint32_t begin = found_count, count = naive_edges(w, a, walk, from, step == 1, i, before_us, 256, edges);
        for (uint32_t e = 0; e < count; e++) {
            const uint64_t who = plain_other(edges[e], direction);
            bool known = false;
            for (uint32_t k = begin; k < found_count; k++)
                known = known || found[k].who == who;
            const double x = walk->relation == a->relation ? (double)edges[e]->weight : from->x[i];
            if (!known) found[found_count] = (seen){who, edges[e]->time_us, x, false};
            found_count += !known;
        }
        if (found_count - begin > a->crowd) found_count = begin;
    }
    for (uint32_t k = 0; k < found_count; k++)
        found[k].gone = naive_has(steps, step, to->type, found[k].who);
    while (to->count < MET_MAX) {
        const seen *last = NULL;
        for (uint32_t k = 0; k < found_count; k++)
            if (!found[k].gone && (!last || found[k].time_us > last->time_us)) last = &found[k];
        if (!last) return;
        const uint64_t who = to->who[to->count] = last->who;
        to->x[to->count] = last->x;
        to->time_us[to->count++] = last->time_us;
        for (uint32_t k = 0; k < found_count; k++)
            found[k].gone = found[k].gone || found[k].who == who;
    }
}

/* The newest edge that a target sees, which has event 0 or that of an edge of its own time. */
static bool naive_end(const world *w, uint32_t relation, uint64_t vertex, uint64_t event, int64_t before_us,
                      uint64_t *endp, double *xp) {
    const plain_edge *newest = NULL;
    for (size_t i = 0; i < w->f.plain_count[relation]; i++) {
        const plain_edge *e = &w->f.plain[relation][i];
        const bool is_seen = e->time_us < before_us || (e->time_us == before_us && event && e->event == event);
        const bool newer =
            !newest || e->time_us > newest->time_us || (e->time_us == newest->time_us && e->to < newest->to);
        if (e->from == vertex && is_seen && newer) newest = e;
    }
    if (newest) *endp = newest->to;
    if (newest) *xp = (double)newest->weight;
    return newest != NULL;
}

static double naive_value(const world *w, const weir_schema_aggregate *a, uint64_t vertex, uint64_t event,
                          int64_t before_us, uint32_t *mostp) {
    static const plain_edge *edges[EDGES_MAX];
    met steps[WEIR_SCHEMA_THROUGH_MAX + 1] = {{.count = 1, .x = {-1}}};
    uint64_t second = UINT64_MAX;
    double sum = 0, squares = 0, most = -INFINITY, latest = (double)NAN, own, other;
    int64_t newest_us = INT64_MIN, told_us = INT64_MIN, oldest_us = INT64_MAX;
    uint32_t count = 0, told = 0, different = 0;
    steps[0].type = w->f.ends[a->between[0]].to;
    if (!naive_end(w, a->between[0], vertex, event, before_us, &steps[0].who[0], &own)) return (double)NAN;
    if (a->between[1] != WEIR_SCHEMA_NONE && !naive_end(w, a->between[1], vertex, event, before_us, &second, &other))
        return (double)NAN;
    for (uint32_t i = 0; i < a->through_count; i++)
        naive_step(w, a, before_us, steps, i + 1);
    const met *last = &steps[a->through_count];
    if (last->count > *mostp) *mostp = last->count;
    const uint32_t share = 4096 / (last->count ? last->count : 1);
    for (uint32_t i = 0; i < last->count; i++) {
        const weir_schema_walk along = {a->relation, a->direction};
        const uint32_t all = naive_edges(w, a, &along, last, false, i, before_us, share < 256 ? share : 256, edges),
                       before = count;
        for (uint32_t e = 0; e < all; e++) {
            if (second != UINT64_MAX && plain_other(edges[e], direction_of(a->direction)) != second) continue;
            const double x = isnan(edges[e]->weight) ? 0 : (double)edges[e]->weight;
            const bool tells = !isnan(edges[e]->weight);
            count++;
            told += tells;
            sum += x;
            squares += x * x;
            if (tells) most = fmax(most, x);
            if (tells && edges[e]->time_us > told_us) latest = x;
            told_us = tells && edges[e]->time_us > told_us ? edges[e]->time_us : told_us;
            newest_us = edges[e]->time_us > newest_us ? edges[e]->time_us : newest_us;
            oldest_us = edges[e]->time_us < oldest_us ? edges[e]->time_us : oldest_us;
        }
        different += count > before;
    }
    if (a->function == WEIR_SCHEMA_DEPTH) {
        uint32_t steps_met = count > 0;
        for (uint32_t i = 1; i <= a->through_count; i++)
            steps_met += steps[i].count > 0;
        return steps_met;
    }
    if (a->function == WEIR_SCHEMA_COUNT) return count;
    if (a->function == WEIR_SCHEMA_DISTINCT) return different;
    if (a->ratio != WEIR_SCHEMA_NONE) return sum > 0 ? own / sum : (double)NAN; /* which are of sums here */
    if (a->function == WEIR_SCHEMA_SUM) return sum;
    if (a->function == WEIR_SCHEMA_NEWEST) return latest;
    if (a->function == WEIR_SCHEMA_MAX) return told ? most : (double)NAN;
    if (a->function == WEIR_SCHEMA_SINCE_LAST) return (double)(count ? before_us - newest_us : a->window_us) * 1e-6;
    if (a->function == WEIR_SCHEMA_SINCE_FIRST) return count ? (double)(before_us - oldest_us) * 1e-6 : 0;
    return told ? sqrt(fmax(0, squares / told - sum / told * (sum / told))) : (double)NAN;
}

/* --- cases -------------------------------------------------------------------------------------------------------- */

/* Small and large worlds; times of the even rounds are so coarse that many edges share one. */
static void g5_a_walk_is_that_of_the_plain_list(void **state) {
    (void)state;
    weir_rng rng = weir_rng_stream(weir_test_seed(), 0, 0);
    uint64_t told[COLUMNS] = {0};
    uint32_t most = 0;
    for (unsigned round = 0; round < 12; round++) {
        world w = {0};
        const bool large = round % 3 == 2;
        const uint64_t vertices = large ? 150 + weir_rng_below(&rng, 100) : 3 + weir_rng_below(&rng, 40);
        const size_t edges = (size_t)(large ? 2000 + weir_rng_below(&rng, 1000) : weir_rng_below(&rng, 500));
        const int64_t grain_us = round % 2 ? 1 : HOUR_US;
        fixture_random_from(&w.f, &rng, vertices, edges, 0, HOURS * (uint64_t)(HOUR_US / grain_us));
        const float missing = round % 4 == 3 ? 4 : -1;
        for (unsigned i = 0; i < 4; i++)
            for (uint64_t e = 0; e < w.f.csrs[i].edges; e++) {
                w.f.times[i][e] *= grain_us;
                if (w.f.weights[i][e] >= missing && missing > 0) w.f.weights[i][e] = NAN;
            }
        for (unsigned relation = 0; relation < 2; relation++)
            for (size_t e = 0; e < w.f.plain_count[relation]; e++) {
                plain_edge *edge = &w.f.plain[relation][e];
                edge->time_us *= grain_us;
                if (edge->weight >= missing && missing > 0) edge->weight = NAN;
            }
        world_start(&w);
        for (unsigned row = 0; row < ROWS; row++) {
            const uint64_t vertex = weir_rng_below(&rng, row % 2 ? 3 : vertices); /* few have most of the edges */
            const int64_t before_us = 1 + 2 * (int64_t)weir_rng_below(&rng, HOURS * (uint64_t)HOUR_US / 2);
            double values[COLUMNS];
            read_one(&w, vertex, 0, before_us, values);
            for (uint32_t i = 0; i < COLUMNS; i++) {
                const weir_schema_aggregate *a = weir_schema_aggregate_at(w.schema, i);
                const double wanted = naive_value(&w, a, vertex, 0, before_us, &most);
                const double off = 1e-6 * (1 + fabs(wanted));
                if (isnan(wanted) ? !isnan(values[i]) : !(fabs(values[i] - wanted) <= off))
                    fail_msg("%s of %llu before %lld: %g, not %g", a->name, (unsigned long long)vertex,
                             (long long)before_us, values[i], wanted);
                told[i] += wanted > 0 && wanted < (double)a->window_us * 1e-6;
            }
        }
        world_stop(&w);
    }
    for (uint32_t i = 0; i < COLUMNS; i++)
        if (told[i] < 5) fail_msg("column %u told something of %llu targets only", i, (unsigned long long)told[i]);
    assert_true(most == MET_MAX);
}

WEIR_TESTS(WEIR_CASE(g5_a_walk_is_that_of_the_plain_list))

/* SPDX-License-Identifier: Apache-2.0 */
/* aggregate_test.c - every function against a walk over the plain list of edges. */
#include <math.h>

#include "arrays_fixture.h"
#include "weir_test.h"

#include <weir/store/aggregate/aggregate.h>
#include <weir/store/base/clock.h>

#define HOUR_US ((int64_t)3600 * 1000000)
#define COLUMNS 17u /* of a, which has the most */
#define ROWS    150u

static const char text[] =
    "version: 1\n"
    "name: t\n"
    "vertices:\n"
    "  a: {}\n"
    "  b: {}\n"
    "relations:\n"
    "  ab: {from: a, to: b, features: {x: {kind: number}, c: {kind: category, buckets: 8}}}\n"
    "  aa: {from: a, to: a, features: {x: {kind: number}, c: {kind: category, buckets: 8}}}\n"
    "aggregates:\n"
    "  count_1h: {vertex: a, relation: ab, function: count, window: 1h}\n"
    "  sum_5h: {vertex: a, relation: ab, function: sum, of: x, window: 5h, resolution: 1h}\n"
    "  others: {vertex: b, relation: ab, function: distinct, window: 10h}\n"
    "  mean_2h: {vertex: a, relation: ab, function: mean, of: x, window: 2h}\n"
    "  max_7h: {vertex: b, relation: ab, function: max, of: x, window: 7h, resolution: 7h}\n"
    "  kinds: {vertex: a, relation: aa, direction: in, function: distinct, of: c, window: 20h}\n"
    "  friends: {vertex: a, relation: aa, direction: out, function: distinct, window: 20h}\n"
    "  ends: {vertex: a, relation: ab, function: distinct, window: 1h}\n"
    "  min_6h: {vertex: a, relation: ab, function: min, of: x, window: 6h}\n"
    "  spread_9h: {vertex: a, relation: ab, function: deviation, of: x, window: 9h}\n"
    "  last_4h: {vertex: a, relation: ab, function: since_last, window: 4h}\n"
    "  first_12h: {vertex: b, relation: ab, function: since_first, window: 12h, resolution: 3h}\n"
    "  latest_8h: {vertex: a, relation: ab, function: newest, of: x, window: 8h}\n"
    "  to_latest: {vertex: a, end: aa, ratio: x, relation: ab, function: newest, of: x, window: 30h}\n"
    "  to_mean: {vertex: a, between: [aa, ab], ratio: x, relation: ab, function: mean, of: x, window: 30h}\n"
    "  met_30h: {vertex: a, between: [aa, ab], relation: ab, function: since_first, window: 30h}\n"
    "  meetings: {vertex: a, between: [aa, ab], relation: ab, function: count, window: 20h, resolution: 1h}\n"
    "  spent: {vertex: a, between: [aa, ab], relation: ab, function: sum, of: x, window: 30h}\n"
    "  ways: {vertex: a, between: [aa, ab], relation: ab, function: distinct, of: c, window: 25h}\n"
    "  back: {vertex: a, between: [ab, aa], relation: ab, function: since_last, window: 40h}\n"
    "sources:\n"
    "  s: {topic: s, format: json, id: id, time: time, mutations: [{put_vertex: a, key: id}]}\n";

typedef struct world {
    arrays_fixture f;
    int32_t *codes[4];
    const int32_t *code_columns[4][2];
    const float *number_columns[4][2];
    weir_schema *schema;
    weir_sample_source *source;
    weir_aggregates *aggregates;
} world;

/* Numbers are missing now and then, and so are categories; both hang on the event, which the plain list knows. */
static int32_t code_of(uint64_t event) {
    return (int32_t)(event * 2654435761u % 7) - 1;
}

static float number_of(const plain_edge *edge) {
    return edge->event % 5 == 0 ? NAN : edge->weight;
}

static void decorate(world *w) {
    for (unsigned i = 0; i < 4; i++) {
        weir_sample_csr *csr = &w->f.csrs[i];
        w->codes[i] = fixture_array(csr->edges, sizeof(int32_t));
        for (uint64_t e = 0; e < csr->edges; e++) {
            w->codes[i][e] = code_of(csr->events[e]);
            if (csr->events[e] % 5 == 0) w->f.weights[i][e] = NAN;
        }
        w->number_columns[i][0] = w->f.weights[i];
        w->code_columns[i][1] = w->codes[i];
        csr->features = w->number_columns[i];
        csr->codes = w->code_columns[i];
        csr->feature_count = 2;
    }
}

static void world_open(world *w, weir_rng *rng, uint64_t vertices, size_t edges, int64_t first_us) {
    fixture_random_from(&w->f, rng, vertices, edges, first_us, (uint64_t)(40 * HOUR_US));
    decorate(w);
    assert_ok(weir_schema_parse("t.yaml", text, strlen(text), &w->schema));
    assert_ok(weir_sample_over_arrays(&w->f.arrays, &w->source));
    assert_ok(weir_aggregates_open(w->schema, w->source, &w->aggregates));
}

static void world_close(world *w) {
    weir_aggregates_close(w->aggregates);
    weir_sample_source_close(w->source);
    weir_schema_free(w->schema);
    for (unsigned i = 0; i < 4; i++)
        free(w->codes[i]);
    fixture_close(&w->f);
}

/* --- the naive twin --------------------------------------------------------------------------------------------- */

typedef struct naive {
    double sum, squares, max, min, latest;
    int64_t newest_us, oldest_us, latest_us;
    uint32_t count, present, others, kinds;
    bool seen_kind[8];
    bool seen_other[4096];
} naive;

static int64_t begin_of(const weir_schema_aggregate *a, int64_t before_us) {
    int64_t begin_us = before_us - a->window_us;
    if (!a->resolution_us) return begin_us;
    while (begin_us % a->resolution_us != 0)
        begin_us -= begin_us % a->resolution_us > 0 ? begin_us % a->resolution_us
                                                    : a->resolution_us + begin_us % a->resolution_us;
    return begin_us;
}

/* What the values are read of. A vertex is a target if it has an event, which may be 0. */
typedef struct question {
    uint64_t vertex, event;
    int64_t before_us;
} question;

static bool leads_from(const plain_edge *e, weir_schema_direction direction, uint64_t vertex, uint64_t *otherp) {
    *otherp = direction == WEIR_SCHEMA_OUT ? e->to : e->from;
    return (direction == WEIR_SCHEMA_OUT ? e->from : e->to) == vertex;
}

/* The newest edge that the target sees, or NULL; times are all different but for edges of one event. */
static const plain_edge *naive_end(const world *w, const question *q, uint32_t relation) {
    const plain_edge *newest = NULL;
    uint64_t other;
    for (size_t i = 0; i < w->f.plain_count[relation]; i++) {
        const plain_edge *e = &w->f.plain[relation][i];
        bool seen = e->time_us < q->before_us || (e->time_us == q->before_us && q->event && e->event == q->event);
        if (!seen || !leads_from(e, WEIR_SCHEMA_OUT, q->vertex, &other)) continue;
        if (!newest || e->time_us > newest->time_us) newest = e;
    }
    return newest;
}

/* Whose edges count, with whom, and the number of the edge to the first end; false: there is no such end, or pair. */
static bool naive_ends(const world *w, const weir_schema_aggregate *a, const question *q, uint64_t *ownp,
                       uint64_t *withp, double *numberp) {
    *ownp = q->vertex;
    *withp = UINT64_MAX;
    if (a->between[0] == WEIR_SCHEMA_NONE) return true;
    if (q->event == WEIR_SAMPLE_NO_TARGET) return false;
    const bool pair = a->between[1] != WEIR_SCHEMA_NONE;
    const plain_edge *first = naive_end(w, q, a->between[0]);
    const plain_edge *second = pair ? naive_end(w, q, a->between[1]) : NULL;
    if (!first || (pair && !second)) return false;
    *ownp = first->to;
    *numberp = (double)number_of(first);
    if (pair) *withp = second->to;
    return true;
}

static void naive_walk(const world *w, const weir_schema_aggregate *a, uint64_t vertex, uint64_t with,
                       int64_t before_us, naive *n) {
    *n = (naive){.max = -INFINITY,
                 .min = INFINITY,
                 .latest = (double)NAN,
                 .newest_us = INT64_MIN,
                 .oldest_us = INT64_MAX,
                 .latest_us = INT64_MIN};
    for (size_t i = 0; i < w->f.plain_count[a->relation]; i++) {
        const plain_edge *e = &w->f.plain[a->relation][i];
        uint64_t other;
        if (!leads_from(e, a->direction, vertex, &other) || (with != UINT64_MAX && other != with)) continue;
        if (e->time_us >= before_us || e->time_us < begin_of(a, before_us)) continue;
        n->count++;
        n->newest_us = e->time_us > n->newest_us ? e->time_us : n->newest_us;
        n->oldest_us = e->time_us < n->oldest_us ? e->time_us : n->oldest_us;
        if (!n->seen_other[other]) n->others++;
        n->seen_other[other] = true;
        if (code_of(e->event) >= 0 && !n->seen_kind[code_of(e->event)]) {
            n->kinds++;
            n->seen_kind[code_of(e->event)] = true;
        }
        if (isnan(number_of(e))) continue;
        n->present++;
        n->sum += (double)number_of(e);
        n->squares += (double)number_of(e) * (double)number_of(e);
        if (e->time_us > n->latest_us) n->latest = (double)number_of(e);
        n->latest_us = e->time_us > n->latest_us ? e->time_us : n->latest_us;
        n->max = fmax(n->max, (double)number_of(e));
        n->min = fmin(n->min, (double)number_of(e));
    }
}

static double naive_function(const weir_schema_aggregate *a, const naive *of, int64_t before_us) {
    const naive n = *of;
    switch (a->function) {
    case WEIR_SCHEMA_COUNT:
        return n.count;
    case WEIR_SCHEMA_SUM:
        return n.sum;
    case WEIR_SCHEMA_MEAN:
        return n.present ? n.sum / n.present : (double)NAN;
    case WEIR_SCHEMA_MAX:
        return n.present ? n.max : (double)NAN;
    case WEIR_SCHEMA_MIN:
        return n.present ? n.min : (double)NAN;
    case WEIR_SCHEMA_DEVIATION:
        return n.present ? sqrt(fmax(0, n.squares / n.present - n.sum / n.present * (n.sum / n.present))) : (double)NAN;
    case WEIR_SCHEMA_SINCE_LAST:
        return (double)(n.count ? before_us - n.newest_us : a->window_us) * 1e-6;
    case WEIR_SCHEMA_SINCE_FIRST:
        return n.count ? (double)(before_us - n.oldest_us) * 1e-6 : 0;
    case WEIR_SCHEMA_NEWEST:
        return n.latest;
    case WEIR_SCHEMA_DEPTH: /* of walks, which are not here */
        fail();
        break;
    case WEIR_SCHEMA_DISTINCT:
        break;
    }
    return a->of == WEIR_SCHEMA_NONE ? n.others : n.kinds;
}

/* Of a ratio: there is none to nothing, nor to less. */
static double naive_value(const world *w, const weir_schema_aggregate *a, const question *q) {
    uint64_t own, with;
    double number = 0;
    naive n;
    if (!naive_ends(w, a, q, &own, &with, &number)) return (double)NAN;
    naive_walk(w, a, own, with, q->before_us, &n);
    const double value = naive_function(a, &n, q->before_us);
    if (a->ratio == WEIR_SCHEMA_NONE) return value;
    return value > 0 ? number / value : (double)NAN;
}

static void check_row(const world *w, uint32_t type, const question *q, const double *row, uint64_t *pairs) {
    for (uint32_t i = 0; i < weir_schema_aggregate_count(w->schema); i++) {
        const weir_schema_aggregate *a = weir_schema_aggregate_at(w->schema, i);
        if (a->vertex != type) continue;
        double wanted = naive_value(w, a, q);
        *pairs += a->between[0] != WEIR_SCHEMA_NONE && wanted > 0 && a->function != WEIR_SCHEMA_SINCE_LAST;
        /* By the other formula, whose squares cancel each other out. */
        double off = a->function == WEIR_SCHEMA_DEVIATION ? 1e-6 * (1 + wanted) : 0;
        if (isnan(wanted) ? !isnan(*row) : !(fabs(*row - wanted) <= off)) {
            fail_msg("%s of %llu before %lld, event %llx: %g, not %g", a->name, (unsigned long long)q->vertex,
                     (long long)q->before_us, (unsigned long long)q->event, *row, wanted);
        }
        row++;
    }
}

/* --- cases -------------------------------------------------------------------------------------------------------- */

/* A third are what an event of an edge has put, a third are other targets, a third are none. */
static question some_question(const world *w, weir_rng *rng, uint32_t type, int64_t first_us) {
    uint64_t dice = weir_rng_below(rng, 3), relation = type == 0 ? weir_rng_below(rng, 2) : 0;
    if (dice == 0 && w->f.plain_count[relation]) {
        const plain_edge *e = &w->f.plain[relation][weir_rng_below(rng, w->f.plain_count[relation])];
        return (question){type == 0 ? e->from : e->to, e->event, e->time_us};
    }
    return (question){.vertex = weir_rng_below(rng, w->f.vertices[type]),
                      .event = dice == 2 ? WEIR_SAMPLE_NO_TARGET : 0,
                      .before_us = first_us + (int64_t)weir_rng_below(rng, (uint64_t)(50 * HOUR_US)) - HOUR_US};
}

static void every_function_is_a_walk_over_the_list(void **state) {
    (void)state;
    weir_rng rng = weir_rng_stream(weir_test_seed(), 0, 0);
    uint64_t pairs = 0;
    for (unsigned round = 0; round < 20; round++) {
        world w = {0};
        question questions[ROWS];
        uint64_t vertices[ROWS], events[ROWS];
        int64_t before_us[ROWS];
        double values[ROWS * COLUMNS];
        int64_t first_us = round % 2 ? 1 - 20 * HOUR_US : 1; /* before 1970 a remainder is below 0 */
        world_open(&w, &rng, 3 + weir_rng_below(&rng, 60), (size_t)weir_rng_below(&rng, 600), first_us);
        for (uint32_t type = 0; type < 2; type++) {
            uint32_t columns = weir_aggregates_count(w.schema, type);
            assert_int_equal(columns, type == 0 ? COLUMNS : 3);
            for (uint32_t i = 0; i < ROWS; i++) {
                questions[i] = some_question(&w, &rng, type, first_us);
                vertices[i] = questions[i].vertex;
                events[i] = questions[i].event;
                before_us[i] = questions[i].before_us;
            }
            const weir_sample_vertices of = {
                .vertices = vertices, .before_us = before_us, .events = events, .count = ROWS, .type = (uint16_t)type};
            assert_ok(weir_aggregates_read(w.aggregates, &of, values));
            for (uint32_t i = 0; i < ROWS; i++)
                check_row(&w, type, &questions[i], values + (size_t)i * columns, &pairs);
        }
        world_close(&w);
    }
    assert_true(pairs > 100);
}

static void plain_list(world *w, uint32_t relation, const plain_edge *edges, size_t count) {
    w->f.plain[relation] = fixture_array(count, sizeof *edges);
    memcpy(w->f.plain[relation], edges, count * sizeof *edges);
    w->f.plain_count[relation] = count;
}

/* Vertex 0 came at 50 with event 9, to 1; at 40 it led to shop 1, which 1 knows, and at 50 another event led to 0. */
static void g3_ends_are_told_by_its_own_event(void **state) {
    (void)state;
    static const plain_edge aa[] = {{0, 1, 50, 9, 1}, {0, 2, 50, 8, 1}, {0, 2, 60, 9, 1}};
    static const plain_edge ab[] = {{0, 1, 40, 3, 1}, {0, 0, 50, 7, 1}, {1, 1, 30, 4, 1}, {1, 0, 20, 5, 1},
                                    {1, 0, 21, 6, 1}, {2, 0, 22, 1, 1}, {2, 1, 23, 2, 1}};
    const uint64_t vertices[] = {0, 0, 0}, events[] = {9, 8, 0};
    const int64_t before_us[] = {50, 50, 50};
    const weir_sample_vertices of = {.vertices = vertices, .before_us = before_us, .events = events, .count = 3};
    double values[3 * COLUMNS];
    world w = {.f = {.vertices = {3, 2}}};
    plain_list(&w, 0, ab, sizeof ab / sizeof *ab);
    plain_list(&w, 1, aa, sizeof aa / sizeof *aa);
    fixture_close_lists(&w.f);
    decorate(&w);
    assert_ok(weir_schema_parse("t.yaml", text, strlen(text), &w.schema));
    assert_ok(weir_sample_over_arrays(&w.f.arrays, &w.source));
    assert_ok(weir_aggregates_open(w.schema, w.source, &w.aggregates));
    assert_ok(weir_aggregates_read(w.aggregates, &of, values));
    const double *meetings = values + COLUMNS - 4;
    assert_true(meetings[0] == 1);             /* 1 and shop 1, not shop 0, where it was twice */
    assert_true(meetings[COLUMNS] == 1);       /* by event 8: 2 and shop 1                     */
    assert_true(isnan(meetings[2 * COLUMNS])); /* of none: before 50 it led to nobody          */
    world_close(&w);
}

/* Without events no vertex is a target, and a pair is nobody's. */
static void a_pair_is_a_targets(void **state) {
    (void)state;
    weir_rng rng = weir_rng_stream(1, 0, 0);
    world w = {0};
    uint64_t vertex = 0, event = 0;
    int64_t before_us = 41 * HOUR_US;
    double values[COLUMNS];
    world_open(&w, &rng, 2, 600, 1);
    weir_sample_vertices of = {.vertices = &vertex, .before_us = &before_us, .count = 1};
    assert_ok(weir_aggregates_read(w.aggregates, &of, values));
    assert_true(isnan(values[COLUMNS - 1]) && isnan(values[COLUMNS - 5]) && !isnan(values[0]));
    of.events = &event;
    assert_ok(weir_aggregates_read(w.aggregates, &of, values));
    assert_true(values[COLUMNS - 5] > 0);
    world_close(&w);
}

static double count_of_star(size_t degree, int64_t before_us) {
    world w = {0};
    uint64_t vertex = 0;
    double values[COLUMNS];
    fixture_star(&w.f, degree, NULL);
    decorate(&w);
    assert_ok(weir_schema_parse("t.yaml", text, strlen(text), &w.schema));
    assert_ok(weir_sample_over_arrays(&w.f.arrays, &w.source));
    assert_ok(weir_aggregates_open(w.schema, w.source, &w.aggregates));
    assert_ok(weir_aggregates_read(
        w.aggregates, &(weir_sample_vertices){.vertices = &vertex, .before_us = &before_us, .count = 1}, values));
    world_close(&w);
    assert_true(values[5] == values[0]); /* all lead to another vertex */
    return values[0];
}

/* Edges at times 1 to 100; the window of an hour ends before t and begins at t - 1 h. */
static void g1_a_window_has_its_begin_and_not_its_end(void **state) {
    (void)state;
    assert_true(count_of_star(100, 100) == 99);
    assert_true(count_of_star(100, 101) == 100);
    assert_true(count_of_star(100, HOUR_US + 1) == 100);
    assert_true(count_of_star(100, HOUR_US + 2) == 99);
    assert_true(count_of_star(100, HOUR_US + 101) == 0);
    assert_true(count_of_star(100, INT64_MIN + 5) == 0);
}

static void g2_a_hub_counts_its_newest(void **state) {
    (void)state;
    assert_true(count_of_star(WEIR_AGGREGATE_EDGES + 500, HOUR_US) == WEIR_AGGREGATE_EDGES);
    for (unsigned degree = 1; degree <= WEIR_AGGREGATE_EDGES; degree *= 2)
        assert_true(count_of_star(degree, HOUR_US) == degree);
}

static void a_vertex_that_is_not_there_is_said(void **state) {
    (void)state;
    weir_rng rng = weir_rng_stream(1, 0, 0);
    world w = {0};
    uint64_t vertex = 1000;
    int64_t before_us = 1;
    double values[COLUMNS];
    world_open(&w, &rng, 10, 20, 1);
    weir_err err = weir_aggregates_read(
        w.aggregates, &(weir_sample_vertices){.vertices = &vertex, .before_us = &before_us, .count = 1}, values);
    assert_true(err && weir_err_code(err) == WEIR_ECORRUPT);
    world_close(&w);
}

/* Of edges that have all one time, once with it at each edge, and once without. */
static void no_time_is_read_of_edges_that_have_all_one(void **state) {
    (void)state;
    weir_rng rng = weir_rng_stream(weir_test_seed(), 0, 0);
    const int64_t one_us = 20 * HOUR_US;
    uint64_t told = 0;
    for (unsigned round = 0; round < 10; round++) {
        world w = {0}, without;
        world_open(&w, &rng, 3 + weir_rng_below(&rng, 40), 50 + (size_t)weir_rng_below(&rng, 600), 1);
        without = w;
        for (unsigned i = 0; i < 4; i++) {
            for (uint64_t e = 0; e < w.f.csrs[i].edges; e++)
                w.f.times[i][e] = one_us;
            without.f.csrs[i].times = NULL;
            without.f.csrs[i].newest_us = one_us;
        }
        without.f.arrays.csrs = without.f.csrs;
        assert_ok(weir_sample_over_arrays(&without.f.arrays, &without.source));
        assert_ok(weir_aggregates_open(w.schema, without.source, &without.aggregates));
        for (uint32_t type = 0; type < 2; type++) {
            for (uint32_t i = 0; i < ROWS; i++) {
                double values[2][COLUMNS] = {{0}};
                const question q = some_question(&w, &rng, type, 1);
                const int64_t before_us =
                    weir_rng_below(&rng, 4) ? q.before_us : one_us + (int64_t)weir_rng_below(&rng, 2);
                const weir_sample_vertices of = {.vertices = &q.vertex,
                                                 .before_us = &before_us,
                                                 .events = &q.event,
                                                 .count = 1,
                                                 .type = (uint16_t)type};
                assert_ok(weir_aggregates_read(w.aggregates, &of, values[0]));
                assert_ok(weir_aggregates_read(without.aggregates, &of, values[1]));
                assert_memory_equal(values[0], values[1], sizeof values[0]);
                told += values[0][0] > 0;
            }
        }
        weir_aggregates_close(without.aggregates);
        weir_sample_source_close(without.source);
        world_close(&w);
    }
    assert_true(told > 50);
}

WEIR_TESTS(WEIR_CASE(every_function_is_a_walk_over_the_list), WEIR_CASE(g1_a_window_has_its_begin_and_not_its_end),
           WEIR_CASE(a_pair_is_a_targets), WEIR_CASE(g3_ends_are_told_by_its_own_event),
           WEIR_CASE(g2_a_hub_counts_its_newest), WEIR_CASE(a_vertex_that_is_not_there_is_said),
           WEIR_CASE(no_time_is_read_of_edges_that_have_all_one))

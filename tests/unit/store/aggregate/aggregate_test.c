/* SPDX-License-Identifier: Apache-2.0 */
/* aggregate_test.c - every function against a walk over the plain list of edges. */
#include <math.h>

#include "arrays_fixture.h"
#include "weir_test.h"

#include <weir/store/aggregate/aggregate.h>
#include <weir/store/base/clock.h>

#define HOUR_US ((int64_t)3600 * 1000000)

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
    double sum, squares, max, min;
    int64_t newest_us, oldest_us;
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

static void naive_walk(const world *w, const weir_schema_aggregate *a, uint64_t vertex, int64_t before_us, naive *n) {
    *n = (naive){.max = -INFINITY, .min = INFINITY, .newest_us = INT64_MIN, .oldest_us = INT64_MAX};
    for (size_t i = 0; i < w->f.plain_count[a->relation]; i++) {
        const plain_edge *e = &w->f.plain[a->relation][i];
        bool out = a->direction == WEIR_SCHEMA_OUT;
        uint64_t own = out ? e->from : e->to, other = out ? e->to : e->from;
        if (own != vertex || e->time_us >= before_us || e->time_us < begin_of(a, before_us)) continue;
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
        n->max = fmax(n->max, (double)number_of(e));
        n->min = fmin(n->min, (double)number_of(e));
    }
}

static double naive_value(const world *w, const weir_schema_aggregate *a, uint64_t vertex, int64_t before_us) {
    naive n;
    naive_walk(w, a, vertex, before_us, &n);
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
    case WEIR_SCHEMA_DISTINCT:
        break;
    }
    return a->of == WEIR_SCHEMA_NONE ? n.others : n.kinds;
}

static void check_row(const world *w, uint32_t type, uint64_t vertex, int64_t before_us, const double *row) {
    for (uint32_t i = 0; i < weir_schema_aggregate_count(w->schema); i++) {
        const weir_schema_aggregate *a = weir_schema_aggregate_at(w->schema, i);
        if (a->vertex != type) continue;
        double wanted = naive_value(w, a, vertex, before_us);
        /* By the other formula, whose squares cancel each other out. */
        double off = a->function == WEIR_SCHEMA_DEVIATION ? 1e-6 * (1 + wanted) : 0;
        if (isnan(wanted) ? !isnan(*row) : !(fabs(*row - wanted) <= off)) {
            fail_msg("%s of %llu before %lld: %g, not %g", a->name, (unsigned long long)vertex, (long long)before_us,
                     *row, wanted);
        }
        row++;
    }
}

/* --- cases -------------------------------------------------------------------------------------------------------- */

static void every_function_is_a_walk_over_the_list(void **state) {
    (void)state;
    weir_rng rng = weir_rng_stream(weir_test_seed(), 0, 0);
    for (unsigned round = 0; round < 20; round++) {
        world w = {0};
        uint64_t vertices[150];
        int64_t before_us[150];
        double values[150 * 9];
        int64_t first_us = round % 2 ? 1 - 20 * HOUR_US : 1; /* before 1970 a remainder is below 0 */
        world_open(&w, &rng, 3 + weir_rng_below(&rng, 60), (size_t)weir_rng_below(&rng, 600), first_us);
        for (uint32_t type = 0; type < 2; type++) {
            uint32_t columns = weir_aggregates_count(w.schema, type);
            assert_int_equal(columns, type == 0 ? 9 : 3);
            for (uint32_t i = 0; i < 150; i++) {
                vertices[i] = weir_rng_below(&rng, w.f.vertices[type]);
                before_us[i] = first_us + (int64_t)weir_rng_below(&rng, (uint64_t)(50 * HOUR_US)) - HOUR_US;
            }
            assert_ok(weir_aggregates_read(w.aggregates, type, vertices, NULL, before_us, 150, values));
            for (uint32_t i = 0; i < 150; i++)
                check_row(&w, type, vertices[i], before_us[i], values + (size_t)i * columns);
        }
        world_close(&w);
    }
}

static double count_of_star(size_t degree, int64_t before_us) {
    world w = {0};
    uint64_t vertex = 0;
    double values[9];
    fixture_star(&w.f, degree, NULL);
    decorate(&w);
    assert_ok(weir_schema_parse("t.yaml", text, strlen(text), &w.schema));
    assert_ok(weir_sample_over_arrays(&w.f.arrays, &w.source));
    assert_ok(weir_aggregates_open(w.schema, w.source, &w.aggregates));
    assert_ok(weir_aggregates_read(w.aggregates, 0, &vertex, NULL, &before_us, 1, values));
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
    double values[9];
    world_open(&w, &rng, 10, 20, 1);
    weir_err err = weir_aggregates_read(w.aggregates, 0, &vertex, NULL, &before_us, 1, values);
    assert_true(err && weir_err_code(err) == WEIR_ECORRUPT);
    world_close(&w);
}

WEIR_TESTS(WEIR_CASE(every_function_is_a_walk_over_the_list), WEIR_CASE(g1_a_window_has_its_begin_and_not_its_end),
           WEIR_CASE(g2_a_hub_counts_its_newest), WEIR_CASE(a_vertex_that_is_not_there_is_said))

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * labelled_test.c - aggregates over the edges whose neighbour was told to be something, against a walk over the plain
 * lists of edges and of labels. Arrays have no labels: the source here is one over arrays that reads the plain list.
 */
#include <math.h>

#include "arrays_fixture.h"
#include "learn_fixture.h"
#include "weir_test.h"

#include <weir/store/aggregate/aggregate.h>

#define HOUR_US    ((int64_t)3600 * 1000000)
#define COLUMNS    13u /* of a, which has the most */
#define ROWS       150u
#define LABELS_MAX 4000u
#define LABELLED   2u /* types */

static const char text[] =
    "version: 1\n"
    "name: t\n"
    "vertices: {a: {}, b: {}}\n"
    "relations:\n"
    "  ab: {from: a, to: b, features: {x: {kind: number}, c: {kind: category, buckets: 8}}}\n"
    "  aa: {from: a, to: a, features: {x: {kind: number}, c: {kind: category, buckets: 8}}}\n"
    "aggregates:\n"
    "  bad_20h: {vertex: b, relation: ab, function: count, label: l, is: v, window: 20h}\n"
    "  odd_35h: {vertex: b, relation: ab, function: count, label: l, is: [u, w], window: 35h}\n"
    "  spent_9h: {vertex: b, relation: ab, function: sum, of: x, label: l, is: [w, v], window: 9h, resolution: 3h}\n"
    "  all_9h: {vertex: b, relation: ab, function: sum, of: x, window: 9h}\n"
    "  last_30h: {vertex: b, relation: ab, function: since_last, label: l, is: u, window: 30h}\n"
    "  mean_30h: {vertex: a, relation: ab, function: mean, of: x, label: m, is: v, window: 30h}\n"
    "  max_12h: {vertex: a, relation: ab, function: max, of: x, label: m, is: u, window: 12h}\n"
    "  min_40h: {vertex: a, relation: ab, function: min, of: x, label: m, is: [u, v], window: 40h}\n"
    "  spread_8h: {vertex: a, relation: ab, function: deviation, of: x, label: m, is: v, window: 8h}\n"
    "  shops_25h: {vertex: a, relation: ab, function: distinct, label: m, is: u, window: 25h}\n"
    "  kinds_25h: {vertex: a, relation: ab, function: distinct, of: c, label: m, is: [v, u], window: 25h}\n"
    "  count_25h: {vertex: a, relation: ab, function: count, window: 25h}\n"
    "  newest_30h: {vertex: a, relation: ab, function: newest, of: x, label: m, is: v, window: 30h}\n"
    "  first_15h: {vertex: a, relation: aa, direction: in, function: since_first, label: l, is: v, window: 15h}\n"
    "  mates: {vertex: a, relation: aa, direction: in, function: distinct, label: l, is: [v, w], window: 40h}\n"
    "  out_40h: {vertex: a, relation: aa, direction: out, function: count, label: l, is: [u, v, w], window: 40h}\n"
    "  other_40h: {vertex: a, relation: aa, direction: out, function: count, label: n, is: v, window: 40h}\n"
    "  any_40h: {vertex: a, relation: aa, direction: out, function: count, window: 40h}\n"
    "labels:\n"
    "  l: {vertex: a, values: [u, v, w], absent: v}\n"
    "  m: {vertex: b, values: [u, v]}\n"
    "  n: {vertex: a, values: [u, v]}\n"
    "sources:\n"
    "  s: {topic: s, format: json, id: id, time: time, mutations: [{put_vertex: a, key: id}]}\n";

typedef struct plain_label {
    uint32_t label, value;
    uint64_t vertex;
    int64_t time_us;
} plain_label;

/* What the source tells, and what it was asked. */
static struct {
    plain_label labels[LABELS_MAX];
    size_t count;
    uint64_t calls, vertices, window_max;
} told;

typedef struct world {
    arrays_fixture f;
    int32_t *codes[4];
    const int32_t *code_columns[4][2];
    const float *number_columns[4][2];
    weir_schema *schema;
    weir_sample_source *source;
    weir_aggregates *aggregates;
} world;

static uint32_t told_before(uint32_t label, uint64_t vertex, int64_t before_us) {
    uint32_t value = WEIR_SCHEMA_NONE;
    int64_t newest_us = INT64_MIN;
    for (size_t i = 0; i < told.count; i++) {
        const plain_label *l = &told.labels[i];
        if (l->label != label || l->vertex != vertex || l->time_us >= before_us || l->time_us <= newest_us) continue;
        newest_us = l->time_us;
        value = l->value;
    }
    return value;
}

static weir_err tell(weir_sample_source *source, const weir_sample_vertices *of, uint32_t label, uint32_t *values) {
    assert_true(of->vertices && !of->ids && !of->targets && of->count > 0);
    assert_int_equal(of->type, label == 1);
    (void)source;
    told.calls++;
    told.vertices += of->count;
    if (of->count > told.window_max) told.window_max = of->count;
    for (uint32_t i = 0; i < of->count; i++)
        values[i] = told_before(label, of->vertices[i], of->before_us[i]);
    return WEIR_OK;
}

static int32_t code_of(uint64_t event) {
    return (int32_t)(event * 2654435761u % 7) - 1;
}

static float number_of(const plain_edge *edge) {
    return edge->event % 5 == 0 ? NAN : edge->weight;
}

static void world_open(world *w) {
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
    assert_ok(weir_schema_parse("t.yaml", text, strlen(text), &w->schema));
    assert_ok(weir_sample_over_arrays(&w->f.arrays, &w->source));
    assert_null(w->source->labels);
    w->source->labels = tell;
    assert_ok(weir_aggregates_open(w->schema, w->source, &w->aggregates));
    told.calls = told.vertices = told.window_max = 0;
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
    int64_t latest_us, newest_us, oldest_us;
    uint32_t count, present, others, kinds;
    bool seen_kind[8];
    bool seen_other[4096];
} naive;

static int64_t begin_of(const weir_schema_aggregate *a, int64_t before_us) {
    const int64_t begin_us = before_us - a->window_us;
    return a->resolution_us ? (int64_t)floor((double)begin_us / (double)a->resolution_us) * a->resolution_us : begin_us;
}

static bool in_window(const weir_schema_aggregate *a, const plain_edge *e, uint64_t vertex, int64_t before_us) {
    const uint64_t own = a->direction == WEIR_SCHEMA_OUT ? e->from : e->to;
    return own == vertex && e->time_us < before_us && e->time_us >= begin_of(a, before_us);
}

static bool matches(const weir_schema_aggregate *a, uint64_t neighbor, int64_t before_us) {
    const uint32_t value = a->label == WEIR_SCHEMA_NONE ? 0 : told_before(a->label, neighbor, before_us);
    bool is = a->label == WEIR_SCHEMA_NONE;
    for (uint32_t i = 0; i < a->is_count; i++)
        is = is || a->is[i] == value;
    return is;
}

/* How many edges of the window are newer: no two are of one time. */
static size_t newer(const world *w, const weir_schema_aggregate *a, const plain_edge *than, uint64_t vertex,
                    int64_t before_us) {
    size_t count = 0;
    for (size_t i = 0; i < w->f.plain_count[a->relation]; i++) {
        const plain_edge *e = &w->f.plain[a->relation][i];
        count += in_window(a, e, vertex, before_us) && e->time_us > than->time_us;
    }
    return count;
}

static void naive_walk(const world *w, const weir_schema_aggregate *a, uint64_t vertex, int64_t before_us, naive *n) {
    *n = (naive){.max = -INFINITY,
                 .min = INFINITY,
                 .latest = (double)NAN,
                 .latest_us = INT64_MIN,
                 .newest_us = INT64_MIN,
                 .oldest_us = INT64_MAX};
    for (size_t i = 0; i < w->f.plain_count[a->relation]; i++) {
        const plain_edge *e = &w->f.plain[a->relation][i];
        const uint64_t other = a->direction == WEIR_SCHEMA_OUT ? e->to : e->from;
        if (!in_window(a, e, vertex, before_us) || !matches(a, other, before_us)) continue;
        if (a->label != WEIR_SCHEMA_NONE && newer(w, a, e, vertex, before_us) >= WEIR_AGGREGATE_LABELLED) continue;
        n->count++;
        n->newest_us = e->time_us > n->newest_us ? e->time_us : n->newest_us;
        n->oldest_us = e->time_us < n->oldest_us ? e->time_us : n->oldest_us;
        n->others += !n->seen_other[other];
        n->seen_other[other] = true;
        if (code_of(e->event) >= 0) {
            n->kinds += !n->seen_kind[code_of(e->event)];
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

static double naive_value(const world *w, const weir_schema_aggregate *a, uint64_t vertex, int64_t before_us) {
    naive n;
    naive_walk(w, a, vertex, before_us, &n);
    const double mean = n.sum / n.present;
    switch (a->function) {
    case WEIR_SCHEMA_COUNT:
        return n.count;
    case WEIR_SCHEMA_SUM:
        return n.sum;
    case WEIR_SCHEMA_MEAN:
        return n.present ? mean : (double)NAN;
    case WEIR_SCHEMA_MAX:
        return n.present ? n.max : (double)NAN;
    case WEIR_SCHEMA_MIN:
        return n.present ? n.min : (double)NAN;
    case WEIR_SCHEMA_DEVIATION:
        return n.present ? sqrt(fmax(0, n.squares / n.present - mean * mean)) : (double)NAN;
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

/* --- cases -------------------------------------------------------------------------------------------------------- */

/* Some are told again and again, and some in the moment of a question. */
static void some_labels(const world *w, weir_rng *rng, const int64_t *moments_us, size_t moments) {
    told.count = weir_rng_below(rng, LABELS_MAX);
    for (size_t i = 0; i < told.count; i++) {
        const uint32_t label = (uint32_t)weir_rng_below(rng, 3);
        told.labels[i] = (plain_label){.label = label,
                                       .value = (uint32_t)weir_rng_below(rng, label == 0 ? 3 : 2),
                                       .vertex = weir_rng_below(rng, w->f.vertices[label == 1]),
                                       .time_us = (int64_t)weir_rng_below(rng, (uint64_t)(50 * HOUR_US))};
        if (weir_rng_below(rng, 4) == 0) told.labels[i].time_us = moments_us[weir_rng_below(rng, moments)];
    }
}

static uint64_t check_row(const world *w, uint32_t type, uint64_t vertex, int64_t before_us, const double *row) {
    uint64_t chosen = 0;
    for (uint32_t i = 0; i < weir_schema_aggregate_count(w->schema); i++) {
        const weir_schema_aggregate *a = weir_schema_aggregate_at(w->schema, i);
        if (a->vertex != type) continue;
        const double wanted = naive_value(w, a, vertex, before_us);
        /* By the other formula, whose squares cancel each other out. */
        const double off = a->function == WEIR_SCHEMA_DEVIATION ? 1e-6 * (1 + wanted) : 0;
        chosen += a->label != WEIR_SCHEMA_NONE && a->function == WEIR_SCHEMA_COUNT && wanted > 0;
        if (isnan(wanted) ? !isnan(*row) : !(fabs(*row - wanted) <= off))
            fail_msg("%s of %llu before %lld: %g, not %g", a->name, (unsigned long long)vertex, (long long)before_us,
                     *row, wanted);
        row++;
    }
    return chosen;
}

static void g4_every_function_is_a_walk_over_the_lists(void **state) {
    (void)state;
    weir_rng rng = weir_rng_stream(weir_test_seed(), 0, 0);
    uint64_t chosen = 0, widest = 0;
    for (unsigned round = 0; round < 20; round++) {
        world w = {0};
        uint64_t vertices[ROWS];
        int64_t before_us[ROWS];
        double values[ROWS * COLUMNS];
        fixture_random_from(&w.f, &rng, 3 + weir_rng_below(&rng, 60), (size_t)weir_rng_below(&rng, 900), 1,
                            (uint64_t)(40 * HOUR_US));
        world_open(&w);
        for (uint32_t type = 0; type < LABELLED; type++) {
            const uint32_t columns = weir_aggregates_count(w.schema, type);
            assert_int_equal(columns, type == 0 ? COLUMNS : 5);
            for (uint32_t i = 0; i < ROWS; i++) {
                vertices[i] = weir_rng_below(&rng, w.f.vertices[type]);
                before_us[i] = (int64_t)weir_rng_below(&rng, (uint64_t)(50 * HOUR_US)) - HOUR_US;
            }
            some_labels(&w, &rng, before_us, ROWS);
            const weir_sample_vertices of = {
                .vertices = vertices, .before_us = before_us, .count = ROWS, .type = (uint16_t)type};
            assert_ok(weir_aggregates_read(w.aggregates, &of, values));
            for (uint32_t i = 0; i < ROWS; i++)
                chosen += check_row(&w, type, vertices[i], before_us[i], values + (size_t)i * columns);
        }
        widest = told.window_max > widest ? told.window_max : widest;
        world_close(&w);
    }
    assert_true(chosen > 1000 && widest <= WEIR_AGGREGATE_LABELLED);
}

/* Vertex 0 leads to n at time degree - n; only `since` and what is older was told to be 0. */
static const double *read_star(size_t degree, size_t since, int64_t before_us, double values[COLUMNS]) {
    world w = {0};
    uint64_t vertex = 0;
    told.count = 0;
    fixture_star(&w.f, degree, NULL);
    for (size_t n = since; n < degree && told.count < LABELS_MAX; n++)
        told.labels[told.count++] = (plain_label){.label = 1, .value = 0, .vertex = n, .time_us = 1};
    world_open(&w);
    assert_ok(weir_aggregates_read(
        w.aggregates, &(weir_sample_vertices){.vertices = &vertex, .before_us = &before_us, .count = 1}, values));
    world_close(&w);
    return values;
}

enum { MEAN, MAX, MIN, SPREAD, SHOPS, KINDS, COUNT };

static void g4_of_a_hub_the_newest_are_looked_at(void **state) {
    (void)state;
    const size_t many = WEIR_AGGREGATE_LABELLED + 500;
    double values[COLUMNS];
    assert_true(read_star(many, 0, HOUR_US, values)[SHOPS] == WEIR_AGGREGATE_LABELLED);
    assert_true(values[COUNT] == (double)many); /* without a label it sees them all */
    assert_true(read_star(many, WEIR_AGGREGATE_LABELLED - 1, HOUR_US, values)[SHOPS] == 1);
    assert_true(read_star(many, WEIR_AGGREGATE_LABELLED, HOUR_US, values)[SHOPS] == 0);
    assert_true(isnan(values[MAX]) && isnan(values[MEAN]));
    assert_true(read_star(WEIR_AGGREGATE_LABELLED, 0, HOUR_US, values)[SHOPS] == WEIR_AGGREGATE_LABELLED);
}

/* Six aggregates by one label of one relation ask once for all neighbours of a vertex. */
static void a_label_is_asked_for_once_a_window(void **state) {
    (void)state;
    double values[COLUMNS];
    read_star(40, 0, HOUR_US, values);
    assert_int_equal(told.calls, 1);
    assert_int_equal(told.vertices, 40);
    read_star(40, 0, 1, values); /* no edge is older, and nobody is asked for */
    assert_int_equal(told.calls, 0);
}

/* What is told in the moment itself, or later, was not known; what was told a microsecond before was. */
static void g4_a_label_has_to_be_older(void **state) {
    (void)state;
    static const int64_t ages_us[] = {-1, 0, 1, 2};
    for (size_t i = 0; i < sizeof ages_us / sizeof *ages_us; i++) {
        world w = {0};
        uint64_t vertex = 0;
        const int64_t before_us = 100;
        double values[COLUMNS];
        fixture_star(&w.f, 1, NULL);
        told.count = 1;
        told.labels[0] = (plain_label){.label = 1, .value = 0, .time_us = before_us - ages_us[i]};
        world_open(&w);
        assert_ok(weir_aggregates_read(
            w.aggregates, &(weir_sample_vertices){.vertices = &vertex, .before_us = &before_us, .count = 1}, values));
        assert_true(values[SHOPS] == (ages_us[i] > 0));
        world_close(&w);
    }
}

static void a_graph_without_labels_is_said(void **state) {
    (void)state;
    world w = {0};
    uint64_t vertex = 0;
    int64_t before_us = 100;
    double values[COLUMNS];
    fixture_star(&w.f, 3, NULL);
    world_open(&w);
    w.source->labels = NULL;
    assert_err(weir_aggregates_read(w.aggregates,
                                    &(weir_sample_vertices){.vertices = &vertex, .before_us = &before_us, .count = 1},
                                    values),
               WEIR_EINVAL, "counts by a label, and this graph has none; leave it out");
    world_close(&w);
}

/* What two people are told of their pays, by a source of its own: one remembers who has labels. */
static weir_err read_learnt(const weir_snapshot *snapshot) {
    static const uint64_t people[] = {0, 1};
    const int64_t as_of_us = weir_snapshot_as_of_us(snapshot), before_us[] = {as_of_us, as_of_us};
    weir_sample_source *source;
    weir_aggregates *aggregates;
    double values[8];
    assert_ok(weir_sample_over_snapshot(snapshot, &source));
    assert_ok(weir_aggregates_open(weir_snapshot_schema(snapshot), source, &aggregates));
    weir_err err = weir_aggregates_read(
        aggregates, &(weir_sample_vertices){.vertices = people, .before_us = before_us, .count = 2, .type = LEARN_WHO},
        values);
    assert_true(err || values[1] + values[4] > 0);
    weir_aggregates_close(aggregates);
    weir_sample_source_close(source);
    return err;
}

/* Whoever has written a file can have written its sum, too: nothing that it says leads outside. */
static void a_spoiled_snapshot_is_said(void **state) {
    (void)state;
    static const int64_t wild[] = {-1, INT64_MIN, INT64_MAX, (int64_t)1 << 40, 3};
    const learn_plan plan = {.seed = 3, .pays = 80, .people = 2, .bad = 1, .told = true};
    weir_snapshot *snapshot = learn_snapshot_open(&plan);
    const weir_snapshot_labels *l = weir_snapshot_labels_of(snapshot, LEARN_BAD);
    const weir_snapshot_spans *lives = &weir_snapshot_vertices_of(snapshot, LEARN_PAY)->lives;
    const struct {
        const char *array;
        const void *numbers;
        bool always; /* it cannot be right */
    } spoiled[] = {{"labels/bad/values", l->values, true},
                   {"labels/bad/targets", l->targets, false},
                   {"labels/bad/times", l->times, false},
                   {"vertices/pay/lives/indptr", lives->indptr, false},
                   {"vertices/pay/lives/first", lives->times, false}};
    assert_ok(read_learnt(snapshot));
    for (size_t i = 0; i < sizeof spoiled / sizeof *spoiled; i++) {
        for (size_t n = 0; n < sizeof wild / sizeof *wild; n++) {
            int64_t right;
            memcpy(&right, (const char *)spoiled[i].numbers + 20 * sizeof right, sizeof right);
            learn_spoil(spoiled[i].array, 20, wild[n]);
            weir_err err = read_learnt(snapshot);
            if (spoiled[i].always && wild[n] != 3) assert_non_null(err); /* 3 is two values: one that is listed */
            if (err) assert_int_equal(weir_err_code(err), WEIR_ECORRUPT);
            learn_spoil(spoiled[i].array, 20, right);
        }
    }
    learn_spoil("labels/bad/values", 20, -1);
    assert_err(read_learnt(snapshot), WEIR_ECORRUPT, "of label 'bad', which has only 2; take another copy");
    weir_snapshot_close(snapshot);
}

WEIR_TESTS(WEIR_CASE(g4_every_function_is_a_walk_over_the_lists), WEIR_CASE(g4_of_a_hub_the_newest_are_looked_at),
           WEIR_CASE(g4_a_label_has_to_be_older), WEIR_CASE(a_label_is_asked_for_once_a_window),
           WEIR_CASE(a_graph_without_labels_is_said), WEIR_CASE(a_spoiled_snapshot_is_said))

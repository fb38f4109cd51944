/* SPDX-License-Identifier: Apache-2.0 */
/* history_test.c - how far back a reader may ask: to the microsecond, in every kind of question. */
#include "weir_test.h"

#include <math.h>
#include <string.h>

#include <weir/store/aggregate/aggregate.h>
#include <weir/store/base/file.h>
#include <weir/store/format/row.h>
#include <weir/store/graph/graph.h>
#include <weir/store/sample/source.h>

#include "submit.h"

#define CLOCK_EVENTS 63u /* so many of one time, and the watermark is there */
#define PAYER        1u  /* put with a row, and by its edges of both relations */
#define SHOP         2u
#define BY_EDGE      3u /* named long ago, put by one edge of the relation with a history since */
#define KEY_AT       100
#define EDGE_EXPIRY  700 /* of `paid` */
#define EDGE_HISTORY 50
#define HISTORY      100 /* of the payers */

enum { PAID, KEPT };
enum { OF_PAYER, OF_PAYMENT };

static const char schema_text[] =
    "version: 1\n"
    "name: tiny\n"
    "vertices:\n"
    "  payer: {expire: 450us, history: 100us, features: {x: {kind: number}}}\n"
    "  shop: {}\n"
    "relations:\n"
    "  paid: {from: payer, to: shop, expire: 700us, history: 50us, features: {w: {kind: number}}}\n"
    "  kept: {from: payer, to: shop, features: {w: {kind: number}}}\n"
    "aggregates:\n"
    "  payments: {vertex: payer, relation: paid, function: count, window: 600us}\n"
    "  spent: {vertex: payer, relation: paid, function: sum, of: w, window: 600us}\n"
    "  most: {vertex: payer, relation: paid, function: max, of: w, window: 600us}\n"
    "  visits: {vertex: payer, relation: kept, function: count, window: 600us}\n"
    "labels:\n"
    "  of_payer: {vertex: payer, values: [no, yes]}\n"
    "  of_payment: {relation: paid, values: [no, yes]}\n"
    "sources:\n"
    "  s: {id: id, time: t, mutations: [{put_edge: paid, from: a, to: b, features: [w]}]}\n";

typedef struct fixture {
    weir_schema *schema;
    weir_graph *graph;
    weir_arena *arena;
    weir_sample_source *over_graph;
    weir_aggregates *aggregates;
    uint32_t source;
    uint64_t offset;
    uint8_t number[16], yes[16];
    uint32_t number_length, yes_length;
} fixture;

static void submit(fixture *f, weir_mutation *mutations, size_t count) {
    assert_ok(submit_event(f->graph, f->source, f->offset++, mutations, count));
}

static void put_edge(fixture *f, uint16_t relation, weir_vertex from, int64_t time_us) {
    weir_mutation m[2];
    m[0] = (weir_mutation){.kind = WEIR_PUT_EDGE,
                           .type = relation,
                           .direction = WEIR_OUT,
                           .vertex = from,
                           .neighbor = SHOP,
                           .time_us = time_us,
                           .event = 100 + f->offset,
                           .row = f->number,
                           .row_length = f->number_length};
    m[1] = m[0];
    m[1].direction = WEIR_IN;
    m[1].vertex = SHOP;
    m[1].neighbor = from;
    submit(f, m, 2);
}

static void put_vertex(fixture *f, weir_vertex vertex, int64_t time_us, bool with_row) {
    weir_mutation m = {.kind = WEIR_PUT_VERTEX,
                       .vertex = vertex,
                       .time_us = time_us,
                       .event = 100 + f->offset,
                       .key = "k",
                       .key_length = 1,
                       .row = with_row ? f->number : NULL,
                       .row_length = with_row ? f->number_length : 0};
    submit(f, &m, 1);
}

static void put_label(fixture *f, uint16_t label, int64_t time_us) {
    weir_mutation m = {.kind = WEIR_PUT_LABEL,
                       .type = label,
                       .vertex = PAYER,
                       .time_us = time_us,
                       .event = 100 + f->offset,
                       .row = f->yes,
                       .row_length = f->yes_length};
    submit(f, &m, 1);
}

/* Enough events of this time, of a vertex that nobody asks for. */
static void move_watermark(fixture *f, int64_t time_us) {
    for (unsigned i = 0; i < CLOCK_EVENTS; i++) {
        weir_mutation m = {
            .kind = WEIR_PUT_VERTEX, .type = 1, .vertex = 99, .time_us = time_us, .event = 100 + f->offset};
        submit(f, &m, 1);
    }
    assert_ok(weir_graph_drain(f->graph));
    assert_int_equal(weir_graph_watermark(f->graph), time_us);
}

static void store_open(fixture *f) {
    const weir_graph_opts opts = {.shards = 2, .memory_bytes = 8u << 20, .create = true};
    assert_ok(weir_graph_open(weir_test_path("store"), f->schema, &opts, &f->graph));
    assert_ok(weir_graph_source(f->graph, "log:s", 7, &f->source));
    assert_ok(weir_sample_over_graph(f->graph, 1u << 20, &f->over_graph));
    assert_ok(weir_aggregates_open(f->schema, f->over_graph, &f->aggregates));
}

static void store_close(fixture *f) {
    weir_aggregates_close(f->aggregates);
    weir_sample_source_close(f->over_graph);
    assert_ok(weir_graph_close(f->graph));
}

static void reopen(fixture *f) {
    store_close(f);
    store_open(f);
}

/* Payments of 3 at 500 and at 600, a visit at 500. */
static void fixture_open(fixture *f) {
    static const weir_value_kind kinds[] = {WEIR_VALUE_NUMBER, WEIR_VALUE_CATEGORY};
    const weir_value three = {.present = true, .number = 3}, yes = {.present = true, .text = "yes", .text_length = 3};
    *f = (fixture){.offset = 0};
    f->number_length = (uint32_t)weir_row_write(&kinds[0], &three, 1, f->number);
    f->yes_length = (uint32_t)weir_row_write(&kinds[1], &yes, 1, f->yes);
    assert_ok(weir_schema_parse("tiny", schema_text, sizeof schema_text - 1, &f->schema));
    assert_ok(weir_arena_open(4u << 20, &f->arena));
    store_open(f);
    put_vertex(f, BY_EDGE, KEY_AT, false);
    put_vertex(f, PAYER, 500, true);
    put_edge(f, PAID, PAYER, 500);
    put_edge(f, KEPT, PAYER, 500);
    put_edge(f, PAID, PAYER, 600);
    put_edge(f, PAID, BY_EDGE, 600);
    put_label(f, OF_PAYER, 650);
    put_label(f, OF_PAYMENT, 650);
}

static void fixture_close(fixture *f) {
    store_close(f);
    weir_arena_close(f->arena);
    weir_schema_free(f->schema);
}

/* --- questions -------------------------------------------------------------------------------------------------- */

static uint32_t edges_before(fixture *f, weir_vertex vertex, uint16_t relation, weir_direction direction,
                             int64_t before_us) {
    const weir_edge *edges;
    uint32_t count;
    weir_arena_reset(f->arena);
    assert_ok(weir_graph_neighbors(f->graph, vertex, relation, direction, before_us, 8, f->arena, &edges, &count));
    return count;
}

static bool label_before(fixture *f, uint16_t label, int64_t before_us) {
    weir_row_view view;
    weir_arena_reset(f->arena);
    assert_ok(weir_graph_label(f->graph, PAYER, label, before_us, f->arena, &view));
    return view.row != NULL;
}

static bool features_before(fixture *f, weir_vertex vertex, int64_t before_us) {
    weir_row_view view;
    weir_arena_reset(f->arena);
    assert_ok(weir_graph_features(f->graph, vertex, before_us, f->arena, &view));
    return view.row != NULL;
}

static bool is_there_before(fixture *f, weir_vertex vertex, int64_t before_us, int64_t first_us) {
    bool known;
    int64_t time_us;
    weir_arena_reset(f->arena);
    assert_ok(weir_graph_first_put(f->graph, vertex, before_us, f->arena, &known, &time_us));
    if (known) assert_int_equal(time_us, first_us);
    return known;
}

static bool has_name(fixture *f, weir_vertex vertex) {
    uint16_t type;
    const char *key;
    uint32_t length;
    weir_arena_reset(f->arena);
    assert_ok(weir_graph_name(f->graph, vertex, f->arena, &type, &key, &length));
    return key != NULL;
}

/* payments, spent, most, visits. */
static void aggregates_are(fixture *f, int64_t before_us, bool told) {
    const weir_vertex payer = PAYER;
    double values[4];
    assert_ok(weir_aggregates_read(
        f->aggregates, &(weir_sample_vertices){.ids = &payer, .before_us = &before_us, .count = 1}, values));
    assert_true(values[0] == (told ? 2 : 0) && values[1] == (told ? 6 : 0));
    assert_true(told ? values[2] == 3 : isnan(values[2]));
    assert_true(values[3] == 1);
}

/* All that hangs on the relation, before a time; told: its history reaches that. */
static void relation_is(fixture *f, int64_t before_us, bool told) {
    assert_int_equal(edges_before(f, PAYER, PAID, WEIR_OUT, before_us), told ? 2 : 0);
    assert_int_equal(edges_before(f, SHOP, PAID, WEIR_IN, before_us), told ? 3 : 0);
    assert_int_equal(edges_before(f, PAYER, KEPT, WEIR_OUT, before_us), 1);
    assert_int_equal(edges_before(f, SHOP, KEPT, WEIR_IN, before_us), 1);
    assert_true(label_before(f, OF_PAYMENT, before_us) == told);
    aggregates_are(f, before_us, told);
}

static void payers_are(fixture *f, int64_t before_us, bool told) {
    assert_true(features_before(f, PAYER, before_us) == told);
    assert_true(label_before(f, OF_PAYER, before_us) == told);
    assert_true(is_there_before(f, PAYER, before_us, 500) == told);
    assert_true(is_there_before(f, BY_EDGE, before_us, 600) == told);
    assert_true(has_name(f, PAYER) && has_name(f, BY_EDGE) && has_name(f, SHOP) == false);
}

/* --- cases ------------------------------------------------------------------------------------------------------ */

/* In the delta, then sealed, then opened again: the watermark is sealed too. Edges that are older than the history are
 * told of times within it: it is not an age. */
static void a_relation_is_told_of_times_within_its_history(void **state) {
    fixture f;
    (void)state;
    fixture_open(&f);
    move_watermark(&f, 1000);
    for (unsigned i = 0; i < 3; i++) {
        relation_is(&f, 1000 - EDGE_HISTORY - 1, false);
        relation_is(&f, 1000 - EDGE_HISTORY, false);
        relation_is(&f, 1000 - EDGE_HISTORY + 1, true);
        relation_is(&f, 1000, true);
        relation_is(&f, 1050, true); /* ahead of the watermark */
        assert_int_equal(edges_before(&f, PAYER, PAID, WEIR_OUT, WEIR_BEFORE_ALL), 2);
        assert_int_equal(edges_before(&f, PAYER, KEPT, WEIR_OUT, INT64_MIN), 0);
        if (i == 0) assert_ok(weir_graph_seal(f.graph));
        if (i == 1) reopen(&f);
    }
    fixture_close(&f);
}

static void the_bound_moves_with_the_watermark(void **state) {
    fixture f;
    (void)state;
    fixture_open(&f);
    move_watermark(&f, 700);
    relation_is(&f, 650, false);
    relation_is(&f, 651, true);
    move_watermark(&f, 701);
    relation_is(&f, 651, false);
    relation_is(&f, 652, true);
    move_watermark(&f, 900);
    relation_is(&f, 850, false);
    relation_is(&f, 851, true);
    fixture_close(&f);
}

/* One event far ahead is not what the sources agree on: it takes nothing back. */
static void one_wild_event_withholds_nothing(void **state) {
    fixture f;
    (void)state;
    fixture_open(&f);
    move_watermark(&f, 700);
    put_edge(&f, KEPT, 98, 900000000);
    assert_ok(weir_graph_drain(f.graph));
    assert_int_equal(edges_before(&f, PAYER, PAID, WEIR_OUT, 651), 2);
    assert_true(features_before(&f, PAYER, 651) && is_there_before(&f, BY_EDGE, 651, 600));
    fixture_close(&f);
}

/* Not a row, not a label, and not there; but a name has no time. */
static void a_vertex_is_told_of_times_within_its_history(void **state) {
    fixture f;
    (void)state;
    fixture_open(&f);
    move_watermark(&f, 1000);
    for (unsigned i = 0; i < 3; i++) {
        payers_are(&f, 1000 - HISTORY - 1, false);
        payers_are(&f, 1000 - HISTORY, false);
        payers_are(&f, 1000 - HISTORY + 1, true);
        payers_are(&f, 949, true);
        payers_are(&f, WEIR_BEFORE_ALL, true);
        if (i == 0) assert_ok(weir_graph_seal(f.graph));
        if (i == 1) reopen(&f);
    }
    fixture_close(&f);
}

/* Its name came long ago, and nothing but an edge of `paid` since: of 940 that edge is told nobody, and yet the vertex
 * is there by it, until its type's expiry. */
static void an_edge_that_is_not_told_is_a_put_all_the_same(void **state) {
    fixture f;
    (void)state;
    fixture_open(&f);
    move_watermark(&f, 1000);
    assert_int_equal(edges_before(&f, BY_EDGE, PAID, WEIR_OUT, 940), 0);
    assert_true(is_there_before(&f, BY_EDGE, 940, 600));
    assert_true(has_name(&f, BY_EDGE));
    move_watermark(&f, 1049);
    assert_true(is_there_before(&f, BY_EDGE, 1049, 600) && has_name(&f, BY_EDGE));
    move_watermark(&f, 1050);
    assert_true(!is_there_before(&f, BY_EDGE, 1050, 600) && !has_name(&f, BY_EDGE));
    fixture_close(&f);
}

/* Age and history are two rules: within the history an edge expires as ever. */
static void an_edge_expires_within_the_history(void **state) {
    fixture f;
    (void)state;
    fixture_open(&f);
    move_watermark(&f, 500 + EDGE_EXPIRY);
    assert_int_equal(edges_before(&f, PAYER, PAID, WEIR_OUT, 500 + EDGE_EXPIRY - 1), 2);
    assert_int_equal(edges_before(&f, PAYER, PAID, WEIR_OUT, 500 + EDGE_EXPIRY), 1);
    assert_int_equal(edges_before(&f, PAYER, PAID, WEIR_OUT, 500 + EDGE_EXPIRY - EDGE_HISTORY + 1), 2);
    assert_int_equal(edges_before(&f, PAYER, PAID, WEIR_OUT, 500 + EDGE_EXPIRY - EDGE_HISTORY), 0);
    fixture_close(&f);
}

WEIR_TESTS(WEIR_CASE(a_relation_is_told_of_times_within_its_history), WEIR_CASE(the_bound_moves_with_the_watermark),
           WEIR_CASE(one_wild_event_withholds_nothing), WEIR_CASE(a_vertex_is_told_of_times_within_its_history),
           WEIR_CASE(an_edge_that_is_not_told_is_a_put_all_the_same), WEIR_CASE(an_edge_expires_within_the_history))

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remains_test.c - a hub whose edges are put and undone in bursts, read meanwhile as of now and of the past: each
 * answer is what a naive graph says.
 *
 * Deletions come late, and edges after what deletes them; neighbours and the hub itself are deleted, too. Seals fall
 * anywhere, so that what hides an edge lies in the cold store, in a delta, or in both. In every other store another
 * reader asks the same all the time: what it leaves behind is there in the midst of a read that found nothing at first.
 */
#include "submit.h"
#include "weir_test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <weir/store/base/file.h>
#include <weir/store/base/rng.h>
#include <weir/store/graph/graph.h>

#include <naive_graph.h>

enum { HUB = 1, NEIGHBORS = 30, LIMIT = 200, BURST = 150, ROUNDS = 40, STORES = 4, READS = 12 };

typedef struct campaign {
    weir_rng rng;
    weir_schema *schema;
    weir_graph *graph;
    naive_graph *naive;
    weir_arena *arena;
    uint32_t source;
    uint64_t offset, events;
    int64_t now_us;
    bool deletes_vertices, read_beside; /* by another reader, too: then a seed alone repeats nothing */
    uint64_t read_twice, cheap; /* reads at once after the same, and those of them that took less than a fifth */
} campaign;

static const char schemas[][320] = {
    "version: 1\nname: hub\nvertices: {a: {}, b: {}}\n"
    "relations: {r: {from: a, to: b, features: {w: {kind: number}}}}\n"
    "sources: {s: {id: id, time: t, mutations: [{put_edge: r, from: a, to: b, features: [w]}]}}\n",
    "version: 1\nname: hub\nvertices: {a: {}, b: {}}\n"
    "relations: {r: {from: a, to: b, expire: 1s, features: {w: {kind: number}}}}\n"
    "sources: {s: {id: id, time: t, mutations: [{put_edge: r, from: a, to: b, features: [w]}]}}\n"};

static uint64_t below(campaign *c, uint64_t bound) {
    return weir_rng_below(&c->rng, bound);
}

static weir_vertex neighbor_of(uint64_t event) {
    return 100 + event * 7 % NEIGHBORS;
}

static void apply(campaign *c, weir_mutation m) {
    m.vertex = m.vertex ? m.vertex : HUB;
    assert_ok(submit_event(c->graph, c->source, c->offset++, &m, 1));
    naive_graph_apply(c->naive, &m);
}

/* Mostly now; some are late. */
static int64_t some_time(campaign *c) {
    c->now_us += (int64_t)below(c, 2000);
    return below(c, 12) ? c->now_us : c->now_us - (int64_t)below(c, 400000);
}

static void put_edge(campaign *c, uint64_t event, int64_t time_us) {
    static const weir_value_kind kind = WEIR_VALUE_NUMBER;
    const weir_value value = {.present = true, .number = (double)event};
    uint8_t row[64];
    uint32_t length = (uint32_t)weir_row_write(&kind, &value, 1, row);
    apply(c, (weir_mutation){.kind = WEIR_PUT_EDGE,
                             .neighbor = neighbor_of(event),
                             .event = event,
                             .time_us = time_us,
                             .row = row,
                             .row_length = length});
}

static void delete_edge(campaign *c, uint64_t event) {
    bool all = below(c, 300) == 0;
    apply(c, (weir_mutation){.kind = WEIR_DELETE_EDGE,
                             .neighbor = neighbor_of(event),
                             .event = all ? 0 : event,
                             .time_us = some_time(c)});
}

/* So many are put, and most of all that there are undone, in any order. */
static void burst(campaign *c) {
    uint64_t first = c->events + 1;
    for (uint64_t i = 0; i < BURST; i++)
        put_edge(c, ++c->events, some_time(c));
    for (uint64_t i = 0; i < BURST; i++)
        if (below(c, 30)) delete_edge(c, first + (i * 7 + 3) % BURST);
}

static void delete_vertex(campaign *c, weir_vertex vertex) {
    apply(c, (weir_mutation){.kind = WEIR_DELETE_VERTEX, .vertex = vertex, .time_us = some_time(c)});
}

/* One of the newest, or of those that were newest a while ago. */
static uint64_t known_event(campaign *c) {
    uint64_t back = below(c, below(c, 2) ? 12 : 4 * BURST);
    return back < c->events ? c->events - back : 1;
}

static void change(campaign *c) {
    uint64_t dice = (c->deletes_vertices ? 0 : 5) + below(c, 195);
    if (dice == 0) {
        delete_vertex(c, HUB);
    } else if (dice < 5) {
        delete_vertex(c, 100 + below(c, NEIGHBORS));
    } else if (dice < 9) {
        burst(c);
    } else if (dice < 80) {
        delete_edge(c, known_event(c));
    } else if (dice < 100) {
        put_edge(c, known_event(c), c->now_us - (int64_t)below(c, 300000)); /* once more, and late */
    } else {
        put_edge(c, ++c->events, some_time(c));
    }
    if (below(c, 12) > 0) return;
    assert_ok(weir_graph_drain(c->graph));
    assert_ok(weir_graph_seal(c->graph));
}

static int64_t some_before(campaign *c) {
    uint64_t dice = below(c, 10);
    if (dice < 4) return WEIR_BEFORE_ALL;
    return c->now_us + 1 - (int64_t)below(c, dice < 9 ? 12000 : 2000000);
}

static uint64_t read_one(campaign *c, int64_t before_us, uint32_t limit) {
    static naive_edge wanted[LIMIT];
    weir_graph_budget budget = {.steps = UINT64_MAX};
    const weir_edge *edges;
    uint32_t count;
    int64_t expire_us = weir_schema_relation_at(c->schema, 0)->expire_us;
    size_t wanted_count = naive_graph_neighbors(c->naive, HUB, 0, WEIR_OUT, before_us, expire_us,
                                                naive_graph_now(c->naive), limit, wanted);
    weir_arena_reset(c->arena);
    assert_ok(
        weir_graph_neighbors_within(c->graph, HUB, 0, WEIR_OUT, before_us, limit, &budget, c->arena, &edges, &count));
    assert_int_equal(count, wanted_count);
    for (uint32_t i = 0; i < count; i++) {
        assert_true(edges[i].event == wanted[i].event && edges[i].time_us == wanted[i].time_us);
        assert_true(edges[i].neighbor == wanted[i].neighbor && edges[i].row_length == wanted[i].row_length);
        assert_memory_equal(edges[i].row, wanted[i].row, wanted[i].row_length);
    }
    return UINT64_MAX - budget.steps;
}

static void read_some(campaign *c) {
    assert_ok(weir_graph_drain(c->graph));
    naive_graph_now_set(c->naive, weir_graph_watermark(c->graph));
    for (unsigned i = 0; i < READS; i++) {
        int64_t before_us = some_before(c);
        uint32_t limit = 1 + (uint32_t)below(c, below(c, 3) ? 12 : LIMIT);
        uint64_t first = read_one(c, before_us, limit);
        if (first < 600) continue;
        c->read_twice++;
        c->cheap += read_one(c, before_us, limit) < first / 5;
    }
}

typedef struct other_reader {
    weir_graph *graph;
    uint64_t seed;
    atomic_bool ends;
} other_reader;

/* The newest, as of now: what it says is looked at elsewhere. */
static void *read_beside(void *context) {
    other_reader *o = context;
    weir_rng rng = weir_rng_stream(o->seed, 0, 1);
    weir_arena *arena;
    assert_ok(weir_arena_open(64u << 20, &arena));
    while (!atomic_load(&o->ends)) {
        const weir_edge *edges;
        uint32_t count, limit = 1 + (uint32_t)weir_rng_below(&rng, 12);
        assert_ok(weir_graph_neighbors(o->graph, HUB, 0, WEIR_OUT, WEIR_BEFORE_ALL, limit, arena, &edges, &count));
        assert_true(count <= limit);
        weir_arena_reset(arena);
    }
    weir_arena_close(arena);
    return NULL;
}

static void run(campaign *c, const char *schema) {
    const weir_graph_opts opts = {
        .shards = 1, .memory_bytes = 256u << 20, .create = true, .id_key = &weir_id_key_public};
    assert_ok(weir_schema_parse("hub", schema, strlen(schema), &c->schema));
    assert_ok(weir_graph_open(weir_test_path("store"), c->schema, &opts, &c->graph));
    assert_ok(weir_graph_source(c->graph, "log:s", 7, &c->source));
    c->naive = naive_graph_open();
    c->now_us = 1700000000000000;
    pthread_t thread;
    other_reader other = {.graph = c->graph, .seed = weir_rng_u64(&c->rng)};
    if (c->read_beside) assert_int_equal(pthread_create(&thread, NULL, read_beside, &other), 0);
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (uint64_t changes = 1 + below(c, 20); changes > 0; changes--)
            change(c);
        read_some(c);
    }
    atomic_store(&other.ends, true);
    if (c->read_beside) assert_int_equal(pthread_join(thread, NULL), 0);
    naive_graph_close(c->naive);
    assert_ok(weir_graph_close(c->graph));
    weir_schema_free(c->schema);
}

static void s5_what_remains_is_what_a_whole_read_finds(void **state) {
    (void)state;
    uint64_t stores = weir_test_rounds(STORES), read_twice = 0, cheap = 0;
    for (uint64_t i = 0; i < stores; i++) {
        campaign c = {.rng = weir_rng_stream(weir_test_seed(), i, 0), .deletes_vertices = i / 2 % 2};
        c.read_beside = i % 4 == 1 || i % 4 == 2;
        assert_ok(weir_arena_open(64u << 20, &c.arena));
        run(&c, schemas[i % 2]);
        read_twice += c.read_twice;
        cheap += c.cheap;
        assert_ok(weir_folder_remove(weir_test_path("store")));
        weir_arena_close(c.arena);
    }
    printf("of %llu long reads %llu were short when asked again\n", (unsigned long long)read_twice,
           (unsigned long long)cheap);
    assert_true(cheap > 0);
}

WEIR_TESTS(WEIR_CASE(s5_what_remains_is_what_a_whole_read_finds))

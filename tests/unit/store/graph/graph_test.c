/* SPDX-License-Identifier: Apache-2.0 */
/* graph_test.c - the graph's promises over a store on disk: what goes in comes out, before and after seals and reopening. */
#include "weir_test.h"

#include <string.h>

#include <weir/base/buf.h>
#include <weir/store/graph.h>

static const char schema_text[] = "version: 1\n"
                                  "name: tiny\n"
                                  "vertices:\n"
                                  "  a: {features: {x: {kind: number}}}\n"
                                  "  b: {}\n"
                                  "relations:\n"
                                  "  r: {from: a, to: b, features: {w: {kind: number}}}\n"
                                  "sources:\n"
                                  "  s: {id: id, time: t, mutations: [{put_edge: r, from: a, to: b, features: [w]}]}\n";

typedef struct fixture {
    weir_schema *schema;
    weir_graph *graph;
    uint32_t source;
    uint64_t offset;
} fixture;

static void graph_open(fixture *f) {
    weir_graph_opts opts = {.shards = 2, .memory_bytes = 64u << 20, .create = true};
    if (!f->schema) assert_ok(weir_schema_parse("tiny", schema_text, sizeof schema_text - 1, &f->schema));
    assert_ok(weir_graph_open(weir_test_path("store"), f->schema, &opts, &f->graph));
    assert_ok(weir_graph_source(f->graph, "log:s", 7, &f->source));
}

static void graph_close(fixture *f) {
    assert_ok(weir_graph_close(f->graph));
    f->graph = NULL;
}

/* Submits mutations as one event of partition 0. */
static void submit(fixture *f, weir_mutation *mutations, size_t count) {
    weir_buf batches[2] = {{0}, {0}};
    uint32_t counts[2] = {0, 0};
    weir_batch_span span = {f->source, 0, f->offset, f->offset + 1};
    for (uint32_t s = 0; s < 2; s++)
        weir_batch_begin(&batches[s]);
    for (size_t i = 0; i < count; i++) {
        mutations[i].offset = f->offset;
        for (uint32_t s = 0; s < 2; s++) {
            bool here = mutations[i].kind == WEIR_DELETE_VERTEX || weir_shard_of(mutations[i].vertex, 2) == s;
            if (!here) continue;
            weir_batch_add(&batches[s], &mutations[i], f->offset);
            counts[s]++;
        }
    }
    for (uint32_t s = 0; s < 2; s++)
        weir_batch_end(&batches[s], &span, counts[s]);
    assert_ok(weir_graph_submit(f->graph, batches));
    for (uint32_t s = 0; s < 2; s++)
        weir_buf_free(&batches[s]);
    f->offset++;
}

static void put_edge(fixture *f, weir_vertex a, weir_vertex b, int64_t time_us, uint64_t event) {
    weir_mutation m[2] = {
        {.kind = WEIR_PUT_EDGE, .direction = WEIR_OUT, .vertex = a, .neighbor = b, .time_us = time_us, .event = event},
        {.kind = WEIR_PUT_EDGE, .direction = WEIR_IN, .vertex = b, .neighbor = a, .time_us = time_us, .event = event},
    };
    submit(f, m, 2);
}

static uint32_t neighbors(fixture *f, weir_vertex v, weir_direction direction, int64_t before_us, uint32_t limit,
                          weir_arena *arena, const weir_edge **edgesp) {
    uint32_t count;
    assert_ok(weir_graph_drain(f->graph));
    assert_ok(weir_graph_neighbors(f->graph, v, 0, direction, before_us, limit, arena, edgesp, &count));
    return count;
}

static void newest_first_across_delta_and_seals(void **state) {
    (void)state;
    fixture f = {0};
    weir_arena *arena;
    const weir_edge *edges;
    assert_ok(weir_arena_open(1u << 20, &arena));
    graph_open(&f);
    for (int64_t t = 1; t <= 100; t++) {
        put_edge(&f, 1, 1000 + (weir_vertex)t, t * 10, (uint64_t)t);
        if (t % 30 == 0) assert_ok(weir_graph_seal(f.graph));
    }
    for (int pass = 0; pass < 3; pass++) {
        assert_int_equal(neighbors(&f, 1, WEIR_OUT, WEIR_BEFORE_ALL, 20, arena, &edges), 20);
        for (int i = 0; i < 20; i++)
            assert_int_equal(edges[i].time_us, 1000 - 10 * i);
        assert_int_equal(neighbors(&f, 1, WEIR_OUT, 500, 1000, arena, &edges), 49);
        assert_int_equal(edges[0].time_us, 490);
        assert_int_equal(neighbors(&f, 1042, WEIR_IN, WEIR_BEFORE_ALL, 5, arena, &edges), 1);
        weir_arena_reset(arena);
        if (pass == 1) {
            graph_close(&f);
            graph_open(&f);
            assert_int_equal(weir_graph_offset_sealed(f.graph, f.source, 0), 100);
        }
    }
    graph_close(&f);
    weir_schema_free(f.schema);
    weir_arena_close(arena);
}

WEIR_TESTS(WEIR_CASE(newest_first_across_delta_and_seals))

/* SPDX-License-Identifier: Apache-2.0 */
/* read_test.c - what a read costs: of a vertex whose newest edges are all deleted, and within a budget. */
#include "submit.h"
#include "tiny_schema.h"
#include "weir_test.h"

#include <stdio.h>

#include <weir/store/base/clock.h>
#include <weir/store/graph/graph.h>

enum { HUB = 1, SHOPS = 97, EDGES = 20000, KEPT = 5 };

typedef struct fixture {
    weir_schema *schema;
    weir_graph *graph;
    weir_arena *arena;
    uint32_t source;
    uint64_t offset;
} fixture;

static void fixture_open(fixture *f) {
    const weir_graph_opts opts = {
        .shards = 1, .memory_bytes = 256u << 20, .create = true, .id_key = &weir_id_key_public};
    *f = (fixture){0};
    assert_ok(weir_arena_open(64u << 20, &f->arena));
    assert_ok(weir_schema_parse("tiny", tiny_schema, sizeof tiny_schema - 1, &f->schema));
    assert_ok(weir_graph_open(weir_test_path("store"), f->schema, &opts, &f->graph));
    assert_ok(weir_graph_source(f->graph, "log:s", 7, &f->source));
}

static void fixture_close(fixture *f) {
    assert_ok(weir_graph_close(f->graph));
    weir_schema_free(f->schema);
    weir_arena_close(f->arena);
}

static weir_vertex shop_of(uint64_t event) {
    return 1000 + event % SHOPS;
}

static void submit(fixture *f, weir_mutation_kind kind, uint64_t event, weir_vertex shop, int64_t time_us) {
    weir_mutation m = {
        .kind = kind, .direction = WEIR_OUT, .vertex = HUB, .neighbor = shop, .time_us = time_us, .event = event};
    assert_ok(submit_event(f->graph, f->source, f->offset++, &m, 1));
}

/* Event e stands at e microseconds; all are deleted after the last of them, except the oldest KEPT. */
static void buy_and_undo(fixture *f, uint64_t count) {
    for (uint64_t event = 1; event <= count; event++)
        submit(f, WEIR_PUT_EDGE, event, shop_of(event), (int64_t)event);
    for (uint64_t event = KEPT + 1; event <= count; event++)
        submit(f, WEIR_DELETE_EDGE, event, shop_of(event), (int64_t)(count + event));
    assert_ok(weir_graph_drain(f->graph));
}

/* The steps of the read that finds them. */
static uint64_t find_kept(fixture *f) {
    weir_graph_budget budget = {.steps = UINT64_MAX};
    const weir_edge *edges;
    uint32_t count;
    weir_arena_reset(f->arena);
    assert_ok(weir_graph_neighbors_within(f->graph, HUB, 0, WEIR_OUT, WEIR_BEFORE_ALL, KEPT + 1, &budget, f->arena,
                                          &edges, &count));
    assert_int_equal(count, KEPT);
    for (uint32_t i = 0; i < KEPT; i++)
        assert_true(edges[i].event == KEPT - i && edges[i].neighbor == shop_of(KEPT - i));
    printf("%llu steps, %zu bytes\n", (unsigned long long)(UINT64_MAX - budget.steps), weir_arena_used(f->arena));
    return UINT64_MAX - budget.steps;
}

/* Records are passed twice at most, and each is looked up in a table whose places are few. */
static void a_long_run_of_deletions_costs_what_it_passes(void **state) {
    (void)state;
    fixture f;
    const uint64_t records = 2 * EDGES - KEPT;
    fixture_open(&f);
    buy_and_undo(&f, EDGES);
    uint64_t in_delta = find_kept(&f);
    assert_true(in_delta >= records && in_delta < 8 * records);
    assert_ok(weir_graph_seal(f.graph));
    uint64_t cold = find_kept(&f);
    assert_true(cold >= records && cold < 8 * records);
    assert_true(weir_arena_used(f.arena) < 160 * records); /* and not 64 for each, in three places, a few times over */
    fixture_close(&f);
}

/* The read passes no run of deletions: it takes fewer steps than there are in any. */
static void find_quickly(fixture *f, int64_t before_us, uint32_t limit, const uint64_t *events, uint32_t expected) {
    weir_graph_budget budget = {.steps = 400};
    const weir_edge *edges;
    uint32_t count;
    weir_arena_reset(f->arena);
    assert_ok(
        weir_graph_neighbors_within(f->graph, HUB, 0, WEIR_OUT, before_us, limit, &budget, f->arena, &edges, &count));
    assert_int_equal(count, expected);
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(edges[i].event, events[i]);
}

/* Who has passed a long run leaves what he found to the next one, who need not pass it again: for as long as the cold
 * store has nothing new of the list. What comes in deltas is seen, and so is what was there in the past. */
static void what_a_long_run_has_left_is_found_at_once(void **state) {
    enum { OTHER = 2, NOW = 2 * EDGES + 1 };
    (void)state;
    fixture f;
    const uint64_t kept[] = {5, 4, 3, 2, 1}, fresh[] = {NOW, 5, 4}, less[] = {NOW, 4, 3}, past[] = {EDGES, EDGES - 1};
    fixture_open(&f);
    buy_and_undo(&f, EDGES);
    assert_ok(weir_graph_seal(f.graph));
    find_kept(&f);
    find_quickly(&f, WEIR_BEFORE_ALL, 9, kept, KEPT);
    find_quickly(&f, WEIR_BEFORE_ALL, 2, kept, 2);
    find_quickly(&f, EDGES + 1, 2, past, 2);

    weir_mutation elsewhere = {.kind = WEIR_PUT_EDGE, .vertex = OTHER, .neighbor = HUB, .time_us = 1, .event = 1};
    assert_ok(submit_event(f.graph, f.source, f.offset++, &elsewhere, 1));
    assert_ok(weir_graph_drain(f.graph));
    assert_ok(weir_graph_seal(f.graph));
    find_quickly(&f, WEIR_BEFORE_ALL, 9, kept, KEPT);

    submit(&f, WEIR_PUT_EDGE, NOW, shop_of(NOW), NOW);
    assert_ok(weir_graph_drain(f.graph));
    find_quickly(&f, WEIR_BEFORE_ALL, 3, fresh, 3);
    submit(&f, WEIR_DELETE_EDGE, 5, shop_of(5), NOW + 1);
    assert_ok(weir_graph_drain(f.graph));
    find_quickly(&f, WEIR_BEFORE_ALL, 3, less, 3);
    find_quickly(&f, NOW, KEPT, kept, KEPT); /* before either */

    submit(&f, WEIR_PUT_EDGE, EDGES, shop_of(EDGES), EDGES); /* once more, and deleted in the cold store */
    assert_ok(weir_graph_drain(f.graph));
    for (int pass = 0; pass < 2; pass++) {
        const weir_edge *edges;
        uint32_t count;
        weir_arena_reset(f.arena);
        assert_ok(weir_graph_neighbors(f.graph, HUB, 0, WEIR_OUT, WEIR_BEFORE_ALL, 9, f.arena, &edges, &count));
        assert_int_equal(count, KEPT);
        assert_true(edges[0].event == NOW && edges[1].event == 4);
        assert_ok(weir_graph_seal(f.graph));
    }
    find_quickly(&f, WEIR_BEFORE_ALL, 3, less, 3);
    fixture_close(&f);
}

/* A neighbour that was deleted later than all that the list has: what is kept for who asks as of now must not be told
 * to who asks as of before that. */
static void a_neighbor_that_is_deleted_later_was_there_before(void **state) {
    enum { DELETED = 2 * EDGES + 10 };
    (void)state;
    fixture f;
    const uint64_t now[] = {5, 4, 2, 1}, before[] = {5, 4, 3, 2, 1};
    fixture_open(&f);
    buy_and_undo(&f, EDGES);
    weir_mutation m = {.kind = WEIR_DELETE_VERTEX, .vertex = shop_of(3), .time_us = DELETED, .event = 1};
    assert_ok(submit_event(f.graph, f.source, f.offset++, &m, 1));
    assert_ok(weir_graph_drain(f.graph));
    assert_ok(weir_graph_seal(f.graph));
    for (int pass = 0; pass < 2; pass++) {
        const weir_edge *edges;
        uint32_t count;
        weir_arena_reset(f.arena);
        assert_ok(weir_graph_neighbors(f.graph, HUB, 0, WEIR_OUT, WEIR_BEFORE_ALL, 9, f.arena, &edges, &count));
        assert_int_equal(count, 4);
        for (uint32_t i = 0; i < count; i++)
            assert_int_equal(edges[i].event, now[i]);
        assert_ok(weir_graph_neighbors(f.graph, HUB, 0, WEIR_OUT, DELETED, 9, f.arena, &edges, &count));
        assert_int_equal(count, 5);
        for (uint32_t i = 0; i < count; i++)
            assert_int_equal(edges[i].event, before[i]);
    }
    fixture_close(&f);
}

/* Deleted by the neighbour are those that the deletion is newer than, whatever deletions of single ones there are. */
static void the_deletion_of_a_neighbor_hides_all_of_it(void **state) {
    (void)state;
    fixture f;
    const weir_edge *edges;
    uint32_t count;
    fixture_open(&f);
    for (uint64_t event = 1; event <= 400; event++)
        submit(&f, WEIR_PUT_EDGE, event, 1000 + event % 4, (int64_t)event);
    submit(&f, WEIR_DELETE_EDGE, 0, 1001, 300);
    submit(&f, WEIR_DELETE_EDGE, 399, 1003, 401);
    submit(&f, WEIR_DELETE_EDGE, 2, 1003, 402); /* of another neighbour than event 2 has */
    for (int pass = 0; pass < 2; pass++) {
        assert_ok(weir_graph_drain(f.graph));
        assert_ok(weir_graph_neighbors(f.graph, HUB, 0, WEIR_OUT, WEIR_BEFORE_ALL, 400, f.arena, &edges, &count));
        assert_int_equal(count, 400 - 75 - 1);
        for (uint32_t i = 0; i < count; i++)
            assert_true(edges[i].event != 399 && (edges[i].neighbor != 1001 || edges[i].time_us > 300));
        assert_ok(weir_graph_seal(f.graph));
    }
    fixture_close(&f);
}

static void read_newest(fixture *f, uint32_t limit) {
    const weir_edge *edges;
    uint32_t count;
    weir_arena_reset(f->arena);
    assert_ok(weir_graph_neighbors(f->graph, HUB, 0, WEIR_OUT, WEIR_BEFORE_ALL, limit, f->arena, &edges, &count));
    assert_int_equal(count, limit);
}

/* Few deleted edges in a list of which many are wanted, as aggregates do: it stays in the window cache. */
static void a_few_deleted_edges_are_no_reason_to_read_the_cold_store(void **state) {
    enum { WANTED = 4096, DELETED = 3 };
    (void)state;
    fixture f;
    weir_graph_stats before, after;
    fixture_open(&f);
    for (uint64_t event = 1; event <= EDGES; event++)
        submit(&f, WEIR_PUT_EDGE, event, shop_of(event), (int64_t)event);
    for (uint64_t event = EDGES - DELETED; event < EDGES; event++)
        submit(&f, WEIR_DELETE_EDGE, event, shop_of(event), EDGES + 1);
    assert_ok(weir_graph_drain(f.graph));
    assert_ok(weir_graph_seal(f.graph));
    read_newest(&f, WANTED);
    weir_graph_stats_get(f.graph, &before);
    read_newest(&f, WANTED);
    read_newest(&f, 10);
    weir_graph_stats_get(f.graph, &after);
    assert_int_equal(after.cache_misses, before.cache_misses);
    assert_int_equal(after.cache_hits, before.cache_hits + 4); /* each: as many as are wanted, then a few more */
    fixture_close(&f);
}

static weir_err ask(fixture *f, weir_graph_budget *budget) {
    const weir_edge *edges;
    uint32_t count;
    weir_arena_reset(f->arena);
    return weir_graph_neighbors_within(f->graph, HUB, 0, WEIR_OUT, WEIR_BEFORE_ALL, KEPT, budget, f->arena, &edges,
                                       &count);
}

static void a_budget_ends_a_read(void **state) {
    (void)state;
    fixture f;
    weir_clock *clock;
    assert_ok(weir_clock_manual_open(0, &clock));
    int64_t now_us = weir_clock_mono_us(clock);
    fixture_open(&f);
    buy_and_undo(&f, 5000);
    for (int pass = 0; pass < 2; pass++) {
        weir_graph_budget few = {.steps = 4000}, enough = {.steps = 100000};
        weir_graph_budget late = {.steps = UINT64_MAX, .clock = clock, .until_us = now_us};
        weir_graph_budget soon = {.steps = UINT64_MAX, .clock = clock, .until_us = now_us + 1};
        assert_err(ask(&f, &few), WEIR_EBUSY, "needs more steps");
        assert_true(few.exceeded && few.steps <= 4000);
        assert_err(ask(&f, &late), WEIR_ETIMEOUT, "http.request_timeout");
        assert_false(late.exceeded);
        assert_ok(ask(&f, &soon)); /* from now on what remains is known */
        assert_ok(ask(&f, &enough));
        assert_true(!enough.exceeded && enough.steps < 100000);
        assert_ok(weir_graph_seal(f.graph));
    }
    fixture_close(&f);
    weir_clock_close(clock);
}

WEIR_TESTS(WEIR_CASE(what_a_long_run_has_left_is_found_at_once),
           WEIR_CASE(a_neighbor_that_is_deleted_later_was_there_before),
           WEIR_CASE(a_few_deleted_edges_are_no_reason_to_read_the_cold_store),
           WEIR_CASE(a_long_run_of_deletions_costs_what_it_passes),
           WEIR_CASE(the_deletion_of_a_neighbor_hides_all_of_it), WEIR_CASE(a_budget_ends_a_read))

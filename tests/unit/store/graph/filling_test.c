/* SPDX-License-Identifier: Apache-2.0 */
/* filling_test.c - a store that is made from a log says so until it has had all of it, also after a restart. */
#include "trouble.h"

#include <pthread.h>
#include <stdatomic.h>

#include <weir/store/base/fault.h>
#include <weir/store/base/file.h>
#include <weir/store/snapshot/snapshot.h>

static weir_schema *schema;

static void open_store(const char *name, bool from_log, weir_graph **graphp) {
    const weir_graph_opts opts = {
        .shards = TROUBLE_SHARDS, .memory_bytes = 64u << 20, .create = true, .from_log = from_log};
    if (!schema) assert_ok(weir_schema_parse("tiny", tiny_schema, sizeof tiny_schema - 1, &schema));
    assert_ok(weir_graph_open(weir_test_path(name), schema, &opts, graphp));
}

static bool is_filling(const char *name) {
    weir_graph *graph;
    open_store(name, true, &graph);
    bool filling = weir_graph_filling(graph);
    assert_ok(weir_graph_close(graph));
    return filling;
}

static void it_lasts_until_it_is_filled(void **state) {
    (void)state;
    weir_graph *graph;
    open_store("store", true, &graph);
    assert_true(weir_graph_filling(graph));
    assert_ok(weir_graph_close(graph));
    open_store("store", false, &graph); /* whoever opens it */
    assert_true(weir_graph_filling(graph));
    assert_ok(weir_graph_filled(graph));
    assert_false(weir_graph_filling(graph));
    assert_ok(weir_graph_filled(graph));
    assert_ok(weir_graph_close(graph));
    assert_false(is_filling("store"));
    open_store("other", false, &graph); /* of files, say: nobody fills it later */
    assert_false(weir_graph_filling(graph));
    assert_ok(weir_graph_close(graph));
    weir_schema_free(schema);
}

static uint32_t edges_of(weir_graph *graph, weir_vertex vertex) {
    const weir_edge *edges;
    weir_arena *arena;
    uint32_t count;
    assert_ok(weir_arena_open(1u << 20, &arena));
    assert_ok(weir_graph_neighbors(graph, vertex, 0, WEIR_OUT, WEIR_BEFORE_ALL, 100, arena, &edges, &count));
    weir_arena_close(arena);
    return count;
}

static void note(trouble_store *s, uint64_t event) {
    weir_vertex at = weir_graph_source_vertex(s->graph, s->source, 0);
    weir_mutation m = {.kind = WEIR_NOTE_EVENT, .vertex = at, .time_us = (int64_t)s->offset, .event = event};
    assert_ok(submit_event(s->graph, s->source, s->offset++, &m, 1));
}

static void put_edges(trouble_store *s, uint64_t count, uint64_t first) {
    for (uint64_t i = 0; i < count; i++)
        assert_ok(trouble_edge(s, 1, first + i, 5));
    assert_ok(weir_graph_drain(s->graph));
}

/* What comes behind the first seals lies on a pile, and is found once the store is filled; from then on, as soon as it
 * is applied. Only ingest asks before, for its notes. */
static void what_lay_on_piles_is_found_once_it_is_filled(void **state) {
    (void)state;
    trouble_store s = {0};
    const weir_event_note *notes;
    weir_arena *arena;
    uint32_t count;
    open_store("store", true, &s.graph);
    assert_ok(weir_arena_open(1u << 20, &arena));
    assert_ok(weir_graph_source(s.graph, "log:s", 7, &s.source));
    for (uint32_t half = 0; half < 2; half++) {
        put_edges(&s, 5, 100 + 5 * half);
        assert_int_equal(edges_of(s.graph, 1), 5 + 5 * half);
        assert_ok(weir_graph_seal(s.graph));
    }
    uint64_t first = s.offset;
    for (uint64_t i = 0; i < 20; i++)
        note(&s, 1000 + i);
    assert_ok(weir_graph_drain(s.graph));
    assert_ok(weir_graph_events(s.graph, s.source, 0, first + 5, first + 15, arena, &notes, &count));
    assert_true(count == 10 && notes[0].event == 1014 && notes[9].event == 1005);
    put_edges(&s, 10, 200);
    assert_int_equal(edges_of(s.graph, 1), 10); /* which is why nobody may ask */
    assert_ok(weir_fault_arm("write:1:ENOSPC:/seal-"));
    assert_err(weir_graph_filled(s.graph), WEIR_EFULL, "");
    assert_true(weir_graph_filling(s.graph));
    assert_ok(weir_fault_arm(NULL));
    assert_ok(weir_graph_filled(s.graph));
    assert_false(weir_graph_filling(s.graph));
    assert_int_equal(edges_of(s.graph, 1), 20);
    for (uint64_t i = 0; i < 5; i++) {
        put_edges(&s, 1, 300 + i);
        assert_int_equal(edges_of(s.graph, 1), 21 + i);
    }
    weir_arena_close(arena);
    assert_ok(weir_graph_close(s.graph));
    assert_false(is_filling("store"));
    weir_schema_free(schema);
}

/* The delta that comes behind the last seal is an empty pile: what comes next must not go there. */
static void what_comes_right_after_it_is_filled_is_found(void **state) {
    (void)state;
    trouble_store s = {0};
    open_store("store", true, &s.graph);
    assert_ok(weir_graph_source(s.graph, "log:s", 7, &s.source));
    for (uint32_t i = 0; i < 3; i++) {
        put_edges(&s, 5, 100 + 5 * i);
        assert_ok(weir_graph_seal(s.graph));
    }
    assert_ok(weir_graph_filled(s.graph));
    for (uint32_t i = 0; i < 5; i++) {
        put_edges(&s, 1, 200 + i);
        assert_int_equal(edges_of(s.graph, 1), 16 + i);
    }
    assert_ok(weir_graph_close(s.graph));
    weir_schema_free(schema);
}

/* What was in memory only is lost with the process: a store that says that it is whole has it on its disk. */
static void what_cannot_be_sealed_is_filled_again(void **state) {
    (void)state;
    trouble_store s = {0};
    open_store("store", true, &s.graph);
    assert_ok(weir_graph_source(s.graph, "log:s", 7, &s.source));
    assert_ok(trouble_edge(&s, 1, 100, 5));
    assert_ok(weir_graph_drain(s.graph));
    assert_ok(weir_fault_arm("write:1:ENOSPC:/seal-"));
    assert_err(weir_graph_filled(s.graph), WEIR_EFULL, "");
    assert_false(weir_graph_filling(s.graph)); /* it is whole as long as it runs */
    assert_err(weir_graph_close(s.graph), WEIR_EFULL, "");
    assert_ok(weir_fault_arm(NULL));
    assert_true(is_filling("store"));
    weir_schema_free(schema);
}

static void a_checkpoint_and_what_is_restored_say_so_too(void **state) {
    (void)state;
    weir_graph *graph;
    open_store("store", true, &graph);
    assert_ok(weir_graph_checkpoint(graph, weir_test_path("half")));
    assert_ok(weir_graph_filled(graph));
    assert_ok(weir_graph_checkpoint(graph, weir_test_path("whole")));
    assert_ok(weir_graph_close(graph));
    assert_ok(weir_graph_restore(weir_test_path("half"), weir_test_path("restored-half")));
    assert_ok(weir_graph_restore(weir_test_path("whole"), weir_test_path("restored-whole")));
    assert_true(is_filling("restored-half"));
    assert_false(is_filling("restored-whole"));
    weir_schema_free(schema);
}

/* --- a checkpoint beside the end of it -------------------------------------------------------------------------- */

typedef struct race {
    trouble_store store;
    atomic_bool sealing;
} race;

/* The checkpoint's seal goes on once the store says that it is whole. */
static void wait_in_the_seal(void *context, weir_fault_op op, const char *path) {
    race *r = context;
    if (op != WEIR_FAULT_WRITE || !strstr(path, "/seal-")) return;
    atomic_store(&r->sealing, true);
    while (weir_graph_filling(r->store.graph))
        usleep(1000);
}

static void *fill_up(void *context) {
    race *r = context;
    while (!atomic_load(&r->sealing))
        usleep(1000);
    for (uint64_t i = 0; i < 50; i++)
        assert_ok(trouble_edge(&r->store, 2, 200 + i, 6));
    assert_ok(weir_graph_filled(r->store.graph));
    return NULL;
}

/* What came while it was sealed it may not have: only who reads its log to the end knows that it is whole. */
static void a_checkpoint_has_the_mark_of_before_it_was_sealed(void **state) {
    (void)state;
    static race r;
    pthread_t thread;
    open_store("store", true, &r.store.graph);
    assert_ok(weir_graph_source(r.store.graph, "log:s", 7, &r.store.source));
    assert_ok(trouble_edge(&r.store, 1, 100, 5));
    assert_ok(weir_graph_drain(r.store.graph));
    weir_fault_watch(wait_in_the_seal, &r);
    assert_int_equal(pthread_create(&thread, NULL, fill_up, &r), 0);
    assert_ok(weir_graph_checkpoint(r.store.graph, weir_test_path("beside")));
    pthread_join(thread, NULL);
    assert_true(atomic_load(&r.sealing));
    assert_ok(weir_graph_close(r.store.graph));
    weir_fault_watch(NULL, NULL);
    assert_ok(weir_graph_restore(weir_test_path("beside"), weir_test_path("restored")));
    assert_true(is_filling("restored"));
    assert_false(is_filling("store"));
    weir_schema_free(schema);
}

static void a_shard_that_is_emptied_is_filled_again(void **state) {
    (void)state;
    weir_graph *graph;
    char kept[512], shard[512];
    open_store("store", true, &graph);
    assert_ok(weir_graph_filled(graph));
    assert_ok(weir_graph_close(graph));
    snprintf(shard, sizeof shard, "%s/shard-001", weir_test_path("store"));
    snprintf(kept, sizeof kept, "%s/shard-001/identity", weir_test_path("store"));
    assert_int_equal(rename(kept, weir_test_path("identity")), 0);
    assert_ok(weir_folder_remove(shard));
    assert_ok(weir_folder_create(shard));
    assert_int_equal(rename(weir_test_path("identity"), kept), 0);
    assert_true(is_filling("store"));
    weir_schema_free(schema);
}

static void no_snapshot_is_made_of_half_a_log(void **state) {
    (void)state;
    weir_graph *graph;
    weir_snapshot_stats stats;
    const weir_snapshot_build_opts opts = {.out = weir_test_path("snapshot")};
    open_store("store", true, &graph);
    assert_err(weir_snapshot_build(graph, &opts, &stats), WEIR_EUNAVAILABLE, "does not have all of its log yet");
    assert_ok(weir_graph_filled(graph));
    assert_ok(weir_snapshot_build(graph, &opts, &stats));
    assert_ok(weir_graph_close(graph));
    weir_schema_free(schema);
}

WEIR_TESTS(WEIR_CASE(what_lay_on_piles_is_found_once_it_is_filled),
           WEIR_CASE(what_comes_right_after_it_is_filled_is_found), WEIR_CASE(it_lasts_until_it_is_filled),
           WEIR_CASE(what_cannot_be_sealed_is_filled_again), WEIR_CASE(a_checkpoint_and_what_is_restored_say_so_too),
           WEIR_CASE(a_shard_that_is_emptied_is_filled_again), WEIR_CASE(no_snapshot_is_made_of_half_a_log),
           WEIR_CASE(a_checkpoint_has_the_mark_of_before_it_was_sealed))

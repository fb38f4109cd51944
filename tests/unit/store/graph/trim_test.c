/* SPDX-License-Identifier: Apache-2.0 */
/* trim_test.c - a shard that is written anew: how much room that gives back, and what stops it. */
#include "damage.h"
#include "submit.h"
#include "weir_test.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir/store/base/clock.h>
#include <weir/store/base/fault.h>
#include <weir/store/graph/graph.h>
#include <weir/store/graph/repair.h>

enum {
    SHOPS = 50,
    KEPT_US = 1000000,  /* what `expire` and `history` keep together */
    HUB_EDGES = 300000, /* more than are gathered of a vertex */
    EVENT_WINDOW = 1000
};

#define ONE_THREAD "much data, and threads do with it what they do with little"

static const char schema_text[] =
    "version: 1\n"
    "name: kept\n"
    "vertices:\n"
    "  payment: {expire: 800ms, history: 200ms, features: {x: {kind: number}}}\n"
    "  account: {}\n"
    "relations:\n"
    "  paid: {from: payment, to: account, expire: 800ms, history: 200ms, features: {w: {kind: number}}}\n"
    "  seen: {from: payment, to: account, expire: 100ms, history: 200ms}\n"
    "sources:\n"
    "  s: {id: id, time: t, mutations: [{put_edge: paid, from: a, to: b, features: [w]}]}\n";

typedef struct world {
    const char *folder;
    weir_schema *schema;
    weir_graph *graph;
    weir_arena *arena;
    uint32_t source;
    uint64_t offset;
} world;

static void world_open_at(world *w, const char *folder, uint32_t shards, weir_clock *clock) {
    const weir_graph_opts opts = {.shards = shards,
                                  .memory_bytes = 64u << 20,
                                  .seal_us = 3600 * WEIR_US_PER_S,
                                  .event_window = EVENT_WINDOW,
                                  .create = true,
                                  .clock = clock,
                                  .future_us = clock ? WEIR_US_PER_S : 0,
                                  .id_key = &weir_id_key_public};
    *w = (world){.folder = folder};
    assert_ok(weir_arena_open(64u << 20, &w->arena));
    assert_ok(weir_schema_parse("kept", schema_text, sizeof schema_text - 1, &w->schema));
    assert_ok(weir_graph_open(weir_test_path(folder), w->schema, &opts, &w->graph));
    assert_ok(weir_graph_source(w->graph, "log:s", 7, &w->source));
    w->offset = weir_graph_offset_sealed(w->graph, w->source, 0);
}

static void world_open(world *w) {
    world_open_at(w, "store", 1, NULL);
}

static void world_close(world *w) {
    assert_ok(weir_graph_close(w->graph));
    weir_schema_free(w->schema);
    weir_arena_close(w->arena);
}

static uint32_t number_row(double number, uint8_t *row) {
    static const weir_value_kind kind = WEIR_VALUE_NUMBER;
    const weir_value value = {.present = true, .number = number};
    return (uint32_t)weir_row_write(&kind, &value, 1, row);
}

/* A payment of its own to one of the accounts, with its row and its name. */
static void pay(world *w, uint64_t number, weir_vertex account, int64_t time_us) {
    uint8_t row[32], edge_row[32];
    char key[24];
    weir_mutation m[3] = {{.kind = WEIR_PUT_VERTEX}, {.kind = WEIR_PUT_EDGE}, {.kind = WEIR_PUT_EDGE}};
    m[0].row_length = number_row((double)number, row);
    m[1].row_length = m[2].row_length = number_row((double)(number % 100), edge_row);
    m[0].row = row;
    m[1].row = m[2].row = edge_row;
    m[0].key_length = (uint16_t)snprintf(key, sizeof key, "payment-%llu", (unsigned long long)number);
    m[0].key = key;
    m[0].vertex = m[1].vertex = m[2].neighbor = weir_vertex_id(&weir_id_key_public, "payment", key, m[0].key_length);
    m[2].vertex = m[1].neighbor = account;
    m[2].direction = WEIR_IN;
    for (size_t i = 0; i < 3; i++) {
        m[i].time_us = time_us;
        m[i].event = number + 1;
    }
    assert_ok(submit_event(w->graph, w->source, w->offset++, m, 3));
}

static void pay_many(world *w, uint64_t from, uint64_t to, int64_t step_us) {
    for (uint64_t i = from; i < to; i++) {
        pay(w, i, 1 + i % SHOPS, 1 + (int64_t)i * step_us);
        if (i % 4096 == 4095) assert_ok(weir_graph_seal(w->graph));
    }
    assert_ok(weir_graph_seal(w->graph));
}

static uint64_t cold_bytes(const world *w) {
    weir_graph_stats stats;
    weir_graph_stats_get(w->graph, &stats);
    return stats.cold_bytes;
}

static bool has_scratch(const world *w) {
    return damage_beside(w->folder, 0, ".trim");
}

/* --- room ------------------------------------------------------------------------------------------------------- */

/* Against a store that was only ever given what has not gone. */
static void what_nobody_can_be_told_gives_its_room_back(void **state) {
    (void)state;
    const int64_t part = (int64_t)weir_test_part(4, 5);
    const int64_t step_us = weir_test_rounds(1) < 50 ? 50 * part / (int64_t)weir_test_rounds(1) : 1;
    const uint64_t living_count = KEPT_US / step_us, count = 8 * living_count;
    world all, living;
    world_open_at(&all, "all", 1, NULL);
    world_open_at(&living, "living", 1, NULL);
    pay_many(&all, 0, count, step_us);
    pay_many(&living, count - living_count, count, step_us);
    uint64_t before = cold_bytes(&all);
    assert_ok(weir_graph_trim(all.graph, 0, damage_never_wait, NULL));
    assert_ok(weir_graph_trim(living.graph, 0, damage_never_wait, NULL));
    uint64_t is = cold_bytes(&all), wanted = cold_bytes(&living);
    printf("%llu payments: %llu bytes, %llu after a trim; %llu of those that live\n", (unsigned long long)count,
           (unsigned long long)before, (unsigned long long)is, (unsigned long long)wanted);
    assert_true(is * 10 <= wanted * 12 && is * 4 < before);
    world_close(&all);
    world_close(&living);
}

/* --- large vertices --------------------------------------------------------------------------------------------- */

static uint32_t degree(world *w, weir_vertex vertex, int64_t before_us) {
    const weir_edge *edges;
    uint32_t count;
    weir_arena_reset(w->arena);
    assert_ok(weir_graph_neighbors(w->graph, vertex, 0, WEIR_IN, before_us, WEIR_WINDOW_MAX, w->arena, &edges, &count));
    return count;
}

static void a_vertex_too_large_to_be_gathered_is_trimmed_by_bundles(void **state) {
    (void)state;
    enum { STEP_US = 10 };
    weir_test_skip_under("thread", ONE_THREAD);
    world w;
    bool known;
    int64_t first_us;
    const weir_vertex hub = weir_vertex_id(&weir_id_key_public, "account", "hub", 3);
    weir_mutation put = {.kind = WEIR_PUT_VERTEX,
                         .vertex = hub,
                         .time_us = 50,
                         .event = 1u << 30,
                         .type = 1,
                         .key = "hub",
                         .key_length = 3};
    world_open(&w);
    assert_ok(submit_event(w.graph, w.source, w.offset++, &put, 1));
    for (uint64_t i = 0; i < HUB_EDGES; i++) {
        pay(&w, i, hub, 5 + (int64_t)i * STEP_US);
        if (i % 16384 == 0) assert_ok(weir_graph_seal(w.graph));
    }
    assert_ok(weir_graph_seal(w.graph));
    const int64_t now_us = weir_graph_watermark(w.graph), asked_us = now_us - 150000;
    uint32_t newest = degree(&w, hub, WEIR_BEFORE_ALL), earlier = degree(&w, hub, asked_us);
    uint64_t before = cold_bytes(&w);
    for (int pass = 0; pass < 2; pass++) {
        assert_ok(weir_graph_trim(w.graph, 0, damage_never_wait, NULL));
        assert_int_equal(degree(&w, hub, WEIR_BEFORE_ALL), newest);
        assert_int_equal(degree(&w, hub, asked_us), earlier);
        assert_ok(weir_graph_first_put(w.graph, hub, WEIR_BEFORE_ALL, w.arena, &known, &first_us));
        assert_true(known && first_us == 5); /* of an edge that has gone */
        assert_ok(weir_graph_verify(w.graph, &(uint64_t){0}));
    }
    printf("%llu bytes, %llu after it\n", (unsigned long long)before, (unsigned long long)cold_bytes(&w));
    assert_true(cold_bytes(&w) * 3 < before * 2);
    world_close(&w);
}

/* --- puts ------------------------------------------------------------------------------------------------------- */

static bool is_there(world *w, weir_vertex vertex) {
    uint16_t type;
    const char *key;
    uint32_t length;
    weir_arena_reset(w->arena);
    assert_ok(weir_graph_name(w->graph, vertex, w->arena, &type, &key, &length));
    return key != NULL;
}

static void put_bare(world *w, weir_vertex vertex, int64_t time_us) {
    weir_mutation m = {.kind = WEIR_PUT_VERTEX, .vertex = vertex, .time_us = time_us, .event = w->offset + 1};
    m.key = "p";
    m.key_length = 1;
    assert_ok(submit_event(w->graph, w->source, w->offset++, &m, 1));
}

/* Its only living put is an edge that goes; what stands for it is newer than all that a window of puts has. */
static void a_put_that_a_trim_leaves_is_met(void **state) {
    (void)state;
    world w;
    world_open(&w);
    const weir_vertex p = weir_vertex_id(&weir_id_key_public, "payment", "p", 1);
    put_bare(&w, p, 1);
    pay_many(&w, 0, 2000, 1000); /* to two seconds */
    assert_false(is_there(&w, p));
    weir_mutation seen = {.kind = WEIR_PUT_EDGE, .type = 1, .vertex = p, .neighbor = 1, .time_us = 2000000};
    seen.event = w.offset + 1;
    assert_ok(submit_event(w.graph, w.source, w.offset++, &seen, 1));
    for (uint64_t i = 2000; i < 2500; i++)
        pay(&w, i, 1, 1 + (int64_t)i * 1000);
    assert_ok(weir_graph_seal(w.graph));
    assert_ok(weir_graph_trim(w.graph, 0, damage_never_wait, NULL));
    assert_true(is_there(&w, p));
    world_close(&w);
}

/* --- notes of events -------------------------------------------------------------------------------------------- */

static void note_events(world *w, uint64_t count) {
    for (uint64_t i = 0; i < count; i++) {
        weir_mutation m = {.kind = WEIR_NOTE_EVENT,
                           .vertex = weir_graph_source_vertex(w->graph, w->source, 0),
                           .time_us = (int64_t)w->offset,
                           .event = w->offset + 1};
        assert_ok(submit_event(w->graph, w->source, w->offset++, &m, 1));
        if (i % 50000 == 0) assert_ok(weir_graph_seal(w->graph));
    }
    assert_ok(weir_graph_seal(w->graph));
}

static uint32_t notes_between(world *w, uint64_t from, uint64_t to) {
    const weir_event_note *notes;
    uint32_t count;
    weir_arena_reset(w->arena);
    assert_ok(weir_graph_events(w->graph, w->source, 0, from, to, w->arena, &notes, &count));
    return count;
}

/* An id is compared with those of so many records before it, also when the log is read on from what is sealed. */
static void notes_of_events_are_kept_as_far_as_they_are_asked_for(void **state) {
    (void)state;
    static const uint64_t counts[] = {5000, HUB_EDGES};
    weir_test_skip_under("thread", ONE_THREAD);
    world w;
    world_open(&w);
    pay_many(&w, 0, 200, 1000);
    for (size_t i = 0; i < 2; i++) {
        note_events(&w, counts[i]);
        assert_ok(weir_graph_trim(w.graph, 0, damage_never_wait, NULL));
        assert_int_equal(notes_between(&w, w.offset - EVENT_WINDOW - 1, w.offset), EVENT_WINDOW + 1);
        assert_in_range(
            notes_between(&w, 200, w.offset - EVENT_WINDOW - 1 < 60000 ? w.offset - EVENT_WINDOW - 1 : 60000), 0, 64);
    }
    world_close(&w);
}

/* --- what stops it ---------------------------------------------------------------------------------------------- */

static bool end_at_once(void *context, uint64_t bytes) {
    (void)context, (void)bytes;
    return false;
}

/* The reader that would have to be out of the store is this one. */
static bool end_when_it_waits(void *context, uint64_t bytes) {
    uint32_t *waits = context;
    *waits += bytes == 0;
    return *waits < 2;
}

static weir_err trim_beside_a_reader(void *context, const void *key, size_t key_length, const void *value,
                                     size_t value_length) {
    world *w = context;
    uint32_t waits = 0;
    (void)key, (void)key_length, (void)value, (void)value_length;
    assert_err(weir_graph_trim(w->graph, 0, end_when_it_waits, &waits), WEIR_ECLOSED, "not trimmed now");
    assert_int_equal(waits, 2);
    return WEIR_ERR(WEIR_ECANCELLED, "that was all");
}

static bool trim_it_too(void *context, uint64_t bytes) {
    world *w = context;
    (void)bytes;
    assert_err(weir_graph_trim(w->graph, 0, damage_never_wait, NULL), WEIR_EBUSY, "is being trimmed");
    return true;
}

static void it_waits_for_readers_and_ends_when_told(void **state) {
    (void)state;
    world w;
    world_open(&w);
    pay_many(&w, 0, 3000, 1000);
    weir_buf before = damage_dump(w.graph, 0);
    assert_err(weir_graph_trim(w.graph, 0, end_at_once, NULL), WEIR_ECLOSED, "not trimmed now");
    assert_false(has_scratch(&w));
    assert_err(weir_graph_scan(w.graph, 0, trim_beside_a_reader, &w), WEIR_ECANCELLED, "that was all");
    assert_false(has_scratch(&w));
    damage_same(w.graph, 0, &before);
    pay(&w, 3000, 1, 3000000); /* sealed into this store alone again */
    assert_ok(weir_graph_seal(w.graph));
    assert_ok(weir_graph_trim(w.graph, 0, trim_it_too, &w));
    assert_true(degree(&w, 1, WEIR_BEFORE_ALL) > 0);
    weir_buf_free(&before);
    world_close(&w);
}

static void nothing_is_taken_out_of_a_damaged_shard(void **state) {
    (void)state;
    world w;
    world_open(&w);
    pay_many(&w, 0, 20000, 50);
    damage_a_block("store", 0);
    weir_err err = weir_graph_trim(w.graph, 0, damage_never_wait, NULL);
    assert_true(weir_err_is(err, WEIR_ECORRUPT));
    assert_false(has_scratch(&w));
    damage_a_block("store", 0); /* it is as it was */
    (void)weir_graph_close(w.graph);
    weir_schema_free(w.schema);
    weir_arena_close(w.arena);
    world_open(&w);
    assert_ok(weir_graph_trim(w.graph, 0, damage_never_wait, NULL));
    assert_ok(weir_graph_verify(w.graph, &(uint64_t){0}));
    world_close(&w);
}

/* A watermark that may go back must not take anything away. */
static void a_time_ahead_of_the_wall_clock_takes_nothing(void **state) {
    (void)state;
    world w;
    world_open(&w);
    assert_err(weir_graph_trim(w.graph, 0, damage_never_wait, NULL), WEIR_EUNAVAILABLE, "not known yet");
    int64_t ahead_us = weir_clock_wall_us(weir_clock_system()) + 3600 * WEIR_US_PER_S;
    for (uint64_t i = 0; i < 200; i++)
        pay(&w, i, 1, ahead_us + (int64_t)i);
    assert_ok(weir_graph_seal(w.graph));
    assert_err(weir_graph_trim(w.graph, 0, damage_never_wait, NULL), WEIR_EUNAVAILABLE, "ahead of the wall clock");
    assert_false(weir_graph_trim_due(w.graph, 0));
    world_close(&w);
}

/* The trim went by a wall clock that was wrong. Of the time before it some edges are left, and are told to nobody: who
 * was told them would have been told a part. */
static void a_time_that_goes_back_tells_no_part_of_what_a_trim_took(void **state) {
    enum { LIVING = 400, STEP_US = 1000 };
    (void)state;
    const int64_t true_us = 1700000000000000, wrong_us = true_us + 3600 * WEIR_US_PER_S;
    world w;
    weir_clock *clock;
    assert_ok(weir_clock_manual_open(wrong_us + WEIR_US_PER_S, &clock));
    world_open_at(&w, "store", 1, clock);
    for (uint64_t i = 0; i < 2 * LIVING; i++)
        pay(&w, i, 1, (i < LIVING ? true_us : wrong_us) + (int64_t)i * STEP_US);
    assert_ok(weir_graph_seal(w.graph));
    assert_int_equal(degree(&w, 1, WEIR_BEFORE_ALL), LIVING);
    assert_ok(weir_graph_trim(w.graph, 0, damage_never_wait, NULL));
    pay(&w, 2 * LIVING, 1, true_us + LIVING * STEP_US); /* came late, and is not trimmed */
    weir_clock_manual_set_wall(clock, true_us + WEIR_US_PER_S);
    for (uint64_t i = 0; i < 100; i++)
        pay(&w, 2 * LIVING + 1 + i, 2, true_us + LIVING * STEP_US);
    assert_ok(weir_graph_drain(w.graph));
    assert_true(weir_graph_watermark(w.graph) < true_us + WEIR_US_PER_S);
    assert_int_equal(degree(&w, 1, WEIR_BEFORE_ALL), LIVING);
    assert_int_equal(degree(&w, 2, WEIR_BEFORE_ALL), 0);
    world_close(&w);
    weir_clock_close(clock);
}

static void it_is_due_after_a_share_of_what_is_kept(void **state) {
    (void)state;
    world w;
    world_open(&w);
    assert_true(weir_graph_trims(w.graph) && !weir_graph_trim_due(w.graph, 0));
    pay_many(&w, 0, 3000, 1000);
    assert_true(weir_graph_trim_due(w.graph, 0));
    assert_int_equal(weir_graph_whole_from_us(w.graph, 0), INT64_MIN);
    assert_ok(weir_graph_trim(w.graph, 0, damage_never_wait, NULL));
    int64_t from_us = weir_graph_whole_from_us(w.graph, 0);
    assert_int_equal(from_us, weir_graph_watermark(w.graph) - 200000);
    pay_many(&w, 3000, 3030, 1000);
    assert_false(weir_graph_trim_due(w.graph, 0));
    world_close(&w);
    world_open(&w); /* it is known for as long as the store lives */
    assert_int_equal(weir_graph_whole_from_us(w.graph, 0), from_us);
    pay_many(&w, 3030, 3050, 1000);
    assert_true(weir_graph_trim_due(w.graph, 0));
    world_close(&w);
}

/* --- kill -9 ---------------------------------------------------------------------------------------------------- */

static void killed_at(const char *point) {
    world w;
    int status;
    assert_int_equal(weir_path_exists(weir_test_path("store")), false);
    world_open(&w);
    pay_many(&w, 0, 20000, 100);
    uint32_t wanted = degree(&w, 1, WEIR_BEFORE_ALL);
    world_close(&w);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        world_open(&w);
        if (weir_fault_kill_arm(point)) _exit(2);
        _exit(weir_graph_trim(w.graph, 0, damage_never_wait, NULL) ? 3 : 4);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    if (!WIFSIGNALED(status)) fail_msg("%s: the process ended with %d", point, WEXITSTATUS(status));
    assert_true(has_scratch(&w));
    world_open(&w);
    assert_false(has_scratch(&w));
    assert_int_equal(w.offset, 20000);
    assert_int_equal(degree(&w, 1, WEIR_BEFORE_ALL), wanted);
    assert_ok(weir_graph_verify(w.graph, &(uint64_t){0}));
    assert_ok(weir_graph_trim(w.graph, 0, damage_never_wait, NULL));
    assert_int_equal(degree(&w, 1, WEIR_BEFORE_ALL), wanted);
    world_close(&w);
    assert_ok(weir_folder_remove(weir_test_path("store")));
}

static void a_kill_leaves_one_store_or_the_other(void **state) {
    (void)state;
    static const char *const points[] = {"trim.begun:1", "trim.written:1", "trim.whole:1", "engine.replaced:1",
                                         "trim.replaced:1"};
    if (strcmp(weir_test_sanitizer(), "thread") == 0)
        weir_test_skip("the thread sanitizer does not follow a fork of a process with threads");
    for (size_t i = 0; i < sizeof points / sizeof points[0]; i++)
        killed_at(points[i]);
}

WEIR_TESTS(WEIR_CASE(what_nobody_can_be_told_gives_its_room_back),
           WEIR_CASE(a_vertex_too_large_to_be_gathered_is_trimmed_by_bundles),
           WEIR_CASE(a_put_that_a_trim_leaves_is_met), WEIR_CASE(notes_of_events_are_kept_as_far_as_they_are_asked_for),
           WEIR_CASE(it_waits_for_readers_and_ends_when_told), WEIR_CASE(nothing_is_taken_out_of_a_damaged_shard),
           WEIR_CASE(a_time_ahead_of_the_wall_clock_takes_nothing), WEIR_CASE(it_is_due_after_a_share_of_what_is_kept),
           WEIR_CASE(a_time_that_goes_back_tells_no_part_of_what_a_trim_took),
           WEIR_CASE(a_kill_leaves_one_store_or_the_other))

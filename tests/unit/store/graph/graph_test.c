/* SPDX-License-Identifier: Apache-2.0 */
/* graph_test.c - the graph's promises over a store on disk: what goes in comes out, before and after seals and
 * reopening. */
#include "submit.h"
#include "tiny_schema.h"
#include "weir_test.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/buf.h>
#include <weir/store/base/fault.h>
#include <weir/store/base/file.h>
#include <weir/store/base/hash.h>
#include <weir/store/base/rng.h>
#include <weir/store/base/thread.h>
#include <weir/store/graph/graph.h>

typedef struct fixture {
    weir_schema *schema;
    weir_graph *graph;
    uint32_t source;
    uint64_t offset;
} fixture;

static void graph_open(fixture *f) {
    weir_graph_opts opts = {.shards = 2, .memory_bytes = 64u << 20, .create = true, .id_key = &weir_id_key_public};
    if (!f->schema) assert_ok(weir_schema_parse("tiny", tiny_schema, sizeof tiny_schema - 1, &f->schema));
    assert_ok(weir_graph_open(weir_test_path("store"), f->schema, &opts, &f->graph));
    assert_ok(weir_graph_source(f->graph, "log:s", 7, &f->source));
}

static void graph_close(fixture *f) {
    assert_ok(weir_graph_close(f->graph));
    f->graph = NULL;
}

static void submit(fixture *f, weir_mutation *mutations, size_t count) {
    assert_ok(submit_event(f->graph, f->source, f->offset++, mutations, count));
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

/* --- the invariants --------------------------------------------------------------------------------------------- */

static uint32_t degree(fixture *f, weir_vertex v, weir_direction direction) {
    weir_arena *arena;
    const weir_edge *edges;
    assert_ok(weir_arena_open(8u << 20, &arena));
    uint32_t count = neighbors(f, v, direction, WEIR_BEFORE_ALL, 5000, arena, &edges);
    weir_arena_close(arena);
    return count;
}

static void fixture_close(fixture *f) {
    graph_close(f);
    weir_schema_free(f->schema);
    f->schema = NULL;
}

static void s1_exactly_the_events_below_the_offset(void **state) {
    (void)state;
    fixture f = {0};
    graph_open(&f);
    for (int i = 0; i < 10; i++)
        put_edge(&f, 1, 2 + (weir_vertex)i, i, (uint64_t)i);
    assert_ok(weir_graph_drain(f.graph));
    assert_int_equal(weir_graph_offset_applied(f.graph, f.source, 0), 10);
    assert_int_equal(weir_graph_offset_sealed(f.graph, f.source, 0), 0);
    assert_int_equal(degree(&f, 1, WEIR_OUT), 10);
    assert_ok(weir_graph_seal(f.graph));
    assert_int_equal(weir_graph_offset_sealed(f.graph, f.source, 0), 10);
    f.offset += 5; /* a hole: the shard stops rather than lose five events */
    put_edge(&f, 1, 100, 100, 100);
    assert_err(weir_graph_drain(f.graph), WEIR_EORDER, "events are missing");
    assert_err(weir_graph_close(f.graph), WEIR_EORDER, NULL);
    f.offset = 10;
    graph_open(&f);
    assert_int_equal(degree(&f, 1, WEIR_OUT), 10);
    put_edge(&f, 1, 100, 100, 100);
    assert_int_equal(degree(&f, 1, WEIR_OUT), 11);
    fixture_close(&f);
}

typedef struct reader {
    fixture *f;
    atomic_bool stop;
    uint64_t reads;
} reader;

/* Each event puts a pair of edges at vertex 1: an odd number would be half an event. */
static void read_pairs(void *context) {
    reader *r = context;
    weir_arena *arena;
    const weir_edge *edges;
    uint32_t count;
    assert_ok(weir_arena_open(32u << 20, &arena));
    while (!atomic_load(&r->stop)) {
        assert_ok(weir_graph_neighbors(r->f->graph, 1, 0, WEIR_OUT, WEIR_BEFORE_ALL, 2000, arena, &edges, &count));
        assert_true(count % 2 == 0);
        for (uint32_t i = 0; i + 1 < count; i += 2)
            assert_true(edges[i].event == edges[i + 1].event);
        weir_arena_reset(arena);
        r->reads++;
    }
    weir_arena_close(arena);
}

static void put_pair(fixture *f, int64_t time_us) {
    weir_mutation m[2] = {
        {.kind = WEIR_PUT_EDGE, .vertex = 1, .neighbor = 10, .time_us = time_us, .event = (uint64_t)time_us},
        {.kind = WEIR_PUT_EDGE, .vertex = 1, .neighbor = 11, .time_us = time_us, .event = (uint64_t)time_us},
    };
    submit(f, m, 2);
}

static void s2_before_or_after_an_event_never_half(void **state) {
    (void)state;
    fixture f = {0};
    graph_open(&f);
    reader readers[2] = {{.f = &f}, {.f = &f}};
    weir_thread *threads[2];
    for (int i = 0; i < 2; i++) {
        assert_ok(weir_thread_start("reader", WEIR_ROLE_TEST, read_pairs, &readers[i], &threads[i]));
    }
    for (int64_t t = 1; t <= 900; t++) {
        put_pair(&f, t);
        if (t % 150 == 0) assert_ok(weir_graph_seal(f.graph)); /* and through freeze, seal and windows */
    }
    for (int i = 0; i < 2; i++) {
        atomic_store(&readers[i].stop, true);
        weir_thread_join(threads[i]);
        assert_true(readers[i].reads > 0);
    }
    assert_int_equal(degree(&f, 1, WEIR_OUT), 1800);
    fixture_close(&f);
}

/* In a child: seals ten edges, then dies at the point while it seals ten more. */
static void die_sealing_at(const char *point) {
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        fixture f = {0};
        graph_open(&f);
        for (int i = 0; i < 10; i++)
            put_edge(&f, 1, 2 + (weir_vertex)i, i, (uint64_t)i);
        assert_ok(weir_graph_seal(f.graph));
        for (int i = 10; i < 20; i++)
            put_edge(&f, 1, 2 + (weir_vertex)i, i, (uint64_t)i);
        assert_ok(weir_graph_drain(f.graph));
        assert_ok(weir_fault_kill_arm(point));
        (void)!weir_graph_seal(f.graph);
        _exit(1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

/* Each shard has its ten or its twenty with the offset that says so; shards seal apart, so the two may differ. */
static void s3_a_seal_is_all_or_nothing(void **state) {
    (void)state;
    if (strcmp(weir_test_sanitizer(), "thread") == 0) {
        weir_test_skip("the thread sanitizer does not follow a fork of a process with threads");
    }
    static const char *const points[] = {"seal.begin:1",      "seal.half_written:1", "engine.finished:1",
                                         "engine.ingested:1", "seal.ingested:1",     "seal.end:1"};
    for (size_t i = 0; i < sizeof points / sizeof points[0]; i++) {
        fixture f = {0};
        die_sealing_at(points[i]);
        graph_open(&f);
        uint64_t sealed = weir_graph_offset_sealed(f.graph, f.source, 0);
        assert_true(sealed == 10 || sealed == 20);
        uint32_t out = degree(&f, 1, WEIR_OUT);
        assert_true(out == 10 || out == 20);
        assert_true(out >= sealed);
        f.offset = sealed; /* what a recovery does */
        for (uint64_t n = sealed; n < 20; n++)
            put_edge(&f, 1, 2 + n, (int64_t)n, n);
        assert_int_equal(degree(&f, 1, WEIR_OUT), 20);
        for (weir_vertex v = 2; v < 22; v++)
            assert_int_equal(degree(&f, v, WEIR_IN), 1);
        fixture_close(&f);
        assert_ok(weir_folder_remove(weir_test_path("store")));
    }
}

/* What a cached window answers, after seals have changed it, is what a store without that window answers. */
static void s5_windows_follow_seals(void **state) {
    (void)state;
    fixture f = {0};
    weir_arena *arena;
    const weir_edge *cached, *fresh;
    assert_ok(weir_arena_open(8u << 20, &arena));
    graph_open(&f);
    for (int64_t t = 1; t <= 300; t++) {
        put_edge(&f, 1, 1000 + (weir_vertex)t, t * 7 % 300, (uint64_t)t); /* many come late */
        if (t % 20 == 0) assert_ok(weir_graph_seal(f.graph));
        degree(&f, 1, WEIR_OUT);
    }
    assert_ok(weir_graph_seal(f.graph));
    uint32_t count = neighbors(&f, 1, WEIR_OUT, WEIR_BEFORE_ALL, 100, arena, &cached);
    graph_close(&f);
    graph_open(&f);
    assert_int_equal(neighbors(&f, 1, WEIR_OUT, WEIR_BEFORE_ALL, 100, arena, &fresh), count);
    for (uint32_t i = 0; i < count; i++) {
        assert_true(cached[i].neighbor == fresh[i].neighbor && cached[i].time_us == fresh[i].time_us);
    }
    weir_arena_close(arena);
    fixture_close(&f);
}

/* Edge t of a hub leads to 1000 + t and stands at t * 7 % HUB: all times, once each, many of them late. */
enum { HUB = 3001 };

static void hub_says(fixture *f, int64_t newest_put, int64_t before_us, uint32_t limit, weir_arena *arena) {
    static bool put[HUB];
    const weir_edge *edges;
    memset(put, 0, sizeof put);
    for (int64_t t = 1; t <= newest_put; t++)
        put[t * 7 % HUB] = true;
    weir_arena_reset(arena);
    uint32_t count = neighbors(f, 1, WEIR_OUT, before_us, limit, arena, &edges), at = 0;
    for (int64_t time_us = before_us < HUB ? before_us - 1 : HUB - 1; time_us >= 0 && at < limit; time_us--) {
        if (!put[time_us]) continue;
        assert_true(at < count && edges[at].time_us == time_us);
        assert_true((int64_t)(edges[at].neighbor - 1000) * 7 % HUB == time_us);
        at++;
    }
    assert_int_equal(at, count);
}

/* Who wants a thousand edges of a hub makes its window as wide; few are still answered from it, and seals keep it. */
static void s5_a_hub_gets_a_wide_window(void **state) {
    (void)state;
    fixture f = {0};
    weir_arena *arena;
    weir_graph_stats before, after;
    weir_rng rng = weir_rng_stream(weir_test_seed(), 1, 1);
    assert_ok(weir_arena_open(8u << 20, &arena));
    graph_open(&f);
    for (int64_t t = 1; t < HUB; t++) {
        put_edge(&f, 1, 1000 + (weir_vertex)t, t * 7 % HUB, (uint64_t)t);
        if (t % 500) continue;
        assert_ok(weir_graph_seal(f.graph));
        for (unsigned i = 0; i < 20; i++) {
            uint32_t limit = 1 + (uint32_t)weir_rng_below(&rng, i % 2 ? 20 : 1500);
            hub_says(&f, t, 1 + (int64_t)weir_rng_below(&rng, HUB + 100), limit, arena);
        }
    }
    hub_says(&f, HUB - 1, WEIR_BEFORE_ALL, 1200, arena);
    weir_graph_stats_get(f.graph, &before);
    for (unsigned i = 0; i < 10; i++)
        hub_says(&f, HUB - 1, HUB - (int64_t)weir_rng_below(&rng, 200), i % 2 ? 1200 : 10, arena);
    weir_graph_stats_get(f.graph, &after);
    assert_int_equal(after.cache_misses, before.cache_misses);
    assert_true(after.cache_hits >= before.cache_hits + 10);
    weir_arena_close(arena);
    fixture_close(&f);
}

static void s6_memory_stays_in_its_budget_and_nothing_is_dropped(void **state) {
    (void)state;
    fixture f = {0};
    const weir_graph_opts opts = {.shards = 2, .memory_bytes = 4u << 20, .create = true};
    assert_ok(weir_schema_parse("tiny", tiny_schema, sizeof tiny_schema - 1, &f.schema));
    assert_ok(weir_graph_open(weir_test_path("store"), f.schema, &opts, &f.graph));
    assert_ok(weir_graph_source(f.graph, "log:s", 7, &f.source));
    for (int64_t t = 0; t < 20000; t++) {
        weir_graph_stats stats;
        put_edge(&f, 1 + (weir_vertex)(t % 997), 5000 + (weir_vertex)t, t, (uint64_t)t);
        if (t % 500) continue;
        weir_graph_stats_get(f.graph, &stats);
        assert_true(stats.delta_bytes <= opts.memory_bytes / 2); /* the deltas' share */
        assert_true(stats.cache_bytes <= opts.memory_bytes / 4);
    }
    uint32_t total = 0;
    for (weir_vertex v = 1; v <= 997; v++)
        total += degree(&f, v, WEIR_OUT);
    assert_int_equal(total, 20000);
    weir_graph_stats stats;
    weir_graph_stats_get(f.graph, &stats);
    assert_true(stats.seals > 0);
    fixture_close(&f);
}

/* What /v1/status says is the newest event, whether its shard has one of its own since or not. */
static void the_newest_time_outlives_the_process(void **state) {
    (void)state;
    fixture f = {0};
    weir_graph_stats stats;
    graph_open(&f);
    put_edge(&f, 1, 2, 7000, 1);
    put_edge(&f, 3, 4, 9000, 2);
    put_edge(&f, 5, 6, 8000, 3);
    graph_close(&f);
    graph_open(&f);
    weir_graph_stats_get(f.graph, &stats);
    assert_int_equal(stats.event_time_last_us, 9000);
    fixture_close(&f);
}

/* --- what goes wrong -------------------------------------------------------------------------------------------- */

static void full_disk_keeps_the_delta_and_goes_on_when_there_is_room(void **state) {
    (void)state;
    fixture f = {0};
    graph_open(&f);
    put_edge(&f, 1, 2, 3, 4);
    assert_ok(weir_fault_arm("write:1:ENOSPC"));
    assert_err(weir_graph_seal(f.graph), WEIR_EFULL, "free some space");
    assert_int_equal(degree(&f, 1, WEIR_OUT), 1);
    assert_ok(weir_fault_arm(NULL));
    put_edge(&f, 1, 5, 6, 7);
    assert_ok(weir_graph_seal(f.graph));
    graph_close(&f);
    graph_open(&f);
    assert_int_equal(degree(&f, 1, WEIR_OUT), 2);
    fixture_close(&f);
}

/* Holds a try to seal in front of a full disk until there is room: it fails all the same. */
typedef enum full_disk { DISK_WATCHED, DISK_HOLDS_NEXT, DISK_HOLDS, DISK_LETS_GO } full_disk;

static void nap(void) {
    weir_clock *clock = weir_clock_system();
    weir_clock_sleep_until(clock, weir_clock_mono_us(clock) + 1000);
}

static void hold_a_write(void *context, weir_fault_op op, const char *path) {
    atomic_int *disk = context;
    int next = DISK_HOLDS_NEXT;
    bool first_asked = op == WEIR_FAULT_WRITE && strstr(path, "/shard-000/");
    if (!first_asked || !atomic_compare_exchange_strong(disk, &next, DISK_HOLDS)) return;
    while (atomic_load(disk) != DISK_LETS_GO)
        nap();
    for (int i = 0; i < 200; i++)
        nap(); /* the seal that is asked for meanwhile waits by now */
}

static void failure_of_a_try_before_is_no_answer_to_a_seal(void **state) {
    (void)state;
    fixture f = {0};
    atomic_int disk = DISK_WATCHED;
    weir_fault_watch(hold_a_write, &disk);
    graph_open(&f);
    put_edge(&f, 1, 2, 3, 4);
    assert_ok(weir_fault_arm("write:1:ENOSPC"));
    assert_err(weir_graph_seal(f.graph), WEIR_EFULL, "free some space");
    atomic_store(&disk, DISK_HOLDS_NEXT); /* the sealer tries again */
    while (atomic_load(&disk) != DISK_HOLDS)
        nap();
    assert_ok(weir_fault_arm(NULL));
    put_edge(&f, 1, 5, 6, 7);
    atomic_store(&disk, DISK_LETS_GO);
    assert_ok(weir_graph_seal(f.graph));
    fixture_close(&f);
    weir_fault_watch(NULL, NULL);
}

static void second_process_recreated_source_and_other_schema_are_refused(void **state) {
    (void)state;
    fixture f = {0};
    weir_graph *second;
    weir_schema *other;
    uint32_t source;
    weir_graph_opts opts = {.shards = 2, .memory_bytes = 64u << 20};
    static const char other_text[] =
        "version: 1\nname: tiny\nvertices:\n  b: {}\n  a: {}\nrelations:\n  r: {from: a, to: b}\n"
        "sources:\n  s: {id: id, time: t, mutations: [{put_edge: r, from: a, to: b}]}\n";
    assert_ok(weir_schema_parse("tiny", tiny_schema, sizeof tiny_schema - 1, &f.schema));
    assert_err(weir_graph_open(weir_test_path("store"), f.schema, &opts, &second), WEIR_ENOTFOUND, "no store");
    graph_open(&f);
    assert_err(weir_graph_open(weir_test_path("store"), f.schema, &opts, &second), WEIR_EBUSY, NULL);
    assert_err(weir_graph_source(f.graph, "log:s", 8, &source), WEIR_EDATA, "recreated");
    graph_close(&f);
    assert_ok(weir_schema_parse("tiny", other_text, sizeof other_text - 1, &other));
    assert_err(weir_graph_open(weir_test_path("store"), other, &opts, &second), WEIR_EDATA, "another schema");
    weir_schema_free(other);
    weir_schema_free(f.schema);
}

/* The types of vertices are the same, which takes memory to see; a relation is not. */
static void lack_of_memory_is_not_another_schema(void **state) {
    (void)state;
    fixture f = {0};
    weir_graph *second;
    weir_schema *other;
    weir_graph_opts opts = {.shards = 2, .memory_bytes = 64u << 20};
    static const char other_text[] =
        "version: 1\nname: tiny\nvertices:\n  a: {features: {x: {kind: number}}}\n  b: {}\n"
        "relations:\n  r: {from: b, to: a, features: {w: {kind: number}}}\n"
        "sources:\n  s: {id: id, time: t, mutations: [{put_edge: r, from: a, to: b, features: [w]}]}\n";
    graph_open(&f);
    graph_close(&f);
    assert_ok(weir_schema_parse("tiny", other_text, sizeof other_text - 1, &other));
    int failed = 1;
    for (uint64_t nth = 1; failed; nth++) {
        weir_alloc_fail_nth(nth);
        weir_err err = weir_graph_open(weir_test_path("store"), other, &opts, &second);
        failed = weir_alloc_failed();
        weir_alloc_fail_nth(0);
        bool another = weir_err_is(err, WEIR_EDATA); /* it may be known already when memory lacks */
        assert_err(err, another ? WEIR_EDATA : WEIR_ENOMEM,
                   another ? "'from' of relation 'r' was 'a' and is 'b'" : NULL);
        assert_true(another || failed);
    }
    weir_schema_free(other);
    weir_schema_free(f.schema);
}

static void checkpoint_restores_and_a_damaged_one_is_refused(void **state) {
    (void)state;
    fixture f = {0};
    char *bytes;
    size_t length;
    graph_open(&f);
    for (int i = 0; i < 50; i++)
        put_edge(&f, 1, 2 + (weir_vertex)i, i, (uint64_t)i);
    assert_ok(weir_graph_checkpoint(f.graph, weir_test_path("point")));
    assert_err(weir_graph_checkpoint(f.graph, weir_test_path("point")), WEIR_EEXIST, "point");
    put_edge(&f, 1, 100, 100, 100);
    graph_close(&f);
    assert_ok(weir_folder_remove(weir_test_path("store")));
    assert_ok(weir_graph_restore(weir_test_path("point"), weir_test_path("store")));
    graph_open(&f);
    assert_int_equal(degree(&f, 1, WEIR_OUT), 50);
    assert_int_equal(weir_graph_offset_sealed(f.graph, f.source, 0), 50);
    graph_close(&f);
    assert_ok(weir_file_load(weir_test_path("point/graph.yaml"), 4096, &bytes, &length));
    bytes[length - 2] ^= 1;
    assert_ok(weir_file_replace(weir_test_path("point/graph.yaml"), bytes, length));
    weir_free(bytes);
    assert_err(weir_graph_restore(weir_test_path("point"), weir_test_path("again")), WEIR_ECORRUPT, "graph.yaml");
    weir_schema_free(f.schema);
}

typedef struct flips {
    const char *folder;
    int files;
} flips;

/* A bit in the middle of every sorted file of a folder. */
static weir_err flip_sorted(void *context, const char *name) {
    flips *f = context;
    char path[1024], byte;
    size_t length = strlen(name);
    if (length < 4 || strcmp(name + length - 4, ".sst") != 0) return WEIR_OK;
    snprintf(path, sizeof path, "%s/%s", f->folder, name);
    FILE *file = fopen(path, "r+");
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    long middle = ftell(file) / 2;
    assert_int_equal(fseek(file, middle, SEEK_SET), 0);
    assert_int_equal(fread(&byte, 1, 1, file), 1);
    byte ^= 16;
    assert_int_equal(fseek(file, middle, SEEK_SET), 0);
    assert_int_equal(fwrite(&byte, 1, 1, file), 1);
    assert_int_equal(fclose(file), 0);
    f->files++;
    return WEIR_OK;
}

static int flip_store(unsigned shards) {
    char folder[1024];
    flips f = {folder, 0};
    for (unsigned i = 0; i < shards; i++) {
        snprintf(folder, sizeof folder, "%s/shard-%03u", weir_test_path("store"), i);
        assert_ok(weir_folder_list(folder, flip_sorted, &f));
    }
    return f.files;
}

/* A bit that flips in the store is no bit of the backup, or the backup has said that it is. */
static void a_checkpoint_shares_no_file_without_saying_so(void **state) {
    (void)state;
    fixture f = {0};
    graph_open(&f);
    for (int i = 0; i < 50; i++)
        put_edge(&f, 1, 2 + (weir_vertex)i, i, (uint64_t)i);
    assert_ok(weir_graph_checkpoint(f.graph, weir_test_path("copied")));
    assert_ok(weir_graph_checkpoint_linked(f.graph, weir_test_path("linked")));
    assert_false(weir_graph_checkpoint_shares(weir_test_path("copied")));
    assert_true(weir_graph_checkpoint_shares(weir_test_path("linked")));
    graph_close(&f);
    assert_ok(weir_graph_restore(weir_test_path("linked"), weir_test_path("first")));
    assert_false(weir_graph_checkpoint_shares(weir_test_path("first")));
    unsigned shards = 0;
    for (char name[32];
         snprintf(name, sizeof name, "store/shard-%03u", shards), weir_path_exists(weir_test_path(name));)
        shards++;
    assert_true(flip_store(shards) > 0);
    assert_err(weir_graph_restore(weir_test_path("linked"), weir_test_path("second")), WEIR_ECORRUPT, ".sst");
    assert_ok(weir_folder_remove(weir_test_path("store")));
    assert_ok(weir_graph_restore(weir_test_path("copied"), weir_test_path("store")));
    graph_open(&f);
    assert_int_equal(degree(&f, 1, WEIR_OUT), 50);
    graph_close(&f);
    weir_schema_free(f.schema);
}

/* A put carries the name once while it is remembered. After a start it is carried again, which changes nothing: not
 * what is answered, and, once both are compacted, not what is stored. */
static weir_err count_names(void *context, const void *key, size_t key_length, const void *value, size_t value_length) {
    (void)value, (void)value_length;
    *(int *)context += key_length > 0 && *(const char *)key == 'N';
    return WEIR_OK;
}

static void a_name_is_wanted_once_a_start(void **state) {
    (void)state;
    fixture f = {0};
    graph_open(&f);
    for (int pass = 0; pass < 3; pass++) {
        for (int i = 0; i < 40; i++) {
            char key[8];
            size_t length = (size_t)snprintf(key, sizeof key, "k%d", i);
            weir_vertex v = weir_vertex_id(weir_graph_id_key(f.graph), "a", key, length);
            weir_mutation m = {
                .kind = WEIR_PUT_VERTEX, .vertex = v, .time_us = 1 + pass, .key = key, .key_length = (uint16_t)length};
            assert_true(weir_graph_name_claim(f.graph, &m));
            assert_false(weir_graph_name_claim(f.graph, &m));
            submit(&f, &m, 1);
        }
        graph_close(&f);
        graph_open(&f);
        int names = 0;
        for (uint32_t shard = 0; shard < weir_graph_shards(f.graph); shard++)
            assert_ok(weir_graph_scan(f.graph, shard, count_names, &names));
        assert_int_equal(names, 40);
    }
    fixture_close(&f);
}

/* --- the key of the ids ----------------------------------------------------------------------------------------- */

static weir_id_key key_of(const char *folder, const weir_schema *schema) {
    const weir_graph_opts opts = {.read_only = true};
    weir_graph *graph;
    assert_ok(weir_graph_open(folder, schema, &opts, &graph));
    weir_id_key key = *weir_graph_id_key(graph);
    assert_ok(weir_graph_close(graph));
    return key;
}

static bool same_key(weir_id_key a, weir_id_key b) {
    return memcmp(&a, &b, sizeof a) == 0;
}

static unsigned mode_of(const char *path) {
    struct stat status;
    assert_int_equal(stat(path, &status), 0);
    return status.st_mode & 07777;
}

/* Each store draws its own, and keeps it; nobody but its owner may read it, wherever it is copied. */
static void the_key_of_the_ids_is_drawn_once_and_kept(void **state) {
    (void)state;
    weir_schema *schema;
    weir_graph *graph;
    weir_id_key keys[2];
    mode_t mask = umask(0);
    assert_ok(weir_schema_parse("tiny", tiny_schema, sizeof tiny_schema - 1, &schema));
    for (unsigned i = 0; i < 2; i++) {
        const weir_graph_opts opts = {.shards = 2, .memory_bytes = 64u << 20, .create = true};
        uint32_t source;
        assert_ok(weir_graph_open(weir_test_path(i ? "two" : "one"), schema, &opts, &graph));
        keys[i] = *weir_graph_id_key(graph);
        assert_ok(weir_graph_source(graph, "log:s", 7, &source)); /* writes graph.yaml again */
        if (i == 0) assert_ok(weir_graph_checkpoint(graph, weir_test_path("point")));
        assert_ok(weir_graph_close(graph));
    }
    assert_false(same_key(keys[0], keys[1]));
    assert_ok(weir_graph_restore(weir_test_path("point"), weir_test_path("again")));
    static const char *const folders[] = {"one", "point", "again"};
    for (size_t i = 0; i < 3; i++) {
        char path[512];
        snprintf(path, sizeof path, "%s/graph.yaml", weir_test_path(folders[i]));
        assert_true(same_key(key_of(weir_test_path(folders[i]), schema), keys[0]));
        assert_int_equal(mode_of(path), 0600);
    }
    /* What is there keeps its key, whatever is asked for. */
    const weir_graph_opts opts = {.create = true, .id_key = &weir_id_key_public};
    assert_ok(weir_graph_open(weir_test_path("one"), schema, &opts, &graph));
    assert_true(same_key(*weir_graph_id_key(graph), keys[0]));
    assert_ok(weir_graph_close(graph));
    umask(mask);
    weir_schema_free(schema);
}

static void write_description(const char *head) {
    char text[512];
    int length = snprintf(text, sizeof text, "%s", head);
    length += snprintf(text + length, sizeof text - (size_t)length, "check: \"%016llx\"\n",
                       (unsigned long long)weir_xxh3(text, (size_t)length, 0));
    assert_ok(weir_folder_create(weir_test_path("old")));
    assert_ok(weir_file_replace(weir_test_path("old/graph.yaml"), text, (size_t)length));
}

#define HEAD "format: 4\nshards: 2\nid_key: \"0123456789abcdef0123456789abcdef\"\nevent_window: 1\n"

/* Each sentence says what to do. */
static void other_formats_and_keys_that_are_none_are_refused(void **state) {
    static const struct {
        const char *head, *sentence;
        weir_code code;
    } cases[] = {
        {"format: 1\nshards: 2\nsources: []\n", "move the folder away and start again, and the log fills a new one",
         WEIR_EVERSION},
        {"format: 2\nshards: 2\nsources: []\n", "move the folder away and start again, and the log fills a new one",
         WEIR_EVERSION},
        {"format: 3\nshards: 2\nsources: []\n", "move the folder away and start again, and the log fills a new one",
         WEIR_EVERSION},
        {"format: 5\nshards: 2\nsources: []\n", "use the program that wrote it", WEIR_EVERSION},
        {"format: 4\nshards: 2\nsources: []\n", "not 32 digits", WEIR_ECONFIG},
        {"format: 4\nshards: 2\nid_key: \"0123456789abcdef0123456789abcde\"\nsources: []\n", "not 32 digits",
         WEIR_ECONFIG},
        {"format: 4\nshards: 2\nid_key: \"0123456789ABCDEF0123456789abcdef\"\nsources: []\n", "not 32 digits",
         WEIR_ECONFIG},
        {"- ", "does not describe a store", WEIR_ECORRUPT},
        {"format: 4\nshards: 2\nid_key: []\nsources: []\n", "not 32 digits", WEIR_ECONFIG},
        {HEAD "store: {}\n", "'store' is not a number", WEIR_ECONFIG},
        {HEAD "sources: {a: b}\n", "'sources' is not a list", WEIR_ECONFIG},
        {HEAD "sources: [a]\n", "this source of the store cannot be read", WEIR_ECONFIG},
        {HEAD "sources: [{name: [], identity: \"1\"}]\n", "this source of the store cannot be read", WEIR_ECONFIG},
    };
    const weir_graph_opts opts = {.create = true};
    weir_schema *schema;
    (void)state;
    assert_ok(weir_schema_parse("tiny", tiny_schema, sizeof tiny_schema - 1, &schema));
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        weir_graph *graph;
        write_description(cases[i].head);
        assert_err(weir_graph_open(weir_test_path("old"), schema, &opts, &graph), cases[i].code, cases[i].sentence);
    }
    weir_schema_free(schema);
}

WEIR_TESTS(WEIR_CASE(newest_first_across_delta_and_seals), WEIR_CASE(s1_exactly_the_events_below_the_offset),
           WEIR_CASE(s2_before_or_after_an_event_never_half), WEIR_CASE(s3_a_seal_is_all_or_nothing),
           WEIR_CASE(s5_windows_follow_seals), WEIR_CASE(s5_a_hub_gets_a_wide_window),
           WEIR_CASE(s6_memory_stays_in_its_budget_and_nothing_is_dropped),
           WEIR_CASE(the_newest_time_outlives_the_process),
           WEIR_CASE(full_disk_keeps_the_delta_and_goes_on_when_there_is_room),
           WEIR_CASE(failure_of_a_try_before_is_no_answer_to_a_seal),
           WEIR_CASE(second_process_recreated_source_and_other_schema_are_refused),
           WEIR_CASE(lack_of_memory_is_not_another_schema), WEIR_CASE(checkpoint_restores_and_a_damaged_one_is_refused),
           WEIR_CASE(a_checkpoint_shares_no_file_without_saying_so), WEIR_CASE(a_name_is_wanted_once_a_start),
           WEIR_CASE(the_key_of_the_ids_is_drawn_once_and_kept),
           WEIR_CASE(other_formats_and_keys_that_are_none_are_refused))

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sweep_test.c - every allocation, file operation and RocksDB call of a running store fails once.
 *
 * A round is a small life: edges with rows, vertices with names, deletions, reads, a drain, a seal, in some cases a
 * checkpoint, or a trim. In the N-th round the N-th call fails, until three rounds in a row have fewer. The delta is
 * due within milliseconds, so that the clock's freezes are in every round. After each failure the store must come back
 * by itself: what was submitted is tried again as a source does it, reads are either an error or right, and in the end
 * all answers are those of the naive graph, health is well again, and what a new opening finds is the same. A hang is
 * met by the case's time limit. The cases have more than 2,000 points together.
 */
#include "trouble.h"

#include <weir/store/base/alloc.h>
#include <weir/store/base/fault.h>
#include <weir/store/base/file.h>
#include <weir/store/base/rng.h>
#include <weir/store/graph/repair.h>

#include "naive_graph.h"

#define MEMORY       (8u << 20)
#define SEAL_US      3000
#define VERTICES     24u
#define EVENTS       120u
#define TRIES        2000u
#define REOPEN_EVERY 24u

typedef struct sweep {
    trouble_store store;
    naive_graph *naive;
    weir_rng rng;
    int64_t now_us;
    uint64_t errors; /* that were told */
} sweep;

/* What a call may be told while something fails; it is tried again. */
static bool told(sweep *s, weir_err err) {
    static const weir_code fine[] = {WEIR_ENOMEM, WEIR_EIO, WEIR_EFULL, WEIR_EUNAVAILABLE, WEIR_EBUSY};
    char sentence[WEIR_ERR_SENTENCE_MAX];
    if (!err) return false;
    for (size_t i = 0; i < sizeof fine / sizeof fine[0]; i++)
        if (weir_err_is(err, fine[i])) return ++s->errors;
    weir_err_sentence(err, sentence, sizeof sentence);
    fail_msg("told %s: %s", weir_code_name(weir_err_code(err)), sentence);
    return false;
}

static void submit(sweep *s, weir_mutation *mutations, size_t count) {
    uint32_t tries = 0;
    for (weir_err err; (err = trouble_submit(&s->store, mutations, count, 0)); trouble_nap())
        assert_true(told(s, err) && ++tries < TRIES);
    for (size_t i = 0; i < count; i++)
        naive_graph_apply(s->naive, &mutations[i]);
}

static uint64_t any_vertex(sweep *s) {
    return 1 + weir_rng_below(&s->rng, VERTICES);
}

static void put_edge(sweep *s) {
    uint64_t a = any_vertex(s), b = 100 + any_vertex(s), event = s->store.offset + 1;
    static uint8_t row[16];
    memset(row, (int)event, sizeof row);
    weir_mutation m[2] = {{.kind = WEIR_PUT_EDGE, .direction = WEIR_OUT, .row = row, .row_length = sizeof row},
                          {.kind = WEIR_PUT_EDGE, .direction = WEIR_IN, .row = row, .row_length = sizeof row}};
    for (int i = 0; i < 2; i++) {
        m[i].vertex = trouble_vertex(i ? b : a);
        m[i].neighbor = trouble_vertex(i ? a : b);
        m[i].time_us = s->now_us;
        m[i].event = event;
    }
    submit(s, m, 2);
}

static void put_named(sweep *s) {
    uint64_t a = any_vertex(s);
    char key[32];
    weir_mutation m = {.kind = WEIR_PUT_VERTEX, .key = key, .time_us = s->now_us, .event = s->store.offset + 1};
    m.vertex = trouble_vertex(a);
    m.key_length = (uint16_t)snprintf(key, sizeof key, "key-%llu", (unsigned long long)a);
    submit(s, &m, 1);
}

static void delete_one(sweep *s) {
    weir_mutation m = {.kind = WEIR_DELETE_VERTEX, .time_us = s->now_us, .event = s->store.offset + 1};
    m.vertex = trouble_vertex(any_vertex(s));
    submit(s, &m, 1);
}

static void any_event(sweep *s) {
    uint64_t what = weir_rng_below(&s->rng, 8);
    s->now_us += 1000;
    if (what == 0) delete_one(s);
    if (what == 1 || what == 2) put_named(s);
    if (what > 2) put_edge(s);
}

static void check_vertex(sweep *s, uint64_t number, weir_direction direction) {
    weir_vertex v = trouble_vertex(number);
    naive_edge expected[512];
    const weir_edge *edges = NULL;
    uint32_t count = 0, tries = 0;
    weir_arena *arena = NULL;
    for (weir_err err;; trouble_nap()) {
        err = arena ? WEIR_OK : weir_arena_open(1u << 20, &arena);
        if (!err)
            err = weir_graph_neighbors(s->store.graph, v, 0, direction, WEIR_BEFORE_ALL, 512, arena, &edges, &count);
        if (!err || weir_err_is(err, WEIR_ELIMIT)) break; /* ELIMIT: of an arena without memory */
        assert_true(told(s, err) && ++tries < TRIES);
    }
    if (edges) {
        size_t wanted = naive_graph_neighbors(s->naive, v, 0, direction, INT64_MAX, 0, s->now_us, 512, expected);
        assert_int_equal(count, wanted);
        for (size_t i = 0; i < wanted; i++) {
            assert_true(edges[i].neighbor == expected[i].neighbor && edges[i].time_us == expected[i].time_us);
            assert_int_equal(edges[i].row_length, expected[i].row_length);
            assert_memory_equal(edges[i].row, expected[i].row, edges[i].row_length);
        }
    }
    weir_arena_close(arena);
}

static void check_name(sweep *s, uint64_t number) {
    weir_vertex v = trouble_vertex(number);
    const char *key = NULL, *expected;
    uint32_t length = 0, tries = 0;
    uint16_t type;
    size_t expected_length = 0;
    weir_arena *arena = NULL;
    weir_err err;
    for (;; trouble_nap()) {
        err = arena ? WEIR_OK : weir_arena_open(1u << 20, &arena);
        if (!err) err = weir_graph_name(s->store.graph, v, arena, &type, &key, &length);
        if (!err || weir_err_is(err, WEIR_ELIMIT)) break;
        assert_true(told(s, err) && ++tries < TRIES);
    }
    if (!err) {
        expected = naive_graph_name(s->naive, v, &expected_length);
        assert_true(!key == !expected);
        if (key) assert_true(length == expected_length && memcmp(key, expected, length) == 0);
    }
    weir_arena_close(arena);
}

static void check_all(sweep *s) {
    for (uint64_t a = 1; a <= VERTICES; a++) {
        check_vertex(s, a, WEIR_OUT);
        check_vertex(s, 100 + a, WEIR_IN);
        check_name(s, a);
    }
}

static void until_well(sweep *s, weir_err (*call)(weir_graph *graph)) {
    uint32_t tries = 0;
    for (weir_err err; (err = call(s->store.graph)); trouble_nap())
        assert_true(told(s, err) && ++tries < TRIES);
}

static void checkpoint(sweep *s) {
    weir_err err = weir_graph_checkpoint(s->store.graph, weir_test_path("point"));
    told(s, err);
    if (!weir_path_exists(weir_test_path("point"))) return;
    uint32_t tries = 0;
    while ((err = weir_folder_remove(weir_test_path("point"))))
        assert_true(told(s, err) && ++tries < TRIES);
}

static bool never_wait(void *context, uint64_t bytes) {
    (void)context, (void)bytes;
    return true;
}

static void trim(sweep *s) {
    uint32_t shard = (uint32_t)weir_rng_below(&s->rng, TROUBLE_SHARDS);
    told(s, weir_graph_trim(s->store.graph, shard, never_wait, NULL));
}

typedef void (*extra)(sweep *s);

/* more: what else there is in a round; NULL: nothing. */
static void live(sweep *s, extra more) {
    for (uint32_t i = 0; i < EVENTS; i++)
        any_event(s);
    until_well(s, weir_graph_drain);
    for (int i = 0; i < 3; i++) {
        check_vertex(s, any_vertex(s), WEIR_OUT);
        check_name(s, any_vertex(s));
    }
    until_well(s, weir_graph_seal);
    check_vertex(s, 100 + any_vertex(s), WEIR_IN);
    if (more) more(s);
}

/* --- how a call is made to fail --------------------------------------------------------------------------------- */

typedef struct way {
    const char *name, *op, *why; /* op NULL: allocations */
} way;

static void arm(const way *w, uint64_t nth) {
    char spec[64];
    if (!w->op) {
        weir_alloc_fail_nth(nth);
        return;
    }
    snprintf(spec, sizeof spec, "%s:%llu:%s:once", w->op, (unsigned long long)nth, w->why);
    assert_ok(weir_fault_arm(spec));
}

/* Whether a call has failed. */
static bool disarm(const way *w, uint64_t nth) {
    bool failed = w->op ? weir_fault_seen() >= nth : weir_alloc_failed();
    if (w->op) assert_ok(weir_fault_arm(NULL));
    weir_alloc_fail_nth(0);
    return failed;
}

/* --- the sweeps ------------------------------------------------------------------------------------------------- */

static void begin(sweep *s) {
    *s = (sweep){.naive = naive_graph_open(), .rng = weir_rng_stream(weir_test_seed(), 0, 0)};
    trouble_in_memory();
    assert_ok(trouble_open(&s->store, MEMORY, SEAL_US));
}

static void end(sweep *s, const way *w, uint64_t points) {
    assert_ok(trouble_close(&s->store));
    trouble_free(&s->store);
    naive_graph_close(s->naive);
    printf("%s: %llu points, %llu errors told, 0 silent\n", w->name, (unsigned long long)points,
           (unsigned long long)s->errors);
}

static void reopen(sweep *s) {
    assert_ok(trouble_close(&s->store));
    assert_ok(trouble_open(&s->store, MEMORY, SEAL_US));
    assert_int_equal(weir_graph_offset_sealed(s->store.graph, s->store.source, 0), s->store.offset);
    check_all(s);
}

/* An empty store: what a round calls must not grow with the rounds before it. */
static void begin_anew(sweep *s) {
    assert_ok(trouble_close(&s->store));
    assert_ok(weir_folder_remove(weir_test_path("store")));
    naive_graph_close(s->naive);
    s->naive = naive_graph_open();
    s->store.offset = 0;
    assert_ok(trouble_open(&s->store, MEMORY, SEAL_US));
}

/* Only each step-th call, from first on: the cases share the points among them. A sanitizer, which takes ten times as
 * long, sees some of them, others in each run. */
static void run(const way *w, uint64_t first, uint64_t step, extra more) {
    sweep s;
    uint64_t points = 0, whole = 0, rounds = 0;
    begin(&s);
    const uint64_t part = weir_test_part(10, 5);
    uint64_t nth = first + step * weir_rng_below(&s.rng, part);
    step *= part;
    for (; whole < 3; nth += step) { /* threads take turns differently: one round without it may be chance */
        arm(w, nth);
        live(&s, more);
        bool failed = disarm(w, nth);
        points += failed;
        whole = failed ? 0 : whole + 1;
        until_well(&s, weir_graph_health);
        until_well(&s, weir_graph_seal);
        if (rounds % 8 == 0) check_all(&s);
        if (++rounds % REOPEN_EVERY) continue;
        reopen(&s);
        begin_anew(&s);
    }
    check_all(&s);
    assert_true(points > 10 / part);
    end(&s, w, points);
}

static const way allocations = {"allocations", NULL, NULL};
static const way operations = {"operations", "any", "EIO"};
static const way full = {"full disk", "any", "ENOSPC"};
static const way thrown = {"std::bad_alloc", "engine", "ENOMEM"};

#define SWEEP(name, way, first, step, more)   \
    static void name(void **state) {          \
        (void)state;                          \
        run(&(way), (first), (step), (more)); \
    }

SWEEP(every_allocation_first_half, allocations, 1, 2, NULL)
SWEEP(every_allocation_second_half, allocations, 2, 2, NULL)
SWEEP(every_operation_first_half, operations, 1, 2, NULL)
SWEEP(every_operation_second_half, operations, 2, 2, NULL)
SWEEP(every_operation_finds_the_disk_full, full, 1, 1, NULL)
SWEEP(every_call_of_rocksdb_throws, thrown, 1, 1, NULL)
SWEEP(every_allocation_with_a_checkpoint, allocations, 1, 3, checkpoint)
SWEEP(every_operation_with_a_checkpoint, operations, 1, 3, checkpoint)
SWEEP(every_allocation_with_a_trim, allocations, 1, 3, trim)
SWEEP(every_operation_with_a_trim, operations, 1, 3, trim)
SWEEP(every_call_of_rocksdb_throws_with_a_trim, thrown, 1, 2, trim)

/* --- a store that is filled ------------------------------------------------------------------------------------- */

/* What comes behind the first seals lies on piles, until the store is whole. */
static void fill(sweep *s) {
    for (uint32_t i = 0; i < EVENTS; i++) {
        any_event(s);
        if (i % 32 != 31) continue;
        until_well(s, weir_graph_drain);
        until_well(s, weir_graph_seal);
    }
    until_well(s, weir_graph_drain);
    until_well(s, weir_graph_filled);
    assert_false(weir_graph_filling(s->store.graph));
}

static void fill_with(const way *w, uint64_t first, uint64_t step) {
    sweep s;
    uint64_t points = 0, whole = 0;
    begin(&s);
    s.store.from_log = true;
    const uint64_t part = weir_test_part(10, 5);
    uint64_t nth = first + step * weir_rng_below(&s.rng, part);
    for (; whole < 3; nth += step * part) {
        begin_anew(&s);
        assert_true(weir_graph_filling(s.store.graph));
        arm(w, nth);
        fill(&s);
        bool failed = disarm(w, nth);
        points += failed;
        whole = failed ? 0 : whole + 1;
        until_well(&s, weir_graph_health);
        check_all(&s);
    }
    reopen(&s);
    assert_false(weir_graph_filling(s.store.graph));
    assert_true(points > 10 / part);
    end(&s, w, points);
}

static void every_allocation_of_a_fill(void **state) {
    (void)state;
    fill_with(&allocations, 1, 2);
}

static void every_operation_of_a_fill(void **state) {
    (void)state;
    fill_with(&operations, 1, 2);
}

/* --- the stop --------------------------------------------------------------------------------------------------- */

/* What a stop could not seal is said, and is the log's: submitted again from the sealed offset, all is there. */
static void stop_with(const way *w) {
    sweep s;
    uint64_t points = 0, whole = 0;
    begin(&s);
    for (uint64_t nth = 1; whole < 3; nth++) {
        if (nth % REOPEN_EVERY == 0) begin_anew(&s); /* else there is ever more to merge, and nth never catches up */
        uint64_t first = s.store.offset;
        for (uint64_t b = 0; b < 4; b++)
            assert_ok(trouble_edge(&s.store, 1, 200 + first + b, (int64_t)(first + b)));
        arm(w, nth);
        weir_err err = trouble_close(&s.store);
        bool met = disarm(w, nth);
        points += met;
        whole = met ? 0 : whole + 1;
        told(&s, err);
        assert_ok(trouble_open(&s.store, MEMORY, 10 * WEIR_US_PER_S));
        uint64_t sealed = weir_graph_offset_sealed(s.store.graph, s.store.source, 0);
        assert_true(sealed <= first + 4);
        if (!err) assert_int_equal(sealed, first + 4); /* a clean end is a promise */
        for (s.store.offset = sealed; s.store.offset < first + 4;)
            assert_ok(trouble_edge(&s.store, 1, 200 + s.store.offset, (int64_t)s.store.offset));
        assert_ok(weir_graph_drain(s.store.graph));
        uint32_t count;
        assert_ok(trouble_degree(&s.store, 1, WEIR_OUT, &count));
        assert_int_equal(count, first + 4);
    }
    end(&s, w, points);
}

static void every_allocation_of_a_stop(void **state) {
    (void)state;
    stop_with(&allocations);
}

static void every_operation_of_a_stop(void **state) {
    (void)state;
    stop_with(&operations);
}

WEIR_TESTS(WEIR_CASE(every_allocation_first_half), WEIR_CASE(every_allocation_second_half),
           WEIR_CASE(every_operation_first_half), WEIR_CASE(every_operation_second_half),
           WEIR_CASE(every_operation_finds_the_disk_full), WEIR_CASE(every_call_of_rocksdb_throws),
           WEIR_CASE(every_allocation_with_a_checkpoint), WEIR_CASE(every_operation_with_a_checkpoint),
           WEIR_CASE(every_allocation_with_a_trim), WEIR_CASE(every_operation_with_a_trim),
           WEIR_CASE(every_call_of_rocksdb_throws_with_a_trim), WEIR_CASE(every_allocation_of_a_fill),
           WEIR_CASE(every_operation_of_a_fill), WEIR_CASE(every_allocation_of_a_stop),
           WEIR_CASE(every_operation_of_a_stop))

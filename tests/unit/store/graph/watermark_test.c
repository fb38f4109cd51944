/* SPDX-License-Identifier: Apache-2.0 */
/* watermark_test.c - what time it is for expiry: what hostile and broken clocks can do to it, and what they cannot. */
#include "weir_test.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir/store/base/fault.h>
#include <weir/store/base/file.h>
#include <weir/store/base/rng.h>
#include <weir/store/graph/graph.h>

#include "naive_clock.h"

#define PARTITIONS 3u
#define SHARDS     2u
#define HOUR_US    (3600 * WEIR_US_PER_S)
#define DAY_US     (24 * HOUR_US)
#define YEAR_US    (365 * DAY_US)
#define Y2023_US   (1672531200 * WEIR_US_PER_S)
#define Y2026_US   (1767225600 * WEIR_US_PER_S)
#define Y2036_US   (2082758400 * WEIR_US_PER_S)

static const char schema_text[] = "version: 1\n"
                                  "name: tiny\n"
                                  "vertices:\n"
                                  "  a: {expire: 60d}\n"
                                  "relations:\n"
                                  "  r: {from: a, to: a, expire: 30d}\n"
                                  "sources:\n"
                                  "  s: {id: id, time: t, mutations: [{put_edge: r, from: a, to: b}]}\n";

typedef struct fixture {
    weir_schema *schema;
    weir_graph *graph;
    weir_clock *clock;
    weir_arena *arena;
    uint32_t source;
    uint64_t offsets[PARTITIONS], events;
} fixture;

static void store_open(fixture *f) {
    const weir_graph_opts opts = {
        .shards = SHARDS, .memory_bytes = 64u << 20, .create = true, .clock = f->clock, .future_us = HOUR_US};
    assert_ok(weir_graph_open(weir_test_path("store"), f->schema, &opts, &f->graph));
    assert_ok(weir_graph_source(f->graph, "s", 7, &f->source));
}

static void fixture_open(fixture *f, int64_t wall_us) {
    *f = (fixture){.events = 0};
    assert_ok(weir_schema_parse("tiny", schema_text, sizeof schema_text - 1, &f->schema));
    assert_ok(weir_arena_open(1u << 20, &f->arena));
    assert_ok(weir_clock_manual_open(wall_us, &f->clock));
    store_open(f);
}

static void reopen(fixture *f) {
    assert_ok(weir_graph_close(f->graph));
    store_open(f);
}

static void fixture_close(fixture *f) {
    assert_ok(weir_graph_close(f->graph));
    weir_arena_close(f->arena);
    weir_clock_close(f->clock);
    weir_schema_free(f->schema);
}

/* One run of so many events, an edge each, from vertex 2 * number to the next. */
static void submit(fixture *f, uint32_t partition, const int64_t *times, size_t count) {
    weir_buf batches[SHARDS] = {{0}};
    uint32_t counts[SHARDS] = {0};
    uint64_t begin = f->offsets[partition];
    const weir_batch_span span = {f->source, partition, begin, begin + count};
    for (uint32_t s = 0; s < SHARDS; s++)
        weir_batch_begin(&batches[s]);
    for (size_t i = 0; i < 2 * count; i++) {
        weir_vertex from = 2 * (f->events + i / 2) + 2;
        weir_mutation m = {.kind = WEIR_PUT_EDGE,
                           .direction = i % 2 ? WEIR_IN : WEIR_OUT,
                           .vertex = from + i % 2,
                           .neighbor = from + !(i % 2),
                           .offset = begin + i / 2,
                           .time_us = times[i / 2],
                           .event = (uint64_t)from};
        uint32_t shard = weir_shard_of(m.vertex, SHARDS);
        weir_batch_add(&batches[shard], &m, begin);
        counts[shard]++;
    }
    for (uint32_t s = 0; s < SHARDS; s++)
        weir_batch_end(&batches[s], &span, counts[s]);
    assert_ok(weir_graph_submit(f->graph, batches));
    for (uint32_t s = 0; s < SHARDS; s++)
        weir_buf_free(&batches[s]);
    f->offsets[partition] += count;
    f->events += count;
}

/* Events of this time and a second more each. */
static void submit_some(fixture *f, uint32_t partition, int64_t time_us, size_t count) {
    int64_t times[512];
    assert_true(count <= 512);
    for (size_t i = 0; i < count; i++)
        times[i] = time_us + (int64_t)i * WEIR_US_PER_S;
    submit(f, partition, times, count);
}

static int64_t watermark(fixture *f) {
    assert_ok(weir_graph_drain(f->graph));
    return weir_graph_watermark(f->graph);
}

static void say(fixture *f, uint32_t partition, weir_clock_state state) {
    assert_ok(weir_graph_drain(f->graph));
    assert_ok(weir_graph_clock_state(f->graph, f->source, partition, state));
}

/* How many of the events' edges a reader sees who gives no time. */
static uint64_t visible(fixture *f) {
    uint64_t seen = 0;
    assert_ok(weir_graph_drain(f->graph));
    for (uint64_t e = 0; e < f->events; e++) {
        const weir_edge *edges;
        uint32_t count;
        assert_ok(weir_graph_neighbors(f->graph, 2 * e + 2, 0, WEIR_OUT, WEIR_BEFORE_ALL, 8, f->arena, &edges, &count));
        seen += count;
        weir_arena_reset(f->arena);
    }
    return seen;
}

/* --- one wild event --------------------------------------------------------------------------------------------- */

/* In the partition of the history, alone in one of its own, and first of all; when the others have fallen silent, and
 * after a restart too. The year 9999 is as bad as the hour ahead: the graph believes what it is handed. */
static void one_wild_event(uint32_t partition, bool first, int64_t wild_us) {
    fixture f;
    fixture_open(&f, Y2026_US);
    if (first) submit(&f, partition, &wild_us, 1);
    submit_some(&f, 0, Y2023_US, 11);
    if (!first) submit(&f, partition, &wild_us, 1);
    assert_int_equal(visible(&f), 12);
    say(&f, 0, WEIR_CLOCK_IDLE);
    assert_int_equal(visible(&f), 12);
    say(&f, partition, WEIR_CLOCK_IDLE);
    reopen(&f);
    assert_int_equal(visible(&f), 12);
    submit_some(&f, 0, Y2023_US + 100 * WEIR_US_PER_S, 1);
    assert_int_equal(visible(&f), 13);
    fixture_close(&f);
    assert_ok(weir_folder_remove(weir_test_path("store")));
}

static void w2_one_wild_event_makes_nothing_old(void **state) {
    (void)state;
    const int64_t wild[] = {Y2026_US + 59 * 60 * WEIR_US_PER_S, Y2026_US + 7000 * YEAR_US};
    for (size_t i = 0; i < 2; i++) {
        for (uint32_t partition = 0; partition < 2; partition++) {
            one_wild_event(partition, false, wild[i]);
            one_wild_event(partition, true, wild[i]);
        }
    }
}

/* Less than half of the newest events never decide, and more than half do, whatever partitions they are in. */
static void w2_a_majority_decides(void **state) {
    (void)state;
    fixture f;
    fixture_open(&f, Y2026_US);
    submit_some(&f, 0, Y2023_US, 200);
    submit_some(&f, 1, Y2026_US, 31);
    say(&f, 0, WEIR_CLOCK_IDLE);
    assert_true(watermark(&f) < Y2023_US + DAY_US);
    assert_int_equal(visible(&f), 231);
    submit_some(&f, 2, Y2026_US, 1);
    assert_true(watermark(&f) >= Y2026_US);
    assert_int_equal(visible(&f), 32);
    fixture_close(&f);
}

/* A store expires what is old from few events on. */
static void w1_a_small_store_forgets(void **state) {
    (void)state;
    fixture f;
    fixture_open(&f, Y2026_US);
    assert_true(watermark(&f) == INT64_MIN);
    submit_some(&f, 0, Y2023_US, 1);
    assert_int_equal(watermark(&f), Y2023_US);
    submit_some(&f, 0, Y2023_US + YEAR_US, 2);
    assert_int_equal(visible(&f), 2);
    fixture_close(&f);
}

/* --- sources that are behind ------------------------------------------------------------------------------------ */

static void w1_who_is_behind_holds_and_who_is_silent_does_not(void **state) {
    (void)state;
    fixture f;
    fixture_open(&f, Y2026_US);
    submit_some(&f, 1, Y2023_US, 100);
    submit_some(&f, 0, Y2023_US + YEAR_US, 100);
    assert_true(watermark(&f) < Y2023_US + DAY_US);
    assert_int_equal(visible(&f), 200);
    say(&f, 1, WEIR_CLOCK_IDLE); /* it has said nothing for minutes */
    assert_int_equal(visible(&f), 100);
    int64_t before_us = watermark(&f);
    submit_some(&f, 1, Y2023_US + 2 * DAY_US, 5); /* late ones: behind, but nothing comes back */
    submit_some(&f, 0, Y2023_US + YEAR_US + DAY_US, 100);
    assert_int_equal(watermark(&f), before_us);
    assert_int_equal(visible(&f), 200);
    fixture_close(&f);
}

/* A partition that is to be read holds the others before its first event; one without any does not. */
static void w1_what_is_not_read_yet_holds(void **state) {
    (void)state;
    fixture f;
    fixture_open(&f, Y2026_US);
    say(&f, 1, WEIR_CLOCK_READING);
    say(&f, 2, WEIR_CLOCK_WAITING);
    submit_some(&f, 0, Y2023_US + YEAR_US, 100);
    assert_true(watermark(&f) == INT64_MIN);
    submit_some(&f, 1, Y2023_US, 100);
    assert_true(watermark(&f) < Y2023_US + DAY_US);
    assert_int_equal(visible(&f), 200);
    fixture_close(&f);
}

/* What is said of a partition while its events are on their way counts from behind them on. */
static void w1_idle_begins_behind_what_was_submitted(void **state) {
    (void)state;
    fixture f;
    fixture_open(&f, Y2026_US);
    for (int i = 0; i < 200; i++)
        submit_some(&f, 0, Y2023_US + i * DAY_US, 30);
    assert_ok(weir_graph_clock_state(f.graph, f.source, 0, WEIR_CLOCK_IDLE));
    assert_true(watermark(&f) > Y2023_US + 198 * DAY_US);
    submit_some(&f, 1, Y2023_US + YEAR_US, 100);
    assert_true(watermark(&f) >= Y2023_US + YEAR_US);
    fixture_close(&f);
}

/* --- wall clocks ------------------------------------------------------------------------------------------------ */

static void w3_a_wall_clock_that_was_in_2036_leaves_nothing_behind(void **state) {
    (void)state;
    fixture f;
    fixture_open(&f, Y2026_US);
    submit_some(&f, 0, Y2026_US - DAY_US, 200);
    weir_clock_manual_set_wall(f.clock, Y2036_US);
    submit_some(&f, 0, Y2036_US, 3); /* a few: no majority, but let in */
    assert_true(weir_graph_latest(f.graph, INT64_MIN) >= Y2036_US);
    weir_clock_manual_set_wall(f.clock, Y2026_US);
    assert_int_equal(visible(&f), 203);
    submit_some(&f, 0, Y2026_US, 63);
    assert_int_equal(weir_graph_latest(f.graph, INT64_MIN), Y2026_US + HOUR_US);

    weir_clock_manual_set_wall(f.clock, Y2036_US);
    submit_some(&f, 0, Y2036_US, 200); /* everybody's clock was wrong */
    assert_true(watermark(&f) >= Y2036_US);
    reopen(&f);
    weir_clock_manual_set_wall(f.clock, Y2026_US);
    submit_some(&f, 0, Y2026_US + 60 * WEIR_US_PER_S, 63);
    assert_true(watermark(&f) < Y2026_US + DAY_US);
    assert_int_equal(weir_graph_latest(f.graph, INT64_MIN), Y2026_US + HOUR_US);
    assert_int_equal(visible(&f), 529); /* those of 2036 are there, and make nothing else old */
    fixture_close(&f);
}

static void w3_a_wall_clock_that_goes_back_changes_nothing(void **state) {
    (void)state;
    fixture f;
    fixture_open(&f, Y2026_US);
    submit_some(&f, 0, Y2023_US, 100);
    submit_some(&f, 0, Y2026_US - DAY_US, 100);
    int64_t before_us = watermark(&f);
    weir_clock_manual_set_wall(f.clock, 0);
    assert_int_equal(watermark(&f), before_us);
    assert_true(weir_graph_latest(f.graph, INT64_MIN) >= Y2026_US - DAY_US + 99 * WEIR_US_PER_S); /* what was taken */
    assert_int_equal(weir_graph_latest(f.graph, Y2026_US), Y2026_US + HOUR_US); /* what came in when it was right */
    submit_some(&f, 0, Y2026_US - DAY_US, 100);
    assert_int_equal(watermark(&f), before_us);
    assert_int_equal(visible(&f), 200);
    fixture_close(&f);
}

/* A clock that has followed a wrong one goes back with it, and then nobody stands for a time that others were held to:
 * who says a later one now does not move it, neither on nor back. */
static void w3_what_lost_its_majority_is_not_taken_back(void **state) {
    (void)state;
    fixture f;
    fixture_open(&f, Y2026_US);
    submit_some(&f, 1, Y2023_US, 1);
    submit_some(&f, 0, Y2026_US - DAY_US, 100);
    submit_some(&f, 1, Y2023_US - 10 * YEAR_US, 3);
    int64_t before_us = watermark(&f);
    assert_int_equal(before_us, Y2023_US); /* of the one, and of a majority by the hundred */
    weir_clock_manual_set_wall(f.clock, Y2023_US + YEAR_US);
    submit_some(&f, 0, Y2023_US - 5 * YEAR_US, 100); /* later than the clock on the wall, so it goes back */
    assert_int_equal(watermark(&f), before_us);
    say(&f, 0, WEIR_CLOCK_IDLE);
    say(&f, 1, WEIR_CLOCK_IDLE);
    submit_some(&f, 2, Y2023_US + DAY_US, 10);
    assert_int_equal(watermark(&f), before_us);
    fixture_close(&f);
}

/* --- batches and crashes ---------------------------------------------------------------------------------------- */

static int64_t hostile(weir_rng *rng, int64_t now_us) {
    uint64_t dice = weir_rng_below(rng, 20);
    int64_t span_us = (int64_t)weir_rng_below(rng, (uint64_t)HOUR_US);
    return dice == 0 ? now_us + YEAR_US + span_us : dice < 4 ? now_us - span_us : now_us;
}

/* The same log one by one and in one run. */
static void how_events_are_batched_does_not_matter(void **state) {
    (void)state;
    int64_t times[512], one_by_one_us = 0;
    weir_rng rng = weir_rng_stream(weir_test_seed(), 1, 0);
    for (size_t i = 0; i < 512; i++)
        times[i] = hostile(&rng, Y2023_US + (int64_t)(i < 300 ? i : 600 - i) * HOUR_US); /* and backwards in the end */
    for (int whole = 0; whole < 2; whole++) {
        fixture f;
        fixture_open(&f, Y2026_US);
        for (size_t i = 0; !whole && i < 512; i++)
            submit(&f, 0, &times[i], 1);
        if (whole) submit(&f, 0, times, 512);
        if (whole) assert_int_equal(watermark(&f), one_by_one_us);
        one_by_one_us = watermark(&f);
        fixture_close(&f);
        assert_ok(weir_folder_remove(weir_test_path("store")));
    }
}

enum { RUNS = 150 };

/* The r-th run, always the same for a seed; naive NULL: into the graph. */
static void run_again(fixture *f, uint32_t r, naive_clock *naive) {
    weir_rng rng = weir_rng_stream(weir_test_seed(), 2, r);
    uint32_t partition = (uint32_t)weir_rng_below(&rng, PARTITIONS);
    size_t count = 1 + (size_t)weir_rng_below(&rng, 20);
    int64_t times[32];
    for (size_t i = 0; i < count; i++)
        times[i] = hostile(&rng, Y2023_US + (int64_t)r * HOUR_US);
    for (size_t i = 0; naive && i < count; i++)
        naive_clock_event(naive, partition, times[i], INT64_MAX);
    if (naive) naive_clock_applied(naive, partition, INT64_MAX);
    if (naive) return;
    submit(f, partition, times, count);
}

static void crash_at(unsigned seal) {
    fixture f;
    char where[32];
    pid_t child = fork();
    assert_true(child >= 0);
    if (!child) {
        snprintf(where, sizeof where, "seal.%s:%u", seal % 2 ? "ingested" : "half_written", seal);
        if (weir_fault_kill_arm(where)) _exit(1);
        fixture_open(&f, Y2026_US);
        for (uint32_t r = 0; r < RUNS; r++) {
            run_again(&f, r, NULL);
            if (r % 20 == 19) assert_ok(weir_graph_seal(f.graph));
        }
        _exit(2);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    naive_clock *naive = naive_clock_open();
    fixture_open(&f, Y2026_US);
    for (uint32_t p = 0; p < PARTITIONS; p++) /* as whoever reads a log that has more */
        say(&f, p, WEIR_CLOCK_READING);
    for (uint32_t r = 0; r < RUNS; r++) {
        run_again(&f, r, NULL); /* from the first event: what a shard has it passes over (GRAPH-S4) */
        run_again(&f, r, naive);
    }
    assert_int_equal(watermark(&f), naive_clock_now(naive));
    reopen(&f);
    assert_int_equal(watermark(&f), naive_clock_now(naive));
    naive_clock_close(naive);
    fixture_close(&f);
    assert_ok(weir_folder_remove(weir_test_path("store")));
}

/* One shard has sealed, and the other has not: the clock of a partition is that of the offset it is read on from. */
static void w4_a_crash_at_any_seal(void **state) {
    (void)state;
    if (strcmp(weir_test_sanitizer(), "thread") == 0)
        weir_test_skip("the thread sanitizer does not follow a fork of a process with threads");
    const unsigned seals[] = {1, 2, 3, 6, 9};
    for (size_t i = 0; i < 5; i++)
        crash_at(seals[i]);
}

WEIR_TESTS(WEIR_CASE(w2_one_wild_event_makes_nothing_old), WEIR_CASE(w2_a_majority_decides),
           WEIR_CASE(w1_a_small_store_forgets), WEIR_CASE(w1_who_is_behind_holds_and_who_is_silent_does_not),
           WEIR_CASE(w1_what_is_not_read_yet_holds), WEIR_CASE(w1_idle_begins_behind_what_was_submitted),
           WEIR_CASE(w3_a_wall_clock_that_was_in_2036_leaves_nothing_behind),
           WEIR_CASE(w3_a_wall_clock_that_goes_back_changes_nothing),
           WEIR_CASE(w3_what_lost_its_majority_is_not_taken_back), WEIR_CASE(how_events_are_batched_does_not_matter),
           WEIR_CASE(w4_a_crash_at_any_seal))

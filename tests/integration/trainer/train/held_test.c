/* SPDX-License-Identifier: Apache-2.0 */
/*
 * held_test.c - what a rank that has a part knows of the targets of all: each case starts this program again under
 * mpirun, a rank a part. The targets of the whole snapshot are the oracle; of other ranks' targets only a few bytes may
 * be in memory.
 */
#include <string.h>

#include <weir/partitioner/parts/parts.h>
#include <weir/store/base/alloc.h>
#include <weir/store/base/clock.h>
#include <weir/trainer/train/targets.h>

#include "learn_fixture.h"
#include "ranks.h"

#define PAYS            3000u
#define BYTES_OF_OWN    64u /* vertex, time, event, id and number */
#define BYTES_OF_OTHERS 6u  /* class, owner and day */
#define BYTES_BESIDE    2048u

/* How the targets of the snapshot are cut: HELD_TEST_CUT. */
static const weir_targets_opts cuts[] = {
    {.task = LEARN_TASK_BAD, .cut = {.warm_up = 0.1, .validation = 0.2, .test = 0.2}},
    {.task = LEARN_TASK_SAID, .cut = {.warm_up = 0, .validation = 0.3, .test = 0.1}},
    {.cut = {.split = WEIR_TARGETS_BY_CLASS, .each = {20, 30}, .seed = 5}},
    {.task = LEARN_TASK_BAD,
     .cut = {.split = WEIR_TARGETS_BY_TIMES,
             .warm_up = 0.1,
             .validation = 0.2,
             .known_us = LEARN_START_US + 2000 * 60 * LEARN_SECOND,
             .test_from_us = LEARN_START_US + 2100 * 60 * LEARN_SECOND,
             .test_to_us = LEARN_START_US + 2500 * 60 * LEARN_SECOND}},
};

static void same_as_the_whole(const weir_targets *of_part, const weir_targets *whole, uint32_t ranks) {
    const uint64_t judged = whole->count - whole->ends[WEIR_TARGETS_TRAIN];
    assert_int_equal(of_part->count, whole->count);
    assert_memory_equal(of_part->ends, whole->ends, sizeof whole->ends);
    assert_int_equal(of_part->classes, whole->classes);
    assert_memory_equal(of_part->classes_of, whole->classes_of, whole->count);
    assert_memory_equal(of_part->days, whole->days, judged * sizeof *whole->days);
    assert_memory_equal(of_part->class_counts, whole->class_counts,
                        WEIR_TARGETS_PARTS * whole->classes * sizeof *whole->class_counts);
    assert_memory_equal(of_part->from_us, whole->from_us, sizeof whole->from_us);
    assert_memory_equal(of_part->to_us, whole->to_us, sizeof whole->to_us);
    assert_true(of_part->one_time == whole->one_time && of_part->digest == whole->digest);
    assert_true(of_part->young == whole->young && of_part->old == whole->old);
    assert_int_equal(of_part->unlabelled, whole->unlabelled);
    assert_int_equal(of_part->untold, whole->untold);
    for (uint64_t i = 0; i < whole->count; i++)
        assert_true(weir_targets_owner(of_part, i) < ranks);
    for (weir_targets_part part = WEIR_TARGETS_TRAIN; part < WEIR_TARGETS_PARTS; part++) {
        assert_true(whole->from_us[part] == whole->targets[weir_targets_begin(whole, part)].before_us);
        assert_true(whole->to_us[part] == whole->targets[whole->ends[part] - 1].before_us);
    }
    for (uint64_t i = 0; i < judged; i++)
        assert_true(whole->days[i] ==
                    whole->targets[whole->ends[WEIR_TARGETS_TRAIN] + i].before_us / (86400 * LEARN_SECOND));
}

/* Those of this rank, each with its own vertex, time and event. */
static void held_are_its_own(const weir_targets *t, const weir_targets *whole, const weir_part *part) {
    const weir_snapshot_vertices *v = weir_snapshot_vertices_of(weir_part_snapshot(part), LEARN_PAY);
    uint32_t held = 0;
    for (uint64_t i = 0; i < t->count; i++) {
        uint32_t place = weir_targets_place(t, i);
        assert_true((place == WEIR_TARGETS_ELSEWHERE) == (weir_targets_owner(t, i) != weir_part_index(part)));
        if (place == WEIR_TARGETS_ELSEWHERE) continue;
        const weir_target *one = &t->targets[place], *of_whole = &whole->targets[i];
        assert_int_equal(place, held++);
        assert_int_equal(weir_targets_number(t, place), i);
        assert_true(one->before_us == of_whole->before_us && one->event == of_whole->event);
        assert_true(one->type == of_whole->type && t->ids[place] == whole->ids[i]);
        assert_true((uint64_t)one->vertex < v->own && v->ids[(uint64_t)one->vertex].low == whole->ids[i]);
    }
    assert_int_equal(held, t->held);
}

static void rank_main(void) {
    char folder[4096];
    weir_comm *comm = NULL;
    weir_part *part = NULL;
    weir_snapshot *snapshot = NULL;
    weir_targets *whole = NULL, *of_part = NULL;
    weir_alloc_stats before, after;
    weir_targets_opts opts = cuts[strtoul(getenv("HELD_TEST_CUT"), NULL, 10)];
    assert_ok(weir_comm_start(NULL, NULL, &comm));
    snprintf(folder, sizeof folder, "%s/part-%u", getenv("HELD_TEST_PARTS"), weir_comm_rank(comm));
    assert_ok(weir_part_open(folder, &(weir_part_opts){.verify = false}, &part));
    assert_ok(weir_snapshot_open(getenv("HELD_TEST_SNAPSHOT"), &(weir_snapshot_opts){0}, &snapshot));
    assert_ok(weir_targets_open(snapshot, &opts, &whole));
    opts.comm = comm;
    weir_alloc_stats_get(&before);
    assert_ok(weir_targets_open(weir_part_snapshot(part), &opts, &of_part));
    weir_alloc_stats_get(&after);

    same_as_the_whole(of_part, whole, weir_comm_ranks(comm));
    held_are_its_own(of_part, whole, part);
    /* TRAIN-T6 */
    uint64_t bytes = after.live_bytes - before.live_bytes;
    uint64_t most = of_part->held * BYTES_OF_OWN + of_part->count * BYTES_OF_OTHERS + BYTES_BESIDE;
    if (bytes > most)
        fail_msg("%llu bytes for %llu targets, of them %u of this rank", (unsigned long long)bytes,
                 (unsigned long long)of_part->count, of_part->held);
    assert_true(weir_targets_bytes(of_part) <= bytes && bytes <= weir_targets_bytes(of_part) + BYTES_BESIDE);

    weir_targets_close(of_part);
    weir_targets_close(whole);
    weir_snapshot_close(snapshot);
    weir_part_close(part);
    weir_comm_stop(comm);
}

/* What the cases below start; by itself it has nothing to do. */
static void one_rank(void **state) {
    (void)state;
    if (!getenv("HELD_TEST_PARTS")) weir_test_skip("started by the other cases");
    rank_main();
}

static void same_for(const char *snapshot, const char *cut, unsigned ranks, weir_parts_method method) {
    weir_parts_report report;
    weir_snapshot *whole;
    char parts[32];
    snprintf(parts, sizeof parts, "parts%u", ranks);
    assert_ok(weir_snapshot_open(snapshot, &(weir_snapshot_opts){0}, &whole));
    const weir_parts_opts opts = {
        .out = weir_test_path(parts), .parts = ranks, .method = method, .seed = 1, .clock = weir_clock_system()};
    assert_ok(weir_parts_write(whole, &opts, &report));
    weir_snapshot_close(whole);
    setenv("HELD_TEST_SNAPSHOT", snapshot, 1);
    setenv("HELD_TEST_PARTS", opts.out, 1);
    setenv("HELD_TEST_CUT", cut, 1);
    ranks_again(ranks);
}

static void t5_t6_cut_by_time(void **state) {
    (void)state;
    const learn_plan plan = {.seed = weir_test_seed(), .pays = PAYS, .people = 40, .bad = 0.3};
    char snapshot[4096];
    snprintf(snapshot, sizeof snapshot, "%s", weir_test_path("snapshot"));
    learn_snapshot(&plan, snapshot);
    same_for(snapshot, "0", 1, WEIR_PARTS_RANDOM);
    same_for(snapshot, "0", 4, WEIR_PARTS_METIS);
    same_for(snapshot, "1", 3, WEIR_PARTS_RANDOM);
}

static void t5_t6_t7_cut_by_times(void **state) {
    (void)state;
    const learn_plan plan = {.seed = weir_test_seed(), .pays = PAYS, .people = 40, .bad = 0.3};
    char snapshot[4096];
    snprintf(snapshot, sizeof snapshot, "%s", weir_test_path("snapshot"));
    learn_snapshot(&plan, snapshot);
    same_for(snapshot, "3", 1, WEIR_PARTS_RANDOM);
    same_for(snapshot, "3", 3, WEIR_PARTS_METIS);
}

static void t5_t6_drawn(void **state) {
    (void)state;
    char nodes[4096], edges[4096], snapshot[4096];
    weir_snapshot_stats stats;
    snprintf(nodes, sizeof nodes, "%s/tests/data/cora/nodes.csv", getenv("WEIR_SOURCE_DIR"));
    snprintf(edges, sizeof edges, "%s/tests/data/cora/edges.csv", getenv("WEIR_SOURCE_DIR"));
    snprintf(snapshot, sizeof snapshot, "%s", weir_test_path("cora"));
    const weir_snapshot_import_opts opts = {.out = snapshot, .nodes = nodes, .edges = edges, .bits = "nonzero"};
    assert_ok(weir_snapshot_import(&opts, &stats));
    same_for(snapshot, "2", 5, WEIR_PARTS_RANDOM);
}

WEIR_TESTS(WEIR_CASE(one_rank), WEIR_CASE(t5_t6_cut_by_time), WEIR_CASE(t5_t6_t7_cut_by_times), WEIR_CASE(t5_t6_drawn))

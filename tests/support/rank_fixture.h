/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rank_fixture.h - what a case hands to the ranks that it starts (ranks.h): a snapshot, a part of it for each rank, or
 * none, and the seed.
 */
#ifndef RANK_FIXTURE_H
#define RANK_FIXTURE_H

#include <stdio.h>
#include <stdlib.h>

#include <weir/partitioner/parts/parts.h>
#include <weir/store/base/clock.h>
#include <weir/store/snapshot/snapshot.h>

#include "learn_fixture.h"
#include "weir_test.h"

/* The case, which has made `snapshot` in its folder. parts: how it is cut, but for where to; NULL: each rank has the
 * whole snapshot. */
static inline void rank_hand_out(const weir_parts_opts *parts) {
    char seed[24];
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)weir_test_seed());
    if (parts) {
        weir_parts_opts opts = *parts;
        weir_parts_report report;
        weir_snapshot *snapshot;
        opts.out = weir_test_path("parts");
        opts.clock = weir_clock_system();
        assert_ok(weir_snapshot_open(weir_test_path("snapshot"), &(weir_snapshot_opts){0}, &snapshot));
        assert_ok(weir_parts_write(snapshot, &opts, &report));
        weir_snapshot_close(snapshot);
    }
    setenv("RANK_TEST_SEED", seed, 1);
    setenv("RANK_TEST_PARTS", parts ? weir_test_path("parts") : "", 1);
    setenv("RANK_TEST_SNAPSHOT", weir_test_path("snapshot"), 1);
}

/* The same with a snapshot of the plan. */
static inline void rank_prepare(const learn_plan *plan, const weir_parts_opts *parts) {
    learn_snapshot(plan, weir_test_path("snapshot"));
    rank_hand_out(parts);
}

/* A rank, as all that follows: ends the case `one_rank` where no other has started it. */
static inline void rank_or_skip(void) {
    if (!getenv("RANK_TEST_PARTS")) weir_test_skip("started by the other cases");
}

/* Of the case that has started it. */
static inline uint64_t rank_seed(void) {
    return strtoull(getenv("RANK_TEST_SEED"), NULL, 10);
}

static inline weir_snapshot *rank_snapshot(void) {
    weir_snapshot *snapshot;
    assert_ok(weir_snapshot_open(getenv("RANK_TEST_SNAPSHOT"), &(weir_snapshot_opts){0}, &snapshot));
    return snapshot;
}

/* Part n; NULL: there are none. */
static inline weir_part *rank_part(uint32_t n) {
    weir_part *part;
    char path[4200];
    if (!*getenv("RANK_TEST_PARTS")) return NULL;
    snprintf(path, sizeof path, "%s/part-%u", getenv("RANK_TEST_PARTS"), n);
    assert_ok(weir_part_open(path, &(weir_part_opts){.verify = true}, &part));
    return part;
}

#endif /* RANK_FIXTURE_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sweep_test.c - every allocation, file operation and RocksDB call of a running pipeline fails once.
 *
 * A round: events and one bad message come into the log, and are drained while the N-th call fails, until three rounds
 * in a row have fewer. Whatever fails, the source goes on by itself: in the end the graph is what the log says, as the
 * naive graph has it, and each bad message is one dead letter, neither lost nor there twice.
 */
#include "fixture.h"

#include <unistd.h>

#include <weir/base/fault.h>

static const char schema[] = "version: 1\n"
                             "name: cards\n"
                             "vertices:\n"
                             "  account: {}\n"
                             "  card: {}\n"
                             "relations:\n"
                             "  holds: {from: account, to: card, features: {rank: {kind: number}}}\n"
                             "sources:\n"
                             "  cards:\n"
                             "    id: id\n"
                             "    time: {field: t, format: s}\n"
                             "    mutations:\n"
                             "      - put_edge: holds\n"
                             "        from: account\n"
                             "        to: card\n"
                             "        features: [rank]\n";

#define GOOD          8u
#define COMPARE_EVERY 40u
#define PATIENCE_US   (30 * WEIR_US_PER_S)

static uint64_t append_round(fixture *f, uint64_t number) {
    char text[160];
    for (uint64_t i = 0; i < GOOD; i++) {
        uint64_t n = number * GOOD + i;
        snprintf(text, sizeof text,
                 "{\"id\":\"e%llu\",\"t\":%llu,\"account\":\"a%llu\",\"card\":\"c%llu\",\"rank\":%llu}",
                 (unsigned long long)n, (unsigned long long)(1000 + n), (unsigned long long)(n % 37),
                 (unsigned long long)(n % 101), (unsigned long long)n);
        fixture_text(f, 0, 0, text);
    }
    fixture_text(f, 0, 0, "{\"id\":\"bad\"}");
    assert_ok(weir_eventlog_sync(f->logs[0]));
    return 1;
}

static bool disarm(const char *op, uint64_t nth) {
    bool failed = op ? weir_fault_seen() >= nth : weir_alloc_failed();
    assert_ok(weir_fault_arm(NULL));
    weir_alloc_fail_nth(0);
    return failed;
}

static void arm(const char *op, const char *why, uint64_t nth) {
    char spec[64];
    snprintf(spec, sizeof spec, "%s:%llu:%s:once", op, (unsigned long long)nth, why);
    if (op) assert_ok(weir_fault_arm(spec));
    if (!op) weir_alloc_fail_nth(nth);
}

/* A drain may be told what is in the way; the source goes on all the same. */
static void drain(fixture *f) {
    int64_t until_us = weir_clock_mono_us(weir_clock_system()) + PATIENCE_US;
    weir_pipeline_source_stats stats;
    while (weir_pipeline_drain(f->pipeline, 100000)) {
        weir_pipeline_source_stats_get(f->pipeline, 0, &stats);
        assert_ok(stats.status == WEIR_PIPELINE_FAILED ? stats.err : WEIR_OK);
        assert_true(weir_clock_mono_us(weir_clock_system()) < until_us);
        usleep(1000);
    }
}

static void sweep(const char *name, const char *op, const char *why) {
    fixture f = {.schema = fixture_schema(schema), .partitions = 1};
    uint64_t points = 0, whole = 0, bad = 0;
    if (access("/dev/shm", W_OK) == 0) setenv("TMPDIR", "/dev/shm", 0);
    f.graph_opts = (weir_graph_opts){.shards = 2, .memory_bytes = 16u << 20, .seal_us = 3000};
    fixture_open(&f);
    for (uint64_t nth = 1; whole < 3; nth++) {
        bad += append_round(&f, nth);
        arm(op, why, nth);
        weir_pipeline_wake(f.pipeline);
        drain(&f);
        while (weir_graph_seal(f.graph))
            usleep(1000);
        bool failed = disarm(op, nth);
        points += failed;
        whole = failed ? 0 : whole + 1;
        drain(&f);
        if (nth % COMPARE_EVERY == 0) fixture_compare(&f);
    }
    fixture_compare(&f);
    fixture_close(&f);
    assert_int_equal(fixture_letters(NULL, NULL), bad);
    printf("%s: %llu points, 0 silent\n", name, (unsigned long long)points);
    assert_true(points > 10);
}

static void every_allocation(void **state) {
    (void)state;
    sweep("allocations", NULL, "");
}

static void every_operation(void **state) {
    (void)state;
    sweep("operations", "any", "EIO");
}

static void every_operation_finds_the_disk_full(void **state) {
    (void)state;
    sweep("full disk", "any", "ENOSPC");
}

WEIR_TESTS(WEIR_CASE(every_allocation), WEIR_CASE(every_operation), WEIR_CASE(every_operation_finds_the_disk_full))

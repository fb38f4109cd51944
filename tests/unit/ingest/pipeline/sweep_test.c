/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sweep_test.c - every allocation, file operation and RocksDB call of a running pipeline fails once.
 *
 * A round: events and one bad message come into the log, and are drained while the N-th call fails, until three rounds
 * in a row have fewer. Whatever fails, the source goes on by itself: in the end the graph is what the log says, as the
 * naive graph has it, and each bad message is one dead letter, neither lost nor there twice.
 *
 * The same for a repair: it ends in success, or in a failure that is named and leaves the store as it was; a later try
 * succeeds.
 */
#include "fixture.h"

#include <unistd.h>

#include <weir/store/base/fault.h>

#include <damage.h>

#include "pipeline_private.h"

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

/* --- a repair ----------------------------------------------------------------------------------------------------- */

#define REPAIR_ROUNDS 8u

static bool always(void *context) {
    (void)context;
    return true;
}

static bool always_counted(void *context, uint64_t read, uint64_t wanted) {
    (void)context, (void)read, (void)wanted;
    return true;
}

/* As the keeper does it, on this thread. */
static weir_err make_anew(fixture *f, uint32_t shard) {
    weir_graph_repair *repair;
    weir_replay *replay = NULL;
    weir_err err = weir_graph_repair_begin(f->graph, shard, NULL, &repair);
    if (!err) err = weir_replay_open(f->pipeline, repair, always_counted, NULL, &replay);
    if (!err) err = weir_replay_run(replay);
    if (!err) err = weir_graph_repair_hold(repair);
    if (!err) err = weir_replay_run(replay);
    if (!err) err = weir_graph_repair_replace(repair, always, NULL);
    weir_replay_close(replay);
    weir_graph_repair_close(repair);
    return err;
}

static void is_named(weir_err err) {
    static const weir_code fine[] = {WEIR_ENOMEM, WEIR_EIO, WEIR_EFULL, WEIR_EUNAVAILABLE, WEIR_EBUSY};
    char sentence[WEIR_ERR_SENTENCE_MAX];
    for (size_t i = 0; i < sizeof fine / sizeof fine[0]; i++)
        if (weir_err_is(err, fine[i])) return;
    weir_err_sentence(err, sentence, sizeof sentence);
    fail_msg("told %s: %s", weir_code_name(weir_err_code(err)), sentence);
}

typedef struct repaired {
    fixture f;
    weir_buf wanted[2];
    uint64_t failures;
} repaired;

static void repaired_open(repaired *r) {
    if (access("/dev/shm", W_OK) == 0) setenv("TMPDIR", "/dev/shm", 0);
    *r = (repaired){.f = {.schema = fixture_schema(schema), .partitions = 1}};
    r->f.graph_opts = (weir_graph_opts){.shards = 2, .memory_bytes = 16u << 20};
    fixture_open(&r->f);
    for (uint64_t i = 0; i < REPAIR_ROUNDS; i++)
        append_round(&r->f, i);
    fixture_drain(&r->f);
    assert_ok(weir_graph_seal(r->f.graph));
    for (uint32_t i = 0; i < 2; i++)
        r->wanted[i] = damage_dump(r->f.graph, i);
}

static void repaired_close(repaired *r) {
    fixture_compare(&r->f);
    fixture_close(&r->f);
    for (uint32_t i = 0; i < 2; i++)
        weir_buf_free(&r->wanted[i]);
}

/* Shard 0 is damaged, unless it is from the try before. */
static void repaired_damage(repaired *r) {
    if (!weir_graph_health(r->f.graph)) damage_a_block("store", 0);
    assert_err(weir_graph_scrub(r->f.graph, damage_never_wait, NULL), WEIR_ECORRUPT, NULL);
}

static void repaired_look(repaired *r, weir_err err) {
    if (err) {
        is_named(err);
        r->failures++;
        assert_err(weir_graph_health(r->f.graph), WEIR_ECORRUPT, NULL);
    } else {
        assert_ok(weir_graph_health(r->f.graph));
        damage_same(r->f.graph, 0, &r->wanted[0]);
    }
    damage_same(r->f.graph, 1, &r->wanted[1]);
}

/* A sanitizer sees some of the points, others in each run. */
static void sweep_repair(const char *name, const char *op, const char *why) {
    repaired r;
    uint64_t points = 0, whole = 0, step = weir_test_part(9, 27);
    weir_rng rng = weir_rng_stream(weir_test_seed(), 0, 0);
    repaired_open(&r);
    for (uint64_t nth = 1 + weir_rng_below(&rng, step); whole < 3; nth += step) {
        repaired_damage(&r);
        arm(op, why, nth);
        weir_err err = make_anew(&r.f, 0);
        bool failed = disarm(op, nth);
        points += failed;
        whole = failed ? 0 : whole + 1;
        repaired_look(&r, err);
    }
    repaired_damage(&r);
    repaired_look(&r, make_anew(&r.f, 0));
    repaired_close(&r);
    printf("%s: %llu points, %llu failures told, 0 silent\n", name, (unsigned long long)points,
           (unsigned long long)r.failures);
    assert_true(points > 100 / step && r.failures > 10 / step);
}

static void every_allocation_of_a_repair(void **state) {
    (void)state;
    sweep_repair("allocations", NULL, "");
}

static void every_operation_of_a_repair(void **state) {
    (void)state;
    sweep_repair("operations", "any", "EIO");
}

static void every_operation_of_a_repair_finds_the_disk_full(void **state) {
    (void)state;
    sweep_repair("full disk", "any", "ENOSPC");
}

static void every_call_of_rocksdb_in_a_repair_throws(void **state) {
    (void)state;
    sweep_repair("std::bad_alloc", "engine", "ENOMEM");
}

WEIR_TESTS(WEIR_CASE(every_allocation), WEIR_CASE(every_operation), WEIR_CASE(every_operation_finds_the_disk_full),
           WEIR_CASE(every_allocation_of_a_repair), WEIR_CASE(every_operation_of_a_repair),
           WEIR_CASE(every_operation_of_a_repair_finds_the_disk_full),
           WEIR_CASE(every_call_of_rocksdb_in_a_repair_throws))

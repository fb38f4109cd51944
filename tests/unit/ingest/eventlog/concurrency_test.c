/* SPDX-License-Identifier: Apache-2.0 */
/*
 * concurrency_test.c - several appenders, syncers, readers, one retainer; meant for the thread sanitizer.
 *
 * Each appender writes its number and a counter; a reader sees each appender's counters rise by one, and never a record
 * that was not yet durable when it asked.
 */
#include "eventlog_private.h"

#include <stdatomic.h>

#include <weir/store/base/fault.h>

#include "eventlog_fixture.h"

enum { APPENDERS = 4, READERS = 2, BATCHES = 120, BATCH = 5, PARTITIONS = 2 };

typedef struct shared {
    weir_eventlog *log;
    atomic_uint appending;
    bool own_partition_only;
    atomic_ullong acknowledged[PARTITIONS]; /* highest offset behind what a sync has said is durable */
} shared;

typedef struct worker {
    shared *shared;
    uint64_t number;
    weir_thread *thread;
} worker;

static void raise_to(atomic_ullong *value, unsigned long long least) {
    unsigned long long now = atomic_load(value);
    while (now < least && !atomic_compare_exchange_weak(value, &now, least))
        continue;
}

static void append_and_sync(void *context) {
    const worker *w = context;
    uint32_t partition = (uint32_t)(w->number % PARTITIONS);
    for (uint64_t i = 0; i < BATCHES; i++) {
        uint64_t words[BATCH][2], first;
        weir_record records[BATCH];
        for (uint64_t j = 0; j < BATCH; j++) {
            words[j][0] = w->number;
            words[j][1] = i * BATCH + j;
            records[j] = (weir_record){.time_us = (int64_t)i, .value = words[j], .value_length = sizeof words[j]};
        }
        assert_ok(weir_eventlog_append(w->shared->log, partition, records, BATCH, &first));
        if (i % 3 == 0) continue;
        if (w->shared->own_partition_only) {
            assert_ok(weir_eventlog_sync_partition(w->shared->log, partition));
        } else {
            assert_ok(weir_eventlog_sync(w->shared->log));
        }
        raise_to(&w->shared->acknowledged[partition], first + BATCH);
        assert_true(fixture_stats(w->shared->log, partition).offset_durable >= first + BATCH);
    }
    assert_ok(weir_eventlog_sync(w->shared->log));
    atomic_fetch_sub(&w->shared->appending, 1);
}

static size_t read_some(weir_eventlog_reader *reader, uint64_t next[APPENDERS]) {
    weir_record records[16];
    size_t count;
    assert_ok(weir_eventlog_reader_next(reader, records, 16, &count));
    for (size_t i = 0; i < count; i++) {
        uint64_t words[2];
        assert_int_equal(records[i].value_length, sizeof words);
        memcpy(words, records[i].value, sizeof words);
        assert_int_equal(words[1], next[words[0]]);
        next[words[0]]++;
    }
    return count;
}

static void read_all(void *context) {
    const worker *w = context;
    uint32_t partition = (uint32_t)(w->number % PARTITIONS);
    uint64_t next[APPENDERS] = {0}, seen = 0;
    weir_eventlog_reader *reader = NULL;
    assert_ok(weir_eventlog_reader_open(w->shared->log, partition, 0, &reader));
    for (bool last = false; !last;) {
        last = atomic_load(&w->shared->appending) == 0;
        uint64_t acknowledged = atomic_load(&w->shared->acknowledged[partition]);
        for (size_t count = 1; count;)
            seen += count = read_some(reader, next);
        assert_true(seen >= acknowledged);
    }
    assert_int_equal(seen, APPENDERS / PARTITIONS * BATCHES * BATCH);
    weir_eventlog_reader_close(reader);
}

static void run(bool own_partition_only) {
    shared s = {.log = fixture_open(weir_test_folder(), PARTITIONS, WEIR_EVENTLOG_SEGMENT_MIN),
                .appending = APPENDERS,
                .own_partition_only = own_partition_only};
    worker workers[APPENDERS + READERS];
    for (uint64_t i = 0; i < APPENDERS + READERS; i++) {
        workers[i] = (worker){.shared = &s, .number = i};
        assert_ok(weir_thread_start("worker", WEIR_ROLE_TEST, i < APPENDERS ? append_and_sync : read_all, &workers[i],
                                    &workers[i].thread));
    }
    for (uint64_t i = 0; i < APPENDERS + READERS; i++)
        weir_thread_join(workers[i].thread);
    assert_ok(weir_eventlog_close(s.log));
    s.log = fixture_open(weir_test_folder(), PARTITIONS, WEIR_EVENTLOG_SEGMENT_MIN);
    for (uint32_t p = 0; p < PARTITIONS; p++)
        assert_int_equal(fixture_stats(s.log, p).offset_durable, APPENDERS / PARTITIONS * BATCHES * BATCH);
    assert_ok(weir_eventlog_close(s.log));
}

static void appenders_syncers_and_readers(void **state) {
    (void)state;
    run(false);
}

static void appenders_that_sync_their_own_partition(void **state) {
    (void)state;
    run(true);
}

/* --- group sync ----------------------------------------------------------------------------------------------- */

static atomic_uint syncs;

static void count_syncs(void *context, weir_fault_op op, const char *path) {
    (void)context;
    if (op == WEIR_FAULT_SYNC && strstr(path, ".seg")) atomic_fetch_add(&syncs, 1);
}

static void sync_once(void *context) {
    const worker *w = context;
    assert_ok(weir_eventlog_sync(w->shared->log));
}

/* Whoever comes while a sync runs shares the next one: eight callers who have nothing new cost at most one. */
static void callers_share_a_sync(void **state) {
    (void)state;
    shared s = {.log = fixture_open(weir_test_folder(), 1, 0)};
    fixture_append(s.log, 0, 0, 1);
    assert_ok(weir_eventlog_sync(s.log));
    fixture_append(s.log, 0, 1, 100);
    atomic_store(&syncs, 0);
    weir_fault_watch(count_syncs, NULL);
    worker workers[8];
    for (unsigned i = 0; i < 8; i++) {
        workers[i] = (worker){.shared = &s};
        assert_ok(weir_thread_start("syncer", WEIR_ROLE_TEST, sync_once, &workers[i], &workers[i].thread));
    }
    for (unsigned i = 0; i < 8; i++)
        weir_thread_join(workers[i].thread);
    weir_fault_watch(NULL, NULL);
    assert_int_equal(atomic_load(&syncs), 1);
    assert_ok(weir_eventlog_close(s.log));
}

/* --- a full buffer -------------------------------------------------------------------------------------------- */

enum { LARGE_BATCHES = 60 };

static void append_large(void *context) {
    const worker *w = context;
    static char value[256 << 10];
    weir_record records[4];
    for (unsigned i = 0; i < 4; i++)
        records[i] = (weir_record){.value = value, .value_length = sizeof value};
    for (unsigned i = 0; i < LARGE_BATCHES; i++) {
        uint64_t first;
        assert_ok(weir_eventlog_append(w->shared->log, 0, records, 4, &first));
        if (i % 10 == w->number) assert_ok(weir_eventlog_sync(w->shared->log));
    }
}

/* More than both buffers hold: appenders write, or wait for the one that does; none is lost, none goes twice. */
static void appenders_wait_for_room(void **state) {
    (void)state;
    shared s = {.log = fixture_open(weir_test_folder(), 1, 32u << 20)};
    worker workers[3];
    for (uint64_t i = 0; i < 3; i++) {
        workers[i] = (worker){.shared = &s, .number = i};
        assert_ok(weir_thread_start("appender", WEIR_ROLE_TEST, append_large, &workers[i], &workers[i].thread));
    }
    for (unsigned i = 0; i < 3; i++)
        weir_thread_join(workers[i].thread);
    assert_ok(weir_eventlog_close(s.log));
    s.log = fixture_open(weir_test_folder(), 1, 32u << 20);
    assert_int_equal(fixture_stats(s.log, 0).offset_durable, 3 * LARGE_BATCHES * 4);
    assert_ok(weir_eventlog_close(s.log));
}

WEIR_TESTS(WEIR_CASE(appenders_syncers_and_readers), WEIR_CASE(appenders_that_sync_their_own_partition),
           WEIR_CASE(callers_share_a_sync), WEIR_CASE(appenders_wait_for_room))

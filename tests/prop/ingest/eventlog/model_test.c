/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model_test.c - random operations on a log and on a naive model of it: arrays of records, and segments by arithmetic.
 *
 * After every operation the two agree on offsets; now and then every record is read and compared, through the log,
 * through a read-only log, and through a copy of the folder taken while the log was open, as kill -9 would leave it.
 */
#include "eventlog_private.h"

#include <weir/store/base/rng.h>

#include "eventlog_fixture.h"

enum { PARTITIONS = 3, RECORDS_MAX = 20000, SEGMENTS_MAX = 4000, OPERATIONS = 250 };

typedef struct model_segment {
    uint64_t first, bytes;
    int64_t newest;
} model_segment;

typedef struct model_partition {
    uint8_t padding[RECORDS_MAX]; /* what makes a record other than its number says */
    uint64_t durable, end;
    uint64_t placed; /* records below are in segments */
    model_segment segments[SEGMENTS_MAX];
    size_t segment_begin, segment_end; /* those that retention has left */
} model_partition;

typedef struct model {
    model_partition partitions[PARTITIONS];
    weir_eventlog *log;
    weir_eventlog_opts opts;
    weir_clock *clock;
    weir_rng rng;
    char folder[256], copy[256];
} model;

static model the_model; /* large */

static void model_record(const model *m, uint32_t p, uint64_t n, fixture_record *made) {
    fixture_make(made, n, p, m->partitions[p].padding[n]);
}

/* The log's rule of rolling, from its promise alone: a segment that has a record never passes segment_bytes. */
static void model_place(model *m, uint32_t p) {
    model_partition *partition = &m->partitions[p];
    for (; partition->placed < partition->end; partition->placed++) {
        fixture_record made;
        model_record(m, p, partition->placed, &made);
        uint64_t bytes = 32 + made.record.key_length + made.record.value_length;
        model_segment *last = partition->segment_end ? &partition->segments[partition->segment_end - 1] : NULL;
        if (!last || (last->bytes + bytes > m->opts.segment_bytes && last->bytes > 32)) {
            assert_true(partition->segment_end < SEGMENTS_MAX);
            last = &partition->segments[partition->segment_end++];
            *last = (model_segment){.first = partition->placed, .bytes = 32, .newest = INT64_MIN};
        }
        last->bytes += bytes;
        if (made.record.time_us > last->newest) last->newest = made.record.time_us;
    }
}

static uint64_t model_bytes(const model_partition *partition) {
    uint64_t bytes = 0;
    for (size_t i = partition->segment_begin; i < partition->segment_end; i++)
        bytes += partition->segments[i].bytes;
    return bytes;
}

static uint64_t model_begin(const model_partition *partition) {
    return partition->segment_end ? partition->segments[partition->segment_begin].first : 0;
}

/* --- operations ----------------------------------------------------------------------------------------------- */

static void op_open(model *m) {
    assert_ok(weir_eventlog_open(m->folder, "t", &m->opts, &m->log));
}

static void op_append(model *m, uint32_t p) {
    enum { BATCH = 60 };
    static fixture_record made[BATCH];
    weir_record records[BATCH];
    model_partition *partition = &m->partitions[p];
    size_t count = 1 + (size_t)weir_rng_below(&m->rng, BATCH);
    uint64_t first;
    if (partition->end + count > RECORDS_MAX) return;
    for (size_t i = 0; i < count; i++) {
        partition->padding[partition->end + i] = (uint8_t)weir_rng_below(&m->rng, 200);
        model_record(m, p, partition->end + i, &made[i]);
        records[i] = made[i].record;
    }
    assert_ok(weir_eventlog_append(m->log, p, records, count, &first));
    assert_int_equal(first, partition->end);
    partition->end += count;
}

static void model_synced(model *m, uint32_t p) {
    m->partitions[p].durable = m->partitions[p].end;
    model_place(m, p);
}

static void op_sync(model *m, uint32_t p) {
    if (weir_rng_below(&m->rng, 3) == 0) {
        assert_ok(weir_eventlog_sync(m->log));
        for (uint32_t i = 0; i < PARTITIONS; i++)
            model_synced(m, i);
    } else {
        assert_ok(weir_eventlog_sync_partition(m->log, p));
        model_synced(m, p);
    }
}

static void op_retain(model *m) {
    uint64_t removed, expected = 0;
    assert_ok(weir_eventlog_sync(m->log));
    weir_clock_manual_set_wall(m->clock, (int64_t)weir_rng_below(&m->rng, RECORDS_MAX));
    int64_t oldest = weir_clock_wall_us(m->clock) - m->opts.retain_us;
    for (uint32_t p = 0; p < PARTITIONS; p++) {
        model_partition *partition = &m->partitions[p];
        model_synced(m, p);
        while (partition->segment_end - partition->segment_begin > 1 &&
               (model_bytes(partition) > m->opts.retain_bytes ||
                partition->segments[partition->segment_begin].newest < oldest)) {
            partition->segment_begin++;
            expected++;
        }
    }
    assert_ok(weir_eventlog_retain(m->log, &removed));
    assert_int_equal(removed, expected);
}

static void read_from(const model *m, weir_eventlog *log, uint32_t p, uint64_t from, uint64_t end) {
    weir_eventlog_reader *reader = NULL;
    weir_record records[50];
    size_t count = 1, capacity = 1 + (size_t)(from % 50);
    assert_ok(weir_eventlog_reader_open(log, p, from, &reader));
    for (uint64_t next = from; count; next += count) {
        assert_ok(weir_eventlog_reader_next(reader, records, capacity, &count));
        for (size_t i = 0; i < count; i++) {
            fixture_record made;
            model_record(m, p, next + i, &made);
            assert_int_equal(records[i].offset, next + i);
            assert_true(fixture_same(&records[i], &made.record));
        }
        if (count == 0) assert_int_equal(next, end);
    }
    weir_eventlog_reader_close(reader);
}

static void op_read(model *m, uint32_t p) {
    uint64_t begin = model_begin(&m->partitions[p]), durable = m->partitions[p].durable;
    uint64_t from = begin + weir_rng_below(&m->rng, durable - begin + 1);
    read_from(m, m->log, p, from, durable);
}

static void op_read_only(model *m, uint32_t p) {
    weir_eventlog *log = fixture_open_read_only(m->folder);
    read_from(m, log, p, model_begin(&m->partitions[p]), m->partitions[p].durable);
    assert_ok(weir_eventlog_close(log));
}

/* What another process would find if this one died now: at least what is durable, at most what was appended. */
static void op_killed_copy(model *m) {
    weir_eventlog *log = NULL;
    fixture_copy(m->folder, m->copy);
    assert_ok(weir_eventlog_open(m->copy, "t", &m->opts, &log));
    for (uint32_t p = 0; p < PARTITIONS; p++) {
        uint64_t end = fixture_stats(log, p).offset_durable;
        assert_in_range(end, m->partitions[p].durable, m->partitions[p].end);
        read_from(m, log, p, model_begin(&m->partitions[p]), end);
    }
    assert_ok(weir_eventlog_close(log));
}

static void op_reopen(model *m) {
    assert_ok(weir_eventlog_close(m->log));
    for (uint32_t p = 0; p < PARTITIONS; p++)
        model_synced(m, p);
    op_open(m);
}

/* --- the run -------------------------------------------------------------------------------------------------- */

static void compare_stats(model *m) {
    for (uint32_t p = 0; p < PARTITIONS; p++) {
        const model_partition *partition = &m->partitions[p];
        weir_eventlog_partition_stats stats = fixture_stats(m->log, p);
        assert_int_equal(stats.offset_end, partition->end);
        assert_int_equal(stats.offset_durable, partition->durable);
        assert_int_equal(stats.time_last_us, partition->durable ? partition->durable - 1 : 0);
        assert_int_equal(stats.offset_begin, model_begin(partition));
        assert_int_equal(stats.segments, partition->segment_end - partition->segment_begin);
        assert_int_equal(stats.bytes, model_bytes(partition));
    }
}

static void operate(model *m) {
    uint32_t p = (uint32_t)weir_rng_below(&m->rng, PARTITIONS);
    uint64_t dice = weir_rng_below(&m->rng, 100);
    if (dice < 50) {
        op_append(m, p);
    } else if (dice < 75) {
        op_sync(m, p);
    } else if (dice < 85) {
        op_read(m, p);
    } else if (dice < 90) {
        op_read_only(m, p);
    } else if (dice < 94) {
        op_reopen(m);
    } else if (dice < 97) {
        op_retain(m);
    } else {
        op_killed_copy(m);
    }
    compare_stats(m);
}

static void run(uint64_t seed, uint64_t round) {
    model *m = &the_model;
    memset(m, 0, sizeof *m);
    m->rng = weir_rng_stream(seed, round, 0);
    assert_ok(weir_clock_manual_open(0, &m->clock));
    m->opts = (weir_eventlog_opts){
        .partitions = PARTITIONS,
        .segment_bytes = WEIR_EVENTLOG_SEGMENT_MIN + weir_rng_below(&m->rng, 20000),
        .retain_bytes = 40000 + weir_rng_below(&m->rng, 100000),
        .retain_us = 1 + (int64_t)weir_rng_below(&m->rng, 3000),
        .clock = m->clock,
    };
    snprintf(m->folder, sizeof m->folder, "%s/log%" PRIu64, weir_test_folder(), round);
    snprintf(m->copy, sizeof m->copy, "%s/copy", weir_test_folder());
    op_open(m);
    for (unsigned i = 0; i < OPERATIONS; i++)
        operate(m);
    assert_ok(weir_eventlog_close(m->log));
    weir_clock_close(m->clock);
    assert_ok(weir_folder_remove(m->folder));
}

static void log_equals_a_naive_model(void **state) {
    (void)state;
    fixture_in_memory();
    uint64_t seed = weir_test_seed();
    for (uint64_t round = 0; round < weir_test_rounds(25); round++)
        run(seed, round);
}

WEIR_TESTS(WEIR_CASE(log_equals_a_naive_model))

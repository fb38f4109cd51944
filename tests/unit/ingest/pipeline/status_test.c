/* SPDX-License-Identifier: Apache-2.0 */
/*
 * status_test.c - how far behind a source is, asked while records wait: the log's own end counts from the moment that
 * it is durable, and a partition that is behind says for how long.
 */
#include "fixture.h"

#include <weir/store/base/clock.h>

#define TRIES 5000

static const char schema_text[] = "version: 1\n"
                                  "name: t\n"
                                  "vertices: {v: {}}\n"
                                  "sources:\n"
                                  "  s:\n"
                                  "    id: id\n"
                                  "    time: {field: t, format: s}\n"
                                  "    mutations: [{put_vertex: v, key: id}]\n";

static weir_err take(void *context, const weir_pipeline_partition_stats *stats) {
    if (stats->partition == 0) *(weir_pipeline_partition_stats *)context = *stats;
    return WEIR_OK;
}

static void append(fixture *f, int number) {
    char text[64];
    snprintf(text, sizeof text, "{\"id\":\"%d\",\"t\":1000}", number);
    fixture_text(f, 0, 0, text);
    assert_ok(weir_eventlog_sync(f->logs[0]));
}

/* Whoever is behind must once be seen so: what is appended is asked about before a thread can have been woken. */
static void who_is_behind_says_by_how_much(void **state) {
    (void)state;
    fixture f = {.schema = fixture_schema(schema_text)};
    weir_pipeline_partition_stats stats = {0};
    bool seen = false;
    int number = 0;
    fixture_open(&f);
    append(&f, number++);
    fixture_drain(&f);
    assert_ok(weir_pipeline_partitions(f.pipeline, take, &stats));
    assert_int_equal(stats.offset_applied, 1);
    assert_int_equal(stats.lag_us, 0);
    while (!seen && number < TRIES) {
        append(&f, number++);
        assert_ok(weir_pipeline_partitions(f.pipeline, take, &stats));
        assert_int_equal(stats.offset_end, number);
        seen = stats.offset_applied < stats.offset_end;
        int64_t age_us = weir_clock_wall_us(weir_clock_system()) - 1000 * WEIR_US_PER_S;
        assert_true(!seen || (stats.lag_us > 0 && stats.lag_us <= age_us));
        assert_true(seen || stats.lag_us == 0);
    }
    assert_true(seen);
    fixture_drain(&f);
    assert_ok(weir_pipeline_partitions(f.pipeline, take, &stats));
    assert_int_equal(stats.offset_applied, number);
    assert_int_equal(stats.lag_us, 0);
    fixture_close(&f);
}

WEIR_TESTS(WEIR_CASE(who_is_behind_says_by_how_much))

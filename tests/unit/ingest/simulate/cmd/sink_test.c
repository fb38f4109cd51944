/* SPDX-License-Identifier: Apache-2.0 */
/* The places that simulated messages go to: whole messages, every allocation failed once, every operation failed once.
 * */
#include "weir_test.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <weir/ingest/eventlog/eventlog.h>
#include <weir/store/base/alloc.h>
#include <weir/store/base/fault.h>

#include "sink.h"

#define MESSAGES 20000u

static weir_config *config;

static void open_config(void) {
    assert_ok(weir_config_open(&config));
}

static weir_simulate *open_simulation(void) {
    weir_simulate_payments_opts opts = weir_simulate_payments_defaults();
    opts.accounts = 2000;
    opts.label_delay_us = 1800 * INT64_C(1000000);
    weir_simulate *sim = NULL;
    assert_ok(weir_simulate_payments_open(&opts, &sim));
    return sim;
}

static weir_err open_place(const char *kind, const char *folder, weir_simulate_sink **sinkp) {
    char to[4096];
    snprintf(to, sizeof to, "%s:%s", kind, folder);
    const weir_simulate_sink_opts opts = {
        .to = to,
        .config = config,
        .partitions = 2,
        .topics = {[WEIR_SIMULATE_PAYMENTS] = true, [WEIR_SIMULATE_CHARGEBACKS] = true},
    };
    return weir_simulate_sink_open(&opts, sinkp);
}

/* Puts the first messages of the simulation; the first error ends it. */
static weir_err fill(weir_simulate_sink *sink, uint32_t messages) {
    weir_simulate *sim = open_simulation();
    weir_err err = WEIR_OK;
    for (uint32_t i = 0; !err && i < messages; i++) {
        weir_simulate_message message;
        weir_simulate_next(sim, &message);
        err = sink->put(sink, &message);
        if (!err && i % 7000 == 0) err = sink->rest(sink);
    }
    if (!err) err = sink->finish(sink);
    weir_simulate_close(sim);
    return err;
}

/* What is read back must be the messages of the simulation, in order; fewer, if not all. */
typedef struct reading {
    const char *kind, *folder;
    bool all;
} reading;

static uint64_t check_file(const reading *r, weir_simulate_topic topic) {
    char path[4096];
    char *text = NULL;
    size_t length = 0, at = 0;
    uint64_t lines = 0;
    snprintf(path, sizeof path, "%s/%s.jsonl", r->folder, weir_simulate_topic_name(topic));
    assert_ok(weir_file_load(path, 64u << 20, &text, &length));
    weir_simulate *sim = open_simulation();
    for (uint32_t i = 0; i < MESSAGES && at < length; i++) {
        weir_simulate_message m;
        weir_simulate_next(sim, &m);
        if (m.topic != topic) continue;
        if (!r->all && length - at < m.value_length + 1) break; /* a failed write may end within a line */
        assert_true(length - at >= m.value_length + 1);
        assert_memory_equal(text + at, m.value, m.value_length);
        at += m.value_length + 1;
        assert_int_equal(text[at - 1], '\n');
        lines++;
    }
    if (r->all) assert_int_equal(at, length);
    weir_simulate_close(sim);
    weir_free(text);
    return lines;
}

static uint64_t count_records(const char *folder, weir_simulate_topic topic) {
    const weir_eventlog_opts opts = {.read_only = true};
    weir_eventlog *log = NULL;
    uint64_t records = 0;
    assert_ok(weir_eventlog_open(folder, weir_simulate_topic_name(topic), &opts, &log));
    for (uint32_t i = 0; i < weir_eventlog_partitions(log); i++) {
        weir_eventlog_partition_stats stats;
        assert_ok(weir_eventlog_stats_get(log, i, &stats));
        records += stats.offset_durable;
    }
    assert_ok(weir_eventlog_close(log));
    return records;
}

/* --- cases -------------------------------------------------------------------------------------------------------- */

static void files_get_every_message(void **state) {
    (void)state;
    open_config();
    weir_simulate_sink *sink = NULL;
    assert_ok(open_place("file", weir_test_path("out"), &sink));
    assert_ok(fill(sink, MESSAGES));
    assert_ok(sink->close(sink));
    const reading r = {"file", weir_test_path("out"), true};
    uint64_t payments = check_file(&r, WEIR_SIMULATE_PAYMENTS), labels = check_file(&r, WEIR_SIMULATE_CHARGEBACKS);
    assert_int_equal(payments + labels, MESSAGES);
    assert_true(labels > 20);
    weir_config_free(config);
}

/* Lines fill the buffer up to 512 bytes; the next has as many, without its newline. */
static void no_line_is_written_without_its_end(void **state) {
    (void)state;
    static char value[WEIR_SIMULATE_LINE_MAX];
    char path[4096], *text = NULL;
    size_t length = 0;
    memset(value, 'x', sizeof value);
    open_config();
    weir_simulate_sink *sink = NULL;
    assert_ok(open_place("file", weir_test_path("out"), &sink));
    for (uint32_t i = 0; i <= WEIR_SIMULATE_LINES_BUFFER / 1024; i++) {
        const weir_simulate_message message = {
            .topic = WEIR_SIMULATE_PAYMENTS,
            .value = value,
            .value_length = i == 0                                  ? 511
                            : i < WEIR_SIMULATE_LINES_BUFFER / 1024 ? 1023
                                                                    : 512,
        };
        assert_ok(sink->put(sink, &message));
    }
    snprintf(path, sizeof path, "%s/payments.jsonl", weir_test_path("out"));
    assert_ok(weir_file_load(path, 64u << 20, &text, &length));
    assert_true(length > 0);
    assert_int_equal(text[length - 1], '\n');
    assert_ok(sink->close(sink));
    weir_free(text);
    weir_config_free(config);
}

static void the_log_gets_every_message(void **state) {
    (void)state;
    open_config();
    weir_simulate_sink *sink = NULL;
    assert_ok(open_place("log", weir_test_path("log"), &sink));
    assert_ok(fill(sink, MESSAGES));
    assert_ok(sink->close(sink));
    uint64_t payments = count_records(weir_test_path("log"), WEIR_SIMULATE_PAYMENTS);
    uint64_t labels = count_records(weir_test_path("log"), WEIR_SIMULATE_CHARGEBACKS);
    assert_int_equal(payments + labels, MESSAGES);
    weir_config_free(config);
}

/* The log of the configuration, when --to names none. */
static void the_configuration_says_where(void **state) {
    (void)state;
    char setting[4096];
    open_config();
    snprintf(setting, sizeof setting, "eventlog.path=%s", weir_test_path("configured"));
    assert_ok(weir_config_set(config, setting));
    weir_simulate_sink *sink = NULL;
    assert_ok(open_place("log", "", &sink));
    assert_ok(fill(sink, 100));
    assert_ok(sink->close(sink));
    assert_int_equal(count_records(weir_test_path("configured"), WEIR_SIMULATE_PAYMENTS), 100);
    weir_config_free(config);
}

/* A place of its own each time: removing the last one would allocate, too. */
static weir_err open_and_close(void *kind) {
    static unsigned attempt;
    char name[32];
    snprintf(name, sizeof name, "%s%u", (const char *)kind, ++attempt);
    weir_simulate_sink *sink = NULL;
    weir_err err = open_place(kind, weir_test_path(name), &sink);
    assert_int_equal(err == WEIR_OK, sink != NULL);
    if (sink) weir_err_keep(&err, sink->close(sink));
    return err;
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    static char kinds[][8] = {"file", "log"};
    open_config();
    for (size_t i = 0; i < 2; i++)
        weir_test_every_allocation(open_and_close, kinds[i]);
    weir_config_free(config);
}

/* Fails the nth operation, then all after it, for every n that is reached. Returns how many were. */
static uint64_t fail_every(const char *operation, const char *kind) {
    for (uint64_t nth = 1;; nth++) {
        char spec[64], name[32];
        snprintf(spec, sizeof spec, "%s:%llu:ENOSPC", operation, (unsigned long long)nth);
        snprintf(name, sizeof name, "%s%s%llu", kind, operation, (unsigned long long)nth);
        char *folder = weir_strdup(weir_test_path(name));
        assert_non_null(folder);
        assert_ok(weir_fault_arm(spec));
        weir_simulate_sink *sink = NULL;
        weir_err err = open_place(kind, folder, &sink);
        if (!err) err = fill(sink, MESSAGES);
        bool reached = weir_fault_seen() >= nth;
        if (sink) weir_err_keep(&err, sink->close(sink));
        assert_ok(weir_fault_arm(NULL));
        const reading r = {kind, folder, false};
        if (sink && strcmp(kind, "file") == 0) check_file(&r, WEIR_SIMULATE_PAYMENTS);
        weir_free(folder);
        if (!reached) {
            assert_ok(err);
            return nth - 1;
        }
        assert_err(err, WEIR_EFULL, NULL);
    }
}

static void every_write_and_sync_may_fail(void **state) {
    (void)state;
    open_config();
    assert_true(fail_every("write", "file") >= 4);
    assert_true(fail_every("sync", "file") >= 3);
    weir_config_free(config);
}

static void the_log_says_what_failed(void **state) {
    (void)state;
    open_config();
    weir_simulate_sink *sink = NULL;
    assert_ok(open_place("log", weir_test_path("log"), &sink));
    assert_ok(weir_fault_arm("write:1:ENOSPC:/payments/"));
    weir_err err = fill(sink, MESSAGES);
    weir_err_keep(&err, sink->close(sink));
    assert_ok(weir_fault_arm(NULL));
    assert_err(err, WEIR_EFULL, "payments");
    weir_config_free(config);
}

WEIR_TESTS(WEIR_CASE(files_get_every_message), WEIR_CASE(no_line_is_written_without_its_end),
           WEIR_CASE(the_log_gets_every_message), WEIR_CASE(the_configuration_says_where),
           WEIR_CASE(every_allocation_may_fail), WEIR_CASE(every_write_and_sync_may_fail),
           WEIR_CASE(the_log_says_what_failed))

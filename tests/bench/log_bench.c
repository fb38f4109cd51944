/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log_bench.c - the event log against a plain file: the same bytes, made durable at the same points.
 *
 * A record is a payment of 220 bytes of key and value, 252 on disk. The limit writes what the log would write, in one
 * write(2) and one fdatasync a group: it encodes nothing, checks nothing and keeps no marks.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <weir/ingest/eventlog/eventlog.h>
#include <weir/store/base/alloc.h>
#include <weir/store/base/file.h>
#include <weir/store/base/thread.h>

#include "bench.h"

#define KEY_BYTES     16u
#define VALUE_BYTES   204u
#define ENCODED_BYTES (WEIR_EVENTLOG_RECORD_OVERHEAD + KEY_BYTES + VALUE_BYTES)
#define BATCH_RECORDS 100u /* in one append */
#define THREADS       8u

typedef struct log_context {
    const char *folder;
    uint8_t *bytes; /* of one group, for the plain file */
    char value[VALUE_BYTES];
    uint64_t records; /* in one run */
    uint64_t group;   /* records between two syncs */
    bool in_records;  /* what is counted; else bytes */
} log_context;

static double units_of(const log_context *c) {
    return (double)c->records * (c->in_records ? 1 : ENCODED_BYTES);
}

static void run_path(const log_context *c, const char *name, char path[1024]) {
    snprintf(path, 1024, "%s/%s", c->folder, name);
}

/* --- the limits ----------------------------------------------------------------------------------------------- */

static weir_err plain_write(const log_context *c, int fd) {
    for (uint64_t done = 0; done < c->records; done += c->group) {
        size_t bytes = (size_t)c->group * ENCODED_BYTES;
        ssize_t written = write(fd, c->bytes, bytes);
        if (written != (ssize_t)bytes || fdatasync(fd)) return WEIR_ERRNO(errno, "cannot write the plain file");
    }
    return WEIR_OK;
}

static weir_err run_plain_write(void *context, uint64_t round, weir_bench_sample *samplep) {
    const log_context *c = context;
    char path[1024];
    (void)round;
    run_path(c, "plain", path);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);
    if (fd < 0) return WEIR_ERRNO(errno, "cannot create %s", path);
    weir_bench_start(samplep);
    weir_err err = plain_write(c, fd);
    weir_bench_stop(samplep, units_of(c));
    close(fd);
    weir_err_keep(&err, weir_file_remove(path));
    return err;
}

static weir_err run_plain_read(void *context, uint64_t round, weir_bench_sample *samplep) {
    const log_context *c = context;
    char path[1024];
    ssize_t got;
    (void)round;
    run_path(c, "read/00000/00000000000000000000.seg", path);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return WEIR_ERRNO(errno, "cannot open %s", path);
    weir_bench_start(samplep);
    while ((got = read(fd, c->bytes, 256u << 10)) > 0)
        continue;
    weir_bench_stop(samplep, units_of(c));
    close(fd);
    if (got < 0) return WEIR_ERRNO(errno, "cannot read %s", path);
    return WEIR_OK;
}

/* --- the log -------------------------------------------------------------------------------------------------- */

static weir_err open_log(const log_context *c, const char *topic, weir_eventlog **logp) {
    const weir_eventlog_opts opts = {.partitions = 1, .segment_bytes = WEIR_EVENTLOG_SEGMENT_MAX};
    return weir_eventlog_open(c->folder, topic, &opts, logp);
}

static weir_err append_records(const log_context *c, weir_eventlog *log, uint64_t records) {
    weir_record batch[BATCH_RECORDS];
    uint64_t offset;
    weir_err err = WEIR_OK;
    for (uint64_t done = 0; !err && done < records; done += BATCH_RECORDS) {
        for (unsigned i = 0; i < BATCH_RECORDS; i++) {
            batch[i] = (weir_record){.time_us = (int64_t)(done + i),
                                     .key = c->value,
                                     .key_length = KEY_BYTES,
                                     .value = c->value,
                                     .value_length = VALUE_BYTES};
        }
        err = weir_eventlog_append(log, 0, batch, BATCH_RECORDS, &offset);
        if (!err && (done + BATCH_RECORDS) % c->group == 0) err = weir_eventlog_sync_partition(log, 0);
    }
    return err;
}

/* The first sync creates the segment, which a plain file has at its open: it is not measured. */
static weir_err warm_log(const log_context *c, weir_eventlog **logp) {
    weir_err err = open_log(c, "bench", logp);
    return err ? err : append_records(c, *logp, c->group);
}

static weir_err drop_log(const log_context *c, weir_eventlog *log) {
    char path[1024];
    weir_err err = weir_eventlog_close(log);
    run_path(c, "bench", path);
    weir_err_keep(&err, weir_folder_remove(path));
    return err;
}

static weir_err run_append(void *context, uint64_t round, weir_bench_sample *samplep) {
    const log_context *c = context;
    weir_eventlog *log = NULL;
    (void)round;
    weir_err err = warm_log(c, &log);
    weir_bench_start(samplep);
    if (!err) err = append_records(c, log, c->records);
    weir_bench_stop(samplep, units_of(c));
    weir_err_keep(&err, drop_log(c, log));
    return err;
}

typedef struct append_thread {
    const log_context *c;
    weir_eventlog *log;
    weir_thread *thread;
    weir_err err;
} append_thread;

static void append_share(void *context) {
    append_thread *t = context;
    t->err = append_records(t->c, t->log, t->c->records / THREADS);
}

static weir_err run_append_threads(void *context, uint64_t round, weir_bench_sample *samplep) {
    const log_context *c = context;
    append_thread threads[THREADS] = {0};
    weir_eventlog *log = NULL;
    (void)round;
    weir_err err = warm_log(c, &log);
    weir_bench_start(samplep);
    for (unsigned i = 0; !err && i < THREADS; i++) {
        threads[i] = (append_thread){.c = c, .log = log};
        err = weir_thread_start("bench-append", WEIR_ROLE_INGEST, append_share, &threads[i], &threads[i].thread);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        weir_thread_join(threads[i].thread);
        weir_err_keep(&err, threads[i].err);
    }
    weir_bench_stop(samplep, units_of(c));
    weir_err_keep(&err, drop_log(c, log));
    return err;
}

static weir_err run_read(void *context, uint64_t round, weir_bench_sample *samplep) {
    const log_context *c = context;
    weir_eventlog *log = NULL;
    weir_eventlog_reader *reader = NULL;
    weir_record records[1024];
    size_t count = 1;
    (void)round;
    weir_err err = open_log(c, "read", &log);
    if (!err) err = weir_eventlog_reader_open(log, 0, 0, &reader);
    weir_bench_start(samplep);
    while (!err && count)
        err = weir_eventlog_reader_next(reader, records, 1024, &count);
    weir_bench_stop(samplep, units_of(c));
    weir_eventlog_reader_close(reader);
    weir_err_keep(&err, weir_eventlog_close(log));
    return err;
}

/* --- the bench ------------------------------------------------------------------------------------------------ */

static weir_err make_read_topic(const log_context *c) {
    weir_eventlog *log = NULL;
    weir_err err = open_log(c, "read", &log);
    if (!err) err = append_records(c, log, c->records);
    weir_err_keep(&err, weir_eventlog_close(log));
    return err;
}

static weir_err run_lines(weir_cli *cli, const log_context *base) {
    bool quick = weir_bench_quick(cli);
    log_context each_100 = *base, each_1000 = *base, each_10000 = *base, counted, read = *base;
    each_100.group = 100;
    each_100.records = quick ? 1600 : 40000;
    each_1000.group = 1000;
    each_1000.records = quick ? 2000 : 200000;
    each_10000.group = 10000;
    each_10000.records = quick ? 10000 : 500000;
    counted = each_1000;
    counted.in_records = true;
    read.group = 10000;
    read.records = quick ? 10000 : 1000000;
    weir_err err = make_read_topic(&read);
    if (err) return err;
    const weir_bench_line lines[] = {
        {"plain file, sync each 1000", "MB/s", 1e-6, NULL, run_plain_write, &each_1000},
        {"append, sync each 1000", "MB/s", 1e-6, "plain file, sync each 1000", run_append, &each_1000},
        {"append, sync each 1000, in records", "k/s", 1e-3, NULL, run_append, &counted},
        {"plain file, sync each 10000", "MB/s", 1e-6, NULL, run_plain_write, &each_10000},
        {"append, sync each 10000", "MB/s", 1e-6, "plain file, sync each 10000", run_append, &each_10000},
        {"plain file, sync each 100", "MB/s", 1e-6, NULL, run_plain_write, &each_100},
        {"append, sync each 100", "MB/s", 1e-6, "plain file, sync each 100", run_append, &each_100},
        {"append by 8 threads, each syncs each 100", "MB/s", 1e-6, "plain file, sync each 100", run_append_threads,
         &each_100},
        {"plain read, from memory", "MB/s", 1e-6, NULL, run_plain_read, &read},
        {"read, with checksums", "MB/s", 1e-6, "plain read, from memory", run_read, &read},
    };
    return weir_bench_run(cli, "log", lines, sizeof lines / sizeof lines[0]);
}

static weir_err run(weir_cli *cli) {
    log_context base = {0};
    weir_err err = weir_bench_folder(&base.folder);
    if (err) return err;
    for (unsigned i = 0; i < VALUE_BYTES; i++)
        base.value[i] = (char)('!' + i % 90);
    base.bytes = weir_calloc(10000, ENCODED_BYTES);
    if (!base.bytes) return WEIR_NOMEM("for the bench's group");
    err = run_lines(cli, &base);
    weir_free(base.bytes);
    return err;
}

const weir_command weir_bench_log = {
    .name = "log",
    .summary = "the event log against a plain file with the same syncs",
    .example = "weir bench log --rounds 5\nWEIR_BENCH_FOLDER=/var/lib/weir weir bench log",
    .options = weir_bench_options,
    .run = run,
};

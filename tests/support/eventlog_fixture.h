/* SPDX-License-Identifier: Apache-2.0 */
/*
 * eventlog_fixture.h - records whose content follows from their number, so that a test needs no list of what it wrote.
 *
 * Record n of a test has time n, a key unless n is a multiple of 5, and a value of n % 97 bytes or more. Helpers
 * fail the case that calls them.
 */
#ifndef WEIR_EVENTLOG_FIXTURE_H
#define WEIR_EVENTLOG_FIXTURE_H

#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weir/ingest/eventlog/eventlog.h>
#include <weir/store/base/alloc.h>
#include <weir/store/base/file.h>

#include "weir_test.h"

#define FIXTURE_VALUE_MAX 512u

typedef struct fixture_record {
    char key[32];
    char value[FIXTURE_VALUE_MAX];
    weir_record record;
} fixture_record;

/* Lets weir_test_folder be in memory, where a sync costs nothing: for cases of thousands of syncs whose promise does
 * not depend on a disk. To be called before the first path is made. */
static inline void fixture_in_memory(void) {
    if (access("/dev/shm", W_OK) == 0) setenv("TMPDIR", "/dev/shm", 0);
}

/* salt parts records of equal number that different runs have written. */
static inline void fixture_make(fixture_record *out, uint64_t n, uint64_t salt, size_t padding) {
    int key_length = snprintf(out->key, sizeof out->key, "key-%" PRIu64, n % 31);
    int length = snprintf(out->value, sizeof out->value, "value %" PRIu64 " of %" PRIu64 ":", n, salt);
    size_t value_length = (size_t)length + padding + n % 97;
    assert_true(value_length <= sizeof out->value);
    memset(out->value + length, 'a' + (int)(n % 26), value_length - (size_t)length);
    out->record = (weir_record){
        .time_us = (int64_t)n,
        .key = n % 5 ? out->key : NULL,
        .key_length = n % 5 ? (size_t)key_length : 0,
        .value = out->value,
        .value_length = value_length,
    };
}

static inline bool fixture_same(const weir_record *a, const weir_record *b) {
    return a->time_us == b->time_us && !a->key == !b->key && a->key_length == b->key_length &&
           a->value_length == b->value_length && (!a->key || memcmp(a->key, b->key, a->key_length) == 0) &&
           memcmp(a->value, b->value, a->value_length) == 0;
}

static inline weir_err fixture_try_append(weir_eventlog *log, uint32_t partition, uint64_t from, size_t count,
                                          uint64_t salt) {
    for (size_t i = 0; i < count; i++) {
        fixture_record made;
        uint64_t offset;
        fixture_make(&made, from + i, salt, 0);
        weir_err err = weir_eventlog_append(log, partition, &made.record, 1, &offset);
        if (err) return err;
        assert_int_equal(offset, from + i);
    }
    return WEIR_OK;
}

/* Appends records from .. from + count - 1, one by one; their offsets are their numbers. */
static inline void fixture_append(weir_eventlog *log, uint32_t partition, uint64_t from, size_t count) {
    assert_ok(fixture_try_append(log, partition, from, count, 0));
}

/* Reads from `from` to the durable end and compares each record; returns the offset behind the last one. */
static inline uint64_t fixture_check(weir_eventlog *log, uint32_t partition, uint64_t from, uint64_t salt) {
    weir_eventlog_reader *reader = NULL;
    weir_record records[64];
    size_t count;
    uint64_t next = from;
    assert_ok(weir_eventlog_reader_open(log, partition, from, &reader));
    do {
        assert_ok(weir_eventlog_reader_next(reader, records, 64, &count));
        for (size_t i = 0; i < count; i++) {
            fixture_record expected;
            fixture_make(&expected, next, salt, 0);
            assert_int_equal(records[i].offset, next);
            assert_true(fixture_same(&records[i], &expected.record));
            next++;
        }
    } while (count);
    weir_eventlog_reader_close(reader);
    return next;
}

static inline weir_eventlog *fixture_open(const char *folder, uint32_t partitions, uint64_t segment_bytes) {
    weir_eventlog *log = NULL;
    const weir_eventlog_opts opts = {.partitions = partitions, .segment_bytes = segment_bytes};
    assert_ok(weir_eventlog_open(folder, "t", &opts, &log));
    return log;
}

static inline weir_eventlog *fixture_open_read_only(const char *folder) {
    weir_eventlog *log = NULL;
    const weir_eventlog_opts opts = {.read_only = true};
    assert_ok(weir_eventlog_open(folder, "t", &opts, &log));
    return log;
}

static inline weir_err fixture_try_open(const char *folder, weir_eventlog **logp) {
    const weir_eventlog_opts opts = {.partitions = 1};
    return weir_eventlog_open(folder, "t", &opts, logp);
}

static inline weir_eventlog_partition_stats fixture_stats(weir_eventlog *log, uint32_t partition) {
    weir_eventlog_partition_stats stats;
    assert_ok(weir_eventlog_stats_get(log, partition, &stats));
    return stats;
}

/* --- files, without the layer under test ---------------------------------------------------------------------- */

typedef struct fixture_bytes {
    uint8_t *bytes;
    size_t length;
} fixture_bytes;

static inline fixture_bytes fixture_load(const char *path) {
    fixture_bytes content = {0};
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(fstat(fd, &status), 0);
    content.length = (size_t)status.st_size;
    content.bytes = weir_malloc(content.length + 1);
    assert_non_null(content.bytes);
    assert_int_equal(read(fd, content.bytes, content.length), content.length);
    close(fd);
    return content;
}

static inline void fixture_store(const char *path, const void *bytes, size_t length) {
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, length), length);
    close(fd);
}

static inline weir_err fixture_copy_entry(void *context, const char *name) {
    const char *const *folders = context;
    char from[4096], to[4096];
    struct stat status;
    snprintf(from, sizeof from, "%s/%s", folders[0], name);
    snprintf(to, sizeof to, "%s/%s", folders[1], name);
    assert_int_equal(stat(from, &status), 0);
    if (S_ISDIR(status.st_mode)) {
        const char *below[2] = {from, to};
        mkdir(to, 0750);
        return weir_folder_list(from, fixture_copy_entry, below);
    }
    fixture_bytes content = fixture_load(from);
    fixture_store(to, content.bytes, content.length);
    weir_free(content.bytes);
    return WEIR_OK;
}

/* Copies a folder with all in it into a fresh one. */
static inline void fixture_copy(const char *from, const char *to) {
    const char *folders[2] = {from, to};
    if (weir_path_exists(to)) assert_ok(weir_folder_remove(to));
    assert_int_equal(mkdir(to, 0750), 0);
    assert_ok(weir_folder_list(from, fixture_copy_entry, folders));
}

/* FOLDER/t/00000/…first….seg in a static ring of 4. */
static inline const char *fixture_segment(const char *folder, uint32_t partition, uint64_t first) {
    static char paths[4][4096];
    static unsigned next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/t/%05" PRIu32 "/%020" PRIu64 ".seg", folder, partition, first);
    return path;
}

#endif /* WEIR_EVENTLOG_FIXTURE_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * eventlog_fuzz.c - any bytes as a file of a log: it is recovered or refused, never a crash; what is refused is not
 * touched.
 *
 * The first byte says how the rest is taken: bits 0 and 1 which file it becomes (0, 3 the segment, 1 the marks, 2 the
 * topic file); bit 2 puts a right header before it and makes the checksums of its records right, so that what lies
 * behind them is reached; bits 4 to 7 are the offset up to which the log was acknowledged.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/bytes.h>
#include <weir/store/base/hash.h>
#include <weir/store/base/log.h>

#include "../../ingest/eventlog/eventlog_private.h"

#define CREATION_ID 0x1122334455667788ull
#define SIZE_MAX_IN (1u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char root[64]; /* of this process */

static void must(int condition) {
    if (!condition) abort();
}

static void remove_root(void) {
    (void)weir_folder_remove(root);
}

static void prepare_once(void) {
    if (root[0]) return;
    strcpy(root, access("/dev/shm", W_OK) == 0 ? "/dev/shm/weir-fuzz-XXXXXX" : "/tmp/weir-fuzz-XXXXXX");
    must(mkdtemp(root) != NULL);
    atexit(remove_root);
    weir_log_opts opts = weir_log_defaults();
    opts.level = WEIR_LOG_ERROR;
    weir_log_setup(&opts);
}

static void path_of(const char *name, char path[128]) {
    strcpy(path, root);
    strcat(path, name);
}

static void store(const char *name, const uint8_t *bytes, size_t size) {
    char path[128];
    path_of(name, path);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);
    must(fd >= 0 && write(fd, bytes, size) == (ssize_t)size);
    close(fd);
}

#define SEGMENT "/t/00000/00000000000000000000.seg"

/* A log of one empty partition that has been acknowledged up to durable. */
static void prepare(uint64_t durable) {
    uint8_t topic[ELOG_TOPIC_BYTES], mark[ELOG_MARK_BYTES], header[ELOG_SEGMENT_HEADER];
    char path[128];
    weir_elog_origin origin = weir_elog_origin_of(NULL, CREATION_ID, 0);
    path_of("/t", path);
    (void)weir_folder_remove(path);
    path_of("/t/00000", path);
    must(!weir_folder_create(path));
    weir_elog_topic_encode(topic, CREATION_ID, 1);
    weir_elog_mark_encode(mark, &origin, durable);
    weir_elog_segment_header_encode(header, &origin, 0);
    store("/t/topic", topic, sizeof topic);
    store("/t/durable", mark, sizeof mark);
    store(SEGMENT, header, sizeof header);
}

/* Makes the checksum of each record right, as far as their lengths lead. */
static void mend(uint8_t *bytes, size_t size) {
    weir_elog_origin origin = weir_elog_origin_of(NULL, CREATION_ID, 0);
    for (size_t at = 0; size - at >= ELOG_RECORD_HEADER;) {
        size_t length = weir_elog_record_length(bytes + at);
        if (length == 0 || length > size - at) break;
        weir_put_u32(bytes + at, weir_crc32c(origin.salt, bytes + at + 4, length - 4));
        at += length;
    }
}

static void store_segment(const uint8_t *data, size_t size, int mended) {
    weir_elog_origin origin = weir_elog_origin_of(NULL, CREATION_ID, 0);
    uint8_t *bytes = malloc(ELOG_SEGMENT_HEADER + size);
    must(bytes != NULL);
    weir_elog_segment_header_encode(bytes, &origin, 0);
    memcpy(bytes + ELOG_SEGMENT_HEADER, data, size);
    if (mended) {
        mend(bytes + ELOG_SEGMENT_HEADER, size);
        store(SEGMENT, bytes, ELOG_SEGMENT_HEADER + size);
    } else {
        store(SEGMENT, data, size);
    }
    free(bytes);
}

static int is_refusal(weir_err err) {
    return weir_err_is(err, WEIR_ECORRUPT) || weir_err_is(err, WEIR_EVERSION) || weir_err_is(err, WEIR_ELIMIT);
}

static weir_err count_damage(void *context, weir_err damage) {
    (void)damage;
    ++*(unsigned *)context;
    return WEIR_OK;
}

static uint64_t read_all(weir_eventlog *log, uint64_t end) {
    weir_eventlog_reader *reader = NULL;
    weir_record records[16];
    size_t count = 1;
    uint64_t next = 0;
    must(!weir_eventlog_reader_open(log, 0, 0, &reader));
    while (count) {
        must(!weir_eventlog_reader_next(reader, records, 16, &count));
        for (size_t i = 0; i < count; i++)
            must(records[i].offset == next++);
    }
    must(next == end);
    weir_eventlog_reader_close(reader);
    return next;
}

/* Recovered: all that was acknowledged is there, and the log goes on. */
static void use(weir_eventlog *log, uint64_t durable) {
    weir_eventlog_partition_stats stats;
    weir_eventlog_verify_stats verified;
    const weir_record record = {.value = "v", .value_length = 1};
    unsigned damages = 0;
    uint64_t first;
    must(!weir_eventlog_stats_get(log, 0, &stats));
    must(stats.offset_durable == stats.offset_end && stats.offset_end >= durable);
    read_all(log, stats.offset_end);
    must(!weir_eventlog_append(log, 0, &record, 1, &first) && first == stats.offset_end);
    must(!weir_eventlog_sync(log));
    read_all(log, stats.offset_end + 1);
    must(!weir_eventlog_verify(root, "t", count_damage, &damages, &verified) && damages == 0);
    must(!weir_eventlog_close(log));
}

static void look(void) {
    weir_eventlog *log = NULL;
    weir_eventlog_verify_stats verified;
    unsigned damages = 0;
    const weir_eventlog_opts read_only = {.read_only = true};
    weir_err err = weir_eventlog_open(root, "t", &read_only, &log);
    must(!err || is_refusal(err));
    must(!weir_eventlog_close(log));
    err = weir_eventlog_verify(root, "t", count_damage, &damages, &verified);
    must(!err || is_refusal(err));
}

static void check_untouched(char *before, size_t before_length) {
    char path[128], *after;
    size_t length;
    path_of(SEGMENT, path);
    must(!weir_file_load(path, SIZE_MAX_IN * 2, &after, &length));
    must(length == before_length && memcmp(before, after, length) == 0);
    weir_free(after);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char path[128], *before;
    size_t before_length;
    weir_eventlog *log = NULL;
    if (size < 1 || size > SIZE_MAX_IN) return 0;
    uint64_t durable = data[0] >> 4;
    int file = data[0] & 3;
    prepare_once();
    prepare(durable);
    if (file == 1) {
        store("/t/durable", data + 1, size - 1);
    } else if (file == 2) {
        store("/t/topic", data + 1, size - 1);
    } else {
        store_segment(data + 1, size - 1, data[0] & 4);
    }
    path_of(SEGMENT, path);
    must(!weir_file_load(path, SIZE_MAX_IN * 2, &before, &before_length));
    look();
    const weir_eventlog_opts opts = {0};
    weir_err err = weir_eventlog_open(root, "t", &opts, &log);
    if (err) {
        must(is_refusal(err));
        check_untouched(before, before_length);
    } else {
        use(log, file == 1 ? 0 : durable);
    }
    weir_free(before);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log_append.c - `weir log append`: lines of stdin become records.
 *
 * A batch is what stdin has right now, up to a limit: a slow source is made durable line by line, a fast one in large
 * groups. A line that is wrong ends the command; what was acknowledged before it stays, and the error says how much
 * that is, so that the rest can be fed again.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/clock.h>
#include <weir/store/base/progress.h>
#include <weir/store/cmd/store.h>

#include "log_private.h"

#define APPEND_LINES_MAX   16384u     /* in one batch */
#define APPEND_READ_BYTES  (4u << 20) /* in one batch, unless one line is longer */
#define APPEND_LINE_MAX    (WEIR_EVENTLOG_RECORD_MAX - WEIR_EVENTLOG_RECORD_OVERHEAD)
#define PARTITION_BY_KEY   UINT32_MAX
#define KEY_FIELD_NAME_MAX 200u

/* A line of the batch. The key lies in `keys`, whose address may change while it grows. */
typedef struct log_append_line {
    const char *bytes;
    size_t length;
    size_t key_start, key_length;
    uint32_t partition;
} log_append_line;

typedef struct log_appending {
    weir_eventlog *log;
    weir_progress *progress;
    const char *key, *key_field;
    uint32_t partition; /* or PARTITION_BY_KEY */
    char *bytes;        /* what was read and is not yet appended */
    size_t length, capacity;
    bool at_end;
    log_append_line *lines;
    weir_record *records; /* of one partition of the batch */
    size_t count;
    weir_buf keys;
    uint64_t acknowledged; /* records; line numbers begin behind them */
} log_appending;

/* --- reading -------------------------------------------------------------------------------------------------- */

/* The longest line and its newline fit, so a full buffer without a newline is a line that is too long. */
static weir_err log_append_grow(log_appending *append) {
    size_t capacity = append->capacity ? append->capacity * 2 : APPEND_READ_BYTES;
    if (capacity > APPEND_LINE_MAX + 1) capacity = APPEND_LINE_MAX + 1;
    if (capacity == append->capacity) {
        return WEIR_ERR(WEIR_ELIMIT, "line %" PRIu64 " of the input is longer than %u bytes",
                        append->acknowledged + append->count + 1, APPEND_LINE_MAX);
    }
    char *bytes = weir_realloc_array(append->bytes, capacity, 1);
    if (!bytes) return WEIR_NOMEM("for a line of %zu bytes", capacity);
    append->bytes = bytes;
    append->capacity = capacity;
    return WEIR_OK;
}

/* Waits for at least one whole line or the end, then takes what is there without waiting. */
static weir_err log_append_read(log_appending *append) {
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    bool line = append->length && memchr(append->bytes, '\n', append->length);
    while (!append->at_end && (!line || (append->length < append->capacity && poll(&input, 1, 0) > 0))) {
        WEIR_ASSERT(append->length <= append->capacity);
        weir_err err = append->length == append->capacity ? log_append_grow(append) : WEIR_OK;
        if (err) return err;
        ssize_t got = read(STDIN_FILENO, append->bytes + append->length, append->capacity - append->length);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return WEIR_ERRNO(errno, "cannot read the input");
        append->at_end = got == 0;
        line = line || memchr(append->bytes + append->length, '\n', (size_t)got);
        append->length += (size_t)got;
    }
    return WEIR_OK;
}

/* --- the batch ------------------------------------------------------------------------------------------------ */

static weir_err log_append_take_key(log_appending *append, log_append_line *line) {
    line->key_start = append->keys.length;
    if (append->key_field) {
        weir_err err = weir_cmd_log_field(line->bytes, line->length, append->key_field, &append->keys);
        if (err) return err;
    } else if (append->key) {
        weir_buf_text(&append->keys, append->key);
    }
    line->key_length = append->keys.length - line->key_start;
    if (WEIR_EVENTLOG_RECORD_OVERHEAD + line->key_length + line->length > WEIR_EVENTLOG_RECORD_MAX) {
        return WEIR_ERR(WEIR_ELIMIT, "key and line have more than %u bytes together", APPEND_LINE_MAX);
    }
    return weir_buf_err(&append->keys);
}

/* Without a key the lines go around, so that the partitions fill evenly. */
static uint32_t log_append_choose_partition(const log_appending *append, const log_append_line *line) {
    if (append->partition != PARTITION_BY_KEY) return append->partition;
    if (append->key || append->key_field) {
        return weir_eventlog_partition_of(append->log, append->keys.bytes + line->key_start, line->key_length);
    }
    return (uint32_t)((append->acknowledged + append->count) % weir_eventlog_partitions(append->log));
}

/* Cuts the buffer into lines; the last one may have no newline. *takenp is how many bytes they have. */
static weir_err log_append_cut_lines(log_appending *append, size_t *takenp) {
    *takenp = 0;
    append->count = 0;
    weir_buf_clear(&append->keys);
    while (append->count < APPEND_LINES_MAX && *takenp < append->length) {
        const char *begin = append->bytes + *takenp;
        const char *newline = memchr(begin, '\n', append->length - *takenp);
        if (!newline && !append->at_end) break;
        log_append_line *line = &append->lines[append->count];
        line->bytes = begin;
        line->length = newline ? (size_t)(newline - begin) : append->length - *takenp;
        weir_err err = log_append_take_key(append, line);
        if (err) {
            return weir_err_prefix(err, "line %" PRIu64 " of the input", append->acknowledged + append->count + 1);
        }
        line->partition = log_append_choose_partition(append, line);
        *takenp += line->length + (newline ? 1 : 0);
        append->count++;
    }
    return WEIR_OK;
}

/* Partition by partition, the lines of each in their order. */
static weir_err log_append_batch(log_appending *append) {
    int64_t now_us = weir_clock_wall_us(weir_clock_system());
    bool keyed = append->key || append->key_field;
    weir_err err = WEIR_OK;
    for (uint32_t partition = 0; !err && partition < weir_eventlog_partitions(append->log); partition++) {
        size_t count = 0;
        uint64_t first;
        for (size_t i = 0; i < append->count; i++) {
            const log_append_line *line = &append->lines[i];
            if (line->partition != partition) continue;
            WEIR_ASSERT(line->key_start + line->key_length <= append->keys.length);
            append->records[count++] = (weir_record){
                .time_us = now_us,
                .key = keyed ? (append->keys.length ? append->keys.bytes + line->key_start : "") : NULL,
                .key_length = line->key_length,
                .value = line->bytes,
                .value_length = line->length,
            };
        }
        if (count) err = weir_eventlog_append(append->log, partition, append->records, count, &first);
    }
    return err ? err : weir_eventlog_sync(append->log);
}

static weir_err log_append_input(log_appending *append) {
    while (!append->at_end || append->length) {
        size_t taken;
        weir_err err = log_append_read(append);
        if (!err) err = log_append_cut_lines(append, &taken);
        if (!err && append->count) err = log_append_batch(append);
        if (err) return err;
        WEIR_ASSERT(taken <= append->length);
        memmove(append->bytes, append->bytes + taken, append->length - taken);
        append->length -= taken;
        append->acknowledged += append->count;
        weir_progress_add(append->progress, append->count);
        append->count = 0;
    }
    return WEIR_OK;
}

/* --- the command ---------------------------------------------------------------------------------------------- */

static weir_err log_append_open(weir_cli *cli, log_appending *append) {
    const weir_config *config = weir_cli_config(cli);
    const weir_progress_opts progress = {.what = weir_cli_positional(cli, 0), .fd = STDERR_FILENO};
    uint64_t partitions = weir_config_u64(config, WEIR_CONFIG_EVENTLOG_PARTITIONS), partition = 0;
    const char *topic;
    append->key = weir_cli_text(cli, "key");
    append->key_field = weir_cli_text(cli, "key-field");
    if (append->key && append->key_field) return WEIR_ERR(WEIR_EUSAGE, "give --key or --key-field, not both");
    if (append->key_field && (!*append->key_field || strlen(append->key_field) > KEY_FIELD_NAME_MAX)) {
        return WEIR_ERR(WEIR_EUSAGE, "--key-field is the name of a field, of 1 to %u bytes", KEY_FIELD_NAME_MAX);
    }
    append->lines = weir_calloc(APPEND_LINES_MAX, sizeof *append->lines);
    append->records = weir_calloc(APPEND_LINES_MAX, sizeof *append->records);
    if (!append->lines || !append->records) return WEIR_NOMEM("for a batch of lines");
    weir_err err = log_append_grow(append);
    if (!err) err = weir_cmd_log_topic(cli, &topic);
    if (!err) err = weir_cli_u64(cli, "partitions", 1, WEIR_EVENTLOG_PARTITIONS_MAX, &partitions);
    const weir_eventlog_opts opts = {
        .partitions = (uint32_t)partitions,
        .segment_bytes = weir_config_u64(config, WEIR_CONFIG_EVENTLOG_SEGMENT_BYTES),
    };
    if (!err) err = weir_eventlog_open(weir_cmd_log_folder(cli), topic, &opts, &append->log);
    if (!err) err = weir_cli_u64(cli, "partition", 0, weir_eventlog_partitions(append->log) - 1, &partition);
    append->partition = weir_cli_given(cli, "partition") ? (uint32_t)partition : PARTITION_BY_KEY;
    return err ? err : weir_progress_open(&progress, &append->progress);
}

static weir_err log_append_run(weir_cli *cli) {
    log_appending append = {0};
    weir_buf line = {0};
    weir_err err = log_append_open(cli, &append);
    if (err) goto done;
    err = log_append_input(&append);
    err = weir_err_prefix(err, "after %" PRIu64 " acknowledged records", append.acknowledged);
done:
    weir_progress_close(append.progress);
    weir_err_keep(&err, weir_eventlog_close(append.log));
    if (!err) {
        weir_buf_printf(&line, "%" PRIu64 " records acknowledged\n", append.acknowledged);
        err = weir_cmd_print(&line);
    }
    weir_free(append.lines);
    weir_free(append.records);
    weir_free(append.bytes);
    weir_buf_free(&append.keys);
    return err;
}

static const weir_option log_append_options[] = {
    WEIR_CMD_LOG_PATH,
    {"key", 'k', "K", "key of every record (default: none)", NULL},
    {"key-field", 0, "NAME", "each line is a JSON object; this field of it is the key", NULL},
    {"partition", 0, "N", "append to this partition (default: by key; without one, in turn)", NULL},
    {"partitions", 0, "N", "of a topic that is created (default: eventlog.partitions of the configuration)", NULL},
    {0},
};

const weir_command weir_cmd_log_append = {
    .name = "append",
    .summary = "append the lines of stdin to a topic",
    .positional = "TOPIC",
    .positional_min = 1,
    .positional_max = 1,
    .description =
        "Each line is one record; its time is that of the append. Creates the topic if it is not there. Prints "
        "how many records were acknowledged, which means that they are on the disk. Removes nothing: eventlog.retain_* "
        "is for weir serve, which knows what its store has sealed.",
    .example = "weir simulate payments --count 1000 | weir log append payments --key-field card\n"
               "echo hello | weir log append greetings",
    .options = log_append_options,
    .run = log_append_run,
};

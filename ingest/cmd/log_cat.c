/* SPDX-License-Identifier: Apache-2.0 */
/* log_cat.c - `weir log cat`: records to stdout. */
#include <inttypes.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/clock.h>
#include <weir/store/base/signals.h>

#include "log_private.h"

#define CAT_BATCH        256u
#define CAT_OUTPUT_BYTES 65536u
#define CAT_POLL_US      100000 /* how often --follow looks */

typedef struct log_catting {
    weir_eventlog *log;
    weir_eventlog_reader **readers; /* one for each partition from `partition_first` on */
    uint32_t partition_first, partition_count;
    uint64_t left; /* records to print yet */
    bool json, follow;
    weir_buf out;
} log_catting;

/* --- printing ------------------------------------------------------------------------------------------------- */

static void log_cat_print_json(log_catting *cat, uint32_t partition, const weir_record *record) {
    char text[WEIR_TIME_TEXT_MAX];
    weir_json json = weir_json_begin(&cat->out);
    weir_json_object(&json);
    weir_json_key_u64(&json, "partition", partition);
    weir_json_key_u64(&json, "offset", record->offset);
    weir_json_key_text(&json, "time", text, weir_time_format(record->time_us, text));
    weir_json_key(&json, "key");
    if (record->key) {
        weir_json_text(&json, record->key, record->key_length);
    } else {
        weir_json_null(&json);
    }
    weir_json_key_text(&json, "value", record->value, record->value_length);
    weir_json_object_end(&json);
    weir_buf_text(&cat->out, "\n");
}

static weir_err log_cat_flush(log_catting *cat, size_t above) {
    weir_err err = weir_buf_err(&cat->out);
    if (err || cat->out.length <= above) return err;
    err = weir_cli_output(cat->out.bytes, cat->out.length);
    weir_buf_clear(&cat->out);
    return err;
}

/* Prints what one call of the reader gives. */
static weir_err log_cat_print_some(log_catting *cat, uint32_t index, size_t *countp) {
    weir_record records[CAT_BATCH];
    size_t capacity = cat->left < CAT_BATCH ? (size_t)cat->left : CAT_BATCH;
    weir_err err = weir_eventlog_reader_next(cat->readers[index], records, capacity, countp);
    for (size_t i = 0; !err && i < *countp; i++) {
        if (cat->json) {
            log_cat_print_json(cat, cat->partition_first + index, &records[i]);
        } else {
            weir_buf_append(&cat->out, records[i].value, records[i].value_length);
            weir_buf_text(&cat->out, "\n");
        }
        err = log_cat_flush(cat, CAT_OUTPUT_BYTES);
    }
    WEIR_ASSERT(*countp <= cat->left);
    cat->left -= *countp;
    return err;
}

/* One partition after the other, each to its durable end. */
static weir_err log_cat_print_all(log_catting *cat) {
    weir_err err = WEIR_OK;
    for (uint32_t i = 0; !err && i < cat->partition_count; i++) {
        size_t count = 1;
        while (!err && count && cat->left)
            err = log_cat_print_some(cat, i, &count);
    }
    return err;
}

/* --- opening -------------------------------------------------------------------------------------------------- */

static weir_err log_cat_open(weir_cli *cli, log_catting *cat) {
    const weir_eventlog_opts opts = {.read_only = true};
    const char *topic;
    uint64_t partition = 0;
    weir_err err = weir_cmd_log_topic(cli, &topic);
    if (!err) err = weir_cli_u64(cli, "count", 1, UINT64_MAX, &cat->left);
    if (!err) err = weir_eventlog_open(weir_cmd_log_folder(cli), topic, &opts, &cat->log);
    if (err) return err;
    uint32_t partitions = weir_eventlog_partitions(cat->log);
    err = weir_cli_u64(cli, "partition", 0, partitions - 1, &partition);
    if (err) return err;
    bool one = weir_cli_given(cli, "partition") || partitions == 1;
    if (weir_cli_given(cli, "from") && !one) {
        return WEIR_ERR(WEIR_EUSAGE,
                        "--from is an offset of one partition, and topic %s has %" PRIu32 "; name it with --partition",
                        topic, partitions);
    }
    cat->partition_first = (uint32_t)partition;
    cat->partition_count = one ? 1 : partitions;
    cat->readers = weir_calloc(cat->partition_count, sizeof *cat->readers);
    if (!cat->readers) return WEIR_NOMEM("for %" PRIu32 " readers", cat->partition_count);
    for (uint32_t i = 0; !err && i < cat->partition_count; i++) {
        weir_eventlog_partition_stats stats;
        uint32_t each = cat->partition_first + i;
        err = weir_eventlog_stats_get(cat->log, each, &stats);
        uint64_t from = err ? 0 : stats.offset_begin;
        if (!err) err = weir_cli_u64(cli, "from", 0, UINT64_MAX, &from);
        if (!err && from > stats.offset_durable) {
            err = WEIR_ERR(WEIR_EUSAGE, "--from is %" PRIu64 ", and partition %" PRIu32 " of topic %s ends at %" PRIu64,
                           from, each, topic, stats.offset_durable);
        }
        if (!err) err = weir_eventlog_reader_open(cat->log, each, from, &cat->readers[i]);
    }
    return err;
}

static weir_err log_cat_run(weir_cli *cli) {
    log_catting cat = {
        .left = UINT64_MAX, .json = weir_cli_given(cli, "json"), .follow = weir_cli_given(cli, "follow")};
    weir_err err = cat.follow ? weir_signals_install() : WEIR_OK; /* before anything is printed */
    if (!err) err = log_cat_open(cli, &cat);
    if (!err) err = log_cat_print_all(&cat);
    if (!err) err = log_cat_flush(&cat, 0);
    while (!err && cat.follow && cat.left && !weir_signals_wait(CAT_POLL_US)) {
        err = log_cat_print_all(&cat);
        if (!err) err = log_cat_flush(&cat, 0);
    }
    for (uint32_t i = 0; cat.readers && i < cat.partition_count; i++)
        weir_eventlog_reader_close(cat.readers[i]);
    weir_err_keep(&err, weir_eventlog_close(cat.log));
    weir_free(cat.readers);
    weir_buf_free(&cat.out);
    return err;
}

static const weir_option log_cat_options[] = {
    WEIR_CMD_LOG_PATH,
    {"partition", 0, "N", "only this partition (default: all, one after the other)", NULL},
    {"from", 0, "OFFSET", "begin here (default: at the first offset that is there)", NULL},
    {"count", 'n', "N", "at most so many records (default: all)", NULL},
    {"json", 'j', NULL, "partition, offset, time, key and value as one JSON object a record", NULL},
    {"follow", 'f', NULL, "wait for more, until interrupted", NULL},
    {0},
};

const weir_command weir_cmd_log_cat = {
    .name = "cat",
    .summary = "print the records of a topic",
    .positional = "TOPIC",
    .positional_min = 1,
    .positional_max = 1,
    .description =
        "Prints each value as a line. Shows only what has been acknowledged. In --json bytes that are not UTF-8 "
        "become U+FFFD.",
    .example = "weir log cat payments --count 10 --json\nweir log cat payments --partition 3 --from 1500 --follow",
    .options = log_cat_options,
    .run = log_cat_run,
};

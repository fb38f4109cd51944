/* SPDX-License-Identifier: Apache-2.0 */
/* log_ls.c - `weir log ls`: topics, partitions, offsets. */
#include <inttypes.h>
#include <string.h>

#include <weir/store/base/clock.h>
#include <weir/store/base/log.h>

#include "log_private.h"

typedef struct log_listing {
    const char *folder;
    bool json;
    int width; /* of the longest topic */
    uint64_t topics;
    weir_buf out;
    weir_err_kept first; /* of a topic that cannot be read */
} log_listing;

static void log_ls_row_json(log_listing *ls, const char *topic, uint64_t creation_id, uint32_t partition,
                            const weir_eventlog_partition_stats *stats) {
    char text[WEIR_TIME_TEXT_MAX];
    weir_json json = weir_json_begin(&ls->out);
    weir_json_object(&json);
    weir_json_key_string(&json, "topic", topic);
    const struct {
        const char *name;
        uint64_t value;
    } numbers[] = {
        {"creation_id", creation_id},          {"partition", partition},
        {"offset_begin", stats->offset_begin}, {"offset_durable", stats->offset_durable},
        {"offset_end", stats->offset_end},     {"bytes", stats->bytes},
        {"segments", stats->segments},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        weir_json_key_u64(&json, numbers[i].name, numbers[i].value);
    }
    weir_json_key(&json, "time_newest");
    if (stats->offset_durable > stats->offset_begin) weir_time_format(stats->time_last_us, text);
    weir_json_string(&json, stats->offset_durable > stats->offset_begin ? text : NULL);
    weir_json_object_end(&json);
    weir_buf_text(&ls->out, "\n");
}

static weir_err log_ls_topic(log_listing *ls, const char *topic) {
    weir_eventlog *log = NULL;
    const weir_eventlog_opts opts = {.read_only = true};
    weir_err err = weir_eventlog_open(ls->folder, topic, &opts, &log);
    for (uint32_t i = 0; !err && i < weir_eventlog_partitions(log); i++) {
        weir_eventlog_partition_stats stats;
        err = weir_eventlog_stats_get(log, i, &stats);
        if (err) break;
        if (ls->json) {
            log_ls_row_json(ls, topic, weir_eventlog_creation_id(log), i, &stats);
        } else {
            char text[WEIR_TIME_TEXT_MAX] = "-";
            if (stats.offset_durable > stats.offset_begin) weir_time_format(stats.time_last_us, text);
            weir_buf_printf(&ls->out,
                            "%-*s  %9" PRIu32 "  %12" PRIu64 "  %12" PRIu64 "  %12" PRIu64 "  %14" PRIu64 "  %8" PRIu64
                            "  %s\n",
                            ls->width, topic, i, stats.offset_begin, stats.offset_durable, stats.offset_end,
                            stats.bytes, stats.segments, text);
        }
    }
    weir_err_keep(&err, weir_eventlog_close(log));
    return err;
}

/* One topic that cannot be read hides none of the others. */
static weir_err log_ls_visit(void *context, const char *topic) {
    log_listing *ls = context;
    weir_err err = log_ls_topic(ls, topic);
    if (err && ls->first.err) weir_log_error("log.ls", err);
    if (err && !ls->first.err) weir_err_kept_set(&ls->first, err);
    return WEIR_OK;
}

static weir_err log_ls_measure(void *context, const char *topic) {
    log_listing *ls = context;
    int length = (int)strlen(topic);
    if (length > ls->width) ls->width = length;
    ls->topics++;
    return WEIR_OK;
}

static weir_err log_ls_run(weir_cli *cli) {
    log_listing ls = {.folder = weir_cmd_log_folder(cli), .json = weir_cli_given(cli, "json"), .width = 5};
    weir_err err = weir_eventlog_topics(ls.folder, log_ls_measure, &ls);
    if (!err && ls.topics == 0) {
        WEIR_LOG(INFO, "log.empty", "there are no topics in this folder", WEIR_TEXT("path", ls.folder));
        return WEIR_OK;
    }
    if (!ls.json) {
        weir_buf_printf(&ls.out, "%-*s  %9s  %12s  %12s  %12s  %14s  %8s  %s\n", ls.width, "TOPIC", "PARTITION",
                        "BEGIN", "DURABLE", "END", "BYTES", "SEGMENTS", "NEWEST");
    }
    if (!err) err = weir_eventlog_topics(ls.folder, log_ls_visit, &ls);
    if (!err) err = weir_buf_err(&ls.out);
    if (!err) err = weir_cli_output(ls.out.bytes, ls.out.length);
    weir_err_keep(&err, weir_err_kept_get(&ls.first));
    weir_buf_free(&ls.out);
    return err;
}

static const weir_option log_ls_options[] = {
    WEIR_CMD_LOG_PATH,
    {"json", 'j', NULL, "one JSON object a partition", NULL},
    {0},
};

const weir_command weir_cmd_log_ls = {
    .name = "ls",
    .summary = "list topics, partitions and their offsets",
    .description = "BEGIN is the first offset that is still there, DURABLE the first that has not been acknowledged. "
                   "Takes no lock: another process may append meanwhile.",
    .example = "weir log ls\nweir log ls --path /var/lib/weir/eventlog --json",
    .options = log_ls_options,
    .run = log_ls_run,
};

/* SPDX-License-Identifier: Apache-2.0 */
/* log_verify.c - `weir log verify`: reads everything, names what is damaged. */
#include <inttypes.h>

#include "log_private.h"

typedef struct verify_context {
    const char *folder;
    const char *topic;
    uint64_t damages;
} verify_context;

static weir_err print(weir_buf *line) {
    weir_err err = weir_buf_err(line);
    if (!err) err = weir_cli_output(line->bytes, line->length);
    weir_buf_free(line);
    return err;
}

static weir_err print_damage(void *context, weir_err damage) {
    const verify_context *verify = context;
    char sentence[WEIR_ERR_SENTENCE_MAX];
    weir_buf line = {0};
    weir_err_sentence(damage, sentence, sizeof sentence);
    weir_buf_printf(&line, "%s: %s\n", verify->topic, sentence);
    return print(&line);
}

static weir_err print_summary(const char *topic, const weir_eventlog_verify_stats *stats) {
    weir_buf line = {0};
    weir_buf_printf(&line,
                    "%s: %" PRIu64 " partitions, %" PRIu64 " segments, %" PRIu64 " records, %" PRIu64 " bytes, %" PRIu64
                    " bytes not acknowledged, %" PRIu64 " damages\n",
                    topic, stats->partitions, stats->segments, stats->records, stats->bytes, stats->tail_bytes,
                    stats->damages);
    return print(&line);
}

/* A topic that cannot even be begun is one damage; the other topics are read all the same. */
static weir_err verify_topic(void *context, const char *topic) {
    verify_context *verify = context;
    weir_eventlog_verify_stats stats = {0};
    verify->topic = topic;
    weir_err err = weir_eventlog_verify(verify->folder, topic, print_damage, verify, &stats);
    if (weir_err_is(err, WEIR_ECORRUPT) || weir_err_is(err, WEIR_EVERSION)) {
        stats.damages++;
        err = print_damage(verify, err);
    }
    verify->damages += stats.damages;
    return err ? err : print_summary(topic, &stats);
}

static weir_err run(weir_cli *cli) {
    verify_context verify = {.folder = weir_cmd_log_folder(cli)};
    const char *topic;
    weir_err err = weir_cmd_log_topic(cli, &topic);
    if (err) return err;
    err = topic ? verify_topic(&verify, topic) : weir_eventlog_topics(verify.folder, verify_topic, &verify);
    if (!err && verify.damages) {
        err = WEIR_ERR(WEIR_ECORRUPT, "%" PRIu64 " damages; bring the files that are named back from a copy",
                       verify.damages);
    }
    return err;
}

static const weir_option options[] = {WEIR_CMD_LOG_PATH, {0}};

const weir_command weir_cmd_log_verify = {
    .name = "verify",
    .summary = "check every record of a topic, or of all",
    .positional = "[TOPIC]",
    .positional_min = 0,
    .positional_max = 1,
    .description =
        "Reads every header, checksum, offset and mark and names file and position of each damage; exit status "
        "65 if there is any. Takes no lock and changes nothing.",
    .example = "weir log verify\nweir log verify payments",
    .options = options,
    .run = run,
};

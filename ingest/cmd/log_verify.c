/* SPDX-License-Identifier: Apache-2.0 */
/* log_verify.c - `weir log verify`: reads everything, names what is damaged. */
#include <inttypes.h>

#include <weir/store/cmd/store.h>

#include "log_private.h"

typedef struct log_verifying {
    const char *folder;
    const char *topic;
    uint64_t damages;
} log_verifying;

static weir_err log_verify_print_damage(void *context, weir_err damage) {
    const log_verifying *verify = context;
    char sentence[WEIR_ERR_SENTENCE_MAX];
    weir_buf line = {0};
    weir_err_sentence(damage, sentence, sizeof sentence);
    weir_buf_printf(&line, "%s: %s\n", verify->topic, sentence);
    return weir_cmd_print(&line);
}

/* A topic that cannot even be opened counts as one damage; the other topics are read all the same. */
static weir_err log_verify_topic(void *context, const char *topic) {
    log_verifying *verify = context;
    weir_eventlog_verify_stats stats = {0};
    verify->topic = topic;
    weir_err err = weir_eventlog_verify(verify->folder, topic, log_verify_print_damage, verify, &stats);
    if (weir_err_is(err, WEIR_ECORRUPT) || weir_err_is(err, WEIR_EVERSION)) {
        stats.damages++;
        err = log_verify_print_damage(verify, err);
    }
    verify->damages += stats.damages;
    if (err) return err;
    weir_buf line = {0};
    weir_buf_printf(&line,
                    "%s: %" PRIu64 " partitions, %" PRIu64 " segments, %" PRIu64 " records, %" PRIu64 " bytes, %" PRIu64
                    " bytes not acknowledged, %" PRIu64 " damages\n",
                    topic, stats.partitions, stats.segments, stats.records, stats.bytes, stats.tail_bytes,
                    stats.damages);
    return weir_cmd_print(&line);
}

static weir_err log_verify_run(weir_cli *cli) {
    log_verifying verify = {.folder = weir_cmd_log_folder(cli)};
    const char *topic;
    weir_err err = weir_cmd_log_topic(cli, &topic);
    if (err) return err;
    err = topic ? log_verify_topic(&verify, topic) : weir_eventlog_topics(verify.folder, log_verify_topic, &verify);
    if (!err && verify.damages) {
        err = WEIR_ERR(WEIR_ECORRUPT, "%" PRIu64 " damages; bring the files that are named back from a copy",
                       verify.damages);
    }
    return err;
}

static const weir_option log_verify_options[] = {WEIR_CMD_LOG_PATH, {0}};

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
    .options = log_verify_options,
    .run = log_verify_run,
};

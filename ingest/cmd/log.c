/* SPDX-License-Identifier: Apache-2.0 */
/* log.c - `weir log`: the table of its commands, and what they share. */
#include "log_private.h"

const char *weir_cmd_log_folder(const weir_cli *cli) {
    const char *path = weir_cli_text(cli, "path");
    return path ? path : weir_config_text(weir_cli_config(cli), WEIR_CONFIG_EVENTLOG_PATH);
}

weir_err weir_cmd_log_topic(const weir_cli *cli, const char **topicp) {
    *topicp = weir_cli_positional(cli, 0);
    if (!*topicp || weir_eventlog_topic_valid(*topicp)) return WEIR_OK;
    return WEIR_ERR(WEIR_EUSAGE,
                    "'%.40s' cannot be the name of a topic: it has 1 to %u of a-z, A-Z, 0-9, '.', '_', '-'", *topicp,
                    WEIR_EVENTLOG_TOPIC_MAX);
}

static const weir_command *const log_commands[] = {&weir_cmd_log_ls, &weir_cmd_log_cat, &weir_cmd_log_append,
                                                   &weir_cmd_log_verify, NULL};

const weir_command weir_command_log = {
    .name = "log",
    .summary = "the built-in event log: list, read, append, verify",
    .description = "The event log is what Kafka is to a cluster, for one machine without Kafka: topics of partitions, "
                   "offsets from 0 on, records that are durable once they are acknowledged.",
    .example = "weir simulate payments --count 1000 | weir log append payments --key-field card\nweir log ls",
    .subcommands = log_commands,
};

/* SPDX-License-Identifier: Apache-2.0 */
/* ingest.c - `weir ingest`: the table of its commands. */
#include "dlq_private.h"

extern const weir_command weir_command_ingest;

static const weir_command *const dlq_commands[] = {&weir_cmd_dlq_list, &weir_cmd_dlq_show, &weir_cmd_dlq_replay, NULL};

static const weir_command dlq_command = {
    .name = "dlq",
    .summary = "dead letters: messages that could not be taken",
    .description =
        "A message that the schema cannot take is set aside with the reason, its place and its bytes, and the "
        "others go on. Put the schema or the message right, then replay it.",
    .example = "weir ingest dlq list\nweir ingest dlq show 0\nweir ingest dlq replay --all",
    .subcommands = dlq_commands,
};

static const weir_command *const ingest_commands[] = {&dlq_command, NULL};

const weir_command weir_command_ingest = {
    .name = "ingest",
    .summary = "what became of the messages that were read",
    .example = "weir ingest dlq list --json",
    .subcommands = ingest_commands,
};

/* SPDX-License-Identifier: Apache-2.0 */
/* dlq_private.h - what the files behind `weir ingest dlq` share. */
#ifndef WEIR_CMD_DLQ_PRIVATE_H
#define WEIR_CMD_DLQ_PRIVATE_H

#include <weir/ingest/pipeline/dead_letter.h>
#include <weir/store/base/buf.h>
#include <weir/store/base/err.h>
#include <weir/store/cli/cli.h>
#include <weir/store/schema/schema.h>

#define WEIR_CMD_DLQ_PATH \
    { "path", 'p', "DIR", "folder of the event log (default: eventlog.path of the configuration)", NULL }
#define WEIR_CMD_DLQ_FILTERS                                                        \
    {"source", 's', "NAME", "only letters of this source of the schema", NULL},     \
        {"partition", 0, "N", "only letters of this partition", NULL},              \
        {"reason", 'r', "TEXT", "only letters whose reason has this text", NULL}, { \
        "since", 0, "TIME", "only letters set aside at this time or later", NULL    \
    }

extern const weir_command weir_cmd_dlq_list, weir_cmd_dlq_show, weir_cmd_dlq_replay;

/* A letter with what the topics say around it; borrowed for the call that hands it out. */
typedef struct weir_cmd_letter {
    weir_dead_letter letter;
    uint64_t number;
    int64_t put_us;      /* when it was set aside */
    int64_t replayed_us; /* or 0                  */
} weir_cmd_letter;

/* The letters that the options of WEIR_CMD_DLQ_FILTERS leave, for a reader of one thread. */
typedef struct weir_cmd_letters {
    const char *folder;
    const char *source, *reason; /* NULL: any                    */
    uint64_t partition;          /* UINT64_MAX: any              */
    int64_t since_us;            /* INT64_MIN: any               */
    weir_eventlog *log;          /* NULL: there are none         */
    struct weir_cmd_replays *replays;
} weir_cmd_letters;

/* Opens the topics for reading; a topic that is not there has no letters.  WEIR_ENOMEM, and what the log says. */
weir_err weir_cmd_letters_open(const weir_cli *cli, weir_cmd_letters *letters);
/* Reads the options of WEIR_CMD_DLQ_FILTERS.  WEIR_EUSAGE. */
weir_err weir_cmd_letters_filter(const weir_cli *cli, weir_cmd_letters *letters);
void weir_cmd_letters_close(weir_cmd_letters *letters);
typedef weir_err (*weir_cmd_letter_visit)(void *context, const weir_cmd_letter *letter);
weir_err weir_cmd_letters_walk(weir_cmd_letters *letters, weir_cmd_letter_visit visit, void *context);
/* The one letter of this number, whatever the filters.  WEIR_ENOTFOUND says how to list those that there are. */
weir_err weir_cmd_letters_one(weir_cmd_letters *letters, uint64_t number, weir_cmd_letter_visit visit, void *context);

/* A positional argument as a letter's number.  WEIR_EUSAGE. */
weir_err weir_cmd_letter_number(const weir_cli *cli, size_t index, uint64_t *numberp);

#endif /* WEIR_CMD_DLQ_PRIVATE_H */

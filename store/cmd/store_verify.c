/* SPDX-License-Identifier: Apache-2.0 */
/* store_verify.c - `weir store verify`: every record by itself, and against a replay of the log. */
#include <inttypes.h>

#include "store_private.h"

static weir_err run_verify(weir_cli *cli) {
    const char *log_folder = weir_config_text(weir_cli_config(cli), WEIR_CONFIG_EVENTLOG_PATH);
    weir_cmd_store store;
    weir_buf out = {0};
    uint64_t records;
    weir_err err = weir_cmd_store_open(cli, true, &store);
    if (err) return err;
    err = weir_graph_verify(store.graph, &records);
    if (!err) weir_buf_printf(&out, "%" PRIu64 " records are well formed\n", records);
    if (weir_cli_text(cli, "log")) log_folder = weir_cli_text(cli, "log");
    if (!err && weir_cli_given(cli, "against-log")) err = weir_cmd_store_compare(store.graph, log_folder, &out);
    weir_err_keep(&err, weir_cmd_store_close(&store));
    weir_err_keep(&err, weir_cmd_store_output(&out));
    return err;
}

static const weir_option options[] = {
    WEIR_CMD_STORE_PATH,
    {"against-log", 0, NULL, "compare with a replay of the event log, too", NULL},
    {"log", 'l', "DIR", "folder of the log (default: eventlog.path of the configuration)", NULL},
    {0}};

const weir_command weir_cmd_store_verify = {
    .name = "verify",
    .summary = "check every record of the store, and that it is what the log says",
    .description =
        "Reads every block, key and row. With --against-log it also maps the log's events from the first one on into a "
        "plain list, and compares each record with what the store has below its sealed offsets; exit status 65 if "
        "anything is missing, different or more. All records of one shard are held in memory for that, and the log "
        "must "
        "still have its first events.",
    .example = "weir store verify\nweir store verify --against-log",
    .options = options,
    .run = run_verify,
};

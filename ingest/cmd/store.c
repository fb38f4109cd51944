/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store.c - `weir store`: the table of its commands; and verify, which checks each record by itself and against a
 * replay of the log.
 */
#include <inttypes.h>

#include <weir/store/cmd/store.h>

#include "store_private.h"

extern const weir_command weir_command_store;

static weir_err cmd_store_verify(weir_cli *cli) {
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
    weir_err_keep(&err, weir_cmd_print(&out));
    return err;
}

static const weir_option verify_options[] = {
    WEIR_STORE_OPTION_PATH,
    {"against-log", 0, NULL, "also compare with a replay of the event log", NULL},
    {"log", 'l', "DIR", "folder of the log (default: eventlog.path of the configuration)", NULL},
    {0}};

static const weir_command verify_command = {
    .name = "verify",
    .summary = "check every record of the store, and that it is what the log says",
    .description =
        "Reads every block, key and row. With --against-log it also maps the log's events from the first one on into a "
        "plain list, and compares each record with what the store has below its sealed offsets; exit status 65 if "
        "anything is missing, different or superfluous. All records of one shard are held in memory for that, and the "
        "log must still have its first events.",
    .example = "weir store verify\nweir store verify --against-log",
    .options = verify_options,
    .run = cmd_store_verify,
};

static const weir_command *const cmd_store_commands[] = {&weir_store_command_stats,
                                                         &weir_store_command_get,
                                                         &weir_store_command_neighbors,
                                                         &verify_command,
                                                         &weir_store_command_checkpoint,
                                                         &weir_store_command_restore,
                                                         NULL};

const weir_command weir_command_store = {
    .name = "store",
    .summary = "the graph's store: ask it, check it, copy it",
    .description =
        "Works on the folder that weir serve writes. What has not been sealed yet is not in it: ask the server for "
        "that.",
    .example = "weir store stats\nweir store verify --against-log",
    .subcommands = cmd_store_commands,
};

/* SPDX-License-Identifier: Apache-2.0 */
/* store.c - what the commands of `weir store` share; `weir store checkpoint` and `restore`. */
#include <weir/store/base/thread.h>
#include <weir/store/cmd/store.h>

const char *weir_cmd_store_folder(const weir_cli *cli) {
    const char *path = weir_cli_text(cli, "path");
    return path ? path : weir_config_text(weir_cli_config(cli), WEIR_CONFIG_STORE_PATH);
}

weir_err weir_cmd_store_open(const weir_cli *cli, bool read_only, weir_cmd_store *storep) {
    const char *folder = weir_cmd_store_folder(cli);
    const weir_graph_opts opts = {.memory_bytes = weir_config_u64(weir_cli_config(cli), WEIR_CONFIG_STORE_MEMORY),
                                  .future_us = weir_config_us(weir_cli_config(cli), WEIR_CONFIG_INGEST_FUTURE_MAX),
                                  .read_only = read_only};
    WEIR_ON_ROLE(MAIN);
    *storep = (weir_cmd_store){0};
    weir_err err = weir_graph_schema_of(folder, &storep->schema);
    if (weir_err_is(err, WEIR_ENOTFOUND)) {
        err = WEIR_ERR(WEIR_ENOTFOUND, "there is no store in %s; name its folder with --path", folder);
    }
    if (!err) err = weir_graph_open(folder, storep->schema, &opts, &storep->graph);
    if (err) weir_schema_free(storep->schema);
    return err;
}

weir_err weir_cmd_store_close(weir_cmd_store *store) {
    weir_err err = weir_graph_close(store->graph);
    weir_schema_free(store->schema);
    return err;
}

weir_err weir_cmd_print(weir_buf *out) {
    weir_err err = weir_buf_err(out);
    if (!err && out->length) err = weir_cli_output(out->bytes, out->length);
    weir_buf_free(out);
    return err;
}

/* --- checkpoint, restore ---------------------------------------------------------------------------------------- */

static weir_err cmd_store_checkpoint(weir_cli *cli) {
    weir_cmd_store store;
    weir_buf out = {0};
    weir_err err = weir_cmd_store_open(cli, false, &store);
    if (err) return err;
    const char *folder = weir_cli_positional(cli, 0);
    err = weir_cli_given(cli, "hard-links") ? weir_graph_checkpoint_linked(store.graph, folder)
                                            : weir_graph_checkpoint(store.graph, folder);
    weir_err_keep(&err, weir_cmd_store_close(&store));
    if (err) return err;
    weir_buf_printf(&out, "checkpoint of %s in %s%s\n", weir_cmd_store_folder(cli), folder,
                    weir_graph_checkpoint_shares(folder) ? ", by hard links: what damages one damages both" : "");
    return weir_cmd_print(&out);
}

static weir_err cmd_store_restore(weir_cli *cli) {
    weir_buf out = {0};
    weir_err err = weir_graph_restore(weir_cli_positional(cli, 0), weir_cmd_store_folder(cli));
    if (err) return err;
    weir_buf_printf(&out, "restored %s from %s\n", weir_cmd_store_folder(cli), weir_cli_positional(cli, 0));
    return weir_cmd_print(&out);
}

static const weir_option restore_options[] = {WEIR_STORE_OPTION_PATH, {0}};
static const weir_option checkpoint_options[] = {
    WEIR_STORE_OPTION_PATH,
    {"hard-links", 0, NULL, "share files with the store: takes no space, but is not a backup (default: copy them)",
     NULL},
    {0}};

const weir_command weir_store_command_checkpoint = {
    .name = "checkpoint",
    .summary = "copy the store into a new folder, with a manifest",
    .positional = "FOLDER",
    .positional_min = 1,
    .positional_max = 1,
    .description = "The copy is complete once it bears its name. With --hard-links its files are the store's own where "
                   "the file system allows it, and a file SHARED in it says so. No server may be using the store.",
    .example = "weir store checkpoint backup-2026-11-21",
    .options = checkpoint_options,
    .run = cmd_store_checkpoint,
};

const weir_command weir_store_command_restore = {
    .name = "restore",
    .summary = "make a store from a checkpoint",
    .positional = "FOLDER",
    .positional_min = 1,
    .positional_max = 1,
    .description =
        "Checks every file against the checkpoint's manifest first. The store's folder must not exist yet. A "
        "server that opens it reads the log on from where the checkpoint was made.",
    .example = "weir store restore backup-2026-11-21 --path weir-data/store",
    .options = restore_options,
    .run = cmd_store_restore,
};

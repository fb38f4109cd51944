/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store.h - the commands of `weir store` that need the store alone, and what commands on a store share.
 *
 * The group is put together in ingest/cmd, which adds the commands that need the event log, too.
 *
 * THREADS: [main].
 */
#ifndef WEIR_STORE_CMD_STORE_H
#define WEIR_STORE_CMD_STORE_H

#include <stdbool.h>

#include <weir/store/base/buf.h>
#include <weir/store/base/err.h>
#include <weir/store/cli/cli.h>
#include <weir/store/graph/graph.h>

#ifdef __cplusplus
extern "C" {
#endif

extern const weir_command weir_store_command_stats, weir_store_command_get, weir_store_command_neighbors,
    weir_store_command_checkpoint, weir_store_command_restore;

#define WEIR_STORE_OPTION_PATH \
    { "path", 'p', "DIR", "folder of the store (default: store.path of the configuration)", NULL }

/* A plain value. */
typedef struct weir_cmd_store {
    weir_schema *schema; /* as stored */
    weir_graph *graph;
} weir_cmd_store;

/* --path, or the configuration's store.path. */
const char *weir_cmd_store_folder(const weir_cli *cli);
/* Opens it under its own schema; on an error there is nothing to close.
 * WEIR_ENOTFOUND there is no store; WEIR_ELIMIT the path is too long; and what weir_graph_open says. */
weir_err weir_cmd_store_open(const weir_cli *cli, bool read_only, weir_cmd_store *storep);
weir_err weir_cmd_store_close(weir_cmd_store *store);
/* Writes the buffer to stdout and frees it, on an error, too. For any command. */
weir_err weir_cmd_print(weir_buf *out);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_STORE_CMD_STORE_H */

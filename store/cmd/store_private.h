/* SPDX-License-Identifier: Apache-2.0 */
/* store_private.h - what the files behind `weir store` share. */
#ifndef WEIR_CMD_STORE_PRIVATE_H
#define WEIR_CMD_STORE_PRIVATE_H

#include <weir/store/base/buf.h>
#include <weir/store/base/err.h>
#include <weir/store/cli/cli.h>
#include <weir/store/graph/graph.h>

#define WEIR_CMD_STORE_PATH \
    { "path", 'p', "DIR", "folder of the store (default: store.path of the configuration)", NULL }

extern const weir_command weir_cmd_store_stats, weir_cmd_store_get, weir_cmd_store_neighbors, weir_cmd_store_verify,
    weir_cmd_store_checkpoint, weir_cmd_store_restore;

typedef struct weir_cmd_store {
    weir_schema *schema; /* as stored */
    weir_graph *graph;
} weir_cmd_store;

/* --path, or the configuration's. */
const char *weir_cmd_store_folder(const weir_cli *cli);
/* Opens it under its own schema; on an error there is nothing to close. */
weir_err weir_cmd_store_open(const weir_cli *cli, bool read_only, weir_cmd_store *storep);
weir_err weir_cmd_store_close(weir_cmd_store *store);
/* Writes the buffer to stdout and frees it. */
weir_err weir_cmd_store_output(weir_buf *out);
/* Compares every record with a replay of the event log in log_folder; differences go to out.
 * WEIR_ECORRUPT there are some. */
weir_err weir_cmd_store_compare(weir_graph *graph, const char *log_folder, weir_buf *out);

#endif /* WEIR_CMD_STORE_PRIVATE_H */

/* SPDX-License-Identifier: Apache-2.0 */
/* store_private.h - what the files behind `weir store verify` share. */
#ifndef WEIR_CMD_STORE_PRIVATE_H
#define WEIR_CMD_STORE_PRIVATE_H

#include <weir/store/base/buf.h>
#include <weir/store/base/err.h>
#include <weir/store/graph/graph.h>

/* Compares every record with a replay of the event log in log_folder; the first differences, and a line of counts,
 * go to out.  WEIR_ECORRUPT there are differences; WEIR_EDATA the log is not all of what the store was fed from. */
weir_err weir_cmd_store_compare(weir_graph *graph, const char *log_folder, weir_buf *out);

#endif /* WEIR_CMD_STORE_PRIVATE_H */

/* SPDX-License-Identifier: Apache-2.0 */
/* serve_private.h - what the files of `weir serve` share. */
#ifndef WEIR_HTTP_CMD_SERVE_PRIVATE_H
#define WEIR_HTTP_CMD_SERVE_PRIVATE_H

#include <weir/ingest/eventlog/eventlog.h>
#include <weir/store/graph/graph.h>

#define WEIR_SERVE_PATH_MAX 4096u

/* retain.c: what the log's options let go of and every shard has sealed, now and then; *retained_usp is the last time,
 * 0 at first.  [main] */
void weir_serve_retain(weir_graph *graph, weir_eventlog *log, const char *topic, int64_t *retained_usp);

#endif /* WEIR_HTTP_CMD_SERVE_PRIVATE_H */

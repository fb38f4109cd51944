/* SPDX-License-Identifier: Apache-2.0 */
/* serve_private.h - what the files of `weir serve` share. */
#ifndef WEIR_HTTP_CMD_SERVE_PRIVATE_H
#define WEIR_HTTP_CMD_SERVE_PRIVATE_H

#include <weir/ingest/eventlog/eventlog.h>
#include <weir/store/conf/config.h>
#include <weir/store/graph/graph.h>
#include <weir/trainer/schedule/schedule.h>

#define WEIR_SERVE_PATH_MAX 4096u

/* The nights that a server starts by itself. */
typedef struct weir_serve_nights weir_serve_nights;

typedef struct weir_serve_nights_opts {
    const weir_config *config; /* these are borrowed for the handle's life       */
    const char *data;          /* NULL: the store's place is a setting's         */
    const char *store, *models, *nights;
    const char *url; /* the server's own */
} weir_serve_nights_opts;

/* *nightsp is NULL when nightly.cron is empty.  WEIR_ECONFIG nightly.cron, nightly.train; WEIR_ENOMEM.  [main] */
weir_err weir_serve_nights_open(const weir_serve_nights_opts *opts, weir_serve_nights **nightsp);
weir_scheduler *weir_serve_nights_scheduler(const weir_serve_nights *nights);
/* Ends a night that runs; it can be gone on with. NULL is allowed. */
void weir_serve_nights_close(weir_serve_nights *nights);

/* retain.c: what the log's options let go of and every shard has sealed, now and then; *retained_usp is the last time,
 * 0 at first.  [main] */
void weir_serve_retain(weir_graph *graph, weir_eventlog *log, const char *topic, int64_t *retained_usp);

#endif /* WEIR_HTTP_CMD_SERVE_PRIVATE_H */

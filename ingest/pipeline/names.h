/* SPDX-License-Identifier: Apache-2.0 */
/*
 * names.h - which puts must carry the vertex's name, beyond those that the graph calls new.
 *
 * The graph answers "new" once for a name and takes it to be on its way. Two things make that untrue: the event may be
 * refused for another of its names, and a deletion may stand between the first put and this one. Both are rare, so the
 * vertices concerned are a small table, and while it is empty asking it costs one load.
 */
#ifndef WEIR_INGEST_NAMES_H
#define WEIR_INGEST_NAMES_H

#include <stdbool.h>

#include <weir/store/graph.h>

typedef struct weir_names_claimed weir_names_claimed;

weir_err weir_names_claimed_open(weir_graph *graph, weir_names_claimed **namesp); /* WEIR_ENOMEM */
void weir_names_claimed_close(weir_names_claimed *names);
/* *freep false: another name has this id. *newp: the graph waits for this put. *wantedp: it must carry the name.
 * Errors are those of weir_graph_name_claim.  [ingest] */
weir_err weir_names_claim(weir_names_claimed *names, const weir_mutation *put, bool *freep, bool *newp, bool *wantedp);
/* A put that was called new is not handed over.  WEIR_ENOMEM.  [ingest] */
weir_err weir_names_owe(weir_names_claimed *names, weir_vertex vertex);
/* The vertex is deleted up to this time: puts carry the name until one of a later time has.  WEIR_ENOMEM.  [ingest] */
weir_err weir_names_deleted(weir_names_claimed *names, weir_vertex vertex, int64_t time_us);
/* A put of this time that carries the name is handed over.  [ingest] */
void weir_names_put(weir_names_claimed *names, weir_vertex vertex, int64_t time_us);

#endif /* WEIR_INGEST_NAMES_H */

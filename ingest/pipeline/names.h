/* SPDX-License-Identifier: Apache-2.0 */
/*
 * names.h - which puts must carry the vertex's name, beyond those that the graph calls new.
 *
 * The graph answers "new" once for a name and takes it to be on its way. That is untrue when the event is refused for
 * another of its names: which is rare, so the vertices concerned are a small table, and while it is empty asking it
 * costs one load.
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
/* A put that carries the name is handed over.  [ingest] */
void weir_names_put(weir_names_claimed *names, weir_vertex vertex);

#endif /* WEIR_INGEST_NAMES_H */

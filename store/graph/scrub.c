/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scrub.c - every file of the store, read from the disk; a damaged identity of a shard, which else only a start reads,
 * is written anew.
 */
#include <weir/store/base/log.h>
#include <weir/store/graph/repair.h>

#include "graph_private.h"

typedef struct graph_scrub {
    weir_graph_pace pace;
    void *context;
    bool ended;
} graph_scrub;

static bool graph_scrub_pace(void *context, uint64_t bytes) {
    graph_scrub *walk = context;
    walk->ended = !walk->pace(walk->context, bytes);
    return !walk->ended;
}

/* What it says is known as long as the process lives. */
static weir_err graph_scrub_identity(const weir_graph *graph, uint32_t shard) {
    char path[WEIR_GRAPH_PATH_MAX];
    weir_err err = graph->identity ? weir_graph_identity_check(graph, shard) : WEIR_OK;
    if (!err || graph->read_only) return err;
    weir_log_error("graph.identity_written_anew", err);
    err = weir_graph_shard_path(graph->folder, shard, path);
    return err ? err : weir_graph_identity_write(graph, shard, path);
}

weir_err weir_graph_scrub(weir_graph *graph, weir_graph_pace pace, void *context) {
    graph_scrub walk = {pace, context, false};
    weir_err_kept first = {0}; /* the walk may take hours */
    for (uint32_t i = 0; !walk.ended && i < graph->shard_count; i++) {
        weir_err err = graph_scrub_identity(graph, i);
        if (!err) err = weir_engine_scrub(graph->shards[i]->engine, graph_scrub_pace, &walk);
        if (err && !first.err) weir_err_kept_set(&first, weir_err_prefix(err, "shard %u", i));
    }
    return weir_err_kept_get(&first);
}

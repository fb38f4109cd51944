/* SPDX-License-Identifier: Apache-2.0 */
/*
 * names_load.c - the filter of names learns what the cold store has, while the graph is already at work.
 *
 * Opening does not wait for it: a server must be ready seconds after a crash, whatever it holds. Until it is through,
 * a claim asks the store as if there were no filter. Names that are claimed meanwhile are added by the claim itself, so
 * at the end everything is in it that ever was.
 */
#include <weir/base/log.h>
#include <weir/store/key.h>

#include "graph_private.h"

#define NAMES_A_LOOK 1024u /* between two looks at whether to stop */

/* *addedp counts; WEIR_ECLOSED: asked to stop; WEIR_ELIMIT: more than the filter is good for. */
static weir_err add_name(weir_graph *graph, const void *key, size_t length, size_t *addedp) {
    weir_vertex vertex;
    if (!weir_name_key_read(key, length, &vertex))
        return WEIR_ERR(WEIR_ECORRUPT, "the key of a name is damaged; restore a checkpoint");
    weir_names_stored(graph->names, vertex);
    if (++*addedp > weir_names_filter_capacity(graph->names))
        return WEIR_ERR(WEIR_ELIMIT, "the store has more names than the filter of names is good for");
    if (*addedp % NAMES_A_LOOK == 0 && atomic_load_explicit(&graph->closing, memory_order_relaxed))
        return WEIR_ERR(WEIR_ECLOSED, "the graph is being closed");
    return WEIR_OK;
}

static weir_err load_shard(weir_graph *graph, weir_shard *shard, size_t *addedp) {
    static const char kind = 'N';
    weir_engine_cursor *cursor;
    weir_err err = weir_engine_cursor_open(shard->engine, WEIR_ENGINE_SCAN, &cursor);
    if (err) return err;
    weir_engine_cursor_seek(cursor, &kind, 1);
    for (; !err && weir_engine_cursor_valid(cursor); weir_engine_cursor_next(cursor)) {
        size_t length;
        const char *key = weir_engine_cursor_key(cursor, &length);
        if (length == 0 || key[0] != kind) break;
        err = add_name(graph, key, length, addedp);
    }
    weir_err_keep(&err, weir_engine_cursor_err(cursor));
    weir_engine_cursor_close(cursor);
    return err;
}

static void load(void *context) {
    weir_graph *graph = context;
    size_t added = 0;
    weir_err err = WEIR_OK;
    for (uint32_t i = 0; !err && i < graph->shard_count; i++)
        err = load_shard(graph, graph->shards[i], &added);
    if (!err) weir_names_filter_complete(graph->names);
    if (err && !weir_err_is(err, WEIR_ECLOSED)) weir_log_error("graph.names_filter", err); /* slower, not wrong */
}

weir_err weir_graph_names_load(weir_graph *graph) {
    return weir_thread_start("names", WEIR_ROLE_WORKER, load, graph, &graph->names_loader);
}

void weir_graph_names_load_stop(weir_graph *graph) {
    atomic_store_explicit(&graph->closing, true, memory_order_relaxed);
    weir_thread_join(graph->names_loader);
    graph->names_loader = NULL;
}

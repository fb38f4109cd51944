/* SPDX-License-Identifier: Apache-2.0 */
/*
 * filling.c - whether a store that is made from a log has once had all that was in the log then.
 *
 *   FOLDER/FILLING   from before the first shard is made, until what was there to be read is applied and sealed
 *
 * Until then "no such payment" would mean no more than "not read yet", and if the log cannot be read to its end, for
 * ever. So a server asks weir_graph_filling before it answers. Later starts need not: a store that was whole once is a
 * graph of the past, and freshness says of when. A checkpoint has the mark if the store had it before it was sealed.
 */
#include "graph_private.h"

static const char words[] = "This store does not have yet all that was in its log when it was made.\n";

weir_err weir_graph_filling_write(const char *folder) {
    char path[WEIR_GRAPH_PATH_MAX];
    weir_err err = weir_graph_path(folder, WEIR_GRAPH_FILLING, path);
    return err ? err : weir_file_replace(path, words, sizeof words - 1);
}

weir_err weir_graph_filling_begin(weir_graph *graph) {
    weir_err err = weir_graph_filling_write(graph->folder);
    if (!err) atomic_store(&graph->filling, true);
    return err;
}

weir_err weir_graph_filling_read(weir_graph *graph) {
    char path[WEIR_GRAPH_PATH_MAX];
    weir_err err = weir_graph_path(graph->folder, WEIR_GRAPH_FILLING, path);
    if (!err) atomic_store(&graph->filling, weir_path_exists(path));
    return err;
}

bool weir_graph_filling(const weir_graph *graph) {
    return atomic_load_explicit(&graph->filling, memory_order_relaxed);
}

/* Sealed first: else a kill would leave a store that says that it is whole and has lost what was in memory. This
 * process may answer before that, unless something lies in a pile, where readers do not find it. */
weir_err weir_graph_filled(weir_graph *graph) {
    char path[WEIR_GRAPH_PATH_MAX];
    bool piled = false;
    if (!weir_graph_filling(graph)) return WEIR_OK;
    for (uint32_t i = 0; i < graph->shard_count; i++) {
        weir_shard_unpile(graph->shards[i]);
        piled = piled || weir_shard_is_piled(graph->shards[i]);
    }
    if (!piled) atomic_store(&graph->filling, false);
    weir_err err = weir_graph_path(graph->folder, WEIR_GRAPH_FILLING, path);
    if (!err) err = weir_graph_seal(graph);
    if (err) return err;
    for (uint32_t i = 0; i < graph->shard_count; i++)
        WEIR_ASSERT(!weir_shard_is_piled(graph->shards[i]));
    atomic_store(&graph->filling, false);
    return weir_file_remove(path);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * health.c - what of a store is not well, in its own words, for as long as it lasts.
 *
 *   part    what it means                                        how it ends
 *   apply   the owner tries again (no memory), or has stopped    by itself; stopped: by a new start
 *   seal    the last try to seal has failed                      by itself: it is tried every second
 *   files   RocksDB has stopped, or has read something damaged   by itself, once the cause is gone, or by a repair
 *   repair  how far the repair of damaged files is, or why not    by itself, with the damage
 */
#include "graph_private.h"

static weir_err health_tell(const weir_shard *shard, const char *part, bool stopped, weir_err err,
                            weir_graph_trouble_visit visit, void *context) {
    const weir_graph_trouble trouble = {.shard = shard->index, .part = part, .stopped = stopped, .err = err};
    return err ? visit(context, &trouble) : WEIR_OK;
}

static weir_err health_of_shard(weir_shard *shard, weir_graph_trouble_visit visit, void *context) {
    weir_mutex_lock(&shard->mutex);
    weir_err failed = weir_err_kept_get(&shard->failed);
    weir_err stall = weir_err_kept_get(&shard->stall);
    weir_err seal = weir_err_kept_get(&shard->seal_err);
    weir_err repair = weir_err_kept_get(&shard->repair);
    weir_mutex_unlock(&shard->mutex);
    weir_err err = health_tell(shard, "apply", failed != WEIR_OK, failed ? failed : stall, visit, context);
    if (!err) err = health_tell(shard, "seal", false, seal, visit, context);
    if (!err) err = health_tell(shard, "files", false, weir_engine_health(shard->engine), visit, context);
    return err ? err : health_tell(shard, "repair", false, repair, visit, context);
}

weir_err weir_graph_troubles(weir_graph *graph, weir_graph_trouble_visit visit, void *context) {
    weir_err err = WEIR_OK;
    for (uint32_t i = 0; !err && i < graph->shard_count; i++)
        err = health_of_shard(graph->shards[i], visit, context);
    return err;
}

static weir_err health_take_first(void *context, const weir_graph_trouble *trouble) {
    weir_err *firstp = context;
    *firstp = weir_err_prefix(trouble->err, "shard %u of the store, %s%s", trouble->shard, trouble->part,
                              trouble->stopped ? ", has stopped" : "");
    return *firstp; /* ends the walk */
}

weir_err weir_graph_health(weir_graph *graph) {
    weir_err first = WEIR_OK;
    (void)weir_graph_troubles(graph, health_take_first, &first);
    return first;
}

static weir_err health_take_stopped(void *context, const weir_graph_trouble *trouble) {
    return trouble->stopped ? health_take_first(context, trouble) : WEIR_OK;
}

weir_err weir_graph_stopped(weir_graph *graph) {
    weir_err first = WEIR_OK;
    (void)weir_graph_troubles(graph, health_take_stopped, &first);
    return first;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deletions.c - all deletions of vertices, of all shards, each once.
 *
 * Every shard has them all, or nearly: they are sealed one after the other. So the shards are walked side by side, and
 * what several have at their heads is one deletion.
 */
#include <weir/store/base/alloc.h>

#include "graph_private.h"

typedef struct deletions_head {
    weir_deleted_walk *walk;
    bool found;
    weir_vertex vertex;
    int64_t time_us;
} deletions_head;

/* Of one vertex: they come newest first, and are told oldest first. */
typedef struct deletions_times {
    int64_t *of;
    size_t count, capacity;
} deletions_times;

static weir_err deletions_keep(deletions_times *t, int64_t time_us) {
    if (t->count && t->of[t->count - 1] == time_us) return WEIR_OK;
    if (!WEIR_GROW(t->of, t->capacity, t->count)) return WEIR_NOMEM("for the deletions of a vertex");
    t->of[t->count++] = time_us;
    return WEIR_OK;
}

/* The shard that is next; NULL: all are at their ends. */
static deletions_head *deletions_first_of(deletions_head *heads, uint32_t count) {
    deletions_head *first = NULL;
    for (deletions_head *h = heads; h < heads + count; h++) {
        if (!h->found) continue;
        bool before =
            !first || h->vertex < first->vertex || (h->vertex == first->vertex && h->time_us > first->time_us);
        if (before) first = h;
    }
    return first;
}

static weir_err deletions_merge(deletions_head *heads, uint32_t count, deletions_times *t,
                                weir_graph_deletion_visit visit, void *context) {
    weir_err err = WEIR_OK;
    for (deletions_head *first = deletions_first_of(heads, count); !err && first;) {
        weir_vertex vertex = first->vertex;
        for (t->count = 0; !err && first && first->vertex == vertex; first = deletions_first_of(heads, count)) {
            err = deletions_keep(t, first->time_us);
            if (!err) err = weir_deleted_walk_next(first->walk, &first->found, &first->vertex, &first->time_us);
        }
        for (size_t i = t->count; !err && i > 0; i--)
            err = visit(context, vertex, t->of[i - 1]);
    }
    return err;
}

weir_err weir_graph_deletions(weir_graph *graph, weir_graph_deletion_visit visit, void *context) {
    deletions_times t = {0};
    deletions_head *heads = weir_calloc(graph->shard_count, sizeof *heads);
    weir_err err = heads ? WEIR_OK : WEIR_NOMEM("while walking over the deletions");
    for (uint32_t i = 0; !err && i < graph->shard_count; i++) {
        err = weir_deleted_walk_open(graph->shards[i]->deleted, &heads[i].walk);
        if (!err) err = weir_deleted_walk_next(heads[i].walk, &heads[i].found, &heads[i].vertex, &heads[i].time_us);
    }
    if (!err) err = deletions_merge(heads, graph->shard_count, &t, visit, context);
    for (uint32_t i = 0; heads && i < graph->shard_count; i++)
        weir_deleted_walk_close(heads[i].walk);
    weir_free(heads);
    weir_free(t.of);
    return err;
}

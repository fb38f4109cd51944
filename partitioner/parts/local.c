/* SPDX-License-Identifier: Apache-2.0 */
/* local.c - which vertices a part has, and in which order: those that it owns, then step by step what they lead to. */
#include <stdlib.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>

#include "plan.h"

static weir_err local_add(weir_parts_here *h, int64_t vertex) {
    if (!WEIR_GROW(h->vertices, h->capacity, h->count)) return WEIR_NOMEM("for the vertices of a part");
    h->place_of[vertex] = (int64_t)h->count;
    h->vertices[h->count++] = vertex;
    return WEIR_OK;
}

static int local_ascending(const void *a, const void *b) {
    const int64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* PARTS-P4: whichever list found a vertex first, those of one step are in the order of their numbers, which stand in
 * their place while they are sorted. */
static void local_sort(const weir_parts_plan *plan, uint32_t type, weir_parts_here *h, size_t begin) {
    if (begin == h->count) return;
    for (size_t place = begin; place < h->count; place++)
        h->vertices[place] = plan->new_of[type][h->vertices[place]];
    qsort(h->vertices + begin, h->count - begin, sizeof *h->vertices, local_ascending);
    for (size_t place = begin; place < h->count; place++) {
        h->vertices[place] = plan->old_of[type][h->vertices[place]];
        h->place_of[h->vertices[place]] = (int64_t)place;
    }
}

/* Adds what is not here yet of these lists of the vertices that the last step brought. Both types may be the same. */
static weir_err local_follow(const weir_snapshot_edges *e, const weir_parts_here *from, weir_parts_here *to) {
    weir_err err = WEIR_OK;
    for (size_t place = from->stepped; place < from->listed; place++) {
        int64_t v = from->vertices[place];
        for (int64_t at = e->indptr[v]; !err && at < e->indptr[v + 1]; at++) {
            if (to->place_of[e->neighbors[at]] == WEIR_PARTS_ELSEWHERE) err = local_add(to, e->neighbors[at]);
        }
        if (err) return err;
    }
    return WEIR_OK;
}

static weir_err local_step(weir_parts_local *local, const weir_parts_plan *plan) {
    const weir_schema *schema = weir_snapshot_schema(local->snapshot);
    weir_err err = WEIR_OK;
    for (uint32_t type = 0; type < local->types; type++)
        local->here[type].listed = local->here[type].count;
    for (uint32_t r = 0; !err && r < 2 * weir_schema_relation_count(schema); r++) {
        const weir_schema_relation *relation = weir_schema_relation_at(schema, r / 2);
        bool out = r % 2 == WEIR_OUT;
        err = local_follow(weir_snapshot_edges_of(local->snapshot, r / 2, r % 2),
                           &local->here[out ? relation->from : relation->to],
                           &local->here[out ? relation->to : relation->from]);
    }
    for (uint32_t type = 0; type < local->types; type++) {
        weir_parts_here *h = &local->here[type];
        h->stepped = h->listed;
        local_sort(plan, type, h, h->stepped);
    }
    return err;
}

weir_err weir_parts_local_fill(weir_parts_local *local, const weir_parts_plan *plan, uint32_t part, uint32_t depth) {
    weir_err err = WEIR_OK;
    WEIR_ASSERT(part < plan->parts && plan->types == local->types);
    for (uint32_t type = 0; !err && type < local->types; type++) {
        weir_parts_here *h = &local->here[type];
        for (size_t place = 0; place < h->count; place++)
            h->place_of[h->vertices[place]] = WEIR_PARTS_ELSEWHERE;
        h->count = h->stepped = 0;
        for (int64_t n = plan->starts[type][part]; !err && n < plan->starts[type][part + 1]; n++)
            err = local_add(h, plan->old_of[type][n]);
        h->own = h->count;
    }
    for (uint32_t step = 0; !err && step <= depth; step++)
        err = local_step(local, plan);
    return err;
}

weir_err weir_parts_local_open(const weir_snapshot *snapshot, weir_parts_local *local) {
    *local =
        (weir_parts_local){.snapshot = snapshot, .types = weir_schema_vertex_count(weir_snapshot_schema(snapshot))};
    local->here = weir_calloc((size_t)local->types + 1, sizeof *local->here);
    bool all = local->here != NULL;
    for (uint32_t type = 0; all && type < local->types; type++) {
        uint64_t count = weir_snapshot_vertices_of(snapshot, type)->count;
        int64_t *place_of = local->here[type].place_of = weir_calloc(count + 1, sizeof *place_of);
        all = place_of != NULL;
        for (uint64_t v = 0; all && v < count; v++)
            place_of[v] = WEIR_PARTS_ELSEWHERE;
    }
    if (all) return WEIR_OK;
    weir_parts_local_close(local);
    return WEIR_NOMEM("for the places of vertices in a part");
}

void weir_parts_local_close(weir_parts_local *local) {
    for (uint32_t type = 0; local->here && type < local->types; type++) {
        weir_free(local->here[type].vertices);
        weir_free(local->here[type].place_of);
    }
    weir_free(local->here);
    *local = (weir_parts_local){0};
}

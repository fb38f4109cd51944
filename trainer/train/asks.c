/* SPDX-License-Identifier: Apache-2.0 */
/* asks.c - rows of a block sorted by their owners: counted, then laid out, in two passes over them. */
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>

#include "asks.h"

#define ASKS_NO_MEMORY "for a batch; lower --batch or the fan-outs"

uint32_t weir_train_owner(const weir_train_owners *owners, uint32_t type, uint64_t vertex) {
    if (owners->ranks == 1) return 0;
    if (owners->part) return weir_part_owner(owners->part, type, weir_part_number(owners->part, type, vertex));
    return (uint32_t)(weir_snapshot_vertices_of(owners->snapshot, type)->ids[vertex].low % owners->ranks);
}

uint32_t weir_train_target_owner(const weir_train_owners *owners, const weir_targets *targets, uint64_t target) {
    const weir_target *t = &targets->targets[target];
    return targets->ranks ? targets->ranks[target] : weir_train_owner(owners, t->type, (uint64_t)t->vertex);
}

weir_err weir_train_asked(const weir_train_owners *owners, const weir_train_ask *ask, uint64_t *vertexp) {
    bool own = ask->type < weir_schema_vertex_count(weir_snapshot_schema(owners->snapshot));
    *vertexp = ask->vertex;
    if (own && owners->part) {
        const int64_t *starts = weir_part_starts(owners->part, ask->type);
        own = ask->vertex >= (uint64_t)starts[owners->rank] && ask->vertex < (uint64_t)starts[owners->rank + 1];
        *vertexp = ask->vertex - (uint64_t)starts[owners->rank];
    } else if (own) {
        own = ask->vertex < weir_snapshot_vertices_of(owners->snapshot, ask->type)->count &&
              weir_train_owner(owners, ask->type, ask->vertex) == owners->rank;
    }
    if (own) return WEIR_OK;
    return WEIR_ERR(WEIR_ECORRUPT,
                    "another rank asked for vertex %llu of type %u, which this rank does not own; all ranks need the "
                    "same snapshot, or parts of one cutting",
                    (unsigned long long)ask->vertex, ask->type);
}

static weir_err asks_grow(weir_train_asks *a, size_t rows) {
    if (rows <= a->row_capacity) return WEIR_OK;
    uint32_t *own = weir_realloc_array(a->own_rows, rows, sizeof *own);
    if (own) a->own_rows = own;
    uint32_t *owner_of = weir_realloc_array(a->owner_of, rows, sizeof *owner_of);
    if (owner_of) a->owner_of = owner_of;
    if (!own || !owner_of) return WEIR_NOMEM(ASKS_NO_MEMORY);
    a->row_capacity = rows;
    return WEIR_OK;
}

weir_err weir_train_asks_make(weir_train_asks *a, const weir_train_owners *owners, const weir_block_view *view) {
    uint64_t remote = 0;
    uint32_t own = 0;
    weir_buf_clear(&a->asks);
    memset(a->bytes, 0, owners->ranks * sizeof *a->bytes);
    weir_err err = view ? asks_grow(a, view->inputs) : WEIR_OK;
    if (err || !view) return err;

    /* Whose each is. A rank's own rows are in the order of their places already. */
    for (uint32_t type = 0; type < view->types; type++) {
        weir_block_range range = view->input_ranges[type];
        for (uint32_t row = range.begin; row < range.end; row++) {
            uint64_t vertex = view->vertices[view->input_nodes[row]];
            err = weir_snapshot_check_vertex(owners->snapshot, type, vertex);
            if (err) return err;
            uint32_t owner = a->owner_of[row] = weir_train_owner(owners, type, vertex);
            WEIR_ASSERT(owner < owners->ranks);
            if (owner == owners->rank)
                a->own_rows[own++] = row - range.begin;
            else
                a->bytes[owner] += sizeof(weir_train_ask);
        }
        a->own_ends[type] = own;
    }

    /* What the others own, to each at its place. */
    for (uint32_t rank = 0; rank < owners->ranks; rank++) {
        a->places[rank] = remote;
        remote += a->bytes[rank];
    }
    WEIR_ASSERT(own + remote / sizeof(weir_train_ask) == view->inputs); /* TRAIN-E4 */
    char *asks = weir_buf_reserve(&a->asks, remote + 1);
    if (!asks) return weir_buf_err(&a->asks);
    for (uint32_t type = 0; remote && type < view->types; type++) {
        weir_block_range range = view->input_ranges[type];
        for (uint32_t row = range.begin; row < range.end; row++) {
            uint32_t owner = a->owner_of[row], node = view->input_nodes[row];
            if (owner == owners->rank) continue;
            uint64_t vertex = view->vertices[node];
            if (owners->part) vertex = (uint64_t)weir_part_number(owners->part, type, vertex);
            const weir_train_ask ask = {vertex, view->before_us[view->groups[node]], type, row - range.begin};
            memcpy(asks + a->places[owner], &ask, sizeof ask);
            a->places[owner] += sizeof ask;
        }
    }
    weir_buf_commit(&a->asks, remote);
    return WEIR_OK;
}

weir_err weir_train_asks_open(const weir_train_owners *owners, uint32_t types, weir_train_asks *asks) {
    *asks = (weir_train_asks){.bytes = weir_calloc(owners->ranks, sizeof *asks->bytes),
                              .places = weir_calloc(owners->ranks, sizeof *asks->places),
                              .own_ends = weir_calloc(types + 1, sizeof *asks->own_ends)};
    WEIR_ASSERT(owners->rank < owners->ranks);
    if (asks->bytes && asks->places && asks->own_ends) return WEIR_OK;
    weir_train_asks_close(asks);
    return WEIR_NOMEM(ASKS_NO_MEMORY);
}

void weir_train_asks_close(weir_train_asks *asks) {
    weir_buf_free(&asks->asks);
    weir_free(asks->bytes);
    weir_free(asks->places);
    weir_free(asks->own_rows);
    weir_free(asks->own_ends);
    weir_free(asks->owner_of);
    *asks = (weir_train_asks){.bytes = NULL};
}

/* SPDX-License-Identifier: Apache-2.0 */
/* asks.c - rows of a block sorted by their owners: counted, then laid out, in two passes over them. */
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>

#include "asks.h"
#include "cache.h"
#include "form.h"
#include "lookahead.h"
#include "remote.h"

#define ASKS_NO_MEMORY "for a batch; lower --batch or the fan-outs"
#define ASKS_NONE      UINT32_MAX
#define ASKS_ARENA_MAX ((size_t)1 << 34)
#define ASKS_AHEAD     16u /* rows between the prefetch of what names a vertex and its use */

uint32_t weir_train_owner(const weir_train_owners *owners, uint32_t type, uint64_t vertex) {
    if (owners->ranks == 1) return 0;
    if (owners->part) return weir_part_owner(owners->part, type, weir_part_number(owners->part, type, vertex));
    return (uint32_t)(weir_snapshot_vertices_of(owners->snapshot, type)->ids[vertex].low % owners->ranks);
}

weir_err weir_train_name_of(const weir_train_owners *owners, const weir_train_remote *remote, uint32_t type,
                            uint64_t vertex, weir_train_name *namep) {
    const weir_snapshot_vertices *v = weir_snapshot_vertices_of(owners->snapshot, type);
    if (vertex < v->count) {
        namep->id = v->ids[vertex].low;
        namep->number = owners->part ? (uint64_t)weir_part_number(owners->part, type, vertex) : vertex;
        return WEIR_OK;
    }
    const weir_buf *told = remote ? &remote->vertices[type] : NULL;
    if (!told || vertex - v->count >= told->length / sizeof *namep)
        return weir_snapshot_check_vertex(owners->snapshot, type, vertex);
    memcpy(namep, told->bytes + (vertex - v->count) * sizeof *namep, sizeof *namep);
    return WEIR_OK;
}

uint32_t weir_train_target_owner(const weir_train_owners *owners, const weir_targets *targets, uint64_t target) {
    if (targets->owners) return weir_targets_owner(targets, target);
    const weir_target *t = &targets->targets[target]; /* all are held */
    return weir_train_owner(owners, t->type, (uint64_t)t->vertex);
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
    uint16_t *parts_of = weir_realloc_array(a->parts_of, rows, sizeof *parts_of);
    if (parts_of) a->parts_of = parts_of;
    weir_train_ask *hits = weir_realloc_array(a->hits, rows, sizeof *hits);
    if (hits) a->hits = hits;
    if (!own || !owner_of || !parts_of || !hits) return WEIR_NOMEM(ASKS_NO_MEMORY);
    a->row_capacity = rows;
    return WEIR_OK;
}

/* Where this rank has what holds of the row, or WEIR_TRAIN_CACHE_MISS. *readp: how far the lookahead's word on this
 * block is read. */
static uint32_t asks_find(weir_train_asks *a, weir_train_kept kept, uint32_t type, uint64_t vertex, int64_t before_us,
                          uint32_t row, size_t *readp) {
    weir_train_read read;
    if (!kept.lookahead) return weir_train_cache_find(kept.cache, type, vertex, before_us);
    WEIR_ASSERT(*readp + sizeof read <= a->reads.length);
    memcpy(&read, a->reads.bytes + *readp, sizeof read);
    *readp += sizeof read;
    WEIR_ASSERT(read.row == weir_train_lookahead_row(kept.lookahead, type, vertex)); /* it is drawn as it was before */
    if (read.there) return read.place;
    const weir_train_ask keep = {.vertex = read.place, .type = (uint16_t)type, .row = row};
    if (read.place != WEIR_TRAIN_NO_PLACE) weir_buf_append(&a->keeps, &keep, sizeof keep);
    return WEIR_TRAIN_CACHE_MISS;
}

/* Notes which ask was the last one for this vertex before: what holds of the row may be the same. */
static weir_err asks_look_back(weir_train_asks *a, weir_train_ask *ask, uint32_t place) {
    uint32_t *earlier = (uint32_t *)(void *)a->earlier.bytes + place;
    bool new;
    *earlier = ASKS_NONE;
    if (!(ask->parts & WEIR_TRAIN_FIXED)) return WEIR_OK;
    weir_train_last *last = weir_train_last_of(&a->asked, ask->type, ask->vertex, &new);
    if (!last) return WEIR_NOMEM(ASKS_NO_MEMORY);
    if (!new) {
        ask->parts |= WEIR_TRAIN_AGAIN;
        *earlier = (uint32_t)last->what;
    }
    last->what = place;
    return WEIR_OK;
}

/* What the others own, to each at its place. bytes: of all. */
static weir_err asks_lay_out(weir_train_asks *a, const weir_train_owners *owners, const weir_train_remote *remote,
                             const weir_block_view *view, uint64_t bytes) {
    uint64_t place = 0;
    for (uint32_t rank = 0; rank < owners->ranks; rank++) {
        a->places[rank] = place;
        place += a->bytes[rank];
    }
    WEIR_ASSERT(place == bytes);
    char *asks = weir_buf_reserve(&a->asks, bytes + 1);
    weir_buf_clear(&a->earlier);
    if (!asks) return weir_buf_err(&a->asks);
    if (a->arena) {
        weir_arena_reset(a->arena);
        a->asked = (weir_table){.arena = a->arena};
        if (!weir_buf_reserve(&a->earlier, bytes / sizeof(weir_train_ask) * sizeof(uint32_t) + 1))
            return weir_buf_err(&a->earlier);
    }
    for (uint32_t type = 0; bytes && type < view->types; type++) {
        weir_block_range range = view->input_ranges[type];
        for (uint32_t row = range.begin; row < range.end; row++) {
            uint32_t owner = a->owner_of[row], node = view->input_nodes[row];
            weir_train_name name;
            if (!a->parts_of[row]) continue;
            weir_err err = weir_train_name_of(owners, remote, type, view->vertices[node], &name);
            if (err) return err;
            weir_train_ask ask = {.vertex = name.number,
                                  .before_us = view->before_us[view->groups[node]],
                                  .event = node < view->targets ? view->events[node] : WEIR_SAMPLE_NO_TARGET,
                                  .type = (uint16_t)type,
                                  .parts = a->parts_of[row],
                                  .row = row - range.begin};
            if (a->arena) err = asks_look_back(a, &ask, (uint32_t)(a->places[owner] / sizeof ask));
            if (err) return err;
            memcpy(asks + a->places[owner], &ask, sizeof ask);
            a->places[owner] += sizeof ask;
        }
    }
    weir_buf_commit(&a->asks, bytes);
    if (a->arena) weir_buf_commit(&a->earlier, bytes / sizeof(weir_train_ask) * sizeof(uint32_t));
    return WEIR_OK;
}

/* Vertices of a block lie anywhere, and so does what is known of each. */
static void asks_ahead(const weir_train_owners *owners, weir_train_kept kept, uint32_t type, uint64_t vertex) {
    const weir_snapshot_vertices *v = weir_snapshot_vertices_of(owners->snapshot, type);
    if (vertex >= v->count) return;
    __builtin_prefetch(&v->ids[vertex]);
    if (owners->part) weir_part_number_ahead(owners->part, type, vertex);
    weir_train_cache_ahead(kept.cache, type, vertex);
}

weir_err weir_train_asks_make(weir_train_asks *a, const weir_train_owners *owners, const weir_nn_shape *shape,
                              weir_train_kept kept, const weir_train_remote *remote, const weir_block_view *view) {
    uint64_t bytes = 0;
    size_t read = 0; /* bytes of a->reads */
    uint32_t own = 0;
    a->hit_count = a->partly = 0;
    weir_buf_clear(&a->asks);
    weir_buf_clear(&a->keeps);
    memset(a->bytes, 0, owners->ranks * sizeof *a->bytes);
    weir_err err = view ? asks_grow(a, view->inputs) : WEIR_OK;
    if (err || !view) return err;

    /* Whose each is. A rank's own rows are in the order of their places already. */
    for (uint32_t type = 0; type < view->types; type++) {
        weir_block_range range = view->input_ranges[type];
        uint64_t here = weir_snapshot_vertices_of(owners->snapshot, type)->count;
        const bool bare = weir_train_row_bytes(weir_nn_vertex(shape, type)) == 0;
        for (uint32_t row = range.begin; row < range.end; row++) {
            const uint32_t node = view->input_nodes[row];
            uint64_t vertex = view->vertices[node];
            uint32_t place = WEIR_TRAIN_CACHE_MISS, later = row + ASKS_AHEAD;
            weir_train_name name;
            if (later < range.end) asks_ahead(owners, kept, type, view->vertices[view->input_nodes[later]]);
            err = weir_train_name_of(owners, remote, type, vertex, &name);
            if (err) return err;
            uint32_t owner = owners->part ? weir_part_owner(owners->part, type, (int64_t)name.number)
                                          : weir_train_owner(owners, type, vertex);
            WEIR_ASSERT(owner < owners->ranks);
            if (bare) owner = owners->rank;
            a->owner_of[row] = owner;
            a->parts_of[row] = owner == owners->rank ? 0 : WEIR_TRAIN_ROW;
            if (owner == owners->rank) {
                a->own_rows[own++] = row - range.begin;
                continue;
            }
            if (vertex < here)
                place = asks_find(a, kept, type, vertex, view->before_us[view->groups[node]], row - range.begin, &read);
            if (place != WEIR_TRAIN_CACHE_MISS) {
                a->hits[a->hit_count++] =
                    (weir_train_ask){.vertex = place, .type = (uint16_t)type, .row = row - range.begin};
                a->parts_of[row] = weir_train_cache_moves(kept.cache, type) ? WEIR_TRAIN_MOVING : 0;
                a->partly += a->parts_of[row] != 0;
            }
            if (a->parts_of[row]) a->bytes[owner] += sizeof(weir_train_ask);
        }
        a->own_ends[type] = own;
    }

    for (uint32_t rank = 0; rank < owners->ranks; rank++)
        bytes += a->bytes[rank];
    WEIR_ASSERT(own + a->hit_count - a->partly + bytes / sizeof(weir_train_ask) == view->inputs); /* TRAIN-E4 */
    WEIR_ASSERT(!kept.lookahead || read == a->reads.length);
    err = weir_buf_err(&a->keeps);
    return err ? err : asks_lay_out(a, owners, remote, view, bytes);
}

weir_err weir_train_asks_open(const weir_train_owners *owners, uint32_t types, bool timed, weir_train_asks *asks) {
    *asks = (weir_train_asks){.bytes = weir_calloc(owners->ranks, sizeof *asks->bytes),
                              .places = weir_calloc(owners->ranks, sizeof *asks->places),
                              .own_ends = weir_calloc(types + 1, sizeof *asks->own_ends)};
    WEIR_ASSERT(owners->rank < owners->ranks);
    weir_err err = asks->bytes && asks->places && asks->own_ends ? WEIR_OK : WEIR_NOMEM(ASKS_NO_MEMORY);
    if (!err && timed && owners->ranks > 1) err = weir_arena_open(ASKS_ARENA_MAX, &asks->arena);
    if (err) weir_train_asks_close(asks);
    return err;
}

void weir_train_asks_close(weir_train_asks *asks) {
    weir_buf_free(&asks->asks);
    weir_buf_free(&asks->keeps);
    weir_buf_free(&asks->reads);
    weir_buf_free(&asks->earlier);
    weir_arena_close(asks->arena);
    weir_free(asks->bytes);
    weir_free(asks->places);
    weir_free(asks->own_rows);
    weir_free(asks->own_ends);
    weir_free(asks->owner_of);
    weir_free(asks->parts_of);
    weir_free(asks->hits);
    *asks = (weir_train_asks){.bytes = NULL};
}

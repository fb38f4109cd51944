/* SPDX-License-Identifier: Apache-2.0 */
/* lookahead.c - the turns of makers that share what is kept, and the rows themselves. */
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/thread.h>

#include "form.h"
#include "lookahead.h"

#define LOOKAHEAD_NO_MEMORY "for rows that stay for coming batches; lower --cache"
#define LOOKAHEAD_BATCHES   8u /* at least: looking further saves few more rows (RESULTS.md of the benches) */

struct weir_train_lookahead {
    const weir_nn_shape *shape;
    weir_train_owners owners;
    uint64_t *begins; /* of each type: its first vertex among the rows of the lists */
    uint32_t horizon;
    char *rows; /* a row a place, numbers before slots, each with the room of the longest type's */
    size_t row_bytes;
    weir_mutex mutex; /* of what follows */
    weir_cond turned;
    uint64_t told, left; /* batches */
    weir_train_soonest *soonest;
};

weir_err weir_train_lookahead_open(const weir_train_cache_opts *o, uint32_t makers, weir_train_lookahead **aheadp) {
    uint32_t types = weir_nn_types(o->shape);
    uint64_t vertices = 0, places = weir_train_cache_rows(o);
    *aheadp = NULL;
    weir_train_lookahead *a = weir_calloc(1, sizeof *a);
    if (!a) return WEIR_NOMEM(LOOKAHEAD_NO_MEMORY);
    weir_mutex_init(&a->mutex, WEIR_RANK_LEAF, "rows that stay");
    weir_cond_init(&a->turned);
    a->shape = o->shape;
    a->owners = o->owners;
    a->horizon = (LOOKAHEAD_BATCHES + makers - 1) / makers * makers;
    a->begins = weir_calloc(types, sizeof *a->begins);
    weir_err err = a->begins ? WEIR_OK : WEIR_NOMEM(LOOKAHEAD_NO_MEMORY);
    for (uint32_t type = 0; !err && type < types; type++) {
        size_t bytes = weir_train_row_bytes(weir_nn_vertex(o->shape, type));
        a->begins[type] = vertices;
        vertices += weir_snapshot_vertices_of(o->owners.snapshot, type)->count;
        if (bytes > a->row_bytes) a->row_bytes = bytes;
    }
    if (!err && vertices >= WEIR_TRAIN_NO_PLACE / 2)
        err = WEIR_ERR(WEIR_ELIMIT, "looking ahead is for fewer than 2^31 vertices of a rank; take more ranks, or "
                                    "another --cache-policy");
    if (places > vertices) places = vertices;
    if (!err) err = weir_train_soonest_open((uint32_t)vertices, (uint32_t)places, a->horizon, &a->soonest);
    if (!err && !(a->rows = weir_calloc(places + 1, a->row_bytes))) err = WEIR_NOMEM(LOOKAHEAD_NO_MEMORY);
    if (err) {
        weir_train_lookahead_close(a);
        return err;
    }
    *aheadp = a;
    return WEIR_OK;
}

void weir_train_lookahead_close(weir_train_lookahead *ahead) {
    if (!ahead) return;
    weir_train_soonest_close(ahead->soonest);
    weir_cond_destroy(&ahead->turned);
    weir_mutex_destroy(&ahead->mutex);
    weir_free(ahead->begins);
    weir_free(ahead->rows);
    weir_free(ahead);
}

uint32_t weir_train_lookahead_horizon(const weir_train_lookahead *ahead) {
    return ahead ? ahead->horizon : 0;
}

uint32_t weir_train_lookahead_row(const weir_train_lookahead *ahead, uint32_t type, uint64_t vertex) {
    return (uint32_t)(ahead->begins[type] + vertex);
}

weir_err weir_train_lookahead_list(const weir_train_lookahead *ahead, const weir_block_view *view, weir_buf *rows) {
    for (uint32_t type = 0; type < view->types; type++) {
        if (weir_train_row_bytes(weir_nn_vertex(ahead->shape, type)) == 0) continue; /* nobody is asked */
        uint64_t here = weir_snapshot_vertices_of(ahead->owners.snapshot, type)->count;
        for (uint32_t row = view->input_ranges[type].begin; row < view->input_ranges[type].end; row++) {
            uint64_t vertex = view->vertices[view->input_nodes[row]];
            if (vertex >= here || weir_train_owner(&ahead->owners, type, vertex) == ahead->owners.rank) continue;
            const uint32_t listed = weir_train_lookahead_row(ahead, type, vertex);
            weir_buf_append(rows, &listed, sizeof listed);
        }
    }
    return weir_buf_err(rows);
}

weir_err weir_train_lookahead_tell(weir_train_lookahead *ahead, uint64_t batch, const weir_buf *rows, weir_buf *reads) {
    WEIR_ON_ROLE(WORKER);
    weir_mutex_lock(&ahead->mutex);
    while (ahead->told < batch)
        weir_cond_wait(&ahead->turned, &ahead->mutex);
    WEIR_ASSERT(ahead->told == batch);
    weir_err err = weir_train_soonest_list(ahead->soonest, (const uint32_t *)(const void *)rows->bytes,
                                           rows->length / sizeof(uint32_t));
    if (!err && batch >= ahead->horizon) err = weir_train_soonest_take(ahead->soonest, reads);
    ahead->told++;
    weir_cond_broadcast(&ahead->turned);
    weir_mutex_unlock(&ahead->mutex);
    return err;
}

void weir_train_lookahead_enter(weir_train_lookahead *ahead, uint64_t batch) {
    WEIR_ON_ROLE(WORKER);
    weir_mutex_lock(&ahead->mutex);
    while (ahead->left < batch)
        weir_cond_wait(&ahead->turned, &ahead->mutex);
    WEIR_ASSERT(ahead->left == batch);
    weir_mutex_unlock(&ahead->mutex);
}

void weir_train_lookahead_leave(weir_train_lookahead *ahead) {
    weir_mutex_lock(&ahead->mutex);
    ahead->left++;
    weir_cond_broadcast(&ahead->turned);
    weir_mutex_unlock(&ahead->mutex);
}

void weir_train_lookahead_get(const weir_train_lookahead *ahead, uint32_t place, uint32_t type, weir_real *numbers,
                              uint32_t *slots) {
    const weir_nn_inputs *inputs = weir_nn_vertex(ahead->shape, type);
    const char *row = ahead->rows + place * ahead->row_bytes;
    memcpy(numbers, row, inputs->width * sizeof *numbers);
    memcpy(slots, row + inputs->width * sizeof *numbers, inputs->category_count * sizeof *slots);
}

void weir_train_lookahead_put(weir_train_lookahead *ahead, uint32_t place, uint32_t type, const weir_real *numbers,
                              const uint32_t *slots) {
    const weir_nn_inputs *inputs = weir_nn_vertex(ahead->shape, type);
    char *row = ahead->rows + place * ahead->row_bytes;
    memcpy(row, numbers, inputs->width * sizeof *numbers);
    memcpy(row + inputs->width * sizeof *numbers, slots, inputs->category_count * sizeof *slots);
}

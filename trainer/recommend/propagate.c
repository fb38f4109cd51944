/* SPDX-License-Identifier: Apache-2.0 */
/* propagate.c - layer after layer over all vertices: each row is the weighted sum of those that it has met. */
#include <string.h>

#include <weir/store/base/assert.h>

#include "recommend_private.h"

#define PROPAGATE_ROWS 256u /* of a part */

/* One layer of one side: rows of out from those of in. */
typedef struct propagate_layer {
    const weir_recommend_propagation *p;
    const float *in;
    float *out;
    bool first, last;
} propagate_layer;

static uint32_t propagate_user_parts(const weir_recommend_propagation *p) {
    return (p->pairs->users + PROPAGATE_ROWS - 1) / PROPAGATE_ROWS;
}

static void propagate_part(void *context, uint32_t part, uint32_t thread) {
    const propagate_layer *l = context;
    const weir_recommend_propagation *p = l->p;
    const weir_recommend_pairs *pairs = p->pairs;
    const weir_kernels *kernels = weir_kernels_cpu();
    const uint32_t user_parts = propagate_user_parts(p), width = p->width;
    const bool of_users = part < user_parts;
    const uint32_t begin = (of_users ? part : part - user_parts) * PROPAGATE_ROWS;
    const uint32_t rows = of_users ? pairs->users : pairs->items;
    const uint32_t count = rows - begin < PROPAGATE_ROWS ? rows - begin : PROPAGATE_ROWS;
    const size_t items_at = (size_t)pairs->users * width;
    const size_t at = (size_t)begin * width + (of_users ? 0 : items_at), cells = (size_t)count * width;
    (void)thread;
    const uint32_t *offsets = (of_users ? pairs->user_offsets : pairs->item_offsets) + begin;
    const weir_segments segments = {.count = count,
                                    .offsets = offsets,
                                    .entries = offsets[count],
                                    .index = of_users ? pairs->user_items : pairs->item_users};
    kernels->segment_sum(kernels, &segments, of_users ? pairs->user_weights : pairs->item_weights, width,
                         of_users ? l->in + items_at : l->in, width, l->out + at, width);
    if (l->first) memcpy(p->out + at, p->x + at, cells * sizeof *p->out);
    if (p->sums && !of_users) { /* e(0) to e(K-1) */
        if (l->first) memset(p->sums + at - items_at, 0, cells * sizeof *p->sums);
        kernels->add(kernels, cells, l->in + at, p->sums + at - items_at);
    }
    kernels->add(kernels, cells, l->out + at, p->out + at);
    if (!l->last) return;
    for (size_t i = 0; i < cells; i++)
        p->out[at + i] /= (float)(p->layers + 1);
}

void weir_recommend_propagate(const weir_recommend_propagation *p) {
    const uint32_t item_parts = (p->pairs->items + PROPAGATE_ROWS - 1) / PROPAGATE_ROWS;
    const float *in = p->x;
    WEIR_ASSERT(p->layers > 0);
    for (uint32_t k = 0; k < p->layers; k++) {
        float *out = k % 2 ? p->other : p->one;
        propagate_layer layer = {p, in, out, k == 0, k + 1 == p->layers};
        weir_recommend_team_run(p->team, propagate_user_parts(p) + item_parts, propagate_part, &layer);
        in = out;
    }
}

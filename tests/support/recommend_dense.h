/* SPDX-License-Identifier: Apache-2.0 */
/* recommend_dense.h - a graph of users and items as a dense matrix in double, and as trainer/recommend has it. */
#ifndef RECOMMEND_DENSE_H
#define RECOMMEND_DENSE_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/rng.h>

#include "recommend_private.h"
#include "weir_test.h"

static inline void *room_of(size_t count, size_t size) {
    void *room = calloc(count + 1, size);
    assert_non_null(room);
    return room;
}

typedef struct dense {
    uint32_t users, items, width;
    double *a;       /* users x items: what each has had of each; 0: nothing */
    double *matrix;  /* the same, by the roots of degrees                    */
    double *degrees; /* of items                                             */
    weir_recommend_pairs pairs;
} dense;

static inline void dense_pairs(dense *d) {
    weir_recommend_pairs *p = &d->pairs;
    const size_t cells = (size_t)d->users * d->items + 1;
    *p = (weir_recommend_pairs){.users = d->users, .items = d->items};
    p->user_offsets = weir_calloc((size_t)d->users + 1, sizeof *p->user_offsets);
    p->item_offsets = weir_calloc((size_t)d->items + 1, sizeof *p->item_offsets);
    p->user_items = weir_calloc(cells, sizeof *p->user_items);
    p->item_users = weir_calloc(cells, sizeof *p->item_users);
    p->weights = weir_calloc(cells, sizeof *p->weights);
    p->by_task = weir_calloc(cells, sizeof *p->by_task);
    p->user_weights = weir_calloc(cells, sizeof *p->user_weights);
    p->item_weights = weir_calloc(cells, sizeof *p->item_weights);
    p->item_degrees = weir_calloc((size_t)d->items + 1, sizeof *p->item_degrees);
    for (uint32_t u = 0; u < d->users; u++) {
        for (uint32_t i = 0; i < d->items; i++) {
            if (d->a[u * d->items + i] == 0) continue;
            p->user_items[p->count] = i;
            p->weights[p->count] = d->a[u * d->items + i];
            p->by_task[p->count] = p->count % 4 != 3;
            p->task_count += p->by_task[p->count];
            p->user_weights[p->count++] = (float)d->matrix[u * d->items + i];
        }
        p->user_offsets[u + 1] = p->count;
    }
    uint32_t at = 0;
    for (uint32_t i = 0; i < d->items; i++) {
        for (uint32_t u = 0; u < d->users; u++) {
            if (d->a[u * d->items + i] == 0) continue;
            p->item_users[at] = u;
            p->item_weights[at++] = (float)d->matrix[u * d->items + i];
        }
        p->item_offsets[i + 1] = at;
        p->item_degrees[i] = d->degrees[i];
    }
}

/* The last user and the last item have met nobody. */
static inline void dense_make(dense *d, weir_rng *rng, uint32_t users, uint32_t items, double share) {
    *d = (dense){.users = users, .items = items, .width = 1 + (uint32_t)weir_rng_below(rng, 6)};
    d->a = room_of((size_t)users * items, sizeof *d->a);
    d->matrix = room_of((size_t)users * items, sizeof *d->matrix);
    d->degrees = room_of(items, sizeof *d->degrees);
    double *of_users = room_of(users, sizeof *of_users);
    for (uint32_t u = 0; u + 1 < users; u++)
        for (uint32_t i = 0; i + 1 < items; i++) {
            if (weir_rng_double(rng) >= share) continue;
            d->a[u * items + i] = 0.1 + weir_rng_double(rng);
            of_users[u] += d->a[u * items + i];
            d->degrees[i] += d->a[u * items + i];
        }
    for (uint32_t u = 0; u < users; u++)
        for (uint32_t i = 0; i < items; i++)
            if (d->a[u * items + i] > 0)
                d->matrix[u * items + i] = d->a[u * items + i] / sqrt(of_users[u] * d->degrees[i]);
    free(of_users);
    dense_pairs(d);
}

static inline void dense_free(dense *d) {
    free(d->a);
    free(d->matrix);
    free(d->degrees);
    weir_recommend_pairs_free(&d->pairs);
}

static inline size_t dense_cells(const dense *d) {
    return ((size_t)d->users + d->items) * d->width;
}

/* mean: of x and what each layer makes of it; sums: of items, all but the last. */
static inline void dense_propagate(const dense *d, uint32_t layers, const double *x, double *mean, double *sums) {
    const size_t cells = dense_cells(d), items_at = (size_t)d->users * d->width;
    double *in = room_of(cells, sizeof *in), *out = room_of(cells, sizeof *out);
    memcpy(in, x, cells * sizeof *in);
    memcpy(mean, x, cells * sizeof *mean);
    for (size_t i = 0; sums && i < (size_t)d->items * d->width; i++)
        sums[i] = 0;
    for (uint32_t k = 0; k < layers; k++) {
        memset(out, 0, cells * sizeof *out);
        for (uint32_t u = 0; u < d->users; u++)
            for (uint32_t i = 0; i < d->items; i++)
                for (uint32_t c = 0; d->a[u * d->items + i] > 0 && c < d->width; c++) {
                    const double weight = d->matrix[u * d->items + i];
                    out[u * d->width + c] += weight * in[items_at + i * d->width + c];
                    out[items_at + i * d->width + c] += weight * in[u * d->width + c];
                }
        for (size_t i = 0; sums && i < (size_t)d->items * d->width; i++)
            sums[i] += in[items_at + i];
        for (size_t i = 0; i < cells; i++)
            mean[i] += out[i];
        memcpy(in, out, cells * sizeof *in);
    }
    for (size_t i = 0; i < cells; i++)
        mean[i] /= layers + 1;
    free(in);
    free(out);
}

static inline float *random_rows(weir_rng *rng, size_t cells) {
    float *rows = room_of(cells, sizeof *rows);
    for (size_t i = 0; i < cells; i++)
        rows[i] = (float)weir_rng_normal(rng);
    return rows;
}

static inline double *doubles_of(const float *x, size_t count) {
    double *y = room_of(count, sizeof *y);
    for (size_t i = 0; i < count; i++)
        y[i] = (double)x[i];
    return y;
}

/* Frees the latter. */
static inline void assert_rows(const float *actual, double *expected, size_t count, const char *what) {
    for (size_t i = 0; i < count; i++)
        if (!(fabs((double)actual[i] - expected[i]) <= 1e-5 * (1 + fabs(expected[i]))))
            fail_msg("%s[%zu] is %.9g, and should be %.9g", what, i, (double)actual[i], expected[i]);
    free(expected);
}

#endif /* RECOMMEND_DENSE_H */

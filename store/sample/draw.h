/* SPDX-License-Identifier: Apache-2.0 */
/* draw.h - k of the n positions of a window, rising: the newest come first whatever the strategy. */
#ifndef WEIR_STORE_DRAW_H
#define WEIR_STORE_DRAW_H

#include <stdint.h>

#include <weir/store/base/rng.h>
#include <weir/store/graph/graph.h>

#include "lanes.h"

typedef struct weir_draw_key {
    double key;
    uint32_t position;
} weir_draw_key;

/* Memory of one sampler's draws. */
typedef struct weir_draw {
    uint64_t *bits;      /* one a position of the largest window; all 0 between calls */
    weir_draw_key *keys; /* one a pick                                                */
    double *log_weights; /* one a position                                            */
    float *weights;      /* one a position                                            */
} weir_draw;

/* window: the largest n, k_max the largest k.  WEIR_ENOMEM. */
weir_err weir_draw_open(weir_draw *draw, uint32_t window, uint32_t k_max);
void weir_draw_close(weir_draw *draw);

/* The first k. Returns how many were picked: k or n. */
uint32_t weir_draw_recent(uint32_t n, uint32_t k, uint32_t *picks);
/* SAMPLE-P1. Draws nothing when k >= n. */
uint32_t weir_draw_uniform(weir_draw *draw, weir_rng_lane *stream, uint32_t n, uint32_t k, uint32_t *picks);
/* In proportion to exp(draw->log_weights), one after the other; -INFINITY and NaN are never picked. */
uint32_t weir_draw_weighted(weir_draw *draw, weir_rng *rng, uint32_t n, uint32_t k, uint32_t *picks);

#endif /* WEIR_STORE_DRAW_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * simulate.c - how often the first epochs read each vertex: their batches are drawn before the training begins, and
 * thrown away. In the training they are drawn alike; of later epochs the counts are a guess. Edges that the rank's part
 * lacks lead to none.
 */
#include <stdlib.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/sample/sampler.h>

#include "cache.h"

#define SIMULATE_NO_MEMORY "for drawing the first epochs; lower --batch or the fan-outs"
#define SIMULATE_EPOCHS    3u

typedef struct simulate_draw {
    const weir_train_cache_opts *opts;
    weir_sample_source *source;
    weir_sampler *sampler;
    weir_block *block;
    weir_target *own; /* of a batch */
    uint32_t *list;
} simulate_draw;

static int simulate_by_time(const void *a, const void *b) {
    const weir_target *x = a, *y = b;
    return x->before_us < y->before_us ? -1 : x->before_us > y->before_us;
}

/* The rows that this rank's share of a batch reads. Targets that share stand by time. */
static weir_err simulate_batch(simulate_draw *s, const uint32_t *list, uint64_t count, double **weights) {
    const weir_train_cache_opts *o = s->opts;
    uint32_t own = 0;
    for (uint64_t i = 0; i < count; i++)
        if (weir_train_target_owner(&o->owners, o->targets, list[i]) == o->owners.rank)
            s->own[own++] = o->targets->targets[weir_targets_place(o->targets, list[i])];
    if (!own) return WEIR_OK;
    if (!o->targets->one_time) qsort(s->own, own, sizeof *s->own, simulate_by_time);
    weir_err err = weir_sample(s->sampler, s->own, own, s->block);
    if (err) return err;
    weir_block_inputs(s->sampler, s->block, true);
    const weir_block_view *view = weir_block_look(s->block);
    for (uint32_t type = 0; type < view->types; type++) {
        for (uint32_t row = view->input_ranges[type].begin; row < view->input_ranges[type].end; row++) {
            uint64_t vertex = view->vertices[view->input_nodes[row]];
            err = weir_snapshot_check_vertex(o->owners.snapshot, type, vertex);
            if (err) return err;
            weights[type][vertex]++;
        }
    }
    return WEIR_OK;
}

weir_err weir_train_simulate(const weir_train_cache_opts *o, double **weights) {
    weir_sample_opts of = {.targets_max = o->batch, .window = weir_nn_window(o->shape), .shared = true};
    simulate_draw s = {.opts = o,
                       .own = weir_calloc(o->batch, sizeof *s.own),
                       .list = weir_calloc(o->targets->ends[WEIR_TARGETS_TRAIN] + 1, sizeof *s.list)};
    of.steps = weir_nn_steps(o->shape, &of.step_count);
    weir_err err = s.own && s.list ? WEIR_OK : WEIR_NOMEM(SIMULATE_NO_MEMORY);
    if (!err) err = weir_sample_over_snapshot(o->owners.snapshot, &s.source);
    if (!err) err = weir_sampler_open(&of, s.source, &s.sampler);
    if (!err) err = weir_block_open(s.sampler, &s.block);
    for (uint32_t epoch = 1; !err && epoch <= SIMULATE_EPOCHS; epoch++) {
        uint64_t seed, count = o->draw(o->context, epoch, s.list, &seed);
        WEIR_ASSERT(count <= o->targets->ends[WEIR_TARGETS_TRAIN]);
        weir_sampler_seed(s.sampler, seed);
        for (uint64_t at = 0; !err && at < count; at += o->batch)
            err = simulate_batch(&s, s.list + at, count - at < o->batch ? count - at : o->batch, weights);
    }
    weir_block_close(s.block);
    weir_sampler_close(s.sampler);
    weir_sample_source_close(s.source);
    weir_free(s.own);
    weir_free(s.list);
    return err;
}

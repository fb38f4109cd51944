/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scales.c - what training learns about its inputs before it begins: rank 0 looks at blocks of targets that are spread
 * over the training part, and tells the others. One rank does it all, so that the scales do not hang on how many there
 * are.
 */
#include <weir/store/base/alloc.h>
#include <weir/store/sample/sampler.h>

#include "inputs.h"
#include "training_private.h"

#define SCALE_TARGETS_MAX 8192u
#define SCALE_BATCH       256u

typedef struct looking {
    weir_trained *t;
    weir_sample_source *source;
    weir_sampler *sampler;
    weir_block *block;
    weir_inputs *inputs;
    weir_target targets[SCALE_BATCH];
} looking;

static weir_err looking_open(weir_trained *t, looking *l) {
    weir_sample_opts opts = {
        .targets_max = SCALE_BATCH, .seed = t->opts.sample_seed, .window = weir_nn_window(t->shape)};
    opts.steps = weir_nn_steps(t->shape, &opts.step_count);
    l->t = t;
    weir_err err = weir_sample_over_snapshot(t->opts.snapshot, &l->source);
    if (!err) err = weir_sampler_open(&opts, l->source, &l->sampler);
    if (!err) err = weir_block_open(l->sampler, &l->block);
    if (!err) err = weir_inputs_open(t->shape, t->opts.snapshot, &l->inputs);
    return err;
}

static void looking_close(looking *l) {
    weir_inputs_close(l->inputs);
    weir_block_close(l->block);
    weir_sampler_close(l->sampler);
    weir_sample_source_close(l->source);
    weir_free(l);
}

static weir_err look(looking *l, uint32_t count, weir_nn_learner *learner) {
    weir_err err = weir_sample(l->sampler, l->targets, count, l->block);
    if (err) return err;
    weir_block_inputs(l->sampler, l->block, true);
    return weir_inputs_learn(l->inputs, weir_block_look(l->block), learner);
}

/* Every so-many-th target of the training part. */
static weir_err look_around(looking *l, weir_nn_learner *learner) {
    uint64_t count = l->t->targets->ends[WEIR_TARGETS_TRAIN];
    uint64_t stride = count > SCALE_TARGETS_MAX ? count / SCALE_TARGETS_MAX : 1;
    uint32_t filled = 0;
    weir_err err = WEIR_OK;
    for (uint64_t i = 0; !err && i < count; i += stride) {
        l->targets[filled++] = l->t->targets->targets[i];
        if (filled < SCALE_BATCH && i + stride < count) continue;
        err = look(l, filled, learner);
        filled = 0;
    }
    return err;
}

static weir_err look_alone(weir_trained *t, weir_nn_learner *learner) {
    looking *l = weir_calloc(1, sizeof *l);
    if (!l) return WEIR_NOMEM("while learning the scales of inputs");
    weir_err err = looking_open(t, l);
    if (!err) err = look_around(l, learner);
    looking_close(l);
    return err;
}

weir_err weir_training_scales(weir_trained *t) {
    weir_nn_learner *learner;
    uint32_t count;
    weir_err err = weir_nn_learner_open(t->shape, &learner);
    if (!err && weir_comm_rank(t->comm) == 0) err = look_alone(t, learner);
    err = weir_comm_fail(t->comm, err);
    if (!err) {
        weir_nn_moments *moments = weir_nn_learner_moments(learner, &count);
        weir_comm_broadcast(t->comm, moments, count * sizeof *moments);
        weir_nn_learner_finish(learner);
    }
    weir_nn_learner_close(learner);
    return err;
}

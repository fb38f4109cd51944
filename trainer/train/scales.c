/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scales.c - what training learns about its inputs before it begins: rank 0 looks at blocks of targets that are spread
 * over the training part, and tells the others. One rank does it all, so that the scales do not depend on how many
 * there are.
 */
#include <weir/inference/inputs/inputs.h>
#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/sample/sampler.h>

#include "training_private.h"

#define SCALES_TARGETS 8192u /* are looked at where there are as many, and fewer than twice that */
#define SCALES_BATCH   256u

typedef struct scales_survey {
    weir_sample_source *source;
    weir_sampler *sampler;
    weir_block *block;
    weir_inputs *inputs;
    weir_target targets[SCALES_BATCH];
} scales_survey;

/* Shows the learner the blocks of every so-many-th target of the training part. */
static weir_err scales_look_around(const weir_trained *t, weir_nn_learner *learner) {
    weir_sample_opts opts = {
        .targets_max = SCALES_BATCH, .seed = t->opts.sample_seed, .window = weir_nn_window(t->shape)};
    opts.steps = weir_nn_steps(t->shape, &opts.step_count);
    uint64_t count = t->targets->ends[WEIR_TARGETS_TRAIN];
    uint64_t stride = count > SCALES_TARGETS ? count / SCALES_TARGETS : 1;
    uint32_t filled = 0;
    scales_survey *s = weir_calloc(1, sizeof *s);
    if (!s) return WEIR_NOMEM("while learning the scales of inputs");
    weir_err err = weir_sample_over_snapshot(t->opts.snapshot, &s->source);
    if (!err) err = weir_sampler_open(&opts, s->source, &s->sampler);
    if (!err) err = weir_block_open(s->sampler, &s->block);
    if (!err) err = weir_inputs_open(t->shape, weir_snapshot_schema(t->opts.snapshot), s->source, &s->inputs);
    for (uint64_t i = 0; !err && i < count; i += stride) {
        WEIR_ASSERT(filled < SCALES_BATCH);
        s->targets[filled++] = t->targets->targets[i];
        if (filled < SCALES_BATCH && i + stride < count) continue;
        err = weir_sample(s->sampler, s->targets, filled, s->block);
        if (err) break;
        weir_block_inputs(s->sampler, s->block, true);
        err = weir_inputs_learn(s->inputs, weir_block_look(s->block), learner);
        filled = 0;
    }
    weir_inputs_close(s->inputs);
    weir_block_close(s->block);
    weir_sampler_close(s->sampler);
    weir_sample_source_close(s->source);
    weir_free(s);
    return err;
}

weir_err weir_training_scales(weir_trained *t) {
    weir_nn_learner *learner;
    uint32_t count;
    weir_err err = weir_nn_learner_open(t->shape, &learner);
    if (!err && weir_comm_rank(t->comm) == 0) err = scales_look_around(t, learner);
    err = weir_comm_fail(t->comm, err);
    if (!err) {
        weir_nn_moments *moments = weir_nn_learner_moments(learner, &count);
        weir_comm_broadcast(t->comm, moments, count * sizeof *moments);
        weir_nn_learner_finish(learner);
    }
    weir_nn_learner_close(learner);
    return err;
}

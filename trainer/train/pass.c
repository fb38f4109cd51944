/* SPDX-License-Identifier: Apache-2.0 */
/* pass.c - one way through targets: to learn from them, or to score them. */
#include <math.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/clock.h>
#include <weir/store/base/rng.h>

#include "run_private.h"

#define DAY_US ((int64_t)86400 * 1000000)

/* Streams of random numbers, so that no two uses share one. */
enum { RNG_NEGATIVES = 1, RNG_SHUFFLE = 2 };

/* --- lists -------------------------------------------------------------------------------------------------------- */

/* All of class 0 while they are few; else each with the chance that leaves as many as were asked for. */
static double keep_chance(const weir_trained *t) {
    uint64_t zeros = t->targets->class_counts[0], others = t->targets->ends[WEIR_TARGETS_TRAIN] - zeros;
    double wanted = (double)t->opts.negatives * (double)others;
    return t->opts.negatives == 0 || wanted >= (double)zeros ? 1 : wanted / (double)zeros;
}

/* Which targets an epoch learns from, and in which order: a function of seed and epoch. */
static uint64_t epoch_list(weir_trained *t, uint32_t epoch) {
    weir_rng chance = weir_rng_stream(t->opts.seed, epoch, RNG_NEGATIVES);
    weir_rng order = weir_rng_stream(t->opts.seed, epoch, RNG_SHUFFLE);
    double keep = keep_chance(t);
    uint64_t count = 0;
    for (uint64_t i = 0; i < t->targets->ends[WEIR_TARGETS_TRAIN]; i++) {
        bool kept = weir_rng_double(&chance) < keep;
        if (kept || t->targets->classes_of[i] != 0) t->list[count++] = i;
    }
    for (uint64_t i = count; i > 1; i--) {
        uint64_t other = weir_rng_below(&order, i), last = t->list[i - 1];
        t->list[i - 1] = t->list[other];
        t->list[other] = last;
    }
    return count;
}

static uint64_t part_list(weir_trained *t, weir_targets_part part) {
    uint64_t begin = weir_targets_begin(t->targets, part), count = t->targets->ends[part] - begin;
    for (uint64_t i = 0; i < count; i++)
        t->list[i] = begin + i;
    return count;
}

static weir_err stream_open(weir_trained *t, uint64_t count, uint64_t seed, double hidden, weir_batches **streamp) {
    const weir_batches_opts opts = {
        .shape = t->shape,
        .snapshot = t->opts.snapshot,
        .targets = t->targets,
        .list = t->list,
        .count = count,
        .batch = t->opts.batch,
        .seed = seed,
        .hidden = hidden,
        .owners = {weir_comm_ranks(t->comm), t->opts.owners},
        .channel = t->channel,
    };
    return weir_batches_open(&opts, streamp);
}

static void add_times(weir_train_times *times, const weir_batches *stream) {
    weir_stage_times stages;
    weir_batches_times_get(stream, &stages);
    times->sample += stages.sample;
    times->exchange += stages.exchange;
    times->encode += stages.encode;
    times->wait += stages.wait;
}

/* --- learning ----------------------------------------------------------------------------------------------------- */

static double weight_of(const weir_trained *t, uint32_t class_of) {
    return class_of == 1 && t->opts.positive_weight > 0 ? t->opts.positive_weight : 1;
}

/* TRAIN-R1: of the whole global batch. Every rank knows all classes, so nobody has to ask. */
static double batch_weight(const weir_trained *t, const weir_train_batch *batch) {
    double sum = 0;
    for (uint64_t i = batch->begin; i < batch->end; i++)
        sum += weight_of(t, t->targets->classes_of[t->list[i]]);
    return sum;
}

/* This rank's part of the loss and of the gradients. */
static weir_err own_gradients(weir_trained *t, const weir_train_batch *batch, uint64_t step, double divisor,
                              double *lossp) {
    const weir_nn_drop drop = {t->opts.dropout, t->opts.seed, step, batch->keys};
    double weights[WEIR_SCHEMA_LABEL_VALUES_MAX];
    for (uint32_t c = 0; c < t->targets->classes; c++)
        weights[c] = weight_of(t, c);
    for (uint32_t i = 0; i < batch->own_count; i++)
        t->labels[i] = t->targets->classes_of[batch->own[i]];
    weir_err err = weir_nn_forward(t->nn, t->params, &batch->batch, t->opts.dropout > 0 ? &drop : NULL,
                                   t->train_workspace, t->logits, NULL);
    if (err) return err;
    const weir_loss loss = {t->logits, t->labels, weights, batch->own_count, t->targets->classes, divisor};
    *lossp = weir_loss_of(weir_nn_outputs(t->shape), &loss, t->dlogits);
    return weir_nn_backward(t->nn, t->params, t->train_workspace, t->dlogits, t->gradients);
}

static weir_err learn_batch(weir_trained *t, const weir_train_batch *batch, weir_train_epoch *epoch) {
    const weir_kernels *k = weir_nn_kernels(t->nn);
    uint64_t count = weir_nn_parameter_count(t->nn);
    weir_clock *clock = weir_clock_system();
    double divisor = batch_weight(t, batch), loss = 0, norm = 0;
    int64_t begin_us = weir_clock_mono_us(clock);
    k->zero(t->gradients, count * sizeof *t->gradients);
    weir_err err = WEIR_OK;
    if (batch->own_count) err = own_gradients(t, batch, weir_adamw_steps(t->adamw), divisor, &loss);
    if (err) return err;
    int64_t middle_us = weir_clock_mono_us(clock);
    weir_comm_sum_floats(t->comm, t->gradients, count);
    weir_comm_sum_doubles(t->comm, &loss, 1);
    epoch->times.sum += weir_clock_mono_us(clock) - middle_us;
    err = weir_adamw_step_take(t->adamw, t->opts.rate, t->gradients, t->params, &norm);
    epoch->times.compute += middle_us - begin_us;
    epoch->loss += loss * divisor;
    epoch->gradient_norm += norm;
    epoch->edges += batch->edges;
    epoch->targets += batch->own_count;
    epoch->remote_rows += batch->remote;
    return err;
}

weir_err weir_training_learn(weir_trained *t, weir_train_epoch *epoch) {
    uint64_t count = epoch_list(t, epoch->number);
    const weir_train_batch *batch = NULL;
    weir_batches *stream;
    double weight = 0;
    uint64_t batches = 0;
    weir_err err =
        stream_open(t, count, t->opts.seed + epoch->number * 0x9E3779B97F4A7C15u, t->opts.input_dropout, &stream);
    if (err) return err;
    for (;;) {
        err = weir_batches_next(stream, &batch);
        if (err || !batch) break;
        weight += batch_weight(t, batch);
        batches++;
        err = learn_batch(t, batch, epoch);
        if (err) break;
        weir_batches_done(stream, batch);
    }
    err = weir_comm_fail(t->comm, err); /* before the stream's end waits for an exchange with the others */
    add_times(&epoch->times, stream);
    weir_batches_close(stream);
    if (weight > 0) epoch->loss /= weight;
    if (batches) epoch->gradient_norm /= (double)batches;
    return err;
}

/* --- judging ------------------------------------------------------------------------------------------------------ */

/* Of a yes-or-no question the logit; else the most likely class, so that a score is one number. */
static double score_of(const weir_real *logits, uint32_t outputs) {
    uint32_t best = 0;
    if (outputs == 1) return (double)logits[0];
    for (uint32_t i = 1; i < outputs; i++) {
        if (logits[i] > logits[best]) best = i;
    }
    return best;
}

static weir_err judge_batch(weir_trained *t, const weir_train_batch *batch, const weir_real *params) {
    uint32_t outputs = weir_nn_outputs(t->shape);
    if (!batch->own_count) return WEIR_OK;
    weir_err err = weir_nn_forward(t->nn, params, &batch->batch, NULL, t->judge_workspace, t->logits, NULL);
    for (uint32_t i = 0; !err && i < batch->own_count; i++)
        t->scores[batch->own[i]] = score_of(t->logits + (size_t)i * outputs, outputs);
    return err;
}

weir_err weir_training_judge(weir_trained *t, weir_targets_part part, const weir_real *params,
                             weir_train_times *times) {
    uint64_t begin = weir_targets_begin(t->targets, part), count = part_list(t, part);
    const weir_train_batch *batch = NULL;
    weir_batches *stream;
    for (uint64_t i = 0; i < count; i++)
        t->scores[begin + i] = 0; /* what another rank will say is added */
    weir_err err = stream_open(t, count, t->opts.sample_seed, 0, &stream);
    if (err) return err;
    for (;;) {
        err = weir_batches_next(stream, &batch);
        if (err || !batch) break;
        err = judge_batch(t, batch, params);
        if (err) break;
        weir_batches_done(stream, batch);
    }
    err = weir_comm_fail(t->comm, err);
    if (times) add_times(times, stream);
    weir_batches_close(stream);
    if (!err) weir_comm_sum_doubles(t->comm, t->scores + begin, count);
    return err;
}

/* --- measuring ---------------------------------------------------------------------------------------------------- */

static weir_err measure_binary(const weir_trained *t, const weir_scored *scored, const int64_t *days,
                               weir_train_metrics *m) {
    weir_eval_budget budget = {0};
    weir_err err = weir_eval_auroc(scored, &m->auroc);
    if (!err) err = weir_eval_average_precision(scored, &m->average_precision);
    if (!err) err = weir_eval_at_budget(scored, days, t->opts.alerts, &budget);
    m->budget_precision = budget.precision;
    m->budget_recall = budget.recall;
    return err;
}

static double accuracy_of(const double *scores, const uint32_t *classes, uint64_t count) {
    uint64_t right = 0;
    for (uint64_t i = 0; i < count; i++)
        right += scores[i] == classes[i];
    return (double)right / (double)count;
}

weir_err weir_training_measure(const weir_trained *t, const double *scores, weir_targets_part part,
                               weir_train_metrics *metricsp) {
    uint64_t begin = weir_targets_begin(t->targets, part), count = t->targets->ends[part] - begin;
    const uint32_t *classes = t->targets->classes_of + begin;
    *metricsp = (weir_train_metrics){.targets = count};
    uint8_t *labels = weir_malloc(count);
    int64_t *days = weir_calloc(count, sizeof *days);
    weir_err err = labels && days ? WEIR_OK : WEIR_NOMEM("for metrics");
    for (uint64_t i = 0; !err && i < count; i++) {
        labels[i] = classes[i] != 0;
        days[i] = t->targets->targets[begin + i].before_us / DAY_US;
        metricsp->positives += labels[i];
    }
    const weir_scored scored = {scores + begin, labels, count};
    if (!err && weir_nn_outputs(t->shape) == 1) {
        err = measure_binary(t, &scored, days, metricsp);
    } else if (!err) {
        metricsp->accuracy = accuracy_of(scored.scores, classes, count);
    }
    weir_free(labels);
    weir_free(days);
    return err;
}

double weir_training_quality(const weir_trained *t, const weir_train_metrics *metrics) {
    return weir_nn_outputs(t->shape) == 1 ? metrics->average_precision : metrics->accuracy;
}

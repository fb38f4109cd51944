/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pass.c - one way through targets: to learn from them, or to score them.
 *
 *   seeds ─► sample ─► exchange ─► encode ─► forward ─► loss ─► backward ─► sum over the ranks ─► AdamW
 *   list     \____ batches.c, ahead ____/    \__________________ weir_training_step ___________________/
 *
 * One stream makes the batches of all epochs that are learnt from: while an epoch is judged, on a stream and channels
 * of its own, the first batches of the next one are prepared.
 */
#include <math.h>

#include <weir/inference/nn/tape.h>
#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/clock.h>
#include <weir/store/base/fault.h>
#include <weir/store/base/rng.h>
#include <weir/store/base/thread.h>

#include "training_private.h"

/* Streams of random numbers, so that no two uses share one. */
enum { RNG_NEGATIVES = 1, RNG_SHUFFLE = 2 };

/* --- lists and streams -------------------------------------------------------------------------------------------- */

uint64_t weir_training_list_epoch(const void *context, uint32_t epoch, uint32_t *list, uint64_t *seedp) {
    const weir_trained *t = context;
    const weir_train_owners owners = weir_training_owners(t);
    weir_rng chance = weir_rng_stream(t->opts.seed, epoch, RNG_NEGATIVES);
    weir_rng order = weir_rng_stream(t->opts.seed, epoch, RNG_SHUFFLE);
    uint64_t targets = t->targets->ends[WEIR_TARGETS_TRAIN], zeros = t->targets->class_counts[0], count = 0;

    /* All of class 0 while they are few; else each with the chance that leaves as many as were asked for. */
    double wanted = (double)t->opts.negatives * (double)(targets - zeros);
    double keep = t->opts.negatives == 0 || wanted >= (double)zeros ? 1 : wanted / (double)zeros;
    for (uint64_t i = 0; i < targets; i++) {
        bool kept = weir_rng_double(&chance) < keep;
        if (kept || t->targets->classes_of[i] != 0) list[count++] = (uint32_t)i;
    }
    for (uint64_t i = count; i > 1; i--) {
        uint64_t other = weir_rng_below(&order, i);
        uint32_t last = list[i - 1];
        list[i - 1] = list[other];
        list[other] = last;
    }
    for (uint64_t i = 0; t->opts.local && i < count; i++)
        t->dealer->owner_of[i] = weir_train_target_owner(&owners, t->targets, list[i]);
    if (t->opts.local) weir_train_deal(t->dealer, list, count);
    WEIR_ASSERT(zeros < targets && count <= targets); /* weir_targets_open refuses a part of one class */
    *seedp = t->opts.seed + epoch * 0x9E3779B97F4A7C15u;
    return count;
}

weir_batches_opts weir_training_stream_opts(const weir_trained *t, weir_comm *(*channels)[WEIR_TRAIN_CHANNELS]) {
    return (weir_batches_opts){
        .shape = t->shape,
        .targets = t->targets,
        .epoch = t->state.epochs + 1,
        .batch = t->opts.batch,
        .ahead = t->opts.ahead,
        .owners = weir_training_owners(t),
        .kept = {.cache = t->cache},
        .residents = t->residents,
        .kernels = weir_nn_kernels(t->nn)->unified ? NULL : weir_nn_kernels(t->nn),
        .wire = t->opts.wire,
        .shares = t->shares,
        .channels = (weir_comm *const(*)[WEIR_TRAIN_CHANNELS])channels,
        .trace = t->trace,
    };
}

static bool training_drops(const weir_train_opts *o) {
    return o->dropout > 0 || o->attention_dropout > 0 || o->edge_dropout > 0;
}

weir_err weir_training_stream_open(weir_trained *t) {
    weir_batches_opts opts = weir_training_stream_opts(t, t->learn_channels);
    opts.draw = weir_training_list_epoch;
    opts.context = t;
    opts.epochs = t->opts.epochs - t->state.epochs;
    opts.dealt = t->opts.local;
    opts.drops = training_drops(&t->opts);
    opts.hidden = t->opts.input_dropout;
    opts.thinned = t->opts.edge_dropout;
    opts.unknown = t->opts.unknown;
    opts.track = 1;
    opts.kept.lookahead = t->lookahead;
    opts.tells = t->sums ? t->nn : NULL;
    return weir_batches_open(&opts, &t->stream);
}

/* --- learning ----------------------------------------------------------------------------------------------------- */

double weir_training_class_weight(const weir_trained *t, uint32_t class_of) {
    return class_of == 1 && t->opts.positive_weight > 0 ? t->opts.positive_weight : 1;
}

/* TRAIN-R1: of the whole global batch. Every rank knows all classes, so none has to ask. */
static double training_batch_weight(const weir_trained *t, const weir_train_batch *batch) {
    double sum = 0;
    for (uint64_t i = 0; i < batch->end - batch->begin; i++)
        sum += weir_training_class_weight(t, t->targets->classes_of[batch->list[i]]);
    return sum;
}

/* The sum over the ranks of those rows of embeddings that any rank's part of the batch has read, packed: of what every
 * rank has. */
static weir_err training_sum_rows(weir_trained *t, const weir_train_batch *batch) {
    const weir_kernels *k = weir_nn_kernels(t->nn);
    const char *at = batch->heard ? batch->heard->bytes : NULL;
    weir_err err = WEIR_OK;
    for (uint32_t rank = 0; !err && at && rank < weir_comm_ranks(t->comm); at += batch->heard_lengths[rank++])
        if (rank != weir_comm_rank(t->comm)) err = weir_nn_rows_add(t->rows, at, batch->heard_lengths[rank]);
    const size_t count = err ? 0 : weir_nn_rows_size(t->rows), bytes = count * sizeof *t->gradients;
    if (count == 0) return err;
    err = weir_kernel_room_grow(&t->packed, k, bytes);
    if (!err) err = weir_nn_rows_pack(t->rows, t->gradients, t->packed.memory);
    if (err) return err;
    weir_real *summed = t->packed.memory;
    if (!k->unified) { /* a copy for MPI */
        weir_buf_clear(&t->packed_host);
        summed = (weir_real *)(void *)weir_buf_reserve(&t->packed_host, bytes);
        if (!summed) return weir_buf_err(&t->packed_host);
        k->to_host(k, summed, t->packed.memory, bytes);
    }
    weir_comm_sum_floats(t->comm, summed, count);
    if (!k->unified) k->to_device(k, t->packed.memory, summed, bytes);
    return weir_nn_rows_unpack(t->rows, t->packed.memory, t->gradients);
}

/* What is left to do when the way back has ended: the rest is being summed since it was there. */
static weir_err training_sum(weir_trained *t, const weir_train_batch *batch, double *loss, weir_train_times *times) {
    if (!t->sums) return WEIR_OK;
    weir_train_sums_reach(t->sums, 0);
    int64_t begin_us = weir_clock_mono_us(weir_clock_system());
    weir_err err = training_sum_rows(t, batch);
    if (!err && t->shares) err = weir_train_shares_push(t->shares, t->nn, batch->wants, t->comm, t->gradients);
    if (err) return err;
    times->sum += weir_clock_mono_us(weir_clock_system()) - begin_us;
    return weir_train_sums_wait(t->sums, loss, &times->sum);
}

static void training_finished(void *context, uint64_t from) {
    weir_train_sums_reach(context, from);
}

/* Gradients are 0 where none have been added. Of embeddings, those of the last step's rows are put back to 0. */
static weir_err training_zero_gradients(weir_trained *t) {
    const weir_kernels *k = weir_nn_kernels(t->nn);
    uint32_t tensors;
    const weir_nn_tensor *of = weir_nn_tensors(t->nn, &tensors);
    for (uint32_t i = 0; i < tensors; i++)
        if (!of[i].looked_up)
            k->zero(k, t->gradients + of[i].offset, (size_t)of[i].rows * of[i].cols * sizeof *t->gradients);
    return weir_nn_rows_zero(t->rows, t->gradients);
}

static void training_trace(const weir_trained *t, const weir_train_batch *batch, weir_train_stage stage,
                           int64_t begin_us, int64_t end_us) {
    const weir_train_span span = {0, stage, batch->epoch, batch->number, begin_us, end_us};
    weir_train_trace_add(t->trace, &span);
}

weir_err weir_training_bring(weir_trained *t, const weir_train_batch *batch, const weir_real *params,
                             weir_nn_brought *broughtp, weir_nn_batch *nnp) {
    *nnp = batch->nn;
    if (!t->shares) return WEIR_OK;
    nnp->brought = broughtp;
    return weir_train_shares_pull(t->shares, t->nn, params, batch->wants, t->comm, broughtp);
}

/* The way forward and back: this rank's part of the loss, and of the gradients. *loss: where ranks sum it. */
static weir_err training_compute(weir_trained *t, const weir_train_batch *batch, const weir_nn_batch *nn,
                                 double divisor, double *loss) {
    const weir_nn_drop drop = {.rate = t->opts.dropout,
                               .shares = t->opts.attention_dropout,
                               .edges = t->opts.edge_dropout,
                               .seed = t->opts.seed,
                               .step = weir_adamw_steps(t->adamw),
                               .keys = batch->keys};
    const weir_nn_listener listener = {training_finished, t->sums};
    const weir_kernels *k = weir_nn_kernels(t->nn);
    const void *labels;
    weir_err err = WEIR_OK;
    WEIR_ASSERT(batch->own_count <= t->opts.batch);
    k->zero(k, t->loss, sizeof *t->loss);
    if (batch->own_count) {
        for (uint32_t i = 0; i < batch->own_count; i++)
            t->labels[i] = t->targets->classes_of[batch->own[i]];
        err = weir_kernel_room_bring(&t->labels_there, k, t->labels, batch->own_count * sizeof *t->labels, &labels);
        if (!err)
            err = weir_nn_forward(t->nn, t->params, nn, training_drops(&t->opts) ? &drop : NULL, t->workspace, NULL,
                                  NULL);
        if (err) return err;
        const weir_loss of = {.logits = weir_nn_tape_of(t->workspace)->logits,
                              .labels = labels,
                              .weights = t->class_weights,
                              .count = batch->own_count,
                              .classes = t->targets->classes,
                              .divisor = divisor,
                              .focal = t->opts.focal};
        k->loss(k, weir_nn_outputs(t->shape), &of, t->dlogits, t->loss);
    }
    if (t->sums) { /* the others wait for it first */
        k->to_host(k, loss, t->loss, sizeof *loss);
        weir_train_sums_loss(t->sums, *loss);
    }
    if (!batch->own_count) return WEIR_OK;
    return weir_nn_backward(t->nn, t->params, t->workspace, t->dlogits, t->gradients, t->sums ? &listener : NULL);
}

weir_err weir_training_step(weir_trained *t, const weir_train_batch *batch, weir_train_epoch *epoch) {
    weir_clock *clock = weir_clock_system();
    double divisor = training_batch_weight(t, batch), loss = 0, norm = 0;
    weir_nn_brought brought;
    weir_nn_batch nn;

    /* Rows of embeddings become what they are in this step, and come to whoever reads them: where they are shared, that
     * is what is told as the pull. */
    int64_t begin_us = weir_clock_mono_us(clock);
    weir_err err = training_zero_gradients(t);
    if (!err) err = weir_nn_rows_of_batch(t->rows, batch->own_count ? &batch->nn : NULL);
    if (!err && t->shares) err = weir_train_shares_mark(t->shares, batch->wants, t->rows);
    if (!err && t->sums) weir_train_sums_begin(t->sums, batch->epoch, batch->number);
    if (!err) err = weir_adamw_bring(t->adamw, t->rows, t->params);
    if (err) return err;
    err = weir_training_bring(t, batch, t->params, &brought, &nn);
    int64_t pulled_us = t->shares ? weir_clock_mono_us(clock) : begin_us;
    if (!err) err = training_compute(t, batch, &nn, divisor, &loss);
    if (err) return err;

    /* The sum over the ranks, then one update that is the same on all of them. */
    int64_t middle_us = weir_clock_mono_us(clock);
    err = training_sum(t, batch, &loss, &epoch->times);
    if (err) return err;
    int64_t summed_us = weir_clock_mono_us(clock);
    const double share = weir_training_rate_share(&t->opts, batch->epoch, weir_adamw_steps(t->adamw) + 1);
    weir_adamw_share_set(t->adamw, share);
    err = weir_adamw_step_take(t->adamw, t->opts.rate, t->gradients, t->rows, t->params, &norm);
    if (!t->sums) weir_nn_kernels(t->nn)->to_host(weir_nn_kernels(t->nn), &loss, t->loss, sizeof loss);

    int64_t end_us = weir_clock_mono_us(clock);
    if (t->shares) training_trace(t, batch, WEIR_STAGE_PULL, begin_us, pulled_us);
    training_trace(t, batch, WEIR_STAGE_COMPUTE, pulled_us, middle_us);
    training_trace(t, batch, WEIR_STAGE_SUM, middle_us, summed_us);
    training_trace(t, batch, WEIR_STAGE_UPDATE, summed_us, end_us);
    epoch->times.sample += batch->times.sample;
    epoch->times.exchange += batch->times.exchange;
    epoch->times.encode += batch->times.encode;
    epoch->times.bring += batch->times.bring;
    epoch->times.wait += batch->times.wait;
    epoch->times.pull += pulled_us - begin_us;
    epoch->times.compute += middle_us - pulled_us;
    epoch->times.sum_wait += summed_us - middle_us;
    epoch->times.update += end_us - summed_us;
    epoch->loss += loss * divisor;
    epoch->gradient_norm += norm;
    epoch->rate = share * t->opts.rate;
    epoch->edges += batch->edges;
    epoch->targets += batch->own_count;
    epoch->handed += batch->handed;
    epoch->rows += batch->rows;
    epoch->remote_rows += batch->remote;
    epoch->cached_rows += batch->cached;
    return err;
}

weir_err weir_training_learn(weir_trained *t, weir_train_epoch *epoch) {
    const weir_train_batch *batch = NULL;
    double weight = 0;
    uint64_t batches = 0;
    int64_t begin_us = weir_clock_mono_us(weir_clock_system());
    weir_err err = WEIR_OK;
    WEIR_ON_ROLE(MAIN);
    epoch->ready = weir_batches_ready(t->stream);
    for (;;) {
        err = weir_batches_next(t->stream, &batch);
        if (err || !batch) break;
        WEIR_ASSERT(batch->epoch == epoch->number);
        weight += training_batch_weight(t, batch);
        batches++;
        weir_comm_at("computing", batch->epoch, batch->number, batch->batches);
        err = weir_batches_where(t->stream, "computing", batch, weir_training_step(t, batch, epoch));
        if (err) break;
        weir_batches_done(t->stream, batch);
        weir_kill_point("train.step");
    }
    weir_comm_at(NULL, 0, 0, 0);
    if (err) return err;
    err = weir_adamw_bring(t->adamw, NULL, t->params); /* who judges, or saves, reads all */
    if (!err) err = weir_nn_kernels(t->nn)->finish(weir_nn_kernels(t->nn));
    if (err) return err;
    if (weight > 0) epoch->loss /= weight;
    if (batches) epoch->gradient_norm /= (double)batches;
    epoch->learning_us = weir_clock_mono_us(weir_clock_system()) - begin_us;
    return WEIR_OK;
}

/* --- judging ------------------------------------------------------------------------------------------------------ */

/* Of a yes-or-no question the logit; else the most likely class, so that a score is one number. */
static double training_score(const weir_real *logits, uint32_t outputs) {
    uint32_t best = 0;
    if (outputs == 1) return (double)logits[0];
    for (uint32_t i = 1; i < outputs; i++) {
        if (logits[i] > logits[best]) best = i;
    }
    return best;
}

double *weir_training_scores(const weir_trained *t, weir_targets_part part) {
    WEIR_ASSERT(part != WEIR_TARGETS_TRAIN);
    return t->scores + (weir_targets_begin(t->targets, part) - t->targets->ends[WEIR_TARGETS_TRAIN]);
}

weir_err weir_training_judge(weir_trained *t, weir_targets_part part, const weir_real *params) {
    uint64_t begin = weir_targets_begin(t->targets, part), count = t->targets->ends[part] - begin;
    uint32_t outputs = weir_nn_outputs(t->shape);
    const weir_train_batch *batch = NULL;
    weir_nn_brought brought;
    weir_nn_batch nn;
    weir_batches *stream;
    double *scores = weir_training_scores(t, part);
    WEIR_ON_ROLE(MAIN);
    for (uint64_t i = 0; i < count; i++)
        scores[i] = 0; /* what another rank will say is added */
    weir_batches_opts opts = weir_training_stream_opts(t, t->judge_channels);
    opts.first = begin;
    opts.count = count;
    opts.seed = t->opts.sample_seed;
    opts.as_served = true;
    opts.track = 1 + t->opts.ahead;
    opts.judged = part == WEIR_TARGETS_TEST ? "test" : "validation";
    weir_err err = weir_batches_open(&opts, &stream);
    if (err) return weir_comm_fail(t->comm, err);
    for (;;) {
        err = weir_batches_next(stream, &batch);
        if (err || !batch) break;
        weir_comm_at("judging", 0, batch->number, batch->batches);
        err = weir_training_bring(t, batch, params, &brought, &nn);
        if (!err && batch->own_count) err = weir_nn_forward(t->nn, params, &nn, NULL, t->workspace, t->logits, NULL);
        err = weir_batches_where(stream, "computing", batch, err);
        if (err) break;
        for (uint32_t i = 0; i < batch->own_count; i++) {
            WEIR_ASSERT(batch->own[i] - begin < count);
            scores[batch->own[i] - begin] = training_score(t->logits + (size_t)i * outputs, outputs);
        }
        weir_batches_done(stream, batch);
    }
    weir_comm_at(NULL, 0, 0, 0);
    err = weir_comm_fail(t->comm, err);
    weir_batches_close(stream);
    if (!err) weir_comm_sum_doubles(t->comm, scores, count);
    return err;
}

/* --- measuring ---------------------------------------------------------------------------------------------------- */

bool weir_training_has_both(const weir_train_metrics *metrics) {
    return metrics->positives > 0 && metrics->positives < metrics->targets;
}

weir_err weir_training_measure(const weir_trained *t, const double *scores, weir_targets_part part,
                               weir_train_metrics *metricsp) {
    uint64_t begin = weir_targets_begin(t->targets, part), count = t->targets->ends[part] - begin, right = 0;
    const uint8_t *classes = t->targets->classes_of + begin;
    const int32_t *day_of = t->targets->days + (begin - t->targets->ends[WEIR_TARGETS_TRAIN]);
    weir_train_metrics *m = metricsp;
    *m = (weir_train_metrics){.targets = count};
    WEIR_ASSERT(count > 0); /* weir_targets_open refuses a part that is too small */
    uint8_t *labels = weir_malloc(count);
    int64_t *days = weir_calloc(count, sizeof *days);
    weir_err err = labels && days ? WEIR_OK : WEIR_NOMEM("for metrics");
    for (uint64_t i = 0; !err && i < count; i++) {
        labels[i] = classes[i] != 0;
        days[i] = day_of[i];
        m->positives += labels[i];
        right += scores[i] == classes[i];
    }
    if (!err && weir_nn_outputs(t->shape) == 1) {
        const weir_scored scored = {scores, labels, count};
        weir_eval_budget budget = {0};
        m->auroc = m->average_precision = (double)NAN; /* of one class, as a test by times may be, there is none */
        if (weir_training_has_both(m)) err = weir_eval_auroc(&scored, &m->auroc);
        if (!err && weir_training_has_both(m)) err = weir_eval_average_precision(&scored, &m->average_precision);
        if (!err) err = weir_eval_at_budget(&scored, days, t->opts.alerts, &budget);
        m->budget_precision = budget.precision;
        m->budget_recall = budget.recall;
    } else if (!err) {
        m->accuracy = (double)right / (double)count;
    }
    weir_free(labels);
    weir_free(days);
    return err;
}

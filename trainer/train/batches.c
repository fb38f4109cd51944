/* SPDX-License-Identifier: Apache-2.0 */
/* batches.c - the three stages and their queues; what one batch is made of stands in batch.c. */
#include <stdatomic.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/clock.h>
#include <weir/store/base/queue.h>
#include <weir/store/base/thread.h>

#include "batch.h"

struct weir_batches {
    weir_batches_opts opts;
    weir_queue *free, *sampled, *asked, *ready; /* of weir_train_batch * */
    weir_thread *sample_thread, *ask_thread, *fetch_thread;
    weir_train_sampler *sampler;
    weir_train_fetcher *fetcher;
    weir_train_batch *batches[WEIR_BATCHES_AHEAD];
    weir_batches_times times; /* each by its own thread; read after the threads have ended */
    int64_t asking;           /* as times, and these */
    weir_err_kept sample_err, ask_err, fetch_err;
    weir_clock *clock;
};

static weir_err batches_give(weir_queue *queue, weir_train_batch *batch) {
    return weir_queue_push(queue, &batch, WEIR_QUEUE_FOREVER);
}

static weir_err batches_take(weir_queue *queue, weir_train_batch **batchp) {
    size_t count;
    return weir_queue_pop(queue, batchp, 1, WEIR_QUEUE_FOREVER, &count);
}

/* A queue that was closed is how a stage hears of the end, and of an early one. */
static bool batches_is_end(weir_err err) {
    return err && weir_err_code(err) == WEIR_ECLOSED;
}

/* Since begin_us, until now. */
static int64_t batches_stage_end(const weir_batches *s, weir_train_stage stage, const weir_train_batch *batch,
                                 int64_t begin_us) {
    int64_t end_us = weir_clock_mono_us(s->clock);
    weir_train_trace_add(s->opts.trace, stage, batch->number, begin_us, end_us);
    return end_us - begin_us;
}

static void batches_sample_main(void *context) {
    weir_batches *s = context;
    uint64_t batches = (s->opts.count + s->opts.batch - 1) / s->opts.batch;
    weir_err err = WEIR_OK;
    for (uint64_t number = 0; !err && number < batches; number++) { /* TRAIN-E1: one thread, queues in order */
        weir_train_batch *batch;
        err = batches_take(s->free, &batch);
        if (err) break;
        int64_t begin_us = weir_clock_mono_us(s->clock);
        err = weir_train_batch_sample(batch, s->sampler, number);
        s->times.sample += batches_stage_end(s, WEIR_STAGE_SAMPLE, batch, begin_us);
        if (!err) err = batches_give(s->sampled, batch);
    }
    if (!batches_is_end(err)) weir_err_kept_set(&s->sample_err, err);
    weir_queue_close(s->sampled);
}

static void batches_ask_main(void *context) {
    weir_batches *s = context;
    weir_err err = WEIR_OK;
    while (!err) {
        weir_train_batch *batch;
        err = batches_take(s->sampled, &batch);
        if (err) break;
        int64_t begin_us = weir_clock_mono_us(s->clock);
        err = weir_train_batch_ask(batch);
        s->asking += batches_stage_end(s, WEIR_STAGE_ASK, batch, begin_us);
        if (!err) err = batches_give(s->asked, batch);
    }
    if (!batches_is_end(err)) weir_err_kept_set(&s->ask_err, err);
    weir_queue_close(s->asked);
}

static void batches_fetch_main(void *context) {
    weir_batches *s = context;
    weir_err err = WEIR_OK;
    while (!err) {
        weir_train_batch *batch;
        err = batches_take(s->asked, &batch);
        if (err) break;
        int64_t begin_us = weir_clock_mono_us(s->clock);
        err = weir_train_batch_answer(batch, s->fetcher);
        int64_t answer_us = batches_stage_end(s, WEIR_STAGE_ANSWER, batch, begin_us);
        s->times.exchange += answer_us;
        if (!err) err = weir_train_batch_encode(batch, s->fetcher);
        s->times.encode += batches_stage_end(s, WEIR_STAGE_ENCODE, batch, begin_us + answer_us);
        if (!err) err = batches_give(s->ready, batch);
    }
    if (!batches_is_end(err)) weir_err_kept_set(&s->fetch_err, err);
    weir_queue_close(s->ready);
}

/* --- the caller that computes ----------------------------------------------------------------------------------- */

weir_err weir_batches_next(weir_batches *stream, const weir_train_batch **batchp) {
    weir_train_batch *batch;
    *batchp = NULL;
    int64_t begin_us = weir_clock_mono_us(stream->clock);
    weir_err err = batches_take(stream->ready, &batch);
    int64_t end_us = weir_clock_mono_us(stream->clock);
    stream->times.wait += end_us - begin_us;
    if (!err) weir_train_trace_add(stream->opts.trace, WEIR_STAGE_WAIT, batch->number, begin_us, end_us);
    if (!err) *batchp = batch;
    if (!batches_is_end(err)) return err;
    weir_thread_join(stream->fetch_thread);
    weir_queue_close(stream->free); /* a fetch that failed leaves the sampler waiting for memory */
    weir_queue_close(stream->sampled);
    weir_queue_close(stream->asked);
    weir_thread_join(stream->ask_thread);
    weir_thread_join(stream->sample_thread);
    stream->fetch_thread = stream->ask_thread = stream->sample_thread = NULL;
    return weir_err_kept_get(stream->sample_err.err ? &stream->sample_err
                             : stream->ask_err.err  ? &stream->ask_err
                                                    : &stream->fetch_err);
}

void weir_batches_done(weir_batches *stream, const weir_train_batch *batch) {
    weir_err err = batches_give(stream->free, (weir_train_batch *)(uintptr_t)batch); /* it has room for all of them */
    WEIR_ASSERT(!err || batches_is_end(err));
}

void weir_batches_times_get(const weir_batches *stream, weir_batches_times *timesp) {
    WEIR_ASSERT(!stream->sample_thread && !stream->ask_thread && !stream->fetch_thread);
    *timesp = stream->times;
    timesp->exchange += stream->asking;
}

/* --- the handle ------------------------------------------------------------------------------------------------- */

weir_err weir_batches_open(const weir_batches_opts *opts, weir_batches **streamp) {
    *streamp = NULL;
    WEIR_ASSERT(opts->batch > 0 && opts->owners.ranks > 0);
    weir_batches *s = weir_calloc(1, sizeof *s);
    if (!s) return WEIR_NOMEM("for a stream of batches");
    s->opts = *opts;
    s->clock = weir_clock_system();
    weir_err err = weir_queue_open(WEIR_BATCHES_AHEAD, sizeof(weir_train_batch *), &s->free);
    if (!err) err = weir_queue_open(WEIR_BATCHES_AHEAD, sizeof(weir_train_batch *), &s->sampled);
    if (!err) err = weir_queue_open(WEIR_BATCHES_AHEAD, sizeof(weir_train_batch *), &s->asked);
    if (!err) err = weir_queue_open(WEIR_BATCHES_AHEAD, sizeof(weir_train_batch *), &s->ready);
    if (!err) err = weir_train_sampler_open(&s->opts, &s->sampler);
    if (!err) err = weir_train_fetcher_open(&s->opts, &s->fetcher);
    for (uint32_t i = 0; !err && i < WEIR_BATCHES_AHEAD; i++) { /* TRAIN-E3 */
        err = weir_train_batch_open(&s->opts, s->sampler, &s->batches[i]);
        if (!err) err = batches_give(s->free, s->batches[i]);
    }
    if (!err) err = weir_thread_start("sample", WEIR_ROLE_WORKER, batches_sample_main, s, &s->sample_thread);
    if (!err) err = weir_thread_start("ask", WEIR_ROLE_WORKER, batches_ask_main, s, &s->ask_thread);
    if (!err) err = weir_thread_start("fetch", WEIR_ROLE_WORKER, batches_fetch_main, s, &s->fetch_thread);
    if (err) {
        weir_batches_close(s);
        return err;
    }
    *streamp = s;
    return WEIR_OK;
}

void weir_batches_close(weir_batches *stream) {
    if (!stream) return;
    if (stream->free) weir_queue_close(stream->free);
    if (stream->sampled) weir_queue_close(stream->sampled);
    if (stream->asked) weir_queue_close(stream->asked);
    if (stream->ready) weir_queue_close(stream->ready);
    weir_thread_join(stream->sample_thread);
    weir_thread_join(stream->ask_thread);
    weir_thread_join(stream->fetch_thread);
    for (uint32_t i = 0; i < WEIR_BATCHES_AHEAD; i++)
        weir_train_batch_close(stream->batches[i]);
    weir_train_fetcher_close(stream->fetcher);
    weir_train_sampler_close(stream->sampler);
    weir_queue_free(stream->free);
    weir_queue_free(stream->sampled);
    weir_queue_free(stream->asked);
    weir_queue_free(stream->ready);
    weir_free(stream);
}

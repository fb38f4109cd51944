/* SPDX-License-Identifier: Apache-2.0 */
/* batches.c - the two stages and their queues; what one batch is made of stands in batch.c. */
#include <stdatomic.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/clock.h>
#include <weir/store/base/queue.h>
#include <weir/store/base/thread.h>

#include "batch.h"

struct weir_batches {
    weir_batches_opts opts;
    weir_queue *free, *sampled, *ready; /* of weir_making * */
    weir_thread *sample_thread, *fetch_thread;
    weir_train_sampler *sampler;
    weir_train_fetcher *fetcher;
    weir_making *makings[WEIR_BATCHES_AHEAD];
    weir_stage_times times; /* each by its own thread; read after the threads have ended */
    weir_err sample_err, fetch_err;
    weir_clock *clock;
};

static weir_err give(weir_queue *queue, weir_making *making) {
    return weir_queue_push(queue, &making, WEIR_QUEUE_FOREVER);
}

static weir_err take(weir_queue *queue, weir_making **makingp) {
    size_t count;
    return weir_queue_pop(queue, makingp, 1, WEIR_QUEUE_FOREVER, &count);
}

/* A queue that was closed is how a stage hears of the end, and of an early one. */
static bool is_end(weir_err err) {
    return err && weir_err_code(err) == WEIR_ECLOSED;
}

static weir_err sample_one(weir_batches *s, uint64_t number) {
    weir_making *making;
    weir_err err = take(s->free, &making);
    if (err) return err;
    int64_t begin_us = weir_clock_mono_us(s->clock);
    err = weir_making_sample(making, s->sampler, number);
    s->times.sample += weir_clock_mono_us(s->clock) - begin_us;
    return err ? err : give(s->sampled, making);
}

static void sample_main(void *context) {
    weir_batches *s = context;
    uint64_t batches = (s->opts.count + s->opts.batch - 1) / s->opts.batch;
    weir_err err = WEIR_OK;
    for (uint64_t number = 0; !err && number < batches; number++) /* TRAIN-E1: one thread, queues in order */
        err = sample_one(s, number);
    if (!is_end(err)) s->sample_err = err;
    weir_queue_close(s->sampled);
}

static weir_err fetch_one(weir_batches *s) {
    weir_making *making;
    weir_err err = take(s->sampled, &making);
    if (err) return err;
    int64_t begin_us = weir_clock_mono_us(s->clock);
    err = weir_making_exchange(making, s->fetcher);
    int64_t middle_us = weir_clock_mono_us(s->clock);
    if (!err) err = weir_making_encode(making, s->fetcher);
    s->times.exchange += middle_us - begin_us;
    s->times.encode += weir_clock_mono_us(s->clock) - middle_us;
    return err ? err : give(s->ready, making);
}

static void fetch_main(void *context) {
    weir_batches *s = context;
    weir_err err = WEIR_OK;
    while (!err)
        err = fetch_one(s);
    if (!is_end(err)) s->fetch_err = err;
    weir_queue_close(s->ready);
}

/* --- whoever computes ------------------------------------------------------------------------------------------- */

weir_err weir_batches_next(weir_batches *stream, const weir_train_batch **batchp) {
    weir_making *making;
    *batchp = NULL;
    int64_t begin_us = weir_clock_mono_us(stream->clock);
    weir_err err = take(stream->ready, &making);
    stream->times.wait += weir_clock_mono_us(stream->clock) - begin_us;
    if (!err) *batchp = weir_making_batch(making);
    if (!is_end(err)) return err;
    weir_thread_join(stream->fetch_thread);
    weir_queue_close(stream->free); /* a fetch that failed leaves the sampler waiting for memory */
    weir_queue_close(stream->sampled);
    weir_thread_join(stream->sample_thread);
    stream->fetch_thread = stream->sample_thread = NULL;
    return stream->sample_err ? stream->sample_err : stream->fetch_err;
}

void weir_batches_done(weir_batches *stream, const weir_train_batch *batch) {
    weir_making *making = weir_making_of(batch);
    weir_err err = give(stream->free, making); /* it has room for all of them */
    WEIR_ASSERT(!err || is_end(err));
}

void weir_batches_times_get(const weir_batches *stream, weir_stage_times *timesp) {
    *timesp = stream->times;
}

/* --- the handle ------------------------------------------------------------------------------------------------- */

static weir_err queues_open(weir_batches *s) {
    weir_err err = weir_queue_open(WEIR_BATCHES_AHEAD, sizeof(weir_making *), &s->free);
    if (!err) err = weir_queue_open(WEIR_BATCHES_AHEAD, sizeof(weir_making *), &s->sampled);
    if (!err) err = weir_queue_open(WEIR_BATCHES_AHEAD, sizeof(weir_making *), &s->ready);
    return err;
}

static weir_err makings_open(weir_batches *s) {
    weir_err err = WEIR_OK;
    for (uint32_t i = 0; !err && i < WEIR_BATCHES_AHEAD; i++) { /* TRAIN-E3 */
        err = weir_making_open(&s->opts, s->sampler, &s->makings[i]);
        if (!err) err = give(s->free, s->makings[i]);
    }
    return err;
}

weir_err weir_batches_open(const weir_batches_opts *opts, weir_batches **streamp) {
    *streamp = NULL;
    weir_batches *s = weir_calloc(1, sizeof *s);
    if (!s) return WEIR_NOMEM("for a stream of batches");
    s->opts = *opts;
    s->clock = weir_clock_system();
    weir_err err = queues_open(s);
    if (!err) err = weir_train_sampler_open(&s->opts, &s->sampler);
    if (!err) err = weir_train_fetcher_open(&s->opts, &s->fetcher);
    if (!err) err = makings_open(s);
    if (!err) err = weir_thread_start("sample", WEIR_ROLE_WORKER, sample_main, s, &s->sample_thread);
    if (!err) err = weir_thread_start("fetch", WEIR_ROLE_WORKER, fetch_main, s, &s->fetch_thread);
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
    if (stream->ready) weir_queue_close(stream->ready);
    weir_thread_join(stream->sample_thread);
    weir_thread_join(stream->fetch_thread);
    for (uint32_t i = 0; i < WEIR_BATCHES_AHEAD; i++)
        weir_making_close(stream->makings[i]);
    weir_train_fetcher_close(stream->fetcher);
    weir_train_sampler_close(stream->sampler);
    weir_queue_free(stream->free);
    weir_queue_free(stream->sampled);
    weir_queue_free(stream->ready);
    weir_free(stream);
}

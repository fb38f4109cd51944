/* SPDX-License-Identifier: Apache-2.0 */
/* batches.c - the makers of a stream, and who gets which targets; what one batch is made of stands in batch.c. */
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/clock.h>
#include <weir/store/base/queue.h>
#include <weir/store/base/thread.h>

#include "batch.h"
#include "lookahead.h"

typedef struct batches_maker {
    weir_batches *stream;
    uint32_t number;
    weir_comm *const *channels; /* NULL where there is one rank */
    weir_train_sampler *sampler;
    weir_train_fetcher *fetcher;
    weir_train_batch *batch;  /* its memory                                             */
    weir_queue *free, *ready; /* of that pointer, on its way to the maker, or from it    */
    weir_train_slice *slices; /* a ring: of the batch at hand, or of the next while none is, and of those foretold */
    uint32_t *lists;          /* theirs, each with room for a batch                     */
    uint64_t foretold;        /* the first of its batches that is not                   */
    weir_err_kept err;
    weir_thread *thread;
} batches_maker;

struct weir_batches {
    weir_batches_opts opts;
    weir_clock *clock;
    uint32_t horizon; /* batches that are foretold */
    uint32_t rounds;  /* slices of a maker          */
    batches_maker makers[WEIR_TRAIN_AHEAD_MAX];
    /* [main] */
    uint64_t taken, given_back;
    bool epoch_over; /* the last that was taken ends its epoch */
    /* Under the mutex: how far the lists have been cut. */
    weir_mutex mutex;
    uint32_t *drawn;       /* memory of lists; NULL: opts has the one */
    const uint32_t *list;  /* of the epoch at hand; NULL: all from opts.first on */
    weir_train_slice next; /* what batch `cut` gets, if its list has not ended */
    uint64_t count, cut;
    uint32_t epochs; /* begun */
};

static weir_err batches_give(weir_queue *queue, weir_train_batch *batch) {
    return weir_queue_push(queue, &batch, WEIR_QUEUE_FOREVER);
}

static weir_err batches_take(weir_queue *queue, weir_train_batch **batchp) {
    size_t count;
    return weir_queue_pop(queue, batchp, 1, WEIR_QUEUE_FOREVER, &count);
}

/* A queue that was closed is how the other side hears of the end, and of an early one. */
static bool batches_is_end(weir_err err) {
    return err && weir_err_code(err) == WEIR_ECLOSED;
}

/* --- lists -------------------------------------------------------------------------------------------------------- */

static void batches_begin_epoch(weir_batches *s) {
    const weir_batches_opts *o = &s->opts;
    s->next = (weir_train_slice){.epoch = o->epoch + s->epochs++, .seed = o->seed};
    s->list = o->list;
    s->count = o->count;
    if (o->draw) {
        s->count = o->draw(o->context, s->next.epoch, s->drawn, &s->next.seed);
        s->list = s->drawn;
    }
    WEIR_ASSERT(s->count > 0 && s->count <= o->targets->count);
    WEIR_ASSERT(s->list || o->first + s->count <= o->targets->count);
    s->next.batches = (s->count + o->batch - 1) / o->batch;
}

/* Where the slice of batch n is, until the batch is given back. */
static weir_train_slice *batches_slice(const weir_batches *s, uint64_t n) {
    return &s->makers[n % s->opts.ahead].slices[n / s->opts.ahead % s->rounds];
}

/* Puts the slice of batch n into its maker; false: the lists end before. Lists are cut in their order (TRAIN-E1), so
 * whoever comes first cuts for the makers of the batches before, too. Their slices are free: those had the batches one
 * memory and the horizon before, which were given back when the maker of n got its memory, since batches are given back
 * in their order. */
static bool batches_cut(weir_batches *s, uint64_t n) {
    const weir_batches_opts *o = &s->opts;
    weir_mutex_lock(&s->mutex);
    while (s->cut <= n && (s->next.end < s->count || s->epochs < o->epochs)) {
        if (s->next.end == s->count) batches_begin_epoch(s);
        const batches_maker *maker = &s->makers[s->cut % o->ahead];
        uint32_t *list = maker->lists + s->cut / o->ahead % s->rounds * o->batch;
        weir_train_slice *next = &s->next;
        next->nth = s->cut;
        next->begin = next->end;
        next->end = s->count - next->begin < o->batch ? s->count : next->begin + o->batch;
        next->last = next->end == s->count;
        for (uint64_t i = next->begin; i < next->end; i++)
            list[i - next->begin] = s->list ? s->list[i] : (uint32_t)(o->first + i);
        next->list = list;
        *batches_slice(s, s->cut++) = *next;
        next->number++;
    }
    bool there = n < s->cut;
    weir_mutex_unlock(&s->mutex);
    return there;
}

/* --- a maker ------------------------------------------------------------------------------------------------------ */

/* Since *at_us, until now, which *at_us becomes. */
static int64_t batches_stage_end(const batches_maker *maker, const weir_train_batch *batch, weir_train_stage stage,
                                 int64_t *at_us) {
    const weir_batches *s = maker->stream;
    const weir_train_span span = {s->opts.track + maker->number, stage, batch->epoch, batch->number, *at_us,
                                  weir_clock_mono_us(s->clock)};
    weir_train_trace_add(s->opts.trace, &span);
    *at_us = span.end_us;
    return span.end_us - span.begin_us;
}

weir_err weir_batches_where(const weir_batches *stream, const char *doing, const weir_train_batch *batch,
                            weir_err err) {
    err = weir_err_prefix(err, "%s batch %llu of %llu", doing, (unsigned long long)batch->number + 1,
                          (unsigned long long)batch->batches);
    return stream->opts.judged ? weir_err_prefix(err, "%s", stream->opts.judged)
                               : weir_err_prefix(err, "epoch %u", batch->epoch);
}

/* Of a stream that looks ahead, the maker's batches up to the horizon of batch n are foretold before n is made; those
 * behind the end, too, as having nothing: makers wait for each other's turns. */
static weir_err batches_foretell(batches_maker *maker, uint64_t n, weir_train_batch *batch) {
    weir_batches *s = maker->stream;
    weir_err err = WEIR_OK;
    for (uint64_t *at = &maker->foretold; !err && s->opts.kept.lookahead && *at <= n + s->horizon; *at += s->opts.ahead)
        err = weir_train_batch_foretell(batch, maker->sampler, *at, batches_cut(s, *at) ? batches_slice(s, *at) : NULL);
    return err ? weir_batches_where(s, "looking ahead to", batch, err) : WEIR_OK;
}

/* at_us: when its memory was there. */
static weir_err batches_make(const batches_maker *maker, int64_t at_us, uint64_t n, weir_train_batch *batch) {
    const weir_batches *s = maker->stream;
    weir_err err = weir_train_batch_sample(batch, maker->sampler, batches_slice(s, n));
    if (err) return weir_batches_where(s, "sampling", batch, err);
    batch->times.sample = batches_stage_end(maker, batch, WEIR_STAGE_SAMPLE, &at_us);
    err = weir_train_batch_ask(batch);
    if (err) return weir_batches_where(s, "asking for", batch, err);
    batch->times.exchange = batches_stage_end(maker, batch, WEIR_STAGE_ASK, &at_us);
    err = weir_train_batch_answer(batch, maker->fetcher);
    if (err) return weir_batches_where(s, "answering for", batch, err);
    batch->times.exchange += batches_stage_end(maker, batch, WEIR_STAGE_ANSWER, &at_us);
    err = weir_train_batch_encode(batch, maker->fetcher);
    batch->times.encode = batches_stage_end(maker, batch, WEIR_STAGE_ENCODE, &at_us);
    if (err) return weir_batches_where(s, "encoding", batch, err);
    if (!s->opts.kernels) return WEIR_OK;
    err = weir_train_batch_bring(batch);
    batch->times.bring = batches_stage_end(maker, batch, WEIR_STAGE_BRING, &at_us);
    return weir_batches_where(s, "bringing to the device", batch, err);
}

/* TRAIN-E5: that the queue was closed is heard when the memory that was inside has been used. */
static void batches_maker_main(void *context) {
    batches_maker *maker = context;
    weir_batches *s = maker->stream;
    weir_train_batch *batch;
    weir_err err = WEIR_OK;
    for (uint64_t n = maker->number; !err; n += s->opts.ahead) {
        err = batches_take(maker->free, &batch);
        int64_t begin_us = weir_clock_mono_us(s->clock);
        if (!err) err = batches_foretell(maker, n, batch);
        if (err || !batches_cut(s, n)) break;
        err = batches_make(maker, begin_us, n, batch);
        if (!err) err = batches_give(maker->ready, batch);
    }
    if (batches_is_end(err)) err = WEIR_OK;
    if (maker->channels)
        err = weir_comm_fail(maker->channels[0], err); /* others wait for this rank's part of the batch */
    weir_err_kept_set(&maker->err, err);
    weir_queue_close(maker->ready);
}

/* --- the caller that computes ----------------------------------------------------------------------------------- */

weir_err weir_batches_next(weir_batches *stream, const weir_train_batch **batchp) {
    batches_maker *maker = &stream->makers[stream->taken % stream->opts.ahead];
    weir_train_batch *batch;
    bool over = stream->epoch_over;
    *batchp = NULL;
    stream->epoch_over = false;
    if (over) return WEIR_OK;
    int64_t begin_us = weir_clock_mono_us(stream->clock);
    weir_err err = batches_take(maker->ready, &batch);
    if (err) return batches_is_end(err) ? weir_err_kept_get(&maker->err) : err;
    const weir_train_span span = {
        0, WEIR_STAGE_WAIT, batch->epoch, batch->number, begin_us, weir_clock_mono_us(stream->clock)};
    weir_train_trace_add(stream->opts.trace, &span);
    batch->times.wait = span.end_us - begin_us;
    stream->epoch_over = batches_slice(stream, stream->taken++)->last;
    *batchp = batch;
    return WEIR_OK;
}

void weir_batches_done(weir_batches *stream, const weir_train_batch *batch) {
    const batches_maker *maker = &stream->makers[stream->given_back++ % stream->opts.ahead];
    WEIR_ASSERT(stream->given_back <= stream->taken && batch == maker->batch);
    weir_err err = batches_give(maker->free, maker->batch); /* it has room */
    WEIR_ASSERT(!err);
}

uint32_t weir_batches_ready(const weir_batches *stream) {
    uint32_t ready = 0;
    for (uint32_t i = 0; i < stream->opts.ahead; i++) {
        weir_queue_stats stats;
        weir_queue_stats_get(stream->makers[i].ready, &stats);
        ready += stats.items > 0;
    }
    return ready;
}

/* --- the handle ------------------------------------------------------------------------------------------------- */

/* All of a maker but its thread. */
static weir_err batches_maker_open(weir_batches *s, uint32_t number) {
    batches_maker *maker = &s->makers[number];
    maker->stream = s;
    maker->number = number;
    maker->channels = s->opts.owners.ranks > 1 ? s->opts.channels[number] : NULL;
    maker->foretold = number;
    maker->slices = weir_calloc(s->rounds, sizeof *maker->slices);
    maker->lists = weir_calloc((size_t)s->rounds * s->opts.batch, sizeof *maker->lists);
    weir_err err = maker->slices && maker->lists ? WEIR_OK : WEIR_NOMEM("for a stream of batches; lower --batch");
    if (!err) err = weir_queue_open(1, sizeof(weir_train_batch *), &maker->free);
    if (!err) err = weir_queue_open(1, sizeof(weir_train_batch *), &maker->ready);
    if (!err) err = weir_train_sampler_open(&s->opts, maker->channels, &maker->sampler);
    if (!err) err = weir_train_fetcher_open(&s->opts, &maker->fetcher);
    if (!err) err = weir_train_batch_open(&s->opts, maker->sampler, maker->channels, &maker->batch);
    return err;
}

weir_err weir_batches_open(const weir_batches_opts *opts, weir_batches **streamp) {
    *streamp = NULL;
    WEIR_ASSERT(opts->batch > 0 && opts->owners.ranks > 0 && opts->ahead <= WEIR_TRAIN_AHEAD_MAX);
    weir_batches *s = weir_calloc(1, sizeof *s);
    if (!s) return WEIR_NOMEM("for a stream of batches");
    weir_mutex_init(&s->mutex, WEIR_RANK_LEAF, "lists of batches");
    s->opts = *opts;
    if (!opts->ahead) s->opts.ahead = WEIR_BATCHES_AHEAD;
    if (!opts->draw) s->opts.epochs = 1;
    s->horizon = weir_train_lookahead_horizon(opts->kept.lookahead);
    s->rounds = 1 + s->horizon / s->opts.ahead;
    s->clock = weir_clock_system();
    if (opts->draw) s->drawn = weir_calloc(opts->targets->ends[WEIR_TARGETS_TRAIN], sizeof *s->drawn);
    weir_err err = opts->draw && !s->drawn ? WEIR_NOMEM("for the targets of an epoch") : WEIR_OK;
    for (uint32_t i = 0; !err && i < s->opts.ahead; i++) /* TRAIN-E3 */
        err = batches_maker_open(s, i);
    for (uint32_t i = 0; !err && i < s->opts.ahead; i++)
        err = weir_thread_start("maker", WEIR_ROLE_WORKER, batches_maker_main, &s->makers[i], &s->makers[i].thread);
    for (uint32_t i = 0; !err && i < s->opts.ahead;
         i++) /* they begin when all are there, as one may wait for another */
        err = batches_give(s->makers[i].free, s->makers[i].batch);
    if (err) {
        weir_batches_close(s);
        return err;
    }
    *streamp = s;
    return WEIR_OK;
}

void weir_batches_close(weir_batches *stream) {
    if (!stream) return;
    for (uint32_t i = 0; i < stream->opts.ahead; i++)
        if (stream->makers[i].free) weir_queue_close(stream->makers[i].free);
    for (uint32_t i = 0; i < stream->opts.ahead; i++)
        weir_thread_join(stream->makers[i].thread); /* all of them: a maker cuts lists for others */
    for (uint32_t i = 0; i < stream->opts.ahead; i++) {
        batches_maker *maker = &stream->makers[i];
        weir_train_batch_close(maker->batch);
        weir_train_fetcher_close(maker->fetcher);
        weir_train_sampler_close(maker->sampler);
        weir_queue_free(maker->free);
        weir_queue_free(maker->ready);
        weir_free(maker->slices);
        weir_free(maker->lists);
    }
    weir_mutex_destroy(&stream->mutex);
    weir_free(stream->drawn);
    weir_free(stream);
}

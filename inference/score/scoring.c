/* SPDX-License-Identifier: Apache-2.0 */
/* scoring.c - workers that take what waits, and score it in one pass. */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <weir/inference/score/scoring.h>
#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/clock.h>
#include <weir/store/base/metrics.h>
#include <weir/store/base/queue.h>
#include <weir/store/base/thread.h>

#define THREADS_DEFAULT 2u
#define TARGET_WEIGHT   0.1 /* of the newest measurement */

typedef struct scoring_batch scoring_batch;

typedef struct scoring_thread {
    weir_scoring *scoring;
    scoring_batch *batch;
    weir_scorer *scorer;
    weir_thread *thread;
    uint32_t index;
    weir_scoring_work works[WEIR_SCORE_BATCH_MAX];
} scoring_thread;

struct weir_scoring {
    weir_graph *graph;
    weir_queue *queue;
    weir_mutex mutex; /* LEAF; guards both models, of which one is NULL */
    weir_score_model *model;
    weir_recommend_model *recommender;
    uint32_t batch;
    int64_t delay_us;
    weir_clock *clock;
    bool pace_is_set;            /* target_ns is not learnt                               */
    _Atomic int64_t target_ns;   /* of one target in a batch, with its answer; 0: not yet */
    _Atomic int64_t outstanding; /* targets that were submitted, and whose scores are not made yet */
    uint32_t thread_count;
    scoring_thread *threads;
};

/* --- a batch ------------------------------------------------------------------------------------------------------ */

/* Works whose asks go into one pass. */
struct scoring_batch {
    scoring_thread *self;
    weir_score_model *model;
    weir_score_ask asks[WEIR_SCORE_BATCH_MAX];
    weir_score scores[WEIR_SCORE_BATCH_MAX];
    const weir_scoring_work *works[WEIR_SCORE_BATCH_MAX];
    uint32_t firsts[WEIR_SCORE_BATCH_MAX], counts[WEIR_SCORE_BATCH_MAX];
    uint32_t work_count, ask_count;
};

/* The targets are taken off first: a client that has its answer may ask again at once, and must not be told that it
 * waits for itself. */
static void scoring_answer(const scoring_thread *self, const weir_scoring_work *work, const weir_score_model *model,
                           const weir_score *scores, weir_err err) {
    int64_t before = atomic_fetch_sub_explicit(&self->scoring->outstanding, work->targets, memory_order_relaxed);
    WEIR_ASSERT(before >= work->targets);
    work->done(work->context, self->index, model, scores, err);
}

static weir_err scoring_too_late(void) {
    return WEIR_ERR(WEIR_ETIMEOUT, "the time for this request was over before its turn came; ask again, or for less");
}

static bool scoring_is_late(const weir_scoring *s, const weir_scoring_work *work) {
    return work->deadline_us && weir_clock_mono_us(s->clock) > work->deadline_us;
}

/* A work that is too late or bad must not cost the others their answers: each is run alone, the most urgent first. */
static void scoring_run_alone(scoring_batch *b) {
    bool answered[WEIR_SCORE_BATCH_MAX] = {false};
    for (uint32_t left = b->work_count; left; left--) {
        uint32_t next = b->work_count;
        uint64_t earliest = 0;
        for (uint32_t i = 0; i < b->work_count; i++) {
            uint64_t deadline = (uint64_t)b->works[i]->deadline_us - 1; /* 0, no deadline, becomes the last of all */
            if (answered[i] || (next < b->work_count && deadline >= earliest)) continue;
            next = i;
            earliest = deadline;
        }
        WEIR_ASSERT(next < b->work_count);
        weir_score *scores = &b->scores[b->firsts[next]];
        weir_err err = scoring_is_late(b->self->scoring, b->works[next]) ? scoring_too_late() : WEIR_OK;
        if (!err) err = weir_scorer_run(b->self->scorer, b->model, &b->asks[b->firsts[next]], b->counts[next], scores);
        scoring_answer(b->self, b->works[next], b->model, err ? NULL : scores, err);
        answered[next] = true;
    }
}

static void scoring_batch_run(scoring_batch *b) {
    WEIR_ON_ROLE(WORKER);
    WEIR_ASSERT(b->work_count > 0 && b->work_count <= b->ask_count && b->ask_count <= WEIR_SCORE_BATCH_MAX);
    weir_scoring *s = b->self->scoring;
    int64_t start_ns = weir_clock_mono_ns(s->clock);
    int64_t known_ns = atomic_load_explicit(&s->target_ns, memory_order_relaxed);
    weir_err err = WEIR_OK;

    /* Together, if all of it will be done before the first of it must be. */
    bool together = true;
    int64_t end_us = weir_clock_mono_us(s->clock) + known_ns * b->ask_count / 1000;
    for (uint32_t i = 0; b->work_count > 1 && i < b->work_count; i++)
        if (b->works[i]->deadline_us && b->works[i]->deadline_us < end_us) together = false;
    if (together) err = weir_scorer_run(b->self->scorer, b->model, b->asks, b->ask_count, b->scores);
    if (!together || (err && b->work_count > 1)) {
        scoring_run_alone(b);
    } else {
        for (uint32_t i = 0; i < b->work_count; i++)
            scoring_answer(b->self, b->works[i], b->model, err ? NULL : &b->scores[b->firsts[i]], err);
    }

    /* What a target takes is learnt. Of two threads that store at once one is lost, which is as good as the other. */
    if (!s->pace_is_set) {
        known_ns = atomic_load_explicit(&s->target_ns, memory_order_relaxed);
        int64_t seen_ns = (weir_clock_mono_ns(s->clock) - start_ns) / b->ask_count;
        known_ns = known_ns ? known_ns + (int64_t)(TARGET_WEIGHT * (double)(seen_ns - known_ns)) : seen_ns;
        atomic_store_explicit(&s->target_ns, known_ns, memory_order_relaxed);
    }
    weir_metric_add(WEIR_METRIC_SCORE_BATCHES, 1);
    weir_metric_add(WEIR_METRIC_SCORE_TARGETS, b->ask_count);
    b->work_count = b->ask_count = 0;
}

/* The asks of one work join the batch; a work that finds no room runs the batch first and begins the next. */
static void scoring_batch_add(scoring_batch *b, const weir_scoring_work *work) {
    const weir_score_ask *asks = NULL;
    uint32_t count = 0;
    bool late = scoring_is_late(b->self->scoring, work);
    weir_err err = late ? scoring_too_late() : WEIR_OK;
    if (!err && b->model) err = work->prepare(work->context, b->self->index, b->model, &asks, &count);
    if (!err && count > WEIR_SCORE_BATCH_MAX)
        err = WEIR_ERR(WEIR_ELIMIT, "the request has %u targets; at most %u are possible", count, WEIR_SCORE_BATCH_MAX);
    if (err || count == 0) {
        scoring_answer(b->self, work, late ? NULL : b->model, NULL, err);
        return;
    }
    if (b->ask_count + count > WEIR_SCORE_BATCH_MAX) scoring_batch_run(b);
    WEIR_ASSERT(b->ask_count + count <= WEIR_SCORE_BATCH_MAX && b->work_count < WEIR_SCORE_BATCH_MAX);
    memcpy(&b->asks[b->ask_count], asks, count * sizeof *asks);
    b->works[b->work_count] = work;
    b->firsts[b->work_count] = b->ask_count;
    b->counts[b->work_count++] = count;
    b->ask_count += count;
}

/* --- workers and requests ----------------------------------------------------------------------------------------- */

static void scoring_worker_main(void *context) {
    scoring_thread *self = context;
    weir_scoring *s = self->scoring;
    scoring_batch *b = self->batch;
    size_t count, more = 0;
    while (!weir_queue_pop(s->queue, self->works, s->batch, WEIR_QUEUE_FOREVER, &count)) {
        if (count < s->batch && s->delay_us) {
            (void)weir_queue_pop(s->queue, self->works + count, s->batch - count, s->delay_us, &more); /* or none */
            count += more;
        }
        WEIR_ASSERT(count <= s->batch);
        b->model = weir_scoring_model(s); // SCORE-C4
        for (size_t i = 0; i < count; i++)
            scoring_batch_add(b, &self->works[i]);
        if (b->work_count) scoring_batch_run(b);
        weir_score_model_drop(b->model);
    }
}

weir_err weir_scoring_submit(weir_scoring *scoring, const weir_scoring_work *work) {
    weir_scoring_work copy = *work;
    if (!copy.targets) copy.targets = 1;

    /* What waits is shared out among the threads. A client whose time would be over by then is told now, while it can
     * still do something else. */
    int64_t waiting = atomic_load_explicit(&scoring->outstanding, memory_order_relaxed);
    int64_t target_ns = atomic_load_explicit(&scoring->target_ns, memory_order_relaxed);
    int64_t wait_us = waiting * target_ns / 1000 / scoring->thread_count;
    int64_t left_us = copy.deadline_us ? copy.deadline_us - weir_clock_mono_us(scoring->clock) : INT64_MAX;
    if (left_us < 0) return scoring_too_late();
    if (wait_us > left_us)
        return WEIR_ERR(WEIR_EBUSY,
                        "%lld targets wait before this request, for about %lld ms, and its time is over in %lld ms; "
                        "ask later, or give it more time",
                        (long long)waiting, (long long)(wait_us / 1000), (long long)(left_us / 1000));

    atomic_fetch_add_explicit(&scoring->outstanding, copy.targets, memory_order_relaxed);
    weir_err err = weir_queue_push(scoring->queue, &copy, 0);
    if (err) atomic_fetch_sub_explicit(&scoring->outstanding, copy.targets, memory_order_relaxed);
    if (!weir_err_is(err, WEIR_ETIMEOUT)) return err;
    return WEIR_ERR(WEIR_EBUSY, "too many requests already wait for a score; try again in a second");
}

/* --- the model ---------------------------------------------------------------------------------------------------- */

/* Both places at once: of what was there before, each is dropped outside the lock. */
static void scoring_place(weir_scoring *scoring, weir_score_model *model, weir_recommend_model *recommender) {
    const int64_t recall = recommender ? weir_recommend_model_recall(recommender) : 0;
    weir_mutex_lock(&scoring->mutex);
    weir_score_model *before = scoring->model;
    weir_recommend_model *recommender_before = scoring->recommender;
    scoring->model = model;
    scoring->recommender = recommender;
    weir_mutex_unlock(&scoring->mutex);
    weir_score_model_drop(before);
    weir_recommend_model_drop(recommender_before);
    weir_metric_set(WEIR_METRIC_RECOMMEND_RECALL, recall);
}

void weir_scoring_swap(weir_scoring *scoring, weir_score_model *model) {
    scoring_place(scoring, model ? weir_score_model_share(model) : NULL, NULL);
}

void weir_scoring_swap_recommender(weir_scoring *scoring, weir_recommend_model *model) {
    scoring_place(scoring, NULL, model ? weir_recommend_model_share(model) : NULL);
}

weir_score_model *weir_scoring_model(weir_scoring *scoring) {
    weir_mutex_lock(&scoring->mutex);
    weir_score_model *model = scoring->model ? weir_score_model_share(scoring->model) : NULL;
    weir_mutex_unlock(&scoring->mutex);
    return model;
}

weir_recommend_model *weir_scoring_recommender(weir_scoring *scoring) {
    weir_mutex_lock(&scoring->mutex);
    weir_recommend_model *model = scoring->recommender ? weir_recommend_model_share(scoring->recommender) : NULL;
    weir_mutex_unlock(&scoring->mutex);
    return model;
}

/* --- open and close ----------------------------------------------------------------------------------------------- */

weir_err weir_scoring_open(const weir_scoring_opts *opts, weir_scoring **scoringp) {
    uint32_t threads = opts->threads ? opts->threads : THREADS_DEFAULT;
    *scoringp = NULL;
    if (threads > WEIR_SCORING_THREADS_MAX || opts->batch > WEIR_SCORE_BATCH_MAX || opts->delay_us < 0)
        return WEIR_ERR(WEIR_EINVAL, "scoring takes at most %u threads, batches of at most %u and no negative delay",
                        WEIR_SCORING_THREADS_MAX, WEIR_SCORE_BATCH_MAX);
    weir_scoring *s = weir_calloc(1, sizeof *s);
    if (!s) return WEIR_NOMEM("for scoring");
    weir_mutex_init(&s->mutex, WEIR_RANK_LEAF, "serving model");
    s->graph = opts->graph;
    s->batch = opts->batch ? opts->batch : WEIR_SCORE_BATCH_MAX;
    s->delay_us = opts->delay_us;
    s->clock = opts->clock ? opts->clock : weir_clock_system();
    s->pace_is_set = opts->target_ns > 0;
    atomic_store(&s->target_ns, opts->target_ns);
    s->threads = weir_calloc(threads, sizeof *s->threads);
    weir_err err = s->threads ? WEIR_OK : WEIR_NOMEM("for scoring");
    if (!err) err = weir_queue_open(WEIR_SCORING_QUEUE, sizeof(weir_scoring_work), &s->queue);
    while (!err && s->thread_count < threads) {
        scoring_thread *self = &s->threads[s->thread_count];
        char name[WEIR_THREAD_NAME_MAX + 1];
        snprintf(name, sizeof name, "score-%u", s->thread_count);
        self->scoring = s;
        self->index = s->thread_count++; /* from here on, close cleans up after it */
        self->batch = weir_calloc(1, sizeof *self->batch);
        err = self->batch ? weir_scorer_open(s->graph, &self->scorer) : WEIR_NOMEM("for a thread that scores");
        if (err) break;
        self->batch->self = self;
        err = weir_thread_start(name, WEIR_ROLE_WORKER, scoring_worker_main, self, &self->thread);
    }
    if (err) {
        weir_scoring_close(s);
        return err;
    }
    *scoringp = s;
    return WEIR_OK;
}

void weir_scoring_close(weir_scoring *scoring) {
    if (!scoring) return;
    if (scoring->queue) weir_queue_close(scoring->queue);
    for (uint32_t i = 0; scoring->threads && i < scoring->thread_count; i++) {
        weir_thread_join(scoring->threads[i].thread);
        weir_scorer_close(scoring->threads[i].scorer);
        weir_free(scoring->threads[i].batch);
    }
    weir_queue_free(scoring->queue);
    weir_score_model_drop(scoring->model);
    weir_recommend_model_drop(scoring->recommender);
    weir_mutex_destroy(&scoring->mutex);
    weir_free(scoring->threads);
    weir_free(scoring);
}

uint32_t weir_scoring_threads(const weir_scoring *scoring) {
    return scoring->thread_count;
}

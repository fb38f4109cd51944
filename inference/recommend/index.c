/* SPDX-License-Identifier: Apache-2.0 */
/* index.c - the index of a model's items: made on a thread of its own, measured, and then used. */
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/clock.h>
#include <weir/store/base/log.h>
#include <weir/store/base/metrics.h>
#include <weir/store/base/rng.h>
#include <weir/store/base/thread.h>

#include "model_private.h"

#define INDEX_ASKED      64u /* users by whom it is measured */
#define INDEX_BEST       20u
#define INDEX_MET        8u
#define INDEX_RECALL_MIN 0.9 /* one that finds less is not used */

struct weir_recommend_index {
    const weir_recommend_model *model; /* which closes it before it goes */
    weir_thread *thread;
    atomic_bool stopping;
    _Atomic(weir_near *) near;
    _Atomic int64_t permille; /* of the best that it finds */
    weir_mutex mutex;         /* LEAF; guards done */
    weir_cond ended;
    bool done;
};

static bool index_is_stopped(void *context) {
    const weir_recommend_index *index = context;
    return atomic_load_explicit(&index->stopping, memory_order_relaxed);
}

/* What is asked: of users as they were learnt, evenly, and what one of them may have met. */
static void index_query(const weir_recommend_model *model, uint32_t at, double *sums, float *query) {
    const weir_recommend_tables *t = weir_recommend_model_tables(model);
    const weir_recommend_shape *shape = weir_recommend_model_shape(model);
    const uint64_t user = (uint64_t)at * t->user_count / INDEX_ASKED;
    weir_rng rng = weir_rng_stream(1, at, 0);
    uint64_t items[INDEX_MET];
    double weights[INDEX_MET];
    for (unsigned i = 0; i < INDEX_MET; i++) {
        items[i] = weir_rng_below(&rng, t->item_count);
        weights[i] = 1;
    }
    const weir_recommend_user of = {.own = t->user_count ? t->user_own + user * shape->width : NULL,
                                    .items = items,
                                    .weights = weights,
                                    .count = INDEX_MET};
    (void)weir_recommend_query(shape, t, &of, sums, query);
}

/* How many of the best 20 an index finds. */
static weir_err index_measure(weir_recommend_index *index, const weir_near *near, double *recallp) {
    const weir_recommend_tables *t = weir_recommend_model_tables(index->model);
    const weir_recommend_shape *shape = weir_recommend_model_shape(index->model);
    weir_near_searcher *searcher = NULL;
    double *sums = weir_calloc(shape->width, sizeof *sums);
    float *query = weir_calloc(shape->width, sizeof *query);
    float *scores = weir_calloc(WEIR_RECOMMEND_PIECE, sizeof *scores);
    const float trend_weight = (float)shape->trend_weight;
    weir_recommend_best best[INDEX_BEST];
    uint64_t rows[INDEX_BEST], found = 0, all = 0;
    weir_err err = sums && query && scores ? WEIR_OK : WEIR_NOMEM("to measure an index of items");
    if (!err) err = weir_near_searcher_open((uint32_t)t->item_count, INDEX_BEST, &searcher);
    for (uint32_t i = 0; !err && i < INDEX_ASKED; i++) {
        const uint64_t *none = NULL;
        uint32_t none_count = 0, count;
        if (index_is_stopped(index)) {
            err = WEIR_ERR(WEIR_ECANCELLED, "an index of items is not wanted any more");
            break;
        }
        index_query(index->model, i, sums, query);
        const weir_recommend_search search = {.items = t->items,
                                              .trends = t->trends,
                                              .item_count = t->item_count,
                                              .width = shape->width,
                                              .trend_weights = &trend_weight,
                                              .queries = query,
                                              .count = 1,
                                              .limit = INDEX_BEST,
                                              .skipped = &none,
                                              .skipped_counts = &none_count,
                                              .scores = scores};
        weir_recommend_top(&search, best, &count);
        const uint32_t told = weir_near_search(near, searcher, query, INDEX_BEST, rows);
        for (uint32_t b = 0; b < count; b++)
            for (uint32_t r = 0; r < told; r++)
                found += rows[r] == best[b].item;
        all += count;
    }
    *recallp = all ? (double)found / (double)all : 0;
    weir_near_searcher_close(searcher);
    weir_free(sums);
    weir_free(query);
    weir_free(scores);
    return err;
}

static void index_main(void *context) {
    weir_recommend_index *index = context;
    const weir_recommend_tables *t = weir_recommend_model_tables(index->model);
    const weir_recommend_shape *shape = weir_recommend_model_shape(index->model);
    const weir_near_items items = {.items = t->items,
                                   .trends = t->trends,
                                   .count = (uint32_t)t->item_count,
                                   .width = shape->width,
                                   .trend_weight = (float)shape->trend_weight};
    const int64_t begin_us = weir_clock_mono_us(weir_clock_system());
    weir_near *near = NULL;
    double recall = 0;
    weir_err err = weir_near_build(&items, index_is_stopped, index, &near);
    if (!err) err = index_measure(index, near, &recall);
    if (!err && recall < INDEX_RECALL_MIN)
        err = WEIR_ERR(WEIR_EDATA, "an index of the items finds %.0f of 100 of the best; answers look at all of them",
                       100 * recall);
    if (err) {
        weir_near_free(near);
        if (!weir_err_is(err, WEIR_ECANCELLED)) weir_log_error("recommend.unindexed", err);
    } else {
        atomic_store_explicit(&index->permille, (int64_t)lround(recall * 1000), memory_order_relaxed);
        atomic_store_explicit(&index->near, near, memory_order_release);
        if (!index_is_stopped(index)) weir_metric_set(WEIR_METRIC_RECOMMEND_RECALL, (int64_t)lround(recall * 1000));
        WEIR_LOG(INFO, "recommend.indexed", "answers come from an index of the items now",
                 WEIR_TEXT("model", weir_recommend_model_version(index->model)),
                 WEIR_I64("items", (int64_t)t->item_count), WEIR_F64("recall", recall),
                 WEIR_F64("seconds", (double)(weir_clock_mono_us(weir_clock_system()) - begin_us) * 1e-6));
    }
    weir_mutex_lock(&index->mutex);
    index->done = true;
    weir_cond_broadcast(&index->ended);
    weir_mutex_unlock(&index->mutex);
}

weir_err weir_recommend_index_open(const weir_recommend_model *model, weir_recommend_index **indexp) {
    *indexp = NULL;
    weir_recommend_index *index = weir_calloc(1, sizeof *index);
    if (!index) return WEIR_NOMEM("for an index of items");
    index->model = model;
    weir_mutex_init(&index->mutex, WEIR_RANK_LEAF, "index of items");
    weir_cond_init(&index->ended);
    weir_err err = weir_thread_start("index", WEIR_ROLE_WORKER, index_main, index, &index->thread);
    if (err) {
        weir_recommend_index_close(index);
        return err;
    }
    *indexp = index;
    return WEIR_OK;
}

void weir_recommend_index_close(weir_recommend_index *index) {
    if (!index) return;
    atomic_store_explicit(&index->stopping, true, memory_order_relaxed);
    if (index->thread) weir_thread_join(index->thread);
    weir_near_free(atomic_load_explicit(&index->near, memory_order_relaxed));
    weir_cond_destroy(&index->ended);
    weir_mutex_destroy(&index->mutex);
    weir_free(index);
}

const weir_near *weir_recommend_index_get(const weir_recommend_index *index) {
    return atomic_load_explicit(&index->near, memory_order_acquire);
}

int64_t weir_recommend_index_permille(const weir_recommend_index *index) {
    return atomic_load_explicit(&index->permille, memory_order_relaxed);
}

void weir_recommend_index_await(weir_recommend_index *index) {
    weir_mutex_lock(&index->mutex);
    while (!index->done)
        weir_cond_wait(&index->ended, &index->mutex);
    weir_mutex_unlock(&index->mutex);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* pool.c - threads for requests that take longer than a loop may wait. */
#include <stdio.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/queue.h>

#include "private.h"

#define QUEUE_MAX 256u
/* Of the graph, for a read on a loop: about a millisecond. 160 neighbours and their names take as many. */
#define LOOP_STEPS 4096u
#define REPLY_PART 8u /* of the time that is left, for the reply that says that the rest was not enough */

typedef struct pool_job {
    weir_http_request *request;
    weir_api_work work; /* or … */
    weir_api_read read;
} pool_job;

typedef struct pool_thread {
    weir_api_pool *pool;
    weir_thread *thread;
    uint32_t index; /* of its freshness */
} pool_thread;

struct weir_api_pool {
    weir_api *api;
    weir_queue *queue;
    uint32_t count;
    pool_thread threads[WEIR_API_POOL_THREADS];
};

static void pool_main(void *context) {
    const pool_thread *self = context;
    weir_api *api = self->pool->api;
    pool_job job;
    size_t count;
    WEIR_ON_ROLE(WORKER);
    while (!weir_queue_pop(self->pool->queue, &job, 1, WEIR_QUEUE_FOREVER, &count)) {
        weir_err err;
        if (job.read) {
            int64_t left_us = weir_http_left_us(job.request);
            weir_graph_budget budget = {.steps = UINT64_MAX, .clock = api->clock};
            budget.until_us = weir_clock_mono_us(api->clock) + left_us - left_us / REPLY_PART;
            err = job.read(api, self->index, job.request, &budget);
        } else {
            err = job.work(api, self->index, job.request);
        }
        if (err) weir_http_problem_err(job.request, err);
        weir_http_finish(job.request);
    }
}

weir_err weir_api_pool_open(weir_api *api, weir_api_pool **poolp) {
    *poolp = NULL;
    weir_api_pool *pool = weir_calloc(1, sizeof *pool);
    if (!pool) return WEIR_NOMEM("for the pool of threads");
    pool->api = api;
    weir_err err = weir_queue_open(QUEUE_MAX, sizeof(pool_job), &pool->queue);
    for (uint32_t i = 0; !err && i < WEIR_API_POOL_THREADS; i++) {
        pool_thread *self = &pool->threads[i];
        char name[WEIR_THREAD_NAME_MAX + 1];
        snprintf(name, sizeof name, "sample-%u", i);
        *self = (pool_thread){.pool = pool, .index = api->loops + 1 + i};
        err = weir_thread_start(name, WEIR_ROLE_WORKER, pool_main, self, &self->thread);
        if (!err) pool->count++;
    }
    if (err) {
        weir_api_pool_close(pool);
        return err;
    }
    *poolp = pool;
    return WEIR_OK;
}

static void pool_push(weir_api_pool *pool, const pool_job *job) {
    WEIR_ASSERT(!job->work != !job->read);
    weir_http_defer(job->request);
    if (!weir_queue_push(pool->queue, job, 0)) return;
    weir_http_problem(job->request, 503, NULL, "too many requests are waiting; try again in a second");
    weir_http_finish(job->request);
}

void weir_api_pool_run(weir_api_pool *pool, weir_http_request *request, weir_api_work work) {
    WEIR_ON_ROLE(LOOP);
    const pool_job job = {.request = request, .work = work};
    pool_push(pool, &job);
}

weir_err weir_api_pool_read(weir_api_pool *pool, weir_http_request *request, weir_api_read read) {
    WEIR_ON_ROLE(LOOP);
    const pool_job job = {.request = request, .read = read};
    weir_graph_budget budget = {.steps = LOOP_STEPS};
    weir_err err = read(pool->api, weir_http_loop_index(request), request, &budget);
    if (!budget.exceeded) return err;
    weir_http_start_over(request);
    pool_push(pool, &job);
    return WEIR_OK;
}

void weir_api_pool_close(weir_api_pool *pool) {
    if (!pool) return;
    if (pool->queue) weir_queue_close(pool->queue);
    for (uint32_t i = 0; i < pool->count; i++)
        weir_thread_join(pool->threads[i].thread);
    weir_queue_free(pool->queue);
    weir_free(pool);
}

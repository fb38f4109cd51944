/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue.c - a ring of items under one mutex.
 *
 * A waiter counts itself, so that nobody signals when nobody waits: on a queue that flows, push and pop are a lock, a
 * copy and an unlock. Consumers take many items per lock, which is what makes it fast enough for a mutex.
 */
#include <stdbool.h>
#include <string.h>

#include <weir/base/alloc.h>
#include <weir/base/assert.h>
#include <weir/base/clock.h>
#include <weir/base/queue.h>
#include <weir/base/thread.h>

struct weir_queue {
    weir_mutex mutex; /* QUEUE; guards all below */
    weir_cond room, work;
    unsigned waiting_push, waiting_pop;
    uint8_t *items;
    size_t item_bytes;
    size_t capacity;
    size_t first; /* oldest item's slot */
    size_t count;
    bool closed;
    weir_queue_stats stats;
};

weir_err weir_queue_open(size_t capacity, size_t item_bytes, weir_queue **queuep) {
    size_t bytes;
    *queuep = NULL;
    if (capacity == 0 || item_bytes == 0 || __builtin_mul_overflow(capacity, item_bytes, &bytes)) {
        return WEIR_ERR(WEIR_EINVAL, "a queue of %zu items of %zu bytes cannot be", capacity, item_bytes);
    }
    weir_queue *queue = weir_calloc(1, sizeof *queue);
    uint8_t *items = weir_malloc(bytes);
    if (!queue || !items) {
        weir_free(queue);
        weir_free(items);
        return WEIR_ERR(WEIR_ENOMEM, "no memory for a queue of %zu items of %zu bytes", capacity, item_bytes);
    }
    queue->items = items;
    queue->item_bytes = item_bytes;
    queue->capacity = capacity;
    weir_mutex_init(&queue->mutex, WEIR_RANK_QUEUE, "queue");
    weir_cond_init(&queue->room);
    weir_cond_init(&queue->work);
    *queuep = queue;
    return WEIR_OK;
}

/* Waits once; false when the time is up. */
static bool wait_for(weir_queue *queue, weir_cond *cond, unsigned *waiting, int64_t end_us) {
    bool woken = true;
    (*waiting)++;
    if (end_us == WEIR_QUEUE_FOREVER) {
        weir_cond_wait(cond, &queue->mutex);
    } else {
        woken = weir_cond_wait_until(cond, &queue->mutex, end_us);
    }
    (*waiting)--;
    return woken;
}

static int64_t end_of(int64_t start_us, int64_t wait_us) {
    int64_t end_us;
    return __builtin_add_overflow(start_us, wait_us, &end_us) ? WEIR_QUEUE_FOREVER : end_us;
}

static void wait_for_room(weir_queue *queue, int64_t wait_us) {
    if (queue->count < queue->capacity || queue->closed || wait_us <= 0) return;
    int64_t start_us = weir_clock_mono_us(weir_clock_system());
    while (queue->count == queue->capacity && !queue->closed) {
        if (!wait_for(queue, &queue->room, &queue->waiting_push, end_of(start_us, wait_us))) break;
    }
    queue->stats.wait_push_us += (uint64_t)(weir_clock_mono_us(weir_clock_system()) - start_us);
}

weir_err weir_queue_push(weir_queue *queue, const void *item, int64_t wait_us) {
    weir_err err = WEIR_OK;
    weir_mutex_lock(&queue->mutex);
    wait_for_room(queue, wait_us);
    if (queue->closed) {
        err = WEIR_ERR(WEIR_ECLOSED, "the queue is closed"); /* Q3 */
    } else if (queue->count == queue->capacity) {
        err = WEIR_ERR(WEIR_ETIMEOUT, "the queue of %zu items stayed full", queue->capacity);
    } else {
        size_t slot = (queue->first + queue->count) % queue->capacity; /* Q1 */
        memcpy(queue->items + slot * queue->item_bytes, item, queue->item_bytes);
        queue->count++;
        queue->stats.pushed_total++;
        WEIR_ASSERT(queue->count <= queue->capacity); /* Q2 */
        if (queue->waiting_pop) weir_cond_signal(&queue->work);
    }
    weir_mutex_unlock(&queue->mutex);
    return err;
}

static void wait_for_work(weir_queue *queue, int64_t wait_us) {
    if (queue->count > 0 || queue->closed || wait_us <= 0) return;
    int64_t start_us = weir_clock_mono_us(weir_clock_system());
    while (queue->count == 0 && !queue->closed) {
        if (!wait_for(queue, &queue->work, &queue->waiting_pop, end_of(start_us, wait_us))) break;
    }
    queue->stats.wait_pop_us += (uint64_t)(weir_clock_mono_us(weir_clock_system()) - start_us);
}

static size_t take(weir_queue *queue, uint8_t *items, size_t item_max) {
    size_t taken = queue->count < item_max ? queue->count : item_max;
    size_t before_end = queue->capacity - queue->first;
    size_t head = taken < before_end ? taken : before_end;
    memcpy(items, queue->items + queue->first * queue->item_bytes, head * queue->item_bytes);
    memcpy(items + head * queue->item_bytes, queue->items, (taken - head) * queue->item_bytes);
    queue->first = (queue->first + taken) % queue->capacity;
    queue->count -= taken;
    return taken;
}

weir_err weir_queue_pop(weir_queue *queue, void *items, size_t item_max, int64_t wait_us, size_t *item_countp) {
    weir_err err = WEIR_OK;
    *item_countp = 0;
    WEIR_ASSERT(item_max > 0);
    weir_mutex_lock(&queue->mutex);
    wait_for_work(queue, wait_us);
    if (queue->count > 0) {
        *item_countp = take(queue, items, item_max);
        if (queue->waiting_push > 1 && *item_countp > 1) {
            weir_cond_broadcast(&queue->room);
        } else if (queue->waiting_push) {
            weir_cond_signal(&queue->room);
        }
    } else {
        err = queue->closed ? WEIR_ERR(WEIR_ECLOSED, "the queue is closed and empty") /* Q3 */
                            : WEIR_ERR(WEIR_ETIMEOUT, "nothing came into the queue in time");
    }
    weir_mutex_unlock(&queue->mutex);
    return err;
}

void weir_queue_close(weir_queue *queue) {
    weir_mutex_lock(&queue->mutex);
    queue->closed = true;
    weir_cond_broadcast(&queue->room);
    weir_cond_broadcast(&queue->work);
    weir_mutex_unlock(&queue->mutex);
}

void weir_queue_stats_get(weir_queue *queue, weir_queue_stats *statsp) {
    weir_mutex_lock(&queue->mutex);
    *statsp = queue->stats;
    statsp->items = queue->count;
    weir_mutex_unlock(&queue->mutex);
}

void weir_queue_free(weir_queue *queue) {
    if (!queue) return;
    weir_cond_destroy(&queue->work);
    weir_cond_destroy(&queue->room);
    weir_mutex_destroy(&queue->mutex);
    weir_free(queue->items);
    weir_free(queue);
}

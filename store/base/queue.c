/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue.c - a ring under one mutex, with one condition for each direction.
 *
 * A lock-free ring would be faster only while no thread waits; here the consumer takes a batch under one lock, which is
 * where the time goes. Waiters are counted so that the usual push or pop, with no waiter, makes no system call.
 */
#include <weir/store/base/queue.h>

#include <stdbool.h>
#include <string.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/clock.h>
#include <weir/store/base/thread.h>

struct weir_queue {
    weir_mutex mutex; /* guards the rest */
    weir_cond not_full;
    weir_cond not_empty;
    size_t capacity;   /* items */
    size_t item_bytes; /* of one item */
    size_t next_push;  /* index into the ring */
    size_t next_pop;   /* index into the ring */
    uint64_t pushed;   /* since open */
    uint64_t popped;   /* since open */
    uint64_t wait_push_us;
    uint64_t wait_pop_us;
    unsigned pushers_waiting;
    unsigned poppers_waiting;
    bool closed;
    bool interrupted; /* no push waits */
    _Alignas(16) unsigned char items[];
};

weir_err weir_queue_open(size_t capacity, size_t item_bytes, weir_queue **queuep) {
    *queuep = NULL;
    size_t bytes;
    if (capacity == 0 || item_bytes == 0 || __builtin_mul_overflow(capacity, item_bytes, &bytes) ||
        __builtin_add_overflow(bytes, sizeof(weir_queue), &bytes))
        return WEIR_ERR(WEIR_EINVAL, "a queue cannot have room for %zu items of %zu bytes; give both, within memory",
                        capacity, item_bytes);
    weir_queue *queue = weir_malloc(bytes);
    if (!queue) return WEIR_NOMEM("for a queue of %zu items of %zu bytes; lower its capacity", capacity, item_bytes);
    *queue = (weir_queue){.capacity = capacity, .item_bytes = item_bytes};
    weir_mutex_init(&queue->mutex, WEIR_RANK_QUEUE, "queue");
    weir_cond_init(&queue->not_full);
    weir_cond_init(&queue->not_empty);
    *queuep = queue;
    return WEIR_OK;
}

void weir_queue_free(weir_queue *queue) {
    if (!queue) return;
    WEIR_ASSERT(queue->pushers_waiting == 0 && queue->poppers_waiting == 0);
    weir_cond_destroy(&queue->not_empty);
    weir_cond_destroy(&queue->not_full);
    weir_mutex_destroy(&queue->mutex);
    weir_free(queue);
}

/* --- waiting ------------------------------------------------------------------------------------------------ */

static bool queue_is_full(const weir_queue *queue) {
    return queue->pushed - queue->popped == queue->capacity;
}

static bool queue_push_must_wait(const weir_queue *queue) {
    return queue_is_full(queue) && !queue->interrupted;
}

static bool queue_is_empty(const weir_queue *queue) {
    return queue->pushed == queue->popped;
}

/* Waits while the queue is open and blocked, at most wait_us. The caller looks at the queue again: a change that comes
 * together with the end of the time still counts. */
static void queue_wait_while(weir_queue *queue, bool (*blocked)(const weir_queue *), weir_cond *cond, int64_t wait_us,
                             unsigned *waitingp, uint64_t *waited_usp) {
    if (wait_us <= 0 || queue->closed || !blocked(queue)) return;
    int64_t start_us = weir_clock_mono_us(weir_clock_system());
    int64_t until_us = wait_us < INT64_MAX - start_us ? start_us + wait_us : INT64_MAX;
    bool in_time = true;
    ++*waitingp;
    while (in_time && blocked(queue) && !queue->closed)
        in_time = weir_cond_wait_until(cond, &queue->mutex, until_us);
    --*waitingp;
    *waited_usp += (uint64_t)(weir_clock_mono_us(weir_clock_system()) - start_us);
}

/* --- items -------------------------------------------------------------------------------------------------- */

weir_err weir_queue_push(weir_queue *queue, const void *item, int64_t wait_us) {
    weir_err err = WEIR_OK;
    weir_mutex_lock(&queue->mutex);
    queue_wait_while(queue, queue_push_must_wait, &queue->not_full, wait_us, &queue->pushers_waiting,
                     &queue->wait_push_us);
    if (queue->closed) {
        err = WEIR_ERR(WEIR_ECLOSED, "the queue is closed and takes no more items");
    } else if (queue_is_full(queue) && queue->interrupted) {
        err = WEIR_ERR(WEIR_ECANCELLED, "the queue is full, and waiting for room was ended");
    } else if (queue_is_full(queue)) {
        err =
            WEIR_ERR(WEIR_ETIMEOUT, "the queue stayed full with %zu items; its consumer is too slow", queue->capacity);
    } else {
        WEIR_ASSERT(!queue->closed);                     // BASE-Q3
        WEIR_ASSERT(queue->next_push < queue->capacity); // BASE-Q2
        memcpy(queue->items + queue->next_push * queue->item_bytes, item, queue->item_bytes);
        queue->pushed++;
        if (++queue->next_push == queue->capacity) queue->next_push = 0;
        if (queue->poppers_waiting > 0) weir_cond_signal(&queue->not_empty);
    }
    weir_mutex_unlock(&queue->mutex);
    return err;
}

weir_err weir_queue_pop(weir_queue *queue, void *items, size_t item_max, int64_t wait_us, size_t *item_countp) {
    weir_err err = WEIR_OK;
    *item_countp = 0;
    if (item_max == 0) return WEIR_ERR(WEIR_EINVAL, "a pop of 0 items; ask for at least one");
    weir_mutex_lock(&queue->mutex);
    queue_wait_while(queue, queue_is_empty, &queue->not_empty, wait_us, &queue->poppers_waiting, &queue->wait_pop_us);
    if (!queue_is_empty(queue)) {
        /* In at most two runs: to the ring's end, and from its beginning. */
        uint64_t inside = queue->pushed - queue->popped;
        size_t count = inside < item_max ? (size_t)inside : item_max;
        size_t to_end = queue->capacity - queue->next_pop;
        size_t first = count < to_end ? count : to_end;
        memcpy(items, queue->items + queue->next_pop * queue->item_bytes, first * queue->item_bytes);
        memcpy((unsigned char *)items + first * queue->item_bytes, queue->items, (count - first) * queue->item_bytes);
        queue->next_pop = count < to_end ? queue->next_pop + count : count - first;
        queue->popped += count;
        inside -= count;
        WEIR_ASSERT((queue->next_pop + inside) % queue->capacity == queue->next_push); // BASE-Q1
        *item_countp = count;
        if (queue->pushers_waiting > 0) weir_cond_broadcast(&queue->not_full);
    } else if (queue->closed) {
        err = WEIR_ERR(WEIR_ECLOSED, "the queue is closed and empty");
    }
    weir_mutex_unlock(&queue->mutex);
    return err;
}

void weir_queue_close(weir_queue *queue) {
    weir_mutex_lock(&queue->mutex);
    queue->closed = true;
    weir_cond_broadcast(&queue->not_full);
    weir_cond_broadcast(&queue->not_empty);
    weir_mutex_unlock(&queue->mutex);
}

void weir_queue_interrupt(weir_queue *queue, bool on) {
    weir_mutex_lock(&queue->mutex);
    queue->interrupted = on;
    if (on) weir_cond_broadcast(&queue->not_full);
    weir_mutex_unlock(&queue->mutex);
}

void weir_queue_stats_get(weir_queue *queue, weir_queue_stats *statsp) {
    weir_mutex_lock(&queue->mutex);
    *statsp = (weir_queue_stats){
        .items = queue->pushed - queue->popped,
        .pushed_total = queue->pushed,
        .wait_push_us = queue->wait_push_us,
        .wait_pop_us = queue->wait_pop_us,
    };
    weir_mutex_unlock(&queue->mutex);
}

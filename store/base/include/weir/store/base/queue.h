/* SPDX-License-Identifier: Apache-2.0 */
/*
 * queue.h - a bounded queue between threads, of fixed-size items copied in and out.
 *
 * INVARIANTS
 *   BASE-Q1  Items come out in the order in which they went in (per producer), each once.
 *   BASE-Q2  Never more than `capacity` items are inside; a producer waits, or is told, but nothing is dropped.
 *   BASE-Q3  After close no item goes in; what is inside can still be taken, then consumers get WEIR_ECLOSED.
 *
 * THREADS: every function is [any], with any number of producers and consumers, but open and free: [owner].
 */
#ifndef WEIR_STORE_BASE_QUEUE_H
#define WEIR_STORE_BASE_QUEUE_H

#include <stddef.h>
#include <stdint.h>

#include <weir/store/base/err.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_queue weir_queue;

#define WEIR_QUEUE_FOREVER INT64_MAX

typedef struct weir_queue_stats {
    uint64_t items;        /* gauge:   inside now                     */
    uint64_t pushed_total; /* counter                                 */
    uint64_t wait_push_us; /* counter: time producers waited for room */
    uint64_t wait_pop_us;  /* counter: time consumers waited for work */
} weir_queue_stats;

/* WEIR_EINVAL capacity or item_bytes 0, or their product overflows; WEIR_ENOMEM. */
weir_err weir_queue_open(size_t capacity, size_t item_bytes, weir_queue **queuep);
/* Blocks for room up to wait_us (0: not at all).  WEIR_ETIMEOUT; WEIR_ECLOSED; WEIR_ECANCELLED it is full, and
 * waiting is interrupted, whatever wait_us is. */
weir_err weir_queue_push(weir_queue *queue, const void *item, int64_t wait_us);
/* Blocks for the first item up to wait_us, then takes up to item_max without blocking. That nothing came in time is no
 * error: success with *item_countp 0.  WEIR_ECLOSED closed and empty; WEIR_EINVAL item_max is 0. */
weir_err weir_queue_pop(weir_queue *queue, void *items, size_t item_max, int64_t wait_us, size_t *item_countp);
/* While it is on, no push waits for room: those that do end with WEIR_ECANCELLED. For a stop that cannot wait until a
 * consumer that is stuck goes on.  [any] */
void weir_queue_interrupt(weir_queue *queue, bool on);
/* Wakes everybody; may be called twice. */
void weir_queue_close(weir_queue *queue);
void weir_queue_stats_get(weir_queue *queue, weir_queue_stats *statsp);
/* No thread may be inside; NULL is allowed.  [owner] */
void weir_queue_free(weir_queue *queue);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_STORE_BASE_QUEUE_H */

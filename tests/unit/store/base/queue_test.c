/* SPDX-License-Identifier: Apache-2.0 */
#include "weir_test.h"

#include <stdatomic.h>
#include <string.h>

#include <weir/store/base/clock.h>
#include <weir/store/base/queue.h>
#include <weir/store/base/rng.h>
#include <weir/store/base/thread.h>

static weir_queue *open_queue(size_t capacity, size_t item_bytes) {
    weir_queue *queue;
    assert_ok(weir_queue_open(capacity, item_bytes, &queue));
    return queue;
}

static uint64_t items_inside(weir_queue *queue) {
    weir_queue_stats stats;
    weir_queue_stats_get(queue, &stats);
    return stats.items;
}

static void sizes_that_cannot_be_are_refused(void **state) {
    (void)state;
    weir_queue *queue = (weir_queue *)&queue;
    assert_err(weir_queue_open(0, 8, &queue), WEIR_EINVAL, "0 items of 8 bytes");
    assert_null(queue);
    assert_err(weir_queue_open(8, 0, &queue), WEIR_EINVAL, "8 items of 0 bytes");
    assert_err(weir_queue_open(SIZE_MAX / 8 + 1, 8, &queue), WEIR_EINVAL, NULL);
    assert_err(weir_queue_open(SIZE_MAX, 1, &queue), WEIR_EINVAL, NULL);
    weir_queue_free(NULL);
}

static weir_err open_and_free(void *context) {
    (void)context;
    weir_queue *queue;
    weir_err err = weir_queue_open(100, 8, &queue);
    weir_queue_free(queue);
    return err;
}

static void open_fails_cleanly_at_every_allocation(void **state) {
    (void)state;
    weir_test_every_allocation(open_and_free, NULL);
}

/* One thread, random pushes and batches, against two counters that say what must come next. */
static void q1_order_through_every_wrap(void **state) {
    (void)state;
    static const size_t sizes[] = {1, 3, 8, 17, 4096};
    static unsigned char item[4096], items[16 * 4096];
    weir_rng rng = weir_rng_stream(weir_test_seed(), 0, 0);
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        size_t capacity = 1 + weir_rng_below(&rng, 13), count;
        uint64_t pushed = 0, popped = 0;
        weir_queue *queue = open_queue(capacity, sizes[s]);
        for (uint64_t round = 0; round < weir_test_rounds(2000); round++) {
            for (uint64_t i = weir_rng_below(&rng, capacity + 1 - (pushed - popped)); i > 0; i--) {
                memset(item, (int)(pushed++ % 251), sizes[s]);
                assert_ok(weir_queue_push(queue, item, 0));
            }
            assert_int_equal(items_inside(queue), pushed - popped);
            weir_err err = weir_queue_pop(queue, items, 1 + weir_rng_below(&rng, 16), 0, &count);
            assert_ok(err);
            assert_int_equal(count == 0, pushed == popped);
            for (size_t i = 0; i < count; i++, popped++)
                for (size_t byte = 0; byte < sizes[s]; byte++)
                    assert_int_equal(items[i * sizes[s] + byte], popped % 251);
        }
        weir_queue_free(queue);
    }
}

static void q1_pop_takes_no_more_than_asked(void **state) {
    (void)state;
    weir_queue *queue = open_queue(8, sizeof(int));
    int items[8];
    size_t count;
    for (int i = 0; i < 8; i++)
        assert_ok(weir_queue_push(queue, &i, 0));
    memset(items, -1, sizeof items);
    assert_ok(weir_queue_pop(queue, items, 3, 0, &count));
    assert_int_equal(count, 3);
    assert_int_equal(items[2], 2);
    assert_int_equal(items[3], -1);
    assert_ok(weir_queue_pop(queue, items, 100, 0, &count));
    assert_int_equal(count, 5);
    assert_int_equal(items[4], 7);
    assert_err(weir_queue_pop(queue, items, 0, 0, &count), WEIR_EINVAL, "0 items");
    weir_queue_free(queue);
}

static void q2_never_above_capacity(void **state) {
    (void)state;
    for (size_t capacity = 1; capacity <= 5; capacity++) {
        weir_queue *queue = open_queue(capacity, sizeof(size_t));
        for (size_t i = 0; i < capacity; i++)
            assert_ok(weir_queue_push(queue, &i, 0));
        size_t refused = 99, item, count;
        assert_err(weir_queue_push(queue, &refused, 0), WEIR_ETIMEOUT, "full");
        assert_err(weir_queue_push(queue, &refused, 1000), WEIR_ETIMEOUT, "full");
        assert_err(weir_queue_push(queue, &refused, INT64_MIN), WEIR_ETIMEOUT, "full");
        assert_int_equal(items_inside(queue), capacity);
        for (size_t i = 0; i < capacity; i++) { /* and nothing was dropped */
            assert_ok(weir_queue_pop(queue, &item, 1, 0, &count));
            assert_int_equal(item, i);
        }
        weir_queue_free(queue);
    }
}

/* An idle thread asks many times a second: that nothing came must not count as an error. */
static void pop_of_an_empty_queue_is_no_error(void **state) {
    (void)state;
    weir_queue *queue = open_queue(1, 1);
    char item = 7;
    size_t count = 9;
    uint64_t errors = weir_err_count(WEIR_ETIMEOUT);
    assert_ok(weir_queue_pop(queue, &item, 1, 0, &count));
    assert_int_equal(count, 0);
    count = 9;
    assert_ok(weir_queue_pop(queue, &item, 1, 1000, &count));
    assert_int_equal(count, 0);
    assert_int_equal(item, 7);
    assert_int_equal(weir_err_count(WEIR_ETIMEOUT), errors);
    weir_queue_free(queue);
}

static void push_for_ever(void *context) {
    char item = 1;
    assert_err(weir_queue_push(context, &item, WEIR_QUEUE_FOREVER), WEIR_ECANCELLED, "waiting for room was ended");
}

static void interrupt_ends_waiting_pushes_and_nothing_else(void **state) {
    (void)state;
    weir_queue *queue = open_queue(1, 1);
    weir_thread *pusher;
    char item = 3;
    size_t count;
    assert_ok(weir_queue_push(queue, &item, 0));
    assert_ok(weir_thread_start("pusher", WEIR_ROLE_TEST, push_for_ever, queue, &pusher));
    weir_queue_interrupt(queue, true);
    weir_thread_join(pusher);
    assert_ok(weir_queue_pop(queue, &item, 1, 0, &count));
    assert_int_equal(count, 1);
    assert_ok(weir_queue_push(queue, &item, WEIR_QUEUE_FOREVER)); /* there is room: nothing to wait for */
    weir_queue_interrupt(queue, false);
    assert_err(weir_queue_push(queue, &item, 1000), WEIR_ETIMEOUT, "full");
    weir_queue_free(queue);
}

static void q3_after_close_only_what_is_inside(void **state) {
    (void)state;
    weir_queue *queue = open_queue(4, sizeof(int));
    int item = 1;
    size_t count;
    assert_ok(weir_queue_push(queue, &item, 0));
    item = 2;
    assert_ok(weir_queue_push(queue, &item, 0));
    weir_queue_close(queue);
    weir_queue_close(queue);
    assert_err(weir_queue_push(queue, &item, WEIR_QUEUE_FOREVER), WEIR_ECLOSED, NULL);
    for (int expected = 1; expected <= 2; expected++) {
        assert_ok(weir_queue_pop(queue, &item, 1, WEIR_QUEUE_FOREVER, &count));
        assert_int_equal(item, expected);
    }
    count = 9;
    assert_err(weir_queue_pop(queue, &item, 1, WEIR_QUEUE_FOREVER, &count), WEIR_ECLOSED, NULL);
    assert_int_equal(count, 0);
    weir_queue_free(queue);
}

static void push_one(void *queue) {
    int item = 5;
    assert_ok(weir_queue_push(queue, &item, WEIR_QUEUE_FOREVER));
}

static void push_into_closed(void *queue) {
    int item = 6;
    assert_err(weir_queue_push(queue, &item, WEIR_QUEUE_FOREVER), WEIR_ECLOSED, NULL);
}

static void pop_one(void *queue) {
    int item;
    size_t count;
    assert_ok(weir_queue_pop(queue, &item, 1, WEIR_QUEUE_FOREVER, &count));
}

static void pop_from_closed(void *queue) {
    int item;
    size_t count;
    assert_err(weir_queue_pop(queue, &item, 1, WEIR_QUEUE_FOREVER, &count), WEIR_ECLOSED, NULL);
}

/* Whether each waiter comes before or after what it waits for is left to chance: it must end either way. */
static void waiters_go_on(void **state) {
    (void)state;
    weir_thread *producer, *consumer;
    for (uint64_t round = 0; round < weir_test_rounds(100); round++) {
        weir_queue *queue = open_queue(1, sizeof(int));
        assert_ok(weir_thread_start("consumer", WEIR_ROLE_TEST, pop_one, queue, &consumer));
        push_one(queue);
        weir_thread_join(consumer);
        push_one(queue);
        assert_ok(weir_thread_start("producer", WEIR_ROLE_TEST, push_one, queue, &producer));
        pop_one(queue);
        weir_thread_join(producer);
        weir_queue_free(queue);
    }
}

/* Room for two is made at once, and nobody pops again: both must go on. */
static void one_pop_wakes_all_whom_it_makes_room_for(void **state) {
    (void)state;
    weir_thread *first, *second;
    for (uint64_t round = 0; round < weir_test_rounds(100); round++) {
        weir_queue *queue = open_queue(2, sizeof(int));
        int items[2];
        size_t count;
        push_one(queue);
        push_one(queue);
        assert_ok(weir_thread_start("producer 1", WEIR_ROLE_TEST, push_one, queue, &first));
        assert_ok(weir_thread_start("producer 2", WEIR_ROLE_TEST, push_one, queue, &second));
        if (round % 2) weir_clock_sleep_until(weir_clock_system(), weir_clock_mono_us(weir_clock_system()) + 1000);
        assert_ok(weir_queue_pop(queue, items, 2, 0, &count));
        assert_int_equal(count, 2);
        weir_thread_join(first);
        weir_thread_join(second);
        weir_queue_free(queue);
    }
}

static void q3_close_wakes_everybody(void **state) {
    (void)state;
    enum { EACH = 3 };
    weir_thread *threads[2 * EACH];
    for (uint64_t round = 0; round < weir_test_rounds(50); round++) {
        weir_queue *full = open_queue(1, sizeof(int)), *empty = open_queue(1, sizeof(int));
        push_one(full);
        for (int i = 0; i < EACH; i++) {
            assert_ok(weir_thread_start("producer", WEIR_ROLE_TEST, push_into_closed, full, &threads[i]));
            assert_ok(weir_thread_start("consumer", WEIR_ROLE_TEST, pop_from_closed, empty, &threads[EACH + i]));
        }
        weir_queue_close(full);
        weir_queue_close(empty);
        for (int i = 0; i < 2 * EACH; i++)
            weir_thread_join(threads[i]);
        assert_int_equal(items_inside(full), 1);
        weir_queue_free(full);
        weir_queue_free(empty);
    }
}

static void what_happened_is_counted(void **state) {
    (void)state;
    weir_queue *queue = open_queue(2, 1);
    weir_queue_stats stats;
    char item = 0;
    size_t count;
    assert_ok(weir_queue_push(queue, &item, 0));
    assert_ok(weir_queue_push(queue, &item, 0));
    weir_queue_stats_get(queue, &stats);
    assert_int_equal(stats.wait_push_us, 0);
    assert_err(weir_queue_push(queue, &item, 2000), WEIR_ETIMEOUT, NULL);
    assert_ok(weir_queue_pop(queue, &item, 1, 0, &count));
    weir_queue_stats_get(queue, &stats);
    assert_int_equal(stats.items, 1);
    assert_int_equal(stats.pushed_total, 2);
    assert_true(stats.wait_push_us >= 2000);
    assert_int_equal(stats.wait_pop_us, 0);
    weir_queue_free(queue);
}

/* --- many producers, many consumers ------------------------------------------------------------------------- */

enum { PRODUCERS = 4, CONSUMERS = 4, ITEMS_EACH = 20000 };

typedef struct crowd_item {
    uint32_t producer;
    uint32_t number;
} crowd_item;

typedef struct crowd {
    weir_queue *queue;
    atomic_uint next_producer;
    atomic_uint accepted[PRODUCERS];
    atomic_uchar taken[PRODUCERS][ITEMS_EACH]; /* how often */
    atomic_ulong taken_count;
    atomic_bool watch;
    size_t capacity;
} crowd;

static void produce(void *context) {
    crowd *all = context;
    crowd_item item = {.producer = atomic_fetch_add(&all->next_producer, 1)};
    for (; item.number < ITEMS_EACH; item.number++) {
        weir_err err = weir_queue_push(all->queue, &item, WEIR_QUEUE_FOREVER);
        if (weir_err_is(err, WEIR_ECLOSED)) break;
        assert_ok(err);
    }
    atomic_store(&all->accepted[item.producer], item.number);
}

static void consume(void *context) {
    crowd *all = context;
    int64_t last[PRODUCERS];
    memset(last, -1, sizeof last);
    for (;;) {
        crowd_item items[9];
        size_t count;
        weir_err err = weir_queue_pop(all->queue, items, 9, WEIR_QUEUE_FOREVER, &count);
        if (weir_err_is(err, WEIR_ECLOSED)) return;
        assert_ok(err);
        assert_in_range(count, 1, 9);
        for (size_t i = 0; i < count; i++) {
            assert_true(items[i].number > last[items[i].producer]); /* Q1, as far as one consumer sees it */
            last[items[i].producer] = items[i].number;
            atomic_fetch_add(&all->taken[items[i].producer][items[i].number], 1);
        }
        atomic_fetch_add(&all->taken_count, count);
    }
}

static void watch_capacity(void *context) {
    crowd *all = context;
    while (atomic_load(&all->watch))
        assert_in_range(items_inside(all->queue), 0, all->capacity);
}

/* close_after: items taken before the queue is closed under the producers' hands. */
static void run_crowd(size_t capacity, unsigned long close_after) {
    static crowd all;
    weir_thread *producers[PRODUCERS], *consumers[CONSUMERS], *watcher;
    memset(&all, 0, sizeof all);
    all.queue = open_queue(capacity, sizeof(crowd_item));
    all.capacity = capacity;
    all.watch = true;
    assert_ok(weir_thread_start("watcher", WEIR_ROLE_TEST, watch_capacity, &all, &watcher));
    for (int i = 0; i < CONSUMERS; i++)
        assert_ok(weir_thread_start("consumer", WEIR_ROLE_TEST, consume, &all, &consumers[i]));
    for (int i = 0; i < PRODUCERS; i++)
        assert_ok(weir_thread_start("producer", WEIR_ROLE_TEST, produce, &all, &producers[i]));
    while (atomic_load(&all.taken_count) < close_after)
        sched_yield();
    weir_queue_close(all.queue);
    for (int i = 0; i < PRODUCERS; i++)
        weir_thread_join(producers[i]);
    for (int i = 0; i < CONSUMERS; i++)
        weir_thread_join(consumers[i]);
    atomic_store(&all.watch, false);
    weir_thread_join(watcher);
    for (int producer = 0; producer < PRODUCERS; producer++)
        for (unsigned number = 0; number < ITEMS_EACH; number++)
            assert_int_equal(all.taken[producer][number], number < all.accepted[producer]);
    weir_queue_free(all.queue);
}

static void q1_q2_q3_in_a_crowd(void **state) {
    (void)state;
    run_crowd(7, PRODUCERS * ITEMS_EACH);
    run_crowd(1000, PRODUCERS * ITEMS_EACH);
}

static void q3_closed_in_a_crowd(void **state) {
    (void)state;
    run_crowd(1, 1000);
    run_crowd(7, 10000);
    run_crowd(100, 0);
}

WEIR_TESTS(WEIR_CASE(sizes_that_cannot_be_are_refused), WEIR_CASE(open_fails_cleanly_at_every_allocation),
           WEIR_CASE(q1_order_through_every_wrap), WEIR_CASE(q1_pop_takes_no_more_than_asked),
           WEIR_CASE(q2_never_above_capacity), WEIR_CASE(pop_of_an_empty_queue_is_no_error),
           WEIR_CASE(interrupt_ends_waiting_pushes_and_nothing_else), WEIR_CASE(q3_after_close_only_what_is_inside),
           WEIR_CASE(waiters_go_on), WEIR_CASE(one_pop_wakes_all_whom_it_makes_room_for),
           WEIR_CASE(q3_close_wakes_everybody), WEIR_CASE(what_happened_is_counted), WEIR_CASE(q1_q2_q3_in_a_crowd),
           WEIR_CASE(q3_closed_in_a_crowd))

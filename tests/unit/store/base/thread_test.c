/* SPDX-License-Identifier: Apache-2.0 */
#include "weir_test.h"

#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/resource.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/clock.h>
#include <weir/store/base/thread.h>

static weir_mutex queue_lock, other_queue_lock, log_lock, leaf_lock;
static weir_cond cond;

static void init_locks(void) {
    weir_mutex_init(&queue_lock, WEIR_RANK_QUEUE, "queue");
    weir_mutex_init(&other_queue_lock, WEIR_RANK_QUEUE, "other queue");
    weir_mutex_init(&log_lock, WEIR_RANK_LOG, "log");
    weir_mutex_init(&leaf_lock, WEIR_RANK_LEAF, "leaf");
    weir_cond_init(&cond);
}

static void run_thread(const char *name, weir_role role, weir_thread_main main, void *context) {
    weir_thread *thread;
    assert_ok(weir_thread_start(name, role, main, context, &thread));
    weir_thread_join(thread);
}

/* --- threads ------------------------------------------------------------------------------------------------ */

static void do_nothing(void *context) {
    (void)context;
}

static void look_at_myself(void *context) {
    char system_name[16];
    assert_string_equal(weir_thread_name(), context);
    assert_int_equal(weir_thread_role(), WEIR_ROLE_WORKER);
    assert_int_equal(pthread_getname_np(pthread_self(), system_name, sizeof system_name), 0);
    assert_string_equal(system_name, context);
}

static void thread_has_its_name_and_role(void **state) {
    (void)state;
    static char shortest[] = "w", longest[] = "fifteen letters";
    assert_int_equal(strlen(longest), WEIR_THREAD_NAME_MAX);
    run_thread(shortest, WEIR_ROLE_WORKER, look_at_myself, shortest);
    run_thread(longest, WEIR_ROLE_WORKER, look_at_myself, longest);
}

static void name_that_is_empty_or_too_long_is_refused(void **state) {
    (void)state;
    weir_thread *thread = (weir_thread *)&thread;
    assert_err(weir_thread_start("", WEIR_ROLE_TEST, do_nothing, NULL, &thread), WEIR_EINVAL, "0 bytes");
    assert_null(thread);
    assert_err(weir_thread_start("sixteen letters!", WEIR_ROLE_TEST, do_nothing, NULL, &thread), WEIR_EINVAL,
               "16 bytes");
    weir_thread_join(NULL);
}

static void *look_before_adoption(void *context) {
    (void)context;
    assert_string_equal(weir_thread_name(), "main");
    assert_int_equal(weir_thread_role(), WEIR_ROLE_MAIN);
    weir_thread_adopt("rdk:broker1 and more", WEIR_ROLE_KAFKA);
    assert_string_equal(weir_thread_name(), "rdk:broker1 and");
    assert_int_equal(weir_thread_role(), WEIR_ROLE_KAFKA);
    weir_assert_thread(WEIR_ROLE_KAFKA);
    return NULL;
}

static void thread_of_a_library_is_adopted(void **state) {
    (void)state;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, look_before_adoption, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

static void look_at_the_mask(void *context) {
    (void)context;
    sigset_t mask;
    assert_int_equal(pthread_sigmask(SIG_SETMASK, NULL, &mask), 0);
    assert_true(sigismember(&mask, SIGTERM) && sigismember(&mask, SIGINT) && sigismember(&mask, SIGHUP));
    assert_false(sigismember(&mask, SIGSEGV) || sigismember(&mask, SIGBUS) || sigismember(&mask, SIGABRT));
}

static void signals_are_blocked_in_threads_alone(void **state) {
    (void)state;
    sigset_t before, after;
    assert_int_equal(pthread_sigmask(SIG_SETMASK, NULL, &before), 0);
    run_thread("masked", WEIR_ROLE_TEST, look_at_the_mask, NULL);
    assert_int_equal(pthread_sigmask(SIG_SETMASK, NULL, &after), 0);
    for (int number = 1; number < NSIG; number++)
        assert_int_equal(sigismember(&before, number), sigismember(&after, number));
}

static weir_err start_and_join(void *context) {
    weir_thread *thread;
    weir_err err = weir_thread_start("tried", WEIR_ROLE_TEST, do_nothing, context, &thread);
    weir_thread_join(thread);
    return err;
}

static void start_fails_cleanly_at_every_allocation(void **state) {
    (void)state;
    weir_test_every_allocation(start_and_join, NULL);
}

static void start_says_when_the_system_refuses(void **state) {
    (void)state;
    if (*weir_test_sanitizer()) weir_test_skip("sanitizers do not bear a limit of address space");
    const struct rlimit nothing = {4096, RLIM_INFINITY};
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
    assert_int_equal(setrlimit(RLIMIT_AS, &nothing), 0);
    weir_thread *thread;
    weir_alloc_stats heap_before, heap_after;
    weir_alloc_stats_get(&heap_before);
    weir_err err = weir_thread_start("refused", WEIR_ROLE_TEST, do_nothing, NULL, &thread);
    assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
    weir_alloc_stats_get(&heap_after);
    assert_err(err, WEIR_EUNAVAILABLE, "'refused'");
    assert_null(thread);
    assert_int_equal(heap_after.live_blocks, heap_before.live_blocks);
}

/* --- roles -------------------------------------------------------------------------------------------------- */

static void run_as_loop(void *context) {
    weir_thread_adopt("loop 1", WEIR_ROLE_LOOP);
    weir_assert_thread(*(weir_role *)context);
}

static void role_that_is_not_mine_dies(void **state) {
    (void)state;
    weir_role shard = WEIR_ROLE_SHARD, test = WEIR_ROLE_TEST;
    assert_dies(run_as_loop, &shard, "thread 'loop 1': has the role LOOP and runs what belongs to SHARD");
    assert_dies(run_as_loop, &test, "belongs to TEST");
}

static void own_role_and_test_role_pass(void **state) {
    (void)state;
    for (int role = WEIR_ROLE_MAIN; role <= WEIR_ROLE_TEST; role++)
        weir_assert_thread((weir_role)role);
    weir_role loop = WEIR_ROLE_LOOP;
    run_thread("loop", WEIR_ROLE_LOOP, run_as_loop, &loop);
}

/* --- ranks -------------------------------------------------------------------------------------------------- */

static void rising_ranks_pass(void **state) {
    (void)state;
    init_locks();
    weir_mutex_lock(&queue_lock);
    weir_mutex_lock(&log_lock);
    weir_mutex_lock(&leaf_lock);
    assert_true(weir_mutex_held(&queue_lock) && weir_mutex_held(&log_lock) && weir_mutex_held(&leaf_lock));
    weir_mutex_unlock(&queue_lock); /* any order of unlocking */
    assert_false(weir_mutex_held(&queue_lock));
    assert_true(weir_mutex_held(&log_lock) && weir_mutex_held(&leaf_lock));
    weir_mutex_unlock(&leaf_lock);
    weir_mutex_lock(&leaf_lock);
    weir_mutex_unlock(&leaf_lock);
    weir_mutex_unlock(&log_lock);
    weir_mutex_lock(&queue_lock);
    weir_mutex_unlock(&queue_lock);
}

static void every_rank_can_be_held_at_once(void **state) {
    (void)state;
    static const weir_rank ranks[] = {
#define RANK(name, order, text) WEIR_RANK_##name,
        WEIR_LOCK_RANKS(RANK)
#undef RANK
    };
    enum { COUNT = sizeof ranks / sizeof ranks[0] };
    weir_mutex locks[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        weir_mutex_init(&locks[i], ranks[i], "one of all");
        weir_mutex_lock(&locks[i]);
    }
    for (size_t i = 0; i < COUNT; i++) {
        weir_mutex_unlock(&locks[i]);
        weir_mutex_destroy(&locks[i]);
    }
}

typedef struct lock_pair {
    weir_mutex *first, *second;
} lock_pair;

static void lock_both(void *context) {
    const lock_pair *pair = context;
    weir_mutex_lock(pair->first);
    weir_mutex_lock(pair->second);
}

static void equal_or_lower_rank_dies(void **state) {
    (void)state;
    init_locks();
    assert_dies(lock_both, (&(lock_pair){&log_lock, &queue_lock}),
                "holds 'log' of rank 80 and takes 'queue' of rank 40");
    assert_dies(lock_both, (&(lock_pair){&queue_lock, &other_queue_lock}),
                "holds 'queue' of rank 40 and takes 'other queue'");
    assert_dies(lock_both, (&(lock_pair){&leaf_lock, &leaf_lock}), "holds 'leaf' of rank 100 and takes 'leaf'");
}

static void lock_under_the_higher_that_is_left(void *context) {
    (void)context;
    weir_mutex_lock(&queue_lock);
    weir_mutex_lock(&leaf_lock);
    weir_mutex_unlock(&queue_lock);
    weir_mutex_lock(&log_lock);
}

static void rank_is_checked_after_unlocking_out_of_order(void **state) {
    (void)state;
    init_locks();
    assert_dies(lock_under_the_higher_that_is_left, NULL, "holds 'leaf' of rank 100 and takes 'log' of rank 80");
}

static void unlock(void *mutex) {
    weir_mutex_unlock(mutex);
}

static void end_with(void *mutex) {
    weir_mutex_lock(mutex);
}

static void end_a_thread_with(void *mutex) {
    run_thread("forgetful", WEIR_ROLE_TEST, end_with, mutex);
}

static void wait_with(void *mutex) {
    weir_cond_wait(&cond, mutex);
}

static void wait_with_the_first_of_two(void *mutex) {
    weir_mutex_lock(mutex);
    weir_mutex_lock(&leaf_lock);
    weir_cond_wait_until(&cond, mutex, 0);
}

static void misuse_of_a_mutex_dies(void **state) {
    (void)state;
    init_locks();
    assert_dies(unlock, &log_lock, "unlocks 'log', which it does not hold");
    assert_dies(end_a_thread_with, &log_lock, "thread 'forgetful': ends while it holds 'log'");
    assert_dies(wait_with, &log_lock, "waits with 'log', which is not the last that it took");
    assert_dies(wait_with_the_first_of_two, &log_lock, "waits with 'log', which is not the last that it took");
}

static void look_at_held(void *mutex) {
    assert_false(weir_mutex_held(mutex));
}

static void held_means_by_this_thread(void **state) {
    (void)state;
    init_locks();
    weir_mutex_lock(&log_lock);
    run_thread("other", WEIR_ROLE_TEST, look_at_held, &log_lock);
    assert_true(weir_mutex_held(&log_lock));
    weir_mutex_unlock(&log_lock);
    weir_mutex_destroy(&log_lock);
}

/* --- exclusion and waiting ---------------------------------------------------------------------------------- */

enum { THREADS = 4, STEPS = 20000 };
static unsigned long steps_done; /* plain on purpose: the mutex alone protects it */

static void step(void *context) {
    (void)context;
    for (int i = 0; i < STEPS; i++) {
        weir_mutex_lock(&leaf_lock);
        steps_done++;
        weir_mutex_unlock(&leaf_lock);
    }
}

static void mutex_excludes(void **state) {
    (void)state;
    init_locks();
    weir_thread *threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_ok(weir_thread_start("stepper", WEIR_ROLE_TEST, step, NULL, &threads[i]));
    for (int i = 0; i < THREADS; i++)
        weir_thread_join(threads[i]);
    assert_int_equal(steps_done, THREADS * STEPS);
}

static void wait_ends_when_the_time_has_passed(void **state) {
    (void)state;
    init_locks();
    weir_clock *clock = weir_clock_system();
    weir_mutex_lock(&leaf_lock);
    assert_false(weir_cond_wait_until(&cond, &leaf_lock, INT64_MIN));
    assert_false(weir_cond_wait_until(&cond, &leaf_lock, weir_clock_mono_us(clock) - 1));
    int64_t until_us = weir_clock_mono_us(clock) + 3000;
    while (weir_cond_wait_until(&cond, &leaf_lock, until_us)) {
    }
    assert_true(weir_clock_mono_us(clock) >= until_us);
    assert_true(weir_mutex_held(&leaf_lock));
    weir_mutex_unlock(&leaf_lock);
    weir_cond_destroy(&cond);
    weir_mutex_destroy(&leaf_lock);
}

static int turn; /* guarded by leaf_lock: 0 and 1 alternate */

static void play(void *context) {
    int mine = *(int *)context;
    weir_mutex_lock(&leaf_lock);
    for (int i = 0; i < 1000; i++) {
        while (turn != mine) {
            if (i % 2) {
                weir_cond_wait(&cond, &leaf_lock);
            } else {
                weir_cond_wait_until(&cond, &leaf_lock, INT64_MAX);
            }
        }
        turn = 1 - mine;
        weir_cond_signal(&cond);
    }
    weir_mutex_unlock(&leaf_lock);
}

static void signal_wakes_the_other(void **state) {
    (void)state;
    init_locks();
    int zero = 0, one = 1;
    weir_thread *thread;
    assert_ok(weir_thread_start("player", WEIR_ROLE_TEST, play, &one, &thread));
    play(&zero);
    weir_thread_join(thread);
    assert_int_equal(turn, 0);
}

static int arrived; /* guarded by leaf_lock */

static void arrive_and_wait_for_all(void *context) {
    (void)context;
    weir_mutex_lock(&leaf_lock);
    if (++arrived == THREADS) weir_cond_broadcast(&cond);
    while (arrived < THREADS)
        weir_cond_wait(&cond, &leaf_lock);
    weir_mutex_unlock(&leaf_lock);
}

static void broadcast_wakes_all(void **state) {
    (void)state;
    init_locks();
    weir_thread *threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_ok(weir_thread_start("arriver", WEIR_ROLE_TEST, arrive_and_wait_for_all, NULL, &threads[i]));
    for (int i = 0; i < THREADS; i++)
        weir_thread_join(threads[i]);
}

WEIR_TESTS(WEIR_CASE(thread_has_its_name_and_role), WEIR_CASE(name_that_is_empty_or_too_long_is_refused),
           WEIR_CASE(thread_of_a_library_is_adopted), WEIR_CASE(signals_are_blocked_in_threads_alone),
           WEIR_CASE(start_fails_cleanly_at_every_allocation), WEIR_CASE(start_says_when_the_system_refuses),
           WEIR_CASE(role_that_is_not_mine_dies), WEIR_CASE(own_role_and_test_role_pass), WEIR_CASE(rising_ranks_pass),
           WEIR_CASE(every_rank_can_be_held_at_once), WEIR_CASE(equal_or_lower_rank_dies),
           WEIR_CASE(rank_is_checked_after_unlocking_out_of_order), WEIR_CASE(misuse_of_a_mutex_dies),
           WEIR_CASE(held_means_by_this_thread), WEIR_CASE(mutex_excludes),
           WEIR_CASE(wait_ends_when_the_time_has_passed), WEIR_CASE(signal_wakes_the_other),
           WEIR_CASE(broadcast_wakes_all))

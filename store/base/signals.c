/* SPDX-License-Identifier: Apache-2.0 */
/*
 * signals.c - one thread waits for the signals that all others have blocked.
 *
 * The one handler only hands a signal on to that thread, hence there is nothing else that must be safe inside one. The
 * second signal gets its default action back, so that the process ends by it and its parent sees that; what can be lost
 * by this, the user has decided to lose.
 */
#include <weir/store/base/signals.h>

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>

#include <weir/store/base/assert.h>
#include <weir/store/base/clock.h>
#include <weir/store/base/thread.h>

static atomic_bool asked;
static atomic_bool hangups; /* are taken, instead of ending the process */
static atomic_bool hung_up; /* one came and was not asked for yet       */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static weir_mutex mutex; /* held to set asked, so that no waiter misses it */
static weir_cond changed;
static weir_thread *waiter; /* for the life of the process */
static bool announced;      /* under the mutex: signals reach the thread that waits */
static pthread_t waiting;   /* set before any handler is */

static void signals_prepare(void) {
    weir_mutex_init(&mutex, WEIR_RANK_LEAF, "signals");
    weir_cond_init(&changed);
}

bool weir_signals_stop_asked(void) {
    return atomic_load_explicit(&asked, memory_order_acquire);
}

void weir_signals_ask_stop(void) {
    pthread_once(&once, signals_prepare);
    weir_mutex_lock(&mutex);
    atomic_store_explicit(&asked, true, memory_order_release);
    weir_cond_broadcast(&changed);
    weir_mutex_unlock(&mutex);
}

bool weir_signals_wait(int64_t wait_us) {
    int64_t now_us = weir_clock_mono_us(weir_clock_system());
    int64_t until_us = wait_us < INT64_MAX - now_us ? now_us + wait_us : INT64_MAX;
    bool in_time = true;
    pthread_once(&once, signals_prepare);
    weir_mutex_lock(&mutex);
    while (in_time && !weir_signals_stop_asked())
        in_time = weir_cond_wait_until(&changed, &mutex, until_us);
    weir_mutex_unlock(&mutex);
    return weir_signals_stop_asked();
}

/* --- the signal thread -------------------------------------------------------------------------------------- */

static void signals_to_wait_for(sigset_t *setp) {
    sigemptyset(setp);
    sigaddset(setp, SIGINT);
    sigaddset(setp, SIGTERM);
    if (atomic_load(&hangups)) sigaddset(setp, SIGHUP);
}

/* The next that asks for a stop; hangups are only remembered. */
static int signals_next_stop(const sigset_t *set) {
    int number;
    do {
        WEIR_ASSERT(sigwait(set, &number) == 0);
        if (number == SIGHUP) atomic_store(&hung_up, true);
    } while (number == SIGHUP);
    return number;
}

/* A library may have started threads before main that block nothing (OpenBLAS does): what they are handed goes on to
 * the thread that waits. */
static void signals_forward(int number) {
    pthread_kill(waiting, number);
}

static void signals_main(void *context) {
    (void)context;
    WEIR_ON_ROLE(SIGNAL);
    sigset_t set;
    signals_to_wait_for(&set);
    struct sigaction action = {.sa_handler = signals_forward, .sa_flags = SA_RESTART};
    sigemptyset(&action.sa_mask);
    waiting = pthread_self();
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    if (atomic_load(&hangups)) sigaction(SIGHUP, &action, NULL);
    weir_mutex_lock(&mutex);
    announced = true;
    weir_cond_broadcast(&changed);
    weir_mutex_unlock(&mutex);

    signals_next_stop(&set);
    weir_signals_ask_stop();

    int number = signals_next_stop(&set);
    signal(number, SIG_DFL);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    raise(number);
    /* Reached by the first process of a container, whom the kernel spares from default actions, but not from a trap. */
    __builtin_trap();
}

void weir_signals_take_hangups(void) {
    WEIR_ON_ROLE(MAIN);
    WEIR_ASSERT(!waiter);
    atomic_store(&hangups, true);
}

bool weir_signals_hung_up(void) {
    return atomic_exchange(&hung_up, false);
}

weir_err weir_signals_install(void) {
    WEIR_ON_ROLE(MAIN);
    WEIR_ASSERT(!waiter);
    sigset_t set;
    signals_to_wait_for(&set);
    pthread_once(&once, signals_prepare);
    signal(SIGPIPE, SIG_IGN);
    int failed = pthread_sigmask(SIG_BLOCK, &set, NULL);
    if (failed) return WEIR_ERR(WEIR_EUNAVAILABLE, "cannot block signals: %s", strerror(failed));
    weir_err err = weir_thread_start("signals", WEIR_ROLE_SIGNAL, signals_main, NULL, &waiter);
    weir_mutex_lock(&mutex);
    while (!err && !announced)
        weir_cond_wait(&changed, &mutex);
    weir_mutex_unlock(&mutex);
    return err;
}

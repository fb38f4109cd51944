/* SPDX-License-Identifier: Apache-2.0 */
/*
 * signals.c - one thread waits for SIGINT and SIGTERM; everybody else has them blocked.
 *
 * No handler runs, so nothing here needs to be async-signal-safe. The thread lives as long as the process.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/base/clock.h>
#include <weir/base/signals.h>
#include <weir/base/thread.h>

static struct {
    pthread_once_t once;
    weir_mutex mutex; /* LEAF; pairs with changed */
    weir_cond changed;
    atomic_bool asked;
} stop = {.once = PTHREAD_ONCE_INIT};

static void init_once(void) {
    weir_mutex_init(&stop.mutex, WEIR_RANK_LEAF, "signals");
    weir_cond_init(&stop.changed);
}

void weir_signals_ask_stop(void) {
    pthread_once(&stop.once, init_once);
    weir_mutex_lock(&stop.mutex);
    atomic_store(&stop.asked, true);
    weir_cond_broadcast(&stop.changed);
    weir_mutex_unlock(&stop.mutex);
}

static void stop_signals(sigset_t *set) {
    sigemptyset(set);
    sigaddset(set, SIGINT);
    sigaddset(set, SIGTERM);
}

/* The first signal asks; the second is from somebody who does not want to wait, and gets the default: death. */
static void wait_for_signals(void *context) {
    sigset_t set;
    int number;
    (void)context;
    stop_signals(&set);
    while (sigwait(&set, &number) != 0) {
    }
    weir_signals_ask_stop();
    while (sigwait(&set, &number) != 0) {
    }
    signal(number, SIG_DFL);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    kill(getpid(), number);
}

weir_err weir_signals_install(void) {
    weir_thread *thread;
    sigset_t set;
    pthread_once(&stop.once, init_once);
    signal(SIGPIPE, SIG_IGN);
    stop_signals(&set);
    if (pthread_sigmask(SIG_BLOCK, &set, NULL) != 0) {
        return WEIR_ERR(WEIR_EUNAVAILABLE, "cannot block signals");
    }
    static atomic_bool installed;
    if (atomic_exchange(&installed, true)) return WEIR_OK;
    return weir_thread_start("signals", WEIR_ROLE_SIGNAL, wait_for_signals, NULL, &thread);
}

bool weir_signals_stop_asked(void) {
    return atomic_load(&stop.asked);
}

bool weir_signals_wait(int64_t wait_us) {
    pthread_once(&stop.once, init_once);
    int64_t end_us;
    if (__builtin_add_overflow(weir_clock_mono_us(weir_clock_system()), wait_us, &end_us)) end_us = INT64_MAX;
    weir_mutex_lock(&stop.mutex);
    while (!atomic_load(&stop.asked)) {
        if (!weir_cond_wait_until(&stop.changed, &stop.mutex, end_us)) break;
    }
    weir_mutex_unlock(&stop.mutex);
    return atomic_load(&stop.asked);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * thread.c - what the calling thread is, and which mutexes it holds.
 *
 * Each thread remembers the mutexes that it holds in the order in which it took them. The rank order makes that list
 * rise strictly, whatever the order of unlocking, so that its last entry is the only one a new lock is compared with,
 * and it can never be longer than there are ranks.
 */
#include <weir/store/base/thread.h>

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <weir/store/base/alloc.h>
#include <weir/store/base/assert.h>
#include <weir/store/base/clock.h>

#define COUNT_ONE(...) +1u
enum { HELD_MAX = WEIR_LOCK_RANKS(COUNT_ONE) };

typedef struct thread_identity {
    char name[WEIR_THREAD_NAME_MAX + 1];
    weir_role role;
    unsigned held_count;
    const weir_mutex *held[HELD_MAX];
} thread_identity;

static _Thread_local thread_identity self = {.name = "main", .role = WEIR_ROLE_MAIN};

static const char *const role_names[] = {
#define ROLE_NAME(name, text) [WEIR_ROLE_##name] = #name,
    WEIR_THREAD_ROLES(ROLE_NAME)
#undef ROLE_NAME
};

/* A broken rule of this file is a defect that no caller can handle. */
__attribute__((format(printf, 1, 2), cold)) _Noreturn static void thread_fatal(const char *format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    dprintf(STDERR_FILENO, "thread '%s': %s; this is a defect of Weir, please report it\n", self.name, text);
    abort();
}

static void pthread_must(int result, const char *call) {
    if (__builtin_expect(result != 0, 0)) thread_fatal("%s: %s", call, strerror(result));
}

/* --- threads ------------------------------------------------------------------------------------------------ */

struct weir_thread {
    pthread_t thread;
    char name[WEIR_THREAD_NAME_MAX + 1];
    weir_role role;
    weir_thread_main main;
    void *context;
};

void weir_thread_adopt(const char *name, weir_role role) {
    snprintf(self.name, sizeof self.name, "%s", name);
    self.role = role;
    /* The first thread's name is the process's: `ps` and `pgrep` must still find the program. */
    if (syscall(SYS_gettid) != getpid()) pthread_setname_np(pthread_self(), self.name);
}

static void *thread_main(void *context) {
    const weir_thread *thread = context;
    weir_thread_adopt(thread->name, thread->role);
    thread->main(thread->context);
    if (self.held_count > 0) thread_fatal("ends while it holds '%s'", self.held[0]->name);
    return NULL;
}

/* Signals are for the thread that waits for them (signals.h). Those that a defect raises stay open, for whoever
 * reports it. */
static void thread_block_signals(sigset_t *beforep) {
    static const int of_defects[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS};
    sigset_t all;
    sigfillset(&all);
    for (size_t i = 0; i < sizeof of_defects / sizeof of_defects[0]; i++)
        sigdelset(&all, of_defects[i]);
    pthread_must(pthread_sigmask(SIG_BLOCK, &all, beforep), "pthread_sigmask");
}

weir_err weir_thread_start(const char *name, weir_role role, weir_thread_main main, void *context,
                           weir_thread **threadp) {
    *threadp = NULL;
    size_t length = strlen(name);
    if (length == 0 || length > WEIR_THREAD_NAME_MAX)
        return WEIR_ERR(WEIR_EINVAL, "thread name '%s' has %zu bytes; give it 1 to %u", name, length,
                        WEIR_THREAD_NAME_MAX);
    weir_thread *thread = weir_calloc(1, sizeof *thread);
    if (!thread) return WEIR_NOMEM("for thread '%s'", name);
    *thread = (weir_thread){.role = role, .main = main, .context = context};
    memcpy(thread->name, name, length + 1);

    sigset_t before;
    thread_block_signals(&before); /* the new thread inherits the mask and never runs with them open */
    int failed = pthread_create(&thread->thread, NULL, thread_main, thread);
    pthread_must(pthread_sigmask(SIG_SETMASK, &before, NULL), "pthread_sigmask");
    if (failed) {
        weir_free(thread);
        return WEIR_ERR(WEIR_EUNAVAILABLE, "cannot start thread '%s': %s; raise the limit of threads (ulimit -u)", name,
                        strerror(failed));
    }
    *threadp = thread;
    return WEIR_OK;
}

void weir_thread_join(weir_thread *thread) {
    if (!thread) return;
    pthread_must(pthread_join(thread->thread, NULL), "pthread_join");
    weir_free(thread);
}

const char *weir_thread_name(void) {
    return self.name;
}

weir_role weir_thread_role(void) {
    return self.role;
}

void weir_assert_thread(weir_role role) {
    if (__builtin_expect(self.role != role && self.role != WEIR_ROLE_TEST, 0))
        thread_fatal("has the role %s and runs what belongs to %s", role_names[self.role], role_names[role]);
}

/* --- mutexes ------------------------------------------------------------------------------------------------ */

void weir_mutex_init(weir_mutex *mutex, weir_rank rank, const char *name) {
    mutex->rank = rank;
    mutex->name = name;
    pthread_must(pthread_mutex_init(&mutex->mutex, NULL), "pthread_mutex_init");
}

void weir_mutex_destroy(weir_mutex *mutex) {
    pthread_must(pthread_mutex_destroy(&mutex->mutex), "pthread_mutex_destroy");
}

void weir_mutex_lock(weir_mutex *mutex) {
    /* Before the lock is taken: a wrong order is reported, not waited in. */
    const weir_mutex *last = self.held_count > 0 ? self.held[self.held_count - 1] : NULL;
    if (__builtin_expect(last && last->rank >= mutex->rank, 0))
        thread_fatal("holds '%s' of rank %d and takes '%s' of rank %d; locks are taken in rising rank", last->name,
                     (int)last->rank, mutex->name, (int)mutex->rank);
    if (__builtin_expect(self.held_count == HELD_MAX, 0))
        thread_fatal("takes '%s' of a rank that is not in the list", mutex->name);
    pthread_must(pthread_mutex_lock(&mutex->mutex), "pthread_mutex_lock");
    self.held[self.held_count++] = mutex;
}

static unsigned mutex_held_index(const weir_mutex *mutex) {
    unsigned i = self.held_count;
    while (i > 0 && self.held[i - 1] != mutex)
        i--;
    return i; /* 0: not held, else one past its place */
}

void weir_mutex_unlock(weir_mutex *mutex) {
    unsigned i = mutex_held_index(mutex);
    if (__builtin_expect(i == 0, 0)) thread_fatal("unlocks '%s', which it does not hold", mutex->name);
    for (self.held_count--; i <= self.held_count; i++)
        self.held[i - 1] = self.held[i];
    pthread_must(pthread_mutex_unlock(&mutex->mutex), "pthread_mutex_unlock");
}

bool weir_mutex_held(const weir_mutex *mutex) {
    return mutex_held_index(mutex) > 0;
}

/* --- conditions --------------------------------------------------------------------------------------------- */

void weir_cond_init(weir_cond *cond) {
    pthread_condattr_t attributes;
    pthread_must(pthread_condattr_init(&attributes), "pthread_condattr_init");
    pthread_must(pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC), "pthread_condattr_setclock");
    pthread_must(pthread_cond_init(&cond->cond, &attributes), "pthread_cond_init");
    pthread_must(pthread_condattr_destroy(&attributes), "pthread_condattr_destroy");
}

void weir_cond_destroy(weir_cond *cond) {
    pthread_must(pthread_cond_destroy(&cond->cond), "pthread_cond_destroy");
}

/* A wait takes its mutex again at the end: one taken after it would then be held in the wrong order. */
static void cond_check_wait(const weir_mutex *mutex) {
    if (__builtin_expect(mutex_held_index(mutex) != self.held_count || self.held_count == 0, 0))
        thread_fatal("waits with '%s', which is not the last that it took", mutex->name);
}

void weir_cond_wait(weir_cond *cond, weir_mutex *mutex) {
    cond_check_wait(mutex);
    pthread_must(pthread_cond_wait(&cond->cond, &mutex->mutex), "pthread_cond_wait");
}

bool weir_cond_wait_until(weir_cond *cond, weir_mutex *mutex, int64_t mono_us) {
    cond_check_wait(mutex);
    int64_t us = mono_us > 0 ? mono_us : 0;
    struct timespec until = {.tv_sec = us / WEIR_US_PER_S, .tv_nsec = us % WEIR_US_PER_S * 1000};
    int result = pthread_cond_timedwait(&cond->cond, &mutex->mutex, &until);
    if (result != ETIMEDOUT) pthread_must(result, "pthread_cond_timedwait");
    return result == 0;
}

void weir_cond_signal(weir_cond *cond) {
    pthread_must(pthread_cond_signal(&cond->cond), "pthread_cond_signal");
}

void weir_cond_broadcast(weir_cond *cond) {
    pthread_must(pthread_cond_broadcast(&cond->cond), "pthread_cond_broadcast");
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * thread.c - threads with names and roles, mutexes that know their rank.
 *
 * Each thread keeps the mutexes that it holds on a small stack of its own. A lock order that is only written down is
 * broken within a year; one that aborts at the first wrong pair, on any path that a test takes, is not.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <weir/base/alloc.h>
#include <weir/base/assert.h>
#include <weir/base/clock.h>
#include <weir/base/thread.h>

#define HELD_MAX 16u

struct weir_thread {
    pthread_t handle;
    weir_thread_main main;
    void *context;
    weir_role role;
    char name[WEIR_THREAD_NAME_MAX + 1];
};

static _Thread_local struct {
    char name[WEIR_THREAD_NAME_MAX + 1]; /* empty: nobody has named it */
    weir_role role;
} self;

static _Thread_local struct {
    const weir_mutex *mutexes[HELD_MAX];
    unsigned count;
} held;

static const char *const role_names[] = {
#define ROLE_NAME(name, text) [WEIR_ROLE_##name] = #name,
    WEIR_THREAD_ROLES(ROLE_NAME)
#undef ROLE_NAME
};

/* --- threads --------------------------------------------------------------------------------------------------- */

void weir_thread_adopt(const char *name, weir_role role) {
    snprintf(self.name, sizeof self.name, "%s", name);
    self.role = role;
    pthread_setname_np(pthread_self(), self.name);
}

static void *run(void *argument) {
    weir_thread *thread = argument;
    weir_thread_adopt(thread->name, thread->role);
    thread->main(thread->context);
    WEIR_ASSERT(held.count == 0);
    return NULL;
}

/* Signals are the signal thread's: others start with all of them blocked. */
static int create_blocked(weir_thread *thread) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&thread->handle, NULL, run, thread);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

weir_err weir_thread_start(const char *name, weir_role role, weir_thread_main main, void *context,
                           weir_thread **threadp) {
    *threadp = NULL;
    size_t length = strlen(name);
    if (length == 0 || length > WEIR_THREAD_NAME_MAX) {
        return WEIR_ERR(WEIR_EINVAL, "a thread's name has 1 to %u bytes, '%.32s' does not", WEIR_THREAD_NAME_MAX, name);
    }
    weir_thread *thread = weir_calloc(1, sizeof *thread);
    if (!thread) return WEIR_ERR(WEIR_ENOMEM, "no memory for the thread '%s'", name);
    thread->main = main;
    thread->context = context;
    thread->role = role;
    memcpy(thread->name, name, length + 1);
    int error = create_blocked(thread);
    if (error) {
        weir_free(thread);
        return WEIR_ERR(WEIR_EUNAVAILABLE, "the system refuses the thread '%s': %s; raise the limit of processes", name,
                        strerror(error));
    }
    *threadp = thread;
    return WEIR_OK;
}

void weir_thread_join(weir_thread *thread) {
    if (!thread) return;
    int error = pthread_join(thread->handle, NULL);
    WEIR_ASSERT(error == 0);
    weir_free(thread);
}

const char *weir_thread_name(void) {
    return self.name[0] ? self.name : "main";
}

weir_role weir_thread_role(void) {
    return self.role;
}

static _Noreturn void die(const char *what, const char *a, const char *b) {
    fprintf(stderr, "weir: %s: '%s', '%s', in thread '%s'\n", what, a, b, weir_thread_name());
    abort();
}

void weir_assert_thread(weir_role role) {
    if (self.role == role || self.role == WEIR_ROLE_TEST) return;
    die("wrong thread role (wanted, has)", role_names[role], role_names[self.role]);
}

/* --- mutexes --------------------------------------------------------------------------------------------------- */

void weir_mutex_init(weir_mutex *mutex, weir_rank rank, const char *name) {
    int error = pthread_mutex_init(&mutex->mutex, NULL);
    WEIR_ASSERT(error == 0);
    mutex->rank = rank;
    mutex->name = name;
}

void weir_mutex_destroy(weir_mutex *mutex) {
    int error = pthread_mutex_destroy(&mutex->mutex);
    WEIR_ASSERT(error == 0);
}

/* Ranks rise along the stack, so the top one is the highest held. */
static void held_push(const weir_mutex *mutex) {
    if (held.count > 0 && held.mutexes[held.count - 1]->rank >= mutex->rank) {
        die("lock order broken (holds, takes)", held.mutexes[held.count - 1]->name, mutex->name);
    }
    WEIR_ASSERT(held.count < HELD_MAX);
    held.mutexes[held.count++] = mutex;
}

/* Mutexes are mostly, not always, given back in reverse. */
static void held_remove(const weir_mutex *mutex) {
    unsigned i = held.count;
    while (i > 0 && held.mutexes[i - 1] != mutex)
        i--;
    WEIR_ASSERT(i > 0);
    memmove(&held.mutexes[i - 1], &held.mutexes[i], (held.count - i) * sizeof held.mutexes[0]);
    held.count--;
}

void weir_mutex_lock(weir_mutex *mutex) {
    held_push(mutex); /* before it blocks: a deadlock would never come back to report itself */
    int error = pthread_mutex_lock(&mutex->mutex);
    WEIR_ASSERT(error == 0);
}

void weir_mutex_unlock(weir_mutex *mutex) {
    held_remove(mutex);
    int error = pthread_mutex_unlock(&mutex->mutex);
    WEIR_ASSERT(error == 0);
}

bool weir_mutex_held(const weir_mutex *mutex) {
    for (unsigned i = 0; i < held.count; i++) {
        if (held.mutexes[i] == mutex) return true;
    }
    return false;
}

/* --- conditions ------------------------------------------------------------------------------------------------ */

void weir_cond_init(weir_cond *cond) {
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    int error = pthread_cond_init(&cond->cond, &attributes);
    WEIR_ASSERT(error == 0);
    pthread_condattr_destroy(&attributes);
}

void weir_cond_destroy(weir_cond *cond) {
    int error = pthread_cond_destroy(&cond->cond);
    WEIR_ASSERT(error == 0);
}

void weir_cond_wait(weir_cond *cond, weir_mutex *mutex) {
    WEIR_ASSERT(weir_mutex_held(mutex));
    int error = pthread_cond_wait(&cond->cond, &mutex->mutex);
    WEIR_ASSERT(error == 0);
}

bool weir_cond_wait_until(weir_cond *cond, weir_mutex *mutex, int64_t mono_us) {
    WEIR_ASSERT(weir_mutex_held(mutex));
    if (mono_us < 0) mono_us = 0;
    struct timespec when = {.tv_sec = mono_us / WEIR_US_PER_S, .tv_nsec = mono_us % WEIR_US_PER_S * 1000};
    int error = pthread_cond_timedwait(&cond->cond, &mutex->mutex, &when);
    WEIR_ASSERT(error == 0 || error == ETIMEDOUT);
    return error == 0;
}

void weir_cond_signal(weir_cond *cond) {
    pthread_cond_signal(&cond->cond);
}

void weir_cond_broadcast(weir_cond *cond) {
    pthread_cond_broadcast(&cond->cond);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * failing_malloc.c - preloaded into a program under test: one allocation of one site finds no memory. See
 * failing_malloc.h. Whoever allocates is meant: Weir, operator new, RocksDB, librdkafka, OpenBLAS, glibc itself where
 * it calls by the public name; and threads, whose stacks are memory.
 */
#include "failing_malloc.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <unwind.h>

#define PUBLIC      __attribute__((visibility("default")))
#define FRAMES_OWN  2 /* of this file: unwinding begins in the innermost */
#define HASH_FACTOR 0x9e3779b97f4a7c15u

extern void *libc_malloc(size_t bytes) __asm__("__libc_malloc");
extern void *libc_calloc(size_t count, size_t bytes) __asm__("__libc_calloc");
extern void *libc_realloc(void *memory, size_t bytes) __asm__("__libc_realloc");
extern void *libc_memalign(size_t alignment, size_t bytes) __asm__("__libc_memalign");

static failing_malloc *shared;
static __thread bool inside __attribute__((tls_model("initial-exec"))); /* this file's own work allocates, too */

__attribute__((constructor)) static void failing_malloc_open(int argc, char **argv) {
    const char *path = getenv("WEIR_TEST_MALLOC"), *command = getenv("WEIR_TEST_MALLOC_COMMAND");
    if (!path || !command || argc < 2 || strcmp(argv[1], command) != 0) return;
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0) abort();
    void *page = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (page == MAP_FAILED) abort();
    shared = page;
}

typedef struct failing_walk {
    uint64_t hash, caller, frames;
} failing_walk;

static _Unwind_Reason_Code failing_malloc_frame(struct _Unwind_Context *context, void *data) {
    failing_walk *walk = data;
    struct dl_find_object object;
    void *at = (void *)_Unwind_GetIP(context);
    if (walk->frames++ < FRAMES_OWN) return _URC_NO_REASON;
    if (walk->frames > FRAMES_OWN + shared->frames || _dl_find_object(at, &object) != 0) return _URC_END_OF_STACK;
    walk->hash = (walk->hash ^ (uint64_t)((char *)at - (char *)object.dlfo_map_start)) * HASH_FACTOR;
    walk->hash ^= walk->hash >> 29;
    if (!walk->caller) walk->caller = walk->hash;
    return _URC_NO_REASON;
}

/* More than there is room for would be a watch that shows nothing. */
static void failing_malloc_keep(const failing_walk *walk) {
    for (uint64_t n = 0;; n++) {
        uint64_t found = 0, i = (walk->hash + n) % FAILING_MALLOC_SITES;
        if (n == FAILING_MALLOC_SITES) abort();
        bool mine = atomic_compare_exchange_strong(&shared->sites[i], &found, walk->hash);
        if (mine) shared->callers[i] = walk->caller;
        if (mine || found == walk->hash) return;
    }
}

/* Inlined nowhere, so that the frames of this file are as many as are passed over. */
__attribute__((noinline)) static bool failing_malloc_fails(void) {
    failing_walk walk = {0};
    uint64_t none = 0;
    int error = errno;
    if (!shared || inside || shared->met) return false;
    inside = true;
    _Unwind_Backtrace(failing_malloc_frame, &walk);
    if (!walk.hash) walk.hash = 1;
    uint64_t wanted = shared->site;
    if (!wanted) failing_malloc_keep(&walk);
    inside = false;
    errno = error;
    return wanted == walk.hash && atomic_compare_exchange_strong(&shared->met, &none, 1);
}

static void *failing_malloc_none(void) {
    errno = ENOMEM;
    return NULL;
}

/* The names of parameters are those of glibc's headers. */

PUBLIC void *malloc(size_t size) {
    return failing_malloc_fails() ? failing_malloc_none() : libc_malloc(size);
}

PUBLIC void *calloc(size_t nmemb, size_t size) {
    return failing_malloc_fails() ? failing_malloc_none() : libc_calloc(nmemb, size);
}

PUBLIC void *realloc(void *ptr, size_t size) {
    return failing_malloc_fails() ? failing_malloc_none() : libc_realloc(ptr, size);
}

PUBLIC void *aligned_alloc(size_t alignment, size_t size) {
    return failing_malloc_fails() ? failing_malloc_none() : libc_memalign(alignment, size);
}

PUBLIC int posix_memalign(void **memptr, size_t alignment, size_t size) {
    if (failing_malloc_fails()) return ENOMEM;
    *memptr = libc_memalign(alignment, size);
    return *memptr ? 0 : ENOMEM;
}

/* Another library may start a thread before this one's constructor has run. */
PUBLIC int pthread_create(pthread_t *newthread, const pthread_attr_t *attr, void *(*start_routine)(void *), void *arg) {
    int (*next)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    void *found = dlsym(RTLD_NEXT, "pthread_create");
    memcpy(&next, &found, sizeof next);
    return failing_malloc_fails() ? EAGAIN : next(newthread, attr, start_routine, arg);
}

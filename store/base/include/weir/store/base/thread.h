/* SPDX-License-Identifier: Apache-2.0 */
/*
 * thread.h - threads with a name and a role; mutexes with a rank.
 *
 * ROLES are a closed list. A comment tag such as [ingest] on a function or a field names the role that may
 * use it; WEIR_ON_ROLE checks it where it stands. Two tags are not roles: [any] is any thread, [owner] is the one
 * thread that the caller has chosen for the handle.
 *
 * RANKS are the lock order: a thread takes mutexes only in rising rank. Taking one of equal or lower rank
 * than one it holds aborts, in every build, with both names. The page that explains them is
 * ops/docs/ARCHITECTURE.md; a check holds the two against each other.
 */
#ifndef WEIR_STORE_BASE_THREAD_H
#define WEIR_STORE_BASE_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include <weir/store/base/err.h>

#ifdef __cplusplus
extern "C" {
#endif

/* X(role, what it does) */
#define WEIR_THREAD_ROLES(X)                                                  \
    X(MAIN, "parses arguments, starts and stops the rest, waits for signals") \
    X(SIGNAL, "turns signals into the stop flag")                             \
    X(WRITER, "owns a log and writes it")                                     \
    X(INGEST, "reads a source and maps its events, or looks after the store") \
    X(SHARD, "owns one shard of the store")                                   \
    X(LOOP, "serves HTTP connections")                                        \
    X(WORKER, "computes what others hand it")                                 \
    X(KAFKA, "runs callbacks of the Kafka client")                            \
    X(WATCH, "asks the brokers whether a topic is still what was read")       \
    X(TEST, "belongs to a test")

typedef enum weir_role {
#define WEIR_ROLE_ENUM(name, text) WEIR_ROLE_##name,
    WEIR_THREAD_ROLES(WEIR_ROLE_ENUM)
#undef WEIR_ROLE_ENUM
} weir_role;

/* X(rank, order, what it guards): lower is taken first. */
#define WEIR_LOCK_RANKS(X)                                                             \
    X(MODELS, 10, "what a server knows of the models' register")                       \
    X(EVENTLOG, 20, "one event log's partitions and its appended and durable offsets") \
    X(GRAPH, 25, "one graph's sources")                                                \
    X(SHARD, 30, "one shard's version, and who waits for it")                          \
    X(QUEUE, 40, "one bounded queue")                                                  \
    X(CLOCK, 60, "a manual clock")                                                     \
    X(PROGRESS, 70, "the progress bar on the terminal")                                \
    X(LOG, 80, "the log stream and its repeat table")                                  \
    X(LEAF, 100, "a lock under which nothing else is taken")

typedef enum weir_rank {
#define WEIR_RANK_ENUM(name, order, text) WEIR_RANK_##name = order,
    WEIR_LOCK_RANKS(WEIR_RANK_ENUM)
#undef WEIR_RANK_ENUM
} weir_rank;

typedef struct weir_thread weir_thread;
typedef void (*weir_thread_main)(void *context);

#define WEIR_THREAD_NAME_MAX 15u /* what Linux shows in /proc and gdb */

/* Starts a thread with signals blocked, but for those of a defect (SIGSEGV and the like).  WEIR_ENOMEM;
 * WEIR_EUNAVAILABLE the system refuses more threads; WEIR_EINVAL a name that is empty or too long.  [any] */
weir_err weir_thread_start(const char *name, weir_role role, weir_thread_main main, void *context,
                           weir_thread **threadp);
/* Waits for its end and frees the handle; NULL is allowed.  Blocks.  [any] */
void weir_thread_join(weir_thread *thread);
/* Names and marks the calling thread: for mains and for threads that libraries start.  [any] */
void weir_thread_adopt(const char *name, weir_role role);
/* Name and role of the calling thread; "main" and WEIR_ROLE_MAIN before any adoption.  [any] */
const char *weir_thread_name(void);
weir_role weir_thread_role(void);
/* Aborts unless the calling thread has this role (WEIR_ROLE_TEST passes everywhere).  [any] */
void weir_assert_thread(weir_role role);
/* At the entry of what a tag promises to one role: WEIR_ON_ROLE(SHARD). One comparison, in every build. */
#define WEIR_ON_ROLE(role) weir_assert_thread(WEIR_ROLE_##role)

/* Embedded by value; the fields are this header's own, but for a static {PTHREAD_MUTEX_INITIALIZER, rank, name}. */
typedef struct weir_mutex {
    pthread_mutex_t mutex;
    weir_rank rank;
    const char *name;
} weir_mutex;

typedef struct weir_cond {
    pthread_cond_t cond;
} weir_cond;

void weir_mutex_init(weir_mutex *mutex, weir_rank rank, const char *name);
void weir_mutex_destroy(weir_mutex *mutex);
void weir_mutex_lock(weir_mutex *mutex); /* aborts when it breaks the rank order */
void weir_mutex_unlock(weir_mutex *mutex);
bool weir_mutex_held(const weir_mutex *mutex); /* by the calling thread; for assertions */

void weir_cond_init(weir_cond *cond); /* waits on the monotonic clock */
void weir_cond_destroy(weir_cond *cond);
void weir_cond_wait(weir_cond *cond, weir_mutex *mutex);
/* false: the time (system monotonic clock) passed first. */
bool weir_cond_wait_until(weir_cond *cond, weir_mutex *mutex, int64_t mono_us);
void weir_cond_signal(weir_cond *cond);
void weir_cond_broadcast(weir_cond *cond);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_STORE_BASE_THREAD_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fault.h - failures on demand: the N-th write, sync or rename fails, a named point kills the process.
 *
 * Armed by a test through the functions below, or for a whole program through the environment:
 *
 *     WEIR_FAULT="write:3:ENOSPC"      the 3rd write of the process fails with ENOSPC, and all after it
 *     WEIR_FAULT="sync:1:EIO:once"     only the 1st sync fails
 *     WEIR_FAULT="any:9:EIO:once"      the 9th operation of any kind fails
 *     WEIR_FAULT="write:5:short"       the 5th write stores half of its bytes, then fails with ENOSPC
 *     WEIR_FAULT="write:5:part:once"   the 5th write stores half of its bytes and says so, as the kernel may
 *     WEIR_FAULT="write:40:EIO:/log/"  counts only files whose path contains "/log/"; after "once:" too
 *     WEIR_KILL_AT="eventlog.synced:7" SIGKILL when that point is passed for the 7th time
 *
 * Costs one relaxed load when nothing is armed. `weir` logs a warning at start when the environment arms one.
 */
#ifndef WEIR_STORE_BASE_FAULT_H
#define WEIR_STORE_BASE_FAULT_H

#include <stddef.h>
#include <stdint.h>

#include <weir/store/base/err.h>

#ifdef __cplusplus
extern "C" {
#endif

/* X(op, name in a spec) */
#define WEIR_FAULT_OPERATIONS(X)                                    \
    X(OPEN, "open") /* locks, links, makes folders */               \
    X(READ, "read") /* lists folders too           */               \
    X(WRITE, "write")                                               \
    X(SYNC, "sync") /* files and folders           */               \
    X(RENAME, "rename")                                             \
    X(TRUNCATE, "truncate")                                         \
    X(UNLINK, "unlink") /* removes folders too     */               \
    X(CLOSE, "close")   /* the descriptor is closed all the same */ \
    X(ENGINE, "engine") /* a call into RocksDB; ENOMEM is thrown there */

typedef enum weir_fault_op {
#define WEIR_FAULT_ENUM(op, name) WEIR_FAULT_##op,
    WEIR_FAULT_OPERATIONS(WEIR_FAULT_ENUM)
#undef WEIR_FAULT_ENUM
} weir_fault_op;

/* Reads WEIR_FAULT and WEIR_KILL_AT.  WEIR_EUSAGE names the part that cannot be read.  [main] */
weir_err weir_fault_from_environment(void);
/* As the environment does; NULL disarms.  WEIR_EUSAGE, and nothing is armed.  [any] */
weir_err weir_fault_arm(const char *spec);
weir_err weir_fault_kill_arm(const char *spec);
/* What an operation on path shall do: 0 goes on, else the errno to fail with. For READ and WRITE *bytesp may be
 * shortened, to 0 too: a WRITE really moves that many bytes before the failure, if any; a READ that fails moves none.
 * Called by sys.c, folder.c and store/engine only.  [any] */
int weir_fault_check(weir_fault_op op, const char *path, size_t *bytesp);
/* How many operations that the spec means were checked since it was armed: tests loop "fail the N-th" until this
 * stays below N.  [any] */
uint64_t weir_fault_seen(void);
/* A named place where a crash is worth testing.  [any] */
void weir_kill_point(const char *name);

/* Tests: sees every operation that is checked, before it is done, in order, to prove what is synced before what. NULL
 * ends it. Change it only while no other thread uses files.  [any] */
typedef void (*weir_fault_watcher)(void *context, weir_fault_op op, const char *path);
void weir_fault_watch(weir_fault_watcher watcher, void *context);
/* "sync"  [any] */
const char *weir_fault_op_name(weir_fault_op op);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_STORE_BASE_FAULT_H */

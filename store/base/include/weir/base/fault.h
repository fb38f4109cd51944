/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fault.h - failures on demand: the N-th write, sync or rename fails, a named point kills the process.
 *
 * Armed by a test through the functions below, or for a whole program through the environment:
 *
 *     WEIR_FAULT="write:3:ENOSPC"      the 3rd write of the process fails with ENOSPC, and all after it
 *     WEIR_FAULT="sync:1:EIO:once"     only the 1st sync fails
 *     WEIR_FAULT="write:5:short"       the 5th write stores half of its bytes, then fails with ENOSPC
 *     WEIR_FAULT="write:40:EIO:/log/"  counts only files whose path contains "/log/"
 *     WEIR_KILL_AT="eventlog.synced:7" SIGKILL when that point is passed for the 7th time
 *
 * Costs one relaxed load when nothing is armed. `weir` logs a warning at start when the environment arms one.
 */
#ifndef WEIR_BASE_FAULT_H
#define WEIR_BASE_FAULT_H

#include <stddef.h>
#include <stdint.h>

#include <weir/base/err.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum weir_fault_op {
    WEIR_FAULT_OPEN,
    WEIR_FAULT_READ,
    WEIR_FAULT_WRITE,
    WEIR_FAULT_SYNC, /* files and folders */
    WEIR_FAULT_RENAME,
    WEIR_FAULT_TRUNCATE,
    WEIR_FAULT_UNLINK,
    WEIR_FAULT_OPS
} weir_fault_op;

/* Reads WEIR_FAULT and WEIR_KILL_AT.  WEIR_EUSAGE names the part that cannot be read.  [main] */
weir_err weir_fault_from_environment(void);
/* As the environment does; NULL disarms.  WEIR_EUSAGE.  [any] */
weir_err weir_fault_arm(const char *spec);
weir_err weir_fault_kill_arm(const char *spec);
/* What an operation on path shall do: 0 goes on, else the errno to fail with. For WRITE, *bytesp may be
 * shortened: that many bytes are really written before the failure.  Called by file.c only.  [any] */
int weir_fault_check(weir_fault_op op, const char *path, size_t *bytesp);
/* How many operations were checked while armed: tests loop "fail the N-th" until this stays below N.  [any] */
uint64_t weir_fault_seen(void);
/* A named place where a crash is worth testing.  [any] */
void weir_kill_point(const char *name);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_BASE_FAULT_H */

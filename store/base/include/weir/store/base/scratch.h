/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scratch.h - numbers that do not fit into memory: a file without a name, written from front to end, then mapped to be
 * read. What is mapped is the system's to take from memory, and to bring back. Nothing here is durable, and nothing of
 * it stays when the process ends, however it ends.
 *
 * THREADS: one at a time; what is mapped may be read by any.
 */
#ifndef WEIR_STORE_BASE_SCRATCH_H
#define WEIR_STORE_BASE_SCRATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/store/base/err.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_scratch weir_scratch;

/* path: where the file has its name for a moment; what is there, left over from another such moment, is removed.
 * Errors of a file; WEIR_ENOMEM. */
weir_err weir_scratch_open(const char *path, weir_scratch **scratchp);
/* Through a buffer.  WEIR_EFULL says how much was wanted and what to do; errors of a file. */
weir_err weir_scratch_write(weir_scratch *scratch, const void *bytes, size_t length);
/* All that was written, to be read until it is closed; NULL of nothing. Nothing is written afterwards.  Errors as of
 * writing; WEIR_ENOMEM. */
weir_err weir_scratch_map(weir_scratch *scratch, const void **bytesp);
/* Whether it will be read from front to end, or anywhere: advice. Once it is mapped. */
void weir_scratch_in_order(const weir_scratch *scratch, bool in_order);
/* NULL is allowed. */
void weir_scratch_close(weir_scratch *scratch);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_STORE_BASE_SCRATCH_H */

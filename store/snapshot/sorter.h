/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sorter.h - records in order, more of them than memory holds.
 *
 * A record is one to four words of 64 bits, compared as one number whose first word is the highest. Those that fill
 * half of the memory are sorted by their bytes, the lowest first, by way of the other half, and become a run in a file;
 * runs are merged as they are read. So memory is what was given, the disk needs room for all records once, and no order
 * of what is added is a bad one.
 */
#ifndef WEIR_STORE_SORTER_H
#define WEIR_STORE_SORTER_H

#include <stddef.h>
#include <stdint.h>

#include <weir/store/base/err.h>

#define WEIR_SORTER_WORDS_MAX 4u
#define WEIR_SORTER_RUNS_MAX  4096u

typedef struct weir_sorter weir_sorter;

/* At most `records` will be added, of so many words. Runs go into the folder, and are removed at the end. Two sorters
 * of one folder are not open at the same time. memory_bytes: at least 64 KiB.  WEIR_ENOMEM.  [owner] */
weir_err weir_sorter_open(const char *folder, uint32_t words, uint64_t records, size_t memory_bytes,
                          weir_sorter **sorterp);
/* WEIR_ELIMIT more than WEIR_SORTER_RUNS_MAX runs; WEIR_EIO, WEIR_EFULL, WEIR_EEXIST, WEIR_ENOMEM of a run. */
weir_err weir_sorter_add(weir_sorter *sorter, const uint64_t *records, size_t count);
/* No more are added. */
weir_err weir_sorter_end(weir_sorter *sorter);
/* Some of the next records, borrowed until the next call; *countp 0: there are no more.  WEIR_EIO. */
weir_err weir_sorter_next(weir_sorter *sorter, const uint64_t **recordsp, size_t *countp);
void weir_sorter_close(weir_sorter *sorter); /* NULL is allowed */

#endif /* WEIR_STORE_SORTER_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blocks_merge.h - the records of many sorted files, in the order of their keys.
 *
 * A run is files of which each begins behind the end of the one before; runs overlap. Of a key that several runs have
 * the record with the greatest number comes, and no other: it was written last.
 *
 *     run 0   file ─► file ─┐
 *     run 1   file ─────────┼─► the least key of what stands at the front of each, again and again
 *     run 2   file ─► file ─┘
 *
 * A merge belongs to one thread. Of each run one file is open at a time.
 */
#ifndef WEIR_STORE_ENGINE_BLOCKS_MERGE_H
#define WEIR_STORE_ENGINE_BLOCKS_MERGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/store/base/err.h>
#include <weir/store/engine/engine.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_blocks_merge_file {
    const char *path;  /* borrowed as long as the merge lasts */
    bool in_parts;     /* its index is, blocks.h              */
    bool has_sequence; /* all of its records have this number: the file came in as a whole. Else each has its own. */
    uint64_t sequence;
    size_t run; /* rises from 0, file by file, by at most one */
} weir_blocks_merge_file;

typedef struct weir_blocks_merge weir_blocks_merge;

/* WEIR_ENOMEM; errors of weir_blocks_open. */
weir_err weir_blocks_merge_open(const weir_blocks_merge_file *files, size_t count, weir_blocks_merge **mergep);
/* *foundp: false, it was the last.  WEIR_ECORRUPT; WEIR_ENOMEM; errors of a file. */
weir_err weir_blocks_merge_next(weir_blocks_merge *merge, weir_engine_record *recordp, bool *foundp);
void weir_blocks_merge_close(weir_blocks_merge *merge); /* NULL is allowed */

#ifdef __cplusplus
}
#endif

#endif /* WEIR_STORE_ENGINE_BLOCKS_MERGE_H */

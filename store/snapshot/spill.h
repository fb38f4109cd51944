/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spill.h - what a scan finds, written to temporary files by kind, and read back merged over the shards.
 *
 * Within a shard, records come by vertex. All of a vertex are of one shard: so a merge changes files only between
 * vertices.
 *
 *   record   offset size  meaning
 *              0    16    vertex
 *             16    16    neighbour; of a feature row or a name: 0
 *             32     8    time, us
 *             40     8    event
 *             48     4    bytes of the row or the key
 *             52     8    until, us
 *             60     …    row or key
 */
#ifndef WEIR_STORE_SPILL_H
#define WEIR_STORE_SPILL_H

#include <stdbool.h>
#include <stdint.h>

#include <weir/store/base/err.h>
#include <weir/store/format/id.h>

#define WEIR_SPILL_PATH_MAX   4096u
#define WEIR_SPILL_HEAD_BYTES 60u

/* row is borrowed: from the caller when written, from the merge until its next step when read. */
typedef struct weir_spill_record {
    weir_vertex vertex, neighbor;
    int64_t time_us;
    int64_t until_us; /* edges: from when on it is deleted */
    uint64_t event;
    const uint8_t *row;
    uint32_t row_length;
} weir_spill_record;

typedef struct weir_spill weir_spill;

/* A new file FOLDER/NAME.SHARD, made at the first record.  WEIR_ELIMIT the path; WEIR_ENOMEM. */
weir_err weir_spill_open(const char *folder, const char *name, uint32_t shard, weir_spill **spillp);
weir_err weir_spill_add(weir_spill *spill, const weir_spill_record *record);
/* Flushes; NULL is allowed. */
weir_err weir_spill_close(weir_spill *spill);

typedef struct weir_merge weir_merge;

/* Over the files of this name of all shards; those that were never written are empty. */
weir_err weir_merge_open(const char *folder, const char *name, uint32_t shards, weir_merge **mergep);
/* false in *foundp: the end. Vertices rise; within one, the order in which they were added. */
weir_err weir_merge_next(weir_merge *merge, weir_spill_record *recordp, bool *foundp);
void weir_merge_close(weir_merge *merge);

#endif /* WEIR_STORE_SPILL_H */

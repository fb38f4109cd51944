/* SPDX-License-Identifier: Apache-2.0 */
/*
 * positions.h - what the pipeline must remember of each source partition besides the graph's sealed offsets.
 *
 * FOLDER/positions, replaced whole; little-endian:
 *
 *   header   offset size  meaning                       row    offset size  meaning
 *              0     8    "WEIRPOS2"                             0     4    source, as the graph numbers it
 *              8     8    first dead letter that may             4     4    partition
 *                         stand above a sealed offset            8     8    begin: the first offset that was ever read
 *             16     8    first dead letter of this store       16     8    offset, at most the sealed one
 *             24     4    rows                                  24     8    check of the record before it, or of the
 *             28     4    CRC-32C of all but itself                         file; 0: none
 *                                                               32    64    four older offsets and their checks, newest
 *                                                                           first, known to be of one log; 0: none
 *
 * A partition that retention had cut before the store was begun starts at `begin`, not at 0; without the row a crash
 * before the first seal could not be told from records that are missing. A check is how a topic that was created
 * again, or cut back, is found out; the older ones are for when retention or compaction has removed the record of a
 * newer one. For a file, the partition is the place of the file among those loaded, and check the hash of its bytes.
 *
 * "WEIRPOS1", of earlier versions, has rows of 32 bytes, whose checks know less of a record of Kafka: they are not
 * compared with it, once.
 *
 * A store restored from a checkpoint has no such file: every partition then goes on at its sealed offset, unchecked
 * once.
 */
#ifndef WEIR_INGEST_PIPELINE_POSITIONS_H
#define WEIR_INGEST_PIPELINE_POSITIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/ingest/kafka/kafka.h>
#include <weir/store/base/err.h>

typedef struct weir_positions weir_positions;

#define WEIR_POSITIONS_MAX   65536u
#define WEIR_POSITIONS_OLDER 4u

/* The check of the record before offset; check 0: none. */
typedef weir_kafka_mark weir_mark;

typedef struct weir_position {
    uint32_t source, partition;
    uint64_t begin, offset, check;
    weir_mark older[WEIR_POSITIONS_OLDER];
} weir_position;

/* Puts a new mark before the others. What it replaces goes on to the older ones if it is not above `verified`; `times`
 * counts the calls: of some, one goes further back, and the first of all stays the last. */
void weir_position_mark(weir_position *position, weir_mark mark, uint64_t verified, uint64_t times);

/* Reads the file if there is one.  WEIR_ECORRUPT; WEIR_ELIMIT it is larger than one can be; WEIR_EIO, WEIR_ENOMEM. */
weir_err weir_positions_open(const char *folder, weir_positions **positionsp);
void weir_positions_close(weir_positions *positions);
/* false: no row.  [any] */
bool weir_positions_get(weir_positions *positions, uint32_t source, uint32_t partition, weir_position *positionp);
/* The row of a source with this check; false: none.  [any] */
bool weir_positions_find_check(weir_positions *positions, uint32_t source, uint64_t check, weir_position *positionp);
/* One above the highest partition of the source that has a row; 0: none.  [any] */
uint32_t weir_positions_partitions(weir_positions *positions, uint32_t source);
/* Adds or changes a row; not durable until save.  WEIR_ENOMEM, WEIR_ELIMIT.  [any] */
weir_err weir_positions_put(weir_positions *positions, const weir_position *position);
/* The two numbers of dead letters in the header.  [any] */
typedef struct weir_positions_letters {
    uint64_t from, born;
} weir_positions_letters;
weir_positions_letters weir_positions_letters_get(weir_positions *positions);
void weir_positions_letters_set(weir_positions *positions, weir_positions_letters letters);
/* The file is of an earlier version, whose checks of Kafka's records cannot be compared.  [any] */
bool weir_positions_are_old(weir_positions *positions);
/* The store has no such file yet: it is new, or was restored.  [any] */
bool weir_positions_are_new(weir_positions *positions);
/* Writes it if it has changed since; one thread at a time, the others wait.  Blocks on the disk.  [any]  WEIR_EIO,
 * WEIR_EFULL, WEIR_ENOMEM. */
weir_err weir_positions_save(weir_positions *positions);

/* Ends of spans that were handed over, rising, with the check of their last record: the greatest that is sealed goes
 * into the positions. When they are full every second one is dropped: the ends need not be all there. */
#define WEIR_MARKS_MAX 128u

typedef struct weir_marks {
    uint32_t count;
    weir_mark marks[WEIR_MARKS_MAX];
} weir_marks;

void weir_marks_add(weir_marks *marks, uint64_t offset, uint64_t check);
/* Takes out those at or below sealed, and hands out the greatest of them; false: none. */
bool weir_marks_take(weir_marks *marks, uint64_t sealed, weir_mark *markp);
/* The greatest at or below offset; false: none. */
bool weir_marks_find(const weir_marks *marks, uint64_t offset, weir_mark *markp);

#endif /* WEIR_INGEST_PIPELINE_POSITIONS_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * eventlog.h - the built-in event log: what Kafka is to a cluster, for one machine without Kafka.
 *
 * A topic is a folder of partitions, a partition a row of segment files; offsets start at 0 and rise by one per
 * record, as in Kafka. The log is the only thing the store may be rebuilt from, so it favours "refuse" over "guess".
 *
 *   FOLDER/TOPIC/topic               version, partition count, creation id (a recreated topic has another)
 *   FOLDER/TOPIC/LOCK                held by the one process that appends
 *   FOLDER/TOPIC/00003/00000000000000001500.seg   records from offset 1500 on
 *
 * SEGMENT FILE: little-endian, encoded field by field, version 1
 *
 *   header   offset size  meaning                record   offset size  meaning
 *              0     8    "WEIRLOG1"                        0     4    CRC-32C of everything behind it
 *              8     8    creation id of the topic          4     4    bytes of the whole record
 *             16     8    first offset                      8     8    offset
 *             24     4    partition                        16     8    time, us since 1970
 *             28     4    CRC-32C of 0..27                 24     4    key bytes; 0xFFFFFFFF: no key
 *                                                          28     …    key, then value
 *
 * INVARIANTS: each is cited by an assert and by a test of the same name
 *
 *   L1  Offsets of a partition are consecutive across all its segments.
 *   L2  A record below offset_durable survives a power cut, and a reader sees only such records.
 *   L3  Open cuts a torn tail of the LAST segment only, never below what the topic file or a later segment
 *       promises; damage anywhere else is WEIR_ECORRUPT and changes nothing.
 *   L4  After one failed write or sync the partition is poisoned: reads go on, appends fail until reopened.
 *   L5  One process appends; a second is refused with the first one's process id.
 *
 * GROUP SYNC: append only buffers; sync makes everything appended before it durable, and callers that arrive while
 * one sync runs share the next one.
 */
#ifndef WEIR_INGEST_EVENTLOG_H
#define WEIR_INGEST_EVENTLOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/base/clock.h>
#include <weir/base/err.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_EVENTLOG_PARTITIONS_MAX 1024u
#define WEIR_EVENTLOG_RECORD_MAX     (16u << 20) /* bytes of one encoded record */
#define WEIR_EVENTLOG_BATCH_MAX      65536u      /* records in one append       */
#define WEIR_EVENTLOG_TOPIC_MAX      200u        /* letters, digits, '.', '_', '-' */

typedef struct weir_eventlog weir_eventlog;
typedef struct weir_eventlog_reader weir_eventlog_reader;

/* A plain value, not the file layout. Borrowed bytes. */
typedef struct weir_record {
    uint64_t offset; /* set by the log */
    int64_t time_us;
    const void *key; /* NULL: no key */
    size_t key_length;
    const void *value;
    size_t value_length;
} weir_record;

typedef struct weir_eventlog_opts {
    uint32_t partitions;    /* of a topic that is created; 0: must exist already          */
    uint64_t segment_bytes; /* 0: 256 MiB                                                 */
    uint64_t retain_bytes;  /* per partition; 0 keeps all                                 */
    int64_t retain_us;      /* by the newest record of a segment; 0 keeps all             */
    bool read_only;         /* takes no lock, repairs nothing, append is WEIR_EPERM       */
    weir_clock *clock;      /* borrowed; NULL is the system's                             */
} weir_eventlog_opts;

typedef struct weir_eventlog_partition_stats {
    uint64_t offset_begin;   /* gauge: first record that is still there          */
    uint64_t offset_durable; /* gauge: first offset not yet on disk; see L2      */
    uint64_t offset_end;     /* gauge: next offset that append will give         */
    uint64_t bytes;          /* gauge: of all segments                           */
    uint64_t segments;       /* gauge                                            */
    uint64_t tail_cut_bytes; /* counter: cut by this open                        */
    int64_t time_last_us;    /* gauge: time of the newest durable record         */
} weir_eventlog_partition_stats;

/* Opens FOLDER/TOPIC, creating it when opts->partitions is not 0.  [owner]
 * WEIR_EINVAL a bad topic name or option; WEIR_ENOTFOUND; WEIR_EBUSY (L5); WEIR_ECORRUPT (L3) names file and
 * position; WEIR_EVERSION; WEIR_EIO; WEIR_EFULL; WEIR_EPERM; WEIR_ENOMEM.  Blocks on the disk. */
weir_err weir_eventlog_open(const char *folder, const char *topic, const weir_eventlog_opts *opts,
                            weir_eventlog **logp);
uint32_t weir_eventlog_partitions(const weir_eventlog *log);
uint64_t weir_eventlog_creation_id(const weir_eventlog *log);
/* The partition of a key: the same for ever.  [any] */
uint32_t weir_eventlog_partition_of(const weir_eventlog *log, const void *key, size_t key_length);

/* Appends records to one partition, all or none; *first_offsetp is the offset of the first.  Not durable until
 * sync.  [any]   WEIR_EINVAL no such partition, 0 records or above WEIR_EVENTLOG_BATCH_MAX; WEIR_ELIMIT a record above
 * WEIR_EVENTLOG_RECORD_MAX; WEIR_EPERM read-only; WEIR_EFULL, WEIR_EIO; WEIR_EPOISONED (L4); WEIR_ENOMEM. */
weir_err weir_eventlog_append(weir_eventlog *log, uint32_t partition, const weir_record *records, size_t count,
                              uint64_t *first_offsetp);
/* Makes all that was appended before the call durable. Only then may it be acknowledged.  Blocks.  [any]
 * WEIR_EFULL, WEIR_EIO, WEIR_EPOISONED (L4). */
weir_err weir_eventlog_sync(weir_eventlog *log);
/* Removes what retention allows, whole segments, never the last one.  [owner]   WEIR_EIO. */
weir_err weir_eventlog_retain(weir_eventlog *log, uint64_t *segments_removedp);
/* WEIR_EINVAL no such partition.  [any] */
weir_err weir_eventlog_stats_get(weir_eventlog *log, uint32_t partition, weir_eventlog_partition_stats *statsp);
/* Syncs if nothing has failed, then frees; NULL is allowed. All readers must be closed.  [owner]
 * WEIR_EFULL, WEIR_EIO: what was not synced may be lost. */
weir_err weir_eventlog_close(weir_eventlog *log);

/* Reads durable records of one partition from offset on.  [owner]
 * WEIR_ENOTFOUND retention has run past offset: the sentence names both; WEIR_EINVAL offset is above the end;
 * WEIR_EIO; WEIR_ENOMEM. */
weir_err weir_eventlog_reader_open(weir_eventlog *log, uint32_t partition, uint64_t offset,
                                   weir_eventlog_reader **readerp);
/* Up to capacity records, oldest first; *countp is 0 at the durable end, which is success. Their bytes are borrowed
 * until the next call on the reader.  [owner]   WEIR_ECORRUPT names file and position; WEIR_EIO; WEIR_ENOMEM. */
weir_err weir_eventlog_reader_next(weir_eventlog_reader *reader, weir_record *records, size_t capacity, size_t *countp);
void weir_eventlog_reader_close(weir_eventlog_reader *reader);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_INGEST_EVENTLOG_H */

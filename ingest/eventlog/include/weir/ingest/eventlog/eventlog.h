/* SPDX-License-Identifier: Apache-2.0 */
/*
 * eventlog.h - the built-in event log: what Kafka is to a cluster, for one machine without Kafka.
 *
 * A topic is a folder of partitions, a partition a row of segment files; offsets start at 0 and rise by one per
 * record. A store may be rebuilt from it, so it favours "refuse" over "guess".
 *
 *   FOLDER/TOPIC/topic               version, partition count, creation id (a recreated topic has another)
 *   FOLDER/TOPIC/LOCK                held by the one process that appends; says its process id
 *   FOLDER/TOPIC/durable             marks: how far each partition has been acknowledged
 *   FOLDER/TOPIC/00003/00000000000000001500.seg   records from offset 1500 on
 *
 * SEGMENT FILE: little-endian, encoded field by field, version 1
 *
 *   header   offset size  meaning                record   offset size  meaning
 *              0     8    "WEIRLOG1"                        0     4    CRC-32C, see SALT
 *              8     8    creation id of the topic          4     4    bytes of the whole record
 *             16     8    first offset                      8     8    offset
 *             24     4    partition                        16     8    time, us since 1970
 *             28     4    CRC-32C of 0..27                 24     4    key bytes; 0xFFFFFFFF: no key
 *                                                          28     4    lag: offset minus the durable offset at the
 *                                                                      moment of the append; 0xFFFFFFFF: or more
 *                                                          32     …    key, then value
 *
 *   topic    offset size  meaning                mark     offset size  meaning (the file is a row of marks)
 *              0     8    "WEIRTOP1"                        0     4    CRC-32C, see SALT
 *              8     8    creation id                       4     4    partition
 *             16     4    partitions                        8     8    durable offset
 *             20     4    CRC-32C of 0..19
 *
 *   SALT     The CRC of a record or mark runs over the creation id (8 bytes), the partition (4 bytes), then over the
 *            record or mark from its byte 4 on. So what belongs to another topic, to an earlier topic of the same name
 *            or to another partition is never taken for ours, and a value cannot be made to look like a record.
 *
 * INVARIANTS: each is cited where the code keeps it, and by a test of the same name
 *
 *   EVENTLOG-L1  Offsets of a partition are consecutive across all its segments.
 *   EVENTLOG-L2  A record below offset_durable survives a power cut, and a reader sees only such records, in any
 *                process.
 *   EVENTLOG-L3  Open cuts a torn tail of the LAST segment only, and only if nothing shows that the cut would lose an
 *                acknowledged record; damage anywhere else is refused and changes nothing.
 *   EVENTLOG-L4  After one failed write or sync the partition is poisoned: reads go on, appends fail until it is
 *                resumed or reopened; a resume writes anew what memory has, from the last sync that went well.
 *   EVENTLOG-L5  One process appends; a second is refused with the first one's process id.
 *
 * WHAT EVENTLOG-L3 GOES BY. "A bad record with good ones after it is damage" would be wrong: pages that were not
 * synced reach the disk in any order, so a power cut leaves exactly that. Two witnesses tell a torn tail from damage:
 *   the marks     After each sync, before the caller is told, the new durable offset is appended to `durable`. That
 *                 write is not synced, so it costs no second sync (but for one in thousands, when the file is written
 *                 anew): kill -9 loses none, a power cut loses the newest ones, and a mark that is too old only makes
 *                 the witness weaker, never wrong.
 *   the records   carry the durable offset of their own append. A whole record found after the tear that claims more
 *                 than the tear leaves is proof that acknowledged records are gone.
 * What no witness can see: damage inside the very last synced group, if a power cut also took its mark. To tell that
 * from a torn write would take a second sync per group. Such a cut is logged and counted in tail_cut_bytes.
 *
 * GROUP SYNC: append buffers in memory; sync makes everything appended before it durable, and callers that arrive
 * while one sync runs share the next one. While a group is written and synced, appends fill a second buffer.
 */
#ifndef WEIR_INGEST_EVENTLOG_EVENTLOG_H
#define WEIR_INGEST_EVENTLOG_EVENTLOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/store/base/clock.h>
#include <weir/store/base/err.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_EVENTLOG_PARTITIONS_MAX  1024u
#define WEIR_EVENTLOG_RECORD_MAX      (16u << 20) /* bytes of one encoded record          */
#define WEIR_EVENTLOG_RECORD_OVERHEAD 32u         /* of which are not key or value        */
#define WEIR_EVENTLOG_BATCH_MAX       65536u      /* records in one append                */
#define WEIR_EVENTLOG_BATCH_BYTES_MAX (64u << 20) /* encoded bytes in one append          */
#define WEIR_EVENTLOG_TOPIC_MAX       200u        /* letters, digits, '.', '_', '-'       */
#define WEIR_EVENTLOG_SEGMENT_MIN     4096u       /* segment_bytes; a segment takes at least one record all the same */
#define WEIR_EVENTLOG_SEGMENT_MAX     (4ull << 30)

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
    uint64_t offset_begin;   /* gauge: first record that is still there                       */
    uint64_t offset_durable; /* gauge: first offset not yet on disk; see EVENTLOG-L2          */
    uint64_t offset_end;     /* gauge: next offset that append will give; read-only: durable  */
    uint64_t bytes;          /* gauge: of all segments                                        */
    uint64_t segments;       /* gauge                                                         */
    uint64_t tail_cut_bytes; /* counter: cut by this open                                     */
    int64_t time_last_us;    /* gauge: time of the newest durable record; 0 if there is none; read-only: at open */
} weir_eventlog_partition_stats;

/* Opens FOLDER/TOPIC, creating it when it is not there and opts->partitions is not 0; an existing topic keeps its own
 * partitions.  [owner]   Reads the last segment of each partition (if it is empty, the one before it, too), and of the
 * others the header. Damage in their records is met by the reader that comes to it, and by weir_eventlog_verify.
 * WEIR_EINVAL a bad topic name or option; WEIR_ELIMIT a path that is too long, or a topic file, file of marks or folder
 * that is larger than one can be; WEIR_ENOTFOUND; WEIR_EBUSY another process appends (EVENTLOG-L5), or, read-only,
 * retention removes segments as fast as they are listed; WEIR_ECORRUPT (EVENTLOG-L3) names the file or folder;
 * WEIR_EVERSION; errors of a file; WEIR_ENOMEM.  Blocks on the disk.
 * A read-only log may be open while another process appends. It sees what that process has marked as durable; after a
 * power cut, until a process has opened the log for appending, that may be less than was acknowledged, never more. */
weir_err weir_eventlog_open(const char *folder, const char *topic, const weir_eventlog_opts *opts,
                            weir_eventlog **logp);
uint32_t weir_eventlog_partitions(const weir_eventlog *log); /* [any] */
/* Differs when a topic was removed and created again: keep it beside the offsets that you keep.  [any] */
uint64_t weir_eventlog_creation_id(const weir_eventlog *log);
/* The partition of a key: the same for ever.  [any] */
uint32_t weir_eventlog_partition_of(const weir_eventlog *log, const void *key, size_t key_length);

/* Appends records to one partition, all or none; *first_offsetp is the offset of the first.  Not durable until sync:
 * after a crash before that the log may have only the first ones.  [any]   Mostly returns at once: the call that
 * fills 1 MiB of a partition's memory writes it to the file (without a sync, unless that begins a segment), and one
 * that finds no room in 8 MiB waits for the group that is being written, or writes it.
 * WEIR_EINVAL no such partition, 0 records or above WEIR_EVENTLOG_BATCH_MAX, a length without its bytes; WEIR_ELIMIT a
 * record above WEIR_EVENTLOG_RECORD_MAX or all above WEIR_EVENTLOG_BATCH_BYTES_MAX; WEIR_EPERM read-only; WEIR_ENOMEM;
 * WEIR_EPOISONED; and when it must first write the records of others, errors of a file, which poison (EVENTLOG-L4).
 * After any error nothing of this call was appended. */
weir_err weir_eventlog_append(weir_eventlog *log, uint32_t partition, const weir_record *records, size_t count,
                              uint64_t *first_offsetp);
/* Makes all that was appended before the call durable. Only then may it be acknowledged.  Blocks.  [any]
 * WEIR_EPERM read-only; errors of a file, WEIR_ENOMEM, WEIR_EPOISONED (EVENTLOG-L4): what was not yet durable will be
 * there once the log is resumed, and may or may not be there when it is reopened; the sync of the other partitions was
 * tried all the same. */
weir_err weir_eventlog_sync(weir_eventlog *log);
/* The same for one partition: what a caller that appended to one should use.  Also WEIR_EINVAL no such partition. */
weir_err weir_eventlog_sync_partition(weir_eventlog *log, uint32_t partition);
/* Success, or why a partition is poisoned, in the words of its failure.  [any] */
weir_err weir_eventlog_health(weir_eventlog *log);
/* Gets poisoned partitions to work again, if what stopped them has ended, and syncs all. All that was appended is then
 * durable under the offsets that it was given.  WEIR_EPERM read-only; errors of a file, WEIR_ENOMEM, WEIR_ECORRUPT,
 * WEIR_EPOISONED: what could not go on is poisoned; try again a second later.  Blocks on the disk.  [any] */
weir_err weir_eventlog_resume(weir_eventlog *log);
/* Removes what retention allows, whole segments, oldest first, never the last one.  [owner]
 * WEIR_EPERM read-only; WEIR_ECORRUPT a segment's age cannot be read; errors of a file; WEIR_ENOMEM. */
weir_err weir_eventlog_retain(weir_eventlog *log, uint64_t *segments_removedp);
/* The same, but no record of partition p from offset keep_from[p] on goes, whatever its age: what a store that is built
 * from the log has not sealed. NULL: none is kept.  [owner] */
weir_err weir_eventlog_retain_from(weir_eventlog *log, const uint64_t *keep_from, uint64_t *segments_removedp);
/* WEIR_EINVAL no such partition; read-only: WEIR_ENOTFOUND the topic is gone or was created anew; WEIR_ECORRUPT;
 * WEIR_ELIMIT as weir_eventlog_open; errors of a file; WEIR_ENOMEM.  [any] */
weir_err weir_eventlog_stats_get(weir_eventlog *log, uint32_t partition, weir_eventlog_partition_stats *statsp);
/* Syncs what has not failed, then frees; NULL is allowed. All readers must be closed.  [owner]
 * Errors of a file, WEIR_ENOMEM, WEIR_EPOISONED: what was not synced may be lost. */
weir_err weir_eventlog_close(weir_eventlog *log);

/* Reads durable records of one partition from offset on.  [owner]
 * WEIR_ENOTFOUND retention has run past offset: the sentence names both; or, read-only, the topic is gone or was
 * created anew; WEIR_EINVAL no such partition, or offset is above the durable end; WEIR_ECORRUPT; WEIR_EVERSION;
 * WEIR_ELIMIT as weir_eventlog_open; errors of a file; WEIR_ENOMEM. */
weir_err weir_eventlog_reader_open(weir_eventlog *log, uint32_t partition, uint64_t offset,
                                   weir_eventlog_reader **readerp);
/* Up to capacity records, oldest first; *countp is 0 at the durable end, which is success. Their bytes are borrowed
 * until the next call on the reader.  [owner]   WEIR_ECORRUPT names the file; WEIR_ENOTFOUND retention has run past the
 * reader, or, read-only, the topic is gone or was created anew; WEIR_EVERSION; WEIR_ELIMIT as weir_eventlog_open;
 * errors of a file; WEIR_ENOMEM. */
weir_err weir_eventlog_reader_next(weir_eventlog_reader *reader, weir_record *records, size_t capacity, size_t *countp);
void weir_eventlog_reader_close(weir_eventlog_reader *reader); /* NULL is allowed  [owner] */

typedef struct weir_eventlog_verify_stats {
    uint64_t partitions; /* read                                           */
    uint64_t segments;   /* read                                           */
    uint64_t records;    /* whole and in order, below the durable end      */
    uint64_t bytes;      /* of the segments                                */
    uint64_t tail_bytes; /* above the durable end: not acknowledged        */
    uint64_t damages;    /* told to the visitor                            */
} weir_eventlog_verify_stats;

/* Called for each damage; its sentence names the file or folder. What it returns other than success ends the run. */
typedef weir_err (*weir_eventlog_damage_visit)(void *context, weir_err damage);

/* Reads the topic up to its durable ends: every header, checksum and offset, and the marks that are whole. What lies
 * above is not judged. Takes no lock and changes nothing; may run beside the process that appends.  [any]
 * WEIR_EINVAL a bad topic name; WEIR_ELIMIT as weir_eventlog_open; WEIR_ECORRUPT the topic file is damaged, or a
 * partition has no whole mark: nothing is read then; WEIR_EBUSY retention removes segments as fast as they can be
 * listed: try again; WEIR_ENOTFOUND; WEIR_EVERSION; errors of a file; WEIR_ENOMEM; what visit returns. */
weir_err weir_eventlog_verify(const char *folder, const char *topic, weir_eventlog_damage_visit visit, void *context,
                              weir_eventlog_verify_stats *statsp);

/* 1 to WEIR_EVENTLOG_TOPIC_MAX letters, digits, '.', '_', '-', and neither "." nor "..".  [any] */
bool weir_eventlog_topic_valid(const char *topic);
/* Calls visit for the name of each topic in folder, sorted; a folder that is not there has none.  [any]   WEIR_ELIMIT a
 * path that is too long, or as weir_folder_list; errors of a file; WEIR_ENOMEM; what visit returns, which ends it. */
typedef weir_err (*weir_eventlog_topic_visit)(void *context, const char *topic);
weir_err weir_eventlog_topics(const char *folder, weir_eventlog_topic_visit visit, void *context);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_INGEST_EVENTLOG_EVENTLOG_H */

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * eventlog_private.h - what the files of this module share. From the bottom up:
 *
 *   format.c     the only functions that know the bytes
 *   window.c     reads a file record by record through one buffer
 *   marks.c      the file `durable`
 *   topic.c      the folder of a topic: names, version, lock
 *   segment.c    one segment file; the row of segments of a partition; the search for witnesses
 *   recover.c    what a partition is, from what lies on the disk
 *   partition.c  append, group sync, roll, retention
 *   resume.c     a partition that has failed goes on in place
 *   reader.c     reads what is durable
 *   verify.c     reads everything
 *   eventlog.c   the handle
 */
#ifndef WEIR_INGEST_EVENTLOG_PRIVATE_H
#define WEIR_INGEST_EVENTLOG_PRIVATE_H

#include <weir/ingest/eventlog/eventlog.h>
#include <weir/store/base/file.h>
#include <weir/store/base/thread.h>

#define ELOG_VERSION            1u
#define ELOG_SEGMENT_HEADER     32u
#define ELOG_RECORD_HEADER      WEIR_EVENTLOG_RECORD_OVERHEAD
#define ELOG_TOPIC_BYTES        24u
#define ELOG_MARK_BYTES         16u
#define ELOG_PATH_MAX           4096u
#define ELOG_SEGMENT_BYTES      (256ull << 20) /* the default                                           */
#define ELOG_BUFFER_WRITE_BYTES (1u << 20)     /* append hands a buffer of this size to the kernel      */
#define ELOG_BUFFER_MAX_BYTES   (8u << 20)     /* and waits at this one, unless one batch is larger     */
#define ELOG_INDEX_STEP_BYTES   (1u << 20)     /* one index entry per so many bytes of a segment        */
#define ELOG_WINDOW_BYTES       (256u << 10)   /* read at once                                          */
#define ELOG_MARKS_SPARE        4096u          /* marks appended before the file is written anew        */
#define ELOG_RETRIES_MAX        8u             /* of an open to read, or a verify, that meets retention  */
#define ELOG_SENTENCE_MAX       320u           /* of a failure that is kept                             */

/* --- format.c ------------------------------------------------------------------------------------------------- */

/* Whose records these are: says where they lie, and what their checksums are salted with. */
typedef struct weir_elog_origin {
    const char *topic_folder; /* borrowed; may be NULL where no path is made */
    uint64_t creation_id;
    uint32_t partition;
    uint32_t salt;
} weir_elog_origin;

weir_elog_origin weir_elog_origin_of(const char *topic_folder, uint64_t creation_id, uint32_t partition);

typedef enum weir_elog_header {
    ELOG_HEADER_OURS,
    ELOG_HEADER_BAD,     /* no magic, or the checksum is wrong            */
    ELOG_HEADER_VERSION, /* another digit after the magic                 */
    ELOG_HEADER_FOREIGN  /* whole, but of another topic or partition      */
} weir_elog_header;

void weir_elog_segment_header_encode(uint8_t out[ELOG_SEGMENT_HEADER], const weir_elog_origin *origin, uint64_t first);
weir_elog_header weir_elog_segment_header_check(const uint8_t in[ELOG_SEGMENT_HEADER], const weir_elog_origin *origin,
                                                uint64_t first);
void weir_elog_topic_encode(uint8_t out[ELOG_TOPIC_BYTES], uint64_t creation_id, uint32_t partitions);
weir_elog_header weir_elog_topic_decode(const uint8_t in[ELOG_TOPIC_BYTES], uint64_t *creation_idp,
                                        uint32_t *partitionsp);
void weir_elog_mark_encode(uint8_t out[ELOG_MARK_BYTES], const weir_elog_origin *origin, uint64_t durable);
/* False unless it is whole and of a partition below partitions. */
bool weir_elog_mark_decode(const uint8_t in[ELOG_MARK_BYTES], uint64_t creation_id, uint32_t partitions,
                           uint32_t *partitionp, uint64_t *durablep);

size_t weir_elog_record_bytes(const weir_record *record);
/* Writes weir_elog_record_bytes(record) bytes. */
void weir_elog_record_encode(uint8_t *out, const weir_elog_origin *origin, const weir_record *record, uint64_t offset,
                             uint64_t durable);
/* Of the first ELOG_RECORD_HEADER bytes, before the rest is known to be there: its length, 0 if that cannot be. */
size_t weir_elog_record_length(const uint8_t *header);
uint64_t weir_elog_record_offset(const uint8_t *header);
int64_t weir_elog_record_time(const uint8_t *header);
/* The durable offset at its append, at least: the record's own testimony. */
uint64_t weir_elog_record_claim(const uint8_t *header);
/* bytes: the whole record. False if its checksum or its key length is wrong. */
bool weir_elog_record_decode(const uint8_t *bytes, size_t length, const weir_elog_origin *origin, weir_record *recordp);

/* --- window.c ------------------------------------------------------------------------------------------------- */

/* A buffer that moves over a file. */
typedef struct weir_elog_window {
    weir_file *file; /* borrowed */
    uint8_t *bytes;
    size_t capacity;
    uint64_t start; /* position in the file of bytes[0] */
    size_t length;
} weir_elog_window;

/* Points at what the file has from position on: at least `want` bytes unless it ends before.  WEIR_EIO; WEIR_ENOMEM. */
weir_err weir_elog_window_at(weir_elog_window *window, uint64_t position, size_t want, const uint8_t **bytesp,
                             size_t *availablep);
/* Forgets the buffer's content, keeps its memory. */
void weir_elog_window_reset(weir_elog_window *window, weir_file *file);
void weir_elog_window_free(weir_elog_window *window);

typedef struct weir_elog_found {
    const char *problem; /* NULL: a whole record, or the end of the file */
    const uint8_t *bytes;
    size_t length;      /* 0 with no problem: the end of the file */
    weir_record record; /* borrowed until the window moves */
} weir_elog_found;

/* True if a record lies wholly in the buffer: to read it moves nothing. */
bool weir_elog_window_holds(const weir_elog_window *window, uint64_t position);
/* What lies at position, where the record `offset` should be.  WEIR_EIO; WEIR_ENOMEM. */
weir_err weir_elog_window_record(weir_elog_window *window, const weir_elog_origin *origin, uint64_t position,
                                 uint64_t offset, weir_elog_found *foundp);

/* --- marks.c -------------------------------------------------------------------------------------------------- */

typedef struct weir_elog_marks {
    weir_mutex mutex; /* guards all below; never taken together with a partition's */
    char path[ELOG_PATH_MAX];
    uint64_t creation_id;
    uint32_t partitions;
    uint64_t *durable; /* one a partition */
    weir_file *file;   /* NULL: read-only */
    bool failed;
} weir_elog_marks;

weir_err weir_elog_marks_init(weir_elog_marks *marks, const char *topic_folder, uint64_t creation_id,
                              uint32_t partitions);
/* Reads the file; for each partition the highest mark counts.  WEIR_ECORRUPT a partition has none; WEIR_ENOTFOUND;
 * WEIR_ELIMIT it is too large; WEIR_EIO; WEIR_ENOMEM. */
weir_err weir_elog_marks_load(weir_elog_marks *marks);
/* Writes one durable mark a partition and keeps the file open for more.  WEIR_EFULL, WEIR_EIO. */
weir_err weir_elog_marks_rewrite(weir_elog_marks *marks);
uint64_t weir_elog_marks_get(weir_elog_marks *marks, uint32_t partition);
/* Survives the end of the process; the disk gets it some time.  WEIR_EFULL, WEIR_EIO, then WEIR_EPOISONED. */
weir_err weir_elog_marks_put(weir_elog_marks *marks, uint32_t partition, uint64_t durable);
/* Writes the file anew if it has failed: what it says is true, whatever became of the last mark.  WEIR_EFULL,
 * WEIR_EIO. */
weir_err weir_elog_marks_resume(weir_elog_marks *marks);
/* Syncs and closes; nothing to do if not initialised. */
weir_err weir_elog_marks_close(weir_elog_marks *marks);

/* --- topic.c -------------------------------------------------------------------------------------------------- */

/* WEIR_EINVAL what is wrong with the name. */
weir_err weir_elog_topic_check(const char *topic);
/* "FOLDER/NAME", or WEIR_ELIMIT. */
weir_err weir_elog_path_join(char path[ELOG_PATH_MAX], const char *folder, const char *name);
/* Takes the lock file, writes our process id into it.  WEIR_EBUSY; WEIR_EIO; WEIR_EFULL. */
weir_err weir_elog_topic_lock(const char *topic_folder, weir_file **lockp);
/* WEIR_ENOTFOUND; WEIR_ECORRUPT; WEIR_ELIMIT it is too large; WEIR_EVERSION; WEIR_EIO. */
weir_err weir_elog_topic_load(const char *topic_folder, uint64_t *creation_idp, uint32_t *partitionsp);
/* Writes the marks, then, as the last step, the topic file.  WEIR_ECORRUPT there are partitions already. */
weir_err weir_elog_topic_create(const char *topic_folder, uint32_t partitions, uint64_t *creation_idp);

/* --- segment.c ------------------------------------------------------------------------------------------------ */

typedef struct weir_elog_index_entry {
    uint64_t offset;
    uint64_t position;
} weir_elog_index_entry;

/* What is known of one segment file. A plain value but for the index. */
typedef struct weir_elog_segment {
    uint64_t first;
    uint64_t bytes;
    int64_t time_newest; /* of all its records; valid if time_known */
    bool time_known;
    weir_elog_index_entry *index; /* sparse, rising; may be empty */
    size_t index_count, index_capacity;
} weir_elog_segment;

/* The segments of a partition, oldest first. */
typedef struct weir_elog_row {
    weir_elog_segment *segments;
    size_t count, capacity;
} weir_elog_row;

/* The folder of the partition, and a segment in it. */
void weir_elog_partition_path(char path[ELOG_PATH_MAX], const weir_elog_origin *origin);
void weir_elog_segment_path(char path[ELOG_PATH_MAX], const weir_elog_origin *origin, uint64_t first);
/* Lists the folder, opening no file; a folder that is not there has none.  WEIR_EIO; WEIR_ENOMEM; WEIR_ECORRUPT a name
 * that is not an offset. */
weir_err weir_elog_row_list(weir_elog_row *row, const weir_elog_origin *origin);
/* The same, with sizes; and checks each header but that of the last, which may be torn.  Also WEIR_ENOTFOUND a file
 * went away meanwhile; WEIR_ECORRUPT; WEIR_EVERSION. */
weir_err weir_elog_row_load(weir_elog_row *row, const weir_elog_origin *origin);
weir_err weir_elog_row_insert(weir_elog_row *row, size_t at, const weir_elog_segment *segment);
/* The caller gets the removed one with its index. */
weir_elog_segment weir_elog_row_take(weir_elog_row *row, size_t at);
/* The segment where offset is or would be; NULL if the row is empty or begins after it. */
weir_elog_segment *weir_elog_row_find(weir_elog_row *row, uint64_t offset);
uint64_t weir_elog_row_bytes(const weir_elog_row *row);
void weir_elog_row_free(weir_elog_row *row);
/* Notes where offset is, if that is a step after the last note. Out of memory: it is not noted. */
void weir_elog_segment_note(weir_elog_segment *segment, uint64_t offset, uint64_t position);
/* The nearest noted place at or before offset. */
weir_elog_index_entry weir_elog_segment_seek(const weir_elog_segment *segment, uint64_t offset);
void weir_elog_segment_free(weir_elog_segment *segment);

/* Creates the file with its header, durable under its name.  WEIR_EEXIST; WEIR_EFULL; WEIR_EIO. */
weir_err weir_elog_segment_create(const weir_elog_origin *origin, uint64_t first, weir_file **filep);
/* WEIR_ECORRUPT; WEIR_EVERSION; WEIR_EIO. */
weir_err weir_elog_segment_check(weir_file *file, const weir_elog_origin *origin, uint64_t first);

typedef struct weir_elog_scan {
    uint64_t position;   /* where the first thing that is not a whole record is         */
    uint64_t offset;     /* the offset that it would have                               */
    const char *problem; /* what is wrong there; NULL: the file or the limit is reached */
    uint64_t records;
    int64_t time_newest; /* if records > 0 */
    int64_t time_last;   /* if records > 0 */
} weir_elog_scan;

/* Reads records from the header on until one is not whole or has offset_limit, noting the way in the segment.
 * WEIR_EIO; WEIR_ENOMEM. */
weir_err weir_elog_segment_scan(weir_file *file, const weir_elog_origin *origin, weir_elog_segment *segment,
                                uint64_t offset_limit, weir_elog_scan *scanp);
/* Looks after a tear for a whole record that claims more than offset as durable.  *claimp is 0 if there is none. */
weir_err weir_elog_segment_witness(weir_file *file, const weir_elog_origin *origin, uint64_t position, uint64_t offset,
                                   uint64_t *claimp, uint64_t *claim_positionp);

/* --- partition.c, recover.c ----------------------------------------------------------------------------------- */

typedef struct weir_elog_buffer {
    uint8_t *bytes;
    size_t length, capacity;
} weir_elog_buffer;

typedef struct weir_elog_partition {
    weir_eventlog *log; /* borrowed; read-only */
    weir_elog_origin origin;

    weir_mutex mutex;  /* guards the next block */
    weir_cond changed; /* durable, busy or failed */
    weir_elog_row row;
    uint64_t offset_durable;
    uint64_t offset_end;
    int64_t time_last; /* of the newest durable record */
    int64_t time_end;  /* of the newest appended one   */
    weir_elog_buffer filling;
    bool busy; /* one thread owns the block below */
    bool failed;
    char failure[ELOG_SENTENCE_MAX];
    uint64_t tail_cut_bytes;

    weir_file *file; /* the last segment; NULL: none yet, or read-only */
    weir_elog_buffer writing;
    uint64_t offset_written; /* all below are in the file */
    uint64_t writing_first;  /* of the records in `writing` */
    uint64_t offset_synced;  /* all below are on the disk, whether they could be marked or not … */
    uint64_t synced_first;   /* … and end with this segment */
    uint64_t synced_bytes;   /* at this length; 0: there is none */
} weir_elog_partition;

/* Notes that the file, as it is, is on the disk.  While `busy` is ours, or before there are other threads. */
void weir_elog_partition_synced(weir_elog_partition *partition, uint64_t offset);
/* resume.c: gets a partition that has failed to work again, then syncs; of one that has not failed it only syncs.
 * WEIR_EFULL, WEIR_EIO, WEIR_ENOMEM, WEIR_ECORRUPT, WEIR_EPOISONED: it has failed, as before or anew. */
weir_err weir_elog_partition_resume(weir_elog_partition *partition);
/* Makes an empty partition that can be freed. */
void weir_elog_partition_init(weir_elog_partition *partition, weir_eventlog *log, uint32_t number);
/* Success, or why it has failed. */
weir_err weir_elog_partition_health(weir_elog_partition *partition);
weir_err weir_elog_partition_append(weir_elog_partition *partition, const weir_record *records, size_t count,
                                    size_t bytes, uint64_t *first_offsetp);
weir_err weir_elog_partition_sync(weir_elog_partition *partition);
/* Nothing from offset keep_from on goes. */
weir_err weir_elog_partition_retain(weir_elog_partition *partition, uint64_t keep_from, uint64_t *removedp);
void weir_elog_partition_free(weir_elog_partition *partition);

/* Reads the row, cuts a torn tail or refuses (EVENTLOG-L3); everything that is left is durable.  */
weir_err weir_elog_partition_recover(weir_elog_partition *partition, uint64_t mark);
/* The same for a reader: changes nothing; what is durable is what the mark says. */
weir_err weir_elog_partition_view(weir_elog_partition *partition, uint64_t mark);
/* Read-only: lists the segments anew, after a refresh.  WEIR_EIO; WEIR_ENOMEM; WEIR_ECORRUPT. */
weir_err weir_elog_partition_relist(weir_elog_partition *partition);
/* WEIR_EINVAL: the topic has no such partition. */
weir_err weir_elog_check_partition(const weir_eventlog *log, uint32_t partition);
/* Read-only: of a file that could not be read, err, or WEIR_ENOTFOUND the topic is gone or was created anew. */
weir_err weir_elog_or_gone(const weir_eventlog *log, weir_err err);
/* Read-only: takes newer marks from the disk.  WEIR_ENOTFOUND the topic is gone or was created anew; WEIR_EIO. */
weir_err weir_elog_refresh(weir_eventlog *log);

struct weir_eventlog {
    char topic[WEIR_EVENTLOG_TOPIC_MAX + 1];
    char folder[ELOG_PATH_MAX]; /* of the topic */
    weir_eventlog_opts opts;    /* with the defaults filled in */
    uint64_t creation_id;
    weir_file *lock;
    weir_elog_marks marks;
    weir_elog_partition *partitions;
    uint32_t partition_count;
};

#endif /* WEIR_INGEST_EVENTLOG_PRIVATE_H */

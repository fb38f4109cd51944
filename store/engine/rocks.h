/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rocks.h - RocksDB for C: what its own C interface leaves out.
 *
 * That interface lets exceptions through (std::bad_alloc out of any call ends a program in C), says what went wrong in
 * words only, and has neither listeners, nor Resume, nor a check of one file. Here each call is guarded, and comes back
 * with a status. Where memory is short, RocksDB waits for it: a caller of ours for a second, but for as long as it
 * takes where files are listed for a walk, or their properties once a database was opened or a file was taken in, and
 * in an opening for reading only. What an exception then leaves all the same is not destroyed any more; if it was a
 * write, RocksDB is only read from. rocks.cc says why.
 *
 * WEIR_FAULT "engine" fails any of these calls: ENOMEM is thrown, so that the guard is tried as well.
 */
#ifndef WEIR_STORE_ENGINE_ROCKS_H
#define WEIR_STORE_ENGINE_ROCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/store/engine/engine.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_ROCKS_TEXT_MAX 400u

typedef enum weir_rocks_kind {
    WEIR_ROCKS_OK,
    WEIR_ROCKS_CORRUPT, /* what lies on the disk is not what was written          */
    WEIR_ROCKS_FULL,    /* no space                                                */
    WEIR_ROCKS_LOCKED,  /* another process has it                                  */
    WEIR_ROCKS_MISSING, /* there is no store                                       */
    WEIR_ROCKS_MEMORY,  /* std::bad_alloc                                          */
    WEIR_ROCKS_FAILED   /* any other, of input and output most of the time         */
} weir_rocks_kind;

typedef struct weir_rocks_status {
    weir_rocks_kind kind;
    char text[WEIR_ROCKS_TEXT_MAX];
} weir_rocks_status;

typedef struct weir_rocks weir_rocks;
typedef struct weir_rocks_cache weir_rocks_cache;
typedef struct weir_rocks_cursor weir_rocks_cursor;
typedef struct weir_rocks_writer weir_rocks_writer;

/* RocksDB has stopped compacting or taking files, for this reason. Called by a thread of RocksDB. */
typedef void (*weir_rocks_alarm)(void *context, const weir_rocks_status *status);

typedef struct weir_rocks_opts {
    weir_rocks_cache *cache; /* NULL: a small one of its own  */
    bool create, read_only, compacts;
    weir_engine_last_rank last_rank;
    const weir_engine_joining *joining;
    weir_rocks_alarm alarm; /* NULL: for a look only; its files are not read one by one */
    void *context;
} weir_rocks_opts;

typedef struct weir_rocks_numbers {
    uint64_t live_bytes, live_files, keys_estimate, level0_files, compaction_bytes;
    uint64_t jobs; /* that run or are due: engine.h */
    /* since it was opened; of databases with an alarm */
    uint64_t taken_bytes, compacted_bytes, compaction_cpu_us;
    uint64_t merges; /* of the compactions those that merging.hh has made */
} weir_rocks_numbers;

/* Each returns whether it went well; if not, *status says why, and what would be handed out is NULL. */
bool weir_rocks_cache_open(uint64_t bytes, weir_rocks_cache **cachep, weir_rocks_status *status);
void weir_rocks_cache_close(weir_rocks_cache *cache);
bool weir_rocks_open(const char *folder, const weir_rocks_opts *opts, weir_rocks **dbp, weir_rocks_status *status);
void weir_rocks_close(weir_rocks *db);
/* A write was thrown out of: none of this process takes anything more, or can be closed.  [any] */
bool weir_rocks_torn(void);
/* A read of this database was thrown out of, or RocksDB is torn: to close it would leave it open, and its folder locked
 * until the process ends.  [any] */
bool weir_rocks_held(const weir_rocks *db);
/* Some thread of RocksDB, or in it, waits for memory.  [any] */
bool weir_rocks_waits(void);
/* Goes on after an error that was not of the data, if that is over. */
bool weir_rocks_resume(weir_rocks *db, weir_rocks_status *status);

/* total: in full order, and not for one prefix; keeps: what is read comes into the block cache. */
bool weir_rocks_cursor_open(weir_rocks *db, bool total, bool keeps, weir_rocks_cursor **cursorp,
                            weir_rocks_status *status);
/* One that stands in no file until weir_rocks_cursor_next_file: engine.h says what for. */
bool weir_rocks_cursor_open_files(weir_rocks *db, const void *prefix, uint64_t from_rank, weir_rocks_cursor **cursorp,
                                  weir_rocks_status *status);
/* false: there are no more, or a failure, which the status says. */
bool weir_rocks_cursor_next_file(weir_rocks_cursor *cursor, uint64_t *rankp);
void weir_rocks_cursor_seek(weir_rocks_cursor *cursor, const void *key, size_t length);
void weir_rocks_cursor_seek_last(weir_rocks_cursor *cursor, const void *key, size_t length); /* at it, or before */
void weir_rocks_cursor_previous(weir_rocks_cursor *cursor);
void weir_rocks_cursor_next(weir_rocks_cursor *cursor);
bool weir_rocks_cursor_valid(const weir_rocks_cursor *cursor);
const void *weir_rocks_cursor_key(const weir_rocks_cursor *cursor, size_t *lengthp);
const void *weir_rocks_cursor_value(const weir_rocks_cursor *cursor, size_t *lengthp);
bool weir_rocks_cursor_status(const weir_rocks_cursor *cursor, weir_rocks_status *status);
void weir_rocks_cursor_close(weir_rocks_cursor *cursor);

/* in_parts: index and filter, as those of what merges make. */
bool weir_rocks_writer_open(weir_rocks *db, const char *path, bool in_parts, weir_rocks_writer **writerp,
                            weir_rocks_status *status);
bool weir_rocks_writer_add(weir_rocks_writer *writer, const void *key, size_t key_length, const void *value,
                           size_t value_length, weir_rocks_status *status);
uint64_t weir_rocks_writer_bytes(const weir_rocks_writer *writer);
/* Whole and on the disk. */
bool weir_rocks_writer_finish(weir_rocks_writer *writer, weir_rocks_status *status);
void weir_rocks_writer_close(weir_rocks_writer *writer);
/* Links the finished file into the store: all of it is seen, or nothing. */
bool weir_rocks_ingest(weir_rocks_writer *writer, weir_rocks_status *status);

/* The same by way of a memtable and its flush: to take a file in, RocksDB looks for what overlaps with it, and cannot
 * while that is damaged. Memory for all of the file. After a failure none of it is seen, until one that has all of it
 * came in, or by another opening. */
bool weir_rocks_put_file(weir_rocks *db, const char *path, weir_rocks_status *status);

/* The name of each file that makes the database, and how many of its bytes count; none is removed until the walk ends,
 * as it does when take returns false. */
typedef bool (*weir_rocks_take_file)(void *context, const char *name, uint64_t length);
bool weir_rocks_live_files(weir_rocks *db, weir_rocks_take_file take, void *context, weir_rocks_status *status);
bool weir_rocks_compact(weir_rocks *db, weir_rocks_status *status);
/* Hands all that can be read in any of the ranges of each sorted file alone, damaged blocks passed over; a file that
 * cannot be opened tells nothing. false ends it. */
typedef bool (*weir_rocks_take_record)(void *context, const void *key, size_t key_length, const void *value,
                                       size_t value_length);
bool weir_rocks_salvage(weir_rocks *db, const weir_engine_range *ranges, size_t count, weir_rocks_take_record take,
                        void *context, weir_rocks_status *status);
/* Reads every byte of one sorted file anew, past RocksDB's caches and, where it can be, the kernel's; NULL: of all
 * sorted files. Of one whose checksum is not known, only the blocks. */
bool weir_rocks_check_file(weir_rocks *db, const char *path, weir_rocks_status *status);
/* Whether the file at `path` has the bytes that the database's sorted file `name` was written with. */
bool weir_rocks_check_copy(weir_rocks *db, const char *name, const char *path, weir_rocks_status *status);
void weir_rocks_numbers_get(weir_rocks *db, weir_rocks_numbers *numbersp);

#ifdef __cplusplus
}
#endif

#endif /* WEIR_STORE_ENGINE_ROCKS_H */
